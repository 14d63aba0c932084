// lane_event: what a guest's thread writes into its lane, and what the collector reads.
//
// An event in a lane is
//
//     u16  head       type | address length << 4 | size length << 8 | flags
//     u32  time       if LANE_TIME: nanoseconds since the lane's previous time
//     u64  owner      if LANE_OWNER: the new interval's sequence for the address's slot
//     0-8  address    zigzag(address - the lane's previous address), that many low bytes
//     0-8  size       requested size, that many low bytes
//     u8   alignment  only LANE_ALIGNED: log2 of the alignment asked for
//     edit            if LANE_STACK: the edit that turns the lane's current stack into the new one
//
// all little-endian and unaligned. "The lane's previous address" is the address of the previous
// event in the same lane that has one (0 at first); a lane that changes hands keeps all of its
// decoding state: time, address, stack and owner intervals belong to the lane, not to the thread.
//
// Stack edit: u16 keep | flags, u16 push | flags, then push x u32 frame ids, outermost first. The
// lane's current stack (outermost first) keeps its first `keep` frames and the pushed ones follow.
// With LANE_KEEP_NUMBERED, a u16 below LANE_EDITS is after the ids: the edit, which pushes 1
// to LANE_EDIT_FRAMES frames, has that number from here on, in this lane and until another one gets
// it. When it comes again, with all that it says, it is LANE_KEEP_AGAIN | number alone, two bytes.
// A number from LANE_EDITS on, below LANE_EDITS + LANE_WHOLES, is that of a whole stack: its edit
// keeps nothing and pushes 1 to LANE_WHOLE_FRAMES frames.
// An allocating event without LANE_STACK has the current stack unchanged. A free has a stack only
// under SEGMENT_FREE_STACKS, and then by the same rule. Other types never have one.
//
// Types that are not events of memory: see each below; they use `head` for the type only, unless
// stated.
//
// Order (design: ownership sequence). slot(address) = address / 16384 modulo 262144 (lane_slot).
// The process has a table own[slot] = {seq:48, lane:16}, all 0 at first (the lane's upper bit is a
// note of the guest's own: order.h). Before recording an event on an address, a thread loads
// own[slot] (after the real malloc returned; before the real free is called); if the word's lane is
// its own there is nothing to say, else it swaps in {seq + 1, its lane} and writes LANE_OWNER with
// that seq. An event's key among all events of its address is (seq of its lane's last LANE_OWNER
// for that slot, position in the lane).
#pragma once

#include <stddef.h>
#include <stdint.h>

// The low four bits of a record's head.
enum lane_type {
	LANE_NONE = 0,
	LANE_MALLOC = 1,        // malloc, operator new of an allocator library
	LANE_CALLOC = 2,        // size = count * item
	LANE_ALIGNED = 3,       // memalign, aligned_alloc, posix_memalign, valloc, pvalloc
	LANE_FREE = 4,          // no size
	LANE_REALLOC_FREE = 5,  // before realloc(address, …); ends the old block
	LANE_REALLOC_ALLOC = 6, // after it: the new block; the next event of this lane after its 5
	LANE_REALLOC_UNDO = 7, // after a failed one: the old block lives on; size = what was asked.
			       // Of size 0 right after a LANE_FREE (Windows): that failed
	LANE_FAILED = 8,       // an allocation that returned NULL; no address; size, stack
	LANE_TIME64 = 9,       // u64 absolute nanoseconds since began_ns follow the head
	LANE_THREAD = 10,      // u32 tid, u8[16] name (NUL-padded): whose the lane is from here on
	LANE_EXTRA = 11,       // u16 kind, u16 length, bytes: skipped when not known
	LANE_VM = 13,          // a call on virtual memory: see struct lane_vm
	LANE_HEAP = 15,        // as LANE_EXTRA_HEAP: the heap's number << 4 is in the head
};

// Kinds of LANE_EXTRA.
enum lane_extra {
	// A call on a block of a pool (tidemark.h): u8 enum lane_pool, u8 enum lane_pool_flag, u32
	// pool, u64 owner if LANE_POOL_OWNER, u64 address, u64 size, and if LANE_POOL_STACK an
	// edit. Time, owner intervals and the current stack are the lane's, as for other events;
	// the slot is that of the pool (lane_pool_slot), so that all events of a pool are in one
	// order. LANE_POOL_FREE has a stack only under SEGMENT_FREE_STACKS, the others always.
	LANE_EXTRA_POOL = 1,
	LANE_EXTRA_NAME = 2, // u8[16] name (NUL-padded): that the program gives its thread
	// u64 handle, u32 flags: from here on the lane's events on blocks are of that heap
	// (Windows; elsewhere enum lane_language_heap), and calls that allocate have these flags; a
	// handle of 0, as at first: of malloc's. These pairs are numbered from 1 as they come, up
	// to LANE_HEAPS_MAX; a LANE_HEAP goes back to one of them.
	LANE_EXTRA_HEAP = 3,
	LANE_EXTRA_HEAP_NEW = 4, // u64 handle, u32 flags: the heap was made, with these
	// u16 keep with LANE_PYTHON_CUT, u16 push, then push x u32 frame ids with
	// LANE_PYTHON_ENTRY, outermost first: an edit of the lane's list of frames of Python, in
	// which all its events that have a stack are from here on. Each ENTRY belongs, with those
	// after it up to the next one, into one frame of the stack that has
	// SEGMENT_FRAME_EVALUATOR. A frame 0 is of no function: it is not shown.
	LANE_EXTRA_PYTHON = 5,
	// u8 distance, as a power of two: the next event of the lane is a sample, drawn at that
	// mean distance.
	LANE_EXTRA_SAMPLE = 6,
};

#define LANE_PYTHON_ENTRY (UINT32_C(1) << 31)
#define LANE_PYTHON_CUT (1 << 15) // outer frames are missing; keep is 0 where that changes

// Heaps of languages, by their handles; the text is the heap's name in the trace.
enum lane_language_heap {
	LANE_HEAP_PYMEM = 1,
	LANE_HEAP_PYOBJECT = 2,
	LANE_HEAP_ZEND = 3,
};

// What happens to a block of a pool, or to all of it.
enum lane_pool {
	LANE_POOL_ALLOC = 1,   // a block begins
	LANE_POOL_FREE = 2,    // a block ends
	LANE_POOL_RESET = 3,   // all its blocks end; no address
	LANE_POOL_DESTROY = 4, // and so does the pool
};

// Which of the parts of a LANE_EXTRA_POOL it has that not all have.
enum lane_pool_flag {
	LANE_POOL_OWNER = 1 << 0, // the slot's new interval
	LANE_POOL_STACK = 1 << 1, // an edit
};

// The other bits of a record's head.
enum lane_flag {
	LANE_TYPE_MASK = 0xf,   // enum lane_type
	LANE_ADDRESS_SHIFT = 4, // how many bytes the address has: four bits
	LANE_SIZE_SHIFT = 8,    // and the size: four bits
	LANE_TIME = 1 << 12,    // four bytes of time follow
	LANE_STACK = 1 << 13,   // an edit is at the end
	LANE_OWNER = 1 << 14,   // eight bytes of the slot's new interval follow
};

// A LANE_VM record: the head (with LANE_TIME, LANE_OWNER, LANE_STACK, LANE_VM_HAS_STACK alone),
// time, owner, this, the edit. A call that takes memory is one record, after it. One that gives
// memory back is two that follow each other in the lane: LANE_VM_BEGIN with its arguments before
// the call, and LANE_VM_END with its result (error, and address where that is one) after it. All
// of a process are ordered by the slot of one address, LANE_VM_ADDRESS, whatever memory they speak
// of; an END has no place in that order.
struct lane_vm {
	uint8_t part;   // enum lane_vm_part
	uint8_t kind;   // enum lane_vm_kind
	uint8_t origin; // enum lane_vm_origin
	uint8_t reserved;
	uint16_t error; // errno; 0: the call succeeded
	uint16_t reserved2;
	uint32_t protection; // and enum lane_vm_access
	uint32_t flags;
	uint32_t file; // the image's number, as NOTE_FILE gave it; 0: none
	uint32_t reserved3;
	uint64_t address; // the result; for brk the new break; else what was asked for
	uint64_t size;
	uint64_t old_address; // mremap; for brk the break before
	uint64_t old_size;    // mremap
	uint64_t offset;      // in the file
};

_Static_assert(sizeof(struct lane_vm) == 64 && offsetof(struct lane_vm, address) == 24,
	       "as it is in a lane, whatever guest wrote it");

#define LANE_VM_ADDRESS UINT64_C(0)

enum {
	LANE_VM_HAS_STACK = 1 << LANE_ADDRESS_SHIFT, // the lane's current stack is the call's
};

// After what a protection lets do (Windows): the numbers of the trace.
enum lane_vm_access {
	LANE_VM_COMMITTED = 1 << 8, // the memory is committed, whatever may be done with it
	LANE_VM_ACCESS = 1 << 9,    // of mprotect: what is committed stays so
};

enum lane_vm_part { LANE_VM_WHOLE = 0, LANE_VM_BEGIN = 1, LANE_VM_END = 2 };

// What a record of LANE_VM is about. Up to LANE_VM_UNMAPPED calls, and with MAPPED and UNMAPPED
// what is found to have happened without one that was seen; the others are no calls.
enum lane_vm_kind {
	LANE_VM_MMAP = 32, // to LANE_VM_UNMAPPED: the numbers of the trace
	LANE_VM_MUNMAP = 33,
	LANE_VM_MREMAP = 34,
	LANE_VM_BRK = 35,
	LANE_VM_MPROTECT = 36,
	LANE_VM_MADVISE = 37,
	LANE_VM_MLOCK = 38,
	LANE_VM_SHMAT = 39,
	LANE_VM_SHMDT = 40,
	LANE_VM_REMAP = 41,
	LANE_VM_MAPPED = 42,
	LANE_VM_UNMAPPED = 43,
	LANE_VM_LOOK_BEGIN = 65, // the guest waits for a snapshot of its memory, from here
	LANE_VM_LOOK_END = 66,   // to here
	// Here belongs the list that NOTE_MAPS gave under the number in file. With flags 1 it lists
	// what differs from the one before; a line that ends in "[free]" says that nothing is there
	// any more. With an error it is not to be believed.
	LANE_VM_BASELINE = 64,
	LANE_VM_OWN = 67,       // of what the next LANE_VM_BASELINE lists, this is the recorder's
	LANE_VM_HEAP_GONE = 68, // the heap with handle `address` is about to be destroyed
};

enum lane_vm_origin {
	LANE_VM_PROGRAM = 0, // the numbers of the trace
	LANE_VM_ALLOCATOR = 1,
	LANE_VM_LIBC = 2,
	LANE_VM_LOADER = 3,
	LANE_VM_RECORDER = 4,
};

// The flags of LANE_VM_MLOCK.
enum { LANE_VM_UNLOCK = 0, LANE_VM_LOCK = 1, LANE_VM_LOCK_ALL = 2, LANE_VM_UNLOCK_ALL = 3 };

enum lane_keep_flag {
	LANE_KEEP_MASK = 0x3fff,
	LANE_KEEP_NUMBERED = 1 << 14,
	LANE_KEEP_AGAIN = 1 << 15,
};

enum lane_push_flag {
	LANE_PUSH_MASK = 0x3fff,
	LANE_PUSH_CUT = 1 << 14,        // deeper than is followed: outer frames are missing
	LANE_PUSH_INCOMPLETE = 1 << 15, // not proven to reach the root
};

enum {
	LANE_DEPTH_MAX = 8192,                          // frames of one stack
	LANE_EVENT_BYTES_MAX = 48 + 4 * LANE_DEPTH_MAX, // one whole record
	LANE_SLOTS = 1 << 18,    // 4 GB of addresses, which is 64 arenas of glibc's
	LANE_SLOT_BYTES = 16384, // neighbours that have one slot
	LANE_HEAPS_MAX = 4095,
	LANE_EDITS = 1024,    // numbers of edits
	LANE_EDIT_FRAMES = 7, // that a numbered one pushes at most
	LANE_WHOLES = 4096,   // numbers of whole stacks, after those
	LANE_WHOLE_FRAMES = 512,
	LANE_HEAP_SHIFT = 4,
	LANE_SAMPLE_LOG2_MAX = 40,
};

static inline uint32_t lane_slot(uint64_t address)
{
	return (uint32_t)(address / LANE_SLOT_BYTES) & (LANE_SLOTS - 1);
}

// What stands for a pool's address where events of pools are put into order.
static inline uint64_t lane_pool_address(uint32_t pool)
{
	return (uint64_t)pool << 12;
}

static inline uint32_t lane_pool_slot(uint32_t pool)
{
	return lane_slot(lane_pool_address(pool));
}

// Notes: records of lane 0. u16 type, u16 length of what follows, then the payload, all
// little-endian and unaligned. A reader skips a type it does not know.
enum note_type {
	// u32 module id (from 1, in order), u64 start, u64 end, u64 bias, u8 build-id length,
	// u8[32] build-id, u16 path length, path. `bias` is what is added to an address in the
	// file to get one in memory. An empty path with start != 0 is the executable.
	NOTE_MODULE = 1,
	NOTE_MODULE_GONE = 2, // u32 module id: it was unmapped
	// u32 reason (enum note_exec), u32 pid as the guest sees it (a vfork child writes into its
	// parent's segment), then the path: about to exec. With NOTE_EXEC_OK the new image's hello
	// is awaited.
	NOTE_EXEC = 3,
	NOTE_EXEC_FAILED = 4, // u32 errno, u32 pid as in that note: it came back
	NOTE_MESSAGE = 5,     // u32 enum note_message, then text: shown to the user once
	// u64 time, u32 tid, u32 lane, u64 lane head, then the name: between what the thread had
	// written and what it writes next, a moment that has a name.
	NOTE_MARK = 6,
	// u64 time, u32 tid, u32 lane, u64 lane head: this thread is about to fork, and its child
	// will say hello before anything else, repeating lane and head (both 0 where the thread has
	// no lane). The collector holds the order there until the hello comes, a second at most.
	NOTE_FORK = 7,
	NOTE_FORK_FAILED = 8, // u32 tid: the last fork that this thread announced made no child
	NOTE_POOL = 9,        // u32 pool (from 1, in order), then its name
	// As NOTE_MARK, but for the name u8: 1 from here on allocations are not recorded, 0 they
	// are again.
	NOTE_PAUSE = 10,
	// As NOTE_MARK, but for the name u32 pid, u32 status as wait has it: this thread waited for
	// that child, which has ended.
	NOTE_WAITED = 11,
	// u32 file id (from 1), u64 device (major << 20 | minor), u64 inode, then the path. The
	// last one of an id counts.
	NOTE_FILE = 16,
	// u32 number of the list, then a part of /proc/self/maps as text. The LANE_VM_BASELINE
	// whose file is that number says where in the order the list belongs.
	NOTE_MAPS = 17,
	NOTE_CALLS = 18, // u32 enum note_calls, then text: why, where it is not the best
	// u32 enum note_seen, then text: what it is, a space and the path of its file (neither:
	// the executable).
	NOTE_ALLOCATOR = 19,
	// u32 module of the interpreter whose frames are read, 0: they are not, and it should be
	// said, NOTE_LANGUAGE_NAMED: they are never; then its name, a space, its version.
	NOTE_LANGUAGE = 20,
	NOTE_CODE = 21,  // u32 number, u16 length of the function's name, the name, then its file
	NOTE_SPACE = 24, // u64 lowest address that is given, u64 the one after the highest
};

#define NOTE_LANGUAGE_NAMED UINT32_MAX

// How a process's calls on virtual memory are seen.
enum note_calls {
	NOTE_CALLS_PATCHED = 1,    // where they are made: libc's and the linker's own too
	NOTE_CALLS_INTERPOSED = 2, // some or all of them by name: the program's own calls alone
	NOTE_CALLS_DISPATCHED = 3, // as patched, and what other code asks of the kernel itself
};

// How an allocator's calls are seen: the numbers of the trace.
enum note_seen {
	NOTE_SEEN_NAME = 1,
	NOTE_SEEN_EXPORTED = 2,
	NOTE_SEEN_SYMBOLS = 3,
	NOTE_SEEN_DEBUG = 4,
	NOTE_SEEN_STRIPPED = 5,
	NOTE_SEEN_OPERATORS = 6,
};

// Why a new image will not be seen, as far as the exec'ing process can tell. 0: it will.
enum note_exec {
	NOTE_EXEC_OK = 0,
	NOTE_EXEC_STATIC = 1,
	NOTE_EXEC_SETUID = 2,
	NOTE_EXEC_NO_LIBRARY = 3, // the recorder is not to be found from there (chroot)
	NOTE_EXEC_32_BIT = 4,     // no recorder for its class
	NOTE_EXEC_ELSEWHERE = 5,  // its environment names another recording
	NOTE_EXEC_ASAN = 6,       // its AddressSanitizer will not come behind another library
	NOTE_EXEC_NO_ROOM = 7,    // its arguments leave none for us in its environment
	// Of static programs: they are stripped; Go's; have no C library that is known, or no
	// malloc; may not be traced.
	NOTE_EXEC_STRIPPED = 8,
	NOTE_EXEC_GO = 9,
	NOTE_EXEC_NO_LIBC = 10,
	NOTE_EXEC_NO_MALLOC = 11,
	NOTE_EXEC_UNTRACED = 12,
	NOTE_EXEC_OPERATORS = 13, // its operators new are an allocator's own, and may throw
};

enum note_message {
	NOTE_MESSAGE_ENTRIES =
		1, // of an allocator that calls itself some functions are not seen; text: which
	NOTE_MESSAGE_OTHER = 2,
	NOTE_MESSAGE_FILTER = 3,  // the process came under a system-call filter
	NOTE_MESSAGE_COUNTER = 4, // it must not read the processor's counter
	NOTE_MESSAGE_OWN = 5,     // it wanted to take memory of the recorder's away
	NOTE_MESSAGE_UNSEEN = 6,  // some of its calls are not recorded; text: which, and why
};
