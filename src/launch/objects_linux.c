#include "launch/objects_linux.h"

#include "base/mem.h"
#include "collect/maps_text.h"
#include "launch/tracee_linux.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { OBJECTS_PROGRAMS_MAX = 64, OBJECTS_DYNAMIC_MAX = 512, OBJECTS_CHAIN_MAX = 4096 };

static bool objects_slurp(struct objects *objects)
{
	char path[32];
	size_t room = 0;
	ssize_t got = 1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)objects->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	while (got > 0) {
		objects->text = mem_grow(objects->text, &room, objects->text_size + (64 << 10), 1);
		got = read(fd, objects->text + objects->text_size, 64 << 10);
		objects->text_size += got > 0 ? (size_t)got : 0;
	}
	close(fd);
	return got == 0;
}

static void objects_add(struct objects *objects, const struct maps_line *line)
{
	struct objects_one *last = objects->count ? &objects->list[objects->count - 1] : NULL;

	if (last && line->inode == last->inode && line->device == last->device && line->inode &&
	    line->offset > 0) {
		last->end = line->end;
		return;
	}
	if (!line->inode || line->offset > 0)
		return;
	*MEM_ADD(objects->list, objects->count, objects->capacity) = (struct objects_one){
		.path = mem_copy_bytes(line->path, line->path_length),
		.device = line->device,
		.inode = line->inode,
		.start = line->start,
		.end = line->end,
	};
}

bool objects_read(struct objects *objects, pid_t pid)
{
	struct maps_line line;
	const char *at, *end;

	*objects = (struct objects){ .pid = pid };
	if (!objects_slurp(objects))
		return false;
	at = objects->text;
	end = at + objects->text_size;
	while (at < end)
		if (maps_text_next(&at, end, &line))
			objects_add(objects, &line);
	return true;
}

void objects_fini(struct objects *objects)
{
	for (size_t i = 0; i < objects->count; i++)
		mem_free(objects->list[i].path);
	mem_free(objects->list);
	mem_free(objects->text);
	*objects = (struct objects){ 0 };
}

// What finding a function needs of an object, as addresses.
struct objects_tables {
	uint64_t bias, symbols, strings, hash;
};

static bool objects_dynamic(const struct objects *objects, uint64_t at,
			    struct objects_tables *tables)
{
	Elf64_Dyn entry;

	for (int i = 0; i < OBJECTS_DYNAMIC_MAX; i++, at += sizeof(entry)) {
		if (!tracee_read(objects->pid, at, &entry, sizeof(entry)) || !entry.d_tag)
			break;
		if (entry.d_un.d_ptr < tables->bias) // its linker has not made it an address
			entry.d_un.d_ptr += tables->bias;
		if (entry.d_tag == DT_SYMTAB)
			tables->symbols = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_STRTAB)
			tables->strings = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_GNU_HASH)
			tables->hash = entry.d_un.d_ptr;
	}
	return tables->symbols && tables->strings && tables->hash;
}

static bool objects_find_tables(const struct objects *objects, const struct objects_one *object,
				struct objects_tables *tables)
{
	Elf64_Phdr programs[OBJECTS_PROGRAMS_MAX];
	const Elf64_Phdr *dynamic = NULL;
	bool loaded = false;
	Elf64_Ehdr elf;

	*tables = (struct objects_tables){ 0 };
	if (!tracee_read(objects->pid, object->start, &elf, sizeof(elf)) ||
	    memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 || elf.e_ident[EI_CLASS] != ELFCLASS64 ||
	    elf.e_phnum > OBJECTS_PROGRAMS_MAX ||
	    !tracee_read(objects->pid, object->start + elf.e_phoff, programs,
			 elf.e_phnum * sizeof(*programs)))
		return false;
	for (int i = 0; i < elf.e_phnum; i++) {
		if (programs[i].p_type == PT_LOAD && !loaded)
			tables->bias = object->start - (programs[i].p_vaddr & ~(uint64_t)4095);
		loaded |= programs[i].p_type == PT_LOAD;
		if (programs[i].p_type == PT_DYNAMIC)
			dynamic = &programs[i];
	}
	return loaded && dynamic &&
	       objects_dynamic(objects, tables->bias + dynamic->p_vaddr, tables);
}

// Whether this symbol is the function of that name. *address and *size are set then.
static bool objects_is(const struct objects *objects, const struct objects_tables *tables,
		       uint32_t index, const char *name, uint64_t *address, uint64_t *size)
{
	size_t length = strlen(name) + 1;
	char found[64];
	Elf64_Sym symbol;

	if (length > sizeof(found) ||
	    !tracee_read(objects->pid, tables->symbols + (uint64_t)index * sizeof(symbol), &symbol,
			 sizeof(symbol)) ||
	    !symbol.st_shndx || !symbol.st_value || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC ||
	    !tracee_read(objects->pid, tables->strings + symbol.st_name, found, length) ||
	    memcmp(found, name, length) != 0)
		return false;
	*address = tables->bias + symbol.st_value;
	*size = symbol.st_size;
	return true;
}

uint64_t objects_symbol(const struct objects *objects, const struct objects_one *object,
			const char *name, uint64_t *size)
{
	struct objects_tables tables;
	uint32_t head[4], index, entry = 0,
				 hash = 5381; // buckets, first symbol, words of the filter
	uint64_t address, chain, length;

	if (!objects_find_tables(objects, object, &tables) ||
	    !tracee_read(objects->pid, tables.hash, head, sizeof(head)) || head[0] == 0)
		return 0;
	for (const char *at = name; *at; at++)
		hash = hash * 33 + (uint8_t)*at;
	chain = tables.hash + sizeof(head) + (uint64_t)head[2] * 8;
	if (!tracee_read(objects->pid, chain + 4 * (uint64_t)(hash % head[0]), &index, 4) ||
	    index < head[1])
		return 0;
	chain += 4 * (uint64_t)head[0];
	for (int i = 0; i < OBJECTS_CHAIN_MAX && !(entry & 1); i++, index++) {
		if (!tracee_read(objects->pid, chain + 4 * (uint64_t)(index - head[1]), &entry, 4))
			return 0;
		if ((entry | 1) == (hash | 1) &&
		    objects_is(objects, &tables, index, name, &address, size ? size : &length))
			return address;
	}
	return 0;
}

bool objects_is_linker(const struct objects_one *object)
{
	const char *name = strrchr(object->path, '/');

	return name && strncmp(name, "/ld-", 4) == 0;
}

const struct objects_one *objects_at(const struct objects *objects, uint64_t address)
{
	for (size_t i = 0; i < objects->count; i++)
		if (address >= objects->list[i].start && address < objects->list[i].end)
			return &objects->list[i];
	return NULL;
}

const struct objects_one *objects_named(const struct objects *objects, const char *beginning)
{
	for (size_t i = 0; i < objects->count; i++) {
		const char *name = strrchr(objects->list[i].path, '/');

		if (name && strncmp(name + 1, beginning, strlen(beginning)) == 0)
			return &objects->list[i];
	}
	return NULL;
}

const struct objects_one *objects_libc(const struct objects *objects)
{
	const struct objects_one *libc = objects_named(objects, "libc.so");

	return libc ? libc : objects_named(objects, "libc-");
}
