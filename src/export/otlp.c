// otlp: OpenTelemetry's profiles signal as one ProfilesData message (opentelemetry-proto,
// profiles/v1development, as of August 2026: after 1.9.0, still in development).
//
// Each process is a resource (process.pid, process.executable.path, process.command_line,
// host.name) with four profiles: allocations and bytes allocated in the window, blocks and bytes
// that live at its end. A sample is a stack and a thread, whose id and name are its attributes.
// What profiles refer to is in one dictionary, whose entries number 0 are empty, as the format
// wants.
#include "export/export.h"
#include "export/locations.h"
#include "export/profile.h"
#include "export/protobuf.h"

#include "base/mem.h"

// Fields of the messages that are written, by name: message_field.
enum otlp_field {
	DATA_RESOURCE_PROFILES = 1,
	DATA_DICTIONARY = 2,
	DICTIONARY_MAPPING = 1,
	DICTIONARY_LOCATION = 2,
	DICTIONARY_FUNCTION = 3,
	DICTIONARY_LINK = 4,
	DICTIONARY_STRING = 5,
	DICTIONARY_ATTRIBUTE = 6,
	DICTIONARY_STACK = 7,
	RESOURCE_PROFILES_RESOURCE = 1,
	RESOURCE_PROFILES_SCOPE = 2,
	SCOPE_PROFILES_SCOPE = 1,
	SCOPE_PROFILES_PROFILE = 2,
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_TIME = 3,
	PROFILE_DURATION = 4,
	PROFILE_PERIOD_TYPE = 5,
	PROFILE_PERIOD = 6,
	SAMPLE_STACK = 1,
	SAMPLE_ATTRIBUTES = 2,
	SAMPLE_VALUES = 4,
	ANY_TEXT = 1,
	ANY_NUMBER = 3,
};

struct otlp {
	const struct export_source *source;
	struct reader *reader;
	struct locations locations;
	struct str dictionary;                // its fields, but for strings
	struct map stacks, mappings, threads; // numbers in their tables, by id
	uint64_t attributes_count;            // in the table
	size_t locations_written;
	uint32_t *numbers; // of the present stack's locations
	size_t capacity;
};

// The number of a text in the dictionary.
static uint64_t text(struct otlp *otlp, const char *words)
{
	return string_table_add(&otlp->locations.strings, words);
}

// Append `part` as a message of `out`, and empty it.
static void add_message(struct str *out, unsigned field, struct str *part)
{
	protobuf_bytes(out, field, str_get(part), part->length);
	str_clear(part);
}

// ---- attributes ----

// An AnyValue: a text, or a number where that is NULL.
static void add_value(struct str *out, unsigned field, const char *words, uint64_t number)
{
	struct str value = { 0 };

	if (words) {
		protobuf_text(&value, ANY_TEXT, words);
	} else { // in a oneof, 0 is written too
		protobuf_varint(&value, ANY_NUMBER << 3);
		protobuf_varint(&value, number);
	}
	add_message(out, field, &value);
	str_fini(&value);
}

// A KeyValue of a resource.
static void add_attribute(struct str *resource, const char *key, const char *words, uint64_t number)
{
	struct str pair = { 0 };

	protobuf_text(&pair, 1, key);
	add_value(&pair, 2, words, number);
	add_message(resource, 1, &pair);
	str_fini(&pair);
}

// An entry of the dictionary's table of attributes. Its number.
static uint64_t table_attribute(struct otlp *otlp, const char *key, const char *words,
				uint64_t number)
{
	struct str pair = { 0 };

	protobuf_u64(&pair, 1, text(otlp, key));
	add_value(&pair, 2, words, number);
	add_message(&otlp->dictionary, DICTIONARY_ATTRIBUTE, &pair);
	str_fini(&pair);
	return otlp->attributes_count++;
}

// The number of a thread's id; that of its name follows, if it has one.
static uint64_t thread_attribute(struct otlp *otlp, thread_id id)
{
	const struct trace_thread *thread = reader_thread(otlp->reader, id);
	bool added;
	uint64_t *number = map_put(&otlp->threads, id, &added);

	if (added) {
		*number = table_attribute(otlp, "thread.id", NULL, thread ? thread->tid : 0);
		if (thread && thread->name[0])
			table_attribute(otlp, "thread.name", thread->name, 0);
	}
	return *number;
}

// ---- stacks ----

static void add_mapping(struct otlp *otlp, const struct trace_module *module)
{
	struct str mapping = { 0 }, id = { 0 }, list = { 0 };

	profile_add_mapping(&mapping, 1, module, &otlp->locations.strings);
	// The build-id is an attribute of a mapping here, in the dictionary's table like those of
	// threads.
	str_add_hex(&id, module->build_id, module->build_id_length);
	if (id.length > 0) {
		protobuf_varint(&list, table_attribute(otlp, "process.executable.build_id.gnu",
						       str_get(&id), 0));
		add_message(&mapping, 5, &list);
	}
	add_message(&otlp->dictionary, DICTIONARY_MAPPING, &mapping);
	STR_FINI(&mapping, &id, &list);
}

static uint64_t mapping_of(struct otlp *otlp, const struct trace_frame *frame)
{
	const struct trace_module *fresh;
	uint64_t number = profile_mapping(otlp->reader, &otlp->mappings, frame, &fresh);

	if (fresh)
		add_mapping(otlp, fresh);
	return number;
}

// Locations that were met since the last time: number n of `locations` is n + 1 of the table.
static void add_locations(struct otlp *otlp)
{
	const struct locations *locations = &otlp->locations;
	struct str message = { 0 }, part = { 0 };

	for (; otlp->locations_written < locations->count; otlp->locations_written++) {
		const struct location *location = &locations->list[otlp->locations_written];
		const struct trace_frame *frame = reader_frame(otlp->reader, location->frame);

		protobuf_u64(&message, 1, mapping_of(otlp, frame));
		protobuf_u64(&message, 2, frame ? frame->pc : 0);
		for (uint32_t i = 0; i < location->lines_count; i++) {
			const struct location_line *line =
				&locations->lines[location->lines_first + i];

			protobuf_u64(&part, 1, line->function + UINT64_C(1));
			protobuf_u64(&part, 2, line->line);
			add_message(&message, 3, &part);
		}
		add_message(&otlp->dictionary, DICTIONARY_LOCATION, &message);
	}
	STR_FINI(&message, &part);
}

// Locations are added when a stack first has them, so the dictionary has all that its stacks refer
// to.
static uint64_t stack_of(struct otlp *otlp, stack_id stack)
{
	struct str list = { 0 }, message = { 0 };
	uint64_t *number;
	size_t depth;
	bool added;

	if (stack == 0)
		return 0;
	number = map_put(&otlp->stacks, stack, &added);
	if (!added)
		return *number;
	// The map has it already, so the first stack is number 1: 0 is the empty one.
	*number = otlp->stacks.count;
	depth = locations_of_stack(&otlp->locations, stack, &otlp->numbers, &otlp->capacity);
	for (size_t i = 0; i < depth; i++)
		protobuf_varint(&list, otlp->numbers[i] + UINT64_C(1));
	add_message(&message, 1, &list);
	add_message(&otlp->dictionary, DICTIONARY_STACK, &message);
	add_locations(otlp);
	STR_FINI(&list, &message);
	return *number;
}

static void add_functions(struct otlp *otlp)
{
	struct str message = { 0 };

	for (size_t i = 0; i < otlp->locations.functions_count; i++) {
		const struct location_function *function = &otlp->locations.functions[i];

		protobuf_u64(&message, 1, function->name);
		protobuf_u64(&message, 2, function->name);
		protobuf_u64(&message, 3, function->file);
		add_message(&otlp->dictionary, DICTIONARY_FUNCTION, &message);
	}
	str_fini(&message);
}

// ---- profiles ----

// Attributes are numbers in the dictionary: that of the thread's id, and the next one for its name.
static void add_sample(struct otlp *otlp, struct str *profile, const struct sample *sample,
		       int64_t value)
{
	const struct trace_thread *thread = reader_thread(otlp->reader, sample->thread);
	uint64_t attribute = thread_attribute(otlp, sample->thread);
	struct str message = { 0 }, list = { 0 };

	protobuf_u64(&message, SAMPLE_STACK, stack_of(otlp, sample->stack));
	protobuf_varint(&list, attribute);
	if (thread && thread->name[0])
		protobuf_varint(&list, attribute + 1);
	add_message(&message, SAMPLE_ATTRIBUTES, &list);
	protobuf_varint(&list, (uint64_t)value);
	add_message(&message, SAMPLE_VALUES, &list);
	add_message(profile, PROFILE_SAMPLE, &message);
	STR_FINI(&message, &list);
}

static void add_type(struct otlp *otlp, struct str *profile, unsigned field, const char *name,
		     const char *unit)
{
	struct str type = { 0 };

	protobuf_u64(&type, 1, text(otlp, name));
	protobuf_u64(&type, 2, text(otlp, unit));
	add_message(profile, field, &type);
	str_fini(&type);
}

// The samples of one process, [first, end), as one profile.
static void add_profile(struct otlp *otlp, struct str *scope, size_t which, size_t first,
			size_t end)
{
	const struct query_context *asked = otlp->source->asked;
	const struct trace_info *info = reader_info(otlp->reader);
	struct str profile = { 0 };

	ASSERT(first <= end && end <= otlp->source->samples->count);
	add_type(otlp, &profile, PROFILE_SAMPLE_TYPE, profile_values[which].name,
		 profile_values[which].unit);
	// A sample that comes to nothing in this profile (all freed, in one of what lives) is left
	// out.
	for (size_t i = first; i < end;) {
		const struct sample *sample = &otlp->source->samples->list[i];
		int64_t value = 0;

		// Sizes are apart in sampled recordings.
		for (; i < end && otlp->source->samples->list[i].stack == sample->stack &&
		       otlp->source->samples->list[i].thread == sample->thread;
		     i++)
			value += samples_value(&otlp->source->samples->list[i],
					       profile_values[which].value);
		if (value)
			add_sample(otlp, &profile, sample, value);
	}
	protobuf_fixed64(&profile, PROFILE_TIME, info->began_unix_ns + asked->from_ns);
	protobuf_u64(&profile, PROFILE_DURATION, asked->to_ns - asked->from_ns);
	add_type(otlp, &profile, PROFILE_PERIOD_TYPE, "space", "bytes");
	protobuf_u64(&profile, PROFILE_PERIOD, info->sample_bytes ? info->sample_bytes : 1);
	add_message(scope, SCOPE_PROFILES_PROFILE, &profile);
	str_fini(&profile);
}

static void add_resource(struct otlp *otlp, struct str *out, process_id id)
{
	const struct trace_process *process = reader_process(otlp->reader, id);
	struct str resource = { 0 }, command = { 0 };

	if (process) {
		for (uint32_t i = 0; i < process->args_count; i++)
			str_format(&command, "%s%s", i ? " " : "", process->args[i]);
		add_attribute(&resource, "process.pid", NULL, process->pid);
		add_attribute(&resource, "process.executable.path", process->exe, 0);
		add_attribute(&resource, "process.command_line", str_get(&command), 0);
	}
	add_attribute(&resource, "host.name", reader_info(otlp->reader)->host, 0);
	add_message(out, RESOURCE_PROFILES_RESOURCE, &resource);
	STR_FINI(&resource, &command);
}

// A message has its length in front, so all of a process is put together before it is written.
static void write_process(struct otlp *otlp, struct sink *sink, size_t first, size_t end)
{
	struct str message = { 0 }, scope = { 0 }, part = { 0 };

	ASSERT(first < end && end <= otlp->source->samples->count);
	add_resource(otlp, &message, otlp->source->samples->list[first].process);
	protobuf_text(&part, 1, reader_info(otlp->reader)->tool);
	add_message(&scope, SCOPE_PROFILES_SCOPE, &part);
	for (size_t which = 0; which < PROFILE_VALUES; which++)
		add_profile(otlp, &scope, which, first, end);
	add_message(&message, RESOURCE_PROFILES_SCOPE, &scope);
	add_message(&part, DATA_RESOURCE_PROFILES, &message);
	sink_write(sink, part.text, part.length);
	STR_FINI(&message, &scope, &part);
}

// Written last: a message's fields may come in any order.
static void write_dictionary(struct otlp *otlp, struct sink *sink)
{
	const struct string_table *strings = &otlp->locations.strings;
	struct str out = { 0 };

	add_functions(otlp);
	for (size_t i = 0; i < strings->count; i++)
		protobuf_text(&otlp->dictionary, DICTIONARY_STRING, strings->texts[i]);
	add_message(&out, DATA_DICTIONARY, &otlp->dictionary);
	sink_write(sink, out.text, out.length);
	str_fini(&out);
}

// The empty entries number 0.
static void begin_tables(struct otlp *otlp)
{
	text(otlp, "");
	// Fields 1 to 7 are the tables, and each gets an empty first entry; that of strings is the
	// text above.
	for (unsigned field = DICTIONARY_MAPPING; field <= DICTIONARY_STACK; field++)
		if (field != DICTIONARY_STRING)
			protobuf_bytes(&otlp->dictionary, field, "", 0);
	otlp->attributes_count = 1;
}

// Samples are sorted, so each process has its own in a row, and is written when they end.
static bool write(const struct export_source *source, struct sink *sink, struct err *)
{
	const struct samples *samples = source->samples;
	struct otlp otlp = {
		.source = source,
		.reader = source->asked->reader,
		.locations = { .reader = source->asked->reader,
			       .names = source->asked->names,
			       .scoped = true },
	};

	begin_tables(&otlp);
	for (size_t first = 0, i = 0; first < samples->count; first = i) {
		while (i < samples->count &&
		       samples->list[i].process == samples->list[first].process)
			i++;
		write_process(&otlp, sink, first, i);
	}
	write_dictionary(&otlp, sink);
	locations_fini(&otlp.locations);
	MAP_FINI(&otlp.stacks, &otlp.mappings, &otlp.threads);
	str_fini(&otlp.dictionary);
	mem_free(otlp.numbers);
	return true;
}

const struct export_format otlp_format = {
	.name = "otlp",
	.brief = "OpenTelemetry's profiles, v1development: alloc and inuse, space and objects",
	.has_samples = true,
	.write = write,
};
