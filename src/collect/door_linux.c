// The door's thread sleeps in epoll. What wakes it, for a program that is started and ends:
//
//     a connection         a visitor; it has 5 s to say hello
//     its hello            checked: version, user, whether it is wanted. A segment is made, and its
//                          descriptor goes back with the welcome, by SCM_RIGHTS. DOOR_ARRIVAL
//     the pidfd            is readable when the process has ended. DOOR_EXIT
//
// so that the program has waited for one answer, and not for the collector. Nothing
// of a hello is believed but what its socket says of itself: the pid is the kernel's.
//
// A forked child has mostly gone on, and may be gone altogether, when its hello is heard: it sends
// the segment that it has made. What it says was so when it began: where it may have changed since,
// that is what is taken.
//
// A visitor that is about to execute a static program (SEGMENT_START_ENTER) gets a thread of its
// own, since that is to be stopped and entered, which takes milliseconds.
#include "collect/door.h"

#include "base/mem.h"
#include "collect/door_queue.h"
#include "collect/hello_linux.h"
#include "collect/peer.h"
#include "os/file.h"
#include "os/now.h"
#include "wire/lane_event.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	EVENTS_MAX = 64,
	VISITORS_MAX = 128,
	VISIT_S_MAX = 5,
	LOOK_S = 10,  // a collector without a launcher is looked at so often
	STILL_S = 30, // and may stand still so long
	BACKLOG = 4096,
	ENTERING_NAPS = 2000,
	ENTERING_NAP_NS = 1000000,
	UNHEARD_MAX = 256, // each holds a descriptor of its user's, who may have 1,024 on the way
	UNHEARD_NS = 1000000000,
};

// What an epoll entry means; the high half of its data. The low half is a descriptor or an image.
enum watched {
	WATCHED_LISTEN,
	WATCHED_VISITOR,
	WATCHED_PROCESS,
	WATCHED_REPORT,
	WATCHED_STOP,
	WATCHED_CONTROL,
	WATCHED_QUIT
};

// Has connected, has not said hello yet.
struct visitor {
	int fd; // 0: free
	uint64_t since_ns;
};

struct door {
	const struct collect_options *options;
	struct tick *tick;
	int listen_fd, epoll_fd, quit_fd, control_fd;
	int path_fd; // listens at `path`, for other network namespaces; -1: not possible
	struct sockaddr_un path;
	bool listen_ours;
	pthread_t thread;
	struct visitor visitors[VISITORS_MAX];
	size_t visitors_count;
	bool alone;            // the launcher is gone
	uint64_t looked_ns;    // when the collector was looked at last
	unsigned looks, still; // how often; of these one after the other where it took nothing
	uint64_t unheard_ns;   // when one was heard that had gone on without an answer
	uint32_t first_pid;    // of the first image
	_Atomic bool refusing;
	_Atomic uint32_t busy;     // visitors inside
	_Atomic uint32_t entering; // static programs: threads of entry_main

	struct share next; // made ahead: who says hello next waits for less; { 0 }: there is none
	struct door_queue queue;
};

// `which` is the descriptor, or an image's number. False: the kernel has no room for it.
static bool watch(struct door *door, int fd, enum watched what, uint32_t which)
{
	struct epoll_event event = {
		// A dead process stays readable: told once.
		.events = EPOLLIN | (what == WATCHED_PROCESS ? EPOLLONESHOT : 0),
		.data.u64 = (uint64_t)what << 32 | which,
	};

	return epoll_ctl(door->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

// Root records everybody's processes, others their own. With --no-follow the first process that
// came is the only one; its images by exec count as it.
static bool wanted(const struct door *door, const struct segment_hello *hello,
		   const struct ucred *from)
{
	if (atomic_load(&door->refusing))
		return false;
	if (geteuid() != 0 && from->uid != geteuid())
		return false;
	if ((door->options->segment_options & SEGMENT_NO_FOLLOW) && door->first_pid != 0)
		return (uint32_t)from->pid == door->first_pid &&
		       hello->start != SEGMENT_START_FORK &&
		       hello->start != SEGMENT_START_FORK_HELPED &&
		       hello->start != SEGMENT_START_SPARES;
	return true;
}

static void set_reach_mark(const struct door *door, struct share *share)
{
	const char *mark = door->options->reach_mark;

	if (mark)
		strncpy(share->segment->reach_mark, mark, SEGMENT_MARK_BYTES - 1);
}

// A segment for `image`: the one that was made ahead, or a new one.
static bool take_share(struct door *door, struct share *share, uint32_t image, struct err *err)
{
	if (door->next.segment == NULL)
		return share_open(share, image, door->options->segment_options,
				  door->options->info.sample_bytes, err);
	*share = door->next;
	share->segment->image = image;
	memset(&door->next, 0, sizeof door->next);
	return true;
}

// Who forked will fork again, or its child executes something. Where it cannot be made, the next
// one is made when it is asked for.
static void make_next_share(struct door *door)
{
	struct err unwanted;

	ASSERT(door->next.segment == NULL);
	share_open(&door->next, 0, door->options->segment_options, door->options->info.sample_bytes,
		   &unwanted);
}

// Its end will be noticed.
static void watch_arrival(struct door *door, const struct door_arrival *arrival)
{
	struct err err;

	if (arrival->pidfd >= 0 && watch(door, arrival->pidfd, WATCHED_PROCESS, arrival->image))
		return;
	err_set(&err, ERR_IO, "cannot watch process %u: its end will not be noticed", arrival->pid);
	door_queue_warn(&door->queue, &err);
}

static struct door_event *arrival_event(struct door_arrival *arrival)
{
	struct door_event *event = door_queue_event(DOOR_ARRIVAL);

	event->image = arrival->image;
	event->arrival = arrival;
	return event;
}

// It goes on unrecorded. Takes the arrival.
static void tell_no_share(struct door *door, struct door_arrival *arrival, const struct err *err)
{
	struct door_event *event = door_queue_event(DOOR_UNSEEN);

	ASSERT(err->text[0] != '\0');
	event->message.pid = arrival->pid;
	snprintf(event->message.text, sizeof event->message.text,
		 "process %u, %.200s, is not recorded: %.250s", arrival->pid, arrival->exe,
		 err->text);
	event->arrival = arrival;
	door_queue_put(&door->queue, event);
}

// Make a segment for the one who said hello, and answer.
//
// The event is put into the queue with the queue held while the welcome is sent: no event of the
// new process can be seen before its arrival is in the queue.
static void welcome_image(struct door *door, int fd, const struct segment_hello *hello,
			  const struct ucred *from)
{
	struct door_arrival *arrival = mem_alloc(1, sizeof *arrival);
	struct segment_welcome welcome = {
		.magic = SEGMENT_MAGIC,
		.version = SEGMENT_VERSION,
		.image = door_number(door),
		.options = door->options->segment_options,
		.collector_pid = (uint32_t)getpid(),
		.pid = (uint32_t)from->pid,
	};
	bool helped = hello->start == SEGMENT_START_FORK_HELPED;
	bool forked = helped || hello->start == SEGMENT_START_FORK;
	struct door_event *event;
	struct err err;
	bool sent;

	ASSERT(hello->exe_length <= sizeof hello->exe);
	arrival->time_ns = tick_now(door->tick);
	arrival->tick_ns = tick_raise(door->tick, arrival->time_ns);
	arrival->image = welcome.image;
	arrival->pid = (uint32_t)from->pid;
	arrival->hello = *hello;
	if (helped)
		arrival->hello.start = SEGMENT_START_FORK;
	arrival->exe = mem_copy_bytes(hello->exe, hello->exe_length);
	arrival->user = from->uid;
	arrival->user_known = !helped;
	arrival->pidfd = peer_pidfd(helped ? -1 : fd, arrival->pid);
	if (!take_share(door, &arrival->share, welcome.image, &err)) {
		tell_no_share(door, arrival, &err);
		welcome.refused = 1;
		hello_answer(fd, &welcome, NULL, 0);
		return;
	}
	welcome.segment_bytes = arrival->share.bytes;
	set_reach_mark(door, &arrival->share);
	// While the peer waits for us, /proc surely speaks of it and not of a successor.
	// And its arguments, and its address space: three files that a process which was let go
	// might have replaced by exec.
	arrival->parent_pid = peer_parent_of(arrival->pidfd, arrival->pid);
	arrival->args = peer_args(arrival->pid, &arrival->args_count);
	peer_space(arrival->pid, arrival->pidfd, arrival->hello.abi == 32 ? 32 : 64,
		   arrival->hello.start == SEGMENT_START_FORK ? hello->parent_image : 0,
		   &arrival->space);
	if (arrival->hello.start != SEGMENT_START_FORK)
		arrival->space.files_limit = peer_full_files(arrival->pid);
	watch_arrival(door, arrival);
	event = arrival_event(arrival);
	door_queue_hold(&door->queue);
	sent = hello_answer(fd, &welcome,
			    (const int[]){ door->tick->session.fd, arrival->share.fd }, 2);
	door_queue_release(&door->queue, sent ? event : NULL);
	if (!sent) {
		door_arrival_free(arrival);
		mem_free(event);
		return;
	}
	if (door->first_pid == 0)
		door->first_pid = (uint32_t)from->pid;
	if (forked)
		make_next_share(door);
}

// A forked child that is not recorded, though it goes on as if it were. Takes the arrival.
static void tell_unheard(struct door *door, struct door_arrival *arrival, const struct err *err)
{
	struct door_event *event = door_queue_event(DOOR_UNSEEN);

	event->message.pid = arrival->hello.parent_pid;
	snprintf(event->message.text, sizeof event->message.text,
		 "a child of process %u is not recorded: %.400s", arrival->hello.parent_pid,
		 err->text);
	event->arrival = arrival;
	door_queue_put(&door->queue, event);
}

// Arguments that are written over up to the end go on where the environment was, as far as the
// kernel knows. It may speak of another program by now: of that they are no beginning.
static void take_longer_args(struct door_arrival *arrival, const char *sent, size_t sent_size)
{
	uint32_t count;
	char **args = peer_args(arrival->pid, &count);
	const char *last = count > 0 ? args[count - 1] : NULL;

	if (last == NULL || (size_t)(last - args[0]) + strlen(last) < sent_size ||
	    memcmp(args[0], sent, sent_size) != 0) {
		mem_free(args);
		return;
	}
	mem_free(arrival->args);
	arrival->args = args;
	arrival->args_count = count;
}

// A forked child that does not wait. Its segment is taken as it is: it may have written there.
//
// Its arguments are those that it had when it began, as its hello has them.
static void take_image(struct door *door, int fd, struct hello_heard *heard)
{
	const struct segment_hello *hello = &heard->hello;
	size_t args_at = offsetof(struct segment_hello, exe) + hello->exe_length;
	const char *args = (const char *)heard + args_at;
	size_t args_length = heard->size - args_at;
	struct door_arrival *arrival = mem_alloc(1, sizeof *arrival);
	uint64_t now_ns = tick_now(door->tick);
	int segment_fd = heard->fd;
	struct err err;

	heard->fd = -1;
	arrival->pidfd = -1;
	arrival->image = hello->image;
	arrival->hello = *hello;
	if (!share_adopt(&arrival->share, segment_fd, hello->image, door->options->segment_options,
			 door->options->info.sample_bytes, &err)) {
		tell_unheard(door, arrival, &err);
		return;
	}
	set_reach_mark(door, &arrival->share);
	arrival->time_ns = hello->time_ns < now_ns ? hello->time_ns : now_ns;
	arrival->tick_ns = arrival->time_ns; // the fork holds the order for it
	arrival->pid = (uint32_t)heard->from.pid;
	arrival->parent_pid = hello->parent_pid;
	arrival->exe = mem_copy_bytes(hello->exe, hello->exe_length);
	arrival->user = heard->from.uid;
	arrival->user_known = true;
	arrival->pidfd = peer_pidfd(fd, arrival->pid);
	arrival->args = peer_args_of(args, args_length, &arrival->args_count);
	if (args_length > 0 && args[args_length - 1] != '\0')
		take_longer_args(arrival, args, args_length);
	arrival->space_old = !peer_space(arrival->pid, arrival->pidfd, hello->abi == 32 ? 32 : 64,
					 hello->parent_image, &arrival->space);
	watch_arrival(door, arrival);
	door_queue_put(&door->queue, arrival_event(arrival));
	if (door->next.segment == NULL)
		make_next_share(door);
}

// Its place is taken by the last one.
static void visitor_leaves(struct door *door, struct visitor *visitor)
{
	ASSERT(door->visitors_count > 0);
	close(visitor->fd);
	*visitor = door->visitors[--door->visitors_count];
	atomic_fetch_sub(&door->busy, 1);
}

// Somebody who is refused is told so, and goes on unrecorded; the trace says who it was.
static void refuse(struct door *door, int fd, struct hello_heard *heard)
{
	const struct segment_hello *hello = &heard->hello;
	const struct ucred *from = &heard->from;
	struct segment_welcome no = {
		.magic = SEGMENT_MAGIC,
		.version = SEGMENT_VERSION,
		.refused = 1,
	};
	struct err err = { 0 };

	if (hello->magic == SEGMENT_MAGIC && hello->version != SEGMENT_VERSION)
		err_set(&err, ERR_IO,
			"process %u is not recorded: its recorder is of another "
			"version",
			(unsigned)from->pid);
	else if (geteuid() != 0 && from->uid != geteuid())
		err_set(&err, ERR_IO, "process %u is not recorded: it belongs to another user",
			(unsigned)from->pid);
	if (err.text[0] != '\0')
		door_queue_warn(&door->queue, &err);
	hello_answer(fd, &no, NULL, 0);
	if (heard->fd >= 0)
		share_refuse(heard->fd); // it has gone on, and does not listen
	heard->fd = -1;
}

// As many spares as are wanted and can be had. Their processes have to be found in /proc.
//
// The segments' descriptors go to the process in one message; up to SEGMENT_SPARES_AT_ONCE. Each
// has the number of an image from the beginning.
static void give_spares(struct door *door, int fd, const struct segment_hello *hello,
			const struct ucred *from)
{
	struct spare_pool *pool = mem_alloc(1, sizeof *pool);
	struct segment_welcome welcome = {
		.magic = SEGMENT_MAGIC,
		.version = SEGMENT_VERSION,
		.options = door->options->segment_options,
		.collector_pid = (uint32_t)getpid(),
		.pid = (uint32_t)from->pid,
	};
	int fds[SEGMENT_SPARES_AT_ONCE];
	struct door_event *event;
	struct err err;

	pool->owner = hello->parent_image;
	pool->abi = hello->abi;
	pool->exe = mem_copy_bytes(hello->exe, hello->exe_length);
	while (pool->count < hello->frames_count && pool->count < SEGMENT_SPARES_AT_ONCE &&
	       peer_parent((uint32_t)getpid()) != 0) {
		struct spare *spare = &pool->spares[pool->count];

		ASSERT(pool->count < SEGMENT_SPARES_AT_ONCE);
		spare->pool = pool;
		spare->image = door_number(door);
		if (!share_open(&spare->share, spare->image, welcome.options,
				door->options->info.sample_bytes, &err))
			break;
		welcome.segment_bytes = spare->share.bytes;
		set_reach_mark(door, &spare->share);
		atomic_store(&spare->share.segment->claim, SEGMENT_CLAIM_FREE);
		fds[pool->count++] = spare->share.fd;
	}
	welcome.refused = pool->count == 0;
	if (!hello_answer(fd, &welcome, fds, pool->count) || pool->count == 0) {
		spares_pool_free(pool);
		return;
	}
	event = door_queue_event(DOOR_SPARES);
	event->pool = pool;
	door_queue_put(&door->queue, event);
}

static void refuse_entry(int fd)
{
	struct segment_welcome no = {
		.magic = SEGMENT_MAGIC,
		.version = SEGMENT_VERSION,
		.refused = NOTE_EXEC_UNTRACED,
	};

	send(fd, &no, sizeof no, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// A visitor who is about to execute a static program.
struct entry {
	struct door *door;
	int fd;
	uint32_t pid, tid;
	int file;
};

// Stops the thread at its exec and enters the recorder into the static program (launch has the
// how). It takes as long as the program needs to get there, so it has a thread, and the door goes
// on.
static void *entry_main(void *argument)
{
	struct entry *entry = argument;
	struct door *door = entry->door;
	const struct collect_enter *enter = door->options->enter;
	struct segment_welcome welcome = {
		.magic = SEGMENT_MAGIC,
		.version = SEGMENT_VERSION,
		.refused = enter->prepare(entry->tid, entry->file),
	};
	struct err err = { .kind = ERR_NONE };
	bool stops = welcome.refused == 0;

	ASSERT(entry->door->options->enter);
	prctl(PR_SET_NAME, "tidemark-entry");
	close(entry->file);
	send(entry->fd, &welcome, sizeof welcome, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (stops && !enter->finish(entry->pid, entry->tid, entry->fd, &err))
		door_queue_warn(&door->queue, &err);
	close(entry->fd);
	mem_free(entry);
	atomic_fetch_sub(&door->busy, 1);
	atomic_fetch_sub(&door->entering, 1);
	return NULL;
}

// The visitor is the thread's from here on. False: it is not.
//
// The hello's lane is used for the thread's id, and parent_image for the file's descriptor
// (exec_ask_entry of the recorder).
static bool enter(struct door *door, int fd, const struct segment_hello *hello,
		  const struct ucred *from)
{
	uint32_t tid = hello->fork_lane;
	struct entry *entry;
	pthread_attr_t attributes;
	char path[64];
	pthread_t thread;
	bool begun;

	ASSERT(hello->start == SEGMENT_START_ENTER);
	// In another PID namespace only a process's first thread is known to us.
	if (hello->fork_lane == hello->pid)
		tid = (uint32_t)from->pid;
	else if (hello->pid != (uint32_t)from->pid)
		tid = 0;
	if (door->options->enter == NULL || tid == 0)
		return false;
	entry = mem_alloc(1, sizeof *entry);
	*entry = (struct entry){ door, fd, (uint32_t)from->pid, tid, -1 };
	snprintf(path, sizeof path, "/proc/%u/fd/%u", (uint32_t)from->pid, hello->parent_image);
	entry->file = open(path, O_RDONLY | O_CLOEXEC);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	atomic_fetch_add(&door->entering, 1);
	begun = entry->file >= 0 && pthread_create(&thread, &attributes, entry_main, entry) == 0;
	pthread_attr_destroy(&attributes);
	if (begun)
		return true;
	atomic_fetch_sub(&door->entering, 1);
	file_close(entry->file);
	mem_free(entry);
	return false;
}

// It has no owner here any more.
static void visitor_goes_on(struct door *door, struct visitor *visitor)
{
	ASSERT(door->visitors_count > 0);
	epoll_ctl(door->epoll_fd, EPOLL_CTL_DEL, visitor->fd, NULL);
	*visitor = door->visitors[--door->visitors_count];
}

// One less who has gone on without an answer, if this is one.
static void count_unheard(struct door *door, const struct hello_heard *heard)
{
	_Atomic uint32_t *unheard = &door->tick->clock->unheard;
	uint32_t count = atomic_load(unheard);

	if (heard->size <= offsetof(struct segment_hello, image) || heard->hello.image == 0)
		return;
	while (count != 0 && !atomic_compare_exchange_weak(unheard, &count, count - 1))
		;
	door->unheard_ns = tick_now(door->tick);
}

// All that have connected have been heard, or are silent. Who is counted still is about to connect,
// or was killed before it could. When none of so many came for a second they are not coming; one
// that does after all makes the count too small by one.
static void forget_killed(struct door *door)
{
	uint64_t now_ns = tick_now(door->tick);

	if (atomic_load(&door->tick->clock->unheard) < UNHEARD_MAX ||
	    now_ns - door->unheard_ns < UNHEARD_NS)
		return;
	atomic_store(&door->tick->clock->unheard, 0);
	door->unheard_ns = now_ns;
}

// Hear a hello, if it is there. The visitor is gone afterwards, or still silent.
//
// SO_PEERCRED is the kernel's word on who has connected; a helper has connected in its parent's
// name, so that its parent is meant.
static void hear(struct door *door, struct visitor *visitor)
{
	static struct hello_heard heard; // the door's thread only
	const struct segment_hello *hello = &heard.hello;
	struct ucred *from = &heard.from;
	ssize_t size = hello_receive(visitor->fd, &heard);

	if (size < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (size > 0) {
		count_unheard(door, &heard);
		if (size > (ssize_t)offsetof(struct segment_hello, start) &&
		    hello->start == SEGMENT_START_FORK_HELPED)
			from->pid = (pid_t)peer_parent((uint32_t)from->pid);
		if (!hello_valid(hello, heard.size) || !wanted(door, hello, from)) {
			refuse(door, visitor->fd, &heard);
		} else if (hello->image != 0) {
			take_image(door, visitor->fd, &heard);
		} else if (hello->start == SEGMENT_START_SPARES) {
			give_spares(door, visitor->fd, hello, from);
		} else if (hello->start == SEGMENT_START_ENTER) {
			if (enter(door, visitor->fd, hello, from)) {
				file_close(heard.fd);
				visitor_goes_on(door, visitor);
				return;
			}
			refuse_entry(visitor->fd);
		} else {
			welcome_image(door, visitor->fd, hello, from);
		}
	}
	file_close(heard.fd);
	visitor_leaves(door, visitor);
}

// From the first line on what it sends is an error to it, of which it knows then that it was not
// heard; what it has sent before is heard here.
static void send_away(struct door *door, struct visitor *visitor)
{
	size_t count = door->visitors_count;

	shutdown(visitor->fd, SHUT_RD);
	hear(door, visitor);
	if (door->visitors_count == count)
		visitor_leaves(door, visitor);
}

// Who has come before has said hello before, if it goes on without an answer. For example, a child
// forks, says hello and executes a program: that one's hello is of a process that is known.
static void hear_all(struct door *door)
{
	// From the last: one that leaves is replaced by the last, which was heard before.
	for (size_t i = door->visitors_count; i-- > 0;)
		hear(door, &door->visitors[i]);
}

// Mostly the hello is there already when the connection is accepted, and no watch is needed.
static void accept_visitors(struct door *door, int listen_fd)
{
	ASSERT(door->visitors_count <= VISITORS_MAX);
	if (listen_fd != door->listen_fd) // who goes on without an answer does not come this way
		accept_visitors(door, door->listen_fd);
	for (;;) {
		struct visitor *visitor;
		int fd;

		atomic_fetch_add(&door->busy, 1); // first, or it is nowhere for a moment
		fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0) {
			atomic_fetch_sub(&door->busy, 1);
			if (errno == EAGAIN)
				forget_killed(door);
			return;
		}
		hear_all(door);
		if (door->visitors_count == VISITORS_MAX)
			// The place of the first is given to the last: who is sent away is one of
			// the silent ones, of which 128 at once are no accident.
			send_away(door, &door->visitors[0]);
		visitor = &door->visitors[door->visitors_count++];
		*visitor = (struct visitor){ .fd = fd, .since_ns = tick_now(door->tick) };
		hear(door, visitor);
		// Still there: silent so far.
		if (door->visitors_count > 0 && door->visitors[door->visitors_count - 1].fd == fd)
			watch(door, fd, WATCHED_VISITOR, (uint32_t)fd);
	}
}

static void hear_fd(struct door *door, int fd)
{
	for (size_t i = 0; i < door->visitors_count; i++)
		if (door->visitors[i].fd == fd) {
			hear(door, &door->visitors[i]);
			return;
		}
}

static void send_away_silent(struct door *door)
{
	uint64_t now_ns = tick_now(door->tick);

	// From the last: one that leaves is replaced by the last, which was looked at before.
	for (size_t i = door->visitors_count; i-- > 0;)
		if (now_ns - door->visitors[i].since_ns > VISIT_S_MAX * 1000000000ull)
			send_away(door, &door->visitors[i]);
}

// When the launcher is gone nothing more can be heard of it: that ends the recording of what it
// started, and lets what was attached to run on.
//
// An end of file, or a message of another size, is its end.
static void hear_launcher(struct door *door)
{
	struct door_event *event = door_queue_event(DOOR_MESSAGE);
	ssize_t size = recv(door->options->report_fd, &event->message, sizeof event->message,
			    MSG_DONTWAIT);

	if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
		mem_free(event);
		return;
	}
	event->message.text[sizeof event->message.text - 1] = 0;
	if (size != (ssize_t)sizeof event->message) {
		event->kind = DOOR_ALONE;
		door->alone = true;
		epoll_ctl(door->epoll_fd, EPOLL_CTL_DEL, door->options->report_fd, NULL);
	} else if (event->message.kind == COLLECT_CUT) {
		// The collector's own thread may be held by its disk for ever, and not be killed.
		tick_stop(door->tick);
	}
	door_queue_put(&door->queue, event);
}

static void hear_control(struct door *door)
{
	struct door_event *event = door_queue_event(DOOR_CONTROL);

	if (control_read(door->control_fd, &event->request, &event->sender))
		door_queue_put(&door->queue, event);
	else
		mem_free(event);
}

// False: the thread is to end.
//
// What one descriptor of epoll's says.
static bool handle(struct door *door, const struct epoll_event *what)
{
	uint32_t which = (uint32_t)what->data.u64;
	struct door_event *event;

	switch ((enum watched)(what->data.u64 >> 32)) {
	case WATCHED_LISTEN:
		accept_visitors(door, (int)which);
		break;
	case WATCHED_VISITOR:
		hear_fd(door, (int)which);
		break;
	case WATCHED_PROCESS:
		event = door_queue_event(DOOR_EXIT);
		event->image = which;
		door_queue_put(&door->queue, event);
		break;
	case WATCHED_REPORT:
		hear_launcher(door);
		break;
	case WATCHED_STOP:
		epoll_ctl(door->epoll_fd, EPOLL_CTL_DEL, door->options->stop_fd, NULL);
		door_queue_put(&door->queue, door_queue_event(DOOR_STOP));
		break;
	case WATCHED_CONTROL:
		hear_control(door);
		break;
	case WATCHED_QUIT:
		return false;
	}
	return true;
}

// The launcher would say that the collector stands still, and cut at its user's wish. Without it
// the collector is given something to take now and then, and if it takes nothing for STILL_S
// seconds the programs go on, unrecorded from there on.
//
// For example, a launcher was killed by SIGKILL, and hours later a server of files is gone for good
// while the collector writes to it: the programs stand still for half a minute, as soon as their
// rings are full. Seconds are of this thread: while the whole process is stopped none goes by.
static void look_at_collector(struct door *door)
{
	if (door_queue_empty(&door->queue)) {
		door->still = 0;
		if (++door->looks % LOOK_S == 0)
			door_queue_put(&door->queue, door_queue_event(DOOR_LOOK));
		return;
	}
	if (++door->still == STILL_S) {
		struct door_event *warning = door_queue_event(DOOR_WARNING);

		tick_stop(door->tick);
		snprintf(
			warning->message.text, sizeof warning->message.text,
			"the recording was cut, as its collector did not move for %d s (its disk "
			"did not answer) and the launcher was gone; the programs ran on unrecorded",
			STILL_S);
		door_queue_put(&door->queue, warning);
		door_queue_put(&door->queue, door_queue_event(DOOR_STOP));
	}
}

// A visitor who says nothing within VISIT_S_MAX seconds is sent away; so long as there is one, or
// the launcher is gone, the thread wakes up each second.
static void *door_main(void *argument)
{
	struct door *door = argument;
	struct epoll_event events[EVENTS_MAX];
	bool going = true;

	prctl(PR_SET_NAME, "tidemark-door");
	while (going) {
		int timeout_ms = door->visitors_count > 0 || door->alone ? 1000 : -1;
		int count = epoll_wait(door->epoll_fd, events, EVENTS_MAX, timeout_ms);

		for (int i = 0; i < count && going; i++)
			going = handle(door, &events[i]);
		send_away_silent(door);
		if (door->alone && now_steady_ns() - door->looked_ns >= 1000000000) {
			door->looked_ns = now_steady_ns();
			look_at_collector(door);
		}
	}
	return NULL;
}

// The abstract name needs no file, and goes with the socket.
static bool listen_on(struct door *door, const char *name, struct err *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = strlen(name);

	ASSERT(door->listen_fd < 0);
	if (length == 0 || length > sizeof address.sun_path - 1)
		return err_set(err, ERR_USAGE, "socket name '%s' is empty or too long", name);
	memcpy(address.sun_path + 1, name, length);
	door->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (door->listen_fd < 0)
		return err_errno(err, errno, "cannot make a socket");
	door->listen_ours = true;
	length += offsetof(struct sockaddr_un, sun_path) + 1;
	if (bind(door->listen_fd, (struct sockaddr *)&address, (socklen_t)length) != 0 ||
	    listen(door->listen_fd, BACKLOG) != 0)
		return err_errno(err, errno, "cannot listen on socket '%s'", name);
	return true;
}

// Where that cannot be, programs in other network namespaces are told of and not recorded. Who may
// be recorded is decided when they have said hello.
//
// An abstract name is of one network namespace; a path is seen by all that share /tmp.
static void listen_at_path(struct door *door, const char *name)
{
	struct sockaddr_un *path = &door->path;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return;
	path->sun_family = AF_UNIX;
	snprintf(path->sun_path, sizeof path->sun_path, "%s%s", SEGMENT_PATH, name);
	if (bind(fd, (struct sockaddr *)path, sizeof *path) != 0) {
		close(fd);
		return;
	}
	if (chmod(path->sun_path, 0777) == 0 && listen(fd, BACKLOG) == 0 &&
	    watch(door, fd, WATCHED_LISTEN, (uint32_t)fd)) {
		door->path_fd = fd;
		return;
	}
	unlink(path->sun_path);
	close(fd);
}

// Each image takes descriptors (share_has_files).
static void raise_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

// What fails leaves the rest for give_back.
static bool begin(struct door *door, struct err *err)
{
	const struct collect_options *options = door->options;
	int number;

	raise_limits();
	door->tick->clock->unheard_max = peer_keeps_ends() ? UNHEARD_MAX : 0;
	door->listen_fd = options->listen_fd;
	if (options->listen_fd < 0 && !listen_on(door, options->socket_name, err))
		return false;
	door->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	door->quit_fd = eventfd(0, EFD_CLOEXEC);
	if (door->epoll_fd < 0 || door->quit_fd < 0 ||
	    !watch(door, door->listen_fd, WATCHED_LISTEN, (uint32_t)door->listen_fd) ||
	    !watch(door, door->quit_fd, WATCHED_QUIT, 0) ||
	    (options->report_fd >= 0 && !watch(door, options->report_fd, WATCHED_REPORT, 0)) ||
	    (options->stop_fd >= 0 && !watch(door, options->stop_fd, WATCHED_STOP, 0)))
		return err_errno(err, errno, "cannot watch for programs");
	// Where there is no room for these, the recording is as good.
	if (options->listen_fd < 0)
		listen_at_path(door, options->socket_name);
	door->control_fd = control_listen();
	if (door->control_fd >= 0)
		watch(door, door->control_fd, WATCHED_CONTROL, 0);
	number = pthread_create(&door->thread, NULL, door_main, door);
	if (number != 0)
		return err_errno(err, number, "cannot start the door");
	return true;
}

static void give_back(struct door *door)
{
	if (door->listen_ours && door->listen_fd >= 0)
		close(door->listen_fd);
	if (door->path_fd >= 0) {
		unlink(door->path.sun_path);
		close(door->path_fd);
	}
	file_close(door->epoll_fd);
	file_close(door->quit_fd);
	file_close(door->control_fd);
	share_close(&door->next);
	mem_free(door);
}

struct door *door_open(const struct collect_options *options, struct tick *tick, struct err *err)
{
	struct door *door = mem_alloc(1, sizeof *door);

	ASSERT(options && tick);
	door->options = options;
	door->tick = tick;
	door->listen_fd = door->path_fd = door->epoll_fd = door->quit_fd = door->control_fd = -1;
	door_queue_init(&door->queue, tick);
	if (begin(door, err))
		return door;
	give_back(door);
	return NULL;
}

// Who asked and was not answered gets an answer. Threads that enter a program are waited for, 2 s
// at most.
void door_close(struct door *door)
{
	struct control_request request;
	struct control_sender sender;

	if (door == NULL)
		return;
	while (write(door->quit_fd, &(uint64_t){ 1 }, 8) < 0 && errno == EINTR)
		;
	pthread_join(door->thread, NULL);
	while (control_read(door->control_fd, &request, &sender))
		control_reply(door->control_fd, &sender, CONTROL_UNKNOWN, "");
	while (door->visitors_count > 0)
		visitor_leaves(door, &door->visitors[0]);
	for (int i = 0; i < ENTERING_NAPS && atomic_load(&door->entering) > 0; i++)
		now_sleep(ENTERING_NAP_NS);
	if (atomic_load(&door->entering) > 0)
		return; // one of them has it still; the process ends now
	door_queue_fini(&door->queue);
	give_back(door);
}

struct door_event *door_take(struct door *door)
{
	return door_queue_take(&door->queue);
}

void door_answer(const struct door *door, const struct door_event *event,
		 enum control_status status, const char *text)
{
	control_reply(door->control_fd, &event->sender, status, text);
}

uint32_t door_number(struct door *door)
{
	// From 1: 0 is no image.
	return atomic_fetch_add(&door->tick->clock->images, 1) + 1;
}

bool door_watch(struct door *door, int pidfd, uint32_t image)
{
	return watch(door, pidfd, WATCHED_PROCESS, image);
}

void door_refuse(struct door *door)
{
	atomic_store(&door->refusing, true);
}

// No visitor waits to be let in, none is inside, and nothing is in the queue.
bool door_idle(struct door *door)
{
	struct pollfd waiting[] = { { .fd = door->listen_fd, .events = POLLIN },
				    { .fd = door->path_fd, .events = POLLIN } };

	return poll(waiting, 2, 0) == 0 && atomic_load(&door->busy) == 0 &&
	       door_queue_empty(&door->queue);
}

bool door_tell(const struct collect_options *options, const struct collect_message *message)
{
	int flags = MSG_NOSIGNAL | (message->kind == COLLECT_WARNING ? MSG_DONTWAIT : 0);

	if (options->report_fd < 0)
		return false;
	return send(options->report_fd, message, sizeof *message, flags) ==
	       (ssize_t)sizeof *message;
}
