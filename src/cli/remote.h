// remote: a trace of a database where the name of a file is expected.
//
//     clickhouse://HOST:PORT/DATABASE?trace=BEGINNING
//
// It is fetched into the user's caches once, and is a file like any other from then on: its index
// is beside it there. Each use asks the database which trace is meant.
#pragma once

#include "base/err.h"

#include <stdbool.h>

// Whether a word names such a trace.
bool remote_is(const char *word);

// The path of its file, which is kept until the program ends. NULL: *err says why.
const char *remote_fetch(const char *word, struct err *err);
