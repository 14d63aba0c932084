// recording_win32: how a recording begins in a guest on Windows: by an invitation (wire/invite.h).
#pragma once

#include "recorder/recording.h"
#include "wire/invite.h"

// Look through the process's memory for an invitation that nobody has taken, and take it. NULL:
// there is none. Once, before anything else.
HIDDEN struct invite *recording_find_invite(void);

// Map what it offers, and be ready to record. False: it cannot be; the invitation says why.
HIDDEN bool recording_accept(struct invite *invite);

// The event that wakes the collector, and where visits are left. NULL before recording_accept.
HIDDEN void *recording_bell(void);
HIDDEN struct visit *recording_visits(void);

// Whether a child that is invited waits to be let run by a program of the recording.
HIDDEN bool recording_child_waits(void);

// More memory of ours: our own image, the invitation.
HIDDEN void recording_note_own(void *at, size_t bytes);

// Does [at, at + bytes) touch memory of ours?
HIDDEN bool recording_is_ours(uintptr_t at, size_t bytes);
