// What check says to people: on a terminal, as Markdown, as lines that a CI shows beside the
// source; and suppressions for what is left.
//
// Each figure that has a limit is a line: its name, its value, the limit, and whether it holds.
// Below a figure that is exceeded are the sites that have most of it, with their callers. The
// same lines in Markdown are a table, so that a pull request shows them; for a CI each site is a
// line with file and line in front, and for suppressions each is a block of frames, as Valgrind
// reads them.
#include "report/find/check.h"

#include "base/str.h"
#include "report/ask/cxxname.h"
#include "report/table/query_write.h"
#include "report/table/sheet.h"
#include "report/table/stack_text.h"

#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { FIGURES_COLUMNS = 30, CALLERS_SHOWN = 4, NAME_COLUMNS = 100, NAME_MAX_BYTES = 1000 };

// Growth is bytes a minute and is written as bytes, with the unit after it.
static bool is_bytes(enum check_figure figure)
{
	ASSERT(figure < CHECK_FIGURES);
	return figure == CHECK_PEAK || figure == CHECK_LIVE_AT_EXIT ||
	       figure == CHECK_UNREACHABLE || figure == CHECK_GROWTH;
}

// The exact number stands in brackets, so that a limit can be copied from it.
void check_add_value(struct str *out, enum check_figure figure, uint64_t value)
{
	ASSERT(figure < CHECK_FIGURES);
	if (!is_bytes(figure))
		str_add(out, STR_COUNT(value));
	else if (value < 1024)
		str_format(out, "%" PRIu64 " B", value);
	else
		str_format(out, "%s (%s bytes)", STR_BYTES(value), STR_COUNT(value));
	if (figure == CHECK_GROWTH)
		str_add(out, " a minute");
}

// Behind the mean.
static void describe_compared(const struct check_row *row, struct str *text)
{
	str_format(text, " in the mean of %zu runs, in the baseline's %zu ", row->runs.count,
		   row->limit.runs.count);
	check_add_value(text, row->figure, row->limit.most);
	if (row->exceeded) {
		str_add(text, ": more by ");
		check_add_value(text, row->figure, (uint64_t)llround(row->least_change));
		str_add(text, " at least");
	} else {
		str_add(text, ": not more than runs differ by");
	}
}

// Two forms: with a limit that is a number, "peak 1.2 MiB, at most 1.0 MiB"; with a baseline whose
// runs differ, the two means and by how much the new one is higher at least.
void check_describe(const struct check_row *row, struct str *text)
{
	ASSERT(row->figure < CHECK_FIGURES);
	str_format(text, "%s ", check_names[row->figure]);
	if (row->known)
		check_add_value(text, row->figure, row->value);
	else
		str_add(text, "not known");
	if (row->known && row->compared) {
		describe_compared(row, text);
		return;
	}
	if (row->known && row->runs.count > 1)
		str_format(text,
			   check_runs_vary(&row->runs) ? " at most in %zu runs"
						       : " in each of %zu runs",
			   row->runs.count);
	if (!row->limit.given)
		return;
	str_add(text, row->limit.of_baseline ? ", at most as in the baseline: " : ", at most ");
	check_add_value(text, row->figure, row->limit.most);
}

// What was recorded names the subject: paths of traces are the CI's and say nothing.
void check_subject(const struct check_page *page, struct str *text)
{
	const char *command = reader_info(page->check->asked->reader)->command;

	str_add(text, *command ? command : str_last_part(page->check->path));
	if (page->section)
		str_format(text, ", %s", page->section);
}

const struct check_site *check_blamed(const struct check_row *row)
{
	ASSERT(row->sites_count == 0 || row->sites);
	if (row->sites_count == 0 || (row->limit.of_baseline && row->limit.most > 0))
		return NULL;
	return &row->sites[0];
}

void check_add_diff(const struct check *check, struct str *text)
{
	str_add(text, "which have grown since the baseline: tidemark diff OLD ");
	str_add_shell(text, check->path);
}

// The sentence that all forms share: what ran, the figure and its limit, and who has most of it.
void check_announce(const struct check_page *page, const struct check_row *row, struct str *text)
{
	const struct check_site *site = row ? check_blamed(row) : NULL;

	check_subject(page, text);
	str_add(text, ": ");
	if (!row) {
		str_format(text, "not judged: %s", page->check->refusal);
		return;
	}
	check_describe(row, text);
	if (!row->sites_count)
		return;
	str_add(text, "; ");
	if (!site) {
		str_add(text, "of its sites, ");
		check_add_diff(page->check, text);
		return;
	}
	check_add_value(text, row->figure, site->value);
	str_add(text, " of it by ");
	names_add_function(row->asked->names, site->stack, false, text);
}

// A trace that is not judged has neither failed nor passed: "?".
static const char *verdict(const struct check *check, const struct check_row *row)
{
	if (!row->limit.given)
		return "";
	if (check->refusal)
		return "?";
	return row->exceeded ? "FAILED" : "ok";
}

// ---- on a terminal ----

// Sites are of the run that has most, so names and reader are of the row and not of the page.
static void write_sites(const struct check_row *row, struct stack_text *stacks)
{
	struct paper *paper = stacks->paper;

	for (size_t i = 0; i < row->sites_count; i++) {
		const struct check_site *site = &row->sites[i];

		paper_field(paper, PAPER_BOLD,
			    is_bytes(row->figure) ? STR_BYTES(site->value) : STR_COUNT(site->value),
			    17, true);
		paper_field(paper, PAPER_PLAIN, is_bytes(row->figure) ? STR_COUNT(site->count) : "",
			    10, true);
		sink_text(paper->sink, "   ");
		stacks->names = row->asked->names;
		stacks->reader = row->asked->reader;
		stack_text_write(stacks, site->process, site->stack);
	}
	paper_more(paper, row->sites_total - row->sites_count);
}

// Of the sites that are listed: who is told of a limit of 0 should know what no program can free.
static void write_runtime(const struct check_row *row, struct paper *paper)
{
	struct str text = { 0 };

	for (size_t i = 0; i < row->sites_count; i++) {
		struct names_stack stack = names_stack(row->asked->names, row->sites[i].stack);
		const char *part = names_runtime(&stack);

		if (part)
			str_format(&text, "%s%s is %s", text.length ? ", " : "",
				   STR_BYTES(row->sites[i].value), part);
	}
	if (text.length == 0)
		return;
	str_add(&text, ": the runtime's own, which no program frees; leave room for it in the "
		       "limit, or name it in --suppressions (--gen-suppressions writes them)");
	paper_paragraph(paper, PAPER_DIM, "        runtime", str_get(&text));
	str_fini(&text);
}

// An unused suppression is a warning and no failure: a list is shared by programs of which each
// uses a part.
static void write_suppressed(const struct check_page *page, struct paper *paper)
{
	const struct check *check = page->check;
	const char *name, *path;
	unsigned line;
	size_t at = 0;

	if (!page->suppressions)
		return;
	paper_format(paper, PAPER_PLAIN, "suppressed: %s in %s blocks, from %zu sites\n",
		     STR_BYTES(check->suppressed.bytes), STR_COUNT(check->suppressed.count),
		     check->suppressed_sites);
	while ((name = suppressions_unused(page->suppressions, &at, &path, &line)))
		paper_format(paper, PAPER_WARNING, "unused suppression: %s (%s:%u)\n", name, path,
			     line);
}

// What has neither a value nor a limit is left out: "unreachable" of a trace that was not searched.
void check_text(const struct check_page *page, struct sink *sink)
{
	const struct check *check = page->check;
	struct paper paper = { .sink = sink, .colour = page->colour, .width = page->width };
	struct stack_text stacks = query_write_stacks(check->asked, &paper, FIGURES_COLUMNS,
						      CALLERS_SHOWN, page->all_frames);
	const struct query_context *shown[CHECK_FIGURES + 1];
	const char **notes;
	size_t notes_count;

	query_write_headline(check->asked, &paper);
	for (int figure = 0; figure < CHECK_FIGURES; figure++) {
		const struct check_row *row = &check->rows[figure];
		struct str text = { 0 };

		if (!row->known && !row->limit.given)
			continue;
		check_describe(row, &text);
		paper_field(&paper, row->exceeded ? PAPER_WARNING : PAPER_PLAIN,
			    verdict(check, row), 8, false);
		paper_format(&paper, PAPER_PLAIN, "%s\n", str_get(&text));
		if (row->exceeded && row->sites_count && !check_blamed(row)) {
			str_clear(&text);
			str_add(&text, "the largest; ");
			check_add_diff(check, &text);
			paper_paragraph(&paper, PAPER_DIM, "        sites", str_get(&text));
		}
		if (row->exceeded && figure == CHECK_LIVE_AT_EXIT)
			write_runtime(row, &paper);
		if (row->exceeded)
			write_sites(row, &stacks);
		str_fini(&text);
	}
	write_suppressed(page, &paper);
	if (check->refusal)
		paper_paragraph(&paper, PAPER_WARNING, "not judged", check->refusal);
	notes_count = query_write_notes(shown, check_shown(check, shown), &notes);
	for (size_t i = 0; i < notes_count; i++)
		paper_paragraph(&paper, PAPER_WARNING, "symbols", notes[i]);
	mem_free(notes);
	stack_text_hint(&stacks);
	stack_text_fini(&stacks);
}

// ---- Markdown ----

// All of a name is written, whatever its length: a table of a web page wraps.
static void write_site(const struct check_row *row, stack_id stack, struct sink *sink)
{
	struct names *names = row->asked->names;
	const struct symbol *face = names_face(names, stack, false);
	struct str name = { 0 };

	names_add_function(names, stack, false, &name);
	sheet_write_markdown(sink, str_get(&name), SIZE_MAX);
	if (face && face->file) {
		sink_text(sink, " ");
		sheet_write_markdown(sink, str_last_part(face->file), SIZE_MAX);
		sink_format(sink, ":%" PRIu32, face->line);
	}
	str_fini(&name);
}

static void write_value(struct sink *sink, enum check_figure figure, uint64_t value)
{
	struct str text = { 0 };

	ASSERT(figure < CHECK_FIGURES);
	check_add_value(&text, figure, value);
	sink_text(sink, str_get(&text));
	str_fini(&text);
}

// For $GITHUB_STEP_SUMMARY and comments of merge requests: a table of all figures, and one of sites
// for each that is exceeded. As in the text, what has neither a value nor a limit is left out.
void check_markdown(const struct check_page *page, struct sink *sink)
{
	const struct check *check = page->check;

	sink_text(sink, "### ");
	sheet_write_markdown(sink, reader_info(check->asked->reader)->command, SIZE_MAX);
	sink_text(sink, "\n\n");
	if (check->refusal)
		sink_format(sink, "**not judged**: %s\n\n", check->refusal);
	sink_text(sink, "| | figure | is | at most |\n|---|---|---:|---:|\n");
	for (int figure = 0; figure < CHECK_FIGURES; figure++) {
		const struct check_row *row = &check->rows[figure];

		if (!row->known && !row->limit.given)
			continue;
		sink_format(sink, "| %s | %s | ", verdict(check, row), check_names[figure]);
		if (row->known)
			write_value(sink, figure, row->value);
		sink_text(sink, " | ");
		if (row->limit.given)
			write_value(sink, figure, row->limit.most);
		sink_text(sink, " |\n");
	}
	for (int figure = 0; figure < CHECK_FIGURES; figure++) {
		const struct check_row *row = &check->rows[figure];

		if (!row->exceeded || !row->sites_count)
			continue;
		if (!check_blamed(row)) {
			struct str text = { 0 };

			check_add_diff(check, &text);
			sink_text(sink, "\nThe largest sites; ");
			sheet_write_markdown(sink, str_get(&text), SIZE_MAX);
			sink_text(sink, "\n");
			str_fini(&text);
		}
		sink_format(sink, "\n| %s | site |\n|---:|---|\n", check_names[figure]);
		for (size_t i = 0; i < row->sites_count; i++) {
			sink_text(sink, "| ");
			write_value(sink, figure, row->sites[i].value);
			sink_text(sink, " | ");
			write_site(row, row->sites[i].stack, sink);
			sink_text(sink, " |\n");
		}
	}
}

// ---- beside the source ----

// A value of one of GitHub's workflow commands. Its log is UTF-8, and so is what reads it.
static void add_escaped(struct str *out, const char *text, bool property)
{
	struct str clean = { 0 };

	str_add_utf8(&clean, text, strlen(text));
	for (text = str_get(&clean); *text; text++) {
		if (*text == '%' || *text == '\r' || *text == '\n' ||
		    (property && (*text == ':' || *text == ',')))
			str_format(out, "%%%02X", (unsigned char)*text);
		else
			str_add_char(out, *text);
	}
	str_fini(&clean);
}

// Without a known line in the source the message has no file, and GitHub shows it for the run as a
// whole.
static void write_error(const struct check_page *page, const struct check_row *row,
			struct sink *sink)
{
	const struct symbol *place = check_place(row);
	struct str text = { 0 }, path = { 0 }, words = { 0 };

	str_add(&text, "::error ");
	if (place) {
		check_add_path(page->check, place->file, &path);
		str_add(&text, "file=");
		add_escaped(&text, str_get(&path), true);
		str_format(&text, ",line=%" PRIu32 ",", place->line);
	}
	str_format(&text, "title=tidemark %s::", row ? check_names[row->figure] : "check");
	check_announce(page, row, &words);
	add_escaped(&text, str_get(&words), false);
	sink_format(sink, "%s\n", str_get(&text));
	STR_FINI(&text, &path, &words);
}

// An error for each limit that is exceeded, after the one that says why the trace is not judged.
void check_github(const struct check_page *page, struct sink *sink)
{
	const struct check *check = page->check;

	if (check->refusal)
		write_error(page, NULL, sink);
	for (int figure = 0; figure < CHECK_FIGURES; figure++)
		if (check->rows[figure].exceeded)
			write_error(page, &check->rows[figure], sink);
}

// ---- suppressions ----

// A frame of one of Valgrind's: the function, or the file of one that has no name; where the name
// is that of many, its line. A name longer than a line that is read keeps its beginning.
static void add_frame(struct str *text, const struct symbol *symbol)
{
	if (symbol->function && names_is_for_many(symbol->function) && symbol->file && symbol->line)
		str_format(text, "   src:%s:%" PRIu32 "\n", symbol->file, symbol->line);
	else if (!symbol->function)
		str_format(text, "   obj:%s%s\n", *symbol->module ? "*" : "",
			   str_last_part(symbol->module));
	else if (strlen(symbol->function) <= NAME_MAX_BYTES)
		str_format(text, "   fun:%s\n", symbol->function);
	else
		str_format(text, "   fun:%.*s*\n", NAME_MAX_BYTES, symbol->function);
}

// What names the blocks of a stack in a language, as a text of lines. Append.
typedef void add_names(struct names *names, stack_id id, struct str *text);

// The frames that say whose the blocks are, from the allocation on: the first function that is no
// wrapper, and before its callers as long as none has a name. For example malloc, a nameless
// function of libstdc++.so.6, call_init: all three; with the file alone every stack of C++ would be
// meant.
static void add_frames(struct names *names, stack_id id, struct str *text)
{
	struct names_stack stack = names_stack(names, id);
	struct str name = { 0 };

	ASSERT(stack.user < stack.count);
	names_add_function(names, id, false, &name);
	str_format(text, "{\n   %.*s\n   Memcheck:Leak\n   fun:malloc\n", NAME_COLUMNS,
		   str_get(&name));
	str_fini(&name);
	for (size_t i = stack.user; i < stack.count; i++) {
		add_frame(text, stack.lines[i].symbol);
		if (stack.lines[i].symbol->function)
			break;
	}
	str_add(text, "}\n");
}

// leak:^NAME$, where a $ within the name would be its end, and what compilers add to it is cut.
static void add_leak(struct str *text, const char *name, size_t length)
{
	const char *clone = strstr(name, " [clone ");
	bool whole = length <= NAME_MAX_BYTES && (!clone || clone >= name + length);

	ASSERT(length > 0);
	str_add(text, "leak:^");
	if (clone && clone < name + length)
		length = (size_t)(clone - name);
	for (size_t i = 0; i < length && i < NAME_MAX_BYTES; i++)
		str_add_char(text, name[i] == '$' ? '*' : name[i]);
	str_add(text, whole ? "$\n" : "*\n");
}

// The function alone, as the sanitizer's language has no order of frames. GCC's sanitizer knows a
// static function without its parameters.
static void add_leaks(struct names *names, stack_id id, struct str *text)
{
	const struct symbol *symbol = names_face(names, id, false);
	const char *function = symbol->function, *base;
	size_t length;

	if (!function) {
		str_format(text,
			   "# in %s, in a function without a name: only the file could be named\n",
			   *symbol->module ? str_last_part(symbol->module) : "no file");
		return;
	}
	base = cxxname_base(function, &length);
	if ((length == strlen("main") && strncmp(base, "main", length) == 0) ||
	    names_is_root(symbol)) {
		str_format(text, "# in %s: leak:^%s$ would name all that the program allocates\n",
			   function, function);
		return;
	}
	if (names_is_for_many(function)) {
		str_format(text, "# in %s", function);
		if (symbol->file && symbol->line)
			str_format(text, " of %s:%" PRIu32, symbol->file, symbol->line);
		str_format(text, ": leak:^%s$ would name others too\n", function);
		return;
	}
	add_leak(text, function, strlen(function));
	if (length > 0 && base == function && function[length] == '(' && !memchr(base, ':', length))
		add_leak(text, base, length);
}

// Sites of the same names are written once, with the figures of the heaviest, which comes first.
static void generate(const struct check_page *page, add_names *add, struct sink *sink)
{
	const struct check_row *row = &page->check->rows[CHECK_LIVE_AT_EXIT];
	struct str told = { 0 };

	for (size_t i = 0; i < row->sites_count; i++) {
		const struct check_site *site = &row->sites[i];
		struct str text = { 0 };

		if (names_face(row->asked->names, site->stack, false))
			add(row->asked->names, site->stack, &text);
		if (!text.length) {
			sink_format(sink,
				    "# %" PRIu64 " bytes in %" PRIu64
				    " blocks without a stack: nothing names them\n",
				    site->value, site->count);
		} else if (!strstr(str_get(&told), str_get(&text))) {
			sink_format(sink, "# %" PRIu64 " bytes in %" PRIu64 " blocks\n%s",
				    site->value, site->count, str_get(&text));
			str_add(&told, str_get(&text));
		}
		str_fini(&text);
	}
	str_fini(&told);
}

// Suppressions of what is live at exit now, in Valgrind's language: its frames are the innermost
// ones, so that main's own blocks are meant and not those of all that main calls, as by leak:main.
void check_generate(const struct check_page *page, struct sink *sink)
{
	generate(page, add_frames, sink);
}

void check_generate_lsan(const struct check_page *page, struct sink *sink)
{
	sink_text(sink,
		  "# LeakSanitizer holds each of these against every frame of a stack: what the "
		  "functions call is meant, too.\n");
	generate(page, add_leaks, sink);
}
