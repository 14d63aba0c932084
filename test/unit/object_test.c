// What symbols/object.h promises of the CRC of a file.
#include "symbols/object.h"

#include "os/thread.h"
#include "test/test.h"

#include <stdio.h>

enum { THREADS = 4 };

struct asker {
	const char *path;
	uint32_t crc;
	bool good;
};

static void *ask(void *context)
{
	struct asker *asker = context;

	asker->good = object_crc(asker->path, &asker->crc);
	return NULL;
}

// Each queue of the viewer has symbols of its own, which are looked for in a thread of its own.
TEST(object_crc_is_the_same_whichever_thread_is_the_first_to_ask)
{
	struct asker askers[THREADS];
	struct thread *threads[THREADS];
	const char *path = test_temp_path("digits");
	FILE *file = fopen(path, "w");

	CHECK(file != NULL && fputs("123456789", file) >= 0 && fclose(file) == 0);
	for (int i = 0; i < THREADS; i++) {
		askers[i] = (struct asker){ .path = path };
		threads[i] = thread_start(ask, &askers[i]);
		CHECK(threads[i] != NULL);
	}
	for (int i = 0; i < THREADS; i++)
		thread_join(threads[i]);
	for (int i = 0; i < THREADS; i++) {
		CHECK(askers[i].good);
		CHECK_EQ(0xcbf43926, askers[i].crc);
	}
}

TEST(object_crc_of_a_file_that_is_not_there_is_none)
{
	uint32_t crc;

	CHECK(!object_crc(test_temp_path("none"), &crc));
}
