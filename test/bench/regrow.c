// regrow: buffers that grow by realloc, as vectors and strings do.
//
//     regrow CALLS
#include "descend.h"

enum { REGROW_BUFFERS = 64, REGROW_STEPS = 12 };

static void regrow(void *context)
{
	long calls = *(long *)context;
	void *buffer[REGROW_BUFFERS] = { 0 };
	size_t size[REGROW_BUFFERS] = { 0 };
	uint64_t random = 88172645463325252u;

	while (calls > 0) {
		int at = (int)(descend_random(&random) % REGROW_BUFFERS);

		size[at] = size[at] ? size[at] + size[at] / 2 : 32;
		buffer[at] = realloc(buffer[at], size[at]);
		calls--;
		if (size[at] < 32u << (REGROW_STEPS / 2))
			continue;
		free(buffer[at]);
		buffer[at] = NULL;
		size[at] = 0;
	}
	for (int i = 0; i < REGROW_BUFFERS; i++)
		free(buffer[i]);
}

int main(int argc, char **argv)
{
	long calls = descend_number(argc, argv, 1, 1000000);

	descend_go(8, 0x3af5c1e68b7u, regrow, &calls);
	return 0;
}
