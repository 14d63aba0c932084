// What docs/format.md sections 3 and 4 promise about the preamble and about blocks.
#include "test/test.h"
#include "trace/block.h"

#include <string.h>

static const struct block sample = {
	.type = BLOCK_EVENTS,
	.events_count = 3,
	.first_event = 1000,
	.first_ns = 5,
	.last_ns = 7,
	.sequence = 9,
};

// A payload that compresses, and one that does not.
static void fill(uint8_t *bytes, size_t size, bool compressible)
{
	uint64_t state = 7;

	for (size_t i = 0; i < size; i++) {
		state = state * 6364136223846793005 + 1442695040888963407;
		bytes[i] = compressible ? (uint8_t)(i / 100) : (uint8_t)(state >> 56);
	}
}

static void check_pack(size_t size, bool compressible, bool compress, uint8_t codec)
{
	struct block_packer packer = { 0 };
	struct block_unpacker unpacker = { 0 };
	struct block block = sample, read;
	struct bytes out = { 0 };
	struct bytes_cursor payload;
	struct err err = { 0 };
	uint8_t *raw = mem_alloc(size + 1, 1), *copy;

	fill(raw, size, compressible);
	block_pack(&packer, &block, raw, size, compress, &out);
	copy = test_guarded_copy(out.data, out.size);
	CHECK(block_header_decode(copy, &read));
	CHECK_EQ(codec, read.codec);
	CHECK_EQ(size, read.raw_size);
	CHECK_EQ(out.size, BLOCK_HEADER_BYTES + read.stored_size);
	CHECK_EQ(1000, read.first_event);
	CHECK_EQ(5, read.first_ns);
	CHECK_EQ(7, read.last_ns);
	CHECK_EQ(9, read.sequence);
	CHECK_EQ(3, read.events_count);
	CHECK(block_unpack(&unpacker, &read, copy + BLOCK_HEADER_BYTES, &payload, &err));
	CHECK_EQ(size, bytes_left(&payload));
	CHECK_EQ(0, memcmp(raw, payload.at, size));
	block_packer_fini(&packer);
	block_unpacker_fini(&unpacker);
	bytes_fini(&out);
	mem_free(raw);
}

TEST(block_gives_back_what_was_packed)
{
	check_pack(0, true, true, BLOCK_RAW);
	check_pack(10, true, true, BLOCK_RAW); // too small to be worth it
	check_pack(100000, true, true, BLOCK_ZSTD);
	check_pack(100000, true, false, BLOCK_RAW);
	check_pack(100000, false, true, BLOCK_RAW); // does not get smaller
	check_pack(BLOCK_SIZE_MAX, true, true, BLOCK_ZSTD);
}

// A payload of four parts, of which the second compresses or not; returns how large it is packed.
static size_t check_parts(struct block_packer *packer, bool compressible)
{
	enum { PART = 150000, SMALL = 100, SIZE = 3 * PART + SMALL };
	static const size_t cuts[] = { 0, PART, 2 * PART, 2 * PART + SMALL };
	struct block block = { .type = BLOCK_EVENTS, .events_count = PART };
	struct block_unpacker unpacker = { 0 };
	struct bytes out = { 0 };
	struct bytes_cursor payload;
	struct err err = { 0 };
	uint8_t *raw = mem_alloc(SIZE, 1);
	size_t packed;

	fill(raw, SIZE, true);
	fill(raw + PART, PART, compressible);
	for (packer->cuts_count = 0; packer->cuts_count < 4; packer->cuts_count++) {
		packer->cuts[packer->cuts_count] = cuts[packer->cuts_count];
		packer->names[packer->cuts_count] = (uint8_t)(10 + packer->cuts_count);
	}
	block_pack(packer, &block, raw, SIZE, true, &out);
	CHECK_EQ(0, packer->cuts_count);
	CHECK_EQ(BLOCK_ZSTD, block.codec);
	CHECK_EQ(SIZE, block.raw_size);
	CHECK(block_unpack(&unpacker, &block, out.data + BLOCK_HEADER_BYTES, &payload, &err));
	CHECK_EQ(SIZE, bytes_left(&payload));
	CHECK_BYTES(raw, payload.at, SIZE);
	packed = block.stored_size;
	block_unpacker_fini(&unpacker);
	bytes_fini(&out);
	mem_free(raw);
	return packed;
}

// A part that does not get smaller is left as it is in the next blocks, and those before and after
// it are packed as before; it is tried again now and then.
TEST(block_leaves_parts_as_they_are_that_do_not_get_smaller)
{
	struct block_packer packer = { 0 };
	size_t packed = check_parts(&packer, true), blocks = 0;

	CHECK(packed < 20000);
	CHECK_EQ(0, packer.left[11]);
	packed = check_parts(&packer, false);
	CHECK(packed > 150000 && packed < 170000);
	CHECK(packer.left[11] > 0);
	CHECK(packer.left[10] + packer.left[12] + packer.left[13] == 0);
	packed = check_parts(&packer, false);
	CHECK(packed > 150000 && packed < 170000);
	while (check_parts(&packer, true) > 150000)
		blocks++;
	CHECK(blocks > 10 && blocks < 100);
	CHECK_EQ(0, packer.left[11]);
	block_packer_fini(&packer);
}

TEST(block_header_with_any_bit_flipped_is_none)
{
	uint8_t header[BLOCK_HEADER_BYTES];
	struct block block = { 0 };

	block_header_encode(&sample, header);
	CHECK(block_header_decode(header, &block));
	for (size_t bit = 0; bit < 8 * sizeof header; bit++) {
		header[bit / 8] ^= (uint8_t)(1 << bit % 8);
		CHECK(!block_header_decode(header, &block));
		header[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

TEST(block_beyond_the_limits_is_none)
{
	uint8_t header[BLOCK_HEADER_BYTES];
	struct block block, read;

	block = sample;
	block.stored_size = BLOCK_SIZE_MAX + 1;
	block_header_encode(&block, header);
	CHECK(!block_header_decode(header, &read));
	block = sample;
	block.raw_size = BLOCK_SIZE_MAX + 1;
	block_header_encode(&block, header);
	CHECK(!block_header_decode(header, &read));
	block = sample;
	block.events_count = BLOCK_EVENTS_MAX + 1;
	block_header_encode(&block, header);
	CHECK(!block_header_decode(header, &read));
	block = sample;
	block.first_ns = 8;
	block_header_encode(&block, header);
	CHECK(!block_header_decode(header, &read));
}

// A block whose header claims other sizes than its payload has.
static bool unpacks(struct block *block, const uint8_t *stored)
{
	struct block_unpacker unpacker = { 0 };
	struct bytes_cursor payload;
	struct err err = { 0 };
	bool ok = block_unpack(&unpacker, block, stored, &payload, &err);

	CHECK(ok || err.kind == ERR_FORMAT);
	block_unpacker_fini(&unpacker);
	return ok;
}

TEST(block_never_unpacks_past_its_raw_size)
{
	struct block_packer packer = { 0 };
	struct bytes out = { 0 };
	struct block block = sample, lying;
	uint8_t raw[5000] = { 0 };

	block_pack(&packer, &block, raw, sizeof raw, true, &out);
	CHECK(unpacks(&block, out.data + BLOCK_HEADER_BYTES));
	lying = block;
	lying.raw_size = 4999;
	CHECK(!unpacks(&lying, out.data + BLOCK_HEADER_BYTES));
	lying.raw_size = 5001;
	CHECK(!unpacks(&lying, out.data + BLOCK_HEADER_BYTES));
	lying.raw_size = 0;
	CHECK(!unpacks(&lying, out.data + BLOCK_HEADER_BYTES));
	lying = block;
	lying.codec = 7;
	CHECK(!unpacks(&lying, out.data + BLOCK_HEADER_BYTES));
	lying.codec = BLOCK_RAW;
	CHECK(!unpacks(&lying, out.data + BLOCK_HEADER_BYTES));
	block_packer_fini(&packer);
	bytes_fini(&out);
}

TEST(block_preamble_tells_ours_from_damaged_from_foreign)
{
	struct block_preamble preamble = { .version_major = 3,
					   .version_minor = 4,
					   .began_unix_ns = 99 };
	uint8_t bytes[BLOCK_PREAMBLE_BYTES];
	struct block_preamble read;

	memset(preamble.recording_id, 0xab, sizeof preamble.recording_id);
	block_preamble_encode(&preamble, bytes);
	CHECK_EQ(BLOCK_PREAMBLE_OK, block_preamble_decode(bytes, sizeof bytes, &read));
	CHECK_EQ(3, read.version_major);
	CHECK_EQ(4, read.version_minor);
	CHECK_EQ(99, read.began_unix_ns);
	CHECK_BYTES(preamble.recording_id, read.recording_id, 16);
	for (size_t size = 0; size < sizeof bytes; size++)
		CHECK_EQ(size < 8 ? BLOCK_PREAMBLE_FOREIGN : BLOCK_PREAMBLE_DAMAGED,
			 block_preamble_decode(test_guarded_copy(bytes, size), size, &read));
	bytes[40] ^= 1;
	CHECK_EQ(BLOCK_PREAMBLE_DAMAGED, block_preamble_decode(bytes, sizeof bytes, &read));
	bytes[0] ^= 1;
	CHECK_EQ(BLOCK_PREAMBLE_FOREIGN, block_preamble_decode(bytes, sizeof bytes, &read));
}
