// The head of a request, for a server that reads it itself: what view/head.h promises.
#include "test/test.h"
#include "view/head.h"

#include <string.h>

static char bytes[4096];

static bool parse(struct head *head, const char *text)
{
	const char *why = NULL;
	bool good;

	strcpy(bytes, text);
	CHECK_EQ(strlen(text), head_size(bytes, strlen(text), 0));
	good = head_parse(head, bytes, strlen(text), &why);
	CHECK(good || why);
	return good;
}

TEST(head_is_taken_apart)
{
	struct head head;

	CHECK(parse(&head,
		    "GET /api/view?a=b&c HTTP/1.1\r\nhOst:  127.0.0.1:1 \t\r\nOrigin:\r\n"
		    "Authorization: Bearer x\r\nSec-Fetch-Site: none\r\nX-Other: 1\r\n\r\n"));
	CHECK_STR("GET", head.gate.method);
	CHECK_STR("/api/view", head.gate.path);
	CHECK_STR("a=b&c", head.query);
	CHECK_EQ(15, head.gate.length);
	CHECK_STR("127.0.0.1:1", head.gate.host);
	CHECK_STR("", head.gate.origin);
	CHECK_STR("Bearer x", head.gate.authorization);
	CHECK_STR("none", head.gate.site);
	CHECK(!head.gate.doubled && !head.closes && !head.is_head);
}

TEST(head_tells_what_is_sent_twice_and_what_ends_a_connection)
{
	struct head head;

	CHECK(parse(&head, "HEAD / HTTP/1.1\r\nHost: a\r\nHOST: a\r\n\r\n"));
	CHECK(head.gate.doubled && head.is_head && !head.closes && !head.query);
	CHECK(parse(&head, "GET / HTTP/1.1\r\nConnection: TE, Close\r\n\r\n") && head.closes);
	CHECK(parse(&head, "GET / HTTP/1.1\r\nConnection: keep-alive\r\n\r\n") && !head.closes);
	CHECK(parse(&head, "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n") && head.closes);
	CHECK(parse(&head, "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n") && head.closes);
}

TEST(head_refuses_what_no_browser_sends)
{
	static const char *const texts[] = {
		"\r\n\r\n",
		"GET\r\n\r\n",
		"GET /\r\n\r\n",
		" / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.0\r\n\r\n",
		"GET / HTTP/1.1 \r\n\r\n",
		"GET  / HTTP/1.1\r\n\r\n",
		"GET a HTTP/1.1\r\n\r\n",
		"GET http://a/ HTTP/1.1\r\n\r\n",
		"GET /\xc3\xa4 HTTP/1.1\r\n\r\n",
		"GET /\t HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost : a\r\n\r\n",
		"GET / HTTP/1.1\r\n Host: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n",
		"GET / HTTP/1.1\r\n: a\r\n\r\n",
		"GET / HTTP/1.1\r\nHost\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\nOrigin: b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\x01\r\n\r\n",
	};
	struct head head;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		CHECK(!parse(&head, texts[i]));
}

TEST(head_ends_with_an_empty_line_wherever_it_was_cut)
{
	static const char text[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET";
	size_t size = sizeof text - 4;

	for (size_t from = 0; from < size; from++)
		for (size_t length = from; length < sizeof text - 1; length++)
			CHECK_EQ(length < size ? 0 : size, head_size(text, length, from));
}
