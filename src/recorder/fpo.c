// A PDB is a file of blocks (MSF). Its first block says where the directory is, and that which
// blocks make each stream. Stream 1 has the id and a table of names, stream 3 says which streams
// have frames (two), and the texts of the programs are in the stream "/names".
//
// Example: a function at 0x14e0 of 393 bytes, that pushes ebp, ebx and edi and takes 20 bytes of
// locals, has a record for each step of its prologue. The last one begins at 0x14e9 and has 20
// bytes of locals, 12 of saved registers and the program above. The row is
//
//     function 0x14e0 | from 0x14e9 | end 0x1669 | SEARCH | frame 32 | kept_at -3 words
//
// for .raSearch is esp + 20 + 12; the cfa is 4 further out, and ebp lies at .raSearch - 8.
#include "recorder/fpo.h"

#include "recorder/text.h"

enum {
	FPO_HEAD_BYTES = 56,
	FPO_BLOCK_MIN = 512,
	FPO_BLOCK_MAX = 65536,
	FPO_INFO = 1, // streams
	FPO_DEBUG = 3,
	FPO_INFO_BYTES = 28,
	FPO_DEBUG_BYTES = 64,
	FPO_STREAM_OLD = 0, // among the further streams
	FPO_STREAM_OMAP = 4,
	FPO_STREAM_NEW = 9,
	FPO_STREAMS = 10,
	FPO_OLD_BYTES = 16,
	FPO_NEW_BYTES = 32,
	FPO_NAMES_BYTES = 12,
	FPO_ROWS_MAX = 1 << 20,
	FPO_STREAM_MAX = 64 << 20,
	FPO_IS_START = 4,
	FPO_OF_EBP = 3, // of an old record: it has a frame pointer
	FPO_BACK_MAX = 16,
	FPO_STACK = 16,
	FPO_VARIABLES = 14,
	FPO_EIP = 10,
	FPO_EBP = 12,
	FPO_OTHERS = 13,
};

#define FPO_NO_STREAM 0xffffu
#define FPO_NAMES_SIGNATURE 0xeffeeffeu

struct fpo_bytes {
	uint8_t *at;
	size_t count;
};

struct fpo_pdb {
	const struct fpo_file *file;
	uint32_t block_bytes;
	struct fpo_bytes directory;
	uint16_t streams[FPO_STREAMS];
	struct fpo_bytes names; // of programs
};

static uint32_t fpo_16(const uint8_t *at)
{
	return at[0] | (uint32_t)at[1] << 8;
}

// ---- Streams --------------------------------------------------------------------------------

static uint64_t fpo_blocks(const struct fpo_pdb *pdb, uint32_t bytes)
{
	return ((uint64_t)bytes + pdb->block_bytes - 1) / pdb->block_bytes;
}

static void fpo_give_back(const struct fpo_pdb *pdb, struct fpo_bytes *bytes)
{
	if (bytes->at)
		pdb->file->give_back(bytes->at, bytes->count);
	*bytes = (struct fpo_bytes){ NULL, 0 };
}

// What the blocks hold whose numbers are at `numbers`. Those that follow each other are read at
// once.
//
// A PDB file is made of blocks; a stream is a list of their numbers. For example, blocks 7, 8, 9
// and 3 of 4,096 bytes are read as 12,288 bytes at 28,672 and 4,096 at 12,288.
static bool fpo_gather(const struct fpo_pdb *pdb, const uint8_t *numbers, struct fpo_bytes to)
{
	for (size_t at = 0; at < to.count;) {
		uint32_t first = text_load32(numbers);
		size_t part = 0;

		do {
			part += pdb->block_bytes;
			numbers += 4;
		} while (at + part < to.count &&
			 text_load32(numbers) == first + part / pdb->block_bytes);
		part = part < to.count - at ? part : to.count - at;
		if (!pdb->file->read(pdb->file->context, (uint64_t)first * pdb->block_bytes,
				     to.at + at, part))
			return false;
		at += part;
	}
	return true;
}

// Memory of the caller's kind (`file->take`), since this runs in the recorder and in tests. None:
// it is too large, cannot be read, or there is no memory.
static struct fpo_bytes fpo_take(const struct fpo_pdb *pdb, const uint8_t *numbers, uint32_t bytes)
{
	struct fpo_bytes taken = { NULL, bytes };

	if (bytes > 0 && bytes <= pdb->file->bytes && bytes <= FPO_STREAM_MAX)
		taken.at = pdb->file->take(bytes);
	if (!taken.at)
		return (struct fpo_bytes){ NULL, 0 };
	if (!fpo_gather(pdb, numbers, taken))
		fpo_give_back(pdb, &taken);
	return taken;
}

// Stream `number`; none if it is not there or damaged.
//
// The directory: how many streams, the size of each, and then the numbers of the blocks of each,
// one stream after the other. A size of UINT32_MAX is a stream that was deleted.
static struct fpo_bytes fpo_stream(const struct fpo_pdb *pdb, uint32_t number)
{
	const struct fpo_bytes *list = &pdb->directory;
	uint32_t count = text_load32(list->at);
	uint64_t blocks = 0, at;
	uint32_t bytes = 0;

	if (number >= count || count > (list->count - 4) / 4)
		return (struct fpo_bytes){ NULL, 0 };
	for (uint32_t i = 0; i <= number; i++) {
		blocks += fpo_blocks(pdb, bytes);
		bytes = text_load32(list->at + 4 + 4 * (size_t)i);
		bytes = bytes == UINT32_MAX ? 0 : bytes;
	}
	at = 4 + 4 * (uint64_t)count + 4 * blocks;
	if (at > list->count || fpo_blocks(pdb, bytes) > (list->count - at) / 4)
		return (struct fpo_bytes){ NULL, 0 };
	return fpo_take(pdb, list->at + at, bytes);
}

// The head has where the directory's list of blocks is; that list has to fit into one block.
static bool fpo_open(struct fpo_pdb *pdb)
{
	static const char magic[] = "Microsoft C/C++ MSF 7.00\r\n\x1a"
				    "DS\0\0";
	uint8_t head[FPO_HEAD_BYTES];
	struct fpo_bytes map;
	uint32_t bytes;
	uint8_t number[4];

	if (!pdb->file->read(pdb->file->context, 0, head, sizeof(head)) ||
	    memcmp(head, magic, sizeof(magic) - 1) != 0)
		return false;
	pdb->block_bytes = text_load32(head + 32);
	bytes = text_load32(head + 44);
	if (pdb->block_bytes < FPO_BLOCK_MIN || pdb->block_bytes > FPO_BLOCK_MAX ||
	    (pdb->block_bytes & (pdb->block_bytes - 1)) != 0 || bytes < 4 ||
	    fpo_blocks(pdb, bytes) * 4 > pdb->block_bytes)
		return false;
	memcpy(number, head + 52, 4);
	map = fpo_take(pdb, number, (uint32_t)fpo_blocks(pdb, bytes) * 4);
	if (!map.at)
		return false;
	pdb->directory = fpo_take(pdb, map.at, bytes);
	fpo_give_back(pdb, &map);
	return pdb->directory.at != NULL;
}

// The stream that is called /names: the table of names is a hash with a set of the places that are
// taken.
//
// A stream's name is a text and its number is the value. The table is: texts with their size, count
// and capacity, a bit set of places that are taken, one of those that were deleted, and pairs.
static uint32_t fpo_find_names(const struct fpo_bytes *info)
{
	const uint8_t *bytes = info->at + FPO_INFO_BYTES, *texts = bytes + 4;
	size_t left = info->count - FPO_INFO_BYTES, texts_bytes, at;

	if (left < 4 || text_load32(bytes) > left - 4 || left - 4 - text_load32(bytes) < 12)
		return FPO_NO_STREAM;
	texts_bytes = text_load32(bytes);
	bytes += 4 + texts_bytes;
	left -= 4 + texts_bytes;
	if (text_load32(bytes + 8) > (left - 12) / 4)
		return FPO_NO_STREAM;
	at = 12 + 4 * (size_t)text_load32(bytes + 8);
	if (left - at < 4 || text_load32(bytes + at) > (left - at - 4) / 4)
		return FPO_NO_STREAM;
	for (at += 4 + 4 * (size_t)text_load32(bytes + at); at + 8 <= left; at += 8) {
		uint32_t text = text_load32(bytes + at);

		if (text < texts_bytes && texts_bytes - text >= 7 &&
		    memcmp(texts + text, "/names", 7) == 0)
			return text_load32(bytes + at + 4);
	}
	return FPO_NO_STREAM;
}

// Whether it is the image's, and where its texts are. The age is that of stream 3.
static bool fpo_read_info(struct fpo_pdb *pdb, const uint8_t id[FPO_ID_BYTES])
{
	struct fpo_bytes info = fpo_stream(pdb, FPO_INFO);
	bool same = info.count >= FPO_INFO_BYTES && memcmp(info.at + 12, id, 16) == 0;

	if (same)
		pdb->names = fpo_stream(pdb, fpo_find_names(&info));
	if (pdb->names.count < FPO_NAMES_BYTES || text_load32(pdb->names.at) != FPO_NAMES_SIGNATURE)
		fpo_give_back(pdb, &pdb->names);
	fpo_give_back(pdb, &info);
	return same;
}

// Stream 3 (DBI) ends with a list of the numbers of further streams, after six parts whose sizes
// are in its head. With an OMAP the image was rearranged after linking, and its addresses are not
// those of the rows: then there are none.
static bool fpo_read_streams(struct fpo_pdb *pdb, const uint8_t id[FPO_ID_BYTES])
{
	static const uint8_t parts[] = { 24, 28, 32, 36, 40, 52 }; // before that of the streams
	struct fpo_bytes debug = fpo_stream(pdb, FPO_DEBUG);
	uint64_t at = FPO_DEBUG_BYTES;
	bool found = debug.count >= FPO_DEBUG_BYTES &&
		     text_load32(debug.at + 8) == text_load32(id + 16);

	for (size_t i = 0; found && i < sizeof(parts); i++)
		at += text_load32(debug.at + parts[i]);
	memset(pdb->streams, 0xff, sizeof(pdb->streams));
	for (uint32_t i = 0; found && i < FPO_STREAMS && i < text_load32(debug.at + 48) / 2; i++)
		if (at + 2 * i + 2 <= debug.count)
			pdb->streams[i] = (uint16_t)fpo_16(debug.at + at + 2 * i);
	fpo_give_back(pdb, &debug);
	return found && pdb->streams[FPO_STREAM_OMAP] == FPO_NO_STREAM;
}

// ---- Programs -------------------------------------------------------------------------------

enum fpo_base { FPO_UNKNOWN, FPO_NUMBER, FPO_RA_SEARCH, FPO_EBP_BASE };

struct fpo_value {
	enum fpo_base base;
	bool loaded; // what lies there
	int32_t offset;
	uint32_t name; // of the variable that it is, to be assigned to
};

// A frame program is in reverse Polish notation: "$T0 .raSearch = $eip $T0 ^ = $esp $T0 4 + =" says
// that the return address is where a search finds it, and that the caller's esp is 4 further. Only
// these forms are understood: a base, a sum, and what lies there.
struct fpo_machine {
	uint32_t count;
	struct fpo_value stack[FPO_STACK];
	struct fpo_value variables[FPO_VARIABLES];
};

static uint32_t fpo_variable(const char *text, size_t bytes)
{
	static const char names[3][5] = { "$eip", "$esp", "$ebp" };

	if (bytes == 3 && text[1] == 'T' && text[2] >= '0' && text[2] <= '9')
		return (uint32_t)(text[2] - '0');
	for (uint32_t i = 0; i < 3; i++)
		if (bytes == 4 && memcmp(text, names[i], 4) == 0)
			return FPO_EIP + i;
	return FPO_OTHERS;
}

// A number in decimal.
static bool fpo_number(const char *text, size_t bytes, int32_t *number)
{
	bool minus = bytes > 1 && text[0] == '-';
	int32_t value = 0;

	for (size_t i = minus; i < bytes; i++) {
		if (text[i] < '0' || text[i] > '9' || value > INT32_MAX / 20)
			return false;
		value = value * 10 + (text[i] - '0');
	}
	*number = minus ? -value : value;
	return bytes > 0;
}

// Known plus a number is known. All else is not.
static struct fpo_value fpo_sum(struct fpo_value a, struct fpo_value b, int32_t sign)
{
	if (b.base == FPO_NUMBER && !a.loaded && a.base != FPO_UNKNOWN &&
	    !__builtin_add_overflow(a.offset, (int64_t)sign * b.offset, &a.offset))
		return a;
	return (struct fpo_value){ .base = FPO_UNKNOWN };
}

// ^ is what lies there, = assigns the top to the variable below it, @ aligns.
static bool fpo_operate(struct fpo_machine *machine, char operation)
{
	struct fpo_value *top;

	if (machine->count < (operation == '^' ? 1 : 2))
		return false;
	top = &machine->stack[machine->count - 1];
	if (operation == '^') {
		if (top->loaded || (top->base != FPO_RA_SEARCH && top->base != FPO_EBP_BASE))
			top->base = FPO_UNKNOWN;
		top->loaded = true;
		return true;
	}
	machine->count--;
	if (operation == '=') {
		machine->variables[top[-1].name] = *top;
		machine->count--;
	} else if (operation == '@') { // aligned
		top[-1] = (struct fpo_value){ .base = FPO_UNKNOWN };
	} else {
		top[-1] = fpo_sum(top[-1], top[0], operation == '+' ? 1 : -1);
	}
	return true;
}

// False: the stack is empty where it must not be, or full.
static bool fpo_token(struct fpo_machine *machine, const char *text, size_t bytes)
{
	struct fpo_value value = { .base = FPO_UNKNOWN, .name = FPO_OTHERS };

	if (bytes == 1 && (text[0] == '+' || text[0] == '-' || text[0] == '^' || text[0] == '=' ||
			   text[0] == '@'))
		return fpo_operate(machine, text[0]);
	if (machine->count == FPO_STACK)
		return false;
	if (text[0] == '$') {
		uint32_t name = fpo_variable(text, bytes);

		value = machine->variables[name];
		value.name = name;
	} else if (bytes >= 9 && memcmp(text, ".raSearch", 9) == 0) {
		value.base = FPO_RA_SEARCH;
	} else if (fpo_number(text, bytes, &value.offset)) {
		value.base = FPO_NUMBER;
	}
	machine->stack[machine->count++] = value;
	return true;
}

// The last lines make a row of what was assigned: eip has to be loaded from .raSearch or from ebp
// plus an offset, and ebp has to be what it was or to be loaded from a place at a known distance
// from that.
bool fpo_program(const char *text, size_t bytes, struct fpo_row *row)
{
	struct fpo_machine machine = { 0 };
	const struct fpo_value *eip = &machine.variables[FPO_EIP];
	const struct fpo_value *ebp = &machine.variables[FPO_EBP];
	int32_t kept;

	machine.variables[FPO_EBP].base = FPO_EBP_BASE;
	for (size_t at = 0, end; at < bytes; at = end + 1) {
		for (end = at; end < bytes && text[end] != ' '; end++)
			;
		if (end > at && !fpo_token(&machine, text + at, end - at))
			return false;
	}
	if (!eip->loaded || eip->base == FPO_UNKNOWN || eip->offset > INT16_MAX ||
	    eip->offset < INT16_MIN)
		return false;
	row->kind = eip->base == FPO_RA_SEARCH ? FPO_SEARCH : FPO_BY_EBP;
	row->frame = eip->offset + (eip->base == FPO_RA_SEARCH ? 0 : 4);
	row->kept_at = 0;
	row->keeps_somewhere = false;
	if (!ebp->loaded)
		return ebp->base == FPO_EBP_BASE && ebp->offset == 0 && eip->base == FPO_RA_SEARCH;
	kept = ebp->offset - eip->offset - 4;
	if (ebp->base != eip->base || kept % 4 != 0 || kept / 4 < -2000 || kept / 4 > 2000)
		return false;
	row->kept_at = (int16_t)(kept / 4);
	return true;
}

// ---- Rows -----------------------------------------------------------------------------------

// Without ebp the frame's size is what is between esp and the return address: locals and saved
// registers. False: sizes that no frame has.
static bool fpo_add_sizes(struct fpo_row *row, uint32_t arguments, uint32_t locals, uint32_t saved)
{
	row->arguments = (uint16_t)(arguments < UINT16_MAX ? arguments : UINT16_MAX);
	if (locals > INT32_MAX / 4 || locals % 4 != 0 || saved % 4 != 0)
		return false;
	if (row->kind == FPO_SEARCH)
		row->frame += (int32_t)(locals + saved);
	return row->frame >= 0;
}

// FRAMEDATA of Microsoft's cvinfo.h, 32 bytes.
static bool fpo_make_new(const struct fpo_pdb *pdb, const uint8_t *record, struct fpo_row *row,
			 uint32_t *prologue, bool *start)
{
	uint32_t text = text_load32(record + 20), end;
	const char *texts;
	size_t left;

	row->from = text_load32(record);
	row->end = row->from + text_load32(record + 4);
	*prologue = fpo_16(record + 24);
	*start = text_load32(record + 28) & FPO_IS_START;
	if (!pdb->names.at || text >= pdb->names.count - FPO_NAMES_BYTES)
		return false;
	texts = (const char *)pdb->names.at + FPO_NAMES_BYTES;
	left = pdb->names.count - FPO_NAMES_BYTES - text;
	for (end = 0; end < left && texts[text + end]; end++)
		;
	return fpo_program(texts + text, end, row) &&
	       fpo_add_sizes(row, text_load32(record + 12), text_load32(record + 8),
			     fpo_16(record + 26));
}

// FPO_DATA of winnt.h, 16 bytes: the last 16 bits are prologue:8, saved registers:3, has SEH:1,
// uses BP:1, reserved:1, frame:2.
static bool fpo_make_old(const uint8_t *record, struct fpo_row *row, uint32_t *prologue)
{
	uint32_t bits = fpo_16(record + 14), frame = bits >> 14;

	row->from = text_load32(record);
	row->end = row->from + text_load32(record + 4);
	*prologue = bits & 255;
	row->kind = frame == FPO_OF_EBP ? FPO_BY_EBP : FPO_SEARCH;
	row->frame = frame == FPO_OF_EBP ? 8 : 0;
	row->kept_at = frame == FPO_OF_EBP ? -2 : 0;
	row->keeps_somewhere = frame == 0 && (bits >> 12 & 1);
	return (frame == 0 || frame == FPO_OF_EBP) && text_load32(record + 8) < FPO_STREAM_MAX &&
	       fpo_add_sizes(row, fpo_16(record + 12) * 4, text_load32(record + 8) * 4,
			     (bits >> 8 & 7) * 4);
}

static bool fpo_before(const struct fpo_row *a, const struct fpo_row *b)
{
	return a->from < b->from || (a->from == b->from && a->function < b->function);
}

// A heap's root goes down to where it belongs.
static void fpo_sift(struct fpo_row *rows, size_t root, size_t count)
{
	for (size_t child; (child = 2 * root + 1) < count; root = child) {
		struct fpo_row row = rows[root];

		child += child + 1 < count && fpo_before(&rows[child], &rows[child + 1]);
		if (!fpo_before(&row, &rows[child]))
			return;
		rows[root] = rows[child];
		rows[child] = row;
	}
}

// Mostly it is sorted already, which one pass finds out.
static void fpo_sort(struct fpo_row *rows, size_t count)
{
	size_t sorted = 1;

	while (sorted < count && !fpo_before(&rows[sorted], &rows[sorted - 1]))
		sorted++;
	if (sorted >= count)
		return;
	for (size_t i = count / 2; i-- > 0;)
		fpo_sift(rows, i, count);
	for (size_t left = count - 1; left > 0; left--) {
		struct fpo_row row = rows[0];

		rows[0] = rows[left];
		rows[left] = row;
		fpo_sift(rows, 0, left);
	}
}

// Both streams. What is in the prologue ends where the body begins, so of the steps of a prologue
// the last one is left: `function` is where a record begins, until all are sorted.
static void fpo_add(const struct fpo_pdb *pdb, const struct fpo_bytes *stream, bool is_new,
		    uint32_t image_bytes, struct fpo_table *table)
{
	size_t record_bytes = is_new ? FPO_NEW_BYTES : FPO_OLD_BYTES;

	for (size_t at = 0; at + record_bytes <= stream->count; at += record_bytes) {
		struct fpo_row row = { 0 };
		uint32_t prologue;
		bool start = true;
		bool made = is_new ? fpo_make_new(pdb, stream->at + at, &row, &prologue, &start)
				   : fpo_make_old(stream->at + at, &row, &prologue);

		if (!made || row.end > image_bytes || row.end <= row.from ||
		    prologue >= row.end - row.from)
			continue;
		row.function = row.from;
		row.from += prologue;
		table->rows[table->count++] = row;
	}
}

// One row for each place, and the beginning of its function.
static void fpo_tidy(struct fpo_table *table)
{
	uint32_t kept = 0, function = 0, end = 0;

	fpo_sort(table->rows, table->count);
	for (uint32_t i = 0; i < table->count; i++) {
		struct fpo_row row = table->rows[i];

		if (row.function >= end) {
			function = row.function;
			end = row.end;
		}
		row.function = function;
		kept -= kept > 0 && table->rows[kept - 1].from == row.from;
		table->rows[kept++] = row;
	}
	table->count = kept;
}

// The old and the new kind of data, of which a PDB may have both. There is room for each of their
// entries; that fpo_tidy leaves fewer is not made use of.
static struct fpo_table *fpo_make(const struct fpo_pdb *pdb, uint32_t image_bytes)
{
	struct fpo_bytes old = fpo_stream(pdb, pdb->streams[FPO_STREAM_OLD]);
	struct fpo_bytes new = fpo_stream(pdb, pdb->streams[FPO_STREAM_NEW]);
	size_t rows = old.count / FPO_OLD_BYTES + new.count / FPO_NEW_BYTES;
	size_t bytes = sizeof(struct fpo_table) + rows * sizeof(struct fpo_row);
	struct fpo_table *table = NULL;

	if (rows > 0 && rows <= FPO_ROWS_MAX)
		table = pdb->file->take(bytes);
	if (table) {
		table->bytes = bytes;
		table->count = 0;
		fpo_add(pdb, &old, false, image_bytes, table);
		fpo_add(pdb, &new, true, image_bytes, table);
		fpo_tidy(table);
	}
	fpo_give_back(pdb, &old);
	fpo_give_back(pdb, &new);
	return table;
}

struct fpo_table *fpo_read(const struct fpo_file *file, const uint8_t id[FPO_ID_BYTES],
			   uint32_t image_bytes)
{
	struct fpo_pdb pdb = { .file = file };
	struct fpo_table *table = NULL;

	if (fpo_open(&pdb) && fpo_read_info(&pdb, id) && fpo_read_streams(&pdb, id))
		table = fpo_make(&pdb, image_bytes);
	fpo_give_back(&pdb, &pdb.names);
	fpo_give_back(&pdb, &pdb.directory);
	return table;
}

// Rows may lie within each other: a register that is saved for a part of the function.
//
// The innermost row that has the address: of those that begin before it, the latest whose end is
// after it. FPO_BACK_MAX rows are looked at.
const struct fpo_row *fpo_find(const struct fpo_table *table, uint32_t rva)
{
	uint32_t low = 0, high = table->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (table->rows[middle].from <= rva)
			low = middle + 1;
		else
			high = middle;
	}
	for (uint32_t i = 0; i < FPO_BACK_MAX && low > 0; i++)
		if (rva < table->rows[--low].end)
			return &table->rows[low];
	return NULL;
}
