// Sites that look the same to a reader are one row, and the heaviest come first.
#include "base/mem.h"
#include "report/find/sites.h"
#include "test/unit/assembled.h"

// Two calls on one line (f1, f2), the same code mapped a second time elsewhere (g1, g2), and a
// forked child that uses its parent's stacks.
static const char trace[] = "process a pid=1 exe=\"/bin/app\"\n"
			    "process b pid=2 parent=a start=fork exe=\"/bin/app\"\n"
			    "thread t a\n"
			    "thread u b\n"
			    "module m a 0x1000-0x2000 bias=0x1000 \"/lib/m.so\"\n"
			    "module n a 0x8000-0x9000 bias=0x8000 \"/lib/m.so\"\n"
			    "frame f1 0x10\n"
			    "name f1 \"twice\" \"a.c\":7\n"
			    "frame f2 0x20\n"
			    "name f2 \"twice\" \"a.c\":7\n"
			    "frame g1 m 0x1234\n"
			    "frame g2 n 0x8234\n"
			    "stack s1 f1 < main a.c:1\n"
			    "stack s2 f2 < main a.c:1\n"
			    "stack s3 g1 < main a.c:1\n"
			    "stack s4 g2 < main a.c:1\n"
			    "stack s5 flags=1 f1\n"
			    "stack s6 f1\n"
			    "@1 t malloc s1 0x10 100\n"
			    "@2 t malloc s2 0x20 100\n"
			    "@3 t malloc s3 0x30 30\n"
			    "@4 t malloc s4 0x40 40\n"
			    "@5 u malloc s1 0x10 1000\n"
			    "@6 u malloc s3 0x30 1\n"
			    "@7 t malloc s5 0x50 5\n"
			    "@8 t malloc s6 0x60 6\n"
			    "end\n";

static struct heap *heap_of(struct reader *reader)
{
	struct heap *heap = heap_new(NULL);
	struct progress progress;

	progress_begin(&progress, PROGRESS_NONE, "", 1);
	heap_read(heap, reader, &progress, NULL, NULL);
	return heap;
}

// "count/bytes" of each row, heaviest first.
static char *describe(const struct sites *sites, enum sites_question question)
{
	struct sites_list list = sites_list(sites, question);
	struct str text = { 0 };

	for (size_t i = 0; i < list.count; i++)
		str_format(&text, "%d/%d ", (int)list.rows[i]->amounts[question].count,
			   (int)list.rows[i]->amounts[question].bytes);
	str_format(&text, "rest %d: %d/%d of %d/%d", (int)list.rest_count, (int)list.rest.count,
		   (int)list.rest.bytes, (int)list.total.count, (int)list.total.bytes);
	sites_list_fini(&list);
	return str_take(&text);
}

static void check_rows(enum sites_merge merge, enum sites_question question, uint64_t rows_max,
		       uint64_t bytes_min, const char *expected)
{
	struct reader *reader = assembled_open(trace);
	struct whole whole = { .heap = heap_of(reader) };
	struct names *names = names_new(reader, NULL);
	struct progress progress;
	struct sites_options options = { merge, rows_max, bytes_min, NULL, 0 };
	struct sites sites;
	char *actual;

	progress_begin(&progress, PROGRESS_NONE, "", 1);
	sites_init(&sites, &options, &whole, reader, names, &progress);
	actual = describe(&sites, question);
	CHECK_STR(expected, actual);
	mem_free(actual);
	sites_fini(&sites);
	names_free(names);
	whole_fini(&whole);
	reader_close(reader);
}

TEST(sites_are_exact_by_file_and_offset_and_process)
{
	check_rows(SITES_EXACT, SITES_BYTES, 0, 0,
		   "1/1000 1/100 1/100 2/70 1/6 1/5 1/1 rest 0: 0/0 of 8/1282");
}

TEST(sites_are_shown_by_function_and_line_and_executable)
{
	// Without symbols g1 and g2 are a module and an offset, the same in both processes.
	check_rows(SITES_AS_SHOWN, SITES_BYTES, 0, 0, "3/1200 3/71 1/6 1/5 rest 0: 0/0 of 8/1282");
	check_rows(SITES_AS_SHOWN, SITES_CALLS, 0, 0, "3/1200 3/71 1/6 1/5 rest 0: 0/0 of 8/1282");
}

TEST(sites_that_are_left_out_are_still_in_the_sums)
{
	check_rows(SITES_AS_SHOWN, SITES_BYTES, 1, 0, "3/1200 rest 3: 5/82 of 8/1282");
	check_rows(SITES_AS_SHOWN, SITES_BYTES, 0, 50, "3/1200 3/71 rest 2: 2/11 of 8/1282");
	check_rows(SITES_AS_SHOWN, SITES_TEMPORARY, 0, 0, "rest 0: 0/0 of 0/0");
}
