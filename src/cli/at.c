#include "cli/at.h"

void at_fini(struct at *at)
{
	selection_words_fini(&at->words);
}

enum look_taken at_take(struct args *args, struct at *at, int id)
{
	if (filters_take(args, &at->words, id))
		return LOOK_TAKEN;
	switch (id) {
	case ARGS_OPERAND:
		return args_operand(args, &at->path) ? LOOK_TAKEN : LOOK_MISTAKE;
	case AT_MOMENT:
		at->moment = args->value;
		return LOOK_TAKEN;
	case AT_ROWS:
		at->rows_given = true;
		return args_count(args, &at->rows_max) ? LOOK_TAKEN : LOOK_MISTAKE;
	case AT_MIN_BYTES:
		return args_bytes(args, &at->bytes_min) ? LOOK_TAKEN : LOOK_MISTAKE;
	case AT_ALL_FRAMES:
		at->all_frames = true;
		return LOOK_TAKEN;
	}
	return look_take(args, &at->look, id);
}

bool at_check(struct args *args, const struct at *at)
{
	struct err err = { 0 };

	if (!args_need(args, at->path, "a trace FILE") || !filters_check(args, &at->words))
		return false;
	if (!sight_check(at->moment, &err))
		return args_mistake(args, "--at: %s", err.text);
	return true;
}

bool at_open(const struct at *at, struct sight *sight, struct err *err)
{
	const struct sight_options options = {
		.path = at->path,
		.words = &at->words,
		.at = at->moment,
		.of_mappings = at->of_mappings,
		.symbols = at->look.symbols,
		.progress = at->look.progress,
	};

	return sight_open(sight, &options, err);
}

struct paper at_paper(const struct at *at, struct sink *sink)
{
	return (struct paper){
		.sink = sink,
		.width = look_width(),
		.colour = look_colour(&at->look),
	};
}

void at_warn(const struct command *command, const struct sight *sight)
{
	for (size_t i = 0; i < sight->warnings_count; i++)
		args_warn(command, "%s", sight->warnings[i]);
}
