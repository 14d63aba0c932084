// hello: what a visitor of the door says, and what it is answered (wire/segment.h).
#pragma once

#include "wire/segment.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/types.h>

enum {
	HELLO_ARGS_MAX = 64 << 10,
};

// What a stranger sends, as it came.
struct hello_heard {
	struct segment_hello hello;
	char args[HELLO_ARGS_MAX]; // what comes after the path begins in `hello`, where that ends
	size_t size;
	struct ucred from;
	int fd; // that it sent; -1: none
};

// Its fields are all set, and `fd` is the caller's. -1 with errno: as recv.
ssize_t hello_receive(int fd, struct hello_heard *heard);

// Nothing of it is used before its length and each of its numbers were looked at.
bool hello_valid(const struct segment_hello *hello, size_t size);

// Send the welcome, with the descriptors that it is about unless it is a refusal.
bool hello_answer(int fd, const struct segment_welcome *welcome, const int *fds, size_t count);
