// program: finds the file that a program's name stands for, as the shell would.
#pragma once

#include "base/err.h"
#include "base/str.h"

// What came of it, with the exit code that a shell has for it.
enum program_found {
	PROGRAM_FOUND,   // a file that may be executed
	PROGRAM_MISSING, // no such file: 127
	PROGRAM_REFUSED, // it is there, but cannot be executed: 126
};

// A name with a slash stands for itself; others are looked for in `search` (the value of PATH;
// NULL: the system's default). `*path` receives the file in place of what it had; *err says why
// not.
enum program_found program_find(const char *name, const char *search, struct str *path,
				struct err *err);
