// An element with stars has a kind in front, and folders after it. For example
//
//     srv*C:\sym*\\host\sym*https://a.b    the stores C:\sym and \\host\sym; a remark on the URL
//     symsrv*symsrv.dll*C:\sym             the store C:\sym: two words are skipped
//     D:\pdb                               the folder D:\pdb
//
// A file is looked for in each under its key: STORE/app.pdb/KEY/app.pdb for app.pdb. Each folder
// is listed once, in the order in which they were said.
#include "symbols/symbol_path.h"

#include "base/mem.h"
#include "base/str.h"
#include "os/file.h"
#include "symbols/drive.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { POINTER_BYTES_MAX = 4096 }; // of a file.ptr

static void add_folder(struct symbol_path *path, const char *text, size_t length,
		       struct remarks *remarks)
{
	char *folder = mem_copy_bytes(text, length), *found;

	// A report must not tell a server what is looked at, and must give the same answer off
	// line.
	if (strstr(folder, "://")) {
		remarks_add(remarks,
			    "%s is not asked: nothing is fetched from a network (tidemark symbols "
			    "FILE --missing lists what to fetch)",
			    folder);
		mem_free(folder);
		return;
	}
	found = length > 0 ? drive_find(folder) : NULL;
	if (!found && length > 0)
		remarks_add(remarks, "%s, in the symbol path, is not there", folder);
	mem_free(folder);
	if (!found)
		return;
	for (size_t i = 0; i < path->count; i++)
		if (strcmp(path->folders[i], found) == 0) {
			mem_free(found);
			return;
		}
	*MEM_ADD(path->folders, path->count, path->capacity) = found;
}

// What stands between stars, from `skip` words on.
static void add_stores(struct symbol_path *path, const char *text, size_t length, int skip,
		       struct remarks *remarks)
{
	const char *end = text + length;

	for (;;) {
		size_t word = (size_t)(end - text);
		const char *star = memchr(text, '*', word);

		if (star)
			word = (size_t)(star - text);
		if (skip-- <= 0)
			add_folder(path, text, word, remarks);
		if (!star)
			return;
		text = star + 1;
	}
}

// Add the elements of `text`.
static void symbol_path_add(struct symbol_path *path, const char *text, struct remarks *remarks)
{
	while (*text) {
		size_t length = strcspn(text, ";");

		if (strncasecmp(text, "srv*", 4) == 0 || strncasecmp(text, "cache*", 6) == 0)
			add_stores(path, text, length, 1, remarks);
		else if (strncasecmp(text, "symsrv*", 7) == 0)
			add_stores(path, text, length, 2, remarks);
		else
			add_folder(path, text, length, remarks);
		text += length + (text[length] != 0);
	}
}

void symbol_path_add_environment(struct symbol_path *path, struct remarks *remarks)
{
	static const char *const names[] = { "_NT_ALT_SYMBOL_PATH", "_NT_ALTERNATE_SYMBOL_PATH",
					     "_NT_SYMBOL_PATH" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (getenv(names[i]))
			symbol_path_add(path, getenv(names[i]), remarks);
}

void symbol_path_fini(struct symbol_path *path)
{
	for (size_t i = 0; i < path->count; i++)
		mem_free(path->folders[i]);
	mem_free(path->folders);
	*path = (struct symbol_path){ 0 };
}

static bool try_in(const char *folder, const char *name, symbol_path_try *attempt, void *opaque)
{
	char *found = drive_find_in(folder, name);
	bool done = found && file_look(found) == FILE_IS_REGULAR && attempt(opaque, found);

	mem_free(found);
	return done;
}

// A file.ptr says "PATH:where it is", or "MSG:why it is not there".
static char *read_pointer(const char *path)
{
	struct file_view view;
	struct err err;
	char *text, *found = NULL;

	if (file_look(path) != FILE_IS_REGULAR || !file_view_open(&view, path, &err))
		return NULL;
	if (view.size < POINTER_BYTES_MAX) {
		text = mem_copy_bytes(view.bytes, view.size);
		text[strcspn(text, "\r\n")] = 0;
		if (strncasecmp(text, "MSG:", 4) != 0)
			found = drive_find(text + (strncasecmp(text, "PATH:", 5) == 0 ? 5 : 0));
		mem_free(text);
	}
	file_view_close(&view);
	return found;
}

static bool try_pointer(const char *folder, symbol_path_try *attempt, void *opaque)
{
	char *pointer = drive_find_in(folder, "file.ptr");
	char *found = pointer ? read_pointer(pointer) : NULL;
	bool done = found && file_look(found) == FILE_IS_REGULAR && attempt(opaque, found);

	MEM_FREE(found, pointer);
	return done;
}

// Stores may keep files compressed, with _ for the last letter. We do not unpack them.
static void look_compressed(const char *folder, const char *name, struct remarks *remarks)
{
	char *packed = mem_copy_text(name), *found;

	ASSERT(*name); // symbol_path_look refuses it
	// app.pdb is app.pd_ when it is packed.
	packed[strlen(packed) - 1] = '_';
	found = drive_find_in(folder, packed);
	if (found)
		remarks_add(remarks, "%s is compressed: unpack it (expand, or cabextract)", found);
	MEM_FREE(found, packed);
}

// A folder of a store: where the file has this key.
static bool try_key(const char *store, const char *path, const char *name, struct remarks *remarks,
		    symbol_path_try *attempt, void *opaque)
{
	char *folder = drive_find_in(store, path);
	bool done = folder &&
		    (try_in(folder, name, attempt, opaque) || try_pointer(folder, attempt, opaque));

	if (folder && !done)
		look_compressed(folder, name, remarks);
	mem_free(folder);
	return done;
}

bool symbol_path_look(const char *folder, const char *name, const char *key,
		      struct remarks *remarks, symbol_path_try *attempt, void *opaque)
{
	const char *dot = strrchr(name, '.');
	struct str path = { 0 };
	bool done = false;

	if (!*name || strchr(name, '/') || strchr(name, '\\') || strcmp(name, "..") == 0)
		return false;
	// Only the key proves anything before the file is opened, so stores come first; at the
	// other places `attempt` decides by what is in the file.
	if (key) {
		str_format(&path, "%s/%s", name, key);
		done = try_key(folder, path.text, name, remarks, attempt, opaque);
		str_clear(&path);
		str_format(&path, "%.2s/%s/%s", name, name, key);
		done = done || try_key(folder, path.text, name, remarks, attempt, opaque);
	}
	done = done || try_in(folder, name, attempt, opaque);
	// As dbghelp does: DIR/pdb/app.pdb, DIR/symbols/pdb/app.pdb; DIR/dll/… for an image.
	if (!done && dot && dot[1]) {
		str_clear(&path);
		str_format(&path, "%s/%s", dot + 1, name);
		done = try_in(folder, path.text, attempt, opaque);
		str_clear(&path);
		str_format(&path, "symbols/%s/%s", dot + 1, name);
		done = done || try_in(folder, path.text, attempt, opaque);
	}
	str_fini(&path);
	return done;
}
