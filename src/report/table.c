#include "report/table.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Allocations are told apart by the values of those keys that are functions of a cell.
struct table_level {
	struct table *table;
	size_t depth;     // of the keys, the first so many
	uint64_t *tuples; // values of one group after the other: `width` each
	size_t width, groups, capacity;
	struct map group_of; // hash of a tuple -> group; a collision takes the next hash
};

static uint64_t impact_of(enum window_type type)
{
	return type == WINDOW_AIFI   ? TABLE_TRANSIENT
	       : type == WINDOW_AOFO ? TABLE_PERSISTENT
				     : TABLE_IMPACTS;
}

// ---- values: what keys make of a cell ----

// Texts of a stack, found once.
static uint32_t *cached(struct table *table, uint32_t **cache, stack_id stack)
{
	uint32_t count = reader_stacks_count(table->question->reader);

	if (!*cache)
		*cache = mem_alloc(count + (size_t)1, sizeof **cache);
	return &(*cache)[stack < count ? stack : 0];
}

static uint32_t label_function(struct table *table, stack_id stack)
{
	struct str text = { 0 };
	uint32_t label;

	table_describe_function(table, stack, &text);
	label = labels_text(table->labels, str_get(&text));
	str_fini(&text);
	return label;
}

static uint32_t label_module(struct table *table, stack_id stack)
{
	struct str text = { 0 };
	uint32_t label;

	names_add_module(table->question->names, stack, table->options->all_frames, &text);
	label = labels_text(table->labels, str_get(&text));
	str_fini(&text);
	return label;
}

static uint32_t label_tag(struct table *table, stack_id stack)
{
	struct names_stack lines = names_stack(table->question->names, stack);
	struct str text = { 0 };
	uint32_t label;

	if (!tags_find(table->options->tags, &lines, &text))
		str_add(&text, "(no tag)");
	label = labels_text(table->labels, str_get(&text));
	str_fini(&text);
	return label;
}

static uint64_t of_stack(struct table *table, uint32_t **cache, stack_id stack,
			 uint32_t (*label)(struct table *table, stack_id stack))
{
	uint32_t *known = cached(table, cache, stack);

	if (!*known)
		*known = label(table, stack);
	return *known;
}

static uint64_t label_heap(struct table *table, const struct window_cell *cell)
{
	const struct trace_heap *heap = reader_heap(table->question->reader, cell->heap);
	char handle[24];

	if (cell->layer != WINDOW_HEAP)
		return labels_text(table->labels, "(virtual memory)");
	if (cell->heap == 0 || !heap)
		return labels_text(table->labels, "malloc");
	snprintf(handle, sizeof handle, "0x%" PRIx64, heap->handle);
	return labels_text(table->labels, heap->handle ? handle : heap->name);
}

// Whether the value of the key is a function of a cell.
static bool of_cell(enum keys_key key)
{
	return key != KEYS_IMPACT && key != KEYS_TYPE && key != KEYS_MARK && key != KEYS_LIFETIME;
}

// process: its id. layer: its bit. thread: its tid. owner: + 1; 0 is a heap. stack: its label.
// size: bytes. heap, module, function, tag: the label of a text.
static uint64_t value_of(struct table *table, enum keys_key key, const struct window_cell *cell)
{
	const struct trace_thread *thread;

	switch (key) {
	case KEYS_PROCESS:
		return cell->process;
	case KEYS_LAYER:
		return cell->layer;
	case KEYS_HEAP:
		return label_heap(table, cell);
	case KEYS_THREAD:
		thread = reader_thread(table->question->reader, cell->thread);
		return thread ? thread->tid : 0;
	case KEYS_OWNER:
		return cell->layer == WINDOW_VM ? cell->owner + UINT64_C(1) : 0;
	case KEYS_MODULE:
		return of_stack(table, &table->modules, cell->stack, label_module);
	case KEYS_FUNCTION:
		return of_stack(table, &table->functions, cell->stack, label_function);
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

static uint32_t find_group(struct table_level *level, const uint64_t *tuple)
{
	uint64_t hash = 0;

	for (size_t i = 0; i < level->width; i++) {
		hash = (hash ^ tuple[i]) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	for (;; hash++) {
		bool added;
		uint64_t *group = map_put(&level->group_of, hash, &added);

		if (!added && memcmp(level->tuples + *group * level->width, tuple,
				     level->width * sizeof *tuple) == 0)
			return (uint32_t)*group;
		if (!added)
			continue;
		level->tuples = mem_grow(level->tuples, &level->capacity,
					 (level->groups + 1) * level->width, sizeof *tuple);
		memcpy(level->tuples + level->groups * level->width, tuple,
		       level->width * sizeof *tuple);
		*group = level->groups++;
		return (uint32_t)*group;
	}
}

// A grouping by the stack itself, which needs no names.
static uint32_t group_by_stack(void *context, const struct window_cell *cell)
{
	struct table *table = context;
	uint64_t *number;
	bool added;

	if (!question_selects(table->question, cell))
		return WINDOW_SKIP;
	number = map_put(&table->present, cell->stack, &added);
	if (added)
		*number = table->present.count - 1;
	return (uint32_t)*number;
}

static bool names_stacks(const struct keys *keys)
{
	return keys_has(keys, KEYS_STACK) || keys_has(keys, KEYS_FUNCTION) ||
	       keys_has(keys, KEYS_MODULE) || keys_has(keys, KEYS_TAG);
}

static bool row_is_empty(const struct window_row *row, const struct window_rest *rest)
{
	return window_present(row).count == 0 && rest->orphans == 0;
}

// Find out which stacks are in the window, so that no others are given names.
static bool find_present(struct table *table, struct err *err)
{
	struct window_query query = question_query(table->question);
	struct window_result result;
	struct map present = { 0 };
	uint64_t stack, number;
	size_t at = 0;

	query.group = group_by_stack;
	query.context = table;
	if (!window_ask(table->question->window, &query, &result, err))
		return false;
	while (map_next(&table->present, &at, &stack, &number)) {
		struct window_rest rest = window_rest_of(&result, (uint32_t)number);

		if (number < result.rows_count && !row_is_empty(&result.rows[number], &rest))
			map_put(&present, stack, NULL);
	}
	window_result_fini(&result);
	map_fini(&table->present);
	table->present = present;
	table->present_known = true;
	return true;
}

// The engine's grouping: whether an orphan, and the values of the cell's keys.
static uint32_t group(void *context, const struct window_cell *cell)
{
	struct table_level *level = context;
	const struct keys *keys = &level->table->options->keys;
	uint64_t tuple[KEYS_COUNT + 1] = { cell->orphans };

	if (level->table->present_known && !map_find(&level->table->present, cell->stack))
		return WINDOW_SKIP;
	if (!question_selects(level->table->question, cell))
		return WINDOW_SKIP;
	for (size_t i = 0; i < level->depth; i++)
		if (of_cell(keys->list[i]))
			tuple[i + 1] = value_of(level->table, keys->list[i], cell);
	return find_group(level, tuple);
}

struct window_query table_query(struct table *table, size_t depth, const struct table_phase *phase)
{
	struct window_query query = question_query(table->question);

	for (size_t i = 0; i < depth; i++) {
		query.by_size |= table->options->keys.list[i] == KEYS_SIZE;
		query.by_thread |= table->options->keys.list[i] == KEYS_THREAD;
	}
	if (phase) {
		query.from = phase->from;
		query.to = phase->to;
	}
	query.peaks_only = table->options->peaks_only;
	query.group = group;
	query.context = &table->levels[depth];
	return query;
}

// ---- rows ----

static uint32_t find_child(struct table *table, uint32_t parent, uint64_t value, bool orphans)
{
	// Rows are few against 2^31, and values that are not are told apart by probing.
	uint64_t hash = (value * 2 + orphans) * UINT64_C(0x9e3779b97f4a7c15) ^
			((uint64_t)parent + 1) * UINT64_C(0xc2b2ae3d27d4eb4f);

	for (;; hash++) {
		bool added;
		uint64_t *index = map_put(&table->children, hash, &added);
		struct table_row *row;

		if (!added) {
			row = &table->rows[*index];
			if (row->parent == parent && row->value == value && row->orphans == orphans)
				return (uint32_t)*index;
			continue;
		}
		ASSERT(table->rows_count < TABLE_NONE);
		*index = table->rows_count;
		table->rows = mem_grow(table->rows, &table->rows_capacity, table->rows_count + 1,
				       sizeof *table->rows);
		table->rows[table->rows_count++] = (struct table_row){
			.parent = parent,
			.depth = table->rows[parent].depth + 1,
			.value = value,
			.orphans = orphans,
			.group = WINDOW_SKIP,
		};
		return (uint32_t)*index;
	}
}

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

static uint32_t find_row(struct table *table, size_t depth, const struct place *place)
{
	const struct keys *keys = &table->options->keys;
	uint32_t row = 0;

	for (size_t i = 0; i < depth; i++) {
		bool orphans = place->tuple[0] && i + 1 == orphans_depth(keys);
		uint64_t value = place->tuple[i + 1];

		if (keys->list[i] == KEYS_MARK)
			value = place->phase;
		else if (keys->list[i] == KEYS_TYPE)
			value = place->type;
		else if (keys->list[i] == KEYS_IMPACT)
			value = orphans ? WINDOW_TYPES : impact_of(place->type);
		row = find_child(table, row, value, orphans);
	}
	return row;
}

struct table_row *table_add_child(struct table *table, uint32_t parent, uint64_t value)
{
	uint32_t index = find_child(table, parent, value, false);

	return &table->rows[index];
}

// Leave only what --impact asks for.
static void keep_types(const struct table *table, struct window_row *row, struct window_rest *rest)
{
	unsigned types = table->question->selection.query.types;

	if (!types)
		return;
	for (int i = 0; i < WINDOW_TYPES; i++)
		if (!(types >> i & 1))
			row->type[i] = (struct heap_amount){ 0 };
	*rest = (struct window_rest){ 0 };
}

bool table_typed(const struct table *table, size_t depth)
{
	for (size_t i = 0; i < depth; i++)
		if (table->options->keys.list[i] == KEYS_TYPE ||
		    table->options->keys.list[i] == KEYS_IMPACT)
			return true;
	return false;
}

static void insert(struct table *table, size_t depth, struct place *place, uint32_t group_number,
		   const struct window_row *sums, const struct window_rest *rest)
{
	uint32_t row = find_row(table, depth, place);

	window_add_row(&table->rows[row].sums, sums);
	window_add_rest(&table->rows[row].rest, rest);
	// Frees of nothing known are a group of their own, of which there are no details.
	if (window_present(sums).count)
		table->rows[row].group = group_number;
}

// One group of the engine's answer becomes a row, or one for each type.
static void insert_group(struct table *table, size_t depth, struct place *place,
			 uint32_t group_number, struct window_row sums, struct window_rest rest)
{
	static const struct window_rest none;

	keep_types(table, &sums, &rest);
	if (row_is_empty(&sums, &rest) ||
	    (place->tuple[0] && depth > orphans_depth(&table->options->keys)))
		return;
	place->type = WINDOW_TYPES;
	if (!table_typed(table, depth) || place->tuple[0]) {
		insert(table, depth, place, group_number, &sums, &rest);
		return;
	}
	for (int i = 0; i < WINDOW_TYPES; i++) {
		struct window_row part = { 0 };

		if (sums.type[i].count == 0)
			continue;
		part.type[i] = sums.type[i];
		place->type = (enum window_type)i;
		insert(table, depth, place, group_number, &part, &none);
	}
}

static bool ask(struct table *table, size_t depth, const struct table_phase *phase, struct err *err)
{
	struct window_query query = table_query(table, depth, phase);
	struct table_level *level = &table->levels[depth];
	struct window_result result;

	if (!window_ask(table->question->window, &query, &result, err))
		return false;
	for (uint32_t i = 0; i < result.rows_count; i++) {
		struct place place = {
			.tuple = level->tuples + i * level->width,
			.phase = phase ? (uint64_t)(phase - table->phases) : 0,
		};

		insert_group(table, depth, &place, i, result.rows[i], window_rest_of(&result, i));
	}
	if (depth == 0) {
		table->rows[0].sums = result.total;
		table->rows[0].rest = result.total_rest;
		keep_types(table, &table->rows[0].sums, &table->rows[0].rest);
	}
	window_result_fini(&result);
	return true;
}

// ---- single allocations ----

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

struct walk {
	struct table *table;
	const struct table_phase *phase;
	struct window_query query;
	uint64_t most;
	bool too_many;
};

static bool take_allocation(void *context, const struct window_allocation *allocation)
{
	struct walk *walk = context;
	struct table *table = walk->table;
	struct table_level *level = walk->query.context;
	enum window_type type = table_type_of(&walk->query, allocation);
	struct window_row sums = { 0 };
	struct window_rest rest = { 0 };
	uint64_t tuple[KEYS_COUNT + 1];
	struct place place = { .tuple = tuple, .type = type };
	uint32_t parent;

	sums.type[type] = (struct heap_amount){ 1, allocation->cell.size };
	keep_types(table, &sums, &rest);
	if (row_is_empty(&sums, &rest))
		return true;
	memcpy(tuple, level->tuples + allocation->group * level->width,
	       level->width * sizeof *tuple);
	if (walk->phase)
		place.phase = (uint64_t)(walk->phase - table->phases);
	parent = find_row(table, level->depth - 1, &place);
	walk->too_many =
		!table_single_add(table, allocation, parent, allocation->group, type, walk->most);
	return !walk->too_many;
}

static uint64_t memory_of(const struct table *table)
{
	uint64_t bytes = table->question->options->memory_bytes;

	return bytes ? bytes : UINT64_C(256) << 20;
}

static bool walk_allocations(struct table *table, const struct table_phase *phase, struct err *err)
{
	size_t each = 2 * sizeof(struct window_allocation) + sizeof(struct table_row) + 32;
	struct walk walk = {
		.table = table,
		.phase = phase,
		.query = table_query(table, table->options->keys.count, phase),
		.most = memory_of(table) / 2 / each,
	};

	if (!window_walk(table->question->window, &walk.query, take_allocation, &walk, err))
		return false;
	return !walk.too_many ||
	       err_set(err, ERR_LIMIT,
		       "more than %" PRIu64 " single allocations do not fit in half of the memory: "
		       "show fewer (-n), choose fewer with filters, or raise --memory",
		       walk.most);
}

// ---- phases ----

static void add_phase(struct table *table, struct table_phase phase, size_t *capacity)
{
	// One without events may still be long; marks set at once leave nothing between them.
	if (phase.from >= phase.to && phase.from_ns >= phase.to_ns) {
		mem_free(phase.name);
		return;
	}
	table->phases =
		mem_grow(table->phases, capacity, table->phases_count + 1, sizeof *table->phases);
	table->phases[table->phases_count++] = phase;
}

// "load", "load#2" where there are several.
static char *name_mark(const struct window_mark *marks, size_t count, size_t index)
{
	struct str text = { 0 };
	size_t same = 0, nth = 0;

	for (size_t i = 0; i < count; i++) {
		same += strcmp(marks[i].name, marks[index].name) == 0;
		nth = i == index ? same : nth;
	}
	str_add(&text, marks[index].name);
	if (same > 1)
		str_format(&text, "#%zu", nth);
	return str_take(&text);
}

static void find_phases(struct table *table)
{
	struct question *question = table->question;
	struct table_phase phase = { question->from, 0, question->from_ns, 0,
				     mem_copy_text("(begin)") };
	size_t count, capacity = 0;
	const struct window_mark *marks = window_marks(question->window, &count);

	for (size_t i = 0; i < count; i++) {
		if (marks[i].edge < question->from || marks[i].edge >= question->to ||
		    !query_has_process(&question->selection.query, marks[i].process))
			continue;
		phase.to = marks[i].edge;
		phase.to_ns = marks[i].time_ns;
		add_phase(table, phase, &capacity);
		phase.from = phase.to;
		phase.from_ns = phase.to_ns;
		phase.name = name_mark(marks, count, i);
	}
	phase.to = question->to;
	phase.to_ns = question->to_ns;
	add_phase(table, phase, &capacity);
}

const struct table_phase *table_phase_of(const struct table *table, const struct table_row *row)
{
	for (; row->depth > 0; row = &table->rows[row->parent])
		if (table_key(table, row) == KEYS_MARK)
			return &table->phases[row->value];
	return NULL;
}

// ---- all of it ----

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
	good = window_fetch(table->question->window, wanted, wanted_count, err);
	wanted_count = 0;
	for (size_t i = 0; i < count && good; i++) {
		const struct table_row *row = &table->rows[list[i]];

		if (row->depth > 0 && table_key(table, row) == KEYS_LIFETIME && !row->orphans)
			table->allocations[row->value] = wanted[wanted_count++];
	}
	mem_free(wanted);
	return good;
}

static bool fill_level(struct table *table, size_t depth, struct err *err)
{
	const struct keys *keys = &table->options->keys;
	bool single = depth > 0 && keys->list[depth - 1] == KEYS_LIFETIME;
	bool phased = false;
	size_t times;

	for (size_t i = 0; i < depth; i++)
		phased |= keys->list[i] == KEYS_MARK;
	times = phased ? table->phases_count : 1;
	for (size_t i = 0; i < times; i++) {
		const struct table_phase *phase = phased ? &table->phases[i] : NULL;

		if (single ? !walk_allocations(table, phase, err) : !ask(table, depth, phase, err))
			return false;
	}
	table_singles_insert(table);
	return true;
}

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
	good = good && (by_detail || !options->details || table_detail(table, list, count, err)) &&
	       (!keys_has(&options->keys, KEYS_LIFETIME) || fetch_shown(table, list, count, err));
	mem_free(list);
	return good;
}

struct table *table_new(struct question *question, const struct table_options *options,
			struct err *err)
{
	size_t levels = options->keys.count + 1;
	struct table *table;

	if (keys_has(&options->keys, KEYS_TAG) && !options->tags) {
		err_set(err, ERR_USAGE, "key 'tag' needs --tags FILE");
		return NULL;
	}
	table = mem_alloc(1, sizeof *table);
	table->question = question;
	table->options = options;
	table->labels = labels_new(options->labels, question->reader, question->names);
	table->rows = mem_grow(NULL, &table->rows_capacity, 16, sizeof *table->rows);
	table->rows[0] = (struct table_row){ .parent = TABLE_NONE, .group = WINDOW_SKIP };
	table->rows_count = 1;
	table->levels = mem_alloc(levels, sizeof *table->levels);
	for (size_t i = 0; i < levels; i++)
		table->levels[i] =
			(struct table_level){ .table = table, .depth = i, .width = i + 1 };
	if (keys_has(&options->keys, KEYS_MARK))
		find_phases(table);
	if ((names_stacks(&options->keys) && !find_present(table, err)) || !fill(table, err)) {
		table_free(table);
		return NULL;
	}
	return table;
}

void table_free(struct table *table)
{
	if (!table)
		return;
	for (size_t i = 0; i <= table->options->keys.count; i++) {
		mem_free(table->levels[i].tuples);
		map_fini(&table->levels[i].group_of);
	}
	for (size_t i = 0; i < table->phases_count; i++)
		mem_free(table->phases[i].name);
	mem_free(table->phases);
	mem_free(table->levels);
	mem_free(table->rows);
	mem_free(table->order);
	mem_free(table->allocations);
	mem_free(table->dropped);
	table_singles_free(table->singles);
	mem_free(table->functions);
	mem_free(table->modules);
	mem_free(table->stack_tags);
	map_fini(&table->children);
	map_fini(&table->present);
	labels_free(table->labels);
	mem_free(table);
}
