// Sentences about a trace that limit what can be said about it: lost events, pauses, what was
// attached to, imports, samples. Each is made in one place, so that a figure has the same caution
// in every command and in the viewer. They are told to a function, not written: text has them in
// front of its figures, JSON in "warnings".
#include "report/ask/cautions.h"

#include "base/str.h"
#include "engine/moment.h"
#include "report/ask/names.h"
#include "trace/defs.h"

#include <inttypes.h>
#include <string.h>

void cautions_add_wholeness(const struct reader *reader, struct str *text)
{
	struct err err = { 0 };

	if (reader_growing(reader))
		str_add(text, "the trace is still being written: what is counted is what was there "
			      "when it was opened");
	else if (!reader_ok(reader, &err))
		str_format(text, "the trace is not whole: %s; what is counted is what is there",
			   err.text);
}

// Processes whose allocations were not recorded all the time.
static void tell_pauses(const struct reader *reader, void (*tell)(void *context, const char *text),
			void *context)
{
	uint64_t first_ns = UINT64_MAX;
	uint64_t again_ns = 0; // the last pause that had no end, of those that are not the first
	uint32_t paused = 0, never = 0, again = 0;
	struct str text = { 0 };

	for (process_id id = 0; id < reader_processes_count(reader); id++) {
		const struct trace_process *process = reader_process(reader, id);

		if (!process->paused)
			continue;
		paused++;
		if (process->resumed_last_ns == 0) {
			never++;
		} else if (process->paused_last_ns > process->resumed_last_ns) {
			again++;
			if (process->paused_last_ns > again_ns)
				again_ns = process->paused_last_ns;
		}
		if (process->paused_first_ns < first_ns)
			first_ns = process->paused_first_ns;
	}
	if (!paused)
		return;
	ASSERT(never + again <= paused);
	str_format(&text, "recording was paused, first at %s", STR_DURATION(first_ns));
	if (paused > 1)
		str_format(&text, ", in %" PRIu32 " processes", paused);
	if (never)
		str_format(&text, ", and %s not resumed",
			   never == paused ? "was" : "in some of them was");
	if (again)
		str_format(&text, ", and %sresumed and paused again, from %s to the end",
			   again == paused ? "was " : "in some of them was ",
			   STR_DURATION(again_ns));
	str_add(&text, ": what was allocated meanwhile is in no figure");
	tell(context, str_get(&text));
	str_fini(&text);
}

// Of a list as "glibc, jemalloc".
static bool is_listed(const char *list, const char *name)
{
	const size_t length = strlen(name);

	for (; *list; list += strcspn(list, ","), list += strspn(list, ", "))
		if (strcspn(list, ",") == length && strncmp(list, name, length) == 0)
			return true;
	return false;
}

static const char *file_of(const struct trace_process *process,
			   const struct trace_allocator *allocator)
{
	const char *file = allocator->file ? allocator->file : process->exe;

	return file ? file : "";
}

// What it had before with allocators whose blocks are not known, each once: one that has no name is
// "unknown", and is named by its file.
static void tell_not_read(struct str *text, const struct trace_process *process)
{
	for (uint32_t i = 0; i < process->allocators_count; i++) {
		const struct trace_allocator *each = &process->allocators[i];
		bool again = each->seen == TRACE_SEEN_OPERATORS ||
			     is_listed(process->before_with, each->name);

		for (uint32_t k = 0; k < i && !again; k++)
			again = process->allocators[k].seen != TRACE_SEEN_OPERATORS &&
				strcmp(process->allocators[k].name, each->name) == 0 &&
				strcmp(file_of(process, &process->allocators[k]),
				       file_of(process, each)) == 0;
		if (again)
			continue;
		str_add(text, "; what it had before with ");
		if (strcmp(each->name, "unknown") == 0)
			str_format(text, "the allocator of %s",
				   str_last_part(file_of(process, each)));
		else
			str_add(text, each->name);
		str_add(text, " is in no figure");
	}
}

// A line for each such process. Without `before` what it had is unknown; with it, what other
// allocators of it had still is.
void cautions_tell_attached(const struct reader *reader,
			    void (*tell)(void *context, const char *text), void *context)
{
	struct str text = { 0 };

	for (process_id id = 0; id < reader_processes_count(reader); id++) {
		const struct trace_process *process = reader_process(reader, id);

		if (process->start != TRACE_START_ATTACH)
			continue;
		str_clear(&text);
		str_format(&text,
			   "process %" PRIu32 " was attached to while it ran: ", process->pid);
		if (process->before && process->before_count == 0)
			str_format(&text, "it had no blocks before with %s", process->before_with);
		else if (process->before)
			str_format(&text,
				   "%s blocks that it had before are in the figures of what lives "
				   "as %s, with the bytes that may be used of them",
				   STR_COUNT(process->before_count), TRACE_BEFORE_NAME);
		else
			str_add(&text, "what it had allocated before is in no figure");
		if (process->before_why)
			str_format(&text, " (%s)", process->before_why);
		if (process->before)
			tell_not_read(&text, process);
		tell(context, str_get(&text));
	}
	str_fini(&text);
}

// What a trace that was imported does not know, by the words of docs/format.md, 5.1.
static const struct {
	const char *word, *means;
} lacks[] = {
	{ "no-clock", "times are the order of events alone, a microsecond each" },
	{ "no-addresses", "addresses are numbers of blocks, not places in memory" },
	{ "no-threads", "threads are not told apart" },
	{ "no-stacks", "there are no stacks" },
	{ "callers", "stacks are the caller alone" },
	{ "snapshots",
	  "it is made of sums: what came and went between them is in no figure, blocks "
	  "are numbered and of mean size" },
	{ "totals",
	  "it is made of sums: what came and went is counted, but not when it was; blocks "
	  "are numbered and of mean size" },
	{ "no-counts", "blocks are not counted: each sum is one" },
	{ "leaks", "only what was not freed at the end is in it" },
	{ "numbered", "times are the numbers of snapshots, a second each" },
	{ "estimated", "the sums may be estimates of samples" },
	{ "parts-of-slots",
	  "of virtual memory only reservations are in it that leave a part of their "
	  "64 KiB slot unused; there is no heap" },
	{ "layouts", "the layouts of its events of memory were checked against what is published, "
		     "not against a recording of Windows" },
};

bool cautions_is_import(const struct trace_info *info)
{
	return info->options && strncmp(info->options, "imported=", 9) == 0;
}

// The options of an imported trace are "imported=TOOL word word": the word is looked for whole, so
// that "totals" is not found in "subtotals".
bool cautions_lacks(const struct trace_info *info, const char *word)
{
	return cautions_is_import(info) && defs_has_word(info->options, word);
}

// One sentence: from which tool, what is missing in the order of the trace's words, and the tick. A
// recording whose addresses were stripped has one of these words too, but no tool.
static void tell_import(const struct trace_info *info,
			void (*tell)(void *context, const char *text), void *context)
{
	static const char imported[] = "imported=";
	const char *options = info->options ? info->options : "";
	struct str text = { 0 };
	const char *sign = ": ";

	if (strncmp(options, imported, sizeof imported - 1) == 0) {
		options += sizeof imported - 1;
		str_format(&text, "imported from %.*s", (int)strcspn(options, " "), options);
		options += strcspn(options, " ");
	} else if (defs_has_word(options, "no-addresses")) {
		str_add(&text, "addresses were stripped");
	} else {
		return;
	}
	for (; *options; options += strcspn(options, " ")) {
		options += strspn(options, " ");
		for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++) {
			size_t length = strlen(lacks[i].word);

			// One that has totals, too, says otherwise what snapshots lack.
			if (strcmp(lacks[i].word, "snapshots") == 0 &&
			    defs_has_word(options, "totals"))
				continue;
			if (strncmp(options, lacks[i].word, length) == 0 &&
			    (options[length] == ' ' || !options[length])) {
				str_format(&text, "%s%s", sign, lacks[i].means);
				sign = "; ";
			}
		}
	}
	if (info->tick_ns)
		str_format(&text, "%stimes are known to %s", sign, STR_DURATION(info->tick_ns));
	tell(context, str_get(&text));
	str_fini(&text);
}

// A trimmed trace begins with calls that were not made in its time: they only say what lived and
// what was mapped where it was cut.
static void tell_trimmed(const struct reader *reader, void (*tell)(void *context, const char *text),
			 void *context)
{
	struct str text = { 0 };

	if (!moment_is_trimmed(reader))
		return;
	str_format(&text,
		   "trimmed to what came after %s: of what was before, the %s calls are in it that "
		   "say what lived and was mapped then; they are in levels alone; what lived "
		   "when a process ended before that is not in it",
		   STR_DURATION(moment_begin(reader)), STR_COUNT(reader_info(reader)->trimmed));
	tell(context, str_get(&text));
	str_fini(&text);
}

// The first such stack is enough: how many does not matter.
static void tell_deep(const struct reader *reader, void (*tell)(void *context, const char *text),
		      void *context)
{
	for (stack_id id = 1; id < reader_stacks_count(reader); id++) {
		if (!(reader_stack(reader, id)->flags & TRACE_STACK_CUT))
			continue;
		tell(context,
		     "some stacks are deeper than the 8,192 frames that are recorded: their "
		     "outer callers are missing");
		return;
	}
}

void cautions_tell_origin(const struct reader *reader,
			  void (*tell)(void *context, const char *text), void *context)
{
	tell_pauses(reader, tell, context);
	cautions_tell_attached(reader, tell, context);
	tell_import(reader_info(reader), tell, context);
	tell_trimmed(reader, tell, context);
}

// Where events were lost, which is told beside it, that is why.
void cautions_add_unlisted(const struct reader *reader, const struct space_totals *totals,
			   struct str *text)
{
	const struct trace_end *end = reader_end(reader);
	const char *why =
		end && end->events_lost
			? "lost"
			: "not seen (record --strict-vm sees those of the program's own code)";
	uint64_t end_ns;

	ASSERT(text);
	if (reader_lacks_events(reader, &end_ns))
		why = "cut off with the rest of the trace";
	if (!totals->gone_bytes && !totals->unlisted_bytes)
		return;
	str_format(text,
		   "by the calls that were recorded %s should be mapped that is not, and %s is "
		   "mapped that should not be: some calls were %s",
		   STR_BYTES(totals->gone_bytes), STR_BYTES(totals->unlisted_bytes), why);
}

// Turns are the moments at which the rate of sampling changed; log2 of 0 is each call. Before the
// first turn each call was recorded.
uint64_t cautions_exact_ns(const struct reader *reader, uint64_t duration_ns)
{
	size_t count;
	const struct trace_turn *turns = reader_turns(reader, &count);
	uint64_t exact_ns = count > 0 ? turns[0].time_ns : duration_ns;

	for (size_t i = 0; i < count; i++) {
		uint64_t end_ns = i + 1 < count ? turns[i + 1].time_ns : duration_ns;

		if (turns[i].log2 == 0 && end_ns > turns[i].time_ns)
			exact_ns += end_ns - turns[i].time_ns;
	}
	return exact_ns < duration_ns ? exact_ns : duration_ns;
}

static void tell_sampled(const struct reader *reader, bool scaled,
			 void (*tell)(void *context, const char *text), void *context)
{
	static const char estimated[] =
		"sums of calls and blocks estimate the whole; moments, levels over time, peaks of "
		"a window and single blocks are as they are in it";
	static const char as_they_are[] =
		"calls and blocks are written as they are in it, and totals in it are too low";
	uint64_t mean_bytes = reader_info(reader)->sample_bytes;
	struct str text = { 0 };
	size_t count;
	const struct trace_turn *turns = reader_turns(reader, &count);

	if (mean_bytes)
		str_format(&text,
			   "the recording is sampled, a block of s bytes is in it with probability "
			   "1 - exp(-s / %" PRIu64 "): %s",
			   mean_bytes, scaled ? estimated : as_they_are);
	else if (count > 0)
		str_format(&text, "the recording was sampled at times, first at %s: %s",
			   STR_DURATION(turns[0].time_ns),
			   scaled ? "sums of what was allocated then are estimates; moments, "
				    "levels over time, peaks of a window and single blocks are as "
				    "they are in it"
				  : as_they_are);
	else
		str_format(&text, "some of the blocks are samples: %s",
			   scaled ? "their figures are estimates" : as_they_are);
	tell(context, str_get(&text));
	str_fini(&text);
}

void cautions_tell(const struct reader *reader, bool scaled,
		   void (*tell)(void *context, const char *text), void *context)
{
	struct str text = { 0 };

	cautions_add_wholeness(reader, &text);
	if (text.length > 0)
		tell(context, str_get(&text));
	if (reader_is_estimated(reader))
		tell_sampled(reader, scaled, tell, context);
	cautions_tell_origin(reader, tell, context);
	tell_deep(reader, tell, context);
	str_fini(&text);
}
