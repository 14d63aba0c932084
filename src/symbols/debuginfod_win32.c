#include "symbols/debuginfod.h"

struct debuginfod *debuginfod_new(struct err *err)
{
	err_set(err, ERR_USAGE, "debuginfod is not asked on Windows");
	return NULL;
}

void debuginfod_free(struct debuginfod *debuginfod)
{
	(void)debuginfod;
}
