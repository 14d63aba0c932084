// A block of steps: what each did and how long lived what it ended, packed and unpacked.
//
// What a step did is its word, `cell << 1 | ends`. A program that does the same again and again has
// few words in 65,536 steps: then the block numbers them in order of their first appearance, and
// steps are numbers. Of what ended there is the lifetime in steps, or how far its beginning is from
// the beginning of what ended before, whichever takes fewer bits in this block: 30,000 nodes that
// are freed in the order in which they were made have lifetimes of 20 bits and beginnings 1 apart.
//
// Most ends are *near*: what they end began in the same stretch of steps. They have no word, since
// the step that began it has: a bit says that a step is a near end, and its lifetime which one.
// Stretches can be read by themselves: what is told as distances begins anew with each.
//
// Of steps 0 to 4 that begin a (cell 5), begin b (cell 6), end b, end a and end what began 90,000
// steps before (cell 7), 2 and 3 are near: the bits 0, 0, 1, 1, 0; the words 10, 12 and 15; the
// near lifetimes 1 and 3, and the far one 90,000.
//
//     struct index_events_head
//     column   the bits, 64 in a number: which steps are near ends
//     column   words of the other steps, or their numbers
//     column   WORDS: the words, by number
//     column   of near ends: the lifetime, or BEGINS: the distance of its beginning from that
//              before, or from the stretch's first step, as zigzag
//     column   of other ends: 0 for an orphan; else the lifetime, or BEGINS: 1 + the distance of
//              its beginning from that before, or from the block's first step, as zigzag
//     varints  jumps of the events' numbers
#include "engine/index/index_events.h"

#include "base/mem.h"
#include "engine/index/index_bits.h"

_Static_assert(sizeof(struct index_events_head) == 32, "is on disk as it is in memory");

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

enum { BITS_WORDS = INDEX_EVENTS_MAX / 64 };

static inline bool bit_of(const uint64_t *bits, uint32_t i)
{
	return bits[i / 64] >> i % 64 & 1;
}

// Which steps of a batch end what began in the same stretch: their bits, and the steps by kind. An
// orphan's beginning is 0, which is before all blocks but the first, whose step 0 begins nothing.
// Nothing predicts which step is what: each is noted after those of all three kinds, and the place
// is taken by its own.
static void split(const struct index_batch *batch, uint64_t bits[BITS_WORDS],
		  struct index_events_work *work)
{
	unsigned log2 = batch->stretch_log2;
	uint32_t others = 0, near = 0, far = 0;

	for (uint32_t i = 0; i < batch->count; i += 64) {
		uint32_t end = batch->count - i < 64 ? batch->count : i + 64;
		uint64_t word = 0;

		for (uint32_t k = i; k < end; k++) {
			uint64_t begin = batch->begins[k];
			uint32_t op = batch->ops[k];
			bool is_near = (op & 1) & (begin != 0) & (begin >= batch->first) &
				       (begin >> log2 == (batch->first + k) >> log2);

			word |= (uint64_t)is_near << (k - i);
			work->others[others] = op;
			work->near[near] =
				(struct index_events_near){ (uint16_t)k,
							    (uint16_t)(begin - batch->first) };
			work->far[far] = (uint16_t)k;
			others += !is_near;
			near += is_near;
			far += (op & 1) & !is_near;
		}
		bits[i / 64] = word;
	}
	work->others_count = others;
	work->near_count = near;
	work->far_count = far;
}

// By number. NULL: there are too many of them for that.
static uint8_t *put_numbers(uint8_t *at, const struct index_batch *batch,
			    struct index_events_work *work)
{
	struct column column = { .at = at };
	struct pack_words *words = &work->words;

	pack_words_clear(words);
	for (uint32_t i = 0; i < work->others_count; i++) {
		uint32_t number = pack_words_number(words, work->others[i]);

		// Words are written once more than they are numbered: in 65,536 steps up to 8,208
		// of them pay.
		if (number == PACK_WORDS_MAX || words->count > batch->count / 8 + 16)
			return NULL;
		column_put(&column, number);
	}
	return column_end(&column);
}

static uint8_t *put_words(uint8_t *at, const struct index_events_work *work)
{
	struct column column = { .at = at };

	for (uint32_t i = 0; i < work->others_count; i++)
		column_put(&column, work->others[i]);
	return column_end(&column);
}

// Whether distances of beginnings take fewer bits than lifetimes: of near ends, and of others.
static void find_shorter(const struct index_batch *batch, const struct index_events_work *work,
			 struct index_events_head *head)
{
	uint64_t lives = 0, begins = 0, last = 0;

	for (uint32_t i = 0; i < work->near_count; i++) {
		struct index_events_near near = work->near[i];

		lives += pack_width((uint64_t)near.at - near.begin);
		begins += pack_width(bits_zigzag(near.begin - last));
		last = near.begin;
	}
	head->near_by_begins = begins < lives;
	lives = begins = 0;
	last = batch->first;
	for (uint32_t i = 0; i < work->far_count; i++) {
		uint64_t begin = batch->begins[work->far[i]];

		if (begin == 0)
			continue;
		lives += pack_width(batch->first + work->far[i] - begin);
		begins += pack_width(1 + bits_zigzag(begin - last));
		last = begin;
	}
	head->far_by_begins = begins < lives;
}

// Ends whose beginning is in the same stretch: by it their cell is known, too, so it has no word.
// Distances of a stretch begin with its first step.
static uint8_t *put_near(uint8_t *at, const struct index_batch *batch,
			 const struct index_events_work *work, bool by_begins)
{
	struct column column = { .at = at };
	uint64_t last = 0;

	for (uint32_t i = 0; i < work->near_count; i++) {
		struct index_events_near near = work->near[i];
		uint64_t lived = (uint64_t)near.at - near.begin;
		uint64_t stretch = (uint64_t)near.at >> batch->stretch_log2 << batch->stretch_log2;

		// What began is told by the same words: nothing is lost.
		ASSERT((batch->ops[near.begin] | 1) == batch->ops[near.at]);
		last = last < stretch ? stretch : last;
		column_put(&column, by_begins ? bits_zigzag(near.begin - last) : lived);
		last = near.begin;
	}
	return column_end(&column);
}

// Ends whose beginning is in another stretch, or known to be of nothing (0): how long they lived,
// or what their beginning differs from the last such one, whichever takes fewer bits in this block.
static uint8_t *put_far(uint8_t *at, const struct index_batch *batch,
			const struct index_events_work *work, bool by_begins)
{
	struct column column = { .at = at };
	uint64_t last = batch->first;

	ASSERT(batch->count > 0);
	for (uint32_t i = 0; i < work->far_count; i++) {
		uint64_t begin = batch->begins[work->far[i]];

		if (begin == 0) {
			column_put(&column, 0);
		} else if (!by_begins) {
			column_put(&column, batch->first + work->far[i] - begin);
		} else {
			column_put(&column, 1 + bits_zigzag(begin - last));
			last = begin;
		}
	}
	return column_end(&column);
}

// Where numbers of events do not just count on: after how many steps, and by how much.
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
	return sizeof(struct index_events_head) + 3 * pack_bytes_max(batch->count) +
	       2 * pack_bytes_max(PACK_WORDS_MAX) + (batch->jumps_count + (size_t)1) * 20;
}

// The parts of a block, one after the other: which steps are near ends (a bit each), words or their
// numbers, the list of words, near ends, far ends, numbers of events. Where
// too many words are different, they are written as they are and the list is empty.
size_t index_events_put(uint8_t *out, const struct index_batch *batch,
			struct index_events_work *work)
{
	struct index_events_head head = { .count = batch->count,
					  .stretch_log2 = (uint16_t)batch->stretch_log2 };
	uint64_t bits[BITS_WORDS];
	uint8_t *first, *at;

	ASSERT(batch->count > 0 && batch->stretch_log2 < 64);
	ASSERT(batch->count <= INDEX_EVENTS_MAX && batch->jumps_count <= batch->count);
	ASSERT(batch->first % (UINT64_C(1) << batch->stretch_log2) == 0);
	split(batch, bits, work);
	first = pack_put(out + sizeof head, bits, (batch->count + 63) / 64);
	at = put_numbers(first, batch, work);
	if (!at) {
		at = put_words(first, work);
		work->words.count = 0;
	}
	head.ops_at = (uint32_t)(first - out);
	head.words_at = (uint32_t)(at - out);
	head.words_count = work->words.count;
	at = pack_put(at, work->words.words, work->words.count);
	head.near_at = (uint32_t)(at - out);
	find_shorter(batch, work, &head);
	at = put_near(at, batch, work, head.near_by_begins);
	head.far_at = (uint32_t)(at - out);
	at = put_far(at, batch, work, head.far_by_begins);
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

// What is read of a column by and by. Up to SOME numbers may be looked at behind the
// last: zeros.
enum { SOME = 64 };
struct source {
	const uint8_t *at, *end;
	uint64_t values[PACK_GROUP + SOME];
	uint32_t here, count, left; // of the group; of the column
	bool bad;
};

static void source_fill(struct source *source)
{
	source->count = group_of(source->left, 0);
	source->left -= source->count;
	source->here = 0;
	if (source->bad || source->count == 0 ||
	    !pack_take_group(&source->at, source->end, source->values, source->count)) {
		memset(source->values, 0, sizeof source->values);
		source->count = PACK_GROUP;
		source->bad = true;
	}
	memset(source->values + source->count, 0, SOME * sizeof *source->values);
}

static inline uint64_t source_next(struct source *source)
{
	ASSERT(source->here <= source->count);
	if (source->here == source->count)
		source_fill(source);
	return source->values[source->here++];
}

// A column of `all` numbers, from number `from` on.
static void source_open(struct source *source, const uint8_t *at, const uint8_t *end, uint32_t all,
			uint32_t from)
{
	source->at = at;
	source->end = end;
	source->here = source->count = 0;
	memset(source->values, 0, SOME * sizeof *source->values);
	source->left = all;
	source->bad = from > all;
	for (; !source->bad && from >= PACK_GROUP; from -= PACK_GROUP) {
		source->bad = !pack_skip_group(&source->at, end, group_of(source->left, 0));
		source->left -= PACK_GROUP;
	}
	if (source->bad || from == 0)
		return;
	source_next(source);
	source->here = from;
	source->bad |= from > source->count;
}

// Whether all was read, and was sound.
static bool source_is_done(const struct source *source)
{
	return !source->bad && source->here == source->count && source->left == 0 &&
	       source->at == source->end;
}

// Which steps are near ends.
static bool take_bits(const uint8_t *bytes, const struct index_events_head *head,
		      uint64_t bits[BITS_WORDS])
{
	const uint8_t *at = bytes + sizeof *head;

	return head->count <= INDEX_EVENTS_MAX &&
	       pack_take(&at, bytes + head->ops_at, bits, (head->count + 63) / 64) &&
	       at == bytes + head->ops_at;
}

// How many of the steps before `end` are near ends.
static uint32_t count_bits(const uint64_t *bits, uint32_t end)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < end / 64; i++)
		count += (uint32_t)__builtin_popcountll(bits[i]);
	if (end % 64)
		count += (uint32_t)__builtin_popcountll(bits[end / 64] << (64 - end % 64));
	return count;
}

// All words, by number.
static bool take_words(const uint8_t *bytes, const struct index_events_head *head,
		       uint32_t words[PACK_WORDS_MAX])
{
	struct source source;

	// A number that is none has a word that is too high.
	memset(words, 0xff, PACK_WORDS_MAX * sizeof *words);
	source_open(&source, bytes + head->words_at, bytes + head->near_at, head->words_count, 0);
	for (uint32_t i = 0; i < head->words_count; i++)
		words[i] = (uint32_t)source_next(&source);
	return source_is_done(&source);
}

// Where what a near end ends began, as a step of the block; *last is the beginning before.
static inline uint32_t next_near(struct source *near, bool by_begins, uint32_t at, uint32_t *last)
{
	uint64_t value = source_next(near);

	*last = by_begins ? *last + (uint32_t)bits_unzigzag(value) : at - (uint32_t)value;
	return *last;
}

// What is read of a block at the same time.
struct taking {
	uint64_t bits[BITS_WORDS];
	struct source ops, near, far;
};

static bool open_taking(struct taking *taking, const uint8_t *bytes,
			const struct index_events_head *head, uint32_t from)
{
	uint32_t near, before;

	if (head->stretch_log2 > 31 || !take_bits(bytes, head, taking->bits))
		return false;
	near = count_bits(taking->bits, head->count);
	before = count_bits(taking->bits, from);
	source_open(&taking->ops, bytes + head->ops_at, bytes + head->words_at, head->count - near,
		    from - before);
	source_open(&taking->near, bytes + head->near_at, bytes + head->far_at, near, before);
	return true;
}

// How many of a source may be taken, or looked at, before more are needed.
static inline uint32_t source_some(struct source *source)
{
	if (source->here == source->count && source->left > 0)
		source_fill(source);
	return source->here < source->count ? source->count - source->here : SOME;
}

// So many were taken. False: they were not there.
static inline bool source_took(struct source *source, uint32_t count)
{
	source->here += count;
	if (source->here > source->count)
		source->bad = true;
	return !source->bad;
}

// Some steps, from `at` of a stretch on, that `bits` tells of.
struct some {
	uint64_t bits;
	uint32_t at, count;
};

// The words of those that are no near ends. Without a branch, since nothing predicts which are: the
// next word is put to each step, and taken only by one that has it. Returns how many have one.
static inline uint32_t take_words_of(const struct some *some, const uint64_t *values,
				     const uint32_t *words, uint32_t *ops, uint64_t *most)
{
	uint64_t bits = ~some->bits, highest = *most, numbers = 0;
	uint32_t taken = 0;

	if (!words) {
		for (uint32_t i = 0; i < some->count; i++, bits >>= 1) {
			highest = values[taken] > highest ? values[taken] : highest;
			ops[some->at + i] = (uint32_t)values[taken];
			taken += bits & 1;
		}
		*most = highest;
		return taken;
	}
	for (uint32_t i = 0; i < some->count; i++, bits >>= 1) {
		uint32_t word = words[values[taken] % PACK_WORDS_MAX];

		numbers |= values[taken];
		highest = word > highest ? word : highest;
		ops[some->at + i] = word;
		taken += bits & 1;
	}
	*most = numbers < PACK_WORDS_MAX ? highest : UINT64_MAX;
	return taken;
}

// Near ends get the words of what began. Returns how many there are; *last is UINT32_MAX if one of
// them cannot be. They are put into `list` too, if there is one, of a stretch that begins at
// `from`.
static inline uint32_t take_ends_of(const struct some *some, const uint64_t *near, bool by_begins,
				    uint32_t *ops, uint32_t *last, uint32_t from,
				    struct index_events_near *list)
{
	uint64_t bits = some->count < 64 ? some->bits & ((UINT64_C(1) << some->count) - 1)
					 : some->bits;
	uint32_t taken = 0, begin = *last;
	bool bad = false;

	for (; bits; bits &= bits - 1) {
		uint32_t at = some->at + (uint32_t)__builtin_ctzll(bits);
		uint64_t told = near[taken++];

		begin = by_begins ? begin + (uint32_t)bits_unzigzag(told) : at - (uint32_t)told;
		bad |= begin >= at;
		ops[at] = ops[begin < at ? begin : 0] | 1;
		if (list)
			*list++ = (struct index_events_near){ (uint16_t)(from + at),
							      (uint16_t)(from + begin) };
	}
	*last = bad ? UINT32_MAX : begin;
	return taken;
}

// Steps [from, to) of the block, `from` being the first of a stretch. *most: at least the highest
// word; more where there is one that cannot be. *list, if it is not NULL, is moved on.
static bool take_steps(struct taking *taking, const struct index_events_head *head,
		       const uint32_t *words, uint32_t from, uint32_t to, uint32_t *ops,
		       struct index_events_near **list, uint64_t *most)
{
	uint32_t last = 0, size = to - from;

	*most = 0;
	for (uint32_t at = 0, ends, others; at < size;) {
		uint32_t step = from + at, near = source_some(&taking->near),
			 other = source_some(&taking->ops);
		const uint64_t *lives = taking->near.values + taking->near.here;
		const uint64_t *values = taking->ops.values + taking->ops.here;
		struct some some = { taking->bits[step / 64] >> step % 64, at, 64 - step % 64 };

		some.count = some.count < size - at ? some.count : size - at;
		some.count = some.count < near ? some.count : near;
		some.count = some.count < other ? some.count : other;
		others = take_words_of(&some, values, words, ops, most);
		ends = take_ends_of(&some, lives, head->near_by_begins, ops, &last, from, *list);
		if (*list)
			*list += ends;
		if (!source_took(&taking->ops, others) || !source_took(&taking->near, ends) ||
		    last == UINT32_MAX)
			return false;
		at += some.count;
	}
	return true;
}

// Stretch by stretch. All bytes must be used up at the end of the block, or it is damaged. Aligned,
// as its loops take a fifth longer elsewhere in a line of the cache.
static __attribute__((aligned(64))) bool
take_some(const uint8_t *bytes, const struct index_events_head *head, uint32_t cells_count,
	  uint32_t from, uint32_t count, uint32_t *ops, struct index_events_near **list)
{
	uint32_t words[PACK_WORDS_MAX], stretch, end = from + count;
	struct taking taking;
	uint64_t most = 0;

	ASSERT(count > 0 && end <= head->count);
	if (!open_taking(&taking, bytes, head, from) ||
	    (head->words_count > 0 ? !take_words(bytes, head, words)
				   : head->words_at != head->near_at))
		return false;
	stretch = 1u << head->stretch_log2;
	ASSERT(from % stretch == 0);
	for (uint32_t at = from, next; at < end; at = next) {
		next = end - at < stretch ? end : at + stretch;
		if (!take_steps(&taking, head, head->words_count ? words : NULL, at, next,
				ops + (at - from), list, &most) ||
		    most >> 1 >= cells_count)
			return false;
	}
	return end < head->count || (source_is_done(&taking.ops) && source_is_done(&taking.near));
}

bool index_events_take_ops(const uint8_t *bytes, const struct index_events_head *head,
			   uint32_t cells_count, uint32_t *ops, struct index_events_near *near,
			   uint32_t *near_count)
{
	struct index_events_near *end = near;
	bool ok = take_some(bytes, head, cells_count, 0, head->count, ops, &end);

	*near_count = near ? (uint32_t)(end - near) : 0;
	return ok;
}

bool index_events_take_some(const uint8_t *bytes, const struct index_events_head *head,
			    uint32_t cells_count, uint32_t from, uint32_t count, uint32_t *ops)
{
	struct index_events_near *none = NULL;

	return take_some(bytes, head, cells_count, from, count, ops, &none);
}

// The step that began what ended at `step`, the block's first being `first`; 0: an orphan. *last is
// the beginning before.
static inline uint64_t next_far(struct source *source, bool by_begins, uint64_t step,
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

// What ended, one after the other.
struct ending {
	struct taking taking;
	const struct index_events_head *head;
	uint64_t first, far_last;
	uint32_t near_last, stretch;
};

static bool open_ending(struct ending *ending, const uint8_t *bytes,
			const struct index_events_head *head, const uint32_t *ops, uint64_t first)
{
	uint32_t near;

	ending->head = head;
	ending->first = ending->far_last = first;
	ending->near_last = ending->stretch = 0;
	if (!open_taking(&ending->taking, bytes, head, 0))
		return false;
	near = ending->taking.near.left;
	source_open(&ending->taking.far, bytes + head->far_at, bytes + head->jumps_at,
		    count_ends(ops, head->count) - near, 0);
	return true;
}

// Where what step `at` of the block ended began; 0: an orphan.
static inline uint64_t next_begin(struct ending *ending, uint32_t at)
{
	const struct index_events_head *head = ending->head;
	uint32_t begin;

	if (!bit_of(ending->taking.bits, at))
		return next_far(&ending->taking.far, head->far_by_begins, ending->first + at,
				&ending->far_last);
	if (at >> head->stretch_log2 != ending->stretch) {
		ending->stretch = at >> head->stretch_log2;
		ending->near_last = ending->stretch << head->stretch_log2;
	}
	begin = next_near(&ending->taking.near, head->near_by_begins, at, &ending->near_last);
	ending->taking.near.bad |= begin >= at;
	return ending->first + begin;
}

static bool ending_is_done(const struct ending *ending)
{
	return source_is_done(&ending->taking.near) && source_is_done(&ending->taking.far);
}

bool index_events_take_begins(const uint8_t *bytes, const struct index_events_head *head,
			      const uint32_t *ops, uint64_t first, uint64_t *begins)
{
	struct ending ending;

	if (!open_ending(&ending, bytes, head, ops, first))
		return false;
	for (uint32_t i = 0; i < head->count; i++)
		begins[i] = ops[i] & 1 ? next_begin(&ending, i) : 0;
	return ending_is_done(&ending);
}

bool index_events_take_far(const uint8_t *bytes, const struct index_events_head *head,
			   const uint32_t *ops, uint64_t first, struct index_ended *far,
			   uint32_t *far_count)
{
	uint64_t bits[BITS_WORDS], last = first;
	uint32_t known = 0, places = 0;
	struct source source;

	if (!take_bits(bytes, head, bits))
		return false;
	// Without a branch: each step is noted at the next free place, and the place is taken only
	// by a far end. `far` has room for one more, for the steps after the last.
	for (uint32_t i = 0; i < head->count; i++) {
		far[places].at = i;
		places += ops[i] & 1 & (uint32_t) ~(bits[i / 64] >> i % 64);
	}
	source_open(&source, bytes + head->far_at, bytes + head->jumps_at, places, 0);
	for (uint32_t i = 0; i < places; i++) {
		uint32_t step = far[i].at;
		uint64_t begin = next_far(&source, head->far_by_begins, first + step, &last);

		far[known] = (struct index_ended){ begin, step, ops[step] >> 1 };
		known += begin != 0;
	}
	*far_count = known;
	return source_is_done(&source);
}

// As put_jumps wrote them.
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
