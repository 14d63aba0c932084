// Windows has no perf: no runtime writes such lists there.
#include "collect/code_lists.h"

#include <string.h>

void code_lists_open(struct code_lists *lists, uint32_t)
{
	memset(lists, 0, sizeof *lists);
}

void code_lists_open_child(struct code_lists *lists, uint32_t, const struct code_lists *, uint32_t,
			   uint64_t)
{
	memset(lists, 0, sizeof *lists);
}

void code_lists_close(struct code_lists *)
{
}

void code_lists_mapped(struct code_lists *lists, uint32_t pid, const char *path, size_t length)
{
	(void)lists, (void)pid, (void)path, (void)length;
}

char *code_lists_read(const struct code_lists *lists, enum code_lists_kind kind, uint32_t own_pid,
		      size_t *length, struct str *why)
{
	(void)lists, (void)kind, (void)own_pid, (void)length, (void)why;
	return NULL;
}
