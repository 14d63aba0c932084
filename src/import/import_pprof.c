// import_pprof: snapshots as profile.proto (Go, tcmalloc, tidemark and many others): what lives, by
// stack. A profile is in memory as a whole while it is read: its texts stand at its end.
//
// A profile is a message of protocol buffers. For example the bytes 12 07 0a 02 01 02 12 01 28 are
// field 2 (a sample) of 7 bytes: field 1 in it is packed, the locations 1 and 2, innermost first,
// and field 2 is one value, 40. Which values there are is in the fields 1 (sample types), whose
// names are numbers of texts in the fields 6.
#include "base/map.h"
#include "base/mem.h"
#include "import/import_formats.h"
#include "trace/bytes.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

enum {
	FRAMES_MAX = 1 << 12,
	VALUES_MAX = 64,
	NAMES_MAX = 256,
	STEP_NS = 1000000000,
	TAG_SAMPLE_TYPE = 1,
	TAG_SAMPLE = 2,
	TAG_MAPPING = 3,
	TAG_LOCATION = 4,
	TAG_FUNCTION = 5,
	TAG_STRING = 6,
	TAG_TIME = 9,
};

// A field: a number, or bytes.
struct field {
	unsigned tag;
	uint64_t number;
	struct bytes_cursor bytes;
};

struct function {
	uint64_t name, file;
};

struct mapping {
	uint64_t start, end, offset, path, build_id;
};

// `content` is the whole profile; cursors of texts and locations point into it. Ids are the
// profile's own and may be any numbers: maps lead from them to positions.
struct profile {
	struct import_work *work;
	struct intake *intake;
	struct str content;
	struct bytes_cursor *strings;
	size_t strings_count, strings_capacity;
	struct function *functions;
	size_t functions_count, functions_capacity;
	struct mapping *mappings;
	size_t mappings_count, mappings_capacity;
	struct bytes_cursor *locations;
	size_t locations_count, locations_capacity;
	struct map function_of, mapping_of, location_of; // by their ids: position
	struct map frame_of;                             // by a location's position
	int count_at, bytes_at;                          // of a sample's values; -1: not there
	int all_count_at, all_bytes_at;                  // of all that was ever allocated
	unsigned values;
	uint64_t time_ns, mixed;
	process_id process; // of the sample that is read: modules are of the first that has them
	bool damaged;
};

// The next field of a message. False: it ends, or is damaged. Types 0 and 2 are a number and bytes;
// 1 and 5 are fixed numbers, of which none is needed here. Groups (3 and 4) are not used by
// profiles, and are damage. All tags beyond 63 are 64, which is not looked at.
static bool next_field(struct profile *profile, struct bytes_cursor *message, struct field *field)
{
	uint64_t key;

	if (bytes_left(message) == 0)
		return false;
	// A varint: the tag's number times eight, and in the low three bits the type of the value.
	key = bytes_next(message);
	*field = (struct field){ .tag = key >> 3 > 64 ? 64 : (unsigned)(key >> 3) };
	switch (key & 7) {
	case 0:
		field->number = bytes_next(message);
		break;
	case 1:
		bytes_next_raw(message, 8);
		break;
	case 2:
		field->bytes = bytes_next_part(message);
		break;
	case 5:
		bytes_next_raw(message, 4);
		break;
	default:
		message->bad = true;
	}
	profile->damaged |= message->bad;
	return !message->bad;
}

// A text of the table as a copy; owned by the caller. The table of texts has "" at 0. A number that
// is not in it is "" as well.
static char *text_of(const struct profile *profile, uint64_t number)
{
	// A text with a NUL in it ends there: a trace's texts do.
	const struct bytes_cursor *string;

	if (number >= profile->strings_count)
		return mem_copy_text("");
	string = &profile->strings[number];
	return mem_copy_bytes(string->at, strnlen((const char *)string->at, bytes_left(string)));
}

static bool is_text(const struct profile *profile, uint64_t number, const char *text)
{
	const struct bytes_cursor *string;

	if (number >= profile->strings_count)
		return false;
	string = &profile->strings[number];
	return bytes_left(string) == strlen(text) && memcmp(string->at, text, strlen(text)) == 0;
}

// ---- tables ----

static void add_function(struct profile *profile, struct bytes_cursor message)
{
	struct function function = { 0 };
	struct field field;
	uint64_t id = 0;

	while (next_field(profile, &message, &field)) {
		if (field.tag == 1)
			id = field.number;
		else if (field.tag == 2)
			function.name = field.number;
		else if (field.tag == 4)
			function.file = field.number;
	}
	*map_put(&profile->function_of, id, NULL) = profile->functions_count;
	*MEM_ADD(profile->functions, profile->functions_count, profile->functions_capacity) =
		function;
}

// The fields 1 to 6 in their order: id, start, end, offset, and the numbers of two texts.
static void add_mapping(struct profile *profile, struct bytes_cursor message)
{
	struct mapping mapping = { 0 };
	// By number of the field: 0 is no field.
	uint64_t id = 0, *into[] = { NULL,
				     &id,
				     &mapping.start,
				     &mapping.end,
				     &mapping.offset,
				     &mapping.path,
				     &mapping.build_id };
	struct field field;

	while (next_field(profile, &message, &field))
		if (field.tag > 0 && field.tag < sizeof into / sizeof *into)
			*into[field.tag] = field.number;
	*map_put(&profile->mapping_of, id, NULL) = profile->mappings_count;
	*MEM_ADD(profile->mappings, profile->mappings_count, profile->mappings_capacity) = mapping;
}

// Kept as bytes, and made a frame when a sample has it.
static void add_location(struct profile *profile, struct bytes_cursor message)
{
	// A program has many more locations than its samples refer to, and each costs names.
	struct bytes_cursor whole = message;
	struct field field;
	uint64_t id = 0;

	while (next_field(profile, &message, &field))
		if (field.tag == 1)
			id = field.number;
	*map_put(&profile->location_of, id, NULL) = profile->locations_count;
	*MEM_ADD(profile->locations, profile->locations_count, profile->locations_capacity) = whole;
}

// In any order in the file: samples may come before what they name.
static void read_tables(struct profile *profile)
{
	struct bytes_cursor all = bytes_cursor(profile->content.text, profile->content.length);
	struct field field;

	while (next_field(profile, &all, &field)) {
		switch (field.tag) {
		case TAG_MAPPING:
			add_mapping(profile, field.bytes);
			break;
		case TAG_LOCATION:
			add_location(profile, field.bytes);
			break;
		case TAG_FUNCTION:
			add_function(profile, field.bytes);
			break;
		case TAG_STRING:
			*MEM_ADD(profile->strings, profile->strings_count,
				 profile->strings_capacity) = field.bytes;
			break;
		case TAG_TIME:
			profile->time_ns = field.number;
			break;
		}
	}
}

// Which of a sample's values are blocks and bytes that live, and that were allocated. Names differ
// by who wrote the profile; what they mean is the same.
static void find_value(struct profile *profile, uint64_t name)
{
	static const struct {
		const char *name;
		size_t at;
	} values[] = {
		{ "inuse_objects", offsetof(struct profile, count_at) },
		{ "objects", offsetof(struct profile, count_at) },
		{ "inuse_space", offsetof(struct profile, bytes_at) },
		{ "space", offsetof(struct profile, bytes_at) },
		{ "inuse_bytes", offsetof(struct profile, bytes_at) },
		{ "alloc_objects", offsetof(struct profile, all_count_at) },
		{ "alloc_space", offsetof(struct profile, all_bytes_at) },
	};

	for (size_t i = 0; i < sizeof values / sizeof *values; i++)
		if (is_text(profile, name, values[i].name))
			*(int *)((char *)profile + values[i].at) = (int)profile->values;
}

// A profile of allocations says nothing of what lives; it is refused, with what to do instead.
static bool find_values(struct profile *profile, struct err *err)
{
	struct bytes_cursor all = bytes_cursor(profile->content.text, profile->content.length);
	struct str names = { 0 };
	struct field field, part;
	char *name;

	profile->count_at = profile->bytes_at = -1;
	profile->all_count_at = profile->all_bytes_at = -1;
	// The place among the sample types is the place among each sample's values: the second type
	// names the second value.
	while (next_field(profile, &all, &field)) {
		if (field.tag != TAG_SAMPLE_TYPE)
			continue;
		while (next_field(profile, &field.bytes, &part)) {
			if (part.tag != 1)
				continue;
			find_value(profile, part.number);
			name = text_of(profile, part.number);
			str_format(&names, "%s%s", names.length ? ", " : "", name);
			mem_free(name);
		}
		profile->values++;
	}
	if (profile->bytes_at < 0 && (profile->all_bytes_at >= 0 || profile->all_count_at >= 0))
		err_set(err, ERR_FORMAT,
			"it counts what was allocated (%.200s), not what lives (inuse_space), so "
			"that no level and no leak is in it: take a heap profile (of Go: "
			"/debug/pprof/heap; of tidemark: export --format pprof), or open it with "
			"go tool pprof",
			str_get(&names));
	else if (profile->bytes_at < 0)
		err_set(err, ERR_FORMAT,
			"it is not a profile of what lives (inuse_space), but of %.200s",
			names.length ? str_get(&names) : "nothing");
	str_fini(&names);
	return profile->bytes_at >= 0;
}

// ---- frames ----

// Up to 32 bytes; what is no hexadecimal number ends it.
static void read_build_id(struct trace_module *module, const char *hex)
{
	unsigned byte;

	while (module->build_id_length < sizeof module->build_id && hex[0] && hex[1] &&
	       sscanf(hex, "%2x", &byte) == 1) {
		module->build_id[module->build_id_length++] = (uint8_t)byte;
		hex += 2;
	}
}

// A mapping without a length has no addresses. An address less `bias` is the place in the file, as
// far as start and offset tell.
static module_id module_of(struct profile *profile, uint64_t id)
{
	uint64_t *at = map_find(&profile->mapping_of, id);
	struct trace_module module = { .process = profile->process };
	const struct mapping *mapping;
	char *hex;
	module_id found;

	if (!at)
		return 0;
	ASSERT(*at < profile->mappings_count);
	mapping = &profile->mappings[*at];
	module.start = mapping->start;
	module.end = mapping->end;
	// For example code that is mapped from 0x1000 in its file to 0x55d000001000: the bias is
	// 0x55d000000000.
	module.bias = mapping->start - mapping->offset;
	module.path = text_of(profile, mapping->path);
	hex = text_of(profile, mapping->build_id);
	read_build_id(&module, hex);
	found = module.start < module.end ? intake_module(profile->intake, &module) : 0;
	MEM_FREE(module.path, hex);
	return found;
}

// A location without names is an address. One with names has them, innermost first: inlined
// functions are several lines of one location. A function that the profile does not define is "".
static frame_id make_frame(struct profile *profile, struct bytes_cursor message)
{
	struct trace_name names[NAMES_MAX];
	uint64_t mapping = 0, address = 0, *function;
	struct field field, part;
	size_t count = 0;
	frame_id frame;

	while (next_field(profile, &message, &field)) {
		uint64_t id = 0, line = 0;

		if (field.tag == 2)
			mapping = field.number;
		if (field.tag == 3)
			address = field.number;
		if (field.tag != 4 || count == NAMES_MAX)
			continue;
		while (next_field(profile, &field.bytes, &part)) {
			if (part.tag == 1)
				id = part.number;
			if (part.tag == 2)
				line = part.number;
		}
		function = map_find(&profile->function_of, id);
		ASSERT(!function || *function < profile->functions_count);
		names[count] =
			(struct trace_name){ .line = line > UINT32_MAX ? 0 : (uint32_t)line };
		names[count].function =
			text_of(profile, function ? profile->functions[*function].name : 0);
		names[count++].file =
			text_of(profile, function ? profile->functions[*function].file : 0);
	}
	ASSERT(count <= NAMES_MAX);
	frame = count ? intake_frame_named(profile->intake, names, count)
		      : intake_frame_address(profile->intake, module_of(profile, mapping), address);
	for (size_t i = 0; i < count; i++) {
		MEM_FREE(names[i].function, names[i].file);
	}
	return frame;
}

// Made once for each location. 0: the profile does not define it, and the stack goes on without it.
static frame_id frame_of(struct profile *profile, uint64_t id)
{
	const uint64_t *at = map_find(&profile->location_of, id);
	uint64_t *frame;
	bool added;

	if (!at)
		return 0;
	ASSERT(*at < profile->locations_count);
	frame = map_put(&profile->frame_of, *at, &added);
	if (added)
		*frame = make_frame(profile, profile->locations[*at]);
	return (frame_id)*frame;
}

// ---- samples ----

// Numbers of a repeated field: one by one, or packed. How many there are by now. What is beyond
// `max` is counted and not kept.
static size_t add_numbers(struct field *field, uint64_t *numbers, size_t count, size_t max)
{
	// Packed numbers are bytes (type 2), single ones numbers (type 0): a writer may use either.
	if (!field->bytes.at) {
		if (count < max)
			numbers[count] = field->number;
		return count + 1;
	}
	while (bytes_left(&field->bytes) > 0 && !field->bytes.bad) {
		uint64_t number = bytes_next(&field->bytes);

		if (count < max)
			numbers[count] = number;
		count++;
	}
	return count;
}

// Labels of one sample that are more than words: the size of each block, and, as tidemark writes
// them, process and thread. A label is a key and a text or a number.
static void read_label(struct profile *profile, struct bytes_cursor message, uint64_t *size,
		       char **process, char **thread)
{
	uint64_t key = 0, text = 0, number = 0;
	struct field field;

	while (next_field(profile, &message, &field)) {
		if (field.tag == 1)
			key = field.number;
		else if (field.tag == 2)
			text = field.number;
		else if (field.tag == 3)
			number = field.number;
	}
	if (is_text(profile, key, "bytes"))
		*size = number;
	else if (is_text(profile, key, "process") && !*process)
		*process = text_of(profile, text);
	else if (is_text(profile, key, "thread") && !*thread)
		*thread = text_of(profile, text);
}

static uint64_t value_at(const uint64_t values[VALUES_MAX], int at)
{
	ASSERT(at >= -1);
	return at >= 0 && at < VALUES_MAX ? values[at] : 0;
}

// What was freed is what was allocated and does not live. Numbers are signed in the format; where
// more lives than was allocated nothing was freed.
static void add_freed(struct profile *profile, const uint64_t values[VALUES_MAX], thread_id thread,
		      stack_id stack, uint64_t size)
{
	uint64_t count =
		value_at(values, profile->all_count_at) - value_at(values, profile->count_at);
	uint64_t bytes =
		value_at(values, profile->all_bytes_at) - value_at(values, profile->bytes_at);

	if (profile->all_count_at >= 0 && profile->count_at >= 0 && (int64_t)count > 0)
		series_add_freed(profile->work->series, thread, stack, size, count,
				 (int64_t)bytes > 0 ? bytes : 0);
}

// Values are kept up to VALUES_MAX; a profile has two or four.
static void add_sample(struct profile *profile, struct bytes_cursor message)
{
	uint64_t locations[FRAMES_MAX], values[VALUES_MAX] = { 0 }, size = 0, count, bytes;
	char *process = NULL, *thread = NULL;
	size_t frames = 0, found = 0;
	struct field field;
	stack_id stack = 0;
	thread_id id;

	while (next_field(profile, &message, &field)) {
		if (field.tag == 1)
			frames = add_numbers(&field, locations, frames, FRAMES_MAX);
		else if (field.tag == 2)
			found = add_numbers(&field, values, found, VALUES_MAX);
		else if (field.tag == 3)
			read_label(profile, field.bytes, &size, &process, &thread);
	}
	bytes = value_at(values, profile->bytes_at);
	count = profile->count_at >= 0 ? value_at(values, profile->count_at) : 1;
	// Less than nothing is the difference of two profiles.
	if ((int64_t)bytes >= 0 && (int64_t)count >= 0) {
		profile->process = intake_process(profile->intake, process);
		// From the outermost in, since a stack grows by its callee; locations come
		// innermost first. What is beyond FRAMES_MAX is outer callers, which are missing
		// then.
		for (size_t i = frames < FRAMES_MAX ? frames : FRAMES_MAX; i-- > 0;)
			stack = intake_stack(profile->intake, stack,
					     frame_of(profile, locations[i]));
		id = intake_thread(profile->intake, profile->process, thread);
		if (bytes > 0)
			series_add(profile->work->series, id, stack, size, count, bytes);
		add_freed(profile, values, id, stack, size);
	} else {
		profile->mixed++;
	}
	MEM_FREE(process, thread);
}

// The time of a profile is when it was taken, since the first of the series; without one they are a
// second apart.
static void read_samples(struct profile *profile)
{
	struct bytes_cursor all = bytes_cursor(profile->content.text, profile->content.length);
	struct import_work *work = profile->work;
	struct trace_info *info = intake_info(profile->intake);
	// The second input is a second after the first, unless the profiles say when they were
	// taken.
	uint64_t time_ns = work->input * (uint64_t)STEP_NS;
	struct field field;

	if (work->input == 0 && profile->time_ns < INT64_MAX)
		info->began_unix_ns = profile->time_ns;
	if (info->began_unix_ns && profile->time_ns >= info->began_unix_ns &&
	    profile->time_ns < INT64_MAX)
		time_ns = profile->time_ns - info->began_unix_ns;
	series_begin(work->series, work->options->inputs[work->input].path, time_ns);
	while (next_field(profile, &all, &field))
		if (field.tag == TAG_SAMPLE && field.bytes.at)
			add_sample(profile, field.bytes);
	series_end(work->series);
}

// There is no magic number: the beginning has to be three fields or more that profiles have, each
// of its own type, a sample's type among them. Field 13 is a list of numbers, one by one or packed.
static bool is_pprof(const char *head, size_t length)
{
	static const int8_t types[16] = { -1, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 2, 0, -1, 0, 0 };
	struct bytes_cursor cursor = bytes_cursor(head, length);
	bool typed = false;
	unsigned count = 0;

	while (bytes_left(&cursor) > 0 && count < 64) {
		// Each field has to be of the type that profile.proto gives it: other data is not
		// so by chance for long.
		uint64_t key = bytes_next(&cursor);

		if (cursor.bad || key >> 3 == 0 || key >> 3 >= 16)
			return false;
		if (key >> 3 != 13 && types[key >> 3] != (int)(key & 7))
			return false;
		typed |= key >> 3 == TAG_SAMPLE_TYPE;
		if ((key & 7) == 0)
			bytes_next(&cursor);
		else
			bytes_next_part(&cursor);
		if (cursor.bad) // it goes on behind what is seen
			return typed && length >= SOURCE_HEAD_BYTES;
		count++;
	}
	return typed && count >= 3;
}

// The trace says that its figures may be estimates, since a profile does not say whether it was
// sampled.
static bool read_profile(struct profile *profile, struct err *err)
{
	if (!import_content(profile->work, &profile->content, err))
		return false;
	// Of a stream that was cut what is there counts elsewhere; a profile has places and names
	// behind its samples, so a part that ends between two fields would have none.
	if (source_cut(profile->work->source))
		return err_set(err, ERR_FORMAT, "it is damaged, or cut");
	read_tables(profile);
	if (!profile->damaged && !find_values(profile, err))
		return false;
	if (profile->damaged)
		return err_set(err, ERR_FORMAT, "it is damaged, or cut");
	if (profile->work->input == 0) {
		intake_lacks(profile->intake, "estimated");
		if (profile->all_count_at >= 0 && profile->count_at >= 0)
			intake_lacks(profile->intake, "totals");
		if (!profile->time_ns)
			intake_lacks(profile->intake, "numbered");
	}
	read_samples(profile);
	if (profile->damaged)
		return err_set(err, ERR_FORMAT, "it is damaged, or cut");
	if (profile->count_at < 0)
		str_add(profile->work->remarks,
			"it does not count blocks: each stack has one of all its bytes\n");
	if (profile->mixed)
		str_format(profile->work->remarks,
			   "%" PRIu64 " samples are less than nothing (it is a difference of two "
			   "profiles): they are left out\n",
			   profile->mixed);
	return true;
}

static bool read_pprof(struct import_work *work, struct err *err)
{
	struct profile profile = { .work = work, .intake = work->intake };
	bool ok = read_profile(&profile, err);

	str_fini(&profile.content);
	MEM_FREE(profile.strings, profile.functions, profile.mappings, profile.locations);
	MAP_FINI(&profile.function_of, &profile.mapping_of, &profile.location_of,
		 &profile.frame_of);
	return ok;
}

const struct import_format import_pprof = {
	.name = "pprof",
	.snapshots = true,
	.is = is_pprof,
	.read = read_pprof,
};
