// resizes: realloc in all its outcomes, with known figures.
//
// 100 times each: grows (7201 to 7301), shrinks (7301 to 7202), moves (another block lies in the
// way: 7203 to 200,003), fails (7204 stays and is freed), begins (NULL), ends (size 0). Prints how
// many of the moves moved.
#include "guest.h"

#include <errno.h>

enum { TIMES = 100 };

static void *resize(void *ptr, size_t size)
{
	void *volatile result = realloc(ptr, size);

	guest_check(result != NULL, "realloc");
	return result;
}

int main(void)
{
	int moved = 0;

	for (int i = 0; i < TIMES; i++) {
		void *ptr = resize(malloc(7201), 7301);
		void *wall;
		uintptr_t before;

		free(resize(ptr, 7202));

		ptr = malloc(7203);
		wall = malloc(7210);
		before = (uintptr_t)ptr;
		ptr = resize(ptr, 200003);
		moved += (uintptr_t)ptr != before;
		free(ptr);
		free(wall);

		ptr = malloc(7204);
		errno = 0;
		guest_check(realloc(ptr, GUEST_TOO_MUCH) == NULL && errno == ENOMEM, "too big");
		errno = 0;
		guest_check(reallocarray(ptr, GUEST_ROOT * 256, GUEST_ROOT * 256) == NULL &&
				    errno == ENOMEM,
			    "overflow");
		free(ptr);

		ptr = realloc(NULL, 7205);
		guest_check(ptr != NULL && realloc(ptr, 0) == NULL, "realloc to nothing");
	}
	guest_say("%d\n", moved);
	return 0;
}
