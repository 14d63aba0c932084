// For example, where a stack of process 42 is shown for the second time:
//
//     parse  parse.c:120  [app 42]  #1
//     read_file  read.c:30
//     parse  parse.c:120  [app 42]  see #1
#include "report/table/stack_text.h"

#include "base/mem.h"
#include "base/str.h"
#include "trace/defs.h"

#include <inttypes.h>

enum { ENDING_COLUMNS_MAX = 200 };

void stack_text_fini(struct stack_text *text)
{
	map_fini(&text->printed);
	*text = (struct stack_text){ 0 };
}

// Behind the first line: whose it is, and what is said of it.
static void describe_owner(const struct stack_text *text, process_id process, struct str *ending)
{
	const struct trace_process *owner = reader_process(text->reader, process);

	if (text->program_only && owner)
		str_format(ending, "  [%s]", defs_program(owner));
	else if (text->several && owner) {
		str_add(ending, "  [");
		names_add_process(owner, ending);
		str_format(ending, " %" PRIu32 "]", owner->pid);
	}
	if (text->remark)
		str_format(ending, "  %s", text->remark);
}

// A stack is known by its process, too: the same number in two processes is shown twice.
void stack_text_write(struct stack_text *text, process_id process, stack_id stack)
{
	struct names_stack named = names_stack(text->names, stack);
	size_t first = text->all_frames ? 0 : named.user;
	struct str ending = { 0 };
	uint64_t *number;
	bool added;

	ASSERT(text->paper && text->names && text->reader);
	text->lines.paper = text->paper;
	text->lines.indent = text->indent;
	text->lines.all_frames = text->all_frames;
	text->lines.callers_max = text->callers_max;
	describe_owner(text, process, &ending);
	if (named.count == 0) {
		paper_text(text->paper, PAPER_DIM, "(no stack)");
		paper_foreign(text->paper, PAPER_DIM, str_get(&ending), ENDING_COLUMNS_MAX);
		sink_text(text->paper->sink, "\n");
		str_fini(&ending);
		return;
	}
	number = map_put(&text->printed, (uint64_t)process << 32 | stack, &added);
	if (added)
		*number = ++text->numbers;
	if (!text->once)
		str_format(&ending, added ? "  #%" PRIu64 : "  see #%" PRIu64, *number);
	lines_write(&text->lines, named.lines[first].symbol, PAPER_BOLD, str_get(&ending));
	if (added)
		lines_write_callers(&text->lines, &named, first);
	str_fini(&ending);
}

void stack_text_hint(const struct stack_text *text)
{
	struct lines lines = text->lines;

	lines.paper = text->paper;
	lines_write_notes(&lines, NULL, 0);
}
