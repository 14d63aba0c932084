// Who hears of signals. The program is in our process group, so Ctrl-C in the terminal reaches both
// of us by itself. The kernel says which it was: a signal that another process sent to us alone has
// ssi_code 0 or less, and is passed on; one from the terminal has not, and passing it on would give
// it to the program twice. For example, `kill -TERM` of our pid: passed on. Ctrl-C: not. A SIGINT
// or SIGQUIT that may be a shell's for its whole job is not, either. Once the program has ended,
// those that end a program mean that we should not wait for what it left behind.
#include "launch/launch_own_linux.h"

#include "base/mem.h"
#include "launch/keeper_linux.h"
#include "launch/loader_linux.h"
#include "launch/reach_scan_linux.h"
#include "launch/runtimes_linux.h"
#include "os/file.h"
#include "os/now.h"
#include "wire/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum {
	LAUNCH_PATIENCE_MS = 500, // after the program's end, before we say why we wait
	LAUNCH_HANGUP_MS =
		10000,         // for what the program left, where no terminal can tell us to stop
	LAUNCH_LOOK_MS = 1000, // between looks at whether the collector moves
	LAUNCH_STILL = 5,      // looks that find that it has not, until we say so,
	LAUNCH_STILL_MIN = 2,  // or until we cut, where that is wished:
	LAUNCH_WISHES = 2,     // by so many signals
};

// What the program is, and whether that is acceptable.
static bool launch_look(struct launch *launch, struct err *err)
{
	struct inspect *inspect = &launch->inspect;
	bool unseen;

	// In order: the program, our library, whether both classes are there, and what kind of
	// program it is.
	if (!launch_find(launch->options, launch->result, getenv("PATH"), &launch->program, err) ||
	    !preload_find_library(&launch->library, err))
		return false;
	preload_find_either(str_get(&launch->library), &launch->either);
	inspect_program(inspect, str_get(&launch->program), launch->either.length > 0);
	unseen = inspect->verdict != INSPECT_OK;
	if (unseen && launch->options->strict)
		return err_set(err, ERR_USAGE, "%s (--strict: not started)",
			       str_get(&inspect->why));
	if (inspect->why.length > 0)
		launch_tell(launch->options, "%s", str_get(&inspect->why));
	return true;
}

// The words of a program that was there before are its own, as /proc has them; else they are ours
// to it. `info` only borrows: its texts are in `launch`, which lives as long.
static void launch_describe(struct launch *launch, struct trace_info *info)
{
	struct utsname host;
	char *const *words = launch->arguments ? launch->arguments : launch->options->argv;

	ASSERT(launch->command.length == 0);
	for (size_t i = 0; words[i]; i++) {
		if (i > 0)
			str_add_char(&launch->command, ' ');
		str_add_shell(&launch->command, words[i]);
	}
	if (!getcwd(launch->directory, sizeof(launch->directory)))
		strcpy(launch->directory, "?");
	if (uname(&host) == 0)
		snprintf(launch->host, sizeof(launch->host), "%s %s %s", host.sysname, host.release,
			 host.machine);
	memset(info, 0, sizeof(*info));
	if (getrandom(info->recording_id, sizeof(info->recording_id), 0) < 0)
		memcpy(info->recording_id, launch->session, sizeof(info->recording_id));
	info->host = launch->host;
	info->command = (char *)str_get(&launch->command);
	info->directory = launch->directory;
	launch_describe_options(launch->options, info);
}

// What stands in LD_PRELOAD; NULL: nothing. A program that we cannot enter may start others that we
// can: only where the loader itself would complain, or end the program, is it left out.
static const char *launch_entry(const struct launch *launch)
{
	const struct inspect *inspect = &launch->inspect;

	if (inspect->verdict == INSPECT_BITS || inspect->verdict == INSPECT_MACHINE ||
	    inspect->verdict == INSPECT_ASAN)
		return NULL;
	return str_get(inspect->musl || !launch->either.length ? &launch->library
							       : &launch->either);
}

static void launch_make_environment(struct launch *launch)
{
	char **asked = NULL;
	struct str told = { 0 };

	if (launch->options->jit) {
		asked = runtimes_environment(environ, &told);
		launch_tell(launch->options, "%s", str_get(&told));
	}
	launch->environment =
		preload_environment(asked ? asked : environ, launch_entry(launch), launch->session);
	preload_free_environment(asked);
	str_fini(&told);
}

// Environment, and the process that becomes the program.
static bool launch_prepare(struct launch *launch, struct err *err)
{
	ASSERT(launch->program.length > 0);
	// The name of the session is in the environment, so it comes before the process.
	if (!preload_session(launch->session, err))
		return false;
	launch_make_environment(launch);
	return starter_fork(&launch->starter, str_get(&launch->program), launch->options->argv,
			    launch->environment, launch->options->strict ? NULL : environ, err);
}

// What stops us with the program.
static bool launch_stops(int number)
{
	return number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

static void launch_mask_stops(int how)
{
	sigset_t set;

	sigemptyset(&set);
	for (int number = 1; number < SIGRTMIN; number++)
		if (launch_stops(number))
			sigaddset(&set, number);
	sigprocmask(how, &set, NULL);
}

// From here on signals come through a descriptor. The program's process was forked before.
static bool launch_catch_signals(struct launch *launch, struct err *err)
{
	// Our own faults.
	static const int not_these[] = { SIGILL,  SIGTRAP, SIGABRT, SIGBUS,  SIGFPE,
					 SIGSEGV, SIGPIPE, SIGSYS,  SIGXCPU, SIGXFSZ };
	sigset_t set;

	ASSERT(launch->signal_fd < 0);
	sigfillset(&set);
	for (size_t i = 0; i < sizeof(not_these) / sizeof(not_these[0]); i++)
		sigdelset(&set, not_these[i]);
	signal(SIGCHLD, SIG_DFL); // ignored, the kernel would keep the exit status to itself
	signal(SIGPIPE, SIG_IGN); // a process that is gone is noticed otherwise
	sigprocmask(SIG_BLOCK, &set, NULL);
	launch_mask_stops(SIG_UNBLOCK); // until launch_wait
	launch->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return launch->signal_fd >= 0 || err_errno(err, errno, "cannot watch signals");
}

static bool launch_open_output(struct launch *launch, struct err *err)
{
	uint64_t size;

	launch->output_fd =
		launch_create_output(launch->options, launch->result, str_get(&launch->program),
				     (uint64_t)launch->starter.pid, &launch->output, err);
	// A pipe cannot give back what was written, and a device cannot be cut.
	if (launch->output_fd >= 0 && keep_wishes_any(&launch->options->keep) &&
	    !file_is_regular(launch->output_fd, &size))
		return err_set(err, ERR_USAGE,
			       "%s: only a file can be kept short (try: without --max-size, --keep "
			       "and --rotate)",
			       str_get(&launch->result->path));
	return launch->output_fd >= 0;
}

static void launch_stop(struct launch *launch)
{
	launch->asked_to_stop = true;
	collector_process_send(&launch->collector_process, COLLECT_STOP, 0, 0);
}

// The recording ends here, as was wished; programs go on.
static void launch_leave(struct launch *launch)
{
	if (launch->asked_to_stop)
		return;
	launch_detach(launch);
	collector_process_send(&launch->collector_process, COLLECT_ENDED, 0, 0);
	launch_stop(launch);
}

// All messages are acted on here, no matter who waits for which: one that comes between is not
// lost. Who waits for a kind of its own looks at *message after it.
bool launch_hear(struct launch *launch, struct collect_message *message, int patience_ms)
{
	struct launch_result *result = launch->result;

	if (!collector_process_read(&launch->collector_process, message, patience_ms))
		return false;
	switch (message->kind) {
	case COLLECT_WARNING:
		result->whole = false; // something is not seen: no harm but under --strict
		launch_tell(launch->options, "%s", message->text);
		break;
	case COLLECT_STOPPED:
		result->whole = false;
		// Before the start the text is for who waits for COLLECT_READY, which returns it as
		// its error.
		if (!launch->started || launch->stopped || result->closed)
			break;
		launch->stopped = true;
		launch_tell(launch->options,
			    "warning: the recording ended early: %s; the program runs on, "
			    "unrecorded to its end",
			    message->text);
		break;
	case COLLECT_LEAVE:
		launch_leave(launch);
		break;
	case COLLECT_DONE:
		launch_close(result, message);
		break;
	default:
		break;
	}
	return true;
}

static bool launch_open_collector(struct launch *launch, struct err *err)
{
	struct collect_options options = {
		.output_fd = launch->output_fd,
		.socket_name = launch->session,
		.segment_options = launch->options->segment_options,
		.overhead_max = launch->options->overhead_max,
		.reach = &reach_scan,
		.reach_mark = launch->options->reach_mark,
		.keep = keep_wishes_any(&launch->options->keep) ? &keeper_calls : NULL,
		.keep_wishes = &launch->options->keep,
		.enter = &loader_children,
		.attached = launch->options->attach_pid != 0,
		.before_fd = launch->before_fd,
		.report_fd = -1,
		.stop_fd = -1,
		.listen_fd = -1,
	};
	struct collect_message message = { .kind = 0 };

	ASSERT(launch->output_fd >= 0 && launch->signal_fd >= 0);
	launch_describe(launch, &options.info);
	if (!collector_process_open(&launch->collector_process, &options, err))
		return false;
	// The collector's alone: a trace is being written for as long as that one lives.
	close(launch->output_fd);
	launch->output_fd = -1;
	ASSERT(launch->collector_process.fd >= 0);
	// Whatever it says before is acted on by launch_hear; a text without READY is why it could
	// not.
	while (launch_hear(launch, &message, LAUNCH_START_MS))
		if (message.kind == COLLECT_READY)
			return true;
	if (message.text[0] != '\0')
		return err_set(err, ERR_IO, "the collector did not start: %s", message.text);
	return err_set(err, ERR_IO, "the collector did not start");
}

// The time that was given to it begins.
static bool launch_begin_time(struct launch *launch, struct err *err)
{
	uint64_t ns = launch->options->duration_ns;
	struct itimerspec timer = { .it_value = { (time_t)(ns / 1000000000),
						  (long)(ns % 1000000000) } };

	if (ns == 0)
		return true;
	ASSERT(launch->timer_fd < 0);
	launch->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	return (launch->timer_fd >= 0 && timerfd_settime(launch->timer_fd, 0, &timer, NULL) == 0) ||
	       err_errno(err, errno, "cannot make a timer");
}

// The trace says it, too: what the program starts may be recorded, and would look as all of it.
static void launch_note_unseen(struct launch *launch, const char *why)
{
	collector_process_say(&launch->collector_process, COLLECT_UNSEEN, 0, why);
}

static void launch_tell_unseen(struct launch *launch, struct str *why)
{
	launch->result->whole = false;
	launch_tell(launch->options, "%s", str_get(why));
	launch_note_unseen(launch, str_get(why));
	str_fini(why);
}

static void launch_tell_static(struct launch *launch, const struct err *err)
{
	struct str why = { 0 };

	str_format(&why,
		   "%s is linked statically, and %s; its memory calls are not seen (programs that "
		   "it starts are)",
		   str_get(&launch->inspect.file), err->text);
	launch_tell_unseen(launch, &why);
}

// A static program is to stop at its start. False: it may not be, under --strict.
static bool launch_seize(struct launch *launch, struct err *err)
{
	if (!launch->inspect.enters)
		return true;
	launch->seized = loader_seize(launch->starter.pid, err);
	if (launch->seized)
		return true;
	if (launch->options->strict)
		return err_set(err, ERR_USAGE,
			       "%s is linked statically, and %s (--strict: not started)",
			       str_get(&launch->inspect.file), err->text);
	launch_tell_static(launch, err);
	return true;
}

// It does: the recorder is brought in.
static void launch_enter(void *context)
{
	struct launch *launch = context;
	pid_t pid = launch->starter.pid;
	struct err err = { .kind = ERR_NONE };

	// The child stands at its exec until it is looked at: what happens here is before its first
	// instruction.
	if (!launch->seized || !loader_wait(pid, pid, -1))
		return;
	if (launch->starter.bare)
		loader_leave(pid);
	else if (!loader_enter(pid, str_get(&launch->library), &err))
		launch_tell_static(launch, &err);
}

// The exec happens here. Between the child's going and its exec the loader waits for it to stop, if
// the program is static (launch_enter).
static bool launch_go(struct launch *launch, struct err *err)
{
	struct str why = { 0 };
	int error;

	// Seized before the exec, since a static program has no loader that would load the
	// recorder.
	if (!launch_seize(launch, err))
		return false;
	error = starter_go(&launch->starter, launch_enter, launch);

	ASSERT(!launch->started && launch->program_pid == 0);
	launch->started = true;
	launch->program_pid = launch->starter.pid;
	if (error == 0 && launch->starter.bare) {
		str_format(&why,
			   "%s is not recorded: its arguments leave no room for the recorder in "
			   "its environment",
			   str_get(&launch->program));
		launch_tell_unseen(launch, &why);
	}
	if (error == 0 && launch->inspect.why.length > 0)
		launch_note_unseen(launch, str_get(&launch->inspect.why));
	if (error == 0)
		return true;
	launch->program_pid = 0;
	if (error == E2BIG && launch->options->strict)
		return err_set(err, ERR_USAGE,
			       "cannot execute %s: its arguments leave no room for the "
			       "recorder in its environment (--strict: not started)",
			       str_get(&launch->program));
	launch->result->end = error == ENOENT ? LAUNCH_NOT_FOUND : LAUNCH_NOT_EXECUTABLE;
	// The program was found: what is missing is what its first line or its header asks for.
	if (error == ENOENT && launch->inspect.file.length > 0 &&
	    strcmp(str_get(&launch->inspect.file), str_get(&launch->program)) != 0)
		return err_set(err, ERR_USAGE, "cannot execute %s: its interpreter %s is missing",
			       str_get(&launch->program), str_get(&launch->inspect.file));
	if (error == ENOENT && file_look(str_get(&launch->program)) == FILE_IS_REGULAR)
		return err_set(err, ERR_USAGE,
			       "cannot execute %s: the dynamic linker that it asks for is missing "
			       "(try: file %s)",
			       str_get(&launch->program), str_get(&launch->program));
	return err_errno(err, error, "cannot execute %s", str_get(&launch->program));
}

static bool launch_ignores_hangup(void) // we were started by nohup
{
	struct sigaction action;

	return sigaction(SIGHUP, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

// A terminal that hangs up tells the leader of its session alone, and the others of its group when
// that one ends: the program would have led the session, so both are told by us.
static bool launch_hung_up(const struct signalfd_siginfo *info)
{
	return info->ssi_signo == SIGHUP && info->ssi_code > 0 && getsid(0) == getpid() &&
	       !launch_ignores_hangup();
}

// What is sent to a group looks as what is sent to a process. A shell with a terminal sends to its
// job (`kill -INT %1`), which we lead then; a supervisor, a script or what is outside of a
// container (pid 0) sends to us. Who is gone already may have been either.
static bool launch_may_be_for_the_group(uint32_t sender)
{
	pid_t session = sender ? getsid((pid_t)sender) : 0;

	return getpgrp() == getpid() && (session == getsid(0) || session < 0);
}

// It did not reach the program. A timer that was begun before us (`alarm`, and then exec) would
// have been the program's.
static bool launch_is_for_us_alone(const struct signalfd_siginfo *info)
{
	int number = (int)info->ssi_signo;

	if (number == SIGALRM || number == SIGVTALRM || number == SIGPROF)
		return true;
	return info->ssi_code <= 0 &&
	       ((number != SIGINT && number != SIGQUIT && !launch_stops(number)) ||
		!launch_may_be_for_the_group(info->ssi_pid));
}

static void launch_pass_on(pid_t pid, const struct signalfd_siginfo *info)
{
	union sigval value = { .sival_ptr = (void *)(uintptr_t)info->ssi_ptr };

	if (info->ssi_code == SI_QUEUE)
		sigqueue(pid, (int)info->ssi_signo, value);
	else
		kill(pid, (int)info->ssi_signo);
}

// Where there is no program to tell: these mean nothing to us, and all others that we should end.
static bool launch_ends_us(int number)
{
	return number != SIGCONT && number != SIGUSR1 && number != SIGUSR2 && number != SIGWINCH &&
	       number != SIGURG;
}

// The program and the collector are our children, and maybe others that we were born with.
static void launch_reap(struct launch *launch)
{
	int status;

	// One SIGCHLD may stand for several ends, so each of ours is asked about.
	if (launch->program_pid > 0 &&
	    waitpid(launch->program_pid, &status, WNOHANG) == launch->program_pid) {
		launch->result->status = status;
		collector_process_send(&launch->collector_process, COLLECT_ENDED,
				       launch->program_pid, status);
		launch->program_pid = 0;
		if (launch->hung_up)
			kill(0, SIGHUP);
	}
	collector_process_reap(&launch->collector_process);
}

// The collector is given up, since it does not move and that is wished. First its other thread is
// asked to let programs go on, at the next look it is killed. One that its disk holds does not end
// by that; it is left.
static void launch_cut(struct launch *launch)
{
	if (launch->wishes < LAUNCH_WISHES || launch->still < LAUNCH_STILL_MIN ||
	    launch->collector_process.fd < 0)
		return;
	launch->asked_to_stop = true;
	if (!launch->cut) {
		launch->cut = true;
		launch->still = LAUNCH_STILL_MIN - 1; // a look from now
		collector_process_send(&launch->collector_process, COLLECT_CUT, 0, 0);
		return;
	}
	launch->result->whole = false;
	collector_process_kill(&launch->collector_process);
	file_close(launch->collector_process.fd);
	launch->collector_process.fd = -1;
	launch_tell(launch->options,
		    "warning: the recording was cut, as its collector did not move; %sthe trace "
		    "holds what was written until then",
		    launch->program_pid > 0 ? "the program runs on unrecorded; " : "");
}

// A signal that ends a program. Two end also what holds it.
//
// For example, Ctrl-C to Python while its collector is stopped: Python hears it only when its
// thread goes on, which waits for room. The second one makes it go on, and Python ends by the
// first.
static void launch_wish(struct launch *launch)
{
	launch->wishes++;
	launch_cut(launch);
}

// What the user can do depends on why it does not move, which only its state tells.
static void launch_tell_still(const struct launch *launch)
{
	const char *path = str_get(&launch->result->path);
	bool lives = launch->program_pid > 0 || launch->attached;
	const char *wait = lives ? "the program waits for it where it has no more room, so that "
				   "nothing is lost"
				 : "the trace is not whole yet";

	if (launch->collector_process.stopped)
		launch_tell(launch->options,
			    "warning: the collector, process %d, is stopped; %s (try: kill -CONT "
			    "%d; Ctrl-C twice cuts the recording)",
			    (int)launch->collector_process.pid, wait,
			    (int)launch->collector_process.pid);
	else
		launch_tell(launch->options,
			    "warning: the collector cannot go on writing %s: its disk does not "
			    "answer; %s (Ctrl-C twice cuts the recording)",
			    path, wait);
}

// The collector is looked at once a second: whether it moves.
//
// For example, a server of files does not answer for 7 s: after five or six of these it is said,
// and after the seventh that the collector goes on. What the program has done meanwhile is in its
// buffers, or it has waited.
static void launch_look_at_collector(struct launch *launch)
{
	if (collector_process_moved(&launch->collector_process)) {
		if (launch->told_still)
			launch_tell(launch->options, "the collector goes on");
		launch->told_still = false;
		launch->still = 0;
		if (launch->program_pid > 0)
			launch->wishes = 0;
		return;
	}
	launch->still++;
	if (launch->still >= LAUNCH_STILL && !launch->told_still) {
		launch->told_still = true;
		launch_tell_still(launch);
	}
	launch_cut(launch);
}

// The terminal's keys reached the program without us; what was sent to us alone is passed on.
// Once the program has ended they mean: stop waiting for what it left behind.
static void launch_signal(struct launch *launch, const struct signalfd_siginfo *info)
{
	int number = (int)info->ssi_signo;
	bool our_own = number == SIGHUP && info->ssi_pid == (uint32_t)getpid();

	if (number == SIGCHLD) {
		launch_reap(launch);
	} else if (our_own) {
		return; // it was for what the program left: its end is waited for
	} else if (launch_stops(number)) {
		if (launch->program_pid > 0 && launch_is_for_us_alone(info))
			launch_pass_on(launch->program_pid, info);
		// We stop here, as we would have without looking. Where nothing would let us go on
		// (an orphaned process group) the kernel lets us go on at once.
		raise(number);
		launch_mask_stops(SIG_UNBLOCK);
		launch_mask_stops(SIG_BLOCK);
	} else if (launch->attached) {
		if (launch_ends_us(number)) {
			launch_leave(launch);
			launch_wish(launch);
		}
	} else if (launch->program_pid > 0) {
		bool hung_up = launch_hung_up(info);

		// kill(2) to the group, when the program has ended, comes back to us as a signal of
		// our own (our_own).
		launch->hung_up |= hung_up;
		if (hung_up || launch_is_for_us_alone(info))
			launch_pass_on(launch->program_pid, info);
		if (launch_ends_us(number))
			launch_wish(launch);
	} else if (launch_ends_us(number)) {
		launch_stop(launch);
		launch_wish(launch);
	}
}

static void launch_lose_collector(struct launch *launch)
{
	if (launch->result->closed)
		return;
	launch->result->whole = false;
	collector_process_kill(&launch->collector_process);
	launch_tell(launch->options,
		    "warning: the collector died; %sthe trace holds what was written until then",
		    launch->program_pid > 0 ? "the program runs on unrecorded; " : "");
}

static void launch_end_time(struct launch *launch)
{
	ASSERT(launch->timer_fd >= 0);
	close(launch->timer_fd);
	launch->timer_fd = -1;
	launch_leave(launch);
}

// A program that is not our child has ended.
static void launch_note_end(struct launch *launch)
{
	ASSERT(launch->program_fd >= 0);
	close(launch->program_fd);
	launch->program_fd = -1;
	launch->attached = false;
	launch_note_attached(launch);
	collector_process_send(&launch->collector_process, COLLECT_ENDED, 0, 0);
}

// Half a second after the program's end it is said what is waited for; where the terminal is gone
// the recording is stopped after ten.
static uint64_t launch_patience_ns(const struct launch *launch)
{
	return UINT64_C(1000000) * (launch->hung_up ? LAUNCH_HANGUP_MS : LAUNCH_PATIENCE_MS);
}

// What is due, by time. Returns how many milliseconds there are until the next is, or -1.
//
// For example, a program ends 300 ms after a look. Nothing comes of its collector for 500 ms: that
// is said, and the next look is 200 ms later.
static int launch_keep_time(struct launch *launch)
{
	bool waits = launch->program_pid == 0 && !launch->attached && !launch->told_waiting;
	uint64_t now_ns = now_steady_ns(), next_ns;

	ASSERT(launch->started);
	if (launch->collector_process.fd >= 0 && now_ns >= launch->look_ns) {
		launch->look_ns = now_ns + UINT64_C(1000000) * LAUNCH_LOOK_MS;
		launch_look_at_collector(launch);
	}
	if (waits && launch->wait_ns == 0)
		launch->wait_ns = now_ns;
	if (waits && now_ns - launch->wait_ns >= launch_patience_ns(launch)) {
		waits = false;
		launch->told_waiting = true;
		if (launch->hung_up) { // no signal will come that wishes more
			launch_stop(launch);
			launch->wishes = LAUNCH_WISHES;
		}
		if (!launch->asked_to_stop)
			launch_tell(launch->options, LAUNCH_WAITING);
	}
	if (launch->program_pid == 0 && launch->collector_process.fd < 0)
		return 0; // it was cut just now, and nothing is left to wait for
	next_ns = launch->collector_process.fd >= 0 ? launch->look_ns : UINT64_MAX;
	if (waits && launch->wait_ns + launch_patience_ns(launch) < next_ns)
		next_ns = launch->wait_ns + launch_patience_ns(launch);
	return next_ns == UINT64_MAX ? -1 : (int)((next_ns - now_ns) / 1000000) + 1;
}

// Until the program has ended and the collector has nothing more to say.
static void launch_wait(struct launch *launch)
{
	struct collect_message message;
	struct signalfd_siginfo info;

	ASSERT(launch->started);
	launch_mask_stops(SIG_BLOCK);
	// It may have ended before its SIGCHLD was watched.
	launch_reap(launch);
	while (launch->program_pid > 0 || launch->collector_process.fd >= 0) {
		int left_ms = launch_keep_time(launch);
		struct pollfd ready[] = {
			{ .fd = launch->signal_fd, .events = POLLIN },
			{ .fd = launch->collector_process.fd, .events = POLLIN },
			{ .fd = launch->timer_fd, .events = POLLIN },
			{ .fd = launch->attached ? launch->program_fd : -1, .events = POLLIN },
		};

		poll(ready, 4, left_ms);
		// The descriptor does not wait: it is read until it is empty, whatever woke us.
		while (read(launch->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
			launch_signal(launch, &info);
		if (ready[1].revents && launch->collector_process.fd >= 0 &&
		    !launch_hear(launch, &message, -1))
			launch_lose_collector(launch);
		if (ready[2].revents)
			launch_end_time(launch);
		if (ready[3].revents && launch->attached) // and not left just now
			launch_note_end(launch);
	}
	launch_mask_stops(SIG_UNBLOCK);
}

static void launch_open_indexer(struct launch *launch)
{
	struct err err = { 0 };

	if (launch->options->index &&
	    !indexer_open(&launch->indexer, str_get(&launch->result->path), false, &err))
		launch_tell(launch->options, "warning: no index: %s", err.text);
}

static void launch_open_follower(struct launch *launch)
{
	struct err err = { 0 };

	if (!follower_open(&launch->follower, launch->options->follow,
			   str_get(&launch->result->path), launch->options->follow_quiet, &err))
		launch_tell(launch->options, "warning: %s (try: tidemark push)", err.text);
}

// How it ended. Ctrl-C leaves the rest of it for later: *stopped. *told: that it takes a while.
static enum indexer_end launch_watch_indexer(struct launch *launch, bool *stopped, bool *told,
					     struct err *err)
{
	struct indexer *indexer = &launch->indexer;
	struct signalfd_siginfo info;

	if (*stopped)
		indexer_stop(indexer);
	for (;;) {
		struct pollfd ready[] = {
			{ .fd = launch->signal_fd, .events = POLLIN },
			{ .fd = indexer->fd, .events = POLLIN },
		};
		int count = poll(ready, 2, *told ? -1 : LAUNCH_PATIENCE_MS);

		if (count == 0)
			launch_tell(launch->options,
				    "the trace is whole; finishing its index (Ctrl-C leaves "
				    "that to the first question)");
		*told |= count == 0;
		if (ready[1].revents)
			break;
		while (read(launch->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
			if (info.ssi_signo != SIGCHLD && info.ssi_signo != SIGCONT) {
				*stopped = true;
				indexer_stop(indexer);
			}
	}
	return indexer_close(indexer, &launch->result->index_cpu_ns, err);
}

// The trace is whole, or as whole as it will be: its index, too.
static void launch_wait_for_index(struct launch *launch)
{
	struct indexer *indexer = &launch->indexer;
	bool stopped = launch->asked_to_stop, told = stopped, hurries;
	enum indexer_end end;
	struct err err = { 0 };

	if (indexer->pid == 0)
		return;
	ASSERT(launch->program_pid == 0 && launch->collector_process.fd < 0);
	hurries = indexer_whole(indexer);
	end = launch_watch_indexer(launch, &stopped, &told, &err);
	// Another one goes on with it, at the priority that is ours.
	if (end == INDEXER_STOPPED && !hurries && !stopped &&
	    indexer_open(indexer, str_get(&launch->result->path), true, &err))
		end = launch_watch_indexer(launch, &stopped, &told, &err);
	switch (end) {
	case INDEXER_READY:
		launch->result->indexed = true;
		break;
	case INDEXER_STOPPED:
		launch_tell(launch->options,
			    "the index is not finished; the first question goes on with it");
		break;
	case INDEXER_FAILED:
		launch_tell(launch->options, "warning: no index: %s", err.text);
		break;
	}
}

// Where we were given no standard descriptors, ours must not take their numbers; and the program
// must not find any there.
static void launch_fill_standard(void)
{
	// open takes the lowest free number, so each hole is filled in its turn. Closed on exec:
	// the program finds them closed, as it would without us.
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) < 0)
			return;
}

// The order is the header's. Attaching has no child to fork and no exec to wait for, but needs the
// collector before the first call can be recorded, as well.
static bool launch_start(struct launch *launch, struct err *err)
{
	if (launch->options->attach_pid)
		return launch_look_at_running(launch, err) && launch_catch_signals(launch, err) &&
		       launch_open_output(launch, err) && launch_open_collector(launch, err) &&
		       launch_attach(launch, err) && launch_begin_time(launch, err);
	return launch_look(launch, err) && launch_prepare(launch, err) &&
	       launch_catch_signals(launch, err) && launch_open_output(launch, err) &&
	       launch_open_collector(launch, err) && launch_go(launch, err) &&
	       launch_begin_time(launch, err);
}

// Nothing was started: leave nothing behind.
static void launch_undo(struct launch *launch)
{
	// First the child, which has done nothing, then the collector, then the file: each may use
	// what is after it.
	starter_cancel(&launch->starter);
	if (launch->collector_process.pid > 0) {
		collector_process_send(&launch->collector_process, COLLECT_STOP, 0, 0);
		if (launch->collector_process.fd < 0)
			collector_process_kill(&launch->collector_process);
		collector_process_close(&launch->collector_process);
	}
	output_undo(&launch->output, str_get(&launch->result->path));
	str_clear(&launch->result->path);
}

// A collector that was killed has left its socket.
static void launch_sweep(const struct launch *launch)
{
	// SEGMENT_PATH is where all of them are; who ends in order has removed it.
	char path[sizeof(SEGMENT_PATH) + PRELOAD_SESSION_BYTES];

	if (!launch->session[0])
		return;
	snprintf(path, sizeof(path), "%s%s", SEGMENT_PATH, launch->session);
	unlink(path);
}

void launch_run(const struct launch_options *options, struct launch_result *result, struct err *err)
{
	struct launch launch = {
		.options = options,
		.result = result,
		.collector_process = { .fd = -1 },
		.indexer = { .fd = -1 },
		.starter = { .go_fd = -1 },
		.before_fd = -1,
		.program_fd = -1,
		.timer_fd = -1,
		.output_fd = -1,
		.signal_fd = -1,
	};

	// What follows is undone in one place, whatever came so far: each part accepts that it was
	// not begun (-1, 0, empty).
	launch_begin(result);
	launch_fill_standard();
	if (launch_start(&launch, err)) {
		result->end = LAUNCH_RAN;
		output_begun(&launch.output);
		launch_open_indexer(&launch);
		launch_open_follower(&launch);
		launch_wait(&launch);
		launch_wait_for_index(&launch);
		result->whole &= follower_wait(&launch.follower, launch.signal_fd, options->tell);
	} else {
		launch_undo(&launch);
	}
	ASSERT(result->end != LAUNCH_RAN || launch.program_pid == 0);
	collector_process_close(&launch.collector_process);
	launch_sweep(&launch);
	if (launch.output_fd >= 0)
		close(launch.output_fd);
	if (launch.signal_fd >= 0)
		close(launch.signal_fd);
	if (launch.before_fd >= 0)
		close(launch.before_fd);
	if (launch.program_fd >= 0)
		close(launch.program_fd);
	if (launch.timer_fd >= 0)
		close(launch.timer_fd);
	preload_free_environment(launch.environment);
	preload_free_environment(launch.arguments);
	inspect_fini(&launch.inspect);
	STR_FINI(&launch.program, &launch.library, &launch.either, &launch.command);
}
