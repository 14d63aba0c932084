// tables: the tables of functions that a program gives the system for code that it generates
// (RtlAddFunctionTable, RtlAddGrowableFunctionTable, RtlInstallFunctionTableCallback).
//
// The program says where such code has its frames, as an image does by .pdata, so that exceptions
// pass through it. It is heard of by hooks. The entries are read where the program has them, for it
// keeps them until it deletes the table; whether they are there is asked of the system first. A
// program's function that says the entry (a callback) is called only if it is simple (leaf.h):
// it may wait for what the calling thread holds. Code of others has no entry, and is a guess.
//
// ntdll has these functions in 64 bits alone. What was added before the recorder came (attach) is
// not known.
#pragma once

#include "recorder/codemap.h"

#include <stddef.h>

// The entry for the code at `pc`, which is no module's: fills `place`. False: there is none. The
// caller holds code_lock.
HIDDEN bool tables_find(uintptr_t pc, struct codemap_place *place);

// What a callback has said of code there holds no longer: its memory has changed. Takes code_lock.
HIDDEN void tables_code_changed(uintptr_t at, size_t bytes);
