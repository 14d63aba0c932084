// Lines of /proc/PID/maps, as the kernel writes them and as it would not.
#include "collect/maps_text.h"
#include "test/test.h"

#include <string.h>

// Take the first line of `text` apart, which ends at an unmapped page.
static bool take(const char *text, struct maps_line *line)
{
	size_t size = strlen(text);
	const char *at = (const char *)test_guarded_copy(text, size);

	return maps_text_next(&at, at + size, line);
}

TEST(maps_text_takes_each_kind_of_line_apart)
{
	struct maps_line line;

	CHECK(take("7f00-8000 r-xp 00001000 fe:1a 332835                    /usr/lib/a b.so\nrest",
		   &line));
	CHECK_EQ(0x7f00, line.start);
	CHECK_EQ(0x8000, line.end);
	CHECK_EQ(5, line.protection);
	CHECK(!line.shared);
	CHECK_EQ(0x1000, line.offset);
	CHECK_EQ(0xfeull << 20 | 0x1a, line.device);
	CHECK_EQ(332835, line.inode);
	CHECK_EQ(15, line.path_length);
	CHECK(memcmp(line.path, "/usr/lib/a b.so", 15) == 0);
	CHECK(take("7ffff7a00000-7ffff7a01000 rw-s 00000000 00:00 0 \n", &line));
	CHECK_EQ(3, line.protection);
	CHECK(line.shared);
	CHECK_EQ(0, line.path_length);
	CHECK(take("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0    [vsyscall]", &line));
	CHECK_EQ(UINT64_MAX - 0x9fffff, line.start);
	CHECK_EQ(10, line.path_length);
}

TEST(maps_text_steps_over_what_is_no_mapping)
{
	static const char text[] = "Rss:                   4 kB\n"
				   "zzz\n"
				   "\n"
				   "5000-4000 rw-p 0 0:0 0\n"
				   "4000-5000 rw\n"
				   "4000-5000 rw-p 0 0:0 0";
	const char *at = text, *end = text + sizeof text - 1;
	struct maps_line line;
	int good = 0;

	while (at < end)
		good += maps_text_next(&at, end, &line);
	CHECK_EQ(1, good);
	CHECK_EQ(0x4000, line.start);
}

static bool is_ours(const char *path)
{
	struct maps_line line = { .path_length = strlen(path) };

	line.path = (const char *)test_guarded_copy(path, line.path_length);
	return maps_text_is_ours(&line);
}

TEST(maps_text_knows_the_recorders_own)
{
	CHECK(is_ours("/usr/lib/tidemark/libtidemark.so"));
	CHECK(is_ours("/usr/lib/tidemark/libtidemark32.so"));
	CHECK(is_ours("/usr/lib/tidemark/libtidemark-musl.so"));
	CHECK(is_ours("/usr/lib/tidemark/libtidemark32.so (deleted)"));
	CHECK(is_ours("/memfd:tidemark (deleted)"));
	CHECK(is_ours("/memfd:tidemark-clock (deleted)"));
	CHECK(is_ours("[tidemark]"));
	CHECK(!is_ours(""));
	CHECK(!is_ours(" (deleted)"));
	CHECK(!is_ours("[heap]"));
	CHECK(!is_ours("/usr/lib/libc.so.6"));
	CHECK(!is_ours("/usr/lib/mylibtidemark.so"));
	CHECK(!is_ours("/home/me/libtidemark.so/notes.txt"));
	CHECK(!is_ours("/memfd:tide"));
}

TEST(maps_text_survives_every_cut)
{
	static const char text[] = "7f00-8000 r-xp 00001000 fe:1a 332835 /usr/lib/a.so";
	struct maps_line line;

	for (size_t cut = 0; cut < sizeof text; cut++) {
		const char *at = (const char *)test_guarded_copy(text, cut);
		const char *end = at + cut;

		maps_text_next(&at, end, &line);
		CHECK(at == end);
	}
}
