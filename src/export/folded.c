// folded: a line for each stack, "process;outermost;…;innermost VALUE": what flame graph tools
// read.
//
// The format has no escape: a semicolon in a name is written as a colon, a line break as a space.
// It holds no negative values either: stacks that shrank are counted and left out.
//
// For example
//
//     app[4242];main;parse;make_node 4096
//     app[4242];main;read_file 65536
#include "export/export.h"
#include "export/locations.h"

#include <inttypes.h>

struct folded {
	const struct export_source *source;
	struct locations locations;
	struct str line;
	int64_t shrunk;
	size_t shrunk_count;
};

// The samples of one process and stack: a line.
static void write_line(struct folded *folded, const struct sample *sample, int64_t value,
		       struct sink *sink)
{
	struct str process = { 0 };

	// Only `impacting` can be negative: what was freed is more than what was allocated.
	if (value < 0) {
		folded->shrunk += value;
		folded->shrunk_count++;
	}
	if (value <= 0)
		return;
	str_clear(&folded->line);
	export_add_process(folded->source->asked->reader, sample->process, &process);
	locations_fold_name(&folded->line, str_get(&process));
	str_fini(&process);
	locations_fold(&folded->locations, sample->stack, &folded->line);
	sink_format(sink, "%s %" PRId64 "\n", str_get(&folded->line), value);
}

static bool write(const struct export_source *source, struct sink *sink, struct err *)
{
	struct folded folded = {
		.source = source,
		.locations = { .reader = source->asked->reader, .names = source->asked->names },
	};
	const struct samples *samples = source->samples;
	int64_t value;

	// samples_next_stack moves `i` to the next stack; `first` is still at the one that was
	// summed.
	for (size_t first = 0, i = 0; samples_next_stack(samples, &i, source->value, &value);
	     first = i)
		write_line(&folded, &samples->list[first], value, sink);
	if (folded.shrunk_count)
		export_say(source,
			   "%zu stacks that shrank, by %" PRId64
			   " in all, are left out: folded stacks have no negative values",
			   folded.shrunk_count, -folded.shrunk);
	locations_fini(&folded.locations);
	str_fini(&folded.line);
	return true;
}

const struct export_format folded_format = {
	.name = "folded",
	.brief = "folded stacks, for flame graph tools",
	.has_samples = true,
	.single_value = true,
	.write = write,
};
