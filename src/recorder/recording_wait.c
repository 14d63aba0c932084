// recording, its waits: a thread without room waits for the collector, which may be dead.
//
// Naps grow: four of 50 us, four of 100 us, and so on up to 1.6 ms. The collector counts beats, and
// one that is heard begins the silence anew. After a silence of 200 ms (the first 20 naps make
// 6.2 ms, and 122 more of 1.6 ms the rest) it is looked whether there is such a process. If so,
// another 200 ms are waited. If not, waiting is vain: the event is dropped and counted.
#include "recorder/kernel.h"
#include "recorder/recording_own.h"

enum {
	RECORDING_NAP_NS = 50000,
	RECORDING_NAP_LANES = 16, // so many more: naps are longer by the shortest one
};

#define RECORDING_UNHEARD_NS UINT64_C(20000000000) // as long as an answer is waited for

void recording_drop(void)
{
	struct recording_state *state = recording_state;

	if (state && state->segment && !recording_is_over())
		__atomic_fetch_add(&state->segment->events_dropped, 1, __ATOMIC_RELAXED);
}

// A segment that we have made: the collector does not want it, or it could not have it.
static bool recording_is_unread(const struct recording_wait *wait)
{
	switch (__atomic_load_n(&recording_state->segment->heard, __ATOMIC_ACQUIRE)) {
	case SEGMENT_HEARD:
		return false;
	case SEGMENT_HEARD_NOT:
		return wait->slept_ns > RECORDING_UNHEARD_NS;
	default:
		return true;
	}
}

bool recording_wait_is_vain(struct recording_wait *wait)
{
	struct recording_state *state = recording_state;
	uint32_t beats = __atomic_load_n(&state->clock->beats, __ATOMIC_RELAXED);
	// Hundreds that look again and again would leave the collector no time.
	long shortest_ns =
		RECORDING_NAP_NS * (1 + (long)(state->lanes_count / RECORDING_NAP_LANES));
	long nap_ns = shortest_ns << (wait->naps / 4 < 5 ? wait->naps / 4 : 5);

	if (recording_is_over() || recording_is_unread(wait))
		return true;
	if (beats != wait->beats) {
		wait->beats = beats;
		wait->silent_ns = 0;
	} else if (wait->silent_ns > recording_patience_ns()) {
		if (!recording_collector_lives())
			return true;
		wait->silent_ns = 0;
	}
	kernel_sleep_ns(nap_ns);
	wait->silent_ns += (uint64_t)nap_ns;
	wait->slept_ns += (uint64_t)nap_ns;
	wait->naps++;
	return false;
}

void recording_stop(void)
{
	if (recording_state)
		__atomic_store_n(&recording_state->phase, RECORDING_OFF, __ATOMIC_RELEASE);
}
