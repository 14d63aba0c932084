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
//
// The last word that is jumped to is that of aligned blocks' free, where it is after that of
// malloc_usable_size; their unchecked realloc is 8 before it, and their unchecked malloc 24.
#include "recorder/enter_table_linux.h"

#include "recorder/insn.h"
#include "recorder/text.h"

enum {
	ENTER_TABLE_STEPS = 24,  // instructions of a function that are looked at
	ENTER_TABLE_NEAR = 4096, // bytes before and after malloc
	ENTER_TABLE_APART = 16,  // functions begin at such addresses
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
// ModRM: mod 0, 1 and 2 are a register with no, an 8-bit and a 32-bit displacement; rm 4 is a
// second byte, which r12 needs: base 4 with index 4, which is none. Those with an index and rip's
// own (mod 0, rm 5) are no N(base).
static bool enter_table_operand(const uint8_t *modrm, uint32_t rex, uint32_t *base, int32_t *offset)
{
	uint32_t mod = *modrm >> 6, rm = *modrm & 7;
	int32_t far = 0;

	*base = rm | (rex & 1) << 3;
	if (mod == 3 || (mod == 0 && rm == 5))
		return false;
	if (rm == 4 && ((*++modrm & 0x3f) != 0x24 || (rex & 2)))
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

// Of a function that takes word `offset` of the table and is not exported: which one it is.
static enum enter_table_kind enter_table_kind(const struct enter_table_slot *slots, int32_t offset,
					      int32_t last)
{
	static const uint8_t of[] = { 0, 1, 3 }; // in slots

	for (uint32_t kind = 0; kind < sizeof(of) / sizeof(*of); kind++) {
		if (offset == slots[of[kind]].offset + ENTER_TABLE_WORD)
			return (enum enter_table_kind)kind;
	}
	return offset == last                          ? ENTER_TABLE_ALIGNED_FREE
	       : offset == last - ENTER_TABLE_WORD     ? ENTER_TABLE_ALIGNED_REALLOC
	       : offset == last - 3 * ENTER_TABLE_WORD ? ENTER_TABLE_ALIGNED
						       : ENTER_TABLES;
}

// The next function that does nothing but jump to a word of the table; NULL: there is none.
static uint8_t *enter_table_next(uintptr_t *at, uintptr_t end, uintptr_t table,
				 struct enter_table_slot *slot)
{
	for (; *at < end; *at += ENTER_TABLE_APART) {
		uint8_t *function = (uint8_t *)*at;

		if (enter_table_begins(function) && enter_table_slot(function, slot) &&
		    slot->jumps && slot->table == table) {
			*at += ENTER_TABLE_APART;
			return function;
		}
	}
	return NULL;
}

// Where aligned blocks' free is in the table; INT32_MIN: it is not known.
//
// All three have to be there.
static int32_t enter_table_last(const uint8_t *usable_size, uintptr_t at, uintptr_t end,
				uintptr_t table)
{
	struct enter_table_slot slot, size;
	uint64_t words = 0; // that are jumped to, counted from that of malloc_usable_size
	int32_t far = 0;

	if (!usable_size || !enter_table_slot(usable_size, &size) || size.table != table)
		return INT32_MIN;
	while (enter_table_next(&at, end, table, &slot)) {
		int32_t word = (slot.offset - size.offset) / ENTER_TABLE_WORD;

		if (word <= 0 || word >= 64)
			continue;
		words |= 1ULL << word;
		far = word > far ? word : far;
	}
	if (far < 4 || !(words >> (far - 1) & 1) || !(words >> (far - 3) & 1))
		return INT32_MIN;
	return size.offset + far * ENTER_TABLE_WORD;
}

void enter_table_find(const struct enter_table *exported, uint8_t *found[ENTER_TABLES])
{
	const uint8_t *from[] = { exported->malloc, exported->calloc, exported->memalign,
				  exported->realloc, exported->free };
	struct enter_table_slot slots[5], slot;
	uintptr_t at = ((uintptr_t)exported->malloc - ENTER_TABLE_NEAR) &
		       ~(uintptr_t)(ENTER_TABLE_APART - 1);
	uintptr_t end = (uintptr_t)exported->malloc + ENTER_TABLE_NEAR;
	uint8_t *function;
	int32_t last;

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
	last = enter_table_last(exported->usable_size, at, end, slots[0].table);
	while ((function = enter_table_next(&at, end, slots[0].table, &slot))) {
		enum enter_table_kind kind = enter_table_kind(slots, slot.offset, last);

		if (kind != ENTER_TABLES)
			found[kind] = function;
	}
}
