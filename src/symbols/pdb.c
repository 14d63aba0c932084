// A PDB is read as far as it is asked. When it is opened, the debug stream says which modules
// there are and which parts of the image each of them contributed; a module's stream is read when
// an address in one of its parts is asked for, and kept. For example, of section 1 at RVA 0x1000
// with 0x200 bytes
//
//     part  1:0x000, 0x80 bytes, module 3     [0x1000, 0x1080)
//     part  1:0x080, 0x40 bytes, module 5     [0x1080, 0x10c0)
//     part  1:0x200, …                        left out: it begins where the section ends
//
// 0x10a0 is in the second part: module 5 is read. What is in no part, or in a module without
// symbols, is named by the public symbols.
#include "symbols/pdb.h"

#include "base/mem.h"
#include "base/rising.h"
#include "base/sort.h"
#include "symbols/msf.h"
#include "symbols/pdb_ids.h"
#include "symbols/pdb_module.h"
#include "trace/bytes.h"

#include <stdlib.h>
#include <string.h>

// Streams have numbers: 1 is what identifies the PDB, 3 the debug stream (2 and 4 are types and
// items, pdb_ids.h). All other streams are found by numbers within these. The head of the debug
// stream: signature, version, age at 8, stream of public symbols at 20, sizes of its lists from 24
// on.
enum {
	INFO = 1, // streams
	DEBUG = 3,
	INFO_BYTES = 28,
	HEAD_BYTES = 64,   // of the debug stream
	MODULE_BYTES = 64, // before the names
	PART_BYTES = 28,
	SECTION_BYTES = 40,
	SECTION_HEADERS = 5, // among the further streams
	OMAP_FROM_SOURCE = 4,
	NAMES_BYTES = 12, // before the texts
	S_PUBLIC = 0x110e,
	PUBLIC_CODE = 1 | 2, // code, function
	PLACES = 256,
};

#define NO_STREAM 0xffff
#define PARTS_1 (0xeffe0000 + 19970605u)
#define PARTS_2 (0xeffe0000 + 20140516u)
#define NAMES_SIGNATURE 0xeffeeffeu

// An object file, or one that the linker made up ("* Linker *", imports).
struct module {
	uint16_t stream;
	struct pdb_module_head head;
	bool opened;
	struct pdb_module *module; // NULL: not read yet, or nothing to read
};

// What a module contributed.
struct part {
	uint32_t rva, end;
	uint32_t module;
};

struct pdb {
	struct msf msf;
	struct msf_stream info, debug, names, records;
	struct pdb_sections sections;
	struct module *modules;
	size_t modules_count, modules_capacity;
	struct part *parts; // by rising RVA
	size_t parts_count;
	struct pdb_ids ids;
	const char *texts; // of files
	size_t texts_bytes;
	uint32_t age;
	uint16_t records_number; // stream of the public symbols
	bool omapped;
};

// Where the parts of the debug stream lie.
struct extent {
	const uint8_t *bytes;
	size_t size_bytes;
};

// The stream that the PDB calls /names.
// The info stream has, after GUID and age, a hash table of names of streams: the texts; how many
// entries and places there are; two sets of bits, of places that are taken and of those that were;
// then 8 bytes for each entry, the offset of a text and a number of a stream. There are a handful
// of entries, so they are gone through, and the sets are skipped.
static uint32_t find_names(const struct pdb *pdb)
{
	const uint8_t *bytes = pdb->info.bytes + INFO_BYTES, *texts;
	size_t left = pdb->info.size_bytes - INFO_BYTES, texts_bytes, words, at;
	uint32_t capacity;

	if (left < 4 || bytes_get_u32(bytes) > left - 4)
		return NO_STREAM;
	texts_bytes = bytes_get_u32(bytes);
	texts = bytes + 4;
	bytes += 4 + texts_bytes;
	left -= 4 + texts_bytes;
	if (left < 12)
		return NO_STREAM;
	capacity = bytes_get_u32(bytes + 4);
	words = bytes_get_u32(bytes + 8); // of the set of places that are taken
	if (words > (left - 12) / 4 || capacity > left * 8)
		return NO_STREAM;
	at = 12 + 4 * words;
	if (left - at < 4 || bytes_get_u32(bytes + at) > (left - at - 4) / 4)
		return NO_STREAM;
	at += 4 + 4 * (size_t)bytes_get_u32(bytes + at); // of those that were
	for (; at + 8 <= left; at += 8) {
		uint32_t text = bytes_get_u32(bytes + at);

		if (text < texts_bytes && texts_bytes - text >= 7 &&
		    memcmp(texts + text, "/names", 7) == 0)
			return bytes_get_u32(bytes + at + 4);
	}
	return NO_STREAM;
}

// All paths of source files, each once, NUL-terminated: a file is an offset in here.
static void read_names(struct pdb *pdb)
{
	const uint8_t *bytes;
	size_t size;

	pdb->names = msf_read(&pdb->msf, find_names(pdb));
	bytes = pdb->names.bytes;
	size = pdb->names.size_bytes;
	if (size < NAMES_BYTES || bytes_get_u32(bytes) != NAMES_SIGNATURE)
		return;
	pdb->texts = (const char *)bytes + NAMES_BYTES;
	pdb->texts_bytes = bytes_get_u32(bytes + 8) < size - NAMES_BYTES ? bytes_get_u32(bytes + 8)
									 : size - NAMES_BYTES;
}

// A copy of the image's section headers. The size at 8 is that in memory.
static void read_sections(struct pdb *pdb, uint32_t number)
{
	struct msf_stream stream = msf_read(&pdb->msf, number);
	size_t count = stream.size_bytes / SECTION_BYTES;

	pdb->sections.items = mem_alloc(count + 1, sizeof *pdb->sections.items);
	pdb->sections.count = count;
	for (size_t i = 0; i < count; i++) {
		pdb->sections.items[i].size_bytes =
			bytes_get_u32(stream.bytes + i * SECTION_BYTES + 8);
		pdb->sections.items[i].rva = bytes_get_u32(stream.bytes + i * SECTION_BYTES + 12);
	}
	msf_stream_close(&stream);
}

static void read_modules(struct pdb *pdb, struct extent list)
{
	size_t at = 0;

	while (at + MODULE_BYTES <= list.size_bytes) {
		const uint8_t *bytes = list.bytes + at;
		struct module *module;

		// Of the 64 bytes before its names: number of its stream at 34 (0xffff: it has no
		// symbols), then how long the symbols, the old lines and the lines in that stream
		// are.
		module = MEM_ADD(pdb->modules, pdb->modules_count, pdb->modules_capacity);
		*module = (struct module){
			.stream = bytes_get_u16(bytes + 34),
			.head = { bytes_get_u32(bytes + 36), bytes_get_u32(bytes + 40),
				  bytes_get_u32(bytes + 44) },
		};
		at += MODULE_BYTES;
		for (int names = 0; names < 2; names++) { // its own, and its library's
			const uint8_t *end = memchr(list.bytes + at, 0, list.size_bytes - at);

			if (!end)
				return;
			at = (size_t)(end - list.bytes) + 1;
		}
		at = (at + 3) & ~(size_t)3;
	}
}

SORT_ORDER(compare_parts, struct part, SORT_RISES(rva))

// Parts in the order of the linker, 28 bytes each, 32 in the newer version. A part that is empty,
// or not within its section, is left out; the others are sorted for find_part.
static void read_parts(struct pdb *pdb, struct extent list)
{
	size_t size = PART_BYTES, count;

	if (list.size_bytes < 4)
		return;
	if (bytes_get_u32(list.bytes) == PARTS_2)
		size += 4;
	else if (bytes_get_u32(list.bytes) != PARTS_1)
		return;
	count = (list.size_bytes - 4) / size;
	pdb->parts = mem_alloc(count + 1, sizeof *pdb->parts);
	for (size_t i = 0; i < count; i++) {
		const uint8_t *bytes = list.bytes + 4 + i * size;
		uint32_t rva, length = bytes_get_u32(bytes + 8);

		if (length == 0 ||
		    !pdb_module_rva(&pdb->sections, bytes_get_u16(bytes), bytes_get_u32(bytes + 4),
				    &rva) ||
		    length > UINT32_MAX - rva)
			continue;
		pdb->parts[pdb->parts_count++] =
			(struct part){ rva, rva + length, bytes_get_u16(bytes + 16) };
	}
	ASSERT(pdb->parts_count <= count);
	if (pdb->parts_count > 0)
		qsort(pdb->parts, pdb->parts_count, sizeof *pdb->parts, compare_parts);
}

// The stream that a list of further ones names.
static uint16_t further(struct extent list, size_t which)
{
	return list.size_bytes >= 2 * which + 2 ? bytes_get_u16(list.bytes + 2 * which) : NO_STREAM;
}

static bool read_debug(struct pdb *pdb, struct err *err)
{
	// Where the head has the sizes of the lists, in the order of the lists: modules, parts, map
	// of sections, files, types, edit-and-continue, and the further streams. The head has the
	// last two the other way round.
	static const uint8_t sizes_at[] = { 24, 28, 32, 36, 40, 52, 48 };
	enum { LISTS = sizeof sizes_at };
	struct extent lists[LISTS];
	const uint8_t *bytes;
	size_t left;

	pdb->debug = msf_read(&pdb->msf, DEBUG);
	bytes = pdb->debug.bytes;
	if (pdb->debug.size_bytes < HEAD_BYTES || bytes_get_u32(bytes) != UINT32_MAX)
		return err_set(err, ERR_FORMAT, "a PDB file without debug information");
	left = pdb->debug.size_bytes - HEAD_BYTES;
	for (size_t i = 0; i < LISTS; i++) {
		uint32_t size = bytes_get_u32(bytes + sizes_at[i]);

		if (size > left)
			return err_set(err, ERR_FORMAT, "a PDB file that is cut");
		ASSERT(left <= pdb->debug.size_bytes - HEAD_BYTES);
		lists[i] = (struct extent){ bytes + pdb->debug.size_bytes - left, size };
		left -= size;
	}
	if (bytes_get_u32(bytes + 8) != 0)
		// The linker may write a PDB several times (incremental linking). The image repeats
		// the age of the debug stream; that of the info stream only counts where this one
		// has none.
		pdb->age = bytes_get_u32(bytes + 8);
	pdb->records_number = bytes_get_u16(bytes + 20);
	pdb->omapped = further(lists[LISTS - 1], OMAP_FROM_SOURCE) != NO_STREAM;
	read_sections(pdb, further(lists[LISTS - 1], SECTION_HEADERS));
	read_modules(pdb, lists[0]);
	read_parts(pdb, lists[1]);
	return true;
}

struct pdb *pdb_open(const uint8_t *bytes, size_t size_bytes, struct err *err)
{
	struct pdb *pdb = mem_alloc(1, sizeof *pdb);

	pdb->ids = (struct pdb_ids){ .msf = &pdb->msf };
	if (!msf_open(&pdb->msf, bytes, size_bytes, err)) {
		pdb_close(pdb);
		return NULL;
	}
	pdb->info = msf_read(&pdb->msf, INFO);
	if (pdb->info.size_bytes < INFO_BYTES) {
		err_set(err, ERR_FORMAT, "a PDB file that does not say which one it is");
		pdb_close(pdb);
		return NULL;
	}
	pdb->age = bytes_get_u32(pdb->info.bytes + 8);
	if (!read_debug(pdb, err)) {
		pdb_close(pdb);
		return NULL;
	}
	if (pdb->omapped) {
		err_set(err, ERR_FORMAT,
			"a PDB file whose code was moved after it was linked (OMAP): not read");
		pdb_close(pdb);
		return NULL;
	}
	read_names(pdb);
	return pdb;
}

void pdb_close(struct pdb *pdb)
{
	if (!pdb)
		return;
	for (size_t i = 0; i < pdb->modules_count; i++)
		pdb_module_free(pdb->modules[i].module);
	pdb_ids_fini(&pdb->ids);
	MEM_FREE(pdb->modules, pdb->parts, pdb->sections.items);
	msf_stream_close(&pdb->info);
	msf_stream_close(&pdb->debug);
	msf_stream_close(&pdb->names);
	msf_stream_close(&pdb->records);
	msf_close(&pdb->msf);
	mem_free(pdb);
}

const uint8_t *pdb_guid(const struct pdb *pdb)
{
	ASSERT(pdb->info.size_bytes >= INFO_BYTES); // pdb_open takes no other
	return pdb->info.bytes + 12;
}

uint32_t pdb_age(const struct pdb *pdb)
{
	return pdb->age;
}

// Parts do not overlap in a sound PDB; in another one the part that begins last is taken.
static const struct part *find_part(const struct pdb *pdb, uint32_t rva)
{
	size_t low = RISING_UPTO(pdb->parts, pdb->parts_count, rva, rva);

	ASSERT(low <= pdb->parts_count);
	return low > 0 && rva < pdb->parts[low - 1].end ? &pdb->parts[low - 1] : NULL;
}

static struct pdb_module *open_module(struct pdb *pdb, size_t number)
{
	struct module *module;

	if (number >= pdb->modules_count)
		return NULL;
	module = &pdb->modules[number];
	ASSERT(!module->module || module->opened);
	if (!module->opened && module->stream != NO_STREAM)
		module->module = pdb_module_new(msf_read(&pdb->msf, module->stream), &module->head,
						&pdb->sections);
	module->opened = true;
	return module->module;
}

static const char *text_at(const struct pdb *pdb, uint32_t at)
{
	if (at >= pdb->texts_bytes || !memchr(pdb->texts + at, 0, pdb->texts_bytes - at))
		return NULL;
	return pdb->texts[at] ? pdb->texts + at : NULL;
}

bool pdb_find(struct pdb *pdb, uint32_t rva, struct places *places)
{
	const struct part *part = find_part(pdb, rva);
	struct pdb_module *module = part ? open_module(pdb, part->module) : NULL;
	struct pdb_place found[PLACES];
	size_t count = module ? pdb_module_find(module, rva, found, PLACES) : 0;

	for (size_t i = 0; i < count; i++) {
		struct place *place = places_add(places);

		if (!place)
			break;
		// An inlined function has a number among the items, and its name there.
		place->function = found[i].name ? found[i].name
						: pdb_ids_name(&pdb->ids, found[i].inlinee);
		if (place->function && !*place->function)
			place->function = NULL;
		place->file = text_at(pdb, found[i].file);
		place->line = found[i].line;
	}
	return count > 0;
}

void pdb_add_publics(struct pdb *pdb, struct pe_names *names)
{
	const uint8_t *bytes;
	size_t at = 0, size;

	// Kept open, because the names are borrowed: pe_names keeps pointers into it.
	pdb->records = msf_read(&pdb->msf, pdb->records_number);
	bytes = pdb->records.bytes;
	size = pdb->records.size_bytes;
	while (size >= 4 && at <= size - 4) {
		uint32_t length = bytes_get_u16(bytes + at), rva;
		const struct part *part;

		if (length < 2 || length > size - at - 2)
			break;
		if (bytes_get_u16(bytes + at + 2) == S_PUBLIC && length > 12 &&
		    (bytes_get_u32(bytes + at + 4) & PUBLIC_CODE) &&
		    memchr(bytes + at + 14, 0, length - 12) &&
		    pdb_module_rva(&pdb->sections, bytes_get_u16(bytes + at + 12),
				   bytes_get_u32(bytes + at + 8), &rva)) {
			part = find_part(pdb, rva);
			// A public symbol has no length. It cannot reach beyond its module's part.
			pe_names_add(names, rva, part ? part->end : 0,
				     (const char *)bytes + at + 14, PE_NAMES_PUBLIC);
		}
		at += 2 + length;
	}
}
