// Any bytes as the recording of another program. What is imported must be a trace that can be read
// to its end; what is refused has a reason.
#include "base/mem.h"
#include "import/import.h"
#include "trace/reader.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_back(int fd)
{
	struct err err = { 0 };
	struct trace_event event;
	struct trace_note note;
	struct reader *reader;
	char path[40];

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	reader = reader_open(path, &err);
	if (!reader)
		abort();
	while (reader_next(reader, &event, &note) != READER_END)
		;
	if (!reader_sound(reader))
		abort();
	reader_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("import", 0);
	FILE *input = size ? fmemopen((void *)data, size, "rb") : fopen("/dev/null", "rb");
	const struct import_input inputs[] = { { input, "input" } };
	struct import_options options = { .inputs = inputs, .inputs_count = 1 };
	struct import_result result;
	struct err err = { 0 };

	if (!input)
		abort();
	if (import_trace(&options, fd, &result, &err))
		read_back(fd);
	else if (err.text[0] == '\0')
		abort(); // a refusal without a reason
	mem_free(result.remarks);
	fclose(input);
	close(fd);
	return 0;
}
