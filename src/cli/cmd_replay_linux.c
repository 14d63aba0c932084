// tidemark replay: the recorded calls once more, under other allocators.
//
// What is run is a list of plans: an allocator with its library and at most one setting each. For
// example `--allocator glibc,jemalloc --settings 'MALLOC_ARENA_MAX=1|2'` is six of them: glibc by
// itself and with each value, and jemalloc likewise; "glibc:MALLOC_ARENA_MAX=1|2" would be four.
// Before them comes a dry run, which makes all of the replay but the calls: what it took is taken
// off the others' times.
#include "cli/picture.h"
#include "cli/query_options.h"

#include "base/mem.h"
#include "base/str.h"
#include "cli/call_costs.h"
#include "cli/interrupt.h"
#include "replay/replay_table.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPTION_TOUCH = 1, OPTION_THREADS, OPTION_SETTINGS, OPTION_SVG };

struct request {
	struct query_options options;
	struct picture picture;
	const char *allocators;
	const char **settings;
	size_t settings_count, settings_capacity;
	int touch, threads;
};

static const struct option_row replay_options[] = {
	{ ARGS_TEXT(request, allocators), 0, "allocator", "LIST",
	  "glibc, jemalloc, mimalloc, tcmalloc, or the path of a library; commas between them "
	  "(all that are installed)" },
	{ OPTION_TOUCH, 0, "touch", "HOW",
	  "what is written of each block: none, first (its first byte) or all (all)" },
	{ OPTION_THREADS, 0, "threads", "HOW", "recorded, or one: all calls in one (recorded)" },
	{ OPTION_SETTINGS, 0, "settings", "[ALLOCATOR:]NAME=VALUE|...",
	  "another run for each value of this environment variable" },
	{ OPTION_SVG, 0, "svg", "FILE", "draw resident memory over time" },
	{ QUERY_OPTIONS_FORCE, 'f', "force", NULL, "overwrite FILE" },
	{ FILTERS_FIRST + SELECTION_PROCESS, 0, "process", "WHICH",
	  "a pid, #N in the list, or a program's name" },
	PRINT_OPTIONS_ROW_JSON("replay.json"),
	PRINT_OPTIONS_ROWS,
	{ 0 },
};

static int run(int argc, char **argv);

const struct command cmd_replay = {
	.name = "replay",
	.brief = "the recorded calls under other allocators: time, memory, page faults",
	.usage = "FILE [--allocator LIST] [options]",
	.text = "Makes the calls of one process again, in their order and in their threads, in a\n"
		"process for each allocator, which is preloaded into it. TIME is the processor\n"
		"time of the calls and of touching the blocks; RESIDENT the most private memory\n"
		"that was resident at a sample, and x LIVE that against the most that was live,\n"
		"as asked for. For a part of a trace, trim it first.\n",
	.examples =
		"  tidemark replay app.tide\n"
		"  tidemark replay app.tide --allocator glibc,jemalloc,./mine.so --svg all.svg\n"
		"  tidemark replay app.tide --allocator glibc --settings "
		"'MALLOC_ARENA_MAX=1|2|8'\n"
		"  tidemark replay app.tide --settings "
		"'jemalloc:MALLOC_CONF=dirty_decay_ms:0|narenas:1'\n",
	.options = replay_options,
	.run = run,
};

static const struct {
	const char *name, *library, *package;
} known[] = {
	{ "glibc", NULL, NULL },
	{ "jemalloc", "libjemalloc.so.2", "libjemalloc2" },
	{ "mimalloc", "libmimalloc.so.2", "libmimalloc2.0" },
	{ "tcmalloc", "libtcmalloc_minimal.so.4", "libtcmalloc-minimal4" },
};

enum { KNOWN = sizeof known / sizeof known[0] };

// What is run, one after the other.
struct planned {
	char *allocator, *library, *setting; // owned; the last two may be NULL
};

struct plans {
	struct planned *list;
	size_t count, capacity;
};

// ---- what is run ----

// In the folders of the dynamic linker that Debian, Fedora and others use. One that is elsewhere
// can be named by its path.
static bool is_there(const char *library)
{
	static const char *const folders[] = { "/usr/lib/x86_64-linux-gnu", "/usr/lib64",
					       "/usr/lib", "/usr/local/lib" };
	struct str path = { 0 };
	bool found = false;

	ASSERT(library);
	for (size_t i = 0; i < sizeof folders / sizeof *folders && !found; i++) {
		str_clear(&path);
		str_format(&path, "%s/%s", folders[i], library);
		found = access(str_get(&path), R_OK) == 0;
	}
	str_fini(&path);
	return found;
}

// Copies its words.
static void add(struct plans *plans, const char *allocator, const char *library,
		const char *setting)
{
	ASSERT(allocator);
	*MEM_ADD(plans->list, plans->count, plans->capacity) = (struct planned){
		.allocator = mem_copy_text(allocator),
		.library = library ? mem_copy_text(library) : NULL,
		.setting = setting ? mem_copy_text(setting) : NULL,
	};
}

// A run for each value of "[ALLOCATOR:]NAME=VALUE|VALUE".
static void add_settings(struct plans *plans, const char *allocator, const char *library,
			 const char *words)
{
	size_t length = strlen(allocator), name;
	struct str setting = { 0 };

	// A colon before the first '=' separates an allocator's name; one after it is part of the
	// value, as in MALLOC_CONF=dirty_decay_ms:0.
	if (strncmp(words, allocator, length) == 0 && words[length] == ':' &&
	    strchr(words + length, '='))
		words += length + 1;
	else if (strcspn(words, ":") < strcspn(words, "="))
		return; // of another allocator
	// The name with its '=': what follows is a list of values.
	name = strcspn(words, "=") + 1;
	for (const char *value = words + name;; value++) {
		size_t end = strcspn(value, "|");

		str_clear(&setting);
		str_add_bytes(&setting, words, name);
		str_add_bytes(&setting, value, end);
		add(plans, allocator, library, str_get(&setting));
		value += end;
		if (!*value)
			break;
	}
	str_fini(&setting);
}

// One run as it is, and one for each value that is meant for it.
static void add_allocator(const struct request *request, struct plans *plans, const char *allocator,
			  const char *library)
{
	add(plans, allocator, library, NULL);
	for (size_t i = 0; i < request->settings_count; i++)
		add_settings(plans, allocator, library, request->settings[i]);
}

// A word that looks like no path and is not known is a mistake, rather than a file that is missing.
static bool add_named(const struct request *request, struct plans *plans, const char *name,
		      struct err *err)
{
	char *path;

	for (size_t i = 0; i < KNOWN; i++) {
		if (strcmp(known[i].name, name) != 0)
			continue;
		if (known[i].library && !is_there(known[i].library))
			return err_set(err, ERR_IO, "%s is not installed (Debian: %s)",
				       known[i].library, known[i].package);
		add_allocator(request, plans, name, known[i].library);
		return true;
	}
	// "libmine.so" without a path is looked for in this folder.
	if (!strchr(name, '/') && !strstr(name, ".so"))
		return err_set(err, ERR_USAGE,
			       "no allocator '%s' (glibc, jemalloc, mimalloc, tcmalloc, or a path)",
			       name);
	path = realpath(name, NULL);
	if (!path)
		return err_set(err, ERR_IO, "%s: there is no such library", name);
	add_allocator(request, plans, name, path);
	free(path);
	return true;
}

// Without a list, what is installed of the known ones, glibc first. False: the plans are to be
// freed all the same.
static bool make_plans(const struct request *request, struct plans *plans, struct err *err)
{
	const char *at = request->allocators;
	bool good = true;

	// glibc has no library to preload: it is what a program has anyway.
	for (size_t i = 0; i < KNOWN && !at; i++)
		if (!known[i].library || is_there(known[i].library))
			add_allocator(request, plans, known[i].name, known[i].library);
	while (good && at) {
		size_t length = strcspn(at, ",");
		char *name = mem_copy_bytes(at, length);

		good = add_named(request, plans, name, err);
		mem_free(name);
		at = at[length] ? at + length + 1 : NULL;
	}
	return good;
}

static void free_plans(struct plans *plans)
{
	for (size_t i = 0; i < plans->count; i++) {
		MEM_FREE(plans->list[i].allocator, plans->list[i].library, plans->list[i].setting);
	}
	mem_free(plans->list);
}

// ---- the trace ----

// The only process, or the one that the filter leaves.
static bool choose(const struct query_context *asked, process_id *process, struct err *err)
{
	uint32_t count = 0;

	for (process_id id = 0; id < reader_processes_count(asked->reader); id++) {
		if (!query_has_process(&asked->selection.query, id))
			continue;
		*process = id;
		count++;
	}
	return count == 1 ||
	       err_set(err, ERR_USAGE,
		       "a replay is of one process, and the trace has %u (choose one: --process)",
		       count);
}

// What has not each call in its order cannot be replayed.
static bool check(const struct query_context *asked, struct err *err)
{
	const struct trace_info *info = reader_info(asked->reader);

	if (reader_is_estimated(asked->reader))
		return err_set(err, ERR_FORMAT,
			       "the recording is sampled: not every call is in it (try: record "
			       "without --sample or --max-overhead)");
	// Imported traces say in their options what their source was.
	if (strstr(info->options, "snapshots") || strstr(info->options, "leaks"))
		return err_set(
			err, ERR_FORMAT,
			"the trace was made of another tool's sums, and does not have each call");
	return true;
}

// ---- the whole ----

// `planned` NULL: the dry run. *run is the caller's, also where it fails.
static bool play(const struct request *request, struct replay_plan *plan, const char *driver,
		 const struct planned *planned, struct replay_run **run, struct progress *progress,
		 struct err *err)
{
	const struct replay_run_options options = {
		.driver = driver,
		.library = planned ? planned->library : NULL,
		.setting = planned ? planned->setting : NULL,
		.touch = (enum replay_ring_touch)request->touch,
		.dry = !planned,
		.stopped = interrupt_came,
		.progress = progress,
	};

	ASSERT(driver && plan);
	*run = mem_alloc(1, sizeof **run);
	return replay_run_play(plan, &options, *run, err);
}

// Warnings, the table, then the picture: where that cannot be drawn, the figures are there.
static bool print(const struct request *request, struct query_context *asked,
		  const struct replay_table *table, struct err *err)
{
	struct sink sink = sink_to_file(stdout);
	struct paper paper = query_options_paper(&request->options, &sink);
	struct chart chart = { 0 };
	bool good = true;

	query_context_caution(asked, false);
	query_options_warn(&cmd_replay, asked, NULL);
	if (request->options.print.json)
		replay_table_json(table, &sink);
	else
		replay_table_text(table, &paper);
	if (request->picture.output.path) {
		replay_table_chart(table, &chart);
		good = picture_draw(&request->picture, &chart, err);
		chart_fini(&chart);
	}
	return good && sink_ok(&sink, err);
}

// What must be known before, and what the driver itself costs: at once, if that can be.
// Looking ahead reads the whole trace. A simple plan can do its dry run before that, so that both
// together show one line of progress.
static bool prepare(const struct request *request, struct replay_plan *plan, const char *driver,
		    struct replay_run **dry, struct err *err)
{
	struct progress progress;
	bool good;

	progress_begin(&progress, request->options.print.progress, "reading",
		       reader_bytes(plan->reader));
	// A plan that is simple needs no looking ahead for the dry run; one that is not has it done
	// before, and then the second call finds nothing to do.
	good = (replay_plan_is_simple(plan) || replay_plan_look_ahead(plan, &progress, err)) &&
	       play(request, plan, driver, NULL, dry, &progress, err) &&
	       replay_plan_look_ahead(plan, &progress, err);
	progress_end(&progress);
	return good;
}

// One run after the other: two at once would take each other's caches.
static bool play_all(const struct request *request, struct query_context *asked,
		     struct replay_plan *plan, const struct plans *plans, struct err *err)
{
	struct replay_table table = {
		.asked = asked,
		.plan = plan,
		.touch = (enum replay_ring_touch)request->touch,
		.rows = mem_alloc(plans->count + 1, sizeof *table.rows),
	};
	struct replay_run *dry = NULL;
	struct str driver = { 0 };
	bool good = call_costs_find_driver(&driver, err) &&
		    prepare(request, plan, str_get(&driver), &dry, err);

	table.dry = dry;
	for (size_t i = 0; i < plans->count && good; i++) {
		// A row is there before its run, so that what a run has left is given back also
		// where it failed.
		struct replay_table_row *row = &table.rows[table.count++];

		row->allocator = plans->list[i].allocator;
		row->setting = plans->list[i].setting;
		good = play(request, plan, str_get(&driver), &plans->list[i], &row->run, NULL, err);
	}
	good = good && print(request, asked, &table, err);
	for (size_t i = 0; i < table.count; i++)
		mem_free(table.rows[i].run);
	MEM_FREE(table.rows, dry);
	str_fini(&driver);
	return good;
}

// Allocators are looked for first, since that is quick and fails often.
static bool replay(const struct request *request, struct err *err)
{
	const struct query_context_options context =
		query_options_context(&cmd_replay, &request->options, &query_context_events_rules);
	struct query_context asked = { 0 };
	struct replay_plan plan = { 0 };
	struct plans plans = { 0 };
	process_id process = 0;
	bool good;

	// The trace is opened after that: reading its definitions takes longer than finding
	// libraries.
	if (!make_plans(request, &plans, err) || !query_options_open(&context, &asked, err)) {
		free_plans(&plans);
		return false;
	}
	interrupt_watch();
	good = check(&asked, err) && choose(&asked, &process, err);
	if (good) {
		replay_plan_init(&plan, asked.reader, process, request->threads == 1);
		good = play_all(request, &asked, &plan, &plans, err);
	}
	interrupt_leave();
	replay_plan_fini(&plan);
	query_context_close(&asked);
	free_plans(&plans);
	return good;
}

// ---- the command line ----

static bool take(struct args *args, struct request *request, int id)
{
	static const char *const threads[] = { "recorded", "one", NULL };

	switch (id) {
	case OPTION_TOUCH:
		return args_word(args, replay_table_touches, &request->touch);
	case OPTION_THREADS:
		return args_word(args, threads, &request->threads);
	case OPTION_SETTINGS:
		if (!strchr(args->value, '='))
			return args_mistake(args, "--settings takes NAME=VALUE|VALUE, not '%s'",
					    args->value);
		*MEM_ADD(request->settings, request->settings_count, request->settings_capacity) =
			args->value;
		return true;
	case OPTION_SVG:
		request->picture.output.path = args->value;
		return chart_can_draw(args->value) ||
		       args_mistake(args, "%s: pictures are .svg, .png or .pdf", args->value);
	}
	return query_options_take(args, &request->options, id) == PRINT_OPTIONS_TAKEN;
}

// What a picture needs is looked for first: a replay may take minutes.
static int answer(struct args *args, struct request *request)
{
	struct err err = { 0 };
	bool good;
	int id;

	while ((id = args_next(args)) != ARGS_END)
		if (id == ARGS_EXIT || !take(args, request, id))
			return args->exit_code;
	if (!query_options_check(args, &request->options))
		return args->exit_code;
	request->picture.force = request->options.force;
	good = (!request->picture.output.path || picture_check(&request->picture, &err)) &&
	       replay(request, &err);
	if (!good && err.kind == ERR_STOPPED)
		interrupt_end();
	return good ? EXIT_ANSWERED : args_fail(&cmd_replay, &err);
}

static int run(int argc, char **argv)
{
	struct request request = { .picture = picture_default, .touch = REPLAY_RING_ALL };
	struct args args;
	int code;

	args_init(&args, &cmd_replay, argc, argv);
	args.into = &request;
	code = answer(&args, &request);
	query_options_fini(&request.options);
	mem_free(request.settings);
	return code;
}
