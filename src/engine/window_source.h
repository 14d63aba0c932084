// window_source: what the parts of window share: where single steps come from.
#ifndef ENGINE_WINDOW_SOURCE_H
#define ENGINE_WINDOW_SOURCE_H

#include "engine/window.h"

// The number of the event of a step; UINT64_MAX: none.
bool window_source_number(struct window *window, uint64_t step, uint64_t *number, struct err *err);

// The one that window_open was given.
struct reader *window_source_reader(struct window *window);

// Where the index of a trace lies: beside it, or in the user's cache directory where that cannot
// be written to. Owned by the caller.
char *window_source_path(const char *trace_path, const uint8_t recording_id[16]);

#endif
