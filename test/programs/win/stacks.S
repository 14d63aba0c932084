# Frames as Microsoft's compilers lay them out and gcc's do not: rbp is kept in the home space, the
# four words that a caller leaves free outside of the return address. Each function here overwrites
# rbp, so that whoever counts on it further out is lost if it is not found.

	.globl keeps_at_home
	.seh_proc keeps_at_home
keeps_at_home:
	mov %rbp, 16(%rsp)
	sub $0x28, %rsp
	.seh_stackalloc 0x28
	.seh_savereg %rbp, 0x38
	.seh_endprologue
	mov $0x1234, %ebp
	call descend
	mov 0x38(%rsp), %rbp
	add $0x28, %rsp
	ret
	.seh_endproc

	.globl keeps_at_the_first_home
	.seh_proc keeps_at_the_first_home
keeps_at_the_first_home:
	mov %rbp, 8(%rsp)
	push %rdi
	.seh_pushreg %rdi
	sub $0x20, %rsp
	.seh_stackalloc 0x20
	.seh_savereg %rbp, 0x30
	.seh_endprologue
	xor %ebp, %ebp
	call descend
	mov 0x30(%rsp), %rbp
	add $0x20, %rsp
	pop %rdi
	ret
	.seh_endproc

# A large frame: the distance takes 32 bits.
	.globl keeps_at_home_far
	.seh_proc keeps_at_home_far
keeps_at_home_far:
	mov %rbp, 24(%rsp)
	mov $0x90028, %eax
	call ___chkstk_ms
	sub %rax, %rsp
	.seh_stackalloc 0x90028
	.seh_savereg %rbp, 0x90040
	.seh_endprologue
	mov %rsp, %rbp
	call descend
	mov 0x90040(%rsp), %rbp
	add $0x90028, %rsp
	ret
	.seh_endproc

	.globl keeps_at_home_framed
	.seh_proc keeps_at_home_framed
keeps_at_home_framed:
	mov %rbp, 32(%rsp)
	sub $0x48, %rsp
	.seh_stackalloc 0x48
	lea 0x20(%rsp), %rbp
	.seh_savereg %rbp, 0x68
	.seh_setframe %rbp, 0x20
	.seh_endprologue
	sub $0x100, %rsp
	call descend
	lea 0x28(%rbp), %rsp
	mov 0x20(%rsp), %rbp
	ret
	.seh_endproc

# One part of a function stores rbp, and continues another one that made room.
	.globl keeps_in_a_part
	.text
keeps_in_a_part:
	sub $0x38, %rsp
.Lallocated:
	test %ecx, %ecx
	js .Lout
.Lpart:
	mov %rbp, 0x40(%rsp)
.Lstored:
	mov $77, %ebp
	call descend
	mov 0x40(%rsp), %rbp
.Lpart_end:
.Lout:
	add $0x38, %rsp
	ret
.Lend:

	.section .xdata
	.balign 4
.Lprimary_info:
	.byte 1, .Lallocated - keeps_in_a_part, 1, 0
	.byte .Lallocated - keeps_in_a_part, 6 << 4 | 2, 0, 0
	.balign 4
.Lpart_info:
	.byte 1 | 4 << 3, .Lstored - .Lpart, 2, 0
	.byte .Lstored - .Lpart, 5 << 4 | 4
	.short 0x40 / 8
	.rva keeps_in_a_part, .Lpart, .Lprimary_info

	.section .pdata
	.rva keeps_in_a_part, .Lpart, .Lprimary_info
	.rva .Lpart, .Lpart_end, .Lpart_info
	.rva .Lpart_end, .Lend, .Lprimary_tail
	.section .xdata
	.balign 4
.Lprimary_tail:
	.byte 1 | 4 << 3, 0, 0, 0
	.rva keeps_in_a_part, .Lpart, .Lprimary_info

# What the processor pushes when it interrupts, as a function of the system's finds it.
	.text
	.globl interrupted_by_machine
	.seh_proc interrupted_by_machine
interrupted_by_machine:
	sub $0x28, %rsp
	.seh_stackalloc 0x28
	.seh_endprologue
	mov %rsp, %r10
	mov %ss, %r11
	push %r11
	push %r10
	pushfq
	mov %cs, %r11
	push %r11
	lea .Linterrupted(%rip), %r11
	push %r11
	jmp machine
.Linterrupted:
	nop
	add $0x28, %rsp
	ret
	.seh_endproc

	.seh_proc machine
machine:
	.seh_pushframe
	sub $0x28, %rsp
	.seh_stackalloc 0x28
	mov %rbp, 0x20(%rsp)
	.seh_savereg %rbp, 0x20
	.seh_endprologue
	mov $5, %ebp
	call descend
	mov 0x20(%rsp), %rbp
	add $0x28, %rsp
	iretq
	.seh_endproc

# Its table lies: where it has the return address, there is the number that it was called with.
	.globl misled
	.seh_proc misled
misled:
	sub $0x28, %rsp
	.seh_stackalloc 0x28
	.seh_endprologue
	sub $0x30, %rsp
	mov %rcx, 0x28(%rsp)
	call site
	add $0x58, %rsp
	ret
	.seh_endproc
