// roster: all process images: those whose place in the order has not come yet, those that live,
// and the last ones that ended.
//
// An image that begins by exec begins when its predecessor of the same process is done with; one
// that begins by fork, where the forking thread was at the fork. The merge asks the roster when it
// comes to such a place, and waits for a child that has not said hello yet, but not for long.
#ifndef COLLECT_ROSTER_H
#define COLLECT_ROSTER_H

#include "base/map.h"
#include "collect/awaited.h"
#include "collect/image.h"

struct roster {
	struct ledger *ledger;   // borrowed
	const struct tick *tick; // borrowed
	bool follow;             // children are welcomed
	struct image *arrivals;  // have said hello; in that order
	struct image *images;    // have their place
	struct image *ended;     // newest first
	size_t ended_count;
	size_t began_count;     // images that ever began
	struct map processes;   // pid -> process id + 1 of its newest image
	struct map generations; // pid -> its newest image's generation
	struct map statuses;    // pid -> wait status + 1 as the launcher says
	struct awaited awaited; // have not said hello yet
	uint64_t awaited_ns;    // since when there is nobody else; 0: there is
	process_id *parents;    // by process id
	size_t parents_count, parents_capacity;
	uint64_t guest_bytes, guest_bytes_peak; // of ours in all images
};

void roster_init(struct roster *roster, struct ledger *ledger, const struct tick *tick,
		 bool follow);
void roster_fini(struct roster *roster); // accepts { 0 }

// An image has said hello. Takes the arrival over.
void roster_arrive(struct roster *roster, struct door_arrival *arrival);

// The process of image `id` has ended.
void roster_exit(struct roster *roster, uint32_t id, uint64_t time_ns);

// The launcher says how process `pid` ended.
void roster_status(struct roster *roster, uint32_t pid, int status);

// The image of a process that lives and has begun, or NULL.
struct image *roster_find(const struct roster *roster, uint32_t pid);

// Let those begin that can. After the notes of all images were read.
void roster_settle(struct roster *roster);

// What the merge calls. `context` is the roster.
bool roster_special(void *context, struct stream *stream, const struct lane_item *item);

// End those whose last event is delivered. With `all`: everybody, as still running.
void roster_end(struct roster *roster, bool all);

// Once a pass: tell of awaited processes that have ended.
void roster_tell_lost(struct roster *roster);

// Nobody lives, nobody waits for a place, and nobody is awaited.
bool roster_empty(struct roster *roster);

// Measure what we take in the guests.
void roster_weigh(struct roster *roster);

#endif
