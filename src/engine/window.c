// The front of three machines: a list of lifetimes (plain.c), an index, and for virtual memory
// always a list, since a program maps far less often than it allocates.
//
// A trace of up to 65,536 events is paired into a list when it is opened, and each question goes
// through that. For a longer one the index is opened, or built if it is missing: one process
// builds, others wait for its lock and find it done. Whatever answers, a question has edges that
// are in the trace and layers; heap figures and those of virtual memory add up (ask_sums), but for
// peaks of one group that has both, whose sum is the best there is (merge_detail).
//
// For example, levels by stack in 100 buckets of a trace of ten million events, of all layers:
//
//     begin        edges into the trace; no filter by lifetime: the index answers
//     index_series fills items[group * 100 + bucket] for the heap
//     plain_series fills a second array of the same form from the list of mappings
//     ask_sums     adds the second to the first, number by number
//
// With --lifetime the index has no sums that help: begin collects the lifetimes of the window into
// a list first, and plain_series is asked for both.
//
// A damaged index is found out by a question. It is marked as unusable, the question ends with
// ERR_INDEX, and the next opening builds it anew: a command is run once more (cli/main.c).
#include "engine/window.h"

#include "base/mem.h"
#include "base/rising.h"
#include "base/str.h"
#include "engine/index/index_ask.h"
#include "engine/index/index_disk.h"
#include "engine/index/index_lives.h"
#include "engine/index/index_moment.h"
#include "engine/index/index_plateau.h"
#include "engine/index/index_sorted.h"
#include "engine/index/index_tables.h"
#include "engine/index/plain.h"
#include "engine/index/spill.h"
#include "engine/window_series.h"
#include "engine/window_source.h"
#include "engine/window_weigh.h"
#include "os/file.h"
#include "os/tool.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(struct window_bucket) % sizeof(uint64_t) == 0,
	       "sums are added number by number");
_Static_assert(sizeof(struct window_flow) % sizeof(uint64_t) == 0, "the same");
_Static_assert(sizeof(struct heap_amount) == 2 * sizeof(uint64_t), "the same");

enum {
	MEMORY_DEFAULT = 256 << 20,
	MEMORY_LEAST = 32 << 20,
	TABLES_EIGHTHS = 3,     // of a question's memory: large tables, used and kept
	PLAIN_EVENTS = 1 << 16, // traces up to this need no index
	PLAIN_REST = 32 << 20,  // what is not lifetimes
};

struct window {
	struct reader *reader; // borrowed
	bool shares;           // heap, own_vm, steps and index are another window's
	bool keeps;            // tables of one question for the next
	bool plain;            // answers come from `heap`, not from `index`
	struct plain heap;     // layer WINDOW_HEAP
	struct plain own_vm;   // layer WINDOW_VM, where there is no index
	struct plain *vm;      // that, or the index's
	struct plain_steps steps;
	struct index index;
	char *index_path; // for messages; where it is shared, borrowed; NULL: there is none
	struct index_clock clock;
	struct index_block numbers; // of the events of the steps that were asked for last
	struct window_facts facts;
	struct err err; // of a place that could not be found: all questions fail
};

// ---- opening ----

uint64_t window_memory_of(const struct window_options *options)
{
	return options->memory_bytes ? options->memory_bytes : MEMORY_DEFAULT;
}

// Stacks and kinds of allocations are in memory, and are as many as they are: where no limit was
// given, they may have a quarter of what there is.
static uint64_t memory_most(const struct window_options *options)
{
	uint64_t quarter = mem_of_machine() / 4;

	return options->memory_bytes || quarter < MEMORY_DEFAULT ? window_memory_of(options)
								 : quarter;
}

// What has been read of a trace is asked for its size now and then. The definitions, and what
// follows from the number of blocks that live, have PLAIN_REST.
struct plain_opening {
	const struct window *window;
	const struct window_options *options;
	bool full;
};

static bool plain_stops(void *context)
{
	struct plain_opening *opening = context;
	const struct window_options *options = opening->options;
	uint64_t bytes = plain_bytes(&opening->window->heap, &opening->window->steps);
	uint64_t most = window_memory_of(options);

	most = most > 2 * PLAIN_REST ? most - PLAIN_REST : PLAIN_REST;
	opening->full = bytes > most;
	return opening->full || (options->stop && options->stop(options->context));
}

// Steps are as good as events here: nearly each event is one.
static bool refuse_plain(const struct window *window, const struct window_options *options,
			 struct err *err)
{
	double more = (double)reader_stats(window->reader)->events / (double)window->steps.count;
	uint64_t bytes = (uint64_t)((double)plain_bytes(&window->heap, &window->steps) * more);

	ASSERT(window->steps.count > 0); // plain_build's first
	bytes += PLAIN_REST;
	return err_set(err, ERR_LIMIT,
		       "all lifetimes in memory, as TIDEMARK_INDEX=never has them, take some %s, "
		       "more than %s (try: without it, or --memory %lluM)",
		       STR_BYTES(bytes), STR_BYTES(window_memory_of(options)),
		       (unsigned long long)((bytes + bytes / 8) >> 20));
}

// Of a small trace, or where no index is wished for, all lifetimes are in memory, and no index is
// made or looked for.
static bool open_plain(struct window *window, const struct window_options *options, struct err *err)
{
	struct plain_opening opening = { .window = window, .options = options };
	struct progress progress;
	bool built;

	ASSERT(!window->shares);
	progress_begin(&progress, options->progress, "pairing", reader_bytes(window->reader));
	built = plain_build(&window->heap, &window->own_vm, &window->steps, window->reader,
			    &progress, plain_stops, &opening);
	progress_end(&progress);
	if (opening.full)
		return refuse_plain(window, options, err);
	if (!built)
		return err_set(err, ERR_STOPPED, "interrupted");
	window->vm = &window->own_vm;
	window->facts = (struct window_facts){
		.steps_end = window->steps.count,
		.duration_ns = window->heap.duration_ns,
		.calls = window->steps.calls,
		.orphans = window->heap.orphans_count,
		.inherited = window->steps.inherited,
		.lost = window->steps.lost,
		.cells = window->heap.cells_count,
		.sites = window->heap.cells_count,
		.layers = window->heap.cells_count ? WINDOW_HEAP : 0,
		.memory_bytes = window_memory_of(options),
	};
	window->facts.peak[WINDOW_HEAP] =
		plain_peak(&window->heap, WINDOW_HEAP, &window->facts.peak_edge[WINDOW_HEAP]);
	return true;
}

// Less is refused whether the index is there or not, so that an answer does not hang on that.
static bool check_memory(const struct window_options *options, struct err *err)
{
	return window_memory_of(options) >= MEMORY_LEAST ||
	       err_set(err, ERR_LIMIT,
		       "an index needs at least %d MiB of memory (try: --memory %dM)",
		       MEMORY_LEAST >> 20, MEMORY_LEAST >> 20);
}

// How much of a trace was read, per mille.
static unsigned share_read(const struct reader *reader)
{
	uint64_t bytes = reader_bytes(reader);

	return bytes ? (unsigned)(reader_position(reader) * 1000 / bytes) : 0;
}

// If it fails, the error also says where the index was to be and what does without it
// (window_source_fail).
// What was read of a trace that is being written is what the index is of: `identity`.
static bool build_index(struct reader *reader, const char *path, const char *trace_path,
			const struct window_options *options, bool (*more)(void *context),
			struct index_identity *identity, struct err *err)
{
	struct index_wish wish = { .memory_bytes = window_memory_of(options),
				   .memory_most = memory_most(options),
				   .progress = options->progress,
				   .stop = options->stop,
				   .say = options->say,
				   .more = more,
				   .context = options->context,
				   .anew = options->rebuild };
	enum window_source_wish when;

	if (!check_memory(options, err))
		return false;
	if (!window_source_wish(&when, err))
		return false;
	wish.shape = when == WINDOW_SOURCE_TINY ? index_shape_tiny
						: index_shape_for(wish.memory_bytes);
	if (index_build(path, trace_path, reader, &wish, identity, err))
		return true;
	window_source_fail(path, share_read(reader), err);
	return false;
}

// With what its build found wrong with the trace.
static bool open_knowing(struct window *window, const char *path,
			 const struct index_identity *identity, struct err *err)
{
	if (!index_open(&window->index, path, identity, window->reader, err))
		return false;
	reader_know_damage(window->reader, &window->index.damage);
	return true;
}

// Neither beside the trace nor in the cache an index can be made, as *err says: it is made in
// `folder`, a temporary one, which is gone once its files are open.
static bool find_temporary(struct window *window, struct str *folder, const char *trace_path,
			   struct index_identity *identity, const struct window_options *options,
			   struct err *err)
{
	struct str text = { 0 };
	bool ok;

	str_format(&text, "%s: the index is made in %s, for this command alone", err->text,
		   str_get(folder));
	if (options->say)
		options->say(options->context, str_get(&text));
	str_fini(&text);
	*err = (struct err){ 0 };
	ok = build_index(window->reader, str_get(folder), trace_path, options, NULL, identity,
			 err) &&
	     open_knowing(window, str_get(folder), identity, err);
	index_disk_remove(str_get(folder));
	tool_folder_leave(folder);
	return ok;
}

// Open the index, or build it and open it. Only one process builds at a time; another waits, and
// mostly finds it done.
static bool find_index(struct window *window, const char *path, const char *trace_path,
		       struct index_identity *identity, const struct window_options *options,
		       struct err *err)
{
	struct err why = { 0 }, ignored = { 0 };
	struct str folder = { 0 };
	int lock;
	bool ok;

	if (!check_memory(options, err))
		return false;
	if (!options->rebuild && open_knowing(window, path, identity, &why))
		return true;
	index_close(&window->index);
	if (options->existing)
		return err_set(err, ERR_FORMAT, "there is no index");
	if (!options->rebuild && why.kind == ERR_IO) {
		*err = why;
		return false;
	}
	if (!window_source_lock(path, trace_path, options, &lock, err)) {
		if (err->kind == ERR_IO && !options->index_path && tool_folder(&folder, &ignored))
			return find_temporary(window, &folder, trace_path, identity, options, err);
		window_source_fail(path, 0, err);
		return false;
	}
	ok = !options->rebuild && open_knowing(window, path, identity, &why);
	if (!ok) {
		index_close(&window->index);
		ok = build_index(window->reader, path, trace_path, options, NULL, identity, err) &&
		     open_knowing(window, path, identity, err);
	}
	window_source_unlock(lock);
	return ok;
}

// A recording may not have begun yet: then there is no trace, and `more` is asked until there is.
// An index of a trace that is being written is continued as long as `more` says so.
bool window_follow(const char *trace_path, const struct window_options *options,
		   bool (*more)(void *context), struct err *err)
{
	struct reader *reader = reader_open(trace_path, err);
	struct index_identity built;
	bool ok, cached = false;
	char *path;
	int lock;

	while (!reader && !(options->stop && options->stop(options->context)) &&
	       more(options->context)) {
		*err = (struct err){ 0 };
		reader = reader_open(trace_path, err);
	}
	if (!reader)
		return false;
	reader_scan(reader);
	path = options->index_path
		       ? mem_copy_text(options->index_path)
		       : window_source_path(trace_path, reader_info(reader)->recording_id, &cached);
	ok = window_source_lock(path, trace_path, options, &lock, err);
	if (ok) {
		ok = build_index(reader, path, trace_path, options, more, &built, err);
		window_source_unlock(lock);
	}
	mem_free(path);
	reader_close(reader);
	return ok;
}

// False: what it has in memory anyway does not fit. More than is usual is said.
static bool find_memory(const struct window *window, const struct window_options *options,
			uint64_t *memory_bytes, struct err *err)
{
	uint64_t stacks = reader_stacks_count(window->reader) - UINT64_C(1);
	uint64_t kinds = window->index.cells.cells_count - UINT64_C(1);
	uint64_t need = index_memory_need(stacks, window->index.cells.sites_count - UINT64_C(1),
					  cells_of_one_process(&window->index.cells), kinds);
	struct str text = { 0 };

	ASSERT(!window->plain && memory_most(options) >= window_memory_of(options));
	*memory_bytes = window_memory_of(options);
	if (need <= *memory_bytes)
		return true;
	if (need > memory_most(options))
		return index_memory_refuse(memory_most(options), need, stacks, kinds, err);
	*memory_bytes = need;
	str_format(&text, "%s stacks and %s kinds of allocations take up to %s of memory",
		   STR_COUNT(stacks), STR_COUNT(kinds), STR_BYTES(need));
	if (options->say)
		options->say(options->context, str_get(&text));
	str_fini(&text);
	return true;
}

// The index that is there, if it is of this trace and whole; else it is made now. That what a
// question needs fits in memory is checked here, before the first one.
static bool open_index(struct window *window, const char *trace_path,
		       const struct window_options *options, struct err *err)
{
	const struct index *index = &window->index;
	struct index_identity identity;
	uint64_t cache_bytes, memory_bytes;
	bool ok, cached = false;
	char *path;

	ASSERT(!window->shares);
	if (!index_disk_limit(&cache_bytes, err) ||
	    !index_identify(&identity, trace_path, window->reader, UINT64_MAX, err))
		return false;
	path = options->index_path ? mem_copy_text(options->index_path)
				   : window_source_path(trace_path, identity.recording_id, &cached);
	// It may be of before, or the trace was closed since.
	if (!options->existing)
		file_share_folder(path, trace_path);
	ok = find_index(window, path, trace_path, &identity, options, err);
	if (ok && cached)
		index_disk_keep(path, cache_bytes);
	window->index_path = path;
	if (!ok)
		return false;
	window->keeps = options->keep;
	if (!find_memory(window, options, &memory_bytes, err))
		return false;
	window_memory(window, memory_bytes);
	window->vm = &window->index.vm;
	window->facts = (struct window_facts){
		.steps_end = index->steps_end,
		.duration_ns = index->duration_ns,
		.calls = index->calls,
		.orphans = index->orphans,
		.inherited = index->inherited,
		.lost = index->lost,
		.cells = index->cells.cells_count - 1,
		.sites = index->cells.sites_count - 1,
		.layers = index->cells.cells_count > 1 ? WINDOW_HEAP : 0,
		.index_bytes = index_bytes(index),
		.memory_bytes = memory_bytes,
	};
	window->facts.peak[WINDOW_HEAP] = index->peak;
	window->facts.peak_edge[WINDOW_HEAP] = index->peak_edge;
	return true;
}

// What the environment asks for, where the caller does not say.
static bool heed_wish(struct window_options *options, struct err *err)
{
	enum window_source_wish wish;

	if (!window_source_wish(&wish, err))
		return false;
	if (options->plain || options->index_path)
		return true;
	options->plain = wish == WINDOW_SOURCE_NEVER;
	options->always |= wish == WINDOW_SOURCE_ALWAYS || wish == WINDOW_SOURCE_TINY;
	return true;
}

// Without a wish of the caller's a trace of 65,536 events or fewer needs no index: pairing them all
// takes so little that a file beside the trace is not worth it.
static bool needs_none(const struct window_options *wanted, const struct reader *reader)
{
	return wanted->plain || (!wanted->index_path && !wanted->rebuild && !wanted->always &&
				 reader_stats(reader)->events <= PLAIN_EVENTS);
}

bool window_is_ready(const char *trace_path, struct reader *reader,
		     const struct window_options *options)
{
	struct window_options wanted = *options;
	struct index_identity identity;
	struct err ignored = { 0 };
	bool ready, cached;
	char *path;

	if (wanted.rebuild || !heed_wish(&wanted, &ignored))
		return false;
	reader_scan_heads(reader);
	if (needs_none(&wanted, reader))
		return true;
	if (!index_identify(&identity, trace_path, reader, UINT64_MAX, &ignored))
		return false;
	path = wanted.index_path ? mem_copy_text(wanted.index_path)
				 : window_source_path(trace_path, identity.recording_id, &cached);
	ready = index_is_of(path, &identity);
	mem_free(path);
	return ready;
}

struct window *window_open(const char *trace_path, struct reader *reader,
			   const struct window_options *options, struct err *err)
{
	struct window *window = mem_alloc(1, sizeof *window);
	struct window_options wanted = *options;
	bool ok;

	ASSERT(options);
	window->reader = reader;
	window->index.directory = -1;
	ok = heed_wish(&wanted, err);
	if (ok)
		reader_scan(reader);
	window->plain = ok && needs_none(&wanted, reader);
	if (ok && window->plain && wanted.existing)
		ok = err_set(err, ERR_FORMAT, "there is no index");
	if (ok)
		ok = window->plain ? open_plain(window, &wanted, err)
				   : open_index(window, trace_path, &wanted, err);
	if (!ok) {
		window_close(window);
		return NULL;
	}
	if (window->vm->lives_count > 0)
		window->facts.layers |= WINDOW_VM;
	window->facts.peak[WINDOW_VM] =
		plain_peak(window->vm, WINDOW_VM, &window->facts.peak_edge[WINDOW_VM]);
	return window;
}

void window_close(struct window *window)
{
	if (!window)
		return;
	index_clock_fini(&window->clock);
	index_block_fini(&window->numbers);
	if (!window->shares) {
		plain_fini(&window->heap);
		plain_fini(&window->own_vm);
		plain_steps_fini(&window->steps);
		index_close(&window->index);
		mem_free(window->index_path);
	}
	mem_free(window);
}

// All of it is only read once it is there; what is not are the clock, the numbers, the
// error and `stop`.
struct window *window_share(const struct window *window, struct reader *reader)
{
	struct window *other = mem_alloc(1, sizeof *other);

	ASSERT(window->vm);
	*other = *window;
	other->reader = reader;
	other->shares = true;
	other->vm = window->plain ? &other->own_vm : &other->index.vm;
	other->clock = (struct index_clock){ 0 };
	other->numbers = (struct index_block){ 0 };
	other->err = (struct err){ 0 };
	window_stop(other, NULL, NULL);
	return other;
}

void window_memory(struct window *window, uint64_t memory_bytes)
{
	window->index.memory_bytes = memory_bytes;
	window_tables(window, 1, 0);
}

void window_tables(struct window *window, unsigned asked, unsigned idle)
{
	uint64_t eighth = index_room(&window->index, 8, 1);

	if (window->keeps && window->index.tables)
		index_tables_limit(window->index.tables,
				   (TABLES_EIGHTHS * asked + UINT64_C(8) * idle) * eighth);
}

void window_drop_tables(struct window *window)
{
	index_tables_empty(window->index.tables);
}

void window_stop(struct window *window, bool (*stop)(void *context), void *context)
{
	window->index.stop = stop;
	window->index.context = context;
}

const struct window_facts *window_facts(const struct window *window)
{
	return &window->facts;
}

// A folder that cannot be written to, or is of another user, is no reason to refuse an answer.
bool window_spill(const struct window *window, struct spill *spill, size_t buffer_bytes,
		  struct err *err)
{
	struct err ignored = { 0 };

	return (window->index.directory > 0 &&
		spill_open(spill, window->index.directory, buffer_bytes, &ignored)) ||
	       spill_open_anywhere(spill, buffer_bytes, err);
}

// A question failed. An index that is damaged is not to be used again.
static bool failed(struct window *window, struct err *err)
{
	if (err->kind != ERR_FORMAT || !window->index_path)
		return false;
	index_forget(&window->index);
	err_wrap(err, "the index %s", window->index_path);
	err->kind = ERR_INDEX;
	return false;
}

// ---- moments ----

// NULL without an error of its own: the caller reads the trace instead. If that is because the
// index is damaged, the next opening builds it again.
struct present *window_source_moment(struct window *window, const struct present_options *options)
{
	struct err err = { 0 };
	struct present *present;

	if (window->plain || !index_moment_knows(&window->index, window->reader, options))
		return NULL;
	present = index_moment(&window->index, window->reader, options, &err);
	if (!present)
		failed(window, &err);
	return present;
}

bool window_source_calls(struct window *window, const struct present_options *options)
{
	struct err err = { 0 };

	if (window->plain || !index_moment_knows(&window->index, window->reader, options))
		return false;
	return index_moment_calls(&window->index, window->reader, options, &err) ||
	       failed(window, &err);
}

bool window_source_plateau(struct window *window, process_id process, uint64_t number,
			   struct plateau *plateau)
{
	struct err err = { 0 };

	return !window->plain && (index_plateau(&window->index, &window->clock, window->reader,
						process, number, plateau, &err) ||
				  failed(window, &err));
}

// True with *known false: nothing was asked, and the caller reads the trace. False: it was asked,
// and failed.
bool window_source_lives(struct window *window, const struct lives_watcher *watcher,
			 void (*over)(void *context, process_id process), struct progress *progress,
			 bool *known, struct err *err)
{
	*known = !window->plain && index_lives_knows(&window->index);
	return !*known ||
	       index_lives(&window->index, window->reader, watcher, over, progress, err) ||
	       failed(window, err);
}

bool window_source_go(struct window *window, uint64_t number)
{
	return !window->plain && index_moment_go(&window->index, window->reader, number);
}

// Whether places could be found so far.
static bool is_sound(struct window *window, struct err *err)
{
	if (window->err.kind == ERR_NONE)
		return true;
	*err = window->err;
	return failed(window, err);
}

// ---- places ----

uint64_t window_edge_at(struct window *window, uint64_t time_ns)
{
	if (!window->plain) {
		uint64_t edge = WINDOW_START;

		// Whatever is wrong with the index, the next question says.
		index_clock_edge(&window->clock, &window->index, time_ns, &edge, &window->err);
		return edge;
	}
	// The baseline is the first step, at any time.
	return 1 + rising_upto(window->steps.times_ns + 1, window->steps.count - 1, time_ns);
}

// The time of an edge is that of the step before it; edge 0 is before all.
uint64_t window_edge_time(struct window *window, uint64_t edge)
{
	uint64_t time_ns = 0;

	ASSERT(window->facts.steps_end > 0);
	if (edge == 0)
		return 0;
	if (edge > window->facts.steps_end)
		edge = window->facts.steps_end;
	if (window->plain)
		return window->steps.times_ns[edge - 1];
	index_clock_time(&window->clock, &window->index, edge - 1, &time_ns, &window->err);
	return time_ns;
}

const struct window_mark *window_marks(const struct window *window, size_t *count)
{
	*count = window->plain ? window->steps.marks_count : window->index.marks_count;
	return window->plain ? window->steps.marks : window->index.marks;
}

bool window_source_number(struct window *window, uint64_t step, uint64_t *number, struct err *err)
{
	ASSERT(step < window->facts.steps_end);
	if (!window->plain)
		return index_number(&window->index, &window->numbers, step, number, err) ||
		       failed(window, err);
	*number = window->steps.numbers[step];
	return true;
}

bool window_edge_splits(struct window *window, uint64_t edge)
{
	uint64_t before, after;

	return edge > 0 && edge < window->facts.steps_end &&
	       window_source_number(window, edge - 1, &before, &window->err) &&
	       window_source_number(window, edge, &after, &window->err) && before == after &&
	       before != UINT64_MAX;
}

struct reader *window_source_reader(struct window *window)
{
	return window->reader;
}

static bool asks(const struct window_query *query, enum window_layer layer)
{
	return ((query->layers ? query->layers : WINDOW_HEAP) & layer) != 0;
}

// The query, with edges that are in the trace.
static struct window_query tidy(const struct window *window, const struct window_query *query)
{
	struct window_query whole = *query;

	if (whole.to > window->facts.steps_end)
		whole.to = window->facts.steps_end;
	if (whole.from > whole.to)
		whole.from = whole.to;
	return whole;
}

// What answers about heaps: a list of lifetimes, or the index (NULL). What is by lifetime the index
// cannot sum up, so that a list is made for it.
struct heaps {
	const struct plain *list;
	struct plain made;
};

// Begin a question: its edges are put into the trace, and what will answer about heaps is found: a
// list, if `listed`. False: it cannot be asked.
static bool begin(struct window *window, const struct window_query *query, bool listed,
		  struct window_query *whole, struct heaps *heaps, struct err *err)
{
	*whole = tidy(window, query);
	*heaps = (struct heaps){ .list = window->plain ? &window->heap : NULL };
	if (!is_sound(window, err))
		return false;
	if (window->plain || !asks(query, WINDOW_HEAP) || !listed)
		return true;
	heaps->list = &heaps->made;
	if (index_collect(&window->index, &window->clock, whole, &heaps->made, err))
		return true;
	plain_fini(&heaps->made);
	return failed(window, err);
}

static bool ask(void *context, const struct window_query *query, struct window_result *result,
		struct err *err)
{
	struct window *window = context;
	struct window_query whole = tidy(window, query);
	bool ok = true;

	if (window->plain)
		plain_ask(&window->heap, &whole, result);
	else if (asks(query, WINDOW_HEAP))
		ok = index_ask(&window->index, &whole, result, err) || failed(window, err);
	if (ok && asks(query, WINDOW_VM))
		plain_ask(window->vm, &whole, result);
	if (!ok)
		window_result_fini(result);
	return ok;
}

bool window_ask(struct window *window, const struct window_query *query,
		struct window_result *result, struct err *err)
{
	const struct reader *reader = window->reader;

	*result = (struct window_result){ 0 };
	if (!is_sound(window, err))
		return false;
	if (reader_is_estimated(reader) && !query->as_it_is)
		return window_weigh(reader, query, ask, window, result, err);
	return ask(window, query, result, err);
}

void window_result_fini(struct window_result *result)
{
	index_tables_put(result->home, result->rows);
	MEM_FREE(result->rests, result->spreads);
	*result = (struct window_result){ 0 };
}

struct window_rest *window_result_make_rest(struct window_result *result, size_t *capacity,
					    uint32_t group)
{
	size_t count = group + (size_t)1;

	ASSERT(group != WINDOW_SKIP);
	if (group >= result->rests_count) {
		MEM_ROOM(result->rests, *capacity, count);
		memset(result->rests + result->rests_count, 0,
		       (count - result->rests_count) * sizeof *result->rests);
		result->rests_count = group + 1;
	}
	return &result->rests[group];
}

// Both layers in one group are not meant to be; then the sum of peaks is the best there is.
static void merge_detail(struct window_detail *detail, const struct window_detail *other)
{
	if (other->peak_bytes > detail->peak_bytes)
		detail->peak_edge = other->peak_edge;
	detail->peak_bytes += other->peak_bytes;
	detail->peak_count += other->peak_count;
	detail->most_count += other->most_count;
	if (other->first_ns && (!detail->first_ns || other->first_ns < detail->first_ns))
		detail->first_ns = other->first_ns;
	if (other->last_ns > detail->last_ns)
		detail->last_ns = other->last_ns;
	if (other->lifetimes > detail->lifetimes) {
		detail->lifetime_median_ns = other->lifetime_median_ns;
		detail->lifetime_p99_ns = other->lifetime_p99_ns;
	}
	detail->lifetimes += other->lifetimes;
}

// The heap's details, then those of virtual memory, which are always in memory; a group that has
// both gets one of both (merge_detail).
bool window_detail(struct window *window, const struct window_query *query,
		   struct window_detail *details, size_t count, struct err *err)
{
	struct window_query whole;
	struct window_detail *vm;
	struct heaps heaps;
	bool ok = true;

	if (!begin(window, query, window_by_lifetime(query), &whole, &heaps, err))
		return false;
	if (heaps.list)
		plain_detail(heaps.list, &whole, details, count);
	else if (asks(query, WINDOW_HEAP))
		ok = index_detail(&window->index, &window->clock, &whole, details, count, err) ||
		     failed(window, err);
	plain_fini(&heaps.made);
	if (!ok || !asks(query, WINDOW_VM))
		return ok;
	vm = mem_alloc(count + 1, sizeof *vm);
	for (size_t i = 0; i < count; i++)
		vm[i] = (struct window_detail){ .group = details[i].group,
						.types = details[i].types };
	plain_detail(window->vm, &whole, vm, count);
	for (size_t i = 0; i < count; i++) {
		if (asks(query, WINDOW_HEAP))
			merge_detail(&details[i], &vm[i]);
		else
			details[i] = vm[i];
	}
	mem_free(vm);
	return true;
}

// First the heap, then virtual memory; `each` may end either.
bool window_walk(struct window *window, const struct window_query *query,
		 bool (*each)(void *context, const struct window_allocation *allocation),
		 void *context, struct err *err)
{
	struct window_query whole = tidy(window, query);
	bool stopped = false;

	ASSERT(each);
	if (!is_sound(window, err))
		return false;
	if (asks(query, WINDOW_VM))
		whole.enough = NULL; // it comes last, in another order
	if (window->plain) {
		if (!plain_walk(&window->heap, &whole, each, context))
			return true;
	} else if (asks(query, WINDOW_HEAP) && !index_walk(&window->index, &window->clock, &whole,
							   each, context, &stopped, err)) {
		return failed(window, err);
	}
	if (!stopped && asks(query, WINDOW_VM))
		plain_walk(window->vm, &whole, each, context);
	return true;
}

bool window_lived(struct window *window, const struct window_query *query,
		  void (*each)(void *context, unsigned part, const struct window_lived *lived),
		  void *context, bool *known, struct err *err)
{
	struct window_query whole = tidy(window, query);

	*known = false;
	if (!is_sound(window, err))
		return false;
	if (window->plain || asks(query, WINDOW_VM) || window_by_lifetime(query))
		return true;
	return index_lived(&window->index, &whole, each, context, known, err) ||
	       failed(window, err);
}

// ---- changes, one by one ----

// Stretches are offered (`whole`) by the index alone; without one, and for virtual memory, each
// change is shown.
bool window_curve(struct window *window, const struct window_query *query,
		  bool (*whole)(void *context, const struct window_stretch *stretch),
		  bool (*each)(void *context, const struct window_change *change), void *context,
		  struct err *err)
{
	struct window_query all;
	struct heaps heaps;
	bool ok = true;

	ASSERT(each);
	if (!begin(window, query, window_by_lifetime(query), &all, &heaps, err))
		return false;
	if (!asks(query, WINDOW_HEAP))
		plain_changes(window->vm, &all, each, context);
	else if (heaps.list)
		plain_changes(heaps.list, &all, each, context);
	else if (whole)
		ok = index_curve(&window->index, &all, whole, each, context, err);
	else
		ok = index_changes(&window->index, &all, each, context, err);
	plain_fini(&heaps.made);
	return ok || failed(window, err);
}

bool window_changes(struct window *window, const struct window_query *query,
		    bool (*each)(void *context, const struct window_change *change), void *context,
		    struct err *err)
{
	return window_curve(window, query, NULL, each, context, err);
}

// ---- sums by group ----

// The three questions that have sums for an answer: who answers each, and how many numbers an item
// of its answer is.
static const struct sums_question {
	void (*plain)(const struct plain *plain, const struct window_query *query,
		      const struct window_sums *to);
	bool (*index)(struct index *index, struct index_clock *clock,
		      const struct window_query *query, const struct window_sums *to,
		      struct err *err);
	size_t numbers;
	bool listed; // the index does not select by lifetime
} series_question = { plain_series, index_series, sizeof(struct window_bucket) / 8, true },
  flows_question = { plain_flows, index_flows, sizeof(struct window_flow) / 8, true },
  lifetimes_question = { plain_lifetimes, index_lifetimes, sizeof(struct heap_amount) / 8, false };

// Of the heaps, into `to`; of virtual memory into a second one of the same form, which is added.
static bool ask_sums(struct window *window, const struct sums_question *question,
		     const struct window_query *query, const struct window_sums *to,
		     struct err *err)
{
	size_t count = to->groups_count * to->count * question->numbers;
	struct window_sums vm = *to;
	struct window_query whole;
	struct heaps heaps;
	bool ok = true;

	ASSERT(to->count > 0);
	ASSERT(question->numbers > 0);
	if (!begin(window, query, question->listed && window_by_lifetime(query), &whole, &heaps,
		   err))
		return false;
	memset(to->numbers, 0, count * sizeof *to->numbers);
	if (heaps.list)
		question->plain(heaps.list, &whole, to);
	else if (asks(query, WINDOW_HEAP))
		ok = question->index(&window->index, &window->clock, &whole, to, err);
	plain_fini(&heaps.made);
	if (!ok)
		return failed(window, err);
	// It was asked of the places of steps, too.
	if (!is_sound(window, err))
		return false;
	if (!asks(query, WINDOW_VM))
		return true;
	vm.numbers = mem_alloc(count + 1, sizeof *vm.numbers);
	question->plain(window->vm, &whole, &vm);
	for (size_t i = 0; i < count; i++)
		to->numbers[i] += vm.numbers[i];
	mem_free(vm.numbers);
	return true;
}

// The query with the times of its buckets filled in.
static struct window_query with_axis(struct window *window, const struct window_query *query)
{
	struct window_query whole = tidy(window, query);

	if (whole.from_ns == 0 && whole.to_ns == 0) {
		whole.from_ns = window_edge_time(window, whole.from);
		whole.to_ns = window_edge_time(window, whole.to);
	}
	return whole;
}

bool window_series(struct window *window, const struct window_query *query, size_t groups_count,
		   struct window_bucket *buckets, size_t count, struct err *err)
{
	struct window_query whole = with_axis(window, query);
	const struct window_sums to = { groups_count, count, .buckets = buckets, .window = window };

	return ask_sums(window, &series_question, &whole, &to, err);
}

bool window_flows(struct window *window, const struct window_query *query, size_t groups_count,
		  struct window_flow *flows, size_t count, struct err *err)
{
	struct window_query whole = with_axis(window, query);
	const struct window_sums to = { groups_count, count, .flows = flows };

	return ask_sums(window, &flows_question, &whole, &to, err);
}

bool window_lifetimes(struct window *window, const struct window_query *query, size_t groups_count,
		      struct heap_amount *classes, struct err *err)
{
	const struct window_sums to = { groups_count, WINDOW_LIFETIME_CLASSES, .classes = classes };

	return ask_sums(window, &lifetimes_question, query, &to, err);
}

// One level of all, so neither groups nor lifetimes are looked at: the files of levels have it. A
// list has no such files, and answers as for a series of one group.
bool window_timeline(struct window *window, const struct window_query *query,
		     struct window_bucket *buckets, size_t count, struct err *err)
{
	struct window_query whole = with_axis(window, query);
	const struct window_sums to = { 1, count, .buckets = buckets, .window = window };

	if (!is_sound(window, err))
		return false;
	whole.group = NULL;
	whole.lifetime_min_ns = whole.lifetime_max_ns = 0;
	if (window->plain || !asks(query, WINDOW_HEAP))
		return window_series(window, &whole, 1, buckets, count, err);
	return (index_timeline(&window->index, &whole, &to, err) || failed(window, err)) &&
	       is_sound(window, err);
}
