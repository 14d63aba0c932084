#include "base/sink.h"

bool sink_put(FILE *file, const void *bytes, size_t length)
{
	return fwrite_unlocked(bytes, 1, length, file) == length;
}
