// output: creates the file that a recording goes to, and never overwrites one unasked.
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdint.h>

// What the file is to be. All texts are borrowed.
struct output_options {
	const char *pattern; // as pattern.h describes; NULL: tidemark.PROGRAM.PID.tide
	const char *program; // file name of the program, without folders
	uint64_t pid;        // of the program
	bool force;          // an existing file may be overwritten
	const char *started; // the program's path, if it has our standard streams; else NULL
	char *const *args;   // of a started program: its name, and what it is given
};

// What output_create did, so that it can be undone. One of output_begun and output_undo has to
// follow.
struct output_made {
	bool created;     // it was not there before
	struct str aside; // what was there before has this name meanwhile; empty: nothing has
};

// Create it, readable and writable by its owner alone (it holds the program's arguments), or, where
// a file is replaced, by who could read that. `*path` receives its name. Without a pattern, or with
// %n in it, a name that is taken is followed by the next one; else a file that is there is an
// error, unless forced: then it is kept aside, as PATH.PID.old, until output_begun() or
// output_undo(). A device, a link and a file of several names are written to as they are. What may
// have to be waited for, a pipe or a terminal, is refused: the program would wait with it.
// What a started program is, is given as an argument, reads or writes by its standard streams is
// refused in any case, and so is what another recording writes. Returns a close-on-exec descriptor,
// or -1.
int output_create(const struct output_options *options, struct str *path, struct output_made *made,
		  struct err *err);

void output_begun(struct output_made *made);                  // what was there before goes
void output_undo(struct output_made *made, const char *path); // all is as it was before

// Of the system. Create one file, or with `force` take the one that is there and empty it: a
// close-on-exec descriptor, or -1 with errno. *created: it was not there.
int output_open(const char *path, bool force, bool *created);
// Whether a file of one name is there, and no link to it: it may be set aside and replaced.
bool output_is_plain(const char *path);

// What the file is to a program at `program` that has our standard streams and the arguments `args`
// (NULL: not known), in words: a trace that is written there would destroy it, or be mixed with
// what the program writes. NULL: nothing.
const char *output_is_its(const char *path, const char *program, char *const *args);
// What the file is, in words, if a write to it may have to wait for another program or a person to
// read it: the program whose calls are recorded would wait with it. NULL: it is none of these.
const char *output_is_waited_for(const char *path);
// The host's name into `host`, which is left as it is where that cannot be had.
void output_host(char *host, size_t room);
