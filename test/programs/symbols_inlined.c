// Functions of every shape that a symbol lookup must tell apart: inlined into each other to a
// depth of six, inlined twice into one caller, split into a cold part, an alias, a function of
// assembly without a size, and tables between functions. Compiled by the tests of src/symbols
// with many sets of flags; it is never recorded.

#include <stdio.h>
#include <stdlib.h>

#define INLINE static inline __attribute__((always_inline))

volatile int sink;

INLINE int inlined_6(int x)
{
	sink = x;
	return x * 3 + sink;
}

INLINE int inlined_5(int x)
{
	int y = inlined_6(x + 1);

	return y ^ inlined_6(y);
}

INLINE int inlined_4(int x)
{
	return x > 3 ? inlined_5(x) : inlined_5(x - 3);
}

INLINE int inlined_3(int x)
{
	int sum = 0;

	for (int i = 0; i < x; i++)
		sum += inlined_4(i);
	return sum;
}

INLINE void *inlined_2(int x)
{
	return malloc((size_t)inlined_3(x) & 0xff);
}

INLINE void *inlined_1(int x)
{
	void *ptr = inlined_2(x);

	if (!ptr)
		abort();
	return ptr;
}

__attribute__((noinline)) void *stands_alone(int x)
{
	return inlined_1(x + sink);
}

void *same_code(int x) __attribute__((alias("stands_alone")));
void *weak_name(int x) __attribute__((weak, alias("stands_alone")));

__attribute__((cold, noinline)) static void report(int x)
{
	fprintf(stderr, "unlikely %d\n", x);
	exit(x);
}

__attribute__((noinline)) int is_split(int x)
{
	if (__builtin_expect(x == 77, 0)) {
		sink = inlined_4(x);
		report(sink);
	}
	return inlined_4(x) + inlined_5(x);
}

__asm__(".text\n"
	".type without_size, @function\n"
	"without_size:\n"
	"	xor %eax, %eax\n"
	"	ret\n"
	"	.skip 13, 0xcc\n"
	".globl also_without_size\n"
	"also_without_size:\n"
	"	mov $1, %eax\n"
	"	ret\n");

int without_size(void) __attribute__((visibility("hidden")));
int also_without_size(void);

static int compare(const void *left, const void *right)
{
	return inlined_6(*(const int *)left) - inlined_6(*(const int *)right);
}

int main(int argc, char **argv)
{
	int numbers[] = { 3, 1, 2 };
	void *one = stands_alone(argc);
	void *two = inlined_1(argc + 1);

	(void)argv;
	qsort(numbers, 3, sizeof numbers[0], compare);
	printf("%d %d\n", is_split(argc), also_without_size());
	free(one);
	free(two);
	return numbers[0] == 77;
}
