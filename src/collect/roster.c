#include "collect/roster.h"

#include "base/mem.h"
#include "collect/bulletin.h"
#include "collect/looks.h"
#include "collect/peer.h"

#include <stdio.h>
#include <string.h>

enum {
	ENDED_MAX = 64,             // images whose numbers a late child may still inherit
	FORK_WAIT_NS = 1000000000,  // for the hello of a child
	STATUS_WAIT_NS = 300000000, // for the launcher to say how its child ended
};

void roster_init(struct roster *roster, struct ledger *ledger, const struct tick *tick, bool follow)
{
	memset(roster, 0, sizeof *roster);
	roster->ledger = ledger;
	roster->tick = tick;
	roster->follow = follow;
}

static void free_list(struct image *image)
{
	while (image != NULL) {
		struct image *next = image->next;

		image_free(image);
		image = next;
	}
}

void roster_fini(struct roster *roster)
{
	free_list(roster->arrivals);
	free_list(roster->images);
	free_list(roster->ended);
	awaited_fini(&roster->awaited);
	map_fini(&roster->processes);
	map_fini(&roster->generations);
	map_fini(&roster->statuses);
	mem_free(roster->parents);
	memset(roster, 0, sizeof *roster);
}

static struct image *find_id(struct image *list, uint32_t id)
{
	while (list != NULL && list->id != id)
		list = list->next;
	return list;
}

// The newest image of a process that has not been followed by another.
static struct image *find_pid(struct image *list, uint32_t pid)
{
	while (list != NULL && (list->pid != pid || list->replaced || list->exited))
		list = list->next;
	return list;
}

static void append(struct image **list, struct image *image)
{
	while (*list != NULL)
		list = &(*list)->next;
	image->next = NULL;
	*list = image;
}

static void take_out(struct image **list, struct image *image)
{
	while (*list != image)
		list = &(*list)->next;
	*list = image->next;
	image->next = NULL;
}

void roster_arrive(struct roster *roster, struct door_arrival *arrival)
{
	struct image *image = image_new(arrival, roster->ledger);
	struct image *before = find_pid(roster->arrivals, image->pid);
	uint64_t *generation;

	if (before == NULL)
		before = find_pid(roster->images, image->pid);
	generation = map_put(&roster->generations, image->pid, NULL);
	if (before != NULL) {
		// The same process, if it was an exec; a fork can only be a pid used again.
		before->exited_ns = arrival->time_ns;
		if (arrival->hello.start == SEGMENT_START_EXEC) {
			before->replaced = true;
			image->generation = (uint32_t)*generation + 1;
		} else {
			before->exited = true;
		}
	}
	image->awaited = &roster->awaited;
	*generation = image->generation;
	append(&roster->arrivals, image);
}

void roster_exit(struct roster *roster, uint32_t id, uint64_t time_ns)
{
	struct image *image = find_id(roster->images, id);

	if (image == NULL)
		image = find_id(roster->arrivals, id);
	if (image == NULL || image->replaced)
		return;
	image->exited = true;
	image->exited_ns = time_ns;
}

void roster_status(struct roster *roster, uint32_t pid, int status)
{
	*map_put(&roster->statuses, pid, NULL) = (uint64_t)(uint32_t)status + 1;
}

struct image *roster_find(const struct roster *roster, uint32_t pid)
{
	for (struct image *image = roster->images; image != NULL; image = image->next)
		if (image->pid == pid && image->begun && !image->replaced && !image->exited)
			return image;
	return NULL;
}

// ---- Beginning ------------------------------------------------------------------------------

static process_id parent_of(struct roster *roster, const struct image *image,
			    const struct image *parent)
{
	const uint64_t *process;

	if (parent != NULL)
		return parent->process;
	// An exec leaves the parent as it was.
	process = map_find(&roster->processes, image->pid);
	if (image->generation > 0 && process != NULL)
		return roster->parents[*process - 1];
	process = map_find(&roster->processes, image->arrival->parent_pid);
	return process != NULL ? (process_id)(*process - 1) : TRACE_NONE;
}

static struct image *parent_image(const struct roster *roster, const struct image *image)
{
	uint32_t id = image->arrival->hello.parent_image;
	struct image *parent;

	if (image->arrival->hello.start != SEGMENT_START_FORK)
		return NULL;
	parent = find_id(roster->images, id);
	return parent != NULL ? parent : find_id(roster->ended, id);
}

// The image is a process of the trace now, and its lanes are looked at from the next pass on.
static void begin(struct roster *roster, struct image *image)
{
	const struct door_arrival *arrival = image->arrival;
	struct image *parent = parent_image(roster, image);
	struct trace_process process = {
		.parent = parent_of(roster, image, parent),
		.pid = image->pid,
		.generation = image->generation,
		.start = arrival->hello.start == SEGMENT_START_FORK ? TRACE_START_FORK
								    : TRACE_START_EXEC,
		.bits = arrival->hello.abi == 32 ? 32 : 64,
		.began_ns = arrival->time_ns,
		.exe = arrival->exe,
		.args_count = arrival->args_count,
		.args = arrival->args,
	};

	if (process.start == TRACE_START_FORK && process.parent == TRACE_NONE)
		process.start = TRACE_START_EXEC; // nobody to inherit from
	take_out(&roster->arrivals, image);
	append(&roster->images, image);
	image->process = writer_add_process(roster->ledger->writer, &process);
	image->begun = true;
	looks_welcome(image, process.parent != TRACE_NONE);
	roster->began_count++;
	roster->ledger->processes_count++;
	roster->parents = mem_grow(roster->parents, &roster->parents_capacity,
				   (size_t)image->process + 1, sizeof *roster->parents);
	roster->parents[image->process] = process.parent;
	*map_put(&roster->processes, image->pid, NULL) = (uint64_t)image->process + 1;
	if (parent != NULL)
		pools_inherit(&image->pools, &parent->pools, arrival->hello.pools_count);
	if (arrival->hello.start == SEGMENT_START_FORK)
		frame_map_inherit(&image->frames, parent != NULL ? &parent->frames : NULL,
				  arrival->hello.frames_count, arrival->hello.modules_count);
}

static void tell_figure(struct image *image, enum trace_note_kind kind, uint64_t value)
{
	if (value)
		ledger_note(image->ledger, kind, image->process, TRACE_NONE, value, "");
}

// The process begins here, and may map so much.
static void tell_start(struct image *image)
{
	const struct peer_space *space = &image->arrival->space;

	ledger_note(image->ledger, TRACE_NOTE_PROCESS_START, image->process, TRACE_NONE, 0, "");
	tell_figure(image, TRACE_NOTE_ADDRESS_LOW, space->low);
	tell_figure(image, TRACE_NOTE_ADDRESS_END, space->end);
	tell_figure(image, TRACE_NOTE_MAPPED_LIMIT, space->mapped_limit);
	tell_figure(image, TRACE_NOTE_DATA_LIMIT, space->data_limit);
}

// Begin at the moment of the hello, wherever that falls among the others' events.
static void begin_by_time(struct roster *roster, struct image *image)
{
	struct stream *notes;
	struct lane_item *item;

	begin(roster, image);
	notes = image_stream(image, 0);
	if (notes == NULL) {
		tell_start(image);
		return;
	}
	item = stream_push(notes);
	item->kind = LANE_ITEM_START;
	item->time_ns = image->arrival->time_ns;
	notes->inner = notes->end;
}

// The fork of `parent` that made `image`: the parent announced it. NULL: it did not, or the order
// has gone past it.
static struct image_event *fork_of(struct image *parent, const struct image *image)
{
	const struct segment_hello *hello = &image->arrival->hello;

	for (size_t i = 0; i < parent->events_count; i++) {
		struct image_event *event = &parent->events[i];

		if (event->name == NULL && !event->passed && event->child == NULL &&
		    event->lane == hello->fork_lane && event->head == hello->fork_head)
			return event;
	}
	return NULL;
}

static bool same_process_before(const struct roster *roster, const struct image *image)
{
	for (const struct image *other = roster->arrivals; other != image; other = other->next)
		if (other->pid == image->pid)
			return true;
	for (const struct image *other = roster->images; other != NULL; other = other->next)
		if (other->pid == image->pid)
			return true;
	return false;
}

// Begin now, if nothing stands in the way.
static void settle(struct roster *roster, struct image *image)
{
	const struct segment_hello *hello = &image->arrival->hello;
	struct image_event *event;
	struct image *parent;

	if (image->promised || same_process_before(roster, image))
		return;
	if (hello->start == SEGMENT_START_FORK) {
		if (find_id(roster->arrivals, hello->parent_image) != NULL)
			return;
		parent = find_id(roster->images, hello->parent_image);
		if (parent != NULL && !parent->notes_read)
			return; // it has begun just now: what it said of the fork is not known yet
		event = parent != NULL ? fork_of(parent, image) : NULL;
		if (event != NULL) {
			event->child = image;
			image->promised = true;
			return;
		}
	}
	begin_by_time(roster, image);
}

// Those that have said hello are awaited no more.
static void drop_awaited(struct roster *roster, const struct image *list)
{
	for (; list != NULL && awaited_any(&roster->awaited); list = list->next)
		if (list->arrival != NULL)
			awaited_drop(&roster->awaited, list->arrival->hello.pid);
}

void roster_settle(struct roster *roster)
{
	struct image *image, *next;

	drop_awaited(roster, roster->arrivals);
	drop_awaited(roster, roster->images);
	for (image = roster->arrivals; image != NULL; image = next) {
		next = image->next;
		settle(roster, image);
	}
}

// ---- Places in the order --------------------------------------------------------------------

// The order has come to a fork. False: wait for the child.
static bool pass_fork(struct roster *roster, struct image_event *event)
{
	uint64_t now_ns = tick_now(roster->tick);

	if (event->child != NULL) {
		begin(roster, event->child);
		tell_start(event->child);
		return true;
	}
	if (event->failed || !roster->follow)
		return true;
	if (event->deadline_ns == 0)
		event->deadline_ns = now_ns + FORK_WAIT_NS;
	if (now_ns < event->deadline_ns)
		return false;
	roster->ledger->forks_late++;
	return true;
}

static bool tell_end(struct roster *roster, struct image *image, bool running);

bool roster_special(void *context, struct stream *stream, const struct lane_item *item)
{
	struct roster *roster = context;
	struct image *image = stream->image;
	struct image_event *event;

	ledger_time(roster->ledger, item->time_ns);
	if (item->kind == LANE_ITEM_START) {
		tell_start(image);
		return true;
	}
	if (item->kind == LANE_ITEM_END) {
		// Here if it can be; else with the others, after the pass (roster_end).
		if (image_lanes_drained(image))
			tell_end(roster, image, false);
		return true;
	}
	ASSERT(item->detail < image->events_count);
	event = &image->events[item->detail];
	if (item->kind == LANE_ITEM_FORK) {
		if (!pass_fork(roster, event))
			return false;
	} else {
		thread_id thread = stream->thread;

		if (stream->lane == 0 || thread == TRACE_NONE) {
			const struct image_thread *known = image_thread_put(image, event->tid);

			thread = known->known ? known->id : TRACE_NONE;
		}
		ledger_note(roster->ledger, event->note, image->process, thread, 0, event->name);
	}
	image_event_pass(image, event);
	return true;
}

// ---- Ending ---------------------------------------------------------------------------------

// How the image's process ended. False: ask again later.
static bool find_status(struct roster *roster, struct image *image, enum trace_exit *exit,
			uint32_t *value)
{
	const struct segment *segment = image->share.segment;
	const uint64_t *told = map_find(&roster->statuses, image->pid);
	const struct collect_options *options = roster->ledger->options;

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
	if (peer_exit(image->arrival->pidfd, image->pid, exit, value))
		return true;
	if (told != NULL) {
		peer_decode((int)(uint32_t)(*told - 1), exit, value);
		return true;
	}
	if (atomic_load(&segment->exit_noted) != 0) {
		*exit = TRACE_EXIT_CODE;
		*value = atomic_load(&segment->exit_status) & 0xff;
		return true;
	}
	return (options->report_fd < 0 && options->tell == NULL) ||
	       roster->parents[image->process] != TRACE_NONE ||
	       tick_now(roster->tick) - image->exited_ns > STATUS_WAIT_NS;
}

// What the guest counted itself.
static void take_counts(struct roster *roster, struct image *image)
{
	const struct segment *segment = image->share.segment;
	struct ledger *ledger = roster->ledger;
	uint64_t dropped = atomic_load(&segment->events_dropped);
	uint32_t lanes_count = atomic_load(&segment->lanes_count);

	for (uint32_t i = 0; i < lanes_count && i < SEGMENT_LANES_MAX; i++)
		ledger->stacks_incomplete += atomic_load(&image->share.lanes[i].stacks_incomplete);
	ledger->waited_ns += atomic_load(&segment->waited_ns);
	ledger->stacks_verified += atomic_load(&segment->verified);
	ledger->stacks_mismatched += atomic_load(&segment->mismatched);
	if (dropped == 0)
		return;
	ledger->events_lost += dropped;
	ledger_note(ledger, TRACE_NOTE_LOSS, image->process, TRACE_NONE, dropped,
		    "the recorder could not keep them");
}

static void shorten_ended(struct roster *roster)
{
	struct image **link = &roster->ended;

	for (size_t i = 0; i < ENDED_MAX && *link != NULL; i++)
		link = &(*link)->next;
	free_list(*link);
	*link = NULL;
}

static void unpromise(struct roster *roster, const struct image *parent)
{
	for (struct image *image = roster->arrivals; image != NULL; image = image->next)
		if (image->arrival->hello.parent_image == parent->id)
			image->promised = false;
}

// The end of the process into the trace. False: not yet.
// An image that was welcomed and never heard of it. (A forked child leaves word of that itself.)
static void check_joined(struct roster *roster, const struct image *image)
{
	struct str line = { 0 };

	if (atomic_load(&image->share.segment->joined) != 0 ||
	    image->arrival->hello.start == SEGMENT_START_FORK)
		return;
	str_format(&line, "%s is not recorded: it heard no answer to its hello",
		   image->arrival->exe);
	ledger_unseen(roster->ledger, image->process, str_get(&line));
	str_fini(&line);
}

static bool tell_end(struct roster *roster, struct image *image, bool running)
{
	enum trace_exit exit = TRACE_EXIT_UNKNOWN;
	uint32_t value = 0;

	if (image->end_told)
		return true;
	if (!running && !find_status(roster, image, &exit, &value))
		return false;
	bulletin_check_exec(image, tick_now(roster->tick), !image->replaced);
	bulletin_check_children(image);
	check_joined(roster, image);
	ledger_time(roster->ledger, running ? tick_now(roster->tick) : image->exited_ns);
	take_counts(roster, image);
	looks_finish(image);
	writer_process_end(roster->ledger->writer, image->process, roster->ledger->now_ns, exit,
			   value);
	image->end_told = true;
	return true;
}

// False: not yet.
static bool end_image(struct roster *roster, struct image *image, bool running)
{
	if (!tell_end(roster, image, running))
		return false;
	take_out(&roster->images, image);
	unpromise(roster, image);
	image_close(image);
	image->next = roster->ended;
	roster->ended = image;
	shorten_ended(roster);
	return true;
}

// `path`: taken. NULL: there is none, and false is returned.
static bool tell_awaited(struct roster *roster, char *path, process_id parent)
{
	char line[512];

	if (path == NULL)
		return false;
	snprintf(line, sizeof line,
		 "%s is not recorded: it did not load the recorder, or that was not let to say "
		 "hello",
		 path);
	ledger_unseen(roster->ledger, parent, line);
	mem_free(path);
	return true;
}

void roster_tell_lost(struct roster *roster)
{
	process_id parent;

	while (tell_awaited(roster, awaited_next_lost(&roster->awaited, &parent), parent))
		;
}

static void give_up_awaited(struct roster *roster)
{
	process_id parent;

	while (tell_awaited(roster, awaited_give_up(&roster->awaited, &parent), parent))
		;
}

void roster_end(struct roster *roster, bool all)
{
	struct image *image, *next;
	bool weighed = false;

	for (image = roster->images; image != NULL; image = next) {
		next = image->next;
		if (!all && !image->final)
			continue;
		if (!weighed)
			roster_weigh(roster);
		weighed = true;
		if (all || (image->final && image_drained(image)))
			end_image(roster, image, all && !image->final);
	}
	if (all)
		give_up_awaited(roster);
}

bool roster_empty(struct roster *roster)
{
	uint64_t now_ns;

	if (roster->images != NULL || roster->arrivals != NULL) {
		roster->awaited_ns = 0;
		return false;
	}
	if (!awaited_any(&roster->awaited))
		return true;
	now_ns = tick_now(roster->tick);
	if (roster->awaited_ns == 0)
		roster->awaited_ns = now_ns;
	if (now_ns - roster->awaited_ns < BULLETIN_HELLO_NS)
		return false;
	give_up_awaited(roster);
	return true;
}

void roster_weigh(struct roster *roster)
{
	uint64_t total = 0;

	for (struct image *image = roster->images; image != NULL; image = image->next)
		total += atomic_load(&image->share.segment->guest_bytes) +
			 share_bytes(&image->share);
	roster->guest_bytes = total;
	if (total > roster->guest_bytes_peak)
		roster->guest_bytes_peak = total;
}
