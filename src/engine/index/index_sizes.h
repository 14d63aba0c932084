// index_sizes: what all allocations of one size did in a block of steps.
//
// Peaks of rows by size are of steps all over the window. So the index has, for each block and each
// size that is in it, how many blocks of that size began, by how many their number changed, and the
// highest that it was on the way; some 500 sizes for 65,536 steps of a compiler, a hundredth of the
// index. A level of 1,000 blocks of 64 bytes before a block of steps that says { level -10, most 25
// } was 1,025 at most in it and is 990 after it. Only where that is the row's peak are the steps
// themselves looked at.
#pragma once

#include "base/map.h"
#include "engine/index/index_ask.h"

// Of one size, in one block of steps. `begun` is at least `most`, and `most` at least `level`: a
// reader takes anything else for damage.
struct index_size {
	uint64_t size;
	uint32_t begun;
	int32_t level, most; // change over the block; its highest on the way, at least 0
};

// Sizes of the block that is being written. Small ones, which are nearly all, are found without a
// search.
enum { INDEX_SIZES_SMALL = 1 << 12 };
struct index_sizes {
	struct index_size *list;
	size_t count, capacity;
	uint32_t small[INDEX_SIZES_SMALL]; // place in the list + 1
	struct map large;                  // the same of others
};

struct index_sizes *index_sizes_new(void);
void index_sizes_free(struct index_sizes *sizes); // NULL is allowed

// The size is new in its block.
struct index_size *index_sizes_add(struct index_sizes *sizes, uint64_t size);

// Its place in the list, which the next new size may move.
static inline struct index_size *index_sizes_of(struct index_sizes *sizes, uint64_t size)
{
	uint32_t place = size < INDEX_SIZES_SMALL ? sizes->small[size] : 0;

	return place ? &sizes->list[place - 1] : index_sizes_add(sizes, size);
}

static inline void index_sizes_begin(struct index_sizes *sizes, uint64_t size)
{
	struct index_size *one = index_sizes_of(sizes, size);

	one->begun++;
	one->level++;
	one->most = one->level > one->most ? one->level : one->most;
}

// The level may be below 0: what ends here may have begun in an earlier block.
static inline void index_sizes_end(struct index_sizes *sizes, uint64_t size)
{
	index_sizes_of(sizes, size)->level--;
}

// Those of the block that was added last; then there are none. They are sorted, and appended to
// files->sizes, where the last of files->blocks gets their place.
void index_sizes_write(struct index_sizes *sizes, struct index_files *files);

// Where the first ones of a size are. For example, the first 10 of 48 bytes: if three began in the
// first block of steps and nine in the second, they are before the end of the second.
struct index_first {
	uint64_t size;
	uint32_t group;  // of the query
	uint64_t wanted; // so many; counted down
	uint64_t latest; // found: no earlier than all of them; else UINT64_MAX
};

// Takes the mark of each block of steps in which nothing of these sizes began or ended. `marks` are
// of blocks from that of `from` on. `list` is by rising size.
bool index_sizes_mark(struct index *index, const struct index_first *list, size_t count,
		      uint64_t from, uint64_t to, uint8_t *marks, struct err *err);

// Of what began from one step to another: `latest` is where a block of steps ends. `list` is by
// rising size.
bool index_sizes_first(struct index *index, struct index_first *list, size_t count, uint64_t from,
		       uint64_t to, struct err *err);

// As index_peaks, for a query by size: rows that are all allocations of one size. Of groups of one
// size of which no other group has any; those have done[i] set, and all others are left as they
// are. A window of less than eight blocks of steps, or with more than eight ends of processes, has
// none such. `query` is by size.
bool index_size_peaks(struct index *index, const struct window_query *query,
		      struct window_detail *details, size_t count, const uint32_t *state_of,
		      size_t groups_count, bool *done, struct err *err);
