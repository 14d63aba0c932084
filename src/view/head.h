// head: the head of an HTTP/1.1 request, for a server that has no library to read it.
//
//     head_size       is it there to its end?
//     head_parse      what the gate looks at (gate.h), and whether the connection ends with it
//
// Strict: what nobody's browser sends is refused and not guessed at. Lines end with CR and LF, and
// are not folded; the target is a path of visible ASCII; no control characters, no space before a
// colon. A request with a body ends its connection, so that the body is never read as a request.
//
// Pure: bytes in, words out.
#pragma once

#include "view/gate.h"

enum { HEAD_BYTES_MAX = 64 << 10 };

struct head {
	struct gate_request gate;
	const char *query; // what is after the '?'; NULL: there is none
	bool is_head;      // the answer goes without its body
	bool closes;       // no other request follows on this connection
};

// Bytes of the head that begins at `bytes`, with the empty line after it. 0: it goes on. What is
// before `from` was looked at already, and grew since.
size_t head_size(const char *bytes, size_t length, size_t from);

// Take apart a head of that size, in place: what `head` says is borrowed from it. False: it is
// none, and *why says so in a line.
bool head_parse(struct head *head, char *bytes, size_t size, const char **why);
