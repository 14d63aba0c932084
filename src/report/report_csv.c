// The report's sites as one table (RFC 4180): a line per row of each question.
#include "report/lines.h"
#include "report/report.h"

#include <inttypes.h>

static void write_row(struct report *report, struct sink *sink, enum sites_question question,
		      size_t rank, const struct sites_row *row)
{
	sink_format(sink, "%s,%zu,%" PRIu64 ",%" PRIu64 ",", sites_key(question), rank,
		    row->amounts[question].count, row->amounts[question].bytes);
	lines_csv_place(sink, report->asked->reader, report->asked->names, row->process,
			row->stack);
	sink_text(sink, ",");
	if (reader_info(report->asked->reader)->sample_bytes > 0)
		sink_format(sink, "%" PRIu64, sites_error(row->variances[question]));
	sink_text(sink, "\r\n");
}

static void write(struct report *report, struct sink *sink)
{
	sink_text(sink, "section,rank,count,bytes," LINES_CSV_PLACE ",standard_error\r\n");
	for (int i = 0; i < SITES_QUESTIONS_COUNT; i++) {
		enum sites_question question = (enum sites_question)i;
		struct sites_list list = sites_list(&report->sites, question);

		report->asked->rows_left_out += list.rest_count;
		for (size_t r = 0; r < list.count; r++)
			write_row(report, sink, question, r + 1, list.rows[r]);
		sites_list_fini(&list);
	}
}

const struct report_format report_csv = {
	.name = "csv",
	.merge = SITES_EXACT,
	.write = write,
};
