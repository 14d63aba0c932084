// lives: the life of each block, from the call that began it to what ended it, one by one, in the
// order of the trace.
//
//     lives_new
//       lives_add_event, lives_add_note     every item of the trace, from its beginning
//       lives_finish                        no more items: what still lives
//     lives_free
//
// Who begins and who ends:
//
//     malloc and its like      begin a block. One that lives at that address ended unseen (LOST).
//     realloc                 ends one and begins another that was `moved`. In two halves
//                             (TRACE_REALLOC_FREE, TRACE_REALLOC_ALLOC) the first ends the block;
//                             it stands for a free where no second one follows.
//     a realloc that failed   changes nothing. Its first half has ended the block: that is undone
//                             by the second. Whoever cannot take back what was said knows
//                             beforehand which halves these are (lives_find_undone).
//     heap reset, destroy     end all blocks of the heap, in the order in which they began.
//     exit, exec              end all blocks of the process, the same.
//     free of nothing known   ends a block that was never begun: INHERITED by a forked process
//                             from its parent, where the address is freed there for the first
//                             time, else an ORPHAN.
//
// A first half stays open until the next call of its thread on malloc's heap. Calls on virtual
// memory are not that: an allocator makes them inside of a realloc.
//
// For example `p = malloc(16); p = realloc(p, 32)` with another thread's event between the halves:
//
//     0  t  malloc         0x10 16    begin 0x10, 16 bytes
//     1  t  realloc-free   0x10       end   0x10, REALLOC
//     2  u  malloc         0x10 8     begin 0x10, 8 bytes
//     3  t  realloc-alloc  0x40 32    begin 0x40, 32 bytes, moved from 0x10
//
// Memory: some 140 bytes for each block that lives at one time, lean 20 to 40. Where that is too
// much the trace is read several times, each time for the blocks of a share of the addresses
// (lives_share). One thread.
#pragma once

#include "base/map.h"
#include "base/progress.h"
#include "trace/reader.h"

enum lives_origin {
	LIVES_BEGUN,     // by an event
	LIVES_INHERITED, // from the parent of a forked process; size, stack … are not known
	LIVES_ORPHAN,    // unknown; the same
	LIVES_COPY,      // in a forked process, of a block of its parent's (lives_inherit)
};

#define LIVES_TAGS UINT32_MAX

struct lives_block {
	uint64_t address, size; // requested bytes
	uint64_t number;        // of the event that began it
	uint64_t time_ns;
	uint64_t old_address; // if moved
	process_id process;   // that allocated it
	thread_id thread;
	stack_id stack;
	heap_id heap;
	uint8_t origin; // enum lives_origin
	uint8_t kind;   // enum trace_kind: of the event that began it; 0 unless LIVES_BEGUN
	bool moved;     // a realloc began it
	uint32_t tag;   // what the listener wrote on it (lives_tag), below LIVES_TAGS
};

enum lives_cause {
	LIVES_FREE,
	LIVES_REALLOC, // one that moved it, or that freed it
	LIVES_LOST,    // unseen: its address was given out again
	LIVES_DESTROY, // with its heap, or at the heap's reset
	LIVES_EXIT,    // with its process
	LIVES_EXEC,
	LIVES_RUNNING, // it lives when the trace ends (lives_finish)
};

struct lives_end {
	enum lives_cause cause;
	uint64_t number; // of the event; of the next one where no event ended it
	uint64_t time_ns;
	thread_id thread; // TRACE_NONE where no event ended it
	stack_id stack;   // 0: none
};

// The listener. Blocks are borrowed for the call. Any of the functions may be NULL.
struct lives_watcher {
	void (*begin)(void *context, const struct lives_block *block);
	void (*end)(void *context, const struct lives_block *block, const struct lives_end *end);
	// It never ended; `end` is what was said of it.
	void (*undo)(void *context, const struct lives_block *block, const struct lives_end *end);
	void *context;
	// A call that returned no memory; whatever lived lives on. After `undo`, where it is both.
	void (*failed)(void *context, const struct trace_event *event);
	// A block with this tag, which is not 0, will end soon (lives_expect).
	void (*expect)(void *context, uint32_t tag);
};

struct lives;
struct query;

// The reader must know processes and threads before their events are added. `watcher` may be NULL.
// `undone` (NULL: those are given to `undo`) has the numbers of first halves that change nothing.
// Reader and map are borrowed.
struct lives *lives_new(const struct reader *reader, const struct lives_watcher *watcher,
			const struct map *undone);
void lives_free(struct lives *lives); // NULL is allowed

// For who asks at the end for what lives, and for no times: there is no watcher, and of blocks
// number, time, kind, tag and what they were moved from are 0, their origin BEGUN or COPY. A third
// of the memory. Not for lives_tag and lives_each.
struct lives *lives_new_lean(const struct reader *reader);

// Before any item: only blocks at addresses of one share of so many are followed. Of all others
// `begin` is given, but no end.
void lives_share(struct lives *lives, uint32_t share, uint32_t shares);

// Whose an address is. By page, so that neighbours stay neighbours in tables. The product's upper
// half is a fraction of 2^32, of which each share has as much as the others.
static inline uint32_t lives_share_of(uint64_t address, uint32_t shares)
{
	uint64_t hash = ((address >> 12) * UINT64_C(0x9e3779b97f4a7c15)) >> 32;

	return (uint32_t)((hash * shares) >> 32);
}

// These events, which are added soon, are of one thread (reader_run): begin to fetch from memory
// what they end. Hides most of what a cache costs.
void lives_expect(struct lives *lives, const struct trace_event *events, uint32_t count);

// Each item. Events of unknown threads and on virtual memory are ignored.
void lives_add_event(struct lives *lives, const struct trace_event *event);
void lives_add_note(struct lives *lives, const struct trace_note *note);

// For who leaves items out (lives_parts.h): in place of lives_add_event, an event that is settled.
void lives_add_settled(struct lives *lives, const struct trace_event *event);
// The event that comes next, given or not, has this number.
void lives_at(struct lives *lives, uint64_t number);

// Which halves of reallocs belong together, for all events in their order. A settled event says by
// itself what it does: a second half has what it moves as `old_address`, what does nothing to
// blocks (a first half that is undone, too) has no kind, and is not needed.
struct lives_halves {
	const struct reader *reader;  // borrowed, as is
	const struct map *undone;     // (lives_find_undone)
	struct lives_open_half *list; // private: by thread
	size_t capacity;
};
struct trace_event lives_settle(struct lives_halves *halves, const struct trace_event *event);
void lives_halves_fini(struct lives_halves *halves);

// All items of the reader, then lives_finish. Rewinds it, before and after; so it says itself
// whether it came to the end (reader_over).
bool lives_read(struct lives *lives, struct reader *reader, struct progress *progress);

// Write on a block that lives; where its end is undone, it is as it was. `*before` (NULL: nobody
// asks) is what was there. False: it does not live.
bool lives_tag(struct lives *lives, const struct lives_block *block, uint32_t tag,
	       uint32_t *before);

// A block of a process that is known in another way lives from here on.
void lives_put(struct lives *lives, process_id process, const struct lives_block *block);

// A forked process has a copy of each block of its parent's malloc heap from here on. Without this
// its frees of them are of INHERITED blocks.
void lives_inherit(struct lives *lives, process_id parent, process_id child);

// Whether a query selects a block by its process, thread, stack, and the event that began it.
bool lives_selects(const struct query *query, const struct lives_block *block);

// What lives in those heaps of a process that `wants` takes (NULL: in malloc's): heap after heap,
// each by rising address. Returns how many heaps have such blocks; without `each` that is all.
// *count (may be NULL): the blocks.
size_t lives_each_of(const struct lives *lives, process_id process,
		     bool (*wants)(void *context, heap_id heap),
		     void (*each)(void *context, const struct lives_block *block), void *context,
		     size_t *count);

// The addresses of what lives in malloc's heap of a process; they rise from region to region
// (blocks.h). Less than a third of the time, for nothing else is looked at.
void lives_each_address(const struct lives *lives, process_id process,
			void (*each)(void *context, uint64_t address), void *context);

// What lives now, in the order in which it began.
void lives_each(struct lives *lives, void (*each)(void *context, const struct lives_block *block),
		void *context);

// End what still lives, as LIVES_RUNNING.
void lives_finish(struct lives *lives, uint64_t time_ns);

// Read the trace for first halves that a second one undoes: their numbers go to `undone`. Rewinds
// the reader, before and after.
void lives_find_undone(struct reader *reader, struct map *undone, struct progress *progress);

// How many shares there must be for so many blocks to fit in that much memory.
uint32_t lives_shares_for(uint64_t blocks, uint64_t memory_bytes);

// The same as lives_find_undone, and how many shares there must be for the blocks of each to fit in
// that much memory. Estimated, from one page in 64.
uint32_t lives_find_shares(struct reader *reader, struct map *undone, uint64_t memory_bytes,
			   struct progress *progress);
