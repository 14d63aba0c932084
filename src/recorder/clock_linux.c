// The kernel maps a small library into each process, the vdso, whose clock_gettime reads the
// counter without a system call. Where the program has forbidden the counter (PR_SET_TSC), reading
// it would be a fault, in the vdso too, and the kernel is asked itself.
#include "recorder/clock.h"
#include "recorder/kernel.h"
#include "recorder/recording.h"
#include "recorder/scope_linux.h"

enum {
	AT_SYSINFO_EHDR = 33,
	CLOCK_MONOTONIC = 1,
	PR_GET_TSC = 25,
	PR_TSC_ENABLE = 1,
};

static int (*clock_vdso)(int, long *);

bool clock_find(void)
{
	uint64_t header = scope_auxiliary(AT_SYSINFO_EHDR);
	int allowed = 0;

	for (struct scope_object *at = scope_objects(); at && !clock_vdso; at = at->next) {
		if (header && at->bias == header)
			*(void **)&clock_vdso = scope_find(at, "__vdso_clock_gettime");
	}
	// prctl(PR_SET_TSC) may have made it a fault.
	return kernel(__NR_prctl, PR_GET_TSC, &allowed) == 0 && allowed == PR_TSC_ENABLE;
}

uint64_t clock_ask(void)
{
	long time[2] = { 0, 0 };

	if (!clock_vdso || !clock_counter_allowed || clock_vdso(CLOCK_MONOTONIC, time) != 0)
		kernel(__NR_clock_gettime, CLOCK_MONOTONIC, time);
	return (uint64_t)time[0] * 1000000000u + (uint64_t)time[1] -
	       recording_state->clock->began_ns;
}
