// file: what we need from an operating system to read and write files.
//
// On entry: pointers are not NULL. Failures say what the system said; the caller, who knows the
// path, adds it. No call changes a descriptor's flags, and every descriptor made here is closed
// on exec.
//
// A descriptor is an int, as everywhere; on Windows one of the C run-time, for bytes (nothing is
// translated), which another program may rename or remove meanwhile. Paths are UTF-8.
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum file_how {
	FILE_READ = 0,
	FILE_WRITE = 1,       // to read and to write
	FILE_CREATE = 2,      // make it where it is missing
	FILE_NEW = 4,         // make it; EEXIST if it is there
	FILE_EMPTY = 8,       // what was in it is gone
	FILE_PRIVATE = 16,    // if it is made: for its owner alone
	FILE_VANISHES = 32,   // it has no name any more, and goes away when it is closed
	FILE_ONLY_WRITE = 64, // a pipe or a device may refuse to be read
	FILE_AS_FOLDER = 128, // if file_open_in makes it: whoever may read the folder may read it
};

// Open, as `how` says (enum file_how); never waits for the other end of a pipe to read from. A
// descriptor, or -1 and errno.
int file_open(const char *path, unsigned how);

// The same in a directory that file_open_folder has opened, whatever its path is by now.
int file_open_in(int folder, const char *name, unsigned how);
int file_open_folder(const char *path);
// Open a directory and lock it, until the descriptor is closed. -1: EWOULDBLOCK if another has the
// lock. A file system without locks gives it to everybody.
int file_lock_folder(const char *path);

// Open a file to read and lock it in the same manner, beside those who only read or write it.
int file_lock(const char *path);
bool file_remove_in(int folder, const char *name);
bool file_rename_in(int folder, const char *from, const char *to); // replaces
bool file_close(int fd); // false and errno; -1 is nothing to close

// `fd` leads to what `other` leads to, from now on, at the same place in it.
void file_become(int fd, int other);

// Bytes from `at`, wherever the descriptor is: how many there were, fewer only at the end.
// -1 and errno.
ptrdiff_t file_read_at(int fd, void *bytes, size_t size, uint64_t at);

// Write once. How many bytes were taken, or -1 and errno.
ptrdiff_t file_write_some(int fd, const void *bytes, size_t size);

// Cut it, and go on writing there.
bool file_cut(int fd, uint64_t size); // false and errno

// Say that whoever has it open here is writing it, until the descriptor and its copies are closed;
// and ask whether one says so of a file. Both need a regular file. A file system without locks
// knows of nobody.
void file_claim(int fd);
bool file_is_claimed(int fd);

// Hold a file while the descriptor is open, beside others who do; or alone. False: others hold it
// otherwise. On Windows none can be held alone.
bool file_hold(int fd, bool alone);

// When it was last changed, since 1970; 0: not known.
uint64_t file_changed_ns(int fd);

// Have room for `size` bytes from `at`, while the file keeps its size. False and errno: ENOSPC and
// its like, or that it cannot be promised.
bool file_reserve(int fd, uint64_t at, uint64_t size);

// Does this errno say that no more will fit: the disk, the user's share, the largest file?
bool file_is_full(int number);

// Is it a regular file, and how large?
bool file_is_regular(int fd, uint64_t *size);

// The largest file that we may write (UINT64_MAX: no limit).
uint64_t file_limit(void);

// Of a path: what is there; may we write to it, or make something in it.
enum file_kind { FILE_IS_MISSING, FILE_IS_REGULAR, FILE_IS_FOLDER, FILE_IS_OTHER };
enum file_kind file_look(const char *path);
bool file_may_write(const char *path);
bool file_remove(const char *path);                               // false and errno, as are these:
bool file_rename(const char *from, const char *to, bool replace); // EEXIST unless `replace`
bool file_make_folder(const char *path, bool ours);               // `ours`: for its owner alone
bool file_remove_folder(const char *path);
bool file_touch(const char *path); // it was changed just now

// Let those into a folder of ours, and nobody else, who may read a file; its owner too, where we
// may give it away. On Windows a folder has the rights of the one that it is in.
bool file_share_folder(const char *path, const char *file);

// Let those into an open file of ours, and nobody else, who may read or write the file at `path`.
// Nothing on Windows, where it has the rights of its folder.
void file_let_in(int fd, const char *path);

// Tell the names of what is in a folder, in no order, without "." and "..". False and errno.
bool file_list(const char *path, void (*tell)(void *context, const char *name), void *context);

// A stream to a file, as fopen; and one of a copy of a descriptor. NULL and errno.
FILE *file_stream(const char *path, const char *mode);
FILE *file_stream_copy(int fd, const char *mode);

// The path from the root on; as it is where it leads nowhere. Owned by the caller.
char *file_absolute(const char *path);

// Whether a path leads from the root of this machine's files on, whatever folder we are in. On
// Windows that has a drive: a path that names another machine is none.
bool file_is_rooted(const char *path);

// Where the last part of a path begins.
const char *file_name(const char *path);

// The user's directory for caches, without a slash at the end; NULL: there is none. Owned by the
// caller.
char *file_caches(void);

// The path of a folder of ours in there, appended and made as far as it is missing: "" is all that
// we keep, a name a folder in it. False: no caches, or it cannot be made; errno says why.
bool file_cache_folder(const char *name, struct str *path);

// A whole file as memory, read-only. Owns its memory, not the file: renaming or removing the file
// does no harm. Where it is cut short while a view is open, what is past its new end reads as zeros
// from there on (os/mapped.h); Windows does not let it be cut.
struct file_view {
	const uint8_t *bytes; // never NULL once open, also for an empty file
	size_t size;
};

// View the file at `path`: a regular file is mapped, anything else that can be read (a pipe, a
// file of /proc) is read to its end. A directory is refused.
bool file_view_open(struct file_view *view, const char *path, struct err *err);

// The same, of an open descriptor, which stays the caller's. A regular file is seen from its
// first byte, wherever the descriptor is.
bool file_view_fd(struct file_view *view, int fd, struct err *err);

// Accepts { 0 }.
void file_view_close(struct file_view *view);

// Append the contents of the file at `path`, if it is a regular one of at most `size_max` bytes;
// never waits for one that is not.
bool file_read_regular(const char *path, size_t size_max, struct str *out, struct err *err);
// The same of one that is open, which it leaves so.
bool file_read_open(int fd, size_t size_max, struct str *out, struct err *err);

// Append all that can be read from `fd` to `out`.
bool file_read_all(int fd, struct str *out, struct err *err);

// Write all of `bytes`, however many calls that takes.
bool file_write_all(int fd, const void *bytes, size_t size, struct err *err);

// A file without a name in $TMPDIR (or /tmp), for reading and writing; it goes away when its
// descriptor is closed, also when we are killed. Returns the descriptor, or -1.
int file_temp(struct err *err);
