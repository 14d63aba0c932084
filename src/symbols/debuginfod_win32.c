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

char *debuginfod_fetch(struct debuginfod *debuginfod, enum debuginfod_kind kind,
		       const uint8_t *build_id, size_t length, struct err *err)
{
	(void)debuginfod, (void)kind, (void)build_id, (void)length;
	err_set(err, ERR_USAGE, "debuginfod is not asked on Windows");
	return NULL;
}
