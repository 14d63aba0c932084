// interrupt: Ctrl-C, SIGTERM or SIGHUP during long work, which then ends in good order.
//
//     interrupt_watch
//       … work that asks interrupt_came now and then, and fails with ERR_STOPPED
//     interrupt_leave
#pragma once

#include <stdbool.h>

// From here on these are remembered; after interrupt_leave they end us again.
void interrupt_watch(void);
void interrupt_leave(void);

// Whether one came. In the form that the engine asks for.
// `context` is not looked at: NULL will do.
bool interrupt_came(void *context);

// End as if that one had not been caught, so that who called us knows.
void interrupt_end(void);
