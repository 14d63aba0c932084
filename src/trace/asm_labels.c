// Hashes go through a map from numbers to numbers (base/map.h). A hash that another label has is
// moved on by one until a free one is found, so a label is looked for at its hash, at the next one,
// and so on, until nothing is there. Labels are never removed, so no gap can cut such a row.
#include "trace/asm_labels.h"

#include "base/mem.h"

#include <string.h>

void asm_labels_fini(struct asm_labels *labels)
{
	map_fini(&labels->map);
	mem_free(labels->entries);
	str_fini(&labels->texts);
	*labels = (struct asm_labels){ 0 };
}

// FNV-1a.
// The class is hashed first, so that labels of two classes that are spelled alike do not meet.
static uint64_t hash_of(char class, const char *text)
{
	uint64_t hash = 0xcbf29ce484222325 ^ (unsigned char)class;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
	return hash;
}

// The entry, or NULL; *hash is where it is or would be.
static const struct asm_label *look(const struct asm_labels *labels, char class, const char *text,
				    uint64_t *hash)
{
	const uint64_t *index;

	*hash = hash_of(class, text);
	while ((index = map_find(&labels->map, *hash)) != NULL) {
		const struct asm_label *entry = &labels->entries[*index - 1];

		if (entry->class == class && strcmp(labels->texts.text + entry->text_at, text) == 0)
			return entry;
		++*hash;
	}
	return NULL;
}

bool asm_labels_find(const struct asm_labels *labels, char class, const char *text, uint32_t *id)
{
	uint64_t hash;
	const struct asm_label *entry = look(labels, class, text, &hash);

	ASSERT(text);
	if (entry)
		*id = entry->id;
	return entry != NULL;
}

// The map has the index plus one, as map_put gives 0 for what is new.
bool asm_labels_add(struct asm_labels *labels, char class, const char *text, uint32_t id)
{
	uint64_t hash;

	ASSERT(text);
	if (look(labels, class, text, &hash))
		return false;
	*MEM_ADD(labels->entries, labels->count, labels->capacity) = (struct asm_label){
		.text_at = labels->texts.length,
		.id = id,
		.class = class,
	};
	*map_put(&labels->map, hash, NULL) = labels->count;
	str_add_bytes(&labels->texts, text, strlen(text) + 1);
	return true;
}
