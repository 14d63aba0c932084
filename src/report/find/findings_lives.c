// What the lives of blocks tell one by one, in one pass: who frees what, what grows by being moved,
// what is freed that does not live, what failed. A second pass only where something was freed that
// does not live: for what was there before.
//
// Where the trace has an index that knows which block a call ends, the pass follows that
// (index_lives.h), in a third of the time and without a table of what lives; else it keeps one
// (lives.h). The two differ in where it is written down that a block grew: `grown_at`, or its tag.
#include "report/find/findings_own.h"

#include "base/mem.h"
#include "base/radix.h"
#include "base/sort.h"
#include "engine/replay/lives.h"
#include "engine/window_source.h"
#include "trace/effect.h"
#include "trace/reader_pass.h"

#include <stdlib.h>

enum {
	ORPHANS_MAX = 1000,
	LAST_PART = 20, // of the time that a process took: in which it clears up
};

// A buffer that grew at least once.
struct chain {
	uint64_t steps, constant, copied, delta;
	bool by_copy;
	// Of the block that it has got to.
	process_id process;
	stack_id stack;
	uint64_t size;
};

// Of each thread.
struct thread_facts {
	struct lives_block latest;  // that it allocated
	bool latest_ended;          // known where an index is followed
	struct lives_block resized; // that its realloc ended, until it begins again
	bool resizing;
	struct chain chain; // of that one
};

// Of each process that ended: the part of its time in which it clears up.
struct last_part {
	uint64_t began_ns; // 0: it runs on
	uint64_t first;    // number of the first block that began in it
};

// All that one pass knows. Sets find the row of a fact by its key; the rows themselves are in the
// facts, which outlive the pass.
struct pass {
	struct findings *findings;
	struct findings_facts *facts;
	struct index_set pairs, chains, failed;
	struct lives *lives; // a block's tag is its place in `grown`; 0: it did not grow
	struct map grown_at; // without `lives`: the same, by the block's number
	struct chain *grown; // from 1; `steps` of a spare place is the next spare one
	size_t grown_count, grown_capacity, spare;
	struct thread_facts *threads;
	size_t threads_count, threads_capacity;
	struct last_part *parts; // by process
	size_t parts_count, parts_capacity;
};

static void pass_fini(struct pass *pass)
{
	lives_free(pass->lives);
	index_set_fini(&pass->pairs);
	index_set_fini(&pass->chains);
	index_set_fini(&pass->failed);
	map_fini(&pass->grown_at);
	MEM_FREE(pass->grown, pass->threads, pass->parts);
}

static struct thread_facts *thread_of(struct pass *pass, thread_id thread)
{
	ASSERT(thread != TRACE_NONE);
	return MEM_FILL(pass->threads, pass->threads_count, pass->threads_capacity, thread);
}

// Whether the filters select it.
static bool is_asked_for(const struct pass *pass, const struct lives_block *block)
{
	return block->origin == LIVES_BEGUN && findings_is_general(pass->findings, block->heap) &&
	       lives_selects(&pass->findings->asked->selection.query, block);
}

// ---- buffers that grow ----

// Whether the row at a position is of this process, stack and way (index_set.h).
static bool is_chains(const void *context, uint32_t position, const void *key)
{
	const struct findings_facts *facts = context;
	const struct findings_chains *there = &facts->chains[position], *wanted = key;

	ASSERT(position < facts->chains_count);
	return there->process == wanted->process && there->stack == wanted->stack &&
	       there->by_copy == wanted->by_copy;
}

// The buffer has its last size: what it took to get there.
static void add_chain(struct pass *pass, const struct chain *chain)
{
	struct findings_facts *facts = pass->facts;
	const struct findings_chains wanted = {
		.process = chain->process,
		.stack = chain->stack,
		.by_copy = chain->by_copy,
	};
	const uint64_t numbers[] = { wanted.process, wanted.stack, wanted.by_copy };
	uint32_t at = index_set_put(&pass->chains, index_set_hash(numbers, 3), is_chains, facts,
				    &wanted, (uint32_t)facts->chains_count);
	struct findings_chains *sum;

	ASSERT(chain->steps > 0);
	if (at == facts->chains_count) {
		*MEM_ADD(facts->chains, facts->chains_count, facts->chains_capacity) = wanted;
	}
	ASSERT(at < facts->chains_count);
	sum = &facts->chains[at];
	sum->chains++;
	sum->steps += chain->steps;
	sum->constant += chain->constant;
	sum->copied += chain->copied;
	if (chain->steps > sum->longest)
		sum->longest = chain->steps;
	if (chain->size > sum->size_max)
		sum->size_max = chain->size;
}

// Where a block's chain is, 0 if it has none; with an index the note is taken away, since the block
// ends.
static size_t grown_place(struct pass *pass, const struct lives_block *block)
{
	const uint64_t *found;
	size_t at;

	// An index gives blocks without tags, so the tag is 0 there, too.
	if (pass->lives || pass->grown_at.count == 0)
		return block->tag;
	found = map_find(&pass->grown_at, block->number);
	at = found ? (size_t)*found : 0;
	if (found)
		map_remove(&pass->grown_at, block->number);
	return at;
}

// A place in `grown` that is of no block any more is the next one that is used.
static void drop_chain(struct pass *pass, size_t at)
{
	ASSERT(at > 0 && at <= pass->grown_count);
	pass->grown[at].steps = pass->spare;
	pass->spare = at;
}

// Take what is known of the growth of a block that ended; none is a chain without steps.
static struct chain take_chain(struct pass *pass, const struct lives_block *block)
{
	struct chain chain = { 0 };
	size_t at = grown_place(pass, block);

	if (!at)
		return chain;
	chain = pass->grown[at];
	drop_chain(pass, at);
	return chain;
}

// Write down where the growth of a block is; false: the block does not live any more. `*before` is
// where it was until now: of several buffers whose copy one block may be, the last one counts.
static bool mark_grown(struct pass *pass, const struct lives_block *block, size_t at,
		       size_t *before)
{
	const struct thread_facts *thread = thread_of(pass, block->thread);
	uint32_t tag = 0;
	uint64_t *place;
	bool lives;

	ASSERT(at < LIVES_TAGS);
	if (pass->lives) {
		lives = lives_tag(pass->lives, block, (uint32_t)at, &tag);
		*before = tag;
		return lives;
	}
	// Besides one that just began, blocks are asked about that their threads began last.
	if (thread->latest.number == block->number && thread->latest_ended)
		return false;
	place = map_put(&pass->grown_at, block->number, NULL);
	*before = (size_t)*place;
	*place = at;
	return true;
}

// Puts the chain down for a block that lives. A place that became free is used again: the list is
// as long as the most that ever grew at one time.
static void keep_chain(struct pass *pass, const struct lives_block *block,
		       const struct chain *chain)
{
	size_t at = pass->spare, before = 0;

	if (chain->steps == 0)
		return;
	if (at) {
		pass->spare = (size_t)pass->grown[at].steps;
	} else {
		at = ++pass->grown_count;
		MEM_ROOM(pass->grown, pass->grown_capacity, at + 1);
	}
	ASSERT(at > 0 && at <= pass->grown_count);
	pass->grown[at] = *chain;
	pass->grown[at].process = block->process;
	pass->grown[at].stack = block->stack;
	pass->grown[at].size = block->size;
	if (!mark_grown(pass, block, at, &before))
		before = at; // it is over, too
	if (before)
		drop_chain(pass, before);
}

// `block` is `old`, which was larger or smaller, and lies elsewhere or not.
static void grow(struct pass *pass, const struct lives_block *old, const struct lives_block *block,
		 struct chain chain, bool by_copy)
{
	uint64_t delta = block->size - old->size;

	if (block->size > old->size) {
		chain.steps++;
		// 100, 200, 300 grows by a constant, 100, 200, 400 does not: the first copies 1 + 2
		// + … times what it holds.
		chain.constant += chain.delta == delta;
		chain.delta = delta;
		chain.by_copy = by_copy;
		if (block->address != old->address)
			chain.copied += old->size;
	}
	keep_chain(pass, block, &chain);
}

// ---- who frees what ----

static bool is_pair(const void *context, uint32_t position, const void *key)
{
	const struct findings_facts *facts = context;
	const struct findings_pair *there = &facts->pairs[position], *wanted = key;

	ASSERT(position < facts->pairs_count);
	return there->process == wanted->process && there->stack == wanted->stack &&
	       there->freed_by == wanted->freed_by;
}

static struct findings_pair *pair_of(struct pass *pass, const struct lives_block *block,
				     stack_id freed_by)
{
	struct findings_facts *facts = pass->facts;
	const struct findings_pair wanted = {
		.process = block->process,
		.stack = block->stack,
		.freed_by = freed_by,
	};
	const uint64_t numbers[] = { wanted.process, wanted.stack, wanted.freed_by };
	uint32_t at = index_set_put(&pass->pairs, index_set_hash(numbers, 3), is_pair, facts,
				    &wanted, (uint32_t)facts->pairs_count);

	if (at == facts->pairs_count) {
		*MEM_ADD(facts->pairs, facts->pairs_count, facts->pairs_capacity) = wanted;
	}
	ASSERT(at < facts->pairs_count);
	return &facts->pairs[at];
}

// A block is temporary if nothing was allocated by its thread since: then it is still the latest.
static void count_free(struct pass *pass, const struct lives_block *block,
		       const struct lives_end *end)
{
	struct findings_pair *pair = pair_of(pass, block, end->stack);

	ASSERT(end->cause == LIVES_FREE);
	pair->count++;
	pair->bytes += block->size;
	if (block->size > pair->size_max)
		pair->size_max = block->size;
	pair->elsewhere += end->thread != block->thread;
	pair->temporary += end->thread == block->thread &&
			   thread_of(pass, end->thread)->latest.number == block->number;
}

// A container that copies: what its thread allocated last is larger, was asked for by the same
// stack, and now the old one is freed.
static bool is_copied(struct pass *pass, const struct lives_block *block,
		      const struct lives_end *end)
{
	const struct lives_block *latest = &thread_of(pass, end->thread)->latest;

	// At most four times as large: a vector doubles, and what is larger is another buffer.
	return latest->number > block->number && latest->process == block->process &&
	       latest->stack == block->stack && latest->heap == block->heap && block->stack &&
	       latest->size > block->size && latest->size / 4 <= block->size;
}

// A free of what is not known to live, of the filters' processes and threads. The first thousand
// are kept and all are counted; a block whose end was only lost is none.
static void keep_orphan(struct pass *pass, const struct lives_block *block,
			const struct lives_end *end)
{
	struct findings_facts *facts = pass->facts;
	const struct query *query = &pass->findings->asked->selection.query;

	if (!query_has_process(query, block->process) || !query_has_thread(query, end->thread) ||
	    end->cause == LIVES_LOST || !findings_is_general(pass->findings, block->heap))
		return;
	if (facts->orphans_count == ORPHANS_MAX)
		return;
	*MEM_ADD(facts->orphans, facts->orphans_count, facts->orphans_capacity) =
		(struct findings_orphan){
			.process = block->process,
			.thread = end->thread,
			.stack = end->stack,
			.heap = block->heap,
			.address = block->address,
			.number = end->number,
			.time_ns = end->time_ns,
		};
}

// Put together from the event as if it were a free of that address.
static void keep_refused(struct pass *pass, const struct trace_event *event, process_id process)
{
	const struct lives_block block = {
		.process = process,
		.heap = event->heap,
		.address = event->address,
	};
	const struct lives_end end = {
		.cause = LIVES_FREE,
		.thread = event->thread,
		.stack = event->stack,
		.number = event->number,
		.time_ns = event->time_ns,
	};
	size_t count = pass->facts->orphans_count;

	keep_orphan(pass, &block, &end);
	if (pass->facts->orphans_count > count)
		pass->facts->orphans[count].refused = true;
}

// ---- being told ----

static struct findings_last *last_of(struct findings_facts *facts, process_id process)
{
	return MEM_FILL(facts->lasts, facts->lasts_count, facts->lasts_capacity, process);
}

uint64_t findings_last_part(const struct trace_process *process)
{
	if (process->exit == TRACE_EXIT_UNKNOWN || process->ended_ns <= process->began_ns)
		return 0;
	return process->ended_ns - (process->ended_ns - process->began_ns) / LAST_PART;
}

// Made for all processes up to this one, as they come.
static struct last_part *last_part_of(struct pass *pass, process_id process)
{
	while (pass->parts_count <= process) {
		const struct trace_process *of = reader_process(pass->findings->asked->reader,
								(process_id)pass->parts_count);
		struct last_part part = { .first = UINT64_MAX };

		if (of)
			part.began_ns = findings_last_part(of);
		*MEM_ADD(pass->parts, pass->parts_count, pass->parts_capacity) = part;
	}
	return &pass->parts[process];
}

// The second half of a realloc begins the block that `resized` was: its chain goes on. A pool's
// block is left out, as the block of malloc that it lies in is counted already.
static void on_begin(void *context, const struct lives_block *block)
{
	struct pass *pass = context;
	struct thread_facts *thread = thread_of(pass, block->thread);
	struct findings_last *last;
	struct last_part *part;

	if (!findings_is_general(pass->findings, block->heap))
		return;
	if (pass->facts->arenas)
		findings_arenas_begin(pass->facts->arenas, block);
	if (block->moved && thread->resizing && thread->resized.address == block->old_address)
		grow(pass, &thread->resized, block, thread->chain, false);
	thread->resizing = false;
	thread->latest = *block;
	thread->latest_ended = false;
	part = last_part_of(pass, block->process);
	if (block->time_ns >= part->began_ns && block->number < part->first)
		part->first = block->number;
	last = last_of(pass->facts, block->process);
	last->stack = block->stack;
	last->size = block->size;
	last->time_ns = block->time_ns;
}

// A block that was there before the process's last part began, and is freed in it.
static void count_cleared(struct pass *pass, const struct lives_block *block, uint64_t freed_ns)
{
	const struct last_part *part = last_part_of(pass, block->process);

	if (part->began_ns && freed_ns >= part->began_ns && block->number < part->first)
		last_of(pass->facts, block->process)->cleared += block->size;
}

// A block that a realloc ends lives on in `resized`, until the block that it became begins in the
// same thread. A free may be the end of a copy by hand: then the chain goes on with the thread's
// latest block (is_copied).
static void on_end(void *context, const struct lives_block *block, const struct lives_end *end)
{
	struct pass *pass = context;
	struct chain chain = take_chain(pass, block);
	struct thread_facts *thread = thread_of(pass, block->thread);

	thread->latest_ended |= thread->latest.number == block->number;
	if (pass->facts->arenas)
		findings_arenas_end(pass->facts->arenas, block, end);
	if (block->origin == LIVES_ORPHAN)
		keep_orphan(pass, block, end);
	if (!is_asked_for(pass, block))
		return;
	if (end->cause == LIVES_REALLOC) {
		thread = thread_of(pass, end->thread);
		thread->resized = *block;
		thread->resizing = true;
		thread->chain = chain;
		return;
	}
	if (end->cause == LIVES_FREE) {
		count_free(pass, block, end);
		count_cleared(pass, block, end->time_ns);
		if ((!chain.steps || chain.by_copy) && is_copied(pass, block, end)) {
			grow(pass, block, &thread_of(pass, end->thread)->latest, chain, true);
			return;
		}
	}
	if (chain.steps)
		add_chain(pass, &chain);
}

SORT_ORDER(compare_pairs, struct radix_pair, SORT_RISES(key))

// What of a process (TRACE_NONE: of all) still lives ends, in the order in which it began.
static void on_over(void *context, process_id process)
{
	struct pass *pass = context;
	struct radix_pair *list = mem_alloc(pass->grown_at.count + 1, sizeof *list);
	uint64_t number, place;
	size_t count = 0, at = 0;

	while (map_next(&pass->grown_at, &at, &number, &place))
		if (process == TRACE_NONE || pass->grown[place].process == process)
			list[count++] = (struct radix_pair){ number, place };
	// By number, so that what is found does not depend on where a hash table has it.
	ASSERT(count <= pass->grown_at.count);
	qsort(list, count, sizeof *list, compare_pairs);
	for (size_t i = 0; i < count; i++) {
		add_chain(pass, &pass->grown[list[i].value]);
		map_remove(&pass->grown_at, list[i].key);
	}
	mem_free(list);
}

// The block of this tag ends soon: fetches what will be needed (lives.h).
static void expect(void *context, uint32_t tag)
{
	const struct pass *pass = context;

	__builtin_prefetch(&pass->grown[tag], 1);
}

// It never ended: nor did its growth.
static void on_undo(void *context, const struct lives_block *block, const struct lives_end *end)
{
	struct pass *pass = context;
	struct findings_facts *facts = pass->facts;

	for (size_t i = facts->orphans_count; block->heap && i-- > 0;)
		if (facts->orphans[i].number == end->number)
			facts->orphans[i].refused = true;
	if (block->tag)
		lives_tag(pass->lives, block, 0, NULL); // its place in `grown` is free
	for (size_t i = 0; i < pass->threads_count; i++) {
		struct thread_facts *thread = &pass->threads[i];

		if (!thread->resizing || thread->resized.number != block->number)
			continue;
		thread->resizing = false;
		keep_chain(pass, block, &thread->chain);
	}
}

static bool is_failed(const void *context, uint32_t position, const void *key)
{
	const struct findings_facts *facts = context;
	const struct findings_failed *there = &facts->failed[position], *wanted = key;

	ASSERT(position < facts->failed_count);
	return there->process == wanted->process && there->stack == wanted->stack;
}

// Sums by process and stack. A refused free of Windows comes as a failed realloc of 0 bytes, and is
// an orphan.
static void on_failed(void *context, const struct trace_event *event)
{
	struct pass *pass = context;
	struct findings_facts *facts = pass->facts;
	const struct query *query = &pass->findings->asked->selection.query;
	const struct trace_thread *thread =
		reader_thread(pass->findings->asked->reader, event->thread);
	struct findings_failed wanted = { .stack = event->stack, .size_min = UINT64_MAX }, *sum;
	uint32_t at;

	if (thread && effect_refuses(event)) {
		keep_refused(pass, event, thread->process);
		return;
	}
	if (!thread || !findings_is_general(pass->findings, event->heap) ||
	    !query_has_process(query, thread->process) || !query_has_thread(query, event->thread) ||
	    (query->stack && !query->stack(query->context, event->stack)) ||
	    (query->event && !query->event(query->event_context, event)))
		return;
	wanted.process = thread->process;
	at = index_set_put(&pass->failed,
			   index_set_hash((const uint64_t[]){ wanted.process, wanted.stack }, 2),
			   is_failed, facts, &wanted, (uint32_t)facts->failed_count);
	if (at == facts->failed_count) {
		*MEM_ADD(facts->failed, facts->failed_count, facts->failed_capacity) = wanted;
	}
	sum = &facts->failed[at];
	if (effect_stays(event)) {
		sum->in_place++;
		return;
	}
	if (sum->count++ == 0)
		sum->first_ns = event->time_ns;
	sum->last_ns = event->time_ns;
	if (event->size < sum->size_min)
		sum->size_min = event->size;
	if (event->size > sum->size_max)
		sum->size_max = event->size;
}

// ---- what was there before a wrong free ----

struct second_pass {
	struct findings_facts *facts;
	uint32_t *by_address; // orphans
};

// Of equal addresses in the order of the frees, so that the first is found first.
static int compare_addresses(const void *a, const void *b, void *context)
{
	const struct findings_facts *facts = context;
	const uint32_t *x = a, *y = b;
	uint64_t left = facts->orphans[*x].address, right = facts->orphans[*y].address;

	if (left != right)
		return left < right ? -1 : 1;
	return *x < *y ? -1 : *x > *y;
}

// The first orphan, by address, at `address` or behind it.
static size_t find_orphan(const struct second_pass *pass, uint64_t address)
{
	size_t low = 0, high = pass->facts->orphans_count;

	ASSERT(pass->by_address || high == 0);
	// by_address is sorted; a block covers the orphans from its own address on.
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (pass->facts->orphans[pass->by_address[middle]].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

// The next orphan in the block's bytes that is freed behind event `number`, from *at on.
static struct findings_orphan *next_inside(const struct second_pass *pass, size_t *at,
					   const struct lives_block *block, uint64_t number)
{
	while (*at < pass->facts->orphans_count) {
		struct findings_orphan *orphan = &pass->facts->orphans[pass->by_address[*at]];

		if (orphan->address - block->address > block->size)
			return NULL;
		++*at;
		if (orphan->process == block->process && orphan->number > number &&
		    (orphan->address == block->address ||
		     orphan->address - block->address < block->size))
			return orphan;
	}
	return NULL;
}

// The last block that began over an orphan's address before its free is what the free was wrong
// about: each one overwrites what the one before it has left.
static void remember_begin(void *context, const struct lives_block *block)
{
	const struct second_pass *pass = context;
	size_t at = find_orphan(pass, block->address);
	struct findings_orphan *orphan;

	while ((orphan = next_inside(pass, &at, block, block->number))) {
		if (orphan->heap != block->heap && orphan->address != block->address)
			continue; // a pool's lies inside of one of malloc's
		orphan->freed = false;
		orphan->mixed = orphan->heap != block->heap;
		orphan->other_heap = block->heap;
		orphan->inside = orphan->address != block->address;
		orphan->allocated_by = block->stack;
		orphan->size = block->size;
		orphan->offset = orphan->address - block->address;
	}
}

// What ended takes back what its beginning said: inside of it nothing lives any more. If it began
// just there and was freed, the orphan is a second free.
static void remember_end(void *context, const struct lives_block *block,
			 const struct lives_end *end)
{
	const struct second_pass *pass = context;
	size_t at = find_orphan(pass, block->address);
	struct findings_orphan *orphan;

	if (block->origin != LIVES_BEGUN)
		return;
	while ((orphan = next_inside(pass, &at, block, end->number))) {
		if (orphan->heap != block->heap) {
			orphan->mixed &= orphan->address != block->address;
			continue;
		}
		orphan->inside = false;
		orphan->freed = orphan->address == block->address &&
				(end->cause == LIVES_FREE || end->cause == LIVES_REALLOC);
		orphan->freed_by = end->stack;
	}
}

// Goes through the trace once more, to the last orphan that was kept; false: not so far. Only where
// there are some: most programs have none, and the pass costs as much as the first.
static bool read_before_orphans(struct findings *findings)
{
	struct findings_facts *facts = findings->facts;
	struct reader *reader = findings->asked->reader;
	struct second_pass pass = {
		.facts = facts,
		.by_address = mem_alloc(facts->orphans_count, sizeof *pass.by_address),
	};
	const struct lives_watcher watcher = { .begin = remember_begin,
					       .end = remember_end,
					       .context = &pass };
	struct lives *lives = lives_new(reader, &watcher, NULL);
	uint64_t last = facts->orphans[facts->orphans_count - 1].number;
	struct reader_pass items = reader_pass_begin(reader, NULL);
	bool complete;

	ASSERT(facts->orphans_count > 0);
	for (uint32_t i = 0; i < facts->orphans_count; i++)
		pass.by_address[i] = i;
	mem_sort(pass.by_address, facts->orphans_count, sizeof *pass.by_address, compare_addresses,
		 facts);
	while (items.event.number < last && reader_pass_next(&items) != READER_END) {
		if (items.item == READER_NOTE)
			lives_add_note(lives, &items.note);
		else
			lives_add_event(lives, &items.event);
	}
	complete = items.event.number >= last || reader_over(reader);
	lives_free(lives);
	mem_free(pass.by_address);
	return complete;
}

// ---- the pass ----

// Forgets all of a pass that a damaged index ended half way.
static void begin_again(struct pass *pass)
{
	struct findings *findings = pass->findings;
	struct findings_facts *facts = pass->facts;

	facts->pairs_count = facts->chains_count = facts->orphans_count = facts->failed_count = 0;
	facts->lasts_count = 0;
	pass_fini(pass);
	*pass = (struct pass){ .findings = findings, .facts = facts };
	if (facts->arenas) {
		findings_arenas_free(facts->arenas);
		facts->arenas = findings_arenas_new(findings);
	}
}

// False: there is no index that knows it, or it is damaged; or *err: somebody wants to stop.
static bool follow_index(struct pass *pass, struct lives_watcher watcher, struct progress *progress,
			 struct err *err)
{
	const struct query_context *asked = pass->findings->asked;
	struct err damage = { 0 };
	bool known = false;

	// Filters may ask for what a block that ends has not (its time).
	if (!asked->window || query_narrows(&asked->selection.query))
		return false;
	if (window_source_lives(asked->window, &watcher, on_over, progress, &known, &damage))
		return known;
	if (damage.kind == ERR_STOPPED)
		*err = damage;
	else
		begin_again(pass);
	return false;
}

// The index knows the lives of blocks of a trace that it was built of, and spares reading all
// events. Where it does not, or is damaged, they are read.
bool findings_read_lives(struct findings *findings, bool *complete, struct err *err)
{
	struct pass pass = { .findings = findings, .facts = findings->facts };
	const struct lives_watcher watcher = {
		on_begin, on_end, on_undo, &pass, on_failed, expect,
	};
	struct progress progress;

	progress_begin(&progress, findings->asked->options.window.progress, "lives of blocks",
		       reader_bytes(findings->asked->reader));
	*complete = follow_index(&pass, watcher, &progress, err);
	if (!*complete && err->kind == ERR_NONE) {
		pass.lives = lives_new(findings->asked->reader, &watcher, NULL);
		*complete = lives_read(pass.lives, findings->asked->reader, &progress);
	}
	progress_end(&progress);
	pass_fini(&pass);
	if (findings->facts->orphans_count && err->kind == ERR_NONE)
		*complete &= read_before_orphans(findings);
	return err->kind == ERR_NONE;
}
