// Functions of C++ that no other file sees: in namespaces, with and without a name, in classes, in
// functions; lambdas; templates. With -DAPART each has code of its own, and a symbol; else each is
// inlined, and DWARF alone names it, without a linkage name. Compiled by the tests of src/symbols;
// it is never recorded.

#include <cstdlib>
#include <ostream>
#include <string>
#include <vector>

#ifdef APART
#define PLACED __attribute__((noinline))
#else
#define PLACED __attribute__((always_inline))
#endif

void *volatile sink;

namespace app
{
namespace
{

struct query {
	int x;
	PLACED void *get(unsigned long n, const char *s, int (*f)(int)) const
	{
		return malloc(n + s[0] + f(3));
	}
};

PLACED inline void *nameless(const std::string &s, char **v, query *q, query &&r,
			     const std::vector<const char *> &k)
{
	return malloc(s.size() + (v != 0) + (q != 0) + r.x + k.size());
}

template <class T, int N, unsigned long M> PLACED inline void *fixed(T *t, std::ostream &o)
{
	return malloc(sizeof(T) + N + M + !t + !&o);
}

} // namespace

enum class mode { off, on };
template <mode m, bool b> struct switched {
	int y;
};

PLACED static inline void *types(long a, bool b, signed char c, unsigned char d, short e,
				 long long f, double g, volatile int *h, int k[4])
{
	return malloc(a + b + c + d + e + f + g + *h + k[0]);
}

PLACED static inline void *values(mode e, switched<mode::on, true> t, ...)
{
	return malloc((int)e + t.y);
}

struct store {
	static void *open(int n);
};

} // namespace app

__attribute__((noinline)) int one_more(int x)
{
	return x + 1;
}

__attribute__((noinline)) void handle(int n)
{
	auto first = [n](int k) PLACED { return malloc(n + k); };
	auto second = [n](const std::string &k) PLACED { return malloc(n + k.size()); };
	auto third = [n](int k) PLACED { return malloc(n + 2 * k); };
	struct local {
		int q;
		PLACED void *method(int z)
		{
			return malloc(z + q);
		}
	} place{ n };

	sink = first(1);
	sink = second("abc");
	sink = third(4);
	sink = place.method(4);
}

__attribute__((noinline)) void *app::store::open(int n)
{
	auto make = [=]() PLACED { return malloc(n); };

	return make();
}

int main(int argc, char **argv)
{
	volatile int h = 3;
	int k[4] = { 1 };
	app::query q{ argc };

	sink = q.get(argc, "x", one_more);
	sink = app::nameless("abc", argv, &q, app::query{ 3 }, {});
	sink = app::fixed<const char *, 3, 4>(0, *(std::ostream *)argv);
	sink = app::types(argc, true, 1, 2, 3, 4, 5.0, &h, k);
	sink = app::values(app::mode::on, {}, 3);
	handle(argc);
	sink = app::store::open(argc);
}
