// push: the rows of traces into a database of many.
//
// Two ways. To a database go rows: of a trace that has ended all of them, once; of one that is
// being written (--follow) piece by piece until it ends. To OpenTelemetry go profiles, each of the
// last seconds. For example `push nightly/*.tide --to clickhouse://db/memory`: the tables are made
// where they are missing, and each trace that is there already costs one question.
//
// A trace that was begun to be sent live is finished in the same manner, also by another run
// (push_live_is).
#include "cli/query_options.h"

#include "base/mem.h"
#include "cli/interrupt.h"
#include "cli/running.h"
#include "engine/moment.h"
#include "export/events.h"
#include "os/file.h"
#include "os/now.h"
#include "sql/otlp_push.h"
#include "sql/push_live.h"

#include <inttypes.h>

enum { PUSH_TO = 1, PUSH_TTL, PUSH_EVERY, PUSH_COMPRESSION };

enum { SECOND_NS = 1000000000 };

// What was asked for. Files are words of the command line: paths, or numbers of processes.
struct pushing {
	struct query_options query;
	const char **files;
	size_t files_count, files_capacity;
	struct clickhouse_place place;
	const char *cluster;
	unsigned keep_days; // 0: for good
	bool follow;
	int64_t every_ns;
	int compression; // of push_compressions; otlp alone
	bool compression_given;
};

static const struct option_row push_options[] = {
	{ PUSH_TO, 0, "to", "PLACE",
	  "clickhouse://HOST:PORT/DATABASE or otlp://HOST:PORT; clickhouses:// … with TLS" },
	{ ARGS_TEXT(pushing, place.credentials), 0, "credentials", "FILE",
	  "user and password, a line each; for its owner alone" },
	{ ARGS_TEXT(pushing, cluster), 0, "cluster", "NAME",
	  "spread over this cluster's shards: PLACE names a server of each, with commas" },
	{ PUSH_TTL, 0, "ttl", "TIME", "what is sent is gone after so many days (90d)" },
	{ ARGS_FLAG(pushing, follow), 0, "follow", NULL,
	  "send a trace while it is written, until it is not any more (record --push does so)" },
	{ PUSH_EVERY, 0, "every", "TIME", "of a trace that is being written: no more often (10s)" },
	{ PUSH_COMPRESSION, 0, "compression", "HOW", "otlp: gzip (the default) or none" },
	PRINT_OPTIONS_ROW_PROGRESS,
	PRINT_OPTIONS_ROWS_SYMBOLS,
	{ 0 },
};

static int run(int argc, char **argv);

const struct command cmd_push = {
	.name = "push",
	.brief = "send traces to a database of many, or as profiles to OpenTelemetry",
	.usage = "FILE… --to clickhouse://HOST:PORT/DATABASE, or FILE|PID --to otlp://HOST:PORT",
	.text = "Sends the rows of each trace (docs/schema/rows.md) to ClickHouse, and makes the\n"
		"tables there. A push that broke off goes on where it was when it is run again;\n"
		"a trace that is there already is not sent again. All commands take\n"
		"clickhouse://HOST:PORT/DATABASE?trace=NUMBER in place of a file then.\n"
		"docs/howto/fleet.md has what to ask there. With --follow a trace is sent while\n"
		"it is written; PID is a process that is being recorded.\n\n"
		"To otlp://HOST:PORT (4318) go profiles, by OTLP over HTTP: of a trace that is\n"
		"being written what was allocated in the last seconds (--every) and what lives,\n"
		"until it ends; of a finished one the whole, once.\n",
	.examples = "  tidemark push app.tide --to clickhouse://db.example:8123/memory\n"
		    "  tidemark push nightly/*.tide --to clickhouses://db.example/memory \\\n"
		    "      --credentials ~/.config/clickhouse\n"
		    "  tidemark push 4242 --to otlp://localhost:4318 --every 30s\n",
	.notes = "Environment:\n"
		 "  TIDEMARK_CLICKHOUSE_USER, TIDEMARK_CLICKHOUSE_PASSWORD   who sends or asks\n"
		 "  TIDEMARK_CLICKHOUSE_CREDENTIALS   a file as for --credentials\n"
		 "  TIDEMARK_CLICKHOUSE_CA   clickhouses://: who vouches for the server (PEM)\n"
		 "  OTEL_EXPORTER_OTLP_HEADERS   otlp://: NAME=VALUE,… that are sent as headers\n"
		 "  OTEL_EXPORTER_OTLP_CERTIFICATE   otlps://: who vouches for it (PEM)\n",
	.options = push_options,
	.run = run,
};

static const char *const push_compressions[] = { "gzip", "none", NULL };

// A line for the user, in the form that exports ask for.
static void say(void *, const char *text)
{
	fprintf(stderr, "tidemark push: %s\n", text);
}

// ", 2.50 s, 1,200,000 rows/s"; nothing where nothing was sent.
static void print_rate(uint64_t rows, uint64_t ns)
{
	if (rows == 0 || ns == 0)
		return;
	printf(", %.2f s, %s rows/s", (double)ns / 1e9,
	       STR_COUNT((uint64_t)((double)rows * 1e9 / (double)ns)));
}

static void print_result(const char *file, const struct push_result *result, uint64_t ns)
{
	printf("%s: %" PRIu64 " rows sent (%s", file, result->rows_sent,
	       STR_BYTES(result->bytes_sent));
	print_rate(result->rows_sent, ns);
	printf(")");
	if (result->rows_known)
		printf(", %" PRIu64 " were there already", result->rows_known);
	printf("\n");
}

// All rows of a trace that has ended.
static bool send_trace(const struct pushing *pushing, struct shards *shards,
		       struct export_source *source, const char *file, struct err *err)
{
	struct push_result result = { 0 };
	uint64_t begin_ns = now_steady_ns();

	// The time that is reported begins here: reading the trace is part of it, opening the
	// database is not.
	if (!events_prepare(source->asked, err) ||
	    !push_trace(shards, source, pushing->keep_days, &result, err))
		return false;
	print_result(file, &result, now_steady_ns() - begin_ns);
	query_context_caution(source->asked, true);
	query_options_warn(&cmd_push, source->asked, file);
	return true;
}

// push has no filters: a database has whole traces.
static bool push_trace_file(const struct pushing *pushing, struct shards *shards, const char *file,
			    struct err *err)
{
	struct query_context_options options =
		query_options_context(&cmd_push, &pushing->query, &query_context_events_rules);
	struct query_context asked;
	struct export_source source = { .asked = &asked, .say = say };
	bool good;

	options.path = file;
	if (!query_options_open(&options, &asked, err))
		return false;
	interrupt_watch();
	good = send_trace(pushing, shards, &source, file, err);
	interrupt_leave();
	query_context_close(&asked);
	return good;
}

static void say_no_ages(unsigned keep_days)
{
	struct str line = { 0 };

	tables_tell_no_ages(keep_days, &line);
	say(NULL, line.text);
	str_fini(&line);
}

// ---- while it is written ----

static const char not_sent[] = "%s is not sent to its end (try: tidemark push %s)";

static void say_line(const char *line)
{
	fprintf(stderr, "tidemark push: %s\n", line);
}

// It is said in the trace as well, as a mark, so that who looks at the rows later knows of the gap.
static void say_dropped(const struct reader *reader, uint64_t from_ns, uint64_t to_ns)
{
	struct str line = { 0 };

	str_format(&line, "not sent: what began and ended from %s to %s", STR_DURATION(from_ns),
		   STR_DURATION(to_ns));
	running_mark(reader, line.text);
	str_add(&line, ", which the trace has no more (try: a larger --spool)");
	say_line(line.text);
	str_fini(&line);
}

// Until the recording ends. What fails says how to send the rest.
static bool follow_file(const struct pushing *pushing, struct shards *shards, const char *file,
			struct err *err)
{
	struct push_result result = { 0 };
	uint64_t begin_ns = now_steady_ns();
	const struct push_live_options options = {
		.path = file,
		.symbols = pushing->query.print.symbols,
		.follow = pushing->follow,
		.every_ns = (uint64_t)pushing->every_ns,
		.keep_days = pushing->keep_days,
		.stop = interrupt_came,
		.say = say_line,
		.dropped = say_dropped,
	};
	bool good;

	ASSERT(pushing->every_ns > 0);
	interrupt_watch();
	good = push_live_run(shards, &options, &result, err);
	interrupt_leave();
	if (good)
		print_result(file, &result, now_steady_ns() - begin_ns);
	else
		err_wrap(err, not_sent, file, file);
	return good;
}

// Of a trace that ended: as it was begun to be sent. While it is held it is not sent otherwise.
static bool push_ended(const struct pushing *pushing, struct shards *shards,
		       const struct reader *reader, const char *file, struct err *err)
{
	int fd = file_open(file, FILE_READ);
	bool is = false, good;

	// Held alone by the push that follows it: two would send the same rows.
	// A file that cannot be opened here is reported by who opens it next, with the better
	// message.
	if (fd >= 0 && !file_hold(fd, false))
		good = err_set(err, ERR_IO, "%s is being sent by another tidemark push", file);
	else
		// Who follows has not made the tables yet: push_all leaves that to push_live_run,
		// which goes on trying while the server is away. Whether the trace was begun live
		// is asked of them, so here they are made.
		good = (!pushing->follow || tables_make(shards, NULL, err)) &&
		       push_live_is(shards, reader, &is, err) &&
		       (is || push_trace_file(pushing, shards, file, err));
	file_close(fd);
	if (!good && pushing->follow)
		err_wrap(err, not_sent, file, file);
	return good && (!is || follow_file(pushing, shards, file, err));
}

// The file is opened only to see whether it grows; each way of sending opens it in its own manner.
static bool push_file_of(const struct pushing *pushing, struct shards *shards, const char *file,
			 struct err *err)
{
	struct reader *reader = reader_open(file, err);
	bool good;

	ASSERT(file);
	if (!reader)
		return false;
	if (!reader_growing(reader))
		good = push_ended(pushing, shards, reader, file, err);
	else if (pushing->follow)
		good = follow_file(pushing, shards, file, err);
	else
		good = err_set(err, ERR_IO,
			       "%s is still being written: send it when it has ended, or with "
			       "--follow",
			       file);
	reader_close(reader);
	return good;
}

static bool push_operand(const struct pushing *pushing, struct shards *shards, const char *word,
			 struct err *err)
{
	struct str path = { 0 };
	// A word is a path, or the number of a process that is being recorded, whose trace is
	// looked up.
	bool good = running_trace(word, &path, err) &&
		    push_file_of(pushing, shards, str_get(&path), err);

	str_fini(&path);
	return good;
}

// The first failure ends it: the files after it are not tried, since the place is most likely the
// cause.
static bool push_all(const struct pushing *pushing, struct err *err)
{
	struct shards *shards = shards_new(&pushing->place, pushing->cluster, err);
	bool ages = true;
	// Tables are made once for all files; whether rows can be kept for a limited time is the
	// server's say.
	bool good = shards && (pushing->follow || tables_make(shards, &ages, err));

	ASSERT(pushing->files_count > 0 && pushing->place.url);
	if (good && pushing->keep_days && !ages)
		say_no_ages(pushing->keep_days);
	for (size_t i = 0; i < pushing->files_count && good; i++)
		good = push_operand(pushing, shards, pushing->files[i], err);
	shards_free(shards);
	return good;
}

// ---- profiles ----

// `word` is a path, or the number of a process that is being recorded.
static bool profile_operand(const struct pushing *pushing, struct otlp_send *send, const char *word,
			    struct err *err)
{
	struct otlp_push_result result = { 0 };
	struct str path = { 0 };
	bool good = running_trace(word, &path, err);

	if (good) {
		const struct otlp_push_options options = {
			.path = str_get(&path),
			.symbols = pushing->query.print.symbols,
			.every_ns = (uint64_t)pushing->every_ns,
			.stop = interrupt_came,
			.say = say_line,
		};

		interrupt_watch();
		good = otlp_push_run(send, &options, &result, err);
		interrupt_leave();
	}
	if (good)
		printf("%s: %" PRIu64 " %s sent (%s)\n", str_get(&path), result.messages,
		       result.messages == 1 ? "message" : "messages", STR_BYTES(result.bytes));
	str_fini(&path);
	return good;
}

// One after the other: of a file that is being written it ends with the recording.
static bool profile_all(const struct pushing *pushing, struct err *err)
{
	const struct otlp_place place = {
		.url = pushing->place.url,
		.plain = pushing->compression != 0,
		.stop = interrupt_came,
	};
	struct otlp_send *send = otlp_send_new(&place, err);
	bool good = send != NULL;

	ASSERT(pushing->files_count > 0 && pushing->place.url);
	for (size_t i = 0; i < pushing->files_count && good; i++)
		// Like push_all, the first failure ends it.
		good = profile_operand(pushing, send, pushing->files[i], err);
	otlp_send_free(send);
	return good;
}

static bool take_option(struct args *args, int id, struct pushing *pushing)
{
	switch (id) {
	case ARGS_OPERAND:
		*MEM_ADD(pushing->files, pushing->files_count, pushing->files_capacity) =
			args->value;
		return true;
	case PUSH_TO:
		pushing->place.url = args->value;
		return clickhouse_is(args->value) || otlp_send_is(args->value) ||
		       args_mistake(args, "a place is clickhouse://HOST:PORT/DATABASE or "
					  "otlp://HOST:PORT");
	case PUSH_COMPRESSION:
		pushing->compression_given = true;
		return args_word(args, push_compressions, &pushing->compression);
	case PUSH_EVERY:
		return (moment_parse_duration(args->value, &pushing->every_ns) &&
			pushing->every_ns > 0) ||
		       args_mistake(args, "--every %s: a time such as 30s, 500ms or 5m expected",
				    args->value);
	case PUSH_TTL:
		return args_days(args, &pushing->keep_days);
	default:
		return query_options_take(args, &pushing->query, id) == PRINT_OPTIONS_TAKEN;
	}
}

// Whether the words fit together.
static bool check(struct args *args, const struct pushing *pushing)
{
	bool profiles = otlp_send_is(pushing->place.url);

	ASSERT(pushing->place.url);
	if (profiles && (pushing->cluster || pushing->keep_days || pushing->place.credentials))
		return args_mistake(args, "--cluster, --ttl and --credentials are for "
					  "clickhouse:// (headers for a collector come from "
					  "OTEL_EXPORTER_OTLP_HEADERS)");
	return !pushing->compression_given || profiles ||
	       args_mistake(args, "--compression is for otlp://");
}

static int answer(struct args *args, struct pushing *pushing)
{
	struct err err = { 0 };
	int id;

	while ((id = args_next(args)) != ARGS_END)
		if (!take_option(args, id, pushing))
			return args->exit_code;
	if (!args_need(args, pushing->files_count ? "" : NULL, "a trace FILE") ||
	    !args_need(args, pushing->place.url, "--to PLACE"))
		return args->exit_code;
	if (!check(args, pushing))
		return args->exit_code;
	// The place alone says which of the two ways it is: rows or profiles.
	return (otlp_send_is(pushing->place.url) ? profile_all : push_all)(pushing, &err)
		       ? EXIT_ANSWERED
		       : args_fail(&cmd_push, &err);
}

static int run(int argc, char **argv)
{
	struct pushing pushing = {
		.place = { .stop = interrupt_came },
		.every_ns = INT64_C(10) * SECOND_NS,
	};
	struct args args;
	int code;

	args_init(&args, &cmd_push, argc, argv);
	args.into = &pushing;
	code = answer(&args, &pushing);
	mem_free(pushing.files);
	query_options_fini(&pushing.query);
	return code;
}
