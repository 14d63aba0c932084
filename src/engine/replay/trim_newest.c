// For example a trace of 1,000 bytes has blocks of events at the bytes 100, 400, 600 and 800, which
// begin at 0, 10, 20 and 30 s:
//
//     old enough by 25 s    the block at 600, of 20 s, is the last that is: 20 s and on are kept
//     at most 500 bytes     the block at 600 is the first after which so few follow: 400
//     the last block        the one at 800
#include "engine/replay/trim_newest.h"

#include "engine/replay/trim.h"
#include "os/file.h"
#include "trace/parts.h"
#include "trace/rewrite.h"
#include "trace/store.h"
#include "trace/walk.h"
#include "trace/writer.h"

#include <errno.h>

// Whether the block is not to be in the new file, by what was asked for.
static bool leaves_out(const struct trim_newest_options *options, const struct block *block,
		       uint64_t at)
{
	return options->last || block->first_ns <= options->old_ns ||
	       (options->most_bytes && at + options->most_bytes < options->file_bytes);
}

// The block to begin with. False: it is the first one.
// Only headers of blocks are read. By age the last block that is old enough is the edge (so what is
// kept begins at or before old_ns); by size the first block after which few enough bytes follow.
static bool find_edge(const struct trim_newest_options *options, struct moment_edge *edge,
		      struct err *err)
{
	bool by_size = !options->last && !options->old_ns, found = false;
	struct store store;
	struct walk walk;
	struct block block;
	uint64_t at, count = 0;

	*edge = (struct moment_edge){ .exact = true };
	if (!store_open(&store, options->path, err))
		return false;
	walk_init(&walk);
	while (walk_next(&walk, &store, &block, &at)) {
		bool out = leaves_out(options, &block, at);

		if (block.type != BLOCK_EVENTS)
			continue;
		if (!out && !by_size)
			break;
		edge->number = block.first_event;
		edge->time_ns = block.first_ns;
		found = ++count > 1;
		if (!out)
			break;
	}
	store_close(&store);
	return found;
}

static bool find_kept(const struct trim_newest_options *options, const struct moment_edge *edge,
		      struct trim *trim, struct err *err)
{
	struct reader *reader = reader_open(options->path, err);
	struct progress progress;

	if (!reader)
		return false;
	reader_scan(reader);
	reader_stop(reader, options->stopped, options->context);
	progress_begin(&progress, PROGRESS_NONE, "", 0);
	trim_find(reader, edge, &progress, trim);
	progress_end(&progress);
	reader_close(reader);
	return true;
}

// What is kept goes into a new file beside the trace, at whose end the writer stays open: the
// recording goes on there.
bool trim_newest_write(struct trim_newest *newest, const struct trim_newest_options *options,
		       struct err *err)
{
	struct rewrite_input input = { .path = options->path };
	struct rewrite_window window = { .to_number = UINT64_MAX,
					 .to_ns = UINT64_MAX,
					 .mark = MOMENT_TRIMMED };
	const struct rewrite_options rewrite = {
		.inputs = &input,
		.inputs_count = 1,
		.window = &window,
		.part = options->last,
		.stopped = options->stopped,
		.more = options->more,
		.context = options->context,
	};
	struct rewrite_result result;
	struct moment_edge edge;
	struct trim trim = { 0 };

	*newest = (struct trim_newest){ .fresh = { .fd = -1 } };
	if (find_edge(options, &edge, err) && find_kept(options, &edge, &trim, err) &&
	    fresh_open(&newest->fresh, options->path, true, err)) {
		window.from_number = edge.number;
		window.from_ns = newest->from_ns = edge.time_ns;
		window.kept = trim.numbers;
		window.kept_count = trim.count;
		newest->writer = rewrite_continue(&rewrite, newest->fresh.fd, &result, err);
	}
	trim_fini(&trim);
	return newest->writer != NULL;
}

// The file becomes the next part that has no file yet: app.tide, app.1.tide if parts is 0
// (trace/parts.h).
static bool rotate(const char *path, uint32_t *parts, struct str *name, struct err *err)
{
	do {
		str_clear(name);
		parts_name(path, ++*parts, name);
	} while (file_look(name->text) != FILE_IS_MISSING);
	return file_rename(path, name->text, false) ||
	       err_errno(err, errno, "cannot rename %s to %s", path, name->text);
}

// Two renames; where the second fails the first is taken back, so that the trace is at its path
// either way.
bool trim_newest_place(struct trim_newest *newest, uint32_t *parts, struct err *err)
{
	const char *path = str_get(&newest->fresh.path);
	struct str name = { 0 };
	bool ok = !parts || rotate(path, parts, &name, err);

	if (ok && !file_rename(str_get(&newest->fresh.temporary), path, true)) {
		ok = err_errno(err, errno, "cannot write %s", path);
		if (parts)
			file_rename(name.text, path, false);
	}
	if (ok)
		str_clear(&newest->fresh.temporary);
	str_fini(&name);
	return ok;
}

struct writer *trim_newest_take(struct trim_newest *newest)
{
	struct writer *writer = newest->writer;

	newest->writer = NULL;
	return writer;
}

void trim_newest_close(struct trim_newest *newest)
{
	writer_free(newest->writer);
	newest->writer = NULL;
	fresh_close(&newest->fresh);
}
