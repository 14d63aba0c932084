// spikes: where the live level of a window rises and falls back, who made it, and which buffers
// were allocated again and again, one at a time.
//
// The level is exact: that after each event of the trace. A realloc is one event; of one that ends
// less than rise_min bytes, the level between its end and its beginning counts, too. What a spike
// is, and how high, says engine/prominence.h, with `rise_min` for the least height. A spike begins
// with the step that lifts the level above the spike's base for the last time before its top, and
// ends with the first one after it that brings the level back to the base or below; one that the
// window cuts off ends with it. Of a spike whose level trails off it says more how long the level
// was above half its height. What lives when the last processes end does not fall back: the window
// ends before it does. Who made it: what each place (one stack of one process) held at the top (of
// a group: at its body), less what it held where it began. These sum up to top - level there.
//
// Equal buffers of one place, of at least rise_min bytes each, are reported as a *series* if at
// least two were allocated in the window and never two of them lived at a time: one that is
// allocated once and kept would do.
//
// For example, a service idles at 10 MiB and each request takes 4 MiB more for 20 ms: with a peak
// of 14 MiB spikes of 143 KiB and more count, each request is a row with base 10 MiB and top 14
// MiB, and its first maker is the call that took the 4 MiB. If each request allocates one buffer of
// 4 MiB, that call is a series too.
#pragma once

#include "engine/prominence.h"
#include "report/ask/query_context.h"

enum {
	// Places that are listed for each spike; what more there are is summed up as the rest.
	SPIKES_MAKERS = 10,
	// Of the peak: the part that a rise must have to count, where none was asked for.
	SPIKES_RISE_PART = 100,
	// Rows that take most of the window.
	SPIKES_HILLS_MAX = 3, // unless all rows are asked for
};

// What one place added to a spike.
struct spikes_maker {
	uint32_t place; // index into the context's places
	int64_t count;  // blocks more at the top than where the spike began
	int64_t bytes;
};

// One spike. Edges count steps of the trace: edge e is after e steps; times are ns since the
// recording began. `hill` has the levels in bytes.
struct spikes_row {
	struct prominence_hill hill;
	uint64_t begin_edge, end_edge;
	uint64_t begin_ns, end_ns, top_ns;
	uint64_t half_begin_ns, half_end_ns; // when it rose above half its height, and fell back
	bool cut;                            // it ends with the window
	bool whole;                          // it takes more than half of the window
	uint64_t risen;                      // top - the level where it began
	struct spikes_maker spike_sites[SPIKES_MAKERS]; // heaviest first
	size_t spike_sites_count;
	// Together with those listed they are all places that added; places that gave back are in
	// neither, so the sums may be more than `risen`.
	size_t spike_sites_rest; // of more places, of positive bytes
	int64_t rest_bytes, rest_count;
};

// Equal buffers, one at a time.
struct spikes_series {
	uint32_t place;
	uint64_t size;
	uint64_t count;             // allocated in the window
	uint64_t first_ns, last_ns; // when the first and the last were allocated
	// With one allocation there is no period: UINT64_MAX and 0.
	uint64_t period_least_ns, period_most_ns; // between two allocations
	uint64_t ended;                           // that did not outlive the window
	uint64_t lived_ns;                        // all of those together
	// UINT64_MAX and 0 where none has ended.
	uint64_t lived_least_ns, lived_most_ns;
};

struct spikes_options {
	uint64_t rise_min; // 0: a hundredth of the peak, at least 1
	uint64_t rows_max; // of each table, but few hills; 0: all
	bool all_series;   // whatever rows_max is
};

// What was found; all levels in bytes. `level_from` and `level_to` are those at the window's edges.
struct spikes {
	uint64_t rise_min; // as used
	uint64_t level_from, level_to, peak, peak_ns;
	struct spikes_row *rows; // owned; the highest first, those that are `whole` last
	size_t rows_count;
	uint64_t rows_total;          // found, shown or not
	struct spikes_series *series; // owned; those first that would save most
	size_t series_count;
	uint64_t series_total;
	bool sizes_dropped; // so many different sizes that not all series were followed
};

// Goes through the window several times; of all that there is, through sums of 256 steps where
// those tell enough. False: the index cannot be read, or more spikes than fit
// were asked for.
bool spikes_find(struct spikes *spikes, struct query_context *asked,
		 const struct spikes_options *options, struct err *err);
void spikes_fini(struct spikes *spikes); // accepts { 0 }

// "12.900 ms"; of what rose and fell within a tick of the clock, which tells no time between
// events, "less than a tick of the clock (100.000 us)".
const char *spikes_lasted(const struct spikes_row *row, const struct reader *reader,
			  char out[static 64]);
