// flamegraph: one SVG of the stacks of a window, the root at the bottom, as wide as their value. It
// is a picture for any viewer; in a browser a click zooms, and Ctrl-F or "search" marks functions
// (its script is in the file; nothing is loaded).
//
// Nodes are functions: lines and processes' addresses are merged, processes are the first level.
// What is narrower than a quarter of a pixel is not drawn; a note says how many stacks that hides.
#include "export/export.h"
#include "export/locations.h"

#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
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
	uint64_t value; // of all stacks that pass
};

struct flamegraph {
	const struct export_source *source;
	struct sink *sink;
	struct locations locations;
	struct node *nodes;
	size_t count, capacity;
	uint32_t depth_max;  // of those that are drawn
	size_t hidden;       // nodes too narrow to be drawn
	size_t shrunk_count; // stacks of a negative value
	uint32_t *numbers;   // of the present stack's locations, innermost first
	size_t numbers_capacity;
};

// The child of that name, new if there is none.
static uint32_t step(struct flamegraph *flamegraph, uint32_t parent, uint32_t name, uint64_t value)
{
	uint32_t *link = &flamegraph->nodes[parent].child, at = *link;

	while (at && flamegraph->nodes[at].name != name)
		at = flamegraph->nodes[at].sibling;
	if (!at) {
		at = (uint32_t)flamegraph->count;
		flamegraph->nodes = mem_grow(flamegraph->nodes, &flamegraph->capacity,
					     flamegraph->count + 1, sizeof *flamegraph->nodes);
		flamegraph->nodes[flamegraph->count++] = (struct node){
			.name = name,
			.sibling = flamegraph->nodes[parent].child,
			.depth = flamegraph->nodes[parent].depth + 1,
		};
		flamegraph->nodes[parent].child = at;
	}
	flamegraph->nodes[at].value += value;
	return at;
}

static uint32_t name_of_process(struct flamegraph *flamegraph, process_id process)
{
	struct str text = { 0 };
	uint32_t number;

	export_add_process(flamegraph->source->asked->reader, process, &text);
	number = string_table_add(&flamegraph->locations.strings, str_get(&text));
	str_fini(&text);
	return number;
}

static void add_stack(struct flamegraph *flamegraph, const struct sample *sample, int64_t value)
{
	struct locations *locations = &flamegraph->locations;
	size_t depth = locations_of_stack(locations, sample->stack, &flamegraph->numbers,
					  &flamegraph->numbers_capacity);
	uint32_t at;

	flamegraph->shrunk_count += value < 0;
	if (value <= 0)
		return;
	flamegraph->nodes[0].value += (uint64_t)value;
	at = step(flamegraph, 0, name_of_process(flamegraph, sample->process), (uint64_t)value);
	if (depth == 0)
		step(flamegraph, at, string_table_add(&locations->strings, "(no stack)"),
		     (uint64_t)value);
	while (depth-- > 0) {
		const struct location *location = &locations->list[flamegraph->numbers[depth]];

		for (uint32_t i = location->lines_count; i-- > 0;) {
			uint32_t function = locations->lines[location->lines_first + i].function;

			at = step(flamegraph, at, locations->functions[function].name,
				  (uint64_t)value);
		}
	}
}

// ---- drawing ----

static void write_text(struct sink *sink, const char *text, size_t length)
{
	for (size_t i = 0; i < length && text[i]; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '<')
			sink_text(sink, "&lt;");
		else if (c == '>')
			sink_text(sink, "&gt;");
		else if (c == '&')
			sink_text(sink, "&amp;");
		else if (c == '"')
			sink_text(sink, "&quot;");
		else if (c < ' ' || c >= 0x7f)
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
	char text[28];

	if (*samples_unit(flamegraph->source->value) == 'b')
		sink_text(flamegraph->sink, str_bytes(value, text));
	else
		sink_text(flamegraph->sink, str_count(value, text));
}

static double width_of(const struct flamegraph *flamegraph, uint64_t value)
{
	return (double)value * (WIDTH - 2 * MARGIN) / (double)flamegraph->nodes[0].value;
}

static bool is_drawn(const struct flamegraph *flamegraph, const struct node *node)
{
	return width_of(flamegraph, node->value) >= 0.25;
}

static void write_node(const struct flamegraph *flamegraph, const struct node *node, double x,
		       double y)
{
	struct sink *sink = flamegraph->sink;
	const char *name = flamegraph->locations.strings.texts[node->name];
	double width = width_of(flamegraph, node->value);
	size_t letters = (size_t)(width * 10 / LETTER_TENTHS);

	sink_format(sink, "<g data-x=\"%.3f\" data-w=\"%.3f\"><title>", x, width);
	write_text(sink, name, SIZE_MAX);
	sink_text(sink, " (");
	write_amount(flamegraph, node->value);
	sink_format(sink,
		    ", %.2f%%)</title><rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\" "
		    "rx=\"2\" fill=\"",
		    100.0 * (double)node->value / (double)flamegraph->nodes[0].value, x, y, width,
		    ROW - 1);
	write_colour(sink, name);
	sink_format(sink, "\"/><text x=\"%.2f\" y=\"%.0f\">", x + 3, y + ROW - 5);
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
static void push_children(struct flamegraph *flamegraph, struct place parent, struct places *places)
{
	uint32_t *children = NULL;
	size_t count = 0, capacity = 0;
	double x = parent.x;

	for (uint32_t at = flamegraph->nodes[parent.node].child; at;
	     at = flamegraph->nodes[at].sibling) {
		children = mem_grow(children, &capacity, count + 1, sizeof *children);
		children[count++] = at;
	}
	if (count)
		mem_sort(children, count, sizeof *children, compare_names, flamegraph);
	places->list = mem_grow(places->list, &places->capacity, places->count + count,
				sizeof *places->list);
	for (size_t i = 0; i < count; i++) {
		places->list[places->count++] = (struct place){ children[i], x };
		x += width_of(flamegraph, flamegraph->nodes[children[i]].value);
	}
	mem_free(children);
}

// Each drawn node once: `draw` false only measures.
static void walk(struct flamegraph *flamegraph, bool draw)
{
	struct places places = { 0 };

	flamegraph->hidden = 0;
	push_children(flamegraph, (struct place){ 0, MARGIN }, &places);
	while (places.count > 0) {
		struct place place = places.list[--places.count];
		const struct node *node = &flamegraph->nodes[place.node];

		if (!is_drawn(flamegraph, node)) {
			flamegraph->hidden++;
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
		sink_format(flamegraph->sink, "%zu functions are too narrow to be drawn",
			    flamegraph->hidden);
	sink_format(flamegraph->sink, "</text>\n<script><![CDATA[\n%s]]></script>\n</svg>\n",
		    script);
}

static bool write(const struct export_source *source, struct sink *sink, struct err *err)
{
	struct flamegraph flamegraph = {
		.source = source,
		.sink = sink,
		.locations = { .reader = source->asked->reader, .names = source->asked->names },
	};
	int64_t value;

	(void)err;
	flamegraph.nodes = mem_grow(NULL, &flamegraph.capacity, flamegraph.count + 1,
				    sizeof *flamegraph.nodes);
	flamegraph.nodes[flamegraph.count++] = (struct node){ 0 };
	for (size_t first = 0, i = 0;
	     samples_next_stack(source->samples, &i, source->value, &value); first = i)
		add_stack(&flamegraph, &source->samples->list[first], value);
	write_picture(&flamegraph);
	if (flamegraph.hidden)
		export_say(source,
			   "%zu functions are narrower than a quarter of a pixel, and not drawn",
			   flamegraph.hidden);
	if (flamegraph.shrunk_count)
		export_say(source,
			   "%zu stacks that shrank are left out: a flame graph "
			   "has no negative widths",
			   flamegraph.shrunk_count);
	locations_fini(&flamegraph.locations);
	mem_free(flamegraph.nodes);
	mem_free(flamegraph.numbers);
	return true;
}

const struct export_format flamegraph_format = {
	.name = "flamegraph",
	.brief = "one SVG, with search and zoom",
	.has_samples = true,
	.single_value = true,
	.write = write,
};
