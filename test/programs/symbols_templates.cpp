// C++ names of every shape: namespaces, an anonymous one, templates with types, values and packs,
// operators, conversions, constructors in both forms, lambdas, thunks of virtual bases, local
// classes, exceptions. Compiled by the tests of src/symbols; it is never recorded.

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

volatile int sink;

namespace shapes
{

struct base {
	virtual ~base() = default;
	virtual int area(int) const = 0;
};

struct left : virtual base {
	int area(int x) const override
	{
		return x + sink;
	}
	virtual long width()
	{
		return 1;
	}
};

struct right : virtual base {
	int area(int x) const override
	{
		return x * sink;
	}
	virtual long height()
	{
		return 2;
	}
};

struct both : left, right {
	both(std::string name) : name(std::move(name))
	{
	}
	~both() override
	{
		sink = 0;
	}
	int area(int x) const override
	{
		return left::area(x) + right::area(x);
	}
	operator bool() const
	{
		return !name.empty();
	}
	both &operator+=(const both &other)
	{
		name += other.name;
		return *this;
	}
	std::string name;
};

template <typename Item, int Count> struct fixed {
	Item items[Count];

	template <typename Function> Item fold(Function function) const
	{
		Item sum{};

		for (const Item &item : items)
			sum = function(sum, item);
		return sum;
	}
};

template <typename... Parts> __attribute__((noinline)) std::string join(const Parts &...parts)
{
	std::string text;

	((text += parts), ...);
	return text;
}

} // namespace shapes

namespace
{

__attribute__((noinline)) int hidden(const std::vector<int> &numbers)
{
	struct local {
		static int twice(int x)
		{
			return x * 2 + sink;
		}
	};
	std::vector<int> copy(numbers.size());

	std::transform(numbers.begin(), numbers.end(), copy.begin(), local::twice);
	std::sort(copy.begin(), copy.end(), [](int a, int b) { return a > b; });
	return copy.empty() ? 0 : copy.front();
}

} // namespace

template int shapes::fixed<int, 4>::fold(std::function<int(int, int)>) const;

extern "C" int plain_c_name(int x)
{
	std::map<std::string, std::unique_ptr<shapes::base>> shapes;

	shapes["one"] = std::make_unique<shapes::both>("one");
	shapes["two"] = std::make_unique<shapes::both>(shapes::join("t", std::string("wo"), "!"));
	if (x > 100)
		throw std::runtime_error("too large");
	return shapes["two"]->area(x);
}

int main(int argc, char **)
{
	shapes::fixed<int, 4> four{ { 1, 2, 3, argc } };
	shapes::both a("a"), b("b");
	int sum = four.fold([&](int x, int y) { return x + y + sink; });

	a += b;
	try {
		sum += plain_c_name(argc) + hidden({ 3, 1, 2 }) + (a ? 1 : 0);
	} catch (const std::exception &) {
		return 2;
	}
	return sum == 12345;
}
