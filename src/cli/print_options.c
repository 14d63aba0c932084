// print_options: colours follow the terminal unless they were asked for: NO_COLOR (no-color.org)
// with anything in it turns them off, an option overrules both. Widths outside of 80 to 120 are
// brought within: tables need 80, and longer lines are hard to read.
#include "cli/print_options.h"

#include "base/mem.h"
#include "base/str.h"
#include "os/terminal.h"
#include "report/ask/wrappers.h"

#include <stdlib.h>

enum { WIDTH_DEFAULT = 100, WIDTH_LEAST = 80, WIDTH_MOST = 120 };

// In the order of SHEET_FORMS, which also numbers the options: the id less the first is the place.
#define FORM(word, id, help) &sheet_##word,
static const struct sheet_form *const forms[] = { SHEET_FORMS(FORM) };
#undef FORM
_Static_assert(sizeof forms / sizeof *forms == PRINT_OPTIONS_END - PRINT_OPTIONS_FORMS,
	       "an option for each form");

static const char *const color_words[] = { "auto", "always", "never", NULL };
static const char *const progress_words[] = { "auto", "none", "plain", "bar", NULL };
_Static_assert(sizeof progress_words / sizeof *progress_words == PROGRESS_BAR + 2,
	       "a word each, and the end");

enum print_options_taken print_options_take(struct args *args, struct print_options *print, int id)
{
	int index;

	if (id == PRINT_OPTIONS_JSON || (id >= PRINT_OPTIONS_FORMS && id < PRINT_OPTIONS_END)) {
		const struct sheet_form *form =
			// JSON is no sheet: a command writes it as one document by itself, so it
			// has no form.
			id == PRINT_OPTIONS_JSON ? NULL : forms[id - PRINT_OPTIONS_FORMS];

		// The same form twice is no mistake; two forms are.
		if ((print->json && form) || (print->form && print->form != form)) {
			args_mistake(args, "an answer has one form: of --json, --jsonl, --csv and "
					   "--markdown one at a time");
			return PRINT_OPTIONS_MISTAKE;
		}
		print->json = !form;
		print->form = form;
		return PRINT_OPTIONS_TAKEN;
	}
	switch (id) {
	case PRINT_OPTIONS_COLOR:
		return args_word(args, color_words, &print->color) ? PRINT_OPTIONS_TAKEN
								   : PRINT_OPTIONS_MISTAKE;
	case PRINT_OPTIONS_PROGRESS:
		if (!args_word(args, progress_words, &index))
			return PRINT_OPTIONS_MISTAKE;
		print->progress = (enum progress_mode)index;
		return PRINT_OPTIONS_TAKEN;
	case PRINT_OPTIONS_SYMBOLS:
		print->symbols.path = args->value;
		return PRINT_OPTIONS_TAKEN;
	case PRINT_OPTIONS_DEBUGINFOD:
		print->symbols.debuginfod = true;
		return PRINT_OPTIONS_TAKEN;
	case PRINT_OPTIONS_FOLD:
		// In an expression of other tools no name would be every name.
		if (!*args->value) {
			args_mistake(args, "--fold takes the name of a function, or a pattern");
			return PRINT_OPTIONS_MISTAKE;
		}
		wrappers_fold(args->value);
		return PRINT_OPTIONS_TAKEN;
	case PRINT_OPTIONS_MANGLED:
		print->symbols.mangled = true;
		return PRINT_OPTIONS_TAKEN;
	}
	return PRINT_OPTIONS_NOT_MINE;
}

unsigned print_options_width(void)
{
	// Zero columns: the output is a file or a pipe.
	unsigned width = terminal_columns();
	const char *columns = getenv("COLUMNS");
	uint64_t wanted;

	if (width == 0 && columns && str_parse_count(columns, &wanted) && wanted > 0)
		width = wanted < WIDTH_MOST ? (unsigned)wanted : WIDTH_MOST;
	if (width == 0)
		width = WIDTH_DEFAULT;
	if (width < WIDTH_LEAST)
		width = WIDTH_LEAST;
	return width > WIDTH_MOST ? WIDTH_MOST : width;
}

bool print_options_colour(const struct print_options *print)
{
	const char *no_color = getenv("NO_COLOR");

	ASSERT(print->color >= 0 && print->color <= 2);
	// The words' places: 0 auto, 1 always, 2 never.
	if (print->color != 0)
		return print->color == 1;
	return terminal_has_colours() && !(no_color && *no_color);
}
