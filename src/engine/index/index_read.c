// Blocks of steps, decoded as far as a question needs, and the time of a step.
//
// For example, the step with the word 13 is `cell << 1 | ends`: an end of a block of cell 6. What
// it ended began at begins[step]: 99,960 at step 100,000 means that it lived for 40 steps; 0 is an
// orphan, which nothing began. index_events.c says how blocks are packed.
//
// Of the time only changes are kept. A tick of 100 us holds a thousand steps of a busy program, so
// that a block of 65,536 steps has some dozens of changes; the clock keeps those of the blocks that
// were asked for, in a sixteenth of the memory.
#include "engine/index/index_read.h"

#include "base/mem.h"
#include "base/rising.h"

#include <string.h>

// ---- blocks ----

void index_block_fini(struct index_block *block)
{
	MEM_FREE(block->ops, block->begins, block->near, block->far, block->runs, block->jumps,
		 block->bytes);
	*block = (struct index_block){ 0 };
}

static bool bad_block(const struct index *index, uint64_t number, struct err *err)
{
	return err_set(err, ERR_FORMAT, "the index is damaged: block %llu of %zu",
		       (unsigned long long)number, index->files.blocks_count);
}

static bool take_jumps(struct index_block *block, const uint8_t *at, const uint8_t *end)
{
	uint64_t count = bits_take_varint(&at, end);

	if (count > block->count)
		return false;
	MEM_ROOM(block->jumps, block->jumps_capacity, (size_t)count + 1);
	block->jumps_count = (uint32_t)count;
	return index_events_take_jumps(at, end, block->jumps, (uint32_t)count, block->count);
}

// Sizes stand in the index, which may be damaged: nothing is made room for that cannot be there.
static bool is_within(const struct vault *vault, uint64_t at, uint64_t size)
{
	return at <= vault->size && size <= vault->size - at;
}

static bool is_sound(const struct index *index, const struct index_block_entry *entry)
{
	return entry->events_size >= sizeof(struct index_events_head) &&
	       is_within(&index->files.events, entry->events_at, entry->events_size) &&
	       is_within(&index->files.times, entry->times_at, entry->times_size);
}

// The changes of time in a block: their number, then for each how many steps and how many ns after
// the one before. The block's own time is the first. For example time_ns 5,000 and the bytes 02, 03
// 64, 05 c8 01: from step 0 at 5,000, from step 3 at 5,100, from step 8 at 5,300.
static bool take_times(struct index *index, const struct index_block_entry *entry,
		       struct index_run **runs, size_t *capacity, uint32_t *runs_count,
		       uint32_t steps, struct err *err)
{
	uint8_t *bytes = mem_resize(NULL, entry->times_size + (size_t)1, 1);
	const uint8_t *at = bytes, *end = bytes + entry->times_size;
	uint64_t count = 0, step = 0, time_ns = entry->time_ns;
	bool ok = vault_read(&index->files.times, entry->times_at, bytes, entry->times_size, err);

	if (ok) {
		count = bits_take_varint(&at, end);
		ok = count < steps;
	}
	if (ok) {
		MEM_ROOM(*runs, *capacity, (size_t)count + 1);
		(*runs)[0] = (struct index_run){ 0, time_ns };
	}
	for (uint64_t i = 1; i <= count && ok; i++) {
		step += bits_take_varint(&at, end);
		time_ns += bits_take_varint(&at, end);
		ok = step < steps && at <= end;
		(*runs)[i] = (struct index_run){ (uint32_t)step, time_ns };
	}
	*runs_count = (uint32_t)count + 1;
	mem_free(bytes);
	return ok;
}

// How many things of `each` bytes fit in one of `share` parts of the memory that questions may
// take; at least one.
size_t index_room(const struct index *index, uint64_t share, size_t each)
{
	uint64_t memory = index->memory_bytes ? index->memory_bytes : UINT64_C(256) << 20;

	ASSERT(share > 0 && each > 0);
	return (size_t)(memory / share / each) + 1;
}

bool index_go_on(const struct index *index, struct err *err)
{
	return !index->stop || !index->stop(index->context) ||
	       err_set(err, ERR_STOPPED, "interrupted");
}

// All of a block but the last have 2 to the block_log2.
static uint32_t steps_of_block(const struct index *index, uint64_t number)
{
	uint64_t first = number << index->shape.block_log2;
	uint64_t left = index->steps_end - first;

	ASSERT(number < index->files.blocks_count);
	return left >> index->shape.block_log2 ? 1u << index->shape.block_log2 : (uint32_t)left;
}

// The parts of a block follow each other and end within it. What is in them is checked as they are
// taken.
static bool is_head_sound(const struct index *index, const struct index_block *block,
			  const struct index_events_head *head, uint32_t size)
{
	return head->count == block->count && head->stretch_log2 == index->shape.stretch_log2 &&
	       head->words_count <= PACK_WORDS_MAX && sizeof *head <= head->ops_at &&
	       head->ops_at <= head->words_at && head->words_at <= head->near_at &&
	       head->near_at <= head->far_at && head->far_at <= head->jumps_at &&
	       head->jumps_at <= size;
}

// What is asked of the block but for times; its bytes are there.
static bool take_block(const struct index *index, unsigned what, struct index_block *block,
		       uint32_t size)
{
	struct index_events_head head;

	memcpy(&head, block->bytes, sizeof head);
	if (!is_head_sound(index, block, &head, size))
		return false;
	MEM_ROOM(block->ops, block->ops_capacity, block->count);
	if (what & INDEX_ENDS)
		MEM_ROOM(block->near, block->near_capacity, block->count);
	if (!index_events_take_ops(block->bytes, &head, index->cells.cells_count, block->ops,
				   what & INDEX_ENDS ? block->near : NULL, &block->near_count))
		return false;
	if (what & INDEX_LIVES) {
		MEM_ROOM(block->begins, block->begins_capacity, block->count);
		if (!index_events_take_begins(block->bytes, &head, block->ops, block->first,
					      block->begins))
			return false;
	}
	if (what & INDEX_ENDS) {
		MEM_ROOM(block->far, block->far_capacity, block->count + (size_t)1);
		if (!index_events_take_far(block->bytes, &head, block->ops, block->first,
					   block->far, &block->far_count))
			return false;
	}
	return !(what & INDEX_JUMPS) ||
	       take_jumps(block, block->bytes + head.jumps_at, block->bytes + size);
}

// Its bytes, and which steps it has.
static bool read_block(struct index *index, uint64_t number, struct index_block *block,
		       struct err *err)
{
	const struct index_block_entry *entry = &index->files.blocks[number];

	ASSERT(number < index->files.blocks_count);
	if (!index_go_on(index, err))
		return false;
	if (!is_sound(index, entry))
		return bad_block(index, number, err);
	block->bytes = mem_grow(block->bytes, &block->bytes_capacity,
				entry->events_size + (size_t)PACK_SLACK, 1);
	block->first = number << index->shape.block_log2;
	block->count = steps_of_block(index, number);
	return vault_read(&index->files.events, entry->events_at, block->bytes, entry->events_size,
			  err);
}

// The words alone of a part of a block, without decoding what is before it: a part begins at a
// stretch.
bool index_block_part(struct index *index, uint64_t first, uint32_t count,
		      struct index_block *block, struct err *err)
{
	uint64_t number = first >> index->shape.block_log2;
	struct index_events_head head;

	ASSERT(count > 0);
	if (!read_block(index, number, block, err))
		return false;
	ASSERT(first - block->first + count <= block->count);
	memcpy(&head, block->bytes, sizeof head);
	MEM_ROOM(block->ops, block->ops_capacity, count);
	if (!is_head_sound(index, block, &head, index->files.blocks[number].events_size) ||
	    !index_events_take_some(block->bytes, &head, index->cells.cells_count,
				    (uint32_t)(first - block->first), count, block->ops))
		return bad_block(index, number, err);
	block->first = first;
	block->count = count;
	return true;
}

bool index_block_load(struct index *index, uint64_t number, unsigned what,
		      struct index_block *block, struct err *err)
{
	const struct index_block_entry *entry = &index->files.blocks[number];

	if (!read_block(index, number, block, err))
		return false;
	if (!take_block(index, what, block, entry->events_size))
		return bad_block(index, number, err);
	if (what & INDEX_TIMES && !take_times(index, entry, &block->runs, &block->runs_capacity,
					      &block->runs_count, block->count, err))
		return err->kind == ERR_NONE ? bad_block(index, number, err) : false;
	return true;
}

// The numbers of events of a block, without its steps: only the end of its bytes is read.
bool index_block_jumps(struct index *index, uint64_t number, struct index_block *block,
		       struct err *err)
{
	const struct index_block_entry *entry = &index->files.blocks[number];
	struct index_events_head head;
	size_t size;
	bool ok;

	if (!is_sound(index, entry))
		return bad_block(index, number, err);
	if (!vault_read(&index->files.events, entry->events_at, &head, sizeof head, err))
		return false;
	block->first = number << index->shape.block_log2;
	block->count = steps_of_block(index, number);
	if (head.count != block->count || head.jumps_at > entry->events_size)
		return bad_block(index, number, err);
	size = entry->events_size - head.jumps_at;
	block->bytes = mem_grow(block->bytes, &block->bytes_capacity, size + 8, 1);
	ok = vault_read(&index->files.events, entry->events_at + head.jumps_at, block->bytes, size,
			err);
	return ok && (take_jumps(block, block->bytes, block->bytes + size) ||
		      bad_block(index, number, err));
}

// ---- times ----

enum { COARSE_LOG2 = 8 };

// The runs of a block; coarse[i] is the last run that begins at or before the first of the i-th
// part of the block's steps, so that a time is found with next to no search.
struct index_clock_block {
	uint32_t count;
	uint32_t coarse[(1 << COARSE_LOG2) + 1];
	struct index_run runs[];
};

static void forget_times(struct index_clock *clock)
{
	for (size_t i = 0; i < clock->blocks_count; i++) {
		mem_free(clock->blocks[i]);
		clock->blocks[i] = NULL;
	}
	clock->bytes = 0;
}

void index_clock_fini(struct index_clock *clock)
{
	forget_times(clock);
	mem_free(clock->blocks);
	*clock = (struct index_clock){ 0 };
}

static unsigned coarse_shift(const struct index *index)
{
	return index->shape.block_log2 > COARSE_LOG2 ? index->shape.block_log2 - COARSE_LOG2 : 0;
}

static void fill_coarse(struct index_clock_block *block, unsigned shift)
{
	uint32_t run = 0;

	for (uint32_t i = 0; i <= 1u << COARSE_LOG2; i++) {
		while (run + 1 < block->count && block->runs[run + 1].at <= i << shift)
			run++;
		block->coarse[i] = run;
	}
}

// Where the memory for times is full all are forgotten, not the oldest: questions go through blocks
// in order, and one that comes back later reads them again.
static const struct index_clock_block *times_of(struct index_clock *clock, struct index *index,
						uint64_t number, struct err *err)
{
	struct index_clock_block *kept;
	struct index_run *runs = NULL;
	size_t capacity = 0, size;
	uint32_t count;

	if (!clock->blocks) {
		clock->blocks_count = index->files.blocks_count;
		clock->blocks = mem_alloc(clock->blocks_count + 1, sizeof(void *));
	}
	ASSERT(number < clock->blocks_count);
	if (clock->blocks[number])
		return clock->blocks[number];
	if (!is_sound(index, &index->files.blocks[number]) ||
	    !take_times(index, &index->files.blocks[number], &runs, &capacity, &count,
			steps_of_block(index, number), err)) {
		if (err->kind == ERR_NONE)
			bad_block(index, number, err);
		mem_free(runs);
		return NULL;
	}
	size = sizeof *kept + count * sizeof *runs;
	if (clock->bytes + size > index_room(index, 16, 1))
		forget_times(clock);
	kept = mem_resize(NULL, size, 1);
	kept->count = count;
	memcpy(kept->runs, runs, count * sizeof *runs);
	mem_free(runs);
	fill_coarse(kept, coarse_shift(index));
	clock->blocks[number] = kept;
	clock->bytes += size;
	return kept;
}

// The last run that begins at or before a step of the block.
static const struct index_run *find_run(const struct index_clock_block *block, uint32_t at,
					unsigned shift)
{
	// With 65,536 steps a part has 256: a block of 40 changes of the time has most parts with
	// none, where low and high are one apart at once.
	uint32_t low = block->coarse[at >> shift], high = block->coarse[(at >> shift) + 1] + 1;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (block->runs[middle].at <= at)
			low = middle;
		else
			high = middle;
	}
	return &block->runs[low];
}

bool index_clock_find(struct index_clock *clock, struct index *index, uint64_t step,
		      uint64_t *time_ns, struct err *err)
{
	const struct index_clock_block *block;
	const struct index_run *run;
	uint64_t number, first;

	ASSERT(index->steps_end > 0);
	if (step >= index->steps_end)
		step = index->steps_end - 1;
	number = step >> index->shape.block_log2;
	block = times_of(clock, index, number, err);
	if (!block)
		return false;
	first = number << index->shape.block_log2;
	run = find_run(block, (uint32_t)(step - first), coarse_shift(index));
	clock->first = first + run->at;
	clock->steps =
		(run + 1 < block->runs + block->count ? run[1].at : steps_of_block(index, number)) -
		run->at;
	clock->time_ns = *time_ns = run->value;
	ASSERT(step - clock->first < clock->steps);
	return true;
}

// The last block that does not begin later.
static size_t block_at(const struct index *index, uint64_t time_ns)
{
	size_t upto = RISING_UPTO(index->files.blocks, index->files.blocks_count, time_ns, time_ns);

	ASSERT(index->files.blocks_count > 0);
	return upto ? upto - 1 : 0;
}

// The edge before the first step that is later than `time_ns`. If that is in no block at or before
// the time, it is the block's end, which is the next one's beginning.
bool index_clock_edge(struct index_clock *clock, struct index *index, uint64_t time_ns,
		      uint64_t *edge, struct err *err)
{
	size_t low = block_at(index, time_ns);
	const struct index_clock_block *block;
	size_t first;

	block = times_of(clock, index, low, err);
	if (!block)
		return false;
	first = RISING_UPTO(block->runs, block->count, value, time_ns);
	*edge = ((uint64_t)low << index->shape.block_log2) +
		(first < block->count ? block->runs[first].at : steps_of_block(index, low));
	if (*edge < WINDOW_START)
		*edge = WINDOW_START;
	return true;
}

// ---- edges of rising times ----

void index_edges_fini(struct index_edges *edges)
{
	mem_free(edges->runs);
	*edges = (struct index_edges){ 0 };
}

static bool load_edges(struct index_edges *edges, struct index *index, uint64_t number,
		       struct err *err)
{
	const struct index_block_entry *entry = &index->files.blocks[number];

	edges->number = number;
	edges->at = 0;
	if (is_sound(index, entry) && take_times(index, entry, &edges->runs, &edges->capacity,
						 &edges->count, steps_of_block(index, number), err))
		return true;
	edges->count = 0;
	return err->kind == ERR_NONE ? bad_block(index, number, err) : false;
}

// For times that rise: from one to the next in the same block is a few steps, and a block is read
// once. A time that falls begins again.
bool index_edges_next(struct index_edges *edges, struct index *index, uint64_t time_ns,
		      uint64_t *edge, struct err *err)
{
	const struct index_block_entry *blocks = index->files.blocks;
	size_t count = index->files.blocks_count;
	bool anew = edges->count == 0 || time_ns < edges->last_ns;

	ASSERT(!edges->count || edges->number < count);
	if (anew || (edges->number + 1 < count && blocks[edges->number + 1].time_ns <= time_ns))
		if (!load_edges(edges, index, block_at(index, time_ns), err))
			return false;
	edges->last_ns = time_ns;
	while (edges->at < edges->count && edges->runs[edges->at].value <= time_ns)
		edges->at++;
	*edge = edges->number << index->shape.block_log2;
	*edge += edges->at < edges->count ? edges->runs[edges->at].at
					  : steps_of_block(index, edges->number);
	return true;
}

// The event that a step is of: the last jump at or before the step, counted on from.
bool index_number(struct index *index, struct index_block *kept, uint64_t step, uint64_t *number,
		  struct err *err)
{
	uint64_t block = step >> index->shape.block_log2;
	const struct index_run *last;
	size_t run;

	ASSERT(step < index->steps_end);
	if ((kept->jumps_count == 0 || kept->first >> index->shape.block_log2 != block) &&
	    !index_block_jumps(index, block, kept, err)) {
		kept->jumps_count = 0;
		return false;
	}
	run = RISING_UPTO(kept->jumps, kept->jumps_count, at, step - kept->first);
	last = &kept->jumps[run ? run - 1 : 0];
	// Step 0 is of no event, and the one after it of event 0: as counting on makes it.
	*number = last->value + (step - kept->first - last->at);
	return true;
}
