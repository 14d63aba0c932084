// shelf: files in the folder of a trace's index that keep what a pass over all events has found.
//
//     shelf_find            where they are; or that nothing is to be kept
//       shelf_open            what was kept is read (index_in_take …)
//       shelf_new             or found, and written (index_out_put …), shelf_end
//     shelf_fini
//
// Such a file is a cache as the index is: of another trace, version or layout, or damaged, it is
// not used, and whoever asks makes the pass. Kept is only what is of everything, without filters,
// and only where the trace is sound: of one that is still written it is another in a second.
#pragma once

#include "engine/index/index.h"
#include "engine/index/index_io.h"
#include "engine/window.h"

// What a file begins with and must agree with. The sizes are of the structs that are written as
// they are in memory, so that a program with another layout takes it for another version.
struct shelf_stamp {
	char magic[8];
	uint64_t version;
	uint64_t sizes[4];
	struct index_identity identity; // of the trace; set by shelf_open and shelf_new
};

struct shelf {
	char *path;  // of the folder, owned; NULL: nothing is kept, and all that follows is 0
	bool cached; // it is in the cache directory
	bool make;   // it may be made for the file; else the file is kept only where it is there
	bool rebuild;
	const char *trace_path;
	struct index_identity identity;
	int directory; // while a file is written
};

// The trace's name (NULL: nothing is kept) and the query (NULL: everything) are borrowed until
// shelf_fini. `reader` was scanned.
void shelf_find(struct shelf *shelf, const struct reader *reader, const char *trace_path,
		const struct query *query, const struct window_options *window);
void shelf_fini(struct shelf *shelf); // accepts { 0 }

// True: the file `name` is there and is of this trace; `in` is behind its stamp, and to be closed.
bool shelf_open(const struct shelf *shelf, const char *name, struct shelf_stamp *stamp,
		struct index_in *in);

// The file, with its stamp. NULL: it cannot be kept. Failures are no harm: the next question makes
// the pass again.
struct index_out *shelf_new(struct shelf *shelf, const char *name, struct shelf_stamp *stamp);
void shelf_end(struct shelf *shelf, struct index_out *out);
