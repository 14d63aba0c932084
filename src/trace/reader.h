// reader: takes a trace apart, in order, in a bounded amount of memory.
//
//     reader_open
//       reader_next     until READER_END; definitions appear in the tables as they are met
//     reader_ok         did it end well, or was it cut?
//     reader_close
//
// A trace is untrusted input: no length in it is believed. A damaged tail is not a damaged trace:
// whatever is whole is delivered, then reader_next returns READER_END and reader_ok says what is
// missing. A block that is damaged in the middle is skipped, counted in reader_skipped, and the
// reader goes on at the next whole one.
//
// One thread calls. Definitions stay in memory (they grow with the program, not with the run).
#pragma once

#include "base/err.h"
#include "trace/snapshot.h"
#include "trace/trace.h"

#include <stddef.h>

struct reader;

enum reader_item { READER_END, READER_EVENT, READER_NOTE };

// False on: no such file, not a trace, a newer major version, an empty file. A trace cut anywhere
// after its header opens.
struct reader *reader_open(const char *path, struct err *err);
void reader_close(struct reader *reader); // NULL is allowed

// The next item into *event or *note.
// Both stay as they were at READER_END. What `event->vm` and `note->text` point at lives until the
// next call. Numbers and times never fall from one item to the next.
enum reader_item reader_next(struct reader *reader, struct trace_event *event,
			     struct trace_note *note);

// Up to `max` of the next items at once, faster, where they are calls on malloc's heap, of one
// thread and at one time; returns how many. 0: ask reader_next for the next item.
uint32_t reader_run(struct reader *reader, struct trace_event *events, uint32_t max);

// For who keeps what is known of a block of memory by its address. Within one block of events each
// address has a *spot*, a number that no other one has, given in the order in which they are met;
// so a list by spots is found without looking for addresses. An address that is met when all spots
// are given has none.
enum { READER_SPOTS = 1 << 16, READER_NO_SPOT = READER_SPOTS };

// A call on malloc's heap.
struct reader_call {
	uint64_t address, size;
	stack_id stack;
	uint32_t spot, old_spot; // of `address`, and of where a TRACE_REALLOC ends one
	uint8_t kind;            // enum trace_kind
	uint8_t align_log2;
};

// Some of one thread and at one time. Where an event has an old address it is in `events`, whole,
// under the same number as the call; others may have nothing there.
struct reader_calls {
	const struct reader_call *calls;
	const struct trace_event *events;
	uint32_t count;
	thread_id thread;
	uint64_t time_ns, number; // of the first; the others' follow
	uint64_t block;           // of events, never 0: spots are of this one
};

// Give spots, or no more. That takes a little time, so it is done for who asks, and begins where
// blocks are next decoded ahead: by the third one from here on.
void reader_give_spots(struct reader *reader, bool gives);

// As reader_run does, up to `max` of the next items, where they are and with their spots. False:
// ask reader_run or reader_next.
bool reader_calls(struct reader *reader, struct reader_calls *calls, uint32_t max);

// Of the event that reader_next gave last: its block of events (0: it has no spots), and spots.
struct reader_spots {
	uint64_t block;
	uint32_t spot, old_spot;
};
struct reader_spots reader_spots(const struct reader *reader);

// Are calls that were given still where they are after the next item is asked for?
bool reader_keeps(const struct reader *reader);

// The next note, without the events: of blocks of events the headers are read alone. The time of a
// note is its own then. False: there is no more.
bool reader_next_note(struct reader *reader, struct trace_note *note);

// Whether READER_END was given because there is no more (not because of reader_stop).
bool reader_over(const struct reader *reader);

// Back to the first item. Definitions that were read stay.
// What was found out about damage stays, too, so reader_ok speaks of all plays together.
void reader_rewind(struct reader *reader);

// Go to the last block boundary at or before time_ns, without reading what is between (when the
// trace has its index; else by scanning block headers). Definitions up to there are loaded.
bool reader_seek(struct reader *reader, uint64_t time_ns, struct err *err);

// A place between two items, by which another reader of the same file comes back to it, also when
// the file has grown since. Plain numbers: it may be kept on disk.
struct reader_place {
	uint64_t at;          // a block,
	uint64_t next_number; // the event that it should begin with,
	uint64_t last_ns;     // the time before it,
	uint64_t items;       // and how many items after its beginning
	uint32_t sequence;
	uint32_t padding;
};

// Where the next item is. A damaged or untrue place is not believed: false, and the reader is at
// the beginning.
struct reader_place reader_place(const struct reader *reader);
bool reader_go(struct reader *reader, const struct reader_place *place);

// For a file that is still being written: READER_END then means that there is no more yet, and
// reader_grown looks whether there is.
void reader_follow(struct reader *reader, bool follow);
void reader_grown(struct reader *reader);

// Ask `stop` before each block: once it says true, reader_next gives READER_END wherever it is,
// and the caller then knows that it was not the trace's end. NULL: nobody is asked.
void reader_stop(struct reader *reader, bool (*stop)(void *context), void *context);

// Read all definitions and notes without decoding events, so that the tables below are whole.
// The position is unchanged. Damage stops nothing here; reader_ok has it.
void reader_scan(struct reader *reader);

// Its end and what the file is made of alone: no definition is decoded, nor will be.
void reader_scan_heads(struct reader *reader);

// After READER_END: true if the trace was whole. False with the reason: cut at byte N, block
// damaged, recording ended early because …, N events were lost.
bool reader_ok(const struct reader *reader, struct err *err);

// The first thing that was found wrong with the file, and how many blocks are lost.
struct reader_damage {
	uint64_t at, missed; // its offset in the file; blocks
	char why[96];        // "": nothing was
};

// For who keeps what he has counted of a trace: a reader that reads no events does not find it.
void reader_damage(const struct reader *reader, struct reader_damage *damage);

// It was found by another reader of the same file. What this one finds itself comes first.
void reader_know_damage(struct reader *reader, const struct reader_damage *damage);

// What reader_ok says, without the words; valid after reader_scan too.
bool reader_complete(const struct reader *reader);

// Its end is missing because it was still being written when it was opened (or last grew): it is
// neither cut nor damaged, and not complete.
bool reader_growing(const struct reader *reader);

// The file is as its writer left it: its end is there, nothing is damaged or missing. A recording
// that ended early by itself is sound and not complete.
bool reader_sound(const struct reader *reader);

// Whether it was recorded on Windows, on which the meaning of flags depends; what is known of the
// recording at its beginning, and at its end.
bool reader_is_windows(const struct reader *reader);
const struct trace_info *reader_info(const struct reader *reader);
// Whether it was cut so that notes (the end of a process, say) are in it, and events before them
// are not; *end_ns: the time of the last event. Known at the end, as reader_ok is.
bool reader_lacks_events(const struct reader *reader, uint64_t *end_ns);

const struct trace_end *reader_end(const struct reader *reader); // NULL until read, or if cut
uint64_t reader_bytes(const struct reader *reader);              // size of the file
uint64_t reader_position(const struct reader *reader);           // bytes read, for a progress bar
uint64_t reader_skipped(const struct reader *reader);            // damaged blocks skipped
uint64_t reader_unknown(const struct reader *reader);            // records of kinds not known here

// What the file is made of; whole after reader_scan, or after READER_END.
// Bytes are those in the file: of a block, its header and its stored payload.
struct reader_stats {
	uint64_t blocks, events_blocks, defs_blocks, bundle_blocks, index_blocks, unknown_blocks;
	uint64_t events;       // in whole blocks
	uint64_t events_bytes; // stored, headers included
	uint64_t defs_bytes;
	uint64_t bundle_bytes;
	uint64_t last_ns; // of the last event or note
	// The last whole block of events ends at this number and time; and so many had come when
	// the last definitions were written, which may be before them in the file.
	uint64_t events_end, events_last_ns, events_told;
	uint64_t whole_at; // offset after the last whole block
};
const struct reader_stats *reader_stats(const struct reader *reader);

// Definitions met so far; borrowed until reader_close (pointers may move at the next
// reader_next). Ids out of range: NULL. Counts include the unused 0 of modules, frames, stacks.
uint32_t reader_processes_count(const struct reader *reader);
uint32_t reader_threads_count(const struct reader *reader);
uint32_t reader_modules_count(const struct reader *reader);
uint32_t reader_frames_count(const struct reader *reader);
uint32_t reader_stacks_count(const struct reader *reader);
const struct trace_process *reader_process(const struct reader *reader, process_id id);
const struct trace_thread *reader_thread(const struct reader *reader, thread_id id);
const struct trace_module *reader_module(const struct reader *reader, module_id id);
const struct trace_frame *reader_frame(const struct reader *reader, frame_id id);
const struct trace_stack *reader_stack(const struct reader *reader, stack_id id);

// Where `process` (TRACE_NONE: the first that has it) has a frame's place. 0: there is no such
// frame.
uint64_t reader_address(const struct reader *reader, frame_id frame, process_id process);

// Heaps other than malloc's, and mapped files: ids count from 1; 0 has an empty name or path.
uint32_t reader_heaps_count(const struct reader *reader);
uint32_t reader_files_count(const struct reader *reader);
const struct trace_heap *reader_heap(const struct reader *reader, heap_id id);

// Whether it is a heap of a language's own: of malloc's layer, and its blocks are nowhere in
// malloc's.
bool reader_heap_is_language(const struct trace_heap *heap);

// Whether it is a pool of the program's own (tidemark.h): its blocks are parts of others.
bool reader_heap_is_pool(const struct trace_heap *heap);

// What a heap is called: its name, or its handle, which is put into `text`; "malloc" for NULL.
enum { READER_HEAP_TEXT = 24 };
const char *reader_heap_name(const struct trace_heap *heap, char text[static READER_HEAP_TEXT]);
const struct trace_file *reader_file(const struct reader *reader, file_id id);

// Snapshots of memory met so far, in the file's order, from 0. One from the list has no arrays
// (but their counts); reader_snapshot_load gives a whole one, and snapshot_fini takes it back.
// They are not items: after reader_scan all are there.
uint32_t reader_snapshots_count(const struct reader *reader);
const struct trace_snapshot *reader_snapshot(const struct reader *reader, uint32_t index);
bool reader_snapshot_load(const struct reader *reader, uint32_t index,
			  struct trace_snapshot *snapshot);

// Parts of what was found to be reachable, in the same manner (trace/reach.h).
uint32_t reader_reaches_count(const struct reader *reader);
const struct trace_reach *reader_reach(const struct reader *reader, uint32_t index);
bool reader_reach_load(const struct reader *reader, uint32_t index, struct trace_reach *reach);

// The names that the trace itself gives to a frame, innermost first, or NULL (traces made from
// text have them, recorded ones do not). They are what a report shows, before any symbol table.
// `*count` is 0 where it is NULL. Of inlined functions the innermost is first.
const struct trace_name *reader_frame_names(const struct reader *reader, frame_id id,
					    size_t *count);

// The marks in the order of the trace, whole after reader_scan. Several may have one name.
const struct trace_mark *reader_marks(const struct reader *reader, size_t *count);

// Turns from recording each call to samples and back, the same. None: it has either all the time.
const struct trace_turn *reader_turns(const struct reader *reader, size_t *count);

// Are the trace's figures estimates, from samples of all of its time or of some? Before the
// definitions were read (reader_scan), false of one that is sampled at times.
bool reader_is_estimated(const struct reader *reader);

// What an allocation with this stack was drawn by: the mean distance in bytes, or 0: it stands for
// itself alone.
uint64_t reader_sample_bytes(const struct reader *reader, stack_id stack);

// Bundled symbol tables (record --bundle): the file stored for a build-id, or NULL.
const void *reader_bundle(const struct reader *reader, const uint8_t *build_id,
			  size_t build_id_length, size_t *size);
