// kept: traces that were fetched, in a folder of the user's caches, and no more of them than fit.
//
//     kept_hold        it is there, and stays there while this process is
//     kept_make_room   what was not asked for longest goes, with its index
//
// A trace that any process holds is never taken away.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// Hold the trace until the process ends, and remember that it was asked for now. False: it is not
// there.
bool kept_hold(const char *path);

// Take traces away until those of the folder, with their indexes, and `bytes` more are at most
// `bytes_max`. How many went.
unsigned kept_make_room(const char *folder, uint64_t bytes, uint64_t bytes_max);
