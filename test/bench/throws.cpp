// throws: exceptions, each through many frames.
//
//     throws COUNT DEPTH
#include <cstdlib>

static __attribute__((noinline)) int throws_down(int depth)
{
	if (depth <= 0)
		throw depth;
	// What is done with the result keeps this from being a jump.
	return throws_down(depth - 1) + 1;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? std::atoi(argv[1]) : 1000;
	int depth = argc > 2 ? std::atoi(argv[2]) : 2000;

	for (int i = 0; i < count; i++) {
		try {
			throws_down(depth);
		} catch (int) {
			std::free(std::malloc(48));
		}
	}
	return 0;
}
