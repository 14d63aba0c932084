// file: what we need from an operating system to read and write files.
//
// On entry: pointers are not NULL. Failures say what the system said; the caller, who knows the
// path, adds it. No call changes a descriptor's flags, and every descriptor made here is closed
// on exec.
#ifndef OS_FILE_H
#define OS_FILE_H

#include "base/err.h"
#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

// A whole file as memory, read-only. Owns its memory, not the file: renaming or removing the file
// does no harm, but cutting it short while a view is open makes reading past its new end a SIGBUS.
struct file_view {
	const uint8_t *bytes; // never NULL once open, also for an empty file
	size_t size;
};

// View the file at `path`: a regular file is mapped, anything else that can be read (a pipe, a
// file of /proc) is read to its end. A directory is refused.
bool file_view_open(struct file_view *view, const char *path, struct err *err);

// The same, of an open descriptor, which stays the caller's. A regular file is seen from its
// first byte, wherever the descriptor stands.
bool file_view_fd(struct file_view *view, int fd, struct err *err);

// Accepts { 0 }.
void file_view_close(struct file_view *view);

// Append all that can be read from `fd` to `out`.
bool file_read_all(int fd, struct str *out, struct err *err);

// Write all of `bytes`, however many calls that takes.
bool file_write_all(int fd, const void *bytes, size_t size, struct err *err);

// A file without a name in $TMPDIR (or /tmp), for reading and writing; it goes away when its
// descriptor is closed, also when we are killed. Returns the descriptor, or -1.
int file_temp(struct err *err);

#endif
