// The C run-time would write \r\n for \n, and files must be the same bytes on every system: the
// streams are binary. Text is UTF-8, which the console is told.
#include "os/terminal.h"

#include <fcntl.h>
#include <io.h>
#include <stdio.h>
#include <windows.h>

// Consoles show colours since Windows 10, if asked to.
enum { CONSOLE_COLOURS = 4 };

bool terminal_is(void)
{
	DWORD mode;

	return GetConsoleMode(GetStdHandle(STD_OUTPUT_HANDLE), &mode);
}

bool terminal_has_colours(void)
{
	HANDLE console = GetStdHandle(STD_OUTPUT_HANDLE);
	DWORD mode;

	return GetConsoleMode(console, &mode) && SetConsoleMode(console, mode | CONSOLE_COLOURS);
}

unsigned terminal_columns(void)
{
	CONSOLE_SCREEN_BUFFER_INFO information;

	if (!GetConsoleScreenBufferInfo(GetStdHandle(STD_OUTPUT_HANDLE), &information))
		return 0;
	return (unsigned)(information.srWindow.Right - information.srWindow.Left + 1);
}

void terminal_begin(bool keep_signals)
{
	(void)keep_signals; // a pipe without a reader makes writing fail
	_setmode(_fileno(stdout), _O_BINARY);
	_setmode(_fileno(stderr), _O_BINARY);
	SetConsoleOutputCP(CP_UTF8);
}
