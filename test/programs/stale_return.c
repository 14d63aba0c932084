// stale_return: an address of a library stands on the stack before the library is there, again.
//
//     stale_return LIBRARY before|meanwhile
//
// Opens the library, learns an address behind a call in it, and closes it. Then generated code,
// which has no unwind tables, leads the walk of a stack to that address by the frame pointer: it
// allocates a block of 7410 bytes ("before"), or opens the library ("meanwhile"), so that this
// happens at each moment of dlopen too. At last the library's function, which keeps no frame
// pointer, allocates 1,000 blocks of 7411 bytes: these stacks are whole, and each has a frame of
// the library. Prints whether the library came to lie where it had been.
#include "guest.h"

#include <dlfcn.h>

enum { CODE_BYTES = 4096, PIECE_BYTES_MAX = 16 };

typedef void *call_through(void *(*make)(size_t), size_t size);

static uintptr_t behind_the_call;

static void *note_return(size_t size)
{
	(void)size;
	behind_the_call = (uintptr_t)__builtin_return_address(0);
	return NULL;
}

static unsigned char *put(unsigned char *at, const char *code, size_t length, const void *value)
{
	memcpy(at, code, length);
	memcpy(at + length, value, sizeof(uintptr_t));
	return at + length + sizeof(uintptr_t);
}

// Code that calls target(first, second) with a frame pointer that leads to `frame`.
static void *generate(unsigned char *code, const uintptr_t *frame, uintptr_t first,
		      uintptr_t second, uintptr_t target)
{
	unsigned char *at = code;
	void *result = code;

#ifdef __x86_64__
	// push %rbp; mov $frame,%rbp; mov $first,%rdi; mov $second,%rsi; mov $target,%rax; call
	static const char end[] = "\xff\xd0\x5d\xc3"; // *%rax; pop %rbp; ret

	at = put(at, "\x55\x48\xbd", 3, &frame);
	at = put(at, "\x48\xbf", 2, &first);
	at = put(at, "\x48\xbe", 2, &second);
	at = put(at, "\x48\xb8", 2, &target);
#else
	// push %ebp; mov $frame,%ebp; push $second; push $first; mov $target,%eax; call
	static const char end[] = "\xff\xd0\x83\xc4\x08\x5d\xc3"; // *%eax; add $8,%esp; pop; ret

	at = put(at, "\x55\xbd", 2, &frame);
	at = put(at, "\x68", 1, &second);
	at = put(at, "\x68", 1, &first);
	at = put(at, "\xb8", 1, &target);
#endif
	memcpy(at, end, sizeof(end) - 1);
	guest_check(mprotect(code, CODE_BYTES, PROT_READ | PROT_EXEC) == 0, "mprotect");
	return result;
}

static call_through *open_library(const char *path, void **library)
{
	call_through *through;

	*library = dlopen(path, RTLD_NOW);
	guest_check(*library != NULL, "dlopen");
	*(void **)&through = dlsym(*library, "stale_call");
	guest_check(through != NULL, "dlsym");
	return through;
}

int main(int argc, char **argv)
{
	volatile uintptr_t frame[2] = { 0 };
	void *(*function)(void);
	uintptr_t before;
	void *library;
	unsigned char *code =
		mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	guest_check(argc == 3 && code != MAP_FAILED, "needs a library and when");
	open_library(argv[1], &library)(note_return, 0);
	guest_check(dlclose(library) == 0, "dlclose");
	before = frame[1] = behind_the_call;
	if (strcmp(argv[2], "before") == 0)
		*(void **)&function =
			generate(code, (uintptr_t *)frame, 7410, 0, (uintptr_t)malloc);
	else
		*(void **)&function = generate(code, (uintptr_t *)frame, (uintptr_t)argv[1],
					       RTLD_NOW, (uintptr_t)dlopen);
	guest_check(function() != NULL, "generated code");
	for (int i = 0; i < 1000; i++)
		guest_check(open_library(argv[1], &library)(malloc, 7411) != NULL, "a block");
	open_library(argv[1], &library)(note_return, 0);
	guest_say("%d\n", behind_the_call == before);
	return 0;
}
