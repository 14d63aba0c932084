// expression: extended regular expressions, as grep -E takes them, and whether a text matches.
//
// For example "^std::" is found in texts that begin so, and "alloc" in all that have it anywhere;
// case matters. One that was made may be asked by several threads at once.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct expression;

// NULL: it is none; `why` (of `size` bytes) says so.
// `text` is not needed afterwards.
struct expression *expression_new(const char *text, char *why, size_t size);
void expression_free(struct expression *expression); // NULL is allowed

// Is it found anywhere in the text?
bool expression_matches(const struct expression *expression, const char *text);
