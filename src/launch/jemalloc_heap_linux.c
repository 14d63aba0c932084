// For example, a block at 0x7f1234567010 is in the gigabyte 0x1fc48 (address >> 30), so its leaf is
// root[0x1fc48], and its page is element 0x34567 of that. The element is
//
//     szind << 48 | address of the extent | state << 2 | head << 1 | slab
//
// The extent (128 bytes) says that it begins at 0x7f1234567000 and is a slab of blocks of szind 1,
// 16 bytes: 256 of them, of which the second is ours. If its bit is 0 it is used.
#include "launch/jemalloc_heap_linux.h"

#include "base/map.h"
#include "base/mem.h"

#include <string.h>
#include <sys/mman.h>

enum {
	JEMALLOC_HEAP_ROOT = 1 << 18, // elements of the root, and of a leaf
	JEMALLOC_HEAP_LEAF_SHIFT = 30,
	JEMALLOC_HEAP_PAGE_SHIFT = 12,
	JEMALLOC_HEAP_SZIND_SHIFT = 48,
	JEMALLOC_HEAP_SIZES = 232,
	JEMALLOC_HEAP_SMALL = 36, // sizes of slabs
	JEMALLOC_HEAP_ALIGN = 128,
	JEMALLOC_HEAP_REGIONS_MAX = 512, // of a slab
	JEMALLOC_HEAP_GIGABYTES_MAX = 256,
	JEMALLOC_HEAP_TEXT_MAX = 64 << 20, // of constants, where the version is
	JEMALLOC_HEAP_TLS_BYTES = 64 << 10,
	JEMALLOC_HEAP_TLS_WORDS = JEMALLOC_HEAP_TLS_BYTES / 8,
	JEMALLOC_HEAP_BIN_WORDS = 3, // head, requests, three ends of 16 bits
	JEMALLOC_HEAP_BINS_MAX = 76,
};

#define JEMALLOC_HEAP_ADDRESS ((UINT64_C(1) << 48) - JEMALLOC_HEAP_ALIGN)
#define JEMALLOC_HEAP_PAGE (UINT64_C(1) << JEMALLOC_HEAP_PAGE_SHIFT)

static const char jemalloc_heap_version[] = "5.3.0-0-g54eaed1d8b56b1aa528be3bdd1877e59c56fa90c";

// edata_t, as it is in memory.
struct jemalloc_heap_extent {
	uint64_t bits; // arena 12, slab, committed, pai, zeroed, guarded, state 3, szind 8, free 10
	uint64_t address;
	uint64_t size; // the lowest 12 bits are a number
	uint64_t unused[5];
	uint64_t free[JEMALLOC_HEAP_REGIONS_MAX / 64];
};

struct jemalloc_heap_walk {
	struct glibc_heap *heap;
	const struct objects *objects;
	const struct tracee *tracee;
	const struct objects_one *object; // that it is in
	uint64_t *data;                   // its variables
	size_t data_count;
	size_t *used; // where they are not 0
	size_t used_count;
	uint64_t gigabytes[JEMALLOC_HEAP_GIGABYTES_MAX]; // in which something is mapped
	size_t gigabytes_count;
	const uint64_t *root; // in `data`
	uint64_t *leaf;
	struct map unused;      // blocks that are put aside, and where threads note these
	uint64_t last;          // the extent that was looked at
	size_t extents, moving; // in use; of these such as contradict the tree
	const char *why;
};

static bool jemalloc_heap_fail(struct jemalloc_heap_walk *walk, const char *why)
{
	walk->why = walk->why ? walk->why : why;
	return false;
}

// What a block of that size may use: 8, 16, 32, 48, 64, and then four steps to each power of two.
static uint64_t jemalloc_heap_size(unsigned szind)
{
	unsigned group;

	ASSERT(szind < JEMALLOC_HEAP_SIZES);
	if (szind < 5)
		return szind ? 16 * (uint64_t)szind : 8;
	group = (szind - 5) / 4;
	return (UINT64_C(64) << group) + (UINT64_C(16) << group) * ((szind - 5) % 4 + 1);
}

// ---- Where it is --------------------------------------------------------------------------------

// The text of its version, and whether it is ours; "" where it has none.
// The version is a constant that mallctl("version") returns: nothing else of jemalloc 5.3.0 tells
// it from a later one, whose structs are others.
static bool jemalloc_heap_find_text(const struct jemalloc_heap_walk *walk, struct str *other)
{
	static const char revision[] = "-0-g";
	const char *at = walk->objects->text, *end = at + walk->objects->text_size;
	struct maps_line line;
	bool found = false;

	while (!found && at < end) {
		uint8_t *bytes;
		const uint8_t *text;
		size_t size;

		if (!maps_text_next(&at, end, &line) || !objects_has(walk->object, &line) ||
		    (line.protection & PROT_WRITE) ||
		    line.end - line.start > JEMALLOC_HEAP_TEXT_MAX)
			continue;
		size = (size_t)(line.end - line.start);
		bytes = mem_alloc(size, 1);
		if (tracee_read(walk->tracee->pid, line.start, bytes, size)) {
			found = memmem(bytes, size, jemalloc_heap_version,
				       sizeof(jemalloc_heap_version));
			text = memmem(bytes, size, revision, sizeof(revision) - 1);
			if (!found && text && text - bytes >= 5 && text[-4] == '.' &&
			    text[-2] == '.')
				str_format(other, "%.5s", (const char *)text - 5);
		}
		mem_free(bytes);
	}
	return found;
}

// Is there one? Who exports malloc, or has a mallocx that is not exported, and says that it is
// jemalloc.
static bool jemalloc_heap_find(struct jemalloc_heap_walk *walk, struct str *other)
{
	const struct objects_one *libc = objects_libc(walk->objects);

	for (size_t i = 0; i < walk->objects->count; i++) {
		const struct objects_one *object = &walk->objects->list[i];
		const char *name = strrchr(object->path, '/');

		walk->object = object;
		if (!name || strncmp(name, "/libtidemark", 12) == 0 || objects_is_linker(object) ||
		    (libc && object->inode == libc->inode) ||
		    (!object->mallocx && !objects_symbol(walk->objects, object, "malloc", NULL)))
			continue;
		if (jemalloc_heap_find_text(walk, other))
			return true;
		if (object->mallocx || objects_symbol(walk->objects, object, "mallocx", NULL)) {
			walk->why = "has a layout that is not known";
			return false;
		}
		str_clear(other);
	}
	return false;
}

static bool jemalloc_heap_read_data(struct jemalloc_heap_walk *walk)
{
	return objects_variables(walk->objects, walk->object, &walk->data, &walk->data_count) ||
	       jemalloc_heap_fail(walk, "has variables that cannot be read");
}

// Of a program with memory in more of them than there is room for, no root is found: some element
// of it is of a gigabyte that is not on the list.
static void jemalloc_heap_add_gigabyte(struct jemalloc_heap_walk *walk, uint64_t number)
{
	for (size_t i = walk->gigabytes_count; i > 0; i--) // they come in order
		if (walk->gigabytes[i - 1] == number)
			return;
	if (walk->gigabytes_count < JEMALLOC_HEAP_GIGABYTES_MAX)
		walk->gigabytes[walk->gigabytes_count++] = number;
}

static void jemalloc_heap_find_gigabytes(struct jemalloc_heap_walk *walk)
{
	const char *at = walk->objects->text, *end = at + walk->objects->text_size;
	struct maps_line line;

	while (at < end) {
		if (!maps_text_next(&at, end, &line) || line.inode || !objects_may_write(&line))
			continue;
		for (uint64_t i = line.start >> JEMALLOC_HEAP_LEAF_SHIFT;
		     i <= (line.end - 1) >> JEMALLOC_HEAP_LEAF_SHIFT && i < JEMALLOC_HEAP_ROOT; i++)
			jemalloc_heap_add_gigabyte(walk, i);
	}
}

static bool jemalloc_heap_has_gigabyte(const struct jemalloc_heap_walk *walk, uint64_t number)
{
	for (size_t i = 0; i < walk->gigabytes_count; i++)
		if (walk->gigabytes[i] == number)
			return true;
	return false;
}

static bool jemalloc_heap_read_extent(const struct jemalloc_heap_walk *walk, uint64_t element,
				      struct jemalloc_heap_extent *extent)
{
	return tracee_read(walk->tracee->pid, element & JEMALLOC_HEAP_ADDRESS, extent,
			   sizeof(*extent));
}

static bool jemalloc_heap_holds(const struct jemalloc_heap_extent *extent, uint64_t page)
{
	return page - (extent->address & ~(JEMALLOC_HEAP_PAGE - 1)) <
	       (extent->size & ~(JEMALLOC_HEAP_PAGE - 1));
}

static bool jemalloc_heap_read_leaf(struct jemalloc_heap_walk *walk, uint64_t at)
{
	return at % 64 == 0 && tracee_read(walk->tracee->pid, at, walk->leaf,
					   JEMALLOC_HEAP_ROOT * sizeof(*walk->leaf));
}

// An element that was cleared has no extent, but a szind, which is that of none.
static bool jemalloc_heap_is_empty(uint64_t element)
{
	return (element & JEMALLOC_HEAP_ADDRESS) == 0;
}

// Whether this is the leaf of that gigabyte: its first element leads to an extent that has it.
static bool jemalloc_heap_is_leaf(struct jemalloc_heap_walk *walk, uint64_t at, uint64_t gigabyte)
{
	struct jemalloc_heap_extent extent;
	size_t i = 0;

	ASSERT(gigabyte < JEMALLOC_HEAP_ROOT);
	if (!jemalloc_heap_read_leaf(walk, at))
		return false;
	while (i < JEMALLOC_HEAP_ROOT && jemalloc_heap_is_empty(walk->leaf[i]))
		i++;
	return i < JEMALLOC_HEAP_ROOT && jemalloc_heap_read_extent(walk, walk->leaf[i], &extent) &&
	       jemalloc_heap_holds(&extent, gigabyte << JEMALLOC_HEAP_LEAF_SHIFT |
						    (uint64_t)i << JEMALLOC_HEAP_PAGE_SHIFT);
}

// The number of the first variable from `begin` on that is not 0.
static size_t jemalloc_heap_used_from(const struct jemalloc_heap_walk *walk, size_t begin)
{
	size_t low = 0, high = walk->used_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (walk->used[middle] < begin)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

// Whether the root may begin there: what is in it is at places of gigabytes that are mapped. The
// last of them that is a leaf proves it.
static bool jemalloc_heap_is_root(struct jemalloc_heap_walk *walk, size_t begin)
{
	const uint64_t *root = walk->data + begin;
	uint64_t last = 0;

	ASSERT(begin <= walk->data_count && walk->data_count - begin >= JEMALLOC_HEAP_ROOT);
	for (size_t i = 0; i < walk->gigabytes_count; i++)
		last = root[walk->gigabytes[i]] ? walk->gigabytes[i] : last;
	if (!last)
		return false;
	for (size_t i = jemalloc_heap_used_from(walk, begin);
	     i < walk->used_count && walk->used[i] - begin < JEMALLOC_HEAP_ROOT; i++)
		if (!jemalloc_heap_has_gigabyte(walk, walk->used[i] - begin))
			return false;
	return jemalloc_heap_is_leaf(walk, root[last], last);
}

// The root is found by a leaf in it, each of which may be one of any gigabyte.
// For example the word i is a leaf of the gigabyte 0x1fc48, if any: then the root begins 0x1fc48
// words before it. That is tried for each word that is not 0 and each gigabyte in which something
// is mapped: some thousand words, a handful of gigabytes.
static bool jemalloc_heap_find_root(struct jemalloc_heap_walk *walk)
{
	jemalloc_heap_find_gigabytes(walk);
	walk->used = mem_alloc(walk->data_count, sizeof(*walk->used));
	for (size_t i = 0; i < walk->data_count; i++)
		if (walk->data[i])
			walk->used[walk->used_count++] = i;
	for (size_t u = 0; u < walk->used_count; u++) {
		size_t i = walk->used[u];

		for (size_t g = 0; walk->data[i] % 64 == 0 && g < walk->gigabytes_count; g++) {
			size_t begin = i - (size_t)walk->gigabytes[g];

			if (walk->gigabytes[g] > i ||
			    walk->data_count - begin < JEMALLOC_HEAP_ROOT ||
			    !jemalloc_heap_is_root(walk, begin))
				continue;
			walk->root = walk->data + begin;
			return true;
		}
	}
	return jemalloc_heap_fail(walk, "has no tree of its memory that is known");
}

// ---- What is in it ------------------------------------------------------------------------------

// The extent's own count of free regions must agree with its bits; else none of it is added.
static bool jemalloc_heap_add_slab(struct jemalloc_heap_walk *walk,
				   const struct jemalloc_heap_extent *extent, uint64_t size)
{
	uint64_t regions = (extent->size & ~(JEMALLOC_HEAP_PAGE - 1)) / size, free = 0;
	size_t from = walk->heap->count;

	if (regions > JEMALLOC_HEAP_REGIONS_MAX)
		return false;
	for (uint64_t i = 0; i < regions; i++) {
		if (extent->free[i / 64] >> i % 64 & 1)
			free++;
		else
			glibc_heap_add(walk->heap, extent->address + i * size, size);
	}
	if (free != (extent->bits >> 28 & 0x3ff)) {
		walk->heap->count = from;
		return false;
	}
	return true;
}

// An element of a leaf that says that its page is used. That of the last page of an extent that is
// no slab may have an older szind: what comes after the first is not looked at.
static bool jemalloc_heap_add_extent(struct jemalloc_heap_walk *walk, uint64_t element,
				     uint64_t page)
{
	struct jemalloc_heap_extent extent;
	unsigned szind = (unsigned)(element >> JEMALLOC_HEAP_SZIND_SHIFT);
	bool slab = element & 1;

	if ((element & JEMALLOC_HEAP_ADDRESS) == walk->last)
		return true; // another page of it
	walk->last = element & JEMALLOC_HEAP_ADDRESS;
	if (szind >= JEMALLOC_HEAP_SIZES)
		return true; // none of its blocks
	walk->extents++;
	if (!jemalloc_heap_read_extent(walk, element, &extent) ||
	    (extent.address & ~(JEMALLOC_HEAP_PAGE - 1)) != page || (extent.bits >> 17 & 7) != 0 ||
	    (extent.bits >> 20 & 0xff) != szind || (extent.bits >> 12 & 1) != slab ||
	    (slab && szind >= JEMALLOC_HEAP_SMALL))
		return false;
	if (slab)
		return jemalloc_heap_add_slab(walk, &extent, jemalloc_heap_size(szind));
	glibc_heap_add(walk->heap, extent.address, jemalloc_heap_size(szind));
	return true;
}

// An extent that a thread was just changing, when it was stopped, does not agree with the tree: its
// blocks alone are left out, and it is counted. More than half of all would mean that the layout is
// another.
static bool jemalloc_heap_allow_moving(struct jemalloc_heap_walk *walk)
{
	ASSERT(walk->moving <= walk->extents);
	if (walk->moving > walk->extents / 2)
		return jemalloc_heap_fail(walk, "has extents that contradict its tree");
	if (walk->moving > 0)
		str_format(&walk->heap->but,
			   "%s%zu of %zu extents of jemalloc contradict its tree, and their blocks "
			   "are left out (a thread was changing them)",
			   walk->heap->but.length ? ", and " : "", walk->moving, walk->extents);
	return true;
}

// A leaf has an element for each page of its gigabyte. State 0 is an extent in use; the elements of
// its further pages repeat it, and add_extent lets them pass.
static bool jemalloc_heap_walk_tree(struct jemalloc_heap_walk *walk)
{
	for (uint64_t gigabyte = 0; gigabyte < JEMALLOC_HEAP_ROOT; gigabyte++) {
		if (!walk->root[gigabyte])
			continue;
		if (!jemalloc_heap_read_leaf(walk, walk->root[gigabyte]))
			return jemalloc_heap_fail(walk, "has a tree with a leaf that is none");
		for (uint64_t i = 0; i < JEMALLOC_HEAP_ROOT; i++) {
			uint64_t element = walk->leaf[i];

			if (!jemalloc_heap_is_empty(element) && (element >> 2 & 7) == 0 &&
			    !jemalloc_heap_add_extent(walk, element,
						      gigabyte << JEMALLOC_HEAP_LEAF_SHIFT |
							      i << JEMALLOC_HEAP_PAGE_SHIFT))
				walk->moving++;
		}
	}
	return true;
}

// ---- What threads have put aside ----------------------------------------------------------------

// How many bins for sizes begin at these words, or 0. Their stacks are one after the other in one
// piece of memory, which begins with a word that is not used.
// A bin has a stack that grows down: `head` is the next that it will give, and the ends are 16 bits
// of addresses: full, where it may not grow further, and empty, where it has none. The empty end of
// one bin is the full end of the next, which no other words in a row are for 36 bins.
static size_t jemalloc_heap_bins(const uint64_t *words, size_t count)
{
	uint16_t full = (uint16_t)(words[2] >> 16);
	size_t bins = 0;

	if (words[0] % 8 || full % JEMALLOC_HEAP_PAGE != 8)
		return 0;
	for (; bins < JEMALLOC_HEAP_BINS_MAX && (bins + 1) * JEMALLOC_HEAP_BIN_WORDS <= count;
	     bins++, words += JEMALLOC_HEAP_BIN_WORDS) {
		uint16_t empty = (uint16_t)(words[2] >> 32);
		uint16_t head = (uint16_t)words[0];

		if (!words[0] || (uint16_t)(words[2] >> 16) != full || empty == full ||
		    (uint16_t)(empty - head) > (uint16_t)(empty - full))
			break;
		full = empty;
	}
	return bins >= JEMALLOC_HEAP_SMALL ? bins : 0;
}

// The piece of memory that the stacks are in is a block of jemalloc's itself: it is the cache's,
// and none of the program's.
static bool jemalloc_heap_read_bins(struct jemalloc_heap_walk *walk, const uint64_t *words,
				    size_t bins)
{
	uint64_t below = (uint16_t)(words[0] - (words[2] >> 16)); // the head is above its bin's end

	map_put(&walk->unused, words[0] - below - 8, NULL);
	for (size_t i = 0; i < bins; i++, words += JEMALLOC_HEAP_BIN_WORDS) {
		uint64_t aside[1 << 13];
		size_t bytes = (uint16_t)((words[2] >> 32) - words[0]);

		if (bytes && !tracee_read(walk->tracee->pid, words[0], aside, bytes))
			return false;
		for (size_t n = 0; n < bytes / 8; n++)
			map_put(&walk->unused, aside[n], NULL);
	}
	return true;
}

static size_t jemalloc_heap_read_tls(const struct jemalloc_heap_walk *walk, uint64_t base,
				     uint64_t *words)
{
	size_t count = JEMALLOC_HEAP_TLS_WORDS;

	while (count > 1 && !tracee_read(walk->tracee->pid, base - 8 * count, words, 8 * count))
		count /= 2; // not all of it may be there
	return count;
}

// All threads have their bins at the same distance below the thread pointer. 0: none has any.
static size_t jemalloc_heap_find_bins(const struct jemalloc_heap_walk *walk, uint64_t *words)
{
	for (size_t t = 0; t < walk->tracee->count; t++) {
		const struct tracee_thread *thread = &walk->tracee->threads[t];
		size_t count;

		if (thread->gone || !thread->registers.fs_base)
			continue;
		count = jemalloc_heap_read_tls(walk, thread->registers.fs_base, words);
		for (size_t i = 0; i + JEMALLOC_HEAP_BIN_WORDS <= count; i++)
			if (jemalloc_heap_bins(words + i, count - i))
				return count - i;
	}
	return 0;
}

// Found once by their form, in any thread that has bins, then read at that distance in all. A
// thread that has not allocated yet has a zero there.
static bool jemalloc_heap_walk_threads(struct jemalloc_heap_walk *walk)
{
	uint64_t *words = mem_alloc(JEMALLOC_HEAP_TLS_WORDS, sizeof(*words));
	size_t far = jemalloc_heap_find_bins(walk, words);
	bool ok = far > 0;

	for (size_t t = 0; ok && t < walk->tracee->count; t++) {
		const struct tracee_thread *thread = &walk->tracee->threads[t];
		size_t bins;

		if (thread->gone || !thread->registers.fs_base ||
		    !tracee_read(walk->tracee->pid, thread->registers.fs_base - 8 * far, words,
				 8 * far) ||
		    !words[0])
			continue;
		bins = jemalloc_heap_bins(words, far);
		ok = bins && jemalloc_heap_read_bins(walk, words, bins);
	}
	mem_free(words);
	return ok || jemalloc_heap_fail(walk, far ? "has a thread's cache that is broken"
						  : "has no thread's cache that is known");
}

// Leaves out what is put aside. A thread that was stopped in the midst of giving blocks back has
// some aside that are free already: these alone are left out, and counted. More than half of all
// would mean that the caches were not understood.
static bool jemalloc_heap_sift(struct jemalloc_heap_walk *walk, size_t from)
{
	size_t strange = glibc_heap_sift(walk->heap, from, &walk->unused, NULL);

	ASSERT(strange <= walk->unused.count);
	if (strange > walk->unused.count / 2)
		return jemalloc_heap_fail(walk, "has put blocks aside that are in no extent");
	if (strange > 0)
		str_format(&walk->heap->but,
			   "%s%zu blocks that threads of jemalloc had put aside are in none of its "
			   "extents, and left out (a thread was giving blocks back)",
			   walk->heap->but.length ? ", and " : "", strange);
	return true;
}

// What was added before a contradiction is found is taken off the list again: all of its blocks or
// none.
void jemalloc_heap_read(struct glibc_heap *heap, const struct objects *objects,
			const struct tracee *tracee)
{
	struct jemalloc_heap_walk *walk = mem_alloc(1, sizeof(*walk));
	struct str other = { 0 };
	size_t from = heap->count;
	uint64_t bytes = heap->bytes;

	walk->heap = heap;
	walk->objects = objects;
	walk->tracee = tracee;
	walk->leaf = mem_alloc(JEMALLOC_HEAP_ROOT, sizeof(*walk->leaf));
	if (jemalloc_heap_find(walk, &other)) {
		if (objects->narrow)
			jemalloc_heap_fail(walk, "has a layout of 32 bits, which is not known");
		else if (jemalloc_heap_read_data(walk) && jemalloc_heap_find_root(walk) &&
			 jemalloc_heap_walk_tree(walk) && jemalloc_heap_walk_threads(walk) &&
			 jemalloc_heap_sift(walk, from) && jemalloc_heap_allow_moving(walk))
			str_add(&heap->with, ", jemalloc");
		str_add(&other, "5.3.0");
	}
	if (walk->why) {
		heap->count = from;
		heap->bytes = bytes;
		str_format(&heap->but, "%sthe heap of jemalloc %s %s",
			   heap->but.length ? ", and " : "",
			   other.length ? str_get(&other) : "of an unknown version", walk->why);
	}
	str_fini(&other);
	map_fini(&walk->unused);
	MEM_FREE(walk->leaf, walk->used, walk->data, walk);
}
