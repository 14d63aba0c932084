// The same as on POSIX, by the descriptor that stderr has in every C library.
#include "base/progress.h"

#include <io.h>

bool progress_has_terminal(void)
{
	enum { STDERR = 2 };

	return _isatty(STDERR);
}
