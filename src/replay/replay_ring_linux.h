// replay_ring_linux: what a replay and its driver share: a file in memory that both map.
//
//     header    the question, what came out, two semaphores
//     chunks    a ring of records: the replay fills one while the driver plays another
//     slots     where the driver keeps its blocks, by number. The file is sparse: as much of it
//               exists as there are blocks at one time
//
// The driver (replay_driver_linux.c) is a program of its own that links nothing but the C library,
// so that the allocator that is preloaded sees its calls alone. All memory of its own is in this
// file, or in stacks that are shared memory too: its private memory is the allocator's.
#pragma once

#include <semaphore.h>
#include <stdint.h>

enum {
	REPLAY_RING_CHUNKS = 8,
	REPLAY_RING_RECORDS = 8192, // of a chunk
	REPLAY_RING_SAMPLES = 1024,
	REPLAY_RING_CLASSES = 48, // by the binary logarithm of the size
	REPLAY_RING_TIMED = 61,   // one call of so many is timed: a prime, as calls come in turns
	REPLAY_RING_THREADS = 4096,
};

#define REPLAY_RING_SLOTS (UINT64_C(1) << 31)

// What the driver does for a record. ALLOC to ALIGNED put a block into the slot, REALLOC exchanges
// it, FREE empties it.
enum replay_ring_op {
	REPLAY_RING_END,
	REPLAY_RING_ALLOC,
	REPLAY_RING_CALLOC,
	REPLAY_RING_ALIGNED,
	REPLAY_RING_REALLOC,
	REPLAY_RING_FREE,
	REPLAY_RING_THREAD_END,
	REPLAY_RING_SAMPLE, // `slot`: which sample
};

// 16 bytes: a chunk is 128 KiB.
struct replay_ring_record {
	uint32_t slot;
	uint16_t thread; // who makes the call
	uint8_t op;      // enum replay_ring_op
	uint8_t align_log2;
	uint64_t size;
};

// A block that the driver holds: as the allocator gave it, and as large as it was asked for. NULL:
// none, or the call failed.
struct replay_ring_slot {
	void *block;
	uint64_t size;
};

// What of a block is written to when it begins: nothing, its first byte, or all of it. Resident
// memory is of what is touched alone, so this says how much of the program's use is imitated.
enum replay_ring_touch { REPLAY_RING_NONE, REPLAY_RING_FIRST, REPLAY_RING_ALL };

struct replay_ring_sample {
	uint64_t private_bytes; // resident and of nobody else
	uint64_t cpu_ns;        // so far, without what samples cost
};

// Of blocks of 2^n to 2^(n + 1) - 1 bytes; those of 0 and 1 byte are class 0.
struct replay_ring_class {
	uint64_t count, bytes;               // allocations, and what was asked for
	uint64_t usable_count, usable_bytes; // of those that were measured: what was given …
	uint64_t usable_asked;               // … and what they had asked for
	uint64_t timed, timed_ns;            // calls that begin a block
	uint64_t freed, freed_ns;            // calls that end one
	double timed_squares, freed_squares; // of the ns of each
};

struct replay_ring {
	// The question.
	uint32_t touch; // enum replay_ring_touch
	uint32_t dry;   // no call is made, and nothing touched: what the driver itself costs
	// The answer.
	// 0 until the driver has played the last record: one that ended earlier has no answer.
	uint32_t done;
	uint32_t padding;
	uint64_t events, failed;
	uint64_t cpu_ns, minor_faults, major_faults;
	uint64_t clock_ns;    // what a look at the clock costs
	uint64_t interrupted; // calls that were to be timed, and gave the processor away meanwhile
	char library[256];    // that malloc is in
	struct replay_ring_sample samples[REPLAY_RING_SAMPLES];
	struct replay_ring_class classes[REPLAY_RING_CLASSES];
	// How many chunks are filled and not yet played, and how many may be filled.
	sem_t full, empty; // chunks
	struct replay_ring_record records[REPLAY_RING_CHUNKS][REPLAY_RING_RECORDS];
};

// Where slots begin in the file: after the ring, on a page of their own.
#define REPLAY_RING_SLOTS_AT ((sizeof(struct replay_ring) + 0xffff) & ~(uint64_t)0xffff)
