// Fetches what the index does not keep of single allocations: addresses, threads, stacks of frees.
//
// The index knows by which events a lifetime began and ended. Their numbers are sorted, and the
// blocks of the trace that have them are read once, in order: a list of 100 lifetimes reads at most
// 200 blocks, however long the trace is.
#include "engine/window.h"

#include "base/mem.h"
#include "base/sort.h"
#include "engine/window_source.h"
#include "trace/effect.h"

#include <stdlib.h>

// One end of one allocation, and the event that made it.
struct wanted {
	uint64_t number;
	uint64_t time_ns;
	struct window_allocation *allocation;
	bool end;
};

SORT_ORDER(compare_wanted, struct wanted, SORT_RISES(number))

static void learn_begin(struct window_allocation *allocation, const struct trace_event *event)
{
	allocation->address = event->address;
	allocation->begin_thread = event->thread;
	allocation->reallocated = effect_of(event->kind) & EFFECT_MOVES;
}

// What ended it, as far as the index does not say: a realloc, if the event is one that names this
// block as its old one, or a first half; LOST, if the event began a block at the same address.
static void learn_end(struct window_allocation *allocation, const struct trace_event *event)
{
	unsigned effect = effect_of(event->kind);
	bool moves = effect & EFFECT_ENDS && effect & EFFECT_MOVES;

	allocation->end_thread = event->thread;
	allocation->end_stack = event->stack;
	if (effect & EFFECT_HALF || (moves && effect_ended(event) == allocation->address))
		allocation->end_kind = WINDOW_END_REALLOC;
	else if (moves ||
		 (!(effect & (EFFECT_ENDS | EFFECT_DESTROYS)) &&
		  allocation->end_kind == WINDOW_END_FREE && !trace_kind_is_vm(event->kind)))
		allocation->end_kind = WINDOW_END_LOST;
}

// The wanted events rise. One that is up to 131,072 events further on is read up to; for others a
// seek is less work.
static bool read_wanted(struct reader *reader, const struct wanted *wanted, size_t count,
			struct err *err)
{
	enum { NEAR_EVENTS = 1 << 17 }; // not worth a seek
	struct trace_event event = { .number = UINT64_MAX };
	struct trace_note note;
	enum reader_item item = READER_NOTE;

	for (size_t i = 0; i < count; i++) {
		bool known = item == READER_EVENT;

		if (!known || event.number > wanted[i].number ||
		    wanted[i].number - event.number > NEAR_EVENTS) {
			uint64_t time_ns = wanted[i].time_ns;

			if (!reader_seek(reader, time_ns ? time_ns - 1 : 0, err))
				return false;
			event.number = UINT64_MAX;
			item = READER_NOTE;
		}
		while (item != READER_END &&
		       !(item == READER_EVENT && event.number >= wanted[i].number))
			item = reader_next(reader, &event, &note);
		if (item == READER_END || event.number != wanted[i].number)
			return err_set(err, ERR_FORMAT, "event %llu is not in the trace",
				       (unsigned long long)wanted[i].number);
		if (wanted[i].end)
			learn_end(wanted[i].allocation, &event);
		else
			learn_begin(wanted[i].allocation, &event);
	}
	return true;
}

static bool want(struct window *window, struct wanted *list, size_t *count, uint64_t step,
		 struct window_allocation *allocation, bool end, struct err *err)
{
	struct wanted *wanted = &list[*count];

	if (step >= window_facts(window)->steps_end)
		return true;
	*wanted = (struct wanted){ .allocation = allocation, .end = end };
	if (!window_source_number(window, step, &wanted->number, err))
		return false;
	wanted->time_ns = window_edge_time(window, step + 1);
	*count += wanted->number != UINT64_MAX;
	return true;
}

// In the order of steps, whatever that of the allocations is: so each block of the index and of the
// trace is read once.
bool window_fetch(struct window *window, struct window_allocation *allocations, size_t count,
		  struct err *err)
{
	struct wanted *wanted = mem_alloc(count * 2 + 1, sizeof *wanted);
	size_t wanted_count = 0;
	bool ok = true;

	for (size_t i = 0; i < count && ok; i++) {
		allocations[i].end_thread = TRACE_NONE;
		ok = want(window, wanted, &wanted_count, allocations[i].begin, &allocations[i],
			  false, err) &&
		     want(window, wanted, &wanted_count, allocations[i].end, &allocations[i], true,
			  err);
	}
	if (wanted_count)
		qsort(wanted, wanted_count, sizeof *wanted, compare_wanted);
	ok = ok && read_wanted(window_source_reader(window), wanted, wanted_count, err);
	mem_free(wanted);
	return ok;
}
