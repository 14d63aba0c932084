// For example what happens when a library is loaded, and then a thread begins:
//
//     mmap of libfoo.so, by the linker       a file, by the dynamic linker: library
//     mmap MAP_FIXED, anonymous, by it       library: it is its bss
//     mmap MAP_STACK, by libc                thread stack
//     mmap PROT_NONE, inside of malloc       an arena, of which malloc uses more and more
#include "engine/space/space_owner.h"

#include <string.h>

enum { FLAG_SHARED = 0x01, FLAG_FIXED = 0x10, FLAG_STACK = 0x20000 };

const char *space_owner_word(enum space_owner owner)
{
	static const char *const words[SPACE_OWNERS_COUNT] = {
		[SPACE_PROGRAM] = "program",
		[SPACE_MALLOC_HEAP] = "malloc-heap",
		[SPACE_MALLOC_ARENA] = "malloc-arena",
		[SPACE_MALLOC_LARGE] = "malloc-large",
		[SPACE_ALLOCATOR] = "allocator",
		[SPACE_THREAD_STACK] = "thread-stack",
		[SPACE_MAIN_STACK] = "main-stack",
		[SPACE_LIBRARY] = "library",
		[SPACE_FILE] = "file",
		[SPACE_LIBC] = "libc",
		[SPACE_LOADER] = "loader",
		[SPACE_KERNEL] = "kernel",
		[SPACE_TIDEMARK] = "tidemark",
	};

	return words[owner];
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

// Names in brackets are the kernel's own: "[stack]", "[heap]", "[vdso]"; "[anon:…]" is anonymous
// memory that a program has given a name (prctl).
struct space_owner_file space_owner_of_path(const char *path)
{
	struct space_owner_file file = { .path = SPACE_OWNER_PLAIN };

	if (begins(path, "[stack"))
		file.path = SPACE_OWNER_STACK;
	else if (strcmp(path, "[heap]") == 0)
		file.path = SPACE_OWNER_HEAP;
	else if (begins(path, "[anon"))
		file.path = SPACE_OWNER_NAMED;
	else if (*path == '[')
		file.path = SPACE_OWNER_KERNEL;
	return file;
}

// Of memory that is no file's. What the loader maps at a fixed place, or what is found right after
// a library, is that library's bss. A stack is one, also where the program itself maps it: in
// a static program libc is part of it, and some have threads of their own (coroutines).
static enum space_owner owner_of_anonymous(const struct trace_event *event,
					   const struct range *below, enum space_owner below_owner)
{
	uint32_t flags = event->vm->flags;
	bool behind_library = below && below->end == event->address && below_owner == SPACE_LIBRARY;

	switch (event->vm->origin) {
	case TRACE_ORIGIN_LIBC:
		return flags & FLAG_STACK ? SPACE_THREAD_STACK : SPACE_LIBC;
	case TRACE_ORIGIN_LOADER:
		if (event->kind == TRACE_MAPPED ? behind_library : flags & FLAG_FIXED)
			return SPACE_LIBRARY;
		return SPACE_LOADER;
	case TRACE_ORIGIN_KERNEL:
		return behind_library ? SPACE_LIBRARY : SPACE_LOADER;
	default:
		if (event->kind == TRACE_MAPPED && behind_library && below->file)
			return SPACE_LIBRARY;
		return flags & FLAG_STACK ? SPACE_THREAD_STACK : SPACE_PROGRAM;
	}
}

// From what is certain to what is a guess: our own memory, names that the kernel gives, then the
// code that made the call (origin), and last what is below it.
enum space_owner space_owner_of_event(const struct trace_event *event,
				      const struct space_owner_file *file,
				      const struct range *below, enum space_owner below_owner)
{
	enum trace_origin origin = (enum trace_origin)event->vm->origin;

	if (origin == TRACE_ORIGIN_RECORDER)
		return SPACE_TIDEMARK;
	if (file && file->path == SPACE_OWNER_STACK)
		return SPACE_MAIN_STACK;
	if (file && file->path == SPACE_OWNER_HEAP)
		return SPACE_MALLOC_HEAP;
	if (file && file->path == SPACE_OWNER_KERNEL)
		return SPACE_KERNEL;
	if (event->kind == TRACE_BRK)
		return origin == TRACE_ORIGIN_PROGRAM ? SPACE_PROGRAM : SPACE_MALLOC_HEAP;
	if (origin == TRACE_ORIGIN_ALLOCATOR && !event->vm->file)
		return event->vm->protection == 0 ? SPACE_MALLOC_ARENA : SPACE_MALLOC_LARGE;
	// Libraries are private: what was shared before we came is another file's.
	if (event->vm->file && event->kind == TRACE_MAPPED && (event->vm->flags & FLAG_SHARED) &&
	    file && file->path == SPACE_OWNER_PLAIN)
		return SPACE_FILE;
	if (event->vm->file && !(file && file->path == SPACE_OWNER_NAMED))
		return origin == TRACE_ORIGIN_LOADER || origin == TRACE_ORIGIN_KERNEL
			       ? SPACE_LIBRARY
			       : SPACE_FILE;
	return owner_of_anonymous(event, below, below_owner);
}

// A mapping that the program or libc made and in which a heap block is was an allocator's all
// along. A large block of glibc's begins 16 bytes (32-bit processes: 8) into its mapping, or at a
// page when it was aligned: one that begins elsewhere shows that this mapping is another
// allocator's.
bool space_owner_yields(const struct range *range, uint64_t address)
{
	uint64_t offset = address - range->start;

	switch (range->owner) {
	case SPACE_PROGRAM:
	case SPACE_FILE:
	case SPACE_LIBC:
	case SPACE_LOADER:
	case SPACE_ALLOCATOR:
		return true;
	case SPACE_MALLOC_LARGE:
		return offset != 16 && offset != 8 && (offset == 0 || offset % SPACE_PAGE != 0);
	default:
		return false;
	}
}
