// What is sent of an epoch, and how it is numbered. A block of final rows bears:
//
//     allocations                        the place after its last row (push_live.h)
//     stacks, frames, modules, marks     how many there are then, times 1024, and a count
//     rss                                the time after the last one
//     all others                         1, and a count: they are sent at the end
//
// None is 0, which is the first of each table that is sent as a whole (push.h): so it shows which
// way a trace was begun to be sent.
//
// A block of a picture is number n * 2^48 + generation beyond 2^63. Of each n the one of the
// greatest generation is seen (tables.h), so a picture that has fewer blocks than the last one
// records empty ones in their stead.
#include "sql/push_live_own.h"

#include "base/mem.h"
#include "os/file.h"
#include "os/now.h"
#include "os/random.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

// An example: 70 stacks are defined at the end of the first epoch, 90 at that of the second, each
// in one batch. The blocks are 70 * 1024 = 71,680 and 92,160. Who goes on reads 92,160 / 1024 = 90
// from the greatest and sends stack 91 next.
enum { COUNTS = 1024, STALE_MIN = 100000, AWAY_NS = 250000000, AWAY_TIMES = 4 };

static const enum rowset_table_id growing[] = { ROWSET_STACKS, ROWSET_FRAMES, ROWSET_MODULES,
						ROWSET_MARKS };
static const enum rowset_table_id pictured[] = { ROWSET_PROCESSES, ROWSET_THREADS, ROWSET_SITES,
						 ROWSET_RUNS };

// Defined so far, without number 0 of each, which is "none" and in no table.
static uint32_t count_of(const struct push_live *live, enum rowset_table_id id)
{
	const struct reader *reader = live->asked.reader;
	size_t marks;

	switch (id) {
	case ROWSET_STACKS:
		return reader_stacks_count(reader) - 1;
	case ROWSET_FRAMES:
		return reader_frames_count(reader) - 1;
	case ROWSET_MODULES:
		return reader_modules_count(reader) - 1;
	default:
		reader_marks(reader, &marks);
		return (uint32_t)marks;
	}
}

static uint64_t picture_block(const struct push_live *live, unsigned part)
{
	return TABLES_PICTURE + part * TABLES_GENERATIONS + live->generation;
}

// Counts as it goes: each call is one block.
static uint64_t block_of(struct push_live *live, enum rowset_table_id id)
{
	ASSERT(id < ROWSET_TABLES);
	if (live->picture)
		return picture_block(live, live->parts[id]++);
	switch (id) {
	case ROWSET_ALLOCATIONS:
		return live->next;
	case ROWSET_STACKS:
	case ROWSET_FRAMES:
	case ROWSET_MODULES:
	case ROWSET_MARKS:
		return (uint64_t)count_of(live, id) * COUNTS + live->in_table++;
	case ROWSET_RSS:
		return live->last_rss + live->in_table++;
	default:
		return 1 + live->in_table++;
	}
}

// ---- sending ----

// By a recorder that lives: it holds a claim on the file.
static bool is_written(const char *path)
{
	int fd = file_open(path, FILE_READ);
	bool claimed = fd >= 0 && file_is_claimed(fd);

	file_close(fd);
	return claimed;
}

static bool may_retry(const struct push_live *live)
{
	for (size_t i = 0; i < shards_count(live->shards); i++)
		if (clickhouse_may_retry(shards_server(live->shards, i)))
			return true;
	return false;
}

// While the recording goes on, there is time: what comes waits in the file.
// Waits and says whether to try another time. Without a recorder the tries are few and further
// apart each time; with one they go on without end, each second, until `stop`. The user is told
// once per failure, not per try.
static bool try_again(struct push_live *live, unsigned *tries, const struct err *err)
{
	const struct push_live_options *options = live->options;

	if (!may_retry(live) || options->stop(NULL))
		return false;
	live->result->tries_again++;
	if (!options->follow || !is_written(options->path))
		return clickhouse_wait(live->clickhouse, ++*tries);
	if (!live->told_away) {
		str_clear(&live->answer);
		str_format(&live->answer, "%s; what is recorded waits in %s", err->text,
			   options->path);
		options->say(str_get(&live->answer));
	}
	live->told_away = true;
	for (unsigned i = 0; i < AWAY_TIMES && !options->stop(NULL); i++)
		now_sleep(AWAY_NS);
	return !options->stop(NULL);
}

static bool run_once(struct push_live *live, const struct str *bytes, struct err *err)
{
	*err = (struct err){ 0 };
	str_clear(&live->answer);
	return clickhouse_run(live->clickhouse, str_get(&live->sql), bytes, true, &live->answer,
			      err);
}

// Until it is there. A statement that may be made twice.
static bool run(struct push_live *live, struct err *err)
{
	unsigned tries = 0;
	bool good;

	while (!(good = run_once(live, NULL, err)) && try_again(live, &tries, err))
		;
	return good;
}

static enum rowset_table_id id_of(const struct rowset_batch *batch)
{
	return (enum rowset_table_id)(batch->table - rowset_tables);
}

static unsigned until_of(const struct push_live *live, enum rowset_table_id id)
{
	return tables_until(id, live->day, live->options->keep_days);
}

static void pack(struct push_live *live, const struct rowset_batch *batch, uint64_t part)
{
	struct native *native = &live->native;

	native_begin(native, batch->table->columns_count + 2, batch->count);
	for (unsigned i = 0; i < batch->table->columns_count; i++)
		tables_put_column(native, batch, i, batch->values[i]);
	native_date(native, "until", until_of(live, id_of(batch)), batch->count);
	native_constant(native, "part", part, batch->count);
	native_end(native);
}

// One line of the statement that will record the epoch, and of a picture the part's number for the
// sweep.
static void put_record(struct push_live *live, enum rowset_table_id id, uint64_t block,
		       uint64_t part, size_t rows)
{
	ASSERT(id < ROWSET_TABLES);
	str_format(&live->records, "%s('%s', '%s', %" PRIu64 ", %" PRIu64 ", %zu, toDate(%u), %d)",
		   live->records.length ? ", " : "", live->trace, rowset_tables[id].name, block,
		   part, rows, until_of(live, id), ROWSET_SCHEMA_VERSION);
	if (block >= TABLES_PICTURE)
		str_format(&live->kept, "%s%" PRIu64, live->kept.length ? ", " : "", part);
}

// A batch is a part with a number at random: another one in each try.
// Rows of a try that failed half way stay on the server under a number that is never recorded, so
// no view shows them; the TTL takes them away.
static bool send(struct push_live *live, const struct rowset_batch *batch, uint64_t block,
		 struct err *err)
{
	uint64_t part = 0;
	unsigned tries = 0;

	ASSERT(batch->count <= ROWSET_BATCH);
	for (;;) {
		if (!random_bytes(&part, sizeof part, err))
			return false;
		pack(live, batch, part);
		str_clear(&live->sql);
		str_format(&live->sql, "INSERT INTO %s.%s_rows FORMAT Native",
			   shards_database(live->shards), batch->table->name);
		if (run_once(live, &live->native.packed, err))
			break;
		if (!try_again(live, &tries, err))
			return false;
	}
	put_record(live, id_of(batch), block, part, batch->count);
	live->result->rows_sent += batch->count;
	live->result->bytes_sent += live->native.packed.length;
	return true;
}

static bool begin_table(void *context, const struct rowset_table *, struct err *)
{
	struct push_live *live = context;

	live->in_table = 0;
	return true;
}

static bool add_batch(void *context, const struct rowset_batch *batch, struct err *err)
{
	struct push_live *live = context;
	uint64_t block = block_of(live, id_of(batch));

	(void)err; // not given for a batch that fills while events are read
	if (live->picture)
		live->picture_rows += batch->count;
	live->failed = live->failed || !send(live, batch, block, &live->err);
	return !live->failed;
}

// ---- an epoch ----

// What was defined since the last epoch. Tables that only grow are sent from where they were left;
// labels once, since they are of the command line; samples as they came.
static bool send_growing(struct push_live *live, struct err *err)
{
	for (size_t i = 0; i < sizeof growing / sizeof *growing; i++) {
		uint32_t count = count_of(live, growing[i]);
		uint32_t *counted = &live->counted[growing[i]];

		if (count > *counted && !rowset_table(live->rowset, growing[i], *counted + 1, err))
			return false;
		if (count > *counted)
			*counted = count;
	}
	if (!live->counted[ROWSET_LABELS] && !rowset_table(live->rowset, ROWSET_LABELS, 1, err))
		return false;
	live->counted[ROWSET_LABELS] = 1;
	return rowset_table(live->rowset, ROWSET_RSS, 1, err);
}

// The end that a block of a picture is given: it lives, as of now.
static struct lives_end running(const struct push_live *live)
{
	return (struct lives_end){
		.cause = LIVES_RUNNING,
		.number = live->next_number,
		.time_ns = live->now_ns,
		.thread = TRACE_NONE,
	};
}

static void put_open(void *context, const struct lives_block *block)
{
	struct push_live *live = context;
	const struct lives_end end = running(live);

	if (block->origin == LIVES_BEGUN)
		rowset_life(live->rowset, block, &end);
}

static bool send_pictured(struct push_live *live, struct err *err)
{
	for (size_t i = 0; i < sizeof pictured / sizeof *pictured; i++)
		if (!rowset_table(live->rowset, pictured[i], 1, err))
			return false;
	return true;
}

// The sums of the sites are put aside and brought back, since blocks of a picture are counted in
// them for this picture only.
static bool send_picture(struct push_live *live, struct err *err)
{
	struct rowset_sites sites;
	bool good;

	ASSERT(!live->picture && !live->final);
	live->picture = true;
	live->picture_rows = 0;
	rowset_aside(live->rowset, &sites);
	lives_each(live->lives, put_open, live);
	for (size_t i = 0; i < live->halves_count; i++)
		if (live->halves[i].open)
			put_open(live, &live->halves[i].block);
	good = rowset_flush(live->rowset, err) && send_pictured(live, err);
	rowset_aside(live->rowset, NULL);
	rowset_sites_fini(&sites);
	live->picture = false;
	return good;
}

// The last picture had five blocks of a table and this one three: numbers 3 and 4 are recorded with
// no rows, else the old ones would be seen still.
static bool put_empty(struct push_live *live, struct err *err)
{
	for (enum rowset_table_id id = 0; id < ROWSET_TABLES; id++)
		for (unsigned i = live->parts[id]; i < live->parts_before[id]; i++) {
			uint64_t part;

			if (!random_bytes(&part, sizeof part, err))
				return false;
			put_record(live, id, picture_block(live, i), part, 0);
		}
	return true;
}

// No other has sent of this recording since the last epoch: a copy of the file may be elsewhere.
// Rows of `runs` are on this shard, also of a trace that was sent as a whole.
static bool is_alone(struct push_live *live, struct err *err)
{
	uint64_t count, last;

	str_clear(&live->sql);
	str_format(&live->sql,
		   "SELECT count(), max(block) FROM %s.blocks WHERE trace = '%s' AND name = 'runs'",
		   shards_database(live->shards), live->trace);
	if (!run(live, err))
		return false;
	if (sscanf(str_get(&live->answer), "%" SCNu64 "\t%" SCNu64, &count, &last) != 2)
		return err_set(err, ERR_IO, "the database's list of blocks makes no sense");
	if (live->generation > 1 && !count)
		return err_set(err, ERR_IO,
			       "the database has nothing of this recording any more: its tables "
			       "were emptied, or another server answers at its address");
	return (live->generation > 1 ? last == TABLES_PICTURE + live->generation - 1 : !count) ||
	       err_set(err, ERR_IO, "this recording is being sent by another tidemark push");
}

// All of a trace goes on one day, the definitions that later rows need with those of the first.
static bool is_seen(const struct push_live *live, struct err *err)
{
	return until_of(live, ROWSET_ALLOCATIONS) >= tables_day(now_wall_ns()) ||
	       err_set(err, ERR_IO,
		       "the trace began more than %u days ago: what is sent of it would not be "
		       "seen (try: record --rotate 1h)",
		       live->options->keep_days);
}

// The moment at which the epoch becomes visible, whole. A statement that was made twice records the
// same parts twice, which the views' min() takes as one.
static bool record(struct push_live *live, struct err *err)
{
	if (!is_seen(live, err) || !is_alone(live, err))
		return false;
	str_clear(&live->sql);
	str_format(&live->sql,
		   "INSERT INTO %s.blocks (trace, name, block, part, rows, until, schema_version) "
		   "VALUES ",
		   shards_database(live->shards));
	str_add(&live->sql, str_get(&live->records));
	if (!run(live, err))
		return false;
	str_clear(&live->records);
	memcpy(live->parts_before, live->parts, sizeof live->parts);
	memset(live->parts, 0, sizeof live->parts);
	if (live->told_away)
		live->options->say("the server answers again");
	live->told_away = false;
	return true;
}

// Pictures that no query uses any more; the last but one may still be read by who asked before.
// Deletes on the server are expensive (they rewrite files), so they wait until there is much to
// delete: 100,000 rows and eight pictures. One that fails is told and no error: what is stale is
// not seen anyway.
static void sweep(struct push_live *live)
{
	static const char *const tables[] = { "allocations_rows", "processes_rows", "threads_rows",
					      "sites_rows",       "runs_rows",      "blocks" };
	struct err err = { 0 };
	bool good = true, due;

	live->stale_rows += live->picture_rows;
	due = live->stale.length > 0 &&
	      (live->final || live->stale_rows >= STALE_MIN + 8 * live->picture_rows);
	for (size_t i = 0; i < sizeof tables / sizeof *tables && good && due; i++) {
		str_clear(&live->sql);
		str_format(&live->sql,
			   "ALTER TABLE %s.%s DELETE WHERE trace = '%s' AND part IN (%s)",
			   shards_database(live->shards), tables[i], live->trace,
			   str_get(&live->stale));
		good = run_once(live, NULL, &err);
	}
	if (!good)
		live->options->say(err.text);
	if (due) {
		live->stale_rows = 0;
		str_clear(&live->stale);
	}
	if (live->last_kept.length > 0)
		str_format(&live->stale, "%s%s", live->stale.length ? ", " : "",
			   live->last_kept.text);
	str_clear(&live->last_kept);
	str_add(&live->last_kept, str_get(&live->kept));
	str_clear(&live->kept);
}

bool push_live_send_epoch(struct push_live *live, struct err *err)
{
	bool good;

	ASSERT(live->rowset && live->clickhouse);
	live->generation++;
	good = rowset_flush(live->rowset, err) && send_growing(live, err) &&
	       (live->final ? send_pictured(live, err) : send_picture(live, err)) &&
	       put_empty(live, err) && record(live, err);
	if (good)
		sweep(live);
	else if (live->failed)
		*err = live->err;
	return good;
}

// ---- what is there ----

// Each statement of tables_make is tried again by itself, so that this is done again only while the
// recording goes on.
bool push_live_send_tables(struct push_live *live, struct err *err)
{
	const struct push_live_options *options = live->options;
	unsigned tries = 0;
	bool good, ages;

	do
		*err = (struct err){ 0 };
	while (!(good = tables_make(live->shards, &ages, err)) && options->follow &&
	       is_written(options->path) && try_again(live, &tries, err));
	if (good && live->options->keep_days && !ages && !live->result->rows_sent) {
		str_clear(&live->answer);
		tables_tell_no_ages(live->options->keep_days, &live->answer);
		live->options->say(str_get(&live->answer));
	}
	return good;
}

// One line for each table: its name, its least block, the greatest final one, and of pictures the
// greatest generation and how many blocks of it there are.
static bool ask(struct push_live *live, struct err *err)
{
	str_clear(&live->sql);
	str_format(&live->sql,
		   "SELECT name, min(block), max(if(block < %" PRIu64
		   ", block, 0)), max(if(block < %" PRIu64 ", 0, block %% %" PRIu64
		   ")), max(if(block < %" PRIu64 ", 0, 1 + intDiv(block - %" PRIu64 ", %" PRIu64
		   "))) FROM %s.blocks WHERE trace = '%s' AND until >= today() AND name != "
		   "'pieces' GROUP BY name",
		   TABLES_PICTURE, TABLES_PICTURE, TABLES_GENERATIONS, TABLES_PICTURE,
		   TABLES_PICTURE, TABLES_GENERATIONS, clickhouse_database(live->clickhouse),
		   live->trace);
	str_clear(&live->answer);
	return run(live, err);
}

// Numbers from the server are not trusted: what cannot be is refused. A table whose least block is
// 0 was sent as a whole trace, and its `runs` are the last of that.
static bool take_known(struct push_live *live, const char *line, struct err *err)
{
	uint64_t first, last, generation, parts;
	char name[32];
	enum rowset_table_id id;

	if (sscanf(line, "%31s\t%" SCNu64 "\t%" SCNu64 "\t%" SCNu64 "\t%" SCNu64, name, &first,
		   &last, &generation, &parts) != 5 ||
	    (id = rowset_find(name)) == ROWSET_TABLES || parts > UINT16_MAX ||
	    generation >= TABLES_GENERATIONS - 1)
		return err_set(err, ERR_IO, "the database's list of blocks makes no sense");
	live->plain = live->plain || first == 0;
	if (id == ROWSET_RUNS && first == 0)
		live->whole = true;
	if (generation > live->generation)
		live->generation = generation;
	live->parts_before[id] = (unsigned)parts;
	live->counted[id] = (uint32_t)(last / COUNTS);
	switch (id) {
	case ROWSET_ALLOCATIONS:
		live->known = last;
		break;
	case ROWSET_RSS:
		live->known_rss = live->last_rss = last;
		break;
	case ROWSET_RUNS:
		live->whole = live->whole || last > 0;
		break;
	case ROWSET_LABELS:
		live->counted[id] = last > 0;
		break;
	default:
		break;
	}
	return true;
}

bool push_live_send_known(struct push_live *live, struct err *err)
{
	const char *line;
	bool good = ask(live, err);

	for (line = str_get(&live->answer); good && *line;) {
		size_t length = strcspn(line, "\n");

		good = take_known(live, line, err);
		line += length + (line[length] == '\n');
	}
	if (good && live->plain && (!live->whole || reader_growing(live->asked.reader)))
		return err_set(err, ERR_IO,
			       "a copy of this recording was sent there as a whole trace");
	return good;
}

bool push_live_is(struct shards *shards, const struct reader *reader, bool *is, struct err *err)
{
	struct clickhouse *clickhouse = shards_server(shards, 0);
	struct str sql = { 0 }, answer = { 0 };
	char trace[33];
	bool good;

	rowset_trace_name(reader, trace);
	str_format(
		&sql,
		"SELECT count() FROM %s.blocks WHERE trace = '%s' AND name = 'runs' AND block > 0",
		clickhouse_database(clickhouse), trace);
	good = clickhouse_run(clickhouse, sql.text, NULL, false, &answer, err);
	*is = good && strcmp(str_get(&answer), "0\n") != 0;
	STR_FINI(&sql, &answer);
	return good;
}

void push_live_send_init(struct push_live *live)
{
	live->receiver = (struct rowset_receiver){ begin_table, add_batch, NULL, live };
}

void push_live_send_fini(struct push_live *live)
{
	native_fini(&live->native);
	STR_FINI(&live->sql, &live->answer, &live->records, &live->kept, &live->stale,
		 &live->last_kept);
}
