// tidemark active: what is allocated at one moment, block by block.
//
// For example `active app.tide --at peak --min-bytes 1M`: the trace is read up to the peak, what
// lives there and is large enough is sorted by size, and 20 rows are shown to a person; a program
// gets all of them. With --why one block is looked for instead, in what a search of reachability
// has left in the trace.
#include "cli/query_options.h"

#include "base/mem.h"
#include "report/find/active.h"
#include "report/find/why.h"

#include <stdlib.h>

enum { OPTION_WHY = 1, ROWS_DEFAULT = 20 };

static const struct option_row rows[] = {
	QUERY_OPTIONS_ROW_AT("exit (each process just before its end), 12.5s, 50%, -5s, peak, "
			     "peak+1ms, mark:NAME"),
	{ OPTION_WHY, 0, "why", "ADDRESS",
	  "what keeps the block there: the way to it from a root (record --reachability)" },
	QUERY_OPTIONS_ROW_ROWS("show N largest blocks and mappings (0: all)"),
	QUERY_OPTIONS_ROW_MIN_BYTES("leave out blocks and mappings of fewer bytes"),
	QUERY_OPTIONS_ROW_ALL_FRAMES,
	PRINT_OPTIONS_ROWS_SHEET("active.json"),
	{ 0 },
};

// The list. `request` is a struct request, of which only the beginning is looked at: the options.
static bool answer(const void *request, struct query_context *asked, struct sink *sink,
		   struct err *err)
{
	const struct query_options *options = request;
	const struct active_options wanted = {
		.rows_max = options->rows_max,
		.bytes_min = options->bytes_min,
		.all_frames = options->all_frames,
	};
	// Of a few rows out of millions the ages are found last.
	const struct present_options late = { .inherits = TRACE_NONE,
					      .dated_late = options->rows_max > 0 };
	struct paper paper = query_options_paper(options, sink);
	struct active active;
	bool good;

	// The trace is read up to the moment, which leaves what lives then in asked->present.
	moment_view_read(asked, &late);
	moment_view_warn_of_space(asked);
	good = active_init(&active, asked, &wanted, err);
	if (!good) {
		// nothing is printed, rather than some of it
	} else if (options->print.form) {
		struct sheet sheet = query_options_sheet(&cmd_active, options, asked, sink);

		active_rows(&active, &sheet);
	} else if (options->print.json) {
		active_write_json(&active, sink);
	} else {
		active_write_text(&active, &paper);
	}
	active_fini(&active);
	return good;
}

// What is asked of one block.
struct request {
	struct query_options options; // first: the list sees nothing else
	bool why;
	uint64_t address;
};

static bool answer_why(const void *context, struct query_context *asked, struct sink *sink,
		       struct err *err)
{
	const struct request *request = context;
	struct paper paper = query_options_paper(&request->options, sink);
	struct why why;

	ASSERT(request->why);
	if (!why_find(&why, asked, request->address, err))
		return false;
	if (request->options.print.json)
		why_write_json(&why, sink);
	else
		why_write_text(&why, &paper, request->options.all_frames);
	why_fini(&why);
	return true;
}

// As C writes numbers: 0x… is hexadecimal, and a plain one is taken as decimal.
static bool take_address(struct args *args, struct request *request)
{
	char *end;

	request->why = true;
	// Any number is an address; whether a block is there is found by why_find.
	request->address = strtoull(args->value, &end, 0);
	return (end != args->value && *end == '\0') ||
	       args_mistake(args, "--why %s: an address such as 0x55d0c0a012a0 expected",
			    args->value);
}

static bool take_all(struct args *args, struct request *request)
{
	struct query_options *options = &request->options;
	int id;

	while ((id = args_next(args)) != ARGS_END)
		if (id == ARGS_EXIT || (id == OPTION_WHY ? !take_address(args, request)
							 : query_options_take(args, options, id) !=
								   PRINT_OPTIONS_TAKEN))
			return false;
	// The answer is about one block, and no table.
	if (request->why && options->print.form)
		return args_mistake(args, "--why is for people, or --json");
	return query_options_check(args, options);
}

static int run(int argc, char **argv)
{
	struct request request = { .why = false };
	struct query_options *options = &request.options;
	struct query_context_options context;
	struct args args;

	args_init(&args, &cmd_active, argc, argv);
	if (take_all(&args, &request)) {
		// For people a page, for programs everything.
		if (!options->rows_given && !query_options_warns(options))
			options->rows_max = ROWS_DEFAULT;
		context = query_options_context(&cmd_active, options, &active_rules);
		args.exit_code = query_options_print(&cmd_active, options, &context,
						     request.why ? answer_why : answer, &request);
	}
	query_options_fini(options);
	return args.exit_code;
}

const struct command cmd_active = {
	.name = "active",
	.brief = "list what is allocated at a moment: blocks and mappings",
	.usage = "FILE [options]",
	.text = "Each block of the heap and each mapping that exists at a moment, the largest\n"
		"first: size, age, address, whose memory it is, and the stack that asked for it.\n"
		"Mappings that malloc made for its blocks are left out, so that nothing is listed\n"
		"twice; --layer vm lists mappings alone, and all of them.\n",
	.examples = "  tidemark active app.tide                     at exit: what was never freed\n"
		    "  tidemark active app.tide --at peak -n 0      all that lived at the peak\n"
		    "  tidemark active app.tide --at 12.5s --layer vm --min-bytes 1M\n"
		    "  tidemark active app.tide --why 0x55d0c0a012a0\n"
		    "  tidemark active app.tide --json | jq '.rows[] | select(.age_ns > 1e9)'\n",
	.options = rows,
	.shared = filters_rows,
	.shared_title = filters_title,
	.run = run,
};
