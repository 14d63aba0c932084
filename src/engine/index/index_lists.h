// index_lists: the steps of chosen sites, out of their postings (index_store.h): what few sites did
// is found without going through what all others did.
//
//     index_lists_count      what it would cost
//     index_lists_load       the lists of one chunk
//       index_list_next      through one of them
//     index_lists_fini
//
// Sites are chosen by numbers: numbers[site] is 0 for those that are not wanted. A site that is
// busy in a chunk has no postings there: its steps are in the blocks.
#pragma once

#include "engine/index/index.h"
#include "engine/index/index_bits.h"
#include "engine/index/pack.h"

// The postings of one site in a chunk, and the one that it is at while `left` is not 0.
struct index_list {
	uint64_t step, size;
	uint32_t number; // the site's
	uint32_t left;   // this one and those after it
	bool ends;
	bool several; // private, as all below
	bool packed;
	struct pack_cursor words; // of the run that it is in
	const uint8_t *at, *end;  // what follows those: sizes, and further runs
	uint64_t first, last;     // steps of the chunk
	struct bits_sizes sizes;
	uint32_t run, run_left; // postings between two sums, and until the next
};

struct index_lists {
	struct index_list *lists;
	size_t count, capacity;
	bool busy;      // a chosen site has no postings in this chunk
	uint8_t *bytes; // private
	size_t bytes_capacity;
};

// About how many postings the chosen sites have in all chunks that have steps of [from, to): the
// directories of some of them are read. *known is false where the index has none. Chunks count as
// wholes, also where the stretch begins or ends within one.
bool index_lists_count(struct index *index, const uint32_t *numbers, uint64_t from, uint64_t to,
		       uint64_t *postings, bool *known, struct err *err);

// Each list is at its first posting. `= { 0 }` is a valid one to begin with; keep it from chunk to
// chunk. `busy` is set where a chosen site has stretches in place of a list. The lists, and what
// they read from, hold until the next load.
bool index_lists_load(struct index_lists *lists, struct index *index, const uint32_t *numbers,
		      uint64_t chunk, struct err *err);
void index_lists_fini(struct index_lists *lists);

// Entries of a chunk's directory, those after one mark.
struct index_lists_entries {
	uint64_t columns[INDEX_POSTS_COLUMNS][INDEX_POSTS_MARK];
	uint32_t count, next;
	uint64_t site, list_at; // of the entry before, or the mark's
};

// Those after mark `number` of a chunk, which are at *at; PACK_SLACK bytes follow `end`. False: the
// index is damaged, and so it is where index_lists_next, up to `count` of them, gives false. The
// entry that this has found is of `site`, which may be any.
bool index_lists_take(struct index_lists_entries *entries, const struct index *index,
		      const struct index_chunk *chunk, uint32_t number, const uint8_t **at,
		      const uint8_t *end);
bool index_lists_next(struct index_lists_entries *entries, struct index_posts *entry);

// What a busy site did in each stretch of a chunk: `stretches` has room for index_stretches_in.
uint32_t index_stretches_in(const struct index *index, uint64_t chunk);
bool index_stretches_read(struct index *index, uint64_t chunk, const struct index_posts *entry,
			  struct index_stretch *stretches, struct err *err);

// Sets *err; false.
bool index_lists_damaged(struct err *err);

// The size of a posting, whose word is this.
static inline void index_list_take_size(struct index_list *list, uint64_t word)
{
	unsigned place = word & ((1 << BITS_SIZES_LOG2) - 1);
	uint64_t other = place ? 0 : bits_take_varint(&list->at, list->end);

	list->size = bits_sizes_take(&list->sizes, place, other);
}

// To the next run, of which there is a posting.
void index_list_go_on(struct index_list *list);

// The next one. False with *err: the index is damaged. At the end `left` is 0. The list has one:
// `left` is not 0.
static inline bool index_list_next(struct index_list *list, struct err *err)
{
	uint64_t word;

	if (--list->left == 0)
		return true;
	if (list->run_left == 0)
		index_list_go_on(list);
	list->run_left--;
	word = list->packed ? pack_cursor_next(&list->words)
			    : bits_take_varint(&list->at, list->end);
	list->ends = word & 1;
	word >>= 1;
	if (list->several) {
		index_list_take_size(list, word);
		word >>= BITS_SIZES_LOG2;
	}
	list->step += word;
	return (list->at <= list->end && list->step <= list->last && !list->words.bad) ||
	       index_lists_damaged(err);
}

// Which blocks have steps of the chosen sites in [from, to), all of which have postings or sums:
// marks[block - (from >> block_log2)] is set. A block that only has some before or after may be,
// too.
bool index_lists_mark(struct index *index, const uint32_t *numbers, uint64_t from, uint64_t to,
		      uint8_t *marks, struct err *err);
