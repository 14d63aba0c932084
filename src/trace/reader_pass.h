// reader_pass: item by item through a trace, or some at a time, with a bar that says how far it is.
//
//     struct reader_pass pass = reader_pass_begin(reader, &progress);   // from the first item on
//     while (reader_pass_next(&pass) != READER_END)
//             if (pass.item == READER_EVENT)
//                     … pass.event …
//
// One that goes on from where the reader is begins with { .reader = reader }. What it was before,
// the caller makes of it: reader_rewind at the end, if the next one expects that.
#pragma once

#include "base/progress.h"
#include "trace/reader.h"

enum { READER_PASS_LOOK_EVERY = 1 << 16 }; // items between two looks at the clock

// On the caller's stack; nothing in it has to be freed.
struct reader_pass {
	struct reader *reader;     // borrowed
	struct progress *progress; // borrowed; NULL: there is no bar
	uint64_t items;            // so many were read
	enum reader_item item;     // what the last one is,
	struct trace_event event;  // and itself, valid until the next
	struct trace_note note;
};

// A pass from the first item on. `progress` (NULL: no bar) has begun, with reader_bytes as its
// whole.
static inline struct reader_pass reader_pass_begin(struct reader *reader, struct progress *progress)
{
	reader_rewind(reader);
	return (struct reader_pass){ .reader = reader, .progress = progress };
}

// The next item, in the pass; READER_END stays the answer once it was given. Whether the trace
// ended well is asked by reader_ok, after it.
static inline enum reader_item reader_pass_next(struct reader_pass *pass)
{
	pass->item = reader_next(pass->reader, &pass->event, &pass->note);
	if (pass->item == READER_END)
		return READER_END;
	if (++pass->items % READER_PASS_LOOK_EVERY == 0 && pass->progress)
		progress_update(pass->progress, reader_position(pass->reader));
	return pass->item;
}

// The same, faster: a note, or up to READER_RUNS_MAX events of one thread and one time at once.
enum { READER_RUNS_MAX = 64 };

// For a pass that treats events alike: `events` are valid until the next call, `vm` of the one
// event too that reader_next gave.
struct reader_runs {
	struct reader *reader;     // borrowed
	struct progress *progress; // borrowed; NULL: there is no bar
	uint64_t runs;             // so many were read
	uint32_t count;            // of events; 0: what came is a note, or the end
	struct trace_event events[READER_RUNS_MAX];
	struct trace_note note;
};

// READER_EVENT: `count` events, at least one. READER_NOTE: `note`, and no events. READER_END:
// neither.
static inline enum reader_item reader_runs_next(struct reader_runs *runs)
{
	enum reader_item item = READER_EVENT;

	runs->count = reader_run(runs->reader, runs->events, READER_RUNS_MAX);
	if (runs->count == 0) {
		item = reader_next(runs->reader, runs->events, &runs->note);
		runs->count = item == READER_EVENT;
	}
	if (++runs->runs % (READER_PASS_LOOK_EVERY / READER_RUNS_MAX) == 0 && runs->progress)
		progress_update(runs->progress, reader_position(runs->reader));
	return item;
}

// When the last item happened.
static inline uint64_t reader_pass_time(const struct reader_pass *pass)
{
	return pass->item == READER_NOTE ? pass->note.time_ns : pass->event.time_ns;
}
