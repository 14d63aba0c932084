// Plots over time: live bytes and blocks, rates, resident memory, page faults, the largest hole of
// the address space, what heaps have and what lives in them. All are curves with one value for each
// of the buckets that the window is cut into.
#include "report/draw/plot_parts.h"

#include "base/mem.h"
#include "base/str.h"
#include "engine/space/space.h"
#include "report/ask/moment_view.h"

// Where bucket `bucket` of `count` begins.
static double begin_of(const struct query_context *asked, size_t bucket, size_t count)
{
	ASSERT(count > 0);
	return (double)asked->from_ns +
	       (double)(asked->to_ns - asked->from_ns) * (double)bucket / (double)count;
}

// A level for each bucket, held until its end. It is the highest of the bucket, so that no peak is
// lost, however brief. The last point repeats the last level, as a bucket needs an end.
static void add_levels(struct chart *chart, const struct query_context *asked, const char *name,
		       const struct window_bucket *buckets, size_t count, bool blocks)
{
	struct chart_curve *curve = chart_add_curve(chart, name);
	double level = 0;

	for (size_t i = 0; i < count; i++) {
		level = (double)(blocks ? buckets[i].count_peak : buckets[i].bytes_peak);
		chart_add_point(curve, begin_of(asked, i, count), level);
	}
	chart_add_point(curve, (double)asked->to_ns, level);
}

// ---- live, blocks ----

// Without filters the index has the timeline ready; with some it is made from the cells.
static bool add_layer(struct chart *chart, struct query_context *asked, unsigned layer,
		      const char *name, const struct plot_options *options, struct err *err)
{
	struct window_bucket *buckets = mem_alloc(options->buckets, sizeof *buckets);
	struct window_query query = plot_query(asked, NULL, NULL);
	bool good;

	query.layers = layer;
	if (!query_context_selects_all(asked))
		good = window_series(asked->window, &query, 1, buckets, options->buckets, err);
	else
		good = window_timeline(asked->window, &query, buckets, options->buckets, err);
	if (good)
		add_levels(chart, asked, name, buckets, options->buckets,
			   options->kind == PLOT_BLOCKS);
	mem_free(buckets);
	return good;
}

// Each layer that the trace has, or the one that was asked for. With filters it is only the layer
// that they are asked of.
static bool add_layers(struct chart *chart, struct query_context *asked,
		       const struct plot_options *options, struct err *err)
{
	unsigned layers = asked->layers;

	if (!options->layer_given && !query_narrows(&asked->selection.query))
		layers |= window_facts(asked->window)->layers;
	if ((layers & WINDOW_HEAP) && !add_layer(chart, asked, WINDOW_HEAP, "heap", options, err))
		return false;
	return !(layers & WINDOW_VM) ||
	       add_layer(chart, asked, WINDOW_VM, "committed", options, err);
}

// One question for all curves: the buckets of group 0 come first, then those of group 1, and so on
// to those of the others.
static bool add_groups(struct chart *chart, struct query_context *asked,
		       const struct plot_options *options, struct err *err)
{
	struct plot_groups groups = { 0 };
	struct window_bucket *buckets = NULL;
	struct window_query query;
	size_t curves;
	char other[40];
	bool good = plot_groups_find(&groups, asked, options, err);

	curves = plot_groups_curves(&groups);
	if (good) {
		query = plot_groups_query(&groups);
		buckets = mem_alloc(curves * options->buckets + 1, sizeof *buckets);
		good = window_series(asked->window, &query, curves, buckets, options->buckets, err);
	}
	for (size_t i = 0; i < curves && good; i++)
		add_levels(chart, asked, plot_groups_name(&groups, i, other),
			   buckets + i * options->buckets, options->buckets,
			   options->kind == PLOT_BLOCKS);
	if (good)
		plot_groups_mark_rest(&groups, chart);
	mem_free(buckets);
	plot_groups_fini(&groups);
	return good;
}

bool plot_time_live(struct chart *chart, struct query_context *asked,
		    const struct plot_options *options, struct err *err)
{
	bool blocks = options->kind == PLOT_BLOCKS;

	chart->y = (struct chart_axis){ .label = blocks ? "live blocks" : "live",
					.unit = blocks ? CHART_COUNT : CHART_BYTES };
	return options->key == PLOT_BY_NOTHING ? add_layers(chart, asked, options, err)
					       : add_groups(chart, asked, options, err);
}

// ---- cumulative, rate ----

// A rate belongs to its bucket and a sum to the bucket's beginning, so their points differ by one.
static void add_flow(struct chart *chart, const struct query_context *asked, const char *name,
		     const struct window_flow *flows, const struct plot_options *options)
{
	struct chart_curve *curve = chart_add_curve(chart, name);
	size_t count = options->buckets;
	double seconds = (double)(asked->to_ns - asked->from_ns) / 1e9 / (double)count;
	double sum = 0, rate = 0;

	for (size_t i = 0; i < count; i++) {
		if (options->kind == PLOT_CUMULATIVE)
			chart_add_point(curve, begin_of(asked, i, count), sum);
		sum += (double)flows[i].allocated.bytes;
		rate = (double)flows[i].allocated.bytes / seconds;
		if (options->kind == PLOT_RATE)
			chart_add_point(curve, begin_of(asked, i, count), rate);
	}
	chart_add_point(curve, (double)asked->to_ns, options->kind == PLOT_CUMULATIVE ? sum : rate);
}

// Without a key all is one group, so that both cases are drawn alike. Groups are ranked by what
// they allocated, which is what is drawn: there is no second look at them as there is for levels.
bool plot_time_flow(struct chart *chart, struct query_context *asked,
		    const struct plot_options *options, struct err *err)
{
	struct plot_groups groups = { 0 };
	struct window_flow *flows = NULL;
	struct window_query query;
	size_t curves;
	char other[40];
	bool good = plot_groups_find(&groups, asked, options, err);

	if (options->kind == PLOT_RATE) {
		chart->y = (struct chart_axis){ .label = "allocated", .unit = CHART_BYTES_PER_S };
	} else {
		chart->y = (struct chart_axis){ .label = "allocated so far", .unit = CHART_BYTES };
		chart->style = CHART_LINES;
	}
	curves = plot_groups_curves(&groups);
	if (good) {
		query = plot_groups_query(&groups);
		flows = mem_alloc(curves * options->buckets + 1, sizeof *flows);
		good = window_flows(asked->window, &query, curves, flows, options->buckets, err);
	}
	for (size_t i = 0; i < curves && good; i++)
		add_flow(chart, asked, plot_groups_name(&groups, i, other),
			 flows + i * options->buckets, options);
	if (good)
		plot_groups_mark_rest(&groups, chart);
	mem_free(flows);
	plot_groups_fini(&groups);
	return good;
}

// ---- rss ----

// Resident memory of all processes together, as the samples come.
struct residence {
	enum trace_note_kind kind; // of the samples
	uint64_t *bytes;           // by process
	size_t capacity;
	uint64_t total;
	size_t samples;
	bool known;  // a sample was there: before it, no level is known
	bool inside; // the curve has begun
};

// The total is kept by differences, as samples come from one process at a time.
static void residence_set(struct residence *residence, process_id process, uint64_t bytes)
{
	uint64_t *at = MEM_REACH(residence->bytes, residence->capacity, process);

	residence->total += bytes - *at;
	*at = bytes;
}

// A process that ends has 0. False: the note changes nothing.
static bool residence_note(struct residence *residence, const struct query_context *asked,
			   const struct trace_note *note)
{
	if ((note->kind != residence->kind && note->kind != TRACE_NOTE_PROCESS_END) ||
	    note->process >= reader_processes_count(asked->reader) ||
	    !query_has_process(&asked->selection.query, note->process))
		return false;
	residence->samples += note->kind == residence->kind;
	residence->known |= note->kind == residence->kind;
	residence_set(residence, note->process, note->kind == residence->kind ? note->value : 0);
	return true;
}

// Before anything of the window's time changes the level, the curve begins with it. Where none is
// known by then it begins with the first sample, and is no 0 until there.
static void begin_curve(struct chart_curve *curve, const struct query_context *asked,
			struct residence *residence, uint64_t time_ns)
{
	if (residence->inside || time_ns < asked->from_ns)
		return;
	residence->inside = true;
	if (residence->known)
		chart_add_point(curve, (double)asked->from_ns, (double)residence->total);
}

// The level as it is from here on, if it lies in the window and is known.
static void extend_curve(struct chart_curve *curve, const struct residence *residence,
			 uint64_t time_ns)
{
	if (residence->inside && residence->known)
		chart_add_point(curve, (double)time_ns, (double)residence->total);
}

// Snapshots until a time are samples too: the peak lies before memory is given back, where one is
// taken, and mostly between two samples.
static void add_snapshots(struct chart_curve *curve, const struct query_context *asked,
			  struct residence *residence, uint32_t *next, uint64_t until_ns)
{
	for (; *next < reader_snapshots_count(asked->reader); ++*next) {
		const struct trace_snapshot *one = reader_snapshot(asked->reader, *next);
		uint64_t time_ns = one->time_ns;

		if (time_ns > until_ns)
			return;
		if (residence->kind != TRACE_NOTE_RSS || !one->rss_bytes ||
		    !query_has_process(&asked->selection.query, one->process))
			continue;
		begin_curve(curve, asked, residence, time_ns);
		residence_set(residence, one->process, one->rss_bytes);
		residence->known = true;
		extend_curve(curve, residence, time_ns);
	}
}

// The level before the window's first sample is where the curve begins.
static void add_resident(struct chart *chart, struct query_context *asked,
			 struct residence *residence, const char *name)
{
	struct chart_curve *curve = chart_add_curve(chart, name);
	struct trace_note note;
	uint32_t next = 0;

	reader_rewind(asked->reader);
	while (reader_next_note(asked->reader, &note)) {
		if (note.time_ns > asked->to_ns)
			break;
		add_snapshots(curve, asked, residence, &next, note.time_ns);
		begin_curve(curve, asked, residence, note.time_ns);
		if (residence_note(residence, asked, &note))
			extend_curve(curve, residence, note.time_ns);
	}
	reader_rewind(asked->reader);
	add_snapshots(curve, asked, residence, &next, asked->to_ns);
	begin_curve(curve, asked, residence, asked->to_ns);
	extend_curve(curve, residence, asked->to_ns);
}

// Whether any of the selected processes has samples of that kind.
static bool has_samples(const struct query_context *asked, uint8_t kind)
{
	for (process_id id = 0; id < reader_processes_count(asked->reader); id++) {
		const struct trace_process *process = reader_process(asked->reader, id);

		if (query_has_process(&asked->selection.query, id) &&
		    (kind == TRACE_NOTE_PSS ? process->pss_max_bytes : process->swap_max_bytes))
			return true;
	}
	return false;
}

// PSS and swapped memory have curves only where some process has samples of them. For comparison
// the live bytes of the heap are in the same picture. The notes are read once for each curve.
bool plot_time_rss(struct chart *chart, struct query_context *asked,
		   const struct plot_options *options, struct err *err)
{
	static const struct {
		const char *name;
		uint8_t kind;
	} more[] = { { "its share (PSS)", TRACE_NOTE_PSS }, { "swapped out", TRACE_NOTE_SWAP } };
	struct residence residence = { .kind = TRACE_NOTE_RSS };
	uint64_t samples;

	chart->y = (struct chart_axis){ .label = "memory", .unit = CHART_BYTES };
	add_resident(chart, asked, &residence, "resident");
	mem_free(residence.bytes);
	samples = residence.samples;
	for (size_t i = 0; i < sizeof more / sizeof *more && samples > 0; i++) {
		if (!has_samples(asked, more[i].kind))
			continue;
		residence = (struct residence){ .kind = more[i].kind };
		add_resident(chart, asked, &residence, more[i].name);
		mem_free(residence.bytes);
	}
	if (samples == 0)
		return err_set(err, ERR_USAGE, "the trace has no samples of resident memory%s",
			       query_narrows(&asked->selection.query) ? " of these processes"
			       : asked->to_ns < asked->duration_ns    ? " before this window's end"
								      : "");
	return add_layer(chart, asked, WINDOW_HEAP, "live in the heap", options, err);
}

// ---- faults ----

// Samples come ten times a second, and only when the figure has changed.
enum { SAMPLE_NS = 100000000, LATE_NS = 2 * SAMPLE_NS };

enum { FAULTS_MINOR, FAULTS_MAJOR, FAULTS_KINDS };

// The last sample of a process.
struct fault_last {
	uint64_t value, time_ns;
	bool known;
};

// Faults by bucket. The kernel counts from the beginning of a process, through exec.
struct faults {
	const struct query_context *asked;
	double *counts[FAULTS_KINDS];
	size_t count;                          // of buckets
	struct fault_last *last[FAULTS_KINDS]; // by process
	size_t capacities[FAULTS_KINDS];
	size_t samples;
};

// So many faults, evenly between two times. For example 100 faults between 0.95 s and 1.05 s in
// buckets of 0.1 s: 50 in the tenth and 50 in the eleventh.
static void faults_spread(struct faults *faults, int kind, uint64_t from_ns, uint64_t to_ns,
			  double value)
{
	const struct query_context *asked = faults->asked;
	double width = (double)(asked->to_ns - asked->from_ns) / (double)faults->count;
	double from = ((double)from_ns - (double)asked->from_ns) / width;
	double to = ((double)to_ns - (double)asked->from_ns) / width;
	double length = to - from;

	ASSERT(kind >= 0 && kind < FAULTS_KINDS);
	if (to < 0 || from >= (double)faults->count)
		return;
	for (size_t i = from > 0 ? (size_t)from : 0; i < faults->count && (double)i <= to; i++) {
		double low = from > (double)i ? from : (double)i;
		double high = to < (double)(i + 1) ? to : (double)(i + 1);

		faults->counts[kind][i] += length > 0 ? value * (high - low) / length
						      : (high == to ? value : 0);
	}
}

// What the image before it in the same process had come to, where an image has no sample yet.
static uint64_t faults_before(const struct faults *faults, int kind, process_id process)
{
	const struct reader *reader = faults->asked->reader;
	const struct trace_process *image = reader_process(reader, process);

	ASSERT(kind >= 0 && kind < FAULTS_KINDS);
	for (process_id id = process; image->generation > 0 && id-- > 0;)
		if (reader_process(reader, id)->pid == image->pid && faults->last[kind][id].known)
			return faults->last[kind][id].value;
	return 0;
}

// A sample says what has come since the last one. It is taken to have come in the tenth of a second
// before it, as samples are made only when the figure changes; or since the last one, if that is
// not two tenths ago.
static void faults_note(struct faults *faults, const struct trace_note *note)
{
	const struct reader *reader = faults->asked->reader;
	int kind = note->kind == TRACE_NOTE_MAJOR ? FAULTS_MAJOR : FAULTS_MINOR;
	const struct trace_process *process;
	struct fault_last *last;
	uint64_t from_ns;

	if ((note->kind != TRACE_NOTE_MINOR && note->kind != TRACE_NOTE_MAJOR) ||
	    note->process >= reader_processes_count(reader) ||
	    !query_has_process(&faults->asked->selection.query, note->process))
		return;
	faults->samples++;
	last = MEM_REACH(faults->last[kind], faults->capacities[kind], note->process);
	process = reader_process(reader, note->process);
	if (!last->known)
		last->value = faults_before(faults, kind, note->process);
	from_ns = note->time_ns > SAMPLE_NS ? note->time_ns - SAMPLE_NS : 0;
	if (from_ns < last->time_ns || (last->known && note->time_ns < last->time_ns + LATE_NS))
		from_ns = last->time_ns;
	if (from_ns < process->began_ns && process->began_ns < note->time_ns)
		from_ns = process->began_ns;
	if (note->value > last->value)
		faults_spread(faults, kind, from_ns, note->time_ns,
			      (double)(note->value - last->value));
	*last = (struct fault_last){ note->value, note->time_ns, true };
}

// Each bucket's rate is a point at its beginning, drawn as a step; the last is there again at the
// end of the window, so that it has a width.
static void faults_add_curve(const struct faults *faults, struct chart *chart, int kind,
			     const char *name)
{
	const struct query_context *asked = faults->asked;
	struct chart_curve *curve = chart_add_curve(chart, name);
	double seconds = (double)(asked->to_ns - asked->from_ns) / 1e9 / (double)faults->count;
	double rate = 0;

	ASSERT(kind >= 0 && kind < FAULTS_KINDS);
	for (size_t i = 0; i < faults->count; i++) {
		rate = faults->counts[kind][i] / seconds;
		chart_add_point(curve, begin_of(asked, i, faults->count), rate);
	}
	chart_add_point(curve, (double)asked->to_ns, rate);
}

// All samples are read, also those from before the window: the kernel only counts up, and what the
// first sample in the window adds is known by the last one before it.
bool plot_time_faults(struct chart *chart, struct query_context *asked,
		      const struct plot_options *options, struct err *err)
{
	struct faults faults = { .asked = asked, .count = options->buckets };
	struct trace_note note;

	for (int kind = 0; kind < FAULTS_KINDS; kind++)
		faults.counts[kind] = mem_alloc(faults.count, sizeof(double));
	reader_rewind(asked->reader);
	while (reader_next_note(asked->reader, &note))
		faults_note(&faults, &note);
	reader_rewind(asked->reader);
	chart->y = (struct chart_axis){ .label = "page faults per second", .unit = CHART_COUNT };
	if (faults.samples > 0) {
		faults_add_curve(&faults, chart, FAULTS_MINOR, "without reading (minor)");
		faults_add_curve(&faults, chart, FAULTS_MAJOR, "read from a disk (major)");
	}
	for (int kind = 0; kind < FAULTS_KINDS; kind++) {
		MEM_FREE(faults.counts[kind], faults.last[kind]);
	}
	return faults.samples > 0 ||
	       err_set(err, ERR_USAGE, "the trace has no samples of page faults%s",
		       query_narrows(&asked->selection.query) ? " of these processes" : "");
}

// ---- largest-free ----

// The lowest figure of each bucket, over all processes.
struct holes {
	const struct query_context *asked;
	double *lowest; // by bucket; negative: nothing was seen in it
	size_t count;
	double now; // -1: there is no address space yet
	bool begun; // the window has a level
};

// The least of all selected processes: the one that is nearest to its end. -1: none has mapped
// anything.
static double largest_hole(const struct holes *holes, const struct space *space)
{
	const struct reader *reader = holes->asked->reader;
	double least = -1;

	for (process_id id = 0; id < reader_processes_count(reader); id++) {
		const struct ranges *ranges = space_ranges(space, id);
		double hole;

		if (!ranges || ranges->used == 0 ||
		    !query_has_process(&holes->asked->selection.query, id))
			continue;
		hole = (double)ranges_holes(ranges, 64 << 10, space_end(space, reader, id)).largest;
		if (least < 0 || hole < least)
			least = hole;
	}
	return least;
}

static void holes_put(struct holes *holes, size_t bucket)
{
	ASSERT(bucket < holes->count);
	if (holes->lowest[bucket] < 0 || holes->now < holes->lowest[bucket])
		holes->lowest[bucket] = holes->now;
}

// The level has been what it is until this time. The window begins with one, too.
static void holes_take(struct holes *holes, uint64_t time_ns)
{
	const struct query_context *asked = holes->asked;
	double share;
	size_t bucket;

	if (time_ns < asked->from_ns)
		return;
	if (!holes->begun && holes->now >= 0)
		holes_put(holes, 0);
	holes->begun = true;
	if (holes->now < 0)
		return;
	share = (double)(time_ns - asked->from_ns) / (double)(asked->to_ns - asked->from_ns);
	bucket = (size_t)(share * (double)holes->count);
	holes_put(holes, bucket < holes->count ? bucket : holes->count - 1);
}

static void before_call(void *context, const struct space *, const struct trace_event *event)
{
	struct holes *holes = context;

	if (trace_kind_is_vm(event->kind) && event->time_ns <= holes->asked->to_ns)
		holes_take(holes, event->time_ns);
}

// The level counts up to the change, and the new one from it on, so that a bucket has the lower of
// both.
static void change(struct holes *holes, const struct space *space, uint64_t time_ns)
{
	if (time_ns > holes->asked->to_ns)
		return;
	holes_take(holes, time_ns);
	holes->now = largest_hole(holes, space);
	holes_take(holes, time_ns);
}

static void after_call(void *context, const struct space *space, const struct trace_event *event)
{
	if (trace_kind_is_vm(event->kind))
		change(context, space, event->time_ns);
}

static void after_note(void *context, const struct space *space, const struct trace_note *note)
{
	change(context, space, note->time_ns);
}

// Without a single change the window has the level that it began with.
static void follow_holes(struct holes *holes, struct query_context *asked)
{
	const struct present_options options = {
		.inherits = TRACE_NONE,
		.edge = { .number = UINT64_MAX, .exact = true },
		.spaces_only = true,
		.before = before_call,
		.after = after_call,
		.noted = after_note,
		.context = holes,
	};

	moment_view_calls(asked, &options, "drawing");
	if (!holes->begun)
		holes_take(holes, asked->from_ns);
	reader_rewind(asked->reader);
}

// A bucket in which nothing happened has the level of the one before.
bool plot_time_holes(struct chart *chart, struct query_context *asked,
		     const struct plot_options *options, struct err *err)
{
	struct holes holes = { .asked = asked, .count = options->buckets, .now = -1 };
	struct chart_curve *curve;
	double level = -1;

	if (!(window_facts(asked->window)->layers & WINDOW_VM))
		return err_set(err, ERR_USAGE, "the trace has no calls on virtual memory");
	holes.lowest = mem_alloc(holes.count, sizeof *holes.lowest);
	for (size_t i = 0; i < holes.count; i++)
		holes.lowest[i] = -1;
	follow_holes(&holes, asked);
	chart->y = (struct chart_axis){ .label = "largest hole", .unit = CHART_BYTES };
	curve = chart_add_curve(chart, "largest hole");
	for (size_t i = 0; i < holes.count; i++) {
		if (holes.lowest[i] >= 0)
			level = holes.lowest[i];
		if (level >= 0)
			chart_add_point(curve, begin_of(asked, i, holes.count), level);
	}
	if (level >= 0)
		chart_add_point(curve, (double)asked->to_ns, level);
	mem_free(holes.lowest);
	return level >= 0 || err_set(err, ERR_USAGE, "nothing is mapped in the window");
}

// ---- fragmentation ----

// Cells of mappings that an allocator hands out in blocks: malloc's own (brk, arenas, large blocks
// with mappings of their own), and others that blocks are in. What the program maps for itself is
// none, and would make the gap look larger than it is.
static uint32_t of_allocators(void *context, const struct window_cell *cell)
{
	const struct plot_groups *groups = context;

	if (!query_context_selects(groups->keys.asked, cell) || !space_is_allocators(cell->owner))
		return WINDOW_SKIP;
	return 0;
}

// Where the least part of what the heap has was live, from its fullest on, and while it had half of
// its most or more: while it fills a part says nothing. False: never less than all. For example, of
// a heap that has and holds these MiB in four buckets:
//
//     has      1     100    100     20
//     holds    0      90     12      1
//
// the first is before the fullest, the last has less than half of 100: the third is the worst, with
// 12 %.
static bool worst_of(const struct window_bucket *heap, const struct window_bucket *live,
		     size_t count, size_t *worst, double *part)
{
	uint64_t most = 0;
	size_t fullest = 0;

	ASSERT(count > 0);
	*part = 1;
	for (size_t i = 0; i < count; i++) {
		if (heap[i].bytes_peak > most)
			most = heap[i].bytes_peak;
		if (live[i].bytes_peak > live[fullest].bytes_peak)
			fullest = i;
	}
	for (size_t i = fullest; i < count && most > 0; i++) {
		double share = heap[i].bytes_peak
				       ? (double)live[i].bytes_peak / (double)heap[i].bytes_peak
				       : 1;

		if (heap[i].bytes_peak >= most / 2 && share < *part) {
			*part = share;
			*worst = i;
		}
	}
	return *part < 1;
}

// Two levels in one picture: the gap between them is free inside of the heap, with what the
// allocator itself takes. For example a heap of 100 MiB committed of which 12 MiB live at 40 s: the
// lower curve is called "live in it, at the least 12 % at 40 s". Of each stretch both are the
// highest, so a gap that closes within a stretch is not seen.
bool plot_time_heaps(struct chart *chart, struct query_context *asked,
		     const struct plot_options *options, struct err *err)
{
	struct plot_groups groups = { .keys = { .asked = asked } };
	struct window_query query = plot_query(asked, &groups, of_allocators);
	struct window_bucket *heap = mem_alloc(options->buckets, sizeof *heap);
	struct window_bucket *live = mem_alloc(options->buckets, sizeof *live);
	struct str name = { 0 };
	size_t worst = 0;
	double part;
	bool good;

	if (!(window_facts(asked->window)->layers & WINDOW_VM)) {
		MEM_FREE(heap, live);
		return err_set(err, ERR_USAGE, "the trace has no calls on virtual memory");
	}
	query.layers = WINDOW_VM;
	good = window_series(asked->window, &query, 1, heap, options->buckets, err);
	query = plot_query(asked, NULL, NULL);
	query.layers = WINDOW_HEAP;
	good = good && window_series(asked->window, &query, 1, live, options->buckets, err);
	if (good) {
		chart->y = (struct chart_axis){ .label = "memory", .unit = CHART_BYTES };
		str_add(&name, "live in it");
		if (worst_of(heap, live, options->buckets, &worst, &part))
			str_format(
				&name, ", at the least %.0f %% at %s", 100 * part,
				STR_DURATION((uint64_t)begin_of(asked, worst, options->buckets)));
		add_levels(chart, asked, "committed for the heap", heap, options->buckets, false);
		add_levels(chart, asked, str_get(&name), live, options->buckets, false);
	}
	str_fini(&name);
	MEM_FREE(heap, live);
	return good;
}
