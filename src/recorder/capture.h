// capture: a whole stack, as the edit that turns the last one into this one.
//
// Unwinding is a pure function of where it starts (return address slot, its content, rbp) and of
// the stack words it reads. So each lane keeps its last stack with the words that were read. A new
// walk starts at the hook and goes outwards by rules (unwind.h); where it meets a frame of the
// last stack at the same slot, with the same return address (and the same rbp, if what is
// outside depends on it), all words read outside of it are compared with memory. All equal: the
// rest of the stack is proven to be the same, and nothing more is walked. The comparison is of
// independent loads, a quarter of a nanosecond a frame. Nothing is written to the program's stack.
//
// Programs go the same few ways over and over. So the inner frames of some earlier stacks are kept
// too (struct capture_memo), by where the walk began. If all their words are what they were, and
// the slot where they end is that of an entry of the last walk's stack, of which all words are what
// they were, then that is the stack: again independent loads, where the walk needs each frame to
// find the next one. As long as one such stack follows the other, nothing is copied: the entries
// stay what the last walk has made of them, and the stack is the outermost of them and what the
// memo says (capture.over); where the next memo's frames end at one of these, they become entries.
// How many frames two such stacks have in common is remembered, too. In
// the lane such a stack is mostly two bytes: the edit that pushes the memo's frames has its number.
//
// Where all of a stack is another one than the last, there is nothing to join: stacks that part
// near the root, or those of coroutines. So stacks of which much had to be walked are kept as a
// whole (capture_whole.c): all words that were read, compared as a memo's are. In the lane such a
// stack has a number, too.
//
// After frames that no slot describes (signal frames) the last stack cannot be joined and the next
// walk goes to the root; its frames are still compared, so that the edit stays small.
//
// Addresses are read only where memory is known to be mapped: in the range [known_low, known_high)
// that was probed (capture_probe), or in the last stack, which is forgotten whenever memory is
// unmapped (capture_epoch).
#pragma once

#include "recorder/unwind.h"
#include "wire/lane_event.h"

#include <stdatomic.h>
#include <stddef.h>

// A return address that was read, and where: one for each frame of the last walk's stack.
struct capture_entry {
	uintptr_t slot; // where the return address is
	uintptr_t pc;   // the return address
};

// Another word that was read on the way: a saved rbp, or where a frame address was.
struct capture_save {
	uintptr_t at;
	uintptr_t value; // what was there
	uint32_t index;  // of the entry whose step outwards read it
};

// A rule of the lane's own table, at the place that its key has there.
struct capture_rule {
	uint64_t key;     // 0: none
	unwind_rule rule; // of that key
};

// A frame of the walk in progress, innermost first.
struct capture_fresh {
	uintptr_t slot;     // where the return address is that led here
	uintptr_t pc;       // that address
	uintptr_t rbp;      // in the frame
	unwind_rule rule;   // the step outwards
	uintptr_t saved_at; // where the caller's rbp was read, if the rule says so
	uintptr_t cfa_at;   // DEREF kinds: where the frame address was read
	uintptr_t cfa;      // and what it is
};

enum {
	CAPTURE_PLACES = 4096,                      // words of stack: 32 KiB
	CAPTURE_SAVES_MAX = 2 * LANE_DEPTH_MAX,     // two for each frame, at most
	CAPTURE_RBP_ANY = 1,                        // no frame pointer: it would be aligned
	CAPTURE_MEMO_FRAMES = LANE_EDIT_FRAMES + 1, // of a memo, at most
	// Memos, and how many a thread begins with: 28 KiB of 448, that only threads touch which
	// find something there.
	CAPTURE_MEMOS_LOG2 = sizeof(uintptr_t) == 8 ? 10 : 6,
	CAPTURE_MEMOS = 1 << CAPTURE_MEMOS_LOG2,
	CAPTURE_MEMOS_FEW = 64,   // that a thread begins with
	CAPTURE_RULES = 1024,     // 16 KiB, that only threads touch which walk a lot
	CAPTURE_FAR_RULES = 4096, // 64 KiB, the same
	CAPTURE_WALKS_MIN = 4096, // is a lot
	// Whole stacks, and the words of all: 320 KB and 1 MB, that only threads touch which need
	// them. Fewer where addresses are scarce.
	CAPTURE_WHOLES = sizeof(uintptr_t) == 8 ? LANE_WHOLES : LANE_WHOLES / 4,
	CAPTURE_KEPT = 16 * CAPTURE_WHOLES,
	CAPTURE_WHOLE_PLACES = 2 * CAPTURE_WHOLES, // by which they are found
};

// Of struct capture's `blind`: no entry, all of the way is sure.
#define CAPTURE_SEEN UINT32_MAX

// What capture_take returns below LANE_KEEP_AGAIN.
enum capture_taken { CAPTURE_SAME = 0, CAPTURE_CHANGED = 1 };

// The inner frames of an earlier stack.
struct capture_memo {
	uintptr_t slot; // of the innermost
	uintptr_t pc;
	uintptr_t outer_slot;   // of the frame that called the outermost of them
	uint64_t epoch;         // capture_epoch when it was made; 0: none was
	uint64_t serial;        // no other memo ever had it
	uint64_t after;         // serial of the memo that was `over` the last time before this
	uint64_t after_version; // capture.version then
	uint16_t after_keep;    // and how many frames both stacks had in common
	uint16_t outer;         // which entry of the stack called the outermost
	uint8_t count;          // frames; those after repeat the innermost
	bool by_more;           // there is more to say of them, see struct capture_more
	uint16_t again;         // the edit that pushes them, by its number; 0: it has none yet
	// Outermost first.
	uintptr_t pcs[CAPTURE_MEMO_FRAMES];
	uint32_t places[CAPTURE_MEMO_FRAMES]; // of the return addresses: bytes outside of `slot`
	uint32_t ids[CAPTURE_MEMO_FRAMES];
} __attribute__((aligned(64)));

// Of the memo with the same number, if words besides return addresses were read on the way through
// its frames, if rbp played a part, or if the way is not sure.
struct capture_more {
	uintptr_t rbp;       // where the walk begins, or CAPTURE_RBP_ANY
	uintptr_t outer_rbp; // in the frame that called the outermost, or CAPTURE_RBP_ANY
	uint32_t blind;      // as in struct capture: of these frames, or an outer one
	uint32_t turn;       // unwind_turn when it was made
	uint32_t saves_count;
	uint8_t indices[CAPTURE_MEMO_FRAMES]; // of the saves: frame, 1 for the outermost
	// Those after repeat the innermost return address.
	uint32_t places[CAPTURE_MEMO_FRAMES]; // bytes outside of memo->slot
	uintptr_t values[CAPTURE_MEMO_FRAMES];
	uintptr_t rbps[CAPTURE_MEMO_FRAMES]; // as in struct capture, outermost first
} __attribute__((aligned(64)));

_Static_assert(LANE_DEPTH_MAX < 1 << 16, "a depth fits");

// A word that was read for a whole stack.
struct capture_kept {
	uintptr_t value;
	uint32_t place; // bytes outside of the innermost slot
	uint32_t id;    // of the frame; of a save: the entry whose step outwards read it
};

// A stack that was walked, with all words that were read on the way.
struct capture_whole {
	uint64_t key;    // by which it is found; 0: there is none
	uintptr_t slot;  // of the innermost frame
	uintptr_t rbp;   // where the walk begins, or CAPTURE_RBP_ANY
	uint64_t epoch;  // capture_epoch when its words were last known to be mapped
	uint32_t turn;   // unwind_turn when it was made
	uint32_t blind;  // as in struct capture
	uint32_t first;  // of its words: frames, outermost first, saves, and if need be each rbp
	uint32_t words;  // to be compared: frames and saves, and the innermost again up to a block
	uint32_t high;   // the outermost of them: bytes outside of `slot`
	uint32_t fork;   // where another stack with this key had another word; 0: none had
	uintptr_t forks; // what this one has there
	uint16_t depth;
	uint16_t saves_count;
	uint16_t flags; // enum lane_push_flag
	uint16_t again; // its number in the lane; 0: it has none yet
	bool by_rbps;   // there are rbps
};

// A lane's last stack, and what is kept of earlier ones: 2.9 MiB of addresses (0.9 in 32 bits), of
// which a thread touches what it needs. All zero at first. The lane's thread alone uses it, and
// nothing here is given back.
struct capture {
	uint32_t depth; // frames of the current stack
	uint32_t saves_count;
	uint32_t joinable; // `depth`: the entries describe memory; 0: there are only ids, or `over`
	uint32_t base;     // entries that describe memory, if not of this stack
	uint32_t blind;    // outermost entry from where the way is not sure, or CAPTURE_SEEN
	uint16_t flags;    // enum lane_push_flag of the current stack
	uint64_t epoch;    // capture_epoch when the entries were made
	uint64_t version;  // raised whenever entries or ids become others
	// The stack's frames inside of over->outer are this memo's, those outside the entries'.
	// NULL: all are the entries', or there are only ids.
	struct capture_memo *over;
	struct capture_whole *whole; // if not NULL, the stack is this one; `over` is NULL
	uintptr_t known_low, known_high;

	// The edit that capture_take found: the first `keep` frames stay, ids[keep..depth) are new.
	uint32_t keep;

	// Memos are looked at as long as there is credit: a stack that is found there gives, one
	// that is not takes.
	uint32_t credit;
	uint32_t idle;       // walks since there was some
	uint32_t turn;       // memos that were made; the next one takes the place of the oldest
	uint32_t memo_count; // how many there may be: a power of two; 0 until any are looked at
	uint32_t memo_last;  // number of the one that was made or found last; 0: none

	// The same for whole stacks; and what was spent for keeping them, more than those that are
	// found have brought: up to CAPTURE_KEEP_MAX.
	uint32_t whole_credit, whole_spent;

	uint32_t walks;      // up to CAPTURE_WALKS_MIN
	uint32_t rules_turn; // unwind_turn when `rules` were put there

	// Outermost first. Entry 0 is beyond the root: its slot is greater than any.
	struct capture_entry entries[1 + LANE_DEPTH_MAX] __attribute__((aligned(16)));
	uintptr_t rbps[1 + LANE_DEPTH_MAX]; // CAPTURE_RBP_ANY: nothing outside depends on it
	uint32_t ids[LANE_DEPTH_MAX + CAPTURE_MEMO_FRAMES]; // what is after is nobody's
	struct capture_save saves[CAPTURE_SAVES_MAX];

	// Which entry has its slot at an address, by the lower part of that: the one that was put
	// there last, which may be another one or none any more. To search for it among the entries
	// takes fewer instructions, but branches that nobody can foresee.
	uint16_t places[CAPTURE_PLACES];

	struct capture_fresh fresh[LANE_DEPTH_MAX];

	// Memos by where their walks begin: the latest of those that have it in common, and the one
	// that was made before each. And by what came before: the one that followed each the last
	// time. Numbers from 1 on, 0: none.
	uint16_t memo_latest[CAPTURE_MEMOS];
	uint16_t memo_before[CAPTURE_MEMOS + 1], memo_next[CAPTURE_MEMOS + 1];
	struct capture_memo memos[CAPTURE_MEMOS];
	struct capture_more mores[CAPTURE_MEMOS];

	// Rules that were used here: the table of all (unwind.h) has a cache line for each, and a
	// walk waits for that line before it knows where the next frame is.
	struct capture_rule rules[CAPTURE_RULES];
	// More of them, that are closer together than in the table of all.
	struct capture_rule far_rules[CAPTURE_FAR_RULES];

	uint32_t whole_again; // how often in turn the current one came again
	// Those that there are, oldest first, and where the next one's words go: counted on.
	uint32_t whole_first, whole_end, kept_end;
	uint16_t whole_places[CAPTURE_WHOLE_PLACES]; // by key
	struct capture_whole wholes[CAPTURE_WHOLES];
	struct capture_kept kept[CAPTURE_KEPT];
};

// The words of a whole stack: its frames, outermost first, then its saves. Until the next one is
// kept.
static inline const struct capture_kept *capture_kept_of(const struct capture *capture,
							 const struct capture_whole *whole)
{
	return &capture->kept[whole->first % CAPTURE_KEPT];
}

// Where the number of the entry with this slot is kept. Slots 32 KiB apart share a place: the entry
// has to be looked at.
static inline uint16_t *capture_place(struct capture *capture, uintptr_t slot)
{
	return &capture->places[slot / sizeof(uintptr_t) % CAPTURE_PLACES];
}

// Raised whenever the program unmaps memory. What was read before that is not read again without
// being probed.
HIDDEN extern _Atomic uint64_t capture_epoch;

// The lowest page that was ever read by a walk. The heap that a program's break ends is below all
// stacks but those that are in it: where it shrinks, which may be often, nothing that is remembered
// has to be forgotten but where a walk came so low.
HIDDEN extern _Atomic uintptr_t capture_lowest;

// Whether what the frames below `top` have read is still there, and the other words that were read.
static inline __attribute__((always_inline)) bool capture_holds(const struct capture *capture,
								const struct capture_entry *top)
{
	const struct capture_entry *at = capture->entries + 1;

	// Each word is compared by itself: a branch that is hardly ever taken costs less than to
	// gather what differs.
	for (const struct capture_entry *end = top - 3; at < end; at += 4) {
		if (unlikely(*(const uintptr_t *)at[0].slot != at[0].pc) ||
		    unlikely(*(const uintptr_t *)at[1].slot != at[1].pc) ||
		    unlikely(*(const uintptr_t *)at[2].slot != at[2].pc) ||
		    unlikely(*(const uintptr_t *)at[3].slot != at[3].pc))
			return false;
	}
	if (((top - at) & 2) && (unlikely(*(const uintptr_t *)at[0].slot != at[0].pc) ||
				 unlikely(*(const uintptr_t *)at[1].slot != at[1].pc)))
		return false;
	if (((top - at) & 1) && unlikely(*(const uintptr_t *)top[-1].slot != top[-1].pc))
		return false;
	for (uint32_t i = 0; unlikely(i < capture->saves_count); i++) {
		if (unlikely(*(const uintptr_t *)capture->saves[i].at != capture->saves[i].value))
			return false;
	}
	return true;
}

// Whether the stack of the caller of the function whose frame address is `frame` is proven to be
// the current one: then capture_take would find no difference. False: there may be one.
static inline __attribute__((always_inline)) bool capture_is_same(const struct capture *capture,
								  const uintptr_t *frame)
{
	const struct capture_entry *top = capture->entries + capture->joinable;
	uintptr_t rbp = capture->rbps[capture->joinable];

	return likely(top->slot == (uintptr_t)(frame + 1)) && likely(top->pc == frame[1]) &&
	       likely(capture->epoch ==
		      atomic_load_explicit(&capture_epoch, memory_order_relaxed)) &&
	       (likely(rbp == CAPTURE_RBP_ANY) || likely(rbp == frame[0])) &&
	       likely(capture_holds(capture, top));
}

// The same for a stack whose innermost frame is at another place of the same function, as with
// malloc and free in turn. If it is proven, that place is the current one now, and returned is the
// edit: all frames but the innermost stay, and one is pushed, as eight bytes of lane_event.h.
// 0: nothing was done.
static inline uint64_t capture_switch(struct capture *capture, const uintptr_t *frame)
{
	uint32_t depth = capture->joinable;
	struct capture_entry *top = capture->entries + depth;
	unwind_rule rule;

	if (top->slot != (uintptr_t)(frame + 1) || top->pc == frame[1] || depth < 2 ||
	    capture->epoch != atomic_load_explicit(&capture_epoch, memory_order_relaxed))
		return 0;
	rule = unwind_peek(frame[1]);
	// Nothing outside may depend on rbp, which the two places may treat in different ways.
	if (unwind_kind(rule) != UNWIND_RSP || capture->flags ||
	    top[-1].slot != top->slot + (uintptr_t)unwind_cfa_offset(rule) ||
	    capture->rbps[depth] != CAPTURE_RBP_ANY ||
	    capture->rbps[depth - 1] != CAPTURE_RBP_ANY ||
	    (capture->saves_count && capture->saves[capture->saves_count - 1].index == depth) ||
	    !capture_holds(capture, top))
		return 0;
	top->pc = frame[1];
	capture->version++;
	capture->keep = depth - 1;
	capture->ids[depth - 1] = unwind_frame(rule);
	return (uint64_t)unwind_frame(rule) << 32 | 1 << 16 | (depth - 1);
}

// Whether all pages of [from, to) can be read. A system call for each; in a sealed process none:
// only what is on the calling thread's own stack can be known.
HIDDEN bool capture_readable(uintptr_t from, uintptr_t to);

// The next walk goes to the root. Its ids stay, since the next edit is made against them.
HIDDEN void capture_reset(struct capture *capture);

// Look at memos and rules from the start and each time: what is verified is to be in use.
static inline void capture_recall_always(struct capture *capture)
{
	capture->credit = UINT32_MAX / 2;
	capture->memo_count = CAPTURE_MEMOS;
	capture->walks = CAPTURE_WALKS_MIN;
	capture->whole_credit = UINT32_MAX / 2;
}

// Walk the stack of the caller of the function whose frame address is `frame` (compiled with a
// frame pointer). CAPTURE_SAME: it is the current one. Else keep, depth, ids and flags say how it
// differs. From LANE_KEEP_AGAIN on, what is returned says so, too: it is the edit. Allocates
// nothing, takes no lock but for an address never seen before.
HIDDEN uint32_t capture_take(struct capture *capture, const uintptr_t *frame);

// The id of frame `at`, 0 for the outermost, of `depth` frames.
static inline uint32_t capture_id(const struct capture *capture, uint32_t at)
{
	const struct capture_memo *over = capture->over;

	if (capture->whole)
		return capture_kept_of(capture, capture->whole)[at].id;
	return over && at >= over->outer ? over->ids[at - over->outer] : capture->ids[at];
}

// Its return address.
static inline uintptr_t capture_pc(const struct capture *capture, uint32_t at)
{
	const struct capture_memo *over = capture->over;

	if (capture->whole)
		return capture_kept_of(capture, capture->whole)[at].value;
	return over && at >= over->outer ? over->pcs[at - over->outer]
					 : capture->entries[at + 1].pc;
}

// The address of the word that has it; 0: it is not known.
static inline uintptr_t capture_slot(const struct capture *capture, uint32_t at)
{
	const struct capture_memo *over = capture->over;
	const struct capture_whole *whole = capture->whole;

	if (whole)
		return whole->slot + capture_kept_of(capture, whole)[at].place;
	return over && at >= over->outer ? over->slot + over->places[at - over->outer]
					 : capture->entries[at + 1].slot;
}

// The ids that are new, `keep` to `depth`; CAPTURE_MEMO_FRAMES can be read in any case. NULL: they
// are not together. They are the capture's, until it takes another stack.
static inline const uint32_t *capture_pushed(const struct capture *capture)
{
	const struct capture_memo *over = capture->over;

	if (!over)
		return &capture->ids[capture->keep];
	return capture->keep >= over->outer ? &over->ids[capture->keep - over->outer] : NULL;
}

// How many frames the edit keeps that goes by the memo's number. It pushes the others.
static inline uint32_t capture_numbered_keep(const struct capture_memo *memo)
{
	return (uint32_t)memo->outer + (memo->count > LANE_EDIT_FRAMES);
}

// Whether the stack that was just taken is a memo's, and the edit that goes by its number leads
// there from the last one. Flags come from outer frames; where there is more to say of a memo, they
// are the same each time.
static inline bool capture_is_numbered(const struct capture *capture)
{
	const struct capture_memo *over = capture->over;

	return over && (!capture->flags || over->by_more) &&
	       capture->keep >= capture_numbered_keep(over);
}

// Walk to the root without using what is known, in `scratch`, and compare the frames with those of
// `capture`, which was taken just before from the same frame. False: they differ.
HIDDEN bool capture_verify(const struct capture *capture, struct capture *scratch,
			   const uintptr_t *frame);
