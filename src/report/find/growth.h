// growth: the places whose live bytes grow, and whether they still do.
//
// Each process is judged by itself, over its own time in the window, cut into GROWTH_BUCKETS
// buckets; in each, for each place (one stack of one process), the lowest level after an event
// counts: a realloc is one step from the old size to the new (window_series.h has the exceptions).
// What the verdicts mean, and how slope and fit are found, says engine/trend.h.
//
// Start and end of a process are left out, because programs build up and tear down: a tenth of the
// time after its start, a twentieth before its end, wherever the window (--from, --to) does not
// say where to begin and end.
#pragma once

#include "base/sink.h"
#include "engine/trend.h"
#include "report/ask/query_context.h"
#include "report/table/sheet.h"

enum {
	GROWTH_BUCKETS = 60,
	GROWTH_PROCESSES_MAX = 32, // those that hold most; the others are not judged
	GROWTH_PLACES_MAX = 4096,  // of a process: those that grew most
	GROWTH_BYTES_MIN = 1024,
	GROWTH_LIFE_MIN_MS = 200, // of a process, unless the window says where to look
};

// A place that grows, with how it was judged.
struct growth_row {
	uint32_t place; // index into the context's places
	struct trend trend;
	double slope_per_s;      // bytes
	uint64_t from_ns, to_ns; // the time that was judged
	// LEVELS_OFF: when 95 % of the growth were there. RECENT: when it began. STEPS: the
	// highest of them.
	uint64_t since_ns;
	int64_t grown_count;     // blocks more at the end than at the beginning
	struct heap_amount live; // at the end
	// bytes: the lowest level of each bucket, from the first on
	uint64_t lows[GROWTH_BUCKETS];
};

struct growth_options {
	uint64_t grown_min; // 0: GROWTH_BYTES_MIN
	uint64_t rows_max;  // of each verdict; 0: all
	bool keep;          // the usual question's answer is kept, and taken from there: then sites
			    // that do not grow get no number as a place of the context
};

// The rows of one verdict.
struct growth_list {
	struct growth_row *rows; // owned; GROWS by slope, the others by what they grew
	size_t count, total;     // listed, found
	size_t capacity;         // private
	// bytes a second; bytes
	double slope_per_s; // of all that were found
	uint64_t grown;
};

struct growth {
	struct growth_list lists[TREND_VERDICTS]; // TREND_STEADY stays empty
	uint64_t grown_min;                       // as asked for, or the default: never 0
	struct heap_amount live;                  // at the end of what was judged, of all places
	size_t processes, skipped;                // judged; and not, being too many
	size_t brief;                             // not, having lived too briefly
	size_t places_skipped;
	uint64_t from_ns, to_ns; // what was judged, of one process
};

// False: the index cannot be read.
bool growth_find(struct growth *growth, struct query_context *asked,
		 const struct growth_options *options, struct err *err);
void growth_fini(struct growth *growth); // accepts { 0 }

// What growth_find finds of all of a trace with the least growth that is usual, without filters, is
// kept beside the trace's index (engine/shelf.h; growth_kept.c). False: this question is another,
// or nothing is to be kept. The shelf is to be ended either way.
struct shelf;
bool growth_kept_find(struct shelf *shelf, const struct growth *growth,
		      const struct query_context *asked);
bool growth_take_kept(const struct shelf *shelf, struct growth *growth,
		      struct query_context *asked);
void growth_keep(struct shelf *shelf, const struct growth *growth,
		 const struct query_context *asked);

// "grows", "recent", "levels_off", "steps": the verdict's key in JSON and CSV.
const char *growth_key(enum trend_verdict verdict);

// What one answer is made of. `width` is in columns, of text alone.
struct growth_page {
	struct query_context *asked; // borrowed
	const struct growth *growth; // borrowed
	bool all_frames, colour;
	unsigned width;
};

// For people; as JSON (docs/schema/growth.json); the rows of the lists from TREND_GROWS or a later
// one to before another, in the order of the answer. Sites that do not grow are in none.
void growth_text(const struct growth_page *page, struct sink *sink);
void growth_json(const struct growth_page *page, struct sink *sink);
void growth_rows(const struct growth_page *page, enum trend_verdict from, enum trend_verdict to,
		 struct sheet *sheet);
