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
// kernel_take_own reserved. 0 in a thread that has not set it, also in threads that never heard of
// us.
HIDDEN extern uint32_t kernel_own_at;
HIDDEN bool kernel_take_own(void);

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

// The thread's own block.
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

static inline uint64_t kernel_block_signals(void)
{
	return 0;
}

static inline void kernel_restore_signals(uint64_t old)
{
	(void)old;
}

// There are no filters.
enum { kernel_sealed = 0 };

static inline bool kernel_nested(void)
{
	return false;
}

// The same as on other systems.
HIDDEN uint32_t kernel_thread_id(void);
HIDDEN uint32_t kernel_process_id(void);
HIDDEN bool kernel_thread_lives(uint32_t pid, uint32_t tid);
HIDDEN void kernel_sleep_ns(long ns);

// The process's own block (nt_win32.h).
HIDDEN struct nt_peb *kernel_peb(void);

// The system's monotonic clock.
HIDDEN uint64_t kernel_now_ns(void);

// Private pages, or NULL.
HIDDEN void *kernel_pages(size_t bytes);

// The collector is woken: the word is in the session's clock page.
HIDDEN void kernel_wake(_Atomic uint32_t *word);

// The calling thread's name; empty: it has none yet.
HIDDEN void kernel_thread_name(char name[16]);

// Whether the page can be read.
HIDDEN bool kernel_can_read(uintptr_t page);

// Whether what is there may be code: it can be read and run.
HIDDEN bool kernel_can_run(uintptr_t at);

#endif
