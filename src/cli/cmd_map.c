// tidemark map: the address space of a process, drawn, and who is in the way.
//
// For example --granularity 64K --range 0x40000000..0x80000000: a gigabyte in 16,384 slots, each
// with one owner (the one with most of it) and how much of it is used. A picture, text, JSON and
// tracefrag's list are four ways to write the same address_map.
#include "cli/query_options.h"

#include "base/mem.h"
#include "base/str.h"
#include "os/convert.h"
#include "os/file.h"
#include "report/draw/address_map.h"
#include "report/tracefrag.h"
#include "trace/fresh.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS_DEFAULT = 10 };

enum { OPTION_GRANULARITY = 1, OPTION_RANGE };

struct request {
	struct query_options options;
	struct address_map_options address_map;
	bool tracefrag;
};

static const struct option_row rows[] = {
	QUERY_OPTIONS_ROW_AT("exit (each process just before its end), 12.5s, 50%, -5s, peak, "
			     "peak+1ms, mark:NAME"),
	{ OPTION_GRANULARITY, 0, "granularity", "SIZE", "bytes of a slot (64K)" },
	{ OPTION_RANGE, 0, "range", "LOW..HIGH", "only this part: two addresses in hexadecimal" },
	{ QUERY_OPTIONS_OUTPUT, 'o', "output", "X.svg|X.png", "draw a picture into this file" },
	{ QUERY_OPTIONS_FORCE, 'f', "force", NULL, "overwrite that file" },
	{ ARGS_FLAG(request, tracefrag), 0, "tracefrag", NULL,
	  "list the reservations that leave a slot partly unused, as tracefrag did" },
	QUERY_OPTIONS_ROW_ROWS("show N mappers that are in the way (0: all)"),
	QUERY_OPTIONS_ROW_ALL_FRAMES,
	PRINT_OPTIONS_ROW_JSON("map.json"),
	PRINT_OPTIONS_ROWS,
	{ 0 },
};

// Take one option. False: return args->exit_code.
static bool take(struct args *args, struct request *request, int id)
{
	// Shared options first: their ids do not overlap with this command's own two.
	enum print_options_taken taken = query_options_take(args, &request->options, id);
	struct err err = { 0 };
	uint64_t bytes;

	if (taken != PRINT_OPTIONS_NOT_MINE)
		return taken == PRINT_OPTIONS_TAKEN;
	switch (id) {
	case OPTION_GRANULARITY:
		if (!args_bytes(args, &bytes))
			return false;
		// The text of a mistake begins with the option's name.
		return address_map_set_granularity(&request->address_map, bytes, &err) ||
		       args_mistake(args, "--%s", err.text);
	case OPTION_RANGE:
		return address_map_set_range(&request->address_map, args->value, &err) ||
		       args_mistake(args, "--%s", err.text);
	}
	return false;
}

static bool is_png(const char *path)
{
	return strcmp(str_ending(path), "png") == 0;
}

// The picture appears when it is whole, or not at all.
// A PNG is made of the same SVG by another program, so that there is one drawing only.
static bool draw(const struct request *request, const struct address_map *address_map,
		 struct err *err)
{
	struct fresh fresh = { .fd = -1 };
	struct str svg = { 0 };
	struct sink sink = sink_to_str(&svg);
	bool good = fresh_open(&fresh, request->options.output, request->options.force, err);

	ASSERT(request->options.output);
	// The SVG is made in memory, since a converter wants it whole.
	if (good) {
		address_map_write_svg(address_map, &sink);
		good = is_png(request->options.output)
			       ? convert_svg(str_get(&svg), svg.length, "png", fresh.fd, err)
			       : file_write_all(fresh.fd, str_get(&svg), svg.length, err);
		good = good || err_wrap(err, "cannot write %s", request->options.output);
	}
	good = good && fresh_keep(&fresh, err);
	fresh_close(&fresh);
	str_fini(&svg);
	return good;
}

// What would be missing in the end is told before the work.
static bool can_draw(const struct request *request, struct err *err)
{
	const char *output = request->options.output;

	return query_options_can_write(&request->options, err) &&
	       (!output || !is_png(output) || convert_check("png", err));
}

// With a picture nothing is printed, unless JSON or the list is asked for as well.
static bool answer(const void *context, struct query_context *asked, struct sink *sink,
		   struct err *err)
{
	const struct request *request = context;
	struct paper paper = query_options_paper(&request->options, sink);
	struct address_map address_map;
	bool good;

	// JSON and tracefrag's list go to the standard output beside a picture, the text only
	// without one.
	good = address_map_init(&address_map, asked, &request->address_map, err);
	if (good && request->tracefrag)
		tracefrag_write(asked, address_map.process, sink);
	else if (good && request->options.print.json)
		address_map_write_json(&address_map, sink);
	else if (good && !request->options.output)
		address_map_write_text(&address_map, &paper);
	if (good && request->options.output)
		good = draw(request, &address_map, err);
	address_map_fini(&address_map);
	if (good && !request->options.print.json && (request->tracefrag || request->options.output))
		query_options_warn(&cmd_map, asked, NULL);
	return good;
}

static int print(struct request *request)
{
	const struct query_context_options context =
		query_options_context(&cmd_map, &request->options, &address_map_rules);
	struct err err = { 0 };

	// Before the trace is read: a converter that is missing is a slip that costs nothing yet.
	if (!can_draw(request, &err))
		return args_fail(&cmd_map, &err);
	request->address_map.rows_max = request->options.rows_max;
	request->address_map.all_frames = request->options.all_frames;
	return query_options_print(&cmd_map, &request->options, &context, answer, request);
}

static bool check(struct args *args, const struct request *request)
{
	if (!query_options_check(args, &request->options))
		return false;
	if (request->options.output && strcmp(str_ending(request->options.output), "svg") != 0 &&
	    !is_png(request->options.output))
		return args_mistake(args, "--output is a file that ends in .svg or .png");
	if (request->options.force && !request->options.output)
		return args_mistake(args, "--force is about --output");
	return true;
}

static int run(int argc, char **argv)
{
	struct request request = {
		.options = { .rows_max = ROWS_DEFAULT },
		.address_map = { .granularity = SPACE_SLOT },
	};
	struct args args;
	int id;

	args_init(&args, &cmd_map, argc, argv);
	args.into = &request;
	while ((id = args_next(&args)) != ARGS_END)
		if (id == ARGS_EXIT || !take(&args, &request, id))
			break;
	if (id == ARGS_END && check(&args, &request))
		args.exit_code = print(&request);
	query_options_fini(&request.options);
	return args.exit_code;
}

const struct command cmd_map = {
	.name = "map",
	.brief = "draw an address space, its holes, and who is in the way",
	.usage = "FILE [options]",
	.text = "What is mapped in a process at a moment, slot by slot and by owner; how much is\n"
		"free, the largest free block, and how both went over time; and by who mapped it\n"
		"(the stack): how much it is, what it wastes of its slots, and how large the\n"
		"largest free block were without it. Calls that failed for want of memory come\n"
		"with what was free just then and who was in the way. Of several processes the\n"
		"one with the most mapped is shown (--process).\n",
	.examples =
		"  tidemark map app.tide                        at exit\n"
		"  tidemark map app.tide --at 12.5s -o app.png  a picture\n"
		"  tidemark map app.tide --range 0x40000000..0x80000000 --granularity 4K\n"
		"  tidemark map app.tide --tracefrag            for scripts that read tracefrag\n",
	.options = rows,
	.shared = filters_rows,
	.shared_title = filters_title,
	.run = run,
};
