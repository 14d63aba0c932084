// The index says the same of random traces as a list of all lifetimes, for every question.
#include "base/crc32c.h"
#include "base/mem.h"
#include "engine/index/index.h"
#include "engine/index/index_ahead.h"
#include "engine/index/index_io.h"
#include "engine/index/index_sorted.h"
#include "engine/index/live_table.h"
#include "engine/index/pack.h"
#include "engine/index/vault.h"
#include "engine/replay/lives.h"
#include "engine/window.h"
#include "engine/window_series.h"
#include "test/unit/index_small.h"
#include "test/unit/window_random.h"
#include "test/unit/window_same.h"

#include "os/file.h"
#include "os/now.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

// The linker puts these in the place of the engine's, for this program (--wrap). With
// looks.save_every, a build looks around after each 32 events, and each so many looks as much time
// has passed as makes it write its state.
static struct {
	unsigned save_every, since;
	uint64_t passed_ns;
} looks;

void __real_index_ahead_start(struct index_ahead *ahead, struct reader *reader, struct cells *cells,
			      size_t batch_events);
uint64_t __real_now_steady_ns(void);
void __wrap_index_ahead_start(struct index_ahead *ahead, struct reader *reader, struct cells *cells,
			      size_t batch_events);
uint64_t __wrap_now_steady_ns(void);

void __wrap_index_ahead_start(struct index_ahead *ahead, struct reader *reader, struct cells *cells,
			      size_t batch_events)
{
	enum { BATCHES = 16 }; // between two looks: LOOK_EVERY

	__real_index_ahead_start(ahead, reader, cells,
				 looks.save_every ? 32 / BATCHES : batch_events);
}

uint64_t __wrap_now_steady_ns(void)
{
	return looks.save_every ? looks.passed_ns : __real_now_steady_ns();
}

static void look_passed(void)
{
	if (looks.save_every && ++looks.since % looks.save_every == 0)
		looks.passed_ns += UINT64_C(10000000000);
}

static struct pair open_pair(uint64_t seed, const struct window_random *like,
			     const struct window_options *more, uint64_t cut)
{
	struct pair pair = { .random = { seed + 77 }, .long_enough = 511 };
	struct window_options options = *more;
	struct err err = { 0 };

	pair.reader = window_random_open(seed, like, cut);
	pair.plain_reader = reader_open(test_temp_path("random.tide"), &err);
	options.index_path = test_temp_path("random.tide-index");
	options.progress = PROGRESS_NONE;
	pair.index = window_open(test_temp_path("random.tide"), pair.reader, &options, &err);
	CHECK_STR("", err.text);
	options = (struct window_options){ .plain = true, .progress = PROGRESS_NONE };
	pair.plain = window_open(test_temp_path("random.tide"), pair.plain_reader, &options, &err);
	CHECK_STR("", err.text);
	return pair;
}

// Returns how many allocations walks passed over.
static size_t check_trace(uint64_t seed, const struct window_random *like,
			  const struct window_options *options, int windows)
{
	struct pair pair = open_pair(seed, like, options, 0);

	check_all(&pair, windows);
	close_pair(&pair);
	return pair.passed_over;
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
		{ .events = 3000,
		  .addresses = 900,
		  .free_share = 40,
		  .idle_share = 40,
		  .huge = true },
	};
	const struct window_options options = { 0 };
	size_t passed_over = 0;

	for (uint64_t seed = 1; seed <= 45; seed++)
		passed_over += check_trace(seed, &like[seed % 5], &options, 40);
	CHECK(passed_over > 1000);
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
		const struct window_options options = { .say = hear, .context = &said };

		index_small_alive = seed % 3 ? 15000 : 2000;
		check_trace(seed, &like, &options, 25);
	}
	index_small_alive = 0;
	CHECK(said >= 25); // a trace that is begun anew says so twice
}

TEST(an_empty_trace_has_windows_too)
{
	const struct window_random like = { .events = 0, .addresses = 1 };
	const struct window_options options = { 0 };

	check_trace(7, &like, &options, 10);
}

// ---- the same lives as whoever tells them one by one ----

struct told {
	struct heap_amount begun, ended; // by events of the trace
	uint64_t orphans, inherited, lost;
};

static void tell_begin(void *context, const struct lives_block *block)
{
	struct told *told = context;

	told->begun.count++;
	told->begun.bytes += block->size;
}

static void tell_end(void *context, const struct lives_block *block, const struct lives_end *end)
{
	struct told *told = context;

	told->orphans += block->origin == LIVES_ORPHAN;
	told->inherited += block->origin == LIVES_INHERITED;
	if (block->origin != LIVES_BEGUN || end->cause >= LIVES_EXIT)
		return;
	told->lost += end->cause == LIVES_LOST;
	told->ended.count++;
	told->ended.bytes += block->size;
}

// The number of calls, too.
static uint64_t tell_all(struct reader *reader, struct told *told)
{
	const struct lives_watcher watcher = { .begin = tell_begin,
					       .end = tell_end,
					       .context = told };
	struct progress progress = { .mode = PROGRESS_NONE };
	struct map undone = { 0 };
	struct trace_event event;
	struct trace_note note;
	struct lives *lives;
	enum reader_item item;
	uint64_t calls = 0;

	lives_find_undone(reader, &undone, &progress);
	lives = lives_new(reader, &watcher, &undone);
	while ((item = reader_next(reader, &event, &note)) != READER_END) {
		if (item == READER_NOTE) {
			lives_add_note(lives, &note);
			continue;
		}
		lives_add_event(lives, &event);
		calls += trace_kind_is_call(event.kind);
	}
	lives_finish(lives, 0);
	lives_free(lives);
	map_fini(&undone);
	return calls;
}

static void check_told(struct window *window, const struct told *told, uint64_t calls)
{
	const struct window_facts *facts = window_facts(window);
	const struct window_query query = { .from = WINDOW_START, .to = facts->steps_end };
	struct window_result result;
	struct err err = { 0 };

	CHECK(window_ask(window, &query, &result, &err));
	check_amount(told->begun, window_allocated(&result.total));
	check_amount(told->ended, window_freed(&result.total));
	window_result_fini(&result);
	CHECK_EQ(told->orphans, facts->orphans);
	CHECK_EQ(told->inherited, facts->inherited);
	CHECK_EQ(told->lost, facts->lost);
	CHECK_EQ(calls, facts->calls);
}

TEST(the_lives_are_those_that_are_told_one_by_one)
{
	for (uint64_t seed = 501; seed <= 530; seed++) {
		const struct window_random like = { .events = 2000,
						    .addresses = (uint32_t)30 << seed % 7,
						    .free_share = 45,
						    .idle_share = 30,
						    .one_process = seed % 3 == 0 };
		const struct window_options options = { 0 };
		struct told told = { 0 };
		struct pair pair;
		uint64_t calls;

		index_small_alive = seed % 2 ? 0 : 2000;
		pair = open_pair(seed, &like, &options, 0);
		index_small_alive = 0;
		calls = tell_all(pair.plain_reader, &told);
		check_told(pair.index, &told, calls);
		check_told(pair.plain, &told, calls);
		close_pair(&pair);
	}
}

// ---- more of one kind than 16 bits count ----

enum { CROWD = 66000 };

static void crowd_event(struct writer *writer, uint64_t *time_ns, enum trace_kind kind,
			uint64_t block)
{
	const struct trace_event event = { .time_ns = *time_ns += 10,
					   .kind = kind,
					   .address = 0x10000 + block * 16,
					   .size = kind == TRACE_MALLOC ? 16 : 0,
					   .stack = kind == TRACE_MALLOC ? 1 : 0 };

	writer_event(writer, &event);
}

// CROWD blocks of each type, in the window behind the first 2 * CROWD steps.
static void write_crowd(const char *path)
{
	const struct trace_process process = {
		.parent = TRACE_NONE, .pid = 1, .bits = 64, .start = TRACE_START_EXEC, .exe = "/a"
	};
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	const struct trace_info info = sample_info();
	struct err err = { 0 };
	struct writer *writer = writer_new(fd, &info, &err);
	uint64_t time_ns = 0;

	writer_add_process(writer, &process);
	writer_add_thread(writer, 0, 1, "t");
	writer_add_stack(writer, 0, writer_add_frame(writer, 0, 0x400000, 0), 0);
	for (uint64_t i = 0; i < UINT64_C(2) * CROWD; i++)
		crowd_event(writer, &time_ns, TRACE_MALLOC, i);
	for (uint64_t i = 0; i < CROWD; i++) {
		crowd_event(writer, &time_ns, TRACE_FREE, i);
		crowd_event(writer, &time_ns, TRACE_MALLOC, i);
		crowd_event(writer, &time_ns, TRACE_FREE, i);
		crowd_event(writer, &time_ns, TRACE_MALLOC, UINT64_C(2) * CROWD + i);
	}
	writer_end(writer, &(struct trace_end){ .duration_ns = time_ns });
	CHECK(writer_ok(writer, &err));
	writer_free(writer);
	close(fd);
}

TEST(a_lifetime_filter_counts_any_number_of_one_kind)
{
	const char *path = test_temp_path("crowd.tide");
	struct window_options options = { .index_path = test_temp_path("crowd.tide-index"),
					  .progress = PROGRESS_NONE };
	struct window_query query = { .from = UINT64_C(2) * CROWD + 1,
				      .to = UINT64_MAX,
				      .lifetime_max_ns = UINT64_MAX };
	struct window_result result;
	struct reader *reader;
	struct window *window;
	struct err err = { 0 };

	index_small_blocks(false);
	write_crowd(path);
	reader = reader_open(path, &err);
	window = window_open(path, reader, &options, &err);
	CHECK_STR("", err.text);
	CHECK(window_ask(window, &query, &result, &err));
	for (int type = 0; type < WINDOW_TYPES; type++) {
		CHECK_EQ(CROWD, result.total.type[type].count);
		CHECK_EQ(CROWD * 16, result.total.type[type].bytes);
	}
	window_result_fini(&result);
	window_close(window);
	reader_close(reader);
	index_small_blocks(true);
}

// What the blocks of steps say is not said once more by postings.
TEST(a_site_that_does_most_of_it_takes_no_postings)
{
	const char *path = test_temp_path("crowd.tide");
	struct window_options options = { .index_path = test_temp_path("crowd.tide-index"),
					  .progress = PROGRESS_NONE };
	struct reader *reader;
	struct window *window;
	struct stat status = { 0 };
	struct err err = { 0 };

	index_small_blocks(false);
	write_crowd(path);
	reader = reader_open(path, &err);
	window = window_open(path, reader, &options, &err);
	CHECK_STR("", err.text);
	CHECK_EQ(0, stat(test_temp_path("crowd.tide-index/posts"), &status));
	CHECK(status.st_size > 0);
	CHECK(status.st_size < 4 * CROWD / 256);
	window_close(window);
	reader_close(reader);
	index_small_blocks(true);
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
	options.progress = PROGRESS_NONE;
	return window_open(test_temp_path("random.tide"), reader, &options, err);
}

static ino_t head_inode(void)
{
	struct stat status = { 0 };

	stat(test_temp_path("random.tide-index/head"), &status);
	return status.st_ino;
}

// The sum of all bytes of the index, each by its file and place.
static uint64_t sum_of_index(void)
{
	DIR *dir = opendir(test_temp_path("random.tide-index"));
	struct dirent *entry;
	uint64_t sum = 0;

	CHECK(dir);
	while ((entry = readdir(dir))) {
		char path[4096];
		uint64_t hash = 0;
		FILE *file;
		int byte;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "%s/%s", test_temp_path("random.tide-index"),
			 entry->d_name);
		file = fopen(path, "rbe");
		CHECK(file);
		for (const char *at = entry->d_name; *at; at++)
			hash = (hash ^ (uint8_t)*at) * UINT64_C(0x100000001b3);
		while ((byte = fgetc(file)) != EOF)
			hash = (hash ^ (uint64_t)byte) * UINT64_C(0x100000001b3);
		fclose(file);
		sum += hash;
	}
	closedir(dir);
	return sum;
}

TEST(an_index_is_the_same_however_fast_its_threads_are)
{
	const struct window_random like = {
		.events = 6000, .addresses = 500, .free_share = 50, .idle_share = 20
	};

	for (uint64_t seed = 201; seed <= 206; seed++) {
		uint64_t first = 0;

		for (int i = 0; i < 6; i++) {
			const struct window_options options = { .rebuild = true };
			struct pair pair = open_pair(seed, &like, &options, 0);
			uint64_t sum = sum_of_index();

			first = i == 0 ? sum : first;
			CHECK_EQ(first, sum);
			close_pair(&pair);
		}
	}
}

TEST(an_index_is_used_again_and_one_of_another_trace_is_not)
{
	const struct window_options options = { 0 };
	struct pair pair = open_pair(1, &usual, &options, 0);
	// While it is open no other file has its number.
	FILE *held = fopen(test_temp_path("random.tide-index/head"), "rbe");
	ino_t inode = head_inode();
	struct window *again;
	struct err err;

	CHECK(held && inode != 0);
	again = open_index(pair.reader, &options, &err);
	CHECK_STR("", err.text);
	CHECK_EQ(inode, head_inode());
	window_close(again);
	close_pair(&pair);
	pair = open_pair(2, &usual, &options, 0);
	CHECK(inode != head_inode());
	fclose(held);
	check_all(&pair, 5);
	close_pair(&pair);
}

// ---- lifetimes of the whole trace, which are kept ----

static const char *sorted_head(void)
{
	return test_temp_path("random.tide-index/sorted-head");
}

enum { LIVED_GROUPS = 256 };

// Of a group, by two threads.
struct lived_sums {
	uint64_t never, ended, none, bytes, ns;
};

struct lived {
	struct pair *pair;
	struct lived_sums sums[WINDOW_LIVED_PARTS][LIVED_GROUPS];
};

static void add_lived(void *context, unsigned part, const struct window_lived *lived)
{
	struct lived *all = context;
	struct lived_sums *sums;

	CHECK(part < WINDOW_LIVED_PARTS && lived->group < LIVED_GROUPS);
	sums = &all->sums[part][lived->group];
	sums->never += lived->never;
	sums->none += lived->none;
	sums->ended += lived->none + lived->count;
	sums->bytes += (lived->never + lived->none + lived->count) * lived->size;
	for (size_t i = 0; i < lived->count; i++) {
		CHECK(lived->ns[i] > 0 && (i == 0 || lived->ns[i] >= lived->ns[i - 1]));
		sums->ns += lived->ns[i];
	}
}

static bool add_walked(void *context, const struct window_allocation *allocation)
{
	struct lived_sums *sums = &((struct lived *)context)->sums[0][allocation->group];
	bool called = allocation->end_kind != WINDOW_END_NEVER &&
		      allocation->end_kind != WINDOW_END_EXIT &&
		      allocation->end_kind != WINDOW_END_EXEC;
	uint64_t ns = allocation->end_ns - allocation->begin_ns;

	CHECK(allocation->group < LIVED_GROUPS);
	sums->never += !called;
	sums->ended += called;
	sums->none += called && ns == 0;
	sums->ns += called ? ns : 0;
	sums->bytes += allocation->cell.size;
	return true;
}

static void check_lived(struct pair *pair, const struct window_query *asked)
{
	struct lived found = { .pair = pair }, right = { .pair = pair };
	struct window_query query = *asked;
	struct err err = { 0 };
	bool known;

	query.layers = WINDOW_HEAP;
	query.walk_types = 0;
	CHECK(window_lived(pair->index, &query, add_lived, &found, &known, &err));
	if (!known) { // it was damaged
		memset(found.sums, 0, sizeof found.sums);
		CHECK(window_lived(pair->index, &query, add_lived, &found, &known, &err) && known);
	}
	CHECK(window_walk(pair->plain, &query, add_walked, &right, &err));
	for (int i = 0; i < LIVED_GROUPS; i++) {
		CHECK_EQ(right.sums[0][i].never, found.sums[0][i].never + found.sums[1][i].never);
		CHECK_EQ(right.sums[0][i].ended, found.sums[0][i].ended + found.sums[1][i].ended);
		CHECK_EQ(right.sums[0][i].none, found.sums[0][i].none + found.sums[1][i].none);
		CHECK_EQ(right.sums[0][i].bytes, found.sums[0][i].bytes + found.sums[1][i].bytes);
		CHECK_EQ(right.sums[0][i].ns, found.sums[0][i].ns + found.sums[1][i].ns);
	}
	// Nobody knows those of another window.
	query.from++;
	CHECK(window_lived(pair->index, &query, add_lived, &found, &known, &err) && !known);
}

static void ask_of_all(struct pair *pair, uint64_t memory_bytes)
{
	for (int i = 0; i < 6; i++) {
		struct window_query query = random_query(pair);

		query.from = WINDOW_START;
		query.to = window_facts(pair->plain)->steps_end;
		query.lifetime_min_ns = query.lifetime_max_ns = 0;
		query.peaks_only = false;
		window_memory(pair->index, memory_bytes);
		check_details_of(pair, &query, 24);
		check_lifetimes_of_types(pair, &query);
		check_lived(pair, &query);
	}
	window_memory(pair->index, 0);
}

// Change a byte of it, and ask: what is damaged counts for nothing, and is made again.
static void spoil_kept(struct pair *pair, const char *path, struct sample_random *random)
{
	struct stat status;
	uint8_t byte;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	off_t at;

	CHECK(fd >= 0 && fstat(fd, &status) == 0 && status.st_size > 0);
	at = (off_t)sample_below(random, (uint64_t)status.st_size);
	CHECK_EQ(1, pread(fd, &byte, 1, at));
	byte ^= (uint8_t)(1 << sample_below(random, 8));
	CHECK_EQ(1, pwrite(fd, &byte, 1, at));
	close(fd);
	ask_of_all(pair, 0);
	ask_of_all(pair, 0);
	CHECK_EQ(0, access(sorted_head(), F_OK));
}

TEST(lifetimes_of_the_whole_trace_are_kept_and_are_those_of_its_steps)
{
	// Of that of 256 bytes not even the lifetimes of one kind fit.
	const uint64_t memory[] = { 0, 1 << 12, 1 << 8 };
	const struct window_options options = { 0 };
	struct sample_random random = { 9 };

	for (uint64_t seed = 701; seed <= 715; seed++) {
		const struct window_random like = { .events = 6000,
						    .addresses = (uint32_t)60 << seed % 5,
						    .free_share = 45,
						    .idle_share = (uint32_t)(seed % 4) * 20,
						    .one_process = seed % 2 == 0 };
		struct pair pair = open_pair(seed, &like, &options, 0);

		for (int i = 0; i < 3; i++) {
			unlink(sorted_head());
			ask_of_all(&pair, memory[i]);
			CHECK_EQ(0, access(sorted_head(), F_OK));
			ask_of_all(&pair, 0);
		}
		spoil_kept(&pair, sorted_head(), &random);
		spoil_kept(&pair, test_temp_path("random.tide-index/sorted"), &random);
		close_pair(&pair);
	}
}

// Of the first stack every second block lives until its process exits, and of the second as many
// others are freed: as many as calls freed in all have ended of the first one's, if exits count.
static void write_exits(void)
{
	enum { BLOCKS = 4000 };
	const struct trace_process process = { .parent = TRACE_NONE, .exe = "/bin/app" };
	struct trace_info info = sample_info();
	struct err err = { 0 };
	int fd = sample_create(test_temp_path("random.tide"));
	struct writer *writer = writer_new(fd, &info, &err);
	uint64_t time_ns = 0;

	writer_add_process(writer, &process);
	writer_add_thread(writer, 0, 500, "t");
	for (stack_id stack = 1; stack <= 2; stack++)
		writer_add_stack(writer, 0, writer_add_frame(writer, 0, 0x400000 + stack, 0), 0);
	for (uint32_t i = 0; i < BLOCKS; i++) {
		struct trace_event event = { .kind = TRACE_MALLOC,
					     .address = 0x10000 + i * UINT64_C(64),
					     .size = 16,
					     .stack = 1 + i % 4 / 3,
					     .time_ns = time_ns };

		if (i % 4 == 1)
			continue;
		writer_event(writer, &event);
		event.kind = TRACE_FREE;
		event.time_ns = time_ns += event.stack * 10 + i % 97 * (i % 13);
		if (i % 4 != 2)
			writer_event(writer, &event);
	}
	writer_process_end(writer, 0, time_ns + 5, TRACE_EXIT_CODE, 0);
	writer_end(writer, &(struct trace_end){ .why = "" });
	CHECK(writer_ok(writer, &err));
	writer_free(writer);
	close(fd);
}

static uint32_t group_by_stack(void *, const struct window_cell *cell)
{
	return cell->stack;
}

static struct pair open_exits(void)
{
	struct window_options options = { .progress = PROGRESS_NONE };
	struct pair pair = { 0 };
	struct err err = { 0 };
	const char *path;

	write_exits();
	path = test_temp_path("random.tide");
	pair.reader = reader_open(path, &err);
	pair.plain_reader = reader_open(path, &err);
	options.index_path = test_temp_path("random.tide-index");
	pair.index = window_open(path, pair.reader, &options, &err);
	options = (struct window_options){ .plain = true, .progress = PROGRESS_NONE };
	pair.plain = window_open(path, pair.plain_reader, &options, &err);
	CHECK_STR("", err.text);
	return pair;
}

static void ask_by_stack(struct pair *pair, bool exits)
{
	struct window_query query = { .from = WINDOW_START,
				      .to = window_facts(pair->plain)->steps_end,
				      .exit_frees = exits,
				      .group = group_by_stack };

	check_details_of(pair, &query, 24);
	CHECK_EQ(0, access(sorted_head(), F_OK));
	if (!exits)
		check_lived(pair, &query);
}

// The end of a process is no lifetime, also where it counts as a free: then a row that has as many
// ends as there are lifetimes in all need not have all of these.
TEST(rows_with_as_many_ends_as_all_lifetimes_have_their_own_median)
{
	struct pair pair = open_exits();

	ask_by_stack(&pair, false);
	ask_by_stack(&pair, true);
	close_pair(&pair);
}

// Their ranges are made from a sample, and with little memory most have more than fits.
TEST(the_lifetimes_of_one_kind_are_sorted_in_ranges_where_they_do_not_fit)
{
	const uint64_t memory[] = { 1 << 15, 1 << 12, 1 << 8 };
	struct pair pair = open_exits();

	for (int i = 0; i < 3; i++) {
		unlink(sorted_head());
		window_memory(pair.index, memory[i]);
		ask_by_stack(&pair, false);
	}
	close_pair(&pair);
}

// Those of another trace are not believed.
TEST(lifetimes_that_are_kept_belong_to_one_index)
{
	const struct window_random like = {
		.events = 3000, .addresses = 300, .free_share = 45, .idle_share = 20
	};
	const struct window_options options = { 0 };
	const char *moved[] = { "sorted", "sorted-head" };
	struct pair pair = open_pair(721, &like, &options, 0);
	char from[4096], to[4096];

	ask_of_all(&pair, 0);
	for (int i = 0; i < 2; i++) {
		snprintf(from, sizeof from, "%s/%s", test_temp_path("random.tide-index"), moved[i]);
		snprintf(to, sizeof to, "%s.%s", test_temp_path("other"), moved[i]);
		CHECK_EQ(0, rename(from, to));
	}
	close_pair(&pair);
	pair = open_pair(722, &like, &options, 0);
	for (int i = 0; i < 2; i++) {
		snprintf(from, sizeof from, "%s.%s", test_temp_path("other"), moved[i]);
		snprintf(to, sizeof to, "%s/%s", test_temp_path("random.tide-index"), moved[i]);
		CHECK_EQ(0, rename(from, to));
	}
	ask_of_all(&pair, 0);
	close_pair(&pair);
}

// What cannot be kept is not tried again by those who have the index open.
TEST(lifetimes_that_cannot_be_kept_are_found_again_and_not_kept_again)
{
	const struct window_random like = {
		.events = 3000, .addresses = 300, .free_share = 45, .idle_share = 20
	};
	const struct window_options options = { 0 };
	struct pair pair = open_pair(721, &like, &options, 0);

	CHECK_EQ(0, mkdir(test_temp_path("random.tide-index/sorted"), 0700));
	for (int i = 0; i < 6; i++) {
		struct window_query query = random_query(&pair);

		query.from = WINDOW_START;
		query.to = window_facts(pair.plain)->steps_end;
		query.lifetime_min_ns = query.lifetime_max_ns = 0;
		query.peaks_only = false;
		check_details_of(&pair, &query, 24);
		CHECK(access(sorted_head(), F_OK) != 0);
		if (i == 2)
			CHECK_EQ(0, rmdir(test_temp_path("random.tide-index/sorted")));
	}
	close_pair(&pair);
	pair = open_pair(721, &like, &options, 0);
	ask_of_all(&pair, 0);
	CHECK_EQ(0, access(sorted_head(), F_OK));
	close_pair(&pair);
}

// As index_sorted.c has it.
struct sorted_piece {
	uint64_t at;
	uint32_t size, first, cells, count;
};

// Two cells of a piece have so many more and so many fewer lifetimes, which add up to as many as
// before.
static size_t pack_wrong(const struct sorted_piece *piece, uint8_t *bytes, uint64_t more)
{
	enum { NUMBERS = 1 << 15 };
	uint64_t *columns = mem_alloc(3 * NUMBERS, sizeof *columns);
	const uint8_t *at = bytes, *end = bytes + piece->size;
	uint8_t *out = bytes;

	CHECK(piece->cells >= 2 && piece->cells <= NUMBERS && piece->count <= NUMBERS);
	CHECK(pack_take(&at, end, columns, piece->cells) &&
	      pack_take(&at, end, columns + NUMBERS, piece->cells) &&
	      pack_take(&at, end, columns + 2 * NUMBERS, piece->count));
	columns[NUMBERS] += more;
	columns[NUMBERS + 1] -= more;
	out = pack_put(out, columns, piece->cells);
	out = pack_put(out, columns + NUMBERS, piece->cells);
	out = pack_put(out, columns + 2 * NUMBERS, piece->count);
	mem_free(columns);
	return (size_t)(out - bytes);
}

// Write what is kept once more, with right checksums, but for the counts of the first piece of
// several cells.
static void wrap_counts(uint64_t more)
{
	enum { ROOM = 1 << 20, STAMP = 40 + sizeof(struct index_identity) };
	uint8_t stamp[STAMP], *bytes = mem_alloc(ROOM, 1);
	struct vault from = { .fd = -1 }, to = { .fd = -1 };
	struct sorted_piece *pieces;
	struct index_sorted_total total;
	struct index_out *out;
	struct index_in in;
	struct err err;
	size_t sums_count, count;
	uint32_t *sums;
	uint64_t size;
	bool wrapped = false;
	int directory = open(test_temp_path("random.tide-index"), O_DIRECTORY | O_CLOEXEC);

	CHECK(directory >= 0 && index_in_open(&in, directory, "sorted-head", &err));
	index_in_take(&in, stamp, sizeof stamp);
	size = index_in_take_u64(&in);
	sums = index_in_take_array(&in, &sums_count, sizeof *sums);
	pieces = index_in_take_array(&in, &count, sizeof *pieces);
	index_in_take(&in, &total, sizeof total);
	CHECK(!in.bad && count > 0);
	index_in_close(&in);
	CHECK(vault_open(&from, directory, "sorted", size, sums, &err));
	CHECK(vault_create(&to, directory, "sorted", &err)); // `from` has the old one still
	for (size_t i = 0; i < count; i++) {
		struct sorted_piece *piece = &pieces[i];

		CHECK(vault_read(&from, piece->at, bytes, piece->size, &err));
		piece->at = to.size;
		if (!wrapped && piece->cells >= 2) {
			piece->size = (uint32_t)pack_wrong(piece, bytes, more);
			wrapped = true;
		}
		vault_append(&to, bytes, piece->size);
	}
	CHECK(wrapped && vault_finish(&to, &err));
	out = index_out_new(directory, "sorted-head");
	index_out_put(out, stamp, sizeof stamp);
	index_out_put_u64(out, to.size);
	index_out_put_array(out, to.sums, to.sums_count, sizeof *to.sums);
	index_out_put_array(out, pieces, count, sizeof *pieces);
	index_out_put(out, &total, sizeof total);
	CHECK(index_out_end(out, &err));
	vault_close(&from);
	vault_close(&to);
	close(directory);
	MEM_FREE(pieces, bytes);
}

// The sum wraps at 2^64; what is gone through has 32 bits.
TEST(lifetimes_whose_counts_wrap_are_not_believed)
{
	const struct window_random like = {
		.events = 6000, .addresses = 300, .free_share = 45, .idle_share = 20
	};
	const struct window_options options = { 0 };
	const uint64_t more[] = { UINT64_C(1) << 31, UINT64_C(1) << 63, 1 << 20 };
	struct pair pair = open_pair(741, &like, &options, 0);

	for (int i = 0; i < 3; i++) {
		ask_of_all(&pair, 0);
		wrap_counts(more[i]);
		ask_of_all(&pair, 0);
	}
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
	struct moment_sides sides = moment_sides_of(pair->plain_reader, window, pair->random.state);

	for (int i = 0; i < 3; i++)
		check_moment(&sides);
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
			CHECK_EQ(ERR_INDEX, err.kind);
			CHECK_CONTAINS("the index ", err.text);
		}
		window_result_fini(&right);
		window_detail(window, &query, details, 3, &err);
		window_timeline(window, &query, buckets, 20, &err);
	}
}

// The same, of an index that nobody has touched since it was opened.
static void check_all_or_refuse(struct pair *pair)
{
	ask_spoiled(pair, pair->index);
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

// ---- builds that are stopped and killed ----

struct killer {
	unsigned asked, at;
	int number; // the signal; 0: only stop
	unsigned resumed;
};

static bool stop_there(void *context)
{
	struct killer *killer = context;

	look_passed();
	if (++killer->asked < killer->at)
		return false;
	if (killer->number)
		raise(killer->number);
	return true;
}

static void hear_of_resuming(void *context, const char *text)
{
	struct killer *killer = context;

	killer->resumed += strstr(text, "going on") != NULL;
}

// Build in a process of its own, which is killed when it has looked around so many times. Whether
// it was.
static bool build_and_die(unsigned at)
{
	struct killer killer = { .at = at, .number = SIGKILL };
	int status;
	pid_t child = fork();

	if (child == 0) {
		const struct window_options options = { .stop = stop_there, .context = &killer };
		struct err err = { 0 };
		struct reader *reader = reader_open(test_temp_path("random.tide"), &err);

		_exit(open_index(reader, &options, &err) ? 0 : 1);
	}
	CHECK_EQ(child, waitpid(child, &status, 0));
	return WIFSIGNALED(status);
}

// Kill builds again and again, each a little later than the one before; then look at what the one
// that is let live has made of it.
static unsigned check_killed(uint64_t seed, const struct window_random *like, uint64_t alive_bytes)
{
	struct sample_random random = { seed };
	struct killer killer = { .at = 1 << 30 };
	struct window_options options = { .stop = stop_there,
					  .say = hear_of_resuming,
					  .context = &killer };
	struct pair pair;
	unsigned kills = 0;

	looks.save_every = 3;
	index_small_alive = alive_bytes;
	reader_close(window_random_open(seed, like, 0));
	while (kills < 6 && build_and_die(1 + (unsigned)sample_below(&random, 8 << (kills / 2))))
		kills++;
	pair = open_pair(seed, like, &options, 0);
	looks.save_every = 0;
	index_small_alive = 0;
	check_all(&pair, 12);
	close_pair(&pair);
	return killer.resumed;
}

TEST(a_build_that_was_killed_anywhere_goes_on_and_answers_the_same)
{
	const struct window_random like[] = {
		{ .events = 3000, .addresses = 60, .free_share = 48, .idle_share = 30 },
		{ .events = 3000, .addresses = 900, .free_share = 35, .idle_share = 80 },
		{ .events = 3000,
		  .addresses = 300,
		  .free_share = 45,
		  .one_process = true,
		  .idle_share = 40 },
	};
	unsigned resumed = 0;

	for (uint64_t seed = 1; seed <= 30; seed++)
		resumed += check_killed(seed, &like[seed % 3], 0);
	CHECK(resumed > 20);
}

TEST(a_build_that_was_killed_after_memory_was_full_goes_on_from_before)
{
	const struct window_random like = {
		.events = 4000, .addresses = 3000, .free_share = 25, .idle_share = 30
	};
	unsigned resumed = 0;

	for (uint64_t seed = 201; seed <= 208; seed++)
		resumed += check_killed(seed, &like, 15000);
	CHECK(resumed > 2);
}

TEST(a_state_that_is_damaged_is_not_believed)
{
	struct sample_random random = { 9 };
	unsigned kills = 0;

	for (uint64_t seed = 301; seed <= 330; seed++) {
		struct killer killer = { .at = 1 << 30 };
		const struct window_options options = { .stop = stop_there, .context = &killer };
		struct pair pair;

		looks.save_every = 3;
		reader_close(window_random_open(seed, &usual, 0));
		kills += build_and_die(25);
		for (int i = 0; i < 3; i++)
			spoil(&random);
		pair = open_pair(seed, &usual, &options, 0);
		looks.save_every = 0;
		check_all_or_refuse(&pair);
		close_pair(&pair);
	}
	CHECK(kills > 20);
}

// The state of a build that was killed, and its size without the checksum. NULL: there is none.
static uint8_t *read_state(size_t *size)
{
	struct err err = { 0 };
	struct file_view view;
	uint8_t *bytes;

	if (!file_view_open(&view, test_temp_path("random.tide-index/state"), &err))
		return NULL;
	*size = view.size - sizeof(uint32_t);
	bytes = (uint8_t *)mem_copy_bytes(view.bytes, *size);
	file_view_close(&view);
	return bytes;
}

// With a checksum that is right. Takes the bytes.
static void write_state(uint8_t *bytes, size_t size)
{
	int fd = open(test_temp_path("random.tide-index/state"), O_WRONLY | O_TRUNC | O_CLOEXEC);
	uint32_t crc = crc32c(0, bytes, size);

	CHECK_EQ((long long)size, pwrite(fd, bytes, size, 0));
	CHECK_EQ((long long)sizeof crc, pwrite(fd, &crc, sizeof crc, (off_t)size));
	close(fd);
	mem_free(bytes);
}

// With these words in the place of its last one. False: there is no state, or its last word is not
// 0.
static bool craft_state(const uint64_t *words, size_t size)
{
	uint64_t last;
	size_t length;
	uint8_t *bytes = read_state(&length);

	if (!bytes)
		return false;
	length -= sizeof last;
	memcpy(&last, bytes + length, sizeof last);
	bytes = mem_resize(bytes, length + size, 1);
	memcpy(bytes + length, words, size);
	write_state(bytes, length + size);
	return last == 0;
}

// Builds that are ended, whose states are crafted then: none is gone on with, and the index is
// right.
static void check_crafted(bool (*craft)(void))
{
	const struct window_random like = {
		.events = 3000,
		.addresses = 300,
		.free_share = 45,
		.idle_share = 40,
		.one_process = true,
	};
	unsigned crafted = 0;

	for (uint64_t seed = 401; seed <= 405; seed++) {
		struct killer killer = { .at = 1 << 30 };
		const struct window_options options = { .stop = stop_there,
							.say = hear_of_resuming,
							.context = &killer };
		struct pair pair;

		looks.save_every = 3;
		reader_close(window_random_open(seed, &like, 0));
		build_and_die(25);
		crafted += craft();
		pair = open_pair(seed, &like, &options, 0);
		looks.save_every = 0;
		CHECK_EQ(0, killer.resumed);
		check_all(&pair, 5);
		close_pair(&pair);
	}
	CHECK(crafted > 2);
}

// The list of what nothing ends is last in a state: its length, then a value and an address each. A
// program that still runs has none. Here it has one, of a cell that no table has: what counts it
// would write beyond them.
static bool craft_never(void)
{
	const uint64_t never[] = { 1, UINT64_MAX >> 1, 0x5010 };

	return craft_state(never, sizeof never);
}

TEST(a_state_with_a_right_checksum_names_no_cell_that_is_not_there)
{
	check_crafted(craft_never);
}

// What lives comes before that list, if it is empty: a key and a value each. The last of them
// begins at another step.
static bool craft_life(void)
{
	size_t length, at;
	uint64_t last, value;
	uint8_t *bytes = read_state(&length);

	if (!bytes)
		return false;
	at = length - 2 * sizeof value;
	memcpy(&last, bytes + length - sizeof last, sizeof last);
	memcpy(&value, bytes + at, sizeof value);
	value = live_table_value(UINT32_MAX, live_table_cell(value));
	memcpy(bytes + at, &value, sizeof value);
	write_state(bytes, length);
	return last == 0;
}

TEST(a_state_with_a_right_checksum_has_no_block_that_begins_later)
{
	check_crafted(craft_life);
}

// Three bytes, half of them near the end: what lives, and the steps of the open block.
static bool craft_bytes(struct sample_random *random)
{
	static const uint8_t values[] = { 0, 1, 2, 127, 128, 255 };
	enum { NEAR = 8000 };
	size_t length;
	uint8_t *bytes = read_state(&length);

	if (!bytes)
		return false;
	for (int i = 0; i < 3; i++) {
		size_t part = sample_below(random, 2) && length > NEAR ? NEAR : length;

		bytes[length - 1 - sample_below(random, part)] =
			values[sample_below(random, sizeof values)];
	}
	write_state(bytes, length);
	return true;
}

// Go on with the build, and ask; in a process of its own, as it may end. Whether it ends by itself.
static bool is_unhurt(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		const struct window_options options = { 0 };
		struct err err = { 0 };
		struct window *window = open_index(reader_open(test_temp_path("random.tide"), &err),
						   &options, &err);
		uint64_t end = window ? window_facts(window)->steps_end : 0;

		for (uint64_t i = 0; i < 6 && end > 0; i++) {
			struct window_query query = { .from = 1 + end * i / 7, .to = end };
			struct window_result result = { 0 };

			query.by_size = i % 2;
			window_ask(window, &query, &result, &err);
			window_result_fini(&result);
		}
		_exit(0);
	}
	CHECK_EQ(child, waitpid(child, &status, 0));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(a_state_with_a_right_checksum_hurts_nobody)
{
	struct sample_random random = { 11 };
	unsigned crafted = 0;

	for (uint64_t seed = 501; seed <= 560; seed++) {
		looks.save_every = 3;
		reader_close(window_random_open(seed, &usual, 0));
		build_and_die(25);
		crafted += craft_bytes(&random);
		CHECK(is_unhurt());
		looks.save_every = 0;
	}
	CHECK(crafted > 40);
}

// How the first process ended, in the head.
static uint64_t *find_ending(uint8_t *head)
{
	struct index_exit *exits =
		(struct index_exit *)(head + 8 + sizeof(uint64_t) + sizeof(struct index_identity) +
				      sizeof(struct index_shape) + 6 * sizeof(uint64_t) +
				      sizeof(struct heap_amount) + 3 * sizeof(uint64_t));

	return &exits->kind;
}

TEST(a_head_with_a_right_checksum_knows_how_processes_end)
{
	const struct window_options options = { 0 };
	struct pair pair = open_pair(1, &usual, &options, 0);
	const char *path = test_temp_path("random.tide-index/head");
	struct err err = { 0 };
	struct file_view view;
	uint8_t *bytes;
	uint32_t crc;
	size_t size;
	int fd;

	close_pair(&pair);
	CHECK(file_view_open(&view, path, &err));
	bytes = (uint8_t *)mem_copy_bytes(view.bytes, view.size);
	size = view.size - sizeof crc;
	file_view_close(&view);
	CHECK(*find_ending(bytes) <= WINDOW_END_EXEC);
	*find_ending(bytes) = 200;
	crc = crc32c(0, bytes, size);
	memcpy(bytes + size, &crc, sizeof crc);
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	CHECK_EQ((long long)(size + sizeof crc), pwrite(fd, bytes, size + sizeof crc, 0));
	close(fd);
	mem_free(bytes);
	pair = open_pair(1, &usual, &options, 0);
	CHECK(file_view_open(&view, path, &err));
	bytes = (uint8_t *)mem_copy_bytes(view.bytes, view.size);
	file_view_close(&view);
	CHECK(*find_ending(bytes) <= WINDOW_END_EXEC);
	mem_free(bytes);
	close_pair(&pair);
}

// ---- while it is recorded ----

struct growing {
	const uint8_t *bytes;
	size_t size, at;
	int fd;
	struct sample_random random;
	unsigned stop_after, asked;
};

// Some more of the file, cut anywhere.
static bool grow(void *context)
{
	struct growing *growing = context;
	size_t left = growing->size - growing->at;
	size_t part = 1 + (size_t)sample_below(&growing->random, 9000);

	if (left == 0)
		return false;
	part = part < left ? part : left;
	CHECK_EQ((long long)part, write(growing->fd, growing->bytes + growing->at, part));
	growing->at += part;
	return true;
}

static bool stop_growing(void *context)
{
	struct growing *growing = context;

	look_passed();
	return growing->stop_after && ++growing->asked >= growing->stop_after;
}

// Follow a trace as it is written; stop in the middle, and have the rest indexed later.
static void check_followed(uint64_t seed, unsigned stop_after)
{
	struct reader *reader = window_random_open(seed, &usual, 0);
	struct growing growing = { .random = { seed }, .stop_after = stop_after };
	const char *path = test_temp_path("random.tide");
	const struct window_options options = { .stop = stop_growing, .context = &growing };
	struct file_view view;
	struct err err = { 0 };
	struct pair pair = { .long_enough = 511 };
	bool ok;

	CHECK(file_view_open(&view, path, &err));
	growing.bytes = view.bytes;
	growing.size = view.size;
	unlink(path);
	looks.save_every = stop_after ? 2 : 50;
	growing.fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	ok = window_follow(path, &options, grow, &err);
	CHECK(ok || stop_after);
	while (grow(&growing))
		;
	close(growing.fd);
	file_view_close(&view);
	reader_close(reader);
	growing.stop_after = 0;
	err = (struct err){ 0 };
	pair.random = (struct sample_random){ seed };
	pair.reader = reader_open(path, &err);
	pair.plain_reader = reader_open(path, &err);
	pair.index = window_open(path, pair.reader, &options, &err);
	looks.save_every = 0;
	CHECK_STR("", err.text);
	pair.plain = window_open(path, pair.plain_reader, &(struct window_options){ .plain = true },
				 &err);
	check_all(&pair, 12);
	close_pair(&pair);
}

TEST(an_index_that_follows_a_recording_is_the_same)
{
	for (uint64_t seed = 401; seed <= 410; seed++)
		check_followed(seed, 0);
	for (uint64_t seed = 411; seed <= 425; seed++)
		check_followed(seed, (unsigned)(seed - 410) * 4);
}

// Written on while it is read: what the index does not have is not answered for.
static bool grow_and_go_on(void *context)
{
	struct growing *growing = context;

	if (++growing->asked <= 3)
		grow(growing);
	return false;
}

static void check_grown_meanwhile(uint64_t seed)
{
	const struct window_random like = {
		.events = 20000, .addresses = 300, .free_share = 45, .idle_share = 30
	};
	struct reader *reader = window_random_open(seed, &like, 0);
	struct growing growing = { .random = { seed } };
	const char *path = test_temp_path("random.tide");
	const struct window_options options = { .stop = grow_and_go_on, .context = &growing };
	struct file_view view;
	struct err err = { 0 };
	unsigned times = 0;

	CHECK(file_view_open(&view, path, &err));
	growing.bytes = view.bytes;
	growing.size = view.size;
	unlink(path);
	growing.fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	while (growing.at < growing.size / 4)
		grow(&growing);
	for (bool grows = true; grows; times++) {
		struct pair pair = { .random = { seed }, .long_enough = 511 };

		grows = grow(&growing);
		growing.asked = 0;
		pair.reader = reader_open(path, &err);
		pair.index = window_open(path, pair.reader, &options, &err);
		CHECK_STR("", err.text);
		if (grows) {
			window_close(pair.index);
			reader_close(pair.reader);
			continue;
		}
		pair.plain_reader = reader_open(path, &err);
		pair.plain = window_open(path, pair.plain_reader,
					 &(struct window_options){ .plain = true }, &err);
		check_all(&pair, 4);
		close_pair(&pair);
	}
	CHECK(times > 1);
	close(growing.fd);
	file_view_close(&view);
	reader_close(reader);
}

TEST(an_index_of_a_trace_that_grows_meanwhile_is_of_what_was_read)
{
	for (uint64_t seed = 426; seed <= 433; seed++)
		check_grown_meanwhile(seed);
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
	CHECK_EQ(ERR_STOPPED, err.kind);
	CHECK_CONTAINS("interrupted (what is done is kept", err.text);
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
	limit = (struct rlimit){ 20000, before.rlim_max };
	signal(SIGXFSZ, SIG_IGN);
	CHECK_EQ(0, setrlimit(RLIMIT_FSIZE, &limit));
	CHECK(open_index(reader, &options, &err) == NULL);
	CHECK_EQ(0, setrlimit(RLIMIT_FSIZE, &before));
	CHECK_EQ(ERR_IO, err.kind);
	CHECK_CONTAINS("cannot write", err.text);
	CHECK_EQ(0, head_inode());
	reader_close(reader);
}
