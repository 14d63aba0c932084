// The table is read without a lock. For example, of a table in full use the rule for return address
// 0x401234 is in set
//
//     line = 0x401234 % 64 = 52,  (0x401234 ^ 0x401234 >> 9 ^ 52 * 64) % 2 MiB, down to 64 bytes
//
// at byte 0x3f00, in one of four entries {key ^ rule, rule}. A reader that gets the first word of
// an old entry and the second of a new one finds that their exclusive-or is not 0x401234, and takes
// the slow way, which has the lock. So writers need no more than to put 0 into `rule`, then the
// check, then the rule.
//
// With 64 rules the first 4 KB have one in each set, and 32 KB are used from then on. The rules
// move to where they belong now, under the lock.
#include "recorder/unwind.h"

#include "recorder/capture.h"
#include "recorder/kernel.h"
#include "recorder/recording.h"

enum {
	UNWIND_FIRST_BYTES = 4096,
	UNWIND_GROWTH = 8, // in so many steps: 4 KB, 32 KB, 256 KB, all
	UNWIND_MEASURE_MIN = 1024,
};

_Static_assert(UNWIND_FIRST_BYTES *UNWIND_GROWTH *UNWIND_GROWTH *UNWIND_GROWTH == UNWIND_BYTES,
	       "it grows to all of the table");

struct unwind_entry *unwind_table;
uint32_t unwind_used = UNWIND_FIRST_BYTES - UNWIND_SET_BYTES;
uint32_t unwind_turn;
static uint32_t unwind_count; // rules that were put since all were forgotten

// Twice the size is taken, so that a part of it begins at a multiple of 2 MiB, which a huge page
// needs. The kernel gives no memory for what is never touched.
bool unwind_start(void)
{
	uint8_t *pages;

	if (unwind_table)
		return true;
	pages = recording_pages(2 * (size_t)UNWIND_BYTES, false);
	if (!pages)
		return false;
	pages += -(uintptr_t)pages & (UNWIND_BYTES - 1);
	unwind_table = (struct unwind_entry *)pages;
	return true;
}

// Those that are in use.
static size_t unwind_entries(void)
{
	return (unwind_used + UNWIND_SET_BYTES) / sizeof(struct unwind_entry);
}

// The checks stay: with a rule of 0 an entry matches no key, since the match returns the rule
// itself.
void unwind_forget(void)
{
	for (size_t i = 0; i < unwind_entries(); i++)
		__atomic_store_n(&unwind_table[i].rule, 0, __ATOMIC_RELAXED);
	unwind_count = 0;
	__atomic_fetch_add(&unwind_turn, 1, __ATOMIC_SEQ_CST);
}

// The key of an entry is what its two words are together, so no third word is needed to know it.
// All in use are looked at; it happens when a library is mapped where something else was.
void unwind_forget_range(uintptr_t start, uintptr_t end)
{
	for (size_t i = 0; i < unwind_entries(); i++) {
		struct unwind_entry *entry = &unwind_table[i];
		uint64_t key = (entry->check ^ entry->rule) & ~UNWIND_EXACT;

		if (key >= start && key <= end)
			__atomic_store_n(&entry->rule, 0, __ATOMIC_RELAXED);
	}
	__atomic_fetch_add(&unwind_turn, 1, __ATOMIC_SEQ_CST);
}

// A free way of the set, or else the one whose turn it is. The order of the three stores is what
// the readers' check is about: see the head. The caller holds code_lock, so there is one writer.
static void unwind_put_in(struct unwind_entry *set, uint64_t key, unwind_rule rule)
{
	static uint32_t turn;
	uint32_t way = 0;

	while (way < UNWIND_WAYS && __atomic_load_n(&set[way].rule, __ATOMIC_RELAXED))
		way++;
	if (way == UNWIND_WAYS)
		way = turn++ % UNWIND_WAYS;
	__atomic_store_n(&set[way].rule, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&set[way].check, key ^ rule, __ATOMIC_RELAXED);
	__atomic_store_n(&set[way].rule, rule, __ATOMIC_RELEASE);
}

// Use more of the table: each rule is put where it belongs then, and where it was it is found until
// then.
static COLD void unwind_grow(void)
{
	uint32_t used = (unwind_used + UNWIND_SET_BYTES) * UNWIND_GROWTH - UNWIND_SET_BYTES;
	size_t count = unwind_entries();

	for (int moved = 0; moved < 2; moved++) {
		for (size_t i = 0; i < count; i++) {
			struct unwind_entry *entry = &unwind_table[i];
			unwind_rule rule = entry->rule;
			struct unwind_entry *set = unwind_set_of(entry->check ^ rule, used);

			if (!rule || set == &unwind_table[i - i % UNWIND_WAYS])
				continue;
			if (moved)
				__atomic_store_n(&entry->rule, 0, __ATOMIC_RELAXED);
			else
				unwind_put_in(set, entry->check ^ rule, rule);
		}
		__atomic_store_n(&unwind_used, used, __ATOMIC_RELEASE);
	}
	if (unwind_entries() == UNWIND_SETS * UNWIND_WAYS)
		unwind_collapse();
}

static void unwind_put(uint64_t key, unwind_rule rule)
{
	size_t entries = unwind_entries();

	if (unwind_count++ == entries / UNWIND_WAYS && entries < UNWIND_SETS * UNWIND_WAYS)
		unwind_grow();
	unwind_put_in(unwind_set(key), key, rule);
}

// The old entry goes first, or a reader could go on finding it in an earlier way.
void unwind_replace(uint64_t key, unwind_rule rule)
{
	struct unwind_entry *set = unwind_set(key);

	for (uint32_t way = 0; way < UNWIND_WAYS; way++)
		if (unwind_match(&set[way], key))
			__atomic_store_n(&set[way].rule, 0, __ATOMIC_RELAXED);
	unwind_put_in(set, key, rule);
	__atomic_fetch_add(&unwind_turn, 1, __ATOMIC_SEQ_CST);
}

// Compile the rule and put it into the table. Within a call of our own nothing can be locked (we
// may hold code_lock already), so that the walk ends there.
static COLD unwind_rule unwind_find_slow(uint64_t key)
{
	uint64_t signals;
	unwind_rule rule;
	uint32_t frame;
	bool lasts;

	if (kernel_nested())
		return UNWIND_STOP;
	signals = kernel_block_signals();
	recording_lock(&recording_state->code_lock);
	rule = unwind_make_rule(key, &lasts);
	if (lasts) {
		unwind_put(key, rule);
	} else { // for this walk
		__atomic_fetch_add(&unwind_turn, 1, __ATOMIC_SEQ_CST);
		__atomic_fetch_add(&capture_epoch, 1, __ATOMIC_SEQ_CST);
	}
	// Frame ids are counted on, so that each power of two is met about once: then what the
	// recorder takes is measured, and at 4,096 the table becomes a huge page.
	frame = unwind_frame(rule);
	if (frame >= UNWIND_MEASURE_MIN && (frame & (frame - 1)) == 0) // now and then
		recording_measure();
	recording_unlock(&recording_state->code_lock);
	kernel_restore_signals(signals);
	return rule;
}

unwind_rule unwind_find_more(uint64_t key)
{
	const struct unwind_entry *set = unwind_set(key);

	for (int way = 1; way < UNWIND_WAYS; way++) {
		unwind_rule rule = unwind_match(&set[way], key);

		if (likely(rule))
			return rule;
	}
	return unwind_find_slow(key);
}
