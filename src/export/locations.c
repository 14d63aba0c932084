// For example frame 7 of the trace is `copy` inlined into `parse`: location 0 has lines 0 and 1,
// with the functions 0 (copy) and 1 (parse). When frame 9 is another place in `parse`, it is
// location 1 with line 2, of function 1 again. So a format writes each function and each text once.
#include "export/locations.h"

#include "base/mem.h"
#include "base/str.h"
#include "report/ask/cxxname.h"
#include "report/ask/wrappers.h"

#include <inttypes.h>

static bool is_function(const void *context, uint32_t position, const void *key)
{
	const struct locations *locations = context;
	const struct location_function *there = &locations->functions[position], *wanted = key;

	ASSERT(position < locations->functions_count);
	return there->name == wanted->name && there->file == wanted->file &&
	       there->module == wanted->module;
}

static uint32_t add_name(struct locations *locations, const struct symbol *symbol)
{
	struct str text = { 0 };
	uint32_t number;

	// Without a name: libx.so+0x1234, which is what a person would look up.
	if (symbol->function)
		return string_table_add(&locations->strings,
					locations->scoped ? cxxname_scoped(symbol->function)
							  : symbol->function);
	str_format(&text, "%s+0x%" PRIx64,
		   *symbol->module ? str_last_part(symbol->module) : "(no file)", symbol->offset);
	number = string_table_add(&locations->strings, str_get(&text));
	str_fini(&text);
	return number;
}

// Three numbers of texts are looked for, not texts: equal texts have equal numbers.
static uint32_t add_function(struct locations *locations, const struct symbol *symbol)
{
	const struct location_function function = {
		.name = add_name(locations, symbol),
		.file = string_table_add(&locations->strings, symbol->file),
		.module = string_table_add(&locations->strings, symbol->module),
		.known = symbol->function != NULL,
	};
	const uint64_t numbers[] = { function.name, function.file, function.module };
	uint32_t number = index_set_put(&locations->function_numbers, index_set_hash(numbers, 3),
					is_function, locations, &function,
					(uint32_t)locations->functions_count);

	ASSERT(number <= locations->functions_count);
	if (number == locations->functions_count) {
		*MEM_ADD(locations->functions, locations->functions_count,
			 locations->functions_capacity) = function;
	}
	return number;
}

// Pointers into the three lists are void afterwards: numbers are what is kept.
uint32_t locations_add(struct locations *locations, frame_id frame)
{
	bool added;
	uint64_t *number = map_put(&locations->numbers, frame, &added);
	const struct symbol *symbols;
	size_t count;

	// Each frame is named once, however many stacks have it: names cost a look into a file.
	if (!added)
		return (uint32_t)*number;
	*number = locations->count;
	symbols = names_find(locations->names, frame, &count);
	MEM_ROOM(locations->list, locations->capacity, locations->count + 1);
	MEM_ROOM(locations->lines, locations->lines_capacity, locations->lines_count + count);
	locations->list[locations->count] = (struct location){
		.frame = frame,
		.lines_first = (uint32_t)locations->lines_count,
		.lines_count = (uint32_t)count,
	};
	for (size_t i = 0; i < count; i++)
		locations->lines[locations->lines_count++] = (struct location_line){
			.function = add_function(locations, &symbols[i]),
			.line = symbols[i].line,
		};
	return (uint32_t)locations->count++;
}

// The recorder's own is the one through which operator new came to the library's.
bool locations_leave_out(const struct reader *reader, const struct trace_stack *node)
{
	const struct trace_frame *frame = reader_frame(reader, node->frame);
	const struct trace_module *module = frame ? reader_module(reader, frame->module) : NULL;

	return node->parent && module && wrappers_match_module(module->path, true);
}

size_t locations_of_stack(struct locations *locations, stack_id stack, uint32_t **numbers,
			  size_t *capacity)
{
	size_t depth = 0;

	while (stack) {
		const struct trace_stack *node = reader_stack(locations->reader, stack);

		if (!node)
			break;
		if (!locations_leave_out(locations->reader, node))
			*MEM_ADD(*numbers, depth, *capacity) =
				locations_add(locations, node->frame);
		// Parents come before their children in a trace. One that does not is damage: the
		// stack ends there, and so does the loop.
		stack = node->parent < stack ? node->parent : 0;
	}
	return depth;
}

void locations_fold_name(struct str *line, const char *name)
{
	if (line->length > 0)
		str_add_char(line, ';');
	for (; *name; name++)
		str_add_char(line, *name == ';'                     ? ':'
				   : *name == '\n' || *name == '\r' ? ' '
								    : *name);
}

// Inlined functions are parts of the line as others are, outermost first.
static void fold_frame(struct locations *locations, const struct trace_stack *node,
		       struct str *text)
{
	const struct location *location;
	uint32_t number;

	if (locations_leave_out(locations->reader, node))
		return;
	number = locations_add(locations, node->frame); // which may move the list
	location = &locations->list[number];
	ASSERT(location->lines_first + location->lines_count <= locations->lines_count);
	for (uint32_t i = location->lines_count; i-- > 0;) {
		uint32_t function = locations->lines[location->lines_first + i].function;

		locations_fold_name(text,
				    locations->strings.texts[locations->functions[function].name]);
	}
}

// The way up to a caller whose text is kept, and from there down again. Texts of callers are kept,
// not that of the stack itself: those are what stacks have in common.
void locations_fold(struct locations *locations, stack_id stack, struct str *line)
{
	struct str *text = &locations->fold;
	const struct trace_stack *node;
	size_t depth = 0;

	if (!locations->folds)
		locations->folds = mem_alloc(LOCATIONS_FOLDS, sizeof *locations->folds);
	str_clear(text);
	while (stack && (node = reader_stack(locations->reader, stack))) {
		const struct locations_fold *kept = &locations->folds[stack % LOCATIONS_FOLDS];

		if (kept->stack == stack) {
			str_add_bytes(text, kept->text.text, kept->text.length);
			break;
		}
		*MEM_ADD(locations->path, depth, locations->path_capacity) = stack;
		// Parents come before their children, as above.
		stack = node->parent < stack ? node->parent : 0;
	}
	while (depth-- > 0) {
		stack = locations->path[depth];
		fold_frame(locations, reader_stack(locations->reader, stack), text);
		if (depth > 0 && text->length <= LOCATIONS_FOLD_MAX) {
			struct locations_fold *kept = &locations->folds[stack % LOCATIONS_FOLDS];

			kept->stack = stack;
			str_clear(&kept->text);
			str_add_bytes(&kept->text, text->text, text->length);
		}
	}
	if (line->length > 0)
		str_add_char(line, ';');
	str_add(line, text->length ? str_get(text) : "(no stack)");
}

void locations_fini(struct locations *locations)
{
	for (size_t i = 0; locations->folds && i < LOCATIONS_FOLDS; i++)
		str_fini(&locations->folds[i].text);
	str_fini(&locations->fold);
	string_table_fini(&locations->strings);
	map_fini(&locations->numbers);
	index_set_fini(&locations->function_numbers);
	MEM_FREE(locations->folds, locations->path, locations->list, locations->lines,
		 locations->functions);
	*locations = (struct locations){ 0 };
}
