// mem: memory of the host wing.
//
// Running out of memory ends the command with a message and exit code 3, in one place, here.
// So these never return NULL. Sizes are checked for overflow. Assertions for our own mistakes
// live here too: they are active in every build of the host.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Zeroed memory for `count` items of `size_bytes` each. Freed with mem_free.
void *mem_alloc(size_t count, size_t size_bytes);

// Grow or shrink; `old` may be NULL. New bytes are not zeroed.
// What `old` pointed to is gone, whether it moved or not.
void *mem_resize(void *old, size_t count, size_t size_bytes);

// A copy of `text` (or of its first `length` bytes), NUL-terminated. Freed with mem_free.
char *mem_copy_text(const char *text);
char *mem_copy_bytes(const void *bytes, size_t length);

// NULL is allowed.
void mem_free(void *ptr);

// Several at once, looked at before the first of them is freed: MEM_FREE(list->names, list) is in
// good order. Not where windows.h is: it has another MEM_FREE.
#define MEM_FREE(...)                                      \
	mem_free_all((const void *const[]){ __VA_ARGS__ }, \
		     sizeof((const void *const[]){ __VA_ARGS__ }) / sizeof(void *))
void mem_free_all(const void *const *list, size_t count);

// The same as mem_alloc, for a large table that is read all over: the system is asked for large
// pages.
void *mem_alloc_table(size_t count, size_t size_bytes);

// The same with anything in it, which begins at a large page.
void *mem_raw_table(size_t count, size_t size_bytes);

// Zeroed memory straight from the system, for one large table; the system is asked for large pages
// where one has room. Given back with mem_unmap and the same size.
void *mem_map(size_t size_bytes);
void mem_unmap(void *ptr, size_t size_bytes); // NULL is allowed

// Memory straight from the system that grows where it is, mostly: if it moves, nothing is copied.
// The system is asked for large pages from the second MEM_AREA_SMALL on, so that what stays small
// takes no more than it needs. `struct mem_area area = { 0 };` is one of no bytes.
enum { MEM_AREA_SMALL = 1 << 21 };
// `at` changes when it moves: pointers into it are borrowed until the next mem_area_grow.
struct mem_area {
	void *at;
	size_t size;     // bytes that may be used
	size_t reserved; // private
};

// At least so many bytes; new ones are zero.
void mem_area_grow(struct mem_area *area, size_t size_bytes);
void mem_area_fini(struct mem_area *area);

// Begin to fetch what will be asked for soon from memory. With __builtin_prefetch alone, gcc takes
// a function that does nothing else for one that does nothing, and leaves out its calls.
static inline void mem_expect(const void *at)
{
	__builtin_prefetch(at);
	__asm__ volatile("");
}

// From here on, tables that are freed go back to the system at once, however large: who promised
// to keep to a budget calls it.
void mem_give_back_early(void);

// The same of many threads that come and go: what one leaves, the next uses, instead of each having
// memory of its own that stays. Before the first of them begins.
void mem_share(void);

// The first place of `what` in `bytes`, or NULL.
const void *mem_search(const void *bytes, size_t size, const void *what, size_t what_size);

// Sort, as qsort does, with something for `compare` to look at. Of none, `items` may be NULL.
typedef int mem_compare(const void *a, const void *b, void *context);
void mem_sort(void *items, size_t count, size_t size_bytes, mem_compare *compare, void *context);

// The `first` least of them to the front, in their order; what follows is in none. Of those that
// are equal, any may be in front.
void mem_sort_first(void *items, size_t count, size_t first, size_t size_bytes,
		    mem_compare *compare, void *context);

// qsort's comparison of two uint64_t.
int mem_compare_u64(const void *a, const void *b);

// Make room for at least `need` items in `*items` of `*capacity` items; doubles.
// Whole items only; the size in bytes is checked for overflow. Doubling makes adding n items cost n
// copies in all.
void *mem_grow(void *items, size_t *capacity, size_t need, size_t size_bytes);

// The same for `list` where it is: MEM_ROOM(vec, capacity, count + 1).
#define MEM_ROOM(list, capacity, need) \
	((list) = mem_grow((list), &(capacity), (need), sizeof *(list)))

// The place of one more item at the end of `list`, which holds `count` of `capacity` items. It
// counts from now on, and what is in it is not set:
//     *MEM_ADD(log->lines, log->count, log->capacity) = line;
// What is assigned must not look at `list` or `count`: C does not say which side comes first.
#define MEM_ADD(list, count, capacity)                                                \
	((list) = mem_grow((list), &(capacity), (size_t)(count) + 1, sizeof *(list)), \
	 &(list)[(count)++])

// The place of the item `index` in `list` of `capacity` items, for which room is made; new room is
// zero, up to the capacity. `index` is looked at twice.
#define MEM_REACH(list, capacity, index) \
	((list) = mem_reach((list), &(capacity), (size_t)(index), sizeof *(list)), &(list)[index])
void *mem_reach(void *items, size_t *capacity, size_t index, size_t size_bytes);

// The same for a list that is gone through: items up to `index` count from now on, and new ones are
// zero, whatever was there before the list was last emptied.
#define MEM_FILL(list, count, capacity, index)                                              \
	((list) = mem_fill((list), &(count), &(capacity), (size_t)(index), sizeof *(list)), \
	 &(list)[index])
void *mem_fill(void *items, size_t *count, size_t *capacity, size_t index, size_t size_bytes);

// There is no memory for `count` items of `size_bytes` each: the end.
_Noreturn void mem_none(size_t count, size_t size_bytes);

// Bytes that the machine has, or the control group that we are in, if that is less; 0: not known.
uint64_t mem_of_machine(void);

// What a process says last, by mem_none and by ASSERT, is a line on stderr. Who has no stderr that
// is read sets another way; `text` has no "tidemark: " and no end of line. NULL: stderr again.
void mem_say_by(void (*how)(const char *text));

// Says where, and aborts. ASSERT calls it.
_Noreturn void mem_assert_failed(const char *what, const char *file, int line);

#define ASSERT(condition) \
	((condition) ? (void)0 : mem_assert_failed(#condition, __FILE__, __LINE__))
