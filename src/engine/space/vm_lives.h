// vm_lives: the lifetimes of committed memory, from space.h into a list of window's allocations.
//
//     vm_lives_init
//       vm_lives_replay     what was kept by an earlier run, instead of its items
//       vm_lives_keep       from here on what has an effect goes to a list
//       vm_lives_add_event, _add_note     every item
//     vm_lives_fini
//
// Each commit (space.h) becomes a lifetime in `plain`, with the step at which it begins and the one
// at which it ends. One thread.
#pragma once

#include "base/map.h"
#include "engine/index/plain.h"
#include "engine/index/vault.h"
#include "engine/space/space.h"
#include "engine/space/vm_calls.h"

struct vm_lives {
	struct plain *plain; // borrowed: takes the lifetimes
	struct space *space;
	const struct reader *reader; // borrowed
	struct map of_commit;        // id: index of the life
	uint64_t step;               // of the item that is being added
	bool any;                    // the trace has calls on virtual memory
	uint64_t events;             // of the trace, so far
	struct vault *calls;         // borrowed: keeps what was added (vm_calls.h); NULL
	struct vm_calls_last last;
};

// Plain and reader are borrowed until vm_lives_fini; the reader must know processes, threads and
// files before their items are added.
void vm_lives_init(struct vm_lives *lives, struct plain *plain, const struct reader *reader);
void vm_lives_fini(struct vm_lives *lives);

// From here on all that has an effect, and each call that failed, is kept in `calls`. Replay: what
// was kept there is added again, instead of the items. False: it is damaged.
void vm_lives_keep(struct vm_lives *lives, struct vault *calls);
bool vm_lives_replay(struct vm_lives *lives, const struct vault *calls, struct err *err);

// A block of malloc begins at an address: what is mapped there is the allocator's.
void vm_lives_claim(struct vm_lives *lives, uint64_t number, uint64_t address, process_id process,
		    uint64_t step);

// Every item of the trace, and the step that it is, or begins with. Where others read the trace
// meanwhile, it is not looked at for events of the heap.
void vm_lives_add_event(struct vm_lives *lives, const struct trace_event *event, process_id process,
			uint64_t step);
void vm_lives_add_note(struct vm_lives *lives, const struct trace_note *note, uint64_t step);

// The event of a block of malloc that begins, in place of vm_lives_add_event. Those that end one
// need not be added, as long as `events` is right before a note.
static inline void vm_lives_add_begin(struct vm_lives *lives, uint64_t number, uint64_t address,
				      process_id process, uint64_t step)
{
	if (lives->any)
		vm_lives_claim(lives, number, address, process, step);
}
