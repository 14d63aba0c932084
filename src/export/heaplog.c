// heaplog: the calls on a process's heaps as a row of small records, for programs that read them
// (docs/heaplog.md is the layout).
//
// A file begins with a header: magic, version, the process, and the handles of its heaps. Then come
// records of 17 bytes for a block that begins, and of 13 for one that ends. A realloc is both, the
// end first; one that failed is neither. Blocks that end with their heap have records of their own;
// those that end with the process have none, nor has one whose end was not seen.
//
// For example a block of 32 bytes at 0x5010 of malloc's heap that begins after 1.5 s, and ends
// after 2 s, in hexadecimal:
//
//     80 98 3a 00 00 20 00 00 00 10 50 00 00 00 00 00 00
//     00 20 4e 00 00 10 50 00 00 00 00 00 00
#include "export/events.h"

#include "base/mem.h"

enum {
	VERSION = 1,
	HEADER_BYTES = 24, // and 8 for each heap
	HEAPS_MAX = 127,   // that have a number of their own
	BEGINS = 0x80,
	TIME_NS = 100000, // the unit of time
	BEGIN_BYTES = 17,
	END_BYTES = 13,
};

struct log {
	const struct reader *reader;
	process_id process;
	struct sink *sink;
	uint8_t *numbers; // by heap id
	uint32_t heaps_count;
};

// The low bytes first; returns where the next goes.
static uint8_t *put(uint8_t *at, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		*at++ = (uint8_t)(value >> 8 * i);
	return at;
}

// Heaps beyond the 126 that have a number share 127.
static uint8_t number_of(const struct log *log, heap_id heap)
{
	ASSERT(log->numbers && log->heaps_count > 0);
	return heap < log->heaps_count ? log->numbers[heap] : HEAPS_MAX;
}

// A size of 4 GiB or more is written as the largest number.
static void write_begin(void *context, const struct lives_block *block)
{
	struct log *log = context;
	uint64_t size = block->size < UINT32_MAX ? block->size : UINT32_MAX;
	uint8_t record[BEGIN_BYTES], *at = record;

	// For example 0x80: begins, heap 0. After 5 days the time begins at 0 again (4 bytes of 0.1
	// ms).
	*at++ = BEGINS | number_of(log, block->heap);
	at = put(at, block->time_ns / TIME_NS, 4);
	at = put(at, size, 4);
	put(at, block->address, 8);
	sink_write(log->sink, record, sizeof record);
}

static void write_end(void *context, const struct lives_block *block, const struct lives_end *end)
{
	struct log *log = context;
	uint8_t record[END_BYTES], *at = record;

	if (end->cause == LIVES_LOST || end->cause >= LIVES_EXIT)
		return;
	*at++ = number_of(log, block->heap);
	at = put(at, end->time_ns / TIME_NS, 4);
	put(at, block->address, 8);
	sink_write(log->sink, record, sizeof record);
}

// Handles stand at the number that records give their heap; malloc's, 0, has none. Heaps beyond the
// numbers that a record can hold are not listed.
static void write_header(const struct log *log)
{
	const struct reader *reader = log->reader;
	const struct trace_process *process = reader_process(reader, log->process);
	uint8_t header[HEADER_BYTES + 8 * HEAPS_MAX] = "TMHL", *at = header + 4;
	uint64_t handles[HEAPS_MAX] = { 0 };
	unsigned heaps = 0;

	// Heaps that share number 127 have no handle in the list, since it could be only one of
	// them.
	for (heap_id id = 0; id < log->heaps_count; id++)
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
	ASSERT((size_t)(at - header) == HEADER_BYTES + 8 * heaps);
	sink_write(log->sink, header, (size_t)(at - header));
}

// Only heaps of the process: numbers are few.
static void number_heaps(struct log *log)
{
	unsigned next = 1; // malloc's is 0

	log->heaps_count = reader_heaps_count(log->reader);
	if (log->heaps_count == 0)
		log->heaps_count = 1;
	log->numbers = mem_alloc(log->heaps_count, 1);
	for (heap_id id = 1; id < log->heaps_count; id++) {
		const struct trace_heap *heap = reader_heap(log->reader, id);

		log->numbers[id] = HEAPS_MAX;
		// Heaps of other processes keep 127, and no block of this one is in them.
		if (heap && heap->process == log->process && next < HEAPS_MAX)
			log->numbers[id] = (uint8_t)next++;
	}
}

static bool write(const struct export_source *source, struct sink *sink, struct err *err)
{
	struct log log = { .reader = source->asked->reader, .sink = sink };
	struct events_watcher watcher = { .begin = write_begin, .end = write_end, .context = &log };
	bool good;

	if (!events_choose(source, "a heaplog", &log.process, err))
		return false;
	watcher.process = log.process;
	number_heaps(&log);
	write_header(&log);
	good = events_read(source, &watcher, err);
	mem_free(log.numbers);
	return good;
}

const struct export_format heaplog_format = {
	.name = "heaplog",
	.brief = "the events of one process as records of a fixed layout",
	.write = write,
};
