// merge: the items of all lanes of all images, in one order.
//
// Order is by time, and within equal times (the time is a tick, many events share one) by who
// owned the addresses: an event waits until every event of an earlier ownership interval of its
// slot is delivered, whatever lane it is in. That agrees with everything the program itself could
// know; docs/notes/0001-order-without-clocks.md says why, and when a whole lane may go first.
//
// A pass works on two looks at the lanes' heads. Before the first look is what is delivered;
// between the two is what may be needed: an event that another thread published before something
// in the first part, though its own lane was looked at earlier. Such an event is delivered with
// all that is before it in its lane, and nothing else beyond the first look is.
//
// One thread. An image of which one lane alone has something costs no bookkeeping, and little costs
// a tick in which the lanes leave each other alone.
#pragma once

#include "collect/image.h"

// Called for items that are not events: marks, forks, starts. The item is the stream's first and
// stays until this returns true. False: the order cannot go on yet.
typedef bool merge_special(void *context, struct stream *stream, const struct lane_item *item);

struct merge {
	struct trace_builder *trace_builder; // borrowed
	merge_special *special;
	void *context;
	struct stream **heap; // by time of the first item; from 1
	size_t heap_count, heap_capacity;
	struct stream **pulls; // streams that wait for the next one
	size_t pulls_count, pulls_capacity;
	uint64_t last_ns;      // nothing later is delivered
	uint64_t order_breaks; // events that waited for each other
};

void merge_init(struct merge *merge, struct trace_builder *trace_builder, merge_special *special,
		void *context);
void merge_fini(struct merge *merge); // accepts { 0 }

// Put an image's streams in, after image_decode.
void merge_add(struct merge *merge, struct image *image);

// Deliver what is before the first look and not later than `last_ns`, in order, nor than a fork:
// the child's lanes were not looked at yet. False: held by a special item; call again.
bool merge_run(struct merge *merge, uint64_t last_ns);

// There is nothing left before the first look.
static inline bool merge_is_done(const struct merge *merge)
{
	return merge->heap_count == 0;
}
