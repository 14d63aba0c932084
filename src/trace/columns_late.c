// Addresses that are foretold: what waits until the block is full, and its ways.
#include "trace/columns.h"

#include "wire/compiler.h"

#define BIT(column) (UINT64_C(1) << (column))

void columns_late_begin(struct columns_encoder *encoder)
{
	struct columns_late *late = encoder->late;

	if (!late)
		late = encoder->late = mem_alloc(1, sizeof *late);
	late->addresses = late->old_addresses = late->sizes = late->runs = 0;
}

// So many more addresses of a thread.
static void add_run(struct columns_late *late, thread_id thread, uint32_t count)
{
	if (late->runs == 0 || late->run[late->runs - 1].thread != thread)
		late->run[late->runs++] = (struct columns_late_run){ .thread = thread };
	late->run[late->runs - 1].count += count;
}

void columns_late_add(struct columns_encoder *encoder, const struct trace_event *event)
{
	struct columns_late *late = encoder->late;
	uint8_t kind = event->kind;

	add_run(late, event->thread, 1);
	late->kind[late->addresses] = kind;
	late->address[late->addresses++] = event->address;
	if (columns_of_kind(kind) & BIT(COLUMN_OLD_ADDRESS))
		late->old_address[late->old_addresses++] = event->old_address;
	if (foretell_knows(kind) && !foretell_ends(kind))
		late->size[late->sizes++] = event->size;
}

void columns_late_add_row(struct columns_encoder *encoder, const struct columns_row *row)
{
	struct columns_late *late = encoder->late;

	add_run(late, row->thread, row->count);
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

static void put_byte(struct columns_encoder *encoder, enum column column, uint8_t value)
{
	bytes_add(&encoder->column[column], &value, 1);
	encoder->columns_used |= (uint64_t)(value != 0) << column;
}

// What no way tells: two bytes of the difference at once, and the rest.
static void put_far(struct columns_encoder *encoder, uint64_t delta)
{
	uint8_t near[] = { (uint8_t)(delta >> COLUMNS_LOW_BITS),
			   (uint8_t)(delta >> (COLUMNS_LOW_BITS + 8)) };

	bytes_add(&encoder->column[COLUMN_NEAR], near, sizeof near);
	encoder->columns_used |= BIT(COLUMN_NEAR);
	put_byte(encoder, COLUMN_ADDRESS_LOW, delta & ((1 << COLUMNS_LOW_BITS) - 1));
	put_number(encoder, COLUMN_ADDRESS,
		   varint_zigzag((int64_t)delta >> (COLUMNS_LOW_BITS + COLUMNS_NEAR_BITS)));
}

static void put_ways(struct columns_encoder *encoder, const struct foretell_row *row,
		     uint64_t previous)
{
	struct foretell_answer answer;
	uint8_t all = 0;

	foretell_row(encoder->foretell, row, previous, &answer);
	for (uint32_t i = 0; i < answer.ways; i++)
		all |= answer.way[i];
	bytes_add(&encoder->column[COLUMN_WAY], answer.way, answer.ways);
	encoder->columns_used |= (uint64_t)(all != 0) << COLUMN_WAY;
	for (uint32_t i = 0; i < answer.numbers; i++)
		put_number(encoder, COLUMN_NUMBER, answer.number[i]);
	for (uint32_t i = 0; i < answer.far; i++)
		put_far(encoder, answer.far_from[i]);
	for (uint32_t i = 0; i < answer.old_far; i++)
		put_number(encoder, COLUMN_OLD_ADDRESS,
			   varint_zigzag((int64_t)answer.old_far_from[i]));
}

// How many of the first `count` events have ways, and how many of their blocks begin and move.
static uint32_t count_known(const uint8_t *kind, uint32_t count, uint32_t *begun, uint32_t *moved)
{
	uint32_t known;

	*begun = *moved = 0;
	if (count > FORETELL_EVENTS_MAX)
		count = FORETELL_EVENTS_MAX;
	for (known = 0; known < count && foretell_knows(kind[known]); known++) {
		*begun += !foretell_ends(kind[known]);
		*moved += kind[known] == TRACE_REALLOC;
	}
	return known;
}

// An address that is not foretold. Returns whether it has an old one.
static bool put_plain(struct columns_encoder *encoder, uint8_t kind, uint64_t address,
		      uint64_t old_address, uint64_t previous)
{
	uint64_t delta = address - previous;

	put_byte(encoder, COLUMN_ADDRESS_LOW, delta & ((1 << COLUMNS_LOW_BITS) - 1));
	put_number(encoder, COLUMN_ADDRESS, varint_zigzag((int64_t)delta >> COLUMNS_LOW_BITS));
	if (!(columns_of_kind(kind) & BIT(COLUMN_OLD_ADDRESS)))
		return false;
	put_number(encoder, COLUMN_OLD_ADDRESS, varint_zigzag((int64_t)(address - old_address)));
	return true;
}

void columns_late_tell(struct columns_encoder *encoder)
{
	const struct columns_late *late = encoder->late;
	uint32_t at = 0, old_at = 0, size_at = 0;

	encoder->foretell = foretell_renew(encoder->foretell, COLUMNS_EVENTS_MAX, true);
	for (uint32_t i = 0; i < late->runs; i++) {
		uint64_t *previous = &encoder->previous[late->run[i].thread % COLUMNS_SLOTS];
		uint32_t end = at + late->run[i].count;

		while (at < end) {
			uint32_t begun, moved;
			struct foretell_row row = {
				.thread = late->run[i].thread,
				.kind = &late->kind[at],
				.address = &late->address[at],
				.old_address = &late->old_address[old_at],
				.size = &late->size[size_at],
			};

			row.count = count_known(row.kind, end - at, &begun, &moved);
			if (row.count > 0)
				put_ways(encoder, &row, *previous);
			else
				moved = put_plain(encoder, *row.kind, *row.address,
						  *row.old_address, *previous);
			at += row.count > 0 ? row.count : 1;
			old_at += moved;
			size_at += begun;
			*previous = late->address[at - 1];
		}
	}
}
