// Reads the text form of a trace and writes the trace. Each line begins with a word that names its
// kind (rows of a table below); a line that is not understood is an error with line and column.
//
// Things have labels, words that count only in the text: ids of the trace are made in the order of
// the lines. For example
//
//     process p pid=4242 exe="/bin/cook"
//     thread t p tid=4242
//     stack pot "make_pot" < "cook" < "main"
//     +0us   t malloc pot 0x1000 100
//     +100us t free 0x1000
//
// is process 0, thread 0, a stack of three frames, and two events, the second one 100 microseconds
// after the first. A label that no line above has defined is a mistake.
#include "trace/asm.h"

#include "base/mem.h"
#include "trace/asm_reach.h"
#include "trace/asm_text.h"
#include "trace/asm_vm.h"
#include "trace/asm_words.h"
#include "trace/defs.h"
#include "trace/reach.h"

#include <string.h>

// Bytes in hexadecimal, without 0x; returns how many, or SIZE_MAX.
static size_t parse_hex(const char *text, uint8_t *out, size_t max)
{
	size_t length = strlen(text);

	// Digits come in pairs: "0aff" is two bytes.
	if (length % 2 != 0 || length / 2 > max)
		return SIZE_MAX;
	for (size_t i = 0; i < length; i += 2) {
		char pair[5] = { '0', 'x', text[i], text[i + 1] };
		uint64_t byte;

		if (!asm_lex_number(pair, NULL, &byte))
			return SIZE_MAX;
		out[i / 2] = (uint8_t)byte;
	}
	return length / 2;
}

// False also for an id that is not 32 digits: then the message says what was expected.
static bool take_about(struct asm_text *text, void *context)
{
	struct trace_info *info = context;
	const struct {
		const char *key;
		char **text;
	} texts[] = { { "tool", &info->tool },       { "host", &info->host },
		      { "command", &info->command }, { "directory", &info->directory },
		      { "options", &info->options }, { "labels", &info->labels } };
	const char *value = asm_text_value(text, "id");

	if (value)
		return parse_hex(value, info->recording_id, 16) == 16;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		value = asm_text_value(text, texts[i].key);
		if (!value)
			continue;
		mem_free(*texts[i].text);
		*texts[i].text = mem_copy_text(value);
		return true;
	}
	return false;
}

// They have to come first, since the writer puts them into the file's first block.
static bool read_trace(struct asm_text *text)
{
	struct trace_info *info = &text->info;
	const struct asm_field numbers[] = { { "began", &info->began_unix_ns, 0 },
					     { "tick", &info->tick_ns, 0 },
					     { "sample", &info->sample_bytes, 0 },
					     { NULL, NULL, 0 } };

	if (text->writer)
		return asm_text_fail(text, &text->lex.words[0],
				     "trace lines come before all others");
	return asm_text_fields(text, numbers, take_about, info,
			       "id=HEX (32 digits), began=, tick=, sample=, tool=, host=, "
			       "command=, directory=, options= or labels= expected");
}

// Words are taken one by one and not by asm_text_fields, since `start=` is a word or a number and
// arguments may come many times.
static bool read_process(struct asm_text *text)
{
	uint64_t pid = 0, generation = 0, start = TRACE_START_EXEC, bits = 64;
	struct trace_process process = { .parent = TRACE_NONE, .exe = "" };
	const struct asm_field fields[] = {
		{ "pid", &pid, UINT32_MAX },       { "generation", &generation, UINT32_MAX },
		{ "start", &start, UINT8_MAX },    { "bits", &bits, UINT8_MAX },
		{ "began", &process.began_ns, 0 }, { NULL, NULL, 0 }
	};
	process_id id = text->last_process + 1;
	bool ok = asm_text_new_label(text, 'p', id);
	char *value;

	process.args = mem_alloc(text->lex.count, sizeof *process.args);
	while (ok && asm_text_peek(text)) {
		struct asm_word *word = asm_text_peek(text);
		bool taken = true;

		if (asm_text_is(word, "start=fork") || asm_text_is(word, "start=exec") ||
		    asm_text_is(word, "start=attach")) {
			start = word->text[6] == 'f'   ? TRACE_START_FORK
				: word->text[6] == 'a' ? TRACE_START_ATTACH
						       : TRACE_START_EXEC;
			text->at++;
		} else if ((value = asm_text_value(text, "exe")) != NULL) {
			process.exe = value;
		} else if ((value = asm_text_value(text, "arg")) != NULL) {
			process.args[process.args_count++] = value;
		} else if ((value = asm_text_value(text, "parent")) != NULL) {
			taken = asm_labels_find(&text->labels, 'p', value, &process.parent) &&
				process.parent < id;
		} else {
			ok = asm_text_field(text, fields, &taken);
		}
		if (ok && !taken)
			ok = asm_text_fail(
				text, word,
				"pid=, parent=LABEL, generation=, start=fork|exec|attach, bits=, "
				"began=, exe=TEXT or arg=TEXT expected");
	}
	process.pid = (uint32_t)pid;
	process.generation = (uint32_t)generation;
	process.start = (uint8_t)start;
	process.bits = (uint8_t)bits;
	if (ok)
		text->last_process = writer_add_process(text->writer, &process);
	mem_free(process.args);
	return ok;
}

// The process may be left out where one was defined: that is the last one.
static bool read_thread(struct asm_text *text)
{
	process_id process;
	uint64_t tid = 0;
	const struct asm_field fields[] = { { "tid", &tid, UINT32_MAX }, { NULL, NULL, 0 } };
	const char *name = "";
	bool taken;

	if (!asm_text_new_label(text, 't', writer_counts(text->writer)->threads) ||
	    !asm_text_process(text, "a thread", &process) || !asm_text_field(text, fields, &taken))
		return false;
	if (asm_text_peek(text)) {
		if (!asm_text_peek(text)->quoted)
			return asm_text_fail(text, asm_text_peek(text),
					     "tid= or a name in quotes expected");
		name = asm_text_take(text, "a name")->text;
	}
	if (!asm_text_at_end(text))
		return false;
	writer_add_thread(text->writer, process, (uint32_t)tid, name);
	return true;
}

// A file without a build-id= has none; "build-id=" with nothing after it is the same.
static bool take_module_word(struct asm_text *text, void *context)
{
	struct trace_module *module = context;
	const struct asm_word *word = asm_text_peek(text);
	const char *value = asm_text_value(text, "build-id");
	size_t length;

	if (!value) {
		module->path = word->quoted ? asm_text_quoted(text) : module->path;
		return word->quoted;
	}
	length = parse_hex(value, module->build_id, sizeof module->build_id);
	if (length == SIZE_MAX)
		return asm_text_fail(text, word, "build-id=HEX of at most 32 bytes expected");
	module->build_id_length = (uint8_t)length;
	return true;
}

static bool read_module(struct asm_text *text)
{
	struct trace_module module = { .path = "" };
	const struct asm_field fields[] = { { "bias", &module.bias, 0 },
					    { "file-size", &module.file_size, 0 },
					    { "file-time", &module.file_mtime_ns, 0 },
					    { NULL, NULL, 0 } };

	if (!asm_text_new_label(text, 'm', writer_counts(text->writer)->modules))
		return false;
	if (!asm_text_process(text, "a module", &module.process) ||
	    !asm_text_range(text, &module.start, &module.end) ||
	    !asm_text_fields(text, fields, take_module_word, &module,
			     "bias=, file-size=, file-time=, build-id=HEX or a path in quotes "
			     "expected"))
		return false;
	writer_add_module(text->writer, &module);
	return true;
}

// A number is an address as it was in memory; the module says which file it lies in.
static bool read_frame(struct asm_text *text)
{
	uint64_t pc, flags = 0;
	const struct asm_field fields[] = { { "flags", &flags, UINT32_MAX }, { NULL, NULL, 0 } };
	module_id module = 0;
	bool taken;

	if (!asm_text_new_label(text, 'f', writer_counts(text->writer)->frames))
		return false;
	asm_text_if_label(text, 'm', &module);
	if (!asm_text_number(text, "an address", &pc) || !asm_text_field(text, fields, &taken) ||
	    !asm_text_at_end(text))
		return false;
	writer_add_frame(text->writer, module, pc, (uint32_t)flags);
	return true;
}

// A function, and perhaps FILE:LINE behind it. The texts are the line's.
static bool take_function(struct asm_text *text, struct trace_name *name)
{
	struct asm_word *word = asm_text_take(text, "a function");
	uint64_t line;

	if (!word)
		return false;
	if (asm_text_is(word, "<"))
		return asm_text_fail(text, word, "a function expected");
	*name = (struct trace_name){ .function = word->text, .file = "" };
	word = asm_text_peek(text);
	if (!word || asm_text_is(word, "<"))
		return true;
	text->at++;
	if (!word->colon || !asm_lex_number(word->colon + 1, NULL, &line) || line > UINT32_MAX)
		return asm_text_fail(text, word, "FILE:LINE or < expected");
	*word->colon = '\0';
	name->file = word->text;
	name->line = (uint32_t)line;
	return true;
}

// Names of a frame that has a line of its own; functions in a stack line get frames by themselves.
static bool read_name(struct asm_text *text)
{
	struct trace_name names[DEFS_NAMES_MAX];
	size_t count = 0;
	frame_id frame;

	ASSERT(text->writer);
	if (!asm_text_label(text, 'f', "frame", &frame))
		return false;
	for (;;) {
		if (count == DEFS_NAMES_MAX)
			return asm_text_fail(text, NULL, "too many functions at one frame");
		if (!take_function(text, &names[count]))
			return false;
		count++;
		if (!asm_text_peek(text))
			break;
		text->at++; // "<"
	}
	if (frame == 0)
		return asm_text_fail(text, NULL, "frame f0 is none");
	writer_add_name(text->writer, frame, names, count);
	return true;
}

// The frame that stands for a function in a file at a line: one for all stacks. Its pc is its own
// id: a number that no other such frame has.
static frame_id named_frame(struct asm_text *text, const struct trace_name *name)
{
	struct str key = { 0 };
	uint32_t id;

	// No text of a line has an end of line in it, so no two names make one key.
	str_format(&key, "%s\n%s\n%u", name->function, name->file, name->line);
	if (!asm_labels_find(&text->labels, 'n', key.text, &id)) {
		id = writer_counts(text->writer)->frames;
		writer_add_frame(text->writer, 0, id, 0);
		writer_add_name(text->writer, id, name, 1);
		asm_labels_add(&text->labels, 'n', key.text, id);
	}
	str_fini(&key);
	return id;
}

// The stack of `frame` on `parent`: one for all texts that spell it out. Classes 'n' and 'k' are
// not those of a label: no text can name them.
static stack_id named_stack(struct asm_text *text, stack_id parent, frame_id frame, uint8_t flags)
{
	char key[48];
	uint32_t id;

	snprintf(key, sizeof key, "%u %u %u", parent, frame, flags);
	if (!asm_labels_find(&text->labels, 'k', key, &id)) {
		id = writer_add_stack(text->writer, parent, frame, flags);
		asm_labels_add(&text->labels, 'k', key, id);
	}
	return id;
}

// What stands between two < of a stack: a frame by its label or by a function's name.
static bool take_stack_frame(struct asm_text *text, frame_id *frame)
{
	struct trace_name name;

	if (asm_text_if_label(text, 'f', frame))
		return true;
	if (!take_function(text, &name))
		return false;
	*frame = named_frame(text, &name);
	return true;
}

// For example `stack pot "make_pot" < "cook" < "main"` makes three stacks, for main, for cook
// called by main, and for make_pot called by both, which is called pot. The first two are shared
// with other lines that end alike. `stack s7 f3 < s6` is how a dump says it.
static bool read_stack(struct asm_text *text)
{
	uint64_t flags = 0;
	const struct asm_field fields[] = { { "flags", &flags, UINT8_MAX }, { NULL, NULL, 0 } };
	struct asm_word *label = asm_text_take(text, "a label");
	frame_id *frames = mem_alloc(text->lex.count, sizeof *frames);
	size_t count = 0;
	stack_id parent = 0;
	bool taken;
	bool ok = label && asm_text_field(text, fields, &taken);

	while (ok) {
		if (count > 0 && asm_text_if_label(text, 's', &parent)) {
			ok = asm_text_at_end(text);
			break;
		}
		ASSERT(count < text->lex.count);
		ok = take_stack_frame(text, &frames[count]);
		if (!ok)
			break;
		count++;
		if (!asm_text_peek(text))
			break;
		if (!asm_text_is(asm_text_peek(text), "<"))
			ok = asm_text_fail(text, asm_text_peek(text), "< expected");
		text->at++;
	}
	// From the outermost inwards. The last one is new even if the same was spelled before, so
	// that each stack line makes a stack.
	for (size_t i = count; ok && i > 1; i--)
		parent = named_stack(text, parent, frames[i - 1], (uint8_t)flags);
	if (ok &&
	    !asm_labels_add(&text->labels, 's', label->text, writer_counts(text->writer)->stacks))
		ok = asm_lex_fail(&text->lex, label, text->err, "\"%s\" is defined already",
				  label->text);
	if (ok)
		writer_add_stack(text->writer, parent, frames[0], (uint8_t)flags);
	mem_free(frames);
	return ok;
}

static bool take_why(struct asm_text *text, void *context)
{
	char **why = context;
	char *value = asm_text_value(text, "why");

	*why = value ? value : *why;
	return value != NULL;
}

static bool read_end(struct asm_text *text)
{
	struct trace_end end = { .why = "" };
	const struct asm_field fields[] = { { "duration", &end.duration_ns, 0 },
					    { "events-lost", &end.events_lost, 0 },
					    { "waited", &end.waited_ns, 0 },
					    { "tick-median", &end.tick_median_ns, 0 },
					    { "tick-worst", &end.tick_worst_ns, 0 },
					    { "guest-bytes", &end.guest_bytes_peak, 0 },
					    { "collector-bytes", &end.collector_bytes_peak, 0 },
					    { "collector-cpu", &end.collector_cpu_ns, 0 },
					    { "stacks-incomplete", &end.stacks_incomplete, 0 },
					    { "stacks-verified", &end.stacks_verified, 0 },
					    { "stacks-mismatched", &end.stacks_mismatched, 0 },
					    { "unseen", &end.unseen, 0 },
					    { NULL, NULL, 0 } };

	end.duration_ns = text->time_ns;
	if (!asm_text_fields(text, fields, take_why, &end.why,
			     "duration=, why=TEXT or another total expected"))
		return false;
	writer_end(text->writer, &end);
	return true;
}

// "@100", "+5us": the time of an item. The unit is looked for from the end of the word, ns before
// s, so that "5ns" is not 5n seconds. A time may not be before that of the item above.
static bool take_time(struct asm_text *text)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = { { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 } };
	struct asm_word *word = asm_text_take(text, "a time");
	const char *end = word->text + strlen(word->text);
	uint64_t time_ns, factor = 1;

	ASSERT(word->text[0] == '@' || word->text[0] == '+');
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		size_t length = strlen(units[i].unit);

		if ((size_t)(end - word->text) > length + 1 &&
		    strcmp(end - length, units[i].unit) == 0) {
			factor = units[i].ns;
			end -= length;
			break;
		}
	}
	if (!asm_lex_number(word->text + 1, end, &time_ns) ||
	    __builtin_mul_overflow(time_ns, factor, &time_ns) ||
	    (word->text[0] == '+' && __builtin_add_overflow(time_ns, text->time_ns, &time_ns)))
		return asm_text_fail(text, word,
				     "a time expected: @NUMBER or +NUMBER, in ns, us, ms or s");
	if (time_ns < text->time_ns)
		return asm_text_fail(text, word, "time goes back");
	text->time_ns = time_ns;
	return true;
}

// "2^200" is no power of two that an address could have, but a damaged trace may say it, and a dump
// must read back.
static bool take_alignment(struct asm_text *text, struct trace_event *event)
{
	struct asm_word *word = asm_text_peek(text);
	const char *value = asm_text_value(text, "align");
	uint64_t align;

	if (!value)
		return asm_text_fail(text, word, "align=BYTES expected");
	if (strncmp(value, "2^", 2) == 0 && asm_lex_number(value + 2, NULL, &align) &&
	    align <= UINT8_MAX) {
		event->align_log2 = (uint8_t)align;
		return true;
	}
	if (!asm_lex_number(value, NULL, &align) || align == 0 || (align & (align - 1)) != 0)
		return asm_text_fail(text, word, "align= takes a power of two");
	event->align_log2 = (uint8_t)__builtin_ctzll(align);
	return true;
}

// What a call on a Windows heap was given.
static bool take_flags(struct asm_text *text, struct trace_event *event)
{
	uint64_t flags = 0;
	const struct asm_field fields[] = { { "flags", &flags, UINT32_MAX }, { NULL, NULL, 0 } };
	bool taken;

	if (event->kind == TRACE_FREE || event->kind == TRACE_REALLOC_FREE)
		return true;
	if (!asm_text_field(text, fields, &taken))
		return false;
	event->flags = (uint32_t)flags;
	return true;
}

// Fields are expected in the order in which dump_event writes them.
static bool read_event(struct asm_text *text, thread_id thread)
{
	struct trace_event event = { .time_ns = text->time_ns, .thread = thread };
	struct asm_word *word = asm_text_take(text, "an event");

	if (!word)
		return false;
	event.kind = asm_words_find_event(asm_text_is(word, "alloc") ? "malloc" : word->text);
	if (event.kind == 0)
		return asm_lex_fail(&text->lex, word, text->err, "no event is called \"%s\"",
				    word->text);
	asm_text_if_label(text, 's', &event.stack);
	if (event.kind > TRACE_FAILED)
		return asm_vm_read_event(text, &event);
	asm_text_if_label(text, 'h', &event.heap);
	if (event.kind == TRACE_REALLOC) {
		if (!asm_text_number(text, "an address", &event.old_address))
			return false;
		if (!asm_text_is(asm_text_peek(text), "->"))
			return asm_text_fail(text, asm_text_peek(text), "-> expected");
		text->at++;
	}
	if (event.kind != TRACE_FAILED && !asm_text_number(text, "an address", &event.address))
		return false;
	if (event.kind != TRACE_FREE && event.kind != TRACE_REALLOC_FREE &&
	    !asm_text_number(text, "a size", &event.size))
		return false;
	if (event.kind == TRACE_ALIGNED && !take_alignment(text, &event))
		return false;
	if (event.heap != 0 && !take_flags(text, &event))
		return false;
	if (!asm_text_at_end(text))
		return false;
	writer_event(text->writer, &event);
	return true;
}

// How a process ended: exit=, signal= or exec, packed as the format has it: exit=3 is 3 << 8 | 1.
// Where none is said, value= may have the number.
static bool take_ending(struct asm_text *text, uint64_t *value)
{
	static const char *const words[] = { "exit", "signal" };

	for (uint64_t i = 0; i < 2; i++) {
		uint64_t number;
		const struct asm_field fields[] = { { words[i], &number, UINT32_MAX },
						    { NULL, NULL, 0 } };
		bool taken;

		if (!asm_text_field(text, fields, &taken))
			return false;
		if (taken)
			*value = number << 8 | (TRACE_EXIT_CODE + i);
	}
	if (asm_text_is(asm_text_peek(text), "exec")) {
		*value = TRACE_EXIT_EXEC;
		text->at++;
	}
	return true;
}

// Kinds that have no word yet are note-N, so that a trace of a newer version keeps them.
static bool read_note(struct asm_text *text)
{
	struct trace_note note = { .process = TRACE_NONE, .thread = TRACE_NONE, .text = "" };
	const struct asm_field fields[] = { { "value", &note.value, 0 }, { NULL, NULL, 0 } };
	struct asm_word *word = asm_text_take(text, "a thread or a note");
	uint64_t kind;
	bool taken;

	if (!word)
		return false;
	note.kind = asm_words_find_note(word->text);
	if (strncmp(word->text, "note-", 5) == 0 && asm_lex_number(word->text + 5, NULL, &kind) &&
	    kind > 0 && kind <= UINT8_MAX)
		note.kind = (uint8_t)kind;
	if (note.kind == 0)
		return asm_lex_fail(&text->lex, word, text->err,
				    "\"%s\" is neither a thread nor a kind of note", word->text);
	if (!asm_text_if_label(text, 'p', &note.process) && note.kind <= TRACE_NOTE_PROCESS_END)
		return asm_lex_fail(&text->lex, word, text->err, "\"%s\" needs a process",
				    word->text);
	asm_text_if_label(text, 't', &note.thread);
	if (note.kind == TRACE_NOTE_PROCESS_END && !take_ending(text, &note.value))
		return false;
	if (!asm_text_field(text, fields, &taken))
		return false;
	if (asm_text_peek(text) && asm_text_peek(text)->quoted)
		note.text = asm_text_take(text, "a text")->text;
	note.time_ns = text->time_ns;
	if (!asm_text_at_end(text))
		return false;
	writer_note(text->writer, &note);
	return true;
}

static bool read_item(struct asm_text *text)
{
	thread_id thread;

	if (!take_time(text))
		return false;
	return asm_text_if_label(text, 't', &thread) ? read_event(text, thread) : read_note(text);
}

// All that is said about the trace as a whole has been said.
static bool begin_trace(struct asm_text *text)
{
	if (text->writer)
		return true;
	text->writer = writer_new(text->fd, &text->info, text->err);
	if (!text->writer)
		return false;
	// A dump spells a gap in a damaged trace with the ids that mean "none": frame f0.
	asm_labels_add(&text->labels, 'f', "f0", 0);
	return true;
}

// A snapshot and a reach line are open until a line comes that does not continue them.
static bool read_line(struct asm_text *text)
{
	static const struct {
		const char *word;
		bool (*read)(struct asm_text *text);
	} statements[] = {
		{ "process", read_process },
		{ "thread", read_thread },
		{ "module", read_module },
		{ "frame", read_frame },
		{ "name", read_name },
		{ "stack", read_stack },
		{ "heap", asm_vm_read_heap },
		{ "file", asm_vm_read_file },
		{ "snapshot", asm_vm_read_snapshot },
		{ "mapping", asm_vm_read_mapping },
		{ "pages", asm_vm_read_pages },
		{ "reach", asm_reach_read },
		{ "end", read_end },
	};
	struct asm_word *word = &text->lex.words[0];

	text->at = 1;
	if (asm_text_is(word, "trace")) {
		text->described = true;
		return read_trace(text);
	}
	if (!begin_trace(text))
		return false;
	if (!asm_text_is(word, "mapping") && !asm_text_is(word, "pages"))
		asm_vm_close_snapshot(text);
	if (asm_reach_is_block(word))
		return asm_reach_read_block(text);
	asm_reach_close(text);
	if (!word->quoted && (word->text[0] == '@' || word->text[0] == '+')) {
		text->at = 0;
		return read_item(text);
	}
	for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
		if (asm_text_is(word, statements[i].word))
			return statements[i].read(text);
	return asm_lex_fail(
		&text->lex, word, text->err,
		"a line begins with trace, process, thread, module, frame, name, stack, "
		"heap, file, snapshot, mapping, pages, reach, end, @TIME or +TIME, not with \"%s\"",
		word->text);
}

// What is made of a text with a mistake is a cut trace, and the caller removes it. A text without
// an end line is a trace that is cut on purpose.
bool asm_read(const char *text, size_t length, int fd, struct err *err)
{
	struct asm_text assembly = { .err = err, .fd = fd, .last_process = TRACE_NONE };
	bool ended = false;
	bool ok = true;

	assembly.lex = (struct asm_lex){ .at = text, .end = text + length };
	while (ok && asm_lex_line(&assembly.lex, err)) {
		if (ended)
			ok = asm_lex_fail(&assembly.lex, &assembly.lex.words[0], err,
					  "nothing may follow the end line");
		else
			ok = read_line(&assembly);
		ended = asm_text_is(&assembly.lex.words[0], "end");
	}
	ok = ok && err->kind == ERR_NONE;
	if (ok && !assembly.writer)
		ok = assembly.described ? begin_trace(&assembly)
					: err_set(err, ERR_FORMAT, "the text describes no trace");
	if (assembly.writer) {
		if (ok)
			asm_vm_close_snapshot(&assembly);
		if (ok)
			asm_reach_close(&assembly);
		writer_flush(assembly.writer);
		if (ok)
			ok = writer_ok(assembly.writer, err);
	}
	writer_free(assembly.writer);
	asm_labels_fini(&assembly.labels);
	snapshot_fini(&assembly.snapshot);
	reach_fini(&assembly.reach);
	asm_lex_fini(&assembly.lex);
	MEM_FREE(assembly.info.tool, assembly.info.host, assembly.info.command,
		 assembly.info.directory, assembly.info.options, assembly.info.labels);
	return ok;
}
