// reader_own: what the parts of the reader share: reader.c, which plays, reader_defs.c, which takes
// in what is no event, reader_seek.c, which finds places, and reader_tables.c, which answers.
#pragma once

#include "trace/bundle_reader.h"
#include "trace/columns.h"
#include "trace/defs.h"
#include "trace/reader.h"
#include "trace/reader_ahead.h"
#include "trace/seek.h"
#include "trace/store.h"
#include "trace/walk.h"

// A note that waits for its place in the order.
// Notes are read with their DEFS block, some seconds of the recording before they are due.
// `note.text` is not set until it is given, since `texts` moves when it grows.
struct waiting {
	struct trace_note note;
	uint64_t number;
	size_t text_at; // in reader->texts
};

// Three walks go through one file. `play` is where the caller is; it goes back and forth.
// `frontier` is how far the file was scanned without its events; it only goes on. The one of
// `ahead` is that of a thread. What each finds damaged counts for the file.
struct reader {
	struct store store;
	struct block_preamble preamble;
	bool preamble_damaged;
	struct defs defs;
	uint64_t defs_to; // DEFS blocks below this offset are in the tables
	struct trace_end end;
	bool end_seen;

	// The position.
	// Where the next block is to be found that is played. While `in_events`, the block before
	// it is not used up yet.
	struct walk play;
	struct walk_loader loader;
	bool in_events;
	bool at_end;
	bool skips;                  // what is in blocks of events
	bool follows;                // the file may grow: at its end, no note is delivered early
	bool (*stop)(void *context); // see reader_stop
	void *stop_context;          // borrowed
	// A place is given by the last moment at which nothing was pending, plus the items since.
	struct reader_place place;     // the last one between blocks with no note waiting
	struct columns_decoder events; // unless there are chunks
	uint32_t played;               // blocks of events since the position was last changed
	uint32_t played_alone;         // after so many of them, a thread decodes ahead
	struct reader_ahead *ahead;    // ours; NULL: the blocks are decoded here
	const struct reader_ahead_chunk *chunk; // of the block being played; NULL: by `events`
	uint32_t chunk_at;                      // its next event
	bool spots;                             // chunks have them
	struct trace_vm vm;                     // of an event of a chunk, where it was settled
	uint64_t events_at;                     // offset of the block being played
	uint64_t next_number;                   // of the event after the last block played
	uint64_t last_ns;
	// Sorted by number. Those before waiting_next were given; the array is emptied when all
	// were.
	struct waiting *waiting;
	size_t waiting_next, waiting_count, waiting_capacity;
	struct bytes texts, text;

	// A rewound reader meets the same damage again: the largest count of one play is what is
	// missing, and not their sum.
	uint64_t missed;                     // blocks, as far as earlier plays found
	struct walk damaged;                 // the first earlier play that met damage
	uint64_t unknown_events, unknown_to; // of a kind not known, and up to which event counted

	struct trace_mark *marks; // of the blocks that `defs` has; by number
	size_t marks_count, marks_capacity;
	struct trace_turn *turns; // the same
	size_t turns_count, turns_capacity;
	bool sampled; // one of them begins samples

	// How far the file is known without its events. Never goes back.
	// `stats` counts the blocks that it has passed, so each is counted once, however often it
	// is played.
	struct walk frontier;
	struct walk_loader scan_loader;
	struct reader_stats stats;
	struct bundle_reader *bundle_reader; // ours
	// Loaded by the first reader_seek, from the INDEX blocks or, where these are broken, from
	// all headers.
	struct seek seek;
	bool seek_loaded;
};

// What is read from here on needs nothing of what was read before.
void reader_set_place(struct reader *reader);

// Decode no more ahead.
void reader_alone(struct reader *reader);

// Take in what a DEFS block (once) or an END block says. False if its payload is damaged.
bool reader_take_block(struct reader *reader, struct walk_loader *loader, const struct block *block,
		       uint64_t at, struct bytes_cursor *payload, struct err *err);

// Let the notes of a DEFS payload wait for their place in the order.
void reader_queue_notes(struct reader *reader, struct bytes_cursor payload);

// Let the notes of a DEFS payload say how processes ended and what threads are called.
void reader_apply_notes(struct reader *reader, struct bytes_cursor payload);
