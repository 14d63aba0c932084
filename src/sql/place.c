// For example "db.example:8123" has its port, "db.example" gets the one that the caller says,
// "[::1]" too; "http://db" has a slash and is none. Waiting goes 0.1, 0.2, 0.4 … s: before tries 1
// to 7 that is 12.7 s.
#include "sql/place.h"

#include "base/mem.h"
#include "os/now.h"

#include <ctype.h>
#include <string.h>

enum { PAUSE_NS = 100000000, PORT_MAX = 65535 };

// Of a name, or of an address of IPv6 with its brackets; 0: it is neither.
static size_t host_length(const char *text, size_t length)
{
	bool bracket = length > 0 && text[0] == '[';
	const char *end = memchr(text, bracket ? ']' : ':', length);
	size_t host = end ? (size_t)(end - text) + bracket : bracket ? 0 : length;

	for (size_t i = bracket; i + bracket < host; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr(bracket ? ":." : "-._", text[i]))
			return 0;
	return host;
}

// ":8123"
static bool is_port(const char *text, size_t length)
{
	unsigned port = 0;

	for (size_t i = 1; i < length && port <= PORT_MAX; i++) {
		if (!isdigit((unsigned char)text[i]))
			return false;
		port = port * 10 + (unsigned)(text[i] - '0');
	}
	return text[0] == ':' && port > 0 && port <= PORT_MAX;
}

// A host may be all of it, but what is left after it must be a port: "db:", "db:0" and "db:70000"
// are refused.
bool place_add_server(struct str *server, const char *text, size_t length, unsigned port)
{
	size_t host = host_length(text, length);

	ASSERT(port > 0);
	if (host == 0 || (host < length && !is_port(text + host, length - host)))
		return false;
	str_add_bytes(server, text, length);
	if (host == length)
		str_format(server, ":%u", port);
	return true;
}

// `stop` is asked before the pause and after it: what was stopped in the meantime is not tried
// again.
bool place_wait(unsigned tries, unsigned tries_max, bool (*stop)(void *context), void *context)
{
	if (tries >= (tries_max ? tries_max : PLACE_TRIES) || (stop && stop(context)))
		return false;
	ASSERT(tries > 0);
	now_sleep((uint64_t)PAUSE_NS << (tries - 1));
	return !stop || !stop(context);
}

// A certificate that does not hold is final: trying again could send a password to the wrong one.
bool place_explain(const struct http *http, const char *server, struct err *err)
{
	if (err->kind == ERR_STOPPED)
		return false;
	if (err->kind == ERR_FORMAT)
		return err_wrap(err, "%s", server);
	if (http_is_final(http))
		return err_wrap(err, "%s is not who it should be, nothing was sent", server);
	err_wrap(err, "no answer from %s", server);
	return true;
}

// What is no UTF-8 becomes '?', and what a terminal would obey a blank.
const char *place_line(const char *said, size_t length, char line[static PLACE_LINE])
{
	const unsigned char *at = (const unsigned char *)said;
	size_t end = 0;

	while (end < length && at[end] && at[end] != '\n' && end < PLACE_LINE - 1) {
		size_t bytes = str_utf8_length(at + end, length - end);
		bool shown = at[end] >= ' ' && at[end] != 127;

		if (bytes == 0 || bytes > PLACE_LINE - 1 - end)
			bytes = 1, shown = shown && at[end] < 0x80;
		if (shown)
			memcpy(line + end, said + end, bytes);
		else
			line[end] = at[end] < 0x80 ? ' ' : '?';
		end += bytes;
	}
	ASSERT(end < PLACE_LINE);
	line[end] = '\0';
	return end ? line : "nothing more";
}

// Of a redirection the text is not shown: that it is one says more.
const char *place_said(unsigned status, const char *said, size_t length,
		       char line[static PLACE_LINE])
{
	return status / 100 == 3 ? "it leads elsewhere, which is not followed"
				 : place_line(said, length, line);
}
