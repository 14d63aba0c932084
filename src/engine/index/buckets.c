// A bucket has its right border and not its left one. For example, four buckets of (0, 100]: time
// 25 is in the first, 26 in the second, 100 in the last; what is outside goes to the nearest. The
// product of a time and a count may need more than 64 bits: nanoseconds of a day are 47.
#include "engine/index/buckets.h"

#include "base/mem.h"

size_t buckets_find(const struct buckets_axis *axis, uint64_t time_ns)
{
	unsigned __int128 scaled;
	size_t bucket;

	ASSERT(axis->count > 0);
	if (time_ns <= axis->from_ns)
		return 0;
	if (time_ns >= axis->to_ns)
		return axis->count - 1;
	scaled = (unsigned __int128)(time_ns - axis->from_ns) * axis->count - 1;
	bucket = (size_t)(scaled / (axis->to_ns - axis->from_ns));
	return bucket < axis->count ? bucket : axis->count - 1;
}

// A bucket begins with the level that the one before it ended with: it is that until something
// changes in it.
static void open_bucket(struct buckets_row *row)
{
	*row->open = (struct window_bucket){
		.bytes_peak = row->level.bytes,
		.bytes_low = row->level.bytes,
		.count_peak = row->level.count,
	};
}

static void close_bucket(struct buckets_row *row)
{
	buckets_fell(row, row->level.bytes);
	row->open->bytes_end = row->level.bytes;
	row->open->count_end = row->level.count;
}

void buckets_begin(struct buckets_row *row, struct window_bucket *buckets, struct heap_amount level)
{
	ASSERT(buckets);
	*row = (struct buckets_row){ .open = buckets, .level = level };
	open_bucket(row);
}

// Buckets in which nothing happens have the level of the one before.
void buckets_go(struct buckets_row *row, size_t bucket)
{
	while (row->at < bucket) {
		close_bucket(row);
		row->open++;
		row->at++;
		open_bucket(row);
	}
}

void buckets_set(struct buckets_row *row, struct heap_amount level)
{
	struct window_bucket *bucket = row->open;

	row->level = level;
	if (level.bytes > bucket->bytes_peak)
		bucket->bytes_peak = level.bytes;
	if (level.bytes < bucket->bytes_low)
		bucket->bytes_low = level.bytes;
	if (level.count > bucket->count_peak)
		bucket->count_peak = level.count;
}

void buckets_end(struct buckets_row *row, const struct buckets_axis *axis)
{
	ASSERT(row->open && row->at < axis->count);
	buckets_go(row, axis->count - 1);
	close_bucket(row);
}
