// fleet_question: what can be asked of many traces, and how the answer is written: the same for the
// command (`tidemark fleet`) and for the viewer's page, so that both have the same figures.
//
//     fleet_question_init
//       fleet_question_find     sites, grew, hosts, trend or traces
//       fleet_question_take     options by their names, "label" several times
//     fleet_question_check      whether they fit together
//       row->ask(clickhouse, &wish, …)
//       fleet_question_write_…
//     fleet_question_fini
#pragma once

#include "report/table/sheet.h"
#include "sql/fleet.h"

enum { FLEET_QUESTION_ROWS = 10 }; // unless said otherwise

// A question: its name, who answers it, and what its rows are written as.
struct fleet_question_row {
	const char *name;
	fleet_question_asker *ask;
	const struct sheet_column *columns;
	size_t count;
	bool versions, site; // has --before, --after and --ago; --site
};

extern const struct fleet_question_row fleet_question_rows[]; // until one without a name

struct fleet_question {
	const struct fleet_question_row *row; // NULL: none was named yet
	struct fleet_wish wish;               // its texts are borrowed
	const char **labels;                  // private
	size_t labels_capacity;
};

void fleet_question_init(struct fleet_question *asked);
void fleet_question_fini(struct fleet_question *asked); // accepts { 0 }

// All three: ERR_USAGE, in the words of the command line. `value` is borrowed. *known: there is
// such an option; those for the answer's form are the caller's.
bool fleet_question_find(struct fleet_question *asked, const char *name, struct err *err);
bool fleet_question_take(struct fleet_question *asked, const char *option, const char *value,
			 bool *known, struct err *err);
bool fleet_question_check(const struct fleet_question *asked, struct err *err);

// The document of docs/schema/fleet.json; its rows alone.
void fleet_question_write_json(const struct fleet_question *asked, struct sink *sink,
			       const struct fleet_answer *answer);
void fleet_question_write_rows(const struct fleet_question *asked, struct sheet *sheet,
			       const struct fleet_answer *answer);
