// hook_entered: the hooks that patched entries of an allocator lead to (enter_linux.h).
//
// They are those of hook_malloc_linux.c, hook_cxx_linux.c and hook_named_linux.c once more, under
// names that are not found. What differs is what is behind them: the moved beginning of the very
// function that was entered, and not the next definition of its name. So a function that finds
// malloc behind itself (RTLD_NEXT) comes by the others, to the C library's.
#define HOOK_ENTERED
#define malloc entered_malloc
#define free entered_free
#define calloc entered_calloc
#define realloc entered_realloc
#define posix_memalign entered_posix_memalign
#define aligned_alloc entered_aligned_alloc
#define memalign entered_memalign
#define valloc entered_valloc
#define pvalloc entered_pvalloc

#include "recorder/hook_cxx_linux.c"
#include "recorder/hook_named_linux.c"

#define ENTERED_AS __attribute__((section("entered"), used))

static struct hook_entry hook_entered_malloc ENTERED_AS, hook_entered_free ENTERED_AS,
	hook_entered_calloc ENTERED_AS, hook_entered_realloc ENTERED_AS,
	hook_entered_posix_memalign ENTERED_AS, hook_entered_aligned_alloc ENTERED_AS,
	hook_entered_memalign ENTERED_AS, hook_entered_valloc ENTERED_AS,
	hook_entered_pvalloc ENTERED_AS;

#include "recorder/hook_malloc_linux.c"

// AddressSanitizer's take their block from inside of it. The C library's ask for malloc by name.
HOOK_TAKES(strdup, HOOK_TEXT, 0, (const char *text), (text), )
HOOK_TAKES(__strdup, HOOK_TEXT, 0, (const char *text), (text), )

#define ENTERED(name)                                                            \
	static struct hook_entry hook_entered_##name ENTERED_AS = { #name, NULL, \
								    (void *)entered_##name }

ENTERED(malloc);
ENTERED(free);
ENTERED(calloc);
ENTERED(realloc);
ENTERED(posix_memalign);
ENTERED(aligned_alloc);
ENTERED(memalign);
ENTERED(valloc);
ENTERED(pvalloc);
