#include "report/stack_text.h"

#include "report/cxxname.h"

#include <inttypes.h>

enum {
	FRAMES_MAX = 12,       // of a stack
	NAME_COLUMNS_MIN = 24, // a function's name is not cut shorter for its file's folder
	PLACE_COLUMNS_MAX = 200,
};

static const char inlined_mark[] = " (inlined)";

void stack_text_fini(struct stack_text *text)
{
	map_fini(&text->printed);
	*text = (struct stack_text){ 0 };
}

// The last two parts of a path are enough to know a file by: "/home/me/src/a.c" -> "src/a.c".
static const char *last_two(const char *path)
{
	const char *name = names_file(path);

	if (name - path < 2)
		return name;
	for (name -= 2; name > path && *name != '/';)
		name--;
	return *name == '/' ? name + 1 : name;
}

// "src/parse.c:120", or the module and the offset in it.
static void describe_place(const struct symbol *symbol, bool brief, struct str *text)
{
	const char *file = symbol->file;

	if (file && symbol->line)
		str_format(text, "%s:%" PRIu32, brief ? names_file(file) : last_two(file),
			   symbol->line);
	else if (*symbol->module)
		str_format(text, "%s+0x%" PRIx64, names_file(symbol->module), symbol->offset);
	else
		str_format(text, "0x%" PRIx64, symbol->offset);
}

// One line of a stack: "function  place", in what is left of the line.
static void write_line(struct stack_text *text, const struct symbol *symbol, enum paper_style style,
		       const char *ending)
{
	struct paper *paper = text->paper;
	size_t room = paper->width - text->indent - cxxname_columns(ending);
	const char *mark = symbol->inlined ? inlined_mark : "";
	struct str place = { 0 };
	struct str name = { 0 };
	size_t least;

	text->lines++;
	text->unnamed += !symbol->function;
	text->unlined += symbol->function && !symbol->line;
	cxxname_shorten(symbol->function ? symbol->function : "", SIZE_MAX, &name);
	least = cxxname_columns(str_get(&name));
	least = least < NAME_COLUMNS_MIN ? least : NAME_COLUMNS_MIN;
	describe_place(symbol, false, &place);
	// What is said of a name goes before the name does: the folder, then the mark.
	if (least + 2 + cxxname_columns(str_get(&place)) + cxxname_columns(mark) > room &&
	    symbol->line) {
		str_clear(&place);
		describe_place(symbol, true, &place);
	}
	if (least + 2 + cxxname_columns(str_get(&place)) + cxxname_columns(mark) > room)
		mark = "";
	room -= cxxname_columns(mark) < room ? cxxname_columns(mark) : room;
	if (symbol->function) {
		size_t used = cxxname_columns(str_get(&place)) + 2;

		str_clear(&name);
		cxxname_shorten(symbol->function, used < room ? room - used : 0, &name);
		paper_text(paper, style, str_get(&name));
		sink_text(paper->sink, "  ");
	}
	paper_foreign(paper, symbol->function ? PAPER_DIM : style, str_get(&place),
		      PLACE_COLUMNS_MAX);
	paper_text(paper, PAPER_DIM, mark);
	paper_foreign(paper, PAPER_DIM, ending, PLACE_COLUMNS_MAX);
	sink_text(paper->sink, "\n");
	str_fini(&place);
	str_fini(&name);
}

static void write_indent(struct stack_text *text)
{
	for (unsigned i = 0; i < text->indent; i++)
		sink_text(text->paper->sink, " ");
}

// Lines below the first.
static void write_callers(struct stack_text *text, const struct names_stack *stack, size_t first)
{
	size_t all = stack->count - (text->all_frames ? 0 : stack->roots);
	size_t most = text->callers_max ? text->callers_max + 1 : FRAMES_MAX;
	size_t end = all;

	if (!text->all_frames && end - first > most)
		end = first + most - 1;
	for (size_t i = first + 1; i < end; i++) {
		write_indent(text);
		write_line(text, stack->lines[i].symbol, PAPER_PLAIN, "");
	}
	if (end < all) {
		write_indent(text);
		paper_format(text->paper, PAPER_DIM, "… %zu more\n", all - end);
	} else if (stack->flags & (TRACE_STACK_INCOMPLETE | TRACE_STACK_CUT)) {
		write_indent(text);
		paper_text(text->paper, PAPER_DIM, "… callers may be missing\n");
	}
}

void stack_text_write(struct stack_text *text, process_id process, stack_id stack)
{
	struct names_stack named = names_stack(text->names, stack);
	const struct trace_process *owner = reader_process(text->reader, process);
	size_t first = text->all_frames ? 0 : named.user;
	struct str ending = { 0 };
	uint64_t *number;
	bool added;

	if (text->program_only && owner)
		str_format(&ending, "  [%s]", names_file(owner->exe));
	else if (text->several && owner)
		str_format(&ending, "  [%s %" PRIu32 "]", names_file(owner->exe), owner->pid);
	if (text->remark)
		str_format(&ending, "  %s", text->remark);
	if (named.count == 0) {
		paper_text(text->paper, PAPER_DIM, "(no stack)");
		paper_foreign(text->paper, PAPER_DIM, str_get(&ending), PLACE_COLUMNS_MAX);
		sink_text(text->paper->sink, "\n");
		str_fini(&ending);
		return;
	}
	number = map_put(&text->printed, (uint64_t)process << 32 | stack, &added);
	if (added)
		*number = ++text->numbers;
	if (!text->once)
		str_format(&ending, added ? "  #%" PRIu64 : "  see #%" PRIu64, *number);
	write_line(text, named.lines[first].symbol, PAPER_BOLD, str_get(&ending));
	if (added)
		write_callers(text, &named, first);
	str_fini(&ending);
}

void stack_text_hint(const struct stack_text *text)
{
	if (text->unnamed * 20 > text->lines)
		paper_paragraph(text->paper, PAPER_DIM, "symbols",
				"many functions have no name here; build with -g, install the -dbg "
				"or -dbgsym packages of what is shown as module+offset, or try "
				"--debuginfod");
	else if (text->unlined * 2 > text->lines)
		paper_paragraph(text->paper, PAPER_DIM, "symbols",
				"names come from the symbol tables only; for files, lines and "
				"inlined functions build with -g, install the -dbg or -dbgsym "
				"packages, or try --debuginfod");
}
