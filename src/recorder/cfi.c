// For example, f is at 0x1000 and begins with push %rbp (1 byte) and mov %rsp,%rbp (3 bytes). Its
// CIE says "cfa is rsp + 8, rip at cfa - 8", with data by -8; its FDE says "advance 1; cfa offset
// 16; rbp at 2; advance 3; cfa register rbp". Run from the start, that makes three rows:
//
//     0x1000   cfa = rsp + 8                           rip at cfa - 8
//     0x1001   cfa = rsp + 16   rbp at cfa - 16        rip at cfa - 8
//     0x1004   cfa = rbp + 16   rbp at cfa - 16        rip at cfa - 8
//
// Asked about 0x1010, the machine stops before the first row that begins after it. The rule is
// UNWIND_RBP with a cfa offset of 16 / 8 = 2 words and an rbp offset of -16 / 8 + 1 = -1.
//
// The tables of a loaded object are bounded by nothing but what they say of themselves, so that
// they are trusted as the program's own unwinder trusts them. What is not expressible as a rule
// becomes UNWIND_STOP, and the stack is marked incomplete: no wrong frame is made up.
#include "recorder/cfi.h"

#include "recorder/text.h"

enum {
	DW_EH_PE_absptr = 0x00,
	DW_EH_PE_uleb128 = 0x01,
	DW_EH_PE_udata2 = 0x02,
	DW_EH_PE_udata4 = 0x03,
	DW_EH_PE_udata8 = 0x04,
	DW_EH_PE_sleb128 = 0x09,
	DW_EH_PE_sdata2 = 0x0a,
	DW_EH_PE_sdata4 = 0x0b,
	DW_EH_PE_sdata8 = 0x0c,
	DW_EH_PE_pcrel = 0x10,
	DW_EH_PE_datarel = 0x30,
	DW_EH_PE_omit = 0xff,
	CFI_STATES_MAX = 16,
	CFI_STEPS_MAX = 100000,
	CFI_INDEX_HEAD = 8, // bytes of a header before its table
};

// DWARF's numbers of registers: of i386, they mean ebp, esp and eip.
#ifdef __x86_64__
enum { REGISTER_RBP = 6, REGISTER_RSP = 7, REGISTER_RIP = 16 };
#else
enum { REGISTER_RBP = 5, REGISTER_RSP = 4, REGISTER_RIP = 8 };
#endif

// How a register of the caller is found. CFI_SAME is also what a row begins with: the callee has
// not touched it.
enum cfi_where { CFI_SAME, CFI_OFFSET, CFI_EXPRESSION, CFI_UNDEFINED, CFI_OTHER };

struct cfi_place {
	enum cfi_where where;
	int64_t offset;
	const uint8_t *expression;
	uint64_t expression_size;
};

// One row of the table that the program of an FDE makes: true from `location` on until the next
// row. Only rbp and rip are kept of the registers, since a rule needs no others.
struct cfi_row {
	bool cfa_is_expression;
	uint64_t cfa_register;
	int64_t cfa_offset;
	const uint8_t *cfa_expression;
	uint64_t cfa_expression_size;
	struct cfi_place rbp;
	struct cfi_place rip;
};

// What the FDEs of a file have in common. Its program makes the first row, and DW_CFA_restore goes
// back to what that row says.
struct cfi_cie {
	uint64_t code_align;
	int64_t data_align;
	uint8_t pointer_encoding;
	bool has_augmentation;
	bool signal_frame;
	const uint8_t *program, *program_end;
};

// One function, or a part of one. `start` and `end` are addresses in this process.
struct cfi_fde {
	uintptr_t start, end;
	const uint8_t *program, *program_end;
	struct cfi_cie cie;
};

// LEB128: seven bits a byte, the lowest first, the eighth bit says that more come. For example e5
// 8e 26 is 0x65 + (0x0e << 7) + (0x26 << 14) = 624,485. The last byte's bit 6 is the sign: 9b f1 59
// is -624,485.
static uint64_t cfi_leb(const uint8_t **at, bool is_signed)
{
	uint64_t value = 0;
	int shift = 0;
	uint8_t byte;

	do {
		byte = *(*at)++;
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && shift < 64 && (byte & 0x40))
		value |= ~(uint64_t)0 << shift;
	return value;
}

static uint64_t cfi_uleb(const uint8_t **at)
{
	return cfi_leb(at, false);
}

static int64_t cfi_sleb(const uint8_t **at)
{
	return (int64_t)cfi_leb(at, true);
}

// Little-endian, of any alignment: the fields of .eh_frame are not aligned.
static uint64_t cfi_fixed(const uint8_t **at, int bytes, bool is_signed)
{
	uint64_t value = 0;

	for (int i = 0; i < bytes; i++)
		value |= (uint64_t)(*at)[i] << (8 * i);
	*at += bytes;
	if (is_signed && bytes < 8 && value >> (8 * bytes - 1))
		value |= ~(uint64_t)0 << (8 * bytes);
	return value;
}

// A pointer in one of the encodings of .eh_frame: the lower half of the byte is the form, the upper
// one what it counts from (pcrel: from itself). False for encodings that are not used on x86.
static bool cfi_pointer(const uint8_t **at, uint8_t encoding, uintptr_t data_base, uintptr_t *value)
{
	uintptr_t base = 0;

	if ((encoding & 0x70) == DW_EH_PE_pcrel)
		base = (uintptr_t)*at;
	else if ((encoding & 0x70) == DW_EH_PE_datarel)
		base = data_base;
	else if (encoding & 0x70)
		return false;
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
		*value = base + (uintptr_t)cfi_fixed(at, UNWIND_WORD, false);
		return true;
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		*value = base + (uintptr_t)cfi_fixed(at, 8, false);
		return true;
	case DW_EH_PE_udata4:
		*value = base + (uintptr_t)cfi_fixed(at, 4, false);
		return true;
	case DW_EH_PE_sdata4:
		*value = base + (uintptr_t)cfi_fixed(at, 4, true);
		return true;
	case DW_EH_PE_udata2:
		*value = base + (uintptr_t)cfi_fixed(at, 2, false);
		return true;
	case DW_EH_PE_sdata2:
		*value = base + (uintptr_t)cfi_fixed(at, 2, true);
		return true;
	case DW_EH_PE_uleb128:
		*value = base + (uintptr_t)cfi_uleb(at);
		return true;
	case DW_EH_PE_sleb128:
		*value = base + (uintptr_t)cfi_sleb(at);
		return true;
	default:
		return false;
	}
}

// A length of 0 is the end of the section, one of 0xffffffff the 64-bit form, which no linker makes
// for .eh_frame. An augmentation letter that is not known may change what the program means, so the
// CIE is refused then.
static bool cfi_read_cie(const uint8_t *at, struct cfi_cie *cie)
{
	const uint8_t *end;
	const char *augmentation;
	const uint8_t *augmentation_end = NULL;
	uint64_t length = cfi_fixed(&at, 4, false);
	uint8_t version;
	uintptr_t ignored;

	*cie = (struct cfi_cie){ .pointer_encoding = DW_EH_PE_absptr };
	if (length == 0 || length == 0xffffffff)
		return false;
	end = at + length;
	if (cfi_fixed(&at, 4, false) != 0)
		return false;
	version = *at++;
	if (version != 1 && version != 3)
		return false;
	augmentation = (const char *)at;
	at += text_length(augmentation) + 1;
	cie->code_align = cfi_uleb(&at);
	cie->data_align = cfi_sleb(&at);
	// The register that has the return address: a byte in version 1, a number of variable
	// length after it. It is rip (or eip) in all that compilers write.
	if (version == 1)
		at++;
	else
		cfi_uleb(&at);
	for (; *augmentation; augmentation++) {
		switch (*augmentation) {
		case 'z':
			cie->has_augmentation = true;
			length = cfi_uleb(&at);
			augmentation_end = at + length;
			break;
		case 'R':
			cie->pointer_encoding = *at++;
			break;
		case 'P': {
			uint8_t encoding = *at++;

			if (!cfi_pointer(&at, encoding & 0x7f, 0, &ignored))
				return false;
			break;
		}
		case 'L':
			at++;
			break;
		case 'S':
			cie->signal_frame = true;
			break;
		case 'B':
			break;
		default:
			return false;
		}
	}
	cie->program = augmentation_end ? augmentation_end : at;
	cie->program_end = end;
	return true;
}

// The second address is a length, in the same format, but never relative to anything.
static bool cfi_read_fde(const uint8_t *at, struct cfi_fde *fde)
{
	uint64_t length = cfi_fixed(&at, 4, false);
	const uint8_t *end = at + length;
	const uint8_t *cie;
	uint64_t back;

	if (length == 0 || length == 0xffffffff)
		return false;
	cie = at;
	back = cfi_fixed(&at, 4, false);
	// In .eh_frame the distance to the CIE counts back from the field itself; 0 would make this
	// entry a CIE.
	if (back == 0 || !cfi_read_cie(cie - back, &fde->cie))
		return false;
	if (!cfi_pointer(&at, fde->cie.pointer_encoding, 0, &fde->start) ||
	    !cfi_pointer(&at, fde->cie.pointer_encoding & 0x0f, 0, &fde->end))
		return false;
	fde->end += fde->start;
	if (fde->cie.has_augmentation) {
		length = cfi_uleb(&at);
		at += length;
	}
	fde->program = at;
	fde->program_end = end;
	return true;
}

// ---- A table for objects that have none -----------------------------------------------------

// Addresses themselves: the header may lie further from the code than 32 bits reach.
struct cfi_index_entry {
	uintptr_t start, fde;
};

// Entries of .eh_frame, one after the other.
struct cfi_entries {
	const uint8_t *start, *at, *end;
	uintptr_t code, code_end; // what they may be about: the linker leaves those of dropped code
};

// The next one that is about code, and where that begins. NULL: there is none.
//
// CIEs are passed over. So is what is not about the object's code: where the linker has dropped a
// function, its entry stays, with an address of 0 or near it.
static const uint8_t *cfi_next(struct cfi_entries *entries, uintptr_t *start)
{
	while (entries->end - entries->at > 8) {
		const uint8_t *entry = entries->at, *field = entry;
		uint64_t length = cfi_fixed(&field, 4, false);
		uint64_t back = cfi_fixed(&field, 4, false);
		struct cfi_fde fde;

		if (length < 4 || length > (uint64_t)(entries->end - entry) - 4)
			return NULL;
		entries->at += 4 + length;
		if (back == 0 || back > (uint64_t)(entry + 4 - entries->start) ||
		    !cfi_read_fde(entry, &fde))
			continue;
		*start = fde.start;
		if (fde.start >= entries->code && fde.end <= entries->code_end &&
		    fde.start < fde.end)
			return entry;
	}
	return NULL;
}

// Let the entry at `at` sink to its place in the heap.
static void cfi_sink(struct cfi_index_entry *table, size_t at, size_t count)
{
	struct cfi_index_entry moved = table[at];
	size_t child;

	for (; (child = 2 * at + 1) < count; at = child) {
		if (child + 1 < count && table[child].start < table[child + 1].start)
			child++;
		if (table[child].start <= moved.start)
			break;
		table[at] = table[child];
	}
	table[at] = moved;
}

// Heapsort: in place, without recursion, and never worse than count * log2(count). Nothing here may
// call the C library's qsort, which may allocate.
static void cfi_sort(struct cfi_index_entry *table, size_t count)
{
	for (size_t i = count / 2; i-- > 0;)
		cfi_sink(table, i, count);
	for (size_t end = count; end-- > 1;) {
		struct cfi_index_entry last = table[end];

		table[end] = table[0];
		table[0] = last;
		cfi_sink(table, 0, end);
	}
}

// The result has the form of the linker's .eh_frame_hdr: one byte of version, three of encodings,
// four of count, and then pairs. Only the encoding of the pairs is another one (absolute), which
// cfi_cell knows.
size_t cfi_index(const uint8_t *frames, size_t bytes, uintptr_t code, uintptr_t code_end,
		 uint8_t *header)
{
	struct cfi_entries entries = { frames, frames, frames + bytes, code, code_end };
	struct cfi_index_entry *table = (void *)(header + CFI_INDEX_HEAD);
	uint32_t count = 0;
	const uint8_t *entry;
	uintptr_t start;

	for (; (entry = cfi_next(&entries, &start)); count++)
		if (header)
			table[count] = (struct cfi_index_entry){ start, (uintptr_t)entry };
	if (header) {
		cfi_sort(table, count);
		header[0] = 1;
		header[1] = DW_EH_PE_omit;
		header[2] = DW_EH_PE_udata4;
		header[3] = DW_EH_PE_absptr;
		memcpy(header + 4, &count, sizeof(count));
	}
	return count ? CFI_INDEX_HEAD + count * sizeof(*table) : 0;
}

// ---- Look-up --------------------------------------------------------------------------------

// Number `at` of the table in .eh_frame_hdr: a linker's, or one of cfi_index.
static uintptr_t cfi_cell(const uint8_t *header, const uint8_t *table, size_t at)
{
	if (header[3] == DW_EH_PE_absptr)
		return ((const uintptr_t *)(const void *)table)[at];
	return (uintptr_t)((intptr_t)header + ((const int32_t *)(const void *)table)[at]);
}

// The entry of the sorted table that covers pc.
//
// The last pair whose start is not after pc. It may begin before pc and end before it too: the
// callers compare with the entry's own end.
static bool cfi_search(const uint8_t *header, uintptr_t pc, struct cfi_fde *fde)
{
	const uint8_t *at = header + 4;
	uintptr_t ignored, count;
	size_t low = 0, high;

	if (header[0] != 1 || header[2] == DW_EH_PE_omit ||
	    (header[3] != (DW_EH_PE_datarel | DW_EH_PE_sdata4) && header[3] != DW_EH_PE_absptr))
		return false;
	if ((header[1] != DW_EH_PE_omit &&
	     !cfi_pointer(&at, header[1], (uintptr_t)header, &ignored)) ||
	    !cfi_pointer(&at, header[2], (uintptr_t)header, &count) || count == 0)
		return false;
	high = count;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (cfi_cell(header, at, middle * 2) <= pc)
			low = middle;
		else
			high = middle;
	}
	if (cfi_cell(header, at, low * 2) > pc)
		return false;
	return cfi_read_fde((const uint8_t *)cfi_cell(header, at, low * 2 + 1), fde);
}

// Of other registers nothing is kept; their operands are read all the same, as the program goes on
// after them.
static void cfi_set(struct cfi_row *row, uint64_t reg, struct cfi_place place)
{
	if (reg == REGISTER_RBP)
		row->rbp = place;
	else if (reg == REGISTER_RIP)
		row->rip = place;
}

static void cfi_reset(struct cfi_row *row, const struct cfi_row *initial, uint64_t reg)
{
	if (reg == REGISTER_RBP)
		row->rbp = initial->rbp;
	else if (reg == REGISTER_RIP)
		row->rip = initial->rip;
}

struct cfi_machine {
	const struct cfi_cie *cie;
	struct cfi_row row;
	struct cfi_row initial;
	int saved_count;
	uintptr_t location;
	uintptr_t target; // stop before the first row that begins after this address
	struct cfi_row saved[CFI_STATES_MAX]; // last: nothing is read there that was not written
};

// The instructions with the operation in all eight bits, but for the advances. False: not known.
//
// DW_CFA_register, val_offset and val_expression give a register's value by something that no rule
// can say (CFI_OTHER). For rbp or rip that ends in UNWIND_STOP.
static bool cfi_extended(struct cfi_machine *machine, uint8_t op, const uint8_t **at)
{
	struct cfi_row *row = &machine->row;
	int64_t align = machine->cie->data_align;
	struct cfi_place place = { CFI_OTHER, 0, NULL, 0 };
	uint64_t reg;

	switch (op) {
	case 0x00: // nop
		return true;
	case 0x05: // offset_extended
		reg = cfi_uleb(at);
		place.where = CFI_OFFSET;
		place.offset = (int64_t)cfi_uleb(at) * align;
		cfi_set(row, reg, place);
		return true;
	case 0x11: // offset_extended_sf
		reg = cfi_uleb(at);
		place.where = CFI_OFFSET;
		place.offset = cfi_sleb(at) * align;
		cfi_set(row, reg, place);
		return true;
	case 0x2f: // GNU_negative_offset_extended
		reg = cfi_uleb(at);
		place.where = CFI_OFFSET;
		place.offset = -(int64_t)cfi_uleb(at) * align;
		cfi_set(row, reg, place);
		return true;
	case 0x06: // restore_extended
		cfi_reset(row, &machine->initial, cfi_uleb(at));
		return true;
	case 0x07: // undefined
		place.where = CFI_UNDEFINED;
		cfi_set(row, cfi_uleb(at), place);
		return true;
	case 0x08: // same_value
		place.where = CFI_SAME;
		cfi_set(row, cfi_uleb(at), place);
		return true;
	case 0x09: // register
		reg = cfi_uleb(at);
		cfi_uleb(at);
		cfi_set(row, reg, place);
		return true;
	case 0x14: // val_offset
	case 0x15: // val_offset_sf
		reg = cfi_uleb(at);
		cfi_uleb(at);
		cfi_set(row, reg, place);
		return true;
	case 0x10: // expression
	case 0x16: // val_expression
		reg = cfi_uleb(at);
		place.where = op == 0x10 ? CFI_EXPRESSION : CFI_OTHER;
		place.expression_size = cfi_uleb(at);
		place.expression = *at;
		*at += place.expression_size;
		cfi_set(row, reg, place);
		return true;
	case 0x0a: // remember_state
		if (machine->saved_count == CFI_STATES_MAX)
			return false;
		machine->saved[machine->saved_count++] = *row;
		return true;
	case 0x0b: // restore_state
		if (machine->saved_count == 0)
			return false;
		*row = machine->saved[--machine->saved_count];
		return true;
	case 0x0c: // def_cfa
	case 0x12: // def_cfa_sf
		row->cfa_is_expression = false;
		row->cfa_register = cfi_uleb(at);
		row->cfa_offset = op == 0x0c ? (int64_t)cfi_uleb(at) : cfi_sleb(at) * align;
		return true;
	case 0x0d: // def_cfa_register
		row->cfa_is_expression = false;
		row->cfa_register = cfi_uleb(at);
		return true;
	case 0x0e: // def_cfa_offset
		row->cfa_offset = (int64_t)cfi_uleb(at);
		return true;
	case 0x13: // def_cfa_offset_sf
		row->cfa_offset = cfi_sleb(at) * align;
		return true;
	case 0x0f: // def_cfa_expression
		row->cfa_is_expression = true;
		row->cfa_expression_size = cfi_uleb(at);
		row->cfa_expression = *at;
		*at += row->cfa_expression_size;
		return true;
	case 0x2e: // GNU_args_size
		cfi_uleb(at);
		return true;
	default:
		return false;
	}
}

// Run until the row for machine->target stands. False: an instruction we do not know.
//
// The numbers are DWARF's (DWARF 5, section 7.24): the upper two bits are 1 for an advance, 2 for
// offset, 3 for restore, each with an operand in the lower six; with 0, all eight are the
// operation. CFI_STEPS_MAX keeps a damaged program from holding the lock for long.
static bool cfi_run(struct cfi_machine *machine, const uint8_t *at, const uint8_t *end)
{
	for (int steps = 0; at < end && steps < CFI_STEPS_MAX; steps++) {
		uint8_t op = *at++;
		uint64_t advance = 0;
		struct cfi_place place = { CFI_OFFSET, 0, NULL, 0 };

		switch (op & 0xc0) {
		case 0x40: // advance_loc
			advance = op & 0x3f;
			break;
		case 0x80: // offset
			place.offset = (int64_t)cfi_uleb(&at) * machine->cie->data_align;
			cfi_set(&machine->row, op & 0x3f, place);
			continue;
		case 0xc0: // restore
			cfi_reset(&machine->row, &machine->initial, op & 0x3f);
			continue;
		default:
			if (op == 0x01) { // set_loc
				uintptr_t location;

				if (!cfi_pointer(&at, machine->cie->pointer_encoding, 0, &location))
					return false;
				if (location > machine->target)
					return true;
				machine->location = location;
				continue;
			}
			if (op < 0x02 || op > 0x04) {
				if (!cfi_extended(machine, op, &at))
					return false;
				continue;
			}
			advance = cfi_fixed(&at, 1 << (op - 2), false); // advance_loc1, 2, 4
		}
		machine->location += (uintptr_t)(advance * machine->cie->code_align);
		if (machine->location > machine->target)
			return true;
	}
	return true;
}

// `expression` is exactly "breg<reg> offset", then `rest` bytes more (returned).
//
// 0x70 is DW_OP_breg0.
static const uint8_t *cfi_is_breg(const uint8_t *expression, uint64_t size, int reg,
				  int64_t *offset, uint64_t *rest)
{
	const uint8_t *at = expression + 1;

	if (size < 2 || expression[0] != 0x70 + reg)
		return NULL;
	*offset = cfi_sleb(&at);
	if (at > expression + size)
		return NULL;
	*rest = (uint64_t)(expression + size - at);
	return at;
}

// The rule with what the row says of rbp.
//
// A row that says nothing of rbp, or that it is undefined, leaves it as it is: in the outermost
// frames of a thread that is what it comes to.
static unwind_rule cfi_rule_saving(const struct cfi_row *row, enum unwind_kind kind,
				   int64_t cfa_offset)
{
	if (row->rbp.where == CFI_SAME || row->rbp.where == CFI_UNDEFINED)
		return unwind_make(kind, cfa_offset, 0);
	if (row->rbp.where != CFI_OFFSET || !unwind_can_save_at(row->rbp.offset))
		return UNWIND_STOP;
	return unwind_make_saving(kind, cfa_offset, row->rbp.offset, 0);
}

// The frame address as an expression: gcc's realigned frames, OpenSSL's assembly, and the one that
// linkers write for the procedure linkage table.
static unwind_rule cfi_expression_rule(const struct cfi_row *row, uintptr_t exact_pc)
{
	// breg7 8; breg16 0; lit15; and; lit11; ge; lit3; shl; plus: an entry of the table has 16
	// bytes, and from its byte 11 on one word more was pushed.
	static const uint8_t plt[] = {
		0x70 + REGISTER_RIP,
		0,
		0x3f,
		0x1a,
		0x3b,
		0x2a,
		UNWIND_WORD == 8 ? 0x33 : 0x32,
		0x24,
		0x22,
	};
	int64_t offset, rbp_offset;
	uint64_t rest, rbp_rest;
	const uint8_t *at;

	at = cfi_is_breg(row->cfa_expression, row->cfa_expression_size, REGISTER_RBP, &offset,
			 &rest);
	if (at && rest == 1 && at[0] == 0x06) { // deref
		if (row->rbp.where != CFI_EXPRESSION ||
		    !cfi_is_breg(row->rbp.expression, row->rbp.expression_size, REGISTER_RBP,
				 &rbp_offset, &rbp_rest) ||
		    rbp_rest != 0 || offset % UNWIND_WORD || !unwind_can_save_at(rbp_offset))
			return UNWIND_STOP;
		return unwind_make_saving(UNWIND_RBP_DEREF, offset, rbp_offset, 0);
	}
	at = cfi_is_breg(row->cfa_expression, row->cfa_expression_size, REGISTER_RSP, &offset,
			 &rest);
	if (!at)
		return UNWIND_STOP;
	// deref, plus_uconst word
	if (rest == 3 && at[0] == 0x06 && at[1] == 0x23 && at[2] == UNWIND_WORD) {
		if (offset % UNWIND_WORD)
			return UNWIND_STOP;
		return cfi_rule_saving(row, UNWIND_RSP_DEREF, offset);
	}
	if (rest == sizeof(plt) && memcmp(at, plt, sizeof(plt)) == 0) // known at this pc
		return unwind_make(UNWIND_RSP, offset + ((exact_pc & 15) >= 11 ? UNWIND_WORD : 0),
				   0);
	return UNWIND_STOP;
}

// rip has to be in the word just inside of the frame address, where `call` has put it. Offsets are
// in words, of which a rule has room for 24 bits, signed.
static unwind_rule cfi_rule(const struct cfi_row *row, uintptr_t exact_pc)
{
	if (row->rip.where == CFI_UNDEFINED)
		return UNWIND_END;
	if (row->rip.where != CFI_OFFSET || row->rip.offset != -UNWIND_WORD)
		return UNWIND_STOP;
	if (row->cfa_is_expression)
		return cfi_expression_rule(row, exact_pc);
	if (row->cfa_offset % UNWIND_WORD || row->cfa_offset < -(UNWIND_WORD << 22) ||
	    row->cfa_offset > UNWIND_WORD << 22)
		return UNWIND_STOP;
	if (row->cfa_register == REGISTER_RSP)
		return cfi_rule_saving(row, UNWIND_RSP, row->cfa_offset);
	if (row->cfa_register == REGISTER_RBP)
		return cfi_rule_saving(row, UNWIND_RBP, row->cfa_offset);
	return UNWIND_STOP;
}

bool cfi_extent(const uint8_t *header, uintptr_t pc, uintptr_t *start, uintptr_t *end)
{
	struct cfi_fde fde;

	if (!cfi_search(header, pc, &fde) || pc < fde.start || pc >= fde.end)
		return false;
	*start = fde.start;
	*end = fde.end;
	return true;
}

unwind_rule cfi_compile(const uint8_t *header, uintptr_t pc, uintptr_t exact_pc,
			bool *starts_at_exact_pc)
{
	// Big and touched seldom: kept off the program's stack, which may be a small one. The
	// caller holds the lock of the slow path.
	static struct cfi_machine machine __attribute__((aligned(2048))); // in one page
	struct cfi_fde fde;

	if (starts_at_exact_pc)
		*starts_at_exact_pc = false;
	if (!cfi_search(header, pc, &fde) || pc < fde.start || pc >= fde.end) {
		if (starts_at_exact_pc && cfi_search(header, exact_pc, &fde) &&
		    fde.start == exact_pc)
			*starts_at_exact_pc = true;
		return UNWIND_NONE;
	}
	if (fde.cie.signal_frame)
		return UNWIND_SIGNAL;
	memset(&machine, 0, offsetof(struct cfi_machine, saved));
	machine.cie = &fde.cie;
	machine.location = fde.start;
	// The CIE's program runs to its end, whatever it advances; then the FDE's, up to the row
	// for pc.
	machine.target = UINTPTR_MAX;
	if (!cfi_run(&machine, fde.cie.program, fde.cie.program_end))
		return UNWIND_STOP;
	machine.initial = machine.row;
	machine.location = fde.start;
	machine.target = pc;
	if (!cfi_run(&machine, fde.program, fde.program_end))
		return UNWIND_STOP;
	return cfi_rule(&machine.row, exact_pc);
}
