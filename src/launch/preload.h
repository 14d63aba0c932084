// preload: what the program's environment must say, so that it loads the recorder and finds us.
//
// Two variables: LD_PRELOAD begins with the recorder's path (what the user had there stays after
// it), and TIDEMARK_SESSION is the name of the collector's socket.
#pragma once

#include "base/err.h"
#include "base/str.h"

enum { PRELOAD_SESSION_BYTES = 48 }; // a session's name, with its NUL

// A new name that nobody can guess: 128 random bits.
bool preload_session(char name[static PRELOAD_SESSION_BYTES], struct err *err);

// The absolute path of libtidemark.so: TIDEMARK_LIBRARY, or beside this program as it was built or
// installed. False: it is not there, or its path cannot be in LD_PRELOAD.
bool preload_find_library(struct str *path, struct err *err);

// For a library that is where we were built or installed, with one for i386 beside it: the path
// that means the right one to programs of either class, because glibc's loader replaces "$LIB" in
// it. `path` is left empty where there is none.
void preload_find_either(const char *library, struct str *path);

// `library` becomes the one for i386 beside it. False: there is none, and it stays what it is.
bool preload_find_narrow(struct str *library);

// `library` becomes the one beside it for programs of musl's that run already. False: there is
// none.
bool preload_find_musl(struct str *library);

// A copy of `environment` with the two variables set; `library` NULL leaves LD_PRELOAD alone. The
// caller owns it (preload_free_environment).
char **preload_environment(char *const *environment, const char *library, const char *session);
void preload_free_environment(char **environment);
