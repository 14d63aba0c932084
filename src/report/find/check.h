// check: whether a trace keeps to limits, for continuous integration.
//
//     for each run of the program, most often one:
//       query_context_open    with check_rules (check_window_rules where growth is limited)
//       check_find            reads the trace once
//     check_join              all of them as one, and whether it keeps to the limits
//     check_text …            in one or several forms
//     check_fini, query_context_close
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
//     allocations = 1234 1240 1229       of three runs
//     [--frame ^parse_]
//     temporary = 10
//
// A report writes to a sink and touches no file.
#pragma once

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

// A figure's values in several runs. Fields are private.
struct check_runs {
	uint64_t *values; // owned
	size_t count, capacity;
};

// What a figure must not exceed, in the figure's unit (bytes, calls, or bytes a minute).
struct check_limit {
	bool given, of_baseline;
	uint64_t most;          // of a baseline that differs from run to run: the mean
	struct check_runs runs; // of the baseline; borrowed
};

// Where the check is made, which has the sources: the folder, and whether a path is a file there.
struct check_sources {
	const char *here; // borrowed; NULL: not known
	bool (*has)(const char *path);
};

struct check_options {
	struct check_limit limits[CHECK_FIGURES];
	struct suppressions *suppressions; // borrowed; NULL: none
	uint64_t sites_max;                // of each figure; 0: all
	struct check_sources sources;
};

// A site, and what it has of a figure.
struct check_site {
	process_id process;
	stack_id stack;
	uint64_t value, count; // bytes or calls; blocks, where the figure is bytes
};

// One figure of all runs, and what it was compared with.
struct check_row {
	enum check_figure figure;
	struct check_limit limit;
	// The most of all runs, of which the sites are; the mean, where it is compared with a
	// baseline that differs from run to run.
	uint64_t value;
	bool known, exceeded;
	struct check_site *sites; // owned; the heaviest first, as many as were asked for
	size_t sites_count, sites_total;
	const struct query_context *asked;   // whose they are; borrowed
	const struct check_sources *sources; // borrowed

	struct check_runs runs; // owned; after check_join
	bool compared;          // with chance
	double least_change;    // that it is higher by, if it is exceeded; of what is compared
};

// All figures, and the verdict: it fails where `exceeded` is not 0, and is not judged where there
// is a refusal, even if figures exceed.
struct check {
	struct query_context *asked; // of the first run; borrowed
	const char *path;            // of its trace; borrowed
	size_t runs_count;
	struct check_row rows[CHECK_FIGURES];
	struct heap_amount suppressed;
	size_t suppressed_sites;
	size_t exceeded; // limits
	size_t judged;   // limits
	char *refusal;   // owned; why it is not judged, NULL: it is
};

// The runs of which something is shown, the first among them, each once: so many.
size_t check_shown(const struct check *check, const struct query_context *shown[CHECK_FIGURES + 1]);

// False: a filter that cannot be honoured, an index that cannot be read.
bool check_find(struct check *check, struct query_context *asked,
		const struct check_options *options, struct err *err);
void check_fini(struct check *check); // accepts { 0 }

// All runs as one, judged: `check` takes from them what it needs; they are still to be ended, the
// contexts they were asked of after `check`.
void check_join(struct check *check, struct check *runs, size_t count);

void check_runs_add(struct check_runs *runs, uint64_t value);
uint64_t check_runs_least(const struct check_runs *runs);
uint64_t check_runs_most(const struct check_runs *runs);
uint64_t check_runs_mean(const struct check_runs *runs); // to the nearest whole
bool check_runs_vary(const struct check_runs *runs);

// Whether new runs are lower than old ones: all of them, where the old are alike; else by more than
// runs differ among themselves.
bool check_runs_lower(const struct check_runs *runs, const struct check_runs *old);

struct check_page {
	const struct check *check;               // borrowed
	const struct suppressions *suppressions; // borrowed; NULL: none
	const char *section;                     // check_section; borrowed, NULL: no filters
	const char *const *paths;                // of the traces; borrowed, of check_figures_json
	size_t paths_count;
	bool all_frames, colour;
	unsigned width;
};

// Count allocations where the program expects none (tidemark.h): those of the thread, between the
// marks of such a phase.
void check_read_expectations(const struct query_context *asked, struct check_row *row);

// For people, as Markdown, as JSON (docs/schema/check.json), for JUnit's readers, as SARIF 2.1.0,
// as GitHub's commands, as GitLab's report of code quality; as suppressions of what is live at
// exit, for Valgrind and for LeakSanitizer.
typedef void check_format(const struct check_page *page, struct sink *sink);
check_format check_text, check_markdown, check_json, check_junit, check_sarif, check_github,
	check_gitlab, check_generate, check_generate_lsan;

// What the runs have, without limits; as JSON (docs/schema/bench.json).
check_format check_figures, check_figures_json;

// "peak 1.2 MiB, at most 1.0 MiB": one row in words. Appends.
void check_describe(const struct check_row *row, struct str *text);

// "./app --once, --frame ^parse_": of what the figures are. Appends.
void check_subject(const struct check_page *page, struct str *text);

// The same of whom, for readers that see nothing else: "./app: peak 1.2 MiB, at most 1.0 MiB; 900
// KiB of it by parse". `row` NULL: why it is not judged. Appends.
void check_announce(const struct check_page *page, const struct check_row *row, struct str *text);

// "1.2 MiB (1,234,567 bytes)". Appends.
void check_add_value(struct str *text, enum check_figure figure, uint64_t value);

// The site that a row over its limit is said to be of: the heaviest. NULL: of none. A baseline has
// no sites, so it is not known which of them have grown since, and the heaviest may be an innocent
// one.
const struct check_site *check_blamed(const struct check_row *row);

// What then says which sites have grown: "tidemark diff OLD app.tide". Appends.
void check_add_diff(const struct check *check, struct str *text);

// Where in the source: the blamed site's function, or the next of its callers whose file is where
// the check is made; where none is, the next of which a line is known. NULL: of none. `row` may be
// NULL.
const struct symbol *check_place(const struct check_row *row);

// The path of a file below the folder of the sources, by the words of GitLab and GitHub, or in
// which the program was started; else all of it. Appends.
void check_add_path(const struct check *check, const char *path, struct str *text);

// What a baseline calls the filters: "all", "--frame ^parse_". Owned by the caller.
char *check_section(const struct selection_words *words);

// Set the limits of figures that have none from a section of a baseline; the caller frees the
// values of their runs. ERR_USAGE, with the line, on what is none.
bool check_read_baseline(const char *path, const char *text, const char *section,
			 struct check_limit limits[static CHECK_FIGURES], struct err *err);

// The baseline again, with the figures of `check` in its section: lower ones, and those that it did
// not have; with `force` higher ones too. Of figures that are not known it keeps what it has.
void check_write_baseline(const struct check *check, const char *text, const char *section,
			  bool force, struct sink *sink);
