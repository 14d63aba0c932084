// Each question is a set of columns, a function of fleet.c that fills rows, and how its rows are
// ordered. For example "grew" has change, spread and sure: a row with +3.0 MiB, ± 1.2 MiB and
// "yes". Text, CSV and JSON are written from the same columns (report/table/sheet.h), so what one
// form says all of them say.
#include "sql/fleet_question.h"

#include "base/mem.h"
#include "engine/moment.h"
#include "os/now.h"
#include "trace/label.h"

#include <stddef.h>
#include <string.h>
#include <time.h>

// ---- columns ----

// A double as a whole number of bytes or blocks; signed where the column is. An unsigned one below
// 0 is 0.
static struct sheet_cell whole(const struct sheet_at *at)
{
	double value = *(const double *)((const char *)at->row + at->column->at);

	// Rounded half away from 0, as people do.
	if (at->column->flags & SHEET_SIGNED)
		return (struct sheet_cell){ .i64 = (int64_t)(value < 0 ? value - 0.5
								       : value + 0.5) };
	return sheet_u64(true, value > 0 ? (uint64_t)(value + 0.5) : 0);
}

static struct sheet_cell text(const struct sheet_at *at)
{
	return sheet_text(*(const char *const *)((const char *)at->row + at->column->at));
}

static struct sheet_cell change(const struct sheet_at *at)
{
	const struct fleet_row *row = at->row;
	double value = row->level - row->before;

	return (struct sheet_cell){ .i64 = (int64_t)(value < 0 ? value - 0.5 : value + 0.5) };
}

static struct sheet_cell spread(const struct sheet_at *at)
{
	const struct fleet_row *row = at->row;

	// Of one run there is no spread.
	return sheet_u64(row->spread_known, (uint64_t)(row->spread + 0.5));
}

// No score where there are too few hosts to say what is usual.
static struct sheet_cell score(const struct sheet_at *at)
{
	const struct fleet_row *row = at->row;

	return (struct sheet_cell){ .unknown = !row->score_known, .real = row->score };
}

// `at`: of a change, with its error; else of a host, with its score.
static struct sheet_cell verdict(const struct sheet_at *at)
{
	const struct fleet_row *row = at->row;

	// `at` is no offset here: 1 is the column of a change, 0 that of a host.
	if (at->column->at)
		return sheet_text(!row->spread_known ? "one run" : row->outside ? "yes" : "no");
	return sheet_text(!row->score_known ? "too few" : row->outside ? "yes" : "no");
}

#define TEXT(member) text, offsetof(struct fleet_row, member)
#define WHOLE(member) whole, offsetof(struct fleet_row, member)
#define FIELD(member) SHEET_FIELD(struct fleet_row, member)

static const struct sheet_column sites_columns[] = {
	{ "byte_seconds", SHEET_BYTES, 0, WHOLE(byte_seconds), .word = "byte-seconds" },
	{ "share", SHEET_REAL, SHEET_PROGRAMS, FIELD(share), .word = NULL },
	{ "level_bytes", SHEET_BYTES, 0, WHOLE(level), .word = "level" },
	{ "level_most_bytes", SHEET_BYTES, 0, WHOLE(most), .word = "most" },
	{ "kept_bytes", SHEET_BYTES, 0, WHOLE(kept_bytes), .word = "kept" },
	{ "allocated_bytes", SHEET_BYTES, SHEET_PROGRAMS, WHOLE(bytes), .word = NULL },
	{ "allocated_count", SHEET_COUNT, 0, WHOLE(count), .word = "blocks" },
	{ "runs", SHEET_COUNT, 0, FIELD(runs), .word = "runs" },
	{ "hosts", SHEET_COUNT, 0, FIELD(hosts), .word = "hosts" },
	{ "function", SHEET_TEXT, 0, TEXT(name), .word = "site" },
	{ "module", SHEET_TEXT, SHEET_PROGRAMS, TEXT(module), .word = NULL },
	{ "site", SHEET_NUMBER, SHEET_PROGRAMS, FIELD(site), .word = NULL },
};

static const struct sheet_column grew_columns[] = {
	{ "change_bytes", SHEET_BYTES, SHEET_CHANGE, change, 0, .word = "change" },
	{ "spread_bytes", SHEET_BYTES, 0, spread, 0, .word = "±" },
	{ "sure", SHEET_TEXT, 0, verdict, 1, .word = "sure" },
	{ "before_bytes", SHEET_BYTES, 0, WHOLE(before), .word = "before" },
	{ "after_bytes", SHEET_BYTES, 0, WHOLE(level), .word = "after" },
	{ "hosts", SHEET_COUNT, 0, FIELD(hosts), .word = "hosts" },
	{ "function", SHEET_TEXT, 0, TEXT(name), .word = "site" },
	{ "module", SHEET_TEXT, SHEET_PROGRAMS, TEXT(module), .word = NULL },
	{ "site", SHEET_NUMBER, SHEET_PROGRAMS, FIELD(site), .word = NULL },
};

static const struct sheet_column hosts_columns[] = {
	{ "level_bytes", SHEET_BYTES, 0, WHOLE(level), .word = "level" },
	{ "least_bytes", SHEET_BYTES, 0, WHOLE(least), .word = "least" },
	{ "most_bytes", SHEET_BYTES, 0, WHOLE(most), .word = "most" },
	{ "kept_bytes", SHEET_BYTES, 0, WHOLE(kept_bytes), .word = "kept" },
	{ "runs", SHEET_COUNT, 0, FIELD(runs), .word = "runs" },
	{ "score", SHEET_REAL, 0, score, 0, .word = "score" },
	{ "outlier", SHEET_TEXT, 0, verdict, 0, .word = "outlier" },
	{ "host", SHEET_TEXT, 0, TEXT(name), .word = "host" },
	{ "most_above", SHEET_TEXT, 0, TEXT(why), .word = "by" },
};

static const struct sheet_column trend_columns[] = {
	{ "level_bytes", SHEET_BYTES, 0, WHOLE(level), .word = "level" },
	{ "spread_bytes", SHEET_BYTES, 0, spread, 0, .word = "±" },
	{ "least_bytes", SHEET_BYTES, 0, WHOLE(least), .word = "least" },
	{ "most_bytes", SHEET_BYTES, 0, WHOLE(most), .word = "most" },
	{ "runs", SHEET_COUNT, 0, FIELD(runs), .word = "runs" },
	{ "hosts", SHEET_COUNT, 0, FIELD(hosts), .word = "hosts" },
	{ "began_unix_ns", SHEET_NUMBER, SHEET_PROGRAMS, FIELD(began_unix_ns), .word = NULL },
	{ "version", SHEET_TEXT, 0, TEXT(name), .word = "version" },
};

// Valid until the next one of this thread: the viewer's page is answered by several.
static struct sheet_cell began(const struct sheet_at *at)
{
	const struct fleet_row *row = at->row;
	static _Thread_local char date[24];
	struct tm tm;

	if (!str_date(row->began_unix_ns / 1000000000, &tm) ||
	    strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", &tm) == 0)
		return sheet_text(NULL);
	return sheet_text(date);
}

static const struct sheet_column traces_columns[] = {
	{ "trace", SHEET_TEXT, 0, TEXT(name), .word = "trace" },
	{ "began", SHEET_TEXT, 0, began, 0, .word = "began (UTC)" },
	{ "began_unix_ns", SHEET_NUMBER, SHEET_PROGRAMS, FIELD(began_unix_ns), .word = NULL },
	{ "seconds", SHEET_REAL, 0, FIELD(seconds), .word = "seconds" },
	{ "version", SHEET_TEXT, 0, TEXT(version), .word = "version" },
	{ "host", SHEET_TEXT, 0, TEXT(host), .word = "host" },
	{ "command", SHEET_TEXT, 0, TEXT(command), .word = "command" },
};

// ---- questions ----

#define COLUMNS(list) list, sizeof list / sizeof *list

const struct fleet_question_row fleet_question_rows[] = {
	{ "sites", fleet_sites, COLUMNS(sites_columns), .site = false },
	{ "grew", fleet_grew, COLUMNS(grew_columns), .versions = true },
	{ "hosts", fleet_hosts, COLUMNS(hosts_columns), .site = false },
	{ "trend", fleet_trend, COLUMNS(trend_columns), .site = true },
	{ "traces", fleet_traces, COLUMNS(traces_columns), .site = false },
	{ 0 },
};

// ---- what may be said with them ----

void fleet_question_init(struct fleet_question *asked)
{
	*asked = (struct fleet_question){
		.wish = { .version = "version", .host = "host", .rows_max = FLEET_QUESTION_ROWS },
	};
}

void fleet_question_fini(struct fleet_question *asked)
{
	mem_free(asked->labels);
	*asked = (struct fleet_question){ 0 };
}

// `names` ends with a NULL, as str_nearest wants it: the table has a row without a name.
bool fleet_question_find(struct fleet_question *asked, const char *name, struct err *err)
{
	// The last row of the table is empty, and so is the last name.
	const char *names[sizeof fleet_question_rows / sizeof *fleet_question_rows] = { NULL };
	const char *nearest;

	for (size_t i = 0; fleet_question_rows[i].name; i++) {
		names[i] = fleet_question_rows[i].name;
		if (strcmp(names[i], name) == 0)
			asked->row = &fleet_question_rows[i];
	}
	if (asked->row)
		return true;
	nearest = str_nearest(name, names);
	return err_set(err, ERR_USAGE,
		       "'%s' is not a question: sites, grew, hosts, trend or traces%s%s", name,
		       nearest ? "; did you mean " : "", nearest ? nearest : "");
}

static bool take_label(struct fleet_question *asked, const char *value, struct err *err)
{
	const char *wrong = label_wrong(value);

	// The list may have moved: the wish points to where it is.
	// Added also where it is wrong: the command ends then.
	*MEM_ADD(asked->labels, asked->wish.labels_count, asked->labels_capacity) = value;
	asked->wish.labels = asked->labels;
	return !wrong || err_set(err, ERR_USAGE, "--label %s: %s", value, wrong);
}

static bool take_time(const char *option, const char *value, uint64_t *ns, struct err *err)
{
	int64_t duration_ns;

	if (!moment_parse_duration(value, &duration_ns) || duration_ns <= 0)
		return err_set(err, ERR_USAGE, "--%s %s: a time such as 30m or 168h expected",
			       option, value);
	*ns = (uint64_t)duration_ns;
	return true;
}

// A duration back from now, by the clock of this machine; runs have those of the machines that
// recorded them. More than there is since 1970 is all.
static bool take_since(struct fleet_question *asked, const char *value, struct err *err)
{
	uint64_t ns = 0, now_ns = now_wall_ns();

	if (!take_time("since", value, &ns, err))
		return false;
	asked->wish.since_unix_ns = now_ns > ns ? now_ns - ns : 0;
	return true;
}

static bool take_ago(struct fleet_question *asked, const char *value, struct err *err)
{
	return take_time("ago", value, &asked->wish.ago_ns, err);
}

#define WORD(member) NULL, offsetof(struct fleet_wish, member)

// Options that a question may have; a new one is a row here and a member of the wish.
static const struct word {
	const char *option;
	bool (*take)(struct fleet_question *asked, const char *value, struct err *err);
	size_t at; // unless `take`: where a text goes
} words[] = {
	{ "label", take_label, 0 },
	{ "since", take_since, 0 },
	{ "ago", take_ago, 0 },
	{ "site", WORD(site) },
	{ "before", WORD(before) },
	{ "after", WORD(after) },
	{ "version-label", WORD(version) },
	{ "host-label", WORD(host) },
};

bool fleet_question_take(struct fleet_question *asked, const char *option, const char *value,
			 bool *known, struct err *err)
{
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (strcmp(words[i].option, option) != 0)
			continue;
		*known = true;
		if (words[i].take)
			return words[i].take(asked, value, err);
		// A word that is only put somewhere needs no function: its row says where.
		*(const char **)((char *)&asked->wish + words[i].at) = value;
		return true;
	}
	*known = false;
	return true;
}

// Options come in any order, and the question may be named after them: so what fits is asked at the
// end.
bool fleet_question_check(const struct fleet_question *asked, struct err *err)
{
	const struct fleet_wish *wish = &asked->wish;

	ASSERT(asked->row);
	if (wish->site && !asked->row->site)
		return err_set(err, ERR_USAGE, "--site is for trend");
	if ((wish->before || wish->after || wish->ago_ns) && !asked->row->versions)
		return err_set(err, ERR_USAGE, "--before, --after and --ago are for grew");
	return !wish->before || !wish->ago_ns ||
	       err_set(err, ERR_USAGE, "--before or --ago, not both");
}

// ---- the answer ----

void fleet_question_write_rows(const struct fleet_question *asked, struct sheet *sheet,
			       const struct fleet_answer *answer)
{
	ASSERT(asked->row);
	sheet_begin(sheet, asked->row->columns, asked->row->count);
	for (size_t i = 0; i < answer->count; i++)
		sheet_row(sheet, &answer->rows[i]);
	sheet_end(sheet);
}

void fleet_question_write_json(const struct fleet_question *asked, struct sink *sink,
			       const struct fleet_answer *answer)
{
	struct sheet sheet;
	struct json json;

	json_begin(&json, sink, true, "tidemark-fleet-1");
	json_kv_string(&json, "question", asked->row->name);
	// Of all runs that the labels and times leave, also of those without a row.
	json_kv_u64(&json, "runs", answer->all.runs);
	json_kv_u64(&json, "runs_sampled", answer->all.sampled);
	json_kv_u64(&json, "runs_incomplete", answer->all.incomplete);
	json_kv_string(&json, "before", answer->before);
	json_kv_string(&json, "after", answer->after);
	json_kv_u64_if(&json, "runs_before", answer->before != NULL, answer->runs_before);
	json_kv_u64_if(&json, "runs_after", answer->after != NULL, answer->runs_after);
	json_kv_array(&json, "rows");
	sheet = sheet_in_json(&json);
	fleet_question_write_rows(asked, &sheet, answer);
	json_array_end(&json);
	json_end(&json);
}
