// A trace is found by the beginning of its number, its pieces are listed with the part that counts
// (the least number of those that are recorded for a block, as several tries may have come
// through), and each is fetched by itself: 4 MiB at a time. For example, of a trace of 9 MiB with
// names of one file: pieces "" at 0, 4 and 8 MiB, and "8f3c…" at 0. The first three are the file;
// the last is added to it as a bundle.
#include "sql/pull.h"

#include "base/mem.h"
#include "os/file.h"
#include "sql/pieces.h"
#include "sql/tables.h"
#include "trace/bundle.h"
#include "trace/fresh.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAMED_MAX = 4, DIGITS = 32 };

// `part` is the try that is believed: pieces of other tries may be in the table, too.
struct piece {
	char file[PIECES_FILE_MAX];
	uint64_t at, size, part;
};

struct pull {
	struct clickhouse *clickhouse;
	char trace[DIGITS + 1];
	struct piece *pieces; // of each file, in the order of their places
	size_t count, capacity;
	uint64_t bytes, done;
	struct str sql, answer;
	struct progress progress;
};

// Asks what is in `sql`, and leaves `sql` empty for the next question. What was in `answer` is
// gone.
static bool ask(struct pull *pull, struct err *err)
{
	bool good;

	str_clear(&pull->answer);
	good = clickhouse_run(pull->clickhouse, str_get(&pull->sql), NULL, false, &pull->answer,
			      err);
	str_clear(&pull->sql);
	return good;
}

// ---- which ----

// It goes into SQL between quotes and before a %, so nothing but digits may be in it. "" is good:
// all numbers begin so.
static bool is_beginning(const char *wanted)
{
	size_t length = strlen(wanted);

	return length <= DIGITS && strspn(wanted, "0123456789abcdef") == length;
}

// None or several were found. `several` has the first NAMED_MAX of them; `count` is one more where
// there are others.
static bool refuse(struct pull *pull, const char *wanted, size_t count, const char *several,
		   struct err *err)
{
	const char *database = clickhouse_database(pull->clickhouse);
	const char *more = count > NAMED_MAX ? ", …" : "";

	if (count > 1 && *wanted)
		return err_set(err, ERR_USAGE, "several traces in %s begin with %s: %s%s", database,
			       wanted, several, more);
	if (count > 1)
		return err_set(err, ERR_USAGE, "say which with ?trace=: %s has %s%s", database,
			       several, more);
	if (*wanted)
		return err_set(err, ERR_USAGE, "there is no trace %s in %s", wanted, database);
	return err_set(err, ERR_USAGE, "there is no trace in %s", database);
}

// Of lines of a number each. What the server says is held against the form of a number, since it
// goes into the SQL of all questions to come.
static bool choose(struct pull *pull, const char *wanted, struct err *err)
{
	const char *line = str_get(&pull->answer);
	struct str several = { 0 };
	size_t count = 0;

	// A line each; what is after the last line end is not one.
	for (const char *end; (end = strchr(line, '\n')); line = end + 1) {
		if (end - line != DIGITS || strspn(line, "0123456789abcdef") != DIGITS) {
			str_fini(&several);
			return err_set(err, ERR_IO, "the database names a trace that is none");
		}
		memcpy(pull->trace, line, DIGITS);
		if (count++ < NAMED_MAX)
			str_format(&several, "%s%s", count > 1 ? ", " : "", pull->trace);
	}
	if (count != 1)
		refuse(pull, wanted, count, str_get(&several), err);
	str_fini(&several);
	return count == 1;
}

// One more is asked for than is named: it shows that there are others.
static bool find_trace(struct pull *pull, const char *wanted, struct err *err)
{
	if (!is_beginning(wanted))
		return err_set(err, ERR_USAGE,
			       "?trace= is the number of a trace, or its beginning (0 to 9, a to "
			       "f)");
	str_format(
		&pull->sql,
		"SELECT trace FROM %s.runs WHERE trace LIKE '%s%%' GROUP BY trace ORDER BY trace "
		"LIMIT %d",
		clickhouse_database(pull->clickhouse), wanted, NAMED_MAX + 1);
	return ask(pull, err) && choose(pull, wanted, err);
}

// ---- its pieces ----

// Pieces must follow each other without a gap, and are of our size at most: a list is not trusted.
static bool take_piece(struct pull *pull, const char *line, struct err *err)
{
	struct piece piece = { 0 };
	const char *tab = strchr(line, '\t');
	const struct piece *last = pull->count ? &pull->pieces[pull->count - 1] : NULL;
	uint64_t end;

	if (!tab || (size_t)(tab - line) >= sizeof piece.file ||
	    sscanf(tab, "%" SCNu64 "%" SCNu64 "%" SCNu64, &piece.at, &piece.size, &piece.part) != 3)
		return err_set(err, ERR_IO, "the database's list of pieces is damaged");
	memcpy(piece.file, line, (size_t)(tab - line));
	// A new file begins at 0; in a file each piece begins where the last one ended.
	end = last && strcmp(last->file, piece.file) == 0 ? last->at + last->size : 0;
	if (piece.at != end || piece.size == 0 || piece.size > PIECES_SIZE)
		return err_set(err, ERR_IO, "a piece of trace %s is missing there", pull->trace);
	*MEM_ADD(pull->pieces, pull->count, pull->capacity) = piece;
	pull->bytes += piece.size;
	return true;
}

// `file` sorts "" first, so the pieces of the trace itself come before those of names. Blocks whose
// last day (`until`) is over do not count: a server may have deleted their rows.
static bool list_pieces(struct pull *pull, struct err *err)
{
	const char *database = clickhouse_database(pull->clickhouse);

	str_format(
		&pull->sql,
		"SELECT file, at, size, part FROM %s.pieces_rows WHERE trace = '%s' AND part "
		"GLOBAL IN (SELECT min(part) FROM %s.blocks WHERE trace = '%s' AND name = 'pieces' "
		"AND until >= today() GROUP BY block) ORDER BY file, at",
		database, pull->trace, database, pull->trace);
	if (!ask(pull, err))
		return false;
	for (const char *line = str_get(&pull->answer), *end; (end = strchr(line, '\n'));
	     line = end + 1)
		if (!take_piece(pull, line, err))
			return false;
	if (pull->count == 0 || pull->pieces[0].file[0] != '\0')
		return err_set(
			err, ERR_IO,
			"the file of trace %s is not there: it was sent to be kept for a time "
			"(--ttl), or while it was recorded, which has not ended or cut the file "
			"(--spool): ask its rows in SQL, or push it again",
			pull->trace);
	return true;
}

struct pull *pull_new(struct clickhouse *clickhouse, const char *wanted, struct err *err)
{
	struct pull *pull = mem_alloc(1, sizeof *pull);

	pull->clickhouse = clickhouse;
	if (tables_check(clickhouse, err) && find_trace(pull, wanted, err) &&
	    list_pieces(pull, err))
		return pull;
	pull_free(pull);
	return NULL;
}

void pull_free(struct pull *pull)
{
	if (!pull)
		return;
	mem_free(pull->pieces);
	STR_FINI(&pull->sql, &pull->answer);
	mem_free(pull);
}

const char *pull_trace(const struct pull *pull)
{
	return pull->trace;
}

uint64_t pull_bytes(const struct pull *pull)
{
	return pull->bytes;
}

// ---- the file ----

// Its bytes, in the answer: a length of seven bits a byte is before them.
static const char *read_piece(struct pull *pull, const struct piece *piece, struct err *err)
{
	const unsigned char *bytes;
	uint64_t length = 0;
	unsigned shift = 0;
	size_t at = 0;

	str_format(&pull->sql,
		   "SELECT bytes FROM %s.pieces_rows WHERE trace = '%s' AND file = '%s' AND at = "
		   "%" PRIu64 " AND part = %" PRIu64 " FORMAT RowBinary",
		   clickhouse_database(pull->clickhouse), pull->trace, piece->file, piece->at,
		   piece->part);
	if (!ask(pull, err))
		return NULL;
	bytes = (const unsigned char *)str_get(&pull->answer);
	// For example 4 MiB: 80 80 80 02, which is 2 << 21.
	do
		length |= (uint64_t)(bytes[at] & 0x7f) << shift;
	while ((bytes[at++] & 0x80) && (shift += 7) < 35 && at < pull->answer.length);
	if (length != piece->size || pull->answer.length - at != length) {
		err_set(err, ERR_IO, "a piece of trace %s has another size than it had",
			pull->trace);
		return NULL;
	}
	pull->done += piece->size;
	progress_update(&pull->progress, pull->done);
	return (const char *)bytes + at;
}

// The pieces of a file, from the first on. How many there were; 0 with *err.
// Into `out`, or where that is NULL into the file.
static size_t read_file(struct pull *pull, size_t first, int fd, struct str *out, struct err *err)
{
	const char *file = pull->pieces[first].file;
	size_t i = first;

	for (; i < pull->count && strcmp(pull->pieces[i].file, file) == 0; i++) {
		const struct piece *piece = &pull->pieces[i];
		const char *bytes = read_piece(pull, piece, err);

		if (!bytes)
			return 0;
		if (out)
			str_add_bytes(out, bytes, piece->size);
		else if (!file_write_all(fd, bytes, piece->size, err))
			return 0;
	}
	return i - first;
}

// The names of one file at a time, all of which are in memory: a bundle takes a file as a whole.
static bool add_names(struct pull *pull, size_t first, struct bundle *bundle, struct err *err)
{
	uint8_t label[PIECES_LABEL_MAX];
	struct str bytes = { 0 };
	bool good = true;

	while (first < pull->count && good) {
		size_t length = pieces_label(pull->pieces[first].file, label);
		size_t count;

		str_clear(&bytes);
		count = read_file(pull, first, -1, &bytes, err);
		good = count > 0 && (length > 0 || err_set(err, ERR_IO, "names of no file")) &&
		       bundle_add(bundle, label, length, bytes.text, bytes.length, err);
		first += count;
	}
	str_fini(&bytes);
	return good && bundle_end(bundle, err);
}

// A trace that was cut cannot take a bundle: it is whole without one, and *named says so.
static bool write_fresh(struct pull *pull, struct fresh *fresh, bool *named, struct err *err)
{
	// The pieces of the trace itself are first (its name is ""), names of files after them.
	size_t first = read_file(pull, 0, fresh->fd, NULL, err);
	struct err unended = { 0 };
	struct bundle *bundle;
	bool good;

	// A trace without names has all that it was sent with.
	*named = first == pull->count;
	if (first == 0 || *named)
		return first > 0;
	bundle = bundle_begin(str_get(&fresh->temporary), &unended);
	*named = bundle != NULL;
	good = !bundle || add_names(pull, first, bundle, err);
	bundle_free(bundle);
	return good;
}

bool pull_write(struct pull *pull, const char *path, enum progress_mode mode, bool *named,
		struct err *err)
{
	struct fresh fresh = { .fd = -1 };
	bool good;

	if (!fresh_open(&fresh, path, true, err))
		return false;
	progress_begin(&pull->progress, mode, "fetching", pull->bytes);
	good = write_fresh(pull, &fresh, named, err) && fresh_keep(&fresh, err);
	progress_end(&pull->progress);
	fresh_close(&fresh);
	return good || err_wrap(err, "cannot fetch the trace to %s", path);
}
