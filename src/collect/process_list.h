// process_list: all process images: those whose place in the order has not come yet, those that
// live, and the last ones that ended.
//
// An image that begins by exec begins when its predecessor of the same process is done with, or, if
// it has none, when its parent has begun; one that begins by fork, where the forking thread was at
// the fork. The merge asks the process list
// when it comes to such a place, and waits for a child that has not said hello yet, but not for
// long.
#pragma once

#include "base/map.h"
#include "collect/image.h"
#include "collect/pending_exec.h"
#include "collect/spares.h"

// All images of a recording, in three lists: each image is in one of them, and owned by it.
struct process_list {
	struct trace_builder *trace_builder; // borrowed
	const struct tick *tick;             // borrowed
	bool follow;                         // children are welcomed
	struct image *arrivals;              // have said hello; in that order
	struct image *images;                // have their place
	struct image *begun;                 // of them, from here on: not looked at yet; or NULL
	struct image *ended;                 // newest first
	size_t ended_count;
	struct map by_id;                 // of all three lists: id -> the image's address
	struct map pids;                  // pid -> how many images of it are not over yet
	size_t began_count;               // images that ever began
	struct map processes;             // pid -> process id + 1 of its newest image
	struct map generations;           // pid -> its newest image's generation
	struct map statuses;              // pid -> wait status + 1 as the launcher says
	struct pending_exec pending_exec; // have not said hello yet
	struct spares spares;
	uint64_t came_ns;    // when the last child took the place of its fork
	uint64_t awaited_ns; // since when there is nobody else; 0: there is
	process_id *parents; // by process id
	size_t parents_capacity;
	struct door_arrival **missed; // forked children that are not recorded
	size_t missed_count, missed_capacity;
	bool *late; // by process id: it ended when the kernel said so, not when its parent knew
	size_t late_capacity;
	uint64_t guest_bytes, guest_bytes_peak; // of ours in all images
	uint64_t weigh_after_ns;                // where many end, not each time one does
};

void process_list_init(struct process_list *process_list, struct trace_builder *trace_builder,
		       const struct tick *tick, bool follow);
void process_list_fini(struct process_list *process_list); // accepts { 0 }

// An image has said hello. Takes the arrival over.
void process_list_arrive(struct process_list *process_list, struct door_arrival *arrival);

// One has said hello that is not recorded: the order does not wait for it. Takes the arrival over;
// NULL is allowed.
void process_list_miss(struct process_list *process_list, struct door_arrival *arrival);

// The process of image `id` has ended.
void process_list_exit(struct process_list *process_list, uint32_t id, uint64_t time_ns);

// The launcher says how process `pid` ended.
void process_list_status(struct process_list *process_list, uint32_t pid, int status);

// The image of a process that lives and has begun, or NULL.
struct image *process_list_find(const struct process_list *process_list, uint32_t pid);

// At the end of the trace: whose ends may come late in it.
void process_list_tell_late(const struct process_list *process_list);

// The process of that pid, also when it has ended; TRACE_NONE: there was none.
process_id process_list_number(const struct process_list *process_list, uint32_t pid);

// The recorder came into image `id` by another way than was thought.
void process_list_way(struct process_list *process_list, uint32_t id, enum door_way way);

// The image of that number, if it is kept; NULL: it is not.
struct image *process_list_image(const struct process_list *process_list, uint32_t id);

// Whether that image is not over yet.
bool process_list_lives(const struct process_list *process_list, uint32_t id);

// Whether the process of that pid has an image that is not over yet.
bool process_list_knows(const struct process_list *process_list, uint32_t pid);

// Let those begin that can. After the notes of all images were read.
void process_list_settle(struct process_list *process_list);

// The time up to which all images are known: later, there may be something of one whose lanes no
// look has seen yet, or whose place has not come. UINT64_MAX: there is none.
uint64_t process_list_known_ns(const struct process_list *process_list);

// What the merge calls. `context` is the roster.
bool process_list_special(void *context, struct stream *stream, const struct lane_item *item);

// End those whose last event is delivered. With `all`: everybody, as still running.
void process_list_end(struct process_list *process_list, bool all);

// While the order is held: who is over gives its spare back, since the child that is waited for may
// be waiting for one.
void process_list_reap(struct process_list *process_list);

// Once a pass: tell of awaited processes that have ended.
void process_list_tell_lost(struct process_list *process_list);

// Nobody lives, nobody waits for a place, and nobody is awaited.
bool process_list_empty(struct process_list *process_list);

// Measure what we take in the guests.
void process_list_weigh(struct process_list *process_list);
