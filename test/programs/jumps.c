// jumps: is left in the midst of malloc, and by stacks that overflow there.
//
//     jumps overflow COUNT   COUNT times a recursion that allocates and never frees overflows the
//                            stack; a handler on a stack of its own jumps back out. Each time with
//                            another number of bytes between two frames. Behind each, a block of
//                            7801 bytes is taken and given back.
//     jumps edge COUNT       COUNT threads allocate for the first time where 16 bytes more are left
//                            of the stack, each time. A handler on a stack of its own jumps out of
//                            those that overflow, and a block of 7831 bytes is taken and given
//                            back.
//     jumps timer COUNT      COUNT times a timer's handler jumps out of a loop of pairs of 7811.
//                            Behind each, a block of 7812 bytes is taken and given back.
//     jumps thread COUNT     COUNT threads end by pthread_exit in a handler that a timer sends to
//                            a loop of pairs of 7821. Behind each, another thread takes and gives
//                            back a block of 7822.
//     jumps cancel COUNT     the same by pthread_cancel, of threads that can be cancelled anywhere.
//
// Linked with an allocator that may be left anywhere (nested_library). Prints how often it was
// left.
#include <alloca.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

enum { STACK_BYTES = 64 << 10, ALTERNATE_BYTES = 64 << 10 };

static sigjmp_buf back;
static void *volatile kept;
static volatile int left;

static void pair(size_t size)
{
	kept = malloc(size);
	free(kept);
}

static void jump(int number)
{
	(void)number;
	siglongjmp(back, 1);
}

static void catch (int number, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	sigaction(number, &action, NULL);
}

static int recurse(int bytes)
{
	volatile char room[bytes + 1];

	room[0] = room[bytes] = 1;
	pair(7800);
	return recurse(bytes) + room[0];
}

static void *overflow(void *count)
{
	static char alternate[ALTERNATE_BYTES];
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof(alternate) };

	sigaltstack(&stack, NULL);
	catch (SIGSEGV, jump, SA_ONSTACK);
	for (volatile intptr_t i = 0; i < (intptr_t)count; i++) {
		if (!sigsetjmp(back, 1))
			recurse((int)(i * 16 % 512));
		left++;
		pair(7801);
	}
	return NULL;
}

// A block of 7830 bytes where so many bytes of the stack at `low` are left.
static void near_edge(const char *low, size_t bytes)
{
	volatile char *room = alloca((size_t)((char *)__builtin_frame_address(0) - low) - bytes);

	(void)room;
	pair(7830);
}

static void *edge(void *bytes)
{
	char *alternate = mmap(NULL, ALTERNATE_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t stack = { .ss_sp = alternate, .ss_size = ALTERNATE_BYTES };
	pthread_attr_t attributes;
	size_t size;
	void *low;

	sigaltstack(&stack, NULL);
	catch (SIGSEGV, jump, SA_ONSTACK);
	pthread_getattr_np(pthread_self(), &attributes);
	pthread_attr_getstack(&attributes, &low, &size);
	if (!sigsetjmp(back, 1))
		near_edge(low, (size_t)bytes);
	else
		left++;
	pair(7831);
	return NULL;
}

static void run(void *(*function)(void *), intptr_t argument)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_create(&thread, &attributes, function, (void *)argument);
	pthread_join(thread, NULL);
}

static void timer(long microseconds)
{
	struct itimerval once = { .it_value = { 0, microseconds } };

	setitimer(ITIMER_REAL, &once, NULL);
}

static void be_left(int count)
{
	catch (SIGALRM, jump, 0);
	for (volatile int i = 0; i < count; i++) {
		if (!sigsetjmp(back, 1)) {
			timer(50 + i % 97);
			for (;;)
				pair(7811);
		}
		left++;
		pair(7812);
	}
}

static void leave(int number)
{
	(void)number;
	left++;
	pthread_exit(NULL);
}

static void *loop(void *unused)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (;;)
		pair(7821);
	return unused;
}

static void *one(void *unused)
{
	pair(7822);
	return unused;
}

static void end_threads(int count, int cancel)
{
	pthread_t thread;

	catch (SIGUSR1, leave, 0);
	for (int i = 0; i < count; i++) {
		pthread_create(&thread, NULL, loop, NULL);
		usleep(200 + (unsigned)i % 97);
		if (cancel)
			pthread_cancel(thread);
		else
			pthread_kill(thread, SIGUSR1);
		pthread_join(thread, NULL);
		left += cancel;
		pthread_create(&thread, NULL, one, NULL);
		pthread_join(thread, NULL);
	}
}

int main(int argc, char **argv)
{
	int count = argc > 2 ? atoi(argv[2]) : 1;

	if (argc < 2)
		return 2;
	if (!strcmp(argv[1], "overflow")) {
		run(overflow, count);
	} else if (!strcmp(argv[1], "edge")) {
		for (int i = 1; i <= count; i++)
			run(edge, 16 * i);
	} else if (!strcmp(argv[1], "timer")) {
		be_left(count);
	} else {
		end_threads(count, !strcmp(argv[1], "cancel"));
	}
	printf("%d\n", left);
	return 0;
}
