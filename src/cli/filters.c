// filters: one row for each kind of selection, with ids that count from FILTERS_FIRST in the order
// of enum selection_kind. So taking one is a subtraction, and what the word means is found out by
// selection_words_check.
#include "cli/filters.h"

#include "base/mem.h"

#define FILTER(kind) (FILTERS_FIRST + SELECTION_##kind)

const char filters_title[] = "Filters (given twice: either; two kinds: both)";

const struct option_row filters_rows[] = {
	{ FILTER(FROM), 0, "from", "TIME",
	  "12.5s, 350ms, 50%, -5s (before the end), peak, peak+1ms, mark:NAME, mark:NAME#2, "
	  "mark:NAME+2s" },
	{ FILTER(TO), 0, "to", "TIME", "the same" },
	{ FILTER(PROCESS), 0, "process", "WHICH",
	  "a pid, #N in the list, or a program's name or path, as run or as called" },
	{ FILTER(THREAD), 0, "thread", "WHICH", "allocations by this thread: a tid, or a name" },
	{ FILTER(LAYER), 0, "layer", "LAYER", "heap or vm (committed memory)" },
	{ FILTER(HEAP), 0, "heap", "HEAP", "malloc, a pool's name, or a heap's handle" },
	{ FILTER(SIZE), 0, "size", "A..B", "bytes asked for: 32..64, ..1K, >1M, 4096" },
	{ FILTER(LIFETIME), 0, "lifetime", "A..B",
	  "from its beginning to its end: <1ms, 10us..1s" },
	{ FILTER(MODULE), 0, "module", "REGEX", "allocations through a file that matches" },
	{ FILTER(FRAME), 0, "frame", "REGEX", "allocations through a function that matches" },
	{ FILTER(NOT_FRAME), 0, "not-frame", "REGEX", "allocations through none that matches" },
	{ FILTER(ROW), 0, "row", "ROW",
	  "what is in one row of tables: function:NAME, module:PATH, stack:ID (in JSON), "
	  "owner:WORD" },
	{ FILTER(NOT_ROW), 0, "not-row", "ROW",
	  "what does not; also size:A..B, process:, thread: and heap:WHICH" },
	{ FILTER(IMPACT), 0, "impact", "CLASS",
	  "impacting, transient or persistent (or AIFO, AOFI, AIFI, AOFO)" },
	{ 0 },
};

_Static_assert(sizeof filters_rows / sizeof *filters_rows == SELECTION_KINDS + 1,
	       "an option for each kind of selection, and the end");

bool filters_take(const struct args *args, struct selection_words *words, int id)
{
	if (id < FILTERS_FIRST || id >= FILTERS_FIRST + SELECTION_KINDS)
		return false;
	ASSERT(args->value); // each of them has an argument
	selection_words_add(words, (enum selection_kind)(id - FILTERS_FIRST), args->value);
	return true;
}

bool filters_check(struct args *args, const struct selection_words *words)
{
	struct err err = { 0 };

	ASSERT(args->command);
	return selection_words_check(words, &err) || args_mistake(args, "%s", err.text);
}
