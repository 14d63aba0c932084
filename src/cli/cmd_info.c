// info: what is in a trace, whether it is whole, and what the recording cost.
#include "cli/args.h"

#include "base/json.h"
#include "base/mem.h"
#include "base/progress.h"
#include "report/report.h"
#include "trace/asm_words.h"
#include "trace/reader.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

enum {
	INFO_JSON = 1,
	INFO_MODULES,
	INFO_ALL,
	SHOWN_PROCESSES = 40,
	KINDS_COUNT = TRACE_UNMAPPED + 1,
	NOTES_COUNT = 16
};

static const struct option_row info_options[] = {
	{ INFO_MODULES, 'm', "modules", NULL, "list the mapped files, with build-ids" },
	{ INFO_ALL, 'a', "all", NULL, "list all processes, however many" },
	{ INFO_JSON, 'j', "json", NULL, "print JSON (docs/schema/info.json)" },
	{ 0 },
};

static int run(int argc, char **argv);

const struct command cmd_info = {
	.name = "info",
	.brief = "what is in a trace: processes, events, losses, cost",
	.usage = "FILE [--all] [--modules] [--json]",
	.text = "Says what was recorded, whether the trace is whole and, if not, why, and what\n"
		"the recording cost the program and the machine.",
	.examples = "  tidemark info app.tide\n"
		    "  tidemark info --json app.tide | jq .events\n",
	.options = info_options,
	.run = run,
};

// What was counted while reading the trace once.
struct info {
	const char *path;
	const struct reader *reader;
	uint64_t events;
	uint64_t kinds[KINDS_COUNT];
	uint64_t notes[NOTES_COUNT];
	uint64_t losses; // by notes, where no end record says them all
	uint64_t last_ns;
	uint64_t *process_events; // by process
	uint64_t *process_threads;
	char **messages; // texts of notes that the user should see
	size_t messages_count, messages_capacity;
	bool whole;
	struct err wrong; // why it is not
};

static void keep_message(struct info *info, const char *before, const char *text)
{
	struct str line = { 0 };

	str_format(&line, "%s%s", before, text);
	info->messages = mem_grow(info->messages, &info->messages_capacity,
				  info->messages_count + 1, sizeof *info->messages);
	info->messages[info->messages_count++] = str_take(&line);
}

static void take_note(struct info *info, const struct trace_note *note)
{
	if (note->kind < NOTES_COUNT)
		info->notes[note->kind]++;
	if (note->kind == TRACE_NOTE_LOSS)
		info->losses += note->value;
	if (note->kind == TRACE_NOTE_MESSAGE)
		keep_message(info, "", note->text);
	if (note->kind == TRACE_NOTE_EXEC_UNSEEN)
		keep_message(info, "not recorded: ", note->text);
}

static void count_items(struct info *info, struct reader *reader, bool quiet)
{
	uint64_t *by_thread = NULL;
	size_t capacity = 0;
	struct progress progress;
	struct trace_event event;
	struct trace_note note;
	enum reader_item item;

	progress_begin(&progress, quiet ? PROGRESS_NONE : PROGRESS_AUTO, "reading",
		       reader_bytes(reader));
	while ((item = reader_next(reader, &event, &note)) != READER_END) {
		size_t old = capacity;

		if (item == READER_NOTE) {
			take_note(info, &note);
			info->last_ns = note.time_ns;
			continue;
		}
		if (event.thread >= capacity) {
			by_thread = mem_grow(by_thread, &capacity, event.thread + 1u,
					     sizeof *by_thread);
			memset(by_thread + old, 0, (capacity - old) * sizeof *by_thread);
		}
		by_thread[event.thread]++;
		info->kinds[event.kind]++;
		info->last_ns = event.time_ns;
		if ((++info->events & 0xffff) == 0)
			progress_update(&progress, reader_position(reader));
	}
	progress_end(&progress);
	info->process_events = mem_alloc(reader_processes_count(reader) + 1u, sizeof(uint64_t));
	info->process_threads = mem_alloc(reader_processes_count(reader) + 1u, sizeof(uint64_t));
	for (thread_id id = 0; id < reader_threads_count(reader); id++) {
		process_id process = reader_thread(reader, id)->process;

		info->process_threads[process]++;
		info->process_events[process] += id < capacity ? by_thread[id] : 0;
	}
	mem_free(by_thread);
}

static void info_fini(struct info *info)
{
	for (size_t i = 0; i < info->messages_count; i++)
		mem_free(info->messages[i]);
	mem_free(info->messages);
	mem_free(info->process_events);
	mem_free(info->process_threads);
}

static uint64_t events_lost(const struct info *info)
{
	const struct trace_end *end = reader_end(info->reader);

	return end && end->events_lost > info->losses ? end->events_lost : info->losses;
}

static uint64_t duration_of(const struct info *info)
{
	const struct trace_end *end = reader_end(info->reader);

	return end && end->duration_ns > info->last_ns ? end->duration_ns : info->last_ns;
}

static double bytes_per_event(const struct info *info)
{
	return info->events ? (double)reader_bytes(info->reader) / (double)info->events : 0;
}

static uint64_t with_build_id(const struct reader *reader)
{
	uint64_t count = 0;

	for (module_id id = 1; id < reader_modules_count(reader); id++)
		count += reader_module(reader, id)->build_id_length > 0;
	return count;
}

// "2026-11-21 07:30:00 UTC"
static const char *date_of(uint64_t unix_ns, char out[static 40])
{
	time_t seconds = (time_t)(unix_ns / 1000000000);
	struct tm tm;

	if (!gmtime_r(&seconds, &tm) || strftime(out, 40, "%Y-%m-%d %H:%M:%S UTC", &tm) == 0)
		return "at an unknown time";
	return out;
}

static void add_hex(struct str *out, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++)
		str_format(out, "%02x", bytes[i]);
}

// Bytes of a file may hold anything; a terminal shall not obey them.
static void print_plain(const char *text)
{
	for (; *text; text++)
		putchar((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text);
}

static void print_words(const char *label, const char *text)
{
	if (!*text)
		return;
	printf("%-11s", label);
	print_plain(text);
	putchar('\n');
}

static void print_head(const struct info *info)
{
	const struct reader *reader = info->reader;
	const struct trace_info *head = reader_info(reader);
	const struct trace_end *end = reader_end(reader);
	char bytes[16], date[40], time[24], median[24], worst[24];

	printf("%s: %s, format %u.%u, %s\n", info->path, str_bytes(reader_bytes(reader), bytes),
	       head->version_major, head->version_minor, info->whole ? "whole" : "NOT WHOLE");
	if (!info->whole)
		print_words("", info->wrong.text);
	printf("%-11s%s", "recorded", date_of(head->began_unix_ns, date));
	if (head->tool[0]) {
		printf(" by ");
		print_plain(head->tool);
	}
	putchar('\n');
	print_words("on", head->host);
	print_words("command", head->command);
	print_words("in", head->directory);
	print_words("options", head->options);
	if (head->sample_bytes > 0)
		printf("%-11sone allocation in %s is in the trace\n", "sampled",
		       str_bytes(head->sample_bytes, time));
	printf("%-11s%s", "duration", str_duration(duration_of(info), time));
	if (head->tick_ns > 0)
		printf("; clock tick %s", str_duration(head->tick_ns, time));
	else
		printf("; each event has its own time");
	if (end && end->tick_median_ns > 0)
		printf(" (median %s, longest %s)", str_duration(end->tick_median_ns, median),
		       str_duration(end->tick_worst_ns, worst));
	putchar('\n');
}

static void print_process(const struct info *info, const struct trace_process *process, int depth)
{
	char exit[32], count[28], began[24];

	printf("  %*s%-8u ", 2 * (depth < 20 ? depth : 20), "", process->pid);
	print_plain(process->exe[0] ? process->exe : "(not known)");
	if (process->bits == 32)
		printf(" (32-bit)");
	if (process->start == TRACE_START_FORK)
		printf(" (forked)");
	printf("  %s", report_exit(process, exit));
	printf("  from %s", str_duration(process->began_ns, began));
	if (process->ended_ns != UINT64_MAX)
		printf(" to %s", str_duration(process->ended_ns, began));
	printf("  %" PRIu64 " thread%s", info->process_threads[process->id],
	       info->process_threads[process->id] == 1 ? "" : "s");
	printf("  %s events\n", str_count(info->process_events[process->id], count));
}

// Parents before their children, in the order of the trace otherwise.
static void print_tree(const struct info *info, uint32_t limit)
{
	const struct reader *reader = info->reader;
	uint32_t count = reader_processes_count(reader);
	process_id *child = mem_alloc(count + 1u, sizeof *child);     // the first one
	process_id *sibling = mem_alloc(count + 1u, sizeof *sibling); // the next one
	process_id root = TRACE_NONE;
	uint32_t shown = 0;
	process_id at;
	int depth = 0;

	for (process_id id = 0; id < count; id++)
		child[id] = TRACE_NONE;
	for (process_id id = count; id-- > 0;) {
		process_id parent = reader_process(reader, id)->parent;
		process_id *first = parent == TRACE_NONE ? &root : &child[parent];

		sibling[id] = *first;
		*first = id;
	}
	for (at = root; at != TRACE_NONE;) {
		if (shown++ < limit)
			print_process(info, reader_process(reader, at), depth);
		if (child[at] != TRACE_NONE) {
			at = child[at];
			depth++;
			continue;
		}
		while (at != TRACE_NONE && sibling[at] == TRACE_NONE) {
			at = reader_process(reader, at)->parent;
			depth--;
		}
		if (at != TRACE_NONE)
			at = sibling[at];
	}
	if (shown > limit)
		printf("  ... and %u more (--all lists them)\n", shown - limit);
	mem_free(child);
	mem_free(sibling);
}

static void print_events(const struct info *info)
{
	const struct reader_stats *stats = reader_stats(info->reader);
	char count[28], blocks[28];

	printf("%-11s%s in %s blocks, %.2f bytes each\n", "events", str_count(info->events, count),
	       str_count(stats->events_blocks, blocks), bytes_per_event(info));
	for (uint8_t kind = 1; kind < KINDS_COUNT; kind++)
		if (info->kinds[kind] > 0)
			printf("  %-16s %13s\n", asm_words_event(kind),
			       str_count(info->kinds[kind], count));
}

static void print_figures(const struct info *info)
{
	const struct reader *reader = info->reader;
	const struct trace_end *end = reader_end(reader);
	char a[28], b[28], guest[16], collector[16], cpu[24], waited[24];

	printf("%-11s%s, with %s frames in %u modules (%" PRIu64 " with a build-id)\n", "stacks",
	       str_count(reader_stacks_count(reader) - 1, a),
	       str_count(reader_frames_count(reader) - 1, b), reader_modules_count(reader) - 1,
	       with_build_id(reader));
	if (end && end->stacks_incomplete > 0)
		printf("%-11s%s stacks are not proven whole\n", "",
		       str_count(end->stacks_incomplete, a));
	if (end && end->stacks_verified > 0)
		printf("%-11s%s stacks were walked twice, %s of them with another result\n", "",
		       str_count(end->stacks_verified, a), str_count(end->stacks_mismatched, b));
	printf("%-11s%" PRIu64 " marks, %" PRIu64 " measurements of resident memory\n", "notes",
	       info->notes[TRACE_NOTE_MARK], info->notes[TRACE_NOTE_RSS]);
	if (reader_stats(reader)->bundle_blocks > 0)
		printf("%-11sbundled, %s\n", "symbols",
		       str_bytes(reader_stats(reader)->bundle_bytes, guest));
	if (events_lost(info) > 0)
		printf("%-11s%s events known to be missing\n", "lost",
		       str_count(events_lost(info), a));
	else
		printf("%-11snothing%s\n", "lost", info->whole ? "" : " that is known");
	if (reader_unknown(reader) > 0)
		printf("%-11s%" PRIu64 " records of a newer tidemark, not read\n", "unknown",
		       reader_unknown(reader));
	if (end)
		printf("%-11s%s in the program, %s and %s of processor time in the collector, "
		       "%s of waiting\n",
		       "cost", str_bytes(end->guest_bytes_peak, guest),
		       str_bytes(end->collector_bytes_peak, collector),
		       str_duration(end->collector_cpu_ns, cpu),
		       str_duration(end->waited_ns, waited));
	for (size_t i = 0; i < info->messages_count; i++)
		print_words(i == 0 ? "messages" : "", info->messages[i]);
}

static void print_modules(const struct reader *reader)
{
	printf("modules\n");
	for (module_id id = 1; id < reader_modules_count(reader); id++) {
		const struct trace_module *module = reader_module(reader, id);
		struct str build_id = { 0 };

		add_hex(&build_id, module->build_id, module->build_id_length);
		printf("  process %u  0x%012" PRIx64 "-0x%012" PRIx64 "  %-40s  ", module->process,
		       module->start, module->end, build_id.length ? build_id.text : "-");
		print_plain(module->path);
		putchar('\n');
		str_fini(&build_id);
	}
}

static void json_trace(struct json *json, const struct info *info)
{
	const struct trace_info *head = reader_info(info->reader);
	const struct trace_end *end = reader_end(info->reader);
	struct str text = { 0 };

	json_key(json, "trace");
	json_object_begin(json);
	json_kv_string(json, "file", info->path);
	json_kv_u64(json, "bytes", reader_bytes(info->reader));
	str_format(&text, "%u.%u", head->version_major, head->version_minor);
	json_kv_string(json, "format", text.text);
	json_kv_bool(json, "complete", info->whole);
	json_kv_string(json, "problem", info->whole ? NULL : info->wrong.text);
	str_clear(&text);
	add_hex(&text, head->recording_id, sizeof head->recording_id);
	json_kv_string(json, "recording_id", text.text);
	json_kv_u64(json, "began_unix_ns", head->began_unix_ns);
	json_kv_u64(json, "duration_ns", duration_of(info));
	json_kv_string(json, "tool", head->tool);
	json_kv_string(json, "host", head->host);
	json_kv_string(json, "command", head->command);
	json_kv_string(json, "directory", head->directory);
	json_kv_string(json, "options", head->options);
	json_kv_u64(json, "sample_bytes", head->sample_bytes);
	json_kv_u64(json, "tick_ns", head->tick_ns);
	json_kv_u64(json, "tick_median_ns", end ? end->tick_median_ns : 0);
	json_kv_u64(json, "tick_worst_ns", end ? end->tick_worst_ns : 0);
	json_kv_u64(json, "unknown_records", reader_unknown(info->reader));
	json_object_end(json);
	str_fini(&text);
}

static void json_events(struct json *json, const struct info *info)
{
	json_key(json, "events");
	json_object_begin(json);
	json_kv_u64(json, "total", info->events);
	json_kv_u64(json, "lost", events_lost(info));
	json_key(json, "by_kind");
	json_object_begin(json);
	for (uint8_t kind = 1; kind < KINDS_COUNT; kind++)
		if (asm_words_event(kind))
			json_kv_u64(json, asm_words_event(kind), info->kinds[kind]);
	json_object_end(json);
	json_key(json, "bytes_per_event");
	json_double(json, bytes_per_event(info));
	json_object_end(json);
}

static void json_processes(struct json *json, const struct info *info)
{
	char exit[32];

	json_key(json, "processes");
	json_array_begin(json);
	for (process_id id = 0; id < reader_processes_count(info->reader); id++) {
		const struct trace_process *process = reader_process(info->reader, id);

		json_object_begin(json);
		json_kv_u64(json, "id", id);
		json_kv_u64(json, "pid", process->pid);
		json_kv_u64(json, "generation", process->generation);
		json_key(json, "parent_id");
		if (process->parent == TRACE_NONE)
			json_null(json);
		else
			json_u64(json, process->parent);
		json_kv_string(json, "start", process->start == TRACE_START_FORK ? "fork" : "exec");
		json_kv_u64(json, "bits", process->bits);
		json_kv_string(json, "exe", process->exe);
		json_key(json, "args");
		json_array_begin(json);
		for (uint32_t i = 0; i < process->args_count; i++)
			json_string(json, process->args[i]);
		json_array_end(json);
		json_kv_string(json, "exit", report_exit(process, exit));
		json_kv_u64(json, "began_ns", process->began_ns);
		json_key(json, "ended_ns");
		if (process->ended_ns == UINT64_MAX)
			json_null(json);
		else
			json_u64(json, process->ended_ns);
		json_kv_u64(json, "threads", info->process_threads[id]);
		json_kv_u64(json, "events", info->process_events[id]);
		json_object_end(json);
	}
	json_array_end(json);
}

static void json_modules(struct json *json, const struct info *info)
{
	json_key(json, "modules");
	json_array_begin(json);
	for (module_id id = 1; id < reader_modules_count(info->reader); id++) {
		const struct trace_module *module = reader_module(info->reader, id);
		struct str build_id = { 0 };

		add_hex(&build_id, module->build_id, module->build_id_length);
		json_object_begin(json);
		json_kv_u64(json, "process_id", module->process);
		json_kv_string(json, "path", module->path);
		json_kv_string(json, "build_id", build_id.length ? build_id.text : NULL);
		json_key(json, "start");
		json_hex(json, module->start);
		json_key(json, "end");
		json_hex(json, module->end);
		json_object_end(json);
		str_fini(&build_id);
	}
	json_array_end(json);
}

static void json_rest(struct json *json, const struct info *info)
{
	const struct reader *reader = info->reader;
	const struct reader_stats *stats = reader_stats(reader);
	const struct trace_end none = { 0 };
	const struct trace_end *end = reader_end(reader) ? reader_end(reader) : &none;

	json_key(json, "stacks");
	json_object_begin(json);
	json_kv_u64(json, "stacks", reader_stacks_count(reader) - 1);
	json_kv_u64(json, "frames", reader_frames_count(reader) - 1);
	json_kv_u64(json, "incomplete", end->stacks_incomplete);
	json_kv_u64(json, "verified", end->stacks_verified);
	json_kv_u64(json, "mismatched", end->stacks_mismatched);
	json_object_end(json);
	json_key(json, "notes");
	json_object_begin(json);
	json_kv_u64(json, "marks", info->notes[TRACE_NOTE_MARK]);
	json_kv_u64(json, "rss", info->notes[TRACE_NOTE_RSS]);
	json_key(json, "messages");
	json_array_begin(json);
	for (size_t i = 0; i < info->messages_count; i++)
		json_string(json, info->messages[i]);
	json_array_end(json);
	json_object_end(json);
	json_key(json, "cost");
	json_object_begin(json);
	json_kv_u64(json, "guest_bytes_peak", end->guest_bytes_peak);
	json_kv_u64(json, "collector_bytes_peak", end->collector_bytes_peak);
	json_kv_u64(json, "collector_cpu_ns", end->collector_cpu_ns);
	json_kv_u64(json, "waited_ns", end->waited_ns);
	json_object_end(json);
	json_key(json, "blocks");
	json_object_begin(json);
	json_kv_u64(json, "total", stats->blocks);
	json_kv_u64(json, "events", stats->events_blocks);
	json_kv_u64(json, "definitions", stats->defs_blocks);
	json_kv_u64(json, "bundles", stats->bundle_blocks);
	json_kv_u64(json, "lost", reader_skipped(reader));
	json_kv_u64(json, "events_bytes", stats->events_bytes);
	json_kv_u64(json, "definitions_bytes", stats->defs_bytes);
	json_kv_u64(json, "bundles_bytes", stats->bundle_bytes);
	json_object_end(json);
}

static void print_json(const struct info *info, struct sink *sink)
{
	struct json json;

	json_init(&json, sink, true);
	json_object_begin(&json);
	json_kv_string(&json, "schema", "tidemark-info-1");
	json_trace(&json, info);
	json_events(&json, info);
	json_processes(&json, info);
	json_modules(&json, info);
	json_rest(&json, info);
	json_object_end(&json);
	sink_text(sink, "\n");
}

static int tell(const char *path, bool as_json, bool all, bool modules)
{
	struct sink sink = sink_to_file(stdout);
	struct info info = { .path = path };
	struct err err = { 0 };
	struct reader *reader = reader_open(path, &err);

	if (!reader)
		return args_fail(&cmd_info, &err);
	info.reader = reader;
	count_items(&info, reader, as_json);
	info.whole = reader_ok(reader, &info.wrong);
	if (as_json) {
		print_json(&info, &sink);
	} else {
		print_head(&info);
		printf("%-11s%u\n", "processes", reader_processes_count(reader));
		print_tree(&info, all ? UINT32_MAX : SHOWN_PROCESSES);
		print_events(&info);
		print_figures(&info);
		if (modules)
			print_modules(reader);
	}
	if (!info.whole)
		args_warn(&cmd_info, "%s is not whole: %s", path, info.wrong.text);
	info_fini(&info);
	reader_close(reader);
	return sink_ok(&sink, &err) ? EXIT_ANSWERED : args_fail(&cmd_info, &err);
}

static int run(int argc, char **argv)
{
	bool as_json = false, all = false, modules = false;
	const char *path = NULL;
	struct args args;
	int id;

	args_init(&args, &cmd_info, argc, argv);
	while ((id = args_next(&args)) != ARGS_END) {
		if (id == INFO_JSON)
			as_json = true;
		else if (id == INFO_ALL)
			all = true;
		else if (id == INFO_MODULES)
			modules = true;
		else if (id != ARGS_OPERAND || !args_operand(&args, &path))
			return args.exit_code;
	}
	if (!args_need(&args, path, "a trace FILE"))
		return args.exit_code;
	return tell(path, as_json, all, modules);
}
