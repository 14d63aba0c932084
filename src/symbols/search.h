// search: where names may be looked for, beside the files that were recorded.
#pragma once

#include "symbols/debuginfod.h"
#include "symbols/remarks.h"
#include "symbols/symbol_path.h"

// All of it is borrowed, and belongs to a `symbols` (symbols.c). What is NULL is not looked at;
// only `remarks` is always there.
struct search {
	const char *directories;               // ':'-separated, before the usual ones; NULL: none
	const struct symbol_path *symbol_path; // for Windows modules; NULL: none
	struct debuginfod *debuginfod;         // NULL: not asked
	struct remarks *remarks;               // gets what was found but does not fit
};
