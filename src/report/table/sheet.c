// A column's figure is mostly a field of the row, and then no function is written for it:
// SHEET_FIELD packs where it is and how large into one number. For example an uint64_t at offset
// 24 is 8 << SHEET_FIELD_BITS | 24, and sheet_field copies 8 bytes from there. The columns of a
// site (process, function, line, stack) are the same for all tables, and come from the stack that
// the sheet has at hand.
//
// A figure that is not known is empty in a flat form, but where the column says that 0 stands for
// it, and null in JSON.
#include "report/table/sheet.h"

#include "base/mem.h"
#include "base/str.h"
#include "report/table/lines.h"

#include <inttypes.h>
#include <string.h>

// ---- the columns of a site ----

// The columns that all lists of sites share. Function, source and module are of the program's own
// innermost frame; of no stack they are unknown.
struct sheet_cell sheet_site(const struct sheet_at *at)
{
	const struct trace_process *process = at->sheet->process;
	const struct names_stack *stack = &at->sheet->stack;
	const struct symbol *user = stack->count ? stack->lines[stack->user].symbol : NULL;

	switch ((enum sheet_part)at->column->at) {
	case SHEET_PROCESS:
		return sheet_u64(process, process ? process->pid : 0);
	case SHEET_PROCESS_ID:
		return sheet_u64(true, at->sheet->site.process);
	case SHEET_EXE:
		return sheet_text(process ? process->exe : NULL);
	case SHEET_FUNCTION:
		return sheet_text(user ? user->function : NULL);
	case SHEET_SOURCE:
		return sheet_text(user ? user->file : NULL);
	case SHEET_LINE:
		return sheet_u64(user, user ? user->line : 0);
	case SHEET_MODULE:
		return sheet_text(user ? user->module : NULL);
	case SHEET_OFFSET:
		return sheet_u64(user, user ? user->offset : 0);
	default:
		return (struct sheet_cell){ .stack = stack };
	}
}

void sheet_write_stack(const struct sheet_at *at)
{
	lines_json_site(at->sheet->json, &at->sheet->stack);
}

void sheet_write_frames(const struct sheet_at *at)
{
	const struct names_stack *stack = &at->sheet->stack;

	json_kv_u64(at->sheet->json, "user_frame", stack->count ? stack->user : 0);
	json_key(at->sheet->json, "stack");
	lines_json(at->sheet->json, stack);
}

// Function and so on are those of the first frame that is no allocator wrapper.
enum { FRAME = SHEET_FLAT_ONLY | SHEET_PROGRAMS };
static const struct sheet_column site_columns[] = {
	{ "process", SHEET_NUMBER, SHEET_ZERO, sheet_site, SHEET_PROCESS,
	  .meaning = "the process's pid" },
	{ "process_id", SHEET_NUMBER, SHEET_PROGRAMS, sheet_site, SHEET_PROCESS_ID,
	  .meaning = "its place in the list" },
	{ "exe", SHEET_TEXT, SHEET_PROGRAMS, sheet_site, SHEET_EXE,
	  .meaning = "the program that it runs" },
	{ "function", SHEET_TEXT, FRAME, sheet_site, SHEET_FUNCTION,
	  .meaning = "which function asked for it" },
	{ "file", SHEET_TEXT, FRAME, sheet_site, SHEET_SOURCE,
	  .meaning = "that function's source" },
	{ "line", SHEET_NUMBER, FRAME | SHEET_ZERO, sheet_site, SHEET_LINE,
	  .meaning = "the line there" },
	{ "module", SHEET_TEXT, FRAME, sheet_site, SHEET_MODULE,
	  .meaning = "the file that has its code" },
	{ "offset", SHEET_HEX, FRAME | SHEET_ZERO, sheet_site, SHEET_OFFSET,
	  .meaning = "where in that" },
	{ "stack", SHEET_STACK, SHEET_FLAT_ONLY, sheet_site, SHEET_CALLERS,
	  .meaning = "the callers, innermost first" },
	{ "stack", SHEET_OBJECT, SHEET_JSON_ONLY, .json = sheet_write_stack },
};

enum { SITE_COLUMNS = sizeof site_columns / sizeof *site_columns };

// ---- cells ----

// The bytes beyond the field's stay 0: a bool or a uint32_t is a u64 by that, on a machine whose
// lowest byte comes first. A text is its pointer.
struct sheet_cell sheet_field(const struct sheet_at *at)
{
	size_t offset = at->column->at & ((1 << SHEET_FIELD_BITS) - 1);
	struct sheet_cell cell = { 0 };

	ASSERT(at->row);
	memcpy(&cell.u64, (const char *)at->row + offset, at->column->at >> SHEET_FIELD_BITS);
	return cell;
}

struct sheet_cell sheet_get(struct sheet *sheet, const void *row, const struct sheet_column *column)
{
	struct sheet_cell cell = column->get(&(struct sheet_at){ sheet, row, column });

	if (cell.unknown && sheet->form->flat && column->flags & SHEET_ZERO)
		cell = (struct sheet_cell){ 0 };
	return cell;
}

// "function (file:line)", or what is known instead.
static void add_line(struct str *text, const struct symbol *symbol)
{
	if (symbol->function)
		str_add(text, symbol->function);
	else
		str_format(text, "%s%s0x%" PRIx64, str_last_part(symbol->module),
			   *symbol->module ? "+" : "", symbol->offset);
	if (symbol->file)
		str_format(text, " (%s:%" PRIu32 ")", symbol->file, symbol->line);
}

// As programs read it: no unit, no separators. A stack is "a (a.c:1) < b (b.c:2)", innermost first.
void sheet_add_plain(const struct sheet_column *column, const struct sheet_cell *cell,
		     struct str *text)
{
	if (cell->unknown)
		return;
	switch (column->kind) {
	case SHEET_TEXT:
		str_add(text, cell->text);
		break;
	case SHEET_STACK:
		for (size_t i = 0; i < cell->stack->count; i++) {
			str_add(text, i > 0 ? " < " : "");
			add_line(text, cell->stack->lines[i].symbol);
		}
		break;
	case SHEET_HEX:
		str_format(text, "0x%" PRIx64, cell->u64);
		break;
	case SHEET_REAL:
		str_format(text, "%.4f", cell->real);
		break;
	case SHEET_RATE:
		str_format(text, "%.3f", cell->real);
		break;
	default:
		if (column->flags & SHEET_SIGNED && cell->i64 < 0)
			str_add_char(text, '-');
		str_add_digits(text, column->flags & SHEET_SIGNED && cell->i64 < 0 ? 0 - cell->u64
										   : cell->u64);
		break;
	}
}

// The magnitude is written and the sign in front of it: 0 - u64 is right for the least number, too.
void sheet_add_figure(const struct sheet_column *column, const struct sheet_cell *cell,
		      const char *minus, struct str *text)
{
	bool real = column->kind == SHEET_RATE;
	bool negative = real ? cell->real < 0 : column->flags & SHEET_SIGNED && cell->i64 < 0;
	uint64_t value = real       ? (uint64_t)(negative ? -cell->real : cell->real)
			 : negative ? 0 - cell->u64
				    : cell->u64;

	if (negative)
		str_add(text, minus);
	else if ((column->flags & SHEET_CHANGE) == SHEET_CHANGE && value)
		str_add_char(text, '+');
	if (column->kind == SHEET_COUNT)
		str_add(text, STR_COUNT(value));
	else if (column->kind == SHEET_TIME)
		str_add(text, STR_DURATION(value));
	else
		str_add(text, STR_BYTES(value));
	if (real)
		str_add(text, "/s");
}

// ---- the sheet ----

// Programs have columns as they were declared, people by their `place`: each is put before all that
// come after it. The one that rows are ranked by (`first`) is the first, and bold.
static void add_column(struct sheet *sheet, const struct sheet_column *column)
{
	bool first = sheet->form->looks && sheet->first && strcmp(sheet->first, column->name) == 0;
	size_t at = sheet->count++;

	for (; sheet->form->looks && at > 0; at--) {
		if (!first && sheet->columns[at - 1].look.place < column->look.place)
			break;
		sheet->columns[at] = sheet->columns[at - 1];
	}
	sheet->columns[at] = *column;
	if (first)
		sheet->columns[at].look = (struct sheet_look){
			0, column->look.width, PAPER_BOLD, { column->look.titles[0] }
		};
}

// SHEET_SITE becomes the columns of a site; what the form has no use for is left out here, so that
// rows need not ask.
void sheet_begin(struct sheet *sheet, const struct sheet_column *columns, size_t count)
{
	unsigned not_here = (sheet->form->flat ? SHEET_JSON_ONLY : SHEET_FLAT_ONLY) |
			    (sheet->form->part ? SHEET_HEADS : 0);

	ASSERT(sheet->form && sheet->sink && !sheet->columns);
	sheet->columns = mem_alloc(count + SITE_COLUMNS, sizeof *sheet->columns);
	for (size_t i = 0; i < count; i++) {
		bool site = columns[i].kind == SHEET_SITE;
		const struct sheet_column *from = site ? site_columns : &columns[i];
		const struct sheet_column *end = from + (site ? SITE_COLUMNS : 1);

		for (; from < end; from++)
			// People see what has a width. Of a site each column has flags of its own,
			// beside those of the line that stands for all.
			if (sheet->form->looks ? from->look.width
					       : !((columns[i].flags | from->flags) & not_here))
				add_column(sheet, from);
	}
	ASSERT(sheet->count <= count + SITE_COLUMNS);
	if (sheet->form->begin)
		sheet->form->begin(sheet);
}

// The stack of the row's site is looked up once for all its columns.
void sheet_row(struct sheet *sheet, const void *row)
{
	ASSERT(sheet->columns); // between begin and end
	if (sheet->site_of) {
		sheet->site = sheet->site_of(sheet, row);
		sheet->process = reader_process(sheet->site.asked->reader, sheet->site.process);
		sheet->stack = names_stack(sheet->site.asked->names, sheet->site.stack);
	}
	sheet->form->row(sheet, row);
}

void sheet_end(struct sheet *sheet)
{
	ASSERT(sheet->columns);
	if (sheet->form->end)
		sheet->form->end(sheet);
	mem_free(sheet->columns);
	STR_FINI(&sheet->scratch, &sheet->text);
	sheet->columns = NULL;
	sheet->count = 0;
}

// ---- comma-separated values (RFC 4180) ----

// In quotes only where it must be; a quote in it is doubled.
static void write_field(struct sink *sink, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		sink_text(sink, text);
		return;
	}
	sink_text(sink, "\"");
	for (; *text; text++) {
		if (*text == '"')
			sink_text(sink, "\"");
		sink_write(sink, text, 1);
	}
	sink_text(sink, "\"");
}

static void csv_begin(struct sheet *sheet)
{
	for (size_t i = 0; i < sheet->count; i++)
		sink_format(sheet->sink, "%s%s", i > 0 ? "," : "", sheet->columns[i].name);
	sink_text(sheet->sink, "\r\n");
}

static void csv_row(struct sheet *sheet, const void *row)
{
	for (size_t i = 0; i < sheet->count; i++) {
		struct sheet_cell cell = sheet_get(sheet, row, &sheet->columns[i]);

		str_clear(&sheet->text);
		sheet_add_plain(&sheet->columns[i], &cell, &sheet->text);
		sink_text(sheet->sink, i > 0 ? "," : "");
		write_field(sheet->sink, str_get(&sheet->text));
	}
	sink_text(sheet->sink, "\r\n");
}

const struct sheet_form sheet_csv = {
	.name = "csv",
	.flat = true,
	.begin = csv_begin,
	.row = csv_row,
};

// ---- JSON ----

// An empty text is null: JSON has no reader that tells them apart here.
static void write_value(struct json *json, const struct sheet_column *column,
			const struct sheet_cell *cell)
{
	if (cell->unknown)
		json_null(json);
	else if (column->kind == SHEET_TEXT)
		json_string(json, *cell->text ? cell->text : NULL);
	else if (column->kind == SHEET_HEX)
		json_hex(json, cell->u64);
	else if (column->kind == SHEET_REAL || column->kind == SHEET_RATE)
		json_double(json, cell->real);
	else if (column->flags & SHEET_SIGNED)
		json_i64(json, cell->i64);
	else
		json_u64(json, cell->u64);
}

static void json_row(struct sheet *sheet, const void *row)
{
	json_object_begin(sheet->json);
	for (size_t i = 0; i < sheet->count; i++) {
		const struct sheet_column *column = &sheet->columns[i];
		struct sheet_cell cell;

		if (column->kind == SHEET_OBJECT) {
			column->json(&(struct sheet_at){ sheet, row, column });
			continue;
		}
		cell = sheet_get(sheet, row, column);
		json_key(sheet->json, column->name);
		write_value(sheet->json, column, &cell);
	}
	json_object_end(sheet->json);
}

static const struct sheet_form in_json = { .name = "json", .part = true, .row = json_row };

struct sheet sheet_in_json(struct json *json)
{
	ASSERT(json);
	return (struct sheet){ .form = &in_json, .sink = json->sink, .json = json };
}

// ---- JSON Lines ----

static void jsonl_row(struct sheet *sheet, const void *row)
{
	sheet->json = &sheet->line;
	json_init(sheet->json, sheet->sink, false);
	json_row(sheet, row);
	sink_text(sheet->sink, "\n");
}

const struct sheet_form sheet_jsonl = { .name = "jsonl", .row = jsonl_row };
