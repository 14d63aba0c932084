// peer: what the kernel says about another process.
//
// A pidfd is, on Windows, a handle.
//
// A pid means something only while its process is alive, or a zombie that nobody has reaped. Each
// call says nothing (0, NULL, false) rather than something wrong when it is not allowed to look.
#pragma once

#include "base/str.h"
#include "trace/trace.h"

#include <stdbool.h>
#include <stdint.h>

// A pidfd of the process at the other end of a Unix socket, or of `pid`; -1: none.
int peer_pidfd(int socket_fd, uint32_t pid);

// Linux: whether it surely cannot reach the collector: it is in another network, and its /tmp is
// not ours. False where that is not known.
bool peer_shut_out(uint32_t pid);

// The process that it is a child of; 0: not known.
uint32_t peer_parent(uint32_t pid);

// Linux: the same, by a pidfd of it where the kernel can (6.13).
uint32_t peer_parent_of(int pidfd, uint32_t pid);

// Linux: how long ago the process began, to the kernel's tick of 10 ms; 0: not known.
uint64_t peer_age_ns(uint32_t pid);

// Which process a child is that cannot say it.
struct peer_wanted {
	uint32_t pid;                                  // as it sees itself; 0: not known
	uint32_t parent;                               // the process that forked it; 0: not known
	uint64_t since_ns;                             // CLOCK_MONOTONIC: it began after that
	uint64_t until_ns;                             // and had by then
	bool (*is_known)(void *context, uint32_t pid); // a process that it is not
	void *context;
};

// As we see it; 0: there is no such process. Of several the newest. One that is not the parent's
// child, or its sibling, is it only if the parent has ended.
uint32_t peer_find(const struct peer_wanted *wanted);

// Linux: whether a process that is not known and began since then has the file mapped, or may have.
// `pid`, `parent` and `until_ns` do not matter.
bool peer_has_mapped(const struct peer_wanted *wanted, int fd);

// Its arguments: an array in one allocation (mem_free); the first 64 KiB of them.
char **peer_args(uint32_t pid, uint32_t *count);

// The same of what the kernel, or a guest, has of them: each with a NUL.
char **peer_args_of(const char *bytes, size_t length, uint32_t *count);

// Linux: a process that its parent has reaped can still be asked how it ended, by the socket that
// it was connected with (6.16).
bool peer_keeps_ends(void);

// How it ended, once it has: from its pidfd where the kernel can (6.15), else while it is a zombie.
bool peer_exit(int pidfd, uint32_t pid, enum trace_exit *exit, uint32_t *value);

// The same of a status that a launcher waited for.
void peer_decode(int status, enum trace_exit *exit, uint32_t *value);

// Whether it has ended, a zombie or gone.
bool peer_ended(int pidfd);

// Linux: whether it is stopped, or traced by another process, which may stop it at any time.
bool peer_held(uint32_t pid);

// Give a pidfd back.
void peer_close(int pidfd);

// Bytes of its memory that are resident.
uint64_t peer_resident(uint32_t pid);

// What it has used of processors, in all its threads; 0: that is not known.
uint64_t peer_used_ns(uint32_t pid);

// Bytes by kind: anonymous, of files, shared by design (shmem, memfd).
struct peer_kinds {
	uint64_t anonymous, file, shared;
};

// Bytes of it that are resident and that are swapped out, page faults so far, those that had to
// read and others, and what is resident by kind. False: it has ended, or is ending and has no
// memory any more.
struct peer_pages {
	uint64_t rss, swapped, minor_faults, major_faults;
	struct peer_kinds resident;
};
bool peer_pages(uint32_t pid, struct peer_pages *pages);

// Resident memory where a page that n processes share counts 1/n, and the same by kind (all 0:
// before Linux 5.4); 0: the kernel does not say. It looks at every page, so it takes some 25 us a
// megabyte.
uint64_t peer_proportional(uint32_t pid, struct peer_kinds *kinds);

// Where it may map something, and how much: the lowest address, the one after the highest; bytes
// mapped (RLIMIT_AS), and private and writable ones (RLIMIT_DATA). 0: not known, or no limit. All
// 0 on Windows, where the guest says it (NOTE_SPACE).
// And what its control group may hold, the least of those that it is in, and how often the kernel
// has killed for lack of memory there. `parent_image` is the image that forked it, 0 if none did: a
// child is in its parent's group.
struct peer_space {
	uint64_t low, end;
	uint64_t mapped_limit, data_limit;
	uint64_t files_limit; // peer_full_files, of those that did not fork
	uint64_t group_limit, group_kills;
	char group_events[256]; // the file that counts; "": none
	// Of the group around it, which counts what happens in it, too (version 2); else both 0.
	bool group_counts_inner;
	uint64_t group_around_kills;
};
// False: it has ended meanwhile, and its number may be another's.
bool peer_space(uint32_t pid, int pidfd, int bits, uint32_t parent_image, struct peer_space *space);

// Linux: /proc/PID/stat of a process or a thread, from the field of that number on: 3, its state,
// or a later one. It is in `bytes`. NULL: there is none.
const char *peer_stat(uint32_t pid, int number, char *bytes, size_t size);

// Linux: its limit of descriptors, where that leaves no room for the two that an answer carries;
// else 0.
uint64_t peer_full_files(uint32_t pid);

// How often it has killed there since then.
uint64_t peer_killed(const struct peer_space *space);

// Whether it has such a thread. True where that is not known.
bool peer_thread_lives(uint32_t pid, uint32_t tid);

// The name of one of its threads.
bool peer_thread_name(uint32_t pid, uint32_t tid, char name[16]);

// `path`, which is a path for the process, as one for us in `seen`, with the file's size and its
// time of last change (0 if it cannot be seen). It differs where the process has another root
// directory.
void peer_file(uint32_t pid, const char *path, struct str *seen, uint64_t *size,
	       uint64_t *mtime_ns);
