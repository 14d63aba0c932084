// A table is a program for a small machine: it has an address and a line, and makes a row of both
// whenever it is told to. Most instructions are one byte that moves both and makes a row.
//
// For example, where lines step from -5 on in 14 steps, and such bytes begin at 13, the byte 75 is
// the 62nd of them: 62 is 4 times 14 and 6, so the address rises by 4 (times the least length of an
// instruction) and the line by 6 - 5 = 1.
#include "symbols/linetable.h"

#include "base/mem.h"
#include "base/rising.h"
#include "base/sort.h"

#include <dwarf.h>
#include <stdlib.h>

struct linetable_row {
	uint64_t address;
	uint32_t file, line;
};

struct linetable_sequence {
	uint64_t start, end;
	size_t first, count; // of its rows
};

// What is left of the section, never read past its end. `bad` stays set once it was.
struct cursor {
	const uint8_t *at, *end;
	bool bad;
};

// The head of a table.
struct head {
	uint8_t address_bytes;
	uint8_t least_length; // of an instruction
	uint8_t opcode_base, line_range;
	int8_t line_base;
	const uint8_t *lengths; // how many arguments each standard opcode has; opcode_base - 1
};

// The registers of the program that a table is.
struct machine {
	uint64_t address;
	uint32_t file, line;
	size_t first;       // row of the sequence
	uint64_t low, last; // first and last address of the sequence
	bool sorted;
};

static uint64_t read_fixed(struct cursor *cursor, size_t size)
{
	uint64_t value = 0;

	if (cursor->bad || (size_t)(cursor->end - cursor->at) < size || size > 8) {
		cursor->bad = true;
		return 0;
	}
	for (size_t i = 0; i < size; i++)
		value |= (uint64_t)cursor->at[i] << 8 * i;
	cursor->at += size;
	return value;
}

// Numbers of any length: 7 bits in each byte, the lowest first, and the top bit says that more
// follows. e5 8e 26 is 0x65 + (0x0e << 7) + (0x26 << 14) = 624485. Bits above 64 are dropped, so
// that a number may be padded, but never overflows a shift.
static uint64_t read_uleb(struct cursor *cursor)
{
	uint64_t value = 0;

	for (unsigned shift = 0; !cursor->bad; shift += 7) {
		uint8_t byte = (uint8_t)read_fixed(cursor, 1);

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			break;
	}
	return value;
}

// The same with a sign: bit 6 of the last byte is repeated upwards, so 7f is -1 and 80 7f is -128.
static int64_t read_sleb(struct cursor *cursor)
{
	uint64_t value = 0;

	for (unsigned shift = 0; !cursor->bad;) {
		uint8_t byte = (uint8_t)read_fixed(cursor, 1);

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (byte & 0x80)
			continue;
		if (shift < 64 && (byte & 0x40))
			value |= UINT64_MAX << shift;
		break;
	}
	return (int64_t)value;
}

static void skip(struct cursor *cursor, uint64_t size)
{
	if (cursor->bad || (uint64_t)(cursor->end - cursor->at) < size)
		cursor->bad = true;
	else
		cursor->at += size;
}

// Read the head; `cursor` then stands at the program and ends with it.
static bool read_head(struct cursor *cursor, struct head *head)
{
	uint64_t length = read_fixed(cursor, 4), head_length;
	size_t offset_bytes = 4;
	struct cursor program;
	uint16_t version;

	// Of the 64-bit form, whose lengths have eight bytes.
	if (length == UINT32_MAX) {
		offset_bytes = 8;
		length = read_fixed(cursor, 8);
	}
	if (cursor->bad || length > (uint64_t)(cursor->end - cursor->at))
		return false;
	cursor->end = cursor->at + length;
	version = (uint16_t)read_fixed(cursor, 2);
	if (version < 2 || version > 5)
		return false;
	if (version == 5) {
		head->address_bytes = (uint8_t)read_fixed(cursor, 1);
		skip(cursor, 1); // size of segment selectors
	}
	head_length = read_fixed(cursor, offset_bytes);
	// The tables of folders and files, which libdw reads, are passed over.
	program = *cursor;
	skip(&program, head_length);
	head->least_length = (uint8_t)read_fixed(cursor, 1);
	if (version >= 4)
		skip(cursor, 1); // operations in an instruction: 1 but for VLIW machines
	skip(cursor, 1);         // whether rows begin statements, unless they say
	head->line_base = (int8_t)read_fixed(cursor, 1);
	head->line_range = (uint8_t)read_fixed(cursor, 1);
	head->opcode_base = (uint8_t)read_fixed(cursor, 1);
	head->lengths = cursor->at;
	if (head->opcode_base == 0 || head->line_range == 0)
		return false;
	skip(cursor, head->opcode_base - 1u);
	if (cursor->bad || program.bad)
		return false;
	*cursor = program;
	return true;
}

// The registers start over with each sequence, as the standard has it: file 1, line 1.
static void begin_sequence(const struct linetable *table, struct machine *machine)
{
	*machine = (struct machine){ .file = 1, .line = 1, .first = table->rows_count };
	machine->sorted = true;
}

// Where the machine is now becomes a row. `low` and `sorted` are kept along, because a table that
// breaks the rule of rising addresses still has the addresses that it has.
static void add_row(struct linetable *table, struct machine *machine)
{
	ASSERT(machine->first <= table->rows_count);
	if (table->rows_count == machine->first)
		machine->low = machine->last = machine->address;
	if (machine->address < machine->last)
		machine->sorted = false;
	if (machine->address < machine->low)
		machine->low = machine->address;
	machine->last = machine->address;
	*MEM_ADD(table->rows, table->rows_count, table->rows_capacity) =
		(struct linetable_row){ machine->address, machine->file, machine->line };
}

SORT_ORDER(compare_rows, struct linetable_row, SORT_RISES(address))

static void end_sequence(struct linetable *table, const struct linetable_source *source,
			 struct machine *machine)
{
	size_t count = table->rows_count - machine->first;

	ASSERT(machine->first <= table->rows_count);
	// Sorting is for tables that break the rule of rising addresses; ties do not matter then.
	if (!machine->sorted)
		qsort(table->rows + machine->first, count, sizeof *table->rows, compare_rows);
	// A sequence of dropped code begins at 0 or thereabouts, outside of [code_start, code_end):
	// its rows are taken back.
	if (count > 0 && machine->low < machine->address && machine->low >= source->code_start &&
	    machine->low < source->code_end) {
		*MEM_ADD(table->sequences, table->sequences_count, table->sequences_capacity) =
			(struct linetable_sequence){ machine->low, machine->address, machine->first,
						     count };
	} else {
		table->rows_count = machine->first;
	}
	begin_sequence(table, machine);
}

// An extended instruction: 0, its length, its number, arguments. The length is what leads on,
// whatever the arguments were, so one that we do not know does no harm.
static void run_extended(struct linetable *table, const struct linetable_source *source,
			 const struct head *head, struct cursor *cursor, struct machine *machine)
{
	uint64_t length = read_uleb(cursor);
	struct cursor next = *cursor;
	uint8_t opcode;

	skip(&next, length);
	if (next.bad || length == 0) {
		cursor->bad = true;
		return;
	}
	opcode = (uint8_t)read_fixed(cursor, 1);
	if (opcode == DW_LNE_end_sequence)
		end_sequence(table, source, machine);
	else if (opcode == DW_LNE_set_address)
		machine->address = read_fixed(cursor, length - 1 == 4 || length - 1 == 8
							      ? (size_t)length - 1
							      : head->address_bytes);
	*cursor = next;
}

static void run_standard(struct linetable *table, const struct head *head, uint8_t opcode,
			 struct cursor *cursor, struct machine *machine)
{
	switch (opcode) {
	case DW_LNS_copy:
		add_row(table, machine);
		break;
	case DW_LNS_advance_pc:
		machine->address += read_uleb(cursor) * head->least_length;
		break;
	case DW_LNS_advance_line:
		machine->line += (uint32_t)read_sleb(cursor);
		break;
	case DW_LNS_set_file:
		machine->file = (uint32_t)read_uleb(cursor);
		break;
	case DW_LNS_const_add_pc:
		// As the byte 255 would move it, and no line: a cheap way of a large step. With 13
		// and 14 as above that is (255 - 13) / 14 = 17.
		machine->address += (uint64_t)((255 - head->opcode_base) / head->line_range) *
				    head->least_length;
		break;
	case DW_LNS_fixed_advance_pc:
		machine->address += read_fixed(cursor, 2);
		break;
	default: // of no interest, or not known: the head says how many arguments it has
		for (uint8_t i = 0; i < head->lengths[opcode - 1]; i++)
			read_uleb(cursor);
	}
}

// A table that breaks off, or makes no sense from some byte on, keeps the sequences that were whole
// before.
void linetable_read(struct linetable *table, const struct linetable_source *source, uint64_t offset)
{
	struct head head = { .address_bytes = source->address_bytes };
	struct nest_range *ranges;
	struct machine machine;
	struct cursor cursor;

	*table = (struct linetable){ 0 };
	if (offset >= source->size_bytes)
		return;
	cursor = (struct cursor){ source->bytes + offset, source->bytes + source->size_bytes,
				  false };
	if (!read_head(&cursor, &head))
		return;
	begin_sequence(table, &machine);
	while (!cursor.bad && cursor.at < cursor.end) {
		uint8_t opcode = (uint8_t)read_fixed(&cursor, 1);

		if (opcode >= head.opcode_base) {
			uint8_t step = (uint8_t)(opcode - head.opcode_base);

			machine.address += (uint64_t)(step / head.line_range) * head.least_length;
			machine.line += (uint32_t)(head.line_base + step % head.line_range);
			add_row(table, &machine);
		} else if (opcode == 0) {
			run_extended(table, source, &head, &cursor, &machine);
		} else {
			run_standard(table, &head, opcode, &cursor, &machine);
		}
	}
	ASSERT(cursor.at <= cursor.end);
	table->rows_count = machine.first; // a sequence without an end covers nothing
	// What a nest answers is a number of 32 bits.
	if (table->sequences_count > UINT32_MAX)
		table->sequences_count = UINT32_MAX;
	ranges = mem_alloc(table->sequences_count + 1, sizeof *ranges);
	for (size_t i = 0; i < table->sequences_count; i++)
		ranges[i] = (struct nest_range){ table->sequences[i].start, table->sequences[i].end,
						 0, (uint32_t)i };
	nest_build(&table->nest, ranges, table->sequences_count);
	mem_free(ranges);
}

void linetable_fini(struct linetable *table)
{
	nest_fini(&table->nest);
	MEM_FREE(table->sequences, table->rows);
	*table = (struct linetable){ 0 };
}

bool linetable_find(const struct linetable *table, uint64_t address, uint32_t *file, uint32_t *line)
{
	const struct linetable_sequence *sequence;
	const struct linetable_row *rows;
	size_t low;
	uint32_t at;

	if (!nest_find(&table->nest, address, &at))
		return false;
	ASSERT(at < table->sequences_count);
	sequence = &table->sequences[at];
	ASSERT(sequence->first + sequence->count <= table->rows_count);
	// Of rows at one address the last one counts, which is what RISING_UPTO finds.
	rows = table->rows + sequence->first;
	low = RISING_UPTO(rows, sequence->count, address, address);
	if (low == 0)
		return false;
	*file = rows[low - 1].file;
	*line = rows[low - 1].line;
	return true;
}
