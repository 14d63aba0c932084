// fleet: what many traces of a database say together.
#include "cli/print_options.h"

#include "base/mem.h"
#include "base/sink.h"
#include "cli/interrupt.h"
#include "engine/moment.h"
#include "os/now.h"
#include "report/ask/cxxname.h"
#include "report/table/paper.h"
#include "sql/fleet.h"
#include "trace/label.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

enum { ROWS_DEFAULT = 10, NAME_MAX = 60, GAP = 2 };

enum {
	FLEET_LABEL = 1,
	FLEET_SINCE,
	FLEET_AGO,
};

struct asking {
	const struct question *question;
	struct clickhouse_place place;
	struct fleet_wish wish;
	const char **labels;
	size_t labels_capacity;
	struct print_options print;
};

static const struct option_row fleet_options[] = {
	{ FLEET_LABEL, 0, "label", "NAME=VALUE", "only runs that say so; of several all" },
	{ FLEET_SINCE, 0, "since", "TIME", "only runs that began in the last TIME (168h)" },
	{ ARGS_TEXT(asking, wish.site), 0, "site", "FUNCTION",
	  "trend: of this function, or of a site's number" },
	{ ARGS_TEXT(asking, wish.before), 0, "before", "VERSION", "grew: since this version" },
	{ ARGS_TEXT(asking, wish.after), 0, "after", "VERSION", "grew: up to this one (the last)" },
	{ FLEET_AGO, 0, "ago", "TIME", "grew: since what was the last version so long before" },
	{ ARGS_TEXT(asking, wish.version), 0, "version-label", "NAME",
	  "the label that is the version (version)" },
	{ ARGS_TEXT(asking, wish.host), 0, "host-label", "NAME",
	  "the label that is the host (host)" },
	{ ARGS_COUNT(asking, wish.rows_max), 'n', "rows", "N",
	  "at most so many rows (10); 0: all" },
	{ ARGS_TEXT(asking, place.credentials), 0, "credentials", "FILE",
	  "user and password, a line each; for its owner alone" },
	PRINT_OPTIONS_ROW_JSON("fleet.json"),
	{ PRINT_OPTIONS_CSV, 0, "csv", NULL, "write one table of comma-separated values" },
	{ PRINT_OPTIONS_JSONL, 0, "jsonl", NULL, "write JSON, a line for each row" },
	{ PRINT_OPTIONS_COLOR, 0, "color", "WHEN", "auto, always or never" },
	{ 0 },
};

static int run(int argc, char **argv);

const struct command cmd_fleet = {
	.name = "fleet",
	.brief = "ask many traces in a database what no single one says",
	.usage = "QUESTION clickhouse://HOST:PORT/DATABASE [options]",
	.text = "QUESTION is one of\n"
		"  sites   which sites held most: bytes times seconds, over all runs\n"
		"  grew    which sites hold more than in an earlier version, and how sure that is\n"
		"  hosts   what runs of each host hold, and which hosts are not like the others\n"
		"  trend   what runs of each version hold, or --site of them\n"
		"  traces  which runs there are\n"
		"A run is a trace that was pushed; its labels (record --label) say version and\n"
		"host. Its level is the mean of the bytes that lived in it.\n",
	.examples = "  tidemark fleet grew clickhouse://db.example/memory --ago 168h\n"
		    "  tidemark fleet sites clickhouse://db.example/memory --label branch=main\n"
		    "  tidemark fleet trend clickhouse://db.example/memory --site Session::open\n",
	.notes = "Environment\n"
		 "  TIDEMARK_CLICKHOUSE_USER, TIDEMARK_CLICKHOUSE_PASSWORD   who asks\n"
		 "  TIDEMARK_CLICKHOUSE_CREDENTIALS   a file as for --credentials\n"
		 "  TIDEMARK_CLICKHOUSE_CA   clickhouses://: who vouches for the server (PEM)\n",
	.options = fleet_options,
	.takes_places = true,
	.run = run,
};

// ---- columns ----

// A double as a whole number of bytes or blocks; signed where the column is.
static struct sheet_cell whole(const struct sheet_at *at)
{
	double value = *(const double *)((const char *)at->row + at->column->at);

	if (at->column->flags & SHEET_SIGNED)
		return (struct sheet_cell){ .i64 = (int64_t)(value < 0 ? value - 0.5
								       : value + 0.5) };
	return sheet_u64(true, value > 0 ? (uint64_t)(value + 0.5) : 0);
}

static struct sheet_cell text(const struct sheet_at *at)
{
	return sheet_text(*(const char *const *)((const char *)at->row + at->column->at));
}

static struct sheet_cell change(const struct sheet_at *at)
{
	const struct fleet_row *row = at->row;
	double value = row->level - row->before;

	return (struct sheet_cell){ .i64 = (int64_t)(value < 0 ? value - 0.5 : value + 0.5) };
}

static struct sheet_cell spread(const struct sheet_at *at)
{
	const struct fleet_row *row = at->row;

	return sheet_u64(row->spread_known, (uint64_t)(row->spread + 0.5));
}

static struct sheet_cell score(const struct sheet_at *at)
{
	const struct fleet_row *row = at->row;

	return (struct sheet_cell){ .unknown = !row->score_known, .real = row->score };
}

static struct sheet_cell verdict(const struct sheet_at *at)
{
	const struct fleet_row *row = at->row;

	if (at->column->at)
		return sheet_text(!row->spread_known ? "one run" : row->outside ? "yes" : "no");
	return sheet_text(!row->score_known ? "too few" : row->outside ? "yes" : "no");
}

#define TEXT(member) text, offsetof(struct fleet_row, member)
#define WHOLE(member) whole, offsetof(struct fleet_row, member)
#define FIELD(member) SHEET_FIELD(struct fleet_row, member)

static const struct sheet_column sites_columns[] = {
	{ "byte_seconds", SHEET_BYTES, 0, WHOLE(byte_seconds), .word = "byte-seconds" },
	{ "share", SHEET_REAL, SHEET_PROGRAMS, FIELD(share), .word = NULL },
	{ "level_bytes", SHEET_BYTES, 0, WHOLE(level), .word = "level" },
	{ "level_most_bytes", SHEET_BYTES, 0, WHOLE(most), .word = "most" },
	{ "kept_bytes", SHEET_BYTES, 0, WHOLE(kept_bytes), .word = "kept" },
	{ "allocated_bytes", SHEET_BYTES, SHEET_PROGRAMS, WHOLE(bytes), .word = NULL },
	{ "allocated_count", SHEET_COUNT, 0, WHOLE(count), .word = "blocks" },
	{ "runs", SHEET_COUNT, 0, FIELD(runs), .word = "runs" },
	{ "hosts", SHEET_COUNT, 0, FIELD(hosts), .word = "hosts" },
	{ "function", SHEET_TEXT, 0, TEXT(name), .word = "site" },
	{ "module", SHEET_TEXT, SHEET_PROGRAMS, TEXT(module), .word = NULL },
	{ "site", SHEET_NUMBER, SHEET_PROGRAMS, FIELD(site), .word = NULL },
};

static const struct sheet_column grew_columns[] = {
	{ "change_bytes", SHEET_BYTES, SHEET_CHANGE, change, 0, .word = "change" },
	{ "spread_bytes", SHEET_BYTES, 0, spread, 0, .word = "±" },
	{ "sure", SHEET_TEXT, 0, verdict, 1, .word = "sure" },
	{ "before_bytes", SHEET_BYTES, 0, WHOLE(before), .word = "before" },
	{ "after_bytes", SHEET_BYTES, 0, WHOLE(level), .word = "after" },
	{ "hosts", SHEET_COUNT, 0, FIELD(hosts), .word = "hosts" },
	{ "function", SHEET_TEXT, 0, TEXT(name), .word = "site" },
	{ "module", SHEET_TEXT, SHEET_PROGRAMS, TEXT(module), .word = NULL },
	{ "site", SHEET_NUMBER, SHEET_PROGRAMS, FIELD(site), .word = NULL },
};

static const struct sheet_column hosts_columns[] = {
	{ "level_bytes", SHEET_BYTES, 0, WHOLE(level), .word = "level" },
	{ "least_bytes", SHEET_BYTES, 0, WHOLE(least), .word = "least" },
	{ "most_bytes", SHEET_BYTES, 0, WHOLE(most), .word = "most" },
	{ "kept_bytes", SHEET_BYTES, 0, WHOLE(kept_bytes), .word = "kept" },
	{ "runs", SHEET_COUNT, 0, FIELD(runs), .word = "runs" },
	{ "score", SHEET_REAL, 0, score, 0, .word = "score" },
	{ "outlier", SHEET_TEXT, 0, verdict, 0, .word = "outlier" },
	{ "host", SHEET_TEXT, 0, TEXT(name), .word = "host" },
	{ "most_above", SHEET_TEXT, 0, TEXT(why), .word = "by" },
};

static const struct sheet_column trend_columns[] = {
	{ "level_bytes", SHEET_BYTES, 0, WHOLE(level), .word = "level" },
	{ "spread_bytes", SHEET_BYTES, 0, spread, 0, .word = "±" },
	{ "least_bytes", SHEET_BYTES, 0, WHOLE(least), .word = "least" },
	{ "most_bytes", SHEET_BYTES, 0, WHOLE(most), .word = "most" },
	{ "runs", SHEET_COUNT, 0, FIELD(runs), .word = "runs" },
	{ "hosts", SHEET_COUNT, 0, FIELD(hosts), .word = "hosts" },
	{ "began_unix_ns", SHEET_NUMBER, SHEET_PROGRAMS, FIELD(began_unix_ns), .word = NULL },
	{ "version", SHEET_TEXT, 0, TEXT(name), .word = "version" },
};

static struct sheet_cell began(const struct sheet_at *at)
{
	const struct fleet_row *row = at->row;
	static char date[24];
	struct tm tm;

	if (!str_date(row->began_unix_ns / 1000000000, &tm) ||
	    strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &tm) == 0)
		return sheet_text(NULL);
	return sheet_text(date);
}

static const struct sheet_column traces_columns[] = {
	{ "trace", SHEET_TEXT, 0, TEXT(name), .word = "trace" },
	{ "began", SHEET_TEXT, 0, began, 0, .word = "began (UTC)" },
	{ "began_unix_ns", SHEET_NUMBER, SHEET_PROGRAMS, FIELD(began_unix_ns), .word = NULL },
	{ "seconds", SHEET_REAL, 0, FIELD(seconds), .word = "seconds" },
	{ "version", SHEET_TEXT, 0, TEXT(version), .word = "version" },
	{ "host", SHEET_TEXT, 0, TEXT(host), .word = "host" },
	{ "command", SHEET_TEXT, 0, TEXT(command), .word = "command" },
};

// ---- questions ----

#define COLUMNS(list) list, sizeof list / sizeof *list

static const struct question {
	const char *name;
	fleet_question *ask;
	const struct sheet_column *columns;
	size_t count;
	bool versions, site; // has --before, --after and --ago; --site
} questions[] = {
	{ "sites", fleet_sites, COLUMNS(sites_columns), .site = false },
	{ "grew", fleet_grew, COLUMNS(grew_columns), .versions = true },
	{ "hosts", fleet_hosts, COLUMNS(hosts_columns), .site = false },
	{ "trend", fleet_trend, COLUMNS(trend_columns), .site = true },
	{ "traces", fleet_traces, COLUMNS(traces_columns), .site = false },
	{ 0 },
};

// ---- for people ----

// A cell as people see it, cut; what is foreign in it may hold anything.
static void add_cell(const struct sheet_column *column, struct sheet *sheet, const void *row,
		     struct str *out)
{
	struct sheet_cell cell = sheet_get(sheet, row, column);
	struct sink sink = sink_to_str(out);
	struct paper paper = { .sink = &sink };

	if (cell.unknown)
		str_add(out, "-");
	else if (column->kind == SHEET_TEXT)
		paper_foreign(&paper, PAPER_PLAIN, cell.text, NAME_MAX);
	else if (column->kind == SHEET_REAL)
		str_format(out, "%.2f", cell.real);
	else
		sheet_add_figure(column, &cell, "-", out);
}

static void write_line(struct paper *paper, char *const *cells, const struct question *question,
		       const size_t *widths, enum paper_style style)
{
	size_t last = question->count;

	while (last > 0 && !question->columns[last - 1].word)
		last--;
	for (size_t i = 0; i < last; i++) {
		bool left = question->columns[i].kind == SHEET_TEXT;
		size_t used = cxxname_columns(cells[i]);

		if (!question->columns[i].word)
			continue;
		sink_format(paper->sink, "%*s", GAP, "");
		if (!left)
			sink_format(paper->sink, "%*s", (int)(widths[i] - used), "");
		paper_text(paper, style, cells[i]);
		if (left && i + 1 < last)
			sink_format(paper->sink, "%*s", (int)(widths[i] - used), "");
	}
	sink_text(paper->sink, "\n");
}

static void write_text(struct paper *paper, const struct question *question,
		       const struct fleet_answer *answer)
{
	struct sheet sheet = { .form = &sheet_jsonl, .sink = paper->sink };
	size_t columns = question->count;
	char **cells = mem_alloc((answer->count + 1) * columns, sizeof *cells);
	size_t *widths = mem_alloc(columns, sizeof *widths);

	for (size_t row = 0; row <= answer->count; row++)
		for (size_t i = 0; i < columns; i++) {
			const struct sheet_column *column = &question->columns[i];
			struct str cell = { 0 };
			size_t used;

			if (row == 0)
				str_add(&cell, column->word ? column->word : "");
			else if (column->word)
				add_cell(column, &sheet, &answer->rows[row - 1], &cell);
			str_add(&cell, "");
			used = cxxname_columns(str_get(&cell));
			widths[i] = used > widths[i] ? used : widths[i];
			cells[row * columns + i] = cell.text ? str_take(&cell) : mem_copy_text("");
		}
	for (size_t row = 0; row <= answer->count; row++)
		write_line(paper, cells + row * columns, question, widths,
			   row ? PAPER_PLAIN : PAPER_DIM);
	for (size_t i = 0; i < (answer->count + 1) * columns; i++)
		mem_free(cells[i]);
	MEM_FREE(cells, widths);
}

static void write_head(struct paper *paper, const struct asking *asking,
		       const struct fleet_answer *answer)
{
	const struct fleet_runs *all = &answer->all;

	paper_format(paper, PAPER_BOLD, "%s", asking->question->name);
	paper_format(paper, PAPER_PLAIN, "  %" PRIu64 " run%s", all->runs, paper_plural(all->runs));
	if (answer->before) {
		sink_text(paper->sink, "; from ");
		paper_foreign(paper, PAPER_PLAIN, answer->before, NAME_MAX);
		sink_format(paper->sink, " (%" PRIu64 ") to ", answer->runs_before);
		paper_foreign(paper, PAPER_PLAIN, answer->after, NAME_MAX);
		sink_format(paper->sink, " (%" PRIu64 ")", answer->runs_after);
	}
	sink_text(paper->sink, "\n");
	if (all->sampled)
		paper_format(paper, PAPER_WARNING,
			     "  %" PRIu64 " of the runs were sampled: what "
			     "they add is an estimate\n",
			     all->sampled);
	if (all->incomplete)
		paper_format(paper, PAPER_WARNING,
			     "  %" PRIu64 " of the runs are not complete: what is missing there is "
			     "in no figure\n",
			     all->incomplete);
	if (asking->question->ask == fleet_hosts && answer->count > 0 &&
	    !answer->rows[0].score_known)
		paper_text(paper, PAPER_WARNING,
			   "  fewer than four hosts: none is called an "
			   "outlier\n");
}

// ---- for programs ----

static void write_rows(struct sheet *sheet, const struct question *question,
		       const struct fleet_answer *answer)
{
	sheet_begin(sheet, question->columns, question->count);
	for (size_t i = 0; i < answer->count; i++)
		sheet_row(sheet, &answer->rows[i]);
	sheet_end(sheet);
}

static void write_json(struct sink *sink, const struct asking *asking,
		       const struct fleet_answer *answer)
{
	struct sheet sheet;
	struct json json;

	json_begin(&json, sink, true, "tidemark-fleet-1");
	json_kv_string(&json, "question", asking->question->name);
	json_kv_u64(&json, "runs", answer->all.runs);
	json_kv_u64(&json, "runs_sampled", answer->all.sampled);
	json_kv_u64(&json, "runs_incomplete", answer->all.incomplete);
	json_kv_string(&json, "before", answer->before);
	json_kv_string(&json, "after", answer->after);
	json_kv_u64_if(&json, "runs_before", answer->before != NULL, answer->runs_before);
	json_kv_u64_if(&json, "runs_after", answer->after != NULL, answer->runs_after);
	json_kv_array(&json, "rows");
	sheet = sheet_in_json(&json);
	write_rows(&sheet, asking->question, answer);
	json_array_end(&json);
	json_end(&json);
}

static bool write_answer(const struct asking *asking, const struct fleet_answer *answer,
			 struct err *err)
{
	struct sink sink = sink_to_file(stdout);
	struct sheet sheet = { .form = asking->print.form, .sink = &sink };
	struct paper paper = {
		.sink = &sink,
		.width = print_options_width(),
		.colour = print_options_colour(&asking->print),
	};

	if (asking->print.json) {
		write_json(&sink, asking, answer);
	} else if (asking->print.form) {
		write_rows(&sheet, asking->question, answer);
	} else {
		write_head(&paper, asking, answer);
		write_text(&paper, asking->question, answer);
	}
	return sink_ok(&sink, err);
}

// ---- the command ----

static bool take_question(struct args *args, struct asking *asking)
{
	const char *names[sizeof questions / sizeof *questions] = { NULL };
	const char *nearest;

	for (size_t i = 0; questions[i].name; i++) {
		names[i] = questions[i].name;
		if (strcmp(names[i], args->value) == 0)
			asking->question = &questions[i];
	}
	if (asking->question)
		return true;
	nearest = str_nearest(args->value, names);
	return args_mistake(args, "'%s' is not a question: sites, grew, hosts, trend or traces%s%s",
			    args->value, nearest ? "; did you mean " : "", nearest ? nearest : "");
}

static bool take_operand(struct args *args, struct asking *asking)
{
	if (!asking->question)
		return take_question(args, asking);
	if (!clickhouse_is(args->value))
		return args_mistake(args, "a place is clickhouse://HOST:PORT/DATABASE");
	return args_operand(args, &asking->place.url);
}

static bool take_label(struct args *args, struct asking *asking)
{
	const char *wrong = label_wrong(args->value);

	*MEM_ADD(asking->labels, asking->wish.labels_count, asking->labels_capacity) = args->value;
	asking->wish.labels = asking->labels;
	return !wrong || args_mistake(args, "--label %s: %s", args->value, wrong);
}

static bool take_time(struct args *args, uint64_t *ns)
{
	int64_t duration_ns;

	if (!moment_parse_duration(args->value, &duration_ns) || duration_ns <= 0)
		return args_mistake(args, "--%s %s: a time such as 30m or 168h expected",
				    args->row->name, args->value);
	*ns = (uint64_t)duration_ns;
	return true;
}

static bool take_option(struct args *args, int id, struct asking *asking)
{
	struct fleet_wish *wish = &asking->wish;
	uint64_t ns = 0, now_ns = now_wall_ns();

	switch (id) {
	case ARGS_OPERAND:
		return take_operand(args, asking);
	case FLEET_LABEL:
		return take_label(args, asking);
	case FLEET_SINCE:
		if (!take_time(args, &ns))
			return false;
		wish->since_unix_ns = now_ns > ns ? now_ns - ns : 0;
		return true;
	case FLEET_AGO:
		return take_time(args, &wish->ago_ns);
	default:
		return print_options_take(args, &asking->print, id) == PRINT_OPTIONS_TAKEN;
	}
}

// An option that the question cannot honour is refused.
static bool check(struct args *args, const struct asking *asking)
{
	const struct fleet_wish *wish = &asking->wish;

	if (!args_need(args, asking->question ? "" : NULL, "a QUESTION") ||
	    !args_need(args, asking->place.url, "a database: clickhouse://HOST:PORT/DATABASE"))
		return false;
	if (wish->site && !asking->question->site)
		return args_mistake(args, "--site is for trend");
	if ((wish->before || wish->after || wish->ago_ns) && !asking->question->versions)
		return args_mistake(args, "--before, --after and --ago are for grew");
	if (wish->before && wish->ago_ns)
		return args_mistake(args, "--before or --ago, not both");
	return true;
}

static bool ask(const struct asking *asking, struct err *err)
{
	struct clickhouse *clickhouse = clickhouse_new(&asking->place, err);
	struct fleet_answer answer;
	bool good;

	interrupt_watch();
	good = clickhouse && asking->question->ask(clickhouse, &asking->wish, &answer, err);
	interrupt_leave();
	clickhouse_free(clickhouse);
	if (!good)
		return false;
	good = write_answer(asking, &answer, err);
	fleet_answer_fini(&answer);
	return good;
}

static int run(int argc, char **argv)
{
	struct asking asking = {
		.place = { .tries = 3, .stop = interrupt_came },
		.wish = { .version = "version", .host = "host", .rows_max = ROWS_DEFAULT },
	};
	struct err err = { 0 };
	bool good = true;
	struct args args;
	int code, id;

	args_init(&args, &cmd_fleet, argc, argv);
	args.into = &asking;
	while (good && (id = args_next(&args)) != ARGS_END)
		good = take_option(&args, id, &asking);
	if (!good || !check(&args, &asking))
		code = args.exit_code;
	else
		code = ask(&asking, &err) ? EXIT_ANSWERED : args_fail(&cmd_fleet, &err);
	mem_free(asking.labels);
	return code;
}
