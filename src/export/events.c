// A block is followed from its beginning to its end by lives.h; here is what of that lies in the
// window and passes the filters. For example, with --from 1s --to 2s: a block from 0.5 s to 1.5 s
// is given to `before` at 1 s and to `end` at 1.5 s; one from 1.2 s to 3 s to `begin` alone; with
// `whole_lives` both are given once, by `end`, as AOFI and AIFO.
//
// Where an index says what lives when the window begins (window_alive.h), only that is followed of
// all that was before, and the trace is gone through from there on, or, where blocks are not asked
// where a realloc moved them from, read from there on. Without an index the trace is read twice:
// reallocs that fail after all are found first, so that no end has to be taken back when it has
// been written; and about how many blocks live at one time. Where these do
// not fit in memory, its events go into a temporary file for each share of the addresses
// (lives_parts.h), and a share is followed after the other. What is to be said of the blocks of all
// shares but the last goes into a file each, in the trace's order; then the trace is read once more
// for the last share: beginnings and notes are there as always, and of the ends the first in the
// order is taken from wherever it is. For example of two shares, B's block being of the first:
//
//     item            first share        last reading
//     1  malloc A                        begin A
//     2  malloc B                        begin B
//     3  free B       3 end B  → file
//     4  free A                          end B (from the file, 3 < 4), end A
#include "export/events.h"

#include "base/map.h"
#include "base/mem.h"
#include "engine/index/index_bits.h"
#include "engine/index/spill.h"
#include "engine/replay/lives_parts.h"
#include "engine/window_alive.h"
#include "engine/window_source.h"
#include "trace/reader_pass.h"

// Where in the order something is said: of the item, in this order; of blocks that end or are there
// together, those that began first.
enum rank { RANK_BEFORE, RANK_NOTE, RANK_END, RANK_LOST, RANK_BEGIN };
struct place {
	uint64_t item; // from 1
	enum rank rank;
	uint64_t number; // of the event that began the block
};

// What was said of the blocks of a share, in its order.
struct run {
	struct spill spill;
	struct place place; // of the next one, which is this
	struct lives_block block;
	struct lives_end end;
	bool over;
};

struct reading {
	const struct query_context *asked;
	const struct events_watcher *watcher;
	const struct moment_edge *from, *to; // NULL: without an edge
	struct lives *lives;
	struct map undone;
	struct window_alive alive; // of what is before the window; without an index nothing is
	bool filtered;
	bool began; // the window has
	uint64_t next_number;
	uint64_t matched;     // beginnings and ends that the watcher was told of
	uint64_t item;        // the present one
	uint64_t window_item; // where it begins; before the last reading
	struct run *runs;     // of all shares but the last
	uint32_t runs_count;
	struct run *run;   // to which ends go; NULL: they are said
	struct run *first; // first_run, in the last reading
};

// ---- the window ----

static bool is_after(const struct moment_edge *from, uint64_t number, uint64_t time_ns)
{
	return !from || moment_passed(from, number, time_ns);
}

static bool is_before(const struct moment_edge *to, uint64_t number, uint64_t time_ns)
{
	return !to || !moment_passed(to, number, time_ns);
}

// NULL: the window begins with the trace.
static const struct moment_edge *edge_from(const struct query_context *asked)
{
	return asked->from_given ? &asked->selection.window[0] : NULL;
}

static const struct moment_edge *edge_to(const struct query_context *asked)
{
	return asked->to_given ? &asked->selection.window[1] : NULL;
}

// Whether a call ended it before the window's end. The end of a process frees nothing.
static bool is_freed(const struct query_context *asked, const struct lives_end *end)
{
	return end->cause < LIVES_EXIT && is_before(edge_to(asked), end->number, end->time_ns);
}

enum query_type events_class(const struct export_source *source, const struct lives_block *block,
			     const struct lives_end *end)
{
	const struct query_context *asked = source->asked;
	bool freed = is_freed(asked, end);

	if (is_after(edge_from(asked), block->number, block->time_ns))
		return freed ? QUERY_AIFI : QUERY_AIFO;
	return freed ? QUERY_AOFI : QUERY_AOFO;
}

// ---- filters ----

// Filters are answered by number, from what the selection has read; without filters all pass, also
// blocks that were not seen to begin.
static bool is_wanted(const struct reading *reading, const struct lives_block *block)
{
	process_id only = reading->watcher->process;

	if (only != TRACE_NONE && block->process != only)
		return false;
	return !reading->filtered ||
	       (block->origin == LIVES_BEGUN &&
		event_bitmap_begin(reading->asked->selection.event_bitmap, block->number));
}

// To the watcher, now: all that comes before it in the order has been said.
static void say(struct reading *reading, enum rank rank, const struct lives_block *block,
		const struct lives_end *end)
{
	const struct events_watcher *watcher = reading->watcher;

	ASSERT(!reading->run &&
	       (rank == RANK_BEFORE ? watcher->before != NULL : rank < RANK_BEGIN));
	reading->matched++;
	if (rank == RANK_BEFORE)
		watcher->before(watcher->context, block);
	else
		watcher->end(watcher->context, block, end);
}

// ---- shares ----

static bool place_is_before(const struct place *left, const struct place *right)
{
	if (left->item != right->item)
		return left->item < right->item;
	if (left->rank != right->rank)
		return left->rank < right->rank;
	return left->number < right->number;
}

// Numbers that are small: item, number and time as what they are after those of the one before, and
// the block's as what they are before its end's. All that is not in `end` of one that is there when
// the window begins is 0, and so is what wraps around.
enum { RUN_VALUES = 15 };
enum { WORD_CAUSE = 4, WORD_ORIGIN = 8, WORD_MOVED = 10, WORD_KIND = 11 }; // bits of one of them

static void put_run(struct run *run, const struct place *place, const struct lives_block *block,
		    const struct lives_end *end)
{
	const uint64_t values[] = {
		place->item - run->place.item,
		(uint64_t)place->rank | (uint64_t)end->cause << WORD_CAUSE |
			(uint64_t)block->origin << WORD_ORIGIN |
			(uint64_t)block->moved << WORD_MOVED | (uint64_t)block->kind << WORD_KIND,
		block->address,
		block->size,
		block->old_address,
		block->process,
		(uint32_t)(block->thread + 1),
		block->stack,
		block->heap,
		end->number - run->end.number,
		end->number - block->number,
		end->time_ns - run->end.time_ns,
		end->time_ns - block->time_ns,
		(uint32_t)(end->thread + 1),
		end->stack,
	};
	uint8_t bytes[RUN_VALUES * 10];
	size_t size = 0;

	_Static_assert(sizeof values / sizeof *values == RUN_VALUES, "next_of_run takes as many");
	for (size_t i = 0; i < RUN_VALUES; i++)
		size += bits_put_varint(bytes + size, values[i]);
	spill_put(&run->spill, bytes, size);
	run->place = *place;
	run->end = *end;
}

static void next_of_run(struct run *run)
{
	uint64_t values[RUN_VALUES];

	for (size_t i = 0; i < RUN_VALUES; i++)
		if (!spill_get_varint(&run->spill, &values[i])) {
			run->over = true;
			return;
		}
	run->end = (struct lives_end){
		.cause = values[1] >> WORD_CAUSE & 0xf,
		.number = values[9] + run->end.number,
		.time_ns = values[11] + run->end.time_ns,
		.thread = (thread_id)(values[13] - 1),
		.stack = (stack_id)values[14],
	};
	run->block = (struct lives_block){
		.address = values[2],
		.size = values[3],
		.number = run->end.number - values[10],
		.time_ns = run->end.time_ns - values[12],
		.old_address = values[4],
		.process = (process_id)values[5],
		.thread = (thread_id)(values[6] - 1),
		.stack = (stack_id)values[7],
		.heap = (heap_id)values[8],
		.origin = values[1] >> WORD_ORIGIN & 3,
		.kind = (uint8_t)(values[1] >> WORD_KIND),
		.moved = values[1] >> WORD_MOVED & 1,
	};
	run->place =
		(struct place){ run->place.item + values[0], values[1] & 0xf, run->block.number };
	ASSERT(run->place.rank == RANK_BEFORE || run->place.rank == RANK_END ||
	       run->place.rank == RANK_LOST);
}

// The run whose next one comes first. NULL: there is no more.
static struct run *first_run(struct reading *reading)
{
	struct run *first = NULL;

	ASSERT(!reading->run);
	for (uint32_t i = 0; i < reading->runs_count; i++) {
		struct run *run = &reading->runs[i];

		if (!run->over && (!first || place_is_before(&run->place, &first->place)))
			first = run;
	}
	return first;
}

// Say what the files have before this place.
static void catch_up(struct reading *reading, const struct place *place)
{
	while (reading->first && place_is_before(&reading->first->place, place)) {
		struct run *run = reading->first;

		say(reading, run->place.rank, &run->block, &run->end);
		next_of_run(run);
		reading->first = first_run(reading);
	}
}

// Of a share that goes to a file it is put there; else what the files have before it is said first.
static void say_in_order(struct reading *reading, enum rank rank, const struct lives_block *block,
			 const struct lives_end *end)
{
	const struct place place = { reading->item, rank, block->number };

	if (reading->run) {
		put_run(reading->run, &place, block, end);
		return;
	}
	catch_up(reading, &place);
	say(reading, rank, block, end);
}

// ---- what lives.h gives ----

static void begin(void *context, const struct lives_block *block)
{
	struct reading *reading = context;
	const struct events_watcher *watcher = reading->watcher;

	if (watcher->begin && !reading->run && is_wanted(reading, block) &&
	    is_after(reading->from, block->number, block->time_ns) &&
	    is_before(reading->to, block->number, block->time_ns)) {
		catch_up(reading, &(struct place){ reading->item, RANK_BEGIN, 0 });
		reading->matched++;
		watcher->begin(watcher->context, block);
	}
}

// With whole lives it counts if it began before the window's end and ended after its beginning.
// What its process ended lives to the process's end.
static void end(void *context, const struct lives_block *block, const struct lives_end *end)
{
	struct reading *reading = context;
	// A life counts where it overlaps the window; an end by itself where it is in it.
	bool after = is_after(reading->from, end->number, end->time_ns);
	bool wanted = reading->watcher->whole_lives
			      ? block->origin == LIVES_BEGUN &&
					is_before(reading->to, block->number, block->time_ns) &&
					(after || end->cause >= LIVES_EXIT)
			      : after && is_before(reading->to, end->number, end->time_ns);

	if (wanted && is_wanted(reading, block))
		say_in_order(reading, end->cause == LIVES_LOST ? RANK_LOST : RANK_END, block, end);
}

// It lives when the window begins, in the order in which blocks began.
static void before(void *context, const struct lives_block *block)
{
	if (is_wanted(context, block))
		say_in_order(context, RANK_BEFORE, block, &(struct lives_end){ 0 });
}

// ---- reading ----

// The window begins before the first item that lies in it.
static void enter(struct reading *reading, uint64_t number, uint64_t time_ns)
{
	if (reading->began || !is_after(reading->from, number, time_ns))
		return;
	reading->began = true;
	if (reading->from && reading->watcher->before)
		lives_each(reading->lives, before, reading);
}

// Nothing that comes now, or later, is in the window or ends what is asked about.
static bool is_over(const struct reading *reading, uint64_t number, uint64_t time_ns)
{
	return !reading->watcher->whole_lives && !is_before(reading->to, number, time_ns);
}

// Goes through the items that are followed.
struct walk {
	struct reader_pass pass;
	struct lives_halves halves;
	struct trace_event event; // settled
	uint64_t target;          // where it was jumped to last
};

// From the first item on, which has the number 1.
static struct walk begin_walk(struct reading *reading, struct progress *progress)
{
	struct reader *reader = reading->asked->reader;

	reading->began = false;
	reading->item = reading->next_number = 0;
	return (struct walk){ .pass = reader_pass_begin(reader, progress),
			      .halves = { .reader = reader, .undone = &reading->undone } };
}

// Over events of blocks that ended before the window, where neither their notes nor their halves
// are asked for: to not far before the next one that counts. What is met again then has a number
// below the next one.
static void jump(struct reading *reading, struct walk *walk)
{
	enum { FAR = 1 << 17 };
	const struct events_watcher *watcher = reading->watcher;
	uint64_t next;

	if (watcher->origins || watcher->whole_lives)
		return;
	next = window_alive_next(&reading->alive, reading->next_number);
	if (next == UINT64_MAX || next - reading->next_number < FAR || next == walk->target)
		return;
	walk->target = next;
	window_source_go(reading->asked->opened->window, next);
}

// The next item, of which an event is in walk->event. False: there is no more, or what comes is
// after the window.
static bool next_item(struct reading *reading, struct walk *walk)
{
	while (reader_pass_next(&walk->pass) != READER_END) {
		const struct trace_event *event = &walk->pass.event;

		if (walk->pass.item == READER_NOTE) {
			reading->item++;
			return true;
		}
		if (event->number < reading->next_number)
			continue;
		if (is_over(reading, event->number, event->time_ns))
			return false;
		reading->next_number = event->number + 1;
		walk->event = lives_settle(&walk->halves, event);
		// A stack that a damaged trace does not have is none.
		if (walk->event.stack >= reader_stacks_count(reading->asked->reader))
			walk->event.stack = 0;
		if (event->number >= reading->alive.number ||
		    window_alive_has(&reading->alive, event->number)) {
			reading->item++;
			return true;
		}
		jump(reading, walk);
	}
	return false;
}

// What is said after the last item has a place of its own.
static void end_walk(struct reading *reading, struct walk *walk)
{
	lives_halves_fini(&walk->halves);
	reading->item++;
}

// Notes have no number: they are before the event that comes next.
static void add_note(struct reading *reading, const struct trace_note *note)
{
	const struct events_watcher *watcher = reading->watcher;

	// A note takes the number of the event that follows: a mark at the window's edge is in the
	// window that begins with that event.
	enter(reading, reading->next_number, note->time_ns);
	if (watcher->note && !reading->run &&
	    is_after(reading->from, reading->next_number, note->time_ns) &&
	    is_before(reading->to, reading->next_number, note->time_ns)) {
		catch_up(reading, &(struct place){ reading->item, RANK_NOTE, 0 });
		watcher->note(watcher->context, note);
	}
	lives_at(reading->lives, reading->next_number);
	lives_add_note(reading->lives, note);
}

// After the last item, or the last that is in the window.
static void finish(struct reading *reading)
{
	// So blocks that live then are given to `before`, though no item came after the window's
	// beginning.
	enter(reading, reading->next_number, UINT64_MAX);
	lives_at(reading->lives, reading->next_number);
	if (reading->watcher->whole_lives)
		lives_finish(reading->lives, moment_duration(reading->asked->reader));
}

// A window that begins after the last event still begins.
static void read_items(struct reading *reading, struct progress *progress)
{
	struct walk walk = begin_walk(reading, progress);

	while (next_item(reading, &walk)) {
		if (walk.pass.item == READER_NOTE) {
			add_note(reading, &walk.pass.note);
			continue;
		}
		enter(reading, walk.event.number, walk.event.time_ns);
		lives_add_settled(reading->lives, &walk.event);
	}
	end_walk(reading, &walk);
	finish(reading);
	catch_up(reading, &(struct place){ .item = UINT64_MAX });
}

// ---- in shares ----

// The items as read_items has them, under the same numbers.
static void fill_parts(struct reading *reading, struct lives_parts *parts,
		       struct progress *progress)
{
	struct walk walk = begin_walk(reading, progress);

	ASSERT(!reading->window_item);
	while (next_item(reading, &walk)) {
		bool is_note = walk.pass.item == READER_NOTE;
		uint64_t number = is_note ? reading->next_number : walk.event.number;

		if (!reading->window_item &&
		    is_after(reading->from, number, reader_pass_time(&walk.pass)))
			reading->window_item = reading->item;
		if (is_note)
			lives_parts_add_note(parts, reading->item, number, &walk.pass.note);
		else
			lives_parts_add_event(parts, reading->item, &walk.event);
	}
	end_walk(reading, &walk);
	if (!reading->window_item)
		reading->window_item = reading->item;
}

// The window begins before the first item that lies in it, of whatever share that is.
static void enter_share(struct reading *reading, uint64_t item)
{
	if (reading->began || item < reading->window_item)
		return;
	reading->item = reading->window_item;
	reading->began = true;
	if (reading->from && reading->watcher->before)
		lives_each(reading->lives, before, reading);
}

// Items come with the numbers that fill_parts gave them, so what they say has its place among what
// the other shares say.
static void read_part(struct reading *reading, struct lives_parts *parts, uint32_t share,
		      uint64_t last_item)
{
	struct lives_parts_item item;

	reading->began = false;
	while (lives_parts_next(parts, share, &item)) {
		enter_share(reading, item.item);
		reading->item = item.item;
		lives_parts_give(&item, reading->lives);
	}
	lives_parts_drop(parts, share);
	enter_share(reading, UINT64_MAX);
	reading->item = last_item;
	finish(reading);
}

// From writing to reading: what is told first, is there.
static bool turn_run(struct reading *reading, struct run *run, struct err *err)
{
	struct spill spill = run->spill;

	ASSERT(run == &reading->runs[reading->runs_count]);
	reading->runs_count++;
	spill_turn(&spill);
	*run = (struct run){ .spill = spill };
	next_of_run(run);
	return spill_ok(&run->spill, err);
}

// A share's blocks are given to `begin` and `end` from here on.
static void follow_share(struct reading *reading, uint32_t share, uint32_t shares)
{
	const struct lives_watcher watcher = { .begin = begin, .end = end, .context = reading };

	reading->lives = lives_new(reading->asked->reader, &watcher, &reading->undone);
	lives_share(reading->lives, share, shares);
}

// What a share's blocks say, in a file that is then read from its beginning.
static bool read_share(struct reading *reading, struct lives_parts *parts, uint32_t share,
		       uint32_t shares, uint64_t last_item, struct err *err)
{
	enum { BUFFER_BYTES = 1 << 16 };
	struct run *run = &reading->runs[share];

	if (!spill_open_anywhere(&run->spill, BUFFER_BYTES, err))
		return false;
	reading->run = run;
	follow_share(reading, share, shares);
	read_part(reading, parts, share, last_item);
	lives_free(reading->lives);
	reading->run = NULL;
	return turn_run(reading, run, err) && lives_parts_ok(parts, err);
}

// All shares but the last go to files; where there is one alone, the trace is all that is read.
static bool read_shares(struct reading *reading, uint32_t shares, struct progress *progress,
			struct err *err)
{
	struct lives_parts *parts = NULL;
	bool good = true;

	if (shares > 1) {
		parts = lives_parts_new(shares - 1, shares, err);
		good = parts != NULL;
	}
	reading->runs = mem_alloc(shares, sizeof *reading->runs);
	if (parts)
		fill_parts(reading, parts, progress);
	for (uint32_t share = 0; share + 1 < shares && good; share++)
		good = read_share(reading, parts, share, shares, reading->item, err);
	lives_parts_free(parts);
	if (good) {
		reading->first = first_run(reading);
		follow_share(reading, shares - 1, shares);
		read_items(reading, progress);
		lives_free(reading->lives);
	}
	for (uint32_t i = 0; i < reading->runs_count; i++) {
		good = good && spill_ok(&reading->runs[i].spill, err);
		spill_close(&reading->runs[i].spill);
	}
	mem_free(reading->runs);
	return good;
}

bool events_prepare(struct query_context *asked, struct err *err)
{
	if (asked->layers != WINDOW_HEAP)
		return err_set(err, ERR_USAGE,
			       "the format holds blocks of heaps: --layer vm cannot be in it");
	return !query_narrows(&asked->selection.query) || query_context_select_events(asked, err);
}

// By an index that is there; none is made for it. Where neither what lives when the window begins
// nor whole lives are wanted, only what ends in the window is followed.
static bool find_alive(struct reading *reading)
{
	const struct query_context *asked = reading->asked;
	const struct events_watcher *watcher = reading->watcher;
	const struct window_alive_wish wish = {
		.from = reading->from,
		.to = watcher->whole_lives ? NULL : reading->to,
		.ended = !watcher->whole_lives && !watcher->before,
		.exit_frees = !watcher->whole_lives,
	};

	opened_existing_index(asked->opened, &asked->options.window);
	return asked->opened->window &&
	       window_alive_find(&reading->alive, asked->opened->window, &wish);
}

// Half of the memory is for blocks; names, stacks and what the format keeps have the other half.
bool events_read(const struct export_source *source, const struct events_watcher *watcher,
		 struct err *err)
{
	struct query_context *asked = source->asked;
	struct reading reading = {
		.asked = asked,
		.watcher = watcher,
		.from = edge_from(asked),
		.to = edge_to(asked),
		.filtered = query_narrows(&asked->selection.query),
	};
	uint64_t memory = window_memory_of(&asked->options.window) / 2;
	struct progress progress;
	uint32_t shares;
	bool good;

	ASSERT(watcher && watcher->end);
	progress_begin(&progress, asked->options.window.progress, "reading",
		       reader_bytes(asked->reader));
	// `undone` has the reallocs of which the trace says later that they failed (lives.h).
	if (find_alive(&reading))
		shares = lives_shares_for(reading.alive.most, memory);
	else
		shares = lives_find_shares(asked->reader, &reading.undone, memory, &progress);
	good = read_shares(&reading, shares, &progress, err);
	progress_end(&progress);
	query_context_matched(asked, reading.matched);
	map_fini(&reading.undone);
	window_alive_fini(&reading.alive);
	return good || err_wrap(err, "what does not fit in --memory goes to $TMPDIR");
}

// Whether it has blocks in the window is not asked: that would be known after reading all of it.
bool events_choose(const struct export_source *source, const char *what, process_id *process,
		   struct err *err)
{
	const struct query *query = &source->asked->selection.query;
	uint32_t count = 0;

	for (process_id id = 0; id < reader_processes_count(source->asked->reader); id++) {
		if (!query_has_process(query, id))
			continue;
		*process = id;
		count++;
	}
	if (count == 1)
		return true;
	if (count == 0)
		return err_set(err, ERR_USAGE, "there is no process in it");
	return err_set(err, ERR_USAGE,
		       "%s is of one process, and here are %u (choose one: --process)", what,
		       count);
}
