// A report is one pass through the trace with the replay engine (engine/replay/heap.h), and the
// rows that come of it. Messages that the recording left for its user are put in front, those in
// the same words once: "12 processes of sh, cc1 (100, 101, …): they ran under a system-call
// filter", instead of twelve lines.
#include "report/report.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "report/ask/cautions.h"
#include "report/ask/cxxname.h"
#include "report/ask/own_heap.h"
#include "report/find/outside.h"
#include "trace/defs.h"

#include <inttypes.h>
#include <string.h>

enum {
	OUTSIDE_NAME_COLUMNS = 60, // of a function in a sentence
	MESSAGES_MAX = 20,         // of the trace that are repeated in the report
	PIDS_MAX = 8,              // that one of them names
	PROGRAMS_MAX = 4,          // the same
	END_LATE_NS = 1000000000, // after a peak that a process cannot have lived at if it was late
};

// What a report counts is malloc's and heaps of languages: select_allocations refuses the others.
const struct query_context_rules report_rules = { .about = QUERY_CONTEXT_EVENTS };

// What the recording wanted its user to know of one process, or in the same words of several.
struct message {
	struct str before, after;           // the words around the processes
	struct str pids;                    // "12, 13, 14, …"
	const char *programs[PROGRAMS_MAX]; // of these files, each once
	uint32_t programs_count;            // PROGRAMS_MAX + 1: and of others
	uint32_t count;                     // of processes; 0: of none that is known
	struct map known;                   // their pids
};

struct messages {
	struct report *report;
	struct message list[MESSAGES_MAX];
	size_t count;
	uint64_t more; // that are not repeated
};

// The first four by name; a fifth only says that there are others. Names are compared as texts,
// since each process has its own copy.
static void add_program(struct message *message, const char *program)
{
	ASSERT(message->programs_count <= PROGRAMS_MAX + 1);
	for (uint32_t i = 0; i < message->programs_count && i < PROGRAMS_MAX; i++)
		if (strcmp(message->programs[i], program) == 0)
			return;
	if (message->programs_count < PROGRAMS_MAX)
		message->programs[message->programs_count++] = program;
	else
		message->programs_count = PROGRAMS_MAX + 1;
}

// A pid is counted once: a program may say the same twice. An unknown process adds nothing.
static void add_process(struct message *message, const struct trace_process *process)
{
	bool fresh;

	if (!process)
		return;
	map_put(&message->known, process->pid, &fresh);
	if (!fresh)
		return;
	if (message->count < PIDS_MAX)
		str_format(&message->pids, "%s%" PRIu32, message->count ? ", " : "", process->pid);
	else if (message->count == PIDS_MAX)
		str_add(&message->pids, ", …");
	add_program(message, *process->exe ? defs_program(process) : "?");
	message->count++;
}

// Words are equal if what is before and after the process's number is.
static bool is_said(const struct message *one, const struct message *other)
{
	return one->count > 0 && strcmp(str_get(&one->before), str_get(&other->before)) == 0 &&
	       strcmp(str_get(&one->after), str_get(&other->after)) == 0;
}

// What it owns; programs are the trace's.
static void forget(struct message *message)
{
	STR_FINI(&message->before, &message->after, &message->pids);
	map_fini(&message->known);
}

// `each`: the words hold a number that is of this process alone.
static void add_message(struct messages *messages, struct message *fresh,
			const struct trace_process *process, bool each)
{
	for (size_t i = 0; i < messages->count && process && !each; i++) {
		if (!is_said(&messages->list[i], fresh))
			continue;
		add_process(&messages->list[i], process);
		forget(fresh);
		return;
	}
	if (messages->count == MESSAGES_MAX) {
		messages->more++;
		forget(fresh);
		return;
	}
	add_process(fresh, process);
	ASSERT(messages->count < MESSAGES_MAX);
	messages->list[messages->count++] = *fresh;
}

// Called for each note while the trace is read. Samples of resident memory are only looked at for
// the highest; what is not for the user is passed over.
static void keep_note(void *context, const struct trace_note *note)
{
	struct messages *messages = context;
	struct report *report = messages->report;
	const struct trace_process *process = reader_process(report->asked->reader, note->process);
	const char *detail = note->text ? note->text : "";
	struct message message = { 0 };

	switch (note->kind) {
	case TRACE_NOTE_RSS:
	case TRACE_NOTE_RSS_MAX:
		if (query_has_process(&report->asked->selection.query, note->process) &&
		    note->value > report->rss_peak_bytes) {
			report->rss_peak_bytes = note->value;
			report->rss_peak = note->process;
		}
		return;
	case TRACE_NOTE_LOSS:
		str_format(&message.before, "%" PRIu64 " event%s of ", note->value,
			   note->value == 1 ? "" : "s");
		str_format(&message.after, " %s lost%s%s; the figures are too small",
			   note->value == 1 ? "was" : "were", *detail ? ": " : "", detail);
		report->losses_told += note->value;
		break;
	case TRACE_NOTE_EXEC_UNSEEN:
		// Of a program that the process started, or of the process itself: the text says
		// it.
		str_format(&message.after, "%snot all is recorded: %s", process ? ": " : "",
			   detail);
		break;
	case TRACE_NOTE_MESSAGE:
		str_format(&message.after, "%s%s", process ? ": " : "", detail);
		break;
	default:
		return;
	}
	add_message(messages, &message, process, note->kind == TRACE_NOTE_LOSS);
}

// "12 processes of sh, cc1 (100, 101, …): has a filter".
static void tell_several(struct query_context *asked, const struct message *message)
{
	struct str programs = { 0 };

	ASSERT(message->count > 1);
	for (uint32_t i = 0; i < message->programs_count && i < PROGRAMS_MAX; i++)
		str_format(&programs, "%s%s", i ? ", " : "", message->programs[i]);
	if (message->programs_count > PROGRAMS_MAX)
		str_add(&programs, ", …");
	query_context_warn(asked, "%s%" PRIu32 " processes of %s (%s)%s", str_get(&message->before),
			   message->count, str_get(&programs), str_get(&message->pids),
			   str_get(&message->after));
	str_fini(&programs);
}

// After the pass, when it is known how many processes said the same. Frees what the messages own.
static void tell_messages(struct messages *messages)
{
	struct query_context *asked = messages->report->asked;

	for (size_t i = 0; i < messages->count; i++) {
		struct message *message = &messages->list[i];
		const char *before = str_get(&message->before), *after = str_get(&message->after);

		if (message->count > 1)
			tell_several(asked, message);
		else if (message->count == 1)
			query_context_warn(asked, "%sprocess %s%s", before, str_get(&message->pids),
					   after);
		else
			query_context_warn(asked, "%s%s%s", before,
					   *after == ' ' ? "some process" : "", after);
		forget(message);
	}
	if (messages->more)
		query_context_warn(asked, "%s more messages are in tidemark info",
				   STR_COUNT(messages->more));
}

// Selects the allocations that were asked for. What a report cannot be about is refused with the
// command that can.
static bool select_allocations(struct report *report, struct err *err)
{
	const struct selection *selection = &report->asked->selection;

	if (selection->query.layers & QUERY_VM)
		return err_set(err, ERR_USAGE,
			       "a report is about the heap; for virtual memory try: tidemark "
			       "window --layer vm");
	for (heap_id id = 1; id < selection->query.heaps_count; id++)
		if (selection->query.heaps[id] &&
		    !reader_heap_is_language(reader_heap(report->asked->reader, id)))
			return err_set(err, ERR_USAGE,
				       "a report is about malloc's heap, and those of languages; "
				       "for others try: tidemark window --heap");
	return query_context_select(report->asked, err);
}

// How many allocations have a stack that is not whole, and why.
struct report_stacks {
	uint64_t unproven; // the way to the root is not sure
	uint64_t deep;     // deeper than the recorder follows
};

// A stack is incomplete if any of its frames is marked so, outer ones included: flags are handed
// down from parents, which have smaller numbers than their children, in one pass. A stack that is
// cut counts only as too deep, even where it also passes code without unwind tables.
static struct report_stacks count_incomplete(struct report *report)
{
	struct whole_walk walk =
		whole_walk(&report->whole, 1 << WHOLE_PLACE | 1 << WHOLE_ALLOCATED);
	uint32_t stacks_count = reader_stacks_count(report->asked->reader);
	uint8_t *flags = mem_alloc(stacks_count, 1);
	struct report_stacks incomplete = { 0 };
	bool any = false;

	for (stack_id id = 1; id < stacks_count; id++) {
		const struct trace_stack *stack = reader_stack(report->asked->reader, id);

		flags[id] = stack->flags;
		if (stack->parent && stack->parent < id)
			flags[id] |= flags[stack->parent];
		any |= flags[id] & (TRACE_STACK_CUT | TRACE_STACK_INCOMPLETE);
	}
	while (any && whole_walk_next(&walk)) {
		const struct heap_site *site = walk.site;

		if (site->stack >= stacks_count)
			continue;
		if (flags[site->stack] & TRACE_STACK_CUT)
			incomplete.deep += site->allocated.count;
		else if (flags[site->stack] & TRACE_STACK_INCOMPLETE)
			incomplete.unproven += site->allocated.count;
	}
	mem_free(flags);
	return incomplete;
}

// The name of a selected runtime whose functions would be in the stacks with record --jit. NULL:
// there is none.
static const char *wants_jit(const struct report *report)
{
	const struct query_context *asked = report->asked;

	for (process_id id = 0; id < reader_processes_count(asked->reader); id++) {
		const struct trace_process *process = reader_process(asked->reader, id);

		if (query_has_process(&asked->selection.query, id) &&
		    own_heap_jit(asked->reader, process))
			return process->interpreter;
	}
	return NULL;
}

// What the trace itself does not say well.
static void warn_of_damage(struct report *report)
{
	struct query_context *asked = report->asked;
	const struct heap_totals *totals = heap_totals(report->heap);
	struct report_stacks incomplete = count_incomplete(report);
	struct str text = { 0 };

	cautions_add_wholeness(asked->reader, &text);
	if (text.length > 0)
		query_context_warn(asked, "%s", str_get(&text));
	str_clear(&text);
	cautions_add_unlisted(asked->reader, &report->whole.vm, &text);
	if (text.length > 0)
		query_context_warn(asked, "%s", str_get(&text));
	str_fini(&text);
	// What messages have said already is not said again; what a trace without an end lost is
	// not known, as was said above.
	if (totals->events_lost > report->losses_told && report->complete)
		query_context_warn(asked, "%s events were lost; the figures are too small",
				   STR_COUNT(totals->events_lost));
	if (reader_unknown(asked->reader))
		query_context_warn(asked, "%s records are of kinds that this version does not know",
				   STR_COUNT(reader_unknown(asked->reader)));
	if (incomplete.deep)
		query_context_warn(asked,
				   "%s allocation%s a stack deeper than the 8,192 frames that are "
				   "recorded: outer callers are missing",
				   STR_COUNT(incomplete.deep),
				   incomplete.deep == 1 ? " has" : "s have");
	if (incomplete.unproven) {
		const char *runtime = wants_jit(report);
		bool erlang = runtime && strcmp(runtime, "erlang") == 0;

		query_context_warn(asked,
				   "%s allocation%s a stack that is not proven whole: it passes "
				   "code without unwind tables, and callers may be missing%s%s%s%s",
				   STR_COUNT(incomplete.unproven),
				   incomplete.unproven == 1 ? " has" : "s have",
				   runtime ? " (what " : "", runtime ? runtime : "",
				   runtime ? " generates has names with record --jit" : "",
				   erlang    ? " and ERL_FLAGS=\"+JPperf true\")"
				   : runtime ? ")"
					     : "");
	}
}

// A snapshot has what lived; sums of all that was ever allocated are not of one moment.
bool report_knows(const struct report *report, enum sites_question question)
{
	const struct reader *reader = report->asked->reader;
	const struct trace_info *info = reader_info(reader);

	if (question == SITES_PEAK)
		return !cautions_lacks(info, "totals") && !cautions_lacks(info, "leaks");
	if (question == SITES_TEMPORARY)
		return !reader_is_estimated(reader) && !cautions_lacks(info, "snapshots") &&
		       !cautions_lacks(info, "leaks");
	return true;
}

// A process that was attached to frees blocks that the trace does not have from their beginning;
// they are no orphans. TRACE_NONE: of all selected processes.
uint64_t report_before(const struct report *report, process_id process)
{
	const struct reader *reader = report->asked->reader;
	uint64_t frees = 0;

	ASSERT(process == TRACE_NONE || process < reader_processes_count(reader));
	for (process_id id = 0; id < reader_processes_count(reader); id++)
		if ((process == TRACE_NONE || process == id) &&
		    reader_process(reader, id)->start == TRACE_START_ATTACH &&
		    query_has_process(&report->asked->selection.query, id))
			frees += heap_process(report->heap, id)->inherited_frees;
	return frees;
}

// When the process last allocated, as far as it is selected.
static uint64_t last_allocation(const struct report *report, process_id process)
{
	size_t count;
	const struct heap_site *sites = heap_sites(report->heap, &count);
	uint64_t last_ns = 0;

	for (size_t i = 0; i < count; i++)
		if (sites[i].process == process && sites[i].last_ns > last_ns)
			last_ns = sites[i].last_ns;
	return last_ns;
}

// An end is late by milliseconds, or by some hundred on a busy machine. Who has allocated since the
// peak lived at it.
uint32_t report_peak_processes(const struct report *report, uint32_t *late)
{
	const struct reader *reader = report->asked->reader;
	uint64_t peak_ns = heap_totals(report->heap)->counts.peak_ns;
	uint32_t count = 0;

	*late = 0;
	for (process_id id = 0; id < reader_processes_count(reader); id++) {
		const struct trace_process *process = reader_process(reader, id);

		if (process->began_ns > peak_ns || process->ended_ns < peak_ns ||
		    !heap_process(report->heap, id)->allocated.count ||
		    !query_has_process(&report->asked->selection.query, id))
			continue;
		count++;
		*late += process->end_late && process->ended_ns - peak_ns < END_LATE_NS &&
			 last_allocation(report, id) < peak_ns;
	}
	return count;
}

// Events are read once; warnings, names and rows are made of what was counted. Stacks are named
// only after the pass, and only those that have a site.
struct report *report_new(struct query_context *asked, const struct report_options *options,
			  enum sites_merge merge, struct err *err)
{
	enum progress_mode mode = asked->options.window.progress;
	struct report *report = mem_alloc(1, sizeof *report);
	struct progress progress;
	struct messages messages = { .report = report };
	struct sites_options wanted;
	struct err damage = { 0 };

	report->asked = asked;
	report->options = options;
	if (!select_allocations(report, err)) {
		report_free(report);
		return NULL;
	}
	query_context_whole(asked, &report->whole, true, keep_note, &messages);
	tell_messages(&messages);
	report->heap = report->whole.heap;
	report->complete = reader_ok(asked->reader, &damage);
	warn_of_damage(report);
	query_context_counted(asked, &heap_totals(report->heap)->counts);

	progress_begin(&progress, mode, "naming", whole_sites_count(&report->whole));
	reached_read(&report->reached, asked);
	wanted = (struct sites_options){ merge, options->rows_max, options->bytes_min,
					 report->reached.known ? &report->reached : NULL,
					 !report_knows(report, SITES_PEAK) << SITES_PEAK |
						 !report_knows(report, SITES_TEMPORARY)
							 << SITES_TEMPORARY };
	if (report->reached.asked && report->reached.why)
		query_context_warn(asked, report->reached.why);
	sites_init(&report->sites, &wanted, &report->whole, asked->reader, asked->names, &progress);
	progress_end(&progress);
	return report;
}

void report_free(struct report *report)
{
	if (!report)
		return;
	sites_fini(&report->sites);
	reached_fini(&report->reached);
	whole_fini(&report->whole);
	mem_free(report);
}

typedef void own_heap_tell(void *context, const struct report_own_heap *heap);

// Memory that is outside the heap: of a runtime that is known by the functions that map its memory
// alone, or (`heap` is NULL) of none that is known. In the process where most is.
struct own_heap_row {
	const char *heap; // a constant text
	uint64_t bytes;
	uint64_t most;  // of these, by one stack
	stack_id stack; // that one
};

struct own_heaps {
	const struct report *report;
	struct own_heap_row *rows;
	size_t count, capacity;
};

static void note_own_heap(struct own_heaps *heaps, const struct own_heap_row *row)
{
	size_t at = 0;

	while (at < heaps->count && heaps->rows[at].heap != row->heap)
		at++;
	if (at == heaps->count)
		*MEM_ADD(heaps->rows, heaps->count, heaps->capacity) = *row;
	else if (row->bytes > heaps->rows[at].bytes)
		heaps->rows[at] = *row;
}

// A process of a known language has its line already. What is no runtime's is noted where it is
// the larger part.
static void add_own_heap(void *context, process_id process, const struct outside *outside)
{
	struct own_heaps *heaps = context;
	const struct report *report = heaps->report;
	const struct trace_process *whose = reader_process(report->asked->reader, process);

	if (own_heap_of(whose) || (outside->heap && strcmp(outside->heap, "Python heap") == 0 &&
				   own_heap_languages(report->asked) != OWN_HEAP_NO_LANGUAGE))
		return;
	if (outside->heap)
		note_own_heap(heaps, &(struct own_heap_row){ .heap = outside->heap,
							     .bytes = outside->runtime_bytes });
	if (outside->runtime_bytes < outside->bytes / 2)
		note_own_heap(heaps, &(struct own_heap_row){ .bytes = outside->bytes -
								      outside->runtime_bytes,
							     .most = outside->most,
							     .stack = outside->stack });
}

static void tell_own_heap(const struct report *report, const struct own_heap_row *row,
			  own_heap_tell *tell, void *context)
{
	bool several = reader_processes_count(report->asked->reader) > 1;
	const char *where = several ? " in one process" : "";
	struct str text = { 0 }, function = { 0 }, name = { 0 };

	if (row->heap) {
		str_format(&text,
			   "%s, as mappings: %s%s when most was committed; what is inside of it is "
			   "in no figure (window --layer vm --by heap)",
			   row->heap, STR_BYTES(row->bytes), where);
	} else {
		str_format(&text,
			   "%s%s when most was committed, in mappings that the program asked for "
			   "itself",
			   STR_BYTES(row->bytes), where);
		if (row->stack) {
			names_add_function(report->asked->names, row->stack, false, &function);
			cxxname_shorten(str_get(&function), OUTSIDE_NAME_COLUMNS, &name);
			str_format(&text, ", %s of it in %s", STR_BYTES(row->most), str_get(&name));
		}
		str_add(&text, "; what is inside of it is in no figure (window --layer vm)");
	}
	tell(context, &(struct report_own_heap){ .outside = !row->heap,
						 .heap = row->heap,
						 .bytes = row->bytes,
						 .text = str_get(&text) });
	STR_FINI(&text, &function, &name);
}

// Where blocks were half of what was committed, or more, they are what the report is about, and the
// trace is not read once more for the rest.
static void tell_outside(const struct report *report, own_heap_tell *tell, void *context)
{
	const struct space_totals *totals = &report->whole.vm;
	const struct heap_counts *counts = &heap_totals(report->heap)->counts;
	struct own_heaps heaps = { .report = report };

	if (counts->peak.bytes >= totals->committed_peak_bytes / 2)
		return;
	outside_find(report->asked, totals, add_own_heap, &heaps);
	for (size_t i = 0; i < heaps.count; i++)
		tell_own_heap(report, &heaps.rows[i], tell, context);
	mem_free(heaps.rows);
}

// Blocks of malloc's that are handed out in pieces, as far as they are among the rows.
static void tell_slabs(const struct report *report, own_heap_tell *tell, void *context)
{
	static const struct report_own_heap kinds[] = {
		{ .heap = "GLib's slices",
		  .text = "GLib's slices (GList, GHashTable …) as slabs, which stay when what is "
			  "in them is freed; object by object only with G_SLICE=always-malloc" },
		{ .heap = "Tcl's allocator",
		  .text = "Tcl's allocator as slabs of 16 KiB, which stay when what is in them is "
			  "freed: a slab is of who asked when there was no piece left" },
	};
	const struct sites *sites = &report->sites;
	bool told[sizeof(kinds) / sizeof(*kinds)] = { false };

	for (size_t i = 0; i < sites->count; i++) {
		const char *slabs = own_heap_slabs(report->asked->names, sites->rows[i].stack);

		for (size_t k = 0; slabs && k < sizeof(kinds) / sizeof(*kinds); k++) {
			if (told[k] || strcmp(slabs, kinds[k].heap) != 0)
				continue;
			tell(context, &kinds[k]);
			told[k] = true;
		}
	}
}

// No row came by operators that the program has of its own: what they hand out is not malloc's, or
// they jump to malloc as the last that they do, and are in no stack. In a file with an allocator
// that is seen, that is where they jump to.
static bool is_without(const struct report *report, const struct trace_process *process,
		       const char *operators)
{
	const struct sites *sites = &report->sites;

	for (uint32_t i = 0; i < process->allocators_count; i++) {
		const struct trace_allocator *each = &process->allocators[i];
		const char *file = each->file ? each->file : process->exe;

		if (each->seen >= TRACE_SEEN_EXPORTED && each->seen <= TRACE_SEEN_DEBUG && file &&
		    strcmp(file, operators) == 0)
			return false;
	}

	for (size_t i = 0; i < sites->count; i++)
		if (own_heap_by_operators(report->asked->names, sites->rows[i].stack, operators))
			return false;
	return true;
}

// Each file with such operators once. Filters would leave out rows that came by them.
static void tell_operators(const struct report *report, own_heap_tell *tell, void *context)
{
	const struct reader *reader = report->asked->reader;
	const char **files = NULL;
	size_t count = 0, capacity = 0;
	struct str text = { 0 };

	if (!query_context_selects_all(report->asked))
		return;
	for (process_id id = 0; id < reader_processes_count(reader); id++) {
		const struct trace_process *process = reader_process(reader, id);
		const char *file = own_heap_operators(process);
		size_t i = 0;

		while (file && i < count && strcmp(files[i], file) != 0)
			i++;
		if (!file || i < count)
			continue;
		*MEM_ADD(files, count, capacity) = file;
		if (!is_without(report, process, file))
			continue;
		str_clear(&text);
		str_format(&text,
			   "operators new and delete of %s's own, by which no site came that is "
			   "listed: what they hand out from elsewhere than malloc is in no figure "
			   "(the pools of tidemark.h record it)",
			   str_last_part(file));
		tell(context, &(struct report_own_heap){ .text = str_get(&text) });
	}
	mem_free(files);
	str_fini(&text);
}

// Slabs are looked for among the rows: so is said what they are.
void report_own_heaps(const struct report *report, own_heap_tell *tell, void *context)
{
	const struct reader *reader = report->asked->reader;
	struct map said = { 0 };
	bool others = false;

	for (process_id id = 0; id < reader_processes_count(reader); id++) {
		const char *heap = own_heap_of(reader_process(reader, id));
		bool added = false;

		if (!query_has_process(&report->asked->selection.query, id))
			continue;
		others |= !heap;
		if (heap)
			map_put(&said, (uint64_t)(uintptr_t)heap, &added);
		if (added)
			tell(context, &(struct report_own_heap){ .text = heap });
	}
	map_fini(&said);
	if (others)
		tell_outside(report, tell, context);
	tell_slabs(report, tell, context);
	tell_operators(report, tell, context);
}

// Pools that nothing was taken from, or that the filters leave out, are passed over.
const struct trace_heap *report_next_pool(const struct report *report, heap_id id)
{
	const struct query *query = &report->asked->selection.query;

	while (++id < reader_heaps_count(report->asked->reader)) {
		const struct trace_heap *heap = reader_heap(report->asked->reader, id);

		if (reader_heap_is_pool(heap) && query_has_process(query, heap->process) &&
		    query_has_heap(query, id) && pool_totals_get(report->whole.pools, id)->used)
			return heap;
	}
	return NULL;
}

// Signals have the numbers of Linux, wherever the trace is read.
static const char *signal_name(uint32_t number)
{
	static const char *const names[] = {
		NULL,     "HUP",  "INT",    "QUIT", "ILL",   "TRAP", "ABRT", "BUS",
		"FPE",    "KILL", "USR1",   "SEGV", "USR2",  "PIPE", "ALRM", "TERM",
		"STKFLT", "CHLD", "CONT",   "STOP", "TSTP",  "TTIN", "TTOU", "URG",
		"XCPU",   "XFSZ", "VTALRM", "PROF", "WINCH", "POLL", "PWR",  "SYS",
	};

	return number < sizeof names / sizeof *names ? names[number] : NULL;
}

const char *report_exit(const struct trace_process *process, char out[static 32])
{
	const char *name;

	switch (process->exit) {
	case TRACE_EXIT_CODE:
		snprintf(out, 32, "exit %" PRIu32, process->exit_value);
		break;
	case TRACE_EXIT_SIGNAL:
		name = signal_name(process->exit_value);
		if (name)
			snprintf(out, 32, "signal SIG%s", name);
		else
			snprintf(out, 32, "signal %" PRIu32, process->exit_value);
		break;
	case TRACE_EXIT_EXEC:
		return "exec";
	default:
		return "unknown";
	}
	return out;
}

// What ends a program of Windows ends it with a status. Source: Microsoft, "NTSTATUS Values"
// ([MS-ERREF] 2.3.1); the last one is what Microsoft's C++ compilers throw with.
static const char *status_name(uint32_t status)
{
	static const struct {
		uint32_t status;
		const char *name;
	} names[] = {
		{ 0x80000003, "breakpoint" },
		{ 0xc0000005, "access violation" },
		{ 0xc0000006, "page not read" },
		{ 0xc0000017, "no memory" },
		{ 0xc000001d, "illegal instruction" },
		{ 0xc000007b, "bad image" },
		{ 0xc0000094, "division by zero" },
		{ 0xc00000fd, "stack overflow" },
		{ 0xc0000135, "DLL not found" },
		{ 0xc0000139, "entry point not found" },
		{ 0xc000013a, "Ctrl-C" },
		{ 0xc0000142, "DLL did not start" },
		{ 0xc0000374, "heap corruption" },
		{ 0xc0000409, "fail fast" },
		{ 0xc0000417, "invalid C runtime parameter" },
		{ 0xe06d7363, "C++ exception" },
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].status == status)
			return names[i].name;
	return NULL;
}

// Codes from 0x80000000 on are no program's own on Windows, but the system's words for why it
// ended.
const char *report_exit_words(const struct trace_process *process, char out[static 48])
{
	const char *name;

	if (process->exit != TRACE_EXIT_CODE || process->exit_value < UINT32_C(0x80000000))
		return report_exit(process, out);
	name = status_name(process->exit_value);
	snprintf(out, 48, "exit 0x%08" PRIx32 "%s%s", process->exit_value, name ? ", " : "",
		 name ? name : "");
	return out;
}

const char *report_ending(const struct reader *reader, process_id id, char out[static 48])
{
	const struct trace_process *process = reader_process(reader, id);

	if (process->exit == TRACE_EXIT_UNKNOWN)
		return cautions_is_import(reader_info(reader)) ? "an end that is not known"
							       : "still running";
	return report_exit_words(process, out);
}
