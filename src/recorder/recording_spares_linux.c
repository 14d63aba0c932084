// Segments for children that cannot say hello: they were mapped by a parent that could.
//
// Who is about to go where the collector is out of reach (chroot, unshare, mount, a filter) asks
// for spares first. They cost addresses (under 5 MB each) and, until one is claimed, a page of
// memory.
//
// Example. A browser's zygote is about to live in an empty root: it asks for 64, and goes there. It
// forks a renderer, which finds no socket to connect to. The renderer swaps the word `claim` of the
// first spare that is free, from FREE to HELD, writes who it is and where it was forked, and sets
// the word to DONE. The collector looks at these words in each pass; it finds the claim, looks for
// the process in /proc, and takes it for an arrival. Of the spares that the renderer inherits, its
// own children can have some. It ends; the collector empties the segment and makes it FREE again.
//
// Under a filter a child makes no call but what that is known to let. So the rings of some spares
// are mapped before, and the private part of its lanes are the pages of its parent's, which the
// kernel has wiped. Where it lets mmap and mremap, as most do, a child maps rings itself, and there
// are as many spares as elsewhere.
#include "recorder/recording_own.h"

#include "recorder/client.h"
#include "recorder/clock.h"
#include "recorder/codemap.h"
#include "recorder/text.h"
#include "recorder/vm.h"

enum {
	SPARES_MAX = 256,
	SPARES_MANY = UINTPTR_MAX > UINT32_MAX ? 64 : 4, // children at one time, of one process
	SPARES_SEALED = 16,                              // the same under a filter
	SPARES_FEW = 4, // the same under a filter that does not let them map rings
	SPARES_NAP_NS = 1000000,
	SPARES_NAPS = 3000, // that a child waits for one
	SPARES_RINGS = 1 + RECORDING_SPARE_LANES,
	SPARES_FRAMES = UINTPTR_MAX > UINT32_MAX ? 1 << 18 : 1 << 16,
	SPARES_HEAD_BYTES = SEGMENT_FRAMES_AT + SPARES_FRAMES * SEGMENT_FRAME_BYTES,
};

struct recording_spare {
	struct segment *segment;      // and its lanes and frames, in one mapping
	uint8_t *page;                // of its first ring; NULL: not mapped any more
	uint8_t *next_ring;           // as in recording_state
	uint8_t *rings[SPARES_RINGS]; // NULL: not mapped yet
};

static struct recording_spare recording_spares[SPARES_MAX];
static uint32_t recording_spares_count;
static struct recording_spare *recording_spare; // that we record into; NULL: none

static bool recording_spare_is_free(const struct recording_spare *spare)
{
	return spare->page &&
	       __atomic_load_n(&spare->segment->claim, __ATOMIC_ACQUIRE) == SEGMENT_CLAIM_FREE;
}

// The mapping of header, lanes and frames, and one page of the first ring, from which the rings are
// mapped without a descriptor later (recording_map_ring_at). The caller closes `fd`.
static void recording_map_spare(int fd)
{
	struct recording_spare *spare = &recording_spares[recording_spares_count];

	if (recording_spares_count == SPARES_MAX)
		return;
	spare->segment = recording_map_part(fd, SEGMENT_HEADER_AT, SPARES_HEAD_BYTES);
	spare->page = recording_map_part(fd, SEGMENT_RINGS_AT, KERNEL_PAGE);
	if (spare->segment && !spare->page) {
		vm_own(spare->segment, SPARES_HEAD_BYTES, true);
		kernel(__NR_munmap, spare->segment, SPARES_HEAD_BYTES);
	}
	if (!spare->segment || !spare->page)
		return;
	spare->next_ring = spare->page;
	memset(spare->rings, 0, sizeof(spare->rings));
	recording_spares_count++;
}

// So many that are free, or as many as there can be. Half of them are enough: otherwise each call
// would ask once one is taken.
//
// For example, 64 are wanted and 40 are free: nothing is asked. With 31 free, 33 more are.
static void recording_ask_spares(uint32_t wanted)
{
	struct recording_answer answer;
	uint32_t have = 0;

	for (uint32_t i = 0; i < recording_spares_count; i++)
		have += recording_spare_is_free(&recording_spares[i]);
	if (have >= (wanted + 1) / 2)
		return;
	while (have < wanted) {
		uint32_t more = wanted - have;

		if (more > SEGMENT_SPARES_AT_ONCE)
			more = SEGMENT_SPARES_AT_ONCE;
		if (!recording_talk(SEGMENT_START_SPARES, kernel_process_id(), more, &answer) ||
		    answer.count == 0)
			return;
		have += answer.count;
		for (uint32_t i = 0; i < answer.count; i++) {
			recording_map_spare(answer.descriptors[i]);
			kernel(__NR_close, answer.descriptors[i]);
		}
	}
}

static bool recording_may_ask(void)
{
	return recording_phase() == RECORDING_ON && !kernel_sealed &&
	       !(recording_state->options & SEGMENT_NO_FOLLOW);
}

// lanes_lock also guards the table of spares: both are rare.
void recording_expect_children(void)
{
	bool few = kernel_limit(KERNEL_LIMIT_ADDRESSES) != UINT64_MAX;
	uint64_t signals;

	if (kernel_nested() || (recording_phase() != RECORDING_ON && !recording_begin()) ||
	    !recording_may_ask())
		return;
	signals = kernel_block_signals();
	recording_lock(&recording_state->lanes_lock);
	recording_ask_spares(few ? SPARES_FEW : SPARES_MANY);
	recording_unlock(&recording_state->lanes_lock);
	kernel_restore_signals(signals);
}

// Before a filter is set: for four spares all rings that a child can need are mapped, since
// afterwards no call can be made, or by a later filter not any more.
void recording_prepare_spares(void)
{
	uint32_t ready = 0;
	uint64_t signals;

	if (!recording_may_ask())
		return;
	signals = kernel_block_signals();
	recording_lock(&recording_state->lanes_lock);
	recording_ask_spares(kernel_let & KERNEL_LETS_MAP && !recording_is_limited() ? SPARES_SEALED
										     : SPARES_FEW);
	for (uint32_t i = 0; i < recording_spares_count && ready < SPARES_FEW; i++) {
		struct recording_spare *spare = &recording_spares[i];
		uint32_t lane = 0;

		if (!recording_spare_is_free(spare))
			continue;
		for (; lane < SPARES_RINGS; lane++) {
			if (!spare->rings[lane])
				spare->rings[lane] =
					recording_map_ring_at(&spare->next_ring, lane, false);
			if (!spare->rings[lane])
				break;
		}
		ready += lane == SPARES_RINGS;
	}
	recording_unlock(&recording_state->lanes_lock);
	kernel_restore_signals(signals);
}

uint8_t *recording_ring_of_spare(uint32_t lane)
{
	return recording_spare && lane < SPARES_RINGS ? recording_spare->rings[lane] : NULL;
}

// What a hello would have said. `claim` is set to DONE last, with release: the collector reads the
// rest after it.
static void recording_put_claim(struct recording_state *state)
{
	struct segment *segment = state->segment;

	segment->claimed = (struct segment_claimed){
		.pid = state->pid,
		.parent_image = recording_image,
		.frames_count = codemap_frames_count(),
		.modules_count = codemap_modules_count(),
		.pools_count = client_pools_count(),
		.fork_lane = recording_fork_lane,
		.fork_head = recording_fork_head,
		.time_ns = clock_now(),
	};
	__atomic_store_n(&segment->joined, SEGMENT_JOINED, __ATOMIC_RELAXED);
	__atomic_store_n(&segment->sealed, kernel_sealed != 0, __ATOMIC_RELAXED);
	__atomic_store_n(&segment->claim, SEGMENT_CLAIM_DONE, __ATOMIC_RELEASE);
	__atomic_fetch_add(&state->clock->bell, 1, __ATOMIC_SEQ_CST);
	kernel_wake(&state->clock->bell);
}

// `state` records into the spare from here on. False: its frames cannot be made large enough, or
// its ring of notes cannot be mapped.
static bool recording_wear_spare(struct recording_state *state, struct recording_spare *spare,
				 struct segment_clock *clock)
{
	state->segment = spare->segment;
	state->shared =
		(struct lane_shared *)(void *)((uint8_t *)spare->segment + SEGMENT_LANES_AT);
	state->frames =
		(struct segment_frame *)(void *)((uint8_t *)spare->segment + SEGMENT_FRAMES_AT);
	state->frames_room = SPARES_FRAMES;
	state->next_ring = spare->next_ring;
	state->clock = clock;
	state->options = spare->segment->options;
	state->lanes_count = 1;
	recording_spare = spare;
	while (state->frames_room < codemap_frames_count())
		if (!recording_grow_frames())
			return false;
	state->notes_ring = recording_map_ring(0);
	return state->notes_ring != NULL;
}

// Whether all that it needs is mapped, or can be.
static bool recording_spare_is_of_use(const struct recording_spare *spare)
{
	return spare->page &&
	       (!kernel_sealed || kernel_let & KERNEL_LETS_MAP || spare->rings[SPARES_RINGS - 1]);
}

// HELD keeps others off while it is tried.
static bool recording_claim_spare(struct recording_state *state, struct segment_clock *clock)
{
	struct recording_spare *before = recording_spare;

	for (uint32_t i = 0; i < recording_spares_count; i++) {
		struct recording_spare *spare = &recording_spares[i];
		uint32_t claim = SEGMENT_CLAIM_FREE;

		if (!recording_spare_is_of_use(spare) ||
		    !__atomic_compare_exchange_n(&spare->segment->claim, &claim, SEGMENT_CLAIM_HELD,
						 false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			continue;
		if (recording_wear_spare(state, spare, clock)) {
			recording_put_claim(state);
			return true;
		}
		__atomic_store_n(&spare->segment->claim, SEGMENT_CLAIM_FREE, __ATOMIC_RELEASE);
		recording_spare = before;
		return recording_fail(SEGMENT_WHY_MEMORY, 0);
	}
	return false;
}

// Those of children that have ended are free again when the collector has read them.
//
// 3 s at most: 3,000 naps of a millisecond.
bool recording_take_spare(struct recording_state *state, struct segment_clock *clock)
{
	for (uint32_t naps = 0;
	     recording_spares_count > 0 && clock && !recording_clock_is_over(clock); naps++) {
		if (recording_claim_spare(state, clock))
			return true;
		if (naps == SPARES_NAPS)
			break;
		__atomic_fetch_add(&clock->bell, 1, __ATOMIC_SEQ_CST);
		kernel_wake(&clock->bell);
		kernel_sleep_ns(SPARES_NAP_NS);
	}
	return false;
}

// A ring is mapped twice, one behind the other, with a page after that. What is unmapped is first
// taken from what is known as ours: from then on another thread may be given these addresses.
void recording_drop_spares(void)
{
	for (uint32_t i = 0; i < recording_spares_count; i++) {
		struct recording_spare *spare = &recording_spares[i];

		if (!spare->page)
			continue;
		vm_own(spare->segment, SPARES_HEAD_BYTES, true);
		kernel(__NR_munmap, spare->segment, SPARES_HEAD_BYTES);
		vm_own(spare->page, KERNEL_PAGE, true);
		kernel(__NR_munmap, spare->page, KERNEL_PAGE);
		for (uint32_t lane = 0; lane < SPARES_RINGS && spare->rings[lane]; lane++) {
			size_t bytes = 2 * (size_t)segment_ring_bytes(lane) + KERNEL_PAGE;

			vm_own(spare->rings[lane], bytes, true);
			kernel(__NR_munmap, spare->rings[lane], bytes);
		}
	}
	recording_spares_count = 0;
	recording_spare = NULL;
}
