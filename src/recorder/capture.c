#include "recorder/capture.h"

#include "recorder/kernel.h"

_Atomic uint64_t capture_epoch = 1;

enum {
	CAPTURE_FRAME_BYTES_MAX = 16 << 20, // a frame larger than this is taken for nonsense
	CAPTURE_NO_SUCH_HOW = 12345,
};

// The walk's position.
struct capture_walk {
	uintptr_t slot; // of the return address that led here; 0 after a signal frame
	uintptr_t sp;   // the frame's stack pointer
	uintptr_t pc;   // return address, or | UNWIND_EXACT
	uintptr_t rbp;
	uint32_t count; // fresh frames
	uint16_t flags;
	bool by_slots; // no signal frame so far: slots rise and describe memory
};

// Whether [from, to) can be read. rt_sigprocmask copies the new mask in before it looks at what to
// do with it, and refuses nonsense: EFAULT or EINVAL, and nothing changes. Every sandbox allows it.
static bool capture_readable(uintptr_t from, uintptr_t to)
{
	uintptr_t page = from & ~(uintptr_t)(KERNEL_PAGE - 1);

	for (; page < to; page += KERNEL_PAGE) {
		if (kernel(__NR_rt_sigprocmask, CAPTURE_NO_SUCH_HOW, page, 0, 8) == -KERNEL_EFAULT)
			return false;
	}
	return true;
}

// Make [address, address + 8) known to be readable, if it is.
static COLD bool capture_probe(struct capture *capture, uintptr_t address)
{
	uintptr_t page = address & ~(uintptr_t)(KERNEL_PAGE - 1);
	uintptr_t end = ((address + 7) & ~(uintptr_t)(KERNEL_PAGE - 1)) + KERNEL_PAGE;

	if (address & 7 || address < KERNEL_PAGE || address > UINTPTR_MAX >> 17)
		return false;
	if (capture->known_high > capture->known_low && page >= capture->known_high &&
	    page - capture->known_high < CAPTURE_FRAME_BYTES_MAX &&
	    capture_readable(capture->known_high, end)) {
		capture->known_high = end;
		return true;
	}
	if (capture->known_high > capture->known_low && page < capture->known_low &&
	    capture->known_low - page < (256 << 10) && capture_readable(page, capture->known_low)) {
		capture->known_low = page;
		return true;
	}
	if (!capture_readable(page, end)) // another stack, or nonsense
		return false;
	capture->known_low = page;
	capture->known_high = end;
	return true;
}

static inline bool capture_can_read(struct capture *capture, uintptr_t address)
{
	if (likely(address >= capture->known_low && address < capture->known_high &&
		   !(address & 7)))
		return true;
	return capture_probe(capture, address);
}

static inline uintptr_t capture_word(uintptr_t address)
{
	return *(const volatile uintptr_t *)address;
}

// How many of the outermost entries still hold what was read, given that entry `top` was met
// again: top + 1 if all do.
static uint32_t capture_validate(const struct capture *capture, uint32_t top)
{
	const struct capture_entry *entries = capture->entries;
	uintptr_t differs = 0;
	uint32_t good = top + 1;
	uint32_t i = 0;

	for (; i + 4 <= top; i += 4)
		differs |= (*(const uintptr_t *)entries[i].slot ^ entries[i].pc) |
			   (*(const uintptr_t *)entries[i + 1].slot ^ entries[i + 1].pc) |
			   (*(const uintptr_t *)entries[i + 2].slot ^ entries[i + 2].pc) |
			   (*(const uintptr_t *)entries[i + 3].slot ^ entries[i + 3].pc);
	for (; i < top; i++)
		differs |= *(const uintptr_t *)entries[i].slot ^ entries[i].pc;
	if (unlikely(differs)) {
		for (i = 0; i < top; i++) {
			if (capture_word(entries[i].slot) != entries[i].pc)
				break;
		}
		good = i;
	}
	for (i = 0; i < capture->saves_count; i++) {
		const struct capture_save *save = &capture->saves[i];

		if (save->index >= good)
			break;
		if (unlikely(capture_word(save->at) != save->value)) {
			good = save->index;
			break;
		}
	}
	return good;
}

// From a signal handler's return frame to the code that was interrupted.
static bool capture_step_signal(struct capture *capture, struct capture_walk *walk)
{
	uintptr_t context = walk->sp;

	if (!capture_can_read(capture, context + UNWIND_UCONTEXT_RBP) ||
	    !capture_can_read(capture, context + UNWIND_UCONTEXT_RIP))
		return false;
	walk->rbp = capture_word(context + UNWIND_UCONTEXT_RBP);
	walk->sp = capture_word(context + UNWIND_UCONTEXT_RSP);
	walk->pc = capture_word(context + UNWIND_UCONTEXT_RIP) | UNWIND_EXACT;
	walk->slot = 0;
	walk->by_slots = false;
	return true;
}

// One frame outwards by `fresh->rule`. False: the walk ends here, and walk->flags say whether it is
// whole.
static inline bool capture_step(struct capture *capture, struct capture_walk *walk,
				struct capture_fresh *fresh)
{
	unwind_rule rule = fresh->rule;
	int64_t rbp_offset = unwind_rbp_offset(rule);
	enum unwind_kind kind = unwind_kind(rule);
	uintptr_t cfa;
	uintptr_t rbp_at = 0;

	if (likely(kind == UNWIND_RSP)) {
		cfa = walk->sp + (uintptr_t)unwind_cfa_offset(rule);
	} else if (kind == UNWIND_RBP) {
		cfa = walk->rbp + (uintptr_t)unwind_cfa_offset(rule);
	} else if (kind == UNWIND_RBP_DEREF || kind == UNWIND_RSP_DEREF) {
		fresh->cfa_at = (kind == UNWIND_RBP_DEREF ? walk->rbp : walk->sp) +
				(uintptr_t)unwind_cfa_offset(rule);
		if (!capture_can_read(capture, fresh->cfa_at))
			goto incomplete;
		fresh->cfa = capture_word(fresh->cfa_at);
		cfa = fresh->cfa + (kind == UNWIND_RSP_DEREF ? 8 : 0);
		if (kind == UNWIND_RBP_DEREF)
			rbp_at = walk->rbp + (uintptr_t)rbp_offset;
	} else if (kind == UNWIND_GUESS || kind == UNWIND_GUESS_BLIND) {
		if (kind == UNWIND_GUESS_BLIND)
			walk->flags |= LANE_PUSH_INCOMPLETE;
		cfa = walk->rbp + 16;
		rbp_at = walk->rbp;
	} else if (kind == UNWIND_SIGNAL) {
		if (!capture_step_signal(capture, walk))
			goto incomplete;
		return true;
	} else if (kind == UNWIND_END || kind == UNWIND_END_HERE) {
		return false;
	} else {
		goto incomplete;
	}
	if (unlikely(cfa - 8 < walk->sp || cfa - walk->sp > CAPTURE_FRAME_BYTES_MAX ||
		     !capture_can_read(capture, cfa - 8)))
		goto incomplete;
	if (rbp_offset && !rbp_at)
		rbp_at = cfa + (uintptr_t)rbp_offset;
	if (rbp_at) {
		if (unlikely(!capture_can_read(capture, rbp_at)))
			goto incomplete;
		walk->rbp = capture_word(rbp_at);
		fresh->saved_at = rbp_at;
	}
	walk->slot = cfa - 8;
	walk->sp = cfa;
	walk->pc = capture_word(cfa - 8);
	return walk->pc != 0;
incomplete:
	walk->flags |= LANE_PUSH_INCOMPLETE;
	return false;
}

// Walk outwards until the last stack is met (return the entries it keeps) or the walk ends (0).
static uint32_t capture_walk_out(struct capture *capture, struct capture_walk *walk)
{
	uint32_t valid = capture->joinable;
	uint32_t good;

	for (;;) {
		struct capture_fresh *fresh = &capture->fresh[walk->count];

		while (valid && capture->entries[valid - 1].slot < walk->slot)
			valid--;
		if (walk->by_slots && valid && capture->entries[valid - 1].slot == walk->slot &&
		    capture->entries[valid - 1].pc == walk->pc &&
		    (!capture->live[valid - 1] || capture->rbps[valid - 1] == walk->rbp)) {
			good = capture_validate(capture, valid - 1);
			if (likely(good == valid))
				return valid;
			valid = good;
		}
		fresh->slot = walk->slot;
		fresh->pc = walk->pc;
		fresh->rbp = walk->rbp;
		fresh->saved_at = 0;
		fresh->cfa_at = 0;
		fresh->rule = unwind_find(walk->pc);
		if (unlikely(unwind_kind(fresh->rule) == UNWIND_END_HERE && walk->count))
			return 0;
		walk->count++;
		if (!capture_step(capture, walk, fresh))
			return 0;
		if (unlikely(walk->count == LANE_DEPTH_MAX)) {
			walk->flags |= LANE_PUSH_CUT;
			walk->by_slots = false;
			return 0;
		}
	}
}

// The step outwards of entry `index` read these words.
static inline void capture_add_saves(struct capture *capture, const struct capture_fresh *fresh,
				     uint32_t index, uintptr_t outer_rbp, bool outer_live)
{
	if (fresh->saved_at && outer_live)
		capture->saves[capture->saves_count++] =
			(struct capture_save){ fresh->saved_at, outer_rbp, index };
	if (unlikely(fresh->cfa_at != 0))
		capture->saves[capture->saves_count++] =
			(struct capture_save){ fresh->cfa_at, fresh->cfa, index };
}

// Put the fresh frames on top of the `join` entries that stay.
static void capture_put(struct capture *capture, const struct capture_walk *walk, uint32_t join)
{
	uint32_t index = join;
	uintptr_t outer_rbp = join ? capture->rbps[join - 1] : 0;
	bool outer_live = join ? capture->live[join - 1] : false;

	while (capture->saves_count && capture->saves[capture->saves_count - 1].index >= join)
		capture->saves_count--;
	for (uint32_t k = walk->count; k-- > 0; index++) {
		const struct capture_fresh *fresh = &capture->fresh[k];
		enum unwind_kind kind = unwind_kind(fresh->rule);
		bool uses = kind == UNWIND_RBP || kind == UNWIND_RBP_DEREF ||
			    kind == UNWIND_GUESS || kind == UNWIND_GUESS_BLIND;

		capture->entries[index].slot = fresh->slot;
		capture->entries[index].pc = fresh->pc;
		capture->ids[index] = unwind_frame(fresh->rule);
		capture->rbps[index] = fresh->rbp;
		capture_add_saves(capture, fresh, index, outer_rbp, outer_live);
		outer_live = uses || (!fresh->saved_at && outer_live);
		outer_rbp = fresh->rbp;
		capture->live[index] = outer_live;
	}
	capture->depth = index;
	// An incomplete stack is walked anew each time: what made it so may lie anywhere in it.
	capture->joinable = walk->by_slots && !walk->flags ? index : 0;
}

// The stack has more frames than there is room for: keep the innermost ones.
static void capture_put_cut(struct capture *capture, const struct capture_walk *walk, uint32_t join)
{
	uint32_t stay = LANE_DEPTH_MAX - walk->count;

	for (uint32_t i = 0; i < stay; i++)
		capture->ids[i] = capture->ids[join - stay + i];
	for (uint32_t k = walk->count; k-- > 0;)
		capture->ids[stay++] = unwind_frame(capture->fresh[k].rule);
	capture->depth = stay;
	capture->joinable = 0;
	capture->saves_count = 0;
	capture->keep = 0;
}

bool capture_take(struct capture *capture, const uintptr_t *frame)
{
	struct capture_walk walk = {
		.slot = (uintptr_t)(frame + 1),
		.sp = (uintptr_t)(frame + 2),
		.pc = frame[1],
		.rbp = frame[0],
		.by_slots = true,
	};
	uint64_t epoch = __atomic_load_n(&capture_epoch, __ATOMIC_RELAXED);
	uint32_t old_depth = capture->depth;
	uint16_t old_flags = capture->flags;
	uint32_t join, keep;

	if (unlikely(capture->epoch != epoch)) {
		capture->epoch = epoch;
		capture->joinable = 0;
		capture->known_low = capture->known_high = 0;
	}
	join = capture_walk_out(capture, &walk);
	if (join == old_depth && walk.count == 0) {
		capture->keep = old_depth;
		return false;
	}
	capture->flags = walk.flags;
	if (unlikely(join + walk.count > LANE_DEPTH_MAX)) {
		capture->flags |= LANE_PUSH_CUT;
		capture_put_cut(capture, &walk, join);
		return true;
	}
	for (keep = join; keep < old_depth && keep - join < walk.count; keep++) {
		if (capture->ids[keep] !=
		    unwind_frame(capture->fresh[walk.count - 1 - (keep - join)].rule))
			break;
	}
	capture_put(capture, &walk, join);
	capture->keep = keep;
	return keep != old_depth || capture->depth != old_depth || capture->flags != old_flags;
}

bool capture_verify(const struct capture *capture, struct capture *scratch, const uintptr_t *frame)
{
	scratch->joinable = 0;
	capture_take(scratch, frame);
	if (capture->depth != scratch->depth)
		return false;
	for (uint32_t i = 0; i < capture->depth; i++) {
		if (capture->ids[i] != scratch->ids[i])
			return false;
	}
	return true;
}
