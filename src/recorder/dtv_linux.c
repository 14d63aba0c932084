// For example, a thread's block is at 7f10: its second word says that the table is at 7e00. The
// table's words are 2, 7ec0, 55d0: two objects have variables, those of the program begin at 7ec0,
// ours at 55d0. In another thread ours are elsewhere, but in both we are number 2.
#include "recorder/dtv_linux.h"

enum {
	DTV_BYTES = 256, // of our variables, at most
	DTV_OBJECTS_MAX = 4096,
};

// What the linker tells of a variable.
struct dtv_place {
	uintptr_t object, distance;
};

// The compiler calls it by this name for each variable. musl's own is the same, but a call of what
// may be in another library.
HIDDEN void *__tls_get_addr(const struct dtv_place *place);

static const uintptr_t *dtv_table(void)
{
	return ((const uintptr_t *const *)kernel_thread_block())[1];
}

void *__tls_get_addr(const struct dtv_place *place)
{
	return (void *)(dtv_table()[place->object] + place->distance);
}

uint32_t dtv_find(const void *variable, int64_t *distance)
{
	const uintptr_t *table = dtv_table();

	*distance = 0;
	for (uintptr_t i = 1; i <= table[0] && i <= DTV_OBJECTS_MAX; i++) {
		if ((uintptr_t)variable - table[i] < DTV_BYTES) {
			*distance = (int64_t)((uintptr_t)variable - table[i]);
			return (uint32_t)i;
		}
	}
	return 0;
}
