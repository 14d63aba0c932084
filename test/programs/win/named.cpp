// C++ names of the forms that Microsoft's compilers decorate: namespaces, one without a name,
// templates with types, values and packs, operators, conversions, constructors, destructors,
// virtual functions, static members, lambdas, local classes, references to functions. Without any
// library. Compiled by test/windows/symbols.py; it is never run.

#define ALONE __attribute__((noinline))

volatile int sink;

void operator delete(void *) noexcept
{
	sink = 0;
}

extern "C" int _purecall()
{
	return sink;
}

namespace outer
{
namespace inner
{

template <typename T, int N> struct array {
	T items[N];

	ALONE array()
	{
		for (int i = 0; i < N; i++)
			items[i] = (T)(sink + i);
	}

	ALONE T &operator[](int i)
	{
		return items[(i + sink) % N];
	}

	ALONE operator int() const
	{
		return (int)items[0] + sink;
	}

	template <typename F> ALONE T fold(F call)
	{
		T sum = T();

		for (T &item : items)
			sum += call(item);
		return sum;
	}
};

struct base {
	ALONE base()
	{
		sink = sink + 1;
	}
	ALONE virtual ~base()
	{
		sink = sink - 1;
	}
	virtual int area(int) const = 0;
	static ALONE int count(const base *const *list, unsigned long long size)
	{
		return list[size - 1]->area(sink);
	}
};

struct square : base {
	int side = sink;

	ALONE int area(int x) const override
	{
		return side * side + x;
	}
	ALONE square &operator+=(const square &other)
	{
		side += other.side + sink;
		return *this;
	}
	ALONE bool operator==(const square &other) const
	{
		return side == other.side + sink;
	}
};

} // namespace inner

template <typename... T> ALONE int sum_of(T... values)
{
	return (sink + ... + (int)values);
}

template <int (*Function)(int)> ALONE int twice(int x)
{
	return Function(x) + Function(x + sink);
}

enum class colour { red, green };

template <colour C, bool B, typename T> ALONE int chosen(T *const *value, T &&other)
{
	return B ? (int)C + (int)**value : (int)other + sink;
}

} // namespace outer

namespace
{

ALONE int hidden(int x)
{
	return x * 3 + sink;
}

struct unseen {
	ALONE int get(int (*call)(int), int (&array)[3])
	{
		return call(array[1]) + sink;
	}
};

} // namespace

ALONE int local_class(int x)
{
	struct local {
		ALONE int run(int y)
		{
			return y * sink + 1;
		}
	};
	static auto keep = [](int y) __attribute__((noinline))
	{
		return y + sink;
	};

	return local().run(x) + keep(x);
}

ALONE float overloaded(float x)
{
	return x + (float)sink;
}

ALONE long long overloaded(long long x, unsigned char y, wchar_t z, const volatile void *p)
{
	return x + y + z + (p ? sink : 0);
}

extern "C" ALONE int plain_c(int x)
{
	return x + sink * 5;
}

extern "C" int _fltused;
int _fltused;

extern "C" int start()
{
	outer::inner::array<int, 4> numbers;
	outer::inner::array<outer::inner::array<short, 2> *, 3> *nothing = nullptr;
	outer::inner::square one, two;
	const outer::inner::base *list[] = { &one, &two };
	int three[3] = { 1, 2, 3 }, *first = three;
	unseen seen;

	one += two;
	return numbers[1] + (int)numbers + numbers.fold([](int &x) { return x + sink; }) +
	       (one == two) + outer::inner::base::count(list, 2) + outer::sum_of(1, 2L, 'c', 4.5f) +
	       outer::twice<plain_c>(3) + outer::chosen<outer::colour::green, true>(&first, 4) +
	       hidden(4) + seen.get(hidden, three) + local_class(5) + (int)overloaded(1.5f) +
	       (int)overloaded(1, 2, 3, nothing);
}
