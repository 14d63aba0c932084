// A stack is a number for its callers and a number for the text of its innermost function, so
// equal stacks of both traces come to one number, and a stack whose callers are known takes one
// look-up. For example, of texts main = 1, f = 2, g = 3:
//
//     main          callers 0, text 1: stack 1
//     main, f       callers 1, text 2: stack 2
//     main, f, g    callers 2, text 3: stack 3
//
// In the other trace main, f, g is found as 0,1 then 1,2 then 2,3: stack 3 again, whatever its
// addresses. A frame of inlined functions is several steps.
//
// Where a thread begins is no part of it: each libc has other functions there (start_thread,
// clone3), and some systems have names for them.
#include "report/find/stack_match.h"

#include "base/index_set.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "trace/defs.h"

#include <inttypes.h>
#include <string.h>

enum { ROOT_STACKS = 64 }; // among which main is looked for

struct stack_match {
	struct map texts; // hash of a text -> its number; a collision takes the next hash
	char **text;      // by number; owned
	size_t text_count, text_capacity, text_bytes;
	struct map files; // number of a function without a part of its place -> what stands for it
	struct map pairs; // stack of the callers << 32 | text -> stack
	struct stack {
		uint32_t callers, text;
	} * stacks; // by number; the first is none
	size_t stacks_count, stacks_capacity;

	struct map programs; // of the first trace, by number
	uint32_t first;      // the program that it began with; 0: it has not had its turn

	// Of the trace whose turn it is.
	uint32_t renamed; // the program that it began with, where that is `first` by another name
	struct names *names;         // borrowed
	const struct reader *reader; // borrowed
	const char *root;            // file that main is in, borrowed; NULL: not known
	const char *root_module;     // the module that it is in
	bool root_looked;
	struct map symbols; // address of a symbol -> number of its text
	uint32_t *known;    // by stack: its number; 0: not yet known
	size_t known_count;
	stack_id *way; // scratch: from a stack to the first caller that is known
	size_t way_capacity;
};

struct stack_match *stack_match_new(void)
{
	return mem_alloc(1, sizeof(struct stack_match));
}

void stack_match_free(struct stack_match *stack_match)
{
	if (!stack_match)
		return;
	for (size_t i = 0; i < stack_match->text_count; i++)
		mem_free(stack_match->text[i]);
	mem_free(stack_match->text);
	MAP_FINI(&stack_match->texts, &stack_match->files, &stack_match->symbols,
		 &stack_match->pairs);
	mem_free(stack_match->stacks);
	map_fini(&stack_match->programs);
	MEM_FREE(stack_match->known, stack_match->way, stack_match);
}

static uint32_t number_of(struct stack_match *stack_match, const char *text);

// "program\n" in front keeps it apart from texts of frames, which have their line break after the
// function's name.
static uint32_t name_program(struct stack_match *stack_match, process_id id)
{
	const struct trace_process *process = reader_process(stack_match->reader, id);
	struct str text = { 0 };
	uint32_t number;

	str_format(&text, "program\n%s", process ? defs_program(process) : "");
	number = number_of(stack_match, str_get(&text));
	str_fini(&text);
	return number;
}

// app-1.0 of one trace is app-1.1 of the other, where each began with its own and has not the
// other's: anywhere, since either may have been started by a script.
static void match_programs(struct stack_match *stack_match)
{
	uint32_t count = reader_processes_count(stack_match->reader);
	uint32_t first = name_program(stack_match, 0);
	bool has_first = false;

	stack_match->renamed = 0;
	if (!stack_match->first) {
		stack_match->first = first;
		for (process_id id = 0; id < count; id++)
			map_put(&stack_match->programs, name_program(stack_match, id), NULL);
		return;
	}
	for (process_id id = 0; id < count; id++)
		has_first |= name_program(stack_match, id) == stack_match->first;
	if (!has_first && !map_find(&stack_match->programs, first))
		stack_match->renamed = first;
}

// Texts and pairs stay, so that numbers mean the same in both traces; what is by address or by
// stack of the old trace goes.
void stack_match_turn(struct stack_match *stack_match, struct names *names,
		      const struct reader *reader)
{
	stack_match->names = names;
	stack_match->reader = reader;
	stack_match->root = NULL;
	stack_match->root_looked = false;
	map_fini(&stack_match->symbols);
	mem_free(stack_match->known);
	stack_match->known_count = reader_stacks_count(reader) + (size_t)1;
	stack_match->known = mem_alloc(stack_match->known_count, sizeof *stack_match->known);
	match_programs(stack_match);
}

size_t stack_match_bytes(const struct stack_match *stack_match)
{
	return stack_match->text_bytes + stack_match->text_capacity * sizeof *stack_match->text +
	       map_bytes(&stack_match->texts) + map_bytes(&stack_match->files) +
	       map_bytes(&stack_match->pairs) + map_bytes(&stack_match->symbols) +
	       stack_match->stacks_capacity * sizeof *stack_match->stacks +
	       stack_match->known_count * sizeof *stack_match->known;
}

// From 1.
static uint32_t number_of(struct stack_match *stack_match, const char *text)
{
	for (uint64_t hash = index_set_hash_text(text);; hash++) {
		bool added;
		uint64_t *number = map_put(&stack_match->texts, hash, &added);

		ASSERT(added || *number < stack_match->text_count);
		if (!added && strcmp(stack_match->text[*number], text) == 0)
			return (uint32_t)*number + 1;
		if (!added)
			continue;
		MEM_ROOM(stack_match->text, stack_match->text_capacity,
			 stack_match->text_count + 1);
		stack_match->text[stack_match->text_count] = mem_copy_text(text);
		stack_match->text_bytes += strlen(text) + 1;
		*number = stack_match->text_count++;
		return (uint32_t)*number + 1;
	}
}

// Where the list of parameters begins that a name ends with, and what is after it: an inlined
// function may have a name without. "operator()" is a name. Its length, if there is none.
// Reads from the end: behind the last ')' only letters of qualifiers may stand.
static size_t without_parameters(const char *name, size_t length)
{
	size_t end = length, depth = 0;

	while (end > 0 && name[end - 1] != ')') // " const", " const &"
		if (!strchr(" &constvlaie", name[--end]))
			return length;
	for (size_t i = end; i-- > 0;) {
		depth += name[i] == ')';
		depth -= name[i] == '(';
		if (depth > 0)
			continue;
		if (i == 0 || (i >= 8 && strncmp(name + i - 8, "operator", 8) == 0))
			return length;
		return i;
	}
	return length;
}

// Where a function's name ends and what the compiler added begins, and its parameters.
static size_t name_length(const char *name)
{
	static const char *const added[] = { ".constprop.", ".isra.", ".part.",  ".cold",
					     ".lto_priv.",  ".llvm.", " [clone " };
	size_t length = names_without_address(name);

	if (name[length])
		return length;
	for (size_t i = 0; i < sizeof added / sizeof *added; i++) {
		const char *at = strstr(name, added[i]);

		if (at && at > name && (size_t)(at - name) < length)
			length = (size_t)(at - name);
	}
	return without_parameters(name, length);
}

// "run()::{lambda(int)#2}", and "run()::$_2" of clang: which one it is changes when another is
// written above it, so all of one function and type are one.
static void add_function(struct str *text, const char *name)
{
	size_t length = name_length(name);

	for (size_t i = 0; i < length; i++) {
		str_add_char(text, name[i]);
		if (name[i] == '#' || (i > 0 && name[i - 1] == '$' && name[i] == '_'))
			while (i + 1 < length && name[i + 1] >= '0' && name[i + 1] <= '9')
				i++;
	}
}

// "/usr/lib/libfoo.so.1.2" -> "libfoo.so".
static void add_module(struct str *text, const char *path)
{
	const char *name = str_last_part(path);
	const char *so = strstr(name, ".so");

	if (so && (so[3] == '.' || so[3] == '\0'))
		str_add_bytes(text, name, (size_t)(so + 3 - name));
	else
		str_add(text, name);
}

// The executable of the process that `module` is, or not.
static bool is_program(const struct reader *reader, process_id id, const char *module)
{
	const struct trace_process *process = reader_process(reader, id);

	return process && strcmp(process->exe, module) == 0;
}

// Where main was written, and the module that it is in. It is among the outermost frames, which
// are the first of a trace.
static void find_root(struct stack_match *stack_match)
{
	uint32_t count = reader_stacks_count(stack_match->reader);

	stack_match->root_looked = true;
	for (stack_id id = 1; id < count && id <= ROOT_STACKS && !stack_match->root; id++) {
		const struct trace_stack *stack = reader_stack(stack_match->reader, id);
		size_t symbols_count;
		const struct symbol *symbols =
			names_find(stack_match->names, stack ? stack->frame : 0, &symbols_count);

		for (size_t i = 0; i < symbols_count; i++)
			if (symbols[i].function && strcmp(symbols[i].function, "main") == 0 &&
			    symbols[i].file && !names_is_script(&symbols[i])) {
				stack_match->root = symbols[i].file;
				stack_match->root_module = symbols[i].module;
			}
	}
}

// The path of a source file of the program, from the folder on that it has in common with main's:
// a build in another folder has the same. NULL: they have none in common, or it is no file of C, in
// which alone a name may stand for two functions.
static const char *place_of(struct stack_match *stack_match, const struct symbol *symbol)
{
	const char *file = symbol->file;
	size_t common = 0;

	if (!file || !str_ends_with(file, ".c"))
		return NULL;
	if (!stack_match->root_looked)
		find_root(stack_match);
	if (!stack_match->root || strcmp(symbol->module, stack_match->root_module) != 0 ||
	    (*file == '/') != (*stack_match->root == '/'))
		return NULL;
	for (size_t i = 0; file[i] && file[i] == stack_match->root[i]; i++)
		if (file[i] == '/')
			common = i + 1;
	// Of "/usr/src/a.c" and "/home/b.c" only "/" is common, which says nothing.
	return *file == '/' && common <= 1 ? NULL : file + common;
}

// The number of what `wider` stands for, narrowed to `part`; NULL: that is not known. What was met
// without is that of any part from then on: one of the builds has no lines. Else the first part's
// stands for those that are met without.
static uint32_t narrow(struct stack_match *stack_match, uint32_t wider, struct str *text,
		       const char *part)
{
	bool added;
	uint64_t *only = map_put(&stack_match->files, wider, &added);
	uint32_t number = wider;

	if (!added && (!part || *only == wider))
		return (uint32_t)*only;
	if (part) {
		str_add_char(text, '\n');
		str_add(text, part);
		number = number_of(stack_match, str_get(text));
	}
	if (added)
		*only = number;
	return number;
}

static uint32_t number_in_file(struct stack_match *stack_match, struct str *text,
			       const struct symbol *symbol)
{
	uint32_t number = number_of(stack_match, str_get(text));
	struct str place = { 0 };

	if (symbol->file && names_is_script(symbol)) {
		names_add_place(stack_match->names, symbol, &place);
		number = narrow(stack_match, number, text, str_get(&place));
		str_fini(&place);
		return number;
	}
	number = narrow(stack_match, number, text,
			symbol->file ? str_last_part(symbol->file) : NULL);
	return narrow(stack_match, number, text, place_of(stack_match, symbol));
}

// "function\nmodule", and "\nfile"; the program itself has no module, so that app-1.0 and app-1.1
// agree, and a script is its file.
static uint32_t text_of(struct stack_match *stack_match, process_id process,
			const struct symbol *symbol)
{
	struct str text = { 0 };
	uint32_t number;

	if (symbol->function)
		add_function(&text, symbol->function);
	else if (*symbol->module)
		str_format(&text, "+%" PRIx64, symbol->offset);
	str_add_char(&text, '\n');
	if (!is_program(stack_match->reader, process, symbol->module) && !names_is_script(symbol))
		add_module(&text, symbol->module);
	number = symbol->function ? number_in_file(stack_match, &text, symbol)
				  : number_of(stack_match, str_get(&text));
	str_fini(&text);
	return number;
}

// By the symbol's address: names gives the same one for a frame each time.
static uint32_t symbol_number(struct stack_match *stack_match, process_id process,
			      const struct symbol *symbol)
{
	bool added;
	uint64_t *number = map_put(&stack_match->symbols, (uint64_t)(uintptr_t)symbol, &added);

	if (added)
		*number = text_of(stack_match, process, symbol);
	return (uint32_t)*number;
}

// The number of a stack: of its callers and the text of its innermost function. From 1.
static uint32_t pair_of(struct stack_match *stack_match, uint32_t callers, uint32_t text)
{
	bool added;
	uint64_t *pair = map_put(&stack_match->pairs, (uint64_t)callers << 32 | text, &added);

	if (added) {
		stack_match->stacks_count += !stack_match->stacks_count; // 0 is no stack
		MEM_ROOM(stack_match->stacks, stack_match->stacks_capacity,
			 stack_match->stacks_count + 1);
		stack_match->stacks[stack_match->stacks_count] = (struct stack){ callers, text };
		*pair = stack_match->stacks_count++;
	}
	ASSERT(*pair > 0 && callers < stack_match->stacks_count);
	return (uint32_t)*pair;
}

// What calls main, or what makes a library ready.
static bool is_begin(const struct symbol *symbol)
{
	return names_is_root(symbol) ||
	       (!names_is_script(symbol) && strncmp(str_last_part(symbol->module), "ld-", 3) == 0);
}

// What a frame, with all that is inlined there, makes of the stack of its callers; `whole`: be it
// where the thread begins. Frames that cannot be known are of generated code, very many perhaps: no
// names are kept of them.
static uint32_t add_frame(struct stack_match *stack_match, process_id process, uint32_t callers,
			  frame_id frame, bool whole)
{
	const struct symbol *symbols;
	struct symbol place;
	size_t count;

	if (names_nobody_knows(stack_match->names, frame, &place))
		return pair_of(stack_match, callers, text_of(stack_match, process, &place));
	symbols = names_find(stack_match->names, frame, &count);
	for (size_t i = count; i-- > 0;) {
		const char *function = symbols[i].function;

		// What calls it is _start, of whatever name.
		if (function && strncmp(function, "__libc_start_", 13) == 0)
			callers = 0;
		if (callers || whole || !is_begin(&symbols[i]))
			callers = pair_of(stack_match, callers,
					  symbol_number(stack_match, process, &symbols[i]));
	}
	return callers;
}

// Where all frames are of the thread's beginning nothing is left; then the innermost frame alone is
// the stack, so that no two such stacks are the same by being empty.
uint32_t stack_match_stack(struct stack_match *stack_match, process_id process, stack_id stack)
{
	const struct trace_stack *node;
	stack_id id = stack;
	uint32_t number;
	size_t count = 0;

	while (id && id < stack_match->known_count && !stack_match->known[id] &&
	       (node = reader_stack(stack_match->reader, id))) {
		*MEM_ADD(stack_match->way, count, stack_match->way_capacity) = id;
		id = node->parent < id ? node->parent : 0;
	}
	ASSERT(stack_match->reader && stack_match->known); // somebody's turn
	number = id < stack_match->known_count ? stack_match->known[id] : 0;
	while (count-- > 0) {
		id = stack_match->way[count];
		number = add_frame(stack_match, process, number,
				   reader_stack(stack_match->reader, id)->frame, false);
		stack_match->known[id] = number;
	}
	node = number ? NULL : reader_stack(stack_match->reader, stack);
	return node ? add_frame(stack_match, process, 0, node->frame, true) : number;
}

size_t stack_match_frames(const struct stack_match *stack_match, uint32_t stack, uint32_t *frames,
			  size_t max)
{
	size_t count = 0;

	for (; stack && count < max; stack = stack_match->stacks[stack].callers) {
		ASSERT(stack < stack_match->stacks_count);
		frames[count++] = stack_match->stacks[stack].text;
	}
	return count;
}

uint32_t stack_match_program(struct stack_match *stack_match, process_id id)
{
	uint32_t number = name_program(stack_match, id);

	return number == stack_match->renamed ? stack_match->first : number;
}
