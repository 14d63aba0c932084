// For example, one thread calls five times; each block of 40 bytes takes 3 chunks, 48 bytes:
//
//     malloc(40) = 0x1000   way 1: nothing is known, the difference to 0 is written. Block 0; after
//                           it, at 0x1030, is the thread's first rest
//     malloc(40) = 0x1030   way 4: at the first rest. Block 1; the rest is 0x1060 now
//     free(0x1030)          way 0: the block that it began last. The list of class 3 is 0x1030;
//                           *next* is block 2
//     malloc(40) = 0x1030   way 0: the first of its list, which is empty again. Block 2
//     free(0x1000)          way 3: block 0, that is *next* - 2, which zigzag writes as 3
//
// Five bytes of ways, one number and one difference are all that is written of five addresses.
//
// For the same five, the lists at the end: list 3 is 0x1000, the block that ended last and was not
// taken since.
#include "trace/predict.h"

#include "trace/predict_follow.h"
#include "wire/varint.h"

#include <string.h>

// The writer's table: what was last at an address, a block that began or one that ended. A later
// address takes the place of an earlier one, which then is mostly told as a difference. What stands
// there is all that is asked for, so that nothing else is looked at:
//
//     bits 0 to 15     its number
//     bits 16 to 43    bits 20 to 47 of the address; 4 to 19 follow from where it is
//     bits 44 to 51    its class; 0: not known
//     bit 52           did it end?
//     bits 53 to 59    the turn: which block of events this is of
//     bits 60 to 63    bits 0 to 3 of the address
//
// An address of more bits has a place of its own, where it is never found.
enum {
	TABLE_BITS = 16,
	NOWHERE = 1 << TABLE_BITS, // behind the table
	CLASS_SHIFT = 44,
	TURN_SHIFT = 53,
	TURNS = 1 << 7,
};

#define NUMBER_MASK UINT64_C(0x000000000000ffff)
#define ADDRESS_MASK UINT64_C(0xf0000fffffff0000)
#define WIDE_MASK UINT64_C(0x0ffff00000000000)
#define ENDED_BIT (UINT64_C(1) << 52)
#define KEY_MASK (ADDRESS_MASK | ENDED_BIT | UINT64_C(0x0fe0000000000000))

_Static_assert(PREDICT_ROOM_MAX <= NUMBER_MASK + 1, "a number has its bits in the table");

void predict_free(struct predict *predict)
{
	if (!predict)
		return;
	MEM_FREE(predict->blocks.begun, predict->blocks.begun_class, predict->blocks.begun_spot,
		 predict->blocks.ended, predict->table, predict);
}

// Seven bits of turn: after 127 blocks of events the table is cleared, and the turns begin again at
// 1. So an entry of 0 is of no turn.
static void begin_turn(struct predict *predict)
{
	const size_t count = NOWHERE + 1;

	ASSERT(predict->room <= PREDICT_ROOM_MAX);
	if (!predict->table)
		predict->table = mem_alloc(count, sizeof *predict->table);
	predict->turn++;
	if (predict->turn < TURNS)
		return;
	predict->turn = 1;
	memset(predict->table, 0, count * sizeof *predict->table);
}

// Grows only: blocks of events are of one size but for the last of a second.
static void make_room(struct predict *predict, uint32_t events, bool writes)
{
	struct predict_blocks *blocks = &predict->blocks;

	if (events <= predict->room)
		return;
	blocks->begun = mem_resize(blocks->begun, events, sizeof *blocks->begun);
	blocks->begun_class = mem_resize(blocks->begun_class, events, 1);
	if (!writes)
		blocks->begun_spot =
			mem_resize(blocks->begun_spot, events, sizeof *blocks->begun_spot);
	blocks->ended = mem_resize(blocks->ended, events, sizeof *blocks->ended);
	predict->room = events;
}

// A block of events is decoded by itself, so nothing is remembered of the one before but memory.
struct predict *predict_renew(struct predict *old, uint32_t events, bool writes)
{
	struct predict *predict = old ? old : mem_alloc(1, sizeof *predict);

	make_room(predict, events, writes);
	if (writes)
		begin_turn(predict);
	predict->blocks.begun_count = predict->blocks.ended_count = 0;
	memset(predict->slots, 0, sizeof predict->slots);
	memset(predict->lists, 0, sizeof predict->lists);
	predict->blocks.lists = predict->lists;
	return predict;
}

// Where an address is in the table, and what it has there but for class and number, as one that
// began.
struct place {
	uint64_t key;
	uint32_t at;
};

// For example 0x7f12345678a0: turned by four bits it is 0x7f12345678a, so that the low bits, mostly
// 0, do not choose the place. The place is 0x678a ^ 0x2345 = 0x44cf, and bits 16 and up of `turned`
// are compared. Both together are the whole address: two addresses that share a place differ there.
static inline __attribute__((always_inline)) struct place place_of(struct predict *predict,
								   uint64_t address)
{
	uint64_t turned = address >> PREDICT_CHUNK_LOG2 | address << (64 - PREDICT_CHUNK_LOG2);
	struct place place = {
		(turned & ADDRESS_MASK) | predict->turn << TURN_SHIFT,
		(turned ^ turned >> TABLE_BITS) & (NOWHERE - 1),
	};

	if (unlikely(turned & WIDE_MASK))
		place = (struct place){ ++predict->wide << TABLE_BITS, NOWHERE };
	return place;
}

static inline uint32_t number_of(uint64_t entry)
{
	return (uint32_t)(entry & NUMBER_MASK);
}

static inline uint8_t class_of(uint64_t entry)
{
	return (uint8_t)(entry >> CLASS_SHIFT);
}

// Events being told. What the thread has is kept here, and what has been written.
struct telling {
	struct predict *predict;
	uint64_t *table;
	struct predict_blocks blocks;
	struct predict_slot slot;
	struct predict_answer *answer;
	uint32_t *lists;
	uint32_t ways, numbers, far;
	uint64_t previous;
};

static inline __attribute__((always_inline)) void put_way(struct telling *telling, unsigned way)
{
	telling->answer->way[telling->ways++] = (uint8_t)way;
}

// With a number, if the way has one.
// The number is written in any case and counts only where the way has one: that is cheaper than a
// branch that the processor guesses wrong. The array has an element more for that.
static inline __attribute__((always_inline)) void
put_numbered(struct telling *telling, unsigned way, uint32_t number, uint32_t from)
{
	put_way(telling, way);
	telling->answer->number[telling->numbers] = varint_zigzag((int64_t)number - (int64_t)from);
	telling->numbers += way == PREDICT_NUMBERED;
}

// A block ends that is not known from this block of events. True: that is a difference to tell.
// A program that frees an array of blocks that are older than the block of events goes by equal
// steps: the step is remembered, and costs no number.
static inline __attribute__((always_inline)) bool tell_far(struct telling *telling,
							   uint64_t difference)
{
	bool far = difference != telling->slot.step;

	put_way(telling, far ? PREDICT_FAR : PREDICT_STEP);
	predict_note_step(&telling->slot, difference);
	return far;
}

// The way of the block that ends. Returns its class, or 0. *far: there is no way.
// tell_ended: the table may have lost the block to another one with the same place. Then it is
// looked for where programs most often free next, in the order of allocation; there alone, as a
// search would cost more than the few bytes of a difference.
static inline __attribute__((always_inline)) uint8_t
tell_ended(struct telling *telling, uint64_t address, struct place place, bool *far)
{
	const struct predict_blocks *blocks = &telling->blocks;
	uint64_t entry = telling->table[place.at];
	uint32_t number = number_of(entry), expected = telling->slot.next;
	uint8_t class = class_of(entry);
	unsigned way = PREDICT_NUMBERED;

	*far = false;
	if (unlikely((entry & KEY_MASK) != place.key)) {
		number = expected;
		if (number >= blocks->begun_count || blocks->begun[number] != address) {
			*far = tell_far(telling, address - telling->previous);
			return 0;
		}
		class = blocks->begun_class[number];
	}
	way = number == expected ? PREDICT_NEXT : way;
	way = number + 1 == telling->slot.latest ? PREDICT_LATEST : way;
	put_numbered(telling, way, number, expected);
	telling->slot.next = number + 1;
	return class;
}

// Where the block that has the number lies in its list, of which it is not the first, that is
// settled: its way, and it leaves the list. 0: not near the top.
// At most PREDICT_DEPTHS - 1 steps down the list. Those that have left it are unlinked on the way,
// as the reader does it in predict_follow_begun: the lists of both must stay alike.
static inline unsigned find_deep(const struct predict_blocks *blocks, uint32_t *list,
				 uint32_t number)
{
	ASSERT(number < blocks->ended_count);
	for (unsigned way = PREDICT_DEEPER; way < PREDICT_BEGINNINGS && *list != 0; way++) {
		list = &blocks->ended[*list - 1].older;
		if (predict_settle(blocks, list) == number + 1) {
			predict_take(blocks, list);
			return way;
		}
	}
	return 0;
}

// The first rest that is at the address: its way, or 0.
// From the last to the first without a branch; the lowest index wins.
static inline __attribute__((always_inline)) unsigned find_rest(const struct predict_slot *slot,
								uint64_t address)
{
	unsigned way = 0;

#pragma GCC unroll 4
	for (unsigned i = PREDICT_RESTS; i-- > 0;)
		way = slot->rest[i] == address ? PREDICT_BEHIND + i : way;
	return way;
}

// Returns the way of the block that begins.
// What is tried, in this order: the top of the list of its size, which is what an allocator with a
// free list gives; the rests, which is what one gives that cuts blocks off a larger one; deeper in
// the list; the number of any block that ended; and the difference. The reader follows what is
// written, and does not need the order.
static inline __attribute__((always_inline)) unsigned
tell_begun(struct telling *telling, uint64_t address, uint64_t chunks, struct place place)
{
	struct predict_blocks *blocks = &telling->blocks;
	uint64_t entry = telling->table[place.at];
	uint8_t class = predict_class(chunks);
	uint32_t *list = telling->lists + class, top = predict_settle(blocks, list);
	uint32_t number = number_of(entry);
	bool known = (entry & KEY_MASK) == (place.key | ENDED_BIT);
	unsigned way;

	// What the table has forgotten may still be the first of its list.
	if (known ? top == number + 1 : top != 0 && blocks->ended[top - 1].address == address) {
		predict_take(blocks, list);
		put_way(telling, PREDICT_TOP);
		return PREDICT_TOP;
	}
	way = find_rest(&telling->slot, address);
	if (way == 0 && known && class_of(entry) == class)
		way = find_deep(blocks, list, number);
	if (way == 0 && known) {
		put_numbered(telling, PREDICT_NUMBERED, number, telling->slot.take);
		telling->slot.take = number + 1;
		blocks->ended[number].left = true;
		return PREDICT_NUMBERED;
	}
	if (way == 0)
		way = PREDICT_FAR;
	put_way(telling, way);
	return way;
}

// A block began, and the table knows.
static inline __attribute__((always_inline)) void put_begun(struct telling *telling, unsigned way,
							    uint64_t address, uint64_t chunks,
							    struct place place)
{
	uint32_t number = predict_put_begun(&telling->blocks, &telling->slot, way, address, chunks);

	if (way == PREDICT_FAR)
		telling->answer->far_from[telling->far++] = address - telling->previous;
	telling->table[place.at] = place.key | (uint64_t)predict_class(chunks) << CLASS_SHIFT |
				   number;
}

// The block goes into the list of its class, and into the table as one that ended, in the place
// where it was as one that began.
static inline __attribute__((always_inline)) void
put_ended(struct telling *telling, uint64_t address, uint8_t class, struct place place)
{
	uint32_t number = predict_put_ended(&telling->blocks, telling->lists + class, address);

	telling->table[place.at] = place.key | ENDED_BIT | (uint64_t) class << CLASS_SHIFT | number;
}

// A realloc. The old block ends when the new one has its place.
static inline __attribute__((always_inline)) void
tell_moved(struct telling *telling, uint64_t old_address, uint64_t address, uint64_t size)
{
	struct predict_answer *answer = telling->answer;
	struct place old = place_of(telling->predict, old_address);
	struct place new = place_of(telling->predict, address);
	uint64_t chunks = predict_chunks(size);
	unsigned way = PREDICT_IN_PLACE;
	uint8_t class;
	bool far;

	class = tell_ended(telling, old_address, old, &far);
	if (far)
		answer->old_far_from[answer->old_far++] = old_address - telling->previous;
	if (address == old_address)
		put_way(telling, way);
	else
		way = tell_begun(telling, address, chunks, new);
	put_begun(telling, way, address, chunks, new);
	if (way != PREDICT_IN_PLACE)
		put_ended(telling, old_address, class, old);
}

// Where each address is. What will be looked at is asked for.
static inline void find_places(struct predict *predict, const uint64_t *address, uint32_t count,
			       struct place *place)
{
	for (uint32_t i = 0; i < count; i++) {
		place[i] = place_of(predict, address[i]);
		__builtin_prefetch(&predict->table[place[i].at], 1);
	}
}

// What is asked of memory is asked early: find_places prefetches the table's entries of the whole
// row, 128 at most, before the first is looked at.
void predict_row(struct predict *predict, const struct predict_row *row, uint64_t previous,
		 struct predict_answer *answer)
{
	struct predict_slot *slot = predict_slot(predict, row->thread);
	struct telling telling = {
		.predict = predict,
		.table = predict->table,
		.blocks = predict->blocks,
		.slot = *slot,
		.answer = answer,
		.lists = predict_lists(&predict->blocks, row->thread),
		.previous = previous,
	};
	const uint8_t *kind = row->kind;
	uint32_t count = row->count;
	const uint64_t *address = row->address, *old_address = row->old_address, *size = row->size;
	struct place place[PREDICT_EVENTS_MAX];

	ASSERT(count <= PREDICT_EVENTS_MAX && count <= predict->room - telling.blocks.begun_count &&
	       count <= predict->room - telling.blocks.ended_count);
	find_places(predict, address, count, place);
	answer->old_far = 0;
	for (uint32_t i = 0; i < count; i++) {
		if (predict_ends(kind[i])) {
			bool far;
			uint8_t class = tell_ended(&telling, address[i], place[i], &far);

			if (far)
				answer->far_from[telling.far++] = address[i] - telling.previous;
			put_ended(&telling, address[i], class, place[i]);
		} else if (likely(kind[i] != TRACE_REALLOC)) {
			uint64_t chunks = predict_chunks(*size++);
			unsigned way = tell_begun(&telling, address[i], chunks, place[i]);

			put_begun(&telling, way, address[i], chunks, place[i]);
		} else {
			tell_moved(&telling, *old_address++, address[i], *size++);
		}
		telling.previous = address[i];
	}
	predict->blocks = telling.blocks;
	*slot = telling.slot;
	ASSERT(telling.ways <= 2 * PREDICT_EVENTS_MAX && telling.far <= PREDICT_EVENTS_MAX);
	answer->begun = (uint32_t)(size - row->size);
	answer->moved = (uint32_t)(old_address - row->old_address);
	answer->ways = telling.ways;
	answer->numbers = telling.numbers;
	answer->far = telling.far;
}
