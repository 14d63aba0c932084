// Columns, one after the other: addresses as differences, sizes, stacks, then threads and kinds in
// runs of equal values, since most blocks of a program are of one thread and reachable. For
// example the threads 1, 1, 1, 2 are 01 03 02 01: three times 1, once 2. Where a pointer was found
// is written only for blocks to which one was.
#include "trace/reach.h"

// The smallest encoding of a block: address, size, stack; all else may be in runs.
enum { BLOCK_BYTES_MIN = 3, PLACE_SHIFT = 4 };

// The next value of runs that have `left` more; UINT64_MAX: they are not to be believed. A run that
// is longer than that would reach into the next column.
static uint64_t run_next(struct bytes_cursor *in, struct bytes_run *run, uint64_t left)
{
	if (run->count == 0) {
		run->value = bytes_next(in);
		run->count = bytes_next(in);
		if (in->bad || run->count == 0 || run->count > left)
			return UINT64_MAX;
	}
	run->count--;
	return run->value;
}

// Place and state in one number, for blocks that are alike in one mostly are in the other.
static uint64_t kind_of(const struct trace_reach_block *block)
{
	return (uint64_t)block->place << PLACE_SHIFT | block->state;
}

// Differences begin at 0 in each part, so that a part can be decoded by itself.
void reach_encode(struct bytes *out, const struct trace_reach *reach, uint64_t skip, uint64_t count)
{
	const struct trace_reach_block *blocks = reach->blocks + skip;
	struct bytes_run run = { 0 };
	uint64_t before = 0;

	ASSERT(skip + count <= reach->count && count <= REACH_BLOCKS_MAX);
	BYTES_ADD_ALL(out, reach->process, reach->reason, reach->flags, reach->time_ns,
		      reach->number, reach->stopped_ns, reach->read_bytes, reach->total,
		      reach->first + skip, count);
	for (uint64_t i = 0; i < count; i++) {
		ASSERT(i == 0 || blocks[i].address > before);
		bytes_add_varint(out, blocks[i].address - before);
		before = blocks[i].address;
	}
	for (uint64_t i = 0; i < count; i++)
		bytes_add_varint(out, blocks[i].size);
	for (uint64_t i = 0; i < count; i++)
		bytes_add_varint(out, blocks[i].stack);
	for (uint64_t i = 0; i < count; i++)
		bytes_run_add(out, &run, blocks[i].thread);
	bytes_run_end(out, &run);
	for (uint64_t i = 0; i < count; i++)
		bytes_run_add(out, &run, kind_of(&blocks[i]));
	bytes_run_end(out, &run);
	before = 0;
	for (uint64_t i = 0; i < count; i++) {
		if (blocks[i].place == TRACE_REACH_NOWHERE)
			continue;
		bytes_add_signed(out, (int64_t)(blocks[i].at - before));
		before = blocks[i].at;
	}
}

// A difference of 0 would be two blocks at one address; only the first may be at 0.
static bool take_addresses(struct bytes_cursor *in, struct trace_reach *reach)
{
	uint64_t before = 0;

	for (uint64_t i = 0; i < reach->count; i++) {
		uint64_t gap = bytes_next(in);

		if ((i > 0 && gap == 0) || __builtin_add_overflow(before, gap, &before))
			return false;
		reach->blocks[i].address = before;
	}
	return !in->bad;
}

// Threads and kinds are runs that end exactly with the last block, so one `run` serves both.
static bool take_columns(struct bytes_cursor *in, const struct reach_known *known,
			 struct trace_reach *reach)
{
	struct trace_reach_block *blocks = reach->blocks;
	uint64_t count = reach->count, before = 0;
	struct bytes_run run = { 0 };

	for (uint64_t i = 0; i < count; i++)
		blocks[i].size = bytes_next(in);
	for (uint64_t i = 0; i < count; i++) {
		blocks[i].stack = bytes_next_u32(in);
		if (blocks[i].stack > 0 && blocks[i].stack >= known->stacks_count)
			return false;
	}
	for (uint64_t i = 0; i < count; i++) {
		uint64_t thread = run_next(in, &run, count - i);

		if (thread >= known->threads_count)
			return false;
		blocks[i].thread = (thread_id)thread;
	}
	for (uint64_t i = 0; i < count; i++) {
		uint64_t kind = run_next(in, &run, count - i);

		blocks[i].state = (uint8_t)(kind & ((1 << PLACE_SHIFT) - 1));
		blocks[i].place = (uint8_t)(kind >> PLACE_SHIFT);
		if (kind == UINT64_MAX || kind >> PLACE_SHIFT >= TRACE_REACH_PLACES_COUNT ||
		    blocks[i].state == 0 || blocks[i].state >= TRACE_REACH_STATES_COUNT)
			return false;
	}
	for (uint64_t i = 0; i < count; i++) {
		if (blocks[i].place == TRACE_REACH_NOWHERE)
			continue;
		before += (uint64_t)bytes_next_signed(in);
		blocks[i].at = before;
	}
	return !in->bad;
}

// The blocks are decoded also where they are not wanted, for only that tells whether the record is
// well formed. The count is held against the bytes that are left before memory is taken by it.
bool reach_decode(struct bytes_cursor in, const struct reach_known *known, bool whole,
		  struct trace_reach *reach)
{
	uint64_t reason, end;
	bool ok;

	*reach = (struct trace_reach){ 0 };
	reach->process = bytes_next_u32(&in);
	reason = bytes_next(&in);
	reach->reason = (uint8_t)reason;
	reach->flags = bytes_next_u32(&in);
	BYTES_NEXT_ALL(&in, &reach->time_ns, &reach->number, &reach->stopped_ns, &reach->read_bytes,
		       &reach->total, &reach->first, &reach->count);
	if (in.bad || reason == 0 || reason > UINT8_MAX ||
	    reach->process >= known->processes_count ||
	    reach->count > bytes_left(&in) / BLOCK_BYTES_MIN || reach->count > REACH_BLOCKS_MAX ||
	    __builtin_add_overflow(reach->first, reach->count, &end) || end > reach->total)
		return false;
	reach->blocks = mem_alloc(reach->count + 1, sizeof *reach->blocks);
	ok = take_addresses(&in, reach) && take_columns(&in, known, reach);
	if (!ok || !whole)
		reach_fini(reach);
	return ok;
}

// What the record says of itself stays, also where no blocks are wanted.
void reach_fini(struct trace_reach *reach)
{
	mem_free(reach->blocks);
	reach->blocks = NULL;
}

const char *reach_state_word(uint8_t state)
{
	static const char *const words[] = {
		[TRACE_REACH_REACHABLE] = "reachable",
		[TRACE_REACH_INSIDE] = "inside",
		[TRACE_REACH_UNREACHABLE] = "unreachable",
		[TRACE_REACH_HELD] = "held",
	};

	return state > 0 && state < TRACE_REACH_STATES_COUNT ? words[state] : "?";
}

const char *reach_place_word(uint8_t place)
{
	static const char *const words[] = {
		[TRACE_REACH_NOWHERE] = "nowhere",   [TRACE_REACH_BLOCK] = "block",
		[TRACE_REACH_REGISTER] = "register", [TRACE_REACH_STACK] = "stack",
		[TRACE_REACH_GLOBAL] = "global",     [TRACE_REACH_TLS] = "tls",
		[TRACE_REACH_OTHER] = "other",
	};

	return place < TRACE_REACH_PLACES_COUNT ? words[place] : "?";
}
