// For example app.tide has id A. Its next part has an id that is a hash of A, and so on: a reader
// that has read part A knows the id that follows, and looks for a file with that id in its
// preamble, under the path that it was given or beside it as app.1.tide, app.2.tide. A rotated
// recording renames its files, and so a name alone would say nothing.
#include "trace/parts.h"

#include "base/index_set.h"
#include "os/file.h"
#include "trace/block.h"
#include "trace/defs.h"
#include "trace/reader.h"

#include <inttypes.h>
#include <stdlib.h>
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

	return length > cut && str_ends_with(path, ending) ? length - cut : length;
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

// A file that was rotated away has a number in its name, which its newest does not have.
bool parts_go_on(const struct reader *reader, const char *path)
{
	size_t stem = stem_length(path), digits = 0;
	struct str newest = { 0 }, found = { 0 };
	uint8_t next[16];
	bool go_on;

	while (digits < stem && path[stem - digits - 1] >= '0' && path[stem - digits - 1] <= '9')
		digits++;
	if (digits && digits < stem && path[stem - digits - 1] == '.')
		digits++;
	else
		digits = 0;
	ASSERT(digits <= stem);
	str_format(&newest, "%.*s%s", (int)(stem - digits), path, path + stem);
	parts_next_id(reader_info(reader)->recording_id, next);
	go_on = parts_find(newest.text, next, &found);
	STR_FINI(&newest, &found);
	return go_on;
}

bool parts_same(const struct reader *reader, const struct reader *other)
{
	const struct trace_info *info = reader_info(reader), *theirs = reader_info(other);

	return parts_has(info) && parts_has(theirs) &&
	       info->began_unix_ns == theirs->began_unix_ns &&
	       strcmp(info->host, theirs->host) == 0 && strcmp(info->command, theirs->command) == 0;
}

bool parts_begins(const struct trace_note *note)
{
	return note->kind == TRACE_NOTE_MARK && strcmp(note->text, TRACE_TRIMMED) == 0;
}

uint64_t parts_begin_ns(const struct reader *reader)
{
	size_t count;
	const struct trace_mark *marks = reader_marks(reader, &count);

	if (!defs_option(reader_info(reader)->options, "trimmed="))
		return 0;
	for (size_t i = 0; i < count; i++)
		if (strcmp(marks[i].name, TRACE_TRIMMED) == 0)
			return marks[i].time_ns;
	return 0;
}

// Whether the file is as it was recorded, and so its events have the numbers that its neighbours
// know: cut at its beginning by hand it has lost its word. The recording's first part has none.
static bool is_as_recorded(const struct reader *reader, const char *path, bool must,
			   struct err *err)
{
	const char *options = reader_info(reader)->options;

	if (defs_has_word(options, "no-addresses"))
		return err_set(err, ERR_FORMAT,
			       "%s: its addresses were stripped, and mean nothing in another part "
			       "of the recording (try: merge, then strip)",
			       path);
	return !must || defs_option(options, "joins=") ||
	       err_set(err, ERR_FORMAT,
		       "%s: it does not say where it goes on from the part before: it was "
		       "trimmed, or recorded by an older tidemark (ask each file by itself)",
		       path);
}

// Ids say whether a part between them is missing, times what is lost with it: nothing at times,
// since three parts may overlap.
static bool check_between(const struct reader *first, const char *first_path,
			  const struct reader *second, const char *second_path, struct err *err)
{
	const uint8_t *id = reader_info(first)->recording_id;
	const uint8_t *other = reader_info(second)->recording_id;
	uint64_t ends_ns = reader_stats(first)->last_ns, begins_ns = parts_begin_ns(second);
	uint8_t next[16];

	ASSERT(first != second);
	if (memcmp(id, other, sizeof next) == 0)
		return err_set(err, ERR_FORMAT, "%s and %s are the same part of one recording",
			       first_path, second_path);
	parts_next_id(id, next);
	if (memcmp(next, other, sizeof next) == 0)
		return true;
	if (ends_ns >= begins_ns)
		return err_set(err, ERR_FORMAT,
			       "a file between %s and %s was not given, which says where the one "
			       "goes on from the other",
			       first_path, second_path);
	return err_set(err, ERR_FORMAT,
		       "a file between %s and %s was not given: %s to %s of the recording is "
		       "missing (ask each file by itself: it knows what lived when it begins)",
		       first_path, second_path, STR_DURATION(ends_ns), STR_DURATION(begins_ns));
}

bool parts_follows(const struct reader *first, const char *first_path, const struct reader *second,
		   const char *second_path, uint64_t *to, struct err *err)
{
	bool cut = defs_option(reader_info(first)->options, "trimmed=");

	ASSERT(to && first != second);
	if (!is_as_recorded(first, first_path, cut, err) ||
	    !is_as_recorded(second, second_path, true, err) ||
	    !check_between(first, first_path, second, second_path, err))
		return false;
	*to = strtoull(defs_option(reader_info(second)->options, "joins="), NULL, 10);
	if (reader_sound(first) && reader_stats(first)->events_end >= *to &&
	    *to >= reader_info(first)->trimmed)
		return true;
	return err_set(err, ERR_FORMAT,
		       "%s: it is cut or damaged, and what it lacks is in no other part of the "
		       "recording (ask each file by itself)",
		       first_path);
}
