// A moment from an index, held against the trace that was read up to there.
//
// The caller fills in a struct moment_sides with moment_sides_of; then check_moment asks.
#pragma once

#include "base/mem.h"
#include "engine/replay/plateau.h"
#include "engine/replay/present.h"
#include "engine/window_source.h"
#include "test/test.h"
#include "test/unit/present_list.h"
#include "test/unit/sample_trace.h"

// `reader` reads the trace; the window is another reader's.
struct moment_sides {
	struct reader *reader;
	struct window *window;
	struct sample_random random;
	uint64_t events, duration_ns, known, plateaus;
};

static inline struct moment_sides moment_sides_of(struct reader *reader, struct window *window,
						  uint64_t seed)
{
	reader_scan(reader);
	return (struct moment_sides){
		.reader = reader,
		.window = window,
		.random = { seed },
		.events = reader_stats(reader)->events,
		.duration_ns = reader_stats(reader)->last_ns,
	};
}

// All that hooks are given, as one number.
struct moment_heard {
	uint64_t sum, count;
};

static inline void moment_hear(void *context, const struct space *space,
			       const struct trace_event *event)
{
	struct moment_heard *heard = context;
	const uint64_t words[] = {
		event->number,
		event->time_ns,
		event->address,
		event->old_address,
		event->size,
		event->thread,
		event->stack,
		event->heap,
		event->kind,
		event->vm ? event->vm->flags : 77,
		event->vm ? event->vm->error + event->vm->origin * 100 + event->vm->old_size : 77,
		space_all(space)->reserved_bytes,
		space_all(space)->committed_bytes,
	};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		heard->sum = (heard->sum ^ words[i]) * UINT64_C(0x100000001b3);
	heard->count++;
}

static inline void check_blocks(const struct present *right, const struct present *found,
				process_id process, bool undated)
{
	struct present_list right_list = present_list(right, process);
	struct present_list found_list = present_list(found, process);
	const struct present_block *blocks = right_list.blocks, *other = found_list.blocks;

	CHECK_EQ(right_list.count, found_list.count);
	for (size_t i = 0; i < right_list.count && i < found_list.count; i++) {
		CHECK_EQ(blocks[i].address, other[i].address);
		CHECK_EQ(blocks[i].size, other[i].size);
		CHECK_EQ(blocks[i].thread, other[i].thread);
		CHECK_EQ(blocks[i].stack, other[i].stack);
		CHECK_EQ(blocks[i].heap, other[i].heap);
		CHECK_EQ(blocks[i].selected, other[i].selected);
		if (undated)
			continue;
		CHECK_EQ(blocks[i].number, other[i].number);
		CHECK_EQ(blocks[i].time_ns, other[i].time_ns);
	}
	MEM_FREE(right_list.blocks, found_list.blocks);
}

static inline void check_space(const struct present *right, const struct present *found,
			       process_id process)
{
	const struct ranges *ranges = space_ranges(present_space(right), process);
	const struct ranges *others = space_ranges(present_space(found), process);
	const struct range *a, *b;

	for (uint64_t at = 0;; at = a->end) {
		a = ranges_from(ranges, at);
		b = ranges_from(others, at);
		CHECK_EQ(a != NULL, b != NULL);
		if (!a || !b)
			break;
		CHECK_EQ(a->start, b->start);
		CHECK_EQ(a->end, b->end);
		CHECK_EQ(a->number, b->number);
		CHECK_EQ(a->time_ns, b->time_ns);
		CHECK_EQ(a->stack, b->stack);
		CHECK_EQ(a->thread, b->thread);
		CHECK_EQ(a->protection, b->protection);
		CHECK_EQ(a->owner, b->owner);
		CHECK_EQ(a->commit != 0, b->commit != 0);
		CHECK_EQ(a->inherited, b->inherited);
		CHECK_EQ(a->baseline, b->baseline);
	}
	CHECK_BYTES(space_process(present_space(right), process),
		    space_process(present_space(found), process), sizeof(struct space_totals));
}

static inline bool is_larger(void *context, const struct trace_event *event)
{
	const uint64_t *least = context;

	return event->size >= *least && event->number % 7 != 3;
}

static inline bool has_stack(void *context, stack_id stack)
{
	(void)context;
	return stack % 3 != 1;
}

static inline struct present_options random_options(struct moment_sides *sides)
{
	struct present_options options = { .inherits = TRACE_NONE };
	struct sample_random *random = &sides->random;

	switch (sample_below(random, 8)) {
	case 0:
		options.at_exit = true;
		break;
	case 1:
	case 2:
	case 3:
		options.edge.time_ns = sample_below(random, sides->duration_ns + 2);
		break;
	case 4:
		options.edge = (struct moment_edge){ .number = UINT64_MAX, .exact = true };
		break;
	default:
		options.edge.exact = true;
		options.edge.number = sample_below(random, sides->events + 3);
		break;
	}
	if (sample_below(random, 6) == 0)
		options.inherits = 1;
	options.undated = sample_below(random, 4) == 0;
	options.spaces_only = sample_below(random, 5) == 0;
	return options;
}

// One moment, and what hooks hear on the way there.
static inline void check_moment(struct moment_sides *sides)
{
	struct moment_heard right_before = { 0 }, found_before = { 0 };
	struct present_options options = random_options(sides);
	uint64_t least = sample_below(&sides->random, 100);
	struct query query = { .event = is_larger, .event_context = &least, .stack = has_stack };
	struct present *right, *found;
	bool filtered = sample_below(&sides->random, 2);

	options.query = filtered ? &query : NULL;
	options.before = moment_hear;
	options.context = &right_before;
	reader_rewind(sides->reader);
	right = present_read(sides->reader, &options);
	options.context = &found_before;
	found = window_source_moment(sides->window, &options);
	if (found) {
		sides->known++;
		CHECK_EQ(right_before.count, found_before.count);
		CHECK_EQ(right_before.sum, found_before.sum);
		CHECK_EQ(present_events(right), present_events(found));
		for (process_id id = 0; id < reader_processes_count(sides->reader); id++) {
			CHECK_EQ(present_time(right, id), present_time(found, id));
			if (!options.spaces_only)
				check_blocks(right, found, id, options.undated && !filtered);
			check_space(right, found, id);
		}
		CHECK_BYTES(space_all(present_space(right)), space_all(present_space(found)),
			    sizeof(struct space_totals));
	} else {
		CHECK_EQ(0, found_before.count);
	}
	present_free(right);
	present_free(found);
}

// All calls of the trace, after each.
static inline void check_calls(struct moment_sides *sides)
{
	struct moment_heard right = { 0 }, found = { 0 };
	struct present_options options = {
		.at_exit = true,
		.inherits = TRACE_NONE,
		.after = moment_hear,
		.context = &right,
	};

	reader_rewind(sides->reader);
	present_free(present_read(sides->reader, &options));
	options.context = &found;
	if (!window_source_calls(sides->window, &options))
		return;
	CHECK_EQ(right.count, found.count);
	CHECK_EQ(right.sum, found.sum);
}

// The plateau of each process that ends before some event.
static inline void check_plateaus(struct moment_sides *sides)
{
	uint64_t number = sample_below(&sides->random, sides->events + 2);

	for (process_id id = 0; id < reader_processes_count(sides->reader); id++) {
		struct plateau right, found;

		if (!window_source_plateau(sides->window, id, number, &found))
			continue;
		sides->plateaus++;
		plateau_find(&right, sides->reader, id, number);
		CHECK_EQ(right.bytes, found.bytes);
		CHECK_EQ(right.bytes_end, found.bytes_end);
		CHECK_EQ(right.from_ns, found.from_ns);
		CHECK_EQ(right.edge.number, found.edge.number);
		CHECK_EQ(right.edge.time_ns, found.edge.time_ns);
		CHECK_EQ(right.edge.exact, found.edge.exact);
	}
}
