#include "collect/looks.h"

#include "base/mem.h"
#include "collect/census.h"
#include "collect/peer.h"
#include "collect/session.h"
#include "os/now.h"
#include "trace/snapshot.h"

enum {
	SPENT_SHARE = 100,        // of the recording's time, one part
	SPENT_FREE_NS = 10000000, // and this
	RETRIES = 2,
	GROWTH_BYTES_MIN = 1 << 20,
	// Of what it was, one part, by how much of what they may take is spent: less than a
	// quarter, less than half, more.
	GROWTH_SHARE_AMPLE = 40,
	GROWTH_SHARE = 10,
	GROWTH_SHARE_SPARING = 4,
	GROWTH_SHARE_EXACT = 100,
	GROWTH_UNASKED = 3,         // so many halves of what it was, where nobody asks
	CHILD_BYTES_MIN = 16 << 20, // a smaller child process is looked at only at its end
	WAIT_MAX_NS = 1000000000,   // more is a clock that jumped
};

void looks_init(struct looks *looks, struct roster *roster, const struct tick *tick, bool exact)
{
	*looks = (struct looks){ .roster = roster, .tick = tick, .exact = exact };
}

static void give(struct image *image)
{
	struct ledger *ledger = image->ledger;
	struct trace_snapshot *snapshot = &image->look;

	if (image->look_open) {
		if (snapshot->ended < snapshot->began)
			snapshot->ended = snapshot->began;
		writer_snapshot(ledger->writer, snapshot);
		snapshot_fini(snapshot);
	}
	image->look_open = false;
}

// When the next one may be taken, for the guests to know without asking.
static void spend(struct looks *looks, uint64_t cost_ns)
{
	uint64_t after_ns = 0;

	looks->spent_ns += cost_ns;
	if (!looks->exact && looks->spent_ns > SPENT_FREE_NS)
		after_ns = (looks->spent_ns - SPENT_FREE_NS) * SPENT_SHARE;
	atomic_store(&looks->tick->clock->look_after_ns, after_ns);
}

// Has the image grown so much that one is worth it without its asking? Only half of the time is for
// these: a peak will be asked for, and the end.
static bool grown(const struct looks *looks, const struct image *image)
{
	uint64_t floor = atomic_load(&image->share.segment->look_floor);
	uint64_t after_ns = atomic_load(&looks->tick->clock->look_after_ns);

	if (image->resident <= floor || image->resident == image->look_resident)
		return false;
	if (!looks->exact && image->resident < image->look.rss_bytes_max / 2 * GROWTH_UNASKED)
		return false;
	return tick_now(looks->tick) >= 2 * after_ns;
}

// Do the sums by mapping and by page differ by less than a five-hundredth?
static bool agrees(const struct trace_snapshot *snapshot)
{
	uint64_t mapped = 0, present = 0;

	for (uint32_t i = 0; i < snapshot->mappings_count; i++)
		mapped += snapshot->mappings[i].rss;
	for (uint32_t i = 0; i < snapshot->pages_count; i++)
		if (snapshot->pages[i].flags & TRACE_PAGES_PRESENT)
			present += snapshot->pages[i].end - snapshot->pages[i].start;
	return (mapped > present ? mapped - present : present - mapped) <= mapped / 500;
}

// By which part of what it is must resident memory grow before the next one? What is left of the
// time is for a peak that may be far above.
static uint64_t growth_share(const struct looks *looks)
{
	uint64_t allowed_ns = SPENT_FREE_NS + tick_now(looks->tick) / SPENT_SHARE;

	if (looks->exact)
		return GROWTH_SHARE_EXACT;
	if (looks->spent_ns < allowed_ns / 4)
		return GROWTH_SHARE_AMPLE;
	return looks->spent_ns < allowed_ns / 2 ? GROWTH_SHARE : GROWTH_SHARE_SPARING;
}

// Take a snapshot of the image. Its marks are told later.
static void take(struct looks *looks, struct image *image, uint32_t reason)
{
	uint64_t began_ns = tick_now(looks->tick);
	uint64_t events = writer_events_count(looks->roster->ledger->writer);
	uint64_t share, floor;

	give(image); // one that was never finished
	image->look = (struct trace_snapshot){
		.process = image->process,
		.reason = (uint8_t)reason,
		.time_ns = began_ns,
		.began = events,
		.ended = events,
	};
	image->look_open = census_take(image->pid, &looks->roster->ledger->files, &image->look);
	// Nobody waits for one of our own: the program runs on, and what it maps between the two
	// readings makes them differ.
	for (int i = 0; i < RETRIES && reason == TRACE_SNAPSHOT_GROWTH && image->look_open &&
			!agrees(&image->look);
	     i++) {
		snapshot_fini(&image->look);
		image->look_open =
			census_take(image->pid, &looks->roster->ledger->files, &image->look);
	}
	image->look.cost_ns = tick_now(looks->tick) - began_ns;
	spend(looks, image->look.cost_ns);
	if (image->look.rss_bytes_max > image->resident_max)
		image->resident_max = image->look.rss_bytes_max;
	share = growth_share(looks);
	floor = image->resident_max;
	floor += floor / share > GROWTH_BYTES_MIN ? floor / share : GROWTH_BYTES_MIN;
	atomic_store(&image->share.segment->look_floor, floor);
}

void looks_welcome(struct image *image, bool child)
{
	atomic_store(&image->share.segment->look_floor, child ? CHILD_BYTES_MIN : 0);
	atomic_store(&image->share.segment->look_child, child);
	image->look_child = child;
}

static void answer(struct image *image)
{
	_Atomic uint32_t *state = &image->share.segment->look_state;

	atomic_store(state, SEGMENT_LOOK_DONE);
	session_wake(state);
}

void looks_serve(struct looks *looks)
{
	for (struct image *image = looks->roster->images; image; image = image->next) {
		uint32_t asked = SEGMENT_LOOK_ASKED;
		uint64_t asked_ns, began_ns;
		uint32_t reason;

		if (image->share.segment == NULL ||
		    !atomic_compare_exchange_strong(&image->share.segment->look_state, &asked,
						    SEGMENT_LOOK_TAKING))
			continue;
		reason = atomic_load(&image->share.segment->look_reason);
		if (reason != TRACE_SNAPSHOT_EXIT)
			reason = TRACE_SNAPSHOT_RELEASE;
		asked_ns = atomic_load(&image->share.segment->look_asked_ns);
		began_ns = now_steady_ns();
		if (image->begun && (reason == TRACE_SNAPSHOT_EXIT || !image->look_child ||
				     peer_resident(image->pid) > CHILD_BYTES_MIN)) {
			take(looks, image, reason);
			image->look_passes = 0;
			image->look_asked = true;
		}
		answer(image);
		// There may be thousands of children, and each has waited for its turn, too.
		if (image->look_child && began_ns > asked_ns && began_ns - asked_ns < WAIT_MAX_NS)
			spend(looks, began_ns - asked_ns);
	}
}

void looks_pass(struct looks *looks)
{
	for (struct image *image = looks->roster->images; image; image = image->next) {
		// What was delivered by now was published before the snapshot was over, or may have
		// been: the second pass behind it has looked at all that there was.
		if (image->look_open && !image->look_asked && ++image->look_passes == 2) {
			image->look.ended = writer_events_count(looks->roster->ledger->writer);
			give(image);
		}
		if (image->look_open || image->final || image->share.segment == NULL)
			continue;
		if (!grown(looks, image))
			continue;
		image->look_resident = image->resident;
		take(looks, image, TRACE_SNAPSHOT_GROWTH);
		image->look_passes = 0;
		image->look_asked = false;
	}
}

void looks_begin(struct image *image)
{
	if (image->look_open && image->look_asked)
		image->look.began = writer_events_count(image->ledger->writer);
}

void looks_end(struct image *image)
{
	if (!image->look_open || !image->look_asked)
		return;
	image->look.ended = writer_events_count(image->ledger->writer);
	give(image);
}

void looks_finish(struct image *image)
{
	uint64_t told;

	if (image->look_open)
		image->look.ended = writer_events_count(image->ledger->writer);
	give(image);
	told = atomic_load(&image->share.segment->rss_max);
	if (told > image->resident_max)
		image->resident_max = told;
	if (image->resident > image->resident_max)
		image->resident_max = image->resident;
	if (image->resident_max > 0)
		ledger_note(image->ledger, TRACE_NOTE_RSS_MAX, image->process, TRACE_NONE,
			    image->resident_max, "");
}
