// What a source calls things, it is looked up by: a process, a thread, a module and a frame have a
// text each, and equal texts are one definition. For example, the process "4242" is one with that
// pid, and the process "worker", which is no number, gets the next number of those without one,
// from 1. The frame "parse (a.c:12)" is the function parse, line 12 of a.c, at an address that no
// other frame has; the frame "0x4010a0" is that address, in no module.
//
// The writer is made with the first definition: what the whole trace says of itself (intake_info,
// intake_lacks) has to be known by then.
#include "import/intake.h"

#include "base/index_set.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "import/number.h"
#include "os/now.h"
#include "os/tool.h"
#include "trace/writer.h"

#include <inttypes.h>
#include <string.h>

// Texts with an id each. `rows` are in the order of definition; `set` finds a row by the hash of
// its text. Texts are copies.
struct texts {
	struct text_row {
		char *text;
		uint32_t space, id; // texts of different spaces are different
	} * rows;
	size_t count, capacity;
	struct index_set set;
};

struct wanted {
	const char *text;
	size_t length;
	uint32_t space;
};

// Frames without an address have one each, since equal ones would be one place.
#define NAMED_PC (UINT64_C(1) << 32)

// Once `err` is set there is no writer, and all ids are 0: importers need not ask after each call.
struct intake {
	int fd;
	struct trace_info info;
	struct str options;
	struct writer *writer; // NULL until the first definition
	struct err err;

	struct texts processes, threads, modules, frames, named, stacks;
	struct map addresses[2]; // pc to frame: without a module; by module and pc, hashed
	struct map children;     // callers and frame to stack
	uint32_t processes_named, threads_named;
	uint64_t last_ns, raised, lost;
};

// The id of a recording is made from the time and our pid: two imports have different ones.
struct intake *intake_new(int fd, const char *format)
{
	struct intake *intake = mem_alloc(1, sizeof *intake);
	uint64_t seed[2] = { now_wall_ns(), tool_own_pid() };

	intake->fd = fd;
	str_format(&intake->options, "imported=%s", format);
	// Two hashes of 64 bits are the 128 of an id.
	for (size_t i = 0; i < 2; i++) {
		uint64_t hash = index_set_hash(seed, 2);

		memcpy(intake->info.recording_id + 8 * i, &hash, sizeof hash);
		seed[1] = ~hash;
	}
	return intake;
}

static void fini_texts(struct texts *texts)
{
	for (size_t i = 0; i < texts->count; i++)
		mem_free(texts->rows[i].text);
	mem_free(texts->rows);
	index_set_fini(&texts->set);
}

void intake_free(struct intake *intake)
{
	if (!intake)
		return;
	writer_free(intake->writer);
	fini_texts(&intake->processes);
	fini_texts(&intake->threads);
	fini_texts(&intake->modules);
	fini_texts(&intake->named);
	fini_texts(&intake->frames);
	fini_texts(&intake->stacks);
	MAP_FINI(&intake->addresses[0], &intake->addresses[1], &intake->children);
	MEM_FREE(intake->info.tool, intake->info.host, intake->info.command,
		 intake->info.directory);
	str_fini(&intake->options);
	mem_free(intake);
}

struct trace_info *intake_info(struct intake *intake)
{
	return &intake->info;
}

// Too late once the writer is made: the words are in the file's first block.
void intake_lacks(struct intake *intake, const char *word)
{
	ASSERT(!intake->writer);
	str_format(&intake->options, " %s", word);
}

// The writer, or NULL if it could not be made, which is tried once. The options are complete by
// then, which is why it is not done in intake_new.
static struct writer *writer_of(struct intake *intake)
{
	struct trace_info info = intake->info;

	if (intake->writer || intake->err.kind != ERR_NONE)
		return intake->writer;
	info.options = intake->options.text;
	intake->writer = writer_new(intake->fd, &info, &intake->err);
	return intake->writer;
}

// ---- texts with ids ----

// The text that is looked for need not end with a NUL: it is mostly a part of a line.
static bool is_text(const void *context, uint32_t position, const void *key)
{
	const struct text_row *row = &((const struct texts *)context)->rows[position];
	const struct wanted *wanted = key;

	return row->space == wanted->space &&
	       strncmp(row->text, wanted->text, wanted->length) == 0 &&
	       row->text[wanted->length] == '\0';
}

// FNV-1a.
static uint64_t hash_wanted(const struct wanted *wanted)
{
	uint64_t hash = 0xcbf29ce484222325 ^ wanted->space;

	for (size_t i = 0; i < wanted->length; i++)
		hash = (hash ^ (uint8_t)wanted->text[i]) * 0x100000001b3;
	return hash;
}

// The row of a text; `*added`: its id is to be filled in. The row stays valid until the next text
// is put.
static struct text_row *put_text(struct texts *texts, const char *text, size_t length,
				 uint32_t space, bool *added)
{
	struct wanted wanted = { .text = text, .length = length, .space = space };
	uint32_t at = index_set_put(&texts->set, hash_wanted(&wanted), is_text, texts, &wanted,
				    (uint32_t)texts->count);

	ASSERT(at <= texts->count);
	ASSERT(texts->count < UINT32_MAX);
	*added = at == texts->count;
	if (*added) {
		*MEM_ADD(texts->rows, texts->count, texts->capacity) = (struct text_row){
			.text = mem_copy_bytes(text, length),
			.space = space,
		};
	}
	return &texts->rows[at];
}

// ---- processes and threads ----

static process_id add_process(struct intake *intake, uint32_t pid, const char *exe)
{
	struct trace_process process = { .parent = TRACE_NONE,
					 .pid = pid,
					 .start = TRACE_START_EXEC,
					 .bits = 64,
					 .exe = (char *)exe };

	return writer_of(intake) ? writer_add_process(intake->writer, &process) : 0;
}

// A number of more than 32 bits is a name like any other.
process_id intake_process(struct intake *intake, const char *called)
{
	// NULL is the one process of a source that names none.
	const char *text = called ? called : "";
	bool added;
	struct text_row *row = put_text(&intake->processes, text, strlen(text), 0, &added);
	uint64_t pid;

	if (!added)
		return row->id;
	if (number_parse(text, strlen(text), &pid) && pid <= UINT32_MAX)
		row->id = add_process(intake, (uint32_t)pid, "");
	else
		row->id = add_process(intake, ++intake->processes_named, text);
	return row->id;
}

process_id intake_add_process(struct intake *intake, const char *exe)
{
	return add_process(intake, ++intake->processes_named, exe);
}

process_id intake_put_process(struct intake *intake, const struct trace_process *process)
{
	return writer_of(intake) ? writer_add_process(intake->writer, process) : 0;
}

thread_id intake_put_thread(struct intake *intake, process_id process, uint32_t tid)
{
	return writer_of(intake) ? writer_add_thread(intake->writer, process, tid, "") : 0;
}

heap_id intake_put_heap(struct intake *intake, const struct trace_heap *heap)
{
	return writer_of(intake) ? writer_add_heap(intake->writer, heap) : 0;
}

// Threads of two processes may be called alike: the process is the space of the text.
thread_id intake_thread(struct intake *intake, process_id process, const char *called)
{
	const char *text = called ? called : "";
	bool added;
	struct text_row *row = put_text(&intake->threads, text, strlen(text), process, &added);
	uint64_t tid;

	if (!added || !writer_of(intake))
		return row->id;
	if (number_parse(text, strlen(text), &tid) && tid <= UINT32_MAX)
		row->id = writer_add_thread(intake->writer, process, (uint32_t)tid, "");
	else
		row->id = writer_add_thread(intake->writer, process, ++intake->threads_named, text);
	return row->id;
}

module_id intake_add_module(struct intake *intake, const struct trace_module *module)
{
	return writer_of(intake) ? writer_add_module(intake->writer, module) : 0;
}

// The same file at the same place in one process is one module, however often it is named.
module_id intake_module(struct intake *intake, const struct trace_module *module)
{
	struct str key = { 0 };
	struct text_row *row;
	bool added;

	ASSERT(module->path && module->start <= module->end);
	// The path comes last: it may have blanks in it, the numbers have none.
	str_format(&key, "%" PRIx64 " %" PRIx64 " %" PRIx64 " %s", module->start, module->end,
		   module->bias, module->path);
	row = put_text(&intake->modules, key.text, key.length, module->process, &added);
	if (added)
		row->id = intake_add_module(intake, module);
	str_fini(&key);
	return row->id;
}

// ---- frames and stacks ----

// A frame of no module is found by its address, one of a module by a hash of both. Two pairs with
// the same hash of 64 bits would be one frame; of a billion frames that happens once in 37 times.
frame_id intake_frame_address(struct intake *intake, module_id module, uint64_t pc)
{
	uint64_t pair[2] = { module, pc };
	bool added;
	// Without a module the address itself is the key, so that no two can be taken for one.
	uint64_t *frame = map_put(&intake->addresses[module != 0],
				  module ? index_set_hash(pair, 2) : pc, &added);

	if (added && writer_of(intake))
		*frame = writer_add_frame(intake->writer, module, pc, 0);
	return (frame_id)*frame;
}

// A new frame each time: that equal ones are one is the caller's business.
frame_id intake_frame_names(struct intake *intake, uint64_t pc, const struct trace_name *names,
			    size_t count)
{
	frame_id frame;

	ASSERT(names && count > 0);
	if (!writer_of(intake))
		return 0;
	frame = writer_add_frame(intake->writer, 0, pc, 0);
	if (count > 0)
		writer_add_name(intake->writer, frame, names, count);
	return frame;
}

// The names are the key, each ended by a line end, which no name has.
frame_id intake_frame_named(struct intake *intake, const struct trace_name *names, size_t count)
{
	struct str key = { 0 };
	struct text_row *row;
	bool added;

	ASSERT(names && count > 0);
	for (size_t i = 0; i < count; i++)
		str_format(&key, "%s\n%s\n%" PRIu32 "\n", names[i].function, names[i].file,
			   names[i].line);
	row = put_text(&intake->named, str_get(&key), key.length, 0, &added);
	if (added)
		row->id = intake_frame_names(intake, NAMED_PC + intake->named.count, names, count);
	str_fini(&key);
	return row->id;
}

// "FUNCTION (FILE:LINE)" apart, where it is that. Cuts the text. The last " (" counts, as names of
// C++ have brackets of their own: "f(int) (a.cc:7)".
static void split_place(char *text, struct trace_name *name)
{
	size_t length = strlen(text);
	char *open = NULL, *colon;
	uint64_t line;

	name->function = text;
	name->file = "";
	if (length > 0 && text[length - 1] == ')')
		for (char *at = strstr(text, " ("); at; at = strstr(at + 1, " ("))
			open = at;
	colon = open ? strrchr(open, ':') : NULL;
	// "(:12)" has no file; "f (x)" no line: such a text is a function as a whole.
	if (!colon || colon == open + 2 ||
	    !number_parse(colon + 1, (size_t)(text + length - 1 - (colon + 1)), &line) ||
	    line > UINT32_MAX)
		return;
	*open = *colon = '\0';
	name->file = open + 2;
	name->line = (uint32_t)line;
}

// A text that is a number is an address. The pc of a frame without one is its number among the
// texts, below NAMED_PC.
frame_id intake_frame_text(struct intake *intake, const char *text, size_t length)
{
	struct trace_name name = { 0 };
	struct text_row *row;
	uint64_t pc;
	bool added;
	char *copy;

	// Separators are often written with a blank, as in "main; f".
	while (length > 0 && *text == ' ')
		text++, length--;
	while (length > 0 && text[length - 1] == ' ')
		length--;
	if (length == 0)
		return 0;
	if (number_parse(text, length, &pc))
		return intake_frame_address(intake, 0, pc);
	row = put_text(&intake->frames, text, length, 0, &added);
	if (added) {
		copy = mem_copy_bytes(text, length);
		split_place(copy, &name);
		// Each has an address of its own, since equal ones would be one place.
		row->id = intake_frame_names(intake, intake->frames.count, &name, 1);
		mem_free(copy);
	}
	return row->id;
}

// A frame of 0 adds nothing, so that a caller need not ask whether a frame was empty.
stack_id intake_stack(struct intake *intake, stack_id callers, frame_id frame)
{
	bool added;
	uint64_t *stack;

	if (!frame || !writer_of(intake))
		return callers;
	stack = map_put(&intake->children, (uint64_t)callers << 32 | frame, &added);
	if (added)
		*stack = writer_add_stack(intake->writer, callers, frame, 0);
	return (stack_id)*stack;
}

// Goes through the text from the outermost frame inwards, whichever end that is.
static stack_id make_stack(struct intake *intake, const char *text, enum intake_order order)
{
	const char *end = text + strlen(text);
	stack_id stack = 0;

	// For example "main;f;g": outermost first it takes main, f, g from the front; innermost
	// first, for the same stack written g;f;main, from the end: main, f, g again.
	while (text < end) {
		const char *first = text, *after = memchr(text, ';', (size_t)(end - text));

		if (order == INTAKE_OUTERMOST_FIRST) {
			after = after ? after : end;
			text = after == end ? end : after + 1;
		} else {
			after = end;
			first = str_find_last(text, ';', (size_t)(end - text));
			end = first ? first : text;
			first = first ? first + 1 : text;
		}
		stack = intake_stack(intake, stack,
				     intake_frame_text(intake, first, (size_t)(after - first)));
	}
	return stack;
}

// A text that was met before is one look-up; its frames are not looked at again.
stack_id intake_stack_text(struct intake *intake, const char *text, enum intake_order order)
{
	struct text_row *row;
	stack_id stack;
	size_t at;
	bool added;

	if (!*text)
		return 0;
	row = put_text(&intake->stacks, text, strlen(text), order, &added);
	if (!added)
		return row->id;
	at = (size_t)(row - intake->stacks.rows);
	stack = make_stack(intake, text, order); // `row` may have moved
	ASSERT(at < intake->stacks.count);
	intake->stacks.rows[at].id = stack;
	return stack;
}

// ---- items ----

// Sources that write from several threads have times that fall by a little. The writer raises them;
// here they are counted, for a remark.
static void follow_time(struct intake *intake, uint64_t time_ns)
{
	// The highest time so far stays, so each that is below it counts, and not only the first.
	if (time_ns < intake->last_ns)
		intake->raised++;
	else
		intake->last_ns = time_ns;
}

void intake_event(struct intake *intake, const struct trace_event *event)
{
	follow_time(intake, event->time_ns);
	if (writer_of(intake))
		writer_event(intake->writer, event);
}

void intake_note(struct intake *intake, const struct trace_note *note)
{
	if (writer_of(intake))
		writer_note(intake->writer, note);
}

void intake_exit(struct intake *intake, process_id process, uint64_t time_ns, enum trace_exit how,
		 uint32_t value)
{
	follow_time(intake, time_ns);
	if (writer_of(intake))
		writer_process_end(intake->writer, process, time_ns, how, value);
}

void intake_reach(struct intake *intake, const struct trace_reach *reach)
{
	if (writer_of(intake))
		writer_reach(intake->writer, reach);
}

void intake_mark(struct intake *intake, uint64_t time_ns, const char *name)
{
	follow_time(intake, time_ns);
	intake_note(intake, &(struct trace_note){
				    .kind = TRACE_NOTE_MARK,
				    .process = TRACE_NONE,
				    .thread = TRACE_NONE,
				    .time_ns = intake->last_ns,
				    .text = name,
			    });
}

void intake_lose(struct intake *intake, uint64_t count, const char *why)
{
	ASSERT(why);
	intake->lost += count;
	intake_note(intake, &(struct trace_note){
				    .kind = TRACE_NOTE_LOSS,
				    .process = TRACE_NONE,
				    .thread = TRACE_NONE,
				    .time_ns = intake->last_ns,
				    .value = count,
				    .text = why,
			    });
}

uint64_t intake_events(const struct intake *intake)
{
	return intake->writer ? writer_events_count(intake->writer) : 0;
}

uint64_t intake_raised(const struct intake *intake)
{
	return intake->raised;
}

static bool intake_ok(struct intake *intake, struct err *err)
{
	if (intake->writer)
		return writer_ok(intake->writer, err);
	if (intake->err.kind != ERR_NONE)
		*err = intake->err;
	return intake->err.kind == ERR_NONE;
}

// A source without any definition still makes a trace, so the writer is made here at the latest.
bool intake_end(struct intake *intake, const char *why, struct err *err)
{
	struct trace_end end = { .why = (char *)(why ? why : "") };

	if (!writer_of(intake))
		return intake_ok(intake, err);
	ASSERT(intake->writer);
	end.duration_ns = intake->last_ns;
	end.events_lost = intake->lost;
	writer_end(intake->writer, &end);
	return writer_ok(intake->writer, err);
}
