// pprof: a gzip'ed profile.proto (https://github.com/google/pprof, proto/profile.proto) with the
// four values of Go's heap profiles: what was allocated in the window and what lives at its end, in
// objects and bytes. `go tool pprof` and what else reads pprof shows it.
//
// A sample is a process, thread, stack and block size; all but the stack are in its labels, too
// ("process", "thread", "bytes"). Functions are numbered from 1 as the format wants it, locations
// and mappings likewise. Samples are written as they come; tables follow them.
#include "export/export.h"
#include "export/gzip.h"
#include "export/locations.h"
#include "export/profile.h"
#include "export/protobuf.h"
#include "report/ask/wrappers.h"

#include "base/mem.h"

#include <string.h>

enum profile_field {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_DROP_FRAMES = 7,
	PROFILE_TIME_NANOS = 9,
	PROFILE_DURATION_NANOS = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_SAMPLE_TYPE = 14,
};

// Locations and functions: what was recorded without a stack has one of its own, since `go tool
// pprof` leaves out samples that have none.
enum { WITHOUT = 1, FIRST = 2 };

struct pprof {
	const struct export_source *source;
	struct reader *reader;
	struct gzip *gzip;
	struct locations locations;
	struct str message, part, out; // scratch: a message, one inside of it, with its tag
	uint32_t *numbers;             // of the present stack's locations
	size_t capacity;
	struct map mappings; // by module: number
};

// The number of a text in the profile's table.
static uint64_t text(struct pprof *pprof, const char *words)
{
	return string_table_add(&pprof->locations.strings, words);
}

// Write `message` as a field of the profile.
static void write_field(struct pprof *pprof, enum profile_field field, const struct str *message)
{
	str_clear(&pprof->out);
	protobuf_bytes(&pprof->out, field, str_get(message), message->length);
	gzip_write(pprof->gzip, pprof->out.text, pprof->out.length);
}

static void write_number(struct pprof *pprof, enum profile_field field, uint64_t value)
{
	str_clear(&pprof->out);
	protobuf_u64(&pprof->out, field, value);
	gzip_write(pprof->gzip, str_get(&pprof->out), pprof->out.length);
}

static void write_type(struct pprof *pprof, enum profile_field field, const char *name,
		       const char *unit)
{
	str_clear(&pprof->message);
	protobuf_u64(&pprof->message, 1, text(pprof, name));
	protobuf_u64(&pprof->message, 2, text(pprof, unit));
	write_field(pprof, field, &pprof->message);
}

static void add_label(struct pprof *pprof, const char *key, const char *value)
{
	str_clear(&pprof->part);
	protobuf_u64(&pprof->part, 1, text(pprof, key));
	protobuf_u64(&pprof->part, 2, text(pprof, value));
	// Labels are field 3 of a sample, and texts are numbers.
	protobuf_bytes(&pprof->message, 3, str_get(&pprof->part), pprof->part.length);
}

// A label with a number and its unit: `go tool pprof` shows sizes of blocks by that name.
static void add_size(struct pprof *pprof, uint64_t size)
{
	str_clear(&pprof->part);
	protobuf_u64(&pprof->part, 1, text(pprof, "bytes"));
	protobuf_u64(&pprof->part, 3, size);
	protobuf_u64(&pprof->part, 4, text(pprof, "bytes"));
	protobuf_bytes(&pprof->message, 3, str_get(&pprof->part), pprof->part.length);
}

static void add_labels(struct pprof *pprof, const struct sample *sample)
{
	struct str words = { 0 };

	export_add_process(pprof->reader, sample->process, &words);
	add_label(pprof, "process", str_get(&words));
	str_clear(&words);
	export_add_thread(pprof->reader, sample->thread, &words);
	add_label(pprof, "thread", str_get(&words));
	str_fini(&words);
	add_size(pprof, sample->size);
}

// Stack, values and labels. Numbers of locations are those of `locations` and FIRST.
static void write_sample(struct pprof *pprof, const struct sample *sample)
{
	size_t depth = locations_of_stack(&pprof->locations, sample->stack, &pprof->numbers,
					  &pprof->capacity);

	str_clear(&pprof->message);
	str_clear(&pprof->part);
	// The sample's fields: 1 its locations, innermost first, 2 its values, 3 each label.
	if (depth == 0)
		protobuf_varint(&pprof->part, WITHOUT);
	for (size_t i = 0; i < depth; i++)
		protobuf_varint(&pprof->part, pprof->numbers[i] + (uint64_t)FIRST);
	protobuf_bytes(&pprof->message, 1, str_get(&pprof->part), pprof->part.length);
	str_clear(&pprof->part);
	for (size_t i = 0; i < PROFILE_VALUES; i++)
		protobuf_varint(&pprof->part,
				(uint64_t)samples_value(sample, profile_values[i].value));
	protobuf_bytes(&pprof->message, 2, str_get(&pprof->part), pprof->part.length);
	add_labels(pprof, sample);
	write_field(pprof, PROFILE_SAMPLE, &pprof->message);
}

// ---- tables ----

static void write_mapping(struct pprof *pprof, const struct trace_module *module, uint64_t number)
{
	struct str id = { 0 };

	str_add_hex(&id, module->build_id, module->build_id_length);
	str_clear(&pprof->message);
	protobuf_u64(&pprof->message, 1, number);
	profile_add_mapping(&pprof->message, 2, module, &pprof->locations.strings);
	protobuf_u64(&pprof->message, 6, text(pprof, str_get(&id)));
	// A reader that looks up symbols by itself leaves those mappings alone.
	for (unsigned has = 7; has <= 10; has++) // functions, files, lines, inline frames
		protobuf_u64(&pprof->message, has, true);
	write_field(pprof, PROFILE_MAPPING, &pprof->message);
	str_fini(&id);
}

static void add_line(struct pprof *pprof, uint64_t function, uint64_t line)
{
	str_clear(&pprof->part);
	protobuf_u64(&pprof->part, 1, function);
	protobuf_u64(&pprof->part, 2, line);
	protobuf_bytes(&pprof->message, 4, str_get(&pprof->part), pprof->part.length);
}

// A mapping is written when its first location is.
static void write_location(struct pprof *pprof, size_t index)
{
	const struct locations *locations = &pprof->locations;
	const struct location *location = &locations->list[index];
	const struct trace_frame *frame = reader_frame(pprof->reader, location->frame);
	const struct trace_module *fresh;
	uint64_t mapping = profile_mapping(pprof->reader, &pprof->mappings, frame, &fresh);

	ASSERT(index < locations->count);
	if (fresh)
		write_mapping(pprof, fresh, mapping);
	str_clear(&pprof->message);
	protobuf_u64(&pprof->message, 1, index + FIRST);
	protobuf_u64(&pprof->message, 2, mapping);
	protobuf_u64(&pprof->message, 3, frame ? frame->pc : 0);
	for (uint32_t i = 0; i < location->lines_count; i++) {
		const struct location_line *line = &locations->lines[location->lines_first + i];

		add_line(pprof, line->function + (uint64_t)FIRST, line->line);
	}
	write_field(pprof, PROFILE_LOCATION, &pprof->message);
}

static void write_function(struct pprof *pprof, uint64_t number, uint64_t name, uint64_t file)
{
	str_clear(&pprof->message);
	protobuf_u64(&pprof->message, 1, number);
	protobuf_u64(&pprof->message, 2, name);
	// A name in <> (Python's <module>) pprof would take for arguments of a template: it leaves
	// alone what differs from the system's name.
	protobuf_u64(&pprof->message, 3, *pprof->locations.strings.texts[name] == '<' ? 0 : name);
	protobuf_u64(&pprof->message, 4, file);
	write_field(pprof, PROFILE_FUNCTION, &pprof->message);
}

static void write_functions(struct pprof *pprof)
{
	write_function(pprof, WITHOUT, text(pprof, "(no stack)"), 0);
	for (size_t i = 0; i < pprof->locations.functions_count; i++) {
		const struct location_function *function = &pprof->locations.functions[i];

		write_function(pprof, i + FIRST, function->name, function->file);
	}
	// And the location of what has no stack, with that function.
	str_clear(&pprof->message);
	protobuf_u64(&pprof->message, 1, WITHOUT);
	add_line(pprof, WITHOUT, 0);
	write_field(pprof, PROFILE_LOCATION, &pprof->message);
}

static void write_strings(struct pprof *pprof)
{
	const struct string_table *strings = &pprof->locations.strings;

	for (size_t i = 0; i < strings->count; i++) {
		str_clear(&pprof->out);
		protobuf_text(&pprof->out, PROFILE_STRING, strings->texts[i]);
		gzip_write(pprof->gzip, pprof->out.text, pprof->out.length);
	}
}

// The time of a profile is its end, as Go's are; warnings are comments. Frames of malloc, operator
// new and the like are in the samples, and their names among those that a reader drops, as in the
// profiles of other allocators: `go tool pprof -top` names who allocates.
static void write_head(struct pprof *pprof)
{
	const struct query_context *asked = pprof->source->asked;
	const struct trace_info *info = reader_info(pprof->reader);
	struct str wrappers = { 0 };

	text(pprof, ""); // number 0, as the format wants it
	for (size_t i = 0; i < PROFILE_VALUES; i++)
		write_type(pprof, PROFILE_SAMPLE_TYPE, profile_values[i].name,
			   profile_values[i].unit);
	write_type(pprof, PROFILE_PERIOD_TYPE, "space", "bytes");
	write_number(pprof, PROFILE_PERIOD, info->sample_bytes ? info->sample_bytes : 1);
	write_number(pprof, PROFILE_DEFAULT_SAMPLE_TYPE, text(pprof, "inuse_space"));
	write_number(pprof, PROFILE_TIME_NANOS, info->began_unix_ns + asked->to_ns);
	write_number(pprof, PROFILE_DURATION_NANOS, asked->to_ns - asked->from_ns);
	write_number(pprof, PROFILE_COMMENT, text(pprof, info->command));
	wrappers_add_expression(&wrappers);
	write_number(pprof, PROFILE_DROP_FRAMES, text(pprof, str_get(&wrappers)));
	str_fini(&wrappers);
	for (size_t i = 0; i < asked->warnings_count; i++)
		write_number(pprof, PROFILE_COMMENT, text(pprof, asked->warnings[i]));
}

// What pprof calls the file of a profile is its first mapping: the program, of the process that the
// samples begin with.
static void write_program(struct pprof *pprof)
{
	const struct samples *samples = pprof->source->samples;
	uint32_t count = reader_modules_count(pprof->reader);
	const struct trace_process *process;

	if (samples->count == 0)
		return;
	process = reader_process(pprof->reader, samples->list[0].process);
	for (module_id id = 1; process && id < count; id++) {
		const struct trace_frame frame = { .module = id };
		const struct trace_module *module = reader_module(pprof->reader, id), *fresh;
		uint64_t number;

		if (!module || module->process != process->id ||
		    strcmp(module->path, process->exe) != 0)
			continue;
		number = profile_mapping(pprof->reader, &pprof->mappings, &frame, &fresh);
		write_mapping(pprof, fresh, number);
		return;
	}
}

// Samples first: the tables are known when all of them have been written.
static void write_profile(struct pprof *pprof)
{
	const struct samples *samples = pprof->source->samples;

	write_head(pprof);
	// These ask for locations, which ask for functions and texts; so each table is complete
	// when it is written.
	for (size_t i = 0; i < samples->count; i++)
		write_sample(pprof, &samples->list[i]);
	write_program(pprof);
	for (size_t i = 0; i < pprof->locations.count; i++)
		write_location(pprof, i);
	write_functions(pprof);
	write_strings(pprof);
}

static bool write(const struct export_source *source, struct sink *sink, struct err *)
{
	struct query_context *asked = source->asked;
	struct pprof pprof = {
		.source = source,
		.reader = asked->reader,
		.gzip = gzip_begin(sink),
		.locations = { .reader = asked->reader, .names = asked->names, .scoped = true },
	};

	write_profile(&pprof);
	gzip_end(pprof.gzip);
	locations_fini(&pprof.locations);
	map_fini(&pprof.mappings);
	STR_FINI(&pprof.message, &pprof.part, &pprof.out);
	mem_free(pprof.numbers);
	return true;
}

const struct export_format pprof_format = {
	.name = "pprof",
	.brief = "profile.proto, gzip'ed: alloc and inuse, space and objects",
	.has_samples = true,
	.by_size = true,
	.write = write,
};
