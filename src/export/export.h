// export: a trace in the formats of other programs, a row of a table each.
//
// A format is written of one of two things: of samples, which are sums over a window
// (export/samples.h), or of the events of a window one by one. docs/formats.md says what each keeps
// and what it loses. What a format cannot say is said to `say`, with how much there is of it.
//
// To add one: a file that defines its `struct export_format`, its line below, in export.c and in
// meson.build, and in the help of cmd_export.c.
//
// For example `tidemark export app.tide --format folded` writes a line for each stack of the
// window, "app[4242];main;parse 4096"; stacks that shrank, which the format cannot show, are said
// to `say`.
#pragma once

#include "base/sink.h"
#include "export/samples.h"

// What is written: the question, and what was chosen of the format's options.
// Borrowed from the caller until the export is written.
struct export_source {
	struct query_context *asked;   // borrowed
	const struct samples *samples; // NULL unless the format `has_samples`
	// What it is compared with; NULL unless that was asked for, of a format that `compares`.
	struct query_context *against_asked; // borrowed
	const struct samples *against;
	enum samples_value value; // for formats that hold one
	bool value_given;
	unsigned table; // of formats that hold one: enum rowset_table_id
	bool lifetimes; // blocks, and not events, for formats that `has_lifetimes`
	// For the user, on stderr.
	void (*say)(void *context, const char *text); // a line without a newline
	void *context;
};

// One format. `write` returns false only where the question cannot be answered; a sink that fails
// says so itself (sink_ok).
struct export_format {
	const char *name, *brief;
	// It is written from samples; without it, from events or blocks.
	bool has_samples;
	// Samples of each size apart; else one sample of a stack has blocks of all sizes.
	bool by_size;
	bool single_value; // --value chooses it
	bool is_text;      // that may go to a terminal
	bool has_lifetimes;
	const char *ending; // of the file's name, by which its program knows it; NULL: any
	bool has_tables;    // several (export/rowset.h), each of which is a file
	// It can show what changed against another trace, and then needs `against`.
	bool compares;
	const struct query_context_rules *rules; // NULL: those of samples, or of blocks
	bool (*write)(const struct export_source *source, struct sink *sink, struct err *err);
};

// Ended by NULL.
extern const struct export_format *const export_formats[];

// What can be asked of what it is written of.
const struct query_context_rules *export_rules(const struct export_format *format);

// Open the samples that the format wants, and write it.
bool export_write(const struct export_format *format, struct export_source *source,
		  struct sink *sink, struct err *err);

// Tell `say` a line, as printf would write it.
void export_say(const struct export_source *source, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

// The process that is selected, if it is one alone; else TRACE_NONE.
process_id export_process(const struct export_source *source);

// "perl[4242]"; "worker:4243", or the number where the thread has no name. Append.
void export_add_process(const struct reader *reader, process_id process, struct str *text);
void export_add_thread(const struct reader *reader, thread_id thread, struct str *text);

// Write a text of the trace with its line breaks as spaces: for formats that end an entry with one.
void export_write_line(struct sink *sink, const char *text);

// Each defined in the file of its name.
extern const struct export_format pprof_format;
extern const struct export_format otlp_format;
extern const struct export_format folded_format;
extern const struct export_format speedscope_format;
extern const struct export_format flamegraph_format;
extern const struct export_format callgrind_format;
extern const struct export_format massif_format;
extern const struct export_format dhat_format;
extern const struct export_format firefox_format;
extern const struct export_format perfetto_format;
extern const struct export_format heaplog_format;
extern const struct export_format memory_tracker_format;
extern const struct export_format tracefrag_log_format;
extern const struct export_format csv_format;
extern const struct export_format csv_jsonl_format;
extern const struct export_format heaptrack_format;
extern const struct export_format parquet_format;
