// To be linked statically: operators, exceptions that pass them, and threads. It prints, for each
// size that it asks for, how often it does.
//
//     7601          new[] and delete[], by three threads, 1000 each, with an exception thrown each
//     640           new of a type with an alignment of 64, 100 by each of them
//     7602          malloc by a new_handler, 3: two of them before it throws, in vain one more
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

static int handled;

static void handle()
{
	free(malloc(7602));
	if (++handled == 3)
		throw std::bad_alloc();
}

struct alignas(64) Wide {
	char bytes[640];
};

static void work()
{
	for (int i = 0; i < 1000; i++) {
		try {
			char *volatile block = new char[7601];

			delete[] block;
			throw std::runtime_error("x");
		} catch (const std::exception &) {
		}
	}
	for (int i = 0; i < 100; i++) {
		Wide *volatile wide = new Wide;

		delete wide;
	}
}

int main()
{
	std::vector<std::thread> threads;

	for (int i = 0; i < 3; i++)
		threads.emplace_back(work);
	for (auto &thread : threads)
		thread.join();
	std::set_new_handler(handle);
	try {
		char *volatile never = new char[static_cast<size_t>(1) << 60];
		(void)never;
		return 1;
	} catch (const std::bad_alloc &) {
	}
	printf("7601 3000\n640 300\n7602 3\n");
	return 0;
}
