// For example, biome of npm is a stripped program with jemalloc inside, and asks libc for 46
// blocks. At its end the trace gets the note "jemalloc", seen: stripped, and the user a line: what
// it allocates with jemalloc is not recorded.
#include "collect/hidden_allocator.h"

#include "base/mem.h"

#include <string.h>

static const char *const kinds[HIDDEN_ALLOCATOR_KINDS] = {
	[HIDDEN_ALLOCATOR_JEMALLOC] = "jemalloc",
	[HIDDEN_ALLOCATOR_MIMALLOC] = "mimalloc",
	[HIDDEN_ALLOCATOR_TCMALLOC] = "tcmalloc",
	[HIDDEN_ALLOCATOR_GO] = "Go",
	[HIDDEN_ALLOCATOR_NODE] = "node",
	[HIDDEN_ALLOCATOR_JAVA] = "java",
	[HIDDEN_ALLOCATOR_NET] = ".NET",
	[HIDDEN_ALLOCATOR_RUBY] = "ruby",
	[HIDDEN_ALLOCATOR_PHP] = "php",
	[HIDDEN_ALLOCATOR_PERL] = "perl",
	[HIDDEN_ALLOCATOR_GRAAL] = "GraalVM native image",
};

const struct hidden_allocator_words hidden_allocator_texts[HIDDEN_ALLOCATOR_ALLOCATORS] = {
	[HIDDEN_ALLOCATOR_JEMALLOC] = { "<jemalloc>: ", 0 },
	[HIDDEN_ALLOCATOR_MIMALLOC] = { "mimalloc: warning: ", 8 },
	[HIDDEN_ALLOCATOR_TCMALLOC] = { "tcmalloc.max_total_thread_cache_bytes", 12 },
};

void hidden_allocator_fini(struct hidden_allocator_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		MEM_FREE(list->list[i].path, list->list[i].name);
	}
	mem_free(list->list);
	str_fini(&list->entered);
	*list = (struct hidden_allocator_list){ 0 };
}

// Two files of one number are rarer than anything here.
static uint64_t hidden_allocator_number(const char *path, uint64_t size_bytes, uint64_t mtime_ns)
{
	uint64_t number = size_bytes * UINT64_C(0x9e3779b97f4a7c15) + mtime_ns;

	for (; *path; path++)
		number = (number ^ (uint8_t)*path) * UINT64_C(0x100000001b3);
	return number;
}

// `known` is of the whole recording: a file is looked into once, however many processes map it. A
// value is 0 where it has none, else its kind and 1, and that many kinds more with symbols.
void hidden_allocator_look(struct hidden_allocator_list *list, struct map *known, const char *path,
			   const char *name, uint64_t size_bytes, uint64_t mtime_ns)
{
	uint64_t number = hidden_allocator_number(path, size_bytes, mtime_ns), *found;
	bool added, symbols = false;

	found = map_put(known, number, &added);
	if (added) {
		*found = (uint64_t)(hidden_allocator_in(path, &symbols) + 1);
		if (*found > 0 && symbols)
			*found += HIDDEN_ALLOCATOR_KINDS;
	}
	if (*found == 0)
		return;
	ASSERT(*found <= 2 * HIDDEN_ALLOCATOR_KINDS);
	*MEM_ADD(list->list, list->count, list->capacity) = (struct hidden_allocator){
		.what = kinds[(*found - 1) % HIDDEN_ALLOCATOR_KINDS],
		.language = (*found - 1) % HIDDEN_ALLOCATOR_KINDS >= HIDDEN_ALLOCATOR_ALLOCATORS,
		.symbols = *found > HIDDEN_ALLOCATOR_KINDS,
		.path = mem_copy_text(path),
		.name = mem_copy_text(name),
	};
}

void hidden_allocator_enter(struct hidden_allocator_list *list, const char *name)
{
	str_format(&list->entered, "\n%s\n", name);
}

// Names are kept in one text, each between ends of lines, so that "malloc" is not found in
// "jemalloc".
bool hidden_allocator_is_entered(const struct hidden_allocator_list *list, const char *name)
{
	struct str line = { 0 };
	bool is;

	str_format(&line, "\n%s\n", name);
	is = list->entered.length > 0 && strstr(str_get(&list->entered), str_get(&line));
	str_fini(&line);
	return is;
}
