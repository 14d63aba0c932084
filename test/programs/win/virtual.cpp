// What must be said about it: each allocation of its own heap of a million bytes and more has the
// callers that the line `said SIZE PC PC …` names, from inside, up to main. Each function is called
// through a pointer that is known when it runs alone, and removes its arguments itself; before and
// behind the call that goes on it makes others, of other numbers of arguments. So the code of a
// function without frame pointer does not say where its frame is: only who wrote it knows.
#include <stdio.h>
#include <windows.h>

#define INSIDE __attribute__((noinline))
#define ENTER callers[depth++] = __builtin_return_address(0)

enum { SHAPES = 24, LEVELS = 8, ROUNDS = 150, FIRST = 1000000 };

struct shape {
	virtual int none(int left) = 0;
	virtual int two(int left, int a, int b) = 0;
	virtual int four(int left, int a, int b, int c, int d) = 0;
	virtual int short_one(int a) = 0;
	virtual int short_three(int a, int b, int c) = 0;
};

static shape *shapes[SHAPES];
static void *callers[256];
static int depth;
static unsigned seed = 12345;
static volatile int sink;

static shape *any()
{
	seed = seed * 1103515245u + 12345u;
	return shapes[(seed >> 16) % SHAPES];
}

static INSIDE int site(int left)
{
	static int size = FIRST;

	ENTER;
	size++;
	HeapFree(GetProcessHeap(), 0, HeapAlloc(GetProcessHeap(), 0, (size_t)size));
	printf("said %d", size);
	for (int i = depth - 1; i >= 0; i--)
		printf(" %lx", (unsigned long)(size_t)callers[i]);
	printf("\n");
	depth--;
	return left + 1;
}

template <int N> struct shape_of : shape {
	int short_one(int a) override
	{
		return a + N;
	}

	int short_three(int a, int b, int c) override
	{
		return a + b * N + c;
	}

	int none(int left) override
	{
		ENTER;
		char room[N * 8 + 8];
		shape *next = any();
		int sum = 0;

		for (int i = 0; N % 3 == 0 && i < N * 8; i++)
			room[i] = (char)left;
		sink = (int)(size_t)room;
		if (N & 1)
			sum += any()->short_three(left, N, sum);
		if (left <= 0)
			sum += site(left);
		else if (N & 2)
			sum += next->two(left - 1, sum, N);
		else
			sum += next->four(left - 1, N, sum, next->short_one(sum), 2);
		for (int i = 0; i < (N & 3); i++)
			sum += any()->short_three(i, sum, N);
		sink = sum + (N % 3 == 0 ? room[N & 7] : 0);
		depth--;
		return sum;
	}

	int two(int left, int a, int b) override
	{
		ENTER;
		shape *next = any(), *other = any();
		int sum = a;

		for (int i = 0; i < (N & 3); i++)
			sum += next->short_three(a, b, i);
		if (left <= 0)
			sum += site(left);
		else if (a & 1)
			sum += other->none(left - 1);
		else if (N & 4)
			sum += other->four(left - 1, sum, a, b,
					   next->short_three(1, 2, other->short_one(b)));
		else
			sum += other->two(left - 1, b, next->short_one(sum));
		sum ^= other->short_one(b);
		if (sum & 1)
			sum += next->short_three(b, a, sum);
		sink = sum;
		depth--;
		return sum + a;
	}

	int four(int left, int a, int b, int c, int d) override
	{
		ENTER;
		int room[(N & 7) + 1], sum = b;

		for (int i = 0; i < (N & 7) + 1; i++)
			room[i] = any()->short_one(i);
		sink = (int)(size_t)room;
		sum += go_on(left, c) + any()->short_three(a, room[N & 7], c);
		sum += any()->short_one(d);
		sink = sum;
		depth--;
		return sum + room[0];
	}

	INSIDE int go_on(int left, int c)
	{
		ENTER;
		int sum = left <= 0 ? site(left) : any()->two(left - 1, c, N);

		sum += any()->short_three(sum, c, N);
		depth--;
		return sum;
	}
};

template <int N> static void make()
{
	shapes[N - 1] = new shape_of<N>;
	if constexpr (N > 1)
		make<N - 1>();
}

int main(void)
{
	int sum = 0;

	make<SHAPES>();
	for (int i = 0; i < ROUNDS; i++)
		sum += any()->two(LEVELS, i, sum);
	fprintf(stderr, "%d\n", sum);
	return 0;
}
