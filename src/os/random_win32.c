// RtlGenRandom: the call that Windows' own rand_s is made of; it needs no provider to be opened.
#include "os/random.h"

#include <windows.h>

#include <ntsecapi.h>

bool random_bytes(void *bytes, size_t size, struct err *err)
{
	return RtlGenRandom(bytes, (ULONG)size) || err_set(err, ERR_IO, "cannot get random bytes");
}
