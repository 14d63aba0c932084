// How an image becomes a process of the recording: our DLL looks for an invitation in its own
// memory (recording_find_invite), which the collector has written there, and takes the handles in
// it (recording_accept). There is no socket and no fork; what the collector has to know is in the
// segment.
#include "recorder/recording_win32.h"

#include "recorder/client.h"
#include "recorder/clock.h"
#include "recorder/codemap.h"
#include "recorder/notes.h"
#include "recorder/patch_win32.h"
#include "recorder/recording_own.h"
#include "recorder/sample.h"
#include "recorder/text.h"
#include "recorder/unwind.h"
#include "recorder/vm.h"

struct recording_state *recording_state;

enum {
	RECORDING_REGIONS_MAX = 32768,
	RECORDING_FRAMES_FIRST = 1 << 16,
	RECORDING_RING_TRIES = 16,
	RECORDING_SILENT_NS = 200000000, // no beat and no such process: the collector is gone
};

// Memory of ours. Appended to, never removed from.
struct recording_region {
	uintptr_t start;
	size_t bytes;
	bool shared; // of a section
};

static struct recording_region recording_regions[RECORDING_REGIONS_MAX];
static _Atomic uint32_t recording_regions_count;
static void *recording_segment_section, *recording_bell_event;
static uint8_t *recording_session_view;

// Each is ours until the process ends, so the table only grows; what does not fit is counted as the
// program's, and the segment says how many.
static void recording_note_region(void *at, size_t bytes, bool shared)
{
	uint32_t i = __atomic_fetch_add(&recording_regions_count, 1, __ATOMIC_RELAXED);

	if (i < RECORDING_REGIONS_MAX)
		recording_regions[i] = (struct recording_region){ (uintptr_t)at, bytes, shared };
	else if (recording_state && recording_state->segment)
		__atomic_store_n(&recording_state->segment->own_unknown,
				 i + 1 - RECORDING_REGIONS_MAX, __ATOMIC_RELAXED);
	vm_own(at, bytes, false);
}

// Without a lock, as the table only grows. A range that overlaps one of ours is ours.
bool recording_is_ours(uintptr_t at, size_t bytes)
{
	uint32_t count = __atomic_load_n(&recording_regions_count, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < count && i < RECORDING_REGIONS_MAX; i++) {
		const struct recording_region *region = &recording_regions[i];

		if (at < region->start + region->bytes && region->start < at + bytes)
			return true;
	}
	return false;
}

void *recording_bell(void)
{
	return recording_bell_event;
}

// Where a process leaves word for the collector that it starts another one (wire/invite.h). NULL:
// there is no recording.
struct visit *recording_visits(void)
{
	return recording_session_view
		       ? (struct visit *)(void *)(recording_session_view + INVITE_VISITS_AT)
		       : NULL;
}

bool recording_child_waits(void)
{
	const uint8_t *session = recording_session_view;

	return session &&
	       __atomic_load_n((const uint32_t *)(const void *)(session + INVITE_WAITING_AT),
			       __ATOMIC_ACQUIRE);
}

void recording_keep_small(void *, size_t)
{
}

// There is no fork here.
void *recording_pages(size_t bytes, bool)
{
	void *pages = kernel_pages(bytes);

	if (pages)
		recording_note_region(pages, bytes, false);
	return pages;
}

// Decommitted, not released: the range stays in the list of ours.
void recording_give_back(void *pages, size_t bytes)
{
	size_t all = bytes;

	// The addresses stay ours, as on other systems.
	patch_real.NtFreeVirtualMemory(NT_SELF, &pages, &all, NT_MEM_DECOMMIT);
}

// What is committed counts, as there is no cheap way to ask what is in memory.
void recording_measure(void)
{
	uint32_t count = __atomic_load_n(&recording_regions_count, __ATOMIC_RELAXED);
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < count && i < RECORDING_REGIONS_MAX; i++)
		bytes += recording_regions[i].shared ? 0 : recording_regions[i].bytes;
	__atomic_store_n(&recording_state->segment->guest_bytes, bytes, __ATOMIC_RELAXED);
}

uint64_t recording_patience_ns(void)
{
	return RECORDING_SILENT_NS;
}

// What cannot be opened for another reason than that it is gone is there.
//
// A process id may be another's by now; then it counts as living, and a lane goes on to wait for
// its patience.
bool recording_collector_lives(void)
{
	struct nt_object object = { .length = sizeof(object) };
	struct nt_client client = { recording_state->segment->collector_pid, 0 };
	const int64_t at_once = 0;
	void *process = NULL;
	nt_status status = NtOpenProcess(&process, NT_SYNCHRONIZE, &object, &client);
	bool ended;

	if (status < 0)
		return status != NT_ERROR_CID;
	ended = NtWaitForSingleObject(process, 0, &at_once) == NT_SUCCESS;
	NtClose(process);
	return !ended;
}

// A part of a section, mapped at `at`, or anywhere if that is NULL. Its memory is only reserved
// until it is committed; what is committed already stays as it is.
//
// The section was made with SEC_RESERVE, so that a large segment costs nothing until it is used.
static void *recording_map(void *section, void *at, uint64_t offset, size_t bytes)
{
	void *committed;
	size_t all = bytes;

	if (patch_real.NtMapViewOfSection(section, NT_SELF, &at, 0, 0, &offset, &all, NT_VIEW_UNMAP,
					  at ? 0 : NT_MEM_TOP_DOWN, NT_PAGE_READWRITE) < 0)
		return NULL;
	committed = at;
	all = bytes;
	patch_real.NtAllocateVirtualMemory(NT_SELF, &committed, 0, &all, NT_MEM_COMMIT,
					   NT_PAGE_READWRITE);
	return at;
}

static void *recording_map_noted(void *section, uint64_t offset, size_t bytes)
{
	void *at = recording_map(section, NULL, offset, bytes);

	if (at)
		recording_note_region(at, bytes, true);
	return at;
}

bool recording_has_room(size_t)
{
	return true;
}

bool recording_is_limited(void)
{
	return true;
}

uint32_t recording_lanes_at_once(uint32_t)
{
	return 1;
}

// Two views side by side. Nothing reserves the place for both, so another thread may get in
// between: then once more.
//
// 16 tries; NULL after that, and the thread has no lane.
uint8_t *recording_map_ring(uint32_t lane)
{
	size_t bytes = segment_ring_bytes(lane);

	for (int i = 0; i < RECORDING_RING_TRIES; i++) {
		void *at = NULL;
		size_t all = 2 * bytes, none = 0;
		uint8_t *first, *second;

		if (patch_real.NtAllocateVirtualMemory(NT_SELF, &at, 0, &all,
						       NT_MEM_RESERVE | NT_MEM_TOP_DOWN,
						       NT_PAGE_NOACCESS) < 0)
			return NULL;
		patch_real.NtFreeVirtualMemory(NT_SELF, &at, &none, NT_MEM_RELEASE);
		first = recording_map(recording_segment_section, at, segment_ring_at(lane), bytes);
		if (!first)
			continue;
		second = recording_map(recording_segment_section, first + bytes,
				       segment_ring_at(lane), bytes);
		if (second) {
			recording_note_region(first, 2 * bytes, true);
			return first;
		}
		patch_real.NtUnmapViewOfSection(NT_SELF, first);
	}
	return NULL;
}

// The old view stays: another thread may be reading it.
bool recording_grow_frames(void)
{
	struct recording_state *state = recording_state;
	size_t bytes = (size_t)state->frames_room * 2 * SEGMENT_FRAME_BYTES;
	void *at;

	if (state->frames_room >= SEGMENT_FRAMES_MAX)
		return false;
	at = recording_map_noted(recording_segment_section, SEGMENT_FRAMES_AT, bytes);
	if (!at)
		return false;
	state->frames = at;
	state->frames_room *= 2;
	return true;
}

// Header and lanes, the session's page with the clock, and the first frames. False: a part cannot
// be mapped, or is not of our version.
static bool recording_map_all(struct recording_state *state, const struct invite *invite)
{
	uint8_t *head = recording_map_noted(recording_segment_section, SEGMENT_HEADER_AT,
					    SEGMENT_FRAMES_AT);

	recording_session_view =
		recording_map_noted((void *)(uintptr_t)invite->session, 0, INVITE_SESSION_BYTES);
	state->frames_room = RECORDING_FRAMES_FIRST;
	state->frames = recording_map_noted(recording_segment_section, SEGMENT_FRAMES_AT,
					    RECORDING_FRAMES_FIRST * SEGMENT_FRAME_BYTES);
	if (!head || !recording_session_view || !state->frames)
		return false;
	state->clock = (struct segment_clock *)(void *)recording_session_view;
	state->segment = (struct segment *)(void *)(head + SEGMENT_HEADER_AT);
	__atomic_store_n(&state->segment->joined, SEGMENT_JOINED, __ATOMIC_RELEASE);
	state->shared = (struct lane_shared *)(void *)(head + SEGMENT_LANES_AT);
	state->options = invite->options;
	state->pid = kernel_process_id();
	state->lanes_count = 1;
	state->notes_ring = recording_map_ring(0);
	return state->segment->magic == SEGMENT_MAGIC &&
	       state->segment->version == SEGMENT_VERSION && state->notes_ring != NULL;
}

void recording_note_own(void *at, size_t bytes)
{
	recording_note_region(at, bytes, true);
}

// Where this program may have memory: 2 GiB, if it has 32 bits and its image does not say that it
// can take more.
static void recording_tell_space(void)
{
	struct nt_system system;

	if (NtQuerySystemInformation(0, &system, sizeof(system), NULL) >= 0)
		notes_space(system.lowest_address, (uint64_t)system.highest_address + 1);
}

// Programs close what they do not know: all numbers from 4 up. Ours stay open, and the close fails,
// as it would if there were nothing.
static void recording_keep_open(uint32_t handle)
{
	const struct nt_handle kept = { .stays_open = 1 };

	NtSetInformationObject((void *)(uintptr_t)handle, NT_HANDLE_FLAGS, &kept, sizeof(kept));
}

// Take what the invitation offers, and begin. False: `reason` in the invitation says why, for the
// collector.
bool recording_accept(struct invite *invite)
{
	recording_keep_open(invite->segment);
	recording_keep_open(invite->session);
	recording_keep_open(invite->bell);
	recording_segment_section = (void *)(uintptr_t)invite->segment;
	recording_bell_event = (void *)(uintptr_t)invite->bell;
	recording_state = recording_pages(sizeof(*recording_state), false);
	if (!recording_state || !kernel_take_own() || !recording_map_all(recording_state, invite) ||
	    !unwind_start() || !sample_start(recording_state->segment->sample_bytes)) {
		invite->reason = INVITE_NO_MAPPING;
		recording_stop();
		return false;
	}
	// Notes can be written from here on, events only once all is ready.
	__atomic_store_n(&recording_state->phase, RECORDING_STARTING, __ATOMIC_RELEASE);
	codemap_start();
	clock_start();
	recording_measure();
	__atomic_store_n(&recording_state->phase, RECORDING_ON, __ATOMIC_RELEASE);
	recording_tell_space();
	if (recording_state->options & SEGMENT_PAUSED)
		client_begin_paused();
	return true;
}

bool recording_begin(void)
{
	return recording_phase() == RECORDING_ON;
}

// Its region begins with it.
static bool recording_is_invite(const struct invite *invite, const struct nt_region *region)
{
	static const uint8_t magic[INVITE_MAGIC_BYTES] = INVITE_MAGIC;

	return region->state == NT_MEM_COMMIT && region->type == NT_MEM_PRIVATE &&
	       region->protection == NT_PAGE_READWRITE && region->base == region->allocation &&
	       region->bytes >= INVITE_BYTES && memcmp(invite->magic, magic, sizeof(magic)) == 0 &&
	       invite->version == INVITE_VERSION;
}

// Every region of the process is looked at, from 0 on: its address is the system's choice. To swap
// OPEN for TAKEN makes sure that one DLL alone takes it. NULL: there is none.
struct invite *recording_find_invite(void)
{
	struct nt_region region;
	uint8_t *at = NULL;

	while (NtQueryVirtualMemory(NT_SELF, at, NT_BASIC_INFORMATION, &region, sizeof(region),
				    NULL) >= 0 &&
	       region.base + region.bytes > at) {
		struct invite *invite = (struct invite *)(void *)region.base;
		uint32_t open = INVITE_OPEN;

		at = region.base + region.bytes;
		if (recording_is_invite(invite, &region) &&
		    __atomic_compare_exchange_n(&invite->state, &open, INVITE_TAKEN, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return invite;
	}
	return NULL;
}
