// For example, the segment at 0x20002000000 has its blocks of 48 bytes in page 3, which begins at
// 0x20002000000 + 3 * 65536 + 384. The page says: capacity 1024, used 1000, free 0x20002030480,
// local_free 0. So 24 blocks are in the chain that begins with number 16, each with the address of
// the next one in its first word, and the other 1,000 live.
//
// What another thread freed is still counted as used: it is in a chain of the page's own
// (xthread_free), or in one of the heap that the page is of.
#include "launch/mimalloc_heap_linux.h"

#include "base/map.h"
#include "base/mem.h"
#include "collect/maps_text.h"

#include <string.h>

enum {
	MIMALLOC_HEAP_VERSION = 209, // mi_version ()
	MIMALLOC_HEAP_SLICE = 64 << 10,
	MIMALLOC_HEAP_SLICES = 512, // of a segment
	MIMALLOC_HEAP_SEGMENT = 32 << 20,
	MIMALLOC_HEAP_LEAD = 384, // before the first block, where blocks are of 8 to 1,024 bytes
	MIMALLOC_HEAP_LEAD_MAX = 1024,
	MIMALLOC_HEAP_PAGE_MAX = 512 << 10, // a page of more than one block
	MIMALLOC_HEAP_FEW = 16,             // blocks of a chain that are read one by one
	MIMALLOC_HEAP_HEAPS_MAX = 1 << 16,
	MIMALLOC_HEAP_CHAIN_MAX = 1 << 24,
	MIMALLOC_HEAP_CODE_BYTES = 16,
};

static const uint64_t mimalloc_heap_huge = UINT64_C(2) << 30; // sizes that have no room in a page's

// mi_page_t, of which a segment has one for each of its slices. The first of a page's slices is the
// page.
struct mimalloc_heap_page {
	uint32_t slices, offset;
	uint8_t committed, unused;
	uint16_t capacity; // blocks that there are, used or in a chain
	uint16_t reserved;
	uint8_t flags; // 2: the program may have an address in the midst of a block
	uint8_t retired;
	uint64_t free;
	uint32_t used; // with those that other threads have freed
	uint32_t size; // of a block; 0: these slices are no page
	uint64_t local_free;
	uint64_t thread_free; // the lowest two bits are flags
	uint64_t heap;
	uint64_t links[3];
};

// mi_segment_t
struct mimalloc_heap_segment {
	uint64_t memory[6];
	uint64_t masks[16];
	uint64_t links[4];
	uint64_t used; // pages
	uint64_t cookie;
	uint64_t slices;
	uint64_t own_slices; // of these, the first, with what is here
	uint32_t kind;       // 1: one block alone
	uint32_t unused;
	uint64_t entries;
	uint64_t thread;
	struct mimalloc_heap_page pages[MIMALLOC_HEAP_SLICES + 1];
};

_Static_assert(sizeof(struct mimalloc_heap_page) == 80, "mi_page_t");
_Static_assert(sizeof(struct mimalloc_heap_segment) == 264 + 513 * 80, "mi_segment_t");

// mi_heap_t
struct mimalloc_heap_own {
	uint64_t local;         // of its thread: the fourth word begins the list of its heaps
	uint64_t direct[129];   // pages by size
	uint64_t queues[75][3]; // and all of them
	uint64_t delayed;       // blocks that other threads have freed
	uint64_t thread;
	uint64_t arena, cookie, keys[2];
	uint8_t random[136];
	uint64_t counts[3];
	uint64_t next;
};

_Static_assert(sizeof(struct mimalloc_heap_own) == 3056, "mi_heap_t up to its link");

struct mimalloc_heap_walk {
	struct glibc_heap *heap;
	const struct objects *objects;
	const struct tracee *tracee;
	const struct objects_one *object; // that it is in
	uint64_t *data;                   // its variables
	size_t data_count;
	uint64_t cookie; // that segments are marked with; 0: not known yet
	struct mimalloc_heap_segment segment;
	uint64_t *heaps; // that pages are of, and those of the same threads
	size_t heaps_count, heaps_capacity;
	struct map threads; // of each heap, by its address
	struct map unused;  // blocks that were freed, and wait for their thread
	uint8_t *window;    // memory of a page
	uint64_t window_at, window_size;
	uint8_t *taken; // by number of a block: it is in a chain
	const char *why;
};

static bool mimalloc_heap_fail(struct mimalloc_heap_walk *walk, const char *why)
{
	walk->why = walk->why ? walk->why : why;
	return false;
}

static bool mimalloc_heap_read_word(const struct mimalloc_heap_walk *walk, uint64_t at,
				    uint64_t *word)
{
	// Unsigned: an address below the window is a large distance.
	if (at - walk->window_at < walk->window_size &&
	    walk->window_size - (at - walk->window_at) >= sizeof(*word)) {
		memcpy(word, walk->window + (at - walk->window_at), sizeof(*word));
		return true;
	}
	return tracee_read(walk->tracee->pid, at, word, sizeof(*word));
}

// ---- Where it is --------------------------------------------------------------------------------

// What such a function returns: mov $number, %eax; ret. 0: it does not look so.
static unsigned mimalloc_heap_returned(const uint8_t *code, size_t size)
{
	// Two shapes: b8 d1 00 00 00 c3 returns 209; with endbr64 in front the same four bytes
	// later.
	static const uint8_t begins[] = { 0xf3, 0x0f, 0x1e, 0xfa }; // endbr64
	size_t at = size > 4 && memcmp(code, begins, 4) == 0 ? 4 : 0;
	uint32_t number;

	if (size < at + 6 || code[at] != 0xb8 || code[at + 5] != 0xc3)
		return 0;
	memcpy(&number, code + at + 1, sizeof(number));
	return number;
}

// Is there one? Who has mi_version. *version: what that returns.
static bool mimalloc_heap_find(struct mimalloc_heap_walk *walk, unsigned *version)
{
	uint8_t code[MIMALLOC_HEAP_CODE_BYTES];

	for (size_t i = 0; i < walk->objects->count; i++) {
		const struct objects_one *object = &walk->objects->list[i];
		uint64_t at = objects_symbol(walk->objects, object, "mi_version", NULL);

		walk->object = object;
		at = at ? at : object->mi_version;
		if (!at)
			continue;
		*version = tracee_read(walk->tracee->pid, at, code, sizeof(code))
				   ? mimalloc_heap_returned(code, sizeof(code))
				   : 0;
		if (walk->objects->narrow)
			walk->why = "has a layout of 32 bits, which is not known";
		else if (*version != MIMALLOC_HEAP_VERSION)
			walk->why = "has a layout that is not known";
		return true;
	}
	return false;
}

static bool mimalloc_heap_read_data(struct mimalloc_heap_walk *walk)
{
	return objects_variables(walk->objects, walk->object, &walk->data, &walk->data_count) ||
	       mimalloc_heap_fail(walk, "has variables that cannot be read");
}

static bool mimalloc_heap_is_cookie(const struct mimalloc_heap_walk *walk, uint64_t cookie)
{
	// A segment's cookie is its address xor a random word of the library. Before that word is
	// known it is looked for among the library's variables: something that is no segment does
	// not give one of them.
	if (walk->cookie)
		return cookie == walk->cookie;
	for (size_t i = 0; cookie && i < walk->data_count; i++)
		if (walk->data[i] == cookie)
			return true;
	return false;
}

// Whether a segment begins there, which is then in `segment`. One that was given up has no pages.
static bool mimalloc_heap_is_segment(struct mimalloc_heap_walk *walk, uint64_t at)
{
	struct mimalloc_heap_segment *segment = &walk->segment;

	// All that a segment promises of itself is held against its limits, since any 32 MiB
	// boundary of the process's memory may have anything there.
	if (!tracee_read(walk->tracee->pid, at, segment, sizeof(*segment)) || !segment->used ||
	    segment->kind > 1 || segment->own_slices == 0 ||
	    segment->own_slices >= segment->entries || segment->entries > MIMALLOC_HEAP_SLICES ||
	    segment->slices < segment->entries ||
	    !mimalloc_heap_is_cookie(walk, segment->cookie ^ at))
		return false;
	walk->cookie = segment->cookie ^ at;
	return true;
}

// ---- What is in it ------------------------------------------------------------------------------

static void mimalloc_heap_add_heap(struct mimalloc_heap_walk *walk, uint64_t at, uint64_t thread)
{
	bool added = false;
	uint64_t *its = at ? map_put(&walk->threads, at, &added) : NULL;

	if (!added)
		return;
	*its = thread;
	*MEM_ADD(walk->heaps, walk->heaps_count, walk->heaps_capacity) = at;
}

struct mimalloc_heap_blocks {
	uint64_t at, size; // of a page, and of a block in it
	uint32_t count;
};

// Where the blocks of a page begin depends on their size; a block above 2 GiB has all of its page.
static struct mimalloc_heap_blocks mimalloc_heap_blocks(uint64_t segment, size_t index,
							const struct mimalloc_heap_page *page)
{
	// For example blocks of 48 bytes in a page of one slice: 65,536 - 384 = 65,152 bytes are
	// 1,357 blocks.
	uint64_t lead = page->size >= 8 && page->size <= MIMALLOC_HEAP_LEAD_MAX ? MIMALLOC_HEAP_LEAD
										: 0;
	uint64_t room = (uint64_t)page->slices * MIMALLOC_HEAP_SLICE - lead;
	uint64_t size = page->size < mimalloc_heap_huge ? page->size : room;

	return (struct mimalloc_heap_blocks){
		.at = segment + index * MIMALLOC_HEAP_SLICE + lead,
		.size = size,
		.count = page->capacity * size <= room ? page->capacity : 0,
	};
}

// Go along a chain: each block in it is taken. *count: how many there are.
static bool mimalloc_heap_walk_chain(struct mimalloc_heap_walk *walk,
				     const struct mimalloc_heap_blocks *blocks, uint64_t at,
				     uint32_t *count)
{
	ASSERT(blocks->size > 0 && blocks->count <= UINT16_MAX);
	for (*count = 0; at; (*count)++) {
		// A link is good if it is the beginning of a block of this page that no chain had
		// before: so a chain that goes in a circle ends.
		uint64_t number = (at - blocks->at) / blocks->size;

		if (at < blocks->at || number >= blocks->count ||
		    blocks->at + number * blocks->size != at || walk->taken[number] ||
		    !mimalloc_heap_read_word(walk, at, &at))
			return false;
		walk->taken[number] = 1;
	}
	return true;
}

static void mimalloc_heap_read_window(struct mimalloc_heap_walk *walk,
				      const struct mimalloc_heap_blocks *blocks)
{
	uint64_t size = blocks->count * blocks->size;

	walk->window_size = 0;
	if (size > MIMALLOC_HEAP_PAGE_MAX ||
	    !tracee_read(walk->tracee->pid, blocks->at, walk->window, size))
		return; // then each word
	walk->window_at = blocks->at;
	walk->window_size = size;
}

// Three chains: free, what is given next; local_free, what its thread freed since; thread_free,
// what others freed. `used` counts those of the third as used, so only the first two fill it up to
// the capacity.
static bool mimalloc_heap_walk_page(struct mimalloc_heap_walk *walk, uint64_t segment, size_t index)
{
	const struct mimalloc_heap_page *page = &walk->segment.pages[index];
	struct mimalloc_heap_blocks blocks = mimalloc_heap_blocks(segment, index, page);
	uint32_t free, local, thread;

	ASSERT(index < MIMALLOC_HEAP_SLICES && page->size > 0);
	// A process that was stopped inside of malloc may have counts that do not fit: such a page
	// is refused, and with it all of the heap.
	if (page->capacity > page->reserved || blocks.count != page->capacity ||
	    page->used > page->capacity)
		return false;
	memset(walk->taken, 0, page->capacity);
	if (page->capacity - page->used > MIMALLOC_HEAP_FEW)
		mimalloc_heap_read_window(walk, &blocks);
	if (!mimalloc_heap_walk_chain(walk, &blocks, page->free, &free) ||
	    !mimalloc_heap_walk_chain(walk, &blocks, page->local_free, &local) ||
	    !mimalloc_heap_walk_chain(walk, &blocks, page->thread_free & ~UINT64_C(3), &thread) ||
	    page->used + free + local != page->capacity)
		return false;
	for (uint32_t i = 0; i < blocks.count; i++) {
		if (walk->taken[i])
			continue;
		glibc_heap_add(walk->heap, blocks.at + i * blocks.size, blocks.size);
		walk->heap->inexact += page->flags >> 1 & 1;
	}
	mimalloc_heap_add_heap(walk, page->heap, walk->segment.thread);
	return true;
}

// The table has an entry for each 64 KiB. A page's first entry says over how many it goes, the next
// one is after that; one without a size of blocks is free.
static bool mimalloc_heap_walk_segment(struct mimalloc_heap_walk *walk, uint64_t at)
{
	const struct mimalloc_heap_segment *segment = &walk->segment;
	uint64_t pages = 0;

	// A page of three slices: its entry says 3, and the next page's is three further on.
	for (uint64_t i = segment->own_slices; i < segment->entries;
	     i += segment->pages[i].slices) {
		const struct mimalloc_heap_page *page = &segment->pages[i];

		if (page->slices == 0 || page->slices > segment->slices - i)
			return mimalloc_heap_fail(walk, "has a segment that contradicts itself");
		if (!page->size)
			continue;
		pages++;
		if (!mimalloc_heap_walk_page(walk, at, i))
			return mimalloc_heap_fail(walk, "has a page whose counts contradict its "
							"chains of free blocks");
	}
	return pages == segment->used ||
	       mimalloc_heap_fail(walk, "has a segment that counts more pages than it has");
}

// Segments begin at multiples of 32 MiB, and each such place in memory that may be written is
// looked at: mappings of the kernel's list may be of several segments, or of something else.
static bool mimalloc_heap_walk_memory(struct mimalloc_heap_walk *walk)
{
	const char *at = walk->objects->text, *end = at + walk->objects->text_size;
	const uint64_t step = MIMALLOC_HEAP_SEGMENT;
	struct maps_line line;

	while (at < end) {
		if (!maps_text_next(&at, end, &line) || line.inode || !objects_may_write(&line))
			continue;
		// Rounded up: a mapping from 0x1ff0000 has its first boundary at 0x2000000. `i >=
		// line.start`: at the end of the addresses the sum wraps around.
		for (uint64_t i = (line.start + step - 1) / step * step;
		     i >= line.start && i < line.end; i += step)
			if (mimalloc_heap_is_segment(walk, i) &&
			    !mimalloc_heap_walk_segment(walk, i))
				return false;
	}
	return true;
}

// ---- What waits for its thread ------------------------------------------------------------------

// A heap's chain of blocks of full pages that others freed: any page's, so only kept, and sifted
// out at the end.
static bool mimalloc_heap_walk_delayed(struct mimalloc_heap_walk *walk, uint64_t at)
{
	while (at) {
		bool added;

		map_put(&walk->unused, at, &added);
		if (!added || walk->unused.count > MIMALLOC_HEAP_CHAIN_MAX ||
		    !mimalloc_heap_read_word(walk, at, &at))
			return mimalloc_heap_fail(walk, "has a chain of freed blocks that is "
							"broken");
	}
	return true;
}

// Each heap that pages lead to; and its thread's others, which may have no page.
static bool mimalloc_heap_walk_heaps(struct mimalloc_heap_walk *walk)
{
	struct mimalloc_heap_own own;
	uint64_t first;

	walk->window_size = 0;
	for (size_t i = 0; i < walk->heaps_count; i++) {
		// The list grows while it is walked: heaps lead to others of their thread.
		uint64_t at = walk->heaps[i];

		if (i >= MIMALLOC_HEAP_HEAPS_MAX ||
		    !tracee_read(walk->tracee->pid, at, &own, sizeof(own)) ||
		    !mimalloc_heap_read_word(walk, own.local + 24, &first) ||
		    own.thread != *map_find(&walk->threads, at))
			return mimalloc_heap_fail(walk, "has a heap that contradicts its segments");
		if (!mimalloc_heap_walk_delayed(walk, own.delayed))
			return false;
		mimalloc_heap_add_heap(walk, first, own.thread);
		mimalloc_heap_add_heap(walk, own.next, own.thread);
	}
	return true;
}

static void mimalloc_heap_fini(struct mimalloc_heap_walk *walk)
{
	MAP_FINI(&walk->threads, &walk->unused);
	MEM_FREE(walk->heaps, walk->window, walk->taken, walk->data, walk);
}

// What was added before a contradiction is found is taken off again, as for jemalloc.
void mimalloc_heap_read(struct glibc_heap *heap, const struct objects *objects,
			const struct tracee *tracee)
{
	struct mimalloc_heap_walk *walk = mem_alloc(1, sizeof(*walk));
	size_t from = heap->count;
	uint64_t bytes = heap->bytes;
	unsigned version = 0;

	walk->heap = heap;
	walk->objects = objects;
	walk->tracee = tracee;
	walk->window = mem_alloc(MIMALLOC_HEAP_PAGE_MAX, 1);
	walk->taken = mem_alloc(UINT16_MAX + 1, 1);
	if (mimalloc_heap_find(walk, &version) && !walk->why && mimalloc_heap_read_data(walk) &&
	    mimalloc_heap_walk_memory(walk) && mimalloc_heap_walk_heaps(walk) &&
	    (glibc_heap_sift(heap, from, &walk->unused, &walk->threads) == 0 ||
	     mimalloc_heap_fail(walk, "has freed blocks that are in none of its pages")))
		str_add(&heap->with, ", mimalloc");
	if (heap->inexact && !walk->why)
		str_format(&heap->but,
			   "%sof %zu blocks of mimalloc, the address that the program has may be "
			   "within the block (their pages have aligned ones)",
			   heap->but.length ? ", and " : "", heap->inexact);
	// Half a heap would be worse than none: blocks whose frees come later would be missing or
	// be there twice.
	if (walk->why) {
		heap->count = from;
		heap->bytes = bytes;
		heap->inexact = 0;
		str_format(&heap->but, "%sthe heap of mimalloc ", heap->but.length ? ", and " : "");
		if (version > 0 && version < 1000)
			str_format(&heap->but, "%u.%u.%u %s", version / 100, version / 10 % 10,
				   version % 10, walk->why);
		else
			str_format(&heap->but, "of an unknown version %s", walk->why);
	}
	mimalloc_heap_fini(walk);
}
