// Addresses that are predicted: what the ways say, read back.
//
// The writer chose a way and a number for each address (trace/predict.c); here they lead back to
// the address, by the same state (trace/predict_follow.h).
//
// For example way PREDICT_TOP for a malloc of 40 bytes: that is class 3, and the first of the
// thread's list 3 is the block of that class that ended last. Its address is the new block's. Way
// PREDICT_NUMBERED has a signed number, a distance from the block that was taken last.
//
// A hostile trace may have any way and any number: each leads to a place that exists, or the block
// of events is damaged.
#include "trace/columns_next.h"
#include "trace/predict_follow.h"

// Where a difference to the thread's last address stands.
// Undoes put_far: for example high 0x123, near 67 45 and low 8 are 0x12345678.
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
	struct predict_blocks *blocks;
	struct predict_slot *slot;
	struct bytes_cursor *way, *number;
	uint32_t *lists;
	uint64_t *previous;
	struct columns_spots *spots; // NULL: none are asked for
	uint32_t *spot, *old_spot;   // of the event, in `spots`
};

static __attribute__((noinline)) uint32_t spot_of(struct columns_spots *spots, uint64_t address)
{
	return spots ? spots_of(&spots->spots, address) : 0;
}

// A column that is left out stands for zeros, and 0 is PREDICT_TOP or PREDICT_LATEST: that is no
// damage.
static inline __attribute__((always_inline)) uint8_t next_way(struct following *following)
{
	if (likely(following->way->at < following->way->end))
		return *following->way->at++;
	following->way->bad |= following->decoder->present[COLUMN_WAY];
	return PREDICT_TOP;
}

static COLD uint32_t careful_number(struct columns_decoder *decoder, struct bytes_cursor *in)
{
	return decoder->present[COLUMN_NUMBER] ? (uint32_t)bytes_next_signed(in) : 0;
}

enum { SHORT_ROOM = 4 }; // bytes from which numbers of up to three are read

// The number, where the way has one: without a branch on whether it has, nor on how long it is.
// For example the bytes ac 02 and any third: ends has bit 15 set and none below it, so mask is
// 0xffff, and word becomes 0x02ac. The groups are 0x2c and 0x02 << 7, together 300, in size = 2
// bytes; zigzag makes it 150. A last byte of 0 would say the same number in a longer way, which is
// refused: such a word is not above mask >> 8.
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

// A way, and its number if it has one: at most two entries.
static inline __attribute__((always_inline)) struct predict_told
next_told(struct following *following)
{
	uint8_t way = next_way(following);

	return (struct predict_told){ way, next_number(following, way == PREDICT_NUMBERED) };
}

// Where the block is that ends, and its spot. Returns its class, if it has a number; less than 0:
// it is nowhere.
static inline __attribute__((always_inline)) int next_ended(struct following *following, bool moves,
							    uint64_t *address, uint32_t *spot)
{
	struct predict_told told = next_told(following);
	uint32_t number;

	if (unlikely(told.way == PREDICT_FAR || told.way == PREDICT_STEP)) {
		uint64_t difference = following->slot->step;

		if (told.way == PREDICT_FAR)
			difference = moves ? next_old_far(following->decoder)
					   : next_far(following->decoder);
		predict_note_step(following->slot, difference);
		*address = *following->previous + difference;
		*spot = spot_of(following->spots, *address);
		return 0;
	}
	if (unlikely(!predict_follow_ended(following->blocks, following->slot, told, &number)))
		return -1;
	*address = following->blocks->begun[number];
	*spot = following->blocks->begun_spot[number];
	return following->blocks->begun_class[number];
}

// Where the block begins, whose size is known. Returns its way; less than 0: it is nowhere.
static inline __attribute__((always_inline)) int next_begun(struct following *following,
							    struct trace_event *event)
{
	struct predict_blocks *blocks = following->blocks;
	struct predict_told told = next_told(following);
	uint64_t chunks = predict_chunks(event->size);
	uint32_t *list = following->lists + predict_class(chunks);
	uint32_t from = PREDICT_NONE, number;

	if (unlikely(told.way == PREDICT_FAR))
		event->address = *following->previous + next_far(following->decoder);
	else if (unlikely(told.way == PREDICT_IN_PLACE && event->kind == TRACE_REALLOC))
		event->address = event->old_address;
	else if (unlikely(!predict_follow_begun(blocks, following->slot, told, list,
						&event->address, &from)))
		return -1;
	*following->spot = from == PREDICT_NONE ? spot_of(following->spots, event->address)
						: blocks->ended[from].spot;
	number = predict_put_begun(blocks, following->slot, told.way, event->address, chunks);
	blocks->begun_spot[number] = *following->spot;
	return told.way;
}

static inline __attribute__((always_inline)) void put_ended(struct following *following, int class,
							    uint64_t address, uint32_t spot)
{
	uint32_t number = predict_put_ended(following->blocks, following->lists + class, address);

	following->blocks->ended[number].spot = spot & INT32_MAX;
}

// The order is that of tell_moved and predict_row: for a realloc first where the old block is, then
// the new one begins, and only then does the old one enter a list; the new block cannot take the
// place of its own old one by a list.
static inline __attribute__((always_inline)) bool next_addresses(struct following *following,
								 struct trace_event *event)
{
	int class, way;

	if (predict_ends(event->kind)) {
		class = next_ended(following, false, &event->address, following->spot);
		if (unlikely(class < 0))
			return false;
		put_ended(following, class, event->address, *following->spot);
	} else if (likely(event->kind != TRACE_REALLOC)) {
		if (unlikely(next_begun(following, event) < 0))
			return false;
	} else {
		class = next_ended(following, true, &event->old_address, following->old_spot);
		way = class < 0 ? -1 : next_begun(following, event);
		if (unlikely(way < 0))
			return false;
		if (way != PREDICT_IN_PLACE)
			put_ended(following, class, event->old_address, *following->old_spot);
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

// There is room for one more in both rows: they were made for as many events as the block has.
bool columns_next_told(struct columns_decoder *decoder, struct trace_event *event)
{
	struct predict *predict = decoder->predict;
	uint32_t spot = 0, old_spot = 0;
	struct following following = {
		.decoder = decoder,
		.blocks = &predict->blocks,
		.slot = predict_slot(predict, event->thread),
		.way = &decoder->column[COLUMN_WAY],
		.number = &decoder->column[COLUMN_NUMBER],
		.lists = predict_lists(&predict->blocks, event->thread),
		.previous = &decoder->previous[event->thread % COLUMNS_SLOTS],
		.spots = decoder->spots,
		.spot = &spot,
		.old_spot = &old_spot,
	};

	ASSERT(predict->blocks.begun_count < predict->room &&
	       predict->blocks.ended_count < predict->room);
	return next_addresses(&following, event) && !columns_bad(decoder);
}

// The state is copied to local variables, which the compiler can keep in registers, and copied back
// if all went well. After damage it is not copied back, but the arrays that it points to were
// written: hence come_back.
bool columns_run_told(struct columns_decoder *decoder, struct trace_event *event, uint32_t count)
{
	uint32_t thread = event->thread;
	struct predict *predict = decoder->predict;
	struct predict_blocks blocks = predict->blocks;
	struct predict_slot slot = *predict_slot(predict, thread);
	struct bytes_cursor way = decoder->column[COLUMN_WAY];
	struct bytes_cursor number = decoder->column[COLUMN_NUMBER];
	uint64_t previous = decoder->previous[thread % COLUMNS_SLOTS];
	uint32_t spot = 0, old_spot = 0;
	struct following following = {
		decoder,   &blocks,        &slot,
		&way,      &number,        predict_lists(&blocks, thread),
		&previous, decoder->spots, &spot,
		&old_spot,
	};

	ASSERT(count <= predict->room - blocks.begun_count &&
	       count <= predict->room - blocks.ended_count);
	ASSERT(!decoder->spots || count <= COLUMNS_ROW_MAX);
	for (uint32_t i = 0; i < count; i++)
		if (likely(predict_knows(event[i].kind))) {
			if (unlikely(!next_addresses(&following, &event[i])))
				return false;
			if (decoder->spots) {
				decoder->spots->spot[i] = spot;
				decoder->spots->old_spot[i] = old_spot;
			}
		}
	predict->blocks = blocks;
	*predict_slot(predict, thread) = slot;
	decoder->column[COLUMN_WAY] = way;
	decoder->column[COLUMN_NUMBER] = number;
	decoder->previous[thread % COLUMNS_SLOTS] = previous;
	return !columns_bad(decoder);
}
