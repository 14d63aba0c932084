// Addresses that are predicted: what waits until the block is full, and its ways.
//
// To choose a way, the writer looks into a table of 512 KB (trace/predict.c). Done for each event
// as it comes, that table and all else that the collector does would push each other out of the
// cache. So addresses are collected, and the table is gone through once for each block.
//
// For example a block has 300 events of thread 1, then one mmap of it, then 200 of thread 2. There
// are three runs: (1, known, 300), (1, not known, 1), (2, known, 200). The first is predicted in
// rows of 128, 128 and 44 events; the second is a plain difference, as mmap's address follows no
// allocator.
#include "trace/columns.h"

#define BIT(column) (UINT64_C(1) << (column))

// The memory is kept from block to block; mem_alloc clears it, but only what is counted is ever
// read.
void columns_late_begin(struct columns_encoder *encoder)
{
	struct columns_late *late = encoder->late;

	if (!late)
		late = encoder->late = mem_alloc(1, sizeof *late);
	late->addresses = late->old_addresses = late->sizes = late->runs = 0;
}

// So many more addresses of a thread.
// A run is of one thread, as the state of a prediction is, and either all of it has ways or
// nothing.
static void add_run(struct columns_late *late, thread_id thread, bool known, uint32_t count)
{
	struct columns_late_run *run = late->runs > 0 ? &late->run[late->runs - 1] : NULL;

	if (!run || run->thread != thread || run->known != known) {
		run = &late->run[late->runs++];
		*run = (struct columns_late_run){ .thread = thread, .known = known };
	}
	run->count += count;
}

// `size` has entries of those only that begin a block and have ways: the rows of predict.h are
// without gaps.
void columns_late_add(struct columns_encoder *encoder, const struct trace_event *event)
{
	struct columns_late *late = encoder->late;
	uint8_t kind = event->kind;

	ASSERT(late->addresses < COLUMNS_EVENTS_MAX);
	add_run(late, event->thread, predict_knows(kind), 1);
	late->kind[late->addresses] = kind;
	late->address[late->addresses++] = event->address;
	if (columns_of_kind(kind) & BIT(COLUMN_OLD_ADDRESS))
		late->old_address[late->old_addresses++] = event->old_address;
	if (predict_knows(kind) && !predict_ends(kind))
		late->size[late->sizes++] = event->size;
}

// A row is copied column by column: the caller's arrays are used for the next row at once.
void columns_late_add_row(struct columns_encoder *encoder, const struct columns_row *row)
{
	struct columns_late *late = encoder->late;

	ASSERT(row->count <= COLUMNS_EVENTS_MAX - late->addresses);
	add_run(late, row->thread, true, row->count);
	memcpy(&late->kind[late->addresses], row->kind, row->count);
	memcpy(&late->address[late->addresses], row->address, row->count * sizeof *row->address);
	memcpy(&late->old_address[late->old_addresses], row->old_address,
	       row->moved * sizeof *row->old_address);
	memcpy(&late->size[late->sizes], row->size, row->begun * sizeof *row->size);
	late->addresses += row->count;
	late->old_addresses += row->moved;
	late->sizes += row->begun;
}

static void put_number(struct columns_encoder *encoder, enum column column, uint64_t value)
{
	bytes_add_varint(&encoder->column[column], value);
	encoder->columns_used |= (uint64_t)(value != 0) << column;
}

static void put_low(struct columns_encoder *encoder, uint8_t value)
{
	bytes_add(&encoder->column[COLUMN_ADDRESS_LOW], &value, 1);
	encoder->columns_used |= (uint64_t)(value != 0) << COLUMN_ADDRESS_LOW;
}

// What no way tells: two bytes of the difference at once, and the rest.
// For example delta = 0x12345678: its low four bits, 8, go to COLUMN_ADDRESS_LOW, the next sixteen,
// 0x4567, to COLUMN_NEAR as 67 45, and the rest, 0x123, to COLUMN_ADDRESS in zigzag. The middle is
// noise: kept apart, it does not spoil the compression of the others.
static void put_far(struct columns_encoder *encoder, uint64_t delta)
{
	uint8_t near[] = { (uint8_t)(delta >> COLUMNS_LOW_BITS),
			   (uint8_t)(delta >> (COLUMNS_LOW_BITS + 8)) };

	bytes_add(&encoder->column[COLUMN_NEAR], near, sizeof near);
	encoder->columns_used |= BIT(COLUMN_NEAR);
	put_low(encoder, delta & ((1 << COLUMNS_LOW_BITS) - 1));
	put_number(encoder, COLUMN_ADDRESS,
		   varint_zigzag((int64_t)delta >> (COLUMNS_LOW_BITS + COLUMNS_NEAR_BITS)));
}

// Ways are bytes and numbers varints: room is made once for all of the row, so that columns_pack
// may write whole words.
static void put_ways(struct columns_encoder *encoder, const struct predict_answer *answer)
{
	bytes_reserve(&encoder->column[COLUMN_WAY], answer->ways);
	bytes_reserve(&encoder->column[COLUMN_NUMBER], (answer->numbers + 1) * VARINT_BYTES_MAX);
	columns_append(encoder, COLUMN_WAY, answer->way, answer->ways);
	columns_pack(encoder, COLUMN_NUMBER, answer->number, answer->numbers);
	for (uint32_t i = 0; i < answer->far; i++)
		put_far(encoder, answer->far_from[i]);
	for (uint32_t i = 0; i < answer->old_far; i++)
		put_number(encoder, COLUMN_OLD_ADDRESS,
			   varint_zigzag((int64_t)answer->old_far_from[i]));
}

// An address that is not predicted. Returns whether it has an old one.
static bool put_plain(struct columns_encoder *encoder, uint8_t kind, uint64_t address,
		      uint64_t old_address, uint64_t previous)
{
	uint64_t delta = address - previous;

	put_low(encoder, delta & ((1 << COLUMNS_LOW_BITS) - 1));
	put_number(encoder, COLUMN_ADDRESS, varint_zigzag((int64_t)delta >> COLUMNS_LOW_BITS));
	if (!(columns_of_kind(kind) & BIT(COLUMN_OLD_ADDRESS)))
		return false;
	put_number(encoder, COLUMN_OLD_ADDRESS, varint_zigzag((int64_t)(address - old_address)));
	return true;
}

// A walk over what waits.
struct late_walk {
	uint32_t at, old_at, size_at;
};

// A run may be the whole block, and predict_row takes PREDICT_EVENTS_MAX events at most: it goes in
// parts. The walk moves by what each part used of each array.
static void tell_known(struct columns_encoder *encoder, const struct columns_late_run *run,
		       struct late_walk *walk, uint64_t *previous)
{
	const struct columns_late *late = encoder->late;
	uint32_t end = walk->at + run->count;
	struct predict_answer answer;

	while (walk->at < end) {
		struct predict_row row = {
			.count = end - walk->at,
			.thread = run->thread,
			.kind = &late->kind[walk->at],
			.address = &late->address[walk->at],
			.old_address = &late->old_address[walk->old_at],
			.size = &late->size[walk->size_at],
		};

		if (row.count > PREDICT_EVENTS_MAX)
			row.count = PREDICT_EVENTS_MAX;
		predict_row(encoder->predict, &row, *previous, &answer);
		put_ways(encoder, &answer);
		walk->at += row.count;
		walk->old_at += answer.moved;
		walk->size_at += answer.begun;
		*previous = late->address[walk->at - 1];
	}
}

// The previous address is shared with what is predicted: a difference is to the thread's last
// address, whatever kind of event had it.
static void tell_plain(struct columns_encoder *encoder, const struct columns_late_run *run,
		       struct late_walk *walk, uint64_t *previous)
{
	const struct columns_late *late = encoder->late;

	for (uint32_t end = walk->at + run->count; walk->at < end; walk->at++) {
		walk->old_at += put_plain(encoder, late->kind[walk->at], late->address[walk->at],
					  late->old_address[walk->old_at], *previous);
		*previous = late->address[walk->at];
	}
}

// `previous` is 0 here for all threads, since begin_block cleared it and nothing was encoded since.
void columns_late_tell(struct columns_encoder *encoder)
{
	const struct columns_late *late = encoder->late;
	struct late_walk walk = { 0 };

	encoder->predict = predict_renew(encoder->predict, COLUMNS_EVENTS_MAX, true);
	for (uint32_t i = 0; i < late->runs; i++) {
		const struct columns_late_run *run = &late->run[i];
		uint64_t *previous = &encoder->previous[run->thread % COLUMNS_SLOTS];

		if (run->known)
			tell_known(encoder, run, &walk, previous);
		else
			tell_plain(encoder, run, &walk, previous);
	}
	ASSERT(walk.at == late->addresses && walk.old_at == late->old_addresses);
}
