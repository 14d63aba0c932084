// Findings about threads: what those that have ended left behind. A thread of glibc gives its stack
// back as the last thing that it does: for example, after
//
//     mmap 0x7f0000000000 8392704 flags=stack      by who starts it
//     malloc 0x7f0010000010 1048576                by the thread
//     madvise 0x7f0000000000 8368128 dontneed      by libc, in the thread
//
// it has ended, and its block of 1 MiB is there. One such block may be a result. Where thread after
// thread leaves some, and all of it is there at the end, no thread's memory is freed.
#include "report/find/findings_own.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "report/ask/moment_view.h"

#include <stdlib.h>

enum {
	THREADS_MIN = 4, // that left something of one line
	ADVICE_DONTNEED = 4,
	FLAG_STACK = 0x20000,
};

// Which threads have ended, by their stacks.
struct ended {
	const struct reader *reader;
	struct map stacks; // process and page -> 1
	bool *list;        // by thread
	uint32_t count;    // of threads
	bool any;
};

// The page of a stack's lowest address: libc gives back from there, above the guard or from it.
static uint64_t stack_at(process_id process, uint64_t address)
{
	return (uint64_t)process << 48 | (address / SPACE_PAGE & ((UINT64_C(1) << 48) - 1));
}

// Remembers where stacks are mapped, and which thread gave one back by libc's own madvise, which it
// makes after the thread's last instruction of the program.
static void on_call(void *context, const struct space *, const struct trace_event *event)
{
	struct ended *ended = context;
	const struct trace_thread *thread = reader_thread(ended->reader, event->thread);
	const struct trace_vm *vm = event->vm;
	bool added;

	if (!vm || !thread)
		return;
	if (event->kind == TRACE_MMAP && (vm->flags & FLAG_STACK))
		*map_put(&ended->stacks, stack_at(thread->process, event->address), &added) = 1;
	if (event->kind != TRACE_MADVISE || vm->flags != ADVICE_DONTNEED ||
	    vm->origin != TRACE_ORIGIN_LIBC || event->thread >= ended->count ||
	    !map_find(&ended->stacks, stack_at(thread->process, event->address)))
		return;
	ended->list[event->thread] = ended->any = true;
}

// What one line left in threads that have ended.
struct left {
	process_id process;
	uint32_t line;
	thread_id thread;
	stack_id stack;
	uint64_t size;
};

SORT_ORDER(by_line, struct left, SORT_RISES(process), SORT_RISES(line), SORT_RISES(thread))

struct gathering {
	struct findings *findings;
	const struct ended *ended;
	process_id process;
	struct left *list;
	size_t count, capacity;
};

// A block of a live process that a thread which has ended allocated, by the program's own line.
// What a fork has copied is the parent's.
static void gather(void *context, const struct present_block *block)
{
	struct gathering *gathering = context;
	const struct ended *ended = gathering->ended;
	uint32_t line;

	ASSERT(block->process == gathering->process);
	if (!block->selected || block->inherited || block->thread >= ended->count ||
	    !ended->list[block->thread])
		return;
	line = findings_line(gathering->findings, block->stack);
	if (!line)
		return;
	*MEM_ADD(gathering->list, gathering->count, gathering->capacity) = (struct left){
		.process = gathering->process,
		.line = line,
		.thread = block->thread,
		.stack = block->stack,
		.size = block->size,
	};
}

// All that threads left of one line. `list` is in the order of threads, so each change is another
// one. The largest block is shown.
static void consider(struct findings *findings, const struct findings_kind *kind,
		     const struct left *list, size_t count)
{
	uint64_t bytes = 0, threads = 0, largest = 0, of_thread = 0, most_of_thread = 0;
	const struct left *most = list;
	struct finding *finding;

	ASSERT(count > 0);
	for (size_t i = 0; i < count; i++) {
		if (i == 0 || list[i].thread != list[i - 1].thread) {
			of_thread = 0;
			threads++;
		}
		bytes += list[i].size;
		of_thread += list[i].size;
		if (of_thread > most_of_thread)
			most_of_thread = of_thread;
		if (list[i].size > largest) {
			largest = list[i].size;
			most = &list[i];
		}
	}
	// What one of them left is no matter of threads: the one that started Java leaves all that
	// Java lives by.
	if (threads < THREADS_MIN || bytes - most_of_thread < findings_bytes_min(findings))
		return;
	finding = findings_add(findings, kind, FINDINGS_LIKELY, most->process, most->stack);
	findings_say(&finding->what,
		     "%s threads that have ended left %s of %s, and nothing freed it.",
		     STR_COUNT(threads), STR_BYTES(bytes),
		     findings_function(findings, most->stack));
	findings_say(&finding->why,
		     "counted at the end of the process, of threads that gave their stacks back; "
		     "whether something still uses the %s blocks is not recorded",
		     STR_COUNT(count));
	findings_say(&finding->advice, "free it where the thread ends, or where it is joined");
	findings_figure(finding, "threads", "threads", FINDINGS_COUNT, threads);
	findings_figure(finding, "count", "blocks", FINDINGS_COUNT, count);
	findings_figure(finding, "bytes", "bytes", FINDINGS_BYTES, bytes);
	finding->saves_bytes = bytes;
	finding->at_end = true;
	findings_command(findings, finding, "window", "--by thread,stack", false, true);
}

// Sorts what is left by line, and considers each line's part of the list.
static void consider_all(struct findings *findings, const struct findings_kind *kind,
			 struct ended *ended)
{
	const struct present_options options = {
		.query = &findings->asked->selection.query,
		.at_exit = true,
		.inherits = TRACE_NONE,
		.undated = true,
	};
	struct present *present = moment_view_find(findings->asked, &options);
	struct gathering gathering = { .findings = findings, .ended = ended };
	size_t count, first = 0;
	struct left *list;

	for (process_id id = 0; id < reader_processes_count(ended->reader); id++) {
		gathering.process = id;
		present_each_block(present, id, PRESENT_HEAP, gather, &gathering);
	}
	present_free(present);
	list = gathering.list;
	count = gathering.count;
	if (count > 0)
		qsort(list, count, sizeof *list, by_line);
	for (size_t i = 1; i <= count; i++) {
		if (i < count && list[i].process == list[first].process &&
		    list[i].line == list[first].line)
			continue;
		consider(findings, kind, list + first, i - first);
		first = i;
	}
	mem_free(list);
}

// With few threads no line can have enough; the first pass over the calls is saved.
bool findings_ended_threads(struct findings *findings, const struct findings_kind *kind,
			    struct err *)
{
	struct ended ended = { .reader = findings->asked->reader };
	const struct present_options options = {
		.edge = { .number = UINT64_MAX, .exact = true },
		.inherits = TRACE_NONE,
		.before = on_call,
		.context = &ended,
	};

	ended.count = reader_threads_count(ended.reader);
	if (ended.count <= THREADS_MIN)
		return true;
	ended.list = mem_alloc(ended.count, sizeof *ended.list);
	moment_view_calls(findings->asked, &options, "threads");
	if (ended.any)
		consider_all(findings, kind, &ended);
	else if (ended.stacks.count == 0)
		findings_miss(findings, kind,
			      "no thread's stack is in the trace: that a thread has ended is "
			      "seen of glibc's alone, on Linux, from the program's start");
	map_fini(&ended.stacks);
	mem_free(ended.list);
	return true;
}
