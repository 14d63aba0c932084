// Where glibc has its heap is in no table of symbols: `main_arena` and `mp_` are static. They are
// found among libc's variables by what they have to be.
//
//     main_arena    254 words in a row of which each is an address, and each bin is empty (it leads
//                   to itself) or its first chunk leads back to it
//     mp_           65,536, the most blocks with mappings, after which sbrk_base and the limits of
//                   a tcache come: 64 bins, blocks of up to 1,032 bytes
//
// So a program whose libc has no symbols is read all the same, and one whose malloc is another one
// is found out: there is no such row, or it was never begun.
#include "launch/glibc_heap_own_linux.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	GLIBC_HEAP_MAPPED_MAX = 65536,
	GLIBC_HEAP_PARAMETERS = 256, // bytes, at most
	GLIBC_HEAP_MINOR_MAX = 41,
	GLIBC_HEAP_DATA_MAX = 1 << 20,
	GLIBC_HEAP_DATA_ALONE_MAX = 64 << 20,
};

bool glibc_heap_fail(struct glibc_heap_walk *walk, const char *why)
{
	if (walk->heap->why.length == 0)
		str_add(&walk->heap->why, why);
	return false;
}

bool glibc_heap_words(const struct glibc_heap_walk *walk, uint64_t at, uint64_t *words,
		      size_t count)
{
	ASSERT(walk->word == 4 || walk->word == 8);
	return tracee_words(walk->pid, at, walk->objects->narrow, words, count) == count;
}

uint64_t glibc_heap_bin(const struct glibc_heap_walk *walk, uint64_t arena, unsigned number)
{
	// A bin is two links of a chunk without the rest of it: so its address as a chunk is a
	// header before them, where other fields of the arena are.
	return arena + (walk->layout->bins_at + 2 * number) * walk->word - walk->header;
}

bool glibc_heap_next_mapping(const struct objects *objects, const char **at, struct maps_line *line)
{
	const char *end = objects->text + objects->text_size;

	if (!*at)
		*at = objects->text;
	while (*at < end)
		if (maps_text_next(at, end, line))
			return true;
	return false;
}

bool glibc_heap_is_data(const struct maps_line *line)
{
	return (line->protection & (PROT_READ | PROT_WRITE)) == (PROT_READ | PROT_WRITE) &&
	       !line->shared;
}

// ---- What is where ------------------------------------------------------------------------------

// The address that such a function returns, from its code at `at`: lea text(%rip), %rax; ret. Of
// 32 bits: a call that finds out where it is; add $distance, %eax; lea distance(%eax), %eax; ret.
// 0: it does not look so.
// The function is not called: its thread would have to leave where it is, and this one instruction
// says as much.
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
bool glibc_heap_find_version(struct glibc_heap_walk *walk)
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

// libc's variables.
bool glibc_heap_read_data(struct glibc_heap_walk *walk)
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
// Before anything is read, all 254 words must be where chunks can be, at least a page up: no other
// such row was met in libc's variables, of 40 versions.
static bool glibc_heap_is_arena(struct glibc_heap_walk *walk, uint64_t at, const uint64_t *words)
{
	const uint64_t *bins = words + walk->layout->bins_at;

	for (unsigned i = 0; i < 2 * GLIBC_HEAP_BINS; i++)
		if (bins[i] < GLIBC_HEAP_PAGE || bins[i] % walk->header)
			return false;
	walk->begun = true;
	for (unsigned i = 0; i < GLIBC_HEAP_BINS; i++) {
		uint64_t bin = glibc_heap_bin(walk, at, i);
		uint64_t back;

		if (bins[2 * i] == bin)
			continue;
		if (!glibc_heap_words(walk, bins[2 * i] + 3 * walk->word, &back, 1) || back != bin)
			return false;
	}
	return true;
}

// An arena is aligned to two words, so every second word may be its first. Where a symbol says
// where it is, that place alone is looked at.
bool glibc_heap_find_main(struct glibc_heap_walk *walk)
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
bool glibc_heap_find_parameters(struct glibc_heap_walk *walk)
{
	uint64_t known = objects_libc(walk->objects)->parameters;

	ASSERT(walk->data);
	// words[0] is sbrk_base; before it the counts and sizes of mapped blocks, after it the
	// tcache's bins, bytes and count.
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
