// A stack's label is that of the pair (label of its callers, label of its frame), so a stack whose
// callers are known takes one look-up, and equal stacks meet in equal pairs. For example main, f
// in two processes of one program, where f is frame 7 in one and frame 12 in the other: both
// frames have the label 2, since they read the same; the callers main have the label 1 in both; so
// both stacks are the pair (1, 2), and one label.
#include "report/ask/labels.h"

#include "base/arena.h"
#include "base/index_set.h"
#include "base/mem.h"
#include "base/str.h"

#include <string.h>

// What makes a stack: the label of its callers (or, at the outermost end, its flags) and that of
// its frame.
struct pair {
	uint32_t callers, frame;
};

// From so many frames on it is worth while to go through all of them.
enum { FRAMES_MANY = 1 << 12 };

struct labels {
	enum labels_kind kind;
	const struct reader *reader;
	struct names *names;
	struct arena arena; // of texts
	const char **text;  // by label - 1
	size_t text_count, text_capacity;
	struct index_set texts;
	// What frames read as is not kept but said again where two may be alike.
	frame_id *places; // by label of a frame - 1: the first that was asked for
	size_t places_count, places_capacity;
	struct index_set places_set;
	bool swept;       // frames of no file have their labels
	uint32_t known;   // frames that have one
	uint32_t present; // frames that the trace has; no other will ask
	uint32_t *frames; // label, by frame id; 0: not asked yet
	uint32_t *stacks; // by stack id; 0: not asked yet
	uint32_t frames_count, stacks_count;
	uint32_t labelled;  // stacks that have one
	struct pair *pairs; // by label - 1; NULL once all stacks have one
	size_t pairs_count, pairs_capacity;
	struct index_set pairs_set;
	stack_id *first; // by label - 1: the least that was asked for; 0: none
	size_t first_capacity;
	uint64_t *asked; // by stack id, a bit: asked for, or a caller of one
	stack_id *path;  // stacks on the way to one that has a label
	size_t path_capacity;
};

struct labels *labels_new(enum labels_kind kind, const struct reader *reader, struct names *names)
{
	struct labels *labels = mem_alloc(1, sizeof *labels);

	ASSERT(reader && (kind == LABELS_EXACT || names));
	labels->kind = kind;
	labels->reader = reader;
	labels->names = names;
	labels->frames_count = reader_frames_count(reader);
	labels->stacks_count = reader_stacks_count(reader);
	labels->frames = mem_alloc(labels->frames_count + (size_t)1, sizeof *labels->frames);
	labels->stacks = mem_alloc(labels->stacks_count + (size_t)1, sizeof *labels->stacks);
	labels->asked = mem_alloc(labels->stacks_count / 64 + (size_t)1, sizeof *labels->asked);
	labels->places_set.most = labels->frames_count;
	for (frame_id id = 0; id < labels->frames_count; id++)
		labels->present += reader_frame(reader, id) != NULL;
	return labels;
}

static void forget_texts(struct labels *labels)
{
	arena_fini(&labels->arena);
	mem_free(labels->text);
	index_set_fini(&labels->texts);
	labels->text = NULL;
	labels->text_count = labels->text_capacity = 0;
}

void labels_again(struct labels *labels)
{
	forget_texts(labels);
	if (labels->pairs_count)
		memset(labels->first, 0, labels->pairs_count * sizeof *labels->first);
	memset(labels->asked, 0, (labels->stacks_count / 64 + (size_t)1) * sizeof *labels->asked);
}

enum labels_kind labels_kind(const struct labels *labels)
{
	return labels->kind;
}

uint64_t labels_bytes(const struct labels *labels)
{
	return (labels->frames_count + (uint64_t)labels->stacks_count) * sizeof(uint32_t) +
	       labels->pairs_count *
		       ((labels->pairs ? sizeof *labels->pairs : 0) + sizeof *labels->first) +
	       labels->places_capacity * sizeof *labels->places +
	       index_set_bytes(&labels->places_set) + index_set_bytes(&labels->pairs_set);
}

void labels_free(struct labels *labels)
{
	if (!labels)
		return;
	forget_texts(labels);
	MEM_FREE(labels->places, labels->frames, labels->stacks, labels->pairs, labels->first,
		 labels->asked, labels->path);
	index_set_fini(&labels->places_set);
	index_set_fini(&labels->pairs_set);
	mem_free(labels);
}

// Whether the text at a position is this one (index_set.h).
static bool is_text(const void *context, uint32_t position, const void *key)
{
	const struct labels *labels = context;

	return strcmp(labels->text[position], key) == 0;
}

// Labels count from 1; 0 is none.
uint32_t labels_text(struct labels *labels, const char *text)
{
	uint32_t count = (uint32_t)labels->text_count;
	uint32_t at = index_set_put(&labels->texts, index_set_hash_text(text), is_text, labels,
				    text, count);

	if (at == count) {
		*MEM_ADD(labels->text, labels->text_count, labels->text_capacity) =
			arena_text(&labels->arena, text);
	}
	return at + 1;
}

const char *labels_get_text(const struct labels *labels, uint32_t label)
{
	return label > 0 && label <= labels->text_count ? labels->text[label - 1] : "";
}

// A line of its own. Here, since so many frames are described that str_format would be felt.
static void add_number(struct str *text, uint64_t number)
{
	str_add_char(text, '\n');
	str_add_digits(text, number);
}

// Where the frame is in its file. The build-id tells apart files that followed each other under
// one path.
static void describe_place(const struct labels *labels, const struct trace_frame *frame,
			   struct str *text)
{
	const struct trace_module *module = reader_module(labels->reader, frame->module);

	if (!module) {
		add_number(text, frame->pc);
		return;
	}
	str_add(text, module->path);
	str_add_hex(text, module->build_id, module->build_id_length);
	add_number(text, frame->pc - module->bias);
}

// What a terminal shows, in lines, so that two that look the same have the same text. Where no line
// is known, what is shown is the offset.
static void describe_symbol(const struct symbol *symbol, struct str *text)
{
	str_add(text, symbol->function ? symbol->function : "");
	str_add_char(text, '\n');
	str_add(text, symbol->file ? symbol->file : "");
	add_number(text, symbol->line);
	add_number(text, symbol->inlined);
	if (symbol->line == 0) {
		str_add_char(text, '\n');
		str_add(text, symbol->module);
		add_number(text, symbol->offset);
	}
	str_add_char(text, '\n');
}

static void describe_frame(const struct labels *labels, frame_id id, struct str *text)
{
	const struct symbol *symbols;
	struct symbol place;
	size_t count;

	if (labels->kind == LABELS_EXACT) {
		describe_place(labels, reader_frame(labels->reader, id), text);
		return;
	}
	// Of generated code there may be a great many frames.
	if (names_nobody_knows(labels->names, id, &place)) {
		describe_symbol(&place, text);
		return;
	}
	symbols = names_find(labels->names, id, &count);
	for (size_t i = 0; i < count; i++)
		describe_symbol(&symbols[i], text);
}

// Whether all that is said of the frame is a number, `offset`: no file and no names.
static bool is_bare(const struct labels *labels, frame_id id, uint64_t *offset)
{
	const struct trace_frame *frame = reader_frame(labels->reader, id);
	const struct trace_module *module;
	const struct symbol *symbol;
	struct symbol place;
	size_t count;

	if (labels->kind == LABELS_EXACT) {
		module = reader_module(labels->reader, frame->module);
		*offset = frame->pc - (module ? module->bias : 0);
		return !module || (!*module->path && module->build_id_length == 0);
	}
	if (names_nobody_knows(labels->names, id, &place)) {
		*offset = place.offset;
		return !*place.module;
	}
	symbol = names_find(labels->names, id, &count);
	if (count != 1)
		return false;
	*offset = symbol->offset;
	return (!symbol->function || !*symbol->function) && (!symbol->file || !*symbol->file) &&
	       symbol->line == 0 && !symbol->inlined && !*symbol->module;
}

// What a frame reads as. Of a bare one, of which there may be a million, no text is made.
struct reading {
	const char *text; // NULL: bare
	uint64_t offset;
};

// Frames whose addresses are near each other are met one after the other, and are near each other
// in the table: else each would be a miss of the cache.
static uint64_t hash_offset(uint64_t offset)
{
	enum { NEAR_LOG2 = 9, ALIGNED_LOG2 = 4 };
	enum { NEAR = (1 << (NEAR_LOG2 - ALIGNED_LOG2)) - 1 };
	uint64_t far = offset >> NEAR_LOG2;

	return (uint32_t)(index_set_hash(&far, 1) & ~(uint64_t)NEAR) |
	       (offset >> ALIGNED_LOG2 & NEAR);
}

// Says again what the frame there reads as: the texts of all frames would be the largest part of
// what is kept, and two frames are compared only where their hashes meet.
static bool is_place(const void *context, uint32_t position, const void *key)
{
	const struct labels *labels = context;
	const struct reading *reading = key;
	struct str text = { 0 };
	uint64_t offset;
	bool same;

	ASSERT(position < labels->places_count);
	if (!reading->text)
		return is_bare(labels, labels->places[position], &offset) &&
		       offset == reading->offset;
	describe_frame(labels, labels->places[position], &text);
	same = strcmp(str_get(&text), reading->text) == 0;
	str_fini(&text);
	return same;
}

static uint32_t label_frame(struct labels *labels, frame_id id);

// Generated code has many frames, and nothing is to be looked up for them: in the order of their
// numbers, which is that of their addresses for the most part, all take less than some at random.
static void sweep(struct labels *labels)
{
	labels->swept = true;
	for (frame_id id = 0; id < labels->frames_count; id++) {
		const struct trace_frame *frame = reader_frame(labels->reader, id);

		if (frame && frame->module == 0)
			label_frame(labels, id);
	}
}

// All frames have their labels, so what they read as is not asked again.
static void forget_places(struct labels *labels)
{
	index_set_fini(&labels->places_set);
	mem_free(labels->places);
	labels->places = NULL;
	labels->places_count = labels->places_capacity = 0;
}

// 0: no such frame.
static uint32_t label_frame(struct labels *labels, frame_id id)
{
	uint32_t count = (uint32_t)labels->places_count, at;
	struct reading reading = { 0 };
	struct str text = { 0 };
	uint64_t hash;

	if (id >= labels->frames_count || !reader_frame(labels->reader, id))
		return 0;
	if (labels->frames[id])
		return labels->frames[id];
	if (count >= FRAMES_MANY && !labels->swept) {
		sweep(labels);
		return label_frame(labels, id);
	}
	if (is_bare(labels, id, &reading.offset)) {
		hash = hash_offset(reading.offset);
	} else {
		describe_frame(labels, id, &text);
		reading.text = str_get(&text);
		hash = index_set_hash_text(reading.text);
	}
	at = index_set_put(&labels->places_set, hash, is_place, labels, &reading, count);
	str_fini(&text);
	if (at == count) {
		*MEM_ADD(labels->places, labels->places_count, labels->places_capacity) = id;
	}
	ASSERT(at < labels->places_count);
	labels->frames[id] = at + 1;
	if (++labels->known == labels->present)
		forget_places(labels);
	return labels->frames[id];
}

// 0 where the parent is not lower, as in a damaged trace: walks end.
static stack_id parent_of(const struct trace_stack *stack, stack_id id)
{
	return stack->parent < id ? stack->parent : 0;
}

static bool is_pair(const void *context, uint32_t position, const void *key)
{
	const struct labels *labels = context;

	ASSERT(position < labels->pairs_count);
	return memcmp(&labels->pairs[position], key, sizeof *labels->pairs) == 0;
}

// The label of a stack whose callers have one.
static uint32_t label_one(struct labels *labels, stack_id id)
{
	const struct trace_stack *stack = reader_stack(labels->reader, id);
	stack_id parent = parent_of(stack, id);
	// The flags belong to the outermost end; there they stand in for a caller, and numbers of
	// callers begin above them.
	struct pair pair = {
		.callers = parent ? labels->stacks[parent] + 3 : stack->flags & 3u,
		.frame = label_frame(labels, stack->frame),
	};
	const uint64_t numbers[] = { pair.callers, pair.frame };
	uint32_t count = (uint32_t)labels->pairs_count;
	uint32_t at = index_set_put_by(&labels->pairs_set, pair.frame, index_set_hash(numbers, 2),
				       is_pair, labels, &pair, count);

	if (at == count) {
		// For all that may come: what is not used is not touched, and nothing is copied.
		MEM_ROOM(labels->pairs, labels->pairs_capacity, labels->stacks_count);
		MEM_ROOM(labels->first, labels->first_capacity, labels->stacks_count);
		ASSERT(labels->pairs_count < labels->pairs_capacity);
		labels->first[labels->pairs_count] = 0;
		labels->pairs[labels->pairs_count++] = pair;
	}
	return at + 1;
}

// All stacks have their labels, so no pair is looked for again.
static void forget_pairs(struct labels *labels)
{
	index_set_fini(&labels->pairs_set);
	mem_free(labels->pairs);
	labels->pairs = NULL;
	labels->pairs_capacity = 0;
}

static bool is_asked(const struct labels *labels, stack_id id)
{
	return labels->asked[id / 64] >> id % 64 & 1;
}

// A stack is asked for; its callers were.
static void ask(struct labels *labels, stack_id id)
{
	stack_id *first;

	if (!labels->stacks[id]) {
		labels->stacks[id] = label_one(labels, id);
		if (++labels->labelled == labels->stacks_count - 1) // 0 is none
			forget_pairs(labels);
	}
	first = &labels->first[labels->stacks[id] - 1];
	if (!*first || id < *first)
		*first = id;
	labels->asked[id / 64] |= UINT64_C(1) << id % 64;
}

// Goes out to the first stack that was asked for, and back in, giving each one its label. Without
// recursion, as a stack may be 8,192 frames deep.
uint32_t labels_stack(struct labels *labels, stack_id stack)
{
	size_t depth = 0;

	if (stack >= labels->stacks_count)
		return 0;
	for (stack_id id = stack; id && !is_asked(labels, id);) {
		*MEM_ADD(labels->path, depth, labels->path_capacity) = id;
		id = parent_of(reader_stack(labels->reader, id), id);
	}
	while (depth > 0)
		ask(labels, labels->path[--depth]);
	return labels->stacks[stack];
}

stack_id labels_first(const struct labels *labels, uint32_t label)
{
	return label > 0 && label <= labels->pairs_count ? labels->first[label - 1] : 0;
}
