// bare: code as compilers make it when nobody wants to unwind it.
//
// Built twice. bare_frames: -O2 without frame pointers: every stack is whole, six frames of
// `level_N` deep. bare_tables: the same without .eh_frame: a stack that cannot be walked is marked
// as incomplete. Both keep 500 blocks of 7671 bytes and lose no event.
#include "guest.h"

static volatile int sink;

#define LEVEL(n, next)                                                      \
	__attribute__((noinline, noclone)) static void level_##n(int count) \
	{                                                                   \
		next(count);                                                \
		sink += n;                                                  \
	}

__attribute__((noinline, noclone)) static void level_0(int count)
{
	for (int i = 0; i < count; i++) {
		void *volatile ptr = malloc(7671);

		sink += ptr != NULL;
	}
}

LEVEL(1, level_0)
LEVEL(2, level_1)
LEVEL(3, level_2)
LEVEL(4, level_3)
LEVEL(5, level_4)

int main(void)
{
	level_5(500);
	return sink == 515 ? 0 : 99;
}
