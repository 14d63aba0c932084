// tidemark check: does a trace keep to limits? For continuous integration.
//
// Each --max-FIGURE is one row, whose id is OPTION_MAX and the figure, so that all of them are
// taken by take_limit. For example `check a.tide b.tide --baseline FILE --update --junit
// out.xml`: files that would be written are checked before the first trace is read (a run of
// minutes must not end in "cannot write"), both traces are read and judged as one, and then
// written: the text to stdout, the XML, the new baseline. The exit code is 1 where a limit is
// exceeded, 3 where the traces cannot be judged at all.
#include "cli/query_options.h"

#include "base/mem.h"
#include "os/file.h"
#include "os/identity.h"
#include "report/find/check.h"
#include "report/table/query_write.h"
#include "trace/fresh.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	OPTION_MAX = 1, // and the figures behind it
	OPTION_SUPPRESSIONS = OPTION_MAX + CHECK_FIGURES,
	OPTION_ANNOTATE,
	ROWS_DEFAULT = 5,
	TEXT_MAX = 16 << 20, // of a baseline, or of suppressions
};

struct request {
	struct query_options options;
	struct check_options check;
	char *here;         // the folder that we are in; owned
	const char **paths; // of the runs; owned, the texts are borrowed
	size_t paths_count, paths_capacity;
	const char *baseline, *junit, *sarif;
	const char **lists; // files of suppressions; owned, the texts are borrowed
	size_t lists_count, lists_capacity;
	struct str old_baseline;
	char *section;
	bool update, generate, generate_lsan, markdown;
	int annotate;
};

static const struct option_row rows[] = {
	{ OPTION_MAX + CHECK_PEAK, 0, "max-peak", "SIZE", "the most bytes live at one time" },
	{ OPTION_MAX + CHECK_LIVE_AT_EXIT, 0, "max-live-at-exit", "SIZE", "bytes live at exit" },
	{ OPTION_MAX + CHECK_ALLOCATIONS, 0, "max-allocations", "N", "calls that allocate" },
	{ OPTION_MAX + CHECK_TEMPORARY, 0, "max-temporary", "N",
	  "blocks freed before their thread's next allocation" },
	{ OPTION_MAX + CHECK_GROWTH, 0, "max-growth", "SIZE",
	  "bytes a minute by which sites grow to the end (tidemark growth)" },
	{ OPTION_MAX + CHECK_UNREACHABLE, 0, "max-unreachable", "SIZE",
	  "bytes at exit to which nothing points any more (record --reachability)" },
	{ OPTION_MAX + CHECK_UNEXPECTED, 0, "max-unexpected", "N",
	  "calls that allocate in TIDEMARK_EXPECT_NO_ALLOC { } (tidemark.h)" },
	{ ARGS_TEXT(request, baseline), 0, "baseline", "FILE",
	  "the figures of an earlier run are the limits" },
	{ ARGS_FLAG(request, update), 0, "update", NULL,
	  "write the baseline: new and lower figures, with --force higher ones too" },
	{ QUERY_OPTIONS_FORCE, 'f', "force", NULL, "with --update: take higher figures too" },
	{ OPTION_SUPPRESSIONS, 0, "suppressions", "FILE",
	  "leave out of live-at-exit what this list names, LeakSanitizer's or Valgrind's; the one "
	  "of LSAN_OPTIONS is read too" },
	{ ARGS_FLAG(request, generate), 0, "gen-suppressions", NULL,
	  "write suppressions of what is live at exit in Valgrind's language, and nothing else" },
	{ ARGS_FLAG(request, generate_lsan), 0, "gen-lsan-suppressions", NULL,
	  "the same for LeakSanitizer, which names functions and all that they call" },
	{ ARGS_FLAG(request, markdown), 0, "markdown", NULL, "write Markdown" },
	{ ARGS_TEXT(request, junit), 0, "junit", "FILE", "write JUnit's XML to FILE as well" },
	{ ARGS_TEXT(request, sarif), 0, "sarif", "FILE", "write SARIF 2.1.0 to FILE as well" },
	{ OPTION_ANNOTATE, 0, "annotate", "HOW",
	  "github: its commands after the text; gitlab: its code quality report alone" },
	PRINT_OPTIONS_ROW_JSON("check.json"),
	QUERY_OPTIONS_ROW_ROWS("show the N heaviest sites of what is exceeded (5; 0: all)"),
	QUERY_OPTIONS_ROW_ALL_FRAMES,
	QUERY_OPTIONS_ROW_MEMORY("for building and asking the index (256M)"),
	PRINT_OPTIONS_ROWS,
	{ 0 },
};

static const char *const annotations[] = { "none", "github", "gitlab", NULL };
enum annotation { ANNOTATE_NONE, ANNOTATE_GITHUB, ANNOTATE_GITLAB };
_Static_assert(sizeof annotations / sizeof *annotations == ANNOTATE_GITLAB + 2,
	       "a word each, and the end");

// What is borrowed from the command line is not freed.
static void request_fini(struct request *request)
{
	suppressions_free(request->check.suppressions);
	mem_free(request->here);
	query_options_fini(&request->options);
	str_fini(&request->old_baseline);
	MEM_FREE(request->section, request->lists, request->paths);
	for (int figure = 0; figure < CHECK_FIGURES; figure++)
		mem_free(request->check.limits[figure].runs.values);
}

// ---- the command line ----

// Figures of calls are numbers, the others sizes.
static bool take_limit(struct args *args, struct request *request, enum check_figure figure)
{
	struct check_limit *limit = &request->check.limits[figure];
	bool calls = figure == CHECK_ALLOCATIONS || figure == CHECK_TEMPORARY ||
		     figure == CHECK_UNEXPECTED;

	ASSERT(figure < CHECK_FIGURES);
	// Zero is a limit, too: nothing at all may be left.
	limit->given = true;
	return calls ? args_count(args, &limit->most) : args_bytes(args, &limit->most);
}

// Several operands are several runs; the first one's path also stands in the options, where
// others look for it.
static bool take(struct args *args, struct request *request, int id)
{
	switch (id) {
	case ARGS_OPERAND:
		*MEM_ADD(request->paths, request->paths_count, request->paths_capacity) =
			args->value;
		// Looked up again each time, since the list may have moved.
		request->options.path = request->paths[0];
		return true;
	case OPTION_SUPPRESSIONS:
		*MEM_ADD(request->lists, request->lists_count, request->lists_capacity) =
			args->value;
		return true;
	case OPTION_ANNOTATE:
		return args_word(args, annotations, &request->annotate);
	}
	if (id >= OPTION_MAX && id < OPTION_MAX + CHECK_FIGURES)
		return take_limit(args, request, (enum check_figure)(id - OPTION_MAX));
	return query_options_take(args, &request->options, id) == PRINT_OPTIONS_TAKEN;
}

static bool generates(const struct request *request)
{
	return request->generate || request->generate_lsan;
}

static bool has_limit(const struct request *request)
{
	for (int figure = 0; figure < CHECK_FIGURES; figure++)
		if (request->check.limits[figure].given)
			return true;
	return false;
}

static bool take_all(struct args *args, struct request *request)
{
	int id;

	while ((id = args_next(args)) != ARGS_END)
		if (id == ARGS_EXIT || !take(args, request, id))
			return false;
	// First what holds for each command (a trace, filters that can be), then what goes together
	// here.
	if (!query_options_check(args, &request->options))
		return false;
	if (request->update && !request->baseline)
		return args_mistake(args, "--update needs --baseline FILE");
	if (request->options.force && !request->update)
		return args_mistake(args, "--force needs --update");
	if (request->markdown + request->generate + request->generate_lsan +
		    request->options.print.json + (request->annotate == ANNOTATE_GITLAB) >
	    1)
		return args_mistake(args,
				    "one of --json, --markdown, --gen-suppressions, "
				    "--gen-lsan-suppressions and --annotate gitlab at a time");
	return true;
}

// ---- files ----

// The list that LSAN_OPTIONS names: "verbosity=1:suppressions='my list.txt'"; the last one stands,
// as it does for the sanitizer. Owned by the caller; NULL: none.
static char *find_sanitizers(const char *options)
{
	static const char between[] = ": ,\t\r\n", key[] = "suppressions=";
	char *found = NULL;

	while (options && *(options += strspn(options, between))) {
		const char *value = options + strcspn(options, "=: ,\t\r\n");
		char quote[2] = "";
		size_t length;

		// A word without '=' has no value, and is passed over.
		value += *value == '=';
		if (*value == '\'' || *value == '"')
			*quote = *value++;
		length = strcspn(value, *quote ? quote : between);
		// The key's '=' is part of the comparison: "suppressions_x=" is another.
		if (strncmp(options, key, strlen(key)) == 0) {
			mem_free(found);
			found = mem_copy_bytes(value, length);
		}
		// Behind the closing quote, if there was one.
		options = value + length + (*quote && value[length]);
	}
	return found;
}

// A text that somebody wrote, and perhaps an editor that begins with a byte order mark.
static bool read_text(const char *path, struct str *text, struct err *err)
{
	if (!file_read_regular(path, TEXT_MAX, text, err))
		return err_wrap(err, "%s", path);
	if (strncmp(str_get(text), "\xEF\xBB\xBF", 3) == 0)
		memset(text->text, ' ', 3);
	return true;
}

// The lists of the command line come first, then the sanitizer's. A text of a file is freed when
// its rules are made.
static bool read_lists(struct request *request, struct err *err)
{
	struct suppressions *all = NULL;
	char *sanitizers = find_sanitizers(getenv("LSAN_OPTIONS"));
	bool good = true;

	// Without any list there are no suppressions, and no page speaks of them.
	if (sanitizers || request->lists_count)
		all = request->check.suppressions = suppressions_new();
	for (size_t i = 0; good && i < request->lists_count + (sanitizers != NULL); i++) {
		const char *path = i < request->lists_count ? request->lists[i] : sanitizers;
		struct str text = { 0 };

		fresh_spare(path);
		good = read_text(path, &text, err) &&
		       suppressions_add(all, path, str_get(&text), err);
		str_fini(&text);
	}
	return good; // the sanitizers' is spared until the end
}

// A baseline that is not there yet is an empty one for who writes it.
static bool read_baseline(struct request *request, struct err *err)
{
	if (!request->baseline)
		return true;
	// A baseline that is only read must not be overwritten by a report of the same name.
	if (!request->update)
		fresh_spare(request->baseline);
	if (request->update && file_look(request->baseline) == FILE_IS_MISSING)
		return true;
	return read_text(request->baseline, &request->old_baseline, err) &&
	       check_read_baseline(request->baseline, str_get(&request->old_baseline),
				   request->section, request->check.limits, err);
}

// Devices may be written by two.
static bool is_one_file(const char *path, const char *other)
{
	struct identity identity;
	struct err missing = { 0 };

	ASSERT(path && other);
	// Two names of a file that is not there yet can only be compared as texts.
	if (file_look(path) == FILE_IS_MISSING)
		return strcmp(path, other) == 0;
	return file_look(path) == FILE_IS_REGULAR && identity_find(&identity, path, &missing) &&
	       identity_is_same(&identity, other);
}

// Before the trace is read: each file can be written, is no other's, and none is read.
static bool check_files(const struct request *request, struct err *err)
{
	const char *paths[] = { request->junit, request->sarif,
				request->update ? request->baseline : NULL };
	enum { COUNT = sizeof paths / sizeof *paths };

	for (int i = 0; i < COUNT; i++) {
		if (!paths[i])
			continue;
		if (!fresh_check(paths[i], true, err))
			return false;
		// Two reports in one file: the second would replace the first.
		for (int k = 0; k < i; k++)
			if (paths[k] && is_one_file(paths[k], paths[i]))
				return err_set(err, ERR_USAGE,
					       "%s is to be two files at once (give another name)",
					       paths[i]);
	}
	return true;
}

// One file beside the answer.
struct writing {
	const struct check_page *page;
	check_format *format; // NULL: the baseline
	const struct request *request;
};

// A function of query_options_write, for which all of these are files.
static bool write_it(void *context, struct sink *sink, struct err *)
{
	const struct writing *writing = context;
	const struct request *request = writing->request;

	ASSERT(writing->page && request);
	if (writing->format)
		writing->format(writing->page, sink);
	else
		check_write_baseline(writing->page->check, str_get(&request->old_baseline),
				     request->section, request->options.force, sink);
	return true;
}

static bool write_file(const char *path, const struct writing *writing, struct err *err)
{
	const struct query_options options = { .output = path, .force = true };

	return !path || query_options_write(&options, write_it, (void *)(uintptr_t)writing, err);
}

// After the answer is printed. A trace that cannot be judged makes no baseline, but the two reports
// say so.
static bool write_files(const struct request *request, const struct check_page *page,
			struct err *err)
{
	const struct writing junit = { page, check_junit, request };
	const struct writing sarif = { page, check_sarif, request };
	const struct writing baseline = { page, NULL, request };

	// The baseline last: it is what the next run is judged by, so it is not changed where a
	// report could not be written.
	if (!write_file(request->junit, &junit, err) || !write_file(request->sarif, &sarif, err))
		return false;
	if (!request->update || page->check->refusal)
		return true;
	if (!write_file(request->baseline, &baseline, err))
		return false;
	fprintf(stderr, "tidemark check: %s written\n", request->baseline);
	return true;
}

// ---- the answer ----

static bool has_file(const char *path)
{
	return file_look(path) == FILE_IS_REGULAR;
}

static void write_answer(const struct request *request, const struct check_page *page,
			 struct sink *sink)
{
	check_format *format = request->options.print.json            ? check_json
			       : request->markdown                    ? check_markdown
			       : request->generate                    ? check_generate
			       : request->generate_lsan               ? check_generate_lsan
			       : request->annotate == ANNOTATE_GITLAB ? check_gitlab
								      : check_text;

	format(page, sink);
	if (request->annotate == ANNOTATE_GITHUB)
		check_github(page, sink);
}

// The exit code. An update by force has taken the higher figures as they are: nothing is exceeded
// then.
static int judge(const struct request *request, const struct check *check)
{
	if (check->refusal)
		fprintf(stderr, "tidemark check: not judged: %s\n", check->refusal);
	if (check->refusal)
		return EXIT_UNREADABLE;
	// Who forces new limits does not want to be told that the old ones are exceeded.
	if (request->update && request->options.force)
		return EXIT_ANSWERED;
	return check->exceeded ? EXIT_CHECK_FAILED : EXIT_ANSWERED;
}

// The runs, read and judged as one.
struct runs {
	struct query_context *asked;
	struct check *checks;
	size_t count;
	struct check check;
};

static void runs_fini(struct runs *runs)
{
	check_fini(&runs->check);
	for (size_t i = 0; i < runs->count; i++) {
		check_fini(&runs->checks[i]);
		query_context_close(&runs->asked[i]);
	}
	MEM_FREE(runs->checks, runs->asked);
}

// False: runs->count of them are open, for runs_fini. Growth needs the index, which takes minutes
// for a large trace, so rules that want it are only used where a limit of growth was given.
static bool read_runs(const struct request *request, struct runs *runs, struct err *err)
{
	struct query_context_options context = query_options_context(
		&cmd_check, &request->options,
		request->check.limits[CHECK_GROWTH].given ? &check_window_rules : &check_rules);

	ASSERT(request->paths_count > 0);
	runs->asked = mem_alloc(request->paths_count, sizeof *runs->asked);
	runs->checks = mem_alloc(request->paths_count, sizeof *runs->checks);
	for (size_t i = 0; i < request->paths_count; i++) {
		struct query_context *asked = &runs->asked[i];

		// All else is the same for each run.
		context.path = request->paths[i];
		if (!query_options_open(&context, asked, err))
			return false;
		runs->count++;
		if (!check_find(&runs->checks[i], asked, &request->check, err))
			return false;
		for (size_t w = 0; i > 0 && w < asked->warnings_count; w++)
			query_context_warn(&runs->asked[0], "%s: %s", request->paths[i],
					   asked->warnings[w]);
	}
	// Several runs become one: with the largest figure of each for a limit, the means for a
	// baseline.
	check_join(&runs->check, runs->checks, runs->count);
	return true;
}

static void warn(const struct runs *runs)
{
	const struct query_context *shown[CHECK_FIGURES + 1];
	const char **notes;
	size_t count = query_write_notes(shown, check_shown(&runs->check, shown), &notes);

	query_options_warn_before(&cmd_check, &runs->asked[0], NULL);
	for (size_t i = 0; i < count; i++)
		args_warn(&cmd_check, "symbols: %s", notes[i]);
	mem_free(notes);
}

// The exit code says whether limits were kept; what could not be written weighs more.
static int answer(const struct request *request, const struct runs *runs)
{
	struct sink sink = sink_to_file(stdout);
	struct err err = { 0 };
	const struct check_page page = {
		.check = &runs->check,
		.suppressions = request->check.suppressions,
		.section = strcmp(request->section, "all") == 0 ? NULL : request->section,
		.all_frames = request->options.all_frames,
		.colour = print_options_colour(&request->options.print),
		.width = print_options_width(),
	};
	int code;

	ASSERT(runs->count > 0 && request->section);
	write_answer(request, &page, &sink);
	code = judge(request, &runs->check);
	// A pipeline that cannot read the report must not go on as if all were well: 3 in place of
	// 0 or 1.
	if (!sink_ok(&sink, &err) || !write_files(request, &page, &err))
		code = args_fail(&cmd_check, &err);
	if (request->options.print.json || request->markdown || generates(request))
		warn(runs);
	return code;
}

// What can be wrong without reading a trace is found before one is read.
static int ask(struct request *request)
{
	struct runs runs = { 0 };
	struct err err = { 0 };
	int code;

	ASSERT(request->options.path);
	// Limits are kept by the filters that they were made with: [all] without any, [--frame
	// '^parse_'] with one.
	request->section = check_section(&request->options.words);
	if (!read_lists(request, &err) || !read_baseline(request, &err) ||
	    !check_files(request, &err))
		return args_fail(&cmd_check, &err);
	if (!has_limit(request) && !request->update && !generates(request)) {
		err_set(&err, ERR_USAGE, "there is no limit to check (try: --max-peak 10M%s)",
			request->baseline ? "; the baseline has none for these filters, --update "
					    "writes it"
					  : "");
		return args_fail(&cmd_check, &err);
	}
	// A list of suppressions has each site.
	request->here = file_absolute(".");
	request->check.sources = (struct check_sources){ request->here, has_file };
	request->check.sites_max = generates(request) ? 0 : request->options.rows_max;
	code = read_runs(request, &runs, &err) ? answer(request, &runs)
					       : args_fail(&cmd_check, &err);
	runs_fini(&runs);
	return code;
}

static int run(int argc, char **argv)
{
	struct request request = { .options.rows_max = ROWS_DEFAULT };
	struct args args;
	int code;

	args_init(&args, &cmd_check, argc, argv);
	args.into = &request;
	code = take_all(&args, &request) ? ask(&request) : args.exit_code;
	request_fini(&request);
	return code;
}

const struct command cmd_check = {
	.name = "check",
	.brief = "fail if a trace exceeds limits: for continuous integration",
	.usage = "FILE... LIMITS [options]",
	.text = "Compares figures of what the filters select with limits, given here or in a\n"
		"baseline that is committed beside the sources. Exit code 1 says that a limit is\n"
		"exceeded, 3 that the trace is not whole, lost events, or is sampled, or that\n"
		"filters by name (--frame) name nothing in it: that never passes. Several\n"
		"files are runs of one program: each must keep to the limits; with a baseline\n"
		"whose runs differ, it is their means that are compared.\n",
	.examples =
		"  tidemark check app.tide --max-peak 100M --max-live-at-exit 1M\n"
		"  tidemark check app.tide --frame '^parse_' --max-allocations 10000\n"
		"  tidemark check app.tide --from mark:begin --to mark:end --max-allocations 0\n"
		"  tidemark check app.tide --baseline memory.baseline --update\n"
		"  tidemark check app.tide --baseline memory.baseline --junit check.xml\n",
	.options = rows,
	.shared = filters_rows,
	.shared_title = filters_title,
	.run = run,
};
