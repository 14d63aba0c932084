// record: runs a program and writes where its memory goes into a trace.
#include "cli/absent.h"
#include "cli/args.h"
#include "cli/summary.h"

#include "base/str.h"
#include "engine/moment.h"
#include "launch/launch.h"
#include "launch/leave.h"
#include "launch/output.h"
#include "sql/clickhouse.h"
#include "trace/label.h"
#include "wire/segment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef TIDEMARK_VERSION
#define TIDEMARK_VERSION "0.1.0"
#endif

enum {
	RECORD_OUTPUT = 1,
	RECORD_PID,
	RECORD_DURATION,
	RECORD_FORCE,
	RECORD_FREE_STACKS,
	RECORD_SAMPLE,
	RECORD_USDT,
	RECORD_VERIFY_STACKS,
	RECORD_RSS_EXACT,
	RECORD_REACHABILITY,
	RECORD_REACHABILITY_AT,
	RECORD_STRICT_VM,
	RECORD_CLOCK,
	RECORD_PAUSED,
	RECORD_NO_FOLLOW,
	RECORD_STRICT,
	RECORD_BUNDLE,
	RECORD_INDEX,
	RECORD_MAX_SIZE,
	RECORD_KEEP,
	RECORD_ROTATE,
	RECORD_PUSH,
	RECORD_SPOOL,
	RECORD_CREDENTIALS,
	RECORD_EVERY,
	RECORD_JIT,
	RECORD_NATIVE,
	RECORD_LANGUAGE_HEAPS,
	RECORD_LABEL,
	RECORD_QUIET,
};

static const struct option_row record_options[] = {
	{ RECORD_OUTPUT, 'o', "output", "FILE",
	  "write the trace to FILE; in it %e is the program, %p its pid, %t the time, %h the host, "
	  "%n a number that makes it new" },
	{ RECORD_FORCE, 'f', "force", NULL, "overwrite FILE" },
	{ RECORD_PID, 'p', "pid", "PID",
	  "record a program that runs already, from now on, instead of starting one" },
	{ RECORD_DURATION, 0, "duration", "TIME",
	  "end the recording after so long (30s, 500ms, 5m); the program runs on" },
	{ RECORD_FREE_STACKS, 0, "free-stacks", NULL, "record the stack of every free as well" },
	{ RECORD_SAMPLE, 0, "sample", "BYTES",
	  "record one allocation in BYTES of them, at random (512K): for production" },
	{ RECORD_USDT, 0, "usdt", NULL,
	  "with --sample: tell each sample by the probes otel_memory:alloc and free, for "
	  "OpenTelemetry's profiler, bpftrace, gdb" },
	{ RECORD_VERIFY_STACKS, 0, "verify-stacks", NULL,
	  "walk every stack a second time, without the cache, and count differences (slow)" },
	{ RECORD_RSS_EXACT, 0, "rss-exact", NULL,
	  "a snapshot of memory at every 1 % of growth, whatever it costs (default 10 %)" },
	{ RECORD_REACHABILITY, 0, "reachability", NULL,
	  "at the program's end, find out which blocks nothing points to any more" },
	{ RECORD_REACHABILITY_AT, 0, "reachability-at", "MARK",
	  "the same whenever the program sets this mark (tidemark.h, ctl PID mark)" },
	{ RECORD_STRICT_VM, 0, "strict-vm", NULL,
	  "see memory calls that the program makes without libc, too (Go; 2 us for each of its own "
	  "system calls)" },
	{ RECORD_CLOCK, 0, "clock", "tick|ns",
	  "time events by a tick of 100 us (default), or each event by itself" },
	{ RECORD_PAUSED, 0, "paused", NULL,
	  "begin without recording allocations, until the program resumes (tidemark.h) or "
	  "tidemark ctl starts it" },
	{ RECORD_NO_FOLLOW, 0, "no-follow", NULL, "do not record the program's children" },
	{ RECORD_STRICT, 0, "strict", NULL,
	  "exit with 125 if anything is not recorded; do not even start what cannot be" },
	{ RECORD_BUNDLE, 0, "bundle", NULL,
	  "pack the symbols into the trace, so that it reads the same elsewhere" },
	{ RECORD_INDEX, 0, "index", NULL,
	  "build the index that windows need while recording, when the machine is idle" },
	{ RECORD_KEEP, 0, "keep", "TIME",
	  "keep the newest part of the trace, at least so long (10m), and what lived before it" },
	{ RECORD_MAX_SIZE, 0, "max-size", "SIZE",
	  "keep the newest part that fits into SIZE (1G), in the same manner" },
	{ RECORD_ROTATE, 0, "rotate", "SIZE|TIME",
	  "begin a new file after so much (1G), or so long (1h); older ones are FILE.1.tide, …" },
	{ RECORD_PUSH, 0, "push", "PLACE",
	  "send the rows to clickhouse://HOST:PORT/DATABASE while recording (tidemark-push(1))" },
	{ RECORD_SPOOL, 0, "spool", "SIZE",
	  "with --push: what waits to be sent takes no more than that in FILE (1G)" },
	{ RECORD_CREDENTIALS, 0, "credentials", "FILE",
	  "with --push: user and password, a line each; for its owner alone" },
	{ RECORD_EVERY, 0, "every", "TIME", "with --push: send no more often (10s)" },
	{ RECORD_JIT, 0, "jit", NULL,
	  "ask runtimes (node, Java, Python 3.12, .NET) by their environment to name the code that "
	  "they generate" },
	{ RECORD_NATIVE, 0, "native", NULL,
	  "of a Python program, keep the interpreter's own frames in the stacks, too" },
	{ RECORD_LANGUAGE_HEAPS, 0, "language-heaps", NULL,
	  "record what Python gives out of its own heaps, object by object: pymem, pyobject" },
	{ RECORD_LABEL, 0, "label", "NAME=VALUE",
	  "say in the trace what the run is (version=1.2, branch=…), for tidemark fleet; "
	  "host=… is said too, then" },
	{ RECORD_QUIET, 'q', "quiet", NULL, "print no summary at the end" },
	{ 0 },
};

enum { RECORD_BYTES_MIN = 8 << 20, RECORD_SPOOL_BYTES = 1 << 30, RECORD_FOLLOW_MAX = 12 };

struct record {
	struct args args;
	struct launch_options launch;
	struct str options_text;
	struct str labels;
	struct clickhouse_place push;
	uint64_t spool_bytes, every_ns;
	const char *every;
	const char *follow[RECORD_FOLLOW_MAX]; // words of `tidemark push`
	bool bundle;
	bool quiet;
};

static int record_run(int argc, char **argv);

const struct command cmd_record = {
	.name = "record",
	.brief = "run a program and record its memory calls, and those of its children",
	.usage = "[options] [--] PROGRAM [ARGUMENT...], or -p PID [options]",
	.text = "The program's input, output, exit code and signals stay as they are. The trace "
		"is\ntidemark.PROGRAM.PID.tide in the current directory, unless -o says "
		"otherwise.\n"
		"With -p, Ctrl-C ends the recording and not the program, and the exit code is 0.\n",
	.examples = "  tidemark record ./server --port 8080\n"
		    "  tidemark record -o build.tide -- make -j4      # and all that make starts\n"
		    "  tidemark record -p 4242 --duration 30s\n"
		    "  tidemark record -o '%e.%t.tide' --free-stacks python3 job.py\n",
	.notes = "Environment\n"
		 "  TIDEMARK_LIBRARY  path of libtidemark.so, if it is not where it was "
		 "installed\n"
		 "\nSee also\n"
		 "  tidemark report, tidemark info, tidemark-record(1)\n",
	.options = record_options,
	.keeps_signals = true,
	.run = record_run,
};

static bool record_sample(struct record *record)
{
	if (!args_bytes(&record->args, &record->launch.sample_bytes))
		return false;
	if (record->launch.sample_bytes == 0)
		return args_mistake(&record->args, "--sample 0: at least one byte");
	if (record->launch.sample_bytes > SEGMENT_SAMPLE_BYTES_MAX)
		return args_mistake(&record->args, "--sample %s: at most 1 TiB",
				    record->args.value);
	return true;
}

static bool record_pid(struct record *record)
{
	uint64_t pid;

	if (!args_count(&record->args, &pid))
		return false;
	if (pid == 0 || pid > INT32_MAX)
		return args_mistake(&record->args, "'%s' is not a process id", record->args.value);
	record->launch.attach_pid = (uint32_t)pid;
	return true;
}

static void record_add_text(struct record *record, const char *text)
{
	str_format(&record->options_text, "%s%s", record->options_text.length > 0 ? " " : "", text);
}

static void record_add_option(struct record *record, uint32_t option, const char *text)
{
	if (record->launch.segment_options & option)
		return;
	record->launch.segment_options |= option;
	record_add_text(record, text);
}

static bool record_clock(struct record *record)
{
	static const char *const words[] = { "tick", "ns", NULL };
	int word;

	if (!args_word(&record->args, words, &word))
		return false;
	if (word == 1)
		record_add_option(record, SEGMENT_CLOCK_NS, "clock=ns");
	return true;
}

// An option of the collector's or the recorder's. False: this system has it not.
static bool record_take(struct record *record, uint32_t option, const char *name)
{
	char word[32];

	snprintf(word, sizeof word, "--%s", name);
	if (absent_why(word))
		return args_mistake(&record->args, "%s is not available on %s: %s", word,
				    absent_system, absent_why(word));
	if (option)
		record_add_option(record, option, name);
	return true;
}

// What the user said of how the recording is kept, as the trace has it.
static void record_add_words(struct record *record, const char *name)
{
	str_format(&record->options_text, "%s%s=%s", record->options_text.length > 0 ? " " : "",
		   name, record->args.value);
}

// A later one of a name replaces nothing: it is a mistake.
static bool record_label(struct record *record)
{
	const char *word = record->args.value, *wrong = label_wrong(word);

	if (!wrong && label_find(str_get(&record->labels), word, strcspn(word, "=")))
		wrong = "there is one of this name";
	str_format(&record->labels, "%s\n", word);
	return !wrong || args_mistake(&record->args, "--label %s: %s", word, wrong);
}

static void record_add_host(struct record *record)
{
	char host[LABEL_VALUE_MAX] = "";
	struct str label = { 0 };

	output_host(host, sizeof host);
	str_format(&label, "host=%s", host);
	if (record->labels.length > 0 && *host && !label_wrong(label.text) &&
	    !label_find(record->labels.text, "host", 4))
		str_format(&record->labels, "%s\n", label.text);
	str_fini(&label);
}

static bool record_time(struct record *record, const char *name, uint64_t *ns)
{
	int64_t duration_ns;

	if (!record_take(record, 0, name))
		return false;
	if (moment_parse_duration(record->args.value, &duration_ns) && duration_ns > 0) {
		*ns = (uint64_t)duration_ns;
		return true;
	}
	return args_mistake(&record->args, "--%s %s: a time such as 30s, 500ms or 5m expected",
			    name, record->args.value);
}

static bool record_bytes(struct record *record, const char *name, uint64_t *bytes)
{
	if (!record_take(record, 0, name) || !args_bytes(&record->args, bytes))
		return false;
	if (*bytes < RECORD_BYTES_MIN)
		return args_mistake(&record->args, "--%s %s: at least 8M", name,
				    record->args.value);
	record_add_words(record, name);
	return true;
}

// "1h" is a time, "1G" a size.
static bool record_rotate(struct record *record)
{
	struct keep_wishes *keep = &record->launch.keep;
	int64_t duration_ns;
	size_t length = strlen(record->args.value);
	bool is_time = length > 0 && strchr("smhn", record->args.value[length - 1]) &&
		       moment_parse_duration(record->args.value, &duration_ns);

	if (!is_time)
		return record_bytes(record, "rotate", &keep->rotate_bytes);
	if (!record_time(record, "rotate", &keep->rotate_ns))
		return false;
	record_add_words(record, "rotate");
	return true;
}

static bool record_push(struct record *record)
{
	if (!record_take(record, 0, "push"))
		return false;
	record->push.url = record->args.value;
	if (!clickhouse_is(record->args.value))
		return args_mistake(&record->args, "a place is clickhouse://HOST:PORT/DATABASE");
	record_add_text(record, "push");
	return true;
}

// The trace is what waits to be sent: it is kept to its size as --max-size does.
static bool record_check_push(struct record *record)
{
	struct args *args = &record->args;
	struct keep_wishes *keep = &record->launch.keep;
	const char *const words[] = { "push", "--follow", "--progress",
				      "none", "--to",     record->push.url };
	struct clickhouse *clickhouse;
	struct err err = { 0 };
	size_t count = sizeof words / sizeof *words;

	if (!record->push.url)
		return (!record->spool_bytes && !record->push.credentials && !record->every) ||
		       args_mistake(args, "--spool, --credentials and --every need --push PLACE");
	if (keep_wishes_rotate(keep))
		return args_mistake(args, "--push sends one file that grows: not with --rotate");
	if (record->launch.index)
		return args_mistake(args, "--push cuts the trace to --spool: not with --index");
	if (!(clickhouse = clickhouse_new(&record->push, &err)))
		return args_mistake(args, "--push: %s", err.text);
	clickhouse_free(clickhouse);
	if (!keep->max_bytes && (record->spool_bytes || !keep->keep_ns))
		keep->max_bytes = record->spool_bytes ? record->spool_bytes : RECORD_SPOOL_BYTES;
	memcpy(record->follow, words, sizeof words);
	if (record->push.credentials) {
		record->follow[count++] = "--credentials";
		record->follow[count++] = record->push.credentials;
	}
	if (record->every) {
		record->follow[count++] = "--every";
		record->follow[count++] = record->every;
	}
	record->launch.follow = record->follow;
	record->launch.follow_quiet = record->quiet;
	return true;
}

// What was asked for, together. False: it makes no sense.
static bool record_check(struct record *record)
{
	struct args *args = &record->args;
	const struct keep_wishes *keep = &record->launch.keep;
	bool attaches = record->launch.attach_pid != 0;

	if (attaches && args->at < args->argc)
		return args_mistake(args,
				    "-p %u records a program that runs: it does not start '%s'",
				    record->launch.attach_pid, args->argv[args->at]);
	if (attaches && record->launch.segment_options & SEGMENT_STRICT_VM)
		return args_mistake(args, "--strict-vm needs a program that record starts");
	if (attaches && record->launch.jit)
		return args_mistake(args, "--jit needs a program that record starts: one that runs "
					  "cannot be asked any more");
	if (attaches && record->launch.segment_options & SEGMENT_LANGUAGE_HEAPS)
		return args_mistake(args, "--language-heaps needs a program that record starts: "
					  "what its interpreter has given out before is not known");
	if (record->launch.segment_options & SEGMENT_USDT &&
	    record->launch.segment_options & SEGMENT_LANGUAGE_HEAPS)
		return args_mistake(args, "--usdt fires probes for malloc's blocks alone: not with "
					  "--language-heaps");
	if (attaches && record->launch.segment_options & SEGMENT_PAUSED)
		return args_mistake(args, "--paused needs a program that record starts (try: "
					  "tidemark ctl PID stop)");
	if (record->launch.sample_bytes > 0 &&
	    (record->launch.segment_options & SEGMENT_REACHABILITY || record->launch.reach_mark))
		return args_mistake(args, "--reachability needs every block, and --sample leaves "
					  "most of them out");
	if (keep_wishes_any(keep) && record->launch.index)
		return args_mistake(args, "--index follows one file that grows: not with --keep, "
					  "--max-size or --rotate");
	if (keep_wishes_rotate(keep) && (keep->keep_ns || keep->max_bytes))
		return args_mistake(args, "--rotate keeps all, in several files: not with --keep "
					  "or --max-size");
	if (record->launch.sample_bytes == 0 && record->launch.segment_options & SEGMENT_USDT)
		return args_mistake(args, "--usdt reports samples: it needs --sample BYTES");
	if (!attaches && args->at >= args->argc)
		return args_mistake(args, "needs a program to run, or -p PID");
	return record_check_push(record);
}

// False: return args.exit_code.
static bool record_parse(struct record *record, int argc, char **argv)
{
	struct args *args = &record->args;
	int id;

	args_init(args, &cmd_record, argc, argv);
	args->stops_at_operand = true;
	while ((id = args_next(args)) != ARGS_END) {
		switch (id) {
		case ARGS_EXIT:
			return false;
		case RECORD_OUTPUT:
			record->launch.output_pattern = args->value;
			break;
		case RECORD_FORCE:
			record->launch.force = true;
			break;
		case RECORD_PID:
			if (!record_pid(record))
				return false;
			break;
		case RECORD_DURATION:
			if (!record_time(record, "duration", &record->launch.duration_ns))
				return false;
			break;
		case RECORD_FREE_STACKS:
			record_add_option(record, SEGMENT_FREE_STACKS, "free-stacks");
			break;
		case RECORD_SAMPLE:
			if (!record_sample(record))
				return false;
			break;
		case RECORD_USDT:
			if (!record_take(record, SEGMENT_USDT, "usdt"))
				return false;
			break;
		case RECORD_VERIFY_STACKS:
			record_add_option(record, SEGMENT_VERIFY, "verify-stacks");
			break;
		case RECORD_RSS_EXACT:
			if (!record_take(record, SEGMENT_RSS_EXACT, "rss-exact"))
				return false;
			break;
		case RECORD_REACHABILITY:
			if (!record_take(record, SEGMENT_REACHABILITY, "reachability"))
				return false;
			break;
		case RECORD_REACHABILITY_AT:
			if (!record_take(record, 0, "reachability-at"))
				return false;
			if (!*record->args.value ||
			    strlen(record->args.value) >= SEGMENT_MARK_BYTES)
				return args_mistake(
					&record->args,
					"--reachability-at takes the name of a mark, of at "
					"most %d bytes",
					SEGMENT_MARK_BYTES - 1);
			record->launch.reach_mark = record->args.value;
			record_add_words(record, "reachability-at");
			break;
		case RECORD_STRICT_VM:
			if (!record_take(record, SEGMENT_STRICT_VM, "strict-vm"))
				return false;
			break;
		case RECORD_PAUSED:
			record_add_option(record, SEGMENT_PAUSED, "paused");
			break;
		case RECORD_CLOCK:
			if (!record_clock(record))
				return false;
			break;
		case RECORD_NO_FOLLOW:
			record_add_option(record, SEGMENT_NO_FOLLOW, "no-follow");
			break;
		case RECORD_STRICT:
			record->launch.strict = true;
			break;
		case RECORD_BUNDLE:
			record->bundle = true;
			break;
		case RECORD_INDEX:
			if (!record_take(record, 0, "index"))
				return false;
			record->launch.index = true;
			break;
		case RECORD_MAX_SIZE:
			if (!record_bytes(record, "max-size", &record->launch.keep.max_bytes))
				return false;
			break;
		case RECORD_KEEP:
			if (!record_time(record, "keep", &record->launch.keep.keep_ns))
				return false;
			record_add_words(record, "keep");
			break;
		case RECORD_ROTATE:
			if (!record_rotate(record))
				return false;
			break;
		case RECORD_PUSH:
			if (!record_push(record))
				return false;
			break;
		case RECORD_SPOOL:
			if (!record_bytes(record, "spool", &record->spool_bytes))
				return false;
			break;
		case RECORD_CREDENTIALS:
			record->push.credentials = args->value;
			break;
		case RECORD_EVERY:
			if (!record_time(record, "every", &record->every_ns))
				return false;
			record->every = args->value;
			break;
		case RECORD_JIT:
			if (!record_take(record, 0, "jit"))
				return false;
			record->launch.jit = true;
			record_add_text(record, "jit");
			break;
		case RECORD_NATIVE:
			if (!record_take(record, SEGMENT_NATIVE, "native"))
				return false;
			break;
		case RECORD_LANGUAGE_HEAPS:
			if (!record_take(record, SEGMENT_LANGUAGE_HEAPS, "language-heaps"))
				return false;
			break;
		case RECORD_LABEL:
			if (!record_label(record))
				return false;
			break;
		case RECORD_QUIET:
			record->quiet = true;
			break;
		}
	}
	if (!record_check(record))
		return false;
	record->launch.argv = argv + args->at;
	record->launch.tool = "tidemark " TIDEMARK_VERSION;
	record_add_host(record);
	record->launch.options_text = str_get(&record->options_text);
	record->launch.labels = str_get(&record->labels);
	record->launch.tell = summary_tell;
	return true;
}

static int record_finish(const struct record *record, struct launch_result *result)
{
	char *words[] = { (char *)str_get(&result->path), NULL };

	if (result->closed && result->summary.processes == 0)
		summary_tell("warning: no process was recorded: the recorder was loaded into none");
	if (!record->quiet)
		summary_print(result);
	if (record->bundle && result->closed)
		cmd_bundle.run(1, words);
	if (record->launch.strict && (!result->whole || result->summary.processes == 0)) {
		summary_tell("not everything was recorded (--strict)");
		return EXIT_NOT_RECORDED;
	}
	return leave_as(result->status);
}

static int record_run(int argc, char **argv)
{
	struct record record = { .bundle = false };
	struct launch_result result = { .end = LAUNCH_FAILED };
	struct err err = { .kind = ERR_NONE };
	int code;

	if (!record_parse(&record, argc, argv)) {
		str_fini(&record.options_text);
		str_fini(&record.labels);
		return record.args.exit_code == EXIT_USAGE ? EXIT_NOT_RECORDED
							   : record.args.exit_code;
	}
	launch_run(&record.launch, &result, &err);
	if (result.end == LAUNCH_RAN)
		code = record_finish(&record, &result);
	else
		code = summary_failed(&result, &err);
	launch_result_fini(&result);
	str_fini(&record.options_text);
	str_fini(&record.labels);
	return code;
}
