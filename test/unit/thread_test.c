// What os/thread.h promises of processors.
#include "os/thread.h"
#include "test/test.h"

#include <sched.h>

TEST(thread_cores_are_those_that_we_may_run_on)
{
	cpu_set_t before, one;
	unsigned cores = thread_cores();
	size_t first = 0;

	CHECK_EQ(0, sched_getaffinity(0, sizeof before, &before));
	CHECK(cores >= 1 && cores <= (unsigned)CPU_COUNT(&before));
	while (!CPU_ISSET(first, &before))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	CHECK_EQ(0, sched_setaffinity(0, sizeof one, &one));
	CHECK_EQ(1, thread_cores());
	CHECK_EQ(0, sched_setaffinity(0, sizeof before, &before));
	CHECK_EQ(cores, thread_cores());
}
