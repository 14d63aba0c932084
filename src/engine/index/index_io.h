// index_io: the small files of an index, `head` and `state`: written whole or not at all, and read
// without believing them.
//
//     index_out_new                      index_in_open: its checksum is right
//       index_out_put …                    index_in_take …
//     index_out_end: it replaces         index_in_close
//     what was there
//
// A file is its bytes and a checksum of them. It is written under another name first, so that
// whenever we are killed there is the old one or the new one.
#pragma once

#include "base/err.h"
#include "os/file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct index_out;

// The names of all such files, up to NULL: what is written here, index_disk removes.
extern const char *const index_io_names[];

// In the directory of the descriptor, under one of index_io_names. Errors are asked for in the end.
struct index_out *index_out_new(int directory, const char *name);
void index_out_put(struct index_out *out, const void *bytes, size_t size);
void index_out_put_u64(struct index_out *out, uint64_t value);
void index_out_put_varint(struct index_out *out, uint64_t value);

// The number of items, and they.
void index_out_put_array(struct index_out *out, const void *items, size_t count, size_t size);

// Close it, give it its name and free it. False: nothing was replaced.
bool index_out_end(struct index_out *out, struct err *err);

// Never mind: nothing is replaced.
void index_out_drop(struct index_out *out);

// What is left to read. A take that does not fit makes it bad, and gives zeros.
struct index_in {
	const uint8_t *at, *end;
	bool bad;
	struct file_view view;
};

// ERR_FORMAT: there is none, or its checksum is wrong.
bool index_in_open(struct index_in *in, int directory, const char *name, struct err *err);
void index_in_close(struct index_in *in);

// Bytes; a number.
void index_in_take(struct index_in *in, void *out, size_t size);
uint64_t index_in_take_u64(struct index_in *in);
uint64_t index_in_take_varint(struct index_in *in);

// How many items of a size follow; 0 if there cannot be so many.
size_t index_in_take_count(struct index_in *in, size_t size);

// Whether what was taken as a bool is one: a file's byte may be any.
bool index_in_is_flag(const bool *taken);

// An array of the caller's; one item more than *count, zero.
void *index_in_take_array(struct index_in *in, size_t *count, size_t size);
