// unwind_learn on Linux: code without .eh_frame, of which the frame pointer is proven.
//
// Browsers are built so, and what engines generate mostly is: frame pointers, and no tables. That
// code has a frame pointer cannot be seen at a return address, and rbp may as well be a register
// like any other there. But the function says it itself, further on: it takes its frame down before
// it returns. From the return address its instructions are followed, on all ways, to its ends. A
// way on which nothing writes to rbp up to `leave; ret`, or to a `pop %rbp; ret` with the stack
// pointer at rbp, says that the caller's rbp is at rbp, and the return address after it. Where the
// stack pointer is counted (add, pop), it has to come to just the rbp that the frame has now.
//
// What comes after a call that does not return belongs to another function. That one sets its own
// rbp up, which ends the way, or takes down another frame. So an end without a call before it
// decides, and these ways are followed first; only where there is none do those after calls, which
// all have to say so; what fills room ends a way there. Besides, the return address found has to
// follow a call, and if that names a function, this has to set up a frame pointer.
//
// Where that is not so, rbp may be a register like any other, and the frame has to be counted: musl
// is built so, and what Rust begins a program with. From the return address on all ways to a return
// the pushes, pops and sums on rsp have to come to the same. For example, after the call in
//
//     main: push %rax; …; call lang_start; pop %rcx; ret
//
// the way to `ret` adds 8: the return address is at rsp + 8, and the caller's rsp 16 above. A call
// is made with rsp at a multiple of 16, so that this sum is always an odd multiple of 8. What comes
// after a call that does not return is another function: it comes to an even one, and is passed
// over, from where it begins as functions do if it does. And the call before the return address
// found has to lead here, as far as it says where. Where no end is without a call before it, all
// ways have to be understood, or the function that was called has to make room for just as much as
// it begins.
//
// Go's C runs on another stack than the goroutine that called it (learn_switches), whose outermost
// frame returns to where nothing has called (learn_is_goexit). So does that of a context of
// Boost's (learn_is_finish).
//
// What is not understood ends a way, and without any end that says so nothing is learned: the frame
// stays a guess, and the stack is marked. Of 32 bits nothing is learned.
#include "recorder/capture.h"
#include "recorder/codemap.h"
#include "recorder/insn.h"
#include "recorder/kernel.h"
#include "recorder/python.h"
#include "recorder/recording.h"
#include "recorder/text.h"

#ifdef __x86_64__

enum {
	// How often one return address is tried in vain, before it stays a guess.
	LEARN_TRIES = 2,
	LEARN_STEPS = 800, // instructions in all
	LEARN_WAYS = 48,   // and branches
	LEARN_START_WORDS = 8,
	LEARN_START_BYTES = 48,
	LEARN_FUNCTION_BYTES = 1 << 20,
	LEARN_CALL_ALIGN = 16,
	LEARN_NOWHERE = INT32_MIN,
	LEARN_RSP = 4,
	LEARN_RBP = 5,
};

// How far a function has got on a way.
struct learn_way {
	uintptr_t at;
	int32_t rsp;   // counted from what it was, or
	bool from_rbp; // from rbp
	bool down;     // rbp is the caller's again
	bool called;   // it has come past a call, which may never return
	bool behind;   // and that was the last instruction
	bool gone;     // it was followed
	// Where rsp is counted alone:
	bool touched;     // something was written to rbp
	int32_t saved_at; // and it was taken from there; LEARN_NOWHERE: it was not
};

struct learn_frame {
	uintptr_t pc, sp, rbp;
	uintptr_t page; // that can be read; 0: none is known
	bool said[2];   // an end was come to that says what is looked for; [1]: past a call
	bool denied[2]; // or one that does not
	bool unclear;   // a way was lost
	bool counted;   // rsp is counted alone, and what is found:
	int32_t back_at[2], saved_at[2]; // of the return address and the caller's rbp, from sp
	uint32_t steps;
	uint64_t starts[LEARN_START_WORDS]; // a bit for where each way begins; others may share it
	uint32_t ways_count;
	uint32_t next[2]; // of ways that came past no call, and past one: those before are gone
	struct learn_way ways[LEARN_WAYS];
};

// An instruction, and what its bytes mean.
struct learn_insn {
	struct insn insn;
	const uint8_t *opcode;
	uint32_t rex;
	uint32_t reg, rm; // of its operands; rm 16: memory
	uint32_t watched; // registers that are not to be written to, a bit each; rsp and rbp
};

// Whether the bytes there can be read; the page is remembered.
//
// At most two pages: an instruction has 15 bytes at most. A page that was asked once is not asked
// again.
static bool learn_can_read(struct learn_frame *frame, uintptr_t at, uint32_t bytes)
{
	uintptr_t first = at & ~(uintptr_t)(KERNEL_PAGE - 1);
	uintptr_t last = (at + bytes - 1) & ~(uintptr_t)(KERNEL_PAGE - 1);

	if (first && first == frame->page && last == first)
		return true;
	if (!kernel_can_read(first) || (last != first && !kernel_can_read(last)))
		return false;
	frame->page = first;
	return true;
}

static int32_t learn_number(const uint8_t *at, uint32_t bytes)
{
	int32_t value;

	if (bytes == 1)
		return (int8_t)*at;
	memcpy(&value, at, 4);
	return value;
}

// False: the bytes cannot be read, or are no instruction that insn_decode knows. REX bits widen the
// numbers of both operands to 16 registers.
static bool learn_decode(struct learn_frame *frame, uintptr_t at, struct learn_insn *found)
{
	const uint8_t *code = (const uint8_t *)at, *modrm;

	if (!learn_can_read(frame, at, 2 * INSN_BYTES_MAX) ||
	    !insn_decode(code, INSN_BYTES_MAX, true, &found->insn))
		return false;
	found->opcode = code + found->insn.opcode_at;
	found->rex = found->insn.opcode_at > 0 && (found->opcode[-1] & 0xf0) == 0x40
			     ? found->opcode[-1]
			     : 0;
	modrm = found->opcode + (*found->opcode == 0x0f ? 2 : 1);
	found->reg = (*modrm >> 3 & 7) | (found->rex & 4) << 1;
	found->watched = 1u << LEARN_RSP | 1u << LEARN_RBP;
	found->rm = *modrm >= 0xc0 ? (*modrm & 7u) | (found->rex & 1) << 3 : 16;
	return true;
}

static bool learn_is_frame(const struct learn_insn *found, uint32_t which)
{
	return found->watched >> which & 1;
}

// Whether an instruction with both operands surely leaves what is watched alone. It may read it.
//
// For example, `add %rax,%rbp` (48 01 c5) has rbp as rm and writes to it; `mov %rbp,%rax` (48 89
// e8) only reads it. In 00 to 3b bit 1 of the opcode says which operand is written to: reg if it is
// set.
static bool learn_leaves(const struct learn_insn *found)
{
	uint32_t opcode = *found->opcode, extension = found->reg & 7;
	bool reg = learn_is_frame(found, found->reg), rm = learn_is_frame(found, found->rm);

	if (opcode >= 0x80 && opcode <= 0x83)
		return !rm || extension == 7; // cmp
	if (opcode == 0xf6 || opcode == 0xf7)
		return !rm || extension < 2; // test
	if (opcode == 0xfe || opcode == 0xc6 || opcode == 0xc7 || opcode == 0xc0 ||
	    opcode == 0xc1 || (opcode >= 0xd0 && opcode <= 0xd3))
		return !rm;
	if (!reg && !rm)
		return true;
	if ((opcode >= 0x38 && opcode <= 0x3b) || opcode == 0x84 || opcode == 0x85)
		return true;
	if (opcode < 0x40 && (opcode & 7) < 4)
		return opcode & 2 ? !reg : !rm;
	if (opcode == 0x88 || opcode == 0x89)
		return !rm;
	if (opcode == 0x8a || opcode == 0x8b || opcode == 0x8d || opcode == 0x63)
		return !reg;
	return opcode >= 0xd8 && opcode <= 0xdf;
}

// Instructions without a second operand, or that are known by their opcode alone. False: it may
// write to what is watched.
static bool learn_leaves_short(const struct learn_insn *found)
{
	uint32_t opcode = *found->opcode;
	uint32_t which = (opcode & 7) | (found->rex & 1) << 3;

	if (opcode >= 0x90 && opcode <= 0x97)
		return opcode == 0x90 || !learn_is_frame(found, which);
	return opcode < 0xb0 || opcode > 0xbf || !learn_is_frame(found, which);
}

// Whether the opcode has a ModRM byte with two operands, or with one and an extension.
static bool learn_has_operands(uint32_t opcode)
{
	return (opcode < 0x40 && (opcode & 7) < 4) || opcode == 0x63 || opcode == 0x69 ||
	       opcode == 0x6b || (opcode >= 0x80 && opcode <= 0x8f) || opcode == 0xc0 ||
	       opcode == 0xc1 || opcode == 0xc6 || opcode == 0xc7 ||
	       (opcode >= 0xd0 && opcode <= 0xd3) || (opcode >= 0xd8 && opcode <= 0xdf) ||
	       opcode == 0xf6 || opcode == 0xf7 || opcode == 0xfe || opcode == 0xff;
}

// Whether a way may begin there; from now on one does, if `begins`.
//
// A filter of 512 bits before the list of ways is searched: most addresses are the beginning of
// none.
static inline bool learn_may_begin(struct learn_frame *frame, uintptr_t at, bool begins)
{
	uint64_t hash = at * UINT64_C(0x9e3779b97f4a7c15);
	uint64_t *word = &frame->starts[hash >> 58 & (LEARN_START_WORDS - 1)];
	uint64_t bit = UINT64_C(1) << (hash >> 32 & 63);
	bool may = *word & bit;

	if (begins)
		*word |= bit;
	return may;
}

// Go on at `to` later. False: there is no room for another way.
static bool learn_later(struct learn_frame *frame, const struct learn_way *way, uintptr_t to)
{
	bool known = learn_may_begin(frame, to, false);

	for (uint32_t i = 0; known && i < frame->ways_count; i++) {
		if (frame->ways[i].at == to)
			return true;
	}
	if (frame->ways_count == LEARN_WAYS)
		return false;
	learn_may_begin(frame, to, true);
	frame->ways[frame->ways_count] = *way;
	frame->ways[frame->ways_count].gone = false;
	frame->ways[frame->ways_count++].at = to;
	return true;
}

// Whether another way goes on here, or has: and came to no more calls.
static bool learn_was_here(struct learn_frame *frame, const struct learn_way *way)
{
	if (likely(!learn_may_begin(frame, way->at, false)))
		return false;
	for (uint32_t i = 0; i < frame->ways_count; i++) {
		if (frame->ways[i].at == way->at && frame->ways[i].called <= way->called)
			return true;
	}
	return false;
}

// rbp is taken from the stack where rsp is now: is that where rbp says?
//
// `leave` puts rsp to rbp first, so from_rbp with 0 is what it looks for. A `pop %rbp` where rsp
// was counted has to be at the address that rbp has now.
static void learn_down(struct learn_frame *frame, struct learn_way *way)
{
	if (way->from_rbp ? way->rsp != 0 : frame->rbp != frame->sp + (uintptr_t)(intptr_t)way->rsp)
		frame->denied[way->called] = true;
	way->down = true;
	way->rsp = 0; // of no further interest
}

// The same, where rsp is counted alone: at its return a way has come to the return address.
//
// rsp + 8 has to be a multiple of 16 there: the call was made with rsp at one, and pushed 8 bytes.
// All ends without a call before them have to say the same.
static void learn_end_counted(struct learn_frame *frame, const struct learn_way *way)
{
	uint32_t i = way->called;

	if (way->called && (way->rsp + UNWIND_WORD) % LEARN_CALL_ALIGN)
		return; // another function's
	if (way->rsp < 0 || (way->touched && way->saved_at == LEARN_NOWHERE) ||
	    (way->rsp + UNWIND_WORD) % LEARN_CALL_ALIGN ||
	    (frame->said[i] &&
	     (way->rsp != frame->back_at[i] || way->saved_at != frame->saved_at[i])))
		frame->denied[i] = true;
	frame->said[i] = true;
	frame->back_at[i] = way->rsp;
	frame->saved_at[i] = way->saved_at;
}

// The way is at its end, where the function returns or jumps to another one.
static void learn_end(struct learn_frame *frame, const struct learn_way *way)
{
	if (frame->counted)
		learn_end_counted(frame, way);
	else if (way->down)
		frame->said[way->called] = true;
	else
		frame->denied[way->called] = true;
}

// Whether that is how Go takes its frame down before 1.21: mov N(%rsp),%rbp; add $N+8,%rsp; ret.
// The way is at the return then.
static bool learn_down_late(struct learn_frame *frame, struct learn_way *way,
			    const struct learn_insn *found)
{
	const uint8_t *at = found->opcode;
	uint32_t number = at[1] == 0x6c ? 1 : 4; // bytes of N
	const uint8_t *add = at + 3 + number;
	int32_t offset;
	uint32_t bytes;

	if (*at != 0x8b || (at[1] != 0x6c && at[1] != 0xac) || at[2] != 0x24 || way->from_rbp ||
	    !learn_can_read(frame, (uintptr_t)add, 8))
		return false;
	offset = learn_number(at + 3, number);
	bytes = add[1] == 0x83 ? 1 : 4;
	if (add[0] != 0x48 || (add[1] != 0x83 && add[1] != 0x81) || add[2] != 0xc4 ||
	    learn_number(add + 3, bytes) != offset + UNWIND_WORD || add[3 + bytes] != 0xc3)
		return false;
	way->rsp += offset;
	learn_down(frame, way);
	way->at = (uintptr_t)(add + 3 + bytes);
	return true;
}

// What writes to rsp. False: it is none of those.
//
// pop, push, add and sub on rsp are counted; lea N(%rbp),%rsp and mov %rbp,%rsp make rsp known from
// rbp again. The numbers are in bytes, and only instructions with 64 bits (REX.W) count as such.
static bool learn_stack(struct learn_frame *frame, struct learn_way *way,
			const struct learn_insn *found)
{
	const uint8_t *at = found->opcode;
	bool wide = found->rex & 8;

	if (frame->counted && *at == 0x5d && !(found->rex & 1)) {
		way->saved_at = way->rsp;
		way->rsp += UNWIND_WORD;
	} else if (*at == 0xc9) { // leave
		way->from_rbp = true;
		way->rsp = 0;
		learn_down(frame, way);
	} else if (*at == 0x5d && !(found->rex & 1)) {
		learn_down(frame, way);
	} else if (*at >= 0x58 && *at <= 0x5f && (*at != 0x5c || (found->rex & 1))) {
		way->rsp += UNWIND_WORD;
	} else if ((*at >= 0x50 && *at <= 0x57) || *at == 0x68 || *at == 0x6a ||
		   (*at == 0xff && (found->reg & 7) == 6)) {
		way->rsp -= UNWIND_WORD;
	} else if ((*at == 0x83 || *at == 0x81) && wide && found->rm == LEARN_RSP &&
		   ((found->reg & 7) == 0 || (found->reg & 7) == 5)) {
		int32_t by = learn_number(at + 2, *at == 0x83 ? 1 : 4);

		way->rsp += (found->reg & 7) == 0 ? by : -by;
	} else if (wide && *at == 0x8d && found->reg == LEARN_RSP && !(found->rex & 3) &&
		   ((at[1] & 0xc7) == 0x45 || (at[1] & 0xc7) == 0x85)) { // lea N(%rbp),%rsp
		way->from_rbp = true;
		way->rsp = learn_number(at + 2, at[1] < 0x80 ? 1 : 4);
	} else if (wide && ((*at == 0x89 && found->rm == LEARN_RSP && found->reg == LEARN_RBP) ||
			    (*at == 0x8b && found->reg == LEARN_RSP && found->rm == LEARN_RBP))) {
		way->from_rbp = true;
		way->rsp = 0;
	} else {
		return wide && !frame->counted && learn_down_late(frame, way, found);
	}
	if (frame->counted && way->from_rbp && !way->called)
		frame->denied[0] = true; // it has a frame pointer after all
	return true;
}

// Of the map 0f, and of later ones. False: it may write to what is watched, or the way ends there.
//
// Vector instructions with VEX or EVEX prefixes are not understood but for vzeroupper (c5 f8 77).
static bool learn_far(const struct learn_insn *found)
{
	uint32_t opcode = found->opcode[1];

	if (*found->opcode != 0x0f) // VEX and what is like it: only what ends many functions
		return *found->opcode == 0xc5 && found->opcode[2] == 0x77;
	if (opcode == 0x0b || opcode == 0xb9 || opcode == 0xff)
		return false;
	if (opcode >= 0xc8 && opcode <= 0xcf)
		return !learn_is_frame(found, (opcode & 7) | (found->rex & 1) << 3);
	if (opcode == 0x38 || opcode == 0x3a || opcode == 0x01)
		return false;
	return !learn_is_frame(found, found->reg) && !learn_is_frame(found, found->rm);
}

// What fills the room between functions: after a call, it did not return.
static bool learn_is_filling(const struct learn_insn *found)
{
	const uint8_t *at = found->opcode;

	return *at == 0x90 || *at == 0xcc || (*at == 0x00 && at[1] == 0x00) ||
	       (*at == 0x0f && (at[1] == 0x1f || at[1] == 0x0b));
}

// Whether an instruction that no way ends with leaves what is watched alone.
static bool learn_goes_on(const struct learn_insn *found)
{
	uint32_t opcode = *found->opcode;

	if (opcode == 0xff)
		return (found->reg & 7) < 2 && !learn_is_frame(found, found->rm);
	if (opcode == 0x0f || opcode == 0xc4 || opcode == 0xc5 || opcode == 0x62)
		return learn_far(found);
	if (opcode == 0xcc || opcode == 0xf4 || opcode == 0xc8 || opcode == 0x8f)
		return false;
	return learn_has_operands(opcode) ? learn_leaves(found) : learn_leaves_short(found);
}

// endbr64
static bool learn_lands(const struct learn_insn *found)
{
	const uint8_t *at = found->opcode;

	return *at == 0x0f && at[1] == 0x1e && at[2] == 0xfa;
}

// What functions begin with: endbr64, push, sub $N,%rsp.
static bool learn_begins(const struct learn_insn *found)
{
	const uint8_t *at = found->opcode;

	return (*at >= 0x50 && *at <= 0x57) || learn_lands(found) ||
	       ((*at == 0x83 || *at == 0x81) && found->rm == LEARN_RSP && (found->reg & 7) == 5);
}

// int3, hlt, ud2: nothing comes after them.
static bool learn_stops(const struct learn_insn *found)
{
	const uint8_t *at = found->opcode;

	return *at == 0xcc || *at == 0xf4 || (*at == 0x0f && at[1] == 0x0b);
}

// One instruction, at which the way goes on or ends. False: it ends.
//
// A call goes on after itself, since most return; that it may not is noted (`called`, `behind`). A
// conditional jump leaves a second way for later.
static bool learn_step(struct learn_frame *frame, struct learn_way *way)
{
	struct learn_insn found;
	uint32_t opcode;
	uintptr_t next, to = 0;
	bool down;

	if (!learn_decode(frame, way->at, &found)) {
		frame->unclear = true;
		return false;
	}
	if (way->behind && (learn_is_filling(&found) || (frame->counted && learn_begins(&found))))
		return false;
	way->behind = false;
	opcode = *found.opcode;
	next = way->at + found.insn.length;
	if (found.insn.relative_at)
		to = next + (uintptr_t)(intptr_t)learn_number((const uint8_t *)way->at +
								      found.insn.relative_at,
							      found.insn.relative_bytes);
	way->at = next;
	if (opcode == 0xc3 || opcode == 0xc2 || (way->down && (opcode == 0xe9 || opcode == 0xeb)) ||
	    (way->down && opcode == 0xff && (found.reg & 7) == 4)) {
		learn_end(frame, way);
		return false;
	}
	if (opcode == 0xe9 || opcode == 0xeb) {
		// Unless somebody was there: it may be a loop.
		frame->unclear |= !learn_later(frame, way, to);
		return false;
	}
	if (opcode == 0xe8 || (opcode == 0xff && (found.reg & 7) == 2)) {
		way->called = way->behind = true;
		return !way->down;
	}
	if (found.insn.relative_at) {
		frame->unclear |= !learn_later(frame, way, to);
		return !way->down;
	}
	down = way->down;
	if (learn_stack(frame, way, &found)) // down, only the return is left
		return !down && !frame->denied[way->called] && !(frame->counted && way->from_rbp);
	if (learn_goes_on(&found))
		return true;
	if (frame->counted) { // rbp may be written to, which is noted
		found.watched = 1u << LEARN_RSP;
		way->touched = true;
		if (learn_goes_on(&found))
			return true;
	}
	frame->unclear |= !learn_stops(&found);
	return false;
}

// The next way to go: one that has come to no call, if there is any.
static struct learn_way *learn_next(struct learn_frame *frame)
{
	for (uint32_t called = 0; called < 2; called++) {
		for (uint32_t *at = &frame->next[called]; *at < frame->ways_count; (*at)++) {
			struct learn_way *way = &frame->ways[*at];

			if (!way->gone && way->called == called)
				return way;
		}
	}
	return NULL;
}

// Whether the function's own code says where its frame is. An end without a call before it decides.
//
// Ways that came past no call are followed first. A way that comes to its first call is put aside,
// if there is room, until all others are done.
static bool learn_by_code(struct learn_frame *frame)
{
	struct learn_way first = { .at = frame->pc, .saved_at = LEARN_NOWHERE }, *next;

	learn_later(frame, &first, frame->pc);
	while ((next = learn_next(frame)) != NULL) {
		if (next->called && frame->denied[1])
			break; // those that are left come past a call as well
		struct learn_way way = *next;

		next->gone = true;
		while (frame->steps++ < LEARN_STEPS && learn_step(frame, &way)) {
			if (!way.down && learn_was_here(frame, &way))
				break;
			if (way.called && !next->called && learn_later(frame, &way, way.at))
				break; // the others first
		}
		if (frame->denied[0] || frame->said[0])
			break;
	}
	if (frame->denied[0])
		return false;
	frame->unclear |= frame->steps >= LEARN_STEPS;
	return frame->said[0] || (frame->said[1] && !frame->denied[1]);
}

// By `jmp`, to where it says or to where a pointer does.
static bool learn_jumps(const struct learn_insn *found)
{
	return *found->opcode == 0xe9 || (*found->opcode == 0xff && (found->reg & 7) == 4);
}

// Whether that is how Go sets it up before 1.21: mov %rbp,N(%rsp); lea N(%rsp),%rbp.
static bool learn_sets_up_late(struct learn_frame *frame, const struct learn_insn *found)
{
	const uint8_t *at = found->opcode;
	uint32_t number = at[1] == 0x6c ? 1 : 4; // bytes of N
	uintptr_t next = (uintptr_t)at + 3 + number;

	return *at == 0x89 && (at[1] == 0x6c || at[1] == 0xac) && at[2] == 0x24 &&
	       learn_can_read(frame, next, 4 + number) && *(const uint8_t *)next == 0x48 &&
	       *(const uint8_t *)(next + 1) == 0x8d &&
	       memcmp((const void *)(next + 2), at + 1, 2 + number) == 0;
}

// Whether the function there sets up a frame pointer, or jumps elsewhere, which is not followed.
static bool learn_sets_up(struct learn_frame *frame, uintptr_t function)
{
	uintptr_t at = function;
	struct learn_insn found;
	bool pushed = false;

	while (at < function + LEARN_START_BYTES && learn_decode(frame, at, &found)) {
		uint32_t opcode = *found.opcode;

		if (pushed &&
		    ((opcode == 0x89 && found.rm == LEARN_RBP && found.reg == LEARN_RSP) ||
		     (opcode == 0x8b && found.reg == LEARN_RBP && found.rm == LEARN_RSP)))
			return true;
		if (learn_jumps(&found) || learn_sets_up_late(frame, &found))
			return true;
		pushed |= opcode == 0x55 && !(found.rex & 1);
		at += found.insn.length;
	}
	return false;
}

// Whether that is in Go's goexit, where each goroutine returns to as if it had been called there:
// nop; call …; nop, of which the second is returned to. Go's functions begin at multiples of 32.
static bool learn_is_goexit(struct learn_frame *frame, uintptr_t pc)
{
	enum { BYTES = 6, ALIGN = 32 };
	const uint8_t *at = (const uint8_t *)pc;

	return pc % ALIGN == 1 && learn_can_read(frame, pc - 1, 1 + BYTES) && at[-1] == 0x90 &&
	       at[0] == 0xe8 && at[BYTES - 1] == 0x90;
}

// Whether a stack ends there, since a return to it ends the process. It is what make_fcontext of
// Boost.Context, which PHP's fibers are made by as well, puts below a context's first function.
//
//     trampoline: push %rbp; jmp *%rbx        (rbp is the address of what follows)
//     finish:     xor %rdi,%rdi; call _exit; hlt
static bool learn_is_finish(struct learn_frame *frame, uintptr_t pc)
{
	static const uint8_t begin[] = { 0x55, 0xff, 0xe3 };
	enum { BYTES = 10 };
	const uint8_t *at = (const uint8_t *)pc;

	if (!learn_can_read(frame, pc - sizeof begin, sizeof begin + BYTES) ||
	    memcmp(at - sizeof begin, begin, sizeof begin) != 0)
		return false;
	at += at[0] == 0x48; // xor %edi,%edi does the same
	if (at[0] != 0x31 || at[1] != 0xff)
		return false;
	return (at[2] == 0xe8 && at[7] == 0xf4) ||
	       (at[2] == 0xff && at[3] == 0x15 && at[8] == 0xf4);
}

// Whether the word at `slot` is a return address. *target: of the call before it; 0: not said.
//
// e8 and four bytes is a call of a known function. ff /2 is one by a register or by memory, of 2 to
// 7 bytes: the operand says how many, and more than one length may fit.
static bool learn_is_return(struct learn_frame *frame, uintptr_t slot, uintptr_t *target)
{
	uintptr_t back;
	const uint8_t *at;

	*target = 0;
	if (slot % UNWIND_WORD || slot < frame->sp || !learn_can_read(frame, slot, UNWIND_WORD))
		return false;
	back = *(const uintptr_t *)slot;
	if (back < KERNEL_PAGE || back > UNWIND_ADDRESS_MAX || !learn_can_read(frame, back - 7, 7))
		return false;
	at = (const uint8_t *)back;
	if (at[-5] == 0xe8) {
		*target = back + (uintptr_t)(intptr_t)learn_number(at - 4, 4);
		return true;
	}
	for (uint32_t bytes = 2; bytes <= 7; bytes++) { // ff /2, with a prefix or not
		if (at[-(int)bytes] == 0xff && (at[1 - (int)bytes] >> 3 & 7) == 2)
			return true;
	}
	return learn_is_goexit(frame, back);
}

// Whether the word after the one at rbp is a return address, and its call can have led here.
static bool learn_by_call(struct learn_frame *frame)
{
	uintptr_t target;

	return frame->rbp >= frame->sp && learn_can_read(frame, frame->rbp, UNWIND_WORD) &&
	       learn_is_return(frame, frame->rbp + UNWIND_WORD, &target) &&
	       (!target || learn_sets_up(frame, target));
}

// Whether the function there can be the one that we are in, or jumps, to it perhaps.
//
// A megabyte is the most that a function is believed to have.
static bool learn_leads_here(struct learn_frame *frame, uintptr_t function)
{
	struct learn_insn found;

	if (function <= frame->pc && frame->pc - function < LEARN_FUNCTION_BYTES)
		return true;
	if (!learn_decode(frame, function, &found))
		return false;
	if (learn_lands(&found) && !learn_decode(frame, function + found.insn.length, &found))
		return false;
	return learn_jumps(&found);
}

// Whether the function there begins by making room for so much.
static bool learn_makes_room(struct learn_frame *frame, uintptr_t function, int32_t bytes)
{
	uintptr_t at = function;
	struct learn_way way = { .saved_at = LEARN_NOWHERE };
	struct learn_insn found;

	while (at < function + LEARN_START_BYTES && -way.rsp < bytes &&
	       learn_decode(frame, at, &found)) {
		found.watched = 1u << LEARN_RSP;
		if (found.insn.relative_at || *found.opcode == 0xff || *found.opcode == 0xc3 ||
		    (!learn_stack(frame, &way, &found) && !learn_goes_on(&found)))
			return false;
		at += found.insn.length;
	}
	return -way.rsp == bytes;
}

// The rule, by counting what its instructions do to rsp; 0: it is not proven.
//
// The ways are followed anew with `counted` set: what was found by rbp is of no use here.
static unwind_rule learn_by_count(struct learn_frame *frame, uint32_t id)
{
	uintptr_t target;
	int64_t cfa, saved;
	uint32_t i;

	frame->counted = true;
	frame->unclear = false;
	frame->steps = frame->ways_count = frame->next[0] = frame->next[1] = 0;
	memset(frame->starts, 0, sizeof frame->starts);
	frame->said[0] = frame->said[1] = frame->denied[0] = frame->denied[1] = false;
	if (frame->sp % LEARN_CALL_ALIGN || !learn_by_code(frame))
		return 0;
	i = !frame->said[0];
	cfa = frame->back_at[i] + UNWIND_WORD;
	if (!learn_is_return(frame, frame->sp + (uintptr_t)frame->back_at[i], &target) ||
	    (target && !learn_leads_here(frame, target)))
		return 0;
	if (i && frame->unclear &&
	    !(target && target <= frame->pc && learn_makes_room(frame, target, frame->back_at[i])))
		return 0;
	if (frame->saved_at[i] == LEARN_NOWHERE)
		return unwind_make(UNWIND_RSP, cfa, id);
	saved = frame->saved_at[i] - cfa;
	return unwind_can_save_at(saved) ? unwind_make_saving(UNWIND_RSP, cfa, saved, id) : 0;
}

// Whether that is a trampoline of CPython's, of which it makes one for each function, for perf to
// see, and never replaces one: add $N, %rsp; ret.
static bool learn_is_trampoline(struct learn_frame *frame)
{
	static const uint8_t add[] = { 0x48, 0x83, 0xc4 };
	const uint8_t *at = (const uint8_t *)frame->pc;

	return python_on && learn_can_read(frame, frame->pc, 5) &&
	       memcmp(at, add, sizeof(add)) == 0 && at[3] < 0x80 && at[4] == 0xc3;
}

// A number of one byte that is negative is none of these.
enum { LEARN_OFFSET_MAX = 120 };

// `mov N(%rsp),%R`, where R is in `modrm`: the bytes that it has, and N. 0: it is not.
static uint32_t learn_loads(const uint8_t *at, uint8_t modrm, uint32_t *offset)
{
	if (at[0] != 0x48 || at[1] != 0x8b || (at[2] & 0x3f) != (modrm & 0x3f) || at[3] != 0x24)
		return 0;
	*offset = at[2] & 0x40 ? at[4] : 0;
	if (*offset > LEARN_OFFSET_MAX || at[2] & 0x80)
		return 0;
	return at[2] & 0x40 ? 5 : 4;
}

// The bytes of `mov …(%rip),%rcx`, which is in front of `%fs:(%rcx)` in what can be loaded
// anywhere; `mov $…,%rcx` where the linker knew the number.
static uint32_t learn_thread_place(const uint8_t *at)
{
	bool from_memory = at[1] == 0x8b && at[2] == 0x0d, number = at[1] == 0xc7 && at[2] == 0xc1;

	return at[0] == 0x48 && (from_memory || number) ? 7 : 0;
}

// The rule of Go's asmcgocall, which calls C on another stack; 0: it is not that. After the call
//
//     mov A(%rsp),%rdi; mov 8(%rdi),%rsi; sub A-8(%rsp),%rsi; mov %rdi,%fs:…; mov %rsi,%rsp
//
// is: the goroutine, the end of its stack, how far from there it was, and that it runs again. Where
// it was on that stack already, it is `mov A(%rsp),%rsi; mov %rsi,%rsp`.
static unwind_rule learn_switches(struct learn_frame *frame, uint32_t id)
{
	static const uint8_t end[] = { 0x48, 0x8b, 0x77, 0x08, 0x48, 0x2b };
	static const uint8_t runs[] = { 0x64, 0x48, 0x89 };
	static const uint8_t switched[] = { 0x48, 0x89, 0xf4 };
	enum { BYTES = 48, OF_RDI = 0x3c, OF_RSI = 0x34 };
	const uint8_t *at = (const uint8_t *)frame->pc;
	uint32_t offset, bytes, distance;

	if (!learn_can_read(frame, frame->pc, BYTES))
		return 0;
	bytes = learn_loads(at, OF_RSI, &offset);
	if (bytes && memcmp(at + bytes, switched, sizeof switched) == 0)
		return unwind_make(UNWIND_RSP_DEREF, offset, id);
	at += learn_thread_place(at);
	bytes = learn_loads(at, OF_RDI, &offset);
	if (!bytes || memcmp(at + bytes, end, sizeof end) != 0)
		return 0;
	at += bytes + sizeof end;
	distance = at[0] == 0x34 ? 0 : at[2]; // (%rsp), or with a number
	if ((at[0] & 0x3f) != 0x34 || at[1] != 0x24 || distance + UNWIND_WORD != offset)
		return 0;
	at += at[0] == 0x34 ? 2 : 3;
	at += learn_thread_place(at);
	if (memcmp(at, runs, sizeof runs) != 0)
		return 0;
	at += at[sizeof runs] == 0x39 ? 4 : 9; // (%rcx), or a number
	return memcmp(at, switched, sizeof switched) == 0 ? unwind_make(UNWIND_SWITCHED, offset, id)
							  : 0;
}

// How often it was tried in vain is in the rule, where others have the cfa.
unwind_rule unwind_learn(unwind_rule rule, uint64_t key, uintptr_t, uintptr_t sp, uintptr_t rbp)
{
	struct learn_frame frame = { .pc = (uintptr_t)key, .sp = sp, .rbp = rbp };
	int64_t tries = unwind_cfa_offset(rule) / UNWIND_WORD;
	uint32_t id = unwind_frame(rule);
	unwind_rule proven = 0;
	struct codemap_place place;
	uint64_t signals;
	bool called, again;

	if (tries >= LEARN_TRIES || (key & UNWIND_EXACT) || kernel_sealed || kernel_nested())
		return rule;
	signals = kernel_block_signals();
	recording_lock(&recording_state->code_lock);
	place = codemap_find(frame.pc - 1);
	if (place.module)
		proven = learn_is_goexit(&frame, frame.pc) || learn_is_finish(&frame, frame.pc)
				 ? unwind_make(UNWIND_END, 0, id)
				 : learn_switches(&frame, id);
	// One is coming: a library, and nothing lasts there.
	called = !proven && !place.coming && learn_by_call(&frame);
	// A goroutine's first frame often has no end. Where it returns to is nowhere else.
	if (called &&
	    (learn_is_goexit(&frame, ((const uintptr_t *)frame.rbp)[1]) || learn_by_code(&frame)))
		proven = unwind_make_saving(UNWIND_RBP, 2 * UNWIND_WORD, -2 * UNWIND_WORD, id);
	// What code says without regard to where rbp is now, it says again. Generated code is
	// replaced, and nothing says when.
	again = !called || !place.module || frame.denied[0] || frame.denied[1];
	// Where so many steps came to no end, they would not if they are counted.
	if (!proven && (place.module || (!place.coming && learn_is_trampoline(&frame))) &&
	    tries == 0 && frame.steps < LEARN_STEPS)
		proven = learn_by_count(&frame, id);
	tries = again ? tries + 1 : LEARN_TRIES;
	rule = proven ? proven : unwind_make(UNWIND_GUESS_BLIND, tries * UNWIND_WORD, id);
	if (!place.coming)
		unwind_replace(key, rule);
	recording_unlock(&recording_state->code_lock);
	kernel_restore_signals(signals);
	if (proven) // what was guessed before is known now
		__atomic_fetch_add(&capture_epoch, 1, __ATOMIC_SEQ_CST);
	return rule;
}

#else

unwind_rule unwind_learn(unwind_rule rule, uint64_t key, uintptr_t inner, uintptr_t sp,
			 uintptr_t rbp)
{
	(void)key, (void)inner, (void)sp, (void)rbp;
	return rule;
}

#endif
