// sampler: what is looked up from outside now and then: resident memory, swap and page faults ten
// times a second, names of threads and our own share of the memory once a second.
//
// The proportional figure (PSS) comes as often, but to count it the kernel looks at each page: 6 ms
// for 240 MB, while the program cannot map anything. So it is counted where a thousandth of the
// time allows it, and carried on in between: of each kind of memory (anonymous, of files, shared)
// what is resident now, as shared as it was when it was last counted. That is exact as long as no
// page begins or ceases to be shared. When a process has begun or ended, with which pages may be
// shared, a two-hundredth of the time is allowed. Notes say which of the two they are.
#pragma once

#include "collect/process_list.h"

struct sampler {
	uint64_t resident_ns; // when to look next
	uint64_t names_ns;
	uint64_t proportional_spent_ns;
	size_t images_count; // at the last look
};

// Look at what is due. Between two passes.
void sampler_run(struct sampler *sampler, struct process_list *process_list, uint64_t now_ns);
