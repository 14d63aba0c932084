#include "symbols/remarks.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

void remarks_fini(struct remarks *remarks)
{
	for (size_t i = 0; i < remarks->count; i++)
		mem_free(remarks->lines[i]);
	mem_free(remarks->lines);
	*remarks = (struct remarks){ 0 };
}

// A walk along the list: it has REMARKS_MAX lines at most, and equal ones come from many modules of
// one file, or one server that cannot be reached.
static bool is_there(const struct remarks *remarks, const char *line)
{
	for (size_t i = 0; i < remarks->count; i++)
		if (strcmp(remarks->lines[i], line) == 0)
			return true;
	return false;
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
	if (is_there(remarks, str_get(&line))) {
		str_fini(&line);
		return;
	}
	// The last place is not for a remark: a list that is cut and does not say so looks whole.
	if (remarks->count == REMARKS_MAX - 1) {
		str_clear(&line);
		str_add(&line, "more could not be used than is said here");
	}
	*MEM_ADD(remarks->lines, remarks->count, remarks->capacity) = str_take(&line);
}
