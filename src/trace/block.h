// block: the unit a trace is written and lost in (docs/format.md, sections 3 and 4).
//
// A trace file is a preamble of 64 bytes and then blocks: a header of 64 bytes with two checksums
// and a payload, plain or zstd. Whatever goes wrong with one block, the next can be found by its
// magic and read by itself.
//
// For example, a recording of 100,000 events is a preamble, a DEFS block with the process and its
// first stacks, an EVENTS block of the events 0 to 65,535, DEFS and EVENTS again, and an END
// block. If a byte of the first EVENTS block is wrong its checksum says so: a reader loses these
// 65,536 events, finds the next block by its magic, and its first_event says where counting goes
// on.
#pragma once

#include "base/err.h"
#include "trace/bytes.h"

enum {
	BLOCK_PREAMBLE_BYTES = 64,
	BLOCK_HEADER_BYTES = 64,
	BLOCK_MAGIC_BYTES = 8,
	BLOCK_SIZE_MAX = 16 << 20,       // of a payload, stored or raw
	BLOCK_EVENTS_MAX = 1 << 20,      // that a reader accepts in one block
	BLOCK_BUNDLE_PART_MAX = 8 << 20, // bytes of a file in one BUNDLE block of ours
	BLOCK_VERSION_MAJOR = 1,
	BLOCK_VERSION_MINOR = 0,
};

// Numbers are part of the format. Of a type that is not known, header and checksum are looked at,
// and nothing else.
enum block_type {
	BLOCK_DEFS = 1,   // definitions and notes (trace/defs.h)
	BLOCK_EVENTS = 2, // columns of events (trace/columns.h)
	BLOCK_INDEX = 3,  // where blocks are (trace/seek.h)
	BLOCK_END = 4,    // totals, and how it ended (trace/end.h)
	BLOCK_BUNDLE = 5, // a part of a symbol file (trace/bundle_reader.h)
};

// How the payload is stored: as it is where it is small or does not shrink.
enum block_codec {
	BLOCK_RAW = 0,
	BLOCK_ZSTD = 1,
};

// What a header says, decoded. Numbers of events count over the whole trace.
struct block {
	uint16_t type;        // enum block_type, or one we do not know
	uint8_t codec;        // enum block_codec
	uint32_t stored_size; // bytes of payload in the file
	uint32_t raw_size;    // bytes of payload once unpacked
	uint32_t events_count;
	uint64_t first_event; // number of the first event, or of the next one where there are none
	uint64_t first_ns;
	uint64_t last_ns;
	uint32_t payload_crc; // of the stored bytes
	uint32_t sequence;    // 0, 1, 2 …: position among the blocks of the file
};

// The first bytes of the file.
struct block_preamble {
	uint16_t version_major, version_minor;
	uint8_t recording_id[16];
	uint64_t began_unix_ns;
};

enum block_preamble_verdict {
	BLOCK_PREAMBLE_OK,
	BLOCK_PREAMBLE_DAMAGED, // looks like ours, checksum differs
	BLOCK_PREAMBLE_FOREIGN, // not ours
};

// The preamble, with its checksum. Decode looks at no more than `size` bytes; a file that is
// shorter than a preamble is FOREIGN or, where what is there is ours, DAMAGED.
void block_preamble_encode(const struct block_preamble *preamble,
			   uint8_t out[static BLOCK_PREAMBLE_BYTES]);
enum block_preamble_verdict block_preamble_decode(const uint8_t *in, size_t size,
						  struct block_preamble *preamble);

extern const uint8_t block_magic[BLOCK_MAGIC_BYTES];

// The header's own checksum is computed here; block->payload_crc is the caller's (block_pack sets
// it).
void block_header_encode(const struct block *block, uint8_t out[static BLOCK_HEADER_BYTES]);

// False if these bytes are not a block header: magic, checksum or a limit is wrong.
bool block_header_decode(const uint8_t in[static BLOCK_HEADER_BYTES], struct block *block);

// What is left out of a payload that is to be packed: at `at` of what is there, the `period` bytes
// before it come again and again, `size` bytes of them.
struct block_gap {
	size_t at, period, size;
};

enum { BLOCK_GAP_MIN = 131, BLOCK_PARTS = 64 };

// Packs payloads; keeps the compressor and its memory from block to block.
//
// A payload whose parts are unlike each other, as columns are, packs better when the compressor
// begins each with statistics of its own: `cuts` says where parts begin, and `names` which they
// are, so that one that hardly gets smaller need not be compressed in each block. What is known to
// come again need not be there, nor be looked for: `gaps`, of BLOCK_GAP_MIN bytes or more. Then
// what is there is stored as it is. Cuts, names and gaps are of the next payload alone.
struct block_packer {
	void *zstd;               // ZSTD_CCtx
	size_t cuts[BLOCK_PARTS]; // rising offsets in the next payload
	uint8_t names[BLOCK_PARTS];
	size_t cuts_count;
	uint8_t left[BLOCK_PARTS];  // by name: in so many blocks to come it is left as it is
	size_t gained[BLOCK_PARTS]; // by name, of those: by so much it got smaller the last time
	bool quick;                 // set by the user: the next blocks are to take little time
	size_t spared;              // of the last block: by so much it would be smaller, about
	struct block_gap gaps[BLOCK_PARTS]; // rising, too
	size_t gaps_count;
};

void block_packer_fini(struct block_packer *packer); // accepts { 0 }

// Append a whole block, header and payload, to `out`. Sets sizes, codec and checksum of *block.
// Takes zstd where that is smaller and `packed` is set. `size`, gaps included, is at most
// BLOCK_SIZE_MAX; a payload that is not packed has none.
void block_pack(struct block_packer *packer, struct block *block, const void *raw, size_t size,
		bool packed, struct bytes *out);

// Does the stored payload have the checksum that the header says?
bool block_intact(const struct block *block, const uint8_t *stored);

// Unpacks payloads; keeps the memory of the last one, which a cursor points into.
struct block_unpacker {
	void *zstd;       // ZSTD_DCtx
	struct bytes raw; // the last payload unpacked
};

void block_unpacker_fini(struct block_unpacker *unpacker); // accepts { 0 }

// The payload of `block`, whose stored bytes are at `stored`, as a cursor that lives until the
// next call (and not longer than `stored`). False, and why, if checksum, codec or sizes are wrong.
bool block_unpack(struct block_unpacker *unpacker, const struct block *block, const uint8_t *stored,
		  struct bytes_cursor *payload, struct err *err);
