// massif: a file of Valgrind's Massif, for ms_print and massif-visualizer: the level over the
// window in a hundred parts, and at its peak who had allocated what, from the allocating function
// outwards.
//
//     snapshot=12
//     #-----------
//     time=240                  milliseconds since the window began
//     mem_heap_B=1600           requested bytes that live
//     mem_heap_extra_B=0
//     mem_stacks_B=0
//     heap_tree=peak            (of others: empty)
//     n2: 1600 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
//      n0: 1000 0x401136: make (a.c:3)
//      n0: 600 in 3 places, all below massif's threshold (1.00%)
//
// n is the number of lines below, one space further in.
#include "export/stack_levels.h"

#include "base/mem.h"

#include <inttypes.h>

enum { PARTS = 100, THRESHOLD = 100, NS_PER_MS = 1000000 };

struct node {
	uint64_t bytes;
	uint32_t parent, site;   // what it is called: `lines` of locations; or PROCESS | number
	uint32_t child, sibling; // 0: none; node 0 is the whole
};

#define PROCESS 0x80000000u
#define WITHOUT UINT32_MAX

struct massif {
	struct stack_levels levels;
	struct sink *sink;
	struct locations locations;
	struct node *nodes;
	size_t count, capacity;
	struct index_set known; // nodes by parent and site
	uint32_t *numbers;      // of the present stack's locations, innermost first
	size_t numbers_capacity;
};

static bool is_node(const void *context, uint32_t position, const void *key)
{
	const struct massif *massif = context;
	const struct node *there = &massif->nodes[position], *wanted = key;

	ASSERT(position < massif->count);
	return there->parent == wanted->parent && there->site == wanted->site;
}

// The child of a node that is called so, new if there is none.
static uint32_t step(struct massif *massif, uint32_t parent, uint32_t site, uint64_t bytes)
{
	struct node fresh = { .parent = parent, .site = site };
	const uint64_t numbers[] = { parent, site };
	uint32_t found = index_set_put(&massif->known, index_set_hash(numbers, 2), is_node, massif,
				       &fresh, (uint32_t)massif->count);

	ASSERT(parent < massif->count);
	// The parent is looked up again: MEM_ROOM may have moved the list.
	if (found == massif->count) {
		fresh.sibling = massif->nodes[parent].child;
		MEM_ROOM(massif->nodes, massif->capacity, massif->count + 1);
		massif->nodes[parent].child = found;
		massif->nodes[massif->count++] = fresh;
	}
	massif->nodes[found].bytes += bytes;
	return found;
}

// The function that is so far out in a stack, from the innermost, inlined ones each by itself; of
// several processes each is the outermost. False: the stack ends before.
static bool site_at(struct massif *massif, const struct stack_level *level, uint32_t round,
		    uint32_t *site)
{
	struct locations *locations = &massif->locations;
	size_t depth = locations_of_stack(locations, level->stack, &massif->numbers,
					  &massif->numbers_capacity);

	for (size_t i = 0; i < depth; i++) {
		const struct location *location = &locations->list[massif->numbers[i]];

		if (round < location->lines_count) {
			*site = location->lines_first + round;
			return true;
		}
		round -= location->lines_count;
	}
	if (depth == 0 && round-- == 0) {
		*site = WITHOUT;
		return true;
	}
	*site = PROCESS | level->process;
	return massif->levels.processes > 1 && round == 0;
}

static bool is_small(const struct massif *massif, uint32_t node)
{
	return massif->nodes[node].bytes * THRESHOLD < massif->nodes[0].bytes;
}

// Massif's tree begins at the allocating function and goes out. It grows by one function of all
// stacks in a round, and not below what is too small for a line of its own: of 700,000 stacks
// that leaves out nearly all.
static void make_tree(struct massif *massif)
{
	const struct stack_levels *levels = &massif->levels;
	uint32_t *at = mem_alloc(levels->count + 1, sizeof *at), site;
	bool grows = true;

	massif->nodes = mem_grow(NULL, &massif->capacity, 1, sizeof *massif->nodes);
	massif->nodes[massif->count++] = (struct node){ 0 };
	for (size_t i = 0; i < levels->count; i++)
		massif->nodes[0].bytes += levels->list[i].at_peak.bytes;
	for (uint32_t round = 0; grows; round++) {
		grows = false;
		for (size_t i = 0; i < levels->count; i++) {
			const struct stack_level *level = &levels->list[i];

			if (at[i] == WITHOUT || !level->at_peak.bytes)
				continue;
			if (is_small(massif, at[i]) || !site_at(massif, level, round, &site)) {
				at[i] = WITHOUT; // it grows no more
				continue;
			}
			at[i] = step(massif, at[i], site, level->at_peak.bytes);
			grows = true;
		}
	}
	mem_free(at);
}

// ---- the tree as lines ----

// A node to be written; or a line for `places` nodes that are too small for one of their own.
struct line {
	uint32_t node, depth;
	uint64_t bytes;
	uint32_t places;
};

struct lines {
	struct line *list;
	size_t count, capacity;
};

static void push(struct lines *lines, struct line line)
{
	*MEM_ADD(lines->list, lines->count, lines->capacity) = line;
}

// The smallest first: lines are taken from the end.
static int compare_lines(const void *a, const void *b, void *)
{
	const struct line *left = a, *right = b;

	if (left->bytes != right->bytes)
		return left->bytes < right->bytes ? -1 : 1;
	return left->node > right->node ? -1 : left->node < right->node;
}

// What stands below a line. Returns how many lines.
// What has less than a hundredth of the whole shares one line.
static size_t push_children(const struct massif *massif, struct line of, struct lines *lines)
{
	size_t first = lines->count;
	// For example of 1,600 bytes a line of 1,000 stays, and 10, 5 and 3 share "18 in 3 places":
	// each is below 16.
	struct line small = { .depth = of.depth + 1 };

	for (uint32_t at = of.places ? 0 : massif->nodes[of.node].child; at;
	     at = massif->nodes[at].sibling) {
		uint64_t bytes = massif->nodes[at].bytes;

		if (!is_small(massif, at)) {
			push(lines, (struct line){ at, of.depth + 1, bytes, 0 });
			continue;
		}
		small.bytes += bytes;
		small.places++;
	}
	if (small.places)
		push(lines, small);
	if (lines->count > first)
		mem_sort(lines->list + first, lines->count - first, sizeof *lines->list,
			 compare_lines, NULL);
	return lines->count - first;
}

// The last location that begins at or before a line: the one that has it.
static const struct location *location_of(const struct locations *locations, uint32_t site)
{
	size_t low = 0, high = locations->count;

	ASSERT(locations->count > 0 && site < locations->lines_count);
	while (high - low > 1) {
		size_t middle = (low + high) / 2;

		if (locations->list[middle].lines_first <= site)
			low = middle;
		else
			high = middle;
	}
	return &locations->list[low];
}

// A site is the number of a line of a location, or with PROCESS set a process, whose "function"
// comes outermost where there are several. What is no code has the address 0x0.
static void describe(const struct massif *massif, struct line line, struct str *text)
{
	uint32_t site = massif->nodes[line.node].site;

	if (line.places) {
		str_format(text, "in %" PRIu32 " place%s below massif's threshold (%.2f%%)",
			   line.places, line.places == 1 ? "," : "s, all", 100.0 / THRESHOLD);
	} else if (line.node == 0) {
		str_add(text, "(heap allocation functions) malloc/new/new[], --alloc-fns, etc.");
	} else if (site == WITHOUT) {
		str_add(text, "0x0: (no stack)");
	} else if (site & PROCESS) {
		str_add(text, "0x0: ");
		export_add_process(massif->locations.reader, site & ~PROCESS, text);
	} else {
		const struct location *location = location_of(&massif->locations, site);

		stack_levels_frame(&massif->locations, location, site - location->lines_first,
				   text);
	}
}

// Depth first, from a list of lines to come; a line says how many follow one level below it, so
// they are put on the list before it is written.
static void write_tree(const struct massif *massif)
{
	struct lines lines = { 0 };
	struct str text = { 0 };

	push(&lines, (struct line){ .bytes = massif->nodes[0].bytes });
	while (lines.count > 0) {
		// Children come out in the order of their bytes, the largest first: the list ends
		// with it.
		struct line line = lines.list[--lines.count];
		size_t children = push_children(massif, line, &lines);

		str_clear(&text);
		describe(massif, line, &text);
		sink_format(massif->sink, "%*sn%zu: %" PRIu64 " %s\n", (int)line.depth, "",
			    children, line.bytes, str_get(&text));
	}
	str_fini(&text);
	mem_free(lines.list);
}

// ---- snapshots ----

static void write_snapshot(const struct massif *massif, uint32_t *number, uint64_t time_ns,
			   uint64_t bytes, bool peak)
{
	static const char rule[] = "#-----------\n";

	sink_format(massif->sink,
		    "%ssnapshot=%" PRIu32 "\n%stime=%" PRIu64 "\nmem_heap_B=%" PRIu64
		    "\nmem_heap_extra_B=0\nmem_stacks_B=0\nheap_tree=%s\n",
		    rule, (*number)++, rule, (time_ns - massif->levels.from_ns) / NS_PER_MS, bytes,
		    peak ? "peak" : "empty");
	if (peak)
		write_tree(massif);
}

// The peak has a snapshot of its own between two of the hundred parts, in its place by time.
static void write_all(const struct massif *massif)
{
	const struct stack_levels *levels = &massif->levels;
	const struct trace_info *info = reader_info(levels->source->asked->reader);
	uint32_t number = 0;
	bool peaked = false;

	sink_format(massif->sink, "desc: %s\ncmd: ", info->tool);
	export_write_line(massif->sink, info->command);
	sink_text(massif->sink, "\ntime_unit: ms\n");
	// The first snapshot is what lived when the window began; then one at the end of each of
	// its 100 parts, and the peak: 102 in all.
	write_snapshot(massif, &number, levels->from_ns, levels->before.bytes, false);
	for (uint32_t i = 0; i < levels->row_count; i++) {
		uint64_t time_ns = stack_levels_row_ns(levels, i);

		if (!peaked && levels->peak_ns <= time_ns)
			write_snapshot(massif, &number, levels->peak_ns, levels->peak.bytes, true);
		peaked |= levels->peak_ns <= time_ns;
		write_snapshot(massif, &number, time_ns, levels->row[i].bytes, false);
	}
}

static bool write(const struct export_source *source, struct sink *sink, struct err *err)
{
	struct heap_amount row[PARTS] = { 0 };
	struct massif massif = {
		.levels = { .source = source, .row = row, .row_count = PARTS },
		.sink = sink,
		.locations = { .reader = source->asked->reader,
			       .names = source->asked->names,
			       .process = export_process(source) },
	};
	bool good;

	good = stack_levels_read(&massif.levels, err);
	make_tree(&massif);
	write_all(&massif);
	stack_levels_say(&massif.levels, "a file of Massif");
	locations_fini(&massif.locations);
	stack_levels_fini(&massif.levels);
	index_set_fini(&massif.known);
	MEM_FREE(massif.nodes, massif.numbers);
	return good;
}

const struct export_format massif_format = {
	.name = "massif",
	.brief = "for ms_print and massif-visualizer: the level over time, and who was at the peak",
	.is_text = true,
	.write = write,
};
