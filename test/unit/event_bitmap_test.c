// The events of the blocks that lived so long, or outlived a window, and no others.
#include "engine/replay/event_bitmap.h"
#include "test/unit/assembled.h"

static const char trace[] = "process p pid=1\n"
			    "thread t p tid=1\n"
			    "@100 t malloc 0x1000 10\n"            // 0: lives 900, freed at 1000
			    "@200 t malloc 0x2000 20\n"            // 1: 100
			    "@300 t free 0x2000\n"                 // 2
			    "@400 t malloc 0x2000 30\n"            // 3: realloc ends it: 100
			    "@500 t realloc 0x2000 -> 0x3000 40\n" // 4: never freed
			    "@600 t malloc 0x4000 50\n"            // 5: freed at 900
			    "@700 t realloc-free 0x4000\n"         // 6: failed
			    "@800 t realloc-undo 0x4000 1000000\n" // 7
			    "@900 t free 0x4000\n"                 // 8
			    "@1000 t free 0x1000\n"                // 9
			    "@1100 t free 0x9000\n"                // 10: nothing known
			    "@1200 t malloc 0x5000 60\n"           // 11: lost
			    "@1300 t malloc 0x5000 70\n"           // 12: until the end
			    "@2000 end p exit=0\n"
			    "end\n";

// "b" begins, "e" ends, "x" both.
static void check(const char *expected, const char *lifetime, const char *impact, const char *from,
		  const char *to)
{
	struct reader *reader = assembled_open(trace);
	struct progress progress = { .mode = PROGRESS_NONE };
	struct query query = { 0 };
	struct moment_edge window[2];
	struct err err = { 0 };
	char found[14] = "";
	struct event_bitmap *event_bitmap;

	CHECK(moment_find_window(from, to, reader, NULL, NULL, window, &err));
	CHECK(!lifetime || query_add_lifetime(&query, lifetime, &err));
	CHECK(!impact || query_add_impact(&query, impact, &err));
	event_bitmap = event_bitmap_new(reader, &query, window, 1 << 20, &progress);
	for (unsigned i = 0; i < 13; i++) {
		bool begins = event_bitmap_begin(event_bitmap, i),
		     ends = event_bitmap_end(event_bitmap, i);

		found[i] = begins && ends ? 'x' : begins ? 'b' : ends ? 'e' : '-';
	}
	CHECK_STR(expected, found);
	CHECK(!event_bitmap_begin(event_bitmap, 1000000) &&
	      !event_bitmap_end(event_bitmap, 1000000));
	event_bitmap_free(event_bitmap);
	query_fini(&query);
	reader_close(reader);
}

TEST(picks_of_everything_are_all_beginnings_and_ends)
{
	check("bbebxb--ee-bx", NULL, NULL, NULL, NULL);
}

TEST(picks_by_lifetime)
{
	check("-bebe------be", "..100ns", NULL, NULL, NULL);
	check("b--------e---", "900ns", NULL, NULL, NULL);
	check("b---b----e--b", ">=700ns", NULL, "begin", NULL);
	check("-----b--e----", "200ns..300ns", NULL, NULL, NULL);
}

TEST(picks_by_what_they_are_to_a_window)
{
	// (250ns, 950ns]
	check("b--------e---", NULL, "persistent", "250ns", "950ns");
	check("---be--------", NULL, "AIFI", "250ns", "550ns");
	check("-be-b--------", NULL, "impacting", "250ns", "550ns");
	check("-be----------", NULL, "AOFI", "250ns", "550ns");
	check("---beb--e----", NULL, "transient", "250ns", "950ns");
}
