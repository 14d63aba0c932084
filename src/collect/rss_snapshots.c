// What a snapshot may cost. All of them together may take a hundredth of the recording's time: at
// 10 s that is 100 ms. Half of it is for processes that are children, and for snapshots that are
// not waited for.
//
//     a process of 100 MiB, by pages      250 us + 100 *  4 us = 0.65 ms
//     the same by smaps                   500 us + 100 * 40 us = 4.5 ms, with more to say
//
// By smaps if that is at most half of what is left, else by pages, if there is 0.65 ms * 3 / 2
// left, else the snapshot is missed, and counted. What one really took corrects the price of the
// next ones (cost_permille), by a factor of 8 at the most: other machines, and swapped pages, are
// slower.
//
// When one is taken, the process gets a floor: its memory has to grow beyond it before the next.
// With much time left that is a fortieth more, else a tenth, and a quarter when time is short.
#include "collect/rss_snapshots.h"

#include "base/mem.h"
#include "collect/peer.h"
#include "collect/proc_memory.h"
#include "collect/session.h"
#include "os/now.h"
#include "trace/snapshot.h"

enum {
	SPENT_SHARE = 100,     // of the recording's time, one part
	END_FREE_NS = 1000000, // and this for the end of the program itself
	RETRIES = 2,
	LOOK_REASON_MASK = 0xff, // of look_reason; the rest is a number
	LOOK_NUMBER_MASK = 0xffffff,
	GROWTH_BYTES_MIN = 1 << 20,
	// Of what it was, one part, by how many more may be taken: sixteen, four, less.
	GROWTH_SHARE_AMPLE = 40,
	GROWTH_SHARE = 10,
	GROWTH_SHARE_SPARING = 4,
	GROWTH_SHARE_EXACT = 100,
	GROWTH_UNASKED = 3,       // so many halves of what it was, where it is not asked for
	WAIT_MAX_NS = 1000000000, // more is a clock that jumped
	// What a snapshot takes: of any process, and for each megabyte that is resident.
	BY_PAGES_NS = 250000,
	BY_PAGES_MIB_NS = 4000,
	BY_SMAPS_NS = 500000,
	BY_SMAPS_MIB_NS = 40000,
	COST_ONE = 1000,
	COST_MIN = COST_ONE / 8,
	COST_MAX = COST_ONE * 8,
	SMALL_BYTES = 4 << 20, // as resident as a process is at its beginning
};

// How a snapshot is taken.
enum way { BY_PAGES, BY_SMAPS, MISSED };

static uint64_t predict(enum way way, uint64_t resident)
{
	uint64_t mib = resident >> 20;

	return way == BY_PAGES ? BY_PAGES_NS + mib * BY_PAGES_MIB_NS
			       : BY_SMAPS_NS + mib * BY_SMAPS_MIB_NS;
}

// What was predicted, corrected by what such snapshots really took on this machine.
static uint64_t price(const struct rss_snapshots *looks, enum way way, uint64_t resident)
{
	ASSERT(way != MISSED);
	return predict(way, resident) * looks->cost_permille[way] / COST_ONE;
}

// One has taken so long.
// Three parts of what was thought and one of what was seen: a single slow reading (the process
// was swapped out) does not make all that follow too expensive.
static void learn(struct rss_snapshots *looks, enum way way, uint64_t resident, uint64_t cost_ns)
{
	uint64_t cost_permille = cost_ns * COST_ONE / predict(way, resident);

	ASSERT(way != MISSED);
	cost_permille = cost_permille < COST_MIN   ? COST_MIN
			: cost_permille > COST_MAX ? COST_MAX
						   : cost_permille;
	looks->cost_permille[way] = (3 * looks->cost_permille[way] + cost_permille) / 4;
}

// Time for one by pages, and half of that again: the end will want one, too.
static uint64_t least(const struct rss_snapshots *looks, uint64_t resident)
{
	return price(looks, BY_PAGES, resident) * 3 / 2;
}

// Time is spent. When there may be some for the next one, the guests know without asking.
//
// look_after_ns: before that time a guest that asks would be refused, and so it does not.
static void spend(struct rss_snapshots *looks, uint64_t cost_ns, uint64_t resident)
{
	uint64_t after_ns = 0;

	looks->spent_ns += cost_ns;
	if (!looks->exact)
		after_ns = (looks->spent_ns + least(looks, resident)) * SPENT_SHARE;
	looks->after_ns = after_ns;
	atomic_store(&looks->tick->clock->look_after_ns, after_ns);
}

void rss_snapshots_init(struct rss_snapshots *looks, struct process_list *process_list,
			const struct tick *tick, bool exact)
{
	*looks = (struct rss_snapshots){
		.process_list = process_list,
		.tick = tick,
		.exact = exact,
		.cost_permille = { COST_ONE, COST_ONE },
	};
	spend(looks, 0, SMALL_BYTES);
}

// What may be spent from now on, in all or of the half that is for the others.
static uint64_t left_of(const struct rss_snapshots *looks, bool half)
{
	uint64_t allowed_ns = tick_now(looks->tick) / SPENT_SHARE;

	if (half)
		allowed_ns /= 2;
	return allowed_ns > looks->spent_ns ? allowed_ns - looks->spent_ns : 0;
}

// For example, after 10 s with 20 ms spent, 80 ms are left for the process that was started. With
// 100 MiB resident, smaps cost 4.5 ms, less than half of that: so it is read by smaps. After 1 s
// with 8 ms spent, 2 ms are left: by pages, since 0.65 ms and half of it again are within them.
// With 0.9 ms left it is missed.
static enum way choose(const struct rss_snapshots *looks, const struct image *image,
		       uint32_t reason, uint64_t resident)
{
	uint64_t left = left_of(looks, image->look_child || reason == TRACE_SNAPSHOT_GROWTH);
	uint64_t by_smaps = price(looks, BY_SMAPS, resident);

	if (looks->exact)
		return BY_SMAPS;
	if (reason == TRACE_SNAPSHOT_EXIT) {
		if (by_smaps <= left)
			return BY_SMAPS;
		// By what it takes where nothing is in its way: this one is not to hang on luck.
		if (!image->look_child && predict(BY_PAGES, resident) <= END_FREE_NS)
			return BY_PAGES;
		return price(looks, BY_PAGES, resident) <= left ? BY_PAGES : MISSED;
	}
	if (by_smaps <= left / 2)
		return BY_SMAPS;
	return least(looks, resident) <= left ? BY_PAGES : MISSED;
}

// One that was never finished goes into the trace as well: where its marks are missing, it begins
// and ends with the same event.
static void give(struct image *image)
{
	struct trace_builder *trace_builder = image->trace_builder;
	struct trace_snapshot *snapshot = &image->look;

	if (image->look_open) {
		ASSERT(snapshot->process == image->process);
		if (snapshot->ended < snapshot->began)
			snapshot->ended = snapshot->began;
		writer_snapshot(trace_builder->writer, snapshot);
		snapshot_fini(snapshot);
	}
	image->look_open = false;
}

// Has the image grown so much that one is worth it without its asking?
//
// Without being asked one is taken only where memory has grown by half. While a process is attached
// to, it is not known what it has mapped: nothing of a snapshot could be explained.
static bool grown(const struct rss_snapshots *looks, const struct image *image)
{
	uint64_t floor = atomic_load(&image->share.segment->look_floor);

	if (image->arrival->hello.start == SEGMENT_START_ATTACH && !image->listed)
		return false;
	if (image->resident <= floor || image->resident == image->look_resident)
		return false;
	return looks->exact || image->resident >= image->look.rss_bytes_max / 2 * GROWTH_UNASKED;
}

// Do the sums by mapping and by page agree?
// The two readings are taken one after the other, and a thread that is not stopped may map memory
// in between.
static bool agrees(const struct trace_snapshot *snapshot)
{
	uint64_t mapped = 0, present = 0;

	for (uint32_t i = 0; i < snapshot->mappings_count; i++)
		mapped += snapshot->mappings[i].rss;
	for (uint32_t i = 0; i < snapshot->pages_count; i++)
		if (snapshot->pages[i].flags & TRACE_PAGES_PRESENT)
			present += snapshot->pages[i].end - snapshot->pages[i].start;
	return (mapped > present ? mapped - present : present - mapped) <=
	       mapped / SNAPSHOT_AGREES_SHARE;
}

// By which part of what it is must resident memory grow before the next one? What is left of the
// time is for a peak that may be far above.
static uint64_t growth_share(const struct rss_snapshots *looks, uint64_t resident)
{
	uint64_t left = left_of(looks, false), each = price(looks, BY_PAGES, resident);

	if (looks->exact)
		return GROWTH_SHARE_EXACT;
	if (left >= 16 * each)
		return GROWTH_SHARE_AMPLE;
	return left >= 4 * each ? GROWTH_SHARE : GROWTH_SHARE_SPARING;
}

// Take a snapshot of the image, which has waited since `asked_ns`. Its marks are told later.
//
// For snapshots that no thread waits for, up to two more tries if the two readings differ.
static void take(struct rss_snapshots *looks, struct image *image, uint32_t reason, enum way way,
		 uint64_t asked_ns)
{
	struct file_table *files = &looks->process_list->trace_builder->files;
	uint64_t events = writer_events_count(looks->process_list->trace_builder->writer);
	struct trace_snapshot *look = &image->look;
	uint64_t began_ns = now_steady_ns(), share, floor;

	ASSERT(way != MISSED && image->begun);
	give(image); // one that was never finished
	*look = (struct trace_snapshot){
		.process = image->process,
		.reason = (uint8_t)reason,
		.time_ns = tick_now(looks->tick),
		.began = events,
		.ended = events,
	};
	image->look_open = proc_memory_take(image->pid, files, way == BY_SMAPS, look);
	// No thread waits for one of our own: the program runs on, and what it maps between the two
	// readings makes them differ.
	for (int i = 0;
	     i < RETRIES && reason == TRACE_SNAPSHOT_GROWTH && image->look_open && !agrees(look);
	     i++) {
		snapshot_fini(look);
		look->flags = 0;
		image->look_open = proc_memory_take(image->pid, files, way == BY_SMAPS, look);
	}
	look->cost_ns = now_steady_ns() - began_ns;
	if (image->look_open)
		learn(looks, way, look->rss_bytes, look->cost_ns);
	if (began_ns > asked_ns && began_ns - asked_ns < WAIT_MAX_NS)
		look->cost_ns += began_ns - asked_ns;
	spend(looks, look->cost_ns, look->rss_bytes);
	if (look->rss_bytes_max > image->resident_max)
		image->resident_max = look->rss_bytes_max;
	share = growth_share(looks, image->resident_max);
	floor = image->resident_max;
	floor += floor / share > GROWTH_BYTES_MIN ? floor / share : GROWTH_BYTES_MIN;
	atomic_store(&image->share.segment->look_floor, floor);
}

// A child of a recorded process is looked at only from 16 MiB on: there may be thousands.
void rss_snapshots_welcome(struct image *image, bool child)
{
	atomic_store(&image->share.segment->look_floor, child ? SEGMENT_LOOK_CHILD_BYTES : 0);
	// Where its last moment is wanted anyway, it asks like any other.
	atomic_store(&image->share.segment->look_child,
		     child && !(image->share.segment->options & SEGMENT_REACHABILITY));
	image->look_child = child;
}

static void answer(struct image *image)
{
	_Atomic uint32_t *state = &image->share.segment->look_state;

	atomic_store(state, SEGMENT_LOOK_DONE);
	session_wake(state);
}

// An image waits for one. It is answered when this returns.
static void serve(struct rss_snapshots *looks, struct image *image)
{
	uint64_t asked_ns = atomic_load(&image->share.segment->look_asked_ns);
	uint32_t reason = atomic_load(&image->share.segment->look_reason) & LOOK_REASON_MASK;
	_Atomic uint64_t *floor = &image->share.segment->look_floor;
	uint64_t began_ns = now_steady_ns();
	uint64_t resident;
	enum way way;

	if (!image->begun) {
		image->look_missed++;
		return;
	}
	if (reason != TRACE_SNAPSHOT_EXIT)
		reason = TRACE_SNAPSHOT_RELEASE;
	resident = peer_resident(image->pid);
	// The guest goes by the highest that the kernel remembers. Where that was missed and is
	// over, a new one is waited for.
	if (reason == TRACE_SNAPSHOT_RELEASE && resident <= atomic_load(floor)) {
		atomic_store(floor, atomic_load(&image->share.segment->rss_max));
		return;
	}
	way = choose(looks, image, reason, resident);
	if (way != MISSED) {
		take(looks, image, reason, way, asked_ns);
		image->look_passes = 0;
		image->look_asked = true;
		image->look_number = atomic_load(&image->share.segment->look_reason) >> 8;
		return;
	}
	image->look_missed++;
	if (began_ns > asked_ns && began_ns - asked_ns < WAIT_MAX_NS)
		spend(looks, now_steady_ns() - asked_ns, resident);
}

static void answer_searched(void *context)
{
	answer(context);
}

// What a search is for, where one is asked for: the end of the process, or a mark; else 0.
static uint8_t search_reason(const struct image *image)
{
	uint32_t reason = atomic_load(&image->share.segment->look_reason) & LOOK_REASON_MASK;

	if (reason == TRACE_SNAPSHOT_MARK ||
	    (reason == TRACE_SNAPSHOT_EXIT &&
	     (image->share.segment->options & SEGMENT_REACHABILITY)))
		return (uint8_t)reason;
	return 0;
}

// The state word is taken from ASKED to TAKING by one exchange: a guest that gave up meanwhile has
// put it back to IDLE.
static void serve_all(struct rss_snapshots *looks, struct image *images)
{
	for (struct image *image = images; image != NULL; image = image->next) {
		const struct image_asker asker = { answer_searched, NULL, image };
		uint32_t asked = SEGMENT_LOOK_ASKED;
		uint8_t reason;

		// One that is to be searched, or of which no snapshot is to be missed
		// (--rss-exact), and has no place yet, will have it soon.
		if (image->share.segment == NULL ||
		    (!image->begun && (looks->exact || search_reason(image))) ||
		    !atomic_compare_exchange_strong(&image->share.segment->look_state, &asked,
						    SEGMENT_LOOK_TAKING))
			continue;
		reason = search_reason(image);
		if (reason != TRACE_SNAPSHOT_MARK)
			serve(looks, image);
		if (!image->begun || !reason ||
		    !reachability_ask(looks->reachability, image, reason, &asker))
			answer(image);
	}
}

void rss_snapshots_serve(struct rss_snapshots *looks)
{
	serve_all(looks, looks->process_list->images);
	// Those have no place for a snapshot yet, but need not wait in vain.
	serve_all(looks, looks->process_list->arrivals);
	// A child may have kept the others from asking, and then have given up, or ended.
	if (atomic_load(&looks->tick->clock->look_after_ns) != looks->after_ns)
		atomic_store(&looks->tick->clock->look_after_ns, looks->after_ns);
}

// Snapshots have two marks in the order, where they began and ended; one that we took ourselves
// gets them from the passes around it.
void rss_snapshots_pass(struct rss_snapshots *looks)
{
	for (struct image *image = looks->process_list->images; image; image = image->next) {
		enum way way;

		// What was delivered by now was published before the snapshot was over, or may have
		// been: the second pass behind it has looked at all that there was.
		if (image->look_open && !image->look_asked && ++image->look_passes == 2) {
			image->look.ended =
				writer_events_count(looks->process_list->trace_builder->writer);
			give(image);
		}
		if (image->look_open || !image_is_there(image) || image->share.segment == NULL)
			continue;
		if (!grown(looks, image))
			continue;
		way = choose(looks, image, TRACE_SNAPSHOT_GROWTH, image->resident);
		if (way == MISSED)
			continue;
		image->look_resident = image->resident;
		take(looks, image, TRACE_SNAPSHOT_GROWTH, way, now_steady_ns());
		image->look_passes = 0;
		image->look_asked = false;
	}
}

// Is the snapshot that is open the one whose marks are being met? Those of an earlier one, which
// may not have been taken, can still be in the lane.
static bool is_marked(const struct image *image)
{
	return image->look_open && image->look_asked &&
	       (image->looks_seen & LOOK_NUMBER_MASK) == image->look_number;
}

void rss_snapshots_begin(struct image *image)
{
	image->looks_seen++;
	if (is_marked(image))
		image->look.began = writer_events_count(image->trace_builder->writer);
}

void rss_snapshots_end(struct image *image)
{
	if (!is_marked(image))
		return;
	image->look.ended = writer_events_count(image->trace_builder->writer);
	give(image);
}

// The highest of all: what the recorder saw itself between two samples of ours may be more than any
// of them.
void rss_snapshots_finish(struct image *image)
{
	uint64_t told, missed, elsewhere;

	if (image->look_open)
		image->look.ended = writer_events_count(image->trace_builder->writer);
	give(image);
	told = atomic_load(&image->share.segment->rss_max);
	if (told > image->resident_max)
		image->resident_max = told;
	if (image->resident > image->resident_max)
		image->resident_max = image->resident;
	if (image->resident_max > 0)
		trace_builder_note(image->trace_builder, TRACE_NOTE_RSS_MAX, image->process,
				   TRACE_NONE, image->resident_max, "");
	elsewhere = atomic_load(&image->share.segment->calls_elsewhere);
	if (elsewhere > 0)
		trace_builder_note(image->trace_builder, TRACE_NOTE_CALLS_ELSEWHERE, image->process,
				   TRACE_NONE, elsewhere, "");
	missed = image->look_missed + atomic_load(&image->share.segment->look_missed);
	if (missed > 0)
		trace_builder_note(image->trace_builder, TRACE_NOTE_SNAPSHOTS_MISSED,
				   image->process, TRACE_NONE, missed, "");
}

void rss_snapshots_moved(struct rss_snapshots *looks, uint64_t left_out)
{
	for (struct image *image = looks->process_list->images; image; image = image->next) {
		image->look.began -= image->look_open ? left_out : 0;
		image->look.ended -= image->look_open ? left_out : 0;
	}
}
