// now: what time it is, in nanoseconds.
#pragma once

#include <stdint.h>

// Since some moment in the past, never back; the clock that traces are timed with.
uint64_t now_steady_ns(void);

// Since 1970 (UTC). May jump.
uint64_t now_wall_ns(void);

// Processor time that this process has used, all threads together.
uint64_t now_cpu_ns(void);

// Sleep for so long, or until now_steady_ns says so. A system may know nothing so fine.
void now_sleep(uint64_t ns);
void now_sleep_until(uint64_t steady_ns);
