// What a lane has said of the stack of Python frames is kept with it, outermost first, and an event
// says only what has changed. A frame is the same if its address, its code object and the
// instruction in it are, and if those outside of it are. Where nothing has changed, an event costs
// a comparison for each frame, and nothing is read anew but what is above a change.
//
// For example, entries are [main, work], and leaf() is called from work(). The walk begins at the
// innermost frame: leaf's is not known and is read; work's is entry 1 and holds, and so does main's
// outside of it. The edit is "keep 2, push 1": ten bytes, and four for leaf's number. If work() had
// gone on to another line before, entry 1 would not hold: both are read, and the edit is "keep 1,
// push 2".
//
// A code object that is freed leaves its address to another. Therefore the type's tp_dealloc counts
// (python_deaths), and after a death nothing is taken to be the same by its address: each code
// object is told by a stamp of what it has in it.
#include "recorder/python.h"

#include "recorder/cfi.h"
#include "recorder/client.h"
#include "recorder/codemap.h"
#include "recorder/insn.h"
#include "recorder/lane.h"
#include "recorder/notes.h"
#include "recorder/python_layout.h"
#include "recorder/scope_linux.h"
#include "recorder/text.h"

enum {
	PYTHON_DEPTH_MAX = 4096,
	PYTHON_PLACES = 1024,
	PYTHON_KNOWN = 4096, // places in code, of a lane
	PYTHON_CODES_FIRST = 16384,
	PYTHON_NAME_BYTES = 1000,
	PYTHON_LINES_MAX = 1 << 24, // bytes of a table of lines
	PYTHON_KEYS = 32,           // glibc has so many keys' words in the thread's block,
	PYTHON_KEY_FIRST = 0x318,   // here, 16 bytes each
};

// A frame that was read.
struct python_entry {
	uintptr_t frame;
	uintptr_t code;
	uintptr_t instruction;
	uint64_t stamp; // of the code object
	uint32_t id;    // with LANE_PYTHON_ENTRY; 0: is_nothing
	bool is_entry;
	bool is_nothing; // it is of no function that the program has
};

// A place in code that has a frame's number.
struct python_place {
	uintptr_t code;
	uintptr_t instruction;
	uint64_t stamp;
	uint32_t id;
};

// What a lane knows.
//
// 450 KiB, of which a lane's thread touches what its stacks need.
struct python_stack {
	uintptr_t thread; // its state, when it last had the GIL
	uint32_t deaths;  // of code objects, until it was read
	uint32_t depth;
	bool cut;                                      // there are more, outside of them
	uint16_t places[PYTHON_PLACES];                // of frames in entries, by address
	struct python_entry entries[PYTHON_DEPTH_MAX]; // outermost first
	struct python_entry fresh[PYTHON_DEPTH_MAX];   // innermost first
	struct python_place known[PYTHON_KNOWN];
};

struct python_code {
	uintptr_t code; // 0: free
	uint64_t stamp;
	uint32_t number;
};

bool python_on;

// Set once, when the interpreter is found.
static uintptr_t python_runtime;
static struct python_layout python_at; // its version's
static bool python_key_proven;         // PYTHON_KEY_FIRST is: the state with the GIL was there
static uintptr_t python_code_type;
static void (*python_free_code)(void *code); // of that type

// How many code objects were freed, each of which may have had frames that are known, and whose
// memory is another one's from here on.
static uint32_t python_deaths;

static uintptr_t python_hot, python_hot_end;
static uintptr_t python_cold, python_cold_end;

// Code objects by address; under code_lock, wiped in a forked child, which reports them again. The
// numbers go on.
static struct python_code *python_codes;
static uint32_t python_codes_room;
static uint32_t python_codes_used; // in the table
static uint32_t python_codes_count;

static inline uintptr_t python_word(uintptr_t at)
{
	return *(const volatile uintptr_t *)at;
}

static inline bool python_is_pointer(uintptr_t value)
{
	return value % sizeof(uintptr_t) == 0 && value >= KERNEL_PAGE &&
	       value <= UNWIND_ADDRESS_MAX;
}

// ---- The interpreter ------------------------------------------------------------------------

// The compiler puts what is seldom done elsewhere: a branch leads from the evaluator into the midst
// of another entry of .eh_frame.
//
// From the evaluator's first instruction to its end each jump is followed, until one leads out of
// it into a function that does not begin there.
static void python_find_cold(const uint8_t *eh_header)
{
	uintptr_t at = python_hot;
	struct insn insn;

	while (at < python_hot_end &&
	       insn_decode((const uint8_t *)at, python_hot_end - at, true, &insn)) {
		const uint8_t *opcode = (const uint8_t *)at + insn.opcode_at;
		uintptr_t start, end, target;
		int32_t distance;

		at += insn.length;
		if (!insn.relative_at || insn.relative_bytes != 4 || opcode[0] == 0xe8)
			continue;
		memcpy(&distance, (const void *)(at - insn.length + insn.relative_at), 4);
		target = at + (uintptr_t)(intptr_t)distance;
		if (target - python_hot < python_hot_end - python_hot ||
		    !cfi_extent(eh_header, target, &start, &end) || start == target)
			continue;
		python_cold = start;
		python_cold_end = end;
		return;
	}
}

// "3.11.2", and more where it is not a release.
//
// Of PY_VERSION_HEX: 0x030b02f0 is 3.11.2.
static void python_version_text(uint32_t version, char *text)
{
	uint32_t parts[3] = { version >> 24, version >> 16 & 255, version >> 8 & 255 };

	for (uint32_t i = 0; i < 3; i++) {
		if (i)
			*text++ = '.';
		if (parts[i] >= 100)
			*text++ = (char)('0' + parts[i] / 100);
		if (parts[i] >= 10)
			*text++ = (char)('0' + parts[i] / 10 % 10);
		*text++ = (char)('0' + parts[i] % 10);
	}
	*text = 0;
}

static void python_code_freed(void *code)
{
	__atomic_fetch_add(&python_deaths, 1, __ATOMIC_RELAXED);
	python_free_code(code);
}

// From here on code objects are freed through us.
//
// tp_dealloc of PyCode_Type is a word in writable memory.
static void python_watch_code(void)
{
	uintptr_t *free_code = (uintptr_t *)(python_code_type + PYTHON_TYPE_FREE);

	memcpy(&python_free_code, free_code, sizeof(python_free_code));
	*(volatile uintptr_t *)free_code = (uintptr_t)python_code_freed;
}

void python_leave(void)
{
	volatile uintptr_t *free_code = (uintptr_t *)(python_code_type + PYTHON_TYPE_FREE);

	if (python_on && *free_code == (uintptr_t)python_code_freed)
		*free_code = (uintptr_t)python_free_code;
}

// Once for a process: the first object that has both symbols. What is of a version that is not
// known is reported without a module, and its frames are not read.
void python_meet(const struct scope_object *object, uint32_t module, const uint8_t *eh_header)
{
	uintptr_t runtime = (uintptr_t)scope_find_data(object, "_PyRuntime");
	uintptr_t evaluator = (uintptr_t)scope_find(object, "_PyEval_EvalFrameDefault");
	const struct python_layout *layout;
	char text[16] = "";
	uint32_t version;
	bool known;

	if (!runtime || !evaluator || python_on)
		return;
	layout = python_layout_find(object, runtime, &version);
	if (version)
		python_version_text(version, text);
	known = layout && eh_header &&
		cfi_extent(eh_header, evaluator, &python_hot, &python_hot_end);
	notes_language(known ? module : 0, "python", text);
	if (!known)
		return;
	python_find_cold(eh_header);
	python_at = *layout;
	python_code_type = (uintptr_t)scope_find_data(object, "PyCode_Type");
	python_runtime = runtime;
	python_codes_room = PYTHON_CODES_FIRST;
	python_codes = recording_pages(sizeof(*python_codes) * python_codes_room, true);
	if (!python_codes)
		return;
	python_watch_code();
	python_on = true;
	client_read_frames();
}

bool python_is_evaluator(uintptr_t pc)
{
	return pc - python_hot < python_hot_end - python_hot ||
	       pc - python_cold < python_cold_end - python_cold;
}

// ---- Code objects ---------------------------------------------------------------------------

// A character as UTF-8. Returns its bytes.
static uint32_t python_put_utf8(char *at, uint32_t c)
{
	if (c < 0x80) {
		at[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		at[0] = (char)(0xc0 | c >> 6);
		at[1] = (char)(0x80 | (c & 63));
		return 2;
	}
	if (c < 0x10000) {
		at[0] = (char)(0xe0 | c >> 12);
		at[1] = (char)(0x80 | (c >> 6 & 63));
		at[2] = (char)(0x80 | (c & 63));
		return 3;
	}
	at[0] = (char)(0xf0 | (c >> 18 & 7));
	at[1] = (char)(0x80 | (c >> 12 & 63));
	at[2] = (char)(0x80 | (c >> 6 & 63));
	at[3] = (char)(0x80 | (c & 63));
	return 4;
}

// A str, up to PYTHON_NAME_BYTES, and a NUL. Only compact ones are names.
//
// PyASCIIObject and PyCompactUnicodeObject have the text after them. `kind` is how many bytes a
// character has: 1, 2 or 4. Bit 5 of the state says compact, bit 6 ASCII.
static void python_read_text(uintptr_t object, char *text)
{
	uint32_t state, kind, used = 0;
	uintptr_t length, at;

	text[0] = 0;
	if (!python_is_pointer(object))
		return;
	state = (uint32_t)python_word(object + PYTHON_TEXT_STATE);
	kind = state >> 2 & 7;
	length = python_word(object + PYTHON_OBJECT_SIZE);
	at = object + (state & 1 << 6 ? python_at.text_ascii : python_at.text_other);
	if (!(state & 1 << 5) || (kind != 1 && kind != 2 && kind != 4))
		return;
	for (uintptr_t i = 0; i < length && used + 4 <= PYTHON_NAME_BYTES; i++) {
		uint32_t c = kind == 1   ? ((const uint8_t *)at)[i]
			     : kind == 2 ? ((const uint16_t *)at)[i]
					 : ((const uint32_t *)at)[i];

		used += python_put_utf8(text + used, c);
	}
	text[used] = 0;
}

// Six bits a byte, the lowest first; bit 6 says that more come.
static uint32_t python_varint(const uint8_t **at, const uint8_t *end)
{
	uint32_t value = 0;

	for (uint32_t shift = 0; *at < end && shift < 32; shift += 6) {
		uint8_t byte = *(*at)++;

		value |= (uint32_t)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return value;
}

// The sign is in the lowest bit: 5 is -2, 4 is 2.
static int32_t python_signed(const uint8_t **at, const uint8_t *end)
{
	uint32_t value = python_varint(at, end);

	return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

// The line of the unit of code, by co_linetable (Objects/locations.md of CPython); 0: it has none.
//
// An entry is a byte 0x80 | kind << 3 | (units - 1), and then its numbers, which have bit 7 clear.
// A unit is two bytes of code. Kinds 10 to 12 are a line that is 0 to 2 further, 13 and 14 have the
// step as a number, 15 is no line.
static uint32_t python_line_adaptive(const uint8_t *at, const uint8_t *end, uintptr_t unit,
				     uint32_t line)
{
	uintptr_t units = 0;

	while (at < end) {
		uint8_t head = *at++, kind = head >> 3 & 15;

		if (kind == 13 || kind == 14)
			line += (uint32_t)python_signed(&at, end);
		else if (kind >= 10 && kind <= 12)
			line += kind - 10u;
		units += (head & 7u) + 1;
		if (units > unit)
			return kind == 15 ? 0 : line;
		while (at < end && !(*at & 0x80)) // the columns
			at++;
	}
	return 0;
}

// By co_lnotab (Objects/lnotab_notes.txt): steps of bytes and lines.
//
// A step of lines is signed: 0x80 ^ and - make -128 to 127 of a byte.
static uint32_t python_line_by_steps(const uint8_t *at, const uint8_t *end, uintptr_t byte,
				     uint32_t line)
{
	uintptr_t bytes = 0;

	for (; at + 1 < end; at += 2) {
		bytes += at[0];
		if (bytes > byte)
			break;
		line += (uint32_t)(at[1] ^ 0x80) - 0x80u;
	}
	return line;
}

// `instruction` is an address in the code object or, in old versions, an offset (python_layout.h).
static uint32_t python_line(uintptr_t code, uintptr_t instruction)
{
	uintptr_t lines = python_word(code + python_at.lines);
	const uint8_t *at = (const uint8_t *)lines + PYTHON_BYTES_TEXT;
	uintptr_t size = python_word(lines + PYTHON_OBJECT_SIZE);
	uintptr_t first = python_at.offsets ? 0 : code + python_at.code_bytes;
	uint32_t line = (uint32_t)python_word(code + python_at.first_line);

	if (instruction < first || (uint32_t)instruction == UINT32_MAX) // it has not begun yet
		return line;
	if (size > PYTHON_LINES_MAX)
		return 0;
	if (python_at.offsets)
		return python_line_by_steps(at, at + size, instruction, line);
	return python_line_adaptive(at, at + size, (instruction - first) / 2, line);
}

// Open addressing; the table is never more than half full. A free place if the object is not known.
static struct python_code *python_find_code(struct python_code *codes, uint32_t room,
					    uintptr_t code)
{
	uint32_t at = (uint32_t)((uint64_t)code * 0x9e3779b97f4a7c15u >> 32) & (room - 1);

	while (codes[at].code && codes[at].code != code)
		at = (at + 1) & (room - 1);
	return &codes[at];
}

// False: there is no memory, and no further code object gets a number.
static bool python_grow_codes(void)
{
	uint32_t room = python_codes_room * 2;
	struct python_code *codes = recording_pages(sizeof(*codes) * room, true);

	if (!codes)
		return false;
	for (uint32_t i = 0; i < python_codes_room; i++) {
		if (python_codes[i].code)
			*python_find_code(codes, room, python_codes[i].code) = python_codes[i];
	}
	recording_give_back(python_codes, sizeof(*codes) * python_codes_room);
	python_codes = codes;
	python_codes_room = room;
	return true;
}

// The first and the last word of so many bytes.
static inline uint64_t python_ends(uintptr_t at, uintptr_t size)
{
	uint64_t first = 0, last = 0;

	if (likely(size >= 8)) {
		memcpy(&first, (const void *)at, 8);
		memcpy(&last, (const void *)(at + size - 8), 8);
	}
	return (first ^ size) * 0xff51afd7ed558ccdu + last * 0xc4ceb9fe1a85ec53u;
}

// What tells a code object from another one that was at its address: all that it refers to may be
// at the same addresses again, so it is by contents, too.
//
static inline uint64_t python_stamp(uintptr_t code)
{
	uintptr_t name = python_word(code + python_at.name);
	uintptr_t file = python_word(code + python_at.file);
	uintptr_t lines = python_word(code + python_at.lines);

	return (python_word(code + python_at.first_line) ^ code << 1) * 0x9e3779b97f4a7c15u +
	       (python_word(name + PYTHON_TEXT_HASH) ^ name) * 0xbf58476d1ce4e5b9u +
	       (file ^ lines << 7) * 0x94d049bb133111ebu +
	       python_ends(file + python_at.text_ascii, python_word(file + PYTHON_OBJECT_SIZE)) +
	       3 * python_ends(lines + PYTHON_BYTES_TEXT, python_word(lines + PYTHON_OBJECT_SIZE));
}

// The number of a code object, which is reported when it is another one than was there before; 0:
// there is no room.
static uint32_t python_number(uintptr_t code, uint64_t stamp)
{
	static char name[PYTHON_NAME_BYTES + 8], file[PYTHON_NAME_BYTES + 8]; // under the lock
	struct python_code seen = { .code = code, .stamp = stamp };
	struct python_code *known;

	if (python_codes_used >= python_codes_room / 2 && !python_grow_codes())
		return 0;
	known = python_find_code(python_codes, python_codes_room, code);
	if (known->code && known->stamp == stamp)
		return known->number;
	python_codes_used += !known->code;
	seen.number = ++python_codes_count;
	*known = seen;
	python_read_text(python_word(code + python_at.name), name);
	python_read_text(python_word(code + python_at.file), file);
	notes_code(seen.number, name, file);
	return seen.number;
}

// A Python frame is a frame of the segment like one of machine code, with the number of its code
// object in the upper 32 bits of its address, and the line in the lower.
static COLD uint32_t python_make_frame(const struct python_entry *entry)
{
	uint64_t signals = kernel_block_signals();
	uint32_t number, id = 0;

	recording_lock(&recording_state->code_lock);
	number = python_number(entry->code, entry->stamp);
	if (number)
		id = codemap_frame((uintptr_t)number << 32 |
					   python_line(entry->code, entry->instruction),
				   0, SEGMENT_FRAME_PYTHON);
	recording_unlock(&recording_state->code_lock);
	kernel_restore_signals(signals);
	return id;
}

// ---- Frames ---------------------------------------------------------------------------------

// Direct-mapped by instruction and code. In a loop the same few places come again, and nothing is
// locked for them.
static uint32_t python_frame(struct python_stack *stack, const struct python_entry *entry)
{
	uintptr_t hash = (entry->instruction >> 1 ^ entry->code >> 4) % PYTHON_KNOWN;
	struct python_place *place = &stack->known[hash];

	if (likely(place->code == entry->code && place->instruction == entry->instruction &&
		   place->stamp == entry->stamp))
		return place->id;
	*place = (struct python_place){ entry->code, entry->instruction, entry->stamp,
					python_make_frame(entry) };
	return place->id;
}

// Whether the state is this thread's, as it says itself. It may be another thread's, freed and
// unmapped in this moment, so that the kernel reads it: in a sealed process none is.
static COLD bool python_belongs(uintptr_t thread)
{
	uintptr_t ident = 0;
	struct {
		void *base;
		uintptr_t bytes;
	} here = { &ident, sizeof(ident) },
	  there = { (void *)(thread + python_at.ident), sizeof(ident) };

	return kernel(__NR_process_vm_readv, kernel_pid, &here, 1, &there, 1, 0) ==
		       (long)sizeof(ident) &&
	       ident == kernel_thread_block();
}

// The state that the interpreter keeps for this thread in its pthread_setspecific(): it is there
// until the thread itself ends it. 0: none, or the word is elsewhere in this C library.
static inline uintptr_t python_own(void)
{
	uint64_t key = python_word(python_runtime + python_at.key); // is it made, and which

	if (unlikely((uint32_t)key != 1) || unlikely(key >> 32 >= PYTHON_KEYS))
		return 0;
	return python_word(kernel_thread_block() + PYTHON_KEY_FIRST + 16 * (key >> 32));
}

// Of a thread whose own state is not the one with the GIL: of a further interpreter, of a C library
// that keeps such words elsewhere, or without the GIL. When the interpreter ends, it frees the
// states of others.
static COLD uintptr_t python_thread_apart(struct python_stack *stack, uintptr_t current,
					  uintptr_t own)
{
	bool several = python_word(python_runtime + python_at.head) !=
		       python_word(python_runtime + python_at.main);

	if (current && (several || !python_key_proven) && python_belongs(current)) {
		stack->thread = current;
		return current;
	}
	if (python_word(python_runtime + python_at.finalizing))
		return 0;
	if (python_key_proven && (!several || stack->thread == own))
		return own;
	return stack->thread && python_belongs(stack->thread) ? stack->thread : 0;
}

// From 3.12 on no word says who has the GIL; what the thread keeps is its state, whichever
// interpreter's. Another thread that ends the interpreter may free it.
static COLD uintptr_t python_thread_kept(struct python_stack *stack, uintptr_t own)
{
	uintptr_t ends = python_word(python_runtime + python_at.finalizing);

	if (!own || (ends && ends != own) || (!python_key_proven && !python_belongs(own)))
		return 0;
	python_key_proven = true;
	stack->thread = own;
	return own;
}

// The state of this thread, or 0. No state that may be another thread's is read.
static inline uintptr_t python_thread(struct python_stack *stack)
{
	uintptr_t own = python_own(), current;

	if (!python_at.current) {
		if (likely(own == stack->thread) &&
		    likely(!python_word(python_runtime + python_at.finalizing)))
			return own;
		return python_thread_kept(stack, own);
	}
	current = python_word(python_runtime + python_at.current);
	if (unlikely(!own || own != current))
		return python_thread_apart(stack, current, own);
	python_key_proven = true;
	stack->thread = own;
	return own;
}

static inline bool python_is_entry(uintptr_t frame)
{
	return (*(const volatile uint8_t *)(frame + python_at.is_entry) & python_at.entry_mask) ==
	       python_at.entry_value;
}

static inline uintptr_t python_instruction(uintptr_t frame)
{
	uintptr_t word = python_word(frame + python_at.instruction);

	return python_at.offsets ? (uint32_t)word : word;
}

// Whether the frame is what was read.
static inline bool python_holds(const struct python_entry *entry)
{
	return python_word(entry->frame + python_at.code) == entry->code &&
	       python_instruction(entry->frame) == entry->instruction &&
	       python_is_entry(entry->frame) == entry->is_entry;
}

// Zero if the frame of `entry` is called from that outside of it, which is what it was.
static inline uintptr_t python_differs(const struct python_entry *entry)
{
	const struct python_entry *outer = entry - 1;

	return (python_word(entry->frame + python_at.previous) ^ outer->frame) |
	       (python_word(outer->frame + python_at.code) ^ outer->code) |
	       (python_instruction(outer->frame) ^ outer->instruction) |
	       (uintptr_t)(python_is_entry(outer->frame) ^ outer->is_entry);
}

// Whether all outside of entry `at`, which holds, are what they were. Each is looked at only when
// it is known that the one inside of it leads there.
static inline bool python_outer_hold(const struct python_stack *stack, uint32_t at)
{
	const struct python_entry *entry = &stack->entries[at], *end = stack->entries;

	for (; entry > end; entry--) {
		if (unlikely(python_differs(entry)))
			return false;
	}
	return python_word(entry->frame + python_at.previous) == 0;
}

// Between a class and its __init__() the interpreter has code of its own, from 3.12 on: without a
// name (3.12), or with one that is its file's name, too, and no line.
static bool python_is_shim(uintptr_t code)
{
	uintptr_t name = python_word(code + python_at.name);

	return !name || (name == python_word(code + python_at.file) &&
			 !(uint32_t)python_word(code + python_at.first_line));
}

// False: it is not a frame, and nothing here is what it was taken for.
static bool python_read(uintptr_t frame, struct python_entry *entry)
{
	if (unlikely(!python_is_pointer(frame)))
		return false;
	entry->frame = frame;
	entry->code = python_word(frame + python_at.code);
	entry->instruction = python_instruction(frame);
	entry->is_entry = python_is_entry(frame);
	entry->is_nothing = entry->is_entry && python_at.entry_apart;
	if (entry->is_nothing)
		return true;
	if (unlikely(!python_is_pointer(entry->code)) ||
	    unlikely(python_word(entry->code + PYTHON_OBJECT_TYPE) != python_code_type))
		return false;
	entry->is_nothing = python_is_shim(entry->code);
	return true;
}

// Walk outwards until one of the `top` outermost that are known is met. Returns the entries that
// stay; *count fresh ones are inside of them. *cut: there are more than are read.
static uint32_t python_walk(struct python_stack *stack, uintptr_t frame, uint32_t top,
			    uint32_t *count, bool *cut)
{
	*cut = false;
	for (*count = 0; frame && *count < PYTHON_DEPTH_MAX; ++*count) {
		uint32_t at = stack->places[frame >> 4 & (PYTHON_PLACES - 1)];

		if (at < top && stack->entries[at].frame == frame &&
		    python_holds(&stack->entries[at])) {
			if (likely(python_outer_hold(stack, at)))
				return at + 1;
			top = 0;
		}
		if (!python_read(frame, &stack->fresh[*count]))
			return 0;
		frame = python_word(frame + python_at.previous);
	}
	*cut = frame != 0;
	return 0;
}

// The number of a frame that was read. `before`: what was there, if no code object was freed since.
static uint32_t python_describe(struct python_stack *stack, struct python_entry *entry,
				const struct python_entry *before)
{
	uint32_t id = 0;

	if (before && before->frame == entry->frame && before->code == entry->code)
		entry->stamp = before->stamp; // it has gone on
	else if (!entry->is_nothing)
		entry->stamp = python_stamp(entry->code);
	if (!entry->is_nothing)
		id = python_frame(stack, entry);
	return id | (entry->is_entry ? LANE_PYTHON_ENTRY : 0);
}

// Put the fresh ones on top of `join` entries. `anew`: code objects were freed. Returns how many
// frames are the same as before.
static uint32_t python_put(struct python_stack *stack, uint32_t join, uint32_t count, bool anew)
{
	uint32_t same = join;

	for (uint32_t i = 0; i < count; i++) {
		struct python_entry *entry = &stack->fresh[count - 1 - i];
		uint32_t at = join + i;
		struct python_entry *before = at < stack->depth ? &stack->entries[at] : NULL;

		entry->id = python_describe(stack, entry, anew ? NULL : before);
		if (same == at && before && before->id == entry->id)
			same++;
		stack->entries[at] = *entry;
		stack->places[entry->frame >> 4 & (PYTHON_PLACES - 1)] = (uint16_t)at;
	}
	return same;
}

// Ten bytes of head, and four for each frame that was pushed. If room cannot be had, the edit is
// lost with the rest: the recording ends then.
static void python_put_edit(struct lane *lane, const struct python_stack *stack, uint32_t keep)
{
	uint32_t push = stack->depth - keep;
	uint16_t head[5] = { LANE_EXTRA, LANE_EXTRA_PYTHON, (uint16_t)(4 + 4 * push),
			     (uint16_t)(keep | (stack->cut ? LANE_PYTHON_CUT : 0)),
			     (uint16_t)push };
	uint8_t *start, *at;

	if (lane->head + sizeof(head) + 4 * (uint64_t)push + 2 * LANE_ROOM > lane->room &&
	    !lane_wait_room(lane, sizeof(head) + 4 * (uint64_t)push + LANE_ROOM))
		return;
	start = at = lane_at(lane, lane->head);
	memcpy(at, head, sizeof(head));
	at += sizeof(head);
	for (uint32_t i = keep; i < stack->depth; i++, at += 4)
		memcpy(at, &stack->entries[i].id, 4);
	lane_publish(lane, start, at);
}

// The innermost frame; 0: none.
static inline uintptr_t python_innermost(struct python_stack *stack)
{
	uintptr_t thread = python_thread(stack), word;

	if (unlikely(!thread))
		return 0;
	word = python_word(thread + python_at.innermost);
	if (python_at.through == PYTHON_DIRECT)
		return word;
	return likely(python_is_pointer(word)) ? python_word(word + python_at.through) : 0;
}

bool python_is_same(void)
{
	struct python_stack *stack = lane_get_mine()->python;
	const struct python_entry *top;
	uintptr_t frame;

	if (unlikely(!stack) || unlikely(stack->deaths != python_deaths))
		return false;
	frame = python_innermost(stack);
	if (unlikely(!stack->depth))
		return !frame;
	top = &stack->entries[stack->depth - 1];
	return top->frame == frame && python_holds(top) &&
	       python_outer_hold(stack, stack->depth - 1);
}

// `keep` is 0 where `cut` changed: a reader has to take the stack as a whole then, as what is
// outermost is another frame.
void python_write(struct lane *lane)
{
	struct python_stack *stack = lane->python;
	uint32_t join, count, keep, deaths;
	uintptr_t innermost;
	bool cut, anew;

	if (unlikely(!stack)) {
		lane->python = stack = recording_pages(sizeof(*stack), true);
		if (!stack)
			return;
	}
	innermost = python_innermost(stack);
	deaths = __atomic_load_n(&python_deaths, __ATOMIC_RELAXED);
	anew = deaths != stack->deaths;
	stack->deaths = deaths;
	join = python_walk(stack, innermost, anew ? 0 : stack->depth, &count, &cut);
	if (likely(!count && join == stack->depth))
		return;
	if (join + count > PYTHON_DEPTH_MAX)
		join = python_walk(stack, innermost, 0, &count, &cut);
	keep = python_put(stack, join, count, anew);
	if (keep == join + count && keep == stack->depth && cut == stack->cut)
		return;
	if (cut != stack->cut)
		keep = 0;
	stack->depth = join + count;
	stack->cut = cut;
	python_put_edit(lane, stack, keep);
}
