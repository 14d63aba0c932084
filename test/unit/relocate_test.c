// What recorder/relocate.h promises: moved instructions do what they did.
#include "recorder/relocate.h"
#include "test/test.h"

#include <string.h>
#include <sys/mman.h>

enum { CODE_AT = 0x10000000, TO_AT = 0x18000000 };

static uint8_t moved[RELOCATE_BYTES_MAX];

static enum relocate_reason copy(const void *code, size_t size, bool wide, struct relocate *result)
{
	memset(moved, 0x55, sizeof moved);
	return relocate_copy(test_guarded_copy(code, size), size, CODE_AT, moved, TO_AT, 5,
			     wide ? RELOCATE_WIDE : 0, result);
}

static int32_t distance_at(size_t at)
{
	int32_t distance;

	memcpy(&distance, moved + at, 4);
	return distance;
}

TEST(relocate_takes_whole_instructions)
{
	const uint8_t stub[] = { 0x4c, 0x8b, 0xd1, 0xb8, 0x18, 0, 0, 0, 0x0f, 0x05, 0xc3 };
	struct relocate result;

	CHECK_EQ(RELOCATE_DONE, copy(stub, sizeof stub, true, &result));
	CHECK_EQ(8, result.taken);
	CHECK_EQ(8 + RELOCATE_FAR_BYTES, result.written);
	CHECK_BYTES(stub, moved, 8);
	CHECK_EQ(CODE_AT + 8, (uint64_t)(uint32_t)distance_at(14));
	CHECK(!result.begins_in_jump);
}

TEST(relocate_keeps_what_is_relative_to_the_instruction_pointer)
{
	const uint8_t load[] = { 0x48, 0x8b, 0x05, 0, 1, 0, 0, 0xc3 };
	struct relocate result;

	CHECK_EQ(RELOCATE_DONE, copy(load, sizeof load, true, &result));
	CHECK_EQ(CODE_AT + 7 + 0x100, TO_AT + 7 + (int64_t)distance_at(3));
}

TEST(relocate_makes_short_branches_long)
{
	const uint8_t code[] = { 0x75, 0x20, 0x90, 0x90, 0x90, 0xc3 };
	struct relocate result;

	CHECK_EQ(RELOCATE_DONE, copy(code, sizeof code, true, &result));
	CHECK_EQ(0x0f, moved[0]);
	CHECK_EQ(0x85, moved[1]);
	CHECK_EQ(CODE_AT + 2 + 0x20, TO_AT + 6 + (int64_t)distance_at(2));
}

TEST(relocate_follows_a_jump_that_stands_there)
{
	const uint8_t code[] = { 0xe9, 0, 2, 0, 0, 0xcc };
	struct relocate result;

	CHECK_EQ(RELOCATE_DONE, copy(code, sizeof code, true, &result));
	CHECK(result.begins_in_jump);
	CHECK_EQ(CODE_AT + 5 + 0x200, TO_AT + 5 + (int64_t)distance_at(1));
}

TEST(relocate_wraps_in_32_bit_mode)
{
	const uint8_t code[] = { 0x8b, 0xff, 0x55, 0x8b, 0xec, 0xc3 };
	struct relocate result;
	uint8_t jump[5];

	CHECK_EQ(RELOCATE_DONE, copy(code, sizeof code, false, &result));
	CHECK_EQ(5, result.taken);
	CHECK_EQ(10, result.written);
	CHECK_EQ(CODE_AT + 5, TO_AT + 10 + (int64_t)distance_at(6));
	CHECK_EQ(5, relocate_jump(jump, 0x1000, 0xf0000000, false));
	CHECK_EQ(0, relocate_jump(jump, 0x1000, 0xf0000000, true));
}

TEST(relocate_refuses)
{
	const uint8_t unknown[] = { 0x0f, 0x04, 0x90, 0x90, 0x90, 0x90 };
	const uint8_t short_one[] = { 0x31, 0xc0, 0xc3, 0xcc, 0xcc, 0xcc };
	const uint8_t loop[] = { 0xe2, 0x10, 0x90, 0x90, 0x90, 0x90 };
	const uint8_t back[] = { 0x90, 0x90, 0x90, 0x90, 0x90, 0x75, 0xfa, 0xc3 };
	// call .+8; …; mov (%esp),%ebx; ret
	const uint8_t itself[] = { 0xe8, 0x03, 0, 0, 0, 0x90, 0x90, 0xc3, 0x8b, 0x1c, 0x24, 0xc3 };
	const uint8_t next[] = { 0xe8, 0, 0, 0, 0, 0x5b, 0x90, 0x90, 0xc3 };
	struct relocate result;

	CHECK_EQ(RELOCATE_UNKNOWN, copy(unknown, sizeof unknown, true, &result));
	CHECK_EQ(RELOCATE_UNKNOWN, copy(short_one, 2, true, &result));
	CHECK_EQ(RELOCATE_SHORT, copy(short_one, sizeof short_one, true, &result));
	CHECK_EQ(RELOCATE_BRANCH, copy(loop, sizeof loop, true, &result));
	CHECK_EQ(RELOCATE_BRANCH, copy(back, sizeof back, true, &result));
	CHECK_EQ(RELOCATE_BRANCH, copy(itself, sizeof itself, false, &result));
	CHECK_EQ(RELOCATE_BRANCH, copy(next, sizeof next, false, &result));
}

TEST(relocate_refuses_what_would_not_reach)
{
	const uint8_t load[] = { 0x48, 0x8b, 0x05, 0, 0, 0, 0x80, 0xc3 };
	struct relocate result;

	CHECK_EQ(RELOCATE_REACH, relocate_copy(load, sizeof load, 0x180000000, moved, 0x200000000,
					       5, RELOCATE_WIDE, &result));
}

// A function that was moved is called: it does what it did.
TEST(relocate_makes_functions_that_run)
{
	// lea 7(%rip),%rax; cmp $3,%edi; jne 1f; mov $5,%eax; ret; 1: mov $9,%eax; ret
	const uint8_t code[] = { 0x83, 0xff, 0x03, 0x75, 0x06, 0xb8, 5, 0,   0,
				 0,    0xc3, 0xb8, 9,    0,    0,    0, 0xc3 };
	uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct relocate result;
	int (*run)(int);

	CHECK(pages != MAP_FAILED);
	memcpy(pages, code, sizeof code);
	CHECK_EQ(RELOCATE_DONE, relocate_copy(pages, sizeof code, (uint64_t)pages, pages + 4096,
					      (uint64_t)pages + 4096, 5, RELOCATE_WIDE, &result));
	memset(pages, 0xcc, result.taken);
	*(void **)&run = pages + 4096;
	CHECK_EQ(5, run(3));
	CHECK_EQ(9, run(4));
	munmap(pages, 8192);
}

// A call that was moved returns to where it did: its callee says where that is.
TEST(relocate_lets_calls_return_to_the_function_itself)
{
	// sub $8,%rsp; call 1f; add $8,%rsp; ret; 1: mov (%rsp),%rax; ret
	const uint8_t code[] = { 0x48, 0x83, 0xec, 0x08, 0xe8, 5,    0,    0,    0,   0x48,
				 0x83, 0xc4, 0x08, 0xc3, 0x48, 0x8b, 0x04, 0x24, 0xc3 };
	uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct relocate result;
	void *(*run)(void);

	CHECK(pages != MAP_FAILED);
	memcpy(pages, code, sizeof code);
	CHECK_EQ(RELOCATE_DONE, relocate_copy(pages, sizeof code, (uint64_t)pages, pages + 4096,
					      (uint64_t)pages + 4096, 5,
					      RELOCATE_WIDE | RELOCATE_WALKED, &result));
	CHECK_EQ(9, result.taken);
	memset(pages, 0xcc, 5);
	*(void **)&run = pages + 4096;
	CHECK(run() == pages + 9);
	munmap(pages, 8192);
}
