// space_state: what a struct space is made of, and the few steps that all calls consist of.
//
// Only space.c includes this. Each step keeps the sums and the commits right. Commits that begin
// or end with one item are gathered as long as their parts touch, so that hooks hear of one call
// as of one thing: ends are reported by the step itself, beginnings by space_state_flush, when the
// item is done. While an item is applied, `now` says which.
#pragma once

#include "engine/space/space.h"
#include "engine/space/space_owner.h"

enum {
	SPACE_STATE_PROTECTION = 7, // the bits of a protection that say who may do what
	SPACE_STATE_NONE = 0,       // a range's `commit`: not committed
};

// A range's `commit`: committed, and counted nowhere.
#define SPACE_STATE_NOBODY UINT32_MAX

// A process of 64 bits has 2^47 bytes of addresses, and 2^56 if it asked for more.
#define SPACE_STATE_LIMIT_57 (UINT64_C(1) << 56)

// Mappings, one after the other, whose owners no heap block can change any more; or, of
// space_claim_whole, that say nothing.
struct space_state_claim {
	uint64_t start, end;
	uint64_t epoch; // of the map when that was so
};

// Of one process, by its id (space_add_process). `ranges` never overlap.
struct space_process_state {
	struct ranges ranges;
	struct space_totals totals;
	struct space_state_claim *claims; // CLAIMS_MAX of each kind; NULL until the first
	uint64_t limit;                   // addresses end here: 2^32, 2^47, or 2^56
	process_id parent;
	bool forked;
	bool foreign; // malloc is not glibc's
	bool called;  // a call was seen: what is found mapped from here on is no baseline
};

struct space_slot {
	struct space_commit commit;
	uint32_t spare; // where it has none: the next spare slot; 0: there is none
};

// Parts of one commit that end one after the other are reported as one.
struct space_pending {
	uint32_t slot; // 0: nothing pending
	uint64_t address, size;
};

struct space {
	struct space_hooks hooks;
	struct space_totals all;
	struct space_process_state *processes;
	size_t processes_count, processes_capacity;
	process_id *threads; // whose each is, by thread id
	size_t threads_count, threads_capacity;
	struct space_owner_file *files; // by id; [0] is not used
	size_t files_count, files_capacity;
	struct space_slot *slots; // [0] is not used
	size_t slots_count, slots_capacity;
	uint32_t slots_spare;
	uint64_t commits_made; // the number of the last one
	uint64_t epoch;        // counts changes of what is mapped
	bool windows;          // flags are MEM_…, but for the lowest twelve bits

	// While one item is applied:
	const struct space_end *now;
	struct space_pending ending;
	uint32_t beginning; // slot of a commit that begins; 0: none
};

// Unmap what is in [low, high). Returns whether anything did whose end should have been
// seen: on Windows the system ends by itself what walks alone have found.
bool space_state_clear(struct space *space, process_id id, uint64_t low, uint64_t high);

// Map a range where nothing is. If it is writable it is committed by `stack` and `thread`.
void space_state_place(struct space *space, process_id id, struct range range, stack_id stack,
		       thread_id thread);

// Give what is in [low, high) a protection. Returns how many bytes are there.
uint64_t space_state_protect(struct space *space, process_id id, uint64_t low, uint64_t high,
			     const struct trace_event *event);

// Move what is in [low, high) by `by`, where nothing is. `keep`: the mappings stay, and have
// twins there from now on.
void space_state_move(struct space *space, process_id id, uint64_t low, uint64_t high, uint64_t by,
		      const struct trace_event *event, bool keep);

// Tell of the commit that has been gathering.
void space_state_flush(struct space *space);

// Bytes of a range come or go.
void space_state_count(struct space *space, struct space_process_state *process,
		       const struct range *range, bool comes);
