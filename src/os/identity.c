// For example a.tide was opened, and then rename(2) put another file at its path: another number,
// so it is not the same. A file that grew in place is the same, but does not hold. The time of
// change alone would miss a copy that kept it (cp -p), and the number alone a file that was written
// over.
#include "os/identity.h"

bool identity_is_same(const struct identity *identity, const char *path)
{
	struct identity now;
	struct err ignored = { 0 };

	return identity_find(&now, path, &ignored) && now.device == identity->device &&
	       now.number == identity->number;
}

bool identity_holds(const struct identity *identity, const char *path)
{
	struct identity now;
	struct err ignored;

	return identity_find(&now, path, &ignored) && now.device == identity->device &&
	       now.number == identity->number && now.size_bytes == identity->size_bytes &&
	       now.changed_s == identity->changed_s && now.changed_ns == identity->changed_ns;
}
