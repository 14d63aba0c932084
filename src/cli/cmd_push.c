// push: the rows of traces into a database of many.
#include "cli/query_options.h"

#include "base/mem.h"
#include "cli/interrupt.h"
#include "export/events.h"
#include "os/now.h"
#include "sql/push.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PUSH_TO = 1, PUSH_CREDENTIALS, PUSH_CLUSTER, PUSH_TTL };

enum { DAYS_MAX = 36500 };

static const struct option_row push_options[] = {
	{ PUSH_TO, 0, "to", "PLACE", "clickhouse://HOST:PORT/DATABASE; clickhouses:// with TLS" },
	{ PUSH_CREDENTIALS, 0, "credentials", "FILE",
	  "user and password, a line each; for its owner alone" },
	{ PUSH_CLUSTER, 0, "cluster", "NAME",
	  "spread over this cluster's shards: PLACE names a server of each, with commas" },
	{ PUSH_TTL, 0, "ttl", "TIME", "what is sent is gone after so many days (90d)" },
	PRINT_OPTIONS_ROW_PROGRESS,
	PRINT_OPTIONS_ROWS_SYMBOLS,
	{ 0 },
};

static int run(int argc, char **argv);

const struct command cmd_push = {
	.name = "push",
	.brief = "send traces to a database of many",
	.usage = "FILE… --to clickhouse://HOST:PORT/DATABASE",
	.text = "Sends the rows of each trace (docs/schema/rows.md) to ClickHouse, and makes the\n"
		"tables there. A push that broke off goes on where it was when it is run again;\n"
		"a trace that is there already is not sent again. All commands take\n"
		"clickhouse://HOST:PORT/DATABASE?trace=NUMBER in place of a file then.\n"
		"docs/howto/fleet.md has what to ask there.\n",
	.examples = "  tidemark push app.tide --to clickhouse://db.example:8123/memory\n"
		    "  tidemark push nightly/*.tide --to clickhouses://db.example/memory \\\n"
		    "      --credentials ~/.config/clickhouse\n",
	.notes = "Environment:\n"
		 "  TIDEMARK_CLICKHOUSE_USER, TIDEMARK_CLICKHOUSE_PASSWORD   who sends or asks\n"
		 "  TIDEMARK_CLICKHOUSE_CREDENTIALS   a file as for --credentials\n"
		 "  TIDEMARK_CLICKHOUSE_CA   clickhouses://: who vouches for the server (PEM)\n",
	.options = push_options,
	.run = run,
};

struct pushing {
	struct query_options query;
	const char **files;
	size_t files_count, files_capacity;
	struct clickhouse_place place;
	const char *cluster;
	unsigned keep_days; // 0: for good
};

static void say(void *context, const char *text)
{
	(void)context;
	fprintf(stderr, "tidemark push: %s\n", text);
}

static void print_rate(uint64_t rows, uint64_t ns)
{
	char count[28];

	if (rows == 0 || ns == 0)
		return;
	str_count((uint64_t)((double)rows * 1e9 / (double)ns), count);
	printf(", %.2f s, %s rows/s", (double)ns / 1e9, count);
}

static bool send_trace(const struct pushing *pushing, struct shards *shards,
		       struct export_source *source, const char *file, struct err *err)
{
	struct push_result result = { 0 };
	uint64_t begin_ns = now_steady_ns();
	char size[16];

	if (reader_growing(source->asked->reader))
		return err_set(err, ERR_IO, "%s is still being written: send it when it has ended",
			       file);
	if (!events_prepare(source->asked, err) ||
	    !push_trace(shards, source, pushing->keep_days, &result, err))
		return false;
	printf("%s: %" PRIu64 " rows sent (%s", file, result.rows_sent,
	       str_bytes(result.bytes_sent, size));
	print_rate(result.rows_sent, now_steady_ns() - begin_ns);
	printf(")");
	if (result.rows_known)
		printf(", %" PRIu64 " were there already", result.rows_known);
	printf("\n");
	query_context_caution(source->asked);
	query_options_warn(&cmd_push, source->asked, file);
	return true;
}

static bool push_file(const struct pushing *pushing, struct shards *shards, const char *file,
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

static bool push_all(const struct pushing *pushing, struct err *err)
{
	struct shards *shards = shards_new(&pushing->place, pushing->cluster, err);
	bool ages = true;
	bool good = shards && tables_make(shards, &ages, err);

	if (good && pushing->keep_days && !ages)
		fprintf(stderr,
			"tidemark push: this ClickHouse has no TTL: after %u days this is not seen,"
			" but you must delete it (docs/howto/fleet.md)\n",
			pushing->keep_days);
	for (size_t i = 0; i < pushing->files_count && good; i++)
		good = push_file(pushing, shards, pushing->files[i], err);
	shards_free(shards);
	return good;
}

static bool take_days(struct args *args, unsigned *days)
{
	char *end;
	unsigned long value = strtoul(args->value, &end, 10);

	if (value == 0 || value > DAYS_MAX || strcmp(end, "d") != 0 || !isdigit(args->value[0]))
		return args_mistake(args, "--ttl %s: a number of days such as 90d expected",
				    args->value);
	*days = (unsigned)value;
	return true;
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
		return clickhouse_is(args->value) ||
		       args_mistake(args, "a place is clickhouse://HOST:PORT/DATABASE");
	case PUSH_CREDENTIALS:
		pushing->place.credentials = args->value;
		return true;
	case PUSH_CLUSTER:
		pushing->cluster = args->value;
		return true;
	case PUSH_TTL:
		return take_days(args, &pushing->keep_days);
	default:
		return query_options_take(args, &pushing->query, id) == PRINT_OPTIONS_TAKEN;
	}
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
	return push_all(pushing, &err) ? EXIT_ANSWERED : args_fail(&cmd_push, &err);
}

static int run(int argc, char **argv)
{
	struct pushing pushing = { .place = { .stop = interrupt_came } };
	struct args args;
	int code;

	args_init(&args, &cmd_push, argc, argv);
	code = answer(&args, &pushing);
	mem_free(pushing.files);
	query_options_fini(&pushing.query);
	return code;
}
