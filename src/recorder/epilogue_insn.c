// What an instruction does to what is known. A value is a register as it was at the start, or what
// lay in memory at such a place, plus a number. For example, after `mov 8(%esp),%eax` eax is "what
// lay at esp + 8"; after `add $4,%eax` the same + 4; after `and $-16,%eax` it is unknown. `push
// %ebp`, while ebp is what it was, says where the caller's is kept: at esp - 4, for example.
//
// Most opcodes need only be known for the registers that they write, which are lost then. One that
// is missed would be the only danger: what is here is all of the one-byte map, and of 0f all that
// writes general registers.
#include "recorder/epilogue_own.h"

// ---- Values ---------------------------------------------------------------------------------

// What was noted as being on top of the stack was by esp, so that goes too.
void epilogue_lose(struct epilogue_state *state, uint32_t which)
{
	state->registers[which] = (struct epilogue_value){ .base = BASE_UNKNOWN };
	if (which == ESP)
		state->pushed = false;
}

void epilogue_add(struct epilogue_state *state, uint32_t which, int32_t bytes)
{
	state->registers[which].offset += bytes;
	if (which == ESP)
		state->arguments = 0;
}

static struct epilogue_value epilogue_number(int32_t number)
{
	return (struct epilogue_value){ .base = BASE_NUMBER, .offset = number };
}

// What lies in memory at an address. Where the stack was free at any time since the start, only
// what was put there since means something, and of that no more is known than where the caller's
// ebp is.
//
// For example, esp came out to +8 once (`freed` is 8) and is at 0 again: the words at 0 and 4 may
// have been written by a handler or a callee since, so only what was stored there after that is
// known.
static struct epilogue_value epilogue_load(const struct epilogue_state *state,
					   struct epilogue_value address)
{
	struct epilogue_value value = { .at = address.offset };

	if (address.base == BASE_ESP && address.offset < state->freed)
		value.base = state->keeps_ebp && state->kept_at == address.offset ? BASE_EBP
										  : BASE_UNKNOWN;
	else if (address.base == BASE_ESP)
		value.base = BASE_AT_ESP;
	else if (address.base == BASE_EBP)
		value.base = BASE_AT_EBP;
	else if (address.base == BASE_NUMBER)
		value.base = BASE_AT_NUMBER;
	return value;
}

// `which` is stored at an address: it may be the caller's ebp.
//
// Of all that is stored only the caller's ebp is remembered, since the rule asks for nothing else.
static void epilogue_store(struct epilogue_state *state, uint32_t which,
			   struct epilogue_value address)
{
	const struct epilogue_value *value = &state->registers[which];

	if (which == EBP && value->base == BASE_EBP && value->offset == 0 &&
	    address.base == BASE_ESP && !state->keeps_ebp) {
		state->keeps_ebp = true;
		state->kept_at = address.offset;
	}
}

// A pop takes what the last push has put there, if that was noted; else what lies there. It makes
// `arguments` smaller: a caller that cleans up by pops has pushed no argument then.
static void epilogue_pop(struct epilogue_state *state, uint32_t which)
{
	struct epilogue_value from = state->registers[ESP], value = epilogue_load(state, from);
	int32_t pushed;

	if (from.base == BASE_ESP && state->keeps_ebp && from.offset == state->kept_at)
		state->keeps_ebp = false; // it is no longer on the stack
	if (epilogue_is_on_top(state)) {
		if (state->number)
			value = epilogue_number((int32_t)state->number);
		state->pushed = false;
	}
	pushed = state->arguments - 4;
	epilogue_add(state, ESP, 4);
	state->registers[which] = value;
	state->arguments = pushed > 0 ? pushed : 0;
}

void epilogue_leave(struct epilogue_state *state)
{
	state->registers[ESP] = state->registers[EBP];
	epilogue_pop(state, EBP);
}

// What any function may change.
//
// eax, ecx and edx are the caller's to save, in all conventions of Windows.
void epilogue_called(struct epilogue_state *state, int32_t pops)
{
	epilogue_lose(state, EAX);
	epilogue_lose(state, ECX);
	epilogue_lose(state, EDX);
	if (pops == EPILOGUE_POPS_UNKNOWN)
		epilogue_lose(state, ESP);
	else
		epilogue_add(state, ESP, pops);
	state->arguments = 0;
}

// The operand of the modrm at `at`.
//
// A scaled index makes the address unknown; so does a prefix for 16-bit addresses.
void epilogue_operand(struct epilogue_at *at, const uint8_t *modrm,
		      const struct epilogue_state *state)
{
	uint32_t base = modrm[0] & 7;
	const uint8_t *more = modrm + 1;

	at->mode = modrm[0] >> 6;
	at->reg = modrm[0] >> 3 & 7;
	at->rm = modrm[0] & 7;
	at->has_address = at->mode != 3;
	at->address = (struct epilogue_value){ .base = BASE_UNKNOWN };
	if (at->mode == 3 || at->insn.narrow)
		return;
	if (base == ESP) { // a byte of scale, index and base
		if ((more[0] >> 3 & 7) != ESP)
			return;
		base = *more++ & 7;
	}
	if (at->mode == 0 && base == EPILOGUE_MODRM_ABSOLUTE) {
		at->address = epilogue_number(epilogue_32(more));
		return;
	}
	at->address = state->registers[base];
	if (at->mode == 1)
		at->address.offset += (int8_t)more[0];
	else if (at->mode == 2)
		at->address.offset += epilogue_32(more);
}

// ---- Instructions ---------------------------------------------------------------------------

// A register of 32 bits, or the one that a register of 8 bits is a part of, has another value.
//
// The 8-bit registers ah, ch, dh and bh have the numbers 4 to 7, and are parts of 0 to 3.
static void epilogue_lose_rm(struct epilogue_state *state, const struct epilogue_at *at, bool byte)
{
	if (at->mode == 3)
		epilogue_lose(state, byte ? at->rm & 3u : at->rm);
}

static void epilogue_lose_reg(struct epilogue_state *state, const struct epilogue_at *at, bool byte)
{
	epilogue_lose(state, byte ? at->reg & 3u : at->reg);
}

// 50 to 57 push a register. If it still has the value that it came in with, the function saves it;
// it is not an argument then.
void epilogue_push(struct epilogue_state *state, const struct epilogue_at *at)
{
	uint32_t which = at->op[0] & 7;
	const struct epilogue_value *value = &state->registers[which];
	bool saves = (at->op[0] & 0xf8) == 0x50 && value->offset == 0 &&
		     (value->base == BASE_EBP ||
		      (value->base == BASE_OWN && value->at == (int32_t)which));
	int32_t arguments = state->arguments + 4;

	if (at->insn.narrow)
		epilogue_lose(state, ESP);
	else
		epilogue_add(state, ESP, -4);
	state->arguments = saves ? 0 : arguments;
}

// add, or, adc, sbb, and, sub, xor, cmp with a number.
//
// 83 has one byte, sign-extended, 80 one, 81 four. Only add (reg 0) and sub (reg 5) keep a value
// known; cmp (reg 7) changes nothing.
static void epilogue_with_number(struct epilogue_state *state, const struct epilogue_at *at)
{
	int32_t value;

	if (at->mode != 3 || at->reg == 7)
		return;
	value = at->op[0] == 0x83 ? (int8_t)at->op[2] : epilogue_32(at->op + 2);
	if (at->op[0] == 0x80 || at->insn.narrow || (at->reg != 0 && at->reg != 5))
		epilogue_lose_rm(state, at, at->op[0] == 0x80);
	else
		epilogue_add(state, at->rm, at->reg == 0 ? value : -value);
}

void epilogue_make_room(struct epilogue_state *state, uint32_t which)
{
	const struct epilogue_value *value = &state->registers[which];

	if (value->base == BASE_NUMBER)
		epilogue_add(state, ESP, -value->offset);
	else
		epilogue_lose(state, ESP);
}

// 00 to 3f, by the lower three bits: 0 and 1 write to rm, 2 and 3 to reg, 4 and 5 to al or eax, 6
// and 7 push and pop a segment register, or are a prefix or daa and the like.
static void epilogue_arithmetic(struct epilogue_state *state, const struct epilogue_at *at)
{
	uint32_t form = at->op[0] & 7;

	if (at->op[0] >= 0x38 && at->op[0] < 0x3e) // cmp
		return;
	if ((at->op[0] == 0x29 && at->mode == 3 && at->rm == ESP) ||
	    (at->op[0] == 0x2b && at->mode == 3 && at->reg == ESP))
		epilogue_make_room(state, form == 1 ? at->reg : at->rm);
	else if (form < 2)
		epilogue_lose_rm(state, at, form == 0);
	else if (form < 4)
		epilogue_lose_reg(state, at, form == 2);
	else if (form < 6)
		epilogue_lose(state, EAX);
	else
		epilogue_add(state, ESP, form == 6 ? -4 : 4); // push and pop of segments
	if (form >= 6 && (at->op[0] & 0xe7) == 0x27)          // daa and its like are no pops
		epilogue_add(state, ESP, -4);
}

// 88 and 89 store, 8a and 8b load, 8d is lea. Of 16 or 8 bits only a part of the register is
// written, and all of it counts as lost.
static void epilogue_move(struct epilogue_state *state, const struct epilogue_at *at)
{
	switch (at->op[0]) {
	case 0x88:
		epilogue_lose_rm(state, at, true);
		break;
	case 0x89:
		if (at->has_address)
			epilogue_store(state, at->reg, at->address);
		else if (at->insn.narrow)
			epilogue_lose_rm(state, at, false);
		else
			state->registers[at->rm] = state->registers[at->reg];
		break;
	case 0x8a:
		epilogue_lose_reg(state, at, true);
		break;
	case 0x8b:
		if (at->insn.narrow)
			epilogue_lose_reg(state, at, false);
		else
			state->registers[at->reg] = at->has_address
							    ? epilogue_load(state, at->address)
							    : state->registers[at->rm];
		break;
	default: // lea
		state->registers[at->reg] = at->address;
		break;
	}
}

// Behind 0f: what writes registers.
//
// cmov, imul, movzx, bsf and the like write reg; setcc a byte of rm; cpuid, cmpxchg, readings of
// counters and system calls write several registers; c8 to cf is bswap.
static void epilogue_more(struct epilogue_state *state, const struct epilogue_at *at)
{
	uint8_t op = at->op[1];

	if ((op & 0xf0) == 0x40 || op == 0xaf || op == 0xb6 || op == 0xb7 ||
	    (op >= 0xbc && op <= 0xbf) || op == 0xb8 || op == 0x2c || op == 0x2d || op == 0x50 ||
	    op == 0xd7 || op == 0xc5 || op == 0x02 || op == 0x03)
		epilogue_lose_reg(state, at, false);
	else if ((op & 0xf0) == 0x90)
		epilogue_lose_rm(state, at, true);
	else if (op == 0xb0 || op == 0xb1 || op == 0xc7 || op == 0xa2 || op == 0x31 || op == 0x01 ||
		 op == 0x05 || op == 0x34)
		for (uint32_t i = EAX; i <= EBX; i++)
			epilogue_lose(state, i);
	else if (op >= 0xc8 && op < 0xd0)
		epilogue_lose(state, op & 7);
	else if (op == 0xa0 || op == 0xa8)
		epilogue_add(state, ESP, -4);
	else if (op == 0xa1 || op == 0xa9)
		epilogue_add(state, ESP, 4);
	if (op == 0xb1 || op == 0xc0 || op == 0xc1 || op == 0xa4 || op == 0xa5 || op == 0xac ||
	    op == 0xad || op == 0xab || op == 0xb3 || op == 0xbb || op == 0xba || op == 0x7e ||
	    op == 0xc7)
		epilogue_lose_rm(state, at, false);
	if (op == 0xc0 || op == 0xc1)
		epilogue_lose_reg(state, at, op == 0xc0);
}

// What lies at esp now; 0: something that is no return address.
//
// Delphi and SEH prologues push a place to go on at, and return to it: such a number must not be
// taken for a return address of the function.
static void epilogue_note(struct epilogue_state *state, uintptr_t number)
{
	state->pushed = true;
	state->number = number;
	state->pushed_at = state->registers[ESP];
	state->pushed_value = epilogue_number((int32_t)number);
}

// Instructions of which the opcode says what they write. What is not listed here writes no general
// register.
static void epilogue_other(struct epilogue_state *state, const struct epilogue_at *at)
{
	uint8_t op = at->op[0];

	switch (op) {
	// pusha, popa: eight words. popa leaves esp out.
	case 0x60:
	case 0x61:
		for (uint32_t i = EAX; i < REGISTERS; i++)
			if (i != ESP && op == 0x61)
				epilogue_lose(state, i);
		epilogue_add(state, ESP, op == 0x60 ? -32 : 32);
		break;
	// push of a number; pushf.
	case 0x68:
	case 0x6a:
	case 0x9c:
		epilogue_push(state, at);
		if (op == 0x68 && !at->insn.narrow)
			epilogue_note(state, (uint32_t)epilogue_32(at->op + 1));
		break;
	// popf.
	case 0x9d:
		epilogue_add(state, ESP, 4);
		break;
	// imul with a number.
	case 0x69:
	case 0x6b:
		epilogue_lose_reg(state, at, false);
		break;
	// add, or, adc, sbb, and, sub, xor, cmp with a number.
	case 0x80:
	case 0x81:
	case 0x82:
	case 0x83:
		epilogue_with_number(state, at);
		break;
	// xchg: with the top of the stack, what was pushed is there no more.
	case 0x86:
	case 0x87:
		if (at->address.base == state->registers[ESP].base &&
		    at->address.offset == state->registers[ESP].offset)
			epilogue_note(state, 0);
		epilogue_lose_reg(state, at, op == 0x86);
		epilogue_lose_rm(state, at, op == 0x86);
		break;
	// mov; lea.
	case 0x88 ... 0x8b:
	case 0x8d:
		epilogue_move(state, at);
		break;
	// pop into a register or memory.
	case 0x8f:
		if (at->mode == 3)
			epilogue_pop(state, at->rm);
		else
			epilogue_add(state, ESP, 4);
		break;
	// xchg with eax.
	case 0x91 ... 0x97:
		epilogue_lose(state, op & 7);
		epilogue_lose(state, EAX);
		break;
	// What writes eax, edx or a part of them: cwde, cdq, lahf, mov al, aam, aad, xlat, in.
	case 0x98:
	case 0x99:
	case 0x9f:
	case 0xa0:
	case 0xd4 ... 0xd7:
	case 0xe4 ... 0xe7:
	case 0xec ... 0xef:
		epilogue_lose(state, EAX);
		epilogue_lose(state, EDX);
		break;
	// mov eax from an address.
	case 0xa1:
		state->registers[EAX] =
			epilogue_load(state, epilogue_number(epilogue_32(at->op + 1)));
		if (at->insn.narrow)
			epilogue_lose(state, EAX);
		break;
	// ins, outs, movs, cmps, stos, lods, scas; with rep they count ecx down.
	case 0x6c ... 0x6f:
	case 0xa4 ... 0xa7:
	case 0xaa ... 0xaf:
		epilogue_lose(state, EAX);
		epilogue_lose(state, ECX);
		epilogue_lose(state, ESI);
		epilogue_lose(state, EDI);
		break;
	// mov of a number into a byte of a register.
	case 0xb0 ... 0xb7:
		epilogue_lose(state, op & 3);
		break;
	// mov of a number into a register.
	case 0xb8 ... 0xbf:
		state->registers[op & 7] = epilogue_number(epilogue_32(at->op + 1));
		if (at->insn.narrow)
			epilogue_lose(state, op & 7);
		break;
	// Shifts; mov of a number into memory or a register.
	case 0xc0:
	case 0xc1:
	case 0xc6:
	case 0xc7:
	case 0xd0 ... 0xd3:
		epilogue_lose_rm(state, at, !(op & 1));
		break;
	// enter.
	case 0xc8:
		epilogue_lose(state, ESP);
		epilogue_lose(state, EBP);
		break;
	// leave.
	case 0xc9:
		epilogue_leave(state);
		break;
	// test writes nothing; not, neg; mul, imul, div, idiv.
	case 0xf6:
	case 0xf7:
		if (at->reg == 2 || at->reg == 3)
			epilogue_lose_rm(state, at, op == 0xf6);
		if (at->reg >= 4) {
			epilogue_lose(state, EAX);
			epilogue_lose(state, EDX);
		}
		break;
	// inc and dec of a byte.
	case 0xfe:
		epilogue_lose_rm(state, at, true);
		break;
	default:
		break;
	}
}

// 40 to 4f are inc and dec, 50 to 57 push, 58 to 5f pop, each with the register in the lower three
// bits.
void epilogue_plain(struct epilogue_state *state, const struct epilogue_at *at)
{
	uint8_t op = at->op[0];

	if (op == 0x0f)
		epilogue_more(state, at);
	else if (op < 0x40)
		epilogue_arithmetic(state, at);
	else if (op < 0x50)
		epilogue_add(state, op & 7, op < 0x48 ? 1 : -1);
	else if (op < 0x58) {
		epilogue_push(state, at);
		epilogue_store(state, op & 7, state->registers[ESP]);
		if (epilogue_is_back(state, &state->registers[op & 7])) {
			epilogue_note(state, 0);
			state->pushed_value = state->registers[op & 7];
		}
	} else if (op < 0x60)
		epilogue_pop(state, op & 7);
	else
		epilogue_other(state, at);
}
