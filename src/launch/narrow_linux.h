// narrow: what differs in a program of 32 bits (i386), seen from a tracer of 64.
//
// ptrace shows its registers by the names of 64 bits (eax is rax, %gs's base is gs_base), so most
// of what is done to a thread is the same. What is not: system calls have other numbers and
// arguments in other registers, the thread pointer is in %gs, words have four bytes, and signal
// handlers return to code of the kernel's.
//
//     Example: one in read(0, …) has 3 in orig_rax and 0 in rbx; here it asks for SYS_read, which
//     is 0 for x86-64, with 0 as its first argument.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#define NARROW_NO_CALL UINT64_MAX

enum { NARROW_OTHER_CALL = 0xffff }; // one that is not among those that anybody asks for

// Whether a thread with these registers runs such code.
bool narrow_is(const struct user_regs_struct *registers);

// Whether that is of code of the program's, of either class: Wine's have both.
bool narrow_is_selector(uint16_t selector);

// The system call that it is in, as x86-64 numbers it, of either class; NARROW_NO_CALL: none.
uint64_t narrow_call(const struct user_regs_struct *registers);

// The second argument of that.
uint64_t narrow_second(const struct user_regs_struct *registers);

// Its thread pointer; 0: there is none yet.
uint64_t narrow_thread_pointer(const struct user_regs_struct *registers);

// Put a system call into the registers, `number` as x86-64 numbers it, and mmap's offset in bytes.
// False: there is no such one for i386.
bool narrow_ask(struct user_regs_struct *registers, uint64_t number, const uint64_t arguments[6]);

// What it returned: an address or a number, or a negative errno.
int64_t narrow_answer(const struct user_regs_struct *registers);

// The bytes of a word.
static inline size_t narrow_bytes(bool narrow)
{
	return narrow ? 4 : 8;
}

// What a signal handler returns to: `size` bytes of code; and from the word after that address on
// the stack, how far to the stack pointer, the instruction and the code selector that were
// interrupted.
struct narrow_restorer {
	uint8_t code[9];
	uint8_t size;
	uint16_t sp, at, selector;
};

// By number from 0 on; NULL: there are no more.
const struct narrow_restorer *narrow_restorer(bool narrow, size_t number);
