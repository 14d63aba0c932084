// Trees of stacks for programs: docs/schema/window-tree.json describes it. And as one table.
#include "report/tree.h"

#include "base/json.h"
#include "base/mem.h"
#include "report/lines.h"

#include <inttypes.h>

static void write_figures(struct json *json, const struct window_row *sums)
{
	json_kv_u64(json, "count", window_present(sums).count);
	json_kv_u64(json, "size", window_present(sums).bytes);
	json_key(json, "impacting_size");
	json_i64(json, window_impact(sums));
	json_kv_u64(json, "allocated", window_allocated(sums).bytes);
	json_kv_u64(json, "freed", window_freed(sums).bytes);
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
static uint64_t number(struct numbering *numbering, const struct tree_node *node, uint64_t *parent)
{
	numbering->open = mem_grow(numbering->open, &numbering->capacity, node->depth + (size_t)1,
				   sizeof *numbering->open);
	*parent = node->depth > 1 ? numbering->open[node->depth - 1] : UINT64_MAX;
	numbering->open[node->depth] = numbering->next;
	return numbering->next++;
}

struct list {
	struct json *json;
	struct numbering numbering;
	uint64_t left_out;
};

static void write_node(void *context, const struct tree_node *node, const struct window_row *rest)
{
	struct list *list = context;
	struct json *json = list->json;
	const struct symbol *symbol = node->symbol;
	uint64_t id, parent;

	(void)rest;
	list->left_out += node->children_count - node->shown_count;
	if (node->depth == 0)
		return;
	id = number(&list->numbering, node, &parent);
	json_object_begin(json);
	json_kv_u64(json, "id", id);
	json_kv_u64_if(json, "parent", parent != UINT64_MAX, parent);
	json_kv_string(json, "side", node->side != TREE_WHOLE ? sides[node->side] : NULL);
	json_kv_text(json, "function", symbol ? symbol->function : NULL);
	json_kv_text(json, "file", symbol ? symbol->file : NULL);
	json_kv_u64_if(json, "line", symbol && !node->lines_differ && symbol->line > 0,
		       symbol ? symbol->line : 0);
	json_kv_text(json, "module", symbol ? symbol->module : NULL);
	json_kv_u64_if(json, "offset", symbol && !symbol->function, symbol ? symbol->offset : 0);
	write_figures(json, &node->row);
	json_key(json, "self");
	lines_json_begin(json);
	write_figures(json, &node->self);
	lines_json_end(json);
	json_object_end(json);
}

static void write(struct tree *tree, struct sink *sink)
{
	const struct query_context *asked = tree->table->asked;
	struct json json;
	struct list list = { .json = &json };

	json_init(&json, sink, true);
	json_object_begin(&json);
	json_kv_string(&json, "schema", "tidemark-window-tree-1");
	json_kv_string(&json, "tree", tree_word(tree->kind));
	json_kv_u64(&json, "from_ns", asked->from_ns);
	json_kv_u64(&json, "to_ns", asked->to_ns);
	json_kv_bool(&json, "complete", reader_complete(asked->reader));
	json_kv_bool(&json, "sampled", reader_info(asked->reader)->sample_bytes > 0);
	json_kv_bool(&json, "exit_frees", asked->options.exit_frees);
	json_key(&json, "nodes");
	json_array_begin(&json);
	tree_walk(tree, write_node, &list);
	mem_free(list.numbering.open);
	json_array_end(&json);
	json_kv_u64(&json, "nodes_left_out", tree->left_out + list.left_out);
	json_key(&json, "total");
	json_object_begin(&json);
	write_figures(&json, &tree->table->rows[0].sums);
	json_object_end(&json);
	json_object_end(&json);
	sink_text(sink, "\n");
}

const struct tree_format tree_json = {
	.name = "json",
	.write = write,
};

// ---- one table ----

static void write_csv_figures(struct sink *sink, const struct window_row *sums)
{
	sink_format(sink, ",%" PRIu64 ",%" PRIu64 ",%" PRId64, window_present(sums).count,
		    window_present(sums).bytes, window_impact(sums));
}

struct sheet {
	struct sink *sink;
	struct numbering numbering;
};

static void write_line(void *context, const struct tree_node *node, const struct window_row *rest)
{
	struct sheet *sheet = context;
	struct sink *sink = sheet->sink;
	const struct symbol *symbol = node->symbol;
	uint64_t id, parent;

	(void)rest;
	if (node->depth == 0)
		return;
	id = number(&sheet->numbering, node, &parent);
	sink_format(sink, "%" PRIu64 ",", id);
	if (parent != UINT64_MAX)
		sink_format(sink, "%" PRIu64, parent);
	sink_format(sink, ",%s,", sides[node->side]);
	lines_csv_field(sink, symbol && symbol->function ? symbol->function : "");
	sink_text(sink, ",");
	lines_csv_field(sink, symbol && symbol->file ? symbol->file : "");
	sink_format(sink, ",%" PRIu32 ",", symbol && !node->lines_differ ? symbol->line : 0);
	lines_csv_field(sink, symbol ? symbol->module : "");
	sink_format(sink, ",0x%" PRIx64, symbol && !symbol->function ? symbol->offset : 0);
	write_csv_figures(sink, &node->row);
	write_csv_figures(sink, &node->self);
	sink_text(sink, "\r\n");
}

static void write_csv(struct tree *tree, struct sink *sink)
{
	struct sheet sheet = { .sink = sink };

	sink_text(sink, "id,parent,side,function,file,line,module,offset,count,size,impacting_size,"
			"self_count,self_size,self_impacting_size\r\n");
	tree_walk(tree, write_line, &sheet);
	mem_free(sheet.numbering.open);
}

const struct tree_format tree_csv = {
	.name = "csv",
	.write = write_csv,
};
