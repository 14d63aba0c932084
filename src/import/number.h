// number: numbers as other programs write them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// All of the text is a number: decimal, or hexadecimal with 0x. False: it is not, or is too large.
// There is no sign and no blank; *number is set only where it is one.
bool number_parse(const char *text, size_t length, uint64_t *number);

// Hexadecimal digits, with or without 0x.
bool number_parse_hex(const char *text, size_t length, uint64_t *number);

// A decimal number of units with `scale` (a power of ten) nanoseconds each; with a fraction, of
// which what is less than a nanosecond is left out.
bool number_parse_time(const char *text, uint64_t scale, uint64_t *time_ns);
