// Findings about arenas of glibc that several threads use at the same time. Which arena a block is
// of shows in its address: the break is the main one's, the others' heaps are aligned mappings. A
// call needs the arena's lock unless the thread's own cache (tcache) serves it, which is computed:
// seven chunks of each size up to 1,040 bytes.
//
// For example, with one arena and in the same tenth of a second,
//
//     t  malloc 0x5000 4000      too large for the cache: takes the lock
//     u  malloc 0x6000 4000      the same lock
//     u  malloc 0x7000 40        if u had freed one of that size before: no lock
//
// Whether one waited for the other is not recorded: who waits makes no calls. So what is told is
// only that they could have.
//
// Windows of 100 ms: in one of them 60,000 calls that need the lock, 12,000 of them by others than
// the first thread, in turns, make it count; three such windows make a finding. At 50,000 calls of
// about 100 ns each the lock is held for a twentieth of the time.
#include "report/find/findings_own.h"

#include "base/map.h"
#include "base/mem.h"
#include "report/ask/moment_view.h"

enum {
	CACHED = 7, // chunks of one size in a thread's cache
	CACHE_SIZES = 64,
	FAST_WORDS = 16, // a chunk of so many words at most is freed without the lock
	WINDOW_NS = 100 * 1000 * 1000,
	WINDOW_CALLS_MIN = 50000, // by all threads: the lock is held for a twentieth of the time
	WINDOW_SHARE = 10,        // part of them by others than the first one
	TURNS_MIN = 8,            // of threads in a window: not one after the other
	WINDOWS_MIN = 3,
	THREAD_PART = 100, // of an arena's calls: who makes fewer is not counted
	ARENA_MAIN = 1,    // of a process; the others after it
};

// One lock, and its calls in the window that is being read.
struct heap_arena {
	process_id process;
	uint64_t window, calls, turns;
	thread_id first, last; // to come in the window
	uint64_t by_first;
	uint64_t windows, together, most; // windows in which threads came together; calls there
	uint64_t all;
	struct map threads, sites; // calls by the thread, and by the stack of the block
};

// What is known of one thread: how many chunks of each of tcache's 64 sizes its own frees have put
// there, and which arena it is using.
struct arenas_thread {
	uint8_t cached[CACHE_SIZES];
	uint32_t arena; // that its last block of a heap of its own was of; 0: none yet
};

// Addresses that brk has ever given a process: those of the main arena. It may have shrunk since;
// what was there was the main arena's all the same.
struct break_range {
	uint64_t low, end;
};

struct findings_arenas {
	const struct findings *findings;
	struct map heaps; // process and address -> arena, 0 while none of its blocks is seen
	struct break_range *breaks; // by process
	uint32_t *mains;            // arenas, by process; 0: not met
	struct heap_arena *list;    // from 1
	size_t count, capacity;
	struct arenas_thread *threads;
	uint32_t threads_count;
};

static unsigned bits_of(const struct findings_arenas *arenas, process_id process)
{
	return reader_process(arenas->findings->asked->reader, process)->bits == 32 ? 32 : 64;
}

// HEAP_MAX_SIZE of glibc: a heap of a thread's arena begins at a multiple of it, so an address
// tells its heap.
static uint64_t heap_bytes(unsigned bits)
{
	ASSERT(bits == 32 || bits == 64);
	return bits == 32 ? 1 << 20 : 64 << 20;
}

// Of the heap that an address would be in.
static uint64_t heap_key(const struct findings_arenas *arenas, process_id process, uint64_t address)
{
	return (uint64_t)process << 48 | address / heap_bytes(bits_of(arenas, process));
}

// ---- which arenas there are ----

// Notes the breaks, and the mappings that are heaps: glibc reserves two heaps' bytes without
// protection and trims them to one that is aligned, or gets an aligned one at once. `bytes - 1`
// after the mapping's start is in the one that stays.
static void on_call(void *context, const struct space *, const struct trace_event *event)
{
	struct findings_arenas *arenas = context;
	const struct trace_thread *thread =
		reader_thread(arenas->findings->asked->reader, event->thread);
	const struct trace_vm *vm = event->vm;
	struct break_range *range;
	uint64_t bytes;

	if (!vm || !thread || vm->error)
		return;
	bytes = heap_bytes(bits_of(arenas, thread->process));
	if (event->kind == TRACE_BRK) {
		range = &arenas->breaks[thread->process];
		if (!range->end || event->old_address < range->low)
			range->low = event->old_address;
		if (event->address > range->end)
			range->end = event->address;
	} else if (event->kind == TRACE_MMAP && vm->origin == TRACE_ORIGIN_ALLOCATOR &&
		   !vm->protection && !vm->file &&
		   (event->size == 2 * bytes ||
		    (event->size == bytes && event->address % bytes == 0))) {
		map_put(&arenas->heaps,
			heap_key(arenas, thread->process, event->address + bytes - 1), NULL);
	}
}

// Whether any process had two threads: where none had, no arena is shared.
static bool has_threads(const struct reader *reader)
{
	bool *met = mem_alloc(reader_processes_count(reader) + (size_t)1, sizeof *met);
	bool has = false;

	for (thread_id id = 0; id < reader_threads_count(reader) && !has; id++) {
		process_id process = reader_thread(reader, id)->process;

		has = met[process];
		met[process] = true;
	}
	mem_free(met);
	return has;
}

// NULL where no process had two threads: then nothing is counted, and the pass over the calls is
// saved.
struct findings_arenas *findings_arenas_new(struct findings *findings)
{
	const struct reader *reader = findings->asked->reader;
	struct findings_arenas *arenas;
	struct present_options options = {
		.edge = { .number = UINT64_MAX, .exact = true },
		.inherits = TRACE_NONE,
		.before = on_call,
	};

	if (!has_threads(reader))
		return NULL;
	arenas = mem_alloc(1, sizeof *arenas);
	arenas->findings = findings;
	arenas->breaks = mem_alloc(reader_processes_count(reader), sizeof *arenas->breaks);
	arenas->mains = mem_alloc(reader_processes_count(reader), sizeof *arenas->mains);
	arenas->threads_count = reader_threads_count(reader);
	arenas->threads = mem_alloc(arenas->threads_count, sizeof *arenas->threads);
	arenas->list = mem_grow(NULL, &arenas->capacity, ARENA_MAIN, sizeof *arenas->list);
	arenas->count = ARENA_MAIN;
	options.context = arenas;
	moment_view_calls(findings->asked, &options, "arenas");
	return arenas;
}

void findings_arenas_free(struct findings_arenas *arenas)
{
	if (!arenas)
		return;
	for (size_t i = ARENA_MAIN; i < arenas->count; i++) {
		MAP_FINI(&arenas->list[i].threads, &arenas->list[i].sites);
	}
	map_fini(&arenas->heaps);
	MEM_FREE(arenas->breaks, arenas->mains, arenas->list, arenas->threads, arenas);
}

// ---- who takes the lock ----

// The number of a new one; pointers into the list are void then.
static uint32_t new_arena(struct findings_arenas *arenas, process_id process)
{
	*MEM_ADD(arenas->list, arenas->count, arenas->capacity) =
		(struct heap_arena){ .process = process };
	return (uint32_t)arenas->count - 1;
}

// The arena that a block is of; 0: it has a mapping for itself, or it is not known.
static uint32_t arena_of(struct findings_arenas *arenas, process_id process, uint64_t address,
			 struct arenas_thread *thread)
{
	const struct break_range *range = &arenas->breaks[process];
	uint64_t *arena;

	if (address >= range->low && address < range->end) {
		if (!arenas->mains[process])
			arenas->mains[process] = new_arena(arenas, process);
		return arenas->mains[process];
	}
	arena = map_find(&arenas->heaps, heap_key(arenas, process, address));
	if (!arena)
		return 0;
	// A further heap of the arena that the thread had.
	if (!*arena)
		*arena = thread->arena ? thread->arena : new_arena(arenas, process);
	ASSERT(*arena >= ARENA_MAIN && *arena < arenas->count);
	thread->arena = (uint32_t)*arena;
	return thread->arena;
}

// The window counts if threads came together in it: many calls, in turns, of which neither the
// first thread nor all others made nearly all. Then it is emptied.
static void end_window(struct heap_arena *arena)
{
	uint64_t others = arena->calls - arena->by_first;

	ASSERT(arena->by_first <= arena->calls && arena->turns <= arena->calls);
	if (arena->calls >= WINDOW_CALLS_MIN && arena->turns >= TURNS_MIN &&
	    others >= arena->calls / WINDOW_SHARE &&
	    arena->by_first >= arena->calls / WINDOW_SHARE) {
		arena->windows++;
		arena->together += arena->calls;
		if (arena->calls > arena->most)
			arena->most = arena->calls;
	}
	arena->calls = arena->by_first = arena->turns = 0;
}

// A call that needs the lock. Windows are cut at multiples of 100 ms of the trace's time; one
// without calls needs no end.
static void take_lock(struct heap_arena *arena, thread_id thread, uint64_t time_ns, stack_id stack)
{
	ASSERT(arena->calls > 0 || arena->turns == 0);
	if (time_ns / WINDOW_NS != arena->window)
		end_window(arena);
	arena->window = time_ns / WINDOW_NS;
	if (!arena->calls)
		arena->first = thread;
	arena->turns += arena->calls && arena->last != thread;
	arena->last = thread;
	arena->calls++;
	arena->all++;
	arena->by_first += arena->first == thread;
	++*map_put(&arena->threads, thread, NULL);
	++*map_put(&arena->sites, stack, NULL);
}

// A call of a thread on a block: one that allocates, or one that frees. What tcache serves needs no
// lock and moves its count. For example a block of 40 bytes: 40 + 8 rounded up to 16 is a chunk of
// 48, place 1; seven frees of that size fill it, and the eighth goes to a fast bin, which needs no
// lock either. Of a chunk over 128 bytes the eighth takes the lock.
static void count_call(struct findings_arenas *arenas, const struct lives_block *block,
		       thread_id by, uint64_t time_ns, bool frees)
{
	unsigned word = bits_of(arenas, block->process) / 8;
	uint64_t least = word == 4 ? 16 : 32, chunk = (block->size + word + 15) / 16 * 16, place;
	struct arenas_thread *thread;
	uint32_t arena;

	if (block->heap || by >= arenas->threads_count ||
	    !findings_is_glibc(arenas->findings, block->process))
		return;
	thread = &arenas->threads[by];
	arena = arena_of(arenas, block->process, block->address, thread);
	if (!arena)
		return;
	place = chunk > least ? (chunk - least) / 16 : 0;
	if (place < CACHE_SIZES && frees && thread->cached[place] < CACHED) {
		thread->cached[place]++;
		return;
	}
	if (place < CACHE_SIZES && !frees && block->kind == TRACE_MALLOC && thread->cached[place]) {
		thread->cached[place]--;
		return;
	}
	if (!frees || chunk > FAST_WORDS * word)
		take_lock(&arenas->list[arena], by, time_ns, block->stack);
}

void findings_arenas_begin(struct findings_arenas *arenas, const struct lives_block *block)
{
	count_call(arenas, block, block->thread, block->time_ns, false);
}

// A block that ends with its process or an exec is freed by no call.
void findings_arenas_end(struct findings_arenas *arenas, const struct lives_block *block,
			 const struct lives_end *end)
{
	if (block->origin == LIVES_BEGUN &&
	    (end->cause == LIVES_FREE || end->cause == LIVES_REALLOC))
		count_call(arenas, block, end->thread, end->time_ns, true);
}

// ---- being told ----

// Of equals the one with the lower number, so that the answer does not depend on the order of a
// hash table.
static stack_id most_calls(const struct heap_arena *arena)
{
	uint64_t stack, calls, most = 0;
	stack_id found = 0;
	size_t at = 0;

	while (map_next(&arena->sites, &at, &stack, &calls)) {
		if (calls < most || (calls == most && stack > found))
			continue;
		most = calls;
		found = (stack_id)stack;
	}
	return found;
}

// Threads that make a hundredth of the arena's calls or more.
static uint64_t count_threads(const struct heap_arena *arena)
{
	uint64_t thread, calls, count = 0;
	size_t at = 0;

	while (map_next(&arena->threads, &at, &thread, &calls))
		count += calls >= arena->all / THREAD_PART;
	return count;
}

// The last window of each arena is still open, and is judged first.
void findings_arenas_sum(struct findings_facts *facts)
{
	struct findings_arenas *arenas = facts->arenas;

	for (size_t i = ARENA_MAIN; arenas && i < arenas->count; i++) {
		struct heap_arena *arena = &arenas->list[i];

		end_window(arena);
		*MEM_ADD(facts->locks, facts->locks_count, facts->locks_capacity) =
			(struct findings_lock){
				.process = arena->process,
				.stack = most_calls(arena),
				.windows = arena->windows,
				.together = arena->together,
				.most = arena->most,
				.threads = count_threads(arena),
			};
	}
	findings_arenas_free(arenas);
	facts->arenas = NULL;
}

bool findings_contention(struct findings *findings, const struct findings_kind *kind, struct err *)
{
	const struct findings_facts *facts = findings->facts;

	for (size_t i = 0; i < facts->locks_count; i++) {
		const struct findings_lock *lock = &facts->locks[i];
		struct finding *finding;

		if (lock->windows < WINDOWS_MIN || lock->together < findings_calls_min(findings))
			continue;
		finding =
			findings_add(findings, kind, FINDINGS_POSSIBLE, lock->process, lock->stack);
		findings_say(
			&finding->what,
			"%s threads use one arena at the same time: %s calls need its lock, up "
			"to %s in 100 ms.",
			STR_COUNT(lock->threads), STR_COUNT(lock->together), STR_COUNT(lock->most));
		findings_say(&finding->why,
			     "by the addresses of the blocks and the rules of glibc's tcache, at "
			     "most so many; that one waited for another is not recorded");
		findings_say(
			&finding->advice,
			"more arenas (MALLOC_ARENA_MAX), blocks that the thread keeps, or an "
			"allocator that is made for it (tidemark replay --allocator tries some)");
		findings_figure(finding, "threads", "threads", FINDINGS_COUNT, lock->threads);
		findings_figure(finding, "calls", "calls", FINDINGS_COUNT, lock->together);
		findings_figure(finding, "time_ns", "in", FINDINGS_TIME, lock->windows * WINDOW_NS);
		findings_command(findings, finding, "window", "--by thread,stack", false, false);
	}
	return true;
}
