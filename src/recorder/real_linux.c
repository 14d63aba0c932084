// At first each function is one of ours that finds all of them: the first malloc of the process
// looks for malloc and its family, puts what it finds in `real`, and calls real.malloc, which is
// libc's now. From the second call on nothing is asked any more.
#include "recorder/real_linux.h"

#include "recorder/inside_linux.h"
#include "recorder/scope_linux.h"
#include "recorder/text.h"

#define REAL_FIRST(result, name, parameters, arguments) \
	static result real_first_##name parameters      \
	{                                               \
		real_find();                            \
		return real.name arguments;             \
	}

REAL_FIRST(void *, malloc, (size_t size), (size))
REAL_FIRST(void *, calloc, (size_t count, size_t size), (count, size))
REAL_FIRST(void *, realloc, (void *ptr, size_t size), (ptr, size))
REAL_FIRST(void, free, (void *ptr), (ptr))
REAL_FIRST(int, posix_memalign, (void **ptr, size_t alignment, size_t size), (ptr, alignment, size))
REAL_FIRST(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size))
REAL_FIRST(void *, memalign, (size_t alignment, size_t size), (alignment, size))
REAL_FIRST(void *, valloc, (size_t size), (size))
REAL_FIRST(void *, pvalloc, (size_t size), (size))

// Until real_find has run. No hook has to ask whether the functions are known: the first call finds
// them.
struct real real = {
	.malloc = real_first_malloc,
	.calloc = real_first_calloc,
	.realloc = real_first_realloc,
	.free = real_first_free,
	.posix_memalign = real_first_posix_memalign,
	.aligned_alloc = real_first_aligned_alloc,
	.memalign = real_first_memalign,
	.valloc = real_first_valloc,
	.pvalloc = real_first_pvalloc,
};

// What is left when a function is not defined.
static void *real_none(void)
{
	return NULL;
}

static int real_no_posix_memalign(void **, size_t, size_t)
{
	return 12; // ENOMEM
}

static void *real_or_none(const char *name)
{
	void *found = scope_next(name, NULL);

	return found ? found : (void *)real_none;
}

// These may be missing in an older C library: NULL, and the hooks make the call themselves.
static void real_find_vm(void)
{
	static const struct {
		const char *name;
		void **function;
	} functions[] = {
#define REAL_VM(name) { #name, (void **)&real.name }
		REAL_VM(mmap),
		REAL_VM(mmap64),
		REAL_VM(munmap),
		REAL_VM(mremap),
		REAL_VM(brk),
		REAL_VM(sbrk),
		REAL_VM(mprotect),
		REAL_VM(pkey_mprotect),
		REAL_VM(madvise),
		REAL_VM(posix_madvise),
		REAL_VM(process_madvise),
		REAL_VM(mlock),
		REAL_VM(mlock2),
		REAL_VM(munlock),
		REAL_VM(mlockall),
		REAL_VM(munlockall),
		REAL_VM(shmat),
		REAL_VM(shmdt),
		REAL_VM(remap_file_pages),
		REAL_VM(syscall),
		{ "__errno_location", (void **)&real.errno_location },
		REAL_VM(prctl),
		REAL_VM(dlclose),
		{ "_Fork", (void **)&real.bare_fork },
		REAL_VM(clone),
		REAL_VM(wait4),
		REAL_VM(waitid),
#undef REAL_VM
	};

	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		*functions[i].function = scope_next(functions[i].name, NULL);
}

static const struct {
	const char *name;
	void **function;
} real_family[] = {
#define REAL(name)                         \
	{                                  \
#name, (void **)&real.name \
	}
	REAL(malloc),   REAL(calloc), REAL(realloc), REAL(free),           REAL(aligned_alloc),
	REAL(memalign), REAL(valloc), REAL(pvalloc), REAL(posix_memalign),
#undef REAL
};

// Where the real function of that name is kept, for enter_linux.c to put a trampoline there. NULL:
// it is none of malloc's family.
void **real_get(const char *name)
{
	for (size_t i = 0; i < sizeof(real_family) / sizeof(*real_family); i++) {
		if (text_equal(real_family[i].name, name))
			return real_family[i].function;
	}
	return NULL;
}

// Once for a process, by its first call of any hook. `found` is set first, so that what the search
// itself calls does not begin it again.
void real_find(void)
{
	static bool found;
	void *aligned;

	if (found)
		return;
	// Before the first of what follows is called, be it by another thread.
	*(void **)&real.realloc_before = scope_before("realloc");
	*(void **)&real.free_before = scope_before("free");
	found = true;
	inside_find();
	aligned = scope_next("posix_memalign", NULL);
	for (size_t i = 0; i < sizeof(real_family) / sizeof(*real_family); i++)
		*real_family[i].function = real_or_none(real_family[i].name);
	real_find_vm();
	*(void **)&real.posix_memalign = aligned ? aligned : (void *)real_no_posix_memalign;
}
