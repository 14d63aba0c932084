// drive: paths as Windows writes them, on this machine.
//
// A trace of a Windows program names C:\dir\file.dll. On Windows that is a path. On Linux the
// drives may be those of a Wine prefix ($WINEPREFIX, ~/.wine), and Z: without one is the root.
// Names differ in case there and are the same file; so what is not found as it is written is
// looked for in any case.
#pragma once

// The file or directory on this machine, owned by the caller (mem_free); NULL: there is none. A
// path that Windows would not write is taken as it is.
char *drive_find(const char *path);

// The same for `name` below `folder`, which is a path of this machine. `name` may have several
// parts, with slashes.
char *drive_find_in(const char *folder, const char *name);

// What is between the directories of a list: ':', or ';' where drives have letters.
char drive_separator(void);
