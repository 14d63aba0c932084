// space_listed: what calls on virtual memory say is mapped, held against what the kernel listed.
//
//     space_listed_new
//       space_listed_pass    before each event on virtual memory
//       space_listed_end     before the end of a process
//     space_listed_finish    the difference is in space_all(); gives all back
//
// A snapshot of resident memory has the kernel's list of mappings. Where the two differ, there were
// calls that no hook saw: of code that the program generates, or with a syscall instruction that
// could not be patched. The last snapshot of each process that stood still while it was taken is
// looked at; Windows has none that lists everything.
#pragma once

#include "engine/moment.h"
#include "engine/query.h"
#include "engine/space/space.h"

struct space_listed;

// Of the processes that `query` (NULL: all) selects, and of snapshots that `edge` (NULL: the end)
// is not before. All is borrowed.
struct space_listed *space_listed_new(struct space *space, const struct reader *reader,
				      const struct query *query, const struct moment_edge *edge);
void space_listed_pass(struct space_listed *listed, const struct trace_event *event);
void space_listed_end(struct space_listed *listed, process_id process);
void space_listed_finish(struct space_listed *listed); // NULL is allowed
