// Findings about the address space: what fails though enough is free, threads' stacks that take
// what is scarce, reservations on Windows that lose the rest of their slot. All three matter only
// where addresses are few: processes of 32 bits, or under a limit of what may be mapped. And memory
// that is no heap's, of which the heap's figures say nothing.
#include "report/find/findings_own.h"

#include "base/map.h"
#include "base/mem.h"
#include "report/ask/moment_view.h"
#include "report/ask/own_heap.h"
#include "report/ask/pages.h"
#include "report/find/outside.h"

#include <string.h>

enum {
	SCARCE_PART = 8, // of what may be mapped: what threads' stacks take
	UNUSED_PART = 8, // of a stack: what is resident
	UNALIGNED_LEAST = 32 << 20,
};

// A size that no process of 32 bits can have.
#define ABSURD (UINT64_C(1) << 31)

// Bytes of addresses that a process may have: of 32 bits 4 GiB at most, and a limit (ulimit -v) may
// make it less.
static uint64_t may_map(const struct findings *findings, const struct space *space, process_id id)
{
	const struct trace_process *process = reader_process(findings->asked->reader, id);
	uint64_t most = space_end(space, findings->asked->reader, id);

	ASSERT(id < reader_processes_count(findings->asked->reader));
	return process->mapped_limit && process->mapped_limit < most ? process->mapped_limit : most;
}

// The address space alone, without heap blocks, which cost most of the time. The caller frees it.
static struct present *read_spaces(const struct findings *findings,
				   const struct present_options *given)
{
	struct present_options options = *given;

	options.query = &findings->asked->selection.query;
	options.inherits = TRACE_NONE;
	options.undated = options.spaces_only = true;
	return moment_view_find(findings->asked, &options);
}

// ---- no room ----

enum { FAILURES_MAX = 1000 }; // that are weighed, of all processes together

// Each event, while the space is as it was when a call failed.
static void before_event(void *context, const struct space *space, const struct trace_event *event)
{
	failures_before(context, space, event);
}

static void on_note(void *context, const struct space *space, const struct trace_note *note)
{
	failures_noted(context, space, note);
}

// Whether any call failed at all: else the address space need not be read.
static bool any_failed(const struct findings_facts *facts, bool windows)
{
	const struct space_count *calls = facts->whole.vm.calls;

	return facts->failed_count > 0 || calls[SPACE_MMAP].failed || calls[SPACE_MREMAP].failed ||
	       calls[SPACE_BRK].failed || calls[SPACE_SHMAT].failed ||
	       (calls[SPACE_MPROTECT].failed && windows);
}

const struct failures *findings_space_failures(struct findings *findings)
{
	struct findings_facts *facts = findings->facts;
	const struct present_options options = {
		.at_exit = true,
		.before = before_event,
		.noted = on_note,
		.context = &facts->failures,
	};

	if (facts->failures.asked)
		return &facts->failures;
	facts->failures = (struct failures){
		.asked = findings->asked,
		.query = &findings->asked->selection.query,
		.process = TRACE_NONE,
		.most = FAILURES_MAX,
		.no_allocators = true,
	};
	if (any_failed(facts, reader_is_windows(findings->asked->reader)))
		present_free(read_spaces(findings, &options));
	return &facts->failures;
}

// Who is in the way, and what is lost to alignment.
static void add_reasons(const struct findings *findings, const struct failure *failure,
			uint64_t count, struct str *text)
{
	const struct mapper *mapper = &failure->culprit;

	str_format(text, "by what was mapped when it failed, at %s; %s such failure%s",
		   STR_DURATION(failure->time_ns), STR_COUNT(count), count == 1 ? "" : "s");
	if (mapper->count)
		str_format(text,
			   "; %s mapping%s of %s (%s) cut%s it up: without %s the largest "
			   "hole would have %s",
			   STR_COUNT(mapper->count), mapper->count == 1 ? "" : "s",
			   mapper->stack ? findings_function(findings, mapper->stack)
					 : space_owner_word((enum space_owner)mapper->owner),
			   STR_BYTES(mapper->bytes), mapper->count == 1 ? "s" : "",
			   mapper->count == 1 ? "it" : "them", STR_BYTES(mapper->largest_without));
	if (failure->unusable)
		str_format(text,
			   "; of what is free, %s are lost: Windows reserves at multiples of "
			   "64 KiB, and the rest of one that is taken in part can be no other's",
			   STR_BYTES(failure->unusable));
}

// The window of the finding is the last nanosecond before the failure.
static void tell_holes(struct findings *findings, const struct findings_kind *kind,
		       const struct failure *failure, uint64_t count)
{
	struct finding *finding =
		findings_add(findings, kind, FINDINGS_CERTAIN, failure->process, failure->stack);
	bool full = failure->holes.bytes < failure->size;
	struct str why = { 0 };

	ASSERT(count > 0 && failure->holes.largest < failure->size);
	findings_say(
		&finding->what, "%s asks for %s (%s) and gets none%s%s%s the largest hole has %s.",
		findings_function(findings, failure->stack), STR_BYTES(failure->size),
		failures_word(failure), full ? ": " : " though ", STR_BYTES(failure->holes.bytes),
		full ? " of addresses are free," : " are free:", STR_BYTES(failure->holes.largest));
	add_reasons(findings, failure, count, &why);
	findings_say(&finding->why, "%s", str_get(&why));
	findings_say(&finding->advice,
		     "smaller pieces; what cuts the address space up (the map names it) first and "
		     "together%s; or 64 bits",
		     failure->unusable ? ", in one reservation of whole 64 KiB of which parts are "
					 "committed"
				       : "");
	if (failure->culprit.stack) {
		finding->other_role = "held by";
		finding->other_stack = failure->culprit.stack;
	}
	findings_figure(finding, "size_bytes", "asked for", FINDINGS_BYTES, failure->size);
	findings_figure(finding, "free_bytes", "free", FINDINGS_BYTES, failure->holes.bytes);
	findings_figure(finding, "largest_bytes", "largest hole", FINDINGS_BYTES,
			failure->holes.largest);
	findings_figure(finding, "holes", "holes", FINDINGS_COUNT, failure->holes.count);
	findings_figure(finding, "failed", "failures", FINDINGS_COUNT, count);
	if (failure->culprit.count)
		findings_figure(finding, "without_bytes", "without who is in the way",
				FINDINGS_BYTES, failure->culprit.largest_without);
	if (failure->unusable)
		findings_figure(finding, "unusable_bytes", "lost to alignment", FINDINGS_BYTES,
				failure->unusable);
	finding->tab = "space";
	finding->from_ns = failure->time_ns ? failure->time_ns - 1 : 0;
	finding->to_ns = failure->time_ns;
	findings_command(findings, finding, "map", "", false, false);
	str_fini(&why);
}

// Whether a call failed for how the address space is cut up, or for its being full. A size that no
// process of 32 bits can have says nothing of it; neither does one that is more than all that is
// free and than half of the whole, as 2,032 MiB of the 2 GiB that a program of Windows has.
static bool lacks_room(const struct failures *failures, const struct failure *failure)
{
	return failures_lacks_room(failures, failure) && failure->size < ABSURD &&
	       (failure->holes.bytes >= failure->size ||
		failure->size <= (failure->high - failure->low) / 2);
}

// Of several failures of a process the one with most bytes free is shown: it is the clearest. A
// process without failures was not short of addresses, however they are cut.
bool findings_holes(struct findings *findings, const struct findings_kind *kind, struct err *)
{
	const struct failures *failures = findings_space_failures(findings);
	struct map shown = { 0 }; // by process: the number of its failure, from 1

	for (size_t i = 0; i < failures->count; i++) {
		uint64_t *at = map_put(&shown, failures->list[i].process, NULL);

		if (lacks_room(failures, &failures->list[i]) &&
		    (*at == 0 ||
		     failures->list[*at - 1].holes.bytes < failures->list[i].holes.bytes))
			*at = i + 1;
	}
	for (size_t i = 0; i < failures->count; i++) {
		const struct failure *failure = &failures->list[i];
		uint64_t count = 0;

		if (*map_find(&shown, failure->process) != i + 1)
			continue;
		for (size_t k = 0; k < failures->count; k++)
			if (failures->list[k].process == failure->process &&
			    lacks_room(failures, &failures->list[k]))
				count += failures->list[k].count;
		tell_holes(findings, kind, failure, count);
	}
	map_fini(&shown);
	return true;
}

// ---- threads' stacks ----

// In the snapshot with most resident memory, where stacks are used as much as they ever are. For
// example 200 stacks of 8 MiB are 1.6 GiB: more than an eighth of the 4 GiB that a process of 32
// bits has, so it is told if less than 200 MiB of them are resident. Guards are counted as bytes of
// stacks and not as stacks. The call that is named is that of the stack at the highest address: one
// speaks for all.
bool findings_thread_stacks(struct findings *findings, const struct findings_kind *kind,
			    struct err *)
{
	struct present_options options = { .edge = { .exact = true } };
	struct trace_snapshot snapshot = { 0 };
	const struct ranges *ranges;
	struct present *present;
	struct pages pages = { 0 };
	uint64_t bytes = 0, resident = 0, count = 0, most;
	stack_id stack = 0;

	if (!findings_load_largest(findings, &snapshot))
		return true;
	options.edge.number = snapshot.began;
	present = read_spaces(findings, &options);
	pages_init(&pages, &snapshot);
	ranges = space_ranges(present_space(present), snapshot.process);
	most = may_map(findings, present_space(present), snapshot.process);
	for (struct range *range = ranges ? ranges_from(ranges, 0) : NULL; range;
	     range = ranges_from(ranges, range->end)) {
		if (space_owner(present_space(present), range) != SPACE_THREAD_STACK)
			continue;
		bytes += range->end - range->start;
		resident += pages_between(&pages, range->start, range->end);
		count += range->protection != 0; // its guard is a range of its own
		stack = range->stack;
	}
	ASSERT(resident <= bytes);
	if (bytes >= most / SCARCE_PART && resident < bytes / UNUSED_PART) {
		struct finding *finding =
			findings_add(findings, kind, FINDINGS_CERTAIN, snapshot.process, stack);

		findings_say(&finding->what,
			     "%s threads' stacks take %s of %s that the process may map, and use "
			     "%s.",
			     STR_COUNT(count), STR_BYTES(bytes), STR_BYTES(most),
			     STR_BYTES(resident));
		findings_say(&finding->why, "by the kernel's list of pages in the snapshot with "
					    "most resident memory");
		findings_say(
			&finding->advice,
			"smaller stacks (pthread_attr_setstacksize, ulimit -s), fewer threads");
		findings_figure(finding, "stacks", "stacks", FINDINGS_COUNT, count);
		findings_figure(finding, "bytes", "reserved", FINDINGS_BYTES, bytes);
		findings_figure(finding, "resident_bytes", "resident", FINDINGS_BYTES, resident);
		findings_figure(finding, "limit_bytes", "may be mapped", FINDINGS_BYTES, most);
		finding->tab = "space";
		findings_command(findings, finding, "map", "", false, false);
	}
	pages_fini(&pages);
	present_free(present);
	snapshot_fini(&snapshot);
	return true;
}

// ---- reservations that do not fill their slots ----

// Reservations of one stack, and the addresses that are lost after them.
struct lost_rest {
	uint64_t count, bytes;
};

// Whether a range is the system's and begins within a slot, where nothing can be reserved apart:
// what Wine says of the rest of a slot that is taken in part, beyond what it has set aside.
static bool is_rest(const struct space *space, const struct range *range)
{
	return range->start % SPACE_SLOT != 0 && !range->stack && range->protection == 0 &&
	       space_owner(space, range) == SPACE_KERNEL;
}

// What is lost behind the ranges of one process, by the stack that reserved. For example a range
// that ends at 0x15000: nothing else is reserved up to the next multiple of 64 KiB, 0x20000, so 44
// KiB are lost, unless another range begins before that that is no such rest itself.
static void add_rests(const struct space *space, const struct ranges *ranges, struct map *places,
		      struct lost_rest **rests, stack_id **stacks, size_t *count)
{
	size_t capacity = 0, stacks_capacity = 0;

	for (struct range *range = ranges_from(ranges, 0), *next; range; range = next) {
		uint64_t slot_end = (range->end + SPACE_SLOT - 1) / SPACE_SLOT * SPACE_SLOT;
		uint64_t *at;
		bool added;

		next = ranges_from(ranges, range->end);
		if (range->file || !range->stack || slot_end == range->end ||
		    (next && next->start < slot_end && !is_rest(space, next)))
			continue;
		at = map_put(places, range->stack, &added);
		if (added) {
			*at = *count;
			MEM_ROOM(*rests, capacity, *count + 1);
			MEM_ROOM(*stacks, stacks_capacity, *count + 1);
			(*rests)[*count] = (struct lost_rest){ 0 };
			(*stacks)[(*count)++] = range->stack;
		}
		(*rests)[*at].count++;
		(*rests)[*at].bytes += slot_end - range->end;
	}
}

static void tell_unaligned(struct findings *findings, const struct findings_kind *kind,
			   process_id process, stack_id stack, const struct lost_rest *rest)
{
	struct finding *finding = findings_add(findings, kind, FINDINGS_CERTAIN, process, stack);

	ASSERT(rest->count > 0 && rest->bytes < rest->count * SPACE_SLOT);
	findings_say(&finding->what,
		     "%s reservations of %s lose %s of addresses: what is left of their last 64 "
		     "KiB can be no other's.",
		     STR_COUNT(rest->count), findings_function(findings, stack),
		     STR_BYTES(rest->bytes));
	findings_say(&finding->why, "Windows reserves at multiples of 64 KiB; counted at the end");
	findings_say(&finding->advice,
		     "reserve multiples of 64 KiB, one large piece, and commit parts of it");
	findings_figure(finding, "reservations", "reservations", FINDINGS_COUNT, rest->count);
	findings_figure(finding, "lost_bytes", "lost", FINDINGS_BYTES, rest->bytes);
	finding->tab = "space";
	findings_command(findings, finding, "map", "", false, false);
}

// Only of 32 bits, where addresses are scarce, and by what is reserved at the end. The address
// space is read once for all processes, and only if there is such a process.
bool findings_unaligned(struct findings *findings, const struct findings_kind *kind, struct err *)
{
	const struct reader *reader = findings->asked->reader;
	const struct present_options options = { .at_exit = true };
	struct present *present = NULL;

	if (strncmp(reader_info(reader)->host, "Windows", 7) != 0)
		return true;
	for (process_id id = 0; id < reader_processes_count(reader); id++) {
		struct lost_rest *rests = NULL;
		stack_id *stacks = NULL;
		struct map places = { 0 };
		const struct ranges *ranges;
		size_t count = 0;

		if (reader_process(reader, id)->bits != 32 ||
		    !query_has_process(&findings->asked->selection.query, id))
			continue;
		if (!present)
			present = read_spaces(findings, &options);
		ranges = space_ranges(present_space(present), id);
		if (ranges)
			add_rests(present_space(present), ranges, &places, &rests, &stacks, &count);
		for (size_t i = 0; i < count; i++)
			if (rests[i].bytes >= UNALIGNED_LEAST)
				tell_unaligned(findings, kind, id, stacks[i], &rests[i]);
		MEM_FREE(rests, stacks);
		map_fini(&places);
	}
	present_free(present);
	return true;
}

// ---- memory outside the heap ----

// If half of it or more is of a known runtime's heap, the advice is about that runtime; else
// nothing is known of what is inside.
static void tell_outside(struct findings *findings, const struct findings_kind *kind,
			 process_id process, const struct outside *outside)
{
	const bool windows = reader_is_windows(findings->asked->reader);
	const char *other =
		windows ? "look at the layer of virtual memory by stack; if the program has an "
			  "allocator of its own there, its calls are not recorded on Windows "
			  "(tidemark.h lets it tell of them)"
			: "look at the layer of virtual memory; if the program has an allocator of "
			  "its own there, tidemark.h lets it tell of its blocks (pools), and one "
			  "that is known by name (jemalloc, tcmalloc, mimalloc, rpmalloc) is "
			  "recorded where its symbols are (a -dbg package)";
	struct finding *finding =
		findings_add(findings, kind, FINDINGS_CERTAIN, process, outside->stack);
	bool mostly = outside->heap && outside->runtime_bytes >= outside->bytes / 2;

	ASSERT(outside->most <= outside->bytes && outside->runtime_bytes <= outside->bytes);
	findings_say(&finding->what,
		     "%s of %s committed are outside the heap: the program asked the system for "
		     "them itself, %s of them in %s.%s%s%s%s",
		     STR_BYTES(outside->bytes), STR_BYTES(outside->bytes + outside->heap_bytes),
		     STR_BYTES(outside->most), findings_function(findings, outside->stack),
		     outside->heap ? " " : "",
		     outside->heap ? STR_BYTES(outside->runtime_bytes) : "",
		     outside->heap ? " are of a runtime's heap: " : "",
		     outside->heap ? outside->heap : "");
	findings_say(&finding->why,
		     "by the owners of what was mapped when most was committed; what "
		     "is inside of it is in no figure of the heap");
	findings_say(&finding->advice, "%s",
		     mostly ? own_heap_advice(outside->heap, windows) : other);
	findings_figure(finding, "outside_bytes", "outside the heap", FINDINGS_BYTES,
			outside->bytes);
	findings_figure(finding, "heap_bytes", "the heap's", FINDINGS_BYTES, outside->heap_bytes);
	findings_figure(finding, "most_bytes", "of one stack", FINDINGS_BYTES, outside->most);
	finding->tab = "space";
	if (outside->heap)
		findings_figure(finding, "runtime_bytes", outside->heap, FINDINGS_BYTES,
				outside->runtime_bytes);
	findings_command(findings, finding, "window",
			 outside->heap ? "--layer vm --by heap,stack" : "--layer vm", false, false);
}

struct outside_telling {
	struct findings *findings;
	const struct findings_kind *kind;
};

static void tell_each(void *context, process_id process, const struct outside *outside)
{
	const struct outside_telling *telling = context;

	tell_outside(telling->findings, telling->kind, process, outside);
}

bool findings_outside(struct findings *findings, const struct findings_kind *kind, struct err *)
{
	struct outside_telling telling = { findings, kind };

	outside_find(findings->asked, &findings->facts->whole.vm, tell_each, &telling);
	return true;
}
