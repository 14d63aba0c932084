// index_feed: collects steps into batches and has them stored by another thread.
//
//     index_feed_start
//       index_feed_at        when, and of which event, the next steps are
//       index_feed_begin, _end, _nothing, _exit
//     index_feed_finish      what is left is stored; the thread ends
#pragma once

#include "engine/index/index_store.h"
#include "os/worker.h"

enum { INDEX_FEED_BATCHES = 3 };

struct index_feed {
	struct index_store *store; // borrowed; the thread's, while it runs
	struct index_batch batches[INDEX_FEED_BATCHES];
	struct index_batch *open; // the one that is being filled
	uint64_t step;            // number of the next step
	uint64_t time_ns, number; // of the next step
	uint64_t last_time_ns, last_number;
	uint32_t full; // steps in a batch

	struct worker worker;
	unsigned given, taken; // batches handed over, batches stored
	uint64_t store_bytes;  // of memory that the store uses
};

// The caller begins with step 0, which does nothing.
void index_feed_start(struct index_feed *feed, struct index_store *store);
void index_feed_finish(struct index_feed *feed);

// Wait until all that was handed over is stored: nobody touches the store then.
void index_feed_rest(struct index_feed *feed);

// Bytes of memory that the store uses, a moment ago. Any time while it is fed: it takes a lock, but
// waits for no batch.
uint64_t index_feed_bytes(struct index_feed *feed);

// UINT64_MAX: of no event.
static inline void index_feed_at(struct index_feed *feed, uint64_t time_ns, uint64_t number)
{
	feed->time_ns = time_ns;
	feed->number = number;
}

// Each is one step; its number is returned. `begin` is a step, and not 0. `address` is kept of long
// lifetimes alone. An orphan is a free of an address where nothing was known to live; `nothing` is
// a step that holds an event's place; an exit is a step of its own, in which nothing else happens.
// A call may wait until one of the batches is stored: the store is slower.
uint64_t index_feed_begin(struct index_feed *feed, uint32_t cell);
uint64_t index_feed_end(struct index_feed *feed, uint32_t cell, uint64_t begin, uint64_t address);
uint64_t index_feed_orphan(struct index_feed *feed, uint32_t cell);
uint64_t index_feed_nothing(struct index_feed *feed);
uint64_t index_feed_exit(struct index_feed *feed, process_id process);
