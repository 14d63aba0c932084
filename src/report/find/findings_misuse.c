// Findings about what is wrong, or has failed: blocks freed twice, pointers that begin no block,
// new with free, calls that returned no memory, processes that were killed.
//
// Each kind has the same shape: go through the facts that were gathered in one pass
// (findings_lives.c), put together what is from one place, decide how sure it is, and say what
// happened, why we think so and what to do. For example, 40 frees from one line of blocks that
// were freed already are one finding, "a block of 64 B at 0x5010 is freed twice; such frees from
// there: 40", with the time of the first.
//
// How sure: certain, where the trace leaves no other explanation; likely, where a program with an
// allocator of its own could have given the block out again without our seeing it.
#include "report/find/findings_own.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "report/ask/own_heap.h"

#include <inttypes.h>
#include <string.h>

enum {
	SIGNAL_KILL = 9,
	// What a process must hold when it is killed: less is not why.
	KILLED_BYTES_MIN = 64 << 20,
	KILLED_GROUP_PART = 4, // a fourth of what the group may hold
	ABSURD_SHIFT = 47,     // beyond what a process can map
};

// ---- frees of what does not live ----

// A finding about one free of many: the window of its command is the step of that free alone.
static void add_free(struct findings *findings, const struct findings_kind *kind,
		     const struct findings_orphan *orphan, enum findings_sure sure, uint64_t count,
		     const char *what)
{
	struct finding *finding =
		findings_add(findings, kind, sure, orphan->process, orphan->stack);

	ASSERT(count > 0);
	findings_say(&finding->what, "%s%s%s", what, count > 1 ? "; such frees from there: " : ".",
		     count > 1 ? STR_COUNT(count) : "");
	finding->from_ns = orphan->time_ns ? orphan->time_ns - 1 : 0;
	finding->to_ns = orphan->time_ns;
	findings_figure(finding, "count", "times", FINDINGS_COUNT, count);
	findings_figure(finding, "address", "address", FINDINGS_COUNT, orphan->address);
	findings_figure(finding, "time_ns", "at", FINDINGS_TIME, orphan->time_ns);
	if (orphan->size)
		findings_figure(finding, "size_bytes", "of the block", FINDINGS_BYTES,
				orphan->size);
	findings_command(findings, finding, "dump", "", false, false);
}

// Whether the process's allocator is its own, so that functions of it may not be seen, which give
// addresses out that free takes.
static bool has_own_allocator(const struct findings *findings, process_id id)
{
	const struct trace_process *process = reader_process(findings->asked->reader, id);

	for (uint32_t i = 0; process && i < process->allocators_count; i++)
		if (process->allocators[i].seen != TRACE_SEEN_NAME &&
		    process->allocators[i].seen != TRACE_SEEN_OPERATORS)
			return true;
	return false;
}

// How many of the list's orphans, from one number to another, are of the same kind and from the
// same place as this one. An earlier one speaks for those after it.
static uint64_t count_alike(const struct findings_facts *facts, const struct findings_orphan *as,
			    size_t from, size_t to)
{
	uint64_t count = 0;

	ASSERT(to <= facts->orphans_count);
	for (size_t i = from; i < to; i++) {
		const struct findings_orphan *each = &facts->orphans[i];

		count += each->process == as->process && each->stack == as->stack &&
			 each->freed == as->freed && each->inside == as->inside &&
			 each->mixed == as->mixed && each->refused == as->refused &&
			 each->allocated_by == as->allocated_by;
	}
	return count;
}

// Where the heap itself refused the free (Windows) it is certain. Without stacks of frees the stack
// that is shown is that of the allocation.
bool findings_freed_twice(struct findings *findings, const struct findings_kind *kind, struct err *)
{
	const struct findings_facts *facts = findings->facts;

	for (size_t i = 0; i < facts->orphans_count; i++) {
		const struct findings_orphan *orphan = &facts->orphans[i];
		bool own = has_own_allocator(findings, orphan->process);
		struct finding *finding;
		char what[96];

		if (!orphan->freed || count_alike(facts, orphan, 0, i) > 0)
			continue;
		snprintf(what, sizeof what, "a block of %s at 0x%" PRIx64 " is freed twice",
			 STR_BYTES(orphan->size), orphan->address);
		add_free(findings, kind, orphan,
			 orphan->refused ? FINDINGS_CERTAIN
			 : own           ? FINDINGS_POSSIBLE
					 : FINDINGS_LIKELY,
			 count_alike(facts, orphan, i, facts->orphans_count), what);
		finding = &findings->list[findings->count - 1];
		finding->stack = orphan->stack ? orphan->stack : orphan->allocated_by;
		finding->other_role = orphan->stack ? "first by" : NULL;
		finding->other_stack = orphan->freed_by;
		findings_say(
			&finding->why,
			"it had been freed, and no allocation was seen at the address since%s%s",
			own ? "; its allocator is linked into it or has no names, and a "
			      "function of it that is not seen may have given it out again"
			    : "",
			orphan->stack ? ""
				      : "; the stack is that of the allocation; record "
					"--free-stacks shows that of the free");
		findings_say(&finding->advice, "one of the two must not free it");
	}
	return true;
}

// What a pointer is that was freed wrongly: in a sentence, why, and what to do.
struct wrong {
	struct str what;
	const char *why, *advice;
};

// `size` is that of the block that is meant: the one around the pointer, or the other heap's.
static struct wrong wrong_of(const struct findings *findings, const struct findings_orphan *orphan)
{
	const struct reader *reader = findings->asked->reader;
	char text[READER_HEAP_TEXT], other[READER_HEAP_TEXT], size[16];
	const char *heap =
		reader_heap_name(orphan->heap ? reader_heap(reader, orphan->heap) : NULL, text);
	struct wrong wrong = { 0 };

	str_bytes(orphan->size, size);
	if (orphan->inside) {
		str_format(&wrong.what,
			   "a pointer %" PRIu64 " bytes inside of a block of %s is freed",
			   orphan->offset, size);
		wrong.why = "the block lives, and begins elsewhere";
		wrong.advice = "free the pointer that the allocation returned";
	} else if (orphan->mixed) {
		str_format(&wrong.what,
			   "a block of %s of the heap %s is freed as one of the heap %s", size,
			   reader_heap_name(orphan->other_heap
						    ? reader_heap(reader, orphan->other_heap)
						    : NULL,
					    other),
			   heap);
		wrong.why = "it lives in the one, and no block of the other is there";
		wrong.advice = "free it by the functions that belong to the allocation";
	} else {
		str_format(&wrong.what, "the heap %s refuses to free 0x%" PRIx64, heap,
			   orphan->address);
		wrong.why = "no block was seen there, or the heap is damaged";
		wrong.advice = "free the pointer that the allocation returned, in its heap";
	}
	return wrong;
}

// Pointers to the inside of a block, blocks of another heap, and what a heap refuses. Frees of what
// was never seen are none of these: they may be right.
bool findings_freed_wrong(struct findings *findings, const struct findings_kind *kind, struct err *)
{
	const struct findings_facts *facts = findings->facts;

	for (size_t i = 0; i < facts->orphans_count; i++) {
		const struct findings_orphan *orphan = &facts->orphans[i];
		bool own = !orphan->refused && has_own_allocator(findings, orphan->process);
		struct finding *finding;
		struct wrong wrong;

		if (orphan->freed || !(orphan->inside || orphan->mixed || orphan->refused) ||
		    count_alike(facts, orphan, 0, i) > 0)
			continue;
		wrong = wrong_of(findings, orphan);
		add_free(findings, kind, orphan, own ? FINDINGS_LIKELY : FINDINGS_CERTAIN,
			 count_alike(facts, orphan, i, facts->orphans_count), str_get(&wrong.what));
		finding = &findings->list[findings->count - 1];
		if (!finding->stack)
			finding->stack = orphan->allocated_by;
		finding->other_role = orphan->allocated_by ? "block of" : NULL;
		finding->other_stack = orphan->allocated_by;
		findings_say(&finding->why, "%s%s", wrong.why,
			     own ? "; its allocator is linked into it or has no names, and may "
				   "have functions that are not seen and give out parts of blocks"
				 : "");
		findings_say(&finding->advice, "%s", wrong.advice);
		str_fini(&wrong.what);
	}
	return true;
}

// ---- new with free ----

// A call as the recorder saw it: by a frame of its own operator, and from which module.
struct call {
	bool by_operator, array, aligned;
	bool nameless; // the recorder's file is not the one that made the trace
	module_id module;
	frame_id frame; // the program's own innermost
};

// Our own operator new, which stands in for the program's in its stacks.
static bool is_recorders(const struct reader *reader, frame_id frame)
{
	const struct trace_module *module =
		reader_module(reader, reader_frame(reader, frame)->module);

	return module && strstr(str_last_part(module->path), "tidemark");
}

// How the block was begun or ended, by the frames between the call and the program's own innermost
// one: the recorder's operators are there if they were called. `word`: "operator new" or "operator
// delete". Frames of other files are passed over. No stack: all is false and 0.
static struct call call_of(struct findings *findings, stack_id stack, const char *word)
{
	const struct reader *reader = findings->asked->reader;
	stack_id user = findings_user(findings, stack);
	struct call call = { 0 };

	if (!user)
		return call;
	call.frame = reader_stack(reader, user)->frame;
	call.module = reader_frame(reader, call.frame)->module;
	for (stack_id at = stack; at && at != user; at = reader_stack(reader, at)->parent) {
		frame_id frame = reader_stack(reader, at)->frame;
		size_t count;
		const struct symbol *symbols = names_find(findings->asked->names, frame, &count);
		const char *function = count ? symbols[0].function : NULL;

		if (!count || !is_recorders(reader, frame))
			continue;
		call.nameless |= !function;
		if (!function || strncmp(function, word, strlen(word)) != 0)
			continue;
		// The outermost is the one that the program called: new[] calls new.
		call.by_operator = true;
		call.array = function[strlen(word)] == '[';
		call.aligned = strstr(function, "align_val_t") != NULL;
	}
	return call;
}

enum { HAS_NEW = 1, HAS_DELETE = 2 }; // of modules whose operators are seen

// Which of them were seen in a module, by the forked processes of one program: in another one the
// same file may be bound to others' operators.
static uint64_t *seen_of(const struct findings *findings, struct map *seen, process_id process,
			 module_id module)
{
	process_id family = findings_family(findings->asked->reader, process);

	return map_put(seen, (uint64_t)family << 32 | module, NULL);
}

// Whether these belong together. Aligned memory of malloc's family is freed by free.
static bool is_matched(const struct call *begun, const struct call *ended)
{
	return begun->by_operator == ended->by_operator && begun->array == ended->array &&
	       begun->aligned == ended->aligned;
}

// "operator new[] with an alignment". The caller frees it.
static char *call_name(const struct call *call, const char *by_operator, const char *else_by,
		       bool alignment)
{
	struct str name = { 0 };

	str_add(&name, call->by_operator ? by_operator : else_by);
	str_add(&name, call->array ? "[]" : "");
	if (call->by_operator && alignment)
		str_add(&name, call->aligned ? " with an alignment" : " without an alignment");
	return str_take(&name);
}

// Blocks of one line that another line frees by the other family.
static void tell_mismatch(struct findings *findings, const struct findings_kind *kind,
			  const struct findings_pair *pair, const struct call *begun,
			  const struct call *ended)
{
	bool operators = begun->by_operator && ended->by_operator;
	bool alignment = operators && begun->aligned != ended->aligned;
	struct finding *finding = findings_add(findings, kind,
					       operators ? FINDINGS_CERTAIN : FINDINGS_LIKELY,
					       pair->process, pair->stack);
	char *by = call_name(begun, "operator new", "malloc", alignment);
	char *freed = call_name(ended, "operator delete", "free", alignment);

	ASSERT(!is_matched(begun, ended));
	findings_say(&finding->what, "%s block%s of %s %s freed by %s.", STR_COUNT(pair->count),
		     pair->count == 1 ? "" : "s", by, pair->count == 1 ? "is" : "are", freed);
	findings_say(&finding->why, operators
					    ? "both operators were seen as they were called"
					    : "both calls were seen; an operator of the program's "
					      "own that is inlined would look the same");
	findings_say(&finding->advice, "free by the family that allocated");
	findings_figure(finding, "count", "blocks", FINDINGS_COUNT, pair->count);
	findings_figure(finding, "bytes", "bytes", FINDINGS_BYTES, pair->bytes);
	finding->other_role = "freed by";
	finding->other_stack = pair->freed_by;
	findings_command(findings, finding, "report", "--all-frames", true, true);
	MEM_FREE(by, freed);
}

// One finding for each pair of lines of a process. A module counts only if both its new and its
// delete were seen by the recorder's own operators: else a call may have been bound to another
// library's, and looks like malloc or free.
static void look_for_mismatches(struct findings *findings, const struct findings_kind *kind,
				struct map *seen)
{
	const struct findings_facts *facts = findings->facts;
	struct map lines = { 0 }, told = { 0 }; // pairs of lines have numbers
	const char *own, *last = NULL;

	for (size_t i = 0; i < facts->pairs_count; i++) {
		const struct findings_pair *pair = &facts->pairs[i];
		struct call begun = call_of(findings, pair->stack, "operator new");
		struct call ended = call_of(findings, pair->freed_by, "operator delete");
		uint64_t *number;
		bool added;

		if (is_matched(&begun, &ended) || !begun.module || begun.module != ended.module ||
		    *seen_of(findings, seen, pair->process, begun.module) != (HAS_NEW | HAS_DELETE))
			continue;
		// What these do with a block is the program's: delete[] may be free by way of
		// its delete.
		own = own_heap_operators(reader_process(findings->asked->reader, pair->process));
		if (own && (!last || strcmp(own, last) != 0))
			findings_miss(findings, kind,
				      "%s has operators new and delete of its own: what they do "
				      "with a block is its own affair",
				      own);
		last = own ? own : last;
		if (own)
			continue;
		number = map_put(&lines, (uint64_t)begun.frame << 32 | ended.frame, &added);
		if (added)
			*number = lines.count;
		map_put(&told, (uint64_t)pair->process << 32 | *number, &added);
		if (added)
			tell_mismatch(findings, kind, pair, &begun, &ended);
	}
	MAP_FINI(&lines, &told);
}

// Two rounds over the pairs: the first finds which modules call which operators, the second judges.
// Module 0 takes what has no frame of its own and is never judged.
bool findings_mismatch(struct findings *findings, const struct findings_kind *kind, struct err *)
{
	const struct findings_facts *facts = findings->facts;
	struct map seen = { 0 };
	bool nameless = false;

	for (size_t i = 0; i < facts->pairs_count; i++) {
		const struct findings_pair *pair = &facts->pairs[i];
		struct call begun = call_of(findings, pair->stack, "operator new");
		struct call ended = call_of(findings, pair->freed_by, "operator delete");

		nameless = nameless || begun.nameless || ended.nameless;
		if (begun.by_operator)
			*seen_of(findings, &seen, pair->process, begun.module) |= HAS_NEW;
		if (ended.by_operator)
			*seen_of(findings, &seen, pair->process, ended.module) |= HAS_DELETE;
	}
	look_for_mismatches(findings, kind, &seen);
	if (nameless)
		findings_miss(findings, kind,
			      "needs the names of the recorder that made the trace, and it is "
			      "another one now (tidemark record --bundle)");
	map_fini(&seen);
	return true;
}

// ---- failures ----

// Without why. `call`: of the system; NULL: of a heap.
static struct finding *tell_failed(struct findings *findings, const struct findings_kind *kind,
				   const struct findings_failed *failed, const char *call)
{
	struct finding *finding =
		findings_add(findings, kind, FINDINGS_CERTAIN, failed->process, failed->stack);

	findings_say(&finding->what,
		     "%s asks %s%s%s%s time%s for memory and gets none; the most was %s.",
		     findings_function(findings, failed->stack), call ? "the system (" : "",
		     call ? call : "", call ? ") " : "", STR_COUNT(failed->count),
		     failed->count == 1 ? "" : "s", STR_BYTES(failed->size_max));
	findings_say(&finding->advice,
		     "look at the size that is asked for, and at what the program "
		     "does %s",
		     call ? "when it fails" : "with the answer NULL");
	// A window begins after its first moment.
	finding->from_ns = failed->first_ns ? failed->first_ns - 1 : 0;
	finding->to_ns = failed->last_ns;
	findings_figure(finding, "failed", "failed", FINDINGS_COUNT, failed->count);
	findings_figure(finding, "size_bytes_min", "least", FINDINGS_BYTES, failed->size_min);
	findings_figure(finding, "size_bytes_max", "most", FINDINGS_BYTES, failed->size_max);
	findings_command(findings, finding, "map", "", false, false);
	return finding;
}

// What may have refused it on Windows though a hole was large enough: a call that commits nothing
// meets no limit of what may be committed. `failure`: NULL, of a heap, if it was not kept.
static void add_causes(const struct failure *failure, struct str *text)
{
	const char *hole = failure ? STR_BYTES(failure->holes.largest) : NULL;

	switch (failure ? failure->need : FAILURE_NEEDS_HEAP) {
	case FAILURE_NEEDS_ADDRESSES:
		str_format(text,
			   "a reservation commits nothing, so it was no limit of memory; the "
			   "largest hole that was seen had %s: the call may have asked for a place "
			   "or an alignment, or the system keeps that hole",
			   hole);
		break;
	case FAILURE_NEEDS_COMMIT:
		str_add(text, "its addresses were reserved before: it was the commit limit, or "
			      "that of a job");
		break;
	case FAILURE_NEEDS_BOTH:
		str_format(text,
			   "the largest hole that was seen had %s: it was the commit limit, or "
			   "that of a job, if the call asked for no place and the system does not "
			   "keep that hole",
			   hole);
		break;
	case FAILURE_NEEDS_VIEW:
		str_format(text,
			   "the largest hole that was seen had %s; a view commits nothing but "
			   "what is copied when it is written (FILE_MAP_COPY): whether that or a "
			   "place that was asked for was refused is not known",
			   hole);
		break;
	default:
		str_add(text, "a heap that was made with a greatest size (HeapCreate) refuses when "
			      "it is full, whatever memory there is, and others at the commit "
			      "limit, or that of a job; which it was is not known");
	}
}

// Why there was no memory, as far as it is known: a size that no process can have says more than
// any limit. `failure`: the first of them, as it was weighed; NULL: it was not kept.
static void add_limits(const struct findings *findings, const struct findings_failed *failed,
		       const struct failure *failure, struct str *text)
{
	uint64_t mapped = failure ? failure->mapped : 0;
	const struct trace_process *process =
		reader_process(findings->asked->reader, failed->process);

	ASSERT(failed->count > 0 && failed->size_min <= failed->size_max);
	if (failed->size_max >> (process->bits == 32 ? 31 : ABSURD_SHIFT)) {
		str_add(text, "the largest size is beyond what any process can have: it was "
			      "computed wrong, or never meant");
		return;
	}
	if (failure && failures_lacks_room(&findings->facts->failures, failure)) {
		str_format(text, "the largest hole of the address space had %s, of %s free",
			   STR_BYTES(failure->holes.largest), STR_BYTES(failure->holes.bytes));
		return;
	}
	if (reader_is_windows(findings->asked->reader)) {
		add_causes(failure, text);
		return;
	}
	if (process->mapped_limit && process->mapped_limit != UINT64_MAX)
		str_format(text, "the process may map %s (ulimit -v)%s%s%s; ",
			   STR_BYTES(process->mapped_limit), mapped ? ", of which it had " : "",
			   mapped ? STR_BYTES(mapped) : "", mapped ? " when it first failed" : "");
	if (process->data_limit && process->data_limit != UINT64_MAX)
		str_format(text, "its data may be %s; ", STR_BYTES(process->data_limit));
	if (process->group_limit)
		str_format(text, "its control group may hold %s", STR_BYTES(process->group_limit));
	else
		str_add(text, "no limit of a control group was seen");
}

// What calls of the system that failed at one place have in common.
static struct findings_failed sum_refused(const struct failures *failures, size_t first)
{
	const struct failure *list = failures->list;
	struct findings_failed sum = {
		.process = list[first].process,
		.stack = list[first].stack,
		.first_ns = list[first].time_ns,
		.size_min = list[first].size,
	};

	for (size_t i = first; i < failures->count; i++) {
		if (list[i].process != sum.process || list[i].stack != sum.stack ||
		    !trace_kind_is_vm(list[i].kind))
			continue;
		sum.count += list[i].count;
		if (list[i].last_ns > sum.last_ns)
			sum.last_ns = list[i].last_ns;
		if (list[i].size < sum.size_min)
			sum.size_min = list[i].size;
		if (list[i].size > sum.size_max)
			sum.size_max = list[i].size;
	}
	ASSERT(sum.count > 0);
	return sum;
}

// Whether no failure before this one is of its place.
static bool is_first_there(const struct failures *failures, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (failures->list[i].process == failures->list[at].process &&
		    failures->list[i].stack == failures->list[at].stack &&
		    trace_kind_is_vm(failures->list[i].kind))
			return false;
	return true;
}

// The program's own calls of the system, by the place that calls. That of a heap's call which
// failed for it is that call's business.
static void tell_refused(struct findings *findings, const struct findings_kind *kind)
{
	const struct failures *failures = findings_space_failures(findings);

	for (size_t i = 0; i < failures->count; i++) {
		const struct failure *failure = &failures->list[i];
		struct findings_failed sum;
		struct finding *finding;
		struct str why = { 0 };

		if (!trace_kind_is_vm(failure->kind) || !is_first_there(failures, i))
			continue;
		sum = sum_refused(failures, i);
		finding = tell_failed(findings, kind, &sum, failures_word(failure));
		add_limits(findings, &sum, failure, &why);
		findings_say(&finding->why, "%s", str_get(&why));
		str_fini(&why);
	}
	if (failures->left_out)
		findings_miss(findings, kind, "%s calls that failed, of further places or sizes",
			      STR_COUNT(failures->left_out));
}

// The first of a heap's calls that failed at one place, with what was mapped then.
static const struct failure *of_heap(const struct failures *failures,
				     const struct findings_failed *failed)
{
	for (size_t i = 0; i < failures->count; i++)
		if (failures->list[i].process == failed->process &&
		    failures->list[i].stack == failed->stack &&
		    !trace_kind_is_vm(failures->list[i].kind))
			return &failures->list[i];
	return NULL;
}

// Failures are reported whatever their number: one may be what broke the program.
bool findings_failures(struct findings *findings, const struct findings_kind *kind, struct err *)
{
	const struct findings_facts *facts = findings->facts;
	const struct failures *failures = findings_space_failures(findings);
	uint64_t in_place = 0;

	for (size_t i = 0; i < facts->failed_count; i++) {
		const struct findings_failed *failed = &facts->failed[i];
		struct finding *finding;
		struct str why = { 0 };

		in_place += failed->in_place;
		if (failed->count == 0)
			continue;
		finding = tell_failed(findings, kind, failed, NULL);
		add_limits(findings, failed, of_heap(failures, failed), &why);
		findings_say(&finding->why, "%s", str_get(&why));
		str_fini(&why);
	}
	tell_refused(findings, kind);
	if (in_place)
		findings_miss(findings, kind,
			      "%s realloc%s that may not move the block "
			      "(HEAP_REALLOC_IN_PLACE_ONLY) found no room after it: not for want "
			      "of memory",
			      STR_COUNT(in_place), in_place == 1 ? "" : "s");
	return true;
}

// Why it may have been killed, by what the kernel counted in its control group while it ran; who
// sent the signal is never known.
static void say_killer(struct finding *finding, const struct trace_process *process)
{
	struct str limit = { 0 };

	if (process->group_limit)
		str_format(&limit, "; the group may hold %s", STR_BYTES(process->group_limit));
	if (process->group_kills)
		findings_say(&finding->why,
			     "the kernel counted %s kill%s for lack of memory in its control "
			     "group while it ran%s",
			     STR_COUNT(process->group_kills), process->group_kills == 1 ? "" : "s",
			     str_get(&limit));
	else
		findings_say(&finding->why,
			     "who sent the signal is not recorded, and no kill for lack of memory "
			     "was counted in its control group%s: look into the kernel's log",
			     str_get(&limit));
	findings_say(&finding->advice, "see findings about growth and peaks, or raise the limit");
	if (process->group_limit)
		findings_figure(finding, "group_limit_bytes", "its group may hold", FINDINGS_BYTES,
				process->group_limit);
	str_fini(&limit);
}

// It held much: of the machine's memory, or of what its control group may hold where the kernel
// killed there. For example, 40 MiB are all of a container of 41.
static bool held_much(const struct trace_process *process, uint64_t bytes)
{
	return bytes >= KILLED_BYTES_MIN || (process->group_kills && process->group_limit &&
					     bytes >= process->group_limit / KILLED_GROUP_PART);
}

// SIGKILL is not the kernel's alone, so it is likely only where its control group counted a kill
// for lack of memory. What the process asked for last is shown beside what it held: that call may
// be the one that was too much.
bool findings_killed(struct findings *findings, const struct findings_kind *kind, struct err *)
{
	const struct reader *reader = findings->asked->reader;
	const struct findings_facts *facts = findings->facts;

	// A program that was not recorded is none of these processes.
	if (!reader_sound(reader) || reader_end(reader)->why[0])
		findings_miss(findings, kind,
			      "the recording did not end by itself, so how its processes ended is "
			      "not known; where the kernel kills all of a control group "
			      "(memory.oom.group), it kills the collector with the program");
	for (process_id id = 0; id < reader_processes_count(reader); id++) {
		const struct trace_process *process = reader_process(reader, id);
		const struct heap_counts *counts = heap_process(facts->heap, id);
		const struct findings_most *most = id < facts->mosts_count ? &facts->mosts[id]
									   : NULL;
		struct finding *finding;

		if (process->exit != TRACE_EXIT_SIGNAL || process->exit_value != SIGNAL_KILL ||
		    !counts || !held_much(process, counts->live_at_exit.bytes) || !most ||
		    !most->any)
			continue;
		finding = findings_add(findings, kind,
				       process->group_kills ? FINDINGS_LIKELY : FINDINGS_POSSIBLE,
				       id, most->stack);
		findings_say(&finding->what,
			     "process %" PRIu32 " was killed (SIGKILL) while it held %s, of which "
			     "%s has %s.",
			     process->pid, STR_BYTES(counts->live_at_exit.bytes),
			     findings_function(findings, most->stack), STR_BYTES(most->bytes));
		say_killer(finding, process);
		findings_figure(finding, "live_bytes", "held", FINDINGS_BYTES,
				counts->live_at_exit.bytes);
		findings_figure(finding, "site_bytes", "of this site", FINDINGS_BYTES, most->bytes);
		findings_figure(finding, "rss_bytes_max", "resident at most", FINDINGS_BYTES,
				process->rss_max_bytes);
		if (id < facts->lasts_count && facts->lasts[id].stack) {
			finding->other_role = "asked by";
			finding->other_stack = facts->lasts[id].stack;
			findings_figure(finding, "last_size_bytes", "asked last", FINDINGS_BYTES,
					facts->lasts[id].size);
		}
		finding->to_ns = process->ended_ns;
		findings_command(findings, finding, "report", "", false, false);
	}
	return true;
}
