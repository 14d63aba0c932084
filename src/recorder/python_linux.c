#include "recorder/python.h"

#include "recorder/cfi.h"
#include "recorder/client.h"
#include "recorder/codemap.h"
#include "recorder/insn.h"
#include "recorder/lane.h"
#include "recorder/notes.h"
#include "recorder/scope_linux.h"
#include "recorder/text.h"

// Offsets in the interpreter's structs: 3.11, 64 bits, as it is built for users.
enum {
	PYTHON_RUNTIME_FINALIZING = 24, // _PyRuntimeState
	PYTHON_RUNTIME_HEAD = 40,       // interpreters.head
	PYTHON_RUNTIME_MAIN = 48,       // .main: another one, if there are several
	PYTHON_RUNTIME_CURRENT = 576,   // gilstate.tstate_current
	PYTHON_RUNTIME_KEY = 592,       // gilstate.autoTSSkey: is it made; the pthread_key_t
	PYTHON_THREAD_CFRAME = 56,      // PyThreadState
	PYTHON_THREAD_IDENT = 152,      // pthread_self() of its thread
	PYTHON_CFRAME_FRAME = 8,
	PYTHON_FRAME_CODE = 32, // _PyInterpreterFrame
	PYTHON_FRAME_PREVIOUS = 48,
	PYTHON_FRAME_INSTRUCTION = 56,
	PYTHON_FRAME_IS_ENTRY = 68,
	PYTHON_CODE_FIRST_LINE = 72,
	PYTHON_CODE_FILE = 112,
	PYTHON_CODE_NAME = 128, // qualified
	PYTHON_CODE_LINES = 136,
	PYTHON_CODE_BYTES = 184, // the instructions; so much a code object has without them
	PYTHON_TYPE_BASIC_SIZE = 32,
	PYTHON_OBJECT_TYPE = 8,
	PYTHON_OBJECT_SIZE = 16,
	PYTHON_TEXT_HASH = 24, // of names, which are interned, it is known
	PYTHON_BYTES_TEXT = 32,
	PYTHON_TEXT_STATE = 32,
	PYTHON_TEXT_ASCII = 48,
	PYTHON_TEXT_OTHER = 72,
};

enum {
	PYTHON_VERSION = 0x030b,
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
	uintptr_t lines; // of the code object: another one at its address has mostly another
	uint64_t stamp;  // of the code object
	uint32_t id;     // with LANE_PYTHON_ENTRY
	bool is_entry;
};

// A place in code that has a frame's number.
struct python_place {
	uintptr_t code;
	uintptr_t instruction;
	uint64_t stamp;
	uint32_t id;
};

// What a lane knows.
struct python_stack {
	uintptr_t thread; // its state, when it last had the GIL
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
static bool python_key_proven; // PYTHON_KEY_FIRST is: the state with the GIL was there
static uintptr_t python_code_type;
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

// Whether _PyThreadState_UncheckedGet reads the word that we would read: mov distance(%rip),%rax,
// and in a library, where that is the address of _PyRuntime, mov offset(%rax),%rax; ret.
static bool python_has_layout(uintptr_t getter, uintptr_t runtime)
{
	static const uint8_t landing[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	static const uint8_t load[] = { 0x48, 0x8b, 0x05 }, load_more[] = { 0x48, 0x8b, 0x80 };
	const uint8_t *code = (const uint8_t *)getter;
	int32_t distance, offset;
	uintptr_t at;

	if (!getter)
		return false;
	if (memcmp(code, landing, sizeof(landing)) == 0)
		code += sizeof(landing);
	if (memcmp(code, load, sizeof(load)) != 0)
		return false;
	memcpy(&distance, code + 3, sizeof(distance));
	at = (uintptr_t)code + 7 + (uintptr_t)(intptr_t)distance;
	if (code[7] == 0xc3)
		return at == runtime + PYTHON_RUNTIME_CURRENT;
	memcpy(&offset, code + 10, sizeof(offset));
	return memcmp(code + 7, load_more, sizeof(load_more)) == 0 && code[14] == 0xc3 &&
	       offset == PYTHON_RUNTIME_CURRENT && python_word(at) == runtime;
}

// The compiler puts what is seldom done elsewhere: a branch leads from the evaluator into the midst
// of another entry of .eh_frame.
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

void python_meet(const struct scope_object *object, uint32_t module, const uint8_t *eh_header)
{
	uintptr_t runtime = (uintptr_t)scope_find_data(object, "_PyRuntime");
	const unsigned long *version = scope_find_data(object, "Py_Version");
	uintptr_t type = (uintptr_t)scope_find_data(object, "PyCode_Type");
	uintptr_t evaluator = (uintptr_t)scope_find(object, "_PyEval_EvalFrameDefault");
	char text[16] = "";
	bool known;

	if (!runtime || !evaluator || python_on)
		return;
	if (version)
		python_version_text((uint32_t)*version, text);
	known = version && *version >> 16 == PYTHON_VERSION && type && eh_header &&
		python_has_layout((uintptr_t)scope_find(object, "_PyThreadState_UncheckedGet"),
				  runtime) &&
		python_word(type + PYTHON_TYPE_BASIC_SIZE) == PYTHON_CODE_BYTES &&
		cfi_extent(eh_header, evaluator, &python_hot, &python_hot_end);
	notes_language(known ? module : 0, "python", text);
	if (!known)
		return;
	python_find_cold(eh_header);
	python_code_type = type;
	python_runtime = runtime;
	python_codes_room = PYTHON_CODES_FIRST;
	python_codes = recording_pages(sizeof(*python_codes) * python_codes_room, true);
	python_on = python_codes != NULL;
	if (python_on)
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
	at = object + (state & 1 << 6 ? PYTHON_TEXT_ASCII : PYTHON_TEXT_OTHER);
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

static int32_t python_signed(const uint8_t **at, const uint8_t *end)
{
	uint32_t value = python_varint(at, end);

	return value & 1 ? -(int32_t)(value >> 1) : (int32_t)(value >> 1);
}

// The line of the instruction, by co_linetable (Objects/locations.md of CPython); 0: it has none.
static uint32_t python_line(uintptr_t code, uintptr_t instruction)
{
	uintptr_t lines = python_word(code + PYTHON_CODE_LINES);
	const uint8_t *at = (const uint8_t *)lines + PYTHON_BYTES_TEXT;
	uintptr_t size = python_word(lines + PYTHON_OBJECT_SIZE);
	uintptr_t unit = (instruction - code - PYTHON_CODE_BYTES) / 2, units = 0;
	uint32_t line = (uint32_t)python_word(code + PYTHON_CODE_FIRST_LINE);
	const uint8_t *end;

	if (instruction < code + PYTHON_CODE_BYTES) // it has not begun yet
		return line;
	if (size > PYTHON_LINES_MAX)
		return 0;
	end = at + size;
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

static struct python_code *python_find_code(struct python_code *codes, uint32_t room,
					    uintptr_t code)
{
	uint32_t at = (uint32_t)((uint64_t)code * 0x9e3779b97f4a7c15u >> 32) & (room - 1);

	while (codes[at].code && codes[at].code != code)
		at = (at + 1) & (room - 1);
	return &codes[at];
}

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
static inline uint64_t python_stamp(uintptr_t code)
{
	uintptr_t name = python_word(code + PYTHON_CODE_NAME);
	uintptr_t file = python_word(code + PYTHON_CODE_FILE);
	uintptr_t lines = python_word(code + PYTHON_CODE_LINES);

	return (python_word(code + PYTHON_CODE_FIRST_LINE) ^ code << 1) * 0x9e3779b97f4a7c15u +
	       (python_word(name + PYTHON_TEXT_HASH) ^ name) * 0xbf58476d1ce4e5b9u +
	       (file ^ lines << 7) * 0x94d049bb133111ebu +
	       python_ends(file + PYTHON_TEXT_ASCII, python_word(file + PYTHON_OBJECT_SIZE)) +
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
	python_read_text(python_word(code + PYTHON_CODE_NAME), name);
	python_read_text(python_word(code + PYTHON_CODE_FILE), file);
	notes_code(seen.number, name, file);
	return seen.number;
}

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
	  there = { (void *)(thread + PYTHON_THREAD_IDENT), sizeof(ident) };

	return kernel(__NR_process_vm_readv, kernel_pid, &here, 1, &there, 1, 0) ==
		       (long)sizeof(ident) &&
	       ident == kernel_thread_block();
}

// The state that the interpreter keeps for this thread in its pthread_setspecific(): it is there
// until the thread itself ends it. 0: none, or the word is elsewhere in this C library.
static inline uintptr_t python_own(void)
{
	uint64_t key = python_word(python_runtime + PYTHON_RUNTIME_KEY); // is it made, and which

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
	bool several = python_word(python_runtime + PYTHON_RUNTIME_HEAD) !=
		       python_word(python_runtime + PYTHON_RUNTIME_MAIN);

	if (current && (several || !python_key_proven) && python_belongs(current)) {
		stack->thread = current;
		return current;
	}
	if (python_word(python_runtime + PYTHON_RUNTIME_FINALIZING))
		return 0;
	if (python_key_proven && (!several || stack->thread == own))
		return own;
	return stack->thread && python_belongs(stack->thread) ? stack->thread : 0;
}

// The state of this thread, or 0. No state that may be another thread's is read.
static inline uintptr_t python_thread(struct python_stack *stack)
{
	uintptr_t current = python_word(python_runtime + PYTHON_RUNTIME_CURRENT);
	uintptr_t own = python_own();

	if (unlikely(!own || own != current))
		return python_thread_apart(stack, current, own);
	python_key_proven = true;
	stack->thread = own;
	return own;
}

static inline bool python_is_entry(uintptr_t frame)
{
	return *(const uint8_t *)(frame + PYTHON_FRAME_IS_ENTRY) != 0;
}

// Whether the frame is what was read.
static inline bool python_holds(const struct python_entry *entry)
{
	return python_word(entry->frame + PYTHON_FRAME_CODE) == entry->code &&
	       python_word(entry->frame + PYTHON_FRAME_INSTRUCTION) == entry->instruction &&
	       python_word(entry->code + PYTHON_CODE_LINES) == entry->lines &&
	       python_is_entry(entry->frame) == entry->is_entry;
}

// Zero if the frame of `entry` is called from that outside of it, which is where it was. An
// instruction is of one code object.
static inline uintptr_t python_differs(const struct python_entry *entry)
{
	const struct python_entry *outer = entry - 1;

	return (python_word(entry->frame + PYTHON_FRAME_PREVIOUS) ^ outer->frame) |
	       (python_word(outer->frame + PYTHON_FRAME_INSTRUCTION) ^ outer->instruction) |
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
	return python_word(entry->frame + PYTHON_FRAME_PREVIOUS) == 0;
}

// False: it is not a frame, and nothing here is what it was taken for.
static bool python_read(uintptr_t frame, struct python_entry *entry)
{
	if (unlikely(!python_is_pointer(frame)))
		return false;
	entry->frame = frame;
	entry->code = python_word(frame + PYTHON_FRAME_CODE);
	if (unlikely(!python_is_pointer(entry->code)) ||
	    unlikely(python_word(entry->code + PYTHON_OBJECT_TYPE) != python_code_type))
		return false;
	entry->instruction = python_word(frame + PYTHON_FRAME_INSTRUCTION);
	entry->lines = python_word(entry->code + PYTHON_CODE_LINES);
	entry->is_entry = python_is_entry(frame);
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
		frame = python_word(frame + PYTHON_FRAME_PREVIOUS);
	}
	*cut = frame != 0;
	return 0;
}

// Put the fresh ones on top of `join` entries. Returns how many frames are the same as before.
static uint32_t python_put(struct python_stack *stack, uint32_t join, uint32_t count)
{
	uint32_t same = join;

	for (uint32_t i = 0; i < count; i++) {
		struct python_entry *entry = &stack->fresh[count - 1 - i];
		uint32_t at = join + i;

		if (at < stack->depth && stack->entries[at].frame == entry->frame &&
		    stack->entries[at].code == entry->code &&
		    stack->entries[at].lines == entry->lines)
			entry->stamp = stack->entries[at].stamp; // it has gone on
		else
			entry->stamp = python_stamp(entry->code);
		entry->id = python_frame(stack, entry) | (entry->is_entry ? LANE_PYTHON_ENTRY : 0);
		if (same == at && at < stack->depth && stack->entries[at].id == entry->id)
			same++;
		stack->entries[at] = *entry;
		stack->places[entry->frame >> 4 & (PYTHON_PLACES - 1)] = (uint16_t)at;
	}
	return same;
}

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
	start = at = lane->ring + (lane->head & lane->mask);
	memcpy(at, head, sizeof(head));
	at += sizeof(head);
	for (uint32_t i = keep; i < stack->depth; i++, at += 4)
		memcpy(at, &stack->entries[i].id, 4);
	lane_publish(lane, start, at);
}

// The innermost frame; 0: none.
static inline uintptr_t python_innermost(struct python_stack *stack)
{
	uintptr_t thread = python_thread(stack), cframe;

	if (unlikely(!thread))
		return 0;
	cframe = python_word(thread + PYTHON_THREAD_CFRAME);
	return likely(python_is_pointer(cframe)) ? python_word(cframe + PYTHON_CFRAME_FRAME) : 0;
}

bool python_is_same(void)
{
	struct python_stack *stack = lane_get_mine()->python;
	const struct python_entry *top;
	uintptr_t frame;

	if (unlikely(!stack))
		return false;
	frame = python_innermost(stack);
	if (unlikely(!stack->depth))
		return !frame;
	top = &stack->entries[stack->depth - 1];
	return top->frame == frame && python_holds(top) &&
	       python_outer_hold(stack, stack->depth - 1);
}

void python_write(struct lane *lane)
{
	struct python_stack *stack = lane->python;
	uint32_t join, count, keep;
	uintptr_t innermost;
	bool cut;

	if (unlikely(!stack)) {
		lane->python = stack = recording_pages(sizeof(*stack), true);
		if (!stack)
			return;
	}
	innermost = python_innermost(stack);
	join = python_walk(stack, innermost, stack->depth, &count, &cut);
	if (likely(!count && join == stack->depth))
		return;
	if (join + count > PYTHON_DEPTH_MAX)
		join = python_walk(stack, innermost, 0, &count, &cut);
	keep = python_put(stack, join, count);
	if (keep == join + count && keep == stack->depth && cut == stack->cut)
		return;
	if (cut != stack->cut)
		keep = 0;
	stack->depth = join + count;
	stack->cut = cut;
	python_put_edit(lane, stack, keep);
}
