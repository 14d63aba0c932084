// `numbers` has for each frame how many functions it has and then which. Say frame 3 is `copy`
// inlined into `parse`, and frame 9 is `parse` again: functions 1 and 2 are made, numbers is { 2,
// 1, 2, 1, 2 }, frames[3] is 1 and frames[9] is 4 (where they begin, and one). So a walk through
// all stacks compares numbers and no texts, after the first time that a frame is met.
#include "report/ask/functions.h"

#include "base/index_set.h"
#include "base/mem.h"
#include "report/ask/wrappers.h"

#include <string.h>

struct function {
	const struct symbol *symbol;
	bool wraps, begins;
};

struct functions {
	const struct reader *reader;
	struct names *names;
	bool plain;
	struct function *list; // by number
	size_t count, capacity;
	struct index_set by_symbol;
	uint32_t *frames; // by frame id: where its numbers stand in `numbers`, + 1; 0: not yet
	uint32_t frames_count;
	uint32_t *numbers; // for each frame how many, then these
	size_t numbers_count, numbers_capacity;
};

struct functions *functions_new(const struct reader *reader, struct names *names, bool plain)
{
	struct functions *functions = mem_alloc(1, sizeof *functions);

	functions->reader = reader;
	functions->names = names;
	functions->plain = plain;
	functions->list = mem_grow(NULL, &functions->capacity, 1, sizeof *functions->list);
	// What has no stack: a number of its own, so that it can be a row.
	functions->list[FUNCTIONS_NONE] = (struct function){ 0 };
	functions->count = 1;
	functions->frames_count = reader_frames_count(reader);
	functions->frames =
		mem_alloc(functions->frames_count + (size_t)1, sizeof *functions->frames);
	return functions;
}

void functions_free(struct functions *functions)
{
	if (!functions)
		return;
	mem_free(functions->list);
	index_set_fini(&functions->by_symbol);
	MEM_FREE(functions->frames, functions->numbers, functions);
}

// A script is told apart by its file.
static const char *mapped_from(const struct symbol *symbol)
{
	return names_is_script(symbol) ? "" : symbol->module;
}

// With a name, the name and its module; without one, the offset there. Those of several source
// files have one hash.
static uint64_t hash_symbol(const struct symbol *symbol)
{
	const uint64_t numbers[] = {
		index_set_hash_text(mapped_from(symbol)),
		symbol->function ? index_set_hash_text(symbol->function) : symbol->offset,
	};

	return index_set_hash(numbers, 2);
}

// Where the source file is not known of one of them, it tells nothing apart.
static int compare_files(const struct symbol *a, const struct symbol *b)
{
	return !a->file || !b->file || a->file == b->file ? 0 : strcmp(a->file, b->file);
}

// Those without a name come last, by module and offset. Texts of one place are the same pointer
// most of the time, which saves the comparison.
static int compare_symbols(const struct symbol *a, const struct symbol *b)
{
	const char *of_a = mapped_from(a), *of_b = mapped_from(b);
	int order;

	if (!a->function || !b->function) {
		if (a->function || b->function)
			return a->function ? -1 : 1;
		order = of_a == of_b ? 0 : strcmp(of_a, of_b);
		return order ? order : (a->offset > b->offset) - (a->offset < b->offset);
	}
	order = a->function == b->function ? 0 : strcmp(a->function, b->function);
	if (order == 0 && of_a != of_b)
		order = strcmp(of_a, of_b);
	return order ? order : compare_files(a, b);
}

static bool is_symbol(const void *context, uint32_t position, const void *key)
{
	const struct functions *functions = context;

	ASSERT(position < functions->count);
	return compare_symbols(functions->list[position].symbol, key) == 0;
}

// The number of a function; made, if it is new. `symbol` is kept, and lives as long as the names.
static uint32_t find(struct functions *functions, frame_id frame, const struct symbol *symbol)
{
	uint32_t count = (uint32_t)functions->count;
	uint32_t number = index_set_put(&functions->by_symbol, hash_symbol(symbol), is_symbol,
					functions, symbol, count);
	struct function *found;

	if (number < count) {
		found = &functions->list[number];
		// From here on its file tells it apart from those of others.
		if (!found->symbol->file && symbol->file)
			found->symbol = symbol;
		return number;
	}
	found = MEM_ADD(functions->list, functions->count, functions->capacity);
	*found = (struct function){ .symbol = symbol };
	if (!functions->plain) {
		found->wraps = names_passes_on(functions->names, frame, symbol);
		found->begins = wrappers_match_root(symbol->function);
	}
	return number;
}

// Where the frame's numbers begin in `numbers`, + 1.
static uint32_t add_frame(struct functions *functions, frame_id frame)
{
	size_t count, at = functions->numbers_count;
	const struct symbol *symbols = names_find(functions->names, frame, &count);

	MEM_ROOM(functions->numbers, functions->numbers_capacity, at + count + 1);
	functions->numbers_count += count + 1;
	ASSERT(functions->numbers_count < UINT32_MAX);
	functions->numbers[at] = (uint32_t)count;
	for (size_t i = 0; i < count; i++)
		functions->numbers[at + 1 + i] = find(functions, frame, &symbols[i]);
	return (uint32_t)at + 1;
}

// A frame that the trace does not have is as frame 0: one function without a name.
const uint32_t *functions_at(struct functions *functions, frame_id frame, size_t *count)
{
	uint32_t *at = &functions->frames[frame < functions->frames_count ? frame : 0];

	if (!*at)
		*at = add_frame(functions, frame < functions->frames_count ? frame : 0);
	*count = functions->numbers[*at - 1];
	return functions->numbers + *at;
}

uint32_t functions_count(const struct functions *functions)
{
	return (uint32_t)functions->count;
}

const struct symbol *functions_symbol(const struct functions *functions, uint32_t function)
{
	return functions->list[function].symbol;
}

bool functions_wraps(const struct functions *functions, uint32_t function)
{
	return functions->list[function].wraps;
}

bool functions_begins(const struct functions *functions, uint32_t function)
{
	return functions->list[function].begins;
}

// No stack at all comes first.
int functions_compare(const struct functions *functions, uint32_t left, uint32_t right)
{
	if (left == FUNCTIONS_NONE || right == FUNCTIONS_NONE)
		return (left != FUNCTIONS_NONE) - (right != FUNCTIONS_NONE);
	return left == right ? 0
			     : compare_symbols(functions->list[left].symbol,
					       functions->list[right].symbol);
}
