// What docs/format.md section 5 promises about definitions that nobody vouches for.
#include "test/test.h"
#include "trace/defs.h"

static void read_payload(struct defs *defs, const struct bytes *payload, size_t size)
{
	struct bytes_cursor in = bytes_cursor(test_guarded_copy(payload->data, size), size);
	struct defs_record record;

	while (defs_next(&in, &record))
		defs_read(defs, &record);
}

static void put_sample(struct bytes *out)
{
	char *args[] = { "app", "x" };
	struct trace_process process = { .parent = TRACE_NONE,
					 .pid = 5,
					 .bits = 64,
					 .start = 1,
					 .exe = "/bin/app",
					 .args = args,
					 .args_count = 2 };
	struct trace_thread thread = { .tid = 5, .name = "main" };
	struct trace_module module = { .id = 1,
				       .start = 16,
				       .end = 32,
				       .build_id_length = 4,
				       .build_id = { 1, 2, 3, 4 },
				       .path = "/bin/app" };
	struct trace_frame frames[] = { { .id = 1, .module = 1, .pc = 20 },
					{ .id = 2, .module = 1, .pc = 18, .flags = 1 },
					{ .id = 3, .module = 0, .pc = UINT64_MAX } };
	struct trace_stack stacks[] = { { .parent = 0, .frame = 1 },
					{ .parent = 1, .frame = 3, .flags = 2 },
					{ .parent = 1, .frame = 2 } };
	struct trace_name names[] = { { .function = "inner", .file = "a.h", .line = 3 },
				      { .function = "outer", .file = "", .line = 0 } };

	struct trace_heap heap = { .id = 1, .handle = 0x10000, .name = "pool" };
	struct trace_file file = { .id = 1, .device = 2, .inode = 3, .path = "/lib/x" };
	struct trace_mapping mappings[] = {
		{ .start = 4096, .end = 8192, .protection = 5, .file = 1, .rss = 4096 },
		{ .start = 8192, .end = 65536, .protection = 3, .shared = true, .swap = 7 },
	};
	struct trace_pages pages[] = {
		{ .start = 4096, .end = 8192, .flags = TRACE_PAGES_PRESENT },
		{ .start = 12288, .end = 20480, .flags = TRACE_PAGES_SWAPPED },
	};
	struct trace_snapshot snapshot = { .reason = TRACE_SNAPSHOT_EXIT,
					   .time_ns = 9,
					   .began = 5,
					   .ended = 7,
					   .page_bytes = 4096,
					   .rss_bytes = 4096,
					   .mappings = mappings,
					   .pages = pages,
					   .mappings_count = 2,
					   .pages_count = 2 };

	defs_put_process(out, &process);
	defs_put_thread(out, &thread);
	defs_put_module(out, &module);
	defs_put_frames(out, frames, 3);
	defs_put_stacks(out, 1, stacks, 3);
	defs_put_name(out, 2, names, 2);
	defs_put_heap(out, &heap);
	defs_put_file(out, &file);
	defs_put_snapshot(out, &snapshot);
}

TEST(defs_give_back_what_was_put)
{
	struct bytes payload = { 0 };
	struct defs defs;

	defs_init(&defs);
	put_sample(&payload);
	// A second reading of the same definitions changes nothing.
	read_payload(&defs, &payload, payload.size);
	read_payload(&defs, &payload, payload.size);
	CHECK_EQ(0, defs.refused + defs.unknown + defs.gaps);
	CHECK_EQ(1, defs.processes_count);
	CHECK_STR("x", defs.processes[0].args[1]);
	CHECK_EQ(TRACE_NONE, defs.processes[0].parent);
	CHECK_STR("main", defs.threads[0].name);
	CHECK_STR("/bin/app", defs.modules[1].path);
	CHECK_EQ(4, defs.frames_count);
	CHECK_EQ(UINT64_MAX, defs.frames[3].pc);
	CHECK_EQ(1, defs.frames[2].flags);
	CHECK_EQ(4, defs.stacks_count);
	CHECK_EQ(1, defs.stacks[3].parent);
	CHECK_EQ(2, defs.stacks[2].flags);
	CHECK_EQ(2, defs.names[2].count);
	CHECK_STR("outer", defs.names[2].names[1].function);
	CHECK_EQ(2, defs.heaps_count);
	CHECK_STR("pool", defs.heaps[1].name);
	CHECK_EQ(0x10000, defs.heaps[1].handle);
	CHECK_EQ(2, defs.files_count);
	CHECK_EQ(3, defs.files[1].inode);
	CHECK_STR("/lib/x", defs.files[1].path);
	CHECK_EQ(2, defs.snapshots_count); // no ids: each reading has them again
	CHECK_EQ(7, defs.snapshots[0].head.ended);
	CHECK(!defs.snapshots[0].head.pages);
	CHECK_EQ(2, defs.snapshots[0].head.pages_count);
	defs_fini(&defs);
	bytes_fini(&payload);
}

// What holds of the tables whatever was read.
static void check_tables(const struct defs *defs)
{
	for (size_t i = 0; i < defs->processes_count; i++)
		CHECK(defs->processes[i].exe &&
		      (defs->processes[i].parent == TRACE_NONE || defs->processes[i].parent < i));
	for (size_t i = 0; i < defs->threads_count; i++)
		CHECK(defs->threads[i].process < defs->processes_count &&
		      memchr(defs->threads[i].name, 0, 16));
	for (size_t i = 0; i < defs->modules_count; i++)
		CHECK(defs->modules[i].path && defs->modules[i].build_id_length <= 32);
	for (size_t i = 0; i < defs->heaps_count; i++)
		CHECK(defs->heaps[i].name && defs->heaps[i].process < defs->processes_count + 1);
	for (size_t i = 0; i < defs->files_count; i++)
		CHECK(defs->files[i].path != NULL);
	for (size_t i = 0; i < defs->snapshots_count; i++)
		CHECK(defs->snapshots[i].head.process < defs->processes_count);
	for (size_t i = 1; i < defs->frames_count; i++)
		CHECK(defs->frames[i].module < defs->modules_count);
	for (size_t i = 1; i < defs->stacks_count; i++)
		CHECK(defs->stacks[i].parent < i && defs->stacks[i].frame < defs->frames_count);
}

TEST(defs_stay_sound_whatever_is_cut_or_flipped)
{
	struct bytes payload = { 0 };

	put_sample(&payload);
	for (size_t cut = 0; cut < payload.size; cut++) {
		struct defs defs;

		defs_init(&defs);
		read_payload(&defs, &payload, cut);
		check_tables(&defs);
		defs_fini(&defs);
	}
	for (size_t at = 0; at < payload.size; at++) {
		for (int bit = 0; bit < 8; bit++) {
			struct defs defs;

			defs_init(&defs);
			payload.data[at] ^= (uint8_t)(1 << bit);
			read_payload(&defs, &payload, payload.size);
			payload.data[at] ^= (uint8_t)(1 << bit);
			check_tables(&defs);
			defs_fini(&defs);
		}
	}
	bytes_fini(&payload);
}

TEST(defs_fill_a_gap_with_what_is_not_known)
{
	struct trace_stack stack = { .parent = 900, .frame = 0 };
	struct trace_thread thread = { .id = 3, .process = 2, .tid = 9 };
	struct bytes payload = { 0 };
	struct defs defs;

	defs_init(&defs);
	defs_put_stacks(&payload, 1000, &stack, 1);
	defs_put_thread(&payload, &thread);
	read_payload(&defs, &payload, payload.size);
	check_tables(&defs);
	CHECK_EQ(1001, defs.stacks_count);
	CHECK_EQ(900, defs.stacks[1000].parent);
	CHECK(defs.stacks[500].flags & TRACE_STACK_INCOMPLETE);
	CHECK_EQ(4, defs.threads_count);
	CHECK_EQ(3, defs.processes_count);
	CHECK_EQ(9, defs.threads[3].tid);
	defs_fini(&defs);
	bytes_fini(&payload);
}

TEST(defs_refuse_a_gap_that_no_damage_leaves)
{
	struct trace_stack stack = { 0 };
	struct bytes payload = { 0 };
	struct defs defs;

	defs_init(&defs);
	defs_put_stacks(&payload, UINT32_MAX - 10, &stack, 1);
	read_payload(&defs, &payload, payload.size);
	CHECK_EQ(1, defs.stacks_count);
	CHECK_EQ(1, defs.refused);
	defs_fini(&defs);
	bytes_fini(&payload);
}

TEST(defs_find_an_option_where_a_word_before_ends_like_it)
{
	CHECK_STR("12", defs_option("untrimmed=5 trimmed=12", "trimmed="));
	CHECK_STR("5 free-stacks", defs_option("trimmed=5 free-stacks", "trimmed="));
	CHECK(!defs_option("untrimmed=5", "trimmed=") && !defs_option(NULL, "trimmed="));
	CHECK(defs_has_word("imported=x subtotals totals", "totals"));
	CHECK(!defs_has_word("imported=x subtotals totals2", "totals") &&
	      !defs_has_word(NULL, "x"));
}

TEST(defs_cut_texts_and_arguments_that_are_too_long)
{
	char *text = mem_alloc(DEFS_TEXT_MAX + 100, 1);
	char **args = mem_alloc(200, sizeof *args);
	struct trace_process process = {
		.parent = TRACE_NONE, .exe = text, .args = args, .args_count = 200
	};
	struct bytes payload = { 0 };
	struct defs defs;

	memset(text, 'a', DEFS_TEXT_MAX + 99);
	for (int i = 0; i < 200; i++)
		args[i] = text;
	defs_init(&defs);
	defs_put_process(&payload, &process);
	CHECK(payload.size < DEFS_ARGS_MAX + 2 * DEFS_TEXT_MAX);
	read_payload(&defs, &payload, payload.size);
	CHECK_EQ(DEFS_TEXT_MAX, strlen(defs.processes[0].exe));
	CHECK_EQ(200, defs.processes[0].args_count);
	CHECK_STR("", defs.processes[0].args[199]);
	defs_fini(&defs);
	bytes_fini(&payload);
	mem_free(args);
	mem_free(text);
}

TEST(defs_name_a_program_by_its_file_and_one_in_no_place_by_its_argument)
{
	char *args[] = { (char *)"/usr/bin/crun", (char *)"run" };
	struct trace_process process = { .exe = (char *)"/usr/lib/gcc/cc1",
					 .args = args,
					 .args_count = 2 };

	CHECK_STR("cc1", defs_program(&process));
	process.exe = (char *)"/";
	CHECK_STR("crun", defs_program(&process));
	process.args_count = 0;
	CHECK_STR("", defs_program(&process));
}
