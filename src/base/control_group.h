// control_group: the control groups that a process is in, and their limits. Linux alone.
//
// A group is a folder below the place where its hierarchy is mounted, and a group's limits hold
// for the groups in it: of "/a/b" those of "/a/b", "/a" and "" count. In a namespace of groups the
// outermost one is at the mount itself.
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { CONTROL_GROUP_BYTES = 4096 };

// A hierarchy: where it is mounted, and what its files are.
struct control_group_form {
	const char *line; // what is before a group in /proc/PID/cgroup
	const char *mount, *limit, *events;
	bool counts_inner; // a group's count of kills has those of the groups in it
};

// Those that may have a limit of memory: version 1's, version 2's, and version 2's beside 1's.
enum { CONTROL_GROUP_V1, CONTROL_GROUP_V2, CONTROL_GROUP_UNIFIED, CONTROL_GROUP_FORMS };
extern const struct control_group_form control_group_forms[CONTROL_GROUP_FORMS];

// All groups of a process, as the kernel lists them; of ourselves: pid 0. "": they are not known.
void control_group_list(uint32_t pid, char list[static CONTROL_GROUP_BYTES]);

// That of a hierarchy. False: the list has none, and the group is "".
bool control_group_find(const struct control_group_form *form, const char *list,
			char group[static CONTROL_GROUP_BYTES]);

// The lowest of what `number` makes of the texts of `file` in a group and in those around it; 0 is
// no limit.
uint64_t control_group_lowest(const struct control_group_form *form, const char *group,
			      const char *file, uint64_t (*number)(const char *text));

// The lowest limit of memory; 0: there is none.
uint64_t control_group_memory(const struct control_group_form *form, const char *group);
