// folded: a line for each stack, "process;outermost;…;innermost VALUE": what flame graph tools
// read.
//
// The format has no escape: a semicolon in a name is written as a colon, a line break as a space.
// It holds no negative values either: stacks that shrank are counted and left out.
#include "export/export.h"
#include "export/locations.h"

#include "base/mem.h"

#include <inttypes.h>

struct folded {
	const struct export_source *source;
	struct locations locations;
	struct str line;
	uint32_t *numbers; // of the present stack's locations, innermost first
	size_t capacity;
	int64_t shrunk;
	size_t shrunk_count;
};

static void add_name(struct str *line, const char *name)
{
	if (line->length > 0)
		str_add_char(line, ';');
	for (; *name; name++)
		str_add_char(line, *name == ';'                     ? ':'
				   : *name == '\n' || *name == '\r' ? ' '
								    : *name);
}

static void add_stack(struct folded *folded, stack_id stack)
{
	struct locations *locations = &folded->locations;
	size_t depth = locations_of_stack(locations, stack, &folded->numbers, &folded->capacity);

	if (depth == 0)
		add_name(&folded->line, "(no stack)");
	while (depth-- > 0) {
		const struct location *location = &locations->list[folded->numbers[depth]];

		for (uint32_t i = location->lines_count; i-- > 0;) {
			uint32_t function = locations->lines[location->lines_first + i].function;

			add_name(&folded->line,
				 locations->strings.texts[locations->functions[function].name]);
		}
	}
}

// The samples of one process and stack: a line.
static void write_line(struct folded *folded, const struct sample *sample, int64_t value,
		       struct sink *sink)
{
	struct str process = { 0 };

	if (value < 0) {
		folded->shrunk += value;
		folded->shrunk_count++;
	}
	if (value <= 0)
		return;
	str_clear(&folded->line);
	export_add_process(folded->source->asked->reader, sample->process, &process);
	add_name(&folded->line, str_get(&process));
	str_fini(&process);
	add_stack(folded, sample->stack);
	sink_format(sink, "%s %" PRId64 "\n", str_get(&folded->line), value);
}

static bool write(const struct export_source *source, struct sink *sink, struct err *err)
{
	struct folded folded = {
		.source = source,
		.locations = { .reader = source->asked->reader, .names = source->asked->names },
	};
	const struct samples *samples = source->samples;
	int64_t value;

	(void)err;
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
	mem_free(folded.numbers);
	return true;
}

const struct export_format folded_format = {
	.name = "folded",
	.brief = "folded stacks, for flame graph tools",
	.has_samples = true,
	.single_value = true,
	.write = write,
};
