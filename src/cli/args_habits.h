// args_habits: words that users of other tools type, and what they are called here.
//
// For example `tidemark leaks` and `tidemark report --print-leaks` are nothing of ours: the message
// says which command answers what was meant. A word that the command has is never looked up.
#pragma once

#include "cli/command.h"

// What to type in place of `word`, an option without its dashes (of `length` bytes), as it is put
// after "here: "; with `command` NULL the word stood where a command does. NULL: nothing is known.
// Static text.
const char *args_habits_instead(const struct command *command, const char *word, size_t length);
