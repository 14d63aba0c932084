// collect: the collector as a process of its own, for programs that load the recorder without
// `tidemark record` (LD_PRELOAD=libtidemark.so PROGRAM). The recorder starts it, twice forked, and
// nothing of it may touch the program: not its terminal, not its descriptors, not its signals.
#include "cli/args.h"

#include "base/mem.h"
#include "base/str.h"
#include "collect/collect.h"
#include "collect/peer.h"
#include "collect/share.h"
#include "launch/collector_process_linux.h"
#include "launch/loader_linux.h"
#include "launch/output.h"
#include "launch/reach_scan_linux.h"
#include "os/file.h"
#include "wire/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/utsname.h>
#include <unistd.h>

// All texts are borrowed, of the command line or the environment.
struct wishes {
	const char *socket;
	const char *output;
	const char *words;
	uint64_t pid;
	uint32_t segment_options;
	uint64_t sample_bytes;
	bool force;
};

static const struct option_row options[] = {
	{ ARGS_TEXT(wishes, socket), 0, "socket", "NAME", "listen on the abstract socket NAME" },
	{ ARGS_COUNT(wishes, pid), 0, "pid", "PID", "the program that starts us" },
	{ ARGS_TEXT(wishes, output), 'o', "output", "FILE",
	  "write the trace to FILE (default: $TIDEMARK_OUTPUT)" },
	{ ARGS_TEXT(wishes, words), 0, "options", "WORDS",
	  "free-stacks, sample=BYTES, clock=ns, paused, no-follow, reachability, "
	  "language-heaps, force (default: $TIDEMARK_OPTIONS)" },
	{ 0 },
};

static int run(int argc, char **argv);

const struct command cmd_collect = {
	.name = "collect",
	.brief = "collect what recorders publish, until all their programs have ended",
	.usage = "--socket NAME --pid PID",
	.text = "Started by libtidemark.so itself when a program loads it without "
		"`tidemark record`.\n",
	.options = options,
	.hidden = true,
	.run = run,
};

// Words are separated by blanks or commas.
static bool read_words(struct wishes *wishes, struct err *err)
{
	static const struct {
		const char *word;
		uint32_t option;
	} known[] = {
		{ "free-stacks", SEGMENT_FREE_STACKS },
		{ "clock=ns", SEGMENT_CLOCK_NS },
		{ "paused", SEGMENT_PAUSED },
		{ "no-follow", SEGMENT_NO_FOLLOW },
		{ "reachability", SEGMENT_REACHABILITY },
		{ "language-heaps", SEGMENT_LANGUAGE_HEAPS },
		// About our output: recorders have no bit for it.
		{ "force", 0 },
	};
	char *words = mem_copy_text(wishes->words);
	bool good = true;
	char *rest = words;
	char *word;

	while (good && (word = strsep(&rest, " ,")) != NULL) {
		size_t i = 0;

		if (word[0] == 0)
			continue;
		if (strncmp(word, "sample=", 7) == 0) {
			good = str_parse_bytes(word + 7, &wishes->sample_bytes) &&
			       wishes->sample_bytes > 0 &&
			       wishes->sample_bytes <= SEGMENT_SAMPLE_BYTES_MAX;
			if (!good)
				err_set(err, ERR_USAGE,
					"'%s' in TIDEMARK_OPTIONS is not a size up to 1 TiB", word);
			continue;
		}
		while (i < sizeof known / sizeof *known && strcmp(word, known[i].word) != 0)
			i++;
		if (i == sizeof known / sizeof *known) {
			good = err_set(err, ERR_USAGE, "unknown word '%s' in TIDEMARK_OPTIONS",
				       word);
			break;
		}
		wishes->segment_options |= known[i].option;
		wishes->force |= known[i].option == 0;
	}
	mem_free(words);
	return good;
}

// All options set their members by themselves, so the first that args_next returns for is the end
// or a mistake.
static bool parse(struct args *args, int argc, char **argv, struct wishes *wishes)
{
	int id;

	args_init(args, &cmd_collect, argc, argv);
	args->into = wishes;
	id = args_next(args);
	if (id != ARGS_END)
		return id == ARGS_OPERAND && args_mistake(args, "takes no operand");
	if (wishes->socket == NULL || wishes->pid == 0 || wishes->pid > UINT32_MAX)
		return args_mistake(args, "needs --socket and --pid");
	return true;
}

// What we inherited is the program's: its pipes must not stay open because of us.
static void let_go(void)
{
	// All but the three standard ones, which go_quiet leads to nowhere.
	close_range(3, ~0u, 0);
}

// From here on mistakes are heard by no one: all that can be said was said before.
static void go_quiet(void)
{
	int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd < 3 && nowhere >= 0; fd++)
		dup2(nowhere, fd);
	// It took the place of one that was closed.
	if (nowhere > 2)
		close(nowhere);
}

// Only SIGTERM means anything to us: finish. Returns a descriptor to hear it from.
static int arrange_signals(void)
{
	static const int ignored[] = { SIGINT,  SIGQUIT, SIGHUP,  SIGPIPE, SIGXFSZ, SIGALRM,
				       SIGUSR1, SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU };
	sigset_t set;

	for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
		signal(ignored[i], SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&set);
	// Blocked, so that it comes by the descriptor; all others are unblocked, whatever the
	// program had.
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_SETMASK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

// Short of memory, the kernel should rather end us than the program.
static void step_forward(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	// It is a wish: in a container the file may not be written.
	if (write(fd, "500", 3) < 0)
		errno = 0;
	close(fd);
}

// As a shell would take it. Empty, if the process is gone.
static void describe_command(uint32_t pid, struct str *out)
{
	uint32_t count;
	char **args = peer_args(pid, &count);

	for (uint32_t i = 0; i < count; i++) {
		if (i > 0)
			str_add_char(out, ' ');
		str_add_shell(out, args[i]);
	}
	mem_free(args);
}

// The descriptor of a new file; -1: *err says why.
static int create_output(const struct wishes *wishes, struct str *path, struct err *err)
{
	struct output_options output = { .pattern = wishes->output,
					 .pid = wishes->pid,
					 .force = wishes->force };
	char link[64], exe[4096];
	ssize_t length;
	struct output_made made;
	int fd;

	ASSERT(wishes->pid > 0 && wishes->pid <= UINT32_MAX);
	snprintf(link, sizeof link, "/proc/%u/exe", (unsigned)wishes->pid);
	length = readlink(link, exe, sizeof exe - 1);
	exe[length > 0 ? length : 0] = 0;
	// The file's name for %e; a program that is gone already has none.
	output.program = length > 0 ? file_name(exe) : "program";
	fd = output_create(&output, path, &made, err);
	output_begun(&made);
	return fd;
}

// Until the last program that it serves has ended, or SIGTERM. What it tells of the recording is
// borrowed from here: it is written before this returns.
static bool collect(const struct wishes *wishes, int output_fd, struct err *err)
{
	struct str command = { 0 };
	struct utsname host = { 0 };
	char directory[4096] = "?", host_text[256] = "";
	struct collect_options collect = {
		.output_fd = output_fd,
		.socket_name = wishes->socket,
		.segment_options = wishes->segment_options,
		.reach = &reach_scan,
		.enter = &loader_children,
		.report_fd = -1,
		.stop_fd = arrange_signals(),
		.listen_fd = -1,
		.until_idle = true,
	};
	bool good;

	ASSERT(output_fd >= 0 && wishes->socket);
	describe_command((uint32_t)wishes->pid, &command);
	if (getcwd(directory, sizeof directory) == NULL)
		strcpy(directory, "?");
	if (uname(&host) == 0)
		snprintf(host_text, sizeof host_text, "%s %s %s", host.sysname, host.release,
			 host.machine);
	// Without random bytes the id is not unique, and the recording is no worse.
	if (getrandom(collect.info.recording_id, sizeof collect.info.recording_id, 0) < 0)
		memcpy(collect.info.recording_id, wishes->socket, 1);
	collect.info.tool = (char *)"tidemark " TIDEMARK_VERSION;
	collect.info.host = host_text;
	collect.info.sample_bytes = wishes->sample_bytes;
	collect.info.command = (char *)(uintptr_t)str_get(&command);
	collect.info.directory = directory;
	collect.info.options = (char *)(uintptr_t)wishes->words;
	step_forward();
	good = collect_run(&collect, NULL, err);
	str_fini(&command);
	return good;
}

// What can fail by a mistake of the user is done before go_quiet.
static int run(int argc, char **argv)
{
	const char *words = getenv("TIDEMARK_OPTIONS");
	struct wishes wishes = {
		.output = getenv("TIDEMARK_OUTPUT"),
		.words = words != NULL ? words : "",
	};
	struct str path = { 0 };
	struct err err = { 0 };
	struct args args;
	int output_fd;
	bool good;

	// Messages still go to the program's stderr here.
	if (!parse(&args, argc, argv, &wishes))
		return args.exit_code;
	let_go();
	if (wishes.output != NULL && wishes.output[0] == 0)
		wishes.output = NULL;
	if (!read_words(&wishes, &err))
		return args_fail(&cmd_collect, &err);
	collector_process_raise_limits();
	if (!share_may_open(&err))
		return args_fail(&cmd_collect, &err);
	output_fd = create_output(&wishes, &path, &err);
	str_fini(&path);
	if (output_fd < 0)
		return args_fail(&cmd_collect, &err);
	go_quiet();
	good = collect(&wishes, output_fd, &err);
	close(output_fd);
	return good ? EXIT_ANSWERED : EXIT_UNREADABLE;
}
