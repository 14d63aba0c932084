// Colours depend on standard output alone: what goes to a file or a pipe has none. "dumb" is what
// editors say whose windows show escape sequences as text.
#include "os/terminal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool terminal_is(void)
{
	return isatty(STDOUT_FILENO);
}

bool terminal_has_colours(void)
{
	const char *term = getenv("TERM");

	return terminal_is() && term && strcmp(term, "dumb") != 0;
}

unsigned terminal_columns(void)
{
	struct winsize size;

	// On a pipe or a file the call fails with ENOTTY: 0, and the caller takes its own width.
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

// Where our parent ignores SIGPIPE, a closed pipe would be an error and a message. What goes to a
// file or a pipe is written many pages at a time: by itself the C library does it page by page, and
// rows may be hundreds of megabytes.
void terminal_begin(bool keep_signals)
{
	static char buffer[1 << 17];

	if (!keep_signals)
		signal(SIGPIPE, SIG_DFL);
	if (!terminal_is())
		setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
}
