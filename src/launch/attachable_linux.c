// Everything that can speak against attaching to a process, asked before it is touched, each with
// words that say what to do: is there such a process; is it a thread of one, traced by another,
// or stopped (attachable_by_state); may we trace it, by its user, Yama and capabilities
// (…_by_rights); which class has it (…_by_file), and which C library (…_by_libraries); would it
// find the recorder's file and our socket under the same names (…_by_place).
//
// For example, root's `record -p 4711` of a program in a container: the process exists, no other
// traces it, root may trace all; the recorder's path leads to no file in its root, and that is the
// answer, with the words to copy it there.
//
// What cannot be seen from outside (a lock that is held, a thread in the middle of malloc) is
// found later, by the recorder itself.
#include "launch/attachable_linux.h"

#include "base/mem.h"
#include "launch/loader_file_linux.h"
#include "launch/objects_linux.h"
#include "launch/preload.h"
#include "launch/tracee_linux.h"
#include "os/now.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	ATTACHABLE_STATUS_BYTES = 8192,
	ATTACHABLE_CAP_PTRACE = 19,
	ATTACHABLE_DEPTH_MAX = 1000,
	ATTACHABLE_NAP_MS = 10,
	ATTACHABLE_TELL_MS = 1000,
	ATTACHABLE_EXITING = 4, // of flags in /proc/PID/stat: PF_EXITING
};

// Signals that end what a thread does for us. The kernel would make them deadly where they are
// ignored.
static const unsigned long attachable_raised = 1ul << (SIGSEGV - 1) | 1ul << (SIGTRAP - 1);

struct attachable_status {
	char text[ATTACHABLE_STATUS_BYTES];
};

// Files of /proc are read by one read: the kernel makes the text when it is asked for, and a second
// read might see another moment.
static bool attachable_read(const char *who, const char *what, char *out, size_t size)
{
	char path[PATH_MAX];
	ssize_t got;
	int fd;

	ASSERT(size > 1);
	snprintf(path, sizeof(path), "/proc/%s/%s", who, what);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	got = read(fd, out, size - 1);
	close(fd);
	out[got > 0 ? got : 0] = 0;
	return got > 0;
}

static bool attachable_status(const char *who, struct attachable_status *status)
{
	return attachable_read(who, "status", status->text, sizeof(status->text));
}

// What stands behind "\nName:\t"; "" if it is not there.
// /proc/PID/status has a line for each, "Name:\tvalue".
static const char *attachable_field(const struct attachable_status *status, const char *name)
{
	const char *at = strstr(status->text, name);

	return at ? at + strlen(name) : "";
}

static unsigned long attachable_number(const struct attachable_status *status, const char *name,
				       int base)
{
	return strtoul(attachable_field(status, name), NULL, base);
}

bool attachable_may_all(void)
{
	struct attachable_status own;

	return attachable_status("self", &own) &&
	       attachable_number(&own, "\nCapEff:\t", 16) >> ATTACHABLE_CAP_PTRACE & 1;
}

// The process that traces it: the kernel names a thread. 0: none does.
static pid_t attachable_traced_by(const struct attachable_status *status)
{
	unsigned long thread = attachable_number(status, "\nTracerPid:\t", 10);
	struct attachable_status tracer;
	char who[24];

	snprintf(who, sizeof(who), "%lu", thread);
	return thread && attachable_status(who, &tracer)
		       ? (pid_t)attachable_number(&tracer, "\nTgid:\t", 10)
		       : (pid_t)thread;
}

pid_t attachable_tracer(pid_t pid)
{
	struct attachable_status status;
	char who[16];

	snprintf(who, sizeof(who), "%d", (int)pid);
	return attachable_status(who, &status) ? attachable_traced_by(&status) : 0;
}

// Yama's scope 1 lets a process trace its own descendants.
static bool attachable_descends(pid_t pid)
{
	struct attachable_status status;
	char who[16];

	for (int i = 0; i < ATTACHABLE_DEPTH_MAX && pid > 1; i++) {
		if (pid == getpid())
			return true;
		snprintf(who, sizeof(who), "%d", (int)pid);
		if (!attachable_status(who, &status))
			return false;
		pid = (pid_t)attachable_number(&status, "\nPPid:\t", 10);
	}
	return false;
}

// Yama's rule. 0, which asks for nothing, where the kernel was built without it.
int attachable_scope(void)
{
	char text[16] = "0";
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '0';
	close(fd);
	return atoi(text);
}

// In the order of what decides: Yama's highest scope stops even root, CAP_SYS_PTRACE passes by all
// else; then the user, Yama's lower scopes, and what the process has asked for itself. The owner of
// /proc/PID/maps is root where a process is not dumpable: the kernel shows by that what it would
// answer.
static bool attachable_by_rights(pid_t pid, const struct attachable_status *status, struct err *err)
{
	unsigned long user = attachable_number(status, "\nUid:\t", 10);
	int scope = attachable_scope();
	struct stat owner;
	char path[32];

	if (scope >= 3)
		return err_set(err, ERR_USAGE,
			       "process %d cannot be attached to: kernel.yama.ptrace_scope is %d, "
			       "which forbids it to everybody until the next boot (try: tidemark "
			       "record, which starts the program)",
			       (int)pid, scope);
	if (attachable_may_all())
		return true;
	if (user != geteuid())
		return err_set(err, ERR_USAGE,
			       "process %d belongs to another user, %lu (try: sudo tidemark record "
			       "-p %d)",
			       (int)pid, user, (int)pid);
	if (scope == 2 || (scope == 1 && !attachable_descends(pid)))
		return err_set(err, ERR_USAGE,
			       "process %d may not be attached to: kernel.yama.ptrace_scope is %d "
			       "(try: sudo tidemark record -p %d%s)",
			       (int)pid, scope, (int)pid,
			       scope == 1 ? ", or sudo sysctl kernel.yama.ptrace_scope=0" : "");
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	if (stat(path, &owner) == 0 && owner.st_uid != user)
		return err_set(
			err, ERR_USAGE,
			"process %d has protected itself (PR_SET_DUMPABLE, or its file "
			"cannot be read or has rights of its own) (try: sudo tidemark record "
			"-p %d)",
			(int)pid, (int)pid);
	return true;
}

// Each thread may have a filter of its own (seccomp without TSYNC), so all are asked.
bool attachable_is_filtered(pid_t pid)
{
	size_t count;
	pid_t *list = tracee_list(pid, &count);
	bool found = false;

	for (size_t i = 0; i < count && !found; i++) {
		struct attachable_status status;
		char who[16];

		snprintf(who, sizeof(who), "%d", (int)list[i]);
		found = attachable_status(who, &status) &&
			attachable_number(&status, "\nSeccomp:\t", 10);
	}
	mem_free(list);
	return found;
}

static bool attachable_by_state(pid_t pid, const struct attachable_status *status, struct err *err)
{
	char state = *attachable_field(status, "\nState:\t");
	unsigned long leader = attachable_number(status, "\nTgid:\t", 10);
	pid_t tracer = attachable_traced_by(status);

	// /proc/TID is there for each thread, though no list shows it.
	if (leader != (unsigned long)pid)
		return err_set(err, ERR_USAGE, "%d is a thread of process %lu (try: -p %lu)",
			       (int)pid, leader, leader);
	if (pid == getpid())
		return err_set(err, ERR_USAGE, "process %d is tidemark itself", (int)pid);
	if (state != 'Z' && state != 'X' && !*attachable_field(status, "\nVmSize:"))
		return err_set(err, ERR_USAGE,
			       "process %d is a thread of the kernel, which has no memory of its "
			       "own to record",
			       (int)pid);
	if (state == 'Z' && attachable_number(status, "\nThreads:\t", 10) > 1)
		return err_set(
			err, ERR_USAGE,
			"the main thread of process %d has ended (pthread_exit), and other "
			"threads go on: what is mapped cannot be seen (try: tidemark record, "
			"which starts the program)",
			(int)pid);
	if (state == 'Z' || state == 'X')
		return err_set(err, ERR_USAGE, "process %d has ended", (int)pid);
	if (tracer)
		return err_set(err, ERR_USAGE,
			       "process %d is traced by process %d already, and only one can "
			       "trace it (try: end that debugger or strace)",
			       (int)pid, (int)tracer);
	if (state == 'T' || state == 't')
		return err_set(err, ERR_USAGE, "process %d is stopped (try: kill -CONT %d)",
			       (int)pid, (int)pid);
	if (attachable_number(status, "\nSigIgn:\t", 16) & attachable_raised)
		return err_set(
			err, ERR_USAGE,
			"process %d ignores SIGSEGV or SIGTRAP, which would be so no more (try: "
			"tidemark record, which starts the program)",
			(int)pid);
	if (attachable_is_filtered(pid))
		return err_set(err, ERR_USAGE,
			       "process %d is under a system-call filter (seccomp), which may kill "
			       "it for loading a library (try: tidemark record, which starts the "
			       "program)",
			       (int)pid);
	return true;
}

// `library` becomes the recorder of its class.
static bool attachable_by_file(pid_t pid, struct str *library, struct err *err)
{
	unsigned char head[20] = { 0 };
	char who[16];

	snprintf(who, sizeof(who), "%d", (int)pid);
	if (!attachable_read(who, "exe", (char *)head, sizeof(head)))
		return attachable_refused(pid, errno, err);
	// A program of 32 bits needs the recorder of its class; which C library it has is asked
	// later.
	if (head[EI_CLASS] == ELFCLASS32 && head[18] == EM_386)
		return preload_find_narrow(library) ||
		       err_set(err, ERR_USAGE,
			       "process %d is a program of 32 bits, for which there is no "
			       "recorder beside %s (try: a tidemark that was built where gcc can "
			       "do -m32)",
			       (int)pid, str_get(library));
	if (head[EI_CLASS] != ELFCLASS64 || head[18] != EM_X86_64)
		return err_set(err, ERR_USAGE,
			       "process %d runs code for another processor, which is not recorded",
			       (int)pid);
	return true;
}

// Both must find the same file under the same name, and the collector's socket.
// A process in another root or mount namespace opens paths as it sees them: /proc/PID/root shows
// them to us.
static bool attachable_by_place(pid_t pid, const char *library, struct err *err)
{
	char path[PATH_MAX + 32], here[64] = "", there[64] = "";
	struct stat ours, theirs;

	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, library);
	if (stat(library, &ours) != 0)
		return err_errno(err, errno, "cannot read %s", library);
	if (stat(path, &theirs) != 0 || ours.st_ino != theirs.st_ino ||
	    ours.st_dev != theirs.st_dev)
		return err_set(err, ERR_USAGE,
			       "process %d sees other files (a container, a chroot), and not %s "
			       "(try: tidemark in there; or name a copy that has the same path "
			       "inside and outside by TIDEMARK_LIBRARY)",
			       (int)pid, library);
	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	if (readlink(path, there, sizeof(there) - 1) > 0 &&
	    readlink("/proc/self/ns/net", here, sizeof(here) - 1) > 0 && strcmp(here, there) != 0)
		return err_set(
			err, ERR_USAGE,
			"process %d is in a network namespace of its own (a container), from "
			"which the collector is not to be reached (try: nsenter --net -t %d "
			"tidemark record -p %d)",
			(int)pid, (int)pid, (int)pid);
	return true;
}

// A program that is linked statically, into which the recorder comes without a dynamic linker: only
// where its C library can be given room for the recorder's variables in threads that are there.
static bool attachable_alone(pid_t pid, const struct objects *objects, struct err *err)
{
	const struct objects_one *program = objects_program(objects);
	struct loader_file file;
	struct str why = { 0 };
	char path[32];
	bool linked = false;
	int fd;

	for (size_t i = 0; i < objects->count; i++)
		linked |= objects->list[i].code_end && &objects->list[i] != program &&
			  !strstr(objects->list[i].path, "/libtidemark");
	if (linked)
		return err_set(err, ERR_USAGE,
			       "process %d is statically linked, and has loaded libraries by "
			       "itself (try: tidemark record, which starts the program)",
			       (int)pid);
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return attachable_refused(pid, errno, err);
	if (loader_file_look(fd, &why))
		err_set(err, ERR_USAGE, "process %d is statically linked, and %s", (int)pid,
			str_get(&why));
	// From here on `linked` is the answer.
	else if (!loader_file_read(fd, &file) || !file.main_map || !file.tls_used)
		err_set(err, ERR_USAGE,
			"process %d is statically linked with a C library (musl) whose threads "
			"have no room for the recorder's variables when they run already (try: "
			"tidemark record, which starts the program)",
			(int)pid);
	else
		linked = true;
	str_fini(&why);
	close(fd);
	return linked;
}

// `library` becomes the recorder of its C library.
static bool attachable_by_libraries(pid_t pid, struct str *library, struct err *err)
{
	struct objects objects;
	bool musl, libc, alone, narrow, may;

	if (!objects_read(&objects, pid)) {
		objects_fini(&objects);
		return attachable_refused(pid, errno, err);
	}
	musl = objects_has_musl(&objects);
	libc = objects_libc(&objects);
	alone = objects.alone;
	narrow = objects.narrow;
	may = !alone || attachable_alone(pid, &objects, err);
	objects_fini(&objects);
	if (alone)
		return may;
	if (musl && (narrow || !preload_find_musl(library)))
		return err_set(
			err, ERR_USAGE,
			"process %d is a %sprogram of musl's, for which there is no recorder "
			"beside %s (try: tidemark record, which starts the program)",
			(int)pid, narrow ? "32-bit " : "", str_get(library));
	if (!libc)
		return err_set(err, ERR_USAGE,
			       "process %d is %s: there is nothing that could load the recorder "
			       "(try: a dynamic build)",
			       (int)pid,
			       narrow ? "statically linked, and not of 64 bits"
				      : "a program with another C library than glibc");
	return true;
}

bool attachable_refused(pid_t pid, int number, struct err *err)
{
	pid_t tracer = attachable_tracer(pid);
	char text[128];

	if (number == ESRCH)
		return err_set(err, ERR_IO, "process %d has ended", (int)pid);
	if (tracer)
		return err_set(err, ERR_IO,
			       "process %d is traced by process %d, and only one can trace it "
			       "(try: end that debugger, or again)",
			       (int)pid, (int)tracer);
	return err_set(err, ERR_IO,
		       "process %d may not be attached to: %s (try: sudo tidemark record -p %d; in "
		       "a container, with the capability CAP_SYS_PTRACE)",
		       (int)pid, err_text(number, text, sizeof(text)), (int)pid);
}

// Whether the call that a thread is in makes a process. The two classes number calls differently:
// 190 is vfork of 32 bits, and fsetxattr of 64.
static bool attachable_forks(const char *thread)
{
	enum { CALLS = 3 };
	static const int calls[2][CALLS] = { { 58, 56, 435 },
					     { 190, 120, 435 } }; // vfork, clone, clone3
	char text[256], head[EI_CLASS + 2];
	bool forks = false, narrow;

	narrow = attachable_read(thread, "exe", head, sizeof(head)) && head[EI_CLASS] == ELFCLASS32;
	if (attachable_read(thread, "syscall", text, sizeof(text)))
		for (size_t i = 0; i < CALLS; i++)
			forks |= atoi(text) == calls[narrow][i];
	return forks;
}

// A thread that cannot be stopped now, into `what` why. 0: all can be. `foreign`: never.
// A thread in vfork waits for its child, and one in an uninterruptible call for the kernel:
// neither stops before that is over.
static pid_t attachable_unstoppable(pid_t pid, struct str *what, bool *foreign)
{
	size_t count;
	pid_t *list = tracee_list(pid, &count);
	pid_t found = 0;

	for (size_t i = 0; i < count && !found; i++) {
		struct attachable_status status;
		char who[16];
		pid_t tracer;

		snprintf(who, sizeof(who), "%d", (int)list[i]);
		if (!attachable_status(who, &status))
			continue;
		tracer = attachable_traced_by(&status);
		*foreign = tracer && tracer != getpid();
		if (!*foreign && *attachable_field(&status, "\nState:\t") != 'D')
			continue;
		found = list[i];
		str_clear(what);
		if (*foreign)
			str_format(what, "is traced by process %d (try: end that debugger)",
				   (int)tracer);
		else if (attachable_forks(who))
			str_add(what, "waits in vfork for a child that has neither ended nor "
				      "started a program");
		else
			str_add(what, "is in the kernel where nothing can stop it (a device, or a "
				      "file system of the network)");
	}
	mem_free(list);
	return found;
}

bool attachable_await(pid_t pid, unsigned limit_ms, int wake_fd, void (*tell)(const char *line),
		      struct err *err)
{
	uint64_t began_ns = now_steady_ns();
	struct str what = { 0 }, line = { 0 };
	bool foreign = false, given_up = false;
	pid_t thread;

	ASSERT(pid > 0);
	while ((thread = attachable_unstoppable(pid, &what, &foreign)) != 0 && !given_up) {
		// poll is the nap as well: ten milliseconds, or until the user presses Ctrl-C.
		struct pollfd wake = { .fd = wake_fd, .events = POLLIN };
		uint64_t waited_ms = (now_steady_ns() - began_ns) / 1000000;

		if (tell && !foreign && line.length == 0 && waited_ms >= ATTACHABLE_TELL_MS) {
			str_format(&line, "waiting for thread %d of process %d, which %s",
				   (int)thread, (int)pid, str_get(&what));
			tell(str_get(&line));
		}
		given_up = foreign || waited_ms >= limit_ms ||
			   poll(&wake, 1, ATTACHABLE_NAP_MS) > 0;
	}
	if (thread)
		err_set(err, ERR_IO, "process %d cannot be stopped: its thread %d %s", (int)pid,
			(int)thread, str_get(&what));
	STR_FINI(&line, &what);
	return thread == 0;
}

// Of a process that ends there is first no memory, and then nothing but its number.
static bool attachable_has_ended(pid_t pid)
{
	struct attachable_status status;
	char who[16], text[256], *at;
	unsigned flags = 0;

	snprintf(who, sizeof(who), "%d", (int)pid);
	if (!attachable_status(who, &status))
		return true;
	if (attachable_number(&status, "\nThreads:\t", 10) > 1 ||
	    *attachable_field(&status, "\nVmSize:"))
		return false;
	at = attachable_read(who, "stat", text, sizeof(text)) ? strrchr(text, ')') : NULL;
	return !at || (sscanf(at, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 &&
		       (flags & ATTACHABLE_EXITING));
}

enum attachable attachable_look(pid_t pid, struct str *library, struct err *err)
{
	struct attachable_status status;
	char who[16];

	snprintf(who, sizeof(who), "%d", (int)pid);
	if (!attachable_status(who, &status)) {
		err_set(err, ERR_USAGE, "there is no process %d", (int)pid);
		return ATTACHABLE_NOT_THERE;
	}
	if (attachable_by_state(pid, &status, err) && attachable_by_rights(pid, &status, err) &&
	    attachable_by_file(pid, library, err) && attachable_by_libraries(pid, library, err) &&
	    attachable_by_place(pid, str_get(library), err))
		return ATTACHABLE;
	// What was said of it is then of what is left of it.
	if (attachable_has_ended(pid))
		err_set(err, ERR_USAGE, "process %d has ended", (int)pid);
	return ATTACHABLE_NOT;
}

char **attachable_arguments(pid_t pid, struct str *program)
{
	static const char deleted[] = " (deleted)"; // as the kernel says it
	static char text[1 << 16];
	size_t count = 0, capacity = 0;
	char who[16], link[32], path[PATH_MAX];
	char **list = NULL;
	ssize_t length;

	snprintf(who, sizeof(who), "%d", (int)pid);
	memset(text, 0, sizeof(text));
	attachable_read(who, "cmdline", text, sizeof(text) - 1);
	snprintf(link, sizeof(link), "/proc/%s/exe", who);
	length = readlink(link, path, sizeof(path) - 1);
	path[length > 0 ? length : 0] = '\0';
	if (length > (ssize_t)strlen(deleted) && str_ends_with(path, deleted))
		path[(size_t)length - strlen(deleted)] = '\0';
	str_add(program, path);
	// Words end with NULs, and two NULs end the list: the buffer has one more than was read. Of
	// a process that has none (a program may overwrite them) its path is the only word.
	for (const char *at = text; *at || !list; at += strlen(at) + 1) {
		MEM_ROOM(list, capacity, count + 2);
		list[count++] = mem_copy_text(*at ? at : path);
		list[count] = NULL;
	}
	return list;
}
