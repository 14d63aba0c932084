// A chunk is a header and a block; its size has flags in the lowest bits, of which one says
// whether the chunk before it is in use. So a heap is walked from its first chunk to its top, one
// size after the other, and whether a chunk is free is said by the one after it. For example, of
// 64 bits:
//
//     0x1000    size 0x31: 48 bytes, and what is before is in use
//     0x1030    size 0x51: the chunk at 0x1000 is in use (flag 1); its block is at 0x1010, of 40
//               bytes, since the next chunk's first word is its to use
//     0x1080    size 0x40, no flag: the chunk at 0x1030 is free
//
// A chunk that seems in use may be in a fastbin or a tcache; these are read before, and left out.
// Blocks are aligned to 16 bytes: of 32 bits, where a header has 8, the first chunk of a page at
// 0x1000 is therefore at 0x1008.
#include "launch/glibc_heap_own_linux.h"

#include "base/map.h"
#include "base/mem.h"
#include "collect/maps_text.h"
#include "collect/proc_memory.h"
#include "launch/narrow_linux.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct glibc_heap_layout glibc_heap_wide = {
	.word = 8,
	.smallest = 32,
	.fast_at = 2,
	.fast_count = 10,
	.fast_step = 16,
	.top_at = 12,
	.bins_at = 14,
	.next_at = 270,
	.system_at = 273,
	.arena_words = 275,
	.heap_bytes = 64 << 20,
	.heap_info = { 0x20, 0x30 },
};

// Chunks lie so that blocks are aligned to 16 bytes all the same: each begins 8 bytes before such
// an address, so the first one of a page has 8 bytes before it.
static const struct glibc_heap_layout glibc_heap_narrow = {
	.word = 4,
	.smallest = 16,
	.lead = 8,
	.fast_at = 3,
	.fast_count = 11,
	.fast_step = 8,
	.top_at = 14,
	.bins_at = 16,
	.next_at = 274,
	.system_at = 277,
	.arena_words = 279,
	.heap_bytes = 1 << 20,
	.heap_info = { 0x18, 0x18 },
};

// The first place from `at` on where a chunk may begin.
static uint64_t glibc_heap_chunk_at(const struct glibc_heap_walk *walk, uint64_t at)
{
	// Of 64 bits 0x1000 is 0x1000: the block at 0x1010 is aligned. Of 32 bits it is 0x1008,
	// whose block is at 0x1010.
	return ((at + walk->header + GLIBC_HEAP_ALIGN - 1) & ~(uint64_t)(GLIBC_HEAP_ALIGN - 1)) -
	       walk->header;
}

void glibc_heap_add(struct glibc_heap *heap, uint64_t address, uint64_t size)
{
	*MEM_ADD(heap->blocks, heap->count, heap->capacity) =
		(struct collect_block){ address, size };
}

// ---- Chunks -------------------------------------------------------------------------------------

// A header is 8 bytes, and to read memory of another process is a system call: so 64 KiB are read
// at once, and the headers of small chunks are in what was read.
static bool glibc_heap_word(struct glibc_heap_walk *walk, uint64_t at, size_t ahead, uint64_t *word)
{
	uint64_t into = at - walk->window_at;

	ASSERT(ahead <= sizeof(walk->window) && ahead >= walk->word);
	*word = 0; // little-endian: of 32 bits, the upper half stays so
	if (at < walk->window_at || into + walk->word > walk->window_size) {
		uint64_t page_end = (at | (GLIBC_HEAP_PAGE - 1)) + 1;

		walk->window_at = at;
		walk->window_size = ahead;
		// What is after the page may not be there: half as much is tried, down to the end
		// of this page.
		while (!tracee_read(walk->pid, at, walk->window, walk->window_size)) {
			if (walk->window_size <= page_end - at)
				return false;
			walk->window_size /= 2;
			if (walk->window_size < page_end - at)
				walk->window_size = page_end - at;
		}
		into = 0;
	}
	memcpy(word, walk->window + into, walk->word);
	return true;
}

// A chain of chunks from `at` to `top`, or to where it ends by itself, before `end`. Returns where
// it ended; 0: it is broken.
static uint64_t glibc_heap_walk_chunks(struct glibc_heap_walk *walk, uint64_t at, uint64_t top,
				       uint64_t end)
{
	size_t ahead = GLIBC_HEAP_WINDOW;
	uint64_t before = 0, before_size = 0; // the chunk before, whose state is not known yet
	uint64_t word;

	walk->window_size = 0;
	for (;;) {
		uint64_t size;

		if (at + walk->header > end ||
		    !glibc_heap_word(walk, at + walk->word, ahead, &word))
			return 0;
		size = word & ~(uint64_t)GLIBC_HEAP_FLAGS;
		// The word that was just read says of the chunk before whether it is in use.
		if (before && (word & GLIBC_HEAP_IN_USE) && size != 0)
			glibc_heap_add(walk->heap, before + walk->header, before_size - walk->word);
		if (at == top)
			return top;
		if (size == 0 || size == walk->header) // what is put where a heap is left
			return at + walk->header;
		if (size < walk->layout->smallest || size % GLIBC_HEAP_ALIGN ||
		    (word & GLIBC_HEAP_MAPPED) || size > end - at)
			return 0;
		before = at;
		before_size = size;
		// Where chunks are large, only their headers are read.
		ahead = size >= GLIBC_HEAP_LARGE ? 256 : GLIBC_HEAP_WINDOW;
		at += size;
	}
}

// The main heap goes on after what the program itself, or somebody else, has taken from the break.
static uint64_t glibc_heap_resume(struct glibc_heap_walk *walk, uint64_t at, uint64_t top,
				  uint64_t end)
{
	size_t kept = walk->heap->count;
	uint64_t word, found = 0;

	for (at = glibc_heap_chunk_at(walk, at); at < end && !found; at += GLIBC_HEAP_ALIGN) {
		if (!glibc_heap_word(walk, at + walk->word, GLIBC_HEAP_WINDOW, &word))
			return 0;
		if ((word & GLIBC_HEAP_FLAGS) != GLIBC_HEAP_IN_USE || word < walk->layout->smallest)
			continue;
		found = glibc_heap_walk_chunks(walk, at, top, end);
		if (!found)
			walk->heap->count = kept;
	}
	return found;
}

// Without a beginning (sbrk_base is 0) nothing was allocated in the main heap: its top is then the
// arena's own first bin, as malloc_init_state sets it.
static bool glibc_heap_walk_main(struct glibc_heap_walk *walk, const uint64_t *words)
{
	uint64_t top = words[walk->layout->top_at];
	uint64_t system = words[walk->layout->system_at];
	uint64_t at, end;

	ASSERT(walk->main != 0);
	if (walk->start == 0 || top < walk->start)
		return top == glibc_heap_bin(walk, walk->main, 0) ||
		       glibc_heap_fail(walk, "its main heap does not begin at the program's break");
	end = walk->start + system;
	at = glibc_heap_walk_chunks(walk, glibc_heap_chunk_at(walk, walk->start), top, end);
	while (at && at != top)
		at = glibc_heap_resume(walk, at, top, end);
	return at || glibc_heap_fail(walk, "the chunks of its main heap are not one chain");
}

// The heaps of another arena, from the newest back.
static bool glibc_heap_walk_heaps(struct glibc_heap_walk *walk, uint64_t arena,
				  const uint64_t *words)
{
	const struct glibc_heap_layout *layout = walk->layout;
	uint64_t top = words[layout->top_at];
	uint64_t inside = layout->heap_bytes - 1;
	uint64_t info = arena & inside; // bytes of a heap's own
	uint64_t first = top & ~inside;
	uint64_t head[3];

	if (info != layout->heap_info[0] && info != layout->heap_info[1])
		return glibc_heap_fail(walk, "an arena's heap has an unknown size");
	for (uint64_t at = first; at;) {
		uint64_t begin = at + info;

		if (!glibc_heap_words(walk, at, head, 3) || head[0] != arena ||
		    head[2] > layout->heap_bytes || head[2] % GLIBC_HEAP_PAGE)
			return glibc_heap_fail(walk, "a heap is not of the arena that has it");
		*map_put(&walk->heaps, at, NULL) = head[2];
		if (at == (arena & ~inside))
			begin = glibc_heap_chunk_at(walk, arena + layout->arena_words * walk->word);
		if (!glibc_heap_walk_chunks(walk, begin, at == first ? top : 0, at + head[2]))
			return glibc_heap_fail(walk, "the chunks of a heap are not one chain");
		at = head[1];
	}
	return true;
}

// ---- Chunks that are in no bin and yet free -----------------------------------------------------

// Follow a list of such chunks. `link`: from a chunk's header to where the link is. False: it is
// none, or has more than `most`.
static bool glibc_heap_follow(struct glibc_heap_walk *walk, uint64_t at, uint64_t size,
			      uint64_t link, unsigned most, struct map *found, unsigned *count)
{
	*count = 0;
	while (at) {
		uint64_t chunk = at - link, block = chunk + walk->header, words[3];

		if (block % GLIBC_HEAP_ALIGN || ++*count > most ||
		    !glibc_heap_words(walk, chunk, words, 3) ||
		    (words[1] & ~(uint64_t)GLIBC_HEAP_FLAGS) != size)
			return false;
		if (found)
			map_put(found, block, NULL);
		at = words[2];
		if (walk->minor >= GLIBC_HEAP_MANGLED_SINCE)
			// PROTECT_PTR of glibc: the link is mixed with the place where it is. A
			// block at 0x5555000, whose link says 0x5550, leads to 0x5550 ^ 0x5555 = 5,
			// which no chunk can be at: so a wrong version shows.
			at ^= block >> 12;
	}
	return true;
}

// Of 64 bits the first list has chunks of 32 bytes, and each further one of 16 more. Its links lead
// to headers, where those of a tcache lead to blocks.
static bool glibc_heap_walk_fastbins(struct glibc_heap_walk *walk, const uint64_t *words)
{
	const struct glibc_heap_layout *layout = walk->layout;
	unsigned count;

	ASSERT(walk->layout->fast_at + walk->layout->fast_count <= walk->layout->arena_words);
	for (unsigned i = 0; i < layout->fast_count; i++)
		if (!glibc_heap_follow(walk, words[layout->fast_at + i],
				       layout->smallest + layout->fast_step * (uint64_t)i, 0,
				       GLIBC_HEAP_LIST_MAX, &walk->unused, &count))
			return glibc_heap_fail(walk, "a list of its free blocks is broken");
	return true;
}

// Arenas are a ring, from the main one back to it.
static bool glibc_heap_walk_arenas(struct glibc_heap_walk *walk)
{
	uint64_t words[GLIBC_HEAP_ARENA_WORDS_MAX];
	uint64_t arena = walk->main;

	ASSERT(walk->layout->arena_words <= GLIBC_HEAP_ARENA_WORDS_MAX);
	do {
		if (!glibc_heap_words(walk, arena, words, walk->layout->arena_words) ||
		    walk->heap->arenas++ >= GLIBC_HEAP_ARENAS_MAX)
			return glibc_heap_fail(walk, "the list of its arenas is broken");
		if (!(arena == walk->main ? glibc_heap_walk_main(walk, words)
					  : glibc_heap_walk_heaps(walk, arena, words)) ||
		    !glibc_heap_walk_fastbins(walk, words))
			return false;
		arena = words[walk->layout->next_at];
	} while (arena != walk->main);
	return true;
}

// ---- Tcaches ------------------------------------------------------------------------------------

// Counts, and behind them lists.
static uint64_t glibc_heap_tcache_bytes(const struct glibc_heap_walk *walk)
{
	unsigned count = walk->minor >= GLIBC_HEAP_WIDE_SINCE ? 2 : 1;

	return GLIBC_HEAP_TCACHE_BINS * (count + walk->word);
}

// The size of the chunk that a block of so many bytes is in.
static uint64_t glibc_heap_chunk_bytes(const struct glibc_heap_walk *walk, uint64_t bytes)
{
	// malloc(24) has a chunk of 32: its last 8 bytes are the next chunk's first word.
	return (bytes + walk->word + GLIBC_HEAP_ALIGN - 1) & ~(uint64_t)(GLIBC_HEAP_ALIGN - 1);
}

// Whether the block at `at` is a thread's tcache, and how many blocks are in it (+ 1); 0: it is
// none. Its blocks go to `found`.
static unsigned glibc_heap_read_tcache(struct glibc_heap_walk *walk, uint64_t at, struct map *found)
{
	uint8_t bytes[GLIBC_HEAP_TCACHE_BINS * 10];
	uint64_t size = glibc_heap_tcache_bytes(walk);
	bool wide = walk->minor >= GLIBC_HEAP_WIDE_SINCE;
	uint64_t header;
	unsigned total = 0;

	if (at % GLIBC_HEAP_ALIGN || at < GLIBC_HEAP_PAGE ||
	    !glibc_heap_words(walk, at - walk->word, &header, 1) ||
	    (header & ~(uint64_t)GLIBC_HEAP_FLAGS) != glibc_heap_chunk_bytes(walk, size) ||
	    (header & GLIBC_HEAP_MAPPED) || !tracee_read(walk->pid, at, bytes, size))
		return 0;
	for (unsigned i = 0; i < GLIBC_HEAP_TCACHE_BINS; i++) {
		unsigned count = wide ? bytes[2 * i] | (unsigned)bytes[2 * i + 1] << 8 : bytes[i];
		unsigned listed;
		uint64_t first = 0;

		ASSERT(size <= sizeof(bytes));
		memcpy(&first, bytes + size - walk->word * (GLIBC_HEAP_TCACHE_BINS - i),
		       walk->word);
		if (!count && !found) // what is no list any more may be left there
			continue;
		if (!glibc_heap_follow(walk, count ? first : 0,
				       walk->layout->smallest + GLIBC_HEAP_ALIGN * (uint64_t)i,
				       walk->header, count, found, &listed) ||
		    listed != count)
			return 0;
		total += count;
	}
	return total + 1;
}

// How many threads have a tcache so many words below their thread pointer, and blocks in it.
struct glibc_heap_tls {
	uint32_t threads, blocks;
};

// Whether a word beside the one at `at` is the address of an arena: the thread's own. Of malloc.c's
// thread-local variables one is the tcache, one the arena, and the third is a byte.
static bool glibc_heap_arena_near(const struct glibc_heap_walk *walk, uint64_t at)
{
	uint64_t words[2 * GLIBC_HEAP_TLS_NEAR + 1], heap_bytes = walk->layout->heap_bytes;
	size_t count = sizeof(words) / sizeof(*words);

	ASSERT((heap_bytes & (heap_bytes - 1)) == 0); // a heap begins at a multiple of it
	if (!glibc_heap_words(walk, at - walk->word * GLIBC_HEAP_TLS_NEAR, words, count))
		return false;
	for (size_t i = 0; i < count; i++)
		if (words[i] == walk->main || map_find(&walk->heaps, words[i] & ~(heap_bytes - 1)))
			return true;
	return false;
}

// A tcache is found by what it must be: a block of the right size, whose counts agree with its
// lists, with an arena beside its pointer: a block of zeros agrees, too, and the program may have
// one in a thread-local variable of its own. Each of `most` words below the thread pointer is
// tried, as far as they can be read; by chance none is one in all threads.
static void glibc_heap_look_for_tcache(struct glibc_heap_walk *walk, uint64_t base, size_t most,
				       struct glibc_heap_tls *seen)
{
	uint64_t words[GLIBC_HEAP_TLS_PART];

	for (size_t below = GLIBC_HEAP_TLS_PART; below <= most; below += GLIBC_HEAP_TLS_PART) {
		if (!glibc_heap_words(walk, base - walk->word * below, words, GLIBC_HEAP_TLS_PART))
			return;
		for (size_t i = 0; i < GLIBC_HEAP_TLS_PART; i++) {
			uint64_t at = base - walk->word * (below - i);
			unsigned found = glibc_heap_read_tcache(walk, words[i], NULL);

			if (found && !glibc_heap_arena_near(walk, at))
				continue;
			seen[below - i].threads += found > 0;
			seen[below - i].blocks += found > 0 ? found - 1 : 0;
		}
	}
}

// How many words below the thread pointer most threads have a tcache, of `most`; 0: none has one.
static size_t glibc_heap_find_tcache(struct glibc_heap_walk *walk, size_t most)
{
	struct glibc_heap_tls *seen = mem_alloc(most + 1, sizeof(*seen));
	const struct tracee *tracee = walk->tracee;
	size_t best = 0;

	for (size_t i = 0; i < tracee->count; i++)
		if (!tracee->threads[i].gone &&
		    narrow_thread_pointer(&tracee->threads[i].registers))
			glibc_heap_look_for_tcache(
				walk, narrow_thread_pointer(&tracee->threads[i].registers), most,
				seen);
	for (size_t i = 1; i <= most; i++)
		if (seen[i].threads > seen[best].threads ||
		    (seen[i].threads == seen[best].threads && seen[i].blocks > seen[best].blocks))
			best = i;
	mem_free(seen);
	return best;
}

// All threads have theirs at the same distance from the thread pointer: where most have one. The
// program's own thread-local variables come before libc's: haproxy has 43,084 bytes of them. So
// where nothing is found near, it is looked for farther away, where other things are, too.
static bool glibc_heap_walk_tcaches(struct glibc_heap_walk *walk)
{
	const struct tracee *tracee = walk->tracee;
	size_t best = glibc_heap_find_tcache(walk, GLIBC_HEAP_TLS_WORDS);

	if (!best)
		best = glibc_heap_find_tcache(walk, GLIBC_HEAP_TLS_WORDS_MAX);
	if (!best) // who has allocated has one
		return walk->cached_max == 0 || walk->heap->count == 0 ||
		       glibc_heap_fail(walk, "no thread's cache of free blocks was found");
	for (size_t i = 0; i < tracee->count; i++) {
		uint64_t base = narrow_thread_pointer(&tracee->threads[i].registers), at;

		if (tracee->threads[i].gone || !base ||
		    // In threads that have not allocated the word is 0.
		    !glibc_heap_words(walk, base - walk->word * best, &at, 1) || !at)
			continue;
		if (!glibc_heap_read_tcache(walk, at, &walk->unused))
			return glibc_heap_fail(walk, "a thread's cache of free blocks is broken");
		map_put(&walk->unused, at, NULL);
	}
	return true;
}

// ---- Blocks with mappings of their own ----------------------------------------------------------

// Whether a chunk with a mapping of its own begins here, `before` bytes into its mapping, and ends
// with that.
static bool glibc_heap_is_mapped(const struct glibc_heap_walk *walk, uint64_t at, uint64_t before,
				 uint64_t end, uint64_t *size)
{
	uint64_t words[2];

	*size = 0;
	if (!glibc_heap_words(walk, at, words, 2))
		return false;
	*size = words[1] & ~(uint64_t)GLIBC_HEAP_FLAGS;
	return (words[1] & GLIBC_HEAP_FLAGS) == GLIBC_HEAP_MAPPED && words[0] == before &&
	       (before + *size) % GLIBC_HEAP_PAGE == 0 && *size > walk->header && *size <= end - at;
}

// What an aligned block left at the start of its mapping, `chunk`, is the header of all of it; its
// own is further in, where the alignment wants it. Returns where the header is.
static uint64_t glibc_heap_find_aligned(const struct glibc_heap_walk *walk, uint64_t chunk,
					uint64_t *size)
{
	uint64_t end = chunk + *size, own;

	// An aligned_alloc(4096, …) from 0x7000 on: its header is at 0x7ff0, with the 0xff0 bytes
	// before it in its first word.
	for (uint64_t align = 2 * GLIBC_HEAP_ALIGN; align < *size; align *= 2) {
		uint64_t at = ((chunk + walk->header + align - 1) & ~(align - 1)) - walk->header;

		if (at - chunk < walk->layout->smallest)
			at += align;
		if (at + walk->header < end &&
		    glibc_heap_is_mapped(walk, at, at - chunk + walk->layout->lead, end, &own) &&
		    at + own == end) {
			*size = own;
			return at;
		}
	}
	return chunk;
}

// Several blocks may be in one line of the kernel's list, which joins mappings that touch; heaps of
// other arenas may be between them, and are stepped over as a whole. Else page by page: a block
// with a mapping of its own begins at a page, which its header has touched. To read of pages that
// were never touched would make some there, and a database may have gigabytes of them: after one
// that has zeros they are passed over.
static void glibc_heap_walk_mapping(struct glibc_heap_walk *walk, int pagemap, uint64_t page,
				    uint64_t end, uint64_t *bytes)
{
	ASSERT(page <= end);
	if (pagemap >= 0)
		page = proc_memory_touched(pagemap, page, end);
	while (page < end && walk->heap->mapped < walk->mapped_count) {
		const uint64_t *heap =
			page % walk->layout->heap_bytes ? NULL : map_find(&walk->heaps, page);
		uint64_t size, at;

		if (heap) {
			page += *heap;
			continue;
		}
		at = page + walk->layout->lead;
		if (!glibc_heap_is_mapped(walk, at, at - page, end, &size)) {
			page += GLIBC_HEAP_PAGE;
			if (pagemap >= 0 && size == 0)
				page = proc_memory_touched(pagemap, page, end);
			continue;
		}
		at = glibc_heap_find_aligned(walk, at, &size);
		glibc_heap_add(walk->heap, at + walk->header, size - walk->header);
		walk->heap->mapped++;
		*bytes += at + size - page;
		page = at + size;
	}
}

// Only as many as mp_ counts, and of as many bytes: memory that looks like such a header by chance
// would make one too many, and then nothing is believed.
static bool glibc_heap_walk_mapped(struct glibc_heap_walk *walk)
{
	const char *at = NULL;
	struct maps_line line;
	uint64_t bytes = 0;
	char path[48];
	int pagemap;

	if (walk->mapped_count == 0)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/pagemap", (int)walk->pid);
	pagemap = open(path, O_RDONLY | O_CLOEXEC);
	while (glibc_heap_next_mapping(walk->objects, &at, &line))
		if (glibc_heap_is_data(&line) && !line.inode && line.path_length == 0)
			glibc_heap_walk_mapping(walk, pagemap, line.start, line.end, &bytes);
	if (pagemap >= 0)
		close(pagemap);
	return (walk->heap->mapped == walk->mapped_count && bytes == walk->mapped_bytes) ||
	       glibc_heap_fail(walk, "its blocks with mappings of their own were not all found");
}

// ---- All of it ----------------------------------------------------------------------------------

size_t glibc_heap_sift(struct glibc_heap *heap, size_t from, const struct map *unused,
		       const struct map *own)
{
	size_t kept = from, left = unused->count;

	for (size_t i = from; i < heap->count; i++) {
		bool is_unused = map_find(unused, heap->blocks[i].address);

		left -= is_unused;
		if (is_unused || (own && map_find(own, heap->blocks[i].address)))
			continue;
		heap->blocks[kept++] = heap->blocks[i];
		heap->bytes += heap->blocks[i].size;
	}
	heap->count = kept;
	return left;
}

// Whether the program has its malloc from somewhere else.
static bool glibc_heap_is_replaced(const struct objects *objects)
{
	const struct objects_one *libc = objects_libc(objects);

	for (size_t i = 0; i < objects->count; i++) {
		const struct objects_one *object = &objects->list[i];
		const char *name = strrchr(object->path, '/');

		if (name && !objects_is_linker(object) && strncmp(name, "/libtidemark", 12) != 0 &&
		    !(libc && object->inode == libc->inode) &&
		    objects_symbol(objects, object, "malloc", NULL))
			return true;
	}
	return false;
}

// Whether there is another glibc, in another namespace.
static bool glibc_heap_has_another(const struct objects *objects)
{
	for (size_t i = 0; i < objects->count; i++)
		if (objects->list[i].apart &&
		    objects_symbol(objects, &objects->list[i], "gnu_get_libc_version", NULL))
			return true;
	return false;
}

static bool glibc_heap_walk_all(struct glibc_heap_walk *walk)
{
	return glibc_heap_find_parameters(walk) && glibc_heap_walk_arenas(walk) &&
	       glibc_heap_walk_tcaches(walk) && glibc_heap_walk_mapped(walk);
}

// A static program does not say which version of glibc is in it. What differs between versions
// makes no sense by the rules of another one: by which all of its heap does, it is read.
static bool glibc_heap_walk_alone(struct glibc_heap_walk *walk)
{
	static const unsigned minors[] = { GLIBC_HEAP_PAGES_SINCE, GLIBC_HEAP_MANGLED_SINCE,
					   GLIBC_HEAP_WIDE_SINCE, GLIBC_HEAP_MINOR_MIN };
	struct glibc_heap *heap = walk->heap;

	for (size_t i = 0; i < sizeof(minors) / sizeof(*minors); i++) {
		str_clear(&heap->why);
		MAP_FINI(&walk->unused, &walk->heaps);
		walk->unused = walk->heaps = (struct map){ 0 };
		heap->count = heap->arenas = heap->mapped = 0;
		walk->minor = minors[i];
		if (glibc_heap_walk_all(walk))
			return true;
	}
	return false;
}

// A program with another malloc may never have called glibc's: its main arena was not set up then,
// and that no arena is found is no failure. `begun` says that one was, so that a heap that is
// damaged is not taken for this.
bool glibc_heap_read(struct glibc_heap *heap, const struct objects *objects,
		     const struct tracee *tracee)
{
	struct glibc_heap_walk *walk = mem_alloc(1, sizeof(*walk));
	bool ok;

	*heap = (struct glibc_heap){ 0 };
	walk->heap = heap;
	walk->layout = objects->narrow ? &glibc_heap_narrow : &glibc_heap_wide;
	walk->word = walk->layout->word;
	walk->header = 2 * walk->word;
	walk->objects = objects;
	walk->tracee = tracee;
	walk->pid = tracee->pid;
	ok = glibc_heap_find_version(walk) && glibc_heap_read_data(walk) &&
	     glibc_heap_find_main(walk) &&
	     (objects->alone ? glibc_heap_walk_alone(walk) : glibc_heap_walk_all(walk));
	if (ok) {
		ASSERT(heap->bytes == 0);
		glibc_heap_sift(heap, 0, &walk->unused, NULL);
	} else if (!walk->begun && walk->data && glibc_heap_is_replaced(objects)) {
		str_clear(&heap->why); // it has allocated nothing with glibc's
		ok = true;
	}
	if (ok)
		str_add(&heap->with, "glibc");
	if (ok && glibc_heap_has_another(objects))
		str_add(&heap->but,
			"the heap of a C library in another namespace (dlmopen) is not read");
	MAP_FINI(&walk->unused, &walk->heaps);
	MEM_FREE(walk->data, walk);
	return ok;
}
