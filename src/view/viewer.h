// viewer: a trace, and perhaps a second one, open to be asked by the page (docs/viewer.md).
//
//     viewer_open
//       viewer_answer     from any thread, any number at once
//     viewer_stop         those who wait are sent away, and what is being answered ends soon
//     viewer_close        nobody asks any more
//
// Queues (query_queue.h), so that what takes long does not hold up what is quick. Questions about
// windows go to `sums`, whose answers take milliseconds; curves of a selection, and what looks at
// each allocation of a window, to `curves`; what goes through the recording, or looks for shapes in
// it, to `replays`. These three are one trace and one index. `other` is the second trace. Where two
// are needed, they are entered in this order: replays, other.
//
// Where memory is short for so many stacks, `curves` and `replays` answer in turn.
//
// What `sums` does not answer is kept (kept_answers.h): who asks the same again waits for nobody.
//
// A question that finds the index damaged has all opened again, which builds it: others end first,
// and who comes meanwhile waits. Then it is asked once more.
//
// For example the page asks for the timeline (sums), for the peaks of the whole trace (replays),
// and for sums of a window (sums) while it waits for the peaks: the sums are there in milliseconds,
// however long the others take.
#pragma once

#include "os/identity.h"
#include "view/kept_answers.h"
#include "view/query_queue.h"
#include "view/refusal.h"

#include <pthread.h>
#include <stdatomic.h>

struct viewer_options {
	const char *path;        // borrowed, as all of these
	const char *other;       // the second trace; NULL: none
	const char *source_root; // where sources are looked for too; NULL: nowhere else
	const char *version;     // of the program
	struct symbols_options symbols;
	struct window_options window; // memory is for all queues together
};

struct viewer {
	struct viewer_options options;
	struct query_queue sums, curves, replays, other;
	struct identity identities[2];
	bool html_export_file, scrubbed; // what the page gets to know: see html_export.h
	const char *const *coarse;       // sentences; borrowed
	size_t coarse_count;
	pthread_mutex_t lock; // of what follows
	unsigned asked;       // queues of the first trace that answer
	bool in_turn;         // two that take long do not fit in memory: `curves` and `replays`
	bool turn_taken;      // answer one after the other, and one of them does
	pthread_cond_t moved;
	unsigned inside;      // questions
	unsigned opened;      // so often
	bool opening, closed; // no question comes in; there are no queues
	atomic_bool stopping;
	struct err lost;          // why there are none any more
	struct kept_answers kept; // of all queues but `sums`
};

// Builds the indexes that are missing.
bool viewer_open(struct viewer *viewer, const struct viewer_options *options, struct err *err);
void viewer_stop(struct viewer *viewer);
void viewer_close(struct viewer *viewer); // accepts { 0 }

// What the server sends. viewer_reply_fini frees it.
struct viewer_reply {
	enum refusal refusal;
	struct str body;     // the error's, if it is one
	bool is_text;        // else JSON
	uint64_t first_line; // of text: its number in the file
};

// `path` is "/api/…"; `query` what is after the '?', as it was sent (NULL: nothing). `gone` is
// that of query_queue_asker.
void viewer_answer(struct viewer *viewer, const char *path, const char *query,
		   bool (*gone)(void *context), void *context, struct viewer_reply *reply);
void viewer_reply_fini(struct viewer_reply *reply); // accepts { 0 }
