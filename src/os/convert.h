// convert: pictures of one kind into another, by the program that does it on this system:
// rsvg-convert, of librsvg.
#pragma once

#include "base/err.h"

#include <stddef.h>

// Whether that program is there. ERR_IO says what is missing for `format` ("png", "pdf").
bool convert_check(const char *format, struct err *err);

// Write an SVG picture to the descriptor `fd`, in `format`.
bool convert_svg(const void *svg, size_t size, const char *format, int fd, struct err *err);
