// stack_levels: what each stack had allocated over a window, of the blocks that the filters select:
// in all, at the peak of all stacks together, at its own peak, at the end. What the formats of
// Valgrind's tools are written from.
//
//     stack_levels_read     reads the trace once
//       stack_levels.list   in the order in which the stacks first allocated
//     stack_levels_fini
//
// What lives when the window begins counts as allocated then (`before`). What a process leaves when
// it ends is of what was left at the end. It is no longer in the level, unless no process is left:
// what lived at exit was not freed.
//
// What a stack had at the peak is not copied at each new peak: peaks are numbered, and the level of
// a stack is kept when it changes for the first time after one.
//
// It costs 160 bytes for each stack. One thread.
#pragma once

#include "base/map.h"
#include "engine/replay/heap.h"
#include "export/export.h"
#include "export/locations.h"

struct stack_level {
	process_id process;
	stack_id stack; // 0: none
	struct heap_amount allocated, most, at_peak, left;
	uint64_t lifetimes_ns; // sum over `allocated`: until the end of the window, at most
	// private:
	struct heap_amount now;
	uint64_t began_ns; // sum over `now`, modulo 2^64
	uint64_t peaks;    // there had been so many when it changed last
};

struct stack_levels {
	const struct export_source *source;
	struct stack_level *list;
	size_t count, capacity;
	struct map numbers; // private: by process and stack
	struct heap_amount now, peak, before;
	uint64_t from_ns, to_ns, peak_ns;
	uint64_t peaks, last_ns; // private: when the last of the processes ended
	uint32_t processes;      // that the filters leave
	process_id process;      // the first of them; TRACE_NONE
	struct heap_amount *row; // levels at the end of each of `row_count` equal parts
	uint32_t row_count, row_done;
	void (*note)(void *context, const struct trace_note *note); // in the window; NULL: none
	void *context;
};

// `= { .source = … }`; `row` (zeroed, the caller's) with `row_count`, and `note`, where wanted.
bool stack_levels_read(struct stack_levels *levels, struct err *err);
void stack_levels_fini(struct stack_levels *levels);

// The end of a part of the window.
uint64_t stack_levels_row_ns(const struct stack_levels *levels, uint32_t number);

// Say what the figures are not. `format`: what is of one process; NULL: it is of several.
void stack_levels_say(const struct stack_levels *levels, const char *format);

// "0x401000: main (a.c:3)" or "0x401000: ??? (in /lib/x.so)", as Valgrind names a line of a
// location. Appends.
void stack_levels_frame(const struct locations *locations, const struct location *location,
			uint32_t line, struct str *text);
