// Proportional memory (a page that four processes share counts a quarter) is expensive to ask for:
// the kernel walks all pages of the process. So it is asked for a thousandth of the time, and
// carried in between: if 30 of 40 MiB of anonymous memory were the process's share when it was
// counted, then of 44 MiB now, 33 are. Anonymous memory, files and shared memory are carried by
// themselves, since a file's pages are shared by others than a heap's. When a process has come or
// gone, what was counted is out of date, and up to a two-hundredth of the time is spent until all
// are counted anew.
#include "collect/sampler.h"

#include "collect/peer.h"
#include "os/now.h"

#include <string.h>

enum {
	RESIDENT_NS = 100000000,
	RESIDENT_SHARE = 32, // of the time, one part at most, where there are many processes
	NAMES_NS = 1000000000,
	NAMES_MAX = 256,                // threads asked for at a time
	PROPORTIONAL_SHARE = 1000,      // of the time, one part, for proportional figures
	PROPORTIONAL_SHARE_STALE = 200, // where they are out of date
};

// A figure that is not what it was is told.
static void tell(struct image *image, enum trace_note_kind kind, uint64_t *last, uint64_t value)
{
	if (value == *last)
		return;
	*last = value;
	trace_builder_note(image->trace_builder, kind, image->process, TRACE_NONE, value, "");
}

// As much of it as was the process's share when that was counted. What there was nothing of is all
// its own.
static uint64_t carry(uint64_t resident, uint64_t share, uint64_t of)
{
	return of > 0 ? (uint64_t)((double)resident * ((double)share / (double)of)) : resident;
}

static void carry_proportional(struct image *image)
{
	const struct peer_kinds *then = &image->counted, *of = &image->counted_of;
	const struct peer_kinds *now = &image->pages.resident;
	uint64_t proportional;

	if (then->anonymous + then->file + then->shared == 0)
		return;
	proportional = carry(now->anonymous, then->anonymous, of->anonymous) +
		       carry(now->file, then->file, of->file) +
		       carry(now->shared, then->shared, of->shared);
	if (proportional == image->proportional)
		return;
	image->proportional = proportional;
	trace_builder_note(image->trace_builder, TRACE_NOTE_PSS, image->process, TRACE_NONE,
			   proportional, "carried");
}

// Pages of what several processes share cost the kernel time in proportion: it is asked for only as
// often as keeps the whole of it within a share of the time that has passed. In between the last
// answer is carried on.
static void sample_proportional(struct sampler *sampler, struct image *image, uint64_t now_ns)
{
	uint64_t share = image->proportional_stale ? PROPORTIONAL_SHARE_STALE : PROPORTIONAL_SHARE;
	uint64_t began_ns, cost_ns, proportional;

	if (now_ns < sampler->proportional_spent_ns * share ||
	    (!image->proportional_stale && now_ns < image->proportional_after_ns)) {
		carry_proportional(image);
		return;
	}
	began_ns = now_steady_ns();
	proportional = peer_proportional(image->pid, &image->counted);
	cost_ns = now_steady_ns() - began_ns;
	image->counted_of = image->pages.resident;
	sampler->proportional_spent_ns += cost_ns;
	image->proportional_after_ns = now_ns + cost_ns * PROPORTIONAL_SHARE;
	image->proportional_stale = false;
	if (proportional == 0)
		return;
	image->proportional = proportional;
	trace_builder_note(image->trace_builder, TRACE_NOTE_PSS, image->process, TRACE_NONE,
			   proportional, "");
}

// A process that has come or gone may share pages with the others.
static bool images_differ(struct sampler *sampler, const struct process_list *process_list)
{
	size_t last = sampler->images_count;

	sampler->images_count = 0;
	for (const struct image *image = process_list->images; image != NULL; image = image->next)
		sampler->images_count += !image->final;
	return sampler->images_count != last;
}

// A process that has become a program which is not recorded has nothing of the image's any more.
// Whether the exec fails is known soon, and the last figures hold until then.
static void tell_left(struct image *image, uint64_t now_ns)
{
	if (image->final || !image->exec.told)
		return;
	trace_builder_time(image->trace_builder, now_ns);
	tell(image, TRACE_NOTE_RSS, &image->resident, 0);
	tell(image, TRACE_NOTE_SWAP, &image->pages.swapped, 0);
	tell(image, TRACE_NOTE_PSS, &image->proportional, 0);
}

// If a process has come or gone, what the others share with it is another part of theirs: their
// last answers are stale.
static void sample_memory(struct sampler *sampler, struct process_list *process_list,
			  uint64_t now_ns)
{
	bool stale = images_differ(sampler, process_list);

	for (struct image *image = process_list->images; image != NULL; image = image->next) {
		struct peer_pages pages;

		if (!image_is_there(image)) {
			tell_left(image, now_ns);
			continue;
		}
		trace_builder_time(process_list->trace_builder, now_ns);
		image_look_title(image, now_ns);
		if (!peer_pages(image->pid, &pages))
			continue;
		tell(image, TRACE_NOTE_RSS, &image->resident, pages.rss);
		tell(image, TRACE_NOTE_SWAP, &image->pages.swapped, pages.swapped);
		tell(image, TRACE_NOTE_MINOR, &image->pages.minor_faults, pages.minor_faults);
		tell(image, TRACE_NOTE_MAJOR, &image->pages.major_faults, pages.major_faults);
		image->pages.resident = pages.resident;
		image->proportional_stale |= stale;
		sample_proportional(sampler, image, now_ns);
	}
}

static void refresh_name(struct trace_builder *trace_builder, struct image *image,
			 struct stream *stream)
{
	char name[16];

	stream->stirred = false;
	if (!peer_thread_name(image->pid, stream->tid, name) || strcmp(name, stream->name) == 0)
		return;
	memcpy(stream->name, name, sizeof name);
	trace_builder_note(trace_builder, TRACE_NOTE_THREAD_NAME, image->process, stream->thread, 0,
			   name);
}

// Threads name themselves after they began. Only those that have had events since the last look are
// asked.
static void refresh_names(struct process_list *process_list)
{
	size_t asked = 0;

	for (struct image *image = process_list->images; image != NULL; image = image->next)
		for (uint32_t i = 1; i < image->streams_count && image_is_there(image); i++) {
			struct stream *stream = image->streams[i];

			if (stream == NULL || !stream->stirred || stream->named ||
			    stream->thread == TRACE_NONE)
				continue;
			if (++asked > NAMES_MAX)
				return;
			refresh_name(process_list->trace_builder, image, stream);
		}
}

// Both parts limit themselves: with 1,000 processes a round of samples may take 50 ms, and then the
// next one comes 1.6 s later, so that at most one part in 32 of the time goes into it.
void sampler_run(struct sampler *sampler, struct process_list *process_list, uint64_t now_ns)
{
	uint64_t began_ns, cost_ns;

	if (now_ns >= sampler->resident_ns) {
		began_ns = now_steady_ns();
		sample_memory(sampler, process_list, now_ns);
		cost_ns = (now_steady_ns() - began_ns) * RESIDENT_SHARE;
		sampler->resident_ns = now_ns + (cost_ns > RESIDENT_NS ? cost_ns : RESIDENT_NS);
	}
	if (now_ns >= sampler->names_ns) {
		sampler->names_ns = now_ns + NAMES_NS;
		refresh_names(process_list);
		process_list_weigh(process_list);
	}
}
