// chart: a picture before it is drawn: axes, curves or cells, marks.
//
//     chart_add_curve, chart_add_point, chart_add_cell, chart_add_mark
//       chart_write_data     the numbers, as plain columns
//       chart_write_script   what makes gnuplot draw them
//     chart_fini
//
// Numbers are in base units throughout (bytes, nanoseconds, counts): the script scales them to what
// reads well, and the data can be used for something else.
//
// Looks: one palette, for people who do not see red and green alike too (Okabe and Ito,
// 2008; cividis for cells), and different dashes besides, so that it survives a grey printer. A
// curve that is alone is filled.
//
// Names come from traces and may hold anything. In the script they are in single quotes (a single
// quote itself in double ones), where gnuplot knows no escapes, no commands and no markup, and
// without control characters.
#pragma once

#include "base/sink.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum chart_unit {
	CHART_COUNT,
	CHART_BYTES,
	CHART_BYTES_PER_S,
	CHART_TIME, // nanoseconds
};

enum chart_style {
	CHART_STEPS, // a level that holds until the next point; the data have the corners
	CHART_LINES, // from point to point
	CHART_BARS,  // no curves: cells, in one colour and without weight
};

// `= { .label = … }` finds its own ends.
struct chart_axis {
	const char *label; // borrowed; the unit is added
	enum chart_unit unit;
	bool log;
	double low, high; // high > low: these; else what the data need
};

struct chart_point {
	double x, y;
};

// Owns its name and points.
struct chart_curve {
	char *name;
	struct chart_point *points; // x rises
	size_t count, capacity;
	bool rest; // of all that have no curve of their own: grey
};

// A rectangle, whose weight is its colour.
struct chart_cell {
	// in the units of the axes; `weight` is a count
	double x_low, x_high, y_low, y_high, weight;
};

// A line across the picture, at an x.
struct chart_mark {
	double x;
	char *name;
};

struct chart {
	char *title, *subtitle; // owned; may be NULL
	struct chart_axis x, y;
	enum chart_style style;
	struct chart_curve *curves;
	size_t curves_count, curves_capacity;
	struct chart_cell *cells; // if any, there are no curves
	size_t cells_count, cells_capacity;
	const char *weight; // borrowed: what a cell's colour says
	// A row apart for cells that have no y, with what it is called: from the highest y ("not
	// freed") or below the lowest ("under 100 us"). 0: none.
	double above, below;
	const char *above_label; // borrowed
	char below_label[32];
	struct chart_mark *marks;
	size_t marks_count, marks_capacity;
};

void chart_fini(struct chart *chart); // accepts { 0 }

// The name is copied. The curve is valid until the next is added.
struct chart_curve *chart_add_curve(struct chart *chart, const char *name);
void chart_add_point(struct chart_curve *curve, double x, double y);
void chart_add_cell(struct chart *chart, const struct chart_cell *cell);
void chart_add_mark(struct chart *chart, double x, const char *name);

// What files are called, and how large the picture is.
struct chart_output {
	const char *path;       // of the picture: its ending says how it is drawn
	const char *data;       // of the data, as the script is to find them
	unsigned width, height; // pixels, or at 100 to an inch
};

// The ending of the path is one of those that can be drawn: svg, png, pdf.
bool chart_can_draw(const char *path);

// Columns for gnuplot: the curves one after another, or the cells.
void chart_write_data(const struct chart *chart, struct sink *sink);

// What draws those data into the picture.
void chart_write_script(const struct chart *chart, const struct chart_output *output,
			struct sink *sink);
