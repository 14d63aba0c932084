// symbols: where the names of each module come from, and what is missing.
//
// It opens the files of all modules of the trace, in the order in which a report would look for
// them, and says of each which one it took. `--missing` lists the keys by which a symbol server or
// a package is asked: so `tidemark symbols app.tide --missing` on the machine that cannot find them
// gives what to fetch elsewhere.
#include "cli/args.h"

#include "base/mem.h"
#include "cli/print_options.h"
#include "report/ask/cautions.h"
#include "report/ask/sources.h"

#include <errno.h>

struct wish {
	const char *path;
	struct symbols_options symbols;
	bool missing, json;
};

static const struct option_row symbols_options[] = {
	{ ARGS_FLAG(wish, missing), 0, "missing", NULL,
	  "list the keys of what was not found, one a line" },
	{ ARGS_TEXT(wish, symbols.path), 0, "symbols", "DIRS",
	  "look for symbols in these directories first" },
	{ ARGS_FLAG(wish, symbols.debuginfod), 0, "debuginfod", NULL,
	  "ask debuginfod for what is missing" },
	{ ARGS_FLAG(wish, json), 'j', "json", NULL, "print JSON (docs/schema/symbols.json)" },
	{ 0 },
};

static int run(int argc, char **argv);

const struct command cmd_symbols = {
	.name = "symbols",
	.brief = "where the names of each module come from, and what is missing",
	.usage = "FILE [--missing] [--json]",
	.text = "Opens the files of every module in the trace, as report does for those that it\n"
		"shows. Windows modules are looked for in _NT_SYMBOL_PATH as well; nothing is\n"
		"fetched from a network.",
	.examples = "  tidemark symbols app.tide\n"
		    "  tidemark symbols app.tide --missing >keys.txt\n",
	.options = symbols_options,
	.run = run,
};

// Each module is opened, so it may take long for a trace of a large program.
static bool answer(const struct wish *wish, struct err *err)
{
	// Colours as the terminal has them: this command has no option for it.
	struct print_options print = { 0 };
	struct sink sink = sink_to_file(stdout);
	struct paper paper = { .sink = &sink,
			       .width = print_options_width(),
			       .colour = print_options_colour(&print) };
	struct reader *reader = reader_open(wish->path, err);
	struct symbols *symbols;
	struct str text = { 0 };

	ASSERT(wish->path);
	if (!reader)
		return false;
	reader_scan(reader); // of a damaged trace what was defined before has names
	cautions_add_wholeness(reader, &text);
	if (text.length)
		args_warn(&cmd_symbols, "%s", str_get(&text));
	str_fini(&text);
	symbols = symbols_new(reader, &wish->symbols);
	if (wish->json)
		sources_write_json(symbols, reader_complete(reader), &sink);
	else if (wish->missing)
		sources_write_missing(symbols, &sink);
	else
		sources_write_text(symbols, &paper);
	symbols_free(symbols);
	reader_close(reader);
	if (fflush(stdout) != 0)
		return err_errno(err, errno, "cannot write");
	return sink_ok(&sink, err);
}

static int run(int argc, char **argv)
{
	struct wish wish = { 0 };
	struct err err = { 0 };
	struct args args;

	args_init(&args, &cmd_symbols, argc, argv);
	args.into = &wish;
	args.operand = &wish.path;
	if (args_next(&args) != ARGS_END || !args_need(&args, wish.path, "a trace FILE"))
		return args.exit_code;
	return answer(&wish, &err) ? EXIT_ANSWERED : args_fail(&cmd_symbols, &err);
}
