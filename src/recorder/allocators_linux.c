// An allocator is named by a function that only it has: `mallocx` is jemalloc's, `tc_malloc`
// tcmalloc's, `gnu_get_libc_version` says that it is glibc's own. Where a library has two of them,
// the one that is first in the table below names it.
#include "recorder/allocators_linux.h"

#include "recorder/notes.h"
#include "recorder/static_linux.h"
#include "recorder/text.h"
#include "wire/lane_event.h"

enum { ALLOCATORS_MAX = 32, ALLOCATORS_PATH_MAX = 256, ALLOCATORS_LAUNCHER_MAX = 64 << 10 };

// The path is kept, since the library may be gone when a child is forked.
struct allocator {
	uint32_t seen;
	const char *name; // of ours
	char path[ALLOCATORS_PATH_MAX];
};

static struct allocator allocators[ALLOCATORS_MAX];
static uint32_t allocators_count;

// For example, an object with EF_Abort is Electric Fence, and one with __asan_init the runtime of a
// sanitizer, whose malloc it is. The first sign that is found counts: who has another's functions
// besides its own stands before it. A name has no blank, as a path follows it in the note.
//
// Of a static program: __libc_setup_tls is glibc's alone.
static const char *allocators_name(const struct scope_object *object)
{
	static const struct {
		const char *function, *name;
	} signs[] = {
		{ "gnu_get_libc_version", "glibc" },
		{ "moz_arena_malloc", "mozjemalloc" },
		{ "mallocx", "jemalloc" },
		{ "je_mallocx", "jemalloc" },
		{ "_rjem_mallocx", "jemalloc" },
		{ "tc_malloc", "tcmalloc" },
		{ "mi_malloc", "mimalloc" },
		{ "scalable_malloc", "tbbmalloc" },
		{ "rpmalloc", "rpmalloc" },
		{ "__TBB_malloc_proxy", "tbbmalloc" },
		{ "__asan_init", "ASan" },
		{ "__hwasan_init", "HWASan" },
		{ "__tsan_init", "TSan" },
		{ "__msan_init", "MSan" },
		{ "__lsan_init", "LSan" },
		{ "__scudo_print_stats", "scudo" },
		{ "EF_Abort", "efence" },
		{ "DUMA_Abort", "duma" },
		{ "dmalloc_debug_setup", "dmalloc" },
		{ "__libc_start_main", "musl" },
	};

	if (static_is()) // its C library's, unless its own takes the place of that
		return static_find("__libc_setup_tls", false) ? "glibc" : "musl";

	for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++) {
		if (scope_find(object, signs[i].function))
			return signs[i].name;
	}
	return "unknown";
}

// Each is reported once for an image. A path of more than 255 bytes is cut at its beginning.
void allocators_add(const struct scope_object *object, uint32_t seen, const char *name)
{
	static bool said;
	struct allocator *new = &allocators[allocators_count];
	const char *path = object == scope_objects() ? "" : object->name;
	size_t length = text_length(path);

	if (length >= sizeof(new->path)) // its end says more
		path += length + 1 - sizeof(new->path);
	if (!name)
		name = allocators_name(object);
	for (uint32_t i = 0; i < allocators_count; i++) {
		if (allocators[i].seen == seen && allocators[i].name == name &&
		    text_equal(allocators[i].path, path))
			return;
	}
	if (allocators_count == ALLOCATORS_MAX) {
		if (!said)
			notes_message(NOTE_MESSAGE_OTHER,
				      "it has more than 32 allocators: others are not named");
		said = true;
		return;
	}
	new->seen = seen;
	new->name = name;
	memcpy(new->path, path, text_length(path) + 1);
	allocators_count++;
	notes_allocator(seen, new->name, new->path);
}

static bool allocators_ask_any(const struct scope_object *object, const char *const *names,
			       size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (scope_asks(object, names[i]))
			return true;
	}
	return false;
}

// Whether it asks a library for memory by functions of that one's: ffmpeg asks for av_malloc, gimp
// for g_malloc0.
static bool allocators_ask_library(const struct scope_object *object)
{
	struct scope_asked asked = { 0 };
	const char *each;

	// Behind its first letter: malloc_trim and malloc_usable_size give nothing.
	while ((each = scope_next_asked(object, &asked)))
		if (*each && (text_has(each + 1, "malloc") || text_has(each + 1, "calloc") ||
			      text_has(each + 1, "realloc")))
			return true;
	return false;
}

// Whether a stripped program may have an allocator that is not seen: it asks no library for malloc
// or what leads to it, and asks the kernel for memory, or is larger than a launcher.
bool allocators_may_hide(const struct scope_object *object)
{
	static const char *const mallocs[] = { "malloc",         "calloc",       "realloc", "free",
					       "_Znwm",          "_Znwj",        "_Znam",   "_Znaj",
					       "posix_memalign", "aligned_alloc" };
	static const char *const kernels[] = { "mmap", "mmap64", "sbrk", "brk", "syscall" };
	uintptr_t start, end;

	if (allocators_ask_any(object, mallocs, sizeof(mallocs) / sizeof(*mallocs)) ||
	    allocators_ask_library(object))
		return false;
	return allocators_ask_any(object, kernels, sizeof(kernels) / sizeof(*kernels)) ||
	       !scope_span(object, &start, &end) || end - start > ALLOCATORS_LAUNCHER_MAX;
}

// The allocator that malloc leads to by name, if none was entered in its place.
void allocators_add_real(void)
{
	struct scope_object *object = NULL;

	for (uint32_t i = 0; i < allocators_count; i++) {
		if (!allocators[i].path[0] && allocators[i].seen == NOTE_SEEN_EXPORTED)
			return; // what asks for malloc comes to that one
	}
	if (!static_is() && scope_next("malloc", &object))
		allocators_add(object, NOTE_SEEN_NAME, NULL);
}

// An allocator's operators are its own family; a C++ library's (it has the exceptions as well) are
// those that a program may put its own in place of.
static bool allocators_has_operators(const struct scope_object *object)
{
	static const char *const names[] = {
		"_ZdlPv", "_ZdaPv", "_Znwm", "_Znwj", "_Znam", "_Znaj"
	};

	if (object == scope_ourselves() || scope_is_linker(object) ||
	    scope_find(object, "__cxa_begin_catch") || scope_find(object, "malloc"))
		return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (scope_find(object, names[i]))
			return true;
	}
	return false;
}

void allocators_add_operators(void)
{
	for (const struct scope_object *at = static_is() ? NULL : scope_objects(); at;
	     at = at->next) {
		if (allocators_has_operators(at))
			allocators_add(at, NOTE_SEEN_OPERATORS, "operators");
	}
}

// A forked child says what its parent found.
void allocators_tell(void)
{
	for (uint32_t i = 0; i < allocators_count; i++)
		notes_allocator(allocators[i].seen, allocators[i].name, allocators[i].path);
}
