// For example app.tide has id A. Its next part has an id that is a hash of A, and so on: a reader
// that has read part A knows the id that follows, and looks for a file with that id in its
// preamble, under the path that it was given or beside it as app.1.tide, app.2.tide. A rotated
// recording renames its files, and so a name alone would say nothing.
#include "trace/parts.h"

#include "base/index_set.h"
#include "os/file.h"
#include "trace/block.h"
#include "trace/defs.h"

#include <inttypes.h>
#include <string.h>

static const char ending[] = ".tide";

struct search {
	const char *path;
	size_t folder, stem; // of the path: so long
	const uint8_t *id;
	struct str *found;
	bool is;
};

bool parts_has(const struct trace_info *info)
{
	return defs_option(info->options, "rotate=") != NULL;
}

// Two hashes of 64 bits, of the id and of 1 or 2: the halves of the next id. Nothing secret; ids of
// different recordings must not meet.
void parts_next_id(const uint8_t id[static 16], uint8_t next[static 16])
{
	for (uint64_t i = 0; i < 2; i++) {
		uint64_t words[3] = { 0, 0, i + 1 }, hash;

		memcpy(words, id, 16);
		hash = index_set_hash(words, 3);
		memcpy(next + 8 * i, &hash, sizeof hash);
	}
}

// "app.tide" -> "app"
static size_t stem_length(const char *path)
{
	size_t length = strlen(path), cut = sizeof ending - 1;

	return length > cut && strcmp(path + length - cut, ending) == 0 ? length - cut : length;
}

void parts_name(const char *path, uint32_t number, struct str *name)
{
	size_t stem = stem_length(path);

	str_add_bytes(name, path, stem);
	str_format(name, ".%" PRIu32 "%s", number, path + stem);
}

// A file that is no trace or cannot be read has no id.
static bool has_id(const char *path, const uint8_t id[static 16])
{
	uint8_t bytes[BLOCK_PREAMBLE_BYTES];
	struct block_preamble preamble;
	int fd = file_look(path) == FILE_IS_REGULAR ? file_open(path, FILE_READ) : -1;
	ptrdiff_t size = fd >= 0 ? file_read_at(fd, bytes, sizeof bytes, 0) : 0;

	file_close(fd);
	return size == (ptrdiff_t)sizeof bytes &&
	       block_preamble_decode(bytes, sizeof bytes, &preamble) == BLOCK_PREAMBLE_OK &&
	       memcmp(preamble.recording_id, id, sizeof preamble.recording_id) == 0;
}

// Called with each name of the folder: is it the stem, a dot, a number and the ending?
static void look_at(void *context, const char *name)
{
	struct search *search = context;
	const char *base = search->path + search->folder, *rest = search->path + search->stem;
	size_t length = search->stem - search->folder, digits;

	if (search->is || strncmp(name, base, length) != 0 || name[length] != '.')
		return;
	digits = strspn(name + length + 1, "0123456789");
	if (digits == 0 || strcmp(name + length + 1 + digits, rest) != 0)
		return;
	str_clear(search->found);
	str_add_bytes(search->found, search->path, search->folder);
	str_add(search->found, name);
	search->is = has_id(str_get(search->found), search->id);
}

// The part of a recording that has this id: mostly the path itself; else one beside it whose name
// begins alike.
bool parts_find(const char *path, const uint8_t id[static 16], struct str *found)
{
	struct search search = {
		.path = path,
		.folder = (size_t)(file_name(path) - path),
		.stem = stem_length(path),
		.id = id,
		.found = found,
	};
	struct str folder = { 0 };

	ASSERT(search.folder <= search.stem);
	str_clear(found);
	if (has_id(path, id)) {
		str_add(found, path);
		return true;
	}
	str_add_bytes(&folder, path, search.folder);
	file_list(search.folder ? str_get(&folder) : ".", look_at, &search);
	str_fini(&folder);
	return search.is;
}
