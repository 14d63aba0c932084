// The five questions of `tidemark fleet`, as SQL over the rows that `tidemark push` has sent.
// What they have in common is written once: which runs are asked about (labels, time, command) is
// a subquery that add_runs writes, their sites with the level of each another (add_sites). The
// *level* of a site in a run is its byte-seconds by the run's seconds: how many bytes it had at a
// time, in the mean. So runs of any length can be compared.
//
// For example, version 1.1 has 40 runs in which a site has 10 MiB in the mean with a standard
// deviation of 2 MiB, version 1.2 has 25 runs with 13 MiB and 2.5 MiB. The change is +3 MiB.
// Twice its standard error is 2 * sqrt(2^2 / 40 + 2.5^2 / 25) = 1.18 MiB: less than the change,
// so the site has grown for sure.
//
// A host is outside if its level is far from the median of the hosts, in units of what is usual:
// 0.6745 * (level - median) / (median of the distances). With levels of 10, 11, 12, 13 and 60 MiB
// the median is 12, the distances are 2, 1, 0, 1 and 48, their median 1, and the last host has a
// score of 32. With less than HOSTS_MIN hosts nothing is said.
#include "sql/fleet.h"

#include "base/mem.h"
#include "sql/answer_rows.h"
#include "sql/tables.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { HOSTS_MIN = 4, BLAMED_MAX = 20 };

// Beyond this a host is outside: the usual bound of the score (Iglewicz and Hoaglin 1993).
static const double score_max = 3.5;

struct fleet {
	struct clickhouse *clickhouse;
	const char *database;
	const struct fleet_wish *wish;
	struct fleet_answer *answer;
	struct str sql, text;
};

// ---- SQL ----

// As a string of SQL.
// Whatever a label or a name has in it: quotes and backslashes cannot end the string.
static void add_quoted(struct str *sql, const char *text, size_t length)
{
	str_add_char(sql, '\'');
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '\'' || text[i] == '\\')
			str_add_char(sql, '\\');
		str_add_char(sql, text[i]);
	}
	str_add_char(sql, '\'');
}

static void add_text(struct str *sql, const char *text)
{
	add_quoted(sql, text, strlen(text));
}

// GLOBAL: with several shards the list of traces is made once and sent to all of them.
static void add_labels(struct fleet *fleet)
{
	for (size_t i = 0; i < fleet->wish->labels_count; i++) {
		const char *label = fleet->wish->labels[i];
		size_t length = strcspn(label, "=");

		str_format(&fleet->sql,
			   " AND trace GLOBAL IN (SELECT trace FROM %s.labels WHERE name = ",
			   fleet->database);
		add_quoted(&fleet->sql, label, length);
		str_add(&fleet->sql, " AND value = ");
		add_text(&fleet->sql, label + length + (label[length] == '='));
		str_add(&fleet->sql, ")");
	}
}

// The runs that are asked about: trace, seconds, began, version, host.
static void add_runs(struct fleet *fleet)
{
	struct str *sql = &fleet->sql;

	str_format(sql,
		   "(SELECT trace, duration_ns / 1e9 AS seconds, began_unix_ns AS began, "
		   "sample_bytes > 0 AS sampled, complete = 0 AS cut, command, own_version AS "
		   "version, own_host AS host "
		   "FROM %s.runs AS r GLOBAL ANY LEFT JOIN (SELECT trace, maxIf(value, name = ",
		   fleet->database);
	add_text(sql, fleet->wish->version);
	str_add(sql, ") AS own_version, maxIf(value, name = ");
	add_text(sql, fleet->wish->host);
	str_format(sql,
		   ") AS own_host FROM %s.labels GROUP BY trace) AS l USING (trace) "
		   "WHERE duration_ns > 0 AND began_unix_ns >= %" PRIu64,
		   fleet->database, fleet->wish->since_unix_ns);
	add_labels(fleet);
	str_add(sql, ")");
}

// Their sites, with `level`.
static void add_sites(struct fleet *fleet)
{
	const char *site = fleet->wish->site;
	struct str *sql = &fleet->sql;

	str_format(sql,
		   "(SELECT trace, site, function, module, count, bytes, kept_bytes, byte_seconds, "
		   "byte_seconds / seconds AS level, seconds, version, host FROM (SELECT trace, "
		   "site, function, module, count, bytes, kept_bytes, byte_seconds FROM %s.sites",
		   fleet->database);
	// By its function, or by its number as text: which one a word is need not be known.
	if (site) {
		str_add(sql, " WHERE function = ");
		add_text(sql, site);
		str_add(sql, " OR toString(site) = ");
		add_text(sql, site);
	}
	str_add(sql, ") AS s ANY LEFT JOIN ");
	add_runs(fleet);
	str_add(sql, " AS r USING (trace) WHERE seconds > 0)");
}

static void add_limit(struct fleet *fleet)
{
	if (fleet->wish->rows_max)
		str_format(&fleet->sql, " LIMIT %" PRIu64, fleet->wish->rows_max);
}

// What fleet->sql says; texts stay with the answer.
// Cells are texts until somebody asks for one as a number.
static bool ask(struct fleet *fleet, size_t columns, struct answer_rows *cells, struct err *err)
{
	struct fleet_answer *answer = fleet->answer;
	bool good;

	str_clear(&fleet->text);
	good = clickhouse_run(fleet->clickhouse, str_get(&fleet->sql), NULL, false, &fleet->text,
			      err) &&
	       answer_rows_take(cells, &fleet->text, columns, err);
	str_clear(&fleet->sql);
	if (!good)
		return false;
	// Rows of the answer point into it.
	*MEM_ADD(answer->texts, answer->texts_count, answer->texts_capacity) = cells->text;
	cells->text = NULL;
	return true;
}

static struct fleet_row *add_row(struct fleet_answer *answer)
{
	*MEM_ADD(answer->rows, answer->count, answer->capacity) = (struct fleet_row){ 0 };
	return &answer->rows[answer->count - 1];
}

// ---- the runs ----

static bool count_runs(struct fleet *fleet, struct err *err)
{
	struct fleet_runs *all = &fleet->answer->all;
	struct answer_rows cells;

	str_add(&fleet->sql, "SELECT count(), uniqExact(host), uniqExact(version), sum(sampled), "
			     "sum(cut) FROM ");
	add_runs(fleet);
	if (!ask(fleet, 5, &cells, err))
		return false;
	// In the order of the statement's columns.
	if (cells.rows == 1)
		*all = (struct fleet_runs){
			answer_rows_u64(&cells, 0, 0), answer_rows_u64(&cells, 0, 1),
			answer_rows_u64(&cells, 0, 2), answer_rows_u64(&cells, 0, 3),
			answer_rows_u64(&cells, 0, 4),
		};
	answer_rows_fini(&cells);
	return all->runs > 0 ||
	       err_set(err, ERR_USAGE, "no run in %s matches what was asked for", fleet->database);
}

// Twice the standard error of a mean of `n`, squared. `n` is 2 or more.
// From the sums of the values and of their squares, which the database gives for each site: the
// values themselves stay there.
static double error_of(double sum, double squares, uint64_t n)
{
	// For example 2, 4 and 6: sum 12, squares 56, mean 4, variance (56 - 48) / 2 = 4, and four
	// times 4 / 3 is 5.33, whose root, 2.31, is twice the standard error.
	double mean = sum / (double)n;
	double variance = (squares - mean * sum) / (double)(n - 1);

	ASSERT(n >= 2);
	return variance > 0 ? 4 * variance / (double)n : 0;
}

// The runs are counted first, for every question.
static bool answer_with(bool (*find)(struct fleet *fleet, struct err *err),
			struct clickhouse *clickhouse, const struct fleet_wish *wish,
			struct fleet_answer *answer, struct err *err)
{
	struct fleet fleet = {
		.clickhouse = clickhouse,
		.database = clickhouse_database(clickhouse),
		.wish = wish,
		.answer = answer,
	};
	bool good;

	*answer = (struct fleet_answer){ 0 };
	good = tables_check(clickhouse, err) && count_runs(&fleet, err) && find(&fleet, err);
	STR_FINI(&fleet.sql, &fleet.text);
	if (!good)
		fleet_answer_fini(answer);
	return good;
}

void fleet_answer_fini(struct fleet_answer *answer)
{
	for (size_t i = 0; i < answer->texts_count; i++)
		mem_free(answer->texts[i]);
	MEM_FREE(answer->texts, answer->rows, answer->before, answer->after);
	*answer = (struct fleet_answer){ 0 };
}

// ---- sites ----

// A run without the site counts with 0, so means are over all runs and not over those that have it.
static bool find_total(struct fleet *fleet, double *byte_seconds, struct err *err)
{
	struct fleet_answer *answer = fleet->answer;
	struct answer_rows cells;

	str_add(&fleet->sql, "SELECT sum(byte_seconds), sum(level) FROM ");
	add_sites(fleet);
	if (!ask(fleet, 2, &cells, err))
		return false;
	*byte_seconds = cells.rows ? answer_rows_real(&cells, 0, 0) : 0;
	answer->level = cells.rows ? answer_rows_real(&cells, 0, 1) / (double)answer->all.runs : 0;
	answer_rows_fini(&cells);
	return true;
}

static bool find_sites(struct fleet *fleet, struct err *err)
{
	struct fleet_answer *answer = fleet->answer;
	struct answer_rows cells;
	double total;

	if (!find_total(fleet, &total, err))
		return false;
	str_add(&fleet->sql,
		"SELECT site, min(function), min(module), count(), uniqExact(host), "
		"sum(byte_seconds) AS held, sum(level), sum(bytes), sum(count), sum(kept_bytes), "
		"max(level) FROM ");
	add_sites(fleet);
	str_add(&fleet->sql, " GROUP BY site ORDER BY held DESC, site");
	add_limit(fleet);
	if (!ask(fleet, 11, &cells, err))
		return false;
	for (size_t i = 0; i < cells.rows; i++)
		*add_row(answer) = (struct fleet_row){
			.site = answer_rows_u64(&cells, i, 0),
			.name = answer_rows_text(&cells, i, 1),
			.module = answer_rows_text(&cells, i, 2),
			.runs = answer_rows_u64(&cells, i, 3),
			.hosts = answer_rows_u64(&cells, i, 4),
			.byte_seconds = answer_rows_real(&cells, i, 5),
			.share = total > 0 ? answer_rows_real(&cells, i, 5) / total : 0,
			.level = answer_rows_real(&cells, i, 6) / (double)answer->all.runs,
			.bytes = answer_rows_real(&cells, i, 7),
			.count = answer_rows_real(&cells, i, 8),
			.kept_bytes = answer_rows_real(&cells, i, 9),
			.most = answer_rows_real(&cells, i, 10),
		};
	answer_rows_fini(&cells);
	return true;
}

// ---- versions ----

// In the order of their first runs; runs that do not say theirs are in none.
static bool find_versions(struct fleet *fleet, struct answer_rows *cells, struct err *err)
{
	str_add(&fleet->sql, "SELECT version, min(began) AS earliest, max(began), count(), "
			     "uniqExact(host) FROM ");
	add_runs(fleet);
	str_add(&fleet->sql, " WHERE version != '' GROUP BY version ORDER BY earliest, version");
	if (!ask(fleet, 5, cells, err))
		return false;
	if (cells->rows > 0)
		return true;
	answer_rows_fini(cells);
	return err_set(err, ERR_USAGE, "no run has the label %s (record --label %s=…)",
		       fleet->wish->version, fleet->wish->version);
}

// The row of a version, or, where it is in none, how many rows there are.
static size_t version_row(const struct answer_rows *versions, const char *name)
{
	size_t row = 0;

	// `rows`: there is none.
	while (row < versions->rows && strcmp(answer_rows_text(versions, row, 0), name) != 0)
		row++;
	return row;
}

static bool choose_after(struct fleet *fleet, const struct answer_rows *versions, size_t *after,
			 struct err *err)
{
	const char *name = fleet->wish->after;

	// Without a word it is the newest one.
	*after = name ? version_row(versions, name) : versions->rows - 1;
	return *after < versions->rows ||
	       err_set(err, ERR_USAGE, "no run has %s=%s", fleet->wish->version, name);
}

// The last one that had begun so long before `after` did: with no word about it (`ago_ns` is 0),
// the last one whose first run was not after the first run of `after`.
static bool choose_before(struct fleet *fleet, const struct answer_rows *versions, size_t after,
			  size_t *before, struct err *err)
{
	const char *name = fleet->wish->before;
	uint64_t began = answer_rows_u64(versions, after, 1);

	ASSERT(after < versions->rows);
	if (name) {
		*before = version_row(versions, name);
		if (*before >= versions->rows)
			return err_set(err, ERR_USAGE, "no run has %s=%s", fleet->wish->version,
				       name);
		return *before != after ||
		       err_set(err, ERR_USAGE, "%s is compared with itself", name);
	}
	// Versions are in the order of their first runs, so the first that is old enough on the way
	// back is the newest of these.
	for (*before = after; *before > 0;) {
		--*before;
		if (answer_rows_u64(versions, *before, 1) <=
		    began - (began < fleet->wish->ago_ns ? began : fleet->wish->ago_ns))
			return true;
	}
	return err_set(err, ERR_USAGE, "there is no version before %s%s",
		       answer_rows_text(versions, after, 0),
		       fleet->wish->ago_ns ? " that is old enough" : "");
}

// ---- grew ----

static void add_side(struct fleet *fleet, const char *version, const char *what)
{
	ASSERT(version && what);
	str_format(&fleet->sql, "sumIf(%s, version = ", what);
	add_text(&fleet->sql, version);
	str_add(&fleet->sql, ")");
}

// Sums of levels and of their squares, of both versions, for each site: means and errors are
// computed here from six numbers a site.
static void add_grew(struct fleet *fleet)
{
	const struct fleet_answer *answer = fleet->answer;
	struct str *sql = &fleet->sql;

	str_add(sql, "SELECT site, min(function), min(module), ");
	for (int i = 0; i < 2; i++) {
		const char *version = i ? answer->after : answer->before;

		// Two columns for each version: sum of the levels, sum of their squares.
		add_side(fleet, version, "level");
		str_format(sql, " AS sum%d, ", i);
		add_side(fleet, version, "level * level");
		str_add(sql, ", ");
	}
	str_add(sql, "uniqExactIf(host, version = ");
	add_text(sql, answer->after);
	str_format(sql, "), sum1 / %" PRIu64 " - sum0 / %" PRIu64 " AS change FROM ",
		   answer->runs_after, answer->runs_before);
	add_sites(fleet);
	str_add(sql, " WHERE version = ");
	add_text(sql, answer->before);
	str_add(sql, " OR version = ");
	add_text(sql, answer->after);
	str_add(sql, " GROUP BY site HAVING change > 0 ORDER BY change DESC, site");
	add_limit(fleet);
}

// With one run of a version nothing is known of how runs differ, and nothing is sure.
static void take_grew(struct fleet *fleet, const struct answer_rows *cells)
{
	struct fleet_answer *answer = fleet->answer;
	uint64_t n0 = answer->runs_before, n1 = answer->runs_after;

	for (size_t i = 0; i < cells->rows; i++) {
		double before = answer_rows_real(cells, i, 3),
		       after = answer_rows_real(cells, i, 5);
		struct fleet_row *row = add_row(answer);

		*row = (struct fleet_row){
			.site = answer_rows_u64(cells, i, 0),
			.name = answer_rows_text(cells, i, 1),
			.module = answer_rows_text(cells, i, 2),
			.before = before / (double)n0,
			.level = after / (double)n1,
			.hosts = answer_rows_u64(cells, i, 7),
			.spread_known = n0 > 1 && n1 > 1,
		};
		// Errors of two means that do not depend on each other add up by their squares.
		if (row->spread_known)
			row->spread = sqrt(error_of(before, answer_rows_real(cells, i, 4), n0) +
					   error_of(after, answer_rows_real(cells, i, 6), n1));
		row->outside = row->spread_known && row->level - row->before > row->spread;
	}
}

// Two questions: which versions there are, and then the sums of the two that are chosen.
static bool find_grew(struct fleet *fleet, struct err *err)
{
	struct fleet_answer *answer = fleet->answer;
	size_t before = 0, after = 0;
	struct answer_rows cells;
	bool good;

	if (!find_versions(fleet, &cells, err))
		return false;
	good = choose_after(fleet, &cells, &after, err) &&
	       choose_before(fleet, &cells, after, &before, err);
	if (good) {
		answer->before = mem_copy_text(answer_rows_text(&cells, before, 0));
		answer->after = mem_copy_text(answer_rows_text(&cells, after, 0));
		answer->runs_before = answer_rows_u64(&cells, before, 3);
		answer->runs_after = answer_rows_u64(&cells, after, 3);
	}
	answer_rows_fini(&cells);
	if (!good)
		return false;
	add_grew(fleet);
	if (!ask(fleet, 9, &cells, err))
		return false;
	take_grew(fleet, &cells);
	answer_rows_fini(&cells);
	return true;
}

// ---- trend ----

// Runs that lack the site have had 0 of it: then that is the least.
static void take_trend(const struct answer_rows *levels, const struct answer_rows *versions,
		       size_t at, struct fleet_row *row)
{
	const char *version = answer_rows_text(versions, at, 0);
	// A version that is not among the levels has no run with the site.
	size_t own = version_row(levels, version);

	*row = (struct fleet_row){
		.name = version,
		.began_unix_ns = answer_rows_u64(versions, at, 1),
		.runs = answer_rows_u64(versions, at, 3),
		.hosts = answer_rows_u64(versions, at, 4),
		.spread_known = answer_rows_u64(versions, at, 3) > 1,
	};
	if (own == levels->rows)
		return; // no run of it has the site
	row->level = answer_rows_real(levels, own, 1) / (double)row->runs;
	if (row->spread_known)
		row->spread = sqrt(error_of(answer_rows_real(levels, own, 1),
					    answer_rows_real(levels, own, 2), row->runs));
	// Fewer runs have it than there are.
	row->least = answer_rows_u64(levels, own, 5) < row->runs ? 0
								 : answer_rows_real(levels, own, 3);
	row->most = answer_rows_real(levels, own, 4);
}

// Levels are summed up by run first, since a function may have several sites. Versions come from
// their own question: one without the site is a row of 0 too.
static bool find_trend(struct fleet *fleet, struct err *err)
{
	struct answer_rows versions, levels;
	bool found;

	if (!find_versions(fleet, &versions, err))
		return false;
	str_add(&fleet->sql,
		"SELECT own, sum(whole), sum(whole * whole), min(whole), max(whole), count() "
		"FROM (SELECT trace, max(version) AS own, sum(level) AS whole FROM ");
	add_sites(fleet);
	str_add(&fleet->sql, " GROUP BY trace) GROUP BY own ORDER BY own");
	if (!ask(fleet, 6, &levels, err)) {
		answer_rows_fini(&versions);
		return false;
	}
	for (size_t i = 0; i < versions.rows; i++)
		take_trend(&levels, &versions, i, add_row(fleet->answer));
	answer_rows_fini(&versions);
	found = levels.rows > 0;
	answer_rows_fini(&levels);
	return found ||
	       err_set(err, ERR_USAGE, "no site is called %s there (try: tidemark fleet sites)",
		       fleet->wish->site ? fleet->wish->site : "anything");
}

// ---- hosts ----

static int by_value(const void *a, const void *b, void *)
{
	double left = *(const double *)a, right = *(const double *)b;

	return left < right ? -1 : left > right;
}

static double median(double *values, size_t count)
{
	ASSERT(count > 0);
	mem_sort(values, count, sizeof *values, by_value, NULL);
	// Of 1, 2, 4, 9 it is 3: between the two in the middle.
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

// How far each is from the median, in units of what is usual: the median of all distances, which a
// few hosts that are far off do not move.
static void score(struct fleet_answer *answer)
{
	double *values = mem_alloc(answer->count, sizeof *values);
	double middle, usual, mean = 0;

	ASSERT(answer->count >= HOSTS_MIN);
	for (size_t i = 0; i < answer->count; i++)
		values[i] = answer->rows[i].level;
	// It sorts its values, so distances are taken from the rows again.
	middle = median(values, answer->count);
	for (size_t i = 0; i < answer->count; i++) {
		values[i] = fabs(answer->rows[i].level - middle);
		mean += values[i] / (double)answer->count;
	}
	// Where more than half are equal the mean of the distances stands for their median.
	// The median distance of a normal distribution is 0.6745 of its standard deviation, and the
	// mean distance 1 / 1.2533 of it: in these units a score means the same by either.
	usual = median(values, answer->count) / 0.6745;
	if (usual <= 0)
		usual = mean * 1.2533;
	for (size_t i = 0; i < answer->count; i++) {
		struct fleet_row *row = &answer->rows[i];

		row->score_known = true;
		row->score = usual > 0 ? (row->level - middle) / usual : 0;
		row->outside = fabs(row->score) > score_max;
	}
	mem_free(values);
}

// The site by which a host is most above the mean of the others. Only for hosts that are outside,
// and at most BLAMED_MAX of them: each is a question of its own to the database.
static bool blame(struct fleet *fleet, struct fleet_row *row, struct err *err)
{
	uint64_t others = fleet->answer->all.runs - row->runs;
	struct answer_rows cells;

	// The mean of this host's runs less the mean of all others, by site; the largest difference
	// is named.
	str_add(&fleet->sql, "SELECT min(function), sumIf(level, host = ");
	add_text(&fleet->sql, row->name);
	str_format(&fleet->sql, ") / %" PRIu64 " - sumIf(level, host != ", row->runs);
	add_text(&fleet->sql, row->name);
	str_format(&fleet->sql, ") / %" PRIu64 " AS above FROM ", others);
	add_sites(fleet);
	str_add(&fleet->sql, " GROUP BY site ORDER BY above DESC, site LIMIT 1");
	if (!ask(fleet, 2, &cells, err))
		return false;
	if (cells.rows > 0 && answer_rows_real(&cells, 0, 1) > 0)
		row->why = answer_rows_text(&cells, 0, 0);
	answer_rows_fini(&cells);
	return true;
}

static bool find_hosts(struct fleet *fleet, struct err *err)
{
	struct fleet_answer *answer = fleet->answer;
	struct answer_rows cells;
	unsigned blamed = 0;
	bool good = true;

	str_add(&fleet->sql,
		"SELECT own, count(), avg(whole) AS mean, min(whole), max(whole), sum(kept) FROM "
		"(SELECT trace, max(host) AS own, sum(level) AS whole, sum(kept_bytes) AS kept "
		"FROM ");
	add_sites(fleet);
	str_add(&fleet->sql, " GROUP BY trace) WHERE own != '' GROUP BY own ORDER BY mean DESC, "
			     "own");
	if (!ask(fleet, 6, &cells, err))
		return false;
	for (size_t i = 0; i < cells.rows; i++)
		*add_row(answer) = (struct fleet_row){
			.name = answer_rows_text(&cells, i, 0),
			.runs = answer_rows_u64(&cells, i, 1),
			.level = answer_rows_real(&cells, i, 2),
			.least = answer_rows_real(&cells, i, 3),
			.most = answer_rows_real(&cells, i, 4),
			.kept_bytes = answer_rows_real(&cells, i, 5),
		};
	answer_rows_fini(&cells);
	if (answer->count == 0)
		return err_set(err, ERR_USAGE, "no run has the label %s (record --label %s=…)",
			       fleet->wish->host, fleet->wish->host);
	if (answer->count >= HOSTS_MIN)
		score(answer);
	// Only those above: of a host that holds less than others no site is to blame.
	for (size_t i = 0; i < answer->count && good; i++)
		if (answer->rows[i].outside && answer->rows[i].score > 0 && blamed++ < BLAMED_MAX)
			good = blame(fleet, &answer->rows[i], err);
	return good;
}

// ---- traces ----

static bool find_traces(struct fleet *fleet, struct err *err)
{
	struct answer_rows cells;

	str_add(&fleet->sql, "SELECT trace, began, seconds, version, host, command FROM ");
	add_runs(fleet);
	str_add(&fleet->sql, " ORDER BY began DESC, trace");
	add_limit(fleet);
	if (!ask(fleet, 6, &cells, err))
		return false;
	for (size_t i = 0; i < cells.rows; i++)
		*add_row(fleet->answer) = (struct fleet_row){
			.name = answer_rows_text(&cells, i, 0),
			.began_unix_ns = answer_rows_u64(&cells, i, 1),
			.seconds = answer_rows_real(&cells, i, 2),
			.version = answer_rows_text(&cells, i, 3),
			.host = answer_rows_text(&cells, i, 4),
			.command = answer_rows_text(&cells, i, 5),
		};
	answer_rows_fini(&cells);
	return true;
}

#define FLEET_QUESTION(name)                                                            \
	bool fleet_##name(struct clickhouse *clickhouse, const struct fleet_wish *wish, \
			  struct fleet_answer *answer, struct err *err)                 \
	{                                                                               \
		return answer_with(find_##name, clickhouse, wish, answer, err);         \
	}
FLEET_QUESTION(sites)
FLEET_QUESTION(grew)
FLEET_QUESTION(hosts)
FLEET_QUESTION(trend)
FLEET_QUESTION(traces)
