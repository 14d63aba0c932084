// profile: what the two formats of profiles, pprof and OpenTelemetry's, have in common: the four
// values of a sample, and mappings.
#pragma once

#include "base/map.h"
#include "export/samples.h"
#include "export/string_table.h"

enum { PROFILE_VALUES = 4 };

// Those of Go's heap profiles.
extern const struct profile_value {
	enum samples_value value;
	const char *name, *unit;
} profile_values[PROFILE_VALUES];

// The mapping that a frame is in, numbered from 1 in the order in which they are first asked for;
// 0: it is in none. `*fresh` is its module if it has just been numbered, else NULL.
uint64_t profile_mapping(const struct reader *reader, struct map *mappings,
			 const struct trace_frame *frame, const struct trace_module **fresh);

// Four fields from `field` on: where it begins and ends, the offset in its file, the file's name.
// Append.
void profile_add_mapping(struct str *message, unsigned field, const struct trace_module *module,
			 struct string_table *strings);
