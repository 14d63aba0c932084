// What is appended goes through two buffers: `raw`, the payload as its encoder made it, and
// `packed`, the whole block as it is in the file. Both are kept from block to block.
//
// For example after 64 blocks, the last one of events, an INDEX block lists them, at offset X, and
// its `previous` is 0. The list is emptied but for that INDEX block itself, so the next one, after
// 63 more, lists it first, and its `previous` is X. So every block is in some list but the last
// INDEX and END, which the file's last 24 bytes point to.
#include "trace/chain.h"

#include "trace/end.h"

void chain_init(struct chain *chain, int fd)
{
	*chain = (struct chain){ 0 };
	out_init(&chain->out, fd);
}

void chain_fini(struct chain *chain)
{
	out_finish(&chain->out);
	block_packer_fini(&chain->packer);
	seek_fini(&chain->seek);
	bytes_fini(&chain->raw);
	bytes_fini(&chain->packed);
}

// Write what is packed, and remember where.
// A failure changes nothing: neither the number of the next block nor the list.
static bool put_packed(struct chain *chain, const struct block *block, bool last, struct err *err)
{
	uint64_t at = chain->out.size;

	if (!out_write(&chain->out, chain->packed.data, chain->packed.size, last, err))
		return false;
	seek_add(&chain->seek, at, block);
	chain->sequence++;
	return true;
}

bool chain_put(struct chain *chain, struct block *block, bool last, struct err *err)
{
	// The footer of END has to be readable without unpacking.
	bool compress = block->type != BLOCK_END;

	block->sequence = chain->sequence;
	chain->packed.size = 0;
	block_pack(&chain->packer, block, chain->raw.data, chain->raw.size, compress,
		   &chain->packed);
	chain->raw.size = 0;
	return put_packed(chain, block, last, err);
}

bool chain_put_plain(struct chain *chain, enum block_type type, bool last, struct err *err)
{
	struct block block = {
		.type = (uint16_t)type,
		.first_event = chain->next_event,
		.first_ns = chain->last_ns,
		.last_ns = chain->last_ns,
	};

	return chain_put(chain, &block, last, err);
}

// The number of the block is another one in another file, so the header is made again; the payload
// and its checksum are not touched.
bool chain_copy(struct chain *chain, const struct block *block, const uint8_t *stored,
		struct err *err)
{
	struct block renumbered = *block;

	ASSERT(block->stored_size <= BLOCK_SIZE_MAX);
	renumbered.sequence = chain->sequence;
	chain->packed.size = 0;
	block_header_encode(&renumbered, bytes_reserve(&chain->packed, BLOCK_HEADER_BYTES));
	chain->packed.size = BLOCK_HEADER_BYTES;
	bytes_add(&chain->packed, stored, block->stored_size);
	return put_packed(chain, &renumbered, false, err);
}

static bool put_index(struct chain *chain, bool last, struct err *err)
{
	uint64_t at = chain->out.size;

	seek_encode(&chain->seek, chain->index_at, &chain->raw);
	if (!chain_put_plain(chain, BLOCK_INDEX, last, err))
		return false;
	ASSERT(chain->seek.count > 0);
	// An INDEX block lists the one before it, so that the list has no holes.
	chain->seek.entries[0] = chain->seek.entries[chain->seek.count - 1];
	chain->seek.count = 1;
	chain->index_at = at;
	return true;
}

bool chain_index(struct chain *chain, struct err *err)
{
	return chain->seek.count < SEEK_BLOCKS_MAX || put_index(chain, false, err);
}

// The INDEX block comes first, as the footer has to say where it is.
bool chain_end(struct chain *chain, const struct trace_end *end, struct err *err)
{
	struct end_footer footer;

	if (chain->seek.count > 0 && !put_index(chain, true, err))
		return false;
	footer = (struct end_footer){ .end_at = chain->out.size, .index_at = chain->index_at };
	chain->raw.size = 0;
	end_encode(end, &footer, &chain->raw);
	return chain_put_plain(chain, BLOCK_END, true, err);
}
