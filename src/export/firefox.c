// firefox: the blocks of one process as a processed profile of Firefox's profiler (version 47) with
// native allocations: time, bytes (negative: freed), stack and address of each event. In its page
// "retained" is what was allocated in the selected range and not freed in it.
//
// The format is tables by column, numbered by row: a stack is a frame and the stack that called it,
// a frame is a line of a location, a function a name in a file. For example one block:
//
//     "nativeAllocations":{"time":[1.5],"weight":[16],"memoryAddress":[4096],"stack":[0],…}
//     "stackTable":{"frame":[0],"prefix":[null],…}   "frameTable":{"func":[0],"line":[3],…}
//     "funcTable":{"name":[0],…}                     "stringArray":["main"]
//
// Row 0 of stacks, frames and functions is "(no stack)": an event without a stack would be in no
// sum of the page.
//
// Since columns are written one after the other, those of events are made side by side, as texts
// that go to temporary files where they get long. There are at most EVENTS_MAX events: the profile
// ends before the one that would be more.
#include "base/str.h"
#include "engine/index/spill.h"
#include "export/events.h"
#include "export/locations.h"

#include "base/json.h"
#include "base/mem.h"
#include "trace/defs.h"

#include <inttypes.h>

enum { EVENTS_MAX = 1 << 23, NS_PER_MS = 1000000, VERSION = 47, GECKO_VERSION = 27 };

#define NONE UINT32_MAX // a number of a table that is written as null

// What each event has, in the order in which the columns are written.
enum { COLUMN_TIME, COLUMN_WEIGHT, COLUMN_STACK, COLUMN_ADDRESS, COLUMN_THREAD, COLUMNS };

struct event_column {
	struct str text;    // its end
	struct spill spill; // what was before that, if there was more than COLUMN_BYTES
};

struct stack_row {
	uint32_t frame, prefix; // number of a line of a location, from 1; of a stack
};

struct firefox {
	const struct export_source *source;
	struct reader *reader;
	process_id process;
	struct locations locations;
	struct event_column columns[COLUMNS];
	size_t count; // of events
	bool full;    // a temporary file could not be made, or be written: err says why
	struct err err;
	struct stack_row *stacks;
	size_t stacks_count, stacks_capacity;
	struct map stack_numbers; // of the trace: the innermost row of each
	stack_id *path;
	size_t path_capacity;
	struct str out;
	struct sink *sink;
	uint64_t left_out; // events beyond EVENTS_MAX
	uint64_t end_ns;   // the time of the first of them
	uint64_t unknown;  // frees of blocks whose allocation was not seen
};

// ---- events ----

// The row of the frame's innermost function, whose prefixes lead to `prefix`.
static uint32_t add_frame(struct firefox *firefox, frame_id frame, uint32_t prefix)
{
	uint32_t number = locations_add(&firefox->locations, frame);
	const struct location *location = &firefox->locations.list[number];

	ASSERT(prefix == NONE || prefix < firefox->stacks_count);
	// Of inlined functions the outermost is the last line, and comes first: the prefix of the
	// next.
	for (uint32_t i = location->lines_count; i-- > 0;) {
		MEM_ROOM(firefox->stacks, firefox->stacks_capacity, firefox->stacks_count + 1);
		firefox->stacks[firefox->stacks_count] =
			(struct stack_row){ location->lines_first + i + 1, prefix };
		prefix = (uint32_t)firefox->stacks_count++;
	}
	return prefix;
}

// Callers before whom they called.
// The row of a stack: 0 of none. Each stack of the trace is followed once, up to one that is known.
static uint32_t stack_of(struct firefox *firefox, stack_id stack)
{
	uint64_t *known = NULL;
	uint32_t number = NONE;
	size_t depth = 0;

	// Up from the innermost frame to a stack that has its row, or to the root; then down again,
	// so that a row's prefix has its number first. For example main;f is known as row 2, and
	// main;f;g is asked for: `path` is g alone, and its row 3 has the prefix 2.
	while (stack && !(known = map_find(&firefox->stack_numbers, stack))) {
		const struct trace_stack *node = reader_stack(firefox->reader, stack);

		if (!node)
			break;
		*MEM_ADD(firefox->path, depth, firefox->path_capacity) = stack;
		stack = node->parent < stack ? node->parent : 0;
	}
	if (stack && known)
		number = (uint32_t)*known;
	if (!depth && number == NONE)
		return 0;
	while (depth-- > 0) {
		stack_id each = firefox->path[depth];
		const struct trace_stack *node = reader_stack(firefox->reader, each);

		if (!locations_leave_out(firefox->reader, node))
			number = add_frame(firefox, node->frame, number);
		*map_put(&firefox->stack_numbers, each, NULL) = number;
	}
	return number;
}

static void add_signed(struct str *out, int64_t value)
{
	if (value < 0)
		str_add_char(out, '-');
	str_add_digits(out, value < 0 ? -(uint64_t)value : (uint64_t)value);
}

// Milliseconds with as many digits as needed: 1,500,000 ns are 1.5.
static void add_ms(struct str *out, uint64_t time_ns)
{
	uint64_t rest = time_ns % NS_PER_MS;

	str_add_digits(out, time_ns / NS_PER_MS);
	if (!rest)
		return;
	str_add_char(out, '.');
	// 1,500,000 ns: 1, then 500,000 by units of 100,000 and less: one digit, 5, and nothing is
	// left.
	for (uint64_t unit = NS_PER_MS / 10; unit && rest; rest %= unit, unit /= 10)
		str_add_char(out, (char)('0' + rest / unit));
}

// The text of a column to its file.
static void spill_column(struct firefox *firefox, struct event_column *column)
{
	enum { BUFFER_BYTES = 1 << 16 };

	firefox->full = firefox->full ||
			(!column->spill.buffer &&
			 !spill_open_anywhere(&column->spill, BUFFER_BYTES, &firefox->err));
	for (size_t at = 0; at < column->text.length && !firefox->full; at += BUFFER_BYTES) {
		size_t left = column->text.length - at;

		spill_put(&column->spill, column->text.text + at,
			  left < BUFFER_BYTES ? left : BUFFER_BYTES);
	}
	str_clear(&column->text);
}

// Between two events stands a comma.
static void separate(struct firefox *firefox)
{
	enum { COLUMN_BYTES = 1 << 20 };

	for (int i = 0; i < COLUMNS && firefox->count; i++) {
		struct event_column *column = &firefox->columns[i];

		if (column->text.length >= COLUMN_BYTES)
			spill_column(firefox, column);
		str_add_char(&column->text, ',');
	}
}

// Beyond EVENTS_MAX it only counts: the profile ends with the first that has no room, so that its
// sums are right up to there.
static void add_event(struct firefox *firefox, uint64_t time_ns, const struct lives_block *block,
		      int64_t weight, thread_id thread, stack_id stack)
{
	const struct trace_thread *known = reader_thread(firefox->reader, thread);
	struct event_column *columns = firefox->columns;

	ASSERT(firefox->count <= EVENTS_MAX);
	// Beyond it the page itself gets slow or ends.
	if (firefox->count == EVENTS_MAX) {
		if (firefox->left_out++ == 0)
			firefox->end_ns = time_ns;
		return;
	}
	separate(firefox);
	add_ms(&columns[COLUMN_TIME].text, time_ns);
	add_signed(&columns[COLUMN_WEIGHT].text, weight);
	str_add_digits(&columns[COLUMN_STACK].text, stack_of(firefox, stack));
	str_add_digits(&columns[COLUMN_ADDRESS].text, block->address);
	str_add_digits(&columns[COLUMN_THREAD].text, known ? known->tid : 0);
	firefox->count++;
}

static void add_begin(void *context, const struct lives_block *block)
{
	add_event(context, block->time_ns, block, (int64_t)block->size, block->thread,
		  block->stack);
}

// A free of what was not seen allocated would make levels negative.
static void add_end(void *context, const struct lives_block *block, const struct lives_end *end)
{
	struct firefox *firefox = context;

	if (end->cause >= LIVES_EXIT)
		return;
	firefox->unknown += block->origin != LIVES_BEGUN;
	if (block->origin == LIVES_BEGUN)
		add_event(firefox, end->time_ns, block, -(int64_t)block->size, end->thread,
			  end->stack);
}

// ---- tables ----

// Text gathers and is written in pieces.
static void flush(struct firefox *firefox, size_t least)
{
	if (firefox->out.length < least)
		return;
	sink_write(firefox->sink, str_get(&firefox->out), firefox->out.length);
	str_clear(&firefox->out);
}

static void text(struct firefox *firefox, const char *words)
{
	str_add(&firefox->out, words);
}

static void quoted(struct firefox *firefox, const char *words)
{
	struct sink sink = sink_to_str(&firefox->out);
	struct json json;

	json_init(&json, &sink, false);
	json_string(&json, words);
}

static void add_number(struct str *out, uint32_t number)
{
	if (number == NONE)
		str_add(out, "null");
	else
		str_add_digits(out, number);
}

// "name":[…],
typedef void write_cell(struct firefox *firefox, size_t row);

// As many times the same.
static void column_of(struct firefox *firefox, const char *name, size_t count, const char *same)
{
	str_format(&firefox->out, "\"%s\":[", name);
	for (size_t i = 0; i < count; i++) {
		text(firefox, i ? "," : "");
		text(firefox, same);
		flush(firefox, 1 << 16);
	}
	text(firefox, "],");
}

static void column(struct firefox *firefox, const char *name, size_t count, write_cell *cell)
{
	str_format(&firefox->out, "\"%s\":[", name);
	for (size_t i = 0; i < count; i++) {
		if (i)
			str_add_char(&firefox->out, ',');
		cell(firefox, i);
		flush(firefox, 1 << 16);
	}
	text(firefox, "],");
}

static void end_table(struct firefox *firefox, size_t count)
{
	str_format(&firefox->out, "\"length\":%zu}", count);
}

static void write_column(struct firefox *firefox, const char *name, struct event_column *column)
{
	char piece[1 << 12];

	str_format(&firefox->out, "\"%s\":[", name);
	flush(firefox, 0);
	if (column->spill.buffer) {
		spill_turn(&column->spill);
		for (uint64_t left = column->spill.size; left;) {
			size_t size = left < sizeof piece ? (size_t)left : sizeof piece;

			spill_get(&column->spill, piece, size);
			sink_write(firefox->sink, piece, size);
			left -= size;
		}
	}
	sink_write(firefox->sink, str_get(&column->text), column->text.length);
	text(firefox, "],");
}

// Time, weight, stack, address and thread: a column each, of all events.
static void write_events(struct firefox *firefox)
{
	static const char *const names[COLUMNS] = {
		[COLUMN_TIME] = "time",       [COLUMN_WEIGHT] = "weight",
		[COLUMN_STACK] = "stack",     [COLUMN_ADDRESS] = "memoryAddress",
		[COLUMN_THREAD] = "threadId",
	};

	text(firefox, "\"nativeAllocations\":{");
	for (int i = 0; i < COLUMNS; i++)
		write_column(firefox, names[i], &firefox->columns[i]);
	text(firefox, "\"weightType\":\"bytes\",");
	end_table(firefox, firefox->count);
}

static void cell_frame(struct firefox *firefox, size_t row)
{
	str_add_digits(&firefox->out, firefox->stacks[row].frame);
}

static void cell_prefix(struct firefox *firefox, size_t row)
{
	add_number(&firefox->out, firefox->stacks[row].prefix);
}

static void write_stacks(struct firefox *firefox)
{
	size_t count = firefox->stacks_count;

	text(firefox, ",\"stackTable\":{");
	column(firefox, "frame", count, cell_frame);
	column(firefox, "prefix", count, cell_prefix);
	column_of(firefox, "category", count, "0");
	column_of(firefox, "subcategory", count, "0");
	end_table(firefox, count);
}

static void cell_function(struct firefox *firefox, size_t row)
{
	str_add_digits(&firefox->out,
		       // Row 0 is "(no stack)", so lines and functions are numbered from 1.
		       row ? firefox->locations.lines[row - 1].function + UINT64_C(1) : 0);
}

static void cell_line(struct firefox *firefox, size_t row)
{
	uint32_t line = row ? firefox->locations.lines[row - 1].line : 0;

	add_number(&firefox->out, line ? line : NONE);
}

// Row 0 and one for each line of a location; addresses are not given, as names are known already.
static void write_frames(struct firefox *firefox)
{
	size_t count = firefox->locations.lines_count + 1;

	text(firefox, ",\"frameTable\":{");
	column_of(firefox, "address", count, "-1");
	column_of(firefox, "inlineDepth", count, "0");
	column_of(firefox, "category", count, "0");
	column_of(firefox, "subcategory", count, "0");
	column(firefox, "func", count, cell_function);
	column_of(firefox, "nativeSymbol", count, "null");
	column_of(firefox, "innerWindowID", count, "null");
	column_of(firefox, "implementation", count, "null");
	column(firefox, "line", count, cell_line);
	column_of(firefox, "column", count, "null");
	end_table(firefox, count);
}

static void cell_name(struct firefox *firefox, size_t row)
{
	str_add_digits(&firefox->out, row ? firefox->locations.functions[row - 1].name : 0);
}

static void cell_file(struct firefox *firefox, size_t row)
{
	uint32_t file = row ? firefox->locations.functions[row - 1].file : 0;

	add_number(&firefox->out, row && *firefox->locations.strings.texts[file] ? file : NONE);
}

static void cell_string(struct firefox *firefox, size_t row)
{
	quoted(firefox, firefox->locations.strings.texts[row]);
}

static void write_functions(struct firefox *firefox)
{
	size_t count = firefox->locations.functions_count + 1;

	text(firefox, ",\"funcTable\":{");
	column(firefox, "name", count, cell_name);
	column_of(firefox, "isJS", count, "false");
	column_of(firefox, "relevantForJS", count, "false");
	column_of(firefox, "resource", count, "-1");
	column(firefox, "fileName", count, cell_file);
	column_of(firefox, "lineNumber", count, "null");
	column_of(firefox, "columnNumber", count, "null");
	end_table(firefox, count);
	text(firefox, ",");
	column(firefox, "stringArray", firefox->locations.strings.count, cell_string);
}

// Tables that have no rows here.
static const char empty_tables[] =
	"\"resourceTable\":{\"length\":0,\"lib\":[],\"name\":[],\"host\":[],\"type\":[]},"
	"\"nativeSymbols\":{\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[],"
	"\"length\":0},"
	"\"markers\":{\"data\":[],\"name\":[],\"startTime\":[],\"endTime\":[],\"phase\":[],"
	"\"category\":[],\"length\":0},";

// Two, without stacks: the page begins where the first one is, and ends at the last.
static void write_samples(struct firefox *firefox)
{
	const struct query_context *asked = firefox->source->asked;

	// A file that was cut at EVENTS_MAX ends where its last event is, or the page would show a
	// long level that is not true.
	text(firefox, "\"samples\":{\"weightType\":\"samples\",\"weight\":null,"
		      "\"stack\":[null,null],\"time\":[");
	add_ms(&firefox->out, asked->from_given ? asked->from_ns : 0);
	text(firefox, ",");
	if (firefox->left_out)
		add_ms(&firefox->out, firefox->end_ns);
	else
		add_ms(&firefox->out, asked->to_given ? asked->to_ns : asked->duration_ns);
	text(firefox, "],\"length\":2}");
}

static void write_head(struct firefox *firefox)
{
	const struct trace_info *info = reader_info(firefox->reader);
	const struct trace_process *process = reader_process(firefox->reader, firefox->process);

	str_format(&firefox->out,
		   "{\"meta\":{\"version\":%d,\"preprocessedProfileVersion\":%d,\"interval\":1,"
		   "\"startTime\":%" PRIu64 ",\"processType\":0,\"stackwalk\":1,\"debug\":false,"
		   "\"symbolicated\":true,\"extensions\":{\"id\":[],\"name\":[],\"baseURL\":[],"
		   "\"length\":0},\"markerSchema\":[],\"categories\":[{\"name\":\"Other\","
		   "\"color\":\"grey\",\"subcategories\":[\"Other\"]}],\"product\":",
		   GECKO_VERSION, VERSION, info->began_unix_ns / NS_PER_MS);
	quoted(firefox, info->command);
	text(firefox, ",\"importedFrom\":");
	quoted(firefox, info->tool);
	text(firefox, "},\"libs\":[],\"pages\":[],\"counters\":[],\"threads\":[{"
		      "\"processType\":\"default\",\"pausedRanges\":[],\"isMainThread\":true,"
		      "\"processShutdownTime\":null,\"unregisterTime\":null,\"name\":");
	quoted(firefox, defs_program(process));
	text(firefox, ",\"processName\":");
	quoted(firefox, defs_program(process));
	str_format(&firefox->out, ",\"pid\":\"%" PRIu32 "\",\"tid\":%" PRIu32, process->pid,
		   process->pid);
	text(firefox, ",\"processStartupTime\":");
	add_ms(&firefox->out, process->began_ns);
	text(firefox, ",\"registerTime\":");
	add_ms(&firefox->out, process->began_ns);
	text(firefox, ",");
}

static void write_profile(struct firefox *firefox)
{
	ASSERT(firefox->stacks_count > 0);
	write_head(firefox);
	write_events(firefox);
	write_stacks(firefox);
	write_frames(firefox);
	write_functions(firefox);
	text(firefox, empty_tables);
	write_samples(firefox);
	text(firefox, "}]}\n");
	flush(firefox, 0);
}

static void say_limits(const struct firefox *firefox)
{
	if (firefox->left_out)
		export_say(firefox->source,
			   "%s of %s events are left out, being more than Firefox's profiler can "
			   "hold: the file ends at %" PRIu64 " ns, and --from %" PRIu64
			   "ns has what comes then",
			   STR_COUNT(firefox->left_out),
			   STR_COUNT(firefox->count + firefox->left_out), firefox->end_ns,
			   firefox->end_ns);
	if (firefox->unknown)
		export_say(firefox->source,
			   "%" PRIu64 " frees of blocks that were not seen allocated are left out",
			   firefox->unknown);
}

static void begin_tables(struct firefox *firefox)
{
	string_table_add(&firefox->locations.strings, "(no stack)");
	firefox->stacks = mem_grow(NULL, &firefox->stacks_capacity, 1, sizeof *firefox->stacks);
	firefox->stacks[firefox->stacks_count++] = (struct stack_row){ 0, NONE };
}

// Whether all that went to files came back.
static bool is_whole(const struct firefox *firefox, struct err *err)
{
	bool whole = !firefox->full;

	if (firefox->full)
		*err = firefox->err;
	for (int i = 0; i < COLUMNS && whole; i++)
		whole = spill_ok(&firefox->columns[i].spill, err);
	return whole || err_wrap(err, "events that do not fit in memory go to $TMPDIR");
}

static void firefox_fini(struct firefox *firefox)
{
	locations_fini(&firefox->locations);
	map_fini(&firefox->stack_numbers);
	str_fini(&firefox->out);
	for (int i = 0; i < COLUMNS; i++) {
		str_fini(&firefox->columns[i].text);
		spill_close(&firefox->columns[i].spill);
	}
	MEM_FREE(firefox->stacks, firefox->path);
}

static bool write(const struct export_source *source, struct sink *sink, struct err *err)
{
	struct firefox firefox = {
		.source = source,
		.reader = source->asked->reader,
		.sink = sink,
		.locations = { .reader = source->asked->reader, .names = source->asked->names },
	};
	struct events_watcher watcher = { .begin = add_begin, .end = add_end, .context = &firefox };
	bool good;

	if (!events_choose(source, "a profile with native allocations", &firefox.process, err))
		return false;
	watcher.process = firefox.process;
	begin_tables(&firefox);
	good = events_read(source, &watcher, err);
	write_profile(&firefox);
	say_limits(&firefox);
	good = good && is_whole(&firefox, err);
	firefox_fini(&firefox);
	return good;
}

const struct export_format firefox_format = {
	.name = "firefox",
	.brief = "the blocks of one process for profiler.firefox.com: native allocations",
	.is_text = true,
	.write = write,
};
