// For example, in 64-bit mode:
//
//     48 8b 05 01 02 03 04   mov 0x04030201(%rip),%rax
//
// 48 is REX, a prefix; the opcode is 8b, at byte 1, and the table says 'm': a modrm follows. It is
// 05, mode 0 with base 5, which means rip and 32 bits: rip_at is 3, and the length 7. In 32-bit
// mode 48 is `dec %eax`, an instruction of one byte; and 8b 05 names an address, so rip_at would be
// 0.
#include "recorder/insn.h"

// What follows an opcode. The letters of the tables below.
enum insn_form {
	FORM_NONE = '.',
	FORM_BAD = '!',
	FORM_MODRM = 'm',
	FORM_MODRM_8 = 'M',  // and an immediate byte
	FORM_MODRM_Z = 'Z',  // and one of the operand's size, 4 at most
	FORM_MODRM_16 = 'Y', // SSE4a: and two bytes, with a prefix
	FORM_MEMORY = 'l',   // a modrm that must name memory
	FORM_REGISTER = 'c', // a modrm whose mode is not looked at: control registers
	FORM_TEST_8 = 't',   // groups of which only the first two have an immediate
	FORM_TEST_Z = 'T',
	FORM_8 = 'b',
	FORM_16 = 'w',
	FORM_24 = 'e', // enter
	FORM_Z = 'z',
	FORM_FULL = 'v',  // 8 bytes with REX.W
	FORM_MOFFS = 'o', // an address of full size
	FORM_FAR = 'f',
	FORM_REL_8 = 'r',
	FORM_REL_Z = 'R',
	FORM_OLD = '3',    // only in 32-bit mode
	FORM_OLD_8 = '4',  // the same, with a byte
	FORM_OLD_M8 = '5', // the same, with modrm and a byte
	FORM_FAR_OLD = '6',
};

// Opcodes of one byte, 16 a line. Prefixes and escapes are '!': they have been taken before.
static const char insn_map_1[] = "mmmmbz33mmmmbz3!"  // 00
				 "mmmmbz33mmmmbz33"  // 10
				 "mmmmbz!3mmmmbz!3"  // 20
				 "mmmmbz!3mmmmbz!3"  // 30
				 "................"  // 40: REX has been taken
				 "................"  // 50
				 "33lm!!!!zZbM...."  // 60
				 "rrrrrrrrrrrrrrrr"  // 70
				 "MZ5Mmmmmmmmmmlmm"  // 80
				 "..........6....."  // 90
				 "oooo....bz......"  // a0
				 "bbbbbbbbvvvvvvvv"  // b0
				 "MMw.llMZe.w..b3."  // c0
				 "mmmm443.mmmmmmmm"  // d0
				 "rrrrbbbbRR6r...."  // e0
				 "!.!!..tT......mm"; // f0

// Behind 0f.
static const char insn_map_0f[] = "mmmm!.....!.!m.M"  // 00
				  "mmmmmmmmmmmmmmmm"  // 10
				  "cccc!!!!mmmmmmmm"  // 20
				  "......!.!!!!!!!!"  // 30
				  "mmmmmmmmmmmmmmmm"  // 40
				  "mmmmmmmmmmmmmmmm"  // 50
				  "mmmmmmmmmmmmmmmm"  // 60
				  "MMMMmmm.Ymmmmmmm"  // 70
				  "RRRRRRRRRRRRRRRR"  // 80
				  "mmmmmmmmmmmmmmmm"  // 90
				  "...mMmmm...mMmmm"  // a0
				  "mmmmmmmmmmMmmmmm"  // b0
				  "mmMmMMMm........"  // c0
				  "mmmmmmmmmmmmmmmm"  // d0
				  "mmmmmmmmmmmmmmmm"  // e0
				  "mmmmmmmmmmmmmmmm"; // f0

// What is known while an instruction is read.
struct insn_state {
	const uint8_t *code;
	size_t size;
	size_t at;
	bool wide;
	bool operand_16; // 66
	bool address_67; // 67
	bool repeat;     // f2 or f3
	bool lock;
	uint8_t repeat_byte;
	uint8_t rex; // 0: none
	bool failed; // it goes beyond `size`
};

// A byte further on. Behind the end it is 0, and `failed` says so: it is looked at once, when all
// was read.
static uint8_t insn_byte(struct insn_state *state, size_t ahead)
{
	if (state->at + ahead < state->size)
		return state->code[state->at + ahead];
	state->failed = true;
	return 0;
}

// Prefixes may come in any order and more than once. In 64-bit mode a REX (40 to 4f) counts only
// right before the opcode.
static void insn_prefixes(struct insn_state *state)
{
	for (; state->at < INSN_BYTES_MAX; state->at++) {
		uint8_t byte = insn_byte(state, 0);

		switch (byte) {
		case 0x66:
			state->operand_16 = true;
			break;
		case 0x67:
			state->address_67 = true;
			break;
		case 0xf2:
		case 0xf3:
			state->repeat = true;
			state->repeat_byte = byte;
			break;
		case 0xf0:
			state->lock = true;
			break;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0x64:
		case 0x65:
			break;
		default:
			if (!state->wide || (byte & 0xf0) != 0x40)
				return;
			state->rex = byte;
			continue;
		}
		state->rex = 0; // one that is not the last prefix means nothing
	}
}

// The modrm byte and what it asks for. Returns it.
//
// For example, 44 24 08 in 64-bit mode: mode 1, base 4, so a SIB byte (24) and one byte of
// displacement: three bytes in all. 05 with mode 0 is a displacement of four bytes from rip.
static uint8_t insn_modrm(struct insn_state *state, struct insn *insn)
{
	uint8_t modrm = insn_byte(state, 0);
	uint8_t mode = modrm >> 6, base = modrm & 7;
	bool address_16 = !state->wide && state->address_67;

	state->at++;
	if (mode == 3)
		return modrm;
	if (address_16) {
		if (mode == 1)
			state->at += 1;
		else if (mode == 2 || base == 6)
			state->at += 2;
		return modrm;
	}
	if (base == 4) { // a scale-index-base byte
		base = insn_byte(state, 0) & 7;
		state->at++;
		if (mode == 0 && base == 5)
			state->at += 4;
	} else if (mode == 0 && base == 5) {
		if (state->wide)
			insn->rip_at = (uint8_t)state->at;
		state->at += 4;
	}
	if (mode == 1)
		state->at += 1;
	else if (mode == 2)
		state->at += 4;
	return modrm;
}

static void insn_relative(const struct insn_state *state, struct insn *insn, size_t bytes)
{
	insn->relative_at = (uint8_t)state->at;
	insn->relative_bytes = (uint8_t)bytes;
}

// What follows the opcode. False: it is none.
//
// z is the operand's size, 4, or 2 with the prefix 66. An immediate of 8 bytes is only in b8 to bf
// with REX.W.
static bool insn_operands(struct insn_state *state, struct insn *insn, enum insn_form form)
{
	bool word = state->operand_16 && !(state->rex & 8);
	size_t z = word ? 2 : 4;
	uint8_t modrm;

	switch (form) {
	case FORM_NONE:
		return true;
	case FORM_MODRM:
		insn_modrm(state, insn);
		return true;
	case FORM_MODRM_8:
		insn_modrm(state, insn);
		state->at += 1;
		return true;
	case FORM_MODRM_Z:
		insn_modrm(state, insn);
		state->at += z;
		return true;
	case FORM_MODRM_16:
		insn_modrm(state, insn);
		if (state->operand_16 || state->repeat_byte == 0xf2)
			state->at += 2;
		return true;
	case FORM_MEMORY:
		modrm = insn_modrm(state, insn);
		return modrm >> 6 != 3;
	case FORM_REGISTER:
		state->at += 1;
		return true;
	case FORM_TEST_8:
	case FORM_TEST_Z:
		modrm = insn_modrm(state, insn);
		if ((modrm >> 3 & 7) < 2)
			state->at += form == FORM_TEST_8 ? 1 : z;
		return true;
	case FORM_8:
	case FORM_OLD_8:
		state->at += 1;
		return form == FORM_8 || !state->wide;
	case FORM_16:
		state->at += 2;
		return true;
	case FORM_24:
		state->at += 3;
		return true;
	case FORM_Z:
		state->at += z;
		return true;
	case FORM_FULL:
		state->at += state->rex & 8 ? 8 : z;
		return true;
	case FORM_MOFFS:
		state->at += (size_t)(state->wide ? 8 : 4) >> state->address_67;
		return true;
	case FORM_REL_8:
		insn_relative(state, insn, 1);
		state->at += 1;
		return true;
	case FORM_REL_Z:
		// In 64-bit mode the prefix is without effect, or so the books of one maker say.
		z = state->wide ? 4 : z;
		insn_relative(state, insn, z);
		state->at += z;
		return true;
	case FORM_OLD:
		return !state->wide;
	case FORM_OLD_M8:
		insn_modrm(state, insn);
		state->at += 1;
		return !state->wide;
	case FORM_FAR_OLD:
		state->at += z + 2;
		return !state->wide;
	default:
		return false;
	}
}

// VEX, EVEX and XOP: which form the opcode `opcode` of map `map` has.
//
// Map 1 is that of 0f, 2 and 3 are those of 0f 38 and 0f 3a, 5 and 6 are half precision's
// (AVX512-FP16), 8 to 10 are XOP's.
static enum insn_form insn_vector_form(uint32_t map, uint8_t opcode)
{
	switch (map) {
	case 1:
		if (opcode == 0x77)
			return FORM_NONE;
		if (opcode >> 4 == 8) // branches of one processor that is out of use
			return FORM_BAD;
		return insn_map_0f[opcode] == FORM_MODRM_8 ? FORM_MODRM_8 : FORM_MODRM;
	case 2:
	case 5:
	case 6:
		return FORM_MODRM;
	case 3:
	case 8:
		return FORM_MODRM_8;
	case 9:
		return FORM_MODRM;
	case 10:
		return FORM_MODRM_Z;
	default:
		return FORM_BAD;
	}
}

// At a byte that begins VEX (c4, c5), EVEX (62) or XOP (8f): take it. False: it is the old
// instruction of that number. `*form` is what follows.
//
// In 32-bit mode c4, c5 and 62 are les, lds and bound, whose modrm must name memory: with its two
// upper bits set it is a vector prefix. 8f is pop if its map is below 8.
static bool insn_vector(struct insn_state *state, enum insn_form *form)
{
	uint8_t first = insn_byte(state, 0), second = insn_byte(state, 1);
	uint32_t map = second & 0x1f;
	size_t prefix = first == 0xc5 ? 2 : first == 0x62 ? 4 : 3;

	if (first == 0x8f ? map < 8 : (!state->wide && second >> 6 != 3))
		return false;
	if (first == 0xc5)
		map = 1;
	else if (first == 0x62)
		map = second & 7;
	*form = insn_vector_form(map, insn_byte(state, prefix));
	if ((first == 0xc4 && (map < 1 || map > 3)) || (first == 0x8f && map > 10))
		*form = FORM_BAD;
	// Maps that there are not, and a bit that has to be 0.
	if (first == 0x62 && (map == 0 || map == 4 || map == 7 || (second & 8) != 0))
		*form = FORM_BAD;
	// Older prefixes in front of these make them invalid.
	if (state->operand_16 || state->repeat || state->lock || state->rex)
		*form = FORM_BAD;
	state->at += prefix + 1;
	return true;
}

// Behind 0f.
static enum insn_form insn_escape(struct insn_state *state)
{
	uint8_t opcode = insn_byte(state, 1);

	state->at += 2;
	if (opcode == 0x38 || opcode == 0x3a) {
		state->at++;
		return opcode == 0x38 ? FORM_MODRM : FORM_MODRM_8;
	}
	if (opcode == 0xb8 && state->repeat_byte != 0xf3)
		return FORM_BAD;
	return (enum insn_form)insn_map_0f[opcode];
}

// At most 15 bytes, which is the processor's own limit. All comes from one pass, and nothing is
// read behind `size`.
bool insn_decode(const uint8_t *code, size_t size, bool wide, struct insn *insn)
{
	struct insn_state state = { .code = code, .wide = wide };
	enum insn_form form;
	uint8_t byte;

	state.size = size < INSN_BYTES_MAX ? size : INSN_BYTES_MAX;
	*insn = (struct insn){ 0 };
	insn_prefixes(&state);
	insn->narrow = state.operand_16 || state.address_67;
	insn->opcode_at = (uint8_t)state.at;
	byte = insn_byte(&state, 0);
	if (byte == 0x0f) {
		form = insn_escape(&state);
	} else if ((byte != 0xc4 && byte != 0xc5 && byte != 0x62 && byte != 0x8f) ||
		   !insn_vector(&state, &form)) {
		form = (enum insn_form)insn_map_1[byte];
		state.at++;
	}
	if (state.failed || !insn_operands(&state, insn, form) || state.failed ||
	    state.at > state.size)
		return false;
	insn->length = (uint8_t)state.at;
	return true;
}
