// tidemark bench: records a program several times, and says what differs from run to run.
//
// Each run is `tidemark record` in a forked process of ours, so what a run leaves behind (signals,
// descriptors, memory) cannot touch the next. For example --runs 3 -o old: old.1.tide, old.2.tide
// and old.3.tide, one after the other and never two at once, since they would share the processors;
// then the three are read as `check` does, and shown as one table of means and spreads.
#include "cli/query_options.h"

#include "base/mem.h"
#include "base/str.h"
#include "engine/significance.h"
#include "launch/leave.h"
#include "os/file.h"
#include "report/find/check.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	OPTION_RUNS = 1,
	RUNS_DEFAULT = 5,
	WORDS_OWN = 12, // of record's command line, before the program
};

// What was asked for. The traces stay when it ends, their names do not.
struct request {
	struct args args;
	struct print_options print;
	char *const *program; // and its arguments
	const char *prefix;
	uint64_t runs;
	bool force, free_stacks, reachability, bundle, show;
	char **paths; // owned
};

static const struct option_row rows[] = {
	{ OPTION_RUNS, 0, "runs", "N", "how often the program runs (5)" },
	{ ARGS_TEXT(request, prefix), 'o', "output", "PREFIX",
	  "write the traces to PREFIX.1.tide, PREFIX.2.tide … (tidemark.PROGRAM)" },
	{ ARGS_FLAG(request, force), 'f', "force", NULL, "overwrite them" },
	{ ARGS_FLAG(request, free_stacks), 0, "free-stacks", NULL, "as in record" },
	{ ARGS_FLAG(request, reachability), 0, "reachability", NULL, "as in record" },
	{ ARGS_FLAG(request, bundle), 0, "bundle", NULL,
	  "as in record: for diff with a build that replaces this one" },
	{ ARGS_FLAG(request, show), 0, "show-output", NULL,
	  "let the program write to the standard output" },
	PRINT_OPTIONS_ROW_JSON("bench.json"),
	PRINT_OPTIONS_ROWS,
	{ 0 },
};

// More runs than that, diff and check do not compare.
static bool take(struct args *args, struct request *request, int id)
{
	if (id != OPTION_RUNS)
		return print_options_take(args, &request->print, id) == PRINT_OPTIONS_TAKEN;
	return args_count(args, &request->runs) &&
	       ((request->runs > 0 && request->runs <= SIGNIFICANCE_RUNS_MAX) ||
		args_mistake(args, "--runs %s: from 1 to %d", args->value, SIGNIFICANCE_RUNS_MAX));
}

static bool take_all(struct request *request, int argc, char **argv)
{
	struct args *args = &request->args;
	int id;

	args_init(args, &cmd_bench, argc, argv);
	args->into = request;
	args->stops_at_operand = true;
	while ((id = args_next(args)) != ARGS_END)
		if (id == ARGS_EXIT || !take(args, request, id))
			return false;
	if (args->at >= argc)
		return args_mistake(args, "needs a program to run");
	request->program = argv + args->at;
	return true;
}

// ---- the runs ----

// All names before the first run: a file that is there already ends it before the program has run
// for an hour.
static bool name_runs(struct request *request, struct err *err)
{
	struct str text = { 0 };

	ASSERT(request->runs > 0 && request->runs <= SIGNIFICANCE_RUNS_MAX);
	// Zeroed: what was not named yet is NULL, and is freed as such.
	request->paths = mem_alloc(request->runs, sizeof *request->paths);
	for (uint64_t run = 0; run < request->runs; run++) {
		str_clear(&text);
		if (request->prefix)
			str_add(&text, request->prefix);
		else
			str_format(&text, "tidemark.%s", str_last_part(request->program[0]));
		str_format(&text, ".%llu.tide", (unsigned long long)run + 1);
		request->paths[run] = mem_copy_text(str_get(&text));
		if (!request->force && file_look(str_get(&text)) != FILE_IS_MISSING) {
			err_set(err, ERR_USAGE, "%s exists (try: another -o, or --force)",
				str_get(&text));
			str_fini(&text);
			return false;
		}
	}
	str_fini(&text);
	return true;
}

// What is read by one run is missing in the next, so none reads anything.
// What cannot be opened stays what it was.
static void redirect(int to, const char *path, int flags)
{
	int descriptor = open(path, flags | O_CLOEXEC);

	if (descriptor >= 0)
		dup2(descriptor, to);
}

// In a process of its own, as a shell would: how it ended, as wait() has it.
static int record(const struct request *request, const char *path)
{
	size_t count = 0, words = 0;
	char **line;
	void (*before)(int);
	pid_t child;
	int status;

	while (request->program[words])
		words++;
	// Or the child would have what is in our buffers, too, and write it once more.
	fflush(NULL);
	// Where it is ignored no child can be waited for. The program has it as we had it.
	before = signal(SIGCHLD, SIG_DFL);
	child = fork();
	// In the form of wait(): the exit code is in the second byte.
	if (child < 0)
		return EXIT_NOT_RECORDED << 8;
	if (child > 0) {
		// Only a signal ends the waiting early; the terminal's own are for the program.
		while (waitpid(child, &status, 0) < 0)
			;
		return status;
	}
	signal(SIGCHLD, before);
	// `record` is called here as a function, in the child: no other tidemark can be met on a
	// PATH.
	line = mem_alloc(words + WORDS_OWN, sizeof *line);
	line[count++] = (char *)"-q";
	line[count++] = (char *)"-f"; // whether it may be there was asked before
	if (request->free_stacks)
		line[count++] = (char *)"--free-stacks";
	if (request->reachability)
		line[count++] = (char *)"--reachability";
	if (request->bundle)
		line[count++] = (char *)"--bundle";
	line[count++] = (char *)"-o";
	line[count++] = (char *)(uintptr_t)path;
	line[count++] = (char *)"--";
	memcpy(line + count, request->program, words * sizeof *line);
	redirect(STDIN_FILENO, "/dev/null", O_RDONLY);
	if (!request->show)
		redirect(STDOUT_FILENO, "/dev/null", O_WRONLY);
	_exit(cmd_record.run((int)(count + words), line));
}

// 0: all ran, and ended well.
static int record_all(const struct request *request)
{
	ASSERT(request->paths);
	for (uint64_t run = 0; run < request->runs; run++) {
		int status = record(request, request->paths[run]);

		if (status == 0)
			continue;
		if (WIFSIGNALED(status))
			fprintf(stderr, "tidemark bench: run %llu was ended by signal %d\n",
				(unsigned long long)run + 1, WTERMSIG(status));
		else
			fprintf(stderr,
				"tidemark bench: run %llu ended with exit code %d: not measured\n",
				(unsigned long long)run + 1, WEXITSTATUS(status));
		// As the program ended: a script sees its exit code, or its signal.
		return leave_as(status);
	}
	return 0;
}

// ---- the answer ----

// *read counts the traces that were opened, also where it fails: so many are to be closed. Warnings
// of the other runs are told with the first one's, by their names.
static bool write_answer(const struct request *request, struct query_context *asked,
			 struct check *checks, uint64_t *read, struct err *err)
{
	const struct check_options all = { 0 };
	const struct query_options options = { .print = request->print };
	struct query_context_options context =
		query_options_context(&cmd_bench, &options, &check_rules);
	struct sink sink = sink_to_file(stdout);
	struct check check;
	const struct check_page page = {
		.check = &check,
		.paths = (const char *const *)request->paths,
		.paths_count = request->runs,
		.colour = print_options_colour(&request->print),
		.width = print_options_width(),
	};

	for (uint64_t run = 0; run < request->runs; run++) {
		context.path = request->paths[run];
		// All of them stay open: their warnings and figures are in the one answer.
		if (!query_options_open(&context, &asked[run], err))
			return false;
		*read = run + 1;
		if (!check_find(&checks[run], &asked[run], &all, err))
			return false;
		for (size_t w = 0; run > 0 && w < asked[run].warnings_count; w++)
			query_context_warn(&asked[0], "%s: %s", context.path,
					   asked[run].warnings[w]);
	}
	check_join(&check, checks, request->runs);
	(request->print.json ? check_figures_json : check_figures)(&page, &sink);
	check_fini(&check);
	return sink_ok(&sink, err);
}

// What so many runs, and as many of another version, are enough for. One and one are compared
// exactly; check asks only whether there is more.
static const char *next_of(uint64_t runs)
{
	if (runs == 1 || significance_possible(runs, runs, false))
		return "tidemark diff OLD… --against NEW…, or tidemark check RUNS… --baseline FILE "
		       "--update";
	if (significance_possible(runs, runs, true))
		return "tidemark check RUNS… --baseline FILE --update (tidemark diff needs --runs "
		       "4)";
	return "tidemark bench --runs 4 (so few can be compared with no others)";
}

// `read` is how many traces were opened, also where the next one could not be: so many are closed.
static int answer(const struct request *request)
{
	struct query_context *asked = mem_alloc(request->runs, sizeof *asked);
	struct check *checks = mem_alloc(request->runs, sizeof *checks);
	struct err err = { 0 };
	uint64_t read = 0;
	int code = EXIT_ANSWERED;

	ASSERT(request->runs > 0 && request->paths);
	if (!write_answer(request, asked, checks, &read, &err))
		code = args_fail(&cmd_bench, &err);
	else if (!request->print.json)
		fprintf(stderr, "tidemark: traces %s … %s; next: %s\n", request->paths[0],
			request->paths[request->runs - 1], next_of(request->runs));
	for (uint64_t run = 0; run < read; run++) {
		check_fini(&checks[run]);
		query_context_close(&asked[run]);
	}
	MEM_FREE(checks, asked);
	return code;
}

// Before the time is spent.
static void tell_few(const struct request *request)
{
	if (request->runs == 1 || significance_possible(request->runs, request->runs, false))
		return;
	fprintf(stderr,
		"tidemark: --runs %llu: to tell two versions apart tidemark diff needs 4 runs of "
		"each, and tidemark check 3\n",
		(unsigned long long)request->runs);
}

static int run(int argc, char **argv)
{
	struct request request = { .runs = RUNS_DEFAULT };
	struct err err = { 0 };
	int code;

	if (!take_all(&request, argc, argv))
		code = request.args.exit_code;
	else if (!name_runs(&request, &err))
		code = args_fail(&cmd_bench, &err);
	else if (tell_few(&request), (code = record_all(&request)) == 0)
		code = answer(&request);
	for (uint64_t i = 0; request.paths && i < request.runs; i++)
		mem_free(request.paths[i]);
	mem_free(request.paths);
	return code;
}

const struct command cmd_bench = {
	.name = "bench",
	.brief = "record a program several times, and say what differs from run to run",
	.usage = "[options] [--] PROGRAM [ARGUMENT...]",
	.text = "The traces stay: tidemark diff compares them with those of another version, and\n"
		"tidemark check with a baseline. The program reads nothing, and what it writes to\n"
		"the standard output is not shown. A run that fails ends it, with its exit code.\n"
		"With --bundle the traces keep their names when the program is built again.\n",
	.examples = "  tidemark bench --bundle --runs 10 -o old -- ./app input\n"
		    "  tidemark diff old.*.tide --against new.*.tide\n"
		    "  tidemark check new.*.tide --baseline memory.baseline\n",
	.options = rows,
	.keeps_signals = true,
	.run = run,
};
