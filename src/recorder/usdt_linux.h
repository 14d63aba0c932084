// usdt: samples for tools that watch the machine (record --sample --usdt).
//
// Two probes of the provider otel_memory, which OpenTelemetry's eBPF profiler looks for in any
// process, and every other reader of USDT probes finds too (bpftrace, gdb):
//
//     otel_memory:alloc(pointer, bytes, weight)    a sampled allocation; the weight is the mean
//                                                  distance of samples times their number in it,
//                                                  so that weights add up to the bytes allocated
//     otel_memory:free(pointer)                    the end of such a block
//
// A probe is one instruction that does nothing, and a note in the file that says where it is
// (https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation, version 3). Who attaches
// raises the probe's semaphore, a word of two bytes; while both are 0 nothing is computed. Calls
// that are not sampled do not come here.
//
// A realloc is a free and an alloc. One that fails after its block was given up as freed is not
// taken back.
#pragma once

#include "wire/compiler.h"

#include <stdbool.h>
#include <stdint.h>

HIDDEN extern bool usdt_on; // it was asked for
HIDDEN extern volatile uint16_t usdt_alloc_semaphore, usdt_free_semaphore;

// Whether anybody watches.
static inline bool usdt_is_watched(void)
{
	return usdt_on && (usdt_alloc_semaphore || usdt_free_semaphore);
}

// A sampled block begins, or ends.
HIDDEN void usdt_alloc(uint64_t address, uint64_t size, uint64_t weight);
HIDDEN void usdt_free(uint64_t address);
