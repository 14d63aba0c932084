// perfetto: a trace of Perfetto (https://perfetto.dev/docs/reference/trace-packet-proto) for
// ui.perfetto.dev and trace_processor: the level of the heap and resident memory as counters, marks
// as slices, and at the end of the window a heap profile, as heapprofd writes it.
//
// A trace is a row of packets. What stacks are made of is interned: strings, mappings, frames and
// callstacks have numbers from 1 on, and stand in one packet before the profiles. A mark is a slice
// until the next mark of its process, or the end of the window. Times are nanoseconds since the
// recording began.
#include "base/str.h"
#include "export/profile.h"
#include "export/protobuf.h"
#include "export/stack_levels.h"

#include "base/mem.h"
#include "trace/defs.h"

// Fields by message, and values.
enum {
	TRACE_PACKET = 1,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE = 10,
	PACKET_EVENT = 11,
	PACKET_INTERNED = 12,
	PACKET_FLAGS = 13,
	PACKET_PROFILE = 37,
	PACKET_TRACK = 60,
	FLAGS_CLEARED = 1,
	FLAGS_NEEDED = 2,
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8,
	COUNTER_UNIT = 3,
	UNIT_BYTES = 3,
	PROCESS_PID = 1,
	PROCESS_ARGUMENT = 2,
	PROCESS_NAME = 6,
	EVENT_TYPE = 9,
	EVENT_TRACK = 11,
	EVENT_NAME = 23,
	EVENT_COUNTER = 30,
	EVENT_BEGINS = 1,
	EVENT_ENDS = 2,
	EVENT_COUNTS = 4,
	INTERNED_FUNCTION = 5,
	INTERNED_FRAME = 6,
	INTERNED_STACK = 7,
	INTERNED_BUILD_ID = 16,
	INTERNED_PATH = 17,
	INTERNED_SOURCE = 18,
	INTERNED_MAPPING = 19,
	PROFILE_PROCESS = 5,
	DUMP_PID = 1,
	DUMP_SAMPLE = 2,
	DUMP_TIMESTAMP = 9,
	SAMPLE_STACK = 1,
	SAMPLE_ALLOCATED = 2,
	SAMPLE_FREED = 3,
	SAMPLE_TIMESTAMP = 4,
	SAMPLE_ALLOCATIONS = 5,
	SAMPLE_FREES = 6,
};

enum { SEQUENCE = 1, PARTS = 1000, HEAP_TRACK = 1, WITHOUT = 1, FIRST = 2 };

// Tracks of a process, by what they are.
enum track { TRACK_OF_PROCESS, TRACK_OF_MARKS, TRACK_OF_RSS, TRACKS };

struct perfetto {
	struct stack_levels levels;
	const struct reader *reader;
	struct sink *sink;
	struct locations locations;
	struct str message, part, interned, packet, out; // scratch
	struct map mappings, stacks;                     // numbers, by id
	uint64_t stacks_count;
	bool *marked; // by process: a slice is open
	uint32_t processes_count;
	uint32_t *numbers; // of the present stack's locations, innermost first
	size_t numbers_capacity;
	uint64_t *strings_written; // by string number: a bit for each table that has it
	size_t strings_capacity;
};

static void add_message(struct str *out, unsigned field, struct str *part)
{
	protobuf_bytes(out, field, str_get(part), part->length);
	str_clear(part);
}

// ---- packets ----

// Write what is in `packet`, and `last` as its field (NULL: no more), and empty both. That of all
// stacks is large: it is written where it is, and not copied into the packet.
static void write_packet_with(struct perfetto *perfetto, unsigned field, struct str *last,
			      unsigned flags)
{
	struct str *head = &perfetto->out, *packet = &perfetto->packet, *tail = &perfetto->part;
	struct str none = { 0 };

	if (last)
		protobuf_head(packet, field, last->length);
	else
		last = &none;
	ASSERT(packet->length > 0 && head->length == 0 && tail->length == 0);
	protobuf_u64(tail, PACKET_SEQUENCE, SEQUENCE);
	protobuf_u64(tail, PACKET_FLAGS, flags);
	protobuf_head(head, TRACE_PACKET, packet->length + last->length + tail->length);
	for (struct str *const *part = (struct str *const[]){ head, packet, last, tail, NULL };
	     *part; part++) {
		sink_write(perfetto->sink, str_get(*part), (*part)->length);
		str_clear(*part);
	}
}

static void write_packet(struct perfetto *perfetto, unsigned flags)
{
	write_packet_with(perfetto, 0, NULL, flags);
}

static void write_event(struct perfetto *perfetto, uint64_t time_ns, unsigned type, uint64_t track,
			const char *name, uint64_t value)
{
	struct str *event = &perfetto->message;

	// Scratch is one text for each level of nesting: an event grows in `message`, a packet in
	// `packet`.
	protobuf_u64(event, EVENT_TYPE, type);
	protobuf_u64(event, EVENT_TRACK, track);
	if (name)
		protobuf_text(event, EVENT_NAME, name);
	if (type == EVENT_COUNTS) { // in a oneof, 0 is written too
		protobuf_varint(event, EVENT_COUNTER << 3);
		protobuf_varint(event, value);
	}
	protobuf_u64(&perfetto->packet, PACKET_TIMESTAMP, time_ns);
	add_message(&perfetto->packet, PACKET_EVENT, event);
	write_packet(perfetto, 0);
}

// ---- tracks ----

// Numbers of tracks follow from the process: one for the heap and three for each process.
static uint64_t track_of(process_id process, enum track track)
{
	ASSERT(track < TRACKS);
	return HEAP_TRACK + 1 + (uint64_t)process * TRACKS + track;
}

static void write_track(struct perfetto *perfetto, uint64_t track, uint64_t parent,
			const char *name, bool counts)
{
	protobuf_u64(&perfetto->message, TRACK_UUID, track);
	protobuf_text(&perfetto->message, TRACK_NAME, name);
	protobuf_u64(&perfetto->message, TRACK_PARENT, parent);
	if (counts) {
		protobuf_u64(&perfetto->part, COUNTER_UNIT, UNIT_BYTES);
		add_message(&perfetto->message, TRACK_COUNTER, &perfetto->part);
	}
	add_message(&perfetto->packet, PACKET_TRACK, &perfetto->message);
	write_packet(perfetto, 0);
}

static void write_process(struct perfetto *perfetto, process_id id)
{
	const struct trace_process *process = reader_process(perfetto->reader, id);
	uint64_t track = track_of(id, TRACK_OF_PROCESS);

	protobuf_u64(&perfetto->message, TRACK_UUID, track);
	protobuf_u64(&perfetto->part, PROCESS_PID, process->pid);
	for (uint32_t i = 0; i < process->args_count; i++)
		protobuf_text(&perfetto->part, PROCESS_ARGUMENT, process->args[i]);
	protobuf_text(&perfetto->part, PROCESS_NAME, defs_program(process));
	add_message(&perfetto->message, TRACK_PROCESS, &perfetto->part);
	add_message(&perfetto->packet, PACKET_TRACK, &perfetto->message);
	write_packet(perfetto, 0);
	write_track(perfetto, track_of(id, TRACK_OF_MARKS), track, "marks", false);
	write_track(perfetto, track_of(id, TRACK_OF_RSS), track, "resident memory", true);
}

static void write_tracks(struct perfetto *perfetto)
{
	write_track(perfetto, HEAP_TRACK, 0, "live heap", true);
	for (process_id id = 0; id < perfetto->processes_count; id++)
		if (query_has_process(&perfetto->levels.source->asked->selection.query, id))
			write_process(perfetto, id);
}

// ---- notes ----

static void end_mark(struct perfetto *perfetto, process_id process, uint64_t time_ns)
{
	ASSERT(process < perfetto->processes_count);
	if (perfetto->marked[process])
		write_event(perfetto, time_ns, EVENT_ENDS, track_of(process, TRACK_OF_MARKS), NULL,
			    0);
	perfetto->marked[process] = false;
}

// Written as they are read; a viewer sorts packets by time.
static void write_note(void *context, const struct trace_note *note)
{
	struct perfetto *perfetto = context;
	const struct query *query = &perfetto->levels.source->asked->selection.query;

	if (note->process >= perfetto->processes_count || !query_has_process(query, note->process))
		return;
	switch (note->kind) {
	case TRACE_NOTE_RSS:
		write_event(perfetto, note->time_ns, EVENT_COUNTS,
			    track_of(note->process, TRACK_OF_RSS), NULL, note->value);
		break;
	case TRACE_NOTE_MARK:
		end_mark(perfetto, note->process, note->time_ns);
		write_event(perfetto, note->time_ns, EVENT_BEGINS,
			    track_of(note->process, TRACK_OF_MARKS), note->text, 0);
		perfetto->marked[note->process] = true;
		break;
	case TRACE_NOTE_PROCESS_END:
		end_mark(perfetto, note->process, note->time_ns);
		break;
	}
}

// ---- the level ----

static void write_level(struct perfetto *perfetto)
{
	const struct stack_levels *levels = &perfetto->levels;
	// A window in which nothing lived has no peak to show.
	bool peaked = levels->peak.bytes == 0;

	write_event(perfetto, levels->from_ns, EVENT_COUNTS, HEAP_TRACK, NULL,
		    levels->before.bytes);
	for (uint32_t i = 0; i < levels->row_count; i++) {
		uint64_t time_ns = stack_levels_row_ns(levels, i);

		// The peak is between two of the thousand rows nearly always: it gets a point of
		// its own, in its place.
		if (!peaked && levels->peak_ns <= time_ns)
			write_event(perfetto, levels->peak_ns, EVENT_COUNTS, HEAP_TRACK, NULL,
				    levels->peak.bytes);
		peaked |= levels->peak_ns <= time_ns;
		write_event(perfetto, time_ns, EVENT_COUNTS, HEAP_TRACK, NULL,
			    levels->row[i].bytes);
	}
}

// ---- what stacks are made of ----

// The number of a string in a table of interned ones, which has it from then on.
// Number + 1, as 0 is none in this format. A string may be in several tables, each of which has it
// once.
static uint64_t string_of(struct perfetto *perfetto, unsigned table, uint32_t string)
{
	const struct string_table *strings = &perfetto->locations.strings;
	uint64_t bit = UINT64_C(1) << table;
	size_t had = perfetto->strings_capacity;

	ASSERT(table < 64);
	MEM_ROOM(perfetto->strings_written, perfetto->strings_capacity, string + (size_t)1);
	// MEM_ROOM gives what was there and room after it, which is not zero.
	for (; had < perfetto->strings_capacity; had++)
		perfetto->strings_written[had] = 0;
	if (perfetto->strings_written[string] & bit)
		return string + UINT64_C(1);
	perfetto->strings_written[string] |= bit;
	protobuf_u64(&perfetto->part, 1, string + UINT64_C(1));
	protobuf_text(&perfetto->part, 2, strings->texts[string]);
	add_message(&perfetto->interned, table, &perfetto->part);
	return string + UINT64_C(1);
}

// The path and the build-id are interned by `part` while the mapping itself grows in `message`, and
// so stand before it.
static void add_mapping(struct perfetto *perfetto, const struct trace_module *module,
			uint64_t number)
{
	struct string_table *strings = &perfetto->locations.strings;
	uint64_t path = string_of(perfetto, INTERNED_PATH, string_table_add(strings, module->path));

	if (module->build_id_length) {
		protobuf_u64(&perfetto->part, 1, number);
		protobuf_bytes(&perfetto->part, 2, module->build_id, module->build_id_length);
		add_message(&perfetto->interned, INTERNED_BUILD_ID, &perfetto->part);
		protobuf_u64(&perfetto->message, 2, number);
	}
	protobuf_u64(&perfetto->message, 1, number);
	protobuf_u64(&perfetto->message, 4, module->start);
	protobuf_u64(&perfetto->message, 5, module->end);
	protobuf_u64(&perfetto->message, 7, path);
	add_message(&perfetto->interned, INTERNED_MAPPING, &perfetto->message);
}

// A line of a location is a frame.
static void add_frame(struct perfetto *perfetto, const struct location *location, uint32_t line)
{
	const struct location_line *at = &perfetto->locations.lines[location->lines_first + line];
	const struct location_function *function = &perfetto->locations.functions[at->function];
	const struct trace_frame *frame = reader_frame(perfetto->reader, location->frame);
	const struct trace_module *fresh;
	uint64_t mapping = profile_mapping(perfetto->reader, &perfetto->mappings, frame, &fresh);
	uint64_t name, file = 0;

	if (fresh)
		add_mapping(perfetto, fresh, mapping);
	name = string_of(perfetto, INTERNED_FUNCTION, function->name);
	if (*perfetto->locations.strings.texts[function->file])
		file = string_of(perfetto, INTERNED_SOURCE, function->file);
	protobuf_u64(&perfetto->message, 1, location->lines_first + line + (uint64_t)FIRST);
	protobuf_u64(&perfetto->message, 2, name);
	protobuf_u64(&perfetto->message, 3, mapping);
	if (mapping)
		protobuf_u64(&perfetto->message, 4,
			     frame->pc - reader_module(perfetto->reader, frame->module)->bias);
	protobuf_u64(&perfetto->message, 5, file);
	protobuf_u64(&perfetto->message, 6, at->line);
	add_message(&perfetto->interned, INTERNED_FRAME, &perfetto->message);
}

// Bottom frame first: the outermost.
static uint64_t stack_of(struct perfetto *perfetto, stack_id stack)
{
	bool added;
	uint64_t *number = map_put(&perfetto->stacks, stack, &added);
	size_t depth;

	if (!added)
		return *number;
	// Numbered before its frames are: a stack's number does not depend on what is in it.
	*number = ++perfetto->stacks_count;
	depth = locations_of_stack(&perfetto->locations, stack, &perfetto->numbers,
				   &perfetto->numbers_capacity);
	protobuf_u64(&perfetto->message, 1, *number);
	if (depth == 0)
		protobuf_u64(&perfetto->message, 2, WITHOUT);
	while (depth-- > 0) {
		const struct location *location =
			&perfetto->locations.list[perfetto->numbers[depth]];

		for (uint32_t i = location->lines_count; i-- > 0;)
			protobuf_u64(&perfetto->message, 2,
				     location->lines_first + i + (uint64_t)FIRST);
	}
	add_message(&perfetto->interned, INTERNED_STACK, &perfetto->message);
	return *number;
}

// One packet with all that the profiles refer to; it clears what a reader knew before.
static void write_interned(struct perfetto *perfetto)
{
	// Frame 1 is "(no stack)", the lines of locations are 2 and on; stacks refer to these,
	// profiles to stacks.
	const struct locations *locations = &perfetto->locations;
	uint32_t without = string_table_add(&perfetto->locations.strings, "(no stack)");
	uint64_t name = string_of(perfetto, INTERNED_FUNCTION, without);

	protobuf_u64(&perfetto->message, 1, WITHOUT);
	protobuf_u64(&perfetto->message, 2, name);
	add_message(&perfetto->interned, INTERNED_FRAME, &perfetto->message);
	for (size_t i = 0; i < locations->count; i++)
		for (uint32_t k = 0; k < locations->list[i].lines_count; k++)
			add_frame(perfetto, &locations->list[i], k);
	for (size_t i = 0; i < perfetto->levels.count; i++)
		stack_of(perfetto, perfetto->levels.list[i].stack);
	write_packet_with(perfetto, PACKET_INTERNED, &perfetto->interned, FLAGS_CLEARED);
	str_fini(&perfetto->interned);
}

// ---- the profile ----

// Freed is what was allocated and has not been left, so that a viewer's difference is what lives.
static void add_sample(struct perfetto *perfetto, struct str *dump, const struct stack_level *level)
{
	struct str *sample = &perfetto->part;

	protobuf_u64(sample, SAMPLE_STACK, stack_of(perfetto, level->stack));
	protobuf_u64(sample, SAMPLE_ALLOCATED, level->allocated.bytes);
	protobuf_u64(sample, SAMPLE_FREED, level->allocated.bytes - level->left.bytes);
	protobuf_u64(sample, SAMPLE_TIMESTAMP, perfetto->levels.to_ns);
	protobuf_u64(sample, SAMPLE_ALLOCATIONS, level->allocated.count);
	protobuf_u64(sample, SAMPLE_FREES, level->allocated.count - level->left.count);
	add_message(dump, DUMP_SAMPLE, sample);
}

static void write_profile(struct perfetto *perfetto, process_id process)
{
	struct str dump = { 0 };

	ASSERT(process < perfetto->processes_count);
	protobuf_u64(&dump, DUMP_PID, reader_process(perfetto->reader, process)->pid);
	protobuf_u64(&dump, DUMP_TIMESTAMP, perfetto->levels.to_ns);
	for (size_t i = 0; i < perfetto->levels.count; i++)
		if (perfetto->levels.list[i].process == process)
			add_sample(perfetto, &dump, &perfetto->levels.list[i]);
	add_message(&perfetto->message, PROFILE_PROCESS, &dump);
	protobuf_u64(&perfetto->packet, PACKET_TIMESTAMP, perfetto->levels.to_ns);
	write_packet_with(perfetto, PACKET_PROFILE, &perfetto->message, FLAGS_NEEDED);
	str_fini(&dump);
}

static void write_profiles(struct perfetto *perfetto)
{
	bool *has = mem_alloc(perfetto->processes_count + (size_t)1, sizeof *has);

	for (size_t i = 0; i < perfetto->levels.count; i++)
		has[perfetto->levels.list[i].process] = true;
	for (process_id id = 0; id < perfetto->processes_count; id++)
		if (has[id])
			write_profile(perfetto, id);
	mem_free(has);
}

static void perfetto_fini(struct perfetto *perfetto)
{
	stack_levels_fini(&perfetto->levels);
	locations_fini(&perfetto->locations);
	MAP_FINI(&perfetto->mappings, &perfetto->stacks);
	STR_FINI(&perfetto->message, &perfetto->part, &perfetto->interned, &perfetto->packet,
		 &perfetto->out);
	MEM_FREE(perfetto->marked, perfetto->numbers, perfetto->strings_written);
}

// Marks are written as they are read, and end at the next one or with the window. All stacks are
// met before what they consist of is written, and that before the profiles that refer to it.
static bool write(const struct export_source *source, struct sink *sink, struct err *err)
{
	struct reader *reader = source->asked->reader;
	struct heap_amount row[PARTS] = { 0 };
	struct perfetto perfetto = {
		.levels = { .source = source, .row = row, .row_count = PARTS, .note = write_note },
		.reader = reader,
		.sink = sink,
		.locations = { .reader = reader, .names = source->asked->names },
		.processes_count = reader_processes_count(reader),
	};
	bool good;

	perfetto.levels.context = &perfetto;
	perfetto.marked = mem_alloc(perfetto.processes_count + (size_t)1, sizeof *perfetto.marked);
	write_tracks(&perfetto);
	good = stack_levels_read(&perfetto.levels, err);
	for (process_id id = 0; id < perfetto.processes_count; id++)
		end_mark(&perfetto, id, perfetto.levels.to_ns);
	write_level(&perfetto);
	for (size_t i = 0; i < perfetto.levels.count; i++)
		locations_of_stack(&perfetto.locations, perfetto.levels.list[i].stack,
				   &perfetto.numbers, &perfetto.numbers_capacity);
	write_interned(&perfetto);
	write_profiles(&perfetto);
	stack_levels_say(&perfetto.levels, NULL);
	perfetto_fini(&perfetto);
	return good;
}

const struct export_format perfetto_format = {
	.name = "perfetto",
	.brief = "for ui.perfetto.dev: levels as counters, marks as slices, a heap profile",
	.write = write,
};
