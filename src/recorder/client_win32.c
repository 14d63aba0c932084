#include "recorder/client_win32.h"

#include "recorder/client.h"
#include "recorder/kernel.h"
#include "recorder/text.h"

enum {
	CLIENT_SECTION_BYTES = 40, // a row of an image's table of sections
	CLIENT_SECTIONS_MAX = 96,
};

// As tidemark.h has it.
struct client_place {
	uint32_t magic[2];
	const struct client_table *_Atomic table;
};

// The places of all files of a module are in one section, and a linker may leave room between them:
// so each is found by its eight bytes of magic, "TIMERKV1", at any multiple of four. It is written
// at once, as a thread may read it meanwhile (in a program that was attached to): it sees NULL or
// the whole address.
static void client_fill(uint8_t *at, size_t bytes)
{
	static const uint32_t magic[2] = { 0x454d4954, 0x31564b52 };

	for (; bytes >= sizeof(struct client_place); at += 4, bytes -= 4)
		if (memcmp(at, magic, sizeof(magic)) == 0)
			__atomic_store_n(&((struct client_place *)(void *)at)->table,
					 &tidemark_client_v1, __ATOMIC_RELEASE);
}

// Of an image, 0x3c says where its headers are. In these, at 6 is the number of sections, at 20 the
// size of the optional header that begins at 24; the rows of sections come after that. In a row, at
// 8 is its size in memory, at 12 where it is, at 36 its flags.
void client_reach(uint8_t *base, uint32_t bytes)
{
	const uint8_t *headers = base + text_load32(base + 0x3c);
	uint32_t count = text_load32(headers + 4) >> 16;
	const uint8_t *row = headers + 24 + (text_load32(headers + 20) & 0xffff);

	for (uint32_t i = 0; i < count && i < CLIENT_SECTIONS_MAX; i++) {
		uint32_t size = text_load32(row + 8), at = text_load32(row + 12);

		if (memcmp(row, ".tidemrk", 8) == 0 && at < bytes && size <= bytes - at &&
		    text_load32(row + 36) >> 31) // it can be written
			client_fill(base + at, size);
		row += CLIENT_SECTION_BYTES;
	}
}
