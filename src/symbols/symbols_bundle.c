// The bundle is made to be looked into where it is mapped: three tables of fixed rows. For example,
// two addresses in f, and one in g that was inlined into f:
//
//     entries   { 0x1010, first 0, 1 } { 0x1020, first 1, 1 } { 0x1030, first 2, 2 }
//     places    { "f", "a.c", 3 } { "f", "a.c", 4 } { "g", "b.h", 9 } { "f", "a.c", 5 }
//     texts     "" "f" "a.c" "g" "b.h": 1 + 2 + 4 + 2 + 4 = 13 bytes
//
// A text is in it once, however many places name it.
#include "symbols/symbols_bundle.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "trace/bytes.h"

#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = 24, ENTRY_BYTES = 16, PLACE_BYTES = 12, VERSION = 1 };

// In a place's line, which no source file is long enough to need.
#define BARE (UINT32_C(1) << 31)

static const char magic[8] = { 'T', 'I', 'D', 'E', 'N', 'A', 'M', 'E' };

bool symbols_bundle_open(struct symbols_bundle *bundle, const void *bytes, size_t size,
			 struct err *err)
{
	const uint8_t *at = bytes;
	uint64_t need;

	*bundle = (struct symbols_bundle){ 0 };
	if (size < HEAD_BYTES || memcmp(at, magic, sizeof magic) != 0)
		return err_set(err, ERR_FORMAT, "not a bundle of names");
	if (bytes_get_u32(at + 8) != VERSION)
		return err_set(err, ERR_FORMAT,
			       "a bundle of names of version %u, which this "
			       "program does not know",
			       bytes_get_u32(at + 8));
	bundle->entries_count = bytes_get_u32(at + 12);
	bundle->places_count = bytes_get_u32(at + 16);
	bundle->texts_bytes = bytes_get_u32(at + 20);
	// Three 32-bit numbers times small sizes cannot overflow 64 bits.
	need = HEAD_BYTES + (uint64_t)bundle->entries_count * ENTRY_BYTES +
	       (uint64_t)bundle->places_count * PLACE_BYTES + bundle->texts_bytes;
	if (need != size || bundle->texts_bytes == 0 || at[size - 1] != '\0')
		return err_set(err, ERR_FORMAT, "the bundle of names is damaged");
	bundle->entries = at + HEAD_BYTES;
	bundle->places = bundle->entries + (size_t)bundle->entries_count * ENTRY_BYTES;
	bundle->texts = (const char *)bundle->places + (size_t)bundle->places_count * PLACE_BYTES;
	return true;
}

// NULL for the empty text and for what lies outside.
// The last byte of the texts is NUL (symbols_bundle_open), so a text that begins in them ends in
// them.
static const char *find_text(const struct symbols_bundle *bundle, uint32_t at)
{
	return at > 0 && at < bundle->texts_bytes ? bundle->texts + at : NULL;
}

// An entry that leads out of the table of places is no answer, so that the file is asked.
static bool add_places(const struct symbols_bundle *bundle, uint32_t first, uint32_t count,
		       struct places *places)
{
	ASSERT(bundle->texts_bytes > 0); // symbols_bundle_open takes no other
	if (count == 0 || first > bundle->places_count || count > bundle->places_count - first)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *at = bundle->places + (size_t)(first + i) * PLACE_BYTES;
		struct place *place = places_add(places);

		if (!place)
			break;
		place->function = find_text(bundle, bytes_get_u32(at));
		place->file = find_text(bundle, bytes_get_u32(at + 4));
		place->line = bytes_get_u32(at + 8) & ~BARE;
		place->bare = bytes_get_u32(at + 8) & BARE;
	}
	return true;
}

// Rows are where the trace is mapped, at any address, so each number is read by its bytes. Entries
// that do not rise, in a trace that lies, are not found, and nothing is read outside.
bool symbols_bundle_find(const struct symbols_bundle *bundle, uint64_t offset,
			 struct places *places)
{
	uint32_t low = 0, high = bundle->entries_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const uint8_t *entry = bundle->entries + (size_t)middle * ENTRY_BYTES;
		uint64_t found = bytes_get_u64(entry);

		if (found == offset)
			return add_places(bundle, bytes_get_u32(entry + 8),
					  bytes_get_u32(entry + 12), places);
		if (found < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

struct maker_entry {
	uint64_t offset;
	uint32_t first, count;
};

struct symbols_bundle_maker {
	struct maker_entry *entries;
	size_t entries_count, entries_capacity;
	struct bytes places;
	struct bytes texts;
	struct map by_pointer; // text -> where it stands, +1
	struct map by_hash;    // the same, for equal texts at several addresses
};

struct symbols_bundle_maker *symbols_bundle_maker_new(void)
{
	struct symbols_bundle_maker *maker = mem_alloc(1, sizeof *maker);

	bytes_add(&maker->texts, "", 1);
	return maker;
}

void symbols_bundle_maker_free(struct symbols_bundle_maker *maker)
{
	if (!maker)
		return;
	mem_free(maker->entries);
	bytes_fini(&maker->places);
	bytes_fini(&maker->texts);
	MAP_FINI(&maker->by_pointer, &maker->by_hash);
	mem_free(maker);
}

static uint64_t hash_text(const char *text)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 0x100000001b3u;
	return hash;
}

// Where `text` stands among the texts; 0 for none.
// Places of one file name most texts by the same pointer, which is one lookup; the hash finds equal
// texts at other addresses. Texts with equal hashes just stand there twice. Above 2 GiB of texts
// (32-bit offsets) what comes is not known any more.
static uint32_t put_text(struct symbols_bundle_maker *maker, const char *text)
{
	uint64_t *known, *twin;

	if (!text || !*text || maker->texts.size > INT32_MAX)
		return 0;
	known = map_put(&maker->by_pointer, (uintptr_t)text, NULL);
	if (*known != 0)
		return (uint32_t)*known - 1;
	twin = map_put(&maker->by_hash, hash_text(text), NULL);
	if (*twin == 0 || strcmp((const char *)maker->texts.data + *twin - 1, text) != 0) {
		*twin = maker->texts.size + 1;
		bytes_add(&maker->texts, text, strlen(text) + 1);
	}
	*known = *twin;
	return (uint32_t)*twin - 1;
}

void symbols_bundle_add(struct symbols_bundle_maker *maker, uint64_t offset,
			const struct places *places)
{
	struct maker_entry *entry;

	ASSERT(places->count <= PLACES_MAX);
	// Places are counted by 32 bits: what does not fit is left out, and the file is asked for
	// it.
	if (maker->places.size / PLACE_BYTES > UINT32_MAX - PLACES_MAX)
		return;
	entry = MEM_ADD(maker->entries, maker->entries_count, maker->entries_capacity);
	entry->offset = offset;
	entry->first = (uint32_t)(maker->places.size / PLACE_BYTES);
	entry->count = (uint32_t)places->count;
	for (size_t i = 0; i < places->count; i++) {
		const struct place *place = &places->items[i];
		uint8_t *at = bytes_reserve(&maker->places, PLACE_BYTES);

		bytes_put_u32(at, put_text(maker, place->function));
		bytes_put_u32(at + 4, put_text(maker, place->file));
		bytes_put_u32(at + 8, (place->line & ~BARE) | (place->bare ? BARE : 0));
		maker->places.size += PLACE_BYTES;
	}
}

SORT_ORDER(compare_entries, struct maker_entry, SORT_RISES(offset))

// Only entries are sorted: where their places are, and texts, are numbers in them and stay right.
void *symbols_bundle_take(struct symbols_bundle_maker *maker, size_t *size)
{
	size_t places_count = maker->places.size / PLACE_BYTES;
	uint8_t *bytes, *at;

	ASSERT(maker->places.size % PLACE_BYTES == 0 && maker->texts.size > 0);
	qsort(maker->entries, maker->entries_count, sizeof *maker->entries, compare_entries);
	*size = HEAD_BYTES + maker->entries_count * ENTRY_BYTES + maker->places.size +
		maker->texts.size;
	bytes = mem_alloc(*size, 1);
	memcpy(bytes, magic, sizeof magic);
	bytes_put_u32(bytes + 8, VERSION);
	bytes_put_u32(bytes + 12, (uint32_t)maker->entries_count);
	bytes_put_u32(bytes + 16, (uint32_t)places_count);
	bytes_put_u32(bytes + 20, (uint32_t)maker->texts.size);
	at = bytes + HEAD_BYTES;
	for (size_t i = 0; i < maker->entries_count; i++, at += ENTRY_BYTES) {
		bytes_put_u64(at, maker->entries[i].offset);
		bytes_put_u32(at + 8, maker->entries[i].first);
		bytes_put_u32(at + 12, maker->entries[i].count);
	}
	if (maker->places.size > 0)
		memcpy(at, maker->places.data, maker->places.size);
	memcpy(at + maker->places.size, maker->texts.data, maker->texts.size);
	return bytes;
}
