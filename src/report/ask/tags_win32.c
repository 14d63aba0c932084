// Stack tags need an XML parser (expat), with which the Windows build is not linked. Who asks for
// them is told so, and no stack has a tag.
#include "report/ask/tags.h"

struct tags *tags_read(const char *text, size_t length, struct err *err)
{
	(void)text, (void)length;
	err_set(err, ERR_USAGE, "stack tags are not read on Windows, for want of an XML parser");
	return NULL;
}

void tags_free(struct tags *)
{
}

bool tags_find(const struct tags *tags, const struct names_stack *stack, struct str *tag)
{
	(void)tags, (void)stack, (void)tag;
	return false;
}
