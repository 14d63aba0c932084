// Each lambda has the function that it is in, what it is called with, and its number by line: a
// lambda of the file, two of main (the second is used first), and one within another.
#include <cstdlib>

static void *volatile sink;

template <class F> __attribute__((noinline)) static void call(F f)
{
	f(2);
}

static auto of_file = [](int n) { sink = malloc(n); };

int main(int argc, char **)
{
	auto first = [](int n) { sink = malloc(n + 1); };
	auto second = [](int n) {
		auto within = [](char c) { sink = malloc(c); };

		sink = malloc(n + 2);
		call(within);
	};

	call(second);
	call(first);
	call(of_file);
	return argc > 5;
}
