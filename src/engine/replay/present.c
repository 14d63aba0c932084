// Events go to two machines: calls on virtual memory to `space`, all others to `lives`. Where the
// moment is depends on how it was given. A time is the end of its tick: all events of that time
// are before it. An exact edge is before the event of its number, and of what has no number only a
// process's end is kept out. For example with an edge at event 5 and, after event 4, the notes
// "mark step" and "end p": the mark is before the moment, the end is not, so that p's blocks are
// still there to be seen.
//
// What malloc has mapped is known only by its blocks: present_settle has each live one claim the
// mapping around it, and then owners are final.
#include "engine/replay/present.h"

#include "base/mem.h"
#include "base/rising.h"
#include "base/sort.h"
#include "engine/replay/lives.h"
#include "engine/space/space_listed.h"
#include "trace/effect.h"
#include "trace/reader_pass.h"

#include <stdlib.h>
#include <string.h>

struct present {
	struct reader *reader;
	struct present_options options;
	struct space *space;
	struct space_listed *listed; // until it is settled
	struct lives *lives;
	struct present_lean lean; // that live beside those
	struct err *damage;       // owned: why some of these could not be made
	uint64_t events;
};

void present_free(struct present *present)
{
	if (!present)
		return;
	space_listed_finish(present->listed);
	space_free(present->space);
	lives_free(present->lives);
	MEM_FREE(present->lean.list, present->lean.ends, present->lean.context, present->damage,
		 present);
}

// Listeners are told of calls on virtual memory and of calls that failed, with the space as it was
// before and as it is after. All else is far too much to be told of.
void present_add_event(struct present *present, const struct trace_event *event)
{
	const struct present_options *options = &present->options;
	bool vm = trace_kind_is_vm(event->kind);
	bool shown = vm || effect_of(event->kind) & EFFECT_FAILS;

	if (!reader_thread(present->reader, event->thread))
		return;
	present->events = event->number + 1;
	if (shown)
		space_learn(present->space, present->reader);
	if (vm)
		space_listed_pass(present->listed, event);
	if (options->before && shown)
		options->before(options->context, present->space, event);
	if (vm)
		space_add_event(present->space, event);
	else
		lives_add_event(present->lives, event);
	if (options->after && shown)
		options->after(options->context, present->space, event);
}

// Whether the process is the one whose inheritance is wanted, or a process that this one comes from
// by forks alone: what the parent had from its own parent is passed on, too. An exec in between
// ends the search, since it leaves nothing. Hops are counted, as the parents of a damaged trace may
// go round in a circle.
static bool inherits(const struct present *present, process_id id)
{
	process_id at = present->options.inherits;
	const struct trace_process *process;

	for (size_t hops = 0; hops < reader_processes_count(present->reader); hops++) {
		if (at == id)
			return true;
		process = reader_process(present->reader, at);
		if (!process || process->start != TRACE_START_FORK)
			return false;
		at = process->parent;
	}
	return false;
}

// At exit the ends of processes are left out, so that what they held is still to be seen; listeners
// are told of them all the same.
void present_add_note(struct present *present, const struct trace_note *note)
{
	const struct trace_process *process = reader_process(present->reader, note->process);
	bool ends = note->kind == TRACE_NOTE_PROCESS_END;

	if (process && ends && present->options.at_exit && present->options.noted)
		present->options.noted(present->options.context, present->space, note);
	if (!process || (ends && present->options.at_exit))
		return;
	if (note->kind == TRACE_NOTE_PROCESS_START && process->start == TRACE_START_FORK &&
	    process->parent != process->id && inherits(present, process->id))
		lives_inherit(present->lives, process->parent, process->id);
	space_learn(present->space, present->reader);
	if (ends)
		space_listed_end(present->listed, note->process);
	space_add_note(present->space, note);
	lives_add_note(present->lives, note);
	if (present->options.noted && (ends || note->kind == TRACE_NOTE_PROCESS_START))
		present->options.noted(present->options.context, present->space, note);
}

// Whether a note is after the moment. One right at an exact edge is before it, but for the end of a
// process: what lives at a peak or a mark is still to be seen.
static bool passed_by(const struct present *present, const struct trace_note *note)
{
	const struct moment_edge *edge = &present->options.edge;

	if (!edge->exact)
		return note->time_ns > edge->time_ns;
	return present->events >= edge->number && note->kind == TRACE_NOTE_PROCESS_END;
}

// Apply what is before the moment. False: that was the last of it.
static bool apply_events(struct present *present, struct trace_event *events, uint32_t count)
{
	lives_expect(present->lives, events, count);
	for (uint32_t i = 0; i < count; i++) {
		if (!present->options.at_exit &&
		    moment_passed(&present->options.edge, events[i].number, events[i].time_ns))
			return false;
		if (events[i].stack >= reader_stacks_count(present->reader))
			events[i].stack = 0;
		present_add_event(present, &events[i]);
	}
	return true;
}

// At exit there is no moment to stop at: all is read.
static void read_items(struct present *present)
{
	struct reader_runs runs = { .reader = present->reader,
				    .progress = present->options.progress };
	bool more = true;

	while (more) {
		enum reader_item item = reader_runs_next(&runs);

		if (item == READER_EVENT)
			more = apply_events(present, runs.events, runs.count);
		else if (item == READER_END ||
			 (!present->options.at_exit && passed_by(present, &runs.note)))
			more = false;
		else
			present_add_note(present, &runs.note);
	}
}

// Listeners are left out until present_listen: who fills the present from an index looks through
// the list of calls once before, and these must hear of each call once.
struct present *present_new(struct reader *reader, const struct present_options *options)
{
	struct present *present = mem_alloc(1, sizeof *present);

	ASSERT(reader);
	present->reader = reader;
	present->options = *options;
	present->options.before = present->options.after = NULL;
	present->options.noted = NULL;
	present->space = space_new(NULL);
	present->lives = options->undated && !(options->query && options->query->event)
				 ? lives_new_lean(reader)
				 : lives_new(reader, NULL, NULL);
	present->damage = mem_alloc(1, sizeof *present->damage);
	space_learn(present->space, reader);
	present->listed = space_listed_new(present->space, reader, options->query,
					   options->at_exit ? NULL : &options->edge);
	return present;
}

void present_listen(struct present *present, const struct present_options *options)
{
	present->options.before = options->before;
	present->options.after = options->after;
	present->options.noted = options->noted;
}

// A block as lives.h has it.
static struct lives_block life_of(const struct present_block *block)
{
	return (struct lives_block){
		.address = block->address,
		.size = block->size,
		.number = block->number,
		.time_ns = block->time_ns,
		.process = block->process,
		.thread = block->thread,
		.stack = block->stack,
		.heap = block->heap,
	};
}

void present_put(struct present *present, const struct present_block *block)
{
	const struct lives_block begun = life_of(block);

	if (reader_process(present->reader, block->process))
		lives_put(present->lives, block->process, &begun);
}

void present_put_all(struct present *present, const struct present_lean *lean)
{
	ASSERT(!present->lean.list && lean->list);
	present->lean = *lean;
}

// The lean blocks of a process, which are side by side: those of all processes are one list, and
// ends[p] is where process p's end. With ends { 3, 3, 5 } process 0 has the first three, 1 none, 2
// the last two.
static const struct radix_pair *lean_of(const struct present *present, process_id process,
					size_t *count)
{
	const struct present_lean *lean = &present->lean;
	size_t first;

	*count = 0;
	if (!lean->list)
		return NULL;
	ASSERT(process < reader_processes_count(present->reader));
	first = process ? lean->ends[process - 1] : 0;
	*count = lean->ends[process] - first;
	return lean->list + first;
}

struct claiming {
	struct space *space;
	process_id process;
	bool whole;
};

static void claim(void *context, uint64_t address)
{
	const struct claiming *claiming = context;

	if (claiming->whole)
		space_claim_whole(claiming->space, claiming->process, address);
	else
		space_claim(claiming->space, claiming->process, address);
}

static void claim_block(void *context, const struct present_block *block)
{
	if (block->heap == 0)
		claim(context, block->address);
}

// Claims are for the mappings of malloc's own blocks. Lean ones of one heap alone are claimed by
// their addresses, without blocks being made of them.
static void claim_all(struct present *present, bool whole)
{
	for (process_id id = 0; id < reader_processes_count(present->reader); id++) {
		struct claiming claiming = { present->space, id, whole };
		size_t count;
		const struct radix_pair *lean = lean_of(present, id, &count);

		if (present->lean.heaps) {
			present_each_block(present, id, PRESENT_ALL, claim_block, &claiming);
			continue;
		}
		lives_each_address(present->lives, id, claim, &claiming);
		for (size_t i = 0; i < count; i++)
			claim(&claiming, lean[i].key);
	}
}

void present_settle(struct present *present, uint64_t events)
{
	ASSERT(present->listed);
	present->events = events;
	space_learn(present->space, present->reader);
	space_listed_finish(present->listed);
	present->listed = NULL;
	// Whole mappings first: they say which of the large ones are another malloc's, and only
	// then is what is left given to blocks.
	claim_all(present, true);
	claim_all(present, false);
}

struct present *present_read(struct reader *reader, const struct present_options *options)
{
	struct present *present = present_new(reader, options);

	present_listen(present, options);
	read_items(present);
	present_settle(present, present->events);
	return present;
}

// malloc's heap always; of others those that have memory of their own: a handle (Windows) or a
// language. A pool's blocks are parts of malloc's and would count twice.
static bool is_wanted(const struct present *present, enum present_heaps heaps, heap_id heap)
{
	const struct trace_heap *known;

	if (!heap || heaps == PRESENT_ALL)
		return true;
	known = reader_heap(present->reader, heap);
	return known->handle || reader_heap_is_language(known);
}

static struct present_block block_of(const struct present *present, process_id process,
				     const struct lives_block *life)
{
	const struct query *query = present->options.query;

	return (struct present_block){
		.address = life->address,
		.size = life->size,
		.number = life->number,
		.time_ns = life->time_ns,
		.process = process,
		.thread = life->thread,
		.stack = life->stack,
		.heap = life->heap,
		.selected = !query || lives_selects(query, life),
		.inherited = life->origin == LIVES_COPY,
	};
}

SORT_ORDER(by_address, struct present_block, SORT_RISES(address), SORT_RISES(heap))

// Blocks of `lives` that are listed, or told one by one.
struct listing {
	const struct present *present;
	process_id process;
	enum present_heaps heaps;
	struct present_block *list; // NULL: `each` is told
	size_t count;
	void (*each)(void *context, const struct present_block *block);
	void *context;
};

static bool listing_wants(void *context, heap_id heap)
{
	const struct listing *listing = context;

	return is_wanted(listing->present, listing->heaps, heap);
}

static void add_life(void *context, const struct lives_block *life)
{
	struct listing *listing = context;
	const struct present_block block = block_of(listing->present, listing->process, life);

	if (listing->list)
		listing->list[listing->count++] = block;
	else
		listing->each(listing->context, &block);
}

// The blocks of `lives`, by address. Each heap's blocks come by rising address; with two heaps or
// more they are sorted together. NULL where there are none; the caller frees it.
static struct present_block *list_lives(const struct present *present, process_id process,
					enum present_heaps heaps, size_t *count)
{
	struct listing listing = { .present = present, .process = process, .heaps = heaps };
	size_t among = lives_each_of(present->lives, process, listing_wants, NULL, &listing, count);

	if (*count == 0)
		return NULL;
	listing.list = mem_alloc_table(*count, sizeof *listing.list);
	lives_each_of(present->lives, process, listing_wants, add_life, &listing, NULL);
	ASSERT(listing.count == *count);
	if (among > 1)
		qsort(listing.list, *count, sizeof *listing.list, by_address);
	return listing.list;
}

static bool selects(const struct query *query, const struct present_block *block)
{
	const struct lives_block life = life_of(block);

	return lives_selects(query, &life);
}

// ---- all of a process, in their order ----

// A slice at a time: so many blocks are made of what is lean, and what was read is put between.

struct walk {
	const struct present *present;
	process_id process;
	enum present_heaps heaps;
	bool narrows; // the query leaves blocks out
	const struct radix_pair *lean;
	size_t lean_left;
	void (*each)(void *context, const struct present_block *block);
	void *context;
};

static struct walk walk_of(const struct present *present, process_id process,
			   enum present_heaps heaps,
			   void (*each)(void *context, const struct present_block *block),
			   void *context)
{
	const struct query *query = present->options.query;
	struct walk walk = {
		.present = present,
		.process = process,
		.heaps = heaps,
		.narrows = query && query_narrows(query),
		.each = each,
		.context = context,
	};

	walk.lean = lean_of(present, process, &walk.lean_left);
	return walk;
}

// So many make the next slice: blocks at one address are not torn apart.
static size_t slice_of(const struct walk *walk)
{
	size_t slice = walk->present->lean.slice;
	size_t count = walk->lean_left < slice ? walk->lean_left : slice;

	while (count < walk->lean_left && walk->lean[count].key == walk->lean[count - 1].key)
		count++;
	return count;
}

// By heap, what is at one address.
static void sort_alike(struct present_block *blocks, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct present_block block = blocks[i];
		size_t at = i;

		for (; at > 0 && by_address(&block, &blocks[at - 1]) < 0; at--)
			blocks[at] = blocks[at - 1];
		blocks[at] = block;
	}
}

// What a made block is not given: whether it is wanted and selected. None is inherited: those are
// in `lives`.
static void tell_made(const struct walk *walk, struct present_block *block)
{
	if (!is_wanted(walk->present, walk->heaps, block->heap))
		return;
	block->inherited = false;
	block->selected = !walk->narrows || selects(walk->present->options.query, block);
	walk->each(walk->context, block);
}

// Two lists by address are merged: what was read from the trace, which is short, and what is lean,
// of which a slice at a time is made into blocks. Damage ends the walk, and present_ok says so
// later.
static void walk_lean(struct walk *walk)
{
	const struct present *present = walk->present;
	const struct present_lean *lean = &present->lean;
	size_t lives_count, capacity = 0, at = 0;
	struct present_block *made = NULL;
	struct present_block *lives = list_lives(present, walk->process, walk->heaps, &lives_count);
	bool ok = true;

	while (ok && walk->lean_left > 0) {
		size_t count = slice_of(walk);

		MEM_ROOM(made, capacity, count);
		ok = lean->make(lean->context, walk->lean, count, made, present->damage);
		walk->lean += count;
		walk->lean_left -= count;
		if (ok && lean->heaps)
			sort_alike(made, count);
		for (size_t i = 0; ok && i < count; i++) {
			while (at < lives_count && by_address(&lives[at], &made[i]) <= 0)
				walk->each(walk->context, &lives[at++]);
			tell_made(walk, &made[i]);
		}
	}
	while (ok && at < lives_count)
		walk->each(walk->context, &lives[at++]);
	MEM_FREE(lives, made);
}

// Straight from one table of blocks where there is one; else what several have is put in order.
static void walk_all(struct walk *walk)
{
	struct listing listing = { .present = walk->present,
				   .process = walk->process,
				   .heaps = walk->heaps,
				   .each = walk->each,
				   .context = walk->context };

	// What was read may be much: it is not listed where it need not be.
	if (walk->lean_left == 0 && lives_each_of(walk->present->lives, walk->process,
						  listing_wants, NULL, &listing, NULL) <= 1)
		lives_each_of(walk->present->lives, walk->process, listing_wants, add_life,
			      &listing, NULL);
	else
		walk_lean(walk);
}

void present_each_block(const struct present *present, process_id process, enum present_heaps heaps,
			void (*each)(void *context, const struct present_block *block),
			void *context)
{
	struct walk walk = walk_of(present, process, heaps, each, context);

	ASSERT(each);
	walk_all(&walk);
}

// A block of `lives` has its date, and is at no address of the list. A failure is present_ok's.
void present_date(const struct present *present, struct present_block *blocks, size_t count)
{
	const struct present_lean *lean = &present->lean;
	struct radix_pair *pairs;
	struct present_block *dated, **whose;
	size_t found = 0;

	if (!lean->date)
		return;
	pairs = mem_alloc(count, sizeof *pairs);
	dated = mem_alloc(count, sizeof *dated);
	whose = mem_alloc(count, sizeof *whose);
	for (size_t i = 0; i < count; i++) {
		size_t among;
		const struct radix_pair *list = lean_of(present, blocks[i].process, &among);
		size_t at = RISING_BELOW(list, among, key, blocks[i].address);

		if (at == among || list[at].key != blocks[i].address)
			continue;
		pairs[found] = list[at];
		whose[found++] = &blocks[i];
	}
	if (lean->date(lean->context, pairs, found, dated, present->damage)) {
		for (size_t i = 0; i < found; i++) {
			whose[i]->number = dated[i].number;
			whose[i]->time_ns = dated[i].time_ns;
		}
	}
	MEM_FREE(pairs, dated, whose);
}

bool present_ok(const struct present *present, struct err *err)
{
	if (present->damage->kind != ERR_NONE)
		*err = *present->damage;
	return present->damage->kind == ERR_NONE;
}

// At most so many: heaps that are not wanted are still among the lean ones.
static size_t most_of(const struct present *present, process_id process, enum present_heaps heaps)
{
	struct listing listing = { .present = present, .heaps = heaps };
	size_t count, lean;

	lean_of(present, process, &lean);
	lives_each_of(present->lives, process, listing_wants, NULL, &listing, &count);
	return count + lean;
}

static void count_block(void *context, const struct present_block *)
{
	++*(size_t *)context;
}

// Where lean blocks are of malloc's heap alone, none of them can be unwanted, and nothing is made.
size_t present_count(const struct present *present, process_id process, enum present_heaps heaps)
{
	size_t count = 0;

	if (!present->lean.heaps)
		return most_of(present, process, heaps);
	present_each_block(present, process, heaps, count_block, &count);
	return count;
}

struct putting {
	uint8_t *list;
	size_t count, each;
	void (*put)(void *item, const struct present_block *block);
};

static void put_item(void *context, const struct present_block *block)
{
	struct putting *putting = context;

	putting->put(putting->list + putting->count++ * putting->each, block);
}

// Where all that is lean is this process's, it is moved to the end of a list that has room for all
// items. Each slice is read before its items are written, and items of 24 bytes do not reach what
// is not yet read: of 10, with 3 of them written, that begins at 10 * 24 - 7 * 16 = 128, which is
// more than 3 * 24.
void *present_take(struct present *present, process_id process, enum present_heaps heaps,
		   size_t each, void (*put)(void *item, const struct present_block *block),
		   size_t *count)
{
	size_t most = most_of(present, process, heaps);
	struct putting putting = { .each = each, .put = put };
	struct walk walk = walk_of(present, process, heaps, put_item, &putting);
	size_t lean_bytes = walk.lean_left * sizeof *walk.lean;
	size_t processes = reader_processes_count(present->reader);
	uint8_t *moved;

	ASSERT(each >= sizeof *walk.lean && each % sizeof(uint64_t) == 0);
	if (walk.lean_left > 0 && walk.lean_left == present->lean.ends[processes - 1]) {
		putting.list = mem_resize(present->lean.list, most, each);
		moved = putting.list + most * each - lean_bytes;
		memmove(moved, putting.list, lean_bytes);
		walk.lean = (const struct radix_pair *)moved;
		present->lean.list = NULL;
	} else {
		putting.list = mem_alloc_table(most + 1, each);
	}
	walk_all(&walk);
	ASSERT(putting.count <= most);
	*count = putting.count;
	return putting.list;
}

void present_forget_blocks(struct present *present)
{
	lives_free(present->lives);
	mem_free(present->lean.list);
	present->lives = NULL;
	present->lean.list = NULL;
}

void present_claim_whole(struct present *present, process_id process, uint64_t address)
{
	space_claim_whole(present->space, process, address);
}

void present_claim(struct present *present, process_id process, uint64_t address)
{
	space_claim(present->space, process, address);
}

const struct space *present_space(const struct present *present)
{
	return present->space;
}

// At exit each process has its own moment.
uint64_t present_time(const struct present *present, process_id process)
{
	const struct trace_process *of = reader_process(present->reader, process);

	if (!present->options.at_exit)
		return present->options.edge.time_ns;
	return of && of->ended_ns != UINT64_MAX ? of->ended_ns : moment_duration(present->reader);
}

uint64_t present_events(const struct present *present)
{
	return present->events;
}
