// Numbers of frames: one for each code address of a process, in the segment that the collector
// reads. A table by address finds them again. After a fork the child's numbers begin after its
// parent's, which stay valid in it.
#include "recorder/codemap.h"
#include "recorder/kernel.h"
#include "recorder/recording.h"
#include "recorder/text.h"

enum {
	CODEMAP_INDEX_ROOM = 16384, // slots, a power of two
	// Of these so many are used at first: a child that runs a while touches one page, not one
	// for each frame.
	CODEMAP_INDEX_FIRST = 1024,
	CODEMAP_FRAMES_FIRST = 16384,
};

// Kept over fork: ids below this count mean the parent's frames.
static uint32_t codemap_frames_used = 1;

// pc -> frame id, open addressing.
static uint32_t *codemap_index;
static uint32_t codemap_index_slots, codemap_index_room; // used, and mapped
static struct segment_frame *codemap_frames; // our own copy, by id: the segment is the child's own
static uint32_t codemap_frames_room;

uint32_t codemap_frames_count(void)
{
	return codemap_frames_used;
}

void codemap_start_frames(void)
{
	codemap_frames_room = CODEMAP_FRAMES_FIRST;
	codemap_frames = recording_pages(sizeof(*codemap_frames) * codemap_frames_room, false);
	codemap_index_slots = CODEMAP_INDEX_FIRST;
	codemap_index_room = CODEMAP_INDEX_ROOM;
	codemap_index = recording_pages(sizeof(*codemap_index) * codemap_index_room, false);
}

// The upper half of the product: all bits of the address have come into it.
static uint32_t codemap_hash(uintptr_t pc)
{
	uint64_t hash = (uint64_t)pc * 0x9e3779b97f4a7c15u;

	return (uint32_t)(hash >> 32);
}

// Twice as many slots, in place as long as there is room.
static bool codemap_grow_index(void)
{
	uint32_t slots = codemap_index_slots * 2;

	if (slots > codemap_index_room) {
		uint32_t *index = recording_pages(sizeof(*index) * slots, false);

		if (!index)
			return false;
		recording_give_back(codemap_index, sizeof(*index) * codemap_index_room);
		codemap_index = index;
		codemap_index_room = slots;
	} else {
		// What comes after these slots was never used, and is 0.
		memset(codemap_index, 0, sizeof(*codemap_index) * codemap_index_slots);
	}
	codemap_index_slots = slots;
	for (uint32_t id = 1; id < codemap_frames_used; id++) {
		uint32_t at = codemap_hash((uintptr_t)codemap_frames[id].pc) & (slots - 1);

		while (codemap_index[at])
			at = (at + 1) & (slots - 1);
		codemap_index[at] = id;
	}
	return true;
}

// Room for one more frame, in our copy and in the segment.
static bool codemap_make_room(void)
{
	uint32_t room = codemap_frames_room;

	if (codemap_frames_used == SEGMENT_FRAMES_MAX)
		return false;
	if (codemap_frames_used == room) {
		struct segment_frame *frames = recording_pages(2 * sizeof(*frames) * room, false);

		if (!frames)
			return false;
		memcpy(frames, codemap_frames, sizeof(*frames) * room);
		recording_give_back(codemap_frames, sizeof(*frames) * room);
		codemap_frames = frames;
		codemap_frames_room = 2 * room;
	}
	return codemap_frames_used < recording_state->frames_room || recording_grow_frames();
}

// 0: no number is left, or no memory. The index is half empty at least, so that a search ends. A
// frame is in the segment before `frames_count` says so: the collector reads up to there, without a
// lock.
//
// In a child that was forked while another thread was in here, the index may have a number that is
// not in use: its page was copied later than the count. That is no frame's, and its place is free.
uint32_t codemap_frame(uintptr_t pc, uint32_t module, uint32_t flags)
{
	struct segment_frame frame = { .pc = pc, .module = module, .flags = flags };
	uint32_t at;

	if (codemap_frames_used >= codemap_index_slots / 2 && !codemap_grow_index())
		return 0;
	at = codemap_hash(pc) & (codemap_index_slots - 1);
	for (; codemap_index[at] && codemap_index[at] < codemap_frames_used;
	     at = (at + 1) & (codemap_index_slots - 1)) {
		const struct segment_frame *known = &codemap_frames[codemap_index[at]];

		if (known->pc == pc && known->module == module && known->flags == flags)
			return codemap_index[at];
	}
	if (!codemap_make_room())
		return 0;
	codemap_index[at] = codemap_frames_used;
	codemap_frames[codemap_frames_used] = frame;
	recording_state->frames[codemap_frames_used] = frame;
	codemap_frames_used++;
	__atomic_store_n(&recording_state->segment->frames_count, codemap_frames_used,
			 __ATOMIC_RELEASE);
	return codemap_frames_used - 1;
}
