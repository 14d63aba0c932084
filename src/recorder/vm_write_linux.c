// A call that is seen at its site has no frame of ours to begin a walk at. So it is lent one: the
// two words below the caller's stack pointer, in the red zone, become rbp and the address after the
// site, as if that had been called; the walk is taken; and the two words are what they were. For
// example, rsp is 0x7ffd1000, and the site's thunk returns to 0x7f0011a7: 0x7ffd0ff8 holds
// 0x7f0011a7 and 0x7ffd0ff0 rbp, for some hundred nanoseconds, on the thread's own stack.
#include "recorder/vm_write_linux.h"

#include "recorder/capture.h"
#include "recorder/elf.h"
#include "recorder/event.h"
#include "recorder/language_heap.h"
#include "recorder/own_linux.h"
#include "recorder/scope_linux.h"
#include "recorder/static_linux.h"
#include "recorder/strict_linux.h"
#include "recorder/text.h"
#include "recorder/vm_put.h"

enum {
	VM_WRITE_LOOK_FRAMES = 24,
	VM_WRITE_SBRK_BYTES = 256, // of the function's code
	VM_WRITE_FREE_BYTES = 256,
	VM_WRITE_OWN_MAX = 1024, // two for each of 256 lanes that a filter needs at once, and more
};

// Where code lies whose calls have another origin than the program's.
struct vm_write_range {
	uintptr_t start, end;
};

static struct vm_write_range vm_write_ours, vm_write_libc, vm_write_linker, vm_write_sbrk;
static struct vm_write_range vm_write_free; // libc's, which ours jumps to

// ---- Who called -----------------------------------------------------------------------------

// One subtraction for both bounds: what is below `start` wraps to a large number.
static bool vm_write_inside(const struct vm_write_range *range, uintptr_t pc)
{
	return pc - range->start < range->end - range->start;
}

static struct vm_write_range vm_write_range_of(const struct scope_object *object)
{
	struct vm_write_range range = { 0 };

	if (!object || !scope_span(object, &range.start, &range.end))
		return (struct vm_write_range){ 0 };
	return range;
}

// sbrk's and free's ends are not known: 256 bytes are more than either has, and what comes after
// them in libc is of no other kind.
void vm_write_start(void)
{
	const struct scope_object *libc;
	struct scope_object *linker = NULL;

	if (vm_write_ours.end)
		return;
	libc = scope_libc();
	scope_next("__tls_get_addr", &linker);
	if (!static_is()) // of which the program is a part
		vm_write_libc = vm_write_range_of(libc);
	if (linker != libc)
		vm_write_linker = vm_write_range_of(linker);
	if (libc)
		vm_write_sbrk.start = (uintptr_t)scope_find(libc, "sbrk");
	if (libc)
		vm_write_free.start = (uintptr_t)scope_find(libc, "free");
	vm_write_free.end = vm_write_free.start ? vm_write_free.start + VM_WRITE_FREE_BYTES : 0;
	vm_write_sbrk.end = vm_write_sbrk.start ? vm_write_sbrk.start + VM_WRITE_SBRK_BYTES : 0;
	vm_write_ours = vm_write_range_of(scope_ourselves());
	own_add(vm_write_ours.start, vm_write_ours.end - vm_write_ours.start);
}

bool vm_write_is_linker(uintptr_t pc)
{
	return vm_write_inside(&vm_write_linker, pc);
}

// From the stack just taken: whose call is it? Within our malloc it is the allocator's, and within
// libc's free, which asks for memory too where it is a thread's first call on the heap (our free is
// not in the stack: it jumps there). A language's allocator, which our hooks call, is the program.
// Else the caller of the function that made the call decides, which is the frame `first`.
static uint8_t vm_write_origin(const struct capture *capture, uint32_t first)
{
	uint32_t depth = capture->depth;
	uintptr_t caller = 0;

	for (uint32_t i = first; i < depth && i < VM_WRITE_LOOK_FRAMES; i++) {
		uintptr_t pc = capture_pc(capture, depth - 1 - i); // innermost first

		if (strict_calls_handler(pc))
			break; // what it interrupted has nothing to do with it
		if (pc - (uintptr_t)__start_language_hooks <
		    (uintptr_t)(__stop_language_hooks - __start_language_hooks))
			break; // an interpreter takes an arena
		if (vm_write_inside(&vm_write_ours, pc) || vm_write_inside(&vm_write_free, pc))
			return LANE_VM_ALLOCATOR;
		if (!caller && !vm_write_inside(&vm_write_sbrk, pc))
			caller = pc;
	}
	if (vm_write_inside(&vm_write_libc, caller))
		return LANE_VM_LIBC;
	if (vm_write_inside(&vm_write_linker, caller))
		return LANE_VM_LOADER;
	// The linker's own calls are made in place, without a function around them.
	if (depth && vm_write_inside(&vm_write_linker, capture_pc(capture, depth - 1)))
		return LANE_VM_LOADER;
	return LANE_VM_PROGRAM;
}

// ---- Our own memory ----------------------------------------------------------------------------

// What was mapped and unmapped by us and not told yet: a ring.
static struct vm_write_own_change {
	uint64_t start, bytes;
	_Atomic uint32_t state; // 0: free, 1: mapped, 2: gone
} vm_write_changes[VM_WRITE_OWN_MAX];
static _Atomic uint32_t vm_write_changes_put;
static _Atomic uint32_t vm_write_changes_told;

// A ring of changes, for any thread to report at its next record (vm_write_own). There are 1,024
// unreported ones only while nothing is recorded.
void vm_own(const void *start, size_t bytes, bool gone)
{
	uint32_t at = __atomic_load_n(&vm_write_changes_put, __ATOMIC_RELAXED);
	struct vm_write_own_change *change;

	if (gone)
		own_remove((uintptr_t)start);
	else
		own_add((uintptr_t)start, bytes);
	do {
		if (at - __atomic_load_n(&vm_write_changes_told, __ATOMIC_ACQUIRE) >=
		    VM_WRITE_OWN_MAX)
			return; // nothing is recorded: then it is not missed
	} while (!__atomic_compare_exchange_n(&vm_write_changes_put, &at, at + 1, true,
					      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	change = &vm_write_changes[at % VM_WRITE_OWN_MAX];
	change->start = (uintptr_t)start;
	change->bytes = bytes;
	__atomic_store_n(&change->state, gone ? 2 : 1, __ATOMIC_RELEASE);
}

// ---- Writing --------------------------------------------------------------------------------

// The stack of the call. The walk begins at the site: its return address and frame pointer are lent
// a place below the caller's stack pointer, in the red zone that it may use itself. True: it
// differs from the lane's last.
//
// A thunk has no frame that a walk could begin at. The two words are what `push %rbp` after a call
// would have left there. What was there is put back: it may be the program's red zone.
static bool vm_write_capture(struct lane *lane, const struct vm_ask *ask)
{
	uintptr_t *top = ask->top;
	uintptr_t kept[2];
	bool differs;

	if (ask->frame) {
		differs = capture_take(&lane->capture, ask->frame);
		if (lane->verify)
			event_verify(lane, ask->frame);
		return differs;
	}
	kept[0] = top[-2];
	kept[1] = top[-1];
	top[-2] = ask->rbp;
	top[-1] = ask->back;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	differs = capture_take(&lane->capture, top - 2);
	if (lane->verify)
		event_verify(lane, top - 2);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	top[-2] = kept[0];
	top[-1] = kept[1];
	return differs;
}

// Whether the innermost frame is a function that makes calls for others; a program's own code makes
// them for itself.
static bool vm_write_is_wrapped(const struct vm_ask *ask)
{
	return ask->back && (!vm_write_libc.end || vm_write_inside(&vm_write_libc, ask->back) ||
			     vm_write_inside(&vm_write_linker, ask->back));
}

// The call's stack, and whose it is.
static enum vm_put_stack vm_write_last(struct lane *lane, struct lane_vm *record,
				       const void *context)
{
	const struct vm_ask *ask = context;
	bool differs = vm_write_capture(lane, ask);

	record->origin = vm_write_origin(&lane->capture, vm_write_is_wrapped(ask) ? 1 : 0);
	return differs ? VM_PUT_DIFFERS : VM_PUT_SAME;
}

bool vm_write_put(struct lane *lane, struct lane_vm *record, const struct vm_ask *ask)
{
	return vm_put(lane, record, ask ? vm_write_last : NULL, ask);
}

// One thread at a time. It stops at the first change that is not written in full yet, so that the
// order is that of the ring.
void vm_write_own(struct lane *lane, uint8_t kind)
{
	struct recording_state *state = recording_state;
	uint32_t idle = 0;

	if (!__atomic_compare_exchange_n(&state->own_telling, &idle, 1, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return;
	for (uint32_t at = __atomic_load_n(&vm_write_changes_told, __ATOMIC_RELAXED);
	     at != __atomic_load_n(&vm_write_changes_put, __ATOMIC_ACQUIRE); at++) {
		struct vm_write_own_change *change = &vm_write_changes[at % VM_WRITE_OWN_MAX];
		struct lane_vm record = {
			.kind = kind,
			.origin = LANE_VM_RECORDER,
			.address = change->start,
			.size = change->bytes,
			.protection = KERNEL_PROT_READ | KERNEL_PROT_WRITE,
		};
		uint32_t what = __atomic_load_n(&change->state, __ATOMIC_ACQUIRE);

		if (!what || (what == 2 && kind == LANE_VM_OWN) || !vm_put_room(lane))
			break;
		if (what == 2)
			record.kind = LANE_VM_UNMAPPED;
		vm_write_put(lane, &record, NULL);
		__atomic_store_n(&change->state, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&vm_write_changes_told, at + 1, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&state->own_telling, 0, __ATOMIC_RELEASE);
}

void vm_write_leave(struct vm_write_door *door)
{
	if (!door->lane)
		return;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (door->between)
		door->lane->between = true;
	else
		door->lane->limit = door->lane->open_limit;
	door->lane = NULL;
}

// Within a realloc the lane is this thread's already (`between`), and this record goes between its
// halves.
struct vm_write_door vm_write_enter(void)
{
	struct vm_write_door door = { .lane = lane_get_mine() };

	if (door.lane->between) {
		door.lane->between = false;
		door.between = true;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	} else {
		door.lane = lane_enter();
	}
	if (door.lane && !vm_put_first(door.lane))
		vm_write_leave(&door);
	if (door.lane && unlikely(__atomic_load_n(&vm_write_changes_put, __ATOMIC_RELAXED) !=
				  __atomic_load_n(&vm_write_changes_told, __ATOMIC_RELAXED)))
		vm_write_own(door.lane, LANE_VM_MAPPED);
	return door;
}
