// A line of /proc/PID/cgroup is "5:memory:/user.slice" (version 1) or "0::/user.slice/app.scope"
// (version 2).
#include "base/control_group.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct control_group_form control_group_forms[] = {
	[CONTROL_GROUP_V1] = { ":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes",
			       "memory.oom_control", false },
	[CONTROL_GROUP_V2] = { "0::", "/sys/fs/cgroup", "memory.max", "memory.events", true },
	[CONTROL_GROUP_UNIFIED] = { "0::", "/sys/fs/cgroup/unified", "memory.max", "memory.events",
				    true },
};

// The beginning of a small file, as text; "": there is none.
static void read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd >= 0 ? read(fd, text, size - 1) : 0;

	if (fd >= 0)
		close(fd);
	text[got > 0 ? got : 0] = '\0';
}

void control_group_list(uint32_t pid, char list[static CONTROL_GROUP_BYTES])
{
	char path[64] = "/proc/self/cgroup";

	if (pid)
		snprintf(path, sizeof path, "/proc/%u/cgroup", pid);
	read_text(path, list, CONTROL_GROUP_BYTES);
}

bool control_group_find(const struct control_group_form *form, const char *list,
			char group[static CONTROL_GROUP_BYTES])
{
	const char *line = strstr(list, form->line), *at = line ? line + strlen(form->line) : "";

	snprintf(group, CONTROL_GROUP_BYTES, "%.*s", (int)strcspn(at, "\n"), at);
	return line != NULL;
}

uint64_t control_group_lowest(const struct control_group_form *form, const char *group,
			      const char *file, uint64_t (*number)(const char *text))
{
	char path[512], text[64];
	size_t length = strlen(group);
	uint64_t lowest = 0, limit;

	for (bool inside = true; inside;) {
		if ((size_t)snprintf(path, sizeof path, "%s%.*s/%s", form->mount, (int)length,
				     group, file) < sizeof path) {
			read_text(path, text, sizeof text);
			limit = number(text);
			if (limit && (!lowest || limit < lowest))
				lowest = limit;
		}
		// "/a/b", then "/a" and "".
		while (length > 0 && group[length - 1] != '/')
			length--;
		inside = length > 0;
		length -= inside;
	}
	return lowest;
}

// "max" is no limit. Version 1 has no word for that, but a number that no machine has, near 2^63.
static uint64_t memory(const char *text)
{
	uint64_t limit = strtoull(text, NULL, 10);

	return limit >> 60 ? 0 : limit;
}

uint64_t control_group_memory(const struct control_group_form *form, const char *group)
{
	return control_group_lowest(form, group, form->limit, memory);
}
