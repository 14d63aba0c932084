// quit: what ends a server from outside: Ctrl-C and its like, on Windows also that its console is
// closed or its user leaves.
//
//     quit_watch     before the first thread is started
//       quit_wait    until somebody ends us; who does so twice means it, and ends us at once
//
// And what is not to be left where somebody ends another command while it works:
//
//     quit_removes   a file is begun, under a name that is not its own, or a folder
//       quit_keeps   it has its name, or is gone
#pragma once

// Both from the thread that waits; quit_wait once.
void quit_watch(void);
void quit_wait(void);

// If Ctrl-C or its like ends us, the file is removed before, or the folder and all that is in it.
// `path` is borrowed until it is kept. A signal that is ignored, or that somebody waits for, is
// left so; and so is all on Windows. From one thread. More than a few files are not remembered. A
// limit of file sizes (ulimit -f) is a failing write from here on, and ends nobody.
void quit_removes(const char *path);
void quit_keeps(const char *path);
