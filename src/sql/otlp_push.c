// How a trace is added up while it grows. A sum is kept for each process, thread, stack and size:
//
//     live       blocks that live now
//     begun      that began since what was sent last
//     exited     of `live`: those whose process has ended meanwhile. They go with the next message.
//
// For example malloc(16) twice from one place, one freed, and the process exits: begun 2, live 1,
// exited 1; after it was sent, 0 of each, and the sum is forgotten.
#include "sql/otlp_push.h"

#include "base/mem.h"
#include "engine/moment.h"
#include "engine/replay/lives.h"
#include "export/export.h"
#include "os/now.h"
#include "trace/parts.h"

#include <inttypes.h>
#include <string.h>

enum {
	POLL_NS = 250000000,
	LOOK_EVERY = 1 << 12,
	MESSAGE_SAMPLES = 20000, // some MiB: collectors take 20 of them at once
};

struct sum {
	process_id process;
	thread_id thread;
	stack_id stack;
	uint64_t size;
	uint64_t live, begun, exited;
};

// A block's place among those that began: its time, and how many of that time were before it.
struct place {
	uint64_t time_ns, count;
};

struct otlp_push {
	struct otlp_send *send;
	const struct otlp_push_options *options;
	struct otlp_push_result *result;
	struct opened opened;
	struct query_context asked; // no more of it than what otlp.c looks at
	struct lives *lives;
	struct sum *sums;
	size_t sums_count, sums_capacity;
	struct index_set known;
	struct place begins; // of the last block
	struct place before; // up to here they were counted in another file
	uint64_t now_ns;
	uint64_t from_ns;  // where the period begins
	uint64_t epoch_ns; // the same, of our clock
	bool away;         // the collector is, and that was said
};

// ---- adding up ----

static uint64_t hash_of(const struct sum *sum)
{
	const uint64_t words[] = { sum->process, sum->thread, sum->stack, sum->size };

	return index_set_hash(words, 4);
}

static bool is_same(const void *context, uint32_t position, const void *key)
{
	const struct otlp_push *push = context;
	const struct sum *there = &push->sums[position], *wanted = key;

	ASSERT(position < push->sums_count);
	return there->process == wanted->process && there->thread == wanted->thread &&
	       there->stack == wanted->stack && there->size == wanted->size;
}

static struct sum *sum_of(struct otlp_push *push, const struct lives_block *block)
{
	const struct sum fresh = {
		.process = block->process,
		.thread = block->thread,
		.stack = block->stack,
		.size = block->size,
	};
	uint32_t at = index_set_put(&push->known, hash_of(&fresh), is_same, push, &fresh,
				    (uint32_t)push->sums_count);

	// Sums are of places that allocate, not of blocks: their number does not grow with the run.
	if (at == push->sums_count)
		*MEM_ADD(push->sums, push->sums_count, push->sums_capacity) = fresh;
	return &push->sums[at];
}

// Whether it was counted in the file of before. The same recording in another file has no numbers
// in common: blocks are told by their time and by how many of one time there were, since their
// order is the same.
static bool was_counted(struct otlp_push *push, const struct lives_block *block)
{
	struct place *at = &push->begins;

	// For example three blocks at 5 ms are (5, 1), (5, 2) and (5, 3); if (5, 2) was the last of
	// the file before, only the third counts.
	at->count = at->time_ns == block->time_ns ? at->count + 1 : 1;
	at->time_ns = block->time_ns;
	return at->time_ns < push->before.time_ns ||
	       (at->time_ns == push->before.time_ns && at->count <= push->before.count);
}

static void begin(void *context, const struct lives_block *block)
{
	struct otlp_push *push = context;
	struct sum *sum = sum_of(push, block);

	sum->live++;
	if (block->kind != TRACE_BEFORE && !was_counted(push, block))
		sum->begun++;
}

// What its process ended lived at the end of the period, and is sent once more.
static void end(void *context, const struct lives_block *block, const struct lives_end *end)
{
	struct sum *sum;

	if (block->origin != LIVES_BEGUN)
		return;
	sum = sum_of(context, block);
	// It stays among the living until the message is sent.
	if (end->cause == LIVES_EXIT || end->cause == LIVES_EXEC)
		sum->exited++;
	else if (sum->live > 0)
		sum->live--;
}

// The end was counted when the first half came; a realloc that failed takes that back. Nothing
// began.
static void undo(void *context, const struct lives_block *block, const struct lives_end *)
{
	if (block->origin == LIVES_BEGUN)
		sum_of(context, block)->live++;
}

// Forget sums of nothing. Those that are kept move down, so the set of places is made again.
static void forget_empty(struct otlp_push *push)
{
	size_t kept = 0;

	index_set_fini(&push->known);
	push->known = (struct index_set){ 0 };
	for (size_t i = 0; i < push->sums_count; i++) {
		const struct sum sum = push->sums[i];

		if (!sum.live && !sum.begun)
			continue;
		push->sums[kept] = sum;
		index_set_put(&push->known, hash_of(&sum), is_same, push, &sum, (uint32_t)kept);
		kept++;
	}
	push->sums_count = kept;
}

// ---- a message ----

// Of begun and live as many as possible are one and the same: begun in the period and still there.
// For example begun 5, live 3: AIFO 3, AIFI 2; begun 2, live 3: AIFO 2, AOFO 1.
static void add_sample(struct samples *samples, const struct sum *sum, uint32_t index,
		       uint64_t mean_bytes)
{
	// Which blocks are the same is not kept, only how many: this is what can be said of two
	// numbers.
	uint64_t both = sum->begun < sum->live ? sum->begun : sum->live;
	const uint64_t counts[WINDOW_TYPES] = {
		[WINDOW_AIFI] = sum->begun - both,
		[WINDOW_AIFO] = both,
		[WINDOW_AOFO] = sum->live - both,
	};
	struct sample *sample = MEM_ADD(samples->list, samples->count, samples->capacity);

	*sample = (struct sample){
		.process = sum->process,
		.thread = sum->thread,
		.stack = sum->stack,
		.group = index,
		.size = sum->size,
	};
	for (int type = 0; type < WINDOW_TYPES; type++)
		sample->row.type[type] =
			(struct heap_amount){ counts[type], counts[type] * sum->size };
	if (mean_bytes)
		samples_scale(sample, mean_bytes);
}

// Only now is it forgotten: what did not come through stays in the sums, and is in the next
// message.
static void sent(struct otlp_push *push, const struct samples *samples)
{
	for (size_t i = 0; i < samples->count; i++) {
		struct sum *sum = &push->sums[samples->list[i].group];

		ASSERT(sum->exited <= sum->live);
		sum->live -= sum->exited;
		sum->begun = sum->exited = 0;
	}
}

// A collector may reject profiles and answer well all the same: they count as sent, and the user is
// told.
static bool send_samples(struct otlp_push *push, const struct samples *samples, bool once,
			 struct err *err)
{
	struct export_source source = { .asked = &push->asked, .samples = samples };
	struct otlp_said said = { 0 };
	struct str message = { 0 }, line = { 0 };
	struct sink sink = sink_to_str(&message);
	bool good = otlp_format.write(&source, &sink, err) && sink_ok(&sink, err) &&
		    otlp_send_profiles(push->send, &message, once, &said, err);

	if (good) {
		sent(push, samples);
		push->result->messages++;
		push->result->bytes += said.bytes;
	}
	if (good && said.rejected) {
		str_format(&line, "%" PRIu64 " profiles were rejected: %s", said.rejected,
			   str_get(&said.why));
		push->options->say(str_get(&line));
	} else if (good && said.why.length > 0) {
		str_format(&line, "the collector says: %s", said.why.text);
		push->options->say(line.text);
	}
	STR_FINI(&said.why, &message, &line);
	return good;
}

// All that there is, in messages of so many samples. A stack, a process may be in several.
static bool send_all(struct otlp_push *push, bool once, struct err *err)
{
	struct samples samples = { .asked = &push->asked, .by_size = true };
	bool good = true;

	for (size_t i = 0; i < push->sums_count; i++)
		if (push->sums[i].live || push->sums[i].begun)
			add_sample(&samples, &push->sums[i], (uint32_t)i,
				   reader_sample_bytes(push->opened.reader, push->sums[i].stack));
	samples_sort(&samples);
	for (size_t at = 0; at < samples.count && good; at += MESSAGE_SAMPLES) {
		size_t left = samples.count - at;
		struct samples part = samples;

		part.list += at;
		part.count = left < MESSAGE_SAMPLES ? left : MESSAGE_SAMPLES;
		// What was sent is forgotten even if a later message fails.
		good = send_samples(push, &part, once, err);
	}
	samples_close(&samples);
	return good;
}

// ---- periods ----

// Once, until it answers again.
static void say_away(struct otlp_push *push, const struct err *err)
{
	struct str line = { 0 };

	if (!push->away)
		str_format(&line, "%s; what is allocated goes into a later profile", err->text);
	push->away = true;
	if (line.length > 0)
		push->options->say(line.text);
	str_fini(&line);
}

// `last`: there is no later one, so it is tried for longer. A collector that is away ends nothing,
// unless it is the last period: sums stay, and the next period begins where this one did.
static bool end_period(struct otlp_push *push, bool last, struct err *err)
{
	bool good;

	push->asked.from_ns = push->from_ns;
	push->asked.to_ns = push->now_ns;
	good = send_all(push, !last, err);
	if (!good && !last && otlp_send_may_retry(push->send)) {
		say_away(push, err);
		*err = (struct err){ 0 };
		good = true;
	} else if (good) {
		if (push->away)
			push->options->say("the collector answers again");
		push->away = false;
		push->from_ns = push->now_ns;
		forget_empty(push);
	}
	push->epoch_ns = now_steady_ns();
	return good;
}

static bool is_due(const struct otlp_push *push)
{
	return now_steady_ns() - push->epoch_ns >= push->options->every_ns;
}

// ---- the file ----

static void close_file(struct otlp_push *push)
{
	lives_free(push->lives);
	push->lives = NULL;
	opened_close(&push->opened);
}

// The caller's `file` is empty afterwards.
static void take_file(struct otlp_push *push, struct opened *file)
{
	const struct lives_watcher watcher = {
		.begin = begin,
		.end = end,
		.undo = undo,
		.context = push,
	};

	push->opened = *file;
	*file = (struct opened){ 0 };
	reader_follow(push->opened.reader, true);
	push->asked.reader = push->opened.reader;
	push->asked.names = push->opened.names;
	push->asked.symbols = push->opened.symbols;
	push->lives = lives_new(push->opened.reader, &watcher, NULL);
}

// A file that is cut at its front while it is recorded may begin later than we had read.
static void say_dropped(struct otlp_push *push)
{
	uint64_t to_ns = moment_begin(push->opened.reader);
	struct str line = { 0 };

	if (!moment_is_trimmed(push->opened.reader) || to_ns <= push->now_ns)
		return;
	str_format(&line,
		   "what began and ended from %s to %s is in no profile: the trace has it no more "
		   "(try: record with a larger --max-size or --keep)",
		   STR_DURATION(push->now_ns), STR_DURATION(to_ns));
	push->options->say(line.text);
	str_fini(&line);
}

// Opens the file that `info`'s goes on in: its next part, or what has its name now. False without
// an error: there is none.
// It is the same recording if it began at the same time; it is its next file if it was trimmed, or
// has another number, or is being written while ours has no end.
static bool open_next(const struct otlp_push *push, const struct trace_info *info,
		      struct opened *next, struct err *err)
{
	const char *path = push->options->path;
	const struct trace_info *other;
	struct str part = { 0 };
	uint8_t id[sizeof info->recording_id];
	bool is_part, is = false;

	parts_next_id(info->recording_id, id);
	do {
		is_part = parts_has(info) && parts_find(path, id, &part);
		if (!opened_open(next, is_part ? str_get(&part) : path, &push->options->symbols,
				 err))
			break;
		other = reader_info(next->reader);
		is = other->began_unix_ns == info->began_unix_ns &&
		     (other->trimmed != info->trimmed ||
		      memcmp(other->recording_id, info->recording_id, sizeof id) != 0 ||
		      (!reader_end(push->opened.reader) &&
		       (reader_growing(next->reader) || reader_end(next->reader))));
		// Rotated between our look and its opening: it is called otherwise by now.
		is_part = is_part && memcmp(other->recording_id, id, sizeof id) != 0;
		if (!is || is_part)
			opened_close(next);
	} while (is_part);
	str_fini(&part);
	return is && !err->kind;
}

// It was cut anew, or rotated away: the rest is in another file. What lives is found there once
// more. False without an error: there is none.
static bool reopen(struct otlp_push *push, struct err *err)
{
	struct opened next = { 0 };
	uint64_t end_ns;

	if (!open_next(push, reader_info(push->opened.reader), &next, err))
		return false;
	if (push->begins.time_ns > push->before.time_ns ||
	    (push->begins.time_ns == push->before.time_ns &&
	     push->begins.count > push->before.count))
		push->before = push->begins;
	push->begins = (struct place){ 0 };
	for (size_t i = 0; i < push->sums_count; i++)
		push->sums[i].live = push->sums[i].exited = 0;
	// It may have ended in a pause of the program.
	end_ns = reader_end(push->opened.reader) ? moment_duration(push->opened.reader) : 0;
	push->now_ns = end_ns > push->now_ns ? end_ns : push->now_ns;
	close_file(push);
	take_file(push, &next);
	say_dropped(push);
	return true;
}

// All that is in the file by now. Ends a period in the middle of reading, too: a long file takes
// longer than one.
static bool read_on(struct otlp_push *push, struct err *err)
{
	struct reader *reader = push->opened.reader;
	struct trace_event event;
	struct trace_note note;
	enum reader_item item;
	uint64_t count = 0;

	while ((item = reader_next(reader, &event, &note)) != READER_END) {
		uint64_t time_ns = item == READER_EVENT ? event.time_ns : note.time_ns;

		if (item == READER_EVENT)
			lives_add_event(push->lives, &event);
		else
			lives_add_note(push->lives, &note);
		if (time_ns > push->now_ns)
			push->now_ns = time_ns;
		if (++count % LOOK_EVERY)
			continue;
		if (push->options->stop(NULL))
			return true;
		if (is_due(push) && push->lives && reader_growing(reader) &&
		    !end_period(push, false, err))
			return false;
	}
	return true;
}

// Once more, should there be no more in this file. False: there is no other; or *err says why.
static bool goes_on(struct otlp_push *push, struct err *err)
{
	bool ends = reader_end(push->opened.reader) != NULL;

	if (!ends && reader_growing(push->opened.reader))
		return true;
	// What its writer wrote between our last look and its end.
	reader_grown(push->opened.reader);
	if (!ends && reader_end(push->opened.reader))
		return true;
	return reopen(push, err);
}

// A file that grows is looked at four times a second; one that does not is read on at once in the
// next, or is over.
static bool follow(struct otlp_push *push, struct err *err)
{
	for (;;) {
		if (!read_on(push, err))
			return false;
		if (push->options->stop(NULL))
			return err_set(err, ERR_STOPPED, "stopped");
		if (!goes_on(push, err))
			return !err->kind;
		if (!reader_growing(push->opened.reader))
			continue;
		if (is_due(push) && !end_period(push, false, err))
			return false;
		now_sleep(POLL_NS);
		reader_grown(push->opened.reader);
	}
}

// The last period is sent whatever its length, once the recording has ended.
bool otlp_push_run(struct otlp_send *send, const struct otlp_push_options *options,
		   struct otlp_push_result *result, struct err *err)
{
	struct otlp_push push = {
		.send = send,
		.options = options,
		.result = result,
		.epoch_ns = now_steady_ns(),
	};
	struct opened first;
	bool good = opened_open(&first, options->path, &options->symbols, err);

	if (good) {
		take_file(&push, &first);
		push.from_ns = moment_begin(push.opened.reader);
		good = follow(&push, err);
	}
	if (good) {
		uint64_t end_ns = moment_duration(push.opened.reader);

		push.now_ns = end_ns > push.now_ns ? end_ns : push.now_ns;
		good = end_period(&push, true, err);
	}
	close_file(&push);
	index_set_fini(&push.known);
	mem_free(push.sums);
	return good;
}
