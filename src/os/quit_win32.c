// Control events come in a thread that Windows makes for each. The first sets `asked`, which
// quit_wait waits for; a second one finds it set and is not handled, so that its default action
// ends us. For what the user cannot take back (the console is closed, the session ends) the system
// ends the process as soon as the handler returns: it sleeps, so that the main thread has four
// seconds to finish.
#include "os/quit.h"

#include "base/mem.h"

#include <windows.h>

enum { LEAVE_MS = 4000 }; // the system ends us when this handler returns, or after five seconds

static HANDLE asked;

// In a thread of its own.
static BOOL WINAPI on_control(DWORD what)
{
	// With no time to wait it only asks whether the event is set.
	if (WaitForSingleObject(asked, 0) == WAIT_OBJECT_0)
		return FALSE;
	SetEvent(asked);
	if (what != CTRL_C_EVENT && what != CTRL_BREAK_EVENT)
		Sleep(LEAVE_MS);
	return TRUE;
}

void quit_watch(void)
{
	asked = CreateEventW(NULL, TRUE, FALSE, NULL);
	SetConsoleCtrlHandler(on_control, TRUE);
}

void quit_wait(void)
{
	ASSERT(asked != NULL); // quit_watch was called
	WaitForSingleObject(asked, INFINITE);
}

// A temporary file here is deleted with its last handle; a folder may be left behind.
void quit_removes(const char *)
{
}

void quit_keeps(const char *)
{
}
