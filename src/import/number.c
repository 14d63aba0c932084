#include "import/number.h"

#include "base/mem.h"

#include <ctype.h>
#include <string.h>

// Every character must be a digit of the base; there is no sign and no blank. False also above 64
// bits.
static bool parse(const char *text, size_t length, unsigned base, uint64_t *number)
{
	uint64_t value = 0;

	ASSERT(base == 10 || base == 16);
	if (length == 0)
		return false;
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];
		unsigned digit = isdigit(c) ? c - (unsigned)'0' : 99;

		if (isxdigit(c) && !isdigit(c))
			digit = (unsigned)tolower(c) - 'a' + 10;
		if (digit >= base || __builtin_mul_overflow(value, (uint64_t)base, &value) ||
		    __builtin_add_overflow(value, (uint64_t)digit, &value))
			return false;
	}
	*number = value;
	return true;
}

// "0x" alone is no prefix, and so no number: x is not a digit.
static bool has_prefix(const char *text, size_t length)
{
	return length > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
}

bool number_parse(const char *text, size_t length, uint64_t *number)
{
	if (has_prefix(text, length))
		return parse(text + 2, length - 2, 16, number);
	return parse(text, length, 10, number);
}

bool number_parse_hex(const char *text, size_t length, uint64_t *number)
{
	if (has_prefix(text, length))
		return parse(text + 2, length - 2, 16, number);
	return parse(text, length, 16, number);
}

// For example "1.5" with a scale of 10^9 is 1,500,000,000 ns; the digit after the point counts
// 10^8. Digits below a nanosecond count 0. ".5" and "5." are numbers, "." is none.
bool number_parse_time(const char *text, uint64_t scale, uint64_t *time_ns)
{
	size_t whole = strcspn(text, ".");
	uint64_t value = 0;

	if (whole > 0 && !parse(text, whole, 10, &value))
		return false;
	if (__builtin_mul_overflow(value, scale, &value))
		return false;
	if (whole == 0 && !isdigit((unsigned char)text[0]) && !text[0])
		return false;
	if (text[whole] == '.') {
		const char *digits = text + whole + 1;

		if (!*digits && whole == 0)
			return false;
		for (; *digits; digits++) {
			if (!isdigit((unsigned char)*digits))
				return false;
			scale /= 10;
			if (__builtin_add_overflow(value, scale * (uint64_t)(*digits - '0'),
						   &value))
				return false;
		}
	}
	*time_ns = value;
	return true;
}
