// gate: whether a request may come in at all.
//
// Other programs and other pages on this machine can reach a port on the loopback interface. So: a
// page of another site is recognised by Host (its own name, made to lead here) or by Origin; a
// program of another user by the token, which only the one who started the server was given.
//
// Pure: what a request says goes in, what to answer comes out.
#pragma once

#include "view/refusal.h"

#include <stddef.h>
#include <stdint.h>

enum { GATE_TOKEN_BYTES = 16, GATE_TOKEN_DIGITS = 32, GATE_LENGTH_MAX = 8192 };

// The port that is served, and the token that only its address has. Never changes.
struct gate {
	uint16_t port;
	char token[GATE_TOKEN_DIGITS + 1];
};

// What a request says. A header that was not sent is NULL, and has been sent once unless `doubled`.
struct gate_request {
	const char *method;
	const char *path;                                 // as it was sent, in front of any '?'
	size_t length;                                    // bytes of path and query
	const char *host, *origin, *site, *authorization; // Host, Origin, Sec-Fetch-Site …
	bool doubled;                                     // one of these more than once
};

// One header of a request; those that nobody asks about are passed over. `value` is borrowed, and
// "" where there is none.
void gate_header(struct gate_request *request, const char *name, const char *value);

// A token of random bytes.
void gate_init(struct gate *gate, uint16_t port, const uint8_t bytes[static GATE_TOKEN_BYTES]);

// REFUSAL_NONE: it may. Else *why says so in a line. Takes the same time for every wrong token.
enum refusal gate_check(const struct gate *gate, const struct gate_request *request,
			const char **why);
