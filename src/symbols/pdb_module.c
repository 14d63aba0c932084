// A module's stream has records of symbols, which nest: a function, in it blocks and inlined
// functions, each closed by an end. Inlined code is said by annotations, pairs of a step and its
// value in one, two or four bytes. For example, of a function at 0x1000, inlined from line 10 of
// its file:
//
//     0b 24    step 11, both in one number: 4 bytes further on, and a line more (36 = 2 << 4 | 4,
//              and 2 is +1 with its sign lowest): a row begins at 0x1004, line 11
//     04 08    step 4, the code is 8 bytes long: the row ends at 0x100c, and so does the range
//
// Addresses are of sections: number 1 and offset 0x10 is 0x1010 where section 1 is at 0x1000.
// Lines of functions are in tables after the records, rising by address; a name is that of the
// innermost range.
#include "symbols/pdb_module.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/rising.h"
#include "base/sort.h"
#include "trace/bytes.h"

#include <stdlib.h>
#include <string.h>

// Kinds of records. Those with ID at the end are of newer compilers and have an item for a type;
// what we read of them is at the same offsets. All that open a scope must be known here, because an
// end says nothing of what it ends.
enum {
	SIGNATURE_BYTES = 4,
	DEPTH_MAX = 256, // of scopes that we follow
	S_END = 0x0006,
	S_THUNK = 0x1102,
	S_BLOCK = 0x1103,
	S_WITH = 0x1104,
	S_LOCAL = 0x110f, // procedures: of this module alone, of all
	S_GLOBAL = 0x1110,
	S_LOCAL_ID = 0x1146,
	S_GLOBAL_ID = 0x1147,
	S_LOCAL_DPC = 0x1155,
	S_LOCAL_DPC_ID = 0x1156,
	S_SEPARATE = 0x1132, // code that was moved away from its function
	S_INLINE = 0x114d,
	S_INLINE_END = 0x114e,
	S_ID_END = 0x114f,
	S_INLINE_2 = 0x115d,
	LINES_OF_CODE = 0xf2, // parts of the tables
	LINES_FILES = 0xf4,
	LINES_INLINED = 0xf6,
	NO_LINE_1 = 0xfeefee, // what debuggers are told to step over
	NO_LINE_2 = 0xf00f00,
};

#define NO_NODE UINT32_MAX
#define NO_FILE UINT32_MAX

// Code of one line: [rva, end).
struct row {
	uint32_t rva, end;
	uint32_t line;
	uint32_t file; // offset among the module's files
};

struct node {
	const char *name; // NULL: inlined
	uint32_t inlinee;
	uint32_t start;            // RVA
	uint32_t caller;           // node that it is inlined into; NO_NODE
	uint32_t rows, rows_count; // of inlined code
};

struct pdb_module {
	struct msf_stream stream;
	const uint8_t *files; // the module's list of files
	size_t files_bytes;
	struct node *nodes;
	size_t nodes_count, nodes_capacity;
	struct row *rows; // of inlined code
	size_t rows_count, rows_capacity;
	struct row *lines; // of functions, by rising RVA
	size_t lines_count, lines_capacity;
	struct nest nest;
};

// What is needed while the module is read.
struct reading {
	struct pdb_module *module;
	const struct pdb_sections *sections;
	struct nest_range *ranges;
	size_t ranges_count, ranges_capacity;
	struct map inlinees; // item -> place of its entry in the stream + 1
	struct map starts;   // RVA -> node that begins there + 1
	uint32_t stack[DEPTH_MAX];
	uint32_t depth;
};

// A record of symbols: what follows its kind.
struct record {
	uint16_t kind;
	const uint8_t *bytes;
	size_t size_bytes;
};

bool pdb_module_rva(const struct pdb_sections *sections, uint16_t number, uint32_t offset,
		    uint32_t *rva)
{
	if (number == 0 || number > sections->count ||
	    offset >= sections->items[number - 1].size_bytes)
		return false;
	*rva = sections->items[number - 1].rva + offset;
	return true;
}

static void add_range(struct reading *reading, uint32_t start, uint32_t end, uint32_t node)
{
	ASSERT(node < reading->module->nodes_count);
	if (end <= start)
		return;
	*MEM_ADD(reading->ranges, reading->ranges_count, reading->ranges_capacity) =
		(struct nest_range){ start, end, reading->depth, node };
}

static uint32_t add_node(struct reading *reading, struct node node)
{
	struct pdb_module *module = reading->module;

	ASSERT(reading->module->nodes_count < NO_NODE);
	MEM_ROOM(module->nodes, module->nodes_capacity, module->nodes_count + 1);
	module->nodes[module->nodes_count] = node;
	return (uint32_t)module->nodes_count++;
}

static const char *text_at(const struct record *record, size_t at)
{
	if (at >= record->size_bytes || !memchr(record->bytes + at, 0, record->size_bytes - at))
		return NULL;
	return (const char *)record->bytes + at;
}

// ---- functions ----

// A function: its place and length stand at these offsets of the record, and then its name.
static uint32_t read_function(struct reading *reading, const struct record *record,
			      size_t length_at, size_t length_bytes, size_t place_at,
			      size_t name_at)
{
	const char *name = text_at(record, name_at);
	uint32_t rva, length, node;

	ASSERT(place_at + 6 <= record->size_bytes &&
	       length_at + length_bytes <= record->size_bytes);
	if (!name || !pdb_module_rva(reading->sections, bytes_get_u16(record->bytes + place_at + 4),
				     bytes_get_u32(record->bytes + place_at), &rva))
		return NO_NODE;
	length = length_bytes == 4 ? bytes_get_u32(record->bytes + length_at)
				   : bytes_get_u16(record->bytes + length_at);
	if (length > UINT32_MAX - rva)
		return NO_NODE;
	node = add_node(reading, (struct node){ .name = name, .start = rva, .caller = NO_NODE });
	// The depth of the scope is that of the nest: what is inlined is deeper than its function.
	add_range(reading, rva, rva + length, node);
	*map_put(&reading->starts, rva, NULL) = (uint64_t)node + 1;
	return node;
}

// Code that was moved away is a function of the same name.
static uint32_t read_separate(struct reading *reading, const struct record *record)
{
	uint32_t rva, parent, length, node;
	uint64_t *of;

	if (record->size_bytes < 28 ||
	    !pdb_module_rva(reading->sections, bytes_get_u16(record->bytes + 24),
			    bytes_get_u32(record->bytes + 16), &rva) ||
	    !pdb_module_rva(reading->sections, bytes_get_u16(record->bytes + 26),
			    bytes_get_u32(record->bytes + 20), &parent))
		return NO_NODE;
	of = map_find(&reading->starts, parent);
	ASSERT(!of || (*of > 0 && *of <= reading->module->nodes_count));
	length = bytes_get_u32(record->bytes + 8);
	if (!of || length > UINT32_MAX - rva)
		return NO_NODE;
	node = add_node(reading, (struct node){ .name = reading->module->nodes[*of - 1].name,
						.start = reading->module->nodes[*of - 1].start,
						.caller = NO_NODE });
	add_range(reading, rva, rva + length, node);
	return node;
}

// ---- inlined functions ----

// A number of one, two or four bytes. False at the end.
static bool next_number(const struct record *record, size_t *at, uint32_t *value)
{
	const uint8_t *bytes = record->bytes + *at;
	size_t left = record->size_bytes - *at;

	ASSERT(*at <= record->size_bytes);
	if (left >= 1 && bytes[0] < 0x80) {
		*value = bytes[0];
		*at += 1;
	} else if (left >= 2 && (bytes[0] & 0xc0) == 0x80) {
		*value = (bytes[0] & 0x3fu) << 8 | bytes[1];
		*at += 2;
	} else if (left >= 4 && (bytes[0] & 0xe0) == 0xc0) {
		*value = (bytes[0] & 0x1fu) << 24 | (uint32_t)bytes[1] << 16 |
			 (uint32_t)bytes[2] << 8 | bytes[3];
		*at += 4;
	} else {
		return false;
	}
	return true;
}

static uint32_t with_sign(uint32_t value)
{
	return value & 1 ? 0 - (value >> 1) : value >> 1;
}

// Where the annotations of an inlined function have come to.
struct inlined {
	struct reading *reading;
	uint32_t node;
	uint32_t base; // RVA of the function around it
	uint32_t at;   // behind that
	uint32_t from; // where the code under way begins
	uint32_t file, line;
	bool open; // code is under way
};

// The row under way ends here.
static void end_row(struct inlined *inlined)
{
	struct pdb_module *module = inlined->reading->module;

	// Its own last row: those of the functions around it come before nodes[].rows.
	ASSERT(inlined->node < module->nodes_count);
	if (inlined->open && module->rows_count > module->nodes[inlined->node].rows)
		module->rows[module->rows_count - 1].end = inlined->base + inlined->at;
}

static void begin_row(struct inlined *inlined)
{
	struct pdb_module *module = inlined->reading->module;

	ASSERT(inlined->node < inlined->reading->module->nodes_count);
	end_row(inlined);
	if (!inlined->open)
		inlined->from = inlined->at;
	inlined->open = true;
	*MEM_ADD(module->rows, module->rows_count, module->rows_capacity) =
		(struct row){ inlined->base + inlined->at, inlined->base + inlined->at,
			      inlined->line, inlined->file };
	module->nodes[inlined->node].rows_count++;
}

static void end_code(struct inlined *inlined, uint32_t length)
{
	inlined->at += length;
	end_row(inlined);
	if (inlined->open)
		add_range(inlined->reading, inlined->base + inlined->from,
			  inlined->base + inlined->at, inlined->node);
	inlined->open = false;
}

// One step. Numbers wrap rather than overflow: what is damaged names code that is not there.
static bool annotate(struct inlined *inlined, const struct record *record, size_t *at)
{
	uint32_t step, value, more;

	if (!next_number(record, at, &step) || step == 0 || !next_number(record, at, &value))
		return false;
	switch (step) {
	case 1: // the place itself
		inlined->at = value;
		begin_row(inlined);
		break;
	case 3: // code further on
		inlined->at += value;
		begin_row(inlined);
		break;
	case 4: // how long it is
		end_code(inlined, value);
		break;
	case 5:
		inlined->file = value;
		break;
	case 6:
		inlined->line += with_sign(value);
		break;
	case 11: // both, in one number
		inlined->at += value & 15;
		inlined->line += with_sign(value >> 4);
		begin_row(inlined);
		break;
	case 12: // how long, and where
		if (!next_number(record, at, &more))
			return false;
		inlined->at += more;
		begin_row(inlined);
		end_code(inlined, value);
		break;
	default: // columns, and where a statement ends
		return step <= 13;
	}
	return true;
}

static uint32_t read_inlined(struct reading *reading, const struct record *record, size_t at)
{
	struct pdb_module *module = reading->module;
	uint32_t caller = reading->depth > 0 ? reading->stack[reading->depth - 1] : NO_NODE;
	struct inlined inlined = { .reading = reading, .file = NO_FILE };
	const uint8_t *entry;
	uint64_t *known;

	if (caller == NO_NODE || record->size_bytes < at)
		return NO_NODE;
	// Steps count from the beginning of the function around it, also where that is inlined
	// itself: its node has the same start.
	inlined.base = module->nodes[caller].start;
	inlined.node = add_node(reading, (struct node){
						 .inlinee = bytes_get_u32(record->bytes + 8),
						 .start = inlined.base,
						 .caller = caller,
						 .rows = (uint32_t)module->rows_count,
					 });
	known = map_find(&reading->inlinees, module->nodes[inlined.node].inlinee);
	if (known) {
		ASSERT(*known > 0 && *known + 11 <= module->stream.size_bytes);
		entry = module->stream.bytes + *known - 1;
		inlined.file = bytes_get_u32(entry + 4);
		inlined.line = bytes_get_u32(entry + 8);
	}
	// What is wrong ends the list; the rows before it are good.
	while (annotate(&inlined, record, &at))
		;
	return inlined.node;
}

// ---- records ----

static void push(struct reading *reading, uint32_t node)
{
	// Deeper scopes are counted, so that each end closes the scope that it belongs to.
	if (reading->depth < DEPTH_MAX)
		reading->stack[reading->depth] = node;
	reading->depth++;
}

static uint32_t inside(const struct reading *reading)
{
	return reading->depth > 0 ? reading->stack[reading->depth - 1] : NO_NODE;
}

static void read_record(struct reading *reading, const struct record *record)
{
	size_t size = record->size_bytes;

	// Deeper than we follow: only count.
	if (reading->depth >= DEPTH_MAX && record->kind != S_END && record->kind != S_INLINE_END &&
	    record->kind != S_ID_END) {
		if (record->kind == S_INLINE || record->kind == S_INLINE_2 ||
		    record->kind == S_BLOCK || record->kind == S_WITH)
			reading->depth++;
		return;
	}
	// Offsets are those of the records without their length and kind: of a function three
	// numbers of scopes (0 to 11), its length (12), where its body begins and ends (16, 20),
	// its type (24), its place (offset 28, section 32), flags (34), and its name.
	switch (record->kind) {
	case S_LOCAL:
	case S_GLOBAL:
	case S_LOCAL_ID:
	case S_GLOBAL_ID:
	case S_LOCAL_DPC:
	case S_LOCAL_DPC_ID:
		push(reading, size >= 35 ? read_function(reading, record, 12, 4, 28, 35) : NO_NODE);
		break;
	case S_THUNK:
		push(reading, size >= 21 ? read_function(reading, record, 18, 2, 12, 21) : NO_NODE);
		break;
	case S_SEPARATE:
		push(reading, read_separate(reading, record));
		break;
	case S_BLOCK:
	case S_WITH:
		push(reading, inside(reading));
		break;
	case S_INLINE:
		push(reading, read_inlined(reading, record, 12));
		break;
	case S_INLINE_2:
		push(reading, read_inlined(reading, record, 16));
		break;
	case S_END:
	case S_INLINE_END:
	case S_ID_END:
		if (reading->depth > 0)
			reading->depth--;
		break;
	default:
		break;
	}
}

static void read_symbols(struct reading *reading, const uint8_t *bytes, size_t size_bytes)
{
	size_t at = SIGNATURE_BYTES;

	while (size_bytes >= 4 && at <= size_bytes - 4) {
		uint32_t length = bytes_get_u16(bytes + at);
		struct record record;

		if (length < 2 || length > size_bytes - at - 2)
			break;
		record = (struct record){ bytes_get_u16(bytes + at + 2), bytes + at + 4,
					  length - 2 };
		read_record(reading, &record);
		at += 2 + length;
	}
}

// ---- lines ----

SORT_ORDER(compare_rows, struct row, SORT_RISES(rva), SORT_RISES(end))

// The lines of one run of code. They come by file, and belong together by address.
static void read_lines(struct reading *reading, const uint8_t *bytes, size_t size_bytes)
{
	struct pdb_module *module = reading->module;
	size_t first = module->lines_count, at = 12, entry;
	uint32_t rva, code_bytes;

	if (size_bytes < 12 || !pdb_module_rva(reading->sections, bytes_get_u16(bytes + 4),
					       bytes_get_u32(bytes), &rva))
		return;
	code_bytes = bytes_get_u32(bytes + 8);
	if (code_bytes > UINT32_MAX - rva)
		return;
	while (at + 12 <= size_bytes) {
		uint32_t file = bytes_get_u32(bytes + at), count = bytes_get_u32(bytes + at + 4);
		uint32_t block = bytes_get_u32(bytes + at + 8);

		if (block < 12 || block > size_bytes - at || count > (block - 12) / 8)
			break;
		for (uint32_t i = 0; i < count; i++) {
			uint32_t offset = bytes_get_u32(bytes + at + 12 + (size_t)i * 8);
			uint32_t line = bytes_get_u32(bytes + at + 16 + (size_t)i * 8) & 0xffffff;

			if (offset >= code_bytes)
				continue;
			MEM_ROOM(module->lines, module->lines_capacity, module->lines_count + 1);
			entry = module->lines_count++;
			module->lines[entry] =
				// `end` has the order of arrival, by which rows of one address are
				// sorted; it becomes the row's end below.
				(struct row){ rva + offset, (uint32_t)(entry - first), line, file };
		}
		at += block;
	}
	if (module->lines_count == first)
		return;
	qsort(module->lines + first, module->lines_count - first, sizeof *module->lines,
	      compare_rows);
	// Where the code begins with what was inlined, the first row comes later.
	module->lines[first].rva = rva;
	for (entry = first; entry < module->lines_count; entry++)
		module->lines[entry].end = entry + 1 < module->lines_count
						   ? module->lines[entry + 1].rva
						   : rva + code_bytes;
}

// Where the functions that were inlined begin in their files.
static void read_inlinees(struct reading *reading, const uint8_t *bytes, size_t size_bytes)
{
	const uint8_t *stream = reading->module->stream.bytes;
	bool more = size_bytes >= 4 && bytes_get_u32(bytes) == 1; // each has further files
	size_t at = 4;

	while (at + 12 <= size_bytes) {
		*map_put(&reading->inlinees, bytes_get_u32(bytes + at), NULL) =
			(uint64_t)(bytes + at - stream) + 1;
		at += 12;
		if (!more)
			continue;
		if (at + 4 > size_bytes || bytes_get_u32(bytes + at) > (size_bytes - at - 4) / 4)
			break;
		at += 4 + 4 * (size_t)bytes_get_u32(bytes + at);
	}
}

// Tables of several kinds, one after the other, each with its kind and length, at multiples of 4.
static void read_tables(struct reading *reading, const uint8_t *bytes, size_t size_bytes)
{
	size_t at = 0;

	while (size_bytes >= 8 && at <= size_bytes - 8) {
		uint32_t kind = bytes_get_u32(bytes + at), length = bytes_get_u32(bytes + at + 4);

		at += 8;
		if (length > size_bytes - at)
			break;
		if (kind == LINES_OF_CODE) {
			read_lines(reading, bytes + at, length);
		} else if (kind == LINES_FILES) {
			reading->module->files = bytes + at;
			reading->module->files_bytes = length;
		} else if (kind == LINES_INLINED) {
			read_inlinees(reading, bytes + at, length);
		}
		at += (length + (size_t)3) & ~(size_t)3;
	}
}

struct pdb_module *pdb_module_new(struct msf_stream stream, const struct pdb_module_head *head,
				  const struct pdb_sections *sections)
{
	struct pdb_module *module = mem_alloc(1, sizeof *module);
	struct reading reading = { .module = module, .sections = sections };
	size_t symbols = head->symbols_bytes, old = head->old_lines_bytes,
	       lines = head->lines_bytes;

	module->stream = stream;
	// The three parts of the stream as the debug stream states them, cut to what is there.
	if (symbols > stream.size_bytes)
		symbols = stream.size_bytes;
	if (old > stream.size_bytes - symbols)
		old = stream.size_bytes - symbols;
	if (lines > stream.size_bytes - symbols - old)
		lines = stream.size_bytes - symbols - old;
	// Which lines inlined code begins with is asked while symbols are read.
	if (lines > 0)
		read_tables(&reading, stream.bytes + symbols + old, lines);
	if (symbols > 0)
		read_symbols(&reading, stream.bytes, symbols);
	if (module->lines_count > 0)
		qsort(module->lines, module->lines_count, sizeof *module->lines, compare_rows);
	nest_build(&module->nest, reading.ranges, reading.ranges_count);
	mem_free(reading.ranges);
	MAP_FINI(&reading.inlinees, &reading.starts);
	return module;
}

void pdb_module_free(struct pdb_module *module)
{
	if (!module)
		return;
	nest_fini(&module->nest);
	MEM_FREE(module->nodes, module->rows, module->lines);
	msf_stream_close(&module->stream);
	mem_free(module);
}

// The offset of the path among the PDB's texts.
static uint32_t file_text(const struct pdb_module *module, uint32_t file)
{
	if (file >= module->files_bytes || module->files_bytes - file < 6)
		return NO_FILE;
	return bytes_get_u32(module->files + file);
}

static void set_line(const struct pdb_module *module, const struct row *row,
		     struct pdb_place *place)
{
	place->file = file_text(module, row->file);
	place->line = row->line == NO_LINE_1 || row->line == NO_LINE_2 ? 0 : row->line;
}

static bool find_line(const struct pdb_module *module, uint32_t rva, struct pdb_place *place)
{
	size_t low = RISING_UPTO(module->lines, module->lines_count, rva, rva);

	if (low == 0 || rva >= module->lines[low - 1].end)
		return false;
	set_line(module, &module->lines[low - 1], place);
	return true;
}

static void find_row(const struct pdb_module *module, const struct node *node, uint32_t rva,
		     struct pdb_place *place)
{
	ASSERT(node->rows + (size_t)node->rows_count <= module->rows_count);
	// Rows of one inlined call: few, and in the order of the annotations, which may go back.
	// The later one wins, as in the table of a function.
	for (uint32_t i = node->rows_count; i-- > 0;) {
		const struct row *row = &module->rows[node->rows + i];

		if (rva >= row->rva && rva < row->end) {
			set_line(module, row, place);
			return;
		}
	}
}

size_t pdb_module_find(struct pdb_module *module, uint32_t rva, struct pdb_place *places,
		       size_t count)
{
	size_t found = 0;
	uint32_t at;

	ASSERT(count > 0);
	if (!nest_find(&module->nest, rva, &at)) {
		places[0] = (struct pdb_place){ .name = "", .file = NO_FILE };
		return find_line(module, rva, &places[0]) ? 1 : 0;
	}
	// From the innermost node outwards. Each has a line of its own: of inlined code in its
	// rows, of the function itself in the tables.
	for (; at != NO_NODE && found < count; at = module->nodes[at].caller) {
		const struct node *node = &module->nodes[at];
		struct pdb_place *place = &places[found++];

		*place = (struct pdb_place){ node->name, node->inlinee, NO_FILE, 0 };
		if (node->name)
			find_line(module, rva, place);
		else
			find_row(module, node, rva, place);
	}
	return found;
}
