// The sites of a report as rows: those that answer one question after the other.
#include "report/report.h"

#include "base/mem.h"
#include "report/table/lines.h"

// A row of a question, as the columns read it. Bytes and times in ns; `error` is a standard error
// of bytes or calls, whichever ranks.
struct line {
	const struct sites_row *row;
	const char *section;
	uint64_t rank, count, bytes, error, largest, first_ns, last_ns;
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
	{ "count", SHEET_COUNT, 0, FIELD(count), .meaning = "allocations" },
	{ "bytes", SHEET_BYTES, 0, FIELD(bytes), .meaning = "their bytes" },
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
};

static struct sheet_site site_of(const struct sheet *sheet, const void *of)
{
	const struct report *report = sheet->context;
	const struct line *line = of;

	return (struct sheet_site){ report->asked, line->row->process, line->row->stack };
}

static void add_row(struct sheet *sheet, const struct sites_row *row, enum sites_question question,
		    size_t rank)
{
	ASSERT(question < SITES_QUESTIONS_COUNT && rank > 0);
	sheet_row(sheet, &(struct line){
				 row,
				 sites_key(question),
				 rank,
				 row->amounts[question].count,
				 row->amounts[question].bytes,
				 sites_error(row->variances[question]),
				 row->largest_bytes,
				 row->first_ns,
				 row->last_ns,
			 });
}

// All questions are one sheet, where each row says by `section` which one it answers. JSON asks
// for one question at a time.
void report_rows(const struct report *report, enum sites_question from, enum sites_question to,
		 struct sheet *sheet)
{
	ASSERT(from <= to && to <= SITES_QUESTIONS_COUNT);
	sheet->context = report;
	sheet->site_of = site_of;
	sheet_begin(sheet, columns, sizeof columns / sizeof *columns);
	for (enum sites_question question = from; question < to; question++) {
		struct sites_list list = sites_list(&report->sites, question);

		sheet->left_out += list.rest_count;
		for (size_t i = 0; i < list.count; i++)
			add_row(sheet, list.rows[i], question, i + 1);
		sites_list_fini(&list);
	}
	sheet_end(sheet);
}
