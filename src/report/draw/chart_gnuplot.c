// Writes a chart as a script for gnuplot, which draws it in any of its formats. The data are in a
// file beside it (chart_write_data), in base units; the script divides them by the axis's scale. So
// both can be kept, changed and drawn again. For example a curve up to 300 MiB over 90 s:
//
//     set yrange [0:318]                  scale 1048576, unit MiB, 6 % of room above
//     set ylabel 'live (MiB)'
//     plot data index 0 using ($1/1000000000):($2/1048576) …
//
// Names come from the trace and may hold anything: they are quoted (quote), and gnuplot is told not
// to look for markup in texts (noenhanced).
#include "report/draw/chart.h"

#include "base/mem.h"
#include "base/str.h"

#include <string.h>
#include <strings.h>

enum {
	NAME_CHARS_MAX = 60,
	KEY_COLUMNS_MAX = 4,
	KEY_CHAR_PIXELS = 9,
	KEY_SAMPLE_PIXELS = 70,
	LINES_MAX = 400,   // marks that get a line
	LABELS_APART = 60, // of the width: one part, at least, between two labels
	LINES_APART = 600, // the same of lines
	PIXELS_AN_INCH = 100,
};

// How an axis is divided and what its unit is called then.
struct scale {
	double by;
	const char *unit;
};

static const char *const colours[] = { "#0072b2", "#d55e00", "#009e73", "#cc79a7",
				       "#e69f00", "#56b4e9", "#5d3a9b", "#000000" };

enum { COLOURS_COUNT = sizeof colours / sizeof *colours };

// From 2 KiB on in KiB, from 2 MiB on in MiB; times in seconds up to ten minutes.
static struct scale scale_of(enum chart_unit unit, double most)
{
	static const struct scale bytes[] = { { 1, "bytes" },
					      { 1024., "KiB" },
					      { 1048576., "MiB" },
					      { 1073741824., "GiB" },
					      { 1099511627776., "TiB" } };
	static const struct scale speeds[] = { { 1, "bytes/s" },
					       { 1024., "KiB/s" },
					       { 1048576., "MiB/s" },
					       { 1073741824., "GiB/s" },
					       { 1099511627776., "TiB/s" } };
	static const struct scale times[] = {
		{ 1, "ns" }, { 1e3, "µs" }, { 1e6, "ms" }, { 1e9, "s" }, { 60e9, "min" }
	};
	static const struct scale counts[] = { { 1, "" } };
	const struct scale *list = unit == CHART_BYTES         ? bytes
				   : unit == CHART_BYTES_PER_S ? speeds
				   : unit == CHART_TIME        ? times
							       : counts;
	size_t count = unit == CHART_COUNT ? 1 : 5;
	size_t at = 0;

	ASSERT(unit <= CHART_TIME);
	// At least two of the larger unit, so that the tics are few and short; minutes from ten on.
	while (at + 1 < count && most >= (unit == CHART_TIME && at == 3 ? 10 : 2) * list[at + 1].by)
		at++;
	return list[at];
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

// At least 0, so that an axis of nothing begins there.
static double highest(const struct chart *chart, bool of_y)
{
	const struct chart_axis *axis = of_y ? &chart->y : &chart->x;
	double most = axis->high > axis->low ? axis->high : 0;

	for (size_t i = 0; i < chart->curves_count; i++)
		for (size_t k = 0; k < chart->curves[i].count; k++)
			most = larger(most, of_y ? chart->curves[i].points[k].y
						 : chart->curves[i].points[k].x);
	for (size_t i = 0; i < chart->cells_count; i++)
		most = larger(most, of_y ? chart->cells[i].y_high : chart->cells[i].x_high);
	return most;
}

// ---- text ----

// A text in single quotes, in which only the quote itself means anything. Two of those stand for
// one, but not where two follow each other: so each is a string of its own.
// `chars_max`: characters of UTF-8, not bytes.
static void quote(struct sink *sink, const char *text, size_t chars_max)
{
	size_t chars = 0;

	sink_text(sink, "'");
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if ((c & 0xc0) != 0x80 && chars++ == chars_max) {
			sink_text(sink, "…");
			break;
		}
		if (c == '\'')
			sink_text(sink, "'.\"'\".'");
		else
			sink_write(sink, c < ' ' || c == 0x7f ? " " : text, 1);
	}
	sink_text(sink, "'");
}

bool chart_can_draw(const char *path)
{
	const char *word = str_ending(path);

	return strcasecmp(word, "svg") == 0 || strcasecmp(word, "png") == 0 ||
	       strcasecmp(word, "pdf") == 0;
}

// ---- the script, from top to bottom ----

// The script can be run elsewhere: `data` and `picture` are names that gnuplot may be given, as in
// gnuplot -e "picture='b.svg'".
static void write_terminal(const struct chart_output *output, struct sink *sink)
{
	const char *word = str_ending(output->path);

	sink_text(sink, "set encoding utf8\n");
	if (strcasecmp(word, "pdf") == 0)
		sink_format(sink,
			    "set terminal pdfcairo noenhanced size %gin,%gin font 'sans,9' "
			    "linewidth 1 background '#ffffff'\n",
			    output->width / (double)PIXELS_AN_INCH,
			    output->height / (double)PIXELS_AN_INCH);
	else if (strcasecmp(word, "png") == 0)
		sink_format(sink,
			    "set terminal pngcairo noenhanced size %u,%u font 'sans,11' "
			    "background '#ffffff'\n",
			    output->width, output->height);
	else
		sink_format(sink,
			    "set terminal svg noenhanced size %u,%u font 'sans-serif,13' "
			    "background '#ffffff'\n",
			    output->width, output->height);
	sink_text(sink, "if (!exists('data')) data = ");
	quote(sink, output->data, SIZE_MAX);
	sink_text(sink, "\nif (!exists('picture')) picture = ");
	quote(sink, output->path, SIZE_MAX);
	sink_text(sink, "\nset output picture\n\n");
}

// The names of the curves, in as many columns as there is room for, below the picture.
static void write_key(const struct chart *chart, unsigned width, struct sink *sink)
{
	size_t longest = 1, columns, rows;

	for (size_t i = 0; i < chart->curves_count; i++) {
		size_t length = strlen(chart->curves[i].name);

		longest = length > longest ? length : longest;
	}
	if (longest > NAME_CHARS_MAX)
		longest = NAME_CHARS_MAX;
	columns = width / (longest * KEY_CHAR_PIXELS + KEY_SAMPLE_PIXELS);
	columns = columns < 1 ? 1 : columns > KEY_COLUMNS_MAX ? KEY_COLUMNS_MAX : columns;
	rows = (chart->curves_count + columns - 1) / columns;
	sink_format(sink,
		    "set key below left Left reverse horizontal maxcols %zu samplen 2.4 "
		    "spacing 1.2 width 1 textcolor '#404040'\nset bmargin %.1f\n",
		    columns, 4.2 + 1.25 * (double)rows);
}

// Title and subtitle are labels, since gnuplot would centre a title, and they shall begin at the
// left edge of the graph. They take the numbers 1 and 2; names of marks have none and get the next.
static void write_frame(const struct chart *chart, unsigned width, struct sink *sink)
{
	sink_text(sink, "set border 3 linecolor '#808080' linewidth 1\n"
			"set tics nomirror out textcolor '#404040' scale 0.6\n"
			"set grid xtics ytics linecolor '#e4e4e4' linewidth 0.8 linetype 1\n"
			"set lmargin 11\nset rmargin 3\n");
	if (chart->title) {
		sink_text(sink, "set label 1 ");
		quote(sink, chart->title, 110);
		sink_format(sink,
			    " at graph 0, graph 1 offset 0,%s font ',14' textcolor "
			    "'#202020'\nset tmargin %s\n",
			    chart->subtitle ? "2.6" : "1.2", chart->subtitle ? "4.6" : "3");
	}
	if (chart->subtitle) {
		sink_text(sink, "set label 2 ");
		quote(sink, chart->subtitle, 150);
		sink_text(sink, " at graph 0, graph 1 offset 0,1.1 textcolor '#707070'\n");
	}
	if (chart->curves_count > 1)
		write_key(chart, width, sink);
	else
		sink_text(sink, "unset key\n");
}

struct tic {
	const char *text;
	double at;
};

static const struct tic time_tics[] = { { "1 ns", 1 },      { "10 ns", 1e1 },  { "100 ns", 1e2 },
					{ "1 µs", 1e3 },    { "10 µs", 1e4 },  { "100 µs", 1e5 },
					{ "1 ms", 1e6 },    { "10 ms", 1e7 },  { "100 ms", 1e8 },
					{ "1 s", 1e9 },     { "10 s", 1e10 },  { "1 min", 6e10 },
					{ "10 min", 6e11 }, { "1 h", 3.6e12 }, { "1 d", 8.64e13 } };

static const struct tic count_tics[] = { { "1", 1 },     { "10", 10 },     { "100", 100 },
					 { "1 k", 1e3 }, { "10 k", 1e4 },  { "100 k", 1e5 },
					 { "1 M", 1e6 }, { "10 M", 1e7 },  { "100 M", 1e8 },
					 { "1 G", 1e9 }, { "10 G", 1e10 }, { "100 G", 1e11 } };

// Only those in [low, high]: the row apart has a name of its own there.
static void write_tics(char axis, const struct tic *tics, size_t count, double low, double high,
		       struct sink *sink)
{
	const char *between = "";

	sink_format(sink, "set %ctics (", axis);
	for (size_t i = 0; i < count; i++) {
		if (tics[i].at < low || tics[i].at > high)
			continue;
		sink_format(sink, "%s'%s' %.15g", between, tics[i].text, tics[i].at);
		between = ", ";
	}
	sink_text(sink, ")\n");
}

// Powers of 4 from 1 byte to 1 PiB: 1, 4, 16, 64, 256, 1K, 4K. A size of 0 is at 0.5, since a
// logarithm has no place for it.
static void write_size_tics(char axis, struct sink *sink)
{
	static const char *const names[] = { "", "K", "M", "G", "T", "P" };

	sink_format(sink, "set %ctics ('0' 0.5", axis);
	for (unsigned power = 0; power <= 50; power += 2)
		sink_format(sink, ", '%u%s' %.15g", 1u << power % 10, names[power / 10],
			    (double)(UINT64_C(1) << power));
	sink_text(sink, ")\n");
}

// A row apart (write_row_apart) is below `below` or above `above`: tics there would say what it is
// not.
static void write_log_tics(const struct chart *chart, char name, const struct chart_axis *axis,
			   struct sink *sink)
{
	double low = name == 'y' && chart->below > 0 ? chart->below : 0;
	double high = name == 'y' && chart->above > 0 ? chart->above : 1e300;

	if (axis->unit == CHART_TIME)
		write_tics(name, time_tics, sizeof time_tics / sizeof *time_tics, low, high, sink);
	else if (axis->unit == CHART_COUNT)
		write_tics(name, count_tics, sizeof count_tics / sizeof *count_tics, low, high,
			   sink);
	else
		write_size_tics(name, sink);
}

// `scale` is what the axis is divided by, which marks and curves must be too. A logarithmic axis is
// not divided: its tics have names with units ("4K", "10 ms").
static void write_axis(const struct chart *chart, char name, struct scale *scale, struct sink *sink)
{
	const struct chart_axis *axis = name == 'x' ? &chart->x : &chart->y;
	double most = highest(chart, name == 'y');

	ASSERT(name == 'x' || name == 'y');
	*scale = axis->log ? (struct scale){ 1, "" } : scale_of(axis->unit, most);
	if (axis->log) {
		sink_format(sink, "set logscale %c %d\n", name, axis->unit == CHART_BYTES ? 2 : 10);
		write_log_tics(chart, name, axis, sink);
	} else if (axis->unit == CHART_COUNT) {
		sink_format(sink, "set format %c '%%.0s%%c'\n", name);
	}
	if (axis->high > axis->low)
		sink_format(sink, "set %crange [%.15g:%.15g]\n", name, axis->low / scale->by,
			    axis->high / scale->by);
	else if (!axis->log)
		// Room for the highest point, and for names above it; an axis that nothing rises
		// from still has a height.
		sink_format(sink, "set %crange [0:%.15g]\n", name,
			    most > 0 ? most * (chart->marks_count > 0 ? 1.32 : 1.06) / scale->by
				     : 1.);
	sink_format(sink, "set %clabel ", name);
	if (axis->log && axis->unit == CHART_BYTES)
		sink_format(sink, "'%s (bytes; K, M, G: 1024 times)'", axis->label);
	else if (*scale->unit)
		sink_format(sink, "'%s (%s)'", axis->label, scale->unit);
	else
		sink_format(sink, "'%s'", axis->label);
	sink_text(sink, " textcolor '#404040'\n");
}

// Lines at all marks that can be told apart, and names where there is room for them.
static void write_marks(const struct chart *chart, double scale, struct sink *sink)
{
	double width = chart->x.high - chart->x.low;
	double line_x = -1e300, label_x = -1e300;
	size_t lines = 0;

	ASSERT(scale > 0);
	for (size_t i = 0; i < chart->marks_count && lines < LINES_MAX; i++) {
		const struct chart_mark *mark = &chart->marks[i];
		double x = mark->x / scale;

		if (mark->x < line_x + width / LINES_APART)
			continue;
		lines++;
		line_x = mark->x;
		sink_format(sink,
			    "set arrow from first %.15g, graph 0 to first %.15g, graph 1 nohead "
			    "back linecolor '#909090' dashtype 3 linewidth 1\n",
			    x, x);
		if (mark->x < label_x + width / LABELS_APART)
			continue;
		label_x = mark->x;
		sink_text(sink, "set label ");
		quote(sink, mark->name, NAME_CHARS_MAX);
		sink_format(sink,
			    " at first %.15g, graph 0.985 right rotate by 90 offset "
			    "character 0.8,0 font ',9' textcolor '#707070' front\n",
			    x);
	}
}

// Eight colours, then the same with another dash. A curve alone is drawn twice where it is of
// steps: the area below it, then its line. The curve of all others is grey and dashed, whatever its
// place is.
static void write_curves(const struct chart *chart, struct scale x, struct scale y,
			 struct sink *sink)
{
	bool filled = chart->curves_count == 1 && chart->style == CHART_STEPS && !chart->y.log;

	sink_text(sink, "plot ");
	for (size_t i = 0; i < chart->curves_count; i++) {
		bool rest = chart->curves[i].rest;
		const char *colour = rest ? "#808080" : colours[i % COLOURS_COUNT];

		if (i > 0)
			sink_text(sink, ", \\\n     ");
		if (filled)
			sink_format(sink,
				    "data index 0 using ($1/%.15g):($2/%.15g) with filledcurves "
				    "y1=0 fillstyle solid 0.18 noborder linecolor '%s' notitle, "
				    "\\\n     ",
				    x.by, y.by, colour);
		sink_format(sink,
			    "data index %zu using ($1/%.15g):($2/%.15g) with lines linecolor '%s' "
			    "linewidth %s dashtype %zu title ",
			    i, x.by, y.by, colour, filled ? "1.5" : "1.8",
			    rest ? 2 : i / COLOURS_COUNT + 1);
		quote(sink, chart->curves[i].name, NAME_CHARS_MAX);
	}
	sink_text(sink, "\n");
}

static void write_bars(struct sink *sink)
{
	sink_format(sink,
		    "set style fill solid 0.75 noborder\n"
		    "plot data using (($1+$2)/2):(($3+$4)/2):1:2:3:4 with boxxyerror "
		    "linecolor '%s' notitle\n",
		    colours[0]);
}

// A line at `border`, and the name of what lies beyond it, around `at`.
static void write_row_apart(double border, double at, const char *label, struct sink *sink)
{
	if (border <= 0)
		return;
	sink_format(sink, "set ytics add ('%s' %.15g)\n", label, at);
	sink_format(sink,
		    "set arrow from graph 0, first %.15g to graph 1, first %.15g nohead "
		    "linecolor '#808080' linewidth 1\n",
		    border, border);
}

// The cells of the row apart reach from 1.14 to 2.27 times its border (plot_sizes.c), and on the
// logarithmic axis its name is beside them at 1.8 times; of the row below, by division.
static void write_cells(const struct chart *chart, struct sink *sink)
{
	sink_text(sink, "set palette defined (0 '#00224e', 0.2 '#35456c', 0.4 '#666970', "
			"0.6 '#948e77', 0.8 '#c8b866', 1 '#fee838')\n"
			"set logscale cb 10\nset format cb '%.0s%c'\nset colorbox\n"
			"set rmargin 15\nset style fill solid 1 noborder\n"
			"set grid xtics ytics front linecolor '#ffffff' linewidth 0.3\n");
	sink_format(sink, "set cblabel '%s' offset 1.2,0 textcolor '#404040'\n", chart->weight);
	write_row_apart(chart->above, chart->above * 1.8, chart->above_label, sink);
	write_row_apart(chart->below, chart->below / 1.8, chart->below_label, sink);
	sink_text(sink, "plot data using (($1+$2)/2):(($3+$4)/2):1:2:3:4:5 with boxxyerror "
			"fillcolor palette notitle\n");
}

void chart_write_script(const struct chart *chart, const struct chart_output *output,
			struct sink *sink)
{
	struct scale x, y;

	sink_text(sink, "# Made by tidemark plot; gnuplot draws it. The data are beside it.\n");
	write_terminal(output, sink);
	write_frame(chart, output->width, sink);
	write_axis(chart, 'x', &x, sink);
	write_axis(chart, 'y', &y, sink);
	write_marks(chart, x.by, sink);
	sink_text(sink, "\n");
	if (chart->style == CHART_BARS)
		write_bars(sink);
	else if (chart->cells_count > 0)
		write_cells(chart, sink);
	else
		write_curves(chart, x, y, sink);
	sink_text(sink, "set output\n");
}
