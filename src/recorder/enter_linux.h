// enter: an executable's own allocator, entered by patches at the beginning of its functions.
//
// An executable that brings malloc along calls that one without asking anybody, and so do the
// libraries, because it comes first. So each function of it that we have a hook for, and whose name
// it exports, begins with a jump to that hook from the start on. The instructions that stood there
// are moved (relocate.h) to a *trampoline*, pages near the executable, and go on behind the jump:
// that is the real function of the hook (hook_entered_linux.c). The hook is entered with the
// caller's return address on the stack, and leaves the trampoline no frame of its own: what walks
// or unwinds the stack notices nothing.
//
// A function that is only a jump to another one is followed, as other functions may know that one;
// several names of one address are one function. What cannot be moved is left as it is, and told.
#ifndef RECORDER_ENTER_LINUX_H
#define RECORDER_ENTER_LINUX_H

#include "recorder/real_linux.h"
#include "wire/compiler.h"

// What is behind the hooks of malloc and its family that were entered. All NULL: none was.
HIDDEN extern struct real real_entered;

// Patch what can be patched, and tell what cannot. Called once per image, before any other thread
// exists.
HIDDEN void enter_start(void);

#endif
