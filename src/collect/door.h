// door: where process images knock, and where their deaths are heard of.
//
// A thread of its own answers each hello at once, with a new segment, so that no program waits
// for the collector to finish what it is doing; and it watches everything else that may happen:
// the end of a process, a message from the launcher, the request to stop. What happened is put
// into a queue, in order, and the bell is rung.
//
// A hello is not to be trusted; the sender's pid comes from the kernel.
//
//     door_open
//       door_take           what happened; then sleep until the bell rings (tick.h)
//       door_watch, door_answer, door_number
//     door_refuse           the recording ends; go on taking until door_idle
//     door_close
//
// All calls are the collector's thread's; door_number may come from any.
#pragma once

#include "base/err.h"
#include "collect/collect_types.h"
#include "collect/control.h"
#include "collect/peer.h"
#include "collect/share.h"
#include "collect/spares.h"
#include "collect/tick.h"

// How the recorder comes into a program.
enum door_way {
	DOOR_KNOCKED,      // by itself: it said hello
	DOOR_FIRST,        // invited: no instruction of the program runs before it has joined
	DOOR_LATER,        // invited: a thread is made to load it
	DOOR_CHANGED,      // the same, as the program's starter has undone the first way
	DOOR_CHANGED_LOST, // it has, and there was no other
	DOOR_NEVER,        // invited, and it has ended without having run
};

// An image that has been welcomed.
struct door_arrival {
	uint32_t image;      // from 1
	uint32_t pid;        // as we see it
	uint32_t parent_pid; // the same
	uint64_t time_ns;
	uint64_t tick_ns; // the tick at that time: whatever the image does is not earlier
	int pidfd;
	uint32_t user; // who it runs as, if `user_known`
	bool user_known;
	struct spare *spare; // whose segment it is; NULL: its own
	enum door_way way;
	bool pid_unsure; // it had ended before it could be looked for: `pid` is its own number
	struct share share;
	struct segment_hello hello; // lengths checked
	char *exe;
	char **args; // args_count of them, one allocation with their text
	uint32_t args_count;
	struct peer_space space; // all 0 on Windows, whose guest says it
	bool space_old;          // the process had ended: its parent's is taken
};

enum door_event_kind {
	DOOR_ARRIVAL,
	DOOR_EXIT,    // image `image`'s process has ended
	DOOR_WAY,     // it came into image `image` by another `way`
	DOOR_MESSAGE, // from the launcher
	DOOR_ALONE,   // the launcher is gone
	DOOR_STOP,    // stop_fd has become readable
	DOOR_WARNING, // `text`
	DOOR_UNSEEN,  // a program that `message.pid` started is not recorded: `text`; with what it
		      // said, if anything, in `arrival`, which has no segment
	DOOR_CONTROL, // `request`, of `sender`
	DOOR_SPARES,  // somebody asked for `pool`
	DOOR_LOOK,    // nothing: whether it is taken
};

struct door_event {
	struct door_event *next;
	enum door_event_kind kind;
	uint32_t image;
	enum door_way way;
	uint64_t time_ns;
	struct door_arrival *arrival;   // the taker's
	struct spare_pool *pool;        // the taker's
	struct collect_message message; // DOOR_MESSAGE; text also for DOOR_WARNING, DOOR_UNSEEN
	struct control_request request;
	struct control_sender sender;
};

struct door;

// Listen. `options` and `tick` are borrowed until door_close.
struct door *door_open(const struct collect_options *options, struct tick *tick, struct err *err);
void door_close(struct door *door); // NULL is allowed

// To the launcher, if there is one. One that does not listen misses warnings, but nothing that it
// waits for.
bool door_tell(const struct collect_options *options, const struct collect_message *message);

// The next thing that happened; the caller frees it with mem_free. NULL: nothing more.
struct door_event *door_take(struct door *door);

// Answer a DOOR_CONTROL.
void door_answer(const struct door *door, const struct door_event *event,
		 enum control_status status, const char *text);

// A number for one more image.
uint32_t door_number(struct door *door);

// The end of image `image`, whose process the pidfd is of, will be a DOOR_EXIT. False: it cannot be
// watched.
bool door_watch(struct door *door, int pidfd, uint32_t image);

// From now on no image is welcomed.
void door_refuse(struct door *door);

// Nobody is in the door, and nothing waits to be taken.
bool door_idle(struct door *door);

void door_arrival_free(struct door_arrival *arrival); // NULL is allowed
