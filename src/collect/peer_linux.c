// Nearly all that is known of another process is in /proc/PID/stat, as words in a row. The second
// is the program's name in parentheses, and may hold anything: "1234 (a) b) S 1 …" is a process
// called "a) b". So fields are counted from the last parenthesis: 3 is the state, 4 the parent, 22
// when it began, 52 how it ended.
//
// A pidfd is of one process, for ever; a pid may be another's by the time that /proc is read. So
// what is asked by pid is asked while the process waits for our answer, or does not decide
// anything.
#include "collect/peer.h"

#include "base/control_group.h"
#include "base/mem.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// Newer than the headers that we build with.
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

struct pidfd_information {
	uint64_t mask;
	uint64_t cgroup;
	uint32_t pid, tgid, ppid;
	uint32_t ids[8];
	int32_t exit_code;
};

enum {
	PIDFD_WANTS_EXIT = 1 << 3,
	ARGS_BYTES_MAX = 64 << 10,
	SLACK_TICKS = 3, // our clocks are not the kernel's
};

// Behind the last address of a program, as x86-64's kernel has it (TASK_SIZE).
#define PERSONALITY_3GB 0x8000000
#define END_3GB UINT64_C(0xc0000000)
#define END_32 UINT64_C(0xffffe000)
#define END_64 UINT64_C(0x7ffffffff000)

#define PIDFD_ASK _IOWR(0xff, 11, struct pidfd_information)

_Static_assert(sizeof(struct pidfd_information) == 64, "the kernel's first version of it");

// By the socket where the kernel can (6.5 and later): then it is surely the process that connected.
// -1: it is not to be had.
int peer_pidfd(int socket_fd, uint32_t pid)
{
	socklen_t length = sizeof(int);
	int fd = -1;

	if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERPIDFD, &fd, &length) == 0 && fd >= 0)
		return fd;
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

// From the beginning, NUL-terminated. These files are made as a whole when they are read: where
// less comes than there was room for, that is all.
static size_t read_all(int fd, char *bytes, size_t size)
{
	ssize_t got = pread(fd, bytes, size - 1, 0);
	size_t length = got > 0 ? (size_t)got : 0;

	bytes[length] = 0;
	return length;
}

// Read a file of /proc into `bytes`, NUL-terminated. Returns its length, 0 if there is none.
static size_t read_proc(const char *path, char *bytes, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t length;

	ASSERT(size > 1);
	bytes[0] = 0;
	if (fd < 0)
		return 0;
	length = read_all(fd, bytes, size);
	close(fd);
	return length;
}

// NULL: there is no such process, or it has fewer fields.
const char *peer_stat(uint32_t pid, int number, char *bytes, size_t size)
{
	char path[64];
	char *at;

	ASSERT(number >= 3); // the name before may hold blanks
	snprintf(path, sizeof path, "/proc/%u/stat", pid);
	if (read_proc(path, bytes, size) == 0)
		return NULL;
	at = strrchr(bytes, ')'); // the name before may hold anything
	for (int i = 2; at != NULL && i < number; i++)
		at = strchr(at + 1, ' ');
	return at != NULL ? at + 1 : NULL;
}

// Whether what a path leads to is another file for the process than for us; false: not known.
static bool differs(uint32_t pid, const char *its, const char *ours)
{
	struct stat there, here;
	char path[64];

	snprintf(path, sizeof path, "/proc/%u/%s", pid, its);
	return stat(path, &there) == 0 && stat(ours, &here) == 0 &&
	       (there.st_dev != here.st_dev || there.st_ino != here.st_ino);
}

// The collector listens at a name that is the network's, and at one in /tmp (door_linux.c). A root
// without /tmp has none of ours.
bool peer_shut_out(uint32_t pid)
{
	char path[64];

	ASSERT(pid != 0);
	snprintf(path, sizeof path, "/proc/%u/root/tmp", pid);
	return differs(pid, "ns/net", "/proc/self/ns/net") &&
	       (differs(pid, "root/tmp", "/tmp") ||
		(access(path, F_OK) != 0 && errno == ENOENT && differs(pid, "root", "/")));
}

// In /proc/PID/status: "State:	t (tracing stop)" and "TracerPid:	4711".
bool peer_held(uint32_t pid)
{
	static const char of_tracer[] = "\nTracerPid:\t", of_state[] = "\nState:\t";
	const char *state, *tracer;
	char path[64], bytes[4096];

	ASSERT(pid != 0);
	snprintf(path, sizeof path, "/proc/%u/status", pid);
	if (read_proc(path, bytes, sizeof bytes) == 0)
		return false;
	state = strstr(bytes, of_state);
	tracer = strstr(bytes, of_tracer);
	return (state != NULL && strchr("Tt", state[sizeof of_state - 1]) != NULL) ||
	       (tracer != NULL && tracer[sizeof of_tracer - 1] != '0');
}

uint32_t peer_parent(uint32_t pid)
{
	char bytes[1024];
	const char *field = peer_stat(pid, 4, bytes, sizeof bytes);

	return field != NULL ? (uint32_t)strtoul(field, NULL, 10) : 0;
}

// A pidfd's own information is of that process, whatever /proc has under its number now.
uint32_t peer_parent_of(int pidfd, uint32_t pid)
{
	struct pidfd_information information = { 0 };

	if (pidfd >= 0 && ioctl(pidfd, PIDFD_ASK, &information) == 0 && information.pid == pid)
		return information.ppid;
	return peer_parent(pid);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

// The number that the process has in its own namespace, which is the last one.
// "NSpid:\t4711\t12\t1" is process 1 of a container in a container.
//
// A process in a container writes its own number into a claim, and we see it under another.
static uint32_t own_number(uint32_t pid)
{
	char text[4096], path[64];
	const char *line, *end;

	snprintf(path, sizeof path, "/proc/%u/status", pid);
	read_proc(path, text, sizeof text);
	line = strstr(text, "\nNSpid:");
	if (line == NULL)
		return pid;
	end = strchrnul(line + 1, '\n');
	while (end > line && end[-1] != '\t')
		end--;
	return (uint32_t)strtoul(end, NULL, 10);
}

// When it began, in clock ticks since the system did.
// A hundred a second: two processes that began within 10 ms of each other have the same.
static uint64_t began_ticks(uint32_t pid)
{
	char bytes[1024];
	const char *field = peer_stat(pid, 22, bytes, sizeof bytes);

	return field != NULL ? strtoull(field, NULL, 10) : UINT64_MAX;
}

uint64_t peer_age_ns(uint32_t pid)
{
	uint64_t began = began_ticks(pid);
	uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);

	return began != UINT64_MAX ? clock_ns(CLOCK_BOOTTIME) - began * tick_ns : 0;
}

static bool has_ended(uint32_t pid)
{
	char bytes[1024];
	const char *state = peer_stat(pid, 3, bytes, sizeof bytes);

	return state == NULL || *state == 'Z' || *state == 'X';
}

// A line of its maps is "7f0c1a000000-7f0c1a200000 rw-s 00000000 00:01 4711    /memfd:…".
// True where it lives and does not let us look.
static bool maps_file(uint32_t pid, const char *device_inode)
{
	char *line = NULL, path[64];
	size_t size = 0;
	bool found = false;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%u/maps", pid);
	file = fopen(path, "re");
	if (file == NULL)
		return errno != ENOENT && errno != ESRCH;
	while (!found && getline(&line, &size, file) > 0)
		found = strstr(line, device_inode) != NULL;
	fclose(file);
	free(line);
	return found;
}

bool peer_has_mapped(const struct peer_wanted *wanted, int fd)
{
	uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t apart_ns = clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC);
	uint64_t since = (wanted->since_ns + apart_ns) / tick_ns;
	DIR *directory = opendir("/proc");
	const struct dirent *entry;
	struct stat status;
	char words[64];
	bool found = false;

	if (directory == NULL || fstat(fd, &status) != 0) {
		if (directory != NULL)
			closedir(directory);
		return true;
	}
	snprintf(words, sizeof words, " %02x:%02x %" PRIu64 " ", major(status.st_dev),
		 minor(status.st_dev), (uint64_t)status.st_ino);
	while (!found && (entry = readdir(directory)) != NULL) {
		uint32_t pid = (uint32_t)strtoul(entry->d_name, NULL, 10);

		found = pid != 0 && pid != (uint32_t)getpid() &&
			began_ticks(pid) + SLACK_TICKS >= since && !has_ended(pid) &&
			!wanted->is_known(wanted->context, pid) && maps_file(pid, words);
	}
	closedir(directory);
	return found;
}

// Of several that fit, the one that began last: the claim was written just now.
//
// The claim has the number in the child's own namespace, its parent, and a time. 3 ticks of slack
// are 30 ms.
uint32_t peer_find(const struct peer_wanted *wanted)
{
	uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t apart_ns = clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC);
	uint64_t since = (wanted->since_ns + apart_ns) / tick_ns;
	uint64_t until = (wanted->until_ns + apart_ns) / tick_ns + SLACK_TICKS;
	// A child whose parent has ended has another one, so its parent is no condition then.
	bool orphan = wanted->parent == 0 || has_ended(wanted->parent);
	uint32_t above = wanted->parent != 0 ? peer_parent(wanted->parent) : 0;
	DIR *directory = opendir("/proc");
	uint32_t found = 0;
	uint64_t found_began = 0;
	const struct dirent *entry;

	while (directory != NULL && (entry = readdir(directory)) != NULL) {
		uint32_t pid = (uint32_t)strtoul(entry->d_name, NULL, 10), parent;
		uint64_t began;

		if (pid == 0 || (began = began_ticks(pid)) > until || began + SLACK_TICKS < since ||
		    began < found_began)
			continue;
		parent = peer_parent(pid);
		if (wanted->pid == 0 ? wanted->parent == 0 || parent != wanted->parent
				     : own_number(pid) != wanted->pid)
			continue;
		if ((!orphan && parent != wanted->parent && parent != above) ||
		    wanted->is_known(wanted->context, pid))
			continue;
		found = pid;
		found_began = began;
	}
	if (directory != NULL)
		closedir(directory);
	return found;
}

// One allocation: the table of pointers, then the texts.
char **peer_args_of(const char *bytes, size_t length, uint32_t *count)
{
	static const size_t slack = 2;
	size_t table;
	char **args;
	char *text;

	*count = 0;
	for (size_t i = 0; i < length; i++)
		// "ls\0-l\0" has two, and so has "ls\0-l" of a program that wrote over the last
		// NUL.
		*count += bytes[i] == 0 || i == length - 1;
	table = *count * sizeof *args;
	args = mem_alloc(table + length + slack, 1);
	text = (char *)args + table;
	memcpy(text, bytes, length);
	for (uint32_t i = 0; i < *count; i++) {
		args[i] = text;
		text += strlen(text) + 1;
	}
	return args;
}

// Up to 64 KiB of arguments.
char **peer_args(uint32_t pid, uint32_t *count)
{
	char *bytes = mem_resize(NULL, ARGS_BYTES_MAX + 1, 1);
	char path[64];
	char **args;

	snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
	args = peer_args_of(bytes, read_proc(path, bytes, ARGS_BYTES_MAX + 1), count);
	mem_free(bytes);
	return args;
}

bool peer_keeps_ends(void)
{
	struct utsname host;
	int major, minor;

	return uname(&host) == 0 && sscanf(host.release, "%d.%d", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 16));
}

// Kernels from 6.15 on tell the status of a process that is gone already.
static bool status_of_pidfd(int pidfd, int *status)
{
	struct pidfd_information information = { .mask = PIDFD_WANTS_EXIT };

	if (pidfd < 0 || ioctl(pidfd, PIDFD_ASK, &information) != 0 ||
	    !(information.mask & PIDFD_WANTS_EXIT))
		return false;
	*status = information.exit_code;
	return true;
}

// May we look at the process? Root may, and the one it belongs to.
static bool ours(uint32_t pid)
{
	struct stat status;
	char path[64];

	snprintf(path, sizeof path, "/proc/%u", pid);
	return geteuid() == 0 || (stat(path, &status) == 0 && status.st_uid == geteuid());
}

// The status of a process whose parent reaps it is there for a moment only. It is asked for in
// three ways: of the pidfd, of /proc while it is a zombie, and of the pidfd again.
//
// Field 52 is exit_code, in wait's encoding.
static bool wait_status(int pidfd, uint32_t pid, int *status)
{
	char bytes[1024], state[1024];
	const char *field;

	if (status_of_pidfd(pidfd, status))
		return true;
	// Not reaped yet, then, unless it is just now. The kernel shows the status only to those
	// who may look; to others it shows 0, which is believed only when we are one of those.
	field = peer_stat(pid, 3, state, sizeof state);
	if (field != NULL && *field == 'Z') {
		field = peer_stat(pid, 52, bytes, sizeof bytes);
		if (field != NULL) {
			*status = atoi(field);
			if (*status != 0 || ours(pid))
				return true;
		}
	}
	return status_of_pidfd(pidfd, status);
}

// "WORD:   12 kB" in a file of /proc, in bytes; 0: it is not there.
static uint64_t figure_of(const char *text, const char *word)
{
	const char *at = strstr(text, word);

	return at != NULL ? strtoull(at + strlen(word), NULL, 10) * 1024 : 0;
}

// From smaps_rollup: one line for the whole process, which the kernel computes by walking all of
// its pages.
uint64_t peer_proportional(uint32_t pid, struct peer_kinds *kinds)
{
	char bytes[4096], path[64];

	snprintf(path, sizeof path, "/proc/%u/smaps_rollup", pid);
	read_proc(path, bytes, sizeof bytes);
	*kinds = (struct peer_kinds){
		.anonymous = figure_of(bytes, "\nPss_Anon:"),
		.file = figure_of(bytes, "\nPss_File:"),
		.shared = figure_of(bytes, "\nPss_Shmem:"),
	};
	return figure_of(bytes, "\nPss:");
}

// Fields 10 and 12 of stat are minor and major faults; 11 is the children's.
bool peer_pages(uint32_t pid, struct peer_pages *pages)
{
	char bytes[1024], text[4096], path[64];
	const char *field = peer_stat(pid, 10, bytes, sizeof bytes);
	unsigned long long minor, major;

	if (field == NULL || sscanf(field, "%llu %*u %llu", &minor, &major) != 2)
		return false;
	snprintf(path, sizeof path, "/proc/%u/status", pid);
	read_proc(path, text, sizeof text);
	if (strstr(text, "\nVmRSS:") == NULL)
		return false; // it is ending: its memory is gone, and was not 0 bytes
	*pages = (struct peer_pages){
		.rss = figure_of(text, "\nVmRSS:"),
		.swapped = figure_of(text, "\nVmSwap:"),
		.minor_faults = minor,
		.major_faults = major,
		.resident = {
			.anonymous = figure_of(text, "\nRssAnon:"),
			.file = figure_of(text, "\nRssFile:"),
			.shared = figure_of(text, "\nRssShmem:"),
		},
	};
	return true;
}

void peer_decode(int status, enum trace_exit *exit, uint32_t *value)
{
	*exit = WIFSIGNALED(status) ? TRACE_EXIT_SIGNAL : TRACE_EXIT_CODE;
	*value = (uint32_t)(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

bool peer_exit(int pidfd, uint32_t pid, enum trace_exit *exit, uint32_t *value)
{
	int status;

	if (!wait_status(pidfd, pid, &status))
		return false;
	peer_decode(status, exit, value);
	return true;
}

bool peer_ended(int pidfd)
{
	struct pollfd process = { .fd = pidfd, .events = POLLIN };

	return poll(&process, 1, 0) > 0;
}

void peer_close(int pidfd)
{
	if (pidfd >= 0)
		close(pidfd);
}

uint64_t peer_resident(uint32_t pid)
{
	char bytes[256], path[64];
	unsigned long long pages;

	snprintf(path, sizeof path, "/proc/%u/statm", pid);
	if (read_proc(path, bytes, sizeof bytes) == 0 || sscanf(bytes, "%*u %llu", &pages) != 1)
		return 0;
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t peer_used_ns(uint32_t pid)
{
	struct timespec used;
	clockid_t clock;

	if (clock_getcpuclockid((pid_t)pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
		return 0;
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

// A soft limit, by its name in /proc/PID/limits where we may not ask for it; 0: there is none.
static uint64_t limit_of(uint32_t pid, enum __rlimit_resource resource, const char *name)
{
	char path[64], text[4096];
	const char *line;
	struct rlimit limit;

	if (prlimit((pid_t)pid, resource, NULL, &limit) == 0)
		return limit.rlim_cur == RLIM_INFINITY ? 0 : limit.rlim_cur;
	snprintf(path, sizeof path, "/proc/%u/limits", pid);
	read_proc(path, text, sizeof text);
	line = strstr(text, name);
	return line ? strtoull(line + strlen(name), NULL, 10) : 0;
}

// ---- the control group ----

// The kernel counts in each control group how many processes it killed because its memory was
// full. A process of ours that was killed and a count that grew are the reason that the report
// gives. False: there is no such file, or we may not read it.
//
// The number of processes that the kernel killed in this group, from its file of events.
static bool group_read(const char *path, uint64_t *kills)
{
	// Children that come one after the other are mostly in one group: its file stays open.
	static _Thread_local struct {
		char path[sizeof((struct peer_space *)NULL)->group_events];
		int fd;
	} last = { .fd = -1 };
	char text[512];
	const char *at;

	if (last.fd < 0 || strcmp(path, last.path) != 0 || !read_all(last.fd, text, sizeof text)) {
		if (last.fd >= 0)
			close(last.fd);
		last.fd = strlen(path) < sizeof last.path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
		last.path[0] = '\0';
		if (last.fd < 0 || !read_all(last.fd, text, sizeof text))
			return false;
		strcpy(last.path, path);
	}
	at = strstr(text, "oom_kill ");
	*kills = at ? strtoull(at + strlen("oom_kill "), NULL, 10) : 0;
	return true;
}

static uint64_t group_kills(const char *path)
{
	uint64_t kills;

	return group_read(path, &kills) ? kills : 0;
}

// The same of the group around it: of "/a/b/memory.events" it is "/a/memory.events".
static uint64_t group_kills_around(const char *path)
{
	const char *file = strrchr(path, '/'), *folder = file;
	char around[256];

	while (folder && folder > path && folder[-1] != '/')
		folder--;
	if (!folder || folder == path ||
	    (size_t)snprintf(around, sizeof around, "%.*s%s", (int)(folder - path - 1), path,
			     file) >= sizeof around)
		return 0;
	return group_kills(around);
}

// The group's own limit, and those of the groups around it. Children that come one after the other
// are mostly in one group: it is looked at again after a second.
static uint64_t group_limit(const struct control_group_form *form, const char *group)
{
	static _Thread_local struct {
		char group[512];
		const struct control_group_form *form;
		uint64_t limit, until_ns;
	} last;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (last.form == form && now < last.until_ns && strcmp(last.group, group) == 0)
		return last.limit;
	last.form = strlen(group) < sizeof last.group ? form : NULL;
	if (last.form)
		strcpy(last.group, group);
	last.until_ns = now + 1000000000u;
	last.limit = control_group_memory(form, group);
	return last.limit;
}

static void group_look(const struct control_group_form *form, const char *group,
		       struct peer_space *space)
{
	char path[sizeof space->group_events];
	uint64_t limit;

	if ((size_t)snprintf(path, sizeof path, "%s%s/%s", form->mount, group, form->events) <
		    sizeof path &&
	    group_read(path, &space->group_kills)) {
		memcpy(space->group_events, path, sizeof path);
		space->group_counts_inner = form->counts_inner;
		if (form->counts_inner)
			space->group_around_kills = group_kills_around(path);
	}
	limit = group_limit(form, group);
	if (limit && (!space->group_limit || limit < space->group_limit))
		space->group_limit = limit;
}

static void find_group(uint32_t pid, struct peer_space *space)
{
	char list[CONTROL_GROUP_BYTES], group[CONTROL_GROUP_BYTES];

	control_group_list(pid, list);
	for (size_t i = 0; i < CONTROL_GROUP_FORMS && !space->group_events[0]; i++)
		if (control_group_find(&control_group_forms[i], list, group))
			group_look(&control_group_forms[i], group, space);
}

// A forked child is in its parent's group: of children that come one after the other the kernel is
// asked once a second which that is. How often it has killed there is asked each time.
static void find_group_of_child(uint32_t pid, int pidfd, uint32_t parent_image,
				struct peer_space *space)
{
	static _Thread_local struct {
		uint32_t parent_image;
		uint64_t until_ns;
		struct peer_space space;
	} last;
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (parent_image != last.parent_image || now >= last.until_ns) {
		find_group(pid, space);
		last.parent_image = peer_ended(pidfd) ? 0 : parent_image;
		last.until_ns = now + 1000000000u;
		last.space = *space;
		return;
	}
	space->group_limit = last.space.group_limit;
	if (!last.space.group_events[0] ||
	    !group_read(last.space.group_events, &space->group_kills))
		return;
	memcpy(space->group_events, last.space.group_events, sizeof space->group_events);
	space->group_counts_inner = last.space.group_counts_inner;
	if (space->group_counts_inner)
		space->group_around_kills = group_kills_around(space->group_events);
}

// How many more than at the beginning; 0 also where it cannot be known.
uint64_t peer_killed(const struct peer_space *space)
{
	uint64_t before = space->group_kills, now;

	if (!space->group_events[0])
		return 0;
	now = group_kills(space->group_events);
	// A group of its own (a scope, a container) goes with its last process.
	if (space->group_counts_inner && access(space->group_events, R_OK) != 0) {
		before = space->group_around_kills;
		now = group_kills_around(space->group_events);
	}
	return now > before ? now - before : 0;
}

// Each gets the lowest number that is free.
//
// If the two highest numbers below the limit are taken, the recorder's socket and segment have no
// room. Returns the limit then; else 0.
uint64_t peer_full_files(uint32_t pid)
{
	uint64_t limit = limit_of(pid, RLIMIT_NOFILE, "Max open files");
	char path[64];

	for (uint64_t i = 1; i <= 2 && i <= limit; i++) {
		snprintf(path, sizeof path, "/proc/%u/fd/%" PRIu64, pid, limit - i);
		if (faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			return limit;
	}
	return 0;
}

// mmap_min_addr is the system's, and read once.
bool peer_space(uint32_t pid, int pidfd, int bits, uint32_t parent_image, struct peer_space *space)
{
	char path[64], text[4096];

	static _Atomic uint64_t low = UINT64_MAX; // not asked yet: it is the system's

	if (low == UINT64_MAX)
		low = read_proc("/proc/sys/vm/mmap_min_addr", text, sizeof text)
			      ? strtoull(text, NULL, 10)
			      : 0;
	*space = (struct peer_space){ .low = low, .end = bits == 32 ? END_32 : END_64 };
	snprintf(path, sizeof path, "/proc/%u/personality", pid);
	if (bits == 32 && read_proc(path, text, sizeof text) &&
	    strtoull(text, NULL, 16) & PERSONALITY_3GB)
		space->end = END_3GB;
	if (parent_image != 0)
		find_group_of_child(pid, pidfd, parent_image, space);
	else
		find_group(pid, space);
	space->mapped_limit = limit_of(pid, RLIMIT_AS, "Max address space");
	space->data_limit = limit_of(pid, RLIMIT_DATA, "Max data size");
	return !peer_ended(pidfd);
}

bool peer_thread_name(uint32_t pid, uint32_t tid, char name[16])
{
	char bytes[64], path[64];
	size_t length;

	snprintf(path, sizeof path, "/proc/%u/task/%u/comm", pid, tid);
	length = read_proc(path, bytes, sizeof bytes);
	if (length == 0)
		return false;
	if (bytes[length - 1] == '\n')
		length--;
	memset(name, 0, 16);
	memcpy(name, bytes, length < 15 ? length : 15);
	return true;
}

bool peer_thread_lives(uint32_t pid, uint32_t tid)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%u/task/%u", pid, tid);
	return access(path, F_OK) == 0 || errno != ENOENT;
}

// In the process's own root, as a container has other files at the same paths; else in ours.
void peer_file(uint32_t pid, const char *path, struct str *seen, uint64_t *size, uint64_t *mtime_ns)
{
	char link[64], root[4096];
	struct stat status;
	ssize_t length;

	*size = 0;
	*mtime_ns = 0;
	str_clear(seen);
	snprintf(link, sizeof link, "/proc/%u/root", pid);
	length = readlink(link, root, sizeof root - 1);
	if (length > 1 && path[0] == '/') {
		str_add_bytes(seen, root, (size_t)length);
		str_add(seen, path);
		if (stat(str_get(seen), &status) != 0)
			str_clear(seen);
	}
	if (seen->length == 0) {
		str_add(seen, path);
		if (stat(path, &status) != 0)
			return;
	}
	if (!S_ISREG(status.st_mode))
		return;
	*size = (uint64_t)status.st_size;
	*mtime_ns =
		(uint64_t)status.st_mtim.tv_sec * 1000000000u + (uint64_t)status.st_mtim.tv_nsec;
}
