// Playing a trace: block by block, and where the notes come in between.
//
// Definitions and notes are in DEFS blocks, events in EVENTS blocks. A DEFS block is taken into the
// tables once, when the reader first comes to it; its notes wait until the event that they are
// before. For example, a DEFS block with notes of the numbers 5 and 9, and after it an EVENTS block
// of the events 3 to 10. Items come as
//
//     event 3, event 4, note (5), event 5 … event 8, note (9), event 9, event 10
//
// Waiting notes that no event follows are given at the end of the file: those after the last event,
// and those whose events did not make it into it.
//
// An id in an event is held against the tables as it passes (event_settle): one that is not defined
// is none, and counted as refused; an event of a thread that is not known is left out. Times and
// event numbers never fall for who reads, whatever the file says.
//
// A block is decoded here, or, once two were played one after the other, by the thread of
// reader_ahead.c, from whose chunks the events are then taken. Both give the same items: a place in
// the trace (reader_place) is a block and how many items after its beginning.
#include "trace/reader_own.h"

#include "base/str.h"
#include "wire/compiler.h"

#include <inttypes.h>

// One who looks at a place or two needs no thread.
enum { PLAYED_ALONE = 2 };

// A damaged or cut preamble is forgiven where a block follows it, since the INFO record says all of
// it again. A file that is too short to have a header is said to be cut, not to be foreign.
static bool open_preamble(struct reader *reader, const char *path, struct err *err)
{
	uint8_t bytes[BLOCK_PREAMBLE_BYTES + BLOCK_HEADER_BYTES];
	size_t size = store_read(&reader->store, 0, bytes, sizeof bytes);
	enum block_preamble_verdict verdict = block_preamble_decode(bytes, size, &reader->preamble);
	struct block block;
	bool block_follows = size == sizeof bytes &&
			     block_header_decode(bytes + BLOCK_PREAMBLE_BYTES, &block);

	if (size == 0)
		return err_set(err, ERR_FORMAT, "%s is empty", path);
	if (verdict == BLOCK_PREAMBLE_FOREIGN && !block_follows)
		return err_set(err, ERR_FORMAT,
			       memcmp(bytes, "\177ELF", 4) == 0 || memcmp(bytes, "MZ", 2) == 0
				       ? "%s is a program, and is not a tidemark trace (tidemark "
					 "record makes one of it)"
				       : "%s is not a tidemark trace (tidemark import makes one "
					 "of what another tool recorded)",
			       path);
	if (size < BLOCK_PREAMBLE_BYTES)
		return err_set(err, ERR_FORMAT, "%s is cut: it ends at byte %zu, inside the header",
			       path, size);
	if (reader->preamble.version_major != BLOCK_VERSION_MAJOR)
		return err_set(err, ERR_FORMAT,
			       "%s is a trace of format %u.%u, but this tidemark reads format %d "
			       "(use the tidemark that recorded it, or a newer one)",
			       path, reader->preamble.version_major, reader->preamble.version_minor,
			       BLOCK_VERSION_MAJOR);
	if (verdict == BLOCK_PREAMBLE_DAMAGED && !block_follows)
		return err_set(err, ERR_FORMAT, "%s is damaged in its header", path);
	reader->preamble_damaged = verdict != BLOCK_PREAMBLE_OK;
	return true;
}

static void load_first_defs(struct reader *reader);

// Definitions of the first block are read at once: who opens a trace wants to know of what it is.
struct reader *reader_open(const char *path, struct err *err)
{
	struct reader *reader = mem_alloc(1, sizeof *reader);

	reader->bundle_reader = mem_alloc(1, sizeof *reader->bundle_reader);
	reader->store.fd = -1;
	reader->played_alone = PLAYED_ALONE;
	defs_init(&reader->defs);
	if (!store_open(&reader->store, path, err)) {
		reader_close(reader);
		return NULL;
	}
	if (!open_preamble(reader, path, err)) {
		reader_close(reader);
		return NULL;
	}
	walk_init(&reader->frontier);
	walk_init(&reader->play);
	reader_set_place(reader);
	reader->stats.whole_at = BLOCK_PREAMBLE_BYTES;
	load_first_defs(reader);
	return reader;
}

// The thread that reads ahead ends first, as it uses all of the others.
void reader_close(struct reader *reader)
{
	if (!reader)
		return;
	reader_alone(reader);
	store_close(&reader->store);
	defs_fini(&reader->defs);
	mem_free(reader->end.why);
	columns_decoder_fini(&reader->events);
	walk_loader_fini(&reader->loader);
	walk_loader_fini(&reader->scan_loader);
	mem_free(reader->waiting);
	for (size_t i = 0; i < reader->marks_count; i++)
		mem_free(reader->marks[i].name);
	MEM_FREE(reader->marks, reader->turns);
	bytes_fini(&reader->texts);
	bytes_fini(&reader->text);
	if (reader->bundle_reader)
		bundle_reader_fini(reader->bundle_reader);
	mem_free(reader->bundle_reader);
	seek_fini(&reader->seek);
	mem_free(reader);
}

// A block is counted by the frontier alone, so `whole_at` rises and a bundle is added once.
static void count_block(struct reader *reader, const struct block *block, uint64_t at)
{
	struct reader_stats *stats = &reader->stats;
	uint64_t bytes = BLOCK_HEADER_BYTES + (uint64_t)block->stored_size;

	stats->blocks++;
	stats->whole_at = at + bytes;
	if (stats->last_ns < block->last_ns)
		stats->last_ns = block->last_ns;
	switch (block->type) {
	case BLOCK_DEFS:
		stats->defs_blocks++;
		stats->defs_bytes += bytes;
		if (stats->events_told < block->first_event)
			stats->events_told = block->first_event;
		break;
	case BLOCK_EVENTS:
		stats->events_blocks++;
		stats->events += block->events_count;
		stats->events_bytes += bytes;
		stats->events_end = block->first_event + block->events_count;
		stats->events_last_ns = block->last_ns;
		break;
	case BLOCK_BUNDLE:
		stats->bundle_blocks++;
		stats->bundle_bytes += bytes;
		bundle_reader_add(reader->bundle_reader, at);
		break;
	case BLOCK_INDEX:
		stats->index_blocks++;
		break;
	case BLOCK_END:
		break;
	default:
		stats->unknown_blocks++;
		break;
	}
}

// So that reader_info has something to say at once.
// Where the first block is damaged, the preamble has the little that a caller asks for at once:
// versions, the time and the recording's id.
static void load_first_defs(struct reader *reader)
{
	struct trace_info *info = &reader->defs.info;
	struct bytes_cursor payload;
	struct err ignored;
	struct block block;
	struct walk walk;
	uint64_t at;

	walk_init(&walk);
	if (walk_next(&walk, &reader->store, &block, &at) && block.type == BLOCK_DEFS &&
	    reader_take_block(reader, &reader->scan_loader, &block, at, &payload, &ignored)) {
		reader_apply_notes(reader, payload);
		reader->defs_to = at + 1;
	}
	if (reader->defs.info_seen)
		return;
	info->version_major = reader->preamble.version_major;
	info->version_minor = reader->preamble.version_minor;
	info->began_unix_ns = reader->preamble.began_unix_ns;
	memcpy(info->recording_id, reader->preamble.recording_id, sizeof info->recording_id);
}

// ---- what is decoded ahead ----

void reader_alone(struct reader *reader)
{
	reader_ahead_end(reader->ahead);
	reader->ahead = NULL;
	reader->chunk = NULL;
	reader->played = 0;
}

// Is the block at `at`, which the walk `before` comes to, decoded ahead? Then its first chunk is
// there.
// A file that may grow is decoded here: the thread's copy of the size would be too small. The
// thread begins at the block that is about to be played, so that the two walks agree.
static bool play_ahead(struct reader *reader, const struct walk *before, uint64_t at)
{
	if (!reader->ahead && !reader->follows && reader->played >= reader->played_alone)
		reader->ahead = reader_ahead_start(&reader->store, before, reader->spots);
	if (!reader->ahead)
		return false;
	reader->chunk = reader_ahead_next(reader->ahead, at);
	reader->chunk_at = 0;
	if (!reader->chunk)
		reader_alone(reader);
	return reader->chunk != NULL;
}

// The chunk with the next event of the block, or what comes after the last.
// Chunks of a block follow each other; the last one says how the block ended.
static inline enum columns_result find_chunk(struct reader *reader)
{
	while (unlikely(reader->chunk_at == reader->chunk->count)) {
		if (reader->chunk->result != COLUMNS_EVENT) {
			reader->events.unknown = reader->chunk->unknown;
			return reader->chunk->result;
		}
		reader->chunk = reader_ahead_next(reader->ahead, reader->events_at);
		reader->chunk_at = 0;
		ASSERT(reader->chunk); // a block that was begun is decoded to its end
	}
	return COLUMNS_EVENT;
}

// The number of the next event of the block.
static inline uint64_t next_event_number(struct reader *reader)
{
	if (!reader->chunk)
		return reader->events.number;
	if (find_chunk(reader) != COLUMNS_EVENT)
		return reader->chunk->number;
	return reader_ahead_number(reader->chunk, reader->chunk_at);
}

static inline enum columns_result next_event(struct reader *reader, struct trace_event *event)
{
	enum columns_result result;

	if (!reader->chunk)
		return columns_next(&reader->events, event);
	result = find_chunk(reader);
	if (result == COLUMNS_EVENT)
		reader_ahead_event(reader->chunk, reader->chunk_at++, event);
	return result;
}

// A run has one thread and one time, so these are held against the tables once. Where either is not
// in order, reader_next settles the events one by one.
static uint32_t run_of_chunk(struct reader *reader, struct trace_event *events, uint32_t max)
{
	const struct trace_event *next;
	uint32_t count;

	if (find_chunk(reader) != COLUMNS_EVENT || reader->chunk->spotted)
		return 0;
	next = &reader->chunk->events[reader->chunk_at];
	count = reader->chunk->runs[reader->chunk_at];
	if (count > max)
		count = max;
	if (count == 0 || next->thread >= reader->defs.threads_count ||
	    next->time_ns < reader->last_ns)
		return 0;
	ASSERT(count <= reader->chunk->count - reader->chunk_at);
	memcpy(events, next, count * sizeof *events);
	reader->chunk_at += count;
	reader->last_ns = events->time_ns;
	return count;
}

// ---- playing ----

// The number after the block is known from its header, also if the block turns out to be damaged:
// the events that are lost keep their numbers.
static void begin_events(struct reader *reader, const struct block *block, uint64_t at)
{
	ASSERT(!reader->in_events);
	reader->in_events = true;
	reader->events_at = at;
	reader->next_number = block->first_event + block->events_count;
	reader->played++;
}

// Begin to play an EVENTS block.
// Decoded here, or taken from the thread that decodes ahead.
// A block whose events were numbered already would give numbers that fall: it is rejected whole, as
// if it were damaged.
static bool play_events(struct reader *reader, const struct walk *before, const struct block *block,
			uint64_t at, struct err *err)
{
	struct bytes_cursor payload;

	ASSERT(block->type == BLOCK_EVENTS);
	if (block->first_event < reader->next_number)
		return err_set(err, ERR_FORMAT, "event numbers fall");
	if (reader->skips) {
		reader->next_number = block->first_event + block->events_count;
		return true;
	}
	reader->chunk = NULL;
	if (play_ahead(reader, before, at)) {
		begin_events(reader, block, at);
		return true;
	}
	if (!walk_load(&reader->loader, &reader->store, block, at, &payload, err))
		return false;
	if (!columns_decoder_init(&reader->events, payload, block->events_count, block->first_event,
				  block->first_ns))
		return err_set(err, ERR_FORMAT, "columns are damaged");
	begin_events(reader, block, at);
	return true;
}

// Go on to the next block. False at the end of the file.
static bool play_block(struct reader *reader)
{
	// The walk as it was before this block: a thread that decodes ahead has to begin here.
	struct walk before = reader->play;
	struct bytes_cursor payload;
	struct err err = { 0 };
	struct block block;
	uint64_t at;

	if (!walk_next(&reader->play, &reader->store, &block, &at))
		return false;
	if (block.type == BLOCK_EVENTS) {
		if (!play_events(reader, &before, &block, at, &err))
			walk_reject(&reader->play, at, err.text);
	} else if (block.type == BLOCK_DEFS || block.type == BLOCK_END) {
		if (!reader_take_block(reader, &reader->loader, &block, at, &payload, &err))
			walk_reject(&reader->play, at, err.text);
		else if (block.type == BLOCK_DEFS)
			reader_queue_notes(reader, payload);
		if (block.type == BLOCK_DEFS && at >= reader->defs_to)
			reader->defs_to = at + 1;
	} else if (!walk_check(&reader->loader, &reader->store, &block, at, &err)) {
		// Nothing in it is wanted now, but damage is worth knowing of.
		walk_reject(&reader->play, at, err.text);
	}
	return true;
}

// The block being played has no more to give.
// Events of kinds not known are counted once, though a block may be played many times: `unknown_to`
// is how far they were.
static void end_events(struct reader *reader, bool damaged)
{
	ASSERT(reader->in_events);
	reader->in_events = false;
	if (damaged)
		walk_reject(&reader->play, reader->events_at, "columns are damaged");
	if (reader->next_number > reader->unknown_to) {
		reader->unknown_events += reader->events.unknown;
		reader->unknown_to = reader->next_number;
	}
}

// The time of a note may be before that of the last item: it is raised, never lowered.
static enum reader_item next_note(struct reader *reader, struct trace_note *note)
{
	const struct waiting *waiting = &reader->waiting[reader->waiting_next++];

	ASSERT(reader->waiting_next <= reader->waiting_count);
	reader->place.items++;
	*note = waiting->note;
	note->text = (const char *)reader->texts.data + waiting->text_at;
	if (note->time_ns < reader->last_ns)
		note->time_ns = reader->last_ns;
	reader->last_ns = note->time_ns;
	defs_apply_note(&reader->defs, note);
	return READER_NOTE;
}

// Does a note stand before the event of this number? Forgets notes that were all delivered.
static inline bool note_due(struct reader *reader, uint64_t number)
{
	if (likely(reader->waiting_count == 0))
		return false;
	if (reader->waiting_next == reader->waiting_count) {
		reader->waiting_next = reader->waiting_count = 0;
		reader->texts.size = 0;
		return false;
	}
	return reader->waiting[reader->waiting_next].number <= number;
}

// Hold an event against the tables: false if its thread is not known.
static inline bool event_settle(struct reader *reader, struct trace_event *event)
{
	if (unlikely(event->thread >= reader->defs.threads_count)) {
		reader->defs.refused++;
		return false;
	}
	if (unlikely(event->stack >= reader->defs.stacks_count)) {
		reader->defs.refused++;
		event->stack = 0;
	}
	if (unlikely(event->vm != NULL) && event->vm->file >= reader->defs.files_count) {
		reader->defs.refused++;
		reader->vm = *event->vm;
		reader->vm.file = 0;
		event->vm = &reader->vm;
	}
	if (unlikely(event->heap >= reader->defs.heaps_count)) {
		reader->defs.refused++;
		event->heap = 0;
	}
	if (unlikely(event->time_ns < reader->last_ns))
		event->time_ns = reader->last_ns;
	reader->last_ns = event->time_ns;
	return true;
}

void reader_stop(struct reader *reader, bool (*stop)(void *context), void *context)
{
	reader->stop = stop;
	reader->stop_context = context;
}

// Between blocks a note comes first whose number is at most that of the next event; then the next
// block is begun. Within a block the next event's number decides. A place is remembered where no
// note is pending, for what is pending could not be found again from there.
enum reader_item reader_next(struct reader *reader, struct trace_event *event,
			     struct trace_note *note)
{
	while (!reader->at_end) {
		enum columns_result result;

		if (!reader->in_events) {
			if (note_due(reader, reader->next_number))
				return next_note(reader, note);
			if (reader->waiting_count == 0)
				reader_set_place(reader);
			if (reader->stop && reader->stop(reader->stop_context))
				return READER_END;
			reader->at_end = !play_block(reader);
			if (reader->at_end && reader->follows)
				return READER_END;
			continue;
		}
		if (unlikely(reader->waiting_count > 0) &&
		    note_due(reader, next_event_number(reader)))
			return next_note(reader, note);
		result = next_event(reader, event);
		if (unlikely(result != COLUMNS_EVENT)) {
			end_events(reader, result == COLUMNS_DAMAGED);
		} else if (likely(event_settle(reader, event))) {
			reader->place.items++;
			return READER_EVENT;
		}
	}
	if (reader->follows)
		return READER_END;
	// Notes whose events did not make it into the file.
	if (note_due(reader, UINT64_MAX))
		return next_note(reader, note);
	// The caller may now ask whether all is whole: the frontier goes to the end as well. It
	// reads headers alone, since the play has taken in the definitions.
	reader_scan(reader);
	return READER_END;
}

// In a file of 10 GB this reads headers alone, and the DEFS blocks between.
bool reader_next_note(struct reader *reader, struct trace_note *note)
{
	while (!reader->at_end && !note_due(reader, reader->next_number)) {
		reader->in_events = false;
		if (reader->stop && reader->stop(reader->stop_context))
			return false;
		reader->skips = true;
		reader->at_end = !play_block(reader);
		reader->skips = false;
	}
	if (note_due(reader, reader->at_end ? UINT64_MAX : reader->next_number)) {
		next_note(reader, note);
		return true;
	}
	reader_scan(reader);
	return false;
}

bool reader_over(const struct reader *reader)
{
	return reader->at_end;
}

// A run is of one thread and one time, which are looked at once and not for each event.
static uint32_t run_of_block(struct reader *reader, struct trace_event *events, uint32_t max)
{
	uint32_t count;

	if (reader->events.thread >= reader->defs.threads_count ||
	    reader->events.time_ns < reader->last_ns)
		return 0;
	count = columns_run(&reader->events, events, max);
	if (count > 0)
		reader->last_ns = reader->events.time_ns;
	return count;
}

// How many events may come before the next note, at most `max`.
static inline uint32_t before_note(struct reader *reader, uint32_t max)
{
	uint64_t number;

	if (!reader->in_events)
		return 0;
	if (likely(reader->waiting_count == 0))
		return max;
	number = next_event_number(reader);
	if (note_due(reader, number))
		return 0;
	if (reader->waiting_count > 0 &&
	    reader->waiting[reader->waiting_next].number - number < max)
		// A note of number 9, and the next event is 5: a run may have four events.
		return (uint32_t)(reader->waiting[reader->waiting_next].number - number);
	return max;
}

// The rare part, stacks that are not known, is looked at afterwards, since a run that is right
// needs one pass of comparisons and no branch is taken.
uint32_t reader_run(struct reader *reader, struct trace_event *events, uint32_t max)
{
	uint32_t count;

	max = before_note(reader, max);
	if (max == 0)
		return 0;
	count = reader->chunk ? run_of_chunk(reader, events, max)
			      : run_of_block(reader, events, max);
	ASSERT(count <= max);
	for (uint32_t i = 0; i < count; i++)
		if (unlikely(events[i].stack >= reader->defs.stacks_count))
			event_settle(reader, &events[i]);
	reader->place.items += count;
	return count;
}

void reader_give_spots(struct reader *reader, bool gives)
{
	reader->spots = gives;
}

bool reader_calls(struct reader *reader, struct reader_calls *calls, uint32_t max)
{
	const struct reader_ahead_chunk *chunk;
	const struct trace_event *first;
	uint32_t at, count;

	max = before_note(reader, max);
	if (max == 0 || !reader->chunk || find_chunk(reader) != COLUMNS_EVENT ||
	    !reader->chunk->spotted)
		return false;
	chunk = reader->chunk;
	at = reader->chunk_at;
	first = &chunk->events[chunk->first[at]];
	if (chunk->runs[at] == 0 || first->thread >= reader->defs.threads_count ||
	    first->time_ns < reader->last_ns)
		return false;
	if (max > chunk->runs[at])
		max = chunk->runs[at];
	ASSERT(max <= chunk->count - at);
	count = max;
	if (unlikely(chunk->stacks >= reader->defs.stacks_count)) {
		// Up to the first that reader_next has to settle.
		count = 0;
		while (count < max && chunk->calls[at + count].stack < reader->defs.stacks_count)
			count++;
	}
	*calls = (struct reader_calls){
		.calls = &chunk->calls[at],
		.events = &chunk->events[at],
		.count = count,
		.thread = first->thread,
		.time_ns = first->time_ns,
		.number = reader_ahead_number(chunk, at),
		.block = chunk->at,
	};
	reader->chunk_at += count;
	reader->last_ns = first->time_ns;
	reader->place.items += count;
	return count > 0;
}

struct reader_spots reader_spots(const struct reader *reader)
{
	const struct reader_ahead_chunk *chunk = reader->chunk;

	if (!chunk || !chunk->spotted || reader->chunk_at == 0)
		return (struct reader_spots){ 0, READER_NO_SPOT, READER_NO_SPOT };
	return (struct reader_spots){
		chunk->at,
		chunk->calls[reader->chunk_at - 1].spot,
		chunk->calls[reader->chunk_at - 1].old_spot,
	};
}

bool reader_keeps(const struct reader *reader)
{
	return !reader->chunk || reader->chunk_at < reader->chunk->count;
}

// Notes that wait were read by the play and not by the frontier; what they say of processes (how
// one ended, its limits) has to be known after a scan, too. Saying it twice changes nothing.
static void scan(struct reader *reader, bool definitions)
{
	struct walk *walk = &reader->frontier;
	struct block block;
	uint64_t at;

	while (walk_next(walk, &reader->store, &block, &at)) {
		struct bytes_cursor payload;
		struct err why = { 0 };
		bool defs = definitions && block.type == BLOCK_DEFS && at >= reader->defs_to;

		if (defs || block.type == BLOCK_END) {
			if (!reader_take_block(reader, &reader->scan_loader, &block, at, &payload,
					       &why)) {
				walk_reject(walk, at, why.text);
				continue;
			}
			if (defs) {
				reader_apply_notes(reader, payload);
				reader->defs_to = at + 1;
			}
		}
		count_block(reader, &block, at);
	}
	for (size_t i = reader->waiting_next; i < reader->waiting_count; i++) {
		struct trace_note note = reader->waiting[i].note;

		note.text = (const char *)reader->texts.data + reader->waiting[i].text_at;
		defs_apply_note(&reader->defs, &note);
	}
}

void reader_scan(struct reader *reader)
{
	scan(reader, true);
}

void reader_scan_heads(struct reader *reader)
{
	scan(reader, false);
}

// The first thing that is wrong with the file, or NULL.
// First by when it was found; not by where it is.
static const struct walk *first_damage(const struct reader *reader)
{
	if (reader->damaged.damaged)
		return &reader->damaged;
	if (reader->play.damaged)
		return &reader->play;
	return reader->frontier.damaged ? &reader->frontier : NULL;
}

void reader_damage(const struct reader *reader, struct reader_damage *damage)
{
	const struct walk *first = first_damage(reader);

	*damage = (struct reader_damage){ .missed = reader_skipped(reader) };
	if (!first)
		return;
	damage->at = first->damage_at;
	memcpy(damage->why, first->damage, sizeof damage->why);
}

void reader_know_damage(struct reader *reader, const struct reader_damage *damage)
{
	_Static_assert(sizeof damage->why == sizeof reader->damaged.damage, "the same text");
	ASSERT(memchr(damage->why, '\0', sizeof damage->why));
	if (reader->missed < damage->missed)
		reader->missed = damage->missed;
	if (damage->why[0] == '\0' || first_damage(reader))
		return;
	reader->damaged.damaged = true;
	reader->damaged.damage_at = damage->at;
	memcpy(reader->damaged.damage, damage->why, sizeof damage->why);
}

// False before a walk has come to the END block, which is the last one.
bool reader_sound(const struct reader *reader)
{
	return reader->end_seen && !first_damage(reader) && !reader->preamble_damaged &&
	       reader->defs.refused == 0;
}

bool reader_complete(const struct reader *reader)
{
	return reader_sound(reader) && reader->end.why[0] == '\0' && reader->end.unseen == 0 &&
	       reader->end.events_lost == 0;
}

bool reader_growing(const struct reader *reader)
{
	return !reader->end_seen && reader->store.written && !first_damage(reader);
}

// Is it whole, but for events that were lost?
// The most important reason alone: damage before a missing end, since damage may have taken the end
// away.
static bool is_whole(const struct reader *reader, struct err *err)
{
	const struct walk *damage = first_damage(reader);

	if (damage)
		return err_set(err, ERR_FORMAT,
			       "damaged at byte %" PRIu64 ": %s; blocks lost: %" PRIu64,
			       damage->damage_at, damage->damage, reader_skipped(reader));
	if (reader_growing(reader))
		return err_set(err, ERR_FORMAT,
			       "it is still being written: %" PRIu64 " of %" PRIu64
			       " bytes were whole when it was read",
			       reader->stats.whole_at, reader->store.size);
	if (!reader->end_seen)
		return err_set(err, ERR_FORMAT,
			       "cut at byte %" PRIu64 " of %" PRIu64 ": the recording did not end",
			       reader->stats.whole_at, reader->store.size);
	if (reader->end.why[0] != '\0')
		return err_set(err, ERR_FORMAT, "the recording ended early: %s", reader->end.why);
	if (reader->preamble_damaged)
		return err_set(err, ERR_FORMAT, "the header of the file is damaged");
	if (reader->end.unseen > 0)
		return err_set(err, ERR_FORMAT,
			       "%" PRIu64
			       " program%s not recorded, or not wholly (tidemark info names "
			       "%s)",
			       reader->end.unseen, reader->end.unseen == 1 ? " was" : "s were",
			       reader->end.unseen == 1 ? "it" : "them");
	if (reader->defs.refused > 0)
		return err_set(err, ERR_FORMAT, "%" PRIu64 " records contradict others",
			       reader->defs.refused);
	return true;
}

bool reader_ok(const struct reader *reader, struct err *err)
{
	bool whole = is_whole(reader, err);
	uint64_t lost = reader->end_seen ? reader->end.events_lost : 0;
	struct err other = { .text = "" };

	if (lost == 0)
		return whole;
	if (!whole)
		other = *err;
	return err_set(err, ERR_FORMAT, "%s%s%s event%s lost", other.text, whole ? "" : "; and ",
		       STR_COUNT(lost), lost == 1 ? " was" : "s were");
}

const struct trace_info *reader_info(const struct reader *reader)
{
	return &reader->defs.info;
}

bool reader_is_windows(const struct reader *reader)
{
	return strncmp(reader_info(reader)->host, "Windows", 7) == 0;
}

const struct trace_end *reader_end(const struct reader *reader)
{
	return reader->end_seen ? &reader->end : NULL;
}

uint64_t reader_bytes(const struct reader *reader)
{
	return reader->store.size;
}

uint64_t reader_position(const struct reader *reader)
{
	return reader->play.at;
}

// The largest of the walks' counts: each has met the same damage, some further than others.
uint64_t reader_skipped(const struct reader *reader)
{
	uint64_t missed = reader->missed;

	if (missed < reader->play.missed)
		missed = reader->play.missed;
	return missed < reader->frontier.missed ? reader->frontier.missed : missed;
}

uint64_t reader_unknown(const struct reader *reader)
{
	return reader->unknown_events + reader->defs.unknown + reader->stats.unknown_blocks;
}

static bool is_same_file(const struct trace_module *a, const struct trace_module *b)
{
	return strcmp(a->path, b->path) == 0 && a->build_id_length == b->build_id_length &&
	       memcmp(a->build_id, b->build_id, a->build_id_length) == 0;
}

// What a forked process has not mapped itself it has where its parent has it.
//
// For example, a frame at 0x7f10001234 of a library that the first process has mapped with a bias
// of 0x7f10000000 is at 0x7e55001234 in one that has it with a bias of 0x7e55000000.
uint64_t reader_address(const struct reader *reader, frame_id id, process_id process)
{
	const struct trace_frame *frame = reader_frame(reader, id);
	const struct trace_module *own = frame ? reader_module(reader, frame->module) : NULL;
	const struct trace_process *each = reader_process(reader, process);

	if (!own || frame->module == 0)
		return frame ? frame->pc : 0;
	while (each && each->id != own->process) {
		uint64_t at = frame->pc - own->bias;

		for (module_id i = 1; i < reader_modules_count(reader); i++) {
			const struct trace_module *module = reader_module(reader, i);

			if (module->process == each->id && is_same_file(module, own) &&
			    at >= module->start - module->bias && at < module->end - module->bias)
				return at + module->bias;
		}
		// A parent has a lower number: else it has none.
		each = each->start == TRACE_START_FORK && each->parent < each->id
			       ? reader_process(reader, each->parent)
			       : NULL;
	}
	return frame->pc;
}

bool reader_lacks_events(const struct reader *reader, uint64_t *end_ns)
{
	*end_ns = reader->stats.events_last_ns;
	return !reader->end_seen && reader->stats.events_told > reader->stats.events_end;
}

const struct reader_stats *reader_stats(const struct reader *reader)
{
	return &reader->stats;
}
