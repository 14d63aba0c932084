// http_win32: not there yet. A trace can be sent from Linux, and a database asked there.
#include "os/http.h"

struct http *http_new(struct err *err)
{
	err_set(err, ERR_USAGE,
		"is not available on Windows: databases and collectors are reached from "
		"Linux; take the trace there");
	return NULL;
}

void http_free(struct http *http)
{
	(void)http;
}

void http_header(struct http *http, const char *header)
{
	(void)http;
	(void)header;
}

void http_trust(struct http *http, const char *path)
{
	(void)http;
	(void)path;
}

void http_stop(struct http *http, bool (*stop)(void *context), void *context)
{
	(void)http;
	(void)stop;
	(void)context;
}

bool http_is_final(const struct http *http)
{
	(void)http;
	return true;
}

void http_escape(struct http *http, const char *text, struct str *url)
{
	(void)http;
	str_add(url, text);
}

bool http_post(struct http *http, const char *url, const void *bytes, size_t size, unsigned *status,
	       struct str *answer, struct err *err)
{
	(void)http;
	(void)url;
	(void)bytes;
	(void)size;
	(void)status;
	(void)answer;
	return err_set(err, ERR_USAGE, "is not available on Windows");
}
