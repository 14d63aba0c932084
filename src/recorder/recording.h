// recording: start, fork, stop; and the state that all threads of the process share.
//
// The state lives in pages that the kernel wipes in a forked child (MADV_WIPEONFORK): a child sees
// "not started", zeroed locks and empty lanes, whatever its parent was doing, and starts again at
// its first event, with a segment of its own. No lock is held across fork and no handler is needed
// for it. A vfork child shares its parent's memory and is, for us, its parent's thread.
#pragma once

#include "recorder/kernel.h"
#include "wire/compiler.h"
#include "wire/lane_event.h"
#include "wire/segment.h"

#include <stdbool.h>

// What the process does. A forked child is NEW again, since the page is wiped.
enum recording_phase {
	RECORDING_NEW = 0, // not started, or a forked child that has not noticed yet
	RECORDING_ON = 1,
	RECORDING_OFF = 2, // refused, stopped, or the collector is gone
	RECORDING_STARTING = 3,
};

struct lane;

// Places of recording_state.files.
enum { RECORDING_FILES_MAX = 1024 };

// A mapped file that the collector knows of, by the number that NOTE_FILE gave it.
struct recording_file {
	uint64_t device, inode;
	uint32_t id; // 0: free
};

// What all threads of the process share. Wiped in a forked child.
struct recording_state {
	_Atomic uint32_t phase; // enum recording_phase
	_Atomic int code_lock;  // rules, frames, modules
	_Atomic int lanes_lock; // hand-out of lanes
	_Atomic int notes_lock; // lane 0
	_Atomic int enter_lock; // allocators that call themselves
	uint32_t pid;           // as the process sees itself; what a vfork child has is another
	uint32_t options;       // enum segment_option
	struct segment *segment;
	struct lane_shared *shared; // SEGMENT_LANES_MAX
	struct segment_frame *frames;
	uint32_t frames_room; // so many of them are mapped
	struct segment_clock *clock;
	uint8_t *first_ring;     // lane 1's, mapped with the header; NULL: it is not
	uint8_t *next_ring;      // the first page of the ring after those that are mapped
	uint32_t rings_reserved; // from there on; then its first half is mapped
	uint32_t lanes_count;    // lanes used so far, lane 0 included
	uint32_t free_count;     // of free_lanes, under lanes_lock
	uint64_t notes_head;     // bytes written to lane 0, under notes_lock
	uint8_t *notes_ring;     // lane 0's
	_Atomic uint32_t waits;  // not 0: hooks record nothing yet (wire/attach.h)
	uint32_t resumes;        // of segment->resumes, that were heeded
	bool copy;               // a forked child: its memory is its parent's
	uint32_t baseline_told;  // what was mapped at the beginning
	uint32_t own_telling;    // somebody tells of our own mappings (vm_linux.c)
	_Atomic int files_lock;  // files and file_path
	uint64_t rss_before;     // resident memory that was the last image's (peak_linux.c)
	uint64_t look_ns;        // when the kernel was last asked for it
	uint32_t looking;        // a thread waits for a snapshot
	uint32_t looks_count;    // that have begun
	uint32_t listing;        // a thread tells the list of mappings again
	uint32_t lists_count;    // how often it was reported
	uint32_t files_count;
	// Large ones last: what each process writes to is in one page.
	struct lane *lanes[SEGMENT_LANES_MAX];
	uint16_t free_lanes[SEGMENT_LANES_MAX];
	struct recording_file
		files[RECORDING_FILES_MAX]; // by hash; what collides is reported again
	char file_path[4096];
};

// Never NULL once recording_begin has returned true.
HIDDEN extern struct recording_state *recording_state;

// Make the recording run if it can: find the real functions, say hello, map the segment. Cheap when
// it runs already. False: nothing is recorded.
HIDDEN bool recording_begin(void);

// What the process does now (enum recording_phase). It may be another at the next look.
static inline uint32_t recording_phase(void)
{
	return recording_state ? __atomic_load_n(&recording_state->phase, __ATOMIC_ACQUIRE)
			       : RECORDING_NEW;
}

// Around a fork that libc tells nobody of. `result`: what it returned here.
HIDDEN void recording_before_fork(void);
HIDDEN void recording_after_fork(long result);

// The process is about to go where its children may not reach the collector, or to send its own
// files' root there: have segments that they can take (wire/segment.h, enum segment_claim).
HIDDEN void recording_expect_children(void);

// The process is about to come under a system-call filter: prepare for making no call any more, and
// make none but what the filter lets (`lets`, enum kernel_lets). False: it was so already, or this
// is a vfork child, whose memory is its parent's.
HIDDEN bool recording_seal(bool strict, uint32_t lets);

// After that: it has (and the trace says so), or it has not.
HIDDEN void recording_sealed(bool done);

// From here on, reading the processor's counter is a fault in one of the process's threads, and in
// those that it starts (PR_SET_TSC).
HIDDEN void recording_forbid_counter(void);

// Record nothing more in this process. The phase is OFF from here on.
HIDDEN void recording_stop(void);

// The recording was ended from outside: what the program does from here on is none of it.
// So many lanes have a ring in this process's segment.
static inline uint32_t recording_lanes_max(void)
{
	uint32_t most = recording_state->segment->lanes_max;

	return most < SEGMENT_LANES_MAX ? most : SEGMENT_LANES_MAX;
}

static inline bool recording_clock_is_over(const struct segment_clock *clock)
{
	return clock && __atomic_load_n(&clock->now_ns, __ATOMIC_RELAXED) == SEGMENT_CLOCK_STOP;
}

static inline bool recording_is_over(void)
{
	return recording_state && recording_clock_is_over(recording_state->clock);
}

// An event cannot be recorded: it is counted, if it is one of the recording. Any thread may, also
// one without a lane.
HIDDEN void recording_drop(void);

// A wait for the collector. All zero at first.
struct recording_wait {
	uint32_t beats;     // the collector's, when last looked at
	uint64_t silent_ns; // how long they have stood still
	uint64_t slept_ns;  // in all
	uint32_t naps;
};

// Sleep a little, longer each time: many threads may be waiting, and the collector needs the
// processor. True: it is gone for good.
HIDDEN bool recording_wait_is_vain(struct recording_wait *wait);

enum {
	RECORDING_SPINS = 200,
	RECORDING_LOCK_NAP_NS = 20000,
	RECORDING_LOCK_DOUBLINGS = 7,
	RECORDING_LOCK_NAPS = 16, // until the holder is asked for
};

// `held`: what the lock was found to be.
static inline bool recording_lock_from(_Atomic int *lock, int held)
{
	return __atomic_compare_exchange_n(lock, &held, kernel_lock_word(), false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

// The holder has ended and cannot let go. What it was at is left half done: whatever a lock guards
// is written so that those who read without it never see a half, and may be written again.
static inline bool recording_lock_left(_Atomic int *lock)
{
	int held = __atomic_load_n(lock, __ATOMIC_RELAXED);

	return held && kernel_lock_is_left(held) && recording_lock_from(lock, held);
}

// Spin locks for the slow paths. Signals must be blocked by the caller (kernel_block_signals), so
// that no handler waits for a lock that its own thread holds. After 200 turns it naps: 20 us,
// doubling up to 2.56 ms, and now and then asks whether the holder still lives.
static inline void recording_lock(_Atomic int *lock)
{
	for (uint32_t spins = 0; !recording_lock_from(lock, 0); spins++) {
		uint32_t naps = spins - RECORDING_SPINS;

		if (spins < RECORDING_SPINS)
			__builtin_ia32_pause();
		else if (naps % RECORDING_LOCK_NAPS == RECORDING_LOCK_NAPS - 1 &&
			 recording_lock_left(lock))
			return;
		else // the holder needs the processor, the more the longer it takes
			kernel_sleep_ns((long)RECORDING_LOCK_NAP_NS
					<< (naps < RECORDING_LOCK_DOUBLINGS
						    ? naps
						    : RECORDING_LOCK_DOUBLINGS));
	}
}

static inline void recording_unlock(_Atomic int *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

// Pages of ours, all zero, in no core dump, and noted as the recorder's own; NULL if the kernel has
// none or the process is sealed. Wiped in a forked child if asked so.
HIDDEN void *recording_pages(size_t bytes, bool wipe_on_fork);

// They are touched here and there alone: never a huge page, also where all memory is of these.
HIDDEN void recording_keep_small(void *pages, size_t bytes);
// The memory goes back to the kernel; the addresses stay ours, and read as zero.
HIDDEN void recording_give_back(void *pages, size_t bytes);

// Whether so much can be mapped, as far as a limit goes: what is mapped in parts and given up half
// way would be the program's loss.
HIDDEN bool recording_has_room(size_t bytes);

// Whether addresses, or memory of the process's own, have a limit: then nothing is mapped that is
// not needed now.
HIDDEN bool recording_is_limited(void);

// How many lanes, of which this is the first, are given memory and addresses at once.
HIDDEN uint32_t recording_lanes_at_once(uint32_t lane);

// Map a lane's ring twice, end to end, so that no record wraps. NULL if the kernel has no room. A
// forked child, which gets a segment of its own, unmaps it. Lane after lane, under lanes_lock.
HIDDEN uint8_t *recording_map_ring(uint32_t lane);

// Map twice as many frames of the segment. False: the kernel has no room, or there are no more.
// Under code_lock.
HIDDEN bool recording_grow_frames(void);

// Count how much of our pages is resident, and tell the collector (segment->guest_bytes). A system
// call for each megabyte: now and then, on slow paths.
HIDDEN void recording_measure(void);

// A descriptor that is connected to the collector, or a negative errno. The caller closes it.
HIDDEN long recording_connect(void);

// Have libc tell us of forks, from now on. False: it cannot.
HIDDEN bool recording_watch_forks(void);

// Why there is no recording: enum segment_why, and an errno or 0.
HIDDEN void recording_tell_why(uint32_t *why, uint32_t *error);

// Unmap all that is ours but code. Nothing may be recorded any more: late_linux.h.
HIDDEN void recording_unmap(void);

// What a new image needs in its environment to be recorded too, besides the entry of LD_PRELOAD
// (library_linux.h): "TIDEMARK_SESSION=…". "" before recording_begin.
HIDDEN const char *recording_session(void);
