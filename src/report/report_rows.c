// The sites of a report as rows: those that answer one question after the other.
#include "report/report.h"

#include "base/mem.h"
#include "base/str.h"
#include "report/table/lines.h"
#include "trace/defs.h"

#include <inttypes.h>
#include <stdio.h>

// A row of a question, as the columns read it. Bytes and times in ns; `error` is a standard error
// of bytes or calls, whichever ranks; people see it as a part of the figure, and the figure as a
// part of all.
struct line {
	const struct sites_row *row; // NULL: all rows that are left out, for people
	enum sites_question question;
	const char *section;
	uint64_t rank, count, bytes, error, largest, first_ns, last_ns;
	uint64_t rows; // that are left out
	char share[16], part[16];
};

// Known only of an estimate: an exact figure has none, which is not the same as an error of 0.
static struct sheet_cell get_error(const struct sheet_at *at)
{
	const struct line *line = at->row;

	return sheet_u64(reader_is_estimated(at->sheet->site.asked->reader), line->error);
}

// Of what is live at exit, where it is known: what no pointer leads to.
static void write_unreachable(const struct sheet_at *at)
{
	const struct report *report = at->sheet->context;
	const struct line *line = at->row;

	if (line->section == sites_key(SITES_LIVE_AT_EXIT) && report->reached.known) {
		lines_json_amount(at->sheet->json, "unreachable", line->row->lost);
		return;
	}
	json_kv_null(at->sheet->json, "unreachable");
}

// A text within the row.
static struct sheet_cell get_words(const struct sheet_at *at)
{
	return sheet_text((const char *)at->row + at->column->at);
}

#define FIELD(member) SHEET_FIELD(struct line, member)
#define ERROR_COLUMN(flags)                                                            \
	{                                                                              \
		"standard_error", SHEET_COUNT, flags,                                  \
			.get = get_error,                                              \
			.meaning = "of bytes or calls that are estimated from samples" \
	}
// In the order in which a form has them. The standard error is listed twice, since JSON has it
// beside the figures and flat forms have it after the site's columns.
static const struct sheet_column columns[] = {
	{ "section", SHEET_TEXT, SHEET_HEADS, FIELD(section),
	  .meaning = "the question that the site answers" },
	{ "rank", SHEET_NUMBER, SHEET_FLAT_ONLY | SHEET_PROGRAMS, FIELD(rank),
	  .meaning = "from 1" },
	{ "count", SHEET_COUNT, 0, FIELD(count), .meaning = "allocations",
	  .look = { .place = 3, .width = 12 } },
	{ "bytes", SHEET_BYTES, 0, FIELD(bytes), .meaning = "their bytes",
	  .look = { .place = 3, .width = 12 } },
	ERROR_COLUMN(SHEET_JSON_ONLY),
	{ .kind = SHEET_SITE, .flags = SHEET_FLAT_ONLY },
	ERROR_COLUMN(SHEET_FLAT_ONLY),
	{ .kind = SHEET_OBJECT, .flags = SHEET_JSON_ONLY, .json = write_unreachable },
	{ "process", SHEET_NUMBER, SHEET_JSON_ONLY, sheet_site, SHEET_PROCESS,
	  .meaning = "its pid" },
	{ "process_id", SHEET_NUMBER, SHEET_JSON_ONLY, sheet_site, SHEET_PROCESS_ID,
	  .meaning = "its place in the list" },
	{ "largest_bytes", SHEET_BYTES, SHEET_JSON_ONLY, FIELD(largest), .meaning = "the largest" },
	{ "first_ns", SHEET_TIME, SHEET_JSON_ONLY, FIELD(first_ns),
	  .meaning = "when the first began" },
	{ "last_ns", SHEET_TIME, SHEET_JSON_ONLY, FIELD(last_ns),
	  .meaning = "when the last began" },
	{ .kind = SHEET_OBJECT, .flags = SHEET_JSON_ONLY, .json = sheet_write_stack },
	{ "share", SHEET_TEXT, SHEET_PEOPLE_ONLY, get_words, offsetof(struct line, share),
	  .meaning = "the figure that ranks, of all", .look = { .place = 2, .width = 8 } },
	// the last, so that it is easily left out
	{ "error", SHEET_TEXT, SHEET_PEOPLE_ONLY, get_words, offsetof(struct line, part),
	  .meaning = "how far it may be off",
	  .look = { .place = 1, .width = REPORT_ERROR_COLUMNS, .style = PAPER_DIM } },
};

static struct sheet_site site_of(const struct sheet *sheet, const void *of)
{
	const struct report *report = sheet->context;
	const struct line *line = of;

	return (struct sheet_site){ report->asked, line->row ? line->row->process : TRACE_NONE,
				    line->row ? line->row->stack : 0 };
}

// Who allocated, where there is more than one: "[cc1, 12 processes]", of one its pid; and of what
// it left "[unreachable]", "[1.2 KiB unreachable]".
static void describe(struct sheet *sheet, const void *of)
{
	const struct report *report = sheet->context;
	const struct line *line = of;
	const struct sites_row *row = line->row;
	bool several = reader_processes_count(report->asked->reader) > 1;
	struct str *text = &sheet->scratch;

	str_clear(text);
	if (!row) {
		str_format(text, "%s more site%s%s", STR_COUNT(line->rows),
			   paper_plural(line->rows),
			   report->options->bytes_min ? "" : " (-n 0 shows all)");
		sheet->instead = str_get(text);
		sheet->instead_style = PAPER_DIM;
		return;
	}
	// The pid of one, which stack_text_write adds; a row of several names the program alone.
	// What counts is who has any of what the question is about.
	sheet->stacks->several = several && row->processes_count <= 1;
	if (several && row->processes_count > 1 && sheet->process) {
		uint32_t count = row->having_count[line->question];
		const struct trace_process *one =
			reader_process(report->asked->reader, row->having[line->question]);

		str_add_char(text, '[');
		if (count == 1)
			names_add_process(one, text);
		else
			str_add(text, defs_program(sheet->process));
		if (count == 1)
			str_format(text, " %" PRIu32 "]", one->pid);
		else
			str_format(text, ", %" PRIu32 " processes]", count);
	}
	if (line->section == sites_key(SITES_LIVE_AT_EXIT) && row->lost.count) {
		str_add(text, text->length ? "  [" : "[");
		if (row->lost.count < line->count)
			str_format(text, "%s ", STR_BYTES(row->lost.bytes));
		str_add(text, "unreachable]");
	}
	sheet->stacks->remark = text->length ? str_get(text) : NULL;
}

// `row` is NULL, and `rank` 0, of all that are left out.
static void add_row(struct sheet *sheet, const struct sites_list *list,
		    enum sites_question question, size_t rank)
{
	const struct sites_row *row = rank ? list->rows[rank - 1] : NULL;
	struct heap_amount amount = row ? row->amounts[question] : list->rest;
	double variance = row ? row->variances[question] : list->rest_variance;
	bool by_count = sites_by_count(question);
	uint64_t figure = by_count ? amount.count : amount.bytes;
	struct line line = {
		.row = row,
		.question = question,
		.section = sites_key(question),
		.rank = rank,
		.count = amount.count,
		.bytes = amount.bytes,
		.error = sites_error(variance),
		.largest = row ? row->largest_bytes : 0,
		.first_ns = row ? row->first_ns : 0,
		.last_ns = row ? row->last_ns : 0,
		.rows = list->rest_count,
	};

	ASSERT(question < SITES_QUESTIONS_COUNT && rank <= list->count);
	snprintf(line.share, sizeof line.share, "%.1f %%",
		 paper_percent(figure, by_count ? list->total.count : list->total.bytes));
	if (variance > 0)
		snprintf(line.part, sizeof line.part, "±%.0f%%", paper_percent(line.error, figure));
	sheet_row(sheet, &line);
}

// All questions are one sheet, where each row says by `section` which one it answers. JSON asks
// for one question at a time.
void report_rows(const struct report *report, enum sites_question from, enum sites_question to,
		 struct sheet *sheet)
{
	ASSERT(from <= to && to <= SITES_QUESTIONS_COUNT);
	sheet->context = report;
	sheet->site_of = site_of;
	sheet->above = describe;
	sheet->first = sites_by_count(from) ? "count" : "bytes";
	sheet_begin(sheet, columns,
		    sizeof columns / sizeof *columns - !reader_is_estimated(report->asked->reader));
	for (enum sites_question question = from; question < to; question++) {
		struct sites_list list = sites_list(&report->sites, question);

		sheet->left_out += list.rest_count;
		for (size_t i = 0; i < list.count; i++)
			add_row(sheet, &list, question, i + 1);
		if (list.rest_count && sheet->form->looks)
			add_row(sheet, &list, question, 0);
		sites_list_fini(&list);
	}
	sheet_end(sheet);
}
