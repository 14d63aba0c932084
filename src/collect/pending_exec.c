// For example, a shell (pid 100) starts `ls` by vfork: child 101 announces its exec of /bin/ls in
// 100's lane, and becomes /bin/ls. Until its linker has loaded the recorder and that has said
// hello, the recording knows of 101 only by this. If the shell ends meanwhile, the recording is not
// over: 101 is awaited. Its hello takes it out. If it ends without one, it was a program that could
// not be recorded, which is said. That it has ended is seen by its pidfd, and believed a pass
// later: its hello may be on the way.
#include "collect/pending_exec.h"

#include "base/mem.h"
#include "collect/peer.h"

#include <string.h>

static void take_out(struct pending_exec *pending_exec, size_t at)
{
	ASSERT(at < pending_exec->count);
	peer_close(pending_exec->all[at].pidfd);
	mem_free(pending_exec->all[at].line);
	pending_exec->all[at] = pending_exec->all[--pending_exec->count];
}

void pending_exec_fini(struct pending_exec *pending_exec)
{
	while (pending_exec->count > 0)
		take_out(pending_exec, pending_exec->count - 1);
	MEM_FREE(pending_exec->all, pending_exec->hellos);
	memset(pending_exec, 0, sizeof *pending_exec);
}

static bool was_heard(const struct pending_exec *pending_exec, uint32_t pid)
{
	for (size_t i = 0; i < pending_exec->hellos_count; i++)
		if (pending_exec->hellos[i].pid == pid)
			return true;
	return false;
}

void pending_exec_add(struct pending_exec *pending_exec, process_id parent, uint32_t pid,
		      uint32_t host_pid, const char *line)
{
	int pidfd;

	pending_exec_drop(pending_exec, pid);
	if (was_heard(pending_exec, pid))
		return;
	pidfd = host_pid != 0 ? peer_pidfd(-1, host_pid) : -1;
	*MEM_ADD(pending_exec->all, pending_exec->count, pending_exec->capacity) =
		(struct pending_exec_process){
			.pid = pid,
			.pidfd = pidfd,
			.gone = host_pid != 0 && pidfd < 0,
			.parent = parent,
			.line = mem_copy_text(line),
		};
}

void pending_exec_hear(struct pending_exec *pending_exec, uint32_t pid, uint32_t image)
{
	pending_exec_drop(pending_exec, pid);
	*MEM_ADD(pending_exec->hellos, pending_exec->hellos_count, pending_exec->hellos_capacity) =
		(struct pending_exec_hello){ .pid = pid, .image = image };
}

void pending_exec_forget(struct pending_exec *pending_exec, uint32_t image)
{
	size_t count = 0;

	while (count < pending_exec->hellos_count && pending_exec->hellos[count].image < image)
		count++;
	if (count == 0)
		return;
	pending_exec->hellos_count -= count;
	memmove(pending_exec->hellos, pending_exec->hellos + count,
		pending_exec->hellos_count * sizeof *pending_exec->hellos);
}

void pending_exec_drop(struct pending_exec *pending_exec, uint32_t pid)
{
	for (size_t i = pending_exec->count; i-- > 0;)
		if (pending_exec->all[i].pid == pid)
			take_out(pending_exec, i);
}

bool pending_exec_any(const struct pending_exec *pending_exec)
{
	return pending_exec->count > 0;
}

static char *take_line(struct pending_exec *pending_exec, size_t at, process_id *parent)
{
	char *line = pending_exec->all[at].line;

	ASSERT(line != NULL);
	*parent = pending_exec->all[at].parent;
	pending_exec->all[at].line = NULL;
	take_out(pending_exec, at);
	return line;
}

uint64_t pending_exec_forget_late(struct pending_exec *pending_exec, uint64_t since_ns)
{
	uint64_t count = 0;

	for (size_t i = pending_exec->count; i-- > 0;) {
		uint64_t first_ns = pending_exec->all[i].since_ns;

		if (first_ns != 0 && first_ns < since_ns)
			continue;
		take_out(pending_exec, i);
		count++;
	}
	return count;
}

// Two passes: what was found to have ended in the pass before is given out first, then all are
// looked at.
char *pending_exec_next_lost(struct pending_exec *pending_exec, uint64_t now_ns, process_id *parent)
{
	ASSERT(now_ns > 0);
	for (size_t i = pending_exec->count; i-- > 0;) {
		struct pending_exec_process *process = &pending_exec->all[i];

		if (process->ended)
			return take_line(pending_exec, i, parent);
	}
	for (size_t i = 0; i < pending_exec->count; i++) {
		struct pending_exec_process *process = &pending_exec->all[i];

		if (process->since_ns == 0)
			process->since_ns = now_ns;
		process->ended = process->gone ||
				 (process->pidfd >= 0 && peer_ended(process->pidfd));
	}
	return NULL;
}

char *pending_exec_give_up(struct pending_exec *pending_exec, process_id *parent)
{
	return pending_exec->count > 0 ? take_line(pending_exec, pending_exec->count - 1, parent)
				       : NULL;
}
