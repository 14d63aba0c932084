// A stack passes or not whatever its allocation is, so each is decided once and kept as a byte.
// For example `--row function:parse --not-row module:/usr/lib/libz.so.1`: of stack 70 the first
// function that is no wrapper is parse, of ./app: it passes. Of stack 71 it is parse of libz: it
// fails by the second, whatever the first says. Of stack 72 it is main: no row that was asked for
// has it.
#include "report/ask/row_filter.h"

#include "base/mem.h"
#include "base/str.h"
#include "report/ask/labels.h"

#include <string.h>

enum row_key { ROW_FUNCTION, ROW_MODULE, ROW_STACK, ROW_KEYS };

static const char *const row_words[ROW_KEYS + 1] = { "function", "module", "stack", NULL };

enum { UNKNOWN, PASSES, FAILS };

struct row {
	enum row_key key;
	bool out;
	char *text;     // of a function or module; owned
	uint32_t label; // of a stack
};

struct row_filter {
	const struct reader *reader;
	struct names *names;
	struct labels *labels;       // of stacks
	struct frame_filter *frames; // borrowed
	struct row *rows;
	size_t count, capacity;
	bool wants;      // any row that is not to be left out
	uint8_t *stacks; // by stack
	size_t stacks_count;
};

// The key of "KEY:VALUE", and its value. The mistake names owner:WORD too, which the
// selection takes before it comes here.
static bool take_apart(const char *word, enum row_key *key, const char **value, struct err *err)
{
	const char *colon = strchr(word, ':');

	for (int i = 0; colon && row_words[i]; i++) {
		size_t length = strlen(row_words[i]);

		if ((size_t)(colon - word) != length || memcmp(word, row_words[i], length) != 0)
			continue;
		*key = (enum row_key)i;
		*value = colon + 1;
		return true;
	}
	return err_set(
		err, ERR_USAGE,
		"'%s' is not a row (try: function:NAME, module:PATH, stack:ID or owner:WORD)",
		word);
}

bool row_filter_check(const char *word, struct err *err)
{
	const char *value;
	enum row_key key;
	uint64_t number;

	if (!take_apart(word, &key, &value, err))
		return false;
	return key != ROW_STACK || str_parse_count(value, &number) ||
	       err_set(err, ERR_USAGE, "'%s' is not the number of a stack", value);
}

struct row_filter *row_filter_new(const struct reader *reader, struct names *names)
{
	struct row_filter *filter = mem_alloc(1, sizeof *filter);

	filter->reader = reader;
	filter->names = names;
	filter->labels = labels_new(LABELS_EXACT, reader, names);
	return filter;
}

void row_filter_free(struct row_filter *filter)
{
	if (!filter)
		return;
	for (size_t i = 0; i < filter->count; i++)
		mem_free(filter->rows[i].text);
	MEM_FREE(filter->rows, filter->stacks);
	labels_free(filter->labels);
	mem_free(filter);
}

// A stack is kept by its label, which all stacks share that are equal in every frame, whatever
// their ids are. A name that no stack has is no mistake.
bool row_filter_add(struct row_filter *filter, const char *word, bool out, struct err *err)
{
	struct row row = { .out = out };
	const char *value;
	uint64_t id = 0;

	if (!row_filter_check(word, err) || !take_apart(word, &row.key, &value, err))
		return false;
	if (row.key == ROW_STACK) {
		str_parse_count(value, &id);
		if (id >= reader_stacks_count(filter->reader))
			return err_set(err, ERR_USAGE, "the trace has no stack %s", value);
		row.label = labels_stack(filter->labels, (stack_id)id);
	} else {
		row.text = mem_copy_text(value);
	}
	*MEM_ADD(filter->rows, filter->count, filter->capacity) = row;
	filter->wants |= !out;
	return true;
}

void row_filter_and(struct row_filter *filter, struct frame_filter *frames)
{
	filter->frames = frames;
}

// Names are made as those of a table's rows are, so that what a table shows can be asked for.
static bool is_in(struct row_filter *filter, const struct row *row, stack_id stack)
{
	struct str text = { 0 };
	bool equal;

	ASSERT(row->key == ROW_STACK || row->text);
	if (row->key == ROW_STACK)
		return labels_stack(filter->labels, stack) == row->label;
	if (row->key == ROW_FUNCTION)
		names_add_function(filter->names, stack, false, &text);
	else
		names_add_module(filter->names, stack, false, &text);
	equal = strcmp(str_get(&text), row->text) == 0;
	str_fini(&text);
	return equal;
}

// Rows to leave out decide at once; of the others one is enough.
static bool find_out(struct row_filter *filter, stack_id stack)
{
	bool wanted = !filter->wants;

	ASSERT(stack < filter->stacks_count);
	if (filter->frames && !frame_filter_passes(filter->frames, stack))
		return false;
	for (size_t i = 0; i < filter->count; i++) {
		const struct row *row = &filter->rows[i];

		if ((row->out || !wanted) && is_in(filter, row, stack)) {
			if (row->out)
				return false;
			wanted = true;
		}
	}
	return wanted;
}

// The table of answers is made with the first question: many filters are never asked.
bool row_filter_passes(void *context, stack_id stack)
{
	struct row_filter *filter = context;

	if (!filter->stacks) {
		filter->stacks_count = reader_stacks_count(filter->reader);
		filter->stacks = mem_alloc(filter->stacks_count + 1, 1);
	}
	if (stack >= filter->stacks_count)
		return false;
	if (filter->stacks[stack] == UNKNOWN)
		filter->stacks[stack] = find_out(filter, stack) ? PASSES : FAILS;
	return filter->stacks[stack] == PASSES;
}
