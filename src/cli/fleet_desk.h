// fleet_desk: answers the viewer's page about a database of many traces (docs/viewer.md), with what
// `tidemark fleet` would write as JSON.
//
//     fleet_desk_open
//       fleet_desk_answer     from any thread, any number at once
//     fleet_desk_stop         who waits is sent away, and what is being asked ends soon
#pragma once

#include "sql/clickhouse.h"
#include "view/viewer.h"

#include <stdatomic.h>

struct fleet_desk {
	const char *url, *version; // borrowed: of the place; of the program
	atomic_int asking;         // private, as what follows
	atomic_bool stopping;
};

// False: the place makes no sense, nobody answers there, or no trace was sent to it.
bool fleet_desk_open(struct fleet_desk *desk, const char *url, const char *version,
		     struct err *err);

// As server_answers (view/server.h) has them; `desk` is a struct fleet_desk.
void fleet_desk_answer(void *desk, const char *path, const char *query, bool (*gone)(void *context),
		       void *context, struct viewer_reply *reply);
// From any thread. What comes later is sent away, too.
void fleet_desk_stop(void *desk);
