// minidebug: the symbol table that some distributions put, compressed, into .gnu_debugdata.
#pragma once

#include "symbols/object.h"

// The ELF file inside `object`'s .gnu_debugdata. NULL without one; NULL with *err set
// (err->kind != ERR_NONE) if it is damaged or grows beyond all measure. The caller closes it.
struct object *minidebug_open(const struct object *object, struct err *err);
