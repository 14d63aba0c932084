// For example the calls before a snapshot say that [0x10000, 0x50000) is mapped. The kernel listed
// [0x10000, 0x30000) and [0x80000, 0x90000). So [0x30000, 0x50000), 128 KiB, was unmapped by a call
// that no hook saw, and [0x80000, 0x90000), 64 KiB, was mapped by one. Both lists are sorted: each
// is gone through once, beside the other.
//
// A thread that was in the midst of mmap then had made the mapping, and its event came after: such
// an event within 100 ms takes the range off what no call made. One that was in the midst of munmap
// had not given the range back, and its event came before.
#include "engine/space/space_listed.h"

#include "base/mem.h"
#include "engine/space/space_owner.h"

enum {
	FLIGHT_NS = 100 * 1000 * 1000, // between a call and its event, on a machine with much to do
	RECENT = 64,                   // calls of munmap that are remembered for so long
};

// What the kernel listed and no call had made yet.
struct unknown {
	process_id process;
	uint64_t start, end;
	uint64_t until_ns; // a call that is told until then was being made
};

// The last good snapshot of a process, by process.
struct waiting {
	uint32_t index; // in the reader's list
	uint64_t ended; // its place in the order
	bool due;
};

struct space_listed {
	struct space *space;
	const struct reader *reader;
	struct waiting *all;
	uint32_t count, due;
	uint64_t next; // the least of those that are due
	uint64_t gone_bytes, unknown_bytes;
	struct unknown *unknown; // of these, what an event may still tell
	size_t unknown_count, unknown_capacity;
	struct unknown recent[RECENT]; // what munmap gave back; the oldest is written over
	unsigned recent_next;
};

// A snapshot with smaps that no event came into: the list and the calls are of one moment.
static bool is_good(const struct trace_snapshot *snapshot)
{
	return !(snapshot->flags & TRACE_SNAPSHOT_NO_SMAPS) && snapshot->mappings_count &&
	       snapshot->began == snapshot->ended;
}

static void find_next(struct space_listed *listed)
{
	listed->next = UINT64_MAX;
	for (uint32_t id = 0; id < listed->count; id++)
		if (listed->all[id].due && listed->all[id].ended < listed->next)
			listed->next = listed->all[id].ended;
}

// Of each process the last good one before the moment counts: what is mapped then is what answers
// are about.
struct space_listed *space_listed_new(struct space *space, const struct reader *reader,
				      const struct query *query, const struct moment_edge *edge)
{
	struct space_listed *listed = mem_alloc(1, sizeof *listed);

	*listed = (struct space_listed){ .space = space,
					 .reader = reader,
					 .count = reader_processes_count(reader),
					 .next = UINT64_MAX };
	if (reader_is_windows(reader))
		return listed;
	listed->all = mem_alloc(listed->count + (size_t)1, sizeof *listed->all);
	for (uint32_t i = 0; i < reader_snapshots_count(reader); i++) {
		const struct trace_snapshot *snapshot = reader_snapshot(reader, i);
		uint64_t last = snapshot->ended ? snapshot->ended - 1 : 0;
		bool late = edge && moment_passed(edge, last, snapshot->time_ns);

		if (snapshot->process < listed->count && is_good(snapshot) && !late &&
		    (!query || query_has_process(query, snapshot->process)))
			listed->all[snapshot->process] =
				(struct waiting){ i, snapshot->ended, true };
	}
	find_next(listed);
	return listed;
}

// Whether the kernel says of it what calls say.
static bool is_comparable(uint8_t owner)
{
	return owner != SPACE_TIDEMARK && owner != SPACE_KERNEL && owner != SPACE_MAIN_STACK;
}

// Bytes of the ranges that the kernel did not list.
// Ranges rise and so do the kernel's mappings: `i` never goes back.
static uint64_t bytes_gone(const struct space *space, const struct trace_snapshot *snapshot)
{
	const struct ranges *ranges = space_ranges(space, snapshot->process);
	uint64_t bytes = 0;
	uint32_t i = 0;

	for (const struct range *each = ranges_from(ranges, 0); each;
	     each = ranges_from(ranges, each->end)) {
		uint64_t at = each->start;

		if (!is_comparable(space_owner(space, each)))
			continue;
		while (i < snapshot->mappings_count && snapshot->mappings[i].end <= at)
			i++;
		for (uint32_t j = i; j < snapshot->mappings_count && at < each->end &&
				     snapshot->mappings[j].start < each->end;
		     j++) {
			if (snapshot->mappings[j].start > at)
				bytes += snapshot->mappings[j].start - at;
			at = snapshot->mappings[j].end;
		}
		if (at < each->end)
			bytes += each->end - at;
	}
	return bytes;
}

static void add_unknown(struct space_listed *listed, const struct unknown *unknown)
{
	ASSERT(unknown->start < unknown->end);
	*MEM_REACH(listed->unknown, listed->unknown_capacity, listed->unknown_count) = *unknown;
	listed->unknown_count++;
	listed->unknown_bytes += unknown->end - unknown->start;
}

// What the kernel listed and is in no range.
static void find_unknown(struct space_listed *listed, const struct trace_snapshot *snapshot)
{
	const struct ranges *ranges = space_ranges(listed->space, snapshot->process);
	struct unknown found = { .process = snapshot->process,
				 .until_ns = snapshot->time_ns + snapshot->cost_ns + FLIGHT_NS };

	for (uint32_t i = 0; i < snapshot->mappings_count; i++) {
		const struct trace_mapping *mapping = &snapshot->mappings[i];
		const struct trace_file *file = reader_file(listed->reader, mapping->file);
		uint8_t path = file ? space_owner_of_path(file->path).path : SPACE_OWNER_PLAIN;

		if (path == SPACE_OWNER_STACK || path == SPACE_OWNER_KERNEL)
			continue;
		found.start = mapping->start;
		for (const struct range *each = ranges_from(ranges, found.start);
		     each && each->start < mapping->end && found.start < mapping->end;
		     each = ranges_from(ranges, each->end)) {
			found.end = each->start;
			if (found.end > found.start)
				add_unknown(listed, &found);
			found.start = each->end;
		}
		found.end = mapping->end;
		if (found.start < found.end)
			add_unknown(listed, &found);
	}
}

// Events come in the order of their times: later ones tell nothing of what is too long ago, so that
// few ranges are looked at for each event. Their bytes stay counted.
static void forget_old(struct space_listed *listed, uint64_t now_ns)
{
	for (size_t i = listed->unknown_count; i-- > 0;)
		if (listed->unknown[i].until_ns < now_ns)
			listed->unknown[i] = listed->unknown[--listed->unknown_count];
}

// Of a range that it is a part of, what is on both sides stays.
static void know(struct space_listed *listed, process_id process, uint64_t start, uint64_t end)
{
	for (size_t i = listed->unknown_count; i-- > 0;) {
		struct unknown each = listed->unknown[i], right = each;

		if (each.process != process || each.end <= start || each.start >= end)
			continue;
		listed->unknown[i] = listed->unknown[--listed->unknown_count];
		listed->unknown_bytes -= each.end - each.start;
		each.end = start;
		right.start = end;
		if (each.start < each.end)
			add_unknown(listed, &each);
		if (right.start < right.end)
			add_unknown(listed, &right);
	}
}

// A call that was being made at a snapshot: what it mapped is known now. What one gives back may
// be in the list of a snapshot to come.
static void take_call(struct space_listed *listed, const struct trace_event *event)
{
	const struct trace_thread *thread = reader_thread(listed->reader, event->thread);
	uint64_t end = event->address + event->size;

	if (listed->unknown_count > 0)
		forget_old(listed, event->time_ns);
	if (!thread || event->vm->error)
		return;
	if (event->kind == TRACE_MUNMAP)
		listed->recent[listed->recent_next++ % RECENT] =
			(struct unknown){ thread->process, event->address, end,
					  event->time_ns + FLIGHT_NS };
	else if (event->kind == TRACE_MMAP && listed->unknown_count > 0)
		know(listed, thread->process, event->address, end);
}

// What was being given back when the kernel's list was read.
static void know_recent(struct space_listed *listed, const struct trace_snapshot *snapshot)
{
	for (unsigned i = 0; i < RECENT; i++) {
		const struct unknown *each = &listed->recent[i];

		if (each->process == snapshot->process && each->start < each->end &&
		    each->until_ns >= snapshot->time_ns)
			know(listed, each->process, each->start, each->end);
	}
}

// What the calls say is mapped against what the kernel listed in a snapshot.
static void compare(struct space_listed *listed, struct waiting *waiting)
{
	struct trace_snapshot snapshot = { 0 };
	const struct ranges *ranges;

	ASSERT(waiting->due);
	waiting->due = false;
	if (!reader_snapshot_load(listed->reader, waiting->index, &snapshot))
		return;
	space_learn(listed->space, listed->reader);
	ranges = space_ranges(listed->space, snapshot.process);
	// A process that has done nothing yet has not said either what is mapped.
	if (ranges && ranges_from(ranges, 0)) {
		listed->gone_bytes += bytes_gone(listed->space, &snapshot);
		find_unknown(listed, &snapshot);
		know_recent(listed, &snapshot);
	}
	snapshot_fini(&snapshot);
}

// Called for each event of virtual memory, so that `next` answers most of them without a look at
// all processes.
static void pass_number(struct space_listed *listed, uint64_t number)
{
	if (number < listed->next)
		return;
	for (uint32_t id = 0; id < listed->count; id++)
		if (listed->all[id].due && listed->all[id].ended <= number)
			compare(listed, &listed->all[id]);
	find_next(listed);
}

void space_listed_pass(struct space_listed *listed, const struct trace_event *event)
{
	pass_number(listed, event->number);
	take_call(listed, event);
}

void space_listed_end(struct space_listed *listed, process_id process)
{
	if (listed->next == UINT64_MAX || process >= listed->count || !listed->all[process].due)
		return;
	compare(listed, &listed->all[process]);
	find_next(listed);
}

// What is still due had its snapshot after the last event. The number must not be UINT64_MAX, which
// is `next` where nothing is due.
void space_listed_finish(struct space_listed *listed)
{
	if (!listed)
		return;
	pass_number(listed, UINT64_MAX - 1);
	space_set_unlisted(listed->space, listed->gone_bytes, listed->unknown_bytes);
	MEM_FREE(listed->unknown, listed->all, listed);
}
