// A perf map is a file in /tmp, where anybody may put one. It is read only if it is a regular file
// of the process's own user or root's, no link, and was written since the process began: one of pid
// 4711 may be left over from another process 4711 of last week. For that the start of the process,
// which the kernel counts since boot, is turned into a date; a file that is up to a second older is
// taken, since dates of files are coarse.
#include "collect/code_lists.h"

#include "base/mem.h"
#include "collect/code_names.h"
#include "collect/peer.h"
#include "os/now.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CODE_LISTS_SLACK_NS = 1000000000 }; // file systems' times are coarse

// When the process began, since 1970; 0: not known.
static uint64_t find_began(uint32_t pid)
{
	uint64_t age_ns = peer_age_ns(pid);

	return age_ns != 0 ? now_wall_ns() - age_ns : 0;
}

// By /proc the folder is the one that the process sees, also in a container. It is held, so that it
// can be read after the process has ended.
void code_lists_open(struct code_lists *lists, uint32_t pid)
{
	struct stat about;
	char path[64];

	memset(lists, 0, sizeof *lists);
	snprintf(path, sizeof path, "/proc/%u", pid);
	lists->user = stat(path, &about) == 0 ? about.st_uid : getuid();
	lists->began_ns = find_began(pid);
	snprintf(path, sizeof path, "/proc/%u/root/tmp", pid);
	lists->folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) + 1;
	if (lists->folder <= 0)
		lists->folder = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC) + 1;
}

// Nothing is read of /proc: what it would say of the child is known.
void code_lists_open_child(struct code_lists *lists, uint32_t pid, const struct code_lists *parent,
			   uint32_t user, uint64_t age_ns)
{
	int folder = parent->folder > 0 ? fcntl(parent->folder - 1, F_DUPFD_CLOEXEC, 0) : -1;

	if (folder < 0)
		code_lists_open(lists, pid);
	else
		*lists = (struct code_lists){ .folder = folder + 1,
					      .user = user,
					      .began_ns = now_wall_ns() - age_ns };
}

void code_lists_close(struct code_lists *lists)
{
	if (lists->folder > 0)
		close(lists->folder - 1);
	if (lists->dump > 0)
		close(lists->dump - 1);
	memset(lists, 0, sizeof *lists);
}

static const char *base_of(const char *path, size_t length)
{
	const char *at = path + length;

	while (at > path && at[-1] != '/')
		at--;
	return at;
}

// A runtime maps its jitdump once, executable, for perf to see it: "jit-4711.dump". It is opened at
// once, through the process's root, since it may be gone later.
void code_lists_mapped(struct code_lists *lists, uint32_t pid, const char *path, size_t length)
{
	const char *base = base_of(path, length);
	size_t base_length = (size_t)(path + length - base);
	char seen[4200];

	if (lists->dump > 0 || base_length < 10 || length > 4096 || path[0] != '/' ||
	    memcmp(base, "jit-", 4) != 0 || memcmp(path + length - 5, ".dump", 5) != 0)
		return;
	snprintf(seen, sizeof seen, "/proc/%u/root%.*s", pid, (int)length, path);
	lists->dump = open(seen, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) + 1;
}

// Whether it may be read; else `why` says why not.
static bool is_good(const struct code_lists *lists, int fd, struct stat *about, struct str *why)
{
	uint64_t written_ns;

	if (fstat(fd, about) != 0)
		return false;
	written_ns = (uint64_t)about->st_mtim.tv_sec * 1000000000 +
		     (uint64_t)about->st_mtim.tv_nsec + CODE_LISTS_SLACK_NS;
	if (!S_ISREG(about->st_mode))
		str_format(why, "it is not a regular file");
	else if (about->st_uid != lists->user && about->st_uid != 0)
		str_format(why, "it is another user's");
	else if (written_ns < lists->began_ns)
		return false; // another process of that number left it
	return why->length == 0;
}

// The list may grow while it is read: no more than what it had is taken.
static char *read_all(int fd, size_t size, size_t *length)
{
	char *bytes = mem_alloc(size + 1, 1);
	ssize_t got = 1;

	*length = 0;
	while (*length < size && got > 0) {
		got = pread(fd, bytes + *length, size - *length, (off_t)*length);
		*length += got > 0 ? (size_t)got : 0;
	}
	return bytes;
}

static char *read_list(const struct code_lists *lists, int fd, size_t *length, struct str *why)
{
	struct stat about;
	size_t size;

	if (!is_good(lists, fd, &about, why))
		return NULL;
	size = (size_t)about.st_size;
	if (size > CODE_NAMES_LIST_BYTES) {
		size = CODE_NAMES_LIST_BYTES;
		str_format(why, "it has more than %u MiB", CODE_NAMES_LIST_BYTES >> 20);
	}
	return read_all(fd, size, length);
}

// NONBLOCK and NOCTTY, for what has this name may be a pipe or a terminal; is_good looks what it
// is.
char *code_lists_read(const struct code_lists *lists, enum code_lists_kind kind, uint32_t own_pid,
		      size_t *length, struct str *why)
{
	char name[64], *bytes;
	int fd;

	if (kind == CODE_LISTS_DUMP)
		return lists->dump > 0 ? read_list(lists, lists->dump - 1, length, why) : NULL;
	if (lists->folder <= 0)
		return NULL;
	snprintf(name, sizeof name, "perf-%u.map", own_pid);
	fd = openat(lists->folder - 1, name,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0) {
		if (errno != ENOENT)
			str_format(why, "%s",
				   errno == ELOOP ? "it is a symbolic link" : strerror(errno));
		return NULL;
	}
	bytes = read_list(lists, fd, length, why);
	close(fd);
	return bytes;
}
