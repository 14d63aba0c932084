#include "launch/loader_linux.h"

#include "base/mem.h"
#include "collect/collect.h"
#include "launch/attachable_linux.h"
#include "launch/loader_file_linux.h"
#include "launch/preload.h"
#include "launch/tracee_linux.h"
#include "wire/attach.h"
#include "wire/lane_event.h"
#include "wire/segment.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	LOADER_PAGE = 4096,
	LOADER_TLS_ALIGN = 16,
	LOADER_AUXV_MAX = 64,
	LOADER_READ_WORDS = 512,
	LOADER_STACK_WORDS_MAX = 1 << 22, // of arguments and environment
	LOADER_LIBRARY_MAX = 64 << 20,
	LOADER_PATIENCE_MS = 1,
	LOADER_SETUP_NS = 1000000000, // for the C library to come to its threads
};

// ---- From exec to the first instruction ---------------------------------------------------------

bool loader_seize(pid_t tid, struct err *err)
{
	int scope = attachable_scope();
	pid_t tracer = attachable_tracer(tid);

	if (tracer)
		return err_set(err, ERR_USAGE,
			       "process %d traces it already, as one only can (try: that debugger "
			       "or strace inside of tidemark record)",
			       (int)tracer);
	if (scope < (attachable_may_all() ? 3 : 2) &&
	    ptrace(PTRACE_SEIZE, tid, NULL, (void *)PTRACE_O_TRACEEXEC) == 0)
		return true;
	if (scope >= 2)
		return err_set(err, ERR_USAGE,
			       "it may not be traced, as the recorder's way in needs: "
			       "kernel.yama.ptrace_scope is %d (try: %s)",
			       scope,
			       scope == 2 ? "sudo tidemark record, or sudo sysctl "
					    "kernel.yama.ptrace_scope=1"
					  : "a dynamic build; it stays so until the next boot");
	return err_set(
		err, ERR_USAGE,
		"it may not be traced, as the recorder's way in needs: %s (try: in a container, "
		"the capability CAP_SYS_PTRACE)",
		strerror(errno));
}

// What it waits for goes on as it would have.
static bool loader_pass(pid_t tid, int status)
{
	bool asked = status >> 16 == PTRACE_EVENT_STOP;
	int number = WSTOPSIG(status);

	if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8))
		return true;
	if (asked && number != SIGTRAP)
		ptrace(PTRACE_LISTEN, tid, NULL, NULL); // it was stopped by a signal, and stays so
	else
		ptrace(PTRACE_CONT, tid, NULL, (void *)(long)(asked ? 0 : number));
	return false;
}

// Nothing will be executed: it goes on untraced. It is waited for as long as that takes.
static void loader_cancel(pid_t tid)
{
	int status;

	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0)
		return;
	if (waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status))
		ptrace(PTRACE_DETACH, tid, NULL,
		       (void *)(long)(status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status)));
}

// Whether a byte has come. The end of the connection says that something was executed, or that the
// process has ended.
static bool loader_hears(int fd)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	char byte;

	if (poll(&ready, 1, LOADER_PATIENCE_MS) <= 0)
		return false;
	if (recv(fd, &byte, 1, MSG_DONTWAIT) == 1)
		return true;
	poll(NULL, 0, LOADER_PATIENCE_MS);
	return false;
}

bool loader_wait(pid_t tid, pid_t pid, int cancel_fd)
{
	int flags = WEXITED | WSTOPPED | WNOWAIT | __WALL | (cancel_fd >= 0 ? WNOHANG : 0);
	int status;

	for (;;) {
		siginfo_t info = { 0 };

		if (waitid(P_PID, (id_t)tid, &info, flags) != 0 && errno != EINTR) {
			if (tid == pid)
				return false;
			tid = pid; // what execs is its process's first thread from then on
			continue;
		}
		if (info.si_pid == 0) {
			if (!loader_hears(cancel_fd))
				continue;
			loader_cancel(tid);
			return false;
		}
		if (info.si_code != CLD_TRAPPED && info.si_code != CLD_STOPPED)
			return false; // it has ended: who waits for that will know
		if (waitpid(tid, &status, __WALL) == tid && WIFSTOPPED(status) &&
		    loader_pass(tid, status))
			return true;
	}
}

void loader_leave(pid_t pid)
{
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
}

// ---- In the new image ---------------------------------------------------------------------------

// The list of objects that the recorder reads (scope_linux.c), as a dynamic linker has it.
struct loader_object {
	uint64_t bias, name, dynamic, next, previous;
};

struct loader_debug {
	int32_t version, padding;
	uint64_t objects, stop;
	int32_t state, padding2;
	uint64_t linker, next;
};

// What is mapped beside the recorder and stays: the list, its texts, program headers, and what
// thread-local variables begin as.
struct loader_block {
	struct loader_debug debug;
	struct loader_object program, recorder;
	uint64_t stack_end;
	char empty[8];
	char path[PATH_MAX];
	Elf64_Phdr programs[LOADER_FILE_PROGRAMS_MAX + 1];
	uint32_t programs_count;
};

struct loader {
	pid_t pid;
	struct tracee tracee;
	struct tracee_loan loan;
	struct loader_file file;
	const char *path;
	const uint8_t *library; // its file, mapped here
	size_t library_bytes;
	uint64_t bias;                 // of the program
	uint64_t headers_at, count_at; // in the auxiliary vector
	uint64_t headers, count;       // what was there
	uint64_t block;
	uint64_t own_image; // where what the program's variables begin as is copied to
	uint64_t recorder;  // where it is mapped
	uint64_t recorder_bytes;
	const Elf64_Phdr *recorder_tls;
	uint64_t thread_offset; // of the recorder's variables, below the thread pointer
	uint8_t gate[2];        // what was where a system call is made
	uint64_t entry;         // tidemark_late_v1
};

static struct tracee_thread *loader_thread(struct loader *loader)
{
	ASSERT(loader->tracee.count > 0);
	return &loader->tracee.threads[0];
}

static bool loader_fail(const struct loader *loader, const char *what, int64_t number,
			struct err *err)
{
	if (number < 0)
		return err_errno(err, (int)-number, "process %d: %s", (int)loader->pid, what);
	return err_set(err, ERR_IO, "process %d: %s", (int)loader->pid, what);
}

// Where the kernel has put the auxiliary vector.
static bool loader_find_auxv(struct loader *loader, struct err *err)
{
	uint64_t at = loader_thread(loader)->registers.rsp;
	uint64_t words[LOADER_READ_WORDS], entry = 0;
	Elf64_auxv_t pair;
	uint64_t argc = 0;
	size_t nulls = 0, seen = 0;

	if (!tracee_read(loader->pid, at, &argc, sizeof(argc)))
		return loader_fail(loader, "its stack cannot be read", 0, err);
	at += (argc + 1) * sizeof(argc);
	while (nulls < 2 && seen < LOADER_STACK_WORDS_MAX) {
		size_t count = LOADER_READ_WORDS;

		while (count > 1 && !tracee_read(loader->pid, at, words, count * sizeof(*words)))
			count /= 2;
		if (count == 1 && !tracee_read(loader->pid, at, words, sizeof(*words)))
			break;
		for (size_t i = 0; i < count && nulls < 2; i++, at += sizeof(*words))
			nulls += words[i] == 0;
		seen += count;
	}
	for (int i = 0; i < LOADER_AUXV_MAX && nulls == 2; i++, at += sizeof(pair)) {
		if (!tracee_read(loader->pid, at, &pair, sizeof(pair)) || pair.a_type == AT_NULL)
			break;
		if (pair.a_type == AT_PHDR) {
			loader->headers_at = at + offsetof(Elf64_auxv_t, a_un);
			loader->headers = pair.a_un.a_val;
		} else if (pair.a_type == AT_PHNUM) {
			loader->count_at = at + offsetof(Elf64_auxv_t, a_un);
			loader->count = pair.a_un.a_val;
		} else if (pair.a_type == AT_ENTRY) {
			entry = pair.a_un.a_val;
		}
	}
	loader->bias = entry - loader->file.header.e_entry;
	return (loader->headers_at && loader->count_at && entry) ||
	       loader_fail(loader, "the kernel does not say where its headers are", 0, err);
}

static int64_t loader_ask(struct loader *loader, long number, uint64_t a, uint64_t b, uint64_t c,
			  uint64_t d, uint64_t e, uint64_t f)
{
	return tracee_ask(&loader->loan, (uint64_t)number, (const uint64_t[]){ a, b, c, d, e, f });
}

// Borrow the thread, for which the bytes at its instruction are a system call meanwhile.
static bool loader_borrow(struct loader *loader, struct err *err)
{
	static const uint8_t call[] = { 0x0f, 0x05 };
	struct tracee_thread *thread = loader_thread(loader);
	uint64_t at = thread->registers.rip;

	if (!tracee_read(loader->pid, at, loader->gate, sizeof(loader->gate)) ||
	    !tracee_poke(thread, at, call, sizeof(call)))
		return loader_fail(loader, "its code cannot be changed", 0, err);
	if (tracee_borrow(&loader->loan, thread, at, err))
		return true;
	tracee_poke(thread, at, loader->gate, sizeof(loader->gate));
	return false;
}

static void loader_give_back(struct loader *loader)
{
	struct tracee_thread *thread = loader_thread(loader);

	ASSERT(loader->loan.thread == thread);
	tracee_give_back(&loader->loan);
	tracee_poke(thread, thread->registers.rip, loader->gate, sizeof(loader->gate));
}

// ---- The recorder -------------------------------------------------------------------------------

static const Elf64_Phdr *loader_programs(const struct loader *loader, size_t *count)
{
	const Elf64_Ehdr *elf = (const void *)loader->library;

	*count = elf->e_phnum;
	return (const void *)(loader->library + elf->e_phoff);
}

static bool loader_open_library(struct loader *loader, struct err *err)
{
	int fd = open(loader->path, O_RDONLY | O_CLOEXEC);
	const Elf64_Phdr *programs;
	struct stat status;
	void *pages = MAP_FAILED;
	size_t count;

	if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size > (off_t)sizeof(Elf64_Ehdr) &&
	    status.st_size < LOADER_LIBRARY_MAX)
		pages = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (pages == MAP_FAILED)
		return err_errno(err, errno, "cannot read %s", loader->path);
	loader->library = pages;
	loader->library_bytes = (size_t)status.st_size;
	programs = loader_programs(loader, &count);
	for (size_t i = 0; i < count; i++) {
		if (programs[i].p_type == PT_TLS)
			loader->recorder_tls = &programs[i];
		if (programs[i].p_type == PT_LOAD)
			loader->recorder_bytes = programs[i].p_vaddr + programs[i].p_memsz;
	}
	loader->recorder_bytes = (loader->recorder_bytes + LOADER_PAGE - 1) &
				 ~(uint64_t)(LOADER_PAGE - 1);
	return loader->recorder_tls ||
	       err_set(err, ERR_IO, "%s is not a recorder of this version", loader->path);
}

// Its file as the program finds it: elsewhere another one may have that name, or none.
static int64_t loader_open_there(struct loader *loader)
{
	uint64_t at = loader->loan.stack + TRACEE_PARAMETERS_AT;

	if (!tracee_write(loader->pid, at, loader->path, strlen(loader->path) + 1))
		return -EFAULT;
	return loader_ask(loader, SYS_openat, (uint64_t)AT_FDCWD, at, O_RDONLY | O_CLOEXEC, 0, 0,
			  0);
}

static int64_t loader_map_segment(struct loader *loader, const Elf64_Phdr *segment, int64_t fd)
{
	uint64_t start = segment->p_vaddr & ~(uint64_t)(LOADER_PAGE - 1);
	uint64_t end = segment->p_vaddr + segment->p_filesz;
	uint64_t after = segment->p_vaddr + segment->p_memsz;
	uint64_t protection = ((segment->p_flags & PF_R) ? PROT_READ : 0u) |
			      ((segment->p_flags & PF_W) ? PROT_WRITE : 0u) |
			      ((segment->p_flags & PF_X) ? PROT_EXEC : 0u);
	uint64_t more = (end + LOADER_PAGE - 1) & ~(uint64_t)(LOADER_PAGE - 1);
	int64_t got = loader_ask(loader, SYS_mmap, loader->recorder + start, end - start,
				 protection, MAP_PRIVATE | MAP_FIXED, (uint64_t)fd,
				 segment->p_offset & ~(uint64_t)(LOADER_PAGE - 1));

	ASSERT(loader->recorder % LOADER_PAGE == 0 && after <= loader->recorder_bytes);
	if (got >= 0 && after > more)
		got = loader_ask(loader, SYS_mmap, loader->recorder + more, after - more,
				 protection, MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS, UINT64_MAX,
				 0);
	return got;
}

static bool loader_map(struct loader *loader, struct err *err)
{
	const Elf64_Phdr *programs;
	int64_t fd = loader_open_there(loader), got;
	size_t count;

	if (fd < 0)
		return loader_fail(loader, "the recorder is out of its reach", fd, err);
	got = loader_ask(loader, SYS_mmap, 0, loader->recorder_bytes, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0);
	loader->recorder = (uint64_t)got;
	programs = loader_programs(loader, &count);
	for (size_t i = 0; i < count && got >= 0; i++)
		if (programs[i].p_type == PT_LOAD)
			got = loader_map_segment(loader, &programs[i], fd);
	loader_ask(loader, SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
	return got >= 0 || loader_fail(loader, "the recorder cannot be mapped", got, err);
}

// What a dynamic linker reads of it.
struct loader_tables {
	const Elf64_Sym *symbols;
	const char *strings;
	const Elf64_Rela *parts[2];
	size_t counts[2];
	uint64_t dynamic;
};

static struct loader_tables loader_find_tables(const struct loader *loader)
{
	struct loader_tables tables = { 0 };
	const Elf64_Phdr *programs;
	const Elf64_Dyn *entry = NULL;
	size_t count;

	programs = loader_programs(loader, &count);
	for (size_t i = 0; i < count; i++)
		if (programs[i].p_type == PT_DYNAMIC) {
			tables.dynamic = programs[i].p_vaddr;
			entry = (const void *)(loader->library + programs[i].p_offset);
		}
	for (; entry && entry->d_tag != DT_NULL; entry++) {
		const uint8_t *at = loader->library + entry->d_un.d_ptr; // all before its data

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

// The two names that it takes from others, and its own.
static uint64_t loader_symbol(const struct loader *loader, const struct loader_tables *tables,
			      uint32_t number)
{
	const Elf64_Sym *symbol = &tables->symbols[number];
	const char *name = tables->strings + symbol->st_name;

	if (symbol->st_shndx != SHN_UNDEF)
		return loader->recorder + symbol->st_value;
	if (strcmp(name, "_r_debug") == 0)
		return loader->block + offsetof(struct loader_block, debug);
	if (strcmp(name, "__libc_stack_end") == 0)
		return loader->block + offsetof(struct loader_block, stack_end);
	return 0;
}

// False: of a kind that is not known.
static bool loader_relocate_one(const struct loader *loader, const struct loader_tables *tables,
				const Elf64_Rela *rela, uint64_t *value)
{
	uint64_t addend = (uint64_t)rela->r_addend;
	uint32_t number = (uint32_t)ELF64_R_SYM(rela->r_info);

	switch (ELF64_R_TYPE(rela->r_info)) {
	case R_X86_64_RELATIVE:
		*value = loader->recorder + addend;
		return true;
	case R_X86_64_64:
		addend += loader_symbol(loader, tables, number);
		*value = addend;
		return true;
	case R_X86_64_GLOB_DAT:
	case R_X86_64_JUMP_SLOT:
		*value = loader_symbol(loader, tables, number);
		return true;
	case R_X86_64_TPOFF64:
		*value = (number ? tables->symbols[number].st_value : 0) + addend -
			 loader->thread_offset;
		return true;
	default:
		return false;
	}
}

// The writable part of the recorder, relocated, and zeros to the end of its last page. It is in one
// segment.
static uint8_t *loader_relocate(const struct loader *loader, const struct loader_tables *tables,
				const Elf64_Phdr **segment, struct err *err)
{
	const Elf64_Phdr *programs;
	uint8_t *data;
	size_t count;

	programs = loader_programs(loader, &count);
	for (size_t i = 0; i < count; i++)
		if (programs[i].p_type == PT_LOAD && (programs[i].p_flags & PF_W))
			*segment = &programs[i];
	ASSERT(*segment != NULL && tables->symbols != NULL && tables->strings != NULL);
	data = mem_alloc(1, (*segment)->p_filesz + LOADER_PAGE);
	memcpy(data, loader->library + (*segment)->p_offset, (*segment)->p_filesz);
	for (int part = 0; part < 2; part++)
		for (size_t i = 0; i < tables->counts[part]; i++) {
			const Elf64_Rela *rela = &tables->parts[part][i];
			uint64_t at = rela->r_offset - (*segment)->p_vaddr, value;

			if (at > (*segment)->p_filesz - sizeof(value) ||
			    !loader_relocate_one(loader, tables, rela, &value)) {
				mem_free(data);
				err_set(err, ERR_IO, "%s cannot be relocated", loader->path);
				return NULL;
			}
			memcpy(data + at, &value, sizeof(value));
		}
	return data;
}

static uint64_t loader_find_entry(const struct loader *loader, const struct loader_tables *tables)
{
	const uint32_t end =
		(uint32_t)((const uint8_t *)tables->strings - (const uint8_t *)tables->symbols) /
		sizeof(Elf64_Sym);

	for (uint32_t i = 1; i < end; i++)
		if (strcmp(tables->strings + tables->symbols[i].st_name, "tidemark_late_v1") == 0)
			return loader->recorder + tables->symbols[i].st_value;
	return 0;
}

// ---- Headers ------------------------------------------------------------------------------------

static uint64_t loader_up(uint64_t value, uint64_t align)
{
	return (value + align - 1) & ~(align - 1);
}

static const Elf64_Phdr *loader_own_tls(const struct loader *loader)
{
	for (size_t i = 0; i < loader->file.programs_count; i++)
		if (loader->file.programs[i].p_type == PT_TLS)
			return (const Elf64_Phdr *)&loader->file.programs[i];
	return NULL;
}

// How the program's variables are laid out, and the longer header: all but where it is.
static Elf64_Phdr loader_plan_tls(struct loader *loader, uint64_t *own_offset)
{
	const Elf64_Phdr *own = loader_own_tls(loader);
	uint64_t align = own && own->p_align > 1 ? own->p_align : 1;
	uint64_t size = own ? own->p_memsz : 0;
	uint64_t vaddr = own ? own->p_vaddr : 0;
	Elf64_Phdr tls = { .p_type = PT_TLS, .p_flags = PF_R };

	ASSERT(loader->recorder_tls != NULL);
	// As the linker did, whose code has these distances in it.
	*own_offset = size + ((0 - size - vaddr) & (align - 1));
	tls.p_align = align > LOADER_TLS_ALIGN ? align : LOADER_TLS_ALIGN;
	tls.p_memsz = loader_up(*own_offset + loader->recorder_tls->p_memsz, tls.p_align);
	tls.p_filesz = tls.p_memsz - *own_offset + (own ? own->p_filesz : 0);
	loader->thread_offset = tls.p_memsz;
	return tls;
}

// In the place of PT_TLS, or after all others. PT_PHDR says where the headers are, from which a C
// library may find out where the program is.
static void loader_write_headers(const struct loader *loader, struct loader_block *block,
				 const Elf64_Phdr *tls)
{
	uint64_t at = loader->block + offsetof(struct loader_block, programs) - loader->bias;
	bool placed = false;

	for (size_t i = 0; i < loader->file.programs_count; i++) {
		Elf64_Phdr *program = &block->programs[block->programs_count++];

		memcpy(program, &loader->file.programs[i], sizeof(*program));
		if (program->p_type == PT_TLS) {
			*program = *tls;
			placed = true;
		} else if (program->p_type == PT_PHDR) {
			program->p_vaddr = program->p_paddr = at;
		}
	}
	ASSERT(block->programs_count <= LOADER_FILE_PROGRAMS_MAX);
	if (!placed)
		block->programs[block->programs_count++] = *tls;
}

static void loader_write_list(const struct loader *loader, const struct loader_tables *tables,
			      struct loader_block *block)
{
	uint64_t program = loader->block + offsetof(struct loader_block, program);
	uint64_t recorder = loader->block + offsetof(struct loader_block, recorder);

	block->debug = (struct loader_debug){ .version = 1, .objects = program };
	block->program = (struct loader_object){
		.bias = loader->bias,
		.name = loader->block + offsetof(struct loader_block, empty),
		.next = recorder,
	};
	block->recorder = (struct loader_object){
		.bias = loader->recorder,
		.name = loader->block + offsetof(struct loader_block, path),
		.dynamic = loader->recorder + tables->dynamic,
		.previous = program,
	};
	snprintf(block->path, sizeof(block->path), "%s", loader->path);
}

// Write all that is ours: the block, what variables begin as, and the recorder's data.
static bool loader_write(struct loader *loader, const Elf64_Phdr *planned, uint64_t own_offset,
			 struct err *err)
{
	struct loader_tables tables = loader_find_tables(loader);
	struct loader_block *block = mem_alloc(1, sizeof(*block));
	uint8_t *image = mem_alloc(1, planned->p_filesz + 1);
	const Elf64_Phdr *segment = NULL;
	const Elf64_Phdr *theirs = loader->recorder_tls;
	Elf64_Phdr tls = *planned;
	uint64_t image_at = loader_up(loader->block + sizeof(*block), tls.p_align);
	uint8_t *data = loader_relocate(loader, &tables, &segment, err);
	bool done = data != NULL;

	tls.p_vaddr = tls.p_paddr = image_at - loader->bias;
	block->stack_end = loader_thread(loader)->registers.rsp;
	loader_write_headers(loader, block, &tls);
	loader_write_list(loader, &tables, block);
	loader->entry = loader_find_entry(loader, &tables);
	if (done)
		memcpy(image, data + (theirs->p_vaddr - segment->p_vaddr), theirs->p_filesz);
	loader->own_image = image_at + tls.p_memsz - own_offset;
	done = done && tracee_write(loader->pid, loader->block, block, sizeof(*block)) &&
	       tracee_write(loader->pid, image_at, image, tls.p_filesz) &&
	       tracee_write(loader->pid, loader->recorder + segment->p_vaddr, data,
			    loader_up(segment->p_vaddr + segment->p_filesz, LOADER_PAGE) -
				    segment->p_vaddr) &&
	       tracee_write(loader->pid, loader->headers_at,
			    &(uint64_t){ loader->block + offsetof(struct loader_block, programs) },
			    8) &&
	       tracee_write(loader->pid, loader->count_at, &(uint64_t){ block->programs_count }, 8);
	mem_free(image);
	mem_free(block);
	mem_free(data);
	return done || err->kind != ERR_NONE ||
	       loader_fail(loader, "its memory cannot be written", 0, err);
}

// At the first instruction: everything is mapped and written, nothing was executed.
static bool loader_prepare(struct loader *loader, struct err *err)
{
	uint64_t own_offset;
	Elf64_Phdr tls = loader_plan_tls(loader, &own_offset);
	size_t bytes = sizeof(struct loader_block) + tls.p_filesz + tls.p_align;
	bool done = loader_borrow(loader, err);
	int64_t block;

	if (!done)
		return false;
	block = loader_ask(loader, SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0);
	loader->block = (uint64_t)block;
	if (block < 0 && block > -LOADER_PAGE)
		done = loader_fail(loader, "no memory for its headers", block, err);
	done = done && loader_map(loader, err) && loader_write(loader, &tls, own_offset, err);
	loader_give_back(loader);
	return done;
}

// What the program's variables begin as, which it may have relocated by now.
static bool loader_copy_image(const struct loader *loader)
{
	const Elf64_Phdr *own = loader_own_tls(loader);
	size_t bytes = own ? own->p_filesz : 0;
	uint8_t *image = mem_alloc(1, bytes + 1);
	bool done = bytes == 0 ||
		    (tracee_read(loader->pid, loader->bias + own->p_vaddr, image, bytes) &&
		     tracee_write(loader->pid, loader->own_image, image, bytes));

	mem_free(image);
	return done;
}

// Until its C library has set up threads, which is before anybody allocates.
static bool loader_run_to_setup(struct loader *loader, struct err *err)
{
	struct tracee_thread *thread = loader_thread(loader);
	uint64_t setup = loader->bias + loader->file.setup, back = 0;

	tracee_run_to(&loader->tracee, &setup, LOADER_SETUP_NS);
	if (!thread->gone && thread->registers.rip == setup && loader_copy_image(loader) &&
	    tracee_read(loader->pid, thread->registers.rsp, &back, sizeof(back)))
		tracee_run_to(&loader->tracee, &back, LOADER_SETUP_NS);
	// What others read there is what the kernel had said.
	tracee_write(loader->pid, loader->headers_at, &loader->headers, 8);
	tracee_write(loader->pid, loader->count_at, &loader->count, 8);
	return (back && !thread->gone && thread->registers.rip == back) ||
	       loader_fail(loader, "it does not begin as its C library's programs do", 0, err);
}

static bool loader_start(struct loader *loader, struct err *err)
{
	struct attach_call call = { .magic = ATTACH_MAGIC,
				    .version = SEGMENT_VERSION,
				    .verb = ATTACH_ENTER };
	uint64_t at, nothing;
	bool done;

	if (!loader_borrow(loader, err))
		return false;
	at = loader->loan.stack + TRACEE_PARAMETERS_AT;
	done = tracee_write(loader->pid, at, &call, sizeof(call)) &&
	       tracee_call(&loader->loan, loader->entry, at, 0, &nothing) &&
	       tracee_read(loader->pid, at, &call, sizeof(call));
	loader_give_back(loader);
	if (!done)
		return loader_fail(loader, "the recorder did not come back", 0, err);
	return call.status == ATTACH_DONE ||
	       loader_fail(loader, "the recorder could not begin", -(int64_t)call.error, err);
}

static bool loader_ignores_traps(const struct loader *loader)
{
	char path[32], line[128];
	unsigned long ignored = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)loader->pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "SigIgn: %lx", &ignored) == 1)
			break;
	if (file)
		fclose(file);
	return ignored & (1ul << (SIGSEGV - 1) | 1ul << (SIGTRAP - 1));
}

bool loader_enter(pid_t pid, const char *library, struct err *err)
{
	struct loader loader = { .pid = pid, .path = library };
	char path[32];
	bool done = true;
	int fd;

	*err = (struct err){ .kind = ERR_NONE };
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || !loader_file_read(fd, &loader.file))
		done = err_errno(err, errno, "process %d: its program cannot be read", (int)pid);
	if (fd >= 0)
		close(fd);
	if (done && loader_ignores_traps(&loader))
		done = loader_fail(&loader,
				   "it ignores SIGSEGV or SIGTRAP, which would be so no more", 0,
				   err);
	if (!done) {
		loader_leave(pid);
		return false;
	}
	done = tracee_arrive(&loader.tracee, pid, err) && loader_open_library(&loader, err) &&
	       loader_find_auxv(&loader, err) && loader_prepare(&loader, err) &&
	       loader_run_to_setup(&loader, err) && loader_start(&loader, err);
	tracee_depart(&loader.tracee);
	if (loader.library)
		munmap((void *)(uintptr_t)loader.library, loader.library_bytes);
	return done;
}

// ---- Programs that recorded ones execute --------------------------------------------------------

static uint32_t loader_children_prepare(uint32_t tid, int file)
{
	uint32_t verdict = loader_look(file, NULL);
	struct err err;

	if (verdict == NOTE_EXEC_OK && !loader_seize((pid_t)tid, &err))
		return NOTE_EXEC_UNTRACED;
	return verdict;
}

static bool loader_children_finish(uint32_t pid, uint32_t tid, int connection, struct err *err)
{
	struct str library = { 0 };
	bool done = true;

	if (loader_wait((pid_t)tid, (pid_t)pid, connection)) {
		done = preload_find_library(&library, err);
		if (done)
			done = loader_enter((pid_t)pid, str_get(&library), err);
		else
			loader_leave((pid_t)pid);
	}
	str_fini(&library);
	return done;
}

const struct collect_enter loader_children = {
	.prepare = loader_children_prepare,
	.finish = loader_children_finish,
};
