// early_late_library: allocates while it is opened, when called, and while it is closed.
#include "guest.h"

static void keep(size_t size)
{
	for (int i = 0; i < 10; i++)
		guest_keep(size);
}

__attribute__((constructor)) static void library_init(void)
{
	keep(7304);
}

__attribute__((destructor)) static void library_fini(void)
{
	keep(7306);
}

void library_work(void);
void library_work(void)
{
	keep(7305);
}
