// etl_put: events of memory of a Windows event log into a trace, with what they need defined:
// processes, threads, heaps, images and stacks.
#pragma once

#include "base/map.h"
#include "import/etl_file.h"
#include "import/etl_stacks.h"
#include "import/etl_system.h"
#include "import/intake.h"

// Kinds of a slot besides those of events (trace/trace.h): a heap that was made has none there, and
// the end of a process is no event of memory.
enum {
	ETL_PUT_HEAP_MADE = 0,
	ETL_PUT_EXIT = 0xff,
	ETL_PUT_READ_WRITE = 3, // what committed memory is taken to be
	ETL_PUT_PRIVATE = 0x22, // as flags of mappings are written: private, anonymous
};

// An event, with the parts of its stack.
// All of it is known when the event comes, but its stack, whose parts come later. Plain data:
// nothing in it is owned.
// Times are ticks of the log's clock, sizes bytes. What its kind does not have is 0.
struct etl_slot {
	uint64_t time, address, old_address, size, handle;
	uint32_t process, thread;   // number of etl_system, tid
	uint32_t space;             // etl_put_space, when it came
	uint32_t user, kernel;      // nodes of etl_stacks
	uint32_t flags, protection; // of virtual memory, as a trace has them
	uint64_t below;             // the caller's
	uint8_t kind;               // enum trace_kind, or one of the above
};

// `written` and `stackless` count events of memory, for the remark to the user.
struct etl_put {
	// All four must outlive it. Set them, and leave the rest zero.
	struct intake *intake; // these are borrowed
	const struct etl_file *file;
	const struct etl_stacks *stacks;
	const struct etl_system *system;
	uint64_t written, stackless;

	// Private.
	struct etl_owner *owners;
	size_t owners_count, owners_capacity; // one for each process of etl_system
	uint32_t spaces;                      // that were given out: the next one is one more
	struct map by_pid, threads, heaps, modules, frames, stack_ids;
};

// One thread. Nothing here can fail: what cannot be written is known to the intake.
void etl_put_fini(struct etl_put *put); // accepts { 0 }

// The number, from 1, of the process's address space, under which its frames and stacks are kept;
// etl_put_reload gives it another one, since an image took the place of another. `process` is a
// number of etl_system.
uint32_t etl_put_space(struct etl_put *put, uint32_t process);
void etl_put_reload(struct etl_put *put, uint32_t process);

// In the order of time.
// A slot's process has to be known to etl_system; its stack is put together from both parts, the
// kernel's inside the user's.
void etl_put_slot(struct etl_put *put, const struct etl_slot *slot);

// Whether an address is the kernel's, in a log of that width of addresses.
bool etl_put_is_kernel(const struct etl_put *put, uint64_t address);
