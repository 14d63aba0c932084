// For example, libc's munmap has, at 0x7f0011a0:
//
//     b8 0b 00 00 00    mov $11,%eax
//     0f 05             syscall
//     48 3d 01 f0 …     cmp
//
// Seven bytes, of which five become a jump to a thunk that was made for this site. The thunk saves
// what the kernel would have kept, calls patch_call(&registers, 11, 0x7f0011a7) and jumps to
// 0x7f0011a7, the cmp, with the result in rax. The bytes of the `syscall` are still there, and
// nothing comes to them.
//
// A site is found by its bytes alone, b8 .. .. .. .. 0f 05 with a number that is wanted, within the
// first 64 bytes of a function that is known to make that call. Those of the program's own code are
// looked for in patch_program_x64_linux.c.
#include "recorder/patch_linux.h"

#include "recorder/enter_pages_linux.h"
#include "recorder/exec_linux.h"
#include "recorder/kernel.h"
#include "recorder/late_linux.h"
#include "recorder/notes.h"
#include "recorder/patch_program_linux.h"
#include "recorder/recording.h"
#include "recorder/relocate.h"
#include "recorder/scope_linux.h"
#include "recorder/static_linux.h"
#include "recorder/strict_linux.h"
#include "recorder/text.h"
#include "recorder/vm.h"

enum {
	PATCH_JUMP_BYTES = RELOCATE_JUMP_BYTES,
	PATCH_GET_FS = 0x1003,
	PATCH_STACKS = 16,
	PATCH_STACK_BYTES = 32 << 10,
	PATCH_FUNCTION_BYTES = 64,
	PATCH_EXECVEAT_BYTES = 128, // of fexecve
	PATCH_THUNK_BYTES = 128,
	PATCH_MOVED_BYTES = 59, // of a call and what follows it, beside a choice in two thunks
	PATCH_PAGES_BYTES = 2 * KERNEL_PAGE,
	PATCH_PAGES_MAX = 64,
	PATCH_REACH = 0x70000000, // of a rel32 jump, with something to spare
};

// Where thunks go: pages near the code that they were made for.
static struct patch_page {
	uint8_t *at; // NULL: not made yet, or gone
	uint32_t used;
	uintptr_t near; // of a library that came later: its code; else 0
} patch_pages[PATCH_PAGES_MAX];

static bool patch_started; // what is loaded from here on may go again

// The registers of a system call as a thunk has saved them, and what lies above them on the stack.
struct patch_registers {
	long words[6]; // rdi, rsi, rdx, r10, r8, r9
	uintptr_t rbp;
	uint8_t red_zone[128];
	uintptr_t stack[]; // the caller's stack pointer pointed here
};

// What the thunks call, with the number of the call that they replace and the address behind it.
//
// `call` is the thunk's own frame: what is changed in `words` is popped into the registers again.
// The result goes to the program in rax.
static long patch_call(struct patch_registers *call, long number, uintptr_t back)
{
	struct vm_ask ask = { .top = call->stack, .rbp = call->rbp, .back = back };

	if (exec_is_call((uint32_t)number))
		return exec_call(number, call->words);
	if (strict_wants((uint32_t)number))
		return strict_call(call->words, number);
	memcpy(ask.words, call->words, sizeof(ask.words));
	return vm_call(&ask, number);
}

// What the thunks of the program's own code call. `again`: the call is to be made where it was.
//
// Two registers, rax and rdx, by the System V ABI: the thunk reads both.
struct patch_outcome {
	long result;
	long again;
};

// A thread that libc did not make may have no memory of ours behind its thread pointer.
//
// The thread pointer as we read it (%fs:0) and as the kernel says it have to be the same.
static bool patch_has_block(void)
{
	uintptr_t block = kernel_thread_block(), at = 0;

	return !kernel_sealed && block &&
	       !kernel_failed(kernel(__NR_arch_prctl, PATCH_GET_FS, &at)) && at == block;
}

// Or it shares that with the thread that made it. One that forked by itself has another number than
// libc says.
//
// A raw clone with CLONE_VM and no CLONE_SETTLS runs on its parent's block: it would use its
// parent's lane at the same time.
static bool patch_knows_thread(void)
{
	uint32_t tid;

	if (!patch_has_block())
		return false;
	tid = kernel_thread_id();
	return !kernel_tid_at || tid == kernel_thread_id_told() ||
	       recording_phase() != RECORDING_ON || tid == recording_state->pid;
}

static COLD void patch_tell_thread(void)
{
	static _Atomic uint32_t told;
	uint32_t pid;

	if (kernel_sealed || recording_phase() != RECORDING_ON)
		return;
	pid = kernel_process_id();
	if (__atomic_exchange_n(&told, pid, __ATOMIC_RELAXED) != pid)
		notes_calls(NOTE_CALLS_PATCHED, "but not in threads that it makes itself");
}

// The call is left to the program, on its own stack: unmapping that would take the ground from
// under us.
static long patch_make_later(const struct vm_ask *)
{
	return 0;
}

// The program's own code may stand on a stack of some hundred bytes: a call needs none. So its
// calls are recorded on stacks of ours, with signals blocked: no handler begins on one. A slot is
// taken if a thread of this process has it; those of a forked child's parent are free.
static uint8_t *patch_stacks;
static _Atomic uint32_t patch_stacks_pid[PATCH_STACKS];

// 16 stacks of 32 KiB. When all are taken the thread yields and tries again: each is in use for one
// call only.
static uint32_t patch_take_stack(void)
{
	uint32_t pid = kernel_process_id();

	for (uint32_t i = 0;; i = (i + 1) % PATCH_STACKS) {
		uint32_t owner = __atomic_load_n(&patch_stacks_pid[i], __ATOMIC_RELAXED);

		if (owner != pid &&
		    __atomic_compare_exchange_n(&patch_stacks_pid[i], &owner, pid, false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
			return i;
		if (i + 1 == PATCH_STACKS)
			kernel(__NR_sched_yield);
	}
}

// What a call of the program's is made of, where two stacks meet.
struct patch_program_call {
	struct vm_ask ask;
	long number;
	long result;
};

static __attribute__((noinline)) void patch_make_program(struct patch_program_call *call)
{
	if (exec_is_call((uint32_t)call->number))
		call->result = exec_call(call->number, call->ask.words);
	else
		call->result = vm_call(&call->ask, call->number);
}

// rbx keeps the program's stack pointer over the call; patch_make_program runs on the other stack
// and returns.
static void patch_switch(struct patch_program_call *call, uint8_t *top)
{
	__asm__ volatile("mov %%rsp, %%rbx\n\t"
			 "mov %[top], %%rsp\n\t"
			 "call *%[function]\n\t"
			 "mov %%rbx, %%rsp"
			 : "+D"(call)
			 : [top] "r"(top), [function] "r"(patch_make_program)
			 : "rax", "rbx", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory",
			   "cc");
}

// Of a thread that is not known nothing is recorded.
static COLD struct patch_outcome patch_call_stranger(struct vm_ask *ask, long number, bool leaves)
{
	// A child that has its parent's thread pointer until it becomes another program.
	if (exec_is_call((uint32_t)number) && patch_has_block())
		return (struct patch_outcome){ exec_call(number, ask->words), false };
	patch_tell_thread();
	if (leaves) {
		vm_count_stranger();
		return (struct patch_outcome){ 0, true };
	}
	ask->stranger = true;
	return (struct patch_outcome){ vm_call(ask, number), false };
}

// `words[0]` and `words[1]` of munmap are address and length: does that include where the stack
// pointer is?
static struct patch_outcome patch_call_program(struct patch_registers *registers, long number,
					       uintptr_t back)
{
	struct patch_program_call call = {
		.ask = { .top = registers->stack, .rbp = registers->rbp, .back = back },
		.number = number,
	};
	const long *words = registers->words;
	// Who gives back the stack that it stands on, as a thread at its end, has none for us.
	bool leaves = number == __NR_munmap &&
		      (uintptr_t)registers->stack - (uintptr_t)words[0] < (uintptr_t)words[1];
	uint64_t all = ~KERNEL_RAISED_BITS, old = 0;
	uint32_t slot;

	memcpy(call.ask.words, words, sizeof(call.ask.words));
	if (!patch_knows_thread())
		return patch_call_stranger(&call.ask, number, leaves);
	if (leaves)
		call.ask.make = patch_make_later;
	kernel(__NR_rt_sigprocmask, 0 /* SIG_BLOCK */, &all, &old, sizeof(all));
	slot = patch_take_stack();
	patch_switch(&call, patch_stacks + (size_t)(slot + 1) * PATCH_STACK_BYTES);
	__atomic_store_n(&patch_stacks_pid[slot], 0, __ATOMIC_RELEASE);
	kernel(__NR_rt_sigprocmask, 2 /* SIG_SETMASK */, &old, 0, sizeof(old));
	return (struct patch_outcome){ call.result, leaves };
}

// May what was written be executed? Not everywhere: then nothing may lead to it.
static bool patch_allowed(struct patch_page *page)
{
	if (kernel_failed(kernel(__NR_mprotect, page->at, PATCH_PAGES_BYTES,
				 KERNEL_PROT_READ | KERNEL_PROT_EXEC)) ||
	    kernel_failed(kernel(__NR_mprotect, page->at, PATCH_PAGES_BYTES,
				 KERNEL_PROT_READ | KERNEL_PROT_WRITE)))
		page->used = PATCH_PAGES_BYTES;
	return page->used == 0;
}

// Pages for thunks within reach of `near`, new ones.
static bool patch_make_page(struct patch_page *page, uintptr_t near)
{
	page->at = enter_pages_near(near, near, PATCH_PAGES_BYTES);
	if (!page->at)
		return false;
	page->used = 0;
	page->near = patch_started ? near : 0;
	return patch_allowed(page);
}

// Those that have room for one more thunk; NULL: there are none, and can be none.
//
// Twice a thunk's size is asked for, as a choice needs it.
static struct patch_page *patch_find_page(uintptr_t near)
{
	for (size_t i = 0; i < PATCH_PAGES_MAX; i++) {
		struct patch_page *page = &patch_pages[i];

		if (!page->at)
			return patch_make_page(page, near) ? page : NULL;
		if ((uintptr_t)page->at - near + PATCH_REACH < 2ul * PATCH_REACH &&
		    page->used + 2 * PATCH_THUNK_BYTES <= PATCH_PAGES_BYTES)
			return page;
	}
	return NULL;
}

static uint8_t *patch_put(uint8_t *at, const void *bytes, size_t size)
{
	memcpy(at, bytes, size);
	return at + size;
}

static uint8_t *patch_put_jump(uint8_t *at, const uint8_t *target)
{
	return at + relocate_jump(at, (uintptr_t)at, (uintptr_t)target, true);
}

// Where a thunk leads.
struct patch_way {
	const uint8_t *back;  // behind the call, as the program has it
	const uint8_t *on;    // where it goes on from there
	const uint8_t *again; // a `syscall` that goes on there, too
};

// The thunk: keeps the red zone and every register but rax, rcx and r11, which the system call may
// change too; calls patch_call(&registers, number, back), or patch_call_program; goes on after the
// site or, when that says so, at its `syscall`.
//
// The order of the pushes makes struct patch_registers, from its end to its beginning. The last
// jump is five bytes, and the page is in reach of the site.
static uint8_t *patch_put_thunk(uint8_t *at, uint32_t number, const struct patch_way *way)
{
	static const uint8_t enter[] = {
		0x48, 0x8d, 0x64, 0x24, 0x80,       // lea -128(%rsp),%rsp
		0x55,                               // push %rbp
		0x48, 0x89, 0xe5,                   // mov %rsp,%rbp
		0x41, 0x51, 0x41, 0x50, 0x41, 0x52, // push %r9, %r8, %r10
		0x52, 0x56, 0x57,                   // push %rdx, %rsi, %rdi
		0x48, 0x89, 0xe7,                   // mov %rsp,%rdi
		0x48, 0x83, 0xe4, 0xf0,             // and $-16,%rsp
	};
	static const uint8_t known[] = { 0xbe };      // mov $number,%esi
	static const uint8_t any[] = { 0x89, 0xc6 };  // mov %eax,%esi
	static const uint8_t site[] = { 0x48, 0xba }; // mov $back,%rdx
	static const uint8_t call[] = { 0x48, 0xb8 }; // mov $patch_call,%rax
	static const uint8_t leave[] = {
		0xff, 0xd0,                               // call *%rax
		0x49, 0x89, 0xd3,                         // mov %rdx,%r11
		0x48, 0x8d, 0x65, 0xd0,                   // lea -48(%rbp),%rsp
		0x5f, 0x5e, 0x5a,                         // pop %rdi, %rsi, %rdx
		0x41, 0x5a, 0x41, 0x58, 0x41, 0x59,       // pop %r10, %r8, %r9
		0x5d,                                     // pop %rbp
		0x48, 0x8d, 0xa4, 0x24, 0x80, 0,    0, 0, // lea 128(%rsp),%rsp
	};
	static const uint8_t again[] = {
		0x4d, 0x85,        0xdb,       // test %r11,%r11
		0x74, 0x0a,                    // jz over what follows
		0xb8, __NR_munmap, 0,    0, 0, // mov $11,%eax
	};
	uint64_t function = number == PATCH_ANY ? (uint64_t)patch_call_program
						: (uint64_t)patch_call;

	at = patch_put(at, enter, sizeof(enter));
	if (number == PATCH_ANY) {
		at = patch_put(at, any, sizeof(any));
	} else {
		at = patch_put(at, known, sizeof(known));
		at = patch_put(at, &number, 4);
	}
	at = patch_put(at, site, sizeof(site));
	at = patch_put(at, &way->back, 8);
	at = patch_put(at, call, sizeof(call));
	at = patch_put(at, &function, 8);
	at = patch_put(at, leave, sizeof(leave));
	if (number == PATCH_ANY) {
		at = patch_put(at, again, sizeof(again));
		at = patch_put_jump(at, way->again);
	}
	return patch_put_jump(at, way->on);
}

// The thunk of a call whose number comes in rax: a choice by that. What is not for us is called
// where it was, without touching the stack: it may be clone.
//
// `wanted` has a bit for each call below 64: bt puts it into the carry flag. The others are
// compared one by one. rax keeps the number on all ways, and r11 is free, as the kernel destroys
// it.
static uint8_t *patch_put_choice(uint8_t *at, const struct patch_way *way)
{
	static const uint8_t low[] = {
		0x48, 0x83, 0xf8, 0x3f, // cmp $63,%rax
		0x77, 0x15,             // ja high
		0x49, 0xbb,             // mov $wanted,%r11
	};
	static const uint8_t plain[] = {
		0x49, 0x0f, 0xa3, 0xc3, // bt %rax,%r11
		0x72, 0x4f,             // jc ours; plain: jmp to the syscall
	};
	static const uint8_t high[] = {
		0x48, 0x83, 0xf8, __NR_shmdt,                   // cmp $67,%rax
		0x74, 0x44,                                     // je ours
		0x4c, 0x8d, 0x98, 0x32,       0xff, 0xff, 0xff, // lea -206(%rax),%r11
		0x49, 0x83, 0xfb, 0x01,                         // cmp $1,%r11
		0x76, 0x37,                                     // jbe ours
		0x4c, 0x8d, 0x98, 0x6b,       0xff, 0xff, 0xff, // lea -149(%rax),%r11
		0x49, 0x83, 0xfb, 0x03,                         // cmp $3,%r11
		0x76, 0x2a,                                     // jbe ours
		0x48, 0x3d, 0xd8, 0x00,       0x00, 0x00,       // cmp $216,%rax
		0x74, 0x22,                                     // je ours
		0x48, 0x3d, 0x45, 0x01,       0x00, 0x00,       // cmp $325,%rax
		0x74, 0x1a,                                     // je ours
		0x48, 0x3d, 0x49, 0x01,       0x00, 0x00,       // cmp $329,%rax
		0x74, 0x12,                                     // je ours
		0x48, 0x3d, 0xb8, 0x01,       0x00, 0x00,       // cmp $440,%rax
		0x74, 0x0a,                                     // je ours
		0x48, 0x3d, 0x42, 0x01,       0x00, 0x00,       // cmp $322,%rax
		0x74, 0x02,                                     // je ours
		0xeb, 0xb1,                                     // jmp plain
	};
	uint64_t wanted = 1ul << __NR_execve;

	_Static_assert(__NR_mlock == 149 && __NR_munlockall == 152 && __NR_mlock2 == 325 &&
			       __NR_remap_file_pages == 216 && __NR_pkey_mprotect == 329 &&
			       __NR_process_madvise == 440 && __NR_execveat == 322 &&
			       __NR_io_setup == 206 && __NR_io_destroy == 207,
		       "as spelled out above");
	for (uint32_t number = 0; number < 64; number++)
		if (vm_is_call(number))
			wanted |= 1ul << number;
	at = patch_put(at, low, sizeof(low));
	at = patch_put(at, &wanted, 8);
	at = patch_put(at, plain, sizeof(plain));
	at = patch_put_jump(at, way->again);
	at = patch_put(at, high, sizeof(high));
	return patch_put_thunk(at, PATCH_ANY, way);
}

bool patch_wanted(uint32_t number)
{
	return exec_is_call(number) || vm_is_call(number);
}

// Room for a thunk of a call whose number comes in rax, and stacks for it. NULL: there is none.
static struct patch_page *patch_prepare_choice(const uint8_t *site)
{
	if (!patch_stacks)
		patch_stacks = recording_pages((size_t)PATCH_STACKS * PATCH_STACK_BYTES, false);
	return patch_stacks ? patch_find_page((uintptr_t)site) : NULL;
}

// Five bytes are written; of seven, the last two stay what they were, and nothing comes to them.
static bool patch_lead(uint8_t *site, const uint8_t *thunk)
{
	uint8_t jump[PATCH_JUMP_BYTES];

	relocate_jump(jump, (uintptr_t)site, (uintptr_t)thunk, true);
	return late_write(site, jump, sizeof(jump));
}

// `length` is 7 to PATCH_SITE_BYTES_MAX bytes that end with the `syscall`. With PATCH_ANY, what
// comes before the `syscall` is done in the thunk first (it may load an argument).
bool patch_put_site(uint8_t *site, uint32_t length, uint32_t number)
{
	const uint8_t *back = site + length;
	const struct patch_way way = { back, back, back - PATCH_SYSCALL_BYTES };
	struct patch_page *page;
	uint8_t *thunk;

	if (length < PATCH_SITE_BYTES || length > PATCH_SITE_BYTES_MAX)
		return false;
	page = number == PATCH_ANY ? patch_prepare_choice(site) : patch_find_page((uintptr_t)site);
	if (!page)
		return false;
	thunk = page->at + page->used;
	if (number == PATCH_ANY)
		patch_put_choice(patch_put(thunk, site, length - PATCH_SYSCALL_BYTES), &way);
	else
		patch_put_thunk(thunk, number, &way);
	page->used += number == PATCH_ANY ? 2 * PATCH_THUNK_BYTES : PATCH_THUNK_BYTES;
	return patch_lead(site, thunk);
}

// The `syscall` alone has two bytes, too few for a jump, so instructions after it are moved too.
// Returns how many bytes were taken; 0: it cannot be.
uint32_t patch_put_behind(uint8_t *site, const uint8_t *end)
{
	struct patch_page *page = patch_prepare_choice(site);
	uint8_t moved[RELOCATE_BYTES_MAX], *at;
	struct patch_way way = { .back = site + PATCH_SYSCALL_BYTES };
	struct relocate done;

	if (!page)
		return 0;
	at = page->at + page->used;
	if (relocate_copy(site, (size_t)(end - site), (uintptr_t)site, moved, (uintptr_t)at,
			  PATCH_JUMP_BYTES, RELOCATE_WIDE | RELOCATE_WALKED, &done) ||
	    done.written > PATCH_MOVED_BYTES)
		return 0;
	way.again = at;
	way.on = at + PATCH_SYSCALL_BYTES;
	at = patch_put(at, moved, done.written);
	patch_put_choice(at, &way);
	page->used += 2 * PATCH_THUNK_BYTES;
	return patch_lead(site, at) ? done.taken : 0;
}

// False: it may not be, or cannot.
static bool patch_site(uint8_t *site, uint32_t number)
{
	if (!patch_put_site(site, PATCH_SITE_BYTES, number))
		return false;
	patch_done++;
	return true;
}

// No `syscall` (0f 05) begins in the first seven of eight bytes.
//
// In `both` a byte is zero where such a pair begins; the subtraction borrows from a byte's highest
// bit only then, or above one that is.
static bool patch_no_syscall(const uint8_t *at)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t bytes, both;

	__builtin_memcpy(&bytes, at, sizeof(bytes)); // one load, and no call
	both = (bytes ^ ones * 0x0f) | (bytes >> 8 ^ ones * 0x05);
	return ((both - ones) & ~both & ones * 0x80) == 0;
}

// Patch the sites in [at, end) of the call `only` (0: of each that is wanted). True: there was one.
//
// Bytes that look so within another instruction would be broken. In 64 bytes of a function that
// makes this very call that does not happen.
static bool patch_range(uint8_t *at, const uint8_t *end, uint32_t only)
{
	bool found = false;

	for (; at + PATCH_SITE_BYTES <= end; at++) {
		uint32_t number;

		// The linker's 150 KB are looked through in each program that starts.
		if (at + PATCH_JUMP_BYTES + 8 <= end && patch_no_syscall(at + PATCH_JUMP_BYTES)) {
			at += 6;
			continue;
		}
		if (at[0] != 0xb8 || at[5] != 0x0f || at[6] != 0x05)
			continue;
		memcpy(&number, at + 1, 4);
		if ((only ? number == only : patch_wanted(number)) && patch_site(at, number))
			found = true;
	}
	return found;
}

static void patch_function(const struct scope_object *libc, const struct patch_function *each)
{
	uint8_t *function = scope_find(libc, each->name);

	if (!function)
		return;
	if (patch_range(function,
			function + (each->number == __NR_execveat ? PATCH_EXECVEAT_BYTES
								  : PATCH_FUNCTION_BYTES),
			each->number))
		patch_cover(each->place);
	else if (each->number != __NR_execveat) // old ones go by execve
		patch_missing++;
}

// syscall() itself: its last argument comes from the stack, in as many bytes as a mov of a number.
static void patch_any(const struct scope_object *libc)
{
	static const uint8_t pattern[] = { 0x4c, 0x8b, 0x4c, 0x24, 0x08, 0x0f, 0x05 };
	uint8_t *function = scope_find(libc, "syscall");

	_Static_assert(sizeof(pattern) == PATCH_SITE_BYTES, "a site like the others");
	for (int i = 0; function && i < PATCH_FUNCTION_BYTES; i++) {
		if (memcmp(function + i, pattern, sizeof(pattern)) != 0)
			continue;
		if (patch_site(function + i, PATCH_ANY))
			patch_cover(PATCH_SYSCALL);
		return;
	}
}

struct patch_code patch_libc(void)
{
	const struct scope_object *libc = scope_libc();

	return libc ? patch_code_of(libc) : (struct patch_code){ 0 };
}

// All sites in its code of the call `only` (0: of each that is wanted).
static void patch_code(const struct scope_object *object, uint32_t only)
{
	struct patch_code code = patch_code_of(object);

	if (code.start)
		patch_range((uint8_t *)code.start, (const uint8_t *)code.end, only);
}

// What the program asks of the kernel itself is to be seen as well: then libc's calls about signals
// and threads have to pass by here.
static void patch_strict(const struct scope_object *libc)
{
	static const uint32_t numbers[] = { __NR_rt_sigprocmask, __NR_rt_sigaction,
					    __NR_set_robust_list };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		patch_code(libc, numbers[i]);
}

// What was written may run; there is no room for more, as it cannot be writable meanwhile.
//
// A page that was made executable counts as full, so the next thunks get new pages.
static void patch_close_pages(void)
{
	for (size_t i = 0; i < PATCH_PAGES_MAX; i++) {
		struct patch_page *page = &patch_pages[i];

		if (!page->at || page->used == PATCH_PAGES_BYTES)
			continue;
		kernel(__NR_mprotect, page->at, PATCH_PAGES_BYTES,
		       KERNEL_PROT_READ | KERNEL_PROT_EXEC);
		page->used = PATCH_PAGES_BYTES;
	}
}

void patch_loaded(const struct scope_object *object)
{
	uint32_t missing = patch_missing;

	if (!patch_started || static_is() || late_is())
		return;
	// Another namespace has a C library of its own (dlmopen), with more calls than are looked
	// for elsewhere. Where it cannot be changed, nothing of ours becomes otherwise.
	if (scope_find(object, "gnu_get_libc_version")) {
		for (size_t i = 0; i < patch_functions_count; i++)
			patch_function(object, &patch_functions[i]);
		patch_missing = missing;
	} else {
		patch_program(object, false);
	}
	patch_close_pages();
}

void patch_unloaded(uintptr_t start, uintptr_t bytes)
{
	for (size_t i = 0; i < PATCH_PAGES_MAX; i++) {
		struct patch_page *page = &patch_pages[i];

		if (!page->at || !page->near || page->near - start >= bytes)
			continue;
		vm_own(page->at, PATCH_PAGES_BYTES, true);
		kernel(__NR_munmap, page->at, PATCH_PAGES_BYTES);
		page->at = NULL;
	}
}

// SEGMENT_STRICT_VM: calls that the program makes by itself are to be caught too (strict_linux.h),
// which is only done if all of libc's sites were patched.
void patch_start(void)
{
	const struct scope_object *libc = scope_libc();
	struct scope_object *linker = NULL;
	bool strict;

	scope_next("__tls_get_addr", &linker);
	for (size_t i = 0; libc && i < patch_functions_count; i++)
		patch_function(libc, &patch_functions[i]);
	if (libc)
		patch_any(libc);
	// The linker shows no names for its own: look through all of its (small) code.
	if (linker && linker != libc)
		patch_code(linker, 0);
	strict = (recording_state->options & SEGMENT_STRICT_VM) && libc && !patch_missing;
	if (strict)
		patch_strict(libc);
	if (!static_is())
		patch_program(scope_objects(), true);
	patch_close_pages();
	patch_started = true;
	patch_dispatched = strict && strict_start();
	if (patch_missing)
		vm_look_up_from_now();
}
