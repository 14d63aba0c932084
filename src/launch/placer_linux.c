// What a dynamic linker does for a library, done from outside for this one: its segments are
// mapped by a borrowed thread, then relocated and written from here. For example a segment at
// 0x2e10 with 0x200 bytes in the file and 0x3000 in memory:
//
//     mmap the file      [0x2000, 0x3010), whole pages from the one that it begins in
//     mmap nothing       [0x4000, 0x5e10): what is beyond the file's last page is zero
//     the rest of the last page is made zero when the segment is written
//
// The room for all segments is reserved before by one mmap without rights, so that nothing can
// come between.
#include "launch/placer_linux.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PLACER_PAGE = 4096, PLACER_LIBRARY_MAX = 64 << 20 };

bool placer_fail(pid_t pid, const char *what, int64_t number, struct err *err)
{
	if (number < 0)
		return err_errno(err, (int)-number, "process %d: %s", (int)pid, what);
	return err_set(err, ERR_IO, "process %d: %s", (int)pid, what);
}

uint64_t placer_up(uint64_t value, uint64_t align)
{
	ASSERT(align > 0 && (align & (align - 1)) == 0);
	return (value + align - 1) & ~(align - 1);
}

// The kernel does something for us there; a negative errno says that it does not.
static int64_t placer_ask(struct placer *placer, long number, uint64_t a, uint64_t b, uint64_t c,
			  uint64_t d, uint64_t e, uint64_t f)
{
	return tracee_ask(placer->loan, (uint64_t)number, (const uint64_t[]){ a, b, c, d, e, f });
}

uint64_t placer_room(struct placer *placer, size_t size, struct err *err)
{
	int64_t got = placer_ask(placer, SYS_mmap, 0, size, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0);

	if (got > 0 || got <= -PLACER_PAGE)
		return (uint64_t)got;
	placer_fail(placer->pid, "no memory for its headers", got, err);
	return 0;
}

void placer_close(struct placer *placer)
{
	if (placer->library)
		munmap((void *)(uintptr_t)placer->library, placer->library_bytes);
	placer->library = NULL;
}

static const Elf64_Phdr *placer_programs(const struct placer *placer, size_t *count)
{
	const Elf64_Ehdr *elf = (const void *)placer->library;

	ASSERT(elf != NULL); // placer_open was called
	*count = elf->e_phnum;
	return (const void *)(placer->library + elf->e_phoff);
}

// The end of the last segment is the size of all, since they come by address. A library without
// thread-local variables is not ours: the recorder has some.
bool placer_open(struct placer *placer, struct err *err)
{
	int fd = open(placer->path, O_RDONLY | O_CLOEXEC);
	const Elf64_Phdr *programs;
	struct stat status;
	void *pages = MAP_FAILED;
	bool fits = false, known = fd >= 0 && fstat(fd, &status) == 0;
	size_t count;
	int number;

	if (known) {
		fits = status.st_size > (off_t)sizeof(Elf64_Ehdr) &&
		       status.st_size < PLACER_LIBRARY_MAX;
		if (fits)
			pages = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	}
	number = fits || !known ? errno : 0;
	if (fd >= 0)
		close(fd);
	if (pages == MAP_FAILED && number)
		return err_errno(err, number, "cannot read %s", placer->path);
	if (pages == MAP_FAILED)
		return err_set(err, ERR_IO, "%s is not a recorder of this version", placer->path);
	placer->library = pages;
	placer->library_bytes = (size_t)status.st_size;
	programs = placer_programs(placer, &count);
	for (size_t i = 0; i < count; i++) {
		if (programs[i].p_type == PT_TLS)
			placer->tls = &programs[i];
		if (programs[i].p_type == PT_LOAD)
			placer->recorder_bytes = programs[i].p_vaddr + programs[i].p_memsz;
	}
	placer->recorder_bytes = (placer->recorder_bytes + PLACER_PAGE - 1) &
				 ~(uint64_t)(PLACER_PAGE - 1);
	return placer->tls ||
	       err_set(err, ERR_IO, "%s is not a recorder of this version", placer->path);
}

// Its file as the program finds it: elsewhere another one may have that name, or none.
static int64_t placer_open_there(struct placer *placer)
{
	uint64_t at = placer->loan->stack + TRACEE_PARAMETERS_AT;

	if (!tracee_write(placer->pid, at, placer->path, strlen(placer->path) + 1))
		return -EFAULT;
	return placer_ask(placer, SYS_openat, (uint64_t)AT_FDCWD, at, O_RDONLY | O_CLOEXEC, 0, 0,
			  0);
}

static int64_t placer_map_segment(struct placer *placer, const Elf64_Phdr *segment, int64_t fd)
{
	uint64_t start = segment->p_vaddr & ~(uint64_t)(PLACER_PAGE - 1);
	uint64_t end = segment->p_vaddr + segment->p_filesz;
	uint64_t after = segment->p_vaddr + segment->p_memsz;
	uint64_t protection = ((segment->p_flags & PF_R) ? PROT_READ : 0u) |
			      ((segment->p_flags & PF_W) ? PROT_WRITE : 0u) |
			      ((segment->p_flags & PF_X) ? PROT_EXEC : 0u);
	uint64_t more = (end + PLACER_PAGE - 1) & ~(uint64_t)(PLACER_PAGE - 1);
	int64_t got = placer_ask(placer, SYS_mmap, placer->recorder + start, end - start,
				 protection, MAP_PRIVATE | MAP_FIXED, (uint64_t)fd,
				 segment->p_offset & ~(uint64_t)(PLACER_PAGE - 1));

	ASSERT(placer->recorder % PLACER_PAGE == 0 && after <= placer->recorder_bytes);
	if (got >= 0 && after > more)
		got = placer_ask(placer, SYS_mmap, placer->recorder + more, after - more,
				 protection, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, UINT64_MAX,
				 0);
	return got;
}

bool placer_map(struct placer *placer, struct err *err)
{
	const Elf64_Phdr *programs;
	int64_t fd = placer_open_there(placer), got;
	size_t count;

	if (fd < 0)
		return placer_fail(placer->pid, "the recorder is out of its reach", fd, err);
	got = placer_ask(placer, SYS_mmap, 0, placer->recorder_bytes, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0);
	placer->recorder = (uint64_t)got;
	programs = placer_programs(placer, &count);
	for (size_t i = 0; i < count && got >= 0; i++)
		if (programs[i].p_type == PT_LOAD)
			got = placer_map_segment(placer, &programs[i], fd);
	// The program's numbers of descriptors are as before; the mappings need none.
	placer_ask(placer, SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
	return got >= 0 || placer_fail(placer->pid, "the recorder cannot be mapped", got, err);
}

// What a dynamic linker reads of it.
struct placer_tables {
	const Elf64_Sym *symbols;
	const char *strings;
	const Elf64_Rela *parts[2];
	size_t counts[2];
	uint64_t dynamic;
};

// A library's relocations are in two tables: of its variables (DT_RELA), and of functions that it
// calls (DT_JMPREL). Values of the dynamic section are addresses. They are used as places in the
// file, which are the same for what the linker puts before the writable segment, as it does these
// tables.
static struct placer_tables placer_find_tables(const struct placer *placer)
{
	struct placer_tables tables = { 0 };
	const Elf64_Phdr *programs;
	const Elf64_Dyn *entry = NULL;
	size_t count;

	programs = placer_programs(placer, &count);
	for (size_t i = 0; i < count; i++)
		if (programs[i].p_type == PT_DYNAMIC) {
			tables.dynamic = programs[i].p_vaddr;
			entry = (const void *)(placer->library + programs[i].p_offset);
		}
	for (; entry && entry->d_tag != DT_NULL; entry++) {
		const uint8_t *at = placer->library + entry->d_un.d_ptr; // all before its data

		if (entry->d_tag == DT_SYMTAB)
			tables.symbols = (const void *)at;
		else if (entry->d_tag == DT_STRTAB)
			tables.strings = (const void *)at;
		else if (entry->d_tag == DT_RELA)
			tables.parts[0] = (const void *)at;
		else if (entry->d_tag == DT_JMPREL)
			tables.parts[1] = (const void *)at;
		else if (entry->d_tag == DT_RELASZ)
			tables.counts[0] = entry->d_un.d_val / sizeof(Elf64_Rela);
		else if (entry->d_tag == DT_PLTRELSZ)
			tables.counts[1] = entry->d_un.d_val / sizeof(Elf64_Rela);
	}
	return tables;
}

// Where a name is. The recorder is freestanding, and takes two names from others: where the list of
// objects is, and where the stack ends. Both are in the block that is written beside it.
static uint64_t placer_symbol(const struct placer *placer, const struct placer_tables *tables,
			      uint32_t number)
{
	const Elf64_Sym *symbol = &tables->symbols[number];
	const char *name = tables->strings + symbol->st_name;

	if (symbol->st_shndx != SHN_UNDEF)
		return placer->recorder + symbol->st_value;
	if (strcmp(name, "_r_debug") == 0)
		return placer->block + offsetof(struct placer_block, debug);
	if (strcmp(name, "__libc_stack_end") == 0)
		return placer->block + offsetof(struct placer_block, stack_end);
	return 0;
}

// False: of a kind that is not known.
static bool placer_relocate_one(const struct placer *placer, const struct placer_tables *tables,
				const Elf64_Rela *rela, uint64_t *value)
{
	uint64_t addend = (uint64_t)rela->r_addend;
	uint32_t number = (uint32_t)ELF64_R_SYM(rela->r_info);

	switch (ELF64_R_TYPE(rela->r_info)) {
	case R_X86_64_RELATIVE:
		*value = placer->recorder + addend;
		return true;
	case R_X86_64_64:
		addend += placer_symbol(placer, tables, number);
		*value = addend;
		return true;
	case R_X86_64_GLOB_DAT:
	case R_X86_64_JUMP_SLOT:
		*value = placer_symbol(placer, tables, number);
		return true;
	// A variable's distance from the thread pointer: below it, by what the caller has chosen.
	case R_X86_64_TPOFF64:
		*value = (number ? tables->symbols[number].st_value : 0) + addend -
			 placer->thread_offset;
		return true;
	default:
		return false;
	}
}

// The writable part of the recorder, relocated, and zeros to the end of its last page. It is in one
// segment.
static uint8_t *placer_relocate(const struct placer *placer, const struct placer_tables *tables,
				const Elf64_Phdr **segment, struct err *err)
{
	const Elf64_Phdr *programs;
	uint8_t *data;
	size_t count;

	programs = placer_programs(placer, &count);
	for (size_t i = 0; i < count; i++)
		if (programs[i].p_type == PT_LOAD && (programs[i].p_flags & PF_W))
			*segment = &programs[i];
	ASSERT(*segment != NULL && tables->symbols != NULL && tables->strings != NULL);
	data = mem_alloc(1, (*segment)->p_filesz + PLACER_PAGE);
	memcpy(data, placer->library + (*segment)->p_offset, (*segment)->p_filesz);
	for (int part = 0; part < 2; part++)
		for (size_t i = 0; i < tables->counts[part]; i++) {
			const Elf64_Rela *rela = &tables->parts[part][i];
			uint64_t at = rela->r_offset - (*segment)->p_vaddr, value;

			if (at > (*segment)->p_filesz - sizeof(value) ||
			    !placer_relocate_one(placer, tables, rela, &value)) {
				mem_free(data);
				err_set(err, ERR_IO, "%s cannot be relocated", placer->path);
				return NULL;
			}
			memcpy(data + at, &value, sizeof(value));
		}
	return data;
}

static uint64_t placer_find_entry(const struct placer *placer, const struct placer_tables *tables)
{
	// The table of symbols has no length of its own; the strings come right after it in our own
	// library.
	const uint32_t end =
		(uint32_t)((const uint8_t *)tables->strings - (const uint8_t *)tables->symbols) /
		sizeof(Elf64_Sym);

	for (uint32_t i = 1; i < end; i++)
		if (strcmp(tables->strings + tables->symbols[i].st_name, "tidemark_late_v1") == 0)
			return placer->recorder + tables->symbols[i].st_value;
	return 0;
}

// As a dynamic linker's list would be, so that the recorder finds modules in one way: first the
// program, under an empty name, then itself. Both are in the block, and the pointers are addresses
// there, not here.
static void placer_write_list(const struct placer *placer, const struct placer_tables *tables,
			      struct placer_block *block)
{
	uint64_t program = placer->block + offsetof(struct placer_block, program);
	uint64_t recorder = placer->block + offsetof(struct placer_block, recorder);

	block->debug = (struct placer_debug){ .version = 1, .objects = program };
	block->program = (struct placer_object){
		.bias = placer->bias,
		.name = placer->block + offsetof(struct placer_block, empty),
		.next = recorder,
	};
	block->recorder = (struct placer_object){
		.bias = placer->recorder,
		.name = placer->block + offsetof(struct placer_block, path),
		.dynamic = placer->recorder + tables->dynamic,
		.previous = program,
	};
	block->stack_end = placer->stack_end;
	snprintf(block->path, sizeof(block->path), "%s", placer->path);
}

// What its thread-local variables begin as is a part of the writable segment, and is taken from
// there after relocating: there may be addresses in it.
bool placer_write(struct placer *placer, uint8_t *variables, struct err *err)
{
	struct placer_tables tables = placer_find_tables(placer);
	struct placer_block *block = mem_alloc(1, sizeof(*block));
	const Elf64_Phdr *segment = NULL;
	uint8_t *data = placer_relocate(placer, &tables, &segment, err);
	bool relocated = data != NULL, done = relocated;

	ASSERT(placer->block != 0 && placer->recorder != 0);
	placer_write_list(placer, &tables, block);
	placer->entry = placer_find_entry(placer, &tables);
	if (done)
		memcpy(variables, data + (placer->tls->p_vaddr - segment->p_vaddr),
		       placer->tls->p_filesz);
	done = done && tracee_write(placer->pid, placer->block, block, sizeof(*block)) &&
	       tracee_write(placer->pid, placer->recorder + segment->p_vaddr, data,
			    placer_up(segment->p_vaddr + segment->p_filesz, PLACER_PAGE) -
				    segment->p_vaddr);
	MEM_FREE(block, data);
	return done ||
	       (relocated && placer_fail(placer->pid, "its memory cannot be written", 0, err));
}
