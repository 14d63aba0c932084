// space: the address space of each process, from the trace's calls on virtual memory.
//
//     space_new                                              all questions may be asked at any time
//       space_add_process, space_add_thread, space_add_file    before the items that use them
//       space_add_event, space_add_note                        every item, in the trace's order
//     space_free
//
// What each call does to what is mapped:
//
//     mmap        maps whole pages; whatever lay there ends
//     munmap      unmaps; splits at both ends; what is not mapped anyway does not matter
//     mremap      moves what is there, with owner and stacks; cuts or grows it at its end. Growth
//                 has the owner and stack of what it grows, and begins now. Old length 0 maps the
//                 same pages a second time; with MREMAP_DONTUNMAP the pages move and the mapping
//                 stays
//     brk         grows or cuts; the same break again is a question and changes nothing
//     mprotect    splits and sets the protection
//     madvise     DONTNEED, FREE and REMOVE are purges: counted, and nothing else
//     shmat/shmdt map and unmap a segment
//     fork        the child begins with a copy of all that its parent has mapped
//     exec, exit  end all of it
//
// A call that failed is counted and changes nothing. `mapped` ranges (a baseline, or what a look
// at /proc/PID/maps found) fill what is not known and correct what is known.
//
// Commits: a range is *reserved* while it is mapped, and *committed* from the moment that it is
// writable until it is unmapped or made PROT_NONE. A *commit* is one lifetime of committed memory.
// It begins with one call, and parts of it may end with several: the ended part is then a commit
// of its own with the same beginning, so that sizes add up and each commit has one end. Hooks are
// given them in order. tidemark's own memory is nobody's commit; what a forked process has from
// its parent is neither.
//
// Untrusted input: ranges that are not whole pages, that wrap, that are outside of the process's
// address space are counted as absurd and not believed. A mapping over another without MAP_FIXED
// is believed (an end was missed) and counted as overlapping.
//
// O(log n) per event and range touched; memory goes with what is mapped. One thread.
#pragma once

#include "engine/space/ranges.h"
#include "trace/reader.h"

enum { SPACE_PAGE = 4096, SPACE_SLOT = 64 << 10 };

// Whose memory a mapping is. The words are those of space_owner_word.
enum space_owner {
	SPACE_PROGRAM,      // "program": the program's own call
	SPACE_MALLOC_HEAP,  // "malloc-heap": the main heap, grown by brk
	SPACE_MALLOC_ARENA, // "malloc-arena": heaps of further arenas
	SPACE_MALLOC_LARGE, // "malloc-large": a block with a mapping of its own
	SPACE_ALLOCATOR,    // "allocator": any other mapping in which heap blocks are
	SPACE_THREAD_STACK, // "thread-stack"
	SPACE_MAIN_STACK,   // "main-stack"
	SPACE_LIBRARY,      // "library": code, data and bss of the executable and of libraries
	SPACE_FILE,         // "file": any other file
	SPACE_LIBC,         // "libc": its other memory
	SPACE_LOADER,       // "loader": the dynamic linker's own memory
	SPACE_KERNEL,       // "kernel": vdso and the like
	SPACE_TIDEMARK,     // "tidemark": ours
	SPACE_OWNERS_COUNT,
};

// "malloc-arena"
const char *space_owner_word(enum space_owner owner);

// Whether it is memory that an allocator hands out in blocks.
static inline bool space_is_allocators(enum space_owner owner)
{
	return owner == SPACE_MALLOC_HEAP || owner == SPACE_MALLOC_ARENA ||
	       owner == SPACE_MALLOC_LARGE || owner == SPACE_ALLOCATOR;
}

// How a commit ended.
enum space_ending {
	SPACE_UNMAPPED,  // munmap, shmdt, brk or mremap that cut it
	SPACE_REPLACED,  // something else was mapped over it
	SPACE_PROTECTED, // mprotect to PROT_NONE
	SPACE_EXITED,    // its process exited
	SPACE_EXECED,    // its process exec'ed
};

// One lifetime of committed memory, or what is left of it.
struct space_commit {
	uint64_t id;      // from 1, in order of their making
	uint64_t address; // of its lowest byte when it began; may move with mremap
	uint64_t size;    // bytes; whole pages
	uint64_t number;  // of the event that began it
	uint64_t time_ns;
	process_id process;
	thread_id thread;
	stack_id stack;
	uint8_t owner; // enum space_owner, as far as known now
	bool baseline; // began before the recording could see it
};

// Where it ended. For SPACE_EXITED and SPACE_EXECED thread and stack are none.
struct space_end {
	uint64_t number; // of the event; of a note's: the event that it is before
	uint64_t time_ns;
	thread_id thread; // TRACE_NONE: none
	stack_id stack;
	uint8_t ending; // enum space_ending
};

// Who wants to know. Each may be NULL. Nothing may be asked or changed from inside.
struct space_hooks {
	void *context;
	void (*begin)(void *context, const struct space_commit *commit);
	// `rest` NULL: all of it ended. Else a part of *rest ended: `commit` is that part, with an
	// id without a begin and the beginning of *rest, and *rest (whose size is less
	// now) lives on.
	void (*end)(void *context, const struct space_commit *commit,
		    const struct space_commit *rest, const struct space_end *end);
	// A heap block was found in it: its owner has changed.
	void (*owner)(void *context, const struct space_commit *commit);
};

enum space_call {
	SPACE_MMAP,
	SPACE_MUNMAP,
	SPACE_MREMAP,
	SPACE_BRK,
	SPACE_MPROTECT,
	SPACE_MADVISE,
	SPACE_MLOCK,
	SPACE_SHMAT,
	SPACE_SHMDT,
	SPACE_REMAP,
	SPACE_CALLS_COUNT,
};

// "mmap"
const char *space_call_word(enum space_call call);

struct space_count {
	uint64_t count; // failed calls too
	uint64_t failed;
	uint64_t bytes; // as asked for, successful calls only. mremap: the new length; brk: by how
			// much the break moved
};

// Of one process, or of all together. tidemark's own calls and memory are in `own_bytes` only.
struct space_totals {
	struct space_count calls[SPACE_CALLS_COUNT];
	uint64_t purges, purged_bytes;
	uint64_t reserved_bytes, reserved_peak_bytes;   // mapped, committed or not
	uint64_t committed_bytes, committed_peak_bytes; // the peak: where it first was highest
	uint64_t committed_peak_ns, committed_peak_number;
	uint64_t commits, commits_bytes; // begun; a part that ends before the rest is one more
	uint64_t inherited_bytes;        // mapped in forked processes, and in no other figure
	uint64_t own_bytes;              // tidemark's
	uint64_t absurd;                 // calls that were not believed
	uint64_t overlapping;            // mappings over others that should have been gone
	uint64_t gone_bytes;     // that the kernel did not list (space_listed.h): calls that ended
				 // them were not seen
	uint64_t unlisted_bytes; // that it listed, and no call made
	uint64_t unknown;        // calls that moved or protected what was not known to be mapped
};

struct space;

// `hooks` (NULL: none) is copied.
struct space *space_new(const struct space_hooks *hooks);
void space_free(struct space *space); // NULL is allowed

// What came until now only said what was mapped before the window that a trace was trimmed to: its
// calls and commits are in no count, and the highest levels are those that the window begins with.
// `number` is of the last such event.
void space_begin(struct space *space, uint64_t time_ns, uint64_t number);

// Definitions: processes and threads count from 0, files from 1.
void space_add_process(struct space *space, const struct trace_process *process);
void space_add_thread(struct space *space, process_id process);
void space_add_file(struct space *space, const struct trace_file *file);

// The next item. Events of other kinds than virtual memory's change nothing.
void space_add_event(struct space *space, const struct trace_event *event);
void space_add_note(struct space *space, const struct trace_note *note);

// What space_listed.h found, into space_all.
void space_set_unlisted(struct space *space, uint64_t gone_bytes, uint64_t unlisted_bytes);

// All of the above: definitions that the reader has met since the last time, then the item.
void space_learn(struct space *space, const struct reader *reader);

// A heap block is at `address`: the mapping around it is the allocator's, whoever made it.
// Cheap enough to be called for every block. True: that was news.
bool space_claim(struct space *space, process_id process, uint64_t address);

// Where all heap blocks of a moment are claimed, in whatever order: what a block says of malloc as
// a whole counts first, so call this for each of them before space_claim.
void space_claim_whole(struct space *space, process_id process, uint64_t address);

// NULL where there is no such process; space_all sums up all of them.
const struct space_totals *space_process(const struct space *space, process_id process);
const struct space_totals *space_all(const struct space *space);

// What is mapped now; NULL where there is no such process. Owners in it are space_owner's to tell.
const struct ranges *space_ranges(const struct space *space, process_id process);

// Whose a range of this space is: what its `owner` says, or better.
enum space_owner space_owner(const struct space *space, const struct range *range);

// The commit that a range belongs to; NULL: it is not committed, or nobody's.
const struct space_commit *space_commit(const struct space *space, const struct range *range);

// The address after the last that a process may map: 2^32, or 2^47 (and more, once it did).
uint64_t space_limit(const struct space *space, process_id process);

// Where what the process may map ends: as it said itself (on Windows a program of 32 bits that is
// not large-address-aware has 2 GiB), else space_limit. Who asked for more than the usual 2^47
// bytes has got them.
uint64_t space_end(const struct space *space, const struct reader *reader, process_id process);
