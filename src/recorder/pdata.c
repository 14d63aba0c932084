// For example, a function that begins
//
//     1   push %rbp               code at  1: push, register 5
//     5   sub $0x30,%rsp          code at  5: allocation, 5 for (5 + 1) * 8
//     10  lea 0x20(%rsp),%rbp     code at 10: frame register is set; offset 2 * 16
//
// and is asked about in its middle. Undone from the last code to the first: rsp was rbp - 0x20;
// with the allocation undone, rbp + 0x10; there lies the caller's rbp, and 8 further the return
// address, at rbp + 0x18. So the cfa is rbp + 0x20, and rbp is at cfa - 16: UNWIND_RBP, 32, -16.
//
// A place that the prologue has not passed, 5 for example, undoes only what has run: the push,
// which makes UNWIND_RSP, 16. In an epilogue the codes are wrong: there, what is left of it is read
// from the instructions themselves.
#include "recorder/pdata.h"

#include "recorder/insn.h"
#include "recorder/text.h"

enum {
	PDATA_DIRECTORY = 3,
	PDATA_RBP = 5,
	PDATA_CHAIN_MAX = 32,
	PDATA_JUMPS_MAX = 4, // within an epilogue
	PDATA_ALIGNED = 16,  // functions begin there
	PDATA_CODE_MAX = 1024,
	PDATA_VERSION_MAX = 2,
	PDATA_FLAG_CHAINED = 4,
	PDATA_WHOLE = UINT32_MAX, // all of the prologue has run

	// Unwind codes.
	PDATA_PUSH = 0,
	PDATA_ALLOC_LARGE = 1,
	PDATA_ALLOC_SMALL = 2,
	PDATA_SET_FRAME = 3,
	PDATA_SAVE = 4,
	PDATA_SAVE_FAR = 5,
	PDATA_EPILOG = 6,
	PDATA_SPARE = 7,
	PDATA_SAVE_XMM = 8,
	PDATA_SAVE_XMM_FAR = 9,
	PDATA_MACHINE_FRAME = 10,
};

// RUNTIME_FUNCTION of the Windows x64 ABI ("x64 exception handling"): offsets from the image's
// base. With bit 0 set, `info` is that of another such entry.
struct pdata_function {
	uint32_t begin, end, info; // from the image's base
};

// UNWIND_INFO: codes in the order in which they are undone, the last instruction of the prologue
// first.
struct pdata_info {
	uint8_t version_flags; // 3 and 5 bits
	uint8_t prolog_bytes;
	uint8_t codes_count;
	uint8_t frame; // register, offset / 16: 4 bits each
	struct {
		uint8_t at; // offset behind the instruction
		uint8_t op; // 4 bits, and 4 of what it is about
	} codes[];
};

// What has been undone so far.
struct pdata_state {
	bool by_frame;   // offsets count from the frame pointer, else from the stack pointer
	bool stores_rbp; // it was found where the caller's rbp is
	bool stores_by_frame;
	bool machine;        // the rest is what the processor has pushed
	bool lost;           // a rule cannot say it
	int64_t offset;      // of what the stack pointer would be now
	int64_t rbp_at;      // where the caller's rbp is
	bool saves_by_frame; // stores count from the frame pointer, and
	int64_t saves_from;  // from there
};

// The fourth entry of the data directories in the optional header of a 64-bit image (PE32+): at
// byte 24 + 112 + 3 * 8 from the PE signature, whose place is at 0x3c.
static const uint8_t *pdata_directory(const uint8_t *base)
{
	return base + text_load32(base + 0x3c) + 24 + 112 + 8 * PDATA_DIRECTORY;
}

static size_t pdata_count(const uint8_t *base)
{
	return text_load32(pdata_directory(base) + 4) / sizeof(struct pdata_function);
}

static bool pdata_has(const struct pdata_function *function, uint32_t at)
{
	return at >= function->begin && at < function->end;
}

// By halving where the table is sorted, as the linker makes it; generated code may register one
// that is not.
const struct pdata_function *pdata_search(const struct pdata_function *table, size_t count,
					  bool sorted, uint32_t at)
{
	size_t low = 0, high = count;

	if (!sorted) {
		while (low < count && !pdata_has(&table[low], at))
			low++;
		return low < count ? &table[low] : NULL;
	}
	while (low < high) {
		size_t middle = (low + high) / 2;

		if (at < table[middle].begin)
			high = middle;
		else if (at >= table[middle].end)
			low = middle + 1;
		else
			return &table[middle];
	}
	return NULL;
}

const struct pdata_function *pdata_find(const uint8_t *base, uintptr_t pc)
{
	const struct pdata_function *table =
		(const void *)(base + text_load32(pdata_directory(base)));

	return pdata_search(table, pdata_count(base), true, (uint32_t)(pc - (uintptr_t)base));
}

// From the first byte of any function to after the last. Returns whether the table is sorted.
bool pdata_extent(const struct pdata_function *table, size_t count, uintptr_t base,
		  uintptr_t *start, uintptr_t *end)
{
	uint32_t low = UINT32_MAX, high = 0;
	bool sorted = true;

	for (size_t i = 0; i < count; i++) {
		sorted &= table[i].begin >= high;
		low = table[i].begin < low ? table[i].begin : low;
		high = table[i].end > high ? table[i].end : high;
	}
	*start = base + low;
	*end = base + high;
	return sorted;
}

uintptr_t pdata_end(uintptr_t base, const struct pdata_function *function)
{
	return base + function->end;
}

bool pdata_begins(const struct codemap_place *place, uintptr_t pc)
{
	const uint8_t *base = (const uint8_t *)place->start;
	const struct pdata_function *function;

	if (sizeof(void *) == 4)
		return false;
	function = pdata_find(base, pc);
	return function && place->start + function->begin == pc;
}

// An entry may stand for another one.
static const struct pdata_function *pdata_direct(const uint8_t *base,
						 const struct pdata_function *function)
{
	return function->info & 1 ? (const void *)(base + (function->info & ~1u)) : function;
}

static uint32_t pdata_version(const struct pdata_info *info)
{
	return info->version_flags & 7;
}

static bool pdata_is_chained(const struct pdata_info *info)
{
	return info->version_flags >> 3 & PDATA_FLAG_CHAINED;
}

// What it is chained to.
//
// Chained information has another RUNTIME_FUNCTION where the handler would be: after the codes, of
// which an even number of places is taken.
static const struct pdata_function *pdata_next(const struct pdata_info *info)
{
	return (const void *)&info->codes[(info->codes_count + 1u) & ~1u];
}

static uint32_t pdata_frame_register(const struct pdata_info *info)
{
	return info->frame & 15;
}

static int64_t pdata_frame_offset(const struct pdata_info *info)
{
	return (info->frame >> 4) * 16;
}

// How many places of the list a code takes. In version 1, codes 6 and 7 stored registers of 64
// bits; in version 2 each epilogue takes one place.
static uint32_t pdata_places(const struct pdata_info *info, uint32_t i)
{
	switch (info->codes[i].op & 15) {
	case PDATA_ALLOC_LARGE:
		return info->codes[i].op >> 4 ? 3 : 2;
	case PDATA_SAVE:
	case PDATA_SAVE_XMM:
		return 2;
	case PDATA_SAVE_FAR:
	case PDATA_SAVE_XMM_FAR:
	case PDATA_SPARE:
		return 3;
	case PDATA_EPILOG:
		return pdata_version(info) == 1 ? 2 : 1;
	default:
		return 1;
	}
}

// Each is asked for before it is read.
//
bool pdata_is_readable(uintptr_t base, const struct pdata_function *function,
		       pdata_can_read *can_read)
{
	for (int i = 0; i < PDATA_CHAIN_MAX; i++) {
		const struct pdata_info *info;

		if (!can_read((uintptr_t)function, sizeof(*function)))
			return false;
		function = pdata_direct((const uint8_t *)base, function);
		info = (const void *)(base + function->info);
		if (!can_read((uintptr_t)function, sizeof(*function)) ||
		    !can_read((uintptr_t)info, sizeof(*info)) ||
		    !can_read((uintptr_t)info, (size_t)((const uint8_t *)(pdata_next(info) + 1) -
							(const uint8_t *)info)))
			return false;
		if (!pdata_is_chained(info))
			return true;
		function = pdata_next(info);
	}
	return false;
}

// Only rbp's place is of interest: the rule has no other register.
static void pdata_stores(struct pdata_state *state, uint32_t which, bool by_frame, int64_t at)
{
	if (which != PDATA_RBP)
		return;
	state->stores_rbp = true;
	state->stores_by_frame = by_frame;
	state->rbp_at = at;
}

// Undo one code.
//
// PDATA_ALLOC_LARGE is followed by 16 bits of words of 8, or, with `about` set, by 32 bits of
// bytes. A store is by the frame register or by rsp, whichever the part has.
static void pdata_undo(struct pdata_state *state, const struct pdata_info *info, uint32_t i)
{
	const uint8_t *more = (const uint8_t *)&info->codes[i + 1];
	uint32_t about = info->codes[i].op >> 4;

	if (state->machine) // which begins a stack: nothing lies outside of it
		state->lost = true;
	switch (info->codes[i].op & 15) {
	case PDATA_PUSH:
		pdata_stores(state, about, state->by_frame, state->offset);
		state->offset += 8;
		break;
	case PDATA_ALLOC_LARGE:
		state->offset += about ? (int64_t)text_load32(more) : (more[0] | more[1] << 8) * 8;
		break;
	case PDATA_ALLOC_SMALL:
		state->offset += about * 8 + 8;
		break;
	case PDATA_SET_FRAME:
		if (pdata_frame_register(info) != PDATA_RBP)
			state->lost = true;
		state->by_frame = true;
		state->offset = -pdata_frame_offset(info);
		break;
	case PDATA_SAVE:
		pdata_stores(state, about, state->saves_by_frame,
			     state->saves_from + (more[0] | more[1] << 8) * 8);
		break;
	case PDATA_SAVE_FAR:
		pdata_stores(state, about, state->saves_by_frame,
			     state->saves_from + text_load32(more));
		break;
	case PDATA_MACHINE_FRAME:
		state->machine = true;
		state->offset += about ? 8 : 0; // an error code
		break;
	case PDATA_EPILOG:
	case PDATA_SPARE:
	case PDATA_SAVE_XMM:
	case PDATA_SAVE_XMM_FAR:
		break;
	default:
		state->lost = true;
		break;
	}
}

// Whether the frame pointer is set when `ran` bytes of the part have run.
static bool pdata_frame_is_set(const struct pdata_info *info, uint32_t ran)
{
	if (!pdata_frame_register(info))
		return false;
	if (ran >= info->prolog_bytes || pdata_is_chained(info))
		return true;
	for (uint32_t i = 0; i < info->codes_count; i += pdata_places(info, i))
		if ((info->codes[i].op & 15) == PDATA_SET_FRAME)
			return ran >= info->codes[i].at;
	return false;
}

// Undo all codes of one part of a function of which `ran` bytes have run. Returns the part that it
// continues.
//
// A prologue's code is undone only if it has run. For example, with codes at 1, 5 and 10, and 5
// bytes run, those at 1 and 5 are.
static const struct pdata_function *pdata_undo_all(struct pdata_state *state,
						   const struct pdata_info *info, uint32_t ran)
{
	if (!pdata_version(info) || pdata_version(info) > PDATA_VERSION_MAX)
		state->lost = true;
	for (uint32_t i = 0; i < info->codes_count && !state->lost; i += pdata_places(info, i))
		if (ran >= info->prolog_bytes || ran >= info->codes[i].at)
			pdata_undo(state, info, i);
	return pdata_is_chained(info) ? pdata_next(info) : NULL;
}

// ---- Epilogues ------------------------------------------------------------------------------
//
// Code that was interrupted may be within one: an instruction that frees the frame, which may have
// run, pops, and a return or a jump to another function. Version 2 of the tables says where they
// begin; with version 1 the instructions tell, also among those of the prologue: Microsoft's
// compilers let a function that has nothing to do return before its prologue is through.

// A byte of the image; behind its end, none of these instructions.
static uint8_t pdata_byte(const uint8_t *at, const uint8_t *end)
{
	return at < end ? *at : 0xcc;
}

// By version 2: the first of these codes has the length of all epilogues, and whether one ends the
// function; each other one how far before the end one begins.
static bool pdata_is_told_epilog(const struct pdata_info *info, uint32_t before_end)
{
	uint32_t bytes = info->codes[0].at;

	if (!info->codes_count || (info->codes[0].op & 15) != PDATA_EPILOG)
		return false;
	if (info->codes[0].op >> 4 & 1 && before_end <= bytes)
		return true;
	for (uint32_t i = 1; i < info->codes_count; i++) {
		uint32_t begins = info->codes[i].at | (uint32_t)(info->codes[i].op >> 4) << 8;

		if ((info->codes[i].op & 15) != PDATA_EPILOG || !begins)
			return false;
		if (before_end <= begins && before_end + bytes > begins)
			return true;
	}
	return false;
}

// add rsp,n or lea rsp,[rbp+n]. Returns what is behind it.
//
// 48 83 c4 n and 48 81 c4 n are add, 48 8d 65 n and 48 8d a5 n are lea. An epilogue has one of
// them, or none, before its pops.
static const uint8_t *pdata_undo_free(struct pdata_state *state, const struct pdata_info *info,
				      const uint8_t *at, const uint8_t *end)
{
	uint8_t op = pdata_byte(at + 1, end), which = pdata_byte(at + 2, end);
	bool adds = (op == 0x81 || op == 0x83) && which == 0xc4;
	bool loads = op == 0x8d && (which == 0x65 || which == 0xa5) &&
		     pdata_frame_register(info) == PDATA_RBP;
	bool wide = op == 0x81 || which == 0xa5;

	if (pdata_byte(at, end) != 0x48 || (!adds && !loads) || end - at < (wide ? 7 : 4))
		return at;
	state->by_frame = loads;
	state->offset = wide ? (int32_t)text_load32(at + 3) : (int8_t)at[3];
	return at + (wide ? 7 : 4);
}

// 5b is pop %rbx, 41 5c pop %r12. What is not a pop ends them.
static const uint8_t *pdata_undo_pops(struct pdata_state *state, const uint8_t *at,
				      const uint8_t *end)
{
	for (;; at++, state->offset += 8) {
		bool high = (pdata_byte(at, end) & 0xf8) == 0x40; // registers from r8 on, if bit 0
		uint8_t op = pdata_byte(at + high, end);

		if (op < 0x58 || op > 0x5f)
			return at;
		if (op == 0x58 + PDATA_RBP && !(high && *at & 1))
			pdata_stores(state, PDATA_RBP, state->by_frame, state->offset);
		at += high;
	}
}

// The part of a function that others are chained to.
static const struct pdata_function *pdata_primary(const uint8_t *base,
						  const struct pdata_function *function)
{
	for (int i = 0; i < PDATA_CHAIN_MAX; i++) {
		const struct pdata_info *info;

		function = pdata_direct(base, function);
		info = (const void *)(base + function->info);
		if (!pdata_is_chained(info))
			break;
		function = pdata_next(info);
	}
	return function;
}

// Whether a jump leads out of the function, or to its beginning: it calls itself. Of generated code
// only this one function is known.
static bool pdata_leads_out(const struct codemap_place *place,
			    const struct pdata_function *function, const uint8_t *target)
{
	const uint8_t *base = (const uint8_t *)place->start;
	const struct pdata_function *other;
	uint32_t begin = pdata_primary(base, function)->begin;

	if (place->generated)
		other = pdata_search(function, 1, true, (uint32_t)(target - base));
	else
		other = pdata_find(base, (uintptr_t)target);
	return !other || pdata_primary(base, other)->begin != begin || target == base + begin;
}

// REX.
static bool pdata_is_prefix(uint8_t byte)
{
	return (byte & 0xf0) == 0x40;
}

// Where a jump by a distance leads to; NULL: there is none.
static const uint8_t *pdata_jump(const uint8_t *at, const uint8_t *end)
{
	if (pdata_byte(at, end) == 0xeb && end - at >= 2)
		return at + 2 + (int8_t)at[1];
	if (pdata_byte(at, end) == 0xe9 && end - at >= 5)
		return at + 5 + (int32_t)text_load32(at + 1);
	return NULL;
}

// A return, or a jump of the others that end a function: jmp [rip+n], or one with REX.W.
static bool pdata_is_leaving(const uint8_t *at, const uint8_t *end)
{
	uint8_t op = pdata_byte(at, end), next = pdata_byte(at + 1, end);

	return (op | 1) == 0xc3 || (pdata_is_prefix(op) && (next | 1) == 0xc3) ||
	       (op == 0xf3 && next == 0xc3) || (op == 0xff && next == 0x25) ||
	       ((op & 0xf8) == 0x48 && next == 0xff && (pdata_byte(at + 2, end) & 0x38) == 0x20);
}

// Whether the code at `at` is in an epilogue: then the rest of that is undone. It may go on in
// another part of the function, and gcc lets several share their ends.
static bool pdata_undo_epilog(struct pdata_state *state, const struct codemap_place *place,
			      const struct pdata_function *function, const uint8_t *at)
{
	const uint8_t *base = (const uint8_t *)place->start;
	const struct pdata_info *info = (const void *)(base + function->info);
	const uint8_t *end = (const uint8_t *)place->end;
	struct pdata_state epilog = { 0 };
	bool told = pdata_version(info) == 2, leaves = false;

	// Where no code is to be undone there is none, as Windows has it since 10.
	if (!info->codes_count && !pdata_is_chained(info))
		return false;
	if (told && !pdata_is_told_epilog(info, (uint32_t)(base + function->end - at)))
		return false;
	at = pdata_undo_free(&epilog, info, at, end);
	for (int jumps = 0; jumps < PDATA_JUMPS_MAX; jumps++) {
		const uint8_t *target;

		at = pdata_undo_pops(&epilog, at, end);
		target = pdata_jump(at, end);
		leaves = target ? pdata_leads_out(place, function, target)
				: pdata_is_leaving(at, end);
		if (leaves || !target)
			break;
		at = target;
	}
	if (!leaves && !told)
		return false;
	// A return that drops more than the return address is none of the description's.
	epilog.lost = !leaves || pdata_byte(at + pdata_is_prefix(pdata_byte(at, end)), end) == 0xc2;
	*state = epilog;
	return true;
}

// ---- Code without an entry -------------------------------------------------------------------
//
// By what its image says, it calls nothing. Some assembly does nevertheless (V8's, which looks for
// references on the stack): its frame is known if it sets a frame pointer first, and leaves it.

// Where the last function ends that does so before `at`.
static uint32_t pdata_end_before(const uint8_t *base, uint32_t at)
{
	const struct pdata_function *table =
		(const void *)(base + text_load32(pdata_directory(base)));
	size_t low = 0, high = pdata_count(base);

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (table[middle].end <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? table[low - 1].end : 0;
}

// Whether the instruction may change rbp, or nothing goes on after it.
static bool pdata_ends_frame(const uint8_t *at, const struct insn *insn)
{
	uint8_t rex = insn->opcode_at && pdata_is_prefix(at[insn->opcode_at - 1])
			      ? at[insn->opcode_at - 1]
			      : 0;
	uint8_t op = at[insn->opcode_at], modrm = at[insn->opcode_at + 1];

	switch (op) {
	case 0x5d: // pop
		return !(rex & 1);
	case 0x8b: // mov
	case 0x8d: // lea
		return (modrm >> 3 & 7) == PDATA_RBP && !(rex & 4);
	case 0x89: // mov
		return (modrm & 0xc7) == (0xc0 | PDATA_RBP) && !(rex & 1);
	case 0xbd: // mov
		return !(rex & 1);
	default: // returns, leave, int3, jumps
		return op == 0xc2 || op == 0xc3 || op == 0xc9 || op == 0xcc || op == 0xe9 ||
		       op == 0xeb;
	}
}

static bool pdata_keeps_frame(const uint8_t *at, const uint8_t *to)
{
	struct insn insn;

	for (; at < to; at += insn.length)
		if (!insn_decode(at, (size_t)(to - at), true, &insn) || pdata_ends_frame(at, &insn))
			return false;
	return at == to;
}

static unwind_rule pdata_by_code(const struct codemap_place *place, uintptr_t pc)
{
	static const uint8_t begins[2][4] = {
		{ 0x55, 0x48, 0x8b, 0xec }, // push rbp; mov rbp,rsp
		{ 0x55, 0x48, 0x89, 0xe5 },
	};
	const uint8_t *base = (const uint8_t *)place->start, *to = (const uint8_t *)pc;
	const uint8_t *from = base + pdata_end_before(base, (uint32_t)(pc - place->start));
	const uint8_t *at = to - pc % PDATA_ALIGNED;

	for (; at >= from && to - at < PDATA_CODE_MAX; at -= PDATA_ALIGNED)
		for (int i = 0; i < 2; i++)
			if (to - at > 4 && __builtin_memcmp(at, begins[i], 4) == 0 &&
			    pdata_keeps_frame(at + 4, to))
				return unwind_make_saving(UNWIND_RBP, 16, -16, 0);
	return UNWIND_STOP;
}

// ---- Rules ---------------------------------------------------------------------------------

// The caller's stack pointer is 8 bytes (the return address) above the offset. A rule counts the
// place of rbp from there, so that both must have been counted from the same register.
static unwind_rule pdata_rule(const struct pdata_state *state)
{
	enum unwind_kind kind = state->by_frame ? UNWIND_RBP : UNWIND_RSP;
	int64_t cfa_offset = state->offset + 8;

	if (state->lost || (state->offset & 7))
		return UNWIND_STOP;
	if (state->machine)
		kind = state->by_frame ? UNWIND_STOP : UNWIND_MACHINE;
	if (!state->stores_rbp || kind == UNWIND_STOP)
		return unwind_make(kind, cfa_offset, 0);
	if (state->stores_by_frame != state->by_frame ||
	    !unwind_can_save_at(state->rbp_at - cfa_offset))
		return UNWIND_STOP;
	return unwind_make_saving(kind, cfa_offset, state->rbp_at - cfa_offset, 0);
}

unwind_rule pdata_compile(const struct codemap_place *place, uintptr_t pc, bool exact)
{
	const uint8_t *base = (const uint8_t *)place->start;
	const struct pdata_function *function = place->function;
	const struct pdata_info *info;
	struct pdata_state state = { 0 };
	uint32_t ran;

	if (sizeof(void *) == 4 || !base || (!place->generated && !pdata_count(base)))
		return UNWIND_GUESS_BLIND;
	if (!function)
		return exact ? unwind_make(UNWIND_RSP, 8, 0) : pdata_by_code(place, pc);
	function = pdata_direct(base, function);
	info = (const void *)(base + function->info);
	ran = (uint32_t)(pc - place->start) - function->begin;
	if (exact && pdata_undo_epilog(&state, place, function, (const uint8_t *)pc))
		return pdata_rule(&state);
	state.saves_by_frame = pdata_frame_is_set(info, ran);
	state.saves_from = state.saves_by_frame ? -pdata_frame_offset(info) : 0;
	if (state.saves_by_frame && pdata_frame_register(info) != PDATA_RBP)
		state.lost = true;
	for (int i = 0; function && i < PDATA_CHAIN_MAX; i++) {
		info = (const void *)(base + pdata_direct(base, function)->info);
		function = pdata_undo_all(&state, info, ran);
		ran = PDATA_WHOLE; // of what it is chained to
	}
	return pdata_rule(&state);
}
