// The clock page is a section that is mapped by all, and the bell an event of the system: Windows
// has no futex that works between processes. Both are given to guests as handles (wire/invite.h),
// so they have no name. The word `bell` counts as on Linux; the event only ends the sleep.
#include "collect/session.h"

#include "wire/invite.h"

#include <stdint.h>
#include <windows.h>

#include <timeapi.h>

// Handles have 32 bits that count.
static HANDLE handle_of(int number)
{
	return (HANDLE)(intptr_t)number;
}

bool session_open(struct session *session, struct err *err)
{
	HANDLE section = CreateFileMappingW(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0,
					    INVITE_SESSION_BYTES, NULL);
	HANDLE bell = CreateEventW(NULL, FALSE, FALSE, NULL);
	void *memory = section ? MapViewOfFile(section, FILE_MAP_WRITE, 0, 0, 0) : NULL;

	*session = (struct session){ .fd = (int)(intptr_t)section, .bell = (int)(intptr_t)bell };
	if (memory && bell) {
		session->clock = memory;
		return true;
	}
	err_set(err, ERR_IO, "cannot make the clock page: error %lu", GetLastError());
	if (memory)
		UnmapViewOfFile(memory);
	if (section)
		CloseHandle(section);
	if (bell)
		CloseHandle(bell);
	return false;
}

void session_close(struct session *session)
{
	if (session->clock == NULL)
		return;
	UnmapViewOfFile(session->clock);
	CloseHandle(handle_of(session->fd));
	CloseHandle(handle_of(session->bell));
	session->clock = NULL;
}

void session_ring(const struct session *session)
{
	SetEvent(handle_of(session->bell));
}

// An event that was set before the wait began ends it at once, and then is not set any more: so a
// bell that was rung between the look at the word and the wait is not missed. Whole milliseconds,
// rounded up.
void session_sleep(const struct session *session, uint32_t seen, uint64_t timeout_ns)
{
	if (atomic_load(&session->clock->bell) == seen)
		WaitForSingleObject(handle_of(session->bell),
				    (DWORD)((timeout_ns + 999999) / 1000000));
}

void session_wake(_Atomic uint32_t *word)
{
	(void)word; // a guest that waits for an answer looks now and then
}

bool session_counter_is_trusted(void)
{
	return true; // QueryPerformanceCounter is this counter, where the processor has it constant
}

void session_be_punctual(void)
{
	timeBeginPeriod(1);
}
