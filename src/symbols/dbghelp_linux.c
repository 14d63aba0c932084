// dbghelp.dll is a part of Windows: here there is nothing to ask, and every question gets the
// answer "not known", as of an image that the library knows nothing of.
#include "symbols/dbghelp.h"

#include <stddef.h>

struct dbghelp *dbghelp_open(const char *path, uint32_t image_bytes, const struct search *search)
{
	(void)path, (void)image_bytes, (void)search;
	return NULL;
}

void dbghelp_close(struct dbghelp *)
{
}

bool dbghelp_find(struct dbghelp *help, uint32_t rva, struct places *places)
{
	(void)help, (void)rva, (void)places;
	return false;
}
