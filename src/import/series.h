// series: snapshots of what lives (how many blocks of how many bytes, by stack) as events: blocks
// begin and end where two snapshots differ.
//
// A source that has sums has neither addresses nor what came and went between two snapshots. Blocks
// get numbers for addresses, and sizes that add up to the sums. A snapshot has a mark.
//
//     series_new
//       series_begin
//         series_add      any number of them
//         series_add_freed
//       series_end        the events
//     series_free
#pragma once

#include "import/intake.h"

struct series;

// Says what sums do not have (intake_lacks), before anything is defined. Borrows the intake.
struct series *series_new(struct intake *intake);
void series_free(struct series *series); // NULL is allowed

// A snapshot with a name. Times do not fall.
void series_begin(struct series *series, const char *name, uint64_t time_ns);

// More blocks that live in it. `size`: of each of them, or 0; sums of different sizes stay apart.
void series_add(struct series *series, thread_id thread, stack_id stack, uint64_t size,
		uint64_t count, uint64_t bytes);

// The same, of a source that knows whether the program could still find them: enum
// trace_reach_state. Sums of different states stay apart.
void series_add_reached(struct series *series, thread_id thread, stack_id stack, uint8_t state,
			uint64_t count, uint64_t bytes);

// Blocks of it that were allocated and freed since the beginning of the series, up to this
// snapshot. What ended with a block of an earlier snapshot is among them; the others come and go
// just before the snapshot.
void series_add_freed(struct series *series, thread_id thread, stack_id stack, uint64_t size,
		      uint64_t count, uint64_t bytes);
// The intake gets them at the time of the snapshot: all that differs is at one moment.
void series_end(struct series *series);

// After the last snapshot, which is the process's end: the states of all that lives in it, as
// where their words are, which no source says, is left open.
void series_end_reached(struct series *series, process_id process);

uint64_t series_snapshots(const struct series *series);
uint64_t series_joined(const struct series *series); // sums of more blocks than are distinguished
