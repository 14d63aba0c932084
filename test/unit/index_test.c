// The index says the same of random traces as a list of all lifetimes, for every question.
#include "base/mem.h"
#include "engine/index_store.h"
#include "engine/window.h"
#include "engine/window_series.h"
#include "test/unit/window_random.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

// So small that a few thousand steps take every path.
static const struct index_shape small = {
	.block_log2 = 6,
	.long_log2 = 5,
	.snapshot_steps = 200,
	.snapshot_ratio = 1,
	.level_log2 = 3,
	.chunk_log2 = 9,
	.skip_log2 = 2,
	.sparse_log2 = 2,
	.short_steps = 100,
};

struct pair {
	struct reader *reader, *plain_reader;
	struct window *index, *plain;
	struct sample_random random;
	int grouping;
	uint32_t skip; // one stack in so many is left out; 0: none
};

static struct pair open_pair(uint64_t seed, const struct window_random *like,
			     const struct window_options *more, uint64_t cut)
{
	struct pair pair = { .random = { seed + 77 } };
	struct window_options options = *more;
	struct err err = { 0 };

	pair.reader = window_random_open(seed, like, cut);
	pair.plain_reader = reader_open(test_temp_path("random.tide"), &err);
	options.index_path = test_temp_path("random.tide-index");
	options.shape = &small;
	options.progress = PROGRESS_NONE;
	pair.index = window_open(test_temp_path("random.tide"), pair.reader, &options, &err);
	CHECK_STR("", err.text);
	options = (struct window_options){ .plain = true, .progress = PROGRESS_NONE };
	pair.plain = window_open(test_temp_path("random.tide"), pair.plain_reader, &options, &err);
	CHECK_STR("", err.text);
	return pair;
}

static void close_pair(struct pair *pair)
{
	window_close(pair->index);
	window_close(pair->plain);
	reader_close(pair->reader);
	reader_close(pair->plain_reader);
}

// ---- groupings ----

// The same group for the same cell, whoever asks in whatever order.
static uint32_t group(void *context, const struct window_cell *cell)
{
	const struct pair *pair = context;
	uint32_t orphans = cell->orphans ? 20 : 0;

	if (pair->skip && cell->stack % pair->skip == 1)
		return WINDOW_SKIP;
	switch (pair->grouping) {
	case 0:
		return cell->stack + orphans;
	case 1:
		return cell->process * 4 + cell->heap;
	case 2:
		return cell->thread + orphans;
	case 3:
		return (cell->size == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(cell->size)) + orphans;
	case 4:
		return cell->layer;
	default:
		return (uint32_t)((cell->process * 31 + cell->thread * 7 + cell->stack * 3 +
				   cell->heap + cell->size + orphans) %
				  211);
	}
}

static struct window_query random_query(struct pair *pair)
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
	pair->grouping = (int)sample_below(&pair->random, 6);
	pair->skip = (uint32_t)sample_below(&pair->random, 4);
	query.by_size = pair->grouping == 3 || pair->grouping == 5 ||
			sample_below(&pair->random, 3) == 0;
	query.by_thread = true;
	query.peaks_only = sample_below(&pair->random, 2);
	query.exit_frees = sample_below(&pair->random, 2);
	query.layers = (unsigned)sample_below(&pair->random, 4);
	if (sample_below(&pair->random, 4) == 0) {
		query.lifetime_min_ns = sample_below(&pair->random, 3000);
		query.lifetime_max_ns = query.lifetime_min_ns + sample_below(&pair->random, 100000);
	}
	return query;
}

// ---- rows ----

static void check_amount(struct heap_amount a, struct heap_amount b)
{
	CHECK_EQ(a.count, b.count);
	CHECK_EQ(a.bytes, b.bytes);
}

static void check_rows(const struct window_row *a, const struct window_row *b)
{
	for (int i = 0; i < WINDOW_TYPES; i++)
		check_amount(a->type[i], b->type[i]);
	check_amount(a->by_exit, b->by_exit);
	check_amount(a->by_exec, b->by_exec);
	check_amount(a->by_destroy, b->by_destroy);
	CHECK_EQ(a->orphans, b->orphans);
}

static const struct window_row *row_at(const struct window_result *result, uint32_t at)
{
	static const struct window_row none;

	return at < result->rows_count ? &result->rows[at] : &none;
}

static struct window_result ask(struct window *window, const struct window_query *query)
{
	struct window_result result;
	struct err err = { 0 };

	if (!window_ask(window, query, &result, &err))
		CHECK_STR("", err.text);
	return result;
}

static void check_ask(struct pair *pair, const struct window_query *query)
{
	struct window_result a = ask(pair->plain, query), b = ask(pair->index, query);
	uint32_t rows = a.rows_count > b.rows_count ? a.rows_count : b.rows_count;

	check_rows(&a.total, &b.total);
	for (uint32_t i = 0; i < rows; i++)
		check_rows(row_at(&a, i), row_at(&b, i));
	window_result_fini(&a);
	window_result_fini(&b);
}

// What lives at an edge, in the classes' terms.
static struct window_result live(struct pair *pair, const struct window_query *query, uint64_t edge)
{
	struct window_query at = *query;

	at.from = at.to = edge;
	return ask(pair->index, &at);
}

static void check_identity(struct pair *pair, const struct window_query *query)
{
	struct window_result row = ask(pair->index, query);
	struct window_result from = live(pair, query, query->from);
	struct window_result to = live(pair, query, query->to);

	for (uint32_t i = 0; i < row.rows_count; i++)
		CHECK_EQ(row_at(&to, i)->type[WINDOW_AOFO].bytes -
				 row_at(&from, i)->type[WINDOW_AOFO].bytes,
			 window_impact(&row.rows[i]));
	window_result_fini(&row);
	window_result_fini(&from);
	window_result_fini(&to);
}

// ---- details ----

static void check_details(struct pair *pair, const struct window_query *query)
{
	struct window_detail a[24] = { 0 }, b[24] = { 0 };
	struct err err = { 0 };

	for (uint32_t i = 0; i < 24; i++)
		a[i].group = b[i].group = i;
	CHECK(window_detail(pair->plain, query, a, 24, &err));
	if (!window_detail(pair->index, query, b, 24, &err))
		CHECK_STR("", err.text);
	for (uint32_t i = 0; i < 24; i++) {
		CHECK_EQ(a[i].peak_bytes, b[i].peak_bytes);
		CHECK_EQ(a[i].peak_count, b[i].peak_count);
		CHECK_EQ(a[i].peak_edge, b[i].peak_edge);
		CHECK_EQ(a[i].first_ns, b[i].first_ns);
		CHECK_EQ(a[i].last_ns, b[i].last_ns);
		if (query->peaks_only && !query->lifetime_max_ns)
			continue;
		CHECK_EQ(a[i].lifetimes, b[i].lifetimes);
		CHECK_EQ(a[i].lifetime_median_ns, b[i].lifetime_median_ns);
		CHECK_EQ(a[i].lifetime_p99_ns, b[i].lifetime_p99_ns);
	}
}

// ---- single allocations ----

struct singles {
	struct window_allocation *list;
	size_t count, capacity;
};

static bool keep(void *context, const struct window_allocation *allocation)
{
	struct singles *singles = context;

	singles->list = mem_grow(singles->list, &singles->capacity, singles->count + 1,
				 sizeof *singles->list);
	singles->list[singles->count++] = *allocation;
	return true;
}

static int compare_singles(const void *a, const void *b)
{
	const struct window_allocation *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return x->cell.size < y->cell.size ? -1 : x->cell.size > y->cell.size;
}

static struct singles walk(struct window *window, const struct window_query *query)
{
	struct singles singles = { 0 };
	struct err err = { 0 };

	CHECK(window_walk(window, query, keep, &singles, &err));
	if (singles.count)
		qsort(singles.list, singles.count, sizeof *singles.list, compare_singles);
	return singles;
}

static void check_walk(struct pair *pair, const struct window_query *query)
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
}

// ---- levels ----

enum { BUCKETS = 7, GROUPS = 24 };

static void check_series(struct pair *pair, const struct window_query *query)
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

static void check_timeline(struct pair *pair, const struct window_query *query, size_t count)
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

static bool follow(void *context, const struct window_change *change)
{
	struct changes *changes = context;

	changes->level.count += change->up ? 1 : UINT64_MAX;
	changes->level.bytes += change->up ? change->bytes : 0 - change->bytes;
	changes->changes += change->exit ? 1000000 : 1;
	if (change->last)
		changes->hash = (changes->hash ^ changes->level.bytes ^ change->edge) * 31;
	return true;
}

static void check_changes(struct pair *pair, const struct window_query *query)
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

static void check_places(struct pair *pair)
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

static void check_all(struct pair *pair, int windows)
{
	check_places(pair);
	for (int i = 0; i < windows; i++) {
		struct window_query query = random_query(pair);
		struct window_query level = query;

		check_ask(pair, &query);
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
	}
}

static void check_trace(uint64_t seed, const struct window_random *like,
			const struct window_options *options, int windows)
{
	struct pair pair = open_pair(seed, like, options, 0);

	check_all(&pair, windows);
	close_pair(&pair);
}

TEST(the_index_says_the_same_as_a_list_of_all_lifetimes)
{
	const struct window_random like[] = {
		{ .events = 3000, .addresses = 60, .free_share = 48, .idle_share = 30 },
		{ .events = 3000, .addresses = 900, .free_share = 35, .idle_share = 80 },
		{ .events = 3000,
		  .addresses = 2000,
		  .free_share = 50,
		  .idle_share = 3,
		  .clean = true },
		{ .events = 3000,
		  .addresses = 300,
		  .free_share = 45,
		  .one_process = true,
		  .idle_share = 40 },
	};
	const struct window_options options = { 0 };

	for (uint64_t seed = 1; seed <= 40; seed++)
		check_trace(seed, &like[seed % 4], &options, 40);
}

static void hear(void *context, const char *text)
{
	CHECK_CONTAINS("temporary files", text);
	++*(int *)context;
}

TEST(the_answers_are_the_same_when_blocks_do_not_fit_into_memory)
{
	int said = 0;

	const struct window_random like = {
		.events = 5000, .addresses = 3000, .free_share = 25, .idle_share = 30
	};

	for (uint64_t seed = 101; seed <= 125; seed++) {
		const struct window_options options = { .alive_bytes = seed % 3 ? 15000 : 2000,
							.say = hear,
							.context = &said };

		check_trace(seed, &like, &options, 25);
	}
	CHECK_EQ(25, said);
}

TEST(an_empty_trace_has_windows_too)
{
	const struct window_random like = { .events = 0, .addresses = 1 };
	const struct window_options options = { 0 };

	check_trace(7, &like, &options, 10);
}

TEST(a_cut_trace_is_answered_for_as_far_as_it_goes)
{
	const struct window_random like = {
		.events = 4000, .addresses = 300, .free_share = 45, .idle_share = 30
	};
	const struct window_options options = { 0 };

	for (uint64_t cut = 20000; cut < 40000; cut += 5000) {
		struct pair pair = open_pair(cut, &like, &options, cut);

		check_all(&pair, 10);
		close_pair(&pair);
	}
}

// ---- what may be wrong with an index ----

static const struct window_random usual = {
	.events = 3000, .addresses = 300, .free_share = 45, .idle_share = 30
};

static struct window *open_index(struct reader *reader, const struct window_options *more,
				 struct err *err)
{
	struct window_options options = *more;

	*err = (struct err){ 0 };
	options.index_path = test_temp_path("random.tide-index");
	options.shape = &small;
	options.progress = PROGRESS_NONE;
	return window_open(test_temp_path("random.tide"), reader, &options, err);
}

static ino_t head_inode(void)
{
	struct stat status = { 0 };

	stat(test_temp_path("random.tide-index/head"), &status);
	return status.st_ino;
}

TEST(an_index_is_used_again_and_one_of_another_trace_is_not)
{
	const struct window_options options = { 0 };
	struct pair pair = open_pair(1, &usual, &options, 0);
	ino_t inode = head_inode();
	struct window *again;
	struct err err;

	CHECK(inode != 0);
	again = open_index(pair.reader, &options, &err);
	CHECK_STR("", err.text);
	CHECK_EQ(inode, head_inode());
	window_close(again);
	close_pair(&pair);
	pair = open_pair(2, &usual, &options, 0);
	CHECK(inode != head_inode());
	check_all(&pair, 5);
	close_pair(&pair);
}

// Change one byte of a file of the index; false if there is none to change.
static bool spoil(struct sample_random *random)
{
	const char *directory = test_temp_path("random.tide-index");
	char path[4096], names[64][32];
	unsigned count = 0;
	DIR *dir = opendir(directory);
	struct dirent *entry;
	struct stat status;
	uint8_t byte;
	int fd;
	off_t at;

	while ((entry = readdir(dir)) && count < 64)
		if (entry->d_name[0] != '.')
			snprintf(names[count++], sizeof names[0], "%.31s", entry->d_name);
	closedir(dir);
	snprintf(path, sizeof path, "%s/%s", directory, names[sample_below(random, count)]);
	fd = open(path, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0 && fstat(fd, &status) == 0);
	if (status.st_size == 0) {
		close(fd);
		return false;
	}
	at = (off_t)sample_below(random, (uint64_t)status.st_size);
	CHECK_EQ(1, pread(fd, &byte, 1, at));
	byte ^= (uint8_t)(1 << sample_below(random, 8));
	CHECK_EQ(1, pwrite(fd, &byte, 1, at));
	if (sample_below(random, 4) == 0)
		CHECK_EQ(0, ftruncate(fd, at));
	close(fd);
	return true;
}

// Ask everything. Each answer is right, or there is none.
static void ask_spoiled(struct pair *pair, struct window *window)
{
	for (int i = 0; i < 12; i++) {
		struct window_query query = random_query(pair);
		struct window_detail details[3] = { { .group = 0 },
						    { .group = 1 },
						    { .group = 2 } };
		struct window_result right, found;
		struct window_bucket buckets[20];
		struct err err = { 0 };

		query.layers = WINDOW_HEAP;
		right = ask(pair->plain, &query);
		if (window_ask(window, &query, &found, &err)) {
			check_rows(&right.total, &found.total);
			window_result_fini(&found);
		} else {
			CHECK_EQ(ERR_FORMAT, err.kind);
			CHECK_CONTAINS("built anew", err.text);
		}
		window_result_fini(&right);
		window_detail(window, &query, details, 3, &err);
		window_timeline(window, &query, buckets, 20, &err);
	}
}

TEST(a_damaged_index_gives_no_wrong_number)
{
	const struct window_options options = { 0 };
	struct pair pair = open_pair(3, &usual, &options, 0);
	struct sample_random random = { 5 };

	for (int i = 0; i < 60; i++) {
		struct window *window;
		struct err err;

		if (!spoil(&random))
			continue;
		window = open_index(pair.reader, &options, &err);
		CHECK_STR("", err.text);
		ask_spoiled(&pair, window);
		window_close(window);
	}
	close_pair(&pair);
}

static bool stop_soon(void *context)
{
	return ++*(int *)context > 0;
}

TEST(a_build_that_is_stopped_leaves_nothing_that_would_be_believed)
{
	const struct window_random like = {
		.events = 90000, .addresses = 300, .free_share = 45, .idle_share = 30
	};
	struct reader *reader = window_random_open(4, &like, 0);
	int asked = 0;
	struct window_options options = { .stop = stop_soon, .context = &asked };
	struct window *window;
	struct err err;

	CHECK(open_index(reader, &options, &err) == NULL);
	CHECK_EQ(ERR_LIMIT, err.kind);
	CHECK_CONTAINS("interrupted", err.text);
	CHECK_EQ(0, head_inode());
	options.stop = NULL;
	window = open_index(reader, &options, &err);
	CHECK_STR("", err.text);
	CHECK(window_facts(window)->steps_end > 20000);
	window_close(window);
	reader_close(reader);
}

TEST(a_disk_that_is_full_is_an_error)
{
	const struct window_random like = {
		.events = 20000, .addresses = 300, .free_share = 45, .idle_share = 30
	};
	struct reader *reader = window_random_open(5, &like, 0);
	const struct window_options options = { 0 };
	struct rlimit before, limit;
	struct err err;

	// Files may not grow: the nearest to a full disk that a test can have.
	CHECK_EQ(0, getrlimit(RLIMIT_FSIZE, &before));
	limit = (struct rlimit){ 70000, before.rlim_max };
	signal(SIGXFSZ, SIG_IGN);
	CHECK_EQ(0, setrlimit(RLIMIT_FSIZE, &limit));
	CHECK(open_index(reader, &options, &err) == NULL);
	CHECK_EQ(0, setrlimit(RLIMIT_FSIZE, &before));
	CHECK_EQ(ERR_IO, err.kind);
	CHECK_CONTAINS("cannot write", err.text);
	CHECK_EQ(0, head_inode());
	reader_close(reader);
}
