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

void awaited_add(struct awaited *awaited, uint32_t pid, uint32_t host_pid, const char *path)
{
	int pidfd = host_pid != 0 ? peer_pidfd(-1, host_pid) : -1;

	awaited_drop(awaited, pid);
	awaited_any(awaited); // those that never say hello hold no descriptor for long
	if (host_pid != 0 && pidfd < 0)
		return;
	awaited->all = mem_grow(awaited->all, &awaited->capacity, awaited->count + 1,
				sizeof *awaited->all);
	awaited->all[awaited->count++] = (struct awaited_process){
		.pid = pid,
		.pidfd = pidfd,
		.path = mem_copy_text(path),
	};
}

void awaited_drop(struct awaited *awaited, uint32_t pid)
{
	for (size_t i = awaited->count; i-- > 0;)
		if (awaited->all[i].pid == pid)
			take_out(awaited, i);
}

bool awaited_any(struct awaited *awaited)
{
	for (size_t i = awaited->count; i-- > 0;)
		if (awaited->all[i].pidfd >= 0 && peer_ended(awaited->all[i].pidfd))
			take_out(awaited, i);
	return awaited->count > 0;
}

char *awaited_give_up(struct awaited *awaited)
{
	char *path;

	if (awaited->count == 0)
		return NULL;
	path = awaited->all[awaited->count - 1].path;
	awaited->all[awaited->count - 1].path = NULL;
	take_out(awaited, awaited->count - 1);
	return path;
}
