// Any text as the text form of a trace. What assembles must dump to a text that assembles, and
// that text must be the same when it is dumped again.
#include "trace/asm.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void dump(int fd, struct str *text)
{
	struct asm_options options = asm_dump_all();
	struct sink sink = sink_to_str(text);
	struct err err = { 0 };
	struct reader *reader;
	char path[40];

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	reader = reader_open(path, &err);
	if (!reader || !asm_dump(reader, &options, &sink, &err))
		abort();
	reader_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int first = memfd_create("first", 0), second = memfd_create("second", 0);
	struct str once = { 0 }, twice = { 0 };
	struct err err = { 0 };

	if (asm_read((const char *)data, size, first, &err)) {
		dump(first, &once);
		if (!asm_read(once.text, once.length, second, &err))
			abort();
		dump(second, &twice);
		if (once.length != twice.length || memcmp(once.text, twice.text, once.length) != 0)
			abort();
	} else if (err.text[0] == '\0') {
		abort(); // a refusal without a reason
	}
	STR_FINI(&once, &twice);
	close(first);
	close(second);
	return 0;
}
