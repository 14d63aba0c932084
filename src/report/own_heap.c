#include "report/own_heap.h"

#include <string.h>

const char *own_heap_of(const struct trace_process *process)
{
	static const struct {
		const char *begins, *heap;
	} heaps[] = {
		{ "php", "Zend's heap as its mappings of 2 MiB, block by block only with "
			 "USE_ZEND_ALLOC=0" },
		{ "ruby",
		  "its objects' slots (40 bytes and more) as pages, what an object has besides "
		  "block by block" },
		{ "node", "V8's heap as mappings (--layer vm)" },
		{ "java", "the collector's heap as mappings (--layer vm)" },
		{ ".NET", "the collector's heap as mappings (--layer vm)" },
	};

	for (size_t i = 0; process->interpreter && i < sizeof(heaps) / sizeof(*heaps); i++)
		if (strncmp(process->interpreter, heaps[i].begins, strlen(heaps[i].begins)) == 0)
			return heaps[i].heap;
	return NULL;
}
