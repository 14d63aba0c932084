// What a block says besides of its events: definitions, marks, notes, and the end.
//
// A DEFS block is taken into the tables once, when the reader or a scan first comes to it. Its
// notes are gone through three times, each time for something else: as marks and turns of the
// whole trace, when it is taken in (take_defs); as what is known of processes at once, where a scan
// comes by (reader_apply_notes); and as items in their place, where it is played
// (reader_queue_notes). For example the note "process 3 ended, before event 9": a scan says that
// process 3 has an end, long before who plays the trace comes to event 9.
#include "trace/reader_own.h"

#include "base/mem.h"
#include "base/sort.h"
#include "trace/end.h"

#include <stdlib.h>

// Does the note name what it is about? Damage may have taken that away.
// A note of a process needs its process, and one of a module its number: without that it could
// only be applied to the wrong one.
static bool note_makes_sense(const struct trace_note *note)
{
	switch (note->kind) {
	case TRACE_NOTE_PROCESS_START:
	case TRACE_NOTE_PROCESS_END:
	case TRACE_NOTE_RSS:
	case TRACE_NOTE_RSS_MAX:
	case TRACE_NOTE_MODULE_GONE:
	case TRACE_NOTE_CALLS:
	case TRACE_NOTE_PSS:
	case TRACE_NOTE_SWAP:
	case TRACE_NOTE_MINOR:
	case TRACE_NOTE_MAJOR:
	case TRACE_NOTE_SNAPSHOTS_MISSED:
	case TRACE_NOTE_ADDRESS_LOW:
	case TRACE_NOTE_ADDRESS_END:
	case TRACE_NOTE_MAPPED_LIMIT:
	case TRACE_NOTE_DATA_LIMIT:
	case TRACE_NOTE_CALLS_ELSEWHERE:
	case TRACE_NOTE_ALLOCATOR:
	case TRACE_NOTE_BEFORE:
	case TRACE_NOTE_INTERPRETER:
	case TRACE_NOTE_GROUP_LIMIT:
	case TRACE_NOTE_GROUP_KILLS:
	case TRACE_NOTE_END_LATE:
	case TRACE_NOTE_TITLE:
		return note->process != TRACE_NONE;
	case TRACE_NOTE_THREAD_NAME:
		return note->thread != TRACE_NONE;
	default:
		return true;
	}
}

// The text goes to reader->text, which the next note overwrites.
static bool decode_note(struct reader *reader, const struct defs_record *record,
			struct trace_note *note, uint64_t *number)
{
	return record->kind == DEFS_NOTE &&
	       defs_read_note(&reader->defs, record->content, note, number, &reader->text) &&
	       note_makes_sense(note);
}

SORT_ORDER(compare_marks, struct trace_mark, SORT_RISES(number), SORT_RISES(time_ns))

// Returns whether it stands before the one that was added last.
// Marks are nearly always in order; only if one is not, all are sorted once at the end.
// Their names are copied: marks are asked for at any time.
static bool add_mark(struct reader *reader, const struct trace_note *note, uint64_t number)
{
	size_t at = reader->marks_count;

	MEM_ROOM(reader->marks, reader->marks_capacity, at + 1);
	reader->marks[at] = (struct trace_mark){
		.number = number,
		.time_ns = note->time_ns,
		.process = note->process,
		.thread = note->thread,
		.name = mem_copy_text(note->text),
	};
	reader->marks_count++;
	return at > 0 && reader->marks[at - 1].number > number;
}

SORT_ORDER(compare_turns, struct trace_turn, SORT_RISES(number), SORT_RISES(time_ns))

// The same, of a turn.
static bool add_turn(struct reader *reader, const struct trace_note *note, uint64_t number)
{
	uint8_t log2 = note->value <= TRACE_SAMPLE_LOG2_MAX ? (uint8_t)note->value : 0;
	size_t at = reader->turns_count;

	*MEM_ADD(reader->turns, reader->turns_count, reader->turns_capacity) = (struct trace_turn){
		.number = number,
		.time_ns = note->time_ns,
		.log2 = log2,
	};
	reader->sampled |= log2 > 0;
	return at > 0 && reader->turns[at - 1].number > number;
}

// Take the definitions, the marks and the turns of a DEFS payload into the tables.
// Definitions first: a note may speak of a process that is defined after it in the same block.
static void take_defs(struct reader *reader, struct bytes_cursor payload)
{
	struct bytes_cursor again = payload;
	struct defs_record record;
	struct trace_note note;
	uint64_t number;
	bool falls = false, turns_fall = false;

	while (defs_next(&payload, &record))
		defs_read(&reader->defs, &record);
	if (payload.bad)
		reader->defs.refused++;
	while (defs_next(&again, &record)) {
		if (!decode_note(reader, &record, &note, &number))
			continue;
		if (note.kind == TRACE_NOTE_MARK)
			falls |= add_mark(reader, &note, number);
		if (note.kind == TRACE_NOTE_SAMPLING)
			turns_fall |= add_turn(reader, &note, number);
	}
	if (turns_fall)
		qsort(reader->turns, reader->turns_count, sizeof *reader->turns, compare_turns);
	if (falls)
		qsort(reader->marks, reader->marks_count, sizeof *reader->marks, compare_marks);
	// What the file says of itself in front is what it is read by.
	reader->defs.info.version_major = reader->preamble.version_major;
	reader->defs.info.version_minor = reader->preamble.version_minor;
}

// By number, then as they stand in the file, which is the order of their texts.
SORT_ORDER(compare_waiting, struct waiting, SORT_RISES(number), SORT_RISES(text_at))

// Let the notes of a DEFS payload wait for their place in the order.
// Texts are kept in one buffer beside them, by where they begin in it.
void reader_queue_notes(struct reader *reader, struct bytes_cursor payload)
{
	struct defs_record record;
	bool falls = false;

	while (defs_next(&payload, &record)) {
		struct waiting waiting;

		if (!decode_note(reader, &record, &waiting.note, &waiting.number))
			continue;
		waiting.text_at = reader->texts.size;
		bytes_add(&reader->texts, reader->text.data, reader->text.size);
		MEM_ROOM(reader->waiting, reader->waiting_capacity, reader->waiting_count + 1);
		falls |= reader->waiting_count > reader->waiting_next &&
			 reader->waiting[reader->waiting_count - 1].number > waiting.number;
		reader->waiting[reader->waiting_count++] = waiting;
	}
	ASSERT(reader->waiting_next <= reader->waiting_count);
	if (falls)
		qsort(reader->waiting + reader->waiting_next,
		      reader->waiting_count - reader->waiting_next, sizeof *reader->waiting,
		      compare_waiting);
}

void reader_apply_notes(struct reader *reader, struct bytes_cursor payload)
{
	struct defs_record record;
	struct trace_note note;
	uint64_t number;

	// Only what they say of processes: they are items later, in their place.
	while (defs_next(&payload, &record))
		if (decode_note(reader, &record, &note, &number))
			defs_apply_note(&reader->defs, &note);
}

// A trace that was bundled to has several ends; the last one is true.
static bool take_end(struct reader *reader, struct bytes_cursor payload)
{
	struct trace_end end;

	if (!end_decode(payload, &end))
		return false;
	mem_free(reader->end.why);
	reader->end = end;
	reader->end_seen = true;
	return true;
}

// The definitions are taken once, by whichever walk comes first; but the payload is loaded each
// time, as the play needs its notes.
bool reader_take_block(struct reader *reader, struct walk_loader *loader, const struct block *block,
		       uint64_t at, struct bytes_cursor *payload, struct err *err)
{
	if (!walk_load(loader, &reader->store, block, at, payload, err))
		return false;
	if (block->type == BLOCK_END)
		return take_end(reader, *payload) || err_set(err, ERR_FORMAT, "damaged");
	if (at >= reader->defs_to)
		take_defs(reader, *payload);
	return true;
}
