#include "symbols/remarks.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdarg.h>
#include <string.h>

void remarks_fini(struct remarks *remarks)
{
	for (size_t i = 0; i < remarks->count; i++)
		mem_free(remarks->lines[i]);
	mem_free(remarks->lines);
	*remarks = (struct remarks){ 0 };
}

void remarks_add(struct remarks *remarks, const char *format, ...)
{
	struct str line = { 0 };
	va_list args;

	ASSERT(remarks->count <= REMARKS_MAX);
	if (remarks->count == REMARKS_MAX)
		return;
	va_start(args, format);
	str_vformat(&line, format, args);
	va_end(args);
	for (size_t i = 0; i < remarks->count; i++) {
		if (strcmp(remarks->lines[i], str_get(&line)) == 0) {
			str_fini(&line);
			return;
		}
	}
	*MEM_ADD(remarks->lines, remarks->count, remarks->capacity) = str_take(&line);
}
