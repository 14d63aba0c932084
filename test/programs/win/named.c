// Functions of every shape that a symbol lookup must tell apart: inlined into each other to a
// depth of six, inlined twice into one caller, static, never inlined, and exported; small ones in
// a row, exported or not. Without any library, so that it can be built for mingw and for
// Microsoft's own form of objects. Compiled by test/windows/symbols.py; it is run only for its
// exit code.

#define INLINE static inline __attribute__((always_inline))
#define ALONE __attribute__((noinline))
#define EXPORT __declspec(dllexport)

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

INLINE int inlined_2(int x)
{
	return inlined_3(x) & 0xff;
}

INLINE int inlined_1(int x)
{
	return inlined_2(x) + 1;
}

ALONE static int stands_alone(int x)
{
	return inlined_1(x + sink);
}

ALONE static int leaf_a(int x)
{
	return x * 7 + sink;
}

ALONE EXPORT int leaf_b(int x)
{
	return x * 9 - sink;
}

ALONE static int leaf_c(int x)
{
	return x * 11 ^ sink;
}

ALONE static int middle(int (*call)(int), int x)
{
	int sum = 0;

	for (int i = 0; i < (x & 3); i++)
		sum += call(i) + leaf_a(sum);
	return sum + leaf_c(sum);
}

ALONE EXPORT int exported_outer(int x)
{
	return middle(stands_alone, x) + middle(leaf_b, x) + middle(leaf_c, x + 1);
}

__attribute__((cold, noinline)) static int unlikely(int x)
{
	sink = x;
	return inlined_5(x);
}

ALONE EXPORT int is_split(int x)
{
	if (__builtin_expect(x == 77, 0)) {
		sink = inlined_4(x);
		return unlikely(sink);
	}
	return inlined_4(x) + inlined_5(x);
}

ALONE static int recursive(int x)
{
	return x <= 1 ? 1 : recursive(x - 1) + stands_alone(x);
}

ALONE EXPORT int with_switch(int x)
{
	switch (x) {
	case 1:
		return leaf_a(3);
	case 2:
		return leaf_b(4) + 1;
	case 3:
		return leaf_c(5) + 2;
	case 4:
		return recursive(x) + 4;
	case 5:
		return stands_alone(7);
	case 6:
		return exported_outer(x);
	default:
		return is_split(x);
	}
}

int main(void)
{
	int sum = exported_outer(sink + 1) + inlined_1(sink) + recursive(3);

	for (int i = 0; i < 8; i++)
		sum += with_switch(i);
	return sum & 0;
}
