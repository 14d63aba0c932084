// What two snapshots differ by becomes events of blocks with addresses of our own. For each thread,
// stack and size there is a sum, and the blocks that it is made of, the latest first.
//
// For example, a stack has 3 blocks of 300 bytes in the first snapshot, and 2 of 250 in the second.
// At the first, three blocks of 100 bytes begin. At the second, the latest of them ends, which
// leaves 2 of 200, and then the latest of these is resized to what the other one leaves of 250: a
// realloc to 150 bytes at a new address. Where even no bytes at all would be too many for it, all
// blocks of the sum end, and others begin.
//
// Sums that are less come first, then what came and went between the snapshots, then sums that are
// more: so the level passes no height that no snapshot had.
#include "import/series.h"

#include "base/index_set.h"
#include "base/mem.h"
#include "base/sort.h"

#include <stdlib.h>

enum {
	BLOCKS_MAX = 1 << 21, // of a snapshot; more are told as fewer and larger ones
	ROOM_MAX = 1 << 30,   // of addresses, for a block
};

// What lives of a thread, a stack, a size and a state.
// What is without `new_` is what events have told so far; `new_` is what this snapshot says.
// series_end makes the first equal to the second.
struct sum {
	thread_id thread;
	stack_id stack;
	uint64_t size;
	uint64_t count, bytes;                     // as the events have it
	uint64_t new_count, new_bytes;             // in this snapshot
	uint64_t freed_count, freed_bytes;         // so far, as the events have it
	uint64_t new_freed_count, new_freed_bytes; // up to this snapshot
	uint32_t top;                              // its latest block, + 1
	uint8_t state;                             // enum trace_reach_state; 0: it is not known
	bool joined;
};

// In a list of its sum from `top` on, or in the list of spare ones; `below` is the next one, plus
// one.
struct block {
	uint64_t address, size;
	uint32_t below; // + 1
};

struct series {
	struct intake *intake;
	struct sum *sums;
	size_t sums_count, sums_capacity;
	struct index_set by_key;
	struct block *blocks;
	size_t blocks_count, blocks_capacity;
	uint32_t spare; // blocks to use again, + 1
	uint64_t next_address, time_ns, snapshots, joined;
	uint64_t most;       // blocks of a sum, in this snapshot
	uint64_t most_freed; // the same of those that came and went
	struct sum *held;    // of the latest of these, which has not gone yet; NULL: none
	uint64_t held_address;
	char *name;
};

struct series *series_new(struct intake *intake)
{
	struct series *series = mem_alloc(1, sizeof *series);

	series->intake = intake;
	intake_lacks(intake, "snapshots");
	intake_lacks(intake, "no-addresses");
	return series;
}

void series_free(struct series *series)
{
	if (!series)
		return;
	mem_free(series->sums);
	index_set_fini(&series->by_key);
	MEM_FREE(series->blocks, series->name, series);
}

// A stack that is in no sum of this snapshot has nothing in it: all begin at 0.
void series_begin(struct series *series, const char *name, uint64_t time_ns)
{
	if (time_ns > series->time_ns)
		series->time_ns = time_ns;
	mem_free(series->name);
	series->name = mem_copy_text(name);
	for (size_t i = 0; i < series->sums_count; i++)
		series->sums[i].new_count = series->sums[i].new_bytes =
			series->sums[i].new_freed_count = series->sums[i].new_freed_bytes = 0;
}

static bool same_sum(const void *context, uint32_t position, const void *key)
{
	const struct sum *sum = &((const struct series *)context)->sums[position];
	const struct sum *wanted = key;

	return sum->thread == wanted->thread && sum->stack == wanted->stack &&
	       sum->size == wanted->size && sum->state == wanted->state;
}

// Sums are found by a hash of the four; they are never removed, so a stack that comes back goes
// on.
static struct sum *sum_of(struct series *series, thread_id thread, stack_id stack, uint64_t size,
			  uint8_t state)
{
	struct sum wanted = { .thread = thread, .stack = stack, .size = size, .state = state };
	uint64_t key[4] = { thread, stack, size, state };
	uint32_t at = index_set_put(&series->by_key, index_set_hash(key, 4), same_sum, series,
				    &wanted, (uint32_t)series->sums_count);

	ASSERT(at <= series->sums_count && series->sums_count < UINT32_MAX);
	if (at == series->sums_count) {
		*MEM_ADD(series->sums, series->sums_count, series->sums_capacity) = wanted;
	}
	return &series->sums[at];
}

// A profile may say anything: sums stop at the largest number and do not begin again at 0.
static void add(uint64_t *sum, uint64_t more)
{
	if (__builtin_add_overflow(*sum, more, sum))
		*sum = UINT64_MAX;
}

// Bytes without a count are one block.
static void add_living(struct sum *sum, uint64_t count, uint64_t bytes)
{
	add(&sum->new_count, count ? count : 1);
	add(&sum->new_bytes, bytes);
}

void series_add(struct series *series, thread_id thread, stack_id stack, uint64_t size,
		uint64_t count, uint64_t bytes)
{
	if (count || bytes)
		add_living(sum_of(series, thread, stack, size, 0), count, bytes);
}

void series_add_reached(struct series *series, thread_id thread, stack_id stack, uint8_t state,
			uint64_t count, uint64_t bytes)
{
	ASSERT(state > 0 && state < TRACE_REACH_STATES_COUNT);
	if (count || bytes)
		add_living(sum_of(series, thread, stack, 0, state), count, bytes);
}

void series_add_freed(struct series *series, thread_id thread, stack_id stack, uint64_t size,
		      uint64_t count, uint64_t bytes)
{
	struct sum *sum;

	if (count == 0)
		return;
	sum = sum_of(series, thread, stack, size, 0);
	add(&sum->new_freed_count, count);
	add(&sum->new_freed_bytes, bytes);
}

// ---- events ----

// A free has no stack, as sums do not say who freed.
static void put(struct series *series, const struct sum *sum, uint8_t kind, uint64_t old,
		uint64_t address, uint64_t size)
{
	intake_event(series->intake, &(struct trace_event){
					     .kind = kind,
					     .time_ns = series->time_ns,
					     .thread = sum->thread,
					     .old_address = old,
					     .address = address,
					     .size = size,
					     .stack = kind == TRACE_FREE ? 0 : sum->stack,
				     });
}

// An address that no block had, with room behind it.
// Rising, and 16 bytes apart at least, so that no two blocks touch and none is taken for another.
// More than 1 GiB of room is not given, or a few huge blocks would use up all addresses.
static uint64_t new_address(struct series *series, uint64_t size)
{
	uint64_t address = series->next_address += 16;

	series->next_address += ((size < ROOM_MAX ? size : ROOM_MAX) + 15) & ~(uint64_t)15;
	return address;
}

static void begin_block(struct series *series, struct sum *sum, uint64_t size)
{
	uint32_t at = series->spare;

	ASSERT(at <= series->blocks_count);
	if (at) {
		series->spare = series->blocks[at - 1].below;
	} else {
		MEM_ROOM(series->blocks, series->blocks_capacity, series->blocks_count + 1);
		at = (uint32_t)++series->blocks_count;
	}
	series->blocks[at - 1] = (struct block){ new_address(series, size), size, sum->top };
	sum->top = at;
	sum->count++;
	sum->bytes += size;
	put(series, sum, TRACE_MALLOC, 0, series->blocks[at - 1].address, size);
}

// The latest block of a sum ends first: which one it was is not known, and this one costs no
// search.
static void end_block(struct series *series, struct sum *sum)
{
	uint32_t at = sum->top;
	struct block *block = &series->blocks[at - 1];

	ASSERT(at > 0 && at <= series->blocks_count);
	ASSERT(sum->count > 0); // it is one of them; sums of bytes may have run over
	put(series, sum, TRACE_FREE, 0, block->address, 0);
	sum->count--;
	sum->bytes -= block->size;
	add(&sum->freed_count, 1);
	add(&sum->freed_bytes, block->size);
	sum->top = block->below;
	block->below = series->spare;
	series->spare = at;
}

// For example 3 blocks of 100 bytes in all: 34, 33 and 33.
static void begin_blocks(struct series *series, struct sum *sum, uint64_t count, uint64_t bytes)
{
	uint64_t size = bytes / count, larger = bytes % count;

	ASSERT(larger < count);
	for (uint64_t i = 0; i < count; i++)
		begin_block(series, sum, size + (i < larger));
}

// The latest block takes what the others leave of the sum. False: it is less than nothing.
// Returns false where the other blocks alone have more than the sum.
static bool fit_latest(struct series *series, struct sum *sum)
{
	struct block *block = &series->blocks[sum->top - 1];
	uint64_t others = sum->bytes - block->size, old = block->address;

	ASSERT(sum->top > 0 && sum->top <= series->blocks_count);
	if (others > sum->new_bytes)
		return false;
	block->size = sum->new_bytes - others;
	block->address = new_address(series, block->size);
	sum->bytes = sum->new_bytes;
	put(series, sum, TRACE_REALLOC, old, block->address, block->size);
	return true;
}

// Counts first, then bytes. The bytes of what begins are what is missing of the sum, or the mean
// where nothing is missing.
static void settle(struct series *series, struct sum *sum)
{
	if (sum->new_count > series->most) {
		series->joined += !sum->joined;
		sum->joined = true;
		sum->new_count = series->most;
	}
	while (sum->count > sum->new_count)
		end_block(series, sum);
	if (sum->count < sum->new_count) {
		uint64_t more = sum->new_count - sum->count;
		uint64_t mean = sum->new_bytes / sum->new_count;

		begin_blocks(series, sum, more,
			     sum->new_bytes >= sum->bytes ? sum->new_bytes - sum->bytes
							  : mean * more);
	}
	if (sum->bytes == sum->new_bytes || fit_latest(series, sum))
		return;
	while (sum->count > 0)
		end_block(series, sum);
	ASSERT(sum->new_count > 0 && sum->bytes == 0);
	begin_blocks(series, sum, sum->new_count, sum->new_bytes);
	ASSERT(sum->count == sum->new_count && sum->bytes == sum->new_bytes);
}

// ---- what came and went ----

// The last of what came and went ends here.
static void let_go(struct series *series)
{
	if (series->held)
		put(series, series->held, TRACE_FREE, 0, series->held_address, 0);
	series->held = NULL;
}

// A block goes once the next has come, so that it is not taken for a temporary one: when it went is
// not known.
static void come_and_go(struct series *series, struct sum *sum, uint64_t size)
{
	uint64_t address = new_address(series, size);

	put(series, sum, TRACE_MALLOC, 0, address, size);
	let_go(series);
	ASSERT(!series->held);
	series->held = sum;
	series->held_address = address;
}

// Freed up to this snapshot, less those that events have ended.
// Blocks that ended with an event (end_block) were counted as freed there: only the rest came and
// went without being seen.
static void settle_freed(struct series *series, struct sum *sum)
{
	uint64_t count, bytes, size, larger;

	if (sum->new_freed_count <= sum->freed_count)
		return;
	count = sum->new_freed_count - sum->freed_count;
	bytes = sum->new_freed_bytes > sum->freed_bytes ? sum->new_freed_bytes - sum->freed_bytes
							: 0;
	sum->freed_count = sum->new_freed_count;
	sum->freed_bytes = sum->new_freed_bytes;
	if (count > series->most_freed) {
		series->joined += !sum->joined;
		sum->joined = true;
		count = series->most_freed;
	}
	ASSERT(count > 0);
	size = bytes / count;
	larger = bytes % count;
	for (uint64_t i = 0; i < count; i++)
		come_and_go(series, sum, size + (i < larger));
}

// ---- the whole ----

// At most BLOCKS_MAX blocks in all: then each sum has an equal share, and at least one.
static uint64_t limit(const struct series *series, uint64_t total)
{
	return total > BLOCKS_MAX ? BLOCKS_MAX / series->sums_count + 1 : UINT64_MAX;
}

static void limit_blocks(struct series *series)
{
	uint64_t total = 0, freed = 0;

	for (size_t i = 0; i < series->sums_count; i++) {
		const struct sum *sum = &series->sums[i];

		add(&total, sum->new_count);
		if (sum->new_freed_count > sum->freed_count)
			add(&freed, sum->new_freed_count - sum->freed_count);
	}
	series->most = limit(series, total);
	series->most_freed = limit(series, freed);
	ASSERT(series->most > 0 && series->most_freed > 0);
}

// The mark comes last: the moment that it names has all of the snapshot.
void series_end(struct series *series)
{
	ASSERT(series->name);
	limit_blocks(series);
	// What is less first, so that no level is higher than that of a snapshot.
	for (size_t i = 0; i < series->sums_count; i++)
		if (series->sums[i].new_bytes < series->sums[i].bytes)
			settle(series, &series->sums[i]);
	for (size_t i = 0; i < series->sums_count; i++)
		settle_freed(series, &series->sums[i]);
	let_go(series);
	for (size_t i = 0; i < series->sums_count; i++)
		settle(series, &series->sums[i]);
	series->snapshots++;
	intake_mark(series->intake, series->time_ns, series->name);
}

SORT_ORDER(by_address, struct trace_reach_block, SORT_RISES(address))

// Addresses rise as blocks begin, over all sums: a list has them in the order of its own sum alone.
void series_end_reached(struct series *series, process_id process)
{
	struct trace_reach reach = { .process = process,
				     .reason = TRACE_SNAPSHOT_EXIT,
				     .time_ns = series->time_ns,
				     .number = intake_events(series->intake) };

	reach.blocks = mem_alloc(series->blocks_count + 1, sizeof *reach.blocks);
	for (size_t i = 0; i < series->sums_count; i++) {
		const struct sum *sum = &series->sums[i];

		for (uint32_t at = sum->state ? sum->top : 0; at;
		     at = series->blocks[at - 1].below) {
			ASSERT(at <= series->blocks_count && reach.count < series->blocks_count);
			reach.blocks[reach.count++] = (struct trace_reach_block){
				.address = series->blocks[at - 1].address,
				.size = series->blocks[at - 1].size,
				.stack = sum->stack,
				.thread = sum->thread,
				.state = sum->state,
			};
		}
	}
	reach.total = reach.count;
	qsort(reach.blocks, (size_t)reach.count, sizeof *reach.blocks, by_address);
	intake_reach(series->intake, &reach);
	mem_free(reach.blocks);
}

uint64_t series_snapshots(const struct series *series)
{
	return series->snapshots;
}

uint64_t series_joined(const struct series *series)
{
	return series->joined;
}
