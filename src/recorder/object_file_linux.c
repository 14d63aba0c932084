// Where the names of functions are looked for that an object does not export: in its own .symtab,
// if that has local functions; else in a debug file, by its build-id; and where none is there by
// that, in the one that .gnu_debuglink names, beside the object, in .debug, or below
// /usr/lib/debug.
//
// For example, an object with the build-id 8f0a61… is looked for at
// /usr/lib/debug/.build-id/8f/0a61….debug. A file found by .gnu_debuglink must prove that it
// belongs: by an equal build-id where both have one, or by the checksum of all its bytes, which is
// the reason why one of more than 64 MiB is not taken by that alone.
#include "recorder/object_file_linux.h"

#include "recorder/kernel.h"
#include "recorder/scope_linux.h"
#include "recorder/text.h"

enum {
	OBJECT_PATH_MAX = 512,
	OBJECT_O_CLOEXEC = 0x80000,
	OBJECT_SEEK_END = 2,
	OBJECT_NAME_MAX = 32,
	OBJECT_FUNCTION = 2, // STT_FUNC
	OBJECT_PROGBITS = 1, // of sections
	OBJECT_NOTE = 7,
	OBJECT_LINK_LAST = 8,  // so many sections are looked at for .gnu_debuglink, the last
	OBJECT_LINK_MAX = 200, // of its name
	OBJECT_CHECKED_MAX = 64 << 20, // bytes of a debug file that is known by its checksum alone
};

// ---- The file -----------------------------------------------------------------------------------

bool object_file_read(const struct object_file *file, uint64_t at, void *out, size_t bytes)
{
#ifdef __x86_64__
	return kernel(__NR_pread64, file->fd, out, bytes, at) == (long)bytes;
#else
	return kernel(__NR_pread64, file->fd, out, bytes, (uint32_t)at, (uint32_t)(at >> 32)) ==
	       (long)bytes;
#endif
}

// `loaded` NULL: any file of our class.
//
// The header that was mapped and that of the file have to be the same 64 bytes (52 in 32 bits): a
// library that was replaced on disk since it was loaded has other symbols.
static bool object_file_open_path(struct object_file *file, const char *path,
				  const struct elf_header *loaded)
{
	long fd = kernel(__NR_openat, KERNEL_AT_FDCWD, path, OBJECT_O_CLOEXEC, 0), bytes;

	if (kernel_failed(fd))
		return false;
	*file = (struct object_file){ .fd = (int)fd, .first = UINT32_MAX };
	bytes = kernel(__NR_lseek, fd, 0, OBJECT_SEEK_END);
	file->bytes = kernel_failed(bytes) ? 0 : (unsigned long)bytes;
	if (object_file_read(file, 0, &file->elf, sizeof(file->elf)) &&
	    memcmp(file->elf.identity, "\177ELF", 4) == 0 &&
	    file->elf.identity[4] == (sizeof(void *) == 8 ? 2 : 1) &&
	    file->elf.section_size == sizeof(file->names) &&
	    (!loaded || memcmp(&file->elf, loaded, sizeof(file->elf)) == 0) &&
	    object_file_read(file,
			     file->elf.section_at +
				     (uint64_t)file->elf.section_names * sizeof(file->names),
			     &file->names, sizeof(file->names)))
		return true;
	kernel(__NR_close, fd);
	return false;
}

// The executable by /proc/self/exe, which is the file that runs even if its name was given to
// another since. False: the object has no file that can be read.
bool object_file_open(struct object_file *file, const struct scope_object *object)
{
	uintptr_t start, end;
	const struct elf_header *loaded;

	if (!scope_span(object, &start, &end))
		return false;
	loaded = (const void *)(start & ~(uintptr_t)(KERNEL_PAGE - 1));
	if (memcmp(loaded->identity, "\177ELF", 4) != 0)
		return false;
	if (object == scope_objects() && object_file_open_path(file, "/proc/self/exe", loaded))
		return true;
	return object->name[0] && object_file_open_path(file, object->name, loaded);
}

void object_file_close(struct object_file *file)
{
	kernel(__NR_close, file->fd);
}

// Section headers are read so many at once, since a large file has thousands. NULL: there is none
// with this number, or it cannot be read; then the file has none from here on.
const struct elf_section *object_file_section(struct object_file *file, uint32_t number)
{
	uint32_t first = number - number % OBJECT_FILE_AT_ONCE, count = file->elf.section_count;

	if (number >= count)
		return NULL;
	if (file->first != first) {
		uint32_t left = count - first;
		size_t bytes = (left < OBJECT_FILE_AT_ONCE ? left : OBJECT_FILE_AT_ONCE) *
			       sizeof(struct elf_section);

		file->first = first;
		if (!object_file_read(file,
				      file->elf.section_at +
					      (uint64_t)first * sizeof(struct elf_section),
				      file->sections, bytes)) {
			file->elf.section_count = 0;
			return NULL;
		}
	}
	return &file->sections[number - first];
}

bool object_file_is_named(const struct object_file *file, const struct elf_section *section,
			  const char *name)
{
	size_t bytes = text_length(name) + 1;
	char called[OBJECT_NAME_MAX];

	return bytes <= sizeof(called) &&
	       object_file_read(file, (uint64_t)file->names.offset + section->name, called,
				bytes) &&
	       memcmp(called, name, bytes) == 0;
}

// ---- Its symbol table ---------------------------------------------------------------------------

// A section mapped from its page on. NULL: it is empty, does not lie within the file, or cannot be
// mapped. `which` is where it is noted, for object_file_forget.
static const void *object_file_map(const struct object_file *file,
				   const struct elf_section *section,
				   struct object_symbols *symbols, int which)
{
	uint64_t before = section->offset % KERNEL_PAGE, at = section->offset - before;
	size_t bytes = section->size + (size_t)before;
	long pages;

	if (!section->size || section->size > file->bytes ||
	    section->offset > file->bytes - section->size || at > UINT32_MAX)
		return NULL;
	pages = kernel_map(0, bytes, KERNEL_PROT_READ, KERNEL_MAP_PRIVATE, file->fd, (uint32_t)at);
	if (kernel_failed(pages))
		return NULL;
	symbols->pages[which] = (void *)pages;
	symbols->pages_bytes[which] = bytes;
	return (const uint8_t *)pages + before;
}

void object_file_forget(struct object_symbols *symbols)
{
	for (int i = 0; i < 2; i++) {
		if (symbols->pages[i])
			kernel(__NR_munmap, symbols->pages[i], symbols->pages_bytes[i]);
		symbols->pages[i] = NULL;
	}
}

// What is stripped may have a table all the same, of what is exported.
static bool object_file_names_own(const struct object_symbols *symbols)
{
	for (size_t i = 1; i < symbols->count; i++) {
		const struct elf_symbol *symbol = &symbols->symbols[i];

		if ((symbol->info & 0xf) == OBJECT_FUNCTION && symbol->info >> 4 == 0 &&
		    symbol->value)
			return true;
	}
	return false;
}

// The last byte of the names has to be 0, so that a name is never read past its end whatever its
// offset says.
static bool object_file_map_symbols(struct object_file *file, struct object_symbols *symbols)
{
	enum { SYMBOLS = 2, STRINGS = 3 };
	const struct elf_section *section;
	uint32_t strings = 0;

	*symbols = (struct object_symbols){ 0 };
	for (uint32_t i = 1; !strings && (section = object_file_section(file, i)); i++) {
		if (section->type != SYMBOLS || section->entry_size != sizeof(struct elf_symbol))
			continue;
		symbols->count = section->size / sizeof(struct elf_symbol);
		symbols->symbols = object_file_map(file, section, symbols, 0);
		strings = section->link;
	}
	section = symbols->symbols ? object_file_section(file, strings) : NULL;
	if (section && section->type == STRINGS) {
		symbols->names_bytes = section->size;
		symbols->names = object_file_map(file, section, symbols, 1);
	}
	if (symbols->names && !symbols->names[symbols->names_bytes - 1] &&
	    object_file_names_own(symbols))
		return true;
	object_file_forget(symbols);
	return false;
}

static const uint8_t *object_file_build_id(const struct scope_object *object, uint32_t *length)
{
	uint16_t count = 0;
	const struct elf_program *program = scope_programs(object, &count);
	const uint8_t *id = NULL;

	for (uint16_t i = 0; program && i < count && !id; i++) {
		if (program[i].type == ELF_NOTE)
			id = scope_build_id(object->bias, &program[i], length);
	}
	return id;
}

// /usr/lib/debug/.build-id/xx/yyyy.debug. Where there are no such files none is looked for.
static bool object_file_debug_path(const struct scope_object *object, char path[OBJECT_PATH_MAX])
{
	static const char folder[] = "/usr/lib/debug/.build-id", digits[] = "0123456789abcdef";
	static int exists; // 1 yes, -1 no
	const uint8_t *id;
	uint32_t length = 0;
	char *at = path;

	if (!exists)
		exists = kernel_failed(kernel(__NR_access, folder, 0)) ? -1 : 1;
	id = exists > 0 ? object_file_build_id(object, &length) : NULL;
	if (!id || length < 2)
		return false;
	memcpy(at, folder, sizeof(folder));
	at += sizeof(folder) - 1;
	for (uint32_t i = 0; i < length; i++) {
		if (i < 2)
			*at++ = '/';
		*at++ = digits[id[i] >> 4];
		*at++ = digits[id[i] & 15];
	}
	memcpy(at, ".debug", sizeof(".debug"));
	return true;
}

// What .gnu_debuglink says: the debug file's name, and its checksum.
struct object_file_link {
	char name[OBJECT_LINK_MAX + 8];
	uint32_t crc;
};

// The section is the file's name, filled up with zeros to four bytes, and a checksum of four. It is
// at the end of a file that was stripped with it, so only the last eight sections are looked at. A
// name with a slash would lead out of the folders.
static bool object_file_read_link(struct object_file *file, struct object_file_link *link)
{
	uint32_t count = file->elf.section_count, last = count;

	for (; last > 1 && count - last < OBJECT_LINK_LAST; last--) {
		const struct elf_section *section = object_file_section(file, last - 1);
		uint64_t size, length;

		if (!section)
			return false;
		size = section->size;
		if (section->type != OBJECT_PROGBITS || section->flags || size < 8 ||
		    size > sizeof(link->name) ||
		    !object_file_is_named(file, section, ".gnu_debuglink"))
			continue;
		if (!object_file_read(file, section->offset, link->name, (size_t)size))
			return false;
		memcpy(&link->crc, link->name + size - 4, 4);
		link->name[size - 4] = 0;
		length = text_length(link->name);
		for (size_t i = 0; i < length; i++) {
			if (link->name[i] == '/')
				return false;
		}
		return length > 0;
	}
	return false;
}

// The checksum of a whole file, as .gnu_debuglink has it.
//
// CRC-32 with the reversed polynomial 0xedb88320, as zlib and gdb compute it: of "123456789" it is
// 0xcbf43926. The table is made each time, as a debug file is looked for once per object.
static bool object_file_crc(const struct object_file *file, uint32_t *crc)
{
	uint32_t table[256], value = UINT32_MAX;
	uint8_t bytes[1024];

	if (file->bytes > OBJECT_CHECKED_MAX)
		return false;
	for (uint32_t i = 0; i < 256; i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320u : 0);
	}
	for (uint64_t at = 0; at < file->bytes; at += sizeof(bytes)) {
		uint64_t left = file->bytes - at;
		size_t now = left < sizeof(bytes) ? (size_t)left : sizeof(bytes);

		if (!object_file_read(file, at, bytes, now))
			return false;
		for (size_t i = 0; i < now; i++)
			value = table[(value ^ bytes[i]) & 255] ^ value >> 8;
	}
	*crc = ~value;
	return true;
}

// Whether a debug file has that build-id. `*any`: it has one.
static bool object_file_has_id(struct object_file *file, const uint8_t *id, uint32_t length,
			       bool *any)
{
	uint8_t note[16 + 32];
	const struct elf_section *section;

	*any = false;
	for (uint32_t i = 1; (section = object_file_section(file, i)); i++) {
		struct elf_program seen = { 0 };
		const uint8_t *found;
		uint32_t bytes = 0;

		if (section->type != OBJECT_NOTE || section->size > sizeof(note) ||
		    !object_file_read(file, section->offset, note, (size_t)section->size))
			continue;
		seen.memory_size = section->size;
		found = scope_build_id((uintptr_t)note, &seen, &bytes);
		if (!found)
			continue;
		*any = true;
		return bytes == length && memcmp(found, id, length) == 0;
	}
	return false;
}

// By its build-id where both have one, as elsewhere; else by its checksum.
static bool object_file_belongs(struct object_file *file, const struct scope_object *object,
				uint32_t crc)
{
	uint32_t length = 0, own;
	const uint8_t *id = object_file_build_id(object, &length);
	bool any, same = object_file_has_id(file, id, length, &any);

	if (id && any)
		return same;
	return object_file_crc(file, &own) && own == crc;
}

// Where the object's file is: its folder, with the last slash. 0: it is not known.
//
// No NUL is at its end: the length is what is returned.
static size_t object_file_folder(const struct scope_object *object, char path[OBJECT_PATH_MAX])
{
	size_t length = text_length(object->name);
	long got;

	if (object->name[0] && length < OBJECT_PATH_MAX) {
		memcpy(path, object->name, length);
	} else {
		got = kernel(__NR_readlink, "/proc/self/exe", path, OBJECT_PATH_MAX);
		length = kernel_failed(got) || got >= OBJECT_PATH_MAX ? 0 : (size_t)got;
	}
	while (length && path[length - 1] != '/')
		length--;
	return length;
}

// As debuggers do: FOLDER/NAME, FOLDER/.debug/NAME, /usr/lib/debug/FOLDER/NAME.
static bool object_file_open_link(struct object_file *file, const struct scope_object *object,
				  const struct object_file_link *link)
{
	static const char *const before[] = { "", "", "/usr/lib/debug" };
	static const char *const between[] = { "", ".debug/", "" };
	char folder[OBJECT_PATH_MAX], path[OBJECT_PATH_MAX];
	size_t length = object_file_folder(object, folder);

	for (size_t i = 0; length && i < sizeof(before) / sizeof(*before); i++) {
		const char *parts[] = { before[i], folder, between[i], link->name };
		size_t used = 0;

		for (size_t part = 0; part < sizeof(parts) / sizeof(*parts); part++) {
			size_t bytes = part == 1 ? length : text_length(parts[part]);

			if (used + bytes >= sizeof(path))
				return false;
			memcpy(path + used, parts[part], bytes);
			used += bytes;
		}
		path[used] = 0;
		if (!object_file_open_path(file, path, NULL))
			continue;
		if (object_file_belongs(file, object, link->crc))
			return true;
		object_file_close(file);
	}
	return false;
}

// The name of the link is read while the object's own file is open, though a file by build-id is
// looked for first.
bool object_file_symbols(const struct scope_object *object, struct object_symbols *symbols,
			 bool *stripped)
{
	struct object_file file;
	struct object_file_link link;
	char path[OBJECT_PATH_MAX];
	bool found, linked;

	*stripped = false;
	if (!object_file_open(&file, object))
		return false;
	found = object_file_map_symbols(&file, symbols);
	linked = !found && object_file_read_link(&file, &link);
	object_file_close(&file);
	*stripped = !found;
	if (found ||
	    !((object_file_debug_path(object, path) && object_file_open_path(&file, path, NULL)) ||
	      (linked && object_file_open_link(&file, object, &link))))
		return found;
	found = object_file_map_symbols(&file, symbols);
	symbols->debug = found;
	*stripped = !found;
	object_file_close(&file);
	return found;
}
