// Finds the image and the PDB that belong to what was recorded, and refuses all others.
//
// For example, a module of 32 bits was recorded with 90,112 bytes in memory, and its PDB's GUID and
// age 2. A file of that size with the same GUID and age 1 is another build: its names would be near
// the right ones, and wrong. A file of 64 bits, or of 94,208 bytes, is refused without a look at
// the GUID. Only a module that was recorded without one is known by the time at which it was
// linked.
#include "symbols/pe_file.h"

#include "base/mem.h"
#include "base/str.h"
#include "os/file.h"
#include "symbols/dbghelp.h"
#include "symbols/drive.h"
#include "symbols/pdb.h"
#include "symbols/pe_dwarf.h"
#include "symbols/pe_names.h"
#include "trace/bytes.h"

#include <string.h>
#include <strings.h>

enum {
	GUID_BYTES = 16,
	ID_BYTES = 20, // GUID and age
};

struct pe_file {
	char *name;             // of the module, without its folder
	char *path;             // of the image; NULL: not found
	struct file_view bytes; // of the image
	struct pe pe;
	struct pe_dwarf *dwarf; // NULL: none
	struct dbghelp *help;   // the system's own names; NULL: none, or they are not needed
	char *pdb_path;         // NULL: not found
	struct file_view pdb_bytes;
	struct pdb *pdb; // NULL: none
	struct pe_names names;
	bool lists_all;      // a table of all functions is among the names
	char *missing_image; // where a store would have it; NULL: it was found, or has no key
	char *missing_pdb;
};

// A PDB by what the image says of it. The key is where a store has it: the GUID as Windows writes
// it, its first three numbers in big-endian, and the age, as in 3844DBB920174967BE7AA4A2C20430FA2.
struct wanted {
	uint8_t guid[GUID_BYTES];
	uint32_t age;
	char *name; // owned; NULL: none is
	char *key;  // owned
};

// A search under way.
struct hunt {
	const struct symbols_file_identity *identity;
	const struct wanted *wanted; // for a PDB
	struct remarks *remarks;
	struct pe_file *file;
	bool recorded; // at the very path that was recorded
};

// When the image that was recorded was linked; 0: not known. A recorder of 64 bits may have looked
// at another file than a program of 32 bits loaded; then the sizes differ.
static uint32_t timestamp_of(const struct symbols_file_identity *identity)
{
	// For example the program of 32 bits has syswow64\kernel32.dll, and the file that was
	// looked at is the one in system32, of another size: its time says nothing.
	if (identity->memory_bytes > 0 && identity->size_bytes != identity->memory_bytes)
		return 0;
	return (uint32_t)(identity->mtime_ns / 1000000000);
}

static uint64_t image_bytes_of(const struct symbols_file_identity *identity)
{
	return identity->memory_bytes > 0 ? identity->memory_bytes : identity->size_bytes;
}

// Is it the image that was recorded? By its size in memory, and by the GUID of its PDB or when it
// was linked.
static bool is_same(const struct symbols_file_identity *identity, const struct pe *pe)
{
	uint64_t image_bytes = image_bytes_of(identity);

	// First what is cheap and sure: the class and the size.
	if ((identity->bits != 0 && (identity->bits == 64) != pe->is_64) ||
	    (image_bytes > 0 && pe->image_bytes != image_bytes))
		return false;
	if (identity->build_id_length >= ID_BYTES)
		return pe->has_codeview && memcmp(pe->guid, identity->build_id, GUID_BYTES) == 0 &&
		       pe->age == bytes_get_u32(identity->build_id + GUID_BYTES);
	return timestamp_of(identity) == 0 || pe->timestamp == timestamp_of(identity);
}

// One of symbol_path_try: an image that was looked for is at `path`. If it is the right one it
// stays mapped, as the file's; else it is closed, and the search goes on.
static bool try_image(void *opaque, const char *path)
{
	struct hunt *hunt = opaque;
	struct file_view bytes;
	struct err err = { 0 };
	struct pe pe = { 0 };

	// Each failure is a remark: at the end the user sees what was tried, and why each was not
	// taken.
	if (!file_view_open(&bytes, path, &err)) {
		remarks_add(hunt->remarks, "%s", err.text);
		return false;
	}
	if (!pe_open(&pe, bytes.bytes, bytes.size, &err)) {
		remarks_add(hunt->remarks, "%s: %s", path, err.text);
	} else if (!is_same(hunt->identity, &pe)) {
		remarks_add(hunt->remarks,
			    hunt->recorded ? REMARKS_CHANGED
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

// In the user's directories, one after the other, until one has it.
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
	if (timestamp_of(identity) == 0 || image_bytes_of(identity) == 0)
		return false;
	// For example linked at 0x5f8a3c21 and 0x16000 bytes: 5F8A3C2116000, the time in capitals
	// and the size without zeros in front, as symbol stores have it.
	str_format(key, "%08X%x", timestamp_of(identity), (uint32_t)image_bytes_of(identity));
	return true;
}

static char *store_path(const char *name, const char *key)
{
	struct str path = { 0 };

	ASSERT(name && key);
	str_format(&path, "%s/%s/%s", name, key, name);
	return str_take(&path);
}

// The recorded path on this machine. What a program of 32 bits calls system32 is syswow64.
static char *find_recorded(const struct symbols_file_identity *identity)
{
	static const char folder[] = "\\system32\\";
	const char *path = identity->path;
	struct str other = { 0 };
	char *found = NULL;

	// The first one only: a folder of that name further in is the program's own.
	for (const char *at = path; identity->bits == 32 && *at && !found; at++) {
		if (strncasecmp(at, folder, sizeof folder - 1) != 0)
			continue;
		str_format(&other, "%.*s\\syswow64\\%s", (int)(at - path), path,
			   at + sizeof folder - 1);
		found = drive_find(other.text);
		break;
	}
	str_fini(&other);
	return found ? found : drive_find(path);
}

// The user's directories are first, because a user who names one wants it; then the recorded path,
// which on the same machine is right; then the symbol path.
static void find_image(struct pe_file *file, const struct symbols_file_identity *identity,
		       const struct search *search)
{
	struct hunt hunt = { .identity = identity, .remarks = search->remarks, .file = file };
	struct str text = { 0 };
	const char *key = image_key(identity, &text) ? text.text : NULL;
	char *recorded;

	if (!look_in_list(search->directories, file->name, key, search->remarks, try_image,
			  &hunt)) {
		recorded = find_recorded(identity);
		hunt.recorded = true;
		if (!recorded || !try_image(&hunt, recorded)) {
			hunt.recorded = false;
			look_in_path(search->symbol_path, file->name, key, search->remarks,
				     try_image, &hunt);
		}
		mem_free(recorded);
	}
	if (!file->path && key)
		file->missing_image = store_path(file->name, key);
	str_fini(&text);
}

// ---- the PDB ----

// Its name without the folder: as the image has it, or as the trace has it behind the age, or the
// module's with another ending.
static char *pdb_name(const struct pe_file *file, const struct symbols_file_identity *identity)
{
	struct str name = { 0 };
	const char *dot = strrchr(file->name, '.');

	// The image knows best: a module may have been renamed after it was linked.
	if (file->pe.pdb && *str_last_part_of_any(file->pe.pdb))
		return mem_copy_text(str_last_part_of_any(file->pe.pdb));
	if (identity->build_id_length > ID_BYTES)
		return mem_copy_bytes(identity->build_id + ID_BYTES,
				      identity->build_id_length - ID_BYTES);
	str_add_bytes(&name, file->name, dot ? (size_t)(dot - file->name) : strlen(file->name));
	str_add(&name, ".pdb");
	return str_take(&name);
}

// What the image says of its PDB; without an image, or if it says nothing, what was recorded.
static struct wanted want_pdb(const struct pe_file *file,
			      const struct symbols_file_identity *identity)
{
	struct wanted wanted = { 0 };
	struct str key = { 0 };
	const uint8_t *guid = wanted.guid;

	if (file->pe.has_codeview) {
		memcpy(wanted.guid, file->pe.guid, GUID_BYTES);
		wanted.age = file->pe.age;
	} else if (identity->build_id_length >= ID_BYTES) {
		memcpy(wanted.guid, identity->build_id, GUID_BYTES);
		wanted.age = bytes_get_u32(identity->build_id + GUID_BYTES);
	} else {
		return wanted;
	}
	wanted.name = pdb_name(file, identity);
	// The first three parts of a GUID are numbers, and are written as such; the other eight
	// bytes as they are.
	str_format(&key, "%08X%04X%04X", bytes_get_u32(guid), bytes_get_u16(guid + 4),
		   bytes_get_u16(guid + 6));
	for (int i = 8; i < GUID_BYTES; i++)
		str_format(&key, "%02X", guid[i]);
	str_format(&key, "%X", wanted.age);
	wanted.key = str_take(&key);
	return wanted;
}

// As try_image. The age counts, too: a linker that writes a PDB again keeps the GUID.
static bool try_pdb(void *opaque, const char *path)
{
	struct hunt *hunt = opaque;
	struct file_view bytes;
	struct err err = { 0 };
	struct pdb *pdb;

	if (!file_view_open(&bytes, path, &err)) {
		remarks_add(hunt->remarks, "%s", err.text);
		return false;
	}
	pdb = pdb_open(bytes.bytes, bytes.size, &err);
	if (!pdb) {
		remarks_add(hunt->remarks, "%s: %s", path, err.text);
	} else if (memcmp(pdb_guid(pdb), hunt->wanted->guid, GUID_BYTES) != 0 ||
		   pdb_age(pdb) != hunt->wanted->age) {
		remarks_add(hunt->remarks, "%s is of another build than %s: not used", path,
			    hunt->file->name);
	} else {
		hunt->file->pdb_path = mem_copy_text(path);
		hunt->file->pdb_bytes = bytes;
		hunt->file->pdb = pdb;
		return true;
	}
	pdb_close(pdb);
	file_view_close(&bytes);
	return false;
}

// Beside the image, and where the linker wrote it.
static bool look_near(struct pe_file *file, const struct wanted *wanted, struct hunt *hunt)
{
	size_t length = file->path ? (size_t)(str_last_part_of_any(file->path) - file->path) : 0;
	char *folder, *found = NULL;
	bool done = false;

	if (length > 0) {
		folder = mem_copy_bytes(file->path, length);
		found = drive_find_in(folder, wanted->name);
		done = found && try_pdb(hunt, found);
		mem_free(folder);
	}
	// Only if it has a folder: a name alone was looked for beside the image.
	if (!done && file->pe.pdb &&
	    strcmp(str_last_part_of_any(file->pe.pdb), file->pe.pdb) != 0) {
		mem_free(found);
		found = drive_find(file->pe.pdb);
		done = found && try_pdb(hunt, found);
	}
	mem_free(found);
	return done;
}

// Where the user says; then beside the image, and where the linker wrote it; then the symbol path.
static void find_pdb(struct pe_file *file, const struct symbols_file_identity *identity,
		     const struct search *search)
{
	struct wanted wanted = want_pdb(file, identity);
	struct hunt hunt = {
		.identity = identity,
		.wanted = &wanted,
		.remarks = search->remarks,
		.file = file,
	};

	if (wanted.name &&
	    !look_in_list(search->directories, wanted.name, wanted.key, search->remarks, try_pdb,
			  &hunt) &&
	    !look_near(file, &wanted, &hunt))
		look_in_path(search->symbol_path, wanted.name, wanted.key, search->remarks, try_pdb,
			     &hunt);
	if (wanted.name && !file->pdb)
		file->missing_pdb = store_path(wanted.name, wanted.key);
	MEM_FREE(wanted.name, wanted.key);
}

struct pe_file *pe_file_open(const struct symbols_file_identity *identity,
			     const struct search *search)
{
	struct pe_file *file = mem_alloc(1, sizeof *file);

	file->name = mem_copy_text(str_last_part_of_any(identity->path));
	find_image(file, identity, search);
	find_pdb(file, identity, search);
	// The system's library is the last resort, because its answers depend on its version.
	if (file->path && !file->pdb)
		file->help = dbghelp_open(file->path, (uint32_t)file->pe.image_bytes, search);
	if (file->path && !file->help)
		file->dwarf = pe_dwarf_new(&file->pe, file->path, search->remarks);
	else if (!file->path && !file->pdb)
		remarks_add(search->remarks, "%s is not on this machine: it has no names",
			    identity->path);
	pe_names_init(&file->names, &file->pe);
	if (file->pdb)
		pdb_add_publics(file->pdb, &file->names);
	// Where a table lists all functions, what is exported is in it.
	file->lists_all = pe_names_add_coff(&file->names) > 0;
	if (!file->lists_all)
		pe_names_add_exports(&file->names);
	pe_names_build(&file->names);
	return file;
}

void pe_file_close(struct pe_file *file)
{
	if (!file)
		return;
	pe_dwarf_free(file->dwarf);
	dbghelp_close(file->help);
	pdb_close(file->pdb);
	file_view_close(&file->pdb_bytes);
	MEM_FREE(file->pdb_path, file->missing_pdb, file->missing_image);
	pe_names_fini(&file->names);
	pe_close(&file->pe);
	file_view_close(&file->bytes);
	MEM_FREE(file->path, file->name, file);
}

void pe_file_find(struct pe_file *file, uint64_t offset, struct places *places)
{
	uint32_t rva = (uint32_t)offset;
	struct place *outer;
	const char *name;

	ASSERT(places->count == 0);
	// The first that knows the address answers for it; a place without names, if none does.
	if ((!file->dwarf || !pe_dwarf_find(file->dwarf, rva, places)) &&
	    (!file->pdb || !pdb_find(file->pdb, rva, places)) &&
	    (!file->help || !dbghelp_find(file->help, rva, places)))
		places_add(places);
	outer = &places->items[places->count - 1];
	if ((outer->function && !outer->plain) || offset > UINT32_MAX)
		return;
	// Only the outermost function is a symbol; what is inlined has no code of its own.
	name = pe_names_find(&file->names, rva);
	if (name)
		outer->function = name;
	else if (!outer->function && file->path)
		outer->function = pe_names_unnamed(&file->names, file->name, rva);
}

void pe_file_status(const struct pe_file *file, struct symbols_status *status)
{
	*status = (struct symbols_status){
		.file = file->path,
		.debug = file->pdb_path,
		.missing_file = file->missing_image,
		.missing_debug = file->dwarf || file->help ? NULL : file->missing_pdb,
	};
	if (file->dwarf)
		status->names = "dwarf";
	else if (file->pdb)
		status->names = "pdb";
	else if (file->help)
		status->names = "dbghelp";
	else if (file->lists_all)
		status->names = "symtab";
	else if (file->names.count > 0)
		status->names = "exports";
}
