// progress: a bar on stderr for long work, after half a second, only where stderr is a terminal
// (or always, as plain lines, with PROGRESS_PLAIN).
#ifndef BASE_PROGRESS_H
#define BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

enum progress_mode { PROGRESS_AUTO, PROGRESS_NONE, PROGRESS_PLAIN, PROGRESS_BAR };

struct progress {
	enum progress_mode mode;
	const char *what; // borrowed
	uint64_t total;
	uint64_t began_ns;
	uint64_t shown_ns;
	bool visible;
};

// `what` is said in front of the bar; `total` is what progress_update counts up to.
void progress_begin(struct progress *progress, enum progress_mode mode, const char *what,
		    uint64_t total);

// Tell how much is done. Looks at the clock each time: call it now and then, not for every item.
void progress_update(struct progress *progress, uint64_t done);

// Wipe the bar away. May be called again.
void progress_end(struct progress *progress);

#endif
