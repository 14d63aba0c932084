// convert: pictures of one kind into another, by the program that does it on this system:
// rsvg-convert, of librsvg.
#ifndef OS_CONVERT_H
#define OS_CONVERT_H

#include "base/err.h"

#include <stddef.h>

// Make a file of `format` ("png", "pdf") at `path` of an SVG picture. ERR_IO says what is missing,
// if the program is not there.
bool convert_svg(const void *svg, size_t size, const char *format, const char *path,
		 struct err *err);

#endif
