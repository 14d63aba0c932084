// patch_win32: hooks of ntdll's functions, by a jump at their beginning.
//
// Not by import tables: ntdll calls its own functions, others find them by GetProcAddress, forward
// them, are loaded later, or bring a C runtime along. The first instructions of a function are
// moved (relocate.h) to a *trampoline*, a page near the module, and a jump to the hook takes their
// place, in one aligned store of eight bytes. What cannot be moved is left alone, and said.
//
// While one is calling for itself, it calls patch_real: the function, or what is behind its hook.
#pragma once

#include "recorder/nt_win32.h"
#include "wire/compiler.h"

#include <stdbool.h>

#define PATCH_MEMBER(result, name, arguments) NT_CALL result(*name) arguments;

// By name: what to call for the function itself. NULL: this system has none.
struct patch_real {
	NT_HOOKED(PATCH_MEMBER)
};

#undef PATCH_MEMBER

HIDDEN extern struct patch_real patch_real;

// Before anything else: fill patch_real with the functions as they are, and find ntdll.
HIDDEN void patch_find(void);

// One function and its hook.
struct patch_hook {
	const char *name;
	void **real; // in patch_real
	void *hook;
};

enum { PATCH_HOOKS_MAX = 32 };

// Hears of a function that could not be hooked, or (`hooked`) only on top of another's hook, and
// why. `why` is the end of a sentence that begins with the name. Both are constant.
typedef void patch_told(const char *name, const char *why, bool hooked);

// Hook all that can be. Returns how many; 0 where memory for code is refused. Once in a process,
// for PATCH_HOOKS_MAX at most; `hooks` stays as long as the process.
HIDDEN uint32_t patch_start(const struct patch_hook *hooks, uint32_t count, patch_told *tell);

// Tell of each hook that is no longer there: the program has put the function's own code back. Of
// each once.
HIDDEN void patch_check(void);

// Where ntdll is: calls from there are the system's own.
struct patch_range {
	uintptr_t start, bytes;
};
HIDDEN extern struct patch_range patch_ntdll, patch_own; // and where we are

// Whether a return address is in ntdll: then the system itself has called.
static inline bool patch_from_ntdll(uintptr_t pc)
{
	return pc - patch_ntdll.start < patch_ntdll.bytes;
}
