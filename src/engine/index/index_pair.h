// index_pair: which allocation each free ends, in whatever memory there is.
//
//     index_pair_open
//       index_pair_alloc, _free            blocks of malloc
//       index_pair_pool_…                  blocks of other heaps
//       index_pair_nothing, _exit          other steps
//     index_pair_settle, _never            all steps are fed; and what nothing ended
//     index_pair_close
//
// Blocks that live are kept in a table by their address (live_table.h). As long as that fits into
// its share of the memory, each call makes its steps at once. When it does not, everything is
// written to temporary files from then on: the row of all calls, and for each of 64 parts of the
// addresses what concerns them, beginning with the blocks that live now. At the end each part is
// paired by itself, in 1/64 of the memory, and writes what it found out in the order of its calls;
// then the row of calls is read again, and each call takes its part's next answer. A step's number
// is not final before that: a raw step becomes final by adding how many blocks were found to be
// lost before it.
//
// Blocks of other heaps than malloc's stay in memory.
#pragma once

#include "base/map.h"
#include "engine/index/index_ahead.h"
#include "engine/index/index_feed.h"
#include "engine/index/live_table.h"
#include "engine/index/spill.h"

// One heap of one process, as keys name it.
struct index_space {
	process_id process;
	heap_id heap;
	bool forked;    // frees of unknown addresses are of inherited blocks
	bool over;      // its process has ended
	struct map odd; // blocks that no key can name, and all of other heaps: live_table_value
	struct map inherited; // addresses of inherited blocks that were freed
};

// One of LIVE_TABLE_PARTS. `calls` is written while the trace is read, `answers` when the part is
// paired; each is read once, from its beginning.
struct index_part {
	struct spill calls, answers;
	size_t lives;      // when parts began
	uint64_t last_raw; // while writing either
	uint64_t next_raw; // of the next answer; UINT64_MAX: none
	uint64_t next_begin, next_address;
	uint32_t next_cell;
	uint8_t next_kind;
};

// `parts` is NULL until the table of live blocks is full and may not grow; from then on nothing is
// paired before index_pair_settle.
struct index_pair {
	struct index_feed *feed;   // borrowed
	struct cells *cells;       // borrowed
	struct index_ahead *ahead; // borrowed: has the cells while it does not rest
	struct map orphan_cells;   // space << 32 | thread: cell of its frees of what nobody knows
	int directory;             // borrowed
	uint64_t alive_max;        // bytes: beyond, temporary files
	void (*say)(void *context, const char *text);
	void *say_context;
	uint64_t trace_bytes; // for what is said
	struct live_table alive;
	size_t over_count, swept_count; // processes that ended; when the table was swept last
	size_t swept_buckets;           // of the table, then
	struct index_space *spaces;
	size_t spaces_count, spaces_capacity;
	struct map space_of; // process << 32 | heap: number + 1
	struct spill never;  // blocks whose process has ended: live_table_value, address
	uint64_t never_count;
	uint64_t inherited, lost, orphans;

	// Since the tables were full.
	struct index_part *parts; // LIVE_TABLE_PARTS of them; NULL: not yet
	struct spill row;
	uint64_t raw; // number of the next raw step
	uint64_t row_time_ns, row_number;
	uint64_t *lost_raw; // of raw steps that a lost block's end came before, rising
	size_t lost_count, lost_capacity;
	struct err err;
};

// All but `pair` is borrowed until index_pair_close. `directory` is where temporary files go,
// `alive_max` how many bytes the table of live blocks may grow to before they are written. The
// caller then sets `ahead`, and `say` and `trace_bytes` if it wants the user to hear of those
// files. False: the directory takes no file.
bool index_pair_open(struct index_pair *pair, struct index_feed *feed, struct cells *cells,
		     int directory, uint64_t alive_max, struct err *err);
void index_pair_close(struct index_pair *pair);

// The number of a heap of a process, new or known; it is the same as long as `pair` is open.
// `forked` counts when the number is new.
uint32_t index_pair_space(struct index_pair *pair, process_id process, heap_id heap, bool forked);

// When the next calls are, and of which event of the trace; UINT64_MAX: of none, but of a note.
void index_pair_at(struct index_pair *pair, uint64_t time_ns, uint64_t number);

// The address will be asked for soon: begin to fetch its buckets. With parts there is nothing to
// fetch, for nothing is looked up before index_pair_settle.
static inline void index_pair_expect(const struct index_pair *pair, uint32_t space,
				     uint64_t address)
{
	if (!pair->parts)
		live_table_expect(&pair->alive, live_table_key(space, address));
}

// A block of this cell begins. One that lives at the address ends, lost, in a step of its own
// before.
void index_pair_alloc(struct index_pair *pair, uint32_t space, uint64_t address, uint32_t cell);

// What lives at the address ends. Where nothing does, it is a free of an inherited block (a step
// that does nothing) or an orphan, which goes to a cell of the thread's own. It is one step in each
// case.
void index_pair_free(struct index_pair *pair, uint32_t space, uint64_t address, thread_id thread);

// All blocks of a heap other than malloc's end. *first is the raw step of the first of them, or
// of one that does nothing; returns how many.
uint64_t index_pair_destroy(struct index_pair *pair, uint32_t space, uint64_t *first);

// A step that concerns no block. Returns its raw number.
uint64_t index_pair_nothing(struct index_pair *pair);
// The end of a process, which is a step. What it had ends with it: such blocks leave the table when
// room is needed, and are among those of index_pair_never.
uint64_t index_pair_exit(struct index_pair *pair, process_id process);

// The number of the next raw step.
uint64_t index_pair_raw(const struct index_pair *pair);

// Feed what is not fed yet, then raw steps can be made final. `stop` (may be NULL) is asked from
// time to time; true ends it with ERR_STOPPED. Also says if a temporary file failed before.
bool index_pair_settle(struct index_pair *pair, bool (*stop)(void *context), void *context,
		       struct err *err);
// The final number of the step that a call is, of its raw one. Only after index_pair_settle.
uint64_t index_pair_final(const struct index_pair *pair, uint64_t raw);

// The final number of an edge before a raw step.
uint64_t index_pair_final_edge(const struct index_pair *pair, uint64_t raw);

// After that, and after the feed is finished: what nothing ended, to the store, in order.
bool index_pair_never(struct index_pair *pair, struct index_store *store, uint64_t memory_bytes,
		      struct err *err);
