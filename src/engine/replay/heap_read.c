// Reading a trace from end to end, for what it adds up to.
#include "engine/replay/heap_own.h"

enum {
	EXPECT_EVENTS = 64,       // read ahead of the counting, see blocks_expect
	PROGRESS_EVERY = 1 << 11, // batches between two looks at the progress bar
};

void heap_learn(struct heap *heap, const struct reader *reader)
{
	while (heap->processes_count < reader_processes_count(reader)) {
		process_id id = (process_id)heap->processes_count;

		heap_add_process(heap, trace_start_inherits(reader_process(reader, id)->start));
	}
	while (heap->threads_count < reader_threads_count(reader)) {
		thread_id id = (thread_id)heap->threads_count;

		heap_add_thread(heap, reader_thread(reader, id)->process);
	}
}

// The events' places, and the sites that they begin blocks of, will be looked for soon.
static void expect(const struct heap *heap, const struct trace_event *events, uint32_t count)
{
	const struct heap_thread_state *thread = &heap->threads[events->thread];
	const struct blocks *blocks;

	if (events->thread >= heap->threads_count || thread->process >= heap->processes_count ||
	    events->kind > TRACE_FAILED || events->heap)
		return;
	blocks = &heap->processes[thread->process].blocks;
	for (uint32_t i = 0; i < count; i++) {
		blocks_expect(blocks, events[i].address);
		if (events[i].kind == TRACE_REALLOC)
			blocks_expect(blocks, events[i].old_address);
	}
}

void heap_on_vm(struct heap *heap, void (*on_vm)(void *context, const struct trace_event *event),
		void *context)
{
	heap->on_vm = on_vm;
	heap->on_vm_context = context;
}

// Take and count what comes up to the next note, or the end; which of them it was is returned.
static enum reader_item read_events(struct heap *heap, struct reader *reader,
				    struct progress *progress, struct trace_note *note)
{
	struct trace_event events[EXPECT_EVENTS];
	enum reader_item item = READER_EVENT;
	uint32_t batches = 0;

	while (item == READER_EVENT) {
		uint32_t runs[EXPECT_EVENTS], runs_count = 0, count = 0;

		while (count < EXPECT_EVENTS) {
			struct trace_event *event = &events[count];
			uint32_t run = reader_run(reader, event, EXPECT_EVENTS - count);

			if (run == 0) {
				item = reader_next(reader, event, note);
				if (item != READER_EVENT)
					break;
				run = 1;
			}
			if (event->thread >= heap->threads_count)
				heap_learn(heap, reader);
			if ((event->vm || trace_kind_is_pool(event->kind)) && heap->on_vm)
				heap->on_vm(heap->on_vm_context, event);
			expect(heap, event, run);
			runs[runs_count++] = run;
			count += run;
		}
		count = 0;
		for (uint32_t i = 0; i < runs_count; i++) {
			if (runs[i] > 1)
				heap_add_run(heap, &events[count], runs[i]);
			else
				heap_add_event(heap, &events[count]);
			count += runs[i];
		}
		if (++batches % PROGRESS_EVERY == 0)
			progress_update(progress, reader_position(reader));
	}
	return item;
}

void heap_read(struct heap *heap, struct reader *reader, struct progress *progress,
	       void (*on_note)(void *context, const struct trace_note *note), void *context)
{
	struct trace_note note;

	heap_sampled(heap, reader_info(reader)->sample_bytes,
		     reader_is_estimated(reader) ? reader : NULL);
	heap_trimmed(heap, reader_info(reader)->trimmed);
	heap_learn(heap, reader);
	while (read_events(heap, reader, progress, &note) == READER_NOTE) {
		heap_learn(heap, reader);
		heap_add_note(heap, &note);
		if (on_note)
			on_note(context, &note);
	}
	heap_learn(heap, reader);
	if (reader_end(reader) && reader_end(reader)->duration_ns > heap->totals.duration_ns)
		heap->totals.duration_ns = reader_end(reader)->duration_ns;
	if (reader_end(reader) && reader_end(reader)->events_lost > heap->totals.events_lost)
		heap->totals.events_lost = reader_end(reader)->events_lost;
	heap_finish(heap);
}
