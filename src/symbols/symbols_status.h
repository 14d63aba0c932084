// symbols_status: what was found of one module's files, and what is missing.
#pragma once

// For `tidemark symbols`. All texts are borrowed from the file that was asked (symbols_file.h).
// `names` is one of "bundle", "dwarf", "pdb", "dbghelp", "symtab" (all functions), "go"
// (those of Go), "exports" (what others may call, and no more).
struct symbols_status {
	const char *file;          // path of the file itself; NULL: not found
	const char *debug;         // path of its separate debug information; NULL: none
	const char *names;         // what names come from, the best of it: "dwarf"; NULL: nothing
	const char *missing_file;  // what to look for, as its path in a store; NULL: nothing
	const char *missing_debug; // the same of debug information
};
