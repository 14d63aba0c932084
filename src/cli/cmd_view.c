// view: a trace in the browser, served on this machine, or as one file that needs no server.
//
// The trace is opened once, then a server answers the page's questions from it (view/server.h)
// until Ctrl-C. For example `view app.tide --no-open --port 8123` prints http://127.0.0.1:8123/
// with a token after it, and waits. With --html the answers that the page is likely to ask are
// written into one file instead. A database without "?trace=" is shown as a whole by another set of
// answers (cli/fleet_desk.h) behind the same server.
#include "base/mem.h"
#include "cli/args.h"
#include "cli/fleet_desk.h"
#include "cli/interrupt.h"
#include "cli/print_options.h"
#include "cli/remote.h"
#include "cli/running.h"

#include "os/file.h"
#include "os/quit.h"
#include "os/tool.h"
#include "trace/fresh.h"
#include "view/html_export.h"
#include "view/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Of a database there is no budget of memory: FLEET_UNREAD is what the server may hold of answers
// that a slow browser has not read.
enum {
	OPTION_PORT = 1,
	MAX_BYTES_DEFAULT = 15 << 20,
	FLEET_UNREAD = 64 << 20,
};

struct request {
	struct viewer_options viewer;
	struct print_options print;
	struct html_export_options single; // its path: NULL: serve
	uint64_t port;
	bool opens_nothing;
};

static const struct option_row options[] = {
	{ ARGS_TEXT(request, viewer.other), 'd', "diff", "B", "a second trace, to compare with" },
	{ OPTION_PORT, 'p', "port", "N", "listen on this port (the system's choice)" },
	{ ARGS_FLAG(request, opens_nothing), 0, "no-open", NULL,
	  "only print the address, open no browser" },
	{ ARGS_TEXT(request, viewer.source_root), 0, "source-root", "DIR",
	  "look for the program's source here too" },
	{ ARGS_TEXT(request, single.path), 0, "html", "OUT.html",
	  "serve nothing, write one file with all in it" },
	{ ARGS_FLAG(request, single.scrub), 0, "scrub", NULL,
	  "no paths and arguments in the file" },
	{ ARGS_BYTES(request, single.bytes_max), 0, "max-bytes", "SIZE",
	  "how large the file may be (15M)" },
	{ ARGS_FLAG(request, single.force), 'f', "force", NULL, "replace a file that is there" },
	{ ARGS_BYTES(request, viewer.window.memory_bytes), 'm', "memory", "SIZE",
	  "for building and asking the index (256M)" },
	{ PRINT_OPTIONS_PROGRESS, 0, "progress", "HOW", "auto, none, plain or bar, on stderr" },
	{ PRINT_OPTIONS_SYMBOLS, 0, "symbols", "DIRS",
	  "look for symbols here first (':' between, on Windows ';')" },
	{ PRINT_OPTIONS_DEBUGINFOD, 0, "debuginfod", NULL,
	  "fetch missing symbols ($DEBUGINFOD_URLS)" },
	{ PRINT_OPTIONS_MANGLED, 0, "mangled", NULL, "leave C++, Rust and D names as they are" },
	{ 0 },
};

static void say(void *, const char *text)
{
	fprintf(stderr, "tidemark view: %s\n", text);
}

// Take one option. False: return args->exit_code.
static bool take(struct args *args, struct request *request, int id)
{
	enum print_options_taken taken = print_options_take(args, &request->print, id);

	if (taken != PRINT_OPTIONS_NOT_MINE)
		return taken == PRINT_OPTIONS_TAKEN;
	return id == OPTION_PORT && args_count(args, &request->port) &&
	       ((request->port > 0 && request->port <= UINT16_MAX) ||
		args_mistake(args, "--port is a number from 1 to 65535"));
}

// ---- the browser ----

// The address goes through a file that only we can read: a command line is everybody's to see.
struct door {
	struct str folder, page;
};

// A page that sends the browser on to the address with its token. It is removed when the server
// ends; false leaves it to door_close as well.
static bool door_open(struct door *door, const char *address, struct err *err)
{
	FILE *file;
	bool good;

	ASSERT(address && !door->page.length);
	if (!tool_folder(&door->folder, err))
		return false;
	str_format(&door->page, "%s/view.html", str_get(&door->folder));
	file = file_stream(str_get(&door->page), "w");
	if (!file)
		return err_set(err, ERR_IO, "cannot write %s", str_get(&door->page));
	// A refresh, and no script: it works in any browser, and the token is in no command line or
	// history of the shell.
	good = fprintf(file,
		       "<!doctype html><meta charset=utf-8><title>tidemark</title>"
		       "<meta http-equiv=refresh content=\"0;url=%s\">\n",
		       address) > 0;
	good = fclose(file) == 0 && good;
	return (good && tool_open(str_get(&door->page), err)) ||
	       err_wrap(err, "no browser was opened");
}

static void door_close(struct door *door)
{
	if (door->page.length)
		file_remove(str_get(&door->page));
	tool_folder_leave(&door->folder);
	str_fini(&door->page);
}

// ---- serving ----

// The viewer behind void *, as the server has it.
static void answer_trace(void *viewer, const char *path, const char *query,
			 bool (*gone)(void *context), void *context, struct viewer_reply *reply)
{
	viewer_answer(viewer, path, query, gone, context, reply);
}

static void stop_trace(void *viewer)
{
	viewer_stop(viewer);
}

// Until Ctrl-C. The address is printed to stdout, alone, for scripts; what is for people goes to
// stderr.
static int serve(const struct request *request, const struct server_answers *answers)
{
	struct server *server;
	struct door door = { 0 };
	struct err err = { 0 };

	ASSERT(request->port <= UINT16_MAX);
	// Before the server starts, so that a Ctrl-C that comes at once is not lost.
	quit_watch();
	server = server_start(answers, (uint16_t)request->port, &err);
	if (!server)
		return args_fail(&cmd_view, &err);
	printf("%s\n", server_address(server));
	fflush(stdout);
	fprintf(stderr, "tidemark view: %s is served until Ctrl-C\n", request->viewer.path);
	if (!request->opens_nothing && tool_opens() &&
	    !door_open(&door, server_address(server), &err))
		args_warn(&cmd_view, "%s", err.text);
	quit_wait();
	door_close(&door);
	// Read-only: there is nothing that a request which will not end could leave behind.
	if (!server_stop(server))
		_Exit(EXIT_ANSWERED);
	return EXIT_ANSWERED;
}

// A database as a whole: `desk` lives as long as the server, which is stopped in serve().
static int view_fleet(const struct request *request)
{
	struct fleet_desk desk;
	const struct server_answers answers = {
		fleet_desk_answer,
		fleet_desk_stop,
		&desk,
		FLEET_UNREAD,
	};
	struct err err = { 0 };
	bool good;

	interrupt_watch();
	good = fleet_desk_open(&desk, request->viewer.path, TIDEMARK_VERSION, &err);
	interrupt_leave();
	return good ? serve(request, &answers) : args_fail(&cmd_view, &err);
}

// A trace in a database is a file from here on.
static bool fetch(const char **path, struct err *err)
{
	if (*path && remote_is(*path))
		*path = remote_fetch(*path, err);
	return !err->kind;
}

// For a recording that is just ending; the viewer opens it whatever comes of that.
static void await(const char *path)
{
	struct err ignored = { 0 };
	struct reader *reader = reader_open(path, &ignored);

	if (!reader)
		return;
	reader_scan(reader);
	running_await(&cmd_view, path, reader);
	reader_close(reader);
}

static int view(struct request *request)
{
	struct viewer viewer = { 0 };
	struct err err = { 0 };
	bool good;
	int code;

	if (!fetch(&request->viewer.path, &err) || !fetch(&request->viewer.other, &err))
		return args_fail(&cmd_view, &err);

	request->viewer.symbols = request->print.symbols;
	request->viewer.window.progress = request->print.progress;
	request->viewer.window.stop = interrupt_came;
	request->viewer.window.say = say;
	// What would be missing in the end is told before the work.
	if (request->single.path && !fresh_check(request->single.path, request->single.force, &err))
		return args_fail(&cmd_view, &err);
	interrupt_watch();
	await(request->viewer.path);
	good = viewer_open(&viewer, &request->viewer, &err);
	interrupt_leave();
	if (!good)
		return args_fail(&cmd_view, &err);
	if (!request->single.path)
		code = serve(request,
			     &(struct server_answers){ answer_trace, stop_trace, &viewer,
						       viewer.sums.window_options.memory_bytes });
	else if (html_export_write(&viewer, &request->single, &err))
		code = EXIT_ANSWERED;
	else
		code = args_fail(&cmd_view, &err);
	viewer_close(&viewer);
	return code;
}

// An option that is about one trace; NULL: none was given.
static const char *of_a_trace(const struct request *request)
{
	// The first one that was given is named; the mistake is the same for all.
	const struct symbols_options *symbols = &request->print.symbols;

	return request->viewer.other                     ? "diff"
	       : request->viewer.source_root             ? "source-root"
	       : request->single.path                    ? "html"
	       : request->single.bytes_max != UINT64_MAX ? "max-bytes"
	       : request->viewer.window.memory_bytes     ? "memory"
	       : symbols->path                           ? "symbols"
	       : symbols->debuginfod                     ? "debuginfod"
	       : symbols->mangled                        ? "mangled"
							 : NULL;
}

// One file is written, or served: what is for the other is refused.
static bool fits(struct args *args, const struct request *request)
{
	const struct html_export_options *single = &request->single;

	if (single->path && (request->port > 0 || request->opens_nothing))
		return args_mistake(args, "--port and --no-open are of no use with --html");
	return single->path ||
	       (!single->scrub && !single->force && single->bytes_max == UINT64_MAX) ||
	       args_mistake(args, "--scrub, --max-bytes and --force are for --html");
}

// A database alone is shown as a whole, all its traces; with "?trace=NUMBER" it is one trace, as a
// file is.
static int run(int argc, char **argv)
{
	struct request request = {
		.viewer = { .version = TIDEMARK_VERSION },
		.single = { .bytes_max = UINT64_MAX }, // not given
	};
	struct args args;
	int id;

	args_init(&args, &cmd_view, argc, argv);
	args.into = &request;
	args.operand = &request.viewer.path;
	while ((id = args_next(&args)) != ARGS_END)
		if (id == ARGS_EXIT || !take(&args, &request, id))
			return args.exit_code;
	if (!args_need(&args, request.viewer.path, "a trace FILE"))
		return args.exit_code;
	if (!fits(&args, &request))
		return args.exit_code;
	if (request.single.path && request.single.bytes_max == UINT64_MAX)
		request.single.bytes_max = MAX_BYTES_DEFAULT;
	if (!remote_is(request.viewer.path) || strchr(request.viewer.path, '?'))
		return view(&request);
	if (!of_a_trace(&request))
		return view_fleet(&request);
	args_mistake(&args, "--%s is about one trace: clickhouse://HOST:PORT/DATABASE?trace=NUMBER",
		     of_a_trace(&request));
	return args.exit_code;
}

const struct command cmd_view = {
	.name = "view",
	.brief = "show a trace in the browser",
	.usage = "FILE [--diff B] [options]\n       tidemark view FILE --html OUT.html [--scrub]\n"
		 "       tidemark view clickhouse://HOST:PORT/DATABASE",
	.text = "Serves one page on this machine alone, prints its address and opens it in the\n"
		"browser, until Ctrl-C. The address holds a token that changes each time;\n"
		"without it nothing is answered. The page asks what the other commands answer.\n"
		"With --html one file is written instead, which works without a server, offline\n"
		"and in an e-mail; it says where it is coarser than the trace.\n"
		"Of a database (tidemark push) it shows what all its traces say together.\n",
	.examples = "  tidemark view app.tide\n"
		    "  tidemark view before.tide --diff after.tide\n"
		    "  tidemark view app.tide --html app.html --scrub     for somebody else\n"
		    "  tidemark view app.tide --no-open --port 8123   through an ssh tunnel\n"
		    "  tidemark view clickhouse://db.example/memory   as tidemark fleet\n",
	.notes = "Environment:\n"
		 "  DISPLAY, WAYLAND_DISPLAY  without either no browser is opened (on Linux)\n"
		 "  DEBUGINFOD_URLS           servers that --debuginfod asks\n",
	.options = options,
	.takes_places = true,
	.run = run,
};
