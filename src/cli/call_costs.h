// call_costs: what calls of an allocator cost, measured by a replay of a process under the
// allocator that it was recorded with.
//
// A replay makes nothing but these calls, so its caches are warm: in the program a call may take
// more. Blocks are not touched, since the program may have to do that anyway.
#pragma once

#include "report/ask/query_context.h"

struct call_costs; // of the processes that were asked for

// `asked` is borrowed.
struct call_costs *call_costs_new(struct query_context *asked);
void call_costs_free(struct call_costs *costs); // NULL is allowed

// As findings_cost (findings.h), with the costs as its context. The first question about a process
// takes as long as a replay of it.
// NULL: both costs are set, in ns of processor time for one call. Else why they are not known,
// which stays as long as `context`.
const char *call_costs_of(void *context, process_id process, uint64_t size, double *begin_ns,
			  double *end_ns);

// The program that makes the calls of a replay.
bool call_costs_find_driver(struct str *path, struct err *err);
