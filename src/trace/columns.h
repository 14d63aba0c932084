// columns: the payload of an EVENTS block (docs/format.md, section 6).
//
// Events are in columns, one per field, because what is in one column is alike: a column of
// kinds or of stacks is nearly free once compressed. Which columns an event has an entry in is
// decided by its kind, and the block says so itself, so that an older reader can step over the
// events of a newer writer. Nothing is carried from block to block.
//
// Encoding costs a few nanoseconds an event and allocates nothing once the buffers have grown.
// Addresses may be predicted (trace/predict.h): then they are encoded when the block is full.
//
// For example, the three events malloc(24) = 0x5010, malloc(24) = 0x5030 and free(0x5010), of one
// thread at one time, are
//
//     KIND         1 1 4
//     THREAD, TIME a single run of three each
//     ADDRESS_LOW  0 0 0          the low four bits of the differences 0x5010, 0x20, -0x20
//     ADDRESS      0x501, 2, -2   what is above them, in zigzag
//     SIZE         24 24          of the two that have one
//     STACK        3 3
//     FREE_STACK   0              of the one that ends a block
//
// A column whose entries are all 0 is not written at all (columns_used).
#pragma once

#include "trace/bytes.h"
#include "trace/predict.h"
#include "trace/spots.h"
#include "trace/trace.h"

enum {
	COLUMNS_EVENTS_MAX = 65536, // in one block of ours
	COLUMNS_SLOTS = 256,        // previous addresses that are remembered
	COLUMNS_ROW_MAX = 128,      // events of a row
};

// Numbers are part of the format.
enum column {
	COLUMN_KIND = 1,   // of all events
	COLUMN_THREAD = 2, // of all events
	COLUMN_TIME = 3,   // of all events
	COLUMN_ADDRESS = 4,
	COLUMN_ADDRESS_LOW = 5, // the low four bits of what column 4 holds
	COLUMN_OLD_ADDRESS = 6, // as the difference to the address
	COLUMN_SIZE = 7,        // bytes asked for
	COLUMN_STACK = 8,
	COLUMN_ALIGN = 9,       // the binary logarithm
	COLUMN_FREE_STACK = 10, // the stack of an event that ends a block
	COLUMN_HEAP = 11,
	COLUMN_OLD_SIZE = 12,   // of mremap: bytes that were there before
	COLUMN_PROTECTION = 13, // 1 read, 2 write, 4 execute, and what else the call was given
	COLUMN_OFFSET = 14,     // in the file
	COLUMN_ERROR = 15,      // 0: the call succeeded
	COLUMN_FLAGS = 17,      // as the call takes them; 16 is reserved
	COLUMN_FILE = 18,
	COLUMN_ORIGIN = 19, // who called
	COLUMN_WAY = 20,    // in place of an address that is predicted
	COLUMN_NUMBER = 21, // of ways that have one
	COLUMN_NEAR = 22,   // two bytes of the difference of what is not predicted
	COLUMNS_COUNT = 23,
	COLUMNS_MAX = 64, // that a block may have; numbers are below it
};

// A difference that is not predicted: its lower bits go to COLUMN_ADDRESS_LOW and COLUMN_NEAR, the
// rest to COLUMN_ADDRESS.
enum { COLUMNS_LOW_BITS = 4, COLUMNS_NEAR_BITS = 16 };

// The columns that events of `kind` have an entry in, as bits; 0: not a kind we know. Where
// addresses are predicted, COLUMN_WAY stands for those of addresses (columns_told).
uint64_t columns_of_kind(uint8_t kind);

// The columns of an event whose addresses are predicted: those of addresses go, COLUMN_WAY comes.
static inline uint64_t columns_told(uint64_t columns)
{
	return (columns & ~(UINT64_C(1) << COLUMN_ADDRESS | UINT64_C(1) << COLUMN_ADDRESS_LOW |
			    UINT64_C(1) << COLUMN_OLD_ADDRESS)) |
	       UINT64_C(1) << COLUMN_WAY;
}

// Events that were added one by one wait here, field by field, and go to the columns together.
// The arrays are filled without gaps: stack[1] is the second stack, though the first event with a
// stack may have been the fourth of all. unstage() moves all of it to the columns.
struct columns_stage {
	uint32_t count; // of events, and of what they have of each field
	uint32_t addresses, old_addresses, sizes, stacks, free_stacks;
	uint8_t kind[COLUMNS_ROW_MAX];
	uint8_t low[COLUMNS_ROW_MAX];
	uint64_t address[COLUMNS_ROW_MAX + 1]; // the last one: for what does not count
	uint64_t old_address[COLUMNS_ROW_MAX + 1];
	uint64_t size[COLUMNS_ROW_MAX + 1];
	uint64_t stack[COLUMNS_ROW_MAX + 1];
	uint64_t free_stack[COLUMNS_ROW_MAX + 1];
};

// Where addresses are predicted, they wait here until the block is full, with what they need: coded
// at once, they take a fraction of the time, because what that looks at stays near.
// One for each encoder, some 2 MB, allocated when the first block predicts.
struct columns_late {
	uint32_t addresses, old_addresses, sizes, runs;
	struct columns_late_run {
		thread_id thread;
		uint32_t count; // of addresses
		bool known;     // they have ways: predict_knows
	} run[COLUMNS_EVENTS_MAX];
	uint8_t kind[COLUMNS_EVENTS_MAX]; // of events that have an address
	uint64_t address[COLUMNS_EVENTS_MAX];
	uint64_t old_address[COLUMNS_EVENTS_MAX];
	uint64_t size[COLUMNS_EVENTS_MAX]; // of blocks that begin
};

// Where a loop of a program repeats the same calls, a column has them once: at `at` of it `size`
// bytes are missing, the `period` bytes before them again and again. size 0: nothing is missing.
struct columns_gap {
	size_t at, period, size;
};

// A program that has no processor, or waits, makes no events for so long or more.
enum { COLUMNS_PAUSE_NS = 500000 };

// A block in the making: some 2 MB once its buffers have grown, kept from block to block.
struct columns_encoder {
	uint32_t count;
	bool heaps;     // calls on blocks say of which heap, too, and with which flags: set
			// while count is 0
	bool predicts;  // addresses are predicted: set while count is 0
	uint32_t roomy; // events up to which each column has room
	// Bits by kind: which kinds the block has, so that its head lists no others.
	uint64_t kinds_used;   // bits
	uint64_t columns_used; // bits: some entry is not 0
	uint64_t first_ns, last_ns;
	uint64_t busy_ns; // from the first to the last, a pause being COLUMNS_PAUSE_NS long at most
	// The open run of times: `run_ns_count` events at `last_ns`, which is `run_ns_delta`
	// nanoseconds after the time before. It is written when another time comes (end_time_run).
	uint64_t run_ns_delta;
	uint32_t run_ns_count;
	// The open run of threads: `run_thread_count` events of `run_thread`. The thread of the run
	// before is `last_thread`: the column has their difference.
	thread_id run_thread, last_thread;
	uint32_t run_thread_count;
	// The last address of a thread, by the remainder of its id. Two threads that share an entry
	// cost bytes and nothing else, since the reader shares it in the same way.
	uint64_t previous[COLUMNS_SLOTS];
	struct predict *predict;   // NULL until it predicts
	struct columns_late *late; // the same
	struct columns_stage stage;
	bool gapped; // columns have gaps, one each; what came later begins where it is
	struct columns_gap gap[COLUMNS_COUNT];
	struct bytes column[COLUMNS_COUNT];
};

// What events of the kind have an entry in, in this block. As bits. Depends on `heaps` and
// `predicts`, and so is the same for the whole block.
static inline uint64_t columns_written(const struct columns_encoder *encoder, uint8_t kind)
{
	uint64_t columns = columns_of_kind(kind);

	if (encoder->predicts && predict_knows(kind))
		columns = columns_told(columns);
	if (!encoder->heaps || kind > TRACE_FAILED)
		return columns;
	columns |= UINT64_C(1) << COLUMN_HEAP;
	return columns & UINT64_C(1) << COLUMN_STACK ? columns | UINT64_C(1) << COLUMN_FLAGS
						     : columns;
}

void columns_encoder_fini(struct columns_encoder *encoder); // accepts { 0 }

// Append an event, at `time_ns`, which is not its own where that would fall. There is room while
// count < COLUMNS_EVENTS_MAX.
void columns_add(struct columns_encoder *encoder, const struct trace_event *event,
		 uint64_t time_ns);

// A row of calls of one thread at one time: blocks of one heap that begin or end, each in one
// event, which is nearly all that there is. Each field is by itself, and what not all events have
// is without gaps, as in the columns.
struct columns_row {
	uint32_t count;   // of events
	uint32_t begun;   // of those that begin a block: all but TRACE_FREE and TRACE_REALLOC_FREE
	uint32_t moved;   // of TRACE_REALLOC
	uint64_t counts;  // of each kind, which is below eight, eight bits from 8 * kind on
	bool free_stacks; // the others have stacks; else they are 0, and not in free_stack
	thread_id thread;
	heap_id heap;   // of all of them; not 0 only where encoder->heaps is set
	uint32_t flags; // of those that begin a block; the same
	uint64_t time_ns;
	uint8_t kind[COLUMNS_ROW_MAX]; // TRACE_MALLOC, _CALLOC, _FREE, _REALLOC…: not _FAILED
	uint64_t address[COLUMNS_ROW_MAX];
	uint64_t old_address[COLUMNS_ROW_MAX]; // `moved` of them
	uint64_t size[COLUMNS_ROW_MAX + 1];    // `begun`; the last one is for what does not count
	stack_id stack[COLUMNS_ROW_MAX + 1];   // the same
	stack_id free_stack[COLUMNS_ROW_MAX + 1]; // count - begun
};

// Whether an event of a row, which has malloc's kinds but for the failed ones alone, begins a
// block.
static inline bool columns_row_begins(uint8_t kind)
{
	return kind != TRACE_FREE && kind != TRACE_REALLOC_FREE;
}

// Put an event after a row's others, of which there are fewer than COLUMNS_ROW_MAX; its
// free_stacks says whether `stack` counts where no block begins.
static inline void columns_row_push(struct columns_row *row, uint8_t kind, uint64_t address,
				    uint64_t size, stack_id stack)
{
	uint32_t ended = row->count - row->begun;

	row->counts += UINT64_C(1) << 8 * kind;
	row->kind[row->count] = kind;
	row->address[row->count++] = address;
	row->size[row->begun] = size;
	row->stack[row->begun] = stack;
	row->free_stack[ended] = stack;
	row->begun += columns_row_begins(kind);
}

// A walk over a row's events; at first { 0 }.
struct columns_row_walk {
	uint32_t at, begun, moved;
};

// The next event. False: there is none.
// The order of a row is that of `kind`; `begun` and `moved` count how many of the fields without
// gaps are used up.
bool columns_row_next(const struct columns_row *row, struct columns_row_walk *walk,
		      struct trace_event *event);

// Append a row of events: the same as columns_add for each, in half of the time. There is room.
void columns_add_row(struct columns_encoder *encoder, const struct columns_row *row);

// Append a row `times` times over, where the last address of the row is the last before it, too.
void columns_add_echo(struct columns_encoder *encoder, const struct columns_row *row,
		      uint32_t times);

// For columns.c: all that was added is in its columns, but for gaps; nearly all of the block is
// gaps, which are then BLOCK_GAP_MIN at least; gaps are filled.
void columns_close(struct columns_encoder *encoder);
bool columns_sparse(struct columns_encoder *encoder);
void columns_fill(struct columns_encoder *encoder);

// For columns_add.c, where addresses are predicted: the block begins; an event with an address, or
// a row, waits; the block is full.
void columns_late_begin(struct columns_encoder *encoder);
void columns_late_add(struct columns_encoder *encoder, const struct trace_event *event);
void columns_late_add_row(struct columns_encoder *encoder, const struct columns_row *row);
void columns_late_tell(struct columns_encoder *encoder);

// For columns_late.c: entries for a column that has room for them, of numbers for one more, each of
// VARINT_BYTES_MAX.
void columns_append(struct columns_encoder *encoder, enum column column, const uint8_t *value,
		    size_t count);
void columns_pack(struct columns_encoder *encoder, enum column column, const uint64_t *value,
		  size_t count);

// Write the payload to `out` and begin again. If `packer` is not NULL, it gets where in `out` each
// column begins and what is left out of `out` (block_pack).
struct block_packer;
void columns_finish(struct columns_encoder *encoder, struct bytes *out,
		    struct block_packer *packer);

// Spots of addresses, for a reader that wants them. Blocks that are predicted have theirs from
// where they began or ended before, so that most addresses need not be looked for.
struct columns_spots {
	struct spots spots; // its user begins them where a block begins
	// Of predicted events that were read last: where they are, and where a TRACE_REALLOC was.
	uint32_t spot[COLUMNS_ROW_MAX], old_spot[COLUMNS_ROW_MAX];
};

// Where a reader is in a block. Each column has a cursor of its own, and moves only where an
// event has an entry in it.
struct columns_decoder {
	uint32_t left; // events not yet read
	uint64_t number, time_ns;
	uint64_t kinds_mask[256]; // columns of each kind; 0: not in this block
	// Events still to come at `time_ns` without an entry in their column, and the same of
	// `thread`.
	uint64_t run_ns_left;
	thread_id thread;
	uint64_t run_thread_left;
	uint64_t previous[COLUMNS_SLOTS];
	struct bytes_cursor column[COLUMNS_COUNT];
	bool present[COLUMNS_COUNT];
	uint16_t recipe[256]; // of each kind, see columns_run.c
	// Recipes are made when the block begins, since they depend on which columns it has.
	bool told;    // some kinds have addresses that are predicted
	bool careful; // what comes is damaged: no runs
	struct predict *predict;
	struct columns_spots
		*spots; // the user's, kept from block to block; NULL: none are asked for
	// What the decoder began with. A run that meets damage has to begin again from here.
	struct columns_start {
		struct bytes_cursor payload;
		uint32_t events_count;
		uint64_t first_event, first_ns;
	} start;
	// Valid until the next call: who keeps an event of virtual memory copies it.
	struct trace_vm vm; // what the last event of virtual memory points at
	uint64_t unknown;   // events of kinds we do not know, stepped over
};

// `payload` must outlive the decoder, which is { 0 } or was used before. False if it is not well
// formed.
bool columns_decoder_init(struct columns_decoder *decoder, struct bytes_cursor payload,
			  uint32_t events_count, uint64_t first_event, uint64_t first_ns);

// Its memory goes; columns_decoder_init may follow.
void columns_decoder_fini(struct columns_decoder *decoder); // accepts { 0 }

// COLUMNS_DAMAGED is final: what was given before it is right.
enum columns_result { COLUMNS_EVENT, COLUMNS_END, COLUMNS_DAMAGED };

// The next event of a kind we know. Thread, stack, heap and file ids are as they are there: the
// caller checks them. `event->vm` is the decoder's own.
enum columns_result columns_next(struct columns_decoder *decoder, struct trace_event *event);

// Up to `max` of the next events at once, in a third of the time: calls on malloc's heap, of one
// thread and at one time. Returns how many; 0: ask columns_next for the next one.
uint32_t columns_run(struct columns_decoder *decoder, struct trace_event *events, uint32_t max);

// What `decoder` needs for that. For columns.c.
void columns_run_init(struct columns_decoder *decoder);

// The addresses of an event whose kind, thread and size are known, where they are predicted. False:
// they are damaged, and nothing more can be predicted in this block.
bool columns_next_told(struct columns_decoder *decoder, struct trace_event *event);

// The same of `count` events of one thread, of those among them that have ways.
bool columns_run_told(struct columns_decoder *decoder, struct trace_event *event, uint32_t count);
