// lanes: each lane has room for one block beside the one that it sends. A block goes to the next
// lane of its shard in turn: so which lane is waited for needs no choice, and no lock is shared.
//
//     push     makes 5 …    hands 4 to lane 0, which still sends 2: waits
//     lane 0   sends 2
//     lane 1   sends 3
//
// Who sends records a block as soon as the server has all of it. Blocks are recorded in any order;
// that what needs all of them comes last is push's business (lanes_wait).
#include "sql/lanes.h"

#include "base/mem.h"
#include "export/rowset.h"
#include "os/random.h"
#include "os/worker.h"
#include "sql/native.h"

#include <inttypes.h>

enum { LANES_EACH = 2 };

struct lane {
	struct worker worker;
	struct clickhouse *clickhouse; // the thread's, as are
	struct native tail;
	struct str text, answer;
	const char *trace, *database;
	struct lanes_block next, now; // under the lock, as are
	bool waiting, sending, failed;
	struct err err;
	struct lanes_result result;
};

struct lanes {
	struct lane *list; // LANES_EACH of each shard
	size_t count, started;
	size_t *turn; // of each shard
};

// ---- one block ----

// One try: with a new number of its part each time, so that a part that came through twice can be
// told from one that did not. The last column is put behind the block and taken off again.
static bool insert(struct lane *lane, struct lanes_block *block, uint64_t *part, struct err *err)
{
	size_t length = block->packed.length;
	bool good;

	if (!random_bytes(part, sizeof *part, err))
		return false;
	str_clear(&lane->tail.raw);
	str_clear(&lane->tail.packed);
	native_constant(&lane->tail, "part", *part, block->rows);
	native_end(&lane->tail);
	str_add_bytes(&block->packed, lane->tail.packed.text, lane->tail.packed.length);
	str_clear(&lane->text);
	str_format(&lane->text, "INSERT INTO %s.%s_rows FORMAT Native", lane->database,
		   block->table);
	str_clear(&lane->answer);
	good = clickhouse_run(lane->clickhouse, lane->text.text, &block->packed, true,
			      &lane->answer, err);
	if (good)
		lane->result.bytes += block->packed.length;
	block->packed.length = length;
	return good;
}

// What makes the block visible: rows of a part that no line of `blocks` names are never shown.
static bool record(struct lane *lane, const struct lanes_block *block, uint64_t part,
		   struct err *err)
{
	str_clear(&lane->text);
	str_format(&lane->text,
		   "INSERT INTO %s.blocks (trace, name, block, part, rows, until, schema_version) "
		   "VALUES ('%s', '%s', %" PRIu64 ", %" PRIu64 ", %zu, toDate(%u), %d)",
		   lane->database, lane->trace, block->table, block->number, part, block->rows,
		   block->until, ROWSET_SCHEMA_VERSION);
	str_clear(&lane->answer);
	return clickhouse_run(lane->clickhouse, lane->text.text, NULL, false, &lane->answer, err);
}

// Rows count once they are recorded. Only the rows are tried again here: what records them is
// small, and clickhouse_run repeats it by itself.
static bool send(struct lane *lane, struct lanes_block *block, struct err *err)
{
	uint64_t part = 0;
	unsigned tries = 0;
	bool good;

	while (!(good = insert(lane, block, &part, err)) &&
	       clickhouse_may_retry(lane->clickhouse) && clickhouse_wait(lane->clickhouse, ++tries))
		lane->result.again++;
	good = good && record(lane, block, part, err);
	if (good)
		lane->result.rows += block->rows;
	return good;
}

// ---- a lane ----

// A thread takes a block, sends it without the lock, and says what came of it. After a failure it
// takes blocks and drops them, so that who makes them is not left waiting.
static void *work(void *context)
{
	struct lane *lane = context;
	struct worker *worker = &lane->worker;

	pthread_mutex_lock(&worker->lock);
	while (true) {
		struct err err = { 0 };
		bool good = !lane->failed;

		while (!lane->waiting && !worker->over)
			pthread_cond_wait(&worker->changed, &worker->lock);
		if (worker->over)
			break;
		lane->now = lane->next;
		lane->next = (struct lanes_block){ 0 };
		lane->waiting = false;
		lane->sending = true;
		pthread_cond_broadcast(&worker->changed);
		pthread_mutex_unlock(&worker->lock);
		// What comes after one that failed is not sent: the push has ended.
		good = !good || send(lane, &lane->now, &err);
		str_fini(&lane->now.packed);
		pthread_mutex_lock(&worker->lock);
		lane->sending = false;
		if (!good) {
			lane->failed = true;
			lane->err = err;
		}
		pthread_cond_broadcast(&worker->changed);
	}
	pthread_mutex_unlock(&worker->lock);
	return NULL;
}

static bool failed(const struct lane *lane, struct err *err)
{
	if (lane->failed)
		*err = lane->err;
	return lane->failed;
}

// Until it has room, or nothing to do at all.
static bool wait_for(struct lane *lane, bool idle, struct err *err)
{
	bool good;

	pthread_mutex_lock(&lane->worker.lock);
	while (lane->waiting || (idle && lane->sending))
		pthread_cond_wait(&lane->worker.changed, &lane->worker.lock);
	good = !failed(lane, err);
	pthread_mutex_unlock(&lane->worker.lock);
	return good;
}

// Where no thread could be started the block is sent at once.
bool lanes_send(struct lanes *lanes, size_t shard, struct lanes_block *block, struct err *err)
{
	size_t number = shard * LANES_EACH + lanes->turn[shard]++ % LANES_EACH;
	struct lane *lane = &lanes->list[number];
	bool good;

	ASSERT(number < lanes->count);
	if (!lane->worker.thread) {
		good = send(lane, block, err);
		str_fini(&block->packed);
		return good;
	}
	good = wait_for(lane, false, err);
	pthread_mutex_lock(&lane->worker.lock);
	lane->next = *block;
	block->packed = (struct str){ 0 };
	lane->waiting = true;
	pthread_cond_broadcast(&lane->worker.changed);
	pthread_mutex_unlock(&lane->worker.lock);
	return good;
}

bool lanes_wait(struct lanes *lanes, struct lanes_result *result, struct err *err)
{
	bool good = true;

	*result = (struct lanes_result){ 0 };
	for (size_t i = 0; i < lanes->count; i++) {
		struct lane *lane = &lanes->list[i];

		if (lane->worker.thread)
			good = wait_for(lane, true, err) && good;
		result->rows += lane->result.rows;
		result->bytes += lane->result.bytes;
		result->again += lane->result.again;
	}
	return good;
}

// Each lane has a connection of its own. `started` counts those that lanes_free has to end.
struct lanes *lanes_new(const struct shards *shards, const char *trace, struct err *err)
{
	struct lanes *lanes = mem_alloc(1, sizeof *lanes);

	lanes->count = shards_count(shards) * LANES_EACH;
	lanes->list = mem_alloc(lanes->count, sizeof *lanes->list);
	lanes->turn = mem_alloc(shards_count(shards), sizeof *lanes->turn);
	for (; lanes->started < lanes->count; lanes->started++) {
		struct lane *lane = &lanes->list[lanes->started];

		lane->trace = trace;
		lane->database = shards_database(shards);
		lane->clickhouse = shards_connect(shards, lanes->started / LANES_EACH, err);
		if (!lane->clickhouse) {
			lanes_free(lanes);
			return NULL;
		}
		worker_start(&lane->worker, work, lane);
	}
	return lanes;
}

void lanes_free(struct lanes *lanes)
{
	if (!lanes)
		return;
	for (size_t i = 0; i < lanes->started; i++) {
		struct lane *lane = &lanes->list[i];

		worker_end(&lane->worker);
		str_fini(&lane->next.packed);
		clickhouse_free(lane->clickhouse);
		native_fini(&lane->tail);
		STR_FINI(&lane->text, &lane->answer);
	}
	MEM_FREE(lanes->list, lanes->turn, lanes);
}
