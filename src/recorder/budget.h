// budget: every call is recorded while that is cheap, and samples where it is not (record
// --max-overhead). The collector decides; what is here does as it says.
//
// One word of the clock page (wire/segment.h, turn) has the mean distance of samples, or says that
// every call is recorded. Each allocation compares it with what its thread goes by (sample.h), so
// that a thread turns with its next one.
//
// A block whose begin was recorded must be recorded when it ends, whatever the time, and of another
// block nothing: a bit for each 8 bytes of address space says which it is. The bits are in leaves
// of 16 MiB, mapped when the first bit in the GiB of a leaf is set. A forked child has its
// parent's.
//
// What that costs is measured here, too: of every 256th recorded call, and of each sample, how long
// it takes. Lock-free.
#pragma once

#include "recorder/kernel.h"
#include "wire/compiler.h"
#include "wire/counter.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	BUDGET_UNIT_LOG2 = 3,  // bytes that have a bit
	BUDGET_LEAF_LOG2 = 30, // bytes that a leaf speaks of
	BUDGET_LEAVES = sizeof(void *) == 8 ? 1 << 17 : 4,
};

// The bits of a GiB of addresses: 16 MiB, of which only touched pages take memory. Never given
// back.
struct budget_leaf {
	_Atomic uint32_t words[1 << (BUDGET_LEAF_LOG2 - BUDGET_UNIT_LOG2 - 5)];
};

// By address; NULL: this recording has no budget. Each may be NULL.
HIDDEN extern struct budget_leaf *_Atomic *budget_leaves;

// What the collector says. Never NULL.
HIDDEN extern const _Atomic uint32_t *budget_turn;

// While the recording begins. False: no memory for it. `turn` is in the clock page, and is looked
// at until budget_forget: from then on every call counts as to be recorded.
HIDDEN bool budget_start(const _Atomic uint32_t *turn);

// The clock page is about to be unmapped.
HIDDEN void budget_forget(void);

// The block at `address` is recorded from here on. False: there is no memory to remember that. Then
// it is counted as dropped, and must not be recorded. A sealed process gets no new leaf.
HIDDEN bool budget_keep(uint64_t address);

// So many calls were recorded as all are; a sample was, that stands for so many others.
HIDDEN void budget_count(uint32_t calls);
HIDDEN void budget_count_sample(uint64_t left_out);

// It took the time since the counter was at `began`. What took more than 65,536 counts has waited
// for something else, and is left out.
HIDDEN void budget_measured(uint64_t began, bool sample);

// The word with the bit of an address, or NULL: no block of that GiB was recorded yet. Never NULL
// once a block there was.
static inline _Atomic uint32_t *budget_word(uint64_t address)
{
	uint64_t number = address >> BUDGET_LEAF_LOG2;
	struct budget_leaf *leaf;

	if (unlikely(number >= BUDGET_LEAVES))
		return NULL;
	leaf = atomic_load_explicit(&budget_leaves[number], memory_order_acquire);
	if (unlikely(!leaf))
		return NULL;
	return &leaf->words[(uint32_t)address % (UINT32_C(1) << BUDGET_LEAF_LOG2) >>
			    (BUDGET_UNIT_LOG2 + 5)];
}

// Each 8 bytes have a bit, and 32 bits a word: blocks 16 bytes apart have bits of their own.
static inline uint32_t budget_bit(uint64_t address)
{
	return UINT32_C(1) << ((address >> BUDGET_UNIT_LOG2) & 31);
}

// Whether the block's begin was recorded.
static inline bool budget_has(uint64_t address)
{
	const _Atomic uint32_t *word = budget_word(address);

	return word && atomic_load_explicit(word, memory_order_relaxed) & budget_bit(address);
}
