#include "cli/look.h"

#include "os/terminal.h"

#include <stdlib.h>

enum { WIDTH_DEFAULT = 100, WIDTH_LEAST = 80, WIDTH_MOST = 120 };

static const char *const color_words[] = { "auto", "always", "never", NULL };
static const char *const progress_words[] = { "auto", "none", "plain", "bar", NULL };

enum look_taken look_take(struct args *args, struct look *look, int id)
{
	int index;

	switch (id) {
	case LOOK_JSON:
	case LOOK_CSV:
		look->json = id == LOOK_JSON;
		look->csv = id == LOOK_CSV;
		return LOOK_TAKEN;
	case LOOK_COLOR:
		return args_word(args, color_words, &look->color) ? LOOK_TAKEN : LOOK_MISTAKE;
	case LOOK_PROGRESS:
		if (!args_word(args, progress_words, &index))
			return LOOK_MISTAKE;
		look->progress = (enum progress_mode)index;
		return LOOK_TAKEN;
	case LOOK_SYMBOLS:
		look->symbols.path = args->value;
		return LOOK_TAKEN;
	case LOOK_DEBUGINFOD:
		look->symbols.debuginfod = true;
		return LOOK_TAKEN;
	case LOOK_MANGLED:
		look->symbols.mangled = true;
		return LOOK_TAKEN;
	}
	return LOOK_NOT_MINE;
}

unsigned look_width(void)
{
	unsigned width = terminal_columns();

	if (width == 0)
		width = WIDTH_DEFAULT;
	if (width < WIDTH_LEAST)
		width = WIDTH_LEAST;
	return width > WIDTH_MOST ? WIDTH_MOST : width;
}

bool look_colour(const struct look *look)
{
	const char *no_color = getenv("NO_COLOR");

	if (look->color != 0)
		return look->color == 1;
	return terminal_has_colours() && !(no_color && *no_color);
}
