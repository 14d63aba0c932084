#include "base/progress.h"

#include <io.h>

bool progress_has_terminal(void)
{
	enum { STDERR = 2 };

	return _isatty(STDERR);
}
