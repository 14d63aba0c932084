// An item is a word of flags and what these say that follows, as numbers of as few bytes as they
// need: most are what they are after those of the item before it in the file.
#include "engine/replay/lives_parts.h"

#include "base/mem.h"
#include "engine/index/index_bits.h"
#include "engine/index/spill.h"
#include "trace/effect.h"

enum { BUFFER_BYTES = 1 << 16, VALUES_MAX = 10 };

// The word: a kind of an event, or WORD_NOTE; and whether what an event mostly has in common with
// the one before, or has not at all, follows.
enum {
	WORD_KIND = 0x1f,
	WORD_NOTE = 0x1f, // no kind that does something to blocks
	WORD_WHO = 1 << 5,
	WORD_TIME = 1 << 6,
	WORD_OLD = 1 << 7,
	WORD_SIZE = 1 << 8,
};

// What the last item of a file was; of a file that is read, the same.
struct part {
	struct spill spill;
	struct lives_parts_item last;
	bool reading, over;
};

struct lives_parts {
	struct part *parts;
	uint32_t count, shares;
	uint64_t next_number;
	struct err err; // of the first file that failed
	bool failed;
};

// All files are open at one time, as events come for any of them: 200 at most (lives_find_shares).
struct lives_parts *lives_parts_new(uint32_t count, uint32_t shares, struct err *err)
{
	struct lives_parts *parts = mem_alloc(1, sizeof *parts);

	ASSERT(count <= shares && shares > 1);
	parts->count = count;
	parts->shares = shares;
	parts->parts = mem_alloc(count, sizeof *parts->parts);
	for (uint32_t i = 0; i < count; i++)
		if (!spill_open_anywhere(&parts->parts[i].spill, BUFFER_BYTES, err)) {
			lives_parts_free(parts);
			return NULL;
		}
	return parts;
}

void lives_parts_free(struct lives_parts *parts)
{
	if (!parts)
		return;
	for (uint32_t i = 0; i < parts->count; i++)
		spill_close(&parts->parts[i].spill);
	MEM_FREE(parts->parts, parts);
}

// ---- to files ----

static uint64_t signed_change(uint64_t value, uint64_t before)
{
	return bits_zigzag(value - before);
}

// Values come in the order in which next_event takes them; those that the word says are left out.
static void put(struct part *part, uint64_t item, const struct trace_event *event)
{
	const struct trace_event *last = &part->last.event;
	bool who = event->thread != last->thread || event->heap != last->heap;
	uint64_t values[VALUES_MAX] = { event->kind };
	uint8_t bytes[VALUES_MAX * 10];
	size_t count = 1, size = 0;

	ASSERT(event->kind < WORD_NOTE && !part->reading);
	values[count++] = item - part->last.item;
	values[count++] = signed_change(event->number, last->number);
	values[count++] = signed_change(event->address, last->address);
	values[count++] = event->stack;
	if (who) {
		values[0] |= WORD_WHO;
		values[count++] = event->thread;
		values[count++] = event->heap;
	}
	if (event->time_ns != last->time_ns) {
		values[0] |= WORD_TIME;
		values[count++] = event->time_ns - last->time_ns;
	}
	if (event->old_address) {
		values[0] |= WORD_OLD;
		values[count++] = event->old_address;
	}
	if (event->size) {
		values[0] |= WORD_SIZE;
		values[count++] = event->size;
	}
	for (size_t i = 0; i < count; i++)
		size += bits_put_varint(bytes + size, values[i]);
	spill_put(&part->spill, bytes, size);
	part->last.item = item;
	part->last.event = *event;
}

// NULL: of a share without a file.
static struct part *part_of(const struct lives_parts *parts, uint64_t address)
{
	uint32_t share = lives_share_of(address, parts->shares);

	return share < parts->count ? &parts->parts[share] : NULL;
}

// To the files of both blocks, or of all.
void lives_parts_add_event(struct lives_parts *parts, uint64_t item,
			   const struct trace_event *event)
{
	unsigned effect = effect_of(event->kind);
	struct part *ended = effect & EFFECT_ENDS ? part_of(parts, effect_ended(event)) : NULL;
	struct part *begun = effect & EFFECT_BEGINS ? part_of(parts, event->address) : NULL;

	parts->next_number = event->number + 1;
	if (ended)
		put(ended, item, event);
	if (begun && begun != ended)
		put(begun, item, event);
	for (uint32_t i = 0; effect & EFFECT_DESTROYS && i < parts->count; i++)
		put(&parts->parts[i], item, event);
}

// It ends blocks of all shares.
void lives_parts_add_note(struct lives_parts *parts, uint64_t item, uint64_t next_number,
			  const struct trace_note *note)
{
	parts->next_number = next_number;
	if (note->kind != TRACE_NOTE_PROCESS_END)
		return;
	for (uint32_t i = 0; i < parts->count; i++) {
		struct part *part = &parts->parts[i];
		const uint64_t values[] = { WORD_NOTE, item - part->last.item, parts->next_number,
					    note->process, note->time_ns };

		for (size_t k = 0; k < sizeof values / sizeof *values; k++)
			spill_put_varint(&part->spill, values[k]);
		part->last.item = item;
	}
}

// ---- from files ----

// 0 where the file ends in the middle of an item: the next one says so.
static uint64_t next_value(struct part *part)
{
	uint64_t value;

	spill_get_varint(&part->spill, &value);
	return value;
}

// Of a note only what ends a process's blocks is in the file.
static void next_note(struct part *part)
{
	struct lives_parts_item *item = &part->last;

	item->event.number = next_value(part);
	item->note = (struct trace_note){
		.kind = TRACE_NOTE_PROCESS_END,
		.process = (process_id)next_value(part),
		.thread = TRACE_NONE,
		.time_ns = next_value(part),
		.text = "",
	};
}

// What the word does not name is as in the event before, or 0.
static void next_event(struct part *part, uint64_t word)
{
	struct trace_event *event = &part->last.event;

	event->kind = word & WORD_KIND;
	event->number += bits_unzigzag(next_value(part));
	event->address += bits_unzigzag(next_value(part));
	event->stack = (stack_id)next_value(part);
	if (word & WORD_WHO) {
		event->thread = (thread_id)next_value(part);
		event->heap = (heap_id)next_value(part);
	}
	if (word & WORD_TIME)
		event->time_ns += next_value(part);
	event->old_address = word & WORD_OLD ? next_value(part) : 0;
	event->size = word & WORD_SIZE ? next_value(part) : 0;
}

// A note leaves the number before the next event as it was.
bool lives_parts_next(struct lives_parts *parts, uint32_t share, struct lives_parts_item *item)
{
	struct part *part = &parts->parts[share];
	uint64_t word, number;

	ASSERT(share < parts->count);
	if (!part->reading) {
		spill_turn(&part->spill);
		part->last = (struct lives_parts_item){ 0 };
		part->reading = true;
	}
	if (!spill_get_varint(&part->spill, &word)) {
		parts->failed = parts->failed || !spill_ok(&part->spill, &parts->err);
		return false;
	}
	part->last.item += next_value(part);
	part->last.is_note = (word & WORD_KIND) == WORD_NOTE;
	number = part->last.event.number;
	if (part->last.is_note)
		next_note(part);
	else
		next_event(part, word);
	*item = part->last;
	if (part->last.is_note)
		part->last.event.number = number;
	return true;
}

// On disk it is gone with its descriptor, so that not all of the trace is there to the end.
void lives_parts_drop(struct lives_parts *parts, uint32_t share)
{
	ASSERT(share < parts->count);
	spill_close(&parts->parts[share].spill);
}

// The first file that failed says why.
bool lives_parts_ok(const struct lives_parts *parts, struct err *err)
{
	if (parts->failed)
		*err = parts->err;
	return !parts->failed;
}

// Only the end of a process looks at what comes next.
void lives_parts_give(const struct lives_parts_item *item, struct lives *lives)
{
	if (!item->is_note) {
		lives_add_settled(lives, &item->event);
		return;
	}
	lives_at(lives, item->event.number);
	lives_add_note(lives, &item->note);
}

void lives_parts_read(struct lives_parts *parts, uint32_t share, struct lives *lives)
{
	struct lives_parts_item item;

	while (lives_parts_next(parts, share, &item))
		lives_parts_give(&item, lives);
	lives_at(lives, parts->next_number);
	lives_parts_drop(parts, share);
}
