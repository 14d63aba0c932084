// The step between places that are tried is 1 MiB, so an executable of 3 MiB at 0x400000 is first
// tried at 0x300000: a page there is in reach of all of it, and of what the linker maps above it.
#include "recorder/enter_pages_linux.h"

#include "recorder/kernel.h"
#include "recorder/late_linux.h"
#include "recorder/relocate.h"
#include "recorder/text.h"
#include "recorder/vm.h"

enum {
	ENTER_REAL_BYTES = 10, // that put the real function where the hook looks for it
	// The moved instructions, what puts the real function into r9, and a far jump to the hook.
	ENTER_ONE_BYTES = RELOCATE_BYTES_MAX + ENTER_REAL_BYTES + RELOCATE_FAR_BYTES,
	ENTER_PAGES_BYTES = 10 * KERNEL_PAGE,
	ENTER_STEP = 1 << 20,
	ENTER_REACH = 0x70000000, // of a jump, with something to spare
	ENTER_LOOK_BYTES = 256,   // of a function
};

// MAP_FIXED_NOREPLACE: the kernel refuses what is taken, and maps nothing elsewhere.
static void *enter_pages_try(uintptr_t at, size_t bytes)
{
	long got = kernel_map(
		at, bytes, KERNEL_PROT_READ | KERNEL_PROT_WRITE,
		KERNEL_MAP_PRIVATE | KERNEL_MAP_ANONYMOUS | KERNEL_MAP_FIXED_NOREPLACE, -1, 0);

	if (kernel_failed(got))
		return NULL;
	vm_own((void *)got, bytes, false);
	late_pages((void *)got, bytes, false);
	return (void *)got;
}

// A jump of five bytes reaches 2 GiB either way; ENTER_REACH leaves 256 MiB of that.
//
// Above libraries the nearest place is taken, since the stack may be no more than 128 MiB further
// up, and grows down. Above an executable its heap begins, so the furthest is taken there.
void *enter_pages_near(uintptr_t start, uintptr_t end, size_t bytes)
{
	uintptr_t reach, heap = (uintptr_t)kernel(__NR_brk, 0);
	void *got = NULL;

	start &= ~(uintptr_t)(ENTER_STEP - 1);
	end = (end + ENTER_STEP) & ~(uintptr_t)(ENTER_STEP - 1);
	if (end - start > ENTER_REACH)
		return NULL;
	reach = ENTER_REACH - (end - start); // whole steps, as the others are
	for (uintptr_t far = ENTER_STEP; !got && far < reach && far < start; far += ENTER_STEP)
		got = enter_pages_try(start - far, bytes);
	for (uintptr_t far = ENTER_STEP; !got && far <= reach; far += ENTER_STEP)
		got = enter_pages_try(heap - start < ENTER_REACH ? end + reach - far : end + far,
				      bytes);
	return got;
}

// Writable or executable, never both at once: some systems forbid that.
bool enter_pages_protect(const struct enter_pages *pages, bool done)
{
	return !kernel_failed(
		kernel(__NR_mprotect, pages->bytes, ENTER_PAGES_BYTES,
		       KERNEL_PROT_READ | (done ? KERNEL_PROT_EXEC : KERNEL_PROT_WRITE)));
}

// Whether pages may become executable at all is tried before any function is changed. Without pages
// `bytes` is NULL, and all moves fail.
void enter_pages_make(struct enter_pages *pages)
{
	pages->bytes = enter_pages_near(pages->start, pages->end, ENTER_PAGES_BYTES);
	pages->used = 0;
	if (pages->bytes &&
	    (!enter_pages_protect(pages, true) || !enter_pages_protect(pages, false)))
		pages->bytes = NULL;
}

// What leads from the function to the hook: on the way it is told the real function.
static size_t enter_pages_bridge(uint8_t *out, const uint8_t *moved, const void *hook)
{
	static const uint8_t put[] = { 0x49, 0xb9 }; // movabs $real, %r9

	memcpy(out, put, sizeof(put));
	memcpy(out + sizeof(put), &moved, sizeof(moved));
	return ENTER_REAL_BYTES + relocate_jump_far(out + ENTER_REAL_BYTES, (uintptr_t)hook);
}

// NULL: done. Else why not, in words for the report. The jump is written last, when all that it
// leads to is there.
const char *enter_pages_move(struct enter_pages *pages, uint8_t *at, void *hook, bool plain,
			     uint8_t **moved)
{
	uint8_t *trampoline = pages->bytes + pages->used;
	const uint8_t *target = hook;
	uint8_t jump[RELOCATE_JUMP_BYTES];
	struct relocate copied;
	enum relocate_reason reason;

	if (!pages->bytes)
		return relocate_why(RELOCATE_DONE);
	if (pages->used + ENTER_ONE_BYTES > ENTER_PAGES_BYTES)
		return "comes when there is no room any more";
	reason = relocate_copy(at, ENTER_LOOK_BYTES, (uintptr_t)at, trampoline,
			       (uintptr_t)trampoline, RELOCATE_JUMP_BYTES,
			       RELOCATE_WALKED | (ENTER_PAGES_WIDE ? RELOCATE_WIDE : 0), &copied);
	if (reason != RELOCATE_DONE)
		return relocate_why(reason);
	if (ENTER_PAGES_WIDE) {
		target = trampoline + copied.written;
		if (plain)
			relocate_jump_far(trampoline + copied.written, (uintptr_t)hook);
		else
			enter_pages_bridge(trampoline + copied.written, trampoline, hook);
	}
	if (!relocate_jump(jump, (uintptr_t)at, (uintptr_t)target, ENTER_PAGES_WIDE) ||
	    !late_write(at, jump, sizeof(jump)))
		return relocate_why(RELOCATE_DONE);
	// Each function gets room for the largest, so that none has to be measured before.
	pages->used += ENTER_ONE_BYTES;
	*moved = trampoline;
	return NULL;
}

void enter_pages_free(struct enter_pages *pages)
{
	if (!pages->bytes)
		return;
	vm_own(pages->bytes, ENTER_PAGES_BYTES, true);
	late_pages(pages->bytes, ENTER_PAGES_BYTES, true);
	kernel(__NR_munmap, pages->bytes, ENTER_PAGES_BYTES);
}
