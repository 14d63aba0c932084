// Text that grows by doubling. A str that was never added to has no memory, and text NULL; str_get
// makes "" of it. `capacity` counts the NUL, `length` does not: of 16 bytes, 15 can be used.
//
// For example, an empty str that gets "hello" has 16 bytes of memory, length 5, and a NUL at 5;
// with 11 characters more it has 16 to hold and the NUL, so it grows to 32. A text that was taken
// (str_take) is the caller's, and the str is as at first.
#include "base/str.h"

#include "base/mem.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// Room for `more` bytes and the NUL.
// Afterwards `text` is not NULL, also for 0 bytes more.
static void reserve(struct str *str, size_t more)
{
	// Strictly less: one byte is the NUL's. Of an empty str both are 0, and 0 is not less than
	// 0.
	if (more < str->capacity - str->length)
		return;
	ASSERT(more < SIZE_MAX - str->length);
	str->text = mem_grow(str->text, &str->capacity, str->length + more + 1, 1);
	ASSERT(str->length + more < str->capacity);
}

void str_fini(struct str *str)
{
	mem_free(str->text);
	*str = (struct str){ 0 };
}

void str_fini_all(struct str *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		str_fini(list[i]);
}

void str_clear(struct str *str)
{
	str->length = 0;
	if (str->text)
		str->text[0] = '\0';
}

void str_add(struct str *str, const char *text)
{
	str_add_bytes(str, text, strlen(text));
}

void str_add_bytes(struct str *str, const void *bytes, size_t length)
{
	reserve(str, length);
	if (length > 0)
		memcpy(str->text + str->length, bytes, length);
	str->length += length;
	str->text[str->length] = '\0';
}

void str_add_char(struct str *str, char c)
{
	reserve(str, 1);
	str->text[str->length++] = c;
	str->text[str->length] = '\0';
}

void str_add_digits(struct str *str, uint64_t value)
{
	char digits[20], *at = digits + sizeof digits; // as many as UINT64_MAX has

	// From the last digit to the first.
	for (; value >= 10; value /= 10)
		*--at = (char)('0' + value % 10);
	*--at = (char)('0' + value);
	str_add_bytes(str, at, (size_t)(digits + sizeof digits - at));
}

// 0: it is none. Longer forms of a smaller number, halves of pairs and numbers beyond 0x10ffff
// are none.
// The first byte says how long it is; the rest must begin with the bits 10. 0xc0 and 0xc1 would be
// longer forms of ASCII.
size_t str_utf8_length(const unsigned char *at, size_t left)
{
	// By length, the first number that needs it: what is less was written longer than it must
	// be, and is refused, since a check for '/' would not see c0 af.
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	uint32_t code;
	size_t length;

	ASSERT(left > 0);
	if (at[0] < 0x80)
		return 1;
	if (at[0] < 0xc2 || at[0] > 0xf4)
		return 0;
	length = at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
	if (length > left)
		return 0;
	// For example é, c3 a9: length 2, c3 & 1f = 3, and 3 << 6 | 29 = e9. The masks are 1f, 0f
	// and 07.
	code = at[0] & (0xffu >> (length + 1));
	for (size_t i = 1; i < length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (at[i] & 0x3f);
	}
	if (code < least[length] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	return length;
}

// Each byte that is not part of a character becomes one U+FFFD.
void str_add_utf8(struct str *str, const char *text, size_t length)
{
	size_t step;

	for (; length > 0; text += step, length -= step) {
		size_t whole = str_utf8_length((const unsigned char *)text, length);

		step = whole > 0 ? whole : 1;
		str_add_bytes(str, whole > 0 ? text : "\xef\xbf\xbd", whole > 0 ? whole : 3);
	}
}

size_t str_control(const char *at)
{
	const unsigned char *bytes = (const unsigned char *)at;

	if (bytes[0] == 0xc2 && (bytes[1] & 0xe0) == 0x80)
		return 2;
	return bytes[0] < 0x20 || bytes[0] == 0x7f;
}

void str_add_plain(struct str *str, const char *text, size_t length)
{
	struct str clean = { 0 };

	str_add_utf8(&clean, text, length);
	text = str_get(&clean);
	for (size_t i = 0; i < clean.length; i++) {
		size_t control = str_control(text + i);
		bool blank = text[i] == '\n' || text[i] == '\t' || text[i] == '\r';

		str_add_char(str, blank ? ' ' : control ? '?' : text[i]);
		i += control == 2;
	}
	str_fini(&clean);
}

void str_add_hex(struct str *str, const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		// Two digits a byte, the upper four bits first.
		str_add_char(str, "0123456789abcdef"[bytes[i] >> 4]);
		str_add_char(str, "0123456789abcdef"[bytes[i] & 15]);
	}
}

void str_format(struct str *str, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	str_vformat(str, format, args);
	va_end(args);
}

// Formatted into what room there is; where that is too little its length is known, and it is done
// again.
void str_vformat(struct str *str, const char *format, va_list args)
{
	va_list again;
	size_t room;
	int length;

	reserve(str, 0);
	room = str->capacity - str->length;
	va_copy(again, args);
	length = vsnprintf(str->text + str->length, room, format, args);
	ASSERT(length >= 0);
	if ((size_t)length >= room) {
		reserve(str, (size_t)length);
		vsnprintf(str->text + str->length, (size_t)length + 1, format, again);
	}
	va_end(again);
	str->length += (size_t)length;
}

const char *str_get(const struct str *str)
{
	return str->text ? str->text : "";
}

char *str_take(struct str *str)
{
	char *text;

	// An empty str has no memory yet, and who takes it gets a text all the same.
	reserve(str, 0);
	text = str->text;
	text[str->length] = '\0';
	*str = (struct str){ 0 };
	return text;
}

// One digit after the point: 1,536 bytes are 1.5 KiB.
const char *str_bytes(uint64_t bytes, char out[static 16])
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	const int last = (int)(sizeof units / sizeof units[0]) - 1;
	double value = (double)bytes / 1024;
	int unit = 0;

	if (bytes < 1024) {
		snprintf(out, 16, "%d B", (int)bytes);
		return out;
	}
	// What would be printed as 1024.0 is 1.0 of the next unit.
	// For example 1,048,550 bytes are 1,023.97 KiB, which would be written as 1024.0 KiB: they
	// are 1.0 MiB.
	while (value >= 1023.95 && unit < last) {
		value /= 1024;
		unit++;
	}
	snprintf(out, 16, "%.1f %s", value, units[unit]);
	return out;
}

// A comma before each third digit from the end: 1234567 is 1,234,567.
const char *str_count(uint64_t count, char out[static 28])
{
	char digits[21];
	int length = snprintf(digits, sizeof digits, "%" PRIu64, count);
	char *to = out;

	ASSERT(length > 0 && length <= 20);
	// For example 1,234,567: before the digits 2 and 5, where six and three are left.
	for (int i = 0; i < length; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return out;
}

// Three digits after the point, rounded; what rounds up to the next unit is shown in that:
// 999,999,500 ns is 1.000 s.
const char *str_duration(uint64_t duration_ns, char out[static 24])
{
	static const struct {
		uint64_t unit_ns;
		uint64_t last_ns; // the last that rounds to less than the next unit
		const char *name;
	} units[] = {
		{ 1000, 999999, "us" },
		{ 1000000, 999999499, "ms" },
		{ 1000000000, 59999499999, "s" },
	};

	if (duration_ns < 1000) {
		snprintf(out, 24, "%d ns", (int)duration_ns);
		return out;
	}
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
		uint64_t unit = units[i].unit_ns;
		// For example 1,234,567 ns: (1,234,567 + 500) / 1,000 = 1,235 thousandths of a
		// millisecond, 1.235 ms.
		uint64_t thousandths = (duration_ns + unit / 2000) / (unit / 1000);

		if (duration_ns > units[i].last_ns)
			continue;
		snprintf(out, 24, "%" PRIu64 ".%03d %s", thousandths / 1000,
			 (int)(thousandths % 1000), units[i].name);
		return out;
	}
	duration_ns = duration_ns / 1000000000 + (duration_ns % 1000000000 >= 500000000);
	snprintf(out, 24, "%" PRIu64 " min %02d s", duration_ns / 60, (int)(duration_ns % 60));
	return out;
}

const char *str_time(uint64_t time_ns, char out[static 24])
{
	static const struct {
		uint64_t unit_ns;
		int decimals;
		const char *name;
	} units[] = { { 1000000000, 9, "s" }, { 1000000, 6, "ms" }, { 1000, 3, "us" } };
	size_t i = 0;
	int length;

	while (i < sizeof units / sizeof *units && time_ns < units[i].unit_ns)
		i++;
	if (i == sizeof units / sizeof *units) {
		snprintf(out, 24, "%dns", (int)time_ns);
		return out;
	}
	length = snprintf(out, 24, "%" PRIu64 ".%0*" PRIu64, time_ns / units[i].unit_ns,
			  units[i].decimals, time_ns % units[i].unit_ns);
	ASSERT(length > units[i].decimals && length < 24 - 2);
	// 15.300000 -> 15.3, and 15.000000 -> 15
	while (out[length - 1] == '0')
		length--;
	length -= out[length - 1] == '.';
	memcpy(out + length, units[i].name, strlen(units[i].name) + 1);
	return out;
}

// Digits at *at into *value and past them. False without a digit, or where they do not fit.
static bool take_digits(const char **at, uint64_t *value)
{
	const char *begin = *at;

	*value = 0;
	for (; **at >= '0' && **at <= '9'; ++*at) {
		uint64_t digit = (uint64_t)(**at - '0');

		// Asked before, since a product that overflowed may be any number.
		if (*value > (UINT64_MAX - digit) / 10)
			return false;
		*value = *value * 10 + digit;
	}
	return *at != begin;
}

// "", "B", "K", "KB", "KiB" … -> 0, 0, 10, 10, 10: the power of two. -1: not a unit.
static int unit_shift(const char *unit)
{
	static const char letters[] = "kmgtpe";
	int shift = 0;

	if (*unit) {
		const char *letter = strchr(letters, *unit | 0x20);

		if (letter) {
			shift = 10 * (int)(letter - letters + 1);
			unit++;
			if (*unit == 'i' && (unit[1] | 0x20) == 'b')
				unit++;
		}
	}
	if ((*unit | 0x20) == 'b')
		unit++;
	return *unit ? -1 : shift;
}

// A fraction needs a unit: 1.5 bytes are none. The sum is made in 128 bits, so nothing is rounded
// before the check.
bool str_parse_bytes(const char *text, uint64_t *bytes)
{
	enum { FRACTION_DIGITS_MAX = 9 };
	__extension__ typedef unsigned __int128 wide;
	uint64_t whole;
	uint64_t fraction = 0;
	uint64_t scale = 1;
	wide sum;
	int shift;

	if (!take_digits(&text, &whole))
		return false;
	if (*text == '.') {
		const char *begin = ++text;

		if (!take_digits(&text, &fraction) || text - begin > FRACTION_DIGITS_MAX)
			return false;
		// For example .25 is 25 of 100.
		for (; begin < text; begin++)
			scale *= 10;
	}
	shift = unit_shift(text);
	if (shift < 0 || (scale > 1 && shift == 0))
		return false;
	// For example 1.5K: 1 << 10, and (5 << 10) / 10 = 512.
	sum = ((wide)whole << shift) + ((wide)fraction << shift) / scale;
	if (sum > UINT64_MAX)
		return false;
	*bytes = (uint64_t)sum;
	return true;
}

int str_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool str_parse_count(const char *text, uint64_t *count)
{
	uint64_t value;

	if (!take_digits(&text, &value) || *text)
		return false;
	*count = value;
	return true;
}

enum { WORD_MAX = 48 };

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

// Insertions, deletions, replacements and swaps of neighbours that turn a into b.
// Three rows of the usual table are enough: the one that is being filled, the one above, and the
// one above that for swaps. "foce" is 1 from "force", and "fcore" 1 from "fcroe".
// For "foce" and "force": the table's cell (i, j) is the distance of the first i and j letters. It
// is the least of the cell above plus 1 (a letter is left out), the one to the left plus 1 (one is
// added), and the one before both plus 1 if the letters differ.
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
	size_t rows[3][WORD_MAX + 1];
	size_t *before = rows[0]; // two rows up, for swaps
	size_t *above = rows[1];
	size_t *row = rows[2];

	ASSERT(a_length <= WORD_MAX && b_length <= WORD_MAX);
	for (size_t j = 0; j <= b_length; j++)
		before[j] = above[j] = j;
	for (size_t i = 1; i <= a_length; i++) {
		size_t *free_row = before;

		row[0] = i;
		for (size_t j = 1; j <= b_length; j++) {
			row[j] = least(least(above[j], row[j - 1]) + 1,
				       above[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], before[j - 2] + 1);
		}
		before = above;
		above = row;
		row = free_row;
	}
	return above[b_length];
}

// Near is at most a quarter of the word's letters and one more, and less than all letters of
// either.
const char *str_nearest(const char *word, const char *const *words)
{
	const char *nearest = NULL;
	size_t length = strlen(word);
	// For example of 5 letters two slips are near: "reprot" and "rport" are "report", "list" is
	// not.
	size_t nearest_distance = length / 4 + 1;

	if (length == 0 || length > WORD_MAX)
		return NULL;
	for (; *words; words++) {
		size_t other_length = strlen(*words);
		size_t distance;

		if (other_length > WORD_MAX)
			continue;
		// A beginning is as good as one slip.
		if (length > 1 && strncmp(word, *words, length) == 0)
			distance = 1;
		else
			distance = edit_distance(word, length, *words, other_length);
		if (distance > nearest_distance || distance >= least(length, other_length))
			continue;
		if (nearest && distance == nearest_distance)
			continue;
		nearest = *words;
		nearest_distance = distance;
	}
	return nearest;
}

const char *str_find_last(const char *text, char c, size_t length)
{
	while (length > 0)
		if (text[--length] == c)
			return text + length;
	return NULL;
}

// "C:\x\y.dll", "z:/y.dll", "\\host\share\y.dll" and "\Device\y.dll"; not "/c/y.dll" nor "y.dll".
bool str_is_windows_path(const char *path)
{
	return path[0] == '\\' || (isalpha((unsigned char)path[0]) && path[1] == ':');
}

// One that has no '/' may be of Windows, too: PDBs have paths that begin anywhere.
const char *str_last_part(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *last = slash ? slash + 1 : path;

	if (!slash || str_is_windows_path(path))
		slash = strrchr(last, '\\');
	return slash >= last ? slash + 1 : last;
}

const char *str_last_part_of_any(const char *path)
{
	const char *last = path;

	ASSERT(path != NULL);
	for (const char *at = path; *at; at++)
		if (*at == '\\' || *at == '/' || (*at == ':' && at == path + 1))
			last = at + 1;
	return last;
}

const char *str_ending(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot ? dot + 1 : "";
}

bool str_ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return length >= end_length && strcmp(text + length - end_length, end) == 0;
}
