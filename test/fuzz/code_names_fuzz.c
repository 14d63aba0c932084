// Any bytes as a list of the functions of generated code. The first byte says as what: a perf map
// or a jitdump.
#include "base/mem.h"
#include "collect/code_names.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WANTED = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct code_wanted wanted[WANTED] = { 0 };
	struct trace_name name;

	if (size == 0)
		return 0;
	for (uint64_t i = 0; i < WANTED; i++) {
		wanted[i].pc = i < WANTED / 2 ? 0x1000 + i * 8 : UINT64_MAX - i;
		wanted[i].seen_ns = i * 1000;
	}
	if (data[0] == 'd')
		code_names_find_in_dump(wanted, WANTED, data + 1, size - 1);
	else
		code_names_find_in_map(wanted, WANTED, (const char *)data + 1, size - 1);
	for (size_t i = 0; i < WANTED; i++) {
		if (wanted[i].length == 0)
			continue;
		code_names_split(&wanted[i], &name);
		if (strlen(name.function) > wanted[i].length + strlen("(anonymous)"))
			abort();
		mem_free(name.function);
		mem_free(name.file);
	}
	return 0;
}
