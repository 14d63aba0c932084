#include "report/labels.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>

struct labels {
	enum labels_kind kind;
	const struct reader *reader;
	struct names *names;
	struct map texts; // hash of a text -> its number; a collision takes the next hash
	char **text;      // by number; owned
	size_t text_count, text_capacity;
	uint32_t *frames; // text label, by frame id; 0: not asked yet
	uint32_t *stacks; // by stack id; 0: not asked yet
	uint32_t frames_count, stacks_count;
	struct map pairs; // label of the callers' stack << 32 | label of the frame -> label
	stack_id *first;  // by label: the least
	size_t first_count, first_capacity;
	stack_id *path; // stacks on the way to one that has a label
	size_t path_capacity;
};

struct labels *labels_new(enum labels_kind kind, const struct reader *reader, struct names *names)
{
	struct labels *labels = mem_alloc(1, sizeof *labels);

	labels->kind = kind;
	labels->reader = reader;
	labels->names = names;
	labels->frames_count = reader_frames_count(reader);
	labels->stacks_count = reader_stacks_count(reader);
	labels->frames = mem_alloc(labels->frames_count + (size_t)1, sizeof *labels->frames);
	labels->stacks = mem_alloc(labels->stacks_count + (size_t)1, sizeof *labels->stacks);
	labels->first_count = 1;
	labels->first = mem_grow(NULL, &labels->first_capacity, 64, sizeof *labels->first);
	labels->first[0] = 0;
	return labels;
}

void labels_free(struct labels *labels)
{
	if (!labels)
		return;
	for (size_t i = 0; i < labels->text_count; i++)
		mem_free(labels->text[i]);
	mem_free(labels->text);
	mem_free(labels->frames);
	mem_free(labels->stacks);
	mem_free(labels->first);
	mem_free(labels->path);
	map_fini(&labels->texts);
	map_fini(&labels->pairs);
	mem_free(labels);
}

static uint64_t hash_text(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
	return hash;
}

uint32_t labels_text(struct labels *labels, const char *text)
{
	for (uint64_t hash = hash_text(text);; hash++) {
		bool added;
		uint64_t *number = map_put(&labels->texts, hash, &added);

		if (!added && strcmp(labels->text[*number], text) == 0)
			return (uint32_t)*number + 1;
		if (!added)
			continue;
		labels->text = mem_grow(labels->text, &labels->text_capacity,
					labels->text_count + 1, sizeof *labels->text);
		labels->text[labels->text_count] = mem_copy_text(text);
		*number = labels->text_count++;
		return (uint32_t)*number + 1;
	}
}

const char *labels_get_text(const struct labels *labels, uint32_t label)
{
	return label > 0 && label <= labels->text_count ? labels->text[label - 1] : "";
}

// Where the frame is in its file. The build-id tells apart files that followed each other under
// one path.
static void describe_place(const struct labels *labels, const struct trace_frame *frame,
			   struct str *text)
{
	const struct trace_module *module = reader_module(labels->reader, frame->module);

	if (!module) {
		str_format(text, "\n%llx", (unsigned long long)frame->pc);
		return;
	}
	str_add(text, module->path);
	for (unsigned i = 0; i < module->build_id_length; i++)
		str_format(text, "%02x", module->build_id[i]);
	str_format(text, "\n%llx", (unsigned long long)(frame->pc - module->bias));
}

static void describe_symbols(struct labels *labels, frame_id frame, struct str *text)
{
	size_t count;
	const struct symbol *symbols = names_find(labels->names, frame, &count);

	for (size_t i = 0; i < count; i++) {
		str_format(text, "%s\n%s\n%u\n%d\n", symbols[i].function ? symbols[i].function : "",
			   symbols[i].file ? symbols[i].file : "", symbols[i].line,
			   symbols[i].inlined);
		if (symbols[i].line == 0)
			str_format(text, "%s+%llx\n", symbols[i].module,
				   (unsigned long long)symbols[i].offset);
	}
}

static uint32_t label_frame(struct labels *labels, frame_id id)
{
	const struct trace_frame *frame = reader_frame(labels->reader, id);
	struct str text = { 0 };

	if (!frame || id >= labels->frames_count)
		return 0;
	if (labels->frames[id])
		return labels->frames[id];
	if (labels->kind == LABELS_AS_SHOWN)
		describe_symbols(labels, id, &text);
	else
		describe_place(labels, frame, &text);
	labels->frames[id] = labels_text(labels, str_get(&text));
	str_fini(&text);
	return labels->frames[id];
}

static stack_id parent_of(const struct trace_stack *stack, stack_id id)
{
	return stack->parent < id ? stack->parent : 0;
}

// The label of a stack whose callers have one.
static uint32_t label_one(struct labels *labels, stack_id id)
{
	const struct trace_stack *stack = reader_stack(labels->reader, id);
	stack_id parent = parent_of(stack, id);
	// The flags belong to the outermost end; there they stand in for a caller.
	uint64_t callers = parent ? labels->stacks[parent] + UINT64_C(3) : stack->flags & 3u;
	uint64_t *label;
	bool added;

	label = map_put(&labels->pairs, callers << 32 | label_frame(labels, stack->frame), &added);
	if (added) {
		labels->first = mem_grow(labels->first, &labels->first_capacity,
					 labels->first_count + 1, sizeof *labels->first);
		labels->first[labels->first_count] = id;
		*label = labels->first_count++;
	} else if (id < labels->first[*label]) {
		labels->first[*label] = id;
	}
	return (uint32_t)*label;
}

uint32_t labels_stack(struct labels *labels, stack_id stack)
{
	size_t depth = 0;

	if (stack >= labels->stacks_count)
		return 0;
	for (stack_id id = stack; id && !labels->stacks[id];) {
		labels->path = mem_grow(labels->path, &labels->path_capacity, depth + 1,
					sizeof *labels->path);
		labels->path[depth++] = id;
		id = parent_of(reader_stack(labels->reader, id), id);
	}
	while (depth > 0) {
		stack_id id = labels->path[--depth];

		labels->stacks[id] = label_one(labels, id);
	}
	return labels->stacks[stack];
}

stack_id labels_first(const struct labels *labels, uint32_t label)
{
	return label < labels->first_count ? labels->first[label] : 0;
}
