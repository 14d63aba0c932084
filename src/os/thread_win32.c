// By winpthreads, which mingw-w64 brings. Control events come in threads of their own (os/quit.h),
// so there is nothing to block.
#include "os/thread.h"

#include "base/mem.h"

#include <pthread.h>
#include <windows.h>

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

// A limit of the job in parts of the processors is not asked for.
unsigned thread_cores(void)
{
	DWORD_PTR ours = 0, all = 0;

	if (!GetProcessAffinityMask(GetCurrentProcess(), &ours, &all) || ours == 0)
		return 1;
	return (unsigned)__builtin_popcountll((unsigned long long)ours);
}
