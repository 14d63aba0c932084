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

// /usr/lib/debug/.build-id/xx/yyyy.debug. Where there are no such files nobody looks for one.
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

bool object_file_symbols(const struct scope_object *object, struct object_symbols *symbols,
			 bool *stripped)
{
	struct object_file file;
	char path[OBJECT_PATH_MAX];
	bool found;

	*stripped = false;
	if (!object_file_open(&file, object))
		return false;
	found = object_file_map_symbols(&file, symbols);
	object_file_close(&file);
	*stripped = !found;
	if (found || !object_file_debug_path(object, path) ||
	    !object_file_open_path(&file, path, NULL))
		return found;
	found = object_file_map_symbols(&file, symbols);
	symbols->debug = found;
	*stripped = !found;
	object_file_close(&file);
	return found;
}
