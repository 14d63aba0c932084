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

static void client_fill(uint8_t *at, size_t bytes)
{
	static const uint32_t magic[2] = { 0x454d4954, 0x31564b52 };

	for (; bytes >= sizeof(struct client_place); at += 4, bytes -= 4)
		if (memcmp(at, magic, sizeof(magic)) == 0)
			__atomic_store_n(&((struct client_place *)(void *)at)->table,
					 &tidemark_client_v1, __ATOMIC_RELEASE);
}

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
