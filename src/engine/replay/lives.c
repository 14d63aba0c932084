// Blocks in tables by address, their records in a list, and the halves of reallocs by thread.
//
// A block's record is in `list`, and what the table by address has of it is the place there. Places
// that are free are chained through `number`: for example, after blocks 1, 2 and 3 began and 2 and
// then 3 ended, spare is 3, list[3].number is 2, list[2].number is 0; the next block that begins
// takes place 3, and the one after it place 2.
//
// What was begun and ended by one thread's realloc may have another thread's events between. The
// first half keeps the block that it ended in its thread's lives_half, open until the thread's next
// call on malloc's heap. Should that say that the realloc failed, the block is put back as it was,
// under the same number, and the watcher is told that it never ended.
#include "engine/replay/lives.h"

#include "base/mem.h"
#include "base/radix.h"
#include "engine/moment.h"
#include "engine/query.h"
#include "engine/replay/blocks.h"
#include "trace/effect.h"
#include "trace/reader_pass.h"

// The blocks of one heap of one process; their `site` is a place in lives->list, their `owner` the
// tag + 1. Lean: the stack, and the thread + 1.
struct lives_heap {
	process_id process;
	heap_id heap;
	struct blocks blocks;
};

// The first half of a realloc whose second half may still come.
struct lives_half {
	bool open;
	struct lives_block block; // that it ended
	struct lives_end end;
};

struct lives {
	const struct reader *reader;
	struct lives_watcher watcher;
	const struct map *undone;
	bool lean;              // without `list`
	uint32_t share, shares; // lives_share
	// From 1; `number` of a spare place is the next spare one. It is read all over: so the
	// system is asked for large pages.
	struct lives_block *list;
	struct mem_area area; // where it is
	size_t count;
	size_t spare;
	struct lives_heap *heaps;
	size_t heaps_count, heaps_capacity;
	struct map heap_of;    // process << 32 | heap: heap + 1
	size_t latest;         // of heaps: the one that was asked for last
	struct map *inherited; // by process: addresses of such blocks that were freed
	size_t processes_count, processes_capacity;
	struct lives_half *halves; // by thread
	size_t threads_count, threads_capacity;
	uint64_t next_number;
};

// Places begin with 1, so that a spare of 0 says that there is none.
struct lives *lives_new(const struct reader *reader, const struct lives_watcher *watcher,
			const struct map *undone)
{
	struct lives *lives = mem_alloc(1, sizeof *lives);

	lives->reader = reader;
	if (watcher)
		lives->watcher = *watcher;
	lives->undone = undone;
	lives->count = 1;
	return lives;
}

struct lives *lives_new_lean(const struct reader *reader)
{
	struct lives *lives = lives_new(reader, NULL, NULL);

	lives->lean = true;
	return lives;
}

void lives_share(struct lives *lives, uint32_t share, uint32_t shares)
{
	ASSERT(share < shares && lives->count == 1);
	lives->share = share;
	lives->shares = shares;
}

static inline bool is_mine(const struct lives *lives, uint64_t address)
{
	return lives->shares <= 1 || lives_share_of(address, lives->shares) == lives->share;
}

void lives_free(struct lives *lives)
{
	if (!lives)
		return;
	for (size_t i = 0; i < lives->heaps_count; i++)
		blocks_fini(&lives->heaps[i].blocks);
	for (size_t i = 0; i < lives->processes_count; i++)
		map_fini(&lives->inherited[i]);
	map_fini(&lives->heap_of);
	mem_area_fini(&lives->area);
	MEM_FREE(lives->heaps, lives->inherited, lives->halves, lives);
}

// The heap that was asked for last is mostly the one that is asked for next.
static struct blocks *blocks_of(struct lives *lives, process_id process, heap_id heap)
{
	uint64_t *at;
	bool added;

	if (lives->heaps_count) {
		struct lives_heap *latest = &lives->heaps[lives->latest];

		if (latest->process == process && latest->heap == heap)
			return &latest->blocks;
	}
	at = map_put(&lives->heap_of, (uint64_t)process << 32 | heap, &added);
	if (added) {
		*MEM_ADD(lives->heaps, lives->heaps_count, lives->heaps_capacity) =
			(struct lives_heap){ process, heap, { .roomy = !lives->lean } };
		*at = lives->heaps_count;
	}
	lives->latest = (size_t)*at - 1;
	return &lives->heaps[lives->latest].blocks;
}

static struct map *inherited_of(struct lives *lives, process_id process)
{
	return MEM_FILL(lives->inherited, lives->processes_count, lives->processes_capacity,
			process);
}

static struct lives_half *half_of(struct lives *lives, thread_id thread)
{
	return MEM_FILL(lives->halves, lives->threads_count, lives->threads_capacity, thread);
}

// ---- the list ----

// A place in the list has 32 bits, as the tables have them.
static size_t keep(struct lives *lives, const struct lives_block *block)
{
	size_t at = lives->spare;

	if (at) {
		lives->spare = (size_t)lives->list[at].number;
		__builtin_prefetch(&lives->list[lives->spare], 1); // for the next one
	} else {
		at = lives->count++;
		ASSERT(at < UINT32_MAX);
		mem_area_grow(&lives->area, lives->count * sizeof *lives->list);
		lives->list = lives->area.at;
	}
	lives->list[at] = *block;
	return at;
}

// Its copy is the caller's; the place is the next one that is taken.
static struct lives_block drop(struct lives *lives, size_t at)
{
	struct lives_block block = lives->list[at];

	lives->list[at].number = lives->spare;
	lives->spare = at;
	return block;
}

// A block that is in the table of a heap, or was. A lean table has stack and thread of it alone;
// the rest is made of these. Where the thread is of another process, the block was copied by a
// fork.
static struct lives_block made_of(const struct lives *lives, process_id process, heap_id heap,
				  const struct block *slot, uint64_t address, uint64_t size)
{
	const struct trace_thread *thread;

	if (!lives->lean) {
		ASSERT(lives->list[slot->site].address == address);
		return lives->list[slot->site];
	}
	thread = reader_thread(lives->reader, slot->owner - 1);
	return (struct lives_block){
		.address = address,
		.size = size,
		.process = thread ? thread->process : process,
		.thread = slot->owner - 1,
		.stack = slot->site,
		.heap = heap,
		.origin = thread && thread->process != process ? LIVES_COPY : LIVES_BEGUN,
	};
}

// ---- beginning and end ----

static struct lives_end end_by(const struct trace_event *event, enum lives_cause cause)
{
	return (struct lives_end){
		.cause = cause,
		.number = event->number,
		.time_ns = event->time_ns,
		.thread = event->thread,
		.stack = cause == LIVES_LOST ? 0 : event->stack,
	};
}

static void tell_end(struct lives *lives, const struct lives_block *block,
		     const struct lives_end *end)
{
	if (lives->watcher.end)
		lives->watcher.end(lives->watcher.context, block, end);
}

// Put a block where none should be in a process; one that is there ended unseen. A lean table says
// nothing of that: who uses it asks at the end for what lives.
static void place(struct lives *lives, process_id process, const struct lives_block *block,
		  const struct trace_event *event)
{
	struct blocks *blocks = blocks_of(lives, process, block->heap);
	bool added;
	struct block *slot = blocks_put(blocks, block->address, &added);

	if (!added && !lives->lean) {
		struct lives_block lost = drop(lives, slot->site);
		struct lives_end end = end_by(event, LIVES_LOST);

		tell_end(lives, &lost, &end);
	}
	blocks_set_size(blocks, slot, block->size);
	if (lives->lean) {
		ASSERT(block->thread != TRACE_NONE);
		slot->site = block->stack;
		slot->owner = block->thread + 1;
		return;
	}
	slot->owner = block->tag + 1;
	slot->site = (uint32_t)keep(lives, block);
}

// `moved`: by a realloc. `old_address` is where the block was before; 0: it was nowhere, or that is
// not known.
static void begin(struct lives *lives, const struct trace_event *event, process_id process,
		  bool moved, uint64_t old_address)
{
	const struct lives_block block = {
		.address = event->address,
		.size = event->size,
		.number = event->number,
		.time_ns = event->time_ns,
		.old_address = old_address,
		.process = process,
		.thread = event->thread,
		.stack = event->stack,
		.heap = event->heap,
		.kind = event->kind,
		.moved = moved,
	};

	if (is_mine(lives, block.address))
		place(lives, process, &block, event);
	if (lives->watcher.begin)
		lives->watcher.begin(lives->watcher.context, &block);
}

// A block that no event began. An address that a forked process frees for the first time is of its
// parent's; the second time it is an orphan. A lean table makes no difference.
static struct lives_block unknown(struct lives *lives, process_id process,
				  const struct trace_event *event, uint64_t address)
{
	struct lives_block block = {
		.address = address,
		.number = event->number,
		.time_ns = event->time_ns,
		.process = process,
		.thread = event->thread,
		.heap = event->heap,
		.origin = LIVES_ORPHAN,
	};
	bool first = false;

	if (trace_start_inherits(reader_process(lives->reader, process)->start))
		map_put(inherited_of(lives, process), address, &first);
	if (first)
		block.origin = LIVES_INHERITED;
	return block;
}

// The block is told as it was: from its place in the list, or of a lean table made from what that
// has; where nothing lives at the address, as one that no event began.
static struct lives_block end(struct lives *lives, const struct trace_event *event,
			      process_id process, uint64_t address, enum lives_cause cause)
{
	struct lives_end how = end_by(event, cause);
	struct lives_block block;
	struct block slot;
	uint64_t size;

	if (!is_mine(lives, address))
		return (struct lives_block){ .address = address, .origin = LIVES_ORPHAN };
	if (!blocks_take(blocks_of(lives, process, event->heap), address, &slot, &size))
		block = unknown(lives, process, event, address);
	else if (lives->lean)
		block = made_of(lives, process, event->heap, &slot, address, size);
	else
		block = drop(lives, slot.site);
	tell_end(lives, &block, &how);
	return block;
}

// The realloc failed: what its first half ended lives on, with its number and time, for it never
// ended. Where the half was of nothing known, what it was taken for is taken back.
static void undo(struct lives *lives, const struct trace_event *event, process_id process,
		 const struct lives_half *half)
{
	if (!half->open || half->block.address != event->address || !is_mine(lives, event->address))
		return;
	if (half->block.origin == LIVES_BEGUN || half->block.origin == LIVES_COPY)
		place(lives, process, &half->block, event);
	else if (half->block.origin == LIVES_INHERITED)
		map_remove(inherited_of(lives, process), event->address);
	if (lives->watcher.undo)
		lives->watcher.undo(lives->watcher.context, &half->block, &half->end);
}

// ---- many at once ----

static bool is_among(const struct lives_heap *heap, const struct blocks *only, process_id process)
{
	return only ? &heap->blocks == only : process == TRACE_NONE || heap->process == process;
}

// Numbers and places of all blocks of a heap (`only`), or of a process (TRACE_NONE: of all); NULL
// where there are none. The caller frees it.
static struct radix_pair *gather(struct lives *lives, const struct blocks *only, process_id process,
				 size_t *count)
{
	struct radix_pair *pairs;
	size_t all = 0;

	*count = 0;
	for (size_t i = 0; i < lives->heaps_count; i++)
		if (is_among(&lives->heaps[i], only, process))
			all += lives->heaps[i].blocks.count;
	if (!all)
		return NULL;
	pairs = mem_alloc_table(all, sizeof *pairs);
	for (size_t i = 0; i < lives->heaps_count; i++) {
		const struct lives_heap *heap = &lives->heaps[i];
		struct blocks_cursor cursor = { 0 };
		const struct block *block;

		if (!is_among(heap, only, process))
			continue;
		while ((block = blocks_next(&heap->blocks, &cursor)))
			pairs[(*count)++] =
				(struct radix_pair){ lives->list[block->site].number, block->site };
	}
	ASSERT(*count == all);
	return pairs;
}

// Into the order in which they began. By digits: of ten million blocks that takes a few passes and
// no comparisons.
static void sort_pairs(struct radix_pair *pairs, size_t count)
{
	struct radix_pair *scratch = mem_alloc_table(count, sizeof *scratch);

	radix_sort_pairs(pairs, scratch, count);
	mem_free(scratch);
}

// End these blocks, of which `only` and `process` say as above. Tables are emptied before anything
// is told, so that a watcher that asks finds nothing of them; and before the list is sorted, which
// takes memory.
static void end_all(struct lives *lives, const struct blocks *only, process_id process,
		    const struct lives_end *how)
{
	size_t count = 0;
	struct radix_pair *pairs = lives->lean ? NULL : gather(lives, only, process, &count);

	for (size_t i = 0; i < lives->heaps_count; i++) {
		struct lives_heap *heap = &lives->heaps[i];

		if (!is_among(heap, only, process))
			continue;
		blocks_fini(&heap->blocks);
		heap->blocks = (struct blocks){ .roomy = !lives->lean };
	}
	sort_pairs(pairs, count);
	for (size_t i = 0; i < count; i++) {
		struct lives_block block = drop(lives, pairs[i].value);

		tell_end(lives, &block, how);
	}
	mem_free(pairs);
}

// ---- items ----

// A realloc that is known to fail ends nothing, if the caller has found those before
// (lives_find_undone).
static void end_half(struct lives *lives, const struct trace_event *event, process_id process,
		     struct lives_half *half)
{
	half->open = !lives->undone || !map_find(lives->undone, event->number);
	if (!half->open)
		return;
	half->block = end(lives, event, process, event->address, LIVES_REALLOC);
	half->end = end_by(event, LIVES_REALLOC);
}

// A heap that is destroyed, or reset: which of them is the same to its blocks.
static void destroy(struct lives *lives, const struct trace_event *event, process_id process)
{
	struct lives_end how = end_by(event, LIVES_DESTROY);

	end_all(lives, blocks_of(lives, process, event->heap), process, &how);
}

// Two passes: first the tables are fetched, then what they lead to.
void lives_expect(struct lives *lives, const struct trace_event *events, uint32_t count)
{
	const struct trace_thread *thread = count ? reader_thread(lives->reader, events->thread)
						  : NULL;

	if (!thread || !reader_process(lives->reader, thread->process))
		return;
	for (uint32_t i = 0; i < count; i++)
		blocks_expect(blocks_of(lives, thread->process, events[i].heap),
			      effect_ended(&events[i]));
	for (uint32_t i = 0; i < count && !lives->lean; i++) {
		const struct block *block =
			blocks_find(blocks_of(lives, thread->process, events[i].heap),
				    effect_ended(&events[i]));

		if (!block)
			continue;
		__builtin_prefetch(&lives->list[block->site], 1);
		if (block->owner > 1 && lives->watcher.expect)
			lives->watcher.expect(lives->watcher.context, block->owner - 1);
	}
}

// In this order: what ends before what begins, for a realloc in place has one address for both; and
// the half is closed last, since a second half asks it what it moved.
void lives_add_event(struct lives *lives, const struct trace_event *event)
{
	const struct trace_thread *thread = reader_thread(lives->reader, event->thread);
	unsigned effect = effect_of(event->kind);
	struct lives_half *half;

	lives->next_number = event->number + 1;
	if (!thread || !reader_process(lives->reader, thread->process))
		return;
	half = half_of(lives, event->thread);
	if (effect & EFFECT_HALF) {
		end_half(lives, event, thread->process, half);
		return;
	}
	if (effect & EFFECT_ENDS)
		end(lives, event, thread->process, effect_ended(event),
		    effect & EFFECT_MOVES ? LIVES_REALLOC : LIVES_FREE);
	if (effect & EFFECT_BEGINS)
		begin(lives, event, thread->process, effect & EFFECT_MOVES,
		      effect & EFFECT_ENDS                  ? event->old_address
		      : effect & EFFECT_MOVES && half->open ? half->block.address
							    : 0);
	if (effect & EFFECT_UNDOES)
		undo(lives, event, thread->process, half);
	if (effect & EFFECT_FAILS && lives->watcher.failed)
		lives->watcher.failed(lives->watcher.context, event);
	if (effect & EFFECT_DESTROYS)
		destroy(lives, event, thread->process);
	if (effect & EFFECT_CALL)
		half->open = false;
}

// In the same order. There is no half to be kept: what could be asked of one is in the event.
void lives_add_settled(struct lives *lives, const struct trace_event *event)
{
	const struct trace_thread *thread = reader_thread(lives->reader, event->thread);
	unsigned effect = effect_of(event->kind);

	ASSERT(!(effect & (EFFECT_UNDOES | EFFECT_FAILS)));
	lives->next_number = event->number + 1;
	if (!effect || !thread || !reader_process(lives->reader, thread->process))
		return;
	if (effect & EFFECT_ENDS)
		end(lives, event, thread->process, effect_ended(event),
		    effect & EFFECT_MOVES ? LIVES_REALLOC : LIVES_FREE);
	if (effect & EFFECT_BEGINS)
		begin(lives, event, thread->process, effect & EFFECT_MOVES, event->old_address);
	if (effect & EFFECT_DESTROYS)
		destroy(lives, event, thread->process);
}

// The first half of a realloc that is open, if one is.
struct lives_open_half {
	bool open;
	uint64_t address;
};

// Of an event with both an end and a beginning the address that ends is in it already.
struct trace_event lives_settle(struct lives_halves *halves, const struct trace_event *event)
{
	const struct trace_thread *thread = reader_thread(halves->reader, event->thread);
	unsigned effect = effect_of(event->kind);
	struct trace_event settled = *event;
	struct lives_open_half *half;

	if (!thread || !effect || !reader_process(halves->reader, thread->process)) {
		settled.kind = TRACE_NONE_KIND;
		return settled;
	}
	half = MEM_REACH(halves->list, halves->capacity, event->thread);
	if (!(effect & EFFECT_ENDS && effect & EFFECT_BEGINS))
		settled.old_address = effect & EFFECT_BEGINS && effect & EFFECT_MOVES && half->open
					      ? half->address
					      : 0;
	if (effect & EFFECT_HALF) {
		half->open = !map_find(halves->undone, event->number);
		half->address = event->address;
		if (!half->open)
			settled.kind = TRACE_NONE_KIND;
	} else if (effect & EFFECT_CALL) {
		half->open = false;
	}
	if (effect & EFFECT_FAILS)
		settled.kind = TRACE_NONE_KIND;
	return settled;
}

void lives_halves_fini(struct lives_halves *halves)
{
	mem_free(halves->list);
	halves->list = NULL;
	halves->capacity = 0;
}

// For the ends of processes and of the trace, which have no number of their own.
void lives_at(struct lives *lives, uint64_t number)
{
	lives->next_number = number;
}

// The end of a process; all others say nothing of blocks.
void lives_add_note(struct lives *lives, const struct trace_note *note)
{
	const struct trace_process *process = reader_process(lives->reader, note->process);
	struct lives_end how = {
		.cause = LIVES_EXIT,
		.number = lives->next_number,
		.time_ns = note->time_ns,
		.thread = TRACE_NONE,
	};

	if (note->kind != TRACE_NOTE_PROCESS_END || !process)
		return;
	if (process->exit == TRACE_EXIT_EXEC)
		how.cause = LIVES_EXEC;
	end_all(lives, NULL, note->process, &how);
	map_clear(inherited_of(lives, note->process));
}

void lives_finish(struct lives *lives, uint64_t time_ns)
{
	const struct lives_end how = {
		.cause = LIVES_RUNNING,
		.number = lives->next_number,
		.time_ns = time_ns,
		.thread = TRACE_NONE,
	};

	end_all(lives, NULL, TRACE_NONE, &how);
}

// The number says whether what lives at the address is the same block still.
bool lives_tag(struct lives *lives, const struct lives_block *block, uint32_t tag, uint32_t *before)
{
	struct blocks *blocks = blocks_of(lives, block->process, block->heap);
	struct block *slot = blocks_find(blocks, block->address);

	ASSERT(tag < LIVES_TAGS && !lives->lean);
	if (!slot || lives->list[slot->site].number != block->number)
		return false;
	if (before)
		*before = lives->list[slot->site].tag;
	lives->list[slot->site].tag = tag;
	slot->owner = tag + 1;
	return true;
}

void lives_put(struct lives *lives, process_id process, const struct lives_block *block)
{
	const struct trace_event now = { .number = lives->next_number, .thread = TRACE_NONE };

	place(lives, process, block, &now);
}

struct heir {
	struct lives *lives;
	process_id parent, child;
	const struct blocks *blocks; // of the parent
};

// Of a lean table, which has no list: the parent's block is made from what the table has.
static void inherit_slot(void *context, const struct block *slot, uint64_t address)
{
	const struct heir *heir = context;
	struct lives_block block = made_of(heir->lives, heir->parent, 0, slot, address,
					   blocks_size(heir->blocks, slot));

	block.origin = LIVES_COPY;
	block.tag = 0;
	lives_put(heir->lives, heir->child, &block);
}

// A fork copies what its parent has at that moment, of malloc's heap alone; in the order in which
// the blocks began, where somebody may ask for that.
void lives_inherit(struct lives *lives, process_id parent, process_id child)
{
	struct heir heir = { .lives = lives, .parent = parent, .child = child };
	struct radix_pair *pairs;
	size_t count;

	blocks_of(lives, child, 0); // so that those of the parent stay where they are
	heir.blocks = blocks_of(lives, parent, 0);
	if (lives->lean) {
		blocks_each(heir.blocks, false, inherit_slot, &heir);
		return;
	}
	pairs = gather(lives, heir.blocks, parent, &count);
	sort_pairs(pairs, count);
	for (size_t i = 0; i < count; i++) {
		struct lives_block block = lives->list[pairs[i].value];

		block.origin = LIVES_COPY;
		block.tag = 0;
		lives_put(lives, child, &block);
	}
	mem_free(pairs);
}

bool lives_read(struct lives *lives, struct reader *reader, struct progress *progress)
{
	struct reader_runs runs = { .reader = reader, .progress = progress };
	enum reader_item item = READER_EVENT;
	bool over;

	reader_rewind(reader);
	while (item != READER_END) {
		item = reader_runs_next(&runs);
		lives_expect(lives, runs.events, runs.count);
		for (uint32_t i = 0; i < runs.count; i++)
			lives_add_event(lives, &runs.events[i]);
		if (item == READER_NOTE)
			lives_add_note(lives, &runs.note);
	}
	lives_finish(lives, moment_duration(reader));
	over = reader_over(reader);
	reader_rewind(reader);
	return over;
}

// A query asks of events: so the block is shown to it as the event that began it.
bool lives_selects(const struct query *query, const struct lives_block *block)
{
	const struct trace_event event = {
		.kind = block->kind,
		.number = block->number,
		.time_ns = block->time_ns,
		.address = block->address,
		.size = block->size,
		.thread = block->thread,
		.stack = block->stack,
		.heap = block->heap,
	};

	return query_has_process(query, block->process) && query_has_thread(query, block->thread) &&
	       query_has_stack(query, block->stack) && query_has_event(query, &event);
}

struct each_of {
	const struct lives *lives;
	const struct lives_heap *heap;
	void (*block)(void *context, const struct lives_block *block);
	void (*address)(void *context, uint64_t address);
	void *context;
};

static void tell_block(void *context, const struct block *slot, uint64_t address)
{
	const struct each_of *each = context;
	const struct lives_heap *heap = each->heap;
	const struct lives_block block = made_of(each->lives, heap->process, heap->heap, slot,
						 address, blocks_size(&heap->blocks, slot));

	each->block(each->context, &block);
}

static void tell_address(void *context, const struct block *, uint64_t address)
{
	const struct each_of *each = context;

	each->address(each->context, address);
}

size_t lives_each_of(const struct lives *lives, process_id process,
		     bool (*wants)(void *context, heap_id heap),
		     void (*each)(void *context, const struct lives_block *block), void *context,
		     size_t *count)
{
	struct each_of telling = { .lives = lives, .block = each, .context = context };
	size_t heaps = 0, all = 0;

	for (size_t i = 0; i < lives->heaps_count; i++) {
		const struct lives_heap *heap = &lives->heaps[i];

		if (heap->process != process || heap->blocks.count == 0 ||
		    (wants ? !wants(context, heap->heap) : heap->heap != 0))
			continue;
		heaps++;
		all += heap->blocks.count;
		telling.heap = heap;
		if (each)
			blocks_each(&heap->blocks, true, tell_block, &telling);
	}
	if (count)
		*count = all;
	return heaps;
}

void lives_each_address(const struct lives *lives, process_id process,
			void (*each)(void *context, uint64_t address), void *context)
{
	struct each_of telling = { .address = each, .context = context };

	ASSERT(each);
	for (size_t i = 0; i < lives->heaps_count; i++)
		if (lives->heaps[i].process == process && lives->heaps[i].heap == 0)
			blocks_each(&lives->heaps[i].blocks, false, tell_address, &telling);
}

void lives_each(struct lives *lives, void (*each)(void *context, const struct lives_block *block),
		void *context)
{
	size_t count;
	struct radix_pair *pairs = gather(lives, NULL, TRACE_NONE, &count);

	ASSERT(each && !lives->lean);
	sort_pairs(pairs, count);
	for (size_t i = 0; i < count; i++)
		each(context, &lives->list[pairs[i].value]);
	mem_free(pairs);
}

// ---- what will be undone ----

// The first half of each thread that is open, if one is: its number and address.
struct open_half {
	bool open;
	uint64_t number, address;
};

// A half is kept last, as it is a call itself: the half of a new realloc must not close itself.
static void look(struct open_half *half, const struct trace_event *event, struct map *undone)
{
	unsigned effect = effect_of(event->kind);

	if (effect & EFFECT_UNDOES && half->open && half->address == event->address)
		map_put(undone, half->number, NULL);
	if (effect & EFFECT_CALL)
		half->open = false;
	if (effect & EFFECT_HALF)
		*half = (struct open_half){ true, event->number, event->address };
}

// One reading of the trace: a first half is undone where its thread's next call says so, of the
// same address. `sample` (may be NULL) gets all items, too.
static void read_undone(struct reader *reader, struct map *undone, struct lives *sample,
			struct progress *progress)
{
	struct open_half *halves = NULL;
	struct reader_pass pass = reader_pass_begin(reader, progress);
	size_t capacity = 0;

	while (reader_pass_next(&pass) != READER_END) {
		thread_id thread = pass.event.thread;

		if (sample && pass.item == READER_NOTE)
			lives_add_note(sample, &pass.note);
		if (pass.item == READER_NOTE || thread >= reader_threads_count(reader))
			continue;
		look(MEM_REACH(halves, capacity, thread), &pass.event, undone);
		if (sample)
			lives_add_event(sample, &pass.event);
	}
	mem_free(halves);
	reader_rewind(reader);
}

void lives_find_undone(struct reader *reader, struct map *undone, struct progress *progress)
{
	read_undone(reader, undone, NULL, progress);
}

// A block is in the list and, with its share of free slots, in a table.
uint32_t lives_shares_for(uint64_t blocks, uint64_t memory_bytes)
{
	enum { BLOCK_BYTES = 144, SHARES_MAX = 200 };
	uint64_t shares = blocks * BLOCK_BYTES / (memory_bytes + 1) + 1;

	return shares < SHARES_MAX ? (uint32_t)shares : SHARES_MAX;
}

// A list of blocks never gets shorter, so its length says how many lived at one time.
uint32_t lives_find_shares(struct reader *reader, struct map *undone, uint64_t memory_bytes,
			   struct progress *progress)
{
	enum { SAMPLES = 64 };
	struct lives *sample = lives_new(reader, NULL, NULL);
	uint64_t blocks;

	lives_share(sample, 0, SAMPLES);
	read_undone(reader, undone, sample, progress);
	blocks = (sample->count - 1) * SAMPLES;
	lives_free(sample);
	return lives_shares_for(blocks, memory_bytes);
}
