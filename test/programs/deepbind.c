// deepbind: a library that was opened with RTLD_DEEPBIND finds libc's malloc, and not ours.
//
//     deepbind LIBRARY FLAG…   FLAG: deep (RTLD_DEEPBIND), lazy. In four ways the library takes
//                              1,000 blocks each, of 7900 + the way, that the program frees, and
//                              frees 1,000 of 7910 + the way that the program takes; a thread does
//                              that once more. Then, 100 of each: a block of 7920 that becomes one
//                              of 7921 by its realloc, one of 7922 by calloc, one of 7923 that
//                              becomes one of 7924 by reallocarray, one of 7925 by posix_memalign,
//                              one of 7926 by strdup, and one of 1007927 that becomes one of
//                              2007928: all freed. Prints its figures, size by size.
#include "deepbind.h"
#include "guest.h"

#include <dlfcn.h>
#include <pthread.h>

enum { BLOCKS = 1000, EACH = 100, COPIED = 7925 };

static void *library;

static void *get(const char *name)
{
	void *function = dlsym(library, name);

	guest_check(function != NULL, name);
	return function;
}

static void *in_all_ways(void *unused)
{
	bool (*find)(enum deepbind_way, struct deepbind *);
	struct deepbind deep;

	*(void **)&find = get("deep_find");
	for (int way = 0; way < DEEPBIND_WAYS; way++) {
		guest_check(find((enum deepbind_way)way, &deep), "deep_find");
		for (int i = 0; i < BLOCKS; i++) {
			void *volatile block = deep.malloc(7900 + (size_t)way);

			free(block);
			block = malloc(7910 + (size_t)way);
			deep.free(block);
		}
	}
	return unused;
}

static void one_of_each(void)
{
	void *(*resize)(void *, size_t), *(*zeroed)(size_t, size_t), *(*aligned)(size_t);
	void *(*array)(void *, size_t, size_t);
	char *(*copy)(const char *);
	char text[COPIED + 1];
	void *volatile block;

	*(void **)&resize = get("deep_resize");
	*(void **)&zeroed = get("deep_zeroed");
	*(void **)&array = get("deep_array");
	*(void **)&aligned = get("deep_aligned");
	*(void **)&copy = get("deep_copy");
	memset(text, 'x', COPIED);
	text[COPIED] = 0;
	for (int i = 0; i < EACH; i++) {
		free(resize(malloc(7920), 7921));
		block = zeroed(1, 7922);
		free(block);
		free(array(malloc(7923), 1, 7924));
		block = aligned(7925);
		free(block);
		block = copy(text);
		free(block);
		free(resize(resize(NULL, 1007927), 2007928));
	}
}

int main(int argc, char **argv)
{
	int flags = RTLD_NOW;
	pthread_t thread;

	guest_check(argc >= 2, "deepbind LIBRARY FLAG…");
	for (int i = 2; i < argc; i++) {
		if (strcmp(argv[i], "deep") == 0)
			flags |= RTLD_DEEPBIND;
		if (strcmp(argv[i], "lazy") == 0)
			flags = (flags & ~RTLD_NOW) | RTLD_LAZY;
	}
	library = dlopen(argv[1], flags);
	guest_check(library != NULL, "dlopen");
	in_all_ways(NULL);
	guest_check(pthread_create(&thread, NULL, in_all_ways, NULL) == 0, "pthread_create");
	pthread_join(thread, NULL);
	one_of_each();
	for (int way = 0; way < DEEPBIND_WAYS; way++)
		guest_say("%d %d\n%d %d\n", 7900 + way, 2 * BLOCKS, 7910 + way, 2 * BLOCKS);
	for (int size = 7920; size <= 7926; size++)
		guest_say("%d %d\n", size, EACH);
	guest_say("1007927 %d\n2007928 %d\n", EACH, EACH);
	dlclose(library);
	return 0;
}
