// present: what is allocated at one moment: the live blocks of each heap, and each address space.
//
//     present_read        from the reader's present position up to the moment
//       present_each_block, present_take     the blocks of a process, by address
//       present_ok        whether these were all
//       present_space     what is mapped (space.h), each mapping with its owner
//     present_free
//
// Who knows some of it in another way (index_moment.h) puts it together:
//
//     present_new
//       present_add_event, present_add_note     items, those that are known
//       present_put, present_put_all            blocks that live
//     present_settle                            then it is as if it had been read
//
// Blocks begin and end as lives.h says. Owners are final: every live block of malloc has claimed
// the mapping that it is in (space_claim).
//
// One pass; memory goes with what lives. One thread.
#pragma once

#include "base/progress.h"
#include "base/radix.h"
#include "engine/moment.h"
#include "engine/query.h"
#include "engine/space/space.h"

struct present_options {
	const struct query *query; // borrowed: which blocks are wanted; NULL: all
	// Processes as they were just before their ends, those that run on as they were at the
	// trace's end. Else all of them at `edge`.
	bool at_exit;
	struct moment_edge edge;
	process_id inherits; // this forked process knows the blocks that its parent left it, too;
			     // TRACE_NONE: none does
	// Nobody looks at the blocks' times and numbers: where it is cheaper, they are 0. Or at
	// blocks at all: where it is cheaper, they are not there, and have claimed their mappings.
	bool undated, spaces_only;
	// Of a few of them somebody asks once all were seen (present_date): where it is cheaper,
	// times and numbers are 0 until then.
	bool dated_late;
	struct progress *progress; // NULL: none
	// Called for each event on virtual memory, and each call that failed, before it is applied;
	// and after each that was. NULL: nobody.
	void (*before)(void *context, const struct space *space, const struct trace_event *event);
	void (*after)(void *context, const struct space *space, const struct trace_event *event);
	// The same after the beginning and the end of each process; with at_exit before the end.
	void (*noted)(void *context, const struct space *space, const struct trace_note *note);
	void *context;
};

// A block that lives at the moment. `inherited` is set only where options->inherits wants such
// blocks.
struct present_block {
	uint64_t address;
	uint64_t size;   // requested bytes
	uint64_t number; // of the event that began it
	uint64_t time_ns;
	process_id process;
	thread_id thread;
	stack_id stack;
	heap_id heap;
	bool selected;  // by the query
	bool inherited; // from the parent of a forked process
};

struct present;

// Read the trace up to the moment.
struct present *present_read(struct reader *reader, const struct present_options *options);

// What present_read does, in parts. `before`, `after` and `noted` are called from present_listen
// on.
struct present *present_new(struct reader *reader, const struct present_options *options);
void present_listen(struct present *present, const struct present_options *options);
void present_add_event(struct present *present, const struct trace_event *event);
void present_add_note(struct present *present, const struct trace_note *note);
void present_put(struct present *present, const struct present_block *block);
void present_settle(struct present *present, uint64_t events); // that are before the moment

// Millions at once, in 16 bytes each: blocks that live at the moment whatever is added.
struct present_lean {
	// By process, then by address: the address, and what `make` knows the block by. Owned.
	struct radix_pair *list;
	size_t *ends; // by process: where what it has ends; owned
	bool heaps;   // not all are of malloc's heap
	size_t slice; // so many are made at once, more or less
	// Make blocks of some of them; `selected` and `inherited` are not looked at. False: what is
	// asked of one cannot be read any more.
	bool (*make)(void *context, const struct radix_pair *list, size_t count,
		     struct present_block *blocks, struct err *err);
	// Where `make` leaves times and numbers out, for present_date; each address is there once
	// then. NULL: it does not.
	bool (*date)(void *context, const struct radix_pair *list, size_t count,
		     struct present_block *blocks, struct err *err);
	void *context; // owned (mem_free); what it points to must last as long as the present
};
void present_put_all(struct present *present, const struct present_lean *lean); // once only

void present_free(struct present *present); // NULL is allowed

// Whose blocks.
enum present_heaps {
	PRESENT_HEAP, // those of malloc, of Windows' heaps, and of languages, which malloc has not
	PRESENT_ALL,  // those of pools, too
};

// The blocks by rising address; of equal ones by heap.
void present_each_block(const struct present *present, process_id process, enum present_heaps heaps,
			void (*each)(void *context, const struct present_block *block),
			void *context);

// Sets number and time_ns of blocks that were made without, by their process and address. All
// others stay as they are.
void present_date(const struct present *present, struct present_block *blocks, size_t count);

// The same as a list, for who needs them once: `put` writes an item of `each` bytes, 16 at least,
// for a block. They may be gone from the present then, and take no room twice.
void *present_take(struct present *present, process_id process, enum present_heaps heaps,
		   size_t each, void (*put)(void *item, const struct present_block *block),
		   size_t *count);

// Whether those were all. False: an index from which their dates are read went away meanwhile.
bool present_ok(const struct present *present, struct err *err);

// Nobody asks for blocks any more; the space stays. Gives most of the memory back.
void present_forget_blocks(struct present *present);

// How many those are.
size_t present_count(const struct present *present, process_id process, enum present_heaps heaps);

// A block lay at `address` earlier on: the mapping around it is the allocator's. Of many such
// blocks, present_claim_whole is called for each first (space_claim_whole).
void present_claim_whole(struct present *present, process_id process, uint64_t address);
void present_claim(struct present *present, process_id process, uint64_t address);

// The address spaces, with final owners.
const struct space *present_space(const struct present *present);

// The moment: the time of the edge, or of the process's end.
uint64_t present_time(const struct present *present, process_id process);

// Events that were read and are before the moment.
uint64_t present_events(const struct present *present);
