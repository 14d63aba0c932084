// ranks: the medians and 99th percentiles of many rows' numbers, exact, in bounded memory.
//
//     ranks_begin               rows, and at most how many numbers each will be given
//       ranks_round             makes room
//         ranks_guess           after a sample was given, if one is: what it says is a guess
//                             then each row is given all of its numbers:
//         ranks_add_all         some of them
//       ranks_close             true: all is found. Else another round
//     ranks_median, ranks_high
//     ranks_end
//
// Of n numbers in rising order the median is the one at (n - 1) / 2, the other the one at
// (n - 1) * 99 / 100.
//
// Numbers are kept where there is room for them. Of a row that has too many they are counted: in
// the first round in bins, four or more for each power of two, in a further one in equal parts of
// the bin that the wanted number is in, or else those of the bin are kept. For example, of ten
// million lifetimes up to 14 s the median is among those between 40,960 and 49,151 ns; if these are
// half a million, they fit, and the second round is the last.
//
// Who can give a sample first saves the second round: where the sample has the wanted number, with
// what it may be wrong by, numbers are kept while all are counted. A sample of a million of these
// lifetimes has the median at 44,000 ns, and 15,000 of them a bit lower or higher: the bins of
// those, say 43,008 to 45,055, are kept. If the counts then say that the median is in another bin,
// a second round finds it as without a sample.
//
// In a round two threads may add, each to a part of its own.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RANKS_PARTS = 2, RANKS_WANTED = 2 };

// One of the numbers that are looked for: it is in [low, low + width), and `rank` smaller ones of
// these come before it.
struct ranks_target {
	uint64_t low, width, rank;
	uint64_t among; // so many are there; in the first round, at most
	size_t at;      // its room, in words of the pool
	uint8_t shift;  // DIVIDED: of a bin's width
	uint8_t how;    // private
};

// Bins whose numbers are kept while all are counted: so many from one on, in room for so many of
// each part; 0: none. Or, where fewer different numbers can be than would be kept, each is
// counted.
struct ranks_guess {
	uint32_t bin, bins;
	size_t at, room;
	uint64_t low; // of the numbers
	bool counted;
};

struct ranks_row {
	struct ranks_target targets[RANKS_WANTED]; // in the first round the first is for both
	uint64_t count;                            // of numbers, once the first round is over
	bool begun;                                // it is
};

struct ranks {
	struct ranks_row *rows;
	size_t rows_count;
	size_t words;      // at most, of the pool
	unsigned sub_log2; // bins of a power of two
	uint32_t bins;
	uint64_t *pool;
	struct ranks_guess (*guesses)[RANKS_WANTED];   // by row; NULL: none
	uint32_t *guessed;                             // what is kept for them
	size_t taken;                                  // words of the pool
	uint64_t (*filled[RANKS_PARTS])[RANKS_WANTED]; // by row: how many are kept
};

// What a row takes at least, of `words`.
size_t ranks_least(uint64_t most, uint64_t highest);

// `most`: by row, any numbers. No number is higher than `highest`. The pool has at most so many
// words of 8 bytes, or as many as one row takes at least.
void ranks_begin(struct ranks *ranks, const uint64_t *most, size_t rows, uint64_t highest,
		 size_t words);
void ranks_end(struct ranks *ranks);

// Until it is closed, each row that is looked at must be given all of its numbers.
void ranks_round(struct ranks *ranks);

// Whether a sample may spare a round: there are rows whose numbers are counted first, and there is
// room to keep some of them.
bool ranks_guessable(const struct ranks *ranks);

// What was given since the round began was a sample. It is forgotten, but for where it has the
// numbers that are looked for.
void ranks_guess(struct ranks *ranks);

// Whether numbers of a row will be looked at in this round.
bool ranks_wants(const struct ranks *ranks, size_t row);

// No lower number will be looked at in this round.
uint64_t ranks_lowest(const struct ranks *ranks);

// Numbers of one row. False: there are more than was said, or they are other numbers than in the
// round before.
bool ranks_add_all(const struct ranks *ranks, unsigned part, size_t row, const uint64_t *numbers,
		   size_t count);

// The same, in rising order.
bool ranks_add_rising(const struct ranks *ranks, unsigned part, size_t row, const uint64_t *numbers,
		      size_t count);

// The same number, so many times; not where a sample was given.
bool ranks_add_same(const struct ranks *ranks, unsigned part, size_t row, uint64_t number,
		    uint64_t count);

// One number each, of rows[i]; `none` is no row.
bool ranks_add_each(const struct ranks *ranks, unsigned part, const uint32_t *rows,
		    const uint64_t *numbers, size_t count, uint32_t none);

// One number of one row; false as ranks_add_all has it.
static inline bool ranks_add(const struct ranks *ranks, unsigned part, size_t row, uint64_t number)
{
	return ranks_add_all(ranks, part, row, &number, 1);
}

// True: all is found.
bool ranks_close(struct ranks *ranks);

// How many numbers a row was given in a round.
uint64_t ranks_count(const struct ranks *ranks, size_t row);

// Of a row without numbers: 0.
uint64_t ranks_median(const struct ranks *ranks, size_t row);
uint64_t ranks_high(const struct ranks *ranks, size_t row);
