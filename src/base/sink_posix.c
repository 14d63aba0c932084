// SIGPIPE is left as it is by default (os/terminal.h), so a reader who leaves ends us as it ends
// cat, and what fails here is a full disk.
#include "base/sink.h"

bool sink_put(FILE *file, const void *bytes, size_t length)
{
	return fwrite_unlocked(bytes, 1, length, file) == length;
}

void sink_failed(const FILE *file)
{
	(void)file; // SIGPIPE ends us
}
