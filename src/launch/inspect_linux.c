// For example, a script that begins "#!/usr/bin/env python3": what the kernel runs is /usr/bin/env,
// and that is what is looked at, for its class, its interpreter, and whether it runs with other
// rights. A file that cannot be read says nothing, and is started all the same: the kernel will
// know.
#include "launch/inspect.h"

#include "base/mem.h"
#include "launch/elf_look.h"
#include "launch/loader_file_linux.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { INSPECT_SCRIPTS_MAX = 4, INSPECT_LINE_MAX = 256 };

// The interpreter in a `#!` line, or false.
static bool inspect_interpreter(int fd, char interpreter[static INSPECT_LINE_MAX])
{
	char line[INSPECT_LINE_MAX];
	ssize_t got = pread(fd, line, sizeof(line) - 1, 0);
	char *at;

	if (got < 3 || line[0] != '#' || line[1] != '!')
		return false;
	line[got] = '\0';
	at = line + 2 + strspn(line + 2, " \t");
	at[strcspn(at, " \t\r\n")] = '\0';
	memcpy(interpreter, at, strlen(at) + 1);
	return at[0] != '\0';
}

// Open what will really run: `path`, or the interpreter that its `#!` line leads to. The last name
// is in inspect->file. -1: not readable, which says nothing. The kernel follows a few interpreters
// of interpreters and then refuses (ELOOP); so do we.
static int inspect_open(struct inspect *inspect, const char *path)
{
	char interpreter[INSPECT_LINE_MAX];
	int fd;

	str_add(&inspect->file, path);
	for (int i = 0;; i++) {
		fd = open(str_get(&inspect->file), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		if (fd < 0 || i == INSPECT_SCRIPTS_MAX || !inspect_interpreter(fd, interpreter))
			return fd;
		close(fd);
		str_clear(&inspect->file);
		str_add(&inspect->file, interpreter);
	}
}

// What gives the program rights that we do not have, as the kernel decides it at exec; NULL: none.
static const char *inspect_rights(const char *path)
{
	struct stat status;
	struct statvfs filesystem;
	char capability[64];

	if (stat(path, &status) != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
		return NULL;
	if (statvfs(path, &filesystem) == 0 && (filesystem.f_flag & ST_NOSUID))
		return NULL;
	if ((status.st_mode & S_ISUID) && status.st_uid != geteuid())
		return "setuid";
	if ((status.st_mode & S_ISGID) && (status.st_mode & S_IXGRP) && status.st_gid != getegid())
		return "setgid";
	if (getuid() != 0 &&
	    getxattr(path, "security.capability", capability, sizeof(capability)) > 0)
		return "given capabilities";
	return NULL;
}

// Whether an AddressSanitizer that is there lets another library come before it.
// AddressSanitizer looks at its own place in the list of libraries and ends a program in which it
// is not the first, unless it was told not to.
static bool inspect_asan_follows(void)
{
	const char *options = getenv("ASAN_OPTIONS");

	return options && (strstr(options, "verify_asan_link_order=0") ||
			   strstr(options, "verify_asan_link_order=n") ||
			   strstr(options, "verify_asan_link_order=f"));
}

static bool inspect_preloads_asan(void)
{
	const char *list = getenv("LD_PRELOAD");

	return list && (strstr(list, "libasan.so") || strstr(list, "libclang_rt.asan"));
}

// Nothing is preloaded there.
static void inspect_static(struct inspect *inspect, int fd)
{
	struct str why = { 0 };

	inspect->enters = loader_file_look(fd, &why) == 0;
	if (!inspect->enters) {
		inspect->verdict = INSPECT_STATIC;
		str_format(&inspect->why,
			   "%s is linked statically, and %s; its memory calls are not seen "
			   "(programs that it starts are)",
			   str_get(&inspect->file), str_get(&why));
	}
	str_fini(&why);
}

static void inspect_elf(struct inspect *inspect, int fd, const struct elf_look *look,
			bool recorder_32)
{
	const char *file = str_get(&inspect->file);
	bool i386 = look->machine == EM_386 && look->bits == 32;

	if (!look->elf)
		return;
	inspect->bits = look->bits;
	inspect->musl = look->musl;
	// x32: the processor's 64-bit mode with addresses of 32 bits, a class of its own.
	if (look->machine == EM_X86_64 && look->bits == 32) {
		inspect->verdict = INSPECT_BITS;
		str_format(&inspect->why, "%s is an x32 program: it is not recorded", file);
	} else if (i386 && !recorder_32) {
		inspect->verdict = INSPECT_BITS;
		str_format(
			&inspect->why,
			"%s is a 32-bit program: it is not recorded, because there is no recorder "
			"for such in preload/lib32 beside libtidemark.so (try: make install, or a "
			"build where gcc can do -m32)",
			file);
	} else if (i386 && look->musl) {
		inspect->verdict = INSPECT_BITS;
		str_format(&inspect->why, "%s is a 32-bit program for musl: it is not recorded",
			   file);
	} else if (look->machine != EM_X86_64 && !i386) {
		inspect->verdict = INSPECT_MACHINE;
		str_format(&inspect->why, "%s is for another processor: it is not recorded", file);
	} else if (!look->interpreter && !look->is_library) {
		inspect_static(inspect, fd);
	} else if ((look->needs_asan || inspect_preloads_asan()) && !inspect_asan_follows()) {
		inspect->verdict = INSPECT_ASAN;
		str_format(&inspect->why,
			   "%s has a shared AddressSanitizer, which refuses to be loaded after "
			   "another library: neither it nor what it starts is recorded (try: "
			   "ASAN_OPTIONS=verify_asan_link_order=0)",
			   file);
	}
}

void inspect_program(struct inspect *inspect, const char *path, bool recorder_32)
{
	const char *rights;
	int fd;

	memset(inspect, 0, sizeof(*inspect));
	fd = inspect_open(inspect, path);
	if (fd >= 0) {
		struct elf_look look = elf_look_at(fd);

		inspect_elf(inspect, fd, &look, recorder_32);
		close(fd);
	}
	ASSERT(inspect->file.length > 0);
	// Also of a program of 32 bits: that the system loads nothing into it is what matters more.
	rights = inspect_rights(str_get(&inspect->file));
	if (rights && inspect->verdict != INSPECT_STATIC) {
		inspect->verdict = INSPECT_PRIVILEGED;
		str_clear(&inspect->why);
		str_format(&inspect->why,
			   "%s is %s: the system loads nothing into it, so its memory calls are "
			   "not seen (try: record as the user it runs as)",
			   str_get(&inspect->file), rights);
	}
}

void inspect_fini(struct inspect *inspect)
{
	STR_FINI(&inspect->file, &inspect->why);
}
