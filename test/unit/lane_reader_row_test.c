// What is read of a lane in rows, or skimmed, is what is read of it item by item.
#include "collect/language.h"
#include "test/test.h"
#include "test/unit/lane_fixture.h"

#include <stdlib.h>

enum { ROUND_BYTES = 24 << 10, ROUND_ITEMS = ROUND_BYTES, FEW = 16 };

// What a program may do: how many frames its stacks are made of, how many edits it takes for one
// with a number, how often something is seldom or odd, and how many calls there are for one list of
// an interpreted language's frames (0: it has none).
struct manners {
	uint32_t frames, edits, numbers, seldom, odd, lists;
	bool free_stacks;
};

static uint32_t one_of(uint32_t count)
{
	return (uint32_t)random() % count;
}

static bool one_in(uint32_t count)
{
	return one_of(count) == 0;
}

enum { WHOLES = 4 }; // whole stacks that get a number

// The depths of the lane's stack: now, and before and behind the edits that have numbers; and of
// its list of a language's frames.
struct depths {
	uint32_t now, list;
	uint32_t keep[LANE_EDITS + WHOLES], behind[LANE_EDITS + WHOLES];
};

// The edit has a number already, or is given one, if it can be.
static void write_number(struct fake_event *event, struct depths *depths)
{
	event->number = one_in(2) ? one_of(8) : LANE_EDITS + one_of(WHOLES);
	if (one_in(2) && depths->behind[event->number] > 0 &&
	    depths->keep[event->number] <= depths->now) {
		event->again = true;
	} else if (event->push > 0 &&
		   (event->push <= LANE_EDIT_FRAMES || event->number >= LANE_EDITS)) {
		event->keep = event->number < LANE_EDITS ? event->keep : 0;
		event->numbered = true;
		depths->keep[event->number] = event->keep;
		depths->behind[event->number] = event->keep + event->push;
	}
}

// An event of random address, size and stack; `depths` are the lane's.
static void write_random(struct fake_lane *lane, const struct manners *manners, uint32_t type,
			 struct depths *depths)
{
	static uint32_t pushed[2 * EDIT_CACHE_PUSHES];
	bool stacked = type != LANE_REALLOC_FREE && (type != LANE_FREE || manners->free_stacks);
	struct fake_event event = { .type = type, .align_log2 = 5, .frames = pushed };

	event.address = one_in(manners->odd) ? (uint64_t)random() << 33
					     : 0x10000 + 16 * one_of(5000);
	event.size = one_in(manners->odd) ? UINT64_MAX - one_of(9) : one_of(300);
	if (one_in(manners->seldom))
		event.time_ns = lane->time_ns + 1 + one_of(3);
	if (one_in(manners->seldom))
		event.owner = 1 + one_of(1000);
	if (type == LANE_REALLOC_UNDO && one_in(2))
		event.size = 0;
	if (stacked && one_in(manners->edits)) {
		event.edit = true;
		event.keep = one_of(depths->now + 1);
		event.push = one_of(one_in(20) ? 2 * EDIT_CACHE_PUSHES : 4);
		event.push_flags = one_in(100) ? LANE_PUSH_CUT : 0;
		if (one_in(manners->numbers))
			write_number(&event, depths);
		depths->now = event.again ? depths->behind[event.number] : event.keep + event.push;
		for (uint32_t i = 0; i < event.push; i++)
			pushed[i] = 1 + one_of(manners->frames);
	}
	fake_write(lane, &event);
}

// A loop: the same random calls over and over, which begin with a stack from the root.
static void write_loop(struct fake_lane *lane, const struct manners *manners, struct depths *depths)
{
	struct manners regular = *manners;
	unsigned seed = (unsigned)random();
	uint32_t calls = one_of(60), times = one_of(20);

	regular.seldom = UINT32_MAX;
	for (uint32_t i = 0; i < times; i++) {
		srandom(seed);
		depths->now = 0;
		fake_write(lane, &(struct fake_event){ .type = LANE_MALLOC,
						       .address = 0x5000,
						       .size = seed % 100,
						       .edit = true,
						       .push = 1,
						       .frames = &(uint32_t){ 1 } });
		depths->now = 1;
		for (uint32_t call = 0; call < calls; call++) {
			if (one_in(12)) {
				write_random(lane, &regular, LANE_REALLOC_FREE, depths);
				write_random(lane, &regular, LANE_REALLOC_ALLOC, depths);
			} else {
				write_random(lane, &regular, one_in(2) ? LANE_FREE : LANE_MALLOC,
					     depths);
			}
		}
	}
	srandom(seed + 1);
}

// The list of the language's frames changes, so that it is empty now and then.
static void write_list(struct fake_lane *lane, const struct manners *manners, struct depths *depths)
{
	uint32_t keep = one_of(depths->list + 1), push = one_of(4);

	fake_begin(lane, 64);
	fake_put(lane, LANE_EXTRA, 2);
	fake_put(lane, LANE_EXTRA_PYTHON, 2);
	fake_put(lane, 4 + 4 * push, 2);
	fake_put(lane, keep == 0 && one_in(4) ? LANE_PYTHON_CUT : keep, 2);
	fake_put(lane, push, 2);
	for (uint32_t i = 0; i < push; i++)
		fake_put(lane, one_of(manners->frames) | (one_in(3) ? LANE_PYTHON_ENTRY : 0), 4);
	fake_end(lane);
	depths->list = keep + push;
}

static void write_round(struct fake_lane *lane, const struct manners *manners,
			struct depths *depths)
{
	static const uint32_t seldom[] = { LANE_ALIGNED, LANE_FAILED, LANE_REALLOC_UNDO,
					   LANE_REALLOC_ALLOC };
	uint64_t end = lane->head + ROUND_BYTES;

	while (lane->head < end) {
		if (manners->lists > 0 && one_in(manners->lists)) {
			write_list(lane, manners, depths);
		} else if (one_in(200)) {
			for (uint32_t i = 2 * one_of(40); i > 0; i--)
				fake_write(lane, &(struct fake_event){ .type = i % 2 ? LANE_FREE
										     : LANE_MALLOC,
								       .address = 0x5000,
								       .size = 8 });
		} else if (one_in(200)) {
			write_loop(lane, manners, depths);
		} else if (one_in(6 * manners->odd)) {
			fake_thread(lane, 1 + one_of(9), "t");
		} else if (one_in(12)) {
			write_random(lane, manners, LANE_REALLOC_FREE, depths);
			if (!one_in(20))
				write_random(lane, manners, LANE_REALLOC_ALLOC, depths);
		} else if (one_in(manners->seldom)) {
			write_random(lane, manners, seldom[one_of(4)], depths);
		} else {
			write_random(lane, manners,
				     one_in(2)   ? LANE_FREE
				     : one_in(9) ? LANE_CALLOC
						 : LANE_MALLOC,
				     depths);
		}
	}
}

// The items that a row stands for; the slots that were taken, put to *owned.
static size_t items_of(const struct lane_reader_row *taken, struct lane_item *items)
{
	const struct columns_row *row = &taken->row;
	struct columns_row_walk walk = { 0 };
	struct trace_event event;
	size_t count = 0, items_before = 0, echoed;

	while (columns_row_next(row, &walk, &event)) {
		if (walk.at - 1 == row->count - (taken->echoes > 0 ? taken->echoed : 0))
			items_before = count;
		struct lane_item item = { .time_ns = event.time_ns,
					  .address = event.address,
					  .size = event.size,
					  .stack = event.stack,
					  .kind = event.kind };

		if (event.kind == TRACE_REALLOC) {
			items[count++] = (struct lane_item){ .time_ns = event.time_ns,
							     .address = event.old_address,
							     .kind = LANE_REALLOC_FREE };
			item.kind = LANE_REALLOC_ALLOC;
		}
		items[count++] = item;
	}
	echoed = count - items_before;
	for (uint64_t i = 0; i < echoed * taken->echoes; i++, count++)
		items[count] = items[count - echoed];
	return count;
}

static void check_same(const struct lane_item *wanted, const struct lane_item *got, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		CHECK_EQ(wanted[i].kind, got[i].kind);
		CHECK_EQ(wanted[i].time_ns, got[i].time_ns);
		CHECK_EQ(wanted[i].address, got[i].address);
		CHECK_EQ(wanted[i].size, got[i].size);
		CHECK_EQ(wanted[i].stack, got[i].stack);
	}
}

// The slots that were taken with items[0..count), in their order.
static size_t owners_of(const struct lane_item *items, size_t count,
			struct lane_reader_owner *owners)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++)
		if (items[i].owner != 0)
			owners[found++] = (struct lane_reader_owner){ lane_item_slot(&items[i]),
								      items[i].owner };
	return found;
}

// What was read in rows.
struct seen {
	size_t items, echoes, waiting; // rows whose edits wait
};

// Read the lane up to `limit` once as items and once as rows where that can be: it is the same.
static void check_rows(struct fixture *fixture, struct lane_reader *rows, uint64_t limit,
		       struct seen *seen)
{
	static struct lane_item wanted[ROUND_ITEMS], got[ROUND_ITEMS];
	static struct lane_reader_owner wanted_owners[ROUND_ITEMS], got_owners[ROUND_ITEMS];
	static struct lane_reader_row row;
	size_t count = lane_reader_decode(&fixture->reader, limit, wanted, ROUND_ITEMS);
	size_t owners = 0, at = 0;

	CHECK(!fixture->reader.broken && fixture->reader.at == limit);
	while (rows->at < limit && !rows->broken) {
		uint64_t limit_ns = rows->time_ns + one_of(4) - 1;
		size_t part;

		while (lane_reader_take_row(rows, limit, limit_ns, &row)) {
			CHECK(row.row.time_ns <= limit_ns);
			part = items_of(&row, got + at);
			memcpy(got_owners + owners, row.owners,
			       row.owners_count * sizeof *row.owners);
			owners += row.owners_count;
			at += part;
			seen->items += part;
			seen->echoes += row.echoes;
			seen->waiting += rows->edits_wait;
			// What was taken back and its free are read together.
			CHECK(got[at - 1].kind != LANE_FREE || at == count ||
			      wanted[at].kind != LANE_REALLOC_UNDO);
		}
		if (rows->at == limit)
			break;
		part = lane_reader_decode(rows, limit, got + at, FEW);
		owners += owners_of(got + at, part, got_owners + owners);
		at += part;
	}
	CHECK(!rows->broken && rows->at == limit);
	CHECK_EQ(fixture->reader.time_ns, rows->time_ns);
	CHECK_EQ(fixture->reader.address, rows->address);
	CHECK_EQ(fixture->reader.stack, rows->stack);
	CHECK_EQ(fixture->reader.lists_count, rows->lists_count);
	CHECK_EQ(count, at);
	check_same(wanted, got, count);
	CHECK_EQ(owners, owners_of(wanted, count, wanted_owners));
	for (size_t i = 0; i < owners; i++) {
		CHECK_EQ(wanted_owners[i].slot, got_owners[i].slot);
		CHECK_EQ(wanted_owners[i].owner, got_owners[i].owner);
	}
}

static const struct manners all_manners[] = {
	{ .frames = 2, .edits = 2, .numbers = 3, .seldom = 1000, .odd = 50 },
	{ .frames = FRAMES - 1, .edits = 1, .numbers = 3, .seldom = 100, .odd = 50 },
	{ .frames = FRAMES - 1,
	  .edits = 2,
	  .numbers = 3,
	  .seldom = 20,
	  .odd = 50,
	  .free_stacks = true },
	{ .frames = 3, .edits = 3, .numbers = 3, .seldom = 200, .odd = 50, .free_stacks = true },
	{ .frames = 3, .edits = 1000, .numbers = 3, .seldom = 5, .odd = 50 },
	{ .frames = 5, .edits = 2, .numbers = 40, .seldom = 2000, .odd = 500 },
	{ .frames = 5, .edits = 1, .numbers = 40, .seldom = 2000, .odd = 500, .free_stacks = true },
	{ .frames = 5, .edits = 2, .numbers = 3, .seldom = 500, .odd = 50, .lists = 5 },
	{ .frames = 5,
	  .edits = 3,
	  .numbers = 3,
	  .seldom = 50,
	  .odd = 50,
	  .lists = 100,
	  .free_stacks = true },
};

enum { MANNERS = sizeof all_manners / sizeof *all_manners };

TEST(lane_reader_reads_the_same_in_rows_as_item_by_item)
{
	struct seen seen = { 0 };

	srandom(17);
	for (size_t i = 0; i < MANNERS; i++) {
		struct lane_reader rows;
		struct fixture fixture;
		struct depths depths = { 0 };
		const struct manners *manners = &all_manners[i];
		struct language language;
		size_t in_lists = 0;

		begin(&fixture, manners->free_stacks);
		language_init(&language, &fixture.interner, false);
		language_mark(&language, 1, LANGUAGE_INTERPRETER | LANGUAGE_EVALUATOR);
		language_mark(&language, 2, LANGUAGE_INTERPRETER);
		fixture.scratch->language = &language;
		lane_reader_init(&rows, ring, RING_BYTES, &fixture.frames, fixture.scratch,
				 manners->free_stacks);
		for (int round = 0; round < 40; round++) {
			write_round(&fixture.lane, manners, &depths);
			in_lists -= seen.items;
			check_rows(&fixture, &rows, fixture.lane.head, &seen);
			in_lists += seen.items;
			atomic_store(&shared[0].tail, fixture.lane.head);
		}
		CHECK(manners->lists == 0 || (in_lists > 10000 && language.merged.count > 1000));
		lane_reader_fini(&rows);
		language_fini(&language);
		end(&fixture);
	}
	CHECK(seen.items > 100000 && seen.echoes > 300 && seen.waiting > 300);
}

// How many of items[0..count) are not later than `time_ns`.
static size_t count_until(const struct lane_item *items, size_t count, uint64_t time_ns)
{
	size_t until = 0;

	while (until < count && items[until].time_ns <= time_ns)
		until++;
	return until;
}

// Is there anything among the items that skimming leaves to others: no plain call, or a number of
// eight bytes?
static bool has_odd(const struct lane_item *items, size_t count, uint64_t address)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t delta = items[i].address - address;

		if (items[i].kind >= LANE_REALLOC_UNDO || items[i].size >> 56 != 0 ||
		    (delta + (UINT64_C(1) << 55)) >> 56 != 0)
			return true;
		address = items[i].address;
	}
	return false;
}

// Skim the lane up to `time_ns`, of which another lane has touched `taken`: what it notes are the
// slots of the items until then. False: it was not sure, and not without reason.
static bool check_skim(const struct lane_reader *reader, uint64_t limit, uint64_t time_ns,
		       const struct lane_item *items, size_t count, uint32_t taken)
{
	static struct touched touched;
	size_t until = count_until(items, count, time_ns);
	enum lane_reader_skimmed skimmed;
	size_t noted = 0, wanted = 0;
	bool contested = false;
	uint64_t end_ns;

	touched_begin(&touched);
	touched_add(&touched, taken, touched_mark(&touched, 2));
	skimmed = lane_reader_skim(reader, limit, time_ns, &touched, 1, &end_ns);
	if (skimmed == LANE_READER_UNSURE) {
		CHECK(has_odd(items, until + (until < count), reader->address));
		return false;
	}
	CHECK(!has_odd(items, until, reader->address));
	for (uint32_t i = 0; i < LANE_SLOTS; i++)
		noted += touched.slots[i] >> TOUCHED_SHIFT == touched.check;
	for (size_t i = 0; i < until; i++) {
		uint32_t *slot = &touched.slots[lane_item_slot(&items[i])];

		contested |= lane_item_slot(&items[i]) == taken;
		CHECK(*slot == 0 || *slot >> TOUCHED_SHIFT == touched.check);
		wanted += *slot != 0;
		*slot = 0;
	}
	CHECK_EQ(contested, skimmed == LANE_READER_CONTESTED);
	CHECK_EQ(wanted + !contested, noted);
	if (!contested)
		CHECK_EQ(until == count, skimmed == LANE_READER_ALONE_TO_LIMIT);
	if (until == count)
		CHECK_EQ(end_ns, items[count - 1].time_ns);
	touched_fini(&touched);
	return true;
}

TEST(lane_reader_skims_what_it_reads_item_by_item)
{
	static struct lane_item items[ROUND_ITEMS];
	size_t sure = 0, whole = 0;

	srandom(18);
	for (size_t i = 0; i < MANNERS; i++) {
		struct fixture fixture;
		struct depths depths = { 0 };
		struct lane_reader before;

		begin(&fixture, all_manners[i].free_stacks);
		for (int round = 0; round < 200; round++) {
			struct manners manners = all_manners[i];
			uint64_t time_ns;
			size_t count, until;

			manners.odd = 50 + 10000 * one_of(2);
			manners.lists = 0;
			write_round(&fixture.lane, &manners, &depths);
			before = fixture.reader;
			count = decode(&fixture, items, ROUND_ITEMS);
			CHECK(count > 0 && fixture.reader.at == fixture.lane.head);
			time_ns = one_in(3) ? UINT64_MAX : items[0].time_ns + one_of(3);
			until = count_until(items, count, time_ns);
			if (check_skim(&before, fixture.lane.head, time_ns, items, count,
				       lane_item_slot(&items[one_of((uint32_t)count)]))) {
				sure++;
				whole += until == count;
			}
			atomic_store(&shared[0].tail, fixture.lane.head);
		}
		end(&fixture);
	}
	CHECK(sure > 200 && whole > 20);
}

// Records that are the same to the byte, and lead from slot to slot.
TEST(lane_reader_skims_what_is_the_same_elsewhere)
{
	enum { EVENTS = 500 };
	static struct lane_item items[EVENTS];
	struct fixture fixture;
	struct lane_reader before;

	begin(&fixture, false);
	for (uint64_t i = 0; i < EVENTS; i++)
		fake_write(&fixture.lane,
			   &(struct fake_event){ .type = LANE_MALLOC,
						 .address = (2 + i) * LANE_SLOT_BYTES,
						 .size = 8 });
	before = fixture.reader;
	CHECK_EQ(EVENTS, decode(&fixture, items, EVENTS));
	CHECK(check_skim(&before, fixture.lane.head, UINT64_MAX, items, EVENTS, 1));
	CHECK(check_skim(&before, fixture.lane.head, UINT64_MAX, items, EVENTS, EVENTS));
	end(&fixture);
}

TEST(lane_reader_skims_noise)
{
	struct touched touched = { 0 };
	uint64_t end_ns;

	srandom(19);
	for (int round = 0; round < 100; round++) {
		struct fixture fixture;

		begin(&fixture, false);
		for (size_t i = 0; i < sizeof ring; i++)
			ring[i] = (uint8_t)(round % 3 == 0 ? random() % 8 : random());
		fixture.reader.at = one_of(RING_BYTES);
		touched_begin(&touched);
		lane_reader_skim(&fixture.reader, fixture.reader.at + one_of(RING_BYTES + 1),
				 UINT64_MAX, &touched, 1, &end_ns);
		end(&fixture);
	}
	touched_fini(&touched);
}

TEST(lane_reader_survives_noise_in_rows)
{
	static struct lane_item items[FEW];
	static struct lane_reader_row row;

	srandom(12);
	for (int round = 0; round < 300; round++) {
		struct fixture fixture;
		size_t passes = 0;

		begin(&fixture, round & 1);
		for (size_t i = 0; i < 4096; i++)
			ring[i] = (uint8_t)(round % 3 == 0 ? random() % 8 : random());
		for (; fixture.reader.at < 4096 && !fixture.reader.broken; passes++) {
			if (lane_reader_take_row(&fixture.reader, 4096, UINT64_MAX, &row))
				CHECK(row.row.count <= COLUMNS_ROW_MAX &&
				      row.row.begun <= row.row.count);
			else
				lane_reader_decode(&fixture.reader, 4096, items, FEW);
		}
		CHECK(fixture.reader.at <= 4096 && passes <= 4096);
		CHECK(fixture.reader.path.depth <= LANE_DEPTH_MAX);
		end(&fixture);
	}
}

// Stacks of a row are looked up together, from its first or once many were not known; the row ends
// before a frame that does not exist.
TEST(lane_reader_ends_a_row_where_a_stack_cannot_be)
{
	enum { EVENTS = 60, BAD = 50 };
	static struct lane_reader_row row;

	for (int way = 0; way < 4; way++) {
		bool free_stacks = way & 1;
		struct fixture fixture;

		begin(&fixture, free_stacks);
		fixture.reader.edits_wait = way & 2;
		for (uint32_t i = 0; i < EVENTS; i++) {
			uint32_t pushed[2] = { 1 + i, i == BAD ? 2 * FRAMES : FRAMES - 1 };

			fake_write(&fixture.lane,
				   &(struct fake_event){ .type = free_stacks ? LANE_FREE
									     : LANE_MALLOC,
							 .address = 0x1000,
							 .edit = true,
							 .push = 2,
							 .frames = pushed });
		}
		CHECK(lane_reader_take_row(&fixture.reader, fixture.lane.head, UINT64_MAX, &row));
		CHECK(fixture.reader.broken);
		CHECK_EQ(BAD, row.row.count);
		CHECK_EQ(free_stacks ? 0 : BAD, row.row.begun);
		CHECK(!lane_reader_take_row(&fixture.reader, fixture.lane.head, UINT64_MAX, &row));
		end(&fixture);
	}
}

// What stands before a loop, up to the end of a row, and the loop's first turn in it.
static void begin_loop(struct fake_lane *lane, uint64_t address, const struct fake_event *turn,
		       uint32_t events)
{
	uint32_t first = 1;

	for (uint32_t i = 0; i < COLUMNS_ROW_MAX - events; i++)
		fake_write(lane, &(struct fake_event){ .type = LANE_MALLOC,
						       .address = address,
						       .size = 1000 + i,
						       .edit = i == 0,
						       .push = 1,
						       .frames = &first });
	for (uint32_t i = 0; i < events; i++)
		fake_write(lane, &turn[i]);
}

// The same bytes over and over say something else each time, where each says how an address or a
// stack differs from the last. Only what is the same all through is an echo.
TEST(lane_reader_takes_for_an_echo_only_what_is_the_same)
{
	enum { TURNS = 100 };
	static struct lane_reader_row row;
	uint32_t second = 2;

	for (int kind = 0; kind < 3; kind++) {
		struct fake_event turn[2] = { { .type = LANE_MALLOC, .address = 0x5000, .size = 8 },
					      { .type = LANE_FREE, .address = 0x5000 } };
		uint64_t stride = kind == 2 ? 16 : 0;
		struct fixture fixture;

		begin(&fixture, false);
		if (kind == 1) // the stack of the first turn's first call is another
			turn[1] = (struct fake_event){ .type = LANE_MALLOC,
						       .address = 0x5000,
						       .size = 8,
						       .edit = true,
						       .push = 1,
						       .frames = &second };
		begin_loop(&fixture.lane, 0x5000 - stride, turn, 2);
		for (uint32_t i = 0; i < TURNS; i++)
			for (uint32_t j = 0; j < 2; j++) {
				turn[j].address += stride;
				fake_write(&fixture.lane, &turn[j]);
			}
		CHECK(lane_reader_take_row(&fixture.reader, fixture.lane.head, UINT64_MAX, &row));
		CHECK_EQ(COLUMNS_ROW_MAX, row.row.count);
		if (kind == 0) {
			CHECK_EQ(2, row.echoed);
			CHECK(row.echoes > TURNS / 2 && row.echoes <= TURNS);
		} else {
			CHECK_EQ(0, row.echoes);
		}
		end(&fixture);
	}
}
