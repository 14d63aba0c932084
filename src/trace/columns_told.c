// Addresses that are foretold: what the ways say, read back.
#include "trace/columns_next.h"
#include "trace/foretell_follow.h"

// Where a difference to the thread's last address stands.
static __attribute__((noinline)) uint64_t next_far(struct columns_decoder *decoder)
{
	uint64_t high = (uint64_t)varint_unzigzag(columns_next_number(decoder, COLUMN_ADDRESS));
	uint64_t near = columns_next_byte(decoder, COLUMN_NEAR);

	near |= (uint64_t)columns_next_byte(decoder, COLUMN_NEAR) << 8;
	near |= high << COLUMNS_NEAR_BITS;
	return (near << COLUMNS_LOW_BITS) + columns_next_byte(decoder, COLUMN_ADDRESS_LOW);
}

// The same of the old address of a realloc.
static __attribute__((noinline)) uint64_t next_old_far(struct columns_decoder *decoder)
{
	return (uint64_t)varint_unzigzag(columns_next_number(decoder, COLUMN_OLD_ADDRESS));
}

// Events being read: what their thread has, and what their ways are read from. For one event these
// are the decoder's own; for many they are at hand.
struct following {
	struct columns_decoder *decoder;
	struct foretell_blocks *blocks;
	struct foretell_slot *slot;
	struct bytes_cursor *way, *number;
	uint32_t *lists;
	uint64_t *previous;
};

static inline __attribute__((always_inline)) uint8_t next_way(struct following *following)
{
	if (likely(following->way->at < following->way->end))
		return *following->way->at++;
	following->way->bad |= following->decoder->present[COLUMN_WAY];
	return FORETELL_TOP;
}

static COLD uint32_t careful_number(struct columns_decoder *decoder, struct bytes_cursor *in)
{
	return decoder->present[COLUMN_NUMBER] ? (uint32_t)bytes_next_signed(in) : 0;
}

enum { SHORT_ROOM = 4 }; // bytes from which numbers of up to three are read

// The number, where the way has one: without a branch on whether it has, nor on how long it is.
static inline __attribute__((always_inline)) uint32_t next_number(struct following *following,
								  bool wanted)
{
	struct bytes_cursor *in = following->number;
	uint32_t word, ends, mask, value, size;
	bool odd; // longer, or not said the shortest way

	if (unlikely(bytes_left(in) < SHORT_ROOM))
		return wanted ? careful_number(following->decoder, in) : 0;
	memcpy(&word, in->at, sizeof word);
	ends = ~word & 0x808080;
	mask = ends ^ (ends - 1); // up to the top bit of the last byte
	odd = ends == 0 || (mask > 0xff && (word & mask) <= mask >> 8);
	if (unlikely(odd && wanted))
		return careful_number(following->decoder, in);
	word &= mask;
	value = (word & 0x7f) | (word >> 1 & 0x3f80) | (word >> 2 & 0x1fc000);
	size = (unsigned)__builtin_ctz(ends | UINT32_C(1) << 31) / 8 + 1;
	in->at += wanted ? size : 0;
	return wanted ? (uint32_t)varint_unzigzag(value) : 0;
}

static inline __attribute__((always_inline)) struct foretell_told
next_told(struct following *following)
{
	uint8_t way = next_way(following);

	return (struct foretell_told){ way, next_number(following, way == FORETELL_NUMBERED) };
}

// Where the block is that ends. Returns its class, if it has a number; less than 0: it is nowhere.
static inline __attribute__((always_inline)) int next_ended(struct following *following, bool moves,
							    uint64_t *address)
{
	struct foretell_told told = next_told(following);
	uint32_t number;

	if (unlikely(told.way == FORETELL_FAR || told.way == FORETELL_STEP)) {
		uint64_t difference = following->slot->step;

		if (told.way == FORETELL_FAR)
			difference = moves ? next_old_far(following->decoder)
					   : next_far(following->decoder);
		foretell_note_step(following->slot, difference);
		*address = *following->previous + difference;
		return 0;
	}
	if (unlikely(!foretell_follow_ended(following->blocks, following->slot, told, &number)))
		return -1;
	*address = following->blocks->begun[number];
	return following->blocks->begun_class[number];
}

// Where the block begins, whose size is known. Returns its way; less than 0: it is nowhere.
static inline __attribute__((always_inline)) int next_begun(struct following *following,
							    struct trace_event *event)
{
	struct foretell_blocks *blocks = following->blocks;
	struct foretell_told told = next_told(following);
	uint64_t chunks = foretell_chunks(event->size);
	uint32_t *list = following->lists + foretell_class(chunks);

	if (unlikely(told.way == FORETELL_FAR))
		event->address = *following->previous + next_far(following->decoder);
	else if (unlikely(told.way == FORETELL_IN_PLACE && event->kind == TRACE_REALLOC))
		event->address = event->old_address;
	else if (unlikely(!foretell_follow_begun(blocks, following->slot, told, list,
						 &event->address)))
		return -1;
	foretell_put_begun(blocks, following->slot, told.way, event->address, chunks);
	return told.way;
}

static inline __attribute__((always_inline)) bool next_addresses(struct following *following,
								 struct trace_event *event)
{
	struct foretell_blocks *blocks = following->blocks;
	int class, way;

	if (foretell_ends(event->kind)) {
		class = next_ended(following, false, &event->address);
		if (unlikely(class < 0))
			return false;
		foretell_put_ended(blocks, following->lists + class, event->address);
	} else if (likely(event->kind != TRACE_REALLOC)) {
		if (unlikely(next_begun(following, event) < 0))
			return false;
	} else {
		class = next_ended(following, true, &event->old_address);
		way = class < 0 ? -1 : next_begun(following, event);
		if (unlikely(way < 0))
			return false;
		if (way != FORETELL_IN_PLACE)
			foretell_put_ended(blocks, following->lists + class, event->old_address);
	}
	*following->previous = event->address;
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
	struct foretell *foretell = decoder->foretell;
	struct following following = {
		.decoder = decoder,
		.blocks = &foretell->blocks,
		.slot = foretell_slot(foretell, event->thread),
		.way = &decoder->column[COLUMN_WAY],
		.number = &decoder->column[COLUMN_NUMBER],
		.lists = foretell_lists(&foretell->blocks, event->thread),
		.previous = &decoder->previous[event->thread % COLUMNS_SLOTS],
	};

	ASSERT(foretell->blocks.begun_count < foretell->room &&
	       foretell->blocks.ended_count < foretell->room);
	return next_addresses(&following, event) && !columns_bad(decoder);
}

bool columns_run_told(struct columns_decoder *decoder, struct trace_event *event, uint32_t count)
{
	uint32_t thread = event->thread;
	struct foretell *foretell = decoder->foretell;
	struct foretell_blocks blocks = foretell->blocks;
	struct foretell_slot slot = *foretell_slot(foretell, thread);
	struct bytes_cursor way = decoder->column[COLUMN_WAY];
	struct bytes_cursor number = decoder->column[COLUMN_NUMBER];
	uint64_t previous = decoder->previous[thread % COLUMNS_SLOTS];
	struct following following = {
		decoder, &blocks, &slot, &way, &number, foretell_lists(&blocks, thread), &previous,
	};

	ASSERT(count <= foretell->room - blocks.begun_count &&
	       count <= foretell->room - blocks.ended_count);
	for (uint32_t i = 0; i < count; i++)
		if (likely(foretell_knows(event[i].kind)))
			if (unlikely(!next_addresses(&following, &event[i])))
				return false;
	foretell->blocks = blocks;
	*foretell_slot(foretell, thread) = slot;
	decoder->column[COLUMN_WAY] = way;
	decoder->column[COLUMN_NUMBER] = number;
	decoder->previous[thread % COLUMNS_SLOTS] = previous;
	return !columns_bad(decoder);
}
