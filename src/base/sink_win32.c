// The C library that every Windows has writes under its lock only.
#include "base/sink.h"

#include <stdlib.h>
#include <windows.h>

enum { EXIT_UNWRITTEN = 3 };

bool sink_put(FILE *file, const void *bytes, size_t length)
{
	return fwrite(bytes, 1, length, file) == length;
}

void sink_failed(const FILE *file)
{
	unsigned long code = _doserrno;

	if (file == stdout && (code == ERROR_NO_DATA || code == ERROR_BROKEN_PIPE ||
			       code == ERROR_PIPE_NOT_CONNECTED))
		exit(EXIT_UNWRITTEN);
}
