// Followed share by share, from files, each block has the life that it has where all are followed.
#include "engine/replay/lives_parts.h"

#include "base/mem.h"
#include "base/str.h"
#include "test/unit/assembled.h"
#include "trace/reader_pass.h"

#include <stdlib.h>
#include <string.h>

static const char trace[] = "process p pid=1\n"
			    "thread t p tid=1\n"
			    "thread u p tid=2\n"
			    "heap h p \"pool\"\n"
			    "@100 t malloc 0x1000 10\n"
			    "@150 u malloc 0x2000 20\n"
			    "@200 t realloc-free 0x1000\n"
			    "@200 u malloc 0x1000 30\n" // another one, between the halves
			    "@300 t realloc-alloc 0x7000 40\n"
			    "@400 t realloc 0x7000 -> 0x9000 50\n"
			    "@500 t realloc 0x9000 -> 0x9040 60\n" // of one share
			    "@550 t heap-alloc h 0x9100 5\n"
			    "@560 t heap-alloc h 0x4100 6\n"
			    "@570 u realloc-free 0x2000\n" // fails
			    "@580 u realloc-undo 0x2000 1000000\n"
			    "@600 u realloc-free 0x2000\n" // frees: no second half
			    "@650 u malloc 0x3000 70\n"
			    "@660 u realloc-alloc 0x6000 80\n" // of nothing: the half was closed
			    "@700 t heap-destroy h\n"
			    "@750 t free 0x8000\n"      // of nothing known
			    "@800 t malloc 0x3000 90\n" // the one before ended unseen
			    "@900 end p exit=0\n"
			    "@950 t malloc 0x5000 100\n"
			    "end\n";

struct told {
	char *lines[64];
	size_t count;
};

static void tell(void *context, const struct lives_block *block, const struct lives_end *end)
{
	struct told *told = context;
	struct str text = { 0 };

	str_format(&text, "%llx %llu #%llu @%llu %u.%u.%u<%llx kind %u origin %u", // the block
		   (unsigned long long)block->address, (unsigned long long)block->size,
		   (unsigned long long)block->number, (unsigned long long)block->time_ns,
		   block->process, block->thread, block->heap,
		   (unsigned long long)(block->moved ? block->old_address : 1), block->kind,
		   block->origin);
	str_format(&text, " %u #%llu @%llu %u", end->cause, (unsigned long long)end->number,
		   (unsigned long long)end->time_ns, end->thread);
	CHECK(told->count < sizeof told->lines / sizeof *told->lines);
	told->lines[told->count++] = str_take(&text);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void check_same(struct told *whole, struct told *parts)
{
	CHECK_EQ(whole->count, parts->count);
	qsort(whole->lines, whole->count, sizeof *whole->lines, compare);
	qsort(parts->lines, parts->count, sizeof *parts->lines, compare);
	for (size_t i = 0; i < whole->count; i++) {
		CHECK_STR(whole->lines[i], parts->lines[i]);
		MEM_FREE(whole->lines[i], parts->lines[i]);
	}
}

static void check_shares(struct reader *reader, uint32_t shares)
{
	struct progress progress = { .mode = PROGRESS_NONE };
	struct told whole = { 0 }, told = { 0 };
	struct lives_watcher watcher = { .end = tell, .context = &whole };
	struct map undone = { 0 };
	struct lives_halves halves = { .reader = reader, .undone = &undone };
	struct err err = { 0 };
	struct lives_parts *parts;
	struct reader_pass pass;
	struct lives *lives;
	uint64_t next_number = 0;

	lives_find_undone(reader, &undone, &progress);
	lives = lives_new(reader, &watcher, &undone);
	CHECK(lives_read(lives, reader, &progress));
	lives_free(lives);
	parts = lives_parts_new(shares, shares, &err);
	CHECK(parts != NULL);
	pass = reader_pass_begin(reader, &progress);
	while (reader_pass_next(&pass) != READER_END) {
		struct trace_event settled;

		if (pass.item == READER_NOTE) {
			lives_parts_add_note(parts, pass.items, next_number, &pass.note);
			continue;
		}
		settled = lives_settle(&halves, &pass.event);
		lives_parts_add_event(parts, pass.items, &settled);
		next_number = settled.number + 1;
	}
	lives_halves_fini(&halves);
	watcher.context = &told;
	for (uint32_t share = 0; share < shares; share++) {
		lives = lives_new(reader, &watcher, &undone);
		lives_share(lives, share, shares);
		lives_parts_read(parts, share, lives);
		lives_finish(lives, 950);
		lives_free(lives);
	}
	CHECK(lives_parts_ok(parts, &err));
	lives_parts_free(parts);
	map_fini(&undone);
	check_same(&whole, &told);
}

TEST(lives_of_all_shares_are_those_of_the_trace)
{
	struct reader *reader = assembled_open(trace);

	for (uint32_t shares = 2; shares < 40; shares++)
		check_shares(reader, shares);
	reader_close(reader);
}

TEST(items_of_a_share_come_back_with_their_numbers)
{
	struct err err = { 0 };
	struct lives_parts *parts = lives_parts_new(1, 2, &err);
	struct trace_note note = { .kind = TRACE_NOTE_PROCESS_END, .time_ns = 7 };
	struct trace_event event = { .number = 5, .kind = TRACE_MALLOC, .time_ns = 6 };
	struct lives_parts_item item;

	while (lives_share_of(event.address, 2) != 0)
		event.address += 4096;
	lives_parts_add_event(parts, 11, &event);
	lives_parts_add_note(parts, 12, 6, &note);
	note.kind = TRACE_NOTE_MARK; // ends nothing
	lives_parts_add_note(parts, 13, 6, &note);
	CHECK(lives_parts_next(parts, 0, &item) && !item.is_note);
	CHECK_EQ(11, item.item);
	CHECK_EQ(event.address, item.event.address);
	CHECK(lives_parts_next(parts, 0, &item) && item.is_note);
	CHECK_EQ(12, item.item);
	CHECK_EQ(6, item.event.number);
	CHECK_EQ(7, item.note.time_ns);
	CHECK(!lives_parts_next(parts, 0, &item));
	CHECK(lives_parts_ok(parts, &err));
	lives_parts_drop(parts, 0);
	lives_parts_free(parts);
}
