// Plots over sizes: a histogram of allocations by size, and sizes against lifetimes as a heat map.
// Sizes are in classes, so many to an octave; a bar is as wide as its class.
//
// For example four classes to an octave: 0, 1, 2 and 3 are classes of their own; 4 to 7 are classes
// 4 to 7, one number each; 8 and 9 are class 8, 10 and 11 class 9; 1,024 to 1,279 are class 36, and
// the next octave begins with 40.
#include "report/draw/plot_parts.h"

#include "base/mem.h"

#include <stdio.h>

// Classes of sizes and of lifetimes: `parts` to an octave, from the first power of two that has so
// many whole numbers; below that, a class for each number.
struct classes {
	uint32_t parts; // a power of two
};

// Values below `parts` have a class each; above, each doubling has `parts` classes. With 4: 8 to 9,
// 10 to 11, 12 to 13 and 14 to 15 are four of them.
static uint32_t class_of(struct classes classes, uint64_t value)
{
	uint32_t part_bits = (uint32_t)__builtin_ctz(classes.parts);
	uint32_t octave;

	if (value < classes.parts)
		return (uint32_t)value;
	octave = 63 - (uint32_t)__builtin_clzll(value);
	return classes.parts * (octave - part_bits + 1) +
	       (uint32_t)(value >> (octave - part_bits) & (classes.parts - 1));
}

// The least number of a class; of one past the last the end of that.
static double floor_of(struct classes classes, uint32_t number)
{
	uint32_t part_bits = (uint32_t)__builtin_ctz(classes.parts);
	uint32_t octave;

	ASSERT(classes.parts > 0);
	if (number < classes.parts)
		return number > 0 ? number : 0.5; // a size of 0 has its place left of 1
	octave = number / classes.parts - 1 + part_bits;
	if (octave - part_bits > 63)
		octave = part_bits + 63;
	return (double)(classes.parts + number % classes.parts) *
	       (double)(UINT64_C(1) << (octave - part_bits));
}

enum { CLASSES_MAX = 64 * 4 + 4 };

// ---- sizes ----

struct histogram {
	struct plot_groups groups;
	struct classes classes;
	uint64_t *counts; // by curve, then class
	uint32_t highest, lowest;
};

// Groups of the engine are a curve and a class of sizes in one number: group * CLASSES_MAX + class,
// which count_sizes reads back.
static uint32_t by_group_and_size(void *context, const struct window_cell *cell)
{
	struct histogram *histogram = context;
	struct window_query query = plot_groups_query(&histogram->groups);
	uint32_t group = query.group(query.context, cell);

	return group == WINDOW_SKIP
		       ? WINDOW_SKIP
		       : group * CLASSES_MAX + class_of(histogram->classes, cell->size);
}

// How many allocations each curve has of each class of sizes, in one question: a row of the answer
// is curve * CLASSES_MAX + class. Only what was allocated in the window counts, not what was there.
static bool count_sizes(struct histogram *histogram, struct query_context *asked, size_t curves,
			struct err *err)
{
	struct window_query query = plot_groups_query(&histogram->groups);
	struct window_result result;

	query.group = by_group_and_size;
	query.context = histogram;
	query.by_size = true;
	if (!window_ask(asked->window, &query, &result, err))
		return false;
	histogram->counts = mem_alloc(curves * CLASSES_MAX + 1, sizeof *histogram->counts);
	histogram->lowest = CLASSES_MAX;
	for (uint32_t i = 0; i < result.rows_count; i++) {
		uint64_t count = window_allocated(&result.rows[i]).count;
		uint32_t class = i % CLASSES_MAX;

		histogram->counts[i] = count;
		if (count > 0 && class < histogram->lowest)
			histogram->lowest = class;
		if (count > 0 && class > histogram->highest)
			histogram->highest = class;
	}
	window_result_fini(&result);
	return true;
}

// Empty classes have no bar: a bar of height 0 has no place on a logarithmic axis.
static void add_bars(struct chart *chart, const struct histogram *histogram)
{
	chart->style = CHART_BARS;
	for (uint32_t class = histogram->lowest; class <= histogram->highest; class ++) {
		struct chart_cell cell = {
			.x_low = floor_of(histogram->classes, class),
			.x_high = floor_of(histogram->classes, class + 1),
			.y_low = chart->y.low,
			.y_high = (double)histogram->counts[class],
			.weight = (double)histogram->counts[class],
		};

		if (cell.weight > 0)
			chart_add_cell(chart, &cell);
	}
}

// As high as its class from its least size to the next class, as the bars would be.
static void add_outline(struct chart *chart, const struct histogram *histogram, size_t curve)
{
	const uint64_t *counts = histogram->counts + curve * CLASSES_MAX;
	char other[40];
	struct chart_curve *line =
		chart_add_curve(chart, plot_groups_name(&histogram->groups, curve, other));

	for (uint32_t class = histogram->lowest; class <= histogram->highest + 1; class ++) {
		double count = class <= histogram->highest ? (double)counts[class] : 0;

		chart_add_point(line, floor_of(histogram->classes, class),
				count > chart->y.low ? count : chart->y.low);
	}
}

// Both axes are logarithmic, with four classes for each doubling of a size. The picture is from the
// lowest class that has any to the highest, and a fifth more. A logarithmic axis has no 0, so the
// bars begin at 0.7: a bar of one allocation can be seen then.
bool plot_sizes(struct chart *chart, struct query_context *asked,
		const struct plot_options *options, struct err *err)
{
	struct histogram histogram = { .classes = { 4 } };
	uint64_t most = 0;
	size_t curves;
	bool good = plot_groups_find(&histogram.groups, asked, options, err);

	curves = plot_groups_curves(&histogram.groups);
	good = good && count_sizes(&histogram, asked, curves, err);
	for (size_t i = 0; i < curves * CLASSES_MAX && good; i++)
		most = histogram.counts[i] > most ? histogram.counts[i] : most;
	if (good && most == 0)
		good = err_set(err, ERR_USAGE, "nothing was allocated in the window");
	if (good) {
		chart->x = (struct chart_axis){
			.label = "size of an allocation",
			.unit = CHART_BYTES,
			.log = true,
			.low = floor_of(histogram.classes, histogram.lowest) / 1.2,
			.high = floor_of(histogram.classes, histogram.highest + 1) * 1.2
		};
		chart->y = (struct chart_axis){ .label = "allocations",
						.unit = CHART_COUNT,
						.log = true,
						.low = 0.7,
						.high = (double)most * 1.8 };
		if (options->key == PLOT_BY_NOTHING)
			add_bars(chart, &histogram);
		else
			for (size_t i = 0; i < curves; i++)
				add_outline(chart, &histogram, i);
		plot_groups_mark_rest(&histogram.groups, chart);
	}
	mem_free(histogram.counts);
	plot_groups_fini(&histogram.groups);
	return good;
}

// ---- lifetimes ----

struct heat {
	struct query_context *asked;
	struct classes sizes, times;
	uint64_t *counts;   // by class of size, then of lifetime
	uint64_t *outlived; // by class of size: not ended by a call in the window
	uint64_t *under;    // by class of size: lived less than a tick of the clock
	uint64_t tick_ns;
	uint32_t sizes_low, sizes_high, times_low, times_high;
	bool any_outlived, any_under;
};

static uint32_t by_size_class(void *context, const struct window_cell *cell)
{
	const struct heat *heat = context;

	return query_context_selects(heat->asked, cell) ? class_of(heat->sizes, cell->size)
							: WINDOW_SKIP;
}

static void stretch(uint32_t *low, uint32_t *high, uint32_t class)
{
	*low = class < *low ? class : *low;
	*high = class > *high ? class : *high;
}

// Ended blocks by size and lifetime from one question, those that were not freed from another. What
// lived less than a tick of the clock is below the lowest time: how long is not known. What the end
// of a process takes away is not freed here (exit_frees): the picture is of what the program does.
// The classes of the engine are finer than those of the picture, so several of them are one.
static bool measure(struct heat *heat, struct err *err)
{
	struct window_query query = plot_query(heat->asked, NULL, NULL);
	struct heap_amount *classes =
		mem_alloc((size_t)CLASSES_MAX * WINDOW_LIFETIME_CLASSES, sizeof *classes);
	struct window_result result = { 0 };
	bool good;

	query.group = by_size_class;
	query.context = heat;
	query.by_size = true;
	query.exit_frees = false;
	good = window_lifetimes(heat->asked->window, &query, CLASSES_MAX, classes, err) &&
	       window_ask(heat->asked->window, &query, &result, err);
	for (uint32_t size = 0; size < CLASSES_MAX && good; size++)
		for (uint32_t fine = 0; fine < WINDOW_LIFETIME_CLASSES; fine++) {
			uint64_t count = classes[size * WINDOW_LIFETIME_CLASSES + fine].count;
			uint32_t time = class_of(heat->times, window_lifetime_floor(fine));

			if (count == 0)
				continue;
			stretch(&heat->sizes_low, &heat->sizes_high, size);
			if (window_lifetime_floor(fine) < heat->tick_ns) {
				heat->under[size] += count;
				heat->any_under = true;
				continue;
			}
			heat->counts[size * CLASSES_MAX + time] += count;
			stretch(&heat->times_low, &heat->times_high, time);
		}
	// Begun in the window, and ended by no call in it.
	for (uint32_t size = 0; size < result.rows_count && good; size++) {
		heat->outlived[size] = result.rows[size].type[WINDOW_AIFO].count;
		if (heat->outlived[size] > 0) {
			stretch(&heat->sizes_low, &heat->sizes_high, size);
			heat->any_outlived = true;
		}
	}
	window_result_fini(&result);
	mem_free(classes);
	return good;
}

static void add_cell(struct chart *chart, struct chart_cell *cell, double low, double high,
		     uint64_t count)
{
	ASSERT(low <= high);
	cell->y_low = low;
	cell->y_high = high;
	cell->weight = (double)count;
	if (count > 0)
		chart_add_cell(chart, cell);
}

// A column for each class of sizes. What was not freed is in a row of its own above the longest
// lifetime, what lived for less than a tick of the clock in one below the shortest, both apart from
// the others by a gap.
static void add_cells(struct chart *chart, const struct heat *heat)
{
	double top = floor_of(heat->times, heat->times_high + 1);
	double bottom = floor_of(heat->times, heat->times_low);

	for (uint32_t size = heat->sizes_low; size <= heat->sizes_high; size++) {
		struct chart_cell cell = { .x_low = floor_of(heat->sizes, size),
					   .x_high = floor_of(heat->sizes, size + 1) };

		for (uint32_t time = heat->times_low; time <= heat->times_high; time++)
			add_cell(chart, &cell, floor_of(heat->times, time),
				 floor_of(heat->times, time + 1),
				 heat->counts[size * CLASSES_MAX + time]);
		add_cell(chart, &cell, top * 1.25, top * 2.5, heat->outlived[size]);
		add_cell(chart, &cell, bottom / 2.5, bottom / 1.25, heat->under[size]);
	}
	chart->y.low = bottom / (heat->any_under ? 2.8 : 1.3);
	chart->y.high = top * (heat->any_outlived ? 2.8 : 1.3);
	if (heat->any_outlived) {
		chart->above = top * 1.1;
		chart->above_label = "not freed";
	}
	if (heat->any_under) {
		chart->below = bottom / 1.1;
		snprintf(chart->below_label, sizeof chart->below_label, "< %g µs",
			 (double)heat->tick_ns / 1000);
	}
}

// Where there is no lifetime to draw, since nothing was freed, the axis has the class of 1 µs, and
// all is in the row above it.
bool plot_lifetimes(struct chart *chart, struct query_context *asked, const struct plot_options *,
		    struct err *err)
{
	struct heat heat = { .asked = asked,
			     .sizes = { 2 },
			     .times = { 2 },
			     .tick_ns = reader_info(asked->reader)->tick_ns,
			     .sizes_low = CLASSES_MAX,
			     .times_low = CLASSES_MAX };
	bool good;

	heat.counts = mem_alloc((size_t)CLASSES_MAX * CLASSES_MAX, sizeof *heat.counts);
	heat.outlived = mem_alloc(CLASSES_MAX, sizeof *heat.outlived);
	heat.under = mem_alloc(CLASSES_MAX, sizeof *heat.under);
	good = measure(&heat, err);
	if (good && heat.sizes_low > heat.sizes_high)
		good = err_set(err, ERR_USAGE, "nothing was allocated in the window");
	if (good) {
		if (heat.times_low > heat.times_high) // nothing was freed
			heat.times_low = heat.times_high = class_of(heat.times, 1000);
		chart->x = (struct chart_axis){ .label = "size of an allocation",
						.unit = CHART_BYTES,
						.log = true,
						.low = floor_of(heat.sizes, heat.sizes_low) / 1.2,
						.high = floor_of(heat.sizes, heat.sizes_high + 1) *
							1.2 };
		chart->y = (struct chart_axis){ .label = "lived", .unit = CHART_TIME, .log = true };
		chart->weight = "allocations";
		add_cells(chart, &heat);
	}
	MEM_FREE(heat.counts, heat.outlived, heat.under);
	return good;
}
