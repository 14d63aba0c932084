// The C library that every Windows has writes under its lock only.
#include "base/sink.h"

bool sink_put(FILE *file, const void *bytes, size_t length)
{
	return fwrite(bytes, 1, length, file) == length;
}
