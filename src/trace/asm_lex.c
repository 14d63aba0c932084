// For example the line
//
//     thread t p tid=4242 "a b"  ; the cook
//
// is five words: thread, t, p, tid=4242 whose `equals` is after "tid", and a b, which is quoted. A
// word ends at a blank outside of quotes, so `exe="/bin/x y"` is one word.
#include "trace/asm_lex.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void asm_lex_fini(struct asm_lex *lex)
{
	MEM_FREE(lex->words, lex->text);
	*lex = (struct asm_lex){ 0 };
}

// At the end of a line the column is that of its last word, which what is missing should follow.
bool asm_lex_fail(const struct asm_lex *lex, const struct asm_word *word, struct err *err,
		  const char *format, ...)
{
	size_t column = 1;
	char text[300];
	va_list args;

	if (word)
		column = word->column;
	else if (lex->count > 0)
		column = lex->words[lex->count - 1].column;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	return err_set(err, ERR_FORMAT, "line %zu, column %zu: %s", lex->line, column, text);
}

// The character after a backslash at *at, which is moved behind it. -1: no such escape, or the line
// ends inside of it.
static int escape(const char **at, const char *end)
{
	const char *c = *at;
	int high, low;

	if (c >= end)
		return -1;
	*at = c + 1;
	switch (*c) {
	case '"':
	case '\\':
		return *c;
	case 'n':
		return '\n';
	case 't':
		return '\t';
	case 'x':
		if (end - c < 3)
			return -1;
		high = str_hex_digit(c[1]);
		low = str_hex_digit(c[2]);
		*at = c + 3;
		// A NUL would end the text.
		return high < 0 || low < 0 || high + low == 0 ? -1 : high << 4 | low;
	default:
		return -1;
	}
}

// One word from *at, which is moved behind it, to `out`, which is moved behind its NUL. A NUL in a
// file that claims to be text is a mistake, since words end at their NUL.
static bool take_word(struct asm_lex *lex, const char **at, const char *end, char **out,
		      struct asm_word *word, struct err *err)
{
	bool quoted = false;

	word->text = *out;
	word->quoted = **at == '"';
	while (*at < end && (quoted || (**at != ' ' && **at != '\t'))) {
		char c = *(*at)++;
		int escaped;

		if (c == '"') {
			quoted = !quoted;
			continue;
		}
		if (quoted && c == '\\') {
			escaped = escape(at, end);
			if (escaped < 0)
				return asm_lex_fail(lex, word, err, "no such escape in quotes");
			c = (char)escaped;
		} else if (c == '\0') {
			return asm_lex_fail(lex, word, err, "a NUL byte in the text");
		} else if (!quoted && c == '=' && !word->equals) {
			word->equals = *out;
		} else if (!quoted && c == ':') {
			word->colon = *out;
		}
		*(*out)++ = c;
	}
	ASSERT(*out < lex->text + lex->text_capacity);
	*(*out)++ = '\0';
	if (quoted)
		return asm_lex_fail(lex, word, err, "a quote that does not end on this line");
	return true;
}

// The words of the line [at, end), up to a ; that begins a comment. Words and their NULs need less
// than twice the line: between two words there is a blank.
static bool split(struct asm_lex *lex, const char *at, const char *end, struct err *err)
{
	const char *begin = at;
	char *out;

	lex->text = mem_grow(lex->text, &lex->text_capacity, 2 * (size_t)(end - at) + 2, 1);
	out = lex->text;
	lex->count = 0;
	for (;;) {
		struct asm_word *word;

		while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
			at++;
		if (at == end || *at == ';')
			return true;
		word = MEM_ADD(lex->words, lex->count, lex->capacity);
		*word = (struct asm_word){ .column = (size_t)(at - begin) + 1 };
		if (!take_word(lex, &at, end, &out, word, err))
			return false;
	}
}

// Lines that end with CR LF are as those that end with LF, for a text that was edited on Windows.
bool asm_lex_line(struct asm_lex *lex, struct err *err)
{
	err->kind = ERR_NONE;
	while (lex->at < lex->end) {
		const char *line = lex->at;
		const char *end = memchr(line, '\n', (size_t)(lex->end - line));

		if (!end)
			end = lex->end;
		lex->at = end < lex->end ? end + 1 : end;
		lex->line++;
		if (end > line && end[-1] == '\r')
			end--;
		if (!split(lex, line, end, err))
			return false;
		if (lex->count > 0)
			return true;
	}
	return false;
}

// No sign, no blank, no other base: what dump writes is read, and nothing is read that could be a
// typing error. False also for a number of more than 64 bits.
bool asm_lex_number(const char *text, const char *end, uint64_t *value)
{
	uint64_t base = 10, sum = 0;

	if (!end)
		end = text + strlen(text);
	if (end - text > 2 && text[0] == '0' && text[1] == 'x') {
		base = 16;
		text += 2;
	}
	if (text >= end)
		return false;
	for (; text < end; text++) {
		int digit = str_hex_digit(*text);

		if (digit < 0 || (uint64_t)digit >= base ||
		    __builtin_mul_overflow(sum, base, &sum) ||
		    __builtin_add_overflow(sum, (uint64_t)digit, &sum))
			return false;
	}
	*value = sum;
	return true;
}
