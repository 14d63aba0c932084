// segment: the memory that one traced process image shares with the collector.
//
// A *session* is one run of `tidemark record`. Its collector listens on an abstract Unix socket
// (SOCK_SEQPACKET) whose name the traced processes find in TIDEMARK_SESSION, and on another one
// whose path is SEGMENT_PATH and that name: abstract names are not known in another network
// namespace. A process image (one per start, fork or exec) sends a `struct segment_hello` and
// receives a `struct segment_welcome` with two descriptors (SCM_RIGHTS): the session's clock page
// and a new segment. It maps both and closes all three descriptors, so that nothing the program
// does to its descriptors can touch the recording, and nothing we do can touch a file of the
// program. What a thread published in the segment outlives the process: SIGKILL loses nothing.
//
// Layout of a segment, in bytes from its start:
//
//     SEGMENT_HEADER_AT   struct segment           one, written by both sides as marked
//     SEGMENT_LANES_AT    struct lane_shared[]     SEGMENT_LANES_MAX
//     SEGMENT_FRAMES_AT   struct segment_frame[]   SEGMENT_FRAMES_MAX, append-only
//     SEGMENT_RINGS_AT    the lanes' rings         lane i at segment_ring_at(i)
//
// A forked child mostly makes its segment itself and does not wait (segment_hello). The file is
// sparse: only what was touched costs memory. Lane 0 carries notes (modules, exec,
// exit), written under a lock of the process; lanes 1.. carry events of one thread at a time.
//
// A guest may be of 32 bits beside a collector of 64. So
//
//   * all fields have a fixed width: no pointer, no size_t, no long. An address of 32 bits is
//     widened with zeros. What compilers could lay out differently is asserted at the end;
//   * words that both sides change are aligned to their size, and are changed with one
//     instruction in a guest of 32 bits as well: it is built for a processor with SSE2 (a load
//     or a store is one movq) and cmpxchg8b, so that no library of atomics is needed;
//   * nobody has to map a segment as a whole, which would be 290 MB. What is mapped by itself
//     begins at a multiple of SEGMENT_PART_BYTES, which every system can map at: a guest maps
//     the header with the lanes, as many frames as it has, and the rings of the lanes that it
//     uses.
//
// Freestanding: no libc call. Included by the recorder and by the collector.
//
// Everything here is read by a process that did not write it, perhaps of another version, perhaps
// while it is being written. So what both look at is atomic, who writes a field is said beside it,
// and no number is believed that would lead outside of the segment.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Before a session's name: the path of its second socket.
#define SEGMENT_PATH "/tmp/."

enum {
	SEGMENT_MAGIC = 0x4d534454, // "TDSM"
	SEGMENT_VERSION = 15,       // of the layout: the collector refuses others

	SEGMENT_LANES_MAX = 4096,     // lane 0 included
	SEGMENT_FRAMES_MAX = 1 << 20, // ids, of which 0 is none

	SEGMENT_PART_BYTES = 64 << 10,
	SEGMENT_HEADER_AT = 0,
	SEGMENT_HEADER_BYTES = 2048, // the first lanes are in the same page
	SEGMENT_LANES_AT = SEGMENT_HEADER_AT + SEGMENT_HEADER_BYTES,
	SEGMENT_LANE_BYTES = 128, // of a struct lane_shared
	SEGMENT_MARK_BYTES = 64,
	SEGMENT_CALLLESS = 128, // files that are known to have no system calls
	SEGMENT_FRAMES_AT = SEGMENT_PART_BYTES + SEGMENT_LANES_MAX * SEGMENT_LANE_BYTES,
	SEGMENT_FRAME_BYTES = 16, // of a struct segment_frame
	SEGMENT_RINGS_AT = SEGMENT_FRAMES_AT + SEGMENT_FRAMES_MAX * SEGMENT_FRAME_BYTES,

	// Rings: a program with few threads gets large ones, one with hundreds gets small ones.
	SEGMENT_RING_NOTES_BYTES = 256 << 10, // lane 0
	SEGMENT_RING_LARGE_BYTES = 1 << 20,
	SEGMENT_RING_LARGE_LANES = 8, // lanes 1..8
	SEGMENT_RING_MEDIUM_BYTES = 256 << 10,
	SEGMENT_RING_MEDIUM_LANES = 56,      // lanes 9..64
	SEGMENT_RING_SMALL_BYTES = 64 << 10, // lanes 65..

	// Linux: of a segment's file and the clock page's (F_SEAL_SEAL, _SHRINK and _GROW). A page
	// beyond a file's end would be a SIGBUS to all who have it mapped.
	SEGMENT_SEALS = 1 | 2 | 4,
};

// The longest distance of samples: beyond it nothing would be one, and estimates would not fit.
#define SEGMENT_SAMPLE_BYTES_MAX (UINT64_C(1) << 40)

// Size of lane `lane`'s ring: a power of two and a multiple of SEGMENT_PART_BYTES.
static inline uint32_t segment_ring_bytes(uint32_t lane)
{
	if (lane == 0)
		return SEGMENT_RING_NOTES_BYTES;
	if (lane <= SEGMENT_RING_LARGE_LANES)
		return SEGMENT_RING_LARGE_BYTES;
	if (lane <= SEGMENT_RING_LARGE_LANES + SEGMENT_RING_MEDIUM_LANES)
		return SEGMENT_RING_MEDIUM_BYTES;
	return SEGMENT_RING_SMALL_BYTES;
}

// Where lane `lane`'s ring begins in the segment; for SEGMENT_LANES_MAX, the segment's size.
static inline uint64_t segment_ring_at(uint32_t lane)
{
	uint64_t at = SEGMENT_RINGS_AT;
	uint32_t large = lane == 0 ? 0 : lane - 1;
	uint32_t medium = 0;
	uint32_t small = 0;

	if (lane > 0)
		at += SEGMENT_RING_NOTES_BYTES;
	if (large > SEGMENT_RING_LARGE_LANES) {
		medium = large - SEGMENT_RING_LARGE_LANES;
		large = SEGMENT_RING_LARGE_LANES;
	}
	if (medium > SEGMENT_RING_MEDIUM_LANES) {
		small = medium - SEGMENT_RING_MEDIUM_LANES;
		medium = SEGMENT_RING_MEDIUM_LANES;
	}
	return at + (uint64_t)large * SEGMENT_RING_LARGE_BYTES +
	       (uint64_t)medium * SEGMENT_RING_MEDIUM_BYTES +
	       (uint64_t)small * SEGMENT_RING_SMALL_BYTES;
}

// How many lanes, lane 0 included, have a ring in a segment of so many bytes.
static inline uint32_t segment_lanes(uint64_t bytes)
{
	uint32_t lanes = SEGMENT_LANES_MAX;

	while (lanes > 0 && segment_ring_at(lanes) > bytes)
		lanes--;
	return lanes;
}

// One comparison of the processor's counter with the clock (counter.h).
struct segment_beat {
	_Atomic uint64_t count; // the counter's value
	_Atomic uint64_t ns;    // nanoseconds since began_ns then
	_Atomic uint64_t rate;  // nanoseconds for each count, 32 bits after the point
};

// Whether the processor's counter can be used as a clock. The collector finds out, and says so in
// the clock page; it may still become BAD.
enum segment_counter {
	SEGMENT_COUNTER_LATER = 0, // no beat yet: the tick is raised by the collector alone
	SEGMENT_COUNTER_GOOD = 1,  // guests read the time by counter_convert, and raise the tick
	SEGMENT_COUNTER_BAD = 2,   // not to be trusted here: a thread of the collector raises it
};

// Places of segment_clock.lengths: 16 for each of 26 powers of two (counter_place).
enum { SEGMENT_LENGTHS = 26 * 16 };

// The session's clock page, shared by the collector and all images. Guests keep the tick going and
// ring the bell, so they have to be able to write there.
struct segment_clock {
	uint32_t magic;    // SEGMENT_MAGIC
	uint32_t version;  // SEGMENT_VERSION
	uint64_t began_ns; // CLOCK_MONOTONIC when the recording began
	uint64_t tick_ns;  // what the tick is meant to be

	// The tick: nanoseconds since began_ns, never ahead of the time and never falling. Who
	// finds it a tick or more behind raises it (counter_raise); the time of an event is what
	// is here.
	// SEGMENT_CLOCK_STOP: the recording is over (disk full, or asked to stop): record no more.
	_Alignas(64) _Atomic uint64_t now_ns;

	// By the collector, whenever it wakes up.
	_Alignas(64) _Atomic uint32_t counter; // enum segment_counter
	_Atomic uint32_t beats;                // how many there were
	struct segment_beat beat[2];

	// By those who raise the tick: how long it was, as counter_place says.
	_Alignas(64) _Atomic uint64_t worst_ns;
	_Atomic uint32_t lengths[SEGMENT_LENGTHS];

	// A futex word. A guest whose lane has become half full adds 1 and wakes it, and so does
	// one that waits for room; the collector sleeps on it between two looks at the lanes.
	_Alignas(64) _Atomic uint32_t bell;

	// By the collector: before this time no guest asks for a snapshot of its memory. By a child
	// of a recorded process that asks: until the collector has seen to that, no other does.
	_Atomic uint64_t look_after_ns;

	// By the collector, with SEGMENT_BUDGET: the mean distance of samples, as a power of two;
	// 0: every call is recorded now.
	_Atomic uint32_t turn;

	// Numbers of images that were given away: by the collector, and by forked children that do
	// not wait for an answer. Of these, how many the collector has not heard yet, and how many
	// there may be: with 0 it may not have what it needs of one that has ended, and all wait.
	_Atomic uint32_t images;
	_Atomic uint32_t unheard;
	uint32_t unheard_max;

	// By guests: files that one of them has looked through for system calls, and has found
	// none; what the kernel says of each, as one number (recorder/patch_program_x64_linux.c).
	// 0: none. The next process need not read them.
	_Atomic uint64_t callless[SEGMENT_CALLLESS];
};

#define SEGMENT_CLOCK_STOP UINT64_MAX

// What the user asked for; in segment_welcome.options.
enum segment_option {
	SEGMENT_FREE_STACKS = 1 << 0,     // a stack with every free
	SEGMENT_CLOCK_NS = 1 << 1,        // each event has its own time
	SEGMENT_NO_FOLLOW = 1 << 2,       // do not record children
	SEGMENT_PAUSED = 1 << 3,          // a fresh image begins without recording allocations
	SEGMENT_VERIFY = 1 << 4,          // walk every stack again without the cache, and compare
	SEGMENT_RSS_EXACT = 1 << 5,       // a snapshot whenever resident memory grew by 1 %
	SEGMENT_STRICT_VM = 1 << 6,       // system calls that the program makes itself are seen too
	SEGMENT_REACHABILITY = 1 << 7,    // reachable blocks are looked for at the end
	SEGMENT_NATIVE = 1 << 8,          // the collector's: frames of interpreters stay in stacks
	SEGMENT_USDT = 1 << 9,            // samples fire probes (recorder/usdt_linux.h)
	SEGMENT_LANGUAGE_HEAPS = 1 << 10, // heaps of languages are recorded (language_heap.h)
	SEGMENT_BUDGET = 1 << 11,         // sampled at times, as the clock page says (turn)
};

// How an image came to be, or what else the hello is about.
enum segment_start {
	SEGMENT_START_EXEC = 1,   // a fresh image
	SEGMENT_START_FORK = 2,   // a copy of a recorded image
	SEGMENT_START_ATTACH = 3, // one that ran already
	// No image: thread fork_lane of process pid is about to execute a static program, open
	// as its descriptor parent_image. The welcome refuses, with an enum note_exec that says
	// why, or not, without descriptors: then the recorder is brought into the program, unless
	// a byte comes before the connection ends, which says that nothing was executed.
	SEGMENT_START_ENTER = 4,
	// As FORK, said by a child of the one that it is about, which has no descriptor left.
	SEGMENT_START_FORK_HELPED = 5,
	SEGMENT_START_SPARES = 6, // none: image `parent_image` wants `frames_count` spares
};

// Guest to collector, one datagram.
//
// A forked child whose parent has noted the fork may go on at once (segment_clock.unheard). Then it
// has made its segment itself, and sends the descriptor with its hello; a file that is not sealed
// (SEGMENT_SEALS) is refused. `image` is the number that it has taken, and its arguments, as they
// are in its memory, follow the path. No welcome comes: the collector sets segment.heard.
struct segment_hello {
	uint32_t magic;
	uint32_t version;
	uint32_t start;         // enum segment_start
	uint32_t pid;           // as the guest sees it; the collector trusts SO_PEERCRED
	uint32_t parent_pid;    // as the guest sees it
	uint32_t parent_image;  // fork: image id of the parent, else 0
	uint32_t frames_count;  // fork: frame ids below this one are the parent's
	uint32_t modules_count; // fork: module ids below this one are the parent's
	uint32_t abi;           // 64 or 32
	uint32_t exe_length;    // bytes of exe, without a NUL
	uint32_t fork_lane;     // fork: the forking thread's lane in the parent, 0: it had none
	uint32_t pools_count;   // fork: pool ids below this one are the parent's
	uint64_t fork_head;     // fork: that lane's head, as in the parent's NOTE_FORK
	uint64_t time_ns;       // of the session, where no welcome is wanted
	uint32_t image;         // fork: 0: a welcome is
	uint32_t zero;
	char exe[4096]; // path of the executable; only exe_length bytes are sent
};

// Collector to guest, one datagram, with two descriptors: clock, segment. For SEGMENT_START_SPARES
// with as many as there are, at most SEGMENT_SPARES_AT_ONCE, each a spare segment.
struct segment_welcome {
	uint32_t magic;
	uint32_t version;
	uint32_t image;   // id of this process image, from 1
	uint32_t options; // enum segment_option
	uint32_t collector_pid;
	uint32_t refused; // not 0: do not record (e.g. SEGMENT_NO_FOLLOW); no descriptors come
	uint64_t segment_bytes; // of the descriptor's file, rings included
	uint32_t pid;           // the guest's as the collector sees it
	uint32_t zero;
};

// Descriptors that one welcome brings at most.
enum { SEGMENT_SPARES_AT_ONCE = 16 };

// A *spare* is a segment that has its number but no guest. A process that is about to go where the
// collector cannot be reached asks for some and keeps them mapped; a forked child that can say no
// hello claims one, without any call, and is an image from then on. The collector finds out by
// looking. When the child has ended, its segment is emptied and free again, under another number.
enum segment_claim {
	SEGMENT_CLAIM_NONE = 0, // no spare, or one that is out of use
	SEGMENT_CLAIM_FREE = 1, // to be claimed: a child sets HELD
	SEGMENT_CLAIM_HELD = 2, // by a child, which fills in the rest
	SEGMENT_CLAIM_DONE = 3, // it has
	SEGMENT_CLAIM_SEEN = 4, // by the collector
};

// What the hello of a child says that claimed its segment.
struct segment_claimed {
	uint32_t pid;          // as it sees itself; 0: it could not ask
	uint32_t parent_image; // as in a hello, and so are these
	uint32_t frames_count;
	uint32_t modules_count;
	uint32_t pools_count;
	uint32_t fork_lane;
	uint64_t fork_head;
	uint64_t time_ns; // of the session
};

// Where the request for a snapshot is. The word goes round: IDLE or DONE, ASKED (the guest), TAKING
// (the collector), DONE.
enum segment_look {
	SEGMENT_LOOK_IDLE = 0,   // none was asked for yet
	SEGMENT_LOOK_ASKED = 1,  // by the guest, which waits on the word
	SEGMENT_LOOK_TAKING = 2, // by the collector: the guest's memory is being read
	SEGMENT_LOOK_DONE = 3,   // and the guest goes on
};

// Whether the guest has its segment.
enum segment_joined {
	SEGMENT_JOINED_NOT = 0, // not yet
	SEGMENT_JOINED = 1,
	SEGMENT_JOINED_NO = 2, // it could not map it, and records nothing
};

// Whether the collector reads a segment that a forked child has made.
enum segment_heard {
	SEGMENT_HEARD_NOT = 0, // not yet
	SEGMENT_HEARD = 1,
	SEGMENT_HEARD_NO = 2, // it will not: the child is to record nothing more
};

// Resident memory from which on a child of a recorded process asks for snapshots.
enum { SEGMENT_LOOK_CHILD_BYTES = 16 << 20 };

// Why a forked child could not say hello.
enum segment_why {
	SEGMENT_WHY_SOCKET = 1,  // no socket
	SEGMENT_WHY_CONNECT = 2, // the collector's is not to be reached
	SEGMENT_WHY_ANSWER = 3,  // it did not answer
	SEGMENT_WHY_MEMORY = 4,  // the answer could not be mapped
	SEGMENT_WHY_FILTER = 5,  // a system-call filter, its parent's, is not to be tried
};

// Why there was no lane for a thread, whose events are dropped.
enum segment_no_lane {
	SEGMENT_NO_LANE_MEMORY = 1, // no memory could be mapped
	SEGMENT_NO_LANE_MORE = 2,   // SEGMENT_LANES_MAX are in use
	SEGMENT_NO_LANE_SEALED = 3, // those that were there before a system-call filter are in use
	SEGMENT_NO_LANE_VALGRIND = 4,
};

// A forked child that could not say hello says so here, in its parent's segment.
struct segment_unseen {
	_Atomic uint32_t ready;         // by the child: the rest is set; back to 0 by the collector
	uint32_t pid;                   // as the child sees itself; 0: it could not ask
	uint32_t why;                   // enum segment_why
	uint32_t error;                 // errno, or 0
	_Alignas(8) uint64_t fork_head; // as in the parent's NOTE_FORK
	uint32_t fork_lane;             // likewise
	uint32_t reserved;
};

// So many are kept: of more at a time the count alone is known.
enum { SEGMENT_UNSEEN_MAX = 32 };

// Recorded calls that a thread adds to segment_cost.calls at once, and of which one is timed.
enum { SEGMENT_CALLS_A_TIME = 256 };

// What recording costs a guest's threads, by its own measure, adding up since the image began:
// `…_timed` are calls that were timed, and `…_counts` what those took, in counts of the processor's
// counter. More is said at segment.cost.
struct segment_cost {
	_Atomic uint64_t calls, calls_timed, calls_counts;
	_Atomic uint64_t samples, samples_timed, samples_counts;
	_Atomic uint64_t left_out;
};

// The header of a segment.
struct segment {
	uint32_t magic;
	uint32_t version;
	uint32_t image;           // by the collector, before the guest maps it
	uint32_t options;         // by the collector
	uint32_t collector_pid;   // by the collector, in its own pid namespace
	_Atomic uint32_t resumes; // by the collector: how often a pause was ended from outside
	uint64_t sample_bytes;    // by the collector: mean distance of samples, or 0
	_Atomic uint32_t joined;  // by the guest: enum segment_joined
	// By who made it: so many lanes have a ring in it (segment_lanes). A limit on the size of
	// files may have made it shorter than it is meant to be.
	uint32_t lanes_max;

	// By the guest, each published with release.
	_Alignas(64) _Atomic uint32_t lanes_count; // lanes [0, lanes_count) have been used
	_Atomic uint32_t frames_count;             // frames [1, frames_count) are filled in
	_Atomic uint64_t events_dropped;           // collector gone or no lane left
	_Atomic uint64_t waited_ns;                // time threads waited for a full lane
	_Atomic uint64_t guest_bytes;              // private memory the recorder took, now and then
	_Atomic uint32_t sealed;     // 1: no system call is made, so that no bell wakes anybody
	_Atomic uint32_t no_lane;    // enum segment_no_lane: why a thread got none
	_Atomic uint64_t verified;   // SEGMENT_VERIFY: stacks walked twice
	_Atomic uint64_t mismatched; // of them: the two walks differ
	_Atomic uint32_t exit_noted; // 1: exit_status holds what _exit was given
	_Atomic uint32_t exit_status;
	_Atomic uint64_t rss_max;         // highest resident memory that the guest has seen, bytes
	_Atomic uint64_t calls_elsewhere; // on the memory of other processes: not recorded
	_Atomic uint32_t code_open;   // Windows: 1: the program has made hooked code writable, and
				      // whether the hooks are still there was not looked at since
	_Atomic uint32_t unasked;     // Windows: children that run without having been invited
	_Atomic uint32_t heard;       // by the collector: enum segment_heard
	_Atomic uint32_t own_unknown; // Windows: pieces of the recorder's own memory that are taken
				      // for the program's
	// Calls on memory by tasks that share it and that the C library does not know as threads
	// (Linux): not recorded.
	_Alignas(8) _Atomic uint64_t calls_strangers;

	// Snapshots of the guest's memory. A guest sets the reason, then ASKED, rings the bell and
	// waits on the word; the collector sets TAKING, and DONE when it is done. The next one may
	// be asked for in DONE as in IDLE.
	_Alignas(64) _Atomic uint32_t look_state; // enum segment_look
	_Atomic uint32_t look_reason; // enum trace_snapshot_reason; in the upper 24 bits, how many
				      // beginnings of looks its lanes have
	_Atomic uint64_t look_floor;  // by the collector: ask when rss_max is above it
	_Atomic uint64_t look_asked_ns; // when it was asked for, CLOCK_MONOTONIC
	_Atomic uint32_t look_child;    // by the collector: of a recorded process; it comes second
	_Atomic uint32_t look_missed;   // by the guest: it would have asked, but not in time
	// By the guest, at its end: below this address its first thread's stack has nothing of the
	// program's any more. 0: it may have.
	_Atomic uint64_t look_stack;

	// By forked children that have no segment of their own: how many there were, and the last
	// ones at their number modulo SEGMENT_UNSEEN_MAX.
	_Alignas(64) _Atomic uint32_t unseen_count;
	// By a sealed guest: 1: it needs lanes. Back to 0 by the collector, when the tids in the
	// lanes of threads that have ended are 0.
	_Atomic uint32_t sweep;
	struct segment_unseen unseen[SEGMENT_UNSEEN_MAX];

	_Alignas(64) _Atomic uint32_t claim; // enum segment_claim
	_Alignas(8) struct segment_claimed claimed;

	// By the collector, before the guest maps it: the name of the mark at which the guest asks
	// for a search of what is reachable, and waits; "": at none.
	char reach_mark[SEGMENT_MARK_BYTES];

	// By the guest, with SEGMENT_BUDGET: what recording costs its threads. Calls that were
	// recorded as all are, SEGMENT_CALLS_A_TIME at once, and the same of samples, one by one;
	// of both, how many were timed and what these took, in counts of the processor's counter;
	// and how many allocations were left out, by an estimate.
	_Alignas(8) struct segment_cost cost;
};

// Frame `id` of the image: code address and the module it lay in when it was first seen. Filled
// in before frames_count passes it. Id 0 is "unknown".
struct segment_frame {
	uint64_t pc;     // return address minus one, or the exact pc of a signal frame
	uint32_t module; // 0: no module (generated code)
	uint32_t flags;  // enum segment_frame_flag
};

enum segment_frame_flag {
	SEGMENT_FRAME_EXACT_PC = 1 << 0, // pc is the instruction itself, not a return address - 1
	// pc is no address: the number of a function of Python (NOTE_CODE) << 32 | the line.
	SEGMENT_FRAME_PYTHON = 1 << 1,
	SEGMENT_FRAME_EVALUATOR = 1 << 2, // of the interpreter, in it are frames of Python
};

// One lane's shared words. `head` and `tail` are counts of bytes since the segment began; the
// position in the ring is the count modulo the ring's size. The ring is mapped twice, end to end,
// so that no record wraps.
struct lane_shared {
	_Alignas(64) _Atomic uint64_t head; // by the guest, release, after every whole record
	_Atomic uint32_t tid; // by the guest: who holds it; 0: free; by the collector: see sweep
	// By the guest: stacks that are not proven to reach the root.
	_Atomic uint32_t stacks_incomplete;
	_Alignas(64) _Atomic uint64_t tail; // by the collector, release, after decoding
};

_Static_assert(SEGMENT_FRAMES_AT % SEGMENT_PART_BYTES == 0 &&
		       SEGMENT_RINGS_AT % SEGMENT_PART_BYTES == 0,
	       "all parts can be mapped");
_Static_assert(sizeof(struct segment) <= SEGMENT_HEADER_BYTES, "the header ends before the lanes");
_Static_assert(SEGMENT_LANES_AT + SEGMENT_LANES_MAX * SEGMENT_LANE_BYTES <= SEGMENT_FRAMES_AT,
	       "lanes and frames are apart");
_Static_assert(sizeof(struct segment_clock) <= 4096, "the clock fits its page");
_Static_assert(sizeof(struct lane_shared) == SEGMENT_LANE_BYTES, "two cache lines a lane");
_Static_assert(sizeof(struct segment_frame) == SEGMENT_FRAME_BYTES, "16 bytes a frame");

// The same for a guest of 32 bits and a collector of 64.
_Static_assert(sizeof(_Atomic uint64_t) == 8 && _Alignof(_Atomic uint64_t) == 8,
	       "a word that both sides change is in one piece");
_Static_assert(offsetof(struct segment, sample_bytes) == 24 &&
		       offsetof(struct segment, lanes_max) == 36 &&
		       offsetof(struct segment, events_dropped) == 72 &&
		       offsetof(struct segment, no_lane) == 100 &&
		       offsetof(struct segment, verified) == 104 &&
		       offsetof(struct segment, rss_max) == 128 &&
		       offsetof(struct segment, heard) == 152 &&
		       offsetof(struct segment, calls_strangers) == 160 &&
		       offsetof(struct segment, look_floor) == 200 &&
		       offsetof(struct segment, unseen) == 264 &&
		       sizeof(struct segment_unseen) == 32 &&
		       offsetof(struct segment, claim) == 1344 &&
		       offsetof(struct segment, claimed) == 1352 &&
		       sizeof(struct segment_claimed) == 40 &&
		       offsetof(struct segment, reach_mark) == 1392 &&
		       offsetof(struct segment, cost) == 1456 && sizeof(struct segment) == 1536,
	       "a header is laid out alike");
_Static_assert(offsetof(struct segment_clock, tick_ns) == 16 &&
		       offsetof(struct segment_clock, beat) == 136 &&
		       offsetof(struct segment_clock, lengths) == 200 &&
		       offsetof(struct segment_clock, look_after_ns) == 1928 &&
		       offsetof(struct segment_clock, turn) == 1936 &&
		       offsetof(struct segment_clock, unheard_max) == 1948 &&
		       offsetof(struct segment_clock, callless) == 1952,
	       "and so is a clock page");
_Static_assert(offsetof(struct segment_hello, fork_head) == 48 &&
		       offsetof(struct segment_hello, exe) == 72 &&
		       sizeof(struct segment_hello) == 4168,
	       "and a hello");
_Static_assert(offsetof(struct segment_welcome, segment_bytes) == 24 &&
		       sizeof(struct segment_welcome) == 40,
	       "and a welcome");
