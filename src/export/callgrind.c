// callgrind: a file for callgrind_annotate and KCachegrind
// (https://valgrind.org/docs/manual/cl-format.html): for each function what was allocated in it
// itself, by line, and what was allocated below each of its calls.
//
// The events are bytes and blocks allocated in the window and alive at its end. `calls=` is the
// number of allocations below the call, since the calls themselves were not counted. A call that a
// stack passes several times (recursion) counts once for that stack, so that no figure is larger
// than the total.
#include "export/export.h"
#include "export/locations.h"

#include "base/mem.h"
#include "base/sort.h"

#include <inttypes.h>
#include <stdlib.h>

static const enum samples_value events[] = { SAMPLES_ALLOCATED, SAMPLES_ALLOCATIONS, SAMPLES_LIVE,
					     SAMPLES_BLOCKS };

enum { EVENTS = sizeof events / sizeof *events, NOBODY = -1 };

// What was allocated at a line of a function, or below a call from it.
struct cost {
	uint32_t function, line;
	int64_t callee; // a function, or none: in the function itself
	uint64_t values[EVENTS];
	uint64_t stack_number; // private: the last stack that was added
};

struct callgrind {
	const struct export_source *source;
	struct sink *sink;
	struct locations locations;
	struct cost *costs;
	size_t count, capacity;
	struct index_set known;
	uint64_t stack_number;
	uint32_t *numbers; // of the present stack's locations, innermost first
	size_t numbers_capacity;
	bool *named[2]; // by string number: its text was written, as a file, as a function
};

static bool is_cost(const void *context, uint32_t position, const void *key)
{
	const struct callgrind *callgrind = context;
	const struct cost *there = &callgrind->costs[position], *wanted = key;

	ASSERT(position < callgrind->count);
	return there->function == wanted->function && there->line == wanted->line &&
	       there->callee == wanted->callee;
}

// Adds a sample to the cost of a line, or of a call from it, once for the present stack: with f
// calling f calling f, 16 bytes below the call are 16 and not 32.
static void add(struct callgrind *callgrind, struct location_line at, int64_t callee,
		const struct sample *sample)
{
	const struct cost fresh = { .function = at.function, .line = at.line, .callee = callee };
	const uint64_t numbers[] = { fresh.function, fresh.line, (uint64_t)callee };
	uint32_t found = index_set_put(&callgrind->known, index_set_hash(numbers, 3), is_cost,
				       callgrind, &fresh, (uint32_t)callgrind->count);
	struct cost *cost;

	if (found == callgrind->count) {
		*MEM_ADD(callgrind->costs, callgrind->count, callgrind->capacity) = fresh;
	}
	cost = &callgrind->costs[found];
	if (cost->stack_number == callgrind->stack_number)
		return;
	cost->stack_number = callgrind->stack_number;
	for (size_t i = 0; i < EVENTS; i++)
		cost->values[i] += (uint64_t)samples_value(sample, events[i]);
}

// From the innermost function out: the first has the sample itself (no callee), each further one a
// call of the one before it.
static void add_sample(struct callgrind *callgrind, const struct sample *sample)
{
	struct locations *locations = &callgrind->locations;
	size_t depth = locations_of_stack(locations, sample->stack, &callgrind->numbers,
					  &callgrind->numbers_capacity);
	int64_t callee = NOBODY;

	callgrind->stack_number++;
	for (size_t i = 0; i < depth; i++) {
		const struct location *location = &locations->list[callgrind->numbers[i]];

		for (uint32_t k = 0; k < location->lines_count; k++) {
			struct location_line at = locations->lines[location->lines_first + k];

			add(callgrind, at, callee, sample);
			callee = at.function;
		}
	}
}

// ---- writing ----

SORT_ORDER(compare_costs, struct cost, SORT_RISES(function), SORT_RISES(callee), SORT_RISES(line))

// "fn=(12) main", and "fn=(12)" from then on.
static void write_name(struct callgrind *callgrind, const char *key, bool function, uint32_t name)
{
	const char *text = callgrind->locations.strings.texts[name];

	ASSERT(name < callgrind->locations.strings.count);
	sink_format(callgrind->sink, "%s=(%" PRIu32 ")", key, name + 1);
	if (!callgrind->named[function][name]) {
		sink_text(callgrind->sink, " ");
		export_write_line(callgrind->sink, *text ? text : "???");
	}
	callgrind->named[function][name] = true;
	sink_text(callgrind->sink, "\n");
}

static void write_values(const struct callgrind *callgrind, const struct cost *cost)
{
	sink_format(callgrind->sink, "%" PRIu32, cost->line);
	for (size_t i = 0; i < EVENTS; i++)
		sink_format(callgrind->sink, " %" PRIu64, cost->values[i]);
	sink_text(callgrind->sink, "\n");
}

// A function's own lines come before its calls, as -1 sorts first. Without a line of the
// callee, which is not known, `calls=` has 0.
static void write_cost(struct callgrind *callgrind, const struct cost *cost, bool first)
{
	const struct location_function *functions = callgrind->locations.functions;

	if (first) {
		sink_text(callgrind->sink, "\n");
		write_name(callgrind, "fl", false, functions[cost->function].file);
		write_name(callgrind, "fn", true, functions[cost->function].name);
	}
	if (cost->callee != NOBODY) {
		write_name(callgrind, "cfi", false, functions[cost->callee].file);
		write_name(callgrind, "cfn", true, functions[cost->callee].name);
		sink_format(callgrind->sink, "calls=%" PRIu64 " 0\n", cost->values[1]);
	}
	write_values(callgrind, cost);
}

// The summary is over the samples, and not over the costs, of which a sample has many.
static void write_head(struct callgrind *callgrind, const struct cost *without)
{
	const struct samples *samples = callgrind->source->samples;
	const struct trace_info *info = reader_info(callgrind->source->asked->reader);
	uint64_t totals[EVENTS] = { 0 };

	for (size_t i = 0; i < samples->count; i++)
		for (size_t k = 0; k < EVENTS; k++)
			totals[k] += (uint64_t)samples_value(&samples->list[i], events[k]);
	sink_text(callgrind->sink, "# callgrind format\nversion: 1\ncreator: ");
	export_write_line(callgrind->sink, info->tool);
	sink_text(callgrind->sink, "\ncmd: ");
	export_write_line(callgrind->sink, info->command);
	sink_text(callgrind->sink, "\npositions: line\n"
				   "event: Allocated : bytes allocated\n"
				   "event: Allocs : allocations\n"
				   "event: Live : bytes live at the end\n"
				   "event: Blocks : blocks live at the end\n"
				   "events: Allocated Allocs Live Blocks\nsummary:");
	for (size_t k = 0; k < EVENTS; k++)
		sink_format(callgrind->sink, " %" PRIu64, totals[k]);
	sink_text(callgrind->sink, "\n");
	if (!without->values[1] && !without->values[3])
		return;
	sink_text(callgrind->sink, "\nfl=(0) ???\nfn=(0) (no stack)\n");
	write_values(callgrind, without);
}

static void write_all(struct callgrind *callgrind, const struct cost *without)
{
	size_t strings = callgrind->locations.strings.count;

	for (int i = 0; i < 2; i++)
		callgrind->named[i] = mem_alloc(strings + 1, sizeof *callgrind->named[i]);
	write_head(callgrind, without);
	if (callgrind->count)
		qsort(callgrind->costs, callgrind->count, sizeof *callgrind->costs, compare_costs);
	for (size_t i = 0; i < callgrind->count; i++)
		write_cost(callgrind, &callgrind->costs[i],
			   i == 0 || callgrind->costs[i].function !=
					     callgrind->costs[i - 1].function);
	for (int i = 0; i < 2; i++)
		mem_free(callgrind->named[i]);
}

// What has no stack is one function of its own.
static bool write(const struct export_source *source, struct sink *sink, struct err *)
{
	struct callgrind callgrind = {
		.source = source,
		.sink = sink,
		.locations = { .reader = source->asked->reader, .names = source->asked->names },
	};
	struct cost without = { 0 };

	for (size_t i = 0; i < source->samples->count; i++) {
		const struct sample *sample = &source->samples->list[i];

		add_sample(&callgrind, sample);
		for (size_t k = 0; k < EVENTS && !sample->stack; k++)
			without.values[k] += (uint64_t)samples_value(sample, events[k]);
	}
	write_all(&callgrind, &without);
	locations_fini(&callgrind.locations);
	index_set_fini(&callgrind.known);
	MEM_FREE(callgrind.costs, callgrind.numbers);
	return true;
}

const struct export_format callgrind_format = {
	.name = "callgrind",
	.brief = "for callgrind_annotate and KCachegrind: allocated and live, by function and call",
	.has_samples = true,
	.write = write,
};
