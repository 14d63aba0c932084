// For example, a stream of 10,000 bytes in a file with blocks of 4,096 has three blocks. If their
// numbers are 7, 8 and 9, the stream is the file's bytes from 28,672 on, and nothing is copied. If
// they are 7, 12 and 8, it is a copy of two whole blocks and of 1,808 bytes of block 8.
#include "symbols/msf.h"

#include "base/mem.h"
#include "trace/bytes.h"

#include <string.h>

static const char magic[] = "Microsoft C/C++ MSF 7.00\r\n\x1a"
			    "DS\0\0";

enum {
	HEAD_BYTES = 56,
	BLOCK_BYTES_MIN = 512,
	BLOCK_BYTES_MAX = 65536,
};

#define NO_STREAM UINT32_MAX

// A stream: its length, and where in the directory the numbers of its blocks are, 4 bytes each.
// They are not copied.
struct msf_entry {
	uint32_t size_bytes;
	size_t blocks_at; // in the directory
};

static uint64_t blocks_of(const struct msf *msf, uint32_t size_bytes)
{
	ASSERT(msf->block_bytes >= BLOCK_BYTES_MIN); // msf_open takes no others
	return ((uint64_t)size_bytes + msf->block_bytes - 1) / msf->block_bytes;
}

// Copy what `count` blocks hold, whose numbers stand at `numbers`. False: one is not in the file.
static bool gather(const struct msf *msf, const uint8_t *numbers, uint8_t *to, size_t size_bytes)
{
	for (size_t at = 0; at < size_bytes; at += msf->block_bytes, numbers += 4) {
		uint64_t from = (uint64_t)bytes_get_u32(numbers) * msf->block_bytes;
		size_t part = size_bytes - at < msf->block_bytes ? size_bytes - at
								 : msf->block_bytes;

		if (from >= msf->size_bytes || part > msf->size_bytes - from)
			return false;
		memcpy(to + at, msf->bytes + from, part);
	}
	return true;
}

// The directory is itself a stream. Its own block numbers are in the block `map_block`, which the
// head of the file names: three steps from the head to any byte. Where they need more than one
// block (1,024 numbers in one of 4,096 bytes: a directory of 4 MiB) they go on in what follows that
// block.
static bool read_directory(struct msf *msf, uint32_t size_bytes, uint32_t map_block)
{
	uint64_t map_at = (uint64_t)map_block * msf->block_bytes;
	uint64_t count = blocks_of(msf, size_bytes);

	if (size_bytes > msf->size_bytes || map_at >= msf->size_bytes ||
	    count > (msf->size_bytes - map_at) / 4)
		return false;
	msf->directory = mem_alloc(size_bytes + (size_t)1, 1);
	msf->directory_bytes = size_bytes;
	return gather(msf, msf->bytes + map_at, msf->directory, size_bytes);
}

// The directory: how many streams, the length of each, and then the block numbers of the first, of
// the second, and so on, without gaps. A stream of length 0xffffffff was deleted.
static bool read_entries(struct msf *msf)
{
	size_t at = 4;
	uint32_t count;

	if (msf->directory_bytes < 4)
		return false;
	count = bytes_get_u32(msf->directory);
	if (count > (msf->directory_bytes - 4) / 4)
		return false;
	at += (size_t)count * 4;
	// `count` is at most a quarter of bytes that are there, so this cannot be made large by
	// lying.
	msf->entries = mem_alloc(count + (size_t)1, sizeof *msf->entries);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t size_bytes = bytes_get_u32(msf->directory + 4 + (size_t)i * 4);
		uint64_t blocks;

		if (size_bytes == NO_STREAM)
			size_bytes = 0;
		blocks = blocks_of(msf, size_bytes);
		if (blocks > (msf->directory_bytes - at) / 4)
			return false;
		msf->entries[i] = (struct msf_entry){ size_bytes, at };
		at += (size_t)blocks * 4;
		ASSERT(at <= msf->directory_bytes);
		msf->streams_count = i + 1;
	}
	return true;
}

// After the magic, from byte 32 on, are numbers of four bytes: the size of a block, one of no
// interest, how many blocks, the length of the directory, and at 52 the block that has its numbers.
bool msf_open(struct msf *msf, const uint8_t *bytes, size_t size_bytes, struct err *err)
{
	*msf = (struct msf){ .bytes = bytes, .size_bytes = size_bytes };
	if (size_bytes < HEAD_BYTES || memcmp(bytes, magic, sizeof magic - 1) != 0)
		return err_set(err, ERR_FORMAT, "not a PDB file (of the form since 1998)");
	msf->block_bytes = bytes_get_u32(bytes + 32);
	msf->blocks_count = bytes_get_u32(bytes + 40);
	if (msf->block_bytes < BLOCK_BYTES_MIN || msf->block_bytes > BLOCK_BYTES_MAX ||
	    (msf->block_bytes & (msf->block_bytes - 1)) != 0)
		return err_set(err, ERR_FORMAT, "a PDB file with blocks of %u bytes",
			       msf->block_bytes);
	if (!read_directory(msf, bytes_get_u32(bytes + 44), bytes_get_u32(bytes + 52)) ||
	    !read_entries(msf)) {
		msf_close(msf);
		return err_set(err, ERR_FORMAT, "a PDB file whose directory is cut or damaged");
	}
	return true;
}

void msf_close(struct msf *msf)
{
	MEM_FREE(msf->directory, msf->entries);
	*msf = (struct msf){ 0 };
}

// The bytes of the file, if the blocks follow each other.
static const uint8_t *contiguous(const struct msf *msf, const uint8_t *numbers, uint32_t size_bytes)
{
	uint64_t count = blocks_of(msf, size_bytes);
	uint32_t first = bytes_get_u32(numbers);
	uint64_t from = (uint64_t)first * msf->block_bytes;

	for (uint64_t i = 1; i < count; i++)
		if (bytes_get_u32(numbers + 4 * i) != first + i)
			return NULL;
	if (from >= msf->size_bytes || size_bytes > msf->size_bytes - from)
		return NULL;
	return msf->bytes + from;
}

struct msf_stream msf_read(const struct msf *msf, uint32_t number)
{
	struct msf_stream stream = { 0 };
	const struct msf_entry *entry;
	const uint8_t *numbers;

	if (number >= msf->streams_count)
		return stream;
	entry = &msf->entries[number];
	numbers = msf->directory + entry->blocks_at;
	// No stream is longer than its file; this bounds the copy below.
	if (entry->size_bytes == 0 || entry->size_bytes > msf->size_bytes)
		return stream;
	stream.bytes = contiguous(msf, numbers, entry->size_bytes);
	stream.size_bytes = entry->size_bytes;
	if (stream.bytes)
		return stream;
	stream.owned = mem_alloc(entry->size_bytes, 1);
	stream.bytes = stream.owned;
	if (!gather(msf, numbers, stream.owned, entry->size_bytes))
		msf_stream_close(&stream);
	return stream;
}

void msf_stream_close(struct msf_stream *stream)
{
	mem_free(stream->owned);
	*stream = (struct msf_stream){ 0 };
}
