// For tools/bench --stages: a recorder that takes no stacks. Found before src/recorder/order.h.
#pragma once

#include "../../../../../src/recorder/order.h"

#define capture_is_same(capture, frame) ((void)(capture), (void)(frame), true)
#define capture_switch(capture, frame) ((void)(capture), (void)(frame), UINT64_C(0))
#define capture_take(capture, frame) ((void)(capture), (void)(frame), (uint32_t)CAPTURE_SAME)
