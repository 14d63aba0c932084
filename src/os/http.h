// http: requests to a server of HTTP or HTTPS, one after the other, on a connection that is kept.
//
// The work is libcurl's, which is loaded at the first request. No proxy is asked.
#pragma once

#include "base/err.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

struct http;

// NULL: there is no libcurl, and *err says how to get it.
struct http *http_new(struct err *err);
void http_free(struct http *http); // NULL is allowed

// Also sent with each request from now on, as "Name: value". They may be secret: no message has
// them.
void http_header(struct http *http, const char *header);

// Believe certificates that this file of certificates vouches for, in place of the system's.
void http_trust(struct http *http, const char *path);

// Asked about once a second while a request is under way: true ends it, with ERR_STOPPED.
void http_stop(struct http *http, bool (*stop)(void *context), void *context);

// Append a text as part of a URL.
void http_escape(struct http *http, const char *text, struct str *url);

// Whether the last http_post would fail the same way again: the other side is not who it should be.
bool http_is_final(const struct http *http);

// Post the bytes; the answer is appended, whatever its status is (200: done). False: there was
// none, or a part of one was appended; *err says why, without the URL (ERR_FORMAT: an answer
// without an end, which there would be again).
bool http_post(struct http *http, const char *url, const void *bytes, size_t size, unsigned *status,
	       struct str *answer, struct err *err);
