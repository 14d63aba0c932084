// intake: what importers put into a trace: definitions that are looked up by what a source calls
// them, events, and what the source does not know.
//
//     intake_new
//       intake_info, intake_lacks        what is known of the whole, before the first definition
//       intake_process … intake_event    in the source's order
//     intake_end
//     intake_free
//
// Memory grows with what is defined (functions, stacks, threads), not with events. Errors of the
// writer are sticky; intake_end says them.
#pragma once

#include "base/err.h"
#include "trace/trace.h"

#include <stddef.h>

struct intake;

// Writes to the descriptor, which stays the caller's. `format` is the source's name in the trace.
struct intake *intake_new(int fd, const char *format);
void intake_free(struct intake *intake); // NULL is allowed

// To fill in: tool, command, when it began, tick. Its texts are owned by it (mem_free).
struct trace_info *intake_info(struct intake *intake);

// What the source does not have: words of docs/format.md, 5.1.
void intake_lacks(struct intake *intake, const char *word);

// By what the source calls them; NULL or "": it does not say. Where it is a number, it is the pid
// or tid, otherwise a name.
process_id intake_process(struct intake *intake, const char *called);
thread_id intake_thread(struct intake *intake, process_id process, const char *called);

// A process with a name; one of which more is known (its id is ignored); a thread of it.
process_id intake_add_process(struct intake *intake, const char *exe);
process_id intake_put_process(struct intake *intake, const struct trace_process *process);
thread_id intake_put_thread(struct intake *intake, process_id process, uint32_t tid);
heap_id intake_put_heap(struct intake *intake, const struct trace_heap *heap);
module_id intake_add_module(struct intake *intake, const struct trace_module *module);
// The same; one of the same path, process and addresses is that one again.
module_id intake_module(struct intake *intake, const struct trace_module *module);

// A frame by its text: an address (0x…, or decimal), "FUNCTION", "FUNCTION (FILE:LINE)". 0: empty.
frame_id intake_frame_text(struct intake *intake, const char *text, size_t length);
frame_id intake_frame_address(struct intake *intake, module_id module, uint64_t pc);
// A frame with these names, innermost first; a new one each time.
frame_id intake_frame_names(struct intake *intake, uint64_t pc, const struct trace_name *names,
			    size_t count);
// The same; one of the same names is that one again.
frame_id intake_frame_named(struct intake *intake, const struct trace_name *names, size_t count);

// The stack of a frame and its callers.
stack_id intake_stack(struct intake *intake, stack_id callers, frame_id frame);

// A stack by its text: frames with ';' between them.
enum intake_order { INTAKE_OUTERMOST_FIRST, INTAKE_INNERMOST_FIRST };
stack_id intake_stack_text(struct intake *intake, const char *text, enum intake_order order);

// `event->time_ns` that falls is raised to the time before it, and counted.
void intake_event(struct intake *intake, const struct trace_event *event);
void intake_note(struct intake *intake, const struct trace_note *note);
void intake_exit(struct intake *intake, process_id process, uint64_t time_ns, enum trace_exit how,
		 uint32_t value);

// Which blocks were reachable at the process's end.
void intake_reach(struct intake *intake, const struct trace_reach *reach);

// A moment that has a name.
void intake_mark(struct intake *intake, uint64_t time_ns, const char *name);

// Events that the source knows to be missing.
void intake_lose(struct intake *intake, uint64_t count, const char *why);

uint64_t intake_events(const struct intake *intake);
uint64_t intake_raised(const struct intake *intake); // times that fell

// The end of the trace. `why`: the source was cut; NULL: it was whole.
bool intake_end(struct intake *intake, const char *why, struct err *err);
