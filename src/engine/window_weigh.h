// window_weigh: a window of a sampled recording, as estimates of the whole.
//
// Each group of the question is asked for in parts: what was recorded as every call was, and
// samples by their distance and size, which are alike in weight (engine/replay/weight.h). One
// thread.
#pragma once

#include "engine/window.h"

// The answer to `query`, made of what `ask` answers to a finer one. False: as `ask` does.
bool window_weigh(const struct reader *reader, const struct window_query *query,
		  bool (*ask)(void *context, const struct window_query *query,
			      struct window_result *result, struct err *err),
		  void *context, struct window_result *result, struct err *err);
