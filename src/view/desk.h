// desk: an open trace at which one question is answered at a time, and the line in front of it.
//
// The engine and the names are for one thread, requests come in many. They wait in the order in
// which they came. A question may belong to a *lane* (what a person drags a window for): when a
// newer one of its lane comes while it still waits, it is superseded, and sent away.
//
//     desk_open
//       desk_enter     waits; DESK_MINE: desk->opened is the caller's
//       desk_leave
//     desk_stop        everybody who waits is sent away, and whoever comes
//     desk_close       nobody is there any more
#ifndef VIEW_DESK_H
#define VIEW_DESK_H

#include "report/opened.h"

#include <pthread.h>

struct desk_waiter; // private

struct desk {
	struct opened opened; // of whoever is at the desk
	struct window_options window_options;
	pthread_mutex_t mutex; // the rest is private
	pthread_cond_t moved;
	struct desk_waiter *first;
	bool busy, stopping;
};

enum desk_turn { DESK_MINE, DESK_SUPERSEDED, DESK_STOPPED };

// `path` is borrowed; so is what the options name. The index is opened when it is first asked for,
// or now, with `indexed`.
bool desk_open(struct desk *desk, const char *path, const struct symbols_options *symbols,
	       const struct window_options *window, bool indexed, struct err *err);
void desk_close(struct desk *desk); // accepts { 0 }

// `lane` may be NULL or "": none.
enum desk_turn desk_enter(struct desk *desk, const char *lane);
void desk_leave(struct desk *desk);

void desk_stop(struct desk *desk); // whoever is at it goes on

#endif
