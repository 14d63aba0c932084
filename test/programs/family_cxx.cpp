// family_cxx: new and delete in every form, 100 times each, counted once.
//
// Each form asks for a size of its own, and every block is deleted. Sizes of aligned forms are
// multiples of their alignment: the C++ library rounds others up before it asks for memory. The
// failing ones throw or return NULL.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <unistd.h>
#include <vector>

enum { TIMES = 100 };

static void check(bool condition)
{
	if (!condition)
		_exit(99);
}

int main()
{
	const std::align_val_t wide{ 64 };

	for (int i = 0; i < TIMES; i++) {
		void *p = ::operator new(7101);
		::operator delete(p);
		p = ::operator new[](7102);
		::operator delete[](p);
		p = ::operator new(7103, std::nothrow);
		::operator delete(p, std::nothrow);
		p = ::operator new[](7104, std::nothrow);
		::operator delete[](p, std::nothrow);
		p = ::operator new(7168, wide);
		check(reinterpret_cast<uintptr_t>(p) % 64 == 0);
		::operator delete(p, wide);
		p = ::operator new[](7232, wide);
		::operator delete[](p, wide);
		p = ::operator new(7296, wide, std::nothrow);
		::operator delete(p, wide, std::nothrow);
		p = ::operator new[](7360, wide, std::nothrow);
		::operator delete[](p, wide, std::nothrow);
		p = ::operator new(7109);
		::operator delete(p, std::size_t(7109));
		p = ::operator new[](7110);
		::operator delete[](p, std::size_t(7110));
		p = ::operator new(7424, wide);
		::operator delete(p, std::size_t(7424), wide);
		p = ::operator new[](7488, wide);
		::operator delete[](p, std::size_t(7488), wide);
		char *volatile array = new char[7113];
		delete[] array;
		std::string text(7114, 'x'); // asks for one more: 7115
		check(text.size() == 7114);
		std::vector<char> vector(7116);
		check(vector.size() == 7116);
		::operator delete(nullptr);
	}
	for (int i = 0; i < TIMES; i++) {
		bool thrown = false;

		try {
			::operator delete(::operator new(SIZE_MAX / 2 + 1));
		} catch (const std::bad_alloc &) {
			thrown = true;
		}
		check(thrown);
		check(::operator new(SIZE_MAX / 2 + 1, std::nothrow) == nullptr);
	}
	return 0;
}
