// For example, the last stack was main, f, g, with return addresses at the slots 0xf8, 0xc8 and
// 0x98; now f has called k instead, and k calls malloc, with its return address at 0xa8. The walk:
//
//     slot 0xa8   is not an entry of the last stack: k is a fresh frame. Its rule is rsp + 32, so
//                 the next return address is at 0xc8
//     slot 0xc8   is f's entry, and has the same return address: what is outside may be the same.
//                 The words at 0xc8 and 0xf8 (and each saved rbp) are compared, and are equal
//
// So the edit is "keep 2, push k": one frame was walked, however deep the stack is.
//
// What a walk costs: a rule that is found in the lane's own table (capture_find_rule) and one
// dependent load for each fresh frame, and four independent loads at a time for all frames that
// stay. So the aim of all here is to walk few frames, and to compare the others.
#include "recorder/capture_own.h"

#include "recorder/kernel.h"

_Atomic uint64_t capture_epoch = 1;
_Atomic uintptr_t capture_lowest = UINTPTR_MAX;

enum {
	// The usual limit of a main thread's stack (ulimit -s). What is further away than this from
	// where we are is not taken for the same stack.
	CAPTURE_STACK_BYTES_MAX = 8 << 20,  // in a sealed process
	CAPTURE_FRAME_BYTES_MAX = 16 << 20, // a frame larger than this is taken for nonsense
	CAPTURE_WALKS_FEW = 16,     // a lane that walks no more keeps nothing: seven page faults
	CAPTURE_WALKED_MIN = 3,     // frames: what is shorter is not kept as a whole,
	CAPTURE_WALKED_SHARE = 3,   // nor of what less than one in so many is new;
	CAPTURE_KEEP_SELDOM = 4096, // where that does not pay, one in so many
};

// The walk's position.
struct capture_walk {
	uintptr_t slot; // of the return address that led here; 0 after a signal frame
	uintptr_t sp;   // the frame's stack pointer
	uint64_t pc;    // return address, or | UNWIND_EXACT
	uintptr_t rbp;
	uint32_t top;                    // the last stack's innermost entry that may be met
	const struct capture_fresh *end; // behind the fresh frames
	uint16_t flags;
	bool lost;     // it ended somewhere inside
	bool by_slots; // no signal frame so far: slots rise and describe memory
};

// In a sealed process, which cannot ask: it lies on the stack that we are on, between here and its
// end. That of the main thread is known; at that of another one lies libc's own block.
static bool capture_on_stack(uintptr_t from, uintptr_t to)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0) & ~(uintptr_t)(KERNEL_PAGE - 1);
	uintptr_t end = unwind_stack_end(here);

	if (end - here >= CAPTURE_STACK_BYTES_MAX)
		return false;
	return from >= here && to <= (end | (KERNEL_PAGE - 1)) + 1;
}

bool capture_readable(uintptr_t from, uintptr_t to)
{
	uintptr_t page = from & ~(uintptr_t)(KERNEL_PAGE - 1);

	if (unlikely(kernel_sealed))
		return capture_on_stack(page, to);
	for (; page < to; page += KERNEL_PAGE) {
		if (!kernel_can_read(page))
			return false;
	}
	return true;
}

// What is known begins at `page` now.
static void capture_know_from(struct capture *capture, uintptr_t page)
{
	uintptr_t lowest = atomic_load(&capture_lowest);

	capture->known_low = page;
	while (page < lowest && !atomic_compare_exchange_weak(&capture_lowest, &lowest, page))
		;
}

// Make the word at `address` known to be readable, if it is.
static COLD bool capture_probe(struct capture *capture, uintptr_t address)
{
	uintptr_t page = address & ~(uintptr_t)(KERNEL_PAGE - 1);
	uintptr_t end = page + KERNEL_PAGE;

	if (address % UNWIND_WORD || address < KERNEL_PAGE || address > UNWIND_ADDRESS_MAX)
		return false;
	// The range grows only where all pages between it and the new one can be read, so that it
	// never has a hole. Each page costs a system call once.
	if (capture->known_high > capture->known_low && page >= capture->known_high &&
	    page - capture->known_high < CAPTURE_FRAME_BYTES_MAX &&
	    capture_readable(capture->known_high, end)) {
		capture->known_high = end;
		return true;
	}
	if (capture->known_high > capture->known_low && page < capture->known_low &&
	    capture->known_low - page < (256 << 10) && capture_readable(page, capture->known_low)) {
		capture_know_from(capture, page);
		return true;
	}
	if (!capture_readable(page, end)) // another stack, or nonsense
		return false;
	capture_know_from(capture, page);
	capture->known_high = end;
	return true;
}

// Whether the word at `address` may be loaded. Nearly always the two compares say so: the range
// grows page by page as deeper stacks come, and is never given back but by capture_forget. What is
// not aligned is no slot.
static inline bool capture_can_read(struct capture *capture, uintptr_t address)
{
	if (likely(address >= capture->known_low && address < capture->known_high &&
		   address % UNWIND_WORD == 0))
		return true;
	return capture_probe(capture, address);
}

// How many of entries 1 to `top`, from the outermost, still hold their return addresses. They are
// compared four at a time; the last four may have been compared before.
static inline __attribute__((always_inline)) uint32_t
capture_count_good(const struct capture_entry *entries, uint32_t top)
{
	uint32_t good = 0;

	for (uint32_t next = CAPTURE_BLOCK; top >= CAPTURE_BLOCK; next += CAPTURE_BLOCK) {
		const struct capture_entry *at = entries + (next < top ? next : top);

		if (unlikely(capture_block_differs(at)))
			break;
		if (next >= top)
			return top;
		good = next;
	}
	while (good < top && capture_word(entries[good + 1].slot) == entries[good + 1].pc)
		good++;
	return good;
}

// The entry before the first one of the first `count` saves that does not hold what was read; there
// is one.
static COLD uint32_t capture_before_bad_save(const struct capture_save *saves, uint32_t count)
{
	uint32_t i = 0;

	while (i + 1 < count && capture_word(saves[i].at) == saves[i].value)
		i++;
	return saves[i].index - 1;
}

// How many of the outermost entries still hold what was read, given that entry `top` was met
// again: `top` if all do.
//
// For example, `top` is 10, and the word of entry 7 has changed: entries 1 to 6 are good. If a save
// of entry 4 has changed too, only 3 are: what is inside of a changed save was found by way of it.
static inline uint32_t capture_validate(const struct capture *capture, uint32_t top)
{
	uint32_t good = capture_count_good(capture->entries, top);
	uint32_t count = capture_count_saves(capture, good);

	if (likely(!capture_saves_differ(capture, count)))
		return good;
	return capture_before_bad_save(capture->saves, count);
}

// How a step outwards went.
enum capture_went {
	CAPTURE_WENT_OUT,
	CAPTURE_WENT_TO_END,  // this was the outermost frame
	CAPTURE_WENT_PAST,    // the one before was
	CAPTURE_WENT_NOWHERE, // the rule and the registers lead no further
	CAPTURE_WENT_ASTRAY,  // nor can it be said what there is: it is not to be read
};

// Where the registers of the interrupted code are; 0: it cannot be read. On x86-64 the handler
// returns to where the ucontext begins. On i386 its arguments lie there: the signal's number and,
// in the old form, the registers, else pointers to the siginfo and to the ucontext, in which they
// are the fifth field.
static uintptr_t capture_context(struct capture *capture, const struct capture_walk *walk,
				 unwind_rule rule)
{
	if (UNWIND_WORD == 8)
		return walk->sp;
	if (unwind_kind(rule) == UNWIND_SIGNAL_OLD)
		return walk->sp + UNWIND_WORD;
	if (!capture_can_read(capture, walk->sp + 2 * UNWIND_WORD))
		return 0;
	return capture_word(walk->sp + 2 * UNWIND_WORD) + 5 * UNWIND_WORD;
}

// To code on another stack, or that was interrupted (slot 0: none says where): what is known of
// slots says nothing of it.
static enum capture_went capture_step_elsewhere(struct capture_walk *walk, uint64_t pc,
						uintptr_t slot, uintptr_t sp, uintptr_t rbp)
{
	walk->rbp = rbp;
	walk->sp = sp;
	walk->pc = pc;
	walk->slot = slot;
	walk->by_slots = false;
	walk->top = 0;
	return CAPTURE_WENT_OUT;
}

// From a signal handler's return frame to the code that was interrupted.
static enum capture_went capture_step_signal(struct capture *capture, struct capture_walk *walk,
					     unwind_rule rule)
{
	uintptr_t context = capture_context(capture, walk, rule);

	if (!context || !capture_can_read(capture, context + UNWIND_CONTEXT_RBP) ||
	    !capture_can_read(capture, context + UNWIND_CONTEXT_RIP))
		return CAPTURE_WENT_ASTRAY;
	return capture_step_elsewhere(walk,
				      capture_word(context + UNWIND_CONTEXT_RIP) | UNWIND_EXACT, 0,
				      capture_word(context + UNWIND_CONTEXT_RSP),
				      capture_word(context + UNWIND_CONTEXT_RBP));
}

// From the stack that Go runs C on to that of the goroutine which called it.
//
// For example, the stack of goroutine g ends at 0xc000080000 and asmcgocall was called with sp at
// 0xc00007ff00: at sp + offset is g, at g + 8 0xc000080000, and before g 0x100. A stack that grew
// meanwhile has moved, and its end with it.
static enum capture_went capture_step_switched(struct capture *capture, struct capture_walk *walk,
					       unwind_rule rule)
{
	uintptr_t goroutine_at = walk->sp + (uintptr_t)unwind_cfa_offset(rule);
	uintptr_t end_at, slot;

	if (!capture_can_read(capture, goroutine_at - UNWIND_WORD) ||
	    !capture_can_read(capture, goroutine_at))
		return CAPTURE_WENT_ASTRAY;
	end_at = capture_word(goroutine_at) + UNWIND_WORD;
	if (!kernel_can_read(end_at))
		return CAPTURE_WENT_ASTRAY;
	slot = capture_word(end_at) - capture_word(goroutine_at - UNWIND_WORD);
	if (slot % UNWIND_WORD || !kernel_can_read(slot) || capture_word(slot) < KERNEL_PAGE)
		return CAPTURE_WENT_ASTRAY;
	return capture_step_elsewhere(walk, capture_word(slot), slot, slot + UNWIND_WORD,
				      walk->rbp);
}

// The same by what the processor has pushed: pc, code segment, flags, sp, stack segment.
static enum capture_went capture_step_machine(struct capture *capture, struct capture_walk *walk,
					      unwind_rule rule)
{
	uintptr_t cfa = walk->sp + (uintptr_t)unwind_cfa_offset(rule);
	uintptr_t pc_at = cfa - UNWIND_WORD, sp_at = cfa + 2 * UNWIND_WORD;
	uintptr_t rbp_at = cfa + (uintptr_t)unwind_rbp_offset(rule);
	bool saved = unwind_saves_rbp(rule);

	if (!capture_can_read(capture, pc_at) || !capture_can_read(capture, sp_at) ||
	    (saved && !capture_can_read(capture, rbp_at)))
		return CAPTURE_WENT_ASTRAY;
	return capture_step_elsewhere(walk, capture_word(pc_at) | UNWIND_EXACT, 0,
				      capture_word(sp_at),
				      saved ? capture_word(rbp_at) : walk->rbp);
}

// To the caller whose frame address is `cfa`; its rbp lies at `rbp_at`, 0: it is ours.
//
// The only place that loads a return address. A word below the first page is no code: 0 is how a
// thread's first frame ends the chain, and any other number means that the rule was wrong.
static inline enum capture_went capture_step_to(struct capture *capture, struct capture_walk *walk,
						struct capture_fresh *fresh, uintptr_t cfa,
						uintptr_t rbp_at)
{
	uintptr_t slot = cfa - UNWIND_WORD;

	if (unlikely(!capture_can_read(capture, slot)))
		return CAPTURE_WENT_ASTRAY;
	if (rbp_at) {
		if (unlikely(!capture_can_read(capture, rbp_at)))
			return CAPTURE_WENT_ASTRAY;
		walk->rbp = capture_word(rbp_at);
		fresh->saved_at = rbp_at;
	}
	walk->slot = slot;
	walk->sp = cfa;
	walk->pc = capture_word(slot);
	if (likely(walk->pc >= KERNEL_PAGE))
		return CAPTURE_WENT_OUT;
	return walk->pc ? CAPTURE_WENT_ASTRAY : CAPTURE_WENT_TO_END; // a number is no code
}

// A frame address that comes from a register or from memory may be anything.
static inline bool capture_plausible(const struct capture_walk *walk, uintptr_t cfa)
{
	return cfa - UNWIND_WORD >= walk->sp && cfa - walk->sp <= CAPTURE_FRAME_BYTES_MAX;
}

// The steps that are rare.
static __attribute__((noinline)) enum capture_went
capture_step_rare(struct capture *capture, struct capture_walk *walk, struct capture_fresh *fresh)
{
	unwind_rule rule = fresh->rule;
	uintptr_t cfa, rbp_at = 0;

	fresh->saved_at = 0;
	fresh->cfa_at = 0;
	switch (unwind_kind(rule)) {
	case UNWIND_RBP_DEREF:
	case UNWIND_RSP_DEREF:
		fresh->cfa_at = (unwind_kind(rule) == UNWIND_RBP_DEREF ? walk->rbp : walk->sp) +
				(uintptr_t)unwind_cfa_offset(rule);
		if (!capture_can_read(capture, fresh->cfa_at))
			return CAPTURE_WENT_ASTRAY;
		fresh->cfa = cfa = capture_word(fresh->cfa_at);
		if (unwind_kind(rule) == UNWIND_RBP_DEREF)
			rbp_at = walk->rbp + (uintptr_t)unwind_rbp_offset(rule);
		else
			cfa += UNWIND_WORD;
		if (unwind_kind(rule) == UNWIND_RSP_DEREF && unwind_saves_rbp(rule))
			rbp_at = cfa + (uintptr_t)unwind_rbp_offset(rule);
		break;
	case UNWIND_RBP_COPIED:
		fresh->cfa_at = walk->rbp + UNWIND_WORD;
		if (!capture_can_read(capture, walk->rbp) ||
		    !capture_can_read(capture, walk->rbp + (UNWIND_COPIED_WORDS - 1) * UNWIND_WORD))
			return CAPTURE_WENT_ASTRAY;
		fresh->cfa = capture_word(fresh->cfa_at);
		cfa = unwind_copied((const uintptr_t *)walk->rbp) + UNWIND_WORD;
		rbp_at = walk->rbp;
		break;
	case UNWIND_SIGNAL:
	case UNWIND_SIGNAL_OLD:
		return capture_step_signal(capture, walk, rule);
	case UNWIND_MACHINE:
		return capture_step_machine(capture, walk, rule);
	case UNWIND_SWITCHED:
		return capture_step_switched(capture, walk, rule);
	case UNWIND_END:
		return CAPTURE_WENT_TO_END;
	case UNWIND_END_HERE:
		return fresh == capture->fresh ? CAPTURE_WENT_TO_END : CAPTURE_WENT_PAST;
	default:
		return CAPTURE_WENT_NOWHERE;
	}
	if (!capture_plausible(walk, cfa))
		return CAPTURE_WENT_NOWHERE;
	return capture_step_to(capture, walk, fresh, cfa, rbp_at);
}

// By the chain of frame pointers, where nothing better is known.
static __attribute__((noinline)) enum capture_went
capture_step_guess(struct capture *capture, struct capture_walk *walk, struct capture_fresh *fresh)
{
	uintptr_t cfa;

	// The function's code may say where its frame is. A rule that was learned so is in the
	// table from then on (unwind.h).
	if (unwind_kind(fresh->rule) == UNWIND_GUESS_BLIND)
		fresh->rule = unwind_learn(fresh->rule, walk->pc,
					   fresh > capture->fresh ? fresh[-1].pc : 0, walk->sp,
					   walk->rbp);
	switch (unwind_kind(fresh->rule)) {
	case UNWIND_RSP: // it is known from here on, and no guess
	case UNWIND_RBP:
		cfa = (unwind_kind(fresh->rule) == UNWIND_RSP ? walk->sp : walk->rbp) +
		      (uintptr_t)unwind_cfa_offset(fresh->rule);
		if (!capture_plausible(walk, cfa))
			return CAPTURE_WENT_NOWHERE;
		return capture_step_to(capture, walk, fresh, cfa,
				       unwind_saves_rbp(fresh->rule)
					       ? cfa + (uintptr_t)unwind_rbp_offset(fresh->rule)
					       : 0);
	case UNWIND_RBP_DEREF:
	case UNWIND_RSP_DEREF:
	case UNWIND_RBP_COPIED:
	case UNWIND_SWITCHED:
	case UNWIND_END:
		return capture_step_rare(capture, walk, fresh);
	case UNWIND_SCANNED:
		walk->flags |= LANE_PUSH_INCOMPLETE;
		cfa = walk->sp + (uintptr_t)unwind_cfa_offset(fresh->rule);
		return capture_step_to(capture, walk, fresh, cfa,
				       unwind_saves_rbp(fresh->rule)
					       ? cfa + (uintptr_t)unwind_rbp_offset(fresh->rule)
					       : 0);
	case UNWIND_GUESS_BLIND:
		walk->flags |= LANE_PUSH_INCOMPLETE;
		break;
	default:
		break;
	}
	// The frame that a compiler makes with a frame pointer: at rbp the caller's rbp, above it
	// the return address, above that the caller's stack.
	cfa = walk->rbp + 2 * UNWIND_WORD;
	if (unlikely(!capture_plausible(walk, cfa)))
		return CAPTURE_WENT_NOWHERE;
	return capture_step_to(capture, walk, fresh, cfa, walk->rbp);
}

// Rules that are no knowledge but an attempt. What they find is marked as incomplete where nothing
// else confirms it.
static inline bool capture_guesses(unwind_rule rule)
{
	return unwind_kind(rule) == UNWIND_GUESS || unwind_kind(rule) == UNWIND_GUESS_BLIND ||
	       unwind_kind(rule) == UNWIND_SCANNED;
}

// One frame outwards by `fresh->rule`.
//
// `walk` is copied for the rare kinds, so that its address is not taken on the usual path and its
// fields stay in registers.
static inline __attribute__((always_inline)) enum capture_went
capture_step(struct capture *capture, struct capture_walk *walk, struct capture_fresh *fresh)
{
	unwind_rule rule = fresh->rule;
	uintptr_t cfa;

	if (likely(unwind_kind(rule) == UNWIND_RSP)) {
		cfa = walk->sp + (uintptr_t)unwind_cfa_offset(rule);
	} else if (likely(unwind_kind(rule) == UNWIND_RBP)) {
		cfa = walk->rbp + (uintptr_t)unwind_cfa_offset(rule);
		if (unlikely(!capture_plausible(walk, cfa)))
			return CAPTURE_WENT_NOWHERE;
	} else if (capture_guesses(rule)) {
		struct capture_walk guess = *walk;
		enum capture_went went = capture_step_guess(capture, &guess, fresh);

		*walk = guess;
		return went;
	} else {
		struct capture_walk rare = *walk;
		enum capture_went went = capture_step_rare(capture, &rare, fresh);

		*walk = rare;
		return went;
	}
	return capture_step_to(capture, walk, fresh, cfa,
			       unwind_saves_rbp(rule) ? cfa + (uintptr_t)unwind_rbp_offset(rule)
						      : 0);
}

// The walk ends here. If no thread can begin there, the last frame's rule is wrong: once more,
// without the tables that it is from.
static __attribute__((noinline)) enum capture_went capture_doubt(struct capture *capture,
								 struct capture_walk *walk,
								 struct capture_fresh **fresh,
								 enum capture_went went)
{
	struct capture_fresh *last = *fresh - (went == CAPTURE_WENT_PAST);
	unwind_rule guess;

	if (went >= CAPTURE_WENT_NOWHERE || last < capture->fresh ||
	    unwind_may_end(walk->slot, last->pc))
		return went;
	*fresh = last; // what is no code is no frame
	guess = unwind_doubt(last->pc, last->rule);
	if (!guess)
		return CAPTURE_WENT_NOWHERE;
	last->rule = guess;
	walk->slot = last->slot;
	walk->sp = last->slot + UNWIND_WORD;
	walk->pc = last->pc;
	walk->rbp = last->rbp;
	went = capture_step(capture, walk, last);
	if (went == CAPTURE_WENT_TO_END && !unwind_may_end(walk->slot, last->pc))
		return CAPTURE_WENT_NOWHERE;
	return went;
}

// The rule for a return address, where it is not among those used lately.
//
// Direct-mapped: a key that comes to a taken place takes it. Four rules share a cache line here.
static inline unwind_rule capture_find_far(struct capture *capture, uint64_t key)
{
	uint64_t at = (key ^ key >> 7) % CAPTURE_FAR_RULES;
	struct capture_rule *far = &capture->far_rules[at];

	if (far->key != key)
		*far = (struct capture_rule){ key, unwind_find(key) };
	return far->rule;
}

// The rule for a return address, by those that were used here.
//
// Until a lane has walked CAPTURE_WALKS_MIN times it uses the table of all, so that threads which
// allocate little touch none of these pages. The offset is computed in bytes, which saves the
// multiplication by the size on the way of each frame.
static inline unwind_rule capture_find_rule(struct capture *capture, uint64_t key)
{
	enum { BYTES = sizeof(struct capture_rule) };
	uint64_t at = (key * BYTES ^ key >> 5) & (sizeof(capture->rules) - BYTES);
	struct capture_rule *used = (struct capture_rule *)(void *)((char *)capture->rules + at);

	if (unlikely(capture->walks < CAPTURE_WALKS_MIN))
		return unwind_find(key);
	if (unlikely(used->key != key))
		*used = (struct capture_rule){ key, capture_find_far(capture, key) };
	return used->rule;
}

// Walk outwards until the last stack is met (return the entries it keeps) or the walk ends (0).
//
// `met` is looked at before it is known that it belongs to this stack: the place by the slot's
// lower bits may have the number of an entry that went, or of another slot. So slot and return
// address are both compared, and the number with `top`. Where only a part of the entries outside of
// it holds, the walk goes on, and may meet only those.
static inline uint32_t capture_walk_out(struct capture *capture, struct capture_walk *walk)
{
	struct capture_fresh *fresh = capture->fresh;
	enum capture_went went;

	for (;; fresh++) {
		uint32_t index = *capture_place(capture, walk->slot);
		const struct capture_entry *met = &capture->entries[index];

		if (unlikely(((met->slot ^ walk->slot) | (met->pc ^ walk->pc)) == 0) &&
		    index <= walk->top) {
			uintptr_t rbp = capture->rbps[index];

			if (rbp == CAPTURE_RBP_ANY || rbp == walk->rbp) {
				uint32_t good = capture_validate(capture, index);

				if (likely(good == index)) {
					walk->end = fresh;
					return good;
				}
				walk->top = good;
			}
		}
		fresh->slot = walk->slot;
		fresh->pc = (uintptr_t)walk->pc;
		fresh->rbp = walk->rbp;
		fresh->rule = capture_find_rule(capture, walk->pc);
		went = capture_step(capture, walk, fresh);
		if (unlikely(went != CAPTURE_WENT_OUT)) {
			struct capture_walk doubted = *walk; // for the reason that capture_step has
			struct capture_fresh *last = fresh;

			went = capture_doubt(capture, &doubted, &last, went);
			*walk = doubted;
			fresh = last;
		}
		if (unlikely(went != CAPTURE_WENT_OUT)) {
			walk->end = went == CAPTURE_WENT_PAST ? fresh : fresh + 1;
			walk->lost = went >= CAPTURE_WENT_NOWHERE;
			if (walk->lost)
				walk->flags |= LANE_PUSH_INCOMPLETE;
			if (went == CAPTURE_WENT_ASTRAY)
				walk->by_slots = false; // it may be readable next time
			return 0;
		}
		if (unlikely(fresh == capture->fresh + LANE_DEPTH_MAX - 1)) {
			walk->end = fresh + 1;
			walk->flags |= LANE_PUSH_CUT;
			walk->by_slots = false;
			return 0;
		}
	}
}

// What the step outwards of entry `index` did to rbp. Returns whether the frames outside of it and
// it itself depend on its rbp.
//
// What for: an entry that does not depend on rbp can be met whatever rbp is. That matters, since
// most code uses rbp as a plain register, and its value at one slot changes from call to call. A
// frame depends on it if its own rule uses it, or if it passes it on unsaved to one outside that
// does.
static inline bool capture_put_rbp(struct capture *capture, const struct capture_fresh *fresh,
				   uint32_t index, uintptr_t outer_rbp, bool outer_live)
{
	enum unwind_kind kind = unwind_kind(fresh->rule);
	bool scanned = kind == UNWIND_SCANNED;
	bool guesses = capture_guesses(fresh->rule) && !scanned;
	bool rare = kind > UNWIND_RBP && !guesses && !scanned;
	bool saved = rare ? fresh->saved_at != 0 : guesses || unwind_saves_rbp(fresh->rule);

	if (saved && outer_live)
		capture->saves[capture->saves_count++] =
			(struct capture_save){ fresh->saved_at, outer_rbp, index };
	if (likely(kind <= UNWIND_RBP))
		return kind == UNWIND_RBP || (!saved && outer_live);
	if ((kind == UNWIND_GUESS_BLIND || scanned) && index < capture->blind)
		capture->blind = index;
	if (unlikely(rare && fresh->cfa_at != 0))
		capture->saves[capture->saves_count++] =
			(struct capture_save){ fresh->cfa_at, fresh->cfa, index };
	return kind == UNWIND_RBP_DEREF || kind == UNWIND_RBP_COPIED || guesses ||
	       (!saved && outer_live);
}

// Put the fresh frames on top of the `join` entries that stay. Returns how many frames are the same
// as before.
//
// From the outermost fresh frame to the innermost, since whether an entry depends on rbp follows
// from those outside of it. Frames with the ids of the last stack at the same depth count as the
// same, wherever they are in memory: the edit is about ids.
static inline uint32_t capture_put(struct capture *capture, const struct capture_walk *walk,
				   uint32_t join)
{
	uint32_t index = join;
	uint32_t same = join;
	uint32_t old_depth = capture->depth;
	uintptr_t outer_rbp = join ? capture->rbps[join] : CAPTURE_RBP_ANY;
	bool outer_live = outer_rbp != CAPTURE_RBP_ANY;
	const struct capture_fresh *fresh = walk->end;

	capture_drop(capture, join);
	while (fresh-- != capture->fresh) {
		uint32_t id = unwind_frame(fresh->rule);

		if (same == index && index < old_depth && capture->ids[index] == id)
			same++;
		capture->ids[index] = id;
		index++;
		capture->entries[index].slot = fresh->slot;
		capture->entries[index].pc = fresh->pc;
		*capture_place(capture, fresh->slot) = (uint16_t)index;
		// Mostly a frame neither uses rbp nor saves it.
		if (unlikely((fresh->rule & UNWIND_RBP_BITS) != UNWIND_RSP))
			outer_live = capture_put_rbp(capture, fresh, index, outer_rbp, outer_live);
		outer_rbp = fresh->rbp;
		capture->rbps[index] = outer_live ? outer_rbp : CAPTURE_RBP_ANY;
	}
	capture->depth = index;
	capture->joinable = capture->base = walk->by_slots ? index : 0;
	capture->version++;
	if (unlikely(walk->lost))
		capture->blind = 1;
	return same;
}

// The stack has more frames than there is room for: keep the innermost ones.
//
// LANE_DEPTH_MAX frames are kept, the innermost. The ids outside of `join` have to move outwards
// for that, so that no entry describes memory any more: the next walk goes to the root or to the
// same limit.
static COLD void capture_put_cut(struct capture *capture, const struct capture_fresh *end,
				 uint32_t join)
{
	const struct capture_fresh *fresh = end;
	uint32_t stay = LANE_DEPTH_MAX - (uint32_t)(end - capture->fresh);

	for (uint32_t i = 0; i < stay; i++)
		capture->ids[i] = capture->ids[join - stay + i];
	while (fresh-- != capture->fresh)
		capture->ids[stay++] = unwind_frame(fresh->rule);
	capture->depth = stay;
	capture->joinable = capture->base = 0;
	capture->version++;
	capture->saves_count = 0;
	capture->keep = 0;
}

// Also the way in for a lane that was never used: its `epoch` is 0, and the first is 1. Entry 0
// gets the highest slot there is, so that "is this slot further out" needs no special case at the
// root.
COLD void capture_forget(struct capture *capture, uint64_t epoch)
{
	capture->epoch = epoch;
	capture_reset(capture);
	capture->blind = CAPTURE_SEEN;
	capture->entries[0].slot = UINTPTR_MAX;
	capture->known_low = capture->known_high = 0;
}

// The ids stay what they are, since the next edit is made against them. Only what is known of
// memory goes.
void capture_reset(struct capture *capture)
{
	if (capture->over)
		capture_spread(capture); // for the ids
	if (capture->whole)
		capture_spread_whole(capture);
	capture->joinable = capture->base = 0;
}

// Before a walk: forget the rules that were used here if any is another one now.
//
// `unwind_turn` is raised when a library is unloaded or a rule was found to be wrong (unwind.h).
// That is rare, so all of the lane's rules go then, and none is looked at one by one.
static inline void capture_check_rules(struct capture *capture)
{
	uint32_t turn = __atomic_load_n(&unwind_turn, __ATOMIC_ACQUIRE);

	capture->walks += capture->walks < CAPTURE_WALKS_MIN;
	if (likely(capture->rules_turn == turn))
		return;
	capture->rules_turn = turn;
	if (capture->walks < CAPTURE_WALKS_MIN)
		return;
	for (uint32_t i = 0; i < CAPTURE_RULES; i++)
		capture->rules[i].key = 0;
	for (uint32_t i = 0; i < CAPTURE_FAR_RULES; i++)
		capture->far_rules[i].key = 0;
}

// Whether so much of the stack had to be walked that it is worth to keep it as a whole.
static inline bool capture_is_long(const struct capture *capture, const struct capture_walk *walk)
{
	uint32_t walked = (uint32_t)(walk->end - capture->fresh);

	return walked >= CAPTURE_WALKED_MIN && capture->walks >= CAPTURE_WALKS_FEW &&
	       CAPTURE_WALKED_SHARE * walked >= capture->depth &&
	       (capture->whole_spent < CAPTURE_KEEP_MAX ||
		capture->version % CAPTURE_KEEP_SELDOM == 0);
}

// The order is: spread what a memo says into entries (a walk meets entries only), walk, then put.
// `keep` is the depth of the old stack at first, which is what it is if the walk meets the
// innermost entry at once.
bool capture_find(struct capture *capture, const uintptr_t *frame)
{
	struct capture_walk walk = {
		.slot = (uintptr_t)(frame + 1),
		.sp = (uintptr_t)(frame + 2),
		.pc = frame[1],
		.rbp = frame[0],
		.by_slots = true,
	};
	uint32_t old_depth = capture->depth;
	uint16_t old_flags = capture->flags;
	uint32_t join;

	if (unlikely(capture->over))
		capture_spread(capture);
	capture_check_rules(capture);
	walk.top = capture->joinable;
	join = capture_walk_out(capture, &walk);
	capture->keep = old_depth;
	if (join == old_depth && walk.end == capture->fresh)
		return false;
	if (unlikely(join >= capture->blind))
		walk.flags |= LANE_PUSH_INCOMPLETE;
	capture->flags = walk.flags;
	if (unlikely(join + (uint32_t)(walk.end - capture->fresh) > LANE_DEPTH_MAX)) {
		capture->flags |= LANE_PUSH_CUT;
		capture_put_cut(capture, walk.end, join);
		return true;
	}
	capture->keep = capture_put(capture, &walk, join);
	if (capture->credit)
		capture_remember(capture);
	if (unlikely(capture_is_long(capture, &walk)))
		capture_remember_whole(capture, frame);
	return capture->keep != old_depth || capture->depth != old_depth ||
	       capture->flags != old_flags;
}

// `scratch` is a capture of its own, which is made to forget first, so that nothing but rules and
// memory decide. It gets no credit, so that it keeps no memos and no whole stacks.
bool capture_verify(const struct capture *capture, struct capture *scratch, const uintptr_t *frame)
{
	uint64_t epoch = atomic_load_explicit(&capture_epoch, memory_order_relaxed);

	if (unlikely(scratch->epoch != epoch))
		capture_forget(scratch, epoch);
	capture_reset(scratch);
	scratch->walks = scratch->credit = 0;
	scratch->whole_spent = UINT32_MAX / 2; // it keeps none
	capture_find(scratch, frame);
	if (capture->depth != scratch->depth)
		return false;
	for (uint32_t i = 0; i < capture->depth; i++) {
		if (capture_id(capture, i) != capture_id(scratch, i))
			return false;
	}
	return true;
}
