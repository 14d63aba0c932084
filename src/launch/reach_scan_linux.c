// Reading what a process has, while it stands still, or what its copy has. Only pages that were
// touched are read: for example a thread's stack of 8 MiB of which 3 pages were ever used is 2,048
// words of /proc/PID/pagemap and 12 KiB of memory. What was never touched is zeros, and no address
// is: of 64 GiB that are reserved, as virtual machines of languages do, the touched are asked for.
//
// Roots are read by what they are: registers of all threads, stacks from their stack pointers on
// (less 128 bytes of red zone), a library's variables, and all other memory that may be written and
// is no allocator's, also where mprotect has taken the right to write away since. A stack whose
// thread has ended is no root. Of malloc's own heap nothing is read as a root: its blocks are
// reached, or not.
#include "launch/reach_scan_linux.h"

#include "base/mem.h"
#include "base/rising.h"
#include "collect/proc_memory.h"
#include "engine/replay/present.h"
#include "engine/replay/reach_search.h"
#include "launch/attachable_linux.h"
#include "launch/narrow_linux.h"
#include "launch/process_copy_linux.h"
#include "launch/tracee_linux.h"
#include "launch/tracer_linux.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	RED_ZONE = 128, // after the stack pointer, where a function may keep things
	PAGES_MAX = REACH_SEARCH_PART / SPACE_PAGE + 2,
	PARTS_MAX = 512,          // of one read
	REACH_SCAN_STOP_MS = 200, // for its threads to come where they can be stopped
};

// What a page of /proc/PID/pagemap says: it is in memory or swapped out; it is of a file or shared.
#define PAGE_THERE (UINT64_C(3) << 62)
#define PAGE_OF_FILE (UINT64_C(1) << 61)
#define WALK_MAX (UINT64_C(1) << 36) // bytes of mappings that are gone through at once

// Pages that the process has touched.
// [start, end), whole pages.
struct touched_pages {
	uint64_t start, end;
};

struct reach_scan_state {
	struct tracer *tracer;
	struct tracee tracee; // its threads as they were; stopped unless there is a copy
	struct process_copy copy;
	pid_t pid;           // whose memory is read
	uint64_t dead_stack; // below it the first thread's has nothing of the program's; 0: it may
	int pagemap;         // -1: all pages are read
	bool own_only;       // of pages the process's own alone
	struct touched_pages *shared; // that the copy's pagemap does not know; by address
	size_t shared_count, shared_capacity;
	uint8_t *buffer;
	bool ended;             // the process was killed meanwhile
	_Atomic bool abandoned; // what is read is nothing any more
	unsigned word_bytes;
	struct reach_search *search;
	const struct space *space;
	const struct ranges *ranges;
	struct trace_reach *reach;
};

// A line of /proc/PID/maps. NULL: it is none; else the path, which may be empty.
static const char *reach_scan_line(char *line, uint64_t *start, uint64_t *end,
				   char rights[static 8])
{
	int at = 0;

	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %*s %n", start, end, rights, &at) !=
	    3)
		return NULL;
	return line + at;
}

static FILE *reach_scan_maps(pid_t pid)
{
	char name[48];

	snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	return fopen(name, "re");
}

static int reach_scan_pagemap(pid_t pid)
{
	char name[48];

	snprintf(name, sizeof(name), "/proc/%d/pagemap", (int)pid);
	return open(name, O_RDONLY | O_CLOEXEC);
}

// Pages of a shared mapping that it has touched: in a copy none is, until somebody reads it.
static void reach_scan_note_shared(struct reach_scan_state *scan, int pagemap, uint64_t start,
				   uint64_t end)
{
	uint64_t pages[PAGES_MAX], count;

	for (start = proc_memory_touched(pagemap, start, end); start < end;
	     start = proc_memory_touched(pagemap, start + count * SPACE_PAGE, end)) {
		count = (end - start) / SPACE_PAGE;
		count = count < PAGES_MAX ? count : PAGES_MAX;
		if (pread(pagemap, pages, count * 8, (off_t)(start / SPACE_PAGE * 8)) !=
		    (ssize_t)(count * 8))
			return;
		for (uint64_t i = 0; i < count; i++) {
			uint64_t page = start + i * SPACE_PAGE;

			if (!(pages[i] & PAGE_THERE))
				continue;
			if (scan->shared_count > 0 &&
			    scan->shared[scan->shared_count - 1].end == page)
				scan->shared[scan->shared_count - 1].end += SPACE_PAGE;
			else
				*MEM_ADD(scan->shared, scan->shared_count, scan->shared_capacity) =
					(struct touched_pages){ page, page + SPACE_PAGE };
		}
	}
}

// While it is stopped.
static void reach_scan_find_shared(struct reach_scan_state *scan)
{
	FILE *maps = reach_scan_maps(scan->tracee.pid);
	int pagemap = reach_scan_pagemap(scan->tracee.pid);
	uint64_t start, end;
	char line[4352], rights[8] = "";

	while (maps && pagemap >= 0 && fgets(line, sizeof(line), maps))
		if (reach_scan_line(line, &start, &end, rights) && rights[0] == 'r' &&
		    rights[3] == 's')
			reach_scan_note_shared(scan, pagemap, start, end);
	if (maps)
		fclose(maps);
	if (pagemap >= 0)
		close(pagemap);
}

// ---- what the thread does that traces it ----

// A stop, a copy or a release. `ok` and the rest are its answer.
struct reach_scan_task {
	struct reach_scan_state *scan;
	struct err *err;
	uint64_t stood_ns;
	pid_t pid;
	bool ok;
};

static void reach_scan_do_release(void *context)
{
	struct reach_scan_task *task = context;
	struct reach_scan_state *scan = task->scan;

	if (scan->copy.pid)
		mem_free(scan->tracee.threads);
	else if (scan->tracee.count > 0)
		task->stood_ns = tracee_release(&scan->tracee);
	process_copy_end(&scan->copy);
}

static void reach_scan_do_stop(void *context)
{
	struct reach_scan_task *task = context;

	task->ok = tracee_stop(&task->scan->tracee, task->pid, task->err);
}

// A process that is killed, or executes another program, while it is let go is looked at no more:
// it is traced still, until that thread ends.
static void reach_scan_do_copy(void *context)
{
	struct reach_scan_task *task = context;
	struct reach_scan_state *scan = task->scan;
	struct tracee_thread *threads;
	size_t count = scan->tracee.count;

	if (!process_copy_make(&scan->copy, &scan->tracee))
		return;
	threads = mem_alloc(count, sizeof(*threads));
	memcpy(threads, scan->tracee.threads, count * sizeof(*threads));
	reach_scan_find_shared(scan);
	task->stood_ns = tracee_release(&scan->tracee);
	task->ok = !scan->tracee.left;
	scan->ended |= !task->ok;
	scan->tracee = (struct tracee){ .pid = task->pid, .threads = threads, .count = count };
	if (!task->ok)
		process_copy_end(&scan->copy);
}

static uint64_t reach_scan_release(void *stopped)
{
	struct reach_scan_state *scan = stopped;
	struct reach_scan_task task = { .scan = scan };

	if (scan->tracer)
		tracer_do(scan->tracer, reach_scan_do_release, &task);
	tracer_end(scan->tracer);
	if (scan->pagemap >= 0)
		close(scan->pagemap);
	MEM_FREE(scan->buffer, scan->shared, scan);
	return task.stood_ns;
}

// attachable_await comes first and touches nothing: if one thread could not be stopped, the others
// would stand and wait for it.
static void *reach_scan_stop(uint32_t pid, uint64_t dead_stack, struct err *err)
{
	struct reach_scan_state *scan = mem_alloc(1, sizeof(*scan));
	struct reach_scan_task task = { .scan = scan, .err = err, .pid = (pid_t)pid };

	scan->dead_stack = dead_stack;
	scan->pagemap = -1;
	process_copy_prepare(&scan->copy, (pid_t)pid);
	scan->tracer = tracer_new((pid_t)pid);
	if (!scan->tracer)
		err_set(err, ERR_IO, "there is no thread to be had");
	else if (attachable_await((pid_t)pid, REACH_SCAN_STOP_MS, -1, NULL, err))
		tracer_do(scan->tracer, reach_scan_do_stop, &task);
	if (!task.ok) {
		reach_scan_release(scan);
		return NULL;
	}
	scan->pid = scan->tracee.pid;
	return scan;
}

static bool reach_scan_copy(void *stopped, uint64_t *stopped_ns)
{
	struct reach_scan_state *scan = stopped;
	struct reach_scan_task task = { .scan = scan, .pid = scan->tracee.pid };

	ASSERT(!scan->copy.pid && scan->tracee.count > 0);
	tracer_do(scan->tracer, reach_scan_do_copy, &task);
	*stopped_ns = task.stood_ns;
	if (task.ok)
		scan->pid = scan->copy.pid;
	return task.ok;
}

static void reach_scan_abandon(void *stopped)
{
	struct reach_scan_state *scan = stopped;

	scan->abandoned = true;
	if (scan->copy.pid)
		kill(scan->copy.pid, SIGKILL); // what is read then is nothing
}

// ---- reading its memory ----

// Read several parts of it at once. What cannot be read is left as zeros, and noted.
static void reach_scan_fetch(struct reach_scan_state *scan, struct iovec *here, struct iovec *there,
			     size_t count)
{
	size_t wanted = 0;
	ssize_t got;

	for (size_t i = 0; i < count; i++)
		wanted += here[i].iov_len;
	if (count == 0)
		return;
	errno = 0;
	ASSERT(count <= PARTS_MAX && wanted <= REACH_SEARCH_PART + 2 * SPACE_PAGE);
	// One call for up to 512 parts. If any part cannot be read the kernel stops there and says
	// how far it came; then each is read by itself.
	got = process_vm_readv(scan->pid, here, count, there, count, 0);
	scan->reach->read_bytes += wanted;
	if (got == (ssize_t)wanted)
		return;
	for (size_t i = 0; i < count; i++)
		if (process_vm_readv(scan->pid, &here[i], 1, &there[i], 1, 0) !=
		    (ssize_t)here[i].iov_len)
			scan->reach->flags |= TRACE_REACH_PARTIAL;
	scan->ended |= errno == ESRCH;
}

// Which of `count` pages from `start` on are to be read. False: none, as it is with code.
static bool reach_scan_pages(const struct reach_scan_state *scan, uint64_t start, uint64_t count,
			     uint64_t pages[static PAGES_MAX])
{
	size_t at = RISING_UPTO(scan->shared, scan->shared_count, end, start);
	uint64_t end = start + count * SPACE_PAGE;

	ASSERT(start % SPACE_PAGE == 0 && count <= PAGES_MAX);
	if (scan->pagemap < 0 || pread(scan->pagemap, pages, count * 8,
				       (off_t)(start / SPACE_PAGE * 8)) != (ssize_t)(count * 8)) {
		memset(pages, 0xff, count * 8);
		return true;
	}
	// A mapping that may only be read: of a file, what was never written is as it is in the
	// file, and no pointer of the program's is there.
	if (scan->own_only) {
		bool some = false;

		for (uint64_t i = 0; i < count; i++) {
			pages[i] = pages[i] & PAGE_OF_FILE ? 0 : pages[i];
			some |= (pages[i] & PAGE_THERE) != 0;
		}
		return some;
	}
	for (; at < scan->shared_count && scan->shared[at].start < end; at++)
		for (uint64_t i = 0; i < count; i++)
			if (start + i * SPACE_PAGE >= scan->shared[at].start &&
			    start + i * SPACE_PAGE < scan->shared[at].end)
				pages[i] = PAGE_THERE;
	return true;
}

// At most REACH_SEARCH_PART bytes from `start` on, of pages that were touched; zeros for others.
// NULL: none of a mapping that may only be read.
static const uint8_t *reach_scan_bytes(struct reach_scan_state *scan, uint64_t start, uint64_t end)
{
	uint64_t pages[PAGES_MAX];
	uint64_t first = start / SPACE_PAGE, count = (end - 1) / SPACE_PAGE + 1 - first;
	struct iovec here[PARTS_MAX], there[PARTS_MAX];
	size_t size = (size_t)(end - start), parts = 0;

	ASSERT(start < end && count <= PAGES_MAX && size <= REACH_SEARCH_PART + 2 * SPACE_PAGE);
	if (!reach_scan_pages(scan, first * SPACE_PAGE, count, pages))
		return NULL;
	memset(scan->buffer, 0, size);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t from = (first + i) * SPACE_PAGE, to = from + SPACE_PAGE;

		if (!(pages[i] & PAGE_THERE))
			continue;
		from = from < start ? start : from;
		to = to > end ? end : to;
		// Pages next to each other are one part.
		if (parts > 0 &&
		    (uint64_t)(uintptr_t)there[parts - 1].iov_base + there[parts - 1].iov_len ==
			    from) {
			here[parts - 1].iov_len += to - from;
			there[parts - 1].iov_len += to - from;
			continue;
		}
		if (parts == PARTS_MAX) {
			reach_scan_fetch(scan, here, there, parts);
			parts = 0;
		}
		here[parts] = (struct iovec){ scan->buffer + (from - start), to - from };
		there[parts++] = (struct iovec){ (void *)(uintptr_t)from, to - from };
	}
	reach_scan_fetch(scan, here, there, parts);
	if (scan->copy.pid)
		process_copy_amend(&scan->copy, start, end, scan->buffer);
	return scan->buffer;
}

// From `start` on, where nothing was found that is to be read: where there may be something next,
// `end` at most. What the copy's tables of pages do not know is heeded.
static uint64_t reach_scan_past_nothing(const struct reach_scan_state *scan, uint64_t start,
					uint64_t end)
{
	size_t shared = RISING_UPTO(scan->shared, scan->shared_count, end, start);
	uint64_t limit = end;

	if (scan->pagemap < 0)
		return start;
	if (shared < scan->shared_count && scan->shared[shared].start < limit)
		limit = scan->shared[shared].start;
	for (size_t i = 0; scan->copy.pid && i < scan->copy.parts_count; i++)
		if (scan->copy.parts[i].end > start && scan->copy.parts[i].start < limit)
			limit = scan->copy.parts[i].start;
	while (start < limit && !scan->abandoned) {
		uint64_t upto = limit - start < WALK_MAX ? limit : start + WALK_MAX;
		uint64_t page = start / SPACE_PAGE * SPACE_PAGE;
		uint64_t last = (upto + SPACE_PAGE - 1) / SPACE_PAGE * SPACE_PAGE;
		uint64_t touched = proc_memory_touched(scan->pagemap, page, last);

		if (touched < last)
			return touched > start ? touched : start;
		start = upto;
	}
	return start;
}

// Whether there is anything but zeros in a part that was read.
static bool reach_scan_is_empty(const uint8_t *bytes, uint64_t size)
{
	return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, (size_t)size - 1) == 0);
}

// A piece at a time, as large as the buffer.
static void reach_scan_root(struct reach_scan_state *scan, uint64_t start, uint64_t end,
			    enum trace_reach_place place, bool beginnings_only)
{
	ASSERT(start <= end);
	while (start < end && !scan->abandoned) {
		uint64_t part = end - start < REACH_SEARCH_PART ? end - start : REACH_SEARCH_PART;
		const uint8_t *bytes = reach_scan_bytes(scan, start, start + part);

		if (bytes)
			reach_search_root(scan->search, bytes, (size_t)part, start, place,
					  beginnings_only);
		start += part;
		if (!bytes || reach_scan_is_empty(bytes, part))
			start = reach_scan_past_nothing(scan, start, end);
	}
}

// ---- roots ----

static void reach_scan_registers(struct reach_scan_state *scan)
{
	for (size_t i = 0; i < scan->tracee.count; i++) {
		const struct tracee_thread *thread = &scan->tracee.threads[i];
		const unsigned long long *words = (const unsigned long long *)&thread->registers;

		if (thread->gone || (scan->dead_stack && thread->tid == scan->tracee.pid))
			continue;
		for (size_t j = 0; j < sizeof(thread->registers) / sizeof(*words); j++)
			reach_search_root(scan->search, &words[j], scan->word_bytes,
					  (uint64_t)thread->tid, TRACE_REACH_REGISTER, false);
	}
}

// Whether a thread is at home in the mapping: its stack pointer is there, or what it has for
// itself. *sp: the lowest stack pointer, or `end`.
static bool reach_scan_inhabited(const struct reach_scan_state *scan, uint64_t start, uint64_t end,
				 uint64_t *sp)
{
	bool inhabited = false;

	*sp = end;
	for (size_t i = 0; i < scan->tracee.count; i++) {
		const struct tracee_thread *thread = &scan->tracee.threads[i];
		uint64_t at = thread->registers.rsp;
		uint64_t own = narrow_thread_pointer(&thread->registers);

		if (thread->gone)
			continue;
		if (at >= start && at < end && at < *sp)
			*sp = at;
		inhabited |= (at >= start && at < end) || (own >= start && own < end);
	}
	return inhabited;
}

static bool reach_scan_is_own(const struct reach_scan_state *scan, uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < scan->tracee.count; i++) {
		const struct tracee_thread *thread = &scan->tracee.threads[i];
		uint64_t own = narrow_thread_pointer(&thread->registers);

		if (!thread->gone && own >= start && own < end)
			return true;
	}
	return false;
}

static uint64_t reach_scan_word(const struct reach_scan_state *scan, const uint8_t *bytes)
{
	uint64_t word = 0;

	memcpy(&word, bytes, scan->word_bytes);
	return word;
}

// The stack of a thread that has ended is kept for the next one, and so are its tables of TLS:
// glibc finds them by the thread's control block, of which the first word and the third are its
// own address and the second leads to the tables. All else that is left there counts no more.
static void reach_scan_kept(struct reach_scan_state *scan, uint64_t start, uint64_t end)
{
	uint64_t step = scan->word_bytes, part;

	ASSERT(step == 4 || step == 8);
	for (; start < end && !scan->abandoned; start += part) {
		const uint8_t *bytes;

		part = end - start < REACH_SEARCH_PART ? end - start : REACH_SEARCH_PART;
		bytes = reach_scan_bytes(scan, start, start + part);
		for (uint64_t i = 0; bytes && i + 3 * step <= part; i += step)
			if (reach_scan_word(scan, bytes + i) == start + i &&
			    reach_scan_word(scan, bytes + i + 2 * step) == start + i)
				reach_search_root(scan->search, bytes + i, 3 * step, start + i,
						  TRACE_REACH_TLS, false);
	}
}

// From the lowest stack pointer on, and what a function that calls none may use below it
// (RED_ZONE).
static void reach_scan_stack(struct reach_scan_state *scan, uint64_t start, uint64_t end)
{
	uint64_t sp;

	if (!reach_scan_inhabited(scan, start, end, &sp)) {
		reach_scan_kept(scan, start, end);
		return;
	}
	if (sp == end) // on another stack now
		sp = start;
	else
		sp = sp - start > RED_ZONE ? sp - RED_ZONE : start;
	if (scan->dead_stack > sp && scan->dead_stack < end)
		sp = scan->dead_stack;
	reach_scan_root(scan, sp & ~(uint64_t)7, end, TRACE_REACH_STACK, false);
}

// A part of a mapping, all of one owner.
static void reach_scan_part(struct reach_scan_state *scan, uint64_t start, uint64_t end,
			    enum space_owner owner, bool is_libc)
{
	switch (owner) {
	case SPACE_MALLOC_HEAP:
	case SPACE_MALLOC_ARENA:
	case SPACE_MALLOC_LARGE:
	case SPACE_ALLOCATOR:
	case SPACE_TIDEMARK:
	case SPACE_KERNEL:
		return;
	case SPACE_MAIN_STACK:
	case SPACE_THREAD_STACK:
		reach_scan_stack(scan, start, end);
		return;
	case SPACE_LIBRARY:
		reach_scan_root(scan, start, end, TRACE_REACH_GLOBAL, is_libc);
		return;
	default:
		reach_scan_root(scan, start, end,
				reach_scan_is_own(scan, start, end) ? TRACE_REACH_TLS
								    : TRACE_REACH_OTHER,
				false);
	}
}

static bool reach_scan_is_libc(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && (strncmp(name, "/libc.so", 8) == 0 || strncmp(name, "/libc-2", 7) == 0);
}

// A mapping: as the trace knows whose its parts are.
static void reach_scan_mapping(struct reach_scan_state *scan, uint64_t start, uint64_t end,
			       const char *path)
{
	const char *name = strrchr(path, '/');
	bool is_libc = reach_scan_is_libc(path);

	// No roots: devices, the recorder itself, malloc's heap, whose blocks are searched as
	// blocks, and the kernel's own pages ([vdso], [vvar]).
	if (strncmp(path, "/dev/", 5) == 0 && strncmp(path, "/dev/shm/", 9) != 0 &&
	    strncmp(path, "/dev/zero", 9) != 0)
		return; // reading may do something
	if (name && strncmp(name, "/libtidemark", 12) == 0)
		return;
	if (strcmp(path, "[heap]") == 0 || strncmp(path, "[v", 2) == 0)
		return;
	while (start < end) {
		const struct range *range = scan->ranges ? ranges_from(scan->ranges, start) : NULL;
		enum space_owner owner = SPACE_PROGRAM;
		uint64_t next = end;

		if (range && range->start > start) {
			next = range->start < end ? range->start : end;
		} else if (range) {
			owner = space_owner(scan->space, range);
			next = range->end < end ? range->end : end;
		}
		if (strcmp(path, "[stack]") == 0) {
			owner = SPACE_MAIN_STACK;
			next = end;
		}
		ASSERT(next > start); // so that this comes to an end
		reach_scan_part(scan, start, next, owner, is_libc);
		start = next;
	}
}

// What may only be read is a root where the program has written to it before (mprotect); pages of
// files that were not written to hold no pointer.
static bool reach_scan_roots(struct reach_scan_state *scan, struct err *err)
{
	FILE *maps = reach_scan_maps(scan->pid);
	char line[4352];
	bool mapped = false;

	if (!maps)
		return err_set(err, ERR_IO, "cannot read the maps of process %d", (int)scan->pid);
	while (fgets(line, sizeof(line), maps)) {
		uint64_t start, end;
		char rights[8] = "";
		const char *path = reach_scan_line(line, &start, &end, rights);

		mapped = true;
		if (!path || rights[0] != 'r')
			continue;
		scan->own_only = rights[1] != 'w';
		if (!scan->own_only || (scan->pagemap >= 0 && rights[3] == 'p'))
			reach_scan_mapping(scan, start, end, path);
	}
	scan->own_only = false;
	fclose(maps);
	scan->ended |= !mapped;
	return true;
}

// ---- blocks ----

// Those of the trace, without those that its parent left it: these may hold others, and are looked
// at, but are not its own.
struct reach_scan_list {
	struct trace_reach_block *blocks;
	bool *inherited;
	size_t count, capacity;
};

static void reach_scan_block(void *context, const struct present_block *block)
{
	struct reach_scan_list *list = context;

	ASSERT(list->count < list->capacity);
	list->inherited[list->count] = block->inherited;
	list->blocks[list->count++] = (struct trace_reach_block){
		.address = block->address,
		.size = block->size,
		.stack = block->stack,
		.thread = block->thread,
	};
}

// `present` gives up its own list of them, so that they are in memory once.
static struct reach_scan_list reach_scan_blocks(struct present *present, process_id process)
{
	size_t count = present_count(present, process, PRESENT_HEAP);
	struct reach_scan_list list = {
		.blocks = mem_alloc_table(count + 1, sizeof(*list.blocks)),
		.inherited = mem_alloc(count + 1, sizeof(*list.inherited)),
		.capacity = count,
	};

	present_each_block(present, process, PRESENT_HEAP, reach_scan_block, &list);
	present_forget_blocks(present);
	return list;
}

// Inherited blocks take part, for a pointer to one of ours may be in one; what is reported are the
// process's own, which move to the front of the same list.
static bool reach_scan_search(struct reach_scan_state *scan, struct present *present,
			      process_id process, struct err *err)
{
	struct trace_reach *reach = scan->reach;
	struct reach_scan_list list = reach_scan_blocks(present, process);
	uint64_t start, end;
	bool ok;

	reach->blocks = list.blocks;
	scan->search = reach_search_new(list.blocks, list.count, scan->word_bytes);
	reach_scan_registers(scan);
	ok = reach_scan_roots(scan, err);
	while (ok && !scan->abandoned && reach_search_next(scan->search, &start, &end)) {
		const uint8_t *bytes = reach_scan_bytes(scan, start, end);
		uint64_t rest;

		reach_search_take(scan->search, bytes);
		rest = reach_search_rest(scan->search);
		if (rest > end && reach_scan_is_empty(bytes, end - start))
			reach_search_skip(scan->search, reach_scan_past_nothing(scan, end, rest));
	}
	reach_search_finish(scan->search);
	reach_search_free(scan->search);
	for (size_t i = 0; i < list.count; i++)
		if (!list.inherited[i])
			reach->blocks[reach->count++] = reach->blocks[i];
	mem_free(list.inherited);
	ASSERT(reach->count <= list.count);
	reach->total = reach->count;
	return ok && (!(scan->ended || scan->abandoned) ||
		      err_set(err, ERR_IO, "it has ended meanwhile"));
}

static bool reach_scan_read(void *stopped, int trace_fd, process_id process,
			    struct trace_reach *reach, struct err *err)
{
	struct reach_scan_state *scan = stopped;
	struct present_options options = { .inherits = process,
					   .edge = { .number = reach->number, .exact = true },
					   .undated = true };
	struct present *present;
	struct reader *reader;
	char path[48];
	bool ok;

	ASSERT(scan->tracee.count > 0 && trace_fd >= 0);
	scan->pagemap = reach_scan_pagemap(scan->pid);
	scan->buffer = mem_alloc(1, REACH_SEARCH_PART + 2 * SPACE_PAGE);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", trace_fd);
	reader = reader_open(path, err);
	if (!reader)
		return err_wrap(err, "the trace is not a file that can be read");
	present = present_read(reader, &options);
	// Blocks are missing then of which nothing is known, and what only they point to would seem
	// lost.
	if (reader_is_estimated(reader) || reader_process(reader, process)->paused ||
	    reader_process(reader, process)->start == TRACE_START_ATTACH)
		reach->flags |= TRACE_REACH_BLIND;
	scan->reach = reach;
	scan->space = present_space(present);
	scan->ranges = space_ranges(scan->space, process);
	scan->word_bytes = reader_process(reader, process)->bits == 32 ? 4 : 8;
	ok = reach_scan_search(scan, present, process, err);
	present_free(present);
	reader_close(reader);
	return ok;
}

const struct collect_reach reach_scan = {
	.stop = reach_scan_stop,
	.copy = reach_scan_copy,
	.read = reach_scan_read,
	.abandon = reach_scan_abandon,
	.release = reach_scan_release,
};
