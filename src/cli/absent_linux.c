// absent: what Linux lacks. A name that is not here is one that there is, or a slip of the
// keyboard: the caller tells which.
#include "cli/absent.h"

#include <string.h>

const char absent_system[] = "Linux";
const char absent_quote = '\'';
const char absent_gnuplot[] = "try: apt install gnuplot-nox";
const char absent_first_examples[] =
	"  tidemark record ./server --port 8080      # output and exit code stay its own\n"
	"  tidemark report tidemark.server.4242.tide # peak, live at exit, hot sites\n"
	"  tidemark record -o make.tide -- make      # make, and all that it starts\n";
const char absent_record_examples[] =
	"  tidemark record ./server --port 8080\n"
	"  tidemark record -o build.tide -- make -j4      # and all that make starts\n"
	"  tidemark record -p 4242 --duration 30s\n"
	"  tidemark record -o '%e.%t.tide' --free-stacks python3 job.py\n";
const char absent_record_notes[] =
	"Environment\n"
	"  TIDEMARK_LIBRARY  path of libtidemark.so, if it is not where it was installed\n"
	"\nSee also\n"
	"  tidemark report, tidemark info, tidemark-record(1), tidemark-programs(7)\n";

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
