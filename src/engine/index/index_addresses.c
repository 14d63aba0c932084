// Where long lifetimes and what nothing ended were: a block of addresses, packed and read again.
//
// Addresses are a multiple of something, and lie in few parts of the address space. So each is the
// number of its mebibyte, among those that the block has, and its place there; or, where there are
// too many of those, how far it is from the lowest one. For example 4,096 blocks of a heap of
// 200 MiB, each a multiple of 16: 200 mebibytes of 2 bytes each come first, and then each block
// takes 8 + 16 bits: 3.1 bytes.
//
//     byte      how many of the lowest bits are 0 everywhere
//     byte      width of a number of a mebibyte; NO_PARTS: there are none
//     byte      width of what follows it
//     varint    the lowest address, or mebibyte
//     varints   how many mebibytes there are, and their distances, rising
//     bits      of each address
#include "base/mem.h"
#include "base/radix.h"
#include "engine/index/index_moment.h"

enum {
	PART_LOG2 = 20,
	PARTS_MAX = 1 << 12,
	SLOTS = 4 * PARTS_MAX,
	NO_PARTS = 255,
	HEAD_MAX = 3 + 3 * 10,
	PART_MAX = 10,
};

// The mebibytes of a block, and their numbers.
struct parts {
	uint64_t keys[SLOTS]; // mebibyte + 1; 0: a free slot
	uint16_t numbers[SLOTS];
	uint64_t list[PARTS_MAX], scratch[PARTS_MAX];
	uint32_t count;
};

static size_t slot_of(const struct parts *parts, uint64_t part)
{
	size_t slot = (size_t)((part + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 32) % SLOTS;

	while (parts->keys[slot] && parts->keys[slot] != part + 1)
		slot = (slot + 1) % SLOTS;
	return slot;
}

// Find the mebibytes of all addresses. False: there are too many.
static bool find_parts(struct parts *parts, const uint64_t *addresses, uint32_t count)
{
	uint64_t last = UINT64_MAX;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t part = addresses[i] >> PART_LOG2;
		size_t slot;

		if (part == last)
			continue;
		last = part;
		slot = slot_of(parts, part);
		if (parts->keys[slot])
			continue;
		if (parts->count == PARTS_MAX)
			return false;
		parts->keys[slot] = part + 1;
		parts->list[parts->count++] = part;
	}
	radix_sort(parts->list, parts->scratch, parts->count, 0);
	for (uint32_t i = 0; i < parts->count; i++)
		parts->numbers[slot_of(parts, parts->list[i])] = (uint16_t)i;
	return true;
}

// What all addresses have in common: the lowest and the highest, and how many of the lowest bits
// are 0 in all. Those are fewer than the bits of a place in a mebibyte, so that at least one is
// left.
static void look_at(const uint64_t *addresses, uint32_t count, unsigned *shift, uint64_t *lowest,
		    uint64_t *highest)
{
	uint64_t all = UINT64_C(1) << (PART_LOG2 - 1);

	*lowest = UINT64_MAX;
	*highest = 0;
	for (uint32_t i = 0; i < count; i++) {
		all |= addresses[i];
		if (addresses[i] < *lowest)
			*lowest = addresses[i];
		if (addresses[i] > *highest)
			*highest = addresses[i];
	}
	*shift = (unsigned)__builtin_ctzll(all);
}

// Bytes of a block with its mebibytes, about; more than any if there are too many.
static uint64_t bytes_by_parts(const struct parts *parts, uint32_t count, unsigned shift)
{
	return parts->count * (uint64_t)2 +
	       (uint64_t)count * (pack_width(parts->count - 1) + PART_LOG2 - shift) / 8;
}

// One block of addresses, by mebibytes or by how far each is from the lowest, whichever is less.
static size_t put(uint8_t *out, const uint64_t *addresses, uint32_t count, struct parts *parts)
{
	struct pack_bits packing = { .at = out + 3 };
	uint64_t lowest, highest, last;
	unsigned shift, width;
	bool by_parts = find_parts(parts, addresses, count);

	look_at(addresses, count, &shift, &lowest, &highest);
	width = pack_width((highest - lowest) >> shift);
	by_parts = by_parts && bytes_by_parts(parts, count, shift) < (uint64_t)count * width / 8;
	out[0] = (uint8_t)shift;
	out[1] = by_parts ? (uint8_t)pack_width(parts->count - 1) : NO_PARTS;
	out[2] = (uint8_t)(by_parts ? PART_LOG2 - shift : width);
	last = by_parts ? parts->list[0] : lowest;
	packing.at += bits_put_varint(packing.at, last);
	if (by_parts)
		packing.at += bits_put_varint(packing.at, parts->count);
	for (uint32_t i = 1; by_parts && i < parts->count; i++) {
		packing.at += bits_put_varint(packing.at, parts->list[i] - last);
		last = parts->list[i];
	}
	for (uint32_t i = 0; i < count; i++) {
		if (!by_parts) {
			pack_bits(&packing, (addresses[i] - lowest) >> shift, width);
			continue;
		}
		pack_bits(&packing, parts->numbers[slot_of(parts, addresses[i] >> PART_LOG2)],
			  out[1]);
		pack_bits(&packing, (addresses[i] & ((1 << PART_LOG2) - 1)) >> shift, out[2]);
	}
	return (size_t)(pack_bits_end(&packing) - out);
}

// Room for the longest block there may be: the head, each mebibyte as a varint, and each address
// whole.
void index_addresses_write(struct index_files *files, unsigned of, const uint64_t *addresses,
			   uint32_t count)
{
	struct index_address_blocks *blocks = &files->address_blocks[of];
	struct parts *parts = mem_alloc(1, sizeof *parts);
	uint8_t *out = mem_resize(
		NULL, HEAD_MAX + PARTS_MAX * (size_t)PART_MAX + 8 + count * sizeof(uint64_t), 1);
	size_t size;

	ASSERT(count > 0);
	ASSERT(of < INDEX_ADDRESSES);
	size = put(out, addresses, count, parts);
	*MEM_ADD(blocks->list, blocks->count, blocks->capacity) =
		(struct index_addresses){ files->addresses.size, (uint32_t)size, count };
	vault_append(&files->addresses, out, size);
	MEM_FREE(out, parts);
}

// A number that begins within a byte may reach into a ninth one.
static uint64_t take_bits(const uint8_t *bytes, uint64_t bit, unsigned width)
{
	const uint8_t *at = bytes + bit / 8;
	uint64_t word = bits_load(at) >> bit % 8;

	if (bit % 8 + width > 64)
		word |= (uint64_t)at[8] << (64 - bit % 8);
	return width < 64 ? word & ((UINT64_C(1) << width) - 1) : word;
}

// `bytes` is followed by 16 more that may be read. The widths and counts must come to the block's
// size to the byte; else it is damaged.
static bool unpack(const uint8_t *bytes, size_t size, uint64_t *out, uint32_t count)
{
	uint64_t parts[PARTS_MAX], parts_count = 0, lowest;
	const uint8_t *at = bytes + 3, *end = bytes + size;
	unsigned shift, width, part_width;

	if (size < 4 || bytes[0] >= PART_LOG2 || bytes[2] > 64)
		return false;
	shift = bytes[0];
	width = bytes[2];
	part_width = bytes[1] == NO_PARTS ? 0 : bytes[1];
	lowest = bits_take_varint(&at, end);
	if (bytes[1] != NO_PARTS) {
		parts_count = bits_take_varint(&at, end);
		if (parts_count == 0 || parts_count > PARTS_MAX || part_width > 12)
			return false;
	}
	for (uint64_t i = 0; i < parts_count; i++)
		parts[i] = lowest += i ? bits_take_varint(&at, end) : 0;
	if (at > end || ((uint64_t)(width + part_width) * count + 7) / 8 != (uint64_t)(end - at))
		return false;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t bit = (uint64_t)(width + part_width) * i;
		uint64_t number = take_bits(at, bit, part_width);
		uint64_t low = take_bits(at, bit + part_width, width) << shift;

		if (parts_count > 0 && number >= parts_count)
			return false;
		out[i] = parts_count > 0 ? (parts[number] << PART_LOG2) + low : lowest + low;
	}
	return true;
}

bool index_addresses_read(struct index *index, unsigned of, size_t block, uint32_t count,
			  uint64_t *out, struct err *err)
{
	const struct index_address_blocks *blocks = &index->files.address_blocks[of];
	const struct index_addresses *found = &blocks->list[block];
	uint8_t *bytes;
	bool ok;

	if (block >= blocks->count || found->count != count ||
	    found->size > index->files.addresses.size)
		return err_set(err, ERR_FORMAT, "the index is damaged: addresses");
	bytes = mem_alloc(found->size + (size_t)16, 1);
	ok = vault_read(&index->files.addresses, found->at, bytes, found->size, err) &&
	     (unpack(bytes, found->size, out, count) ||
	      err_set(err, ERR_FORMAT, "the index is damaged: addresses"));
	mem_free(bytes);
	return ok;
}
