// The collector is a thread of this process, and so nothing outlives us: who ends tidemark.exe ends
// the recording, with a trace that is whole up to its last block. The program runs on.
#include "launch/launch_own.h"

#include "base/mem.h"
#include "collect/door_win32.h"
#include "collect/obstacle_win32.h"
#include "launch/command_win32.h"
#include "os/file.h"

#include <io.h>
#include <stdio.h>
#include <string.h>
#include <windows.h>

enum {
	LAUNCH_PATIENCE_MS = 500, // until we say why we wait
	LAUNCH_CLOSE_MS = 3000,   // for the program's end, when the console is closed
	LAUNCH_TEXT_MAX = 32768,
	LAUNCH_ELEVATION = 740, // ERROR_ELEVATION_REQUIRED, which mingw's headers lack
	LAUNCH_VIRUS = 225,     // ERROR_VIRUS_INFECTED, the same
};

// What the collector said and was not read yet.
struct launch_message {
	struct launch_message *next;
	struct collect_message message;
};

struct launch {
	const struct launch_options *options;
	struct launch_result *result;
	struct str program; // the file
	struct str command; // the line it is started with
	PROCESS_INFORMATION child;
	int output_fd;
	struct output_made output;
	struct collect_options collect;
	struct err collect_err;
	struct door *door;
	HANDLE collector; // its thread
	HANDLE spoken;    // an event: there are messages
	CRITICAL_SECTION lock;
	struct launch_message *first, **last; // under the lock
	bool ended;                           // the program
	bool stopped, told_waiting;
	char directory[3 * MAX_PATH];
	char host[128];
};

// The one that runs, for the console's handler.
static struct launch *volatile launch_now;

// ---- The collector --------------------------------------------------------------------------

// In the collector's thread.
static void launch_listen(void *context, const struct collect_message *message)
{
	struct launch *launch = context;
	struct launch_message *heard = mem_alloc(1, sizeof *heard);

	ASSERT(message->kind != 0);
	// `last` is the place where the next one is linked: `first` itself while the list is empty.
	heard->message = *message;
	EnterCriticalSection(&launch->lock);
	*launch->last = heard;
	launch->last = &heard->next;
	LeaveCriticalSection(&launch->lock);
	SetEvent(launch->spoken);
}

static DWORD WINAPI launch_collect(void *context)
{
	struct launch *launch = context;

	collect_run(&launch->collect, NULL, &launch->collect_err);
	return 0;
}

// Messages wait in a list: the collector's thread must not wait for ours, which may be about to
// wait for it.
static bool launch_next(struct launch *launch, struct collect_message *message)
{
	struct launch_message *heard;

	EnterCriticalSection(&launch->lock);
	heard = launch->first;
	if (heard != NULL && (launch->first = heard->next) == NULL)
		launch->last = &launch->first;
	LeaveCriticalSection(&launch->lock);
	if (heard == NULL)
		return false;
	*message = heard->message;
	mem_free(heard);
	return true;
}

// All that was said so far. True: it is ready.
static bool launch_hear(struct launch *launch)
{
	// The words in the order in which they were said. Warnings come at any time; READY once, at
	// the start; DONE last, with the figures of the whole trace.
	struct launch_result *result = launch->result;
	struct collect_message message;
	bool ready = false;

	while (launch_next(launch, &message)) {
		switch (message.kind) {
		case COLLECT_READY:
			ready = true;
			break;
		case COLLECT_WARNING:
			result->whole = false;
			launch_tell(launch->options, "%s", message.text);
			break;
		case COLLECT_STOPPED:
			result->whole = false;
			if (!launch->stopped && !result->closed)
				launch_tell(launch->options,
					    "warning: the recording ended early: %s; the program "
					    "runs on",
					    message.text);
			launch->stopped = true;
			break;
		case COLLECT_DONE:
			launch_close(result, &message);
			break;
		default:
			break;
		}
	}
	return ready;
}

static void launch_post(struct launch *launch, enum collect_message_kind kind, int status)
{
	struct collect_message message = { .kind = kind,
					   .pid = launch->child.dwProcessId,
					   .status = status };

	door_post(launch->door, &message);
}

static void launch_describe(struct launch *launch)
{
	struct trace_info *info = &launch->collect.info;
	wchar_t directory[MAX_PATH];
	GUID id;

	// A folder whose path is longer than MAX_PATH is written as "?": it is for people, and
	// nothing opens it.
	if (!GetCurrentDirectoryW(MAX_PATH, directory) ||
	    !WideCharToMultiByte(CP_UTF8, 0, directory, -1, launch->directory,
				 sizeof launch->directory, NULL, NULL))
		strcpy(launch->directory, "?");
	snprintf(launch->host, sizeof launch->host, "Windows x86_64");
	if (CoCreateGuid(&id) == S_OK)
		memcpy(info->recording_id, &id, sizeof info->recording_id);
	info->host = launch->host;
	info->command = (char *)str_get(&launch->command);
	info->directory = launch->directory;
	launch_describe_options(launch->options, info);
}

static bool launch_open_collector(struct launch *launch, struct err *err)
{
	HANDLE either[2];

	launch_describe(launch);
	launch->collect.output_fd = launch->output_fd;
	launch->collect.segment_options = launch->options->segment_options;
	// No descriptors: the collector is in this process, and is spoken to through the door and
	// `tell`.
	launch->collect.report_fd = launch->collect.stop_fd = launch->collect.listen_fd = -1;
	launch->collect.tell = launch_listen;
	launch->collect.tell_context = launch;
	launch->collect.door = &launch->door;
	ASSERT(launch->output_fd >= 0 && launch->collector == NULL);
	launch->collector = CreateThread(NULL, 0, launch_collect, launch, 0, NULL);
	if (launch->collector == NULL)
		return err_set(err, ERR_IO, "cannot start the collector");
	// Its end, or a word of it: whichever comes first.
	// The order matters: of two that are ready Windows names the first, so a collector that has
	// ended is seen as such; what it said before is heard all the same.
	either[0] = launch->collector;
	either[1] = launch->spoken;
	for (;;) {
		DWORD which = WaitForMultipleObjects(2, either, FALSE, INFINITE);

		if (launch_hear(launch))
			return true;
		if (which == WAIT_OBJECT_0)
			return err_set(err, ERR_IO, "the collector did not start: %s",
				       launch->collect_err.text);
	}
}

// ---- The program ----------------------------------------------------------------------------

// In words, of the system's numbers those that a user may meet; NULL: another.
static const char *launch_reason(unsigned long number)
{
	switch (number) {
	case ERROR_ACCESS_DENIED:
		return "access is denied (try: tidemark as an administrator)";
	case ERROR_BAD_EXE_FORMAT:
		return "it is not a program of this Windows, or damaged (a script: name what runs "
		       "it, as in python.exe job.py)";
	case ERROR_EXE_MACHINE_TYPE_MISMATCH:
		return "it is for another kind of machine";
	case LAUNCH_VIRUS:
		return "the virus scanner does not let it start";
	case ERROR_ACCESS_DISABLED_BY_POLICY:
		return "a policy of this system does not let it start";
	case ERROR_SXS_CANT_GEN_ACTCTX:
		return "a library that its manifest names is missing (see sxstrace.exe)";
	default:
		return NULL;
	}
}

// Why the program could not be started. Always false.
static bool launch_fail(const struct launch *launch, const char *obstacle, struct err *err)
{
	unsigned long number = GetLastError();
	const char *program = str_get(&launch->program);

	launch->result->end = LAUNCH_NOT_EXECUTABLE;
	if (number == LAUNCH_ELEVATION)
		obstacle = "it asks for an administrator (try: start tidemark as one)";
	if (obstacle == NULL)
		obstacle = launch_reason(number);
	if (obstacle != NULL)
		return err_set(err, ERR_IO, "cannot execute %s (error %lu): %s", program, number,
			       obstacle);
	return err_set(err, ERR_IO, "cannot execute %s (error %lu)", program, number);
}

// It does not run yet. What cannot be recorded is not even begun, with --strict.
// The process is made suspended: its main thread has run nothing when the recorder is brought in.
static bool launch_create(struct launch *launch, struct err *err)
{
	// Static, since 64 KiB each are much for a stack; one launch at a time has them.
	static wchar_t line[LAUNCH_TEXT_MAX], file[LAUNCH_TEXT_MAX];
	STARTUPINFOW startup = { .cb = sizeof startup };
	const char *obstacle;

	if (!launch_find(launch->options, launch->result, NULL, &launch->program, err))
		return false;
	obstacle = obstacle_of_image(str_get(&launch->program));
	if (obstacle != NULL && launch->options->strict)
		return err_set(err, ERR_IO, "%s: %s (--strict: not started)",
			       str_get(&launch->program), obstacle);
	command_quote(&launch->command, launch->options->argv);
	if (!MultiByteToWideChar(CP_UTF8, 0, str_get(&launch->command), -1, line,
				 LAUNCH_TEXT_MAX) ||
	    !MultiByteToWideChar(CP_UTF8, 0, str_get(&launch->program), -1, file, LAUNCH_TEXT_MAX))
		return err_set(err, ERR_USAGE, "the command line is too long");
	// Started by a debugger, it is not started by way of us again; and then it has none.
	// Handles are inherited: the program has our standard streams. Our own files are made not
	// to be.
	if (CreateProcessW(file, line, NULL, NULL, TRUE,
			   CREATE_SUSPENDED |
				   (launch->options->watched ? DEBUG_ONLY_THIS_PROCESS : 0),
			   NULL, NULL, &startup, &launch->child)) {
		if (launch->options->watched)
			DebugActiveProcessStop(launch->child.dwProcessId);
		return true;
	}
	return launch_fail(launch, obstacle, err);
}

// One that runs.
static bool launch_attach(struct launch *launch, struct err *err)
{
	static wchar_t path[LAUNCH_TEXT_MAX];
	static char bytes[3 * LAUNCH_TEXT_MAX];
	uint32_t pid = launch->options->attach_pid;
	DWORD length = LAUNCH_TEXT_MAX;
	// The rights that door_invite needs: to write the invitation there, and to begin a thread
	// that reads it.
	HANDLE process = OpenProcess(
		PROCESS_CREATE_THREAD | PROCESS_VM_OPERATION | PROCESS_VM_READ | PROCESS_VM_WRITE |
			PROCESS_DUP_HANDLE | PROCESS_QUERY_INFORMATION | SYNCHRONIZE,
		FALSE, pid);

	if (process == NULL && GetLastError() == ERROR_INVALID_PARAMETER) {
		launch->result->end = LAUNCH_NOT_FOUND;
		return err_set(err, ERR_USAGE, "there is no process %u", pid);
	}
	if (process == NULL) {
		DWORD number = GetLastError();
		const char *obstacle = obstacle_of_process(pid);

		launch->result->end = LAUNCH_NOT_EXECUTABLE;
		if (obstacle != NULL)
			return err_set(err, ERR_IO, "process %u: %s", pid, obstacle);
		return err_set(err, ERR_IO, "cannot open process %u (error %lu)%s%s", pid, number,
			       launch_reason(number) ? ": " : "",
			       launch_reason(number) ? launch_reason(number) : "");
	}
	// There is no thread to resume: it runs already, and goes on while the recorder is brought
	// in.
	launch->child.hProcess = process;
	launch->child.dwProcessId = pid;
	if (!QueryFullProcessImageNameW(process, 0, path, &length) ||
	    !WideCharToMultiByte(CP_UTF8, 0, path, -1, bytes, sizeof bytes, NULL, NULL))
		return err_set(err, ERR_IO, "process %u does not give its name", pid);
	str_add(&launch->program, bytes);
	str_add(&launch->command, bytes);
	return true;
}

static bool launch_open_output(struct launch *launch, struct err *err)
{
	launch->output_fd = launch_create_output(launch->options, launch->result,
						 str_get(&launch->program),
						 launch->child.dwProcessId, &launch->output, err);
	return launch->output_fd >= 0;
}

// It is recorded, and asks for something under which that was not tried: said here and in the
// trace.
static void launch_tell_guard(const struct launch *launch)
{
	const char *program = str_get(&launch->program);
	const char *guard = obstacle_guard_of_image(program);
	struct collect_message message = { .kind = COLLECT_NOTE, .pid = launch->child.dwProcessId };

	if (guard == NULL)
		return;
	snprintf(message.text, sizeof message.text, "%s %s", file_name(program), guard);
	launch_tell(launch->options, "%s", message.text);
	door_post(launch->door, &message);
}

// What cannot be recorded runs all the same, but for --strict.
static bool launch_go(struct launch *launch, struct err *err)
{
	// In order of what may be lost: attaching that fails is a failure; with --strict a program
	// that would not be recorded is not started; else it runs, and the trace says that it was
	// not seen.
	if (!door_invite(launch->door, launch->child.hProcess, launch->child.hThread,
			 launch->child.dwProcessId, err)) {
		launch->result->whole = false;
		if (launch->options->attach_pid)
			return err_wrap(err, "process %u", launch->options->attach_pid);
		if (launch->options->strict)
			return err_wrap(err, "%s (--strict: not started)",
					str_get(&launch->program));
		door_unseen(launch->door, launch->child.hProcess, err);
		err->kind = ERR_NONE;
	} else {
		launch_tell_guard(launch);
	}
	if (launch->child.hThread)
		ResumeThread(launch->child.hThread);
	return true;
}

// The console is closed, or the user signs out. Windows ends us as soon as the handler is back, and
// after five seconds anyway: until then the trace has to be whole. Most programs hear of it as we
// do, and end; of one that stays (it has no console) the recording ends before it does.
static void launch_await_end(struct launch *launch)
{
	HANDLE collector = launch->collector;

	if (collector == NULL || WaitForSingleObject(collector, LAUNCH_CLOSE_MS) != WAIT_TIMEOUT)
		return;
	launch_post(launch, COLLECT_STOP, 0);
	WaitForSingleObject(collector, INFINITE);
}

// Ctrl-C is the program's while it runs, unless we have only attached; then it ends the recording.
// Before there is a collector to tell it is too early for that, and nothing is done.
static BOOL WINAPI launch_interrupt(DWORD event)
{
	struct launch *launch = launch_now;

	if (launch == NULL || launch->door == NULL)
		return TRUE;
	if (launch->ended || launch->options->attach_pid)
		launch_post(launch, COLLECT_STOP, 0);
	if (event >= CTRL_CLOSE_EVENT)
		launch_await_end(launch);
	return TRUE;
}

static void launch_wait(struct launch *launch)
{
	HANDLE waits[3] = { launch->spoken, launch->collector, launch->child.hProcess };
	bool closed = false;
	DWORD code = 0;

	ASSERT(launch->collector != NULL && launch->child.hProcess != NULL);
	while (!closed) {
		DWORD count = launch->ended ? 2 : 3;
		// After the program's end we say once what is waited for, if it takes longer than
		// half a second.
		bool patient = !launch->ended || launch->told_waiting;
		DWORD which = WaitForMultipleObjects(count, waits, FALSE,
						     patient ? INFINITE : LAUNCH_PATIENCE_MS);

		if (which == WAIT_TIMEOUT) {
			launch_tell(launch->options, LAUNCH_WAITING);
			launch->told_waiting = true;
		} else if (which == WAIT_OBJECT_0 + 2) {
			GetExitCodeProcess(launch->child.hProcess, &code);
			launch->result->status = (int)code;
			launch->ended = true;
			launch_post(launch, COLLECT_ENDED, (int)code);
		}
		launch_hear(launch);
		closed = which == WAIT_OBJECT_0 + 1;
	}
	// A recording that is left says 0, as `record -p` does on Linux.
	if (launch->options->attach_pid) {
		launch->result->status = 0; // its end is not ours
	} else if (!launch->ended) { // the collector is gone first: no more room, or told to stop
		WaitForSingleObject(launch->child.hProcess, INFINITE);
		GetExitCodeProcess(launch->child.hProcess, &code);
		launch->result->status = (int)code;
	}
}

// Nothing has run: leave nothing behind.
static void launch_undo(struct launch *launch)
{
	if (launch->child.hProcess != NULL && !launch->options->attach_pid)
		TerminateProcess(launch->child.hProcess, 1);
	if (launch->door != NULL)
		launch_post(launch, COLLECT_STOP, 0);
	// Its thread writes to the file, so it is waited for before the file is closed and removed.
	if (launch->collector != NULL)
		WaitForSingleObject(launch->collector, INFINITE);
	if (launch->output_fd >= 0)
		_close(launch->output_fd);
	launch->output_fd = -1;
	output_undo(&launch->output, str_get(&launch->result->path));
	str_clear(&launch->result->path);
}

// The program's process is made first, and stands, because the output is named after its pid; then
// come the collector, the recorder in the process, and its first instruction.
void launch_run(const struct launch_options *options, struct launch_result *result, struct err *err)
{
	struct launch launch = { .options = options, .result = result, .output_fd = -1 };

	launch_begin(result);
	launch.last = &launch.first;
	ASSERT(launch_now == NULL); // one at a time
	launch.spoken = CreateEventW(NULL, FALSE, FALSE, NULL);
	InitializeCriticalSection(&launch.lock);
	launch_now = &launch;
	SetConsoleCtrlHandler(launch_interrupt, TRUE);
	if ((options->attach_pid ? launch_attach(&launch, err) : launch_create(&launch, err)) &&
	    launch_open_output(&launch, err) && launch_open_collector(&launch, err) &&
	    launch_go(&launch, err)) {
		result->end = LAUNCH_RAN;
		output_begun(&launch.output);
		launch_wait(&launch);
	} else {
		launch_undo(&launch);
	}
	SetConsoleCtrlHandler(launch_interrupt, FALSE);
	launch_now = NULL;
	if (launch.output_fd >= 0)
		_close(launch.output_fd);
	if (launch.collector != NULL)
		CloseHandle(launch.collector);
	if (launch.child.hProcess != NULL)
		CloseHandle(launch.child.hProcess);
	if (launch.child.hThread != NULL)
		CloseHandle(launch.child.hThread);
	CloseHandle(launch.spoken);
	DeleteCriticalSection(&launch.lock);
	STR_FINI(&launch.program, &launch.command);
}
