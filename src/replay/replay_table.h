// replay_table: what came of replays, side by side: text, JSON, and a picture of all curves.
//
// Times and page faults are those of the driver less what it takes when it makes no call; memory is
// what is resident and private, less what the driver had before its first call.
#pragma once

#include "replay/replay_run.h"
#include "report/ask/query_context.h"
#include "report/draw/chart.h"
#include "report/table/paper.h"

struct replay_table_row {
	const char *allocator;  // as it was asked for; borrowed, as the setting
	const char *setting;    // NULL: none
	struct replay_run *run; // owned by the caller
};

// All of it is borrowed. There is one row at least, and each run has the plan's samples.
struct replay_table {
	const struct query_context *asked;
	const struct replay_plan *plan;
	const struct replay_run *dry; // without calls
	enum replay_ring_touch touch;
	struct replay_table_row *rows;
	size_t count;
};

// As --touch has them.
extern const char *const replay_table_touches[];

// A row for each, and classes of sizes; all of it, with samples.
void replay_table_text(const struct replay_table *table, struct paper *paper);
void replay_table_json(const struct replay_table *table, struct sink *sink);

// Resident memory of each, and what was live.
void replay_table_chart(const struct replay_table *table, struct chart *chart);
