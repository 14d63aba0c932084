// door_win32: what else the door can do on Windows, where the launcher is in the same process.
//
// Nobody knocks there. The launcher starts a program suspended and has it invited
// (wire/invite.h); a recorded program that starts another leaves a visit, which is looked at
// whenever door_take is called.
#pragma once

#include "collect/door.h"

// Give the process a segment and put the recorder into it. `process` and `thread` are handles of
// ours and stay the caller's; the process has not run yet, unless `thread` is NULL. Any thread.
bool door_invite(struct door *door, void *process, void *thread, uint32_t pid, struct err *err);

// Say in the trace, and to the launcher, that the process (NULL: an unknown one) is not recorded,
// and why: `err`. Any thread.
void door_unseen(struct door *door, void *process, const struct err *err);

// What a launcher elsewhere would send through its socket. Any thread.
void door_post(struct door *door, const struct collect_message *message);
