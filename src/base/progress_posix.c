#include "base/progress.h"

#include <unistd.h>

bool progress_has_terminal(void)
{
	return isatty(STDERR_FILENO);
}
