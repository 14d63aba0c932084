// Each mistake and each waste once, and beside it what looks like it and is none:
//   * frees a block of operator new with free, and two of malloc with operator delete, and no other
//     of a thousand that are allocated and freed by one family;
//   * asks once for -16 bytes and gets none;
//   * enlarges a buffer 500 times by 64 bytes (by_constants), and another one by doubling;
//   * makes 20,000 strings that live for one call (temporary_string), and as many blocks that
//     live on;
//   * fills 4,000 vectors one by one (push_back), and 4,000 that were reserved;
//   * a second thread frees 20,000 blocks that the first one made (hand_over).
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

enum { MANY = 20000, VECTORS = 4000 };

static void *kept[MANY];

__attribute__((noinline)) static void new_with_free()
{
	free(new int[10]);
}

__attribute__((noinline)) static void malloc_with_delete()
{
	for (int i = 0; i < 2; i++)
		operator delete(malloc(24));
}

__attribute__((noinline)) static void as_it_should_be()
{
	for (int i = 0; i < 1000; i++) {
		delete new long(i);
		free(malloc(24));
	}
}

__attribute__((noinline)) static void ask_for_too_much()
{
	volatile size_t negative = (size_t)-16;

	kept[0] = malloc(negative);
}

__attribute__((noinline)) static void by_constants()
{
	char *buffer = nullptr;

	for (size_t i = 1; i <= 500; i++) {
		buffer = (char *)realloc(buffer, 64 * i);
		kept[i] = malloc(64 * i); // as large as any hole, and in the way
	}
	free(buffer);
}

__attribute__((noinline)) static void by_doubling()
{
	char *buffer = nullptr;

	for (size_t size = 64; size < 1 << 20; size *= 2)
		buffer = (char *)realloc(buffer, size);
	free(buffer);
}

__attribute__((noinline)) static size_t temporary_string(int i)
{
	return std::string(100, (char)('a' + i % 26)).size();
}

__attribute__((noinline)) static void live_on()
{
	for (int i = 0; i < MANY; i++) {
		free(kept[i]);
		kept[i] = malloc(40);
	}
}

__attribute__((noinline)) static void push_back(std::vector<int> &into, bool reserved)
{
	if (reserved)
		into.reserve(64);
	for (int i = 0; i < 64; i++)
		into.push_back(i);
}

__attribute__((noinline)) static void *hand_over()
{
	return malloc(72);
}

int main()
{
	size_t sum = 0;
	std::vector<void *> queue;

	new_with_free();
	malloc_with_delete();
	as_it_should_be();
	ask_for_too_much();
	by_constants();
	by_doubling();
	for (int i = 0; i < MANY; i++)
		sum += temporary_string(i);
	live_on();
	for (int i = 0; i < VECTORS; i++) {
		std::vector<int> stepwise, reserved;

		push_back(stepwise, false);
		push_back(reserved, true);
	}
	queue.reserve(MANY);
	for (int i = 0; i < MANY; i++)
		queue.push_back(hand_over());
	std::thread([&queue] {
		for (void *block : queue)
			free(block);
	}).join();
	return sum == 0;
}
