// tidemark top: what lives now, and what grows, of a recording that goes on.
//
// The trace is read as it grows, once a second; what is shown is put together in report/top.h,
// and this is the screen around it: keys, the size of the window, the terminal's state. An arrow
// is three bytes, ESC [ and a letter: "\033[B" is down. The terminal is put back as it was by
// q and by Ctrl-C.
#include "cli/interrupt.h"
#include "cli/print_options.h"
#include "cli/running.h"

#include "base/mem.h"
#include "report/top.h"

#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { TOP_ROWS = 1, TOP_SORT };
enum { TOP_ROWS_ONCE = 20, TOP_PERIOD_MS = 1000, TOP_HEAD_LINES = 8, TOP_FILTER_MAX = 64 };

// What was asked for.
struct wish {
	const char *what;
	bool once, rows_given;
	uint64_t rows;
	const char *filter;
	int sort;
	struct print_options print;
};

static const struct option_row options[] = {
	{ ARGS_FLAG(wish, once), 0, "once", NULL, "print what there is now, and end" },
	{ TOP_ROWS, 'n', "rows", "N", "show N sites (0: all)" },
	{ ARGS_TEXT(wish, filter), 0, "frame", "TEXT",
	  "only sites with a function whose name has TEXT in it" },
	{ TOP_SORT, 0, "sort", "HOW", "live, growth or rate" },
	PRINT_OPTIONS_ROW_JSON("top.json"),
	PRINT_OPTIONS_ROWS,
	{ 0 },
};

static int run(int argc, char **argv);

const struct command cmd_top = {
	.name = "top",
	.brief = "watch a recording that goes on: what lives, what grows, who allocates",
	.usage = "PID|FILE [options]",
	.text = "PID is a process that is being recorded, FILE a trace, which may still be\n"
		"written. Once a second: the heap now and at its peak, allocations a second, what\n"
		"has grown, by the places that allocate.\n\n"
		"  m  growth is counted from now on    s  sort by size, growth, rate\n"
		"  arrows, Enter  a site and its stack  /  only functions with this in their name\n"
		"  q  end\n",
	.examples = "  tidemark record -p 4242 -o app.tide &\n"
		    "  tidemark top app.tide\n"
		    "  tidemark top 4242 --once --json | jq .live.bytes\n",
	.options = options,
	.run = run,
};

// ---- The screen ---------------------------------------------------------------------------------

// `before` is the terminal's state, to be put back; `filter` is what was typed after '/', of
// `length` bytes and a zero.
struct screen {
	struct termios before;
	char filter[TOP_FILTER_MAX];
	size_t length;
	bool typing; // a filter
	bool over;
};

// Keys come at once and are not shown; Ctrl-C stays a signal.
static void enter(struct screen *screen)
{
	struct termios raw;

	tcgetattr(STDIN_FILENO, &screen->before);
	raw = screen->before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	fputs("\033[?1049h\033[?25l", stdout); // a screen of our own, no cursor
}

static void leave(const struct screen *screen)
{
	fputs("\033[?25h\033[?1049l", stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &screen->before);
}

// The page is written to a text first and then line by line over the old one, each cleared to its
// end: so it does not flicker. Where the terminal does not say its size, 24 lines of 80.
static void draw(struct top *top, const struct screen *screen, const struct wish *wish)
{
	struct winsize size;
	struct str text = { 0 };
	struct sink sink = sink_to_str(&text);
	struct paper paper = { .sink = &sink, .colour = wish->print.color != 2 };
	size_t lines = 0;

	// A terminal in a container may say 0.
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
		size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	paper.width = size.ws_col;
	top_list(top);
	top_write_text(top, &paper,
		       size.ws_row > TOP_HEAD_LINES + 4 ? size.ws_row - TOP_HEAD_LINES : 4);
	fputs("\033[H", stdout);
	// The last line is left free: writing a line end there would move the page up.
	for (const char *at = str_get(&text); *at && lines + 1 < size.ws_row; lines++) {
		size_t length = strcspn(at, "\n");

		printf("%.*s\033[K\n", (int)length, at);
		at += length + (at[length] == '\n');
	}
	fputs("\033[J", stdout);
	if (screen->typing || screen->length)
		printf("/%s%s", screen->filter, screen->typing ? "_" : "");
	fflush(stdout);
	str_fini(&text);
}

// Enter and Escape end it, the filter stays. Bytes of UTF-8 are taken as they come.
static void type(struct screen *screen, char key)
{
	ASSERT(screen->length < TOP_FILTER_MAX);
	if (key == '\n' || key == '\033')
		screen->typing = false;
	else if ((key == 127 || key == '\b') && screen->length > 0)
		screen->filter[--screen->length] = 0;
	else if ((unsigned char)key >= ' ' && key != 127 && screen->length + 1 < TOP_FILTER_MAX)
		screen->filter[screen->length++] = key;
}

// All keys of one read. An arrow is taken for one only if its three bytes came together, as
// terminals send them.
static void press(struct top *top, struct screen *screen, const char *keys, ssize_t count)
{
	for (ssize_t i = 0; i < count; i++) {
		if (screen->typing) {
			type(screen, keys[i]);
			continue;
		}
		// Any sequence of three is passed over; only the two arrows do anything.
		if (keys[i] == '\033' && i + 2 < count && keys[i + 1] == '[') {
			i += 2;
			if (keys[i] == 'B')
				top->selected++;
			else if (keys[i] == 'A' && top->selected > 0)
				top->selected--;
			top->open = true;
			continue;
		}
		switch (keys[i]) {
		case 'q':
			screen->over = true;
			break;
		case 'm':
			top_mark(top);
			break;
		case 's':
			top->order = (top->order + 1) % TOP_ORDERS;
			break;
		case '/':
			screen->typing = true;
			break;
		case '\n':
			top->open = !top->open;
			break;
		default:
			break;
		}
	}
}

// A key is answered at once; without one, the trace is read on each second. What ends
// us (Ctrl-C, SIGTERM, SIGHUP) is waited for like a key, since the terminal is put back before.
static void watch(struct top *top, const struct wish *wish)
{
	struct screen screen = { 0 };

	if (wish->filter)
		// snprintf says how long it would be; what does not fit is cut.
		screen.length =
			(size_t)snprintf(screen.filter, sizeof(screen.filter), "%s", wish->filter);
	if (screen.length >= TOP_FILTER_MAX)
		screen.length = TOP_FILTER_MAX - 1;
	top->filter = screen.filter;
	interrupt_watch();
	enter(&screen);
	while (!screen.over && !interrupt_came(NULL)) {
		struct pollfd ready = { .fd = STDIN_FILENO, .events = POLLIN };
		char keys[32];

		draw(top, &screen, wish);
		// Also where a signal came, -1: then the trace is read, and the loop asks why it
		// was woken.
		if (poll(&ready, 1, TOP_PERIOD_MS) > 0) {
			ssize_t count = read(STDIN_FILENO, keys, sizeof(keys));

			// The terminal is gone, or its input has ended.
			screen.over = count <= 0;
			press(top, &screen, keys, count);
			continue;
		}
		top_read(top);
	}
	leave(&screen);
	interrupt_leave();
	if (interrupt_came(NULL))
		interrupt_end();
}

// ---- The command --------------------------------------------------------------------------------

// JSON has all rows unless a number was given.
static bool print_once(struct top *top, const struct wish *wish, struct err *err)
{
	struct sink sink = sink_to_file(stdout);
	struct paper paper = { .sink = &sink,
			       .width = print_options_width(),
			       .colour = print_options_colour(&wish->print) };

	// Rows of 0 are all of them.
	top->filter = wish->filter;
	top_list(top);
	if (wish->print.json)
		top_write_json(top, &sink, wish->rows_given ? wish->rows : 0);
	else
		top_write_text(top, &paper, wish->rows_given ? wish->rows : TOP_ROWS_ONCE);
	return sink_ok(&sink, err);
}

// One reading comes before the first screen, so that it has figures.
static bool show(const struct wish *wish, struct err *err)
{
	struct str path = { 0 };
	struct top top = { 0 };
	bool ok = running_trace(wish->what, &path, err) &&
		  top_open(&top, str_get(&path), &wish->print.symbols, err);

	ASSERT(wish->sort >= 0 && wish->sort < TOP_ORDERS);
	if (ok) {
		top.order = (enum top_order)wish->sort;
		top_read(&top);
		if (wish->once)
			ok = print_once(&top, wish, err);
		else
			watch(&top, wish);
	}
	top_close(&top);
	str_fini(&path);
	return ok;
}

static bool take(struct args *args, struct wish *wish, int id)
{
	static const char *const sorts[] = { "live", "growth", "rate", NULL };

	switch (print_options_take(args, &wish->print, id)) {
	case PRINT_OPTIONS_TAKEN:
		return true;
	case PRINT_OPTIONS_MISTAKE:
		return false;
	case PRINT_OPTIONS_NOT_MINE:
		break;
	}
	switch (id) {
	case TOP_ROWS:
		wish->rows_given = true;
		return args_count(args, &wish->rows);
	case TOP_SORT:
		return args_word(args, sorts, &wish->sort);
	default:
		return false;
	}
}

static int run(int argc, char **argv)
{
	struct wish wish = { 0 };
	struct err err = { 0 };
	struct args args;
	int id;

	args_init(&args, &cmd_top, argc, argv);
	args.into = &wish;
	args.operand = &wish.what;
	while ((id = args_next(&args)) != ARGS_END)
		if (!take(&args, &wish, id))
			return args.exit_code;
	if (!args_need(&args, wish.what, "a PID or a trace FILE"))
		return args.exit_code;
	if (!wish.once && (wish.print.json || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))) {
		args_mistake(&args,
			     "a live screen needs a terminal, and cannot write JSON (try: --once)");
		return args.exit_code;
	}
	return show(&wish, &err) ? EXIT_ANSWERED : args_fail(&cmd_top, &err);
}
