// Buffers of one processor are in order, so an event that is the first of all stays so for as long
// as no other stream has an earlier one: `until` is when that may be. For example, with streams at
// the times 10, 20, 90 and at 50, 60:
//
//     10, 20    of the first stream, until 50: no other was looked at
//     90        is not before 50: look again. The second is the first now, until 90
//     50, 60    of the second
//     90        of the first
//
// Only one buffer of each stream is in memory; the next is read, and unpacked, when it has been
// taken.
#include "import/etl_file.h"

#include "base/map.h"
#include "base/mem.h"
#include "import/xpress.h"
#include "os/file.h"
#include "trace/bytes.h"

#include <errno.h>

enum {
	BUFFER_HEADER = 72,
	BUFFER_MAX = 1 << 24, // Windows' own limit
	BUFFER_PACKED = 0x40, // of its flags
	BUFFER_WIDE_CPU = 0x20,
	BUFFER_IS_HEADER = 4, // of its types
	LOG_HEAD = 56,        // the log's own header: what stands before two pointers,
	LOG_ZONE = 176,       // a time zone,
	LOG_TAIL = 32,        // and what is read of the rest
	LOG_PACKED = 1 << 26, // of the log's modes
	STREAMS_MAX = 1 << 12,
	MEMORY_MAX = 1 << 29,
	HEADER_OF_ERROR = 13,
	NONE = 0,
};

#define UNIX_EPOCH 116444736000000000u // in units of 100 ns since 1601
#define NS_PER_S 1000000000u
#define FREQUENCY_MAX (10ull * NS_PER_S) // times a billion it fits 64 bits
#define NEVER UINT64_MAX

// Where it is in the file, with its header; `next` is the one after it of the same processor and
// logger.
struct buffer {
	uint64_t at;
	uint32_t size;
	uint32_t next; // of its stream, + 1
};

// What one processor has written for one logger.
struct stream {
	uint32_t cpu;
	uint32_t first, last; // buffers, + 1
	uint32_t next;        // buffer to load, + 1
	uint8_t *bytes;       // the buffer that is being read, unpacked
	size_t at, end, capacity;
	struct etl_event event; // the next one; its time is NEVER at the end
};

// `memory` is what all streams' buffers take together, at most MEMORY_MAX.
struct etl_file {
	int fd;
	struct etl_header header;
	struct err err;
	struct buffer *buffers;
	size_t buffers_count, buffers_capacity;
	struct stream *streams;
	size_t streams_count, streams_capacity;
	struct map by_cpu; // logger and processor: stream
	size_t memory;     // of all streams
	bool is_packed;
	uint16_t packing; // as the first buffer says, where the log's modes have LOG_PACKED
	size_t current;   // the stream of the last event
	uint64_t until;   // up to which it is the first
	bool begun;
	uint8_t *packed;
	size_t packed_capacity;
};

// ---- an event's header ----

static const struct {
	uint8_t guid[16];
	uint16_t group;
} providers[] = {
	{ { 0xd3, 0xa8, 0x6f, 0x3d, 0x05, 0xfe, 0xd0, 0x11, 0x9d, 0xda, 0, 0xc0, 0x4f, 0xd7, 0xba,
	    0x7c },
	  ETL_MEMORY },
	{ { 0xd0, 0xa8, 0x6f, 0x3d, 0x05, 0xfe, 0xd0, 0x11, 0x9d, 0xda, 0, 0xc0, 0x4f, 0xd7, 0xba,
	    0x7c },
	  ETL_PROCESS },
	{ { 0xd1, 0xa8, 0x6f, 0x3d, 0x05, 0xfe, 0xd0, 0x11, 0x9d, 0xda, 0, 0xc0, 0x4f, 0xd7, 0xba,
	    0x7c },
	  ETL_THREAD },
	{ { 0x1d, 0x5d, 0xb1, 0x2c, 0xc1, 0x5f, 0xd2, 0x11, 0xab, 0xe1, 0, 0xa0, 0xc9, 0x11, 0xf5,
	    0x18 },
	  ETL_IMAGE },
	{ { 0xab, 0x62, 0x29, 0x22, 0x80, 0x61, 0x88, 0x4b, 0xa8, 0x25, 0x34, 0x6b, 0x75, 0xf2,
	    0xa2, 0x4a },
	  ETL_HEAP },
	{ { 0x46, 0xfe, 0xf2, 0xde, 0xd6, 0x7b, 0x80, 0x4b, 0xbd, 0x94, 0xf5, 0x7f, 0xe2, 0x0d,
	    0x0c, 0xe3 },
	  ETL_STACK },
	{ { 0xd7, 0x75, 0xe6, 0xb3, 0x54, 0x25, 0x18, 0x4f, 0x83, 0x0b, 0x27, 0x62, 0x73, 0x25,
	    0x60, 0xde },
	  ETL_IMAGE_ID },
};

static uint16_t find_provider(const uint8_t *guid)
{
	for (size_t i = 0; i < sizeof providers / sizeof *providers; i++)
		if (memcmp(providers[i].guid, guid, 16) == 0)
			return providers[i].group;
	return ETL_OTHER;
}

// The numbers are the kernel's; others are events that nothing here reads.
static uint16_t group_of(uint8_t group)
{
	switch (group) {
	case ETL_MEMORY:
	case ETL_PROCESS:
	case ETL_THREAD:
	case ETL_HEAP:
	case ETL_IMAGE:
	case ETL_STACK:
		return group;
	default:
		return ETL_OTHER;
	}
}

// Headers by their type: how many bytes, where the size and the time stand, and whether thread and
// process do.
// Types of headers: of the kernel's own events (1 to 4, 16, 17), of older providers (10, 20, and
// with an instance 11, 21), of newer ones (18, 19), and of errors (13); but for the last each for
// pointers of 4 and of 8 bytes.
static const struct header_kind {
	uint8_t type, bytes, size_at, time_at, pointer_bytes;
	bool has_thread, by_guid;
} header_kinds[] = {
	{ 1, 32, 4, 16, 4, true, false },
	{ 2, 32, 4, 16, 8, true, false },
	{ 3, 24, 4, 16, 4, true, false },
	{ 4, 24, 4, 16, 8, true, false },
	{ 16, 16, 4, 8, 4, false, false },
	{ 17, 16, 4, 8, 8, false, false },
	{ 10, 48, 0, 16, 4, true, true },
	{ 20, 48, 0, 16, 8, true, true },
	{ 11, 88, 0, 16, 4, true, false },
	{ 21, 88, 0, 16, 8, true, false },
	{ 18, 80, 0, 16, 4, true, false },
	{ 19, 80, 0, 16, 8, true, false },
	{ HEADER_OF_ERROR, 32, 0, 16, 8, false, false },
};

static const struct header_kind *find_kind(uint8_t type)
{
	for (size_t i = 0; i < sizeof header_kinds / sizeof *header_kinds; i++)
		if (header_kinds[i].type == type)
			return &header_kinds[i];
	return NULL;
}

// The event at `at`, of `left` bytes at most. How many it takes; 0: there is no event.
// The highest bit of the fourth byte marks an event; 0xff there is the filling at the end of a
// buffer.
static size_t parse_event(const uint8_t *at, size_t left, struct etl_event *event)
{
	const struct header_kind *kind;
	size_t size, header;
	uint8_t mark;

	if (left < 8)
		return 0;
	mark = at[3];
	*event = (struct etl_event){ .group = ETL_OTHER,
				     .process = ETL_UNKNOWN,
				     .thread = ETL_UNKNOWN };
	if (!(mark & 0x80) || mark == 0xff)
		return 0;
	if (mark & 0x10) { // a message: its size stands first, and it has no time of its own
		size = bytes_get_u16(at);
		return size >= 8 && size <= left ? size : 0;
	}
	kind = find_kind(at[2]);
	if (!kind || left < kind->bytes)
		return 0;
	size = bytes_get_u16(at + kind->size_at);
	header = kind->bytes;
	if (!kind->has_thread) // counters of the processor may stand between
		header += ((at[1] & 0x80) ? 8u : 0u) + 8u * (at[1] & 7u);
	if (size > left || size < kind->bytes)
		return 0;
	event->time = bytes_get_u64(at + kind->time_at);
	event->pointer_bytes = kind->pointer_bytes;
	if (kind->has_thread) {
		event->thread = bytes_get_u32(at + 8);
		event->process = bytes_get_u32(at + 12);
	}
	if (kind->by_guid) {
		event->group = find_provider(at + 24);
		event->opcode = at[4];
		event->version = (uint8_t)bytes_get_u16(at + 6);
	} else if (kind->size_at == 4) {
		event->group = group_of(at[7]);
		event->opcode = at[6];
		event->version = at[0];
	}
	if (at[2] == HEADER_OF_ERROR)
		return size;
	event->data = at + (header < size ? header : size);
	event->size = header < size ? size - header : 0;
	return size;
}

// ---- buffers ----

// False also at the file's end, which is damage; an error of the system is kept in file->err and
// ends the log.
static bool read_exactly(struct etl_file *file, void *bytes, size_t size, uint64_t at)
{
	ptrdiff_t count = file_read_at(file->fd, bytes, size, at);

	if (count < 0)
		return err_errno(&file->err, errno, "cannot read it");
	file->header.read += (uint64_t)count;
	return (size_t)count == size;
}

// Where what is in a buffer ends, once it is unpacked.
// Two fields may say it; the first is 0 where only the second was filled in.
static uint32_t saved_end(const uint8_t *header)
{
	uint32_t saved = bytes_get_u32(header + 4);

	return saved ? saved : bytes_get_u32(header + 48);
}

// A plain buffer is read up to where its events end, a packed one as a whole.
static bool unpack(struct etl_file *file, struct stream *stream, const uint8_t *header,
		   const struct buffer *buffer)
{
	size_t size = buffer->size - BUFFER_HEADER;
	uint32_t end = saved_end(header);

	if (!(bytes_get_u16(header + 52) & BUFFER_PACKED)) {
		stream->end = end >= BUFFER_HEADER && end <= buffer->size ? end - BUFFER_HEADER
									  : size;
		return read_exactly(file, stream->bytes, stream->end, buffer->at + BUFFER_HEADER);
	}
	if (file->packed_capacity < size)
		file->packed = mem_grow(file->packed, &file->packed_capacity, size, 1);
	stream->end = end - BUFFER_HEADER;
	return read_exactly(file, file->packed, size, buffer->at + BUFFER_HEADER) &&
	       xpress_unpack(file->packed, size, stream->bytes, stream->end);
}

// Room for what is in a buffer. False: it says that there is too much.
// A log of 4,096 processors with buffers of 16 MiB would take 64 GiB: what all of them take
// together is bounded, and more is an error with a reason.
static bool make_room(struct etl_file *file, struct stream *stream, const uint8_t *header,
		      const struct buffer *buffer)
{
	bool packed = bytes_get_u16(header + 52) & BUFFER_PACKED;
	uint32_t need = packed ? saved_end(header) : buffer->size;

	if (need < BUFFER_HEADER || need > BUFFER_MAX)
		return false;
	if (need <= stream->capacity)
		return true;
	if (file->memory - stream->capacity + need > MEMORY_MAX)
		return err_set(&file->err, ERR_FORMAT, "its buffers take more than %d MiB at once",
			       MEMORY_MAX >> 20);
	file->memory += need - stream->capacity;
	mem_free(stream->bytes);
	stream->bytes = mem_alloc(need, 1);
	stream->capacity = need;
	return true;
}

// The stream's next buffer. False: there is none.
// A buffer that cannot be read is counted, and the next one of the stream is taken.
static bool load(struct etl_file *file, struct stream *stream)
{
	uint8_t header[BUFFER_HEADER];

	stream->at = stream->end = 0;
	while (stream->next && file->err.kind == ERR_NONE) {
		const struct buffer *buffer = &file->buffers[stream->next - 1];

		ASSERT(buffer->next <= file->buffers_count);
		stream->next = buffer->next;
		if (read_exactly(file, header, sizeof header, buffer->at) &&
		    make_room(file, stream, header, buffer) && unpack(file, stream, header, buffer))
			return true;
		file->header.damaged++;
	}
	return false;
}

// Buffers are filled with 0xff after their last event.
static bool is_rest(const uint8_t *at, size_t left)
{
	for (size_t i = 0; i < left && i < 8; i++)
		if (at[i] != 0xff)
			return false;
	return true;
}

// The stream's next event, or the end.
// Where no event can be read, the rest of the buffer is left out and counted as damaged, unless it
// is filling. At the stream's end its memory is given back.
static void advance(struct etl_file *file, struct stream *stream)
{
	for (;;) {
		size_t left = stream->end - stream->at, size;
		const uint8_t *at;

		if (left == 0) {
			if (load(file, stream))
				continue;
			mem_free(stream->bytes);
			file->memory -= stream->capacity;
			stream->bytes = NULL;
			stream->capacity = 0;
			stream->event.time = NEVER;
			return;
		}
		ASSERT(stream->at < stream->end && stream->end <= stream->capacity);
		at = stream->bytes + stream->at;
		size = parse_event(at, left, &stream->event);
		if (size == 0) {
			file->header.damaged += left >= 8 && !is_rest(at, left);
			stream->at = stream->end;
			continue;
		}
		size = (size + 7) & ~(size_t)7;
		stream->at += size < left ? size : left;
		stream->event.cpu = stream->cpu;
		if (stream->event.data && stream->event.time != NEVER)
			return;
	}
}

// The stream whose event is the first, and until when it will be.
// Both the first and the second time of all streams are found in one pass: `until` is the second.
static void choose(struct etl_file *file)
{
	uint64_t first = NEVER;

	file->current = SIZE_MAX;
	file->until = NEVER;
	for (size_t i = 0; i < file->streams_count; i++) {
		uint64_t time = file->streams[i].event.time;

		if (time < first) {
			file->until = first;
			first = time;
			file->current = i;
		} else if (time < file->until) {
			file->until = time;
		}
	}
}

// While the stream that was chosen stays before `until`, no other needs to be looked at: on a
// machine with many processors that is most of the time.
bool etl_file_next(struct etl_file *file, struct etl_event *event)
{
	if (!file->begun) {
		for (size_t i = 0; i < file->streams_count; i++)
			advance(file, &file->streams[i]);
		file->begun = true;
		choose(file);
	} else if (file->current != SIZE_MAX) {
		struct stream *stream = &file->streams[file->current];

		advance(file, stream);
		if (stream->event.time >= file->until)
			choose(file);
	}
	if (file->current == SIZE_MAX || file->err.kind != ERR_NONE)
		return false;
	ASSERT(file->current < file->streams_count);
	*event = file->streams[file->current].event;
	return event->time != NEVER;
}

void etl_file_rewind(struct etl_file *file)
{
	for (size_t i = 0; i < file->streams_count; i++) {
		struct stream *stream = &file->streams[i];

		stream->next = stream->first;
		stream->at = stream->end = 0;
	}
	file->begun = false;
	file->header.read = file->header.damaged = 0;
}

// ---- the index, and the log's own header ----

// A stream is a processor of a logger: a log that was merged has several loggers.
static struct stream *stream_of(struct etl_file *file, const uint8_t *header)
{
	bool wide = bytes_get_u16(header + 52) & BUFFER_WIDE_CPU;
	uint32_t cpu = wide ? bytes_get_u16(header + 40) : header[40];
	bool added;
	uint64_t *at =
		map_put(&file->by_cpu, (uint64_t)bytes_get_u16(header + 42) << 16 | cpu, &added);

	if (added) {
		if (file->streams_count == STREAMS_MAX) {
			err_set(&file->err, ERR_FORMAT, "it has more than %d processors",
				STREAMS_MAX);
			return NULL;
		}
		*at = file->streams_count;
		*MEM_ADD(file->streams, file->streams_count, file->streams_capacity) =
			(struct stream){ .cpu = cpu };
	}
	return &file->streams[*at];
}

// Buffers of a stream are linked in the order of the file, which is that of their times.
static bool add_buffer(struct etl_file *file, const uint8_t *header, uint32_t size)
{
	struct stream *stream = stream_of(file, header);
	uint32_t number = (uint32_t)file->buffers_count + 1;

	if (!stream)
		return false;
	ASSERT(size >= BUFFER_HEADER && size <= BUFFER_MAX && stream->last < number);
	MEM_ROOM(file->buffers, file->buffers_capacity, number);
	file->buffers[file->buffers_count++] = (struct buffer){ file->header.end, size, NONE };
	file->is_packed |= bytes_get_u16(header + 52) & BUFFER_PACKED;
	if (number == 1)
		file->packing = bytes_get_u16(header + 44);
	if (stream->last)
		file->buffers[stream->last - 1].next = number;
	else
		stream->first = number;
	stream->last = number;
	return true;
}

// Headers alone, so a log of 10 GB in buffers of 64 KiB costs some 150,000 short reads. It ends
// where a header makes no sense, and what is after it counts as cut.
static bool read_index(struct etl_file *file)
{
	uint8_t header[BUFFER_HEADER];
	uint64_t length;
	uint32_t size;

	if (!file_is_regular(file->fd, &length))
		return err_set(&file->err, ERR_IO, "it is not a regular file");
	while (length - file->header.end >= BUFFER_HEADER && file->buffers_count < UINT32_MAX - 1) {
		if (!read_exactly(file, header, sizeof header, file->header.end))
			return false;
		size = bytes_get_u32(header);
		if (size < BUFFER_HEADER || size > BUFFER_MAX || size > length - file->header.end)
			break;
		if (!add_buffer(file, header, size))
			return false;
		file->header.end += size;
	}
	file->header.cut = file->header.end < length;
	return true;
}

// Of the clocks there are: the counter of the system, the system's time in 100 ns, the processor's.
// Units a second: 10^7 of the system's time, and of the processor's counter its megahertz.
static uint64_t find_frequency(const uint8_t *log, const uint8_t *tail)
{
	uint64_t frequency = bytes_get_u64(tail + 8);

	switch (bytes_get_u32(tail + 24)) {
	case 2:
		return 10000000;
	case 3:
		return (uint64_t)bytes_get_u32(log + 52) * 1000000;
	default:
		return frequency;
	}
}

// Of the ways in which Windows packs buffers, those that xpress does not unpack.
static bool check_packing(struct etl_file *file, uint32_t modes)
{
	static const char *const names[] = { [2] = "LZNT1", [4] = "XPRESS-Huffman" };
	const char *name = file->packing < sizeof names / sizeof *names ? names[file->packing]
									: NULL;

	if (!file->is_packed || !(modes & LOG_PACKED) || !name)
		return true;
	return err_set(&file->err, ERR_FORMAT,
		       "its buffers are packed by %s, and only XPRESS is unpacked here: write it "
		       "unpacked on Windows (xperf -merge IN.etl OUT.etl, without -compress)",
		       name);
}

// The first event of the first buffer describes the log. Between its fields are two pointers of 4
// or 8 bytes, so what follows them is counted from `tail`.
static bool read_log_header(struct etl_file *file, const struct etl_event *event)
{
	const uint8_t *log = event->data, *tail;
	struct etl_header *header = &file->header;
	uint64_t began;

	header->pointer_bytes = event->size >= 48 && bytes_get_u32(log + 44) == 4 ? 4 : 8;
	if (event->size < LOG_HEAD + 2 * header->pointer_bytes + LOG_ZONE + LOG_TAIL)
		return err_set(&file->err, ERR_FORMAT, "its header is too short");
	tail = log + LOG_HEAD + 2 * header->pointer_bytes + LOG_ZONE;
	header->build = bytes_get_u32(log + 8);
	header->processors = bytes_get_u32(log + 12);
	header->events_lost = bytes_get_u32(log + 48);
	header->buffers_lost = bytes_get_u32(tail + 28);
	header->first = event->time;
	header->frequency = find_frequency(log, tail);
	began = bytes_get_u64(tail + 16);
	if (began > UNIX_EPOCH && began - UNIX_EPOCH < UINT64_MAX / 100)
		header->began_unix_ns = (began - UNIX_EPOCH) * 100;
	if (!check_packing(file, bytes_get_u32(log + 32)))
		return false;
	if (header->frequency == 0 || header->frequency > FREQUENCY_MAX)
		return err_set(&file->err, ERR_FORMAT, "its clock has no frequency");
	header->tick_ns = bytes_get_u32(tail + 24) == 2 ? (uint64_t)bytes_get_u32(log + 24) * 100
							: NS_PER_S / header->frequency;
	return true;
}

bool etl_file_is(const uint8_t *head, size_t size)
{
	uint32_t bytes;

	if (size < BUFFER_HEADER + 32)
		return false;
	bytes = bytes_get_u32(head);
	return bytes >= BUFFER_HEADER && bytes <= BUFFER_MAX &&
	       bytes_get_u16(head + 54) == BUFFER_IS_HEADER &&
	       (head[BUFFER_HEADER + 2] == 1 || head[BUFFER_HEADER + 2] == 2) &&
	       head[BUFFER_HEADER + 3] == 0xc0;
}

// The first buffer is read for the log's header and read again by the first pass.
struct etl_file *etl_file_open(int fd, struct err *err)
{
	struct etl_file *file = mem_alloc(1, sizeof *file);
	struct etl_event event;

	file->fd = fd;
	if (read_index(file)) {
		etl_file_rewind(file);
		if (!file->streams_count || !load(file, &file->streams[0]) ||
		    !parse_event(file->streams[0].bytes, file->streams[0].end, &event) ||
		    !event.data)
			err_set(&file->err, ERR_FORMAT, "its first buffer is damaged");
		else
			read_log_header(file, &event);
		etl_file_rewind(file);
	}
	if (file->err.kind == ERR_NONE)
		return file;
	*err = file->err;
	etl_file_close(file);
	return NULL;
}

void etl_file_close(struct etl_file *file)
{
	if (!file)
		return;
	for (size_t i = 0; i < file->streams_count; i++)
		mem_free(file->streams[i].bytes);
	MEM_FREE(file->streams, file->buffers, file->packed);
	map_fini(&file->by_cpu);
	mem_free(file);
}

const struct etl_header *etl_file_header(const struct etl_file *file)
{
	return &file->header;
}

// Seconds and the rest apart, since the product of a time and 10^9 would leave 64 bits. Half of all
// 64 bits at most, so that what is added to it later does not overflow.
uint64_t etl_file_ns(const struct etl_file *file, uint64_t time)
{
	uint64_t since = time > file->header.first ? time - file->header.first : 0;
	uint64_t frequency = file->header.frequency, seconds = since / frequency;

	ASSERT(frequency > 0 && frequency <= FREQUENCY_MAX);
	if (seconds > UINT64_MAX / NS_PER_S / 2)
		return UINT64_MAX / 2;
	return seconds * NS_PER_S + since % frequency * NS_PER_S / frequency;
}

bool etl_file_ok(const struct etl_file *file, struct err *err)
{
	if (file->err.kind != ERR_NONE)
		*err = file->err;
	return file->err.kind == ERR_NONE;
}
