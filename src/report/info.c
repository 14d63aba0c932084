// One pass counts what the definitions do not say: events by kind, by process, by heap and flags.
// The address space is followed on the way, since only it can say that calls were not seen. For
// example, a message "the executable is stripped" that 300 processes of a build send is kept once,
// with 300 times.
#include "report/info.h"

#include "base/mem.h"
#include "engine/space/space_listed.h"
#include "report/ask/cautions.h"
#include "trace/reader_pass.h"

#include <string.h>

enum { COMPARED = 64 };

// A message that is there already is counted once more. Only the first 64 are compared with, so
// that a trace of many different messages costs no square; what comes after them and is said again
// is there twice.
static void keep_message(struct info *info, const char *before, const char *text)
{
	struct str line = { 0 };
	size_t i, count = info->messages_count < COMPARED ? info->messages_count : COMPARED;

	str_format(&line, "%s%s", before, text);
	for (i = 0; i < count && strcmp(info->messages[i].text, str_get(&line)) != 0; i++)
		;
	if (i < count) {
		info->messages[i].times++;
		str_fini(&line);
	} else {
		*MEM_ADD(info->messages, info->messages_count, info->messages_capacity) =
			(struct info_message){ str_take(&line), 1 };
	}
}

// One of an attached process: the report says the same above its figures.
static void keep_caution(void *context, const char *text)
{
	keep_message(context, "", text);
}

// A loss of events is counted by its note where the recording has no end that says it all.
static void take_note(struct info *info, const struct trace_note *note)
{
	if (note->kind < INFO_NOTES)
		info->notes[note->kind]++;
	if (note->kind == TRACE_NOTE_PSS && note->text[0] == 0)
		info->shares_counted++;
	if (note->kind == TRACE_NOTE_LOSS)
		info->losses += note->value;
	if (note->kind == TRACE_NOTE_LOSS && note->text[0])
		keep_message(info, "events were lost: ", note->text);
	if (note->kind == TRACE_NOTE_MESSAGE)
		keep_message(info, "", note->text);
	if (note->kind == TRACE_NOTE_EXEC_UNSEEN)
		keep_message(info, "not recorded: ", note->text);
}

// Calls that a heap of Windows gets flags for: those that allocate.
static bool takes_flags(uint8_t kind)
{
	return kind <= TRACE_FAILED && kind != TRACE_FREE && kind != TRACE_REALLOC_FREE;
}

// Stacks that were cut at the depth that the recorder walks.
static bool is_deep(const struct reader *reader, stack_id id)
{
	const struct trace_stack *stack = reader_stack(reader, id);

	return stack && stack->flags & TRACE_STACK_CUT;
}

// Most recordings have none, and need not be asked event by event.
static bool has_deep(const struct reader *reader)
{
	for (stack_id id = 0; id < reader_stacks_count(reader); id++)
		if (is_deep(reader, id))
			return true;
	return false;
}

// What is counted of all events alike: of a thread, at one time. `deep`: there are such stacks.
static void count_events(struct info *info, const struct trace_event *events, uint32_t count,
			 bool deep)
{
	info->events += count;
	for (uint32_t i = 0; i < count; i++)
		info->kinds[events[i].kind]++;
	for (uint32_t i = 0; i < count && deep; i++)
		info->deep += is_deep(info->reader, events[i].stack);
	for (uint32_t i = 0; i < count; i++)
		if (events[i].heap != 0 && takes_flags(events[i].kind))
			++*map_put(&info->flags, (uint64_t)events[i].heap << 32 | events[i].flags,
				   NULL);
}

static uint32_t calls_among(const struct trace_event *events, uint32_t count)
{
	uint32_t calls = 0;

	for (uint32_t i = 0; i < count; i++)
		calls += trace_kind_is_call(events[i].kind);
	return calls;
}

// Events are counted by thread in the pass and by process after it, for a thread's process is
// defined once.
static void count_items(struct info *info, struct reader *reader, enum progress_mode mode)
{
	uint64_t *by_thread = NULL;
	size_t capacity = 0;
	struct str text = { 0 };
	struct progress progress;
	struct reader_runs runs = { .reader = reader, .progress = &progress };
	enum reader_item item;
	bool deep;
	struct space *space = space_new(NULL);
	struct space_listed *listed;

	reader_scan(reader);
	listed = space_listed_new(space, reader, NULL, NULL);
	progress_begin(&progress, mode, "reading", reader_bytes(reader));
	deep = has_deep(reader);
	while ((item = reader_runs_next(&runs)) != READER_END) {
		const struct trace_event *event = &runs.events[0];
		uint32_t calls = calls_among(runs.events, runs.count);

		info->last_ns = item == READER_NOTE ? runs.note.time_ns : event->time_ns;
		if (item == READER_NOTE) {
			take_note(info, &runs.note);
			space_learn(space, reader);
			if (runs.note.kind == TRACE_NOTE_PROCESS_END)
				space_listed_end(listed, runs.note.process);
			space_add_note(space, &runs.note);
			continue;
		}
		*MEM_REACH(by_thread, capacity, event->thread) += calls;
		info->calls += calls;
		count_events(info, runs.events, runs.count, deep);
		// It comes alone.
		if (trace_kind_is_vm(event->kind)) {
			space_learn(space, reader);
			space_listed_pass(listed, event);
			space_add_event(space, event);
		}
	}
	progress_end(&progress);
	space_listed_finish(listed);
	cautions_add_unlisted(reader, space_all(space), &text);
	if (text.length)
		keep_message(info, "", text.text);
	cautions_tell_attached(reader, keep_caution, info);
	str_fini(&text);
	space_free(space);
	info->process_events = mem_alloc(reader_processes_count(reader) + 1u, sizeof(uint64_t));
	info->process_threads = mem_alloc(reader_processes_count(reader) + 1u, sizeof(uint64_t));
	for (thread_id id = 0; id < reader_threads_count(reader); id++) {
		const struct trace_thread *thread = reader_thread(reader, id);
		process_id process = thread->process;
		bool attached = reader_process(reader, process)->start == TRACE_START_ATTACH;

		// What an attached process had before is of one that stands for all threads.
		if (thread->tid || !attached)
			info->process_threads[process]++;
		// A thread without events may be beyond the list.
		info->process_events[process] += id < capacity ? by_thread[id] : 0;
	}
	mem_free(by_thread);
}

void info_read(struct info *info, const char *path, struct reader *reader,
	       enum progress_mode progress)
{
	*info = (struct info){ .path = path, .reader = reader };
	count_items(info, reader, progress);
	info->whole = reader_ok(reader, &info->wrong);
}

void info_fini(struct info *info)
{
	for (size_t i = 0; i < info->messages_count; i++)
		mem_free(info->messages[i].text);
	mem_free(info->messages);
	map_fini(&info->flags);
	MEM_FREE(info->process_events, info->process_threads);
}

// The larger of both: a trace that was cut has no end that says it.
uint64_t info_events_lost(const struct info *info)
{
	const struct trace_end *end = reader_end(info->reader);

	return end && end->events_lost > info->losses ? end->events_lost : info->losses;
}

uint64_t info_duration(const struct info *info)
{
	const struct trace_end *end = reader_end(info->reader);

	return end && end->duration_ns > info->last_ns ? end->duration_ns : info->last_ns;
}

double info_bytes_per_event(const struct info *info)
{
	return info->events ? (double)reader_bytes(info->reader) / (double)info->events : 0;
}

// The recorder names a heap before the calls that are in it, and a thread whose last calls were in
// one that is gone may have other events to come: the collector then knows no heap of that handle
// and writes one. Handles are compared within a process, as each has its own.
bool info_heap_is_echo(const struct info *info, heap_id heap)
{
	const struct trace_heap *echo = reader_heap(info->reader, heap);
	uint64_t flags = UINT64_MAX, calls;
	bool again = false;

	if (echo->created || echo->handle == 0 || echo->name[0])
		return false;
	for (heap_id id = 1; id < heap && !again; id++) {
		const struct trace_heap *each = reader_heap(info->reader, id);

		again = each->handle == echo->handle && each->process == echo->process;
	}
	return again && !info_next_flags(info, heap, &flags, &calls);
}

// The next larger flags of the heap, by going through all: there are few.
bool info_next_flags(const struct info *info, heap_id heap, uint64_t *flags, uint64_t *count)
{
	uint64_t best = UINT64_MAX, key, value;
	size_t at = 0;

	while (map_next(&info->flags, &at, &key, &value)) {
		if (key >> 32 != heap || (uint32_t)key >= best ||
		    (*flags != UINT64_MAX && (uint32_t)key <= *flags))
			continue;
		best = (uint32_t)key;
		*count = value;
	}
	*flags = best;
	return best != UINT64_MAX;
}

const char *info_calls(const struct trace_process *process)
{
	static const char *const words[TRACE_CALLS_COUNT] = {
		[TRACE_CALLS_PATCHED] = "patched",
		[TRACE_CALLS_INTERPOSED] = "interposed",
		[TRACE_CALLS_DISPATCHED] = "dispatched",
	};

	return process->calls < TRACE_CALLS_COUNT ? words[process->calls] : NULL;
}

const char *info_seen(const struct trace_allocator *allocator)
{
	static const char *const words[TRACE_SEEN_COUNT] = {
		[TRACE_SEEN_NAME] = "name",         [TRACE_SEEN_EXPORTED] = "exported",
		[TRACE_SEEN_SYMBOLS] = "symbols",   [TRACE_SEEN_DEBUG] = "debug-file",
		[TRACE_SEEN_STRIPPED] = "stripped", [TRACE_SEEN_OPERATORS] = "operators",
	};

	return words[allocator->seen];
}

// "Stripped" means one of two. An allocator that is called "unknown" is only suspected: the
// executable asks for no malloc of others. One that has a name is there, and only its functions are
// not found.
const char *info_seen_how(const struct trace_allocator *allocator)
{
	static const char *const words[TRACE_SEEN_COUNT] = {
		[TRACE_SEEN_NAME] = "by name",
		[TRACE_SEEN_EXPORTED] = "by patched entries of what it exports",
		[TRACE_SEEN_SYMBOLS] = "by patched entries that its symbol table names",
		[TRACE_SEEN_DEBUG] = "by patched entries that its debug file names",
		[TRACE_SEEN_STRIPPED] = "not seen, if there is one: the executable is stripped and "
					"asks for no malloc of others",
		[TRACE_SEEN_OPERATORS] = "new and delete of its own in place of the C++ library's; "
					 "recorded is what they ask malloc for",
	};

	if (allocator->seen == TRACE_SEEN_STRIPPED && strcmp(allocator->name, "unknown") != 0)
		return "not seen: its functions are not entered (its file is stripped, they have "
		       "names of their own, or it is a program of Windows)";
	return words[allocator->seen];
}

// Those that were missed are not in the trace; each process has their count.
struct info_snapshots info_snapshots(const struct info *info)
{
	struct info_snapshots all = { 0 };

	for (uint32_t i = 0; i < reader_snapshots_count(info->reader); i++) {
		const struct trace_snapshot *each = reader_snapshot(info->reader, i);

		all.count++;
		all.cost_ns += each->cost_ns;
		all.by_pages += (each->flags & TRACE_SNAPSHOT_NO_SMAPS) != 0;
	}
	for (process_id id = 0; id < reader_processes_count(info->reader); id++)
		all.missed += reader_process(info->reader, id)->snapshots_missed;
	return all;
}
