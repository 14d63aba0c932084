// From the engine's groups to rows.
//
// The engine is given a function from a cell to a number. Here it is a tuple of what the keys make
// of the cell, numbered in the order of first sight (find_group). For example, with --by
// process,stack three cells: process 0 with stack 7, process 0 with stack 9, which reads the same
// as 7 and so has its label, and process 2 with stack 7. The tuples are (no orphan, 0, label 1),
// the same, and (no orphan, 2, label 1): two groups, 0 and 1, and after two questions (of depth 1
// and 2) four rows: process 0, its stack; process 2, its stack.
//
// Impact and type are no function of a cell, since one cell has allocations of all four: a group of
// the engine has four sums, and becomes up to four rows there (rows_of_group). A mark is a window
// of its own, so the question is asked once for each phase (table_phases.c).
//
// Labels cost names, and names cost symbols: stacks are looked up only after a first question,
// which needs none, has said which are in the window (table_present.c).
#include "report/table/table.h"

#include "base/mem.h"
#include "report/ask/own_heap.h"

#include <stdio.h>
#include <string.h>

// Allocations are told apart by the values of those keys that are functions of a cell.
struct table_level {
	struct table *table;
	size_t depth;     // of the keys, the first so many
	uint64_t *tuples; // values of one group after the other: `width` each
	size_t width, groups, capacity;
	struct index_set group_of; // by tuple
	bool by_label;             // the last key is a stack, whose labels count from 1
	size_t size_at;            // of tuples, where of a cell they have its size alone; 0: not so
	uint32_t *of_size;         // then, by the size's lowest bits: a group + 1, to look at first
};

// What was begun or ended in the window, but not both, changes the level: both types are one
// impact.
static uint64_t impact_of(enum window_type type)
{
	return type == WINDOW_AIFI   ? TABLE_TRANSIENT
	       : type == WINDOW_AOFO ? TABLE_PERSISTENT
				     : TABLE_IMPACTS;
}

// ---- values: what keys make of a cell ----

// The slot of a stack in a cache by stack, which is made when it is first asked for. A stack that
// the trace does not have shares the slot of stack 0.
static uint32_t *cached(struct table *table, uint32_t **cache, stack_id stack)
{
	uint32_t count = reader_stacks_count(table->asked->reader);

	if (!*cache)
		*cache = mem_alloc(count + (size_t)1, sizeof **cache);
	return &(*cache)[stack < count ? stack : 0];
}

// The label of what `add` says of the stack.
static uint32_t label_by(struct table *table, stack_id stack,
			 void (*add)(struct names *names, stack_id stack, bool innermost,
				     struct str *text))
{
	struct str text = { 0 };
	uint32_t label;

	add(table->asked->names, stack, table->options->all_frames, &text);
	label = labels_text(table->labels, str_get(&text));
	str_fini(&text);
	return label;
}

static uint32_t label_function(struct table *table, stack_id stack)
{
	return label_by(table, stack, names_add_function);
}

static uint32_t label_module(struct table *table, stack_id stack)
{
	return label_by(table, stack, names_add_module);
}

static uint32_t label_line(struct table *table, stack_id stack)
{
	return label_by(table, stack, names_add_line);
}

// A stack without a tag has a row as well, so that the sums of the rows are the total.
static uint32_t label_tag(struct table *table, stack_id stack)
{
	struct names_stack lines = names_stack(table->asked->names, stack);
	struct str text = { 0 };
	uint32_t label;

	if (!tags_find(table->options->tags, &lines, &text))
		str_add(&text, "(no tag)");
	label = labels_text(table->labels, str_get(&text));
	str_fini(&text);
	return label;
}

// Labels begin at 1, so 0 in the cache is a stack that was not asked for yet.
static uint64_t of_stack(struct table *table, uint32_t **cache, stack_id stack,
			 uint32_t (*label)(struct table *table, stack_id stack))
{
	uint32_t *known = cached(table, cache, stack);

	if (!*known)
		*known = label(table, stack);
	return *known;
}

// A heap of a runtime, which is mappings.
static uint64_t label_mapped(struct table *table, const struct window_cell *cell)
{
	const struct query_context *asked = table->asked;
	const char *heap = NULL;

	if (cell->owner == SPACE_PROGRAM)
		heap = own_heap_mapped(asked->names, reader_process(asked->reader, cell->process),
				       cell->stack);
	return labels_text(table->labels, heap ? heap : "(virtual memory)");
}

// Heap 0 is malloc's, and has a name of its own.
static uint64_t label_heap(struct table *table, const struct window_cell *cell)
{
	const struct trace_heap *heap = reader_heap(table->asked->reader, cell->heap);
	char text[READER_HEAP_TEXT];

	if (cell->layer != WINDOW_HEAP)
		return label_mapped(table, cell);
	return labels_text(table->labels, reader_heap_name(cell->heap ? heap : NULL, text));
}

// Whether the value of the key is a function of a cell.
static bool of_cell(enum keys_key key)
{
	return key != KEYS_IMPACT && key != KEYS_TYPE && key != KEYS_MARK && key != KEYS_LIFETIME;
}

// process: its id. layer: its bit. thread: its tid. owner: + 1; 0 is a heap. stack: its label.
// size: bytes. heap, module, function, line, tag: the label of a text.
static uint64_t value_of(struct table *table, enum keys_key key, const struct window_cell *cell)
{
	const struct trace_thread *thread;

	ASSERT(key < KEYS_COUNT);
	switch (key) {
	case KEYS_PROCESS:
		return cell->process;
	case KEYS_LAYER:
		return cell->layer;
	case KEYS_HEAP:
		return label_heap(table, cell);
	case KEYS_THREAD:
		thread = reader_thread(table->asked->reader, cell->thread);
		return thread ? thread->tid : 0;
	case KEYS_OWNER:
		return cell->layer == WINDOW_VM ? cell->owner + UINT64_C(1) : 0;
	case KEYS_MODULE:
		return of_stack(table, &table->modules, cell->stack, label_module);
	case KEYS_FUNCTION:
		return of_stack(table, &table->functions, cell->stack, label_function);
	case KEYS_LINE:
		return of_stack(table, &table->source_lines, cell->stack, label_line);
	case KEYS_STACK:
		return labels_stack(table->labels, cell->stack);
	case KEYS_TAG:
		return of_stack(table, &table->stack_tags, cell->stack, label_tag);
	case KEYS_SIZE:
		return cell->size;
	default:
		return 0;
	}
}

// ---- groups ----

static bool is_tuple(const void *context, uint32_t position, const void *key)
{
	const struct table_level *level = context;

	return memcmp(level->tuples + position * level->width, key,
		      level->width * sizeof *level->tuples) == 0;
}

static uint32_t label_of(const struct table_level *level, const uint64_t *tuple)
{
	ASSERT(level->by_label && tuple[level->depth] <= UINT32_MAX);
	return (uint32_t)tuple[level->depth];
}

// INDEX_SET_NONE: no group has it.
static uint32_t find_tuple(const struct table_level *level, const uint64_t *tuple)
{
	uint64_t hash = index_set_hash(tuple, level->width);

	return level->by_label ? index_set_find_by(&level->group_of, label_of(level, tuple), hash,
						   is_tuple, level, tuple)
			       : index_set_find(&level->group_of, hash, is_tuple, level, tuple);
}

// The number of a tuple's group; made, if it is new. Tuples are `width` numbers each, one after the
// other. Where stacks have groups there is room for all at once: memory that is not used costs
// nothing, and a list that grows is copied into new pages.
static uint32_t find_group(struct table_level *level, const uint64_t *tuple)
{
	uint32_t count = (uint32_t)level->groups;
	uint64_t hash = index_set_hash(tuple, level->width);
	uint32_t found =
		level->by_label
			? index_set_put_by(&level->group_of, label_of(level, tuple), hash, is_tuple,
					   level, tuple, count)
			: index_set_put(&level->group_of, hash, is_tuple, level, tuple, count);

	if (count == 0 && level->by_label)
		level->tuples = mem_grow(level->tuples, &level->capacity,
					 level->width * (level->table->stacks_count + (size_t)1),
					 sizeof *tuple);
	if (found == count) {
		level->tuples = mem_grow(level->tuples, &level->capacity,
					 (level->groups + 1) * level->width, sizeof *tuple);
		memcpy(level->tuples + level->groups++ * level->width, tuple,
		       level->width * sizeof *tuple);
	}
	return found;
}

// Whether a key needs names of functions or files.
static bool names_stacks(const struct keys *keys)
{
	return keys_has(keys, KEYS_STACK) || keys_has(keys, KEYS_FUNCTION) ||
	       keys_has(keys, KEYS_LINE) || keys_has(keys, KEYS_MODULE) || keys_has(keys, KEYS_TAG);
}

// Where a size is all that is asked of a cell its group is mostly the one that was met last with
// such lowest bits.
enum { SIZES_KNOWN = 1 << 12 };
static uint32_t *known_of_size(const struct table_level *level, const struct window_cell *cell)
{
	return &level->of_size[cell->size & (SIZES_KNOWN - 1)];
}

static bool is_of_size(const struct table_level *level, uint32_t group,
		       const struct window_cell *cell)
{
	const uint64_t *tuple = level->tuples + group * level->width;

	return tuple[0] == cell->orphans && tuple[level->size_at] == cell->size;
}

// The place of the size in tuples that have nothing else of a cell.
static size_t find_size_at(const struct keys *keys, size_t depth)
{
	size_t at = 0;

	for (size_t i = 0; i < depth; i++) {
		if (keys->list[i] == KEYS_SIZE)
			at = i + 1;
		else if (of_cell(keys->list[i]))
			return 0;
	}
	return at;
}

// Whether an orphan, and the values of the cell's keys.
static uint32_t group_by_keys(void *context, const struct window_cell *cell)
{
	struct table_level *level = context;
	const struct keys *keys = &level->table->options->keys;
	uint64_t tuple[KEYS_COUNT + 1] = { cell->orphans };
	uint32_t *known = level->size_at ? known_of_size(level, cell) : NULL, group;

	if (known && *known && is_of_size(level, *known - 1, cell))
		return *known - 1;
	for (size_t i = 0; i < level->depth; i++)
		if (of_cell(keys->list[i]))
			tuple[i + 1] = value_of(level->table, keys->list[i], cell);
	group = find_group(level, tuple);
	if (known)
		*known = group + 1;
	return group;
}

// The engine's grouping.
static uint32_t group(void *context, const struct window_cell *cell)
{
	const struct table *table = ((struct table_level *)context)->table;

	// Sizes first: most cells are of others, and what is known by stack is far apart in memory.
	if (!query_has_size(&table->asked->selection.query, cell->size) ||
	    !table_is_present(table, cell->stack) || !query_context_selects(table->asked, cell))
		return WINDOW_SKIP;
	return group_by_keys(context, cell);
}

// The window, or a phase of it. Sizes and threads are kept apart by the engine only where a key
// asks for them, as that makes more cells.
struct window_query table_query(struct table *table, size_t depth, const struct table_phase *phase)
{
	struct window_query query = query_context_query(table->asked, QUERY_CONTEXT_ALL,
							table->asked->from, table->asked->to);
	bool sized = false;

	ASSERT(depth <= table->options->keys.count);
	for (size_t i = 0; i < depth; i++) {
		sized |= table->options->keys.list[i] == KEYS_SIZE;
		query.by_thread |= table->options->keys.list[i] == KEYS_THREAD;
	}
	if (phase) {
		query.from = phase->from;
		query.to = phase->to;
	}
	query.peaks_only = table->options->peaks_only;
	query.lifetimes_only = table->options->lifetimes_only;
	query.group = group;
	query.context = &table->levels[depth];
	query.by_size |= sized;
	query.by_size_alone = table->levels[depth].size_at && !table->present &&
			      query_context_selects_all(table->asked);
	if (!sized) {
		query.sizes = table->asked->selection.query.sizes;
		query.sizes_count = table->asked->selection.query.sizes_count;
	}
	return query;
}

// ---- rows ----

// What the rows of a group share, and what tells them apart.
struct place {
	const uint64_t *tuple;
	uint64_t phase;
	enum window_type type; // WINDOW_TYPES: the row is of several
};

// Frees of nothing known are of no type: their row stands where the types do, with nothing below.
static size_t orphans_depth(const struct keys *keys)
{
	for (size_t i = 0; i < keys->count; i++)
		if (keys->list[i] == KEYS_TYPE || keys->list[i] == KEYS_IMPACT)
			return i + 1;
	return keys->count;
}

// The value of one key of a row. WINDOW_TYPES is the impact of frees of nothing known: they have
// none.
static uint64_t value_at(const struct table *table, size_t level, const struct place *place,
			 bool orphans)
{
	ASSERT(level < table->options->keys.count);
	switch (table->options->keys.list[level]) {
	case KEYS_MARK:
		return place->phase;
	case KEYS_TYPE:
		return place->type;
	case KEYS_IMPACT:
		return orphans ? WINDOW_TYPES : impact_of(place->type);
	default:
		return place->tuple[level + 1];
	}
}

// Whether the row of this level is one of frees of nothing known; above that depth they are in the
// rows of their other keys.
static bool orphans_at(const struct table *table, size_t level, const struct place *place)
{
	return place->tuple[0] && level + 1 == orphans_depth(&table->options->keys);
}

// The row of so many keys; TABLE_NONE: it was not kept, or one above it was not.
static uint32_t find_row(const struct table *table, size_t depth, const struct place *place)
{
	uint32_t row = 0;

	ASSERT(depth <= table->options->keys.count);
	for (size_t i = 0; i < depth && row != TABLE_NONE; i++) {
		bool orphans = orphans_at(table, i, place);

		row = table_find_child(table, row, value_at(table, i, place, orphans), orphans);
	}
	return row;
}

// Leave only what --impact asks for.
static void keep_types(const struct table *table, struct window_row *row, struct window_rest *rest)
{
	unsigned types = table->asked->selection.query.types;

	window_keep_types(row, types);
	if (types)
		*rest = (struct window_rest){ 0 };
}

bool table_typed(const struct table *table, size_t depth)
{
	ASSERT(depth <= table->options->keys.count);
	for (size_t i = 0; i < depth; i++)
		if (table->options->keys.list[i] == KEYS_TYPE ||
		    table->options->keys.list[i] == KEYS_IMPACT)
			return true;
	return false;
}

// Of those types that the row has any of.
static struct window_spread spread_of(const struct window_row *sums,
				      const struct window_spread *spread)
{
	struct window_spread own = { 0 };

	for (int type = 0; type < WINDOW_TYPES; type++)
		if (sums->type[type].count > 0)
			own.type[type] = spread->type[type];
	return own;
}

// A row below one that was not kept is not kept. A row without allocations has no group to ask
// details of.
static void add_row(struct table *table, size_t depth, const struct place *place,
		    uint32_t group_number, const struct window_row *sums,
		    const struct window_rest *rest)
{
	bool orphans = orphans_at(table, depth - 1, place);
	struct table_row row = {
		.parent = find_row(table, depth - 1, place),
		.depth = (uint32_t)depth,
		.value = value_at(table, depth - 1, place, orphans),
		.orphans = orphans,
		.sums = *sums,
		.rest = *rest,
		.group = window_present(sums).count ? group_number : WINDOW_SKIP,
	};

	ASSERT(depth > 0);
	if (row.parent == TABLE_NONE)
		return;
	if (table->result && table->result->spreads)
		row.spread = spread_of(&row.sums, &table->result->spreads[group_number]);
	table_add_row(table, &row);
}

// Which types are one row: sets of them, as bits.
static const unsigned by_type[WINDOW_TYPES] = { 1u << WINDOW_AIFI, 1u << WINDOW_AIFO,
						1u << WINDOW_AOFI, 1u << WINDOW_AOFO };
static const unsigned by_impact[WINDOW_TYPES] = { 1u << WINDOW_AIFI,
						  1u << WINDOW_AIFO | 1u << WINDOW_AOFI, 0,
						  1u << WINDOW_AOFO };

// A key `type` makes four rows, a key `impact` three.
static const unsigned *type_sets(const struct table *table, size_t depth)
{
	ASSERT(depth <= table->options->keys.count);
	for (size_t i = 0; i < depth; i++)
		if (table->options->keys.list[i] == KEYS_TYPE)
			return by_type;
	return by_impact;
}

// One group of the engine's answer becomes a row, or one for each set of types. Gives how many;
// they are added if `place` is there.
static uint32_t rows_of_group(struct table *table, size_t depth, struct place *place,
			      uint32_t group_number, struct window_row sums,
			      struct window_rest rest)
{
	static const struct window_rest none;
	const uint64_t *tuple =
		table->levels[depth].tuples + group_number * table->levels[depth].width;
	const unsigned *sets = type_sets(table, depth);
	uint32_t count = 0;

	ASSERT(depth > 0 && depth <= table->options->keys.count);
	keep_types(table, &sums, &rest);
	// tuple[0] says that it is frees of nothing known: they have no rows below orphans_depth.
	if (window_is_empty(&sums, &rest) ||
	    (tuple[0] && depth > orphans_depth(&table->options->keys)))
		return 0;
	if (!table_typed(table, depth) || tuple[0]) {
		if (place) {
			place->type = WINDOW_TYPES;
			add_row(table, depth, place, group_number, &sums, &rest);
		}
		return 1;
	}
	for (int set = 0; set < WINDOW_TYPES; set++) {
		struct window_row part = { 0 };

		for (int type = 0; type < WINDOW_TYPES; type++)
			if (sets[set] >> type & 1)
				part.type[type] = sums.type[type];
		if (window_present(&part).count == 0)
			continue;
		count++;
		if (!place)
			continue;
		place->type = (enum window_type)set;
		add_row(table, depth, place, group_number, &part, &none);
	}
	return count;
}

// Above where the types stand, frees of nothing known belong to the row with the same keys.
static void join_orphans(struct table *table, size_t depth, struct window_result *result)
{
	const struct table_level *level = &table->levels[depth];
	size_t capacity = result->rests_count;

	ASSERT(depth <= table->options->keys.count);
	if (depth >= orphans_depth(&table->options->keys))
		return;
	for (uint32_t i = 0; i < result->rests_count; i++) {
		uint64_t tuple[KEYS_COUNT + 1];
		struct window_rest rest = result->rests[i];
		uint32_t other;

		memcpy(tuple, level->tuples + i * level->width, level->width * sizeof *tuple);
		// Groups of frees of nothing known, each to the group that has the same keys and
		// blocks.
		if (!tuple[0] || rest.orphans == 0)
			continue;
		tuple[0] = 0;
		other = find_tuple(level, tuple);
		if (other >= result->rows_count || window_present(&result->rows[other]).count == 0)
			continue;
		window_add_rest(window_result_make_rest(result, &capacity, other), &rest);
		result->rests[i] = (struct window_rest){ 0 };
	}
}

// What is said below the table, which the total has of both layers.
static void add_ends(struct table *table, bool vm, struct window_row sums, struct window_rest rest)
{
	keep_types(table, &sums, &rest);
	window_add_rest(&table->ends[vm], &rest);
}

// The rows are counted before they are made: what does not fit goes into a file, or is refused and
// not half done.
static bool take_groups(struct table *table, size_t depth, const struct table_phase *phase,
			struct window_result *result, struct err *err)
{
	const struct table_level *level = &table->levels[depth];
	uint64_t count = 0;

	ASSERT(depth > 0 && depth <= table->options->keys.count);
	join_orphans(table, depth, result);
	for (uint32_t i = 0; i < result->rows_count; i++)
		count += rows_of_group(table, depth, NULL, i, result->rows[i],
				       window_rest_of(result, i));
	if (!table_make_room(table, depth, count, err))
		return false;
	for (uint32_t i = 0; i < result->rows_count; i++) {
		struct place place = {
			.tuple = level->tuples + i * level->width,
			.phase = phase ? (uint64_t)(phase - table->phases) : 0,
		};

		rows_of_group(table, depth, &place, i, result->rows[i], window_rest_of(result, i));
		if (table->options->keys.list[depth - 1] == KEYS_LAYER)
			add_ends(table, value_at(table, depth - 1, &place, false) == WINDOW_VM,
				 result->rows[i], window_rest_of(result, i));
	}
	return true;
}

// The sums of all groups are the engine's own total, and not added up here.
static void take_total(struct table *table, const struct window_result *result)
{
	table->rows[0].sums = result->total;
	table->rows[0].rest = result->total_rest;
	keep_types(table, &table->rows[0].sums, &table->rows[0].rest);
	table->rows[0].spread = spread_of(&table->rows[0].sums, &result->total_spread);
	// Of frees of nothing known, which are a group of their own, there are no details.
	for (uint32_t i = 0; i < result->rows_count; i++) {
		struct window_row sums = result->rows[i];
		struct window_rest rest = { 0 };

		keep_types(table, &sums, &rest);
		if (window_present(&sums).count)
			table->rows[0].group = i;
	}
}

// The first question's sums are enough for some levels (table_present.c); for others the engine is
// asked. add_row finds the answer in the table while its rows are made.
static bool ask(struct table *table, size_t depth, const struct table_phase *phase, struct err *err)
{
	struct window_query query = table_query(table, depth, phase);
	struct window_result result;
	bool good = true;

	ASSERT(depth <= table->options->keys.count && !table->result);
	if (table_has_sums(table, depth)) {
		table_sum_up(table, depth, group_by_keys, &table->levels[depth], &result);
	} else {
		table_forget_sums(table);
		if (!window_ask(table->asked->window, &query, &result, err))
			return false;
	}
	table->result = &result;
	table->estimated |= result.spreads != NULL;
	if (depth == 0)
		take_total(table, &result);
	else
		good = take_groups(table, depth, phase, &result, err);
	table->result = NULL;
	window_result_fini(&result);
	return good;
}

// ---- single allocations ----

// By steps: an allocation begins in the window if its step is in [from, to), and ends in it the
// same way. An end with its process counts only where the query says so. In an empty window nothing
// begins.
enum window_type table_type_of(const struct window_query *query,
			       const struct window_allocation *allocation)
{
	bool by_exit = allocation->end_kind == WINDOW_END_EXIT ||
		       allocation->end_kind == WINDOW_END_EXEC;
	bool ends = allocation->end < query->to && (query->exit_frees || !by_exit);

	if (allocation->begin >= query->from && query->from != query->to)
		return ends ? WINDOW_AIFI : WINDOW_AIFO;
	return ends ? WINDOW_AOFI : WINDOW_AOFO;
}

uint32_t table_parent_of(const struct table *table, uint32_t group, const struct table_phase *phase,
			 enum window_type type)
{
	const struct table_level *level = &table->levels[table->options->keys.count];
	const struct place place = {
		.tuple = level->tuples + group * level->width,
		.phase = phase ? (uint64_t)(phase - table->phases) : 0,
		.type = type,
	};

	return find_row(table, level->depth - 1, &place);
}

// What --memory gives; 256 MiB without it.
uint64_t table_memory(const struct table *table)
{
	uint64_t bytes = table->asked->options.window.memory_bytes;

	return bytes ? bytes : UINT64_C(256) << 20;
}

// ---- all of it ----

// Looks up addresses, threads and ends of single allocations, which cost a search each, for those
// that are shown.
static bool fetch_shown(struct table *table, const uint32_t *list, size_t count, struct err *err)
{
	struct window_allocation *wanted = mem_alloc(count, sizeof *wanted);
	size_t wanted_count = 0;
	bool good;

	for (size_t i = 0; i < count; i++) {
		const struct table_row *row = &table->rows[list[i]];

		if (row->depth > 0 && table_key(table, row) == KEYS_LIFETIME && !row->orphans)
			wanted[wanted_count++] = table->allocations[row->value];
	}
	ASSERT(wanted_count <= count);
	good = window_fetch(table->asked->window, wanted, wanted_count, err);
	// The same rows once more, in the same order: each takes its answer back.
	wanted_count = 0;
	for (size_t i = 0; i < count && good; i++) {
		const struct table_row *row = &table->rows[list[i]];

		if (row->depth > 0 && table_key(table, row) == KEYS_LIFETIME && !row->orphans)
			table->allocations[row->value] = wanted[wanted_count++];
	}
	mem_free(wanted);
	return good;
}

// Asks for the rows of one depth: once, or once for each phase.
static bool fill_level(struct table *table, size_t depth, struct err *err)
{
	const struct keys *keys = &table->options->keys;
	bool single = depth > 0 && keys->list[depth - 1] == KEYS_LIFETIME;
	bool phased = false;
	size_t times;

	ASSERT(depth <= table->options->keys.count);
	for (size_t i = 0; i < depth; i++)
		phased |= keys->list[i] == KEYS_MARK;
	times = phased ? table->phases_count : 1;
	table_begin_level(table, depth);
	for (size_t i = 0; i < times; i++) {
		const struct table_phase *phase = phased ? &table->phases[i] : NULL;

		if (single ? !table_singles_find(table, phase, err)
			   : !ask(table, depth, phase, err))
			return false;
	}
	if (single)
		table_singles_insert(table);
	else if (depth > 0)
		table_end_level(table, depth);
	return true;
}

// While details are looked for the files are opened that have the names of the rows' stacks: these
// are known now, and it is the last moment before there is something else to do than to write.
static void expect_names(struct table *table, const uint32_t *list, size_t count)
{
	enum { ROWS_MAX = 64 }; // mostly all files are in the stacks of these

	for (size_t i = 0; i < count && i < ROWS_MAX; i++) {
		const struct table_row *row = &table->rows[list[i]];
		enum keys_key key = row->depth > 0 ? table_key(table, row) : KEYS_SIZE;

		if (key == KEYS_STACK)
			symbols_expect(table->asked->symbols, table_stack(table, row));
		else if (key == KEYS_LIFETIME && !row->orphans)
			symbols_expect(table->asked->symbols,
				       table->allocations[row->value].cell.stack);
	}
	symbols_open_expected(table->asked->symbols);
}

// The order: rows of all levels, then (where it is sorted by one) details of all, then the order,
// then details of what is shown. So 10 rows of 100,000 cost details of 10.
static bool fill(struct table *table, struct err *err)
{
	const struct table_options *options = table->options;
	bool by_detail = options->sorted && table_column_details(options->sort);
	uint32_t *list;
	size_t count;
	bool good = true;

	for (size_t depth = 0; depth <= options->keys.count && good; depth++)
		good = fill_level(table, depth, err);
	if (!good)
		return false;
	table_lay_out(table);
	if (by_detail) {
		list = table_list(table, true, &count);
		good = table_detail(table, list, count, err);
		mem_free(list);
	}
	table_sort(table);
	list = table_list(table, false, &count);
	expect_names(table, list, count);
	good = good && (by_detail || !options->details || table_detail(table, list, count, err)) &&
	       (!keys_has(&options->keys, KEYS_LIFETIME) || fetch_shown(table, list, count, err));
	mem_free(list);
	return good && (!table->spill || table_spill_sort(table, err));
}

// Frees of nothing known that pass the filters that can judge them.
static uint32_t only_orphans(void *context, const struct window_cell *cell)
{
	const struct query_context *asked = context;
	const struct query *query = &asked->selection.query;

	return cell->orphans && query_has_process(query, cell->process) &&
			       query_has_thread(query, cell->thread) &&
			       query_has_heap(query, cell->heap) &&
			       !(asked->pools_out &&
				 reader_heap_is_pool(reader_heap(asked->reader, cell->heap)))
		       ? 0
		       : WINDOW_SKIP;
}

// Say how many frees of nothing known the filters say nothing of.
static bool warn_of_orphans(struct query_context *asked, struct err *err)
{
	struct window_query query =
		query_context_query(asked, QUERY_CONTEXT_ALL, asked->from, asked->to);
	const struct window_facts *facts = window_facts(asked->window);
	struct window_result result;

	if (query_context_judges_frees(asked) || !(asked->layers & WINDOW_HEAP))
		return true;
	// The index has counted them: where there are none it is not asked.
	if (asked->layers == WINDOW_HEAP && (facts->orphans | facts->inherited) == 0)
		return true;
	query.lifetime_min_ns = query.lifetime_max_ns = 0; // which they do not have
	query.group = only_orphans;
	query.context = asked;
	if (!window_ask(asked->window, &query, &result, err))
		return false;
	if (result.total_rest.orphans)
		query_context_warn(asked,
				   "left out: %s frees of addresses where nothing was known to "
				   "live, which these filters say nothing of",
				   STR_COUNT(result.total_rest.orphans));
	window_result_fini(&result);
	return true;
}

// Row 0 is the total. Rows below it are made as the engine tells of cells; with stacks among the
// keys a first question finds which stacks the window has, so that only these are named.
struct table *table_new(struct query_context *asked, const struct table_options *options,
			struct err *err)
{
	size_t levels = options->keys.count + 1;
	struct table *table;

	if (keys_has(&options->keys, KEYS_TAG) && !options->tags) {
		err_set(err, ERR_USAGE, "key 'tag' needs --tags FILE");
		return NULL;
	}
	table = mem_alloc(1, sizeof *table);
	table->asked = asked;
	table->options = options;
	table->labels = opened_labels(asked->opened, options->labels);
	table->rows = mem_grow(NULL, &table->rows_capacity, 16, sizeof *table->rows);
	table->rows[0] = (struct table_row){ .parent = TABLE_NONE, .group = WINDOW_SKIP };
	table->rows_count = 1;
	table->levels = mem_alloc(levels, sizeof *table->levels);
	for (size_t i = 0; i < levels; i++)
		table->levels[i] = (struct table_level){
			.table = table,
			.depth = i,
			.width = i + 1,
			.by_label = i > 0 && options->keys.list[i - 1] == KEYS_STACK,
			.size_at = find_size_at(&options->keys, i),
		};
	for (size_t i = 0; i < levels; i++)
		if (table->levels[i].size_at)
			table->levels[i].of_size = mem_alloc(SIZES_KNOWN, sizeof(uint32_t));
	if (keys_has(&options->keys, KEYS_MARK))
		table_find_phases(table);
	if ((names_stacks(&options->keys) && !table_find_present(table, err)) ||
	    !fill(table, err) || !warn_of_orphans(asked, err)) {
		table_free(table);
		return NULL;
	}
	query_context_matched(asked, window_present(&table->rows[0].sums).count +
					     table->rows[0].rest.orphans);
	return table;
}

void table_free(struct table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i <= table->options->keys.count; i++) {
		MEM_FREE(table->levels[i].tuples, table->levels[i].of_size);
		index_set_fini(&table->levels[i].group_of);
	}
	for (size_t i = 0; i < table->phases_count; i++)
		mem_free(table->phases[i].name);
	MEM_FREE(table->phases, table->levels, table->rows, table->order, table->allocations,
		 table->dropped, table->bars);
	table_singles_free(table->singles);
	table_spill_free(table->spill);
	MEM_FREE(table->functions, table->source_lines, table->modules, table->stack_tags);
	index_set_fini(&table->children);
	mem_free(table->present);
	table_forget_sums(table);
	opened_labels_back(table->asked->opened, table->labels);
	mem_free(table);
}
