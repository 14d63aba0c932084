// What a program does after it has waited for a child comes after the child's end.
//
// The collector hears of an end when the kernel wakes it, which may be milliseconds later: by then
// the parent may have begun the next child, and the memory of both would add up. So who waits for a
// child by one of these names leaves a note. Only what has ended is noted, not what was stopped or
// goes on. What the C library waits for itself (system, pclose) is not seen here.
#include "recorder/hook_wait_linux.h"

#include "recorder/client.h"
#include "recorder/real_linux.h"

#include <asm/siginfo.h>

enum { HOOK_WAIT_STOPPED = 0x7f, HOOK_WAIT_CORE = 0x80 };

EXPORT int wait4(int pid, int *status, int options, void *usage)
{
	int mine = 0, *place = status ? status : &mine;
	int result;

	if (unlikely(!real.wait4))
		real_find();
	if (unlikely(!real.wait4))
		return -1;
	result = real.wait4(pid, place, options, usage);
	// 0xffff is a child that goes on; the low seven bits of one that was stopped are all set.
	if (result > 0 && (*place & HOOK_WAIT_STOPPED) != HOOK_WAIT_STOPPED)
		client_waited((uint32_t)result, (uint32_t)*place);
	return result;
}

EXPORT int waitpid(int pid, int *status, int options)
{
	return wait4(pid, status, options, NULL);
}

EXPORT int wait3(int *status, int options, void *usage)
{
	return wait4(-1, status, options, usage);
}

EXPORT int wait(int *status)
{
	return wait4(-1, status, 0, NULL);
}

EXPORT int waitid(int type, unsigned id, void *information, int options)
{
	siginfo_t mine = { 0 }, *place = information ? information : &mine;
	uint32_t status;
	int result;

	if (unlikely(!real.waitid))
		real_find();
	if (unlikely(!real.waitid))
		return -1;
	result = real.waitid(type, id, place, options);
	if (result != 0 || place->si_signo == 0)
		return result;
	status = (uint32_t)place->si_status;
	if (place->si_code == CLD_EXITED)
		client_waited((uint32_t)place->si_pid, (status & 0xff) << 8);
	else if (place->si_code == CLD_KILLED)
		client_waited((uint32_t)place->si_pid, status);
	else if (place->si_code == CLD_DUMPED)
		client_waited((uint32_t)place->si_pid, status | HOOK_WAIT_CORE);
	return result;
}
