// Going to other places of a trace: back to its beginning, to a place that was left, to a time.
// To a time it goes by the INDEX blocks, from the end of the file backwards, or else by the headers
// of all blocks; definitions of blocks that are stepped over are loaded all the same.
//
// For example the blocks are DEFS at byte 64, EVENTS from 0 to 1.0 s at 900, DEFS at 30,000, EVENTS
// from 1.0 s to 2.1 s at 31,000. To seek to 1.5 s finds the last block of events that begins at or
// before it, at 31,000, and goes back to the DEFS block right before, at 30,000, whose notes belong
// to it. The definitions of the block at 64 are loaded, and play begins at 30,000. The first event
// is that of 1.0 s: the caller steps over what is before 1.5 s.
#include "trace/reader_own.h"

#include "trace/end.h"

#include <inttypes.h>

void reader_set_place(struct reader *reader)
{
	ASSERT(!reader->in_events);
	reader->place = (struct reader_place){ .at = reader->play.at,
					       .next_number = reader->next_number,
					       .last_ns = reader->last_ns,
					       .sequence = reader->play.sequence };
}

// Forget the position; what was found out about the file stays.
static void leave_position(struct reader *reader)
{
	if (reader->missed < reader->play.missed)
		reader->missed = reader->play.missed;
	if (reader->play.damaged && !reader->damaged.damaged)
		reader->damaged = reader->play;
	reader_alone(reader);
	reader->in_events = reader->at_end = false;
	reader->waiting_next = reader->waiting_count = 0;
	reader->texts.size = 0;
	reader->next_number = 0;
	reader->last_ns = 0;
}

void reader_rewind(struct reader *reader)
{
	leave_position(reader);
	walk_init(&reader->play);
	reader_set_place(reader);
}

struct reader_place reader_place(const struct reader *reader)
{
	return reader->place;
}

// A place was given by this reader or by another one of the same recording, and may have been on
// disk since: nothing in it is believed but where to look. The items are counted off, which decodes
// one block of events at most, unless notes were pending for longer.
bool reader_go(struct reader *reader, const struct reader_place *place)
{
	struct trace_event event;
	struct trace_note note;

	reader_rewind(reader);
	if (place->at < BLOCK_PREAMBLE_BYTES || place->at > reader->store.size)
		return false;
	reader->play.at = reader->play.search_at = reader->play.whole_at = place->at;
	reader->play.sequence = place->sequence;
	reader->next_number = place->next_number;
	reader->last_ns = place->last_ns;
	reader_set_place(reader);
	for (uint64_t i = 0; i < place->items; i++) {
		if (reader_next(reader, &event, &note) == READER_END) {
			reader_rewind(reader);
			return false;
		}
	}
	return true;
}

void reader_follow(struct reader *reader, bool follow)
{
	reader->follows = follow;
}

// The size was fixed when the file was opened: what was written since is seen from now on. A block
// that was half there when the play came to it is looked for again.
void reader_grown(struct reader *reader)
{
	store_grown(&reader->store);
	walk_retry(&reader->play);
	walk_retry(&reader->frontier);
	reader->at_end = false;
	reader_scan(reader);
}

// Follow the INDEX blocks from the end of the file. False if there is no unbroken chain of them.
// Each INDEX block has the offset of the one before, which must be lower: so a chain made by a
// hostile hand ends. The entries must reach back to the first block, or else it is by headers.
static bool seek_by_index(struct reader *reader)
{
	uint8_t tail[END_FOOTER_BYTES];
	struct end_footer footer;
	uint64_t at, previous;

	if (reader->store.size < sizeof tail ||
	    store_read(&reader->store, reader->store.size - sizeof tail, tail, sizeof tail) !=
		    sizeof tail ||
	    !end_decode_footer(tail, &footer) || footer.index_at == 0)
		return false;
	for (at = footer.index_at; at != 0; at = previous) {
		uint8_t header[BLOCK_HEADER_BYTES];
		struct bytes_cursor payload;
		struct err ignored;
		struct block block;

		if (store_read(&reader->store, at, header, sizeof header) != sizeof header ||
		    !block_header_decode(header, &block) || block.type != BLOCK_INDEX ||
		    !walk_load(&reader->scan_loader, &reader->store, &block, at, &payload,
			       &ignored) ||
		    !seek_decode(&reader->seek, payload, &previous) || previous >= at)
			return false;
	}
	seek_sort(&reader->seek);
	return reader->seek.count > 0 && reader->seek.entries[0].at == BLOCK_PREAMBLE_BYTES;
}

// What an interrupted seek_by_index has added goes.
static void seek_by_headers(struct reader *reader)
{
	struct block block;
	struct walk walk;
	uint64_t at;

	reader->seek.count = 0;
	walk_init(&walk);
	while (walk_next(&walk, &reader->store, &block, &at))
		seek_add(&reader->seek, at, &block);
}

// Load the definitions of all blocks before `target`.
// In the order of the file, since definitions build on earlier ones. Those that the reader has met
// already (`defs_to`) are left out. A DEFS block that cannot be read leaves a gap of ids, as it
// does where it is played.
static void load_defs_before(struct reader *reader, uint64_t target)
{
	for (size_t i = 0; i < reader->seek.count; i++) {
		const struct seek_entry *entry = &reader->seek.entries[i];
		uint8_t header[BLOCK_HEADER_BYTES];
		struct bytes_cursor payload;
		struct err ignored;
		struct block block;

		if (entry->type != BLOCK_DEFS || entry->at < reader->defs_to || entry->at >= target)
			continue;
		if (store_read(&reader->store, entry->at, header, sizeof header) != sizeof header ||
		    !block_header_decode(header, &block) || block.type != BLOCK_DEFS ||
		    !reader_take_block(reader, &reader->scan_loader, &block, entry->at, &payload,
				       &ignored))
			continue;
		reader_apply_notes(reader, payload);
		reader->defs_to = entry->at + 1;
	}
}

// Blocks between are not read, so damage in them is not noticed, unless the trace is scanned.
bool reader_seek(struct reader *reader, uint64_t time_ns, struct err *err)
{
	uint8_t header[BLOCK_HEADER_BYTES];
	const struct seek_entry *target;
	struct block block;
	size_t found;

	if (!reader->seek_loaded && !seek_by_index(reader))
		seek_by_headers(reader);
	reader->seek_loaded = true;
	found = seek_find(&reader->seek, time_ns);
	reader_rewind(reader);
	if (found == SIZE_MAX)
		return true;
	// The definitions and notes that belong to the block stand right before it.
	while (found > 0 && reader->seek.entries[found - 1].type == BLOCK_DEFS)
		found--;
	target = &reader->seek.entries[found];
	if (store_read(&reader->store, target->at, header, sizeof header) != sizeof header ||
	    !block_header_decode(header, &block))
		return err_set(err, ERR_FORMAT,
			       "no block at byte %" PRIu64 ", where the index says", target->at);
	load_defs_before(reader, target->at);
	reader->play.at = target->at;
	reader->play.search_at = target->at;
	reader->play.sequence = block.sequence;
	return true;
}
