// The file is read by expat, element by element: tags that are open are a stack, and an entry
// point belongs to the innermost. For the example in the header, with frames png_read_row
// (libpng16.so), decode (app) and main (app) the innermost is matched by "png_*" of
// "libpng*.so*": the tag is "Images" with priority 10. Had the stack a frame run_callback that
// calls decode, the hint tag would name it "Callbacks\app", with priority 0: the first one stays,
// as it has the higher priority.
#include "report/ask/tags.h"

#include "base/mem.h"
#include "base/str.h"
#include "report/ask/cxxname.h"

#include <ctype.h>
#include <expat.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH_MAX = 64, TEXT_MAX = 16 << 20 };

enum hint { HINT_NONE, HINT_CALLEE, HINT_CALLER };

struct tag {
	char *name; // with those around it: "Images\\Decode"
	long priority;
	enum hint hint;
	bool with_function; // of a hint: the function's name too
};

struct entrypoint {
	char *module; // NULL: any
	char *method;
	size_t tag;
};

struct tags {
	struct tag *tags;
	size_t tags_count, tags_capacity;
	struct entrypoint *entries; // in the order of the file
	size_t entries_count, entries_capacity;
};

// ---- the file ----

struct reading {
	XML_Parser parser;
	struct tags *tags;
	size_t open[DEPTH_MAX]; // tags around the present place
	bool is_tag[DEPTH_MAX]; // whether the element at this depth is one
	size_t depth, tags_depth;
	struct err *err;
	bool failed;
};

static void fail(struct reading *reading, const char *what)
{
	if (reading->failed)
		return;
	reading->failed = true;
	err_set(reading->err, ERR_FORMAT, "line %lu, column %lu: %s",
		XML_GetCurrentLineNumber(reading->parser),
		XML_GetCurrentColumnNumber(reading->parser) + 1, what);
	XML_StopParser(reading->parser, XML_FALSE);
}

static const char *attribute(const char **attributes, const char *name)
{
	for (; *attributes; attributes += 2)
		if (strcmp(attributes[0], name) == 0)
			return attributes[1];
	return NULL;
}

// What is inside another tag has its name in front. An error is remembered and the parser stopped,
// so nothing needs to be undone here: tags_read frees all.
static void begin_tag(struct reading *reading, const char **attributes, bool is_hint)
{
	struct tags *tags = reading->tags;
	const char *name = attribute(attributes, "Name");
	const char *priority = attribute(attributes, "Priority");
	const char *hint = attribute(attributes, "HintOperator");
	const char *only = attribute(attributes, "OnlyShowModule");
	struct tag tag = { 0 };
	struct str whole = { 0 };
	char *rest;

	ASSERT(reading->tags_depth < reading->depth && reading->depth <= DEPTH_MAX);
	if (!name) {
		fail(reading, "a Tag needs a Name");
		return;
	}
	if (reading->tags_depth)
		str_add(&whole, tags->tags[reading->open[reading->tags_depth - 1]].name);
	if (whole.length && *name)
		str_add_char(&whole, '\\');
	str_add(&whole, name);
	tag.priority = priority ? strtol(priority, &rest, 10) : 0;
	if (priority && (*rest || rest == priority))
		fail(reading, "a Priority is a whole number");
	if (is_hint && hint && strcasecmp(hint, "Caller") == 0)
		tag.hint = HINT_CALLER;
	else if (is_hint && hint && strcasecmp(hint, "Callee") == 0)
		tag.hint = HINT_CALLEE;
	else if (is_hint)
		fail(reading, "a HintOperator is Caller or Callee");
	// OnlyShowModule="false": the function of the neighbour, too.
	tag.with_function = only && strcasecmp(only, "false") == 0;
	tag.name = whole.text ? str_take(&whole) : mem_copy_text("");
	MEM_ROOM(tags->tags, tags->tags_capacity, tags->tags_count + 1);
	reading->open[reading->tags_depth++] = tags->tags_count;
	tags->tags[tags->tags_count++] = tag;
}

static char *copy_pattern(const char *pattern)
{
	return pattern && strcmp(pattern, "*") != 0 ? mem_copy_text(pattern) : NULL;
}

// It belongs to the innermost tag that is open.
static void begin_entrypoint(struct reading *reading, const char **attributes)
{
	struct tags *tags = reading->tags;

	ASSERT(reading->tags_depth > 0); // the outermost element is a tag
	*MEM_ADD(tags->entries, tags->entries_count, tags->entries_capacity) = (struct entrypoint){
		.module = copy_pattern(attribute(attributes, "Module")),
		.method = copy_pattern(attribute(attributes, "Method")),
		.tag = reading->open[reading->tags_depth - 1],
	};
}

// Other elements are passed over, and what is in them is taken as if it stood outside of them.
static void begin_element(void *context, const char *name, const char **attributes)
{
	struct reading *reading = context;
	bool is_hint = strcmp(name, "HintTag") == 0;
	bool is_tag = is_hint || strcmp(name, "Tag") == 0;

	if (reading->failed)
		return;
	if (reading->depth == DEPTH_MAX) {
		fail(reading, "elements are nested too deep");
		return;
	}
	if (reading->depth == 0 && !is_tag) {
		fail(reading, "not a file of stack tags: it begins with <Tag Name=\"\">");
		return;
	}
	reading->is_tag[reading->depth++] = is_tag;
	if (is_tag)
		begin_tag(reading, attributes, is_hint);
	else if (strcmp(name, "Entrypoint") == 0)
		begin_entrypoint(reading, attributes);
}

static void end_element(void *context, const char *)
{
	struct reading *reading = context;

	if (reading->failed)
		return;
	ASSERT(reading->depth > 0);
	reading->depth--;
	if (!reading->is_tag[reading->depth])
		return;
	ASSERT(reading->tags_depth > 0);
	reading->tags_depth--;
}

// A file that declares entities has more in mind than tags.
static void begin_doctype(void *context, const char *name, const char *system, const char *public,
			  int internal)
{
	(void)name, (void)system, (void)public, (void)internal;
	fail(context, "a document type is not expected here");
}

// The text is given to the parser as one part, whose length is an int. The first mistake is the one
// that is reported: fail has stopped the parser then, and what that says of it is of no use.
struct tags *tags_read(const char *text, size_t length, struct err *err)
{
	struct reading reading = {
		.parser = XML_ParserCreate(NULL),
		.tags = mem_alloc(1, sizeof *reading.tags),
		.err = err,
	};

	if (!reading.parser || length > TEXT_MAX) {
		err_set(err, ERR_FORMAT, "too large for a file of stack tags");
		reading.failed = true;
	} else {
		XML_SetUserData(reading.parser, &reading);
		XML_SetElementHandler(reading.parser, begin_element, end_element);
		XML_SetStartDoctypeDeclHandler(reading.parser, begin_doctype);
		if (XML_Parse(reading.parser, text, (int)length, true) != XML_STATUS_OK)
			fail(&reading, XML_ErrorString(XML_GetErrorCode(reading.parser)));
	}
	if (reading.parser)
		XML_ParserFree(reading.parser);
	if (!reading.failed)
		return reading.tags;
	tags_free(reading.tags);
	return NULL;
}

void tags_free(struct tags *tags)
{
	if (!tags)
		return;
	for (size_t i = 0; i < tags->tags_count; i++)
		mem_free(tags->tags[i].name);
	for (size_t i = 0; i < tags->entries_count; i++) {
		MEM_FREE(tags->entries[i].module, tags->entries[i].method);
	}
	MEM_FREE(tags->tags, tags->entries, tags);
}

// ---- matching ----

// `*` stands for anything. Goes back to the last star only, so it is never slow.
static bool matches(const char *pattern, const char *text, size_t length)
{
	const char *star = NULL;
	size_t at = 0, resume = 0;

	while (at < length) {
		if (*pattern == '*') {
			star = pattern++;
			resume = at;
		} else if (*pattern &&
			   tolower((unsigned char)*pattern) == tolower((unsigned char)text[at])) {
			pattern++;
			at++;
		} else if (star) {
			pattern = star + 1;
			at = ++resume;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == '\0';
}

// A method is held against the function's name without its parameters, and with them.
static bool entry_matches(const struct entrypoint *entry, const struct symbol *symbol)
{
	const char *module = str_last_part(symbol->module);
	const char *function;
	size_t length;

	if (entry->module && !matches(entry->module, module, strlen(module)))
		return false;
	if (!entry->method)
		return true;
	if (!symbol->function)
		return false;
	function = cxxname_base(symbol->function, &length);
	return matches(entry->method, function, length) ||
	       matches(entry->method, symbol->function, strlen(symbol->function));
}

// The tag of a frame; NULL if it has none.
static const struct tag *tag_of(const struct tags *tags, const struct symbol *symbol)
{
	for (size_t i = 0; i < tags->entries_count; i++)
		if (entry_matches(&tags->entries[i], symbol))
			return &tags->tags[tags->entries[i].tag];
	return NULL;
}

// The neighbour's file, and its function if the tag wants that, behind the tag's name.
static void add_hinted(const struct tag *tag, const struct symbol *symbol, struct str *text)
{
	size_t length;
	const char *function;

	if (*symbol->module)
		str_format(text, "\\%s", str_last_part(symbol->module));
	if (!tag->with_function || !symbol->function)
		return;
	function = cxxname_base(symbol->function, &length);
	str_add_char(text, '\\');
	str_add_bytes(text, function, length);
}

// Frames are from the innermost outwards, so > (not >=) leaves a tie to the inner one. The hint's
// frame is the neighbour of the one that matched; a stack that ends there has no hint.
bool tags_find(const struct tags *tags, const struct names_stack *stack, struct str *tag)
{
	const struct tag *found = NULL;
	size_t found_at = 0;

	for (size_t i = 0; i < stack->count; i++) {
		const struct tag *one = tag_of(tags, stack->lines[i].symbol);

		if (!one || (found && one->priority <= found->priority))
			continue;
		found = one;
		found_at = i;
	}
	if (!found)
		return false;
	str_add(tag, found->name);
	if (found->hint == HINT_CALLEE && found_at > 0)
		add_hinted(found, stack->lines[found_at - 1].symbol, tag);
	if (found->hint == HINT_CALLER && found_at + 1 < stack->count)
		add_hinted(found, stack->lines[found_at + 1].symbol, tag);
	return true;
}
