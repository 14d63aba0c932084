// Calls on virtual memory do to an address space what the kernel does.
#include "engine/space/space.h"
#include "test/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = SPACE_PAGE, RW = 3, NONE = 0, READ = 1, CODE = 5 };
enum { FIXED = 0x10, STACK = 0x20000, ENDS_MAX = 64, LOG_MAX = 4096 };

// A space with one process of one thread, and what its hooks have heard.
struct scene {
	struct space *space;
	uint64_t number;
	uint64_t level;          // bytes, by the hooks
	uint64_t begun, parts;   // commits by their beginnings; parts that ended before the rest
	uint64_t sizes[LOG_MAX]; // by commit id: 0 is not alive
	struct space_commit ended;
	struct space_end end;
	uint64_t ends;
	uint64_t owners;
};

static void on_begin(void *context, const struct space_commit *commit)
{
	struct scene *scene = context;

	CHECK(commit->id < LOG_MAX);
	CHECK_EQ(0, scene->sizes[commit->id]);
	scene->sizes[commit->id] = commit->size;
	scene->level += commit->size;
	scene->begun++;
}

static void on_end(void *context, const struct space_commit *commit,
		   const struct space_commit *rest, const struct space_end *end)
{
	struct scene *scene = context;

	scene->level -= commit->size;
	if (rest) {
		CHECK_EQ(scene->sizes[rest->id], rest->size + commit->size);
		CHECK_EQ(rest->number, commit->number);
		scene->sizes[rest->id] = rest->size;
		scene->parts++;
	} else {
		CHECK_EQ(scene->sizes[commit->id], commit->size);
		scene->sizes[commit->id] = 0;
	}
	scene->ended = *commit;
	scene->end = *end;
	scene->ends++;
}

static void on_owner(void *context, const struct space_commit *commit)
{
	struct scene *scene = context;

	CHECK_EQ(SPACE_ALLOCATOR, commit->owner);
	scene->owners++;
}

static void scene_add_process(struct scene *scene, unsigned bits, process_id parent, bool forked)
{
	struct trace_process process = {
		.bits = (uint8_t)bits,
		.parent = parent,
		.start = forked ? TRACE_START_FORK : TRACE_START_EXEC,
	};

	space_add_process(scene->space, &process);
}

static struct scene *scene_new(unsigned bits)
{
	static struct scene scene;
	struct space_hooks hooks = { &scene, on_begin, on_end, on_owner };

	scene = (struct scene){ .space = space_new(&hooks) };
	scene_add_process(&scene, bits, TRACE_NONE, false);
	space_add_thread(scene.space, 0);
	return &scene;
}

static void scene_free(struct scene *scene)
{
	CHECK_EQ(scene->level, space_all(scene->space)->committed_bytes);
	space_free(scene->space);
}

struct call {
	unsigned kind;
	uint64_t address, size;
	uint32_t protection, flags;
	uint64_t old_address, old_size;
	uint32_t error, origin;
	file_id file;
	uint64_t offset;
	thread_id thread;
	stack_id stack;
};

static void add(struct scene *scene, struct call call)
{
	struct trace_vm vm = {
		.old_size = call.old_size,
		.offset = call.offset,
		.protection = call.protection,
		.flags = call.flags,
		.file = call.file,
		.error = call.error,
		.origin = (uint8_t)call.origin,
	};
	struct trace_event event = {
		.number = scene->number++,
		.time_ns = scene->number * 10,
		.address = call.address,
		.old_address = call.old_address,
		.size = call.size,
		.thread = call.thread,
		.stack = call.stack,
		.kind = (uint8_t)call.kind,
		.vm = &vm,
	};

	space_add_event(scene->space, &event);
}

// What a call does not say is 0.
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
#define ADD(scene, ...) add(scene, (struct call){ __VA_ARGS__ })

// "1000-3000 rw program; …": what is mapped, in words.
static const char *map_of(const struct scene *scene, process_id process)
{
	static char text[4096];
	const struct ranges *ranges = space_ranges(scene->space, process);
	const struct range *range;
	uint64_t at = 0;
	size_t length = 0;

	text[0] = 0;
	while ((range = ranges_from(ranges, at))) {
		length += (size_t)snprintf(
			text + length, sizeof text - length, "%s%llx-%llx %s%s%s %s",
			length ? "; " : "", (unsigned long long)range->start,
			(unsigned long long)range->end, range->protection & 1 ? "r" : "-",
			range->protection & 2 ? "w" : "-", range->protection & 4 ? "x" : "-",
			space_owner_word(space_owner(scene->space, range)));
		at = range->end;
	}
	return text;
}

TEST(space_a_partial_munmap_splits_and_sizes_add_up)
{
	struct scene *scene = scene_new(64);

	ADD(scene, TRACE_MMAP, 0x10000, 0xa000, RW, .stack = 7);
	ADD(scene, TRACE_MUNMAP, 0x12000, 0x3000);
	CHECK_STR("10000-12000 rw- program; 15000-1a000 rw- program", map_of(scene, 0));
	CHECK_EQ(0x7000, scene->level);
	CHECK_EQ(1, scene->parts);
	CHECK_EQ(0x12000, scene->ended.address);
	CHECK_EQ(0x3000, scene->ended.size);
	CHECK_EQ(0, scene->ended.number);
	CHECK_EQ(7, scene->ended.stack);
	CHECK_EQ(1, scene->end.number);
	CHECK_EQ(SPACE_UNMAPPED, scene->end.ending);
	ADD(scene, TRACE_MUNMAP, 0x0, 0x100000); // holes are allowed
	CHECK_STR("", map_of(scene, 0));
	CHECK_EQ(0xa000, space_all(scene->space)->commits_bytes);
	CHECK_EQ(0xa000, space_all(scene->space)->committed_peak_bytes);
	scene_free(scene);
}

// Half of a buffer is given back a second before the other: 13 commits, 12 mappings.
TEST(space_two_halves_are_two_commits_of_the_whole_size)
{
	struct scene *scene = scene_new(64);

	for (uint64_t i = 0; i < 12; i++)
		ADD(scene, TRACE_MMAP, 0x10000000 + i * 0x1000000, 0xa00000, RW);
	ADD(scene, TRACE_MUNMAP, 0x10000000, 0x500000);
	ADD(scene, TRACE_MUNMAP, 0x10500000, 0x500000);
	CHECK_EQ(13, space_all(scene->space)->commits);
	CHECK_EQ(125829120, space_all(scene->space)->commits_bytes);
	CHECK_EQ(12, scene->begun);
	CHECK_EQ(1, scene->parts);
	CHECK_EQ(2, scene->ends);
	scene_free(scene);
}

TEST(space_a_length_is_rounded_up_to_pages)
{
	struct scene *scene = scene_new(64);

	ADD(scene, TRACE_MMAP, 0x10000, 1, RW);
	ADD(scene, TRACE_MMAP, 0x400000, 5000, RW, .flags = 0x40000); // huge pages of 2 MiB
	CHECK_STR("10000-11000 rw- program; 400000-600000 rw- program", map_of(scene, 0));
	CHECK_EQ(5001, space_all(scene->space)->calls[SPACE_MMAP].bytes);
	ADD(scene, TRACE_MUNMAP, 0x10000, 1);
	CHECK_STR("400000-600000 rw- program", map_of(scene, 0));
	scene_free(scene);
}

TEST(space_a_fixed_mapping_ends_what_it_covers)
{
	struct scene *scene = scene_new(64);

	ADD(scene, TRACE_MMAP, 0x10000, 0x8000, RW);
	ADD(scene, TRACE_MMAP, 0x12000, 0x2000, READ, .flags = FIXED);
	CHECK_STR("10000-12000 rw- program; 12000-14000 r-- program; 14000-18000 rw- program",
		  map_of(scene, 0));
	CHECK_EQ(SPACE_REPLACED, scene->end.ending);
	CHECK_EQ(0x6000, scene->level);
	CHECK_EQ(0, space_all(scene->space)->overlapping);
	scene_free(scene);
}

TEST(space_a_mapping_over_another_without_leave_is_told)
{
	struct scene *scene = scene_new(64);

	ADD(scene, TRACE_MMAP, 0x10000, 0x8000, RW);
	ADD(scene, TRACE_MMAP, 0x12000, 0x1000, RW);
	ADD(scene, TRACE_MMAP, 0x13000, 0x1000, RW, .flags = 0x100000);
	CHECK_EQ(2, space_all(scene->space)->overlapping);
	CHECK_EQ(0x8000, scene->level);
	scene_free(scene);
}

// Windows: what is committed is so whatever may be done with it, until it is decommitted.
TEST(space_memory_is_committed_without_access)
{
	enum { COMMITTED = TRACE_PROTECTION_COMMITTED, ACCESS = TRACE_PROTECTION_ACCESS };
	struct scene *scene = scene_new(32);

	ADD(scene, TRACE_MMAP, 0x10000, 0x8000, COMMITTED, .stack = 1);
	CHECK_EQ(0x8000, scene->level);
	CHECK_STR("10000-18000 --- program", map_of(scene, 0));
	ADD(scene, TRACE_MPROTECT, 0x10000, 0x4000, RW | ACCESS);
	ADD(scene, TRACE_MPROTECT, 0x12000, 0x1000, ACCESS);
	CHECK_EQ(0x8000, scene->level);
	ADD(scene, TRACE_MPROTECT, 0x12000, 0x1000, NONE);
	CHECK_EQ(0x7000, scene->level);
	ADD(scene, TRACE_MPROTECT, 0x12000, 0x1000, READ | ACCESS);
	CHECK_EQ(0x7000, scene->level);
	ADD(scene, TRACE_MPROTECT, 0x12000, 0x1000, READ | COMMITTED, .stack = 2);
	CHECK_EQ(0x8000, scene->level);
	CHECK_EQ(2, space_commit(scene->space, ranges_find(space_ranges(scene->space, 0), 0x12000))
			    ->stack);
	scene_free(scene);
}

TEST(space_protection_commits_and_decommits)
{
	struct scene *scene = scene_new(64);

	ADD(scene, TRACE_MMAP, 0x10000, 0x10000, NONE, .stack = 1);
	CHECK_EQ(0, scene->begun);
	CHECK_EQ(0x10000, space_all(scene->space)->reserved_bytes);
	ADD(scene, TRACE_MPROTECT, 0x10000, 0x4000, RW, .stack = 2);
	CHECK_EQ(0x4000, scene->level);
	CHECK_EQ(2, space_commit(scene->space, ranges_find(space_ranges(scene->space, 0), 0x10000))
			    ->stack);
	// Read-only memory stays committed: its content stays.
	ADD(scene, TRACE_MPROTECT, 0x11000, 0x1000, READ);
	CHECK_EQ(0x4000, scene->level);
	ADD(scene, TRACE_MPROTECT, 0x11000, 0x1000, RW);
	CHECK_EQ(1, scene->begun);
	CHECK_STR("10000-14000 rw- program; 14000-20000 --- program", map_of(scene, 0));
	// Decommit a part whose pieces differ: one part of one commit.
	ADD(scene, TRACE_MPROTECT, 0x12000, 0x1000, READ);
	ADD(scene, TRACE_MPROTECT, 0x11000, 0x3000, NONE, .stack = 3);
	CHECK_EQ(1, scene->ends);
	CHECK_EQ(0x3000, scene->ended.size);
	CHECK_EQ(SPACE_PROTECTED, scene->end.ending);
	CHECK_EQ(3, scene->end.stack);
	CHECK_EQ(0x10000, space_all(scene->space)->reserved_bytes);
	CHECK_STR("10000-11000 rw- program; 11000-20000 --- program", map_of(scene, 0));
	scene_free(scene);
}

TEST(space_one_call_over_two_mappings_is_one_commit)
{
	struct scene *scene = scene_new(64);

	ADD(scene, TRACE_MMAP, 0x10000, 0x2000, NONE);
	ADD(scene, TRACE_MMAP, 0x12000, 0x2000, READ);
	ADD(scene, TRACE_MPROTECT, 0x11000, 0x2000, RW);
	CHECK_EQ(1, scene->begun);
	CHECK_EQ(0x2000, scene->level);
	scene_free(scene);
}

TEST(space_purges_are_counted_and_end_nothing)
{
	struct scene *scene = scene_new(64);

	ADD(scene, TRACE_MMAP, 0x10000, 0x8000, RW);
	ADD(scene, TRACE_MADVISE, 0x10000, 0x2000, .flags = 4);
	ADD(scene, TRACE_MADVISE, 0x10000, 0x3000, .flags = 8);
	ADD(scene, TRACE_MADVISE, 0x10000, 0x1000, .flags = 9);
	ADD(scene, TRACE_MADVISE, 0x10000, 0x8000, .flags = 14); // huge pages: no purge
	CHECK_EQ(3, space_all(scene->space)->purges);
	CHECK_EQ(0x6000, space_all(scene->space)->purged_bytes);
	CHECK_EQ(4, space_all(scene->space)->calls[SPACE_MADVISE].count);
	CHECK_EQ(0x8000, scene->level);
	scene_free(scene);
}

TEST(space_the_break_grows_and_shrinks_by_pages)
{
	struct scene *scene = scene_new(64);

	ADD(scene, TRACE_BRK, .old_address = 0x55000010, .address = 0x55000010);
	ADD(scene, TRACE_BRK, .old_address = 0x55000010, .address = 0x55021010,
	    .origin = TRACE_ORIGIN_ALLOCATOR);
	CHECK_STR("55001000-55022000 rw- malloc-heap", map_of(scene, 0));
	ADD(scene, TRACE_BRK, .old_address = 0x55021010, .address = 0x55042010,
	    .origin = TRACE_ORIGIN_ALLOCATOR);
	CHECK_EQ(2, scene->begun);
	ADD(scene, TRACE_BRK, .old_address = 0x55042010, .address = 0x55011000);
	CHECK_STR("55001000-55011000 rw- malloc-heap", map_of(scene, 0));
	CHECK_EQ(4, space_all(scene->space)->calls[SPACE_BRK].count);
	CHECK_EQ(0x21000 + 0x21000 + 0x31010, space_all(scene->space)->calls[SPACE_BRK].bytes);
	scene_free(scene);
}

TEST(space_mremap_moves_with_owner_and_stack_and_growth_inherits)
{
	struct scene *scene = scene_new(64);
	const struct space_commit *commit;

	ADD(scene, TRACE_MMAP, 0x10000, 0x4000, RW, .origin = TRACE_ORIGIN_ALLOCATOR, .stack = 5);
	ADD(scene, TRACE_MREMAP, .old_address = 0x10000, .old_size = 0x4000, .address = 0x80000,
	    .size = 0x6000, .flags = 1, .stack = 9);
	CHECK_STR("80000-84000 rw- malloc-large; 84000-86000 rw- malloc-large", map_of(scene, 0));
	commit = space_commit(scene->space, ranges_find(space_ranges(scene->space, 0), 0x80000));
	CHECK_EQ(1, commit->id);
	CHECK_EQ(0x80000, commit->address);
	commit = space_commit(scene->space, ranges_find(space_ranges(scene->space, 0), 0x84000));
	CHECK_EQ(5, commit->stack);
	CHECK_EQ(1, commit->number);
	CHECK_EQ(0, scene->ends);
	// In place: shrink, then grow.
	ADD(scene, TRACE_MREMAP, .old_address = 0x80000, .old_size = 0x6000, .address = 0x80000,
	    .size = 0x1000);
	CHECK_STR("80000-81000 rw- malloc-large", map_of(scene, 0));
	ADD(scene, TRACE_MREMAP, .old_address = 0x80000, .old_size = 0x1000, .address = 0x80000,
	    .size = 0x3000);
	CHECK_EQ(0x3000, scene->level);
	// Onto a live mapping.
	ADD(scene, TRACE_MMAP, 0x90000, 0x2000, RW, .stack = 6);
	ADD(scene, TRACE_MREMAP, .old_address = 0x80000, .old_size = 0x3000, .address = 0x91000,
	    .size = 0x3000, .flags = 3);
	CHECK_STR("90000-91000 rw- program; 91000-92000 rw- malloc-large; "
		  "92000-94000 rw- malloc-large",
		  map_of(scene, 0));
	CHECK_EQ(0x4000, scene->level);
	scene_free(scene);
}

TEST(space_mremap_that_keeps_the_source)
{
	struct scene *scene = scene_new(64);

	ADD(scene, TRACE_MMAP, 0x10000, 0x4000, RW, .flags = 1);
	ADD(scene, TRACE_MREMAP, .old_address = 0x10000, .old_size = 0, .address = 0x20000,
	    .size = 0x4000, .flags = 1);
	CHECK_STR("10000-14000 rw- program; 20000-24000 rw- program", map_of(scene, 0));
	CHECK_EQ(0x8000, scene->level);
	ADD(scene, TRACE_MREMAP, .old_address = 0x20000, .old_size = 0x4000, .address = 0x40000,
	    .size = 0x4000, .flags = 1 | 4);
	CHECK_STR("10000-14000 rw- program; 20000-24000 rw- program; 40000-44000 rw- program",
		  map_of(scene, 0));
	CHECK_EQ(0x4000, space_all(scene->space)->purged_bytes);
	scene_free(scene);
}

TEST(space_a_moved_reservation_keeps_its_parts)
{
	struct scene *scene = scene_new(64);

	ADD(scene, TRACE_MMAP, 0x10000, 0x4000, NONE);
	ADD(scene, TRACE_MPROTECT, 0x11000, 0x1000, RW);
	ADD(scene, TRACE_MREMAP, .old_address = 0x10000, .old_size = 0x4000, .address = 0x50000,
	    .size = 0x4000, .flags = 1);
	CHECK_STR("50000-51000 --- program; 51000-52000 rw- program; 52000-54000 --- program",
		  map_of(scene, 0));
	CHECK_EQ(0x1000, scene->level);
	CHECK_EQ(0, scene->ends);
	scene_free(scene);
}

TEST(space_a_failed_call_is_counted_and_changes_nothing)
{
	struct scene *scene = scene_new(64);

	ADD(scene, TRACE_MMAP, 0x10000, 0x4000, RW);
	ADD(scene, TRACE_MMAP, .size = 1 << 30, .protection = RW, .error = 12);
	ADD(scene, TRACE_MUNMAP, 0x10000, 0x4000, .error = 22);
	ADD(scene, TRACE_MPROTECT, 0x10000, 0x4000, NONE, .error = 12);
	ADD(scene, TRACE_BRK, .old_address = 0x4000, .address = 0x8000, .error = 12);
	CHECK_STR("10000-14000 rw- program", map_of(scene, 0));
	CHECK_EQ(2, space_all(scene->space)->calls[SPACE_MMAP].count);
	CHECK_EQ(1, space_all(scene->space)->calls[SPACE_MMAP].failed);
	CHECK_EQ(0x4000, space_all(scene->space)->calls[SPACE_MMAP].bytes);
	CHECK_EQ(0, space_all(scene->space)->calls[SPACE_MUNMAP].bytes);
	CHECK_EQ(0, space_all(scene->space)->absurd);
	scene_free(scene);
}

TEST(space_shared_segments_come_and_go)
{
	struct scene *scene = scene_new(64);

	ADD(scene, TRACE_SHMAT, 0x10000, 0x2800, RW);
	CHECK_EQ(0x3000, scene->level);
	ADD(scene, TRACE_SHMDT, 0x10000, 0x2800);
	CHECK_STR("", map_of(scene, 0));
	scene_free(scene);
}

static void note(struct scene *scene, unsigned kind, process_id process, uint64_t value)
{
	struct trace_note note = {
		.kind = (uint8_t)kind,
		.process = process,
		.value = value,
		.time_ns = scene->number * 10,
		.text = "",
	};

	space_add_note(scene->space, &note);
}

TEST(space_a_forked_child_has_a_copy_that_nobody_counts_twice)
{
	struct scene *scene = scene_new(64);

	ADD(scene, TRACE_MMAP, 0x10000, 0x4000, RW, .stack = 1);
	ADD(scene, TRACE_MMAP, 0x20000, 0x4000, NONE, .stack = 2);
	scene_add_process(scene, 64, 0, true);
	space_add_thread(scene->space, 1);
	note(scene, TRACE_NOTE_PROCESS_START, 1, 0);
	CHECK_EQ(0x4000, scene->level);
	CHECK_EQ(0, space_process(scene->space, 1)->reserved_bytes);
	CHECK_EQ(0x8000, space_process(scene->space, 1)->inherited_bytes);
	ADD(scene, TRACE_MUNMAP, 0x10000, 0x1000, .thread = 1);
	CHECK_STR("11000-14000 rw- program; 20000-24000 --- program", map_of(scene, 1));
	CHECK_STR("10000-14000 rw- program; 20000-24000 --- program", map_of(scene, 0));
	CHECK_EQ(0x4000, scene->level);
	// What it commits itself is its own.
	ADD(scene, TRACE_MPROTECT, 0x20000, 0x1000, RW, .thread = 1);
	CHECK_EQ(0x5000, scene->level);
	CHECK_EQ(0x1000, space_process(scene->space, 1)->committed_bytes);
	note(scene, TRACE_NOTE_PROCESS_END, 1, 1);
	CHECK_EQ(SPACE_EXITED, scene->end.ending);
	CHECK_EQ(0x4000, scene->level);
	CHECK_EQ(0, space_process(scene->space, 1)->inherited_bytes);
	scene_free(scene);
}

TEST(space_exec_and_exit_end_everything)
{
	struct scene *scene = scene_new(64);

	ADD(scene, TRACE_MMAP, 0x10000, 0x4000, RW);
	ADD(scene, TRACE_MUNMAP, 0x11000, 0x1000);
	note(scene, TRACE_NOTE_PROCESS_END, 0, TRACE_EXIT_EXEC);
	CHECK_EQ(SPACE_EXECED, scene->end.ending);
	CHECK_EQ(TRACE_NONE, scene->end.thread);
	CHECK_EQ(0, scene->level);
	CHECK_EQ(0, space_all(scene->space)->reserved_bytes);
	CHECK_EQ(0x4000, space_all(scene->space)->commits_bytes);
	scene_free(scene);
}

TEST(space_the_baseline_is_told_and_has_owners)
{
	struct scene *scene = scene_new(64);
	struct trace_file files[] = {
		{ .id = 1, .path = (char *)"/usr/bin/app" },
		{ .id = 2, .path = (char *)"[stack]" },
		{ .id = 3, .path = (char *)"[vdso]" },
		{ .id = 4, .path = (char *)"[heap]" },
		{ .id = 5, .path = (char *)"/usr/lib/locale/locale-archive" },
	};
	const struct range *range;

	for (int i = 0; i < 5; i++)
		space_add_file(scene->space, &files[i]);
	ADD(scene, TRACE_MAPPED, 0x400000, 0x1000, CODE, .file = 1, .origin = TRACE_ORIGIN_KERNEL);
	ADD(scene, TRACE_MAPPED, 0x401000, 0x1000, RW, .file = 1, .offset = 0x1000,
	    .origin = TRACE_ORIGIN_KERNEL);
	ADD(scene, TRACE_MAPPED, 0x402000, 0x3000, RW, .origin = TRACE_ORIGIN_KERNEL);
	ADD(scene, TRACE_MAPPED, 0x500000, 0x21000, RW, .file = 4, .origin = TRACE_ORIGIN_KERNEL);
	ADD(scene, TRACE_MAPPED, 0x600000, 0x2000, RW, .origin = TRACE_ORIGIN_KERNEL);
	ADD(scene, TRACE_MAPPED, 0x7ff000, 0x1000, READ, .file = 5);
	ADD(scene, TRACE_MAPPED, 0x7ffffffde000, 0x21000, RW, .file = 2,
	    .origin = TRACE_ORIGIN_KERNEL);
	ADD(scene, TRACE_MAPPED, 0x7ffffffff000 - 0x1000, 0x1000, CODE, .file = 3,
	    .origin = TRACE_ORIGIN_KERNEL);
	ADD(scene, TRACE_MAPPED, 0xffffffffff600000, 0x1000, CODE, .origin = TRACE_ORIGIN_KERNEL);
	CHECK_STR("400000-401000 r-x library; 401000-402000 rw- library; "
		  "402000-405000 rw- library; 500000-521000 rw- malloc-heap; "
		  "600000-602000 rw- loader; 7ff000-800000 r-- file; "
		  "7ffffffde000-7fffffffe000 rw- main-stack; "
		  "7fffffffe000-7ffffffff000 r-x kernel",
		  map_of(scene, 0));
	range = ranges_find(space_ranges(scene->space, 0), 0x600000);
	CHECK(space_commit(scene->space, range)->baseline);
	ADD(scene, TRACE_MMAP, 0x900000, 0x1000, RW);
	ADD(scene, TRACE_MAPPED, 0x910000, 0x1000, RW); // found by a later look
	range = ranges_find(space_ranges(scene->space, 0), 0x910000);
	CHECK(!space_commit(scene->space, range)->baseline);
	CHECK_EQ(0, space_all(scene->space)->absurd);
	scene_free(scene);
}

TEST(space_what_a_look_finds_fills_gaps_and_corrects_protection)
{
	struct scene *scene = scene_new(64);

	ADD(scene, TRACE_MMAP, 0x11000, 0x1000, RW, .stack = 4);
	ADD(scene, TRACE_MAPPED, 0x10000, 0x4000, READ);
	CHECK_STR("10000-11000 r-- program; 11000-12000 r-- program; 12000-14000 r-- program",
		  map_of(scene, 0));
	CHECK_EQ(4, ranges_find(space_ranges(scene->space, 0), 0x11000)->stack);
	ADD(scene, TRACE_MMAP, 0x20000, 0x1000, READ, .file = 1);
	ADD(scene, TRACE_MAPPED, 0x20000, 0x1000, READ, .file = 2);
	CHECK_EQ(2, ranges_find(space_ranges(scene->space, 0), 0x20000)->file);
	ADD(scene, TRACE_UNMAPPED, 0x10000, 0x4000);
	CHECK_STR("20000-21000 r-- file", map_of(scene, 0));
	scene_free(scene);
}

TEST(space_the_recorders_own_is_nobody_elses)
{
	struct scene *scene = scene_new(64);

	// The kernel listed it as one with the linker's own; the recorder tells of its part later.
	ADD(scene, TRACE_MAPPED, 0x10000, 0x8000, RW, .origin = TRACE_ORIGIN_LOADER);
	ADD(scene, TRACE_MAPPED, 0x12000, 0x1234, RW, .origin = TRACE_ORIGIN_RECORDER);
	CHECK_STR("10000-12000 rw- loader; 12000-14000 rw- tidemark; 14000-18000 rw- loader",
		  map_of(scene, 0));
	// What a later look finds there does not change that.
	ADD(scene, TRACE_MAPPED, 0x10000, 0x8000, RW, .origin = TRACE_ORIGIN_LOADER);
	CHECK_STR("10000-12000 rw- loader; 12000-14000 rw- tidemark; 14000-18000 rw- loader",
		  map_of(scene, 0));
	scene_free(scene);
}

TEST(space_owners_follow_from_who_called)
{
	struct scene *scene = scene_new(64);

	ADD(scene, TRACE_MMAP, 0x10000, 0x1000, RW);
	ADD(scene, TRACE_MMAP, 0x20000, 0x1000, NONE, .origin = TRACE_ORIGIN_ALLOCATOR);
	ADD(scene, TRACE_MMAP, 0x30000, 0x1000, RW, .origin = TRACE_ORIGIN_ALLOCATOR);
	ADD(scene, TRACE_MMAP, 0x40000, 0x1000, NONE, .origin = TRACE_ORIGIN_LIBC, .flags = STACK);
	ADD(scene, TRACE_MMAP, 0x50000, 0x1000, RW, .origin = TRACE_ORIGIN_LIBC);
	ADD(scene, TRACE_MMAP, 0x60000, 0x1000, READ, .origin = TRACE_ORIGIN_LOADER, .file = 1);
	ADD(scene, TRACE_MMAP, 0x61000, 0x1000, RW, .origin = TRACE_ORIGIN_LOADER, .flags = FIXED);
	ADD(scene, TRACE_MMAP, 0x70000, 0x1000, RW, .origin = TRACE_ORIGIN_LOADER);
	ADD(scene, TRACE_MMAP, 0x80000, 0x1000, READ, .file = 2);
	ADD(scene, TRACE_MMAP, 0x90000, 0x1000, RW, .origin = TRACE_ORIGIN_RECORDER);
	CHECK_STR("10000-11000 rw- program; 20000-21000 --- malloc-arena; "
		  "30000-31000 rw- malloc-large; 40000-41000 --- thread-stack; "
		  "50000-51000 rw- libc; 60000-61000 r-- library; 61000-62000 rw- library; "
		  "70000-71000 rw- loader; 80000-81000 r-- file; 90000-91000 rw- tidemark",
		  map_of(scene, 0));
	// A static program makes its threads itself.
	ADD(scene, TRACE_MMAP, 0xa0000, 0x1000, NONE, .flags = STACK);
	CHECK_STR("thread-stack", strrchr(map_of(scene, 0), ' ') + 1);
	ADD(scene, TRACE_MUNMAP, 0xa0000, 0x1000);
	// tidemark's own is counted by itself.
	CHECK_EQ(0x1000, space_all(scene->space)->own_bytes);
	CHECK_EQ(0x9000, space_all(scene->space)->reserved_bytes);
	CHECK_EQ(10, space_all(scene->space)->calls[SPACE_MMAP].count);
	CHECK_EQ(0x5000, scene->level);
	ADD(scene, TRACE_MUNMAP, 0x90000, 0x1000, .origin = TRACE_ORIGIN_RECORDER);
	CHECK_EQ(0, space_all(scene->space)->own_bytes);
	scene_free(scene);
}

TEST(space_a_heap_block_gives_its_mapping_to_the_allocator)
{
	struct scene *scene = scene_new(64);

	ADD(scene, TRACE_MMAP, 0x200000, 0x200000, RW);
	ADD(scene, TRACE_MPROTECT, 0x210000, 0x1000, READ);
	space_claim(scene->space, 0, 0x300040);
	space_claim(scene->space, 0, 0x300040);
	CHECK_STR("200000-210000 rw- allocator; 210000-211000 r-- allocator; "
		  "211000-400000 rw- allocator",
		  map_of(scene, 0));
	CHECK_EQ(1, scene->owners);
	ADD(scene, TRACE_MUNMAP, 0x200000, 0x200000);
	CHECK_EQ(SPACE_ALLOCATOR, scene->ended.owner);
	// The place is somebody else's now, and then an allocator's again.
	ADD(scene, TRACE_MMAP, 0x200000, 0x200000, RW);
	CHECK_STR("200000-400000 rw- program", map_of(scene, 0));
	space_claim(scene->space, 0, 0x300040);
	CHECK_STR("200000-400000 rw- allocator", map_of(scene, 0));
	scene_free(scene);
}

TEST(space_mappings_side_by_side_are_claimed_each_by_its_own_blocks)
{
	struct scene *scene = scene_new(64);

	ADD(scene, TRACE_MMAP, 0x200000, 0x1000, RW);
	ADD(scene, TRACE_MMAP, 0x201000, 0x1000, READ);
	ADD(scene, TRACE_MMAP, 0x202000, 0x1000, RW);
	ADD(scene, TRACE_MMAP, 0x203000, 0x2000, READ);
	space_claim(scene->space, 0, 0x200010);
	space_claim(scene->space, 0, 0x202010);
	CHECK_STR("200000-201000 rw- allocator; 201000-202000 r-- program; "
		  "202000-203000 rw- allocator; 203000-205000 r-- program",
		  map_of(scene, 0));
	CHECK(space_claim(scene->space, 0, 0x201010));
	CHECK(!space_claim(scene->space, 0, 0x202020));
	CHECK(space_claim(scene->space, 0, 0x203010));
	CHECK_STR("200000-201000 rw- allocator; 201000-202000 r-- allocator; "
		  "202000-203000 rw- allocator; 203000-205000 r-- allocator",
		  map_of(scene, 0));
	scene_free(scene);
}

TEST(space_a_large_block_is_one_until_another_lies_in_it)
{
	struct scene *scene = scene_new(64);

	ADD(scene, TRACE_MMAP, 0x200000, 0x200000, RW, .origin = TRACE_ORIGIN_ALLOCATOR);
	space_claim(scene->space, 0, 0x200010);
	CHECK_STR("200000-400000 rw- malloc-large", map_of(scene, 0));
	space_claim(scene->space, 0, 0x200060);
	CHECK_STR("200000-400000 rw- allocator", map_of(scene, 0));
	// The heap, stacks and libraries stay what they are.
	ADD(scene, TRACE_BRK, .old_address = 0x900000, .address = 0x910000,
	    .origin = TRACE_ORIGIN_ALLOCATOR);
	space_claim(scene->space, 0, 0x900010);
	CHECK_STR("200000-400000 rw- allocator; 900000-910000 rw- malloc-heap", map_of(scene, 0));
	space_claim(scene->space, 0, 0x123); // nothing there
	space_claim(scene->space, 77, 0x900010);
	scene_free(scene);
}

TEST(space_absurd_ranges_are_counted_and_not_believed)
{
	struct scene *scene = scene_new(64);

	ADD(scene, TRACE_MMAP, 0x10001, 0x1000, RW);
	ADD(scene, TRACE_MMAP, 0x10000, 0, RW);
	ADD(scene, TRACE_MMAP, 0x10000, UINT64_MAX, RW);
	ADD(scene, TRACE_MMAP, 0x10000, UINT64_MAX - 0xffff, RW);
	ADD(scene, TRACE_MMAP, UINT64_MAX - 0xfff, 0x1000, RW);
	ADD(scene, TRACE_MUNMAP, 0x10800, 0x1000);
	ADD(scene, TRACE_MPROTECT, 0x10000, UINT64_MAX, RW);
	ADD(scene, TRACE_MREMAP, .old_address = 0x10000, .old_size = 0x4000, .address = 0x11000,
	    .size = 0x4000); // onto itself
	ADD(scene, TRACE_MREMAP, .old_address = 1, .old_size = 1, .address = 0x1000, .size = 1);
	ADD(scene, TRACE_BRK, .old_address = 1, .address = UINT64_MAX);
	ADD(scene, TRACE_MADVISE, 0x10000, UINT64_MAX, .flags = 4);
	ADD(scene, TRACE_MAPPED, 0x7fff00000001, 0x1000, RW);
	CHECK_EQ(12, space_all(scene->space)->absurd);
	CHECK_STR("", map_of(scene, 0));
	// Nothing to move or protect there: it is told, too.
	ADD(scene, TRACE_MPROTECT, 0x10000, 0x1000, RW);
	ADD(scene, TRACE_MREMAP, .old_address = 0x10000, .old_size = 0x1000, .address = 0x10000,
	    .size = 0x2000);
	CHECK_EQ(2, space_all(scene->space)->unknown);
	scene_free(scene);
}

TEST(space_a_process_of_32_bits_ends_at_4_gib)
{
	struct scene *scene = scene_new(32);

	ADD(scene, TRACE_MMAP, 0xfffff000, 0x1000, RW);
	CHECK_EQ(0, space_all(scene->space)->absurd);
	ADD(scene, TRACE_MMAP, 0xfffff000, 0x2000, RW);
	ADD(scene, TRACE_MMAP, 0x7f0000000000, 0x1000, RW);
	CHECK_EQ(2, space_all(scene->space)->absurd);
	CHECK_EQ(UINT64_C(1) << 32, space_limit(scene->space, 0));
	scene_free(scene);
	scene = scene_new(64);
	CHECK_EQ(UINT64_C(1) << 47, space_limit(scene->space, 0));
	ADD(scene, TRACE_MMAP, UINT64_C(1) << 50, 0x1000, RW);
	CHECK_EQ(0, space_all(scene->space)->absurd);
	CHECK_EQ(UINT64_C(1) << 56, space_limit(scene->space, 0));
	scene_free(scene);
}

enum { PAGES = 120 };

// One page, as simply as can be.
struct page {
	bool mapped, committed;
	uint32_t protection;
};

static void pages_protect(struct page *page, uint32_t protection)
{
	page->protection = protection;
	if (protection == NONE)
		page->committed = false;
	else if (protection & 2)
		page->committed = true;
}

static void step(struct scene *scene, struct page *pages)
{
	static const uint32_t protections[] = { NONE, READ, RW };
	unsigned low = (unsigned)rand() % (PAGES - 1);
	unsigned count = 1 + (unsigned)rand() % 12;
	uint32_t protection = protections[rand() % 3];
	unsigned to = (unsigned)rand() % (PAGES - 20);
	unsigned more = 1 + (unsigned)rand() % 12;
	struct page saved[PAGES];

	if (low + count > PAGES)
		count = PAGES - low;
	switch (rand() % 4) {
	case 0:
		ADD(scene, TRACE_MMAP, (low + 16ull) * PAGE, (uint64_t)count * PAGE, protection,
		    .flags = FIXED);
		memset(pages + low, 0, count * sizeof *pages);
		for (unsigned i = low; i < low + count; i++) {
			pages[i].mapped = true;
			pages_protect(&pages[i], protection);
		}
		break;
	case 1:
		ADD(scene, TRACE_MUNMAP, (low + 16ull) * PAGE, (uint64_t)count * PAGE);
		memset(pages + low, 0, count * sizeof *pages);
		break;
	case 2:
		ADD(scene, TRACE_MPROTECT, (low + 16ull) * PAGE, (uint64_t)count * PAGE,
		    protection);
		for (unsigned i = low; i < low + count; i++)
			if (pages[i].mapped)
				pages_protect(&pages[i], protection);
		break;
	case 3:
		// A move of known memory, which keeps its length or shrinks.
		if (more > count || (to < low + count && low < to + more))
			break;
		ADD(scene, TRACE_MREMAP, .old_address = (low + 16ull) * PAGE,
		    .old_size = (uint64_t)count * PAGE, .address = (to + 16ull) * PAGE,
		    .size = (uint64_t)more * PAGE, .flags = 3);
		memcpy(saved, pages + low, more * sizeof *pages);
		memset(pages + low, 0, count * sizeof *pages);
		memset(pages + to, 0, more * sizeof *pages);
		memcpy(pages + to, saved, more * sizeof *pages);
		break;
	}
}

TEST(space_agrees_with_single_pages_through_a_long_random_life)
{
	static struct page pages[PAGES];

	srand(29);
	for (int round = 0; round < 30; round++) {
		struct scene *scene = scene_new(64);

		memset(pages, 0, sizeof pages);
		for (int i = 0; i < 300; i++) {
			const struct ranges *ranges = space_ranges(scene->space, 0);
			uint64_t mapped = 0;
			uint64_t committed = 0;

			step(scene, pages);
			for (unsigned page = 0; page < PAGES; page++) {
				const struct range *range =
					ranges_find(ranges, (page + 16ull) * PAGE);

				CHECK_EQ(pages[page].mapped, range != NULL);
				if (!range)
					continue;
				CHECK_EQ(pages[page].protection, range->protection);
				CHECK_EQ(pages[page].committed,
					 space_commit(scene->space, range) != NULL);
				mapped += PAGE;
				committed += pages[page].committed ? PAGE : 0;
			}
			CHECK_EQ(mapped, space_all(scene->space)->reserved_bytes);
			CHECK_EQ(committed, scene->level);
		}
		scene_free(scene);
	}
}
