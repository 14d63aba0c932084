// Phases: the stretches of a window between two marks, for the key `mark`.
//
// For example, of a window from 0 to 10 s with the marks "load" at 2 s, "run" at 5 s and again
// "run" at 7 s there are four: "(begin)" from 0 to 2 s, "load" to 5 s, "run#1" to 7 s and "run#2"
// to 10 s. Edges decide, times are for people: a mark that is set right after another one, with no
// event between them, begins a phase that is left out.
#include "report/table/table.h"

#include "base/mem.h"
#include "base/str.h"

#include <string.h>

// Takes the name.
static void add_phase(struct table *table, struct table_phase phase, size_t *capacity)
{
	// One without events may still be long; marks set at once leave nothing between them.
	if (phase.from >= phase.to && phase.from_ns >= phase.to_ns) {
		mem_free(phase.name);
		return;
	}
	*MEM_ADD(table->phases, table->phases_count, *capacity) = phase;
}

// "load", "load#2" where there are several.
static char *name_mark(const struct window_mark *marks, size_t count, size_t index)
{
	struct str text = { 0 };
	size_t same = 0, nth = 0;

	ASSERT(index < count);
	for (size_t i = 0; i < count; i++) {
		same += strcmp(marks[i].name, marks[index].name) == 0;
		nth = i == index ? same : nth;
	}
	str_add(&text, marks[index].name);
	if (same > 1)
		str_format(&text, "#%zu", nth);
	return str_take(&text);
}

// Set when the window begins: the phase that the window begins in bears its name.
static bool is_before(const struct window_mark *mark, const struct query_context *asked)
{
	return mark->edge < asked->from ||
	       (mark->edge == asked->from && mark->time_ns <= asked->from_ns);
}

// Marks of processes that the filters leave out begin no phase.
void table_find_phases(struct table *table)
{
	struct query_context *asked = table->asked;
	struct table_phase phase = { asked->from, 0, asked->from_ns, 0, mem_copy_text("(begin)") };
	size_t count, capacity = 0;
	const struct window_mark *marks = window_marks(asked->window, &count);

	for (size_t i = 0; i < count; i++) {
		if (marks[i].edge >= asked->to ||
		    !query_has_process(&asked->selection.query, marks[i].process))
			continue;
		if (is_before(&marks[i], asked)) {
			mem_free(phase.name);
			phase.name = name_mark(marks, count, i);
			continue;
		}
		phase.to = marks[i].edge;
		phase.to_ns = marks[i].time_ns;
		add_phase(table, phase, &capacity);
		phase.from = phase.to;
		phase.from_ns = phase.to_ns;
		phase.name = name_mark(marks, count, i);
	}
	phase.to = asked->to;
	phase.to_ns = asked->to_ns;
	add_phase(table, phase, &capacity);
}

// The phase of the nearest row above that has one; NULL: the whole window.
const struct table_phase *table_phase_of(const struct table *table, const struct table_row *row)
{
	for (; row->depth > 0; row = &table->rows[row->parent])
		if (table_key(table, row) == KEYS_MARK)
			return &table->phases[row->value];
	return NULL;
}
