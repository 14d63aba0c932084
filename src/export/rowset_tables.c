// rowset_tables: the tables and their columns, in the order in which rowset.c gives them
// (docs/schema/rows.md).
#include "export/rowset.h"

#include <string.h>

#define COLUMNS(list) list, sizeof list / sizeof *list

// Of each column its name, its type, and what is usual of its values, by which a writer chooses how
// to store them (export/rowset.h). rowset.c puts values by their place alone: a column that is
// added or moved here is put there at the same place.
static const struct rowset_column allocations[] = {
	{ "trace", ROWSET_TEXT, ROWSET_FEW },       { "process", ROWSET_U32, ROWSET_FEW },
	{ "thread", ROWSET_U32, ROWSET_FEW },       { "layer", ROWSET_TEXT, ROWSET_FEW },
	{ "heap", ROWSET_TEXT, ROWSET_FEW },        { "kind", ROWSET_TEXT, ROWSET_FEW },
	{ "address", ROWSET_U64, ROWSET_NEAR },     { "size", ROWSET_U64, ROWSET_FEW },
	{ "usable", ROWSET_U64, ROWSET_FEW },       { "begin_ns", ROWSET_U64, ROWSET_NEAR },
	{ "end_ns", ROWSET_U64, ROWSET_NEAR },      { "gone_ns", ROWSET_U64, ROWSET_NEAR },
	{ "begin_event", ROWSET_U64, ROWSET_NEAR }, { "end_event", ROWSET_U64, ROWSET_NEAR },
	{ "end_kind", ROWSET_TEXT, ROWSET_FEW },    { "end_thread", ROWSET_U32, ROWSET_FEW },
	{ "stack", ROWSET_U32, ROWSET_FEW },        { "end_stack", ROWSET_U32, ROWSET_FEW },
	{ "weight", ROWSET_DOUBLE, ROWSET_FEW },    { "weighted_bytes", ROWSET_DOUBLE, ROWSET_FEW },
};

static const struct rowset_column stacks[] = {
	{ "trace", ROWSET_TEXT, ROWSET_FEW },
	{ "stack", ROWSET_U32, ROWSET_RANDOM },
	{ "parent", ROWSET_U32, ROWSET_RANDOM },
	{ "depth", ROWSET_U32, ROWSET_FEW },
	{ "frames", ROWSET_LIST, ROWSET_RANDOM },
	{ "function", ROWSET_TEXT, ROWSET_FEW },
	{ "module", ROWSET_TEXT, ROWSET_FEW },
	{ "identity", ROWSET_U64, ROWSET_RANDOM },
	{ "names_identity", ROWSET_U64, ROWSET_RANDOM },
	{ "incomplete", ROWSET_U32, ROWSET_FEW },
};

static const struct rowset_column frames[] = {
	{ "trace", ROWSET_TEXT, ROWSET_FEW },    { "frame", ROWSET_U32, ROWSET_RANDOM },
	{ "inline", ROWSET_U32, ROWSET_FEW },    { "inlined", ROWSET_U32, ROWSET_FEW },
	{ "function", ROWSET_TEXT, ROWSET_FEW }, { "file", ROWSET_TEXT, ROWSET_FEW },
	{ "line", ROWSET_U32, ROWSET_FEW },      { "module", ROWSET_TEXT, ROWSET_FEW },
	{ "build_id", ROWSET_TEXT, ROWSET_FEW }, { "offset", ROWSET_U64, ROWSET_NEAR },
};

static const struct rowset_column processes[] = {
	{ "trace", ROWSET_TEXT, ROWSET_FEW },     { "process", ROWSET_U32, ROWSET_RANDOM },
	{ "parent", ROWSET_U32, ROWSET_FEW },     { "pid", ROWSET_U32, ROWSET_RANDOM },
	{ "generation", ROWSET_U32, ROWSET_FEW }, { "bits", ROWSET_U32, ROWSET_FEW },
	{ "exe", ROWSET_TEXT, ROWSET_FEW },       { "command", ROWSET_TEXT, ROWSET_FEW },
	{ "began_ns", ROWSET_U64, ROWSET_NEAR },  { "ended_ns", ROWSET_U64, ROWSET_NEAR },
	{ "exit", ROWSET_TEXT, ROWSET_FEW },      { "rss_max", ROWSET_U64, ROWSET_RANDOM },
};

static const struct rowset_column threads[] = {
	{ "trace", ROWSET_TEXT, ROWSET_FEW },  { "thread", ROWSET_U32, ROWSET_RANDOM },
	{ "process", ROWSET_U32, ROWSET_FEW }, { "tid", ROWSET_U32, ROWSET_RANDOM },
	{ "name", ROWSET_TEXT, ROWSET_FEW },
};

static const struct rowset_column modules[] = {
	{ "trace", ROWSET_TEXT, ROWSET_FEW },
	{ "module", ROWSET_U32, ROWSET_RANDOM },
	{ "process", ROWSET_U32, ROWSET_FEW },
	{ "path", ROWSET_TEXT, ROWSET_FEW },
	{ "build_id", ROWSET_TEXT, ROWSET_FEW },
	{ "start_address", ROWSET_U64, ROWSET_RANDOM },
	{ "end_address", ROWSET_U64, ROWSET_RANDOM },
	{ "bias", ROWSET_U64, ROWSET_RANDOM },
};

static const struct rowset_column marks[] = {
	{ "trace", ROWSET_TEXT, ROWSET_FEW },   { "event", ROWSET_U64, ROWSET_NEAR },
	{ "time_ns", ROWSET_U64, ROWSET_NEAR }, { "process", ROWSET_U32, ROWSET_FEW },
	{ "thread", ROWSET_U32, ROWSET_FEW },   { "name", ROWSET_TEXT, ROWSET_FEW },
};

static const struct rowset_column rss[] = {
	{ "trace", ROWSET_TEXT, ROWSET_FEW },
	{ "process", ROWSET_U32, ROWSET_FEW },
	{ "time_ns", ROWSET_U64, ROWSET_NEAR },
	{ "bytes", ROWSET_U64, ROWSET_NEAR },
};

static const struct rowset_column sites[] = {
	{ "trace", ROWSET_TEXT, ROWSET_FEW },
	{ "site", ROWSET_U64, ROWSET_RANDOM },
	{ "stack", ROWSET_U32, ROWSET_NEAR },
	{ "function", ROWSET_TEXT, ROWSET_FEW },
	{ "module", ROWSET_TEXT, ROWSET_FEW },
	{ "count", ROWSET_DOUBLE, ROWSET_RANDOM },
	{ "bytes", ROWSET_DOUBLE, ROWSET_RANDOM },
	{ "kept_count", ROWSET_DOUBLE, ROWSET_FEW },
	{ "kept_bytes", ROWSET_DOUBLE, ROWSET_FEW },
	{ "byte_seconds", ROWSET_DOUBLE, ROWSET_RANDOM },
};

static const struct rowset_column labels[] = {
	{ "trace", ROWSET_TEXT, ROWSET_FEW },
	{ "name", ROWSET_TEXT, ROWSET_FEW },
	{ "value", ROWSET_TEXT, ROWSET_FEW },
};

static const struct rowset_column runs[] = {
	{ "trace", ROWSET_TEXT, ROWSET_FEW },
	{ "schema_version", ROWSET_U32, ROWSET_RANDOM },
	{ "command", ROWSET_TEXT, ROWSET_FEW },
	{ "directory", ROWSET_TEXT, ROWSET_FEW },
	{ "host", ROWSET_TEXT, ROWSET_FEW },
	{ "tool", ROWSET_TEXT, ROWSET_FEW },
	{ "options", ROWSET_TEXT, ROWSET_FEW },
	{ "began_unix_ns", ROWSET_U64, ROWSET_RANDOM },
	{ "duration_ns", ROWSET_U64, ROWSET_RANDOM },
	{ "tick_ns", ROWSET_U64, ROWSET_RANDOM },
	{ "sample_bytes", ROWSET_U64, ROWSET_RANDOM },
	{ "events_lost", ROWSET_U64, ROWSET_RANDOM },
	{ "complete", ROWSET_U32, ROWSET_RANDOM },
};

const struct rowset_table rowset_tables[ROWSET_TABLES] = {
	[ROWSET_ALLOCATIONS] = { "allocations", COLUMNS(allocations) },
	[ROWSET_STACKS] = { "stacks", COLUMNS(stacks) },
	[ROWSET_FRAMES] = { "frames", COLUMNS(frames) },
	[ROWSET_PROCESSES] = { "processes", COLUMNS(processes) },
	[ROWSET_THREADS] = { "threads", COLUMNS(threads) },
	[ROWSET_MODULES] = { "modules", COLUMNS(modules) },
	[ROWSET_MARKS] = { "marks", COLUMNS(marks) },
	[ROWSET_RSS] = { "rss", COLUMNS(rss) },
	[ROWSET_SITES] = { "sites", COLUMNS(sites) },
	[ROWSET_LABELS] = { "labels", COLUMNS(labels) },
	[ROWSET_RUNS] = { "runs", COLUMNS(runs) },
};

// ROWSET_TABLES: there is none of that name.
enum rowset_table_id rowset_find(const char *name)
{
	enum rowset_table_id id = 0;

	while (id < ROWSET_TABLES && strcmp(rowset_tables[id].name, name) != 0)
		id++;
	return id;
}
