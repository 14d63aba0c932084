// What there is of one ELF file, in the order in which it answers: DWARF of the file or of its
// separate debug file; for an address that this does not name, or names without types, the table of
// symbols, or Go's own. For example libc6 with its -dbg package: the file has .dynsym alone, the
// debug file both .symtab and DWARF; a function in assembly has no DWARF, and its name comes from
// .symtab.
//
// The two parts of a name may disagree, main and main.cold: then the function that the DWARF names
// is the better answer (is_part_of).
#include "symbols/symbols_file.h"

#include "base/mem.h"
#include "base/str.h"
#include "symbols/debugfile.h"
#include "symbols/debuginfo.h"
#include "symbols/gopcln.h"
#include "symbols/minidebug.h"
#include "symbols/pe_file.h"
#include "symbols/symtab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

struct symbols_file {
	struct pe_file *pe;       // a Windows module; the others are then NULL
	struct object *main;      // NULL: gone, changed or never a file
	struct object *debug;     // separate debug information; NULL: none
	struct object *shared;    // what `debug` (or `main`) shares with others; NULL: none
	struct object *minidebug; // NULL: none
	struct symtab symtab;
	struct debuginfo *debuginfo; // NULL: none
	struct gopcln *gopcln;       // NULL: no Go program, or one that has better
	bool exports_only;           // of symbols
	char *missing_main;          // by build-id; NULL: it was found, or is no file
	char *missing_debug;
};

static const char deleted[] = " (deleted)";

// The kernel puts a small library into every process. Ours is the same one if its build-id is.
static struct object *open_vdso(const struct symbols_file_identity *identity)
{
	const uint8_t *bytes = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	struct object *object;
	struct err err;
	size_t size;
	void *copy;

	if (!bytes)
		return NULL;
	// It ends with its section headers, and is whole pages in memory.
	if (memcmp(bytes, ELFMAG, SELFMAG) != 0 || bytes[EI_CLASS] != ELFCLASS64)
		return NULL;
	// The kernel says where it begins, and not how long it is.
	size = ((const Elf64_Ehdr *)bytes)->e_shoff +
	       (size_t)((const Elf64_Ehdr *)bytes)->e_shnum * sizeof(Elf64_Shdr);
	copy = mem_copy_bytes(bytes, size);
	object = object_take_bytes(copy, size, identity->path, &err);
	if (object && !object_is(object, identity->build_id, identity->build_id_length)) {
		object_close(object);
		object = NULL;
	}
	return object;
}

// Is this the file that was recorded?
static bool is_unchanged(const struct symbols_file_identity *identity, const struct object *object)
{
	// A build-id says it all: a file that was copied, or touched, is still the same build.
	if (identity->build_id_length > 0)
		return object_is(object, identity->build_id, identity->build_id_length);
	if (identity->size_bytes > 0 && identity->size_bytes != object->size_bytes)
		return false;
	return identity->mtime_ns == 0 || identity->mtime_ns == object->mtime_ns;
}

// Whether the rest of a line of /proc/PID/maps is that path, of a file that was deleted or not.
static bool is_path_of(const char *path, const char *rest)
{
	size_t length = strlen(path);

	if (strncmp(rest, path, length) != 0)
		return false;
	rest += length;
	return *rest == '\n' || strncmp(rest, deleted, strlen(deleted)) == 0;
}

// A file that was deleted or replaced, as the upgrade of a package does, and that a process still
// has mapped. For example the line
//
//     55d0c1a00000-55d0c1a21000 r-xp 00002000 08:01 1835   /usr/sbin/served (deleted)
//
// is /proc/PID/map_files/55d0c1a00000-55d0c1a21000, which the kernel opens for root alone, also
// where the path is one of a container; the program's own file, for its user too, is /proc/PID/exe.
// The process may be another one by now, or of another machine: what is found must be the file that
// was recorded.
static struct object *open_mapped(const struct symbols_file_identity *identity, const char *path)
{
	unsigned long long start, end;
	struct object *object = NULL;
	char name[80], *line = NULL;
	struct err ignored;
	size_t size = 0;
	FILE *maps;
	int at = 0;

	if (identity->pid == 0 || !*path)
		return NULL;
	snprintf(name, sizeof name, "/proc/%u/maps", identity->pid);
	maps = fopen(name, "re");
	while (maps && !object && getline(&line, &size, maps) > 0) {
		if (sscanf(line, "%llx-%llx %*s %*s %*s %*s %n", &start, &end, &at) != 2 ||
		    !is_path_of(path, line + at))
			continue;
		snprintf(name, sizeof name, "/proc/%u/map_files/%llx-%llx", identity->pid, start,
			 end);
		object = object_open(name, &ignored);
		if (!object) {
			snprintf(name, sizeof name, "/proc/%u/exe", identity->pid);
			object = object_open(name, &ignored);
		}
		if (object && !is_unchanged(identity, object)) {
			object_close(object);
			object = NULL;
		}
	}
	if (maps)
		fclose(maps);
	free(line);
	return object;
}

// The file at `path` if it is the one that was recorded; another one is *changed.
static struct object *open_main(const struct symbols_file_identity *identity, const char *path,
				struct remarks *remarks, bool *changed)
{
	bool was_deleted = str_ends_with(identity->path, deleted);
	struct object *object, *mapped;
	struct err err;

	object = object_open(path, &err);
	if (object && is_unchanged(identity, object))
		return object;
	mapped = open_mapped(identity, path);
	if (mapped) {
		object_close(object);
		return mapped;
	}
	*changed = object != NULL;
	if (!object && was_deleted)
		remarks_add(remarks, "%s was deleted while it ran", path);
	else if (!object)
		remarks_add(remarks, "%s", err.text);
	object_close(object);
	return NULL;
}

// The kernel names mappings that are no files on a disk as if they were.
static bool is_real_path(const char *path)
{
	// memfd, devices, and System V's shared memory: there is no file to open at such a path.
	return path[0] == '/' && strncmp(path, "/memfd:", 7) != 0 &&
	       strncmp(path, "/dev/", 5) != 0 && strncmp(path, "/SYSV", 5) != 0;
}

static void open_files(struct symbols_file *file, const struct symbols_file_identity *identity,
		       const struct search *search)
{
	// " (deleted)" is the kernel's word behind the path of a file that is gone; another may be
	// there now.
	size_t length = strlen(identity->path);
	char *path = mem_copy_bytes(identity->path, str_ends_with(identity->path, deleted)
							    ? length - strlen(deleted)
							    : length);
	bool changed = false;

	if (strcmp(path, "linux-vdso.so.1") == 0 || strcmp(path, "[vdso]") == 0)
		file->main = open_vdso(identity);
	else if (is_real_path(path))
		file->main = open_main(identity, path, search->remarks, &changed);
	// The file is gone or another one now: one with the same build-id may be somewhere.
	if (!file->main && is_real_path(path))
		file->main = debugfile_find_main(search, path, identity->build_id,
						 identity->build_id_length);
	if (!file->main || !file->main->dwarf)
		file->debug = debugfile_find(search, path, file->main, identity->build_id,
					     identity->build_id_length);
	if (changed && !file->main && !file->debug)
		remarks_add(search->remarks, REMARKS_CHANGED, path);
	mem_free(path);
}

static void gather_symbols(struct symbols_file *file, struct remarks *remarks)
{
	size_t count = 0;
	struct err err;

	if (file->main)
		count += symtab_add(&file->symtab, file->main, SHT_SYMTAB);
	if (file->debug)
		count += symtab_add(&file->symtab, file->debug, SHT_SYMTAB);
	// A whole table has the exported symbols too; only a file without one needs the rest.
	if (count == 0 && file->main) {
		file->exports_only = true;
		symtab_add(&file->symtab, file->main, SHT_DYNSYM);
		file->minidebug = minidebug_open(file->main, &err);
		file->exports_only = !file->minidebug;
		if (file->minidebug)
			symtab_add(&file->symtab, file->minidebug, SHT_SYMTAB);
		// No .gnu_debugdata at all is no error; one that cannot be unpacked is said.
		else if (err.kind != ERR_NONE)
			remarks_add(remarks, "%s", err.text);
		file->gopcln = gopcln_open(file->main);
	}
	symtab_build(&file->symtab);
}

// Debug information that is there and not read.
static void say_trouble(const struct object *object, struct remarks *remarks)
{
	if (object && object->trouble)
		remarks_add(remarks, "%s: debug information is not used: %s", object->path,
			    object->trouble);
}

static char *build_id_path(const struct symbols_file_identity *identity, const char *ending)
{
	struct str path = { 0 };

	ASSERT(identity->build_id_length >= 2);
	// For example .build-id/ab/cdef0123….debug: the first byte is a folder, as stores have it.
	str_format(&path, ".build-id/%02x/", identity->build_id[0]);
	str_add_hex(&path, identity->build_id + 1, identity->build_id_length - 1u);
	str_add(&path, ending);
	return str_take(&path);
}

// What a store of files by build-id would have of it.
static void note_missing(struct symbols_file *file, const struct symbols_file_identity *identity)
{
	// Without a build-id nothing can be asked for.
	if (identity->build_id_length < 2 || !is_real_path(identity->path))
		return;
	if (!file->main)
		file->missing_main = build_id_path(identity, "");
	if (!file->debuginfo)
		file->missing_debug = build_id_path(identity, ".debug");
}

struct symbols_file *symbols_file_open(const struct symbols_file_identity *identity,
				       const struct search *search)
{
	struct symbols_file *file = mem_alloc(1, sizeof *file);
	struct object *object;

	if (str_is_windows_path(identity->path)) {
		file->pe = pe_file_open(identity, search);
		return file;
	}
	open_files(file, identity, search);
	gather_symbols(file, search->remarks);
	// The separate file is preferred: where there is one, the main file was stripped.
	object = file->debug && file->debug->dwarf ? file->debug : file->main;
	if (object && object->dwarf) {
		file->shared = debugfile_find_shared(search, object);
		if (file->shared && file->shared->dwarf)
			// What dwz moved into a file that several debug files share.
			dwarf_setalt(object->dwarf, file->shared->dwarf);
		file->debuginfo = debuginfo_new(object, object->code_start, object->code_end,
						search->remarks);
	}
	say_trouble(file->main, search->remarks);
	say_trouble(file->debug, search->remarks);
	say_trouble(file->shared, search->remarks);
	note_missing(file, identity);
	return file;
}

void symbols_file_close(struct symbols_file *file)
{
	if (!file)
		return;
	// Readers before the objects that they borrow from, and `shared` after what refers to it.
	pe_file_close(file->pe);
	debuginfo_free(file->debuginfo);
	gopcln_close(file->gopcln);
	symtab_fini(&file->symtab);
	object_close(file->minidebug);
	object_close(file->debug);
	object_close(file->main);
	object_close(file->shared);
	MEM_FREE(file->missing_main, file->missing_debug, file);
}

// Is `symbol` only a part that the compiler split off `name`, such as main.cold?
static bool is_part_of(const char *symbol, const char *name)
{
	size_t length = strlen(name);

	return strncmp(symbol, name, length) == 0 && symbol[length] == '.';
}

// An inlined function by the symbol of its own code. What the compiler made for some calls alone
// ("f.constprop.0") is named so, and is not what was inlined.
static void name_by_copy(const struct symbols_file *file, struct place *place)
{
	const char *source, *name = symtab_find(&file->symtab, place->copy, &source);

	ASSERT(place->copy > 0);
	if (!name || strchr(name, '.'))
		return;
	place->function = name;
	place->plain = place->bare = false;
}

void symbols_file_find(struct symbols_file *file, uint64_t offset, struct places *places)
{
	struct place *outer;
	const char *name, *source;

	ASSERT(places->count == 0);
	if (file->pe) {
		pe_file_find(file->pe, offset, places);
		return;
	}
	// One place at least, with no name yet.
	if (!file->debuginfo || !debuginfo_find(file->debuginfo, offset, places))
		places_add(places);
	for (size_t i = 0; i < places->count; i++)
		if (places->items[i].copy > 0)
			name_by_copy(file, &places->items[i]);
	// Symbols name functions that have code of their own, so the outermost one.
	outer = &places->items[places->count - 1];
	// `plain`: the DWARF names it as C does, without types; the symbol of a C++ function has
	// them.
	if (outer->function && !outer->plain)
		return;
	if (file->gopcln && !outer->function && gopcln_find(file->gopcln, offset, outer))
		return;
	name = symtab_find(&file->symtab, offset, &source);
	if (!name || (outer->function && is_part_of(name, outer->function)))
		return;
	outer->function = name;
	outer->bare = false;
	if (!outer->file)
		outer->file = source;
}

void symbols_file_status(const struct symbols_file *file, struct symbols_status *status)
{
	if (file->pe) {
		pe_file_status(file->pe, status);
		return;
	}
	*status = (struct symbols_status){
		.file = file->main ? file->main->path : NULL,
		.debug = file->debug ? file->debug->path : NULL,
		.missing_file = file->missing_main,
		.missing_debug = file->missing_debug,
	};
	if (file->debuginfo)
		status->names = "dwarf";
	else if (file->gopcln)
		status->names = "go";
	else if (file->symtab.count > 0)
		status->names = file->exports_only ? "exports" : "symtab";
}
