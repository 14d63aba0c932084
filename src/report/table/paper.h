// paper: plain text with a little emphasis, for a terminal of known width.
//
// Colour is never needed to understand: it is off for pipes, NO_COLOR and --color=never, and the
// words stay the same.
#pragma once

#include "base/sink.h"

enum paper_style {
	PAPER_PLAIN,
	PAPER_BOLD,    // what the eye should find
	PAPER_DIM,     // what it may skip
	PAPER_WARNING, // what it must not
};

// Where to write, and how wide it is. Copied freely: it owns nothing.
struct paper {
	struct sink *sink; // borrowed
	unsigned width;    // columns
	bool colour;
};

// What makes a word of "block": "", or "s".
static inline const char *paper_plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

// Of nothing it is 0, not a division.
static inline double paper_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

// Text as it is, in a style.
void paper_text(struct paper *paper, enum paper_style style, const char *text);
void paper_format(struct paper *paper, enum paper_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

// `text` in a field of `columns`: at its right end if `right`, else at its left and padded. A text
// that is too long keeps its length.
void paper_field(struct paper *paper, enum paper_style style, const char *text, unsigned columns,
		 bool right);

// "label: text", broken at blanks so that no line passes the right margin; further lines begin
// under the first. Control characters become '?'.
void paper_paragraph(struct paper *paper, enum paper_style style, const char *label,
		     const char *text);

// "  … 12 more (-n 0 shows all)": of `count` rows that were left out. Nothing of 0.
void paper_more(struct paper *paper, uint64_t count);

// Text from a file that nobody vouches for, with control characters as '?' and bytes that are not
// UTF-8 as U+FFFD, cut to `columns`.
void paper_foreign(struct paper *paper, enum paper_style style, const char *text, unsigned columns);
