// rust_text: what both kinds of Rust names need to print: characters in UTF-8, and identifiers
// in the encodings of each kind.
#pragma once

#include "base/str.h"

// Add one character as UTF-8. False if there is no such character.
bool rust_text_add_char(struct str *out, uint32_t code);

// Add a legacy identifier: $LT$ is <, $u20$ a space, ".." is "::".
void rust_text_add_legacy(struct str *out, const char *text, size_t length);

// Add an identifier in Rust's punycode. False if it is broken.
bool rust_text_add_punycode(struct str *out, const char *text, size_t length);
