#include "report/twins.h"

#include "base/index_set.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"

#include <inttypes.h>
#include <string.h>

struct twins {
	struct map texts; // hash of a text -> its number; a collision takes the next hash
	char **text;      // by number; owned
	size_t text_count, text_capacity, text_bytes;
	struct map pairs; // stack of the callers << 32 | text -> stack
	uint32_t stacks;

	struct map programs; // of the first trace, by number
	uint32_t first;      // the program that it began with; 0: it has not had its turn

	// Of the trace whose turn it is.
	uint32_t renamed; // the program that it began with, where that is `first` by another name
	struct names *names;         // borrowed
	const struct reader *reader; // borrowed
	struct map symbols;          // address of a symbol -> number of its text
	uint32_t *known;             // by stack: its number; 0: not yet known
	size_t known_count;
	stack_id *way; // scratch: from a stack to the first caller that is known
	size_t way_capacity;
};

struct twins *twins_new(void)
{
	return mem_alloc(1, sizeof(struct twins));
}

void twins_free(struct twins *twins)
{
	if (!twins)
		return;
	for (size_t i = 0; i < twins->text_count; i++)
		mem_free(twins->text[i]);
	mem_free(twins->text);
	map_fini(&twins->texts);
	map_fini(&twins->symbols);
	map_fini(&twins->pairs);
	map_fini(&twins->programs);
	mem_free(twins->known);
	mem_free(twins->way);
	mem_free(twins);
}

static uint32_t number_of(struct twins *twins, const char *text);

static uint32_t name_program(struct twins *twins, process_id id)
{
	const struct trace_process *process = reader_process(twins->reader, id);
	struct str text = { 0 };
	uint32_t number;

	str_format(&text, "program\n%s", process ? names_file(process->exe) : "");
	number = number_of(twins, str_get(&text));
	str_fini(&text);
	return number;
}

// app-1.0 of one trace is app-1.1 of the other, where each began with its own and has not the
// other's: anywhere, since either may have been started by a script.
static void match_programs(struct twins *twins)
{
	uint32_t count = reader_processes_count(twins->reader);
	uint32_t first = name_program(twins, 0);
	bool has_first = false;

	twins->renamed = 0;
	if (!twins->first) {
		twins->first = first;
		for (process_id id = 0; id < count; id++)
			map_put(&twins->programs, name_program(twins, id), NULL);
		return;
	}
	for (process_id id = 0; id < count; id++)
		has_first |= name_program(twins, id) == twins->first;
	if (!has_first && !map_find(&twins->programs, first))
		twins->renamed = first;
}

void twins_turn(struct twins *twins, struct names *names, const struct reader *reader)
{
	twins->names = names;
	twins->reader = reader;
	map_fini(&twins->symbols);
	mem_free(twins->known);
	twins->known_count = reader_stacks_count(reader) + (size_t)1;
	twins->known = mem_alloc(twins->known_count, sizeof *twins->known);
	match_programs(twins);
}

size_t twins_bytes(const struct twins *twins)
{
	return twins->text_bytes + twins->text_capacity * sizeof *twins->text +
	       map_bytes(&twins->texts) + map_bytes(&twins->pairs) + map_bytes(&twins->symbols) +
	       twins->known_count * sizeof *twins->known;
}

// From 1.
static uint32_t number_of(struct twins *twins, const char *text)
{
	for (uint64_t hash = index_set_hash_text(text);; hash++) {
		bool added;
		uint64_t *number = map_put(&twins->texts, hash, &added);

		if (!added && strcmp(twins->text[*number], text) == 0)
			return (uint32_t)*number + 1;
		if (!added)
			continue;
		twins->text = mem_grow(twins->text, &twins->text_capacity, twins->text_count + 1,
				       sizeof *twins->text);
		twins->text[twins->text_count] = mem_copy_text(text);
		twins->text_bytes += strlen(text) + 1;
		*number = twins->text_count++;
		return (uint32_t)*number + 1;
	}
}

// Where a function's name ends and what the compiler added begins.
static size_t name_length(const char *name)
{
	static const char *const added[] = { ".constprop.", ".isra.", ".part.",  ".cold",
					     ".lto_priv.",  ".llvm.", " [clone " };
	size_t length = strlen(name);

	for (size_t i = 0; i < sizeof added / sizeof *added; i++) {
		const char *at = strstr(name, added[i]);

		if (at && at > name && (size_t)(at - name) < length)
			length = (size_t)(at - name);
	}
	return length;
}

// "/usr/lib/libfoo.so.1.2" -> "libfoo.so".
static void add_module(struct str *text, const char *path)
{
	const char *name = names_file(path);
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

static uint32_t text_of(struct twins *twins, process_id process, const struct symbol *symbol)
{
	struct str text = { 0 };
	uint32_t number;

	if (symbol->function)
		str_add_bytes(&text, symbol->function, name_length(symbol->function));
	else if (*symbol->module)
		str_format(&text, "+%" PRIx64, symbol->offset);
	str_add_char(&text, '\n');
	if (!is_program(twins->reader, process, symbol->module))
		add_module(&text, symbol->module);
	number = number_of(twins, str_get(&text));
	str_fini(&text);
	return number;
}

static uint32_t symbol_number(struct twins *twins, process_id process, const struct symbol *symbol)
{
	bool added;
	uint64_t *number = map_put(&twins->symbols, (uint64_t)(uintptr_t)symbol, &added);

	if (added)
		*number = text_of(twins, process, symbol);
	return (uint32_t)*number;
}

static uint32_t pair_of(struct twins *twins, uint32_t callers, uint32_t text)
{
	bool added;
	uint64_t *pair = map_put(&twins->pairs, (uint64_t)callers << 32 | text, &added);

	if (added)
		*pair = ++twins->stacks;
	return (uint32_t)*pair;
}

// What a frame, with all that is inlined there, makes of the stack of its callers. Frames that
// nobody can know are of generated code, very many perhaps: no names are kept of them.
static uint32_t add_frame(struct twins *twins, process_id process, uint32_t callers, frame_id frame)
{
	const struct symbol *symbols;
	struct symbol place;
	size_t count;

	if (names_nobody_knows(twins->names, frame, &place))
		return pair_of(twins, callers, text_of(twins, process, &place));
	symbols = names_find(twins->names, frame, &count);
	for (size_t i = count; i-- > 0;)
		callers = pair_of(twins, callers, symbol_number(twins, process, &symbols[i]));
	return callers;
}

uint32_t twins_stack(struct twins *twins, process_id process, stack_id stack)
{
	const struct trace_stack *node;
	stack_id id = stack;
	uint32_t number;
	size_t count = 0;

	while (id && id < twins->known_count && !twins->known[id] &&
	       (node = reader_stack(twins->reader, id))) {
		twins->way =
			mem_grow(twins->way, &twins->way_capacity, count + 1, sizeof *twins->way);
		twins->way[count++] = id;
		id = node->parent < id ? node->parent : 0;
	}
	number = id < twins->known_count ? twins->known[id] : 0;
	while (count-- > 0) {
		id = twins->way[count];
		number = add_frame(twins, process, number, reader_stack(twins->reader, id)->frame);
		twins->known[id] = number;
	}
	return number;
}

uint32_t twins_program(struct twins *twins, process_id id)
{
	uint32_t number = name_program(twins, id);

	return number == twins->renamed ? twins->first : number;
}
