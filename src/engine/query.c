// Words become sets: an array of flags by id for processes, threads and heaps, bits for layers,
// owners and classes. For example, of a trace of python3 (pid 12) and sh (pid 40):
//
//     --process sh          { false, true }
//     --process 40          the same, by pid
//     --process 1, or #1    the same, by place: no process has the pid 1
//     a second --process    is added: a set is an or
//     drop python3          { false, true }: where nothing was named, it is dropped from all
//
// A word that names nothing is refused, with what there is: first what has the word in it, then
// what there are most of.
#include "engine/query.h"

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "engine/moment.h"
#include "engine/space/space.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

_Static_assert(QUERY_OWNER(SPACE_OWNERS_COUNT) <= 32, "owners are bits of a set");

void query_fini(struct query *query)
{
	MEM_FREE(query->processes, query->threads, query->sizes, query->heaps);
	*query = (struct query){ 0 };
}

// A path, or its last part. Windows does not care for case.
static bool names_file(const char *path, const char *word, bool windows)
{
	const char *last = str_last_part(path);

	return windows ? strcasecmp(path, word) == 0 || strcasecmp(last, word) == 0
		       : strcmp(path, word) == 0 || strcmp(last, word) == 0;
}

// What a word that names nothing may have meant: "python3.11 (pid 12), sh (40 processes)".
// 256 different names are enough to choose eight from; further ones are not suggested.
struct candidates {
	const char *word;
	struct candidate {
		const char *name;
		uint32_t count,
			number; // of those so named: how many, and the first one's pid or tid
		bool alike;     // its name has the word in it
	} known[256];
	size_t known_count;
};

// Each name once, with how many have it. The number is that of the first: it is shown only where
// there is no other.
static void add_candidate(struct candidates *candidates, const char *name, uint32_t number)
{
	size_t i = 0;

	ASSERT(candidates->known_count <= sizeof candidates->known / sizeof *candidates->known);
	while (i < candidates->known_count && strcmp(candidates->known[i].name, name) != 0)
		i++;
	if (i == sizeof candidates->known / sizeof *candidates->known)
		return;
	if (i == candidates->known_count)
		candidates->known[candidates->known_count++] = (struct candidate){
			.name = name,
			.number = number,
			.alike = strstr(name, candidates->word) != NULL,
		};
	candidates->known[i].count++;
}

// What is most likely meant comes first.
SORT_ORDER(compare_candidates, struct candidate, SORT_FALLS(alike), SORT_FALLS(count),
	   strcmp(one->name, other->name))

// "process" and "pid", or "thread" and "tid".
static bool refuse_word(struct candidates *candidates, const char *what, const char *number,
			const char *forms, struct err *err)
{
	enum { SHOWN = 8 };
	struct str list = { 0 };

	qsort(candidates->known, candidates->known_count, sizeof *candidates->known,
	      compare_candidates);
	for (size_t i = 0; i < candidates->known_count && i < SHOWN; i++) {
		const struct candidate *candidate = &candidates->known[i];

		str_format(&list, "%s%s (", i ? ", " : "", candidate->name);
		if (candidate->count > 1)
			str_format(&list, "%" PRIu32 " %s%s)", candidate->count, what,
				   strcmp(what, "process") == 0 ? "es" : "s");
		else
			str_format(&list, "%s %" PRIu32 ")", number, candidate->number);
	}
	err_set(err, ERR_USAGE, "no %s '%s' in the trace (%s); it has %s%s", what, candidates->word,
		forms, str_get(&list), candidates->known_count > SHOWN ? " …" : "");
	str_fini(&list);
	return false;
}

static bool no_process(const struct reader *reader, const char *word, struct err *err)
{
	struct candidates candidates = { .word = word };

	for (process_id id = 0; id < reader_processes_count(reader); id++) {
		const struct trace_process *process = reader_process(reader, id);

		add_candidate(&candidates, str_last_part(process->exe), process->pid);
	}
	return refuse_word(&candidates, "process", "pid",
			   "a pid, #N in the list of processes, a program's name or path", err);
}

static bool no_thread(const struct reader *reader, const char *word, struct err *err)
{
	struct candidates candidates = { .word = word };

	for (thread_id id = 0; id < reader_threads_count(reader); id++) {
		const struct trace_thread *thread = reader_thread(reader, id);

		add_candidate(&candidates, thread->name[0] ? thread->name : "(no name)",
			      thread->tid);
	}
	return refuse_word(&candidates, "thread", "tid", "a tid, or a name", err);
}

// A pid goes before a place: "1" is the pid 1 if a process has it, else place 1. A recording whose
// processes have low pids, as in a container, needs "#1" for the place.
bool query_add_process(struct query *query, const struct reader *reader, const char *word,
		       struct err *err)
{
	uint32_t count = reader_processes_count(reader);
	uint64_t number = 0;
	bool is_place = *word == '#' && str_parse_count(word + 1, &number);
	bool is_number = !is_place && str_parse_count(word, &number);
	bool found = false;

	if (!query->processes) {
		query->processes = mem_alloc(count + 1, sizeof *query->processes);
		query->processes_count = count;
	}
	for (process_id id = 0; id < count; id++) {
		const struct trace_process *process = reader_process(reader, id);
		bool windows = str_is_windows_path(process->exe);

		if ((is_number && process->pid == number) ||
		    names_file(process->exe, word, windows) ||
		    (process->args_count > 0 && names_file(process->args[0], word, windows))) {
			query->processes[id] = true;
			found = true;
		}
	}
	if (!found && (is_place || is_number) && number < count) {
		query->processes[number] = true;
		found = true;
	}
	return found || no_process(reader, word, err);
}

// By its number or its name; both may be those of several threads, of several processes.
bool query_add_thread(struct query *query, const struct reader *reader, const char *word,
		      struct err *err)
{
	uint32_t count = reader_threads_count(reader);
	uint64_t number = 0;
	bool is_number = str_parse_count(word, &number);
	bool found = false;

	if (!query->threads) {
		query->threads = mem_alloc(count + 1, sizeof *query->threads);
		query->threads_count = count;
	}
	for (thread_id id = 0; id < count; id++) {
		const struct trace_thread *thread = reader_thread(reader, id);

		if ((is_number && thread->tid == number) || strcmp(thread->name, word) == 0) {
			query->threads[id] = true;
			found = true;
		}
	}
	return found || no_thread(reader, word, err);
}

// A heap with a handle is named by it as it is printed, "0x1f0000", or by its name if it has one.
static bool is_heap(const struct trace_heap *heap, const char *word)
{
	char handle[24];

	if (heap->handle == 0)
		return strcmp(heap->name, word) == 0;
	snprintf(handle, sizeof handle, "0x%" PRIx64, heap->handle);
	return strcasecmp(handle, word) == 0 || (*heap->name && strcmp(heap->name, word) == 0);
}

// A name may be that of several heaps, of several processes: all of them are meant.
bool query_add_heap(struct query *query, const struct reader *reader, const char *word,
		    struct err *err)
{
	uint32_t count = reader_heaps_count(reader);
	bool found = strcmp(word, "malloc") == 0;
	const char **names;
	const char *nearest;

	if (!query->heaps) {
		query->heaps = mem_alloc(count + 1, sizeof *query->heaps);
		query->heaps_count = count > 0 ? count : 1;
	}
	query->heaps_dropped = false;
	query->heaps[0] |= found;
	for (heap_id id = 1; id < count; id++) {
		if (!is_heap(reader_heap(reader, id), word))
			continue;
		query->heaps[id] = true;
		found = true;
	}
	if (found)
		return true;
	names = mem_alloc(count + (size_t)1, sizeof *names);
	names[0] = "malloc";
	for (heap_id id = 1; id < count; id++)
		names[id] = reader_heap(reader, id)->name;
	nearest = str_nearest(word, names);
	if (nearest)
		err_set(err, ERR_USAGE, "no heap '%s' in the trace; did you mean '%s'?", word,
			nearest);
	else
		err_set(err, ERR_USAGE,
			"no heap '%s' in the trace (malloc, a pool's name, a handle such as "
			"0x1f0000)",
			word);
	mem_free(names);
	return false;
}

// ---- what is left out ----

// What `named` has is left out of `list`, which is made where nothing was asked for.
static void drop_named(bool **list, uint32_t *count, const bool *named, uint32_t named_count)
{
	ASSERT(named);
	if (!*list) {
		*list = mem_alloc(named_count + (size_t)1, sizeof **list);
		*count = named_count;
		for (uint32_t i = 0; i < named_count; i++)
			(*list)[i] = true;
	}
	// Both lists are of one reader, and so of one length; a trace that is still being written
	// may have got a thread between two options.
	for (uint32_t i = 0; i < named_count && i < *count; i++)
		(*list)[i] &= !named[i];
}

// What the word names is found as for query_add, in a query of its own, and then taken away.
bool query_drop_process(struct query *query, const struct reader *reader, const char *word,
			struct err *err)
{
	struct query named = { 0 };
	bool good = query_add_process(&named, reader, word, err);

	if (good)
		drop_named(&query->processes, &query->processes_count, named.processes,
			   named.processes_count);
	query_fini(&named);
	return good;
}

bool query_drop_thread(struct query *query, const struct reader *reader, const char *word,
		       struct err *err)
{
	struct query named = { 0 };
	bool good = query_add_thread(&named, reader, word, err);

	if (good)
		drop_named(&query->threads, &query->threads_count, named.threads,
			   named.threads_count);
	query_fini(&named);
	return good;
}

bool query_drop_heap(struct query *query, const struct reader *reader, const char *word,
		     struct err *err)
{
	struct query named = { 0 };
	bool good = query_add_heap(&named, reader, word, err);

	if (good) {
		query->heaps_dropped |= query->heaps == NULL;
		drop_named(&query->heaps, &query->heaps_count, named.heaps, named.heaps_count);
	}
	query_fini(&named);
	return good;
}

// ---- words that name nothing of the trace ----

struct word {
	const char *word;
	unsigned bits;
};

// The bits of `word`, or ERR_USAGE. `words` ends with a row of NULL.
static bool find_word(const struct word *words, const char *what, const char *word, unsigned *bits,
		      struct err *err)
{
	struct str list = { 0 };

	ASSERT(words[0].word);
	for (size_t i = 0; words[i].word; i++) {
		if (strcasecmp(words[i].word, word) == 0) {
			*bits |= words[i].bits;
			str_fini(&list);
			return true;
		}
		str_format(&list, "%s%s",
			   i == 0              ? ""
			   : words[i + 1].word ? ", "
					       : " or ",
			   words[i].word);
	}
	err_set(err, ERR_USAGE, "%s is %s, not '%s'", what, str_get(&list), word);
	str_fini(&list);
	return false;
}

bool query_add_layer(struct query *query, const char *word, struct err *err)
{
	static const struct word words[] = { { "heap", QUERY_HEAP }, { "vm", QUERY_VM }, { 0 } };

	return find_word(words, "a layer", word, &query->layers, err);
}

bool query_add_impact(struct query *query, const char *word, struct err *err)
{
	static const struct word words[] = {
		{ "impacting", QUERY_AIFO | QUERY_AOFI },
		{ "transient", QUERY_AIFI },
		{ "persistent", QUERY_AOFO },
		{ "AIFI", QUERY_AIFI },
		{ "AIFO", QUERY_AIFO },
		{ "AOFI", QUERY_AOFI },
		{ "AOFO", QUERY_AOFO },
		{ 0 },
	};

	return find_word(words, "an impact", word, &query->types, err);
}

// ---- ranges ----

// A duration may have a sign elsewhere; a lifetime has none.
static bool parse_lifetime(const char *text, uint64_t *lifetime_ns)
{
	int64_t duration_ns;

	if (*text == '-' || *text == '+' || !moment_parse_duration(text, &duration_ns))
		return false;
	*lifetime_ns = (uint64_t)duration_ns;
	return true;
}

// A number behind "<" and the like. False where nothing is left of the range.
static bool parse_bound(const char *text, bool (*parse)(const char *, uint64_t *),
			struct query_range *range)
{
	bool equal = text[1] == '=';
	uint64_t number;

	ASSERT(*text == '<' || *text == '>');
	if (!parse(text + 1 + equal, &number))
		return false;
	if (*text == '<') {
		range->most = equal ? number : number - 1;
		return equal || number > 0;
	}
	range->least = equal ? number : number + 1;
	return equal || number < UINT64_MAX;
}

// "32..64", "..1K" and "1M.." have a bound on one side or both, "4096" is that size alone. ".."
// alone is no range.
static bool parse_range(const char *text, bool (*parse)(const char *, uint64_t *),
			struct query_range *range)
{
	const char *dots = strstr(text, "..");
	char *first;
	bool good;

	*range = (struct query_range){ 0, UINT64_MAX };
	if (*text == '<' || *text == '>')
		return parse_bound(text, parse, range);
	if (!dots) {
		good = parse(text, &range->least);
		range->most = range->least;
		return good;
	}
	if (text[2] == '\0')
		return false;
	first = mem_copy_bytes(text, (size_t)(dots - text));
	good = (*first == '\0' || parse(first, &range->least)) &&
	       (dots[2] == '\0' || parse(dots + 2, &range->most)) && range->least <= range->most;
	mem_free(first);
	return good;
}

static void push_size(struct query *query, struct query_range range)
{
	*MEM_ADD(query->sizes, query->sizes_count, query->sizes_capacity) = range;
}

bool query_add_size(struct query *query, const char *word, struct err *err)
{
	struct query_range range;

	if (!parse_range(word, str_parse_bytes, &range))
		return err_set(err, ERR_USAGE,
			       "'%s' is not a range of sizes (32..64, ..1K, 4096, >1M, >=1.5MiB)",
			       word);
	push_size(query, range);
	return true;
}

bool query_drop_size(struct query *query, const char *word, struct err *err)
{
	static const struct query_range all = { 0, UINT64_MAX }, none = { 1, 0 };
	struct query kept = { 0 };
	struct query_range range;

	if (!parse_range(word, str_parse_bytes, &range))
		return err_set(err, ERR_USAGE,
			       "'%s' is not a range of sizes (32..64, ..1K, 4096, >1M, >=1.5MiB)",
			       word);
	if (query->sizes_count == 0)
		push_size(query, all);
	for (size_t i = 0; i < query->sizes_count; i++) {
		struct query_range old = query->sizes[i];

		// 0..100 less 20..30 is 0..19 and 31..100; less 0..30 it is 31..100; less 0..200
		// nothing, and nothing at all is the empty range 1..0, since no range means any
		// size.
		if (old.most < range.least || old.least > range.most) {
			push_size(&kept, old);
			continue;
		}
		if (old.least < range.least)
			push_size(&kept, (struct query_range){ old.least, range.least - 1 });
		if (old.most > range.most)
			push_size(&kept, (struct query_range){ range.most + 1, old.most });
	}
	if (kept.sizes_count == 0)
		push_size(&kept, none);
	mem_free(query->sizes);
	query->sizes = kept.sizes;
	query->sizes_count = kept.sizes_count;
	query->sizes_capacity = kept.sizes_capacity;
	return true;
}

// The bit of an owner. ERR_USAGE: it is none.
static bool parse_owner(const char *word, uint32_t *bit, struct err *err)
{
	*bit = 1;
	if (strcmp(word, "heap") == 0)
		return true;
	for (unsigned owner = 0; owner < SPACE_OWNERS_COUNT; owner++) {
		*bit = UINT32_C(1) << QUERY_OWNER(owner);
		if (strcmp(word, space_owner_word((enum space_owner)owner)) == 0)
			return true;
	}
	return err_set(err, ERR_USAGE,
		       "'%s' is not an owner of memory (program, library, malloc-heap …)", word);
}

// The first owner that is named makes the set; others are added. What is dropped first is dropped
// from all.
bool query_add_owner(struct query *query, const char *word, struct err *err)
{
	uint32_t bit;

	if (!parse_owner(word, &bit, err))
		return false;
	query->owners = query->owners_given ? query->owners | bit : bit;
	query->owners_given = true;
	return true;
}

bool query_drop_owner(struct query *query, const char *word, struct err *err)
{
	uint32_t bit;

	if (!parse_owner(word, &bit, err))
		return false;
	query->owners = (query->owners_given ? query->owners : UINT32_MAX) & ~bit;
	query->owners_given = true;
	return true;
}

bool query_add_lifetime(struct query *query, const char *word, struct err *err)
{
	if (query->lifetime_given)
		return err_set(err, ERR_USAGE, "--lifetime can be given once only");
	query->lifetime_given = true;
	if (!parse_range(word, parse_lifetime, &query->lifetime_ns))
		return err_set(err, ERR_USAGE,
			       "'%s' is not a range of lifetimes (<1ms, 10us..1s, >=2min)", word);
	return true;
}

bool query_has_size(const struct query *query, uint64_t size)
{
	for (size_t i = 0; i < query->sizes_count; i++)
		if (size >= query->sizes[i].least && size <= query->sizes[i].most)
			return true;
	return query->sizes_count == 0;
}

bool query_has_lifetime(const struct query *query, uint64_t lifetime_ns)
{
	return !query->lifetime_given ||
	       (lifetime_ns >= query->lifetime_ns.least && lifetime_ns <= query->lifetime_ns.most);
}

// A set that is not there has everything in it. Ids beyond it are of what began since the set was
// made, in a trace that grows: they are not in it.
bool query_has_process(const struct query *query, process_id process)
{
	return !query->processes || (process < query->processes_count && query->processes[process]);
}

bool query_has_heap(const struct query *query, heap_id heap)
{
	return !query->heaps || (heap < query->heaps_count && query->heaps[heap]);
}

bool query_has_thread(const struct query *query, thread_id thread)
{
	return !query->threads || (thread < query->threads_count && query->threads[thread]);
}

bool query_has_owner(const struct query *query, bool heap, unsigned owner)
{
	ASSERT(heap || owner < SPACE_OWNERS_COUNT);
	return !query->owners_given ||
	       (query->owners & UINT32_C(1) << (heap ? 0 : QUERY_OWNER(owner)));
}

bool query_narrows(const struct query *query)
{
	return query->processes || query->threads || query->heaps || query->sizes_count ||
	       query->lifetime_given || query->types || query->stack || query->event ||
	       query->owners_given;
}
