// overhead: what share of the processor's time recording takes, and so whether each call is
// recorded or samples are (record --max-overhead; docs/notes/0034).
//
// Ten times a second it adds up what recording took in the guests, by their own measure (struct
// segment_cost), and what it made the collector work, and divides by what the programs used without
// that. Three such judgements in a row above the limit: samples, or fewer of them. Back when ten
// seconds of the same calls would have cost less than half of the limit, or nothing was done.
//
// It tells guests by one word of the clock page, and the trace by notes of kind
// TRACE_NOTE_SAMPLING. `tidemark ctl PID sample` decides in its place.
//
// One thread: the collector's.
#pragma once

#include "collect/control.h"
#include "collect/process_list.h"
#include "collect/tick.h"

// Words of a request (control.h) in place of a power of two.
enum { OVERHEAD_ALL = 0, OVERHEAD_AUTO = 255 };

struct overhead {
	struct process_list *process_list;   // borrowed
	struct trace_builder *trace_builder; // borrowed
	struct tick *tick;                   // borrowed
	uint32_t limit;                      // millionths of the program's time; 0: there is none
	uint32_t log2;                       // the distance in force, as a power of two; 0: each
	bool by_hand;                        // it stays so
	bool ending;               // no samples any more, which the trace does not say yet
	bool turned;               // to samples, once at least
	uint64_t judge_ns;         // when next
	uint64_t own_ns;           // the collector's time at the last judgement
	struct image_cost since;   // since then
	uint32_t over;             // judgements in a row above the limit
	double call_ns, sample_ns; // what each took when last measured,
	double price_ns;           // and a call with all that it made us do
	uint64_t quiet_ns;         // since when it is seen whether to go back
	double quiet_used_ns, quiet_cost_ns; // used since then, and what all calls would cost
};

void overhead_init(struct overhead *overhead, struct process_list *process_list, struct tick *tick,
		   uint32_t limit);

// By hand: `log2` from now on, at the present place of the order; OVERHEAD_AUTO: it is decided here
// again. False, and `text` says why: this recording has no budget.
bool overhead_ask(struct overhead *overhead, uint32_t log2, char text[CONTROL_TEXT_MAX]);

// After each pass, at this time.
void overhead_pass(struct overhead *overhead, uint64_t now_ns);
