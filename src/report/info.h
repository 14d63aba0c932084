// info: what is in a trace, whether it is whole, and what the recording cost.
//
//     info_read        goes through the trace once
//       info_write_json, or a page of the command's own
//     info_fini
#pragma once

#include "base/map.h"
#include "base/progress.h"
#include "base/sink.h"
#include "trace/reader.h"

enum { INFO_KINDS = TRACE_UNMAPPED + 1, INFO_NOTES = TRACE_NOTES_COUNT };

// What was counted.
struct info_message {
	// owned; equal ones are one
	char *text;
	uint32_t times;
};

// What was counted in the pass. Arrays by process have as many entries as the reader has processes.
struct info {
	const char *path;            // borrowed
	const struct reader *reader; // borrowed
	uint64_t events;             // all that could be read
	uint64_t calls;              // of them: calls on malloc's heap (trace_kind_is_call)
	uint64_t kinds[INFO_KINDS];
	uint64_t notes[INFO_NOTES];
	uint64_t shares_counted; // PSS, where it was not carried on
	uint64_t losses;         // by notes, where no end record says them all
	uint64_t deep;           // events with a stack deeper than is recorded
	// the latest time of any event or note
	uint64_t last_ns;
	struct map flags;         // calls that allocate, by heap << 32 | flags (info_next_flags)
	uint64_t *process_events; // calls on malloc's heap, by process
	// how many each of them has
	uint64_t *process_threads;
	struct info_message *messages; // texts of notes that the user should see
	size_t messages_count, messages_capacity;
	bool whole;
	struct err wrong; // why it is not
};

// `reader` is at its beginning, and afterwards at its end. `path` is what the trace is called.
void info_read(struct info *info, const char *path, struct reader *reader,
	       enum progress_mode progress);
void info_fini(struct info *info);

// docs/schema/info.json describes it.
void info_write_json(const struct info *info, struct sink *sink);

// Events known to be missing; how long it took; bytes of the file by events.
uint64_t info_events_lost(const struct info *info);
uint64_t info_duration(const struct info *info);
double info_bytes_per_event(const struct info *info);

// Whether a heap is another one's handle once more, and nothing was done there: a thread that was
// last in a heap of Windows when that was destroyed names it so.
bool info_heap_is_echo(const struct info *info, heap_id heap);

// The flags that calls on `heap` were given, the smallest first, and how many were given those.
// `*flags` is UINT64_MAX at first; false at the end.
bool info_next_flags(const struct info *info, heap_id heap, uint64_t *flags, uint64_t *count);

// The snapshots of memory in the trace, and what was missed.
struct info_snapshots {
	uint64_t count, cost_ns;
	uint64_t by_pages; // of them: smaps was not read
	uint64_t missed;   // were due, and there was no time
};
struct info_snapshots info_snapshots(const struct info *info);

// "patched": how a process's calls on virtual memory were seen; NULL: nobody said.
const char *info_calls(const struct trace_process *process);

// "exported": how an allocator's calls are seen, and the same in more words.
const char *info_seen(const struct trace_allocator *allocator);
const char *info_seen_how(const struct trace_allocator *allocator);
