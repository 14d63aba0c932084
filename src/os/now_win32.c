#include "os/now.h"

#include <windows.h>

// The performance counter stands for CLOCK_MONOTONIC: its rate is fixed while the machine runs (10
// MHz on most), and its zero is the machine's start. FILETIME is in units of 100 ns, in two halves.
static uint64_t join(FILETIME time)
{
	return (uint64_t)time.dwHighDateTime << 32 | time.dwLowDateTime;
}

// In 128 bits: a count of 10 MHz times 10^9 leaves 64 bits after half an hour.
uint64_t now_steady_ns(void)
{
	LARGE_INTEGER count, rate;

	QueryPerformanceCounter(&count);
	QueryPerformanceFrequency(&rate);
	return (uint64_t)((unsigned __int128)(uint64_t)count.QuadPart * 1000000000 /
			  (uint64_t)rate.QuadPart);
}

uint64_t now_wall_ns(void)
{
	static const uint64_t year_1970 = UINT64_C(116444736000000000); // since 1601
	FILETIME time;

	GetSystemTimePreciseAsFileTime(&time);
	return (join(time) - year_1970) * 100;
}

uint64_t now_cpu_ns(void)
{
	FILETIME begin, end, kernel, user;

	if (!GetProcessTimes(GetCurrentProcess(), &begin, &end, &kernel, &user))
		return 0;
	return (join(kernel) + join(user)) * 100;
}

// Rounded up to a millisecond, and then to the system's own tick.
void now_sleep(uint64_t ns)
{
	Sleep((DWORD)((ns + 999999) / 1000000));
}

void now_sleep_until(uint64_t steady_ns)
{
	// Windows has no sleep until a moment of that clock: what is left is slept, some
	// milliseconds too long.
	uint64_t now_ns = now_steady_ns();

	if (steady_ns > now_ns)
		now_sleep(steady_ns - now_ns);
}
