// For example, a page at 0x555555559000 begins with the secret, and says in its fourth description:
//
//     group at 0x7ffff7ffe020, of 31 slots of 32 bytes (its class is 1), of which number 3 is
//     available, 4 to 30 are freed
//
// So slots 0 to 2 are blocks. Number 2 is 32 bytes from 0x7ffff7ffe020 + 16 + 2 * 32 on, whose
// last four are the head of number 3. Its own head, the four bytes before it, says: 0, number 2
// with 4 of 28 bytes not asked for, and 4: it is four units of 16 bytes behind the group's first
// slot. So it is a block of 24 bytes.
//
// A block may begin further in, so that an address is not soon used again, or where an alignment
// wants it. Then the slot's head says 7 in the place of that 4, and how many units further; there
// is a head like the one above. A 6 there: the slot has a group of smaller blocks.
#include "launch/musl_heap_linux.h"

#include "base/map.h"
#include "base/mem.h"

#include <string.h>

enum {
	MUSL_HEAP_UNIT = 16,
	MUSL_HEAP_PAGE = 4096,
	MUSL_HEAP_HEAD = 4,
	MUSL_HEAP_LONG_HEAD =
		8, // of what is more than 16 bits of units behind the group's beginning
	MUSL_HEAP_CLASSES = 48,
	MUSL_HEAP_ALONE = 63,        // the class of a block that has a mapping alone
	MUSL_HEAP_WINDOW = 64 << 10, // of a group, read at once
	// In place of the bytes that were not asked for:
	MUSL_HEAP_MANY = 5, // they are in the slot's last word
	MUSL_HEAP_GROUP = 6,
	MUSL_HEAP_FURTHER = 7,
	// Words of its variables, from the secret on.
	MUSL_HEAP_AT_READY = 1,
	MUSL_HEAP_AT_FIRST = 7,
	MUSL_HEAP_AT_LAST = 8,
	MUSL_HEAP_WORDS = 9,
};

// What describes a group (`meta`).
struct musl_heap_group {
	uint64_t links[2];
	uint64_t at;              // 0: it describes none
	uint32_t available, free; // by number of a slot
	uint64_t form;            // last slot: 5 bits, may be freed: 1, class: 6, pages: the others
};

enum {
	MUSL_HEAP_GROUPS = (MUSL_HEAP_PAGE - 24) / (int)sizeof(struct musl_heap_group),
};

// A page of these (`meta_area`).
struct musl_heap_area {
	uint64_t secret, next;
	uint32_t count, unused;
	struct musl_heap_group groups[MUSL_HEAP_GROUPS];
};

_Static_assert(sizeof(struct musl_heap_group) == 40, "struct meta");
_Static_assert(sizeof(struct musl_heap_area) == 24 + 101 * 40, "struct meta_area");

static const uint16_t musl_heap_units[MUSL_HEAP_CLASSES] = {
	1,   2,   3,   4,    5,    6,    7,    8,    9,    10,   12,   15,   18,   20,   25,   31,
	36,  42,  50,  63,   72,   84,   102,  127,  146,  170,  204,  255,  292,  340,  409,  511,
	584, 682, 818, 1023, 1169, 1364, 1637, 2047, 2340, 2730, 3276, 4095, 4680, 5460, 6552, 8191,
};

struct musl_heap_walk {
	struct glibc_heap *heap;
	const struct tracee *tracee;
	struct map inner; // groups in slots of others: 1 if the slot was met, 2 if the group was
	struct map areas; // pages that were read
	uint64_t secret, first, last; // pages
	uint8_t *window;              // the beginning of a group
	uint64_t window_at, window_size;
};

static bool musl_heap_fail(struct musl_heap_walk *walk, const char *why)
{
	str_clear(&walk->heap->why);
	str_format(&walk->heap->why, "musl's heap %s", why);
	return false;
}

static bool musl_heap_bytes(const struct musl_heap_walk *walk, uint64_t at, void *bytes,
			    size_t size)
{
	if (at - walk->window_at < walk->window_size &&
	    walk->window_size - (at - walk->window_at) >= size) {
		memcpy(bytes, walk->window + (at - walk->window_at), size);
		return true;
	}
	return tracee_read(walk->tracee->pid, at, bytes, size);
}

// Whether a page of descriptions begins there.
static bool musl_heap_is_area(const struct musl_heap_walk *walk, uint64_t at, uint64_t secret)
{
	uint64_t word;

	return at && at % MUSL_HEAP_PAGE == 0 &&
	       tracee_read(walk->tracee->pid, at, &word, sizeof(word)) && word == secret;
}

// Nine words of its context in a row: the secret, a word that says that it is ready (1), and at 7
// and 8 the first and the last page, which both begin with the secret.
static bool musl_heap_find(struct musl_heap_walk *walk, const struct objects *objects)
{
	const struct objects_one *libc = objects_libc(objects);
	uint64_t *data = NULL;
	size_t count = 0;

	if (!libc || !objects_variables(objects, libc, &data, &count))
		return musl_heap_fail(walk, "has variables that cannot be read");
	for (size_t i = 0; i + MUSL_HEAP_WORDS <= count && !walk->secret; i++) {
		if (!data[i] || (uint32_t)data[i + MUSL_HEAP_AT_READY] != 1 ||
		    !musl_heap_is_area(walk, data[i + MUSL_HEAP_AT_FIRST], data[i]) ||
		    !musl_heap_is_area(walk, data[i + MUSL_HEAP_AT_LAST], data[i]))
			continue;
		walk->secret = data[i];
		walk->first = data[i + MUSL_HEAP_AT_FIRST];
		walk->last = data[i + MUSL_HEAP_AT_LAST];
	}
	mem_free(data);
	return walk->secret != 0 ||
	       musl_heap_fail(walk, "has a layout that is not known (that of musl 1.2.1 and later "
				    "is)");
}

// ---- A group ------------------------------------------------------------------------------------

// A group, and where its slots are.
struct musl_heap_slots {
	const struct musl_heap_group *group;
	uint64_t at, size; // of the first one, and of each, with the next one's head
	unsigned count;
	bool mapped; // the group has a mapping of its own
};

// False: it makes no sense.
static bool musl_heap_slots(const struct musl_heap_group *group, struct musl_heap_slots *slots)
{
	unsigned class = group->form >> 6 & 63;
	uint64_t bytes = (group->form >> 12) * MUSL_HEAP_PAGE;

	*slots = (struct musl_heap_slots){
		.group = group,
		.at = group->at + MUSL_HEAP_UNIT,
		.count = (group->form & 31) + 1,
		.mapped = bytes > 0,
	};
	if (bytes >> 48 || (class >= MUSL_HEAP_CLASSES && class != MUSL_HEAP_ALONE) ||
	    (class == MUSL_HEAP_ALONE && !(slots->mapped && slots->count == 1)) ||
	    group->at % MUSL_HEAP_UNIT || (slots->mapped && group->at % MUSL_HEAP_PAGE))
		return false;
	slots->size = slots->mapped && slots->count == 1
			      ? bytes - MUSL_HEAP_UNIT
			      : (uint64_t)musl_heap_units[class] * MUSL_HEAP_UNIT;
	return !slots->mapped || MUSL_HEAP_UNIT + slots->count * slots->size <= bytes;
}

// A slot's block, or what else is in it.
struct musl_heap_block {
	uint64_t at;
	unsigned left; // bytes that were not asked for, or MUSL_HEAP_GROUP …
};

// Whether a head before `at` is that of slot `number`.
static bool musl_heap_is_head(const struct musl_heap_walk *walk,
			      const struct musl_heap_slots *slots, unsigned number, uint64_t at,
			      unsigned *left)
{
	uint8_t head[MUSL_HEAP_HEAD];
	uint64_t units = (at - slots->at) / MUSL_HEAP_UNIT;
	uint32_t distance = 0;

	if (!musl_heap_bytes(walk, at - sizeof(head), head, sizeof(head)) ||
	    (head[1] & 31u) != number)
		return false;
	*left = head[1] >> 5;
	if (!head[0])
		return (head[2] | (unsigned)head[3] << 8) == units;
	return !head[2] && !head[3] && units > UINT16_MAX &&
	       musl_heap_bytes(walk, at - MUSL_HEAP_LONG_HEAD, &distance, sizeof(distance)) &&
	       distance == units;
}

// Of a slot that is in use. How far in its block begins has 16 bits; where an alignment was larger
// than that it is found by its head.
static bool musl_heap_find_block(const struct musl_heap_walk *walk,
				 const struct musl_heap_slots *slots, unsigned number,
				 struct musl_heap_block *block)
{
	const uint64_t step = (uint64_t)MUSL_HEAP_UNIT << 16;
	uint64_t start = slots->at + number * slots->size, end = start + slots->size;
	uint8_t head[MUSL_HEAP_HEAD];

	ASSERT(number < slots->count);
	if (!musl_heap_bytes(walk, start - sizeof(head), head, sizeof(head)))
		return false;
	block->at = start;
	if (head[1] != MUSL_HEAP_FURTHER << 5)
		return musl_heap_is_head(walk, slots, number, start, &block->left);
	block->at += (head[2] | (uint64_t)head[3] << 8) * MUSL_HEAP_UNIT;
	for (; block->at < end - MUSL_HEAP_HEAD; block->at += step)
		if (block->at > start &&
		    musl_heap_is_head(walk, slots, number, block->at, &block->left))
			return true;
	return false;
}

// What was asked for of it. False: it makes no sense.
static bool musl_heap_size(const struct musl_heap_walk *walk, const struct musl_heap_slots *slots,
			   unsigned number, const struct musl_heap_block *block, uint64_t *size)
{
	uint64_t end = slots->at + (number + 1) * slots->size - MUSL_HEAP_HEAD;
	uint32_t left = block->left;

	if (left > MUSL_HEAP_MANY ||
	    (left == MUSL_HEAP_MANY &&
	     (!musl_heap_bytes(walk, end - sizeof(left), &left, sizeof(left)) ||
	      left < MUSL_HEAP_MANY)) ||
	    left > end - block->at)
		return false;
	*size = end - block->at - left;
	return true;
}

// ---- All of them --------------------------------------------------------------------------------

// A slot may be a block of another group, which is described elsewhere and walked there: here it is
// only noted, for musl_heap_check_inner.
static bool musl_heap_walk_slot(struct musl_heap_walk *walk, const struct musl_heap_slots *slots,
				unsigned number)
{
	struct musl_heap_block block;
	uint64_t size;

	if (!musl_heap_find_block(walk, slots, number, &block))
		return false;
	if (block.left == MUSL_HEAP_GROUP) {
		*map_put(&walk->inner, block.at, NULL) |= 1;
		return true;
	}
	if (!musl_heap_size(walk, slots, number, &block, &size))
		return false;
	glibc_heap_add(walk->heap, block.at, size);
	walk->heap->bytes += size;
	walk->heap->mapped += (slots->group->form >> 6 & 63) == MUSL_HEAP_ALONE;
	return true;
}

static void musl_heap_read_window(struct musl_heap_walk *walk, const struct musl_heap_slots *slots)
{
	uint64_t size = MUSL_HEAP_UNIT + slots->count * slots->size;

	walk->window_at = slots->group->at;
	walk->window_size = 0;
	if (size <= MUSL_HEAP_WINDOW &&
	    tracee_read(walk->tracee->pid, walk->window_at, walk->window, size))
		walk->window_size = size;
}

// `at`: where it is described, which it must say.
static bool musl_heap_walk_group(struct musl_heap_walk *walk, const struct musl_heap_group *group,
				 uint64_t at)
{
	uint32_t unused = group->available | group->free;
	struct musl_heap_slots slots;
	uint64_t described;

	if (!musl_heap_slots(group, &slots))
		return musl_heap_fail(walk, "has a group of blocks that makes no sense");
	musl_heap_read_window(walk, &slots);
	if (!musl_heap_bytes(walk, group->at, &described, sizeof(described)) || described != at ||
	    group->available & group->free || (uint64_t)unused >> slots.count)
		return musl_heap_fail(walk, "has a group of blocks that contradicts itself");
	if (!slots.mapped &&
	    (group->form >> 5 & 1)) // else it is of memory that is never given back
		*map_put(&walk->inner, group->at, NULL) |= 2;
	for (unsigned i = 0; i < slots.count; i++)
		if (!(unused >> i & 1) && !musl_heap_walk_slot(walk, &slots, i))
			return musl_heap_fail(walk, "has a block that contradicts its group");
	return true;
}

static bool musl_heap_walk_area(struct musl_heap_walk *walk, uint64_t at,
				const struct musl_heap_area *area)
{
	for (size_t i = 0; i < MUSL_HEAP_GROUPS; i++)
		if (area->groups[i].at &&
		    !musl_heap_walk_group(walk, &area->groups[i],
					  at + offsetof(struct musl_heap_area, groups) +
						  i * sizeof(area->groups[i])))
			return false;
	return true;
}

// A list from `first` on, which must end at `last`; a page that is met twice is a ring.
static bool musl_heap_walk_areas(struct musl_heap_walk *walk)
{
	uint64_t at = walk->first, before = 0;
	struct musl_heap_area area;

	for (; at; before = at, at = area.next) {
		bool added;

		map_put(&walk->areas, at, &added);
		if (!added || before == walk->last ||
		    !tracee_read(walk->tracee->pid, at, &area, sizeof(area)) ||
		    area.secret != walk->secret || area.count != MUSL_HEAP_GROUPS)
			return musl_heap_fail(walk, "has a list of its pages that is broken");
		if (!musl_heap_walk_area(walk, at, &area))
			return false;
	}
	return before == walk->last ||
	       musl_heap_fail(walk, "has a list of its pages that is broken");
}

// Each slot that is marked so has a group, and each group without a mapping a slot.
// A group of small blocks is in a slot of a group of larger ones; 1 and 2 are the two sides of
// that.
static bool musl_heap_check_inner(struct musl_heap_walk *walk)
{
	uint64_t at, met;

	for (size_t i = 0; map_next(&walk->inner, &i, &at, &met);)
		if (met != 3)
			return musl_heap_fail(walk, "has a group of blocks that is in no other's");
	return true;
}

// All or nothing: what was added before a contradiction does not count.
bool musl_heap_read(struct glibc_heap *heap, const struct objects *objects,
		    const struct tracee *tracee)
{
	struct musl_heap_walk *walk = mem_alloc(1, sizeof(*walk));
	bool ok;

	*heap = (struct glibc_heap){ 0 };
	walk->heap = heap;
	walk->tracee = tracee;
	walk->window = mem_alloc(MUSL_HEAP_WINDOW, 1);
	ok = musl_heap_find(walk, objects) && musl_heap_walk_areas(walk) &&
	     musl_heap_check_inner(walk);
	if (ok)
		str_add(&heap->with, "musl");
	else
		heap->count = heap->mapped = 0;
	heap->bytes = ok ? heap->bytes : 0;
	MAP_FINI(&walk->inner, &walk->areas);
	MEM_FREE(walk->window, walk);
	return ok;
}
