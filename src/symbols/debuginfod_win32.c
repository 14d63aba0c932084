// On Windows a user has a symbol server (the symbol path, symbol_path.h) and not debuginfod, whose
// servers have ELF files. debuginfod_new says so and makes nothing, so that nothing can be fetched.
#include "symbols/debuginfod.h"

struct debuginfod *debuginfod_new(struct err *err)
{
	err_set(err, ERR_USAGE, "debuginfod is not asked on Windows");
	return NULL;
}

void debuginfod_free(struct debuginfod *)
{
}
