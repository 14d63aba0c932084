#include "trace/block.h"

#include "base/crc32c.h"

#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

// The first byte has its top bit set, so that nothing takes the file for text; CR LF and Ctrl-Z
// show at once that a transfer has changed line ends or stopped at one.
static const uint8_t preamble_magic[8] = { 0x89, 'T', 'I', 'D', 'E', 0x0d, 0x0a, 0x1a };
const uint8_t block_magic[BLOCK_MAGIC_BYTES] = { 0x8b, 'T', 'D', 'B', 'K', 0x0d, 0x0a, 0x1a };

_Static_assert(BLOCK_BUNDLE_PART_MAX < BLOCK_SIZE_MAX, "a part and its label fit into a block");
_Static_assert(sizeof preamble_magic == BLOCK_MAGIC_BYTES, "both have eight bytes");

// Below this a compressor only adds to the size.
// A part with statistics of its own has tables for them, which a part below COMPRESS_PART_MIN does
// not pay for.
enum { COMPRESS_BYTES_MIN = 256, COMPRESS_PART_MIN = 4096, COMPRESS_LEVEL = 1 };

// Places in the compressor's table, of four bytes: as many as the nearest cache has room for.
enum { COMPRESS_TABLE_BITS = 13 };

// How far it goes on where nothing is found: two bytes instead of one.
enum { COMPRESS_STEP = 2 };

// A part that gets smaller by a sixteenth at most is left as it is for so many blocks. Where time
// counts, so is one that gets smaller by three tenths at most, if an event then takes no more than
// so many bytes. A frame more costs at most FRAME_BYTES_MAX.
enum { LEFT_BLOCKS = 31, LEFT_EVENT_BYTES = 3, FRAME_BYTES_MAX = 64 };

void block_preamble_encode(const struct block_preamble *preamble,
			   uint8_t out[static BLOCK_PREAMBLE_BYTES])
{
	memset(out, 0, BLOCK_PREAMBLE_BYTES);
	memcpy(out, preamble_magic, sizeof preamble_magic);
	bytes_put_u16(out + 8, preamble->version_major);
	bytes_put_u16(out + 10, preamble->version_minor);
	bytes_put_u32(out + 12, BLOCK_PREAMBLE_BYTES);
	memcpy(out + 16, preamble->recording_id, 16);
	bytes_put_u64(out + 32, preamble->began_unix_ns);
	bytes_put_u32(out + 60, crc32c(0, out, 60));
}

// *preamble has the version of this program where the file's own cannot be read, so that a damaged
// one is not refused for its version.
enum block_preamble_verdict block_preamble_decode(const uint8_t *in, size_t size,
						  struct block_preamble *preamble)
{
	*preamble = (struct block_preamble){ .version_major = BLOCK_VERSION_MAJOR,
					     .version_minor = BLOCK_VERSION_MINOR };
	if (size < sizeof preamble_magic || memcmp(in, preamble_magic, sizeof preamble_magic) != 0)
		return BLOCK_PREAMBLE_FOREIGN;
	if (size < BLOCK_PREAMBLE_BYTES || bytes_get_u32(in + 60) != crc32c(0, in, 60) ||
	    bytes_get_u32(in + 12) != BLOCK_PREAMBLE_BYTES)
		return BLOCK_PREAMBLE_DAMAGED;
	preamble->version_major = bytes_get_u16(in + 8);
	preamble->version_minor = bytes_get_u16(in + 10);
	memcpy(preamble->recording_id, in + 16, 16);
	preamble->began_unix_ns = bytes_get_u64(in + 32);
	return BLOCK_PREAMBLE_OK;
}

// Places are those of docs/format.md; bytes 11 and 56 to 59 are 0. The checksum is of all that is
// before it.
void block_header_encode(const struct block *block, uint8_t out[static BLOCK_HEADER_BYTES])
{
	memset(out, 0, BLOCK_HEADER_BYTES);
	memcpy(out, block_magic, BLOCK_MAGIC_BYTES);
	bytes_put_u16(out + 8, block->type);
	out[10] = block->codec;
	bytes_put_u32(out + 12, block->stored_size);
	bytes_put_u32(out + 16, block->raw_size);
	bytes_put_u32(out + 20, block->events_count);
	bytes_put_u64(out + 24, block->first_event);
	bytes_put_u64(out + 32, block->first_ns);
	bytes_put_u64(out + 40, block->last_ns);
	bytes_put_u32(out + 48, block->payload_crc);
	bytes_put_u32(out + 52, block->sequence);
	bytes_put_u32(out + 60, crc32c(0, out, 60));
}

// Limits are checked here, once, so that all who work with a header may trust that sizes have 16
// MiB at most, that event numbers do not leave 64 bits and that times of a block do not fall.
bool block_header_decode(const uint8_t in[static BLOCK_HEADER_BYTES], struct block *block)
{
	if (memcmp(in, block_magic, BLOCK_MAGIC_BYTES) != 0)
		return false;
	if (bytes_get_u32(in + 60) != crc32c(0, in, 60))
		return false;
	*block = (struct block){
		.type = bytes_get_u16(in + 8),
		.codec = in[10],
		.stored_size = bytes_get_u32(in + 12),
		.raw_size = bytes_get_u32(in + 16),
		.events_count = bytes_get_u32(in + 20),
		.first_event = bytes_get_u64(in + 24),
		.first_ns = bytes_get_u64(in + 32),
		.last_ns = bytes_get_u64(in + 40),
		.payload_crc = bytes_get_u32(in + 48),
		.sequence = bytes_get_u32(in + 52),
	};
	return block->stored_size <= BLOCK_SIZE_MAX && block->raw_size <= BLOCK_SIZE_MAX &&
	       block->events_count <= BLOCK_EVENTS_MAX && block->first_ns <= block->last_ns &&
	       block->first_event <= UINT64_MAX - BLOCK_EVENTS_MAX;
}

void block_packer_fini(struct block_packer *packer)
{
	ZSTD_freeCCtx(packer->zstd);
	packer->zstd = NULL;
}

// ---- Frames made by hand ------------------------------------------------------------------------

// Frames of zstd's (RFC 8878): what is there in blocks of plain bytes, and each gap in blocks of
// one sequence, which copies from `period` bytes before. The compressor would go through all that
// is missing to find the same.
enum {
	FRAME_MAGIC = 0xfd2fb528,
	FRAME_HEAD = 2 << 6 | 1 << 5, // the size in four bytes; no smaller window
	FRAME_HEAD_BYTES = 9,
	PART_HEAD_BYTES = 3,
	PART_PLAIN = 0 << 1,
	PART_PACKED = 2 << 1,
	PART_MAX = 1 << 16,       // of a gap, in one sequence; zstd takes twice as much
	SEQUENCE_MODES = 0x54,    // each of the three codes is the same throughout
	SEQUENCE_PART_BYTES = 16, // at most
};

_Static_assert(BLOCK_GAP_MIN < (int)PART_MAX, "what is left of a gap is one part");

static uint8_t *put_part_head(uint8_t *out, uint32_t type, size_t size, bool last)
{
	uint32_t head = (uint32_t)size << 3 | type | last;

	out[0] = (uint8_t)head;
	bytes_put_u16(out + 1, (uint16_t)(head >> 8));
	return out + PART_HEAD_BYTES;
}

// Returns where it goes on. `whole` is the size of what is packed.
static uint8_t *put_frame_head(uint8_t *out, size_t whole)
{
	bytes_put_u32(out, FRAME_MAGIC);
	out[4] = FRAME_HEAD;
	bytes_put_u32(out + 5, (uint32_t)whole);
	return out + FRAME_HEAD_BYTES;
}

static uint8_t *put_plain(uint8_t *out, const uint8_t *raw, size_t size, bool last)
{
	while (size > 0 || last) {
		size_t part = size < PART_MAX ? size : PART_MAX;
		bool is_last = last && part == size;

		out = put_part_head(out, PART_PLAIN, part, is_last);
		if (part > 0)
			memcpy(out, raw, part);
		out += part;
		raw += part;
		size -= part;
		last = last && !is_last;
	}
	return out;
}

// At most so many bytes, with the head.
static size_t plain_bound(size_t size)
{
	return FRAME_HEAD_BYTES + size + (size / PART_MAX + 1) * PART_HEAD_BYTES;
}

// No bytes of its own, and one sequence: none of them, and a copy. Codes say how large its two
// numbers are, the distance plus 3 and the length less 3: the place of the highest bit, which of
// the length is the 7th at least, and its code 36 more. The bits below the highest come last, read
// from the last byte's highest on, which is a 1 that only says where they begin.
// For example 300 bytes from 2 bytes before: 5 = 1 01 has code 2, 297 = 1 00101001 has code 36 + 8;
// the bits are 1 01 00101001, so the bytes 29 05.
static uint8_t *put_copy(uint8_t *out, size_t period, size_t size)
{
	uint64_t distance = period + 3, length = size - 3;
	unsigned distance_bits = 63 - (unsigned)__builtin_clzll(distance);
	unsigned length_bits = 63 - (unsigned)__builtin_clzll(length);
	uint64_t bits = UINT64_C(1) << distance_bits | (distance - (UINT64_C(1) << distance_bits));
	uint8_t *head = out;

	ASSERT(size >= BLOCK_GAP_MIN && size <= PART_MAX && length_bits <= 16);
	bits = bits << length_bits | (length - (UINT64_C(1) << length_bits));
	out += PART_HEAD_BYTES;
	*out++ = 0; // bytes of its own
	*out++ = 1; // sequences
	*out++ = SEQUENCE_MODES;
	*out++ = 0; // of bytes of its own
	*out++ = (uint8_t)distance_bits;
	*out++ = (uint8_t)(36 + length_bits);
	for (; bits != 0; bits >>= 8)
		*out++ = (uint8_t)bits;
	put_part_head(head, PART_PACKED, (size_t)(out - head) - PART_HEAD_BYTES, false);
	return out;
}

static uint8_t *put_gap(uint8_t *out, const struct block_gap *gap)
{
	for (size_t left = gap->size, part; left > 0; left -= part) {
		part = left < PART_MAX ? left : PART_MAX;
		// What is left is none, or enough.
		if (left > part && left - part < BLOCK_GAP_MIN)
			part -= BLOCK_GAP_MIN;
		out = put_copy(out, gap->period, part);
	}
	return out;
}

// At most so many bytes.
static size_t repeating_bound(const struct block_packer *packer, size_t size)
{
	size_t bound = plain_bound(size);

	for (size_t i = 0; i < packer->gaps_count; i++)
		bound += PART_HEAD_BYTES + (packer->gaps[i].size / (PART_MAX - BLOCK_GAP_MIN) + 1) *
						   SEQUENCE_PART_BYTES;
	return bound;
}

// Returns its size. `whole` is that of the payload.
static size_t put_repeating(const struct block_packer *packer, uint8_t *out, const uint8_t *raw,
			    size_t size, size_t whole)
{
	uint8_t *at = put_frame_head(out, whole);
	size_t done = 0;

	for (size_t i = 0; i < packer->gaps_count; i++) {
		const struct block_gap *gap = &packer->gaps[i];

		ASSERT(gap->at >= done && gap->at <= size && gap->period <= gap->at);
		at = put_plain(at, raw + done, gap->at - done, false);
		at = put_gap(at, gap);
		done = gap->at;
	}
	at = put_plain(at, raw + done, size - done, true);
	ASSERT((size_t)(at - out) <= repeating_bound(packer, size));
	return (size_t)(at - out);
}

static size_t gaps_size(const struct block_packer *packer)
{
	size_t size = 0;

	for (size_t i = 0; i < packer->gaps_count; i++)
		size += packer->gaps[i].size;
	return size;
}

// ---- Payloads without gaps ----------------------------------------------------------------------

// Where what is packed ends, at `size` at most.
struct place {
	uint8_t *out;
	size_t size, done;
};

// So many bytes of parts, as they were and packed; 0: not packed by itself.
struct part_sizes {
	size_t raw, packed;
};

static size_t part_end(const struct block_packer *packer, size_t part, size_t size)
{
	return part + 1 < packer->cuts_count ? packer->cuts[part + 1] : size;
}

static void set_parameters(ZSTD_CCtx *zstd)
{
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, COMPRESS_LEVEL);
	// Both buffers stay where they are, so that nothing is copied; where the library does not
	// take that, it copies.
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_stableInBuffer, 1);
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_stableOutBuffer, 1);
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_hashLog, COMPRESS_TABLE_BITS);
	// With larger steps it would leave out the entropy coding unless it is told not to.
	if (!ZSTD_isError(
		    ZSTD_CCtx_setParameter(zstd, ZSTD_c_literalCompressionMode, ZSTD_ps_enable)))
		ZSTD_CCtx_setParameter(zstd, ZSTD_c_targetLength, COMPRESS_STEP);
}

// Compress parts [first, last) and what is before the first of them, from `begin` to `end`, into
// one frame. False: no room, it does not get smaller; or an error of zstd's.
static bool put_packed(struct block_packer *packer, struct place *place, const uint8_t *raw,
		       size_t begin, size_t end, size_t first, size_t last,
		       struct part_sizes *sizes)
{
	ZSTD_outBuffer to = { .dst = place->out + place->done, .size = place->size - place->done };
	ZSTD_inBuffer from = { .src = raw + begin };
	size_t packed = 0;

	ASSERT(begin <= end && first <= last && last <= packer->cuts_count);
	if (begin == end)
		return true;
	if (!packer->zstd)
		packer->zstd = ZSTD_createCCtx();
	if (!packer->zstd)
		return false;
	ZSTD_CCtx_reset(packer->zstd, ZSTD_reset_session_only);
	set_parameters(packer->zstd);
	ZSTD_CCtx_setPledgedSrcSize(packer->zstd, end - begin);
	for (size_t i = first; i <= last; i++) {
		size_t at = i < last ? packer->cuts[i] - begin : end - begin;
		size_t size = at - from.size;
		bool is_end = i == last;

		// A part has to pay for its tables.
		// Columns end at the cuts: a column of 10 KB has its own tables, and three of 1 KB
		// that follow it share the next part's.
		if (!is_end && size < COMPRESS_PART_MIN)
			continue;
		from.size = at;
		if (ZSTD_compressStream2(packer->zstd, &to, &from,
					 is_end ? ZSTD_e_end : ZSTD_e_flush) != 0)
			return false;
		// What is before its last column in a part is mostly next to nothing.
		if (i > first && packer->cuts[i - 1] - (begin + at - size) < size / 16)
			sizes[i - 1] = (struct part_sizes){ size, to.pos - packed };
		packed = to.pos;
	}
	place->done += to.pos;
	return true;
}

// The frame of what is left as it is.
static bool put_left(struct place *place, const uint8_t *raw, size_t size)
{
	uint8_t *at = place->out + place->done;

	if (place->size - place->done < plain_bound(size))
		return false;
	place->done += (size_t)(put_plain(put_frame_head(at, size), raw, size, true) - at);
	return true;
}

// Which parts are to be left as they are in the next blocks: those that hardly get smaller.
static void learn(struct block_packer *packer, size_t stored, uint32_t events,
		  const struct part_sizes *sizes)
{
	for (size_t i = 0; i < packer->cuts_count; i++) {
		size_t raw = sizes[i].raw, packed = sizes[i].packed;
		size_t gained = packed < raw ? raw - packed : 0;

		if (raw < COMPRESS_PART_MIN)
			continue;
		if (gained > raw / 16 && (!packer->quick || gained > raw / 10 * 3 ||
					  stored + gained > (size_t)events * LEFT_EVENT_BYTES))
			continue;
		packer->left[packer->names[i]] = LEFT_BLOCKS;
		packer->gained[packer->names[i]] = gained;
		stored += gained;
	}
}

// Compress part by part into one frame, but for parts that are left as they are, in frames of their
// own. Returns its size, or SIZE_MAX.
static size_t compress(struct block_packer *packer, uint8_t *out, size_t bound, const uint8_t *raw,
		       size_t size, uint32_t events)
{
	struct part_sizes sizes[BLOCK_PARTS] = { 0 };
	struct place place = { .out = out, .size = bound };
	size_t begin = 0, first = 0;

	ASSERT(size <= bound);
	for (size_t i = 0; i < packer->cuts_count; i++) {
		size_t at = packer->cuts[i], end = part_end(packer, i, size);

		ASSERT(begin <= at && at <= end && end <= size);
		ASSERT(packer->names[i] < BLOCK_PARTS);
		if (packer->left[packer->names[i]] == 0 || end - at < COMPRESS_PART_MIN)
			continue;
		packer->left[packer->names[i]]--;
		packer->spared += packer->gained[packer->names[i]];
		if (!put_packed(packer, &place, raw, begin, at, first, i, sizes) ||
		    !put_left(&place, raw + at, end - at))
			return SIZE_MAX;
		begin = end;
		first = i + 1;
	}
	if (!put_packed(packer, &place, raw, begin, size, first, packer->cuts_count, sizes))
		return SIZE_MAX;
	learn(packer, place.done, events, sizes);
	return place.done;
}

// The payload is compressed straight into `out`, whose room is enough for what does not shrink.
// Where it did not shrink it is overwritten by the plain bytes.
void block_pack(struct block_packer *packer, struct block *block, const void *raw, size_t size,
		bool packed, struct bytes *out)
{
	size_t header_at = out->size;
	bool repeating = packer->gaps_count > 0;
	size_t bound = repeating ? repeating_bound(packer, size)
				 : ZSTD_compressBound(size) + BLOCK_PARTS * FRAME_BYTES_MAX;
	size_t whole = size + gaps_size(packer), stored = size;
	uint8_t *payload;

	ASSERT(whole <= BLOCK_SIZE_MAX && (packed || !repeating));
	bytes_reserve(out, BLOCK_HEADER_BYTES + bound);
	payload = out->data + header_at + BLOCK_HEADER_BYTES;
	block->codec = BLOCK_RAW;
	packer->spared = 0;
	if (repeating) {
		stored = put_repeating(packer, payload, raw, size, whole);
		block->codec = BLOCK_ZSTD;
	} else if (packed && size >= COMPRESS_BYTES_MIN) {
		stored = compress(packer, payload, bound, raw, size, block->events_count);
		if (!ZSTD_isError(stored) && stored < size)
			block->codec = BLOCK_ZSTD;
	}
	packer->cuts_count = packer->gaps_count = 0;
	if (block->codec == BLOCK_RAW) {
		stored = size;
		if (size > 0)
			memcpy(payload, raw, size);
	}
	ASSERT(stored <= bound);
	block->stored_size = (uint32_t)stored;
	block->raw_size = (uint32_t)whole;
	block->payload_crc = crc32c(0, payload, stored);
	block_header_encode(block, out->data + header_at);
	out->size = header_at + BLOCK_HEADER_BYTES + stored;
}

// Of the stored bytes: a damaged payload is found without unpacking, and the decompressor sees only
// what its writer wrote, or what a hostile hand has given a right checksum.
bool block_intact(const struct block *block, const uint8_t *stored)
{
	return crc32c(0, stored, block->stored_size) == block->payload_crc;
}

void block_unpacker_fini(struct block_unpacker *unpacker)
{
	ZSTD_freeDCtx(unpacker->zstd);
	bytes_fini(&unpacker->raw);
	unpacker->zstd = NULL;
}

// The size in the header is the limit of what is unpacked: a small payload cannot become large.
bool block_unpack(struct block_unpacker *unpacker, const struct block *block, const uint8_t *stored,
		  struct bytes_cursor *payload, struct err *err)
{
	size_t size;

	if (!block_intact(block, stored))
		return err_set(err, ERR_FORMAT, "checksum differs");
	if (block->codec == BLOCK_RAW) {
		if (block->stored_size != block->raw_size)
			return err_set(err, ERR_FORMAT, "sizes of a plain block differ");
		*payload = bytes_cursor(stored, block->stored_size);
		return true;
	}
	if (block->codec != BLOCK_ZSTD)
		return err_set(err, ERR_FORMAT, "codec %u is not known", block->codec);
	if (!unpacker->zstd)
		unpacker->zstd = ZSTD_createDCtx();
	if (!unpacker->zstd)
		return err_set(err, ERR_IO, "no memory to decompress");
	unpacker->raw.size = 0;
	bytes_reserve(&unpacker->raw, block->raw_size + 1u);
	size = ZSTD_decompressDCtx(unpacker->zstd, unpacker->raw.data, block->raw_size, stored,
				   block->stored_size);
	if (ZSTD_isError(size) || size != block->raw_size)
		return err_set(err, ERR_FORMAT, "compressed data is damaged");
	ASSERT(size < unpacker->raw.capacity);
	unpacker->raw.size = size;
	*payload = bytes_cursor(unpacker->raw.data, size);
	return true;
}
