// record: runs a program and writes where its memory goes into a trace.
//
// An option is a row of record_options: what the user types, the help, and a function that takes
// its value. Most rows share one of five of these (a flag, a word, a time, a size, a bit of the
// segment's options), with the member of struct record that they set; the others have a function
// of their own above the table. So a new flag is a member and a row.
//
// For example `record --rotate 1h --strict -- make -j4`: the row "rotate" finds a letter of a
// time at the end of "1h" and sets keep.rotate_ns to 3,600 s; "strict" sets its flag; "make" and
// what follows is the program's. What does not go together (a size to keep and a size of each
// file, a pid and a program) is refused in record_check, when all is known.
#include "cli/absent.h"
#include "cli/args.h"
#include "cli/summary.h"

#include "base/mem.h"
#include "base/str.h"
#include "engine/moment.h"
#include "launch/launch.h"
#include "launch/leave.h"
#include "launch/output.h"
#include "sql/shards.h"
#include "trace/label.h"
#include "wire/segment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef TIDEMARK_VERSION
#define TIDEMARK_VERSION "0.1.0"
#endif

enum { RECORD_BYTES_MIN = 8 << 20, RECORD_SPOOL_BYTES = 1 << 30, RECORD_FOLLOW_MAX = 16 };

// All that record's command line says. Texts are borrowed from it, but for the two `struct str`.
struct record {
	struct args args;
	struct launch_options launch;
	struct str options_text;
	struct str labels;
	struct clickhouse_place push;
	const char *cluster; // of its servers
	uint64_t spool_bytes, every_ns;
	const char *every, *ttl;
	const char *follow[RECORD_FOLLOW_MAX]; // words of `tidemark push`
	bool bundle;
	bool quiet;
};

// An option: what the user types, and what it does. All there is to say of one is in its row.
struct record_option {
	struct option_row row; // its id only says that it is one
	bool (*take)(struct record *record, const struct record_option *option);
	size_t field; // of struct record: what `take` sets, of the type that it takes for granted
	uint32_t segment; // the bit that it sets
	bool said;        // the trace says that it was given, and how
};

// To the words that the trace bears as "options": a reader sees what was not recorded, and why.
static void record_add_text(struct record *record, const char *text)
{
	str_format(&record->options_text, "%s%s", record->options_text.length > 0 ? " " : "", text);
}

// An option that is given twice is said once.
static void record_add_segment(struct record *record, uint32_t bit, const char *text)
{
	if (record->launch.segment_options & bit)
		return;
	record->launch.segment_options |= bit;
	record_add_text(record, text);
}

// Into ns; zero and less are mistakes.
static bool record_parse_time(struct record *record, uint64_t *ns)
{
	// A duration may be negative elsewhere (--from -5s); here it may not.
	int64_t duration_ns;

	ASSERT(record->args.row && record->args.value);
	if (!moment_parse_duration(record->args.value, &duration_ns) || duration_ns <= 0)
		return args_mistake(&record->args,
				    "--%s %s: a time such as 30s, 500ms or 5m expected",
				    record->args.row->name, record->args.value);
	*ns = (uint64_t)duration_ns;
	return true;
}

// Less than 8 MiB would be a file that is full before it has its definitions.
static bool record_parse_bytes(struct record *record, uint64_t *bytes)
{
	ASSERT(record->args.row && record->args.value);
	if (!args_bytes(&record->args, bytes))
		return false;
	return *bytes >= RECORD_BYTES_MIN ||
	       args_mistake(&record->args, "--%s %s: at least 8M", record->args.row->name,
			    record->args.value);
}

// Where in the record a row's value goes.
static void *record_field(struct record *record, const struct record_option *option)
{
	ASSERT(option->field < sizeof *record);
	return (char *)record + option->field;
}

// The row's macro (FLAG, WORD …) pairs each of these with a member of its type.
static bool record_flag(struct record *record, const struct record_option *option)
{
	*(bool *)record_field(record, option) = true;
	return true;
}

static bool record_word(struct record *record, const struct record_option *option)
{
	*(const char **)record_field(record, option) = record->args.value;
	return true;
}

static bool record_time(struct record *record, const struct record_option *option)
{
	return record_parse_time(record, record_field(record, option));
}

static bool record_bytes(struct record *record, const struct record_option *option)
{
	return record_parse_bytes(record, record_field(record, option));
}

// The recorder reads this bit in the process itself.
static bool record_segment(struct record *record, const struct record_option *option)
{
	ASSERT(option->segment);
	record_add_segment(record, option->segment, option->row.name);
	return true;
}

static bool record_sample(struct record *record, const struct record_option *)
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

// A share such as 3% or 0.5%, in millionths.
static bool record_overhead(struct record *record, const struct record_option *)
{
	const char *word = record->args.value;
	char *end;
	double share = strtod(word, &end);

	if (word[0] < '0' || word[0] > '9' || strcmp(end, "%") != 0 || share < 0.1 || share > 100)
		return args_mistake(&record->args,
				    "--max-overhead %s: a share from 0.1%% to 100%% expected (3%%)",
				    word);
	// 3 % is 30,000 millionths; 0.5 rounds to the nearest.
	record->launch.overhead_max = (uint32_t)(share * 10000 + 0.5);
	record->launch.segment_options |= SEGMENT_BUDGET;
	return true;
}

static bool record_pid(struct record *record, const struct record_option *)
{
	const char *word = record->args.value;
	uint64_t pid;

	if (!str_parse_count(word, &pid))
		return args_mistake(&record->args,
				    "-p needs the number of a process, not '%s' (pgrep -f says "
				    "which numbers a program has)",
				    word);
	if (pid == 0 || pid > INT32_MAX)
		return args_mistake(&record->args, "'%s' is not a process id", record->args.value);
	record->launch.attach_pid = (uint32_t)pid;
	return true;
}

static bool record_clock(struct record *record, const struct record_option *)
{
	static const char *const words[] = { "tick", "ns", NULL };
	int word;

	if (!args_word(&record->args, words, &word))
		return false;
	if (word == 1)
		record_add_segment(record, SEGMENT_CLOCK_NS, "clock=ns");
	return true;
}

static bool record_reach_mark(struct record *record, const struct record_option *option)
{
	const char *mark = record->args.value;

	if (!*mark || strlen(mark) >= SEGMENT_MARK_BYTES)
		return args_mistake(&record->args,
				    "--%s takes the name of a mark, of at most %d bytes",
				    option->row.name, SEGMENT_MARK_BYTES - 1);
	record->launch.reach_mark = mark;
	return true;
}

// A later one of a name replaces nothing: it is a mistake.
static bool record_label(struct record *record, const struct record_option *option)
{
	const char *word = record->args.value, *wrong = label_wrong(word);

	ASSERT(record->args.value);
	// The line is added even where it is wrong, for the command ends then: label_find compares
	// with the lines before it.
	if (!wrong && label_find(str_get(&record->labels), word, strcspn(word, "="), NULL))
		wrong = "there is one of this name";
	str_format(&record->labels, "%s\n", word);
	return !wrong || args_mistake(&record->args, "--%s %s: %s", option->row.name, word, wrong);
}

// "1h" is a time, "1G" a size.
static bool record_rotate(struct record *record, const struct record_option *)
{
	struct keep_wishes *keep = &record->launch.keep;
	int64_t duration_ns;
	size_t length = strlen(record->args.value);
	// A time ends in "s", "m" or "h" ("ns" and "ms" too), a size in a digit, "B" or a large
	// letter. So 10m is ten minutes, and 10M is ten mebibytes.
	bool is_time = length > 0 && strchr("smhn", record->args.value[length - 1]) &&
		       moment_parse_duration(record->args.value, &duration_ns);

	ASSERT(record->args.value);
	return is_time ? record_parse_time(record, &keep->rotate_ns)
		       : record_parse_bytes(record, &keep->rotate_bytes);
}

static bool record_push(struct record *record, const struct record_option *option)
{
	record->push.url = record->args.value;
	if (!clickhouse_is(record->args.value))
		return args_mistake(&record->args, "a place is clickhouse://HOST:PORT/DATABASE");
	record_add_text(record, option->row.name);
	return true;
}

static bool record_every(struct record *record, const struct record_option *)
{
	record->every = record->args.value;
	return record_parse_time(record, &record->every_ns);
}

// Checked here, and handed on as it was written: `tidemark push` takes it from its own command
// line.
static bool record_ttl(struct record *record, const struct record_option *)
{
	unsigned days;

	record->ttl = record->args.value;
	return args_days(&record->args, &days);
}

#define FLAG(name) .take = record_flag, .field = offsetof(struct record, name)
#define WORD(name) .take = record_word, .field = offsetof(struct record, name)
#define TIME(name) .take = record_time, .field = offsetof(struct record, name)
#define BYTES(name) .take = record_bytes, .field = offsetof(struct record, name)
#define SEGMENT(name) .take = record_segment, .segment = SEGMENT_##name
#define OWN(name) .take = name
#define SAID .said = true

static const struct record_option record_options[] = {
	{ { 1, 'o', "output", "FILE",
	    "write the trace to FILE; in it %e is the program, %p its pid, %t the time, %h the "
	    "host, %n a number that makes it new" },
	  WORD(launch.output_pattern) },
	{ { 1, 'f', "force", NULL, "overwrite FILE" }, FLAG(launch.force) },
	{ { 1, 'p', "pid", "PID",
	    "record a program that runs already, from now on, instead of starting one" },
	  OWN(record_pid) },
	{ { 1, 0, "duration", "TIME",
	    "end the recording after so long (30s, 500ms, 5m); the program runs on" },
	  TIME(launch.duration_ns) },
	{ { 1, 0, "free-stacks", NULL, "record the stack of every free as well" },
	  SEGMENT(FREE_STACKS) },
	{ { 1, 0, "sample", "BYTES",
	    "record one allocation in BYTES of them, at random (512K): for production" },
	  OWN(record_sample) },
	{ { 1, 0, "max-overhead", "SHARE",
	    "record each call while that takes at most SHARE (3%) of the program's processor time, "
	    "and samples while it would take more" },
	  OWN(record_overhead),
	  SAID },
	{ { 1, 0, "usdt", NULL,
	    "with --sample: tell each sample by the probes otel_memory:alloc and free, for "
	    "OpenTelemetry's profiler, bpftrace, gdb" },
	  SEGMENT(USDT) },
	{ { 1, 0, "verify-stacks", NULL,
	    "walk every stack a second time, without the cache, and count differences (slow)" },
	  SEGMENT(VERIFY) },
	{ { 1, 0, "rss-exact", NULL,
	    "a snapshot of memory at every 1 % of growth, whatever it costs (else 2.5 to 25 %)" },
	  SEGMENT(RSS_EXACT) },
	{ { 1, 0, "reachability", NULL,
	    "at the program's end, find out which blocks nothing points to any more" },
	  SEGMENT(REACHABILITY) },
	{ { 1, 0, "reachability-at", "MARK",
	    "the same whenever the program sets this mark (tidemark.h, ctl PID mark)" },
	  OWN(record_reach_mark),
	  SAID },
	{ { 1, 0, "strict-vm", NULL,
	    "see memory calls that the program makes without libc, too (Go; 2 us for each of its "
	    "own system calls)" },
	  SEGMENT(STRICT_VM) },
	{ { 1, 0, "clock", "tick|ns",
	    "time events by a tick of 100 us (default), or each event by itself" },
	  OWN(record_clock) },
	{ { 1, 0, "paused", NULL,
	    "begin without recording allocations, until the program resumes (tidemark.h) or "
	    "tidemark ctl starts it" },
	  SEGMENT(PAUSED) },
	{ { 1, 0, "no-follow", NULL, "do not record the program's children" }, SEGMENT(NO_FOLLOW) },
	{ { 1, 0, "strict", NULL,
	    "exit with 125 if anything is not recorded; do not even start what cannot be" },
	  FLAG(launch.strict) },
	{ { 1, 0, "bundle", NULL,
	    "pack the symbols into the trace, so that it reads the same elsewhere and "
	    "after a rebuild" },
	  FLAG(bundle) },
	{ { 1, 0, "index", NULL,
	    "build the index that windows need while recording, when the machine is idle" },
	  FLAG(launch.index) },
	{ { 1, 0, "keep", "TIME",
	    "keep the newest part of the trace, at least so long (10m), and what lived before it" },
	  TIME(launch.keep.keep_ns),
	  SAID },
	{ { 1, 0, "max-size", "SIZE",
	    "keep the newest part that fits into SIZE (1G), in the same manner" },
	  BYTES(launch.keep.max_bytes),
	  SAID },
	{ { 1, 0, "rotate", "SIZE|TIME",
	    "begin a new file after so much (1G), or so long (1h); older ones are FILE.1.tide, …" },
	  OWN(record_rotate),
	  SAID },
	{ { 1, 0, "push", "PLACE",
	    "send the rows to clickhouse://HOST:PORT/DATABASE while recording (tidemark-push(1))" },
	  OWN(record_push) },
	{ { 1, 0, "spool", "SIZE",
	    "with --push: what waits to be sent takes no more than that in FILE (1G)" },
	  BYTES(spool_bytes),
	  SAID },
	{ { 1, 0, "credentials", "FILE",
	    "with --push: user and password, a line each; for its owner alone" },
	  WORD(push.credentials) },
	{ { 1, 0, "cluster", "NAME",
	    "with --push: PLACE names a server of each shard of it (tidemark-push(1))" },
	  WORD(cluster) },
	{ { 1, 0, "every", "TIME", "with --push: send no more often (10s)" }, OWN(record_every) },
	{ { 1, 0, "ttl", "TIME", "with --push: what is sent is gone after so many days (90d)" },
	  OWN(record_ttl) },
	{ { 1, 0, "jit", NULL,
	    "ask runtimes (node, Java, Python 3.12, .NET) by their environment to name the code "
	    "that they generate" },
	  FLAG(launch.jit),
	  SAID },
	{ { 1, 0, "native", NULL,
	    "of a Python program, keep the interpreter's own frames in the stacks, too" },
	  SEGMENT(NATIVE) },
	{ { 1, 0, "language-heaps", NULL,
	    "record what Python gives out of its own heaps, object by object: pymem, pyobject" },
	  SEGMENT(LANGUAGE_HEAPS) },
	{ { 1, 0, "label", "NAME=VALUE",
	    "say in the trace what the run is (version=1.2, branch=…), for tidemark fleet; "
	    "host=… is said too, then" },
	  OWN(record_label) },
	{ { 1, 'q', "quiet", NULL, "print no summary at the end" }, FLAG(quiet) },
	{ .take = NULL },
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
	.examples = absent_record_examples,
	.notes = absent_record_notes,
	.lacks = absent_why,
	.options = &record_options[0].row,
	.options_stride = sizeof *record_options,
	.keeps_signals = true,
	.run = record_run,
};

// The trace is what waits to be sent: it is kept to its size as --max-size does.
static bool record_check_push(struct record *record)
{
	struct args *args = &record->args;
	struct keep_wishes *keep = &record->launch.keep;
	const char *const words[] = { "push", "--follow", "--progress",
				      "none", "--to",     record->push.url };
	struct err err = { 0 };
	size_t count = sizeof words / sizeof *words;

	if (!record->push.url)
		return (!record->spool_bytes && !record->push.credentials && !record->every &&
			!record->ttl && !record->cluster) ||
		       args_mistake(args, "--spool, --credentials, --cluster, --every and --ttl "
					  "need --push PLACE");
	if (keep_wishes_rotate(keep) && record->spool_bytes)
		return args_mistake(args, "--rotate keeps all: not with --spool");
	if (record->launch.index)
		return args_mistake(args, "--push cuts the trace to --spool: not with --index");
	if (!shards_check(&record->push, record->cluster, &err))
		return args_mistake(args, "--push: %s", err.text);
	// Unless the user keeps the trace short otherwise it is bounded by --spool (1G).
	if (!keep->max_bytes && !keep_wishes_rotate(keep) &&
	    (record->spool_bytes || !keep->keep_ns))
		keep->max_bytes = record->spool_bytes ? record->spool_bytes : RECORD_SPOOL_BYTES;
	// The command line of another tidemark (launch/follower_linux.h).
	memcpy(record->follow, words, sizeof words);
	if (record->push.credentials) {
		record->follow[count++] = "--credentials";
		record->follow[count++] = record->push.credentials;
	}
	if (record->cluster) {
		record->follow[count++] = "--cluster";
		record->follow[count++] = record->cluster;
	}
	if (record->every) {
		record->follow[count++] = "--every";
		record->follow[count++] = record->every;
	}
	if (record->ttl) {
		record->follow[count++] = "--ttl";
		record->follow[count++] = record->ttl;
	}
	record->launch.follow = record->follow;
	record->launch.follow_quiet = record->quiet;
	return true;
}

// What a recording that is sampled at times cannot do.
static bool record_check_budget(struct record *record)
{
	const struct {
		bool asked;
		const char *option, *why;
	} cannot[] = {
		{ record->launch.sample_bytes > 0, "--sample", "that is samples all the time" },
		{ record->launch.segment_options & SEGMENT_REACHABILITY ||
			  record->launch.reach_mark,
		  "--reachability", "that needs every block" },
		{ record->launch.segment_options & SEGMENT_LANGUAGE_HEAPS, "--language-heaps",
		  "objects are recorded each" },
		{ record->push.url != NULL, "--push", "the rows that are sent say no weights" },
	};

	for (size_t i = 0; i < sizeof cannot / sizeof *cannot; i++)
		if (record->launch.overhead_max > 0 && cannot[i].asked)
			return args_mistake(&record->args, "--max-overhead does not go with %s: %s",
					    cannot[i].option, cannot[i].why);
	return true;
}

// What was asked for, together. False: it makes no sense.
static bool record_check(struct record *record)
{
	// Mistakes that need no machine to be seen. What depends on it (whether the process is
	// there, whether the kernel allows it) is found by launch_run, which says so.
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
	if (!record_check_budget(record))
		return false;
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

// Only beside other labels: who gives none asks no fleet, and the trace says no more of the machine
// than it must. A name that cannot be a label is left out.
static void record_add_host(struct record *record)
{
	char host[LABEL_VALUE_MAX] = "";
	struct str label = { 0 };

	output_host(host, sizeof host);
	str_format(&label, "host=%s", host);
	if (record->labels.length > 0 && *host && !label_wrong(label.text) &&
	    !label_find(record->labels.text, "host", 4, NULL))
		str_format(&record->labels, "%s\n", label.text);
	str_fini(&label);
}

// Whether this system has the option, what it sets, and what the trace says of it.
static bool record_take(struct record *record, const struct record_option *option)
{
	struct args *args = &record->args;
	char word[32];

	ASSERT(option->take && args->row == &option->row);
	snprintf(word, sizeof word, "--%s", option->row.name);
	if (absent_why(word))
		return args_mistake(args, "%s is not available on %s: %s", word, absent_system,
				    absent_why(word));
	if (!option->take(record, option))
		return false;
	if (option->said) {
		record_add_text(record, option->row.name);
		if (args->value)
			str_format(&record->options_text, "=%s", args->value);
	}
	return true;
}

// What follows the program is the program's. An output that was meant for us would be missed only
// when all has run.
static void record_warn_of_output(char *const *words)
{
	for (; words[0] && words[1]; words++)
		if ((strcmp(words[0], "-o") == 0 || strcmp(words[0], "--output") == 0) &&
		    str_ends_with(words[1], ".tide"))
			args_warn(&cmd_record,
				  "%s %s comes after the program, which gets it: options of record "
				  "come before it",
				  words[0], words[1]);
}

// False: return args.exit_code.
static bool record_parse(struct record *record, int argc, char **argv)
{
	struct args *args = &record->args;
	int id;

	args_init(args, &cmd_record, argc, argv);
	args->stops_at_operand = true;
	while ((id = args_next(args)) != ARGS_END)
		// A row is the first member of its record_option.
		if (id == ARGS_EXIT || !record_take(record, (const void *)args->row))
			return false;
	if (!record_check(record))
		return false;
	record->launch.argv = argv + args->at;
	if (!record->quiet && argv[args->at] && !str_ends_with(argv[args->at], "tidemark"))
		record_warn_of_output(argv + args->at + 1);
	record->launch.tool = "tidemark " TIDEMARK_VERSION;
	record_add_host(record);
	record->launch.options_text = str_get(&record->options_text);
	record->launch.labels = str_get(&record->labels);
	record->launch.tell = summary_tell;
	return true;
}

// The exit code: the program's own, unless --strict finds something missing.
static int record_finish(const struct record *record, struct launch_result *result)
{
	char *words[] = { (char *)"--", (char *)str_get(&result->path), NULL }; // -o -x.tide

	ASSERT(result->end == LAUNCH_RAN);
	if (result->closed && result->summary.nobody)
		summary_tell("warning: no process was recorded: the recorder was loaded into none");
	if (!record->quiet)
		summary_print(result);
	// Only a trace that was closed can get more at its end.
	if (record->bundle && result->closed)
		cmd_bundle.run(2, words);
	if (record->launch.strict && (!result->whole || result->summary.processes == 0)) {
		summary_tell("not everything was recorded (--strict)");
		return EXIT_NOT_RECORDED;
	}
	return leave_as(result->status);
}

// A mistake in the command line is 125 and not 2, which could be the program's own.
static int record_run(int argc, char **argv)
{
	struct record record = { .bundle = false };
	struct launch_result result = { .end = LAUNCH_FAILED };
	struct err err = { .kind = ERR_NONE };
	int code;

	if (!record_parse(&record, argc, argv)) {
		STR_FINI(&record.options_text, &record.labels);
		return record.args.exit_code == EXIT_USAGE ? EXIT_NOT_RECORDED
							   : record.args.exit_code;
	}
	launch_run(&record.launch, &result, &err);
	if (result.end == LAUNCH_RAN)
		code = record_finish(&record, &result);
	else
		code = summary_failed(&result, &err);
	launch_result_fini(&result);
	STR_FINI(&record.options_text, &record.labels);
	return code;
}
