// stack_text: stacks beside the figures of a table, for people.
//
// The first line is the program's own code: functions that allocate on behalf of somebody else,
// and those where every thread begins, are left out. Each stack is printed once and has a number;
// where it comes again, it is only referred to ("see #3").
#pragma once

#include "base/map.h"
#include "report/table/lines.h"

// The stacks of one page. All but the private members are set before the first, and may be changed
// between two.
struct stack_text {
	struct paper *paper;         // borrowed
	struct names *names;         // borrowed
	const struct reader *reader; // borrowed
	unsigned indent;             // columns of the figures in front
	bool all_frames;             // leave nothing out
	bool several;                // more than one process: say which
	bool program_only;           // say only the program, not the process
	bool once;                   // no stack comes twice: no numbers
	const char *remark;          // after the first line of the next stack; NULL: none
	unsigned callers_max;        // lines below the first; 0: a dozen
	struct map printed;          // private: process << 32 | stack -> number
	uint64_t numbers;            // given
	struct lines lines;          // private: how they are written
};

void stack_text_fini(struct stack_text *text);

// Finish a line whose figures are in `indent` columns, and write the lines below it.
void stack_text_write(struct stack_text *text, process_id process, stack_id stack);

// A hint of how to get better names, if many were missing.
void stack_text_hint(const struct stack_text *text);
