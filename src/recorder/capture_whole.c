// Whole stacks: those of which all is another one than the last, known without a walk (capture.h).
//
// A dispatcher near main calls 64 handlers, and all of them end in the same library, 40 frames
// deep; or a thousand coroutines take turns. Each stack has nothing in common with the last one but
// a few of the outermost frames, or nothing at all, so memos (capture_memo.c) cannot join it. After
// the first walk its words are kept: all return addresses, and what else was read. When a walk is
// to begin at that slot and with that return address again, all of them are compared with memory,
// each load by itself. What a walk would do follows from these words and the rules alone: if they
// are what they were, and no rule has become another one, then it would find the same stack.
//
// Many stacks begin at one slot and with one return address. So the kept ones are the nodes of a
// tree. A node that did not hold remembers a place, its fork, where the other stack has another
// return address; what is there now leads to the next node (by a hash of all that was asked on the
// way: capture->whole_places). Where 64 stacks part in two frames, two forks lead to any of them.
//
//     slot, pc ─► A, fork at main's call ─┬─ A's own word: A holds, or not
//                                         ├─ another: B ─ …
//                                         └─ a third: C, fork …
//
// Nothing is believed for its hash: slot and all words are compared. Words are read only where
// memory is known to be mapped: since they were last read nothing was unmapped (the epoch), or all
// of them lie where the last walks went (known_low to known_high).
//
// The oldest ones make room for new ones. Who keeps and keeps and finds nothing keeps fewer, and
// who looks in vain stops looking (credit).
#include "recorder/capture_own.h"

enum {
	CAPTURE_WHOLE_CREDIT_MAX = 256,
	CAPTURE_WHOLE_CREDIT_KEPT = 8, // for each that is kept; one that is found gives 1
	CAPTURE_WHOLE_WAYS = 2,
	CAPTURE_FORKS = 6,       // nodes on a way
	CAPTURE_AGAIN_MAX = 3,   // as often in turn, then it is compared as the last stack is
	CAPTURE_WHOLE_BLOCK = 4, // words that are compared at once
};

#define CAPTURE_KEY_SLOT UINT64_C(0x9e3779b97f4a7c15)
#define CAPTURE_KEY_PC UINT64_C(0xd6e8feb86659fd93)

_Static_assert((int)CAPTURE_WHOLES <= (int)LANE_WHOLES && CAPTURE_WHOLES <= 1 << 16,
	       "each has a number");
_Static_assert((CAPTURE_KEPT & (CAPTURE_KEPT - 1)) == 0, "counted on, it goes round");

// What is asked first.
static inline uint64_t capture_key(uintptr_t slot, uintptr_t pc)
{
	return (slot * CAPTURE_KEY_SLOT ^ pc) * CAPTURE_KEY_PC | 1;
}

// And then, where `word` was found at a fork.
static inline uint64_t capture_key_after(uint64_t key, uintptr_t word)
{
	return ((key ^ key >> 29) * CAPTURE_KEY_SLOT ^ word) * CAPTURE_KEY_PC | 1;
}

// Where the number of the whole stack with this key is kept: in one of CAPTURE_WHOLE_WAYS.
static inline uint16_t *capture_whole_place(struct capture *capture, uint64_t key)
{
	return &capture->whole_places[(key >> 40) * CAPTURE_WHOLE_WAYS % CAPTURE_WHOLE_PLACES];
}

// The one with that key, for walks that begin at `slot`, if it can be compared. NULL: there is
// none.
static inline struct capture_whole *capture_node(struct capture *capture, uint64_t key,
						 uintptr_t slot)
{
	const uint16_t *place = capture_whole_place(capture, key);
	struct capture_whole *whole = &capture->wholes[place[0]];

	if (unlikely(whole->key != key))
		whole = &capture->wholes[place[1]];
	if (whole->key != key || whole->slot != slot ||
	    whole->turn != __atomic_load_n(&unwind_turn, __ATOMIC_ACQUIRE))
		return NULL;
	// Something was unmapped since. If the words are inside of the range that walks have probed
	// after that, they can be read all the same.
	if (unlikely(whole->epoch != capture->epoch)) {
		if (slot < capture->known_low || slot + whole->high >= capture->known_high)
			return NULL;
		whole->epoch = capture->epoch;
	}
	return whole;
}

// Whether all that was read on its way is what it was.
static inline bool capture_whole_holds(const struct capture *capture,
				       const struct capture_whole *whole, uintptr_t rbp)
{
	const struct capture_kept *at = capture_kept_of(capture, whole);
	const struct capture_kept *end = at + whole->words;
	uintptr_t slot = whole->slot, differs = 0;

	if (whole->rbp != CAPTURE_RBP_ANY && whole->rbp != rbp)
		return false;
	for (; at < end; at += CAPTURE_WHOLE_BLOCK)
		differs |= (capture_word(slot + at[0].place) ^ at[0].value) |
			   (capture_word(slot + at[1].place) ^ at[1].value) |
			   (capture_word(slot + at[2].place) ^ at[2].value) |
			   (capture_word(slot + at[3].place) ^ at[3].value);
	return !differs;
}

// Up to CAPTURE_FORKS nodes are asked, and only the last one's words are all compared: the others
// are passed by one load each.
struct capture_whole *capture_find_whole(struct capture *capture, const uintptr_t *frame)
{
	uintptr_t slot = (uintptr_t)(frame + 1), word;
	uint64_t key = capture_key(slot, frame[1]);

	for (uint32_t i = 0; i < CAPTURE_FORKS; i++) {
		struct capture_whole *whole = capture_node(capture, key, slot);

		if (!whole)
			return NULL;
		word = whole->fork ? capture_word(slot + whole->fork) : whole->forks;
		if (word == whole->forks && likely(capture_whole_holds(capture, whole, frame[0])))
			return whole;
		if (!whole->fork)
			return NULL;
		key = capture_key_after(key, word);
	}
	return NULL;
}

uint32_t capture_recall_whole(struct capture *capture, struct capture_whole *whole)
{
	capture->whole_credit += capture->whole_credit < CAPTURE_WHOLE_CREDIT_MAX;
	capture->whole_spent -= capture->whole_spent > 0;
	if (whole == capture->whole) {
		capture->keep = capture->depth;
		if (++capture->whole_again == CAPTURE_AGAIN_MAX)
			capture_spread_whole(capture); // capture_is_same is faster
		return CAPTURE_SAME;
	}
	capture->whole = whole;
	capture->whole_again = 0;
	capture->over = NULL;
	capture->joinable = 0;
	capture->keep = 0;
	capture->depth = whole->depth;
	capture->flags = whole->flags;
	return likely(whole->again && !whole->flags) ? whole->again : CAPTURE_CHANGED;
}

// Entries, rbps, ids and saves become what the walk had left when the stack was kept. It costs a
// store for each word, so it is done only before a walk, or when the same stack comes for the third
// time in turn.
void capture_spread_whole(struct capture *capture)
{
	const struct capture_whole *whole = capture->whole;
	const struct capture_kept *at = capture_kept_of(capture, whole);
	const struct capture_kept *saves = at + whole->depth, *rbps = at + whole->words;
	uint32_t depth = whole->depth;

	for (uint32_t i = 0; i < depth; i++) {
		uintptr_t slot = whole->slot + at[i].place;

		capture->entries[i + 1] = (struct capture_entry){ slot, at[i].value };
		capture->rbps[i + 1] = whole->by_rbps ? rbps[i].value : CAPTURE_RBP_ANY;
		capture->ids[i] = at[i].id;
		*capture_place(capture, slot) = (uint16_t)(i + 1);
	}
	for (uint32_t i = 0; i < whole->saves_count; i++)
		capture->saves[i] = (struct capture_save){ whole->slot + saves[i].place,
							   saves[i].value, saves[i].id };
	capture->saves_count = whole->saves_count;
	capture->blind = whole->blind;
	capture->depth = depth;
	capture->joinable = capture->base = depth;
	capture->version++;
	capture->whole = NULL;
}

// ---- Keeping --------------------------------------------------------------------------------

// Whether the stack that was just walked has a return address there.
//
// Only a slot that is a return address in both stacks is a fork. Another word may be anything, and
// change with each call.
static bool capture_has_slot(struct capture *capture, uintptr_t slot)
{
	uint32_t index = *capture_place(capture, slot);

	return index > 0 && index <= capture->depth && capture->entries[index].slot == slot;
}

// `whole` does not hold: choose its fork, where both it and the stack that was just walked have a
// return address, and not the same; the outermost, where few stacks part. False: there is none.
static bool capture_fork(struct capture *capture, struct capture_whole *whole)
{
	const struct capture_kept *at = capture_kept_of(capture, whole);

	for (uint32_t i = 0; i < whole->depth; i++) {
		uintptr_t slot = whole->slot + at[i].place;

		if (capture_word(slot) == at[i].value || !capture_has_slot(capture, slot))
			continue;
		whole->fork = at[i].place;
		whole->forks = at[i].value;
		return true;
	}
	return false;
}

// The key under which the stack that was just walked is to be kept; 0: it is there.
static uint64_t capture_find_key(struct capture *capture, const uintptr_t *frame)
{
	uintptr_t slot = (uintptr_t)(frame + 1), word;
	uint64_t key = capture_key(slot, frame[1]);

	for (uint32_t i = 1; i < CAPTURE_FORKS; i++) {
		struct capture_whole *whole = capture_node(capture, key, slot);

		if (!whole)
			return key;
		word = whole->fork ? capture_word(slot + whole->fork) : whole->forks;
		if (word == whole->forks && capture_whole_holds(capture, whole, frame[0]))
			return 0;
		if (!whole->fork && !capture_fork(capture, whole))
			return key; // in its place
		key = capture_key_after(key, capture_word(slot + whole->fork));
	}
	return key;
}

// Room for one more, of so many words, which the oldest ones make.
//
// Words are a ring that is counted on and never wraps within one stack: `first` is rounded up where
// the stack would not fit before the end. So capture_kept_of can hand out one plain array.
static struct capture_whole *capture_whole_add(struct capture *capture, uint32_t words)
{
	uint32_t first = capture->kept_end;
	struct capture_whole *whole;

	// For example, of 65,536 words the next is number 65,530, and 12 are wanted: they begin at
	// 65,536, which is place 0, and six words are left unused.
	if (first % CAPTURE_KEPT + words > CAPTURE_KEPT)
		first += CAPTURE_KEPT - first % CAPTURE_KEPT;
	while (capture->whole_first != capture->whole_end) {
		whole = &capture->wholes[capture->whole_first % CAPTURE_WHOLES];
		if (capture->whole_end - capture->whole_first < CAPTURE_WHOLES &&
		    first + words - whole->first <= CAPTURE_KEPT)
			break;
		whole->key = 0;
		capture->whole_first++;
	}
	capture->kept_end = first + words;
	whole = &capture->wholes[capture->whole_end++ % CAPTURE_WHOLES];
	*whole = (struct capture_whole){ .first = first };
	return whole;
}

// Copy what was read. Returns the outermost place; UINT32_MAX: it is too far.
static uint32_t capture_keep_words(const struct capture *capture, struct capture_kept *kept,
				   uintptr_t slot, uint32_t words)
{
	uint32_t depth = capture->depth, count = depth + capture->saves_count;
	uintptr_t high = 0;

	for (uint32_t i = 0; i < words; i++) {
		const struct capture_save *save = &capture->saves[i - depth];
		uint32_t from = i < depth ? i + 1 : depth;
		bool saved = i >= depth && i < count;
		uintptr_t at = saved ? save->at : capture->entries[from].slot;

		kept[i].value = saved ? save->value : capture->entries[from].pc;
		kept[i].place = (uint32_t)(at - slot);
		kept[i].id = saved ? save->index : capture->ids[from - 1];
		high = at - slot > high ? at - slot : high;
	}
	return high < UINT32_MAX - UNWIND_WORD ? (uint32_t)high : UINT32_MAX;
}

// Whether rbp plays a part in any frame. The outermost frames may well do without.
static bool capture_has_rbps(const struct capture *capture)
{
	bool found = false;

	for (uint32_t i = 1; i <= capture->depth; i++)
		found |= capture->rbps[i] != CAPTURE_RBP_ANY;
	return found;
}

// Keep the stack that was just walked under `key`.
//
// `words` is rounded up to a block, and the innermost return address fills it: the comparison has
// no rest. rbps come after the words, since they are compared with nothing; they are only put back.
static void capture_keep_whole(struct capture *capture, uintptr_t slot, uint64_t key)
{
	uint32_t depth = capture->depth, count = depth + capture->saves_count;
	uint32_t words = (count + CAPTURE_WHOLE_BLOCK - 1) & -(uint32_t)CAPTURE_WHOLE_BLOCK;
	uint16_t *place = capture_whole_place(capture, key);
	bool by_rbps = capture_has_rbps(capture);
	struct capture_whole *whole = capture_whole_add(capture, words + (by_rbps ? depth : 0));
	struct capture_kept *kept = &capture->kept[whole->first % CAPTURE_KEPT];

	whole->slot = slot;
	whole->rbp = capture->rbps[depth];
	whole->epoch = capture->epoch;
	whole->turn = capture->rules_turn;
	whole->blind = capture->blind;
	whole->words = words;
	whole->depth = (uint16_t)depth;
	whole->saves_count = (uint16_t)capture->saves_count;
	whole->flags = capture->flags;
	whole->by_rbps = by_rbps;
	whole->high = capture_keep_words(capture, kept, slot, words);
	for (uint32_t i = 0; by_rbps && i < depth; i++)
		kept[words + i] = (struct capture_kept){ .value = capture->rbps[i + 1] };
	if (whole->high == UINT32_MAX)
		return; // it cannot be found
	whole->key = key;
	// Two numbers share a place. The newer goes first, and moves the other one back, unless it
	// replaces it.
	if (capture->wholes[place[0]].key != key)
		place[1] = place[0];
	place[0] = (uint16_t)(whole - capture->wholes);
}

// Keeping is spent, and finding earns: one that is kept costs what CAPTURE_KEEP_COST found ones
// bring. capture_is_long keeps one in CAPTURE_KEEP_SELDOM from CAPTURE_KEEP_MAX on.
void capture_remember_whole(struct capture *capture, const uintptr_t *frame)
{
	uint64_t key;

	if (capture->joinable != capture->depth || capture->depth > LANE_WHOLE_FRAMES ||
	    capture->saves_count > LANE_WHOLE_FRAMES || (capture->flags & LANE_PUSH_CUT))
		return;
	capture->whole_spent += CAPTURE_KEEP_COST;
	if (capture->whole_credit < CAPTURE_WHOLE_CREDIT_MAX)
		capture->whole_credit += CAPTURE_WHOLE_CREDIT_KEPT;
	key = capture_find_key(capture, frame);
	if (key)
		capture_keep_whole(capture, (uintptr_t)(frame + 1), key);
}
