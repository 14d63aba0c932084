// terminal: what our standard streams are, and how they are to behave.
#pragma once

#include <stdbool.h>

// Is standard output a terminal?
bool terminal_is(void);

// May colours be written to it?
bool terminal_has_colours(void);

// Its columns; 0: not known.
unsigned terminal_columns(void);

// What we write is written as it is; and who writes to a pipe that nobody reads any more ends
// quietly, also where our parent ignores such signals. Once, at the start.
void terminal_begin(bool keep_signals);
