// Compiled with -g1: of `only`, which is inlined everywhere, nothing says that it is in a
// namespace; `both` has code of its own, too, and so a symbol. Each allocates one block.

#include <cstdlib>

void *volatile sink;

namespace ns
{
namespace
{

__attribute__((always_inline)) inline void *only(int n)
{
	void *made = malloc(1000 + n);

	sink = made;
	return made;
}

__attribute__((always_inline)) inline void *both(int n)
{
	void *made = malloc(2000 + n);

	sink = made;
	return made;
}

} // namespace

template <class T> __attribute__((noinline)) T *made(int n)
{
	T *block = (T *)malloc(3000 + n);

	sink = block;
	return block;
}

} // namespace ns

void *(*volatile called)(int) = ns::both;

int main(int argc, char **)
{
	ns::only(argc);
	ns::both(argc);
	ns::made<int>(argc);
	called(argc);
}
