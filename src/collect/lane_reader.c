// For example, a loop calls malloc(24) and free, and always gets 0x5010. Its two records are
//
//     01 01 18      type 1 (malloc), 0 bytes of address (the difference to the last one is 0),
//                   1 byte of size: 24
//     04 00         type 4 (free), 0 bytes of address: the same
//
// Five bytes a turn, without a stack, since the lane's is unchanged. Once some have been decoded
// the bytes that follow are compared with the last five, and what is equal is one item: an echo of
// so many turns.
#include "collect/lane_reader.h"

#include "base/mem.h"
#include "collect/lane_reader_own.h"
#include "collect/language.h"
#include "wire/varint.h"

#include <string.h>

// An echo is looked for behind batches that are not short, and told where it saves something.
enum { ECHO_ITEMS_MIN = 16, ECHO_TIMES_MIN = 4 };

// How much is taken apart before stacks are looked up: enough for the waits to overlap, and little
// enough for all of it to stay in the nearest cache.
enum { BATCH_ITEMS = 128 };

// What was taken apart and waits for its stacks.
struct batch {
	size_t items;
	struct lane_reader_edits edits;
	const uint8_t *last[2]; // where the last two records begin, the later one first
};

// A ring has to be larger than any record, with what is read behind its end by loads of fixed size.
void lane_reader_init(struct lane_reader *reader, const uint8_t *ring, uint32_t ring_bytes,
		      struct frame_map *frames, struct lane_path_scratch *scratch, bool free_stacks)
{
	memset(reader, 0, sizeof *reader);
	ASSERT(ring_bytes > LANE_EVENT_BYTES_MAX + 4 * EDIT_CACHE_PUSHES &&
	       (ring_bytes & (ring_bytes - 1)) == 0);
	reader->ring = ring;
	reader->mask = ring_bytes - 1;
	reader->frames = frames;
	reader->scratch = scratch;
	reader->free_stacks = free_stacks;
}

void lane_reader_fini(struct lane_reader *reader)
{
	MEM_FREE(reader->heaps, reader->lists);
	lane_path_fini(&reader->path);
	mem_free(reader->calls);
	memset(reader, 0, sizeof *reader);
}

// ---- Stacks ---------------------------------------------------------------------------------

// Look up all stacks of the batch, and put their ids into its items. Returns where the record
// begins from which on that cannot be; NULL: there is none. Its items are taken away.
//
// Until then an item's `stack` is the number of a part, from 1 on; 0 is the stack from before the
// batch.
static const uint8_t *settle_stacks(struct lane_reader *reader, struct batch *batch,
				    struct lane_item *items)
{
	const struct lane_path_scratch *scratch = reader->scratch;
	stack_id stacks[LANE_PARTS_MAX + 1];
	size_t known;

	stacks[0] = 0;
	known = lane_path_settle(&reader->path, reader->scratch, batch->edits.parts, reader->frames,
				 stacks);
	ASSERT(known <= batch->edits.parts);
	for (size_t i = batch->edits.first; i < batch->items; i++) {
		if (unlikely(items[i].stack > known)) {
			batch->items = i;
			return scratch->part[known].record;
		}
		items[i].stack = stacks[items[i].stack];
	}
	if (unlikely(known < batch->edits.parts))
		return scratch->part[known].record;
	reader->stack = stacks[known];
	return NULL;
}

// An edit in a lane.
struct edit {
	const uint8_t *at; // where keep, push and frames are
	uint64_t left;
	struct lane_path_edit *numbered; // if it has a number,
	struct lane_path_whole *whole;   // or a whole stack has; then
	size_t length;                   // what it takes in the lane
};

// False: it cannot be.
//
// Three forms: the edit itself, two bytes with the number of an earlier one, and an edit that gets
// a number now. For the latter two `at` is where the frames really are.
static bool find_edit(struct lane_path *path, const uint8_t *in, uint64_t left, struct edit *edit)
{
	*edit = (struct edit){ .at = in, .left = left };
	if (!(lane_path_load16(in) & (LANE_KEEP_AGAIN | LANE_KEEP_NUMBERED)))
		return true;
	if (lane_path_is_whole(in, left)) {
		edit->whole = lane_path_find_whole(path, in, left, &edit->length);
		if (edit->whole == NULL)
			return false;
		edit->at = (const uint8_t *)edit->whole->edit;
		edit->left = 4 + 4 * (uint64_t)edit->whole->depth;
		return true;
	}
	edit->numbered = lane_path_find_numbered(path, in, left, &edit->length);
	if (edit->numbered == NULL)
		return false;
	edit->at = (const uint8_t *)edit->numbered;
	edit->left = sizeof *edit->numbered;
	return true;
}

// Take the edit apart, the only one of a record that is read by itself, and look it up. Returns its
// length in the lane, or 0.
//
// The scratch is one for all lanes, and empty between batches, so that it can be used in the middle
// of nothing.
static size_t take_one(struct lane_reader *reader, const struct edit *edit)
{
	struct lane_path_scratch *scratch = reader->scratch;
	struct lane_part *next = scratch->part;
	struct batch batch = { 0 };
	size_t length;

	lane_path_part(&reader->path);
	length = lane_path_take(&reader->path, &scratch->edits, reader->frames->tag, &next,
				edit->at, edit->at, edit->left);
	batch.edits.parts = (size_t)(next - scratch->part);
	ASSERT(batch.edits.parts <= LANE_PARTS_MAX);
	if (length == 0 || settle_stacks(reader, &batch, NULL) != NULL)
		return 0;
	if (edit->whole != NULL)
		lane_path_learn_whole(&reader->path, edit->whole);
	else if (edit->numbered != NULL)
		lane_path_learn(&reader->path, edit->numbered);
	else
		return length;
	return edit->length;
}

// The same, for the edit at `in`.
static size_t take_alone(struct lane_reader *reader, const uint8_t *in, uint64_t left)
{
	struct edit edit;

	return find_edit(&reader->path, in, left, &edit) ? take_one(reader, &edit) : 0;
}

// The edit has a number, and nothing waits: it is looked up as a whole, if that can be.
static bool recall_numbered(struct lane_reader *reader, const struct edit *edit, uint32_t *current)
{
	if (lane_path_recall(&reader->path, &reader->scratch->edits, reader->frames->tag, edit->at,
			     NULL, current) == NULL)
		return false;
	lane_path_learn(&reader->path, edit->numbered);
	return true;
}

// With few misses in the batch so far each is looked up at once; with many they wait, and are
// looked up together (lane_path_settle).
const uint8_t *lane_reader_edit(struct lane_reader *reader, struct lane_reader_edits *edits,
				size_t item, const uint8_t *record, const uint8_t *in,
				const uint8_t *end, uint32_t *current)
{
	struct lane_path_scratch *scratch = reader->scratch;
	struct lane_part *next = scratch->part + edits->parts;
	struct edit edit;
	size_t length;

	if (!find_edit(&reader->path, in, (uint64_t)(end - in), &edit))
		return NULL;
	if ((edit.numbered != NULL || edit.whole != NULL) &&
	    !(lane_path_load16(in) & LANE_KEEP_AGAIN))
		edits->numbered = item + 1;
	if (edits->parts == 0 && edit.numbered != NULL && recall_numbered(reader, &edit, current))
		return in + edit.length;
	if (edits->parts == 0 && scratch->misses < scratch->misses_max) {
		length = take_one(reader, &edit);
		*current = reader->stack;
		return length > 0 ? in + length : NULL;
	}
	if (edits->parts == 0) {
		lane_path_adapt(scratch, item);
		lane_path_part(&reader->path);
		edits->first = item;
	}
	length = lane_path_take(&reader->path, &scratch->edits, reader->frames->tag, &next, record,
				edit.at, edit.left);
	edits->parts = (size_t)(next - scratch->part);
	ASSERT(edits->parts <= LANE_PARTS_MAX);
	*current = (uint32_t)edits->parts;
	if (length == 0)
		return NULL;
	return in + (edit.numbered != NULL || edit.whole != NULL ? edit.length : length);
}

// ---- Records --------------------------------------------------------------------------------

// Functions of an interpreted language, as an edit of the list before: `keep` of the outermost
// stay, `push` come on top of them. Numbers are lists in the collector's table, so that equal
// lists are one number.
//
// For example, the list is main, f: "keep 1, push g" makes it main, g. Without a `language` to put
// lists into, the record is only checked.
bool lane_reader_take_frames(struct lane_reader *reader, const uint8_t *in, uint64_t length)
{
	struct language *language = reader->scratch->language;
	uint32_t keep, push, list;

	if (length < 4)
		return false;
	keep = lane_path_load16(in) & (LANE_PYTHON_CUT - 1);
	push = lane_path_load16(in + 2);
	if (keep > reader->lists_count || length < 4 + 4 * (uint64_t)push)
		return false;
	if (language == NULL)
		return true;
	MEM_ROOM(reader->lists, reader->lists_capacity, (size_t)keep + push);
	list = lane_path_load16(in) & LANE_PYTHON_CUT ? LANGUAGE_CUT : 0;
	if (keep > 0)
		list = reader->lists[keep - 1];
	for (uint32_t i = 0; i < push; i++) {
		uint32_t id = lane_reader_load32(in + 4 + 4 * (size_t)i);
		uint32_t number = id & ~LANE_PYTHON_ENTRY;
		frame_id frame = number ? frame_map_get(reader->frames, number) : 0;

		list = language_push(language, list, frame | (id & LANE_PYTHON_ENTRY));
		reader->lists[keep + i] = list;
	}
	reader->lists_count = (size_t)keep + push;
	return true;
}

// The stack with those in it.
static inline stack_id with_frames(const struct lane_reader *reader, stack_id stack)
{
	if (likely(reader->lists_count == 0) || stack == 0)
		return stack;
	return language_merge(reader->scratch->language, stack,
			      reader->lists[reader->lists_count - 1]);
}

// What the payload of a LANE_EXTRA_POOL, `left` bytes at `in`, says. False: it cannot be.
//
// 22 bytes are fixed: what and flags in 2, pool in 4, address and size in 8 each. The slot's owner
// has 8 more, before the address.
static bool decode_pool(struct lane_reader *reader, const uint8_t *in, uint64_t left,
			struct lane_item *item)
{
	uint64_t fixed = 22;
	uint32_t what, flags;

	if (left < fixed)
		return false;
	what = in[0];
	flags = in[1];
	fixed += flags & LANE_POOL_OWNER ? 8 : 0;
	if (left < fixed || what < LANE_POOL_ALLOC || what > LANE_POOL_DESTROY)
		return false;
	*item = (struct lane_item){ .kind = (uint8_t)(LANE_ITEM_POOL + what),
				    .time_ns = reader->time_ns,
				    .pool = lane_reader_load32(in + 2) };
	in += 6;
	if (flags & LANE_POOL_OWNER) {
		item->owner = lane_reader_load64(in);
		in += 8;
	}
	item->address = lane_reader_load64(in);
	item->size = lane_reader_load64(in + 8);
	in += 16;
	if (flags & LANE_POOL_STACK) {
		if (take_alone(reader, in, left - fixed) == 0)
			return false;
	}
	if (what != LANE_POOL_FREE || reader->free_stacks)
		item->stack = with_frames(reader, reader->stack);
	return true;
}

static struct lane_item heap_item(const struct lane_reader *reader, struct lane_reader_heap heap)
{
	return (struct lane_item){ .kind = LANE_ITEM_HEAP,
				   .time_ns = reader->time_ns,
				   .address = heap.handle,
				   .detail = heap.flags };
}

// Numbers of heaps count from 1, in the order of LANE_EXTRA_HEAP records; the recorder counts
// alike.
static void add_heap(struct lane_reader *reader, const struct lane_item *item)
{
	ASSERT(reader->heaps_count < LANE_HEAPS_MAX);
	*MEM_ADD(reader->heaps, reader->heaps_count, reader->heaps_capacity) =
		(struct lane_reader_heap){ item->address, item->detail };
}

// A LANE_EXTRA of `length` bytes behind its own head. `*made` says whether there is an item.
//
// Kinds that are not known are of a newer recorder, and are passed over by their length.
static bool decode_extra(struct lane_reader *reader, const uint8_t *in, uint64_t length,
			 struct lane_item *item, bool *made)
{
	uint32_t kind = lane_path_load16(in + 2);

	if (kind == LANE_EXTRA_POOL) {
		*made = true;
		return decode_pool(reader, in + 6, length, item);
	}
	if ((kind == LANE_EXTRA_HEAP || kind == LANE_EXTRA_HEAP_NEW) && length >= 12) {
		*made = true;
		*item = heap_item(reader, (struct lane_reader_heap){ lane_reader_load64(in + 6),
								     lane_reader_load32(in + 14) });
		if (kind == LANE_EXTRA_HEAP_NEW)
			item->kind = LANE_ITEM_HEAP_NEW;
		else if (reader->heaps_count < LANE_HEAPS_MAX)
			add_heap(reader, item);
	}
	if (kind == LANE_EXTRA_SAMPLE && length >= 1 && in[6] <= LANE_SAMPLE_LOG2_MAX)
		reader->turn = in[6];
	if (kind == LANE_EXTRA_PYTHON)
		return lane_reader_take_frames(reader, in + 6, length);
	if (kind == LANE_EXTRA_NAME && length >= 16) {
		*made = true;
		*item = (struct lane_item){ .kind = LANE_ITEM_NAME, .time_ns = reader->time_ns };
		item->address = lane_reader_load64(in + 6);
		item->size = lane_reader_load64(in + 14);
	}
	return true;
}

// What an event seldom has in front of its address.
//
// `head` says which of them are there: time as 4 bytes more than the last, the slot's new owner as
// 8.
static inline const uint8_t *take_prefix(uint32_t head, const uint8_t *at, struct lane_item *item,
					 uint64_t *time_ns)
{
	if (head & LANE_TIME) {
		*time_ns += lane_reader_load32(at);
		at += 4;
	}
	if (head & LANE_OWNER) {
		item->owner = lane_reader_load64(at);
		at += 8;
	}
	return at;
}

const struct lane_reader_call *lane_reader_vm(const struct lane_reader *reader)
{
	ASSERT(reader->calls_first < reader->calls_end);
	return &reader->calls[reader->calls_first];
}

struct lane_vm lane_reader_take_vm(struct lane_reader *reader)
{
	struct lane_vm call = lane_reader_vm(reader)->body;

	if (++reader->calls_first == reader->calls_end)
		reader->calls_first = reader->calls_end = 0;
	return call;
}

// The second half of a call: its result.
// The last call that is open is the one that ends: a thread makes one system call at a time.
//
// An END without an open call comes after a lane was taken over by another thread; it is dropped.
static void end_call(struct lane_reader *reader, const struct lane_vm *end)
{
	struct lane_reader_call *call;

	ASSERT(reader->calls_first <= reader->calls_end);
	if (reader->calls_first == reader->calls_end)
		return;
	call = &reader->calls[reader->calls_end - 1];
	if (!call->open)
		return;
	call->open = false;
	call->body.error = end->error;
	if (end->error == 0)
		call->body.address = end->address;
}

// The call's END is looked for beyond what was decoded, since the first half must not be delivered
// without its result. It is applied here and passed over later. True: nothing more will be known.
bool lane_reader_complete(struct lane_reader *reader, uint64_t limit)
{
	uint64_t at = reader->at;

	while (limit - at >= 2 && limit - at <= reader->mask + 1) {
		const uint8_t *in = reader->ring + (at & reader->mask);
		uint32_t head = lane_path_load16(in);
		struct lane_item unused;
		uint64_t time_ns = 0;
		struct lane_vm end;

		if ((head & LANE_TYPE_MASK) == LANE_TIME64) {
			at += 10;
			continue;
		}
		memcpy(&end, take_prefix(head, in + 2, &unused, &time_ns), sizeof end);
		// What is there was published as a whole. Anything else: the end will never come.
		if ((head & LANE_TYPE_MASK) == LANE_VM && end.part == LANE_VM_END)
			end_call(reader, &end);
		return true;
	}
	return false;
}

// Returns the record's length, or 0.
static COLD size_t decode_vm(struct lane_reader *reader, const uint8_t *begin, uint64_t left,
			     struct lane_item *item, bool *made)
{
	uint32_t head = lane_path_load16(begin);
	struct lane_item prefix = { .kind = LANE_VM, .address = LANE_VM_ADDRESS };
	uint64_t time_ns = reader->time_ns;
	const uint8_t *at = take_prefix(head, begin + 2, &prefix, &time_ns);
	size_t length = (size_t)(at - begin) + sizeof(struct lane_vm);
	struct lane_reader_call *call;
	struct lane_vm body;

	if (length > left)
		return 0;
	memcpy(&body, at, sizeof body);
	reader->time_ns = time_ns;
	if (body.part == LANE_VM_END) {
		end_call(reader, &body);
		return length;
	}
	*item = prefix;
	item->time_ns = time_ns;
	if (head & LANE_STACK) {
		size_t edit = take_alone(reader, begin + length, left - length);

		if (edit == 0)
			return 0;
		length += edit;
	}
	if (head & LANE_VM_HAS_STACK)
		item->stack = with_frames(reader, reader->stack);
	call = MEM_ADD(reader->calls, reader->calls_end, reader->calls_capacity);
	call->body = body;
	call->open = body.part == LANE_VM_BEGIN;
	*made = true;
	return length;
}

// Records that are not calls on the heap. Returns the record's length, or 0. `*made` says whether
// there is an item.
//
// A length of 0 breaks the lane: what comes after a record of unknown length cannot be found.
static COLD size_t decode_special(struct lane_reader *reader, uint32_t type, const uint8_t *in,
				  uint64_t left, struct lane_item *item, bool *made)
{
	uint64_t time_ns;
	uint32_t number;
	size_t length;

	*made = false;
	switch (type) {
	case LANE_TIME64:
		if (left < 10)
			return 0;
		time_ns = lane_reader_load64(in + 2);
		if (time_ns > reader->time_ns)
			reader->time_ns = time_ns;
		return 10;
	case LANE_THREAD:
		if (left < 22)
			return 0;
		*item = (struct lane_item){ .kind = LANE_ITEM_THREAD, .time_ns = reader->time_ns };
		item->tid = lane_reader_load32(in + 2);
		item->address = lane_reader_load64(in + 6);
		item->size = lane_reader_load64(in + 14);
		*made = true;
		return 22;
	case LANE_HEAP:
		number = lane_path_load16(in) >> LANE_HEAP_SHIFT;
		if (number == 0 || number > reader->heaps_count)
			return 0;
		*item = heap_item(reader, reader->heaps[number - 1]);
		*made = true;
		return 2;
	case LANE_VM:
		return decode_vm(reader, in, left, item, made);
	case LANE_EXTRA:
		if (left < 6)
			return 0;
		length = 6 + (size_t)lane_path_load16(in + 4);
		if (length > left || length > LANE_EVENT_BYTES_MAX ||
		    !decode_extra(reader, in, length - 6, item, made))
			return 0;
		return length;
	default:
		return 0;
	}
}

// Is it the head of a call on memory, with lengths of at most 8 bytes? Looked at all at once: what
// is too large carries into the next field.
//
// For example, head 0x2111 has type 1 and lengths 1 and 1. A length of 8 and 7 more are 15, which
// stays in the field's four bits; a length of 9 makes 16, and is seen in the next field.
static inline bool is_event(uint32_t head)
{
	const uint32_t too_large = (16 - LANE_FAILED) | 7u << LANE_ADDRESS_SHIFT |
				   7u << LANE_SIZE_SHIFT;
	const uint32_t carries = 16u | 16u << LANE_ADDRESS_SHIFT | 16u << LANE_SIZE_SHIFT;
	uint32_t fields = (head & (LANE_TIME - 1)) - 1; // types count from 1

	return (((fields + too_large) ^ fields ^ too_large) & carries) == 0;
}

enum { SELDOM = 1 << LANE_ALIGNED | 1 << LANE_REALLOC_UNDO | 1 << LANE_FAILED };

// What these have that others have not. Returns where the record goes on.
//
// An alignment has one byte after the numbers; a failed call has no address.
static inline const uint8_t *take_seldom(struct lane_reader *reader, uint32_t type,
					 const uint8_t *at, struct lane_item *item)
{
	if (type == LANE_ALIGNED)
		item->align_log2 = *at++ & 63;
	if (type == LANE_FAILED)
		item->address = 0;
	reader->undone |= type == LANE_REALLOC_UNDO;
	return at;
}

// Types whose events have the current stack, as bits. Those with LANE_STACK have one in any case.
//
// Frees have one only if the recording was asked for that (--free-stacks).
static uint32_t types_with_stack(const struct lane_reader *reader)
{
	const uint32_t always = 1u << LANE_MALLOC | 1u << LANE_CALLOC | 1u << LANE_ALIGNED |
				1u << LANE_REALLOC_ALLOC | 1u << LANE_REALLOC_UNDO |
				1u << LANE_FAILED;

	return always | (reader->free_stacks ? 1u << LANE_FREE : 0);
}

// Take calls on memory apart, from `in` up to `end`, until the batch is full or something else
// comes. Returns where it stopped: `in` itself where the first record cannot be.
// The loop that most of the collector's time goes to. Everything of the lane that changes from
// record to record is in a local variable, and stored once at the end.
//
// Ends where the batch is full, at something that is no event, at an edit that cannot be, or where
// parts that wait are as many as there may be. What is at `last[0]` and `last[1]` is for take_echo.
static const uint8_t *take_events(struct lane_reader *reader, const uint8_t *in,
				  const uint8_t *stop, const uint8_t *end, struct batch *batch,
				  struct lane_item *items, size_t max)
{
	const uint32_t with_stack = types_with_stack(reader);
	const uint32_t tag = reader->frames->tag;
	struct lane_path_scratch *scratch = reader->scratch;
	uint64_t time_ns = reader->time_ns, address = reader->address;
	uint32_t current = reader->stack; // an id, and where parts wait the number of one
	struct lane_item *item = items;
	struct lane_item *last = items + (max < BATCH_ITEMS ? max : BATCH_ITEMS);
	const uint8_t *before = in, *before_that = in;

	while (item < last && in < stop) {
		const uint8_t *at = in + 2;
		uint32_t head = lane_path_load16(in);
		uint32_t type = head & LANE_TYPE_MASK;
		uint32_t address_length = head >> LANE_ADDRESS_SHIFT & 15;
		uint32_t size_length = head >> LANE_SIZE_SHIFT & 15;
		bool stacked = with_stack >> type & 1;

		if (unlikely(!is_event(head)))
			break;
		item->owner = 0;
		item->run = 0;
		item->kind = (uint8_t)type;
		item->align_log2 = 0;
		// A ring is mapped twice, so that what a short record does not have can be read.
		if (unlikely(head & (LANE_TIME | LANE_OWNER)))
			at = take_prefix(head, at, item, &time_ns);
		address += (uint64_t)varint_unzigzag(lane_reader_low(at, address_length));
		item->address = address;
		at += address_length;
		item->size = lane_reader_low(at, size_length);
		at += size_length;
		if (unlikely(SELDOM >> type & 1))
			at = take_seldom(reader, type, at, item);
		if (unlikely(at > end))
			break;
		if (head & LANE_STACK) {
			const uint8_t *behind = NULL;

			if (likely(batch->edits.parts == 0)) {
				uint32_t keep = lane_path_load16(at);

				if (!(keep & LANE_KEEP_AGAIN))
					behind = lane_path_recall(&reader->path, &scratch->edits,
								  tag, at, end, &current);
				else if (end - at >= 2 &&
					 lane_path_again(&reader->path, keep, &current))
					behind = at + 2;
			}
			if (unlikely(behind == NULL)) {
				behind = lane_reader_edit(reader, &batch->edits,
							  (size_t)(item - items), in, at, end,
							  &current);
				if (unlikely(behind == NULL))
					break;
				if (unlikely(batch->edits.parts >= LANE_PARTS))
					last = item + 1;
			}
			at = behind;
			stacked = true;
		}
		item->time_ns = time_ns;
		item->stack = stacked ? current : 0;
		item++;
		before_that = before;
		before = in;
		in = at;
	}
	batch->items = (size_t)(item - items);
	batch->last[0] = before;
	batch->last[1] = before_that;
	if (batch->items > 0)
		reader->time_ns = item[-1].time_ns;
	reader->address = address;
	if (batch->edits.parts == 0)
		reader->stack = current;
	return in;
}

// Eight bytes at a time, then one by one. `period` may be less than eight: what is compared has
// been compared before, so that is no matter.
size_t lane_reader_same(const uint8_t *in, const uint8_t *end, size_t period)
{
	const uint8_t *at = in;

	while (end - at >= 8 && lane_reader_load64(at) == lane_reader_load64(at - period))
		at += 8;
	while (at < end && *at == at[-(ptrdiff_t)period])
		at++;
	return (size_t)(at - in);
}

// The batch's last two items again, many times over? Adds an item that says so. Returns where it
// stopped.
//
// Both have to be plain: no time, no owner, no stack of their own. And the second leaves the
// address at what it was before the first, so that the differences in the next turn mean the same.
static const uint8_t *take_echo(const uint8_t *in, const uint8_t *end, struct batch *batch,
				struct lane_item *items)
{
	const struct lane_item *last = &items[batch->items - 1];
	const uint32_t kinds = 1u << LANE_MALLOC | 1u << LANE_CALLOC | 1u << LANE_FREE;
	const uint32_t flags = LANE_TIME | LANE_STACK | LANE_OWNER;
	size_t period = (size_t)(in - batch->last[1]);
	uint64_t times;

	// After both the address has to be what it was before them.
	if (last->address != last[-2].address ||
	    !(kinds >> last->kind & kinds >> last[-1].kind & 1))
		return in;
	if ((lane_path_load16(batch->last[0]) | lane_path_load16(batch->last[1])) & flags)
		return in;
	times = lane_reader_same(in, end, period) / period;
	if (times < ECHO_TIMES_MIN)
		return in;
	items[batch->items++] = (struct lane_item){ .kind = LANE_ITEM_ECHO,
						    .time_ns = last->time_ns,
						    .detail = (uint32_t)times };
	return in + times * period;
}

// Decode one batch. Returns the number of items; breaks the lane where nothing can be decoded.
//
// The order matters: stacks first, as a part that is no stack ends the batch; then the echo; then a
// language's frames; and a sample's mark goes to the first item alone, which is the sampled one.
static size_t decode_batch(struct lane_reader *reader, uint64_t limit, struct lane_item *items,
			   size_t max)
{
	const uint8_t *in = reader->ring + (reader->at & reader->mask);
	const uint8_t *end = in + (limit - reader->at);
	const uint8_t *stop = reader->ring + reader->mask + 1; // no record begins in the copy
	const uint8_t *at;
	struct batch batch;
	size_t length;
	bool made;

	batch.edits.parts = 0;
	reader->scratch->misses = 0;
	at = take_events(reader, in, end < stop ? end : stop, end, &batch, items, max);
	ASSERT(batch.items <= max && at >= in && at <= end);
	if (batch.edits.parts > 0) {
		const uint8_t *bad = settle_stacks(reader, &batch, items);

		if (unlikely(bad != NULL)) {
			reader->broken = true;
			reader->at += (uint64_t)(bad - in);
			return batch.items;
		}
	}
	if (reader->echoes && batch.items >= ECHO_ITEMS_MIN && batch.items < max)
		at = take_echo(at, end < stop ? end : stop, &batch, items);
	reader->at += (uint64_t)(at - in);
	for (size_t i = 0; unlikely(reader->lists_count > 0) && i < batch.items; i++)
		if (items[i].kind != LANE_ITEM_ECHO)
			items[i].stack = with_frames(reader, items[i].stack);
	if (unlikely(reader->turn) && batch.items > 0) {
		items[0].stack =
			interner_sampled(reader->scratch->interner, items[0].stack, reader->turn);
		reader->turn = 0;
	}
	if (batch.items > 0)
		return batch.items;
	length = decode_special(reader, lane_path_load16(in) & LANE_TYPE_MASK, in,
				(uint64_t)(end - in), items, &made);
	if (length == 0)
		reader->broken = true;
	ASSERT(length <= limit - reader->at);
	reader->at += length;
	return length != 0 && made;
}

size_t lane_reader_decode(struct lane_reader *reader, uint64_t limit, struct lane_item *items,
			  size_t max)
{
	size_t count = 0;

	while (!reader->broken && count < max && reader->at != limit)
		count += decode_batch(reader, limit, items + count, max - count);
	return count;
}

// Without decoding: only the record's head and its time are read.
uint64_t lane_reader_time_at(const struct lane_reader *reader, uint64_t at, uint64_t time_ns)
{
	const uint8_t *in = reader->ring + (at & reader->mask);
	uint32_t head = lane_path_load16(in);
	uint32_t type = head & LANE_TYPE_MASK;

	if (type == LANE_TIME64)
		return lane_reader_load64(in + 2) > time_ns ? lane_reader_load64(in + 2) : time_ns;
	if ((type - 1 < LANE_FAILED || type == LANE_VM) && (head & LANE_TIME))
		return time_ns + lane_reader_load32(in + 2);
	return time_ns;
}

bool lane_reader_undoes_next(const struct lane_reader *reader, uint64_t limit)
{
	return !reader->broken && limit - reader->at >= 2 &&
	       (lane_path_load16(reader->ring + (reader->at & reader->mask)) & LANE_TYPE_MASK) ==
		       LANE_REALLOC_UNDO;
}
