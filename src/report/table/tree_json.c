// Trees of stacks for programs: docs/schema/window-tree.json describes it. Its rows.
#include "report/table/tree.h"

#include "base/json.h"
#include "base/mem.h"
#include "report/table/lines.h"
#include "report/table/query_write.h"

enum { COUNT, SIZE, IMPACTING, ALLOCATED, FREED, FIGURES };

static void set_figures(const struct window_row *sums, int64_t figures[FIGURES])
{
	figures[COUNT] = (int64_t)window_present(sums).count;
	figures[SIZE] = (int64_t)window_present(sums).bytes;
	figures[IMPACTING] = window_impact(sums);
	figures[ALLOCATED] = (int64_t)window_allocated(sums).bytes;
	figures[FREED] = (int64_t)window_freed(sums).bytes;
}

static void write_figures(struct json *json, const struct window_row *sums)
{
	static const char *const names[FIGURES] = { "count", "size", "impacting_size", "allocated",
						    "freed" };
	int64_t figures[FIGURES];

	set_figures(sums, figures);
	for (int i = 0; i < FIGURES; i++) {
		json_kv_i64(json, names[i], figures[i]);
	}
}

// Nodes are numbered in the order in which they are written: parents before children.
struct numbering {
	uint64_t next;
	uint64_t *open; // of the nodes above the present one, by depth; the whole has none
	size_t capacity;
};

enum { SIDE_WORDS = 3 };
static const char *const sides[SIDE_WORDS] = { "", "callers", "callees" };

// Gives the node's number; *parent: its parent's, or UINT64_MAX.
// `open` has a number for each depth on the way to the present node. Nodes come in the order of a
// walk, so the parent of one at depth 3 is the last that came at depth 2. For example a (1), b (2),
// c (3), d (2) get 0, 1, 2, 3 and the parents none, 0, 1, 0.
static uint64_t number(struct numbering *numbering, const struct tree_node *node, uint64_t *parent)
{
	MEM_ROOM(numbering->open, numbering->capacity, node->depth + (size_t)1);
	*parent = node->depth > 1 ? numbering->open[node->depth - 1] : UINT64_MAX;
	numbering->open[node->depth] = numbering->next;
	return numbering->next++;
}

// ---- rows ----

// A row of the sheet.
struct line {
	const struct tree_node *node;
	uint64_t id, parent; // UINT64_MAX: it has none
	int64_t whole[FIGURES], self[FIGURES];
};

enum part { PARENT, SIDE, FUNCTION, SOURCE, LINE, MODULE, OFFSET };

// A line is given only where all calls of the node are of one; an offset only where there is no
// name.
static struct sheet_cell get_part(const struct sheet_at *at)
{
	const struct line *line = at->row;
	const struct tree_node *node = line->node;
	const struct symbol *symbol = node->symbol;
	bool lined = symbol && !node->lines_differ && symbol->line > 0;

	switch ((enum part)at->column->at) {
	case PARENT:
		return sheet_u64(line->parent != UINT64_MAX, line->parent);
	case SIDE:
		return sheet_text(sides[node->side]);
	case FUNCTION:
		return sheet_text(symbol ? symbol->function : NULL);
	case SOURCE:
		return sheet_text(symbol ? symbol->file : NULL);
	case LINE:
		return sheet_u64(lined, lined ? symbol->line : 0);
	case MODULE:
		return sheet_text(symbol ? symbol->module : NULL);
	default:
		return sheet_u64(symbol && !symbol->function, symbol ? symbol->offset : 0);
	}
}

static void write_self(const struct sheet_at *at)
{
	const struct line *line = at->row;
	struct json *json = at->sheet->json;

	json_key(json, at->column->name);
	lines_json_begin(json);
	write_figures(json, &line->node->self);
	lines_json_end(json);
}

#define FIELD(member) SHEET_FIELD(struct line, member)
#define OFFSET_COLUMN(kind, flags)                                                  \
	{                                                                           \
		"offset", kind, flags, get_part, OFFSET, .meaning = "where in that" \
	}
// An offset is hexadecimal in flat forms, "0x1f40", and a number in JSON, so it is listed twice.
static const struct sheet_column columns[] = {
	{ "id", SHEET_NUMBER, 0, FIELD(id), .meaning = "the node" },
	{ "parent", SHEET_NUMBER, 0, get_part, PARENT, .meaning = "the node above it" },
	{ "side", SHEET_TEXT, 0, get_part, SIDE, .meaning = "of a butterfly: callers or callees" },
	{ "function", SHEET_TEXT, 0, get_part, FUNCTION, .meaning = "its name" },
	{ "file", SHEET_TEXT, 0, get_part, SOURCE, .meaning = "its source" },
	{ "line", SHEET_NUMBER, SHEET_ZERO, get_part, LINE,
	  .meaning = "the line, where it is one" },
	{ "module", SHEET_TEXT, 0, get_part, MODULE, .meaning = "the file that has its code" },
	OFFSET_COLUMN(SHEET_HEX, SHEET_FLAT_ONLY | SHEET_ZERO),
	OFFSET_COLUMN(SHEET_NUMBER, SHEET_JSON_ONLY),
	{ "count", SHEET_COUNT, 0, FIELD(whole[COUNT]),
	  .meaning = "allocations that lived in the window" },
	{ "size", SHEET_BYTES, 0, FIELD(whole[SIZE]), .meaning = "their bytes" },
	{ "impacting_size", SHEET_BYTES, SHEET_CHANGE, FIELD(whole[IMPACTING]),
	  .meaning = "what it grew by" },
	{ "allocated", SHEET_BYTES, SHEET_JSON_ONLY, FIELD(whole[ALLOCATED]),
	  .meaning = "bytes begun in it" },
	{ "freed", SHEET_BYTES, SHEET_JSON_ONLY, FIELD(whole[FREED]),
	  .meaning = "bytes freed in it" },
	{ "self_count", SHEET_COUNT, SHEET_FLAT_ONLY, FIELD(self[COUNT]),
	  .meaning = "its own allocations" },
	{ "self_size", SHEET_BYTES, SHEET_FLAT_ONLY, FIELD(self[SIZE]), .meaning = "their bytes" },
	{ "self_impacting_size", SHEET_BYTES, SHEET_FLAT_ONLY | SHEET_CHANGE,
	  FIELD(self[IMPACTING]), .meaning = "what they grew by" },
	{ "self", SHEET_OBJECT, SHEET_JSON_ONLY, .json = write_self,
	  .meaning = "its own allocations" },
};

struct walk {
	struct sheet *sheet;
	struct numbering numbering;
};

// The whole is no row; what is left out below it counts.
static void add_node(void *context, const struct tree_node *node, const struct window_row *)
{
	struct walk *walk = context;
	struct line line = { .node = node };

	walk->sheet->left_out += node->children_count - node->shown_count;
	if (node->depth == 0)
		return;
	line.id = number(&walk->numbering, node, &line.parent);
	set_figures(&node->row, line.whole);
	set_figures(&node->self, line.self);
	sheet_row(walk->sheet, &line);
}

void tree_rows(struct tree *tree, struct sheet *sheet)
{
	struct walk walk = { .sheet = sheet };

	sheet_begin(sheet, columns, sizeof columns / sizeof *columns);
	tree_walk(tree, add_node, &walk);
	sheet_end(sheet);
	mem_free(walk.numbering.open);
}

// What tree_limit has left out and what the walk does not show are one sum.
void tree_json(struct tree *tree, struct sink *sink)
{
	const struct query_context *asked = tree->table->asked;
	struct sheet rows;
	struct json json;

	json_begin(&json, sink, true, "tidemark-window-tree-1");
	json_kv_string(&json, "tree", tree_word(tree->kind));
	json_kv_u64(&json, "from_ns", asked->from_ns);
	json_kv_u64(&json, "to_ns", asked->to_ns);
	json_kv_bool(&json, "complete", reader_complete(asked->reader));
	json_kv_bool(&json, "sampled", reader_is_estimated(asked->reader));
	json_kv_bool(&json, "exit_frees", asked->options.exit_frees);
	json_kv_array(&json, "nodes");
	rows = sheet_in_json(&json);
	tree_rows(tree, &rows);
	json_array_end(&json);
	json_kv_u64(&json, "nodes_left_out", tree->left_out + rows.left_out);
	json_kv_object(&json, "total");
	write_figures(&json, &tree->table->rows[0].sums);
	json_object_end(&json);
	query_write_end(asked, &json);
}
