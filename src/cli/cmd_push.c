// push: the rows of traces into a database of many.
#include "cli/query_options.h"

#include "base/mem.h"
#include "cli/interrupt.h"
#include "export/events.h"
#include "sql/push.h"

#include <inttypes.h>

enum { PUSH_TO = 1, PUSH_CREDENTIALS };

static const struct option_row push_options[] = {
	{ PUSH_TO, 0, "to", "PLACE", "clickhouse://HOST:PORT/DATABASE; clickhouses:// with TLS" },
	{ PUSH_CREDENTIALS, 0, "credentials", "FILE",
	  "user and password, a line each; for its owner alone" },
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
		 "  TIDEMARK_CLICKHOUSE_CREDENTIALS   a file as for --credentials\n",
	.options = push_options,
	.run = run,
};

struct pushing {
	struct query_options query;
	const char **files;
	size_t files_count, files_capacity;
	struct clickhouse_place place;
};

static void say(void *context, const char *text)
{
	(void)context;
	fprintf(stderr, "tidemark push: %s\n", text);
}

static bool send_trace(struct clickhouse *clickhouse, struct export_source *source,
		       const char *file, struct err *err)
{
	struct push_result result = { 0 };
	char size[16];

	if (reader_growing(source->asked->reader))
		return err_set(err, ERR_IO, "%s is still being written: send it when it has ended",
			       file);
	if (!events_prepare(source->asked, err) || !push_trace(clickhouse, source, &result, err))
		return false;
	printf("%s: %" PRIu64 " rows sent (%s)", file, result.rows_sent,
	       str_bytes(result.bytes_sent, size));
	if (result.rows_known)
		printf(", %" PRIu64 " were there already", result.rows_known);
	printf("\n");
	query_context_caution(source->asked);
	query_options_warn(&cmd_push, source->asked, file);
	return true;
}

static bool push_file(const struct pushing *pushing, struct clickhouse *clickhouse,
		      const char *file, struct err *err)
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
	good = send_trace(clickhouse, &source, file, err);
	interrupt_leave();
	query_context_close(&asked);
	return good;
}

static bool push_all(const struct pushing *pushing, struct err *err)
{
	struct clickhouse *clickhouse = clickhouse_new(&pushing->place, err);
	bool good = clickhouse && tables_make(clickhouse, err);

	for (size_t i = 0; i < pushing->files_count && good; i++)
		good = push_file(pushing, clickhouse, pushing->files[i], err);
	clickhouse_free(clickhouse);
	return good;
}

static bool take_option(struct args *args, int id, struct pushing *pushing)
{
	switch (id) {
	case ARGS_OPERAND:
		pushing->files = mem_grow(pushing->files, &pushing->files_capacity,
					  pushing->files_count + 1, sizeof *pushing->files);
		pushing->files[pushing->files_count++] = args->value;
		return true;
	case PUSH_TO:
		pushing->place.url = args->value;
		return clickhouse_is(args->value) ||
		       args_mistake(args, "a place is clickhouse://HOST:PORT/DATABASE");
	case PUSH_CREDENTIALS:
		pushing->place.credentials = args->value;
		return true;
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
