// On i386, libc calls the kernel by `call *%gs:0x10`, which is seven bytes, with the number in
// eax. It becomes a call of patch_enter, which finds everything as the kernel would have found it,
// passes on what is not for us as if it had not been there, and needs no code made at run time.
// The dynamic linker uses the two bytes of `int $0x80`; they are replaced with the instruction
// before them, which a stub of ours makes up for. Calls with six arguments have one helper in each
// of the two.
//
// For example, libc's munmap has b8 5b 00 00 00, `mov $91,%eax`, and after it 65 ff 15 10 00 00 00.
// These seven bytes become e8 and a distance, `call patch_enter`, and 66 90, a nop of two bytes.
// The linker has b8 5b 00 00 00 cd 80, also seven bytes: all of it becomes a call of
// patch_enter_munmap, which puts 91 into eax itself.
#include "recorder/exec_linux.h"
#include "recorder/kernel.h"
#include "recorder/late_linux.h"
#include "recorder/patch_linux.h"
#include "recorder/scope_linux.h"
#include "recorder/text.h"
#include "recorder/vm.h"

enum {
	PATCH_CALL_BYTES = 5,
	PATCH_SITE_BYTES = 7, // of libc's call
	PATCH_PREFIX = 0x2e,  // a segment, which a near call has no use for
	PATCH_FUNCTION_BYTES = 160,
	PATCH_HELPER_BYTES = 32,
	PATCH_NR_OLD_MMAP = 90,
	PATCH_NR_IPC = 117,
	PATCH_IPC_SHMAT = 21,
	PATCH_IPC_SHMDT = 22,
};

// By number: is it for us?
HIDDEN extern uint32_t patch_wanted[PATCH_NUMBERS / 32];
uint32_t patch_wanted[PATCH_NUMBERS / 32];

HIDDEN void patch_enter(void);
HIDDEN void patch_enter_munmap(void);
HIDDEN void patch_enter_mprotect(void);
HIDDEN void patch_enter_brk(void);
HIDDEN void patch_enter_helper(void);

// What patch_enter has pushed, and what lies above it on the stack.
struct patch_registers {
	long words[6]; // ebx, ecx, edx, esi, edi, ebp
	uintptr_t ebp; // of who called
	uintptr_t back;
	uintptr_t stack[]; // the caller's stack pointer pointed here
};

HIDDEN __attribute__((used)) long patch_call(struct patch_registers *call, long number);

// All registers but eax are kept, those of SSE too, as a system call keeps them.
__asm__(".text\n"
	".hidden patch_enter\n"
	".globl patch_enter\n"
	".type patch_enter, @function\n"
	"patch_enter:\n"
	".cfi_startproc\n"
	"	pushl %ecx\n"
	"	.cfi_adjust_cfa_offset 4\n"
	"	call 1f\n"
	"1:	popl %ecx\n"
	"	cmpl $511, %eax\n"
	"	ja 2f\n"
	"	btl %eax, patch_wanted-1b(%ecx)\n"
	"	jc 3f\n"
	"2:	popl %ecx\n"
	"	.cfi_adjust_cfa_offset -4\n"
	"	jmp *%gs:0x10\n"
	"	.cfi_adjust_cfa_offset 4\n"
	"3:	popl %ecx\n"
	"	.cfi_adjust_cfa_offset -4\n"
	"	pushl %ebp\n"
	"	.cfi_adjust_cfa_offset 4\n"
	"	.cfi_rel_offset %ebp, 0\n"
	"	movl %esp, %ebp\n"
	"	.cfi_def_cfa_register %ebp\n"
	"	pushl (%ebp)\n"
	"	pushl %edi\n"
	"	pushl %esi\n"
	"	pushl %edx\n"
	"	pushl %ecx\n"
	"	pushl %ebx\n"
	"	movl %esp, %ecx\n"
	"	subl $128, %esp\n"
	"	andl $-16, %esp\n"
	"	movaps %xmm0, (%esp)\n"
	"	movaps %xmm1, 16(%esp)\n"
	"	movaps %xmm2, 32(%esp)\n"
	"	movaps %xmm3, 48(%esp)\n"
	"	movaps %xmm4, 64(%esp)\n"
	"	movaps %xmm5, 80(%esp)\n"
	"	movaps %xmm6, 96(%esp)\n"
	"	movaps %xmm7, 112(%esp)\n"
	"	subl $8, %esp\n"
	"	pushl %eax\n"
	"	pushl %ecx\n"
	"	call patch_call\n"
	"	addl $16, %esp\n"
	"	movaps (%esp), %xmm0\n"
	"	movaps 16(%esp), %xmm1\n"
	"	movaps 32(%esp), %xmm2\n"
	"	movaps 48(%esp), %xmm3\n"
	"	movaps 64(%esp), %xmm4\n"
	"	movaps 80(%esp), %xmm5\n"
	"	movaps 96(%esp), %xmm6\n"
	"	movaps 112(%esp), %xmm7\n"
	"	leal -24(%ebp), %esp\n"
	"	popl %ebx\n"
	"	popl %ecx\n"
	"	popl %edx\n"
	"	popl %esi\n"
	"	popl %edi\n"
	"	addl $4, %esp\n"
	"	popl %ebp\n"
	"	.cfi_def_cfa %esp, 4\n"
	"	.cfi_restore %ebp\n"
	"	ret\n"
	".cfi_endproc\n"
	".size patch_enter, . - patch_enter\n"
	// What the linker's sites lose, and on.
	".hidden patch_enter_munmap\n"
	".globl patch_enter_munmap\n"
	"patch_enter_munmap:\n"
	"	movl $91, %eax\n"
	"	jmp patch_enter\n"
	".hidden patch_enter_mprotect\n"
	".globl patch_enter_mprotect\n"
	"patch_enter_mprotect:\n"
	"	movl $125, %eax\n"
	"	jmp patch_enter\n"
	".hidden patch_enter_brk\n"
	".globl patch_enter_brk\n"
	"patch_enter_brk:\n"
	"	movl 12(%esp), %ebx\n"
	"	jmp patch_enter\n"
	".hidden patch_enter_helper\n"
	".globl patch_enter_helper\n"
	"patch_enter_helper:\n"
	"	movl 4(%edi), %edi\n"
	"	jmp patch_enter\n");

_Static_assert(__NR_munmap == 91 && __NR_mprotect == 125, "as spelled out above");

// Addresses behind the sites of the helpers for six arguments.
static uintptr_t patch_helpers[2];
static uint32_t patch_helpers_count;

// The call of old, with its arguments in memory, and its offset in bytes where that of mmap2 is in
// pages. One that is no whole page is the kernel's to refuse.
static long patch_old_mmap(struct vm_ask *ask)
{
	const long *arguments = (const long *)ask->words[0];

	if (arguments[5] % KERNEL_PAGE)
		return kernel_pass(PATCH_NR_OLD_MMAP, arguments);
	memcpy(ask->words, arguments, sizeof(ask->words));
	ask->words[5] = (long)((unsigned long)arguments[5] / KERNEL_PAGE);
	return vm_call(ask, KERNEL_NR_MMAP);
}

// libc's way to shared memory of System V: one call for all that is of System V. For example
// ipc(21, id, flags, &address, at) is shmat(id, at, flags), whose flags are in their place already,
// and whose result goes through the pointer.
static long patch_ipc(struct vm_ask *ask)
{
	const long *words = ask->words;
	struct vm_ask direct = *ask;
	long address;

	if (words[0] == PATCH_IPC_SHMDT) {
		direct.words[0] = words[4];
		return vm_call(&direct, __NR_shmdt);
	}
	if (words[0] != PATCH_IPC_SHMAT)
		return kernel_call6(PATCH_NR_IPC, words[0], words[1], words[2], words[3], words[4],
				    words[5]);
	direct.words[0] = words[1];
	direct.words[1] = words[4];
	address = vm_call(&direct, __NR_shmat);
	if (kernel_failed(address))
		return address;
	*(long *)words[3] = address;
	return 0;
}

static long patch_make(struct vm_ask *ask, long number)
{
	switch (number) {
	case __NR_execve:
	case __NR_execveat:
		return exec_call(number, ask->words);
	case PATCH_NR_OLD_MMAP:
		return patch_old_mmap(ask);
	case PATCH_NR_IPC:
		return patch_ipc(ask);
	default:
		return vm_call(ask, number);
	}
}

// The walk begins where the site is. A helper is no place that anybody would look for: there it
// begins at the helper's caller. The helper has saved ebp, edi and ebx in front of its return
// address, and the place of the ebx may be lent.
long patch_call(struct patch_registers *call, long number)
{
	struct vm_ask ask = { .frame = &call->ebp, .back = call->back };

	memcpy(ask.words, call->words, sizeof(ask.words));
	for (uint32_t i = 0; i < patch_helpers_count; i++)
		if (patch_helpers[i] == call->back) {
			ask.frame = NULL;
			ask.rbp = call->stack[0];
			ask.back = call->stack[3];
			ask.top = &call->stack[4];
		}
	return patch_make(&ask, number);
}

// Make the `bytes` at `site` a call of `target`, one instruction that comes back behind them: to
// where the kernel came back to, so that a thread may be on its way while they are changed, or put
// back. What it is longer than a call needs are prefixes that mean nothing. False: it may not be.
static bool patch_site(uint8_t *site, size_t bytes, void (*target)(void))
{
	uint8_t call[PATCH_CALL_BYTES + 2] = { PATCH_PREFIX, PATCH_PREFIX };
	uint32_t distance = (uint32_t)((uintptr_t)target - (uintptr_t)(site + bytes));

	call[bytes - PATCH_CALL_BYTES] = 0xe8;
	memcpy(call + bytes - 4, &distance, 4);
	if (!late_write(site, call, bytes))
		return false;
	patch_done++;
	return true;
}

static void patch_note_helper(const uint8_t *site, size_t bytes)
{
	if (patch_helpers_count < sizeof(patch_helpers) / sizeof(*patch_helpers))
		patch_helpers[patch_helpers_count++] = (uintptr_t)site + bytes;
}

// The first site of libc's in [at, end), made ours. NULL: there is none that may be.
static const uint8_t *patch_first(uint8_t *at, const uint8_t *end)
{
	static const uint8_t by_gs[PATCH_SITE_BYTES] = { 0x65, 0xff, 0x15, 0x10 }; // call *%gs:0x10
	static const uint8_t ours[] = { PATCH_PREFIX, PATCH_PREFIX, 0xe8 };

	for (; at + sizeof(by_gs) <= end; at++) {
		if (memcmp(at, ours, sizeof(ours)) == 0) {
			uint32_t distance;

			memcpy(&distance, at + sizeof(ours), 4);
			if (at + PATCH_SITE_BYTES + (int32_t)distance == (uint8_t *)patch_enter)
				return at; // done already
		}
		if (memcmp(at, by_gs, sizeof(by_gs)) == 0)
			return patch_site(at, sizeof(by_gs), patch_enter) ? at : NULL;
	}
	return NULL;
}

// The site behind `mov $number,%eax`, in this function or, behind a call, in the helper.
static bool patch_behind(uint8_t *function, uint32_t number)
{
	const uint8_t *end = function + PATCH_FUNCTION_BYTES;
	uint8_t move[5] = { 0xb8 };

	memcpy(move + 1, &number, 4);
	for (uint8_t *at = function; at + 2 * sizeof(move) <= end; at++) {
		uint8_t *behind = at + 2 * sizeof(move);
		const uint8_t *site;
		uint32_t distance;

		if (memcmp(at, move, sizeof(move)) != 0)
			continue;
		if (at[sizeof(move)] == 0xe8) { // or a call that finds out where the code is
			memcpy(&distance, behind - 4, 4);
			behind += (int32_t)distance;
			site = patch_first(behind, behind + PATCH_HELPER_BYTES);
			if (site && !patch_helpers_count)
				patch_note_helper(site, PATCH_SITE_BYTES);
			if (site)
				return true;
		}
		return patch_first(at, end) != NULL;
	}
	return false;
}

static void patch_function(const struct scope_object *libc, const struct patch_function *each)
{
	uint8_t *function = scope_find(libc, each->name);
	bool by_ipc = each->number == __NR_shmat || each->number == __NR_shmdt;

	if (!function)
		return;
	if (patch_behind(function, each->number) ||
	    (by_ipc && patch_behind(function, PATCH_NR_IPC)))
		patch_cover(each->place);
	else if (each->number != __NR_execveat) // old ones go by execve
		patch_missing++;
}

// syscall() itself: the number is an argument.
static void patch_any(const struct scope_object *libc)
{
	uint8_t *function = scope_find(libc, "syscall");

	if (function && patch_first(function, function + PATCH_HELPER_BYTES * 2))
		patch_cover(PATCH_SYSCALL);
}

// A site of the linker: these bytes, of which the last `bytes` become a call.
struct patch_pattern {
	uint8_t code[13];
	uint8_t size;
	uint8_t bytes;
	void (*target)(void);
};

// The linker shows no names for its own: look through all of its (small) code.
static void patch_linker(uint8_t *at, const uint8_t *end)
{
	const struct patch_pattern patterns[] = {
		{ { 0xb8, __NR_munmap, 0, 0, 0, 0xcd, 0x80 }, 7, 7, patch_enter_munmap },
		{ { 0xb8, __NR_mprotect, 0, 0, 0, 0xcd, 0x80 }, 7, 7, patch_enter_mprotect },
		{ { 0xb8, __NR_brk, 0, 0, 0, 0x8b, 0x5c, 0x24, 0x08, 0xcd, 0x80 },
		  11,
		  6,
		  patch_enter_brk },
		// push ebx, edi, ebp; mov (edi),ebx; mov 8(edi),ebp; mov 4(edi),edi; int $0x80
		{ { 0x53, 0x57, 0x55, 0x8b, 0x1f, 0x8b, 0x6f, 0x08, 0x8b, 0x7f, 0x04, 0xcd, 0x80 },
		  13,
		  5,
		  patch_enter_helper },
	};

	for (; at < end; at++)
		for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
			const struct patch_pattern *each = &patterns[i];
			uint8_t *site = at + each->size - each->bytes;

			if (each->size > end - at || memcmp(at, each->code, each->size) != 0)
				continue;
			if (patch_site(site, each->bytes, each->target) &&
			    each->target == patch_enter_helper)
				patch_note_helper(site, each->bytes);
		}
}

// patch_enter is what all sites call, whatever their number; `wanted` has those that it does not
// pass on: besides calls on virtual memory and exec the two forms that only i386 has, mmap with its
// arguments in memory, and one call for all that is of System V.
void patch_start(void)
{
	const struct scope_object *libc = scope_libc();
	struct scope_object *linker = NULL;

	for (uint32_t number = 0; number < PATCH_NUMBERS; number++)
		if (vm_is_call(number) || exec_is_call(number) || number == PATCH_NR_OLD_MMAP ||
		    number == PATCH_NR_IPC)
			patch_wanted[number / 32] |= 1u << number % 32;
	scope_next("___tls_get_addr", &linker);
	for (size_t i = 0; libc && i < patch_functions_count; i++)
		patch_function(libc, &patch_functions[i]);
	if (libc)
		patch_any(libc);
	if (linker && linker != libc) {
		struct patch_code code = patch_code_of(linker);

		patch_linker((uint8_t *)code.start, (const uint8_t *)code.end);
	}
	if (patch_missing)
		vm_look_up_from_now();
}

// Their own calls are not looked for, but another namespace has a C library of its own (dlmopen).
void patch_loaded(const struct scope_object *object)
{
	uint32_t missing = patch_missing;

	if (late_is() || !scope_find(object, "gnu_get_libc_version"))
		return;
	for (size_t i = 0; i < patch_functions_count; i++)
		patch_function(object, &patch_functions[i]);
	patch_missing = missing;
}

void patch_unloaded(uintptr_t start, uintptr_t bytes)
{
	(void)start, (void)bytes;
}
