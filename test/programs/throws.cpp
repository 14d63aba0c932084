// throws: 1,000 exceptions through five frames, with blocks of 7651 bytes taken on the way and
// freed by destructors during the unwinding: five for each exception.
#include <cstdlib>
#include <stdexcept>
#include <unistd.h>

struct block {
	void *volatile ptr = malloc(7651);
	~block()
	{
		free(ptr);
	}
};

__attribute__((noinline)) static int descend(int depth)
{
	block held;
	volatile int result = 0;

	if (depth == 1)
		throw std::runtime_error("as expected");
	result = descend(depth - 1) + 1;
	return result;
}

int main()
{
	int caught = 0;

	for (int i = 0; i < 1000; i++) {
		try {
			descend(5);
		} catch (const std::exception &) {
			caught++;
		}
	}
	return caught == 1000 ? 0 : 99;
}
