// keys: what a window's rows are grouped by, as words: "process,impact,stack".
#pragma once

#include "base/err.h"

#include <stddef.h>

// What a key is about. For example `process,stack` has a row for each process, and below it one for
// each of its stacks.
enum keys_key {
	KEYS_PROCESS,
	KEYS_LAYER,
	KEYS_HEAP,
	KEYS_THREAD, // the one that allocated
	KEYS_OWNER,  // whose memory it is, of the layer of virtual memory
	KEYS_MODULE, // of the first function that is no allocator wrapper
	KEYS_FUNCTION,
	KEYS_LINE, // that function's place in its source
	KEYS_STACK,
	KEYS_TAG,    // by a file of stack tags
	KEYS_IMPACT, // impacting, transient, persistent
	KEYS_TYPE,   // AIFI, AIFO, AOFI, AOFO
	KEYS_SIZE,
	KEYS_MARK,     // the phases between marks: each is a window of its own
	KEYS_LIFETIME, // single allocations
	KEYS_COUNT,
};

// In the order of nesting, the outermost first; each key at most once. None: the total alone.
struct keys {
	enum keys_key list[KEYS_COUNT];
	size_t count;
};

// Words separated by commas; "" and "none" are no key: one total. ERR_USAGE: an unknown word, with
// the nearest; one given twice; `lifetime` before others.
bool keys_parse(const char *text, struct keys *keys, struct err *err);

// The word of a key; whether it is among those. Never NULL; a literal.
const char *keys_word(enum keys_key key);
bool keys_has(const struct keys *keys, enum keys_key key);
