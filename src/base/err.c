// For example, err_errno(&err, ENOENT, "cannot open %s", "a.tide") and then err_wrap(&err,
// "report"): "report: cannot open a.tide: No such file or directory".
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// Through a buffer of its own, because an argument may point into err->text.
static void vset(struct err *err, enum err_kind kind, const char *format, va_list args)
{
	char text[sizeof err->text];

	vsnprintf(text, sizeof text, format, args);
	memcpy(err->text, text, sizeof text);
	err->kind = kind;
}

// Put ": tail" after the text, as far as there is room.
static void append(struct err *err, const char *tail)
{
	size_t length = strlen(err->text);

	snprintf(err->text + length, sizeof err->text - length, ": %s", tail);
}

bool err_set(struct err *err, enum err_kind kind, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vset(err, kind, format, args);
	va_end(args);
	return false;
}

bool err_errno(struct err *err, int number, const char *format, ...)
{
	char buffer[128];
	va_list args;

	va_start(args, format);
	vset(err, ERR_IO, format, args);
	va_end(args);
	append(err, err_text(number, buffer, sizeof buffer));
	return false;
}

// The text so far is copied first, since the new one is written over it.
bool err_wrap(struct err *err, const char *format, ...)
{
	char inner[sizeof err->text];
	va_list args;

	memcpy(inner, err->text, sizeof inner);
	va_start(args, format);
	vset(err, err->kind, format, args);
	va_end(args);
	append(err, inner);
	return false;
}
