// For example a page of evil.example whose name was made to lead to 127.0.0.1 asks with "Host:
// evil.example:8700", and is refused by that; a script of another page that asks 127.0.0.1 itself
// has "Origin: http://evil.example"; a program of another user on this machine can say all of this
// right, and does not know the token.
#include "view/gate.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

// A header that comes twice is refused later: which of the two counts, readers do not agree on.
void gate_header(struct gate_request *request, const char *name, const char *value)
{
	const struct {
		const char *name;
		const char **value;
	} known[] = {
		{ "Host", &request->host },
		{ "Origin", &request->origin },
		{ "Sec-Fetch-Site", &request->site },
		{ "Authorization", &request->authorization },
	};

	ASSERT(name && value);
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (strcasecmp(name, known[i].name) != 0)
			continue;
		// Also where both say the same.
		request->doubled |= *known[i].value != NULL;
		*known[i].value = value;
	}
}

void gate_init(struct gate *gate, uint16_t port, const uint8_t bytes[static GATE_TOKEN_BYTES])
{
	ASSERT(port > 0);
	gate->port = port;
	for (int i = 0; i < GATE_TOKEN_BYTES; i++)
		snprintf(&gate->token[2 * i], 3, "%02x", bytes[i]);
}

// "127.0.0.1:PORT" or "localhost:PORT", behind `prefix`.
static bool is_ours(const struct gate *gate, const char *text, const char *prefix)
{
	static const char *const names[] = { "127.0.0.1", "localhost" };
	char ours[64];

	ASSERT(text && prefix);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		// For example "http://localhost:8700" for a prefix of "http://".
		snprintf(ours, sizeof ours, "%s%s:%u", prefix, names[i], gate->port);
		if (strcmp(text, ours) == 0)
			return true;
		*strrchr(ours, ':') = 0; // a browser leaves out the port that http has
		if (gate->port == 80 && strcmp(text, ours) == 0)
			return true;
	}
	return false;
}

// Compares all digits whatever the first ones are, so that time tells nothing of them.
static bool has_token(const struct gate *gate, const char *authorization)
{
	static const char bearer[] = "Bearer ";
	const char *given;
	unsigned difference = 0;

	if (!authorization || strncmp(authorization, bearer, sizeof bearer - 1) != 0)
		return false;
	given = authorization + sizeof bearer - 1;
	if (strlen(given) != GATE_TOKEN_DIGITS)
		return false;
	for (int i = 0; i < GATE_TOKEN_DIGITS; i++)
		difference |= (unsigned)((unsigned char)given[i] ^ (unsigned char)gate->token[i]);
	return difference == 0;
}

// The order is that of what is worse: what another page asks gets no hint of a token.
enum refusal gate_check(const struct gate *gate, const struct gate_request *request,
			const char **why)
{
	bool asks;

	ASSERT(request->path && request->method);
	asks = strncmp(request->path, "/api/", strlen("/api/")) == 0;

	// HTTP/1.1 has a Host always: a request without one is none of a browser's.
	if (request->doubled || !request->host || !is_ours(gate, request->host, "")) {
		*why = "this server answers as 127.0.0.1 and localhost only";
		return REFUSAL_HOST;
	}
	if (request->origin && !is_ours(gate, request->origin, "http://")) {
		*why = "another page asked";
		return REFUSAL_ORIGIN;
	}
	// Sec-Fetch-Site is what the browser itself says of who asks; "none" is a person who typed
	// the address.
	if (asks && request->site && strcmp(request->site, "same-origin") != 0 &&
	    strcmp(request->site, "none") != 0) {
		*why = "another page asked";
		return REFUSAL_ORIGIN;
	}
	if (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0) {
		*why = "only GET and HEAD";
		return REFUSAL_METHOD;
	}
	// Bytes of path and query together, as they were sent.
	if (request->length > GATE_LENGTH_MAX) {
		*why = "path and query are longer than 8192 bytes";
		return REFUSAL_QUERY;
	}
	if (asks && !has_token(gate, request->authorization)) {
		*why = "the token is missing or wrong: open the address that tidemark printed";
		return REFUSAL_TOKEN;
	}
	return REFUSAL_NONE;
}
