// mem_grow doubles from 16 items on: for 17 of them it makes room for 32.
#include "base/mem.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_NO_MEMORY = 3, CAPACITY_FIRST = 16, LAST_WORDS_BYTES = 256 };

static void say_on_stderr(const char *text)
{
	fprintf(stderr, "tidemark: %s\n", text);
}

static void (*say)(const char *text) = say_on_stderr;

// The collector has no stderr: it says its last words to the process that started it.
void mem_say_by(void (*how)(const char *text))
{
	say = how ? how : say_on_stderr;
}

// On the stack: there is no memory to be had where this is called.
__attribute__((format(printf, 1, 2))) static void say_last(const char *format, ...)
{
	char text[LAST_WORDS_BYTES];
	va_list values;

	va_start(values, format);
	vsnprintf(text, sizeof text, format, values);
	va_end(values);
	say(text);
}

// exit, not abort: what was opened is closed, and the exit code says why.
_Noreturn void mem_none(size_t count, size_t size_bytes)
{
	// Both factors are named: their product may be what overflowed.
	say_last("not enough memory for %zu x %zu bytes", count, size_bytes);
	exit(EXIT_NO_MEMORY);
}

void *mem_alloc(size_t count, size_t size_bytes)
{
	// calloc checks the product. A size of 0 still gets an address of its own.
	void *ptr = calloc(count ? count : 1, size_bytes ? size_bytes : 1);

	if (!ptr)
		mem_none(count, size_bytes);
	return ptr;
}

// Of 0 items it gives one byte, for a NULL would mean that there is no memory.
void *mem_resize(void *old, size_t count, size_t size_bytes)
{
	size_t size;
	void *ptr = NULL;

	if (!__builtin_mul_overflow(count ? count : 1, size_bytes ? size_bytes : 1, &size))
		ptr = realloc(old, size);
	if (!ptr)
		mem_none(count, size_bytes);
	return ptr;
}

char *mem_copy_text(const char *text)
{
	return mem_copy_bytes(text, strlen(text));
}

char *mem_copy_bytes(const void *bytes, size_t length)
{
	char *copy;

	// One more is needed for the end, which would be 0.
	if (length == SIZE_MAX)
		mem_none(length, 1);
	copy = mem_resize(NULL, length + 1, 1);
	if (length > 0)
		memcpy(copy, bytes, length);
	copy[length] = '\0';
	return copy;
}

void mem_free(void *ptr)
{
	free(ptr);
}

void mem_free_all(const void *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		mem_free((void *)(uintptr_t)list[i]);
}

// 16 items first, so that small lists are not resized for each item.
void *mem_grow(void *items, size_t *capacity, size_t need, size_t size_bytes)
{
	size_t larger = *capacity;

	if (need <= *capacity)
		return items;
	if (larger < CAPACITY_FIRST)
		larger = CAPACITY_FIRST;
	// For example 17 items wanted with room for 16: 32. An item is copied twice at most on
	// average, however long the list gets.
	while (larger < need) {
		if (larger > SIZE_MAX / 2)
			mem_none(need, size_bytes);
		larger *= 2;
	}
	ASSERT(size_bytes > 0 && larger >= need);
	items = mem_resize(items, larger, size_bytes);
	*capacity = larger;
	return items;
}

// What is new is zeroed up to the capacity, so a second call for an index in between finds zeros.
void *mem_reach(void *items, size_t *capacity, size_t index, size_t size_bytes)
{
	size_t before = *capacity;

	if (index < before)
		return items;
	items = mem_grow(items, capacity, index + 1, size_bytes);
	ASSERT(index < *capacity);
	memset((char *)items + before * size_bytes, 0, (*capacity - before) * size_bytes);
	return items;
}

// What is between the old count and `index` becomes zero, also where the list had other items there
// before it was emptied.
void *mem_fill(void *items, size_t *count, size_t *capacity, size_t index, size_t size_bytes)
{
	size_t before = *count;

	ASSERT(before <= *capacity);
	if (index < before)
		return items;
	*count = index + 1;
	items = mem_grow(items, capacity, *count, size_bytes);
	memset((char *)items + before * size_bytes, 0, (*count - before) * size_bytes);
	return items;
}

// Items of which the least are looked for: those in front are a heap, the greatest first.
struct front {
	uint8_t *items;
	size_t count, size_bytes;
	mem_compare *compare;
	void *context;
};

static uint8_t *item_of(const struct front *front, size_t at)
{
	return front->items + at * front->size_bytes;
}

static void exchange(const struct front *front, size_t a, size_t b)
{
	uint8_t *one = item_of(front, a), *other = item_of(front, b);

	for (size_t i = 0; i < front->size_bytes; i++) {
		uint8_t byte = one[i];

		one[i] = other[i];
		other[i] = byte;
	}
}

static bool is_less(const struct front *front, size_t a, size_t b)
{
	return front->compare(item_of(front, a), item_of(front, b), front->context) < 0;
}

// An item goes down while one of the two below it is greater.
static void sink(const struct front *front, size_t at)
{
	for (;;) {
		// The two below item 3 are 7 and 8.
		size_t below = at * 2 + 1;

		if (below >= front->count)
			return;
		if (below + 1 < front->count && is_less(front, below, below + 1))
			below++;
		if (!is_less(front, at, below))
			return;
		exchange(front, at, below);
		at = below;
	}
}

// For example the 10 least of a million: those in front are a heap with the greatest of them first.
// Each other item is compared with that one, and takes its place where it is less. Then the 10 are
// sorted. For more than a quarter of the list a plain sort is as fast.
void mem_sort_first(void *items, size_t count, size_t first, size_t size_bytes,
		    mem_compare *compare, void *context)
{
	const struct front front = { items, first, size_bytes, compare, context };

	ASSERT(size_bytes > 0);
	if (first > count / 4) {
		mem_sort(items, count, size_bytes, compare, context);
		return;
	}
	// From the last item that has one below it up to the first: then it is a heap.
	for (size_t at = first / 2; at-- > 0;)
		sink(&front, at);
	for (size_t at = first; first > 0 && at < count; at++) {
		if (!is_less(&front, at, 0))
			continue;
		exchange(&front, at, 0);
		sink(&front, 0);
	}
	mem_sort(items, first, size_bytes, compare, context);
}

int mem_compare_u64(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

_Noreturn void mem_assert_failed(const char *what, const char *file, int line)
{
	say_last("a mistake of ours at %s:%d: %s", file, line, what);
	abort();
}
