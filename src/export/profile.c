// Samples of Go's heap profiles have four values. For example, a stack that allocated three blocks
// of 16 bytes in the window, of which one lives at its end: 3, 48, 1, 16.
#include "export/profile.h"

#include "base/mem.h"
#include "export/protobuf.h"

const struct profile_value profile_values[PROFILE_VALUES] = {
	{ SAMPLES_ALLOCATIONS, "alloc_objects", "count" },
	{ SAMPLES_ALLOCATED, "alloc_space", "bytes" },
	{ SAMPLES_BLOCKS, "inuse_objects", "count" },
	{ SAMPLES_LIVE, "inuse_space", "bytes" },
};

// The number is how many there are with it: the first is 1, and 0 means none.
uint64_t profile_mapping(const struct reader *reader, struct map *mappings,
			 const struct trace_frame *frame, const struct trace_module **fresh)
{
	const struct trace_module *module =
		frame && frame->module ? reader_module(reader, frame->module) : NULL;
	uint64_t *number;
	bool added;

	*fresh = NULL;
	if (!module)
		return 0;
	number = map_put(mappings, frame->module, &added);
	if (added) {
		*number = mappings->count;
		*fresh = module;
	}
	ASSERT(*number > 0 && *number <= mappings->count);
	return *number;
}

// Four fields in a row, whose numbers differ between the formats: start, end, offset in the file as
// loaded (start less bias), and the path's number.
void profile_add_mapping(struct str *message, unsigned field, const struct trace_module *module,
			 struct string_table *strings)
{
	protobuf_u64(message, field, module->start);
	protobuf_u64(message, field + 1, module->end);
	protobuf_u64(message, field + 2, module->start - module->bias);
	protobuf_u64(message, field + 3, string_table_add(strings, module->path));
}
