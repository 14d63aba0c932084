// There no allocator's functions are entered: what is recorded are the system's heaps, and what is
// mapped.
#include "collect/hidden_allocator.h"

int hidden_allocator_in(const char *path, bool *)
{
	return hidden_allocator_in_image(path);
}

void hidden_allocator_explain(const struct hidden_allocator *allocator, struct str *text)
{
	str_format(text,
		   "%s has %s inside: what is allocated with that is not recorded on Windows, only "
		   "what it maps",
		   allocator->path, allocator->what);
}
