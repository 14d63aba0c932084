// Pools of a guest become heaps of the trace.
#include "collect/pools.h"
#include "test/test.h"
#include "trace/reader.h"

#include <sys/mman.h>
#include <unistd.h>

static struct writer *begin(int *fd)
{
	struct trace_info info = { .tool = (char *)"",
				   .host = (char *)"",
				   .command = (char *)"",
				   .directory = (char *)"",
				   .options = (char *)"" };
	struct trace_process process = { .parent = TRACE_NONE, .exe = (char *)"/bin/a" };
	struct writer *writer;
	struct err err;

	*fd = memfd_create("trace", 0);
	writer = writer_new(*fd, &info, &err);
	for (int i = 0; i < 2; i++)
		writer_add_process(writer, &process);
	return writer;
}

TEST(pools_become_heaps_at_their_first_event_under_their_names)
{
	struct pools pools = { 0 };
	int fd;
	struct writer *writer = begin(&fd);

	pools_add(&pools, 1, "one", 3);
	pools_add(&pools, 2, "two", 3);
	CHECK_EQ(1, writer_counts(writer)->heaps);
	CHECK_EQ(1, pools_heap(&pools, 2, 0, writer));
	CHECK_EQ(2, pools_heap(&pools, 1, 0, writer));
	CHECK_EQ(1, pools_heap(&pools, 2, 0, writer));
	CHECK_EQ(3, pools_heap(&pools, UINT32_MAX, 0, writer)); // never told of
	CHECK_EQ(4, writer_counts(writer)->heaps);
	pools_fini(&pools);
	writer_free(writer);
	close(fd);
}

TEST(pools_of_a_parent_are_heaps_of_the_childs_own)
{
	struct pools parent = { 0 }, child = { 0 };
	int fd;
	struct writer *writer = begin(&fd);

	pools_add(&parent, 1, "one", 3);
	pools_add(&parent, 2, "two", 3);
	pools_heap(&parent, 1, 0, writer);
	pools_inherit(&child, &parent, 2); // the second was made after the fork
	CHECK_EQ(1, child.count);
	CHECK_STR("one", child.list[0].name);
	CHECK_EQ(2, pools_heap(&child, 1, 1, writer));
	CHECK_EQ(1, pools_heap(&parent, 1, 0, writer));
	pools_fini(&child);
	pools_fini(&child);
	pools_fini(&parent);
	writer_free(writer);
	close(fd);
}
