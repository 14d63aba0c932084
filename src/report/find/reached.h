// reached: which blocks were reachable when their processes ended, by site.
//
//     query_context_open …
//       reached_read        record --reachability has put it into the trace
//         reached_site      what a stack of a process left unreachable
//       reached_fini
//
// A block that only an unreachable one holds belongs to its own site, and to the leak that holds
// it: freeing that one, or keeping a pointer to it, settles both.
#pragma once

#include "base/map.h"
#include "engine/replay/heap.h"
#include "report/ask/query_context.h"
#include "trace/reach.h"

// What one stack of one process had live at the end, by how it could be reached.
struct reached_site {
	process_id process;
	stack_id stack;
	struct heap_amount states[TRACE_REACH_STATES_COUNT]; // [0]: none
	struct heap_amount holds;     // blocks of any site that only its unreachable ones hold
	struct heap_amount holds_own; // of these, those of its own
	struct heap_amount loose;     // of its own that are held: by which leak is not known
};

struct reached {
	struct reached_site *sites; // owned
	size_t count, capacity;
	struct map places; // process and stack -> site
	struct heap_amount states[TRACE_REACH_STATES_COUNT];
	uint32_t flags; // enum trace_reach_flag, of any process
	bool asked;     // the recording was to find it out
	bool known;     // of all selected processes that allocated
	char *why;      // owned; why not, NULL: it is known
};

// What the filters select. Where they speak of times and lifetimes it is not known.
void reached_read(struct reached *reached, const struct query_context *asked);
void reached_fini(struct reached *reached); // accepts { 0 }

// NULL: it has none that was live at the end.
const struct reached_site *reached_site(const struct reached *reached, process_id process,
					stack_id stack);

// Unreachable, held or not.
struct heap_amount reached_lost(const struct heap_amount states[static TRACE_REACH_STATES_COUNT]);

// All parts of what was found as one: of the process's end, or (`reason` 0) the last of all. False:
// there is none. reach_fini gives it back.
bool reached_load(const struct reader *reader, process_id process, uint8_t reason,
		  struct trace_reach *reach);

// The block that has the byte at `address`; NULL: none.
const struct trace_reach_block *reached_find(const struct trace_reach *reach, uint64_t address);
