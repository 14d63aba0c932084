// For example blocks 0 to 9, and 4 KB are missing in the middle of block 4. Its header is good and
// says that it ends where block 5 would; there is none at that place. So the walk searches from
// just after the header of block 4, finds the magic of block 5 there, and goes on; block 4 was
// given already, and its checksum fails when it is loaded. Had the header of block 4 been damaged,
// the search would begin after that of block 3 and find block 5, whose number, 5 instead of 4, says
// that one is missing.
#include "trace/walk.h"

#include "base/mem.h"

#include <stdio.h>

enum { SEARCH_BYTES = 64 << 10 };

void walk_init(struct walk *walk)
{
	*walk = (struct walk){ .at = BLOCK_PREAMBLE_BYTES, .search_at = BLOCK_PREAMBLE_BYTES };
}

// Only the first is kept, since what comes after it may be its consequence.
static void note_damage(struct walk *walk, uint64_t at, const char *why)
{
	if (walk->damaged)
		return;
	walk->damaged = true;
	walk->damage_at = at;
	snprintf(walk->damage, sizeof walk->damage, "%s", why);
}

static bool header_at(const struct store *store, uint64_t at, struct block *block)
{
	uint8_t header[BLOCK_HEADER_BYTES];

	return store_read(store, at, header, sizeof header) == sizeof header &&
	       block_header_decode(header, block);
}

// The first offset from `from` on where a header stands.
// A magic may be in any payload by chance: only a header with a right checksum counts. What is read
// twice at an edge is too short to be found twice.
static bool search(const struct store *store, uint64_t from, struct block *block, uint64_t *at)
{
	uint8_t *buffer = mem_alloc(SEARCH_BYTES, 1);
	bool found = false;

	while (!found) {
		size_t size = store_read(store, from, buffer, SEARCH_BYTES);
		const uint8_t *hit = buffer;

		if (size < BLOCK_HEADER_BYTES)
			break;
		while (!found) {
			size_t left = size - (size_t)(hit - buffer);

			hit = mem_search(hit, left, block_magic, BLOCK_MAGIC_BYTES);
			if (!hit)
				break;
			*at = from + (uint64_t)(hit - buffer);
			found = header_at(store, *at, block);
			hit++;
		}
		// The next piece overlaps, for a magic that lies across the edge.
		from += size - BLOCK_MAGIC_BYTES + 1;
	}
	mem_free(buffer);
	return found;
}

// Damage never ends the walk while a header can be found after it. A block whose number was passed
// already is left out: a file that was copied over itself has some twice. A block that is longer
// than the file is either cut by the file's end, or its length is true and bytes before it are
// gone: the search from just after its header decides.
bool walk_next(struct walk *walk, const struct store *store, struct block *block, uint64_t *at)
{
	ASSERT(walk->at >= BLOCK_PREAMBLE_BYTES);
	for (;;) {
		uint64_t end;

		*at = walk->at;
		if (!header_at(store, walk->at, block)) {
			// Fewer bytes than a header: the file ends here, or was cut here.
			if (!search(store, walk->search_at, block, at))
				return false;
			note_damage(walk, walk->at, "no block where one should begin");
		}
		ASSERT(*at >= BLOCK_PREAMBLE_BYTES && block->stored_size <= BLOCK_SIZE_MAX);
		end = *at + BLOCK_HEADER_BYTES + block->stored_size;
		walk->search_at = *at + BLOCK_HEADER_BYTES;
		walk->at = end;
		if (block->sequence < walk->sequence) {
			note_damage(walk, *at, "a block is there twice");
			continue;
		}
		if (end > store->size) {
			// Cut inside this block; but bytes missing before it look the same.
			walk->at = store->size;
			continue;
		}
		if (block->sequence > walk->sequence) {
			walk->missed += block->sequence - walk->sequence;
			note_damage(walk, *at, "blocks before it are missing");
		}
		walk->sequence = block->sequence + 1;
		walk->whole_at = end;
		return true;
	}
}

// What looked like damage at the end of a growing file may have been a block half written: it is
// looked for again.
void walk_retry(struct walk *walk)
{
	if (walk->whole_at < BLOCK_PREAMBLE_BYTES)
		walk->whole_at = BLOCK_PREAMBLE_BYTES;
	walk->at = walk->search_at = walk->whole_at;
}

// The length in its header may be false, so the next header is looked for right after this one.
void walk_reject(struct walk *walk, uint64_t at, const char *why)
{
	ASSERT(at >= BLOCK_PREAMBLE_BYTES);
	note_damage(walk, at, why);
	walk->missed++;
	walk->at = at + BLOCK_HEADER_BYTES;
	walk->search_at = walk->at;
}

void walk_loader_fini(struct walk_loader *loader)
{
	bytes_fini(&loader->stored);
	block_unpacker_fini(&loader->unpacker);
}

// One byte more is reserved, so that an empty payload has a place, too.
static bool read_stored(struct walk_loader *loader, const struct store *store,
			const struct block *block, uint64_t at, struct err *err)
{
	ASSERT(block->stored_size <= BLOCK_SIZE_MAX);
	loader->stored.size = 0;
	bytes_reserve(&loader->stored, block->stored_size + 1u);
	if (store_read(store, at + BLOCK_HEADER_BYTES, loader->stored.data, block->stored_size) !=
	    block->stored_size)
		return err_set(err, ERR_FORMAT, "the file ends inside a block");
	loader->stored.size = block->stored_size;
	return true;
}

bool walk_check(struct walk_loader *loader, const struct store *store, const struct block *block,
		uint64_t at, struct err *err)
{
	return read_stored(loader, store, block, at, err) &&
	       (block_intact(block, loader->stored.data) ||
		err_set(err, ERR_FORMAT, "checksum differs"));
}

bool walk_load(struct walk_loader *loader, const struct store *store, const struct block *block,
	       uint64_t at, struct bytes_cursor *payload, struct err *err)
{
	return read_stored(loader, store, block, at, err) &&
	       block_unpack(&loader->unpacker, block, loader->stored.data, payload, err);
}
