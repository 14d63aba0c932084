// kernel_win32: the only way out of the recorder, on Windows.
//
// kernel.h includes this file, and is no more than it where the system is Windows. The calls are
// those of ntdll's functions that enter the kernel; those that the recorder itself has hooked are
// called behind the hook (hook_win32.h), so that our own memory is not taken for the program's.
//
// There are no signals: what would block them does nothing.
#pragma once

#ifdef _WIN32

#define KERNEL_NT 1

#include "wire/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KERNEL_PAGE = 4096 };

// Bytes from the thread's own block (TEB) to the word that is ours in each thread: of a slot that
// kernel_take_own reserved, once in a process and before any hook is in place. The word is NULL in
// a thread that has not set it, also in threads that never heard of us.
HIDDEN extern uint32_t kernel_own_at;
// False: all 64 slots that are in the block itself are taken, and kernel_own_at is what it was.
HIDDEN bool kernel_take_own(void);

// One load: the hooks ask for it with each call.
static inline void *kernel_get_own(void)
{
	void *word;

#ifdef __x86_64__
	__asm__ volatile("movq %%gs:(%1), %0" : "=r"(word) : "r"((uint64_t)kernel_own_at));
#else
	__asm__ volatile("movl %%fs:(%1), %0" : "=r"(word) : "r"(kernel_own_at));
#endif
	return word;
}

static inline void kernel_set_own(void *word)
{
#ifdef __x86_64__
	__asm__ volatile("movq %0, %%gs:(%1)"
			 :
			 : "r"(word), "r"((uint64_t)kernel_own_at)
			 : "memory");
#else
	__asm__ volatile("movl %0, %%fs:(%1)" : : "r"(word), "r"(kernel_own_at) : "memory");
#endif
}

// The thread's own block (TEB). It is there as long as the thread is.
static inline uint8_t *kernel_teb(void)
{
	uint8_t *teb;

#ifdef __x86_64__
	__asm__("movq %%gs:0x30, %0" : "=r"(teb));
#else
	__asm__("movl %%fs:0x18, %0" : "=r"(teb));
#endif
	return teb;
}

// Of the stack that the thread is on, what the recorder may need below `frame`.
enum { KERNEL_STACK_ROOM = 2 * KERNEL_PAGE };

// Touches what is not there yet of that room.
HIDDEN void kernel_grow_stack(uintptr_t frame);

// A stack grows when the page below it is touched, and its end is an exception
// (STATUS_STACK_OVERFLOW), from which a program may recover. Here nothing has begun that it would
// leave half done, neither of the recorder's nor of the heap's. Without it, it comes somewhere in
// the call: in a heap that is locked then, and stays so.
static inline void kernel_need_stack(const void *frame)
{
	const uintptr_t *block = (const void *)kernel_teb(); // word 2: where the stack ends so far

	if (unlikely((uintptr_t)frame - KERNEL_STACK_ROOM < block[2]))
		kernel_grow_stack((uintptr_t)frame);
}

// In pairs around slow paths, as on other systems.
static inline uint64_t kernel_block_signals(void)
{
	return 0;
}

static inline void kernel_restore_signals(uint64_t old)
{
	(void)old;
}

// No process is ever sealed: there are no filters of system calls.
enum { kernel_sealed = 0 };

// No handler interrupts a thread: exceptions are those of what it does itself.
static inline bool kernel_nested(void)
{
	return false;
}

// The system's numbers, from the thread's own block: no call is made.
HIDDEN uint32_t kernel_thread_id(void);
HIDDEN uint32_t kernel_process_id(void);
// False: it has ended, even if a handle of it is open yet. Three system calls. A thread that cannot
// be opened for want of rights counts as one that lives.
HIDDEN bool kernel_thread_lives(uint32_t pid, uint32_t tid);
// Any thread may be ended from outside at any moment (TerminateThread, and all others when a
// process ends), also while it holds a lock of ours: so a lock says whose it is. Whether that
// thread has ended; one that now has the same id asks for itself.
static inline int kernel_lock_word(void)
{
	return (int)kernel_thread_id();
}
HIDDEN bool kernel_lock_is_left(int word);
// In whole units of 100 ns; what is less does not wait.
HIDDEN void kernel_sleep_ns(long ns);

// The process's own block (nt_win32.h).
HIDDEN struct nt_peb *kernel_peb(void);

// The system's monotonic clock (QueryPerformanceCounter), in nanoseconds, the same for all
// processes: only differences mean something.
HIDDEN uint64_t kernel_now_ns(void);

// Private pages, committed and all zero, from the top of the address space, where they are least in
// the program's way. NULL: there are none.
HIDDEN void *kernel_pages(size_t bytes);

// The collector is woken, by the recording's event. The word, which is in the session's clock page,
// is for the collector to read.
HIDDEN void kernel_wake(_Atomic uint32_t *word);

// The calling thread's name in UTF-8, with a NUL, cut where it is too long; empty: it has none yet,
// or the system is older than Windows 10. Most threads ask in the loader, whose lock they hold: so
// the system is asked only once kernel_names_given says that a thread may have one.
HIDDEN void kernel_thread_name(char name[16]);
HIDDEN extern _Atomic bool kernel_names_given; // to another thread, or before we recorded

// Whether the page can be read. On the calling thread's own stack that costs nothing, elsewhere a
// system call. A guard page counts as one that cannot: to touch it would change it.
HIDDEN bool kernel_can_read(uintptr_t page);

// Whether what is there may be code: it is committed, and its protection lets it be run. A system
// call.
HIDDEN bool kernel_can_run(uintptr_t at);

#endif
