// leave: how we end, once the program that we ran has ended.
#pragma once

// With its exit code, or by its signal, but without a core file of our own. `status` is what
// launch_run says. Returns the exit code for us, where it returns.
int leave_as(int status);
