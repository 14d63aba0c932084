// By winpthreads, which mingw-w64 brings. Control events come in threads of their own (os/quit.h),
// so there is nothing to block.
#include "os/thread.h"

#include "base/mem.h"

#include <pthread.h>

struct thread {
	pthread_t id;
};

struct thread *thread_start(void *(*work)(void *context), void *context)
{
	struct thread *thread = mem_alloc(1, sizeof *thread);

	ASSERT(work != NULL);
	if (pthread_create(&thread->id, NULL, work, context) == 0)
		return thread;
	mem_free(thread);
	return NULL;
}

void thread_join(struct thread *thread)
{
	if (!thread)
		return;
	pthread_join(thread->id, NULL);
	mem_free(thread);
}
