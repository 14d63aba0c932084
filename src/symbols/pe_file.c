#include "symbols/pe_file.h"

#include "base/mem.h"
#include "base/str.h"
#include "os/file.h"
#include "symbols/drive.h"
#include "symbols/le.h"
#include "symbols/pe_dwarf.h"
#include "symbols/pe_names.h"

#include <string.h>

enum {
	GUID_BYTES = 16,
	ID_BYTES = 20, // GUID and age
	PAGE_BYTES = 4096,
};

struct pe_file {
	char *name;             // of the module, without its folder
	char *path;             // of the image; NULL: not found
	struct file_view bytes; // of the image
	struct pe pe;
	struct pe_dwarf *dwarf; // NULL: none
	struct pe_names names;
};

// A search under way.
struct hunt {
	const struct symbols_file_identity *identity;
	struct remarks *remarks;
	struct pe_file *file;
	bool recorded; // at the very path that was recorded
};

// Is it the image that was recorded? By the GUID of its PDB, else by what its headers say of its
// build, else by size and time of the file.
static bool is_same(const struct symbols_file_identity *identity, const struct pe *pe,
		    uint64_t size_bytes)
{
	if (identity->build_id_length >= ID_BYTES)
		return pe->has_codeview && memcmp(pe->guid, identity->build_id, GUID_BYTES) == 0 &&
		       pe->age == le_32(identity->build_id + GUID_BYTES);
	if (identity->image_bytes > 0 &&
	    (pe->image_bytes + PAGE_BYTES - 1) / PAGE_BYTES !=
		    (identity->image_bytes + PAGE_BYTES - 1) / PAGE_BYTES)
		return false;
	if (identity->timestamp > 0)
		return pe->timestamp == identity->timestamp;
	return identity->size_bytes == 0 || size_bytes == identity->size_bytes;
}

static bool try_image(void *opaque, const char *path)
{
	struct hunt *hunt = opaque;
	struct file_view bytes;
	struct err err = { 0 };
	struct pe pe = { 0 };

	if (!file_view_open(&bytes, path, &err)) {
		remarks_add(hunt->remarks, "%s", err.text);
		return false;
	}
	if (!pe_open(&pe, bytes.bytes, bytes.size, &err)) {
		remarks_add(hunt->remarks, "%s: %s", path, err.text);
	} else if (!is_same(hunt->identity, &pe, bytes.size)) {
		remarks_add(hunt->remarks,
			    hunt->recorded ? "%s has changed since the recording: its names are "
					     "not used"
					   : "%s is another build than was recorded: not used",
			    path);
	} else {
		hunt->file->path = mem_copy_text(path);
		hunt->file->bytes = bytes;
		hunt->file->pe = pe;
		return true;
	}
	pe_close(&pe);
	file_view_close(&bytes);
	return false;
}

// In the user's directories.
static bool look_in_list(const char *list, const char *name, const char *key,
			 struct remarks *remarks, symbol_path_try *attempt, void *opaque)
{
	const char separators[2] = { drive_separator(), 0 };

	while (list && *list) {
		size_t length = strcspn(list, separators);
		char *folder = mem_copy_bytes(list, length);
		bool done = length > 0 &&
			    symbol_path_look(folder, name, key, remarks, attempt, opaque);

		mem_free(folder);
		if (done)
			return true;
		list += length + (list[length] != 0);
	}
	return false;
}

static bool look_in_path(const struct symbol_path *path, const char *name, const char *key,
			 struct remarks *remarks, symbol_path_try *attempt, void *opaque)
{
	for (size_t i = 0; path && i < path->count; i++)
		if (symbol_path_look(path->folders[i], name, key, remarks, attempt, opaque))
			return true;
	return false;
}

// Of an image: when it was built, and how large it is in memory.
static bool image_key(const struct symbols_file_identity *identity, struct str *key)
{
	if (identity->timestamp == 0 || identity->image_bytes == 0)
		return false;
	str_format(key, "%08X%x", identity->timestamp, identity->image_bytes);
	return true;
}

static void find_image(struct pe_file *file, const struct symbols_file_identity *identity,
		       const struct search *search)
{
	struct hunt hunt = { .identity = identity, .remarks = search->remarks, .file = file };
	struct str text = { 0 };
	const char *key = image_key(identity, &text) ? text.text : NULL;
	char *recorded;

	if (!look_in_list(search->directories, file->name, key, search->remarks, try_image,
			  &hunt)) {
		recorded = drive_find(identity->path);
		hunt.recorded = true;
		if (!recorded || !try_image(&hunt, recorded)) {
			hunt.recorded = false;
			look_in_path(search->symbol_path, file->name, key, search->remarks,
				     try_image, &hunt);
		}
		mem_free(recorded);
	}
	str_fini(&text);
}

struct pe_file *pe_file_open(const struct symbols_file_identity *identity,
			     const struct search *search)
{
	struct pe_file *file = mem_alloc(1, sizeof *file);

	file->name = mem_copy_text(drive_name(identity->path));
	find_image(file, identity, search);
	if (!file->path)
		remarks_add(search->remarks, "%s is not on this machine: it has no names",
			    identity->path);
	else
		file->dwarf = pe_dwarf_new(&file->pe, file->path, search->remarks);
	pe_names_init(&file->names, &file->pe);
	// Where a table lists all functions, what is exported is in it.
	if (pe_names_add_coff(&file->names) == 0)
		pe_names_add_exports(&file->names);
	pe_names_build(&file->names);
	return file;
}

void pe_file_close(struct pe_file *file)
{
	if (!file)
		return;
	pe_dwarf_free(file->dwarf);
	pe_names_fini(&file->names);
	pe_close(&file->pe);
	file_view_close(&file->bytes);
	mem_free(file->path);
	mem_free(file->name);
	mem_free(file);
}

void pe_file_find(struct pe_file *file, uint64_t offset, struct places *places)
{
	uint32_t rva = (uint32_t)offset;
	struct place *outer;
	const char *name;

	if (!file->dwarf || !pe_dwarf_find(file->dwarf, rva, places))
		places_add(places);
	outer = &places->items[places->count - 1];
	if ((outer->function && !outer->plain) || offset > UINT32_MAX)
		return;
	name = pe_names_find(&file->names, rva);
	if (name)
		outer->function = name;
	else if (!outer->function && file->path)
		outer->function = pe_names_unnamed(&file->names, file->name, rva);
}
