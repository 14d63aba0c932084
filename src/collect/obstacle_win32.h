// obstacle_win32: what keeps the recorder out of a program on Windows, in words for the user.
//
// The words follow a colon: "editor.exe is not recorded: ". NULL: nothing that is known here, which
// is no promise.
#pragma once

#include <stdint.h>

// Of an executable, by its file alone, before it is started: its code is for another processor. One
// that cannot be read, or is damaged, has no obstacle: whoever starts it says so.
const char *obstacle_of_image(const char *path);

// What the executable asks the system to guard, under which the recorder was never tried: a
// sentence about it. NULL: nothing.
const char *obstacle_guard_of_image(const char *path);

// Of a process that could not be opened or written into, and why.
const char *obstacle_of_process(uint32_t pid);
