#include "report/heaplog.h"

#include "base/map.h"
#include "base/mem.h"

#include <string.h>

enum {
	VERSION = 1,
	HEADER_BYTES = 24, // and 8 for each heap
	HEAPS_MAX = 127,   // that have a number of their own
	BEGINS = 0x80,
	TIME_NS = 100000, // the unit of time
	BEGIN_BYTES = 17,
	END_BYTES = 13,
	UPDATE_EVERY = 1 << 14,
};

// The first half of a realloc whose second half may take it back.
struct half {
	bool open;
	thread_id thread;
	struct trace_event event;
};

struct log {
	const struct heaplog_options *options;
	process_id process;
	struct sink *sink;
	struct map *live; // of a heap: address -> size; only what the log has begun
	uint32_t live_count;
	uint8_t *numbers; // by heap id
	struct half *halves;
	size_t halves_count, halves_capacity;
	size_t open_count;
};

// ---- bytes ----

static uint8_t *put(uint8_t *at, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		*at++ = (uint8_t)(value >> 8 * i);
	return at;
}

static void write_begin(struct log *log, const struct trace_event *event)
{
	uint64_t size = event->size < UINT32_MAX ? event->size : UINT32_MAX;
	uint8_t record[BEGIN_BYTES], *at = record;

	*at++ = BEGINS | log->numbers[event->heap];
	at = put(at, event->time_ns / TIME_NS, 4);
	at = put(at, size, 4);
	put(at, event->address, 8);
	sink_write(log->sink, record, sizeof record);
	*map_put(&log->live[event->heap], event->address, NULL) = event->size;
}

static void write_end(struct log *log, heap_id heap, uint64_t address, uint64_t time_ns)
{
	uint8_t record[END_BYTES], *at = record;

	*at++ = log->numbers[heap];
	at = put(at, time_ns / TIME_NS, 4);
	put(at, address, 8);
	sink_write(log->sink, record, sizeof record);
	map_remove(&log->live[heap], address);
}

static void write_header(const struct log *log)
{
	const struct reader *reader = log->options->reader;
	const struct trace_process *process = reader_process(reader, log->process);
	uint8_t header[HEADER_BYTES + 8 * HEAPS_MAX] = "TMHL", *at = header + 4;
	uint64_t handles[HEAPS_MAX] = { 0 };
	unsigned heaps = 0;

	for (heap_id id = 0; id < log->live_count; id++)
		if (log->numbers[id] < HEAPS_MAX) {
			const struct trace_heap *heap = reader_heap(reader, id);

			handles[log->numbers[id]] = id && heap ? heap->handle : 0;
			if (log->numbers[id] >= heaps)
				heaps = log->numbers[id] + 1u;
		}
	at = put(at, VERSION, 2);
	at = put(at, HEADER_BYTES + 8 * heaps, 2);
	at = put(at, process->pid, 4);
	at = put(at, process->bits == 32 ? 32 : 64, 4);
	at = put(at, reader_info(reader)->began_unix_ns, 8);
	for (unsigned i = 0; i < heaps; i++)
		at = put(at, handles[i], 8);
	sink_write(log->sink, header, (size_t)(at - header));
}

// ---- events ----

static bool in_window(const struct log *log, const struct trace_event *event)
{
	const struct moment_edge *from = log->options->from, *to = log->options->to;

	return (!from || moment_passed(from, event->number, event->time_ns)) &&
	       !(to && moment_passed(to, event->number, event->time_ns));
}

static bool begins(const struct log *log, const struct trace_event *event)
{
	return in_window(log, event) &&
	       (!log->options->selection || selection_has_begin(log->options->selection, event));
}

static bool ends(const struct log *log, const struct trace_event *event)
{
	return in_window(log, event) &&
	       (!log->options->selection || selection_has_end(log->options->selection, event));
}

// All blocks of a heap end.
static void empty_heap(struct log *log, heap_id heap, uint64_t time_ns)
{
	struct map gone = log->live[heap];
	uint64_t address, size;
	size_t at = 0;

	memset(&log->live[heap], 0, sizeof log->live[heap]);
	while (map_next(&gone, &at, &address, &size))
		write_end(log, heap, address, time_ns);
	map_fini(&gone);
}

static struct half *half_of(struct log *log, thread_id thread)
{
	for (size_t i = 0; i < log->halves_count; i++)
		if (log->halves[i].open && log->halves[i].thread == thread)
			return &log->halves[i];
	return NULL;
}

static void open_half(struct log *log, const struct trace_event *event)
{
	size_t i = 0;

	while (i < log->halves_count && log->halves[i].open)
		i++;
	if (i == log->halves_count)
		log->halves = mem_grow(log->halves, &log->halves_capacity, ++log->halves_count,
				       sizeof *log->halves);
	log->halves[i] = (struct half){ true, event->thread, *event };
	log->open_count++;
}

static void close_half(struct log *log, struct half *half, bool failed)
{
	half->open = false;
	log->open_count--;
	if (!failed)
		write_end(log, half->event.heap, half->event.address, half->event.time_ns);
}

// Another event of the thread settles its open half, and so does one at the same address: it can
// only have come back to somebody because it was freed.
static void settle(struct log *log, const struct trace_event *event)
{
	struct half *half = half_of(log, event->thread);

	if (half)
		close_half(log, half, event->kind == TRACE_REALLOC_UNDO);
	for (size_t i = 0; log->open_count > 0 && i < log->halves_count; i++)
		if (log->halves[i].open && log->halves[i].event.address == event->address)
			close_half(log, &log->halves[i], false);
}

static void add_event(struct log *log, const struct trace_event *event)
{
	if (log->open_count > 0)
		settle(log, event);
	switch (event->kind) {
	case TRACE_MALLOC:
	case TRACE_CALLOC:
	case TRACE_ALIGNED:
	case TRACE_REALLOC_ALLOC:
	case TRACE_HEAP_ALLOC:
		if (begins(log, event))
			write_begin(log, event);
		break;
	case TRACE_FREE:
	case TRACE_HEAP_FREE:
		if (ends(log, event))
			write_end(log, event->heap, event->address, event->time_ns);
		break;
	case TRACE_REALLOC_FREE:
		if (ends(log, event))
			open_half(log, event);
		break;
	case TRACE_REALLOC:
		if (ends(log, event))
			write_end(log, event->heap, event->old_address, event->time_ns);
		if (begins(log, event))
			write_begin(log, event);
		break;
	case TRACE_HEAP_RESET:
	case TRACE_HEAP_DESTROY:
		if (in_window(log, event))
			empty_heap(log, event->heap, event->time_ns);
		break;
	}
}

// ---- the whole ----

bool heaplog_choose(const struct heaplog_options *options, process_id *process, struct err *err)
{
	uint32_t count = 0;

	for (process_id id = 0; id < reader_processes_count(options->reader); id++) {
		if (options->selection && !query_has_process(&options->selection->query, id))
			continue;
		*process = id;
		count++;
	}
	if (count == 1)
		return true;
	return err_set(err, ERR_USAGE,
		       count == 0 ? "there is no process in it"
				  : "a heaplog is of one process, and here are %u "
				    "(choose one: --process)",
		       count);
}

static void number_heaps(struct log *log)
{
	unsigned next = 1; // malloc's is 0

	log->live_count = reader_heaps_count(log->options->reader);
	if (log->live_count == 0)
		log->live_count = 1;
	log->live = mem_alloc(log->live_count, sizeof *log->live);
	log->numbers = mem_alloc(log->live_count, 1);
	for (heap_id id = 1; id < log->live_count; id++) {
		const struct trace_heap *heap = reader_heap(log->options->reader, id);

		log->numbers[id] = HEAPS_MAX;
		if (heap && heap->process == log->process && next < HEAPS_MAX)
			log->numbers[id] = (uint8_t)next++;
	}
}

static bool is_ours(const struct log *log, const struct trace_event *event)
{
	const struct trace_thread *thread = reader_thread(log->options->reader, event->thread);

	return thread && thread->process == log->process && event->heap < log->live_count;
}

void heaplog_write(const struct heaplog_options *options, process_id process, struct sink *sink)
{
	struct log log = { .options = options, .process = process, .sink = sink };
	struct reader *reader = options->reader;
	struct progress progress;
	struct trace_event event;
	struct trace_note note;
	enum reader_item item;
	uint64_t items = 0;

	number_heaps(&log);
	write_header(&log);
	progress_begin(&progress, options->progress, "reading", reader_bytes(reader));
	reader_rewind(reader);
	while ((item = reader_next(reader, &event, &note)) != READER_END) {
		if (++items % UPDATE_EVERY == 0)
			progress_update(&progress, reader_position(reader));
		if (item == READER_EVENT && is_ours(&log, &event))
			add_event(&log, &event);
	}
	progress_end(&progress);
	for (size_t i = 0; i < log.halves_count; i++)
		if (log.halves[i].open)
			close_half(&log, &log.halves[i], false);
	for (uint32_t i = 0; i < log.live_count; i++)
		map_fini(&log.live[i]);
	mem_free(log.live);
	mem_free(log.numbers);
	mem_free(log.halves);
}
