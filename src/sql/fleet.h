// fleet: what only many traces together say, asked of ClickHouse in SQL that a server of 2018 and
// the newest understand. The table `sites` is enough for it (docs/schema/rows.md): no allocations
// are read, and none are sent.
//
// A run is a trace. Its *level* is the mean of the bytes that lived in it: bytes times seconds,
// divided by its seconds; that of a site is the site's part of it. Levels of runs are compared, so
// runs need not be equally long. A site that a run does not have has the level 0 there.
//
// For example a run of 100 s in which 1 MB lived for 50 s has the level 0.5 MB, as has one of 10 s
// with 1 MB for 5 s.
#pragma once

#include "sql/clickhouse.h"

#include <stdint.h>

// Which runs are asked about, and what their labels are called.
// All texts are borrowed.
struct fleet_wish {
	const char *const *labels; // "NAME=VALUE" each; a run has them all
	size_t labels_count;
	uint64_t since_unix_ns;     // runs that began then or later
	const char *version;        // the label that says the version
	const char *host;           // and the host
	const char *site;           // a function, or the number of a site; NULL: all
	const char *before, *after; // versions that are compared; NULL: the last two
	uint64_t ago_ns;            // unless 0, `before` is what was the last one so long ago
	// Of sites, grew and traces; 0: all. Hosts and versions are all given: a host is compared
	// with the others, and a trend has no gaps.
	uint64_t rows_max;
};

// How many there are of those that the wish selects.
struct fleet_runs {
	uint64_t runs, hosts, versions;
	uint64_t sampled, incomplete; // of the runs
};

// One kind of row for all questions: what a question does not have is 0, or NULL.
struct fleet_row {
	const char *name, *module; // a function; a host; a version; a trace
	const char *version, *host, *command;
	const char *why; // of a host: the site that is most above the others'
	uint64_t site;
	uint64_t runs, hosts;
	// ns since 1970, by the clock of the machine that recorded
	uint64_t began_unix_ns;
	double seconds;
	// bytes, as least and most are
	double level, before, spread; // means over runs; ± two standard errors of level - before
	double least, most;           // of runs
	// byte_seconds, bytes, count and kept_bytes are sums over the runs; `share` is the part of
	// all byte-seconds, from 0 to 1. Sampled runs add estimates, so that all are doubles.
	double byte_seconds, share, bytes, count, kept_bytes;
	double score; // of a host: how far it is from the median, in robust deviations
	bool spread_known, score_known, outside;
};

// Texts of rows are borrowed from the answer.
struct fleet_answer {
	struct fleet_runs all;
	struct fleet_row *rows;
	size_t count;
	double level;         // of all sites, the mean over runs
	char *before, *after; // of `grew`: which versions
	uint64_t runs_before, runs_after;
	char **texts; // private: what rows borrow
	size_t texts_count, texts_capacity, capacity;
};

void fleet_answer_fini(struct fleet_answer *answer); // accepts { 0 }

// Each of these: false with *err, and `answer` needs no fleet_answer_fini then. ERR_USAGE: there
// are no such runs, versions or sites.
typedef bool fleet_question_asker(struct clickhouse *clickhouse, const struct fleet_wish *wish,
				  struct fleet_answer *answer, struct err *err);

fleet_question_asker fleet_sites; // that hold most, by bytes times seconds
fleet_question_asker fleet_grew;  // whose level rose most from one version to another
fleet_question_asker fleet_hosts; // and which are not like the others
fleet_question_asker fleet_trend; // of a site, or of all: a row for each version
fleet_question_asker fleet_traces;
