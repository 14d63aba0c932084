// info: what is in a trace, whether it is whole, and what the recording cost.
//
// For people each print_… function is a paragraph, with its label in the first eleven columns; for
// programs info_write_json writes the same figures. All texts of the trace go through print_plain:
// a program's arguments may hold what a terminal obeys. Traces that are cut are shown as far as
// they go: this is the command that one asks what is wrong.
#include "cli/args.h"
#include "cli/running.h"

#include "base/mem.h"
#include "report/ask/own_heap.h"
#include "report/info.h"
#include "report/report.h"
#include "trace/asm_words.h"
#include "trace/defs.h"
#include "trace/label.h"

#include <inttypes.h>
#include <time.h>

enum { SHOWN_PROCESSES = 40, SHOWN_HEAPS = 10 };

struct wish {
	const char *path;
	bool json, all, modules;
};

static const struct option_row info_options[] = {
	{ ARGS_FLAG(wish, modules), 'm', "modules", NULL, "list the mapped files, with build-ids" },
	{ ARGS_FLAG(wish, all), 'a', "all", NULL, "list all processes and heaps, however many" },
	{ ARGS_FLAG(wish, json), 'j', "json", NULL, "print JSON (docs/schema/info.json)" },
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

// Modules; number 0 is none.
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
	struct tm tm;

	// Seconds of the day are all that is shown: the trace has ns, but no clock of a machine is
	// so exact.
	if (!str_date(unix_ns / 1000000000, &tm) ||
	    strftime(out, 40, "%Y-%m-%d %H:%M:%S UTC", &tm) == 0)
		return "at an unknown time";
	return out;
}

// Bytes of a file may hold anything; a terminal shall not obey them.
static void print_plain(const char *text)
{
	struct str plain = { 0 };

	str_add_plain(&plain, text, strlen(text));
	fputs(str_get(&plain), stdout);
	str_fini(&plain);
}

// Labels take eleven columns, and the text begins after them. Empty text: no line.
static void print_words(const char *label, const char *text)
{
	if (!*text)
		return;
	printf("%-11s", label);
	print_plain(text);
	putchar('\n');
}

// Equal messages were joined: how often it came is said once.
static void print_message(const char *label, const struct info_message *message)
{
	struct str line = { 0 };

	str_add(&line, message->text);
	if (message->times > 1)
		str_format(&line, " (%" PRIu32 " times)", message->times);
	print_words(label, str_get(&line));
	str_fini(&line);
}

static void print_labels(const char *text, const char *options)
{
	struct label label;

	while (label_next(&text, &label)) {
		struct str line = { 0 };

		str_format(&line, "%.*s = %.*s", (int)label.name_length, label.name,
			   (int)label.value_length, label.value);
		print_words("label", str_get(&line));
		str_fini(&line);
	}
	if (defs_has_word(options, "labels-differ"))
		print_words("",
			    "labels differ among the traces that it was merged of: which process "
			    "has which value is not known");
}

// When it was sampled and when each call was recorded; nothing of a recording that is one of them.
static void print_turns(const struct reader *reader)
{
	size_t count;
	const struct trace_turn *turns = reader_turns(reader, &count);

	// A turn is where the recorder went over to sampling or back. `log2` is the logarithm of
	// the bytes between two samples: 19 is one allocation in 512 KiB; 0 is each call.
	for (size_t i = 0; i < count; i++) {
		printf("%-11sfrom %s ", i > 0 ? "" : "sampled", STR_DURATION(turns[i].time_ns));
		if (turns[i].log2 > 0)
			printf("one allocation in %s is in the trace\n",
			       STR_BYTES(UINT64_C(1) << turns[i].log2));
		else
			printf("each is\n");
	}
	if (count == 0 && reader_info(reader)->budget)
		printf("%-11snever: the budget was kept with each call recorded\n", "sampled");
}

// Whose recording it is and how it was made, whether it is whole, and how exact its times are.
static void print_head(const struct info *info)
{
	const struct reader *reader = info->reader;
	const struct trace_info *head = reader_info(reader);
	const struct trace_end *end = reader_end(reader);
	char date[40];

	// Three states. A trace that is being written is not damaged: it only has no end yet.
	printf("%s: %s, format %u.%u, %s\n", info->path, STR_BYTES(reader_bytes(reader)),
	       head->version_major, head->version_minor,
	       info->whole              ? "whole"
	       : reader_growing(reader) ? "STILL BEING WRITTEN"
					: "NOT WHOLE");
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
	print_labels(head->labels, head->options);
	print_turns(info->reader);
	if (head->sample_bytes > 0)
		printf("%-11sone allocation in %s is in the trace\n", "sampled",
		       STR_BYTES(head->sample_bytes));
	printf("%-11s%s", "duration", STR_DURATION(info_duration(info)));
	// Times come from a tick of the clock (100 us by default) or from a reading for each event.
	// The real ticks are longer on a busy machine; the end of the trace says by how much.
	if (head->tick_ns > 0)
		printf("; clock tick %s", STR_DURATION(head->tick_ns));
	else
		printf("; each event has its own time");
	if (end && end->tick_median_ns > 0)
		printf(" (median %s, longest %s)", STR_DURATION(end->tick_median_ns),
		       STR_DURATION(end->tick_worst_ns));
	putchar('\n');
}

// How its calls were seen, and what was sampled of it.
static void print_memory(const struct trace_process *process, int indent)
{
	const char *calls = info_calls(process);

	if (!calls && !process->rss_max_bytes)
		return;
	printf("%*s", indent, "");
	if (calls)
		printf("memory calls %s", calls);
	if (process->calls_why) {
		printf(" (");
		print_plain(process->calls_why);
		putchar(')');
	}
	if (calls && process->rss_max_bytes)
		printf("; ");
	if (process->rss_max_bytes)
		printf("resident at most %s", STR_BYTES(process->rss_max_bytes));
	if (process->pss_max_bytes)
		printf(", its share of it %s", STR_BYTES(process->pss_max_bytes));
	if (process->swap_max_bytes)
		printf(", swapped out %s", STR_BYTES(process->swap_max_bytes));
	if (process->minor_faults)
		printf(", %s page faults", STR_COUNT(process->minor_faults));
	if (process->major_faults)
		printf(" and %s that read", STR_COUNT(process->major_faults));
	// No limit is UINT64_MAX, a trace that does not know of it has 0.
	if (process->mapped_limit && process->mapped_limit != UINT64_MAX)
		printf("; it may map %s (ulimit -v)", STR_BYTES(process->mapped_limit));
	if (process->data_limit && process->data_limit != UINT64_MAX)
		printf("; %s of data (ulimit -d)", STR_BYTES(process->data_limit));
	putchar('\n');
}

// "allocator jemalloc in /usr/bin/x, by patched entries of what it exports"
static void print_allocators(const struct trace_process *process, int indent)
{
	for (uint32_t i = 0; i < process->allocators_count; i++) {
		const struct trace_allocator *each = &process->allocators[i];

		printf("%*sallocator ", indent, "");
		print_plain(each->name);
		if (each->file) {
			printf(" in ");
			print_plain(each->file);
		} else if (each->seen != TRACE_SEEN_STRIPPED) {
			printf(" in the executable");
		}
		printf(", %s\n", info_seen_how(each));
	}
}

// Where its frames are not read, stacks have the interpreter's own functions in their place.
static void print_interpreter(const struct reader *reader, const struct trace_process *process,
			      int indent)
{
	const char *heap, *jit;

	if (!process->interpreter)
		return;
	printf("%*s", indent, "");
	print_plain(process->interpreter);
	jit = own_heap_jit(reader, process);
	printf("%s%s%s\n",
	       process->interpreter_read ? ", its functions are in the stacks"
					 : ", by its own functions",
	       jit ? "; " : "", jit ? jit : "");
	heap = own_heap_of(process);
	if (heap)
		printf("%*s%s\n", indent + 2, "", heap);
}

// What is not in the trace, for it was done to others.
static void print_elsewhere(const struct trace_process *process, int indent)
{
	if (process->calls_elsewhere)
		printf("%*s%s call%s on the memory of other processes, not recorded\n", indent, "",
		       STR_COUNT(process->calls_elsewhere),
		       process->calls_elsewhere == 1 ? "" : "s");
}

static void print_process(const struct info *info, const struct trace_process *process, int depth)
{
	char exit[48];

	// Deeper than 20 generations are not moved further to the right: a line has to stay
	// readable.
	ASSERT(process->id < reader_processes_count(info->reader) && depth >= 0);
	printf("  %*s%-8u ", 2 * (depth < 20 ? depth : 20), "", process->pid);
	print_plain(process->exe[0] ? process->exe : "(not known)");
	if (process->bits == 32)
		printf(" (32-bit)");
	if (process->start == TRACE_START_FORK)
		printf(" (forked)");
	if (process->start == TRACE_START_ATTACH)
		printf(" (attached)");
	printf("  %s", report_ending(info->reader, process->id, exit));
	printf("  from %s", STR_DURATION(process->began_ns));
	if (process->ended_ns != UINT64_MAX)
		printf(" to %s", STR_DURATION(process->ended_ns));
	printf("  %" PRIu64 " thread%s", info->process_threads[process->id],
	       info->process_threads[process->id] == 1 ? "" : "s");
	printf("  %s events\n", STR_COUNT(info->process_events[process->id]));
	print_allocators(process, 2 * (depth < 20 ? depth : 20) + 11);
	print_interpreter(info->reader, process, 2 * (depth < 20 ? depth : 20) + 11);
	print_memory(process, 2 * (depth < 20 ? depth : 20) + 11);
	print_elsewhere(process, 2 * (depth < 20 ? depth : 20) + 11);
}

// Parents before their children, in the order of the trace otherwise.
// Children are in two arrays, the first of each parent and the next of each child, so no recursion
// is needed, and a chain of 100,000 processes is walked as well. A process without a known parent
// is a root. Lists are filled from the last process on, so that each is in the order of the trace.
static void print_tree(const struct info *info, uint32_t limit)
{
	// For example parents (none), 0, 0, 1 of processes 0 to 3: root = 0, child = { 1, 3, none,
	// none } and sibling = { none, 2, none, none }. The walk is 0, 1, 3, then from 3 up to 1,
	// whose sibling is 2.
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
		// Up to the next ancestor that has another child.
		while (at != TRACE_NONE && sibling[at] == TRACE_NONE) {
			at = reader_process(reader, at)->parent;
			depth--;
		}
		if (at != TRACE_NONE)
			at = sibling[at];
	}
	if (shown > limit)
		printf("  ... and %u more (--all lists them)\n", shown - limit);
	MEM_FREE(child, sibling);
}

// By kind, those that are there.
static void print_events(const struct info *info)
{
	const struct reader_stats *stats = reader_stats(info->reader);

	printf("%-11s%s, and %s others, in %s blocks, %.2f bytes each\n", "events",
	       STR_COUNT(info->calls), STR_COUNT(info->events - info->calls),
	       STR_COUNT(stats->events_blocks), info_bytes_per_event(info));
	for (uint8_t kind = 1; kind < INFO_KINDS; kind++)
		if (info->kinds[kind] > 0)
			printf("  %-16s %13s%s\n", asm_words_event(kind),
			       STR_COUNT(info->kinds[kind]),
			       kind == TRACE_MAPPED ? "  not calls: what was mapped already, "
						      "and the recorder's own"
						    : "");
}

// HEAP_… of the system's headers, as the calls have them.
static void print_flags(uint64_t flags)
{
	static const struct {
		uint32_t bit;
		const char *word;
	} words[] = {
		{ 0x1, "no-serialize" },   { 0x2, "growable" },       { 0x4, "exceptions" },
		{ 0x8, "zero-memory" },    { 0x10, "in-place-only" }, { 0x20, "tail-checking" },
		{ 0x40, "free-checking" }, { 0x40000, "execute" },
	};

	// What no word stands for is left in `flags`, and printed as a number rather than dropped.
	if (flags == 0)
		printf(" none");
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (flags & words[i].bit)
			printf(" %s", words[i].word);
		flags &= ~(uint64_t)words[i].bit;
	}
	if (flags != 0)
		printf(" 0x%" PRIx64, flags);
}

// Those of Windows, with what flags they were made, and called, and those of languages.
static void print_heaps(const struct info *info, bool all)
{
	uint32_t shown = 0, more = 0;
	char text[READER_HEAP_TEXT];

	for (heap_id id = 1; id < reader_heaps_count(info->reader); id++) {
		const struct trace_heap *heap = reader_heap(info->reader, id);
		uint64_t flags = UINT64_MAX, calls;

		// A pool has a name and no handle: its calls are among the events of its process.
		if (heap->handle == 0 || info_heap_is_echo(info, id))
			continue;
		if (shown == SHOWN_HEAPS && !all) {
			more++;
			continue;
		}
		printf("%-11s", shown++ == 0 ? "heaps" : "");
		print_plain(reader_heap_name(heap, text));
		printf(" of process %u", reader_process(info->reader, heap->process)->pid);
		if (reader_heap_is_language(heap)) {
			if (info_next_flags(info, id, &flags, &calls))
				printf(": %s allocation%s", STR_COUNT(calls),
				       calls == 1 ? "" : "s");
			putchar('\n');
			continue;
		}
		if (heap->created) {
			printf(", made with");
			print_flags(heap->flags);
		}
		while (info_next_flags(info, id, &flags, &calls)) {
			printf("; %s call%s with", STR_COUNT(calls), calls == 1 ? "" : "s");
			print_flags(flags);
		}
		putchar('\n');
	}
	if (more > 0)
		printf("%-11s... and %u more (--all lists them)\n", "", more);
}

// What measuring resident memory took: nothing is printed where none was taken.
static void print_snapshots(const struct info *info)
{
	struct info_snapshots all = info_snapshots(info);
	uint64_t duration_ns = info_duration(info);

	// Snapshots that were due but not taken are said even where none was taken at all.
	if (all.count == 0 && all.missed == 0)
		return;
	printf("%-11s%s", "snapshots", STR_COUNT(all.count));
	if (all.by_pages > 0)
		printf(" (%s of them without smaps)", STR_COUNT(all.by_pages));
	printf(", %s", STR_DURATION(all.cost_ns));
	if (duration_ns > 0)
		printf(", %.2f %% of the time", 100.0 * (double)all.cost_ns / (double)duration_ns);
	if (all.missed > 0)
		printf("; %s more were due, and there was no time for them (record --rss-exact "
		       "takes them)",
		       STR_COUNT(all.missed));
	putchar('\n');
}

// Stacks, frames and modules count from 1, so there is one fewer than the reader counts. A line is
// there only if it has something to say, but "lost" always is.
static void print_figures(const struct info *info)
{
	const struct reader *reader = info->reader;
	const struct trace_end *end = reader_end(reader);

	printf("%-11s%s, with %s frames in %u modules (%" PRIu64 " with a build-id)\n", "stacks",
	       STR_COUNT(reader_stacks_count(reader) - 1),
	       STR_COUNT(reader_frames_count(reader) - 1), reader_modules_count(reader) - 1,
	       with_build_id(reader));
	if (end && end->stacks_incomplete > 0)
		printf("%-11s%s times a stack was taken that is not proven whole\n", "",
		       STR_COUNT(end->stacks_incomplete));
	if (info->deep > 0)
		printf("%-11s%s events have a stack deeper than the 8,192 frames that are "
		       "recorded: outer callers are missing\n",
		       "", STR_COUNT(info->deep));
	if (end && end->stacks_verified > 0)
		printf("%-11s%s stacks were walked twice, %s of them with another result\n", "",
		       STR_COUNT(end->stacks_verified), STR_COUNT(end->stacks_mismatched));
	printf("%-11s%" PRIu64 " marks, %" PRIu64 " measurements of resident memory", "notes",
	       info->notes[TRACE_NOTE_MARK], info->notes[TRACE_NOTE_RSS]);
	if (info->notes[TRACE_NOTE_PSS] > 0)
		printf(", %" PRIu64 " of its share (%" PRIu64 " counted, the others carried on)",
		       info->notes[TRACE_NOTE_PSS], info->shares_counted);
	putchar('\n');
	if (reader_stats(reader)->bundle_blocks > 0)
		printf("%-11sbundled, %s\n", "symbols",
		       STR_BYTES(reader_stats(reader)->bundle_bytes));
	// "nothing" is a promise that only a whole trace can give.
	if (info_events_lost(info) > 0)
		printf("%-11s%s events known to be missing\n", "lost",
		       STR_COUNT(info_events_lost(info)));
	else
		printf("%-11snothing%s\n", "lost", info->whole ? "" : " that is known");
	if (reader_unknown(reader) > 0)
		printf("%-11s%" PRIu64 " records of a newer tidemark, not read\n", "unknown",
		       reader_unknown(reader));
	// Of a short run the first is too low: it is counted now and then (tidemark-info.1).
	if (end)
		printf("%-11s%s in the program%s, %s and %s of processor time in the collector, "
		       "%s of waiting\n",
		       "cost", STR_BYTES(end->guest_bytes_peak),
		       end->duration_ns < 1000000000 ? " (counted now and then: may be too low)"
						     : "",
		       STR_BYTES(end->collector_bytes_peak), STR_DURATION(end->collector_cpu_ns),
		       STR_DURATION(end->waited_ns));
	print_snapshots(info);
	for (size_t i = 0; i < info->messages_count; i++)
		print_message(i == 0 ? "messages" : "", &info->messages[i]);
}

// One a line: addresses as the process had them, build-id, path.
static void print_modules(const struct reader *reader)
{
	printf("modules\n");
	for (module_id id = 1; id < reader_modules_count(reader); id++) {
		const struct trace_module *module = reader_module(reader, id);
		struct str build_id = { 0 };

		str_add_hex(&build_id, module->build_id, module->build_id_length);
		printf("  process %u  0x%012" PRIx64 "-0x%012" PRIx64 "  %-40s  ", module->process,
		       module->start, module->end, build_id.length ? build_id.text : "-");
		print_plain(module->path);
		putchar('\n');
		str_fini(&build_id);
	}
}

static struct reader *read_info(const struct wish *wish, struct info *info, struct err *err)
{
	struct reader *reader = reader_open(wish->path, err);

	if (reader)
		info_read(info, wish->path, reader, wish->json ? PROGRESS_NONE : PROGRESS_AUTO);
	return reader;
}

// A trace that is not whole is answered, with a warning at the end, and the code is EXIT_ANSWERED.
static int tell(const struct wish *wish)
{
	struct sink sink = sink_to_file(stdout);
	struct info info;
	struct err err = { 0 };
	struct reader *reader;

	reader = read_info(wish, &info, &err);
	if (reader && running_await(&cmd_info, wish->path, reader)) {
		info_fini(&info);
		reader_close(reader);
		reader = read_info(wish, &info, &err);
	}
	if (!reader)
		return args_fail(&cmd_info, &err);
	if (wish->json) {
		info_write_json(&info, &sink);
	} else {
		print_head(&info);
		printf("%-11s%u\n", "processes", reader_processes_count(reader));
		print_tree(&info, wish->all ? UINT32_MAX : SHOWN_PROCESSES);
		print_events(&info);
		print_heaps(&info, wish->all);
		print_figures(&info);
		if (wish->modules)
			print_modules(reader);
	}
	if (!info.whole)
		args_warn(&cmd_info, "%s is not whole: %s", wish->path, info.wrong.text);
	info_fini(&info);
	reader_close(reader);
	return sink_ok(&sink, &err) ? EXIT_ANSWERED : args_fail(&cmd_info, &err);
}

static int run(int argc, char **argv)
{
	struct wish wish = { 0 };
	struct args args;

	args_init(&args, &cmd_info, argc, argv);
	args.into = &wish;
	args.operand = &wish.path;
	if (args_next(&args) != ARGS_END || !args_need(&args, wish.path, "a trace FILE"))
		return args.exit_code;
	return tell(&wish);
}
