// headers: what the viewer's answers say of themselves, whichever server sends them.
//
// For example of an answer: Content-Type: application/json; charset=utf-8, Cache-Control: no-store,
// X-Content-Type-Options: nosniff. How long the body is, and whether the connection ends, is the
// server's to say.
#pragma once

#include "view/viewer.h"

// Takes one header.
// Both texts are borrowed for the call.
typedef void headers_add(void *context, const char *name, const char *value);

// Of the page (page.h); of an answer or a refusal; of one that has nothing in it.
void headers_of_page(headers_add *add, void *context);
void headers_of_reply(const struct viewer_reply *reply, headers_add *add, void *context);
void headers_of_nothing(headers_add *add, void *context);
