// pattern: the name of an output file, with a few words filled in.
//
//     %e  the program's name          %t  seconds since 1970
//     %p  its process id              %h  this host's name
//     %n  a number, from 0, that makes the name new
//     %%  a percent sign
//
// Names of programs come from anywhere: a slash or a control character in one becomes '_', and
// only its first 100 bytes are used.
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

struct pattern_words {
	const char *program; // %e
	const char *host;    // %h
	uint64_t pid;        // %p
	uint64_t time_s;     // %t
	uint64_t number;     // %n
};

// Add the name to `out`. `*numbered` (may be NULL): %n is in it. False: a letter we do not
// know, or a % at the end.
bool pattern_expand(struct str *out, const char *pattern, const struct pattern_words *words,
		    bool *numbered, struct err *err);
