// Names are texts, and making one costs a look at a stack, so each value of a cell is named once
// and kept by its number. For example by function: stacks 7 and 9 both have `parse` as their first
// function of the program's own; both become the name "parse", and so one number.
#include "report/draw/plot_keys.h"

#include "base/mem.h"
#include "base/str.h"
#include "engine/space/space.h"
#include "report/ask/own_heap.h"
#include "trace/defs.h"

#include <string.h>

enum { STACK_FRAMES = 4 };

void plot_keys_init(struct plot_keys *keys, struct query_context *asked, enum plot_key key)
{
	ASSERT(key < PLOT_KEYS);
	*keys = (struct plot_keys){ .asked = asked, .key = key };
}

void plot_keys_fini(struct plot_keys *keys)
{
	for (size_t i = 0; i < keys->count; i++)
		mem_free(keys->names[i]);
	mem_free(keys->names);
	MAP_FINI(&keys->by_text, &keys->by_value);
	*keys = (struct plot_keys){ 0 };
}

// The number of a name; texts that hash alike take the next key.
static uint32_t number_of(struct plot_keys *keys, const char *name)
{
	uint64_t hash = 14695981039346656037u; // FNV-1a
	uint64_t *number;
	bool added;

	for (const char *at = name; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 1099511628211u;
	for (;; hash++) {
		number = map_put(&keys->by_text, hash, &added);
		if (added)
			break;
		if (strcmp(keys->names[*number], name) == 0)
			return (uint32_t)*number;
	}
	*number = keys->count;
	MEM_ROOM(keys->names, keys->capacity, keys->count + 1);
	keys->names[keys->count] = mem_copy_text(name);
	return (uint32_t)keys->count++;
}

// "make 1234", and "cc1 1234 (exec 1)" for the next image of that process: a pid alone would join
// both.
static void name_process(const struct query_context *asked, process_id id, struct str *name)
{
	const struct trace_process *process = reader_process(asked->reader, id);

	str_format(name, "%s %u", defs_program(process), process->pid);
	if (process->generation > 0)
		str_format(name, " (exec %u)", process->generation);
}

static void name_thread(const struct query_context *asked, thread_id id, struct str *name)
{
	const struct trace_thread *thread;

	if (id >= reader_threads_count(asked->reader)) {
		str_add(name, "(no thread)");
		return;
	}
	thread = reader_thread(asked->reader, id);
	str_format(name, "%s %u", thread->name[0] ? thread->name : "thread", thread->tid);
}

// Mappings of a runtime are called by its heap, others "(virtual memory)".
static void name_heap(const struct query_context *asked, const struct window_cell *cell,
		      struct str *name)
{
	char text[READER_HEAP_TEXT];

	if (cell->layer != WINDOW_HEAP) {
		const char *heap = own_heap_mapped(
			asked->names, reader_process(asked->reader, cell->process), cell->stack);

		str_add(name, heap && cell->owner == SPACE_PROGRAM ? heap : "(virtual memory)");
		return;
	}
	if (cell->heap == 0) {
		str_add(name, "malloc");
		return;
	}
	str_add(name, reader_heap_name(reader_heap(asked->reader, cell->heap), text));
}

// Code without a name is "libfoo.so+0x1234", by its offset in the file, which is the same in every
// run.
static void name_symbol(const struct symbol *symbol, struct str *name)
{
	if (symbol->function)
		str_add(name, symbol->function);
	else
		str_format(name, "%s+0x%llx",
			   symbol->module[0] ? str_last_part(symbol->module) : "?",
			   (unsigned long long)symbol->offset);
}

// From the program's own innermost function outwards: one function, or four for a stack.
static void name_stack(const struct plot_keys *keys, stack_id id, struct str *name)
{
	struct names_stack stack = names_stack(keys->asked->names, id);
	size_t shown = keys->key == PLOT_BY_STACK ? STACK_FRAMES : 1;

	if (stack.count == 0) {
		str_add(name, "(no stack)");
		return;
	}
	if (keys->key == PLOT_BY_MODULE) {
		const char *module = stack.lines[stack.user].symbol->module;

		str_add(name, module[0] ? str_last_part(module) : "(generated code)");
		return;
	}
	for (size_t i = 0; i < shown && stack.user + i < stack.count; i++) {
		str_add(name, i > 0 ? " < " : "");
		name_symbol(stack.lines[stack.user + i].symbol, name);
	}
}

// A block has no owner but the heap: owners divide up mappings. Where no key was asked for, all
// cells are one group.
static void name_value(const struct plot_keys *keys, const struct window_cell *cell,
		       struct str *name)
{
	switch (keys->key) {
	case PLOT_BY_PROCESS:
		name_process(keys->asked, cell->process, name);
		break;
	case PLOT_BY_HEAP:
		name_heap(keys->asked, cell, name);
		break;
	case PLOT_BY_THREAD:
		name_thread(keys->asked, cell->thread, name);
		break;
	case PLOT_BY_OWNER:
		str_add(name, cell->layer == WINDOW_VM ? space_owner_word(cell->owner) : "heap");
		break;
	case PLOT_BY_MODULE:
	case PLOT_BY_FUNCTION:
	case PLOT_BY_STACK:
		name_stack(keys, cell->stack, name);
		break;
	default:
		str_add(name, "all");
		break;
	}
}

// What the name of the cell's value depends on, as a number: of a mapping's heap that is its owner,
// its process (33 million have room) and its stack.
static uint64_t value_of(const struct plot_keys *keys, const struct window_cell *cell)
{
	_Static_assert(SPACE_OWNERS_COUNT <= 1 << 5, "an owner has five bits");
	switch (keys->key) {
	case PLOT_BY_PROCESS:
		return cell->process;
	case PLOT_BY_HEAP:
		return cell->layer == WINDOW_HEAP
			       ? cell->heap
			       : (uint64_t)cell->layer << 62 | (uint64_t)cell->owner << 57 |
					 (uint64_t)(cell->process & 0x1ffffff) << 32 | cell->stack;
	case PLOT_BY_THREAD:
		return cell->thread;
	case PLOT_BY_OWNER:
		return (uint64_t)cell->layer << 32 | cell->owner;
	case PLOT_BY_MODULE:
	case PLOT_BY_FUNCTION:
	case PLOT_BY_STACK:
		return cell->stack;
	default:
		return 0;
	}
}

// Two values with one name are one curve: two stacks with the same innermost function, say, where
// the key is that.
uint32_t plot_keys_of(struct plot_keys *keys, const struct window_cell *cell)
{
	bool added;
	uint64_t *number = map_put(&keys->by_value, value_of(keys, cell), &added);

	if (added) {
		struct str name = { 0 };

		name_value(keys, cell, &name);
		*number = number_of(keys, str_get(&name));
		str_fini(&name);
	}
	return (uint32_t)*number;
}
