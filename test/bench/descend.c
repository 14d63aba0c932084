#include "descend.h"

#define STEP(number, bytes)                                                          \
	static __attribute__((noinline)) void step_##number(struct descend *descend) \
	{                                                                            \
		char room[bytes];                                                    \
                                                                                     \
		descend_use(room);                                                   \
		if (--descend->depth <= 0) {                                         \
			descend->work(descend->context);                             \
		} else {                                                             \
			descend->way = descend->way >> 3 | descend->way << 61;       \
			descend_steps[descend->way & 7](descend);                    \
		}                                                                    \
		descend_use(room);                                                   \
	}

STEP(0, 8)
STEP(1, 24)
STEP(2, 40)
STEP(3, 72)
STEP(4, 104)
STEP(5, 152)
STEP(6, 200)
STEP(7, 248)

descend_step *const descend_steps[8] = { step_0, step_1, step_2, step_3,
					 step_4, step_5, step_6, step_7 };
