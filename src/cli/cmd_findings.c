// tidemark findings: what is wrong, or could be cheaper, ranked, with proof and advice.
//
// For example `findings app.tide --explain growth#1`: all findings are looked for as always, so
// that #1 is the one that a plain `findings` numbered so, and only that one is written, with its
// whole stack. `--explain growth` without a trace only prints what that kind is.
#include "base/mem.h"
#include "cli/call_costs.h"
#include "cli/query_options.h"

#include "report/find/findings.h"

enum { OPTION_EXPLAIN = 1, OPTION_CPU, ROWS_DEFAULT = 5 };

static const struct option_row rows[] = {
	QUERY_OPTIONS_ROW_ROWS("show N findings of each kind (5; 0: all)"),
	{ OPTION_EXPLAIN, 0, "explain", "ID",
	  "what a kind is and how it is decided; with a FILE, that finding (growth#1) with its "
	  "whole stack" },
	{ OPTION_CPU, 0, "cpu", NULL,
	  "measure what calls cost by a replay, and say what processor time would be saved" },
	QUERY_OPTIONS_ROW_ALL_FRAMES,
	QUERY_OPTIONS_ROW_MEMORY("for building and asking the index (256M)"),
	PRINT_OPTIONS_ROW_JSON("findings.json"),
	PRINT_OPTIONS_ROWS,
	{ 0 },
};

struct request {
	struct query_options options;
	const char *explain; // NULL: not given
	const struct findings_kind *kind;
	bool cpu;
};

// Costs are measured after the findings are there, and only of the processes that they name.
static bool answer(const void *context, struct query_context *asked, struct sink *sink,
		   struct err *err)
{
	const struct request *request = context;
	const struct query_options *options = &request->options;
	struct findings findings;
	const struct findings_page page = {
		.findings = &findings,
		.only = request->explain,
		.rows_max = options->rows_max,
		.all_frames = options->all_frames,
		.colour = print_options_colour(&options->print),
		.width = print_options_width(),
	};
	bool good;

	if (!findings_find(&findings, asked, err))
		return false;
	// A replay takes as long as the program's own calls did, so it is only made when it is
	// asked for.
	if (request->cpu) {
		struct call_costs *costs = call_costs_new(asked);

		findings_price(&findings, call_costs_of, costs);
		call_costs_free(costs);
	}
	good = options->print.json ? findings_json(&page, sink, err)
				   : findings_text(&page, sink, err);
	findings_fini(&findings);
	return good;
}

// A kind by itself needs no trace.
static int explain(const struct request *request)
{
	struct sink sink = sink_to_file(stdout);
	struct err err = { 0 };

	ASSERT(request->kind);
	findings_explain(request->kind, &sink, print_options_width());
	return sink_ok(&sink, &err) ? EXIT_ANSWERED : args_fail(&cmd_findings, &err);
}

// "growth#1" is a finding of the kind "growth": findings_kind_find looks at what is before the '#'.
static bool take_all(struct args *args, struct request *request)
{
	int id;

	while ((id = args_next(args)) != ARGS_END) {
		if (id == OPTION_EXPLAIN)
			request->explain = args->value;
		else if (id == OPTION_CPU)
			request->cpu = true;
		else if (id == ARGS_EXIT ||
			 query_options_take(args, &request->options, id) != PRINT_OPTIONS_TAKEN)
			return false;
	}
	if (request->explain) {
		// The kinds are listed from their table: the message cannot be older than the
		// program.
		struct str kinds = { 0 };

		request->kind = findings_kind_find(request->explain);
		for (const struct findings_kind *kind = findings_kinds; kind->id; kind++)
			str_format(&kinds, "%s%s", kinds.length ? ", " : "", kind->id);
		if (!request->kind)
			args_mistake(args, "there is no kind of finding '%s' (there are: %s)",
				     request->explain, str_get(&kinds));
		str_fini(&kinds);
		if (!request->kind)
			return false;
	}
	// Without a trace no filter can be wrong, so nothing else is checked.
	return (request->explain && !request->options.path) ||
	       query_options_check(args, &request->options);
}

static int run(int argc, char **argv)
{
	struct request request = { .options.rows_max = ROWS_DEFAULT };
	struct query_context_options context;
	struct args args;
	int code;

	args_init(&args, &cmd_findings, argc, argv);
	if (!take_all(&args, &request)) {
		code = args.exit_code;
	} else if (!request.options.path) {
		code = explain(&request);
	} else {
		context = query_options_context(&cmd_findings, &request.options,
						&query_context_findings_rules);
		code = query_options_print(&cmd_findings, &request.options, &context, answer,
					   &request);
	}
	query_options_fini(&request.options);
	return code;
}

const struct command cmd_findings = {
	.name = "findings",
	.brief = "say what is wrong or could be cheaper, with proof and what to do",
	.usage = "FILE [options]",
	.text = "Looks for what an expert would look for: memory that grows without end, peaks\n"
		"made by a short spike, temporaries, containers that grow step by step,\n"
		"small blocks that cost more than they hold, pages that stay, blocks freed\n"
		"twice ... Each finding says what was seen, how sure it is, the figures and the\n"
		"stack, the command that shows it, what to do, and what it would save. What a\n"
		"trace cannot tell is named at the end, with the option of `tidemark record`\n"
		"that would have given it.\n",
	.examples = "  tidemark findings app.tide                   all, the most important first\n"
		    "  tidemark findings app.tide --explain growth#1  one of them, with all of it\n"
		    "  tidemark findings --explain temporaries      how that is decided\n"
		    "  tidemark findings app.tide --json | jq '.findings[].what'\n",
	.options = rows,
	.shared = filters_rows,
	.shared_title = filters_title,
	.run = run,
};
