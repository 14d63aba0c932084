// What wire/lane_event.h says about a lane's bytes.
#include "test/test.h"
#include "test/unit/lane_fixture.h"

#include <stdlib.h>

TEST(lane_reader_reads_back_every_kind_of_event)
{
	static const uint64_t values[] = { 0, 1, 255, 256, 0xffffff, 0x7fff12345678, UINT64_MAX };
	enum { VALUES = sizeof values / sizeof *values };
	struct lane_item items[256];
	struct fixture fixture;
	size_t count = 0, at = 0;

	begin(&fixture, false);
	for (uint32_t type = LANE_MALLOC; type <= LANE_FAILED; type++)
		for (size_t i = 0; i < VALUES; i++, count++)
			fake_write(&fixture.lane, &(struct fake_event){
							  .type = type,
							  .address = values[VALUES - 1 - i],
							  .size = values[i],
							  .align_log2 = 12,
							  .time_ns = 1000 * count,
							  .owner = i == 3 ? 77 : 0,
						  });
	CHECK_EQ(count, decode(&fixture, items, 256));
	CHECK(!fixture.reader.broken);
	for (uint32_t type = LANE_MALLOC; type <= LANE_FAILED; type++)
		for (size_t i = 0; i < VALUES; i++, at++) {
			bool sized = type != LANE_FREE && type != LANE_REALLOC_FREE;

			CHECK_EQ(type, items[at].kind);
			CHECK_EQ(type == LANE_FAILED ? 0 : values[VALUES - 1 - i],
				 items[at].address);
			CHECK_EQ(sized ? values[i] : 0, items[at].size);
			CHECK_EQ(type == LANE_ALIGNED ? 12 : 0, items[at].align_log2);
			CHECK_EQ(1000 * at, items[at].time_ns);
			CHECK_EQ(i == 3 ? 77 : 0, items[at].owner);
		}
	end(&fixture);
}

TEST(lane_reader_stops_at_the_room_it_is_given_and_goes_on_there)
{
	struct lane_item items[10];
	struct fixture fixture;

	begin(&fixture, false);
	for (uint64_t i = 0; i < 25; i++)
		fake_write(&fixture.lane, &(struct fake_event){ .type = LANE_FREE, .address = i });
	CHECK_EQ(10, decode(&fixture, items, 10));
	CHECK_EQ(10, decode(&fixture, items, 10));
	CHECK_EQ(10, items[0].address);
	CHECK_EQ(5, decode(&fixture, items, 10));
	CHECK_EQ(24, items[4].address);
	CHECK_EQ(0, decode(&fixture, items, 10));
	end(&fixture);
}

// The stack of the guest's frame `id`, called from the two outermost frames of `first` below.
static stack_id callee(struct fixture *fixture, stack_id parent, uint32_t id)
{
	uint64_t hash = interner_root(0);
	struct interner_push push = { .frame = frame_map_get(&fixture->frames, id) };

	hash = interner_hash(hash, frame_map_get(&fixture->frames, 1));
	hash = interner_hash(hash, frame_map_get(&fixture->frames, 2));
	push.hash = (uint32_t)(interner_hash(hash, push.frame) >> 32);
	return interner_add(&fixture->interner, parent, &push, 0);
}

TEST(lane_reader_keeps_the_current_stack_until_it_is_edited)
{
	static const uint32_t first[] = { 1, 2, 3 }, second[] = { 4 };
	struct lane_item items[8];
	struct fixture fixture;
	struct fake_event event = { .type = LANE_MALLOC, .edit = true, .push = 3, .frames = first };

	begin(&fixture, false);
	fake_write(&fixture.lane, &event);
	event.edit = false;
	fake_write(&fixture.lane, &event);
	event = (struct fake_event){
		.type = LANE_MALLOC, .edit = true, .keep = 2, .push = 1, .frames = second
	};
	fake_write(&fixture.lane, &event);
	event = (struct fake_event){ .type = LANE_MALLOC, .edit = true, .keep = 2 };
	fake_write(&fixture.lane, &event);
	fake_write(&fixture.lane, &(struct fake_event){ .type = LANE_FREE });
	event = (struct fake_event){ .type = LANE_MALLOC, .edit = true };
	fake_write(&fixture.lane, &event);
	CHECK_EQ(6, decode(&fixture, items, 8));
	CHECK(items[0].stack != 0);
	CHECK_EQ(items[0].stack, items[1].stack);
	CHECK(items[2].stack != items[0].stack);
	CHECK_EQ(items[0].stack, callee(&fixture, items[3].stack, 3));
	CHECK_EQ(items[2].stack, callee(&fixture, items[3].stack, 4));
	CHECK_EQ(0, items[4].stack);
	CHECK_EQ(0, items[5].stack);
	end(&fixture);
}

enum { WANDERED = 1500 };

// A stack as the guest has it.
struct guest_stack {
	uint32_t depth, flags;
	uint32_t frames[32];
};

static struct guest_stack wandered[WANDERED];

// A change of the stack as the guest makes it.
struct guest_edit {
	uint32_t keep, push, flags;
	uint32_t frames[32];
};

// Numbers that are given: of edits, and of a few whole stacks.
enum { NUMBERS = LANE_EDITS + 8 };

// One that has a number already, if it can be now. False: then nothing was done.
static bool choose_numbered(struct fake_event *event, struct guest_edit *edit,
			    const struct guest_edit *numbered, uint32_t depth)
{
	uint32_t number = (uint32_t)random() % NUMBERS;

	if (numbered[number].push == 0 || numbered[number].keep > depth)
		return false;
	*edit = numbered[number];
	event->again = true;
	event->number = number;
	return true;
}

// Any, which may get a number.
static void choose_any(struct fake_event *event, struct guest_edit *edit,
		       struct guest_edit *numbered, uint32_t depth)
{
	edit->keep = depth > 0 ? (uint32_t)random() % (depth + 1) : 0;
	edit->push = (uint32_t)random() % (random() % 8 == 0 ? 12 : 5);
	if (random() % 50 == 0)
		edit->flags ^= LANE_PUSH_CUT;
	if (edit->keep + edit->push > 32)
		edit->push = 0;
	for (uint32_t i = 0; i < edit->push; i++)
		edit->frames[i] = 1 + (uint32_t)random() % 2 + 2 * (edit->keep + i) % 40;
	event->keep = edit->keep;
	event->push = edit->push;
	event->push_flags = edit->flags;
	event->frames = edit->frames;
	if (edit->push > 0 && random() % 4 == 0) {
		event->number = (uint32_t)random() % NUMBERS;
		event->numbered = event->number < LANE_EDITS ? edit->push <= LANE_EDIT_FRAMES
							     : edit->keep == 0;
	}
	if (event->numbered) {
		numbered[event->number] = *edit;
	}
}

// Go back and forth between few stacks, with changes short and long, and stacks with a flag. Some
// changes get numbers, and come again by these. Returns the number of events.
static size_t wander(struct fake_lane *lane)
{
	static struct guest_edit numbered[NUMBERS];
	struct guest_edit edit = { 0 };
	struct guest_stack now = { 0 };
	size_t count = 0;

	memset(numbered, 0, sizeof numbered);
	srandom(5);
	for (; count < WANDERED; count++) {
		struct fake_event event = { .type = LANE_MALLOC, .edit = true };

		if (random() % 2 || !choose_numbered(&event, &edit, numbered, now.depth))
			choose_any(&event, &edit, numbered, now.depth);
		fake_write(lane, &event);
		now = (struct guest_stack){ .depth = edit.keep + edit.push, .flags = edit.flags };
		if (edit.keep > 0)
			memcpy(now.frames, wandered[count - 1].frames,
			       edit.keep * sizeof *now.frames);
		memcpy(now.frames + edit.keep, edit.frames, edit.push * sizeof *now.frames);
		wandered[count] = now;
	}
	return count;
}

TEST(two_stacks_have_one_number_if_they_are_the_same_and_only_then)
{
	static struct lane_item items[2048];
	struct fixture fixture;

	begin(&fixture, false);
	wander(&fixture.lane);
	CHECK_EQ(WANDERED, decode(&fixture, items, 2048));
	for (size_t i = 0; i < WANDERED; i++) {
		CHECK_EQ(wandered[i].depth == 0, items[i].stack == 0);
		for (size_t j = 0; j < i; j++) {
			bool same = memcmp(&wandered[i], &wandered[j], sizeof *wandered) == 0;

			// What has no frames has no flags either.
			if (wandered[i].depth + wandered[j].depth > 0)
				CHECK_EQ(same, items[i].stack == items[j].stack);
		}
	}
	end(&fixture);
}

TEST(a_lane_breaks_at_a_frame_that_does_not_exist_and_not_before)
{
	static const uint32_t good[] = { 1, 2 }, bad[] = { 1, FRAMES, 3 };

	// Behind edits that are looked up one by one, and behind such as wait.
	for (uint32_t before = 1; before < 100; before += 33) {
		struct lane_item items[128];
		struct fixture fixture;
		uint64_t at;

		begin(&fixture, false);
		for (uint32_t i = 0; i < before; i++) {
			const uint32_t strange[] = { 1 + i % 50, 2 + i / 50 };

			fake_write(&fixture.lane, &(struct fake_event){ .type = LANE_MALLOC,
									.edit = true,
									.push = 2,
									.frames = strange });
		}
		fake_write(&fixture.lane, &(struct fake_event){ .type = LANE_FREE });
		at = fixture.lane.head;
		fake_write(&fixture.lane,
			   &(struct fake_event){
				   .type = LANE_MALLOC, .edit = true, .push = 3, .frames = bad });
		fake_write(&fixture.lane,
			   &(struct fake_event){
				   .type = LANE_MALLOC, .edit = true, .push = 2, .frames = good });
		CHECK_EQ(before + 1, decode(&fixture, items, 128));
		CHECK_EQ(0, decode(&fixture, items, 128));
		CHECK(fixture.reader.broken);
		CHECK_EQ(at, fixture.reader.at);
		CHECK(items[before - 1].stack != 0);
		end(&fixture);
	}
}

TEST(a_stack_is_the_same_whether_its_change_was_seen_before_or_not)
{
	static struct lane_item known[2048], unknown[2048];
	struct fixture fixture;
	size_t count;

	begin(&fixture, false);
	fixture.frames.tag = 0;
	count = wander(&fixture.lane);
	CHECK_EQ(count, decode(&fixture, unknown, 2048));
	end(&fixture);
	for (size_t step = 1; step < 200; step += 13) {
		size_t done = 0;

		begin(&fixture, false);
		wander(&fixture.lane);
		while (done < count)
			done += decode(&fixture, known + done, step);
		for (size_t i = 0; i < count; i++)
			CHECK_EQ(unknown[i].stack, known[i].stack);
		CHECK(!fixture.reader.broken);
		end(&fixture);
	}
}

TEST(images_whose_frames_have_the_same_numbers_do_not_share_stacks)
{
	static const uint32_t first[] = { 1, 2 };
	const struct fake_event event = {
		.type = LANE_MALLOC, .edit = true, .push = 2, .frames = first
	};
	struct lane_item items[64];
	struct fixture fixture;
	struct frame_map other;

	begin(&fixture, false);
	for (int i = 0; i < 20; i++)
		fake_write(&fixture.lane, &event);
	CHECK_EQ(10, decode(&fixture, items, 10));
	CHECK_EQ(items[0].stack, items[9].stack);
	frame_map_init(&other, fixture.writer, &segment, frames);
	other.tag = edit_cache_tag(&fixture.scratch->edits);
	fixture.reader.frames = &other;
	CHECK_EQ(10, decode(&fixture, items + 10, 10));
	CHECK(items[9].stack != items[10].stack);
	CHECK_EQ(items[10].stack, items[19].stack);
	frame_map_fini(&other);
	end(&fixture);
}

TEST(lane_reader_gives_frees_a_stack_only_where_they_have_one)
{
	static const uint32_t first[] = { 1 };
	struct lane_item items[2];

	for (int free_stacks = 0; free_stacks < 2; free_stacks++) {
		struct fixture fixture;

		begin(&fixture, free_stacks);
		fake_write(&fixture.lane,
			   &(struct fake_event){
				   .type = LANE_MALLOC, .edit = true, .push = 1, .frames = first });
		fake_write(&fixture.lane, &(struct fake_event){ .type = LANE_FREE });
		CHECK_EQ(2, decode(&fixture, items, 2));
		CHECK_EQ(free_stacks ? items[0].stack : 0, items[1].stack);
		end(&fixture);
	}
}

TEST(lane_reader_marks_cut_stacks_to_the_root)
{
	static const uint32_t first[] = { 1, 2 };
	struct lane_item items[3];
	struct fixture fixture;

	begin(&fixture, false);
	fake_write(&fixture.lane,
		   &(struct fake_event){
			   .type = LANE_MALLOC, .edit = true, .push = 2, .frames = first });
	fake_write(&fixture.lane, &(struct fake_event){ .type = LANE_MALLOC,
							.edit = true,
							.keep = 2,
							.push_flags = LANE_PUSH_CUT });
	fake_write(&fixture.lane,
		   &(struct fake_event){
			   .type = LANE_MALLOC, .edit = true, .push = 2, .frames = first });
	CHECK_EQ(3, decode(&fixture, items, 3));
	CHECK(items[0].stack != items[1].stack);
	CHECK_EQ(items[0].stack, items[2].stack);
	end(&fixture);
}

TEST(lane_reader_follows_times_threads_and_what_it_does_not_know)
{
	struct lane_item items[4];
	struct fixture fixture;

	begin(&fixture, false);
	fake_begin(&fixture.lane, 64);
	fake_put(&fixture.lane, LANE_TIME64, 2);
	fake_put(&fixture.lane, 123456789012, 8);
	fake_end(&fixture.lane);
	fake_begin(&fixture.lane, 64);
	fake_put(&fixture.lane, LANE_EXTRA, 2);
	fake_put(&fixture.lane, 99, 2);
	fake_put(&fixture.lane, 5, 2);
	fake_put(&fixture.lane, 0xdeadbeef, 5);
	fake_end(&fixture.lane);
	fake_thread(&fixture.lane, 4711, "worker");
	fixture.lane.time_ns = 123456789012;
	fake_write(&fixture.lane, &(struct fake_event){ .type = LANE_FREE,
							.address = 16,
							.time_ns = 123456789112 });
	CHECK_EQ(2, decode(&fixture, items, 4));
	CHECK_EQ(LANE_ITEM_THREAD, items[0].kind);
	CHECK_EQ(4711, items[0].tid);
	CHECK_BYTES("worker\0", &items[0].address, 7);
	CHECK_EQ(123456789112, items[1].time_ns);
	end(&fixture);
}

static void put_sample(struct fake_lane *lane, uint8_t turn)
{
	fake_begin(lane, 64);
	fake_put(lane, LANE_EXTRA, 2);
	fake_put(lane, LANE_EXTRA_SAMPLE, 2);
	fake_put(lane, 1, 2);
	fake_put(lane, turn, 1);
	fake_end(lane);
}

TEST(a_sample_has_a_stack_of_its_own_that_says_its_distance_and_no_other_event_has)
{
	static const uint32_t first[] = { 1, 2, 3 };
	struct fake_event event = { .type = LANE_MALLOC, .edit = true, .push = 3, .frames = first };
	struct lane_item items[8];
	struct fixture fixture;
	struct interner_row row;

	begin(&fixture, false);
	fake_write(&fixture.lane, &event);
	put_sample(&fixture.lane, 16);
	event.edit = false;
	fake_write(&fixture.lane, &event);
	fake_write(&fixture.lane, &event);
	put_sample(&fixture.lane, 16);
	fake_write(&fixture.lane, &event);
	CHECK_EQ(4, decode(&fixture, items, 8));
	CHECK_EQ(items[0].stack, items[2].stack);
	CHECK_EQ(items[1].stack, items[3].stack);
	CHECK(items[0].stack != items[1].stack);
	for (stack_id a = items[0].stack, b = items[1].stack; a != 0 || b != 0;) {
		row = interner_get(&fixture.interner, a);
		a = row.parent;
		CHECK_EQ(0, row.flags);
		CHECK_EQ(row.frame, interner_get(&fixture.interner, b).frame);
		row = interner_get(&fixture.interner, b);
		b = row.parent;
		CHECK_EQ(b == 0 ? 16 << TRACE_STACK_SAMPLE_SHIFT : 0, row.flags);
	}
	end(&fixture);
}

static void put_heap(struct fake_lane *lane, uint16_t kind, uint64_t handle, uint32_t flags)
{
	fake_begin(lane, 64);
	fake_put(lane, LANE_EXTRA, 2);
	fake_put(lane, kind, 2);
	fake_put(lane, 12, 2);
	fake_put(lane, handle, 8);
	fake_put(lane, flags, 4);
	fake_end(lane);
}

static void put_heap_number(struct fake_lane *lane, uint32_t number)
{
	fake_begin(lane, 64);
	fake_put(lane, LANE_HEAP | number << LANE_HEAP_SHIFT, 2);
	fake_end(lane);
}

TEST(a_heap_that_was_named_is_named_again_by_its_number)
{
	struct fixture fixture;
	struct lane_item items[4];

	begin(&fixture, false);
	put_heap(&fixture.lane, LANE_EXTRA_HEAP, 0x150000, 8);
	put_heap(&fixture.lane, LANE_EXTRA_HEAP, 0x7f0000, 9);
	put_heap_number(&fixture.lane, 1);
	put_heap_number(&fixture.lane, 2);
	CHECK_EQ(4, decode(&fixture, items, 4));
	for (int i = 0; i < 4; i++) {
		CHECK_EQ(LANE_ITEM_HEAP, items[i].kind);
		CHECK_EQ(i % 2 ? 0x7f0000 : 0x150000, items[i].address);
		CHECK_EQ(i % 2 ? 9 : 8, items[i].detail);
	}
	CHECK(!fixture.reader.broken);
	end(&fixture);
	for (uint32_t number = 0; number < 3; number += 2) { // none, and one that was not named
		begin(&fixture, false);
		put_heap(&fixture.lane, LANE_EXTRA_HEAP, 0x150000, 0);
		put_heap_number(&fixture.lane, number);
		CHECK_EQ(1, decode(&fixture, items, 4));
		CHECK(fixture.reader.broken);
		end(&fixture);
	}
}

TEST(a_heap_that_is_made_has_no_number)
{
	struct fixture fixture;
	struct lane_item items[3];

	begin(&fixture, false);
	put_heap(&fixture.lane, LANE_EXTRA_HEAP_NEW, 0x150000, 0x40001);
	put_heap(&fixture.lane, LANE_EXTRA_HEAP, 0x7f0000, 0);
	put_heap_number(&fixture.lane, 1);
	CHECK_EQ(3, decode(&fixture, items, 3));
	CHECK_EQ(LANE_ITEM_HEAP_NEW, items[0].kind);
	CHECK_EQ(0x150000, items[0].address);
	CHECK_EQ(0x40001, items[0].detail);
	CHECK_EQ(LANE_ITEM_HEAP, items[2].kind);
	CHECK_EQ(0x7f0000, items[2].address);
	end(&fixture);
}

// One record of a pool, with the fields in `flags`.
static void put_pool(struct fake_lane *lane, uint8_t what, uint8_t flags, uint32_t frame)
{
	fake_begin(lane, 64);
	fake_put(lane, LANE_EXTRA, 2);
	fake_put(lane, LANE_EXTRA_POOL, 2);
	fake_put(lane, 22 + (flags & LANE_POOL_OWNER ? 8u : 0) + (flags & LANE_POOL_STACK ? 8u : 0),
		 2);
	fake_put(lane, what, 1);
	fake_put(lane, flags, 1);
	fake_put(lane, 7, 4);
	if (flags & LANE_POOL_OWNER)
		fake_put(lane, 55, 8);
	fake_put(lane, 0x5000, 8);
	fake_put(lane, 640, 8);
	if (flags & LANE_POOL_STACK) {
		fake_put(lane, 0, 2);
		fake_put(lane, 1, 2);
		fake_put(lane, frame, 4);
	}
	fake_end(lane);
}

TEST(lane_reader_reads_the_events_of_pools_and_their_stacks)
{
	struct lane_item items[8];
	struct fixture fixture;

	begin(&fixture, false);
	fake_write(&fixture.lane,
		   &(struct fake_event){ .type = LANE_FREE, .address = 0x9000, .time_ns = 30 });
	put_pool(&fixture.lane, LANE_POOL_ALLOC, LANE_POOL_OWNER | LANE_POOL_STACK, 5);
	put_pool(&fixture.lane, LANE_POOL_FREE, 0, 0);
	put_pool(&fixture.lane, LANE_POOL_RESET, 0, 0);
	put_pool(&fixture.lane, LANE_POOL_DESTROY, LANE_POOL_STACK, 6);
	// Addresses of pools are whole: the next event goes on from the one before them.
	fake_write(&fixture.lane,
		   &(struct fake_event){ .type = LANE_FREE, .address = 0x9010, .time_ns = 30 });
	CHECK_EQ(6, decode(&fixture, items, 8));
	for (uint32_t i = 0; i < 4; i++) {
		const struct lane_item *item = &items[1 + i];

		CHECK_EQ(LANE_ITEM_POOL + LANE_POOL_ALLOC + i, item->kind);
		CHECK(lane_item_is_pool(item));
		CHECK_EQ(7, item->pool);
		CHECK_EQ(lane_pool_slot(7), lane_item_slot(item));
		CHECK_EQ(0x5000, item->address);
		CHECK_EQ(640, item->size);
		CHECK_EQ(30, item->time_ns);
	}
	CHECK_EQ(55, items[1].owner);
	CHECK_EQ(0, items[2].owner);
	CHECK(items[1].stack != 0 && items[3].stack == items[1].stack);
	CHECK_EQ(0, items[2].stack);
	CHECK(items[4].stack != 0 && items[4].stack != items[1].stack);
	CHECK_EQ(0x9010, items[5].address);
	end(&fixture);
}

TEST(lane_reader_refuses_an_event_of_a_pool_that_cannot_be)
{
	static const uint8_t what[] = { 0, LANE_POOL_DESTROY + 1, 255 };
	struct lane_item items[2];
	struct fixture fixture;

	for (size_t i = 0; i < sizeof what; i++) {
		begin(&fixture, false);
		put_pool(&fixture.lane, what[i], 0, 0);
		CHECK_EQ(0, decode(&fixture, items, 2));
		CHECK(fixture.reader.broken);
		end(&fixture);
	}
	begin(&fixture, false);
	fake_begin(&fixture.lane, 64);
	fake_put(&fixture.lane, LANE_EXTRA, 2);
	fake_put(&fixture.lane, LANE_EXTRA_POOL, 2);
	fake_put(&fixture.lane, 21, 2); // one byte short
	for (int i = 0; i < 21; i++)
		fake_put(&fixture.lane, 1, 1);
	fake_end(&fixture.lane);
	CHECK_EQ(0, decode(&fixture, items, 2));
	CHECK(fixture.reader.broken);
	end(&fixture);
}

// Whatever the limit, no item is made of a record that is not whole, and nothing is read beyond.
TEST(lane_reader_breaks_at_a_record_that_is_not_whole)
{
	static const uint32_t first[] = { 1, 2, 3 };
	struct lane_item items[4];

	for (uint64_t cut = 1; cut < 43; cut++) {
		struct fixture fixture;

		begin(&fixture, false);
		fake_write(&fixture.lane, &(struct fake_event){ .type = LANE_ALIGNED,
								.address = 0x7fff00001234,
								.size = 1 << 20,
								.align_log2 = 4,
								.time_ns = 5,
								.owner = 9,
								.edit = true,
								.push = 3,
								.frames = first,
								.numbered = true });
		if (cut < fixture.lane.head) {
			CHECK_EQ(0, lane_reader_decode(&fixture.reader, cut, items, 4));
			CHECK(fixture.reader.broken);
			CHECK_EQ(0,
				 lane_reader_decode(&fixture.reader, fixture.lane.head, items, 4));
		} else if (cut == fixture.lane.head) {
			CHECK_EQ(1, lane_reader_decode(&fixture.reader, cut, items, 4));
		}
		end(&fixture);
	}
}

TEST(lane_reader_breaks_at_the_number_of_an_edit_that_is_not_whole)
{
	static const uint32_t first[] = { 1, 2, 3 };
	struct lane_item items[4];
	struct fixture fixture;

	begin(&fixture, false);
	fake_write(&fixture.lane, &(struct fake_event){ .type = LANE_MALLOC,
							.edit = true,
							.push = 3,
							.frames = first,
							.numbered = true });
	fake_write(&fixture.lane,
		   &(struct fake_event){ .type = LANE_MALLOC, .edit = true, .again = true });
	CHECK_EQ(1, lane_reader_decode(&fixture.reader, fixture.lane.head - 1, items, 4));
	CHECK(fixture.reader.broken);
	end(&fixture);
}

TEST(lane_reader_refuses_an_edit_that_cannot_be)
{
	static const uint32_t unknown[] = { FRAMES }, many[LANE_EDIT_FRAMES + 1] = { 1 };
	static const uint32_t deep[LANE_WHOLE_FRAMES + 1] = { 1 };
	static const struct fake_event bad[] = {
		{ .type = LANE_MALLOC, .edit = true, .keep = 1 },
		{ .type = LANE_MALLOC, .edit = true, .push = 1, .frames = unknown },
		{ .type = LANE_MALLOC, .edit = true, .again = true, .number = 5 },
		{ .type = LANE_MALLOC, .edit = true, .again = true, .number = LANE_EDITS },
		{ .type = LANE_MALLOC, .edit = true, .again = true, .number = LANE_KEEP_MASK },
		{ .type = LANE_MALLOC, .edit = true, .numbered = true },
		{ .type = LANE_MALLOC,
		  .edit = true,
		  .push = LANE_EDIT_FRAMES + 1,
		  .frames = many,
		  .numbered = true },
		{ .type = LANE_MALLOC,
		  .edit = true,
		  .push = 1,
		  .frames = many,
		  .numbered = true,
		  .number = LANE_EDITS + LANE_WHOLES },
		{ .type = LANE_MALLOC, .edit = true, .numbered = true, .number = LANE_EDITS },
		{ .type = LANE_MALLOC,
		  .edit = true,
		  .keep = 1,
		  .push = 1,
		  .frames = many,
		  .numbered = true,
		  .number = LANE_EDITS },
		{ .type = LANE_MALLOC,
		  .edit = true,
		  .push = LANE_WHOLE_FRAMES + 1,
		  .frames = deep,
		  .numbered = true,
		  .number = LANE_EDITS },
		{ .type = LANE_MALLOC,
		  .edit = true,
		  .keep = 1,
		  .push = 1,
		  .frames = many,
		  .numbered = true },
		{ .type = LANE_MALLOC,
		  .edit = true,
		  .push = 1,
		  .frames = unknown,
		  .numbered = true },
	};
	struct lane_item items[2];

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct fixture fixture;

		begin(&fixture, false);
		fake_write(&fixture.lane, &bad[i]);
		CHECK_EQ(0, decode(&fixture, items, 2));
		CHECK(fixture.reader.broken);
		end(&fixture);
	}
}

// The numbered edit keeps two frames; where it comes again, there are fewer, or others.
TEST(an_edit_comes_again_only_where_what_it_keeps_is_there)
{
	static const uint32_t first[] = { 1, 2, 3 }, others[] = { 1, 4 };
	const struct fake_event again = { .type = LANE_MALLOC, .edit = true, .again = true };
	struct fake_event event = { .type = LANE_MALLOC, .edit = true, .frames = first };
	struct lane_item items[8];
	struct fixture fixture;

	begin(&fixture, false);
	event.push = 2;
	fake_write(&fixture.lane, &event);
	event = (struct fake_event){ .type = LANE_MALLOC,
				     .edit = true,
				     .keep = 2,
				     .push = 1,
				     .frames = first + 2,
				     .numbered = true };
	fake_write(&fixture.lane, &event);
	fake_write(&fixture.lane, &again);
	event = (struct fake_event){
		.type = LANE_MALLOC, .edit = true, .push = 2, .frames = others
	};
	fake_write(&fixture.lane, &event);
	fake_write(&fixture.lane, &again);
	event = (struct fake_event){
		.type = LANE_MALLOC, .edit = true, .keep = 2, .push = 1, .frames = first + 2
	};
	fake_write(&fixture.lane, &event);
	event = (struct fake_event){ .type = LANE_MALLOC, .edit = true, .keep = 1 };
	fake_write(&fixture.lane, &event);
	fake_write(&fixture.lane, &again);
	CHECK_EQ(7, decode(&fixture, items, 8));
	CHECK_EQ(items[1].stack, items[2].stack);
	CHECK(items[4].stack != items[1].stack);
	CHECK_EQ(items[5].stack, items[4].stack);
	CHECK_EQ(0, decode(&fixture, items, 8));
	CHECK(fixture.reader.broken);
	end(&fixture);
}

// Noise is decoded to some items or to none, but never beyond the limit and never for ever.
TEST(lane_reader_survives_noise)
{
	static struct lane_item items[RING_BYTES];

	srandom(11);
	for (int round = 0; round < 300; round++) {
		struct fixture fixture;

		begin(&fixture, round & 1);
		for (size_t i = 0; i < 4096; i++)
			ring[i] = (uint8_t)(round % 3 == 0 ? random() % 16 : random());
		lane_reader_decode(&fixture.reader, 4096, items, RING_BYTES);
		CHECK(fixture.reader.at <= 4096);
		CHECK(fixture.reader.broken || fixture.reader.at == 4096);
		CHECK(fixture.reader.path.depth <= LANE_DEPTH_MAX);
		end(&fixture);
	}
}
