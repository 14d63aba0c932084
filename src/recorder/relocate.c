// For example, the function `sub $8,%rsp; call f; …` at 0x10000000, of which 5 bytes are needed:
//
//     48 83 ec 08       the same                                     4 bytes taken, 4 written
//     e8 05 00 00 00    push $0x10000009; movl $0,4(%rsp); jmp f     9 taken, 22 written
//     (goes on)         jmp *0(%rip); 0x10000009                     36 written
//
// An instruction is taken as a whole, so 9 bytes are free. The call became a push of the address
// after the old call, and a jump: f returns to the function itself, and a walk of the stack
// finds no address of ours. (Without RELOCATE_WALKED it would be a call in the copy, with another
// distance.)
#include "recorder/relocate.h"

#include "recorder/insn.h"

enum {
	RELOCATE_LOOK_BYTES = 160, // of the function, for branches back into its beginning
	RELOCATE_LOOK_MAX = 48,    // instructions
	OPCODE_CALL = 0xe8,
	OPCODE_JUMP = 0xe9,
	OPCODE_JUMP_8 = 0xeb,
	OPCODE_RET = 0xc3,
	OPCODE_RET_16 = 0xc2,
	OPCODE_TRAP = 0xcc,
	OPCODE_PUSH = 0x68,
	RELOCATE_ONE_MAX = 19, // bytes that one instruction becomes
};

// One copy in the making.
struct relocate_state {
	const uint8_t *code;
	size_t size;
	uint64_t code_at, to_at;
	uint8_t *to;
	size_t taken, written, need;
	bool wide;
	bool walked; // calls return to where they did
};

static int64_t relocate_signed(const uint8_t *at, size_t bytes)
{
	int32_t wide;
	int16_t middle;

	if (bytes == 1)
		return (int8_t)*at;
	if (bytes == 2) {
		__builtin_memcpy(&middle, at, 2);
		return middle;
	}
	__builtin_memcpy(&wide, at, 4);
	return wide;
}

// The distance that reaches `target` from behind byte `end`; false: none does. In 32-bit mode
// addresses wrap.
static bool relocate_distance(uint64_t end, uint64_t target, bool wide, int32_t *distance)
{
	int64_t far = (int64_t)(target - end);

	*distance = (int32_t)far;
	return !wide || far == *distance;
}

// Where the branch at byte `at` leads, as an address of the original code.
static uint64_t relocate_target(const struct relocate_state *state, size_t at,
				const struct insn *insn)
{
	int64_t distance =
		relocate_signed(state->code + at + insn->relative_at, insn->relative_bytes);
	uint64_t target = state->code_at + at + insn->length + (uint64_t)distance;

	return state->wide ? target : (uint32_t)target;
}

// A call whose target takes its return address from the stack: where the call stands matters.
//
// i386's position-independent code calls such a thunk to learn where it is: `mov (%esp),%ebx; ret`.
// Moved, it would learn the copy's address.
static bool relocate_asks_for_itself(const struct relocate_state *state, uint64_t target)
{
	uint64_t at = target - state->code_at;
	const uint8_t *code = state->code + at;

	if (at >= state->size || state->size - at < 4)
		return false; // not in sight
	return (code[0] == 0x8b && code[2] == 0x24 && code[3] == OPCODE_RET) ||
	       (code[0] & 0xf8) == 0x58; // mov (%esp),reg; ret. Or pop reg
}

// The call that stands at state->taken, as a push of its return address, for a jump to follow.
// False: that lies in the bytes that are taken away.
//
// push has 32 bits, which are sign-extended; in 64-bit mode the upper half is then written over.
static bool relocate_push(struct relocate_state *state, size_t length)
{
	static const uint8_t upper[] = { 0xc7, 0x44, 0x24, 0x04 }; // movl $upper,4(%rsp)
	uint64_t back = state->code_at + state->taken + length;
	uint8_t *to = state->to + state->written;
	uint32_t half = (uint32_t)back;

	if (state->taken + length < state->need)
		return false;
	to[0] = OPCODE_PUSH;
	__builtin_memcpy(to + 1, &half, 4);
	state->written += 5;
	if (!state->wide)
		return true;
	half = (uint32_t)(back >> 32);
	__builtin_memcpy(to + 5, upper, sizeof(upper));
	__builtin_memcpy(to + 5 + sizeof(upper), &half, 4);
	state->written += sizeof(upper) + 4;
	return true;
}

// A branch of any kind, in its long form.
//
// All get a distance of 32 bits: 70 to 7f (two bytes) become 0f 80 to 0f 8f (six). loop and jecxz
// have no long form.
static enum relocate_reason relocate_branch(struct relocate_state *state, const struct insn *insn)
{
	const uint8_t *from = state->code + state->taken + insn->opcode_at;
	uint64_t target = relocate_target(state, state->taken, insn);
	uint8_t *to = state->to + state->written;
	size_t length = 1;
	int32_t distance;

	if (insn->narrow || insn->opcode_at != 0)
		return RELOCATE_BRANCH;
	if (from[0] == OPCODE_CALL) {
		if (!state->walked && relocate_asks_for_itself(state, target))
			return RELOCATE_BRANCH;
		if (state->walked && !relocate_push(state, insn->length))
			return RELOCATE_BRANCH;
		to = state->to + state->written;
		to[0] = state->walked ? OPCODE_JUMP : OPCODE_CALL;
	} else if (from[0] == OPCODE_JUMP || from[0] == OPCODE_JUMP_8) {
		to[0] = OPCODE_JUMP;
	} else if ((from[0] & 0xf0) == 0x70 || (from[0] == 0x0f && (from[1] & 0xf0) == 0x80)) {
		to[0] = 0x0f;
		to[1] = (uint8_t)(0x80 | ((from[0] == 0x0f ? from[1] : from[0]) & 15));
		length = 2;
	} else {
		return RELOCATE_BRANCH; // loop, jecxz, xbegin
	}
	if (!relocate_distance(state->to_at + state->written + length + 4, target, state->wide,
			       &distance))
		return RELOCATE_REACH;
	__builtin_memcpy(to + length, &distance, 4);
	state->written += length + 4;
	return RELOCATE_DONE;
}

// call *
static bool relocate_is_call(const uint8_t *opcode)
{
	return opcode[0] == 0xff && (opcode[1] >> 3 & 6) == 2;
}

// Whether its operand is found by the stack pointer, which a push moves.
static bool relocate_uses_stack(const uint8_t *from, const struct insn *insn)
{
	uint8_t modrm = from[insn->opcode_at + 1];

	return (modrm & 7) == 4; // %rsp itself, or more than a register and a displacement
}

// The displacement of an operand by rip is corrected by how far the instruction was moved. `jmp *`
// differs from `call *` by 2 in the reg field of its modrm (ff /2 and ff /4).
static enum relocate_reason relocate_one(struct relocate_state *state, const struct insn *insn)
{
	const uint8_t *from = state->code + state->taken;
	uint8_t *to = state->to + state->written;
	int32_t distance;

	if (insn->relative_at)
		return relocate_branch(state, insn);
	if (state->walked && relocate_is_call(from + insn->opcode_at)) {
		if (relocate_uses_stack(from, insn) || !relocate_push(state, insn->length))
			return RELOCATE_BRANCH;
		to = state->to + state->written;
		__builtin_memcpy(to, from, insn->length);
		to[insn->opcode_at + 1] += 2 << 3; // jmp *
	} else {
		__builtin_memcpy(to, from, insn->length);
	}
	if (insn->rip_at) {
		uint64_t target = state->code_at + state->taken + insn->length +
				  (uint64_t)relocate_signed(from + insn->rip_at, 4);

		if (insn->narrow && insn->opcode_at && from[0] == 0x67)
			return RELOCATE_REACH; // relative to 32 bits of the instruction pointer
		if (!relocate_distance(state->to_at + state->written + insn->length, target, true,
				       &distance))
			return RELOCATE_REACH;
		__builtin_memcpy(to + insn->rip_at, &distance, 4);
	}
	state->written += insn->length;
	return RELOCATE_DONE;
}

// Whether control never goes on behind this instruction.
static bool relocate_ends(const uint8_t *code, const struct insn *insn)
{
	const uint8_t *opcode = code + insn->opcode_at;

	switch (opcode[0]) {
	case OPCODE_JUMP:
	case OPCODE_JUMP_8:
	case OPCODE_RET:
	case OPCODE_RET_16:
	case OPCODE_TRAP:
		return true;
	case 0xff: // jmp *
		return (opcode[1] >> 3 & 6) == 4;
	default:
		return false;
	}
}

// Whether a branch of the function, as far as it is looked at, leads into the bytes taken.
//
// Only what is within 160 bytes and 48 instructions is looked at: a branch
// back from further away is missed.
static bool relocate_is_entered(const struct relocate_state *state)
{
	size_t limit = state->size < RELOCATE_LOOK_BYTES ? state->size : RELOCATE_LOOK_BYTES;
	size_t at = 0;
	struct insn insn;

	for (int count = 0; at < limit && count < RELOCATE_LOOK_MAX; count++, at += insn.length) {
		if (!insn_decode(state->code + at, limit - at, state->wide, &insn))
			return false;
		if (insn.relative_at) {
			uint64_t into = relocate_target(state, at, &insn) - state->code_at;

			if (into > 0 && into < state->taken)
				return true;
		}
	}
	return false;
}

size_t relocate_jump(uint8_t *out, uint64_t at, uint64_t target, bool wide)
{
	int32_t distance;

	if (!relocate_distance(at + RELOCATE_JUMP_BYTES, target, wide, &distance))
		return 0;
	out[0] = OPCODE_JUMP;
	__builtin_memcpy(out + 1, &distance, 4);
	return RELOCATE_JUMP_BYTES;
}

// ff 25 00 00 00 00 and the eight bytes of the address: no register is touched. 14 bytes.
size_t relocate_jump_far(uint8_t *out, uint64_t target)
{
	static const uint8_t far[6] = { 0xff, 0x25 }; // jmp *0(%rip)

	__builtin_memcpy(out, far, 6);
	__builtin_memcpy(out + 6, &target, 8);
	return RELOCATE_FAR_BYTES;
}

// It ends with a jump to the first instruction that was not taken. `taken` is at least `need`.
static enum relocate_reason relocate_do(struct relocate_state state, struct relocate *relocate)
{
	uint8_t *to = state.to;
	bool ended = false;
	enum relocate_reason reason;
	struct insn insn;

	*relocate = (struct relocate){ 0 };
	while (state.taken < state.need) {
		const uint8_t *at = state.code + state.taken;

		// What comes after a return or a jump may be another function.
		if (ended)
			return RELOCATE_SHORT;
		if (state.written > RELOCATE_BYTES_MAX - RELOCATE_ONE_MAX - RELOCATE_FAR_BYTES ||
		    !insn_decode(at, state.size - state.taken, state.wide, &insn))
			return RELOCATE_UNKNOWN;
		reason = relocate_one(&state, &insn);
		if (reason != RELOCATE_DONE)
			return reason;
		if (state.taken == 0)
			relocate->begins_in_jump = at[0] == OPCODE_JUMP || at[0] == 0xff ||
						   at[0] == OPCODE_JUMP_8;
		ended = relocate_ends(at, &insn);
		state.taken += insn.length;
	}
	if (relocate_is_entered(&state))
		return RELOCATE_BRANCH;
	to += state.written;
	state.written += state.wide ? relocate_jump_far(to, state.code_at + state.taken)
				    : relocate_jump(to, state.to_at + state.written,
						    state.code_at + state.taken, false);
	relocate->taken = (uint32_t)state.taken;
	relocate->written = (uint32_t)state.written;
	return RELOCATE_DONE;
}

enum relocate_reason relocate_copy(const uint8_t *code, size_t size, uint64_t code_at, uint8_t *to,
				   uint64_t to_at, size_t need, unsigned how,
				   struct relocate *relocate)
{
	struct relocate_state state = { .code = code,
					.size = size,
					.code_at = code_at,
					.to = to,
					.to_at = to_at,
					.need = need,
					.wide = how & RELOCATE_WIDE,
					.walked = how & RELOCATE_WALKED };

	return relocate_do(state, relocate);
}

const char *relocate_why(enum relocate_reason reason)
{
	switch (reason) {
	case RELOCATE_UNKNOWN:
		return "begins with an instruction that is not known";
	case RELOCATE_BRANCH:
		return "begins with a branch that cannot be moved";
	case RELOCATE_REACH:
		return "begins with an operand that would be out of reach";
	case RELOCATE_SHORT:
		return "is too short";
	case RELOCATE_DONE:
		break;
	}
	return "may not be changed";
}
