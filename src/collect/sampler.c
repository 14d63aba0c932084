#include "collect/sampler.h"

#include "collect/peer.h"
#include "os/now.h"

#include <string.h>

enum {
	RESIDENT_NS = 100000000,
	NAMES_NS = 1000000000,
	NAMES_MAX = 256,           // threads asked for at a time
	PROPORTIONAL_SHARE = 1000, // of the time, one part, for proportional figures
};

// A figure that is not what it was is told.
static void tell(struct image *image, enum trace_note_kind kind, uint64_t *last, uint64_t value)
{
	if (value == *last)
		return;
	*last = value;
	ledger_note(image->ledger, kind, image->process, TRACE_NONE, value, "");
}

// The kernel looks at every page for it, and the program cannot map anything meanwhile: so only a
// small share of the time goes into that.
static void sample_proportional(struct sampler *sampler, struct image *image, uint64_t now_ns)
{
	uint64_t began_ns, cost_ns, proportional;

	// What is more than all that is resident is out of date.
	if ((now_ns < image->proportional_after_ns && image->proportional <= image->resident) ||
	    now_ns < sampler->proportional_after_ns)
		return;
	began_ns = now_steady_ns();
	proportional = peer_proportional(image->pid);
	cost_ns = now_steady_ns() - began_ns;
	sampler->proportional_spent_ns += cost_ns;
	image->proportional_after_ns = now_ns + cost_ns * PROPORTIONAL_SHARE;
	sampler->proportional_after_ns = sampler->proportional_spent_ns * PROPORTIONAL_SHARE;
	if (proportional > 0)
		tell(image, TRACE_NOTE_PSS, &image->proportional, proportional);
}

static void sample_memory(struct sampler *sampler, struct roster *roster, uint64_t now_ns)
{
	for (struct image *image = roster->images; image != NULL; image = image->next) {
		struct peer_pages pages;
		uint64_t resident;

		if (image->final)
			continue;
		resident = peer_resident(image->pid);
		if (resident == 0)
			continue;
		ledger_time(roster->ledger, now_ns);
		tell(image, TRACE_NOTE_RSS, &image->resident, resident);
		sample_proportional(sampler, image, now_ns);
		if (!peer_pages(image->pid, &pages))
			continue;
		tell(image, TRACE_NOTE_SWAP, &image->pages.swapped, pages.swapped);
		tell(image, TRACE_NOTE_MINOR, &image->pages.minor_faults, pages.minor_faults);
		tell(image, TRACE_NOTE_MAJOR, &image->pages.major_faults, pages.major_faults);
	}
}

static void refresh_name(struct ledger *ledger, struct image *image, struct stream *stream)
{
	char name[16];

	stream->stirred = false;
	if (!peer_thread_name(image->pid, stream->tid, name) || strcmp(name, stream->name) == 0)
		return;
	memcpy(stream->name, name, sizeof name);
	ledger_note(ledger, TRACE_NOTE_THREAD_NAME, image->process, stream->thread, 0, name);
}

static void refresh_names(struct roster *roster)
{
	size_t asked = 0;

	for (struct image *image = roster->images; image != NULL; image = image->next)
		for (uint32_t i = 1; i < image->streams_count && !image->final; i++) {
			struct stream *stream = image->streams[i];

			if (stream == NULL || !stream->stirred || stream->named ||
			    stream->thread == TRACE_NONE)
				continue;
			if (++asked > NAMES_MAX)
				return;
			refresh_name(roster->ledger, image, stream);
		}
}

void sampler_run(struct sampler *sampler, struct roster *roster, uint64_t now_ns)
{
	if (now_ns >= sampler->resident_ns) {
		sampler->resident_ns = now_ns + RESIDENT_NS;
		sample_memory(sampler, roster, now_ns);
	}
	if (now_ns >= sampler->names_ns) {
		sampler->names_ns = now_ns + NAMES_NS;
		refresh_names(roster);
		roster_weigh(roster);
	}
}
