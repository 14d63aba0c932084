// kernel: the variables of kernel.h and kernel_win32.h. Per thread: whether it is inside of a call
// of ours. Per process: whether it is under a filter, and the numbers that it can then no longer
// ask the kernel for.
#include "recorder/kernel.h"

#ifdef __x86_64__
__thread uint8_t kernel_gate, kernel_gate_home;
#endif

#ifndef KERNEL_NT
uint32_t kernel_sealed, kernel_pid;
uint32_t kernel_let;
uintptr_t kernel_tid_at;
__thread uint32_t kernel_slow;
#endif
