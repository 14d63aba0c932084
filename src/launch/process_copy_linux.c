// Making a copy takes as long as a fork, some milliseconds for each GiB. For example, a program
// with 1.3 GiB of small blocks was stopped for 7.6 s while they were searched; for its copy it is
// stopped for a quarter of a second, beside a load of 13.
//
// Which memory is empty in a forked process is only in smaps, and to read that takes longer than to
// copy: so it is read before the process is stopped. The recorder's own such pages are left out of
// core dumps, too ("dd"): by that they are known, and not kept.
//
// The kernel call is made by a thread that is stopped anyway, at an instruction of the vdso, which
// every process has: nothing is mapped for it, and no code is changed.
#include "launch/process_copy_linux.h"

#include "base/mem.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	PROCESS_COPY_VDSO_MAX = 64 << 10,
	PROCESS_COPY_PARTS_MAX = 1 << 20, // bytes
	PROCESS_COPY_TRIES = 4,
	PROCESS_COPY_CODE_64 = 0x33, // cs of code of 64 bits
};

static FILE *process_copy_open(pid_t pid, const char *what)
{
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
	return fopen(path, "re");
}

// A system-call instruction. 0: none was found.
static uint64_t process_copy_gate(pid_t pid)
{
	FILE *maps = process_copy_open(pid, "maps");
	uint64_t start = 0, end = 0, gate = 0;
	static uint8_t code[PROCESS_COPY_VDSO_MAX];
	char line[PATH_MAX + 128];

	while (maps && !gate && fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "[vdso]") ||
		    sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) != 2 ||
		    end - start > sizeof(code) || !tracee_read(pid, start, code, end - start))
			continue;
		if (code[4] != 2) // ELFCLASS64: of 32 bits there is none that we could use
			continue;
		for (size_t i = 0; i + 1 < end - start && !gate; i++)
			if (code[i] == 0x0f && code[i + 1] == 0x05)
				gate = start + i;
	}
	if (maps)
		fclose(maps);
	return gate;
}

// It is under no filter, and not the first process of a namespace.
static bool process_copy_allowed(pid_t pid)
{
	FILE *status = process_copy_open(pid, "status");
	bool allowed = status != NULL;
	char line[512];

	while (status && fgets(line, sizeof(line), status)) {
		const char *last = strrchr(line, '\t');

		if (strncmp(line, "Seccomp:", 8) == 0)
			allowed &= atoi(line + 8) == 0;
		if (strncmp(line, "NSpid:", 6) == 0 && last)
			allowed &= atoi(last) != 1;
	}
	if (status)
		fclose(status);
	return allowed;
}

static struct tracee_thread *process_copy_thread(struct tracee *tracee)
{
	for (size_t i = 0; i < tracee->count; i++)
		if (!tracee->threads[i].gone &&
		    tracee->threads[i].registers.cs == PROCESS_COPY_CODE_64)
			return &tracee->threads[i];
	return NULL;
}

// Files that the copy has open, too, would not be closed when the program closes them.
static void process_copy_close_files(struct tracee_thread *child, uint64_t gate)
{
	static const uint64_t all[6] = { 0, UINT32_MAX, 0, 0, 0, 0 };
	struct tracee_loan loan;
	struct err err;

	if (!tracee_borrow_plainly(&loan, child, gate, &err))
		return;
	tracee_ask(&loan, SYS_close_range, all);
	tracee_give_back(&loan);
}

void process_copy_prepare(struct process_copy *copy, pid_t pid)
{
	FILE *maps = process_copy_open(pid, "smaps");
	struct process_copy_part part = { .start = 0 };
	char line[PATH_MAX + 128];
	uint64_t size = 0;

	*copy = (struct process_copy){ .of = maps ? pid : 0 };
	// smaps has a line with the addresses, and further on VmFlags of the same mapping: wf is
	// MADV_WIPEONFORK, dc is MADV_DONTFORK (the copy would lack it: then there is none).
	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &part.start, &part.end) == 2 ||
		    strncmp(line, "VmFlags:", 8) != 0 || strstr(line, " dd") ||
		    strstr(line, " dp")) // or what the system may take away at any time
			continue;
		if (strstr(line, " dc"))
			copy->of = 0;
		if (!strstr(line, " wf"))
			continue;
		size += part.end - part.start;
		*MEM_ADD(copy->parts, copy->parts_count, copy->parts_capacity) = part;
	}
	if (size > PROCESS_COPY_PARTS_MAX)
		copy->of = 0;
	if (maps)
		fclose(maps);
}

// False: it has changed since.
static bool process_copy_keep(struct process_copy *copy)
{
	for (size_t i = 0; i < copy->parts_count; i++) {
		struct process_copy_part *part = &copy->parts[i];

		part->bytes = mem_alloc((size_t)(part->end - part->start), 1);
		if (!tracee_read(copy->of, part->start, part->bytes,
				 (size_t)(part->end - part->start)))
			return false;
	}
	return true;
}

// The copy has nothing in these parts, as a fork leaves them out: what was kept of them goes over
// what was read there.
void process_copy_amend(const struct process_copy *copy, uint64_t start, uint64_t end,
			uint8_t *bytes)
{
	ASSERT(copy->pid != 0 && start < end); // process_copy_make was called, and has kept them
	for (size_t i = 0; i < copy->parts_count; i++) {
		const struct process_copy_part *part = &copy->parts[i];
		uint64_t from = part->start > start ? part->start : start;
		uint64_t to = part->end < end ? part->end : end;

		if (from < to)
			memcpy(bytes + (from - start), part->bytes + (from - part->start),
			       (size_t)(to - from));
	}
}

// The order matters: parts that a fork leaves out are read while the process stands, before it is
// made to fork.
bool process_copy_make(struct process_copy *copy, struct tracee *tracee)
{
	struct tracee_thread *thread = process_copy_thread(tracee), child;
	uint64_t gate = thread ? process_copy_gate(tracee->pid) : 0;
	struct tracee_loan loan;
	struct err err;

	ASSERT(!copy->pid && tracee->count > 0);
	if (!copy->of || !gate || !process_copy_keep(copy) || !process_copy_allowed(tracee->pid) ||
	    !tracee_borrow_plainly(&loan, thread, gate, &err))
		return false;
	if (tracee_fork(&loan, &child))
		copy->pid = child.tid;
	tracee_give_back(&loan);
	if (copy->pid)
		process_copy_close_files(&child, gate);
	return copy->pid != 0;
}

// ---- its end ----

// The zombie is a child of the process's: it asks for it, in a moment in which one of its threads
// stands. If the process has ended, the system does.
static void process_copy_bury(const struct process_copy *copy)
{
	const uint64_t ask[6] = { (uint64_t)copy->pid, 0, WNOHANG | __WALL, 0, 0, 0 };
	uint64_t gate = process_copy_gate(copy->of);
	size_t count = 0;
	pid_t *tids = gate ? tracee_list(copy->of, &count) : NULL;
	bool buried = false;

	// One that gets a signal just then is left alone, so it may take more than one try.
	for (size_t i = 0; i < PROCESS_COPY_TRIES * count && !buried; i++) {
		struct tracee_loan loan;
		struct tracee tracee;
		struct err err;

		if (!tracee_stop_one(&tracee, copy->of, tids[i % count], &err))
			continue;
		if (tracee_borrow_plainly(&loan, &tracee.threads[0], gate, &err)) {
			buried = tracee_ask(&loan, SYS_wait4, ask) != -ESRCH;
			tracee_give_back(&loan);
		}
		tracee_release(&tracee);
	}
	mem_free(tids);
}

void process_copy_end(struct process_copy *copy)
{
	if (copy->pid) {
		kill(copy->pid, SIGKILL);
		while (waitpid(copy->pid, NULL, __WALL) < 0 && errno == EINTR)
			;
		process_copy_bury(copy);
	}
	for (size_t i = 0; i < copy->parts_count; i++)
		mem_free(copy->parts[i].bytes);
	mem_free(copy->parts);
	*copy = (struct process_copy){ 0 };
}
