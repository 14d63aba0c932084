// quit: what ends a server from outside: Ctrl-C and its like, on Windows also that its console is
// closed or its user leaves.
//
//     quit_watch     before the first thread is started
//       quit_wait    until somebody ends us; who does so twice means it, and ends us at once
#pragma once

// Both from the thread that waits; quit_wait once.
void quit_watch(void);
void quit_wait(void);
