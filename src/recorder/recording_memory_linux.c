// What a recorded process maps for its recording: pages of the recorder's own, and the parts of its
// segment, which the collector has in its memory too.
//
// The first parts are one mapping (recording_map_first); rings of later lanes are mapped by way of
// the ring before, without a descriptor. A forked child finds what its parent had of a segment in
// recording_shared, and maps its own over it or unmaps it.
#include "recorder/recording_own.h"

#include "recorder/budget.h"
#include "recorder/codemap.h"
#include "recorder/kernel.h"
#include "recorder/unwind.h"
#include "recorder/vm.h"

enum {
	RECORDING_REGIONS_MAX = 8192,
	RECORDING_FRAMES_FIRST = 1 << 16,
	RECORDING_PAGES_AT_ONCE = 256,
};

// A range of our own memory: page-aligned, `bytes` of 0 once it was given back.
struct recording_region {
	uintptr_t start;
	size_t bytes;
};

// Kept over fork.
static struct recording_region recording_regions[RECORDING_REGIONS_MAX]; // private memory of ours
static uint32_t recording_regions_count;
static struct recording_region recording_shared[RECORDING_REGIONS_MAX]; // mappings of the segment
static uint32_t recording_shared_count;
static struct recording_region recording_first; // of them: what recording_map_first has mapped
static bool recording_ring_apart;               // lane 1's ring is not in that
struct segment_clock *recording_clock;

// Pages of the kernel's, zeroed, of our own: never in a core dump, and in no figure of the
// program's (vm_own). With `wipe_on_fork` a child finds zeros there, which is how it notices that
// it is one. NULL: the kernel has none. They are never unmapped while the process is recorded.
void *recording_pages(size_t bytes, bool wipe_on_fork)
{
	void *pages = kernel_pages(bytes);
	uint32_t at;

	if (!pages)
		return NULL;
	kernel(__NR_madvise, pages, bytes, KERNEL_MADV_DONTDUMP);
	if (wipe_on_fork)
		kernel(__NR_madvise, pages, bytes, KERNEL_MADV_WIPEONFORK);
	at = __atomic_fetch_add(&recording_regions_count, 1, __ATOMIC_RELAXED);
	if (at < RECORDING_REGIONS_MAX)
		recording_regions[at] = (struct recording_region){ (uintptr_t)pages, bytes };
	vm_own(pages, bytes, false);
	return pages;
}

void recording_keep_small(void *pages, size_t bytes)
{
	kernel(__NR_madvise, pages, bytes, KERNEL_MADV_NOHUGEPAGE);
}

bool recording_is_limited(void)
{
	return UNWIND_WORD == 4 || kernel_limit(KERNEL_LIMIT_ADDRESSES) != UINT64_MAX ||
	       kernel_limit(KERNEL_LIMIT_DATA) != UINT64_MAX;
}

// From the ninth lane on as many as there are, at most 32: where there are many threads, there will
// be more.
uint32_t recording_lanes_at_once(uint32_t lane)
{
	enum { AT_ONCE = 32 };
	uint32_t count = lane < AT_ONCE ? lane : AT_ONCE;

	if (lane <= SEGMENT_RING_LARGE_LANES || recording_is_limited())
		return 1;
	return count < recording_lanes_max() - lane ? count : recording_lanes_max() - lane;
}

// Addresses may be scarce (32 bits, RLIMIT_AS). To ask is then to take and to give back at once: no
// limit that can be read says what is left.
bool recording_has_room(size_t bytes)
{
	long at;

	if (UNWIND_WORD == 8 && kernel_limit(KERNEL_LIMIT_ADDRESSES) == UINT64_MAX)
		return true;
	at = kernel_map(0, bytes, KERNEL_PROT_NONE,
			KERNEL_MAP_PRIVATE | KERNEL_MAP_ANONYMOUS | KERNEL_MAP_NORESERVE, -1, 0);

	if (kernel_failed(at))
		return false;
	kernel(__NR_munmap, at, bytes);
	return true;
}

// Pages of ours that the kernel has really given.
//
// For the report's line of what the recording itself cost. mincore says for each page whether it is
// in memory; 256 are asked at once.
void recording_measure(void)
{
	uint8_t resident[RECORDING_PAGES_AT_ONCE];
	uint32_t count = __atomic_load_n(&recording_regions_count, __ATOMIC_RELAXED);
	uint64_t bytes = 0;

	if (count > RECORDING_REGIONS_MAX)
		count = RECORDING_REGIONS_MAX;
	for (uint32_t i = 0; i < count; i++) {
		uintptr_t at = recording_regions[i].start;
		uintptr_t end = at + recording_regions[i].bytes;

		for (; at < end; at += (uintptr_t)RECORDING_PAGES_AT_ONCE * KERNEL_PAGE) {
			size_t pages = (end - at + KERNEL_PAGE - 1) / KERNEL_PAGE;

			if (pages > RECORDING_PAGES_AT_ONCE)
				pages = RECORDING_PAGES_AT_ONCE;
			if (kernel_failed(kernel(__NR_mincore, at, pages * KERNEL_PAGE, resident)))
				break;
			for (size_t page = 0; page < pages; page++)
				bytes += resident[page] & 1 ? KERNEL_PAGE : 0;
		}
	}
	if (!kernel_sealed)
		__atomic_store_n(&recording_state->segment->guest_bytes, bytes, __ATOMIC_RELAXED);
}

void recording_give_back(void *pages, size_t bytes)
{
	uint32_t count = __atomic_load_n(&recording_regions_count, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < count && i < RECORDING_REGIONS_MAX; i++) {
		if (recording_regions[i].start == (uintptr_t)pages)
			recording_regions[i].bytes = 0;
	}
	// The addresses stay ours: the program could be given them before the trace says that we
	// had them no more.
	kernel(__NR_madvise, pages, bytes, KERNEL_MADV_DONTNEED);
}

uint32_t recording_count_shared(void)
{
	return recording_shared_count;
}

// A mapping of the segment: a forked child, which gets a segment of its own, unmaps it.
static void recording_note_shared(void *at, size_t bytes)
{
	uint32_t i = __atomic_fetch_add(&recording_shared_count, 1, __ATOMIC_RELAXED);

	if (i < RECORDING_REGIONS_MAX)
		recording_shared[i] = (struct recording_region){ (uintptr_t)at, bytes };
}

void recording_drop_shared(uint32_t count, uintptr_t over)
{
	uint32_t all = recording_shared_count;

	budget_forget();
	recording_shared_count = 0;
	for (uint32_t i = 0; i < all && i < RECORDING_REGIONS_MAX; i++) {
		const struct recording_region region = recording_shared[i];

		if (i >= count || region.start == (uintptr_t)recording_clock ||
		    region.start == over) {
			if (i != recording_shared_count) // a page that the child has not yet
				recording_shared[recording_shared_count] = region;
			recording_shared_count++;
			continue;
		}
		if (region.start == recording_first.start)
			recording_first.bytes = 0;
		vm_own((const void *)region.start, region.bytes, true);
		kernel(__NR_munmap, region.start, region.bytes);
	}
}

// A part of the session's file, shared. The collector has the same pages in its own memory. NULL:
// it cannot be mapped.
void *recording_map_part(int fd, uint32_t part_at, size_t bytes)
{
	long at = kernel_map(0, bytes, KERNEL_PROT_READ | KERNEL_PROT_WRITE,
			     KERNEL_MAP_SHARED | KERNEL_MAP_NORESERVE, fd, part_at);

	if (kernel_failed(at))
		return NULL;
	kernel(__NR_madvise, at, bytes, KERNEL_MADV_DONTDUMP);
	vm_own((void *)at, bytes, false);
	return (void *)at;
}

// Without a descriptor a part of the file is mapped again by way of a mapping that begins there: an
// old size of 0 duplicates a shared one, at any length. So the second half of a ring is mapped with
// a page more, and that page is where the next ring begins.
//
// A sealed child does it, too, where its filters let these calls.
uint8_t *recording_map_ring_at(uint8_t **next, uint32_t lane, bool noted)
{
	size_t bytes = segment_ring_bytes(lane);
	long at = kernel_let_by(KERNEL_LETS_MAP, KERNEL_NR_MMAP, 0, bytes * 2 + KERNEL_PAGE,
				KERNEL_PROT_NONE,
				KERNEL_MAP_PRIVATE | KERNEL_MAP_ANONYMOUS | KERNEL_MAP_NORESERVE,
				-1, 0);

	if (kernel_failed(at))
		return NULL;
	// A ring is mapped twice in a row, so that a record that goes over its end is contiguous in
	// memory. For example, with 64 KiB, byte 65,540 of the mapping is byte 4 of the ring.
	for (size_t half = 0; half < 2; half++) {
		long mapped = kernel_let_by(KERNEL_LETS_MAP, __NR_mremap, *next, 0,
					    half ? bytes + KERNEL_PAGE : bytes,
					    KERNEL_MREMAP_MAYMOVE | KERNEL_MREMAP_FIXED,
					    at + (long)(half * bytes));

		if (kernel_failed(mapped)) {
			kernel_let_by(KERNEL_LETS_MAP, __NR_munmap, at, bytes * 2 + KERNEL_PAGE);
			return NULL;
		}
	}
	vm_own((void *)at, bytes * 2 + KERNEL_PAGE, false);
	if (noted)
		recording_note_shared((void *)at, bytes * 2 + KERNEL_PAGE);
	*next = (uint8_t *)at + bytes * 2;
	return (uint8_t *)at;
}

// Addresses for many rings at once, and the first half of the first of them; those of a lane's
// memory are made for as many (lane_memory). Where that cannot be, each ring is mapped by itself.
static void recording_reserve_rings(uint32_t lane)
{
	struct recording_state *state = recording_state;
	uint32_t count = recording_lanes_at_once(lane);
	size_t bytes = KERNEL_PAGE;
	long at;

	if (count < 2)
		return;
	for (uint32_t i = 0; i < count; i++)
		bytes += 2 * segment_ring_bytes(lane + i);
	at = kernel_map(0, bytes, KERNEL_PROT_NONE,
			KERNEL_MAP_PRIVATE | KERNEL_MAP_ANONYMOUS | KERNEL_MAP_NORESERVE, -1, 0);
	if (kernel_failed(at))
		return;
	if (kernel_failed(kernel(__NR_mremap, state->next_ring, 0, segment_ring_bytes(lane),
				 KERNEL_MREMAP_MAYMOVE | KERNEL_MREMAP_FIXED, at))) {
		kernel(__NR_munmap, at, bytes);
		return;
	}
	vm_own((void *)at, bytes, false);
	recording_note_shared((void *)at, bytes);
	state->next_ring = (uint8_t *)at;
	state->rings_reserved = count;
}

// The ring's first half is mapped. Its second half and the first one of the next ring lie one after
// the other in the file, too, and are one mapping.
static uint8_t *recording_map_reserved_ring(uint32_t lane)
{
	struct recording_state *state = recording_state;
	uint8_t *ring = state->next_ring;
	size_t bytes = segment_ring_bytes(lane);
	size_t next = state->rings_reserved > 1 ? segment_ring_bytes(lane + 1) : KERNEL_PAGE;

	if (kernel_failed(kernel(__NR_mremap, ring, 0, bytes + next,
				 KERNEL_MREMAP_MAYMOVE | KERNEL_MREMAP_FIXED, ring + bytes)))
		return NULL;
	state->next_ring = ring + 2 * bytes;
	state->rings_reserved--;
	return ring;
}

uint8_t *recording_map_ring(uint32_t lane)
{
	struct recording_state *state = recording_state;
	uint8_t *ready = lane == 1 && state->first_ring ? state->first_ring
							: recording_ring_of_spare(lane);

	if (ready)
		return ready;
	if (!state->rings_reserved)
		recording_reserve_rings(lane);
	return state->rings_reserved ? recording_map_reserved_ring(lane)
				     : recording_map_ring_at(&state->next_ring, lane, true);
}

// Twice as many frames, at another place. The old ones stay mapped: it happens a few times at most.
bool recording_grow_frames(void)
{
	struct recording_state *state = recording_state;
	size_t bytes = (size_t)state->frames_room * 2 * SEGMENT_FRAME_BYTES;
	long at;

	if (state->frames_room >= SEGMENT_FRAMES_MAX)
		return false;
	at = kernel_let_by(KERNEL_LETS_MAP, __NR_mremap, state->frames, 0, bytes,
			   KERNEL_MREMAP_MAYMOVE);
	if (kernel_failed(at))
		return false;
	vm_own((void *)at, bytes, false);
	recording_note_shared((void *)at, bytes);
	state->frames = (struct segment_frame *)at;
	state->frames_room *= 2;
	return true;
}

// The header, the lanes and the first frames, and behind them the ring of notes and that of lane 1,
// twice each (recording_map_ring_at), and the page where the next ring begins: in a forked child in
// place of its parent's.
//
// The second half of the notes and the first of lane 1 lie one after the other in the file, too,
// and are one mapping. In a forked child `over` keeps the addresses: what is static here and points
// there stays true. Where addresses may be scarce the ring comes with its lane, if that does.
static uint8_t *recording_map_first(int fd, size_t bytes)
{
	size_t notes_bytes = segment_ring_bytes(0);
	size_t ring_bytes = recording_ring_apart ? 0 : segment_ring_bytes(1);
	size_t ring_at = bytes + notes_bytes * 2;
	size_t all_bytes = ring_at + ring_bytes * 2 + KERNEL_PAGE;
	bool over = recording_first.bytes == all_bytes;
	const struct {
		size_t at, bytes;
		uint32_t part_at;
	} parts[] = {
		{ 0, bytes, SEGMENT_HEADER_AT },
		{ bytes, notes_bytes, SEGMENT_RINGS_AT },
		{ bytes + notes_bytes, notes_bytes + ring_bytes, SEGMENT_RINGS_AT },
		{ ring_at + ring_bytes, ring_bytes + KERNEL_PAGE, (uint32_t)segment_ring_at(1) },
	};
	long at;

	recording_drop_shared(UINT32_MAX, over ? recording_first.start : 0);
	at = over ? (long)recording_first.start
		  : kernel_map(0, all_bytes, KERNEL_PROT_NONE,
			       KERNEL_MAP_PRIVATE | KERNEL_MAP_ANONYMOUS | KERNEL_MAP_NORESERVE, -1,
			       0);
	if (kernel_failed(at))
		return NULL;
	if (!over) {
		vm_own((void *)at, all_bytes, false);
		recording_note_shared((void *)at, all_bytes);
		recording_first = (struct recording_region){ (uintptr_t)at, all_bytes };
	}
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (kernel_failed(
			    kernel_map((uintptr_t)at + parts[i].at, parts[i].bytes,
				       KERNEL_PROT_READ | KERNEL_PROT_WRITE,
				       KERNEL_MAP_SHARED | KERNEL_MAP_NORESERVE | KERNEL_MAP_FIXED,
				       fd, parts[i].part_at)))
			return NULL;
	kernel(__NR_madvise, at, all_bytes, KERNEL_MADV_DONTDUMP);
	return (uint8_t *)at;
}

bool recording_map_segment(struct recording_state *state, const struct segment_welcome *welcome,
			   const int descriptors[2])
{
	size_t bytes;
	uint8_t *head;

	state->frames_room = RECORDING_FRAMES_FIRST;
	while (state->frames_room < codemap_frames_count()) // our parent's
		state->frames_room *= 2;
	bytes = SEGMENT_FRAMES_AT + (size_t)state->frames_room * SEGMENT_FRAME_BYTES;
	if (!recording_first.bytes)
		recording_ring_apart = recording_is_limited();
	head = recording_map_first(descriptors[1], bytes);
	if (!recording_clock) { // not our parent's, which is of the same session
		recording_clock = recording_map_part(descriptors[0], 0, KERNEL_PAGE);
		if (recording_clock)
			recording_note_shared(recording_clock, KERNEL_PAGE);
	}
	state->clock = recording_clock;
	if (!head || !state->clock)
		return false;
	state->segment = (struct segment *)(head + SEGMENT_HEADER_AT);
	state->shared = (struct lane_shared *)(head + SEGMENT_LANES_AT);
	state->frames = (struct segment_frame *)(head + SEGMENT_FRAMES_AT);
	state->notes_ring = head + bytes;
	state->next_ring = state->notes_ring + segment_ring_bytes(0) * 2;
	if (!recording_ring_apart) {
		state->first_ring = state->next_ring;
		state->next_ring += segment_ring_bytes(1) * 2;
	}
	state->options = welcome->options;
	state->lanes_count = 1;
	return true;
}

// All that is ours goes. The caller uses none of it any more.
void recording_unmap(void)
{
	recording_clock = NULL;
	recording_drop_shared(UINT32_MAX, 0);
	recording_drop_spares();
	for (uint32_t i = 0; i < recording_regions_count && i < RECORDING_REGIONS_MAX; i++) {
		if (recording_regions[i].bytes)
			kernel(__NR_munmap, recording_regions[i].start, recording_regions[i].bytes);
	}
}
