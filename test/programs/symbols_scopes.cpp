// Functions of C++ that no other file sees: in namespaces, with and without a name, in classes, in
// functions; lambdas; templates. With -DAPART each has code of its own, and a symbol; else each is
// inlined, and DWARF alone names it, without a linkage name. Compiled by the tests of src/symbols;
// it is never recorded.

#include <cstdlib>
#include <ostream>
#include <string>
#include <tuple>
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
	int f(long) const &;
	PLACED void *once() volatile &
	{
		return malloc(x);
	}
	PLACED operator query *() const
	{
		return (query *)malloc(x);
	}
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

PLACED static inline void *arrays(int (&a)[3], const char (*b)[2][4], char *const *c,
				  int (*d[2])(int), void (*const *e)(char *), const short (&f)[1])
{
	return malloc(a[0] + b[0][0][0] + **c + (d[0] != 0) + (e != 0) + f[0]);
}

PLACED static inline void *members(int query::*a, int (query::*b)(long) const &)
{
	return malloc((a != 0) + (b != 0));
}

// Of the parameters of a template that have no name, and of those of a specialization.
template <class T, class = void, bool = true> struct part {
};
template <class T> struct part<T *, char> {
};

PLACED static inline void *parts(part<int> *a, part<long *, char> *b,
				 std::pair<const unsigned long, part<const char *>> *c,
				 std::tuple<int, long> *d, std::tuple<> *e)
{
	return malloc((a != 0) + (b != 0) + (c != 0) + (d != 0) + (e != 0));
}

typedef float four __attribute__((vector_size(16)));
template <unsigned char c> struct number {
	int y;
};

PLACED static inline void *numbers(four *a, number<200> b, double _Complex *c)
{
	return malloc((a != 0) + b.y + (c != 0));
}

struct store {
	static void *open(int n);
	template <class T> static T *make(int n);
};

} // namespace app

struct outside {
	int x;
};

PLACED static inline void *outer(outside *a)
{
	return malloc(a != 0);
}

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

template <class T> __attribute__((noinline)) T *app::store::make(int n)
{
	auto kept = [=]() PLACED { return malloc(n + sizeof(T)); };

	return (T *)kept();
}

int main(int argc, char **argv)
{
	volatile int h = 3;
	int k[4] = { 1 }, a[3] = { 1 };
	const short s[1] = { 2 };
	app::query q{ argc };
	auto here = [=](int n) PLACED { return malloc(argc + n); };

	sink = q.get(argc, "x", one_more);
	sink = app::nameless("abc", argv, &q, app::query{ 3 }, {});
	sink = app::fixed<const char *, 3, 4>(0, *(std::ostream *)argv);
	sink = app::types(argc, true, 1, 2, 3, 4, 5.0, &h, k);
	sink = app::values(app::mode::on, {}, 3);
	handle(argc);
	sink = app::store::open(argc);
	sink = app::store::make<long>(argc);
	sink = q.once();
	sink = (app::query *)q;
	sink = app::arrays(a, (const char(*)[2][4])argv[0], argv, (int (**)(int))argv, 0, s);
	sink = app::members(&app::query::x, 0);
	sink = app::parts(0, 0, 0, 0, (std::tuple<> *)argv);
	sink = app::numbers(0, {}, (double _Complex *)argv);
	sink = here(3);
	sink = outer((outside *)argv);
}
