// What docs/format.md section 15 promises about the text form.
#include "test/test.h"
#include "test/unit/sample_trace.h"
#include "trace/asm.h"

static char *dump(const char *path)
{
	struct asm_options options = asm_dump_all();
	struct str text = { 0 };
	struct sink sink = sink_to_str(&text);
	struct err err = { 0 };
	struct reader *reader = reader_open(path, &err);

	CHECK_STR("", err.text);
	CHECK(asm_dump(reader, &options, &sink, &err));
	reader_close(reader);
	return str_take(&text);
}

static bool assemble(const char *text, const char *path, struct err *err)
{
	int fd = sample_create(path);
	bool ok = asm_read(text, strlen(text), fd, err);

	close(fd);
	return ok;
}

TEST(asm_gives_back_random_traces_word_for_word)
{
	const char *path = test_temp_path("random.tide");
	const char *again = test_temp_path("again.tide");

	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct sample sample = { 0 };
		struct err err = { 0 };
		char *first, *second;

		sample_write(path, seed, 2000, &sample);
		first = dump(path);
		CHECK(assemble(first, again, &err));
		second = dump(again);
		CHECK(strlen(first) > 50000);
		CHECK(strcmp(first, second) == 0);
		mem_free(first);
		mem_free(second);
		sample_fini(&sample);
	}
}

static const char hand_written[] =
	"; The second free of a block is counted, and does not end the analysis.\n"
	"trace   command=\"./app --fast\" tick=100000\n"
	"process p1 pid=42 exe=/bin/app arg=app arg=\"two words\" ; its arguments\n"
	"thread  t1 \"main\"\n"
	"\n"
	"stack   s1  work app.c:10 < main app.c:3\n"
	"stack   s2  \"std::vector<int, A>::f(int)\" \"a file.cc\":7 < main app.c:3\n"
	"+0ns    t1 alloc s1 0x1000 64\n"
	"+10us   t1 free     0x1000\n"
	"+10us   t1 free     0x1000\n"
	"@1ms    t1 realloc s2 0x2000 -> 0x3000 128\n"
	"@1ms    t1 aligned s2 0x4000 128 align=4096\n"
	"@1ms    mark p1 t1 \"phase \\\"two\\\"\"\n"
	"@2ms    end p1 signal=11\n"
	"end\n";

static const char canonical[] = "trace id=00000000000000000000000000000000 began=0 tick=100000\n"
				"trace command=\"./app --fast\"\n"
				"process p0 pid=42 exe=\"/bin/app\" arg=\"app\" arg=\"two words\"\n"
				"thread t0 p0 tid=0 \"main\"\n"
				"frame f1 0x1\n"
				"name f1 \"work\" \"app.c\":10\n"
				"frame f2 0x2\n"
				"name f2 \"main\" \"app.c\":3\n"
				"frame f3 0x3\n"
				"name f3 \"std::vector<int, A>::f(int)\" \"a file.cc\":7\n"
				"stack s1 f2\n"
				"stack s2 f1 < s1\n"
				"stack s3 f3 < s1\n"
				"@0 t0 malloc s2 0x1000 64\n"
				"@10000 t0 free 0x1000\n"
				"@20000 t0 free 0x1000\n"
				"@1000000 t0 realloc s3 0x2000 -> 0x3000 128\n"
				"@1000000 t0 aligned s3 0x4000 128 align=4096\n"
				"@1000000 mark p0 t0 \"phase \\\"two\\\"\"\n"
				"@2000000 end p0 signal=11\n"
				"end duration=2000000\n";

static const char written_of_memory[] =
	"process p pid=1\nthread t\n"
	"heap arena \"nodes\"\n"
	"heap h handle=0x10000 created=0x40001\n"
	"file libc device=0xfe01 inode=12 \"/lib/libc.so.6\"\n"
	"stack s1 main\n"
	"+0 t mmap s1 0x7f0000000000 4096 prot=rw flags=private|anonymous\n"
	"+0 t mmap 0x7f0000001000 8192 file=libc offset=4096 prot=r flags=shared|0x80000000 "
	"origin=loader\n"
	"+0 t mmap 0 0x1000000000000 prot=none error=12\n"
	"+0 t munmap 0x7f0000000000 4096\n"
	"+0 t mremap 0x1000 4096 -> 0x3000 8192 flags=maymove\n"
	"+0 t brk 0x5000 -> 0x6000 origin=allocator\n"
	"+0 t mprotect 0x5000 4096 prot=0x1000002\n"
	"+0 t madvise 0x5000 4096 flags=dontneed\n"
	"+0 t madvise 0x5000 4096 flags=77\n"
	"+0 t mlock 0 0 flags=lock-all\n"
	"+0 t mapped 0x400000 4096 prot=rx flags=private file=libc origin=kernel\n"
	"+0 t heap-alloc s1 arena 0x10 16\n"
	"+0 t heap-free s1 arena 0x10\n"
	"+0 t heap-destroy h\n"
	"+0 t before s1 0x70 24\n"
	"+0 t malloc s1 arena 0x20 32 flags=8\n"
	"+0 t realloc s1 arena 0x20 -> 0x40 64\n"
	"+0 t failed arena 99\n"
	"+0 t free arena 0x40\n"
	"snapshot reason=exit rss=8192\n"
	"mapping 0x1000-0x3000 prot=rw shared file=libc rss=4096\n"
	"pages 0x1000-0x2000\n"
	"pages 0x2000-0x3000 present|swapped\n"
	"reach at=5 number=18\n"
	"reachable 0x10 16 t s1 register=4242\n"
	"held 0x40 64 t block=0x10\n"
	"unreachable 0x80 1 t\n"
	"end\n";

static const char canonical_of_memory[] =
	"trace id=00000000000000000000000000000000 began=0 tick=0\n"
	"process p0 pid=1\n"
	"thread t0 p0 tid=0\n"
	"frame f1 0x1\n"
	"name f1 \"main\"\n"
	"stack s1 f1\n"
	"heap h1 p0 \"nodes\"\n"
	"heap h2 p0 handle=0x10000 created=0x40001 \"\"\n"
	"file x1 device=65025 inode=12 \"/lib/libc.so.6\"\n"
	"snapshot p0 reason=exit at=0 began=19 ended=19 page=4096 rss=8192\n"
	"mapping 0x1000-0x3000 prot=rw shared file=x1 rss=4096\n"
	"pages 0x1000-0x2000 present\n"
	"pages 0x2000-0x3000 present|swapped\n"
	"reach p0 reason=exit at=5 number=18 total=3\n"
	"reachable 0x10 16 t0 s1 register=0x1092\n"
	"held 0x40 64 t0 block=0x10\n"
	"unreachable 0x80 1 t0\n"
	"@0 t0 mmap s1 0x7f0000000000 4096 prot=rw flags=private|anonymous\n"
	"@0 t0 mmap 0x7f0000001000 8192 prot=r flags=shared|0x80000000 file=x1 offset=0x1000 "
	"origin=loader\n"
	"@0 t0 mmap 0x0 281474976710656 prot=none flags=0 error=12\n"
	"@0 t0 munmap 0x7f0000000000 4096\n"
	"@0 t0 mremap 0x1000 4096 -> 0x3000 8192 flags=maymove\n"
	"@0 t0 brk 0x5000 -> 0x6000 origin=allocator\n"
	"@0 t0 mprotect 0x5000 4096 prot=0x1000002\n"
	"@0 t0 madvise 0x5000 4096 flags=dontneed\n"
	"@0 t0 madvise 0x5000 4096 flags=77\n"
	"@0 t0 mlock 0x0 0 flags=lock-all\n"
	"@0 t0 mapped 0x400000 4096 prot=rx flags=private file=x1 origin=kernel\n"
	"@0 t0 heap-alloc s1 h1 0x10 16\n"
	"@0 t0 heap-free s1 h1 0x10\n"
	"@0 t0 heap-destroy h2\n"
	"@0 t0 before s1 0x70 24\n"
	"@0 t0 malloc s1 h1 0x20 32 flags=0x8\n"
	"@0 t0 realloc s1 h1 0x20 -> 0x40 64\n"
	"@0 t0 failed h1 99\n"
	"@0 t0 free h1 0x40\n"
	"end duration=0\n";

TEST(asm_takes_virtual_memory_heaps_and_snapshots)
{
	const char *path = test_temp_path("memory.tide");
	struct err err = { 0 };
	char *text;

	CHECK(assemble(written_of_memory, path, &err));
	CHECK_STR("", err.text);
	text = dump(path);
	CHECK_STR(canonical_of_memory, text);
	mem_free(text);
}

TEST(asm_takes_what_people_write_by_hand)
{
	const char *path = test_temp_path("hand.tide");
	struct err err = { 0 };
	char *text;

	CHECK(assemble(hand_written, path, &err));
	text = dump(path);
	CHECK_STR(canonical, text);
	mem_free(text);
}

static const struct {
	const char *text, *message;
} mistakes[] = {
	{ "", "the text describes no trace" },
	{ "; only a comment\n", "the text describes no trace" },
	{ "nonsense\n",
	  "line 1, column 1: a line begins with trace, process, thread, module, frame, "
	  "name, stack, heap, file, snapshot, mapping, pages, reach, end, @TIME or +TIME, not "
	  "with \"nonsense\"" },
	{ "process p\n\nthread t\n@0 t alloc 0x10\n",
	  "line 4, column 12: a size expected at the end of the line" },
	{ "process p\nthread t\n@5 t free 0x10\n@4 t free 0x10\n",
	  "line 4, column 1: time goes back" },
	{ "process p\nthread t\n@5 t munch 0x10\n",
	  "line 3, column 6: no event is called \"munch\"" },
	{ "process p\n@5 x free 0x10\n",
	  "line 2, column 4: \"x\" is neither a thread nor a kind of note" },
	{ "process p\nthread t\n@0 t free zero\n",
	  "line 3, column 11: an address expected, not \"zero\"" },
	{ "process p\nthread t\n@0 t free 0x10 0x20\n",
	  "line 3, column 16: nothing more expected on this line" },
	{ "process p\nthread t\nthread t\n", "line 3, column 8: \"t\" is defined already" },
	{ "thread t\n", "line 1, column 8: a process has to be defined before a thread" },
	{ "process p exe=\"open\n", "line 1, column 11: a quote that does not end on this line" },
	{ "process p exe=\"\\q\"\n", "line 1, column 11: no such escape in quotes" },
	{ "process p pid=4294967296\n", "line 1, column 11: pid is at most 4294967295" },
	{ "process p parent=q\n", "line 1, column 11: pid=, parent=LABEL, generation=, "
				  "start=fork|exec|attach, bits=, began=, exe=TEXT or arg=TEXT "
				  "expected" },
	{ "process p\ntrace tick=3\n", "line 2, column 1: trace lines come before all others" },
	{ "process p\nstack s f < < g\n", "line 2, column 13: a function expected" },
	{ "process p\nthread t\n@0 t aligned 0x10 5 align=3\n",
	  "line 3, column 21: align= takes a power of two" },
	{ "process p\nend\nprocess q\n", "line 3, column 1: nothing may follow the end line" },
	{ "process p\nmodule m 5-4\n", "line 2, column 10: an address range 0x…-0x… expected" },
	{ "process p\n@99999999999999999999 start p\n",
	  "line 2, column 1: a time expected: @NUMBER or +NUMBER, in ns, us, ms or s" },
	{ "+2 end\n", "line 1, column 4: \"end\" needs a process" },
	{ "; nothing but a comment\n", "the text describes no trace" },
	{ "process p\nthread t\n@0 t mmap 0x10\n",
	  "line 3, column 11: a size expected at the end of the line" },
	{ "process p\nthread t\n@0 t munmap 0x10 5 prot=r\n",
	  "line 3, column 20: nothing more expected on this line" },
	{ "process p\nthread t\n@0 t mmap 0x10 5 prot=q\n",
	  "line 3, column 18: what does \"prot=q\" mean?" },
	{ "process p\nthread t\n@0 t mmap 0x10 5 file=libc\n",
	  "line 3, column 18: what does \"file=libc\" mean?" },
	{ "process p\nthread t\n@0 t heap-free h1 5\n",
	  "line 3, column 16: no heap is called \"h1\"" },
	{ "process p\npages 0x1000-0x2000\n", "line 2, column 1: a snapshot has to come before" },
	{ "process p\nsnapshot\npages 0x1000-0x2000\npages 0x1000-0x3000\n",
	  "line 4, column 7: ranges must rise" },
	{ "process p\nsnapshot\npages 0x1000-0x2001\n", "line 3, column 7: whole pages expected" },
	{ "process p\nsnapshot\nmapping 0x1000-0x1000\n", "line 3, column 9: an empty range" },
	{ "process p\nthread t\nheld 0x10 1 t\n",
	  "line 3, column 1: a reach line has to come before" },
	{ "process p\nthread t\nreach\nheld 0x10 1 t\nheld 0x10 1 t\n",
	  "line 5, column 13: blocks have to rise" },
	{ "process p\nsnapshot began=5 ended=4\n",
	  "line 2, column 18: a snapshot that ended before it began" },
	{ "process p\nmodule m 0x10-0x20 build-id=abc\n",
	  "line 2, column 20: build-id=HEX of at most 32 bytes expected" },
	{ "process p\nmodule m 0x10-0x20 bias=1 path\n",
	  "line 2, column 27: bias=, file-size=, file-time=, build-id=HEX or a path in quotes "
	  "expected" },
	{ "file x inode=1 path\n",
	  "line 1, column 16: device=, inode= or a path in quotes expected" },
	{ "process p\nsnapshot reason=none\n",
	  "line 2, column 10: reason=release|exit|growth|asked, at=, began=, ended=, page=, rss=, "
	  "rss-max=, cost= or flags= expected" },
	{ "process p\nsnapshot\nmapping 0x1000-0x2000 prot=rw shared prot=q\n",
	  "line 3, column 38: prot=, shared, offset=, file=LABEL, rss= or another part of it "
	  "expected" },
	{ "process p\nend why=\"no room\" reason=3\n",
	  "line 2, column 19: duration=, why=TEXT or another total expected" },
	{ "snapshot\n", "line 1, column 1: a process has to be defined before a snapshot" },
	{ "heap h\n", "line 1, column 6: a process has to be defined before a heap" },
};

// So dumps a trace in which nothing happened, and so it comes back.
TEST(asm_makes_an_empty_trace_of_a_description_alone)
{
	const char *path = test_temp_path("empty.tide");
	struct err err = { 0 };
	struct reader *reader;

	CHECK(assemble("trace tick=100000\n", path, &err));
	reader = reader_open(path, &err);
	CHECK(reader != NULL);
	CHECK_EQ(100000, reader_info(reader)->tick_ns);
	reader_close(reader);
}

TEST(asm_says_where_a_mistake_is)
{
	const char *path = test_temp_path("mistake.tide");

	for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
		struct err err = { 0 };

		CHECK(!assemble(mistakes[i].text, path, &err));
		CHECK_STR(mistakes[i].message, err.text);
		CHECK_EQ(ERR_FORMAT, err.kind);
	}
}

TEST(asm_survives_every_truncation_of_a_text)
{
	const char *path = test_temp_path("cut.tide");
	int fd = sample_create(path);

	for (size_t cut = 0; cut < sizeof hand_written; cut++) {
		const uint8_t *text = test_guarded_copy(hand_written, cut);
		struct err err = { 0 };

		CHECK(ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0);
		if (!asm_read((const char *)text, cut, fd, &err))
			CHECK(err.kind == ERR_FORMAT && err.text[0] != '\0');
	}
	close(fd);
}

TEST(asm_dumps_a_range_of_times)
{
	const char *path = test_temp_path("hand.tide");
	struct asm_options options = asm_dump_all();
	struct str text = { 0 };
	struct sink sink = sink_to_str(&text);
	struct err err = { 0 };
	struct reader *reader;

	CHECK(assemble(hand_written, path, &err));
	reader = reader_open(path, &err);
	options.definitions = false;
	options.from_ns = 10000;
	options.to_ns = 20000;
	CHECK(asm_dump(reader, &options, &sink, &err));
	CHECK_STR("@10000 t0 free 0x1000\n@20000 t0 free 0x1000\n", str_get(&text));
	str_fini(&text);
	reader_close(reader);
}
