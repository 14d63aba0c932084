#include "cli/chosen.h"

#include "os/file.h"
#include "trace/fresh.h"

#include <errno.h>
#include <stdio.h>

bool chosen_open(struct chosen *chosen, struct err *err)
{
	const char *from = selection_words_get(&chosen->words, SELECTION_FROM);
	const char *to = selection_words_get(&chosen->words, SELECTION_TO);
	const struct symbols_options as_they_are = { 0 };
	struct err wrong = { 0 }; // which chosen_close tells

	if (chosen->output && !fresh_check(chosen->output, chosen->force, err))
		return false;
	chosen->reader = reader_open(chosen->path, err);
	if (!chosen->reader)
		return false;
	reader_scan(chosen->reader, &wrong);
	chosen->symbols = symbols_new(chosen->reader, &as_they_are);
	chosen->names = names_new(chosen->reader, chosen->symbols);
	return selection_init(&chosen->selection, &chosen->words, chosen->reader, chosen->names,
			      err) &&
	       moment_find_window(from, to, chosen->reader, NULL, NULL, chosen->window, err);
}

static bool write_to(FILE *file, chosen_write_function *write, void *context, struct err *err)
{
	struct sink sink = sink_to_file(file);

	return write(context, &sink, err) && sink_ok(&sink, err);
}

bool chosen_write(const struct chosen *chosen, chosen_write_function *write, void *context,
		  struct err *err)
{
	struct fresh fresh = { .fd = -1 };
	FILE *file;
	bool ok;

	if (!chosen->output)
		return write_to(stdout, write, context, err);
	if (!fresh_open(&fresh, chosen->output, chosen->force, err))
		return false;
	file = file_stream_copy(fresh.fd, "w");
	ok = file || err_errno(err, errno, "cannot write %s", chosen->output);
	ok = ok && write_to(file, write, context, err);
	if (file && fclose(file) != 0 && ok)
		ok = err_errno(err, errno, "cannot write %s", chosen->output);
	ok = ok && fresh_keep(&fresh, err);
	fresh_close(&fresh);
	return ok;
}

void chosen_close(struct chosen *chosen, const struct command *command, bool good)
{
	struct err wrong = { 0 };

	selection_fini(&chosen->selection);
	names_free(chosen->names);
	symbols_free(chosen->symbols);
	if (good && !reader_ok(chosen->reader, &wrong))
		args_warn(command, "%s is not whole: %s", chosen->path, wrong.text);
	reader_close(chosen->reader);
}
