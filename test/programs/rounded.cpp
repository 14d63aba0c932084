// rounded: 100 aligned blocks of 7505 bytes by operator new, and one of 7552 by aligned_alloc.
//
// The C++ library asks for 7552 each time, the next multiple of the alignment. What the program
// asked for is 7505.

#include <cstdlib>
#include <new>

int main()
{
	const std::align_val_t wide{ 64 };

	for (int i = 0; i < 100; i++) {
		void *p = ::operator new(7505, wide);

		::operator delete(p, wide);
	}
	free(aligned_alloc(64, 7552));
	return 0;
}
