// Addresses that are foretold: what the ways say, read back.
#include "trace/columns_next.h"
#include "trace/foretell_follow.h"

// Where a difference to the thread's last address stands.
static uint64_t next_far(struct columns_decoder *decoder)
{
	uint64_t high = (uint64_t)varint_unzigzag(columns_next_number(decoder, COLUMN_ADDRESS));
	uint64_t near = columns_next_byte(decoder, COLUMN_NEAR);

	near |= (uint64_t)columns_next_byte(decoder, COLUMN_NEAR) << 8;
	near |= high << COLUMNS_NEAR_BITS;
	return (near << COLUMNS_LOW_BITS) + columns_next_byte(decoder, COLUMN_ADDRESS_LOW);
}

// The same of the old address of a realloc.
static uint64_t next_old_far(struct columns_decoder *decoder)
{
	return (uint64_t)varint_unzigzag(columns_next_number(decoder, COLUMN_OLD_ADDRESS));
}

static inline struct foretell_told next_way(struct columns_decoder *decoder)
{
	struct foretell_told told = { .way = columns_next_byte(decoder, COLUMN_WAY) };

	if (told.way == FORETELL_NUMBERED)
		told.number = columns_next_number(decoder, COLUMN_NUMBER);
	return told;
}

// The block that ends, its class only where it has a number.
static inline bool next_ended(struct columns_decoder *decoder, struct foretell_slot *slot,
			      uint64_t previous, bool moves, struct foretell_place *block)
{
	struct foretell_told told = next_way(decoder);
	const struct foretell_place *begun;

	if (unlikely(told.way == FORETELL_FAR || told.way == FORETELL_STEP)) {
		uint64_t difference = slot->step;

		if (told.way == FORETELL_FAR)
			difference = moves ? next_old_far(decoder) : next_far(decoder);
		foretell_note_step(slot, difference);
		*block = (struct foretell_place){ .address = previous + difference };
		return true;
	}
	begun = foretell_follow_ended(decoder->foretell, slot, told);
	if (likely(begun))
		*block = *begun;
	return begun != NULL;
}

// Where the block begins, whose size is known. `old_address` counts where it may be in place.
static inline bool next_begun(struct columns_decoder *decoder, struct foretell_slot *slot,
			      struct trace_event *event, uint64_t previous, uint8_t *way)
{
	struct foretell *foretell = decoder->foretell;
	uint64_t chunks = foretell_chunks(event->size);
	struct foretell_told told = next_way(decoder);

	*way = told.way;
	if (unlikely(told.way == FORETELL_FAR))
		event->address = previous + next_far(decoder);
	else if (unlikely(told.way == FORETELL_IN_PLACE))
		event->address = event->old_address;
	else if (unlikely(!foretell_follow_begun(foretell, event->thread, slot, told, chunks,
						 &event->address)))
		return false;
	foretell_put_begun(foretell, slot, told.way, event->address, chunks);
	return told.way != FORETELL_IN_PLACE || event->kind == TRACE_REALLOC;
}

static __attribute__((noinline)) bool next_moved(struct columns_decoder *decoder,
						 struct foretell_slot *slot,
						 struct trace_event *event, uint64_t previous)
{
	struct foretell_place block;
	uint8_t way;

	if (!next_ended(decoder, slot, previous, true, &block))
		return false;
	event->old_address = block.address;
	if (!next_begun(decoder, slot, event, previous, &way))
		return false;
	if (way != FORETELL_IN_PLACE)
		foretell_put_ended(decoder->foretell, event->thread, block.address, block.class);
	return true;
}

// Has one of the columns that addresses are read from ended early?
static inline bool columns_bad(const struct columns_decoder *decoder)
{
	return decoder->column[COLUMN_WAY].bad | decoder->column[COLUMN_NUMBER].bad |
	       decoder->column[COLUMN_NEAR].bad | decoder->column[COLUMN_ADDRESS].bad |
	       decoder->column[COLUMN_ADDRESS_LOW].bad | decoder->column[COLUMN_OLD_ADDRESS].bad;
}

bool columns_next_told(struct columns_decoder *decoder, struct trace_event *event)
{
	uint64_t *previous = &decoder->previous[event->thread % COLUMNS_SLOTS];
	struct foretell_slot *slot = foretell_slot(decoder->foretell, event->thread);
	struct foretell_place block;
	uint8_t way;
	bool good;

	if (foretell_ends(event->kind)) {
		good = next_ended(decoder, slot, *previous, false, &block);
		if (unlikely(!good))
			return false;
		event->address = block.address;
		foretell_put_ended(decoder->foretell, event->thread, block.address, block.class);
	} else if (likely(event->kind != TRACE_REALLOC)) {
		good = next_begun(decoder, slot, event, *previous, &way);
	} else {
		good = next_moved(decoder, slot, event, *previous);
	}
	*previous = event->address;
	return good && !columns_bad(decoder);
}
