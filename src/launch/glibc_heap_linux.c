#include "launch/glibc_heap_linux.h"

#include "base/map.h"
#include "base/mem.h"
#include "collect/before.h"
#include "collect/maps_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// struct malloc_state, in words of 8 bytes.
enum {
	GLIBC_HEAP_ARENA_BYTES = 0x898,
	GLIBC_HEAP_FAST_AT = 2,
	GLIBC_HEAP_FAST_COUNT = 10,
	GLIBC_HEAP_TOP_AT = 12,
	GLIBC_HEAP_BINS_AT = 14,
	GLIBC_HEAP_BINS = 127,
	GLIBC_HEAP_NEXT_AT = 270,
	GLIBC_HEAP_SYSTEM_AT = 273,
	GLIBC_HEAP_ARENA_WORDS = GLIBC_HEAP_ARENA_BYTES / 8,
	GLIBC_HEAP_EMPTY_MIN = 24, // bins that are empty, before the others are looked at
};

enum {
	GLIBC_HEAP_IN_USE = 1, // flags of a chunk's size: the one before it is in use
	GLIBC_HEAP_MAPPED = 2,
	GLIBC_HEAP_FLAGS = 7,
	GLIBC_HEAP_CHUNK_MIN = 32,
	GLIBC_HEAP_HEADER = 16,
	GLIBC_HEAP_PAGE = 4096,
	GLIBC_HEAP_WINDOW = 64 << 10, // that is read at once, where chunks are small
	GLIBC_HEAP_LARGE = 2048,      // a chunk that is better stepped over
	GLIBC_HEAP_LIST_MAX = 1 << 22,
	GLIBC_HEAP_ARENAS_MAX = 1 << 14,
	GLIBC_HEAP_TLS_BYTES = 8192, // below the thread pointer
	GLIBC_HEAP_TCACHE_BINS = 64,
	GLIBC_HEAP_MANGLED_SINCE = 32, // 2.32: links of lists are mixed with their place
	GLIBC_HEAP_WIDE_SINCE = 30,    // 2.30: counts of a tcache have 16 bits
	GLIBC_HEAP_PAGES_SINCE = 35,   // 2.35: mp_ knows of huge pages
	GLIBC_HEAP_MAPPED_MAX = 65536,
	GLIBC_HEAP_MINOR_MIN = 27,
	GLIBC_HEAP_MINOR_MAX = 41,
	GLIBC_HEAP_DATA_MAX = 1 << 20,
};

#define GLIBC_HEAP_HEAP_BYTES (UINT64_C(64) << 20) // of an arena that is not the main one

// What is at hand while one process is read.
struct glibc_heap_walk {
	struct glibc_heap *heap;
	const struct objects *objects;
	const struct tracee *tracee;
	pid_t pid;
	unsigned minor;
	uint64_t main;  // main_arena
	bool begun;     // it was there, whether it made sense or not
	uint64_t start; // of its heap
	uint64_t mapped_count, mapped_bytes;
	uint64_t cached_max; // of a size, in a tcache; 0: there are none
	struct map heaps;    // of arenas: where one begins, and how long it is
	struct map unused;   // chunks in fastbins and tcaches, and the tcaches themselves: address
	uint64_t window_at;
	size_t window_size;
	uint8_t window[GLIBC_HEAP_WINDOW];
	uint64_t data_at;
	uint64_t *data; // libc's variables
	size_t data_count;
};

static bool glibc_heap_fail(struct glibc_heap_walk *walk, const char *why)
{
	if (walk->heap->why.length == 0)
		str_add(&walk->heap->why, why);
	return false;
}

static void glibc_heap_add(struct glibc_heap *heap, uint64_t address, uint64_t size)
{
	*MEM_ADD(heap->blocks, heap->count, heap->capacity) =
		(struct collect_block){ address, size };
}

// ---- What is where ------------------------------------------------------------------------------

// "2.36", from the function that returns it: lea text(%rip), %rax; ret.
static bool glibc_heap_find_version(struct glibc_heap_walk *walk)
{
	const struct objects_one *libc = objects_libc(walk->objects);
	uint64_t at = libc ? objects_symbol(walk->objects, libc, "gnu_get_libc_version", NULL) : 0;
	uint8_t code[16];
	int32_t distance;

	if (!at || !tracee_read(walk->pid, at, code, sizeof(code)))
		return glibc_heap_fail(walk, "its C library is not glibc");
	for (size_t i = 0; i + 7 < sizeof(code); i++) {
		if (code[i] != 0x48 || code[i + 1] != 0x8d || code[i + 2] != 0x05)
			continue;
		memcpy(&distance, code + i + 3, sizeof(distance));
		tracee_read(walk->pid, at + i + 7 + (uint64_t)(int64_t)distance,
			    walk->heap->version, sizeof(walk->heap->version) - 1);
		break;
	}
	if (strncmp(walk->heap->version, "2.", 2) == 0)
		walk->minor = (unsigned)atoi(walk->heap->version + 2);
	if (walk->minor >= GLIBC_HEAP_MINOR_MIN && walk->minor <= GLIBC_HEAP_MINOR_MAX)
		return true;
	str_format(&walk->heap->why, "the heap of glibc %s has a layout that is not known",
		   walk->heap->version[0] ? walk->heap->version : "of an unknown version");
	return false;
}

// The next mapping of the list; `*at` is NULL at first.
static bool glibc_heap_next_mapping(const struct objects *objects, const char **at,
				    struct maps_line *line)
{
	const char *end = objects->text + objects->text_size;

	if (!*at)
		*at = objects->text;
	while (*at < end)
		if (maps_text_next(at, end, line))
			return true;
	return false;
}

static bool glibc_heap_is_data(const struct maps_line *line)
{
	return (line->protection & (PROT_READ | PROT_WRITE)) == (PROT_READ | PROT_WRITE) &&
	       !line->shared;
}

// libc's variables.
static bool glibc_heap_read_data(struct glibc_heap_walk *walk)
{
	const struct objects_one *libc = objects_libc(walk->objects);
	const char *at = NULL;
	struct maps_line line;

	while (glibc_heap_next_mapping(walk->objects, &at, &line)) {
		if (line.inode != libc->inode || line.device != libc->device ||
		    !glibc_heap_is_data(&line) || line.end - line.start > GLIBC_HEAP_DATA_MAX)
			continue;
		walk->data_at = line.start;
		walk->data_count = (size_t)(line.end - line.start) / 8;
		walk->data = mem_alloc(walk->data_count, 8);
		if (tracee_read(walk->pid, line.start, walk->data, walk->data_count * 8))
			return true;
	}
	return glibc_heap_fail(walk, "the variables of its C library cannot be read");
}

// ---- Arenas -------------------------------------------------------------------------------------

// Whether these words are an arena's: each bin is empty, or its first chunk leads back to it.
static bool glibc_heap_is_arena(struct glibc_heap_walk *walk, uint64_t at, const uint64_t *words)
{
	const uint64_t *bins = words + GLIBC_HEAP_BINS_AT;
	unsigned empty = 0;

	for (unsigned i = 0; i < GLIBC_HEAP_BINS; i++) {
		uint64_t bin = at + (GLIBC_HEAP_BINS_AT + 2 * i) * 8 - GLIBC_HEAP_HEADER;

		empty += bins[2 * i] == bin && bins[2 * i + 1] == bin;
	}
	if (empty < GLIBC_HEAP_EMPTY_MIN)
		return false;
	walk->begun = true;
	for (unsigned i = 0; i < GLIBC_HEAP_BINS; i++) {
		uint64_t bin = at + (GLIBC_HEAP_BINS_AT + 2 * i) * 8 - GLIBC_HEAP_HEADER;
		uint64_t back;

		if (bins[2 * i] == bin)
			continue;
		if (!tracee_read(walk->pid, bins[2 * i] + 24, &back, sizeof(back)) || back != bin)
			return false;
	}
	return true;
}

static bool glibc_heap_find_main(struct glibc_heap_walk *walk)
{
	for (size_t i = 0; i + GLIBC_HEAP_ARENA_WORDS <= walk->data_count; i += 2) {
		uint64_t at = walk->data_at + i * 8;

		if (walk->data[i + GLIBC_HEAP_NEXT_AT] < GLIBC_HEAP_PAGE ||
		    !glibc_heap_is_arena(walk, at, walk->data + i))
			continue;
		walk->main = at;
		return true;
	}
	return glibc_heap_fail(walk, "its C library has no heap, or none that is known");
}

// Where the main heap begins, and how many blocks have mappings: from mp_, which is found by its
// limits of such blocks (mapped_max) and, after sbrk_base, of a tcache.
static bool glibc_heap_find_parameters(struct glibc_heap_walk *walk)
{
	bool pages = walk->minor >= GLIBC_HEAP_PAGES_SINCE; // one more number before these

	for (size_t i = 5; i + 3 < walk->data_count; i++) {
		const uint64_t *words = walk->data + i;
		uint32_t mapped_max = (uint32_t)(pages ? words[-4] : words[-4] >> 32);

		if (mapped_max != GLIBC_HEAP_MAPPED_MAX || words[-2] > words[-1] ||
		    words[1] > GLIBC_HEAP_TCACHE_BINS || words[2] > 1032 || words[3] > UINT16_MAX ||
		    (words[1] != GLIBC_HEAP_TCACHE_BINS && words[0] == 0))
			continue;
		walk->start = words[0];
		walk->mapped_count = (uint32_t)(pages ? words[-5] >> 32 : words[-4]);
		walk->mapped_bytes = words[-2];
		walk->cached_max = words[3];
		return true;
	}
	return glibc_heap_fail(walk, "the parameters of its malloc were not found");
}

// ---- Chunks -------------------------------------------------------------------------------------

static bool glibc_heap_word(struct glibc_heap_walk *walk, uint64_t at, size_t ahead, uint64_t *word)
{
	uint64_t into = at - walk->window_at;

	if (at < walk->window_at || into + 8 > walk->window_size) {
		uint64_t page_end = (at | (GLIBC_HEAP_PAGE - 1)) + 1;

		walk->window_at = at;
		walk->window_size = ahead;
		while (!tracee_read(walk->pid, at, walk->window, walk->window_size)) {
			if (walk->window_size <= page_end - at)
				return false;
			walk->window_size /= 2;
			if (walk->window_size < page_end - at)
				walk->window_size = page_end - at;
		}
		into = 0;
	}
	memcpy(word, walk->window + into, 8);
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

		if (at + GLIBC_HEAP_HEADER > end || !glibc_heap_word(walk, at + 8, ahead, &word))
			return 0;
		size = word & ~(uint64_t)GLIBC_HEAP_FLAGS;
		if (before && (word & GLIBC_HEAP_IN_USE) && size != 0)
			glibc_heap_add(walk->heap, before + GLIBC_HEAP_HEADER, before_size - 8);
		if (at == top)
			return top;
		if (size == 0 || size == GLIBC_HEAP_HEADER) // what is put where a heap is left
			return at + GLIBC_HEAP_HEADER;
		if (size < GLIBC_HEAP_CHUNK_MIN || size % 16 || (word & GLIBC_HEAP_MAPPED) ||
		    size > end - at)
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

	for (; at < end && !found; at += 16) {
		if (!glibc_heap_word(walk, at + 8, GLIBC_HEAP_WINDOW, &word))
			return 0;
		if ((word & GLIBC_HEAP_FLAGS) != GLIBC_HEAP_IN_USE || word < GLIBC_HEAP_CHUNK_MIN)
			continue;
		found = glibc_heap_walk_chunks(walk, at, top, end);
		if (!found)
			walk->heap->count = kept;
	}
	return found;
}

static bool glibc_heap_walk_main(struct glibc_heap_walk *walk, const uint64_t *words)
{
	uint64_t top = words[GLIBC_HEAP_TOP_AT];
	uint64_t system = words[GLIBC_HEAP_SYSTEM_AT];
	uint64_t at, end;

	if (walk->start == 0 || top < walk->start)
		return top == walk->main + GLIBC_HEAP_BINS_AT * 8 - GLIBC_HEAP_HEADER ||
		       glibc_heap_fail(walk, "its main heap does not begin at the program's break");
	end = walk->start + system;
	at = glibc_heap_walk_chunks(walk, (walk->start + 15) & ~(uint64_t)15, top, end);
	while (at && at != top)
		at = glibc_heap_resume(walk, at, top, end);
	return at || glibc_heap_fail(walk, "the chunks of its main heap are not one chain");
}

// The heaps of another arena, from the newest back.
static bool glibc_heap_walk_heaps(struct glibc_heap_walk *walk, uint64_t arena,
				  const uint64_t *words)
{
	uint64_t top = words[GLIBC_HEAP_TOP_AT];
	uint64_t info = arena & (GLIBC_HEAP_HEAP_BYTES - 1); // bytes of a heap's own
	uint64_t first = top & ~(GLIBC_HEAP_HEAP_BYTES - 1);
	uint64_t head[3];

	if (info != 0x20 && info != 0x30)
		return glibc_heap_fail(walk, "an arena's heap has an unknown size");
	for (uint64_t at = first; at;) {
		uint64_t begin = at + info;

		if (!tracee_read(walk->pid, at, head, sizeof(head)) || head[0] != arena ||
		    head[2] > GLIBC_HEAP_HEAP_BYTES)
			return glibc_heap_fail(walk, "a heap is not of the arena that has it");
		*map_put(&walk->heaps, at, NULL) = head[2];
		if (at == (arena & ~(GLIBC_HEAP_HEAP_BYTES - 1)))
			begin = (arena + GLIBC_HEAP_ARENA_BYTES + 15) & ~(uint64_t)15;
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
		uint64_t chunk = at - link, words[3];

		if (at % 16 || ++*count > most ||
		    !tracee_read(walk->pid, chunk, words, sizeof(words)) ||
		    (words[1] & ~(uint64_t)GLIBC_HEAP_FLAGS) != size)
			return false;
		if (found)
			map_put(found, chunk + GLIBC_HEAP_HEADER, NULL);
		at = words[2];
		if (walk->minor >= GLIBC_HEAP_MANGLED_SINCE)
			at ^= (chunk + GLIBC_HEAP_HEADER) >> 12;
	}
	return true;
}

static bool glibc_heap_walk_fastbins(struct glibc_heap_walk *walk, const uint64_t *words)
{
	unsigned count;

	for (unsigned i = 0; i < GLIBC_HEAP_FAST_COUNT; i++)
		if (!glibc_heap_follow(walk, words[GLIBC_HEAP_FAST_AT + i],
				       GLIBC_HEAP_CHUNK_MIN + 16 * (uint64_t)i, 0,
				       GLIBC_HEAP_LIST_MAX, &walk->unused, &count))
			return glibc_heap_fail(walk, "a list of its free blocks is broken");
	return true;
}

static bool glibc_heap_walk_arenas(struct glibc_heap_walk *walk)
{
	uint64_t words[GLIBC_HEAP_ARENA_WORDS];
	uint64_t arena = walk->main;

	do {
		if (!tracee_read(walk->pid, arena, words, sizeof(words)) ||
		    walk->heap->arenas++ >= GLIBC_HEAP_ARENAS_MAX)
			return glibc_heap_fail(walk, "the list of its arenas is broken");
		if (!(arena == walk->main ? glibc_heap_walk_main(walk, words)
					  : glibc_heap_walk_heaps(walk, arena, words)) ||
		    !glibc_heap_walk_fastbins(walk, words))
			return false;
		arena = words[GLIBC_HEAP_NEXT_AT];
	} while (arena != walk->main);
	return true;
}

// ---- Tcaches ------------------------------------------------------------------------------------

static uint64_t glibc_heap_tcache_bytes(const struct glibc_heap_walk *walk)
{
	return GLIBC_HEAP_TCACHE_BINS * (walk->minor >= GLIBC_HEAP_WIDE_SINCE ? 10u : 9u);
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

	if (at % 16 || at < GLIBC_HEAP_PAGE ||
	    !tracee_read(walk->pid, at - 8, &header, sizeof(header)) ||
	    (header & ~(uint64_t)GLIBC_HEAP_FLAGS) != size + GLIBC_HEAP_HEADER ||
	    (header & GLIBC_HEAP_MAPPED) || !tracee_read(walk->pid, at, bytes, size))
		return 0;
	for (unsigned i = 0; i < GLIBC_HEAP_TCACHE_BINS; i++) {
		unsigned count = wide ? bytes[2 * i] | (unsigned)bytes[2 * i + 1] << 8 : bytes[i];
		unsigned listed;
		uint64_t first;

		memcpy(&first, bytes + size - 8 * (GLIBC_HEAP_TCACHE_BINS - i), 8);
		if (!count && !found) // what is no list any more may be left there
			continue;
		if (!glibc_heap_follow(walk, count ? first : 0,
				       GLIBC_HEAP_CHUNK_MIN + 16 * (uint64_t)i, 16, count, found,
				       &listed) ||
		    listed != count)
			return 0;
		total += count;
	}
	return total + 1;
}

enum { GLIBC_HEAP_TLS_WORDS = GLIBC_HEAP_TLS_BYTES / 8 };

// How many threads have a tcache so many words below their thread pointer, and blocks in it.
struct glibc_heap_tls {
	uint32_t threads, blocks;
};

static void glibc_heap_look_for_tcache(struct glibc_heap_walk *walk, uint64_t base,
				       struct glibc_heap_tls *seen)
{
	static uint64_t words[GLIBC_HEAP_TLS_WORDS];
	size_t count = GLIBC_HEAP_TLS_WORDS;

	while (count > 1 && !tracee_read(walk->pid, base - 8 * count, words, 8 * count))
		count /= 2; // not all of it may be there
	for (size_t i = 1; i <= count; i++) {
		unsigned found = glibc_heap_read_tcache(walk, words[count - i], NULL);

		seen[i].threads += found > 0;
		seen[i].blocks += found > 0 ? found - 1 : 0;
	}
}

// All threads have theirs at the same distance from the thread pointer: where most have one.
static bool glibc_heap_walk_tcaches(struct glibc_heap_walk *walk)
{
	struct glibc_heap_tls seen[GLIBC_HEAP_TLS_WORDS + 1] = { 0 };
	const struct tracee *tracee = walk->tracee;
	size_t best = 0;

	for (size_t i = 0; i < tracee->count; i++)
		if (!tracee->threads[i].gone && tracee->threads[i].registers.fs_base)
			glibc_heap_look_for_tcache(walk, tracee->threads[i].registers.fs_base,
						   seen);
	for (size_t i = 1; i <= GLIBC_HEAP_TLS_WORDS; i++)
		if (seen[i].threads > seen[best].threads ||
		    (seen[i].threads == seen[best].threads && seen[i].blocks > seen[best].blocks))
			best = i;
	if (!seen[best].threads) // who has allocated has one
		return walk->cached_max == 0 || walk->heap->count == 0 ||
		       glibc_heap_fail(walk, "no thread's cache of free blocks was found");
	for (size_t i = 0; i < tracee->count; i++) {
		uint64_t base = tracee->threads[i].registers.fs_base, at;

		if (tracee->threads[i].gone || !base ||
		    !tracee_read(walk->pid, base - 8 * best, &at, sizeof(at)) || !at)
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

	if (!tracee_read(walk->pid, at, words, sizeof(words)))
		return false;
	*size = words[1] & ~(uint64_t)GLIBC_HEAP_FLAGS;
	return (words[1] & GLIBC_HEAP_FLAGS) == GLIBC_HEAP_MAPPED && words[0] == before &&
	       (before + *size) % GLIBC_HEAP_PAGE == 0 && *size > GLIBC_HEAP_HEADER &&
	       *size <= end - at;
}

// What an aligned block left at the start of its mapping is the header of all of it; its own is
// further in, where the alignment wants it. Returns where the header is.
static uint64_t glibc_heap_find_aligned(const struct glibc_heap_walk *walk, uint64_t page,
					uint64_t *size)
{
	uint64_t end = page + *size, own;

	for (uint64_t align = 32; align < *size; align *= 2) {
		uint64_t at =
			((page + GLIBC_HEAP_HEADER + align - 1) & ~(align - 1)) - GLIBC_HEAP_HEADER;

		if (at - page < GLIBC_HEAP_CHUNK_MIN)
			at += align;
		if (at + GLIBC_HEAP_HEADER < end &&
		    glibc_heap_is_mapped(walk, at, at - page, end, &own) && at + own == end) {
			*size = own;
			return at;
		}
	}
	return page;
}

static void glibc_heap_walk_mapping(struct glibc_heap_walk *walk, uint64_t page, uint64_t end,
				    uint64_t *bytes)
{
	while (page < end && walk->heap->mapped < walk->mapped_count) {
		const uint64_t *heap = page % GLIBC_HEAP_HEAP_BYTES ? NULL
								    : map_find(&walk->heaps, page);
		uint64_t size, at;

		if (heap) {
			page += *heap;
			continue;
		}
		if (!glibc_heap_is_mapped(walk, page, 0, end, &size)) {
			page += GLIBC_HEAP_PAGE;
			continue;
		}
		at = glibc_heap_find_aligned(walk, page, &size);
		glibc_heap_add(walk->heap, at + GLIBC_HEAP_HEADER, size - GLIBC_HEAP_HEADER);
		walk->heap->mapped++;
		*bytes += at + size - page;
		page = at + size;
	}
}

static bool glibc_heap_walk_mapped(struct glibc_heap_walk *walk)
{
	const char *at = NULL;
	struct maps_line line;
	uint64_t bytes = 0;

	if (walk->mapped_count == 0)
		return true;
	while (glibc_heap_next_mapping(walk->objects, &at, &line))
		if (glibc_heap_is_data(&line) && !line.inode && line.path_length == 0)
			glibc_heap_walk_mapping(walk, line.start, line.end, &bytes);
	return (walk->heap->mapped == walk->mapped_count && bytes == walk->mapped_bytes) ||
	       glibc_heap_fail(walk, "its blocks with mappings of their own were not all found");
}

// ---- All of it ----------------------------------------------------------------------------------

// Leave out what is free after all.
static void glibc_heap_sift(struct glibc_heap_walk *walk)
{
	struct glibc_heap *heap = walk->heap;
	size_t kept = 0;

	for (size_t i = 0; i < heap->count; i++) {
		if (map_find(&walk->unused, heap->blocks[i].address))
			continue;
		heap->blocks[kept++] = heap->blocks[i];
		heap->bytes += heap->blocks[i].size;
	}
	heap->count = kept;
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

bool glibc_heap_read(struct glibc_heap *heap, const struct objects *objects,
		     const struct tracee *tracee)
{
	struct glibc_heap_walk *walk = mem_alloc(1, sizeof(*walk));
	bool ok;

	*heap = (struct glibc_heap){ 0 };
	walk->heap = heap;
	walk->objects = objects;
	walk->tracee = tracee;
	walk->pid = tracee->pid;
	ok = glibc_heap_find_version(walk) && glibc_heap_read_data(walk) &&
	     glibc_heap_find_main(walk) && glibc_heap_find_parameters(walk) &&
	     glibc_heap_walk_arenas(walk) && glibc_heap_walk_tcaches(walk) &&
	     glibc_heap_walk_mapped(walk);
	if (ok) {
		glibc_heap_sift(walk);
	} else if (!walk->begun && walk->data && glibc_heap_is_replaced(objects)) {
		str_clear(&heap->why); // it has allocated nothing with glibc's
		ok = true;
	}
	if (ok)
		str_add(&heap->with, "glibc");
	map_fini(&walk->unused);
	map_fini(&walk->heaps);
	mem_free(walk->data);
	mem_free(walk);
	return ok;
}

void glibc_heap_note(struct glibc_heap *heap, struct str *text)
{
	bool known = heap->why.length == 0;
	char *why = str_take(known ? &heap->but : &heap->why);

	if (known)
		str_format(text, BEFORE_WITH "%s%s%s", str_get(&heap->with), why[0] ? "; " : "",
			   why);
	else
		str_add(text, why);
	if (why[0])
		str_format(&heap->why, "%sknown: %s", known ? "all " : "", why);
	mem_free(why);
}

void glibc_heap_fini(struct glibc_heap *heap)
{
	mem_free(heap->blocks);
	str_fini(&heap->why);
	str_fini(&heap->with);
	str_fini(&heap->but);
	*heap = (struct glibc_heap){ 0 };
}
