// vault: an append-only file whose pages have checksums.
//
//     vault_create                      vault_open: what was written, with its checksums
//       vault_append    any times         vault_read    any place, any number of threads
//     vault_finish
//     vault_close                       vault_close
//
// A vault that was being written when its process ended goes on with vault_resume, from what was
// known of it at some moment: its size, its checksums and the bytes that had not been written.
//
// The checksums are kept in memory, 4 bytes for 16 KiB, and are the caller's to store. A page is
// checked when it is first read. Reading uses pread and buffers of its own: nothing is mapped.
// Errors of writing are sticky: ask vault_finish.
#pragma once

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum { VAULT_PAGE = 1 << 14 };

struct vault {
	char name[24]; // of the file, for messages
	int fd;        // -1: not open
	uint64_t size; // bytes appended
	uint32_t *sums;
	size_t sums_count, sums_capacity;
	uint8_t *buffer; // private: what is appended and not yet written
	size_t filled, buffer_size;
	uint8_t *checked; // private: by page
	int error;        // errno of the first failure to write
};

// In the directory that `directory` is a descriptor of. An old file is replaced.
bool vault_create(struct vault *vault, int directory, const char *name, struct err *err);

// `size` and `sums` (size / VAULT_PAGE, rounded up) are what vault_finish left; sums is taken.
bool vault_open(struct vault *vault, int directory, const char *name, uint64_t size, uint32_t *sums,
		struct err *err);

// `sums` is taken, and has as many as there are whole pages in size - tail_size; what was appended
// later is cut off. ERR_FORMAT: the file is shorter than that.
bool vault_resume(struct vault *vault, int directory, const char *name, uint64_t size,
		  uint32_t *sums, size_t sums_count, const void *tail, size_t tail_size,
		  struct err *err);

// Errors are asked for in the end.
void vault_append(struct vault *vault, const void *bytes, size_t size);

// All that was appended, of one that is being written; the caller's. NULL: it is damaged.
void *vault_copy(const struct vault *vault, struct err *err);

// Write what is left. False if anything could not be written.
bool vault_finish(struct vault *vault, struct err *err);

// Bytes from `at`; it is an error if they are not all there, or not as they were written.
bool vault_read(struct vault *vault, uint64_t at, void *out, size_t size, struct err *err);

// Close the file. Accepts one that was never opened, if fd is -1 or the struct is all 0.
void vault_close(struct vault *vault);
