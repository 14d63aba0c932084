// For example, a program of Windows lacked a DLL: it was invited, and its segment says that it
// never joined. The trace says that it is not recorded, and why. Of one that was recorded the
// segment has what the guest alone could count: stacks without an end, time that it waited, events
// that it had no room for.
#include "collect/image_end.h"

#include "base/str.h"
#include "collect/notes_reader.h"
#include "wire/segment.h"

#include <inttypes.h>
#include <stdio.h>

// A program that Windows could not load has such a status. One that was ended while it had not run
// yet has another, or that of Ctrl-C.
static bool is_of_loader(enum trace_exit exit, uint32_t value)
{
	return exit == TRACE_EXIT_CODE && value >= UINT32_C(0xc0000000) &&
	       value != UINT32_C(0xc000013a);
}

// An image that was welcomed and never heard of it. (A forked child leaves word of that itself, but
// for one that has gone on without an answer: it has left its parent's segment by then.)
//
// Windows' programs are invited, and may never run; and a Linux program may have been refused its
// descriptors.
static void check_joined(struct trace_builder *trace_builder, const struct image *image,
			 enum trace_exit exit, uint32_t value)
{
	uint64_t stopped_ns = trace_builder->stopped_ns;
	const struct segment_hello *hello = &image->arrival->hello;
	uint32_t joined = atomic_load(&image->share.segment->joined);
	bool forked = hello->start == SEGMENT_START_FORK;
	enum door_way way = image->arrival->way;
	struct str line = { 0 };

	ASSERT(image->begun);
	if (joined == SEGMENT_JOINED && way == DOOR_CHANGED) {
		str_format(
			&line,
			"%s was changed by who started it, before it ran: the recorder came in "
			"after its DLLs, and what these allocated at their start is not recorded",
			image->arrival->exe);
		trace_builder_note(trace_builder, TRACE_NOTE_MESSAGE, image->process, TRACE_NONE, 0,
				   str_get(&line));
		str_fini(&line);
	}
	if (joined == SEGMENT_JOINED || way == DOOR_NEVER)
		return;
	// By a signal it may have ended before it could begin.
	if (joined == SEGMENT_JOINED_NO ||
	    (forked && hello->image != 0 && (exit == TRACE_EXIT_CODE || exit == TRACE_EXIT_EXEC))) {
		str_format(&line,
			   "%s is not recorded: it could not map the memory that it shares with "
			   "the collector",
			   forked ? "a forked child" : image->arrival->exe);
		trace_builder_unseen(trace_builder, image->process, str_get(&line));
		str_fini(&line);
		return;
	}
	if (forked)
		return;
	// The recording was ended while it may still have been about to hear of it.
	if (stopped_ns != 0 && image->arrival->time_ns + NOTES_READER_HELLO_NS > stopped_ns) {
		trace_builder->unbegun++;
		return;
	}
	if (way == DOOR_FIRST && exit == TRACE_EXIT_CODE && !is_of_loader(exit, value))
		return; // ended before it ran: nothing of it is missing
	if (way == DOOR_CHANGED_LOST)
		str_format(&line,
			   "%s is not recorded: who started it changed its memory before it ran, "
			   "and the recorder could not be brought in again",
			   image->arrival->exe);
	else if (is_of_loader(exit, value))
		str_format(&line,
			   "%s is not recorded: it ended before its first instruction, with status "
			   "0x%08" PRIx32 ": a DLL that it needs, or a function of one, is missing",
			   image->arrival->exe, value);
	else if (image->arrival->space.files_limit > 0)
		str_format(&line,
			   "%s is not recorded: its limit of %" PRIu64
			   " descriptors leaves no room for the recorder's two (try: ulimit -n)",
			   image->arrival->exe, image->arrival->space.files_limit);
	else if (way != DOOR_KNOCKED)
		str_format(&line, "%s is not recorded: it has not loaded the recorder",
			   image->arrival->exe);
	else
		str_format(&line, "%s is not recorded: it heard no answer to its hello",
			   image->arrival->exe);
	trace_builder_unseen(trace_builder, image->process, str_get(&line));
	str_fini(&line);
}

// A Windows program that has put back the code that the hooks begin in, all of it at once, or may
// have.
static void check_hooks(struct trace_builder *trace_builder, const struct image *image)
{
	struct str line = { 0 };

	if (atomic_load(&image->share.segment->code_open) == 0)
		return;
	str_format(&line,
		   "%s made the code of ntdll writable, and the recorder was not called since: its "
		   "hooks may be gone, and calls not recorded",
		   image->arrival->exe);
	trace_builder_unseen(trace_builder, image->process, str_get(&line));
	str_fini(&line);
}

// Memory of the recorder's own for which a Windows program's table of it had no place.
static void check_own(struct trace_builder *trace_builder, const struct image *image)
{
	uint32_t unknown = atomic_load(&image->share.segment->own_unknown);
	struct str line = { 0 };

	if (unknown == 0)
		return;
	str_format(&line,
		   "%s: %" PRIu32 " piece%s of the recorder's own memory (lanes of threads) %s "
		   "counted as its memory: only 32,768 are known apart",
		   image->arrival->exe, unknown, unknown == 1 ? "" : "s",
		   unknown == 1 ? "is" : "are");
	trace_builder_note(trace_builder, TRACE_NOTE_MESSAGE, image->process, TRACE_NONE, 0,
			   str_get(&line));
	str_fini(&line);
}

// Children of a Windows program of which the collector was not asked: it did not look for so long.
static void check_unasked(struct trace_builder *trace_builder, const struct image *image)
{
	uint32_t unasked = atomic_load(&image->share.segment->unasked);
	struct str line = { 0 };

	if (unasked == 0)
		return;
	str_format(&line,
		   "%s began %" PRIu32
		   " program%s that %s not recorded: the collector was too busy "
		   "to invite %s",
		   image->arrival->exe, unasked, unasked == 1 ? "" : "s",
		   unasked == 1 ? "is" : "are", unasked == 1 ? "it" : "them");
	trace_builder_unseen(trace_builder, image->process, str_get(&line));
	str_fini(&line);
}

// In this order a trace has them.
void image_end_check(struct trace_builder *trace_builder, const struct image *image,
		     enum trace_exit exit, uint32_t value)
{
	check_joined(trace_builder, image, exit, value);
	check_hooks(trace_builder, image);
	check_unasked(trace_builder, image);
	check_own(trace_builder, image);
}

// There is no number for a code address that comes after so many.
static void warn_frames(struct trace_builder *trace_builder, const struct image *image)
{
	if (atomic_load(&image->share.segment->frames_count) >= SEGMENT_FRAMES_MAX)
		trace_builder_warn(trace_builder, image->process,
				   "it has called from more than 1,048,575 code addresses (of "
				   "libraries that were loaded again, of generated code): in "
				   "stacks, those that came after that have no names");
}

// Calls on memory that only the guest could count: they are not in the trace.
static void warn_strangers(struct trace_builder *trace_builder, const struct image *image)
{
	uint64_t calls = atomic_load(&image->share.segment->calls_strangers);
	char text[256];

	if (calls == 0)
		return;
	snprintf(text, sizeof text,
		 "%s call%s made on memory that %s not recorded: by tasks that share the "
		 "process's memory, and that the C library does not know as threads (clone with "
		 "CLONE_VM); what is mapped is looked up now and then",
		 STR_COUNT(calls), calls == 1 ? " was" : "s were", calls == 1 ? "is" : "are");
	trace_builder_warn(trace_builder, image->process, text);
}

// Of a process that runs on. Where its realloc is, and whether that has freed what it was given,
// is not known; that to size 0 has no second half either.
static void note_reallocs(struct trace_builder *trace_builder, const struct image *image)
{
	uint32_t count = 0;
	char text[192];

	for (uint32_t i = 0; i < image->streams_count; i++)
		count += image->streams[i] != NULL && image->streams[i]->halved;
	if (count == 0)
		return;
	snprintf(text, sizeof text,
		 "%u realloc%s under way when the recording ended (or the last call of a thread, "
		 "to size 0): what %s given counts as freed",
		 count, count == 1 ? " was" : "s were", count == 1 ? "it was" : "they were");
	trace_builder_note(trace_builder, TRACE_NOTE_MESSAGE, image->process, TRACE_NONE, 0, text);
}

// After the reasons of segments.
enum { NO_LANE_FILES = SEGMENT_NO_LANE_VALGRIND + 1 };

// The first process that loses something for a reason is said at once; the trace has all.
static void say_loss(struct trace_builder *trace_builder, const struct image *image,
		     uint32_t reason, const char *why)
{
	char text[256];

	ASSERT(reason < 32);
	if (trace_builder->losses_said >> reason & 1)
		return;
	trace_builder->losses_said |= UINT32_C(1) << reason;
	snprintf(text, sizeof text, "events of process %u are lost: %s", image->pid, why);
	trace_builder_say(trace_builder, text);
}

// The segment is read for the last time here.
void image_end_count(struct trace_builder *trace_builder, const struct image *image)
{
	const struct segment *segment = image->share.segment;
	static const char *const why[] = {
		[0] = "the recorder could not keep them",
		[SEGMENT_NO_LANE_MEMORY] = "no memory could be had to record more threads (a "
					   "limit: ulimit -v, ulimit -d, vm.max_map_count)",
		[SEGMENT_NO_LANE_MORE] = "more than 4,095 threads ran at once",
		[SEGMENT_NO_LANE_SEALED] = "its system-call filter forbids to map memory for more "
					   "threads",
		[SEGMENT_NO_LANE_VALGRIND] = "it ran inside valgrind",
		[NO_LANE_FILES] = "more threads ran at once than the limit of the size of files "
				  "(ulimit -f, RLIMIT_FSIZE) has room for",
	};
	uint32_t no_lane = atomic_load(&segment->no_lane);
	uint64_t dropped = atomic_load(&segment->events_dropped);
	uint32_t lanes_count = atomic_load(&segment->lanes_count);

	ASSERT(image->begun);
	for (uint32_t i = 0; i < lanes_count && i < SEGMENT_LANES_MAX; i++)
		trace_builder->stacks_incomplete +=
			atomic_load(&image->share.lanes[i].stacks_incomplete);
	trace_builder->waited_ns += atomic_load(&segment->waited_ns);
	trace_builder->stacks_verified += atomic_load(&segment->verified);
	trace_builder->stacks_mismatched += atomic_load(&segment->mismatched);
	warn_strangers(trace_builder, image);
	warn_frames(trace_builder, image);
	if (!image->final)
		note_reallocs(trace_builder, image);
	if (dropped == 0)
		return;
	// Of the collector's own limit, by which segments are shorter (share_open).
	if (no_lane == SEGMENT_NO_LANE_MORE &&
	    image->share.bytes < segment_ring_at(SEGMENT_LANES_MAX))
		no_lane = NO_LANE_FILES;
	no_lane = no_lane < sizeof why / sizeof *why ? no_lane : 0;
	trace_builder->events_lost += dropped;
	trace_builder_note(trace_builder, TRACE_NOTE_LOSS, image->process, TRACE_NONE, dropped,
			   why[no_lane]);
	say_loss(trace_builder, image, no_lane, why[no_lane]);
}
