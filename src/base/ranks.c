// Bins of the first round: 0, 1, 2 and 3 have one each; from there on each power of two has four,
// or more where there is room. For example, 40,960 is binary 1010 0000 0000 0000: its two bits
// after the first choose the second of the four bins of 32,768, which is 8,192 wide. Bins of a
// further round, as many, divide such a bin evenly.
//
// Both parts of a row's bins are one behind the other. What is kept is filled from the front by one
// part, from the end by the other: in the first round 64 bits each, then 32, of what they are above
// `low`. What is kept for a guess has 32 bits above the lowest of its bins, and a room for each
// part; of two million lifetimes of one tick, 100 to 113 us, a count for each of 13,000 ns is less.
//
// What has too many numbers to be kept is counted first, and only the numbers of the bin that was
// found are looked at again in the next round.
//
// A row's life, for example 1,000,000 numbers with room for 100,000:
//
//     round 1   COUNTED: bins of the whole range. Then it is known in which bin each of the two
//               wanted numbers is, and how many in that bin come before it (find_bin)
//     round 2   KEPT: the numbers of such a bin, 20,000 say; select_kept finds the one of the rank
//               DIVIDED, where a bin has more than there is room for: it is cut into parts that
//               are counted, until a part fits or has width 1
//     FOUND     `low` is the number; WAITS is a target that had no room in this round
#include "base/ranks.h"

#include "base/mem.h"

#include <string.h>

enum { WAITS, KEPT, COUNTED, DIVIDED, FOUND };

enum { SUB_LOG2_MIN = 2, SUB_LOG2_MAX = 10 };

// Rows more than there are, so that what two threads count up is in no line of the cache in common:
// of one row it was, and took as long as one thread alone.
enum { APART = 8 };

// For example 40,960 with sub_log2 2: log2 is 15, so it is (15 - 2 + 1) << 2 | 1 = 57.
static uint32_t bin_of(uint64_t number, unsigned sub_log2)
{
	unsigned log2;

	if (number >> sub_log2 == 0)
		return (uint32_t)number;
	log2 = 63 - (unsigned)__builtin_clzll(number);
	return (log2 - sub_log2 + 1) << sub_log2 |
	       ((uint32_t)(number >> (log2 - sub_log2)) & ((1u << sub_log2) - 1));
}

// A bin is 2^shift wide. For example bin 57: 57 >> 2 is 14, less 1: 2^13 = 8,192.
static unsigned bin_shift(uint32_t bin, unsigned sub_log2)
{
	return bin >> sub_log2 < 2 ? 0 : (bin >> sub_log2) - 1;
}

// For example bin 57: (4 | 1) << 13 = 40,960.
static uint64_t bin_low(uint32_t bin, unsigned sub_log2)
{
	uint32_t sub = 1u << sub_log2;

	return bin < 2 * sub ? bin
			     : (uint64_t)(sub | (bin & (sub - 1))) << bin_shift(bin, sub_log2);
}

// Of two parts, of 32 bits each.
static size_t words_of_bins(uint64_t highest, unsigned sub_log2)
{
	return bin_of(highest, sub_log2) + (size_t)1;
}

// What is kept of `count` numbers, or `words` at most.
static size_t words_of_kept(uint64_t count, bool wide, size_t words)
{
	uint64_t need = wide ? count : count / 2 + count % 2;

	return need < words ? (size_t)need : words;
}

size_t ranks_least(uint64_t most, uint64_t highest)
{
	return words_of_kept(most, true, words_of_bins(highest, SUB_LOG2_MIN));
}

// Whether all rows have room, with so many bins.
static bool is_room(const struct ranks *ranks, const uint64_t *most, size_t bins)
{
	size_t words = 0;

	for (size_t row = 0; row < ranks->rows_count && words <= ranks->words; row++)
		words += words_of_kept(most[row], true, bins);
	return words <= ranks->words;
}

// As many bins as there is room for, from 1,024 a power of two down to four. The fewer they are,
// the more rounds it takes.
void ranks_begin(struct ranks *ranks, const uint64_t *most, size_t rows, uint64_t highest,
		 size_t words)
{
	*ranks = (struct ranks){ .rows = mem_alloc(rows + 1, sizeof *ranks->rows),
				 .rows_count = rows,
				 .words = words,
				 .sub_log2 = SUB_LOG2_MAX };
	while (ranks->sub_log2 > SUB_LOG2_MIN &&
	       !is_room(ranks, most, words_of_bins(highest, ranks->sub_log2)))
		ranks->sub_log2--;
	ranks->bins = (uint32_t)words_of_bins(highest, ranks->sub_log2);
	for (unsigned part = 0; part < RANKS_PARTS; part++)
		ranks->filled[part] = mem_alloc(rows + APART, sizeof *ranks->filled[part]);
	for (size_t row = 0; row < rows; row++)
		ranks->rows[row].targets[0].among = most[row];
}

void ranks_end(struct ranks *ranks)
{
	MEM_FREE(ranks->rows, ranks->pool, ranks->guesses, ranks->guessed, ranks->filled[0],
		 ranks->filled[1]);
	*ranks = (struct ranks){ 0 };
}

// The targets that still wait, one after the other: `at` is a place among all of them. NULL: the
// end.
static struct ranks_target *next_waiting(const struct ranks *ranks, size_t *at)
{
	for (; *at < RANKS_WANTED * ranks->rows_count; ++*at) {
		struct ranks_row *row = &ranks->rows[*at / RANKS_WANTED];
		struct ranks_target *target = &row->targets[*at % RANKS_WANTED];

		if (target->how == WAITS && (row->begun || *at % RANKS_WANTED == 0)) {
			++*at;
			return target;
		}
	}
	return NULL;
}

// The shift makes at most `bins` parts of the width.
static void set_divided(const struct ranks *ranks, struct ranks_target *target)
{
	target->how = DIVIDED;
	for (target->shift = 0; (target->width - 1) >> target->shift >= ranks->bins;)
		target->shift++;
}

static bool is_begun(const struct ranks *ranks, size_t at)
{
	return ranks->rows[at / RANKS_WANTED].begun;
}

static void begin_round(struct ranks *ranks)
{
	ranks->pool = mem_alloc_table(ranks->taken + 1, sizeof *ranks->pool);
	for (unsigned part = 0; part < RANKS_PARTS; part++)
		memset(ranks->filled[part], 0, ranks->rows_count * sizeof *ranks->filled[part]);
}

// First each gets what it takes at least, as long as there is any; what is left is for those who
// then need no bins.
void ranks_round(struct ranks *ranks)
{
	struct ranks_target *target;
	size_t taken = 0, least = 0, count = 0, at = 0;

	for (; (target = next_waiting(ranks, &at)); count++) {
		size_t words = words_of_kept(target->among, !is_begun(ranks, at - 1), ranks->bins);

		if (count > 0 && words + least > ranks->words)
			break;
		least += words;
	}
	at = 0;
	while (count-- > 0 && (target = next_waiting(ranks, &at))) {
		bool begun = is_begun(ranks, at - 1);
		size_t words = words_of_kept(target->among, !begun, ranks->bins);
		size_t spare = ranks->words > least ? ranks->words - least : 0;
		size_t all = words_of_kept(target->among, !begun, words + spare + 1);

		target->at = taken;
		if (all <= words + spare && (!begun || target->width <= UINT64_C(1) << 32)) {
			target->how = KEPT;
			least += all - words;
			words = all;
		} else if (begun) {
			set_divided(ranks, target);
		} else {
			target->how = COUNTED;
		}
		taken += target->how == KEPT ? words : ranks->bins;
		least += target->how == KEPT ? 0 : ranks->bins - words;
	}
	MEM_FREE(ranks->pool, ranks->guesses, ranks->guessed);
	ranks->guesses = NULL;
	ranks->guessed = NULL;
	ranks->taken = taken;
	begin_round(ranks);
}

// A caller may leave rows out whose numbers nothing asks for.
bool ranks_wants(const struct ranks *ranks, size_t row)
{
	for (unsigned i = 0; i < RANKS_WANTED; i++) {
		unsigned how = ranks->rows[row].targets[i].how;

		if (how != WAITS && how != FOUND)
			return true;
	}
	return false;
}

uint64_t ranks_lowest(const struct ranks *ranks)
{
	uint64_t lowest = UINT64_MAX;

	for (size_t row = 0; row < ranks->rows_count; row++)
		for (unsigned i = 0; i < RANKS_WANTED; i++) {
			const struct ranks_target *target = &ranks->rows[row].targets[i];
			uint64_t low = ranks->rows[row].begun ? target->low : 0;

			if (target->how != WAITS && target->how != FOUND && low < lowest)
				lowest = low;
		}
	return lowest;
}

static uint32_t *bins_of(const struct ranks *ranks, const struct ranks_target *target,
			 unsigned part)
{
	return (uint32_t *)(ranks->pool + target->at) + part * ranks->bins;
}

// One part fills from the front, the other from the end, so two threads need no lock; where both
// meet there are more numbers than were said.
static bool keep(const struct ranks *ranks, unsigned part, const struct ranks_target *target,
		 bool wide, uint64_t *filled, uint64_t number)
{
	uint64_t *words = ranks->pool + target->at, at = *filled;

	if (at >= target->among)
		return false;
	at = part ? target->among - 1 - at : at;
	if (wide)
		words[at] = number;
	else
		((uint32_t *)words)[at] = (uint32_t)(number - target->low);
	++*filled;
	return true;
}

// What is beyond its room is told by the count.
static void keep_guess(const struct ranks *ranks, unsigned part, size_t row, uint32_t bin,
		       uint64_t number)
{
	for (unsigned i = 0; i < RANKS_WANTED; i++) {
		const struct ranks_guess *guess = &ranks->guesses[row][i];
		uint64_t *filled = &ranks->filled[part][row][i];

		if (bin - guess->bin >= guess->bins)
			continue;
		if (guess->counted)
			ranks->guessed[guess->at + part * guess->room + (number - guess->low)]++;
		else if (*filled < guess->room)
			ranks->guessed[guess->at + part * guess->room + *filled] =
				(uint32_t)(number - guess->low);
		++*filled;
	}
}

// In a row's first round one target serves both, and all its numbers are inside.
static inline bool add(const struct ranks *ranks, unsigned part, size_t row, uint64_t number)
{
	const struct ranks_target *targets = ranks->rows[row].targets;
	bool good = true;

	if (targets[0].how == COUNTED) { // the first round
		uint32_t bin = bin_of(number, ranks->sub_log2);

		if (bin < ranks->bins)
			bins_of(ranks, &targets[0], part)[bin]++;
		if (ranks->guesses && bin < ranks->bins)
			keep_guess(ranks, part, row, bin, number);
		return bin < ranks->bins;
	}
	for (unsigned i = 0; i < RANKS_WANTED; i++) {
		const struct ranks_target *target = &targets[i];
		bool wide = !ranks->rows[row].begun;
		bool inside = wide ||
			      (number >= target->low && number - target->low < target->width);

		if (inside && target->how == KEPT)
			good &= keep(ranks, part, target, wide, &ranks->filled[part][row][i],
				     number);
		else if (inside && target->how == DIVIDED)
			bins_of(ranks, target, part)[(number - target->low) >> target->shift]++;
	}
	return good;
}

// Of one that is counted, without a guess.
static bool count_all(const struct ranks *ranks, uint32_t *bins, const uint64_t *numbers,
		      size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t bin = bin_of(numbers[i], ranks->sub_log2);

		if (bin >= ranks->bins)
			return false;
		bins[bin]++;
	}
	return true;
}

bool ranks_add_all(const struct ranks *ranks, unsigned part, size_t row, const uint64_t *numbers,
		   size_t count)
{
	const struct ranks_target *target = &ranks->rows[row].targets[0];
	bool good = true;

	ASSERT(row < ranks->rows_count);
	if (target->how == COUNTED && !ranks->guesses)
		return count_all(ranks, bins_of(ranks, target, part), numbers, count);
	for (size_t i = 0; i < count; i++)
		good &= add(ranks, part, row, numbers[i]);
	return good;
}

// As keep, so many times.
static bool keep_same(const struct ranks *ranks, unsigned part, const struct ranks_target *target,
		      bool wide, uint64_t *filled, uint64_t number, uint64_t count)
{
	bool good = true;

	for (uint64_t i = 0; good && i < count; i++)
		good = keep(ranks, part, target, wide, filled, number);
	return good;
}

// Numbers that no target of a row is about are left out at both ends, in rounds after its first.
bool ranks_add_rising(const struct ranks *ranks, unsigned part, size_t row, const uint64_t *numbers,
		      size_t count)
{
	const struct ranks_target *targets = ranks->rows[row].targets;
	uint64_t low = UINT64_MAX, last = 0;
	size_t from = 0;

	if (!ranks->rows[row].begun)
		return ranks_add_all(ranks, part, row, numbers, count);
	for (unsigned i = 0; i < RANKS_WANTED; i++) {
		if (targets[i].how == WAITS || targets[i].how == FOUND)
			continue;
		low = targets[i].low < low ? targets[i].low : low;
		if (targets[i].low + (targets[i].width - 1) > last)
			last = targets[i].low + (targets[i].width - 1);
	}
	while (count > 0 && numbers[count - 1] > last)
		count--;
	while (from < count && numbers[from] < low)
		from++;
	return ranks_add_all(ranks, part, row, numbers + from, count - from);
}

bool ranks_add_same(const struct ranks *ranks, unsigned part, size_t row, uint64_t number,
		    uint64_t count)
{
	bool wide = !ranks->rows[row].begun, good = true;

	ASSERT(row < ranks->rows_count && !ranks->guesses);
	for (unsigned i = 0; i < RANKS_WANTED && count > 0; i++) {
		const struct ranks_target *target = &ranks->rows[row].targets[i];
		uint32_t bin = target->how == COUNTED ? bin_of(number, ranks->sub_log2) : 0;

		if (target->how == COUNTED) {
			good &= bin < ranks->bins;
			if (bin < ranks->bins)
				bins_of(ranks, target, part)[bin] += (uint32_t)count;
		} else if (!wide && number - target->low >= target->width) {
			continue;
		} else if (target->how == DIVIDED) {
			bins_of(ranks, target, part)[(number - target->low) >> target->shift] +=
				(uint32_t)count;
		} else if (target->how == KEPT) {
			good &= keep_same(ranks, part, target, wide, &ranks->filled[part][row][i],
					  number, count);
		}
	}
	return good;
}

bool ranks_add_each(const struct ranks *ranks, unsigned part, const uint32_t *rows,
		    const uint64_t *numbers, size_t count, uint32_t none)
{
	enum { AHEAD = 8 };
	bool good = true;

	ASSERT(part < RANKS_PARTS);
	for (size_t i = 0; i < count; i++) {
		if (i + AHEAD < count)
			mem_expect(&ranks->rows[rows[i + AHEAD]]);
		if (rows[i] != none)
			good &= add(ranks, part, rows[i], numbers[i]);
	}
	return good;
}

// ---- after a sample ----

bool ranks_guessable(const struct ranks *ranks)
{
	// With less room some row would be without, and need the second round for all.
	bool room = ranks->taken <= ranks->words / 4 * 3;

	for (size_t row = 0; room && row < ranks->rows_count; row++)
		if (!ranks->rows[row].begun && ranks->rows[row].targets[0].how == COUNTED)
			return true;
	return false;
}

// The bin that has number `rank` of what both parts counted.
static uint32_t bin_at(const struct ranks *ranks, const uint32_t *bins, uint64_t rank)
{
	uint32_t bin = 0;

	while (bin + 1 < ranks->bins && rank >= (uint64_t)bins[bin] + bins[ranks->bins + bin]) {
		rank -= (uint64_t)bins[bin] + bins[ranks->bins + bin];
		bin++;
	}
	return bin;
}

static uint64_t sum_bins(const struct ranks *ranks, const uint32_t *bins, uint32_t from,
			 uint32_t end)
{
	uint64_t sum = 0;

	for (uint32_t bin = from; bin < end; bin++)
		sum += (uint64_t)bins[bin] + bins[ranks->bins + bin];
	return sum;
}

// The root, rounded down, by Newton's steps from above: 10 -> 3, 16 -> 4.
static uint64_t square_root(uint64_t number)
{
	uint64_t root = 1;

	ASSERT(number > 0); // a root of 0 would be divided by
	while (root * root < number)
		root *= 2;
	for (uint64_t next = root; (next = (root + number / root) / 2) < root;)
		root = next;
	return root;
}

// Of `count` numbers of the sample: bins from a bit below the wanted one to a bit above, as far as
// a bin has more than one number. A sample at random would be wrong by the root of `count`; what
// comes in phases is wrong by a share of it. Both are less for a rank far from the middle.
// False: there is no room.
static bool guess(const struct ranks *ranks, size_t row, uint64_t count, unsigned i, size_t *taken)
{
	const struct ranks_target *target = &ranks->rows[row].targets[0];
	const uint32_t *bins = bins_of(ranks, target, 0);
	struct ranks_guess *guess = &ranks->guesses[row][i];
	uint64_t rank = i == 0 ? (count - 1) / 2 : (count - 1) * 99 / 100;
	uint64_t margin = (8 * square_root(count) + count / 32) * (i == 0 ? 5 : 2) / 10 + 2;
	uint32_t low = bin_at(ranks, bins, rank < margin ? 0 : rank - margin), high;
	size_t all = ranks->taken + *taken, left = ranks->words > all ? ranks->words - all : 0;
	double share;

	high = bin_at(ranks, bins, rank + margin);
	if (low < 2u << ranks->sub_log2) // one number each
		low = 2u << ranks->sub_log2;
	if (low > high)
		return true;
	guess->low = bin_low(low, ranks->sub_log2);
	if (bin_low(high + 1, ranks->sub_log2) - guess->low > UINT64_C(1) << 32)
		return true;
	share = (double)sum_bins(ranks, bins, low, high + 1) / (double)count;
	guess->room = (size_t)(share * 1.2 * (double)target->among) + 64;
	guess->counted = bin_low(high + 1, ranks->sub_log2) - guess->low <= guess->room;
	if (guess->counted)
		guess->room = (size_t)(bin_low(high + 1, ranks->sub_log2) - guess->low);
	if (guess->room > left)
		return false;
	guess->bin = low;
	guess->bins = high + 1 - low;
	guess->at = RANKS_PARTS * *taken;
	*taken += guess->room;
	return true;
}

void ranks_guess(struct ranks *ranks)
{
	size_t taken = 0; // words, of two numbers
	bool room = true;

	ranks->guesses = mem_alloc(ranks->rows_count, sizeof *ranks->guesses);
	for (size_t row = 0; row < ranks->rows_count; row++) {
		const struct ranks_target *all = &ranks->rows[row].targets[0];
		uint64_t count;

		if (ranks->rows[row].begun || all->how != COUNTED)
			continue;
		count = sum_bins(ranks, bins_of(ranks, all, 0), 0, ranks->bins);
		for (unsigned i = 0; i < RANKS_WANTED && count > 0; i++)
			room &= guess(ranks, row, count, i, &taken);
	}
	mem_free(ranks->pool);
	// For one without room another round is needed, which finds all.
	if (!room) {
		mem_free(ranks->guesses);
		ranks->guesses = NULL;
	} else {
		ranks->guessed = mem_alloc_table(RANKS_PARTS * taken + 1, sizeof *ranks->guessed);
	}
	begin_round(ranks);
}

// ---- after a round ----

// What is kept of a target, by both parts.
struct kept {
	void *list;
	size_t count;
	bool wide;
};

static inline uint64_t kept_at(const struct kept *kept, size_t at)
{
	return kept->wide ? ((uint64_t *)kept->list)[at] : ((uint32_t *)kept->list)[at];
}

static inline void swap_kept(const struct kept *kept, size_t a, size_t b)
{
	uint64_t *wide = kept->list;
	uint32_t *narrow = kept->list;

	if (kept->wide) {
		uint64_t other = wide[a];

		wide[a] = wide[b];
		wide[b] = other;
	} else {
		uint32_t other = narrow[a];

		narrow[a] = narrow[b];
		narrow[b] = other;
	}
}

// The part at the end is moved to that in front, so they are one list.
static struct kept join_kept(struct ranks *ranks, size_t row, unsigned i)
{
	const struct ranks_target *target = &ranks->rows[row].targets[i];
	struct kept kept = { .list = ranks->pool + target->at, .wide = !ranks->rows[row].begun };
	size_t each = kept.wide ? sizeof(uint64_t) : sizeof(uint32_t);
	size_t front = (size_t)ranks->filled[0][row][i], back = (size_t)ranks->filled[1][row][i];
	uint8_t *bytes = kept.list;

	// Both may have filled all of it, if the numbers are others than they were.
	if (front > target->among - back)
		front = (size_t)target->among - back;
	memmove(bytes + front * each, bytes + (target->among - back) * each, back * each);
	kept.count = front + back;
	return kept;
}

// The number that is at place `rank` in rising order, which is there; the list's order changes.
// Digit by digit: what has the digits found so far is put to the front.
static uint64_t select_kept(const struct kept *kept, uint64_t rank)
{
	enum { DIGIT = 8, DIGITS = 1 << DIGIT };
	size_t count = kept->count, counts[DIGITS];

	ASSERT(rank < count);
	for (unsigned shift = kept->wide ? 64 : 32; shift > 0;) {
		size_t digit = 0, front = 0;

		shift -= DIGIT;
		memset(counts, 0, sizeof counts);
		for (size_t i = 0; i < count; i++)
			counts[kept_at(kept, i) >> shift & (DIGITS - 1)]++;
		// Whole digits are passed until the rank lies within one; what has this digit is
		// all that is left.
		while (rank >= counts[digit])
			rank -= counts[digit++];
		if (counts[digit] == count)
			continue;
		for (size_t i = 0; i < count; i++)
			if ((kept_at(kept, i) >> shift & (DIGITS - 1)) == digit)
				swap_kept(kept, i, front++);
		count = front;
	}
	return kept_at(kept, 0);
}

static void join_bins(const struct ranks *ranks, const struct ranks_target *target)
{
	uint32_t *bins = bins_of(ranks, target, 0), *more = bins_of(ranks, target, 1);

	for (uint32_t bin = 0; bin < ranks->bins; bin++)
		bins[bin] += more[bin];
}

// The bin that the target is in; its rank is then that in the bin.
// `rank` becomes the place within the bin.
static uint32_t find_bin(const struct ranks *ranks, const uint32_t *bins,
			 struct ranks_target *target)
{
	uint32_t bin = 0;

	ASSERT(target->how != FOUND && ranks->bins > 0);
	// The rank is made one in the bin: with 5, 7 and 9 numbers in the first bins, rank 10 is
	// number 5 of bin 1.
	while (bin + 1 < ranks->bins && target->rank >= bins[bin])
		target->rank -= bins[bin++];
	target->among = bins[bin];
	return bin;
}

static void settle(struct ranks_target *target)
{
	target->how = target->width == 1 ? FOUND : WAITS;
}

// A bin of width 1 is a number: it is found.
static void divide(const struct ranks *ranks, struct ranks_target *target)
{
	join_bins(ranks, target);
	target->low += (uint64_t)find_bin(ranks, bins_of(ranks, target, 0), target)
		       << target->shift;
	target->width = UINT64_C(1) << target->shift;
	settle(target);
}

static void set_ranks(struct ranks_row *row, uint64_t count)
{
	row->begun = true;
	row->count = count;
	row->targets[0].rank = count ? (count - 1) / 2 : 0;
	row->targets[1].rank = count ? (count - 1) * 99 / 100 : 0;
}

// Of counts, which have all numbers of the target's bin, the one of its rank.
static void take_counted(const struct ranks *ranks, const struct ranks_guess *guess,
			 struct ranks_target *target)
{
	const uint32_t *one = ranks->guessed + guess->at, *other = one + guess->room;
	uint64_t rank = target->rank;
	size_t at = (size_t)(target->low - guess->low);

	while (rank >= (uint64_t)one[at] + other[at]) {
		rank -= (uint64_t)one[at] + other[at];
		at++;
		ASSERT(at < guess->room);
	}
	target->low = guess->low + at;
	target->width = 1;
}

// The target is in a bin that has been found. If what was kept for a guess has all of that, it is
// there.
static void take_guess(struct ranks *ranks, size_t row, unsigned i, uint32_t bin)
{
	struct ranks_target *target = &ranks->rows[row].targets[i];
	const struct ranks_guess *guess = ranks->guesses ? &ranks->guesses[row][i] : NULL;
	struct kept kept = { 0 };
	uint32_t *list;

	if (!guess || bin - guess->bin >= guess->bins)
		return;
	if (guess->counted) {
		take_counted(ranks, guess, target);
		return;
	}
	list = kept.list = ranks->guessed + guess->at;
	for (unsigned part = 0; part < RANKS_PARTS; part++) {
		const uint32_t *its = list + part * guess->room;
		uint64_t filled = ranks->filled[part][row][i];

		if (filled > guess->room)
			return;
		for (uint64_t k = 0; k < filled; k++)
			if (its[k] - (target->low - guess->low) < target->width)
				list[kept.count++] = its[k];
	}
	ASSERT(target->rank < kept.count);
	target->low = guess->low + select_kept(&kept, target->rank);
	target->width = 1;
}

// The first round of a row: what it has says where in its order both numbers are.
// Where all of a row was kept, both numbers are found at once.
static void begin_row(struct ranks *ranks, size_t at)
{
	struct ranks_row *row = &ranks->rows[at];
	struct ranks_target all = row->targets[0];
	const uint32_t *bins;
	uint64_t count = 0;

	if (all.how == KEPT) {
		struct kept kept = join_kept(ranks, at, 0);

		set_ranks(row, kept.count);
		for (unsigned i = 0; i < RANKS_WANTED; i++) {
			struct ranks_target *target = &row->targets[i];

			target->low = kept.count ? select_kept(&kept, target->rank) : 0;
			target->how = FOUND;
		}
		return;
	}
	join_bins(ranks, &all);
	bins = bins_of(ranks, &all, 0);
	for (uint32_t bin = 0; bin < ranks->bins; bin++)
		count += bins[bin];
	set_ranks(row, count);
	for (unsigned i = 0; i < RANKS_WANTED; i++) {
		struct ranks_target *target = &row->targets[i];
		uint32_t bin = find_bin(ranks, bins, target);

		target->low = count ? bin_low(bin, ranks->sub_log2) : 0;
		target->width = count ? UINT64_C(1) << bin_shift(bin, ranks->sub_log2) : 1;
		if (target->width > 1)
			take_guess(ranks, at, i, bin);
		settle(target);
	}
}

// Rows that had no room in this round wait for the next.
bool ranks_close(struct ranks *ranks)
{
	bool all = true;

	for (size_t at = 0; at < ranks->rows_count; at++) {
		struct ranks_row *row = &ranks->rows[at];

		if (!row->begun && row->targets[0].how != WAITS) {
			begin_row(ranks, at);
			all &= row->targets[0].how == FOUND && row->targets[1].how == FOUND;
			continue;
		}
		for (unsigned i = 0; i < RANKS_WANTED; i++) {
			struct ranks_target *target = &row->targets[i];

			if (target->how == KEPT) {
				struct kept kept = join_kept(ranks, at, i);

				// Of numbers that are others than they were, it may be missing.
				if (target->rank < kept.count)
					target->low += select_kept(&kept, target->rank);
				target->how = FOUND;
			} else if (target->how == DIVIDED) {
				divide(ranks, target);
			}
			all &= target->how == FOUND;
		}
	}
	return all;
}

uint64_t ranks_count(const struct ranks *ranks, size_t row)
{
	return ranks->rows[row].count;
}

uint64_t ranks_median(const struct ranks *ranks, size_t row)
{
	return ranks->rows[row].targets[0].low;
}

uint64_t ranks_high(const struct ranks *ranks, size_t row)
{
	return ranks->rows[row].targets[1].low;
}
