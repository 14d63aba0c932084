// Memos: stacks that come again after others, known without a walk (capture.h).
//
// A server's loop calls parse() and then send(), and both allocate. Stacks alternate: main, loop,
// parse, copy and main, loop, send, pack. The last stack's inner frames are never those of the
// next call, so each would be walked anew. After the first walk of each, a memo keeps its inner
// frames, parse and copy, with the slots and return addresses that were read. The next allocation
// in copy begins at a slot for which memos are kept: two words are compared for the memo's frames,
// two for main and loop, which are entries of the last walk, and the stack is proven. The lane gets
// two bytes: the edit "keep 2, push parse, copy" by its number.
//
// A memo that fails costs its comparison. So a lane where memos seldom hold stops looking
// (capture->credit), and tries again now and then.
//
// In figures: a memo has 8 frames at most (7 where no frame has a frame pointer), and a lane has 64
// memos, 256 or 1,024 where 64 were too few. The one that followed the last one the last time is
// compared first, then up to 6 of those that begin at one place.
#include "recorder/capture_own.h"

enum {
	// For each memo that there may be: what `credit` may be at most (so that what an unmapping
	// takes can be made anew), and walks until memos are tried again; with most of them longer.
	CAPTURE_CREDIT_EACH = 4,
	CAPTURE_IDLE_EACH = 64,
	CAPTURE_IDLE_EACH_MOST = 256,
	CAPTURE_MEMOS_MORE = 4, // times as many, where so many were too few
	CAPTURE_MORE_MISS = 4,  // credit that one costs which is not found, among more than a few
	CAPTURE_WHOLE_MISS = 4, // credit that a whole stack costs which is not found
	CAPTURE_MEMO_LOOKS = 6, // at most, for one walk
};

#define CAPTURE_HASH 0x9e3779b1u // 2^32 by the golden ratio, prime

_Static_assert(CAPTURE_MEMOS <= UINT16_MAX, "all have a number");

// Where the number of the latest memo is kept whose walk begins there, or at another place with
// that hash. The others follow it (capture->memo_before): many ways may lead to one place, and few
// to another, so that no place has a share of its own.
static inline uint16_t *capture_memo_latest(struct capture *capture, uintptr_t slot, uintptr_t pc)
{
	uint32_t at = (uint32_t)(slot ^ pc) * CAPTURE_HASH >> (32 - CAPTURE_MEMOS_LOG2);

	return &capture->memo_latest[at];
}

// What it takes from the credit when no memo holds.
static inline uint32_t capture_memo_miss(const struct capture *capture)
{
	return capture->memo_count > CAPTURE_MEMOS_FEW ? CAPTURE_MORE_MISS : 1;
}

// Whether to look at them.
//
// Without credit a lane walks, and only after 4,096 walks 64 memos are tried again: a program that
// changed its ways is noticed, and one that did not loses less than two in a hundred. A loop that
// comes by more places than there are memos finds none of them: so each time that they were of no
// use there may be four times as many, and they are tried after four times as many walks. More than
// 64 are of use where four in five are found (an interpreter's loop: 98 in 100; a compiler: 72, and
// what the others cost, in lines of the cache too, is more than these bring).
static inline bool capture_recalls(struct capture *capture)
{
	uint32_t count = capture->memo_count ? capture->memo_count : CAPTURE_MEMOS_FEW;
	uint32_t each = CAPTURE_MEMOS > CAPTURE_MEMOS_FEW && count == CAPTURE_MEMOS
				? CAPTURE_IDLE_EACH_MOST
				: CAPTURE_IDLE_EACH;

	if (capture->credit)
		return true;
	if (likely(++capture->idle < each * count))
		return false;
	capture->idle = 0;
	if (capture->memo_count && count < CAPTURE_MEMOS) {
		capture->turn = count; // the new ones first
		count *= CAPTURE_MEMOS_MORE;
	}
	capture->memo_count = count;
	capture->credit = count * capture_memo_miss(capture);
	return false;
}

// Keep what is to be said besides of the frames inside of entry `memo->outer`, of which `saves` are
// the saves. False: it is too much.
static bool capture_remember_more(struct capture *capture, const struct capture_memo *memo,
				  const struct capture_save *saves, uint32_t saves_count)
{
	struct capture_more *more = &capture->mores[memo - capture->memos];
	uint32_t outer = memo->outer, depth = capture->depth;

	if (saves_count > CAPTURE_MEMO_FRAMES)
		return false;
	more->rbp = capture->rbps[depth];
	more->outer_rbp = capture->rbps[outer];
	more->blind = capture->blind;
	more->turn = capture->rules_turn;
	more->saves_count = saves_count;
	for (uint32_t i = 0; i < CAPTURE_MEMO_FRAMES; i++) {
		uintptr_t place = i < saves_count ? saves[i].at - memo->slot : 0;

		if (place > UINT32_MAX)
			return false;
		more->places[i] = (uint32_t)place;
		more->values[i] = i < saves_count ? saves[i].value : memo->pc;
		more->indices[i] = i < saves_count ? (uint8_t)(saves[i].index - outer) : 0;
		more->rbps[i] = capture->rbps[i < memo->count ? outer + 1 + i : depth];
	}
	return true;
}

// The latest memo is this one, and the last of those that follow it here.
static inline void capture_memo_follows(struct capture *capture, uint32_t number)
{
	capture->memo_next[capture->memo_last] = (uint16_t)number;
	capture->memo_last = number;
}

// As many as an edit with a number pushes; and one more where frames have frame pointers, since
// node's stacks of generated code are alike from the eighth frame on.
void capture_remember(struct capture *capture)
{
	uint32_t depth = capture->depth;
	uint32_t most = capture->saves_count > 0 ? CAPTURE_MEMO_FRAMES : LANE_EDIT_FRAMES;
	uint32_t count = depth > most ? most : depth - 1;
	uint32_t outer = depth - count;
	uint32_t outer_saves; // those of frames that are not kept
	const struct capture_entry *inner = &capture->entries[depth];
	struct capture_memo *memo;
	uint32_t number;
	uint16_t *latest;

	if (depth < 2 || (capture->flags & LANE_PUSH_CUT) || capture->joinable != depth ||
	    capture->entries[outer].slot - inner->slot > UINT32_MAX)
		return;
	outer_saves = capture_count_saves(capture, outer);
	// The oldest makes room. It stays in its chain, where it is seen to be younger than who has
	// it for the one before; those that are older than it have gone already.
	number = capture->turn++ % capture->memo_count + 1;
	memo = &capture->memos[number - 1];
	latest = capture_memo_latest(capture, inner->slot, inner->pc);
	capture->memo_before[number] = *latest;
	*latest = (uint16_t)number;
	capture->memo_next[number] = 0;
	capture_memo_follows(capture, number);
	memo->slot = inner->slot;
	memo->pc = inner->pc;
	memo->outer_slot = capture->entries[outer].slot;
	memo->epoch = capture->epoch;
	memo->serial = capture->version; // it was raised for this stack
	memo->after = 0;
	memo->again = 0;
	memo->outer = (uint16_t)outer;
	memo->count = (uint8_t)count;
	// A frame that depends on rbp has made those inside of it depend on it too, up to one that
	// has read it from the stack: then there is a save.
	memo->by_more = capture->rbps[outer] != CAPTURE_RBP_ANY ||
			capture->rbps[depth] != CAPTURE_RBP_ANY ||
			outer_saves < capture->saves_count || capture->blind != CAPTURE_SEEN;
	if (unlikely(memo->by_more) &&
	    !capture_remember_more(capture, memo, &capture->saves[outer_saves],
				   capture->saves_count - outer_saves))
		memo->epoch = 0;
	for (uint32_t i = 0; i < CAPTURE_MEMO_FRAMES; i++) {
		uint32_t from = i < count ? outer + 1 + i : depth;

		memo->pcs[i] = capture->entries[from].pc;
		memo->places[i] = (uint32_t)(capture->entries[from].slot - inner->slot);
		memo->ids[i] = capture->ids[from - 1];
	}
}

// The same for what there is more to say.
static void capture_spread_more(struct capture *capture, const struct capture_memo *memo)
{
	const struct capture_more *more = &capture->mores[memo - capture->memos];
	struct capture_save *saves = &capture->saves[capture->saves_count];

	for (uint32_t i = 0; i < memo->count; i++)
		capture->rbps[memo->outer + 1 + i] = more->rbps[i];
	for (uint32_t i = 0; i < more->saves_count; i++)
		saves[i] = (struct capture_save){ memo->slot + more->places[i], more->values[i],
						  (uint32_t)memo->outer + more->indices[i] };
	capture->saves_count += more->saves_count;
	if (more->blind > memo->outer && more->blind < capture->blind)
		capture->blind = more->blind;
}

// Whole blocks are copied: what is after the stack's depth has no owner.
//
// The loop is of a fixed length, and unrolled: eight entries are written whatever `count` is. Those
// past the stack's depth repeat the innermost, and `depth` says that they are not there.
void capture_spread(struct capture *capture)
{
	const struct capture_memo *memo = capture->over;
	uint32_t outer = memo->outer;

	capture_drop(capture, outer);
#pragma GCC unroll 8
	for (uint32_t i = CAPTURE_MEMO_FRAMES; i > 0; i--) {
		uintptr_t slot = memo->slot + memo->places[i - 1];

		capture->entries[outer + i] = (struct capture_entry){ slot, memo->pcs[i - 1] };
		capture->rbps[outer + i] = CAPTURE_RBP_ANY;
		capture->ids[outer + i - 1] = memo->ids[i - 1];
		*capture_place(capture, slot) = (uint16_t)(outer + i);
	}
	if (unlikely(memo->by_more))
		capture_spread_more(capture, memo);
	capture->joinable = capture->base = capture->depth;
	capture->version++;
	capture->over = NULL;
}

// Whether all that was read on the way outwards from entry `outer` is what it was.
//
// The loads depend on nothing but the entries, so the processor makes several at once. What is left
// over of four is not looked at one by one: the innermost block is compared from the outermost end,
// which compares some twice and takes no branch that depends on the depth.
static inline bool capture_outer_holds(const struct capture *capture, uint32_t outer)
{
	const struct capture_entry *entries = capture->entries;
	uintptr_t differs = 0;
	uint32_t left = outer;

	for (; left >= CAPTURE_BLOCK; left -= CAPTURE_BLOCK)
		differs |= capture_block_differs(&entries[left]);
	if (likely(outer >= CAPTURE_BLOCK))
		differs |= capture_block_differs(&entries[CAPTURE_BLOCK]); // some of them again
	else
		for (; left > 0; left--)
			differs |= capture_word(entries[left].slot) ^ entries[left].pc;
	return !(differs | capture_saves_differ(capture, capture_count_saves(capture, outer)));
}

// Whether the rest of what was read on the way through the memo's frames is what it was, and what
// lies outside does not depend on another rbp than theirs. If an outer frame was not sure, nothing
// is known of that in these.
static inline bool capture_more_holds(const struct capture *capture,
				      const struct capture_memo *memo, uintptr_t rbp)
{
	const struct capture_more *more = &capture->mores[memo - capture->memos];
	uintptr_t outer_rbp = capture->rbps[memo->outer];
	uintptr_t differs = 0;

	if (!memo->by_more)
		return outer_rbp == CAPTURE_RBP_ANY;
	if ((more->rbp != CAPTURE_RBP_ANY && more->rbp != rbp) ||
	    (outer_rbp != CAPTURE_RBP_ANY && outer_rbp != more->outer_rbp) ||
	    (capture->blind <= memo->outer) != (more->blind <= memo->outer) ||
	    more->turn != __atomic_load_n(&unwind_turn, __ATOMIC_ACQUIRE))
		return false;
#pragma GCC unroll 8
	for (uint32_t i = 0; i < CAPTURE_MEMO_FRAMES; i++)
		differs |= capture_word(memo->slot + more->places[i]) ^ more->values[i];
	return !differs;
}

// Whether a walk that begins at `slot` with that return address has the memo's return addresses on
// its way.
//
// Cheap tests first: the innermost slot and return address, and whether memory was unmapped since.
// All eight words are compared, also for fewer frames, since those that are too many repeat the
// innermost.
static inline bool capture_memo_begins(const struct capture *capture,
				       const struct capture_memo *memo, uintptr_t slot,
				       uintptr_t pc)
{
	uintptr_t differs = 0;

	if ((memo->slot ^ slot) | (memo->pc ^ pc) || memo->epoch != capture->epoch)
		return false;
#pragma GCC unroll 8
	for (uint32_t i = 0; i < CAPTURE_MEMO_FRAMES; i++)
		differs |= capture_word(slot + memo->places[i]) ^ memo->pcs[i];
	return !differs;
}

// Whether it is proven then to go through the memo's frames, and on as the entries say.
static inline __attribute__((always_inline)) bool
capture_memo_joins(const struct capture *capture, const struct capture_memo *memo, uintptr_t rbp)
{
	uint32_t outer = memo->outer;

	if (outer > capture->base || capture->entries[outer].slot != memo->outer_slot)
		return false;
	if (unlikely(memo->by_more || capture->rbps[outer] != CAPTURE_RBP_ANY) &&
	    !capture_more_holds(capture, memo, rbp))
		return false;
	return capture_outer_holds(capture, outer);
}

// The same where they did not say so. What lies outside may have changed since the last walk, and
// be known to the memo that is over the entries, which become those of the current stack then.
static __attribute__((noinline)) bool
capture_memo_joins_over(struct capture *capture, const struct capture_memo *memo, uintptr_t rbp)
{
	if (!capture->over || capture->over->outer >= memo->outer)
		return false;
	capture_spread(capture);
	return capture_memo_joins(capture, memo, rbp);
}

// Whether the memo holds for a walk that begins at `frame`.
static inline __attribute__((always_inline)) bool
capture_memo_holds(struct capture *capture, const struct capture_memo *memo, const uintptr_t *frame)
{
	return capture_memo_begins(capture, memo, (uintptr_t)(frame + 1), frame[1]) &&
	       (likely(capture_memo_joins(capture, memo, frame[0])) ||
		capture_memo_joins_over(capture, memo, frame[0]));
}

// The one that holds of those that begin at `frame`, from the latest on. NULL: there is none.
static __attribute__((noinline)) struct capture_memo *capture_search_memo(struct capture *capture,
									  const uintptr_t *frame)
{
	uint32_t number = *capture_memo_latest(capture, (uintptr_t)(frame + 1), frame[1]);
	uint64_t younger = UINT64_MAX;

	for (uint32_t i = 0; number && i < CAPTURE_MEMO_LOOKS; i++) {
		struct capture_memo *memo = &capture->memos[number - 1];

		if (memo->serial >= younger)
			return NULL; // it made room, and is in another chain
		if (capture_memo_holds(capture, memo, frame)) {
			capture_memo_follows(capture, number);
			return memo;
		}
		younger = memo->serial;
		number = capture->memo_before[number];
	}
	return NULL;
}

// The one that holds for a walk that begins at `frame`. NULL: there is none.
//
// What followed the last one the last time is asked first, since programs go in loops.
static inline struct capture_memo *capture_find_memo(struct capture *capture,
						     const uintptr_t *frame)
{
	uint32_t number = capture->memo_next[capture->memo_last];
	struct capture_memo *memo = &capture->memos[number ? number - 1 : 0];

	if (unlikely(!number || !capture_memo_holds(capture, memo, frame)))
		return capture_search_memo(capture, frame);
	capture->memo_last = number;
	return memo;
}

static inline uint32_t capture_count_equal(const uint32_t *a, const uint32_t *b, uint32_t count)
{
	uint32_t i = 0;

	while (i < count && a[i] == b[i])
		i++;
	return i;
}

// How many frames, from the outermost, the current stack and the memo's have in common.
static uint32_t capture_count_same(const struct capture *capture, const struct capture_memo *memo)
{
	const struct capture_memo *over = capture->over;
	uint32_t from = memo->outer; // where the first of them leaves the entries
	uint32_t to = memo->outer;   // and the second
	uint32_t end = memo->outer + memo->count;
	const uint32_t *first = memo->ids, *second = memo->ids;
	uint32_t same;

	end = end < capture->depth ? end : capture->depth;
	if (!over)
		return from + capture_count_equal(&capture->ids[from], first, end - from);
	if (over->outer < memo->outer) {
		from = over->outer;
		first = over->ids;
	} else {
		to = over->outer;
		second = over->ids;
	}
	to = to < end ? to : end;
	same = capture_count_equal(&capture->ids[from], first, to - from);
	if (same < to - from)
		return from + same;
	return to + capture_count_equal(first + same, second, end - to);
}

// The same, if need be by counting.
//
// The two stacks' common frames follow from the two memos alone, if both leave the entries at the
// same place, or if the entries are still what they were. So the last answer is kept with the memo,
// for the memo that was `over` then.
static inline uint32_t capture_find_same(const struct capture *capture, struct capture_memo *memo)
{
	const struct capture_memo *over = capture->over;

	if (likely(over && memo->after == over->serial &&
		   (memo->outer == over->outer || memo->after_version == capture->version)))
		return memo->after_keep;
	memo->after = over ? over->serial : 0;
	memo->after_version = capture->version;
	memo->after_keep = (uint16_t)capture_count_same(capture, memo);
	return memo->after_keep;
}

// Whether the way through its frames is not sure.
static inline bool capture_is_blind(const struct capture *capture, const struct capture_memo *memo)
{
	return unlikely(memo->by_more) &&
	       capture->mores[memo - capture->memos].blind != CAPTURE_SEEN;
}

// Without a walk: the stack is what the memo says, which holds. Returns as capture_take does, and
// `keep` is found.
static inline uint32_t capture_recall(struct capture *capture, struct capture_memo *memo)
{
	const struct capture_memo *over = capture->over;
	uint32_t old_depth = capture->depth, outer = memo->outer;
	uint16_t old_flags = capture->flags;
	uint32_t keep;

	capture->credit += capture->credit < CAPTURE_CREDIT_EACH * capture->memo_count;
	if (unlikely(memo == over)) { // it comes again and again: capture_is_same is faster
		capture->keep = old_depth;
		capture_spread(capture);
		return CAPTURE_SAME;
	}
	// For the edit that has a number it is enough that both stacks have these entries.
	if (likely(over && memo->again) && over->outer >= outer &&
	    capture_numbered_keep(memo) == outer)
		keep = outer;
	else
		keep = capture_find_same(capture, memo);
	capture->keep = keep;
	capture->depth = outer + memo->count;
	capture->joinable = 0;
	capture->over = memo;
	capture->flags = unlikely(outer >= capture->blind) || capture_is_blind(capture, memo)
				 ? LANE_PUSH_INCOMPLETE
				 : 0;
	if (likely(memo->again && keep >= capture_numbered_keep(memo) && !capture->flags))
		return memo->again;
	return keep != old_depth || capture->depth != old_depth || capture->flags != old_flags;
}

// Where whole stacks are looked at: the one that holds. NULL: none does, and the current one is the
// entries'.
static inline struct capture_whole *capture_recalls_whole(struct capture *capture,
							  const uintptr_t *frame)
{
	struct capture_whole *whole = capture_find_whole(capture, frame);

	if (likely(whole))
		return whole;
	capture->whole_credit -= CAPTURE_WHOLE_MISS;
	if (capture->whole)
		capture_spread_whole(capture);
	return NULL;
}

// The order of attempts is by cost. A whole stack that is the current one is asked first, since
// then whole stacks were found lately; then memos; then whole stacks; and then a walk.
uint32_t capture_take(struct capture *capture, const uintptr_t *frame)
{
	uint64_t epoch = atomic_load_explicit(&capture_epoch, memory_order_relaxed);
	struct capture_whole *whole;
	uint32_t miss;
	bool wholes;

	if (unlikely(capture->epoch != epoch))
		capture_forget(capture, epoch);
	wholes = capture->whole_credit >= CAPTURE_WHOLE_MISS;
	if (capture->whole && wholes) {
		whole = capture_recalls_whole(capture, frame);
		if (likely(whole))
			return capture_recall_whole(capture, whole);
		wholes = false;
	}
	if (unlikely(capture->whole))
		capture_spread_whole(capture);
	if (capture_recalls(capture)) {
		struct capture_memo *memo = capture_find_memo(capture, frame);

		if (likely(memo))
			return capture_recall(capture, memo);
		miss = capture_memo_miss(capture);
		capture->credit -= miss < capture->credit ? miss : capture->credit;
	}
	if (wholes) {
		whole = capture_recalls_whole(capture, frame);
		if (likely(whole))
			return capture_recall_whole(capture, whole);
	}
	return capture_find(capture, frame);
}
