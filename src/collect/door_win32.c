// On Windows nothing knocks: a program is invited before it runs (wire/invite.h). So the door has
// no thread of its own. The launcher's thread calls door_invite for the first program; for a child,
// its parent leaves a visit in the session, and the collector's thread looks at the visits each
// time it asks for what happened (door_take). Ends of processes are heard of in threads of the
// system (RegisterWaitForSingleObject).
//
// For example cmd.exe, image 1, starts cl.exe:
//
//     guest of 1    starts it suspended; VISIT_HELD: its handles, as image 1 has them; VISIT_ASKED
//     door_take     duplicates the handles out of image 1, makes a segment, invites, puts
//                   DOOR_ARRIVAL, answers 0 (it joins) and sets VISIT_DONE (VISIT_TAKEN before)
//     guest of 1    lets the child run
//
// A child that cannot be invited runs all the same, and DOOR_UNSEEN says that it is not recorded.
// Of those whose guest waited in vain its segment has the number (segment.unasked).
#include "collect/door_win32.h"

#include "base/mem.h"
#include "collect/door_queue.h"
#include "collect/invite_win32.h"
#include "collect/obstacle_win32.h"
#include "collect/peer.h"
#include "os/wide_win32.h"
#include "wire/invite.h"

#include <stdio.h>
#include <string.h>
#include <windows.h>

enum { PATH_UNITS_MAX = 32768 };

// A process whose end is waited for.
struct watched {
	struct watched *next;
	struct door *door;
	uint32_t image;
	HANDLE process; // ours
	HANDLE wait;

	// Under the lock: of a program that its starter is going to let run.
	bool waiting;
	HANDLE thread; // its first one
	struct invite_sent sent;
};

struct door {
	const struct collect_options *options;
	struct tick *tick;
	CRITICAL_SECTION lock;   // of what follows: the launcher invites too
	struct watched *watched; // all that ever were
	uint32_t images_count;
	char *directory; // where we lie, and the recorder's DLLs with us
	_Atomic bool refusing;
	struct door_queue queue;
};

static char *own_directory(void)
{
	wchar_t *units = mem_alloc(PATH_UNITS_MAX, sizeof *units);
	DWORD count = GetModuleFileNameW(NULL, units, PATH_UNITS_MAX);
	struct str path = { 0 };

	while (count > 0 && units[count - 1] != '\\' && units[count - 1] != '/')
		count--;
	wide_add(&path, (const uint16_t *)units, count > 0 ? count - 1 : 0);
	mem_free(units);
	return str_take(&path);
}

struct door *door_open(const struct collect_options *options, struct tick *tick, struct err *)
{
	struct door *door = mem_alloc(1, sizeof *door);

	door->options = options;
	door->tick = tick;
	door->directory = own_directory();
	InitializeCriticalSection(&door->lock);
	door_queue_init(&door->queue, tick);
	return door;
}

// How many children wait to be let run: guests look.
static void count_waiting(const struct door *door, int32_t change)
{
	_Atomic uint32_t *waiting = (void *)((char *)door->tick->clock + INVITE_WAITING_AT);

	atomic_fetch_add(waiting, (uint32_t)change);
}

static void stop_waiting(struct watched *watched)
{
	if (!watched->waiting)
		return;
	ASSERT(watched->thread != NULL);
	watched->waiting = false;
	CloseHandle(watched->thread);
	count_waiting(watched->door, -1);
}

void door_close(struct door *door)
{
	struct watched *next;

	if (door == NULL)
		return;
	for (struct watched *watched = door->watched; watched; watched = next) {
		next = watched->next;
		UnregisterWaitEx(watched->wait, INVALID_HANDLE_VALUE);
		stop_waiting(watched);
		CloseHandle(watched->process);
		mem_free(watched);
	}
	door_queue_fini(&door->queue);
	DeleteCriticalSection(&door->lock);
	mem_free(door->directory);
	mem_free(door);
}

static void tell_way(const struct watched *watched, enum door_way way)
{
	struct door_event *event = door_queue_event(DOOR_WAY);

	event->image = watched->image;
	event->way = way;
	door_queue_put(&watched->door->queue, event);
}

// In a thread of the system's.
static void CALLBACK has_ended(void *context, BOOLEAN)
{
	struct watched *watched = context;
	struct door_event *event = door_queue_event(DOOR_EXIT);

	EnterCriticalSection(&watched->door->lock);
	if (watched->waiting)
		tell_way(watched, DOOR_NEVER);
	stop_waiting(watched);
	LeaveCriticalSection(&watched->door->lock);
	event->image = watched->image;
	door_queue_put(&watched->door->queue, event);
}

// A handle of our own, since the caller's may be closed before the process ends. `waits`: the
// thread that its starter is going to let run, or NULL.
static bool watch(struct door *door, HANDLE process, uint32_t image, HANDLE waits,
		  const struct invite_sent *sent)
{
	struct watched *watched = mem_alloc(1, sizeof *watched);

	watched->door = door;
	watched->image = image;
	if (!DuplicateHandle(GetCurrentProcess(), process, GetCurrentProcess(), &watched->process,
			     0, FALSE, DUPLICATE_SAME_ACCESS)) {
		mem_free(watched);
		return false;
	}
	watched->sent = *sent;
	watched->waiting = waits &&
			   DuplicateHandle(GetCurrentProcess(), waits, GetCurrentProcess(),
					   &watched->thread, 0, FALSE, DUPLICATE_SAME_ACCESS);
	if (watched->waiting)
		count_waiting(door, 1);
	watched->next = door->watched;
	door->watched = watched;
	return RegisterWaitForSingleObject(&watched->wait, watched->process, has_ended, watched,
					   INFINITE, WT_EXECUTEONLYONCE);
}

// The path of the program that runs there.
static char *exe_of(HANDLE process)
{
	wchar_t *units = mem_alloc(PATH_UNITS_MAX, sizeof *units);
	DWORD count = PATH_UNITS_MAX;
	struct str path = { 0 };

	if (QueryFullProcessImageNameW(process, 0, units, &count))
		wide_add(&path, (const uint16_t *)units, count);
	mem_free(units);
	return str_take(&path);
}

// What a guest on Linux says in its hello is found out here, from outside.
static void fill_hello(struct door_arrival *arrival, HANDLE process, bool runs)
{
	struct segment_hello *hello = &arrival->hello;
	size_t length = strlen(arrival->exe);

	*hello = (struct segment_hello){
		.magic = SEGMENT_MAGIC,
		.version = SEGMENT_VERSION,
		.start = runs ? SEGMENT_START_ATTACH : SEGMENT_START_EXEC,
		.pid = arrival->pid,
		.parent_pid = arrival->parent_pid,
		.abi = invite_is_narrow(process) ? 32 : 64,
	};
	if (length > sizeof hello->exe)
		length = sizeof hello->exe;
	hello->exe_length = (uint32_t)length;
	memcpy(hello->exe, arrival->exe, length);
}

// What is known of the program says more than what failed at last.
static bool enter(const struct invite_call *call, struct door_arrival *arrival,
		  struct invite_sent *sent, struct err *err)
{
	const char *obstacle = obstacle_of_image(arrival->exe);

	if (obstacle != NULL)
		return err_set(err, ERR_IO, "%s", obstacle);
	if (invite_send(call, sent, err)) {
		arrival->way = sent->first ? DOOR_FIRST : DOOR_LATER;
		return true;
	}
	obstacle = obstacle_of_process(arrival->pid);
	return obstacle != NULL ? err_wrap(err, "%s", obstacle) : false;
}

// Under the lock: `images_count` is a number for the next image, and is counted up only when the
// program has its invitation. The arrival is put into the queue before the program runs, so it is
// known before its first event can be seen.
static bool invite(struct door *door, HANDLE process, HANDLE thread, uint32_t pid, bool waits,
		   struct err *err)
{
	struct door_arrival *arrival = mem_alloc(1, sizeof *arrival);
	struct invite_call call = {
		.process = process,
		.thread = thread,
		.session = (HANDLE)(intptr_t)door->tick->session.fd,
		.bell = (HANDLE)(intptr_t)door->tick->session.bell,
		.options = door->options->segment_options,
		.image = door->images_count + 1,
		.directory = door->directory,
	};
	struct invite_sent sent = { 0 };
	struct door_event *event;

	arrival->time_ns = tick_now(door->tick);
	arrival->tick_ns = tick_raise(door->tick, arrival->time_ns);
	arrival->image = call.image;
	arrival->pid = pid;
	arrival->pidfd = peer_pidfd(-1, pid);
	arrival->parent_pid = peer_parent(pid);
	arrival->args = peer_args(pid, &arrival->args_count);
	arrival->exe = exe_of(process);
	fill_hello(arrival, process, thread == NULL);
	if (!share_open(&arrival->share, call.image, call.options, door->options->info.sample_bytes,
			err)) {
		door_arrival_free(arrival);
		return false;
	}
	call.segment = (HANDLE)(intptr_t)arrival->share.fd;
	if (!enter(&call, arrival, &sent, err)) {
		door_arrival_free(arrival);
		return false;
	}
	door->images_count++;
	event = door_queue_event(DOOR_ARRIVAL);
	event->image = arrival->image;
	event->arrival = arrival;
	door_queue_put(&door->queue, event);
	if (!watch(door, process, call.image, waits ? thread : NULL, &sent)) {
		err_set(err, ERR_IO, "cannot watch process %u: its end will not be noticed", pid);
		door_queue_warn(&door->queue, err);
	}
	return true;
}

static bool invite_now(struct door *door, HANDLE process, HANDLE thread, uint32_t pid, bool waits,
		       struct err *err)
{
	bool good;

	if (atomic_load(&door->refusing))
		return err_set(err, ERR_IO, "the recording is over");
	EnterCriticalSection(&door->lock);
	good = invite(door, process, thread, pid, waits, err);
	LeaveCriticalSection(&door->lock);
	return good;
}

bool door_invite(struct door *door, void *process, void *thread, uint32_t pid, struct err *err)
{
	return invite_now(door, process, thread, pid, false, err);
}

void door_unseen(struct door *door, void *process, const struct err *err)
{
	struct door_event *event = door_queue_event(DOOR_UNSEEN);
	struct collect_message *message = &event->message;
	uint32_t pid = process ? GetProcessId(process) : 0;
	char *exe = process ? exe_of(process) : NULL;

	message->pid = process ? peer_parent(pid) : 0;
	snprintf(message->text, sizeof message->text, "%s (process %u) is not recorded: %s",
		 exe && *exe ? exe : "a program", pid, err->text);
	mem_free(exe);
	door_queue_put(&door->queue, event);
}

void door_post(struct door *door, const struct collect_message *message)
{
	struct door_event *event = door_queue_event(DOOR_MESSAGE);

	event->message = *message;
	door_queue_put(&door->queue, event);
}

// Visits are in the session's memory, after the clock page.
static struct visit *visits_of(const struct door *door)
{
	return (struct visit *)(void *)((char *)door->tick->clock + INVITE_VISITS_AT);
}

// A handle of the process that asks, as one of ours. NULL: it is none.
static HANDLE take_handle(HANDLE asking, uint32_t number)
{
	HANDLE handle = NULL;

	DuplicateHandle(asking, (HANDLE)(intptr_t)(int32_t)number, GetCurrentProcess(), &handle, 0,
			FALSE, DUPLICATE_SAME_ACCESS);
	return handle;
}

// The process of an image that we invited.
static HANDLE process_of(struct door *door, uint32_t image)
{
	HANDLE process = NULL;

	EnterCriticalSection(&door->lock);
	for (struct watched *watched = door->watched; watched; watched = watched->next)
		if (watched->image == image)
			process = OpenProcess(PROCESS_DUP_HANDLE, FALSE,
					      GetProcessId(watched->process));
	LeaveCriticalSection(&door->lock);
	return process;
}

// The handles are the asking process's: ours are made of them, and closed at the end whatever
// happens.
static bool receive(struct door *door, const struct visit *visit, struct err *err)
{
	HANDLE asking = process_of(door, visit->image);
	HANDLE process = asking ? take_handle(asking, visit->process) : NULL;
	HANDLE thread = asking ? take_handle(asking, visit->thread) : NULL;
	bool waits = visit->kind == VISIT_WAITS, good;

	if (visit->kind == VISIT_COPIED)
		good = err_set(err, ERR_IO,
			       "it is a copy of its parent (a fork), which the recorder does not "
			       "go on in");
	else if (!process || !thread)
		good = err_set(err, ERR_IO, "its handles cannot be had");
	else
		good = invite_now(door, process, thread, GetProcessId(process), waits, err);
	if (!good)
		door_unseen(door, process, err);
	if (process)
		CloseHandle(process);
	if (thread)
		CloseHandle(thread);
	if (asking)
		CloseHandle(asking);
	return good;
}

// Of a program that is about to run: will it load the recorder?
static void look_again(struct door *door, struct watched *watched)
{
	const struct invite_call call = {
		.process = watched->process,
		.thread = watched->thread,
		.directory = door->directory,
	};
	struct err err = { 0 };
	bool again;

	ASSERT(watched->waiting && watched->image != 0);
	if (!watched->sent.first)
		return; // whatever becomes of its image, a thread of it loads the recorder
	if (!invite_renew(&call, watched->sent.at, &again, &err))
		tell_way(watched, DOOR_CHANGED_LOST);
	else if (again)
		tell_way(watched, DOOR_CHANGED);
	else
		return;
	watched->sent.first = false;
}

// Process `pid` is about to be let run; 0: one of those that wait.
static void let_run(struct door *door, uint32_t pid)
{
	EnterCriticalSection(&door->lock);
	for (struct watched *watched = door->watched; watched; watched = watched->next) {
		if (!watched->waiting || (pid && GetProcessId(watched->process) != pid))
			continue;
		look_again(door, watched);
		if (pid)
			stop_waiting(watched);
	}
	LeaveCriticalSection(&door->lock);
}

// Children that wait to be invited, or to be let run.
// An answer other than 0 tells the guest that its child will not be recorded.
static void serve_visits(struct door *door)
{
	struct visit *visits = visits_of(door);
	bool wanted = !(door->options->segment_options & SEGMENT_NO_FOLLOW);

	for (size_t i = 0; i < INVITE_VISITS_MAX; i++) {
		struct visit *visit = &visits[i];
		struct err err = { 0 };
		uint32_t state = VISIT_ASKED;

		if (!atomic_compare_exchange_strong(&visit->state, &state, VISIT_TAKEN))
			continue;
		if (visit->kind == VISIT_RESUMES)
			let_run(door, visit->pid);
		else
			visit->answer = !wanted || atomic_load(&door->refusing) ||
					!receive(door, visit, &err);
		state = VISIT_TAKEN;
		if (!atomic_compare_exchange_strong(&visit->state, &state, VISIT_DONE))
			atomic_store(&visit->state, VISIT_FREE); // it was left
	}
}

struct door_event *door_take(struct door *door)
{
	serve_visits(door);
	return door_queue_take(&door->queue);
}

// Never asked: see control_win32.c.
void door_answer(const struct door *door, const struct door_event *event,
		 enum control_status status, const char *text)
{
	(void)door, (void)event, (void)status, (void)text;
}

uint32_t door_number(struct door *)
{
	return 0;
}

bool door_watch(struct door *, int, uint32_t)
{
	return false; // there are no spares here
}

void door_refuse(struct door *door)
{
	atomic_store(&door->refusing, true);
}

bool door_idle(struct door *door)
{
	struct visit *visits = visits_of(door);

	for (size_t i = 0; i < INVITE_VISITS_MAX; i++)
		if (atomic_load(&visits[i].state) == VISIT_ASKED)
			return false;
	return door_queue_empty(&door->queue);
}

bool door_tell(const struct collect_options *options, const struct collect_message *message)
{
	if (options->tell == NULL)
		return false;
	options->tell(options->tell_context, message);
	return true;
}
