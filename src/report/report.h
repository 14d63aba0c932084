// report: what a trace says about memory, put together once and written in one of several forms.
//
//     query_context_open   with report_rules
//       report_new         reads the trace to its end; seconds for hundreds of millions of events
//       report_text  (or report_json, report_rows)
//       report_free
//     query_context_close
//
// A report writes to a sink and touches no file.
#pragma once

#include "base/json.h"
#include "base/progress.h"
#include "base/sink.h"
#include "engine/whole.h"
#include "report/ask/query_context.h"
#include "report/find/sites.h"
#include "report/table/sheet.h"

// `= { 0 }` is all rows, folded, without colour.
struct report_options {
	uint64_t bytes_min; // rows of at least so many bytes
	uint64_t rows_max;  // per question; 0: all
	bool all_frames;    // fold no allocator wrappers, show every frame
	bool colour;
	unsigned width; // columns of the terminal
};

struct report {
	struct query_context *asked;          // borrowed
	const struct report_options *options; // borrowed
	// owned, as `sites` and `reached`
	struct whole whole;
	const struct heap *heap; // of it
	uint64_t rss_peak_bytes; // the highest resident memory of any process; 0: not known
	process_id rss_peak;     // its process
	// the rows, and for each question which of them and the sums
	struct sites sites;
	// what a search for pointers found, where one was recorded
	struct reached reached;
	// the trace, as reader_ok says
	bool complete;
	uint64_t losses_told; // events lost, as far as a warning speaks of them
};

// Columns of an error, where figures are estimates.
enum { REPORT_ERROR_COLUMNS = 7 };

// For people; as JSON (docs/schema/report.json); the rows of the sites alone, for the questions
// from one to before another. The text wants SITES_AS_SHOWN, the others SITES_EXACT.
void report_text(struct report *report, struct sink *sink);
void report_json(struct report *report, struct sink *sink);
void report_rows(const struct report *report, enum sites_question from, enum sites_question to,
		 struct sheet *sheet);

extern const struct query_context_rules report_rules;

// Read the trace and count. NULL on a filter that no report can honour. Damage of the trace is a
// warning, not an error.
// `asked` and `options` are to live as long as the report.
struct report *report_new(struct query_context *asked, const struct report_options *options,
			  enum sites_merge merge, struct err *err);
void report_free(struct report *report); // NULL is allowed

// The next pool of those that the filters leave, after `id` (0: the first); NULL at the end.
const struct trace_heap *report_next_pool(const struct report *report, heap_id id);

// What a report says of a heap outside of malloc's.
struct report_own_heap {
	bool outside;     // it is no known runtime's: mappings that the program asked for itself
	const char *heap; // "V8 heap"; NULL: the text says it
	uint64_t bytes;   // when most was committed, of the process that had most; 0: not known
	const char *text;
};

// What there is beside malloc's blocks, each once. Where mappings are most of what was committed,
// the trace is read once more.
void report_own_heaps(const struct report *report,
		      void (*tell)(void *context, const struct report_own_heap *heap),
		      void *context);

// Whether the trace tells the answer to a question: samples do not tell what is temporary, and sums
// that were imported not always what lived at one time.
bool report_knows(const struct report *report, enum sites_question question);

// "exit 0", "signal SIGKILL", "exec", "unknown".
// The text is in `out`, or a constant.
const char *report_exit(const struct trace_process *process, char out[static 32]);
// For people: a status of Windows in its usual form, "exit 0xc0000005, access violation".
const char *report_exit_words(const struct trace_process *process, char out[static 48]);

// The keys of a process that tell its life: exe, args, exit, began_ns, ended_ns.
void report_json_life(struct json *json, const struct trace_process *process);

// Frees of blocks that were allocated before the process (TRACE_NONE: any) was attached to. They
// are among the inherited ones of heap.h.
uint64_t report_before(const struct report *report, process_id process);

// How many processes lived at the peak, and how many of these may have ended milliseconds before
// (`late`): the trace has their ends when the kernel gave word of them.
uint32_t report_peak_processes(const struct report *report, uint32_t *late);

// The same as report_exit_words, and "still running" where that is what unknown means.
const char *report_ending(const struct reader *reader, process_id id, char out[static 48]);
