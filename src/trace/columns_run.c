// Many events at once: what columns_next does, for those that nearly all are.
//
// A kind's recipe is made once for each block. In nearly all blocks malloc's is ADDRESS, HIGH, LOW,
// SIZE and STACK, and that of free ADDRESS, HIGH and LOW. The loop over a run of events of one
// thread and one time looks at the recipe's bits alone, and the cursors of the columns are local
// variables.
//
// Where a number in the run turns out to be damaged, all that the run did to the decoder has to be
// undone. What was predicted cannot be: the block is begun anew, and read event by event up to
// where the run began (come_back), where columns_next finds the damage and says which event it is.
#include "trace/columns_next.h"

// What an event of a kind has in this block, as far as runs know it.
enum recipe {
	HAS_ADDRESS = 1 << 0,
	HAS_HIGH = 1 << 1, // the address has an entry in its column; else that is all zeros
	HAS_LOW = 1 << 2,
	HAS_OLD_ADDRESS = 1 << 3,
	IN_PLACE = 1 << 4, // the old address is the new one: its column is all zeros
	HAS_SIZE = 1 << 5,
	HAS_STACK = 1 << 6,
	HAS_ALIGN = 1 << 7,
	HAS_FREE_STACK = 1 << 8,
	NO_RUN = 1 << 9, // for columns_next
	FEW = HAS_OLD_ADDRESS | IN_PLACE | HAS_ALIGN | HAS_FREE_STACK,
};

// The columns that runs know, with what they are in a recipe.
static const struct {
	uint8_t column;
	uint16_t recipe;
} known[] = {
	{ COLUMN_ADDRESS, HAS_HIGH },
	{ COLUMN_ADDRESS_LOW, HAS_LOW },
	{ COLUMN_SIZE, HAS_SIZE },
	{ COLUMN_OLD_ADDRESS, HAS_OLD_ADDRESS },
	{ COLUMN_STACK, HAS_STACK },
	{ COLUMN_ALIGN, HAS_ALIGN },
	{ COLUMN_FREE_STACK, HAS_FREE_STACK },
};

// A column that is missing stands for zeros, so it has no bit in the recipe. What few events have
// (heaps, flags, all of virtual memory) makes NO_RUN, if the column is there at all.
static uint16_t recipe_of(const struct columns_decoder *decoder, unsigned kind)
{
	uint64_t columns = decoder->kinds_mask[kind];
	uint16_t recipe = 0;

	if (columns == 0 || kind > TRACE_FAILED)
		return NO_RUN;
	if (decoder->told && columns >> COLUMN_ADDRESS & 1)
		return NO_RUN; // shares columns with those that are predicted
	for (unsigned column = COLUMN_HEAP; column <= COLUMN_ORIGIN; column++)
		if (columns >> column & decoder->present[column])
			return NO_RUN;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (columns >> known[i].column & decoder->present[known[i].column])
			recipe |= known[i].recipe;
	if (columns >> COLUMN_ADDRESS & 1)
		recipe |= HAS_ADDRESS;
	if (columns >> COLUMN_OLD_ADDRESS & !decoder->present[COLUMN_OLD_ADDRESS])
		recipe |= IN_PLACE;
	return recipe;
}

void columns_run_init(struct columns_decoder *decoder)
{
	for (unsigned kind = 0; kind <= UINT8_MAX; kind++)
		decoder->recipe[kind] = recipe_of(decoder, kind);
}

// How many events of one thread and one time come, at most.
// The first event of a run of times or threads is not among them: columns_next reads it, and with
// it how long the run is. Each event has a byte in the column of kinds, so that one is checked here
// for all.
static uint32_t limit(const struct columns_decoder *decoder, uint32_t max)
{
	size_t kinds = bytes_left(&decoder->column[COLUMN_KIND]);

	if (decoder->run_ns_left < max)
		max = (uint32_t)decoder->run_ns_left;
	if (decoder->run_thread_left < max)
		max = (uint32_t)decoder->run_thread_left;
	if (decoder->left < max)
		max = decoder->left;
	return kinds < max ? (uint32_t)kinds : max;
}

// Near the column's end, where no whole word can be read, and for what is not well formed.
static COLD uint64_t careful_number(struct bytes_cursor *in)
{
	return bytes_next(in);
}

static inline __attribute__((always_inline)) uint64_t next_number(struct bytes_cursor *in)
{
	uint64_t value;
	size_t size;

	if (likely(in->at < in->end) && *in->at < 0x80)
		return *in->at++;
	if (unlikely(bytes_left(in) < WORD_BYTES || !word_decode(in->at, &value, &size)))
		return careful_number(in);
	in->at += size;
	return value;
}

static inline __attribute__((always_inline)) uint8_t next_byte(struct bytes_cursor *in)
{
	if (likely(in->at < in->end))
		return *in->at++;
	in->bad = true;
	return 0;
}

// What was predicted cannot be taken back: begin the block anew and go to where the run began.
// Reading again is quadratic at worst in one block of at most 65,536 events, once: `careful` says
// that no run is tried again after it.
static COLD void come_back(struct columns_decoder *decoder)
{
	struct columns_start start = decoder->start;
	uint32_t left = decoder->left;
	struct trace_event event;

	columns_decoder_init(decoder, start.payload, start.events_count, start.first_event,
			     start.first_ns);
	while (decoder->left > left && columns_next(decoder, &event) == COLUMNS_EVENT)
		continue;
	decoder->careful = true;
}

// Nothing of the decoder is changed before all of the run is known to be good: the cursors are
// copies. Only what is predicted changes as it goes, see come_back.
uint32_t columns_run(struct columns_decoder *decoder, struct trace_event *events, uint32_t max)
{
	const uint8_t *kinds = decoder->column[COLUMN_KIND].at;
	struct bytes_cursor high = decoder->column[COLUMN_ADDRESS];
	struct bytes_cursor low = decoder->column[COLUMN_ADDRESS_LOW];
	struct bytes_cursor old = decoder->column[COLUMN_OLD_ADDRESS];
	struct bytes_cursor size = decoder->column[COLUMN_SIZE];
	struct bytes_cursor stack = decoder->column[COLUMN_STACK];
	struct bytes_cursor align = decoder->column[COLUMN_ALIGN];
	struct bytes_cursor free_stack = decoder->column[COLUMN_FREE_STACK];
	uint64_t *previous = &decoder->previous[decoder->thread % COLUMNS_SLOTS];
	uint64_t address = *previous;
	bool good = true;
	uint32_t count;

	max = decoder->careful ? 0 : limit(decoder, max);
	for (count = 0; count < max; count++) {
		struct trace_event *event = &events[count];
		unsigned recipe = decoder->recipe[kinds[count]];

		if (unlikely(recipe & NO_RUN))
			break;
		*event = (struct trace_event){
			.number = decoder->number + count,
			.time_ns = decoder->time_ns,
			.thread = decoder->thread,
			.kind = kinds[count],
		};
		if (recipe & HAS_SIZE)
			event->size = next_number(&size);
		if (likely(recipe & HAS_HIGH))
			address += (uint64_t)varint_unzigzag(next_number(&high)) << 4;
		if (unlikely(recipe & HAS_LOW))
			address += next_byte(&low);
		if (likely(recipe & HAS_ADDRESS))
			event->address = address;
		if (recipe & HAS_STACK)
			event->stack = (stack_id)next_number(&stack);
		if (likely(!(recipe & FEW)))
			continue;
		if (recipe & HAS_OLD_ADDRESS)
			event->old_address = address - (uint64_t)varint_unzigzag(next_number(&old));
		if (recipe & IN_PLACE)
			event->old_address = address;
		if (recipe & HAS_ALIGN)
			event->align_log2 = next_byte(&align);
		if (recipe & HAS_FREE_STACK)
			event->stack |= (stack_id)next_number(&free_stack);
	}
	if (decoder->told && count > 0)
		good = columns_run_told(decoder, events, count);
	// Where a column is damaged, columns_next finds the event.
	if (unlikely(!good | high.bad | low.bad | old.bad | size.bad | stack.bad | align.bad |
		     free_stack.bad)) {
		if (decoder->told)
			come_back(decoder);
		return 0;
	}
	decoder->column[COLUMN_KIND].at += count;
	// Where addresses are predicted, their columns belong to columns_run_told, which has moved
	// them.
	if (!decoder->told) {
		decoder->column[COLUMN_ADDRESS] = high;
		decoder->column[COLUMN_ADDRESS_LOW] = low;
		decoder->column[COLUMN_OLD_ADDRESS] = old;
		*previous = address;
	}
	decoder->column[COLUMN_SIZE] = size;
	decoder->column[COLUMN_STACK] = stack;
	decoder->column[COLUMN_ALIGN] = align;
	decoder->column[COLUMN_FREE_STACK] = free_stack;
	ASSERT(count <= decoder->left && count <= decoder->run_ns_left);
	decoder->number += count;
	decoder->left -= count;
	decoder->run_ns_left -= count;
	decoder->run_thread_left -= count;
	return count;
}
