#include "trace/foretell.h"

#include "trace/foretell_follow.h"

#include <string.h>

// The writer's table: the newest number that an address has, of a block that began or of one that
// ended. A later address takes the place of an earlier one, which is then told as a difference.
enum { TABLE_BITS = 16, TABLE_ENDED = 1 };

void foretell_free(struct foretell *foretell)
{
	if (!foretell)
		return;
	mem_free(foretell->begun);
	mem_free(foretell->ended);
	mem_free(foretell->table);
	mem_free(foretell);
}

struct foretell *foretell_renew(struct foretell *old, uint32_t events, bool writes)
{
	struct foretell *foretell = old;

	if (!foretell)
		foretell = mem_alloc(1, sizeof *foretell);
	if (foretell->room < events) {
		foretell->begun = mem_resize(foretell->begun, events, sizeof *foretell->begun);
		foretell->ended = mem_resize(foretell->ended, events, sizeof *foretell->ended);
		foretell->room = events;
	}
	if (writes && !foretell->table)
		foretell->table = mem_alloc(1 << TABLE_BITS, sizeof *foretell->table);
	foretell->begun_count = foretell->ended_count = 0;
	memset(foretell->slots, 0, sizeof foretell->slots);
	memset(foretell->lists, 0, sizeof foretell->lists);
	return foretell;
}

static inline uint32_t *table_at(const struct foretell *foretell, uint64_t address)
{
	uint32_t chunk = (uint32_t)(address >> FORETELL_CHUNK_LOG2);

	return &foretell->table[(chunk ^ chunk >> TABLE_BITS) % (1 << TABLE_BITS)];
}

static inline void put_way(struct foretell_answer *answer, unsigned way, int64_t number)
{
	answer->way[answer->ways++] = (uint8_t)way;
	answer->number[answer->numbers] = varint_zigzag(number);
	answer->numbers += way == FORETELL_NUMBERED;
}

// A block ends that is not known from this block of events. True: that is a difference to tell.
static inline bool tell_far(struct foretell_slot *slot, uint64_t difference,
			    struct foretell_answer *answer)
{
	bool far = difference != slot->step;

	put_way(answer, far ? FORETELL_FAR : FORETELL_STEP, 0);
	foretell_note_step(slot, difference);
	return far;
}

// The way of the block that ends. Returns its class, or 0. *far: there is no way.
static inline uint8_t tell_ended(struct foretell *foretell, struct foretell_slot *slot,
				 uint64_t address, uint32_t found, uint64_t previous,
				 struct foretell_answer *answer, bool *far)
{
	uint32_t number = found >> 1, expected = slot->next;
	unsigned way = FORETELL_NUMBERED;

	*far = (found & TABLE_ENDED) || number >= foretell->begun_count ||
	       foretell->begun[number].address != address;
	if (*far) {
		number = expected;
		*far = number >= foretell->begun_count ||
		       foretell->begun[number].address != address;
	}
	if (*far) {
		*far = tell_far(slot, address - previous, answer);
		return 0;
	}
	if (number == expected)
		way = FORETELL_NEXT;
	if (number + 1 == slot->latest)
		way = FORETELL_LATEST;
	put_way(answer, way, (int64_t)number - (int64_t)expected);
	slot->next = number + 1;
	return foretell->begun[number].class;
}

// Where the block that has the number lies in the list: its way. 0: not near the top.
static inline unsigned find_deep(struct foretell *foretell, uint32_t *at, uint32_t number)
{
	for (unsigned depth = 0; depth < FORETELL_DEPTHS; depth++) {
		if (foretell_settle(foretell, at) == 0)
			return 0;
		if (*at == number + 1) {
			foretell_take(foretell, at);
			return FORETELL_DEEPER - 1 + depth;
		}
		at = &foretell->ended[*at - 1].link;
	}
	return 0;
}

// Where neither the top of the list nor a rest tells: further down in the list, or by number.
static inline unsigned tell_other(struct foretell *foretell, struct foretell_slot *slot,
				  uint64_t address, uint32_t *list, uint8_t class, uint32_t found,
				  int64_t *distance)
{
	struct foretell_place *ended = &foretell->ended[found >> 1];
	uint32_t number = found >> 1;
	unsigned way = 0;

	if (!(found & TABLE_ENDED) || number >= foretell->ended_count || ended->address != address)
		return FORETELL_FAR;
	if (ended->class == class)
		way = find_deep(foretell, list, number);
	if (way != 0)
		return way;
	*distance = (int64_t)number - (int64_t)slot->take;
	slot->take = number + 1;
	ended->class = 0;
	return FORETELL_NUMBERED;
}

static inline unsigned tell_begun(struct foretell *foretell, uint32_t thread,
				  struct foretell_slot *slot, uint64_t address, uint64_t chunks,
				  uint32_t found, struct foretell_answer *answer)
{
	uint8_t class = foretell_class(chunks);
	uint32_t *list = foretell_list(foretell, thread, class);
	uint32_t top = foretell_settle(foretell, list);
	int64_t distance = 0;
	unsigned way = 0;

	if (top != 0 && foretell->ended[top - 1].address == address) {
		foretell_take(foretell, list);
		put_way(answer, FORETELL_TOP, 0);
		return FORETELL_TOP;
	}
	for (unsigned i = FORETELL_RESTS; i-- > 0;)
		if (slot->rest[i] == address)
			way = FORETELL_BEHIND + i;
	if (way == 0)
		way = tell_other(foretell, slot, address, list, class, found, &distance);
	put_way(answer, way, distance);
	return way;
}

// A realloc. The old block ends when the new one has its place.
static __attribute__((noinline)) void tell_moved(struct foretell *foretell, uint32_t thread,
						 uint64_t old_address, uint64_t address,
						 uint64_t size, uint64_t previous,
						 struct foretell_answer *answer)
{
	struct foretell_slot *slot = foretell_slot(foretell, thread);
	uint32_t *old_at = table_at(foretell, old_address), *at = table_at(foretell, address);
	uint64_t chunks = foretell_chunks(size);
	unsigned way = FORETELL_IN_PLACE;
	uint8_t class;
	bool far;

	class = tell_ended(foretell, slot, old_address, *old_at, previous, answer, &far);
	if (far)
		answer->old_far_from[answer->old_far++] = old_address - previous;
	if (address == old_address)
		put_way(answer, way, 0);
	else
		way = tell_begun(foretell, thread, slot, address, chunks, *at, answer);
	if (way == FORETELL_FAR)
		answer->far_from[answer->far++] = address - previous;
	*at = foretell_put_begun(foretell, slot, (uint8_t)way, address, chunks) << 1;
	if (way != FORETELL_IN_PLACE)
		*old_at = foretell_put_ended(foretell, thread, old_address, class) << 1 |
			  TABLE_ENDED;
}

void foretell_row(struct foretell *foretell, const struct foretell_row *row, uint64_t previous,
		  struct foretell_answer *answer)
{
	struct foretell_slot *slot = foretell_slot(foretell, row->thread);
	const uint64_t *size = row->size, *old_address = row->old_address;

	answer->ways = answer->numbers = answer->far = answer->old_far = 0;
	for (uint32_t i = 0; i < row->count; i++) {
		uint64_t address = row->address[i];
		uint32_t *at = table_at(foretell, address);

		if (foretell_ends(row->kind[i])) {
			bool far;
			uint8_t class =
				tell_ended(foretell, slot, address, *at, previous, answer, &far);

			if (far)
				answer->far_from[answer->far++] = address - previous;
			*at = foretell_put_ended(foretell, row->thread, address, class) << 1 |
			      TABLE_ENDED;
		} else if (likely(row->kind[i] != TRACE_REALLOC)) {
			uint64_t chunks = foretell_chunks(*size++);
			unsigned way = tell_begun(foretell, row->thread, slot, address, chunks, *at,
						  answer);

			if (way == FORETELL_FAR)
				answer->far_from[answer->far++] = address - previous;
			*at = foretell_put_begun(foretell, slot, (uint8_t)way, address, chunks)
			      << 1;
		} else {
			tell_moved(foretell, row->thread, *old_address++, address, *size++,
				   previous, answer);
		}
		previous = address;
	}
}
