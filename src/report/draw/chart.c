// Data are columns for gnuplot, in base units: cells one a line, curves one after the other with
// two empty lines between, which gnuplot counts as index 0, 1 and so on. A level is written with
// its corners: 10 bytes from 0 ns on and 30 from 5 ns on are the lines "0 10", "5 10" and "5 30".
#include "report/draw/chart.h"

#include "base/mem.h"

void chart_fini(struct chart *chart)
{
	for (size_t i = 0; i < chart->curves_count; i++) {
		MEM_FREE(chart->curves[i].name, chart->curves[i].points);
	}
	for (size_t i = 0; i < chart->marks_count; i++)
		mem_free(chart->marks[i].name);
	MEM_FREE(chart->curves, chart->cells, chart->marks, chart->title, chart->subtitle);
	*chart = (struct chart){ 0 };
}

// Valid until the next curve is added.
struct chart_curve *chart_add_curve(struct chart *chart, const char *name)
{
	*MEM_ADD(chart->curves, chart->curves_count, chart->curves_capacity) =
		(struct chart_curve){ .name = mem_copy_text(name) };
	return &chart->curves[chart->curves_count - 1];
}

void chart_add_point(struct chart_curve *curve, double x, double y)
{
	*MEM_ADD(curve->points, curve->count, curve->capacity) = (struct chart_point){ x, y };
}

void chart_add_cell(struct chart *chart, const struct chart_cell *cell)
{
	*MEM_ADD(chart->cells, chart->cells_count, chart->cells_capacity) = *cell;
}

void chart_add_mark(struct chart *chart, double x, const char *name)
{
	*MEM_ADD(chart->marks, chart->marks_count, chart->marks_capacity) =
		(struct chart_mark){ x, mem_copy_text(name) };
}

// A name on one line of a comment: a line break in it would end the comment, and the rest would be
// read as data.
static void write_comment(struct sink *sink, const char *text)
{
	for (; *text; text++)
		sink_write(sink, (unsigned char)*text < ' ' ? "?" : text, 1);
}

// %.15g writes a double so that times in ns up to 11 days are exact.
void chart_write_data(const struct chart *chart, struct sink *sink)
{
	if (chart->cells_count > 0) {
		sink_text(sink, "# x-low x-high y-low y-high weight\n");
		for (size_t i = 0; i < chart->cells_count; i++) {
			const struct chart_cell *cell = &chart->cells[i];

			sink_format(sink, "%.15g %.15g %.15g %.15g %.15g\n", cell->x_low,
				    cell->x_high, cell->y_low, cell->y_high, cell->weight);
		}
		return;
	}
	for (size_t i = 0; i < chart->curves_count; i++) {
		const struct chart_curve *curve = &chart->curves[i];

		sink_text(sink, i > 0 ? "\n\n# " : "# ");
		write_comment(sink, curve->name);
		sink_text(sink, "\n");
		for (size_t k = 0; k < curve->count; k++) {
			const struct chart_point *point = &curve->points[k];

			if (chart->style == CHART_STEPS && k > 0 && point->y != point[-1].y)
				sink_format(sink, "%.15g %.15g\n", point->x, point[-1].y);
			sink_format(sink, "%.15g %.15g\n", point->x, point->y);
		}
	}
}
