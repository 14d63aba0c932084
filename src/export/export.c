// A format is a row of the list; what it is written from is opened here: samples, which the index
// gives, or events, which the format reads itself. So a format is one function, and knows no
// trace's layout.
#include "export/export.h"
#include "base/mem.h"
#include "base/str.h"
#include "export/events.h"
#include "trace/defs.h"

#include <inttypes.h>

const struct export_format *const export_formats[] = {
	&pprof_format,          &otlp_format,          &speedscope_format,
	&folded_format,         &flamegraph_format,    &callgrind_format,
	&massif_format,         &dhat_format,          &csv_format,
	&csv_jsonl_format,      &parquet_format,       &heaptrack_format,
	&firefox_format,        &perfetto_format,      &heaplog_format,
	&memory_tracker_format, &tracefrag_log_format, NULL,
};

const struct query_context_rules *export_rules(const struct export_format *format)
{
	if (format->rules)
		return format->rules;
	return format->has_samples ? &query_context_window_rules : &query_context_events_rules;
}

// A format that compares has two sets of samples. Both are closed, whatever happened.
bool export_write(const struct export_format *format, struct export_source *source,
		  struct sink *sink, struct err *err)
{
	struct samples samples = { 0 }, against = { 0 };
	bool good;

	// A format of events reads them by itself; one with rules of its own needs not even blocks
	// of heaps.
	ASSERT(format && sink);
	if (!format->has_samples)
		return (format->rules || events_prepare(source->asked, err)) &&
		       format->write(source, sink, err) && sink_ok(sink, err);
	if (!samples_open(&samples, source->asked, format->by_size, err))
		return false;
	source->samples = &samples;
	good = !source->against_asked ||
	       samples_open(&against, source->against_asked, format->by_size, err);
	source->against = source->against_asked ? &against : NULL;
	good = good && format->write(source, sink, err) && sink_ok(sink, err);
	source->samples = source->against = NULL;
	samples_close(&samples);
	samples_close(&against);
	return good;
}

void export_say(const struct export_source *source, const char *format, ...)
{
	struct str text = { 0 };
	va_list args;

	va_start(args, format);
	str_vformat(&text, format, args);
	va_end(args);
	source->say(source->context, str_get(&text));
	str_fini(&text);
}

process_id export_process(const struct export_source *source)
{
	process_id process = TRACE_NONE;

	for (process_id id = 0; id < reader_processes_count(source->asked->reader); id++) {
		if (!query_has_process(&source->asked->selection.query, id))
			continue;
		if (process != TRACE_NONE)
			return TRACE_NONE;
		process = id;
	}
	return process;
}

void export_add_process(const struct reader *reader, process_id process, struct str *text)
{
	const struct trace_process *known = reader_process(reader, process);

	if (known)
		str_format(text, "%s[%" PRIu32 "]", defs_program(known), known->pid);
	else
		str_add(text, "(no process)");
}

// Names are cut to 15 characters, which is what Linux has.
void export_add_thread(const struct reader *reader, thread_id thread, struct str *text)
{
	const struct trace_thread *known = reader_thread(reader, thread);

	if (known && known->name[0])
		str_format(text, "%.15s:%" PRIu32, known->name, known->tid);
	else
		str_format(text, "%" PRIu32, known ? known->tid : 0);
}

void export_write_line(struct sink *sink, const char *text)
{
	for (const char *at = text; *at; at++)
		sink_write(sink, *at == '\n' || *at == '\r' ? " " : at, 1);
}
