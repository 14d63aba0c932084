// expression: extended regular expressions, as grep -E takes them, and whether a text matches.
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct expression;

// NULL: it is none; `why` (of `size` bytes) says so.
struct expression *expression_new(const char *text, char *why, size_t size);
void expression_free(struct expression *expression); // NULL is allowed

// Is it found anywhere in the text?
bool expression_matches(const struct expression *expression, const char *text);
