// sql: questions in SQL about traces, by DuckDB.
//
// For example `sql monday.tide friday.tide 'SELECT …'`: each trace becomes a folder of Parquet
// files in a folder of ours, T/0 and T/1, views over both have the tables' names, DuckDB answers,
// and the folders are removed. A folder that the user has exported before is used as it is, which
// saves the first step.
#include "cli/query_options.h"

#include "cli/rowset_folder.h"
#include "export/events.h"
#include "os/file.h"
#include "os/tool.h"
#include "sql/sql_answer.h"
#include "trace/fresh.h"

#include "base/mem.h"

// `folders` has words_count - 1 of them: one each, owned, in the order of the files. Those of
// traces are in `temporary`.
struct sql {
	struct query_options query;
	const char **words; // files, then the question
	size_t words_count, words_capacity;
	bool parquet;
	struct str temporary; // the folder of ours
	char **folders;       // of each file
};

static const struct option_row sql_options[] = {
	{ PRINT_OPTIONS_CSV, 0, "csv", NULL, "write comma-separated values" },
	{ PRINT_OPTIONS_JSON, 0, "json", NULL, "write JSON: a list of objects" },
	{ ARGS_FLAG(sql, parquet), 0, "parquet", NULL, "write a Parquet file (with -o)" },
	{ QUERY_OPTIONS_OUTPUT, 'o', "output", "FILE", "write to FILE, not to stdout" },
	{ QUERY_OPTIONS_FORCE, 'f', "force", NULL, "overwrite FILE" },
	PRINT_OPTIONS_ROW_PROGRESS,
	PRINT_OPTIONS_ROWS_SYMBOLS,
	{ 0 },
};

static int run(int argc, char **argv);

const struct command cmd_sql = {
	.name = "sql",
	.brief = "ask traces in SQL, by DuckDB",
	.usage = "FILE… 'SELECT …' [options]",
	.text = "FILE is a trace, or a folder that `tidemark export --format parquet` has\n"
		"written; of several the rows are in the same tables. The tables are allocations,\n"
		"stacks, frames, processes, threads, modules, marks, rss and runs\n"
		"(docs/schema/rows.md); docs/howto/ask-in-sql.md has questions to begin with.\n"
		"\n"
		"Needs DuckDB's library: TIDEMARK_DUCKDB is its path, where the system does not\n"
		"find it by itself.\n",
	.examples = "  tidemark sql app.tide 'SELECT count(*), sum(size) FROM allocations'\n"
		    "  tidemark sql app.tide 'DESCRIBE allocations'\n"
		    "  tidemark sql monday.tide friday.tide --csv 'SELECT trace, sum(size)\n"
		    "      FROM allocations GROUP BY trace'\n"
		    "  tidemark export app.tide --format parquet -o app.rows   # once, and then\n"
		    "  tidemark sql app.rows 'SELECT …'                        # many times\n",
	.options = sql_options,
	.run = run,
};

// ---- traces to tables ----

static void say(void *, const char *text)
{
	fprintf(stderr, "tidemark sql: %s\n", text);
}

// The tables of one trace, which are gone when the answer is there.
static bool make_rows(struct sql *sql, const char *trace, const char *folder, struct err *err)
{
	struct query_context_options options =
		query_options_context(&cmd_sql, &sql->query, &query_context_events_rules);
	struct query_context asked;
	struct export_source source = { .asked = &asked, .say = say };
	// The row `trace` of the tables says which file a row is of, so one question may compare
	// several.
	bool good;

	options.path = trace;
	if (!query_options_open(&options, &asked, err))
		return false;
	good = events_prepare(&asked, err) && rowset_folder_write(&source, folder, false, err);
	if (good) {
		query_context_caution(&asked, true);
		query_options_warn(&cmd_sql, &asked, sql->words_count > 2 ? trace : NULL);
	}
	query_context_close(&asked);
	return good;
}

// A folder of tables, which export has made before, is taken as it is. Those of a trace are made in
// a temporary folder, under the trace's number.
static bool make_folders(struct sql *sql, struct err *err)
{
	struct str folder = { 0 };
	size_t count = sql->words_count - 1;
	bool good = tool_folder(&sql->temporary, err);

	ASSERT(sql->words_count > 1 && !sql->folders);
	sql->folders = mem_alloc(count, sizeof *sql->folders);
	for (size_t i = 0; i < count && good; i++) {
		str_clear(&folder);
		if (file_look(sql->words[i]) == FILE_IS_FOLDER) {
			str_add(&folder, sql->words[i]);
		} else {
			str_format(&folder, "%s/%zu", sql->temporary.text, i);
			good = make_rows(sql, sql->words[i], folder.text, err);
		}
		sql->folders[i] = mem_copy_text(folder.text);
	}
	str_fini(&folder);
	return good;
}

// Ours alone: a folder that the user named is not in `temporary`.
static void remove_folders(struct sql *sql)
{
	// Called also after a mistake in the words: then there is no folder, and nothing in the
	// lists.
	struct str folder = { 0 };

	for (size_t i = 0; sql->temporary.length && i + 1 < sql->words_count; i++) {
		str_clear(&folder);
		str_format(&folder, "%s/%zu", sql->temporary.text, i);
		rowset_folder_remove(folder.text);
		mem_free(sql->folders[i]);
	}
	tool_folder_leave(&sql->temporary);
	str_fini(&folder);
	mem_free(sql->folders);
}

// ---- the answer ----

struct writing {
	struct duckdb *duckdb;
	const char *question;
	enum sql_answer_as as;
};

static bool write_answer(void *context, struct sink *sink, struct err *err)
{
	struct writing *writing = context;

	return sql_answer_write(writing->duckdb, writing->question, writing->as, sink, err);
}

// DuckDB writes to a path by itself, so it gets the temporary one, which is renamed when it is
// whole.
static bool write_parquet(const struct sql *sql, struct duckdb *duckdb, const char *question,
			  struct err *err)
{
	struct fresh fresh = { .fd = -1 };
	bool good = fresh_open(&fresh, sql->query.output, sql->query.force, err) &&
		    sql_answer_parquet(
			    duckdb, question,
			    fresh.temporary.length ? fresh.temporary.text : fresh.path.text, err) &&
		    fresh_keep(&fresh, err);

	ASSERT(sql->query.output);
	fresh_close(&fresh);
	return good;
}

// DuckDB is kept from fetching extensions over the network by itself.
static bool ask(struct sql *sql, struct duckdb *duckdb, struct err *err)
{
	const char *question = sql->words[sql->words_count - 1];
	struct writing writing = {
		.duckdb = duckdb,
		.question = question,
		.as = sql->query.print.form   ? SQL_ANSWER_CSV
		      : sql->query.print.json ? SQL_ANSWER_JSON
					      : SQL_ANSWER_TABLE,
	};

	ASSERT(sql->words_count > 1);
	// In this order: a database that cannot be opened fails before any trace is read; views
	// come after the files that they look at.
	if (!duckdb_run(duckdb, "SET autoinstall_known_extensions = false", err) ||
	    !make_folders(sql, err) ||
	    !sql_answer_views(duckdb, (const char *const *)sql->folders, sql->words_count - 1, err))
		return false;
	return sql->parquet ? write_parquet(sql, duckdb, question, err)
			    : query_options_write(&sql->query, write_answer, &writing, err);
}

// ---- the command line ----

static bool take_option(struct args *args, int id, struct sql *sql)
{
	if (id != ARGS_OPERAND)
		return query_options_take(args, &sql->query, id) == PRINT_OPTIONS_TAKEN;
	*MEM_ADD(sql->words, sql->words_count, sql->words_capacity) = args->value;
	return true;
}

// `form` is one of the sheets, such as --csv; JSON and Parquet are none.
static bool check(struct args *args, const struct sql *sql)
{
	const struct query_options *query = &sql->query;

	if (!args_need(args, sql->words_count > 0 ? "" : NULL, "a trace FILE") ||
	    !args_need(args, sql->words_count > 1 ? "" : NULL, "a question"))
		return false;
	if (!!query->print.form + query->print.json + sql->parquet > 1)
		return args_mistake(args, "--csv, --json and --parquet: one of them");
	if (sql->parquet && !query->output)
		return args_mistake(args, "--parquet needs -o FILE");
	return true;
}

static int answer(struct args *args, struct sql *sql)
{
	struct duckdb *duckdb;
	struct err err = { 0 };
	bool good;
	int id;

	while ((id = args_next(args)) != ARGS_END)
		if (!take_option(args, id, sql))
			return args->exit_code;
	if (!check(args, sql))
		return args->exit_code;
	if (!query_options_can_write(&sql->query, &err))
		return args_fail(&cmd_sql, &err);
	duckdb = duckdb_new(&err);
	good = duckdb && ask(sql, duckdb, &err);
	duckdb_free(duckdb);
	return good ? EXIT_ANSWERED : args_fail(&cmd_sql, &err);
}

static int run(int argc, char **argv)
{
	struct sql sql = { 0 };
	struct args args;
	int code;

	args_init(&args, &cmd_sql, argc, argv);
	args.into = &sql;
	code = answer(&args, &sql);
	remove_folders(&sql);
	mem_free(sql.words);
	query_options_fini(&sql.query);
	return code;
}
