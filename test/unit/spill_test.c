// What engine/index/spill.h promises.
#include "engine/index/spill.h"

#include "os/file.h"
#include "os/thread.h"
#include "test/test.h"

enum { OPENED = 500, THREADS = 2 };

struct opener {
	int directory;
	unsigned refused;
};

static void *open_many(void *context)
{
	struct opener *opener = context;
	struct err err = { 0 };

	for (int i = 0; i < OPENED; i++) {
		struct spill spill;

		opener->refused += !spill_open(&spill, opener->directory, 64, &err);
		spill_close(&spill);
	}
	return NULL;
}

// While an index is built, one thread has what waits for its end, another what never ends.
TEST(files_of_two_threads_have_names_of_their_own)
{
	struct opener openers[THREADS];
	struct thread *threads[THREADS];
	int directory = file_open_folder(test_temp_dir());

	CHECK(directory >= 0);
	for (int i = 0; i < THREADS; i++) {
		openers[i] = (struct opener){ .directory = directory };
		threads[i] = thread_start(open_many, &openers[i]);
		CHECK(threads[i] != NULL);
	}
	for (int i = 0; i < THREADS; i++)
		thread_join(threads[i]);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQ(0, openers[i].refused);
	file_close(directory);
}

// 64 bytes of 100 are in the file, the others in the buffer: also what ends before, at and after
// that.
TEST(what_was_put_is_copied_from_file_and_buffer_while_more_may_come)
{
	uint8_t put[100], got[100];
	struct spill spill;
	struct err err = { 0 };
	int directory = file_open_folder(test_temp_dir());

	CHECK(spill_open(&spill, directory, 64, &err));
	for (size_t i = 0; i < sizeof put; i++)
		put[i] = (uint8_t)(i * 7);
	for (size_t i = 0; i < sizeof put; i += 4)
		spill_put(&spill, put + i, 4);
	for (size_t at = 0; at < sizeof put; at += 8)
		for (size_t size = 0; size <= sizeof put - at; size += 4) {
			CHECK(spill_copy(&spill, at, got, size));
			CHECK_BYTES(put + at, got, size);
		}
	spill_close(&spill);
	file_close(directory);
}
