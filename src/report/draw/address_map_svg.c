// The address space as a picture: SVG 1.1, no script, no font of its own, nothing from elsewhere.
//
// A slot is a cell. What is mapped fills it in its owner's colour, from below, as far as it is
// mapped (and at least half of it); what is only reserved is pale; the unusable rest of a slot is
// hatched grey. The largest free block has a ground of its own.
//
// For example 32 bits in slots of 64 KiB: 65,536 cells in 256 rows of 256, 4 pixels each, so a
// picture of 1,024 by 1,024 and its margins; a row is 16 MiB. Cells alike in a row are one
// rectangle, since a file of 65,536 rectangles is slow to show.
#include "report/draw/address_map.h"

#include "base/mem.h"

#include <inttypes.h>
#include <string.h>

enum {
	CELL = 4,
	ROW_CELLS_WIDE = 256, // 32 bits: 256 rows of 16 MiB
	LABEL = 120,          // columns of addresses
	MARGIN = 20,
	LINE = 18,
	CURVE_HEIGHT = 120,
	COMMAND_MAX = 140, // bytes of it that are shown
};

#define LARGEST_COLOUR "#dcebc8"

// `y` is where the next thing is drawn. The body is written first, and its height is known then.
struct picture {
	const struct address_map *address_map;
	struct sink *sink;
	unsigned y;
	uint64_t row; // address of the row in the making
};

// Control characters are left out: XML has none.
static void write_text(struct picture *picture, unsigned x, const char *style, const char *text)
{
	sink_format(picture->sink, "<text x=\"%u\" y=\"%u\" class=\"%s\">", x, picture->y, style);
	for (; *text; text++) {
		if (!sink_entity(picture->sink, *text) && (unsigned char)*text >= 0x20 &&
		    *text != 0x7f)
			sink_write(picture->sink, text, 1);
	}
	sink_text(picture->sink, "</text>\n");
}

static bool same(struct address_map_cell a, struct address_map_cell b)
{
	return a.owner == b.owner && a.fill == b.fill && a.reserved == b.reserved;
}

// Cells alike, side by side in a row, as one rectangle. A cell is CELL pixels high: the mapped part
// from below, the hatched rest of the slot above it. What is free is not drawn: the ground of the
// row shows.
static void write_run(struct picture *picture, unsigned column, unsigned count,
		      struct address_map_cell cell)
{
	unsigned x = LABEL + column * CELL;
	unsigned height = ((unsigned)cell.fill * CELL + 254) / 255;

	if (cell.owner == ADDRESS_MAP_FREE || count == 0)
		return;
	if (height < CELL / 2) // a page in a large hole is what matters: it must be seen
		height = CELL / 2;
	if (height < CELL)
		sink_format(picture->sink,
			    "<rect x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" "
			    "fill=\"url(#waste)\"/>\n",
			    x, picture->y, count * CELL, CELL - height);
	sink_format(picture->sink,
		    "<rect x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" fill=\"%s\"%s/>\n", x,
		    picture->y + CELL - height, count * CELL, height,
		    address_map_colour(cell.owner), cell.reserved ? " fill-opacity=\"0.35\"" : "");
}

// What is free, below all else; of the largest free block as such.
static void write_ground(struct picture *picture, uint64_t start, uint64_t end, const char *colour)
{
	const struct address_map *address_map = picture->address_map;
	unsigned column = (unsigned)((start - picture->row) / address_map->granularity);
	unsigned count =
		(unsigned)((end - start + address_map->granularity - 1) / address_map->granularity);

	ASSERT(start >= picture->row && start <= end);
	sink_format(picture->sink,
		    "<rect x=\"%u\" y=\"%u\" width=\"%u\" height=\"%d\" fill=\"%s\"/>\n",
		    LABEL + column * CELL, picture->y, count * CELL, CELL, colour);
}

// The row's own ground, the part of the largest hole in it, then the runs of cells.
static void write_row(struct picture *picture, uint64_t start, uint64_t end)
{
	const struct address_map *address_map = picture->address_map;
	unsigned count = (unsigned)((end - start) / address_map->granularity);
	uint64_t low = address_map->holes.largest_at, high = low + address_map->holes.largest;
	struct address_map_cell run = { .owner = ADDRESS_MAP_FREE };
	unsigned began = 0;

	ASSERT(start <= end && address_map->granularity > 0);
	picture->row = start;
	write_ground(picture, start, end, address_map_colour(ADDRESS_MAP_FREE));
	if (low < end && high > start)
		write_ground(picture, low > start ? low : start, high < end ? high : end,
			     LARGEST_COLOUR);
	for (unsigned i = 0; i < count; i++) {
		struct address_map_cell cell =
			address_map_cell(address_map, start + i * address_map->granularity);

		if (same(cell, run))
			continue;
		write_run(picture, began, i - began, run);
		run = cell;
		began = i;
	}
	write_run(picture, began, count - began, run);
	picture->y += CELL;
}

// Rows of cells; an address stands at the first of each 16. What was left out before it is a line
// of text. In the picture an address is higher than a row of 4 pixels: it is put 9 pixels below the
// top of its row and reaches over the rows that follow, which have none.
static void write_segment(struct picture *picture, const struct address_map_segment *segment)
{
	const struct address_map *address_map = picture->address_map;
	uint64_t step = ROW_CELLS_WIDE * address_map->granularity;
	unsigned rows = 0;
	char text[96];

	if (segment->skipped) {
		snprintf(text, sizeof text, "… %s %s%s", STR_BYTES(segment->skipped),
			 segment->skipped_owner == ADDRESS_MAP_FREE
				 ? "free"
				 : space_owner_word((enum space_owner)segment->skipped_owner),
			 segment->skipped_reserved ? ", reserved" : "");
		picture->y += LINE - CELL;
		write_text(picture, LABEL, "dim", text);
		picture->y += CELL;
	}
	for (uint64_t at = segment->start; at < segment->end; at += step, rows++) {
		uint64_t end = segment->end - at < step ? segment->end : at + step;

		if (rows % 16 == 0) {
			snprintf(text, sizeof text, "%0*" PRIx64,
				 address_map->high <= UINT64_C(1) << 32 ? 8 : 12, at);
			picture->y += 9;
			write_text(picture, MARGIN, "address", text);
			picture->y -= 9;
		}
		write_row(picture, at, end);
	}
	// An address needs more room than a row.
	if (rows && rows % 16 < 3)
		picture->y += (3 - rows % 16) * CELL;
}

// Only owners that have something. Five of them are on a line, 220 pixels each. The last line is of
// what is no owner: free, the unusable rest of slots, reserved, the largest hole.
static void write_legend(struct picture *picture)
{
	const struct address_map *address_map = picture->address_map;
	unsigned column = 0;
	char text[64];

	for (uint8_t owner = 0; owner < SPACE_OWNERS_COUNT; owner++) {
		if (!address_map->owners[owner])
			continue;
		if (column == 5) {
			column = 0;
			picture->y += LINE;
		}
		snprintf(text, sizeof text, "%s  %s", space_owner_word((enum space_owner)owner),
			 STR_BYTES(address_map->owners[owner]));
		sink_format(picture->sink,
			    "<rect x=\"%u\" y=\"%u\" width=\"12\" height=\"12\" fill=\"%s\"/>\n",
			    MARGIN + column * 220, picture->y - 10, address_map_colour(owner));
		write_text(picture, MARGIN + 18 + column * 220, "", text);
		column++;
	}
	picture->y += LINE;
	sink_format(picture->sink,
		    "<rect x=\"%d\" y=\"%u\" width=\"12\" height=\"12\" fill=\"%s\" "
		    "stroke=\"#bbb\"/>\n<rect x=\"%d\" y=\"%u\" width=\"12\" height=\"12\" "
		    "fill=\"url(#waste)\"/>\n<rect x=\"%d\" y=\"%u\" width=\"12\" height=\"12\" "
		    "fill=\"%s\" fill-opacity=\"0.35\"/>\n<rect x=\"%d\" y=\"%u\" width=\"12\" "
		    "height=\"12\" fill=\"%s\" stroke=\"#bbb\"/>\n",
		    MARGIN, picture->y - 10, address_map_colour(ADDRESS_MAP_FREE), MARGIN + 220,
		    picture->y - 10, MARGIN + 440, picture->y - 10,
		    address_map_colour(SPACE_PROGRAM), MARGIN + 660, picture->y - 10,
		    LARGEST_COLOUR);
	write_text(picture, MARGIN + 18, "", "free");
	snprintf(text, sizeof text, "rest of a slot  %s", STR_BYTES(address_map->unusable));
	write_text(picture, MARGIN + 238, "", text);
	write_text(picture, MARGIN + 458, "", "pale: reserved, not committed");
	snprintf(text, sizeof text, "the largest free block  %s",
		 STR_BYTES(address_map->holes.largest));
	write_text(picture, MARGIN + 678, "", text);
	picture->y += LINE;
}

// What is drawn over time. Of 128 TiB nearly all is free at any time, and says nothing.
struct curves {
	const char *title;
	const char *blue_name, *red_name;
	size_t blue, red; // offsets in a point
};

static const struct curves free_curves = {
	.title = "Free memory over time",
	.blue_name = "— all of it",
	.red_name = "— the largest free block",
	.blue = offsetof(struct address_map_point, free_min),
	.red = offsetof(struct address_map_point, largest_min),
};

static const struct curves used_curves = {
	.title = "Memory over time",
	.blue_name = "— mapped",
	.red_name = "— committed",
	.blue = offsetof(struct address_map_point, reserved_max),
	.red = offsetof(struct address_map_point, committed_max),
};

static uint64_t value_of(const struct address_map *address_map, unsigned point, size_t at)
{
	ASSERT(point < ADDRESS_MAP_POINTS);
	return *(const uint64_t *)((const char *)&address_map->points[point] + at);
}

// One line over time, scaled to `high`; `at` is the offset of the figure in a point. Each stretch
// of time has two points, so that it is drawn as a level.
static void write_line(struct picture *picture, uint64_t high, size_t at, const char *style)
{
	const struct address_map *address_map = picture->address_map;
	unsigned width = ROW_CELLS_WIDE * CELL;

	ASSERT(at < sizeof *address_map->points);
	sink_format(picture->sink, "<polyline %s points=\"", style);
	for (unsigned i = 0; i < ADDRESS_MAP_POINTS; i++) {
		const uint64_t *value =
			(const uint64_t *)((const char *)&address_map->points[i] + at);
		double height = high ? (double)*value / (double)high * CURVE_HEIGHT : 0;
		double y = (double)(picture->y + CURVE_HEIGHT) - height;

		sink_format(picture->sink, "%u,%.1f %u,%.1f ",
			    LABEL + i * width / ADDRESS_MAP_POINTS, y,
			    LABEL + (i + 1) * width / ADDRESS_MAP_POINTS, y);
	}
	sink_text(picture->sink, "\"/>\n");
}

// Where on the curves the map was taken; at the end nothing is drawn.
static void write_moment(struct picture *picture)
{
	const struct address_map *address_map = picture->address_map;
	double x;

	if (!address_map->points_end_ns || address_map->asked->at_exit)
		return;
	x = LABEL + (double)(ROW_CELLS_WIDE * CELL) * (double)address_map->asked->edge.time_ns /
			    (double)address_map->points_end_ns;
	sink_format(picture->sink,
		    "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%u\" y2=\"%u\" stroke=\"#000\" "
		    "stroke-dasharray=\"3 3\"/>\n",
		    x, x, picture->y, picture->y + CURVE_HEIGHT);
}

// Of a space of 32 bits what is free is drawn, since that runs out; of a larger one what is used.
// The blue curve's highest value is the height of both. The red one is a part of it and never
// above.
static void write_curves(struct picture *picture)
{
	const struct address_map *address_map = picture->address_map;
	const struct curves *curves = address_map->high - address_map->low <= UINT64_C(1) << 32
					      ? &free_curves
					      : &used_curves;
	unsigned width = ROW_CELLS_WIDE * CELL;
	uint64_t high = 0;
	char text[160];

	for (unsigned i = 0; i < ADDRESS_MAP_POINTS; i++)
		if (value_of(address_map, i, curves->blue) > high)
			high = value_of(address_map, i, curves->blue);
	picture->y += LINE;
	write_text(picture, LABEL, "bold", curves->title);
	write_text(picture, LABEL + 190, "blue", curves->blue_name);
	write_text(picture, LABEL + 280, "red", curves->red_name);
	picture->y += LINE / 2;
	sink_format(picture->sink,
		    "<rect x=\"%d\" y=\"%u\" width=\"%u\" height=\"%d\" fill=\"#fafafa\" "
		    "stroke=\"#bbb\"/>\n",
		    LABEL, picture->y, width, CURVE_HEIGHT);
	write_line(picture, high, curves->blue,
		   "fill=\"none\" stroke=\"#0072b2\" stroke-width=\"1.5\"");
	write_line(picture, high, curves->red,
		   "fill=\"none\" stroke=\"#d55e00\" stroke-width=\"2\"");
	write_moment(picture);
	picture->y += 10;
	write_text(picture, MARGIN, "address", STR_BYTES(high));
	picture->y += CURVE_HEIGHT - 10;
	write_text(picture, MARGIN, "address", "0");
	picture->y += LINE;
	snprintf(text, sizeof text, "0 to %s; now %s free, the largest block %s",
		 STR_DURATION(address_map->points_end_ns), STR_BYTES(address_map->holes.bytes),
		 STR_BYTES(address_map->holes.largest));
	write_text(picture, LABEL, "dim", text);
	picture->y += LINE;
}

// As much of a command as there is room for; whole characters.
static const char *shorten(const char *command, char out[static COMMAND_MAX + 8])
{
	size_t length = strnlen(command, COMMAND_MAX + 1);

	if (length <= COMMAND_MAX)
		return command;
	for (length = COMMAND_MAX; length > 0 && ((unsigned char)command[length] & 0xc0) == 0x80;)
		length--;
	snprintf(out, COMMAND_MAX + 8, "%.*s…", (int)length, command);
	return out;
}

// The body is written first, into a text, as the picture's height is in front of it and not known
// before.
void address_map_write_svg(const struct address_map *address_map, struct sink *sink)
{
	struct str body = { 0 };
	struct sink body_sink = sink_to_str(&body);
	struct picture picture = { .address_map = address_map, .sink = &body_sink, .y = MARGIN };
	const struct trace_info *info = reader_info(address_map->asked->reader);
	unsigned width = LABEL + ROW_CELLS_WIDE * CELL + MARGIN;
	struct str moment = { 0 };
	char text[64], command[COMMAND_MAX + 8];

	write_text(&picture, MARGIN, "bold", shorten(info->command, command));
	picture.y += LINE;
	moment_view_describe(address_map->asked, &moment);
	snprintf(text, sizeof text, ", process %" PRIu32 "; a cell is %s",
		 reader_process(address_map->asked->reader, address_map->process)->pid,
		 STR_BYTES(address_map->granularity));
	str_add(&moment, text);
	write_text(&picture, MARGIN, "dim", str_get(&moment));
	picture.y += LINE + 6;
	write_legend(&picture);
	for (size_t i = 0; i < address_map->segments_count; i++)
		write_segment(&picture, &address_map->segments[i]);
	write_curves(&picture);
	sink_format(sink,
		    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
		    "viewBox=\"0 0 %u %u\">\n"
		    "<style>text{font:12px sans-serif;fill:#222}.bold{font-weight:bold}"
		    ".dim{fill:#777}.address{font:10px monospace;fill:#777}"
		    ".blue{fill:#0072b2}.red{fill:#d55e00}</style>\n"
		    "<defs><pattern id=\"waste\" width=\"4\" height=\"4\" "
		    "patternUnits=\"userSpaceOnUse\"><rect width=\"4\" height=\"4\" "
		    "fill=\"#d0d0d0\"/><path d=\"M0 4L4 0\" stroke=\"#8a8a8a\"/></pattern></defs>\n"
		    "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
		    width, picture.y, width, picture.y);
	sink_write(sink, str_get(&body), body.length);
	sink_text(sink, "</svg>\n");
	STR_FINI(&moment, &body);
}
