// Blocks are copied as they are stored, without packing them again, and numbered again; what is
// not whole is left out. For example, of blocks of events from 0 to 99, then one that is damaged,
// then from 250 on:
//
//     the first       copied
//     the second      left out
//     a note          "150 events lost", before event 250
//     the third       copied: its events keep their numbers
//
// So every figure that names an event is still true.
#include "trace/repair.h"

#include "trace/chain.h"
#include "trace/columns.h"
#include "trace/defs.h"
#include "trace/end.h"
#include "trace/reader.h"
#include "trace/walk.h"

#include <inttypes.h>
#include <stdio.h>

struct repair {
	struct store store;
	struct walk walk;
	struct walk_loader loader;
	struct chain chain;
	struct trace_end end; // of the damaged trace, if it had one
	bool end_seen;
	bool copy;     // of a recording that goes on
	uint64_t used; // bytes of the old file that were copied or understood
	struct repair_result *result;
};

// Is the payload of an EVENTS block what its header says, to the last event?
// A block with a right checksum may still be wrong inside, if its writer was: it is decoded to its
// last event once, so that the repaired trace is sound.
static bool events_whole(struct bytes_cursor payload, const struct block *block)
{
	struct columns_decoder *decoder = mem_alloc(1, sizeof *decoder);
	enum columns_result result = COLUMNS_DAMAGED;
	struct trace_event event;

	if (columns_decoder_init(decoder, payload, block->events_count, block->first_event,
				 block->first_ns)) {
		do
			result = columns_next(decoder, &event);
		while (result == COLUMNS_EVENT);
	}
	columns_decoder_fini(decoder);
	mem_free(decoder);
	return result == COLUMNS_END;
}

// Say in the new trace that `lost` events are missing before the block.
// As a note in a DEFS block of its own, right before the events that come after the gap.
static bool put_loss(struct repair *repair, const struct block *block, uint64_t lost,
		     struct err *err)
{
	struct trace_note note = {
		.kind = TRACE_NOTE_LOSS,
		.process = TRACE_NONE,
		.thread = TRACE_NONE,
		.time_ns = block->first_ns,
		.value = lost,
		.text = "lost to damage of the file",
	};
	struct block defs = {
		.type = BLOCK_DEFS,
		.first_event = block->first_event,
		.first_ns = block->first_ns,
		.last_ns = block->first_ns,
	};

	ASSERT(lost > 0);
	defs_put_note(&repair->chain.raw, &note, block->first_event);
	repair->result->events_lost += lost;
	return chain_put(&repair->chain, &defs, false, err);
}

// The stored bytes are still in the loader, from the look at them.
static bool copy_block(struct repair *repair, const struct block *block, struct err *err)
{
	struct chain *chain = &repair->chain;

	ASSERT(block->type != BLOCK_INDEX && block->type != BLOCK_END);
	if (block->type == BLOCK_EVENTS) {
		if (block->first_event > chain->next_event &&
		    !put_loss(repair, block, block->first_event - chain->next_event, err))
			return false;
		chain->next_event = block->first_event + block->events_count;
		repair->result->events += block->events_count;
	}
	if (chain->last_ns < block->last_ns)
		chain->last_ns = block->last_ns;
	repair->result->blocks++;
	return chain_copy(chain, block, repair->loader.stored.data, err) && chain_index(chain, err);
}

// Take one block of the old file. False only if the new one cannot be written.
// INDEX blocks are made again, as offsets are others now. END is held back: a trace has one, at its
// end. What has a right checksum and an unknown type is copied as it is.
static bool take_block(struct repair *repair, const struct block *block, uint64_t at,
		       struct err *err)
{
	struct bytes_cursor payload;
	struct trace_end end;
	struct err why = { 0 };

	if (!walk_load(&repair->loader, &repair->store, block, at, &payload, &why)) {
		walk_reject(&repair->walk, at, why.text);
		return true;
	}
	if (block->type == BLOCK_EVENTS &&
	    (block->first_event < repair->chain.next_event || !events_whole(payload, block))) {
		walk_reject(&repair->walk, at, "columns are damaged");
		return true;
	}
	repair->used += BLOCK_HEADER_BYTES + (uint64_t)block->stored_size;
	if (block->type == BLOCK_INDEX)
		return true;
	if (block->type == BLOCK_END) {
		if (!end_decode(payload, &end))
			return true;
		mem_free(repair->end.why);
		repair->end = end;
		repair->end_seen = true;
		return true;
	}
	return copy_block(repair, block, err);
}

// What the new END says: the old one's totals where there were any, and what was wrong.
// Events missing at the end are known only where an END says how many there were.
static bool put_end(struct repair *repair, struct err *err)
{
	struct repair_result *result = repair->result;
	struct trace_end end = repair->end;
	char why[400];

	if (!repair->end_seen)
		end.duration_ns = repair->chain.last_ns;
	else if (end.events > repair->chain.next_event)
		result->events_lost += end.events - repair->chain.next_event;
	end.events = result->events;
	end.events_lost += result->events_lost;
	if (repair->walk.damaged)
		snprintf(result->why, sizeof result->why,
			 "damaged at byte %" PRIu64 ": %s; blocks lost: %" PRIu64,
			 repair->walk.damage_at, repair->walk.damage, repair->walk.missed);
	else if (!repair->end_seen && !repair->copy)
		snprintf(result->why, sizeof result->why, "cut at byte %" PRIu64 ": %s",
			 repair->walk.whole_at,
			 repair->store.written ? "it was still being written"
					       : "the recording did not end");
	if (result->why[0] == '\0')
		snprintf(why, sizeof why, "%s",
			 !repair->end_seen ? "it went on after this copy of it was made"
			 : end.why         ? end.why
					   : "");
	else if (end.why && end.why[0])
		snprintf(why, sizeof why, "%.180s; %s (repaired)", end.why, result->why);
	else
		snprintf(why, sizeof why, "%s (repaired)", result->why);
	end.why = why;
	return chain_end(&repair->chain, &end, err);
}

// The preamble is made from the INFO record where that could be read, so a damaged one is repaired,
// too.
static bool copy_all(struct repair *repair, const struct trace_info *info, struct err *err)
{
	uint8_t preamble[BLOCK_PREAMBLE_BYTES];
	struct block_preamble head = {
		.version_major = info->version_major,
		.version_minor = info->version_minor,
		.began_unix_ns = info->began_unix_ns,
	};
	struct block block;
	uint64_t at;

	memcpy(head.recording_id, info->recording_id, sizeof head.recording_id);
	block_preamble_encode(&head, preamble);
	if (!out_write(&repair->chain.out, preamble, sizeof preamble, false, err))
		return false;
	repair->used = BLOCK_PREAMBLE_BYTES;
	walk_init(&repair->walk);
	while (walk_next(&repair->walk, &repair->store, &block, &at))
		if (!take_block(repair, &block, at, err))
			return false;
	repair->result->blocks_lost = repair->walk.missed;
	repair->result->bytes_lost =
		repair->store.size > repair->used ? repair->store.size - repair->used : 0;
	return put_end(repair, err);
}

static bool repair_make(const char *path, int fd, bool copy, struct repair_result *result,
			struct err *err)
{
	struct repair repair = { .result = result, .copy = copy };
	struct reader *reader = reader_open(path, err);
	bool ok;

	ASSERT(fd >= 0 && result);
	*result = (struct repair_result){ 0 };
	if (!reader)
		return false;
	ok = store_open(&repair.store, path, err);
	if (ok) {
		chain_init(&repair.chain, fd);
		ok = copy_all(&repair, reader_info(reader), err);
		chain_fini(&repair.chain);
		walk_loader_fini(&repair.loader);
		store_close(&repair.store);
	}
	mem_free(repair.end.why);
	reader_close(reader);
	return ok;
}

bool repair_trace(const char *path, int fd, struct repair_result *result, struct err *err)
{
	return repair_make(path, fd, false, result, err);
}

bool repair_copy(const char *path, int fd, struct repair_result *result, struct err *err)
{
	return repair_make(path, fd, true, result, err);
}
