// How many events a second the collector takes from lanes to the trace, on one core.
//
//     collect_bench [EVENTS]
//     TIDEMARK_APART=always collect_bench [EVENTS]     on two: blocks are written by a thread
//
// A guest in the same process fills its lanes; only the collector's part is timed: decode, intern,
// merge, append and compress. With a thread the first figures are of the collector's own, and what
// the other takes for an event is after them: on a core of its own it keeps up if that is less.
// Prints a line for each kind of stream: a program that makes fewer events a second never has to
// wait for the collector, if that has a core. 64 lanes are what 64 busy threads look like from
// there. The last line is of a million distinct stacks; its memory is the collector's, guest's ring
// and trace included.
#include "test/unit/fake_pipeline.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { DEPTH = 38, FRAMES = 4096 };

struct bench {
	struct pipeline pipeline;
	uint32_t stack[DEPTH];
	uint64_t random;
	uint64_t blocks[PIPELINE_LANES_MAX + 1]; // allocated so far, by lane
	uint64_t busy_ns, beside_ns;             // of this thread, of others
};

static uint64_t next_random(struct bench *bench)
{
	bench->random ^= bench->random << 13;
	bench->random ^= bench->random >> 7;
	bench->random ^= bench->random << 17;
	return bench->random;
}

// Processor time: others may use the machine, too.
static uint64_t spent_ns(clockid_t clock)
{
	struct timespec spent;

	clock_gettime(clock, &spent);
	return (uint64_t)spent.tv_sec * 1000000000 + (uint64_t)spent.tv_nsec;
}

// What the collector does when the bell rings.
static void collect(struct bench *bench)
{
	uint64_t all_ns = spent_ns(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t own_ns = spent_ns(CLOCK_THREAD_CPUTIME_ID);

	pipeline_collect(&bench->pipeline);
	writer_events_kept(bench->pipeline.writer); // waits for the thread
	own_ns = spent_ns(CLOCK_THREAD_CPUTIME_ID) - own_ns;
	bench->busy_ns += own_ns;
	bench->beside_ns += spent_ns(CLOCK_PROCESS_CPUTIME_ID) - all_ns - own_ns;
}

static bool room(const struct fake_lane *lane)
{
	uint64_t tail = atomic_load(&lane->guest->lanes[lane->number].tail);

	return lane->head + 4096 < tail + lane->ring_bytes / 2;
}

// The same block, allocated and freed from the same place, each thread in an arena of its own.
static void put_same(struct bench *bench, struct fake_lane *lane)
{
	bool first = lane->head == 0;
	uint64_t address = 0x5000 + ((uint64_t)lane->number << 24);

	fake_write(lane, &(struct fake_event){ .type = LANE_MALLOC,
					       .address = address,
					       .size = 64,
					       .owner = first,
					       .edit = first,
					       .push = first ? DEPTH : 0,
					       .frames = bench->stack,
					       .time_ns = fake_now(&bench->pipeline.guest) });
	fake_write(lane, &(struct fake_event){ .type = LANE_FREE, .address = address });
}

// As a compiler does: a few new inner frames with each allocation, blocks freed much later.
static void put_varied(struct bench *bench, struct fake_lane *lane)
{
	uint64_t random = next_random(bench);
	uint32_t push = 1 + (uint32_t)(random % 6), keep = DEPTH - push;
	bool first = lane->head == 0;
	uint64_t block = bench->blocks[lane->number]++;
	uint64_t arena = 0x5555000000 + ((uint64_t)lane->number << 26);
	uint64_t address = arena + block % 500000 * 96;

	if (first) {
		push = DEPTH;
		keep = 0;
	}
	for (uint32_t i = 0; i < push; i++)
		bench->stack[i] = 1 + (uint32_t)__builtin_ctzll(random >> (8 + 7 * i) | 0x80) +
				  64 * (keep + i); // the first callee half of the time, and so on
	fake_write(lane, &(struct fake_event){ .type = LANE_MALLOC,
					       .address = address,
					       .size = 16 + random % 200,
					       .edit = true,
					       .keep = keep,
					       .push = push,
					       .frames = bench->stack,
					       .owner = block % 500000 % 42 == 0,
					       .time_ns = fake_now(&bench->pipeline.guest) });
	if (block > 1000)
		fake_write(lane, &(struct fake_event){ .type = LANE_FREE,
						       .address = arena + (block - random % 1000) %
										  500000 * 96 });
}

// Threads that take each other's pages: every eighth event is on one that all use.
static void put_shared(struct bench *bench, struct fake_lane *lane)
{
	static uint64_t owner;
	static uint32_t holder;
	uint64_t random = next_random(bench);
	bool common = random % 8 == 0;
	uint64_t page = common ? 1 : 64 * lane->number + random % 32;
	bool first = lane->head == 0;
	bool taken = common && holder != lane->number;

	if (taken) {
		owner++;
		holder = lane->number;
	}
	fake_write(lane, &(struct fake_event){ .type = random & 1024 ? LANE_MALLOC : LANE_FREE,
					       .address = page * 4096 + random % 64 * 64,
					       .size = 64,
					       .owner = taken ? owner : 0,
					       .edit = first,
					       .push = first ? DEPTH : 0,
					       .frames = bench->stack,
					       .time_ns = fake_now(&bench->pipeline.guest) });
}

// Each allocation from a stack that was never seen: six new inner frames.
static void put_distinct(struct bench *bench, struct fake_lane *lane)
{
	bool first = lane->head == 0;
	uint64_t block = bench->blocks[lane->number]++, random = next_random(bench);
	uint32_t keep = first ? 0 : DEPTH - 6;

	for (uint32_t i = 0; i < DEPTH - keep; i++)
		bench->stack[i] = 1 + (uint32_t)(random >> 9 * i % 52) % (FRAMES - 1);
	fake_write(lane, &(struct fake_event){ .type = LANE_MALLOC,
					       .address = 0x5555000000 + block * 96,
					       .size = 80,
					       .edit = true,
					       .keep = keep,
					       .push = DEPTH - keep,
					       .frames = bench->stack,
					       .owner = block % 42 == 0,
					       .time_ns = fake_now(&bench->pipeline.guest) });
	fake_write(lane,
		   &(struct fake_event){ .type = LANE_FREE, .address = 0x5555000000 + block * 96 });
}

static void measure(const char *name, uint32_t lanes,
		    void (*put)(struct bench *bench, struct fake_lane *lane), uint64_t events)
{
	struct bench *bench = mem_alloc(1, sizeof *bench);
	struct rusage usage;
	uint64_t count;
	double seconds;

	pipeline_open(&bench->pipeline, lanes, FRAMES, 0);
	bench->random = 88172645463325252;
	for (uint32_t i = 0; i < DEPTH; i++)
		bench->stack[i] = 1 + i;
	while (writer_events_count(bench->pipeline.writer) < events) {
		bool full = false;

		for (uint32_t round = 0; !full; round++) {
			struct fake_lane *lane = &bench->pipeline.lanes[1 + round / 16 % lanes];

			full = !room(lane);
			put(bench, lane);
		}
		for (uint32_t i = 1; i <= lanes; i++)
			fake_publish(&bench->pipeline.lanes[i]);
		collect(bench);
	}
	count = writer_events_count(bench->pipeline.writer);
	seconds = (double)bench->busy_ns / 1e9;
	getrusage(RUSAGE_SELF, &usage);
	printf("%-8s %u lane%s  %6.1f M events/s  %5.1f ns each, %5.1f beside  %8zu stacks  "
	       "%5.2f bytes each  %4ld MB\n",
	       name, lanes, lanes > 1 ? "s" : " ", (double)count / seconds / 1e6,
	       (double)bench->busy_ns / (double)count, (double)bench->beside_ns / (double)count,
	       bench->pipeline.trace_builder.interner.count,
	       (double)writer_bytes(bench->pipeline.writer) / (double)count,
	       usage.ru_maxrss / 1024);
	pipeline_close(&bench->pipeline);
	close(bench->pipeline.output_fd);
	mem_free(bench);
}

int main(int argc, char **argv)
{
	uint64_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;

	measure("same", 1, put_same, events);
	measure("varied", 1, put_varied, events);
	measure("same", 4, put_same, events);
	measure("shared", 4, put_shared, events);
	measure("same", 64, put_same, events);
	measure("varied", 64, put_varied, events);
	measure("shared", 64, put_shared, events);
	measure("distinct", 1, put_distinct, 2000000);
	return 0;
}
