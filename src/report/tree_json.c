// Trees of stacks for programs: docs/schema/window-tree.json describes it. And as one table.
#include "report/tree.h"

#include "base/json.h"
#include "base/mem.h"
#include "report/lines.h"

#include <inttypes.h>

static void write_figures(struct json *json, const struct table_row *row)
{
	json_kv_u64(json, "count", window_present(&row->sums).count);
	json_kv_u64(json, "size", window_present(&row->sums).bytes);
	json_key(json, "impacting_size");
	json_i64(json, window_impact(&row->sums));
	json_kv_u64(json, "allocated", window_allocated(&row->sums).bytes);
	json_kv_u64(json, "freed", window_freed(&row->sums).bytes);
}

// Nodes are numbered anew in the order in which they are written: parents before children.
struct numbering {
	struct tree *tree;
	uint64_t next;
	void (*write)(void *context, const struct tree_node *node, uint64_t id, uint64_t parent,
		      const char *side);
	void *context;
};

struct way {
	const struct tree_node *node;
	uint32_t next;
	uint64_t id;
};

static void number_below(struct numbering *numbering, const struct tree_node *root,
			 const char *side)
{
	struct way *ways = NULL;
	size_t count = 1, capacity = 0;

	ways = mem_grow(ways, &capacity, 64, sizeof *ways);
	ways[0] = (struct way){ .node = root, .id = UINT64_MAX };
	if (root->parent != TABLE_NONE) {
		ways[0].id = numbering->next++;
		numbering->write(numbering->context, root, ways[0].id, UINT64_MAX, side);
	}
	while (count > 0) {
		struct way *way = &ways[count - 1];
		const struct tree_node *node;
		uint64_t id;

		if (way->next == way->node->shown_count) {
			count--;
			continue;
		}
		node = tree_child(numbering->tree, way->node, way->next++);
		id = numbering->next++;
		numbering->write(numbering->context, node, id, way->id, side);
		ways = mem_grow(ways, &capacity, count + 1, sizeof *ways);
		ways[count++] = (struct way){ .node = node, .id = id };
	}
	mem_free(ways);
}

static void number_all(struct numbering *numbering)
{
	const struct tree *tree = numbering->tree;

	if (tree->kind != TREE_BUTTERFLY) {
		number_below(numbering, &tree->nodes[0], "");
		return;
	}
	number_below(numbering, &tree->nodes[tree->callers], "callers");
	number_below(numbering, &tree->nodes[tree->callees], "callees");
}

static void write_node(void *context, const struct tree_node *node, uint64_t id, uint64_t parent,
		       const char *side)
{
	struct json *json = context;
	const struct symbol *symbol = node->symbol;

	json_object_begin(json);
	json_kv_u64(json, "id", id);
	json_kv_u64_if(json, "parent", parent != UINT64_MAX, parent);
	if (*side)
		json_kv_string(json, "side", side);
	json_kv_string(json, "function", symbol && symbol->function ? symbol->function : "");
	json_kv_string(json, "file", symbol && symbol->file ? symbol->file : "");
	json_kv_u64(json, "line", symbol && !node->lines_differ ? symbol->line : 0);
	json_kv_string(json, "module", symbol ? symbol->module : "");
	json_kv_u64(json, "offset", symbol && !symbol->function ? symbol->offset : 0);
	write_figures(json, &node->row);
	json_key(json, "self");
	lines_json_begin(json);
	write_figures(json, &node->self);
	lines_json_end(json);
	json_object_end(json);
}

static void write(struct tree *tree, struct sink *sink)
{
	const struct question *question = tree->table->question;
	struct json json;
	struct numbering numbering = { .tree = tree, .write = write_node, .context = &json };

	json_init(&json, sink, true);
	json_object_begin(&json);
	json_kv_string(&json, "schema", "tidemark-window-tree-1");
	json_kv_string(&json, "tree", tree_word(tree->kind));
	json_kv_u64(&json, "from_ns", question->from_ns);
	json_kv_u64(&json, "to_ns", question->to_ns);
	json_kv_bool(&json, "complete", reader_complete(question->reader));
	json_kv_bool(&json, "sampled", reader_info(question->reader)->sample_bytes > 0);
	json_kv_bool(&json, "exit_frees", question->options->exit_frees);
	json_key(&json, "nodes");
	json_array_begin(&json);
	number_all(&numbering);
	json_array_end(&json);
	json_kv_u64(&json, "nodes_left_out", tree->left_out);
	json_key(&json, "total");
	json_object_begin(&json);
	write_figures(&json, &tree->nodes[0].row);
	json_object_end(&json);
	json_object_end(&json);
	sink_text(sink, "\n");
}

const struct tree_format tree_json = {
	.name = "json",
	.write = write,
};

// ---- one table ----

static void write_csv_figures(struct sink *sink, const struct table_row *row)
{
	sink_format(sink, ",%" PRIu64 ",%" PRIu64 ",%" PRId64, window_present(&row->sums).count,
		    window_present(&row->sums).bytes, window_impact(&row->sums));
}

static void write_line(void *context, const struct tree_node *node, uint64_t id, uint64_t parent,
		       const char *side)
{
	struct sink *sink = context;
	const struct symbol *symbol = node->symbol;

	sink_format(sink, "%" PRIu64 ",", id);
	if (parent != UINT64_MAX)
		sink_format(sink, "%" PRIu64, parent);
	sink_format(sink, ",%s,", side);
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
	struct numbering numbering = { .tree = tree, .write = write_line, .context = sink };

	sink_text(sink, "id,parent,side,function,file,line,module,offset,count,size,impacting_size,"
			"self_count,self_size,self_impacting_size\r\n");
	number_all(&numbering);
}

const struct tree_format tree_csv = {
	.name = "csv",
	.write = write_csv,
};
