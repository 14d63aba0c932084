// For example, a function that a program gives Windows to look a table up:
//
//     48 2b 0a         sub (%rdx),%rcx     free: it reads, and writes a register
//     48 89 4c 24 08   mov %rcx,8(%rsp)    a store, but to its own frame
//     77 10            ja forward          a jump, to no place before itself
//     c3               ret
//
// is simple. With `mov %rcx,(%rdx)` it writes to something that is not its own; with `call`, it
// does unknown things; with a jump backwards, it might never end.
#include "recorder/leaf.h"

#include "recorder/insn.h"

// What an instruction may do, by its opcode.
enum leaf_kind {
	LEAF_NO = '.',
	LEAF_FREE = 'f',  // it touches registers or its own stack alone, or only reads
	LEAF_STORE = 's', // it writes to what its modrm names: a register, or the frame
	LEAF_CHECK = 'c', // 80, 81, 83: a store, but for cmp
	LEAF_UNARY = 'u', // f6, f7: test, not and neg; a division may fail
	LEAF_JUMP = 'j',
	LEAF_RETURN = 'r',
};

static const char leaf_map_1[] = "ssffff..ssffff.."  // 00: add, or
				 "................"  // 10
				 "ssffff..ssffff.."  // 20: and, sub
				 "ssffff..ffffff.."  // 30: xor, cmp
				 "................"  // 40
				 "ffffffffffffffff"  // 50: push, pop
				 "...f.....f.f...."  // 60: movsxd, imul
				 "jjjjjjjjjjjjjjjj"  // 70
				 "cc.cff..ssff.f.."  // 80: test, mov, lea
				 "f.......ff......"  // 90: nop, cdqe, cqo
				 "........ff......"  // a0: test
				 "ffffffffffffffff"  // b0: mov
				 "ss.r..ss.f......"  // c0: shifts, ret, mov, leave
				 "ssss............"  // d0: shifts
				 ".........j.j...."  // e0: jmp
				 "......uu........"; // f0

// After 0f.
static const char leaf_map_0f[] = "................"  // 00
				  "..............ff"  // 10: endbr64, nop
				  "................"  // 20
				  "................"  // 30
				  "ffffffffffffffff"  // 40: cmov
				  "................"  // 50
				  "................"  // 60
				  "................"  // 70
				  "jjjjjjjjjjjjjjjj"  // 80
				  "ssssssssssssssss"  // 90: set
				  "...............f"  // a0: imul
				  "......ff......ff"  // b0: movzx, movsx
				  "................"  // c0
				  "................"  // d0
				  "................"  // e0
				  "................"; // f0

static enum leaf_kind leaf_kind(const uint8_t *opcode)
{
	return (enum leaf_kind)(opcode[0] == 0x0f ? leaf_map_0f[opcode[1]] : leaf_map_1[opcode[0]]);
}

// REX, an operand's size, and endbr64's: no lock, no repetition, no other segment.
static bool leaf_has_known_prefixes(const uint8_t *code, const struct insn *insn)
{
	static const uint8_t mark[] = { 0xf3, 0x0f, 0x1e, 0xfa };

	if (insn->length == sizeof(mark) && __builtin_memcmp(code, mark, sizeof(mark)) == 0)
		return true;
	for (size_t i = 0; i < insn->opcode_at; i++)
		if (code[i] != 0x66 && (code[i] & 0xf0) != 0x40)
			return false;
	return true;
}

// Whether the operand is a register, or in the frame: [rsp+n], or [rbp+n] of one that set rbp.
static bool leaf_keeps_to_itself(const uint8_t *code, const struct insn *insn, bool framed)
{
	size_t at = insn->opcode_at + (code[insn->opcode_at] == 0x0f ? 2u : 1u);
	uint8_t modrm = code[at], mode = modrm >> 6, base = modrm & 7;
	bool extended = insn->opcode_at && (code[insn->opcode_at - 1] & 0xf1) == 0x41;

	if (mode == 3)
		return true;
	if (extended)
		return false;
	return base == 4 ? code[at + 1] == 0x24 : framed && base == 5 && mode != 0;
}

// mov rbp,rsp.
static bool leaf_sets_frame(const uint8_t *code, const struct insn *insn)
{
	return insn->length == 3 && code[0] == 0x48 &&
	       ((code[1] == 0x89 && code[2] == 0xe5) || (code[1] == 0x8b && code[2] == 0xec));
}

// Whether one that may write writes to nothing of others.
static bool leaf_may_write(const uint8_t *code, const struct insn *insn, enum leaf_kind kind,
			   bool framed)
{
	uint8_t which = code[insn->opcode_at + 1] >> 3 & 7;

	if (kind == LEAF_UNARY && which > 3)
		return false;
	if ((kind == LEAF_CHECK && which == 7) || (kind == LEAF_UNARY && which < 2))
		return true;
	return leaf_keeps_to_itself(code, insn, framed);
}

// How far a jump leads from the instruction's end.
static int32_t leaf_distance(const uint8_t *code, const struct insn *insn)
{
	int32_t distance = (int8_t)code[insn->relative_at];

	if (insn->relative_bytes == 4)
		__builtin_memcpy(&distance, code + insn->relative_at, 4);
	return distance;
}

bool leaf_is_simple(const uint8_t *code, size_t size)
{
	size_t at = 0, reached = 0; // the furthest place that a jump leads to
	bool framed = false;

	if (size > LEAF_BYTES_MAX)
		size = LEAF_BYTES_MAX;
	while (at < size) {
		const uint8_t *here = code + at;
		enum leaf_kind kind;
		struct insn insn;

		if (!insn_decode(here, size - at, true, &insn) ||
		    !leaf_has_known_prefixes(here, &insn))
			return false;
		at += insn.length;
		kind = leaf_kind(here + insn.opcode_at);
		framed |= leaf_sets_frame(here, &insn);
		if (kind == LEAF_RETURN && reached < at)
			return true;
		if (kind == LEAF_JUMP) {
			int32_t distance = leaf_distance(here, &insn);

			if (distance < 0 || (size_t)distance > size - at)
				return false;
			if (at + (size_t)distance > reached)
				reached = at + (size_t)distance;
		} else if (kind != LEAF_FREE && kind != LEAF_RETURN &&
			   (kind == LEAF_NO || !leaf_may_write(here, &insn, kind, framed))) {
			return false;
		}
	}
	return false;
}
