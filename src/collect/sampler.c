#include "collect/sampler.h"

#include "collect/peer.h"

#include <string.h>

enum {
	RESIDENT_NS = 100000000,
	NAMES_NS = 1000000000,
	NAMES_MAX = 256, // threads asked for at a time
};

static void sample_resident(struct roster *roster, uint64_t now_ns)
{
	for (struct image *image = roster->images; image != NULL; image = image->next) {
		uint64_t resident;

		if (image->final)
			continue;
		resident = peer_resident(image->pid);
		if (resident == 0 || resident == image->resident)
			continue;
		image->resident = resident;
		ledger_time(roster->ledger, now_ns);
		ledger_note(roster->ledger, TRACE_NOTE_RSS, image->process, TRACE_NONE, resident,
			    "");
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
		sample_resident(roster, now_ns);
	}
	if (now_ns >= sampler->names_ns) {
		sampler->names_ns = now_ns + NAMES_NS;
		refresh_names(roster);
		roster_weigh(roster);
	}
}
