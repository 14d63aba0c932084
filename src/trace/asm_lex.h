// asm_lex: lines of the text form as words.
//
// Words are separated by blanks. A part of a word may be in quotes, where \" \\ \n \t and \xhh
// mean what they mean in C. A ; that begins a word begins a comment. A word knows where it
// is, for messages, and where its first = and its last : are, if they are not in quotes.
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct asm_word {
	char *text;    // unquoted, NUL-terminated; in the lexer's memory until the next line
	size_t column; // from 1
	bool quoted;   // begins with a quote
	char *equals;  // the = in text, or NULL
	char *colon;   // the : in text, or NULL
};

// `{ .at = text, .end = text + length }` is before the first line.
// The text is borrowed and not changed. Words are copied to `text`, which each line reuses.
struct asm_lex {
	const char *at, *end;
	size_t line; // of the words, from 1
	struct asm_word *words;
	size_t count, capacity;
	char *text; // the words' memory
	size_t text_capacity;
};

void asm_lex_fini(struct asm_lex *lex);

// The words of the next line that has any. False at the end of the text (err->kind is ERR_NONE)
// or on a mistake.
bool asm_lex_line(struct asm_lex *lex, struct err *err);

// Set *err to "line L, column C: …", of a word or (NULL) of the end of the line. Always false.
bool asm_lex_fail(const struct asm_lex *lex, const struct asm_word *word, struct err *err,
		  const char *format, ...) __attribute__((format(printf, 4, 5)));

// A whole unsigned number, decimal or 0x…, of all of `text`; up to `end` where that is not NULL.
bool asm_lex_number(const char *text, const char *end, uint64_t *value);
