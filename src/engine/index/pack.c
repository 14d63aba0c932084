// Columns of numbers: the width that suits a group best, and reading it again.
//
// The width is found by counting how many numbers have how many bits. From the largest down, each
// width costs its bits for all, and for each number that has more a place and what is above: the
// least wins. So a group with a few large numbers does not pay for them 128 times.
//
// For example, 128 numbers of which 126 have 5 bits and two have 20. As they are they take 128 *
// 20 = 2,560 bits. With a width of 5 they take 128 * 5 = 640 bits, 16 for the head of the
// patches, and for each of the two a place (8 bits) and 15 bits of what is above: 702 bits, a
// little more than a quarter. A width of 4 would make patches of the others, too.
#include "engine/index/pack.h"

#include "base/mem.h"
#include "engine/index/index_bits.h"

enum { WIDTH_MAX = 56 }; // so that a number is within 8 bytes, wherever it begins

_Static_assert(PACK_GROUP <= UINT8_MAX, "a place in a group is a byte");

// Widths of 57 to 63 are not used: such a number may reach into a ninth byte.
static unsigned rounded(unsigned width)
{
	return width > WIDTH_MAX ? 64 : width;
}

// The best width for numbers of `most` bits at most, and how many have more.
static unsigned best_width(uint8_t having[2][65], unsigned most, uint32_t count, uint32_t *patched)
{
	enum { PATCH_BITS = 8, HEAD_BITS = 16 };
	uint64_t least = (uint64_t)count * rounded(most);
	uint32_t more = 0;
	unsigned best = most;

	*patched = 0;
	for (unsigned width = most; width-- > 0;) {
		uint64_t cost;

		more += having[0][width + 1] + having[1][width + 1];
		if (more * (uint64_t)PATCH_BITS > least)
			break;
		cost = (uint64_t)count * rounded(width) + HEAD_BITS +
		       more * (uint64_t)(PATCH_BITS + rounded(most - width));
		if (cost >= least)
			continue;
		least = cost;
		best = width;
		*patched = more;
	}
	return best;
}

// A byte with the width, and whether there are patches; of these how many, their width, and their
// places; then the low bits of all numbers; then what the patched ones have above. The example's
// group: 05 with the mark, 02 0f, two places, 80 bytes, and 30 bits in 4.
uint8_t *pack_put_group(uint8_t *out, const uint64_t *values, uint32_t count)
{
	// Two counters for each width: one would wait for itself where all are alike.
	uint8_t having[2][65] = { { 0 } };
	struct pack_bits bits;
	uint64_t all = 0, mask;
	uint32_t patched;
	unsigned most, width, above;

	ASSERT(count <= PACK_GROUP);
	for (uint32_t i = 0; i < count; i++) {
		all |= values[i];
		having[i % 2][pack_width(values[i])]++;
	}
	most = pack_width(all);
	width = rounded(best_width(having, most, count, &patched));
	above = rounded(most - width);
	*out++ = (uint8_t)(width | (patched ? PACK_PATCHED : 0));
	if (patched) {
		*out++ = (uint8_t)patched;
		*out++ = (uint8_t)above;
		for (uint32_t i = 0; i < count; i++)
			if (values[i] >> width)
				*out++ = (uint8_t)i;
	}
	bits = (struct pack_bits){ .at = out };
	mask = width < 64 ? (UINT64_C(1) << width) - 1 : UINT64_MAX;
	for (uint32_t i = 0; i < count; i++)
		pack_bits(&bits, values[i] & mask, width);
	out = pack_bits_end(&bits);
	if (!patched)
		return out;
	bits = (struct pack_bits){ .at = out };
	for (uint32_t i = 0; i < count; i++)
		if (values[i] >> width)
			pack_bits(&bits, values[i] >> width, above);
	return pack_bits_end(&bits);
}

static size_t bytes_of(unsigned width, size_t count)
{
	return (width * count + 7) / 8;
}

static bool can_be_width(unsigned width)
{
	return width <= WIDTH_MAX || width == 64;
}

// Numbers of one width: as many at a time as 8 bytes have for sure, 7 bits of which may be of the
// number before.
static void take_bits(const uint8_t *at, unsigned width, uint64_t *values, uint32_t count)
{
	enum { FOURS = (64 - 7) / 4, TWOS = (64 - 7) / 2 };
	uint64_t mask = width ? UINT64_MAX >> (64 - width) : 0;
	uint32_t i = 0;
	size_t bit = 0;

	for (; width <= FOURS && i + 4 <= count; i += 4, bit += 4 * (size_t)width) {
		uint64_t word = bits_load(at + bit / 8) >> bit % 8;

		values[i] = word & mask;
		values[i + 1] = word >> width & mask;
		values[i + 2] = word >> 2 * width & mask;
		values[i + 3] = word >> 3 * width & mask;
	}
	for (; width <= TWOS && i + 2 <= count; i += 2, bit += 2 * (size_t)width) {
		uint64_t word = bits_load(at + bit / 8) >> bit % 8;

		values[i] = word & mask;
		values[i + 1] = word >> width & mask;
	}
	for (; i < count; i++, bit += width)
		values[i] = bits_load(at + bit / 8) >> bit % 8 & mask;
}

// A group, taken apart.
struct parts {
	unsigned width, above;
	uint32_t patched;
	const uint8_t *places, *numbers, *high;
};

// Moves *at to its end.
static bool take_apart(const uint8_t **at, const uint8_t *end, uint32_t count, struct parts *parts)
{
	const uint8_t *from = *at;

	ASSERT(count <= PACK_GROUP);
	*parts = (struct parts){ 0 };
	if (from >= end)
		return false;
	parts->width = *from++;
	if (parts->width & PACK_PATCHED) {
		parts->width &= PACK_PATCHED - 1;
		if (end - from < 2)
			return false;
		parts->patched = *from++;
		parts->above = *from++;
		parts->places = from;
		if (parts->patched > count || parts->width >= 64 || !can_be_width(parts->above) ||
		    parts->patched > (size_t)(end - from))
			return false;
		from += parts->patched;
	}
	parts->numbers = from;
	if (!can_be_width(parts->width) ||
	    bytes_of(parts->width, count) + bytes_of(parts->above, parts->patched) >
		    (size_t)(end - from))
		return false;
	parts->high = from + bytes_of(parts->width, count);
	*at = parts->high + bytes_of(parts->above, parts->patched);
	return true;
}

// The upper parts, each to its number. A place is what the file says, so it is checked.
static bool take_patches(const struct parts *parts, uint64_t *values, uint32_t count)
{
	uint64_t high[PACK_GROUP];

	take_bits(parts->high, parts->above, high, parts->patched);
	for (uint32_t i = 0; i < parts->patched; i++) {
		if (parts->places[i] >= count)
			return false;
		values[parts->places[i]] |= high[i] << parts->width;
	}
	return true;
}

bool pack_skip_group(const uint8_t **at, const uint8_t *end, uint32_t count)
{
	struct parts parts;

	return take_apart(at, end, count, &parts);
}

bool pack_take_group(const uint8_t **at, const uint8_t *end, uint64_t *values, uint32_t count)
{
	struct parts parts;

	if (!take_apart(at, end, count, &parts))
		return false;
	take_bits(parts.numbers, parts.width, values, count);
	return !parts.patched || take_patches(&parts, values, count);
}

void pack_cursor_group(struct pack_cursor *cursor)
{
	static const uint8_t nothing[8];
	struct parts parts;

	cursor->count = cursor->left < PACK_GROUP ? cursor->left : PACK_GROUP;
	cursor->left -= cursor->count;
	cursor->next = cursor->patch = 0;
	if (cursor->count == 0 || !take_apart(&cursor->at, cursor->end, cursor->count, &parts)) {
		*cursor = (struct pack_cursor){ .bad = true, .numbers = nothing, .count = 1 };
		return;
	}
	cursor->width = parts.width;
	cursor->mask = parts.width ? UINT64_MAX >> (64 - parts.width) : 0;
	cursor->high_mask = parts.above ? UINT64_MAX >> (64 - parts.above) : 0;
	cursor->above = parts.above;
	cursor->patched = parts.patched;
	cursor->numbers = parts.numbers;
	cursor->places = parts.places;
	cursor->high = parts.high;
}

size_t pack_bytes_max(size_t count)
{
	return (count / PACK_GROUP + 1) * PACK_GROUP_MAX + PACK_SLACK;
}

uint8_t *pack_put(uint8_t *out, const uint64_t *values, size_t count)
{
	for (size_t i = 0; i < count; i += PACK_GROUP)
		out = pack_put_group(out, values + i,
				     (uint32_t)(count - i < PACK_GROUP ? count - i : PACK_GROUP));
	return out;
}

bool pack_take(const uint8_t **at, const uint8_t *end, uint64_t *values, size_t count)
{
	for (size_t i = 0; i < count; i += PACK_GROUP)
		if (!pack_take_group(at, end, values + i,
				     (uint32_t)(count - i < PACK_GROUP ? count - i : PACK_GROUP)))
			return false;
	return true;
}

void pack_words_clear(struct pack_words *words)
{
	words->count = 0;
	// Slots of earlier turns are free ones.
	if (++words->turn == 0) {
		memset(words->slots, 0, sizeof words->slots);
		words->turn = 1;
	}
}
