// Two things are taken off each figure: what the driver takes when it makes no call (`dry`, a run
// of the same plan without an allocator's work), and what it had resident before its first call.
// For example with 1200 ms of CPU in a run and 200 ms in the dry one, 1000 ms are the allocator's;
// with 9 MiB private at a sample and 1 MiB at the first of the dry run, 8 MiB. What comes out
// below 0 is noise, and is 0.
#include "replay/replay_table.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"

#include <math.h>

const char *const replay_table_touches[] = { "none", "first", "all", NULL };
_Static_assert(sizeof replay_table_touches / sizeof *replay_table_touches == REPLAY_RING_ALL + 2,
	       "a word each, and the end");

static const char *const touched[] = {
	[REPLAY_RING_NONE] = "blocks are not touched: what is resident is what allocators need for "
			     "themselves",
	[REPLAY_RING_FIRST] =
		"the first byte of each block is touched; the trace does not say which "
		"the program touched",
	[REPLAY_RING_ALL] = "each block is touched as a whole; the trace does not say what the "
			    "program touched",
};

// ---- what came out ----

struct figures {
	uint64_t cpu_ns, faults;
	uint64_t peak_bytes, peak_ns, peak_live; // resident at most, when, and what was live then
	uint64_t end_bytes, end_live;
};

// Not below 0: a run may be quicker than the dry one by chance.
static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

// Less what the driver had before its first call, which the dry run's first sample says.
static uint64_t resident_at(const struct replay_table *table, const struct replay_run *run,
			    uint32_t sample)
{
	ASSERT(sample < table->plan->samples_count);
	return less(run->samples[sample].private_bytes, table->dry->samples[0].private_bytes);
}

// The peak is that of the samples: between two it may have been higher.
static struct figures figures_of(const struct replay_table *table, const struct replay_run *run)
{
	const struct replay_plan *plan = table->plan;
	struct figures figures = {
		.cpu_ns = less(run->cpu_ns, table->dry->cpu_ns),
		.faults = less(run->minor_faults, table->dry->minor_faults),
	};

	for (uint32_t i = 0; i < plan->samples_count; i++) {
		uint64_t bytes = resident_at(table, run, i);

		if (bytes > figures.peak_bytes) {
			figures.peak_bytes = bytes;
			figures.peak_ns = plan->samples[i].time_ns;
			figures.peak_live = plan->samples[i].live_bytes;
		}
		figures.end_bytes = bytes;
		figures.end_live = plan->samples[i].live_bytes;
	}
	return figures;
}

// Of nothing it is 0.
static double part(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0;
}

// ---- text ----

static void name_of(const struct replay_table_row *row, struct str *name)
{
	str_clear(name);
	str_format(name, "%s%s%s", row->allocator, row->setting ? " " : "",
		   row->setting ? row->setting : "");
}

// A line of the table: what its calls took in all and each, and what was resident at its peak, by
// itself and for each byte that lived then.
static void write_row(const struct replay_table *table, const struct replay_table_row *row,
		      struct paper *paper, unsigned width)
{
	struct figures figures = figures_of(table, row->run);
	struct str name = { 0 }, line = { 0 };

	name_of(row, &name);
	paper_field(paper, PAPER_PLAIN, str_get(&name), width, false);
	str_format(&line, "%10s %8.1f %11s %7.2f %11s %12s\n", STR_DURATION(figures.cpu_ns),
		   (double)figures.cpu_ns / (double)(row->run->events ? row->run->events : 1),
		   STR_BYTES(figures.peak_bytes), part(figures.peak_bytes, table->plan->peak_bytes),
		   STR_BYTES(figures.end_bytes), STR_COUNT(figures.faults));
	paper_text(paper, PAPER_PLAIN, str_get(&line));
	STR_FINI(&name, &line);
}

static void write_head(const struct replay_table *table, struct paper *paper)
{
	const struct replay_plan *plan = table->plan;
	double ns = (double)table->dry->cpu_ns / (double)(plan->calls ? plan->calls : 1);
	uint64_t interrupted = 0;

	paper_format(paper, PAPER_PLAIN, "%s calls%s, at most %s live in %s blocks; %s\n",
		     STR_COUNT(plan->calls), plan->one_thread ? " in one thread" : "",
		     STR_BYTES(plan->peak_bytes), STR_COUNT(plan->peak_count),
		     touched[table->touch]);
	if (plan->unknown_frees)
		paper_format(paper, PAPER_PLAIN,
			     "left out: %s frees of blocks that the trace does not know\n",
			     STR_COUNT(plan->unknown_frees));
	paper_format(paper, PAPER_DIM,
		     "times are processor time less the driver's own %.0f ns a call; TIME and "
		     "ns/CALL have the touching, BY SIZE has not: means of one call of %d, ± their "
		     "standard error\n",
		     ns, REPLAY_RING_TIMED);
	for (size_t i = 0; i < table->count; i++)
		interrupted += table->rows[i].run->interrupted;
	if (interrupted)
		paper_format(paper, PAPER_DIM,
			     "left out of BY SIZE: %s calls that another program interrupted\n",
			     STR_COUNT(interrupted));
	paper_text(paper, PAPER_PLAIN, "\n");
}

// The standard error of a mean of so many, from their sum and the sum of their squares.
static double error_of(uint64_t count, uint64_t sum, double squares)
{
	double mean = part(sum, count), n = (double)count;
	double variance = count > 1 ? (squares - n * mean * mean) / (n - 1) : 0;

	return variance > 0 ? sqrt(variance / n) : 0;
}

// A mean and its error. Of one call that is not known, and of none there is no mean.
static void write_mean(struct paper *paper, uint64_t count, uint64_t sum, double squares)
{
	if (count > 1)
		paper_format(paper, PAPER_PLAIN, "%8.0f ±%-6.0f", part(sum, count),
			     error_of(count, sum, squares));
	else if (count)
		paper_format(paper, PAPER_PLAIN, "%8.0f        ", part(sum, count));
	else
		paper_format(paper, PAPER_PLAIN, "%8s        ", "-");
}

// Times are means of the calls that were timed. A class goes from a power of two to the next; the
// first begins with 0. Its allocations are counted in the first run, as all runs have one plan.
static void write_class(const struct replay_table *table, struct paper *paper, unsigned width,
			unsigned which)
{
	const struct replay_ring_class *first = &table->rows[0].run->classes[which];

	ASSERT(which < REPLAY_RING_CLASSES);
	paper_format(paper, PAPER_PLAIN, "%s to %s, %s allocations\n",
		     STR_BYTES(which ? UINT64_C(1) << which : 0), STR_BYTES(UINT64_C(2) << which),
		     STR_COUNT(first->count));
	for (size_t i = 0; i < table->count; i++) {
		const struct replay_ring_class *class = &table->rows[i].run->classes[which];
		struct str name = { 0 };

		name_of(&table->rows[i], &name);
		paper_text(paper, PAPER_PLAIN, "  ");
		paper_field(paper, PAPER_PLAIN, str_get(&name), width, false);
		write_mean(paper, class->timed, class->timed_ns, class->timed_squares);
		write_mean(paper, class->freed, class->freed_ns, class->freed_squares);
		if (class->usable_asked > 0)
			paper_format(paper, PAPER_PLAIN, "%9.2f\n",
				     part(class->usable_bytes, class->usable_asked));
		else
			paper_text(paper, PAPER_PLAIN, "        -\n");
		str_fini(&name);
	}
}

// Of the classes of sizes with most allocations what a call takes, and what is given beyond what
// was asked for. One call of some is measured, so the others have nothing to show.
static void write_classes(const struct replay_table *table, struct paper *paper, unsigned width)
{
	const struct replay_ring_class *classes = table->rows[0].run->classes;
	uint64_t all = 0;

	ASSERT(table->count > 0);
	for (unsigned i = 0; i < REPLAY_RING_CLASSES; i++)
		all += classes[i].count;
	paper_text(paper, PAPER_BOLD, "\nBY SIZE");
	paper_field(paper, PAPER_BOLD, "", width - 6, false);
	paper_text(paper, PAPER_BOLD, "ns/BEGIN          ns/END         x ASKED\n");
	for (unsigned i = 0; i < REPLAY_RING_CLASSES; i++)
		// A class with less than a hundredth of the allocations is no reason to take
		// another allocator.
		if (classes[i].count >= all / 100 + 1 && classes[i].timed)
			write_class(table, paper, width, i);
}

// The first column is as wide as the longest name of an allocator with its setting.
void replay_table_text(const struct replay_table *table, struct paper *paper)
{
	unsigned width = 12;

	ASSERT(table->dry && table->plan);
	for (size_t i = 0; i < table->count; i++) {
		struct str name = { 0 };

		name_of(&table->rows[i], &name);
		if (name.length + 1 > width)
			width = (unsigned)name.length + 1;
		str_fini(&name);
	}
	write_head(table, paper);
	paper_field(paper, PAPER_BOLD, "ALLOCATOR", width, false);
	paper_text(paper, PAPER_BOLD,
		   "      TIME  ns/CALL    RESIDENT  x LIVE      AT END  PAGE FAULTS\n");
	for (size_t i = 0; i < table->count; i++)
		write_row(table, &table->rows[i], paper, width);
	write_classes(table, paper, width);
}

// ---- JSON ----

// The same moments in every run, so that curves of several can be laid over each other.
static void write_samples(const struct replay_table *table, const struct replay_run *run,
			  struct json *json)
{
	json_kv_array(json, "samples");
	for (uint32_t i = 0; i < table->plan->samples_count; i++) {
		json_object_begin(json);
		json_kv_u64(json, "time_ns", table->plan->samples[i].time_ns);
		json_kv_u64(json, "event", table->plan->samples[i].number);
		json_kv_u64(json, "live_bytes", table->plan->samples[i].live_bytes);
		json_kv_u64(json, "live_count", table->plan->samples[i].live_count);
		json_kv_u64(json, "resident_bytes", resident_at(table, run, i));
		json_kv_u64(json, "cpu_ns", run->samples[i].cpu_ns);
		json_object_end(json);
	}
	json_array_end(json);
}

// A mean of nothing is null: of a class in which no call was timed, or none freed.
static void write_json_classes(const struct replay_run *run, struct json *json)
{
	json_kv_array(json, "classes");
	for (unsigned i = 0; i < REPLAY_RING_CLASSES; i++) {
		const struct replay_ring_class *class = &run->classes[i];

		if (!class->count && !class->freed)
			continue;
		json_object_begin(json);
		json_kv_u64(json, "size_from", i ? UINT64_C(1) << i : 0);
		json_kv_u64(json, "allocations", class->count);
		json_kv_u64(json, "asked_bytes", class->bytes);
		json_key(json, "given_for_asked");
		if (class->usable_asked > 0)
			json_double(json, part(class->usable_bytes, class->usable_asked));
		else
			json_null(json);
		json_kv_u64_if(json, "begin_ns", class->timed > 0,
			       class->timed ? class->timed_ns / class->timed : 0);
		json_kv_u64_if(
			json, "begin_error_ns", class->timed > 1,
			(uint64_t)(error_of(class->timed, class->timed_ns, class->timed_squares) +
				   0.5));
		json_kv_u64_if(json, "end_ns", class->freed > 0,
			       class->freed ? class->freed_ns / class->freed : 0);
		json_kv_u64_if(
			json, "end_error_ns", class->freed > 1,
			(uint64_t)(error_of(class->freed, class->freed_ns, class->freed_squares) +
				   0.5));
		json_object_end(json);
	}
	json_array_end(json);
}

static void write_run(const struct replay_table *table, const struct replay_table_row *row,
		      struct json *json)
{
	struct figures figures = figures_of(table, row->run);

	ASSERT(figures.peak_bytes >= figures.end_bytes);
	json_object_begin(json);
	json_kv_string(json, "allocator", row->allocator);
	json_kv_string(json, "setting", row->setting);
	json_kv_string(json, "library", row->run->library);
	json_kv_u64(json, "calls", row->run->events);
	json_kv_u64(json, "failed", row->run->failed);
	json_kv_u64(json, "cpu_ns", figures.cpu_ns);
	json_kv_u64(json, "interrupted", row->run->interrupted);
	json_kv_u64(json, "page_faults", figures.faults);
	json_kv_u64(json, "peak_resident_bytes", figures.peak_bytes);
	json_kv_u64(json, "peak_ns", figures.peak_ns);
	json_kv_u64(json, "peak_live_bytes", figures.peak_live);
	json_kv_u64(json, "end_resident_bytes", figures.end_bytes);
	json_kv_u64(json, "end_live_bytes", figures.end_live);
	write_samples(table, row->run, json);
	write_json_classes(row->run, json);
	json_object_end(json);
}

void replay_table_json(const struct replay_table *table, struct sink *sink)
{
	const struct replay_plan *plan = table->plan;
	struct json json;

	json_begin(&json, sink, true, "tidemark-replay-1");
	json_kv_bool(&json, "complete", reader_complete(table->asked->reader));
	json_kv_array(&json, "warnings");
	for (size_t i = 0; i < table->asked->warnings_count; i++)
		json_string(&json, table->asked->warnings[i]);
	json_array_end(&json);
	json_kv_u64(&json, "process", reader_process(plan->reader, plan->process)->pid);
	json_kv_u64(&json, "process_id", plan->process);
	json_kv_string(&json, "touch", replay_table_touches[table->touch]);
	json_kv_bool(&json, "one_thread", plan->one_thread);
	json_kv_u64(&json, "calls", plan->calls);
	json_kv_u64(&json, "unknown_frees", plan->unknown_frees);
	json_kv_u64(&json, "failed", plan->failed);
	json_kv_u64(&json, "peak_live_bytes", plan->peak_bytes);
	json_kv_u64(&json, "peak_live_count", plan->peak_count);
	json_kv_u64(&json, "driver_cpu_ns", table->dry->cpu_ns);
	json_kv_u64(&json, "driver_took_ns", table->dry->took_ns);
	json_kv_array(&json, "runs");
	for (size_t i = 0; i < table->count; i++)
		write_run(table, &table->rows[i], &json);
	json_array_end(&json);
	json_end(&json);
}

// ---- the picture ----

// A curve for each run, and one of what the program asked for, which no allocator can go below.
void replay_table_chart(const struct replay_table *table, struct chart *chart)
{
	const struct replay_plan *plan = table->plan;
	struct str name = { 0 };
	struct chart_curve *curve;

	chart->x = (struct chart_axis){ .label = "time", .unit = CHART_TIME };
	chart->y = (struct chart_axis){ .label = "resident memory", .unit = CHART_BYTES };
	chart->style = CHART_LINES;
	str_add(&name, "Replay: resident memory of allocators");
	chart->title = str_take(&name);
	str_add(&name, touched[table->touch]);
	chart->subtitle = str_take(&name);
	for (size_t i = 0; i < table->count; i++) {
		name_of(&table->rows[i], &name);
		curve = chart_add_curve(chart, str_get(&name));
		for (uint32_t at = 0; at < plan->samples_count; at++)
			chart_add_point(curve, (double)plan->samples[at].time_ns,
					(double)resident_at(table, table->rows[i].run, at));
	}
	curve = chart_add_curve(chart, "live, as asked for");
	for (uint32_t at = 0; at < plan->samples_count; at++)
		chart_add_point(curve, (double)plan->samples[at].time_ns,
				(double)plan->samples[at].live_bytes);
	str_fini(&name);
}
