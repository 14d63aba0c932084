// speedscope: a JSON file of sampled profiles, for https://www.speedscope.app
// (its file-format-schema.json). One profile for each value, all on one table of frames: a sample
// is a stack, its weight the value. The format has no negative weights and no labels: threads and
// sizes are summed up, stacks that shrank are not in the profile of what grew.
//
// For example, of stacks main;f with 30 bytes and main;g with 10
//
//     "shared":{"frames":[{"name":"f"},{"name":"main"},{"name":"g"},…]}
//     "samples":[[1,0],[1,2]], "weights":[30,10]
#include "export/export.h"
#include "export/locations.h"

#include "base/json.h"
#include "base/mem.h"

static const struct {
	enum samples_value value;
	const char *name;
} profiles[] = {
	{ SAMPLES_LIVE, "live bytes at the end" }, { SAMPLES_BLOCKS, "live blocks at the end" },
	{ SAMPLES_ALLOCATED, "bytes allocated" },  { SAMPLES_ALLOCATIONS, "allocations" },
	{ SAMPLES_IMPACTING, "bytes grown by" },
};

enum { PROFILES = sizeof profiles / sizeof *profiles };

struct speedscope {
	const struct export_source *source;
	struct json json;
	struct locations locations;
	uint32_t *numbers;
	size_t capacity;
	size_t shrunk_count;
};

// A frame is one line of a location; its number is the line's.
static void write_frames(struct speedscope *speedscope)
{
	const struct locations *locations = &speedscope->locations;
	struct json *json = &speedscope->json;

	json_kv_object(json, "shared");
	json_kv_array(json, "frames");
	for (size_t i = 0; i < locations->lines_count; i++) {
		const struct location_line *line = &locations->lines[i];
		const struct location_function *function = &locations->functions[line->function];
		const char *file = locations->strings.texts[function->file];

		json_object_begin(json);
		json_kv_string(json, "name", locations->strings.texts[function->name]);
		if (*file)
			json_kv_string(json, "file", file);
		if (line->line)
			json_kv_u64(json, "line", line->line);
		json_object_end(json);
	}
	json_object_begin(json);
	json_kv_string(json, "name", "(no stack)");
	json_object_end(json);
	json_array_end(json);
	json_object_end(json);
}

// Outermost first, as the format has it; "(no stack)" is the frame after all lines.
static void write_stack(struct speedscope *speedscope, stack_id stack)
{
	struct locations *locations = &speedscope->locations;
	size_t depth =
		locations_of_stack(locations, stack, &speedscope->numbers, &speedscope->capacity);

	json_array_begin(&speedscope->json);
	if (depth == 0)
		json_u64(&speedscope->json, locations->lines_count);
	while (depth-- > 0) {
		const struct location *location = &locations->list[speedscope->numbers[depth]];

		for (uint32_t i = location->lines_count; i-- > 0;)
			json_u64(&speedscope->json, location->lines_first + i);
	}
	json_array_end(&speedscope->json);
}

// Sums over neighbours of one process and stack; `each` is called where they are positive. Returns
// the sum of all of these.
static uint64_t walk(struct speedscope *speedscope, enum samples_value value,
		     void (*each)(struct speedscope *, const struct sample *, uint64_t))
{
	const struct samples *samples = speedscope->source->samples;
	uint64_t total = 0;
	int64_t sum;

	for (size_t first = 0, i = 0; samples_next_stack(samples, &i, value, &sum); first = i) {
		speedscope->shrunk_count += sum < 0;
		if (sum <= 0)
			continue;
		total += (uint64_t)sum;
		if (each)
			each(speedscope, &samples->list[first], (uint64_t)sum);
	}
	return total;
}

// Frames come before the profiles in the file, so all stacks are met in a first round.
static void meet_stack(struct speedscope *speedscope, const struct sample *sample, uint64_t)
{
	// The numbers are not needed yet: what counts is that the locations have all its frames.
	locations_of_stack(&speedscope->locations, sample->stack, &speedscope->numbers,
			   &speedscope->capacity);
}

static void each_stack(struct speedscope *speedscope, const struct sample *sample, uint64_t)
{
	write_stack(speedscope, sample->stack);
}

static void each_weight(struct speedscope *speedscope, const struct sample *, uint64_t sum)
{
	ASSERT(sum > 0);
	json_u64(&speedscope->json, sum);
}

// Three rounds over the samples: the sum, the stacks, the weights. They skip the same ones.
static void write_profile(struct speedscope *speedscope, enum samples_value value, const char *name)
{
	struct json *json = &speedscope->json;

	json_object_begin(json);
	json_kv_string(json, "type", "sampled");
	json_kv_string(json, "name", name);
	json_kv_string(json, "unit", *samples_unit(value) == 'b' ? "bytes" : "none");
	json_kv_u64(json, "startValue", 0);
	json_kv_u64(json, "endValue", walk(speedscope, value, NULL));
	json_kv_array(json, "samples");
	walk(speedscope, value, each_stack);
	json_array_end(json);
	json_kv_array(json, "weights");
	walk(speedscope, value, each_weight);
	json_array_end(json);
	json_object_end(json);
}

static void write_all(struct speedscope *speedscope)
{
	struct json *json = &speedscope->json;
	const struct trace_info *info = reader_info(speedscope->source->asked->reader);

	json_object_begin(json);
	json_kv_string(json, "$schema", "https://www.speedscope.app/file-format-schema.json");
	json_kv_string(json, "exporter", info->tool);
	json_kv_string(json, "name", info->command);
	json_kv_u64(json, "activeProfileIndex", 0);
	write_frames(speedscope);
	json_kv_array(json, "profiles");
	for (size_t i = 0; i < PROFILES; i++)
		write_profile(speedscope, profiles[i].value, profiles[i].name);
	json_array_end(json);
	json_end(json);
}

static bool write(const struct export_source *source, struct sink *sink, struct err *)
{
	struct speedscope speedscope = {
		.source = source,
		.locations = { .reader = source->asked->reader, .names = source->asked->names },
	};
	size_t shrunk;

	json_init(&speedscope.json, sink, false);
	for (size_t i = 0; i < PROFILES; i++)
		walk(&speedscope, profiles[i].value, meet_stack);
	shrunk = speedscope.shrunk_count;
	write_all(&speedscope);
	if (shrunk)
		export_say(
			source,
			"%zu stacks that shrank are not in \"bytes grown by\": speedscope has no "
			"negative weights",
			shrunk);
	locations_fini(&speedscope.locations);
	mem_free(speedscope.numbers);
	return true;
}

const struct export_format speedscope_format = {
	.name = "speedscope",
	.brief = "profiles for speedscope.app: live, allocated, grown by",
	.has_samples = true,
	.write = write,
};
