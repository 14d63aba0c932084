// What linked_in opens: it calls malloc as any library does.
#include <stdlib.h>

void *plug(size_t size);
void *plug(size_t size)
{
	return malloc(size);
}
