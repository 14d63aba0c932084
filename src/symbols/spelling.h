// spelling: types as compilers write them into DWARF's names, written as the demangler does.
//
// A name in DWARF, such as "pair<const long unsigned int, std::vector<char *> >", has a compiler's
// own order and words; a symbol's name is "pair<unsigned long const, std::vector<char*> >". What
// the text does not say stays as it is: arguments that were left out, the type of a number, the
// number of a lambda.
#pragma once

#include "base/str.h"

// Add the type in [text, text + length). What is in the brackets of a name is types, too.
void spelling_add_type(struct str *out, const char *text, size_t length);

// The demangler's name of a type of C's.
const char *spelling_base(const char *name);

// The next argument of a list such as "int, f<a, b>": from *at up to a comma that is in no bracket,
// or `end`; *at is then after it. False: there is none.
bool spelling_next(const char **at, const char *end, const char **argument, size_t *length);

// The brackets at the end of a name such as "f<int, a<b> >": what is inside. False: it has none.
bool spelling_arguments(const char *name, const char **inside, size_t *length);
