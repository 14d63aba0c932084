// defs: definitions and notes, as they are in DEFS blocks and as tables in memory
// (docs/format.md, section 5).
//
// A DEFS payload is a row of records: kind, length, content. Ids are given by the record that
// defines them, so that a block that was lost leaves a gap and not a shift. A gap is filled with
// entries that say "not known", so that an id below a table's count always has an entry.
//
// For example, a process with one thread is the two records
//
//     02 ..  00 00 d2 24 00 01 40 …     DEFS_PROCESS: id 0, no parent, pid 4690, …
//     03 05  00 00 d2 24 00             DEFS_THREAD, 5 bytes: id 0, of process 0, tid 4690, and
//                                       no name
//
// Who meets a kind that it does not know steps over it by its length, and counts it (`unknown`).
#pragma once

#include "trace/bytes.h"
#include "trace/trace.h"

// Limits of what is written, and of what is believed when it is read. A text beyond them is cut.
enum {
	DEFS_TEXT_MAX = 64 << 10, // bytes of one text
	DEFS_ARGS_MAX = 4 << 20,  // bytes of all arguments of one process
	DEFS_RUN_MAX = 1 << 16,   // frames or stacks in one record of ours
	DEFS_GAP_MAX = 1 << 20,   // entries that may be filled in over a whole trace
	DEFS_NAMES_MAX = 256,     // functions at one frame
};

// Numbers are part of the format.
enum defs_kind {
	DEFS_INFO = 1, // the recording itself: the first one counts
	DEFS_PROCESS = 2,
	DEFS_THREAD = 3,
	DEFS_MODULE = 4,
	DEFS_FRAMES = 5, // as many as have ids one after the other; stacks too
	DEFS_STACKS = 6,
	DEFS_NOTE = 7, // has a place in the order, and is in no table
	DEFS_NAME = 8, // functions and lines at one frame
	DEFS_HEAP = 9,
	DEFS_FILE = 11,     // 10 is reserved
	DEFS_SNAPSHOT = 12, // mappings, and their resident pages, at one moment
	DEFS_REACH = 13,    // a part of the blocks that a process could reach at one moment
};

// One record: its kind and its content.
struct defs_record {
	uint64_t kind;
	struct bytes_cursor content;
};

// The next record of a payload. False at the end, or where the rest cannot be read (`bad`).
// A cursor that is bad stays so: the records before it were whole.
bool defs_next(struct bytes_cursor *payload, struct defs_record *record);

// What follows the word (with its =) among the options; NULL: it is not there. `options` may be
// NULL; what is returned is inside of it, and goes on to its end.
const char *defs_option(const char *options, const char *word);

// Whether one of the words, which blanks divide, is this one. `options` may be NULL.
bool defs_has_word(const char *options, const char *word);

// The file's name of what a process runs: "cc1" of /usr/lib/gcc/cc1. Of a program that executed
// itself by a mount of its own, whose path is "/", that of its first argument.
const char *defs_program(const struct trace_process *process);

// Append a record to a DEFS payload. `content` is what a record of this kind holds; it is emptied.
// The others put one thing each, or (frames, stacks) as many as have ids one after the other; texts
// that are longer than the limits above are cut.
void defs_put(struct bytes *out, enum defs_kind kind, struct bytes *content);
void defs_put_info(struct bytes *out, const struct trace_info *info);
void defs_put_process(struct bytes *out, const struct trace_process *process);
void defs_put_thread(struct bytes *out, const struct trace_thread *thread);
void defs_put_module(struct bytes *out, const struct trace_module *module);
void defs_put_frames(struct bytes *out, const struct trace_frame *frames, size_t count);
void defs_put_stacks(struct bytes *out, stack_id first, const struct trace_stack *stacks,
		     size_t count);
void defs_put_note(struct bytes *out, const struct trace_note *note, uint64_t number);
void defs_put_name(struct bytes *out, frame_id frame, const struct trace_name *names, size_t count);
void defs_put_heap(struct bytes *out, const struct trace_heap *heap);
void defs_put_file(struct bytes *out, const struct trace_file *file);
void defs_put_snapshot(struct bytes *out, const struct trace_snapshot *snapshot);
void defs_put_reach(struct bytes *out, const struct trace_reach *reach, uint64_t skip,
		    uint64_t count);

// What was read so far. Texts and arrays belong to the tables.
// Memory grows with the program: with its processes, modules and stacks. An entry never moves to
// another id, but the arrays move when they grow.
struct defs {
	struct trace_info info;
	bool info_seen;
	struct trace_process *processes;
	size_t processes_count, processes_capacity;
	struct trace_thread *threads;
	size_t threads_count, threads_capacity;
	struct trace_module *modules; // [0] is not used, nor are frames[0] and stacks[0]
	size_t modules_count, modules_capacity;
	struct trace_frame *frames;
	size_t frames_count, frames_capacity;
	struct trace_stack *stacks;
	size_t stacks_count, stacks_capacity;
	bool sampled; // a stack is of samples
	// By frame id; frames beyond the capacity have none.
	struct defs_names *names; // of frame i, for frames that have any
	size_t names_capacity;
	struct trace_heap *heaps; // [0] is not used, nor is files[0]
	size_t heaps_count, heaps_capacity;
	struct trace_file *files;
	size_t files_count, files_capacity;
	struct defs_snapshot *snapshots; // in the file's order
	size_t snapshots_count, snapshots_capacity;
	struct defs_reach *reaches; // parts, in the file's order
	size_t reaches_count, reaches_capacity;
	// What cannot be read is counted and never stops the rest. `refused` makes a trace unsound.
	uint64_t gaps;    // entries that were filled in
	uint64_t unknown; // records of a kind we do not know
	uint64_t refused; // records that contradict themselves or what came before
};

// `names` has `count` entries, innermost first; count 0: the frame has none.
struct defs_names {
	struct trace_name *names;
	size_t count;
};

// A snapshot without its arrays, and the record that has them.
// `head.mappings` and `head.pages` are NULL, their counts are right. `bytes` is ours.
struct defs_snapshot {
	struct trace_snapshot head;
	uint8_t *bytes;
	size_t size;
};

// A part of what was reachable, without its blocks, and the record that has them.
// `head.blocks` is NULL, `head.count` is right. `bytes` is ours.
struct defs_reach {
	struct trace_reach head;
	uint8_t *bytes;
	size_t size;
};

// Entry 0 of those that have none, and the recording's texts as "", are there at once. Ends with
// defs_fini.
void defs_init(struct defs *defs);
void defs_fini(struct defs *defs);

// Take one record into the tables. Notes are not for here. What is defined already stays.
void defs_read(struct defs *defs, struct defs_record *record);

// The whole part, which reach_fini takes back. False: its record cannot be decoded.
bool defs_load_reach(const struct defs *defs, size_t index, struct trace_reach *reach);

// Decode a note. Its text is `text`'s, which is overwritten. False if it makes no sense.
bool defs_read_note(const struct defs *defs, struct bytes_cursor content, struct trace_note *note,
		    uint64_t *number, struct bytes *text);

// What a note says about a definition: how a process ended, what a thread is called.
void defs_apply_note(struct defs *defs, const struct trace_note *note);
