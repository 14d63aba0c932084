// A call is checked before it is believed. What the kernel cannot have meant (an address that is
// no page's beginning, a size of 0, more than there is) counts as absurd and changes nothing. Else
// the pages go first that are there, then come the new ones (space_state.c): so mmap with
// MAP_FIXED over a mapping is an unmapping and a mapping. For example, with 16 pages mapped from
// 0x10000 on,
//
//     mmap 0x14000, 8 pages, fixed       [0x10000, 0x14000) stays, [0x14000, 0x1c000) is new,
//                                        [0x1c000, 0x20000) stays, with its offset moved on
//     the same, not fixed                the same, counted as overlapping: a call was not seen
//     mmap 3 MiB, MAP_HUGETLB            4 MiB: huge pages have 2 MiB where the flags do not say
//
// A break that moves up makes the range below it longer; mremap moves ranges with their commits.
#include "engine/space/space.h"

#include "base/mem.h"
#include "engine/space/space_state.h"

_Static_assert(SPACE_SLOT % SPACE_PAGE == 0, "a slot is whole pages");
_Static_assert(SPACE_OWNERS_COUNT <= UINT8_MAX, "owners are kept in a byte");

enum {
	FLAG_SHARED = 0x01,
	FLAG_FIXED = 0x10,
	FLAG_HUGETLB = 0x40000,
	FLAG_HUGE_SHIFT = 26, // the size of a huge page: its binary logarithm; 0: 2 MiB
	FLAG_HUGE_MASK = 63,
	FLAG_FIXED_NOREPLACE = 0x100000,
	PROTECTION_READ_WRITE = 3,
	REMAP_DONTUNMAP = 4,
	HUGE_LOG2 = 21,
	CLAIMS_MAX = 256,
	CLAIM_SHIFT = 20, // addresses alike above that share a place among the claims
};

#define LIMIT_32 (UINT64_C(1) << 32)
#define LIMIT_64 (UINT64_C(1) << 47)
#define KERNEL_HALF (UINT64_C(1) << 63)

// Slot 0 is none. Claims are of an epoch; epoch 0 is that of a claim that was never made.
struct space *space_new(const struct space_hooks *hooks)
{
	struct space *space = mem_alloc(1, sizeof *space);

	if (hooks)
		space->hooks = *hooks;
	space->epoch = 1;
	space->slots = mem_grow(NULL, &space->slots_capacity, 64, sizeof *space->slots);
	space->slots_count = 1;
	return space;
}

void space_free(struct space *space)
{
	if (!space)
		return;
	for (size_t i = 0; i < space->processes_count; i++) {
		ranges_fini(&space->processes[i].ranges);
		mem_free(space->processes[i].claims);
	}
	MEM_FREE(space->processes, space->threads, space->files, space->slots, space);
}

void space_add_process(struct space *space, const struct trace_process *process)
{
	*MEM_ADD(space->processes, space->processes_count, space->processes_capacity) =
		(struct space_process_state){
			.limit = process->bits == 32 ? LIMIT_32 : LIMIT_64,
			.parent = process->parent,
			.forked = process->start == TRACE_START_FORK,
		};
}

void space_add_thread(struct space *space, process_id process)
{
	*MEM_ADD(space->threads, space->threads_count, space->threads_capacity) = process;
}

// File 0 is anonymous memory and has an entry, too.
void space_add_file(struct space *space, const struct trace_file *file)
{
	size_t need = space->files_count ? space->files_count + 1 : 2;

	MEM_ROOM(space->files, space->files_capacity, need);
	space->files[0] = (struct space_owner_file){ 0 };
	space->files[need - 1] = space_owner_of_path(file->path);
	space->files_count = need;
}

enum space_owner space_owner(const struct space *space, const struct range *range)
{
	ASSERT(range->owner < SPACE_OWNERS_COUNT);
	if (range->owner == SPACE_FILE && range->file < space->files_count &&
	    space->files[range->file].code)
		return SPACE_LIBRARY;
	return (enum space_owner)range->owner;
}

const struct space_commit *space_commit(const struct space *space, const struct range *range)
{
	if (range->commit == SPACE_STATE_NONE || range->commit == SPACE_STATE_NOBODY)
		return NULL;
	ASSERT(range->commit < space->slots_count);
	return &space->slots[range->commit].commit;
}

static uint64_t page_up(uint64_t bytes)
{
	return (bytes + SPACE_PAGE - 1) & ~(uint64_t)(SPACE_PAGE - 1);
}

// A range that the kernel could have meant, as whole pages: a length is rounded up as the kernel
// does, an address must begin a page. Of 64 bits the bound is always 2^56, though `limit` is 2^47
// until something is mapped above that: only five levels of page tables have such addresses.
static bool believable(const struct space_process_state *process, uint64_t address, uint64_t size,
		       uint64_t *high)
{
	uint64_t limit = process->limit == LIMIT_32 ? LIMIT_32 : SPACE_STATE_LIMIT_57;

	if (address % SPACE_PAGE || size == 0 || address >= limit || size > limit - address)
		return false;
	*high = address + page_up(size);
	return true;
}

static void count_absurd(struct space *space, process_id id)
{
	space->processes[id].totals.absurd++;
	space->all.absurd++;
}

static void count_unknown(struct space *space, process_id id)
{
	space->processes[id].totals.unknown++;
	space->all.unknown++;
}

static void count_overlapping(struct space *space, process_id id)
{
	space->processes[id].totals.overlapping++;
	space->all.overlapping++;
}

// What an event that maps something maps. Whose the memory is follows from the call, its file and
// what is below it (space_owner.h). In a process whose malloc is known not to be glibc's, what
// looks like a large block of glibc's is an allocator's.
static struct range range_of(struct space *space, process_id id, const struct trace_event *event,
			     uint64_t low, uint64_t high)
{
	struct space_process_state *process = &space->processes[id];
	struct range range = {
		.start = low,
		.end = high,
		.offset = event->vm->offset,
		.number = event->number,
		.time_ns = event->time_ns,
		.stack = event->stack,
		.thread = event->thread,
		.file = event->vm->file,
		.protection = event->vm->protection &
			      (SPACE_STATE_PROTECTION | TRACE_PROTECTION_COMMITTED),
		.flags = event->vm->flags,
		.baseline = event->kind == TRACE_MAPPED && !process->called,
	};
	struct range *below = ranges_before(&process->ranges, low);
	const struct space_owner_file *file =
		range.file && range.file < space->files_count ? &space->files[range.file] : NULL;

	ASSERT(id < space->processes_count && low < high);
	range.owner = (uint8_t)space_owner_of_event(
		event, file, below, below ? space_owner(space, below) : SPACE_PROGRAM);
	if (process->foreign && range.owner == SPACE_MALLOC_LARGE)
		range.owner = SPACE_ALLOCATOR;
	return range;
}

// For example 3 MiB with MAP_HUGETLB and no size in the flags: pages of 2 MiB, so 4 MiB.
static uint64_t huge_up(uint64_t size, uint32_t flags)
{
	uint32_t log2 = flags >> FLAG_HUGE_SHIFT & FLAG_HUGE_MASK;
	uint64_t page;

	if (!(flags & FLAG_HUGETLB))
		return size;
	page = UINT64_C(1) << (log2 == 0 || log2 > 40 ? HUGE_LOG2 : log2);
	return size > UINT64_MAX - page ? size : (size + page - 1) & ~(page - 1);
}

// mmap, shmat. What was there is gone, whether the call was meant to replace it or not; only the
// second is counted, as a call that was not seen.
static void apply_map(struct space *space, process_id id, const struct trace_event *event)
{
	uint64_t size = event->size;
	uint64_t high;

	if (event->kind == TRACE_MMAP && !space->windows)
		size = huge_up(size, event->vm->flags);
	if (!believable(&space->processes[id], event->address, size, &high)) {
		count_absurd(space, id);
		return;
	}
	if (space_state_clear(space, id, event->address, high) &&
	    (event->kind == TRACE_SHMAT || !(event->vm->flags & FLAG_FIXED) ||
	     (event->vm->flags & FLAG_FIXED_NOREPLACE && !space->windows)))
		count_overlapping(space, id);
	space_state_place(space, id, range_of(space, id, event, event->address, high), event->stack,
			  event->thread);
	space_state_flush(space);
}

static void apply_unmap(struct space *space, process_id id, const struct trace_event *event)
{
	uint64_t high;

	if (believable(&space->processes[id], event->address, event->size, &high))
		space_state_clear(space, id, event->address, high);
	else
		count_absurd(space, id);
}

// Less was changed than was asked for: a part of it was never seen to be mapped.
static void apply_protect(struct space *space, process_id id, const struct trace_event *event)
{
	uint64_t high;

	if (event->size == 0)
		return;
	if (!believable(&space->processes[id], event->address, event->size, &high))
		count_absurd(space, id);
	else if (space_state_protect(space, id, event->address, high, event) <
		 high - event->address)
		count_unknown(space, id);
}

// What is mapped up to `from` goes on to `to`, and is otherwise as it is there. New pages belong to
// the mapping that they continue, so they have its stack and owner. Nothing may end there, if its
// call was not seen: then they are a mapping of this event.
static void grow(struct space *space, process_id id, uint64_t from, uint64_t to,
		 const struct trace_event *event)
{
	const struct range *below;
	const struct space_commit *commit;
	struct range range;

	ASSERT(from <= to);
	if (from == to)
		return;
	if (space_state_clear(space, id, from, to))
		count_overlapping(space, id);
	below = ranges_before(&space->processes[id].ranges, from);
	if (!below || below->end != from) {
		count_unknown(space, id);
		space_state_place(space, id, range_of(space, id, event, from, to), event->stack,
				  event->thread);
		return;
	}
	range = *below;
	commit = space_commit(space, below);
	range.offset += from - range.start;
	range.start = from;
	range.end = to;
	range.number = event->number;
	range.time_ns = event->time_ns;
	range.inherited = range.baseline = false;
	space_state_place(space, id, range, commit ? commit->stack : range.stack,
			  commit ? commit->thread : range.thread);
}

// mremap with an old length of 0: shared pages are mapped a second time. The old range stays where
// it is, and the new one shows the same pages of its file.
static void map_again(struct space *space, process_id id, const struct trace_event *event,
		      uint64_t high)
{
	const struct range *from = ranges_find(&space->processes[id].ranges, event->old_address);
	struct range range;

	ASSERT(id < space->processes_count);
	if (from) {
		range = *from;
		range.offset += event->old_address - from->start;
		range.start = event->address;
		range.end = high;
		range.number = event->number;
		range.time_ns = event->time_ns;
		range.stack = event->stack;
		range.thread = event->thread;
		range.inherited = range.baseline = false;
	} else {
		range = range_of(space, id, event, event->address, high);
		count_unknown(space, id);
	}
	space_state_clear(space, id, event->address, high);
	space_state_place(space, id, range, event->stack, event->thread);
	space_state_flush(space);
}

// Bytes are those of the call: how many of them had pages is not known.
static void count_purge(struct space *space, process_id id, uint64_t bytes)
{
	struct space_totals *each[] = { &space->processes[id].totals, &space->all };

	for (int i = 0; i < 2; i++) {
		each[i]->purges++;
		each[i]->purged_bytes += bytes;
	}
}

// The kernel's order: what is too long goes, what is left moves, and what is missing is added. For
// example 8 pages at 0x10000 that become 4 at 0x90000: the upper four are unmapped, the lower four
// moved. With MREMAP_DONTUNMAP (`keep`) the old range stays mapped and loses its pages, as if it
// were purged. Old and new ranges that overlap are absurd: the kernel refuses them.
static void apply_remap(struct space *space, process_id id, const struct trace_event *event)
{
	struct space_process_state *process = &space->processes[id];
	uint64_t old = event->old_address;
	uint64_t new = event->address;
	bool keep = event->vm->flags & REMAP_DONTUNMAP;
	uint64_t old_high, new_high, both;

	if (!believable(process, new, event->size, &new_high) || old % SPACE_PAGE) {
		count_absurd(space, id);
		return;
	}
	if (event->vm->old_size == 0) {
		map_again(space, id, event, new_high);
		return;
	}
	if (!believable(process, old, event->vm->old_size, &old_high) ||
	    (new != old &&new < old_high &&old < new_high)) {
		count_absurd(space, id);
		return;
	}
	both = old_high - old < new_high - new ? old_high - old : new_high - new;
	if (!keep && old + both < old_high)
		space_state_clear(space, id, old + both, old_high);
	if (new != old) {
		space_state_clear(space, id, new, new_high);
		space_state_move(space, id, old, old + both, new - old, event, keep);
	}
	if (keep)
		count_purge(space, id, old_high - old);
	grow(space, id, new + both, new_high, event);
	space_state_flush(space);
}

// Breaks need not be at pages; the memory is whole pages.
static void apply_brk(struct space *space, process_id id, const struct trace_event *event)
{
	const struct space_process_state *process = &space->processes[id];
	uint64_t limit = process->limit == LIMIT_32 ? LIMIT_32 : SPACE_STATE_LIMIT_57;
	uint64_t before, after;

	if (event->old_address == event->address || event->old_address == 0)
		return;
	if (event->old_address > limit || event->address > limit) {
		count_absurd(space, id);
		return;
	}
	before = page_up(event->old_address);
	after = page_up(event->address);
	if (after < before) {
		space_state_clear(space, id, after, before);
	} else if (after > before) {
		struct range range = range_of(space, id, event, before, after);

		range.protection = PROTECTION_READ_WRITE;
		if (space_state_clear(space, id, before, after))
			count_overlapping(space, id);
		space_state_place(space, id, range, event->stack, event->thread);
		space_state_flush(space);
	}
}

// What is known of [low, high) is what a look at the map said: the gaps are filled. For example a
// look found [0x1000, 0x5000), and [0x2000, 0x3000) is known: two ranges are made, at 0x1000 and
// 0x3000, with offsets of 0 and 0x2000 more.
static void fill(struct space *space, process_id id, uint64_t low, uint64_t high,
		 const struct trace_event *event)
{
	struct ranges *ranges = &space->processes[id].ranges;
	uint64_t at = low;

	ASSERT(low < high);
	while (at < high) {
		const struct range *next = ranges_from(ranges, at);
		uint64_t stop = next && next->start < high ? next->start : high;

		if (at < stop) {
			struct range range = range_of(space, id, event, at, stop);

			range.offset += at - low;
			space_state_place(space, id, range, event->stack, event->thread);
		}
		// What is behind the gap begins at `stop` then, so ranges_from finds it.
		if (stop == high)
			break;
		at = ranges_from(ranges, stop)->end;
	}
	space_state_flush(space);
}

// Whether a known range can be a part of what a look has found at `low`. Names such as "[heap]"
// are files to the trace; what is known as anonymous memory may have one. What the recorder says is
// its own belongs to no other. A walk on Windows knows no offsets, and not of all files the name.
static bool agrees(const struct space *space, const struct range *range, uint64_t low,
		   const struct trace_event *event)
{
	bool has_file = range->owner == SPACE_FILE || range->owner == SPACE_LIBRARY;
	uint32_t file = event->vm->file;

	if (event->vm->origin == TRACE_ORIGIN_RECORDER && range->owner != SPACE_TIDEMARK)
		return false;
	if (space->windows)
		return !((range->flags ^ event->vm->flags) & FLAG_SHARED) &&
		       (range->file == file || !has_file ||
			(file < space->files_count &&
			 space->files[file].path != SPACE_OWNER_PLAIN));
	if (range->file != file)
		return !has_file && (range->file == 0 || file == 0);
	// Of a library at 0x7000 with offset 0x2000, what begins at 0x9000 must have offset 0x4000:
	// both less their beginnings are the same.
	return range->file == 0 || range->offset - range->start == event->vm->offset - low;
}

// What a look has found is true: what is known otherwise there is taken away, and what is missing
// is added.
static void apply_found(struct space *space, process_id id, const struct trace_event *event)
{
	struct space_process_state *process = &space->processes[id];
	uint64_t low = event->address;
	uint64_t at = low;
	const struct range *range;
	uint64_t high;

	if (low >= KERNEL_HALF)
		return;
	if (!believable(process, low, event->size, &high)) {
		count_absurd(space, id);
		return;
	}
	ranges_cut(&process->ranges, low);
	ranges_cut(&process->ranges, high);
	while ((range = ranges_from(&process->ranges, at)) && range->start < high) {
		uint64_t start = range->start;

		at = range->end;
		if (!agrees(space, range, low, event))
			space_state_clear(space, id, start, at);
	}
	space_state_protect(space, id, low, high, event);
	fill(space, id, low, high, event);
}

// Only advice that gives pages back counts; the mapping stays.
static void apply_advice(struct space *space, process_id id, const struct trace_event *event)
{
	enum { DONTNEED = 4, FREE = 8, REMOVE = 9, DONTNEED_LOCKED = 24 };
	uint32_t advice = event->vm->flags;
	uint64_t high;

	if (advice != DONTNEED && advice != FREE && advice != REMOVE && advice != DONTNEED_LOCKED)
		return;
	if (event->size == 0)
		return;
	if (believable(&space->processes[id], event->address, event->size, &high))
		count_purge(space, id, high - event->address);
	else
		count_absurd(space, id);
}

static void apply(struct space *space, process_id id, const struct trace_event *event)
{
	ASSERT(space->now && !event->vm->error);
	switch (event->kind) {
	case TRACE_MMAP:
	case TRACE_SHMAT:
		apply_map(space, id, event);
		break;
	case TRACE_MUNMAP:
	case TRACE_SHMDT:
	case TRACE_UNMAPPED:
		apply_unmap(space, id, event);
		break;
	case TRACE_MREMAP:
		apply_remap(space, id, event);
		break;
	case TRACE_BRK:
		apply_brk(space, id, event);
		break;
	case TRACE_MPROTECT:
		apply_protect(space, id, event);
		break;
	case TRACE_MADVISE:
		apply_advice(space, id, event);
		break;
	case TRACE_MAPPED:
		apply_found(space, id, event);
		break;
	}
}

static const struct {
	const char *word;
	uint8_t kind;
} calls[SPACE_CALLS_COUNT] = {
	[SPACE_MMAP] = { "mmap", TRACE_MMAP },
	[SPACE_MUNMAP] = { "munmap", TRACE_MUNMAP },
	[SPACE_MREMAP] = { "mremap", TRACE_MREMAP },
	[SPACE_BRK] = { "brk", TRACE_BRK },
	[SPACE_MPROTECT] = { "mprotect", TRACE_MPROTECT },
	[SPACE_MADVISE] = { "madvise", TRACE_MADVISE },
	[SPACE_MLOCK] = { "mlock", TRACE_MLOCK },
	[SPACE_SHMAT] = { "shmat", TRACE_SHMAT },
	[SPACE_SHMDT] = { "shmdt", TRACE_SHMDT },
	[SPACE_REMAP] = { "remap_file_pages", TRACE_REMAP },
};

const char *space_call_word(enum space_call call)
{
	ASSERT(call < SPACE_CALLS_COUNT);
	return calls[call].word;
}

// Of brk the bytes are those by which the break moved.
static void count_call(struct space_totals *totals, const struct trace_event *event)
{
	uint64_t bytes = event->size;

	if (event->kind == TRACE_BRK)
		bytes = event->address > event->old_address ? event->address - event->old_address
							    : event->old_address - event->address;
	for (int i = 0; i < SPACE_CALLS_COUNT; i++) {
		if (calls[i].kind != event->kind)
			continue;
		totals->calls[i].count++;
		if (event->vm->error)
			totals->calls[i].failed++;
		else
			totals->calls[i].bytes += bytes;
	}
}

// What the calls of this kind do to the commits that they end. mremap and brk end what they cut
// off, which is unmapped.
static enum space_ending ending_of(uint8_t kind)
{
	switch (kind) {
	case TRACE_MPROTECT:
		return SPACE_PROTECTED;
	case TRACE_MMAP:
	case TRACE_SHMAT:
	case TRACE_MAPPED:
		return SPACE_REPLACED;
	default:
		return SPACE_UNMAPPED;
	}
}

static void begin_totals(struct space_totals *totals, uint64_t time_ns, uint64_t number)
{
	ASSERT(totals->committed_bytes <= totals->committed_peak_bytes);
	memset(totals->calls, 0, sizeof totals->calls);
	totals->purges = totals->purged_bytes = 0;
	totals->commits = totals->commits_bytes = 0;
	totals->reserved_peak_bytes = totals->reserved_bytes;
	totals->committed_peak_bytes = totals->committed_bytes;
	totals->committed_peak_ns = time_ns;
	totals->committed_peak_number = number;
}

void space_begin(struct space *space, uint64_t time_ns, uint64_t number)
{
	for (process_id id = 0; id < space->processes_count; id++)
		begin_totals(&space->processes[id].totals, time_ns, number);
	begin_totals(&space->all, time_ns, number);
}

// Calls of the recorder's own change the map, but are in no count of the program's.
void space_add_event(struct space *space, const struct trace_event *event)
{
	struct space_end end = {
		.number = event->number,
		.time_ns = event->time_ns,
		.thread = event->thread,
		.stack = event->stack,
		.ending = (uint8_t)ending_of(event->kind),
	};
	process_id id;

	ASSERT(event->vm || !trace_kind_is_vm(event->kind));
	if (!trace_kind_is_vm(event->kind) || !event->vm || event->thread >= space->threads_count)
		return;
	id = space->threads[event->thread];
	if (id >= space->processes_count)
		return;
	if (event->vm->origin != TRACE_ORIGIN_RECORDER) {
		count_call(&space->processes[id].totals, event);
		count_call(&space->all, event);
	}
	if (event->kind != TRACE_MAPPED)
		space->processes[id].called = true;
	if (event->vm->error)
		return;
	space->now = &end;
	apply(space, id, event);
	space->now = NULL;
}

// A forked process has a copy of what its parent has. The copy's commits belong to no call of the
// child: they are marked as such. Where something is known of the child already, nothing is copied.
static void inherit(struct space *space, process_id id)
{
	struct space_process_state *process = &space->processes[id];
	struct space_process_state *parent;
	struct range *range;
	uint64_t at = 0;

	ASSERT(id < space->processes_count);
	if (!process->forked || process->parent >= space->processes_count ||
	    process->parent == id || process->ranges.used)
		return;
	parent = &space->processes[process->parent];
	ranges_copy(&process->ranges, &parent->ranges);
	process->limit = parent->limit;
	while ((range = ranges_from(&process->ranges, at))) {
		at = range->end;
		range->inherited = true;
		if (range->commit != SPACE_STATE_NONE)
			range->commit = SPACE_STATE_NOBODY;
		space_state_count(space, process, range, true);
	}
}

// A process that begins by fork has what its parent has. At its end its ranges are told to end
// before they are forgotten.
void space_add_note(struct space *space, const struct trace_note *note)
{
	enum { HOW_MASK = 255 };
	struct space_end end = { .time_ns = note->time_ns, .thread = TRACE_NONE };

	if (note->process >= space->processes_count)
		return;
	if (note->kind == TRACE_NOTE_PROCESS_START)
		inherit(space, note->process);
	if (note->kind != TRACE_NOTE_PROCESS_END)
		return;
	end.ending = (note->value & HOW_MASK) == TRACE_EXIT_EXEC ? SPACE_EXECED : SPACE_EXITED;
	space->now = &end;
	space_state_clear(space, note->process, 0, UINT64_MAX);
	space->now = NULL;
	ranges_fini(&space->processes[note->process].ranges);
	mem_free(space->processes[note->process].claims);
	space->processes[note->process].claims = NULL;
}

void space_set_unlisted(struct space *space, uint64_t gone_bytes, uint64_t unlisted_bytes)
{
	space->all.gone_bytes = gone_bytes;
	space->all.unlisted_bytes = unlisted_bytes;
}

void space_learn(struct space *space, const struct reader *reader)
{
	space->windows = reader_is_windows(reader);
	while (space->processes_count < reader_processes_count(reader))
		space_add_process(space,
				  reader_process(reader, (process_id)space->processes_count));
	while (space->threads_count < reader_threads_count(reader))
		space_add_thread(space,
				 reader_thread(reader, (thread_id)space->threads_count)->process);
	for (file_id id = space->files_count ? (file_id)space->files_count : 1;
	     id < reader_files_count(reader); id++)
		space_add_file(space, reader_file(reader, id));
}

// The owner of a commit moves with that of its range, and only once: a commit may have many ranges.
// The hook lets those who sum by owners move what they have.
static void give_to_allocator(struct space *space, struct range *range)
{
	struct space_commit *commit;

	range->owner = SPACE_ALLOCATOR;
	if (range->commit == SPACE_STATE_NONE || range->commit == SPACE_STATE_NOBODY)
		return;
	ASSERT(range->commit < space->slots_count);
	commit = &space->slots[range->commit].commit;
	if (commit->owner == SPACE_ALLOCATOR)
		return;
	commit->owner = SPACE_ALLOCATOR;
	if (space->hooks.owner)
		space->hooks.owner(space->hooks.context, commit);
}

// The lowest piece of the mapping that `range` is a piece of. Pieces of one mapping have its
// number; mprotect has cut it.
static struct range *lowest_piece(const struct ranges *ranges, struct range *range)
{
	struct range *below;

	while ((below = ranges_before(ranges, range->start)) && below->end == range->start &&
	       below->number == range->number && below->owner == range->owner)
		range = below;
	return range;
}

// May a block lie so far into a mapping of its own? glibc's lie behind a header, or at the first
// address behind it that is aligned as was asked for.
static bool glibc_could(const struct range *range, uint64_t address)
{
	uint64_t offset = address - range->start;
	uint64_t aligned = address & (~address + 1);

	return offset > 0 && offset <= aligned + 16;
}

// A block lies where glibc's never do: so no mapping of this malloc is a large block of glibc's, be
// there blocks in it or not. Once for a process: from then on no rule of glibc's holds in it.
static void make_foreign(struct space *space, struct space_process_state *process)
{
	struct range *range;

	process->foreign = true;
	for (uint64_t at = 0; (range = ranges_from(&process->ranges, at)); at = range->end)
		if (range->owner == SPACE_MALLOC_LARGE)
			give_to_allocator(space, range);
}

// The place among the claims of an address, for one kind of them.
static struct space_state_claim *claim_at(struct space_process_state *process, bool whole,
					  uint64_t address)
{
	if (!process->claims)
		process->claims = mem_alloc((size_t)2 * CLAIMS_MAX, sizeof *process->claims);
	// One place for each MiB, modulo 256: blocks that follow one another in a heap ask for the
	// same, and are answered without a search.
	return &process->claims[(address >> CLAIM_SHIFT) % CLAIMS_MAX + whole * CLAIMS_MAX];
}

// What was claimed counts until something is mapped, unmapped or moved: that begins another epoch.
static bool is_claimed(const struct space *space, const struct space_state_claim *claim,
		       uint64_t address)
{
	return claim->epoch == space->epoch && address >= claim->start && address < claim->end;
}

// Of a break that was moved often there are many small ranges, touched in any order: so one that is
// next to those there joins them, and is not kept where they are larger, unless they are of another
// MiB.
static void keep_claim(const struct space *space, struct space_state_claim *claim,
		       const struct range *range, uint64_t address)
{
	uint64_t mib = address >> CLAIM_SHIFT;
	bool is_new = claim->epoch != space->epoch || claim->start >> CLAIM_SHIFT > mib ||
		      (claim->end - 1) >> CLAIM_SHIFT < mib;

	ASSERT(range->start < range->end);
	if (!is_new && claim->end == range->start)
		claim->end = range->end;
	else if (!is_new && claim->start == range->end)
		claim->start = range->start;
	else if (is_new || claim->end - claim->start < range->end - range->start)
		*claim = (struct space_state_claim){ range->start, range->end, space->epoch };
}

// A block in what is taken for a large block of glibc's shows whether it is one: glibc puts such a
// block right behind the header of its mapping, or where its alignment needs it.
void space_claim_whole(struct space *space, process_id id, uint64_t address)
{
	struct space_process_state *process = &space->processes[id];
	struct space_state_claim *claim;
	const struct range *range;

	if (id >= space->processes_count || process->foreign)
		return;
	claim = claim_at(process, true, address);
	if (is_claimed(space, claim, address))
		return;
	range = ranges_find(&process->ranges, address);
	if (!range)
		return;
	if (range->owner != SPACE_MALLOC_LARGE)
		keep_claim(space, claim, range, address);
	else if (!glibc_could(range, address))
		make_foreign(space, process);
}

// True: an owner changed, so that a caller that has counted by owners counts again. All pieces of
// the mapping change with the one that the block is in, from the lowest upwards.
bool space_claim(struct space *space, process_id id, uint64_t address)
{
	struct space_process_state *process = &space->processes[id];
	struct space_state_claim *claim;
	struct range *range;
	uint64_t number;
	uint8_t owner;

	if (id >= space->processes_count)
		return false;
	claim = claim_at(process, false, address);
	if (is_claimed(space, claim, address))
		return false;
	range = ranges_find(&process->ranges, address);
	if (!range)
		return false;
	if (range->owner == SPACE_MALLOC_LARGE && !process->foreign &&
	    !glibc_could(range, address)) {
		make_foreign(space, process);
		return true;
	}
	number = range->number;
	owner = range->owner;
	if (owner != SPACE_MALLOC_LARGE || space_owner_yields(range, address))
		keep_claim(space, claim, range, address);
	if (owner == SPACE_ALLOCATOR || !space_owner_yields(range, address))
		return false;
	range = lowest_piece(&process->ranges, range);
	while (range && range->number == number && range->owner == owner) {
		uint64_t next = range->end;

		give_to_allocator(space, range);
		range = ranges_find(&process->ranges, next);
	}
	return true;
}

const struct space_totals *space_process(const struct space *space, process_id process)
{
	return process < space->processes_count ? &space->processes[process].totals : NULL;
}

const struct space_totals *space_all(const struct space *space)
{
	return &space->all;
}

const struct ranges *space_ranges(const struct space *space, process_id process)
{
	return process < space->processes_count ? &space->processes[process].ranges : NULL;
}

uint64_t space_limit(const struct space *space, process_id process)
{
	return process < space->processes_count ? space->processes[process].limit : 0;
}

// What the process itself was found to be allowed (the trace's address-end) is nearer than a limit
// by its bits; where something was mapped above 2^47 it no longer holds.
uint64_t space_end(const struct space *space, const struct reader *reader, process_id process)
{
	const struct trace_process *of = reader_process(reader, process);
	uint64_t limit = space_limit(space, process);

	return of && of->address_end > of->address_low && limit <= LIMIT_64 ? of->address_end
									    : limit;
}
