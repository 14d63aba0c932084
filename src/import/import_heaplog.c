// import_heaplog: records of 17 bytes for a block that begins and 13 for one that ends
// (docs/heaplog.md).
//
// For example the 17 bytes 80 0a 00 00 00 18 00 00 00 and eight of an address: heap 0, a block that
// begins, at tick 10 (1 ms), of 24 bytes. A record that ends a block has no size. Times are 32 bits
// of ticks of 0.1 ms, which wrap after five days.
#include "base/mem.h"
#include "import/import_formats.h"
#include "trace/bytes.h"

#include <inttypes.h>
#include <string.h>

enum {
	VERSION = 1,
	HEADER_BYTES = 24,
	BEGINS = 0x80,
	HEAPS_MAX = 127,
	OTHERS = 127, // the number of all heaps that have none of their own
	TIME_NS = 100000,
	BEGIN_BYTES = 17,
	END_BYTES = 13,
	RECORDS_PER_LOOK = 1 << 14,
};

_Static_assert(OTHERS <= HEAPS_MAX, "every number of a record has a place in the tables");

struct heaplog {
	struct import_work *work;
	struct intake *intake;
	process_id process;
	thread_id thread;
	uint64_t handles[HEAPS_MAX + 1];
	heap_id heaps[HEAPS_MAX + 1]; // 0: not yet, or malloc's
	size_t heaps_count;
	uint64_t ticks; // the last time, as it would be without its wrap
	uint64_t records;
};

// 24 bytes, then a handle of 8 bytes for each heap. The size of both is in the header, so how many
// heaps there are follows from it: 40 bytes are two. Both "ends within" are failures and no cut,
// for there is no record yet that could count.
static bool read_header(struct heaplog *heaplog, struct err *err)
{
	struct trace_process process = { .parent = TRACE_NONE,
					 .start = TRACE_START_EXEC,
					 .exe = "" };
	const uint8_t *header;
	size_t size;

	if (!source_bytes(heaplog->work->source, HEADER_BYTES, &header))
		return err_set(err, ERR_FORMAT, "it ends within its header");
	size = bytes_get_u16(header + 6);
	process.pid = bytes_get_u32(header + 8);
	process.bits = bytes_get_u32(header + 12) == 32 ? 32 : 64;
	if (bytes_get_u16(header + 4) != VERSION)
		return err_set(err, ERR_FORMAT, "it is of version %u, and %d is known",
			       bytes_get_u16(header + 4), VERSION);
	if (size < HEADER_BYTES || (size - HEADER_BYTES) % 8 ||
	    (size - HEADER_BYTES) / 8 > HEAPS_MAX)
		return err_set(err, ERR_FORMAT, "its header is damaged");
	intake_info(heaplog->intake)->began_unix_ns = bytes_get_u64(header + 16);
	intake_info(heaplog->intake)->tick_ns = TIME_NS;
	intake_lacks(heaplog->intake, "no-threads");
	intake_lacks(heaplog->intake, "no-stacks");
	heaplog->heaps_count = (size - HEADER_BYTES) / 8;
	if (!source_bytes(heaplog->work->source, size - HEADER_BYTES, &header))
		return err_set(err, ERR_FORMAT, "it ends within its header");
	for (size_t i = 0; i < heaplog->heaps_count; i++)
		heaplog->handles[i] = bytes_get_u64(header + 8 * i);
	heaplog->process = intake_put_process(heaplog->intake, &process);
	heaplog->thread = intake_put_thread(heaplog->intake, heaplog->process, 0);
	return true;
}

// A heap is defined by its first record. With a handle it is a Windows heap, without one a pool.
static heap_id heap_of(struct heaplog *heaplog, unsigned number)
{
	char name[32];

	ASSERT(number <= HEAPS_MAX);
	if (number == 0 || heaplog->heaps[number])
		return heaplog->heaps[number];
	if (number == OTHERS)
		snprintf(name, sizeof name, "others");
	else
		snprintf(name, sizeof name, heaplog->handles[number] ? "" : "pool %u", number);
	heaplog->heaps[number] =
		intake_put_heap(heaplog->intake, &(struct trace_heap){
							 .process = heaplog->process,
							 .handle = heaplog->handles[number],
							 .name = name,
						 });
	return heaplog->heaps[number];
}

// Times rise, but for their wrap. The difference to the last time, modulo 2^32, is never negative:
// so a wrap goes on upwards, and a pause of more than five days looks shorter by as much. Blocks of
// a Windows heap are malloc's in all but their heap; blocks of a pool are carved out of others, and
// so are events of a heap (trace.h).
static void put(struct heaplog *heaplog, const uint8_t *record)
{
	unsigned number = record[0] & (BEGINS - 1);
	bool begins = record[0] & BEGINS, pool = number > 0 && !heaplog->handles[number];
	struct trace_event event = { .thread = heaplog->thread };

	heaplog->ticks += (uint32_t)(bytes_get_u32(record + 1) - (uint32_t)heaplog->ticks);
	event.time_ns = heaplog->ticks * TIME_NS;
	event.heap = heap_of(heaplog, number);
	event.address = bytes_get_u64(record + (begins ? 9 : 5));
	event.size = begins ? bytes_get_u32(record + 5) : 0;
	if (begins)
		event.kind = pool ? TRACE_HEAP_ALLOC : TRACE_MALLOC;
	else
		event.kind = pool ? TRACE_HEAP_FREE : TRACE_FREE;
	intake_event(heaplog->intake, &event);
}

// Each record says by its first bit how long it is. A number of a heap that the header does not
// list is damage.
static bool read_records(struct heaplog *heaplog, struct err *err)
{
	struct source *source = heaplog->work->source;
	const uint8_t *first, *rest;
	uint8_t record[BEGIN_BYTES];
	size_t size;

	while (source_bytes(source, 1, &first)) {
		if (heaplog->records++ % RECORDS_PER_LOOK == 0 && import_was_stopped(heaplog->work))
			return true;
		record[0] = *first;
		size = (record[0] & BEGINS ? BEGIN_BYTES : END_BYTES) - 1;
		if (!source_bytes(source, size, &rest)) {
			import_end_here(heaplog->work);
			return true;
		}
		memcpy(record + 1, rest, size);
		if ((record[0] & (BEGINS - 1u)) >=
			    (heaplog->heaps_count ? heaplog->heaps_count : 1) &&
		    (record[0] & (BEGINS - 1u)) != OTHERS)
			return err_set(err, ERR_FORMAT, "there is no heap %u, at byte %" PRIu64,
				       record[0] & (BEGINS - 1u), source_position(source)->taken);
		put(heaplog, record);
	}
	return true;
}

static bool is_heaplog(const char *head, size_t length)
{
	return length >= 4 && memcmp(head, "TMHL", 4) == 0;
}

static bool read_heaplog(struct import_work *work, struct err *err)
{
	struct heaplog heaplog = { .work = work, .intake = work->intake };

	return read_header(&heaplog, err) && read_records(&heaplog, err);
}

const struct import_format import_heaplog = {
	.name = "heaplog",
	.is = is_heaplog,
	.read = read_heaplog,
};
