// flamegraph: one SVG of the stacks of a window, the root at the bottom, as wide as their value. It
// is a picture for any viewer; in a browser a click zooms, and Ctrl-F or "search" marks functions
// (its script is in the file; nothing is loaded).
//
// Nodes are functions: lines and processes' addresses are merged, processes are the first level.
// Against another trace, the width is that of this one, and colours say what changed: red grew,
// blue shrank, by how much of the largest change. Processes are then programs: numbers differ.
//
// What is narrower than a quarter of a pixel is not drawn; a note says how many stacks that hides.
//
// Children lie side by side in the order of their names, so that two pictures of one program look
// alike. For example stacks main;f 30, main;g 10 and main 20 of 60 bytes, 1,180 pixels wide: main
// is 1,180, f 590 and g 196.7, and a third of main has nothing above it, which is what main
// allocated itself.
#include "base/str.h"
#include "export/export.h"
#include "export/locations.h"

#include "base/mem.h"
#include "trace/defs.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
	WIDTH = 1200,
	MARGIN = 10,
	ROW = 17,
	HEAD = 56, // above the flames
	FOOT = 28,
	LETTER_TENTHS = 66, // the width of a letter, in tenths of a pixel
};

struct node {
	uint32_t name;           // in `strings`
	uint32_t child, sibling; // 0: none; node 0 is the whole
	uint32_t depth;
	uint64_t value;  // of all stacks that pass
	uint64_t before; // the same of the other trace
};

struct flamegraph {
	const struct export_source *source;
	struct sink *sink;
	struct locations locations;
	struct locations before; // of the other trace
	struct node *nodes;
	size_t count, capacity;
	uint32_t depth_max;  // of those that are drawn
	size_t hidden;       // nodes too narrow to be drawn
	size_t shrunk_count; // stacks of a negative value
	uint64_t change_max; // of all nodes
	uint64_t gone;       // of the other trace, in functions that are not in this one
	uint32_t *numbers;   // of the present stack's locations, innermost first
	size_t numbers_capacity;
};

// The child of that name, new if there is none. Siblings are a list: a function calls few others,
// and a walk along them is cheaper than a table for each node.
static uint32_t child_of(struct flamegraph *flamegraph, uint32_t parent, uint32_t name)
{
	uint32_t *link = &flamegraph->nodes[parent].child, at = *link;

	ASSERT(parent < flamegraph->count);
	while (at && flamegraph->nodes[at].name != name)
		at = flamegraph->nodes[at].sibling;
	if (!at) {
		at = (uint32_t)flamegraph->count;
		MEM_ROOM(flamegraph->nodes, flamegraph->capacity, flamegraph->count + 1);
		flamegraph->nodes[flamegraph->count++] = (struct node){
			.name = name,
			.sibling = flamegraph->nodes[parent].child,
			.depth = flamegraph->nodes[parent].depth + 1,
		};
		// The newest child is the first: children are sorted by name when they are drawn.
		flamegraph->nodes[parent].child = at;
	}
	return at;
}

// Adds a value to the child of that name, of this trace or of the one that it is compared with; its
// number.
static uint32_t step(struct flamegraph *flamegraph, uint32_t parent, const char *name,
		     uint64_t value, bool before)
{
	uint32_t at = child_of(flamegraph, parent,
			       string_table_add(&flamegraph->locations.strings, name));

	ASSERT(parent < flamegraph->count);
	*(before ? &flamegraph->nodes[at].before : &flamegraph->nodes[at].value) += value;
	return at;
}

static uint32_t step_to_process(struct flamegraph *flamegraph, const struct sample *sample,
				uint64_t value, bool before)
{
	const struct export_source *source = flamegraph->source;
	const struct reader *reader = (before ? source->against_asked : source->asked)->reader;
	const struct trace_process *process = reader_process(reader, sample->process);
	struct str text = { 0 };
	uint32_t at;

	if (source->against)
		str_add(&text, process ? defs_program(process) : "(no process)");
	else
		export_add_process(reader, sample->process, &text);
	at = step(flamegraph, 0, str_get(&text), value, before);
	str_fini(&text);
	return at;
}

// Widths cannot be negative: stacks that shrank are counted and left out.
static void add_stack(struct flamegraph *flamegraph, const struct sample *sample, int64_t value,
		      bool before)
{
	struct locations *locations = before ? &flamegraph->before : &flamegraph->locations;
	size_t depth = locations_of_stack(locations, sample->stack, &flamegraph->numbers,
					  &flamegraph->numbers_capacity);
	uint32_t at;

	flamegraph->shrunk_count += value < 0;
	// A sum of 0 has no width either, though blocks came and went.
	if (value <= 0)
		return;
	*(before ? &flamegraph->nodes[0].before : &flamegraph->nodes[0].value) += (uint64_t)value;
	at = step_to_process(flamegraph, sample, (uint64_t)value, before);
	if (depth == 0)
		step(flamegraph, at, "(no stack)", (uint64_t)value, before);
	while (depth-- > 0) {
		const struct location *location = &locations->list[flamegraph->numbers[depth]];

		for (uint32_t i = location->lines_count; i-- > 0;) {
			uint32_t function = locations->lines[location->lines_first + i].function;
			uint32_t name = locations->functions[function].name;

			at = step(flamegraph, at, locations->strings.texts[name], (uint64_t)value,
				  before);
		}
	}
}

static uint64_t change_of(const struct node *node)
{
	return node->value > node->before ? node->value - node->before : node->before - node->value;
}

// What is only in the other trace has no width.
// Also finds the largest change, by which colours are scaled.
static void find_changes(struct flamegraph *flamegraph)
{
	ASSERT(flamegraph->count > 0);
	for (size_t i = 0; i < flamegraph->count; i++) {
		const struct node *node = &flamegraph->nodes[i];

		if (change_of(node) > flamegraph->change_max)
			flamegraph->change_max = change_of(node);
		// Only where the parent is drawn: what is below a function that is gone is in its
		// own value already.
		for (uint32_t at = node->value || i == 0 ? node->child : 0; at;
		     at = flamegraph->nodes[at].sibling)
			flamegraph->gone +=
				flamegraph->nodes[at].value ? 0 : flamegraph->nodes[at].before;
	}
}

// ---- drawing ----

// ASCII alone: other characters have unknown widths, so each is one '?'.
static void write_text(struct sink *sink, const char *text, size_t length)
{
	for (size_t i = 0; i < length && text[i]; i++) {
		unsigned char c = (unsigned char)text[i];

		if (sink_entity(sink, text[i]))
			continue;
		if (c < ' ' || c >= 0x7f)
			sink_text(sink, c < 0x80 || c >= 0xc0 ? "?" : "");
		else
			sink_write(sink, &c, 1);
	}
}

// The same name has the same colour in every picture.
static void write_colour(struct sink *sink, const char *name)
{
	uint64_t hash = index_set_hash_text(name);

	sink_format(sink, "rgb(%u,%u,%u)", 205 + (unsigned)(hash % 50),
		    (unsigned)(80 + hash / 50 % 140), (unsigned)(hash / 7000 % 55));
}

static void write_amount(const struct flamegraph *flamegraph, uint64_t value)
{
	if (*samples_unit(flamegraph->source->value) == 'b')
		sink_text(flamegraph->sink, STR_BYTES(value));
	else
		sink_text(flamegraph->sink, STR_COUNT(value));
}

static void write_change(const struct flamegraph *flamegraph, const struct node *node)
{
	if (change_of(node))
		sink_text(flamegraph->sink, node->value > node->before ? "+" : "-");
	write_amount(flamegraph, change_of(node));
}

// White where nothing changed.
static void write_change_colour(const struct flamegraph *flamegraph, const struct node *node)
{
	// The largest change is full colour (90 of 240), half of it halfway: 165.
	double part = flamegraph->change_max
			      ? (double)change_of(node) / (double)flamegraph->change_max
			      : 0;
	unsigned pale = 240 - (unsigned)(150 * part);

	ASSERT(change_of(node) <= flamegraph->change_max);
	if (node->value >= node->before)
		sink_format(flamegraph->sink, "rgb(240,%u,%u)", pale, pale);
	else
		sink_format(flamegraph->sink, "rgb(%u,%u,240)", pale, pale);
}

static double width_of(const struct flamegraph *flamegraph, uint64_t value)
{
	ASSERT(flamegraph->nodes[0].value > 0);
	return (double)value * (WIDTH - 2 * MARGIN) / (double)flamegraph->nodes[0].value;
}

// A rectangle and its name, as much of it as there is room for; the whole name is in the title,
// which a browser shows. x and width are written once more as data, which the script zooms by.
static void write_node(const struct flamegraph *flamegraph, const struct node *node, double x,
		       double y)
{
	struct sink *sink = flamegraph->sink;
	const char *name = flamegraph->locations.strings.texts[node->name];
	double width = width_of(flamegraph, node->value);
	// A letter of 11 px monospace is 6.6 wide: a rectangle of 100 pixels has room for 15.
	size_t letters = (size_t)(width * 10 / LETTER_TENTHS);

	ASSERT(node->name < flamegraph->locations.strings.count);
	sink_format(sink, "<g data-x=\"%.3f\" data-w=\"%.3f\"><title>", x, width);
	write_text(sink, name, SIZE_MAX);
	sink_text(sink, " (");
	write_amount(flamegraph, node->value);
	sink_format(sink, ", %.2f%%",
		    100.0 * (double)node->value / (double)flamegraph->nodes[0].value);
	if (flamegraph->source->against) {
		sink_text(sink, "; ");
		write_change(flamegraph, node);
	}
	sink_format(sink,
		    ")</title><rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\" "
		    "rx=\"2\" fill=\"",
		    x, y, width, ROW - 1);
	if (flamegraph->source->against)
		write_change_colour(flamegraph, node);
	else
		write_colour(sink, name);
	sink_format(sink, "\"/><text x=\"%.2f\" y=\"%.0f\">", x + 3, y + ROW - 5);
	// A name that does not fit loses its end and gets "..": three letters are the least that
	// says anything.
	if (letters >= 3)
		write_text(sink, name, letters >= strlen(name) ? letters : letters - 2);
	if (letters >= 3 && letters < strlen(name))
		sink_text(sink, "..");
	sink_text(sink, "</text></g>\n");
}

static int compare_names(const void *a, const void *b, void *context)
{
	const struct flamegraph *flamegraph = context;
	const struct node *nodes = flamegraph->nodes;
	char **texts = flamegraph->locations.strings.texts;

	return strcmp(texts[nodes[*(const uint32_t *)a].name],
		      texts[nodes[*(const uint32_t *)b].name]);
}

// A node to be drawn, and where.
struct place {
	uint32_t node;
	double x;
};

struct places {
	struct place *list;
	size_t count, capacity;
};

// Put the children of a node on the list, by name, side by side.
// Places are a stack: the last child is drawn first, which a picture does not show.
static void push_children(struct flamegraph *flamegraph, struct place parent, struct places *places)
{
	uint32_t *children = NULL;
	size_t count = 0, capacity = 0;
	double x = parent.x;

	for (uint32_t at = flamegraph->nodes[parent.node].child; at;
	     at = flamegraph->nodes[at].sibling) {
		*MEM_ADD(children, count, capacity) = at;
	}
	if (count)
		mem_sort(children, count, sizeof *children, compare_names, flamegraph);
	MEM_ROOM(places->list, places->capacity, places->count + count);
	for (size_t i = 0; i < count; i++) {
		places->list[places->count++] = (struct place){ children[i], x };
		x += width_of(flamegraph, flamegraph->nodes[children[i]].value);
	}
	mem_free(children);
}

// Each drawn node once. It is done twice: `draw` false only measures the depth, from which the
// height of the picture and each y follow.
static void walk(struct flamegraph *flamegraph, bool draw)
{
	struct places places = { 0 };

	flamegraph->hidden = 0;
	push_children(flamegraph, (struct place){ 0, MARGIN }, &places);
	while (places.count > 0) {
		struct place place = places.list[--places.count];
		const struct node *node = &flamegraph->nodes[place.node];

		// Its children are narrower still: the whole branch counts as one.
		if (width_of(flamegraph, node->value) < 0.25) {
			flamegraph->hidden += node->value > 0;
			continue;
		}
		if (node->depth > flamegraph->depth_max)
			flamegraph->depth_max = node->depth;
		if (draw)
			write_node(flamegraph, node, place.x,
				   HEAD + (double)(flamegraph->depth_max - node->depth) * ROW);
		push_children(flamegraph, place, &places);
	}
	mem_free(places.list);
}

static const char script[] =
	"var all=document.querySelectorAll('g[data-x]'),W=1180,M=10,L=6.6;\n"
	"function name(g){return g.querySelector('title').textContent}\n"
	"function fit(g,x,w){var r=g.querySelector('rect'),t=g.querySelector('text'),"
	"n=name(g).replace(/ \\([^(]*\\)$/,''),k=Math.floor(w/L);\n"
	"r.setAttribute('x',x);r.setAttribute('width',Math.max(w,0));t.setAttribute('x',x+3);\n"
	"t.textContent=k<3?'':k<n.length?n.slice(0,k-2)+'..':n;g.style.display=w<0.25?'none':''}\n"
	"function zoom(z){var x0=z?+z.dataset.x:M,w0=z?+z.dataset.w:W,e=1e-6;\n"
	"all.forEach(function(g){var x=+g.dataset.x,w=+g.dataset.w;\n"
	"if(x<=x0+e&&x+w>=x0+w0-e)fit(g,M,W);else if(x>=x0-e&&x+w<=x0+w0+e)"
	"fit(g,M+(x-x0)*W/w0,w*W/w0);else g.style.display='none'});\n"
	"document.getElementById('reset').style.display=z?'':'none'}\n"
	"function find(){var q=prompt('Regular expression to search for','');if(q===null)return;"
	"var r,sum=0,end=-1;try{r=new RegExp(q)}catch(e){alert(e.message);return}\n"
	"var hits=[];all.forEach(function(g){var hit=q&&r.test(name(g));"
	"g.classList.toggle('hit',!!hit);if(hit)hits.push([+g.dataset.x,+g.dataset.w])});\n"
	"hits.sort(function(a,b){return a[0]-b[0]||b[1]-a[1]});hits.forEach(function(h){"
	"if(h[0]>=end-1e-6){sum+=h[1];end=h[0]+h[1]}});\n"
	"document.getElementById('found').textContent="
	"q?'matched: '+(100*sum/W).toFixed(2)+'%':''}\n"
	"all.forEach(function(g){g.addEventListener('click',function(){zoom(g)})});\n"
	"document.getElementById('reset').addEventListener('click',function(){zoom(null)});\n"
	"document.getElementById('search').addEventListener('click',find);\n"
	"window.addEventListener('keydown',function(e){if(e.key==='f'&&(e.ctrlKey||e.metaKey)){"
	"e.preventDefault();find()}});\n";

static void write_against(const struct flamegraph *flamegraph)
{
	struct sink *sink = flamegraph->sink;

	sink_text(sink, "; ");
	write_change(flamegraph, &flamegraph->nodes[0]);
	sink_text(sink, " against ");
	write_text(sink, str_last_part(flamegraph->source->against_asked->options.path), 60);
	sink_text(sink, "; red grew, blue shrank");
	if (!flamegraph->gone)
		return;
	sink_text(sink, "; not drawn, since it is only there: ");
	write_amount(flamegraph, flamegraph->gone);
}

static void write_head(struct flamegraph *flamegraph, unsigned height)
{
	struct sink *sink = flamegraph->sink;
	const struct query_context *asked = flamegraph->source->asked;
	char *window = query_context_describe(asked);

	sink_format(sink,
		    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		    "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" "
		    "viewBox=\"0 0 %d %u\">\n"
		    "<style>text{font:11px monospace;pointer-events:none}"
		    ".b{cursor:pointer;pointer-events:auto;fill:#555}"
		    "g[data-x]{cursor:pointer}g.hit rect{fill:rgb(230,0,230)}</style>\n"
		    "<rect width=\"100%%\" height=\"100%%\" fill=\"#fdf6ec\"/>\n"
		    "<text x=\"%d\" y=\"20\" style=\"font-size:15px\">",
		    WIDTH, height, WIDTH, height, MARGIN);
	write_text(sink, reader_info(asked->reader)->command, 90);
	sink_format(sink, "</text>\n<text x=\"%d\" y=\"38\" fill=\"#555\">%s: ", MARGIN,
		    samples_values[flamegraph->source->value]);
	write_amount(flamegraph, flamegraph->nodes[0].value);
	sink_text(sink, "; ");
	write_text(sink, window, SIZE_MAX);
	if (flamegraph->source->against)
		write_against(flamegraph);
	sink_format(sink,
		    "</text>\n<text class=\"b\" id=\"reset\" x=\"%d\" y=\"20\" "
		    "style=\"display:none\">reset zoom</text>\n"
		    "<text class=\"b\" id=\"search\" x=\"%d\" y=\"20\">search</text>\n"
		    "<text id=\"found\" x=\"%d\" y=\"38\"></text>\n",
		    WIDTH - 200, WIDTH - 90, WIDTH - 200);
	mem_free(window);
}

static void write_picture(struct flamegraph *flamegraph)
{
	unsigned height;

	// An empty window has no width to divide by: only the head and a sentence are written.
	if (flamegraph->nodes[0].value > 0)
		walk(flamegraph, false);
	height = HEAD + (flamegraph->depth_max + 1) * ROW + FOOT;
	write_head(flamegraph, height);
	if (flamegraph->nodes[0].value > 0)
		walk(flamegraph, true);
	sink_format(flamegraph->sink, "<text x=\"%d\" y=\"%u\" fill=\"#555\">", MARGIN,
		    height - 10);
	if (flamegraph->nodes[0].value == 0)
		sink_text(flamegraph->sink, "nothing was allocated here");
	else if (flamegraph->hidden)
		sink_format(flamegraph->sink, "%zu function%s too narrow to be drawn",
			    flamegraph->hidden, flamegraph->hidden == 1 ? " is" : "s are");
	sink_format(flamegraph->sink, "</text>\n<script><![CDATA[\n%s]]></script>\n</svg>\n",
		    script);
}

static void add_samples(struct flamegraph *flamegraph, const struct samples *samples, bool before)
{
	int64_t value;

	for (size_t first = 0, i = 0;
	     samples_next_stack(samples, &i, flamegraph->source->value, &value); first = i)
		add_stack(flamegraph, &samples->list[first], value, before);
}

static void say_limits(const struct flamegraph *flamegraph)
{
	if (flamegraph->hidden)
		export_say(flamegraph->source,
			   "%zu function%s narrower than a quarter of a pixel, and not drawn",
			   flamegraph->hidden, flamegraph->hidden == 1 ? " is" : "s are");
	if (flamegraph->shrunk_count)
		export_say(flamegraph->source,
			   "%zu stacks that shrank are left out: a flame graph "
			   "has no negative widths",
			   flamegraph->shrunk_count);
	if (flamegraph->gone)
		export_say(flamegraph->source,
			   "%" PRIu64 " %s of what it is compared with are of functions that are "
			   "not in this trace, and not drawn (the other way round they are)",
			   flamegraph->gone,
			   *samples_unit(flamegraph->source->value) == 'b' ? "bytes" : "blocks");
}

static bool write(const struct export_source *source, struct sink *sink, struct err *)
{
	const struct query_context *against = source->against_asked;
	struct flamegraph flamegraph = {
		.source = source,
		.sink = sink,
		.locations = { .reader = source->asked->reader, .names = source->asked->names },
	};

	flamegraph.nodes = mem_grow(NULL, &flamegraph.capacity, flamegraph.count + 1,
				    sizeof *flamegraph.nodes);
	flamegraph.nodes[flamegraph.count++] = (struct node){ 0 };
	add_samples(&flamegraph, source->samples, false);
	if (against) {
		flamegraph.before =
			(struct locations){ .reader = against->reader, .names = against->names };
		add_samples(&flamegraph, source->against, true);
		find_changes(&flamegraph);
	}
	write_picture(&flamegraph);
	say_limits(&flamegraph);
	locations_fini(&flamegraph.locations);
	locations_fini(&flamegraph.before);
	MEM_FREE(flamegraph.nodes, flamegraph.numbers);
	return true;
}

const struct export_format flamegraph_format = {
	.name = "flamegraph",
	.brief = "one SVG, with search and zoom",
	.has_samples = true,
	.single_value = true,
	.compares = true,
	.write = write,
};
