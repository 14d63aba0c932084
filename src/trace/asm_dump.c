// Writes a trace as text. Each line is what asm_read.c reads; what has its usual value is left out.
//
// The inverse of asm_read.c: what this writes, that reads, and both traces then say the same
// (test/unit/asm_test.c). It is for tests and for who wants to see what is in a trace, in the
// words that docs/format.md uses.
//
// For example a malloc of 24 bytes at 5 us by stack 3 is
//
//     @5000 t0 malloc s3 0x5010 24
//
// Times are whole nanoseconds and ids are labels with the letter of their class before them (p, t,
// m, f, s, h, x), so nothing is rounded or left to be guessed.
#include "trace/asm.h"

#include "trace/asm_reach.h"
#include "trace/asm_vm.h"
#include "trace/asm_words.h"
#include "trace/reader_pass.h"

#include <inttypes.h>

_Static_assert(TRACE_UNMAPPED <= UINT8_MAX, "kinds are kept in a byte");

struct asm_options asm_dump_all(void)
{
	return (struct asm_options){
		.definitions = true,
		.items = true,
		.to_ns = UINT64_MAX,
		.count = UINT64_MAX,
	};
}

// `before` and the text in quotes, if there is any: ` exe="/bin/true"`.
static void put_text(struct sink *sink, const char *before, const char *text)
{
	if (!text || !*text)
		return;
	sink_text(sink, before);
	asm_words_quote(sink, text);
}

// A line of its own, `trace host="Linux 6.1"`, if there is any text.
static void put_trace_text(struct sink *sink, const char *key, const char *text)
{
	if (!*text)
		return;
	sink_format(sink, "trace %s=", key);
	asm_words_quote(sink, text);
	sink_text(sink, "\n");
}

static void put_hex(struct sink *sink, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		sink_format(sink, "%02x", bytes[i]);
}

// All fields that a reader needs to make the same trace again, so also those that a person would
// not miss: the id and the wall clock.
static void dump_info(const struct reader *reader, struct sink *sink)
{
	const struct trace_info *info = reader_info(reader);

	sink_text(sink, "trace id=");
	put_hex(sink, info->recording_id, sizeof info->recording_id);
	sink_format(sink, " began=%" PRIu64 " tick=%" PRIu64 "\n", info->began_unix_ns,
		    info->tick_ns);
	if (info->sample_bytes > 0)
		sink_format(sink, "trace sample=%" PRIu64 "\n", info->sample_bytes);
	put_trace_text(sink, "tool", info->tool);
	put_trace_text(sink, "host", info->host);
	put_trace_text(sink, "command", info->command);
	put_trace_text(sink, "directory", info->directory);
	put_trace_text(sink, "options", info->options);
	put_trace_text(sink, "labels", info->labels);
}

// A start that has no word is a number, so that a trace of a newer version reads back.
static void dump_process(const struct trace_process *process, struct sink *sink)
{
	sink_format(sink, "process p%u pid=%u", process->id, process->pid);
	if (process->parent != TRACE_NONE)
		sink_format(sink, " parent=p%u", process->parent);
	asm_words_put_number(sink, "generation", process->generation, 0);
	if (process->start == TRACE_START_FORK)
		sink_text(sink, " start=fork");
	else if (process->start == TRACE_START_ATTACH)
		sink_text(sink, " start=attach");
	else
		asm_words_put_number(sink, "start", process->start, TRACE_START_EXEC);
	asm_words_put_number(sink, "bits", process->bits, 64);
	asm_words_put_number(sink, "began", process->began_ns, 0);
	put_text(sink, " exe=", process->exe);
	for (uint32_t i = 0; i < process->args_count; i++) {
		sink_text(sink, " arg=");
		asm_words_quote(sink, process->args[i]);
	}
	sink_text(sink, "\n");
}

static void dump_thread(const struct trace_thread *thread, struct sink *sink)
{
	sink_format(sink, "thread t%u p%u tid=%u", thread->id, thread->process, thread->tid);
	put_text(sink, " ", thread->name);
	sink_text(sink, "\n");
}

static void dump_module(const struct trace_module *module, struct sink *sink)
{
	sink_format(sink, "module m%u p%u 0x%" PRIx64 "-0x%" PRIx64 " bias=0x%" PRIx64, module->id,
		    module->process, module->start, module->end, module->bias);
	asm_words_put_number(sink, "file-size", module->file_size, 0);
	asm_words_put_number(sink, "file-time", module->file_mtime_ns, 0);
	if (module->build_id_length > 0) {
		sink_text(sink, " build-id=");
		put_hex(sink, module->build_id, module->build_id_length);
	}
	put_text(sink, " ", module->path);
	sink_text(sink, "\n");
}

// A frame that has names of its own gets a second line. Inlined functions come innermost first, as
// in the trace, with < between them.
static void dump_frame(const struct reader *reader, frame_id id, struct sink *sink)
{
	const struct trace_frame *frame = reader_frame(reader, id);
	const struct trace_name *names;
	size_t count;

	sink_format(sink, "frame f%u", id);
	if (frame->module != 0)
		sink_format(sink, " m%u", frame->module);
	sink_format(sink, " 0x%" PRIx64, frame->pc);
	asm_words_put_number(sink, "flags", frame->flags, 0);
	sink_text(sink, "\n");
	names = reader_frame_names(reader, id, &count);
	if (!names)
		return;
	sink_format(sink, "name f%u", id);
	for (size_t i = 0; i < count; i++) {
		sink_text(sink, i == 0 ? " " : " < ");
		asm_words_quote(sink, names[i].function);
		if (!names[i].file[0] && names[i].line == 0)
			continue;
		sink_text(sink, " ");
		asm_words_quote(sink, names[i].file);
		sink_format(sink, ":%u", names[i].line);
	}
	sink_text(sink, "\n");
}

// A stack is its own frame and the label of its caller's stack: a deep stack is as short as any
// other.
static void dump_stack(const struct reader *reader, stack_id id, struct sink *sink)
{
	const struct trace_stack *stack = reader_stack(reader, id);

	sink_format(sink, "stack s%u", id);
	asm_words_put_number(sink, "flags", stack->flags, 0);
	sink_format(sink, " f%u", stack->frame);
	if (stack->parent != 0)
		sink_format(sink, " < s%u", stack->parent);
	sink_text(sink, "\n");
}

// In the order of reference, as asm_read wants it: what a line names has been defined by a line
// before.
static void dump_definitions(const struct reader *reader, struct sink *sink)
{
	dump_info(reader, sink);
	for (process_id id = 0; id < reader_processes_count(reader); id++)
		dump_process(reader_process(reader, id), sink);
	for (thread_id id = 0; id < reader_threads_count(reader); id++)
		dump_thread(reader_thread(reader, id), sink);
	for (module_id id = 1; id < reader_modules_count(reader); id++)
		dump_module(reader_module(reader, id), sink);
	for (frame_id id = 1; id < reader_frames_count(reader); id++)
		dump_frame(reader, id, sink);
	for (stack_id id = 1; id < reader_stacks_count(reader); id++)
		dump_stack(reader, id, sink);
	asm_vm_dump_definitions(reader, sink);
	asm_reach_dump(reader, sink);
}

// The order of words is that of asm_read.c's read_event: thread, kind, stack, heap, addresses,
// size.
static void dump_event(const struct trace_event *event, struct sink *sink)
{
	sink_format(sink, "@%" PRIu64 " t%u %s", event->time_ns, event->thread,
		    asm_words_event(event->kind));
	if (event->stack != 0)
		sink_format(sink, " s%u", event->stack);
	if (event->kind > TRACE_FAILED) {
		asm_vm_dump_event(event, sink);
		return;
	}
	if (event->heap != 0)
		sink_format(sink, " h%u", event->heap);
	if (event->kind == TRACE_REALLOC)
		sink_format(sink, " 0x%" PRIx64 " ->", event->old_address);
	if (event->kind != TRACE_FAILED)
		sink_format(sink, " 0x%" PRIx64, event->address);
	if (event->kind != TRACE_FREE && event->kind != TRACE_REALLOC_FREE)
		sink_format(sink, " %" PRIu64, event->size);
	if (event->kind == TRACE_ALIGNED && event->align_log2 < 64)
		sink_format(sink, " align=%" PRIu64, UINT64_C(1) << event->align_log2);
	else if (event->kind == TRACE_ALIGNED)
		sink_format(sink, " align=2^%u", event->align_log2);
	if (event->flags != 0)
		sink_format(sink, " flags=0x%" PRIx32, event->flags);
	sink_text(sink, "\n");
}

// How a process ended: value is how + 256 * what.
static void dump_ending(uint64_t value, struct sink *sink)
{
	switch (value & 0xff) {
	case TRACE_EXIT_CODE:
		sink_format(sink, " exit=%" PRIu64, value >> 8);
		break;
	case TRACE_EXIT_SIGNAL:
		sink_format(sink, " signal=%" PRIu64, value >> 8);
		break;
	default:
		if (value == TRACE_EXIT_EXEC)
			sink_text(sink, " exec");
		else
			asm_words_put_number(sink, "value", value, 0);
	}
}

// The end of a process has words for its value; of all other notes it is a number, and 0 is left
// out.
static void dump_note(const struct trace_note *note, struct sink *sink)
{
	const char *word = asm_words_note(note->kind);

	sink_format(sink, "@%" PRIu64 " ", note->time_ns);
	if (word)
		sink_text(sink, word);
	else
		sink_format(sink, "note-%u", note->kind);
	if (note->process != TRACE_NONE)
		sink_format(sink, " p%u", note->process);
	if (note->thread != TRACE_NONE)
		sink_format(sink, " t%u", note->thread);
	if (note->kind == TRACE_NOTE_PROCESS_END)
		dump_ending(note->value, sink);
	else
		asm_words_put_number(sink, "value", note->value, 0);
	put_text(sink, " ", note->text);
	sink_text(sink, "\n");
}

// Notes are printed in any case, but they count like events for `options->count`.
static void dump_items(struct reader *reader, const struct asm_options *options, struct sink *sink)
{
	struct reader_pass pass = { .reader = reader };
	uint64_t count = 0;

	while (count < options->count && reader_pass_next(&pass) != READER_END) {
		const struct trace_event *event = pass.item == READER_EVENT ? &pass.event : NULL;
		uint64_t time_ns = reader_pass_time(&pass);

		if (time_ns < options->from_ns)
			continue;
		if (time_ns > options->to_ns)
			break;
		if (event && options->wants && !options->wants(options->context, event))
			continue;
		if (event)
			dump_event(event, sink);
		else
			dump_note(&pass.note, sink);
		count++;
	}
}

static void dump_end(const struct trace_end *end, struct sink *sink)
{
	sink_format(sink, "end duration=%" PRIu64, end->duration_ns);
	asm_words_put_number(sink, "events-lost", end->events_lost, 0);
	asm_words_put_number(sink, "waited", end->waited_ns, 0);
	asm_words_put_number(sink, "tick-median", end->tick_median_ns, 0);
	asm_words_put_number(sink, "tick-worst", end->tick_worst_ns, 0);
	asm_words_put_number(sink, "guest-bytes", end->guest_bytes_peak, 0);
	asm_words_put_number(sink, "collector-bytes", end->collector_bytes_peak, 0);
	asm_words_put_number(sink, "collector-cpu", end->collector_cpu_ns, 0);
	asm_words_put_number(sink, "stacks-incomplete", end->stacks_incomplete, 0);
	asm_words_put_number(sink, "stacks-verified", end->stacks_verified, 0);
	asm_words_put_number(sink, "stacks-mismatched", end->stacks_mismatched, 0);
	asm_words_put_number(sink, "unseen", end->unseen, 0);
	put_text(sink, " why=", end->why);
	sink_text(sink, "\n");
}

// The trace is scanned first, so that definitions are whole before they are printed.
bool asm_dump(struct reader *reader, const struct asm_options *options, struct sink *sink,
	      struct err *err)
{
	reader_scan(reader);
	if (options->definitions)
		dump_definitions(reader, sink);
	if (options->items && options->from_ns > 0) {
		// One nanosecond earlier, for items of that very time in the block before.
		if (!reader_seek(reader, options->from_ns - 1, err))
			return false;
		dump_items(reader, options, sink);
	} else if (options->items) {
		reader_rewind(reader);
		dump_items(reader, options, sink);
	}
	if (options->definitions && reader_end(reader))
		dump_end(reader_end(reader), sink);
	return sink_ok(sink, err);
}
