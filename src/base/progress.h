// progress: a bar on stderr for long work, after half a second, only where stderr is a terminal
// (or always, as plain lines, with PROGRESS_PLAIN).
//
// A bar looks so, drawn over itself ten times a second at most; plain lines come once a second:
//
//     reading [############..................]  42 %
//
//     progress_begin
//       progress_update    now and then
//     progress_end
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

// AUTO is a bar on a terminal that is not "dumb", and nothing elsewhere.
enum progress_mode { PROGRESS_AUTO, PROGRESS_NONE, PROGRESS_PLAIN, PROGRESS_BAR };

// Times are those of the steady clock. `visible`: there is something on the line to be wiped away.
struct progress {
	enum progress_mode mode;
	const char *what; // borrowed
	uint64_t total;
	uint64_t began_ns;
	uint64_t shown_ns;
	bool visible;
};

// What the work of a thread has come to, for others to look at: whether a bar is shown or not.
struct progress_meter {
	_Atomic(const char *) what;   // a literal; NULL: nothing is counted now
	_Atomic uint64_t done, total; // of that
	_Atomic uint64_t began_ns;    // when it began, by the steady clock
};

// The calling thread's work is reported to `meter`, until it says NULL.
// One at a time for each thread. The meter must be there until then.
void progress_listen(struct progress_meter *meter);

// Work without a bar: so much of it is done. `what` is a literal. Costs a test where nobody
// listens.
void progress_tell(const char *what, uint64_t done, uint64_t total);

// `what` is said in front of the bar; `total` is what progress_update counts up to.
void progress_begin(struct progress *progress, enum progress_mode mode, const char *what,
		    uint64_t total);

// Tell how much is done. Looks at the clock each time: call it now and then, not for every item.
void progress_update(struct progress *progress, uint64_t done);

// Wipe the bar away. May be called again.
void progress_end(struct progress *progress);

// Private, by system: is stderr a terminal?
bool progress_has_terminal(void);
