// For example, a program has 300 MiB and frees 100 of them by munmap. Before the call, at most once
// a tick, the kernel is asked for the highest resident memory so far: 300 MiB. The collector's
// floor was 200, from the last snapshot: so now may be the peak. The thread sets look_state to
// ASKED, rings the bell, and sleeps on that word: 200 ms until the collector seems not to listen
// (ASKED becomes IDLE again, and nothing is lost but the snapshot), 5 s if it is taking one.
#include "recorder/peak_linux.h"

#include "recorder/kernel.h"
#include "recorder/recording.h"

enum {
	PEAK_NAP_NS = 10000000,
	PEAK_SET_PTRACER = 0x59616d61, // PR_SET_PTRACER
	PEAK_ASKED_NAPS = 20,          // until no listener seems to be there
	PEAK_TAKING_NAPS = 500,        // until no worker seems to be there
};

struct peak_usage {
	long times[4];
	long resident_max; // KiB
	long rest[13];
};

// In bytes; the kernel says KiB. It never falls, so that a rise of it says that there was a peak.
static uint64_t peak_resident_max(void)
{
	struct peak_usage usage = { .resident_max = 0 };

	kernel(__NR_getrusage, 0 /* RUSAGE_SELF */, &usage);
	return (uint64_t)usage.resident_max * 1024;
}

void peak_start(void)
{
	recording_state->rss_before = recording_state->copy ? 0 : peak_resident_max();
}

// There may be thousands of children: half of what snapshots may take is not for them. Where many
// end at once, the first to ask holds the others back until it is known what that took: else each
// of them would wait for a collector that has no time for it.
static bool peak_child_may_ask(struct segment_clock *clock)
{
	uint64_t after_ns = __atomic_load_n(&clock->look_after_ns, __ATOMIC_RELAXED);
	uint64_t now_ns = __atomic_load_n(&clock->now_ns, __ATOMIC_RELAXED);

	if (after_ns == 0)
		return true;
	return now_ns >= after_ns * 2 &&
	       __atomic_compare_exchange_n(&clock->look_after_ns, &after_ns, now_ns, false,
					   __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

// look_after_ns is the collector's: it sets the time before which no further snapshot is worth its
// cost. At exit there is one in any case, but for children of recorded processes.
bool peak_affordable(enum peak_reason reason)
{
	struct segment_clock *clock = recording_state->clock;
	struct segment *segment = recording_state->segment;
	uint64_t now_ns = __atomic_load_n(&clock->now_ns, __ATOMIC_RELAXED);
	bool may;

	if (__atomic_load_n(&segment->look_child, __ATOMIC_RELAXED))
		may = peak_child_may_ask(clock);
	else
		may = reason == PEAK_EXIT ||
		      now_ns >= __atomic_load_n(&clock->look_after_ns, __ATOMIC_RELAXED);
	if (!may)
		__atomic_fetch_add(&segment->look_missed, 1, __ATOMIC_RELAXED);
	return may;
}

// The kernel's maximum outlives an exec. Until it passes `rss_before` it says nothing of this
// image, and 0 is returned.
uint64_t peak_tell(void)
{
	struct recording_state *state = recording_state;
	uint64_t bytes = peak_resident_max();

	if (bytes <= state->rss_before)
		return 0;
	if (bytes > __atomic_load_n(&state->segment->rss_max, __ATOMIC_RELAXED))
		__atomic_store_n(&state->segment->rss_max, bytes, __ATOMIC_RELAXED);
	return bytes;
}

// Once a tick at most: a thread that is second within one tick finds look_ns set.
bool peak_due(void)
{
	struct recording_state *state = recording_state;
	struct segment *segment = state->segment;
	uint64_t now_ns = __atomic_load_n(&state->clock->now_ns, __ATOMIC_RELAXED);
	uint64_t bytes;

	if (now_ns == __atomic_load_n(&state->look_ns, __ATOMIC_RELAXED))
		return false;
	__atomic_store_n(&state->look_ns, now_ns, __ATOMIC_RELAXED);
	bytes = peak_tell();
	return bytes > __atomic_load_n(&segment->look_floor, __ATOMIC_RELAXED) &&
	       peak_affordable(PEAK_RELEASE);
}

// Wait while the state is `while_state`, `naps` naps at most. True: it has changed.
static bool peak_wait_while(_Atomic uint32_t *word, uint32_t while_state, int naps)
{
	const long nap[2] = { 0, PEAK_NAP_NS };

	for (; naps > 0; naps--) {
		if (__atomic_load_n(word, __ATOMIC_ACQUIRE) != while_state)
			return true;
		kernel(__NR_futex, word, 0 /* FUTEX_WAIT */, while_state, nap);
	}
	return __atomic_load_n(word, __ATOMIC_ACQUIRE) != while_state;
}

// Three states of look_state: IDLE, ASKED, TAKING. Only the collector makes TAKING of ASKED, and
// IDLE of TAKING; we take back what it did not begin.
void peak_wait(enum peak_reason reason)
{
	struct recording_state *state = recording_state;
	_Atomic uint32_t *word = &state->segment->look_state;
	uint32_t asked = SEGMENT_LOOK_ASKED;

	// Who is not our ancestor may stop us only if we say so (Yama).
	if (state->segment->options & SEGMENT_REACHABILITY || reason == PEAK_MARK)
		kernel(__NR_prctl, PEAK_SET_PTRACER, state->segment->collector_pid, 0, 0, 0);
	__atomic_store_n(&state->segment->look_reason, reason | state->looks_count << 8,
			 __ATOMIC_RELAXED);
	__atomic_store_n(&state->segment->look_asked_ns, kernel_now_ns(), __ATOMIC_RELAXED);
	__atomic_store_n(word, asked, __ATOMIC_RELEASE);
	__atomic_fetch_add(&state->clock->bell, 1, __ATOMIC_SEQ_CST);
	kernel(__NR_futex, &state->clock->bell, 1 /* FUTEX_WAKE */, 1);
	if (!peak_wait_while(word, SEGMENT_LOOK_ASKED, PEAK_ASKED_NAPS) &&
	    __atomic_compare_exchange_n(word, &asked, SEGMENT_LOOK_IDLE, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return;
	peak_wait_while(word, SEGMENT_LOOK_TAKING, PEAK_TAKING_NAPS);
}
