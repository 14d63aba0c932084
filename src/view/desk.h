// desk: an open trace at which one question is answered at a time, and the line in front of it.
//
// The engine and the names are for one thread, requests come in many. They wait in the order in
// which they came. A question may belong to a *lane* (what a person drags a window for): when a
// newer one of its lane comes, it is superseded: sent away while it waits, stopped while it is
// being answered. A question that nobody waits for any more is stopped as well.
//
//     desk_open, desk_share    the second: the same trace, for questions that take longer
//       desk_enter     waits; DESK_MINE: desk->opened is the caller's
//       desk_leave     how it went: whether what was found may be believed
//     desk_stop        everybody is sent away or stopped, and whoever comes
//     desk_close       nobody is there any more; those that share it first
#ifndef VIEW_DESK_H
#define VIEW_DESK_H

#include "report/opened.h"

#include <pthread.h>
#include <stdatomic.h>

struct desk_waiter; // private

// Who asks.
struct desk_asker {
	const char *lane;            // NULL or "": none
	bool (*gone)(void *context); // nobody waits for the answer; from any thread. NULL: they do
	void *context;               // borrowed
};

enum desk_turn { DESK_MINE, DESK_SUPERSEDED, DESK_GONE, DESK_STOPPED };

struct desk {
	struct opened opened; // of whoever is at the desk
	struct window_options window_options;
	pthread_mutex_t mutex; // the rest is private
	pthread_cond_t moved;
	struct desk_waiter *first;
	struct desk_asker asker;      // who is at it, while busy
	_Atomic(enum desk_turn) turn; // DESK_MINE, or why that one is to stop
	bool busy, stopping;
};

// `path` is borrowed; so is what the options name. Builds the index where there is none.
bool desk_open(struct desk *desk, const char *path, const struct symbols_options *symbols,
	       const struct window_options *window, struct err *err);
bool desk_share(struct desk *desk, const struct desk *from, const struct symbols_options *symbols,
		struct err *err);
void desk_close(struct desk *desk); // accepts { 0 }

// How much memory a question at it may take, of what the options gave to all.
void desk_divide(struct desk *desk, uint64_t memory_bytes);

// `asker` is borrowed until desk_leave.
enum desk_turn desk_enter(struct desk *desk, const struct desk_asker *asker);

// DESK_MINE: nothing came between. Else the question was stopped, and why: what it found is wrong.
enum desk_turn desk_leave(struct desk *desk);

// Whether whoever is at the desk is to stop: a `gone` of theirs.
bool desk_stops(void *desk);

// Sends everybody away who waits, or will come; stops who is there.
void desk_stop(struct desk *desk);

#endif
