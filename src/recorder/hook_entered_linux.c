// hook_entered: the hooks that patched entries of an allocator lead to (enter_linux.h).
//
// They are those of hook_posix.c, hook_cxx_linux.c and hook_named_linux.c once more, under names
// that nobody finds. What differs is what is behind them: the moved beginning of the very function
// that was entered, and not the next definition of its name. So a function that finds malloc behind
// itself (RTLD_NEXT) comes by the others, to the C library's.
#define HOOK_ENTERED
#define real real_entered
#define malloc entered_malloc
#define free entered_free
#define cfree entered_cfree
#define free_sized entered_free_sized
#define free_aligned_sized entered_free_aligned_sized
#define calloc entered_calloc
#define realloc entered_realloc
#define reallocarray entered_reallocarray
#define posix_memalign entered_posix_memalign
#define aligned_alloc entered_aligned_alloc
#define memalign entered_memalign
#define valloc entered_valloc
#define pvalloc entered_pvalloc

#include "recorder/hook_cxx_linux.c"
#include "recorder/hook_named_linux.c"
#include "recorder/hook_posix.c"

struct real real;

#define ENTERED(name) ENTERED_BY(entered_##name, #name, (void **)&real.entered_##name)
#define ENTERED_LATER(name) ENTERED_BY(entered_##name, #name, NULL)
#define ENTERED_BY(hook, name, slot)         \
	static struct hook_entry hook_##hook \
		__attribute__((section("entered"), used)) = { name, NULL, (void *)hook, slot }

ENTERED(malloc);
ENTERED(free);
ENTERED(calloc);
ENTERED(realloc);
ENTERED(posix_memalign);
ENTERED(aligned_alloc);
ENTERED(memalign);
ENTERED(valloc);
ENTERED(pvalloc);
// They go by free and realloc.
ENTERED_LATER(cfree);
ENTERED_LATER(free_sized);
ENTERED_LATER(free_aligned_sized);
ENTERED_LATER(reallocarray);
