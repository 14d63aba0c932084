// One trace opened twice, by its index and as a list of all lifetimes (plain.h): whatever
// is asked, both must say the same.
//
// The caller fills in a struct pair: two readers, two windows, a seed. Then check_all asks.
#pragma once

#include "base/mem.h"
#include "engine/query.h"
#include "engine/window.h"
#include "engine/window_series.h"
#include "test/test.h"
#include "test/unit/moment_same.h"
#include "test/unit/sample_trace.h"

#include <stdlib.h>
#include <string.h>

struct pair {
	struct reader *reader, *plain_reader;
	struct window *index, *plain;
	struct sample_random random;
	int grouping;
	uint32_t skip;               // one stack in so many is left out; 0: none
	uint32_t only;               // one stack in so many is not left out; 0: all
	struct query_range sizes[2]; // of others nothing is asked
	size_t sizes_count;          // 0: of all
	size_t passed_over;          // allocations that were behind the first of their groups
	uint64_t long_enough;        // a window of so many steps has a stretch without an exit
};

static inline void close_pair(struct pair *pair)
{
	window_close(pair->index);
	window_close(pair->plain);
	reader_close(pair->reader);
	reader_close(pair->plain_reader);
}

// ---- groupings ----

// The same group for the same cell, whoever asks in whatever order.
static inline uint32_t group(void *context, const struct window_cell *cell)
{
	const struct pair *pair = context;
	uint32_t orphans = cell->orphans ? 20 : 0;
	bool wanted = pair->sizes_count == 0;

	for (size_t i = 0; i < pair->sizes_count; i++)
		wanted |= cell->size >= pair->sizes[i].least && cell->size <= pair->sizes[i].most;
	if (!wanted)
		return WINDOW_SKIP;
	if (pair->skip && cell->stack % pair->skip == 1)
		return WINDOW_SKIP;
	if (pair->only && cell->stack % pair->only != 2)
		return WINDOW_SKIP;
	switch (pair->grouping) {
	case 0:
		return cell->stack % 29 + orphans;
	case 1:
		return cell->process * 4 + cell->heap;
	case 2:
		return cell->thread + orphans;
	case 3:
		return (cell->size == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(cell->size)) + orphans;
	case 4:
		return cell->layer;
	case 5: // of most sizes a group of their own
		if (cell->orphans || cell->size % 16)
			return 30 + cell->orphans + (uint32_t)(cell->size % 3);
		return (uint32_t)(cell->size % 29);
	default:
		return (uint32_t)((cell->process * 31 + cell->thread * 7 + cell->stack * 3 +
				   cell->heap + cell->size + orphans) %
				  211);
	}
}

// Ranges of sizes for some of the queries whose groups do not differ by size.
static inline void choose_sizes(struct pair *pair, struct window_query *query)
{
	pair->sizes_count = (size_t)sample_below(&pair->random, 3);
	for (size_t i = 0; i < pair->sizes_count; i++) {
		pair->sizes[i].least = sample_below(&pair->random, 200);
		pair->sizes[i].most = pair->sizes[i].least + sample_below(&pair->random, 2000);
	}
	query->sizes = pair->sizes;
	query->sizes_count = pair->sizes_count;
}

static inline struct window_query random_query(struct pair *pair)
{
	uint64_t end = window_facts(pair->plain)->steps_end;
	struct window_query query = { .group = group, .context = pair };

	query.from = 1 + sample_below(&pair->random, end);
	query.to = query.from + sample_below(&pair->random, end - query.from + 1);
	if (sample_below(&pair->random, 3) == 0)
		query.to = query.from + sample_below(&pair->random, 120);
	if (sample_below(&pair->random, 8) == 0)
		query.from = WINDOW_START;
	if (sample_below(&pair->random, 8) == 0)
		query.to = end;
	if (query.to > end)
		query.to = end;
	if (sample_below(&pair->random, 12) == 0)
		query.to = query.from;
	pair->grouping = (int)sample_below(&pair->random, 7);
	pair->skip = (uint32_t)sample_below(&pair->random, 4);
	pair->only = (uint32_t)sample_below(&pair->random, 3) * 5;
	if ((pair->grouping == 3 || pair->grouping == 5) && sample_below(&pair->random, 4))
		pair->skip = pair->only = 0;
	query.by_size = pair->grouping == 3 || pair->grouping > 4 ||
			sample_below(&pair->random, 3) == 0;
	query.by_size_alone = (pair->grouping == 3 || pair->grouping == 5) && !pair->skip &&
			      !pair->only && sample_below(&pair->random, 4) > 0;
	pair->sizes_count = 0;
	if (query.by_size && pair->grouping < 5 && pair->grouping != 3)
		choose_sizes(pair, &query);
	query.by_thread = true;
	query.peaks_only = sample_below(&pair->random, 2);
	query.lifetimes_only = !query.peaks_only && sample_below(&pair->random, 3) == 0;
	query.exit_frees = sample_below(&pair->random, 2);
	if (sample_below(&pair->random, 2))
		query.walk_types = (unsigned)sample_below(&pair->random, 1u << WINDOW_TYPES);
	query.layers = (unsigned)sample_below(&pair->random, 4);
	if (sample_below(&pair->random, 4) == 0) {
		uint64_t scale = UINT64_C(10) << sample_below(&pair->random, 18);

		query.lifetime_min_ns = sample_below(&pair->random, scale);
		query.lifetime_max_ns = query.lifetime_min_ns + sample_below(&pair->random, scale);
		if (sample_below(&pair->random, 4) == 0)
			query.lifetime_max_ns = UINT64_MAX;
	}
	return query;
}

// ---- rows ----

static inline void check_amount(struct heap_amount a, struct heap_amount b)
{
	CHECK_EQ(a.count, b.count);
	CHECK_EQ(a.bytes, b.bytes);
}

static inline void check_rows(const struct window_row *a, const struct window_row *b)
{
	for (int i = 0; i < WINDOW_TYPES; i++)
		check_amount(a->type[i], b->type[i]);
}

static inline void check_rests(const struct window_rest *a, const struct window_rest *b)
{
	check_amount(a->by_exit, b->by_exit);
	check_amount(a->by_exec, b->by_exec);
	check_amount(a->by_destroy, b->by_destroy);
	CHECK_EQ(a->orphans, b->orphans);
}

static inline const struct window_row *row_at(const struct window_result *result, uint32_t at)
{
	static const struct window_row none;

	return at < result->rows_count ? &result->rows[at] : &none;
}

static inline struct window_result ask(struct window *window, const struct window_query *query)
{
	struct window_result result;
	struct err err = { 0 };

	if (!window_ask(window, query, &result, &err))
		CHECK_STR("", err.text);
	return result;
}

static inline void check_ask(struct pair *pair, const struct window_query *query)
{
	struct window_result a = ask(pair->plain, query), b = ask(pair->index, query);
	uint32_t rows = a.rows_count > b.rows_count ? a.rows_count : b.rows_count;

	check_rows(&a.total, &b.total);
	check_rests(&a.total_rest, &b.total_rest);
	for (uint32_t i = 0; i < rows; i++) {
		struct window_rest rests[] = { window_rest_of(&a, i), window_rest_of(&b, i) };

		check_rows(row_at(&a, i), row_at(&b, i));
		check_rests(&rests[0], &rests[1]);
	}
	window_result_fini(&a);
	window_result_fini(&b);
}

static inline struct heap_amount both(const struct window_row *row, enum window_type a,
				      enum window_type b)
{
	return window_sum(row->type[a], row->type[b]);
}

// What lives at each edge and what began are right; no type is below 0.
static inline void check_edges(struct pair *pair, struct window_query query)
{
	const enum window_type sums[][2] = { { WINDOW_AIFO, WINDOW_AOFO },
					     { WINDOW_AOFI, WINDOW_AOFO },
					     { WINDOW_AIFI, WINDOW_AIFO } };
	struct window_result a = ask(pair->plain, &query), b;

	query.edges_only = true;
	b = ask(pair->index, &query);
	for (uint32_t i = 0; i < a.rows_count || i < b.rows_count; i++) {
		const struct window_row *x = row_at(&a, i), *y = row_at(&b, i);

		for (int k = 0; k < 3; k++) {
			struct heap_amount left = both(x, sums[k][0], sums[k][1]);
			struct heap_amount right = both(y, sums[k][0], sums[k][1]);

			CHECK_EQ(left.count, right.count);
			CHECK_EQ(left.bytes, right.bytes);
		}
		for (enum window_type type = 0; type < WINDOW_TYPES; type++)
			CHECK(y->type[type].count <= window_present(y).count);
	}
	window_result_fini(&a);
	window_result_fini(&b);
}

// What lives at an edge, in the classes' terms.
static inline struct window_result live(struct pair *pair, const struct window_query *query,
					uint64_t edge)
{
	struct window_query at = *query;

	at.from = at.to = edge;
	return ask(pair->index, &at);
}

static inline void check_identity(struct pair *pair, const struct window_query *query)
{
	struct window_result row = ask(pair->index, query);
	struct window_result from = live(pair, query, query->from);
	struct window_result to = live(pair, query, query->to);

	for (uint32_t i = 0; i < row.rows_count; i++) {
		const struct heap_amount *type = row.rows[i].type;

		CHECK_EQ(row_at(&to, i)->type[WINDOW_AOFO].bytes -
				 row_at(&from, i)->type[WINDOW_AOFO].bytes,
			 window_impact(&row.rows[i]));
		CHECK_EQ(row_at(&to, i)->type[WINDOW_AOFO].count -
				 row_at(&from, i)->type[WINDOW_AOFO].count,
			 type[WINDOW_AIFO].count - type[WINDOW_AOFI].count);
	}
	window_result_fini(&row);
	window_result_fini(&from);
	window_result_fini(&to);
}

// ---- details ----

static inline void check_details_of(struct pair *pair, const struct window_query *query,
				    uint32_t count)
{
	struct window_detail a[24] = { 0 }, b[24] = { 0 };
	struct err err = { 0 };

	for (uint32_t i = 0; i < 24; i++)
		a[i].group = b[i].group = count == 1 ? WINDOW_HEAP : i;
	if (count > 1 && !query->peaks_only)
		a[count - 1].group = b[count - 1].group = WINDOW_SKIP; // all groups together
	CHECK(window_detail(pair->plain, query, a, count, &err));
	if (!window_detail(pair->index, query, b, count, &err))
		CHECK_STR("", err.text);
	for (uint32_t i = 0; i < count; i++) {
		if (!query->lifetimes_only) {
			CHECK_EQ(a[i].peak_bytes, b[i].peak_bytes);
			CHECK_EQ(a[i].peak_count, b[i].peak_count);
			CHECK_EQ(a[i].most_count, b[i].most_count);
			CHECK_EQ(a[i].peak_edge, b[i].peak_edge);
			CHECK_EQ(a[i].first_ns, b[i].first_ns);
			CHECK_EQ(a[i].last_ns, b[i].last_ns);
		}
		if (query->peaks_only && !query->lifetime_max_ns)
			continue;
		CHECK_EQ(a[i].lifetimes, b[i].lifetimes);
		CHECK_EQ(a[i].lifetime_median_ns, b[i].lifetime_median_ns);
		CHECK_EQ(a[i].lifetime_p99_ns, b[i].lifetime_p99_ns);
	}
}

// Two rows of each group: of what was transient, and of the rest; or of all that has an end.
static inline void check_lifetimes_of_types(struct pair *pair, const struct window_query *asked)
{
	const uint8_t types[] = { 1 << WINDOW_AIFI, 1 << WINDOW_AOFI | 1 << WINDOW_AIFO };
	const uint8_t ended = 1 << WINDOW_AIFI | 1 << WINDOW_AOFI, none = 1 << WINDOW_AOFO;
	struct window_detail a[26] = { 0 }, b[26];
	struct window_query query = *asked;
	struct err err = { 0 };

	query.peaks_only = false;
	query.lifetimes_only = true;
	for (uint32_t i = 0; i < 24; i++) {
		a[i].group = i / 2;
		a[i].types = i / 2 == 5 ? (uint8_t[]){ ended, none }[i % 2] : types[i % 2];
	}
	a[24] = a[1]; // once more
	a[25].group = WINDOW_SKIP;
	memcpy(b, a, sizeof a);
	CHECK(window_detail(pair->plain, &query, a, 26, &err));
	if (!window_detail(pair->index, &query, b, 26, &err))
		CHECK_STR("", err.text);
	for (uint32_t i = 0; i < 26; i++) {
		CHECK_EQ(a[i].types, b[i].types);
		CHECK_EQ(a[i].lifetimes, b[i].lifetimes);
		CHECK_EQ(a[i].lifetime_median_ns, b[i].lifetime_median_ns);
		CHECK_EQ(a[i].lifetime_p99_ns, b[i].lifetime_p99_ns);
	}
}

static inline void check_details(struct pair *pair, const struct window_query *query)
{
	struct window_query all = *query;
	int grouping = pair->grouping;
	uint32_t skip = pair->skip, only = pair->only;
	size_t sizes_count = pair->sizes_count;
	// All rows at once; some; one at a time, whose lifetimes are mostly counted, not kept.
	const uint64_t memory[] = { 0, 1 << 15, 1 << 8 };

	// (With a lifetime filter they all have to fit.)
	window_memory(pair->index, query->lifetime_max_ns ? 0 : memory[query->from % 3]);
	check_details_of(pair, query, 24);
	check_lifetimes_of_types(pair, query);
	// All of the heap in one group.
	all.layers = WINDOW_HEAP;
	all.by_size = false;
	pair->grouping = 4;
	pair->skip = pair->only = 0;
	pair->sizes_count = all.sizes_count = 0;
	check_details_of(pair, &all, 1);
	window_memory(pair->index, 0);
	pair->sizes_count = sizes_count;
	pair->grouping = grouping;
	pair->skip = skip;
	pair->only = only;
}

// ---- single allocations ----

struct singles {
	const struct window_query *query;
	struct window_allocation *list;
	size_t count, capacity;
};

static inline bool is_wanted(const struct window_query *query,
			     const struct window_allocation *allocation)
{
	bool by_exit = allocation->end_kind == WINDOW_END_EXIT ||
		       allocation->end_kind == WINDOW_END_EXEC;
	bool ends = allocation->end < query->to && (!by_exit || query->exit_frees);
	enum window_type type = allocation->begin >= query->from
					? (ends ? WINDOW_AIFI : WINDOW_AIFO)
					: (ends ? WINDOW_AOFI : WINDOW_AOFO);

	return !query->walk_types || query->walk_types >> type & 1;
}

static inline bool keep(void *context, const struct window_allocation *allocation)
{
	struct singles *singles = context;

	if (!is_wanted(singles->query, allocation))
		return true;
	singles->list = mem_grow(singles->list, &singles->capacity, singles->count + 1,
				 sizeof *singles->list);
	singles->list[singles->count++] = *allocation;
	return true;
}

static inline int compare_singles(const void *a, const void *b)
{
	const struct window_allocation *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return x->cell.size < y->cell.size ? -1 : x->cell.size > y->cell.size;
}

static inline struct singles walk(struct window *window, const struct window_query *query)
{
	struct singles singles = { .query = query };
	struct err err = { 0 };

	CHECK(window_walk(window, query, keep, &singles, &err));
	if (singles.count)
		qsort(singles.list, singles.count, sizeof *singles.list, compare_singles);
	return singles;
}

// `left` before it stops.
static inline bool stop_walk(void *context, const struct window_allocation *)
{
	int64_t *left = context;

	return --*left > 0;
}

// Who has stopped a walk is called no more, whichever layers it was of.
static inline void check_stop(struct window *window, struct window_query query)
{
	query.layers = WINDOW_HEAP | WINDOW_VM;
	for (int64_t left = 1, at; left < 1000; left *= 4) {
		struct err err = { 0 };

		at = left;
		CHECK(window_walk(window, &query, stop_walk, &at, &err));
		CHECK(at >= 0);
	}
}

// What is left once it is asked whether there is enough began there or later, and no call ended it.
struct enough {
	const struct window_query *query;
	uint64_t step; // that it was asked of last; 0: not yet
	size_t before, given;
	bool over, stop;
};

static inline bool keep_count(void *context, const struct window_allocation *allocation)
{
	struct enough *enough = context;
	bool by_call = allocation->end_kind != WINDOW_END_NEVER &&
		       allocation->end_kind != WINDOW_END_EXIT &&
		       allocation->end_kind != WINDOW_END_EXEC;

	CHECK(!enough->over);
	enough->given++;
	if (enough->step)
		CHECK(!by_call && allocation->begin >= enough->step);
	else
		enough->before++;
	return true;
}

static inline bool is_enough(void *context, uint64_t step)
{
	struct enough *enough = context;

	CHECK(!enough->over && step >= enough->step && step >= enough->query->from);
	enough->step = step;
	enough->over = enough->stop;
	return enough->over;
}

static inline void check_enough(struct window *window, struct window_query query)
{
	struct enough all = { .query = &query }, some = { .query = &query, .stop = true };
	struct err err = { 0 };

	query.enough = is_enough;
	CHECK(window_walk(window, &query, keep_count, &all, &err));
	CHECK(window_walk(window, &query, keep_count, &some, &err));
	CHECK_EQ(all.before, some.before);
	CHECK_EQ(all.step != 0, some.over);
	CHECK_EQ(some.before, some.given);
}

static inline uint64_t first_two(void *, uint32_t group)
{
	return group % 5 ? 2 : UINT64_MAX;
}

// The first two of each group that began in the window are given, of every fifth group all.
// Returns how many were not given.
static inline size_t check_first(struct pair *pair, struct window_query query)
{
	struct singles all, some;
	uint32_t of_group[256] = { 0 };
	size_t at = 0;

	query.walk_types = 0;
	all = walk(pair->plain, &query);
	query.first = first_two;
	some = walk(pair->index, &query);
	for (size_t i = 0; i < all.count; i++) {
		const struct window_allocation *one = &all.list[i];
		bool given = at < some.count && compare_singles(one, &some.list[at]) == 0;
		bool inside = one->cell.layer == WINDOW_HEAP && one->begin >= query.from;

		CHECK(one->group < 256);
		at += given;
		if (!given)
			CHECK(inside && one->group % 5 && of_group[one->group] >= 2);
		of_group[one->group] += inside;
	}
	CHECK_EQ(some.count, at);
	at = all.count - some.count;
	MEM_FREE(all.list, some.list);
	return at;
}

static inline void check_walk(struct pair *pair, const struct window_query *query)
{
	struct singles a = walk(pair->plain, query), b = walk(pair->index, query);
	struct err err = { 0 };

	CHECK_EQ(a.count, b.count);
	CHECK(window_fetch(pair->plain, a.list, a.count < 20 ? a.count : 20, &err));
	if (!window_fetch(pair->index, b.list, b.count < 20 ? b.count : 20, &err))
		CHECK_STR("", err.text);
	for (size_t i = 0; i < a.count; i++) {
		const struct window_allocation *x = &a.list[i], *y = &b.list[i];

		CHECK_EQ(x->begin, y->begin);
		CHECK_EQ(x->end, y->end);
		CHECK_EQ(x->begin_ns, y->begin_ns);
		CHECK_EQ(x->end_ns, y->end_ns);
		CHECK_EQ(x->end_kind, y->end_kind);
		CHECK_EQ(x->group, y->group);
		CHECK_EQ(x->cell.process, y->cell.process);
		CHECK_EQ(x->cell.thread, y->cell.thread);
		CHECK_EQ(x->cell.stack, y->cell.stack);
		CHECK_EQ(x->cell.size, y->cell.size);
		CHECK_EQ(x->address, y->address);
		CHECK_EQ(x->begin_thread, y->begin_thread);
		CHECK_EQ(x->end_thread, y->end_thread);
		CHECK_EQ(x->end_stack, y->end_stack);
		CHECK_EQ(x->reallocated, y->reallocated);
	}
	mem_free(a.list);
	mem_free(b.list);
	check_stop(pair->plain, *query);
	check_stop(pair->index, *query);
	check_enough(pair->plain, *query);
	check_enough(pair->index, *query);
	if (query->by_size_alone)
		pair->passed_over += check_first(pair, *query);
}

// ---- levels ----

enum { BUCKETS = 7, GROUPS = 24 };

static inline void check_series(struct pair *pair, const struct window_query *query)
{
	struct window_bucket a[BUCKETS * GROUPS], b[BUCKETS * GROUPS];
	struct window_flow f[BUCKETS * GROUPS], g[BUCKETS * GROUPS];
	size_t classes = (size_t)GROUPS * WINDOW_LIFETIME_CLASSES;
	struct heap_amount *c = mem_alloc(classes, sizeof *c), *d = mem_alloc(classes, sizeof *d);
	struct err err = { 0 };

	CHECK(window_series(pair->plain, query, GROUPS, a, BUCKETS, &err));
	CHECK(window_series(pair->index, query, GROUPS, b, BUCKETS, &err));
	CHECK_BYTES(a, b, sizeof a);
	CHECK(window_flows(pair->plain, query, GROUPS, f, BUCKETS, &err));
	CHECK(window_flows(pair->index, query, GROUPS, g, BUCKETS, &err));
	CHECK_BYTES(f, g, sizeof f);
	CHECK(window_lifetimes(pair->plain, query, GROUPS, c, &err));
	CHECK(window_lifetimes(pair->index, query, GROUPS, d, &err));
	CHECK_BYTES(c, d, classes * sizeof *c);
	mem_free(c);
	mem_free(d);
}

static inline void check_timeline(struct pair *pair, const struct window_query *query, size_t count)
{
	struct window_bucket *a = mem_alloc(count, sizeof *a), *b = mem_alloc(count, sizeof *b);
	uint64_t highest[2] = { 0 }, lowest[2] = { UINT64_MAX, UINT64_MAX }, most[2] = { 0 };
	struct err err = { 0 };

	CHECK(window_timeline(pair->plain, query, a, count, &err));
	CHECK(window_timeline(pair->index, query, b, count, &err));
	for (size_t i = 0; i < count; i++) {
		highest[0] = a[i].bytes_peak > highest[0] ? a[i].bytes_peak : highest[0];
		highest[1] = b[i].bytes_peak > highest[1] ? b[i].bytes_peak : highest[1];
		lowest[0] = a[i].bytes_low < lowest[0] ? a[i].bytes_low : lowest[0];
		lowest[1] = b[i].bytes_low < lowest[1] ? b[i].bytes_low : lowest[1];
		most[0] = a[i].count_peak > most[0] ? a[i].count_peak : most[0];
		most[1] = b[i].count_peak > most[1] ? b[i].count_peak : most[1];
		// Where a bucket has few steps its borders are where they were asked for.
		if ((query->to - query->from) / count < 8)
			CHECK_BYTES(&a[i], &b[i], sizeof *a);
	}
	CHECK_EQ(highest[0], highest[1]);
	CHECK_EQ(lowest[0], lowest[1]);
	CHECK_EQ(most[0], most[1]);
	CHECK_EQ(a[count - 1].bytes_end, b[count - 1].bytes_end);
	CHECK_EQ(a[count - 1].count_end, b[count - 1].count_end);
	mem_free(a);
	mem_free(b);
}

struct changes {
	struct heap_amount level;
	uint64_t peak, changes, hash;
};

static inline bool follow(void *context, const struct window_change *change)
{
	struct changes *changes = context;

	changes->level.count += change->up ? 1 : UINT64_MAX;
	changes->level.bytes += change->up ? change->bytes : 0 - change->bytes;
	changes->changes += change->exit ? 1000000 : 1;
	if (change->last)
		changes->hash = (changes->hash ^ changes->level.bytes ^ change->edge) * 31;
	return true;
}

static inline void check_changes(struct pair *pair, const struct window_query *query)
{
	struct changes a = { 0 }, b = { 0 };
	struct err err = { 0 };

	CHECK(window_changes(pair->plain, query, follow, &a, &err));
	CHECK(window_changes(pair->index, query, follow, &b, &err));
	CHECK_EQ(a.changes, b.changes);
	CHECK_EQ(a.level.bytes, b.level.bytes);
	CHECK_EQ(a.level.count, b.level.count);
	CHECK_EQ(a.hash, b.hash);
}

// Levels by edge, as all changes make them, and the edge up to which a curve has told them.
struct curve {
	struct pair *pair;
	uint64_t *levels, from, to;
	uint64_t edge, level;
	uint64_t wholes;
};

static inline bool draw(void *context, const struct window_change *change)
{
	struct curve *curve = context;

	for (; curve->edge < change->edge; curve->edge++)
		curve->levels[curve->edge - curve->from] = curve->level;
	curve->level += change->up ? change->bytes : 0 - change->bytes;
	return true;
}

// After its end and before its beginning, which a heap that is destroyed does not have.
static inline bool is_within_a_realloc(const struct curve *curve, uint64_t edge)
{
	return edge > curve->from && edge < curve->to &&
	       window_edge_splits(curve->pair->plain, edge) &&
	       curve->levels[edge - curve->from] < curve->levels[edge - 1 - curve->from] &&
	       curve->levels[edge - curve->from] < curve->levels[edge + 1 - curve->from];
}

static inline bool take_stretch(void *context, const struct window_stretch *stretch)
{
	struct curve *curve = context;
	uint64_t low = UINT64_MAX, low_most = UINT64_MAX, high = 0;

	CHECK(stretch->from >= curve->edge && stretch->to > stretch->from);
	curve->wholes++;
	if (sample_below(&curve->pair->random, 2))
		return false;
	CHECK_EQ(curve->level, curve->levels[stretch->from - curve->from]);
	CHECK(!is_within_a_realloc(curve, stretch->from) &&
	      !is_within_a_realloc(curve, stretch->to));
	for (uint64_t edge = stretch->from + 1; edge <= stretch->to; edge++) {
		uint64_t level = curve->levels[edge - curve->from];

		if (is_within_a_realloc(curve, edge))
			continue;
		low = level < low ? level : low;
		high = level > high ? level : high;
		// Of a realloc of nothing the level between is that before, of another stretch.
		if (edge > stretch->from + 1 || !window_edge_splits(curve->pair->plain, edge))
			low_most = level < low_most ? level : low_most;
	}
	CHECK(stretch->bytes_low == low || stretch->bytes_low == low_most);
	CHECK_EQ(high, stretch->bytes_high);
	curve->level = stretch->bytes_end;
	curve->edge = stretch->to;
	CHECK_EQ(curve->level, curve->levels[stretch->to - curve->from]);
	return true;
}

static inline bool take_change(void *context, const struct window_change *change)
{
	struct curve *curve = context;

	CHECK(change->edge >= curve->edge);
	curve->edge = change->edge;
	curve->level += change->up ? change->bytes : 0 - change->bytes;
	if (change->last)
		CHECK_EQ(curve->levels[change->edge - curve->from], curve->level);
	return true;
}

// Returns how many stretches were offered as they are.
static inline uint64_t check_curve(struct pair *pair, const struct window_query *query)
{
	uint64_t *levels = mem_alloc((size_t)(query->to - query->from) + 1, sizeof *levels);
	struct window_query at = *query;
	struct window_result before;
	struct curve curve;
	struct err err = { 0 };

	at.to = at.from;
	at.layers = query->layers == WINDOW_VM ? WINDOW_VM : WINDOW_HEAP;
	at.exit_frees = true;
	before = ask(pair->plain, &at);
	curve = (struct curve){ .pair = pair,
				.levels = levels,
				.from = query->from,
				.to = query->to,
				.edge = query->from,
				.level = before.total.type[WINDOW_AOFO].bytes };
	CHECK(window_changes(pair->plain, query, draw, &curve, &err));
	for (; curve.edge <= query->to; curve.edge++)
		levels[curve.edge - curve.from] = curve.level;
	curve.edge = query->from;
	curve.level = before.total.type[WINDOW_AOFO].bytes;
	if (!window_curve(pair->index, query, take_stretch, take_change, &curve, &err))
		CHECK_STR("", err.text);
	CHECK_EQ(levels[query->to - query->from], curve.level);
	window_result_fini(&before);
	mem_free(levels);
	return curve.wholes;
}

static inline void check_places(struct pair *pair)
{
	const struct window_facts *a = window_facts(pair->plain), *b = window_facts(pair->index);
	const struct window_mark *marks[2];
	size_t counts[2];

	CHECK_EQ(a->steps_end, b->steps_end);
	CHECK_EQ(a->duration_ns, b->duration_ns);
	CHECK_EQ(a->orphans, b->orphans);
	CHECK_EQ(a->inherited, b->inherited);
	CHECK_EQ(a->lost, b->lost);
	CHECK_EQ(a->layers, b->layers);
	for (int layer = 1; layer < 3; layer++) {
		check_amount(a->peak[layer], b->peak[layer]);
		CHECK_EQ(a->peak_edge[layer], b->peak_edge[layer]);
	}
	for (int i = 0; i < 300; i++) {
		uint64_t time_ns = sample_below(&pair->random, a->duration_ns + 10);
		uint64_t edge = sample_below(&pair->random, a->steps_end + 3);

		CHECK_EQ(window_edge_at(pair->plain, time_ns),
			 window_edge_at(pair->index, time_ns));
		CHECK_EQ(window_edge_time(pair->plain, edge), window_edge_time(pair->index, edge));
	}
	marks[0] = window_marks(pair->plain, &counts[0]);
	marks[1] = window_marks(pair->index, &counts[1]);
	CHECK_EQ(counts[0], counts[1]);
	for (size_t i = 0; i < counts[0]; i++) {
		CHECK_STR(marks[0][i].name, marks[1][i].name);
		CHECK_EQ(marks[0][i].edge, marks[1][i].edge);
		CHECK_EQ(marks[0][i].thread, marks[1][i].thread);
		CHECK_EQ(marks[0][i].time_ns, marks[1][i].time_ns);
	}
}

// Moments are few: they have a test of their own.
static inline void check_moments(struct pair *pair)
{
	struct moment_sides sides =
		moment_sides_of(pair->plain_reader, pair->index, pair->random.state);

	for (int i = 0; i < 6; i++)
		check_moment(&sides);
	check_calls(&sides);
}

static inline void check_all(struct pair *pair, int windows)
{
	check_moments(pair);
	check_places(pair);
	for (int i = 0; i < windows; i++) {
		struct window_query query = random_query(pair);
		struct window_query level = query;

		check_ask(pair, &query);
		check_edges(pair, query);
		check_identity(pair, &query);
		if (i % 3 == 0)
			check_details(pair, &query);
		if (i % 5 == 0)
			check_walk(pair, &query);
		if (i % 7 == 0)
			check_series(pair, &query);
		level.layers = i % 4 ? WINDOW_HEAP : WINDOW_VM;
		if (i % 3 == 1)
			check_timeline(pair, &level, 1 + sample_below(&pair->random, 50));
		if (i % 5 == 1)
			check_changes(pair, &level);
		if (i % 5 == 2)
			check_curve(pair, &level);
		level = (struct window_query){ .from = query.from, .to = query.to };
		if (check_curve(pair, &level) == 0)
			CHECK(query.to - query.from < pair->long_enough);
	}
}
