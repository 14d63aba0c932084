// All answers forbid to be cached, framed, guessed at and read by other pages. What may run in the
// page is in its own policy, which names its script by hash; an answer may run nothing at all.
#include "view/headers.h"

#include "base/mem.h"
#include "view/page.h"

#include <stdio.h>
#include <string.h>

// Who may frame it is added to each policy here, so that none is without it.
static void tell(const char *type, const char *policy, headers_add *add, void *context)
{
	char text[1024];

	ASSERT(strlen(policy) < sizeof text - 32); // one that is cut would allow more
	snprintf(text, sizeof text, "%s; frame-ancestors 'none'", policy);
	add(context, "Content-Type", type);
	add(context, "Content-Security-Policy", text);
	add(context, "Cache-Control", "no-store");
	add(context, "X-Content-Type-Options", "nosniff");
	add(context, "Referrer-Policy", "no-referrer");
	add(context, "Cross-Origin-Resource-Policy", "same-origin");
	add(context, "Cross-Origin-Opener-Policy", "same-origin");
}

void headers_of_page(headers_add *add, void *context)
{
	tell("text/html; charset=utf-8", page_policy, add, context);
}

// An answer that is text is a part of a source file, which has no room for a figure: with which
// line it begins is in a header. All others, refusals too, are JSON.
void headers_of_reply(const struct viewer_reply *reply, headers_add *add, void *context)
{
	char number[24];

	tell(reply->is_text ? "text/plain; charset=utf-8" : "application/json; charset=utf-8",
	     "default-src 'none'", add, context);
	if (reply->is_text) {
		snprintf(number, sizeof number, "%llu", (unsigned long long)reply->first_line);
		add(context, "X-Tidemark-First-Line", number);
	}
	if (reply->refusal == REFUSAL_TOKEN)
		add(context, "WWW-Authenticate", "Bearer");
	if (reply->refusal == REFUSAL_METHOD)
		add(context, "Allow", "GET, HEAD");
	// In seconds. A superseded question has none: a newer one came in its place.
	if (reply->refusal == REFUSAL_BUSY)
		add(context, "Retry-After", "1");
}

void headers_of_nothing(headers_add *add, void *context)
{
	tell("text/plain; charset=utf-8", "default-src 'none'", add, context);
}
