// place: what servers that something is sent to have in common, whatever is spoken there: how they
// are named, how long one waits for them, and how what they say is passed on.
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "os/http.h"

#include <stdbool.h>
#include <stddef.h>

enum { PLACE_TRIES = 8, PLACE_LINE = 201 };

// "HOST:PORT" or "[::1]:PORT", with `port` where none is said. Append. False: it is none of these.
bool place_add_server(struct str *server, const char *text, size_t length, unsigned port);

// Wait before try number `tries`, from 1: 0.1 s, then twice as long each time. False: there were
// `tries_max` (0: PLACE_TRIES, some twelve seconds), or `stop` (NULL: never) says so.
bool place_wait(unsigned tries, unsigned tries_max, bool (*stop)(void *context), void *context);

// After a failed http_post: *err says what that means of this server. Whether it is worth another
// try.
bool place_explain(const struct http *http, const char *server, struct err *err);

// What a server said, up to the end of a line, as UTF-8, with nothing in it that a terminal obeys.
const char *place_line(const char *said, size_t length, char line[static PLACE_LINE]);

// The same, of an answer with this status that is not the one that was asked for.
const char *place_said(unsigned status, const char *said, size_t length,
		       char line[static PLACE_LINE]);
