// http_win32: not there yet. A trace can be sent from Linux, and a database asked there.
#include "os/http.h"

struct http *http_new(struct err *err)
{
	err_set(err, ERR_USAGE,
		"is not available on Windows: databases and collectors are reached from "
		"Linux; take the trace there");
	return NULL;
}

void http_free(struct http *)
{
}

void http_header(struct http *, const char *)
{
}

void http_trust(struct http *, const char *)
{
}

void http_stop(struct http *, bool (*)(void *context), void *context)
{
	(void)context;
}

bool http_is_final(const struct http *)
{
	return true;
}

void http_escape(struct http *, const char *text, struct str *url)
{
	str_add(url, text);
}

bool http_post(struct http *, const char *, const void *, size_t, unsigned *, struct str *,
	       struct err *err)
{
	return err_set(err, ERR_USAGE, "is not available on Windows");
}
