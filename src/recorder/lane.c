// How far a lane may write without a look. For example, a ring of 65,536 bytes, of which the
// collector has read up to 90,000 (bytes since the lane began), and the lane is at 100,000:
//
//     room 122,768    half a ring after the collector: up to there nothing is asked
//     beyond that     the bell is rung, and room is 155,536, the whole ring
//     at that end     the thread waits, and naps, until the collector has read on
//
// The collector reads on every millisecond or so, and so a lane seldom comes further than half a
// ring.
//
// `limit` is at most `room`, and less where the clock is to be read before. 0 means busy: a signal
// handler that allocates finds no room, and so the slow way, where it gets a lane of its own.
#include "recorder/lane.h"

#include "recorder/kernel.h"
#include "recorder/order.h"
#include "recorder/text.h"
#include "recorder/vm.h"

enum { LANE_BELLS_A_MEASURE = 64, LANE_NAPS_A_BELL = 8 };

uint64_t lane_nobody_words[32];

#ifndef KERNEL_NT
__thread struct lane *lane_mine = (struct lane *)(void *)lane_nobody_words;
#endif

static struct lane *lane_nobody(void)
{
	return (struct lane *)(void *)lane_nobody_words;
}

// The ownership table, one per process, with the first lane, and a place for each slot behind it
// (order.h). Wiped in a forked child.
enum { OWNERS_BYTES = (sizeof(uint64_t) + sizeof(order_place)) * LANE_SLOTS };

static uint64_t *lane_owners_made;

static uint64_t *lane_owners(void)
{
	if (lane_owners_made)
		return lane_owners_made;
	lane_owners_made = recording_pages(OWNERS_BYTES, true);
	if (lane_owners_made)
		recording_keep_small(lane_owners_made, OWNERS_BYTES);
	return lane_owners_made;
}

// Kept over fork: a child has those of its parent, wiped. And from a try without room for the rest
// to the next one, which is for the same number.
static struct lane *lane_kept[SEGMENT_LANES_MAX];

// The private part of lane `id`, all zero. NULL: there is no memory or no address space for it, or
// for its ring and the table of owners.
//
// Where there are many threads many are mapped at once. What is not used takes addresses alone.
static struct lane *lane_memory(uint32_t id)
{
	size_t each = (sizeof(struct lane) + KERNEL_PAGE - 1) & ~(size_t)(KERNEL_PAGE - 1);
	size_t other_bytes = 2 * segment_ring_bytes(id) + KERNEL_PAGE;
	uint8_t *pages = NULL;
	uint32_t count;

	if (id == 1 && recording_state->first_ring)
		other_bytes = 0; // it is mapped
	if (!lane_owners_made)
		other_bytes += OWNERS_BYTES;
	if (lane_kept[id] || kernel_sealed)
		return lane_kept[id];
	count = recording_lanes_at_once(id);
	if (count > 1)
		pages = recording_pages(each * count, true);
	if (!pages)
		count = 1;
	if (!pages && recording_has_room(each + other_bytes))
		pages = recording_pages(each, true);
	for (uint32_t i = 0; pages && i < count; i++)
		lane_kept[id + i] = (struct lane *)(void *)(pages + i * each);
	return lane_kept[id];
}

// The lane with this number: its private part, its ring, and what the recording's options ask for.
// NULL: there is no memory or no address space for it. It is never given back; a later thread takes
// it over.
static struct lane *lane_create(uint32_t id)
{
	struct recording_state *state = recording_state;
	struct lane *lane = lane_memory(id);

	if (!lane)
		return NULL;
	lane->owners = lane_owners();
	lane->ring = lane->owners ? recording_map_ring(id) : NULL;
	if (!lane->ring)
		return NULL;
	if (state->options & SEGMENT_VERIFY) {
		lane->verify = recording_pages(sizeof(*lane->verify), false);
		capture_recall_always(&lane->capture);
	}
	lane->id = id;
	lane->mask = segment_ring_bytes(id) - 1;
	lane->shared = &state->shared[id];
	clock_init(lane, state->options & SEGMENT_CLOCK_NS);
	lane->free_stacks = state->options & SEGMENT_FREE_STACKS;
	state->lanes[id] = lane;
	return lane;
}

// `mine` is the asking thread's id: a lane of an earlier thread with the same id is free, but not
// one in use by this thread itself. In a sealed process threads may all seem to have one id.
static bool lane_holder_lives(const struct lane *lane, uint32_t mine)
{
	if (kernel_sealed)
		return __atomic_load_n(&lane->shared->tid, __ATOMIC_ACQUIRE) != 0;
	if (lane->tid == mine)
		return lane_get_mine()->tid == mine;
	return kernel_thread_lives(recording_state->pid, lane->tid);
}

// Under lanes_lock. The place is written before it counts: the thread may be ended in between.
static void lane_push_free(uint32_t id)
{
	struct recording_state *state = recording_state;

	state->free_lanes[state->free_count] = (uint16_t)id;
	__atomic_store_n(&state->free_count, state->free_count + 1, __ATOMIC_RELEASE);
}

// Collect the lanes of threads that have ended.
//
// A lane whose `limit` is 0 was in use when its thread ended (killed in a hook, say): unless that
// was before its first record, it is not taken over. The collector reads it as far as it was
// published.
static void lane_find_dead(uint32_t mine)
{
	struct recording_state *state = recording_state;

	for (uint32_t id = 1; id < state->lanes_count; id++) {
		struct lane *lane = state->lanes[id];

		if (!lane || !lane->tid || lane_holder_lives(lane, mine))
			continue;
		// One that was left in the midst of an event has no state to go on with; one of
		// which nothing was published yet begins as new.
		if (lane->limit || !lane->head)
			lane_push_free(id);
		lane->inner = NULL;
		__atomic_store_n(&lane->tid, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&lane->shared->tid, 0, __ATOMIC_RELEASE);
	}
}

// A sealed process cannot ask who lives. The collector is asked to; it looks every millisecond.
// False: it does not answer.
static bool lane_sweep(uint32_t mine)
{
	_Atomic uint32_t *asked = &recording_state->segment->sweep;
	struct recording_wait wait = { 0 };

	__atomic_store_n(asked, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(asked, __ATOMIC_ACQUIRE)) {
		if (recording_wait_is_vain(&wait))
			return false;
	}
	lane_find_dead(mine);
	return true;
}

// All lanes of a sealed process are taken: a thread that ends leaves one. That is waited for, but
// not for long again where it was in vain: they may all belong to threads that stay.
static void lane_wait_dead(uint32_t mine)
{
	enum { SWEEPS = 500, SWEEP_EVENTS = 4096 };
	static uint32_t misses; // under lanes_lock
	const struct recording_state *state = recording_state;
	uint32_t sweeps = misses ? 1 : SWEEPS;

	if (misses && ++misses % SWEEP_EVENTS)
		return;
	while (sweeps-- && lane_sweep(mine) && !state->free_count)
		;
	misses = state->free_count == 0;
}

// Why this process has no lane for a thread, for the report; NULL, for the caller to return.
static struct lane *lane_refuse(enum segment_no_lane why)
{
	__atomic_store_n(&recording_state->segment->no_lane, why, __ATOMIC_RELAXED);
	return NULL;
}

// Under lanes_lock: a lane for thread `tid`, reused or new. NULL: there are no more in the segment.
//
// For example, of 100 lanes 10 are found dead: less than a quarter, so that the next search is when
// 150 are in use. With 30 dead it is at 100 again. So the cost of asking the kernel for each thread
// is spread over as many thread starts.
static struct lane *lane_take(uint32_t tid)
{
	static uint32_t next_search;
	struct recording_state *state = recording_state;
	uint32_t used = state->lanes_count - 1;
	struct lane *lane;

	if (used == 0)
		next_search = SEGMENT_RING_LARGE_LANES;
	if (kernel_sealed && !state->free_count) {
		lane_wait_dead(tid);
	} else if (!state->free_count && used >= next_search) {
		lane_find_dead(tid);
		// Few have died: grow before looking again, so that a thread's start stays cheap.
		next_search = state->free_count * 4 >= used ? used : used + used / 2;
	}
	if (state->free_count) {
		lane = state->lanes[state->free_lanes[state->free_count - 1]];
		// First: else it would be lost if this thread were ended in between.
		__atomic_store_n(&lane->tid, tid, __ATOMIC_RELAXED);
		__atomic_store_n(&state->free_count, state->free_count - 1, __ATOMIC_RELEASE);
		return lane;
	}
	if (kernel_sealed)
		return lane_refuse(SEGMENT_NO_LANE_SEALED);
	if (state->lanes_count >= recording_lanes_max())
		return lane_refuse(SEGMENT_NO_LANE_MORE);
	lane = lane_create(state->lanes_count);
	if (!lane)
		return lane_refuse(SEGMENT_NO_LANE_MEMORY);
	lane->tid = tid;
	state->lanes_count++;
	__atomic_store_n(&state->segment->lanes_count, state->lanes_count, __ATOMIC_RELEASE);
	return lane;
}

// The lanes from `first` on are put on the stack of free ones last to first, so that the lowest
// numbers, which have large rings, are taken first.
void lane_prepare(bool strict, uint32_t spare)
{
	struct recording_state *state = recording_state;
	uint64_t signals = kernel_block_signals();
	uint32_t first;

	recording_lock(&state->lanes_lock);
	first = state->lanes_count;
	spare -= spare < state->free_count ? spare : state->free_count; // a filter that was not set
	while (state->lanes_count < recording_lanes_max() && state->lanes_count < first + spare &&
	       lane_create(state->lanes_count))
		state->lanes_count++;
	for (uint32_t id = state->lanes_count; id-- > first;) // large ones are taken first
		lane_push_free(id);
	__atomic_store_n(&state->segment->lanes_count, state->lanes_count, __ATOMIC_RELEASE);
	if (strict)
		clock_forbid();
	recording_unlock(&state->lanes_lock);
	kernel_restore_signals(signals);
}

void lane_make_ready(void)
{
	struct recording_state *state = recording_state;
	uint64_t signals = kernel_block_signals();
	struct lane *lane;

	recording_lock(&state->lanes_lock);
	lane = state->free_count ? NULL : lane_take(kernel_thread_id());
	if (lane)
		lane_push_free((uint32_t)lane->id);
	recording_unlock(&state->lanes_lock);
	kernel_restore_signals(signals);
}

void lane_forget(void)
{
	lane_set_mine(lane_nobody());
}

// The collector is asked to look at the lanes.
static void lane_ring_bell(void)
{
	static _Atomic uint32_t rung;
	_Atomic uint32_t *bell = &recording_state->clock->bell;

	if (__atomic_fetch_add(&rung, 1, __ATOMIC_RELAXED) % LANE_BELLS_A_MEASURE == 0)
		recording_measure();
	__atomic_fetch_add(bell, 1, __ATOMIC_SEQ_CST);
	kernel_wake(bell);
}

// The thread waits and naps; each eighth nap rings the bell again, since a collector may have
// missed one. How long it took goes into waited_ns, which the report shows. In vain means that the
// collector is gone: then the recording ends here, and the program goes on.
bool lane_wait_room(struct lane *lane, uint64_t bytes)
{
	uint64_t size = lane->mask + 1;
	uint64_t need = lane->head + LANE_ROOM + bytes;
	uint64_t began = 0;
	struct recording_wait wait = { 0 };
	uint64_t tail;

	for (;;) {
		tail = __atomic_load_n(&lane->shared->tail, __ATOMIC_ACQUIRE);
		if (need <= tail + size)
			break;
		if (!began)
			began = kernel_now_ns();
		if (wait.naps % LANE_NAPS_A_BELL == 0)
			lane_ring_bell();
		if (recording_wait_is_vain(&wait)) {
			recording_stop();
			return false;
		}
	}
	if (began)
		__atomic_fetch_add(&recording_state->segment->waited_ns, kernel_now_ns() - began,
				   __ATOMIC_RELAXED);
	lane->room = tail + size;
	return true;
}

// Room for one event, and how far it goes: half the ring (where the bell rings), then all of it.
//
// Called by the busy lane's own thread. Afterwards `room` is a position of the lane, as `head` is,
// and not a number of bytes.
static bool lane_make_room(struct lane *lane)
{
	uint64_t size = lane->mask + 1;
	uint64_t tail = __atomic_load_n(&lane->shared->tail, __ATOMIC_ACQUIRE);

	if (lane->head + LANE_ROOM <= tail + size / 2) {
		lane->room = tail + size / 2;
	} else {
		lane_ring_bell();
		if (!lane_wait_room(lane, 0))
			return false;
	}
	clock_pass(lane);
	return true;
}

// The first record of a thread in a lane: type, thread id, and 16 bytes of its name. 22 bytes.
static void lane_put_thread(struct lane *lane, uint32_t tid)
{
	uint8_t *start = lane_at(lane, lane->head);
	uint16_t type = LANE_THREAD;
	char name[16] = { 0 };

	kernel_thread_name(name);
	memcpy(start, &type, 2);
	memcpy(start + 2, &tid, 4);
	memcpy(start + 6, name, 16);
	lane->limit = 0;
	lane_leave(lane, start, start + 22);
}

// A lane for this thread, which has none (level 0) or whose lanes are all busy.
//
// Signals are blocked, since a handler that allocates would come here too, and lanes_lock is not
// recursive.
static struct lane *lane_begin(uint32_t level)
{
	struct recording_state *state = recording_state;
	uint64_t signals = kernel_block_signals();
	uint32_t tid = kernel_thread_id();
	struct lane *lane;

	recording_lock(&state->lanes_lock);
	lane = lane_take(tid);
	if (lane) {
		lane->tid = tid;
		lane->level = level;
		lane->inner = NULL;
		lane->between = false;
		// Its last thread may have been ended inside a heap (Windows).
		lane->inside = lane->reallocated = 0;
		lane->interrupted_count = 0;
		capture_reset(&lane->capture);
		// Written before it is read, or its page would fault twice.
		*capture_place(&lane->capture, (uintptr_t)&lane) = 0;
		__atomic_store_n(&lane->shared->tid, tid, __ATOMIC_RELEASE);
	}
	recording_unlock(&state->lanes_lock);
	if (lane && lane_make_room(lane)) {
		lane_put_thread(lane, tid);
		vm_begin(lane);
	} else {
		lane = NULL;
	}
	kernel_restore_signals(signals);
	return lane;
}

// A lane with room for this thread, whatever is in the way of the one it has.
static struct lane *lane_find_open(struct lane *lane)
{
	if (lane != lane_nobody() && !lane->ring) // wiped: we are a forked child
		lane = lane_nobody();
	if (lane == lane_nobody()) {
		lane = lane_begin(0);
		if (lane)
			lane_set_mine(lane);
		return lane;
	}
	for (uint32_t level = 1; lane && lane->limit == 0; level++) {
		// Busy: we are in a signal handler that interrupted this lane, or one has jumped
		// out of there. Of so many that is the more likely: the thread begins anew. Should
		// they be gone back to, they are still what they were.
		if (level == LANE_LEVELS_MAX) {
			lane = lane_begin(0);
			if (lane)
				lane_set_mine(lane);
			return lane;
		}
		if (!lane->inner)
			lane->inner = lane_begin(level);
		lane = lane->inner;
	}
	if (lane && lane->head + LANE_ROOM > lane->limit && !lane_make_room(lane))
		return NULL;
	return lane;
}

// The cases, by how often they come: the clock is to be looked at; the ring is half full; a
// thread's first event; the process's first; a signal handler's.
COLD struct lane *lane_enter_slow(struct lane *lane)
{
	if (likely(lane->limit && lane->head + LANE_ROOM <= lane->room)) {
		clock_pass(lane);
		return lane;
	}
	if (unlikely(recording_phase() != RECORDING_ON && !kernel_nested()) && recording_begin())
		lane = lane_get_mine(); // a forked child forgets what it had
	if (kernel_nested() || recording_phase() != RECORDING_ON) {
		recording_drop();
		return NULL;
	}
	// A hook that a thread was in since an earlier recording: its call is none of this one.
	if (unlikely(__atomic_load_n(&recording_state->waits, __ATOMIC_ACQUIRE)))
		return NULL;
	lane = lane_find_open(lane);
	if (!lane)
		recording_drop();
	return lane;
}
