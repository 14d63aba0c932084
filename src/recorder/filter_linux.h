// filter_linux: what a system-call filter (seccomp) makes of a call of ours, read in its program.
#ifndef RECORDER_FILTER_LINUX_H
#define RECORDER_FILTER_LINUX_H

#include "wire/compiler.h"

#include <stdbool.h>
#include <stdint.h>

// Whether the filter (struct sock_fprog) lets call `number` pass, whatever its arguments are and
// wherever it is made. False: it does not, or that is not known.
HIDDEN bool filter_lets(const void *filter, uint32_t number);

#endif
