#include "recorder/patch.h"

#include "recorder/capture.h"
#include "recorder/codemap.h"
#include "recorder/elf64.h"
#include "recorder/exec.h"
#include "recorder/kernel.h"
#include "recorder/recording.h"
#include "recorder/scope.h"
#include "recorder/text.h"

enum {
	PATCH_SITE_BYTES = 7,
	PATCH_FUNCTION_BYTES = 64,
	PATCH_THUNK_BYTES = 128,
	PATCH_REACH = 0x70000000, // of a rel32 jump, with something to spare
	PATCH_STEP = 1 << 20,
};

// The registers of a system call, as the thunk lays them out.
struct patch_arguments {
	long a, b, c, d, e, f;
};

// Where thunks go: one page near the code that was found first.
static uint8_t *patch_page;
static uint32_t patch_used;

static long patch_munmap(struct patch_arguments *call)
{
	uintptr_t start = (uintptr_t)call->a;
	uint64_t signals = 0;
	long result;

	__atomic_fetch_add(&capture_epoch, 1, __ATOMIC_SEQ_CST);
	if (recording_phase() == RECORDING_ON) {
		signals = kernel_block_signals();
		recording_lock(&recording_state->code_lock);
		if (codemap_unmapped(start, start + (uintptr_t)call->b))
			unwind_forget();
		recording_unlock(&recording_state->code_lock);
		kernel_restore_signals(signals);
	}
	result = kernel(__NR_munmap, call->a, call->b);
	__atomic_fetch_add(&capture_epoch, 1, __ATOMIC_SEQ_CST);
	return result;
}

// What the thunks call, with the number of the call that they replace.
static long patch_call(struct patch_arguments *call, long number)
{
	long result;

	switch (number) {
	case __NR_munmap:
		return patch_munmap(call);
	case __NR_mremap:
		__atomic_fetch_add(&capture_epoch, 1, __ATOMIC_SEQ_CST);
		result = kernel(__NR_mremap, call->a, call->b, call->c, call->d, call->e);
		__atomic_fetch_add(&capture_epoch, 1, __ATOMIC_SEQ_CST);
		return result;
	case __NR_execve:
		return exec_call((const char *)call->a, call->b, (char *const *)call->c);
	default:
		return kernel_call6(number, call->a, call->b, call->c, call->d, call->e, call->f);
	}
}

// A page for thunks within reach of `near`.
static bool patch_find_page(uintptr_t near)
{
	uintptr_t base = near & ~(uintptr_t)(PATCH_STEP - 1);

	if (patch_page)
		return (uintptr_t)patch_page - near + PATCH_REACH < 2ul * PATCH_REACH;
	for (uintptr_t distance = PATCH_STEP; distance < PATCH_REACH; distance += PATCH_STEP) {
		for (int below = 1; below >= 0; below--) {
			long at = kernel(__NR_mmap, below ? base - distance : base + distance,
					 KERNEL_PAGE, KERNEL_PROT_READ | KERNEL_PROT_WRITE,
					 KERNEL_MAP_PRIVATE | KERNEL_MAP_ANONYMOUS |
						 KERNEL_MAP_FIXED_NOREPLACE,
					 -1, 0);

			if (!kernel_failed(at)) {
				patch_page = (uint8_t *)at;
				return true;
			}
		}
	}
	return false;
}

static uint8_t *patch_put(uint8_t *at, const void *bytes, size_t size)
{
	memcpy(at, bytes, size);
	return at + size;
}

// The thunk: keeps the red zone and every register but rax, rcx and r11, which the system call may
// change too; calls patch_call(&arguments, number); goes on after the site.
static uint8_t *patch_make_thunk(uint32_t number, const uint8_t *back)
{
	static const uint8_t enter[] = {
		0x48, 0x8d, 0x64, 0x24, 0x80,       // lea -128(%rsp),%rsp
		0x55,                               // push %rbp
		0x48, 0x89, 0xe5,                   // mov %rsp,%rbp
		0x41, 0x51, 0x41, 0x50, 0x41, 0x52, // push %r9, %r8, %r10
		0x52, 0x56, 0x57,                   // push %rdx, %rsi, %rdi
		0x48, 0x89, 0xe7,                   // mov %rsp,%rdi
		0x48, 0x83, 0xe4, 0xf0,             // and $-16,%rsp
		0xbe,                               // mov $number,%esi
	};
	static const uint8_t call[] = { 0x48, 0xb8 }; // mov $patch_call,%rax
	static const uint8_t leave[] = {
		0xff, 0xd0,                               // call *%rax
		0x48, 0x8d, 0x65, 0xd0,                   // lea -48(%rbp),%rsp
		0x5f, 0x5e, 0x5a,                         // pop %rdi, %rsi, %rdx
		0x41, 0x5a, 0x41, 0x58, 0x41, 0x59,       // pop %r10, %r8, %r9
		0x5d,                                     // pop %rbp
		0x48, 0x8d, 0xa4, 0x24, 0x80, 0,    0, 0, // lea 128(%rsp),%rsp
		0xe9,                                     // jmp back
	};
	uint8_t *start = patch_page + patch_used;
	uint8_t *at = start;
	uint64_t function = (uint64_t)patch_call;
	int32_t distance;

	at = patch_put(at, enter, sizeof(enter));
	at = patch_put(at, &number, 4);
	at = patch_put(at, call, sizeof(call));
	at = patch_put(at, &function, 8);
	at = patch_put(at, leave, sizeof(leave));
	distance = (int32_t)(back - (at + 4));
	at = patch_put(at, &distance, 4);
	patch_used += PATCH_THUNK_BYTES;
	return start;
}

static bool patch_wanted(uint32_t number)
{
	return number == __NR_execve || number == __NR_munmap || number == __NR_mremap;
}

static void patch_site(uint8_t *site, uint32_t number)
{
	uintptr_t page = (uintptr_t)site & ~(uintptr_t)(KERNEL_PAGE - 1);
	uintptr_t end = ((uintptr_t)site + PATCH_SITE_BYTES + KERNEL_PAGE - 1) &
			~(uintptr_t)(KERNEL_PAGE - 1);
	uint8_t jump[5] = { 0xe9 };
	const uint8_t *thunk;
	int32_t distance;

	if (patch_used + PATCH_THUNK_BYTES > KERNEL_PAGE || !patch_find_page((uintptr_t)site))
		return;
	if (kernel_failed(kernel(__NR_mprotect, page, end - page,
				 KERNEL_PROT_READ | KERNEL_PROT_WRITE | KERNEL_PROT_EXEC)))
		return;
	thunk = patch_make_thunk(number, site + PATCH_SITE_BYTES);
	distance = (int32_t)(thunk - (site + sizeof(jump)));
	memcpy(jump + 1, &distance, 4);
	memcpy(site, jump, sizeof(jump));
	kernel(__NR_mprotect, page, end - page, KERNEL_PROT_READ | KERNEL_PROT_EXEC);
}

// Patch the sites in [at, end).
static void patch_range(uint8_t *at, const uint8_t *end)
{
	for (; at + PATCH_SITE_BYTES <= end; at++) {
		uint32_t number;

		if (at[0] != 0xb8 || at[5] != 0x0f || at[6] != 0x05)
			continue;
		memcpy(&number, at + 1, 4);
		if (patch_wanted(number))
			patch_site(at, number);
	}
}

// libc has each site at the beginning of the function of that name.
static void patch_function(const struct scope_object *libc, const char *name)
{
	uint8_t *function = scope_find(libc, name);

	if (function)
		patch_range(function, function + PATCH_FUNCTION_BYTES);
}

// The linker shows no names for its own: look through all of its (small) code.
static void patch_linker(const struct scope_object *object)
{
	const struct elf64_header *elf = (const void *)object->bias;
	const struct elf64_program *program;

	if (!object->bias || memcmp(elf->identity, "\177ELF", 4) != 0)
		return;
	program = (const void *)(object->bias + elf->program_at);
	for (uint16_t i = 0; i < elf->program_count; i++) {
		uint8_t *at = (uint8_t *)(object->bias + program[i].address);

		if (program[i].type == ELF64_LOAD && (program[i].flags & ELF64_EXECUTABLE))
			patch_range(at, at + program[i].memory_size);
	}
}

void patch_start(void)
{
	struct scope_object *libc = NULL;
	struct scope_object *linker = NULL;

	scope_next("execve", &libc);
	scope_next("__tls_get_addr", &linker);
	if (libc) {
		patch_function(libc, "execve");
		patch_function(libc, "munmap");
		patch_function(libc, "mremap");
	}
	if (linker && linker != libc)
		patch_linker(linker);
	if (patch_page)
		kernel(__NR_mprotect, patch_page, KERNEL_PAGE, KERNEL_PROT_READ | KERNEL_PROT_EXEC);
}
