// repair: a whole trace of a cut or damaged one.
//
// For example a trace whose collector was killed while it wrote block 57: blocks 0 to 56 are copied
// with what they define, block 57 is left out, and the end says that the recording was cut there.
// What came before the damage is what it was, byte for byte of each event.
#include "cli/args.h"

#include "base/mem.h"
#include "base/str.h"
#include "trace/fresh.h"
#include "trace/reader_pass.h"
#include "trace/repair.h"

#include <inttypes.h>
#include <string.h>

struct wish {
	const char *path, *output;
	bool force;
};

static const struct option_row repair_options[] = {
	{ ARGS_TEXT(wish, output), 'o', "output", "OUT",
	  "write the repaired trace to OUT (default: FILE with .repaired before .tide)" },
	{ ARGS_FLAG(wish, force), 'f', "force", NULL, "overwrite OUT; OUT may be FILE itself" },
	{ 0 },
};

static int run(int argc, char **argv);

const struct command cmd_repair = {
	.name = "repair",
	.brief = "make a whole trace of a cut or damaged one",
	.usage = "FILE [-o OUT] [--force]",
	.text = "Copies all that can be read and writes an end that says what is missing. Every\n"
		"command reads cut and damaged traces as they are; a repaired one is faster to\n"
		"seek in, says the same on every reading, and can take bundled symbols.",
	.examples = "  tidemark repair app.tide              # writes app.repaired.tide\n"
		    "  tidemark repair app.tide -o app.tide --force\n",
	.options = repair_options,
	.writes_operand = true,
	.run = run,
};

// "app.tide" -> "app.repaired.tide"
static void name_output(const char *path, struct str *out)
{
	static const char ending[] = ".tide";
	size_t length = strlen(path);

	// A file that is only called ".tide" keeps its name in front.
	if (length > sizeof ending - 1 && str_ends_with(path, ending))
		length -= sizeof ending - 1;
	str_add_bytes(out, path, length);
	str_add(out, ".repaired.tide");
}

// OUT may be FILE: the copy takes its name when it is whole.
static bool repair(const struct wish *wish, struct err *err)
{
	struct repair_result result;
	struct fresh fresh = { .fd = -1 };
	bool ok = fresh_open_of(&fresh, wish->output, wish->force, wish->path, err) &&
		  (repair_trace(wish->path, fresh.fd, &result, err) ||
		   fresh_name_failure(&fresh, err)) &&
		  fresh_keep(&fresh, err);

	ASSERT(wish->path && wish->output);
	fresh_close(&fresh);
	if (!ok)
		return false;
	printf("%s: %" PRIu64 " events in %" PRIu64 " blocks\n", wish->output, result.events,
	       result.blocks);
	printf("was %s\n", result.why[0] ? result.why : "whole");
	if (result.events_lost > 0 || result.blocks_lost > 0 || result.bytes_lost > 0)
		printf("lost: %" PRIu64 " blocks, %s of the file, %" PRIu64
		       " events by their numbers\n",
		       result.blocks_lost, STR_BYTES(result.bytes_lost), result.events_lost);
	return true;
}

// Is there nothing to repair? Reads it all, because damage shows only then.
static bool already_whole(const char *path, bool *whole, struct err *err)
{
	struct reader *reader = reader_open(path, err);
	struct reader_pass pass = { .reader = reader };

	if (!reader)
		return false;
	// Checksums of blocks are looked at as they are read.
	while (reader_pass_next(&pass) != READER_END)
		;
	*whole = reader_sound(reader);
	reader_close(reader);
	return true;
}

// A whole trace needs no repair; with -o it is written all the same, as a script may want a file
// there.
static int run(int argc, char **argv)
{
	struct wish wish = { 0 };
	struct str name = { 0 };
	struct err err = { 0 };
	struct args args;
	bool whole, ok;

	args_init(&args, &cmd_repair, argc, argv);
	args.into = &wish;
	args.operand = &wish.path;
	if (args_next(&args) != ARGS_END || !args_need(&args, wish.path, "a trace FILE"))
		return args.exit_code;
	if (!already_whole(wish.path, &whole, &err))
		return args_fail(&cmd_repair, &err);
	if (whole && !wish.output) {
		printf("%s is whole: nothing to repair\n", wish.path);
		return EXIT_ANSWERED;
	}
	if (!wish.output) {
		name_output(wish.path, &name);
		wish.output = name.text;
	}
	ok = repair(&wish, &err);
	str_fini(&name);
	return ok ? EXIT_ANSWERED : args_fail(&cmd_repair, &err);
}
