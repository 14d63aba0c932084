// push_live_own: what the two halves of push_live.h share.
#pragma once

#include "base/map.h"
#include "engine/replay/lives.h"
#include "export/rowset_sites.h"
#include "sql/native.h"
#include "sql/push_live.h"

// The first half of a thread's realloc, whose second did not come yet.
// Only those of which `open` is set count: a slot stays for its thread.
struct push_live_half {
	bool open;
	struct lives_block block;
	struct lives_end end;
};

// All that one part of a recording needs while it is sent. `run` makes and frees it; both halves
// write to it, the fields of one heading mostly from one of them. Times are of the trace, in ns,
// unless said otherwise.
struct push_live {
	struct shards *shards;
	struct clickhouse *clickhouse; // the shard that has this trace
	const struct push_live_options *options;
	struct push_result *result;
	char trace[33];
	unsigned day; // on which it began
	bool plain;   // rows of it were sent as a whole trace
	// The file.
	// -1: none
	int lock_fd;
	struct opened opened;
	struct query_context asked; // no more of it than what rowset and push_file look at
	bool reopened;              // it is another file than the first
	// Reading.
	struct lives *lives, *before; // `before`: of the file before, until the new one is where it
				      // begins
	// keys of the blocks that live where the new file begins
	struct map lived;
	struct push_live_half *halves; // by thread
	size_t halves_count, halves_capacity;
	// The one that is added, for the watcher to look at; empty while a note is. And the time
	// and the number up to which the trace is read.
	struct trace_event event;
	uint64_t now_ns, next_number;
	uint64_t next;  // the place of the next row
	uint64_t known; // rows before it are there
	// times: samples before the first are there; the second is one after the last that was
	// taken
	uint64_t known_rss, last_rss;
	// The epoch.
	struct rowset *rowset;
	// of now_steady_ns, both
	uint64_t took_ns;             // how long it took to send the last one
	uint64_t epoch_ns;            // when it began
	uint64_t ended, picture_rows; // rows in it; and in the last picture
	bool changed, final, failed;
	bool whole;     // all of it is there
	struct err err; // why it failed
	// Sending.
	struct rowset_receiver receiver;
	bool picture; // what is sent is of a picture
	// from 1, below TABLES_GENERATIONS
	uint64_t generation;                  // of pictures
	unsigned parts[ROWSET_TABLES];        // batches of a picture so far, and
	unsigned parts_before[ROWSET_TABLES]; // of the last one
	uint32_t counted[ROWSET_TABLES]; // rows of a table that were sent, of those that only grow
	unsigned in_table;               // batches of it in this epoch
	struct native native;
	// of the statement that is made, room for the next one
	struct str sql, answer;
	struct str records; // of blocks that are sent, and are to be recorded
	// numbers of parts with commas, as SQL takes them
	struct str stale, kept, last_kept; // parts of the present picture, and of the one before
	uint64_t stale_rows;               // of pictures of before
	bool told_away;                    // that the server is
};

void push_live_send_init(struct push_live *live);

// Make the tables.
bool push_live_send_tables(struct push_live *live, struct err *err);

// What is there already. `whole`: all of it.
bool push_live_send_known(struct push_live *live, struct err *err);

// Send what is not there of the present epoch, and record it.
bool push_live_send_epoch(struct push_live *live, struct err *err);

void push_live_send_fini(struct push_live *live);
