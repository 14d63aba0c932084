// interrupt: Ctrl-C during long work, which then ends in good order.
//
//     interrupt_watch
//       … work that asks interrupt_came now and then, and fails with ERR_STOPPED
//     interrupt_leave
#pragma once

#include <stdbool.h>

// From here on SIGINT is remembered; after interrupt_leave it ends us again.
void interrupt_watch(void);
void interrupt_leave(void);

// Whether it came. In the form that the engine asks for.
// `context` is not looked at: NULL will do.
bool interrupt_came(void *context);

// End as if it had not been caught, so that who called us knows.
void interrupt_end(void);
