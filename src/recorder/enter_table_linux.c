// For example, a malloc and its unchecked one, of which a word near them has the table's address:
//
//     malloc      mov 0x5e8(%rip),%rax    the table
//                 …
//                 call *(%rax)            its word 0: slot offset 0
//     unchecked   mov 0x5e8(%rip),%rdi
//                 mov 8(%rdi),%rax        its word 1
//                 jmp *%rax               offset 8, and nothing else is done: this is one
//
// calloc is at offset 16 then, memalign at 32, realloc anywhere, and free 16 after that. All five
// have to come from one table and be apart as said, or nothing is believed.
#include "recorder/enter_table_linux.h"

#include "recorder/insn.h"
#include "recorder/text.h"

enum {
	ENTER_TABLE_STEPS = 24,   // instructions of a function that are looked at
	ENTER_TABLE_NEAR = 4096,  // bytes before and after malloc
	ENTER_TABLE_ALIGNED = 16, // functions are
	ENTER_TABLE_WORD = 8,
	ENTER_TABLE_NO_REGISTER = 16,
};

// Where a function takes what it calls from.
struct enter_table_slot {
	uintptr_t table; // the address of the word that says where the table is
	int32_t offset;  // into it
	bool jumps;      // it ends with that, and has called nothing
};

// A function as far as it is known: which register has the table, and which the table's word.
struct enter_table_look {
	uintptr_t table;
	uint32_t base, value;
	int32_t offset;
};

// The operand in memory of an instruction is N(base). False: it is another one.
//
// ModRM: mod 0, 1 and 2 are a register with no, an 8-bit and a 32-bit displacement. Those with an
// index (rm 4) and rip's own (mod 0, rm 5) are no N(base).
static bool enter_table_operand(const uint8_t *modrm, uint32_t rex, uint32_t *base, int32_t *offset)
{
	uint32_t mod = *modrm >> 6, rm = *modrm & 7;
	int32_t far = 0;

	*base = rm | (rex & 1) << 3;
	if (mod == 3 || rm == 4 || (mod == 0 && rm == 5))
		return false;
	if (mod == 1)
		far = (int8_t)modrm[1];
	else if (mod == 2)
		memcpy(&far, modrm + 1, 4);
	*offset = far;
	return true;
}

// mov distance(%rip),%reg: the table; mov N(%reg),%other: a word of it.
static void enter_table_load(struct enter_table_look *look, const uint8_t *opcode, uint32_t rex,
			     uintptr_t next)
{
	uint32_t reg = (opcode[1] >> 3 & 7) | (rex & 4) << 1, base;
	int32_t offset;

	if ((opcode[1] & 0xc7) == 5) {
		memcpy(&offset, opcode + 2, 4);
		look->table = next + (uintptr_t)(intptr_t)offset;
		look->base = reg;
	} else if (enter_table_operand(opcode + 1, rex, &base, &offset) && base == look->base) {
		look->offset = offset;
		look->value = reg;
		if (reg == look->base)
			look->base = ENTER_TABLE_NO_REGISTER;
	} else if (reg == look->base) {
		look->base = ENTER_TABLE_NO_REGISTER;
	}
}

// A call or a jump: does it lead to a word of the table?
static bool enter_table_leads(struct enter_table_look *look, const uint8_t *opcode, uint32_t rex)
{
	uint32_t base;
	int32_t offset;

	if (opcode[1] >> 6 == 3)
		return ((opcode[1] & 7) | (rex & 1) << 3) == look->value;
	if (!enter_table_operand(opcode + 1, rex, &base, &offset) || base != look->base)
		return false;
	look->offset = offset;
	return true;
}

// The first word of a table that the function calls or jumps to.
//
// Straight on: any other call, jump or return before it ends the search.
static bool enter_table_slot(const uint8_t *at, struct enter_table_slot *slot)
{
	struct enter_table_look look = { .base = ENTER_TABLE_NO_REGISTER,
					 .value = ENTER_TABLE_NO_REGISTER };

	for (int i = 0; at && i < ENTER_TABLE_STEPS; i++) {
		struct insn insn;
		const uint8_t *opcode;
		uint32_t rex;

		if (!insn_decode(at, INSN_BYTES_MAX, true, &insn))
			return false;
		opcode = at + insn.opcode_at;
		rex = insn.opcode_at && (opcode[-1] & 0xf0) == 0x40 ? opcode[-1] : 0;
		at += insn.length;
		if (*opcode == 0xff && ((opcode[1] >> 3 & 7) == 2 || (opcode[1] >> 3 & 7) == 4)) {
			if (!enter_table_leads(&look, opcode, rex))
				return false;
			*slot = (struct enter_table_slot){ look.table, look.offset,
							   (opcode[1] >> 3 & 7) == 4 };
			return true;
		}
		if (insn.relative_at || *opcode == 0xc3 || *opcode == 0xc2 || *opcode == 0xcc)
			return false;
		if (*opcode == 0x8b)
			enter_table_load(&look, opcode, rex, (uintptr_t)at);
	}
	return false;
}

// Room between functions is filled.
//
// int3, nop, or zeros.
static bool enter_table_begins(const uint8_t *at)
{
	return at[-1] == 0xcc || at[-1] == 0x90 || at[-1] == 0x00;
}

void enter_table_find(const struct enter_table *exported, uint8_t *found[ENTER_TABLES])
{
	const uint8_t *from[] = { exported->malloc, exported->calloc, exported->memalign,
				  exported->realloc, exported->free };
	struct enter_table_slot slots[5], slot;
	uintptr_t at = ((uintptr_t)exported->malloc - ENTER_TABLE_NEAR) &
		       ~(uintptr_t)(ENTER_TABLE_ALIGNED - 1);
	uintptr_t end = (uintptr_t)exported->malloc + ENTER_TABLE_NEAR;

	for (int i = 0; i < ENTER_TABLES; i++)
		found[i] = NULL;
	for (int i = 0; i < 5; i++) {
		if (!enter_table_slot(from[i], &slots[i]) || slots[i].table != slots[0].table)
			return;
	}
	for (int i = 0; i < 4; i += i == 1 ? 2 : 1) { // each is followed by one that may fail
		if (slots[i + 1].offset != slots[i].offset + 2 * ENTER_TABLE_WORD)
			return;
	}
	if (at <= exported->start || end + ENTER_TABLE_NEAR > exported->end)
		return;
	for (; at < end; at += ENTER_TABLE_ALIGNED) {
		if (!enter_table_begins((uint8_t *)at) || !enter_table_slot((uint8_t *)at, &slot) ||
		    !slot.jumps || slot.table != slots[0].table)
			continue;
		for (int kind = 0; kind < ENTER_TABLES; kind++) {
			static const int of[] = { 0, 1, 3 }; // in slots

			if (slot.offset == slots[of[kind]].offset + ENTER_TABLE_WORD)
				found[kind] = (uint8_t *)at;
		}
	}
}
