// python_layout: where the structs of an interpreter of CPython have what is read of them.
//
// They are the interpreter's own, and differ between versions; in one version (3.11) they stay as
// they are. Of each that is known there is a table here, and what the interpreter's code and data
// say of themselves is held against it before anything is read. Linux on x86-64.
#pragma once

#include "wire/compiler.h"

#include <stdbool.h>
#include <stdint.h>

struct scope_object;

// Offsets in the interpreter's structs: 64 bits, as it is built for users.
struct python_layout {
	uint16_t version; // 0x030b
	// _PyRuntimeState. `main` is another one than `head` if there are several interpreters.
	uint16_t finalizing, head, main;
	uint16_t current; // the thread state that has the GIL; 0: there is no such word
	uint16_t key;     // autoTSSkey: is it made; the pthread_key_t
	// PyThreadState. `ident` is pthread_self() of its thread.
	uint16_t ident;
	uint16_t innermost; // its frame, or where the frame is:
	uint16_t through;   // a struct between both has it here; PYTHON_DIRECT: there is none
	// A frame. By `is_entry` it is seen whether it is the first of its evaluator.
	uint16_t code, previous, instruction, is_entry;
	uint8_t entry_mask, entry_value;
	bool entry_apart;                // those are frames of no function, beside all others
	bool offsets;                    // the instruction is 32 bits: an offset into the code
	uint16_t first_line, file;       // PyCodeObject
	uint16_t name;                   // qualified, from 3.11 on
	uint16_t lines;                  // 3.11: co_linetable; before: co_lnotab
	uint16_t code_bytes;             // such an object without its instructions, which follow
	uint16_t text_ascii, text_other; // where characters are in a str
};

enum {
	PYTHON_DIRECT = 0xffff,
	PYTHON_LAST_WITHOUT_ADAPTIVE = 0x030a, // instructions are apart; lines are co_lnotab

	// The same in all of them.
	PYTHON_TYPE_BASIC_SIZE = 32, // tp_basicsize
	PYTHON_TYPE_FREE = 48,       // tp_dealloc
	PYTHON_OBJECT_TYPE = 8,      // bytes from an object to its type
	PYTHON_OBJECT_SIZE = 16,     // the length, of those that have one
	PYTHON_TEXT_HASH = 24,       // of names, which are interned, it is known
	PYTHON_TEXT_STATE = 32,      // of a str: how its characters are kept
	PYTHON_BYTES_TEXT = 32,      // of a bytes: where its bytes begin
};

// The interpreter that the object defines at `runtime`: writes its version, as in PY_VERSION_HEX,
// or 0 where that is not known. NULL: it is none of those that are known. What is returned is
// constant, and lives as long as we do.
HIDDEN const struct python_layout *python_layout_find(const struct scope_object *object,
						      uintptr_t runtime, uint32_t *version);
