// The kernel's list of mappings has several lines for a file, one for each segment: they are one
// object. For example, of one inode:
//
//     7f00-7f26 r--p 00000000     it begins
//     7f26-80a0 r-xp 00026000     its code
//     80a0-80f6 r--p 001a0000     it ends at 80f6
//
// A function is found as the dynamic linker does it: the dynamic section has the tables of
// symbols, names and hashes, and the GNU hash of the name says in which chain it is. All of that
// is read from the process, in steps that are bounded, and a table that leads elsewhere leads to
// nothing.
#include "launch/objects_linux.h"

#include "base/mem.h"
#include "launch/narrow_linux.h"
#include "launch/tracee_linux.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	OBJECTS_PROGRAMS_MAX = 64,
	OBJECTS_DYNAMIC_MAX = 512,
	OBJECTS_CHAIN_MAX = 4096,
	OBJECTS_FUNCTION_BYTES = 64, // of `syscall`; of musl's at least twice as many
	OBJECTS_VDSO_BYTES = 4 * 4096,
	OBJECTS_VARIABLES_MAX = 64 << 20,
	OBJECTS_LINKED_MAX = 1 << 16, // in a namespace
};

// The text is kept: where variables are is looked up in it later (objects_find_variables).
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
	// The kernel gives whole lines, a page of them at a time. A list that changes while it is
	// read may name a mapping twice or not at all, so the process is stopped by who needs it
	// exact.
	while (got > 0) {
		objects->text = mem_grow(objects->text, &room, objects->text_size + (64 << 10), 1);
		got = read(fd, objects->text + objects->text_size, 64 << 10);
		objects->text_size += got > 0 ? (size_t)got : 0;
	}
	close(fd);
	ASSERT(objects->text_size <= room);
	return got == 0;
}

static void objects_add_code(struct objects_one *object, const struct maps_line *line)
{
	if (!(line->protection & PROT_EXEC))
		return;
	if (!object->code_end)
		object->code_start = line->start;
	object->code_end = line->end;
}

// A line with offset 0 begins an object, lines of the same file with another offset belong to the
// one before. Lines without a file end nothing: the zeros of a library (.bss) are such, and may be
// between two of its lines. A file of which only a part from further in is mapped is no object.
static void objects_add(struct objects *objects, const struct maps_line *line)
{
	struct objects_one *last = objects->count ? &objects->list[objects->count - 1] : NULL;

	if (line->path_length == 6 && memcmp(line->path, "[vdso]", 6) == 0) {
		objects->vdso_start = line->start;
		objects->vdso_end = line->end;
	}
	if (last && line->inode == last->inode && line->device == last->device && line->inode &&
	    line->offset > 0) {
		last->end = line->end;
		objects_add_code(last, line);
		return;
	}
	// Memory without a file, or a file's later part by itself.
	if (!line->inode || line->offset > 0)
		return;
	*MEM_ADD(objects->list, objects->count, objects->capacity) = (struct objects_one){
		.path = mem_copy_bytes(line->path, line->path_length),
		.device = line->device,
		.inode = line->inode,
		.start = line->start,
		.end = line->end,
	};
	objects_add_code(&objects->list[objects->count - 1], line);
}

// By the first of its files: all are of one class.
static bool objects_are_narrow(const struct objects *objects)
{
	unsigned char head[EI_NIDENT];

	for (size_t i = 0; i < objects->count; i++)
		if (tracee_read(objects->pid, objects->list[i].start, head, sizeof(head)) &&
		    memcmp(head, ELFMAG, SELFMAG) == 0)
			return head[EI_CLASS] == ELFCLASS32;
	return false;
}

// Where an object's program headers are, and how many. False: it is not of the process's class.
static bool objects_head(const struct objects *objects, uint64_t start, uint64_t *at, int *count)
{
	union {
		unsigned char ident[EI_NIDENT];
		Elf64_Ehdr wide;
		Elf32_Ehdr narrow;
	} elf;

	if (!tracee_read(objects->pid, start, &elf, sizeof(elf)) ||
	    memcmp(elf.ident, ELFMAG, SELFMAG) != 0 ||
	    elf.ident[EI_CLASS] != (objects->narrow ? ELFCLASS32 : ELFCLASS64))
		return false;
	*at = start + (objects->narrow ? elf.narrow.e_phoff : elf.wide.e_phoff);
	*count = objects->narrow ? elf.narrow.e_phnum : elf.wide.e_phnum;
	return *count <= OBJECTS_PROGRAMS_MAX;
}

// By the file's number alone: on some file systems (btrfs, overlays) stat and the list of mappings
// name different devices.
const struct objects_one *objects_program(const struct objects *objects)
{
	struct stat status;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)objects->pid);
	if (stat(path, &status) != 0)
		return NULL;
	for (size_t i = 0; i < objects->count; i++)
		if (objects->list[i].inode == status.st_ino)
			return &objects->list[i];
	return NULL;
}

// Whether the kernel has started no dynamic linker for it.
static bool objects_are_alone(const struct objects *objects)
{
	const struct objects_one *program = objects_program(objects);
	Elf64_Phdr header;
	uint64_t at;
	int count;

	if (!program || objects->narrow || objects_is_linker(program) ||
	    !objects_head(objects, program->start, &at, &count))
		return false;
	// PT_INTERP names the dynamic linker; what cannot be read counts as one that has.
	for (int i = 0; i < count; i++, at += sizeof(header))
		if (!tracee_read(objects->pid, at, &header, sizeof(header)) ||
		    header.p_type == PT_INTERP)
			return false;
	return true;
}

void objects_fini(struct objects *objects)
{
	for (size_t i = 0; i < objects->count; i++) {
		MEM_FREE(objects->list[i].path, objects->list[i].inside);
	}
	MEM_FREE(objects->list, objects->text);
	*objects = (struct objects){ 0 };
}

// What finding a function needs of an object, as addresses.
struct objects_tables {
	uint64_t bias, symbols, strings, hash;
	uint64_t debug; // what its linker tells debuggers (r_debug); of a program
};

// Entries of a tag and a value. The dynamic linker of glibc makes addresses of the values where the
// section may be written; musl's leaves them as they are in the file.
static bool objects_dynamic(const struct objects *objects, uint64_t at,
			    struct objects_tables *tables)
{
	uint64_t entry[2], debug; // tag and value

	for (int i = 0; i < OBJECTS_DYNAMIC_MAX; i++, at += 2 * narrow_bytes(objects->narrow)) {
		if (tracee_words(objects->pid, at, objects->narrow, entry, 2) < 2 || !entry[0])
			break;
		debug = entry[1];
		// For example a symbol table at 0x2f8 of a library that is at 0x7f0000000000: 0x2f8
		// is musl's, and is below the bias; glibc has 0x7f00000002f8 there.
		if (entry[1] < tables->bias) // its linker has not made it an address
			entry[1] += tables->bias;
		if (entry[0] == DT_SYMTAB)
			tables->symbols = entry[1];
		else if (entry[0] == DT_STRTAB)
			tables->strings = entry[1];
		else if (entry[0] == DT_GNU_HASH)
			tables->hash = entry[1];
		else if (entry[0] == DT_DEBUG)
			tables->debug = debug;
	}
	return tables->symbols && tables->strings && tables->hash;
}

// The bias is where the first loaded segment is, less where its file wants it: for a library all of
// its address, for a program that is linked to 0x400000 and is there 0.
static bool objects_find_tables(const struct objects *objects, const struct objects_one *object,
				struct objects_tables *tables)
{
	union {
		Elf64_Phdr wide[OBJECTS_PROGRAMS_MAX];
		Elf32_Phdr narrow[OBJECTS_PROGRAMS_MAX];
	} programs;
	bool narrow = objects->narrow, loaded = false, found = false;
	uint64_t at, dynamic = 0;
	int count;

	*tables = (struct objects_tables){ 0 };
	if (!objects_head(objects, object->start, &at, &count) ||
	    !tracee_read(objects->pid, at, &programs,
			 (unsigned)count * (narrow ? sizeof(Elf32_Phdr) : sizeof(Elf64_Phdr))))
		return false;
	for (int i = 0; i < count; i++) {
		uint32_t type = narrow ? programs.narrow[i].p_type : programs.wide[i].p_type;
		uint64_t address = narrow ? programs.narrow[i].p_vaddr : programs.wide[i].p_vaddr;

		if (type == PT_LOAD && !loaded)
			// Segments are mapped by pages of 4 KiB; the file's own address of the
			// first may be within one.
			tables->bias = object->start - (address & ~(uint64_t)4095);
		loaded |= type == PT_LOAD;
		if (type == PT_DYNAMIC) {
			dynamic = address;
			found = true;
		}
	}
	return loaded && found && objects_dynamic(objects, tables->bias + dynamic, tables);
}

// Which objects are on the linker's list of the program's namespace. Where the program does not say
// where that is, all are.
// dlmopen gives a library a second copy of libc. Its functions are not those that the program
// calls, so a name is looked for in the first namespace alone.
static void objects_tell_apart(struct objects *objects)
{
	const struct objects_one *program = objects_program(objects);
	uint64_t link[4] = { 0 }; // where it is loaded, its name, its dynamic section, the next one
	uint64_t at[2] = { 0 };   // the version of the list, and the first
	struct objects_tables tables = { 0 };
	bool *near;

	ASSERT(objects->count == 0 || objects->list != NULL);
	if (program)
		// r_debug: a version, then the head of the list, as two words of the process's
		// size.
		objects_find_tables(objects, program, &tables);
	if (!tables.debug || tracee_words(objects->pid, tables.debug, objects->narrow, at, 2) < 2 ||
	    !at[1])
		return;
	near = mem_alloc(objects->count, sizeof(*near));
	for (int n = 0; at[1] && n < OBJECTS_LINKED_MAX; n++, at[1] = link[3]) {
		if (tracee_words(objects->pid, at[1], objects->narrow, link, 4) < 4)
			break;
		for (size_t i = 0; i < objects->count; i++)
			near[i] |= link[2] >= objects->list[i].start &&
				   link[2] < objects->list[i].end;
	}
	for (size_t i = 0; i < objects->count; i++)
		objects->list[i].apart = !near[i];
	mem_free(near);
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
	// The class first: what is read after that has words of its size.
	objects->narrow = objects_are_narrow(objects);
	objects->alone = objects_are_alone(objects);
	objects_tell_apart(objects);
	return true;
}

uint64_t objects_bias(const struct objects *objects, const struct objects_one *object)
{
	struct objects_tables tables;

	objects_find_tables(objects, object, &tables);
	return tables.bias;
}

// The symbol of a 32-bit process has the same fields in another order.
static bool objects_read_symbol(const struct objects *objects, uint64_t table, uint32_t index,
				Elf64_Sym *symbol)
{
	Elf32_Sym narrow;

	if (!objects->narrow)
		return tracee_read(objects->pid, table + (uint64_t)index * sizeof(*symbol), symbol,
				   sizeof(*symbol));
	if (!tracee_read(objects->pid, table + (uint64_t)index * sizeof(narrow), &narrow,
			 sizeof(narrow)))
		return false;
	*symbol = (Elf64_Sym){
		.st_name = narrow.st_name,
		.st_info = narrow.st_info,
		.st_shndx = narrow.st_shndx,
		.st_value = narrow.st_value,
		.st_size = narrow.st_size,
	};
	return true;
}

// Whether this symbol is the function of that name. *address and *size are set then.
static bool objects_is(const struct objects *objects, const struct objects_tables *tables,
		       uint32_t index, const char *name, uint64_t *address, uint64_t *size)
{
	size_t length = strlen(name) + 1;
	char found[64];
	Elf64_Sym symbol;

	if (length > sizeof(found) ||
	    !objects_read_symbol(objects, tables->symbols, index, &symbol) || !symbol.st_shndx ||
	    !symbol.st_value || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC ||
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
	// GNU's hash (djb2): for "free" it is 0x7c96f087. The bucket has the number of the first
	// symbol, and a word for each symbol from there on its hash, with the lowest bit set at the
	// chain's end.
	for (const char *at = name; *at; at++)
		hash = hash * 33 + (uint8_t)*at;
	// After four numbers come the filter's words, the buckets, and then the chains.
	chain = tables.hash + sizeof(head) + head[2] * narrow_bytes(objects->narrow);
	if (!tracee_read(objects->pid, chain + 4 * (uint64_t)(hash % head[0]), &index, 4) ||
	    index < head[1])
		return 0;
	chain += 4 * (uint64_t)head[0];
	for (int i = 0; i < OBJECTS_CHAIN_MAX && !(entry & 1); i++, index++) {
		if (!tracee_read(objects->pid, chain + 4 * (uint64_t)(index - head[1]), &entry, 4))
			return 0;
		// The lowest bit is not part of the hash there. Equal hashes are rare, and then the
		// name decides.
		if ((entry | 1) == (hash | 1) &&
		    objects_is(objects, &tables, index, name, &address, size ? size : &length))
			return address;
	}
	return 0;
}

bool objects_has(const struct objects_one *object, const struct maps_line *line)
{
	return line->inode == object->inode && line->device == object->device &&
	       line->start >= object->start && line->start < object->end;
}

bool objects_may_write(const struct maps_line *line)
{
	return (line->protection & PROT_WRITE) && !line->shared;
}

// From where to where they are. *from is *to: there are none.
static void objects_find_variables(const struct objects *objects, const struct objects_one *object,
				   uint64_t *from, uint64_t *to)
{
	const char *at = objects->text, *end = at + objects->text_size;
	struct maps_line line;

	*from = *to = 0;
	while (at < end) {
		// Its own lines, and one without a file that follows them at once: the zeros of
		// .bss.
		if (!maps_text_next(&at, end, &line) || !objects_may_write(&line) ||
		    !(objects_has(object, &line) ||
		      (*to && line.start == *to && !line.path_length)))
			continue;
		*from = *from ? *from : line.start;
		*to = line.end;
	}
}

bool objects_variables(const struct objects *objects, const struct objects_one *object,
		       uint64_t **words, size_t *count)
{
	uint64_t from, to;

	objects_find_variables(objects, object, &from, &to);
	ASSERT(from <= to);
	if (from == to || to - from > OBJECTS_VARIABLES_MAX)
		return false;
	*count = (size_t)(to - from) / sizeof(**words);
	*words = mem_alloc(*count, sizeof(**words));
	return tracee_read(objects->pid, from, *words, *count * sizeof(**words));
}

bool objects_is_variable(const struct objects *objects, const struct objects_one *object,
			 uint64_t address)
{
	uint64_t from, to;

	objects_find_variables(objects, object, &from, &to);
	return address >= from && address < to;
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

bool objects_is_code(const struct objects *objects, uint64_t address)
{
	const struct objects_one *object = objects_at(objects, address);

	return object && address >= object->code_start && address < object->code_end;
}

const struct objects_one *objects_named(const struct objects *objects, const char *beginning)
{
	for (size_t i = 0; i < objects->count; i++) {
		const char *name = strrchr(objects->list[i].path, '/');

		if (name && !objects->list[i].apart &&
		    strncmp(name + 1, beginning, strlen(beginning)) == 0)
			return &objects->list[i];
	}
	return NULL;
}

const struct objects_one *objects_libc(const struct objects *objects)
{
	const struct objects_one *libc = objects->alone ? objects_program(objects)
							: objects_named(objects, "libc.so");

	if (!libc)
		libc = objects_named(objects, "libc-");
	return libc ? libc : objects_named(objects, "ld-musl");
}

bool objects_has_musl(const struct objects *objects)
{
	const struct objects_one *libc = objects->alone ? NULL : objects_libc(objects);
	const char *name = libc ? strrchr(libc->path, '/') : NULL;

	return name && (strcmp(name, "/libc.so") == 0 || objects_is_linker(libc));
}

bool objects_restorers(const struct objects *objects, uint64_t *start, uint64_t *end)
{
	const struct objects_one *libc = objects_libc(objects);
	bool kernels = objects->narrow && objects->vdso_end;

	*start = kernels ? objects->vdso_start : libc ? libc->start : 0;
	*end = kernels ? objects->vdso_end : libc ? libc->end : 0;
	return *end > 0;
}

// The first one in all code of a static program, which may have no function for it.
// Any `syscall` does: also one in the middle of another instruction, as a thread is sent there with
// registers of ours and does this one instruction.
static uint64_t objects_first_call(const struct objects *objects)
{
	const struct objects_one *program = objects_program(objects);
	uint8_t code[4096];

	// By pages: one across the border of two is not seen, and another is found.
	for (uint64_t at = program->code_start; at + sizeof(code) <= program->code_end;
	     at += sizeof(code)) {
		if (!tracee_read(objects->pid, at, code, sizeof(code)))
			return 0;
		for (size_t i = 0; i + 1 < sizeof(code); i++)
			if (code[i] == 0x0f && code[i + 1] == 0x05)
				return at + i;
	}
	return 0;
}

uint64_t objects_gate(const struct objects *objects)
{
	static const uint8_t gates[2][2] = { { 0x0f, 0x05 }, { 0xcd, 0x80 } }; // syscall, int $0x80
	const struct objects_one *libc = objects_libc(objects);
	uint64_t at = objects->vdso_start;
	size_t bytes = (size_t)(objects->vdso_end - at);
	uint8_t code[OBJECTS_VDSO_BYTES];

	if (objects->alone)
		return libc ? objects_first_call(objects) : 0;
	if (!objects->narrow) {
		at = libc ? objects_symbol(objects, libc, "syscall", NULL) : 0;
		bytes = objects_has_musl(objects) ? 2 * OBJECTS_FUNCTION_BYTES
						  : OBJECTS_FUNCTION_BYTES;
	}
	if (!at || bytes > sizeof(code) || !tracee_read(objects->pid, at, code, bytes))
		return 0;
	// As in a static program, these need not be the beginning of an instruction.
	for (size_t i = 0; i + 1 < bytes; i++)
		if (memcmp(code + i, gates[objects->narrow], 2) == 0)
			return at + i;
	return 0;
}
