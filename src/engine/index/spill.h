// spill: a file without a name that is written once from beginning to end, then read so.
//
//     spill_open
//       spill_put     any times
//     spill_turn
//       spill_get     until it says false
//     spill_ok        did all of it go well?
//     spill_close
//
// For what does not fit in memory for the moment. The file goes away by itself, also when we are
// killed. Errors are sticky. One thread.
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct spill {
	int fd; // 0: not open
	int error;
	uint64_t size;   // bytes put
	uint64_t loaded; // bytes read from the file
	uint8_t *buffer;
	size_t capacity, filled, at;
};

// In the directory of the descriptor. `buffer_bytes` is what it takes of memory.
bool spill_open(struct spill *spill, int directory, size_t buffer_bytes, struct err *err);
// The same where the system has its temporary files.
bool spill_open_anywhere(struct spill *spill, size_t buffer_bytes, struct err *err);
void spill_close(struct spill *spill); // accepts { 0 }

// What is in the buffer goes to the file.
void spill_flush(struct spill *spill);

// At most the buffer's size at once.
static inline void spill_put(struct spill *spill, const void *bytes, size_t size)
{
	if (spill->capacity - spill->filled < size)
		spill_flush(spill);
	memcpy(spill->buffer + spill->filled, bytes, size);
	spill->filled += size;
	spill->size += size;
}

// The same, of a number.
void spill_put_varint(struct spill *spill, uint64_t value);

// Bytes that were put, while more may come. False: they could not be read.
bool spill_copy(const struct spill *spill, uint64_t at, void *out, size_t size);

// From writing to reading, from the beginning.
void spill_turn(struct spill *spill);

// False, and zeros, where there is no more.
bool spill_get(struct spill *spill, void *bytes, size_t size);
bool spill_get_varint(struct spill *spill, uint64_t *value);

// Whether everything was written and read.
bool spill_ok(const struct spill *spill, struct err *err);
