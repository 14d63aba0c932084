#include "recorder/hook_python_linux.h"

#include "recorder/client.h"
#include "recorder/hook_linux.h"
#include "recorder/language_heap.h"
#include "recorder/notes.h"
#include "recorder/scope_linux.h"

enum {
	HOOK_PYTHON_MEM = 1, // PyMemAllocatorDomain; 0: raw
	HOOK_PYTHON_OBJECT = 2,
	HOOK_PYTHON_DOMAINS = 3,
	HOOK_PYTHON_INTERPRETERS = 4, // of a process
	HOOK_PYTHON_TIMES = 4,        // that one chooses its allocators anew
};

// PyMemAllocatorEx.
struct hook_python_allocator {
	void *context;
	void *(*malloc)(void *context, size_t size);
	void *(*calloc)(void *context, size_t count, size_t size);
	void *(*realloc)(void *context, void *ptr, size_t size);
	void (*free)(void *context, void *ptr);
};

// One of ours, in front of another one.
struct hook_python_front {
	struct hook_python_allocator real;
	uint64_t heap;
};

struct hook_python_interpreter {
	const struct scope_object *object; // NULL: none
	uintptr_t start, end;              // of its code and data
	void (*get)(int domain, struct hook_python_allocator *allocator);
	void (*set)(int domain, struct hook_python_allocator *allocator);
	int (*is_begun)(void);
	struct hook_python_front fronts[HOOK_PYTHON_TIMES][HOOK_PYTHON_DOMAINS];
	uint32_t times[HOOK_PYTHON_DOMAINS];
};

// A realloc that is between the halves of its event.
struct hook_python_realloc {
	struct hook_python_front *front;
	const uintptr_t *frame;
};

bool hook_python_begins;
static struct hook_python_interpreter hook_python_interpreters[HOOK_PYTHON_INTERPRETERS];

// ---- The allocator --------------------------------------------------------------------------

// language_heap_begins is false within another call on a language's heap: then this one is that
// heap's own business.
LANGUAGE_HEAP_HOOK static void *hook_python_malloc(void *context, size_t size)
{
	struct hook_python_front *front = context;
	void *ptr;

	if (unlikely(!language_heap_begins(front->heap, 0, HOOK_FRAME)))
		return front->real.malloc(front->real.context, size);
	ptr = front->real.malloc(front->real.context, size);
	language_heap_allocated(LANE_MALLOC, (uintptr_t)ptr, size);
	return ptr;
}

// A product that is too large can only fail: it is recorded as SIZE_MAX.
LANGUAGE_HEAP_HOOK static void *hook_python_calloc(void *context, size_t count, size_t size)
{
	struct hook_python_front *front = context;
	size_t product;
	void *ptr;

	if (unlikely(!language_heap_begins(front->heap, 0, HOOK_FRAME)))
		return front->real.calloc(front->real.context, count, size);
	ptr = front->real.calloc(front->real.context, count, size);
	if (__builtin_mul_overflow(count, size, &product))
		product = SIZE_MAX;
	language_heap_allocated(LANE_CALLOC, (uintptr_t)ptr, product);
	return ptr;
}

// The real realloc, between the halves of the event.
//
// What malloc does meanwhile belongs to the block, so it is within a call of the heap
// (language_heap.h).
LANGUAGE_HEAP_HOOK static void *hook_python_resize(void *ptr, size_t size, void *more)
{
	const struct hook_python_realloc *call = more;
	struct hook_python_front *front = call->front;
	void *result;

	language_heap_begins(front->heap, (uintptr_t)ptr, call->frame);
	result = front->real.realloc(front->real.context, ptr, size);
	language_heap_ends((uintptr_t)result);
	language_heap_mine.heap = 0;
	return result;
}

// realloc(NULL, n) is an allocation. Else both halves are recorded by hook_resize.
LANGUAGE_HEAP_HOOK static void *hook_python_realloc(void *context, void *ptr, size_t size)
{
	struct hook_python_front *front = context;
	struct hook_python_realloc call = { front, HOOK_FRAME };

	if (unlikely(language_heap_mine.heap))
		return front->real.realloc(front->real.context, ptr, size);
	if (ptr)
		return hook_resize(front->heap, ptr, size, HOOK_FRAME, hook_python_resize, &call);
	language_heap_begins(front->heap, 0, HOOK_FRAME);
	ptr = front->real.realloc(front->real.context, NULL, size);
	language_heap_allocated(LANE_MALLOC, (uintptr_t)ptr, size);
	return ptr;
}

// The free is recorded first, then the real one is called within the heap's call, so that malloc's
// free of its backing is held to be a part of it.
LANGUAGE_HEAP_HOOK static void hook_python_free(void *context, void *ptr)
{
	struct hook_python_front *front = context;

	if (unlikely(!ptr))
		return;
	if (unlikely(language_heap_mine.heap)) {
		front->real.free(front->real.context, ptr);
		return;
	}
	language_heap_freed(front->heap, (uintptr_t)ptr, HOOK_FRAME);
	language_heap_begins(front->heap, (uintptr_t)ptr, HOOK_FRAME);
	front->real.free(front->real.context, ptr);
	language_heap_ends(0);
	language_heap_mine.heap = 0;
}

// ---- In front -------------------------------------------------------------------------------

// A program may set an allocator of its own after ours, in front of ours or in its place; we come
// in front of that again, four times at most.
static void hook_python_put(struct hook_python_interpreter *interpreter, int domain)
{
	struct hook_python_allocator now, ours = { .malloc = hook_python_malloc,
						   .calloc = hook_python_calloc,
						   .realloc = hook_python_realloc,
						   .free = hook_python_free };
	uint32_t times = interpreter->times[domain];
	struct hook_python_front *front;

	interpreter->get(domain, &now);
	if (now.malloc == hook_python_malloc || times == HOOK_PYTHON_TIMES)
		return;
	front = &interpreter->fronts[times][domain];
	*front = (struct hook_python_front){ now, domain == HOOK_PYTHON_MEM ? LANE_HEAP_PYMEM
									    : LANE_HEAP_PYOBJECT };
	ours.context = front;
	interpreter->times[domain] = times + 1;
	interpreter->set(domain, &ours);
}

// While an interpreter begins, one thread runs its code: only there its allocators may be read.
//
// `caller`: only within the interpreter's own code is it sure that its allocators are not being
// changed.
void hook_python_look(uintptr_t caller)
{
	bool begins = false;

	for (uint32_t i = 0; i < HOOK_PYTHON_INTERPRETERS; i++) {
		struct hook_python_interpreter *at = &hook_python_interpreters[i];

		if (!at->object || at->is_begun())
			continue;
		begins = true;
		if (caller - at->start >= at->end - at->start)
			continue;
		hook_python_put(at, HOOK_PYTHON_MEM);
		hook_python_put(at, HOOK_PYTHON_OBJECT);
	}
	hook_python_begins = begins;
}

void hook_python_unloaded(uintptr_t start, uintptr_t bytes)
{
	for (uint32_t i = 0; i < HOOK_PYTHON_INTERPRETERS; i++) {
		if (hook_python_interpreters[i].start - start < bytes)
			hook_python_interpreters[i].object = NULL;
	}
}

// Two things have to be so: it has the functions, and it has not begun yet. Blocks that it
// allocated before would be freed through us, unknown.
void hook_python_meet(const struct scope_object *object)
{
	struct hook_python_interpreter *at = hook_python_interpreters;
	void *set = scope_find(object, "PyMem_SetAllocator");
	static const char text[] = "the heaps of a Python before 3.7, or of one that ran already, "
				   "are not recorded";
	void *is_begun;

	if (likely(!set))
		return;
	while (at->object) {
		if (++at == hook_python_interpreters + HOOK_PYTHON_INTERPRETERS)
			return;
	}
	is_begun = scope_find(object, "_Py_IsCoreInitialized");
	*(void **)&at->get = scope_find(object, "PyMem_GetAllocator");
	*(void **)&at->set = set;
	*(void **)&at->is_begun = is_begun;
	__builtin_memset(at->times, 0, sizeof(at->times));
	if (!at->get || !is_begun || at->is_begun() || !scope_span(object, &at->start, &at->end)) {
		notes_message(NOTE_MESSAGE_OTHER, text);
		return;
	}
	at->object = object;
	hook_python_look(at->start);
	client_language_heaps();
}
