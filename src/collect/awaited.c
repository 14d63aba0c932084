#include "collect/awaited.h"

#include "base/mem.h"
#include "collect/peer.h"

#include <string.h>

static void take_out(struct awaited *awaited, size_t at)
{
	peer_close(awaited->all[at].pidfd);
	mem_free(awaited->all[at].path);
	awaited->all[at] = awaited->all[--awaited->count];
}

void awaited_fini(struct awaited *awaited)
{
	while (awaited->count > 0)
		take_out(awaited, awaited->count - 1);
	mem_free(awaited->all);
	memset(awaited, 0, sizeof *awaited);
}

void awaited_add(struct awaited *awaited, process_id parent, uint32_t pid, uint32_t host_pid,
		 const char *path)
{
	int pidfd = host_pid != 0 ? peer_pidfd(-1, host_pid) : -1;

	awaited_drop(awaited, pid);
	awaited->all = mem_grow(awaited->all, &awaited->capacity, awaited->count + 1,
				sizeof *awaited->all);
	awaited->all[awaited->count++] = (struct awaited_process){
		.pid = pid,
		.pidfd = pidfd,
		.ended = host_pid != 0 && pidfd < 0, // and its pid is free again
		.parent = parent,
		.path = mem_copy_text(path),
	};
}

void awaited_drop(struct awaited *awaited, uint32_t pid)
{
	for (size_t i = awaited->count; i-- > 0;)
		if (awaited->all[i].pid == pid)
			take_out(awaited, i);
}

bool awaited_any(const struct awaited *awaited)
{
	return awaited->count > 0;
}

static char *take_path(struct awaited *awaited, size_t at, process_id *parent)
{
	char *path = awaited->all[at].path;

	*parent = awaited->all[at].parent;
	awaited->all[at].path = NULL;
	take_out(awaited, at);
	return path;
}

char *awaited_next_lost(struct awaited *awaited, process_id *parent)
{
	for (size_t i = awaited->count; i-- > 0;) {
		struct awaited_process *process = &awaited->all[i];

		if (process->ended)
			return take_path(awaited, i, parent);
	}
	for (size_t i = 0; i < awaited->count; i++) {
		struct awaited_process *process = &awaited->all[i];

		process->ended = process->pidfd >= 0 && peer_ended(process->pidfd);
	}
	return NULL;
}

char *awaited_give_up(struct awaited *awaited, process_id *parent)
{
	return awaited->count > 0 ? take_path(awaited, awaited->count - 1, parent) : NULL;
}
