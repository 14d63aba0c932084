// sampler: what is looked up from outside now and then: resident memory, swap and page faults ten
// times a second, proportional figures as often as they are cheap enough, names of threads and our
// own share of the memory once a second.
#ifndef COLLECT_SAMPLER_H
#define COLLECT_SAMPLER_H

#include "collect/roster.h"

struct sampler {
	uint64_t resident_ns; // when to look next
	uint64_t names_ns;
	uint64_t proportional_spent_ns, proportional_after_ns;
};

// Look at what is due. Between two passes.
void sampler_run(struct sampler *sampler, struct roster *roster, uint64_t now_ns);

#endif
