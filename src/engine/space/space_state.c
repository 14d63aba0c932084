// Ranges, and what is committed in them. A *commit* is what one call made usable: it begins when
// pages become writable, it ends in parts, as they go. Ranges that one call touches are gathered,
// so that neighbours are reported as one. For example:
//
//     mmap 0x10000, 4 pages, no rights    one range, reserved 16384, nothing committed
//     mprotect 0x10000, 2 pages, rw       the range is cut at 0x12000; commit 1 begins, 8192 bytes
//     munmap 0x10000, 1 page              a part of commit 1 ends: it is reported as commit 2, of
//                                         4096 bytes at 0x10000, that ends; commit 1 goes on,
//                                         with 4096 bytes at 0x11000
//
// So a commit that ends in parts was as many lifetimes, whose bytes add up to what it had. Bytes
// that a forked process has from its parent, and tidemark's own, are summed apart.
#include "engine/space/space_state.h"

#include "base/mem.h"

enum { PROTECTION_WRITE = 2, PROTECTION_EXEC = 4, COMMITTED = TRACE_PROTECTION_COMMITTED };

// Bytes of a range come or go.
void space_state_count(struct space *space, struct space_process_state *process,
		       const struct range *range, bool comes)
{
	uint64_t bytes = comes ? range->end - range->start : range->start - range->end;
	struct space_totals *each[] = { &process->totals, &space->all };

	for (int i = 0; i < 2; i++) {
		struct space_totals *totals = each[i];

		if (range->owner == SPACE_TIDEMARK) {
			totals->own_bytes += bytes;
		} else if (range->inherited) {
			totals->inherited_bytes += bytes;
		} else {
			totals->reserved_bytes += bytes;
			if (totals->reserved_bytes > totals->reserved_peak_bytes)
				totals->reserved_peak_bytes = totals->reserved_bytes;
		}
	}
}

// The peak is the first moment at which there was so much.
static void count_committed(struct space_totals *totals, uint64_t bytes,
			    const struct space_end *now)
{
	totals->committed_bytes += bytes;
	if (totals->committed_bytes <= totals->committed_peak_bytes)
		return;
	totals->committed_peak_bytes = totals->committed_bytes;
	totals->committed_peak_ns = now->time_ns;
	totals->committed_peak_number = now->number;
}

// Tell of the commit that has been gathering what begins with this item. It is counted only now,
// when it has its whole size.
void space_state_flush(struct space *space)
{
	struct space_commit *commit = &space->slots[space->beginning].commit;
	struct space_totals *totals;

	if (!space->beginning)
		return;
	space->beginning = 0;
	totals = &space->processes[commit->process].totals;
	totals->commits++;
	totals->commits_bytes += commit->size;
	space->all.commits++;
	space->all.commits_bytes += commit->size;
	count_committed(totals, commit->size, space->now);
	count_committed(&space->all, commit->size, space->now);
	if (space->hooks.begin)
		space->hooks.begin(space->hooks.context, commit);
}

// Slots of commits that are over are taken again; the list of them is in the slots.
static uint32_t new_slot(struct space *space)
{
	uint32_t slot = space->slots_spare;

	if (slot) {
		space->slots_spare = space->slots[slot].spare;
		return slot;
	}
	ASSERT(space->slots_count < SPACE_STATE_NOBODY);
	MEM_ROOM(space->slots, space->slots_capacity, space->slots_count + 1);
	return (uint32_t)space->slots_count++;
}

// `range` is committed from now on, by the call of `stack` and `thread`. What joins the commit that
// is gathering is its direct neighbour above, of one owner and one stack: else that one is told of,
// and another begins. tidemark's own memory has no commit.
static void begin(struct space *space, process_id process, struct range *range, stack_id stack,
		  thread_id thread)
{
	enum space_owner owner = space_owner(space, range);
	struct space_commit *commit = &space->slots[space->beginning].commit;

	if (owner == SPACE_TIDEMARK) {
		range->commit = SPACE_STATE_NOBODY;
		return;
	}
	if (space->beginning && commit->owner == owner && commit->stack == stack &&
	    commit->address + commit->size == range->start) {
		commit->size += range->end - range->start;
		range->commit = space->beginning;
		return;
	}
	space_state_flush(space);
	space->beginning = new_slot(space);
	space->slots[space->beginning].commit = (struct space_commit){
		.id = ++space->commits_made,
		.address = range->start,
		.size = range->end - range->start,
		.number = space->now->number,
		.time_ns = space->now->time_ns,
		.process = process,
		.thread = thread,
		.stack = stack,
		.owner = (uint8_t)owner,
		.baseline = range->baseline,
	};
	range->commit = space->beginning;
}

// Tell of the end that has been gathering. The whole commit ends, or a part of it: the part has a
// number of its own, and the rest goes on under the old one, from a higher address if it was the
// lowest part that went.
static void flush_end(struct space *space)
{
	struct space_pending ending = space->ending;
	struct space_commit *commit = &space->slots[ending.slot].commit;
	struct space_totals *totals;
	struct space_commit part;

	if (!ending.slot)
		return;
	space->ending = (struct space_pending){ 0 };
	totals = &space->processes[commit->process].totals;
	totals->committed_bytes -= ending.size;
	space->all.committed_bytes -= ending.size;
	part = *commit;
	if (ending.size == commit->size) {
		space->slots[ending.slot].spare = space->slots_spare;
		space->slots_spare = ending.slot;
		commit = NULL;
	} else {
		part.id = ++space->commits_made;
		part.address = ending.address;
		part.size = ending.size;
		commit->size -= ending.size;
		if (commit->address == ending.address)
			commit->address += ending.size;
		totals->commits++;
		space->all.commits++;
	}
	if (space->hooks.end)
		space->hooks.end(space->hooks.context, &part, commit, space->now);
}

// `range` is committed no more. Ends of one commit that lie side by side are gathered and told as
// one.
static void end(struct space *space, const struct range *range)
{
	struct space_pending *ending = &space->ending;

	if (range->commit == SPACE_STATE_NONE || range->commit == SPACE_STATE_NOBODY)
		return;
	if (ending->slot != range->commit || ending->address + ending->size != range->start) {
		flush_end(space);
		ending->slot = range->commit;
		ending->address = range->start;
	}
	ending->size += range->end - range->start;
}

// Unmap what lies in [low, high). Returns whether anything did whose end should have been
// seen: on Windows the system ends by itself what walks alone have found.
bool space_state_clear(struct space *space, process_id id, uint64_t low, uint64_t high)
{
	struct space_process_state *process = &space->processes[id];
	const struct range *next;
	bool any = false;

	ranges_cut(&process->ranges, low);
	ranges_cut(&process->ranges, high);
	while ((next = ranges_from(&process->ranges, low)) && next->start < high) {
		struct range range = *next;

		any |= !space->windows || range.stack;
		end(space, &range);
		space_state_count(space, process, &range, false);
		ranges_remove(&process->ranges, range.start);
	}
	flush_end(space);
	space->epoch++;
	return any;
}

// Map a range where nothing is. If it is writable it is committed by `stack` and `thread`. A file
// of which a part may be executed is code from then on, in all its ranges (space_owner). The range
// keeps its rights alone, and not the bit of Windows that says that it is committed.
void space_state_place(struct space *space, process_id id, struct range range, stack_id stack,
		       thread_id thread)
{
	struct space_process_state *process = &space->processes[id];

	range.commit = SPACE_STATE_NONE;
	if (range.end > process->limit)
		process->limit = SPACE_STATE_LIMIT_57;
	if (range.protection & PROTECTION_EXEC && range.file < space->files_count)
		space->files[range.file].code = true;
	if (range.protection & (PROTECTION_WRITE | COMMITTED))
		begin(space, id, &range, stack, thread);
	range.protection &= SPACE_STATE_PROTECTION;
	space_state_count(space, process, &range, true);
	ranges_insert(&process->ranges, &range);
	space->epoch++;
}

// Give what lies in [low, high) a protection. Returns how many bytes lie there. Without rights a
// commit ends, unless the event says that only the access changed (Windows); memory that may be
// read alone stays committed if it was. Neighbours that have become alike are one range again.
uint64_t space_state_protect(struct space *space, process_id id, uint64_t low, uint64_t high,
			     const struct trace_event *event)
{
	struct ranges *ranges = &space->processes[id].ranges;
	uint32_t given = event->vm->protection;
	uint32_t protection = given & SPACE_STATE_PROTECTION;
	struct range *range;
	uint64_t covered = 0;
	uint64_t at = low;

	ranges_cut(ranges, low);
	ranges_cut(ranges, high);
	while ((range = ranges_from(ranges, at)) && range->start < high) {
		uint64_t start = range->start;

		at = range->end;
		covered += at - start;
		range->protection = protection;
		if (protection == 0 && !(given & (COMMITTED | TRACE_PROTECTION_ACCESS))) {
			end(space, range);
			range->commit = SPACE_STATE_NONE;
		} else if (given & (PROTECTION_WRITE | COMMITTED) &&
			   range->commit == SPACE_STATE_NONE) {
			begin(space, id, range, event->stack, event->thread);
		}
		if (protection & PROTECTION_EXEC && range->file < space->files_count)
			space->files[range->file].code = true;
		ranges_join(ranges, start);
	}
	ranges_join(ranges, high);
	flush_end(space);
	space_state_flush(space);
	return covered;
}

// Move what lies in [low, high) by `by`, which wraps where that is downwards. `keep`: the mappings
// stay, only their pages move, so that the new place is a mapping of its own, with the stacks of
// the old one. Else commits go along: one that begins with a range begins with it at the new place.
void space_state_move(struct space *space, process_id id, uint64_t low, uint64_t high, uint64_t by,
		      const struct trace_event *event, bool keep)
{
	struct ranges *ranges = &space->processes[id].ranges;
	const struct range *next;
	uint64_t at = low;

	ranges_cut(ranges, low);
	ranges_cut(ranges, high);
	while ((next = ranges_from(ranges, at)) && next->start < high) {
		struct range range = *next;
		const struct space_commit *commit = space_commit(space, next);

		at = range.end;
		range.start += by;
		range.end += by;
		if (keep) {
			range.number = event->number;
			range.time_ns = event->time_ns;
			space_state_place(space, id, range, commit ? commit->stack : range.stack,
					  commit ? commit->thread : range.thread);
			continue;
		}
		if (commit && commit->address == range.start - by)
			space->slots[range.commit].commit.address += by;
		ranges_remove(ranges, range.start - by);
		ranges_insert(ranges, &range);
	}
	space->epoch++;
}
