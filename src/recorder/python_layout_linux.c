// Where the structures of a Python interpreter have what a stack needs, by tables for the versions
// whose structures are known. A table is used only if the interpreter agrees: a code object has
// the size that the table says; two small functions of the runtime, whose first 64 bytes are
// looked at, read the words where the table has them; and from 3.13 on the runtime begins with a
// table of its own, which must be equal: word 5 of it, at byte 40, is the offset of the list of
// interpreters, and word 23 that of a thread's innermost frame.
//
// The version is a variable since 3.11 (0x030b04f0 is 3.11.4, of which the upper half, 0x030b,
// chooses the table). Before, it is a text that Py_GetVersion gives snprintf, found as the address
// that its code loads. What does not agree is not guessed: then there are no frames of Python.
#include "recorder/python_layout.h"

#include "recorder/scope_linux.h"
#include "recorder/text.h"

enum {
	PYTHON_CODE_SCANNED = 64, // bytes of a function
	// Words of _Py_DebugOffsets, with which _PyRuntime begins from 3.13 on.
	PYTHON_SAYS_THREADS_FREE = 2,
	PYTHON_SAYS_FINALIZING = 4,
	PYTHON_SAYS_HEAD = 5,
	PYTHON_SAYS_INNERMOST = 23,
	PYTHON_SAYS_IDENT = 24,
	PYTHON_SAYS_PREVIOUS = 29,
	PYTHON_SAYS_CODE = 30,
	PYTHON_SAYS_INSTRUCTION = 31,
	PYTHON_SAYS_ENTRY = 33,
	PYTHON_SAYS_FILE = 35,
	PYTHON_SAYS_NAME = 37,
	PYTHON_SAYS_LINES = 38,
	PYTHON_SAYS_FIRST_LINE = 39,
	PYTHON_SAYS_CODE_BYTES = 43,
};

static const struct python_layout python_layouts[] = {
	// An evaluator runs one frame, an object.
	{ .version = 0x0309,
	  .finalizing = 16,
	  .head = 32,
	  .main = 40,
	  .current = 568,
	  .key = 584,
	  .ident = 176,
	  .innermost = 24,
	  .through = PYTHON_DIRECT,
	  .code = 32,
	  .previous = 24,
	  .instruction = 104,
	  .offsets = true,
	  .first_line = 40,
	  .file = 104,
	  .name = 112,
	  .lines = 120,
	  .code_bytes = 176,
	  .text_ascii = 48,
	  .text_other = 72 },
	// One says of itself that it is the first.
	{ .version = 0x030b,
	  .finalizing = 24,
	  .head = 40,
	  .main = 48,
	  .current = 576,
	  .key = 592,
	  .ident = 152,
	  .innermost = 56,
	  .through = 8,
	  .code = 32,
	  .previous = 48,
	  .instruction = 56,
	  .is_entry = 68,
	  .entry_mask = 0xff,
	  .entry_value = 1,
	  .first_line = 72,
	  .file = 112,
	  .name = 128,
	  .lines = 136,
	  .code_bytes = 184,
	  .text_ascii = 48,
	  .text_other = 72 },
	// An evaluator's first frame is its own (FRAME_OWNED_BY_CSTACK).
	{ .version = 0x030c,
	  .finalizing = 24,
	  .head = 40,
	  .main = 48,
	  .key = 1544,
	  .ident = 136,
	  .innermost = 56,
	  .through = 0,
	  .code = 0,
	  .previous = 8,
	  .instruction = 56,
	  .is_entry = 70,
	  .entry_mask = 0xff,
	  .entry_value = 3,
	  .entry_apart = true,
	  .first_line = 68,
	  .file = 112,
	  .name = 128,
	  .lines = 136,
	  .code_bytes = 192,
	  .text_ascii = 40,
	  .text_other = 56 },
	{ .version = 0x030d,
	  .finalizing = 608,
	  .head = 632,
	  .main = 640,
	  .key = 2160,
	  .ident = 152,
	  .innermost = 72,
	  .through = PYTHON_DIRECT,
	  .code = 0,
	  .previous = 8,
	  .instruction = 56,
	  .is_entry = 70,
	  .entry_mask = 0xff,
	  .entry_value = 3,
	  .entry_apart = true,
	  .first_line = 68,
	  .file = 112,
	  .name = 128,
	  .lines = 136,
	  .code_bytes = 200,
	  .text_ascii = 40,
	  .text_other = 56 },
};

// ---- The version ----------------------------------------------------------------------------

// "3.9.18" as PY_VERSION_HEX; 0: it is no such text.
//
// For example "3.9.18" is 0x03091200.
static uint32_t python_layout_number(const char *text)
{
	uint32_t parts[3] = { 0 }, part = 0;

	for (uint32_t i = 0; i < 12; i++) {
		if (text[i] >= '0' && text[i] <= '9' && parts[part] < 100)
			parts[part] = parts[part] * 10 + (uint32_t)(text[i] - '0');
		else if (text[i] == '.' && i > 0 && part < 2)
			part++;
		else
			break;
	}
	return part == 2 && parts[0] == 3 ? parts[0] << 24 | parts[1] << 16 | parts[2] << 8 : 0;
}

// Before 3.11 the version is a text that Py_GetVersion() gives snprintf(): lea distance(%rip),%rcx,
// or mov $text,%ecx.
//
// 48 8d 0d is lea distance(%rip),%rcx, of 7 bytes: the fourth argument of snprintf. b9 is mov
// $text,%ecx, in a program that is not position-independent.
static uint32_t python_layout_scan_version(const struct scope_object *object)
{
	const uint8_t *code = scope_find(object, "Py_GetVersion");
	uintptr_t start, end;

	if (!code || !scope_span(object, &start, &end) || (uintptr_t)code < start ||
	    (uintptr_t)code > end - PYTHON_CODE_SCANNED)
		return 0;
	for (const uint8_t *at = code; at < code + PYTHON_CODE_SCANNED - 7; at++) {
		int32_t distance;
		uintptr_t text;
		uint32_t number;

		if (at[0] == 0x48 && at[1] == 0x8d && at[2] == 0x0d) {
			memcpy(&distance, at + 3, 4);
			text = (uintptr_t)at + 7 + (uintptr_t)(intptr_t)distance;
		} else if (at[0] == 0xb9) {
			memcpy(&distance, at + 1, 4);
			text = (uint32_t)distance;
		} else {
			continue;
		}
		number = text > start && text < end - 16 ? python_layout_number((char *)text) : 0;
		if (number)
			return number;
	}
	return 0;
}

// ---- Does it fit? ---------------------------------------------------------------------------

// Whether the function reads the runtime's word `offset`, or the second half of it: by its
// distance, by its address, or from a register that has the runtime's.
//
// 64 bytes of the function are searched for a number that would be the word's place. That finds it
// or not; it proves that a distribution has not changed the struct.
static bool python_layout_reads(const uint8_t *code, uintptr_t runtime, uint32_t offset)
{
	if (!code)
		return false;
	for (uint32_t i = 0; i < PYTHON_CODE_SCANNED; i++) {
		uint32_t value;

		memcpy(&value, code + i, 4);
		for (uint32_t half = 0; half <= 4; half += 4) {
			uintptr_t word = runtime + offset + half;
			uintptr_t next = (uintptr_t)code + i + 4;

			if (value == offset + half || value == word ||
			    next + (uintptr_t)(intptr_t)(int32_t)value == word ||
			    next + 1 + (uintptr_t)(intptr_t)(int32_t)value == word)
				return true;
		}
	}
	return false;
}

// What the interpreter says of itself, from 3.13 on.
//
// _Py_DebugOffsets: the interpreter publishes these for debuggers.
static bool python_layout_agrees(const struct python_layout *layout, uintptr_t runtime)
{
	const uint64_t *says = (const uint64_t *)runtime;

	return memcmp(says, "xdebugpy", 8) == 0 && !says[PYTHON_SAYS_THREADS_FREE] &&
	       says[PYTHON_SAYS_FINALIZING] == layout->finalizing &&
	       says[PYTHON_SAYS_HEAD] == layout->head &&
	       says[PYTHON_SAYS_INNERMOST] == layout->innermost &&
	       says[PYTHON_SAYS_IDENT] == layout->ident &&
	       says[PYTHON_SAYS_PREVIOUS] == layout->previous &&
	       says[PYTHON_SAYS_CODE] == layout->code &&
	       says[PYTHON_SAYS_INSTRUCTION] == layout->instruction &&
	       says[PYTHON_SAYS_ENTRY] == layout->is_entry &&
	       says[PYTHON_SAYS_FILE] == layout->file && says[PYTHON_SAYS_NAME] == layout->name &&
	       says[PYTHON_SAYS_LINES] == layout->lines &&
	       says[PYTHON_SAYS_FIRST_LINE] == layout->first_line &&
	       says[PYTHON_SAYS_CODE_BYTES] == layout->code_bytes;
}

// The size of a code object, and places that known functions read: if any differs nothing of this
// Python is read, which is said.
static bool python_layout_fits(const struct python_layout *layout,
			       const struct scope_object *object, uintptr_t runtime)
{
	uintptr_t type = (uintptr_t)scope_find_data(object, "PyCode_Type");
	const uint8_t *getter = scope_find(object, "_PyThreadState_UncheckedGet");
	const uint8_t *by_key = scope_find(object, "PyGILState_GetThisThreadState");

	return type && *(const uintptr_t *)(type + PYTHON_TYPE_BASIC_SIZE) == layout->code_bytes &&
	       (!layout->current || python_layout_reads(getter, runtime, layout->current)) &&
	       python_layout_reads(by_key, runtime, layout->key) &&
	       (layout->version < 0x030d || python_layout_agrees(layout, runtime));
}

// A version is as Py_Version has it (from 3.11 on): 0x030d01f0 is 3.13.1, and its upper half says
// which layout. Before that it is read from code.
const struct python_layout *python_layout_find(const struct scope_object *object, uintptr_t runtime,
					       uint32_t *version)
{
	const unsigned long *number = scope_find_data(object, "Py_Version");

	*version = number ? (uint32_t)*number : python_layout_scan_version(object);
	for (uint32_t i = 0; i < sizeof(python_layouts) / sizeof(*python_layouts); i++) {
		if (*version >> 16 == python_layouts[i].version)
			return python_layout_fits(&python_layouts[i], object, runtime)
				       ? &python_layouts[i]
				       : NULL;
	}
	return NULL;
}
