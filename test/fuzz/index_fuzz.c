// A damaged window index: no crash, and no wrong number.
//
// The indexes of two small traces are made once, and what is found by a pass over all events is
// kept in them: what each trace adds up to (whole.h), and what findings has learned from the lives
// of blocks (findings_own.h). One has all that can be wrong with a trace (frees of nothing, blocks
// on blocks), the other nothing of it, so that its lives can be told (index_lives.h), but calls
// that fail and threads that share an arena.
//
// A third, longer than they are, has what is kept of lifetimes (index_sorted.h). A fourth takes a
// second, its sites grow in all ways that there are, and growth's answer is kept (growth.h).
//
// An input changes bytes of the files of one: bit 0 of the first byte says how they are believed,
// bit 1 which index it is, bit 2 that only what is kept is changed, and findings asked, bit 3 that
// lifetimes are changed, of the third, and asked, bit 4 that what is kept of growth is changed, of
// the fourth, and asked; then come changes of six bytes (file, place, new byte). As they are,
// checksums stop them: then an answer is the right one, or there is none. With checksums made right
// again the numbers may be anything, but reading them must hurt nobody.
#include "base/crc32c.h"
#include "base/mem.h"
#include "engine/index/index.h"
#include "engine/index/index_ask.h"
#include "engine/index/index_lives.h"
#include "engine/index/index_moment.h"
#include "engine/index/index_read.h"
#include "engine/index/index_sorted.h"
#include "engine/whole.h"
#include "engine/window.h"
#include "engine/window_series.h"
#include "report/find/findings.h"
#include "report/find/growth.h"
#include "trace/writer.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ADDRESS(place) (UINT64_C(0x10000) + (place)*UINT64_C(64))

enum {
	FILES_MAX = 64,
	QUERIES = 6,
	EVENTS = 1500,
	PLACES = 200, // of blocks
	STACKS = 9,
	BUCKETS = 9,
	GROUPS = 12,
	SCENES = 4,
	ORDERLY = 1, // of the scenes
	LIVED = 2,
	LIVED_EVENTS = 2500,
	GROWN = 3,
	GROWN_EVENTS = 600,
	GROWN_STEP_NS = 2000000,
	GROWN_SIZE = 2048,
	// The first byte of an input.
	BELIEVED = 1 << 0,
	SCENE = 1 << 1,
	FINDINGS = 1 << 2,
	LIFETIMES = 1 << 3,
	GROWTH = 1 << 4,
};

struct file {
	char name[32];
	uint8_t *bytes;
	size_t size;
};

// What is told of lives, as sums.
struct told {
	uint64_t begins, ends, overs, mix;
};

// What lifetimes are, as sums by the two threads, and as medians.
struct lived {
	uint64_t sums[INDEX_AGES_PARTS];
	struct window_detail details[STACKS + 1];
};

static struct scene {
	char folder[64], trace[96], index[96];
	struct reader *reader;
	struct index_identity identity;
	struct file files[FILES_MAX]; // the last two are what is kept
	unsigned files_count;
	uint64_t steps_end;
	struct window_result right[QUERIES];
	struct heap_totals right_totals;
	struct told right_lives; // of the orderly one
	char *right_findings;
	struct lived right_lived; // of the third
	char *right_growth;       // of the fourth
} scenes[SCENES], *scene;

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "index_fuzz: %s\n", what);
	abort();
}

static uint32_t by_stack(void *context, const struct window_cell *cell)
{
	(void)context;
	return cell->stack % STACKS;
}

static struct window_query query_of(unsigned i)
{
	uint64_t end = scene->steps_end;
	struct window_query query = { .from = 1 + end * i / 16,
				      .to = end - end * i / 9,
				      .group = by_stack,
				      .by_size = i % 2 == 1,
				      .exit_frees = i % 3 == 1 };

	if (i == 4)
		query.from = query.to;
	if (i == 5)
		query.lifetime_max_ns = 40000;
	return query;
}

// ---- the trace, and what is true of it ----

// Make an event one that fits to what lives: a free of nothing is an allocation, one where a block
// lives is its free, or now and then a realloc that moves it to a free place.
static void make_orderly(struct trace_event *event, bool *alive, uint64_t dice)
{
	unsigned place = (unsigned)(dice % PLACES), other = (place + 1) % PLACES;
	bool lives = alive[place];

	event->kind = lives ? TRACE_FREE : TRACE_MALLOC;
	alive[place] = !lives;
	if (lives && dice % 7 == 0 && !alive[other]) {
		event->kind = TRACE_REALLOC;
		event->old_address = event->address;
		event->address = ADDRESS(other);
		alive[other] = true;
	}
	if (event->kind == TRACE_FREE) {
		event->stack = 0;
		event->size = 0;
	} else {
		event->stack = 1 + (stack_id)(dice >> 20) % STACKS;
		event->size = 8 << (dice >> 50) % 4;
	}
}

// The first site grows all along, the second in the end, the third at first, the fourth at once.
static struct trace_event grown_event(unsigned number)
{
	unsigned third = GROWN_EVENTS / 3;
	unsigned stack = 1 + number % 4;

	if ((stack == 2 && number < 2 * third) || (stack == 3 && number > third) ||
	    (stack == 4 && number / 8 != third / 8))
		stack = 1;
	return (struct trace_event){ .time_ns = (uint64_t)number * GROWN_STEP_NS,
				     .kind = TRACE_MALLOC,
				     .stack = stack,
				     .address = ADDRESS(number * 32),
				     .size = stack == 1 ? GROWN_SIZE / 8 : GROWN_SIZE };
}

static void write_trace(bool orderly, bool grows, unsigned events)
{
	int fd = open(scene->trace, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	const struct trace_info info = {
		.tool = "", .host = "", .command = "", .directory = "", .options = ""
	};
	const struct trace_process process = {
		.parent = TRACE_NONE, .bits = 64, .start = TRACE_START_EXEC, .exe = "/bin/app"
	};
	struct err err = { 0 };
	struct writer *writer = writer_new(fd, &info, &err);
	const struct trace_vm vm = { .protection = 3, .flags = 0x22 };
	uint64_t dice = 88172645463325252u;
	bool alive[PLACES] = { false };

	must(writer != NULL, err.text);
	writer_add_process(writer, &process);
	writer_add_thread(writer, 0, 1, "main");
	if (orderly)
		writer_add_thread(writer, 0, 2, "other");
	for (uint32_t i = 1; i <= STACKS; i++)
		writer_add_stack(writer, i / 2, writer_add_frame(writer, 0, 0x400000 + i, 0), 0);
	for (unsigned i = 0; i < events; i++) {
		struct trace_event event = { .time_ns = i / 3 * 1000, .kind = TRACE_FREE };

		dice ^= dice << 13;
		dice ^= dice >> 7;
		dice ^= dice << 17;
		event.address = ADDRESS(dice % PLACES);
		if (dice >> 40 & 1) {
			event.kind = TRACE_MALLOC;
			event.stack = 1 + (stack_id)(dice >> 20) % STACKS;
			event.size = 8 << (dice >> 50) % 4;
		}
		if (grows) {
			event = grown_event(i);
		} else if (i % 50 == 7) {
			event.kind = i % 100 == 7 ? TRACE_MMAP : TRACE_MUNMAP;
			event.address &= ~(uint64_t)4095;
			event.size = 0x3000;
			event.vm = &vm;
		} else if (orderly && i == 0) {
			event.kind = TRACE_BRK;
			event.old_address = ADDRESS(0);
			event.address = ADDRESS(PLACES);
			event.vm = &vm;
		} else if (orderly && i % 50 == 9) {
			event = (struct trace_event){ .time_ns = event.time_ns,
						      .kind = TRACE_FAILED,
						      .stack = 1 + i % STACKS,
						      .size = UINT64_C(1) << 60 };
		} else if (orderly) {
			make_orderly(&event, alive, dice);
			event.thread = dice >> 30 & 1;
		}
		writer_event(writer, &event);
	}
	writer_end(writer, &(struct trace_end){ .duration_ns = (uint64_t)events *
							       (grows ? GROWN_STEP_NS : 1000) });
	must(writer_ok(writer, &err), err.text);
	writer_free(writer);
	close(fd);
}

// What is kept by those who ask comes last.
static int compare_files(const void *a, const void *b)
{
	const struct file *x = a, *y = b;
	bool x_last = strcmp(x->name, "lives") == 0, y_last = strcmp(y->name, "lives") == 0;

	return x_last != y_last ? x_last - y_last : strcmp(x->name, y->name);
}

// In the order of their names, so that an input means the same everywhere.
static void load_files(void)
{
	DIR *dir = opendir(scene->index);
	struct dirent *entry;
	struct err err = { 0 };
	char path[160];

	while ((entry = readdir(dir)) && scene->files_count < FILES_MAX) {
		struct file *file = &scene->files[scene->files_count];
		struct file_view view;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(file->name, sizeof file->name, "%.31s", entry->d_name);
		snprintf(path, sizeof path, "%s/%s", scene->index, file->name);
		must(file_view_open(&view, path, &err), err.text);
		file->bytes = (uint8_t *)mem_copy_bytes(view.bytes, view.size);
		file->size = view.size;
		file_view_close(&view);
		if (file->size > 0)
			scene->files_count++;
		else
			mem_free(file->bytes);
	}
	closedir(dir);
	qsort(scene->files, scene->files_count, sizeof *scene->files, compare_files);
	must(strcmp(scene->files[scene->files_count - 2].name, "whole") == 0 &&
		     strcmp(scene->files[scene->files_count - 1].name, "lives") == 0,
	     "something is not kept");
}

// ---- lives ----

static bool is_known(const struct lives_block *block)
{
	return reader_process(scene->reader, block->process) &&
	       reader_stack(scene->reader, block->stack);
}

static void mix(struct told *told, const struct lives_block *block)
{
	must(is_known(block), "a life of nobody");
	told->mix = told->mix * 31 + block->address + block->size + block->number + block->stack;
}

static void told_begin(void *context, const struct lives_block *block)
{
	struct told *told = context;

	told->begins++;
	mix(told, block);
}

static void told_end(void *context, const struct lives_block *block, const struct lives_end *end)
{
	struct told *told = context;

	(void)end;
	told->ends++;
	mix(told, block);
}

static void told_over(void *context, process_id process)
{
	struct told *told = context;

	(void)process;
	told->overs++;
}

static bool tell_lives(struct index *index, struct told *told)
{
	const struct lives_watcher watcher = { .begin = told_begin,
					       .end = told_end,
					       .context = told };
	struct err err = { 0 };

	*told = (struct told){ 0 };
	return index_lives_knows(index) &&
	       index_lives(index, scene->reader, &watcher, told_over, NULL, &err);
}

static void learn_lives(void)
{
	struct index index;
	struct err err = { 0 };

	must(index_open(&index, scene->index, &scene->identity, scene->reader, &err), err.text);
	must(tell_lives(&index, &scene->right_lives) == (scene != &scenes[0]),
	     "not the trace that it should be");
	index_close(&index);
}

// ---- lifetimes ----

static void add_lived(void *context, unsigned part, const struct window_lived *lived)
{
	struct lived *sums = context;
	uint64_t sum = lived->never * 3 + lived->none * 5;

	for (size_t i = 0; i < lived->count; i++)
		sum += lived->ns[i] * 7 + 1;
	sums->sums[part] += sum * (lived->size + lived->group);
}

// False: not from what is kept.
static bool ask_lived(struct index *index, struct lived *lived)
{
	const struct window_query query = { .from = WINDOW_START,
					    .to = scene->steps_end,
					    .group = by_stack };
	struct index_clock clock = { 0 };
	struct err err = { 0 };
	bool known, good;

	*lived = (struct lived){ 0 };
	for (uint32_t i = 0; i < STACKS; i++)
		lived->details[i].group = i;
	lived->details[STACKS].group = WINDOW_SKIP;
	good = index_detail(index, &clock, &query, lived->details, STACKS + 1, &err);
	good = index_lived(index, &query, add_lived, lived, &known, &err) && good && known;
	lived->sums[0] += lived->sums[1];
	lived->sums[1] = 0;
	index_clock_fini(&clock);
	return good;
}

static void learn_lived(void)
{
	struct index index;
	struct err err = { 0 };

	must(index_open(&index, scene->index, &scene->identity, scene->reader, &err), err.text);
	must(ask_lived(&index, &scene->right_lived), "no lifetimes are kept");
	must(scene->right_lived.details[STACKS].lifetimes > 0, "nothing has ended");
	index_close(&index);
}

// True: it was not counted now.
static bool read_whole(struct whole *whole, bool walks)
{
	const struct window_options window = { .index_path = scene->index };

	whole_read(whole, scene->reader,
		   &(struct whole_wish){
			   .trace_path = scene->trace, .window = &window, .walks = walks });
	return whole->kept;
}

// The scene's trace, with its index as it is now, all of it.
static void open_question(struct query_context *asked)
{
	static const struct selection_words no_words;
	const struct query_context_options options = {
		.rules = &query_context_findings_rules,
		.path = scene->trace,
		.words = &no_words,
		.window = { .index_path = scene->index, .always = true },
	};
	struct err err = { 0 };

	must(query_context_open(asked, &options, &err), err.text);
}

// As JSON; the caller frees it. NULL: it cannot be said.
static char *read_findings(void)
{
	struct query_context asked;
	struct findings findings;
	const struct findings_page page = { .findings = &findings };
	struct str text = { 0 };
	struct sink sink = sink_to_str(&text);
	struct err err = { 0 };
	bool good;

	open_question(&asked);
	good = findings_find(&findings, &asked, &err);
	if (good) {
		findings_json(&page, &sink, &err);
		findings_fini(&findings);
	}
	query_context_close(&asked);
	return good ? str_take(&text) : NULL;
}

// What growth says, as JSON and for people; the caller frees it.
static char *read_growth(void)
{
	struct query_context asked;
	struct growth growth;
	const struct growth_page page = { .asked = &asked, .growth = &growth, .width = 100 };
	struct str text = { 0 };
	struct sink sink = sink_to_str(&text);
	struct err err = { 0 };

	open_question(&asked);
	if (growth_find(&growth, &asked, &(struct growth_options){ .keep = true }, &err)) {
		growth_json(&page, &sink);
		growth_text(&page, &sink);
		growth_fini(&growth);
	}
	query_context_close(&asked);
	return str_take(&text);
}

static void learn_growth(void)
{
	static const char *const verdicts[] = { "GROWING  ", "GROWING LATELY", "LEVELLING OFF",
						"IN STEPS" };
	char *again;

	scene->right_growth = read_growth();
	for (unsigned i = 0; i < 4; i++)
		must(strstr(scene->right_growth, verdicts[i]) != NULL, verdicts[i]);
	again = read_growth();
	must(strcmp(again, scene->right_growth) == 0, "another growth");
	mem_free(again);
}

static void set_scene(unsigned number)
{
	struct err err = { 0 };
	struct window *window;
	struct whole whole;

	scene = &scenes[number];
	snprintf(scene->folder, sizeof scene->folder, "/tmp/index_fuzz.%d.%u", (int)getpid(),
		 number);
	snprintf(scene->trace, sizeof scene->trace, "%s/t.tide", scene->folder);
	snprintf(scene->index, sizeof scene->index, "%s/index", scene->folder);
	must(mkdir(scene->folder, 0700) == 0, "no folder");
	write_trace(number >= ORDERLY, number == GROWN,
		    number == LIVED   ? LIVED_EVENTS
		    : number == GROWN ? GROWN_EVENTS
				      : EVENTS);
	scene->reader = reader_open(scene->trace, &err);
	must(scene->reader != NULL, err.text);
	reader_scan(scene->reader);
	must(index_identify(&scene->identity, scene->trace, scene->reader, UINT64_MAX, &err),
	     err.text);
	setenv("TIDEMARK_INDEX", "tiny", 1);
	window = window_open(scene->trace, scene->reader,
			     &(struct window_options){ .index_path = scene->index }, &err);
	must(window != NULL, err.text);
	scene->steps_end = window_facts(window)->steps_end;
	for (unsigned i = 0; i < QUERIES; i++) {
		struct window_query query = query_of(i);

		must(window_ask(window, &query, &scene->right[i], &err), err.text);
	}
	window_close(window);
	must(!read_whole(&whole, false), "there is one already");
	scene->right_totals = *heap_totals(whole.heap);
	whole_fini(&whole);
	must(read_whole(&whole, false), "it was not kept");
	whole_fini(&whole);
	learn_lives();
	if (number == LIVED)
		learn_lived();
	if (number == GROWN)
		learn_growth();
	scene->right_findings = read_findings();
	must(scene->right_findings != NULL, "no findings");
	load_files();
}

static void leave_scenes(void)
{
	char command[128];

	for (unsigned i = 0; i < SCENES; i++) {
		snprintf(command, sizeof command, "rm -rf %.63s", scenes[i].folder);
		must(system(command) == 0, "the folder stays");
	}
}

// ---- one input ----

static void store(const struct file *file, const uint8_t *bytes)
{
	char path[160];
	int fd;

	snprintf(path, sizeof path, "%s/%s", scene->index, file->name);
	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	must(write(fd, bytes, file->size) == (ssize_t)file->size, "cannot write");
	close(fd);
}

static bool is_of_lifetimes(const struct file *file)
{
	return strcmp(file->name, "sorted") == 0 || strcmp(file->name, "sorted-head") == 0;
}

static unsigned lifetimes_file(uint8_t number)
{
	for (unsigned i = 0; i < scene->files_count; i++)
		if (is_of_lifetimes(&scene->files[i]) && number-- % 2 == 0)
			return i;
	return 0;
}

static unsigned growth_file(void)
{
	for (unsigned i = 0; i < scene->files_count; i++)
		if (strcmp(scene->files[i].name, "growth") == 0)
			return i;
	must(false, "growth is not kept");
	return 0;
}

// The one that a change is of.
static unsigned changed_file(uint8_t number, bool kept)
{
	if (scene == &scenes[LIVED])
		return lifetimes_file(number % 2);
	if (scene == &scenes[GROWN])
		return growth_file();
	return kept ? scene->files_count - 1 - number % 2 : number % (scene->files_count - 1);
}

// Pages of `sorted` are believed if the head says what their checksums are, so it says so.
static void believe_sorted(uint8_t *head, size_t head_size, const struct file *file,
			   const uint8_t *bytes)
{
	for (size_t at = 0; at < file->size; at += VAULT_PAGE) {
		size_t size = file->size - at < VAULT_PAGE ? file->size - at : VAULT_PAGE;
		uint32_t old = crc32c(0, file->bytes + at, size), crc = crc32c(0, bytes + at, size);

		for (size_t i = 0; i + sizeof old <= head_size; i += sizeof old)
			if (memcmp(head + i, &old, sizeof old) == 0)
				memcpy(head + i, &crc, sizeof crc);
	}
}

// Write the files with the changes that concern each.
static void change_files(const uint8_t *data, size_t size, bool right_sums, bool kept)
{
	const struct file *pages = NULL;
	uint8_t *pages_bytes = NULL;

	for (unsigned i = 0; i < scene->files_count; i++) {
		const struct file *file = &scene->files[i];
		uint8_t *bytes = (uint8_t *)mem_copy_bytes(file->bytes, file->size);

		if (pages && right_sums && strcmp(file->name, "sorted-head") == 0)
			believe_sorted(bytes, file->size, pages, pages_bytes);
		for (size_t at = 0; at + 6 <= size; at += 6) {
			uint32_t place;

			memcpy(&place, data + at + 1, 4);
			if (changed_file(data[at], kept) == i)
				bytes[place % file->size] = data[at + 5];
		}
		if (right_sums &&
		    (strcmp(file->name, "head") == 0 || strcmp(file->name, "sorted-head") == 0 ||
		     strcmp(file->name, "whole") == 0 || strcmp(file->name, "lives") == 0 ||
		     strcmp(file->name, "growth") == 0)) {
			uint32_t crc = crc32c(0, bytes, file->size - 4);

			memcpy(bytes + file->size - 4, &crc, 4);
		}
		store(file, bytes);
		if (strcmp(file->name, "sorted") == 0) {
			pages = file;
			pages_bytes = bytes;
		} else {
			mem_free(bytes);
		}
	}
	mem_free(pages_bytes);
}

// What its pages are is what they should be.
static void believe(struct vault *vault)
{
	uint8_t *page = mem_alloc(1, VAULT_PAGE);

	for (size_t i = 0; vault->fd > 0 && i < vault->sums_count; i++) {
		ssize_t got = pread(vault->fd, page, VAULT_PAGE, (off_t)(i * VAULT_PAGE));
		uint64_t left = vault->size - i * VAULT_PAGE;

		if (got > 0)
			vault->sums[i] =
				crc32c(0, page, left < (uint64_t)got ? (size_t)left : (size_t)got);
	}
	mem_free(page);
}

static bool any(void *context, const struct window_allocation *allocation)
{
	(void)allocation;
	return ++*(unsigned *)context < 100000;
}

static bool any_change(void *context, const struct window_change *change)
{
	(void)change;
	return ++*(unsigned *)context < 100000;
}

// Every question, whatever the answers are.
static void ask_all(struct index *index)
{
	struct window_bucket buckets[BUCKETS * GROUPS];
	struct window_flow flows[BUCKETS * GROUPS];
	struct heap_amount classes[GROUPS * WINDOW_LIFETIME_CLASSES];
	const struct window_sums series = { GROUPS, BUCKETS, .buckets = buckets };
	const struct window_sums flowing = { GROUPS, BUCKETS, .flows = flows };
	const struct window_sums ages = { GROUPS, WINDOW_LIFETIME_CLASSES, .classes = classes };
	struct index_clock clock = { 0 };
	struct index_block numbers = { 0 };

	for (unsigned i = 0; i < QUERIES; i++) {
		struct window_query query = query_of(i);
		struct window_detail details[3] = { { 0 }, { .group = 1 }, { .group = 2 } };
		struct window_result result = { 0 };
		struct err err = { 0 };
		unsigned count = 0;
		uint64_t number;

		query.to_ns = EVENTS * 1000;
		index_ask(index, &query, &result, &err);
		window_result_fini(&result);
		index_detail(index, &clock, &query, details, 3, &err);
		index_walk(index, &clock, &query, any, &count, NULL, &err);
		index_timeline(index, &query, &series, &err);
		index_series(index, &clock, &query, &series, &err);
		memset(flows, 0, sizeof flows);
		index_flows(index, &clock, &query, &flowing, &err);
		index_changes(index, &query, any_change, &count, &err);
		memset(classes, 0, sizeof classes);
		index_lifetimes(index, &clock, &query, &ages, &err);
		index_number(index, &numbers, query.from, &number, &err);
	}
	index_clock_fini(&clock);
	index_block_fini(&numbers);
}

static void pass_block(void *context, const struct present_block *block)
{
	(void)context;
	(void)block;
}

static void ask_moments(struct index *index)
{
	for (unsigned i = 0; i < QUERIES; i++) {
		struct present_options options = {
			.at_exit = i == 0,
			.inherits = TRACE_NONE,
			.undated = i % 2,
			.edge = { .time_ns = EVENTS * 1000 / (i + 1),
				  .number = EVENTS / (i + 1),
				  .exact = i % 3 == 1 },
		};
		struct err err = { 0 };
		struct present *present = index_moment(index, scene->reader, &options, &err);

		if (present)
			present_each_block(present, 0, PRESENT_ALL, pass_block, NULL);
		present_free(present);
	}
}

static void use_believed(void)
{
	struct index index;
	struct err err = { 0 };
	struct told told;
	char name[24];

	if (index_open(&index, scene->index, &scene->identity, scene->reader, &err)) {
		for (unsigned i = 0; i < INDEX_VAULTS; i++)
			believe(index_files_vault(&index.files, i, name));
		ask_all(&index);
		ask_moments(&index);
		tell_lives(&index, &told);
	}
	index_close(&index);
}

// The same, one by one.
static void walk_whole(const struct heap_site *sites, size_t count)
{
	struct whole whole;
	struct whole_walk walk;

	read_whole(&whole, true);
	must(whole_sites_count(&whole) == count, "another number of sites");
	walk = whole_walk(&whole, WHOLE_ALL);
	while (whole_walk_next(&walk)) {
		const struct heap_site *site = &sites[walk.number];

		must(walk.site->process == site->process && walk.site->stack == site->stack &&
			     walk.site->allocated.bytes == site->allocated.bytes &&
			     walk.site->at_peak.bytes == site->at_peak.bytes &&
			     walk.site->largest_bytes == site->largest_bytes &&
			     walk.site->last_ns == site->last_ns,
		     "another site");
	}
	whole_fini(&whole);
}

// Whatever its numbers are, they belong to processes and stacks that there are.
static void use_whole(bool right)
{
	struct whole whole;
	const struct heap_site *sites;
	size_t count;

	read_whole(&whole, false);
	sites = heap_sites(whole.heap, &count);
	for (size_t i = 0; i < count; i++)
		must(reader_process(scene->reader, sites[i].process) &&
			     reader_stack(scene->reader, sites[i].stack),
		     "a site of nobody");
	must(heap_process(whole.heap, 0) != NULL, "no process");
	if (right)
		must(memcmp(heap_totals(whole.heap), &scene->right_totals,
			    sizeof scene->right_totals) == 0,
		     "a wrong total");
	walk_whole(sites, count);
	whole_fini(&whole);
}

// With the files as they are it is what was found at first, whatever has happened to what was kept.
static void use_findings(bool right)
{
	char *text = read_findings();

	must(text != NULL, "no findings");
	if (right)
		must(strcmp(text, scene->right_findings) == 0, "a wrong finding");
	mem_free(text);
}

static void use_as_it_is(void)
{
	struct index index;
	struct err err = { 0 };
	bool open = index_open(&index, scene->index, &scene->identity, scene->reader, &err);
	struct told told;

	for (unsigned i = 0; i < QUERIES && open; i++) {
		struct window_query query = query_of(i);
		struct window_result result = { 0 };

		if (index_ask(&index, &query, &result, &err))
			must(memcmp(&result.total, &scene->right[i].total, sizeof result.total) ==
				     0,
			     "a wrong number");
		window_result_fini(&result);
	}
	if (open && tell_lives(&index, &told))
		must(memcmp(&told, &scene->right_lives, sizeof told) == 0, "a wrong life");
	index_close(&index);
}

// Damaged, it is not used: the answers are the same.
static void use_lived(bool right)
{
	struct index index;
	struct err err = { 0 };
	struct lived lived;

	if (index_open(&index, scene->index, &scene->identity, scene->reader, &err)) {
		bool known = ask_lived(&index, &lived);

		if (right)
			must(memcmp(lived.details, scene->right_lived.details,
				    sizeof lived.details) == 0,
			     "a wrong median");
		if (right && known)
			must(lived.sums[0] == scene->right_lived.sums[0], "a wrong lifetime");
	}
	index_close(&index);
}

static void use_growth(bool right)
{
	char *text = read_growth();

	must(text && *text, "no growth");
	if (right)
		must(strcmp(text, scene->right_growth) == 0, "another growth");
	mem_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!scene) {
		for (unsigned i = 0; i < SCENES; i++)
			set_scene(i);
		atexit(leave_scenes);
	}
	if (size < 7)
		return 0;
	scene = &scenes[data[0] & GROWTH      ? GROWN
			: data[0] & LIFETIMES ? LIVED
			: data[0] & SCENE     ? 1
					      : 0];
	change_files(data + 1, size - 1, data[0] & BELIEVED, data[0] & FINDINGS);
	if (data[0] & GROWTH)
		use_growth(!(data[0] & BELIEVED));
	else if (data[0] & LIFETIMES)
		use_lived(!(data[0] & BELIEVED));
	else if (data[0] & FINDINGS)
		use_findings(!(data[0] & BELIEVED));
	else if (data[0] & BELIEVED)
		use_believed();
	else
		use_as_it_is();
	use_whole(!(data[0] & BELIEVED));
	return 0;
}
