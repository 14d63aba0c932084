// For example, ntdll's function at 0x77a41230 gets a jump. Functions begin at multiples of 16, so
// the five bytes lie in one word of eight that is aligned, and are written with the three after
// them in one store: a thread that calls it at this moment finds the old beginning or the new one,
// and never half of each.
#include "recorder/patch_win32.h"

#include "recorder/kernel.h"
#include "recorder/relocate.h"
#include "recorder/text.h"

enum {
	PATCH_PAGES_BYTES = 1 << 14,
	PATCH_STEP = 1 << 16,
	PATCH_REACH = 0x70000000, // of a jump, with something to spare
	PATCH_LOOK_BYTES = 256,   // of a function
	PATCH_STORE_BYTES = 8,
};

struct patch_real patch_real;
struct patch_range patch_ntdll, patch_own;

// A hook in the making.
struct patch_work {
	const struct patch_hook *hook;
	uint8_t *trampoline; // NULL: it cannot be hooked
	uint8_t jump[RELOCATE_JUMP_BYTES];
	bool taken_over;                    // somebody else's jump stands there
	uint8_t began[RELOCATE_JUMP_BYTES]; // what the function began with
	const uint8_t *function; // where the jump was written; NULL: nowhere, or it is gone
};

static struct patch_work patch_works[PATCH_HOOKS_MAX];
static patch_told *patch_tell;

// Where trampolines go.
static uint8_t *patch_page;
static uint32_t patch_used;

// Pages for code within reach of ntdll. On 32 bits all of memory is.
//
// 64 KiB is the granularity of addresses.
static bool patch_find_page(void)
{
	for (uintptr_t distance = PATCH_STEP; distance < PATCH_REACH; distance += PATCH_STEP) {
		for (int below = 1; below >= 0; below--) {
			void *at =
				(void *)(below ? patch_ntdll.start - distance
					       : patch_ntdll.start + patch_ntdll.bytes + distance);
			size_t bytes = PATCH_PAGES_BYTES;

			at = (void *)((uintptr_t)at & ~(uintptr_t)(PATCH_STEP - 1));
			if (patch_real.NtAllocateVirtualMemory(NT_SELF, &at, 0, &bytes,
							       NT_MEM_RESERVE | NT_MEM_COMMIT,
							       NT_PAGE_READWRITE) >= 0) {
				patch_page = at;
				return true;
			}
		}
	}
	return false;
}

static bool patch_protect(void *at, size_t bytes, uint32_t protection, uint32_t *old)
{
	uint32_t unused;

	return patch_real.NtProtectVirtualMemory(NT_SELF, &at, &bytes, protection,
						 old ? old : &unused) >= 0;
}

// The jump, in one store where it lies in eight aligned bytes. Functions begin at multiples of 16.
static bool patch_write(uint8_t *function, const uint8_t *jump)
{
	uint8_t *word = (uint8_t *)((uintptr_t)function & ~(uintptr_t)(PATCH_STORE_BYTES - 1));
	size_t skip = (size_t)(function - word);
	uint8_t bytes[PATCH_STORE_BYTES];
	uint64_t value;
	uint32_t old;

	if (skip + RELOCATE_JUMP_BYTES > PATCH_STORE_BYTES)
		return false;
	if (!patch_protect(word, PATCH_STORE_BYTES, NT_PAGE_EXECUTE_READWRITE, &old))
		return false;
	__builtin_memcpy(bytes, word, PATCH_STORE_BYTES);
	__builtin_memcpy(bytes + skip, jump, RELOCATE_JUMP_BYTES);
	__builtin_memcpy(&value, bytes, PATCH_STORE_BYTES);
	__atomic_store_n((uint64_t *)(void *)word, value, __ATOMIC_SEQ_CST);
	patch_protect(word, PATCH_STORE_BYTES, old, NULL);
	NtFlushInstructionCache(NT_SELF, word, PATCH_STORE_BYTES);
	return true;
}

// The beginning of the function, moved. NULL: done. Else why not.
//
// In 64 bits a jump of five bytes leads to the end of the trampoline, and from there a jump through
// memory to the hook.
static const char *patch_prepare(struct patch_work *work)
{
	const bool wide = sizeof(void *) == 8;
	const uint8_t *function = *work->hook->real;
	uint8_t *trampoline = patch_page + patch_used;
	struct relocate moved;
	enum relocate_reason reason;
	const uint8_t *target = work->hook->hook;

	if (patch_used + RELOCATE_BYTES_MAX + RELOCATE_FAR_BYTES > PATCH_PAGES_BYTES)
		return "comes when there is no room any more";
	reason = relocate_copy(function, PATCH_LOOK_BYTES, (uintptr_t)function, trampoline,
			       (uintptr_t)trampoline, RELOCATE_JUMP_BYTES, wide ? RELOCATE_WIDE : 0,
			       &moved);
	if (reason != RELOCATE_DONE)
		return relocate_why(reason);
	if (wide) { // the hook is out of a short jump's reach
		target = trampoline + moved.written;
		relocate_jump_far(trampoline + moved.written, (uintptr_t)work->hook->hook);
	}
	if (!relocate_jump(work->jump, (uintptr_t)function, (uintptr_t)target, wide))
		return "is out of reach";
	work->trampoline = trampoline;
	memcpy(work->began, function, RELOCATE_JUMP_BYTES);
	work->taken_over = moved.begins_in_jump;
	patch_used += (moved.written + RELOCATE_FAR_BYTES + 15) & ~15u;
	return NULL;
}

// The module that the loader knows at `pc`.
//
// The last one that has the address; zeros if none has.
static struct patch_range patch_module_at(uintptr_t pc)
{
	const struct nt_list *first = &kernel_peb()->loader->load;
	struct patch_range range = { 0 };

	for (const struct nt_list *at = first->next; at != first; at = at->next) {
		const struct nt_module *module = (const void *)at;

		if (pc - (uintptr_t)module->base < module->bytes)
			range = (struct patch_range){ (uintptr_t)module->base, module->bytes };
	}
	return range;
}

static void patch_take(void **real, const char *name)
{
	struct nt_name text = { .text = name };

	while (name[text.bytes])
		text.bytes++;
	text.room = text.bytes;
	if (LdrGetProcedureAddress((void *)patch_ntdll.start, &text, 0, real) < 0)
		*real = NULL;
}

// Before any hook: patch_real has ntdll's own functions from here on. A function that this Windows
// does not have is NULL.
void patch_find(void)
{
	patch_ntdll = patch_module_at((uintptr_t)LdrGetProcedureAddress);
#define PATCH_TAKE(result, name, arguments) patch_take((void **)&patch_real.name, #name);
	NT_HOOKED(PATCH_TAKE)
#undef PATCH_TAKE
}

// All trampolines are made first, then their page becomes executable, and only then the jumps are
// written: at no moment does one lead to a page that cannot run. Returns how many were written.
uint32_t patch_start(const struct patch_hook *hooks, uint32_t count, patch_told *tell)
{
	struct patch_work *works = patch_works;
	uint32_t hooked = 0;

	patch_tell = tell;
	if (count > PATCH_HOOKS_MAX || !patch_find_page())
		return 0;
	for (uint32_t i = 0; i < count; i++) {
		const char *why;

		works[i].hook = &hooks[i];
		if (!*hooks[i].real)
			continue;
		why = patch_prepare(&works[i]);
		if (why)
			tell(hooks[i].name, why, false);
	}
	if (!patch_protect(patch_page, PATCH_PAGES_BYTES, NT_PAGE_EXECUTE_READ, NULL))
		return 0;
	for (uint32_t i = 0; i < count; i++) {
		void **real = hooks[i].real;
		uint8_t *function = *real;

		if (!works[i].trampoline)
			continue;
		// Before the jump is written: who calls patch_real then must come to the function,
		// and not to the hook.
		*real = works[i].trampoline;
		if (patch_write(function, works[i].jump)) {
			hooked++;
			works[i].function = function;
			if (works[i].taken_over)
				tell(hooks[i].name, "was hooked by somebody else before us", true);
		} else {
			*real = function;
			tell(hooks[i].name, "cannot be changed", false);
		}
	}
	return hooked;
}

// Who hooks a function after us jumps as well, and comes to us later.
//
// What is compared is the first five bytes: equal to what the function began with, our jump is
// gone.
void patch_check(void)
{
	for (uint32_t i = 0; i < PATCH_HOOKS_MAX; i++) {
		struct patch_work *work = &patch_works[i];
		const uint8_t *function =
			__atomic_exchange_n(&work->function, NULL, __ATOMIC_ACQ_REL);

		if (!function)
			continue;
		if (memcmp(function, work->began, RELOCATE_JUMP_BYTES) == 0)
			patch_tell(work->hook->name,
				   "has got its own code back, by the program: calls of it are "
				   "not recorded from there on",
				   false);
		else
			__atomic_store_n(&work->function, function, __ATOMIC_RELEASE);
	}
}
