// The code of an allocator inside of a file is a few spans: its functions are found by their
// names, and what is between two of them is its own too, if that is at most a page, since inner
// functions may have no such name. For example je_a at [0x1000, 0x1100) and je_b at [0x1800,
// 0x1900):
//
//     usually                    one span, [0x1000, 0x1900)
//     the entry is at 0x1400     two: what is after it are the program's own functions
//
// A list that is full takes no more functions, so it may say too little and never too much.
#include "launch/loader_file_linux.h"

#include "base/mem.h"
#include "wire/lane_event.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { LOADER_FILE_NOTE_MAX = 4096, LOADER_FILE_GAP = 4096 };

// Whether two functions are of one span. Not where a program begins: what is before that are
// constructors, and behind it are the program's own functions.
static bool loader_file_are_near(const struct loader_file *file, uint64_t end, uint64_t start)
{
	return start <= end || (start - end <= LOADER_FILE_GAP &&
				!(file->header.e_entry >= end && file->header.e_entry < start));
}

// Add a function to the code of an allocator, between whose functions are others of its files that
// have no such name. What is full takes no more.
static void loader_file_add_inside(struct loader_file *file, uint64_t start, uint64_t end)
{
	struct loader_file_span *list = file->inside;
	size_t first = 0, last;

	while (first < file->inside_count && list[first].end < start &&
	       !loader_file_are_near(file, list[first].end, start))
		first++;
	last = first;
	while (last < file->inside_count && loader_file_are_near(file, end, list[last].start)) {
		start = list[last].start < start ? list[last].start : start;
		end = list[last].end > end ? list[last].end : end;
		last++;
	}
	if (first == last && file->inside_count == LOADER_FILE_SPANS_MAX)
		return;
	ASSERT(first <= last && last <= file->inside_count);
	memmove(list + first + 1, list + last, (file->inside_count - last) * sizeof(*list));
	file->inside_count += first + 1 - last;
	ASSERT(file->inside_count <= LOADER_FILE_SPANS_MAX);
	list[first] = (struct loader_file_span){ start, end };
}

// Whether it is a function of glibc's malloc (its files malloc and arena, and the parts that
// compilers split off), between whose functions are few others.
static bool loader_file_is_glibc(const char *name)
{
	static const char *const names[] = {
		"__libc_malloc",
		"__libc_free",
		"__libc_calloc",
		"__libc_realloc",
		"__libc_memalign",
		"_int_malloc",
		"_int_free",
		"_int_realloc",
		"_int_memalign",
		"_mid_memalign",
		"_mid_memalign.isra.0",
		"sysmalloc",
		"systrim",
		"systrim.constprop.0",
		"malloc_consolidate",
		"unlink_chunk",
		"unlink_chunk.isra.0",
		"tcache_init.part.0",
		"ptmalloc_init",
		"ptmalloc_init.part.0",
		"munmap_chunk",
		"arena_get2.part.0",
		"arena_get_retry",
		"new_heap",
		"alloc_new_heap",
		"__posix_memalign",
		"__malloc_arena_thread_freeres",
		"tcache_thread_shutdown",
		"__malloc_usable_size",
		"__malloc_trim",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

// A function of an allocator's: by its name, but for what compilers put elsewhere (x.cold).
static void loader_file_meet_inside(struct loader_file *file, const char *name,
				    const GElf_Sym *symbol)
{
	static const char *const begins[] = { "", "je_", "_rjem_", "_rjem_je_", "mi_", "_mi_" };
	uint64_t at = symbol->st_value;
	bool is = loader_file_is_glibc(name);

	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++) {
		size_t length = strlen(begins[i]);

		if (strncmp(name, begins[i], length) != 0)
			continue;
		// The first beginning is "", which all names have: for mallocx without a prefix
		// only.
		is |= i > 0;
		if (strcmp(name + length, "mallocx") == 0)
			file->mallocx = at;
	}
	if (strcmp(name, "mi_version") == 0)
		file->mi_version = at;
	if (is && !strstr(name, ".cold") && symbol->st_size < INT_MAX && at < INT64_MAX)
		loader_file_add_inside(file, at, at + symbol->st_size);
}

// Functions that are looked for.
static void loader_file_meet(struct loader_file *file, const char *name, const GElf_Sym *symbol)
{
	static const char *const setups[] = { "__libc_setup_tls", "__init_tls", "static_init_tls" };

	for (size_t i = 0; i < sizeof(setups) / sizeof(*setups); i++)
		if (strcmp(name, setups[i]) == 0)
			file->setup = symbol->st_value;
	static const char *const allocators[] = { "tc_malloc", "mi_malloc", "mallocx", "je_mallocx",
						  "arena_malloc_hard" };

	for (size_t i = 0; i < sizeof(allocators) / sizeof(*allocators); i++)
		file->allocator |= strcmp(name, allocators[i]) == 0;
	file->operators |= strcmp(name, "_Znwm") == 0;
	if (strcmp(name, "malloc") == 0)
		file->allocates = symbol->st_value;
	if (strcmp(name, "pthread_create") == 0 || strcmp(name, "__pthread_create_2_1") == 0)
		file->creates = (struct loader_file_span){ symbol->st_value,
							   symbol->st_value + symbol->st_size };
	if (strcmp(name, "runtime.mallocgc") == 0)
		file->go = true;
}

// Variables that are looked for.
static void loader_file_meet_variable(struct loader_file *file, const char *name, uint64_t at)
{
	if (strcmp(name, "_dl_main_map") == 0)
		file->main_map = at;
	else if (strcmp(name, "__rseq_offset") == 0)
		file->sequence = at;
	else if (strcmp(name, "_dl_tls_static_used") == 0)
		file->tls_used = at;
	else if (strcmp(name, "main_arena") == 0)
		file->arena = at;
	else if (strcmp(name, "mp_") == 0)
		file->parameters = at;
}

// A file has hundreds of thousands of symbols, and this is read once for each: comparisons with a
// few names, and nothing kept.
static void loader_file_read_symbols(struct loader_file *file, Elf *elf, Elf_Scn *section,
				     const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t count = header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
	GElf_Sym symbol;

	for (size_t i = 1; data && i < count && i < INT_MAX; i++) {
		const char *name;

		if (!gelf_getsym(data, (int)i, &symbol))
			break;
		if (!symbol.st_shndx || !symbol.st_value)
			continue;
		name = elf_strptr(elf, header->sh_link, symbol.st_name);
		if (name && GELF_ST_TYPE(symbol.st_info) == STT_OBJECT)
			loader_file_meet_variable(file, name, symbol.st_value);
		if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC)
			continue;
		file->symbols = true;
		if (!name)
			continue;
		loader_file_meet(file, name, &symbol);
		loader_file_meet_inside(file, name, &symbol);
	}
}

// A stripped program of Go has no symbols, but it has these sections.
static void loader_file_read_sections(struct loader_file *file, Elf *elf)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return;
	while ((section = elf_nextscn(elf, section)) != NULL) {
		const char *name;

		if (!gelf_getshdr(section, &header))
			continue;
		name = elf_strptr(elf, names, header.sh_name);
		file->go |= name && (strcmp(name, ".go.buildinfo") == 0 ||
				     strcmp(name, ".note.go.buildid") == 0 ||
				     strcmp(name, ".gopclntab") == 0);
		if (header.sh_type == SHT_SYMTAB)
			loader_file_read_symbols(file, elf, section, &header);
	}
}

// One of fewer than two bytes would name no file: the first byte is a folder's name, the others are
// the file's.
static void loader_file_read_build_id(struct loader_file *file, Elf *elf, const GElf_Phdr *program)
{
	Elf_Data *data;
	GElf_Nhdr note;
	size_t at = 0, name, value;

	if (program->p_offset > INT64_MAX || program->p_filesz > LOADER_FILE_NOTE_MAX)
		return;
	data = elf_getdata_rawchunk(elf, (int64_t)program->p_offset, program->p_filesz, ELF_T_NHDR);
	while (data && (at = gelf_getnote(data, at, &note, &name, &value)) > 0) {
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != 4 ||
		    note.n_descsz > sizeof(file->build_id) || note.n_descsz < 2)
			continue;
		file->build_id_length = note.n_descsz;
		memcpy(file->build_id, (const char *)data->d_buf + value, note.n_descsz);
	}
}

// The file of debugging information that belongs to it, as the recorder finds it too.
static int loader_file_open_debug(const struct loader_file *file)
{
	struct str path = { 0 };
	int fd = -1;

	if (file->build_id_length == 0)
		return -1;
	str_add(&path, "/usr/lib/debug/.build-id/");
	str_add_hex(&path, file->build_id, 1);
	str_add_char(&path, '/');
	str_add_hex(&path, file->build_id + 1, file->build_id_length - 1u);
	str_add(&path, ".debug");
	fd = open(str_get(&path), O_RDONLY | O_CLOEXEC);
	str_fini(&path);
	return fd;
}

static void loader_file_read_debug(struct loader_file *file)
{
	int fd = loader_file_open_debug(file);
	Elf *elf;

	if (fd < 0)
		return;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF)
		loader_file_read_sections(file, elf);
	elf_end(elf);
	close(fd);
}

// Only where no function is among the file's own symbols is its debugging information opened.
bool loader_file_read(int fd, struct loader_file *file)
{
	size_t count = 0;
	Elf *elf;

	memset(file, 0, sizeof(*file));
	if (elf_version(EV_CURRENT) == EV_NONE)
		return false;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf || elf_kind(elf) != ELF_K_ELF || !gelf_getehdr(elf, &file->header) ||
	    elf_getphdrnum(elf, &count) != 0 || count > LOADER_FILE_PROGRAMS_MAX) {
		elf_end(elf);
		return false;
	}
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr *program = &file->programs[file->programs_count];

		if (!gelf_getphdr(elf, (int)i, program))
			continue;
		file->programs_count++;
		if (program->p_type == PT_NOTE)
			loader_file_read_build_id(file, elf, program);
	}
	loader_file_read_sections(file, elf);
	elf_end(elf);
	if (!file->symbols)
		loader_file_read_debug(file);
	return true;
}

// The kernel gives a traced process no rights that its tracer has not.
static bool loader_file_has_rights(int fd)
{
	struct stat status;
	char capability[64];

	return fstat(fd, &status) == 0 &&
	       ((status.st_mode & S_ISUID) ||
		(status.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) ||
		fgetxattr(fd, "security.capability", capability, sizeof(capability)) > 0);
}

static uint32_t loader_file_judge(int fd)
{
	struct loader_file file;

	if (!loader_file_read(fd, &file) || file.header.e_machine != EM_X86_64 ||
	    file.header.e_ident[EI_CLASS] != ELFCLASS64)
		return NOTE_EXEC_STATIC;
	if (loader_file_has_rights(fd))
		return NOTE_EXEC_SETUID;
	// Go without cgo has no C library. With cgo it has one, whose malloc is recorded as any
	// other.
	if (file.go && !file.setup)
		return NOTE_EXEC_GO;
	if (!file.symbols)
		return NOTE_EXEC_STRIPPED;
	if (!file.setup)
		return NOTE_EXEC_NO_LIBC;
	if (file.allocator && file.operators)
		return NOTE_EXEC_OPERATORS;
	return file.allocates ? NOTE_EXEC_OK : NOTE_EXEC_NO_MALLOC;
}

// Each ends a sentence that inspect begins: "app is linked statically, and …".
uint32_t loader_file_look(int fd, struct str *why)
{
	static const char *const texts[] = {
		[NOTE_EXEC_STATIC] =
			"not of 64 bits, as the recorder's way in needs (try: a dynamic build)",
		[NOTE_EXEC_SETUID] = "runs with other privileges, which the system would not give "
				     "it if the recorder came in",
		[NOTE_EXEC_GO] = "is Go's: its garbage collector frees, which no function tells "
				 "of, and a return address of ours on a goroutine's stack would "
				 "end it (try: its own profile, runtime/pprof)",
		[NOTE_EXEC_STRIPPED] =
			"stripped: nothing says where its allocator is (try: a "
			"build that is not stripped, or its debugging information in "
			"/usr/lib/debug/.build-id)",
		[NOTE_EXEC_NO_LIBC] =
			"its C library is neither glibc nor musl, as its symbols show (try: a "
			"dynamic build with one of these; for Free Pascal, the unit cmem first in "
			"its uses, which allocates by a C library)",
		[NOTE_EXEC_OPERATORS] = "its operators new are an allocator's own (tcmalloc, "
					"mimalloc, jemalloc), whose exceptions could not pass the "
					"recorder (try: a dynamic build)",
		[NOTE_EXEC_NO_MALLOC] = "no malloc is among its symbols: what it allocates with is "
					"not known",
	};
	uint32_t verdict = loader_file_judge(fd);

	if (verdict && why)
		str_add(why, texts[verdict]);
	return verdict;
}
