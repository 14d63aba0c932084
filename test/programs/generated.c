// generated: 140,000 places of code that call malloc, more than a recorder makes room for at first.
//
// Writes as many functions into memory, each of which calls malloc for 40 bytes and keeps the frame
// pointer chain as compilers at run time do, and calls one after the other, freeing what they give.
// Prints nothing.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PLACES = 140000, PLACE_BYTES = 32, BLOCK_BYTES = 40 };

// push %rbp; mov %rsp,%rbp; make the call; pop %rbp; ret
#ifdef __x86_64__
static const unsigned char before[] = { 0x55, 0x48, 0x89, 0xe5, 0xbf, BLOCK_BYTES,
					0,    0,    0,    0x48, 0xb8 };
static const unsigned char after[] = { 0xff, 0xd0, 0x5d, 0xc3 };
#else
static const unsigned char before[] = {
	0x55, 0x89, 0xe5, 0x83, 0xec, 0x14, 0x6a, BLOCK_BYTES, 0xb8
};
static const unsigned char after[] = { 0xff, 0xd0, 0xc9, 0xc3 };
#endif

int main(void)
{
	void *(*allocate)(size_t) = malloc;
	unsigned char *code = mmap(NULL, (size_t)PLACES * PLACE_BYTES, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED)
		return 1;
	for (int i = 0; i < PLACES; i++) {
		unsigned char *at = code + (size_t)i * PLACE_BYTES;

		memcpy(at, before, sizeof(before));
		memcpy(at + sizeof(before), &allocate, sizeof(allocate));
		memcpy(at + sizeof(before) + sizeof(allocate), after, sizeof(after));
	}
	if (mprotect(code, (size_t)PLACES * PLACE_BYTES, PROT_READ | PROT_EXEC) != 0)
		return 1;
	for (int i = 0; i < PLACES; i++) {
		void *(*function)(void);

		*(void **)&function = code + (size_t)i * PLACE_BYTES;
		free(function());
	}
	return 0;
}
