// remote: fetched traces are in a folder of the user's caches, named by trace and size. They are
// held while this run lasts (kept_hold), so that no other run makes room by removing what is being
// read. 10 GiB of them are kept, or what TIDEMARK_TRACES_MAX says.
#include "cli/remote.h"

#include "base/mem.h"
#include "cli/interrupt.h"
#include "os/file.h"
#include "sql/kept.h"
#include "sql/pull.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TRIES = 3 }; // who asks waits for it

static const uint64_t kept_bytes = (uint64_t)10 << 30; // of traces, and of their indexes

// The paths of this run.
static struct {
	char **paths;
	size_t count, capacity;
} kept;

bool remote_is(const char *word)
{
	return clickhouse_is(word);
}

// "…?trace=X" without it, and X. *wanted points into `word`; "" is any trace, if there is but one.
static bool take_apart(const char *word, struct str *place, const char **wanted, struct err *err)
{
	const char *question = strchr(word, '?');

	*wanted = "";
	if (!question) {
		str_add(place, word);
		return true;
	}
	str_add_bytes(place, word, (size_t)(question - word));
	if (strncmp(question, "?trace=", 7) != 0)
		return err_set(err, ERR_USAGE,
			       "a trace there is clickhouse://HOST:PORT/DATABASE?trace=NUMBER");
	*wanted = question + 7;
	return true;
}

// Left as it is, if the environment does not say.
static bool limit(uint64_t *bytes_max, struct err *err)
{
	const char *text = getenv("TIDEMARK_TRACES_MAX");

	return !text || !*text || str_parse_bytes(text, bytes_max) ||
	       err_set(err, ERR_USAGE, "TIDEMARK_TRACES_MAX is a size such as 10G, not %s", text);
}

// One of another size is another: it was sent anew with more names, say.
static bool fetch(struct pull *pull, struct str *path, struct err *err)
{
	struct str folder = { 0 };
	uint64_t bytes_max = kept_bytes;
	bool named = true, there;

	// The name has the size in it: a trace that was sent again with more names is another file,
	// and the old one goes when room is needed.
	if (!file_cache_folder("traces", path))
		return path->length
			       ? err_set(err, ERR_IO, "cannot make the folder %s", path->text)
			       : err_set(err, ERR_IO, "no folder for caches (HOME is not set)");
	if (!limit(&bytes_max, err))
		return false;
	str_add(&folder, path->text);
	str_format(path, "/%s-%" PRIu64 ".tide", pull_trace(pull), pull_bytes(pull));
	// Held before anything else: from then on no other run removes it.
	there = kept_hold(path->text);
	if (!there)
		kept_make_room(folder.text, pull_bytes(pull), bytes_max);
	str_fini(&folder);
	if (there)
		return true;
	if (!pull_write(pull, path->text, PROGRESS_AUTO, &named, err))
		return false;
	kept_hold(path->text);
	if (!named)
		fprintf(stderr,
			"tidemark: trace %s was cut short: its names are those that this "
			"machine has\n",
			pull_trace(pull));
	return true;
}

// Paths are kept in a list until the end: commands hold on to them as to words of argv.
const char *remote_fetch(const char *word, struct err *err)
{
	struct clickhouse_place place = { .tries = TRIES, .stop = interrupt_came };
	struct str url = { 0 }, path = { 0 };
	struct clickhouse *clickhouse = NULL;
	struct pull *pull = NULL;
	const char *wanted;
	bool good = take_apart(word, &url, &wanted, err);

	ASSERT(word);
	place.url = str_get(&url);
	interrupt_watch();
	good = good && (clickhouse = clickhouse_new(&place, err)) &&
	       (pull = pull_new(clickhouse, wanted, err)) && fetch(pull, &path, err);
	interrupt_leave();
	pull_free(pull);
	clickhouse_free(clickhouse);
	str_fini(&url);
	if (!good) {
		str_fini(&path);
		return NULL;
	}
	MEM_ROOM(kept.paths, kept.capacity, kept.count + 1);
	kept.paths[kept.count] = str_take(&path);
	return kept.paths[kept.count++];
}
