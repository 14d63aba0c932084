// What recorder/leaf.h promises: which functions may be called anywhere.
#include "recorder/leaf.h"
#include "test/test.h"

#define SIMPLE(...) \
	leaf_is_simple((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

TEST(a_function_that_returns_what_its_context_has_is_simple)
{
	CHECK(SIMPLE(0x48, 0x89, 0xd0, 0xc3));             // mov rax,rdx; ret
	CHECK(SIMPLE(0x48, 0x8b, 0x42, 0x08, 0xc3));       // mov rax,[rdx+8]; ret
	CHECK(SIMPLE(0x48, 0x8d, 0x05, 1, 0, 0, 0, 0xc3)); // lea rax,[rip+1]; ret
	CHECK(SIMPLE(0xf3, 0x0f, 0x1e, 0xfa, 0xc3));       // endbr64; ret
}

TEST(one_that_computes_and_branches_forward_is_simple)
{
	CHECK(SIMPLE(0x48, 0x2b, 0x0a,                     // sub rcx,[rdx]
		     0xb8, 0, 0, 0, 0,                     // mov eax,0
		     0x48, 0x81, 0xf9, 0xff, 1, 0, 0,      // cmp rcx,511
		     0x77, 0x10,                           // ja to the end
		     0x48, 0xc1, 0xe9, 0x06,               // shr rcx,6
		     0x48, 0x8d, 0x0c, 0x49,               // lea rcx,[rcx+rcx*2]
		     0x48, 0x8b, 0x42, 0x08,               // mov rax,[rdx+8]
		     0x48, 0x8d, 0x04, 0x88, 0xc3));       // lea rax,[rax+rcx*4]; ret
	CHECK(SIMPLE(0x74, 0x01, 0xc3, 0x31, 0xc0, 0xc3)); // two returns
}

TEST(one_that_keeps_its_arguments_in_its_frame_is_simple)
{
	CHECK(SIMPLE(0x48, 0x89, 0x4c, 0x24, 0x08, 0xc3)); // mov [rsp+8],rcx
	CHECK(SIMPLE(0x55, 0x48, 0x89, 0xe5, 0x48, 0x89, 0x4d, 0x10, 0x5d, 0xc3));
}

TEST(one_that_writes_elsewhere_is_not)
{
	CHECK(!SIMPLE(0x48, 0x89, 0x0a, 0xc3));             // mov [rdx],rcx
	CHECK(!SIMPLE(0x48, 0x89, 0x4d, 0x10, 0xc3));       // mov [rbp+16],rcx, of another frame
	CHECK(!SIMPLE(0x48, 0x83, 0x02, 0x01, 0xc3));       // add qword [rdx],1
	CHECK(!SIMPLE(0x89, 0x0d, 0, 0, 0, 0, 0xc3));       // mov [rip+0],ecx
	CHECK(!SIMPLE(0x49, 0x89, 0x4c, 0x24, 0x08, 0xc3)); // mov [r12+8],rcx
	CHECK(!SIMPLE(0x48, 0xff, 0x02, 0xc3));             // inc qword [rdx]
	CHECK(!SIMPLE(0x48, 0xf7, 0x12, 0xc3));             // not qword [rdx]
}

TEST(one_that_calls_waits_loops_or_may_fail_is_not)
{
	CHECK(!SIMPLE(0xe8, 0, 0, 0, 0, 0xc3));             // call
	CHECK(!SIMPLE(0xff, 0xd0, 0xc3));                   // call rax
	CHECK(!SIMPLE(0xff, 0xe0));                         // jmp rax
	CHECK(!SIMPLE(0xff, 0x25, 0, 0, 0, 0));             // jmp [rip+0]
	CHECK(!SIMPLE(0xf0, 0x48, 0x0f, 0xb1, 0x0a, 0xc3)); // lock cmpxchg
	CHECK(!SIMPLE(0x0f, 0x05, 0xc3));                   // syscall
	CHECK(!SIMPLE(0x75, 0xfe, 0xc3));                   // jne to itself
	CHECK(!SIMPLE(0x48, 0xf7, 0xf1, 0xc3));             // div rcx
	CHECK(!SIMPLE(0xcc, 0xc3));                         // int3
	CHECK(!SIMPLE(0x65, 0x48, 0x8b, 0x02, 0xc3));       // mov rax,gs:[rdx]
	CHECK(!SIMPLE(0xf3, 0xa4, 0xc3));                   // rep movsb
}

TEST(what_is_not_seen_whole_is_not)
{
	CHECK(!SIMPLE(0x48, 0x89, 0xd0));       // no return
	CHECK(!SIMPLE(0x48, 0x8b));             // an instruction that is cut
	CHECK(!SIMPLE(0x74, 0x10, 0xc3));       // a jump behind what is there
	CHECK(!SIMPLE(0xe9, 0, 0, 0, 1, 0xc3)); // far away
	CHECK(!leaf_is_simple((const uint8_t *)"", 0));
}
