// index: the index of a trace on disk, opened.
//
// `FILE.tide-index` is a directory of files; index_store.h says what is in them. It is a cache:
// it may be removed at any time, and is rewritten where it is missing, unfinished, damaged, of
// another version or of another trace. What it belongs to is known by the recording's id, and a
// checksum over the headers of its blocks of events and definitions, which have the checksums of
// what is in them. Symbols that are bundled with a trace later do not matter.
//
// Untrusted input, as a trace is: pages have checksums, `head` has one, and no length or number is
// believed before it was held against what is there.
#pragma once

#include "engine/index/cells.h"
#include "engine/index/index_store.h"
#include "engine/index/plain.h"
#include "engine/window.h"

// Which trace.
struct index_identity {
	uint8_t recording_id[16];
	uint64_t duration_ns; // as the trace's end has it; UINT64_MAX: there is none
	uint32_t headers_crc;
	uint32_t blocks;
};

// Of all of it, or (`end` is not UINT64_MAX) of the blocks before an offset. False if the file
// cannot be read.
bool index_identify(struct index_identity *identity, const char *trace_path,
		    const struct reader *reader, uint64_t end, struct err *err);

// The end of a process.
struct index_exit {
	uint64_t step; // WINDOW_NEVER: it did not
	uint64_t time_ns;
	uint64_t kind; // enum window_end
};

// Steps [from, to): blocks that end with their heap.
struct index_range {
	uint64_t from, to;
};

// A beginning of a block of the trace, in its order: from there it can be read again.
struct index_places {
	struct reader_place *list;
	size_t count, capacity;
};

struct index {
	struct index_identity identity;
	struct index_shape shape;
	struct index_files files;
	struct cells cells;
	uint64_t steps_end, duration_ns; // the edge after the last step; as window_facts has it
	uint64_t calls;                  // window_facts.calls
	uint64_t orphans, inherited, lost;
	struct heap_amount peak;
	uint64_t peak_edge;       // after the step that first reached it
	uint64_t never_count;     // blocks that no call ended
	struct index_exit *exits; // by process
	size_t exits_count;
	struct index_range *destroys; // rising
	size_t destroys_count;
	// First halves of reallocs that changed nothing, and where they were found to: the trace
	// itself has the block gone in between.
	struct index_range *undone;
	size_t undone_count;
	struct index_places places;
	// The trace has what the index says in another way than its events, one by one, do:
	// damage, events after the end of their process, heaps of other processes. Moments are
	// then asked of the trace (index_moment.h).
	bool odd;
	// What its build found wrong with the trace: whoever opens it reads no event that would
	// show it.
	struct reader_damage damage;
	struct window_mark *marks; // names are owned
	size_t marks_count;
	struct plain vm;             // the layer of virtual memory
	uint64_t head_bytes;         // of the file `head`
	int directory;               // -1: not open
	struct index_tables *tables; // of questions; NULL while it is built
	uint64_t memory_bytes;       // that a question may take; 0: its default
	_Atomic bool sorted_never;   // index_sorted: what it keeps could not be made
	// Asked wherever many blocks are gone through: true stops, with ERR_STOPPED (NULL: no).
	bool (*stop)(void *context);
	void *context; // borrowed
};

// What a build is asked for.
struct index_wish {
	struct index_shape shape;
	uint64_t memory_bytes;
	uint64_t memory_most; // that stacks and kinds of allocations may make it; not less
	enum progress_mode progress;
	bool (*stop)(void *context);
	void (*say)(void *context, const char *text);
	// For a trace that is being written: asked where it ends so far. Waits a while, and returns
	// false once nothing will be added any more. NULL: the trace is whole.
	bool (*more)(void *context);
	void *context;
	bool anew; // whatever an earlier build left
};

// What sizes are best for an amount of memory.
struct index_shape index_shape_for(uint64_t memory_bytes);

// So small that a few thousand steps take every path: what TIDEMARK_INDEX=tiny asks for.
extern const struct index_shape index_shape_tiny;

// How much memory is enough to ask about a trace of so many stacks, of which some allocate (sites),
// and kinds of allocations (pairs of site and size), with what a command keeps of its rows: as
// measured on recordings of compilers and on made ones of up to 700,000 stacks.
uint64_t index_memory_need(uint64_t stacks, uint64_t sites, bool one_process, uint64_t kinds);

// ERR_LIMIT: it is more than there is, and how much it is.
bool index_memory_refuse(uint64_t memory_bytes, uint64_t need_bytes, uint64_t stacks,
			 uint64_t kinds, struct err *err);

// Write the index of a trace into the directory at `path`, which is made where it is missing. Goes
// on where an earlier build of this trace was stopped or killed. What it is of, then, is what was
// read: a trace that is being written may have more by now.
bool index_build(const char *path, const char *trace_path, struct reader *reader,
		 const struct index_wish *wish, struct index_identity *identity, struct err *err);

// Open it. False, ERR_FORMAT: there is none for this trace, or it cannot be used.
bool index_open(struct index *index, const char *path, const struct index_identity *identity,
		const struct reader *reader, struct err *err);
void index_close(struct index *index); // accepts { 0 }, if directory is -1

// Whether one of this trace is there, by its beginning: index_open may find that it is damaged.
bool index_is_of(const char *path, const struct index_identity *identity);

// It is not to be used again: the next index_open finds none.
void index_forget(struct index *index);

// Bytes on disk.
uint64_t index_bytes(const struct index *index);

// The file `head`, which says what all others are; index_build writes it last.
bool index_head_write(const struct index *index, struct err *err);

// Parts of it that the state of an unfinished build has too. What is taken is held against nothing:
// ask the index_in whether it went well.
void index_head_put_tables(struct index_out *out, const struct index_files *files);
void index_head_put_cells(struct index_out *out, const struct cells *cells);
void index_head_put_marks(struct index_out *out, const struct index *index);
void index_head_put_moments(struct index_out *out, const struct index *index);
void index_head_take_moments(struct index_in *in, struct index *index);
void index_head_take_tables(struct index_in *in, struct index_files *files);
void index_head_take_marks(struct index_in *in, struct index *index);
void index_head_take_cells(struct index_in *in, const struct reader *reader, struct cells *cells,
			   bool (*add_site)(struct cells *cells, uint32_t id,
					    const struct cells_site *site),
			   bool (*add_cell)(struct cells *cells, uint32_t id,
					    const struct cells_cell *cell));
