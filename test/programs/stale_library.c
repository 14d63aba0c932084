// stale_library: what stale_return opens. Built without frame pointers.
#include <stddef.h>

void *stale_call(void *(*make)(size_t), size_t size);

void *stale_call(void *(*make)(size_t), size_t size)
{
	volatile char room[200];

	room[0] = 1;
	return (char *)make(size) + room[0] - 1;
}
