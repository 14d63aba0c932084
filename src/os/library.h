// library: a shared library that is loaded while we run, if it is there.
#pragma once

#include "base/str.h"

struct library;

// By path, or by a name that the system looks for; it stays. NULL: why is appended.
struct library *library_open(const char *name, struct str *why);

// "libNAME.so", or as such a file is called here. Append.
void library_name(const char *name, struct str *file);

// The address of a function; NULL: it has none of that name.
void *library_find(struct library *library, const char *name);
