// A batch has an operation for each step, and times and numbers of events only where they do not
// follow from the step before. For example, of the steps 0, 1 and 2 of a batch, at the times 10,
// 10 and 12, by the events 5, 6 and 9:
//
//     runs     0: 10    2: 12    a new time
//     jumps    0: 5     2: 9     a number that is not the last one and 1
//
// A full batch goes to the thread that stores it, and the next of a few is filled meanwhile; where
// no thread could be made, it is stored here.
#include "engine/index/index_feed.h"

#include "base/mem.h"

// The thread that writes: full blocks in their order, while the next ones are being filled.
static void *store_batches(void *context)
{
	struct index_feed *feed = context;

	pthread_mutex_lock(&feed->worker.lock);
	for (;;) {
		while (feed->given == feed->taken && !feed->worker.over)
			pthread_cond_wait(&feed->worker.changed, &feed->worker.lock);
		if (feed->given == feed->taken)
			break;
		pthread_mutex_unlock(&feed->worker.lock);
		index_store_add(feed->store, &feed->batches[feed->taken % INDEX_FEED_BATCHES]);
		pthread_mutex_lock(&feed->worker.lock);
		feed->taken++;
		feed->store_bytes = index_store_bytes(feed->store);
		pthread_cond_broadcast(&feed->worker.changed);
	}
	pthread_mutex_unlock(&feed->worker.lock);
	return NULL;
}

static void open_batch(struct index_feed *feed)
{
	struct index_batch *batch = &feed->batches[feed->given % INDEX_FEED_BATCHES];

	batch->first = feed->step;
	batch->count = batch->runs_count = batch->jumps_count = batch->exits_count = 0;
	batch->addresses_count = 0;
	feed->open = batch;
}

void index_feed_start(struct index_feed *feed, struct index_store *store)
{
	*feed = (struct index_feed){ .store = store,
				     .full = 1u << store->shape.block_log2,
				     .store_bytes = index_store_bytes(store) };
	for (unsigned i = 0; i < INDEX_FEED_BATCHES; i++)
		index_batch_init(&feed->batches[i], &store->shape);
	worker_start(&feed->worker, store_batches, feed);
	open_batch(feed);
}

// Give the open batch to the thread, and wait for one that is free.
static void hand_over(struct index_feed *feed)
{
	ASSERT(feed->open && feed->open->count > 0);
	if (!feed->worker.thread) {
		index_store_add(feed->store, feed->open);
		open_batch(feed);
		return;
	}
	pthread_mutex_lock(&feed->worker.lock);
	feed->given++;
	pthread_cond_broadcast(&feed->worker.changed);
	while (feed->given - feed->taken >= INDEX_FEED_BATCHES)
		pthread_cond_wait(&feed->worker.changed, &feed->worker.lock);
	pthread_mutex_unlock(&feed->worker.lock);
	open_batch(feed);
}

// Until all that was handed over is stored. What is in the open batch is not.
void index_feed_rest(struct index_feed *feed)
{
	if (!feed->worker.thread)
		return;
	pthread_mutex_lock(&feed->worker.lock);
	while (feed->given != feed->taken)
		pthread_cond_wait(&feed->worker.changed, &feed->worker.lock);
	pthread_mutex_unlock(&feed->worker.lock);
}

uint64_t index_feed_bytes(struct index_feed *feed)
{
	uint64_t bytes;

	if (!feed->worker.thread)
		return index_store_bytes(feed->store);
	pthread_mutex_lock(&feed->worker.lock);
	bytes = feed->store_bytes;
	pthread_mutex_unlock(&feed->worker.lock);
	return bytes;
}

// The number of the step. A run of time or a jump of numbers is noted only where it is not what
// counting on makes.
static uint64_t add(struct index_feed *feed, uint32_t op, uint64_t begin)
{
	struct index_batch *batch = feed->open;
	uint32_t at = batch->count;

	ASSERT(batch->count < feed->full);
	batch->ops[at] = op;
	batch->begins[at] = begin;
	if (at == 0 || feed->time_ns != feed->last_time_ns)
		batch->runs[batch->runs_count++] = (struct index_run){ at, feed->time_ns };
	if (at == 0 || feed->number != feed->last_number + 1)
		batch->jumps[batch->jumps_count++] = (struct index_run){ at, feed->number };
	feed->last_time_ns = feed->time_ns;
	feed->last_number = feed->number;
	if (++batch->count == feed->full) {
		feed->step++;
		hand_over(feed);
		return feed->step - 1;
	}
	return feed->step++;
}

uint64_t index_feed_begin(struct index_feed *feed, uint32_t cell)
{
	return add(feed, cell << 1, 0);
}

// Addresses are kept of lifetimes alone that get a place in the long files: the store takes them in
// the same order, by the same measure.
uint64_t index_feed_end(struct index_feed *feed, uint32_t cell, uint64_t begin, uint64_t address)
{
	struct index_batch *batch = feed->open;

	if ((feed->step - begin) >> feed->store->shape.long_log2) {
		*MEM_ADD(batch->addresses, batch->addresses_count, batch->addresses_capacity) =
			address;
	}
	return add(feed, cell << 1 | 1, begin);
}

uint64_t index_feed_orphan(struct index_feed *feed, uint32_t cell)
{
	return add(feed, cell << 1 | 1, 0);
}

uint64_t index_feed_nothing(struct index_feed *feed)
{
	return add(feed, 0, 0);
}

// The end of a process is a step of its own, in which nothing else happens.
uint64_t index_feed_exit(struct index_feed *feed, process_id process)
{
	struct index_batch *batch = feed->open;

	*MEM_ADD(batch->exits, batch->exits_count, batch->exits_capacity) =
		(struct index_run){ batch->count, process };
	return add(feed, 0, 0);
}

void index_feed_finish(struct index_feed *feed)
{
	ASSERT(feed->open);
	if (feed->open->count > 0)
		hand_over(feed);
	worker_end(&feed->worker);
	for (unsigned i = 0; i < INDEX_FEED_BATCHES; i++)
		index_batch_fini(&feed->batches[i]);
	*feed = (struct index_feed){ 0 };
}
