// About the trace itself.
//
// What the page asks first: what is in the trace (info, as the command prints it), where its marks
// are, what tabs it can show (view). For example a trace without mappings has "map": false in
// "has", and the page no tab of the address space. `progress` is asked beside a question that takes
// long, and is answered at once.
#include "view/answer.h"

#include "base/index_set.h"
#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/file.h"
#include "os/now.h"
#include "report/info.h"
#include "report/table/query_write.h"
#include "trace/reader_pass.h"

#include <string.h>

enum {
	THREADS_MAX = 10000,
	PROCESSES_MAX = 10000,
	PROBED_ITEMS = 2 << 20, // as many are looked at to find a sample of resident memory
};

// ---- info ----

// Reads the whole trace.
bool answer_trace_info(struct answer *answer, struct err *err)
{
	struct reader *reader = answer->query_queue->opened.reader;
	struct info info;

	if (!params_check_taken(&answer->params, err))
		return false;
	reader_rewind(reader);
	info_read(&info, answer->viewer->options.path, reader, PROGRESS_NONE);
	info_write_json(&info, answer->sink);
	info_fini(&info);
	reader_rewind(reader);
	return true;
}

// ---- marks ----

enum { MARKS_MAX = 4096 }; // that are written

static bool is_named(const void *context, uint32_t position, const void *key)
{
	const struct window_mark *marks = context;

	return strcmp(marks[position].name, key) == 0;
}

static void write_mark(const struct opened *opened, const struct window_mark *mark, size_t nth,
		       size_t of, struct json *json)
{
	const struct trace_process *process = reader_process(opened->reader, mark->process);
	const struct trace_thread *thread = reader_thread(opened->reader, mark->thread);

	json_object_begin(json);
	json_kv_string(json, "name", mark->name);
	json_kv_u64(json, "nth", nth);
	json_kv_u64(json, "of", of);
	json_kv_u64(json, "time_ns", mark->time_ns);
	json_kv_u64(json, "process_id", mark->process);
	json_kv_u64(json, "pid", process ? process->pid : 0);
	json_kv_u64(json, "tid", thread ? thread->tid : 0);
	json_object_end(json);
}

// Marks after the first 4096 are left out and counted; `of` counts them as well, since
// `mark:NAME` is none of several, wherever these are.
bool answer_trace_marks(struct answer *answer, struct err *err)
{
	const struct opened *opened = &answer->query_queue->opened;
	size_t count;
	const struct window_mark *marks = window_marks(opened->window, &count);
	struct index_set names = { 0 };
	uint32_t firsts[MARKS_MAX], nths[MARKS_MAX], *counts; // at the first mark of a name
	struct json json;

	if (!params_check_taken(&answer->params, err))
		return false;
	ASSERT(count < INDEX_SET_NONE);
	counts = mem_alloc(count, sizeof *counts);
	for (size_t i = 0; i < count; i++) {
		uint32_t first = index_set_put(&names, index_set_hash_text(marks[i].name), is_named,
					       marks, marks[i].name, (uint32_t)i);

		counts[first]++;
		if (i >= MARKS_MAX)
			continue;
		firsts[i] = first;
		nths[i] = counts[first];
	}
	json_begin(&json, answer->sink, false, "tidemark-view-marks-1");
	json_kv_u64(&json, "marks_left_out", count > MARKS_MAX ? count - MARKS_MAX : 0);
	json_kv_array(&json, "marks");
	// mark:NAME#2 is the second of its name: the page shows how to ask for each. For example of
	// marks load, idle, load the third is the second of two.
	for (size_t i = 0; i < count && i < MARKS_MAX; i++)
		write_mark(opened, &marks[i], nths[i], counts[firsts[i]], &json);
	json_array_end(&json);
	json_end(&json);
	index_set_fini(&names);
	mem_free(counts);
	return true;
}

// ---- progress ----

// The meter's values are read without a lock while the question runs, so they may be of two
// moments. The time that is left is by the part that is done, once that is a hundredth.
static void write_work(void *context, const struct query_queue_work *work)
{
	struct json *json = context;
	const struct progress_meter *meter = work->meter;
	const char *what = meter ? atomic_load(&meter->what) : NULL;
	uint64_t done = what ? atomic_load(&meter->done) : 0, now = now_steady_ns();
	uint64_t total = what ? atomic_load(&meter->total) : 0;
	uint64_t began = what ? atomic_load(&meter->began_ns) : 0;
	// Never more than 1: a file that grows has more than its total said.
	double share = total ? (double)(done < total ? done : total) / (double)total : 0;
	double spent = now > began ? (double)(now - began) : 0;

	json_object_begin(json);
	json_kv_text(json, "lane", work->lane);
	json_kv_bool(json, "waits", !meter);
	json_kv_u64_if(json, "since_ns", meter, now > work->since_ns ? now - work->since_ns : 0);
	json_kv_string(json, "doing", what);
	json_key(json, "done");
	if (what)
		json_double(json, share);
	else
		json_null(json);
	// For example a quarter done after 2 s: 2 * (1 - .25) / .25 = 6 s are left.
	json_kv_u64_if(json, "left_ns", share > 0.01,
		       share > 0.01 ? (uint64_t)(spent * (1 - share) / share) : 0);
	json_object_end(json);
}

// Stands in no line: it says how far those are that do.
bool answer_trace_progress(struct answer *answer, struct err *err)
{
	struct viewer *viewer = answer->viewer;
	struct query_queue *queues[] = { &viewer->sums, &viewer->curves, &viewer->replays,
					 &viewer->other };
	struct json json;

	if (!params_check_taken(&answer->params, err))
		return false;
	json_begin(&json, answer->sink, false, "tidemark-view-progress-1");
	json_kv_array(&json, "questions");
	for (size_t i = 0; i < sizeof queues / sizeof *queues; i++)
		query_queue_each(queues[i], write_work, &json);
	json_array_end(&json);
	json_end(&json);
	return true;
}

// ---- view ----

static void write_layers(const struct window_facts *facts, struct json *json)
{
	json_kv_array(json, "layers");
	if (facts->layers & WINDOW_HEAP)
		json_string(json, "heap");
	if (facts->layers & WINDOW_VM)
		json_string(json, "vm");
	json_array_end(json);
}

static void write_peak(struct window *window, unsigned layer, const char *key, struct json *json)
{
	const struct window_facts *facts = window_facts(window);

	json_key(json, key);
	if (!(facts->layers & layer)) {
		json_null(json);
		return;
	}
	json_object_begin(json);
	json_kv_u64(json, "time_ns", window_edge_time(window, facts->peak_edge[layer]));
	json_kv_u64(json, "bytes", facts->peak[layer].bytes);
	json_kv_u64(json, "count", facts->peak[layer].count);
	json_object_end(json);
}

// Ids are places in the trace's list, so what is left out has the highest ids.
static void write_processes(const struct reader *reader, struct json *json)
{
	uint32_t count = reader_processes_count(reader);

	json_kv_array(json, "processes");
	for (process_id id = 0; id < count && id < PROCESSES_MAX; id++) {
		const struct trace_process *process = reader_process(reader, id);

		json_object_begin(json);
		json_kv_u64(json, "id", id);
		json_kv_u64(json, "pid", process->pid);
		json_kv_string(json, "exe", process->exe);
		json_kv_u64(json, "began_ns", process->began_ns);
		json_kv_u64_if(json, "ended_ns", process->ended_ns != UINT64_MAX,
			       process->ended_ns);
		json_object_end(json);
	}
	json_array_end(json);
	json_kv_u64(json, "processes_left_out", count > PROCESSES_MAX ? count - PROCESSES_MAX : 0);
}

// A thread's id is not written: it is its place in this array, as none before it is left out.
static void write_threads(const struct reader *reader, struct json *json)
{
	uint32_t count = reader_threads_count(reader);

	json_kv_array(json, "threads");
	for (thread_id id = 0; id < count && id < THREADS_MAX; id++) {
		const struct trace_thread *thread = reader_thread(reader, id);

		json_object_begin(json);
		json_kv_u64(json, "tid", thread->tid);
		json_kv_u64(json, "process_id", thread->process);
		json_kv_string(json, "name", thread->name);
		json_object_end(json);
	}
	json_array_end(json);
	json_kv_u64(json, "threads_left_out", count > THREADS_MAX ? count - THREADS_MAX : 0);
}

// The id of a heap is its place among the names, where 0 is malloc's. `pools` has the ids of those
// that are pools of the program's own.
static void write_heaps(const struct reader *reader, struct json *json)
{
	char text[READER_HEAP_TEXT];

	json_kv_array(json, "heaps");
	json_string(json, "malloc");
	for (heap_id id = 1; id < reader_heaps_count(reader); id++) {
		const struct trace_heap *heap = reader_heap(reader, id);

		json_string(json, reader_heap_name(heap, text));
	}
	json_array_end(json);
	json_kv_array(json, "pools");
	for (heap_id id = 1; id < reader_heaps_count(reader); id++)
		if (reader_heap_is_pool(reader_heap(reader, id)))
			json_u64(json, id);
	json_array_end(json);
}

// Whether resident memory was sampled, as far as the beginning tells: true also where it does not.
static bool has_samples(struct reader *reader)
{
	struct reader_pass pass = reader_pass_begin(reader, NULL);
	bool found = false;

	// A trace with samples has one soon: of a long one only its beginning is read, since the
	// page waits for it.
	while (!found && pass.items < PROBED_ITEMS && reader_pass_next(&pass) != READER_END)
		found = pass.item == READER_NOTE && pass.note.kind == TRACE_NOTE_RSS;
	reader_rewind(reader);
	return found || pass.items == PROBED_ITEMS;
}

// What the page offers: tabs without anything to show are left out.
static void write_has(const struct answer *answer, struct json *json)
{
	const struct opened *opened = &answer->query_queue->opened;

	json_kv_object(json, "has");
	json_kv_bool(json, "rss", has_samples(opened->reader));
	json_kv_bool(json, "map", window_facts(opened->window)->layers & WINDOW_VM);
	json_kv_bool(json, "snapshots", reader_snapshots_count(opened->reader) > 0);
	json_kv_bool(json, "source", !answer->viewer->html_export_file);
	json_object_end(json);
}

// Where a trace is, whatever folder a command is given in. Null in a file for somebody else.
static void write_path(const struct answer *answer, const char *path, const char *key,
		       struct json *json)
{
	char *whole = path && !answer->viewer->html_export_file ? file_absolute(path) : NULL;

	json_kv_string(json, key, whole);
	mem_free(whole);
}

// `other` is the second trace of a comparison, and has no reader where none was given.
// `diff_duration_ns` is null then.
static void write_view(const struct answer *answer, const struct query_context *asked,
		       struct json *json)
{
	const struct viewer_options *options = &answer->viewer->options;
	const struct opened *opened = &answer->query_queue->opened;
	const struct opened *other = &answer->viewer->other.opened;

	json_object_begin(json);
	json_kv_string(json, "schema", "tidemark-view-1");
	json_kv_string(json, "version", options->version);
	json_kv_string(json, "file", str_last_part(options->path));
	json_kv_string(json, "diff", options->other ? str_last_part(options->other) : NULL);
	write_path(answer, options->path, "path", json);
	write_path(answer, options->other, "diff_path", json);
	json_kv_bool(json, "single_file", answer->viewer->html_export_file);
	json_kv_bool(json, "scrubbed", answer->viewer->scrubbed);
	json_kv_array(json, "coarse");
	for (size_t i = 0; i < answer->viewer->coarse_count; i++)
		json_string(json, answer->viewer->coarse[i]);
	json_array_end(json);
	json_kv_bool(json, "complete", reader_complete(opened->reader));
	json_kv_bool(json, "sampled", reader_is_estimated(opened->reader));
	query_write_warnings(asked, json);
	json_kv_u64(json, "duration_ns", moment_duration(opened->reader));
	json_kv_u64(json, "steps", window_facts(opened->window)->steps_end - 1);
	write_layers(window_facts(opened->window), json);
	write_has(answer, json);
	json_kv_object(json, "peak");
	write_peak(opened->window, WINDOW_HEAP, "heap", json);
	write_peak(opened->window, WINDOW_VM, "vm", json);
	json_object_end(json);
	write_processes(opened->reader, json);
	write_threads(opened->reader, json);
	write_heaps(opened->reader, json);
	json_key(json, "diff_duration_ns");
	if (other->reader)
		json_u64(json, moment_duration(other->reader));
	else
		json_null(json);
	json_object_end(json);
}

// A query context is opened although nothing is asked of it: it has the warnings.
bool answer_trace_view(struct answer *answer, struct err *err)
{
	const struct query_context_options options =
		answer_options(answer, &query_context_window_rules);
	struct query_context asked;
	struct json json;

	if (!params_check_taken(&answer->params, err) || !query_context_open(&asked, &options, err))
		return false;
	json_init(&json, answer->sink, false);
	write_view(answer, &asked, &json);
	sink_text(answer->sink, "\n");
	query_context_close(&asked);
	return true;
}
