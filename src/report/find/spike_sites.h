// spike_sites: who made the spikes of a window (spikes.h).
#pragma once

#include "report/find/spikes.h"

// What each place held at the body of each row less what it held where the row began, heaviest
// first. Asks for a window for each of a few rows and for each long one; of many short ones, goes
// once through all that happened. False: the index cannot be read.
bool spike_sites_find(struct query_context *asked, struct spikes_row *rows, size_t count,
		      struct err *err);
