// Records in both streams have numbers, counted from `first` on (0x1000; lower numbers are plain
// types such as int), and a length before each, but no directory. So a stream is read once from end
// to end and each record's place is kept: 4 bytes a record, and a lookup is one step.
//
// For example, the item 0x1003 is the record LF_FUNCTION { scope 0x1001, type, "push" }, and item
// 0x1001 is LF_TEXT { …, "app" }: the name is app::push. For LF_METHOD the first number is of a
// type: a class, whose own name has all its scopes ("std::vector<int>").
#include "symbols/pdb_ids.h"

#include "base/mem.h"
#include "base/str.h"
#include "trace/bytes.h"

#include <string.h>

enum {
	TYPES = 2, // streams
	ITEMS = 4,
	HEAD_BYTES = 56,
	LF_CLASS = 0x1504,
	LF_STRUCTURE = 0x1505,
	LF_UNION = 0x1506,
	LF_ENUM = 0x1507,
	LF_INTERFACE = 0x1519,
	LF_FUNCTION = 0x1601,
	LF_METHOD = 0x1602,
	LF_TEXT = 0x1605,
};

void pdb_ids_fini(struct pdb_ids *ids)
{
	uint64_t item, text;
	size_t at = 0;

	while (map_next(&ids->names, &at, &item, &text))
		mem_free((char *)(uintptr_t)text);
	map_fini(&ids->names);
	MEM_FREE(ids->types.places, ids->items.places);
	msf_stream_close(&ids->types.stream);
	msf_stream_close(&ids->items.stream);
}

// The head says at 4 where records begin, and at 8 what number the first one has. A record that
// would go past the end ends the table.
static void read_table(const struct msf *msf, uint32_t number, struct pdb_ids_table *table)
{
	const uint8_t *bytes;
	size_t at, end;

	table->stream = msf_read(msf, number);
	bytes = table->stream.bytes;
	if (table->stream.size_bytes < HEAD_BYTES)
		return;
	at = bytes_get_u32(bytes + 4);
	table->first = bytes_get_u32(bytes + 8);
	end = table->stream.size_bytes;
	while (at >= HEAD_BYTES && at + 4 <= end) {
		uint32_t length = bytes_get_u16(bytes + at);

		if (length < 2 || length > end - at - 2)
			break;
		*MEM_ADD(table->places, table->count, table->capacity) = (uint32_t)at;
		at += 2 + length;
	}
}

// Record `number`: its kind, and what follows that. NULL: there is none.
static const uint8_t *find(const struct pdb_ids_table *table, uint32_t number, uint16_t *kind,
			   size_t *size)
{
	const uint8_t *record;

	if (number < table->first || number - table->first >= table->count)
		return NULL;
	record = table->stream.bytes + table->places[number - table->first];
	ASSERT(record + 4 <= table->stream.bytes + table->stream.size_bytes);
	*kind = bytes_get_u16(record + 2);
	*size = bytes_get_u16(record) - (size_t)2;
	return record + 4;
}

static const char *text_at(const uint8_t *bytes, size_t size, size_t at)
{
	return at < size && memchr(bytes + at, 0, size - at) ? (const char *)bytes + at : NULL;
}

// What comes after the size of a type. Below 0x8000 the two bytes are the number itself; else they
// say in what form it follows: 2c 01 is 300, and 04 80 70 11 01 00 is 70,000 in four bytes.
static size_t skip_number(const uint8_t *bytes, size_t size, size_t at)
{
	static const uint8_t more[] = { 1, 2, 2, 4, 4, 0, 0, 0, 0, 8, 8 };
	uint16_t kind;

	if (at + 2 > size)
		return size;
	kind = bytes_get_u16(bytes + at);
	if (kind < 0x8000)
		return at + 2;
	return (size_t)(kind - 0x8000) < sizeof more ? at + 2 + more[kind - 0x8000] : size;
}

static const char *type_name(struct pdb_ids *ids, uint32_t type)
{
	const uint8_t *bytes;
	uint16_t kind;
	size_t size;

	if (!ids->types_read)
		read_table(ids->msf, TYPES, &ids->types);
	ids->types_read = true;
	bytes = find(&ids->types, type, &kind, &size);
	if (!bytes)
		return NULL;
	switch (kind) {
	case LF_CLASS:
	case LF_STRUCTURE:
	case LF_INTERFACE:
		// Before the size: count of members and flags, and four bytes each for the list of
		// members, what the class is derived from, and the shape of its table of virtual
		// functions.
		return text_at(bytes, size, skip_number(bytes, size, 16));
	case LF_UNION:
		return text_at(bytes, size, skip_number(bytes, size, 8));
	case LF_ENUM:
		return text_at(bytes, size, 12);
	default:
		return NULL;
	}
}

static const char *scope_name(struct pdb_ids *ids, uint32_t item)
{
	const uint8_t *bytes;
	uint16_t kind;
	size_t size;

	bytes = item != 0 ? find(&ids->items, item, &kind, &size) : NULL;
	return bytes && kind == LF_TEXT ? text_at(bytes, size, 4) : NULL;
}

// Both kinds have the scope or class first, then the type of the function, and its name from byte 8
// on.
static char *make_name(struct pdb_ids *ids, uint32_t item)
{
	const char *scope, *name;
	struct str text = { 0 };
	const uint8_t *bytes;
	uint16_t kind;
	size_t size;

	bytes = find(&ids->items, item, &kind, &size);
	if (!bytes || (kind != LF_FUNCTION && kind != LF_METHOD))
		return NULL;
	name = text_at(bytes, size, 8);
	if (!name)
		return NULL;
	scope = kind == LF_METHOD ? type_name(ids, bytes_get_u32(bytes))
				  : scope_name(ids, bytes_get_u32(bytes));
	if (scope && *scope)
		str_format(&text, "%s::", scope);
	str_add(&text, name);
	return str_take(&text);
}

const char *pdb_ids_name(struct pdb_ids *ids, uint32_t item)
{
	uint64_t *slot;
	bool added;

	if (!ids->items_read)
		read_table(ids->msf, ITEMS, &ids->items);
	ids->items_read = true;
	// The same function is inlined in many places: its name is put together once, and 0 (no
	// name) is kept, too.
	slot = map_put(&ids->names, item, &added);
	if (added)
		*slot = (uintptr_t)make_name(ids, item);
	return (const char *)(uintptr_t)*slot;
}
