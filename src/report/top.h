// top: what lives now in a trace that may still be written, and how that changes.
//
//     top_open
//       top_read           what has been written since; again and again
//       top_mark           growth is counted from here
//       top_list           the sites, those first that the order asks for
//       top_write_…        all of it
//     top_close
//
// Rates are of the time between the last two reads; of the first, of the last second that is in the
// trace. Growth is what lives less what lived at the mark; before there is one, at the beginning
// of that time.
#pragma once

#include "base/sink.h"
#include "report/ask/opened.h"
#include "report/table/lines.h"

enum top_order { TOP_BY_LIVE, TOP_BY_GROWTH, TOP_BY_RATE, TOP_ORDERS };

// What one site, one process or all of them have at one moment.
struct top_figures {
	struct heap_amount live, allocated;
	uint64_t frees; // not of sites
};

struct top_row {
	size_t site; // of the heap's
	process_id process;
	stack_id stack;
	struct heap_amount live;
	int64_t grown; // bytes
	double allocations_s;
};

// All of a running view. Times are ns since the recording began; sites are numbered as the heap
// does.
struct top {
	struct opened opened;
	struct heap *heap;
	enum reader_item pending; // READER_END: none. Else what was read and is of the next part:
	struct trace_event event;
	struct trace_note note;
	struct trace_note last_end; // at_exit: of the last process; not given to the heap
	bool at_exit;               // all processes have ended
	uint64_t from_ns, at_ns;    // of the rates: from here to here
	uint64_t mark_ns;
	bool marked;
	struct top_figures all, all_before, all_marked;
	struct top_figures *before, *since; // of sites, at from_ns and at the mark
	size_t before_count, since_count;
	uint64_t peak_bytes, peak_ns;
	struct top_row *rows;
	size_t rows_count, rows_capacity;
	enum top_order order;
	const char *filter; // borrowed: a part of a function's name; NULL or "": all
	size_t selected;    // a row, whose stack is shown
	bool open;          // it is
};

// `path` is borrowed.
bool top_open(struct top *top, const char *path, const struct symbols_options *symbols,
	      struct err *err);
void top_close(struct top *top); // accepts { 0 }

void top_read(struct top *top); // what is in the trace by now
void top_mark(struct top *top); // growth is counted from here
void top_list(struct top *top); // the rows, by order and filter

// At most so many rows (0: all). After top_list.
void top_write_text(struct top *top, struct paper *paper, size_t rows_max);
void top_write_json(struct top *top, struct sink *sink, size_t rows_max);
