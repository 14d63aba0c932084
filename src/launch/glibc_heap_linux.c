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
#include "launch/glibc_heap_linux.h"

#include "base/map.h"
#include "base/mem.h"
#include "collect/maps_text.h"
#include "launch/narrow_linux.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// What differs by the class of a program. Of struct malloc_state: places in words.
struct glibc_heap_layout {
	uint16_t word;     // bytes
	uint16_t smallest; // chunk
	uint16_t lead;     // before a chunk that has a mapping of its own
	uint16_t fast_at, fast_count;
	uint16_t fast_step; // from one size to the next one
	uint16_t top_at, bins_at, next_at, system_at, arena_words;
	uint32_t heap_bytes;   // of an arena that is not the main one
	uint16_t heap_info[2]; // bytes of such a heap's own, before 2.35 and since
};

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

enum {
	GLIBC_HEAP_BINS = 127,
	GLIBC_HEAP_ARENA_WORDS_MAX = 280,
	GLIBC_HEAP_ALIGN = 16, // of blocks
};

enum {
	GLIBC_HEAP_IN_USE = 1, // flags of a chunk's size: the one before it is in use
	GLIBC_HEAP_MAPPED = 2,
	GLIBC_HEAP_FLAGS = 7,
	GLIBC_HEAP_PAGE = 4096,
	GLIBC_HEAP_WINDOW = 64 << 10, // that is read at once, where chunks are small
	GLIBC_HEAP_LARGE = 2048,      // a chunk that is better stepped over
	GLIBC_HEAP_LIST_MAX = 1 << 22,
	GLIBC_HEAP_ARENAS_MAX = 1 << 14,
	GLIBC_HEAP_TLS_WORDS = 1024, // below the thread pointer
	GLIBC_HEAP_TCACHE_BINS = 64,
	GLIBC_HEAP_MANGLED_SINCE = 32, // 2.32: links of lists are mixed with their place
	GLIBC_HEAP_WIDE_SINCE = 30,    // 2.30: counts of a tcache have 16 bits
	GLIBC_HEAP_PAGES_SINCE = 35,   // 2.35: mp_ knows of huge pages
	GLIBC_HEAP_MAPPED_MAX = 65536,
	GLIBC_HEAP_PARAMETERS = 256, // bytes, at most
	GLIBC_HEAP_MINOR_MIN = 27,
	GLIBC_HEAP_MINOR_MAX = 41,
	GLIBC_HEAP_DATA_MAX = 1 << 20,
	GLIBC_HEAP_DATA_ALONE_MAX = 64 << 20,
};

// What is at hand while one process is read.
struct glibc_heap_walk {
	struct glibc_heap *heap;
	const struct glibc_heap_layout *layout;
	unsigned word, header; // bytes: of a word, and of a chunk before its block
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

// Read words of the process. False: not all of them are there.
static bool glibc_heap_words(const struct glibc_heap_walk *walk, uint64_t at, uint64_t *words,
			     size_t count)
{
	ASSERT(walk->word == 4 || walk->word == 8);
	return tracee_words(walk->pid, at, walk->objects->narrow, words, count) == count;
}

// The first place from `at` on where a chunk may begin.
static uint64_t glibc_heap_chunk_at(const struct glibc_heap_walk *walk, uint64_t at)
{
	// Of 64 bits 0x1000 is 0x1000: the block at 0x1010 is aligned. Of 32 bits it is 0x1008,
	// whose block is at 0x1010.
	return ((at + walk->header + GLIBC_HEAP_ALIGN - 1) & ~(uint64_t)(GLIBC_HEAP_ALIGN - 1)) -
	       walk->header;
}

// A bin as a chunk, of an arena.
static uint64_t glibc_heap_bin(const struct glibc_heap_walk *walk, uint64_t arena, unsigned number)
{
	// A bin is two links of a chunk without the rest of it: so its address as a chunk is a
	// header before them, where other fields of the arena are.
	return arena + (walk->layout->bins_at + 2 * number) * walk->word - walk->header;
}

static void glibc_heap_add(struct glibc_heap *heap, uint64_t address, uint64_t size)
{
	*MEM_ADD(heap->blocks, heap->count, heap->capacity) =
		(struct collect_block){ address, size };
}

// ---- What is where ------------------------------------------------------------------------------

// The address that such a function returns, from its code at `at`: lea text(%rip), %rax; ret. Of
// 32 bits: a call that finds out where it is; add $distance, %eax; lea distance(%eax), %eax; ret.
// 0: it does not look so.
static uint64_t glibc_heap_returned(bool narrow, uint64_t at, const uint8_t *code, size_t size)
{
	int32_t distances[2];

	for (size_t i = 0; i + 11 <= size; i++) {
		if (!narrow && memcmp(code + i, "\x48\x8d\x05", 3) == 0) {
			memcpy(distances, code + i + 3, 4);
			return at + i + 7 + (uint64_t)(int64_t)distances[0];
		}
		if (narrow && code[i] == 0x05 && code[i + 5] == 0x8d && code[i + 6] == 0x80) {
			memcpy(&distances[0], code + i + 1, 4);
			memcpy(&distances[1], code + i + 7, 4);
			return (uint32_t)(at + i + (uint32_t)distances[0] + (uint32_t)distances[1]);
		}
	}
	return 0;
}

// "2.36", from the function that returns it.
static bool glibc_heap_find_version(struct glibc_heap_walk *walk)
{
	const struct objects_one *libc = objects_libc(walk->objects);
	uint64_t at = libc ? objects_symbol(walk->objects, libc, "gnu_get_libc_version", NULL) : 0;
	uint8_t code[24];

	if (walk->objects->alone)
		return libc->arena || glibc_heap_fail(walk, "its malloc is not glibc's");
	if (!at || !tracee_read(walk->pid, at, code, sizeof(code)))
		return glibc_heap_fail(walk, "its C library is not glibc");
	at = glibc_heap_returned(walk->objects->narrow, at, code, sizeof(code));
	tracee_read(walk->pid, at, walk->heap->version, sizeof(walk->heap->version) - 1);
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
	const uint64_t most = walk->objects->alone ? GLIBC_HEAP_DATA_ALONE_MAX
						   : GLIBC_HEAP_DATA_MAX;
	const char *at = NULL;
	struct maps_line line;

	ASSERT(!walk->data);
	while (glibc_heap_next_mapping(walk->objects, &at, &line)) {
		if (!objects_has(libc, &line) || !glibc_heap_is_data(&line) ||
		    line.end - line.start > most)
			continue;
		walk->data_at = line.start;
		walk->data_count = (size_t)(line.end - line.start) / walk->word;
		walk->data = mem_alloc(walk->data_count, sizeof(*walk->data));
		if (glibc_heap_words(walk, line.start, walk->data, walk->data_count))
			return true;
	}
	return glibc_heap_fail(walk, "the variables of its C library cannot be read");
}

// ---- Arenas -------------------------------------------------------------------------------------

// Whether these words are an arena's: each bin is empty, or its first chunk leads back to it.
// Before anything is read, all must be where chunks can be, as no other words are in such a row.
static bool glibc_heap_is_arena(struct glibc_heap_walk *walk, uint64_t at, const uint64_t *words)
{
	const uint64_t *bins = words + walk->layout->bins_at;

	for (unsigned i = 0; i < 2 * GLIBC_HEAP_BINS; i++)
		if (bins[i] < GLIBC_HEAP_PAGE || bins[i] % walk->header)
			return false;
	walk->begun = true;
	for (unsigned i = 0; i < GLIBC_HEAP_BINS; i++) {
		uint64_t bin = glibc_heap_bin(walk, at, i);
		// An arena of 254 words of which each is at least a page: in libc's other variables
		// no such row was met, of 40 versions.
		uint64_t back;

		if (bins[2 * i] == bin)
			continue;
		if (!glibc_heap_words(walk, bins[2 * i] + 3 * walk->word, &back, 1) || back != bin)
			return false;
	}
	return true;
}

static bool glibc_heap_find_main(struct glibc_heap_walk *walk)
{
	uint64_t known = objects_libc(walk->objects)->arena;

	ASSERT(walk->data);
	for (size_t i = 0; i + walk->layout->arena_words <= walk->data_count; i += 2) {
		uint64_t at = walk->data_at + i * walk->word;

		if ((known && at != known) ||
		    walk->data[i + walk->layout->next_at] < GLIBC_HEAP_PAGE ||
		    !glibc_heap_is_arena(walk, at, walk->data + i))
			continue;
		walk->main = at;
		return true;
	}
	return glibc_heap_fail(walk, "its C library has no heap, or none that is known");
}

// Of mp_, whose sbrk_base is at `words`: how many blocks may have mappings, and how many have. They
// are numbers of 32 bits; a fifth one has come before them since 2.35.
static void glibc_heap_mapped_counts(const struct glibc_heap_walk *walk, const uint64_t *words,
				     uint32_t *most, uint32_t *now)
{
	bool pages = walk->minor >= GLIBC_HEAP_PAGES_SINCE;

	if (walk->objects->narrow) {
		*most = (uint32_t)words[-5];
		*now = (uint32_t)words[-6];
		return;
	}
	*most = (uint32_t)(pages ? words[-4] : words[-4] >> 32);
	*now = (uint32_t)(pages ? words[-5] >> 32 : words[-4]);
}

// Where the main heap begins, and how many blocks have mappings: from mp_, which is found by its
// limits of such blocks and, after sbrk_base, of a tcache.
static bool glibc_heap_find_parameters(struct glibc_heap_walk *walk)
{
	uint64_t known = objects_libc(walk->objects)->parameters;

	ASSERT(walk->data);
	for (size_t i = 6; i + 3 < walk->data_count; i++) {
		const uint64_t *words = walk->data + i;
		uint64_t into = walk->data_at + i * walk->word - known;
		uint32_t mapped_max, mapped_now;

		glibc_heap_mapped_counts(walk, words, &mapped_max, &mapped_now);
		if (mapped_max != GLIBC_HEAP_MAPPED_MAX || words[-2] > words[-1] ||
		    words[1] > GLIBC_HEAP_TCACHE_BINS || words[2] > 1032 || words[3] > UINT16_MAX ||
		    (words[1] != GLIBC_HEAP_TCACHE_BINS && words[0] == 0) ||
		    (known && into >= GLIBC_HEAP_PARAMETERS))
			continue;
		walk->start = words[0];
		walk->mapped_count = mapped_now;
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
		    head[2] > layout->heap_bytes)
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

static void glibc_heap_look_for_tcache(struct glibc_heap_walk *walk, uint64_t base,
				       struct glibc_heap_tls *seen)
{
	static uint64_t words[GLIBC_HEAP_TLS_WORDS];
	size_t count = GLIBC_HEAP_TLS_WORDS;

	while (count > 1 && !glibc_heap_words(walk, base - walk->word * count, words, count))
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
		if (!tracee->threads[i].gone &&
		    narrow_thread_pointer(&tracee->threads[i].registers))
			glibc_heap_look_for_tcache(
				walk, narrow_thread_pointer(&tracee->threads[i].registers), seen);
	for (size_t i = 1; i <= GLIBC_HEAP_TLS_WORDS; i++)
		if (seen[i].threads > seen[best].threads ||
		    (seen[i].threads == seen[best].threads && seen[i].blocks > seen[best].blocks))
			best = i;
	if (!seen[best].threads) // who has allocated has one
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

static void glibc_heap_walk_mapping(struct glibc_heap_walk *walk, uint64_t page, uint64_t end,
				    uint64_t *bytes)
{
	ASSERT(page <= end);
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
			continue;
		}
		at = glibc_heap_find_aligned(walk, at, &size);
		glibc_heap_add(walk->heap, at + walk->header, size - walk->header);
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

	ASSERT(heap->bytes == 0);
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
		glibc_heap_sift(walk);
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
