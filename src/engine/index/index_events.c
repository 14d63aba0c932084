// A block of steps: what each did and how long lived what it ended, packed and unpacked.
//
// What a step did is its word, `cell << 1 | ends`. A program that does the same again and again has
// few words in 65,536 steps: then the block numbers them in order of their first appearance, and
// steps are numbers. Of what ended there is the lifetime in steps, or how far its beginning is from
// the beginning of what ended before, whichever takes fewer bits in this block: 30,000 nodes that
// are freed in the order in which they were made have lifetimes of 20 bits and beginnings 1 apart.
//
//     struct index_events_head
//     column   words of the steps, or their numbers
//     column   WORDS: the words, by number
//     column   of what ended: 0 for an orphan; else the lifetime, or BEGINS: 1 + the distance of
//              its beginning from that before, or from the block's first step, as zigzag
//     varints  jumps of the events' numbers
#include "engine/index/index_events.h"

#include "base/mem.h"
#include "engine/index/index_bits.h"

_Static_assert(sizeof(struct index_events_head) == 24, "is on disk as it is in memory");

// What is put into a column by and by.
struct column {
	uint8_t *at;
	uint64_t values[PACK_GROUP];
	uint32_t filled;
};

static inline void column_put(struct column *column, uint64_t value)
{
	ASSERT(column->filled < PACK_GROUP);
	column->values[column->filled++] = value;
	if (column->filled < PACK_GROUP)
		return;
	column->at = pack_put_group(column->at, column->values, PACK_GROUP);
	column->filled = 0;
}

static uint8_t *column_end(struct column *column)
{
	if (column->filled)
		column->at = pack_put_group(column->at, column->values, column->filled);
	column->filled = 0;
	return column->at;
}

// By number. NULL: there are too many of them for that.
static uint8_t *put_numbers(uint8_t *at, const struct index_batch *batch, struct pack_words *words)
{
	struct column column = { .at = at };

	pack_words_clear(words);
	for (uint32_t i = 0; i < batch->count; i++) {
		uint32_t number = pack_words_number(words, batch->ops[i]);

		// Words are written once more than they are numbered: in 65,536 steps up to 8,208
		// of them pay.
		if (number == PACK_WORDS_MAX || words->count > batch->count / 8 + 16)
			return NULL;
		column_put(&column, number);
	}
	return column_end(&column);
}

static uint8_t *put_words(uint8_t *at, const struct index_batch *batch)
{
	struct column column = { .at = at };

	for (uint32_t i = 0; i < batch->count; i++)
		column_put(&column, batch->ops[i]);
	return column_end(&column);
}

// Whether distances of beginnings take fewer bits than lifetimes.
static bool are_begins_close(const struct index_batch *batch)
{
	uint64_t lives = 0, begins = 0, last = batch->first;

	for (uint32_t i = 0; i < batch->count; i++) {
		uint64_t begin = batch->begins[i];

		if (!(batch->ops[i] & 1) || begin == 0)
			continue;
		lives += pack_width(batch->first + i - begin);
		begins += pack_width(1 + bits_zigzag(begin - last));
		last = begin;
	}
	return begins < lives;
}

static uint8_t *put_lives(uint8_t *at, const struct index_batch *batch, bool by_begins)
{
	struct column column = { .at = at };
	uint64_t last = batch->first;

	ASSERT(batch->count > 0);
	for (uint32_t i = 0; i < batch->count; i++) {
		uint64_t begin = batch->begins[i];

		if (!(batch->ops[i] & 1))
			continue;
		if (begin == 0) {
			column_put(&column, 0);
		} else if (!by_begins) {
			column_put(&column, batch->first + i - begin);
		} else {
			column_put(&column, 1 + bits_zigzag(begin - last));
			last = begin;
		}
	}
	return column_end(&column);
}

static uint8_t *put_jumps(uint8_t *at, const struct index_batch *batch)
{
	uint64_t expected = 0;
	uint32_t last_at = 0;

	ASSERT(batch->jumps_count > 0 && batch->jumps[0].at == 0);
	at += bits_put_varint(at, batch->jumps_count);
	for (uint32_t i = 0; i < batch->jumps_count; i++) {
		const struct index_run *jump = &batch->jumps[i];

		expected += jump->at - last_at;
		at += bits_put_varint(at, jump->at - last_at);
		at += bits_put_varint(at, bits_zigzag(jump->value - expected));
		expected = jump->value;
		last_at = jump->at;
	}
	return at;
}

size_t index_events_bytes_max(const struct index_batch *batch)
{
	return sizeof(struct index_events_head) + 2 * pack_bytes_max(batch->count) +
	       pack_bytes_max(PACK_WORDS_MAX) + (batch->jumps_count + (size_t)1) * 20;
}

size_t index_events_put(uint8_t *out, const struct index_batch *batch, struct pack_words *words)
{
	struct index_events_head head = { .count = batch->count };
	uint8_t *first = out + sizeof head, *at = put_numbers(first, batch, words);

	ASSERT(batch->count > 0);
	ASSERT(batch->jumps_count <= batch->count);
	if (!at) {
		at = put_words(first, batch);
		words->count = 0;
	}
	head.words_at = (uint32_t)(at - out);
	head.words_count = words->count;
	at = pack_put(at, words->words, words->count);
	head.lives_at = (uint32_t)(at - out);
	head.by_begins = are_begins_close(batch);
	at = put_lives(at, batch, head.by_begins);
	head.jumps_at = (uint32_t)(at - out);
	at = put_jumps(at, batch);
	memcpy(out, &head, sizeof head);
	return (size_t)(at - out);
}

// ---- reading ----

static uint32_t group_of(uint32_t count, uint32_t first)
{
	ASSERT(first <= count);
	return count - first < PACK_GROUP ? count - first : PACK_GROUP;
}

// Some numbers of a column of `all`: those of [from, to).
struct range {
	uint32_t from, to, all;
};

// The next group of a column that has any of the range, in `group`, of which [*low, *high) are
// asked for. *first: where the next one begins.
static bool take_in_range(const uint8_t **at, const uint8_t *end, const struct range *range,
			  uint32_t *first, uint64_t group[PACK_GROUP], uint32_t *low,
			  uint32_t *high)
{
	uint32_t here = group_of(range->all, *first);

	ASSERT(range->from < range->to && range->to <= range->all);
	for (; *first + here <= range->from; here = group_of(range->all, *first)) {
		if (!pack_skip_group(at, end, here))
			return false;
		*first += here;
	}
	if (!pack_take_group(at, end, group, here))
		return false;
	*low = range->from > *first ? range->from - *first : 0;
	*high = range->to - *first < here ? range->to - *first : here;
	*first += here;
	return true;
}

// *most: the highest of the words.
static bool take_numbers(const uint8_t *at, const uint8_t *end,
			 const uint32_t words[PACK_WORDS_MAX], uint32_t *ops,
			 const struct range *range, uint64_t *most)
{
	uint64_t group[PACK_GROUP], numbers = 0;
	uint32_t highest = 0, low, high;

	for (uint32_t first = 0; first < range->to;) {
		if (!take_in_range(&at, end, range, &first, group, &low, &high))
			return false;
		for (uint32_t i = low; i < high; i++) {
			uint32_t word = words[group[i] % PACK_WORDS_MAX];

			numbers |= group[i];
			highest = word > highest ? word : highest;
			*ops++ = word;
		}
	}
	*most = highest;
	return (at == end || range->to < range->all) && numbers < PACK_WORDS_MAX;
}

// Numbers below 2^32, the highest of which is *most.
static bool take_words(const uint8_t *at, const uint8_t *end, uint32_t *words,
		       const struct range *range, uint64_t *most)
{
	uint64_t group[PACK_GROUP];
	uint32_t low, high;

	for (uint32_t first = 0; first < range->to;) {
		if (!take_in_range(&at, end, range, &first, group, &low, &high))
			return false;
		for (uint32_t i = low; i < high; i++) {
			*most = group[i] > *most ? group[i] : *most;
			*words++ = (uint32_t)group[i];
		}
	}
	return at == end || range->to < range->all;
}

bool index_events_take_ops(const uint8_t *bytes, const struct index_events_head *head,
			   uint32_t cells_count, uint32_t *ops)
{
	return index_events_take_some(bytes, head, cells_count, 0, head->count, ops);
}

bool index_events_take_some(const uint8_t *bytes, const struct index_events_head *head,
			    uint32_t cells_count, uint32_t from, uint32_t count, uint32_t *ops)
{
	const struct range range = { from, from + count, head->count };
	const uint8_t *first = bytes + sizeof *head, *words_at = bytes + head->words_at,
		      *end = bytes + head->lives_at;
	uint32_t words[PACK_WORDS_MAX];
	uint64_t most = 0;
	bool ok;

	ASSERT(from + (uint64_t)count <= head->count);
	if (head->words_count > 0) {
		// A number that is none has a word that is too high.
		memset(words, 0xff, sizeof words);
		ok = take_words(words_at, end, words,
				&(struct range){ 0, head->words_count, head->words_count },
				&most) &&
		     take_numbers(first, words_at, words, ops, &range, &most);
	} else {
		ok = words_at == end && take_words(first, end, ops, &range, &most);
	}
	return ok && most >> 1 < cells_count;
}

// What is read of a column by and by.
struct source {
	const uint8_t *at, *end;
	uint64_t values[PACK_GROUP];
	uint32_t here, count, left; // of the group; of the column
	bool bad;
};

static inline uint64_t source_next(struct source *source)
{
	ASSERT(source->here <= source->count);
	if (source->here == source->count) {
		source->count = group_of(source->left, 0);
		source->left -= source->count;
		source->here = 0;
		if (source->bad || source->count == 0 ||
		    !pack_take_group(&source->at, source->end, source->values, source->count)) {
			memset(source->values, 0, sizeof source->values);
			source->count = 1;
			source->bad = true;
		}
	}
	return source->values[source->here++];
}

// The step that began what ended at `step`, the block's first being `first`; 0: an orphan. *last is
// the beginning before.
static inline uint64_t next_begin(struct source *source, bool by_begins, uint64_t step,
				  uint64_t *last)
{
	uint64_t value = source_next(source), begin;

	if (value == 0)
		return 0;
	begin = by_begins ? *last + bits_unzigzag(value - 1) : step - value;
	source->bad |= begin == 0 || begin >= step;
	return *last = begin;
}

static uint32_t count_ends(const uint32_t *ops, uint32_t count)
{
	uint32_t ends = 0;

	for (uint32_t i = 0; i < count; i++)
		ends += ops[i] & 1;
	return ends;
}

static struct source source_of_lives(const uint8_t *bytes, const struct index_events_head *head,
				     const uint32_t *ops)
{
	return (struct source){ .at = bytes + head->lives_at,
				.end = bytes + head->jumps_at,
				.left = count_ends(ops, head->count) };
}

bool index_events_take_begins(const uint8_t *bytes, const struct index_events_head *head,
			      const uint32_t *ops, uint64_t first, uint64_t *begins)
{
	struct source source = source_of_lives(bytes, head, ops);
	uint64_t last = first;

	for (uint32_t i = 0; i < head->count; i++)
		begins[i] = ops[i] & 1 ? next_begin(&source, head->by_begins, first + i, &last) : 0;
	return !source.bad && source.at == source.end;
}

bool index_events_take_ends(const uint8_t *bytes, const struct index_events_head *head,
			    const uint32_t *ops, uint64_t first, struct index_ended *ends,
			    uint32_t *ends_count)
{
	struct source source = source_of_lives(bytes, head, ops);
	uint32_t ended = source.left, known = 0, places = 0;
	uint64_t last = first;

	// Without a branch: each step is noted at the next free place, and the place is taken only
	// by a step that ends something. `ends` has room for one more, for the steps after the
	// last.
	for (uint32_t i = 0; i < head->count; i++) {
		ends[places].at = i;
		places += ops[i] & 1;
	}
	for (uint32_t i = 0; i < ended; i++) {
		uint32_t step = ends[i].at;
		uint64_t begin = next_begin(&source, head->by_begins, first + step, &last);

		ends[known] = (struct index_ended){ begin, step, ops[step] >> 1 };
		known += begin != 0;
	}
	*ends_count = known;
	return !source.bad && source.at == source.end;
}

bool index_events_take_jumps(const uint8_t *at, const uint8_t *end, struct index_run *jumps,
			     uint32_t count, uint32_t steps)
{
	uint64_t expected = 0, step = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t delta = bits_take_varint(&at, end);

		step += delta;
		expected += delta + bits_unzigzag(bits_take_varint(&at, end));
		if (step >= steps)
			return false;
		jumps[i] = (struct index_run){ (uint32_t)step, expected };
	}
	return at <= end && count > 0;
}
