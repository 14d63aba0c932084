// moment: a point in a trace, as a person writes it.
//
//     12.5s  350ms  2min  90us  7ns   since the beginning; without a unit: seconds
//     50%                             of the trace's length
//     -5s                             before the end
//     begin  end
//     peak                            when the most bytes were live of what the filters select
//     mark:NAME                       where a program set that mark; the first of several
//     mark:NAME#3  mark:NAME#-1       the third of that name; the last
//     mark:NAME+2s  mark:NAME#3-10ms  so long after it, or before
//     peak+1ms  end-1ms  begin+2s     so long after one of these, or before
//
// A moment is found in a trace as an *edge*: a place between two events. `begin`, `end`, `peak`
// and marks have an edge of their own, exact however coarse the clock is: what a thread did before
// it set a mark is before the mark's edge. All others fall after the last event whose time is not
// later than theirs. A mark's name may hold any character; it is looked for as it is written, and
// then without what looks like a distance or a number after it.
#pragma once

#include "base/err.h"
#include "trace/reader.h"

struct moment_edge {
	uint64_t time_ns;
	uint64_t number; // events of a smaller number are before the edge; only if `exact`
	bool exact;      // else: after the last event with a time <= time_ns

	// Set if the moment is a mark (and not a distance from one).
	const struct trace_mark *mark; // borrowed from the reader
	size_t nth, same_count;        // the nth, from 1, of so many marks of that name
};

// Whether the event of this number and time is after the edge.
static inline bool moment_passed(const struct moment_edge *edge, uint64_t number, uint64_t time_ns)
{
	return edge->exact ? number >= edge->number : time_ns > edge->time_ns;
}

// Finds the peak when a moment asks for it: fill in `edge`, or give false with *err.
typedef bool moment_peak(void *context, struct moment_edge *edge, struct err *err);

// Whether `text` is written as a moment at all: to tell mistakes before a trace is opened.
// ERR_USAGE if not.
bool moment_check(const char *text, struct err *err);

// Find `text` in the trace. Needs reader_scan. `peak` is asked where `text` is that. ERR_USAGE: not
// a moment, outside the trace, no such mark (with the nearest name).
bool moment_find(const char *text, const struct reader *reader, moment_peak *peak, void *context,
		 struct moment_edge *edge, struct err *err);

// Both ends of a window; NULL: from the beginning, to the end. ERR_USAGE also when the first is
// after the second.
bool moment_find_window(const char *from, const char *to, const struct reader *reader,
			moment_peak *peak, void *context, struct moment_edge edges[static 2],
			struct err *err);

// Where a process was attached to, what it had before (TRACE_BEFORE) is not a part of any window:
// an edge in front of it is moved to where the recording begins. False: that cannot be found.
bool moment_skip_before(const struct reader *reader, struct moment_edge *edge, struct err *err);

// The trace's length: the time of its last item, or what its end says.
uint64_t moment_duration(const struct reader *reader);

// A trace that was trimmed to a window begins at a mark of this name: what is before the mark only
// says what was there already.
#define MOMENT_TRIMMED TRACE_TRIMMED
bool moment_is_trimmed(const struct reader *reader);
uint64_t moment_begin(const struct reader *reader); // the time of `begin`; 0: not trimmed

// "1.5ms", "-3s", "12" (seconds) -> nanoseconds; at most 9 decimals. False when it is no time.
bool moment_parse_duration(const char *text, int64_t *duration_ns);
