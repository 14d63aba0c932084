// heaptrack: the blocks of one process in the interpreted format of heaptrack 1.4, in
// gzip, which heaptrack_print and heaptrack_gui read.
//
// A line each, numbers in hex: `s` a string, `i` an address with its functions (innermost first),
// `t` an address and the `t` of its caller, `a` a size and a `t`, `+` and `-` a block of an `a`
// that begins or ends, `c` milliseconds, `R` resident pages. What a line refers to stands before
// it; s, i and t count from 1, a from 0. For example, main (a.c:3) allocates 16 bytes and frees
// them 2 ms later:
//
//     s 3 a.o
//     s 4 main
//     s 3 a.c
//     i 401000 1 2 3 3
//     t 1 0
//     a 10 1
//     + 0
//     c 2
//     - 0
//
// What lived when the window began is written as if it had been allocated then, so that levels and
// peaks are right. What lives at its end has no `-`: heaptrack calls it leaked.
#include "export/events.h"
#include "export/gzip.h"
#include "export/locations.h"

#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

enum { PAGE_BYTES = 4096, NS_PER_MS = 1000000 };

// An `a` line.
struct kind {
	uint64_t size;
	stack_id stack;
};

struct heaptrack {
	const struct export_source *source;
	const struct reader *reader;
	struct gzip *gzip;
	struct str text;
	struct locations locations;
	size_t strings_count, ips_count; // written so far
	struct map traces;               // by stack: its number
	uint64_t traces_count;           // `t` lines written so far
	stack_id *path;
	size_t path_capacity;
	struct kind *kinds;
	size_t kinds_count, kinds_capacity;
	struct index_set kinds_set;
	uint64_t from_ns, ms;
	uint64_t before_count, before_bytes;
	process_id process;
};

// Text gathers and is compressed in pieces.
static void flush(struct heaptrack *heaptrack, size_t least)
{
	if (heaptrack->text.length < least)
		return;
	gzip_write(heaptrack->gzip, str_get(&heaptrack->text), heaptrack->text.length);
	str_clear(&heaptrack->text);
}

// ---- tables ----

// Numbers count from 1; 0 is no string.
static uint32_t string_number(const struct heaptrack *heaptrack, uint32_t string)
{
	ASSERT(string < heaptrack->locations.strings.count);
	return *heaptrack->locations.strings.texts[string] ? string + 1 : 0;
}

// Strings that locations have met since the last time. None is empty, so that no reader has to
// read nothing.
static void write_strings(struct heaptrack *heaptrack)
{
	const struct string_table *strings = &heaptrack->locations.strings;

	for (; heaptrack->strings_count < strings->count; heaptrack->strings_count++) {
		const char *text = strings->texts[heaptrack->strings_count];

		if (!*text)
			text = "-";
		str_format(&heaptrack->text, "s %zx ", strlen(text));
		for (; *text; text++)
			str_add_char(&heaptrack->text, *text == '\n' ? ' ' : *text);
		str_add_char(&heaptrack->text, '\n');
	}
}

// The number of a frame's `i` line, which is written when it is first met, after its strings.
static uint32_t ip_of(struct heaptrack *heaptrack, frame_id frame)
{
	struct locations *locations = &heaptrack->locations;
	uint32_t number = locations_add(locations, frame);
	const struct location *location = &locations->list[number];

	// Numbers are given in a row: a new one is the first that has no line yet.
	ASSERT(number < locations->count && number <= heaptrack->ips_count);
	if (number < heaptrack->ips_count)
		return number + 1;
	heaptrack->ips_count = number + (size_t)1;
	write_strings(heaptrack);
	str_format(&heaptrack->text, "i %" PRIx64,
		   reader_address(heaptrack->reader, frame, heaptrack->process));
	for (uint32_t i = 0; i < location->lines_count; i++) {
		const struct location_line *line = &locations->lines[location->lines_first + i];
		const struct location_function *function = &locations->functions[line->function];

		if (i == 0)
			str_format(&heaptrack->text, " %x",
				   string_number(heaptrack, function->module));
		str_format(&heaptrack->text, " %x %x %x", string_number(heaptrack, function->name),
			   string_number(heaptrack, function->file), line->line);
	}
	str_add_char(&heaptrack->text, '\n');
	return number + 1;
}

// Callers are written before whom they called.
static uint64_t trace_of(struct heaptrack *heaptrack, stack_id stack)
{
	uint64_t *known = NULL, number;
	size_t depth = 0;

	// As in firefox.c: up to a stack that has its line, then down again, callers first.
	while (stack && !(known = map_find(&heaptrack->traces, stack))) {
		const struct trace_stack *node = reader_stack(heaptrack->reader, stack);

		if (!node)
			break;
		*MEM_ADD(heaptrack->path, depth, heaptrack->path_capacity) = stack;
		stack = node->parent < stack ? node->parent : 0;
	}
	number = stack && known ? *known : 0;
	while (depth-- > 0) {
		stack_id each = heaptrack->path[depth];
		const struct trace_stack *node = reader_stack(heaptrack->reader, each);

		if (!locations_leave_out(heaptrack->reader, node)) {
			uint32_t ip = ip_of(heaptrack, node->frame);

			str_format(&heaptrack->text, "t %x %" PRIx64 "\n", ip, number);
			number = ++heaptrack->traces_count;
		}
		*map_put(&heaptrack->traces, each, NULL) = number;
	}
	return number;
}

static bool is_kind(const void *context, uint32_t position, const void *key)
{
	const struct heaptrack *heaptrack = context;
	const struct kind *there = &heaptrack->kinds[position], *wanted = key;

	ASSERT(position < heaptrack->kinds_count);
	return there->size == wanted->size && there->stack == wanted->stack;
}

// The number of an `a` line: blocks of one size and stack share it, so that an event is a few
// bytes.
static uint32_t kind_of(struct heaptrack *heaptrack, const struct lives_block *block)
{
	const struct kind kind = { block->size, block->stack };
	const uint64_t numbers[] = { kind.size, kind.stack };
	uint32_t found = index_set_put(&heaptrack->kinds_set, index_set_hash(numbers, 2), is_kind,
				       heaptrack, &kind, (uint32_t)heaptrack->kinds_count);

	if (found < heaptrack->kinds_count)
		return found;
	*MEM_ADD(heaptrack->kinds, heaptrack->kinds_count, heaptrack->kinds_capacity) = kind;
	str_format(&heaptrack->text, "a %" PRIx64 " %" PRIx64 "\n", kind.size,
		   trace_of(heaptrack, kind.stack));
	return found;
}

// ---- events ----

// Only when the millisecond has changed.
static void write_time(struct heaptrack *heaptrack, uint64_t time_ns)
{
	// Events before the window (a block that lived then) are at its beginning.
	uint64_t ms = time_ns > heaptrack->from_ns ? (time_ns - heaptrack->from_ns) / NS_PER_MS : 0;

	if (ms > heaptrack->ms)
		str_format(&heaptrack->text, "c %" PRIx64 "\n", ms);
	heaptrack->ms = ms;
}

static void write_begin(void *context, const struct lives_block *block)
{
	struct heaptrack *heaptrack = context;
	uint32_t kind = kind_of(heaptrack, block);

	write_time(heaptrack, block->time_ns);
	str_format(&heaptrack->text, "+ %x\n", kind);
	flush(heaptrack, 1 << 16);
}

// Without a time of its own: all are at the window's beginning, before the first `c`.
static void write_before(void *context, const struct lives_block *block)
{
	struct heaptrack *heaptrack = context;

	heaptrack->before_count++;
	heaptrack->before_bytes += block->size;
	str_format(&heaptrack->text, "+ %x\n", kind_of(heaptrack, block));
	flush(heaptrack, 1 << 16);
}

static void write_end(void *context, const struct lives_block *block, const struct lives_end *end)
{
	struct heaptrack *heaptrack = context;

	if (block->origin != LIVES_BEGUN || end->cause >= LIVES_EXIT)
		return;
	write_time(heaptrack, end->time_ns);
	str_format(&heaptrack->text, "- %x\n", kind_of(heaptrack, block));
	flush(heaptrack, 1 << 16);
}

// The end of the process is a time, too: the last of the file.
static void write_note(void *context, const struct trace_note *note)
{
	struct heaptrack *heaptrack = context;

	if (note->process != heaptrack->process ||
	    (note->kind != TRACE_NOTE_RSS && note->kind != TRACE_NOTE_PROCESS_END))
		return;
	write_time(heaptrack, note->time_ns);
	if (note->kind == TRACE_NOTE_RSS)
		str_format(&heaptrack->text, "R %" PRIx64 "\n", note->value / PAGE_BYTES);
}

// ---- the whole ----

// A line break in the command would begin a line of another kind.
static void write_head(struct heaptrack *heaptrack)
{
	const struct trace_process *process = reader_process(heaptrack->reader, heaptrack->process);

	str_add(&heaptrack->text, "v 10400 3\nX ");
	for (uint32_t i = 0; i < process->args_count; i++)
		str_format(&heaptrack->text, "%s%s", i ? " " : "", process->args[i]);
	if (process->args_count == 0)
		str_add(&heaptrack->text, process->exe);
	// After the first line, which is ours and ends in a break.
	for (char *at = heaptrack->text.text + strlen("v 10400 3\n"); *at; at++)
		if (*at == '\n')
			*at = ' ';
	str_format(&heaptrack->text, "\nI %x 0\n", PAGE_BYTES);
}

static void say_limits(const struct heaptrack *heaptrack)
{
	if (heaptrack->before_count)
		export_say(heaptrack->source,
			   "%" PRIu64 " blocks of %" PRIu64
			   " bytes in all, which lived when the window began, are written as "
			   "allocated then",
			   heaptrack->before_count, heaptrack->before_bytes);
}

static void heaptrack_fini(struct heaptrack *heaptrack)
{
	locations_fini(&heaptrack->locations);
	map_fini(&heaptrack->traces);
	index_set_fini(&heaptrack->kinds_set);
	str_fini(&heaptrack->text);
	MEM_FREE(heaptrack->kinds, heaptrack->path);
}

static bool write(const struct export_source *source, struct sink *sink, struct err *err)
{
	struct query_context *asked = source->asked;
	struct heaptrack heaptrack = {
		.source = source,
		.reader = asked->reader,
		.locations = { .reader = asked->reader, .names = asked->names },
		.from_ns = asked->from_given ? asked->from_ns : 0,
	};
	struct events_watcher watcher = {
		.before = write_before,
		.begin = write_begin,
		.end = write_end,
		.note = write_note,
		.context = &heaptrack,
	};
	bool good;

	if (!events_choose(source, "a file of heaptrack", &heaptrack.process, err))
		return false;
	watcher.process = heaptrack.process;
	heaptrack.gzip = gzip_begin(sink);
	write_head(&heaptrack);
	good = events_read(source, &watcher, err);
	flush(&heaptrack, 0);
	gzip_end(heaptrack.gzip);
	say_limits(&heaptrack);
	heaptrack_fini(&heaptrack);
	return good;
}

const struct export_format heaptrack_format = {
	.name = "heaptrack",
	.brief = "the blocks of one process for heaptrack_print and heaptrack_gui",
	.ending = ".gz",
	.write = write,
};
