// Windows of large traces: makes such traces, builds their index, asks.
//
//     window_bench repeat SOURCE EVENTS OUT        a recorded run again and again, elsewhere in
//                                                  memory, until there are so many events
//     window_bench make STACKS LIVE EVENTS OUT [DEPTH]
//                                                  random calls from so many stacks, all as busy,
//                                                  three sizes each, about LIVE blocks at a time;
//                                                  below the stacks is a chain of DEPTH frames
//                                                  (64; 2 at least)
//     window_bench ask TRACE [WINDOWS [MEMORY_MIB [INDEX]]]
//
// `ask` removes an index that is there, builds it and asks about WINDOWS random windows (two edges
// anywhere: the hard case), one line for each question: median, 90th and 99th percentile, worst, in
// ms; with the files in the page cache, and again after they were dropped from it.
#include "base/mem.h"
#include "engine/query.h"
#include "engine/window.h"
#include "engine/window_series.h"
#include "trace/reader.h"
#include "trace/writer.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static void fail(const char *what)
{
	fprintf(stderr, "window_bench: %s\n", what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

// ---- making traces ----

struct making {
	struct reader *reader;
	struct writer *writer;
	uint32_t processes, threads, modules, frames, stacks;
};

// Definitions that the reader has met and the writer has not.
static void define(struct making *making)
{
	const struct reader *reader = making->reader;

	for (; making->processes < reader_processes_count(reader); making->processes++)
		writer_add_process(making->writer, reader_process(reader, making->processes));
	for (; making->threads < reader_threads_count(reader); making->threads++) {
		const struct trace_thread *thread = reader_thread(reader, making->threads);

		writer_add_thread(making->writer, thread->process, thread->tid, thread->name);
	}
	for (; making->modules < reader_modules_count(reader); making->modules++)
		if (making->modules > 0)
			writer_add_module(making->writer, reader_module(reader, making->modules));
	for (; making->frames < reader_frames_count(reader); making->frames++) {
		const struct trace_frame *frame = reader_frame(reader, making->frames);

		if (making->frames > 0)
			writer_add_frame(making->writer, frame->module, frame->pc, frame->flags);
	}
	for (; making->stacks < reader_stacks_count(reader); making->stacks++) {
		const struct trace_stack *stack = reader_stack(reader, making->stacks);

		if (making->stacks > 0)
			writer_add_stack(making->writer, stack->parent, stack->frame, stack->flags);
	}
}

static struct writer *open_writer(const char *path, struct trace_info info)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct err err = { 0 };

	for (size_t i = 0; i < sizeof info.recording_id; i++)
		info.recording_id[i] = (uint8_t)now_ns();
	return fd < 0 ? NULL : writer_new(fd, &info, &err);
}

static int repeat(const char *source, uint64_t events, const char *path)
{
	struct err err = { 0 };
	struct making making = { .reader = reader_open(source, &err) };
	struct trace_event event;
	struct trace_note note;
	enum reader_item item;
	uint64_t time_ns = 0, last_ns = 0, round = 0;

	if (!making.reader)
		fail(err.text);
	making.writer = open_writer(path, *reader_info(making.reader));
	if (!making.writer)
		fail("cannot write");
	while (writer_events_count(making.writer) < events) {
		while ((item = reader_next(making.reader, &event, &note)) != READER_END) {
			if (item != READER_EVENT || event.vm)
				continue;
			if (writer_events_count(making.writer) >= events)
				break;
			define(&making);
			event.time_ns += time_ns;
			if (event.address)
				event.address += round << 38;
			if (event.old_address)
				event.old_address += round << 38;
			last_ns = event.time_ns;
			writer_event(making.writer, &event);
		}
		time_ns = last_ns;
		round++;
		reader_rewind(making.reader);
	}
	writer_end(making.writer, &(struct trace_end){ .duration_ns = last_ns });
	if (!writer_ok(making.writer, &err))
		fail(err.text);
	writer_free(making.writer);
	reader_close(making.reader);
	return 0;
}

// Stacks are numbered as they are met, as a recording numbers them; callers come before. The first
// `depth` are a chain.
static stack_id met_stack(struct writer *writer, stack_id *met, uint64_t which, stack_id *count,
			  uint64_t depth)
{
	stack_id id = *count + 1;
	frame_id frame;

	if (met[which])
		return met[which];
	frame = writer_add_frame(writer, 0, 0x400000 + id * UINT64_C(8), 0);
	writer_add_stack(writer, id < depth ? id - 1 : (stack_id)(next_random() % (id - 1) / 2),
			 frame, 0);
	*count = id;
	met[which] = id;
	return id;
}

// Which blocks live: half of the calls free one of them, most often one of the latest.
static int make(uint64_t stacks, uint64_t live, uint64_t events, const char *path, uint64_t depth)
{
	const struct trace_info info = { .tool = "window_bench",
					 .host = "",
					 .command = "synthetic",
					 .directory = "",
					 .options = "",
					 .tick_ns = 100000 };
	const struct trace_process process = { .parent = TRACE_NONE,
					       .pid = 1,
					       .bits = 64,
					       .start = TRACE_START_EXEC,
					       .exe = "/bin/synthetic" };
	static const uint64_t sizes[] = { 24, 100, 4096 };
	struct writer *writer = open_writer(path, info);
	uint64_t *blocks = mem_alloc(live * 2 + 1000, sizeof *blocks), count = 0, next = 0;
	stack_id *met = mem_alloc(stacks, sizeof *met), stacks_met = 0;
	struct trace_event event = { 0 };
	struct err err = { 0 };

	if (!writer)
		fail("cannot write");
	writer_add_process(writer, &process);
	writer_add_thread(writer, 0, 1, "main");
	for (uint64_t i = 0; i < events; i++) {
		uint64_t share = count < live ? 250 : 503; // of a thousand calls that free
		bool frees = count > 0 && next_random() % 1000 < share;

		event.time_ns = i / 700 * 100000;
		if (frees) {
			// The distance is log-uniform: most blocks are young when they end.
			uint64_t age = (UINT64_C(1) << next_random() % 24) % count;
			uint64_t at = count - 1 - age;

			event.kind = TRACE_FREE;
			event.address = blocks[at];
			event.size = 0;
			event.stack = 0;
			blocks[at] = blocks[--count];
		} else {
			event.kind = TRACE_MALLOC;
			event.address = 0x10000 + next++ % (UINT64_C(1) << 40) * 32;
			event.stack =
				met_stack(writer, met, next_random() % stacks, &stacks_met, depth);
			event.size = sizes[next_random() % 3];
			blocks[count++] = event.address;
		}
		writer_event(writer, &event);
	}
	writer_end(writer, &(struct trace_end){ .duration_ns = event.time_ns });
	if (!writer_ok(writer, &err))
		fail(err.text);
	writer_free(writer);
	mem_free(blocks);
	mem_free(met);
	return 0;
}

// ---- asking ----

static uint64_t status_kib(const char *word)
{
	FILE *file = fopen("/proc/self/status", "re");
	unsigned long long value = 0;
	char line[256];

	while (file && fgets(line, sizeof line, file))
		if (strncmp(line, word, strlen(word)) == 0)
			sscanf(line + strlen(word), ": %llu", &value);
	if (file)
		fclose(file);
	return value;
}

// Begin the high-water mark of resident memory anew.
static void forget_peak(void)
{
	int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && write(fd, "5", 1) < 0)
		fprintf(stderr, "window_bench: the peak cannot be reset\n");
	if (fd >= 0)
		close(fd);
}

static void each_file(const char *directory, void (*visit)(const char *path))
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	char path[4096];

	while (dir && (entry = readdir(dir))) {
		snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
		if (entry->d_name[0] != '.')
			visit(path);
	}
	if (dir)
		closedir(dir);
}

static void remove_file(const char *path)
{
	unlink(path);
}

static void drop_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	fdatasync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
}

struct asking {
	struct window *window;
	const char *index_path;
	uint64_t windows;
	uint32_t *group_of; // by stack: + 1
	uint32_t groups_count;
};

// Groups are numbered without gaps, as they are met.
static uint32_t by_stack(void *context, const struct window_cell *cell)
{
	struct asking *asking = context;

	if (!asking->group_of[cell->stack])
		asking->group_of[cell->stack] = ++asking->groups_count;
	return asking->group_of[cell->stack] - 1;
}

static struct window_query random_query(struct asking *asking)
{
	uint64_t end = window_facts(asking->window)->steps_end;
	uint64_t a = 1 + next_random() % end, b = 1 + next_random() % end;

	return (struct window_query){
		.from = a < b ? a : b, .to = a < b ? b : a, .group = by_stack, .context = asking
	};
}

// The 50 rows of the largest impact: their groups into `top`.
static uint32_t find_top(const struct window_result *result, uint32_t top[50])
{
	int64_t keys[50];
	uint32_t count = 0;

	for (uint32_t i = 0; i < result->rows_count; i++) {
		int64_t impact = window_impact(&result->rows[i]);
		uint32_t at;

		if (impact < 0)
			impact = -impact;
		if (count == 50 && impact <= keys[49])
			continue;
		at = count < 50 ? count++ : 49;
		for (; at > 0 && keys[at - 1] < impact; at--) {
			keys[at] = keys[at - 1];
			top[at] = top[at - 1];
		}
		keys[at] = impact;
		top[at] = i;
	}
	return count;
}

struct times {
	double list[1024];
	size_t count;
};

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void add_time(struct times *times, uint64_t began_ns)
{
	if (times->count < 1024)
		times->list[times->count++] = (double)(now_ns() - began_ns) / 1e6;
}

static void print_times(const char *what, struct times *times)
{
	qsort(times->list, times->count, sizeof *times->list, compare_doubles);
	if (times->count)
		printf("%-34s %8.1f %8.1f %8.1f %8.1f\n", what, times->list[times->count / 2],
		       times->list[times->count * 9 / 10], times->list[times->count * 99 / 100],
		       times->list[times->count - 1]);
	fflush(stdout);
}

struct measured {
	struct times rows, details, timeline, cells, of_stacks, of_sizes, lifetimes;
};

// Filters are groupings that leave out: every eighth stack; blocks of up to 1000 bytes.
static uint32_t by_some_stacks(void *context, const struct window_cell *cell)
{
	return cell->stack % 8 ? WINDOW_SKIP : by_stack(context, cell);
}

static const struct query_range small_sizes = { 0, 1000 };

static uint32_t by_small_sizes(void *context, const struct window_cell *cell)
{
	return cell->size > small_sizes.most ? WINDOW_SKIP : by_stack(context, cell);
}

static void ask_rows(struct asking *asking, struct window_query query, struct times *times)
{
	struct window_result result;
	struct err err = { 0 };
	uint64_t began = now_ns();

	if (!window_ask(asking->window, &query, &result, &err))
		fail(err.text);
	add_time(times, began);
	window_result_fini(&result);
}

static void ask_filtered(struct asking *asking, struct window_query query,
			 struct measured *measured)
{
	query.group = by_some_stacks;
	ask_rows(asking, query, &measured->of_stacks);
	query.by_size = true;
	query.group = by_small_sizes;
	query.sizes = &small_sizes;
	query.sizes_count = 1;
	ask_rows(asking, query, &measured->of_sizes);
	query.sizes_count = 0;
	query.group = by_stack;
	ask_rows(asking, query, &measured->cells);
	query.to = query.from + 20000000;
	query.by_size = false;
	query.lifetime_min_ns = 1000000;
	query.lifetime_max_ns = 100000000;
	if (query.to <= window_facts(asking->window)->steps_end && measured->lifetimes.count < 20)
		ask_rows(asking, query, &measured->lifetimes);
}

static void ask_one(struct asking *asking, bool cold, struct measured *measured)
{
	static struct window_bucket buckets[4000];
	struct window_query query = random_query(asking);
	struct window_detail details[50] = { 0 };
	struct window_result result;
	struct err err = { 0 };
	uint32_t top[50], count;
	uint64_t began;

	if (cold)
		each_file(asking->index_path, drop_file);
	began = now_ns();
	if (!window_ask(asking->window, &query, &result, &err))
		fail(err.text);
	count = find_top(&result, top);
	add_time(&measured->rows, began);
	window_result_fini(&result);
	for (uint32_t i = 0; i < count; i++)
		details[i].group = top[i];
	if (cold)
		each_file(asking->index_path, drop_file);
	query.peaks_only = true;
	began = now_ns();
	if (!window_detail(asking->window, &query, details, count, &err))
		fail(err.text);
	add_time(&measured->details, began);
	if (cold)
		each_file(asking->index_path, drop_file);
	began = now_ns();
	if (!window_timeline(asking->window, &query, buckets, 4000, &err))
		fail(err.text);
	add_time(&measured->timeline, began);
	if (!cold)
		ask_filtered(asking, query, measured);
}

static double cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6 +
	       (double)usage.ru_stime.tv_sec + (double)usage.ru_stime.tv_usec / 1e6;
}

static void hear(void *context, const char *text)
{
	(void)context;
	printf("%s\n", text);
}

static int ask(const char *path, uint64_t windows, uint64_t memory_mib, const char *index_path)
{
	// With $WINDOW_BENCH_KEEP the index that is there is used.
	bool keep = getenv("WINDOW_BENCH_KEEP") != NULL;
	struct window_options options = {
		.memory_bytes = memory_mib << 20, .keep = true, .rebuild = !keep, .say = hear
	};
	struct asking asking = { .windows = windows, .index_path = index_path };
	struct err err = { 0 };
	struct reader *reader = reader_open(path, &err);
	struct measured warm = { 0 }, cold = { 0 };
	const struct window_facts *facts;
	uint64_t began;
	double seconds, cpu;

	if (!reader)
		fail(err.text);
	reader_scan(reader);
	printf("%llu events, %u stacks; trace's definitions in memory: %llu MiB\n",
	       (unsigned long long)reader_stats(reader)->events, reader_stacks_count(reader),
	       (unsigned long long)status_kib("VmRSS") >> 10);
	if (!keep)
		each_file(index_path, remove_file);
	options.index_path = index_path;
	asking.group_of = mem_alloc(reader_stacks_count(reader) + (size_t)1, sizeof(uint32_t));
	forget_peak();
	began = now_ns();
	cpu = cpu_seconds();
	asking.window = window_open(path, reader, &options, &err);
	if (!asking.window)
		fail(err.text);
	seconds = (double)(now_ns() - began) / 1e9;
	facts = window_facts(asking.window);
	printf("index built in %.1f s (CPU %.1f s): %.1f M events/s, %.2f bytes an event, "
	       "peak %llu MiB; %llu sites, %llu cells\n",
	       seconds, cpu_seconds() - cpu, (double)reader_stats(reader)->events / seconds / 1e6,
	       (double)facts->index_bytes / (double)reader_stats(reader)->events,
	       (unsigned long long)status_kib("VmHWM") >> 10, (unsigned long long)facts->sites,
	       (unsigned long long)facts->cells);
	fflush(stdout);
	window_close(asking.window);
	options.rebuild = false;
	forget_peak();
	began = now_ns();
	asking.window = window_open(path, reader, &options, &err);
	printf("opened in %.1f ms\n", (double)(now_ns() - began) / 1e6);
	printf("%-34s %8s %8s %8s %8s\n", "ms", "median", "90 %", "99 %", "worst");
	for (uint64_t i = 0; i < windows; i++)
		ask_one(&asking, false, &warm);
	print_times("rows by stack, top 50", &warm.rows);
	print_times("rows of some stacks", &warm.of_stacks);
	print_times("rows of small blocks", &warm.of_sizes);
	print_times("rows by stack, from each size", &warm.cells);
	print_times("peaks of the 50", &warm.details);
	print_times("timeline of 4,000 buckets", &warm.timeline);
	print_times("lifetime filter, 20 M events", &warm.lifetimes);
	for (uint64_t i = 0; i < windows / 3; i++)
		ask_one(&asking, true, &cold);
	print_times("dropped from memory: rows", &cold.rows);
	print_times("dropped from memory: peaks", &cold.details);
	print_times("dropped from memory: timeline", &cold.timeline);
	printf("peak of memory while asking: %llu MiB\n",
	       (unsigned long long)status_kib("VmHWM") >> 10);
	window_close(asking.window);
	mem_free(asking.group_of);
	reader_close(reader);
	return 0;
}

int main(int argc, char **argv)
{
	char index_path[4096];

	if (argc == 5 && strcmp(argv[1], "repeat") == 0)
		return repeat(argv[2], strtoull(argv[3], NULL, 10), argv[4]);
	if ((argc == 6 || argc == 7) && strcmp(argv[1], "make") == 0)
		return make(strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10),
			    strtoull(argv[4], NULL, 10), argv[5],
			    argc > 6 ? strtoull(argv[6], NULL, 10) : 64);
	if (argc < 3 || strcmp(argv[1], "ask") != 0)
		fail("see its first comment");
	snprintf(index_path, sizeof index_path, "%s-index", argv[2]);
	return ask(argv[2], argc > 3 ? strtoull(argv[3], NULL, 10) : 60,
		   argc > 4 ? strtoull(argv[4], NULL, 10) : 256, argc > 5 ? argv[5] : index_path);
}
