// One try after the other, until there are few enough cells.
//
// A cell's key is its group, the bucket in which it was born, the one in which it died and how,
// packed into 64 bits: 11 bits for each bucket and 3 for the kind are below the group's number. For
// example, group 5 born in bucket 2, freed by a call in bucket 7: birth is stored as 3, since 0 is
// what lived before the recording, and the key is 5 << 25 | 3 << 14 | 7 << 3 | 1.
//
// The first try has 512 ticks of time. Where there are more cells than may be, what is folded next
// is what a reader misses least: stacks that weigh little go into "rest" until 1,000 are left, then
// threads are folded, then ticks made wider, down to 128, and only then go more stacks and more
// ticks (coarsen). Each try goes through all allocations again.
#include "view/aggregate.h"

#include "base/mem.h"
#include "base/sort.h"
#include "engine/moment.h"
#include "engine/space/space.h"
#include "view/octave.h"

#include <stdlib.h>
#include <string.h>

enum {
	TICKS_FIRST = 512,
	TICKS_FEW = 128, // before fewer, there are only STACKS_LEAST
	TICKS_LEAST = 16,
	STACKS_FEW = 1000, // before fewer, threads are folded and ticks made wider
	STACKS_LEAST = 20,
	END_BITS = 11, // enough for all edges there may be, and one more
	KIND_BITS = 3,
	THREADS_MAX = 10000, // that the page is told of
	FOLDED = UINT32_MAX,
	STRETCHES = 1 << 15, // in which buckets are looked up
};

_Static_assert(TICKS_FIRST + AGGREGATE_MARKS_MAX + 1 < 1 << END_BITS, "an edge fits into a key");

// How an allocation ended, as the page is told. One whose free was not seen counts as ended by a
// call, since its address was given out again.
enum kind { KIND_NEVER, KIND_CALL, KIND_HEAP, KIND_EXIT, KIND_EXEC };
_Static_assert(KIND_EXEC < 1 << KIND_BITS, "a kind fits into a key");

static enum kind kind_of(uint8_t end)
{
	switch (end) {
	case WINDOW_END_FREE:
	case WINDOW_END_REALLOC:
	case WINDOW_END_LOST:
		return KIND_CALL;
	case WINDOW_END_DESTROY:
		return KIND_HEAP;
	case WINDOW_END_EXIT:
		return KIND_EXIT;
	case WINDOW_END_EXEC:
		return KIND_EXEC;
	default:
		return KIND_NEVER;
	}
}

// ---- which stacks are kept ----

struct weighed {
	uint32_t label;
	double weight;
};

// Groups by label: label 0 is no stack.
static uint32_t by_label(void *context, const struct window_cell *cell)
{
	struct aggregate *aggregate = context;

	return cell->orphans ? WINDOW_SKIP : labels_stack(aggregate->labels, cell->stack);
}

SORT_ORDER(heavier_first, struct weighed, SORT_FALLS(weight), SORT_RISES(label))

static double part(double of, double whole)
{
	return whole > 0 ? of / whole : 0;
}

// What a stack weighs: its part of the bytes, of the calls, and of what stayed, of either layer.
static void weigh(const struct window_result *result, struct weighed *list)
{
	const struct heap_amount whole = window_present(&result->total);
	const struct heap_amount stayed = result->total.type[WINDOW_AIFO];

	for (uint32_t i = 0; i < result->rows_count; i++) {
		const struct window_row *row = &result->rows[i];
		struct heap_amount all = window_present(row);

		list[i].label = i;
		// For example a third of all bytes, a tenth of all calls, and half of what stayed:
		// .33 + .1 + .5. A stack that is large in one of the three is kept.
		list[i].weight += part((double)all.bytes, (double)whole.bytes) +
				  part((double)all.count, (double)whole.count) +
				  part((double)row->type[WINDOW_AIFO].bytes, (double)stayed.bytes);
	}
}

// All stacks that are in the trace, the heaviest first. NULL: the index cannot be read.
// Heap and virtual memory are asked one after the other, as they never add up, and a stack's
// weights in both are added: what is heavy in either stays.
static struct weighed *rank_stacks(struct aggregate *aggregate, size_t *count, struct err *err)
{
	uint32_t stacks = reader_stacks_count(aggregate->opened->reader);
	struct weighed *list = mem_alloc(stacks + (size_t)1, sizeof *list);

	*count = 0;
	for (unsigned layer = WINDOW_HEAP; layer <= WINDOW_VM; layer <<= 1) {
		struct window_query query = {
			.from = WINDOW_START,
			.to = window_facts(aggregate->opened->window)->steps_end,
			.layers = layer,
			.group = by_label,
			.context = aggregate,
		};
		struct window_result result;

		if (!window_ask(aggregate->opened->window, &query, &result, err)) {
			mem_free(list);
			return NULL;
		}
		weigh(&result, list);
		if (result.rows_count > *count)
			*count = result.rows_count;
		window_result_fini(&result);
	}
	if (*count > 1)
		qsort(list, *count, sizeof *list, heavier_first);
	// What weighs nothing was in the trace's list and in no window.
	while (*count > 0 && list[*count - 1].weight <= 0)
		(*count)--;
	return list;
}

// Give numbers to the first so many. `numbers` is by label, `stacks` by number: 0 is no stack, then
// the kept ones, then the rest, if there is one.
static void keep_stacks(struct aggregate *aggregate, const struct weighed *list, size_t count,
			size_t kept)
{
	size_t labels = reader_stacks_count(aggregate->opened->reader) + (size_t)1;

	MEM_FREE(aggregate->numbers, aggregate->stacks);
	aggregate->numbers = mem_alloc(labels, sizeof *aggregate->numbers);
	aggregate->stacks = mem_alloc(kept + 2, sizeof *aggregate->stacks);
	aggregate->stacks_total = count;
	aggregate->stacks_count = 1;
	// What is not kept is FOLDED, and becomes part of "rest" when a cell has it (by_group).
	for (size_t i = 0; i < labels; i++)
		aggregate->numbers[i] = FOLDED;
	aggregate->numbers[0] = 0;
	for (size_t i = 0; i < count && i < kept; i++) {
		if (list[i].label == 0)
			continue;
		aggregate->numbers[list[i].label] = (uint32_t)aggregate->stacks_count;
		aggregate->stacks[aggregate->stacks_count++] =
			labels_first(aggregate->labels, list[i].label);
	}
	ASSERT(aggregate->stacks_count <= kept + 1);
	aggregate->rest = count > kept ? (uint32_t)aggregate->stacks_count++ : 0;
}

// ---- cells ----

// One step of a hash: what was, what is added, and the upper bits brought down to where a table
// looks.
static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

static uint32_t find_group(struct aggregate *aggregate, const struct aggregate_group *group)
{
	uint64_t hash =
		mix(mix(mix(mix(group->process, group->thread), group->heap), group->stack),
		    (uint64_t)group->layer << 16 | (uint64_t)group->owner << 8 | group->octave);

	// Two groups of one hash: the second is at the next number. Groups are compared as bytes,
	// so by_group clears the padding.
	for (;; hash++) {
		bool added;
		uint64_t *number = map_put(&aggregate->group_of, hash, &added);

		if (!added && memcmp(&aggregate->groups[*number], group, sizeof *group) == 0)
			return (uint32_t)*number;
		if (!added)
			continue;
		MEM_ROOM(aggregate->groups, aggregate->groups_capacity,
			 aggregate->groups_count + 1);
		aggregate->groups[aggregate->groups_count] = *group;
		*number = aggregate->groups_count++;
		return (uint32_t)*number;
	}
}

static uint32_t by_group(void *context, const struct window_cell *cell)
{
	struct aggregate *aggregate = context;
	struct aggregate_group group;
	uint32_t number;

	if (cell->orphans)
		return WINDOW_SKIP;
	// All stacks that are not kept are one group more, "rest".
	number = aggregate->numbers[labels_stack(aggregate->labels, cell->stack)];
	memset(&group, 0, sizeof group); // compared as bytes
	group.process = cell->process;
	group.thread = aggregate->threads ? cell->thread : FOLDED;
	group.heap = cell->heap;
	group.stack = number == FOLDED ? aggregate->rest : number;
	group.layer = cell->layer == WINDOW_VM;
	group.owner = cell->owner;
	group.octave = (uint8_t)octave_of(cell->size);
	return find_group(aggregate, &group);
}

// The bucket of a step; -1 before the recording. It lies between that of the step's stretch and
// that of the next.
static int64_t bucket_of(const struct aggregate *aggregate, uint64_t step)
{
	uint64_t stretch = step >> aggregate->stretch_log2;
	size_t low, high;

	// For example 4 million steps: a stretch is 128 of them (32,768 stretches are too few at
	// 64), and the step 1,000 is in stretch 7; its bucket is one of those from that of stretch
	// 7 to that of stretch 8.
	ASSERT(aggregate->buckets > 0 && aggregate->stretches);
	if (step < WINDOW_START)
		return -1;
	if (stretch >= STRETCHES)
		return (int64_t)aggregate->buckets - 1;
	low = aggregate->stretches[stretch];
	high = aggregate->stretches[stretch + 1] + (size_t)1;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (aggregate->edges[middle] <= step)
			low = middle;
		else
			high = middle;
	}
	return (int64_t)low;
}

// The bucket that each stretch of steps begins in.
// A table of 32,768 entries, so that the bucket of a step is found by one look and a short search:
// it is asked for twice for each allocation of the trace.
static void set_stretches(struct aggregate *aggregate)
{
	uint64_t end = aggregate->edges[aggregate->buckets];
	size_t bucket = 0;

	ASSERT(aggregate->buckets > 0);
	aggregate->stretch_log2 = 0;
	while (end >> aggregate->stretch_log2 >= STRETCHES)
		aggregate->stretch_log2++;
	mem_free(aggregate->stretches);
	aggregate->stretches = mem_alloc(STRETCHES + 1, sizeof *aggregate->stretches);
	for (uint64_t i = 0; i <= STRETCHES; i++) {
		while (bucket + 1 < aggregate->buckets &&
		       aggregate->edges[bucket + 1] <= i << aggregate->stretch_log2)
			bucket++;
		aggregate->stretches[i] = (uint32_t)bucket;
	}
}

// False ends the walk: there are too many cells, and this try is over.
static bool take_allocation(void *context, const struct window_allocation *allocation)
{
	struct aggregate *aggregate = context;
	enum kind kind = kind_of(allocation->end_kind);
	// Births are one up, as what was there before has -1.
	uint64_t birth = (uint64_t)(bucket_of(aggregate, allocation->begin) + 1);
	uint64_t death = kind == KIND_NEVER ? aggregate->buckets
					    : (uint64_t)bucket_of(aggregate, allocation->end);
	uint64_t key = (uint64_t)allocation->group << (2 * END_BITS + KIND_BITS) |
		       birth << (END_BITS + KIND_BITS) | death << KIND_BITS | kind;
	bool added;
	uint64_t *number = map_put(&aggregate->cell_of, key, &added);

	ASSERT(aggregate->cells_count <= aggregate->cells_max);
	if (added) {
		// No more is looked at: the next try begins with fewer stacks or wider ticks.
		if (aggregate->cells_count == aggregate->cells_max) {
			aggregate->too_many = true;
			return false;
		}
		MEM_ROOM(aggregate->cells, aggregate->cells_capacity, aggregate->cells_count + 1);
		aggregate->cells[aggregate->cells_count] = (struct aggregate_cell){ .key = key };
		*number = aggregate->cells_count++;
	}
	aggregate->cells[*number].count++;
	aggregate->cells[*number].bytes += allocation->cell.size;
	return true;
}

// An edge to be; `mark` is the mark's number + 1, or 0.
struct place {
	uint64_t edge, time_ns;
	size_t mark;
};

SORT_ORDER(earlier_first, struct place, SORT_RISES(edge), SORT_RISES(time_ns), SORT_RISES(mark))

// All places but the first and the last edge, in their order.
static struct place *find_places(const struct aggregate *aggregate, size_t *count)
{
	struct window *window = aggregate->opened->window;
	uint64_t duration = moment_duration(aggregate->opened->reader);
	const struct window_mark *marks = window_marks(window, count);
	struct place *places = mem_alloc(aggregate->ticks + aggregate->marks, sizeof *places);

	ASSERT(aggregate->ticks > 0);
	*count = 0;
	// For example 512 ticks of a recording of 10 s: an edge each 19.5 ms, and one where each
	// mark is.
	for (size_t i = 1; i < aggregate->ticks; i++) {
		// In 128 bits: how long a trace is is what its file says.
		uint64_t time = (uint64_t)((unsigned __int128)duration * i / aggregate->ticks);

		places[(*count)++] = (struct place){ window_edge_at(window, time), time, 0 };
	}
	for (size_t i = 0; i < aggregate->marks; i++)
		places[(*count)++] = (struct place){ marks[i].edge, marks[i].time_ns, i + 1 };
	if (*count > 1)
		qsort(places, *count, sizeof *places, earlier_first);
	return places;
}

// Edges are ticks and marks in one order; the first and the last are the trace's own.
static void set_edges(struct aggregate *aggregate)
{
	size_t count;
	struct place *places = find_places(aggregate, &count);

	MEM_FREE(aggregate->edges, aggregate->edges_ns, aggregate->mark_edges);
	aggregate->buckets = count + 1;
	aggregate->edges = mem_alloc(count + 2, sizeof *aggregate->edges);
	aggregate->edges_ns = mem_alloc(count + 2, sizeof *aggregate->edges_ns);
	aggregate->mark_edges = mem_alloc(aggregate->marks + 1, sizeof *aggregate->mark_edges);
	aggregate->edges[0] = WINDOW_START;
	for (size_t i = 0; i < count; i++) {
		aggregate->edges[i + 1] = places[i].edge;
		aggregate->edges_ns[i + 1] = places[i].time_ns;
		// The page finds a mark by its edge, since edges of ticks and marks are one list.
		if (places[i].mark)
			aggregate->mark_edges[places[i].mark - 1] = i + 1;
	}
	aggregate->edges[count + 1] = window_facts(aggregate->opened->window)->steps_end;
	aggregate->edges_ns[count + 1] = moment_duration(aggregate->opened->reader);
	set_stretches(aggregate);
	mem_free(places);
}

// One try. *fits: there were no more cells than may be.
// Edges depend on the number of ticks, so they are set for each try.
static bool count_cells(struct aggregate *aggregate, bool *fits, struct err *err)
{
	struct window_query query = {
		.from = WINDOW_START,
		.to = window_facts(aggregate->opened->window)->steps_end,
		.layers = WINDOW_HEAP | WINDOW_VM,
		.by_size = true,
		.by_thread = aggregate->threads,
		.undated = true,
		.group = by_group,
		.context = aggregate,
	};
	bool good;

	map_clear(&aggregate->group_of);
	map_clear(&aggregate->cell_of);
	aggregate->groups_count = aggregate->cells_count = 0;
	aggregate->too_many = false;
	set_edges(aggregate);
	good = window_walk(aggregate->opened->window, &query, take_allocation, aggregate, err);
	*fits = !aggregate->too_many;
	return good;
}

// The next coarser way. False: there is none.
static bool coarsen(struct aggregate *aggregate, size_t *stacks)
{
	ASSERT(aggregate->buckets > 0);
	ASSERT(aggregate->ticks >= TICKS_LEAST);
	// For example 5,000 stacks, threads and 512 ticks: 2,500, 1,250 and 1,000 stacks, then no
	// threads, then 256 and 128 ticks, then 500 stacks, and so on to 31, 15; 64, 32, 16 ticks;
	// and then it is an error.
	if (*stacks > STACKS_FEW)
		*stacks = *stacks / 2 < STACKS_FEW ? STACKS_FEW : *stacks / 2;
	else if (aggregate->threads)
		aggregate->threads = false;
	else if (aggregate->ticks > TICKS_FEW)
		aggregate->ticks /= 2;
	else if (*stacks > STACKS_LEAST)
		*stacks /= 2;
	else if (aggregate->ticks > TICKS_LEAST)
		aggregate->ticks /= 2;
	else
		return false;
	return true;
}

SORT_ORDER(lower_key_first, struct aggregate_cell, SORT_RISES(key))

// Which stacks are heavy is found once; each try keeps fewer of them.
static bool take_all(struct aggregate *aggregate, size_t stacks_max, struct err *err)
{
	size_t count, stacks;
	struct weighed *list = rank_stacks(aggregate, &count, err);
	bool fits = false, good = list != NULL;

	stacks = count < stacks_max ? count : stacks_max;
	while (good && !fits) {
		keep_stacks(aggregate, list, count, stacks);
		good = count_cells(aggregate, &fits, err);
		if (good && !fits && !coarsen(aggregate, &stacks))
			good = err_set(err, ERR_LIMIT,
				       "the trace does not fit into so small a file (try a larger "
				       "--max-bytes)");
	}
	mem_free(list);
	return good;
}

// Cells are sorted by key, so that the columns of the file change slowly and compress well.
bool aggregate_take(struct aggregate *aggregate, struct opened *opened, size_t stacks_max,
		    size_t cells_max, struct err *err)
{
	*aggregate = (struct aggregate){
		.opened = opened,
		.ticks = TICKS_FIRST,
		.threads = reader_threads_count(opened->reader) <= THREADS_MAX &&
			   !window_facts(opened->window)->threads_folded,
		.labels = labels_new(LABELS_EXACT, opened->reader, opened->names),
		.cells_max = cells_max,
	};
	window_marks(opened->window, &aggregate->marks);
	if (aggregate->marks > AGGREGATE_MARKS_MAX)
		aggregate->marks = AGGREGATE_MARKS_MAX;
	if (!take_all(aggregate, stacks_max, err)) {
		aggregate_fini(aggregate);
		return false;
	}
	MAP_FINI(&aggregate->cell_of, &aggregate->group_of);
	if (aggregate->cells_count > 1)
		qsort(aggregate->cells, aggregate->cells_count, sizeof *aggregate->cells,
		      lower_key_first);
	return true;
}

void aggregate_fini(struct aggregate *aggregate)
{
	labels_free(aggregate->labels);
	MAP_FINI(&aggregate->cell_of, &aggregate->group_of);
	MEM_FREE(aggregate->edges, aggregate->edges_ns, aggregate->mark_edges, aggregate->stretches,
		 aggregate->stacks, aggregate->numbers, aggregate->groups, aggregate->cells);
	*aggregate = (struct aggregate){ 0 };
}

// ---- writing ----

// Texts and frames get numbers as they are met.
struct packing {
	const struct aggregate *aggregate;
	const struct scrub *scrub; // NULL: nothing is hidden
	struct labels *texts;      // labels of texts, from 1; number 0 is ""
	uint32_t texts_count;
	struct map frame_of; // symbol -> number
	const struct symbol **frames;
	size_t frames_count, frames_capacity;
	uint32_t *faces;
};

// 0 is the empty text, and none.
static uint32_t text_number(struct packing *packing, const char *text)
{
	uint32_t number = text && *text ? labels_text(packing->texts, text) : 0;

	if (number > packing->texts_count)
		packing->texts_count = number;
	return number;
}

// The same of a text that may have a path in it: scrub_path or scrub_words takes that out.
static uint32_t scrubbed_number(struct packing *packing, const char *from,
				void (*scrub)(const struct scrub *scrub, const char *from,
					      size_t length, struct str *out))
{
	struct str text = { 0 };
	uint32_t number;

	if (!packing->scrub || !from)
		return text_number(packing, from);
	scrub(packing->scrub, from, strlen(from), &text);
	number = text_number(packing, str_get(&text));
	str_fini(&text);
	return number;
}

// By the symbol's address: names has one symbol for a frame.
static uint32_t frame_number(struct packing *packing, const struct symbol *symbol)
{
	bool added;
	uint64_t *number = map_put(&packing->frame_of, (uint64_t)(uintptr_t)symbol, &added);

	if (added) {
		MEM_ROOM(packing->frames, packing->frames_capacity, packing->frames_count + 1);
		*number = packing->frames_count;
		packing->frames[packing->frames_count++] = symbol;
	}
	return (uint32_t)*number;
}

static bool is_folded(const struct aggregate *aggregate, size_t number)
{
	ASSERT(number < aggregate->stacks_count);
	return number == 0 || number == aggregate->rest;
}

// Frames get their numbers here, and are written after: the page reads columns by name, in any
// order.
static void write_stacks(struct packing *packing, struct json *json)
{
	const struct aggregate *aggregate = packing->aggregate;

	json_kv_array(json, "stacks");
	for (size_t i = 0; i < aggregate->stacks_count; i++) {
		struct names_stack stack = { 0 };

		// "(no stack)" and "rest" have no lines and no face; the page has words for them.
		packing->faces[i] = FOLDED;
		if (!is_folded(aggregate, i))
			stack = names_stack(aggregate->opened->names, aggregate->stacks[i]);
		json_array_begin(json);
		for (size_t line = 0; line < stack.count; line++)
			json_u64(json, frame_number(packing, stack.lines[line].symbol));
		json_array_end(json);
		if (stack.count > 0)
			packing->faces[i] = frame_number(packing, stack.lines[stack.user].symbol);
	}
	json_array_end(json);
	json_kv_array(json, "stack_ids");
	for (size_t i = 0; i < aggregate->stacks_count; i++)
		json_u64(json, is_folded(aggregate, i) ? 0 : aggregate->stacks[i]);
	json_array_end(json);
	// The line that stands for a stack in a table: that of the program's own code, below
	// wrappers.
	json_kv_array(json, "faces");
	for (size_t i = 0; i < aggregate->stacks_count; i++)
		json_i64(json, packing->faces[i] == FOLDED ? -1 : (int64_t)packing->faces[i]);
	json_array_end(json);
	json_kv_u64_if(json, "rest", aggregate->rest > 0, aggregate->rest);
}

enum frame_column { FUNCTION, FILE_NAME, LINE, MODULE, OFFSET, INLINED, FRAME_COLUMNS };

// Names and paths may say whose machine it was, so these are what can be scrubbed.
static uint64_t frame_figure(struct packing *packing, const struct symbol *symbol,
			     enum frame_column column)
{
	ASSERT(column < FRAME_COLUMNS);
	switch (column) {
	case FUNCTION:
		return scrubbed_number(packing, symbol->function, scrub_words);
	case FILE_NAME:
		return scrubbed_number(packing, symbol->file, scrub_path);
	case LINE:
		return symbol->line;
	case MODULE:
		return scrubbed_number(packing, symbol->module, scrub_path);
	case OFFSET:
		return symbol->offset;
	case INLINED:
	case FRAME_COLUMNS:
		break;
	}
	return symbol->inlined;
}

static void write_frames(struct packing *packing, struct json *json)
{
	static const char *const words[FRAME_COLUMNS] = { "function", "file",   "line",
							  "module",   "offset", "inlined" };

	json_kv_object(json, "frames");
	for (int column = 0; column < FRAME_COLUMNS; column++) {
		json_kv_array(json, words[column]);
		for (size_t i = 0; i < packing->frames_count; i++)
			json_u64(json, frame_figure(packing, packing->frames[i],
						    (enum frame_column)column));
		json_array_end(json);
	}
	json_object_end(json);
}

enum cell_column {
	LAYER,
	PROCESS,
	THREAD,
	HEAP,
	OWNER,
	STACK,
	OCTAVE,
	BEGIN,
	END,
	KIND,
	COUNT,
	BYTES,
	CELL_COLUMNS
};

// Takes the key apart again. -1 is what is folded, or what has none.
static int64_t cell_figure(struct packing *packing, const struct aggregate_cell *cell,
			   enum cell_column column)
{
	const struct aggregate_group *group =
		&packing->aggregate->groups[cell->key >> (2 * END_BITS + KIND_BITS)];
	const uint64_t bucket_mask = (1 << END_BITS) - 1;

	ASSERT(cell->key >> (2 * END_BITS + KIND_BITS) < packing->aggregate->groups_count);
	switch (column) {
	case LAYER:
		return group->layer;
	case PROCESS:
		return group->process;
	case THREAD:
		return group->thread == FOLDED ? -1 : (int64_t)group->thread;
	case HEAP:
		return group->layer ? -1 : (int64_t)group->heap;
	case OWNER:
		return group->layer ? text_number(packing,
						  space_owner_word((enum space_owner)group->owner))
				    : 0;
	case STACK:
		return group->stack;
	case OCTAVE:
		return group->octave;
	case BEGIN:
		return (int64_t)(cell->key >> (END_BITS + KIND_BITS) & bucket_mask) - 1;
	case END:
		return (int64_t)(cell->key >> KIND_BITS & bucket_mask);
	case KIND:
		return (int64_t)(cell->key & ((1 << KIND_BITS) - 1));
	case COUNT:
		return (int64_t)cell->count;
	case BYTES:
	case CELL_COLUMNS:
		break;
	}
	return (int64_t)cell->bytes;
}

// A column after the other, since numbers of one kind beside each other compress to a fraction.
static void write_cells(struct packing *packing, struct json *json)
{
	static const char *const words[CELL_COLUMNS] = { "layer", "process", "thread", "heap",
							 "owner", "stack",   "octave", "begin",
							 "end",   "kind",    "count",  "bytes" };
	const struct aggregate *aggregate = packing->aggregate;

	json_kv_object(json, "cells");
	for (int column = 0; column < CELL_COLUMNS; column++) {
		json_kv_array(json, words[column]);
		for (size_t i = 0; i < aggregate->cells_count; i++)
			json_i64(json, cell_figure(packing, &aggregate->cells[i],
						   (enum cell_column)column));
		json_array_end(json);
	}
	json_object_end(json);
}

// Texts are written last: they get their numbers while frames and cells are written.
void aggregate_write(const struct aggregate *aggregate, const struct scrub *scrub,
		     struct json *json)
{
	struct packing packing = {
		.aggregate = aggregate,
		.scrub = scrub,
		.texts = labels_new(LABELS_EXACT, aggregate->opened->reader,
				    aggregate->opened->names),
		.faces = mem_alloc(aggregate->stacks_count + 1, sizeof(uint32_t)),
	};

	ASSERT(aggregate->edges);
	json_kv_array(json, "edges_ns");
	for (size_t i = 0; i <= aggregate->buckets; i++)
		json_u64(json, aggregate->edges_ns[i]);
	json_array_end(json);
	json_kv_array(json, "mark_edges");
	for (size_t i = 0; i < aggregate->marks; i++)
		json_u64(json, aggregate->mark_edges[i]);
	json_array_end(json);
	write_stacks(&packing, json);
	write_frames(&packing, json);
	write_cells(&packing, json);
	json_kv_array(json, "strings");
	json_string(json, "");
	for (uint32_t i = 1; i <= packing.texts_count; i++)
		json_string(json, labels_get_text(packing.texts, i));
	json_array_end(json);
	labels_free(packing.texts);
	map_fini(&packing.frame_of);
	MEM_FREE(packing.frames, packing.faces);
}
