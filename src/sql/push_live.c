// How the trace is read while it grows, and what of it is when a row. What is sent, and recorded,
// is in push_live_send.c.
//
// A realloc in two halves ends a block that may live on (lives.h, `undo`): its row waits until the
// next call of its thread tells, and is in the picture until then.
#include "sql/push_live_own.h"

#include "base/mem.h"
#include "engine/moment.h"
#include "os/file.h"
#include "os/now.h"
#include "trace/effect.h"
#include "trace/parts.h"

#include <errno.h>
#include <string.h>

enum {
	// How often a file that does not grow is looked at; after how many items of one that does
	// the time is looked at; after how many spans of `every_ns` an epoch ends in any case; the
	// unit and the count of a row's place; and how often a part of a rotated recording may be
	// missed, as it is renamed while it is opened.
	POLL_NS = 250000000,
	LOOK_EVERY = 1 << 12,
	LATEST = 6,
	BUCKET_NS = 100000,
	PLACES = 24,
	MISSED_MAX = 16
};

// ---- rows ----

// The place of the next row, and whether it is there already.
static bool is_there(struct push_live *live)
{
	// A row's place is its tick and a number in it: 2^24 rows of one tick of 100 us have room.
	// So two readings of one trace give a row the same place, and what is known to the database
	// by the last of its places is sent once.
	// Three years and a half of ticks have places of their own; what is after shares the last.
	uint64_t tick = live->now_ns / BUCKET_NS, last = UINT64_MAX >> PLACES;
	uint64_t place = (tick < last ? tick : last) << PLACES;

	if (place < live->next)
		place = live->next;
	live->next = place + 1;
	return place < live->known;
}

// A block that has ended: its row is sent, or was sent by an earlier push. In the latter case the
// sums of the sites count it still, unless this is the file after a cut, whose earlier rows they
// have already. Blocks that lived before the trace began have no row.
static void emit(struct push_live *live, const struct lives_block *block,
		 const struct lives_end *end)
{
	ASSERT(live->rowset && block && end);
	if (block->origin != LIVES_BEGUN)
		return;
	if (!is_there(live)) {
		live->ended++;
		rowset_life(live->rowset, block, end);
	} else if (!live->reopened) {
		live->result->rows_known++;
		rowset_seen(live->rowset, block, end);
	}
}

// The pointer holds until the next call: the list may grow.
static struct push_live_half *half_of(struct push_live *live, thread_id thread)
{
	return MEM_FILL(live->halves, live->halves_count, live->halves_capacity, thread);
}

static void settle(struct push_live *live, struct push_live_half *half)
{
	if (half->open)
		emit(live, &half->block, &half->end);
	// Whatever the call was: it did not undo the half.
	half->open = false;
}

// A block's end, as lives tells it: it waits in the thread's half if a later event may take it
// back.
static void end(void *context, const struct lives_block *block, const struct lives_end *end)
{
	struct push_live *live = context;
	const struct trace_event *event = &live->event;

	if (end->cause == LIVES_REALLOC && effect_of(event->kind) & EFFECT_HALF)
		*half_of(live, event->thread) = (struct push_live_half){ true, *block, *end };
	else
		emit(live, block, end);
}

// The realloc failed: the block lives on, as if its first half had not been.
static void undo(void *context, const struct lives_block *, const struct lives_end *)
{
	struct push_live *live = context;

	half_of(live, live->event.thread)->open = false;
}

// A stack that is not defined is one that a damaged trace names: it reads as "none". A half is
// settled before the event is added, since the event may end a block of its own.
static void add_event(struct push_live *live)
{
	struct trace_event *event = &live->event;
	unsigned effect = effect_of(event->kind);

	if (event->stack >= reader_stacks_count(live->asked.reader))
		event->stack = 0;
	live->now_ns = event->time_ns;
	live->next_number = event->number + 1;
	if (effect & EFFECT_CALL && !(effect & EFFECT_UNDOES) && event->thread < live->halves_count)
		settle(live, &live->halves[event->thread]);
	lives_add_event(live->lives, event);
}

// Notes may end blocks (a process that is gone), and no call was their cause: the event is emptied,
// so that `end` does not take them for a half.
static void add_note(struct push_live *live, const struct trace_note *note)
{
	live->now_ns = note->time_ns;
	live->event = (struct trace_event){ 0 };
	lives_add_note(live->lives, note);
	if (note->kind == TRACE_NOTE_RSS && note->time_ns >= live->known_rss) {
		live->last_rss = note->time_ns + 1;
		rowset_note(live->rowset, note);
	}
}

// ---- the file ----

static void close_file(struct push_live *live)
{
	lives_free(live->lives);
	live->lives = NULL;
	opened_close(&live->opened);
	file_close(live->lock_fd);
	live->lock_fd = -1;
}

// The lock keeps two pushes of one machine from sending one file; where locks do not work (some
// network folders) it goes on without, and is_alone in the other half finds out.
static bool open_file(struct push_live *live, struct err *err)
{
	const struct lives_watcher watcher = { .end = end, .undo = undo, .context = live };

	ASSERT(!live->lives);
	live->lock_fd = file_lock(live->options->path);
	if (live->lock_fd < 0 && errno == EWOULDBLOCK)
		return err_set(err, ERR_IO, "%s is being sent by another tidemark push",
			       live->options->path);
	if (!opened_open(&live->opened, live->options->path, &live->options->symbols, err))
		return false;
	reader_follow(live->opened.reader, true);
	live->asked.reader = live->opened.reader;
	live->asked.names = live->opened.names;
	live->asked.symbols = live->opened.symbols;
	live->asked.options.path = live->options->path;
	live->lives = lives_new(live->opened.reader, &watcher, NULL);
	return true;
}

// Of a block, as a key.
// Address and time alone would do but for processes and heaps that share both.
static uint64_t key_of(const struct lives_block *block)
{
	const uint64_t words[] = { block->process, block->heap, block->address, block->time_ns };

	return index_set_hash(words, 4);
}

static void remember(void *context, const struct lives_block *block)
{
	map_put(context, key_of(block), NULL);
}

// A block of the file before that the new one does not know: it ended while nothing was recorded.
static void lose(void *context, const struct lives_block *block)
{
	struct push_live *live = context;
	const struct lives_end gone = {
		.cause = LIVES_LOST,
		.number = live->next_number,
		.time_ns = live->now_ns,
		.thread = TRACE_NONE,
	};

	if (!map_find(&live->lived, key_of(block)))
		emit(live, block, &gone);
}

// The trace goes on at a later time than it was left. What lived then and is not in it any more
// has ended at a time that is not known.
static void step_over(struct push_live *live)
{
	uint64_t began_ns = moment_begin(live->asked.reader);

	ASSERT(live->before);
	lives_each(live->lives, remember, &live->lived);
	live->now_ns = began_ns;
	lives_each(live->before, lose, live);
	map_fini(&live->lived);
	lives_free(live->before);
	live->before = NULL;
}

// From there to where the file begins now was cut off before it was sent. Nothing, if the file
// reaches back far enough.
static void note_dropped(struct push_live *live, uint64_t from_ns)
{
	uint64_t to_ns = moment_begin(live->asked.reader);

	if (!moment_is_trimmed(live->asked.reader) || to_ns <= from_ns)
		return;
	rowset_cut(live->rowset);
	live->options->dropped(live->asked.reader, from_ns, to_ns);
}

// It was cut anew: the rest is in another file. False without an error: there is none.
static bool reopen(struct push_live *live, struct err *err)
{
	struct push_live next = { 0 };
	const struct export_source source = { .asked = &live->asked };
	// Cut once more before it was read up to where it begins: what lived before the first cut
	// is in no other place.
	bool twice = live->before != NULL;
	uint64_t left_ns = twice ? moment_begin(live->asked.reader) : live->now_ns;
	bool other;

	if (!opened_open(&next.opened, live->options->path, &live->options->symbols, err))
		return false;
	other = reader_growing(next.opened.reader) || reader_end(next.opened.reader) ||
		reader_info(next.opened.reader)->trimmed !=
			reader_info(live->asked.reader)->trimmed;
	other = other && memcmp(reader_info(next.opened.reader)->recording_id,
				reader_info(live->asked.reader)->recording_id, 16) == 0;
	opened_close(&next.opened);
	if (!other)
		return false;
	if (!twice) {
		live->before = live->lives;
		live->lives = NULL;
	}
	close_file(live);
	if (!open_file(live, err))
		return false;
	rowset_source(live->rowset, &source);
	live->reopened = true;
	live->known = live->next;
	live->next = 0;
	live->halves_count = 0;
	live->known_rss = live->last_rss;
	if (moment_is_trimmed(live->asked.reader) && moment_begin(live->asked.reader) > left_ns)
		note_dropped(live, left_ns);
	else
		lives_free(live->before), live->before = NULL;
	return true;
}

// ---- epochs ----

// Never sooner than `every_ns`, nor than the last epoch took to send: a slow server gets longer
// epochs instead of a queue.
static bool is_due(const struct push_live *live)
{
	uint64_t span_ns = now_steady_ns() - live->epoch_ns;

	if (span_ns < live->options->every_ns || span_ns < live->took_ns)
		return false;
	// A picture is to be no more than what it comes with, or is rare.
	// A picture of 10,000 living blocks is sent when 5,000 rows come with it, or when six times
	// the usual time has passed.
	return live->ended >= live->picture_rows / 2 || span_ns / LATEST >= live->options->every_ns;
}

// The clock starts when the sending is done. An epoch in which nothing was read sends nothing.
static bool end_epoch(struct push_live *live, struct err *err)
{
	uint64_t began_ns = now_steady_ns();
	bool good = !live->changed || push_live_send_epoch(live, err);

	live->epoch_ns = now_steady_ns();
	live->took_ns = live->epoch_ns - began_ns;
	live->ended = 0;
	live->changed = false;
	return good;
}

// All that is in the file by now.
static bool read_on(struct push_live *live, struct err *err)
{
	struct reader *reader = live->asked.reader;
	struct trace_note note;
	enum reader_item item;
	uint64_t count = 0;

	while (!live->failed && (item = reader_next(reader, &live->event, &note)) != READER_END) {
		live->changed = true;
		if (item == READER_EVENT)
			add_event(live);
		else
			add_note(live, &note);
		if (live->before && live->next_number >= reader_info(reader)->trimmed)
			step_over(live);
		if (++count % LOOK_EVERY == 0 && is_due(live) && !end_epoch(live, err))
			return false;
		if (count % LOOK_EVERY == 0 && live->options->stop(NULL))
			return true;
	}
	return !live->failed || err_set(err, live->err.kind, "%s", live->err.text);
}

// Until the trace has its end, or its writer is gone without one. A writer may put its last lines
// between the look at the file and the look at the claim, so the file is looked at once more after
// the claim is gone.
static bool follow(struct push_live *live, struct err *err)
{
	for (;;) {
		if (!read_on(live, err))
			return false;
		if (live->options->stop(NULL))
			return err_set(err, ERR_STOPPED, "stopped");
		if (reader_end(live->asked.reader) || !reader_growing(live->asked.reader)) {
			bool ends = reader_end(live->asked.reader) != NULL;

			// What its writer wrote between our last look and its end.
			reader_grown(live->asked.reader);
			if (!ends && reader_end(live->asked.reader))
				continue;
			if (ends || !reopen(live, err))
				return !err->kind;
			continue;
		}
		if (is_due(live) && !end_epoch(live, err))
			return false;
		now_sleep(POLL_NS);
		reader_grown(live->asked.reader);
	}
}

// The last epoch: all is final, no picture follows. Blocks that live still end with the trace.
static bool finish(struct push_live *live, struct err *err)
{
	uint64_t end_ns = moment_duration(live->asked.reader);

	ASSERT(!live->final);
	for (size_t i = 0; i < live->halves_count; i++)
		settle(live, &live->halves[i]);
	if (end_ns > live->now_ns)
		live->now_ns = end_ns;
	live->event = (struct trace_event){ 0 };
	lives_finish(live->lives, end_ns);
	live->final = true;
	if (live->failed)
		return err_set(err, live->err.kind, "%s", live->err.text);
	return push_live_send_epoch(live, err);
}

// All of it is in this file, if it never was cut. It may be called otherwise by now.
static bool send_file(struct push_live *live, struct err *err)
{
	const struct trace_info *info = reader_info(live->asked.reader);
	struct str path = { 0 };
	bool good;

	if (moment_is_trimmed(live->asked.reader) && !parts_has(info))
		return true;
	if (parts_has(info) && parts_find(live->options->path, info->recording_id, &path))
		live->asked.options.path = str_get(&path);
	good = push_file(live->shards, &live->asked, live->day, live->options->keep_days,
			 live->result, err);
	str_fini(&path);
	return good;
}

// The trace's name picks its shard, so that a push that goes on finds the same one.
static bool send_trace(struct push_live *live, struct err *err)
{
	const struct export_source source = { .asked = &live->asked };
	const struct trace_info *info = reader_info(live->asked.reader);
	bool good;

	ASSERT(!live->rowset && !live->clickhouse);
	rowset_trace_name(live->asked.reader, live->trace);
	live->clickhouse = shards_server(live->shards, index_set_hash_text(live->trace) %
							       shards_count(live->shards));
	live->day = tables_day(info->began_unix_ns + moment_begin(live->asked.reader));
	push_live_send_init(live);
	live->rowset = rowset_new(&source, &live->receiver);
	good = push_live_send_tables(live, err) && push_live_send_known(live, err);
	if (good && live->known)
		note_dropped(live, (live->known >> PLACES) * BUCKET_NS);
	return good && (live->whole || (follow(live, err) && finish(live, err))) &&
	       send_file(live, err);
}

// A part: the one of that id (NULL: any). *next: the id of the one after it.
static bool run(struct shards *shards, const struct push_live_options *options, const uint8_t *id,
		uint8_t next[static 16], struct push_result *result, struct err *err)
{
	struct push_live live = {
		.shards = shards,
		.options = options,
		.result = result,
		.lock_fd = -1,
		.epoch_ns = now_steady_ns(),
	};
	bool good = open_file(&live, err);

	// Called otherwise since it was found: it is looked for again.
	if (good && id && memcmp(reader_info(live.asked.reader)->recording_id, id, 16) != 0) {
		close_file(&live);
		return true;
	}
	if (good) {
		good = send_trace(&live, err);
		parts_next_id(reader_info(live.asked.reader)->recording_id, next);
	}
	close_file(&live);
	lives_free(live.before);
	map_fini(&live.lived);
	rowset_free(live.rowset);
	mem_free(live.halves);
	push_live_send_fini(&live);
	return good;
}

// A part that cannot be found any more ends the loop without an error: then the recording is over,
// or the rest was deleted. MISSED_MAX bounds how often in a row a part is renamed between being
// found and being opened.
bool push_live_run(struct shards *shards, const struct push_live_options *options,
		   struct push_result *result, struct err *err)
{
	struct push_live_options of_part = *options;
	struct str path = { 0 };
	uint8_t next[16], id[16];
	unsigned missed = 0;
	bool good = run(shards, options, NULL, next, result, err);

	ASSERT(options->path && options->stop && options->say);
	while (good && missed < MISSED_MAX && parts_find(options->path, next, &path)) {
		memcpy(id, next, sizeof id);
		of_part.path = str_get(&path);
		good = run(shards, &of_part, id, next, result, err);
		missed = memcmp(id, next, sizeof id) == 0 ? missed + 1 : 0;
	}
	str_fini(&path);
	return good;
}
