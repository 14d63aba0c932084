// image: one process image, from its hello to its end.
//
// An exec makes a new image of the same process; so does a fork, of a new process. An image owns
// its segment, its lanes' streams and the maps from its numbers to the trace's.
//
// Its numbers are its own: module 3 of a process and module 3 of its child are different files,
// until frame_map, file_table and the interner have given both the trace's numbers. So whatever
// comes out of a lane goes through its image.
//
// For example, pid 4711 runs sh, forks 4712, and that runs cc1: images are 4711 (exec), 4712
// (fork), whose stacks begin as its parent's, and 4712 again (exec), with a lane of its own from
// the start. The second one ends (`replaced`) when the third has said hello.
#pragma once

#include "base/map.h"
#include "base/str.h"
#include "collect/code_lists.h"
#include "collect/door.h"
#include "collect/frame_map.h"
#include "collect/hidden_allocator.h"
#include "collect/peer.h"
#include "collect/pending_exec.h"
#include "collect/pools.h"
#include "collect/slots.h"
#include "collect/stream.h"
#include "collect/trace_builder.h"

// A thread that was met in a lane of the image, by its tid.
struct image_thread {
	uint32_t tid; // 0: free
	bool known;
	thread_id id;
	uint32_t lane; // where it was seen last
	uint64_t seen_ns;
};

// A place in the order that a note of the guest spoke of: a fork, or what becomes a note there.
struct image_event {
	uint32_t tid;
	uint32_t lane;
	uint64_t head;
	uint8_t note;        // enum trace_note_kind: a mark, a pause, its end; 0: a fork
	char *name;          // the note's text; NULL: a fork
	struct image *child; // the fork's, once it has said hello
	uint32_t waited;     // a child that was waited for, as the guest sees its pid; 0: none
	uint32_t status;     // and how it ended, as wait has it
	uint64_t held_ns;    // since when the order is held for it; 0: not reached yet
	uint64_t look_ns;    // when it is looked whether the child lives
	bool gone;           // it does not, and its hello may be under way
	bool failed;         // there is no child
	bool passed;         // the order has gone on
};

// The image said that its process is about to exec.
struct image_exec {
	char *path;      // NULL: nothing is pending
	uint32_t reason; // enum note_exec
	uint64_t since_ns;
	bool shut_out; // as the process was when it was announced (peer_shut_out)
	bool told;     // the user knows
};

// A list of all mappings, as text.
struct image_list {
	uint32_t number;
	struct str text;
};

// Pages of the recorder's own, [start, end), mapped before the image's list of mappings was read.
struct image_own {
	uint64_t start, end;
};

// Who waits for what of an image is reachable (reachability.h). Both are called, in this order, but
// for those that are NULL.
struct image_asker {
	void (*gone_on)(void *context); // the process is not stopped any more
	void (*found)(void *context, const struct trace_reach *found); // NULL: it is not known
	void *context;
};

// How the lanes are put into one order in this pass.
enum image_mode {
	IMAGE_ALONE, // one lane alone has something
	IMAGE_TICKS, // tick by tick: decoded as they are needed, up to the first look
	IMAGE_ALL,   // everything is decoded, up to the second look
};

enum {
	IMAGE_CHUNK = 512, // items that are decoded at once
	IMAGE_FEW = 16,    // the same, where rows go on after them
};

// What recording cost the image so far, by its own measure (struct segment_cost), and what of the
// processor its process has used.
struct image_cost {
	uint64_t calls, calls_timed, calls_counts;
	uint64_t samples, samples_timed, samples_counts;
	uint64_t left_out;
	uint64_t used_ns;
};

// Owned by the process list. What is only of one mode says so.
struct image {
	struct image *next;                  // the process list's
	struct trace_builder *trace_builder; // borrowed
	struct spares *spares;               // borrowed: whose segment it may have; NULL: none
	struct pending_exec *pending_exec; // borrowed: vfork children that exec; NULL: nobody asks
	uint32_t id;                       // the door's
	uint32_t pid;
	bool pid_unsure; // it may be another process's (door.h)
	uint32_t generation;
	process_id process;           // TRACE_NONE: not begun yet
	struct door_arrival *arrival; // hello, share, pidfd, names; ours
	struct share share;           // arrival's, by value; segment NULL once closed
	struct frame_map frames;
	struct code_lists code_lists; // of its generated code
	struct hidden_allocator_list hidden;
	struct pools pools;
	struct map handles;      // of heaps (Windows) -> heap_id; 0: gone
	uint32_t heaps_gone;     // how many have been destroyed
	struct stream **streams; // by lane; SEGMENT_LANES_MAX places, made as lanes appear
	uint32_t streams_count;
	struct slots slots;
	enum image_mode mode;
	uint64_t tail_ns; // IMAGE_TICKS: from here on a lane may have something between the looks
	uint64_t tick_ns; // IMAGE_TICKS: the tick that was checked; UINT64_MAX: none
	bool contested;   // IMAGE_TICKS: in that tick lanes have to wait for each other
	uint64_t noted;   // lane 0's head before the pass began
	bool late;        // a place was noted after that
	struct touched touched; // IMAGE_TICKS: by whom, in that tick

	struct image_thread *threads; // open addressing by tid
	size_t threads_count, threads_capacity;
	file_id *files; // by the image's own numbers; 0: not known
	size_t files_capacity;
	struct image_list *lists; // of its mappings, as it reported them, that have no place yet
	size_t lists_count, lists_capacity;
	bool listed;           // once, or its parent's was; what is reported again corrects it
	struct image_own *own; // what of it is the recorder's
	size_t own_count, own_capacity;
	struct image_event *events; // marks and forks
	size_t events_count, events_capacity, events_waiting;
	struct image_exec exec;       // of this process
	struct image_exec vfork_exec; // of a vfork child
	bool exec_refused;            // what it executed has said hello, and is not recorded
	uint32_t unseen_told;         // of segment->unseen_count, those that were reported
	bool partly;                  // some of its calls were not recorded, which was reported

	struct image_cost cost; // when last looked at (overhead.h)

	bool quiet;      // its allocations are left out, until it is said otherwise
	bool begun;      // has its place in the order
	bool notes_read; // at least once since then
	bool promised;   // a fork of its parent will give it its place
	bool exited;     // the process has ended
	bool replaced;   // another image of the process has said hello
	bool end_placed; // the end is an item of lane 0
	bool end_told;   // and is in the trace
	bool left_spare; // its segment is a copy of the spare's that it had
	bool final;      // over since before this pass: what is seen is all there is
	uint64_t exited_ns;
	bool waited;          // it ended in the order where its parent had waited for it
	bool wait_known;      // its parent has said how it ended:
	uint32_t wait_status; // as wait has it
	uint64_t resident;    // last sample
	uint64_t proportional, proportional_after_ns;
	struct str title;  // what its arguments read as at the last look
	uint64_t title_ns; // the next look
	bool title_new;    // it is not in the trace yet
	struct peer_pages pages;
	bool proportional_stale;
	struct peer_kinds counted,
		counted_of; // proportional memory when last counted, and resident
	uint64_t resident_max;
	uint64_t look_resident; // the sample by which the last snapshot was taken
	struct trace_snapshot look;
	bool look_child;                  // of a recorded process
	bool look_open;                   // it is taken, and its end has no place yet
	bool look_asked;                  // by the guest, whose lane has its marks
	uint32_t look_number, looks_seen; // those marks are these, of so many that were met
	uint32_t look_passes;
	uint32_t look_missed; // asked for, and there was no time
	void *reach_stopped;  // reachability.h: by collect_reach; NULL: it runs
	bool reach_tried; // it was to be searched at its end, at a mark or because somebody asked
	uint8_t reach_reason;
	struct image_asker reach_asker;
};

// Takes the arrival over.
struct image *image_new(struct door_arrival *arrival, struct trace_builder *trace_builder);
void image_free(struct image *image); // NULL is allowed

// The image is over: give back all but what a late child may inherit.
void image_close(struct image *image);

// A pass begins. A place that is noted from here on may have come after events that the looks do
// not see: a thread takes a block just after its lane was looked at, and before the notes are read
// another one marks the end of a test. Then the image is late: what is later than the tick was here
// is for the next pass. Nothing of an earlier time knows of such a place.
void image_look_at_notes(struct image *image);

// Look at all lanes: the first time, then the second (see merge.h), which returns how many bytes
// they have between the looks. Before anything of it is decoded, both can be taken again.
void image_look(struct image *image);
uint64_t image_look_again(struct image *image);

// Read the notes alone.
void image_read_notes(struct image *image);

// Decode what the looks saw, as far as the mode wants it, and publish the tails.
void image_decode(struct image *image);

// Decode the next part of a lane whose items are used up (not with IMAGE_ALL), `max` items or a few
// more. False: there is no more before the cut.
bool image_refill(struct stream *stream, size_t max);

// The next events of a lane whose items are used up, up to the cut, as a row of at most time
// `limit_ns` (not with IMAGE_ALL). False: what comes next, if anything, is image_refill's.
bool image_take_row(struct stream *stream, uint64_t limit_ns, struct lane_reader_row *row);

// IMAGE_TICKS: decode on until the last item is later than `time_ns`, or to the cut.
void image_refill_past(struct stream *stream, uint64_t time_ns);

// The same for what is not decoded, without decoding it: note the slots that it touches up to
// `time_ns`. *contested if another lane has touched one. False: it has to be decoded.
bool image_skim_past(struct stream *stream, uint64_t time_ns, bool *contested);

// Go on with IMAGE_ALL: decode everything that the looks saw.
void image_decode_rest(struct image *image);

// Everything seen has been delivered.
bool image_drained(const struct image *image);

// Lane `lane`'s stream, made if needed. NULL when the system refuses memory.
struct stream *image_stream(struct image *image, uint32_t lane);

// The record of thread `tid`, new if it was not there.
struct image_thread *image_thread_put(struct image *image, uint32_t tid);

// A mark or a fork at a place of one of the lanes.
struct image_event *image_event_add(struct image *image, uint8_t kind, uint64_t time_ns,
				    uint32_t tid, uint32_t lane, uint64_t head);

// The process ended at about `time_ns`: the end has its place among the others' items.
void image_place_end(struct image *image, uint64_t time_ns);

// What the process has now in memory is the image's: it neither has ended nor is about to be, or
// is, another program.
bool image_is_there(const struct image *image);

// Its process is over: another may have its spare, and what it wrote is copied. False: that cannot
// be, or it may still be written to.
bool image_leave_spare(struct image *image);

// Everything published has been delivered, also what no look has seen yet, but for what waits in
// the lane of notes: the end may be there already.
bool image_lanes_read_out(const struct image *image);

// Everything seen in the lanes of events has been delivered.
bool image_lanes_drained(const struct image *image);

// The order has gone past a mark or a fork.
void image_event_pass(struct image *image, struct image_event *event);

// Note in the trace that `stream` cannot be understood from here on.
void image_break_lane(struct stream *stream);

// Programs write over their arguments ("nginx: worker process"). Reads them again if it is time for
// that, which is half as often each time, and notes what the look before this one saw: had the
// process become another program by then, that would be known now.
void image_look_title(struct image *image, uint64_t now_ns);

// Note what the last look saw: nothing comes after it. `running`: look once more.
void image_end_title(struct image *image, bool running);

// Free the lanes of threads that have ended, if the image asks for it: it is sealed. False: it does
// not.
bool image_sweep(struct image *image);
