// A few blocks are kept, in no order. Who wants one gets the smallest that is large enough and at
// most three times as large. Where there are too many, the smallest go: a large one costs most to
// clear.
// For example, with a limit of 64 MB, 11, 11 and 17 MB are kept and 43 MB are put: that makes 82,
// so the two of 11 MB are freed.
//
// What is lent has a list of its own: one of 17 MB may be lent to who wants 11, and is still one of
// 17 when it comes back.
#include "engine/index/index_tables.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdint.h>

enum { LEAST = 1 << 20, KEPT_MAX = 8, LARGER = 3 };

struct kept {
	void *at;
	size_t size; // all of it, whatever was asked for
};

struct index_tables {
	pthread_mutex_t lock;
	size_t limit, taken, sum; // bytes: of all; in use; kept
	struct kept kept[KEPT_MAX];
	unsigned count;
	struct kept *lent; // in no order
	size_t lent_count, lent_capacity;
};

struct index_tables *index_tables_new(void)
{
	struct index_tables *tables = mem_alloc(1, sizeof *tables);

	pthread_mutex_init(&tables->lock, NULL);
	return tables;
}

// Of one, which is no longer kept.
static struct kept remove_kept(struct index_tables *tables, unsigned at)
{
	struct kept kept = tables->kept[at];

	ASSERT(at < tables->count && kept.size <= tables->sum);
	tables->kept[at] = tables->kept[--tables->count];
	tables->sum -= kept.size;
	return kept;
}

static unsigned find_smallest(const struct index_tables *tables)
{
	unsigned smallest = 0;

	for (unsigned i = 1; i < tables->count; i++)
		if (tables->kept[i].size < tables->kept[smallest].size)
			smallest = i;
	return smallest;
}

static void shrink(struct index_tables *tables, size_t most_bytes)
{
	while (tables->sum > most_bytes)
		mem_free(remove_kept(tables, find_smallest(tables)).at);
}

void index_tables_free(struct index_tables *tables)
{
	if (!tables)
		return;
	shrink(tables, 0);
	pthread_mutex_destroy(&tables->lock);
	MEM_FREE(tables->lent, tables);
}

// What is in use may be more than the limit.
static size_t room_for_kept(const struct index_tables *tables)
{
	return tables->limit > tables->taken ? tables->limit - tables->taken : 0;
}

void index_tables_limit(struct index_tables *tables, size_t most_bytes)
{
	pthread_mutex_lock(&tables->lock);
	tables->limit = most_bytes;
	shrink(tables, room_for_kept(tables));
	pthread_mutex_unlock(&tables->lock);
}

void index_tables_empty(struct index_tables *tables)
{
	if (!tables)
		return;
	pthread_mutex_lock(&tables->lock);
	shrink(tables, 0);
	pthread_mutex_unlock(&tables->lock);
}

size_t index_tables_kept(struct index_tables *tables)
{
	size_t bytes;

	pthread_mutex_lock(&tables->lock);
	bytes = tables->sum;
	pthread_mutex_unlock(&tables->lock);
	return bytes;
}

// The smallest that fits, or { 0 }.
static struct kept take_kept(struct index_tables *tables, size_t size)
{
	struct kept best = { 0 };
	unsigned at = 0;

	for (unsigned i = 0; i < tables->count; i++) {
		struct kept one = tables->kept[i];

		if (one.size < size || one.size / LARGER > size ||
		    (best.at && best.size <= one.size))
			continue;
		best = one;
		at = i;
	}
	return best.at ? remove_kept(tables, at) : best;
}

void *index_tables_take(struct index_tables *tables, size_t count, size_t size_bytes)
{
	struct kept one;
	size_t size;

	if (__builtin_mul_overflow(count, size_bytes, &size))
		mem_none(count, size_bytes);
	if (!tables || size < LEAST)
		return mem_resize(NULL, count, size_bytes);
	pthread_mutex_lock(&tables->lock);
	one = take_kept(tables, size);
	tables->taken += one.at ? one.size : size;
	shrink(tables, room_for_kept(tables));
	if (!one.at)
		one = (struct kept){ mem_raw_table(count, size_bytes), size };
	*MEM_ADD(tables->lent, tables->lent_count, tables->lent_capacity) = one;
	pthread_mutex_unlock(&tables->lock);
	return one.at;
}

// Of a table that is no longer lent. 0: it was not.
static size_t end_loan(struct index_tables *tables, const void *table)
{
	for (size_t i = 0; i < tables->lent_count; i++) {
		size_t size = tables->lent[i].size;

		if (tables->lent[i].at != table)
			continue;
		tables->lent[i] = tables->lent[--tables->lent_count];
		ASSERT(size <= tables->taken);
		tables->taken -= size;
		return size;
	}
	return 0;
}

void index_tables_lose(struct index_tables *tables, const void *table)
{
	if (!tables || !table)
		return;
	pthread_mutex_lock(&tables->lock);
	end_loan(tables, table);
	pthread_mutex_unlock(&tables->lock);
}

void index_tables_put(struct index_tables *tables, void *table)
{
	size_t size;

	if (!tables || !table) {
		mem_free(table);
		return;
	}
	pthread_mutex_lock(&tables->lock);
	size = end_loan(tables, table);
	if (size && size <= tables->limit) {
		if (tables->count == KEPT_MAX)
			mem_free(remove_kept(tables, find_smallest(tables)).at);
		tables->kept[tables->count++] = (struct kept){ table, size };
		tables->sum += size;
		shrink(tables, room_for_kept(tables));
		table = NULL;
	}
	pthread_mutex_unlock(&tables->lock);
	mem_free(table);
}
