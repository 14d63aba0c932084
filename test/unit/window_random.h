// Random traces for windows: everything that can happen to a block, far more often than it does.
#pragma once

#include "test/test.h"
#include "test/unit/sample_trace.h"

enum { RANDOM_PROCESSES = 4, RANDOM_THREADS = 12, RANDOM_STACKS = 14, RANDOM_SLOTS = 4096 };

// What one trace is like.
struct window_random {
	uint32_t events;
	uint32_t addresses;  // that blocks may lie at, at most RANDOM_SLOTS
	uint32_t free_share; // of 100: how many calls try to free
	uint32_t idle_share; // of 100: how often time goes on
	bool one_process;
	bool one_heap; // no pools
	bool clean;    // no lost, orphan or undone calls
	bool huge;     // some blocks have gigabytes
	bool late;     // calls after the end of their process, too
	bool calls;    // all calls on virtual memory, where blocks are, and processes that begin
};

struct window_generator {
	struct sample_random random;
	const struct window_random *like;
	struct writer *writer;
	uint64_t time_ns;
	bool over[RANDOM_PROCESSES], begun[RANDOM_PROCESSES];
	bool alive[RANDOM_PROCESSES][3][RANDOM_SLOTS];
	bool half[RANDOM_THREADS]; // a realloc is between its halves
	uint64_t half_address[RANDOM_THREADS];
};

static inline uint64_t below(struct window_generator *generator, uint64_t limit)
{
	return sample_below(&generator->random, limit);
}

static inline void define(struct window_generator *generator)
{
	struct writer *writer = generator->writer;
	uint32_t processes = generator->like->one_process ? 1 : RANDOM_PROCESSES;

	for (uint32_t i = 0; i < processes; i++) {
		const struct trace_process process = {
			.parent = i ? 0 : TRACE_NONE,
			.pid = 100 + i,
			.start = i == 1 ? TRACE_START_FORK : TRACE_START_EXEC,
			.bits = 64,
			.exe = "/bin/app",
		};

		writer_add_process(writer, &process);
	}
	for (uint32_t i = 0; i < RANDOM_THREADS; i++)
		writer_add_thread(writer, i % processes, 500 + i, "t");
	for (uint32_t i = 1; i <= RANDOM_STACKS; i++) {
		frame_id frame = writer_add_frame(writer, 0, 0x400000 + i * 16, 0);

		writer_add_stack(writer, i / 3, frame, 0);
	}
	for (uint32_t i = 0; i < 2; i++) {
		const struct trace_heap heap = { .process = 0, .name = i ? "pool" : "arena" };

		writer_add_heap(writer, &heap);
	}
}

static inline uint64_t random_size(struct window_generator *generator)
{
	static const uint64_t usual[] = { 0, 16, 16, 16, 40, 64, 4096 };

	if (generator->like->huge && !below(generator, 3))
		return UINT64_C(1) << (29 + below(generator, 10));
	if (below(generator, 4))
		return usual[below(generator, sizeof usual / sizeof *usual)];
	return below(generator, 100000);
}

static inline void emit(struct window_generator *generator, struct trace_event event)
{
	event.time_ns = generator->time_ns;
	writer_event(generator->writer, &event);
}

// An address: of a block that lives (or of one that does not) if that can be found soon.
static inline uint32_t slot(struct window_generator *generator, process_id process, heap_id heap,
			    bool wants_alive)
{
	uint32_t at = 0;

	for (unsigned i = 0; i < 40; i++) {
		at = (uint32_t)below(generator, generator->like->addresses);
		if (generator->alive[process][heap][at] == wants_alive)
			break;
	}
	return at;
}

static inline uint64_t address_of(uint32_t at)
{
	// Some addresses are those that no user space has.
	return at % 97 == 13 ? UINT64_C(0xffff800000000000) + at * 16 : 0x10000 + at * 16;
}

static inline uint32_t slot_of(uint64_t address)
{
	return (uint32_t)(address >> 48 ? address - UINT64_C(0xffff800000000000)
					: address - 0x10000) /
	       16;
}

static inline void one_call(struct window_generator *generator, thread_id thread,
			    process_id process)
{
	bool clean = generator->like->clean;
	bool pool = process == 0 && !generator->like->one_heap && below(generator, 8) == 0;
	heap_id heap = pool ? 1 + (heap_id)below(generator, 2) : 0;
	bool frees = below(generator, 100) < generator->like->free_share;
	bool *alive = generator->alive[process][heap];
	uint32_t at = slot(generator, process, heap,
			   clean ? frees : frees == (below(generator, 20) != 0));
	struct trace_event event = { .thread = thread,
				     .heap = heap,
				     .address = address_of(at),
				     .stack = (stack_id)below(generator, RANDOM_STACKS + 1) };

	if (frees) {
		event.kind = heap ? TRACE_HEAP_FREE : TRACE_FREE;
		if (heap && below(generator, 30) == 0) {
			event.kind = below(generator, 2) ? TRACE_HEAP_RESET : TRACE_HEAP_DESTROY;
			event.address = 0;
			memset(alive, 0, RANDOM_SLOTS);
		} else if (clean && !alive[at]) {
			return;
		}
		alive[at] = false;
	} else if (clean && alive[at]) {
		return;
	} else {
		event.kind = heap ? TRACE_HEAP_ALLOC : TRACE_MALLOC;
		event.size = random_size(generator);
		alive[at] = true;
	}
	emit(generator, event);
}

static inline void one_realloc(struct window_generator *generator, thread_id thread,
			       process_id process)
{
	bool *alive = generator->alive[process][0];
	uint32_t from = slot(generator, process, 0, true), to = from;
	struct trace_event event = { .thread = thread,
				     .kind = TRACE_REALLOC,
				     .old_address = address_of(from),
				     .size = random_size(generator),
				     .stack = (stack_id)below(generator, RANDOM_STACKS + 1) };

	if (!alive[from] && generator->like->clean)
		return;
	if (below(generator, 2))
		to = slot(generator, process, 0, false);
	if (alive[to] && to != from && generator->like->clean)
		to = from;
	event.address = address_of(to);
	alive[from] = false;
	alive[to] = true;
	emit(generator, event);
}

static inline void one_half(struct window_generator *generator, thread_id thread,
			    process_id process)
{
	uint32_t at = slot(generator, process, 0, true);
	struct trace_event event = { .thread = thread,
				     .address = address_of(at),
				     .size = random_size(generator),
				     .stack = 1 };

	if (!generator->half[thread]) {
		event.kind = TRACE_REALLOC_FREE;
		generator->half[thread] = true;
		generator->half_address[thread] = event.address;
		generator->alive[process][0][at] = false;
	} else {
		event.kind = below(generator, 2) ? TRACE_REALLOC_UNDO : TRACE_REALLOC_ALLOC;
		if (below(generator, 10))
			event.address = generator->half_address[thread];
		// What failed has not given its block up: nobody else can have it.
		at = slot_of(event.address);
		if (generator->alive[process][0][at])
			event.kind = TRACE_REALLOC_ALLOC;
		generator->alive[process][0][at] = true;
		generator->half[thread] = false;
	}
	emit(generator, event);
}

static inline void one_mapping(struct window_generator *generator, thread_id thread)
{
	const struct trace_vm vm = { .protection = 3, .flags = 0x32 };
	struct trace_event event = { .thread = thread,
				     .kind = below(generator, 2) ? TRACE_MMAP : TRACE_MUNMAP,
				     .address = 0x7f0000000000 + below(generator, 8) * 0x4000,
				     .size = 0x1000 * (1 + below(generator, 6)),
				     .stack = 2,
				     .vm = &vm };

	emit(generator, event);
}

// Calls of all kinds where blocks are.
static inline void one_call_on_space(struct window_generator *generator, thread_id thread)
{
	static const uint8_t kinds[] = { TRACE_MMAP,     TRACE_MMAP,    TRACE_MUNMAP, TRACE_MREMAP,
					 TRACE_MPROTECT, TRACE_MADVISE, TRACE_MAPPED, TRACE_BRK };
	struct trace_vm vm = {
		.protection = (uint32_t)below(generator, 4),
		.flags = below(generator, 2) ? 0x22 : 0x32,
		.origin = (uint8_t)(below(generator, 3) ? TRACE_ORIGIN_ALLOCATOR
							: TRACE_ORIGIN_PROGRAM),
		.old_size = 0x1000 * below(generator, 4),
		.error = below(generator, 12) ? 0 : 12,
	};
	struct trace_event event = {
		.thread = thread,
		.kind = kinds[below(generator, sizeof kinds)],
		.address = 0x10000 + below(generator, 16) * 0x1000 + below(generator, 20) / 19,
		.size = 0x1000 * (1 + below(generator, 6)) << (below(generator, 6) ? 0 : 4),
		.stack = (stack_id)below(generator, 3),
		.vm = &vm,
	};

	if (event.kind == TRACE_MADVISE)
		vm.flags = 4;
	if (event.kind == TRACE_MREMAP || event.kind == TRACE_BRK)
		event.old_address = 0x10000 + below(generator, 16) * 0x1000;
	emit(generator, event);
}

static inline void one_beginning(struct window_generator *generator, process_id process)
{
	if (generator->begun[process])
		return;
	generator->begun[process] = true;
	writer_note(generator->writer, &(struct trace_note){ .kind = TRACE_NOTE_PROCESS_START,
							     .process = process,
							     .thread = TRACE_NONE,
							     .time_ns = generator->time_ns });
}

static inline void one_item(struct window_generator *generator)
{
	uint32_t processes = generator->like->one_process ? 1 : RANDOM_PROCESSES;
	thread_id thread = (thread_id)below(generator, RANDOM_THREADS);
	process_id process = thread % processes;
	uint64_t what = below(generator, 1000);

	if (below(generator, 100) < generator->like->idle_share)
		generator->time_ns += below(generator, 50) ? below(generator, 100) : 1000000;
	if (generator->over[process] && !generator->like->late)
		return;
	if (generator->like->calls && below(generator, 8) == 0) {
		one_beginning(generator, process);
		one_call_on_space(generator, thread);
		return;
	}
	if (what < 4) {
		writer_note(generator->writer, &(struct trace_note){ .kind = TRACE_NOTE_MARK,
								     .process = process,
								     .thread = thread,
								     .time_ns = generator->time_ns,
								     .text = "mark" });
	} else if (what < 7 && process > 0) {
		writer_process_end(generator->writer, process, generator->time_ns,
				   what < 6 ? TRACE_EXIT_CODE : TRACE_EXIT_EXEC, 0);
		generator->over[process] = true;
	} else if (what < 30) {
		one_mapping(generator, thread);
	} else if (what < 120) {
		one_realloc(generator, thread, process);
	} else if (what < 150 && !generator->like->clean) {
		one_half(generator, thread, process);
	} else if (what < 160) {
		emit(generator,
		     (struct trace_event){ .thread = thread, .kind = TRACE_FAILED, .size = 5 });
	} else {
		one_call(generator, thread, process);
	}
}

// Write one to test_temp_path("random.tide"); its first `cut` bytes, if that is not 0.
static inline struct reader *window_random_open(uint64_t seed, const struct window_random *like,
						uint64_t cut)
{
	struct window_generator *generator = mem_alloc(1, sizeof *generator);
	const char *path = test_temp_path("random.tide");
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct trace_info info = sample_info();
	struct err err = { 0 };
	struct reader *reader;

	memcpy(info.recording_id, &seed, sizeof seed);
	generator->random.state = seed;
	generator->like = like;
	generator->writer = writer_new(fd, &info, &err);
	define(generator);
	for (uint32_t i = 0; i < like->events; i++) {
		one_item(generator);
		if (i % 997 == 996)
			writer_flush(generator->writer);
	}
	if (below(generator, 2) && !generator->over[0])
		writer_process_end(generator->writer, 0, generator->time_ns + 5, TRACE_EXIT_CODE,
				   0);
	writer_end(generator->writer, &(struct trace_end){ 0 });
	CHECK(writer_ok(generator->writer, &err));
	writer_free(generator->writer);
	mem_free(generator);
	if (cut)
		CHECK_EQ(0, ftruncate(fd, (off_t)cut));
	close(fd);
	reader = reader_open(path, &err);
	CHECK_STR("", err.text);
	return reader;
}
