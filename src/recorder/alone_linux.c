// For example, `LD_PRELOAD=/opt/t/lib/tidemark/libtidemark.so app`: the collector is sought as
// ../../bin/tidemark from the library's folder, /opt/t/bin/tidemark. A child of a child executes
// "tidemark collect --socket <32 digits> --pid <ours>", and so is no child that app would
// ever wait for. Its socket is tried every millisecond, up to 5 s, and then this process says hello
// like any other.
#include "recorder/alone_linux.h"

#include "recorder/kernel.h"
#include "recorder/library_linux.h"
#include "recorder/scope_linux.h"
#include "recorder/text.h"

enum {
	ALONE_PATH_MAX = 4096,
	ALONE_TRIES = 5000, // * 1 ms until the collector listens
	WALL = 0x40000000,  // __WALL: wait for a child that announces nothing
	AF_UNIX = 1,
	SOCK_SEQPACKET = 5,
	SOCK_CLOEXEC = 0x80000,
};

static char alone_session[40];
static char alone_collector[ALONE_PATH_MAX];

// <folder of our library>/<tail>, if there is such a program.
static bool alone_try(const char *tail)
{
	size_t length = text_length(library_folder());

	if (!length || length + text_length(tail) + 1 > sizeof(alone_collector))
		return false;
	memcpy(alone_collector, library_folder(), length);
	memcpy(alone_collector + length, tail, text_length(tail) + 1);
	return kernel(__NR_access, alone_collector, 1 /* X_OK */) == 0;
}

// TIDEMARK_COLLECTOR says where; else it is looked for by our own place in an installation, or
// beside us in a build. False: there is none, and nothing is recorded.
static bool alone_find_collector(void)
{
	const char *given = scope_environment("TIDEMARK_COLLECTOR");

	if (given && text_length(given) < sizeof(alone_collector)) {
		memcpy(alone_collector, given, text_length(given) + 1);
		return true;
	}
	return alone_try("../../bin/tidemark") || alone_try("tidemark");
}

// 32 digits of 128 random bits: the name of the session, and of its socket.
static void alone_make_name(void)
{
	static const char digits[] = "0123456789abcdef";
	uint8_t random[16] = { 0 };
	char *at = alone_session;

	kernel(__NR_getrandom, random, sizeof(random), 0);
	for (size_t i = 0; i < sizeof(random); i++) {
		*at++ = digits[random[i] >> 4];
		*at++ = digits[random[i] & 15];
	}
	*at = 0;
}

// The environment of the collector: ours, without what would make it a traced program.
//
// No LD_PRELOAD, or the collector would record itself.
static const char *const *alone_environment(void)
{
	static const char *list[1024];
	static const char *const kept[] = {
		"PATH", "HOME", "TMPDIR", "LANG", "TZ", "TIDEMARK_OUTPUT", "TIDEMARK_OPTIONS"
	};
	static char text[16384];
	size_t used = 0;
	size_t count = 0;

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		const char *value = scope_environment(kept[i]);
		size_t name_length = text_length(kept[i]);

		if (!value || used + name_length + text_length(value) + 2 > sizeof(text))
			continue;
		list[count++] = text + used;
		memcpy(text + used, kept[i], name_length);
		used += name_length;
		text[used++] = '=';
		memcpy(text + used, value, text_length(value) + 1);
		used += text_length(value) + 1;
	}
	list[count] = NULL;
	return list;
}

static void alone_format(char *out, uint32_t number)
{
	char digits[12];
	size_t count = 0;

	do {
		digits[count++] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	while (count)
		*out++ = digits[--count];
	*out = 0;
}

// The grandchild is a child of init's from then on. Its own process group keeps a Ctrl-C in the
// terminal from it.
static void alone_run_collector(uint32_t pid)
{
	char pid_text[12];
	const char *argv[] = { alone_collector, "collect", "--socket", alone_session,
			       "--pid",         pid_text,  NULL };

	alone_format(pid_text, pid);
	kernel(__NR_setpgid, 0, 0); // as collector_process_leave_group
	if (kernel(__NR_fork) != 0)
		kernel(__NR_exit_group, 0);
	kernel(__NR_execve, alone_collector, argv, alone_environment());
	kernel(__NR_exit_group, 127);
}

// The session is an abstract name: its first byte is 0 and it ends without one, so the length says
// where: 2 bytes of family, the 0, and the text. A visitor who leaves without a word does no harm.
static bool alone_listens(void)
{
	struct {
		uint16_t family;
		char path[108];
	} name = { .family = AF_UNIX };
	size_t length = text_length(alone_session);
	bool listens = false;

	memcpy(name.path + 1, alone_session, length);
	for (int i = 0; i < ALONE_TRIES && !listens; i++) {
		long fd = kernel(__NR_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

		listens = !kernel_failed(kernel(__NR_connect, fd, &name, 2 + 1 + length));
		kernel(__NR_close, fd);
		if (!listens)
			kernel_sleep_ns(1000000);
	}
	return listens;
}

// NULL: there is no collector, or it does not listen within 5 s.
const char *alone_start(void)
{
	uint32_t pid = kernel_process_id();
	int status = 0;
	long child;

	if (!alone_find_collector())
		return NULL;
	alone_make_name();
	child = kernel(__NR_clone, 0, 0, 0, 0, 0); // fork, with no signal at its end
	if (child == 0)
		alone_run_collector(pid);
	if (kernel_failed(child))
		return NULL;
	kernel(__NR_wait4, child, &status, WALL, 0);
	return alone_listens() ? alone_session : NULL;
}
