// dhat: the JSON of Valgrind's DHAT, version 2, for dh_view.html: for each stack what it allocated
// in all and for how long, and what lived at the peak (t-gmax) and at the end.
//
//     {"dhatFileVersion":2,"mode":"heap",…,"te":1000,"tg":400
//     ,"pps":[{"tb":…,"tbk":…,"tl":…,"mb":…,"mbk":…,"gb":…,"gbk":…,"eb":…,"ebk":…,"fs":[1,2]}]
//     ,"ftbl":["[root]","0x401136: make (a.c:3)","0x401160: main (a.c:9)"]}
//
// tb bytes and tbk blocks in all, tl sum of lifetimes, m most at one time of the stack alone, g at
// the peak, e at the end, fs functions, innermost first. Times are microseconds. Reads and writes
// of blocks were not seen: the file says that it has none ("bkacc").
#include "export/stack_levels.h"

#include "base/json.h"
#include "base/mem.h"

enum { NS_PER_US = 1000, SHORT_LIVED_US = 100, WITHOUT = 1 };

struct dhat {
	struct stack_levels levels;
	struct json json;
	struct locations locations;
	struct map processes; // that have a function of their own -> its number
	uint32_t *numbers;    // of the present stack's locations, innermost first
	size_t numbers_capacity;
};

// Numbers of functions: the root, "(no stack)", each process, each line of a location.
static uint64_t first_line(const struct dhat *dhat)
{
	return WITHOUT + 1 + dhat->processes.count;
}

// Only where there are several: then each is the outermost function of its stacks.
static void number_processes(struct dhat *dhat)
{
	// Processes take the numbers after "[root]" (0) and "(no stack)" (1): with two processes 2
	// and 3, and the first line of a location is 4.
	for (size_t i = 0; dhat->levels.processes > 1 && i < dhat->levels.count; i++) {
		bool added;
		uint64_t *number = map_put(&dhat->processes, dhat->levels.list[i].process, &added);

		if (added)
			*number = WITHOUT + dhat->processes.count;
	}
}

// Functions of a location are its lines, so their numbers follow from where the location's lines
// begin.
static void write_functions(struct dhat *dhat, const struct stack_level *level)
{
	const uint64_t *process = map_find(&dhat->processes, level->process);
	size_t depth = locations_of_stack(&dhat->locations, level->stack, &dhat->numbers,
					  &dhat->numbers_capacity);

	json_kv_array(&dhat->json, "fs");
	if (depth == 0)
		json_u64(&dhat->json, WITHOUT);
	for (size_t i = 0; i < depth; i++) {
		const struct location *location = &dhat->locations.list[dhat->numbers[i]];

		for (uint32_t k = 0; k < location->lines_count; k++)
			json_u64(&dhat->json, first_line(dhat) + location->lines_first + k);
	}
	if (process)
		json_u64(&dhat->json, *process);
	json_array_end(&dhat->json);
}

static void write_amount(struct json *json, const char *bytes, const char *blocks,
			 struct heap_amount amount)
{
	json_kv_u64(json, bytes, amount.bytes);
	json_kv_u64(json, blocks, amount.count);
}

static void write_level(struct dhat *dhat, const struct stack_level *level)
{
	struct json *json = &dhat->json;

	json_object_begin(json);
	write_amount(json, "tb", "tbk", level->allocated);
	json_kv_u64(json, "tl", level->lifetimes_ns / NS_PER_US);
	write_amount(json, "mb", "mbk", level->most);
	write_amount(json, "gb", "gbk", level->at_peak);
	write_amount(json, "eb", "ebk", level->left);
	write_functions(dhat, level);
	json_object_end(json);
	sink_text(json->sink, "\n");
}

// tu and Mtu are units of time and of a million of them; what lives for less than tuth, 100 of
// them, the page calls short-lived. te and tg, the end and the peak, count from the window's
// beginning.
static void write_head(struct dhat *dhat)
{
	const struct stack_levels *levels = &dhat->levels;
	const struct reader *reader = levels->source->asked->reader;
	const struct trace_process *process = reader_process(reader, levels->process);
	struct json *json = &dhat->json;

	json_kv_u64(json, "dhatFileVersion", 2);
	json_kv_string(json, "mode", "heap");
	json_kv_string(json, "verb", "Allocated");
	json_kv_bool(json, "bklt", true);
	json_kv_bool(json, "bkacc", false);
	json_kv_string(json, "tu", "µs");
	json_kv_string(json, "Mtu", "s");
	json_kv_u64(json, "tuth", SHORT_LIVED_US);
	json_kv_string(json, "cmd", reader_info(reader)->command);
	json_kv_u64(json, "pid", process ? process->pid : 0);
	json_kv_u64(json, "te", (levels->to_ns - levels->from_ns) / NS_PER_US);
	json_kv_u64(json, "tg", (levels->peak_ns - levels->from_ns) / NS_PER_US);
}

static void write_function(struct json *json, struct str *text)
{
	json_string(json, str_get(text));
	sink_text(json->sink, "\n");
	str_clear(text);
}

// Written after the stacks, when all locations have been met; processes in the order of their
// numbers.
static void write_table(struct dhat *dhat)
{
	const struct locations *locations = &dhat->locations;
	struct json *json = &dhat->json;
	struct str text = { 0 };
	size_t written = 0;

	json_kv_array(json, "ftbl");
	json_string(json, "[root]");
	json_string(json, "(no stack)");
	for (size_t i = 0; i < dhat->levels.count && written < dhat->processes.count; i++) {
		// The list has a process many times: it is written where its number is the next.
		process_id process = dhat->levels.list[i].process;

		if (*map_find(&dhat->processes, process) != WITHOUT + 1 + written)
			continue;
		export_add_process(locations->reader, process, &text);
		write_function(json, &text);
		written++;
	}
	for (size_t i = 0; i < locations->count; i++)
		for (uint32_t k = 0; k < locations->list[i].lines_count; k++) {
			stack_levels_frame(locations, &locations->list[i], k, &text);
			write_function(json, &text);
		}
	json_array_end(json);
	str_fini(&text);
}

static bool write(const struct export_source *source, struct sink *sink, struct err *err)
{
	struct dhat dhat = {
		.levels = { .source = source },
		.locations = { .reader = source->asked->reader,
			       .names = source->asked->names,
			       .process = export_process(source) },
	};
	bool good;

	good = stack_levels_read(&dhat.levels, err);
	number_processes(&dhat);
	json_init(&dhat.json, sink, false);
	json_object_begin(&dhat.json);
	write_head(&dhat);
	json_kv_array(&dhat.json, "pps");
	for (size_t i = 0; i < dhat.levels.count; i++)
		write_level(&dhat, &dhat.levels.list[i]);
	json_array_end(&dhat.json);
	write_table(&dhat);
	json_end(&dhat.json);
	stack_levels_say(&dhat.levels, "a file of DHAT");
	locations_fini(&dhat.locations);
	stack_levels_fini(&dhat.levels);
	map_fini(&dhat.processes);
	mem_free(dhat.numbers);
	return good;
}

const struct export_format dhat_format = {
	.name = "dhat",
	.brief = "for dh_view.html: by stack, in all, at the peak, at the end, and lifetimes",
	.is_text = true,
	.write = write,
};
