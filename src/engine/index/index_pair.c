// The row of calls, the parts, and how both come together again. index_pair.h has the plan.
//
// A *raw* step is one for each call. Pairing may find that a call has two steps: where an address
// is given out that still lives, the old block ended unseen, just before. In memory that is known
// at once. With parts it is known only once the part was paired, so steps are numbered twice. For
// example, three calls on one address, the second a malloc whose free was not seen:
//
//     call              raw   answer of the part                 final steps
//     malloc 0x10         0   -                                  0 begin
//     malloc 0x10         1   LOST: block of raw 0 ended here    1 end of 0, 2 begin
//     free   0x10         2   END: block of raw 1                3 end of 2
//
// Raw steps that had a lost block before them are in lost_raw, rising: here { 1 }. The final number
// of the step that a call itself is, is its raw one and how many of those are not after it
// (index_pair_final: 1 + 1 = 2, and 2 + 1 = 3); an edge before a call is also before the lost
// block's end (index_pair_final_edge: 1 + 0 = 1). What a part answers about beginnings is raw, too,
// and becomes final on the way to the feed.
//
// Rows and answers are read in the order in which they were written, each file once, so nothing is
// looked for: a call takes the next answer of the part that its byte names.
#include "engine/index/index_pair.h"

#include "base/mem.h"
#include "base/rising.h"
#include "base/sort.h"
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(LIVE_TABLE_PARTS <= 1 << 6, "a part is in the upper six bits of a byte");
_Static_assert(LIVE_TABLE_SPACES <= UINT16_MAX, "a space is in the upper 16 bits of a key");

enum {
	PART_BUFFER = 1 << 15,
	ROW_BUFFER = 1 << 18,
	SPACE_ADDRESS_BITS = 48,
};

// What a call in the row of calls is; the part is in the upper six bits of its byte.
enum row_kind { ROW_ALLOC, ROW_FREE, ROW_OTHER = 3 };

// ROW_OTHER, by the upper six bits.
enum row_other { ROW_NOTHING, ROW_EXIT, ROW_BEGIN, ROW_END, ROW_ORPHAN, ROW_TIME, ROW_NUMBER };

// What a part is told, and what it answers.
enum call_kind { CALL_LIVES, CALL_ALLOC, CALL_FREE };
enum answer_kind { ANSWER_LOST, ANSWER_END, ANSWER_ORPHAN, ANSWER_NOTHING };

// `never` is a file from the beginning: what never ends grows with the run.
bool index_pair_open(struct index_pair *pair, struct index_feed *feed, struct cells *cells,
		     int directory, uint64_t alive_max, struct err *err)
{
	*pair = (struct index_pair){
		.feed = feed, .cells = cells, .directory = directory, .alive_max = alive_max
	};
	return spill_open(&pair->never, directory, ROW_BUFFER, err);
}

void index_pair_close(struct index_pair *pair)
{
	for (size_t i = 0; pair->parts && i < LIVE_TABLE_PARTS; i++) {
		spill_close(&pair->parts[i].calls);
		spill_close(&pair->parts[i].answers);
	}
	for (size_t i = 0; i < pair->spaces_count; i++) {
		MAP_FINI(&pair->spaces[i].odd, &pair->spaces[i].inherited);
	}
	MEM_FREE(pair->parts, pair->spaces, pair->lost_raw);
	MAP_FINI(&pair->space_of, &pair->orphan_cells);
	live_table_fini(&pair->alive);
	spill_close(&pair->never);
	spill_close(&pair->row);
	*pair = (struct index_pair){ 0 };
}

// Spaces are numbered in the order in which they are met; the number is a part of each key.
uint32_t index_pair_space(struct index_pair *pair, process_id process, heap_id heap, bool forked)
{
	bool added;
	uint64_t *at = map_put(&pair->space_of, (uint64_t)process << 32 | heap, &added);

	if (added) {
		*MEM_ADD(pair->spaces, pair->spaces_count, pair->spaces_capacity) =
			(struct index_space){ .process = process, .heap = heap, .forked = forked };
		*at = pair->spaces_count;
	}
	return (uint32_t)*at - 1;
}

// Whether a key can name a block there, so that it is in the table. A key has 48 bits for the
// address and 16 for the space, and heaps other than malloc's may be destroyed as a whole, which
// would be a pass through the table: what does not fit, and all of theirs, is in the space's `odd`
// map.
static bool has_key(const struct index_pair *pair, uint32_t space, uint64_t address)
{
	ASSERT(space < pair->spaces_count);
	return pair->spaces[space].heap == 0 && address >> SPACE_ADDRESS_BITS == 0 &&
	       space < LIVE_TABLE_SPACES;
}

// The cell of a thread's frees of what is not known. Each thread has one of its own, so that they
// can be asked for like others. A thread that reads ahead may be at work on the cells: it rests
// first.
static uint32_t orphan_cell(struct index_pair *pair, uint32_t space, thread_id thread)
{
	const struct cells_site site = { .process = pair->spaces[space].process,
					 .heap = pair->spaces[space].heap,
					 .thread = thread,
					 .orphans = 1 };
	bool added;
	uint64_t *cell = map_put(&pair->orphan_cells, (uint64_t)space << 32 | thread, &added);

	if (added) {
		index_ahead_rest(pair->ahead);
		*cell = cells_add_cell(pair->cells, cells_add_site(pair->cells, &site), 0);
	}
	return (uint32_t)*cell;
}

static void add_never(struct index_pair *pair, uint64_t value, uint64_t address)
{
	spill_put(&pair->never, &value, sizeof value);
	spill_put(&pair->never, &address, sizeof address);
	pair->never_count++;
}

static uint64_t address_of(uint64_t key)
{
	return key & ((UINT64_C(1) << SPACE_ADDRESS_BITS) - 1);
}

// Take out of the table what lived when its process ended. No free of it can come, so that is the
// cheapest way to make room.
static void sweep(struct index_pair *pair)
{
	struct live_table *alive = &pair->alive;
	struct live_table_slot *slot;
	size_t at = 0;

	pair->swept_count = pair->over_count;
	pair->swept_buckets = alive->buckets;
	while ((slot = live_table_next(alive, &at)) != NULL) {
		// What moves up into the gap is looked at next.
		while (slot->key && pair->spaces[(slot->key >> SPACE_ADDRESS_BITS) - 1].over) {
			add_never(pair, slot->value, address_of(slot->key));
			live_table_remove(alive, slot);
		}
	}
}

// ---- steps that need no pairing, or are paired ----

// Times and event numbers are in the row only where they are not what is expected: the same time,
// the number before plus one.
static void row_state(struct index_pair *pair)
{
	struct index_feed *feed = pair->feed;

	if (feed->time_ns != pair->row_time_ns) {
		spill_put(&pair->row, &(uint8_t){ ROW_OTHER | ROW_TIME << 2 }, 1);
		spill_put_varint(&pair->row, feed->time_ns - pair->row_time_ns);
		pair->row_time_ns = feed->time_ns;
	}
	if (feed->number != pair->row_number + 1) {
		spill_put(&pair->row, &(uint8_t){ ROW_OTHER | ROW_NUMBER << 2 }, 1);
		spill_put_varint(&pair->row, feed->number - pair->row_number);
	}
	pair->row_number = feed->number;
}

static uint64_t row_other(struct index_pair *pair, enum row_other other)
{
	row_state(pair);
	spill_put(&pair->row, &(uint8_t){ (uint8_t)(ROW_OTHER | other << 2) }, 1);
	return pair->raw++;
}

// Either at once or as an entry of the row; the number that is returned is raw in both cases.
static uint64_t step_begin(struct index_pair *pair, uint32_t cell)
{
	uint64_t raw;

	if (!pair->parts)
		return index_feed_begin(pair->feed, cell);
	raw = row_other(pair, ROW_BEGIN);
	spill_put_varint(&pair->row, cell);
	return raw;
}

static uint64_t step_end(struct index_pair *pair, uint64_t value, uint64_t address)
{
	uint64_t raw;

	if (!pair->parts)
		return index_feed_end(pair->feed, live_table_cell(value), live_table_step(value),
				      address);
	raw = row_other(pair, ROW_END);
	spill_put_varint(&pair->row, value);
	spill_put_varint(&pair->row, address);
	return raw;
}

static void step_orphan(struct index_pair *pair, uint32_t cell)
{
	if (!pair->parts) {
		index_feed_orphan(pair->feed, cell);
		return;
	}
	row_other(pair, ROW_ORPHAN);
	spill_put_varint(&pair->row, cell);
}

uint64_t index_pair_nothing(struct index_pair *pair)
{
	return pair->parts ? row_other(pair, ROW_NOTHING) : index_feed_nothing(pair->feed);
}

uint64_t index_pair_raw(const struct index_pair *pair)
{
	return pair->parts ? pair->raw : pair->feed->step;
}

void index_pair_at(struct index_pair *pair, uint64_t time_ns, uint64_t number)
{
	index_feed_at(pair->feed, time_ns, number);
}

// ---- blocks that no key names ----

// A block that is there ended unseen, as in the tables.
static void odd_begin(struct index_pair *pair, uint32_t space, uint64_t address, uint32_t cell)
{
	bool added;
	uint64_t *value = map_put(&pair->spaces[space].odd, address, &added);

	if (!added) {
		step_end(pair, *value, address);
		pair->lost++;
	}
	*value = live_table_value(step_begin(pair, cell), cell);
}

// A free of what is not known to live: true if it was inherited.
static bool is_inherited(struct index_pair *pair, uint32_t space, uint64_t address)
{
	bool added = false;

	ASSERT(space < pair->spaces_count);
	if (pair->spaces[space].forked)
		map_put(&pair->spaces[space].inherited, address, &added);
	pair->inherited += added;
	pair->orphans += !added;
	return added;
}

// Each inherited address counts once: its second free is an orphan.
static void odd_free(struct index_pair *pair, uint32_t space, uint64_t address, thread_id thread)
{
	uint64_t *found = map_find(&pair->spaces[space].odd, address);

	if (found) {
		step_end(pair, *found, address);
		map_remove(&pair->spaces[space].odd, address);
	} else if (is_inherited(pair, space, address)) {
		index_pair_nothing(pair);
	} else {
		step_orphan(pair, orphan_cell(pair, space, thread));
	}
}

struct odd_block {
	uint64_t value, address;
};

SORT_ORDER(by_value, struct odd_block, SORT_RISES(value))

// In the order in which they began, so that the index does not depend on how a map lies in memory.
uint64_t index_pair_destroy(struct index_pair *pair, uint32_t space, uint64_t *first)
{
	struct map *odd = &pair->spaces[space].odd;
	struct odd_block *list;
	uint64_t address, value, count = 0;
	size_t at = 0;

	ASSERT(space < pair->spaces_count);
	*first = index_pair_raw(pair);
	if (pair->spaces[space].heap == 0) {
		index_pair_nothing(pair);
		return 0;
	}
	list = mem_alloc(odd->count + 1, sizeof *list);
	while (map_next(odd, &at, &address, &value))
		list[count++] = (struct odd_block){ value, address };
	qsort(list, count, sizeof *list, by_value);
	for (size_t i = 0; i < count; i++)
		step_end(pair, list[i].value, list[i].address);
	if (count == 0)
		index_pair_nothing(pair);
	map_clear(odd);
	mem_free(list);
	return count;
}

// ---- pairing ----

// A block is gone from where a key names it: what its end is.
static enum answer_kind take(struct index_pair *pair, uint64_t key, uint64_t *value)
{
	struct live_table_slot *slot = live_table_find(&pair->alive, key);
	uint32_t space = (uint32_t)(key >> SPACE_ADDRESS_BITS) - 1;

	if (slot) {
		*value = slot->value;
		live_table_remove(&pair->alive, slot);
		return ANSWER_END;
	}
	return is_inherited(pair, space, address_of(key)) ? ANSWER_NOTHING : ANSWER_ORPHAN;
}

// Every free is a step, also one that does nothing: steps and events keep in line.
static void free_now(struct index_pair *pair, uint32_t space, uint64_t key, thread_id thread)
{
	uint64_t value = 0;

	switch (take(pair, key, &value)) {
	case ANSWER_END:
		step_end(pair, value, address_of(key));
		break;
	case ANSWER_ORPHAN:
		step_orphan(pair, orphan_cell(pair, space, thread));
		break;
	default:
		index_pair_nothing(pair);
		break;
	}
}

static void alloc_now(struct index_pair *pair, uint64_t key, uint32_t cell)
{
	bool added;
	struct live_table_slot *slot = live_table_put(&pair->alive, key, &added);

	if (!added) {
		index_feed_end(pair->feed, live_table_cell(slot->value),
			       live_table_step(slot->value), address_of(key));
		pair->lost++;
	}
	slot->value = live_table_value(index_feed_begin(pair->feed, cell), cell);
}

// ---- too much for memory ----

// The user is told before the files grow: up to some four times the trace.
static void open_parts(struct index_pair *pair)
{
	char text[200];

	ASSERT(!pair->parts);
	pair->parts = mem_alloc(LIVE_TABLE_PARTS, sizeof *pair->parts);
	pair->raw = pair->feed->step;
	pair->row_time_ns = pair->feed->last_time_ns;
	pair->row_number = pair->feed->last_number;
	if (!spill_open(&pair->row, pair->directory, ROW_BUFFER, &pair->err))
		return;
	for (size_t i = 0; i < LIVE_TABLE_PARTS; i++)
		if (!spill_open(&pair->parts[i].calls, pair->directory, PART_BUFFER, &pair->err))
			return;
	if (!pair->say)
		return;
	snprintf(text, sizeof text,
		 "very many blocks live at once: temporary files of up to %s are written beside "
		 "the index",
		 STR_BYTES(pair->trace_bytes * 4));
	pair->say(pair->say_context, text);
}

// Nine bytes and a varint of how many raw steps after the call before in this part.
static void put_call(struct index_pair *pair, struct index_part *part, enum call_kind kind,
		     uint64_t key)
{
	uint8_t bytes[9];

	ASSERT(pair->raw >= part->last_raw);
	bytes[0] = (uint8_t)kind;
	memcpy(bytes + 1, &key, 8);
	spill_put(&part->calls, bytes, sizeof bytes);
	spill_put_varint(&part->calls, pair->raw - part->last_raw);
	part->last_raw = pair->raw;
}

// From now on: blocks that live go to their parts, and so does what comes.
// Blocks of ended processes go first, so they are in no part.
static void begin_parts(struct index_pair *pair)
{
	struct live_table_slot *slot;
	size_t at = 0;

	sweep(pair);
	open_parts(pair);
	while (pair->err.kind == ERR_NONE && (slot = live_table_next(&pair->alive, &at)) != NULL) {
		struct index_part *part = &pair->parts[live_table_part(live_table_hash(slot->key))];

		put_call(pair, part, CALL_LIVES, slot->key);
		spill_put(&part->calls, &slot->value, sizeof slot->value);
		part->lives++;
	}
	live_table_fini(&pair->alive);
}

// The table is full. It is swept once in each size at most, so that what is gone through for that
// is no more than growing takes.
// The table may still grow if its next size is within alive_max.
static void make_room(struct index_pair *pair)
{
	if (pair->swept_count != pair->over_count && pair->swept_buckets != pair->alive.buckets)
		sweep(pair);
	if (live_table_is_full(&pair->alive) &&
	    live_table_next_bytes(&pair->alive) > pair->alive_max)
		begin_parts(pair);
}

// The part is in the call's byte, so the second reading knows whose next answer it takes.
static void row_call(struct index_pair *pair, enum row_kind kind, uint64_t key)
{
	row_state(pair);
	spill_put(&pair->row,
		  &(uint8_t){ (uint8_t)(kind | live_table_part(live_table_hash(key)) << 2) }, 1);
}

void index_pair_alloc(struct index_pair *pair, uint32_t space, uint64_t address, uint32_t cell)
{
	uint64_t key = live_table_key(space, address);

	if (!has_key(pair, space, address)) {
		odd_begin(pair, space, address, cell);
		return;
	}
	if (!pair->parts && live_table_is_full(&pair->alive))
		make_room(pair);
	if (!pair->parts) {
		alloc_now(pair, key, cell);
		return;
	}
	row_call(pair, ROW_ALLOC, key);
	spill_put_varint(&pair->row, cell);
	put_call(pair, &pair->parts[live_table_part(live_table_hash(key))], CALL_ALLOC, key);
	spill_put_varint(&pair->parts[live_table_part(live_table_hash(key))].calls, cell);
	pair->raw++;
}

void index_pair_free(struct index_pair *pair, uint32_t space, uint64_t address, thread_id thread)
{
	uint64_t key = live_table_key(space, address);
	struct index_part *part;

	if (!has_key(pair, space, address)) {
		odd_free(pair, space, address, thread);
		return;
	}
	if (!pair->parts) {
		free_now(pair, space, key, thread);
		return;
	}
	part = &pair->parts[live_table_part(live_table_hash(key))];
	row_call(pair, ROW_FREE, key);
	put_call(pair, part, CALL_FREE, key);
	spill_put_varint(&part->calls, thread);
	pair->raw++;
}

// Blocks with keys stay in the table until it is swept: to look for them now would cost a pass for
// each process.
uint64_t index_pair_exit(struct index_pair *pair, process_id process)
{
	uint64_t raw;

	for (size_t i = 0; i < pair->spaces_count; i++) {
		struct index_space *space = &pair->spaces[i];
		uint64_t address, value;
		size_t at = 0;

		if (space->process != process)
			continue;
		space->over = true;
		pair->over_count++;
		while (map_next(&space->odd, &at, &address, &value))
			add_never(pair, value, address);
		map_fini(&space->odd);
	}
	if (!pair->parts)
		return index_feed_exit(pair->feed, process);
	raw = row_other(pair, ROW_EXIT);
	spill_put_varint(&pair->row, process);
	return raw;
}

// ---- one part by itself ----

static void answer(struct index_part *part, uint64_t raw, enum answer_kind kind)
{
	spill_put_varint(&part->answers, raw - part->last_raw);
	spill_put(&part->answers, &(uint8_t){ (uint8_t)kind }, 1);
	part->last_raw = raw;
}

// The same rule as alloc_now, with an answer in place of a step.
static void pair_alloc(struct index_pair *pair, struct index_part *part, uint64_t raw, uint64_t key,
		       uint32_t cell)
{
	bool added;
	struct live_table_slot *slot = live_table_put(&pair->alive, key, &added);

	if (!added) {
		answer(part, raw, ANSWER_LOST);
		spill_put(&part->answers, &slot->value, 8);
		spill_put_varint(&part->answers, address_of(key));
	}
	slot->value = live_table_value(raw, cell);
}

// What a free ended is known when its part is gone through, and is put where the final pass finds
// it.
static void pair_free(struct index_pair *pair, struct index_part *part, uint64_t raw, uint64_t key,
		      thread_id thread)
{
	uint64_t value = 0;
	enum answer_kind kind = take(pair, key, &value);

	answer(part, raw, kind);
	if (kind == ANSWER_END) {
		spill_put(&part->answers, &value, 8);
		spill_put_varint(&part->answers, address_of(key));
	} else if (kind == ANSWER_ORPHAN) {
		spill_put_varint(&part->answers,
				 orphan_cell(pair, (uint32_t)(key >> SPACE_ADDRESS_BITS) - 1,
					     thread));
	}
}

// Blocks that lived when parts began are put into the table first, with the values that they had.
static bool pair_part(struct index_pair *pair, struct index_part *part, struct err *err)
{
	uint8_t bytes[9];
	uint64_t raw = 0, delta, word, key;

	if (!spill_open(&part->answers, pair->directory, PART_BUFFER, err))
		return false;
	spill_turn(&part->calls);
	part->last_raw = 0;
	live_table_reserve(&pair->alive, part->lives);
	while (spill_get(&part->calls, bytes, sizeof bytes)) {
		spill_get_varint(&part->calls, &delta);
		raw += delta;
		memcpy(&key, bytes + 1, 8);
		if (bytes[0] == CALL_LIVES) {
			bool added;

			spill_get(&part->calls, &word, 8);
			live_table_put(&pair->alive, key, &added)->value = word;
			continue;
		}
		spill_get_varint(&part->calls, &word);
		if (bytes[0] == CALL_ALLOC)
			pair_alloc(pair, part, raw, key, (uint32_t)word);
		else
			pair_free(pair, part, raw, key, (thread_id)word);
	}
	if (!spill_ok(&part->calls, err) || !spill_ok(&part->answers, err))
		return false;
	spill_close(&part->calls);
	return true;
}

// What is left in the table was never freed.
static void empty_table(struct index_pair *pair)
{
	const struct live_table_slot *slot;
	size_t at = 0;

	while ((slot = live_table_next(&pair->alive, &at)) != NULL)
		add_never(pair, slot->value, address_of(slot->key));
	live_table_fini(&pair->alive);
}

// The same of those that no key names.
static void empty_odd(struct index_pair *pair)
{
	for (size_t i = 0; i < pair->spaces_count; i++) {
		uint64_t address, value;
		size_t at = 0;

		while (map_next(&pair->spaces[i].odd, &at, &address, &value))
			add_never(pair, value, address);
		map_clear(&pair->spaces[i].odd);
	}
}

// ---- the row of calls again, with the answers ----

// Where the answers end, next_raw is a number that no call has.
static void next_answer(struct index_part *part)
{
	uint64_t delta, word = 0;

	if (!spill_get_varint(&part->answers, &delta)) {
		part->next_raw = UINT64_MAX;
		return;
	}
	part->next_raw = part->last_raw += delta;
	spill_get(&part->answers, &part->next_kind, 1);
	if (part->next_kind == ANSWER_LOST || part->next_kind == ANSWER_END) {
		spill_get(&part->answers, &word, 8);
		spill_get_varint(&part->answers, &part->next_address);
		part->next_begin = live_table_step(word);
		part->next_cell = live_table_cell(word);
	} else if (part->next_kind != ANSWER_NOTHING) {
		spill_get_varint(&part->answers, &word);
		part->next_cell = (uint32_t)word;
	}
}

// Mostly it is asked for numbers after the last one that was lost, which is answered without a
// search.
static size_t lost_before(const struct index_pair *pair, uint64_t raw)
{
	size_t count = pair->lost_count;

	if (count == 0 || raw > pair->lost_raw[count - 1])
		return count;
	return rising_below(pair->lost_raw, count, raw);
}

uint64_t index_pair_final(const struct index_pair *pair, uint64_t raw)
{
	return raw + lost_before(pair, raw + 1);
}

uint64_t index_pair_final_edge(const struct index_pair *pair, uint64_t raw)
{
	return raw + lost_before(pair, raw);
}

// The end of the lost block is a step before the call that showed it.
static void feed_lost(struct index_pair *pair, struct index_part *part, uint64_t raw)
{
	if (part->next_raw != raw || part->next_kind != ANSWER_LOST)
		return;
	index_feed_end(pair->feed, part->next_cell, index_pair_final(pair, part->next_begin),
		       part->next_address);
	*MEM_ADD(pair->lost_raw, pair->lost_count, pair->lost_capacity) = raw;
	pair->lost++;
	next_answer(part);
}

// In the order of steps, whichever part the answer comes from.
static void feed_answer(struct index_pair *pair, struct index_part *part)
{
	switch (part->next_kind) {
	case ANSWER_END:
		index_feed_end(pair->feed, part->next_cell,
			       index_pair_final(pair, part->next_begin), part->next_address);
		break;
	case ANSWER_ORPHAN:
		index_feed_orphan(pair->feed, part->next_cell);
		break;
	default:
		index_feed_nothing(pair->feed);
		break;
	}
	next_answer(part);
}

// One entry of the row that is no call on a block with a key. True if it was a step.
static bool feed_other(struct index_pair *pair, enum row_other other)
{
	uint64_t word = 0, address = 0;

	if (other != ROW_NOTHING)
		spill_get_varint(&pair->row, &word);
	if (other == ROW_END)
		spill_get_varint(&pair->row, &address);
	switch (other) {
	case ROW_TIME:
		pair->feed->time_ns += word;
		return false;
	case ROW_NUMBER:
		pair->row_number += word - 1;
		return false;
	case ROW_EXIT:
		index_feed_exit(pair->feed, (process_id)word);
		return true;
	case ROW_BEGIN:
		index_feed_begin(pair->feed, (uint32_t)word);
		return true;
	case ROW_END:
		index_feed_end(pair->feed, live_table_cell(word),
			       index_pair_final(pair, live_table_step(word)), address);
		return true;
	case ROW_ORPHAN:
		index_feed_orphan(pair->feed, (uint32_t)word);
		return true;
	default:
		index_feed_nothing(pair->feed);
		return true;
	}
}

// Every call takes its step here, in the order of the trace, with what its part has answered.
static void feed_row(struct index_pair *pair, bool (*stop)(void *context), void *context,
		     struct err *err)
{
	enum { LOOK_EVERY = 1 << 18 };
	uint64_t raw = pair->feed->step, word;
	uint8_t byte;

	ASSERT(pair->parts);
	while (spill_get(&pair->row, &byte, 1)) {
		struct index_part *part = &pair->parts[byte >> 2];

		pair->feed->number = pair->row_number + 1;
		if ((byte & 3) == ROW_OTHER) {
			if (!feed_other(pair, byte >> 2))
				continue;
		} else if ((byte & 3) == ROW_ALLOC) {
			spill_get_varint(&pair->row, &word);
			feed_lost(pair, part, raw);
			index_feed_begin(pair->feed, (uint32_t)word);
		} else {
			feed_lost(pair, part, raw);
			feed_answer(pair, part);
		}
		pair->row_number++;
		if (++raw % LOOK_EVERY == 0 && stop && stop(context)) {
			err_set(err, ERR_STOPPED, "interrupted");
			return;
		}
	}
}

// Parts are paired one after the other, so only one table is in memory at a time.
bool index_pair_settle(struct index_pair *pair, bool (*stop)(void *context), void *context,
		       struct err *err)
{
	if (pair->err.kind != ERR_NONE) {
		*err = pair->err;
		return false;
	}
	empty_odd(pair);
	if (!pair->parts) {
		empty_table(pair);
		return true;
	}
	spill_turn(&pair->row);
	for (size_t i = 0; i < LIVE_TABLE_PARTS; i++) {
		if (!pair_part(pair, &pair->parts[i], err))
			return false;
		empty_table(pair);
		if (stop && stop(context))
			return err_set(err, ERR_STOPPED, "interrupted");
	}
	for (size_t i = 0; i < LIVE_TABLE_PARTS; i++) {
		pair->parts[i].last_raw = 0;
		spill_turn(&pair->parts[i].answers);
		next_answer(&pair->parts[i]);
	}
	pair->row_number = pair->feed->last_number;
	pair->feed->time_ns = pair->feed->last_time_ns;
	feed_row(pair, stop, context, err);
	for (size_t i = 0; i < LIVE_TABLE_PARTS; i++)
		if (!spill_ok(&pair->parts[i].answers, err))
			return false;
	return spill_ok(&pair->row, err) && err->kind == ERR_NONE;
}
