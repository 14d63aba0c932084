// For example, gcc has made of a program's own munmap:
//
//     401136: 48 89 de          mov %rbx,%rsi
//     401139: 4c 89 e7          mov %r12,%rdi
//     40113c: b8 0b 00 00 00    mov $11,%eax
//     401141: 0f 05             syscall
//     401143: 85 c0             test %eax,%eax
//
// `0f 05` is found by its bytes, and may be part of something else. So the function around it,
// whose extent .eh_frame knows, is decoded from its beginning: a `syscall` begins where an
// instruction begins. The last instructions before it that make up five bytes, here the one at
// 40113c, are moved to the thunk (patch_x64_linux.c), and a jump is put there. The `syscall` stays:
// calls that are not for us are made by it, so that a look where a call was made finds what it
// expects.
//
// Moved are only instructions that move values, and do the same anywhere. Where more than one is
// moved, no branch of the object may go to the second; where the function jumps by a table, which
// cannot be read, one alone is moved.
//
// Compilers that save bytes let several calls share one `syscall`, to which the others jump:
//
//     401190: b8 0a 00 00 00    mov $10,%eax
//     401195: eb aa             jmp 401141
//
// A jump to 401141 passes by what was put at 40113c. So there, and where nothing before can be
// moved, the `syscall` itself is moved with what follows it, if no branch goes in among these.
//
// The code is looked through in the file, and what is found there is looked at in memory: so the
// pages of code that the program never uses do not become resident. An object that is not in a file
// any more is left as it is.
//
// Most files have none, and a recording of many processes meets the same ones over and over: a file
// that was found to have none is noted in the clock page, and no process of the recording reads it
// again until it changes.
#include "recorder/patch_program_linux.h"

#include "recorder/cfi.h"
#include "recorder/elf.h"
#include "recorder/insn.h"
#include "recorder/kernel.h"
#include "recorder/late_linux.h"
#include "recorder/patch_linux.h"
#include "recorder/recording.h"
#include "recorder/scope_linux.h"
#include "recorder/text.h"

enum {
	PROGRAM_CODE_BYTES_MAX = 4 << 20, // of an object that is looked through
	PROGRAM_FUNCTION_BYTES_MAX = 1 << 20,
	PROGRAM_SITES_MAX = 128,
	PROGRAM_MOVED_MAX = 8, // instructions before a syscall that are remembered
	PROGRAM_VDSO = 33,     // AT_SYSINFO_EHDR
	PROGRAM_VDSO_BYTES_MAX = 16 << 10,
	PROGRAM_WINDOW_BYTES = 16 << 10,
	PROGRAM_OVERLAP_BYTES = 16,
	PROGRAM_JUMP_BYTES = PATCH_SITE_BYTES - PATCH_SYSCALL_BYTES,
};

// A `syscall`, and what a jump can take the place of.
struct program_site {
	uint8_t *start;     // of the instructions before it that can be moved; NULL: there are none
	uint8_t *call;      // the `syscall`
	const uint8_t *end; // of the function around it; NULL: what follows cannot be moved
	bool several;       // instructions before it are moved
	bool entered;       // a branch goes to the `syscall`
	bool unwanted;      // who comes there without a branch calls something else
};

static struct program_site program_sites[PROGRAM_SITES_MAX];
static uint32_t program_sites_count;

// What is known while a function is decoded.
struct program_walk {
	// Of the last instructions that may be moved, in a row: the newest is at count - 1.
	const uint8_t *starts[PROGRAM_MOVED_MAX];
	uint32_t count;
	uint32_t number; // that rax has been given; PATCH_ANY: it is not known
	bool table;      // it jumps by a register or memory
};

// Does it only move values, in whatever place it stands?
static bool program_may_move(const uint8_t *code, const struct insn *insn)
{
	uint8_t opcode = code[insn->opcode_at];

	if (insn->rip_at || insn->relative_at)
		return false;
	if ((opcode & 0xf0) == 0x50 || opcode == 0x6a) // push, pop
		return true;
	return opcode == 0x89 || opcode == 0x8b || opcode == 0x8d || // mov, lea
	       opcode == 0x63 || opcode == 0x31 || opcode == 0x33 || // movslq, xor
	       (opcode >= 0xb8 && opcode <= 0xbf) || opcode == 0xc7; // mov of a constant
}

// What rax is after the instruction, as far as that is simple.
static uint32_t program_number(const uint8_t *code, const struct insn *insn, uint32_t before)
{
	const uint8_t *opcode = code + insn->opcode_at;
	bool extended = insn->opcode_at > 0 && (opcode[-1] & 0xf9) == 0x41; // REX.B
	uint32_t number;

	if (*opcode == 0xb8 && !extended) {
		if (insn->length - insn->opcode_at != 5)
			return PATCH_ANY;
		memcpy(&number, opcode + 1, 4);
		return number;
	}
	if (*opcode == 0xc7 && opcode[1] == 0xc0 && !extended) {
		memcpy(&number, opcode + 2, 4);
		return number;
	}
	// Others that may be moved write one register, which is in the second byte: is it rax?
	if (*opcode == 0x58 ||
	    ((*opcode == 0x89 || *opcode == 0x31) && (opcode[1] & 7) == 0 && opcode[1] >= 0xc0) ||
	    ((*opcode == 0x8b || *opcode == 0x8d || *opcode == 0x63 || *opcode == 0x33) &&
	     (opcode[1] & 0x38) == 0))
		return PATCH_ANY;
	return before;
}

// The walk is at a `syscall`.
static void program_found(const struct program_walk *walk, const uint8_t *at, const uint8_t *end)
{
	uint32_t i = walk->count;

	struct program_site site = { .call = (uint8_t *)at, .end = end };

	if (program_sites_count == PROGRAM_SITES_MAX)
		return;
	while (i > 0 && at - walk->starts[i - 1] < PROGRAM_JUMP_BYTES)
		i--;
	if (i > 0 && (!walk->table || i == walk->count)) {
		site.start = (uint8_t *)walk->starts[i - 1];
		site.several = i < walk->count;
	}
	// Of another number: it is for us only where a branch brings one of ours.
	site.unwanted = walk->number != PATCH_ANY && !patch_wanted(walk->number);
	program_sites[program_sites_count++] = site;
}

// A branch goes to `target`.
static void program_enter(const uint8_t *target, uint32_t from)
{
	for (uint32_t i = from; i < program_sites_count; i++) {
		struct program_site *site = &program_sites[i];

		if (site->several && target > site->start &&
		    target < site->start + PROGRAM_JUMP_BYTES)
			site->start = NULL;
		if (target == site->call)
			site->entered = true;
		if (target > site->call && target < site->call + PROGRAM_JUMP_BYTES)
			site->end = NULL;
	}
}

// Where a branch goes.
static const uint8_t *program_target(const uint8_t *code, const struct insn *insn)
{
	int32_t distance = 0;

	if (insn->relative_bytes == 1)
		distance = (int8_t)code[insn->relative_at];
	else if (insn->relative_bytes == 4)
		__builtin_memcpy(&distance, code + insn->relative_at, 4);
	return code + insn->length + distance;
}

// Decode a function; `targets`: look where its branches go, else for its system calls.
static bool program_decode(const uint8_t *at, const uint8_t *end, uint32_t from, bool targets)
{
	struct program_walk walk = { .number = PATCH_ANY };
	struct insn insn;

	for (; at < end; at += insn.length) {
		const uint8_t *opcode;

		if (!insn_decode(at, (size_t)(end - at), true, &insn))
			return false;
		opcode = at + insn.opcode_at;
		if (targets) {
			if (insn.relative_at)
				program_enter(program_target(at, &insn), from);
			continue;
		}
		if (opcode[0] == 0x0f && opcode[1] == 0x05 && insn.length == PATCH_SYSCALL_BYTES)
			program_found(&walk, at, end);
		// jmp through a register or memory: where it goes cannot be read.
		if (opcode[0] == 0xff && (opcode[1] & 0x38) == 0x20)
			walk.table = true;
		if (!program_may_move(at, &insn)) {
			walk.count = 0;
			walk.number = PATCH_ANY;
			continue;
		}
		walk.number = program_number(at, &insn, walk.number);
		if (walk.count == PROGRAM_MOVED_MAX) {
			memmove(walk.starts, walk.starts + 1,
				sizeof(walk.starts) - sizeof(*walk.starts));
			walk.count--;
		}
		walk.starts[walk.count++] = at;
	}
	for (uint32_t i = from; walk.table && i < program_sites_count; i++)
		program_sites[i].end = NULL;
	return true;
}

static void program_function(uintptr_t start, uintptr_t end)
{
	uint32_t before = program_sites_count;

	if (end - start > PROGRAM_FUNCTION_BYTES_MAX ||
	    !program_decode((const uint8_t *)start, (const uint8_t *)end, before, false))
		program_sites_count = before;
	else if (program_sites_count > before)
		program_decode((const uint8_t *)start, (const uint8_t *)end, before, true);
}

// Assembly without tables: the seven bytes that libc has, which are nothing else by chance.
static void program_plain(uint8_t *at, const uint8_t *start)
{
	uint32_t number;

	if (at - start < PROGRAM_JUMP_BYTES || at[-PROGRAM_JUMP_BYTES] != 0xb8 ||
	    program_sites_count == PROGRAM_SITES_MAX)
		return;
	memcpy(&number, at - 4, 4);
	if (patch_wanted(number))
		program_sites[program_sites_count++] =
			(struct program_site){ .start = at - PROGRAM_JUMP_BYTES, .call = at };
}

// A stretch of an object's code, as its file has it.
struct program_code {
	const uint8_t *header; // .eh_frame_hdr, or NULL
	uintptr_t start, end;
	uint64_t offset; // of `start` in the file
	long fd;
	uint8_t *window; // a part of it
	uintptr_t done;  // up to here all system calls were found
	bool unsure;     // not all was read, or memory has other bytes
};

// Bytes of the file that stand for those at `address`.
typedef void program_look(struct program_code *code, const uint8_t *at, size_t bytes,
			  uintptr_t address);

// `0f 05` is mostly part of a distance, whose upper bytes are 0 or all ones. Those are passed over
// without a look at the memory: are the two bytes behind it such? A comparison with a constant and
// a constant for a register have zeros there, too.
static bool program_is_distance(const uint8_t *next)
{
	return next[0] == 0x00 || next[0] == 0xff ||
	       (next[1] == 0x00 && next[0] != 0x3d && next[0] != 0x6a && (next[0] & 0xf8) != 0xb8);
}

static void program_look_for_calls(struct program_code *code, const uint8_t *at, size_t bytes,
				   uintptr_t address)
{
	const uint64_t ones = 0x0101010101010101;

	for (size_t i = 0; i + 12 <= bytes; i++) {
		uintptr_t here, from, to;
		uint64_t word, next;

		__builtin_memcpy(&word, at + i, 8); // one load
		__builtin_memcpy(&next, at + i + 1, 8);
		word = (word ^ 0x0f * ones) | (next ^ 0x05 * ones); // 0 where a 0f and a 05 are
		word = (word - ones) & ~word & (ones << 7);
		if (!word) {
			i += 7; // at none of the eight
			continue;
		}
		i += (size_t)__builtin_ctzll(word) / 8; // to the first of them
		here = address + i;
		if (here < code->done || program_is_distance(at + i + 2))
			continue;
		if (memcmp((const uint8_t *)here, at + i, PATCH_SYSCALL_BYTES) != 0) {
			code->unsure = true;
			continue;
		}
		if (code->header && cfi_extent(code->header, here, &from, &to) &&
		    from >= code->start && to > here && to <= code->end) {
			program_function(from, to);
			code->done = to;
		} else {
			program_plain((uint8_t *)here, (const uint8_t *)code->start);
		}
	}
}

// Branches of the whole object, by their bytes: what only looks like one may cost a site.
static void program_look_for_branches(struct program_code *, const uint8_t *at, size_t bytes,
				      uintptr_t address)
{
	for (size_t i = 1; i + 5 <= bytes; i++) {
		int32_t distance;

		if ((at[i] & 0xfe) != 0xe8 && ((at[i] & 0xf0) != 0x80 || at[i - 1] != 0x0f))
			continue;
		__builtin_memcpy(&distance, at + i + 1, 4);
		program_enter((const uint8_t *)address + i + 5 + distance, 0);
	}
}

// All of it, part by part; parts overlap.
static void program_read(struct program_code *code, program_look *look)
{
	for (uintptr_t at = code->start; at < code->end;
	     at += PROGRAM_WINDOW_BYTES - PROGRAM_OVERLAP_BYTES) {
		size_t bytes = code->end - at;
		long got;

		if (bytes > PROGRAM_WINDOW_BYTES)
			bytes = PROGRAM_WINDOW_BYTES;
		got = kernel(__NR_pread64, code->fd, code->window, bytes,
			     code->offset + (at - code->start));
		if (got != (long)bytes)
			code->unsure = true;
		if (kernel_failed(got))
			return;
		look(code, code->window, (size_t)got, at);
	}
}

// Returns the end of what was changed, at least `taken`: up to there nothing else can be. A thread
// of a program that is attached to may be in the call, and would come back to what is gone.
static const uint8_t *program_put(const struct program_site *site, const uint8_t *taken)
{
	uint32_t behind = 0;

	if (site->call < taken || (site->unwanted && !site->entered))
		return taken;
	if (site->end && !late_is() && (site->entered || !site->start || site->start < taken))
		behind = patch_put_behind(site->call, site->end);
	if (behind)
		return site->call + behind;
	if (site->unwanted || !site->start || site->start < taken ||
	    !patch_put_site(site->start, (uint32_t)(site->call + PATCH_SYSCALL_BYTES - site->start),
			    PATCH_ANY))
		return taken;
	return site->call + PATCH_SYSCALL_BYTES;
}

// False: there is nothing to patch.
static bool program_patch(struct program_code *code)
{
	const uint8_t *taken = NULL;

	program_sites_count = 0;
	code->done = code->start;
	program_read(code, program_look_for_calls);
	if (program_sites_count > 0)
		program_read(code, program_look_for_branches);
	for (uint32_t i = 0; i < program_sites_count; i++)
		taken = program_put(&program_sites[i], taken);
	return program_sites_count > 0;
}

// One number for what tells a file from others, and from what it was before a change. 0: the kernel
// does not say.
static uint64_t program_file(long fd)
{
	// Of struct stat: device, inode, size, when its content and when the inode was changed.
	static const uint8_t words[] = { 0, 1, 6, 11, 12, 13, 14 };
	uint64_t stat[32] = { 0 };
	uint64_t number = 0;

	if (kernel_failed(kernel(__NR_fstat, fd, stat)))
		return 0;
	for (size_t i = 0; i < sizeof(words); i++) {
		number = (number ^ stat[words[i]]) * UINT64_C(0x9e3779b97f4a7c15);
		number ^= number >> 32;
	}
	return number ? number : 1;
}

// Where a file without system calls is noted, if it is: one of two places. `taken` is set if so;
// else it is where it may be noted.
static _Atomic uint64_t *program_note(uint64_t file, bool *taken)
{
	_Atomic uint64_t *notes = recording_state->clock->callless;
	_Atomic uint64_t *first = &notes[file % SEGMENT_CALLLESS];
	_Atomic uint64_t *second = &notes[(file + 1) % SEGMENT_CALLLESS];
	uint64_t at_first = __atomic_load_n(first, __ATOMIC_RELAXED);
	uint64_t at_second = __atomic_load_n(second, __ATOMIC_RELAXED);

	*taken = at_first == file || at_second == file;
	return at_first && !at_second ? second : first;
}

// A segment of which the program may not read the code, or which is very large, is left alone.
// .eh_frame_hdr, for the extents of functions, is read in memory; the code in the file.
static void program_object(const struct scope_object *object, uint8_t *window)
{
	uint16_t count = 0;
	const struct elf_program *program = scope_programs(object, &count);
	struct program_code code = { .window = window };
	bool found = false, known;
	_Atomic uint64_t *note;
	uint64_t file;

	code.fd = kernel(__NR_openat, KERNEL_AT_FDCWD,
			 object->name[0] ? object->name : "/proc/self/exe", 0x80000 /* O_CLOEXEC */,
			 0);
	if (kernel_failed(code.fd))
		return;
	file = program_file(code.fd);
	note = program_note(file, &known);
	known &= file != 0;
	for (uint16_t i = 0; program && i < count; i++)
		if (program[i].type == ELF_EH_FRAME)
			code.header = (const uint8_t *)(object->bias + program[i].address);
	for (uint16_t i = 0; program && i < count && !known; i++) {
		const struct elf_program *each = &program[i];

		if (each->type != ELF_LOAD || !(each->flags & ELF_EXECUTABLE) ||
		    !(each->flags & ELF_READABLE) || each->file_size > PROGRAM_CODE_BYTES_MAX)
			continue;
		code.start = object->bias + each->address;
		code.end = code.start + each->file_size;
		code.offset = each->offset;
		found |= program_patch(&code);
	}
	if (file && !known && !found && !code.unsure)
		__atomic_store_n(note, file, __ATOMIC_RELAXED);
	kernel(__NR_close, code.fd);
}

// Whose code it is: not libc's and the linker's, whose calls are found otherwise, and not the
// kernel's own page of code (vDSO), which may be in the list and has no file.
static bool program_is_theirs(const struct scope_object *object)
{
	uintptr_t kernels = scope_auxiliary(PROGRAM_VDSO);
	struct patch_code code = patch_code_of(object);

	return object != scope_libc() && object != scope_ourselves() && !scope_is_linker(object) &&
	       (code.start < kernels || code.start - kernels > PROGRAM_VDSO_BYTES_MAX);
}

void patch_program(const struct scope_object *object, bool others)
{
	long window;

	if (kernel_sealed)
		return;
	window = kernel(__NR_mmap, 0, PROGRAM_WINDOW_BYTES, KERNEL_PROT_READ | KERNEL_PROT_WRITE,
			KERNEL_MAP_PRIVATE | KERNEL_MAP_ANONYMOUS, -1, 0);
	if (kernel_failed(window))
		return;
	for (; object; object = others ? object->next : NULL) {
		if (program_is_theirs(object))
			program_object(object, (uint8_t *)window);
	}
	kernel(__NR_munmap, window, PROGRAM_WINDOW_BYTES);
}
