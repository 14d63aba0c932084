// A byte for each frame and each stack says what it matches: one bit a kind of expression, and
// KNOWN. For example --frame ^parse_ --not-frame ^log: frame 3, parse_line, has the bit of WANTED,
// frame 8, log_write, that of UNWANTED. A stack of 8 under 3 has both, so it does not pass; one of
// 3 alone does. A stack's bits are those of its frame and of its callers, so it is found by walking
// out to the first stack that is known.
#include "report/ask/frame_filter.h"

#include "base/expression.h"
#include "base/mem.h"
#include "report/ask/cxxname.h"

#include <string.h>

// What a frame or a stack matches: a bit for each enum frame_filter_kind.
enum { KNOWN = 1 << 7 };

struct wanted {
	struct expression *expression;
	enum frame_filter_kind kind;
	const char *text; // borrowed
	bool met;         // it has matched, or that it has not was said
};

struct frame_filter {
	const struct reader *reader;
	struct names *names;
	struct wanted *wanted;
	size_t count, capacity;
	uint8_t kinds;   // of the expressions, as bits
	uint8_t *frames; // what each frame matches, once KNOWN
	size_t frames_count;
	size_t named, nameless; // frames that were matched
	size_t bare;            // of the named ones: in a function whose namespaces are not known
	bool scopes;            // an expression asks for namespaces, or for where a name begins
	uint8_t *stacks;        // what each stack and its callers match, once KNOWN
	size_t stacks_count;
};

struct frame_filter *frame_filter_new(const struct reader *reader, struct names *names)
{
	struct frame_filter *filter = mem_alloc(1, sizeof *filter);

	filter->reader = reader;
	filter->names = names;
	return filter;
}

void frame_filter_free(struct frame_filter *filter)
{
	if (!filter)
		return;
	for (size_t i = 0; i < filter->count; i++)
		expression_free(filter->wanted[i].expression);
	MEM_FREE(filter->wanted, filter->frames, filter->stacks, filter);
}

// What was matched before does not know of it: all expressions are added before the first question.
bool frame_filter_add(struct frame_filter *filter, const char *expression,
		      enum frame_filter_kind kind, struct err *err)
{
	struct wanted *added;
	char why[128];

	ASSERT(kind <= FRAME_FILTER_MODULE && expression);
	MEM_ROOM(filter->wanted, filter->capacity, filter->count + 1);
	added = &filter->wanted[filter->count];
	added->expression = expression_new(expression, why, sizeof why);
	if (!added->expression)
		return err_set(err, ERR_USAGE, "'%s' is not a regular expression: %s", expression,
			       why);
	added->kind = kind;
	added->text = expression;
	added->met = false;
	filter->kinds |= (uint8_t)(1u << kind);
	filter->scopes |= kind != FRAME_FILTER_MODULE && strpbrk(expression, "^:(");
	filter->count++;
	return true;
}

// Room for ids below `count`, new ones unknown.
static uint8_t *extend(uint8_t *known, size_t *known_count, size_t count)
{
	if (count <= *known_count)
		return known;
	known = mem_resize(known, count, 1);
	memset(known + *known_count, 0, count - *known_count);
	*known_count = count;
	return known;
}

// A frame without a name matches no expression of functions. The return type that a function of a
// template has in front is no part of what '^' is asked of, and may be asked for as well.
static bool matches(const struct wanted *wanted, const struct symbol *symbol)
{
	bool module = wanted->kind == FRAME_FILTER_MODULE;
	const char *text = module ? symbol->module : symbol->function, *scoped;

	if (!text)
		return false;
	if (expression_matches(wanted->expression, text))
		return true;
	scoped = module ? text : cxxname_scoped(text);
	return scoped != text && expression_matches(wanted->expression, scoped);
}

// All functions of the frame, those inlined too, and all expressions, once.
static uint8_t match_frame(struct frame_filter *filter, frame_id frame)
{
	const struct symbol *symbols;
	uint8_t matched = KNOWN;
	size_t count;

	if (frame < filter->frames_count && filter->frames[frame])
		return filter->frames[frame];
	symbols = names_find(filter->names, frame, &count);
	*(symbols->function ? &filter->named : &filter->nameless) += 1;
	// Once for a frame, however many of its functions are so.
	for (size_t i = 0; i < count; i++)
		if (symbols[i].bare) {
			filter->bare++;
			break;
		}
	for (size_t i = 0; i < count; i++)
		for (size_t e = 0; e < filter->count; e++)
			if (matches(&filter->wanted[e], &symbols[i])) {
				matched |= (uint8_t)(1u << filter->wanted[e].kind);
				filter->wanted[e].met = true;
			}
	filter->frames = extend(filter->frames, &filter->frames_count, frame + (size_t)1);
	filter->frames[frame] = matched;
	return matched;
}

// What the functions of a stack match: its own frame's and its callers', up to a stack that is
// known already.
// Only the stack that was asked for is kept, not those on the way: most of them are asked for too.
static uint8_t match_stack(struct frame_filter *filter, stack_id stack)
{
	uint8_t matched = KNOWN;
	stack_id id = stack;

	filter->stacks =
		extend(filter->stacks, &filter->stacks_count, reader_stacks_count(filter->reader));
	while (id && id < filter->stacks_count) {
		const struct trace_stack *node = reader_stack(filter->reader, id);

		matched |= filter->stacks[id];
		if (filter->stacks[id])
			break;
		matched |= match_frame(filter, node->frame);
		id = node->parent < id ? node->parent : 0;
	}
	if (stack < filter->stacks_count)
		filter->stacks[stack] = matched;
	return matched;
}

size_t frame_filter_nameless(const struct frame_filter *filter, size_t *frames)
{
	ASSERT(frames);
	*frames = filter->named + filter->nameless;
	return filter->nameless;
}

size_t frame_filter_bare(const struct frame_filter *filter)
{
	return filter->scopes ? filter->bare : 0;
}

const char *frame_filter_unmet(struct frame_filter *filter, enum frame_filter_kind *kind)
{
	for (size_t i = 0; i < filter->count; i++) {
		struct wanted *wanted = &filter->wanted[i];

		if (wanted->met || wanted->kind == FRAME_FILTER_UNWANTED)
			continue;
		wanted->met = true;
		*kind = wanted->kind;
		return wanted->text;
	}
	return NULL;
}

bool frame_filter_passes(void *context, stack_id stack)
{
	struct frame_filter *filter = context;
	uint8_t matched = match_stack(filter, stack) & (uint8_t)~KNOWN;

	// All kinds that were given must match, but the unwanted one, which must not.
	return matched == (filter->kinds & (uint8_t) ~(1u << FRAME_FILTER_UNWANTED));
}
