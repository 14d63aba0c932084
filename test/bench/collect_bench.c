// How many events a second the collector takes from lanes to the trace, on one core.
//
//     collect_bench [EVENTS]
//
// A guest in the same process fills its lanes; only the collector's part is timed: decode, intern,
// merge, append and compress. Prints a line for each kind of stream.
#include "base/mem.h"
#include "collect/merge.h"
#include "collect/roster.h"
#include "test/unit/fake_guest.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { DEPTH = 38, FRAMES = 4096, LANES_MAX = 4 };

struct bench {
	struct tick tick;
	struct writer *writer;
	struct ledger ledger;
	struct roster roster;
	struct merge merge;
	struct image *image;
	struct fake_guest guest;
	struct fake_lane lanes[LANES_MAX + 1];
	uint32_t stack[DEPTH];
	uint64_t random;
	uint64_t blocks; // allocated so far
	uint64_t busy_ns;
	int output_fd;
};

static uint64_t next_random(struct bench *bench)
{
	bench->random ^= bench->random << 13;
	bench->random ^= bench->random >> 7;
	bench->random ^= bench->random << 17;
	return bench->random;
}

static void map_guest(struct bench *bench, const struct share *share)
{
	bench->guest.segment_fd = share->fd;
	bench->guest.segment = share->segment;
	bench->guest.lanes = share->lanes;
	bench->guest.frames = share->frames;
	bench->guest.clock = bench->tick.clock;
	bench->guest.frames_count = 1;
	for (uint32_t i = 0; i <= LANES_MAX; i++)
		fake_lane_open(&bench->lanes[i], &bench->guest, i);
	atomic_store(&bench->guest.segment->lanes_count, 2);
	for (uint32_t i = 1; i < FRAMES; i++)
		fake_frame(&bench->guest, 0x400000 + 16 * i, 0);
}

static void begin(struct bench *bench)
{
	static const struct collect_options options = { .report_fd = -1 };
	struct trace_info info = { .tool = (char *)"",
				   .host = (char *)"",
				   .command = (char *)"",
				   .directory = (char *)"",
				   .options = (char *)"",
				   .tick_ns = 100000 };
	struct door_arrival *arrival = mem_alloc(1, sizeof *arrival);
	struct err err = { 0 };

	memset(bench, 0, sizeof *bench);
	bench->random = 88172645463325252;
	bench->output_fd = memfd_create("trace", 0);
	bench->writer = writer_new(bench->output_fd, &info, &err);
	arrival->image = 1;
	arrival->pid = (uint32_t)getpid();
	arrival->pidfd = -1;
	arrival->exe = mem_copy_text("/bin/bench");
	arrival->hello.start = SEGMENT_START_EXEC;
	if (bench->writer == NULL || !tick_open(&bench->tick, 100000, TICK_ANY, &err) ||
	    !share_open(&arrival->share, 1, 0, &err)) {
		fprintf(stderr, "collect_bench: %s\n", err.text);
		exit(3);
	}
	ledger_init(&bench->ledger, bench->writer, &options);
	bench->ledger.fold_ns = 200000;
	roster_init(&bench->roster, &bench->ledger, &bench->tick, true);
	merge_init(&bench->merge, &bench->ledger, roster_special, &bench->roster);
	roster_arrive(&bench->roster, arrival);
	roster_settle(&bench->roster);
	bench->image = bench->roster.images;
	map_guest(bench, &bench->image->share);
}

static void end(struct bench *bench)
{
	for (uint32_t i = 0; i <= LANES_MAX; i++)
		fake_lane_close(&bench->lanes[i]);
	merge_fini(&bench->merge);
	roster_fini(&bench->roster);
	ledger_fini(&bench->ledger);
	writer_free(bench->writer);
	tick_close(&bench->tick);
	close(bench->output_fd);
}

// Processor time of this thread: others may use the machine, too.
static uint64_t spent_ns(void)
{
	struct timespec spent;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
	return (uint64_t)spent.tv_sec * 1000000000 + (uint64_t)spent.tv_nsec;
}

// What the collector does when the bell rings.
static void collect(struct bench *bench)
{
	uint64_t from_ns = spent_ns();

	image_look(bench->image);
	image_look_again(bench->image);
	image_decode(bench->image);
	merge_add(&bench->merge, bench->image);
	merge_run(&bench->merge);
	bench->busy_ns += spent_ns() - from_ns;
}

static bool room(const struct fake_lane *lane)
{
	uint64_t tail = atomic_load(&lane->guest->lanes[lane->number].tail);

	return lane->head + 4096 < tail + lane->ring_bytes / 2;
}

// The same block, allocated and freed from the same place.
static void put_same(struct bench *bench, struct fake_lane *lane)
{
	bool first = lane->head == 0;

	fake_write(lane, &(struct fake_event){ .type = LANE_MALLOC,
					       .address = 0x5000,
					       .size = 64,
					       .owner = first,
					       .edit = first,
					       .push = first ? DEPTH : 0,
					       .frames = bench->stack,
					       .time_ns = fake_now(&bench->guest) });
	fake_write(lane, &(struct fake_event){ .type = LANE_FREE, .address = 0x5000 });
}

// As a compiler does: a few new inner frames with each allocation, blocks freed much later.
static void put_varied(struct bench *bench, struct fake_lane *lane)
{
	uint64_t random = next_random(bench);
	uint32_t push = 1 + (uint32_t)(random % 6), keep = DEPTH - push;
	bool first = lane->head == 0;
	uint64_t block = bench->blocks++;
	uint64_t address = 0x5555000000 + block % 500000 * 96;

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
					       .time_ns = fake_now(&bench->guest) });
	if (block > 1000)
		fake_write(lane,
			   &(struct fake_event){ .type = LANE_FREE,
						 .address = 0x5555000000 + (block - random % 1000) %
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
					       .time_ns = fake_now(&bench->guest) });
}

static void measure(const char *name, uint32_t lanes,
		    void (*put)(struct bench *bench, struct fake_lane *lane), uint64_t events)
{
	struct bench *bench = mem_alloc(1, sizeof *bench);
	struct rusage usage;
	uint64_t count;
	double seconds;

	begin(bench);
	atomic_store(&bench->guest.segment->lanes_count, lanes + 1);
	for (uint32_t i = 0; i < DEPTH; i++)
		bench->stack[i] = 1 + i;
	while (writer_events_count(bench->writer) < events) {
		bool full = false;

		for (uint32_t round = 0; !full; round++) {
			struct fake_lane *lane = &bench->lanes[1 + round / 16 % lanes];

			full = !room(lane);
			put(bench, lane);
		}
		for (uint32_t i = 1; i <= lanes; i++)
			fake_publish(&bench->lanes[i]);
		collect(bench);
	}
	count = writer_events_count(bench->writer);
	seconds = (double)bench->busy_ns / 1e9;
	getrusage(RUSAGE_SELF, &usage);
	printf("%-8s %u lane%s  %6.1f M events/s  %5.1f ns each  %8zu stacks  %5.2f bytes each  "
	       "%4ld MB\n",
	       name, lanes, lanes > 1 ? "s" : " ", (double)count / seconds / 1e6,
	       (double)bench->busy_ns / (double)count, interner_count(&bench->ledger.interner),
	       (double)writer_bytes(bench->writer) / (double)count, usage.ru_maxrss / 1024);
	end(bench);
	mem_free(bench);
}

int main(int argc, char **argv)
{
	uint64_t events = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;

	measure("same", 1, put_same, events);
	measure("varied", 1, put_varied, events);
	measure("same", 4, put_same, events);
	measure("shared", 4, put_shared, events);
	return 0;
}
