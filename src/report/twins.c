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
	size_t text_count, text_capacity;
	struct map symbols; // address of a symbol -> number of its text
	struct map pairs;   // stack of the callers << 32 | text -> stack
	uint32_t stacks;
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
	mem_free(twins);
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

static uint32_t symbol_number(struct twins *twins, const struct reader *reader, process_id process,
			      const struct symbol *symbol)
{
	bool added;
	uint64_t *number = map_put(&twins->symbols, (uint64_t)(uintptr_t)symbol, &added);
	struct str text = { 0 };

	if (!added)
		return (uint32_t)*number;
	if (symbol->function)
		str_add_bytes(&text, symbol->function, name_length(symbol->function));
	else if (*symbol->module)
		str_format(&text, "+%" PRIx64, symbol->offset);
	str_add_char(&text, '\n');
	if (!is_program(reader, process, symbol->module))
		add_module(&text, symbol->module);
	*number = number_of(twins, str_get(&text));
	str_fini(&text);
	return (uint32_t)*number;
}

uint32_t twins_stack(struct twins *twins, struct names *names, const struct reader *reader,
		     process_id process, stack_id stack)
{
	struct names_stack named = names_stack(names, stack);
	uint32_t number = 0;

	for (size_t i = named.count; i-- > 0;) {
		uint32_t text = symbol_number(twins, reader, process, named.lines[i].symbol);
		bool added;
		uint64_t *pair = map_put(&twins->pairs, (uint64_t)number << 32 | text, &added);

		if (added)
			*pair = ++twins->stacks;
		number = (uint32_t)*pair;
	}
	return number;
}

uint32_t twins_program(struct twins *twins, const struct reader *reader, process_id id)
{
	const struct trace_process *process = reader_process(reader, id);
	const struct trace_process *first = reader_process(reader, 0);
	struct str text = { 0 };
	uint32_t number;

	if (!process || !first || strcmp(process->exe, first->exe) == 0)
		str_add(&text, "program");
	else
		str_format(&text, "program\n%s", names_file(process->exe));
	number = number_of(twins, str_get(&text));
	str_fini(&text);
	return number;
}
