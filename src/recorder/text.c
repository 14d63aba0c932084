// text: memcpy and the like, which a compiler may call where none is written, and a few functions
// for text. In assembly or with a barrier, so that the compiler does not make a call of itself of
// them.
#include "recorder/text.h"

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
	void *result = to;

	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
	return result;
}

void *memset(void *to, int byte, size_t size)
{
	void *result = to;

	__asm__ volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(byte) : "memory");
	return result;
}

// Forwards where the ranges allow it, else byte by byte from the end.
void *memmove(void *to, const void *from, size_t size)
{
	uint8_t *out = to;
	const uint8_t *in = from;

	if (out <= in || out >= in + size)
		return memcpy(to, from, size);
	while (size--) {
		out[size] = in[size];
		__asm__ volatile("" ::: "memory");
	}
	return to;
}

int memcmp(const void *a, const void *b, size_t size)
{
	const uint8_t *x = a;
	const uint8_t *y = b;

	for (size_t i = 0; i < size; i++) {
		if (x[i] != y[i])
			return x[i] - y[i];
	}
	return 0;
}

// `out` has room for the folder, ten digits and a NUL.
void text_put_fd(char *out, const char *folder, uint32_t fd)
{
	char digits[12];
	size_t count = 0;

	memcpy(out, folder, text_length(folder));
	out += text_length(folder);
	do {
		digits[count++] = (char)('0' + fd % 10);
		fd /= 10;
	} while (fd);
	while (count)
		*out++ = digits[--count];
	*out = 0;
}
