// An error is kept, the first one, and nothing is written after it: who writes a report of a
// thousand lines asks once, at the end.
#include "base/sink.h"

#include "base/mem.h"

#include <errno.h>
#include <string.h>

struct sink sink_to_file(FILE *file)
{
	ASSERT(file != NULL);
	return (struct sink){ .file = file };
}

struct sink sink_to_str(struct str *str)
{
	ASSERT(str != NULL);
	return (struct sink){ .str = str };
}

// A write that fails without an errno is an I/O error.
static void failed(struct sink *sink)
{
	ASSERT(!sink->error); // the first one counts
	if (sink->file)
		sink_failed(sink->file);
	sink->error = errno ? errno : EIO;
}

// Of all sinks: what went to standard output cannot be taken back.
static bool has_output;

bool sink_has_output(void)
{
	return has_output;
}

// Memory cannot fail: it ends the program instead (mem.h).
void sink_write(struct sink *sink, const void *bytes, size_t length)
{
	if (sink->error || length == 0)
		return;
	if (sink->str) {
		str_add_bytes(sink->str, bytes, length);
		return;
	}
	errno = 0;
	has_output |= sink->file == stdout;
	if (!sink_put(sink->file, bytes, length))
		failed(sink);
}

void sink_text(struct sink *sink, const char *text)
{
	sink_write(sink, text, strlen(text));
}

void sink_format(struct sink *sink, const char *format, ...)
{
	va_list args;

	if (sink->error)
		return;
	va_start(args, format);
	errno = 0;
	has_output |= sink->file == stdout;
	if (sink->str)
		str_vformat(sink->str, format, args);
	else if (vfprintf(sink->file, format, args) < 0)
		failed(sink);
	va_end(args);
}

bool sink_entity(struct sink *sink, char c)
{
	const char *entity = c == '<'   ? "&lt;"
			     : c == '>' ? "&gt;"
			     : c == '&' ? "&amp;"
			     : c == '"' ? "&quot;"
					: NULL;

	if (entity)
		sink_text(sink, entity);
	return entity != NULL;
}

// What is still in the stream's buffer is written first, so a full disk is noticed here at the
// latest.
bool sink_ok(struct sink *sink, struct err *err)
{
	errno = 0;
	if (!sink->error && sink->file && (fflush(sink->file) != 0 || ferror(sink->file)))
		failed(sink);
	if (sink->error)
		return err_errno(err, sink->error, "cannot write %s",
				 sink->name             ? sink->name
				 : sink->file == stdout ? "standard output"
							: "the output");
	return true;
}
