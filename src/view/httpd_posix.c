// Each function of the list is looked up by its name; `struct httpd` has one member for each, so
// that a call of one that the list lacks does not compile.
#include "view/httpd.h"

#include <dlfcn.h>

// The file whose interface is that of <microhttpd.h>.
#define HTTPD_LIBRARY "libmicrohttpd.so.12"

bool httpd_load(struct httpd *httpd, struct err *err)
{
	void *library = dlopen(HTTPD_LIBRARY, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return err_set(err, ERR_IO,
			       "the viewer cannot be served: %s (package libmicrohttpd12)",
			       dlerror());
#define X(name)                                                                             \
	httpd->name = (__typeof__(httpd->name))dlsym(library, "MHD_" #name);                \
	if (!httpd->name)                                                                   \
		return err_set(err, ERR_IO, "the viewer cannot be served: %s lacks MHD_%s", \
			       HTTPD_LIBRARY, #name);
	HTTPD_FUNCTIONS(X)
#undef X
	return true;
}
