// fresh: a file that appears whole under its name, or not at all.
//
// It is written under another name in the same directory and renamed at the end. So a failure
// leaves nothing behind, and what was there before stays in peace until then. A device or a pipe
// that is under the name is written to as it is.
#pragma once

#include "base/err.h"
#include "base/str.h"

struct fresh {
	int fd; // ours; -1: not open
	bool replace;
	struct str path, temporary; // no temporary name: written directly
};

// A file that is read: what is written from here on is never written over it, by whatever name it
// is called. Borrowed. No more than a few thousand; a path that leads nowhere is none.
void fresh_spare(const char *path);

// Whether it will be possible, as far as one can see: before the work that makes what is to be
// written. Nothing is touched.
bool fresh_check(const char *path, bool replace, struct err *err);

// Refuses a name that is taken, unless `replace` is set, and with ERR_USAGE what is to be spared.
// Who may read what is replaced may read it.
bool fresh_open(struct fresh *fresh, const char *path, bool replace, struct err *err);

// The same of what is made of the file `of`: who may read that, and nobody else, may read it.
bool fresh_open_of(struct fresh *fresh, const char *path, bool replace, const char *of,
		   struct err *err);

// Give it its name.
bool fresh_keep(struct fresh *fresh, struct err *err);

// After a failure, what could not be written is given its name. Always false.
bool fresh_name_failure(const struct fresh *fresh, struct err *err);

// Throw it away, unless it was kept. Accepts what fresh_open has refused.
void fresh_close(struct fresh *fresh);
