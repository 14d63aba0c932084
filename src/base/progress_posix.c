// A bar goes to stderr, so stderr is what must be a terminal: `report > file` still shows one.
#include "base/progress.h"

#include <unistd.h>

bool progress_has_terminal(void)
{
	return isatty(STDERR_FILENO);
}
