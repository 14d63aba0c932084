// For example, with a limit of 3 %: in a tenth of a second a program used 100 ms, and in its
// threads 200,000 calls were recorded that took 60 ns each, as those did that were timed. That is
// 12 ms, and the collector used 10 ms: 22 ms to the other 88 are 25 %. After three such tenths it
// samples: log2 is 16, and one block in 64 KiB is recorded. In the next ten seconds 900 samples of
// 64 bytes stand for 900 * 1,024 calls, and as many frees: that would be 1.8 million calls at
// 110 ns, 0.2 s of 10: 2 %. It goes on with samples, until it is 1.5 %.
#include "collect/overhead.h"

#include "os/now.h"

#include <string.h>

enum {
	JUDGE_NS = 100000000,     // between two judgements, and
	JUDGE_USED_NS = 20000000, // what the programs used at least
	OVERS = 3,                // in a row
	LOG2_FIRST = 16,          // 64 KiB,
	LOG2_STEP = 2,            // and where that is too much: four times as much,
	LOG2_MAX = 30,            // up to 1 GiB
	CALLS_MIN = 1000,         // that say what one costs
	CALL_NS = 60,             // where it cannot be measured
	SAMPLE_NS = 2000,
	OWN_CALL_NS = 200, // what a call makes us work, at most: we wake up without any, too
	OWN_SAMPLE_NS = 5000,
};

#define QUIET_NS UINT64_C(10000000000)

void overhead_init(struct overhead *overhead, struct process_list *process_list, struct tick *tick,
		   uint32_t limit)
{
	*overhead = (struct overhead){
		.process_list = process_list,
		.trace_builder = process_list->trace_builder,
		.tick = tick,
		.limit = limit,
		.own_ns = now_cpu_ns(),
		.call_ns = CALL_NS,
		.sample_ns = SAMPLE_NS,
		.price_ns = CALL_NS,
	};
}

static void note(struct overhead *overhead, uint32_t log2)
{
	trace_builder_note(overhead->trace_builder, TRACE_NOTE_SAMPLING, TRACE_NONE, TRACE_NONE,
			   log2, "");
}

static void begin_quiet(struct overhead *overhead)
{
	overhead->quiet_ns = tick_now(overhead->tick);
	overhead->quiet_used_ns = overhead->quiet_cost_ns = 0;
}

// That samples begin is written before anybody can know it, and that they have ended when everybody
// knows.
//
// `log2`: 0 records every call; else one block in 2^log2 bytes.
static void turn(struct overhead *overhead, uint32_t log2)
{
	ASSERT(log2 <= TRACE_SAMPLE_LOG2_MAX && overhead->limit > 0);
	if (log2 == overhead->log2)
		return;
	if (log2 != 0)
		note(overhead, log2);
	overhead->turned = true;
	overhead->ending = log2 == 0;
	overhead->log2 = log2;
	overhead->over = 0;
	begin_quiet(overhead);
	atomic_store(&overhead->tick->clock->turn, log2);
}

bool overhead_ask(struct overhead *overhead, uint32_t log2, char text[CONTROL_TEXT_MAX])
{
	bool known = log2 == OVERHEAD_AUTO || log2 <= TRACE_SAMPLE_LOG2_MAX;

	text[0] = 0;
	if (overhead->limit == 0 || !known) {
		strcpy(text,
		       known ? "it is not recorded with --max-overhead" : "an unknown distance");
		return false;
	}
	overhead->by_hand = log2 != OVERHEAD_AUTO;
	if (overhead->by_hand)
		turn(overhead, log2);
	return true;
}

static struct image_cost read_cost(const struct image *image)
{
	const struct segment_cost *cost = &image->share.segment->cost;
	struct image_cost now = {
		.calls = atomic_load(&cost->calls),
		.calls_timed = atomic_load(&cost->calls_timed),
		.calls_counts = atomic_load(&cost->calls_counts),
		.samples = atomic_load(&cost->samples),
		.samples_timed = atomic_load(&cost->samples_timed),
		.samples_counts = atomic_load(&cost->samples_counts),
		.left_out = atomic_load(&cost->left_out),
		.used_ns = peer_used_ns(image->pid),
	};

	return now;
}

// A guest can write what it wants: what falls has not changed.
static void add(uint64_t *sum, uint64_t *last, uint64_t now)
{
	*sum += now > *last ? now - *last : 0;
	*last = now > *last ? now : *last;
}

// What its process used before it was executed is not its own.
static void add_cost(struct overhead *overhead, struct image *image)
{
	struct image_cost now = read_cost(image), *sum = &overhead->since, *last = &image->cost;

	if (image->cost.used_ns == 0 && image->generation > 0)
		image->cost.used_ns = now.used_ns;
	add(&sum->calls, &last->calls, now.calls);
	add(&sum->calls_timed, &last->calls_timed, now.calls_timed);
	add(&sum->calls_counts, &last->calls_counts, now.calls_counts);
	add(&sum->samples, &last->samples, now.samples);
	add(&sum->samples_timed, &last->samples_timed, now.samples_timed);
	add(&sum->samples_counts, &last->samples_counts, now.samples_counts);
	add(&sum->left_out, &last->left_out, now.left_out);
	add(&sum->used_ns, &last->used_ns, now.used_ns);
}

// Nanoseconds of each, if any were timed.
//
// Counts of the processor become nanoseconds by the clock's rate, which has 32 bits behind the
// point.
static double mean_ns(const struct overhead *overhead, uint64_t counts, uint64_t timed,
		      double known)
{
	return timed > 0 && overhead->tick->rate > 0
		       ? (double)counts / (double)timed * (double)overhead->tick->rate /
				 4294967296.0
		       : known;
}

static double smaller(double a, double b)
{
	return a < b ? a : b;
}

// What it took, of ours too; and what the programs used without, at least a nanosecond.
//
// Our own time is bounded by what the calls can have caused: a collector that wakes up for nothing
// is not the program's overhead.
static double find_cost(struct overhead *overhead, double *used_ns)
{
	const struct image_cost *since = &overhead->since;
	uint64_t own_ns = now_cpu_ns();
	double guests, own = (double)(own_ns - overhead->own_ns);

	overhead->own_ns = own_ns;
	overhead->call_ns =
		mean_ns(overhead, since->calls_counts, since->calls_timed, overhead->call_ns);
	overhead->sample_ns =
		mean_ns(overhead, since->samples_counts, since->samples_timed, overhead->sample_ns);
	guests = (double)since->calls * overhead->call_ns +
		 (double)since->samples * overhead->sample_ns;
	*used_ns = (double)since->used_ns - guests;
	if (*used_ns < 1)
		*used_ns = 1;
	own = smaller(own,
		      (double)since->calls * OWN_CALL_NS + (double)since->samples * OWN_SAMPLE_NS);
	return guests + own;
}

// `limit` is in millionths: 30,000 is 3 %.
static bool is_over(const struct overhead *overhead, double cost_ns, double used_ns)
{
	return cost_ns * 1e6 > used_ns * overhead->limit;
}

// Whether each call may be recorded again. Of what was left out half are frees.
//
// For ten seconds it is added up what recording every call would have cost; below half of the limit
// it is done again.
static void judge_quiet(struct overhead *overhead, double used_ns, uint64_t now_ns)
{
	const struct image_cost *since = &overhead->since;
	double calls = (double)since->calls + 2 * (double)(since->samples + since->left_out);

	overhead->quiet_used_ns += used_ns;
	overhead->quiet_cost_ns += calls * overhead->price_ns;
	if (now_ns < overhead->quiet_ns + QUIET_NS)
		return;
	if (overhead->quiet_used_ns < JUDGE_USED_NS ||
	    !is_over(overhead, 2 * overhead->quiet_cost_ns, overhead->quiet_used_ns))
		turn(overhead, 0);
	else
		begin_quiet(overhead);
}

static void judge(struct overhead *overhead)
{
	const struct image_cost *since = &overhead->since;
	double used_ns, cost_ns = find_cost(overhead, &used_ns);

	if (overhead->log2 == 0 && since->calls >= CALLS_MIN)
		overhead->price_ns = cost_ns / (double)since->calls;
	overhead->over = is_over(overhead, cost_ns, used_ns) ? overhead->over + 1 : 0;
	if (overhead->over >= OVERS && overhead->log2 < LOG2_MAX)
		turn(overhead, overhead->log2 ? overhead->log2 + LOG2_STEP : LOG2_FIRST);
	else if (overhead->log2 > 0)
		judge_quiet(overhead, used_ns, tick_now(overhead->tick));
}

// Judged each tenth of a second, if the programs used 20 ms at least.
void overhead_pass(struct overhead *overhead, uint64_t now_ns)
{
	bool quiet;

	if (overhead->limit == 0)
		return;
	if (overhead->ending)
		note(overhead, 0);
	overhead->ending = false;
	if (now_ns < overhead->judge_ns)
		return;
	overhead->judge_ns = now_ns + JUDGE_NS;
	for (struct image *image = overhead->process_list->images; image; image = image->next)
		if (image->share.segment)
			add_cost(overhead, image);
	quiet = overhead->log2 > 0 && now_ns >= overhead->quiet_ns + QUIET_NS;
	if (overhead->by_hand || (overhead->since.used_ns < JUDGE_USED_NS && !quiet))
		return;
	judge(overhead);
	overhead->since = (struct image_cost){ 0 };
}
