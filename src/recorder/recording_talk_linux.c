// What a process says to the collector when it begins, and what it hears: one datagram each way,
// over a socket that is closed at once.
//
// A forked child mostly does not wait to hear anything (recording_tell).
#include "recorder/recording_own.h"

#include "recorder/client.h"
#include "recorder/codemap.h"
#include "recorder/scope_linux.h"
#include "recorder/text.h"

enum {
	AF_UNIX = 1,
	SOCK_SEQPACKET = 5,
	SOCK_CLOEXEC = 0x80000,
	SOL_SOCKET = 1,
	SO_RCVTIMEO = 20,
	SCM_RIGHTS = 1,
	MSG_CMSG_CLOEXEC = 0x40000000,
	MSG_NOSIGNAL = 0x4000,
	AT_EXECFN = 31,
	TALK_EMFILE = 24,
	TALK_ANSWER_S = 20,       // how long a collector may take to answer a hello
	TALK_ARGS_MAX = 64 << 10, // as many as the collector takes of arguments
	TALK_VISITS_MAX = 3,
};

// As the kernel has them: sockaddr_un, msghdr and cmsghdr. Nothing of libc's headers can be used
// here.
struct recording_socket_name {
	uint16_t family;
	char path[108];
};

struct recording_message {
	void *name;
	uint32_t name_length;
	struct {
		void *base;
		size_t size;
	} * parts;
	size_t parts_count;
	void *control;
	size_t control_length;
	int flags;
};

struct recording_control {
	size_t length;
	int level;
	int type;
	int descriptors[SEGMENT_SPARES_AT_ONCE];
};

// 0, or a negative errno.
static long recording_connect_near(long fd, struct recording_socket_name *name)
{
	size_t length = text_length(recording_session_name);

	name->family = AF_UNIX;
	memcpy(name->path + 1, recording_session_name, length); // abstract: a NUL comes first
	return kernel(__NR_connect, fd, name, 2 + 1 + length);
}

// To the abstract name or, in another network namespace, which knows it not, by the path.
//
// 0, or a negative errno: that of the abstract name, which says more.
static long recording_connect_to(long fd)
{
	static const char before[] = SEGMENT_PATH;
	struct recording_socket_name name = { 0 };
	size_t length = text_length(recording_session_name);
	long connected = recording_connect_near(fd, &name);

	if (!kernel_failed(connected) || sizeof(before) + length > sizeof(name.path))
		return connected;
	memcpy(name.path, before, sizeof(before) - 1);
	memcpy(name.path + sizeof(before) - 1, recording_session_name, length + 1);
	return kernel_failed(kernel(__NR_connect, fd, &name, sizeof(name))) ? connected : 0;
}

// A socket that is connected to the collector and gives up after 20 s; the caller closes it. Else a
// negative errno, and recording_why is set.
long recording_connect(void)
{
	long timeout[2] = { TALK_ANSWER_S, 0 };
	long fd = kernel(__NR_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	long connected;

	if (kernel_failed(fd)) {
		recording_fail(SEGMENT_WHY_SOCKET, fd);
		return fd;
	}
	kernel(__NR_setsockopt, fd, SOL_SOCKET, SO_RCVTIMEO, timeout, sizeof(timeout));
	connected = recording_connect_to(fd);
	if (!kernel_failed(connected))
		return fd;
	recording_fail(SEGMENT_WHY_CONNECT, connected);
	kernel(__NR_close, fd);
	return connected;
}

// The path of the program that runs. It is asked for once: a forked child runs the same.
static uint32_t recording_find_exe(char *out, size_t size)
{
	long length = kernel(__NR_readlink, "/proc/self/exe", out, size);
	const char *path;

	if (length > 0)
		return (uint32_t)length;
	path = (const char *)scope_auxiliary(AT_EXECFN);
	length = path ? (long)text_length(path) : 0;
	if (length > (long)size)
		length = (long)size;
	memcpy(out, path, (size_t)length);
	return (uint32_t)length;
}

// Large: not on a stranger's stack. Kept over fork, for the path.
static struct segment_hello hello __attribute__((aligned(2048)));

// QEMU answers what /proc/self/exe is by the program that it runs, and hands on to the kernel what
// /proc/thread-self/exe is. Of any other program both are the same.
//
// What is asked first is written where the path will be (recording_find_exe).
bool recording_is_emulated(void)
{
	static char said[sizeof(hello.exe)];
	long length =
		kernel(__NR_readlink, "/proc/thread-self/exe", hello.exe, sizeof(hello.exe) - 1);
	const char *name = hello.exe;

	for (const char *at = hello.exe; length > 0 && at < hello.exe + length; at++)
		name = *at == '/' ? at + 1 : name;
	return length > 0 && text_after(name, "qemu-") &&
	       kernel(__NR_readlink, "/proc/self/exe", said, sizeof(said) - 1) > 0 &&
	       !text_equal(hello.exe, said);
}

// Where the program's arguments are: up to TALK_ARGS_MAX bytes are sent. NULL: not known.
static const char *recording_args;
static size_t recording_args_bytes;

void recording_find_args(void)
{
	recording_args = scope_arguments(&recording_args_bytes);
	if (recording_args_bytes > TALK_ARGS_MAX)
		recording_args_bytes = TALK_ARGS_MAX;
}

bool recording_knows_args(void)
{
	return recording_args != NULL;
}

// The path is sent only as long as it is, so a hello has 72 bytes and the path. Returns how many.
static long recording_make_hello(uint32_t start, uint32_t pid, uint32_t spares)
{
	bool forked = start == SEGMENT_START_FORK || start == SEGMENT_START_FORK_HELPED;

	hello.magic = SEGMENT_MAGIC;
	hello.version = SEGMENT_VERSION;
	hello.start = start;
	hello.pid = pid;
	hello.parent_pid = (uint32_t)kernel(__NR_getppid);
	hello.parent_image = recording_image;
	hello.frames_count = forked ? codemap_frames_count() : spares ? spares : 1;
	hello.modules_count = forked ? codemap_modules_count() : 1;
	hello.pools_count = client_pools_count();
	hello.abi = 8 * sizeof(void *);
	hello.fork_lane = forked ? recording_fork_lane : 0;
	hello.fork_head = forked ? recording_fork_head : 0;
	hello.time_ns = 0;
	hello.image = 0;
	if (!hello.exe_length)
		hello.exe_length = recording_find_exe(hello.exe, sizeof(hello.exe));
	return (long)(offsetof(struct segment_hello, exe) + hello.exe_length);
}

// False: it could not be sent in one piece.
static bool recording_say_hello(long fd, uint32_t start, uint32_t pid, uint32_t spares)
{
	long length = recording_make_hello(start, pid, spares);

	return kernel(__NR_sendto, fd, &hello, length, MSG_NOSIGNAL, 0, 0) == length;
}

// The kernel copies the arguments from where they are: a place that is no memory any more is an
// error here, and no fault.
bool recording_tell(uint32_t pid, uint32_t image, uint64_t time_ns, int segment_fd)
{
	struct {
		const void *base;
		size_t size;
	} parts[2] = { { &hello, 0 }, { recording_args, recording_args_bytes } };
	struct recording_control control = {
		.length = sizeof(size_t) + 2 * sizeof(int) + sizeof(int),
		.level = SOL_SOCKET,
		.type = SCM_RIGHTS,
		.descriptors = { segment_fd },
	};
	struct recording_message message = {
		.parts = (void *)parts,
		.parts_count = 2,
		.control = &control,
		.control_length = control.length,
	};
	struct recording_socket_name name = { 0 };
	bool sent = false;
	long fd;

	fd = kernel(__NR_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (kernel_failed(fd))
		return false;
	if (!kernel_failed(recording_connect_near(fd, &name))) {
		parts[0].size = (size_t)recording_make_hello(SEGMENT_START_FORK, pid, 0);
		hello.time_ns = time_ns;
		hello.image = image;
		sent = kernel(__NR_sendmsg, fd, &message, MSG_NOSIGNAL) ==
		       (long)(parts[0].size + parts[1].size);
	}
	kernel(__NR_close, fd);
	return sent;
}

// The answer and its descriptors. False: refused, or no answer.
//
// Signals are blocked, but a wait with a timeout is interrupted when who was stopped (SIGSTOP, a
// debugger, cpulimit) goes on.
//
// Descriptors are copied out even if the answer is refused, so that the caller can close what came.
static bool recording_hear(long fd, uint32_t wanted, struct recording_answer *answer)
{
	struct segment_welcome *welcome = &answer->welcome;
	struct {
		void *base;
		size_t size;
	} part = { welcome, sizeof(*welcome) };
	struct recording_control control = { 0 };
	struct recording_message message = {
		.parts = (void *)&part,
		.parts_count = 1,
		.control = &control,
		.control_length = sizeof(control),
	};
	long got;

	do
		got = kernel(__NR_recvmsg, fd, &message, MSG_CMSG_CLOEXEC);
	while (got == -KERNEL_EINTR);
	if (got != sizeof(*welcome))
		return recording_fail(SEGMENT_WHY_ANSWER, got);
	if (message.control_length >= sizeof(size_t) + 8 && control.level == SOL_SOCKET &&
	    control.type == SCM_RIGHTS && control.length >= sizeof(size_t) + 8)
		answer->count = (uint32_t)((control.length - sizeof(size_t) - 8) / sizeof(int));
	if (answer->count > SEGMENT_SPARES_AT_ONCE)
		answer->count = SEGMENT_SPARES_AT_ONCE;
	memcpy(answer->descriptors, control.descriptors, sizeof(answer->descriptors));
	if (welcome->refused)
		return recording_fail(0, 0); // the collector knows
	if (welcome->magic != SEGMENT_MAGIC || welcome->version != SEGMENT_VERSION)
		return recording_fail(SEGMENT_WHY_ANSWER, 0);
	if (answer->count < wanted) // there was room for some of them
		return recording_fail(SEGMENT_WHY_SOCKET, -TALK_EMFILE);
	return true;
}

// On success the caller owns answer->descriptors; else all are closed.
//
// The collector sends away who has connected and is silent for long. One that was stopped in
// between comes again.
bool recording_talk(uint32_t start, uint32_t pid, uint32_t spares, struct recording_answer *answer)
{
	uint32_t wanted = spares ? 1 : 2; // clock and segment
	bool said = false, heard;
	long fd = -1;

	memset(answer, 0, sizeof(*answer));
	for (int i = 0; i < TALK_VISITS_MAX && !said; i++) {
		fd = recording_connect();
		if (kernel_failed(fd))
			return false;
		said = recording_say_hello(fd, start, pid, spares);
		if (!said)
			kernel(__NR_close, fd);
	}
	if (!said)
		return recording_fail(SEGMENT_WHY_ANSWER, 0);
	heard = recording_hear(fd, wanted, answer);
	kernel(__NR_close, fd);
	while (!heard && answer->count > 0)
		kernel(__NR_close, answer->descriptors[--answer->count]);
	return heard;
}
