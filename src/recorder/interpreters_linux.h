// interpreters: which programs run others in this process, for `info`: those whose frames are not
// read. They are known by functions that they export.
#pragma once

#include "wire/compiler.h"

struct scope_object;

// A module was found. Under code_lock.
HIDDEN void interpreters_meet(const struct scope_object *object);

// The process is attached to: what is loaded already is met before any call that has it in its
// stack.
HIDDEN void interpreters_meet_all(void);
