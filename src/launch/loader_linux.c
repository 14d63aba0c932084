// How the recorder gets into a program that is linked statically. No dynamic linker would load
// it, so we do, from outside, at the program's first instruction:
//
//     exec           the thread stops in the new image: everything is mapped, nothing has run
//     borrow         the two bytes at its instruction become a system call; by it the thread maps
//                    memory for us, a call at a time
//     write          the recorder's file goes there (placer), and a copy of the program's headers
//                    with a PT_TLS that has the program's thread-local variables and ours
//     point          in the auxiliary vector, on the stack, AT_PHDR and AT_PHNUM name the copy:
//                    the C library believes them, and makes room for ours in every thread
//     run to setup   where the C library has its threads; there the recorder is started
//     let go
//
// For example, a program with 5 headers and thread-local variables of 0x68 bytes: the copy has 5,
// as its PT_TLS is replaced, and variables of 0x68 bytes and the recorder's below one another.
// One without any has 6 headers.
//
// A program that does not come to its setup within a second, or ends before, runs on unrecorded,
// with a warning.
#include "launch/loader_linux.h"

#include "base/mem.h"
#include "base/str.h"
#include "collect/collect.h"
#include "launch/attachable_linux.h"
#include "launch/loader_file_linux.h"
#include "launch/placer_linux.h"
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
	LOADER_TLS_ALIGN = 16,
	LOADER_AUXV_MAX = 64,
	LOADER_READ_WORDS = 512,
	LOADER_STACK_WORDS_MAX = 1 << 22, // of arguments and environment
	LOADER_PATIENCE_MS = 1,
	LOADER_SETUP_NS = 1000000000, // for the C library to come to its threads
};

// ---- From exec to the first instruction ---------------------------------------------------------

// Yama's ptrace_scope: with 0 a process may trace others of its user, with 1 its descendants, with
// 2 only with CAP_SYS_PTRACE, with 3 no process may. What the kernel would refuse anyway is not
// tried, so that the message can say how to change it.
bool loader_seize(pid_t tid, struct err *err)
{
	int scope = attachable_scope();
	pid_t tracer = attachable_tracer(tid);

	if (tracer)
		return err_set(err, ERR_USAGE,
			       "process %d traces it already, and only one can (try: that debugger "
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
		"it may not be traced, and so the recorder cannot get in: %s (try: in a container, "
		"the capability CAP_SYS_PTRACE)",
		strerror(errno));
}

// True: it is the exec that was waited for. Other stops and signals are handed on as they are.
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
	if (tracee_await(tid, &status))
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

// Without `cancel_fd` the kernel waits. With it both are looked at in turn, a millisecond each:
// there is no descriptor by which a thread that is traced could be waited for together with a
// connection.
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
		if (tracee_await(tid, &status) && loader_pass(tid, status))
			return true;
	}
}

void loader_leave(pid_t pid)
{
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
}

// ---- In the new image ---------------------------------------------------------------------------

// What is mapped beside the recorder and stays: what the placer writes, program headers, and what
// thread-local variables begin as.
struct loader_block {
	struct placer_block placed;
	Elf64_Phdr programs[LOADER_FILE_PROGRAMS_MAX + 1];
	uint32_t programs_count;
};

struct loader {
	pid_t pid;
	struct tracee tracee;
	struct tracee_loan loan;
	struct loader_file file;
	struct placer placer;
	uint64_t headers_at, count_at; // in the auxiliary vector
	uint64_t headers, count;       // what was there
	uint64_t own_image;            // where what the program's variables begin as is copied to
	uint8_t gate[2];               // what was where a system call is made
};

static struct tracee_thread *loader_thread(struct loader *loader)
{
	ASSERT(loader->tracee.count > 0);
	return &loader->tracee.threads[0];
}

// Where the kernel has put the auxiliary vector.
// It is after the arguments, a NULL, the environment and a NULL, whose lengths are not known:
// words are read until two NULLs were seen.
static bool loader_find_auxv(struct loader *loader, struct err *err)
{
	uint64_t at = loader_thread(loader)->registers.rsp;
	uint64_t words[LOADER_READ_WORDS], entry = 0;
	Elf64_auxv_t pair;
	uint64_t argc = 0;
	size_t nulls = 0, seen = 0;

	if (!tracee_read(loader->pid, at, &argc, sizeof(argc)))
		return placer_fail(loader->pid, "its stack cannot be read", 0, err);
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
	// Pairs of a type and a value, ended by AT_NULL.
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
	loader->placer.bias = entry - loader->file.header.e_entry;
	return (loader->headers_at && loader->count_at && entry) ||
	       placer_fail(loader->pid, "the kernel does not say where its headers are", 0, err);
}

// Borrow the thread, for which the bytes at its instruction are a system call meanwhile.
static bool loader_borrow(struct loader *loader, struct err *err)
{
	static const uint8_t call[] = { 0x0f, 0x05 };
	struct tracee_thread *thread = loader_thread(loader);
	uint64_t at = thread->registers.rip;

	if (!tracee_read(loader->pid, at, loader->gate, sizeof(loader->gate)) ||
	    !tracee_poke(thread, at, call, sizeof(call)))
		return placer_fail(loader->pid, "its code cannot be changed", 0, err);
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

// ---- Headers ------------------------------------------------------------------------------------

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

	ASSERT(loader->placer.tls != NULL);
	// As the linker did, whose code has these distances in it.
	// For example 0x56 bytes at 0x3fa8, aligned to 8, take 0x58: they begin at a multiple of 8
	// below the thread pointer, as they do in the file.
	*own_offset = size + ((0 - size - vaddr) & (align - 1));
	tls.p_align = align > LOADER_TLS_ALIGN ? align : LOADER_TLS_ALIGN;
	tls.p_memsz = placer_up(*own_offset + loader->placer.tls->p_memsz, tls.p_align);
	// From the recorder's first byte to the end of what the program's variables begin as.
	tls.p_filesz = tls.p_memsz - *own_offset + (own ? own->p_filesz : 0);
	loader->placer.thread_offset = tls.p_memsz;
	return tls;
}

// In the place of PT_TLS, or after all others. PT_PHDR says where the headers are, from which a C
// library may find out where the program is.
static void loader_write_headers(const struct loader *loader, struct loader_block *block,
				 const Elf64_Phdr *tls)
{
	uint64_t at = loader->placer.block + offsetof(struct loader_block, programs) -
		      loader->placer.bias;
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

// Write all that is ours: headers, what variables begin as, and the recorder.
static bool loader_write(struct loader *loader, const Elf64_Phdr *planned, uint64_t own_offset,
			 struct err *err)
{
	struct placer *placer = &loader->placer;
	struct loader_block *block = mem_alloc(1, sizeof(*block));
	uint8_t *image = mem_alloc(1, planned->p_filesz + 1);
	uint64_t at = placer->block + offsetof(struct loader_block, programs);
	Elf64_Phdr tls = *planned;
	uint64_t image_at = placer_up(placer->block + sizeof(*block), tls.p_align);
	bool placed, done;

	tls.p_vaddr = tls.p_paddr = image_at - placer->bias;
	placer->stack_end = loader_thread(loader)->registers.rsp;
	loader_write_headers(loader, block, &tls);
	loader->own_image = image_at + tls.p_memsz - own_offset;
	placed = placer_write(placer, image, err);
	done = placed &&
	       tracee_write(loader->pid, at, block->programs,
			    block->programs_count * sizeof(*block->programs)) &&
	       tracee_write(loader->pid, image_at, image, tls.p_filesz) &&
	       tracee_write(loader->pid, loader->headers_at, &at, 8) &&
	       tracee_write(loader->pid, loader->count_at, &(uint64_t){ block->programs_count }, 8);
	MEM_FREE(image, block);
	return done || (placed && placer_fail(loader->pid, "its memory cannot be written", 0, err));
}

// At the first instruction: everything is mapped and written, nothing was executed.
static bool loader_prepare(struct loader *loader, struct err *err)
{
	struct placer *placer = &loader->placer;
	uint64_t own_offset;
	Elf64_Phdr tls = loader_plan_tls(loader, &own_offset);
	size_t bytes = sizeof(struct loader_block) + tls.p_filesz + tls.p_align;
	bool done = loader_borrow(loader, err);

	if (!done)
		return false;
	placer->loan = &loader->loan;
	placer->block = placer_room(placer, bytes, err);
	done = placer->block && placer_map(placer, err) &&
	       loader_write(loader, &tls, own_offset, err);
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
		    (tracee_read(loader->pid, loader->placer.bias + own->p_vaddr, image, bytes) &&
		     tracee_write(loader->pid, loader->own_image, image, bytes));

	mem_free(image);
	return done;
}

// Until its C library has set up threads, which is before anybody allocates.
static bool loader_run_to_setup(struct loader *loader, struct err *err)
{
	struct tracee_thread *thread = loader_thread(loader);
	uint64_t setup = loader->placer.bias + loader->file.setup, back = 0;

	// First to where the setup begins: a static PIE has relocated itself by then, so the first
	// values of its variables are what they will be. Then to where it returns.
	tracee_run_alone_to(&loader->tracee, setup, LOADER_SETUP_NS);
	if (!thread->gone && thread->registers.rip == setup && loader_copy_image(loader) &&
	    tracee_read(loader->pid, thread->registers.rsp, &back, sizeof(back)))
		tracee_run_alone_to(&loader->tracee, back, LOADER_SETUP_NS);
	// What others read there is what the kernel had said.
	tracee_write(loader->pid, loader->headers_at, &loader->headers, 8);
	tracee_write(loader->pid, loader->count_at, &loader->count, 8);
	return (back && !thread->gone && thread->registers.rip == back) ||
	       placer_fail(loader->pid, "it does not begin as its C library's programs do", 0, err);
}

// The thread calls the recorder's entry as if the program had, with an attach_call on its stack,
// and stops when that returns.
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
	       tracee_call(&loader->loan, loader->placer.entry, at, 0, &nothing) &&
	       tracee_read(loader->pid, at, &call, sizeof(call));
	loader_give_back(loader);
	if (!done)
		return placer_fail(loader->pid, "the recorder did not come back", 0, err);
	return call.status == ATTACH_DONE ||
	       placer_fail(loader->pid, "the recorder could not begin", -(int64_t)call.error, err);
}

// A breakpoint of ours would be deadly for such a program: it runs unrecorded.
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

// Until tracee_arrive the thread stands where its exec ended, and loader_leave lets it go; from
// there on tracee_depart does, whatever has failed, and the program runs as if we had not come.
bool loader_enter(pid_t pid, const char *library, struct err *err)
{
	struct loader loader = { .pid = pid, .placer = { .pid = pid, .path = library } };
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
		done = placer_fail(pid, "it ignores SIGSEGV or SIGTRAP, which would be so no more",
				   0, err);
	if (!done) {
		loader_leave(pid);
		return false;
	}
	done = tracee_arrive(&loader.tracee, pid, err) && placer_open(&loader.placer, err) &&
	       loader_find_auxv(&loader, err) && loader_prepare(&loader, err) &&
	       loader_run_to_setup(&loader, err) && loader_start(&loader, err);
	tracee_depart(&loader.tracee);
	placer_close(&loader.placer);
	return done;
}

// ---- Programs that recorded ones execute --------------------------------------------------------

static uint32_t loader_children_prepare(uint32_t tid, int file)
{
	uint32_t verdict = loader_file_look(file, NULL);
	struct err err;

	if (verdict == NOTE_EXEC_OK && !loader_seize((pid_t)tid, &err))
		return NOTE_EXEC_UNTRACED;
	return verdict;
}

// That nothing was executed, or the process has ended, is no failure: there is nothing to enter.
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
