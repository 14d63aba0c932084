// inquiry: a trace that was opened to be asked about a window, with the words of the command line
// in force.
//
//     inquiry_open
//       inquiry_query        the window and the filters, as a query that groups as it is told
//       inquiry_ask …        or any function of engine/window.h with that query
//       inquiry_leave        no more questions; what was found can still be said
//     inquiry_close
//
// A query made here groups by one of a few ways. A *place* is one stack of one process, and what
// is asked of it is numbered in the order in which it is met; inquiry.places holds who is who.
#ifndef REPORT_INQUIRY_H
#define REPORT_INQUIRY_H

#include "base/index_set.h"
#include "engine/window_series.h"
#include "report/opened.h"
#include "report/selection.h"

struct inquiry_options {
	const char *path;                    // of the trace
	const struct selection_words *words; // borrowed until inquiry_close
	struct opened *opened;               // borrowed; NULL: `path` is opened, as said below
	struct symbols_options symbols;
	struct window_options window;
};

struct inquiry_place {
	process_id process;
	stack_id stack; // 0: none
};

struct inquiry {
	struct opened own; // private: unless it was opened already
	struct reader *reader;
	struct symbols *symbols;
	struct names *names;
	struct selection selection;
	struct window *window;
	uint64_t from, to; // edges
	uint64_t from_ns, to_ns;
	uint64_t duration_ns; // of the whole trace
	unsigned layer;       // one enum window_layer
	bool from_given, to_given;
	struct inquiry_place *places; // owned
	size_t places_count, places_capacity;
	uint32_t *first_places;   // private: by stack, place + 1 in the process first asked for
	process_id first_process; // private
	struct index_set place_numbers; // private: of the other processes
	char **warnings;                // what a reader must know before believing the figures
	size_t warnings_count, warnings_capacity;
};

// Opens the trace, its index and its names, and finds the window. False on a trace that cannot be
// read, on words that name nothing in it, and on such as make no sense here (--impact, two
// layers). `inquiry` needs no inquiry_close then.
bool inquiry_open(struct inquiry *inquiry, const struct inquiry_options *options, struct err *err);
void inquiry_close(struct inquiry *inquiry); // accepts { 0 }

// Give back what only questions need: the index, unless it is somebody else's, and the places.
void inquiry_leave(struct inquiry *inquiry);

// How the allocations of a query are put into groups.
enum inquiry_grouping { INQUIRY_ALL, INQUIRY_BY_PLACE };

// Everything the words select, in the window from edge to edge. Blocks end with their process, as
// in the level.
struct window_query inquiry_query(struct inquiry *inquiry, enum inquiry_grouping grouping,
				  uint64_t from, uint64_t to);

// Whether the words select the cell: for those who group in a way of their own.
bool inquiry_selects(const struct inquiry *inquiry, const struct window_cell *cell);

// The number of a place.
uint32_t inquiry_place(struct inquiry *inquiry, process_id process, stack_id stack);

// The highest level in the window, and the edge behind the step that first reached it.
bool inquiry_peak(struct inquiry *inquiry, uint64_t *bytes, uint64_t *edge, struct err *err);

// The level at an edge.
bool inquiry_level(struct inquiry *inquiry, uint64_t edge, struct heap_amount *level,
		   struct err *err);

#endif
