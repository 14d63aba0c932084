// Opens a window: by a list of lifetimes (plain.c), or an index, built where it is missing.
//
// A trace of up to 65,536 events is paired into a list when it is opened. For a longer one the
// index is opened, or built: one process builds, others wait for its lock and find it done. Where
// it can be written neither beside the trace nor in the user's cache, it is made in $TMPDIR for
// this window alone.
#include "engine/window_own.h"

#include "base/mem.h"
#include "base/str.h"
#include "engine/index/index_disk.h"
#include "engine/index/index_tables.h"
#include "engine/window_source.h"
#include "os/file.h"
#include "os/tool.h"

enum {
	MEMORY_DEFAULT = 256 << 20,
	MEMORY_LEAST = 32 << 20,
	TABLES_EIGHTHS = 3,     // of a question's memory: large tables, used and kept
	PLAIN_EVENTS = 1 << 16, // traces up to this need no index
	PLAIN_REST = 32 << 20,  // what is not lifetimes
};

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
