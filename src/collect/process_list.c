// Where an image begins. For example, process 100 forks at 5 ms, its child 101 says hello at 6 ms,
// and execs at 9 ms:
//
//     note of a fork in 100's lane    the order comes there and finds the hello that repeats lane
//                                     and head: 101 begins, with what 100 had at that point
//     (no hello yet)                  the order waits for it, 1 s at most; then 101 begins where
//                                     its hello was, and forks_late counts it. From 10 ms on it is
//                                     looked whether there is still somebody who could say it
//     second hello of pid 101         an exec: the first image of 101 is `replaced`, and ends when
//                                     its lanes are read; the second one begins then
//
// So an image is in `arrivals` until its place has come, in `images` until all that it did is
// delivered and it is known how its process ended, and in `ended`, of which the last 64 are kept,
// since a child that is late may ask for their numbers.
#include "collect/process_list.h"

#include "base/mem.h"
#include "collect/door.h"
#include "collect/generated_code.h"
#include "collect/image_end.h"
#include "collect/notes_reader.h"
#include "collect/peer.h"
#include "collect/rss_snapshots.h"

#include <stdio.h>
#include <string.h>

enum {
	ENDED_MAX = 64,                   // images whose numbers a late child may still inherit
	FORK_WAIT_NS = 1000000000,        // for the hello of a child
	FORK_HELD_NS = 50000000,          // and at least so long from when the order has come there
	FORK_WAIT_STOPPED_NS = 100000000, // from the end of the recording on
	FORK_LOOK_NS = 10000000,          // when it is first looked whether the child lives
	STATUS_WAIT_NS = 300000000,       // for the launcher to say how its child ended
	PARENT_WAIT_NS = 50000000, // for a parent to wait for what had ended before we looked
	WEIGH_APART_NS = 20000,    // for each process
};

void process_list_init(struct process_list *process_list, struct trace_builder *trace_builder,
		       const struct tick *tick, bool follow)
{
	memset(process_list, 0, sizeof *process_list);
	process_list->trace_builder = trace_builder;
	process_list->tick = tick;
	process_list->follow = follow;
}

static void free_list(struct process_list *process_list, struct image *image)
{
	while (image != NULL) {
		struct image *next = image->next;

		map_remove(&process_list->by_id, image->id);
		image_free(image);
		image = next;
	}
}

void process_list_fini(struct process_list *process_list)
{
	free_list(process_list, process_list->arrivals);
	free_list(process_list, process_list->images);
	free_list(process_list, process_list->ended);
	spares_fini(&process_list->spares);
	pending_exec_fini(&process_list->pending_exec);
	MAP_FINI(&process_list->by_id, &process_list->pids, &process_list->processes,
		 &process_list->generations, &process_list->statuses);
	mem_free(process_list->parents);
	mem_free(process_list->late);
	while (process_list->missed_count > 0)
		door_arrival_free(process_list->missed[--process_list->missed_count]);
	mem_free(process_list->missed);
	memset(process_list, 0, sizeof *process_list);
}

// The newest image of a process that has not been followed by another.
//
// With an unsure pid (a claim whose process was not found) an image is not found by it.
static struct image *find_pid(struct image *list, uint32_t pid)
{
	while (list != NULL &&
	       (list->pid != pid || list->pid_unsure || list->replaced || list->exited))
		list = list->next;
	return list;
}

// At the end: images are in the order of their hellos.
static void append(struct image **list, struct image *image)
{
	while (*list != NULL)
		list = &(*list)->next;
	image->next = NULL;
	*list = image;
}

static void take_out(struct image **list, struct image *image)
{
	while (*list != image) {
		ASSERT(*list != NULL);
		list = &(*list)->next;
	}
	*list = image->next;
	image->next = NULL;
}

// A child that said hello itself did so when it had just been forked; it may be a while ago.
static void open_code_lists(struct process_list *process_list, struct image *image)
{
	const struct door_arrival *arrival = image->arrival;
	const struct image *parent = NULL;

	if (arrival->hello.start == SEGMENT_START_FORK && arrival->user_known)
		parent = process_list_image(process_list, arrival->hello.parent_image);
	if (parent != NULL)
		code_lists_open_child(&image->code_lists, image->pid, &parent->code_lists,
				      arrival->user,
				      tick_now(process_list->tick) - arrival->time_ns);
	else
		code_lists_open(&image->code_lists, image->pid);
}

// Of a child that had ended when it was looked for: limits and control group are its parent's.
static void take_space(const struct process_list *process_list, struct door_arrival *arrival)
{
	const struct image *parent = process_list_image(process_list, arrival->hello.parent_image);

	if (parent != NULL && parent->arrival != NULL)
		arrival->space = parent->arrival->space;
}

// A child gives itself a number where it does not wait for an answer: one that is another's, or
// will be given to another. Two of one would be mixed up.
static bool number_is_free(struct process_list *process_list, const struct door_arrival *arrival)
{
	char line[96];

	if (process_list_image(process_list, arrival->image) == NULL)
		return true;
	snprintf(line, sizeof line, "process %u is not recorded: its number is another's",
		 arrival->pid);
	trace_builder_unseen(process_list->trace_builder,
			     process_list_number(process_list, arrival->parent_pid), line);
	atomic_store(&arrival->share.segment->heard, SEGMENT_HEARD_NO);
	return false;
}

// `arrival` is the image's from here on. A second hello of one pid is an exec of the first, or, if
// it was a fork, a new process with a pid that was given again.
void process_list_arrive(struct process_list *process_list, struct door_arrival *arrival)
{
	struct image *image, *before = NULL;
	uint64_t *generation;
	bool known; // its process has an image already

	if (!number_is_free(process_list, arrival)) {
		door_arrival_free(arrival);
		return;
	}
	if (arrival->space_old)
		take_space(process_list, arrival);
	image = image_new(arrival, process_list->trace_builder);
	*map_put(&process_list->by_id, image->id, NULL) = (uintptr_t)image;
	open_code_lists(process_list, image);
	image->spares = &process_list->spares;
	known = !image->pid_unsure && (*map_put(&process_list->pids, image->pid, NULL))++ > 0;
	if (known)
		before = find_pid(process_list->arrivals, image->pid);
	if (known && before == NULL)
		before = find_pid(process_list->images, image->pid);
	generation = map_put(&process_list->generations, image->pid, NULL);
	if (before != NULL) {
		// The same process, if it was an exec; a fork can only be a pid used again.
		before->exited_ns = arrival->tick_ns;
		if (arrival->hello.start == SEGMENT_START_EXEC) {
			before->replaced = true;
			image->generation = (uint32_t)*generation + 1;
		} else {
			before->exited = true;
		}
	}
	image->pending_exec = &process_list->pending_exec;
	pending_exec_hear(&process_list->pending_exec, arrival->hello.pid, image->id);
	if (!image->pid_unsure)
		*generation = image->generation;
	append(&process_list->arrivals, image);
}

// For example, the collector has no descriptors for a child of process 100. The order comes to that
// fork of 100's, now or later, and goes on: there is no child to wait for, and it has not ended
// before it began. Until then no descriptor is held for it. A program that was announced has come,
// too, and nothing is kept of it.
void process_list_miss(struct process_list *process_list, struct door_arrival *arrival)
{
	if (arrival == NULL)
		return;
	ASSERT(arrival->share.segment == NULL);
	pending_exec_hear(&process_list->pending_exec, arrival->hello.pid, arrival->image);
	if (arrival->hello.start == SEGMENT_START_EXEC) {
		struct image *before = find_pid(process_list->arrivals, arrival->pid);

		if (before == NULL)
			before = find_pid(process_list->images, arrival->pid);
		if (before != NULL)
			before->exec_refused = true;
	}
	if (arrival->hello.start != SEGMENT_START_FORK) {
		door_arrival_free(arrival);
		return;
	}
	peer_close(arrival->pidfd);
	arrival->pidfd = -1;
	*MEM_ADD(process_list->missed, process_list->missed_count, process_list->missed_capacity) =
		arrival;
}

// A replaced image has ended by its exec; the end of the process is its successor's. What ended may
// be another one that gave itself this number.
void process_list_exit(struct process_list *process_list, uint32_t id, uint64_t time_ns)
{
	struct image *image = process_list_image(process_list, id);

	if (image == NULL || image->arrival == NULL || image->replaced ||
	    (image->arrival->pidfd > 0 && !peer_ended(image->arrival->pidfd)))
		return;
	image->exited = true;
	image->exited_ns = time_ns;
}

void process_list_way(struct process_list *process_list, uint32_t id, enum door_way way)
{
	struct image *image = process_list_image(process_list, id);

	ASSERT(way != DOOR_KNOCKED); // that is known from the start
	if (image != NULL && image->arrival != NULL)
		image->arrival->way = way;
}

// The launcher's own child: its status, plus 1, so that a status of 0 differs from none.
void process_list_status(struct process_list *process_list, uint32_t pid, int status)
{
	*map_put(&process_list->statuses, pid, NULL) = (uint64_t)(uint32_t)status + 1;
}

struct image *process_list_find(const struct process_list *process_list, uint32_t pid)
{
	for (struct image *image = process_list->images; image != NULL; image = image->next)
		if (image->pid == pid && image->begun && !image->replaced && !image->exited)
			return image;
	return NULL;
}

struct image *process_list_image(const struct process_list *process_list, uint32_t id)
{
	const uint64_t *image = map_find(&process_list->by_id, id);

	return image != NULL ? (struct image *)(uintptr_t)*image : NULL;
}

bool process_list_lives(const struct process_list *process_list, uint32_t id)
{
	const struct image *image = process_list_image(process_list, id);

	return image != NULL && image->arrival != NULL;
}

bool process_list_knows(const struct process_list *process_list, uint32_t pid)
{
	return find_pid(process_list->images, pid) != NULL ||
	       find_pid(process_list->arrivals, pid) != NULL;
}

process_id process_list_number(const struct process_list *process_list, uint32_t pid)
{
	const uint64_t *process = map_find(&process_list->processes, pid);

	return process != NULL ? (process_id)(*process - 1) : TRACE_NONE;
}

// ---- Beginning ------------------------------------------------------------------------------

// First the image that forked; then, for an exec, what the process had before; then the kernel's
// parent.
static process_id parent_of(struct process_list *process_list, const struct image *image,
			    const struct image *parent)
{
	const uint64_t *process;

	if (parent != NULL)
		return parent->process;
	// An exec leaves the parent as it was.
	process = map_find(&process_list->processes, image->pid);
	ASSERT(process == NULL || *process - 1 < process_list->parents_capacity);
	if (image->generation > 0 && process != NULL)
		return process_list->parents[*process - 1];
	process = map_find(&process_list->processes, image->arrival->parent_pid);
	return process != NULL ? (process_id)(*process - 1) : TRACE_NONE;
}

static struct image *parent_image(const struct process_list *process_list,
				  const struct image *image)
{
	struct image *parent = NULL;

	if (image->arrival->hello.start == SEGMENT_START_FORK)
		parent = process_list_image(process_list, image->arrival->hello.parent_image);
	return parent != NULL && parent->begun ? parent : NULL;
}

// The image is a process of the trace now, and its lanes are looked at from the next pass on.
//
// From `arrivals` to `images`. Its pools, frames and modules begin with those of its parent at the
// fork; so do its mappings, which a list of its own corrects.
static void begin(struct process_list *process_list, struct image *image)
{
	const struct door_arrival *arrival = image->arrival;
	struct image *parent = parent_image(process_list, image);
	struct trace_process process = {
		.parent = parent_of(process_list, image, parent),
		.pid = image->pid,
		.generation = image->generation,
		.start = (uint8_t)arrival->hello.start, // the same numbers
		.bits = arrival->hello.abi == 32 ? 32 : 64,
		.began_ns = arrival->time_ns,
		.exe = arrival->exe,
		.args_count = arrival->args_count,
		.args = arrival->args,
	};

	ASSERT(!image->begun && image->process == TRACE_NONE);
	if (process.start == TRACE_START_FORK && process.parent == TRACE_NONE)
		process.start = TRACE_START_EXEC; // there is no parent to inherit from
	take_out(&process_list->arrivals, image);
	append(&process_list->images, image);
	if (process_list->begun == NULL)
		process_list->begun = image;
	image->process = writer_add_process(process_list->trace_builder->writer, &process);
	ASSERT(image->process != TRACE_NONE);
	image->begun = true;
	image->listed = process.start == TRACE_START_FORK && (!parent || parent->listed);
	rss_snapshots_welcome(image, process.parent != TRACE_NONE);
	process_list->began_count++;
	process_list->trace_builder->processes_count++;
	process_list->trace_builder->forked_count += process.start == TRACE_START_FORK;
	MEM_ROOM(process_list->parents, process_list->parents_capacity, (size_t)image->process + 1);
	process_list->parents[image->process] = process.parent;
	MEM_ROOM(process_list->late, process_list->late_capacity, (size_t)image->process + 1);
	process_list->late[image->process] = false;
	if (!image->pid_unsure)
		*map_put(&process_list->processes, image->pid, NULL) = (uint64_t)image->process + 1;
	if (parent != NULL)
		pools_inherit(&image->pools, &parent->pools, arrival->hello.pools_count);
	if (arrival->hello.start == SEGMENT_START_FORK)
		frame_map_inherit(&image->frames, parent != NULL ? &parent->frames : NULL,
				  arrival->hello.frames_count, arrival->hello.modules_count);
}

// What is 0 is not known, or there is no limit: nothing is written.
static void tell_figure(struct image *image, enum trace_note_kind kind, uint64_t value)
{
	if (value)
		trace_builder_note(image->trace_builder, kind, image->process, TRACE_NONE, value,
				   "");
}

// The process begins here, and may map so much.
static void tell_start(struct image *image)
{
	const struct peer_space *space = &image->arrival->space;

	ASSERT(image->begun);
	trace_builder_note(image->trace_builder, TRACE_NOTE_PROCESS_START, image->process,
			   TRACE_NONE, 0, "");
	tell_figure(image, TRACE_NOTE_ADDRESS_LOW, space->low);
	tell_figure(image, TRACE_NOTE_ADDRESS_END, space->end);
	tell_figure(image, TRACE_NOTE_MAPPED_LIMIT, space->mapped_limit);
	tell_figure(image, TRACE_NOTE_DATA_LIMIT, space->data_limit);
	tell_figure(image, TRACE_NOTE_GROUP_LIMIT, space->group_limit);
}

// Begin at the moment of the hello, wherever that falls among the others' events.
//
// The start is an item of its lane of notes, with the time of the hello.
static void begin_by_time(struct process_list *process_list, struct image *image)
{
	struct stream *notes;
	struct lane_item *item;

	ASSERT(!image->promised);
	begin(process_list, image);
	notes = image_stream(image, 0);
	if (notes == NULL) {
		tell_start(image);
		return;
	}
	item = stream_push(notes);
	item->kind = LANE_ITEM_START;
	item->time_ns = image->arrival->tick_ns; // so that who comes later need not wait for it
	notes->inner = notes->end;
}

// The fork of `parent` that made `image`: the parent announced it. NULL: it did not, or the order
// has gone past it.
//
// By lane and head: the parent's note says at which byte of which lane it forked, and the child's
// hello repeats it. Those that failed there before it have the same place.
static struct image_event *fork_of(struct image *parent, const struct image *image)
{
	const struct segment_hello *hello = &image->arrival->hello;
	struct image_event *failed = NULL; // it did not, if no other has the place

	for (size_t i = 0; i < parent->events_count; i++) {
		struct image_event *event = &parent->events[i];

		if (event->name != NULL || event->passed || event->child != NULL ||
		    event->lane != hello->fork_lane || event->head != hello->fork_head)
			continue;
		if (!event->failed)
			return event;
		failed = event;
	}
	return failed;
}

// An image whose predecessor is not over yet has to wait: two of one pid at a time would share
// their numbers.
static bool same_process_before(const struct process_list *process_list, const struct image *image)
{
	const uint64_t *count = map_find(&process_list->pids, image->pid);

	if (count == NULL || *count == 1)
		return false; // itself
	for (const struct image *other = process_list->arrivals; other != image;
	     other = other->next)
		if (other->pid == image->pid && !other->pid_unsure)
			return true;
	for (const struct image *other = process_list->images; other != NULL; other = other->next)
		if (other->pid == image->pid && !other->pid_unsure)
			return true;
	return false;
}

// A vfork child's parent has said hello before it, and waits for its own place.
static bool parent_waits(const struct process_list *process_list, const struct image *image)
{
	if (image->arrival->hello.start != SEGMENT_START_EXEC || image->generation > 0)
		return false;
	for (const struct image *other = process_list->arrivals; other != image;
	     other = other->next)
		if (other->pid == image->arrival->parent_pid)
			return true;
	return false;
}

// Begin now, if nothing stands in the way.
//
// `promised`: its parent's lane has the fork, and the order will come to it (pass_fork).
static void settle(struct process_list *process_list, struct image *image)
{
	const struct segment_hello *hello = &image->arrival->hello;
	struct image_event *event;
	struct image *parent;

	ASSERT(!image->begun);
	if (image->promised || (!image->pid_unsure && same_process_before(process_list, image)) ||
	    parent_waits(process_list, image))
		return;
	if (hello->start == SEGMENT_START_FORK) {
		parent = process_list_image(process_list, hello->parent_image);
		if (parent != NULL && !parent->begun)
			return;
		if (parent != NULL && parent->arrival == NULL) // it is over
			parent = NULL;
		if (parent != NULL && !parent->notes_read)
			return; // it has begun just now: what it said of the fork is not known yet
		event = parent != NULL ? fork_of(parent, image) : NULL;
		if (event != NULL) {
			event->child = image;
			image->promised = true;
			return;
		}
	}
	begin_by_time(process_list, image);
}

// The first image whose notes were not read: it may speak of any child that came after it.
static uint32_t first_unread(const struct process_list *process_list)
{
	const struct image *image = process_list->arrivals;
	uint32_t first = UINT32_MAX;

	for (; image != NULL; image = image->next)
		if (image->id < first) // that of a spare is older than its arrival
			first = image->id;
	for (image = process_list->images; image != NULL; image = image->next)
		if (!image->notes_read && image->id < first)
			first = image->id;
	return first;
}

void process_list_settle(struct process_list *process_list)
{
	struct image *image, *next;

	pending_exec_forget(&process_list->pending_exec, first_unread(process_list));
	for (image = process_list->arrivals; image != NULL; image = next) {
		next = image->next;
		settle(process_list, image);
	}
}

// For example, an image said hello at 6 ms and its notes were not read yet: nothing later than 6 ms
// is delivered, as its notes may say that something comes before.
uint64_t process_list_known_ns(const struct process_list *process_list)
{
	const struct image *lists[] = { process_list->images, process_list->arrivals };
	uint64_t now_ns = tick_now(process_list->tick), known_ns = UINT64_MAX;
	bool stopped = process_list->trace_builder->stopped_ns != 0;

	for (size_t i = 0; i < 2; i++) {
		for (const struct image *image = lists[i]; image != NULL; image = image->next) {
			const struct door_arrival *arrival = image->arrival;

			// A fork of its parent holds the order itself, and for others not for long.
			if (image->notes_read || image->promised || arrival->tick_ns >= known_ns ||
			    (!image->begun &&
			     (stopped || now_ns - arrival->time_ns > FORK_WAIT_NS)))
				continue;
			known_ns = arrival->tick_ns;
		}
	}
	return known_ns;
}

// ---- Places in the order --------------------------------------------------------------------

// The recording was ended, and whose hello has not come by now will not come.
static bool is_refused(const struct process_list *process_list, uint64_t now_ns)
{
	uint64_t stopped_ns = process_list->trace_builder->stopped_ns;

	return stopped_ns != 0 &&
	       (door_idle(process_list->spares.door) || now_ns - stopped_ns > FORK_WAIT_STOPPED_NS);
}

static bool knows(void *context, uint32_t pid)
{
	return process_list_knows(context, pid);
}

// Whether no process is left that could be the child of this fork. Until it says hello it has its
// parent's segment mapped.
//
// For example, a debugger forks a child to try something out, and kills it at once. Nothing of the
// program ran in it.
static bool child_is_gone(struct process_list *process_list, const struct image *parent,
			  uint64_t time_ns)
{
	struct peer_wanted wanted = {
		.since_ns = process_list->tick->clock->began_ns + time_ns,
		.is_known = knows,
		.context = process_list,
	};

	return !parent->pid_unsure && !parent->left_spare && parent->share.segment != NULL &&
	       !peer_has_mapped(&wanted, parent->share.fd);
}

// The child of this fork is the one that says which lane its parent forked from, and where in it.
static bool is_of_fork(const struct door_arrival *arrival, const struct image *parent,
		       const struct image_event *event)
{
	const struct segment_hello *hello = &arrival->hello;

	return hello->start == SEGMENT_START_FORK && hello->parent_image == parent->id &&
	       hello->fork_lane == event->lane && hello->fork_head == event->head;
}

// Whether it is not recorded, which was told when it said hello. Once.
static bool is_missed(struct process_list *process_list, const struct image *parent,
		      const struct image_event *event)
{
	struct door_arrival **missed = process_list->missed;

	for (size_t i = 0; i < process_list->missed_count; i++)
		if (is_of_fork(missed[i], parent, event)) {
			door_arrival_free(missed[i]);
			missed[i] = missed[--process_list->missed_count];
			return true;
		}
	return false;
}

// Whether its hello is here, or may be.
static bool may_have_come(const struct process_list *process_list, const struct image *parent,
			  const struct image_event *event)
{
	for (const struct image *image = process_list->arrivals; image != NULL; image = image->next)
		if (is_of_fork(image->arrival, parent, event))
			return true;
	return !door_idle(process_list->spares.door);
}

// The order has come to a fork. False: wait for the child.
//
// Three outcomes: the child is there and begins; it will not come, or is not recorded; or it is
// waited for, until FORK_WAIT_NS after its fork, or after the last child that came: where many wait
// for spares that others have for long, these times do not add up. It is looked for ever more
// seldom, since that takes as long as there are processes. What it sent before it ended is here in
// the pass after that.
static bool pass_fork(struct process_list *process_list, const struct image *parent,
		      struct image_event *event, uint64_t time_ns)
{
	uint64_t now_ns = tick_now(process_list->tick);
	uint64_t since_ns = time_ns > process_list->came_ns ? time_ns : process_list->came_ns;

	ASSERT(!event->passed);
	if (event->child != NULL) {
		process_list->came_ns = now_ns;
		begin(process_list, event->child);
		tell_start(event->child);
		return true;
	}
	if (event->failed || !process_list->follow)
		return true;
	if (is_refused(process_list, now_ns) || is_missed(process_list, parent, event))
		return true;
	if (event->gone && !may_have_come(process_list, parent, event)) {
		process_list->trace_builder->stillborn++;
		return true;
	}
	if (event->held_ns == 0) {
		event->held_ns = now_ns;
		event->look_ns = now_ns + FORK_LOOK_NS;
	}
	if (!event->gone && now_ns >= event->look_ns) {
		event->gone = child_is_gone(process_list, parent, time_ns);
		event->look_ns = now_ns + (now_ns - event->held_ns);
		if (event->gone)
			return false;
	}
	if (now_ns < since_ns + FORK_WAIT_NS || now_ns < event->held_ns + FORK_HELD_NS)
		return false;
	process_list->trace_builder->forks_late++;
	return true;
}

static bool tell_end(struct process_list *process_list, struct image *image, bool running);

// Whether `child` is the one that a thread of `parent` waited for and calls `pid`: in a namespace
// of its own a process has another number than here. Of one that had ended when it was looked for
// only its own number is known.
static bool is_waited(const struct process_list *process_list, const struct image *parent,
		      const struct image *child, uint32_t pid)
{
	if (child->replaced || child->end_told)
		return false;
	if (!child->pid_unsure && child->pid == pid && child->arrival->hello.pid == pid)
		return parent->pid == parent->arrival->hello.pid;
	return child->arrival->hello.pid == pid &&
	       process_list->parents[child->process] == parent->process;
}

// The order has come to where a process knows of a child's end. All that the child did was
// published before that, and is seen: so it ends here, before what its parent does next. Where it
// is not all delivered, it ends when the kernel says so.
//
// For example, a program makes twenty children, one after the other. Each ends before the next one
// begins, however late we hear of it.
static void pass_waited(struct process_list *process_list, const struct image *parent,
			const struct image_event *event, uint64_t time_ns)
{
	struct image *child = process_list->images;
	process_id ended = process_list_number(process_list, event->waited);

	ASSERT(event->waited != 0 && parent->begun);
	while (child != NULL && !is_waited(process_list, parent, child, event->waited))
		child = child->next;
	// It has ended before its parent goes on, as it was.
	if (child == NULL && ended != TRACE_NONE && process_list->parents[ended] == parent->process)
		process_list->late[ended] = false;
	if (child == NULL)
		return;
	// Also where it ends later in the order: what was said of its end stays true.
	child->wait_known = true;
	child->wait_status = event->status;
	if (!image_lanes_read_out(child) ||
	    (child->arrival->pidfd > 0 && !peer_ended(child->arrival->pidfd)))
		return;
	child->exited = true;
	child->exited_ns = time_ns;
	child->waited = true;
	tell_end(process_list, child, false);
}

// False holds the merge: the item stays, and is asked about again in the next pass.
bool process_list_special(void *context, struct stream *stream, const struct lane_item *item)
{
	struct process_list *process_list = context;
	struct image *image = stream->image;
	struct image_event *event;

	ASSERT(image->begun);
	trace_builder_time(process_list->trace_builder, item->time_ns);
	if (item->kind == LANE_ITEM_START) {
		tell_start(image);
		return true;
	}
	if (item->kind == LANE_ITEM_END) {
		// Here if it can be; else with the others, after the pass (process_list_end).
		if (image_lanes_drained(image))
			tell_end(process_list, image, false);
		return true;
	}
	ASSERT(item->detail < image->events_count);
	event = &image->events[item->detail];
	if (item->kind == LANE_ITEM_FORK) {
		if (!pass_fork(process_list, image, event, item->time_ns))
			return false;
	} else if (event->waited != 0) {
		pass_waited(process_list, image, event, item->time_ns);
	} else {
		thread_id thread = stream->thread;

		if (stream->lane == 0 || thread == TRACE_NONE) {
			const struct image_thread *known = image_thread_put(image, event->tid);

			thread = known->known ? known->id : TRACE_NONE;
		}
		trace_builder_note(process_list->trace_builder, event->note, image->process, thread,
				   0, event->name);
	}
	image_event_pass(image, event);
	return true;
}

// ---- Ending ---------------------------------------------------------------------------------

// How the image's process ended. False: ask again later.
//
// In the order of trust: what we know ourselves (an exec), the kernel, the launcher, the recorder's
// own note at exit. Without any, 0.3 s are waited for the launcher, and 50 ms for the parent of a
// child that could say no hello and had ended when it was looked for.
static bool find_status(struct process_list *process_list, struct image *image,
			enum trace_exit *exit, uint32_t *value)
{
	const struct segment *segment = image->share.segment;
	const uint64_t *told = map_find(&process_list->statuses, image->pid);
	const struct collect_options *options = process_list->trace_builder->options;

	ASSERT(image->process < process_list->parents_capacity);
	*exit = TRACE_EXIT_UNKNOWN;
	*value = 0;
	if (image->replaced) {
		*exit = TRACE_EXIT_EXEC;
		return true;
	}
	if (image->exec.path != NULL) { // into something that is not seen
		*exit = TRACE_EXIT_EXEC;
		return true;
	}
	if (!image->pid_unsure && peer_exit(image->arrival->pidfd, image->pid, exit, value))
		return true;
	if (image->wait_known) {
		peer_decode((int)image->wait_status, exit, value);
		return true;
	}
	if (told != NULL && !image->pid_unsure) {
		peer_decode((int)(uint32_t)(*told - 1), exit, value);
		return true;
	}
	if (atomic_load(&segment->exit_noted) != 0) {
		*exit = TRACE_EXIT_CODE;
		*value = atomic_load(&segment->exit_status) & 0xff;
		return true;
	}
	// Its parent is about to wait for it, or has, and the order has not come to that.
	if (image->pid_unsure && process_list->parents[image->process] != TRACE_NONE)
		return tick_now(process_list->tick) - image->exited_ns > PARENT_WAIT_NS;
	return (options->report_fd < 0 && options->tell == NULL) ||
	       process_list->parents[image->process] != TRACE_NONE ||
	       tick_now(process_list->tick) - image->exited_ns > STATUS_WAIT_NS;
}

// To look through them is what costs: so it is done once there are a quarter more.
static void shorten_ended(struct process_list *process_list)
{
	struct image **link = &process_list->ended;

	if (++process_list->ended_count < ENDED_MAX + ENDED_MAX / 4)
		return;
	process_list->ended_count = ENDED_MAX;
	for (size_t i = 0; i < ENDED_MAX && *link != NULL; i++)
		link = &(*link)->next;
	free_list(process_list, *link);
	*link = NULL;
}

// Their parent is over, so that its fork will not be passed: they begin by the time of their hello.
static void unpromise(struct process_list *process_list, const struct image *parent)
{
	for (struct image *image = process_list->arrivals; image != NULL; image = image->next)
		if (image->arrival->hello.parent_image == parent->id)
			image->promised = false;
}

// The end of the process into the trace. False: not yet.
//
// All that is known only at the end, in this order: execs that did not say hello, children, losses,
// names of generated code, hidden allocators, the last snapshot, and the end itself.
static bool tell_end(struct process_list *process_list, struct image *image, bool running)
{
	enum trace_exit exit = TRACE_EXIT_UNKNOWN;
	uint32_t value = 0;

	ASSERT(image->begun && image->arrival != NULL);
	if (image->end_told)
		return true;
	if (!running && !find_status(process_list, image, &exit, &value))
		return false;
	notes_reader_check_exec(image, tick_now(process_list->tick), !image->replaced);
	notes_reader_check_children(image);
	image_end_check(process_list->trace_builder, image, exit, value);
	trace_builder_time(process_list->trace_builder,
			   running ? process_list->trace_builder->stopped_ns : image->exited_ns);
	if (exit != TRACE_EXIT_EXEC)
		image_end_title(image, running);
	image_end_count(process_list->trace_builder, image);
	generated_code_name(image, process_list->tick->clock->began_ns, true);
	notes_reader_tell_hidden(image);
	rss_snapshots_finish(image);
	if (exit == TRACE_EXIT_SIGNAL && !image->reach_tried)
		process_list->trace_builder->unsearched++;
	if (exit == TRACE_EXIT_SIGNAL)
		tell_figure(image, TRACE_NOTE_GROUP_KILLS, peer_killed(&image->arrival->space));
	writer_process_end(process_list->trace_builder->writer, image->process,
			   process_list->trace_builder->now_ns, exit, value);
	image->end_told = true;
	process_list->late[image->process] = !image->waited && exit != TRACE_EXIT_EXEC &&
					     process_list->parents[image->process] != TRACE_NONE;
	return true;
}

void process_list_tell_late(const struct process_list *process_list)
{
	process_id count = (process_id)process_list->began_count;

	for (process_id i = 0; i < count; i++)
		if (process_list->late[i])
			trace_builder_note(process_list->trace_builder, TRACE_NOTE_END_LATE, i,
					   TRACE_NONE, 1, "");
}

// False: not yet.
//
// The image goes to `ended`, with its numbers alone.
static bool end_image(struct process_list *process_list, struct image *image, bool running)
{
	if (!tell_end(process_list, image, running))
		return false;
	ASSERT(image->end_told);
	if (process_list->begun == image)
		process_list->begun = image->next;
	take_out(&process_list->images, image);
	if (!image->pid_unsure && --*map_put(&process_list->pids, image->pid, NULL) == 0)
		map_remove(&process_list->pids, image->pid);
	unpromise(process_list, image);
	image_close(image);
	image->next = process_list->ended;
	process_list->ended = image;
	shorten_ended(process_list);
	return true;
}

// `line`: taken.
static void tell_awaited(struct process_list *process_list, char *line, process_id parent)
{
	trace_builder_unseen(process_list->trace_builder, parent, line);
	mem_free(line);
}

// The recording was ended before those had to have begun.
static void excuse_awaited(struct process_list *process_list)
{
	struct trace_builder *trace_builder = process_list->trace_builder;
	uint64_t stopped_ns = trace_builder->stopped_ns, since_ns = 0;

	if (stopped_ns == 0)
		return;
	if (stopped_ns > NOTES_READER_HELLO_NS)
		since_ns = stopped_ns - NOTES_READER_HELLO_NS;
	trace_builder->unbegun += pending_exec_forget_late(&process_list->pending_exec, since_ns);
}

void process_list_tell_lost(struct process_list *process_list)
{
	process_id parent;
	char *line;

	excuse_awaited(process_list);
	// A program may have been answered, and have run, before its hello is in the queue.
	if (!pending_exec_any(&process_list->pending_exec) || !door_idle(process_list->spares.door))
		return;
	while ((line = pending_exec_next_lost(&process_list->pending_exec,
					      tick_now(process_list->tick), &parent)) != NULL)
		tell_awaited(process_list, line, parent);
}

static void give_up_awaited(struct process_list *process_list)
{
	process_id parent;
	char *line;

	while ((line = pending_exec_give_up(&process_list->pending_exec, &parent)) != NULL)
		tell_awaited(process_list, line, parent);
}

// `all`: the recording ends, and processes that live get an end of unknown kind.
void process_list_end(struct process_list *process_list, bool all)
{
	struct image *image, *next;
	bool weighed = false;

	for (image = process_list->images; image != NULL; image = next) {
		next = image->next;
		if (!all && !image->final)
			continue;
		if (!weighed && tick_now(process_list->tick) >= process_list->weigh_after_ns)
			process_list_weigh(process_list);
		weighed = true;
		if (all || (image->final && image_drained(image)))
			end_image(process_list, image, all && !image->final);
	}
	if (all)
		give_up_awaited(process_list);
}

// Also of those whose own place comes later than what is waited for. Their ends have their places.
void process_list_reap(struct process_list *process_list)
{
	struct image *const lists[] = { process_list->images, process_list->arrivals };

	for (size_t i = 0; i < 2; i++)
		for (struct image *image = lists[i]; image != NULL; image = image->next)
			if (image->arrival->spare != NULL && image->exited && !image->replaced)
				image_leave_spare(image);
}

// Execs that were announced are waited for even when no process is there: between two images there
// is none for a moment.
bool process_list_empty(struct process_list *process_list)
{
	uint64_t now_ns;

	if (process_list->images != NULL || process_list->arrivals != NULL) {
		process_list->awaited_ns = 0;
		return false;
	}
	if (!pending_exec_any(&process_list->pending_exec))
		return true;
	now_ns = tick_now(process_list->tick);
	if (process_list->awaited_ns == 0)
		process_list->awaited_ns = now_ns;
	if (now_ns - process_list->awaited_ns < NOTES_READER_HELLO_NS)
		return false;
	give_up_awaited(process_list);
	return true;
}

// What recorder and segments take, for the report's line on the recording's own cost.
void process_list_weigh(struct process_list *process_list)
{
	uint64_t total = 0;

	process_list->weigh_after_ns = tick_now(process_list->tick);
	for (struct image *image = process_list->images; image != NULL; image = image->next) {
		process_list->weigh_after_ns += WEIGH_APART_NS;
		total += atomic_load(&image->share.segment->guest_bytes) +
			 share_bytes(&image->share);
	}
	process_list->guest_bytes = total;
	if (total > process_list->guest_bytes_peak)
		process_list->guest_bytes_peak = total;
}
