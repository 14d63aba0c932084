// The collector's loop: hear what came to the door, deliver what the lanes have, sleep.
//
// How long to sleep is a trade. Each pass costs something by itself; but rings must not fill, and
// what is recorded should be in the file soon. So a pass that found nothing doubles the sleep, from
// 1 to 20 ms, and one that found something sets it to 1 ms. Where one thread alone does so much
// that a pass of a millisecond has more than 1,024 events, the sleep is chosen so that the next
// pass has some 16,384: after 20,000 events in 2 ms, 2 ms * 16,384 / 20,000 = 1.6 ms. A guest whose
// ring is half full rings the bell, which ends the sleep at once.
//
// A guest under a system-call filter cannot ring: a thread whose ring is full spins until the next
// pass. So one that does anything is looked at each millisecond, and one that has been quiet for 32
// passes as any other. Its children have spare lanes, which a pass makes free again, and are looked
// for in /proc while they live: where one was forked lately, quiet is 10 seconds.
#include "collect/collect.h"

#include "base/mem.h"
#include "collect/before.h"
#include "collect/merge.h"
#include "collect/notes_reader.h"
#include "collect/overhead.h"
#include "collect/process_list.h"
#include "collect/reachability.h"
#include "collect/requests.h"
#include "collect/rss_snapshots.h"
#include "collect/sampler.h"
#include "collect/share.h"
#include "os/now.h"
#include "os/thread.h"
#include "os/tool.h"

#include <stdio.h>

enum {
	TICK_NS = 100000,
	TICK_COARSE_NS = 1000000, // where each event has its own time
	SLEEP_MIN_NS = 1000000,
	SLEEP_DENSE_NS =
		4000000,     // at most, where a lane has so much to tell that it keeps the time
	DENSE_EVENTS = 1024, // in a pass: at least so many,
	PASS_EVENTS = 16384, // and not many more than these
	SLEEP_MAX_NS = 20000000,
	SLEEP_HELD_NS = 2000000,
	SLEEP_STOPPED_NS = 50000000,
	SEALED_PASSES = 32,          // without an event until a sealed process is left to itself,
	SEALED_FORKS_PASSES = 10000, // and where children were forked
	FLUSH_NS = 1000000000,
	LOOKS_MAX = 8,               // in a pass, until
	LOOK_BYTES_MAX = 1 << 16,    // at most so much was written between two
	IDLE_PASSES = 3,             // empty ones before the end is believed, and
	SLEEP_END_NS = 250000,       // how long between two
	FIRST_HELLO_NS = 2000000000, // how long no process may come at all, with until_idle
	// Events come faster than one core takes them where, in so many times of PACE_NS one after
	// the other, it had so many of them and took seven eighths of the time.
	PACE_NS = 20000000,
	PACE_EVENTS = 16384,
	PACE_TIMES = 5,
	PACE_CORES = 3, // the program has two or more then
};

struct collector {
	const struct collect_options *options;
	struct tick tick;
	struct door *door;
	struct writer *writer;
	struct trace_builder trace_builder;
	struct process_list process_list;
	struct merge merge;
	struct sampler sampler;
	struct rss_snapshots looks;
	struct reachability reachability;
	struct overhead overhead;
	struct requests requests;
	bool held;                  // the order waits for a fork's child
	bool looked;                // the last pass looked at the lanes anew
	bool began;                 // some began in it, and others wait for their place
	uint64_t told_ns;           // the tick before that: what comes is later
	bool main_ended;            // the launcher has nothing more to run
	bool launcher_gone;         // and will not hear what we say
	bool holding;               // COLLECT_HOLD was said, and
	bool holds;                 // done: nothing is delivered
	void *keep;                 // what keeps the trace short; NULL: nothing
	bool keep_holds;            // and wants that nothing is written
	uint64_t left_out;          // events that the trace has no more
	bool stopping;              // somebody wants us to finish now
	bool failed;                // the trace cannot be written
	bool nobody;                // no program said hello
	struct err why;             // why it cannot
	uint64_t sleep_ns;          // how long the last sleep was
	uint64_t flush_ns;          // when to flush next
	uint64_t look_ns, since_ns; // the last pass, and how long behind another
	bool alone;                 // no process had two busy lanes there
	bool sealed;                // one cannot ring the bell,
	bool swept;                 // and one of them has asked for lanes
	unsigned sealed_passes;     // how many more it is looked at each millisecond
	uint64_t claims;            // by children of sealed ones, that were seen
	unsigned idle_passes;
	uint64_t pace_ns, pace_cpu_ns, pace_events; // when it was looked at last, and since then
	unsigned pace_times;
};

// ---- What the door says ---------------------------------------------------------------------

// What a process had before. What it did since waits in its lanes.
//
// The blocks come as a file of addresses and sizes that the launcher has found in the process
// (before.h).
static void place_before(struct collector *collector, const struct collect_message *message)
{
	struct image *image = process_list_find(&collector->process_list, message->pid);

	// Whatever comes of it: a process that has ended meanwhile must not keep the others from
	// being delivered.
	collector->holding = collector->holds = false;
	if (image)
		before_place(image, collector->options->before_fd, message->text);
}

// The last pass delivered all that was published before it.
// While the order is held, or a pass did not look anew, there may be more than was delivered.
static bool has_all(const struct collector *collector)
{
	return collector->looked && !collector->held && merge_is_done(&collector->merge);
}

// The one who asked for it hears once all that was there before is delivered.
//
// Attaching needs it: the process is stopped and its heap is read, and what it did before that has
// to be in the trace by then.
static void hold(struct collector *collector)
{
	const struct collect_message held = { .kind = COLLECT_HELD };

	ASSERT(!collector->holds || collector->holding);
	if (!collector->holding || collector->holds || !has_all(collector))
		return;
	collector->holds = true;
	trace_builder_tell(&collector->trace_builder, &held);
}

// A program that is in no process of the trace.
static void note_unseen(struct collector *collector, const char *why)
{
	collector->trace_builder.unseen++;
	trace_builder_note(&collector->trace_builder, TRACE_NOTE_EXEC_UNSEEN, TRACE_NONE,
			   TRACE_NONE, 0, why);
}

// From the launcher, in the order in which they were sent.
static void handle_message(struct collector *collector, const struct door_event *event)
{
	const struct collect_message *message = &event->message;

	switch (message->kind) {
	case COLLECT_ENDED:
		process_list_status(&collector->process_list, message->pid, message->status);
		collector->main_ended = true;
		break;
	case COLLECT_STOP:
	case COLLECT_CUT:
		collector->stopping = true;
		break;
	case COLLECT_HOLD:
		collector->holding = true;
		break;
	case COLLECT_BEFORE:
		place_before(collector, message);
		break;
	case COLLECT_UNSEEN:
		note_unseen(collector, message->text);
		break;
	case COLLECT_MARK:
		trace_builder_time(&collector->trace_builder, event->time_ns);
		trace_builder_note(&collector->trace_builder, TRACE_NOTE_MARK, TRACE_NONE,
				   TRACE_NONE, 0, message->text);
		break;
	case COLLECT_NOTE:
		trace_builder_note(&collector->trace_builder, TRACE_NOTE_MESSAGE,
				   process_list_number(&collector->process_list, message->pid),
				   TRACE_NONE, 0, message->text);
		break;
	default:
		break;
	}
}

// The recording is to end, and the programs go on. Who launched us has to take the recorder out
// first.
static void leave(void *context)
{
	struct collector *collector = context;
	struct collect_message message = { .kind = COLLECT_LEAVE };

	if ((collector->options->report_fd >= 0 || collector->options->tell) &&
	    !collector->launcher_gone)
		trace_builder_tell(&collector->trace_builder, &message);
	else
		collector->main_ended = collector->stopping = true;
}

// All that the door has heard since the last pass, in the order in which it came.
//
// Each event is freed here, but a request's, which is answered later (requests_put).
static void handle_events(struct collector *collector)
{
	struct door_event *event;

	while ((event = door_take(collector->door)) != NULL) {
		switch (event->kind) {
		case DOOR_ARRIVAL:
			ASSERT(event->arrival != NULL);
			process_list_arrive(&collector->process_list, event->arrival);
			break;
		case DOOR_EXIT:
			// The door heard of it later than the tick is: what others do next would be
			// raised to that time, and be in one tick with it.
			process_list_exit(&collector->process_list, event->image,
					  tick_mark(&collector->tick));
			break;
		case DOOR_WAY:
			process_list_way(&collector->process_list, event->image, event->way);
			break;
		case DOOR_MESSAGE:
			handle_message(collector, event);
			break;
		case DOOR_ALONE: // the recorder will not be taken out
			collector->main_ended = collector->launcher_gone = true;
			collector->stopping |= collector->options->attached;
			break;
		case DOOR_STOP:
			collector->stopping = true;
			break;
		case DOOR_LOOK:
			break;
		case DOOR_WARNING:
			trace_builder_warn(&collector->trace_builder, TRACE_NONE,
					   event->message.text);
			break;
		case DOOR_UNSEEN:
			trace_builder_unseen(&collector->trace_builder,
					     process_list_number(&collector->process_list,
								 event->message.pid),
					     event->message.text);
			process_list_miss(&collector->process_list, event->arrival);
			break;
		case DOOR_SPARES:
			ASSERT(event->pool != NULL);
			spares_add(&collector->process_list.spares, event->pool);
			break;
		case DOOR_CONTROL:
			requests_put(&collector->requests, event);
			continue;
		}
		mem_free(event);
	}
}

// ---- A pass ---------------------------------------------------------------------------------

// Before anything is heard or looked at. While the order is held the looks stay, and so does this.
//
// `told_ns`, the tick before anything was looked at: what is written after it is later.
static void begin_pass(struct collector *collector)
{
	if (collector->held)
		return;
	collector->told_ns = tick_told(&collector->tick);
	for (struct image *image = collector->process_list.images; image; image = image->next)
		image_look_at_notes(image);
}

// Look at all lanes twice. Returns how many bytes they have between the looks.
static uint64_t look_twice(struct image *images)
{
	uint64_t between = 0;

	for (struct image *image = images; image != NULL; image = image->next)
		image_look(image);
	for (struct image *image = images; image != NULL; image = image->next)
		between += image_look_again(image);
	return between;
}

// The deaths that were heard of come first: what the looks see of the dead is all there is. Where
// we did not have the processor between the looks, other lanes have gone far, and each of what they
// have there may have to come before what others have before it: then we look anew.
//
// 64 KiB between the looks are little; more happens where the collector lost the processor. Eight
// tries, then it goes on with what there is.
static void look(struct collector *collector)
{
	struct image *images = collector->process_list.images;

	collector->process_list.begun = NULL;
	for (struct image *image = images; image != NULL; image = image->next)
		image->final = image->exited || image->replaced;
	for (int i = 0; i < LOOKS_MAX; i++)
		if (look_twice(images) <= LOOK_BYTES_MAX)
			break;
}

// What the looks saw of an image goes where the order is made.
//
// For a child that had ended when it was looked for no time of its end is known: it ends where its
// parent has waited for it, or when all that it did is in the trace. A place of its own, later than
// forks that wait for its spare, would hold them up.
static void take_seen(struct collector *collector, struct image *image, bool looked)
{
	if (image->final && image->exited && !image->replaced && !image->end_placed &&
	    !image->pid_unsure)
		image_place_end(image, image->exited_ns);
	if (looked)
		image_decode(image);
	collector->alone &= image->mode == IMAGE_ALONE;
	collector->sealed |= !image->final && atomic_load(&image->share.segment->sealed);
	if (image->notes_read)
		notes_reader_check_children(image);
	collector->swept |= image_sweep(image);
	merge_add(&collector->merge, image);
}

// Images that have begun while the order was made: their lanes are looked at now, after those of
// the others. Returns whether any has forks of its own to tell of.
static bool look_at_begun(struct collector *collector)
{
	struct image *image = collector->process_list.begun;
	bool forks = false;

	collector->process_list.begun = NULL;
	for (; image != NULL; image = image->next) {
		image->final = image->exited || image->replaced;
		image_look(image);
		image_look_again(image);
		forks |= image->events_waiting > 0;
		take_seen(collector, image, true);
	}
	return forks;
}

// Deliver what is not later than `last_ns`. False: the order is held.
//
// For example, a process forks a hundred children. The order comes to the first fork; that child
// begins, is looked at, and the order goes on to the next. What the looks of the others did not see
// is later than told_ns: so nothing is delivered that is later, the child's included.
static bool deliver(struct collector *collector, uint64_t last_ns)
{
	struct process_list *process_list = &collector->process_list;

	for (;;) {
		if (!merge_run(&collector->merge, last_ns))
			return false;
		if (process_list->begun == NULL)
			return true;
		if (collector->told_ns < last_ns)
			last_ns = collector->told_ns;
		while (process_list->begun != NULL)
			if (look_at_begun(collector)) {
				uint64_t known_ns;

				process_list_settle(process_list);
				known_ns = process_list_known_ns(process_list);
				last_ns = known_ns < last_ns ? known_ns : last_ns;
			}
	}
}

// Where one core is not enough, and the program would have to wait for room in its rings, blocks of
// the trace are written by a thread of their own. Processor time is what counts: where others take
// the processor away, another thread does not help.
static void watch_pace(struct collector *collector, uint64_t events)
{
	uint64_t cpu_ns, past_ns = collector->look_ns - collector->pace_ns;

	collector->pace_events += events;
	if (past_ns < PACE_NS)
		return;
	cpu_ns = now_cpu_ns();
	if (collector->pace_events < PACE_EVENTS ||
	    cpu_ns - collector->pace_cpu_ns < past_ns / 8 * 7)
		collector->pace_times = 0;
	else if (++collector->pace_times == PACE_TIMES && thread_cores() >= PACE_CORES)
		writer_apart(collector->writer);
	collector->pace_times %= PACE_TIMES;
	collector->pace_ns = collector->look_ns;
	collector->pace_cpu_ns = cpu_ns;
	collector->pace_events = 0;
}

// Deliver what there is. Returns the number of events.
//
// The order of what it does: look, begin what has its place, decode, merge, and then whatever needs
// that all up to here is delivered: samples, snapshots, searches, requests, ends.
static uint64_t pass(struct collector *collector)
{
	struct process_list *process_list = &collector->process_list;
	uint64_t before = writer_events_count(collector->writer);
	size_t began_before = process_list->began_count;
	uint64_t look_ns = tick_now(&collector->tick);
	uint64_t last_ns; // what is later is for the next pass
	struct image *image;

	collector->since_ns = look_ns - collector->look_ns;
	collector->look_ns = look_ns;
	collector->alone = true;
	collector->sealed = collector->swept = false;
	collector->looked = !collector->held;
	// Before the notes are read: that of a fork was written before its child had a spare.
	spares_pass(&process_list->spares, process_list);
	if (collector->looked)
		look(collector);
	else
		for (image = process_list->images; image != NULL; image = image->next)
			image_read_notes(image);
	process_list_settle(process_list);
	last_ns = process_list_known_ns(process_list);
	for (image = process_list->images; image != NULL; image = image->next) {
		take_seen(collector, image, collector->looked);
		if (image->late && collector->told_ns < last_ns)
			last_ns = collector->told_ns;
	}
	collector->held = !deliver(collector, last_ns);
	collector->began = process_list->began_count != began_before &&
			   process_list->arrivals != NULL;
	if (!collector->held) {
		for (image = process_list->images; image != NULL; image = image->next)
			notes_reader_check_exec(image, look_ns, false);
		sampler_run(&collector->sampler, process_list, collector->told_ns);
		rss_snapshots_pass(&collector->looks);
		reachability_pass(&collector->reachability);
		overhead_pass(&collector->overhead, look_ns);
		if (collector->looked)
			requests_pass(&collector->requests, collector->merge.last_ns);
		process_list_end(process_list, false);
		process_list_settle(process_list);
		process_list_tell_lost(process_list);
	} else {
		process_list_reap(process_list);
	}
	if (look_ns >= collector->flush_ns) {
		collector->flush_ns = look_ns + FLUSH_NS;
		writer_flush(collector->writer);
	}
	watch_pace(collector, writer_events_count(collector->writer) - before);
	return writer_events_count(collector->writer) - before;
}

// How long a thread that allocates so much can be left to itself: its lane raises the tick, and a
// pass costs something by itself. But no ring gets half full meanwhile.
//
// Its result lies between 1 and 4 ms.
static uint64_t dense_sleep(const struct collector *collector, uint64_t events)
{
	uint64_t sleep_ns;

	ASSERT(events > 0);
	sleep_ns = collector->since_ns * PASS_EVENTS / events;
	if (sleep_ns < SLEEP_MIN_NS)
		return SLEEP_MIN_NS;
	return sleep_ns < SLEEP_DENSE_NS ? sleep_ns : SLEEP_DENSE_NS;
}

// Whether a sealed process may be about to fill its ring, or to fork.
//
// See the head. Those that are quiet are slept through as all others are.
static bool sealed_is_busy(struct collector *collector, uint64_t events)
{
	uint64_t claims = collector->process_list.spares.claims;

	ASSERT(claims >= collector->claims);
	if (!collector->sealed)
		return false;
	if (claims > collector->claims)
		collector->sealed_passes = SEALED_FORKS_PASSES;
	else if ((events > 0 || collector->swept) && collector->sealed_passes < SEALED_PASSES)
		collector->sealed_passes = SEALED_PASSES;
	else if (collector->sealed_passes > 0)
		collector->sealed_passes--;
	collector->claims = claims;
	return collector->sealed_passes > 0;
}

// How long to sleep if no bell rings.
//
// See the head; held, sealed and ending recordings have their own.
static uint64_t next_sleep(struct collector *collector, uint64_t events)
{
	if (collector->held || collector->holds || collector->keep_holds)
		return SLEEP_HELD_NS;
	// Who has begun may let others begin: with a nap each time, hundreds would take long.
	if (collector->began)
		return 0;
	if (sealed_is_busy(collector, events))
		return collector->sleep_ns = SLEEP_MIN_NS;
	if (collector->idle_passes > 0 && !collector->options->until_idle)
		return SLEEP_END_NS; // the launcher waits for the end
	if (events >= DENSE_EVENTS && collector->alone)
		collector->sleep_ns = dense_sleep(collector, events);
	else if (events > 0 || collector->process_list.arrivals != NULL ||
		 !merge_is_done(&collector->merge))
		collector->sleep_ns = SLEEP_MIN_NS;
	else if (collector->sleep_ns < SLEEP_MAX_NS)
		collector->sleep_ns *= 2;
	ASSERT(collector->sleep_ns >= SLEEP_MIN_NS);
	return collector->sleep_ns < SLEEP_MAX_NS ? collector->sleep_ns : SLEEP_MAX_NS;
}

// ---- The end --------------------------------------------------------------------------------

// Nothing is alive, the door is empty, and no process will come.
//
// Three empty passes, so that a process that is just being started is not missed.
static bool over(struct collector *collector)
{
	bool nobody_comes = collector->main_ended;

	ASSERT(collector->idle_passes <= IDLE_PASSES);
	if (collector->options->until_idle)
		nobody_comes = collector->process_list.began_count > 0 ||
			       tick_now(&collector->tick) > FIRST_HELLO_NS;
	if (!nobody_comes || !process_list_empty(&collector->process_list) ||
	    !door_idle(collector->door) || collector->reachability.jobs) {
		collector->idle_passes = 0;
		return false;
	}
	return ++collector->idle_passes >= IDLE_PASSES;
}

// Take everything that is published, and call it the end for all.
// What programs publish after the clock has stopped is not waited for: at most a hundred rounds
// of 2 ms, unless a fork's child is still to be placed.
static void finish_running(struct collector *collector)
{
	ASSERT(collector->stopping);
	tick_stop(&collector->tick);
	collector->trace_builder.stopped_ns = tick_now(&collector->tick);
	door_refuse(collector->door);
	// Twice, for what waits for a place; a fork's child that does not come is given up.
	for (int i = 0; i < 100 || collector->held; i++) {
		begin_pass(collector);
		handle_events(collector);
		pass(collector);
		if (has_all(collector) && collector->process_list.arrivals == NULL && i > 0)
			break;
		tick_sleep(&collector->tick, tick_bell(&collector->tick), SLEEP_HELD_NS);
	}
	reachability_finish(&collector->reachability);
	reachability_cancel(&collector->reachability);
	process_list_end(&collector->process_list, true);
}

// The trace cannot be written: let the programs go on, and say so.
// A guest that sees the clock stopped records nothing more, and no thread waits for room in a
// ring that is not emptied any more.
static void give_up(struct collector *collector)
{
	struct collect_message message = { .kind = COLLECT_STOPPED };

	ASSERT(collector->why.kind != ERR_NONE);
	collector->failed = true;
	reachability_cancel(&collector->reachability);
	tick_stop(&collector->tick);
	door_refuse(collector->door);
	snprintf(message.text, sizeof message.text, "%s", collector->why.text);
	trace_builder_tell(&collector->trace_builder, &message);
}

// ---- A trace that is kept short -------------------------------------------------------------

// `why` says how the trace ended before its programs did; it is empty where all ended by
// themselves.
static void fill_end(struct collector *collector, struct trace_end *end)
{
	struct trace_builder *trace_builder = &collector->trace_builder;

	process_list_weigh(&collector->process_list);
	*end = (struct trace_end){
		.duration_ns = trace_builder->now_ns,
		.events = writer_events_count(collector->writer),
		.events_lost = trace_builder->events_lost,
		.waited_ns = trace_builder->waited_ns,
		.tick_median_ns = tick_median_ns(&collector->tick),
		.tick_worst_ns = tick_worst_ns(&collector->tick),
		.guest_bytes_peak = collector->process_list.guest_bytes_peak,
		.collector_bytes_peak = tool_own_resident_max(),
		.collector_cpu_ns = now_cpu_ns(),
		.stacks_incomplete = trace_builder->stacks_incomplete,
		.stacks_verified = trace_builder->stacks_verified,
		.stacks_mismatched = trace_builder->stacks_mismatched,
		.unseen = trace_builder->unseen,
		.why = collector->stopping && !collector->failed ? "stopped while programs ran"
								 : collector->why.text,
	};
	if (collector->stopping && !collector->failed && collector->main_ended)
		end->why = (char *)"";
}

// The new file has all that was written by now, but what it leaves out.
//
// `keep` has written a shorter file; the writer goes on in that, and what was left out is counted.
static void take_kept(struct collector *collector)
{
	const struct collect_keep *keep = collector->options->keep;
	uint64_t before = writer_events_count(collector->writer), left_out;
	struct trace_end end;

	ASSERT(collector->keep);
	if (keep->ends(collector->keep)) {
		fill_end(collector, &end);
		writer_end(collector->writer, &end);
	}
	writer_become(collector->writer, keep->take(collector->keep));
	keep->taken(collector->keep);
	left_out = before - writer_events_count(collector->writer);
	ASSERT(left_out <= before);
	collector->left_out += left_out;
	rss_snapshots_moved(&collector->looks, left_out);
	collector->keep_holds = false;
}

// What was held is delivered again.
static void end_keep(struct collector *collector)
{
	const struct collect_keep *keep = collector->options->keep;

	if (collector->keep == NULL)
		return;
	if (keep->stop(collector->keep))
		take_kept(collector);
	keep->end(collector->keep);
	collector->keep = NULL;
	collector->keep_holds = false;
}

static void flush_for_keep(struct collector *collector)
{
	ASSERT(collector->keep);
	writer_flush(collector->writer);
	collector->options->keep->flushed(collector->keep);
}

// `wish` decides, this does it: what keeps the trace short (`--keep`) knows files, and the
// collector knows when nothing is half written.
//
// It is asked once a pass.
static void serve_keep(struct collector *collector)
{
	const struct collect_keep *keep = collector->options->keep;

	if (collector->keep == NULL || !writer_ok(collector->writer, &collector->why))
		return;
	switch (keep->wish(collector->keep, writer_bytes(collector->writer),
			   tick_now(&collector->tick))) {
	case COLLECT_KEEP_NOTHING:
		break;
	case COLLECT_KEEP_HOLD:
		collector->keep_holds = true;
		flush_for_keep(collector);
		break;
	case COLLECT_KEEP_FLUSH:
		flush_for_keep(collector);
		break;
	case COLLECT_KEEP_TAKE:
		take_kept(collector);
		break;
	case COLLECT_KEEP_SAY:
		trace_builder_warn(&collector->trace_builder, TRACE_NONE,
				   keep->text(collector->keep));
		collector->keep_holds = false;
		break;
	case COLLECT_KEEP_GO_ON:
		collector->keep_holds = false;
		break;
	}
}

// Until nothing is alive any more and the launcher wants no more, or somebody stops it. A trace
// that cannot be written ends the loop as well, but not the wait: programs run on, and the
// launcher still asks for the sums at the end.
//
// The bell is read before the work: one that is rung while it is done ends the sleep at once.
static void run(struct collector *collector)
{
	while (!collector->failed) {
		uint32_t bell = tick_bell(&collector->tick);
		uint64_t events;
		bool holds;

		begin_pass(collector);
		// What is written while it holds would be in the former file alone.
		if (!collector->keep_holds) {
			handle_events(collector);
			rss_snapshots_serve(&collector->looks);
		}
		if (collector->stopping)
			end_keep(collector);
		holds = collector->holds || collector->keep_holds;
		events = holds && !collector->stopping ? 0 : pass(collector);
		hold(collector);
		serve_keep(collector);
		if (!writer_ok(collector->writer, &collector->why)) {
			give_up(collector);
		} else if (collector->stopping) {
			finish_running(collector);
			return;
		} else if (over(collector)) {
			return;
		} else {
			tick_sleep(&collector->tick, bell, next_sleep(collector, events));
		}
	}
	// Unrecorded programs run on. Who launched us still wants an answer at the end.
	while (!collector->stopping && !collector->main_ended && !collector->options->until_idle) {
		uint32_t bell = tick_bell(&collector->tick);

		handle_events(collector);
		tick_sleep(&collector->tick, bell, SLEEP_STOPPED_NS);
	}
}

// The program itself, where nothing at all was heard of it and no reason is known.
static void note_nobody(struct collector *collector)
{
	const struct trace_info *info = &collector->options->info;
	struct str line = { 0 };

	if (collector->trace_builder.processes_count > 0 || collector->trace_builder.unseen > 0 ||
	    collector->failed || info->command == NULL)
		return;
	str_format(&line, "%s is not recorded: it did not say hello", info->command);
	note_unseen(collector, str_get(&line));
	ASSERT(!collector->nobody);
	collector->nobody = true;
	str_fini(&line);
}

// events_lost of the summary counts what was lost in lanes and what the file has no more.
static void tell_done(struct collector *collector, const struct trace_end *end, bool complete,
		      struct collect_summary *summary)
{
	struct collect_message message = { .kind = COLLECT_DONE };
	uint64_t kept = writer_events_kept(collector->writer) + collector->left_out;

	trace_builder_sum(&collector->trace_builder, summary);
	summary->events_gone = summary->events - kept;
	summary->events_lost = end->events_lost + summary->events_gone;
	summary->events = kept;
	summary->events_left_out = collector->left_out;
	summary->duration_ns = end->duration_ns;
	summary->trace_bytes = writer_bytes(collector->writer);
	summary->waited_ns = end->waited_ns;
	summary->order_breaks = collector->merge.order_breaks;
	summary->complete = complete;
	summary->nobody = collector->nobody;
	summary->sampled = collector->overhead.limit > 0
				   ? collector->overhead.turned
				   : collector->options->info.sample_bytes > 0;
	message.summary = *summary;
	snprintf(message.text, sizeof message.text, "%s", collector->why.text);
	trace_builder_tell(&collector->trace_builder, &message);
}

// Only the trace says these: they make some figures less exact, and nothing wrong.
// "in 12 stacks it is not sure ...": nothing is noted where the count is 0.
static void note_count(struct trace_builder *trace_builder, uint64_t count, const char *before,
		       const char *one, const char *many)
{
	char text[128];

	if (count == 0)
		return;
	snprintf(text, sizeof text, "%s%llu %s", before, (unsigned long long)count,
		 count == 1 ? one : many);
	trace_builder_note(trace_builder, TRACE_NOTE_MESSAGE, TRACE_NONE, TRACE_NONE, 0, text);
}

// What the trace cannot say for sure is said in it, and so in every report of it.
static void note_losses(struct collector *collector)
{
	struct trace_builder *trace_builder = &collector->trace_builder;
	char text[256];

	if (collector->merge.order_breaks > 0) {
		snprintf(text, sizeof text,
			 "%llu events have no possible order: the program frees or moves blocks "
			 "in two threads at once",
			 (unsigned long long)collector->merge.order_breaks);
		trace_builder_warn(trace_builder, TRACE_NONE, text);
	}
	if (trace_builder->unsearched > 0 &&
	    (collector->options->segment_options & SEGMENT_REACHABILITY)) {
		snprintf(text, sizeof text,
			 "a signal has ended %llu of its processes before it was searched what of "
			 "its memory is reachable (try: tidemark ctl PID reachability before)",
			 (unsigned long long)trace_builder->unsearched);
		trace_builder_warn(trace_builder, TRACE_NONE, text);
	}
	note_count(trace_builder, trace_builder->language.unsure, "in ",
		   "stack it is not sure where the functions of Python belong",
		   "stacks it is not sure where the functions of Python belong");
	note_count(trace_builder, trace_builder->unbegun, "",
		   "program had not begun when the recording ended, and is not in it",
		   "programs had not begun when the recording ended, and are not in it");
	note_count(trace_builder, trace_builder->forks_late, "",
		   "fork has no exact place in its parent's order",
		   "forks have no exact place in their parent's order");
	note_count(trace_builder, trace_builder->stillborn, "",
		   "forked child ended before anything of the program ran in it, and is not listed",
		   "forked children ended before anything of the program ran in them, and are not "
		   "listed");
}

// False: the trace is not whole, and `*err` says why.
static bool finish(struct collector *collector, struct collect_summary *summary, struct err *err)
{
	struct trace_end end;
	bool complete;

	end_keep(collector);
	ASSERT(collector->keep == NULL && !collector->keep_holds);
	note_losses(collector);
	note_nobody(collector);
	process_list_tell_late(&collector->process_list);
	writer_flush(collector->writer);
	if (!collector->failed && !writer_ok(collector->writer, &collector->why))
		give_up(collector);
	tick_join(&collector->tick);
	fill_end(collector, &end);
	writer_end(collector->writer, &end);
	ASSERT(!collector->failed || collector->why.kind != ERR_NONE);
	complete = writer_ok(collector->writer, &collector->why) && !collector->failed;
	tell_done(collector, &end, complete, summary);
	if (!complete)
		*err = collector->why;
	return complete;
}

// ---- The beginning --------------------------------------------------------------------------

// In this order, since each needs the one before: clock, writer, what builds the trace, and last
// the door, which lets programs in.
static bool begin(struct collector *collector, struct trace_info *info, struct err *err)
{
	const struct collect_options *options = collector->options;
	bool own_times = options->segment_options & SEGMENT_CLOCK_NS;
	struct collect_message ready = { .kind = COLLECT_READY };

	ASSERT(!collector->writer && !collector->door);
	if (!share_may_open(err) ||
	    !tick_open(&collector->tick, own_times ? TICK_COARSE_NS : TICK_NS, TICK_ANY, err))
		return false;
	collector->tick.own_times = own_times;
	*info = options->info;
	info->tick_ns = own_times ? 0 : TICK_NS;
	if (info->began_unix_ns == 0)
		info->began_unix_ns = now_wall_ns();
	collector->writer = writer_new(options->output_fd, info, err);
	if (collector->writer == NULL)
		return false;
	trace_builder_init(&collector->trace_builder, collector->writer, options);
	collector->trace_builder.fold_ns = 2 * info->tick_ns;
	process_list_init(&collector->process_list, &collector->trace_builder, &collector->tick,
			  !(options->segment_options & SEGMENT_NO_FOLLOW));
	rss_snapshots_init(&collector->looks, &collector->process_list, &collector->tick,
			   options->segment_options & SEGMENT_RSS_EXACT);
	collector->reachability = (struct reachability){
		.process_list = &collector->process_list,
		.options = options,
	};
	collector->looks.reachability = &collector->reachability;
	overhead_init(&collector->overhead, &collector->process_list, &collector->tick,
		      options->overhead_max);
	merge_init(&collector->merge, &collector->trace_builder, process_list_special,
		   &collector->process_list);
	collector->sleep_ns = SLEEP_MIN_NS;
	collector->flush_ns = FLUSH_NS;
	if (options->keep != NULL)
		collector->keep = options->keep->begin(options->keep_wishes, options->output_fd);
	collector->requests.door = collector->door = collector->process_list.spares.door =
		door_open(options, &collector->tick, err);
	if (collector->door == NULL)
		return false;
	if (options->door != NULL)
		*options->door = collector->door;
	trace_builder_tell(&collector->trace_builder, &ready);
	return true;
}

// The reverse of begin; all parts accept that they were never begun.
static void release(struct collector *collector)
{
	end_keep(collector);
	requests_fini(&collector->requests);
	door_close(collector->door);
	collector->process_list.spares.door = NULL;
	merge_fini(&collector->merge);
	process_list_fini(&collector->process_list);
	trace_builder_fini(&collector->trace_builder);
	writer_free(collector->writer);
	tick_close(&collector->tick);
	mem_free(collector);
}

bool collect_run(const struct collect_options *options, struct collect_summary *summary,
		 struct err *err)
{
	struct collector *collector = mem_alloc(1, sizeof *collector);
	struct collect_summary unwanted;
	struct trace_info info;
	bool good = false;

	ASSERT(options);
	collector->options = options;
	collector->requests = (struct requests){
		.options = options,
		.process_list = &collector->process_list,
		.reachability = &collector->reachability,
		.overhead = &collector->overhead,
		.leave = leave,
		.context = collector,
	};
	if (begin(collector, &info, err)) {
		run(collector);
		good = finish(collector, summary != NULL ? summary : &unwanted, err);
	}
	release(collector);
	return good;
}
