// spares: segments for children that can say no hello (wire/segment.h, enum segment_claim).
//
// A process asks for a pool of them at the door. Each pass looks at their words. A spare that was
// claimed becomes an arrival, as if its process had said hello. Which process it is, the child
// cannot say, since it may see itself under another number: it is looked for in /proc. What is not
// there any more has ended. When an image is over, its spare is emptied and free again, if its
// process is known to have ended; else it is out of use. A pool is given back when its owner and
// all that claimed from it are over: nobody has it mapped then.
#pragma once

#include "collect/share.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct door;
struct process_list;
struct spare_pool;

// One segment. `pool` is the one that it is in.
struct spare {
	struct spare_pool *pool;
	struct share share; // all 0: out of use
	uint32_t image;     // the number of the image that has it, or that will be the next to
	bool taken;         // an image has it
};

// What one process asked for at once: `count` of `spares` are there.
struct spare_pool {
	struct spare_pool *next;
	uint32_t owner; // the image that asked
	uint32_t abi;   // of its program, and so of its children: 32 or 64 bits (segment_hello)
	uint32_t taken; // of the spares
	char *exe;      // owned: the path of its program
	size_t count;
	struct spare spares[SEGMENT_SPARES_AT_ONCE];
};

struct spares {
	struct door *door; // borrowed; NULL: it is closed
	struct spare_pool *pools;
	uint64_t claims; // how many there were
};

void spares_fini(struct spares *spares); // accepts { 0 }

// None of its spares is taken.
void spares_pool_free(struct spare_pool *pool); // NULL is allowed

// Takes the pool.
void spares_add(struct spares *spares, struct spare_pool *pool);

// Once a pass: the claims that are new arrive.
void spares_pass(struct spares *spares, struct process_list *process_list);

// The image that had the spare is over. `clean`: its process surely is, too. Without the door, or
// where its memory cannot be given back, it is out of use too. What is known of the image was
// copied before.
void spares_release(struct spares *spares, struct spare *spare, bool clean);
