// check: whether a trace keeps to limits, for continuous integration.
//
//     query_context_open      with check_rules (check_window_rules where growth is limited)
//       check_find            reads the trace once
//       check_text …          in one or several forms
//       check_fini
//     query_context_close
//
// A limit is about one figure of what the filters select. A trace that was cut, that lost events,
// that is sampled or still being written keeps to no limit: it is not judged, whatever its figures
// are (`refusal`).
//
// A baseline is a text that is committed beside the sources: for each set of filters the figures of
// an earlier run, which are limits now. It ratchets: updated, it takes what is lower, and what is
// higher only by force.
//
//     # what tidemark check --baseline compares with
//     [all]
//     peak = 1048576
//     allocations = 1234
//     [--frame ^parse_]
//     temporary = 10
//
// A report writes to a sink and touches no file.
#ifndef REPORT_CHECK_H
#define REPORT_CHECK_H

#include "base/sink.h"
#include "engine/replay/heap.h"
#include "report/ask/query_context.h"
#include "report/find/growth.h"
#include "report/find/suppressions.h"

extern const struct query_context_rules check_rules, check_window_rules;

enum check_figure {
	CHECK_PEAK,         // bytes
	CHECK_LIVE_AT_EXIT, // bytes, without those that are suppressed
	CHECK_ALLOCATIONS,  // calls
	CHECK_TEMPORARY,    // calls
	CHECK_UNREACHABLE,  // bytes, without those that are suppressed; where it was recorded
	CHECK_UNEXPECTED,   // calls in TIDEMARK_EXPECT_NO_ALLOC; where that was reached
	CHECK_GROWTH,       // bytes a minute, of sites that grow to the end
	CHECK_FIGURES,
};

// "peak" …, as in --max-peak.
extern const char *const check_names[CHECK_FIGURES];

struct check_limit {
	bool given, of_baseline;
	uint64_t most;
};

struct check_options {
	struct check_limit limits[CHECK_FIGURES];
	struct suppressions *suppressions; // borrowed; NULL: none
	uint64_t sites_max;                // of each figure; 0: all
};

// A site, and what it has of a figure.
struct check_site {
	process_id process;
	stack_id stack;
	uint64_t value, count; // bytes or calls; blocks, where the figure is bytes
};

struct check_row {
	enum check_figure figure;
	struct check_limit limit;
	uint64_t value;
	bool known, exceeded;
	struct check_site *sites; // owned; the heaviest first, as many as were asked for
	size_t sites_count, sites_total;
};

struct check {
	struct query_context *asked; // borrowed
	const char *path;            // of the trace; borrowed
	struct check_row rows[CHECK_FIGURES];
	struct heap_amount suppressed;
	size_t suppressed_sites;
	size_t exceeded; // limits
	size_t judged;   // limits
	char *refusal;   // owned; why it is not judged, NULL: it is
};

// False: a filter that cannot be honoured, an index that cannot be read.
bool check_find(struct check *check, struct query_context *asked,
		const struct check_options *options, struct err *err);
void check_fini(struct check *check); // accepts { 0 }

struct check_page {
	const struct check *check;               // borrowed
	const struct suppressions *suppressions; // borrowed; NULL: none
	bool all_frames, colour;
	unsigned width;
};

// Count allocations where the program expects none (tidemark.h): those of the thread, between the
// marks of such a phase.
void check_read_expectations(const struct query_context *asked, struct check_row *row);

// For people, as Markdown, as JSON (docs/schema/check.json), for JUnit's readers, as SARIF 2.1.0,
// as GitHub's commands, as GitLab's report of code quality; as suppressions of what is live at
// exit.
typedef void check_format(const struct check_page *page, struct sink *sink);
check_format check_text, check_markdown, check_json, check_junit, check_sarif, check_github,
	check_gitlab, check_generate;

// "peak 1.2 MiB, at most 1.0 MiB": one row in words. Appends.
void check_describe(const struct check_row *row, struct str *text);

// What a baseline calls the filters: "all", "--frame ^parse_". Owned by the caller.
char *check_section(const struct selection_words *words);

// Set the limits of figures that have none from a section of a baseline. ERR_USAGE, with the line,
// on what is none.
bool check_read_baseline(const char *path, const char *text, const char *section,
			 struct check_limit limits[static CHECK_FIGURES], struct err *err);

// The baseline anew, with the figures of `check` in its section: lower ones, and those that it did
// not have; with `force` higher ones too. Of figures that are not known it keeps what it has.
void check_write_baseline(const struct check *check, const char *text, const char *section,
			  bool force, struct sink *sink);

#endif
