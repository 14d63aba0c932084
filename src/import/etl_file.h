// etl_file: the events of a Windows event log (.etl), as a session of ETW has written it, in the
// order of their times.
//
// The file is buffers. Those of one processor and logger are in order; across them the order is
// made here. An index of all buffers is read first (their headers alone); then one buffer of each
// processor is in memory. No length in the file is trusted.
//
//     etl_file_open
//       etl_file_next     until false; etl_file_rewind begins again
//     etl_file_close
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

// Groups of the kernel's own events that are distinguished, as Windows numbers them; then ours.
enum etl_group {
	ETL_MEMORY = 0x02,
	ETL_PROCESS = 0x03,
	ETL_THREAD = 0x05,
	ETL_HEAP = 0x10,
	ETL_IMAGE = 0x14,
	ETL_STACK = 0x18,
	ETL_IMAGE_ID = 0x100, // what leads to an image's symbols
	ETL_OTHER,
};

#define ETL_UNKNOWN UINT32_MAX // "no process", "no thread"

// One event with its header taken off. `data` has `size` bytes of what the provider wrote, in its
// own layout; it is never NULL in an event that is given.
// `pointer_bytes` is 4 or 8: how wide addresses and sizes are in `data`. `opcode` is the event's
// kind within its group, `version` that of its layout.
struct etl_event {
	uint64_t time; // of the log's clock: etl_file_ns
	uint32_t cpu;
	uint16_t group; // enum etl_group
	uint8_t opcode, version;
	uint8_t pointer_bytes;
	uint32_t process, thread; // ETL_UNKNOWN: its header does not say
	const uint8_t *data;      // borrowed until the next call
	size_t size;
};

// What the log says of itself. Losses are as Windows counted them while it wrote.
// `tick_ns` is how far two readings of the clock are apart at least. Figures of a pass begin at 0
// with each etl_file_rewind.
struct etl_header {
	uint64_t began_unix_ns;
	uint64_t first, frequency; // of the clock: its first value, and its units a second
	uint64_t tick_ns;
	uint64_t events_lost, buffers_lost;
	uint32_t build; // of Windows
	uint32_t processors, pointer_bytes;
	uint64_t read;    // bytes, of this pass
	uint64_t damaged; // buffers with a damaged rest, of this pass
	uint64_t end;     // where its buffers end
	bool cut;         // it ends before its last buffer does
};

// Private. One thread.
struct etl_file;

// Whether a file that begins so is one.
bool etl_file_is(const uint8_t *head, size_t size);

// Borrows the descriptor of a regular file. NULL: its header cannot be read.
struct etl_file *etl_file_open(int fd, struct err *err);
void etl_file_close(struct etl_file *file); // NULL is allowed

// Borrowed; it changes as events are read.
const struct etl_header *etl_file_header(const struct etl_file *file);
uint64_t etl_file_ns(const struct etl_file *file, uint64_t time); // since the log began

// The next event; false at the end and at a failure, which etl_file_ok tells.
bool etl_file_next(struct etl_file *file, struct etl_event *event);
void etl_file_rewind(struct etl_file *file); // the first event is the next one again
bool etl_file_ok(const struct etl_file *file, struct err *err);
