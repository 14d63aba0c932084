// A trace that is whole ends with INDEX and END. More symbol files are appended after that END,
// then a new INDEX and END, which repeats the old one's totals: the last END of a file is the one
// that counts. If the disk is full in between, bundle_free cuts the file back to its old size.
#include "trace/bundle.h"

#include "os/file.h"
#include "trace/bundle_reader.h"
#include "trace/chain.h"
#include "trace/end.h"
#include "trace/reader.h"
#include "trace/walk.h"

#include <errno.h>

struct bundle {
	struct chain chain;
	struct trace_end end; // to be repeated behind the additions
	uint64_t size;        // of the file before them
	bool ended;
};

// Find the last end of the trace, where additions go, and what its chains of blocks and of indexes
// go on with. INDEX blocks are noted on the way, for the next one has to point to the last of them.
static bool find_end(struct bundle *bundle, const char *path, struct err *err)
{
	struct walk_loader loader = { 0 };
	struct store store;
	struct block block;
	struct walk walk;
	bool found = false;
	uint64_t at;

	if (!store_open(&store, path, err))
		return false;
	walk_init(&walk);
	while (walk_next(&walk, &store, &block, &at)) {
		struct bytes_cursor payload;
		struct err ignored;

		if (block.type == BLOCK_INDEX)
			bundle->chain.index_at = at;
		if (block.type != BLOCK_END ||
		    !walk_load(&loader, &store, &block, at, &payload, &ignored))
			continue;
		mem_free(bundle->end.why);
		found = end_decode(payload, &bundle->end);
		bundle->size = walk.whole_at;
		bundle->chain.sequence = walk.sequence;
		bundle->chain.next_event = block.first_event;
		bundle->chain.last_ns = block.last_ns;
		// The next INDEX block lists what the last one could not: the END, and itself.
		bundle->chain.seek.count = 0;
		seek_add(&bundle->chain.seek, at, &block);
	}
	walk_loader_fini(&loader);
	store_close(&store);
	return found || err_set(err, ERR_FORMAT, "the trace has no end");
}

// A trace that is damaged is not made longer: it has to be repaired first.
struct bundle *bundle_begin(const char *path, struct err *err)
{
	struct bundle *bundle = mem_alloc(1, sizeof *bundle);
	struct reader *reader = reader_open(path, err);
	struct err why;
	bool ok = reader != NULL;
	int fd = -1;

	bundle->chain.out.fd = -1;
	if (ok) {
		reader_scan(reader);
		ok = reader_sound(reader);
		if (!ok) {
			reader_ok(reader, &why);
			err_set(err, ERR_FORMAT, "%s is not whole: %s (try: %s)", path, why.text,
				reader_growing(reader) ? "again when the recording has ended"
						       : "tidemark repair");
		}
	}
	if (ok) {
		fd = file_open(path, FILE_WRITE);
		ok = fd >= 0 || err_errno(err, errno, "cannot write to %s", path);
	}
	if (ok) {
		// The claim says to readers that the file is being written, until it is closed.
		chain_init(&bundle->chain, fd);
		// Bytes that an interrupted addition left behind go.
		ok = find_end(bundle, path, err) && out_cut(&bundle->chain.out, bundle->size, err);
	}
	reader_close(reader);
	if (ok)
		return bundle;
	bundle->ended = true; // nothing to take away
	bundle_free(bundle);
	return NULL;
}

// A file goes in parts of 8 MiB; one of no bytes is one part.
bool bundle_add(struct bundle *bundle, const uint8_t *build_id, size_t build_id_length,
		const void *bytes, size_t size, struct err *err)
{
	size_t at = 0;

	if (build_id_length == 0 || build_id_length > BUNDLE_READER_LABEL_MAX)
		return err_set(err, ERR_LIMIT,
			       "a symbol file with a build-id of %zu bytes, not 1 to %d",
			       build_id_length, (int)BUNDLE_READER_LABEL_MAX);
	if (size > BUNDLE_READER_FILE_MAX)
		return err_set(err, ERR_LIMIT, "a symbol file of more than 1 GiB");
	ASSERT(!bundle->ended);
	do {
		struct bundle_reader_part part = {
			.build_id_length = build_id_length,
			.file_size = size,
			.at = at,
			.size = size - at < BLOCK_BUNDLE_PART_MAX ? size - at
								  : BLOCK_BUNDLE_PART_MAX,
		};

		memcpy(part.build_id, build_id, build_id_length);
		bundle_reader_encode(&bundle->chain.raw, &part, (const uint8_t *)bytes + at);
		if (!chain_put_plain(&bundle->chain, BLOCK_BUNDLE, false, err) ||
		    !chain_index(&bundle->chain, err))
			return false;
		at += part.size;
	} while (at < size);
	return true;
}

bool bundle_end(struct bundle *bundle, struct err *err)
{
	bundle->ended = chain_end(&bundle->chain, &bundle->end, err);
	return bundle->ended;
}

// A file that was not ended has its old size again, and so its old END; that is all it takes to
// undo.
void bundle_free(struct bundle *bundle)
{
	struct err ignored;

	if (!bundle)
		return;
	if (!bundle->ended && bundle->chain.out.fd >= 0 && bundle->size > 0)
		out_cut(&bundle->chain.out, bundle->size, &ignored);
	if (bundle->chain.out.fd >= 0) {
		out_finish(&bundle->chain.out);
		file_close(bundle->chain.out.fd);
		bundle->chain.out.regular = false; // chain_fini has no file any more
	}
	chain_fini(&bundle->chain);
	MEM_FREE(bundle->end.why, bundle);
}
