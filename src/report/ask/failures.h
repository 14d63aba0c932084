// failures: the calls that got no memory, each with the address space as it was just before.
//
//     struct failures failures = { .asked = asked, .process = id, .most = 20 };
//       failures_before     before each event on virtual memory, and each heap call that failed
//       failures_noted      before each note
//     failures_fini
//
// Calls of one stack, kind and size are one: the first of them is weighed, and the rest are
// counted. What is weighed is what was mapped just before; on Windows with what the walk after the
// call found (stacks, images, what another process put there), as that is the nearest look at what
// was in the way. It ends where the next call changes something.
//
// No failure for want of memory is a call that may not move its block and found no room after it:
// a realloc with HEAP_REALLOC_IN_PLACE_ONLY, an mremap without MREMAP_MAYMOVE. They are counted.
#pragma once

#include "engine/query.h"
#include "report/ask/mappers.h"
#include "report/ask/query_context.h"

// What a call asks of the system: only what it asks for can be what it lacked.
enum failure_need {
	FAILURE_NEEDS_ANY,       // addresses or memory: where it is not known better
	FAILURE_NEEDS_ADDRESSES, // VirtualAlloc with MEM_RESERVE alone: nothing is committed
	FAILURE_NEEDS_COMMIT,    // a commit of what is reserved
	FAILURE_NEEDS_BOTH,      // VirtualAlloc that reserves and commits
	FAILURE_NEEDS_VIEW,      // a view of a section: commits what is copied, or nothing
	FAILURE_NEEDS_HEAP,      // of a heap, which may have a greatest size of its own
};

struct failure {
	process_id process;
	uint64_t number, time_ns; // of the first event; ns since the recording began
	uint64_t last_ns;         // the last one's
	uint64_t count;
	uint8_t kind; // enum trace_kind
	uint8_t origin;
	uint32_t error;
	uint32_t flags;         // of a call on virtual memory
	enum failure_need need; // what it may have lacked
	uint64_t size;          // asked for
	thread_id thread;
	stack_id stack;
	uint64_t low, high;        // where it could have been put
	uint64_t mapped;           // bytes, just before
	uint64_t unusable;         // of the free bytes: in slots that are taken in part (Windows)
	struct ranges_holes holes; // .largest: of what the kernel gives, without the stack's gap
	// Without whom the largest hole would have been largest; count 0: there is none such.
	struct mapper culprit;
	bool open;   // private: not weighed for good,
	bool walked; // private: and a walk has found something since
};

struct failures {
	const struct query_context *asked; // borrowed
	const struct query *query;         // borrowed; NULL: all count
	process_id process;                // TRACE_NONE: of each
	uint64_t low, high;                // the part that is looked at; high 0: all
	size_t most;                       // of them are kept, the first
	bool no_allocators; // what an allocator tries while it is called: its own failure counts
	// what is found
	struct failure *list; // owned
	size_t count, capacity;
	uint64_t calls;    // also of those that are not kept
	uint64_t left_out; // calls of those
	uint64_t in_place; // in neither
	size_t open;       // private: so many of the list are not weighed for good
	struct map places; // private: key -> position
};

// Called in the order of the trace, while `space` is as it was before the item.
void failures_before(struct failures *failures, const struct space *space,
		     const struct trace_event *event);
void failures_noted(struct failures *failures, const struct space *space,
		    const struct trace_note *note);
void failures_fini(struct failures *failures);

// Whether the largest hole was too small for it, in 32 bits: else it was a limit, or memory itself.
bool failures_lacks_room(const struct failures *failures, const struct failure *failure);

// "mmap", "malloc", on Windows "VirtualAlloc" …: what it was.
const char *failures_word(const struct failure *failure);
