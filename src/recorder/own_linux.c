// Most calls that give memory away have nothing of ours in their range, and must find that out
// fast. Memory is cut into chunks of 2 MiB, and each has a byte in a filter of 4,096: munmap of 64
// KiB at 0x7f1234560000 looks at byte (0x7f1234560000 >> 21) % 4096 alone, and is done if that is
// 0. Bytes are never cleared: a chunk in which something of ours was is looked at in full for ever.
#include "recorder/own_linux.h"

#include "recorder/kernel.h"

enum {
	OWN_MAX = 16384,
	OWN_CHUNK_BITS = 21, // what lies in one chunk has one bit in the filter
	OWN_FILTER_BITS = 4096,
};

static struct own_range own_ranges[OWN_MAX]; // end 0: none
static _Atomic uint32_t own_count;
// Where none of ours can be: most calls are answered by this.
static _Atomic uint8_t own_filter[OWN_FILTER_BITS];

static _Atomic uint8_t *own_chunk(uintptr_t address)
{
	return &own_filter[(address >> OWN_CHUNK_BITS) % OWN_FILTER_BITS];
}

// Both chunks and all between them. Where the range is larger than what the filter covers (4,096 *
// 2 MiB = 8 GiB), it has to be looked at in full.
static bool own_may_have(uintptr_t start, uintptr_t end)
{
	uintptr_t first = start >> OWN_CHUNK_BITS, last = (end - 1) >> OWN_CHUNK_BITS;

	if (last - first >= OWN_FILTER_BITS)
		return true;
	for (; first <= last; first++)
		if (own_chunk(first << OWN_CHUNK_BITS)[0])
			return true;
	return false;
}

// Entries are never reused: `own_count` only grows. What comes after the 16,384th is not protected.
// The end is written last, since an entry without one is not looked at.
void own_add(uintptr_t start, uintptr_t bytes)
{
	uint32_t at = __atomic_fetch_add(&own_count, 1, __ATOMIC_RELAXED);

	if (at >= OWN_MAX)
		return;
	own_ranges[at].start = start;
	bytes += KERNEL_PAGE - 1;
	bytes -= bytes % KERNEL_PAGE;
	__atomic_store_n(&own_ranges[at].end, start + bytes, __ATOMIC_RELEASE);
	for (uintptr_t i = start >> OWN_CHUNK_BITS;
	     bytes && i <= (start + bytes - 1) >> OWN_CHUNK_BITS; i++)
		*own_chunk(i << OWN_CHUNK_BITS) = 1;
}

void own_remove(uintptr_t start)
{
	uint32_t count = __atomic_load_n(&own_count, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < count && i < OWN_MAX; i++)
		if (own_ranges[i].start == start)
			__atomic_store_n(&own_ranges[i].end, 0, __ATOMIC_RELEASE);
}

uint64_t own_bytes(void)
{
	uint32_t count = __atomic_load_n(&own_count, __ATOMIC_RELAXED);
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < count && i < OWN_MAX; i++) {
		uintptr_t end = __atomic_load_n(&own_ranges[i].end, __ATOMIC_ACQUIRE);

		bytes += end ? end - own_ranges[i].start : 0;
	}
	return bytes;
}

// Without a lock: an entry that is just being added is found, or not, as if it came a moment later.
bool own_find(uintptr_t start, uintptr_t end, struct own_range *found)
{
	uint32_t count = __atomic_load_n(&own_count, __ATOMIC_RELAXED);

	found->end = 0;
	if (start >= end || !own_may_have(start, end))
		return false;
	for (uint32_t i = 0; i < count && i < OWN_MAX; i++) {
		uintptr_t its_end = __atomic_load_n(&own_ranges[i].end, __ATOMIC_ACQUIRE);

		if (its_end > start && own_ranges[i].start < end &&
		    (!found->end || own_ranges[i].start < found->start))
			*found = (struct own_range){ own_ranges[i].start, its_end };
	}
	return found->end != 0;
}
