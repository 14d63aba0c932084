// The report's sites as one table (RFC 4180): a line per row of each question.
#include "report/lines.h"
#include "report/report.h"

#include <inttypes.h>

static void write_row(struct report *report, struct sink *sink, enum sites_question question,
		      size_t rank, const struct sites_row *row)
{
	const struct trace_process *process = reader_process(report->reader, row->process);
	struct names_stack stack = names_stack(report->names, row->stack);
	const struct symbol *user = stack.count ? stack.lines[stack.user].symbol : NULL;

	sink_format(sink, "%s,%zu,%" PRIu64 ",%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",",
		    sites_key(question), rank, row->amounts[question].count,
		    row->amounts[question].bytes, process ? process->pid : 0, row->process);
	lines_csv_field(sink, process ? process->exe : "");
	sink_text(sink, ",");
	lines_csv_field(sink, user && user->function ? user->function : "");
	sink_text(sink, ",");
	lines_csv_field(sink, user && user->file ? user->file : "");
	sink_format(sink, ",%" PRIu32 ",", user ? user->line : 0);
	lines_csv_field(sink, user ? user->module : "");
	sink_format(sink, ",0x%" PRIx64 ",", user ? user->offset : 0);
	lines_csv_stack(sink, &stack);
	sink_text(sink, ",");
	if (reader_info(report->reader)->sample_bytes > 0)
		sink_format(sink, "%" PRIu64, sites_error(row->variances[question]));
	sink_text(sink, "\r\n");
}

static void write(struct report *report, struct sink *sink)
{
	sink_text(sink, "section,rank,count,bytes,process,process_id,exe,function,file,line,"
			"module,offset,stack,standard_error\r\n");
	for (int i = 0; i < SITES_QUESTIONS_COUNT; i++) {
		enum sites_question question = (enum sites_question)i;
		struct sites_list list = sites_list(&report->sites, question);

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
