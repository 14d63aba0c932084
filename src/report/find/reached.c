// A leak is the block that nothing holds, and all that it holds with it. The holders are followed
// from each lost block on, and what is met on the way is given the same answer. For example 3 is
// held by 2, and 2 by 1, which is unreachable:
//
//     leak of 3    the path is 3, 2, and ends at 1: both are of leak 1
//     leak of 2    known
//
// A path that comes back to where it has been ends there, whatever the trace says.
#include "report/find/reached.h"

#include "base/mem.h"
#include "base/rising.h"
#include "base/str.h"
#include "trace/defs.h"

#include <inttypes.h>
#include <string.h>

// ---- one process ----

// A search of a large heap is in the trace in parts, since a block of a trace is bounded. The last
// search that began is taken, and its parts joined in order; `number` tells the parts of one search
// from those of the next. A part that is damaged leaves a hole: then not all blocks are known.
bool reached_load(const struct reader *reader, process_id process, uint8_t reason,
		  struct trace_reach *reach)
{
	uint32_t count = reader_reaches_count(reader), last = count;
	const struct trace_reach *wanted;
	size_t capacity = 0;

	*reach = (struct trace_reach){ 0 };
	for (uint32_t i = 0; i < count; i++) {
		const struct trace_reach *part = reader_reach(reader, i);

		if (part->process == process && (!reason || part->reason == reason) &&
		    part->first == 0)
			last = i;
	}
	if (last == count)
		return false;
	wanted = reader_reach(reader, last);
	*reach = *wanted;
	reach->count = 0;
	for (uint32_t i = last; i < count && reach->count < wanted->total; i++) {
		struct trace_reach part;

		if (reader_reach(reader, i)->process != process ||
		    reader_reach(reader, i)->number != wanted->number ||
		    reader_reach(reader, i)->first != reach->count ||
		    !reader_reach_load(reader, i, &part))
			continue;
		MEM_ROOM(reach->blocks, capacity, (size_t)(reach->count + part.count));
		memcpy(reach->blocks + reach->count, part.blocks,
		       (size_t)part.count * sizeof *reach->blocks);
		reach->count += part.count;
		reach_fini(&part);
	}
	if (reach->count < reach->total)
		reach->flags |= TRACE_REACH_BLIND;
	return true;
}

// Blocks are in the order of their addresses and do not overlap, so the last one that begins at or
// before the address is the only one that can have it. A block of 0 bytes has its address.
const struct trace_reach_block *reached_find(const struct trace_reach *reach, uint64_t address)
{
	size_t low = RISING_UPTO(reach->blocks, reach->count, address, address);
	const struct trace_reach_block *block;

	if (low == 0)
		return NULL;
	block = &reach->blocks[low - 1];
	return address == block->address || address - block->address < block->size ? block : NULL;
}

// ---- sites ----

static void add(struct heap_amount *sum, uint64_t bytes)
{
	sum->count++;
	sum->bytes += bytes;
}

static uint64_t place_of(process_id process, stack_id stack)
{
	return (uint64_t)process << 32 | stack;
}

// Valid until the next one is put: the list may move.
static struct reached_site *put_site(struct reached *reached, process_id process, stack_id stack)
{
	bool added;
	uint64_t *at = map_put(&reached->places, place_of(process, stack), &added);

	if (added) {
		*at = reached->count;
		*MEM_ADD(reached->sites, reached->count, reached->capacity) =
			(struct reached_site){ .process = process, .stack = stack };
	}
	ASSERT(*at < reached->count);
	return &reached->sites[*at];
}

const struct reached_site *reached_site(const struct reached *reached, process_id process,
					stack_id stack)
{
	const uint64_t *at = map_find(&reached->places, place_of(process, stack));

	return at ? &reached->sites[*at] : NULL;
}

struct heap_amount reached_lost(const struct heap_amount states[static TRACE_REACH_STATES_COUNT])
{
	const struct heap_amount *root = &states[TRACE_REACH_UNREACHABLE];
	const struct heap_amount *held = &states[TRACE_REACH_HELD];

	return (struct heap_amount){ root->count + held->count, root->bytes + held->bytes };
}

// The process is selected or not before this.
static bool selects(const struct query *query, const struct trace_reach_block *block)
{
	return query_has_thread(query, block->thread) && query_has_size(query, block->size) &&
	       (!query->stack || query->stack(query->context, block->stack));
}

// Which unreachable block each of the others is lost with.
struct leaks {
	const struct trace_reach *reach;
	uint32_t *of;   // by block; UNKNOWN, VISITED
	uint32_t *path; // of those that are looked at
};

#define UNKNOWN UINT32_MAX
#define VISITED (UINT32_MAX - 1)

// Follow those that hold a block, to the one that nothing holds: its index. All on the path get the
// same answer, so a chain of n blocks costs n steps in all, and not n for each of them. A circle,
// which no recorder writes, ends where it closes.
static uint32_t leak_of(struct leaks *leaks, uint32_t at)
{
	const struct trace_reach_block *blocks = leaks->reach->blocks;
	uint32_t count = 0, leak;

	ASSERT(at < leaks->reach->count && blocks[at].state == TRACE_REACH_HELD);
	while (blocks[at].state == TRACE_REACH_HELD && leaks->of[at] == UNKNOWN) {
		const struct trace_reach_block *holder = reached_find(leaks->reach, blocks[at].at);

		leaks->of[at] = VISITED;
		leaks->path[count++] = at;
		if (holder)
			at = (uint32_t)(holder - blocks);
	}
	leak = leaks->of[at] < VISITED ? leaks->of[at] : at;
	while (count > 0)
		leaks->of[leaks->path[--count]] = leak;
	return leak;
}

// Adds each block that is held to the site of the leak that holds it. The filters ask for the leak,
// as what a selected site holds is of interest whatever it is. Sums that were imported do not say
// which leak holds a block: it is its own site's.
static void add_leaks(struct reached *reached, const struct query *query, process_id process,
		      const struct trace_reach *reach)
{
	struct leaks leaks = {
		.reach = reach,
		.of = mem_alloc((size_t)reach->count + 1, sizeof *leaks.of),
		.path = mem_alloc((size_t)reach->count + 1, sizeof *leaks.path),
	};

	memset(leaks.of, 0xff, (size_t)reach->count * sizeof *leaks.of);
	for (uint32_t i = 0; i < reach->count; i++) {
		const struct trace_reach_block *leak;

		if (reach->blocks[i].state != TRACE_REACH_HELD)
			continue;
		leak = &reach->blocks[leak_of(&leaks, i)];
		if (leak->state == TRACE_REACH_UNREACHABLE && selects(query, leak)) {
			struct reached_site *site = put_site(reached, process, leak->stack);

			add(&site->holds, reach->blocks[i].size);
			if (reach->blocks[i].stack == leak->stack)
				add(&site->holds_own, reach->blocks[i].size);
		} else if (leak->state == TRACE_REACH_HELD && selects(query, &reach->blocks[i])) {
			add(&put_site(reached, process, reach->blocks[i].stack)->loose,
			    reach->blocks[i].size);
		}
	}
	MEM_FREE(leaks.of, leaks.path);
}

// The sums by state are of what the filters select.
static void add_process(struct reached *reached, const struct query *query, process_id process,
			const struct trace_reach *reach)
{
	reached->flags |= reach->flags;
	for (uint64_t i = 0; i < reach->count; i++) {
		const struct trace_reach_block *block = &reach->blocks[i];

		if (!selects(query, block))
			continue;
		add(&put_site(reached, process, block->stack)->states[block->state], block->size);
		add(&reached->states[block->state], block->size);
	}
	add_leaks(reached, query, process, reach);
}

// The first reason is the one that is given.
static void say(struct reached *reached, const char *text)
{
	if (!reached->why)
		reached->why = mem_copy_text(text);
}

// A flag of any process makes the whole answer unknown: what a block that was not seen points to
// looks unreachable, and a leak that is none is worse than no answer.
void reached_read(struct reached *reached, const struct query_context *asked)
{
	const struct query *query = &asked->selection.query;
	const struct reader *reader = asked->reader;
	struct str text = { 0 };

	*reached = (struct reached){
		.asked = reader_reaches_count(reader) > 0 ||
			 defs_option(reader_info(reader)->options, "reachability") != NULL,
	};
	if (!reached->asked && reader_is_windows(reader))
		say(reached, "whether blocks are reachable is not recorded on Windows");
	else if (!reached->asked)
		say(reached, "whether blocks are reachable was not recorded (record "
			     "--reachability)");
	if (asked->selection.within || query->types || query->lifetime_given)
		say(reached, "whether blocks are reachable is known without --from, --to, "
			     "--lifetime and --impact alone");
	for (process_id id = 0; !reached->why && id < reader_processes_count(reader); id++) {
		struct trace_reach reach;

		if (!query_has_process(query, id))
			continue;
		if (reached_load(reader, id, TRACE_SNAPSHOT_EXIT, &reach)) {
			add_process(reached, query, id, &reach);
			reach_fini(&reach);
			continue;
		}
		if (reader_process(reader, id)->exit == TRACE_EXIT_EXEC)
			continue; // its memory is gone, and it was not lost
		str_clear(&text);
		str_format(&text,
			   "process %" PRIu32 " was not searched for what is reachable: it was "
			   "killed, or ended by itself without the C library",
			   reader_process(reader, id)->pid);
		say(reached, str_get(&text));
	}
	if (reached->flags & TRACE_REACH_BLIND)
		say(reached, "not all blocks are known (a pause, or attached to a process that "
			     "ran): what they held looks unreachable");
	if (reached->flags & TRACE_REACH_PARTIAL)
		say(reached,
		    "some memory of a process could not be read: what only that held looks "
		    "unreachable");
	str_fini(&text);
	reached->known = !reached->why;
}

void reached_fini(struct reached *reached)
{
	map_fini(&reached->places);
	MEM_FREE(reached->sites, reached->why);
	*reached = (struct reached){ 0 };
}
