// Everything that makes a stack hard to walk, in four threads at once: alloca, over-aligned frames,
// frame pointers beside none, tail calls, C++ exceptions, longjmp, qsort's callbacks, coroutines on
// allocated and on unmapped stacks, signal handlers on and off an alternate stack, which allocate,
// and children of vfork, which do so on their parent's stack.
//
// `adversary N SEED` makes N steps a thread and prints "done". Recorded with --verify-stacks, every
// stack is walked twice, and no walk may differ from its twin.
//
// `adversary N SEED LIBRARY LIBRARY` does so with more: the two libraries, which differ in the size
// of a frame alone, are opened at the same address by turns; at the end it prints how often one was
// where the other had been. With a further word, "generated", code is generated, too, with frame
// pointers and without, that is overwritten by other code, and unmapped. Whoever calls from there
// has no unwind tables: stacks through it may be incomplete, but are the same twice.

#include <alloca.h>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

static long steps = 2000;
static thread_local unsigned seed;

static unsigned random_next()
{
	seed = seed * 1103515245 + 12345;
	return seed >> 16;
}

// One malloc, one realloc, one free.
static void allocate()
{
	void *volatile first = malloc(random_next() % 300 + 1);
	void *volatile second = realloc(first, random_next() % 2000 + 1);

	free(second);
}

__attribute__((noinline)) static int with_alloca(int depth);

__attribute__((noinline)) static int with_array(int depth)
{
	char bytes[64];

	memset(bytes, depth, sizeof(bytes));
	allocate();
	return depth ? with_alloca(depth - 1) + bytes[3] : bytes[0];
}

__attribute__((noinline)) static int with_alloca(int depth)
{
	volatile char *bytes = static_cast<char *>(alloca(random_next() % 200 + 16));

	bytes[0] = static_cast<char>(depth);
	allocate();
	return depth ? with_array(depth - 1) + bytes[0] : 1;
}

struct alignas(64) Aligned {
	char bytes[128];
};

// gcc addresses such a frame through a saved pointer (DRAP).
__attribute__((noinline)) static int over_aligned(int depth)
{
	Aligned big;

	memset(&big, depth, sizeof(big));
	allocate();
	asm volatile("" : : "r"(&big) : "memory");
	if (depth)
		return over_aligned(depth - 1) + with_array(1) + big.bytes[5];
	return with_alloca(2);
}

__attribute__((noinline, optimize("no-omit-frame-pointer"))) static int frame_pointer(int depth)
{
	char bytes[32];
	int result;

	memset(bytes, depth, sizeof(bytes));
	allocate();
	result = depth ? frame_pointer(depth - 1) + with_alloca(1) : over_aligned(2);
	asm volatile("" : : "r"(bytes) : "memory");
	return result;
}

// The caller's frame gives way to that of what it calls last.
__attribute__((noinline, optimize("optimize-sibling-calls"))) static int tail_calls(int depth)
{
	char bytes[48];

	memset(bytes, depth, sizeof(bytes));
	asm volatile("" : : "r"(bytes) : "memory");
	allocate();
	if (!depth)
		return with_array(1);
	return depth % 2 ? tail_calls(depth - 1) : frame_pointer(depth % 4);
}

struct Destroyed {
	~Destroyed()
	{
		allocate();
	}
};

__attribute__((noinline)) static void throws(int depth)
{
	Destroyed here;

	allocate();
	if (!depth)
		throw 42;
	throws(depth - 1);
	allocate();
}

static thread_local jmp_buf jump;

__attribute__((noinline)) static void jumps(int depth)
{
	allocate();
	if (!depth)
		longjmp(jump, 1);
	jumps(depth - 1);
	allocate();
}

static int compare(const void *a, const void *b)
{
	allocate();
	return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

static thread_local ucontext_t home, coroutine[2];

static void coroutine_body(int i)
{
	for (int k = 0; k < 3; k++) {
		with_alloca(3);
		swapcontext(&coroutine[i], &home);
		over_aligned(1);
	}
}

// The stacks differ in size from time to time, and come back at the same addresses.
static void coroutines()
{
	for (int i = 0; i < 2; i++) {
		size_t bytes = 32768 + (random_next() % 4) * 16384;
		void *stack = i ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
				: malloc(bytes);

		getcontext(&coroutine[i]);
		coroutine[i].uc_stack.ss_sp = stack;
		coroutine[i].uc_stack.ss_size = bytes;
		coroutine[i].uc_link = &home;
		makecontext(&coroutine[i], reinterpret_cast<void (*)()>(coroutine_body), 1, i);
		for (int k = 0; k < 4; k++) {
			allocate();
			swapcontext(&home, &coroutine[i]);
			with_array(1);
		}
		if (i)
			munmap(stack, bytes);
		else
			free(stack);
	}
}

static void on_stack(int)
{
	with_alloca(2);
}

static void on_alternate_stack(int)
{
	over_aligned(1);
}

static void sorts()
{
	int values[16];

	for (int &value : values)
		value = static_cast<int>(random_next());
	qsort(values, 16, sizeof(values[0]), compare);
}

// The child has the parent's memory, thread and stack, until it ends.
static void vforks()
{
	pid_t child = vfork();
	int status;

	if (child == 0) {
		with_alloca(3);
		_exit(0);
	}
	with_array(2);
	if (child > 0)
		waitpid(child, &status, 0);
}

// ---- Code that comes and goes ---------------------------------------------------------------

static const char *libraries[2];
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static long same_place;

static void *use_library(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	void (*call)(void (*)());
	void *found = library ? dlsym(library, "adversary_call") : nullptr;

	if (!found)
		abort();
	memcpy(&call, &found, sizeof(call));
	call(allocate);
	dlclose(library);
	return found;
}

static void reloads()
{
	pthread_mutex_lock(&loading);
	same_place += use_library(libraries[0]) == use_library(libraries[1]);
	pthread_mutex_unlock(&loading);
}

// A function that makes a frame, calls `allocate`, and returns. Its length is the same whatever the
// size of its frame, so that two of them have one return address.
static void generate(unsigned char *code, bool with_frame_pointer)
{
#ifdef __x86_64__
	static const unsigned char wide[] = { 0x48 };
	const int unaligned = with_frame_pointer ? 0 : 8;
#else
	static const unsigned char wide[0] = {};
	const int unaligned = with_frame_pointer ? 8 : 12;
#endif
	const int frame = static_cast<int>(random_next() % 60 + 1) * 16 + unaligned;
	void (*call)() = allocate;
	const auto put = [&code](const void *bytes, size_t count) {
		memcpy(code, bytes, count);
		code += count;
	};
	const auto put_word = [&](const char *instruction, size_t count, const void *word,
				  size_t bytes) {
		put(wide, sizeof(wide));
		put(instruction, count);
		put(word, bytes);
	};

	if (with_frame_pointer) {
		put("\x55", 1);                 // push %rbp
		put_word("\x89\xe5", 2, "", 0); // mov %rsp, %rbp
	}
	put_word("\x81\xec", 2, &frame, sizeof(frame)); // sub $frame, %rsp
	put_word("\xb8", 1, &call, sizeof(call));       // mov $call, %rax
	put("\xff\xd0", 2);                             // call *%rax
	if (with_frame_pointer)
		put("\xc9", 1); // leave
	else
		put_word("\x81\xc4", 2, &frame, sizeof(frame)); // add $frame, %rsp
	put("\xc3", 1);                                         // ret
}

static void generated()
{
	const size_t bytes = 4096;
	void *page =
		mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*call)();

	if (page == MAP_FAILED)
		abort();
	for (int i = 0; i < 3; i++) {
		mprotect(page, bytes, PROT_READ | PROT_WRITE);
		generate(static_cast<unsigned char *>(page), random_next() % 2);
		mprotect(page, bytes, PROT_READ | PROT_EXEC);
		memcpy(&call, &page, sizeof(call));
		call();
		call();
	}
	munmap(page, bytes);
}

enum { STEPS_ALWAYS = 10, STEPS_WITH_LIBRARIES = 11, STEPS_ALL = 13, VFORK_EVERY = 8 };

static unsigned kinds = STEPS_ALWAYS; // of steps

static void step()
{
	switch (random_next() % kinds) {
	case 0:
		with_alloca(static_cast<int>(random_next() % 20));
		break;
	case 1:
		over_aligned(static_cast<int>(random_next() % 4));
		break;
	case 2:
		frame_pointer(static_cast<int>(random_next() % 6));
		break;
	case 3:
		try {
			throws(static_cast<int>(random_next() % 8));
		} catch (int) {
			allocate();
		}
		break;
	case 4:
		if (!setjmp(jump))
			jumps(static_cast<int>(random_next() % 10));
		allocate();
		break;
	case 5:
		sorts();
		break;
	case 6:
		coroutines();
		break;
	case 7:
		raise(SIGUSR1);
		break;
	case 8:
		raise(SIGUSR2);
		break;
	case 9:
		tail_calls(static_cast<int>(random_next() % 8));
		if (random_next() % VFORK_EVERY == 0)
			vforks();
		break;
	case 10:
		reloads();
		break;
	default:
		generated();
		break;
	}
}

static void *run(void *argument)
{
	static thread_local char alternate[65536];
	stack_t stack = {};

	seed = static_cast<unsigned>(reinterpret_cast<size_t>(argument));
	stack.ss_sp = alternate;
	stack.ss_size = sizeof(alternate);
	sigaltstack(&stack, nullptr);
	for (long i = 0; i < steps; i++)
		step();
	return nullptr;
}

int main(int argc, char **argv)
{
	size_t first = argc > 2 ? strtoul(argv[2], nullptr, 10) : 7;
	pthread_t threads[4];
	struct sigaction action = {};

	if (argc > 1)
		steps = atol(argv[1]);
	if (argc > 4) {
		libraries[0] = argv[3];
		libraries[1] = argv[4];
		kinds = argc > 5 ? STEPS_ALL : STEPS_WITH_LIBRARIES;
	}
	action.sa_handler = on_stack;
	sigaction(SIGUSR1, &action, nullptr);
	action.sa_handler = on_alternate_stack;
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR2, &action, nullptr);
	for (size_t i = 0; i < 4; i++)
		pthread_create(&threads[i], nullptr, run, reinterpret_cast<void *>(first + i));
	for (pthread_t thread : threads)
		pthread_join(thread, nullptr);
	puts("done");
	if (libraries[0])
		printf("%ld\n", same_place);
	return 0;
}
