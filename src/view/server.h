// server: the viewer on a port of the loopback interface, for the page (docs/viewer.md).
//
//     server_start     from here on requests are answered, in threads of their own
//     server_stop      nobody is listened to any more
//
// Every request goes through the gate first (gate.h); the page itself needs no token, all else
// does.
//
// For example, with port 8700: http://127.0.0.1:8700/#t=3f…, of which the browser sends nothing
// after the '#'; the page reads the token there, and sends it with each question.
#pragma once

#include "view/gate.h"
#include "view/viewer.h"

struct server;

// Who answers: a viewer (viewer.h), or whoever has other questions for the page.
struct server_answers {
	void (*answer)(void *of, const char *path, const char *query, bool (*gone)(void *context),
		       void *context, struct viewer_reply *reply); // as viewer_answer
	void (*stop)(void *of);                                    // as viewer_stop
	void *of;
	uint64_t unread_bytes_max; // of answers that wait to be read, together; one always may
};

// What `answers` has is borrowed until server_stop. `port` 0: the system chooses. NULL: the port is
// taken, or there is no libmicrohttpd (on Windows, winsock).
struct server *server_start(const struct server_answers *answers, uint16_t port, struct err *err);

// "http://127.0.0.1:PORT/#t=TOKEN". Borrowed.
const char *server_address(const struct server *server);

// Those who wait are sent away, and whoever is being answered is waited for, two seconds at most.
// False: somebody still is; nothing was freed, and the process should end.
bool server_stop(struct server *server);
