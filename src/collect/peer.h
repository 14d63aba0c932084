// peer: what the kernel says about another process.
//
// A pid means something only while its process is alive, or a zombie that nobody has reaped. Each
// call says nothing (0, NULL, false) rather than something wrong when it is not allowed to look.
#ifndef COLLECT_PEER_H
#define COLLECT_PEER_H

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

// A pidfd of the process at the other end of a Unix socket, or of `pid`; -1: none.
int peer_pidfd(int socket_fd, uint32_t pid);

// The process that it is a child of; 0: not known.
uint32_t peer_parent(uint32_t pid);

// Its arguments: an array in one allocation (mem_free); the first 64 KiB of them.
char **peer_args(uint32_t pid, uint32_t *count);

// Its wait status, once it has ended: from its pidfd where the kernel can (6.15), else while it is
// a zombie.
bool peer_wait_status(int pidfd, uint32_t pid, int *status);

// Bytes of its memory that are resident.
uint64_t peer_resident(uint32_t pid);

// The name of one of its threads.
bool peer_thread_name(uint32_t pid, uint32_t tid, char name[16]);

// `path`, which is a path for the process, as one for us in `seen`, with the file's size and its
// time of last change (0 if it cannot be seen). It differs where the process has another root
// directory.
void peer_file(uint32_t pid, const char *path, struct str *seen, uint64_t *size,
	       uint64_t *mtime_ns);

#endif
