// plugin: the library that reload opens; built twice, as plugin_a and plugin_b.
#include <stdlib.h>

void *PLUGIN_NAME(size_t size);
void *plugin_work(size_t size);

__attribute__((noinline)) void *PLUGIN_NAME(size_t size)
{
	void *volatile ptr = malloc(size);

	return ptr;
}

void *plugin_work(size_t size)
{
	void *volatile ptr = PLUGIN_NAME(size);

	return ptr;
}
