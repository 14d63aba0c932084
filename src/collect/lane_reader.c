#include "collect/lane_reader.h"

#include "base/mem.h"
#include "wire/compiler.h"
#include "wire/varint.h"

#include <string.h>

static const uint64_t low_bytes[9] = {
	0,
	0xff,
	0xffff,
	0xffffff,
	0xffffffff,
	0xffffffffff,
	0xffffffffffff,
	0xffffffffffffff,
	0xffffffffffffffff,
};

void lane_reader_init(struct lane_reader *reader, const uint8_t *ring, uint32_t ring_bytes,
		      struct frame_map *frames, struct interner *interner, bool free_stacks)
{
	memset(reader, 0, sizeof *reader);
	ASSERT(ring_bytes > LANE_EVENT_BYTES_MAX && (ring_bytes & (ring_bytes - 1)) == 0);
	reader->ring = ring;
	reader->mask = ring_bytes - 1;
	reader->frames = frames;
	reader->interner = interner;
	reader->free_stacks = free_stacks;
}

void lane_reader_fini(struct lane_reader *reader)
{
	mem_free(reader->path);
	memset(reader, 0, sizeof *reader);
}

// The guest may write while we read: what is checked must be what is used. So values that a check
// depends on are loaded once.
static inline uint16_t load16(const uint8_t *in)
{
	uint16_t value;

	memcpy(&value, in, sizeof value);
	__asm__("" : "+r"(value));
	return value;
}

static inline uint32_t load32(const uint8_t *in)
{
	uint32_t value;

	memcpy(&value, in, sizeof value);
	return value;
}

static inline uint64_t load64(const uint8_t *in)
{
	uint64_t value;

	memcpy(&value, in, sizeof value);
	return value;
}

static COLD void grow_path(struct lane_reader *reader, uint32_t depth)
{
	reader->path = mem_grow(reader->path, &reader->path_capacity, depth, sizeof *reader->path);
}

// The outermost end is another one now: number the kept frames anew.
static COLD void renumber(struct lane_reader *reader, uint32_t keep, uint8_t flags)
{
	stack_id parent = 0;

	for (uint32_t i = 0; i < keep; i++) {
		frame_id frame = interner_frame(reader->interner, reader->path[i]);

		parent = interner_push(reader->interner, parent, frame, flags);
		reader->path[i] = parent;
	}
}

// Apply the edit at `in`, with `left` bytes up to the limit. Returns its length, or 0.
static size_t apply_edit(struct lane_reader *reader, const uint8_t *in, uint64_t left)
{
	uint32_t keep, push, depth;
	uint8_t flags = 0;
	stack_id parent;
	size_t length;

	if (left < 4)
		return 0;
	keep = load16(in);
	push = load16(in + 2);
	if (unlikely(push & LANE_PUSH_CUT))
		flags |= TRACE_STACK_CUT;
	if (unlikely(push & LANE_PUSH_INCOMPLETE))
		flags |= TRACE_STACK_INCOMPLETE;
	push &= LANE_PUSH_MASK;
	length = 4 + 4 * (size_t)push;
	depth = keep + push;
	if (unlikely(length > left || keep > reader->depth || depth > LANE_DEPTH_MAX))
		return 0;
	if (unlikely(depth > reader->path_capacity))
		grow_path(reader, depth);
	if (unlikely(flags != reader->stack_flags))
		renumber(reader, keep, flags);
	parent = keep > 0 ? reader->path[keep - 1] : 0;
	in += 4;
	for (uint32_t i = keep; i < depth; i++, in += 4) {
		frame_id frame = frame_map_get(reader->frames, load32(in));

		if (unlikely(frame == 0))
			return 0;
		parent = interner_push(reader->interner, parent, frame, flags);
		reader->path[i] = parent;
	}
	reader->depth = depth;
	reader->stack_flags = flags;
	return length;
}

// What the payload of a LANE_EXTRA_POOL, `left` bytes at `in`, says. False: it cannot be.
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
				    .pool = load32(in + 2) };
	in += 6;
	if (flags & LANE_POOL_OWNER) {
		item->owner = load64(in);
		in += 8;
	}
	item->address = load64(in);
	item->size = load64(in + 8);
	in += 16;
	if ((flags & LANE_POOL_STACK) && apply_edit(reader, in, left - fixed) == 0)
		return false;
	if ((what != LANE_POOL_FREE || reader->free_stacks) && reader->depth > 0)
		item->stack = reader->path[reader->depth - 1];
	return true;
}

// A LANE_EXTRA of `length` bytes behind its own head. `*made` says whether there is an item.
static bool decode_extra(struct lane_reader *reader, const uint8_t *in, uint64_t length,
			 struct lane_item *item, bool *made)
{
	uint32_t kind = load16(in + 2);

	if (kind == LANE_EXTRA_POOL) {
		*made = true;
		return decode_pool(reader, in + 6, length, item);
	}
	if (kind == LANE_EXTRA_NAME && length >= 16) {
		*made = true;
		*item = (struct lane_item){ .kind = LANE_ITEM_NAME, .time_ns = reader->time_ns };
		item->address = load64(in + 6);
		item->size = load64(in + 14);
	}
	return true;
}

// Records that are not calls on memory. Returns the record's length, or 0. `*made` says whether
// there is an item.
static COLD size_t decode_special(struct lane_reader *reader, uint32_t type, const uint8_t *in,
				  uint64_t left, struct lane_item *item, bool *made)
{
	uint64_t time_ns;
	size_t length;

	*made = false;
	switch (type) {
	case LANE_TIME64:
		if (left < 10)
			return 0;
		time_ns = load64(in + 2);
		if (time_ns > reader->time_ns)
			reader->time_ns = time_ns;
		return 10;
	case LANE_THREAD:
		if (left < 22)
			return 0;
		*item = (struct lane_item){ .kind = LANE_ITEM_THREAD, .time_ns = reader->time_ns };
		item->tid = load32(in + 2);
		item->address = load64(in + 6);
		item->size = load64(in + 14);
		*made = true;
		return 22;
	case LANE_EXTRA:
		if (left < 6)
			return 0;
		length = 6 + (size_t)load16(in + 4);
		if (length > left || length > LANE_EVENT_BYTES_MAX ||
		    !decode_extra(reader, in, length - 6, item, made))
			return 0;
		return length;
	default:
		return 0;
	}
}

static inline bool has_stack(const struct lane_reader *reader, uint32_t type, uint32_t head)
{
	const uint32_t always = 1u << LANE_MALLOC | 1u << LANE_CALLOC | 1u << LANE_ALIGNED |
				1u << LANE_REALLOC_ALLOC | 1u << LANE_REALLOC_UNDO |
				1u << LANE_FAILED;

	return (always >> type & 1) || (head & LANE_STACK) ||
	       (type == LANE_FREE && reader->free_stacks);
}

// One call on memory. Returns the record's length, or 0.
static inline size_t decode_event(struct lane_reader *reader, uint32_t head, const uint8_t *begin,
				  uint64_t left, struct lane_item *item)
{
	uint32_t type = head & LANE_TYPE_MASK;
	uint32_t address_length = head >> LANE_ADDRESS_SHIFT & 15;
	uint32_t size_length = head >> LANE_SIZE_SHIFT & 15;
	const uint8_t *in = begin + 2;
	size_t length;

	if (unlikely(address_length > 8 || size_length > 8))
		return 0;
	// A ring is mapped twice, so that what a short record does not have can still be read.
	item->owner = 0;
	item->align_log2 = 0;
	item->run = 0;
	item->kind = (uint8_t)type;
	if (unlikely(head & LANE_TIME)) {
		reader->time_ns += load32(in);
		in += 4;
	}
	if (unlikely(head & LANE_OWNER)) {
		item->owner = load64(in);
		in += 8;
	}
	if (unlikely(head & LANE_MARK))
		in += 8;
	if (likely(type != LANE_FAILED)) {
		uint64_t delta = load64(in) & low_bytes[address_length];

		reader->address += (uint64_t)varint_unzigzag(delta);
		item->address = reader->address;
	} else {
		item->address = 0;
	}
	in += address_length;
	item->size = load64(in) & low_bytes[size_length];
	in += size_length;
	if (unlikely(type == LANE_ALIGNED))
		item->align_log2 = *in++ & 63;
	length = (size_t)(in - begin);
	if (unlikely(length > left))
		return 0;
	if (head & LANE_STACK) {
		size_t edit = apply_edit(reader, in, left - length);

		if (unlikely(edit == 0))
			return 0;
		length += edit;
	}
	item->time_ns = reader->time_ns;
	item->stack = 0;
	if (has_stack(reader, type, head) && reader->depth > 0)
		item->stack = reader->path[reader->depth - 1];
	return length;
}

size_t lane_reader_decode(struct lane_reader *reader, uint64_t limit, struct lane_item *items,
			  size_t max)
{
	size_t count = 0;

	if (reader->broken)
		return 0;
	while (count < max && reader->at != limit) {
		const uint8_t *in = reader->ring + (reader->at & reader->mask);
		uint64_t left = limit - reader->at;
		uint32_t head = left >= 2 ? load16(in) : 0;
		uint32_t type = head & LANE_TYPE_MASK;
		bool made = true;
		size_t length;

		if (likely(type - 1 < LANE_FAILED))
			length = decode_event(reader, head, in, left, &items[count]);
		else
			length = decode_special(reader, type, in, left, &items[count], &made);
		if (unlikely(length == 0)) {
			reader->broken = true;
			break;
		}
		reader->at += length;
		count += made;
	}
	return count;
}
