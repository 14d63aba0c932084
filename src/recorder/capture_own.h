// capture_own: what the files of capture share among themselves.
#pragma once

#include "recorder/capture.h"

enum {
	CAPTURE_BLOCK = 4,     // entries that are compared at once
	CAPTURE_KEEP_COST = 4, // of a whole stack: what so many that are found bring
	CAPTURE_KEEP_MAX = CAPTURE_KEEP_COST * 1024,
};

// A word of the program's stack, whatever type the program has there.
typedef uintptr_t __attribute__((may_alias)) capture_memory;

// Only of memory that is known to be mapped (capture.h).
static inline uintptr_t capture_word(uintptr_t address)
{
	return *(const capture_memory *)address;
}

// Zero if the entry at `at` and the three outside of it still hold their return addresses.
static inline uintptr_t capture_block_differs(const struct capture_entry *at)
{
	return (capture_word(at[0].slot) ^ at[0].pc) | (capture_word(at[-1].slot) ^ at[-1].pc) |
	       (capture_word(at[-2].slot) ^ at[-2].pc) | (capture_word(at[-3].slot) ^ at[-3].pc);
}

// The number of saves that entries 1 to `top` have.
static inline uint32_t capture_count_saves(const struct capture *capture, uint32_t top)
{
	uint32_t count = capture->saves_count;

	while (count > 0 && capture->saves[count - 1].index > top)
		count--;
	return count;
}

// Zero if the first `count` saves still hold what was read. Where frames have frame pointers, there
// is one for nearly each.
static inline uintptr_t capture_saves_differ(const struct capture *capture, uint32_t count)
{
	const struct capture_save *saves = capture->saves;
	uintptr_t differs = 0;

#pragma GCC unroll 4
	for (uint32_t i = 0; i < count; i++)
		differs |= capture_word(saves[i].at) ^ saves[i].value;
	return differs;
}

// Forget what is known of the frames inside of the `join` entries that stay. The entries themselves
// are overwritten by who calls.
static inline void capture_drop(struct capture *capture, uint32_t join)
{
	while (unlikely(capture->saves_count) &&
	       capture->saves[capture->saves_count - 1].index > join)
		capture->saves_count--;
	if (unlikely(capture->blind != CAPTURE_SEEN) && capture->blind > join)
		capture->blind = CAPTURE_SEEN;
}

// capture_take by walking. False: the stack is what it was.
HIDDEN bool capture_find(struct capture *capture, const uintptr_t *frame);

// Memory was unmapped: everything known of it is forgotten. Ids stay.
HIDDEN void capture_forget(struct capture *capture, uint64_t epoch);

// Keep the inner frames of the stack that was just walked, all but its outermost at most. As a
// memo, in the place of the oldest.
HIDDEN void capture_remember(struct capture *capture);

// The entries describe the whole stack from here on, and no longer capture->over.
HIDDEN void capture_spread(struct capture *capture);

// Without a walk: the whole stack that holds for a walk that begins at `frame`. NULL: none is known
// to. All its words have been compared with memory.
HIDDEN struct capture_whole *capture_find_whole(struct capture *capture, const uintptr_t *frame);

// It is the stack from here on. Returns as capture_take does.
HIDDEN uint32_t capture_recall_whole(struct capture *capture, struct capture_whole *whole);

// Keep the stack that was just walked from `frame`, of which most was new, as a whole.
HIDDEN void capture_remember_whole(struct capture *capture, const uintptr_t *frame);

// The entries describe the stack from here on, and no longer capture->whole.
HIDDEN void capture_spread_whole(struct capture *capture);
