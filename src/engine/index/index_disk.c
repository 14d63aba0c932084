// For example $TIDEMARK_CACHE is 8G, and three indexes in the cache directory were used last at
// 10:00, 11:00 and 12:00. They take 5, 2 and 4 GiB; the last is the one that is used now. 11 GiB
// are more than 8: that of 10:00 goes, and the other two, 6 GiB, stay. When one was used is the
// time of its file "head", which index_disk_keep touches.
#include "engine/index/index_disk.h"

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "engine/index/index_io.h"
#include "engine/index/index_store.h"
#include "os/file.h"
#include "os/identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char ending[] = ".tide-index";

// Who hears of each file of a folder.
struct hearing {
	const char *path; // of the folder
	void (*tell)(void *context, const char *path);
	void *context;
};

// `after` is what the name ends with while the file is written, or nothing.
static void tell_file(const struct hearing *hearing, const char *name, const char *after)
{
	struct str file = { 0 };

	str_format(&file, "%s/%s%s", hearing->path, name, after);
	hearing->tell(hearing->context, str_get(&file));
	str_fini(&file);
}

// All names that a file of an index may have: its vaults, the small files of index_io, also those
// that a build which was killed left half written, and two that have no table.
static void each_file(const char *path, void (*tell)(void *context, const char *path),
		      void *context)
{
	const struct hearing hearing = { path, tell, context };
	struct index_files files = { 0 };
	char name[24];

	for (unsigned i = 0; i < INDEX_VAULTS; i++) {
		index_files_vault(&files, i, name);
		tell_file(&hearing, name, "");
	}
	for (size_t i = 0; index_io_names[i]; i++) {
		tell_file(&hearing, index_io_names[i], "");
		tell_file(&hearing, index_io_names[i], ".new");
	}
	tell_file(&hearing, "sorted", "");   // index_sorted.c
	tell_file(&hearing, "vm-calls", ""); // of indexes up to version 8
}

static void add_bytes(void *context, const char *path)
{
	struct identity identity;
	struct err ignored;

	if (identity_find(&identity, path, &ignored))
		*(uint64_t *)context += identity.size_bytes;
}

uint64_t index_disk_bytes(const char *path)
{
	uint64_t bytes = 0;

	each_file(path, add_bytes, &bytes);
	return bytes;
}

static void remove_file(void *, const char *path)
{
	file_remove(path);
}

void index_disk_remove(const char *path)
{
	each_file(path, remove_file, NULL);
	file_remove_folder(path);
}

bool index_disk_limit(uint64_t *bytes, struct err *err)
{
	const char *word = getenv("TIDEMARK_CACHE");

	*bytes = UINT64_C(8) << 30;
	return !word || !*word || str_parse_bytes(word, bytes) ||
	       err_set(err, ERR_USAGE, "TIDEMARK_CACHE is '%s', not a size such as 8G", word);
}

// ---- those beside each other ----

struct kept {
	char *path;
	uint64_t bytes;
	int64_t used_s, used_ns;
};

// Those in one directory.
struct beside {
	const char *path; // of the one that is used
	struct kept *list;
	size_t count, capacity;
	uint64_t bytes;
};

// An index is known by its folder's name alone; files of other names are none of ours.
static void add_one(void *context, const char *name)
{
	struct beside *beside = context;
	size_t before = (size_t)(file_name(beside->path) - beside->path), length = strlen(name);
	struct identity identity;
	struct str path = { 0 };
	struct err ignored;
	struct kept *kept;

	if (length < sizeof ending || !str_ends_with(name, ending))
		return;
	str_add_bytes(&path, beside->path, before);
	str_format(&path, "%s/head", name);
	// One that is unfinished is as old as its directory.
	if (!identity_find(&identity, str_get(&path), &ignored)) {
		path.text[path.length - 5] = '\0';
		if (!identity_find(&identity, str_get(&path), &ignored)) {
			str_fini(&path);
			return;
		}
	}
	path.text[before + length] = '\0';
	kept = MEM_ADD(beside->list, beside->count, beside->capacity);
	*kept = (struct kept){
		.path = str_take(&path),
		.used_s = identity.changed_s,
		.used_ns = identity.changed_ns,
	};
	kept->bytes = index_disk_bytes(kept->path);
	beside->bytes += kept->bytes;
}

SORT_ORDER(compare_used, struct kept, SORT_RISES(used_s), SORT_RISES(used_ns))

// An index that another process builds is locked, and stays whatever its age. One that is only read
// has no lock: its files are open there, and stay until they are closed.
static bool evict(const struct kept *kept)
{
	int lock = file_lock_folder(kept->path);

	if (lock < 0)
		return false;
	index_disk_remove(kept->path);
	file_close(lock);
	return true;
}

// The oldest go until the rest fits, but never the one that is used now, even if it alone is larger
// than all that may be kept.
void index_disk_keep(const char *path, uint64_t bytes_max)
{
	struct beside beside = { .path = path };
	struct str text = { 0 };

	str_format(&text, "%s/head", path);
	file_touch(str_get(&text));
	str_clear(&text);
	str_add_bytes(&text, path, (size_t)(file_name(path) - path));
	file_list(str_get(&text), add_one, &beside);
	str_fini(&text);
	if (beside.count > 0)
		qsort(beside.list, beside.count, sizeof *beside.list, compare_used);
	for (size_t i = 0; i < beside.count; i++) {
		const struct kept *kept = &beside.list[i];

		if (beside.bytes > bytes_max && strcmp(kept->path, path) != 0 && evict(kept))
			beside.bytes -= kept->bytes;
		mem_free(kept->path);
	}
	mem_free(beside.list);
}
