// How a line is shortened. What is said of a name goes before the name does: first the folder
// ("src/video/decode.cc:210" becomes "decode.cc:210"), then the mark of an inlined function, then
// parts of the name. A name keeps 24 columns before anything of its place is given up. What is
// after the figures is never on a second line, so that columns stay columns.
#include "report/table/lines.h"

#include "base/mem.h"
#include "base/str.h"
#include "report/ask/cxxname.h"

#include <inttypes.h>
#include <string.h>

enum {
	FRAMES_MAX = 12,         // of a stack, unless all are wanted
	NAME_COLUMNS_MIN = 24,   // a function's name is not cut shorter for its file's folder
	NAME_COLUMNS_LEAST = 16, // nor than this for an offset in its module
	PLACE_COLUMNS_MAX = 200,
	ROOM_MIN = 20, // wider than the mark
};

static const char inlined_mark[] = " (inlined)";

// ---- for people ----

static bool is_slash(char c)
{
	return c == '/' || c == '\\';
}

const char *lines_last_two(const char *path)
{
	const char *name = str_last_part(path);

	if (name - path < 2)
		return name;
	for (name -= 2; name > path && !is_slash(*name);)
		name--;
	return is_slash(*name) ? name + 1 : name;
}

// "src/parse.c:120", or the module and the offset in it.
static void describe_place(const struct symbol *symbol, bool brief, struct str *text)
{
	const char *file = symbol->file;

	if (file && symbol->line)
		str_format(text, "%s:%" PRIu32, brief ? str_last_part(file) : lines_last_two(file),
			   symbol->line);
	else if (names_is_script(symbol))
		str_add(text, brief ? str_last_part(file) : lines_last_two(file));
	else if (*symbol->module)
		str_format(text, "%s+0x%" PRIx64, str_last_part(symbol->module), symbol->offset);
	else if (symbol->offset || !symbol->function) // else it is a name that stands for no place
		str_format(text, "0x%" PRIx64, symbol->offset);
}

// Once each. What has no module is code without a file.
static void keep_module(struct lines *lines, const char *module)
{
	size_t i = 0;

	if (!*module)
		return;
	while (i < LINES_MODULES_MAX && lines->modules[i] && strcmp(lines->modules[i], module) != 0)
		i++;
	if (i == LINES_MODULES_MAX)
		lines->more_modules = true;
	else
		lines->modules[i] = module;
}

// Counts what has no name or no line as it writes, for the notes at the end of the page. `least` is
// what the name keeps in any case: 24 columns, or all of a shorter one.
void lines_write(struct lines *lines, const struct symbol *symbol, enum paper_style style,
		 const char *ending)
{
	struct paper *paper = lines->paper;
	const char *mark = symbol->inlined ? inlined_mark : "";
	size_t taken = lines->indent + cxxname_columns(ending);
	size_t room = paper->width > taken + ROOM_MIN ? paper->width - taken : ROOM_MIN;
	struct str place = { 0 };
	struct str name = { 0 };
	size_t least;

	ASSERT(lines->paper);
	lines->count++;
	if (!names_is_named(symbol)) {
		lines->unnamed++;
		keep_module(lines, symbol->module);
	}
	lines->windows |= str_is_windows_path(symbol->module);
	// What has no module has no file in which its lines could be.
	lines->unlined += names_is_named(symbol) && !symbol->line && *symbol->module &&
			  !names_is_script(symbol);
	cxxname_shorten(symbol->function ? symbol->function : "", SIZE_MAX, &name);
	least = cxxname_columns(str_get(&name));
	least = least < NAME_COLUMNS_MIN ? least : NAME_COLUMNS_MIN;
	describe_place(symbol, false, &place);
	// Where there is no room for all, these go one after the other: the folder of the file, the
	// mark of what was inlined, parts of the name, the offset in a module.
	if (least + 2 + cxxname_columns(str_get(&place)) + cxxname_columns(mark) > room &&
	    symbol->line) {
		str_clear(&place);
		describe_place(symbol, true, &place);
	}
	if (least + 2 + cxxname_columns(str_get(&place)) + cxxname_columns(mark) > room)
		mark = "";
	room -= cxxname_columns(mark);
	least = least < NAME_COLUMNS_LEAST ? least : NAME_COLUMNS_LEAST;
	if (symbol->function && !symbol->line &&
	    least + 2 + cxxname_columns(str_get(&place)) > room)
		str_clear(&place);
	if (symbol->function) {
		size_t used = place.length ? cxxname_columns(str_get(&place)) + 2 : 0;

		str_clear(&name);
		cxxname_shorten(symbol->function, used < room ? room - used : 0, &name);
		paper_text(paper, style, str_get(&name));
		sink_text(paper->sink, used ? "  " : "");
	}
	paper_foreign(paper, symbol->function ? PAPER_DIM : style, str_get(&place),
		      PLACE_COLUMNS_MAX);
	paper_text(paper, PAPER_DIM, mark);
	paper_foreign(paper, PAPER_DIM, ending, PLACE_COLUMNS_MAX);
	sink_text(paper->sink, "\n");
	STR_FINI(&place, &name);
}

// A function that stands for several of its lines has its file's name alone. One whose name or line
// is not known has a module and an offset, as lines_write writes it.
void lines_write_function(struct lines *lines, const struct symbol *symbol, enum paper_style style,
			  bool exact)
{
	size_t room = lines->paper->width > lines->indent + ROOM_MIN
			      ? lines->paper->width - lines->indent
			      : ROOM_MIN;
	const char *file = symbol->file ? str_last_part(symbol->file)
					: str_last_part(symbol->module);
	size_t used = cxxname_columns(file) + 2;
	struct str name = { 0 };

	if (exact || !symbol->function || !symbol->line) {
		lines_write(lines, symbol, style, "");
		return;
	}
	lines->count++;
	cxxname_shorten(symbol->function, used < room ? room - used : 0, &name);
	paper_text(lines->paper, style, str_get(&name));
	sink_text(lines->paper->sink, "  ");
	paper_foreign(lines->paper, PAPER_DIM, file, PLACE_COLUMNS_MAX);
	sink_text(lines->paper->sink, "\n");
	str_fini(&name);
}

void lines_write_indent(struct lines *lines)
{
	for (unsigned i = 0; i < lines->indent; i++)
		sink_text(lines->paper->sink, " ");
}

// Of more callers than fit, one line less is shown and the rest counted; one that is left alone is
// never "1 more". For example where 12 lines fit: of a stack of 13 the function, ten callers and "2
// more".
void lines_write_callers(struct lines *lines, const struct names_stack *stack, size_t first)
{
	size_t all = stack->count - (lines->all_frames ? 0 : stack->roots);
	size_t most = lines->callers_max ? lines->callers_max + 1 : FRAMES_MAX;
	size_t end = all;

	if (!lines->all_frames && end - first > most)
		end = first + most - 1;
	for (size_t i = first + 1; i < end; i++) {
		lines_write_indent(lines);
		lines_write(lines, stack->lines[i].symbol, PAPER_PLAIN, "");
	}
	if (end < all) {
		lines_write_indent(lines);
		paper_format(lines->paper, PAPER_DIM, "… %zu more%s\n", all - end,
			     stack->flags & TRACE_STACK_CUT
				     ? ", and outer callers: deeper than is recorded"
				     : "");
	} else if (stack->flags & (TRACE_STACK_INCOMPLETE | TRACE_STACK_CUT)) {
		lines_write_indent(lines);
		paper_text(lines->paper, PAPER_DIM,
			   stack->flags & TRACE_STACK_CUT
				   ? "… deeper than is recorded: outer callers are missing\n"
				   : "… callers may be missing\n");
	}
}

// " (a.so, b.so)", of those that are known; " (a.so, b.so, c.so and others)".
static void add_modules(const struct lines *lines, struct str *text)
{
	for (size_t i = 0; i < LINES_MODULES_MAX && lines->modules[i]; i++)
		str_format(text, "%s%s", i == 0 ? " (" : ", ", str_last_part(lines->modules[i]));
	if (lines->modules[0])
		str_add(text, lines->more_modules ? " and others)" : ")");
}

// More than a twentieth without names is worth a note, and so is more than half without lines. On
// Windows names come from another place, so the advice is another.
void lines_write_notes(struct lines *lines, const char *const *notes, size_t notes_count)
{
	struct str text = { 0 };

	ASSERT(lines->paper && lines->unnamed <= lines->count);
	for (size_t i = 0; i < notes_count; i++)
		paper_paragraph(lines->paper, PAPER_WARNING, "symbols", notes[i]);
	if (lines->unnamed * 20 > lines->count) {
		str_format(&text, "%s of %s lines %s no function name", STR_COUNT(lines->unnamed),
			   STR_COUNT(lines->count), lines->unnamed == 1 ? "has" : "have");
		add_modules(lines, &text);
		str_format(&text, ": %s",
			   lines->windows
				   ? "what names them is looked for in --symbols and in "
				     "_NT_SYMBOL_PATH: tidemark symbols --missing lists it"
				   : "install -dbg or -dbgsym packages, build what is yours with "
				     "-g, or try --debuginfod");
	} else if (lines->unlined * 2 > lines->count) {
		str_add(&text,
			"names come from the symbol tables only; for files, lines and inlined "
			"functions build with -g, install the -dbg or -dbgsym packages, or try "
			"--debuginfod");
	}
	if (text.length > 0)
		paper_paragraph(lines->paper, PAPER_DIM, "symbols", str_get(&text));
	str_fini(&text);
}

// ---- for programs ----

void lines_json_begin(struct json *json)
{
	json_object_begin(json);
	json_line_begin(json);
}

void lines_json_end(struct json *json)
{
	json_object_end(json);
	json_line_end(json);
}

static void write_line(struct json *json, const struct symbol *symbol)
{
	json_object_begin(json);
	json_kv_text(json, "function", symbol->function);
	json_kv_text(json, "file", symbol->file);
	json_kv_u64_if(json, "line", symbol->line > 0, symbol->line);
	json_kv_text(json, "module", symbol->module);
	json_kv_u64(json, "offset", symbol->offset);
	json_kv_bool(json, "inlined", symbol->inlined);
	json_object_end(json);
}

// A line's text is the same in all stacks, so it is written as a document of its own, in one line,
// and taken from there.
void lines_json(struct json *json, const struct names_stack *stack)
{
	struct str text = { 0 };

	json_array_begin(json);
	for (size_t i = 0; i < stack->count; i++) {
		const struct names_text *kept = stack->lines[i].json;
		struct sink sink = sink_to_str(&text);
		struct json line;

		if (kept->text) {
			json_raw(json, kept->text, kept->length);
			continue;
		}
		str_clear(&text);
		json_init(&line, &sink, false);
		write_line(&line, stack->lines[i].symbol);
		json_raw(json, str_get(&text), text.length);
		names_keep(stack, i, str_get(&text), text.length);
	}
	json_array_end(json);
	str_fini(&text);
}

void lines_json_site(struct json *json, const struct names_stack *stack)
{
	json_kv_bool(json, "stack_complete",
		     !(stack->flags & (TRACE_STACK_INCOMPLETE | TRACE_STACK_CUT)));
	json_kv_bool(json, "stack_deep", stack->flags & TRACE_STACK_CUT);
	json_kv_u64(json, "user_frame", stack->user);
	json_key(json, "stack");
	lines_json(json, stack);
}

void lines_json_amount(struct json *json, const char *key, struct heap_amount amount)
{
	json_key(json, key);
	lines_json_begin(json);
	json_kv_u64(json, "count", amount.count);
	json_kv_u64(json, "bytes", amount.bytes);
	lines_json_end(json);
}
