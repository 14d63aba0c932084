// For example, a program calls calloc of an allocator library, whose calloc calls malloc by name,
// which is ours again:
//
//     program, frame 0x7ffd00      calloc's hook: inside_mine.frame is 0x7ffd00 from here on
//       the library's calloc
//         frame 0x7ffc80           malloc's hook: all frames in between are of the library, so it
//                                  is the allocator's own: passed on, not recorded
//
//     the library's new_handler, the program's own function, calls malloc
//         frame 0x7ffb00           a frame in between is the program's: its call, and recorded
//
// The blocks that a nested call returned to a library that only helps an allocator are remembered,
// up to 1,000 of them, since they may be freed from outside.
#include "recorder/inside_linux.h"

#include "recorder/kernel.h"
#include "recorder/lane.h"
#include "recorder/late_linux.h"
#include "recorder/scope_linux.h"
#include "recorder/static_linux.h"

enum {
	INSIDE_LIBRARIES_MAX = 256,
	INSIDE_KEPT_MAX = 1000,
	INSIDE_OWN_MAX = 32,
	INSIDE_KEPT_PLACES = 4096,
	INSIDE_KEPT_NEAR = 64,       // places where a block may be
	INSIDE_NEAR_BYTES = 1 << 20, // so close to each other, frames are of one stack
};

// A library that defines allocator functions, or that such a one needs.
struct inside_library {
	const struct scope_object *object;
	uintptr_t start, end;
	bool allocates;
	bool program; // the executable, of which the allocator is but a part
};

bool inside_full;
__thread struct inside inside_mine;

uintptr_t inside_libc_start, inside_libc_bytes;

_Atomic uint32_t inside_kept_count;
static _Atomic uint64_t inside_kept[INSIDE_KEPT_PLACES];

static struct inside_library inside_libraries[INSIDE_LIBRARIES_MAX];
static _Atomic uint32_t inside_count;

// A library is known by its link_map. What is written first is complete before `inside_count` says
// that it is there: other threads look without a lock.
static void inside_add(const struct scope_object *object, bool allocates)
{
	uint32_t count = __atomic_load_n(&inside_count, __ATOMIC_ACQUIRE);
	struct inside_library *library = &inside_libraries[count];

	for (uint32_t i = 0; i < count; i++) {
		if (inside_libraries[i].object == object) {
			inside_libraries[i].allocates |= allocates;
			return;
		}
	}
	for (uint32_t i = 0; i < count; i++) {
		if (!inside_libraries[i].object) { // it was unloaded
			library = &inside_libraries[i];
			count = i;
		}
	}
	if (count == INSIDE_LIBRARIES_MAX) {
		inside_full = true;
		return;
	}
	library->object = object;
	library->allocates = allocates;
	library->program = object == scope_objects();
	if (!scope_span(object, &library->start, &library->end))
		library->object = NULL;
	else if (count == inside_count)
		__atomic_store_n(&inside_count, count + 1, __ATOMIC_RELEASE);
}

// What those that are known need, and what these need.
//
// The loop runs over those that it adds as well, so that it comes to an end when nothing new is
// needed.
static void inside_add_needed(void)
{
	inside_add(scope_ourselves(), true); // a function that ends in a call of another one
	for (const struct scope_object *at = scope_objects(); at; at = at->next) {
		if (scope_is_linker(at))
			inside_add(at, false);
	}
	for (uint32_t i = 0; i < inside_count; i++) {
		const struct scope_object *object = inside_libraries[i].object;

		if (!object)
			continue;
		for (const struct scope_object *at = scope_objects(); at; at = at->next) {
			if (scope_needs(object, at))
				inside_add(at, false);
		}
	}
}

bool inside_is_libc(const struct scope_object *object)
{
	return scope_find(object, "__libc_start_main") != NULL;
}

// The functions of glibc's allocator call none of ours. musl's do: calloc calls malloc by name,
// memalign and posix_memalign aligned_alloc. Its linker is the C library as well.
static bool inside_calls_by_name(const struct scope_object *object)
{
	return !inside_is_libc(object) || !scope_find(object, "gnu_get_libc_version");
}

// Whether the library's functions may call others of the family by name, and so come to our hooks.
static bool inside_is_allocator(const struct scope_object *object)
{
	static const char *const names[] = { "malloc",         "calloc",        "realloc", "free",
					     "posix_memalign", "aligned_alloc", "memalign" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (scope_find(object, names[i]))
			return inside_calls_by_name(object);
	}
	return false;
}

// Once, when the first hook finds the real functions. Nothing is watched where only glibc
// allocates: its functions call none of ours.
void inside_find(void)
{
	struct scope_object *ourselves = scope_ourselves();

	if (!ourselves)
		return;
	for (const struct scope_object *at = ourselves->next; at; at = at->next) {
		if ((!scope_is_linker(at) || inside_is_libc(at)) && inside_is_allocator(at))
			inside_add(at, true);
	}
	if (inside_count)
		inside_add_needed();
	else
		sample_seldom.watched = false;
}

// Of the C library, entered (enter_linux.h), only the allocator's own code is inside: from its
// first function to its last.
//
// In glibc all of these are in malloc.c, and the compiler keeps a file's functions together. The
// last one's own length is not known, so that its code is outside; it calls none of ours.
static bool inside_find_libc(const struct scope_object *object)
{
	static const char *const names[] = { "malloc",       "free",           "calloc",
					     "realloc",      "memalign",       "valloc",
					     "pvalloc",      "posix_memalign", "malloc_trim",
					     "malloc_stats", "malloc_info",    "malloc_usable_size",
					     "aligned_alloc" };
	uintptr_t start = UINTPTR_MAX, end = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		uintptr_t at = (uintptr_t)scope_find(object, names[i]);

		if (at && at < start)
			start = at;
		if (at > end)
			end = at;
	}
	if (start >= end)
		return false;
	inside_libc_start = start;
	inside_libc_bytes = end - start;
	return true;
}

static void inside_add_libc(const struct scope_object *object)
{
	struct inside_library library = { object, 0, 0, true, false };

	inside_full |= inside_count == INSIDE_LIBRARIES_MAX;
	if (!inside_find_libc(object) || inside_count == INSIDE_LIBRARIES_MAX)
		return;
	inside_add(scope_ourselves(), true); // a function that ends in a call of another one
	library.start = inside_libc_start;
	library.end = inside_libc_start + inside_libc_bytes;
	inside_libraries[inside_count] = library;
	__atomic_fetch_add(&inside_count, 1, __ATOMIC_RELEASE);
}

static _Atomic int inside_lock;

uintptr_t inside_own_start, inside_own_bytes, inside_ours_start, inside_ours_bytes;

static struct {
	uintptr_t start, bytes;
} inside_own[INSIDE_OWN_MAX];
static uint32_t inside_own_count;

// A range of code that is an allocator's own. They are kept one by one, and what encloses all of
// them, which is compared first (INSIDE_OWN).
void inside_add_code(uintptr_t start, uintptr_t bytes)
{
	uintptr_t end = inside_own_start + inside_own_bytes, ours;

	inside_full |= inside_own_count == INSIDE_OWN_MAX;
	if (inside_own_count == INSIDE_OWN_MAX || !bytes)
		return;
	inside_own[inside_own_count].start = start;
	inside_own[inside_own_count++].bytes = bytes;
	if (inside_own_count == 1 || start < inside_own_start)
		inside_own_start = start;
	if (start + bytes > end)
		end = start + bytes;
	inside_own_bytes = end - inside_own_start;
	if (scope_span(scope_ourselves(), &inside_ours_start, &ours))
		inside_ours_bytes = ours - inside_ours_start;
}

bool inside_is_own_code(uintptr_t pc)
{
	for (uint32_t i = 0; i < inside_own_count; i++) {
		if (pc - inside_own[i].start < inside_own[i].bytes)
			return true;
	}
	return false;
}

void inside_know_libc(const struct scope_object *object)
{
	inside_add_libc(object);
	inside_add_code(inside_libc_start, inside_libc_bytes);
}

void inside_add_entered(const struct scope_object *object)
{
	uint64_t signals = kernel_block_signals();

	recording_lock(&inside_lock);
	if (late_is() && !static_is() && !inside_libc_bytes && inside_is_libc(object) &&
	    !inside_calls_by_name(object)) {
		inside_add_libc(object);
	} else {
		inside_add(object, true);
		inside_add_needed();
	}
	sample_seldom.watched = true;
	recording_unlock(&inside_lock);
	kernel_restore_signals(signals);
}

void inside_add_allocator(const struct scope_object *object)
{
	if (!inside_is_libc(object))
		inside_add_entered(object);
}

// Who looks meanwhile finds nothing there.
void inside_remove(const struct scope_object *object)
{
	uint64_t signals = kernel_block_signals();

	recording_lock(&inside_lock);
	for (uint32_t i = 0; i < inside_count; i++) {
		if (inside_libraries[i].object != object)
			continue;
		inside_libraries[i].end = 0;
		inside_libraries[i].object = NULL;
	}
	recording_unlock(&inside_lock);
	kernel_restore_signals(signals);
}

static const struct inside_library *inside_library_of(uintptr_t pc)
{
	for (uint32_t i = 0; i < inside_count; i++) {
		const struct inside_library *library = &inside_libraries[i];

		if (pc >= library->start && pc < library->end)
			return library;
	}
	return NULL;
}

// Whether the hook is still in its real function: it returns to where it did. Its stack may be
// gone.
//
// A hook's frame has the return address in the word above it. If that has changed, the hook has
// returned, by longjmp or an exception, without saying so.
static bool inside_stays(const struct inside *outer, uintptr_t here)
{
	uintptr_t slot = outer->frame + sizeof(uintptr_t);
	uintptr_t page = slot & ~(uintptr_t)(KERNEL_PAGE - 1);

	if ((here ^ slot) / KERNEL_PAGE && !capture_readable(page, page + KERNEL_PAGE))
		return false;
	return *(const uintptr_t *)slot == outer->pc;
}

// Whether the stack of the hook with this frame leads to that of the outer one through the
// allocator alone. Behind a signal frame there is no slot.
//
// For example, slots from the innermost on are 0x7ffc88, 0x7ffcb8 and 0x7ffd08, and the outer
// hook's is the last: both frames before it have to be in libraries that are known.
static bool inside_leads(const struct capture *capture, uintptr_t slot)
{
	if (capture->flags & LANE_PUSH_CUT) // only its ids are kept
		return inside_library_of(capture->fresh[0].pc) != NULL;
	for (uint32_t i = capture->depth; i-- > 0 && capture_slot(capture, i);) {
		if (capture_slot(capture, i) == slot)
			return true;
		if (!inside_library_of(capture_pc(capture, i)))
			return false;
	}
	return false;
}

// A walk of its own, in a capture that nothing else uses: it must not become the lane's last stack.
// The lane is busy meanwhile, so that what the walk itself causes is not recorded.
static bool inside_walk(const struct inside *outer, const uintptr_t *frame)
{
	struct lane *lane = lane_enter();
	uint8_t *at;
	bool leads;

	if (!lane)
		return true; // it is not recorded in any case
	at = lane_at(lane, lane->head);
	if (!lane->asked_walk)
		lane->asked_walk = recording_pages(sizeof(*lane->asked_walk), true);
	leads = !lane->asked_walk;
	if (!leads) {
		capture_take(lane->asked_walk, frame);
		leads = inside_leads(lane->asked_walk, outer->frame + sizeof(uintptr_t));
	}
	lane_leave(lane, at, at);
	return leads;
}

// Four answers, by cost: the frame is further out than the hook's (that one was left); the caller
// is an allocator's library; the caller is of nothing that is known; and else the stack is walked.
bool inside_is_nested(struct inside *before, const uintptr_t *frame)
{
	uintptr_t here = (uintptr_t)frame;
	const struct inside_library *caller;

	if (here >= before->frame ? here - before->frame < INSIDE_NEAR_BYTES
				  : !inside_stays(before, here)) {
		*before = (struct inside){ 0 };
		return false;
	}
	if (here > before->frame)
		return false;
	caller = inside_library_of(frame[1]);
	if (caller && caller->allocates && !caller->program)
		return true;
	if (!caller || inside_kept_count == INSIDE_KEPT_MAX || !inside_walk(before, frame))
		return false;
	before->keeps = true;
	before->helps = !caller->program;
	return true;
}

static uint32_t inside_place(uint64_t block)
{
	return (uint32_t)((block >> 4) * 0x9e3779b1u) >> 16;
}

// 64 places are tried from the block's own on. If all are taken the block is not kept, and its end
// is recorded as that of a block that is not known.
void inside_keep(uint64_t block)
{
	for (uint32_t i = 0, at = inside_place(block); i < INSIDE_KEPT_NEAR; i++, at++) {
		_Atomic uint64_t *place = &inside_kept[at % INSIDE_KEPT_PLACES];
		uint64_t none = 0;

		if (!__atomic_load_n(place, __ATOMIC_RELAXED) &&
		    __atomic_compare_exchange_n(place, &none, block, false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED)) {
			__atomic_fetch_add(&inside_kept_count, 1, __ATOMIC_RELEASE);
			return;
		}
	}
}

COLD bool inside_take_kept(uint64_t block)
{
	for (uint32_t i = 0, at = inside_place(block); i < INSIDE_KEPT_NEAR; i++, at++) {
		_Atomic uint64_t *place = &inside_kept[at % INSIDE_KEPT_PLACES];
		uint64_t found = block;

		if (__atomic_load_n(place, __ATOMIC_ACQUIRE) == block &&
		    __atomic_compare_exchange_n(place, &found, 0, false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED)) {
			__atomic_fetch_sub(&inside_kept_count, 1, __ATOMIC_RELEASE);
			return true;
		}
	}
	return false;
}
