// The frame of a block: which kinds have which columns, which columns there are, and how long each
// is.
//
// For example, a block of one thread with two events, malloc(64) at 0x1000 by stack 3 and its free.
// It says that two kinds are in it: malloc has the columns kind, thread, time, address, its low
// bits, size and stack; free has kind, thread, time, address, low bits and the stack that frees.
// The last is 0, as nearly always, and a column of zeros alone is left out, so the columns are
//
//     kind     1 4            (TRACE_MALLOC, TRACE_FREE)
//     thread   a run: the thread, twice
//     time     a run: 0 after the block's first time, twice
//     address  differences to the address before, without their low four bits
//     low      those bits
//     size     64             one entry: free has none
//     stack    3              one entry
//
// A reader that knows a kind holds the block's word for it against its own: at least the columns
// that it knows the kind by have to be there. One that does not know a kind steps over its entries,
// since the block says in which columns they are. A length that is longer than what is left makes
// the block damaged, and no byte of it is believed.
#include "trace/columns_next.h"

#include "base/mem.h"
#include "trace/block.h"

_Static_assert(COLUMNS_COUNT <= COLUMNS_MAX, "sets of columns are bits");
_Static_assert(COLUMNS_ROW_MAX <= COLUMNS_EVENTS_MAX, "a row fits into a block");
_Static_assert(COLUMNS_LOW_BITS < COLUMNS_NEAR_BITS, "parts of one difference");

#define BIT(column) (UINT64_C(1) << (column))
#define ADDRESS (BIT(COLUMN_ADDRESS) | BIT(COLUMN_ADDRESS_LOW))
#define EVERY (BIT(COLUMN_KIND) | BIT(COLUMN_THREAD) | BIT(COLUMN_TIME))
#define BEGINS (ADDRESS | BIT(COLUMN_SIZE) | BIT(COLUMN_STACK))

// What calls on virtual memory have in common, and what few events have at all.
#define VM (ADDRESS | BIT(COLUMN_STACK) | BIT(COLUMN_ORIGIN))
#define CALL (VM | BIT(COLUMN_SIZE) | BIT(COLUMN_ERROR))
#define FILES (BIT(COLUMN_OFFSET) | BIT(COLUMN_FILE))
#define RARE                                                                                     \
	(BIT(COLUMN_HEAP) | BIT(COLUMN_OLD_SIZE) | BIT(COLUMN_PROTECTION) | BIT(COLUMN_OFFSET) | \
	 BIT(COLUMN_ERROR) | BIT(COLUMN_FLAGS) | BIT(COLUMN_FILE) | BIT(COLUMN_ORIGIN))

// Kinds 16 to 31 have no columns, as they are not given yet: their entry is 0, as that of any kind
// that we do not know.
enum { KINDS_COUNT = TRACE_UNMAPPED + 1 };

_Static_assert(KINDS_COUNT <= 64, "kinds_used has a bit for each kind");

static const uint64_t kind_columns[KINDS_COUNT] = {
	[TRACE_MALLOC] = BEGINS,
	[TRACE_CALLOC] = BEGINS,
	[TRACE_ALIGNED] = BEGINS | BIT(COLUMN_ALIGN),
	[TRACE_FREE] = ADDRESS | BIT(COLUMN_FREE_STACK),
	[TRACE_REALLOC] = BEGINS | BIT(COLUMN_OLD_ADDRESS),
	[TRACE_REALLOC_FREE] = ADDRESS | BIT(COLUMN_FREE_STACK),
	[TRACE_REALLOC_ALLOC] = BEGINS,
	[TRACE_REALLOC_UNDO] = BEGINS,
	[TRACE_REALLOC_FAILED] = BEGINS,
	[TRACE_FAILED] = BIT(COLUMN_SIZE) | BIT(COLUMN_STACK),
	[TRACE_HEAP_ALLOC] = BEGINS | BIT(COLUMN_HEAP),
	[TRACE_HEAP_FREE] = ADDRESS | BIT(COLUMN_FREE_STACK) | BIT(COLUMN_HEAP),
	[TRACE_HEAP_RESET] = BIT(COLUMN_FREE_STACK) | BIT(COLUMN_HEAP),
	[TRACE_HEAP_DESTROY] = BIT(COLUMN_FREE_STACK) | BIT(COLUMN_HEAP),
	[TRACE_BEFORE] = BEGINS,
	[TRACE_MMAP] = CALL | FILES | BIT(COLUMN_PROTECTION) | BIT(COLUMN_FLAGS),
	[TRACE_MUNMAP] = CALL,
	[TRACE_MREMAP] = CALL | BIT(COLUMN_OLD_ADDRESS) | BIT(COLUMN_OLD_SIZE) | BIT(COLUMN_FLAGS),
	[TRACE_BRK] = VM | BIT(COLUMN_OLD_ADDRESS) | BIT(COLUMN_ERROR),
	[TRACE_MPROTECT] = CALL | BIT(COLUMN_PROTECTION),
	[TRACE_MADVISE] = CALL | BIT(COLUMN_FLAGS),
	[TRACE_MLOCK] = CALL | BIT(COLUMN_FLAGS),
	[TRACE_SHMAT] = CALL | FILES | BIT(COLUMN_PROTECTION) | BIT(COLUMN_FLAGS),
	[TRACE_SHMDT] = CALL,
	[TRACE_REMAP] = CALL | BIT(COLUMN_OFFSET) | BIT(COLUMN_FLAGS),
	[TRACE_MAPPED] = VM | FILES | BIT(COLUMN_SIZE) | BIT(COLUMN_PROTECTION) | BIT(COLUMN_FLAGS),
	[TRACE_UNMAPPED] = VM | BIT(COLUMN_SIZE),
};

uint64_t columns_of_kind(uint8_t kind)
{
	return kind < KINDS_COUNT ? kind_columns[kind] : 0;
}

void columns_encoder_fini(struct columns_encoder *encoder)
{
	for (int i = 0; i < COLUMNS_COUNT; i++)
		bytes_fini(&encoder->column[i]);
	predict_free(encoder->predict);
	encoder->predict = NULL;
	mem_free(encoder->late);
	encoder->late = NULL;
}

// A column of zeros alone is left out.
static uint64_t columns_kept(const struct columns_encoder *encoder)
{
	uint64_t kept = EVERY;

	for (int column = COLUMN_ADDRESS; column < COLUMNS_COUNT; column++)
		// What every event has is always there, of zeros too: a reader that knows no kind
		// of a block steps through it by these three.
		if (encoder->columns_used & BIT(column))
			kept |= BIT(column);
	return kept;
}

// Kinds and columns are written in rising order, since the loops go by number. The buffers keep
// their memory for the next block, and `previous` is cleared when that begins.
void columns_finish(struct columns_encoder *encoder, struct bytes *out, struct block_packer *packer)
{
	uint64_t kept;

	ASSERT(encoder->count <= COLUMNS_EVENTS_MAX);
	ASSERT(encoder->count > 0 || encoder->kinds_used == 0);
	ASSERT(packer == NULL || (packer->cuts_count == 0 && packer->gaps_count == 0));
	columns_close(encoder);
	if (encoder->gapped && (packer == NULL || !columns_sparse(encoder)))
		columns_fill(encoder);
	kept = columns_kept(encoder);
	bytes_add_varint(out, (uint64_t)__builtin_popcountll(encoder->kinds_used));
	for (uint8_t kind = 0; kind < KINDS_COUNT; kind++) {
		if (!(encoder->kinds_used & BIT(kind)))
			continue;
		bytes_add_varint(out, kind);
		bytes_add_varint(out, columns_written(encoder, kind));
	}
	bytes_add_varint(out, (uint64_t)__builtin_popcountll(kept));
	for (unsigned column = 0; column < COLUMNS_COUNT; column++) {
		if (!(kept & BIT(column)))
			continue;
		bytes_add_varint(out, column);
		bytes_add_varint(out, encoder->column[column].size + encoder->gap[column].size);
	}
	for (int column = 0; column < COLUMNS_COUNT; column++) {
		struct bytes *bytes = &encoder->column[column];
		struct columns_gap *gap = &encoder->gap[column];

		if ((kept & BIT(column)) && packer != NULL) {
			packer->names[packer->cuts_count] = (uint8_t)column;
			packer->cuts[packer->cuts_count++] = out->size;
		}
		if ((kept & BIT(column)) && gap->size > 0)
			packer->gaps[packer->gaps_count++] = (struct block_gap){
				.at = out->size + gap->at,
				.period = gap->period,
				.size = gap->size,
			};
		if (kept & BIT(column))
			bytes_add(out, bytes->data, bytes->size);
		bytes->size = gap->size = 0;
	}
	encoder->count = encoder->roomy = 0;
	encoder->kinds_used = encoder->columns_used = 0;
	encoder->gapped = false;
}

// A kind that we know has at least the columns that we know it by, or the way of its addresses in
// place of theirs.
static bool columns_suffice(uint8_t kind, uint64_t columns)
{
	uint64_t wanted = columns_of_kind(kind);

	if (columns & BIT(COLUMN_WAY)) {
		wanted = columns_told(wanted);
		if (!predict_knows(kind) || (columns & (ADDRESS | BIT(COLUMN_OLD_ADDRESS))))
			return false;
	}
	return (columns & wanted) == wanted;
}

// The table of kinds. False where it contradicts what we know of a kind: then nothing of the block
// can be trusted. A kind that is listed twice has the columns of its last entry.
static bool read_kinds(struct columns_decoder *decoder, struct bytes_cursor *in)
{
	uint64_t count = bytes_next(in);

	for (uint64_t i = 0; i < count && !in->bad; i++) {
		uint64_t kind = bytes_next(in);
		uint64_t columns = bytes_next(in);

		if (kind > UINT8_MAX || kind == 0)
			return false;
		if (!columns_suffice((uint8_t)kind, columns))
			return false;
		decoder->told |= columns >> COLUMN_WAY & 1;
		// Bit 63 is no column; it marks a kind as present whatever its columns are.
		decoder->kinds_mask[kind] = columns | BIT(63);
	}
	return !in->bad;
}

// Lengths come first, then the bytes of all columns, so each is known to be there before any entry
// is read. Numbers must rise: so no column comes twice. Columns of later versions are stepped over.
static bool read_columns(struct columns_decoder *decoder, struct bytes_cursor *in)
{
	uint64_t sizes[COLUMNS_MAX];
	uint8_t ids[COLUMNS_MAX];
	uint64_t count = bytes_next(in);

	if (count > COLUMNS_MAX)
		return false;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t id = bytes_next(in);

		if (id >= COLUMNS_MAX || (i > 0 && id <= ids[i - 1]))
			return false;
		ids[i] = (uint8_t)id;
		sizes[i] = bytes_next(in);
	}
	for (uint64_t i = 0; i < count; i++) {
		const uint8_t *at = bytes_next_raw(in, sizes[i]);

		if (!at)
			return false;
		if (ids[i] >= COLUMNS_COUNT)
			continue;
		decoder->column[ids[i]] = bytes_cursor(at, (size_t)sizes[i]);
		decoder->present[ids[i]] = true;
	}
	return !in->bad;
}

// `predict` and `spots` are kept from block to block, as their tables are large. All else begins
// with the block.
bool columns_decoder_init(struct columns_decoder *decoder, struct bytes_cursor payload,
			  uint32_t events_count, uint64_t first_event, uint64_t first_ns)
{
	struct predict *predict = decoder->predict;
	struct columns_spots *spots = decoder->spots;

	memset(decoder, 0, sizeof *decoder);
	decoder->predict = predict;
	decoder->spots = spots;
	decoder->start = (struct columns_start){ payload, events_count, first_event, first_ns };
	if (!read_kinds(decoder, &payload) || !read_columns(decoder, &payload))
		return false;
	for (int column = 0; column < COLUMNS_COUNT; column++)
		if ((EVERY & BIT(column)) && !decoder->present[column])
			return false;
	decoder->left = events_count;
	decoder->number = first_event;
	decoder->time_ns = first_ns;
	columns_run_init(decoder);
	if (decoder->told) {
		// Room for predictions is allocated by the number of events, which a hostile header
		// may say is 4 billion. Each event has a byte in the column of kinds, so that
		// column says how many there can be.
		size_t kinds = bytes_left(&decoder->column[COLUMN_KIND]);

		// No more events than kinds.
		if (events_count > kinds)
			events_count = (uint32_t)kinds;
		decoder->predict = predict_renew(decoder->predict, events_count, false);
	}
	return true;
}

void columns_decoder_fini(struct columns_decoder *decoder)
{
	predict_free(decoder->predict);
	decoder->predict = NULL;
}

// Undoes end_time_run. For example the bytes 15 3: the low bit of 15 is set, so a count follows.
// The delta is 7 ns, and this event and 3 + 1 more are at that time. False: the column ended, or
// the time would leave 64 bits.
static bool next_time(struct columns_decoder *decoder)
{
	struct bytes_cursor *in = &decoder->column[COLUMN_TIME];
	uint64_t value;

	if (decoder->run_ns_left > 0) {
		decoder->run_ns_left--;
		return true;
	}
	value = bytes_next(in);
	if (value & 1)
		decoder->run_ns_left = bytes_next(in) + 1;
	return !in->bad && !__builtin_add_overflow(decoder->time_ns, value >> 1, &decoder->time_ns);
}

// Undoes end_thread_run: the same with a signed difference of threads. It may lead to a thread that
// is not there; the caller checks ids.
static bool next_thread(struct columns_decoder *decoder)
{
	struct bytes_cursor *in = &decoder->column[COLUMN_THREAD];
	uint64_t value;

	if (decoder->run_thread_left > 0) {
		decoder->run_thread_left--;
		return true;
	}
	value = bytes_next(in);
	if (value & 1)
		decoder->run_thread_left = bytes_next(in) + 1;
	decoder->thread += (uint32_t)varint_unzigzag(value >> 1);
	return !in->bad;
}

// An entry that has 32 bits in memory. A larger one is damage: cut off, it would be another heap or
// file.
static inline uint32_t next_u32(struct columns_decoder *decoder, enum column column)
{
	uint64_t value = columns_next_number(decoder, column);

	if (value > UINT32_MAX)
		decoder->column[column].bad = true;
	return (uint32_t)value;
}

// What add_rare wrote.
static __attribute__((noinline)) bool next_rare(struct columns_decoder *decoder,
						struct trace_event *event, uint64_t columns)
{
	struct trace_vm *vm = &decoder->vm;
	bool bad = false;

	*vm = (struct trace_vm){ 0 };
	if (columns & BIT(COLUMN_HEAP))
		event->heap = next_u32(decoder, COLUMN_HEAP);
	if (columns & BIT(COLUMN_OLD_SIZE))
		vm->old_size = columns_next_number(decoder, COLUMN_OLD_SIZE);
	if (columns & BIT(COLUMN_PROTECTION))
		vm->protection = next_u32(decoder, COLUMN_PROTECTION);
	if (columns & BIT(COLUMN_OFFSET))
		vm->offset = columns_next_number(decoder, COLUMN_OFFSET);
	if (columns & BIT(COLUMN_ERROR))
		vm->error = next_u32(decoder, COLUMN_ERROR);
	if (columns & BIT(COLUMN_FLAGS))
		vm->flags = next_u32(decoder, COLUMN_FLAGS);
	if (columns & BIT(COLUMN_FILE))
		vm->file = next_u32(decoder, COLUMN_FILE);
	if (columns & BIT(COLUMN_ORIGIN))
		vm->origin = columns_next_byte(decoder, COLUMN_ORIGIN);
	for (int column = COLUMN_HEAP; column < COLUMNS_COUNT; column++)
		bad |= decoder->column[column].bad;
	if (trace_kind_is_vm(event->kind))
		event->vm = vm;
	else
		event->flags = vm->flags;
	if (event->kind == TRACE_BRK)
		event->size = event->address > event->old_address
				      ? event->address - event->old_address
				      : event->old_address - event->address;
	return !bad;
}

// Each field of the event; true if none of the columns ended early.
static bool next_fields(struct columns_decoder *decoder, struct trace_event *event,
			uint64_t columns)
{
	bool bad = false;

	// What the kind has no column for is 0, and `event` may have been used before.
	event->address = event->old_address = event->size = 0;
	event->stack = 0;
	event->align_log2 = 0;
	event->heap = 0;
	event->flags = 0;
	event->vm = NULL;
	if (columns & BIT(COLUMN_SIZE)) {
		event->size = columns_next_number(decoder, COLUMN_SIZE);
		bad |= decoder->column[COLUMN_SIZE].bad;
	}
	// After the size, since the list that a way speaks of is chosen by it.
	if (columns & BIT(COLUMN_WAY))
		bad |= !columns_next_told(decoder, event);
	if (columns & BIT(COLUMN_ADDRESS)) {
		uint64_t *previous = &decoder->previous[event->thread % COLUMNS_SLOTS];
		uint64_t high = columns_next_number(decoder, COLUMN_ADDRESS);

		*previous += (uint64_t)varint_unzigzag(high) << 4;
		*previous += columns_next_byte(decoder, COLUMN_ADDRESS_LOW);
		event->address = *previous;
		bad |= decoder->column[COLUMN_ADDRESS].bad |
		       decoder->column[COLUMN_ADDRESS_LOW].bad;
	}
	if (columns & BIT(COLUMN_OLD_ADDRESS)) {
		uint64_t delta = columns_next_number(decoder, COLUMN_OLD_ADDRESS);

		event->old_address = event->address - (uint64_t)varint_unzigzag(delta);
		bad |= decoder->column[COLUMN_OLD_ADDRESS].bad;
	}
	if (columns & BIT(COLUMN_STACK)) {
		event->stack = (stack_id)columns_next_number(decoder, COLUMN_STACK);
		bad |= decoder->column[COLUMN_STACK].bad;
	}
	if (columns & BIT(COLUMN_ALIGN)) {
		event->align_log2 = columns_next_byte(decoder, COLUMN_ALIGN);
		bad |= decoder->column[COLUMN_ALIGN].bad;
	}
	if (columns & BIT(COLUMN_FREE_STACK)) {
		event->stack |= (stack_id)columns_next_number(decoder, COLUMN_FREE_STACK);
		bad |= decoder->column[COLUMN_FREE_STACK].bad;
	}
	if (unlikely(columns & RARE))
		bad |= !next_rare(decoder, event, columns);
	return !bad;
}

// An event of a kind that we do not know is read as all others, so that every cursor moves on, and
// is then dropped: it has its number, though, and the next event has the one after it.
enum columns_result columns_next(struct columns_decoder *decoder, struct trace_event *event)
{
	while (decoder->left > 0) {
		uint8_t kind = columns_next_byte(decoder, COLUMN_KIND);
		uint64_t columns = decoder->kinds_mask[kind];

		if (unlikely(columns == 0) || !next_time(decoder) || !next_thread(decoder))
			return COLUMNS_DAMAGED;
		event->kind = kind;
		event->thread = decoder->thread;
		event->time_ns = decoder->time_ns;
		event->number = decoder->number;
		if (!next_fields(decoder, event, columns))
			return COLUMNS_DAMAGED;
		decoder->number++;
		decoder->left--;
		if (likely(columns_of_kind(kind) != 0))
			return COLUMNS_EVENT;
		decoder->unknown++;
	}
	return COLUMNS_END;
}
