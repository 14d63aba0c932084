// absent: what Linux lacks. A name that is not here is one that there is, or a slip of the
// keyboard: the caller tells which.
#include "cli/absent.h"

#include <string.h>

const char absent_system[] = "Linux";
const char absent_gnuplot[] = "try: apt install gnuplot-nox";

const char *absent_why(const char *name)
{
	static const char *const known[][2] = {
		{ "watch", "it is a key of Windows' registry; use tidemark record, or LD_PRELOAD" },
	};

	for (unsigned i = 0; i < sizeof known / sizeof *known; i++)
		if (strcmp(name, known[i][0]) == 0)
			return known[i][1];
	return NULL;
}
