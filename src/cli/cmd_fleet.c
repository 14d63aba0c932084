// fleet: what many traces of a database say together.
//
// QUESTION is a row of a table (fleet_question.h) that knows its columns; this file only takes
// words, asks, and lays the cells out for people. For example `fleet trend PLACE --site
// Session::open`: the row "trend" with the wish site, what its function asks the database, and a
// line for each version.
#include "cli/print_options.h"

#include "base/mem.h"
#include "base/sink.h"
#include "cli/interrupt.h"
#include "report/ask/cxxname.h"
#include "report/table/paper.h"
#include "sql/fleet_question.h"

#include <inttypes.h>

enum { NAME_MAX = 60, GAP = 2 };

enum { FLEET_WISH = 1 };

// The question with its wishes, where it goes, and how the answer is shown.
struct asking {
	struct fleet_question asked;
	struct clickhouse_place place;
	struct print_options print;
};

static const struct option_row fleet_options[] = {
	{ FLEET_WISH, 0, "label", "NAME=VALUE", "only runs that say so; of several all" },
	{ FLEET_WISH, 0, "since", "TIME", "only runs that began in the last TIME (168h)" },
	{ FLEET_WISH, 0, "site", "FUNCTION", "trend: of this function, or of a site's number" },
	{ FLEET_WISH, 0, "before", "VERSION", "grew: since this version" },
	{ FLEET_WISH, 0, "after", "VERSION", "grew: up to this one (the last)" },
	{ FLEET_WISH, 0, "ago", "TIME", "grew: since what was the last version so long before" },
	{ FLEET_WISH, 0, "version-label", "NAME", "the label that is the version (version)" },
	{ FLEET_WISH, 0, "host-label", "NAME", "the label that is the host (host)" },
	{ ARGS_COUNT(asking, asked.wish.rows_max), 'n', "rows", "N",
	  "sites, grew, traces: at most so many rows (10); 0: all" },
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

// ---- for people ----

// A cell as people see it, cut; what is foreign in it may hold anything.
// The sheet is never written to: it lends its way of reading a row.
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

// Texts to the left and figures to the right; columns without a word are for programs. The last one
// is not filled up with blanks.
static void write_line(struct paper *paper, char *const *cells,
		       const struct fleet_question_row *question, const size_t *widths,
		       enum paper_style style)
{
	size_t last = question->count;

	ASSERT(question->columns != NULL && widths != NULL);
	while (last > 0 && !question->columns[last - 1].word)
		last--;
	// Widths are of what a terminal shows; printf would count bytes, so blanks are written by
	// themselves.
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

// Each cell is made before any is written, since widths are known only then. Widths are code
// points, not bytes.
static void write_text(struct paper *paper, const struct fleet_question_row *question,
		       const struct fleet_answer *answer)
{
	struct sheet sheet = { .form = &sheet_jsonl, .sink = paper->sink };
	size_t columns = question->count;
	char **cells = mem_alloc((answer->count + 1) * columns, sizeof *cells);
	size_t *widths = mem_alloc(columns, sizeof *widths);

	// Row 0 is the heads of columns. Columns without a word stay empty and zero wide.
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

// Which runs the answer is of, and what their figures lack. A comparison of two versions says how
// many runs each has.
static void write_head(struct paper *paper, const struct asking *asking,
		       const struct fleet_answer *answer)
{
	const struct fleet_runs *all = &answer->all;

	ASSERT(asking->asked.row);
	paper_format(paper, PAPER_BOLD, "%s", asking->asked.row->name);
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
	if (asking->asked.row->ask == fleet_hosts && answer->count > 0 &&
	    !answer->rows[0].score_known)
		paper_text(paper, PAPER_WARNING,
			   "  fewer than four hosts: none is called an "
			   "outlier\n");
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
		fleet_question_write_json(&asking->asked, &sink, answer);
	} else if (asking->print.form) {
		fleet_question_write_rows(&asking->asked, &sheet, answer);
	} else {
		write_head(&paper, asking, answer);
		write_text(&paper, asking->asked.row, answer);
	}
	return sink_ok(&sink, err);
}

// ---- the command ----

// A mistake in the words of a question is one of the command line.
static bool is_good(struct args *args, bool good, const struct err *err)
{
	return good || args_mistake(args, "%s", err->text);
}

// The question, then the place.
static bool take_operand(struct args *args, struct asking *asking)
{
	struct err err = { 0 };

	if (!asking->asked.row)
		// The first operand is the question, so a slip in it is found before any place is
		// looked at.
		return is_good(args, fleet_question_find(&asking->asked, args->value, &err), &err);
	if (!clickhouse_is(args->value))
		return args_mistake(args, "a place is clickhouse://HOST:PORT/DATABASE");
	return args_operand(args, &asking->place.url);
}

static bool take_option(struct args *args, int id, struct asking *asking)
{
	struct err err = { 0 };
	bool known;

	switch (id) {
	case ARGS_OPERAND:
		return take_operand(args, asking);
	case FLEET_WISH:
		return is_good(args,
			       fleet_question_take(&asking->asked, args->row->name, args->value,
						   &known, &err),
			       &err);
	default:
		return print_options_take(args, &asking->print, id) == PRINT_OPTIONS_TAKEN;
	}
}

// An option that the question cannot honour is refused.
static bool check(struct args *args, const struct asking *asking)
{
	struct err err = { 0 };

	return args_need(args, asking->asked.row ? "" : NULL, "a QUESTION") &&
	       args_need(args, asking->place.url, "a database: clickhouse://HOST:PORT/DATABASE") &&
	       is_good(args, fleet_question_check(&asking->asked, &err), &err);
}

static bool ask(const struct asking *asking, struct err *err)
{
	struct clickhouse *clickhouse = clickhouse_new(&asking->place, err);
	struct fleet_answer answer;
	bool good;

	ASSERT(asking->asked.row && asking->place.url);
	interrupt_watch();
	good = clickhouse && asking->asked.row->ask(clickhouse, &asking->asked.wish, &answer, err);
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
	};
	struct err err = { 0 };
	bool good = true;
	struct args args;
	int code, id;

	fleet_question_init(&asking.asked);
	args_init(&args, &cmd_fleet, argc, argv);
	args.into = &asking;
	while (good && (id = args_next(&args)) != ARGS_END)
		good = take_option(&args, id, &asking);
	if (!good || !check(&args, &asking))
		code = args.exit_code;
	else
		code = ask(&asking, &err) ? EXIT_ANSWERED : args_fail(&cmd_fleet, &err);
	fleet_question_fini(&asking.asked);
	return code;
}
