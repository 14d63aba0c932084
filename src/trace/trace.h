// trace: the vocabulary of a trace file, shared by writer, reader and the text form.
//
// A trace is one total order of *items*: events (calls on memory) and notes (everything else that
// has a place in the order: a process starts, forks, execs, ends; a mark; a sample of RSS).
// Definitions (processes, threads, modules, frames, stacks) are numbered densely from 0 or 1 in
// order of first appearance and are in the file before the first item that uses them.
// docs/format.md says how each is stored.
//
// For example, a program calls malloc(24), moves the block by realloc to 4,096 bytes, and frees
// it. In a trace of one process (0) and one thread (0), with stacks 3 and 5:
//
//     number  kind      address  old_address  size  stack
//          0  MALLOC     0x5010            -    24      3
//          1  REALLOC    0x6020       0x5010  4096      5     one event ends a block and begins one
//          2  FREE       0x6020            -     -      0     unless frees have stacks
//
// Had the realloc failed it would be one REALLOC_FAILED: 0x5010 lives on with 24 bytes. Where
// other threads' events came between its two halves it is REALLOC_FREE and REALLOC_ALLOC, or
// REALLOC_UNDO, each in its place.
//
// All sizes are bytes, all times nanoseconds since the recording began, all addresses those of
// the traced process. Texts are UTF-8 as far as the program's own were, and never longer than 64
// KiB.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Ids. Processes and threads count from 0; modules, frames and stacks from 1, 0 being "none".
typedef uint32_t process_id; // one process image: pid and generation
typedef uint32_t thread_id;  // one thread of one process image
typedef uint32_t module_id;  // one file mapped in one process image
typedef uint32_t frame_id;   // one code address in one module
typedef uint32_t stack_id;   // one stack: its innermost frame and the stack of the callers
typedef uint32_t heap_id;    // one heap: 0 is malloc's; else a named pool or a Windows heap
typedef uint32_t file_id;    // one file that was mapped, from 1; 0: anonymous memory

#define TRACE_NONE UINT32_MAX // "no process", "no thread"

// The order of places, which are stacks of processes: by process, then by stack. As qsort wants it.
static inline int trace_compare_places(process_id l_process, stack_id l_stack, process_id r_process,
				       stack_id r_stack)
{
	if (l_process != r_process)
		return l_process < r_process ? -1 : 1;
	return l_stack < r_stack ? -1 : l_stack > r_stack;
}

// Numbers are those of the file (docs/format.md): one that was given is never given again.
enum trace_kind {
	TRACE_NONE_KIND = 0,
	TRACE_MALLOC = 1,        // address, size, stack
	TRACE_CALLOC = 2,        // the same
	TRACE_ALIGNED = 3,       // the same, and align_log2
	TRACE_FREE = 4,          // address; stack where frees have stacks
	TRACE_REALLOC = 5,       // old_address ends, address begins with size, stack
	TRACE_REALLOC_FREE = 6,  // address ends; the call goes on: 7 or 8 of the same thread
				 // follows, or nothing more (realloc to size 0 that freed)
	TRACE_REALLOC_ALLOC = 7, // address begins with size, stack: the second half of a 6
	TRACE_REALLOC_UNDO = 8, // the second half of a 6 that failed: address lives on with its old
				// size and stack; size is what was asked for
	TRACE_REALLOC_FAILED = 9, // 6 and 8 in one: address lives on; size was asked for
	TRACE_FAILED = 10,        // an allocation that returned NULL; size, stack

	// Heaps other than malloc's: pools that a program names (tidemark.h), Windows heaps.
	TRACE_HEAP_ALLOC = 11,   // heap, address, size, stack
	TRACE_HEAP_FREE = 12,    // heap, address; stack where frees have stacks
	TRACE_HEAP_RESET = 13,   // heap; all its blocks end, the heap lives on; stack
	TRACE_HEAP_DESTROY = 14, // heap; all its blocks end, and so does the heap; stack

	// Not a call: a block that was there when the process was attached to. address, size (what
	// may be used of it), stack (which only has a name). After PROCESS_START, before any call.
	TRACE_BEFORE = 15,

	// Virtual memory. All have a stack, and what `vm` points at; size is the length in bytes,
	// as it was asked for. With vm->error not 0 the call failed and changed nothing; address
	// is then what was asked for.
	TRACE_MMAP = 32,     // address (the result), size, protection, flags, file, offset
	TRACE_MUNMAP = 33,   // address, size
	TRACE_MREMAP = 34,   // old_address, old_size -> address, size; flags
	TRACE_BRK = 35,      // old_address -> address: the break before and after; size is what
			     // is between them, however it moved. The same twice: a question
	TRACE_MPROTECT = 36, // address, size, protection; pkey_mprotect too
	TRACE_MADVISE = 37,  // address, size; flags: the advice. posix_madvise, process_madvise too
	TRACE_MLOCK = 38,    // address, size; flags: 1 lock, 0 unlock, 2 all (mlockall), 3 none
	TRACE_SHMAT = 39,    // address, size (of the segment), protection; flags: shmat's
	TRACE_SHMDT = 40,    // address, size (of the segment)
	TRACE_REMAP = 41,    // remap_file_pages: address, size, offset, flags
	TRACE_MAPPED = 42,   // not a call: mapped before the recording could see it. address, size,
			     // protection, flags, file, offset. The baseline of a process's start,
			     // and what a look at its map found that no call explains
	TRACE_UNMAPPED = 43, // not a call: gone, as such a look found
};

// Whether the kind is a call on malloc's heap: what is called an event wherever calls are counted.
// A realloc in two halves is its first.
static inline bool trace_kind_is_call(unsigned kind)
{
	return kind >= TRACE_MALLOC && kind <= TRACE_FAILED && kind != TRACE_REALLOC_ALLOC &&
	       kind != TRACE_REALLOC_UNDO;
}

// Whether the kind is a call on a pool, or the end of a heap.
static inline bool trace_kind_is_pool(unsigned kind)
{
	return kind >= TRACE_HEAP_ALLOC && kind <= TRACE_HEAP_DESTROY;
}

// Whether the kind is of virtual memory, and `vm` is set.
static inline bool trace_kind_is_vm(unsigned kind)
{
	return kind >= TRACE_MMAP && kind <= TRACE_UNMAPPED;
}

// Who made a call on virtual memory.
enum trace_origin {
	TRACE_ORIGIN_PROGRAM = 0,   // the program, or a library of it
	TRACE_ORIGIN_ALLOCATOR = 1, // anybody, while the thread was inside the real malloc or free
	TRACE_ORIGIN_LIBC = 2,      // libc, for itself: thread stacks, stdio
	TRACE_ORIGIN_LOADER = 3,    // ld.so: libraries and its own memory
	TRACE_ORIGIN_RECORDER = 4,  // tidemark
	TRACE_ORIGIN_KERNEL = 5,    // nobody called: the executable, stack, vdso at the start
};

// Windows: memory is committed whatever may be done with it.
enum trace_protection {
	TRACE_PROTECTION_COMMITTED = 1 << 8, // it is, from here on
	TRACE_PROTECTION_ACCESS = 1 << 9,    // of mprotect: what is committed stays so
};

// Of TRACE_BEFORE: the name of their stack's only frame, and the mark that comes after them.
#define TRACE_BEFORE_NAME "[allocated before]"
#define TRACE_BEFORE_MARK "attached"
#define TRACE_BEFORE_WITH "with " // and of which allocators they are

// What only calls on virtual memory have. Flags and protection are numbers of the system that the
// program ran on: Linux's, or with reader_is_windows those of Windows (MEM_…).
struct trace_vm {
	uint64_t old_size;   // TRACE_MREMAP: length before
	uint64_t offset;     // in the file
	uint32_t protection; // PROT_READ 1, PROT_WRITE 2, PROT_EXEC 4, enum trace_protection
	uint32_t flags;      // as the call takes them: MAP_*, MREMAP_*, MADV_*
	file_id file;        // 0: anonymous
	uint32_t error;      // errno of a call that failed; 0: it did not
	uint8_t origin;      // enum trace_origin
};

// One call on memory. What it does not have by its kind is 0. A reader holds ids against its
// tables: a stack, heap or file that is not known is 0, and an event of a thread that is not known
// is left out, and counted.
struct trace_event {
	uint64_t number;  // position in the trace, from 0; also counts second halves (7, 8)
	uint64_t time_ns; // since the recording began; never falls from one item to the next
	uint64_t address;
	uint64_t old_address; // only TRACE_REALLOC
	uint64_t size;        // requested bytes
	thread_id thread;
	stack_id stack; // 0: none
	heap_id heap;   // 0: malloc's
	uint32_t flags; // of a call on a Windows heap that allocates, as it takes them
	uint8_t kind;   // enum trace_kind
	uint8_t align_log2;
	const struct trace_vm *vm; // trace_kind_is_vm: borrowed until the next read; else NULL
};

// A heap that is not malloc's. Its blocks are in no figure of malloc's; those of a pool are parts
// of blocks that malloc gave.
struct trace_heap {
	heap_id id;
	process_id process;
	uint64_t handle; // a Windows heap's; 0: a pool, which has a name; a language's has both
	bool created;    // while it was recorded: then with these
	uint32_t flags;  // as HeapCreate takes them
	char *name;      // never NULL
};

// A file that was mapped.
struct trace_file {
	file_id id;
	uint64_t device, inode; // 0: not known
	char *path;             // as /proc/PID/maps would show it: "[stack]", "/memfd:x (deleted)"
};

// Why a snapshot was taken.
enum trace_snapshot_reason {
	TRACE_SNAPSHOT_RELEASE = 1, // before a call that gives memory back, at a new peak
	TRACE_SNAPSHOT_EXIT = 2,    // just before the process ended
	TRACE_SNAPSHOT_GROWTH = 3,  // resident memory grew by so much
	TRACE_SNAPSHOT_ASKED = 4,   // somebody asked for one
	TRACE_SNAPSHOT_MARK = 5,    // the program set a mark (of reachability alone)
};

// What a snapshot does not have. What it has is whole.
enum trace_snapshot_flag {
	TRACE_SNAPSHOT_CUT = 1 << 0,      // pages after the last range were not looked at
	TRACE_SNAPSHOT_NO_PAGES = 1 << 1, // no page could be looked at: ranges are empty
	TRACE_SNAPSHOT_NO_SMAPS = 1 << 2, // of mappings, rss and swap alone are known, by pages
};

// A mapping as the kernel reported it (/proc/PID/smaps). All in bytes, and whole pages. rss is what
// is resident of it; pss counts a page that n processes share for 1/n.
struct trace_mapping {
	uint64_t start, end;
	uint64_t offset;     // in the file
	file_id file;        // 0: anonymous and without a name
	uint32_t protection; // PROT_*
	bool shared;
	uint64_t rss, pss;
	uint64_t shared_clean, shared_dirty, private_clean, private_dirty;
	uint64_t anonymous, swap, locked;
};

// As /proc/PID/pagemap has them, of each page.
enum trace_pages_flag {
	TRACE_PAGES_PRESENT = 1 << 0,
	TRACE_PAGES_SWAPPED = 1 << 1,
};

// Pages alike that are side by side; none of the others has any flag. For example of four pages of
// 4 KiB from 0x1000 on, of which the first and second are present: one entry, 0x1000 to 0x3000,
// PRESENT.
struct trace_pages {
	uint64_t start, end; // addresses
	uint8_t flags;       // enum trace_pages_flag; never 0
};

// The memory of a process at one moment, as the kernel reported it. Mappings and ranges rise and do
// not overlap. A snapshot is not atomic: it is somewhere between its two marks.
struct trace_snapshot {
	process_id process;
	uint8_t reason; // enum trace_snapshot_reason
	uint32_t flags; // enum trace_snapshot_flag
	uint64_t time_ns;
	uint64_t began, ended;  // the marks: it was begun before event `began`, and was done
				// before event `ended`; began <= ended
	uint64_t page_bytes;    // a power of two
	uint64_t rss_bytes;     // as statm has it
	uint64_t rss_bytes_max; // the highest so far (VmHWM)
	uint64_t cost_ns;       // that taking it took
	uint32_t mappings_count, pages_count;
	struct trace_mapping *mappings; // NULL in a list of snapshots: see reader_snapshot
	struct trace_pages *pages;
};

// Whether the program could still find a block.
enum trace_reach_state {
	TRACE_REACH_REACHABLE = 1,   // by pointers to beginnings alone
	TRACE_REACH_INSIDE = 2,      // only by way of a pointer to the inside of a block
	TRACE_REACH_UNREACHABLE = 3, // by nothing, but for other unreachable blocks in a circle
	TRACE_REACH_HELD = 4,        // by an unreachable block
	TRACE_REACH_STATES_COUNT,
};

// Where the word is that points to a block.
enum trace_reach_place {
	TRACE_REACH_NOWHERE = 0,
	TRACE_REACH_BLOCK = 1,    // in another block
	TRACE_REACH_REGISTER = 2, // of a thread; `at` is its tid
	TRACE_REACH_STACK = 3,
	TRACE_REACH_GLOBAL = 4, // in the data of the executable or of a library
	TRACE_REACH_TLS = 5,    // in what a thread has for itself
	TRACE_REACH_OTHER = 6,  // in other memory that the program or a library mapped
	TRACE_REACH_PLACES_COUNT,
};

// One block of those that lived, and one of the words that point to it: the first that was found,
// nearest to a root.
struct trace_reach_block {
	uint64_t address;
	uint64_t size; // requested bytes
	stack_id stack;
	thread_id thread;  // that allocated it
	uint8_t state;     // enum trace_reach_state
	uint8_t place;     // enum trace_reach_place
	uint16_t own_high; // of who searches (engine/replay/reach_search.h), and of nobody else
	uint32_t own_low;
	uint64_t at; // of one word that points to it
};

// What may make blocks look unreachable that are not: with either, nothing is called a leak.
enum trace_reach_flag {
	TRACE_REACH_BLIND = 1 << 0,   // not all blocks are known: allocations were left out
	TRACE_REACH_PARTIAL = 1 << 1, // memory could not be read, which may have held pointers
};

// Which blocks of a process were reachable at one moment, while it was stopped; or a part of them.
struct trace_reach {
	process_id process;
	uint8_t reason; // enum trace_snapshot_reason: exit, asked, mark
	uint32_t flags; // enum trace_reach_flag
	uint64_t time_ns;
	uint64_t number;                  // it is before the event of this number
	uint64_t stopped_ns;              // how long the process stood
	uint64_t read_bytes;              // that were searched for pointers
	uint64_t total;                   // blocks of the whole, in all its parts
	uint64_t first;                   // of them, the first of this part
	uint64_t count;                   // and how many it has
	struct trace_reach_block *blocks; // by address. NULL in a list: see reader_reach
};

// How a process came into the trace, and so what it may know of from before.
enum trace_start {
	TRACE_START_EXEC = 1,   // a fresh image
	TRACE_START_FORK = 2,   // a copy of `parent`: inherits its live blocks
	TRACE_START_ATTACH = 3, // it ran already: what it had allocated before is TRACE_BEFORE,
				// where that could be read, or not known
};

// Whether such a process may free blocks that it was not seen to allocate. With an exec there are
// none: its memory is new.
static inline bool trace_start_inherits(uint8_t start)
{
	return start == TRACE_START_FORK || start == TRACE_START_ATTACH;
}

// How it left. Which of them it is may be known only after its last event.
enum trace_exit {
	TRACE_EXIT_UNKNOWN = 0, // still running when the recording ended, or nobody could tell
	TRACE_EXIT_CODE = 1,
	TRACE_EXIT_SIGNAL = 2,
	TRACE_EXIT_EXEC = 3, // replaced by the next generation
};

// One image of a process. An exec ends it (TRACE_EXIT_EXEC) and begins the next generation of the
// same pid, so pid 4711 that ran sh and then cc1 is two processes of the trace: 4711.0 and
// 4711.1.
struct trace_process {
	process_id id;
	process_id parent; // TRACE_NONE: not in the trace
	uint32_t pid;
	uint32_t generation; // 0 for the first image of this pid, +1 with each exec
	uint8_t start;       // enum trace_start
	uint8_t bits;        // 64 or 32
	uint8_t exit;        // enum trace_exit; known once the end note was read
	uint32_t exit_value; // exit code or signal number
	uint64_t began_ns;
	uint64_t ended_ns; // UINT64_MAX while not ended
	char *exe;         // path, never NULL
	uint32_t args_count;
	char **args;

	// Of the notes that were read so far. 0: nobody said.
	uint8_t calls;         // enum trace_calls
	char *calls_why;       // why not TRACE_CALLS_PATCHED; may be NULL
	bool before;           // what it had allocated before it was attached to is in the trace:
	uint64_t before_count; // so many blocks
	char *before_with;     // of these allocators ("glibc, jemalloc"); NULL: nobody said
	char *before_why;      // why not, or not all; NULL: nobody said
	struct trace_allocator *allocators;
	uint32_t allocators_count;
	char *title;           // what its arguments read as last; NULL: as `args`
	char *interpreter;     // "python 3.12.1", the first that was found; NULL: none is known
	bool interpreter_read; // its functions are in the stacks, by the recorder
	uint64_t rss_max_bytes, pss_max_bytes, swap_max_bytes;
	uint64_t minor_faults, major_faults;
	uint64_t snapshots_missed;
	uint64_t address_low, address_end; // what it may map: the lowest, and after the highest
	uint64_t mapped_limit;             // of bytes mapped (RLIMIT_AS)
	uint64_t data_limit;               // of bytes that are private and writable (RLIMIT_DATA)
	uint64_t group_limit;              // of bytes that its control group may hold
	uint64_t group_kills; // of processes of its group, for lack of memory, until its own end
	uint64_t calls_elsewhere; // on the memory of other processes, not recorded
	uint64_t end_late;        // 1: it may have ended milliseconds before ended_ns
	bool paused; // at some time, first and last; allocations were not recorded then
	uint64_t paused_first_ns, paused_last_ns, resumed_last_ns;
};

// How an allocator's calls are seen.
enum trace_seen {
	TRACE_SEEN_NAME = 1,     // by name: ours comes before its
	TRACE_SEEN_EXPORTED = 2, // entries are patched, of functions that its file exports
	TRACE_SEEN_SYMBOLS = 3,  // that the file's symbol table names
	TRACE_SEEN_DEBUG = 4,    // that a debug file of it names
	TRACE_SEEN_STRIPPED = 5, // not: if the executable has one, nothing says where
	// No allocator: the file has operators new and delete of its own, in place of the C++
	// library's.
	TRACE_SEEN_OPERATORS = 6,
	TRACE_SEEN_COUNT,
};

// An allocator that a process has, besides libc's.
struct trace_allocator {
	uint8_t seen; // enum trace_seen
	char *name;   // "jemalloc"
	char *file;   // NULL: the executable
};

// How the calls of a process on virtual memory were seen.
enum trace_calls {
	TRACE_CALLS_PATCHED = 1,    // where libc and the dynamic linker make them
	TRACE_CALLS_INTERPOSED = 2, // some or all by name: the program's own alone
	TRACE_CALLS_DISPATCHED = 3, // patched, and what other code asks of the kernel itself
	TRACE_CALLS_COUNT,
};

// One thread. A tid that is given out again by the system is another thread of the trace; the name
// is the last that was noted so far.
struct trace_thread {
	thread_id id;
	process_id process;
	uint32_t tid;
	char name[16]; // NUL-terminated; may be empty
};

// A file of code, mapped into one process. An address `pc` in [start, end) is `pc - bias` in the
// file's own numbering, by which symbols are found: with a library linked at 0 and mapped at
// 0x7f0000400000, bias is 0x7f0000400000.
struct trace_module {
	module_id id;
	process_id process;
	uint64_t start, end;     // address range in memory
	uint64_t bias;           // address in memory - address in the file
	uint64_t file_size;      // of the file when it was mapped; 0: not known
	uint64_t file_mtime_ns;  // the same
	uint8_t build_id_length; // 0: none
	uint8_t build_id[32];
	char *path;
};

// One code address, of one process; other processes may have it in their stacks for the same place
// in the same file, wherever they have that. Of a call that has not returned it is the return
// address minus one: that is inside the call's own instruction, and so on the line of the call and
// in the function that made it, also where the call is a function's last instruction.
struct trace_frame {
	frame_id id;
	module_id module; // 0: not in a file
	uint64_t pc;      // address in memory; for a return address: minus one
	uint32_t flags;   // enum trace_frame_flag
};

enum trace_frame_flag {
	TRACE_FRAME_EXACT_PC = 1 << 0, // pc is the instruction itself (signal frame)
	TRACE_FRAME_SOURCE = 1 << 1, // a line of an interpreted program: pc is a number, no address
};

// A name that the trace itself gives to a frame. Traces that were assembled from text have them;
// in recorded ones names come from the modules' files. For inlined code a frame has several,
// innermost first.
struct trace_name {
	char *function;
	char *file;    // "": not known
	uint32_t line; // 0: not known
};

// Stacks form a tree: a stack is a frame and the stack of its callers. parent < id.
struct trace_stack {
	stack_id parent; // 0: this frame is outermost
	frame_id frame;
	uint8_t flags; // enum trace_stack_flag, of the outermost end: inherited by all above
};

enum trace_stack_flag {
	TRACE_STACK_INCOMPLETE = 1 << 0, // not proven to reach the root
	TRACE_STACK_CUT = 1 << 1,        // deeper than the recorder follows
	// From here on: the mean distance of the samples that the allocations with it are, as a
	// power of two; 0: each was recorded.
	TRACE_STACK_SAMPLE_SHIFT = 2,
};

enum { TRACE_SAMPLE_LOG2_MAX = 40 };

// The mean distance at which the allocations with this stack were drawn, in bytes; 0: each was
// recorded.
static inline uint64_t trace_stack_sampled(const struct trace_stack *stack)
{
	uint8_t log2 = stack ? stack->flags >> TRACE_STACK_SAMPLE_SHIFT : 0;

	return log2 > 0 && log2 <= TRACE_SAMPLE_LOG2_MAX ? UINT64_C(1) << log2 : 0;
}

// Among the words of the options: what share of the processor's time recording may take.
#define TRACE_BUDGET "max-overhead="

// What each kind uses of struct trace_note; all else is 0, TRACE_NONE or "". Numbers are those of
// the file.
enum trace_note_kind {
	TRACE_NOTE_PROCESS_START = 1, // process
	TRACE_NOTE_PROCESS_END = 2,   // process; its exit and exit_value are set
	TRACE_NOTE_MARK = 3,          // process, thread, text: its name
	TRACE_NOTE_RSS = 4,           // process, value: resident bytes
	TRACE_NOTE_LOSS = 5,          // process (or TRACE_NONE), value: events lost, text: why
	TRACE_NOTE_MESSAGE = 6,       // process, text: something the user should know
	TRACE_NOTE_EXEC_UNSEEN = 7,   // process, text: an image that cannot be recorded, and why
	TRACE_NOTE_MODULE_GONE = 8,   // process, value: module id
	TRACE_NOTE_THREAD_NAME = 9,   // thread, text: its name from here on
	// 10 is reserved.
	TRACE_NOTE_PAUSE = 11,   // process, thread: allocations are not recorded from here on
	TRACE_NOTE_RESUME = 12,  // process, thread: they are again
	TRACE_NOTE_RSS_MAX = 13, // process, value: the highest resident memory of all, bytes
	TRACE_NOTE_CALLS = 14,   // process, value: enum trace_calls, text: why not patched
	TRACE_NOTE_PSS = 15,     // process, value: bytes; pages that n processes share count 1/n
	TRACE_NOTE_SWAP = 16,    // process, value: bytes swapped out
	TRACE_NOTE_MINOR = 17,   // process, value: page faults so far that read nothing
	TRACE_NOTE_MAJOR = 18,   // process, value: page faults so far that had to read
	TRACE_NOTE_SNAPSHOTS_MISSED = 19, // process, value: how many there was no time for
	TRACE_NOTE_ADDRESS_LOW = 24,      // process, value: the lowest address that it may map
	TRACE_NOTE_ADDRESS_END = 25,      // process, value: after the highest
	TRACE_NOTE_MAPPED_LIMIT = 26,     // process, value: bytes that it may map (RLIMIT_AS)
	TRACE_NOTE_DATA_LIMIT =
		27, // process, value: that may be private and writable (RLIMIT_DATA)
	TRACE_NOTE_CALLS_ELSEWHERE = 28, // process, value: calls on other processes' memory
	TRACE_NOTE_ALLOCATOR = 29,       // process, value: enum trace_seen, text: what, and where
	// process, value: how many TRACE_BEFORE it has, all in front of this; text: whose they are
	// (TRACE_BEFORE_WITH), or why there are none
	TRACE_NOTE_BEFORE = 30,
	TRACE_NOTE_INTERPRETER = 31, // process, value: 1 if its functions are in stacks, text: what
	TRACE_NOTE_GROUP_LIMIT = 32, // process, value: bytes that its control group may hold
	// process, value: how many processes the kernel has killed in its control group for lack of
	// memory since it began, where a signal has ended it
	TRACE_NOTE_GROUP_KILLS = 33,
	// value: from here on allocations are samples of this mean distance, a power of two; 0:
	// each is recorded. Of all processes
	TRACE_NOTE_SAMPLING = 34,
	// process, value: 1; its place in the order may be milliseconds after it has ended. At the
	// end of the trace
	TRACE_NOTE_END_LATE = 35,
	TRACE_NOTE_TITLE = 36, // process, text: what its arguments read as from here on
	TRACE_NOTES_COUNT,
};

// Something with a place in the order that is not a call on memory: it is before the event
// of the same number.
struct trace_note {
	uint8_t kind; // enum trace_note_kind
	process_id process;
	thread_id thread;
	uint64_t time_ns;
	uint64_t value;
	const char *text; // borrowed until the next read; "" if none
};

// A note of kind TRACE_NOTE_MARK, kept: a moment that has a name.
struct trace_mark {
	uint64_t number;  // of the event that it is before
	uint64_t time_ns; // when the program set it
	process_id process;
	thread_id thread; // TRACE_NONE: set from outside
	char *name;       // never NULL
};

// The name of the mark at which a trace begins that was cut out of a longer one.
#define TRACE_TRIMMED "trimmed"

// A note of kind TRACE_NOTE_SAMPLING, kept: from here on each allocation is recorded, or samples
// are. For example log2 16: a block of s bytes is in the trace with probability 1 - exp(-s /
// 65536).
struct trace_turn {
	uint64_t number; // of the event that it is before
	uint64_t time_ns;
	uint8_t log2; // the distance, as a power of two; 0: each call is recorded
};

// What was recorded, and how. A reader's texts belong to it and are never NULL; a writer copies
// what it is given.
struct trace_info {
	uint16_t version_major, version_minor;
	uint8_t recording_id[16];
	uint64_t began_unix_ns; // wall clock when the recording began
	char *tool;             // "tidemark 0.1.0"
	char *host;             // uname: system, release, machine
	char *command;          // the command line that was recorded, quoted for a shell
	char *directory;        // where it was started
	char *options;          // "free-stacks clock=ns", may be empty
	char *labels; // "version=1.2\nhost=web1\n" (label.h), may be empty; a writer's may be NULL
	uint64_t tick_ns;      // 0: each event has its own time
	uint64_t sample_bytes; // 0: every call; else a block of s bytes is in the trace with
			       // probability 1 - exp(-s / sample_bytes)
	bool budget;           // sampled at times, as its notes and stacks say (TRACE_BUDGET)
	uint64_t trimmed;      // so many events at the beginning only say what was there before
			       // the window that the trace was trimmed to; 0: it was not
};

// Totals that the collector writes when a recording ends well; a reader of a cut trace has none.
// What it counts may be more than what a reader finds, where blocks of the trace were lost since.
struct trace_end {
	uint64_t duration_ns;
	uint64_t events;      // event entries in the trace
	uint64_t events_lost; // known to be missing
	uint64_t waited_ns;   // time that the program's threads waited for the collector
	uint64_t tick_median_ns, tick_worst_ns;
	uint64_t guest_bytes_peak;     // our memory in the traced processes, shared parts too
	uint64_t collector_bytes_peak; // resident memory of the collector
	uint64_t collector_cpu_ns;
	uint64_t stacks_incomplete;
	uint64_t stacks_verified;   // walked twice and compared (record --verify-stacks)
	uint64_t stacks_mismatched; // of them, those whose walks differ: a bug of ours
	uint64_t unseen; // programs and processes that were seen to begin, and not recorded
	char *why; // "" for a normal end, else what cut the recording short ("no space left …")
};
