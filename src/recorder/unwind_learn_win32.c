// unwind_learn on Windows: code of 32 bits that has no tables.
//
// Three sources say where the return address of a frame may be: what the function itself will do to
// find it (epilogue.h), the chain of frame pointers, and the words of the stack. None of them is
// believed by itself. A return address follows a call, and that call must have been able to lead to
// where the walk is: where it names a function, the function's own code is followed from its start
// to there, through jumps and import tables, and must agree about the frame.
//
// What is proven becomes a rule like those of tables: all ways from the place to the function's
// ends say the same, and the word is a return address that fits; or the function that the call
// names makes, on the way to the place, a frame of just this size. All else is a guess, and marks
// the stack.
#include "recorder/capture.h"
#include "recorder/codemap.h"
#include "recorder/codemap_win32.h"
#include "recorder/epilogue.h"
#include "recorder/fpo.h"
#include "recorder/insn.h"
#include "recorder/kernel.h"
#include "recorder/patch_win32.h"
#include "recorder/recording.h"
#include "recorder/recording_win32.h"

enum {
	LEARN_FUNCTION_MAX = 1 << 16, // so far may a place lie behind its function's start
	LEARN_LARGE_MAX = 1 << 20,    // or, where more than the words of the stack says so
	LEARN_SCAN_WORDS = 1024,
	LEARN_TRIES = 8,
	LEARN_OWN_FRAMES = 32,
	LEARN_PUSHES_MAX = 8,
	LEARN_BEGINNINGS = 4,
	LEARN_PUSHED_MAX = 128,
	LEARN_ALIGNED = 16,
	LEARN_INT3 = 0xcc,
	LEARN_HEADERS_AT = 0x3c, // where an image says where its headers are
	LEARN_ENTRY_AT = 0x28,   // and they where it begins
	LEARN_POPS_MAX = 48,
	LEARN_FRAME_MAX = 16 << 20,
	LEARN_BASE_BYTES = 4096, // of a stack where its thread began
};

// What the walk knows of the frame.
struct learn_frame {
	uintptr_t pc, sp, rbp;
	uintptr_t inner; // a place in the function that was called, 0: it is a hook of ours
	int32_t pops;    // bytes of arguments that this function removes, or EPILOGUE_POPS_UNKNOWN
};

// Whether a call can have led to the frame.
enum learn_verdict {
	LEARN_NO_CALL,
	LEARN_ELSEWHERE,
	LEARN_BY_REGISTER, // where to is not known
	LEARN_HERE,
};

struct learn_call {
	enum learn_verdict verdict;
	uintptr_t target; // the function that it names, or 0
	bool sure;        // the place was reached from there
	unwind_rule made; // of the frame, by that function, or UNWIND_NONE
	unwind_rule by_ebp;
};

// The code at `at`, and how far it can be read; NULL: it is no module's, or too near to its end.
const uint8_t *epilogue_code(uintptr_t at, uint32_t *bytes)
{
	struct codemap_place place = codemap_find(at);

	if (!place.module || at + INSN_BYTES_MAX >= place.end)
		return NULL;
	*bytes = (uint32_t)(place.end - at) - INSN_BYTES_MAX;
	return (const uint8_t *)at;
}

static uint32_t learn_32(uintptr_t at)
{
	uint32_t value;

	__builtin_memcpy(&value, (const void *)at, 4);
	return value;
}

// The word at an address that code names, as import tables have it; 0: it is in no module.
uintptr_t epilogue_cell(uintptr_t at)
{
	uint32_t bytes;

	return epilogue_code(at, &bytes) ? learn_32(at) : 0;
}

// The word of the stack at `at`. False: it cannot be read.
static bool learn_word(uintptr_t at, uintptr_t *word)
{
	if (at % UNWIND_WORD || at < KERNEL_PAGE ||
	    !kernel_can_read(at & ~(uintptr_t)(KERNEL_PAGE - 1)))
		return false;
	*word = learn_32(at);
	return true;
}

// ---- Calls ----------------------------------------------------------------------------------

// Whether a call by a register, or by memory that one points to, ends at `back`.
//
// ff /2 with each form of operand: how many bytes the instruction has, and what its modrm looks
// like. For example ff d0 is call *%eax, ff 54 24 08 is call *8(%esp).
static bool learn_is_by_register(const uint8_t *back)
{
	static const struct {
		uint8_t bytes, mask, modrm;
	} forms[] = {
		{ 2, 0xf8, 0xd0 }, { 2, 0xf8, 0x10 }, { 3, 0xf8, 0x50 }, { 3, 0xff, 0x14 },
		{ 4, 0xff, 0x54 }, { 6, 0xf8, 0x90 }, { 7, 0xff, 0x94 }, { 7, 0xff, 0x14 },
	};

	for (uint32_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		if (back[-forms[i].bytes] == 0xff &&
		    (back[1 - forms[i].bytes] & forms[i].mask) == forms[i].modrm)
			return true;
	return false;
}

// Where the call before the return address leads to; 0: not known. False: there is no call.
//
// An e8 whose target is no code is no call: these five bytes are a part of something else.
static bool learn_called(uintptr_t back, uintptr_t *target)
{
	const uint8_t *code = (const uint8_t *)back;
	uint32_t bytes;

	*target = 0;
	if (!epilogue_code(back - 7, &bytes) || recording_is_ours(back, 1))
		return false;
	if (code[-5] == 0xe8) {
		*target = back + learn_32(back - 4);
		if (epilogue_code(*target, &bytes))
			return true;
		*target = 0;
	}
	if (code[-6] == 0xff && code[-5] == 0x15) {
		*target = epilogue_cell(learn_32(back - 4));
		return true;
	}
	return learn_is_by_register(code);
}

// The same for code that the program itself has made.
static bool learn_called_in_generated(uintptr_t back)
{
	const uint8_t *code = (const uint8_t *)back;

	if (codemap_find(back).module || recording_is_ours(back, 1) || !kernel_can_run(back) ||
	    !kernel_can_run(back - 7))
		return false;
	return code[-5] == 0xe8 || (code[-6] == 0xff && code[-5] == 0x15) ||
	       learn_is_by_register(code);
}

// `near`: only a function that begins not far before the place can be the one.
//
// The verdict's order is that of belief: no call, one that leads elsewhere, one of which nothing is
// known, one that leads here.
static struct learn_call learn_judge(const struct learn_frame *frame, uintptr_t back, bool near)
{
	struct learn_call call = { LEARN_NO_CALL, 0, false, UNWIND_NONE, UNWIND_NONE };
	enum epilogue_reach reach;
	uintptr_t target;

	if (!learn_called(back, &target)) {
		if (learn_called_in_generated(back))
			call.verdict = LEARN_BY_REGISTER;
		return call;
	}
	call.verdict = LEARN_BY_REGISTER;
	if (!target)
		return call;
	call.target = target = epilogue_behind_jumps(target);
	call.verdict = LEARN_ELSEWHERE;
	if (near && frame->pc - target >= LEARN_FUNCTION_MAX)
		return call;
	reach = epilogue_reaches(target, frame->pc, frame->pops, &call.made);
	call.by_ebp = epilogue_by_ebp();
	call.sure = reach == EPILOGUE_REACHES;
	if (reach == EPILOGUE_LEADS_ON)
		call.verdict = LEARN_BY_REGISTER;
	else if (reach == EPILOGUE_REACHES ||
		 (reach == EPILOGUE_MAYBE && frame->pc - target < LEARN_LARGE_MAX))
		call.verdict = LEARN_HERE;
	return call;
}

// ---- Frames ---------------------------------------------------------------------------------

// Where the return address lies by the rule; 0: nowhere.
//
// It has to be outside of sp, and less than 16 MiB away.
static uintptr_t learn_slot(unwind_rule rule, const struct learn_frame *frame)
{
	uintptr_t from = unwind_kind(rule) == UNWIND_RSP ? frame->sp : frame->rbp, word;
	uintptr_t cfa = from + (uintptr_t)unwind_cfa_offset(rule);

	if (unwind_kind(rule) == UNWIND_RBP_COPIED) {
		if (!learn_word(from, &word) ||
		    !learn_word(from + (UNWIND_COPIED_WORDS - 1) * UNWIND_WORD, &word))
			return 0;
		cfa = unwind_copied((const uintptr_t *)from) + UNWIND_WORD;
	}
	if (unwind_kind(rule) == UNWIND_RBP_DEREF && !learn_word(cfa, &cfa))
		return 0;
	if (cfa < frame->sp + UNWIND_WORD || cfa - frame->sp > LEARN_FRAME_MAX)
		return 0;
	return cfa - UNWIND_WORD;
}

// Whether the return address lies there by what the called function makes.
static bool learn_is_slot(const struct learn_call *call, const struct learn_frame *frame,
			  uintptr_t slot)
{
	return learn_slot(call->made, frame) == slot ||
	       (call->by_ebp != UNWIND_NONE && learn_slot(call->by_ebp, frame) == slot);
}

// Whether the stack's first frame lies there.
static bool learn_is_base(uintptr_t slot)
{
	const uint8_t *base = *(uint8_t **)(void *)(kernel_teb() + UNWIND_WORD);

	return slot < (uintptr_t)base && (uintptr_t)base - slot <= LEARN_BASE_BYTES;
}

// The rule, if the stack and the call that it shows agree with it; as a guess if `sure` is false
// and nothing else proves it.
//
// A guess by esp alone becomes UNWIND_SCANNED, which marks the stack; other guesses are given up.
static unwind_rule learn_try(unwind_rule rule, const struct learn_frame *frame, bool sure)
{
	uintptr_t slot = learn_slot(rule, frame), back;
	struct learn_call call;

	if (!slot || !learn_word(slot, &back))
		return UNWIND_NONE;
	if (!back)
		return sure && learn_is_base(slot) ? rule : UNWIND_NONE;
	call = learn_judge(frame, back, false);
	if (call.verdict <= LEARN_ELSEWHERE)
		return UNWIND_NONE;
	if (call.made != UNWIND_NONE) {
		return learn_is_slot(&call, frame, slot) ? rule : (unwind_rule)UNWIND_NONE;
	}
	if (sure)
		return rule;
	if (unwind_kind(rule) != UNWIND_RSP)
		return UNWIND_NONE;
	return (rule & ~(unwind_rule)15) | UNWIND_SCANNED;
}

// A rule whose cfa lies so many bytes further out. What is behind the cfa stays at its distance.
static unwind_rule learn_deeper(unwind_rule rule, int32_t bytes)
{
	return rule + ((uint64_t)(uint32_t)(bytes / UNWIND_WORD) << 40);
}

// A place in the hook that the walk began in, whose frame ends at `sp`: our own functions all keep
// the chain.
//
// Needed for how many bytes of arguments the hook's real caller removes: stdcall functions remove
// their own.
static uintptr_t learn_hook(uintptr_t sp)
{
	const uintptr_t *frame = __builtin_frame_address(0);

	for (uint32_t i = 0; i < LEARN_OWN_FRAMES && (uintptr_t)frame < sp; i++) {
		if (frame[0] == sp - 2 * UNWIND_WORD)
			return frame[1];
		frame = (const uintptr_t *)frame[0];
	}
	return 0;
}

// How many bytes of arguments were removed by the function that the walk came from.
static int32_t learn_pops(const struct learn_frame *frame)
{
	uintptr_t inner = frame->inner ? frame->inner : learn_hook(frame->sp), called = 0;
	int32_t pops = learn_called(frame->pc, &called) && called ? epilogue_pops(called)
								  : EPILOGUE_POPS_UNKNOWN;
	struct epilogue_answer answer;

	if (pops >= 0 || !inner)
		return pops;
	epilogue_run(inner, &answer);
	return answer.pops;
}

// Whether the next function may begin there, after what gcc and clang fill the room between two
// with: the call before it then is one that does not come back.
static bool learn_is_room(uintptr_t pc)
{
	struct insn insn;

	for (; pc % LEARN_ALIGNED; pc += insn.length) {
		uint32_t bytes;
		const uint8_t *op = epilogue_code(pc, &bytes);

		if (!op || !insn_decode(op, INSN_BYTES_MAX, false, &insn))
			return false;
		op += insn.opcode_at;
		if (op[0] != 0x90 && (op[0] != 0x0f || op[1] != 0x1f) &&
		    (op[0] != 0x8d || (op[1] & 0x3d) != 0x34) && // lea esi, [esi]
		    (op[0] != 0x89 || op[1] != 0xf6))
			return false;
	}
	return true;
}

// By what the function will do. The call that the walk came from may remove arguments.
//
// When it is not known how many bytes of arguments were removed, 0 to 48 are tried, and what the
// stack confirms is taken.
static unwind_rule learn_by_epilogue(const struct learn_frame *frame)
{
	struct epilogue_answer answer;
	unwind_rule guess = UNWIND_NONE;
	int32_t pops = frame->pops;
	uintptr_t called;

	if (!learn_called(frame->pc, &called))
		return UNWIND_NONE;
	epilogue_run(frame->pc, &answer);
	for (uint32_t i = 0; i < answer.count; i++) {
		unwind_rule rule = answer.rules[i];
		bool by_esp = unwind_kind(rule) == UNWIND_RSP;
		bool none = by_esp && unwind_cfa_offset(rule) == UNWIND_WORD; // no frame
		bool sure = answer.count == 1 && !answer.more && (!by_esp || pops >= 0) &&
			    !(none && learn_is_room(frame->pc));
		int32_t least = by_esp && pops >= 0 ? pops : 0;
		int32_t most = by_esp && pops < 0 ? LEARN_POPS_MAX : least;

		for (int32_t more = least; more <= most; more += UNWIND_WORD) {
			unwind_rule found = learn_try(learn_deeper(rule, more), frame, sure);

			if (found != UNWIND_NONE && unwind_kind(found) != UNWIND_SCANNED)
				return found;
			guess = guess == UNWIND_NONE ? found : guess;
		}
	}
	return guess;
}

// Where the function that begins at `target` keeps its caller's ebp, from the cfa; 0: nowhere.
//
// For example 53 56 55: push ebx, esi, ebp: ebp is the third word inside of the return address, at
// cfa - 16.
static int64_t learn_kept(uintptr_t target)
{
	uint32_t bytes;
	const uint8_t *code = epilogue_code(target, &bytes);

	for (int64_t i = 0; code && i < LEARN_PUSHES_MAX && code[i] >= 0x50 && code[i] < 0x58; i++)
		if (code[i] == 0x55)
			return -2 * UNWIND_WORD - i * UNWIND_WORD;
	return 0;
}

// How many bytes the instruction at `pc` adds to esp.
//
// 83 c4 n and 81 c4 n are add, 83 ec n and 81 ec n sub.
static int32_t learn_adds(uintptr_t pc)
{
	uint32_t bytes;
	const uint8_t *code = epilogue_code(pc, &bytes);
	int32_t sign = code && code[1] == 0xec ? -1 : 1;

	if (!code || (code[1] != 0xc4 && code[1] != 0xec))
		return 0;
	if (code[0] == 0x83)
		return sign * (int8_t)code[2];
	return code[0] == 0x81 ? sign * (int32_t)learn_32(pc + 2) : 0;
}

// How many bytes the function pushed for the call that goes on, if `*sure`: as many as what was
// called removes, or as the function itself removes when it goes on. If it takes as many from the
// stack again, they are a part of its frame. Not sure: at least so many.
static int32_t learn_pushed(const struct learn_frame *frame, bool *sure)
{
	uintptr_t base, inner = frame->inner ? frame->inner : learn_hook(frame->sp);
	int32_t adds = learn_adds(frame->pc), pops = frame->pops;
	const struct fpo_row *row;

	row = inner ? codemap_frame_data(inner - 1, &base) : NULL;
	if (pops < 0 && row)
		pops = row->arguments;
	*sure = true;
	if (pops > 0)
		return adds == -pops ? 0 : pops;
	if (adds > 0)
		return adds;
	*sure = pops == 0 && row && row->arguments == 0;
	return 0;
}

// Where the caller's ebp is, from the cfa, as the row and the function's beginning say; 0: in ebp.
static int64_t learn_row_keeps(const struct fpo_row *row, uintptr_t base)
{
	return row->keeps_somewhere ? learn_kept(base + row->function) : row->kept_at * UNWIND_WORD;
}

// By the size of the frame, as the PDB says: the return address lies that far out, and further by
// what the function has pushed for this call. That is what was removed since, by what was called or
// by the function's next instruction; else the first word that fits is taken, as a guess.
static unwind_rule learn_by_size(const struct learn_frame *frame, const struct fpo_row *row,
				 uintptr_t base)
{
	int64_t kept = learn_row_keeps(row, base);
	bool sure;
	int32_t pushed = learn_pushed(frame, &sure);

	if (kept && !unwind_can_save_at(kept))
		return UNWIND_NONE;
	for (int32_t more = -UNWIND_WORD; more <= LEARN_PUSHED_MAX; more += UNWIND_WORD) {
		int64_t cfa = row->frame + (more < 0 ? pushed : more) + UNWIND_WORD;
		unwind_rule rule = kept ? unwind_make_saving(UNWIND_RSP, cfa, kept, 0)
					: unwind_make(UNWIND_RSP, cfa, 0);

		rule = learn_try(rule, frame, sure && more < 0);
		if (rule != UNWIND_NONE)
			return rule;
	}
	return UNWIND_NONE;
}

// By the PDB.
//
// FPO_BY_EBP rows are believed if the stack agrees. Of others the frame's size is known, and not
// what was pushed for the call.
static unwind_rule learn_by_data(const struct learn_frame *frame)
{
	uintptr_t base;
	const struct fpo_row *row = codemap_frame_data(frame->pc - 1, &base);
	unwind_rule made, rule;

	if (!row)
		return UNWIND_NONE;
	if (row->kind == FPO_BY_EBP)
		return unwind_can_save_at(row->kept_at * UNWIND_WORD)
			       ? learn_try(unwind_make_saving(UNWIND_RBP, row->frame,
							      row->kept_at * UNWIND_WORD, 0),
					   frame, true)
			       : UNWIND_NONE;
	if (epilogue_reaches(base + row->function, frame->pc, frame->pops, &made) ==
		    EPILOGUE_REACHES &&
	    made != UNWIND_NONE && learn_slot(made, frame) >= frame->sp + (uintptr_t)row->frame) {
		rule = learn_try(made, frame, true);
		if (rule != UNWIND_NONE)
			return rule;
	}
	return learn_by_size(frame, row, base);
}

// Whether a function begins with push ebp; mov ebp, esp, or lets another make such a frame: push
// its size, of a byte or four; push the handlers' table; call.
static bool learn_keeps_chain(uintptr_t target)
{
	uint32_t bytes;
	const uint8_t *code = epilogue_code(target, &bytes);

	if (code && code[0] == 0x8b && code[1] == 0xff) // room for a patch
		code += 2;
	if (code && (code[0] == 0x6a || code[0] == 0x68)) {
		code += code[0] == 0x6a ? 2 : 5;
		return code[0] == 0x68 && code[5] == 0xe8 &&
		       epilogue_sets_up((uintptr_t)code + 10 + learn_32((uintptr_t)code + 6));
	}
	return code && code[0] == 0x55 &&
	       ((code[1] == 0x8b && code[2] == 0xec) || (code[1] == 0x89 && code[2] == 0xe5));
}

// By the chain, if the function that it shows to be called keeps it.
static unwind_rule learn_by_chain(const struct learn_frame *frame)
{
	unwind_rule rule = unwind_make_saving(UNWIND_RBP, 2 * UNWIND_WORD, -2 * UNWIND_WORD, 0);
	uintptr_t slot = learn_slot(rule, frame), back;
	struct learn_call call;

	if (!slot || !learn_word(slot, &back))
		return UNWIND_NONE;
	if (!back && learn_is_base(slot) && patch_from_ntdll(frame->pc))
		return UNWIND_END;
	call = learn_judge(frame, back, false);
	if (call.verdict != LEARN_HERE)
		return UNWIND_NONE;
	if (call.made == UNWIND_NONE)
		return learn_keeps_chain(call.target) ? rule : (unwind_rule)UNWIND_NONE;
	return learn_is_slot(&call, frame, slot) ? rule : (unwind_rule)UNWIND_NONE;
}

// By the function that its image begins with, which the system calls: it does not return.
static unwind_rule learn_by_entry(const struct learn_frame *frame)
{
	uintptr_t image = codemap_find(frame->pc).start;
	uintptr_t headers = image + learn_32(image + LEARN_HEADERS_AT), slot, back, called;
	unwind_rule rule;

	if (epilogue_reaches(image + learn_32(headers + LEARN_ENTRY_AT), frame->pc, frame->pops,
			     &rule) != EPILOGUE_REACHES)
		return UNWIND_NONE;
	slot = rule == UNWIND_NONE ? 0 : learn_slot(rule, frame);
	return slot && learn_word(slot, &back) && learn_called(back, &called)
		       ? rule
		       : (unwind_rule)UNWIND_NONE;
}

// Whether a function may begin there: linkers and compilers put other functions' ends before it, or
// what fills the room between them.
static bool learn_may_begin(uintptr_t at)
{
	uint8_t before = *(const uint8_t *)(at - 1);

	return at % LEARN_ALIGNED == 0 || before == LEARN_INT3 || before == 0x90 ||
	       before == 0xc3 || before == 0;
}

// Whether one does begin there, by what compilers of Microsoft's kind fill the room between
// functions with, behind a return or more of it: one alone may follow a call that does not come
// back.
static bool learn_begins(uintptr_t at)
{
	const uint8_t *code = (const uint8_t *)at;

	if (at % LEARN_ALIGNED || code[-1] != LEARN_INT3 || code[0] == LEARN_INT3)
		return false;
	return code[-2] == LEARN_INT3 || (code[-2] == 0xc3 && code[-6] != 0xe8) ||
	       (code[-4] == 0xc2 && code[-2] == 0) || (code[-3] == 0x0f && code[-2] == 0x0b);
}

// By what a function makes, or by its ebp.
static unwind_rule learn_try_both(unwind_rule made, unwind_rule by_ebp,
				  const struct learn_frame *frame)
{
	unwind_rule rule = made == UNWIND_NONE ? made : learn_try(made, frame, true);

	return rule == UNWIND_NONE && by_ebp != UNWIND_NONE ? learn_try(by_ebp, frame, true) : rule;
}

// By the nearest beginning of a function; or of one that keeps the chain, if its code leads to the
// place: it may call what it likes, ebp stays.
//
// Backwards from the place: at most 64 KiB and four candidates.
static unwind_rule learn_by_beginning(const struct learn_frame *frame)
{
	uintptr_t least = codemap_find(frame->pc - 1).start + KERNEL_PAGE, at = frame->pc - 1;
	uint32_t tries = 0;
	unwind_rule rule;

	if (frame->pc - least > LEARN_FUNCTION_MAX)
		least = frame->pc - LEARN_FUNCTION_MAX;
	for (; at > least && tries < LEARN_BEGINNINGS; at--) {
		bool begins = learn_begins(at);

		if (!begins && !(learn_keeps_chain(at) && learn_may_begin(at)))
			continue;
		tries++;
		if (epilogue_reaches(at, frame->pc, frame->pops, &rule) == EPILOGUE_REACHES)
			return learn_try_both(rule, epilogue_by_ebp(), frame);
		if (begins)
			break;
	}
	return UNWIND_NONE;
}

// Whether the chain leads on to a return address.
static bool learn_chain_holds(const struct learn_frame *frame)
{
	unwind_rule rule = unwind_make_saving(UNWIND_RBP, 2 * UNWIND_WORD, -2 * UNWIND_WORD, 0);
	uintptr_t slot = learn_slot(rule, frame), back;

	return slot && learn_word(slot, &back) &&
	       learn_judge(frame, back, true).verdict > LEARN_ELSEWHERE;
}

// What the words show, if the call there names nothing or a function of which only that is known.
static unwind_rule learn_scanned(const struct learn_frame *frame, uintptr_t at, uintptr_t target)
{
	int64_t cfa = (int64_t)(at + UNWIND_WORD - frame->sp), kept = learn_kept(target);

	return kept ? unwind_make_saving(UNWIND_SCANNED, cfa, kept, 0)
		    : unwind_make(UNWIND_SCANNED, cfa, 0);
}

// By the words of the stack, from inside: the first one whose call leads here.
//
// 1,024 words are looked at. A call that names this function decides; one by a register is a guess,
// and only if no chain of frame pointers leads on.
static unwind_rule learn_by_words(const struct learn_frame *frame)
{
	unwind_rule guess = UNWIND_NONE;
	bool chained = learn_chain_holds(frame);

	for (uintptr_t at = frame->sp; at < frame->sp + LEARN_SCAN_WORDS * UNWIND_WORD;
	     at += UNWIND_WORD) {
		struct learn_call call;
		uintptr_t back;

		if (!learn_word(at, &back))
			break;
		call = learn_judge(frame, back, true);
		if (call.verdict == LEARN_HERE && call.made != UNWIND_NONE) {
			if (learn_slot(call.made, frame) == at)
				return call.made;
		} else if (call.verdict == LEARN_HERE && (call.sure || !chained)) {
			return learn_scanned(frame, at, call.target);
		} else if (call.verdict == LEARN_BY_REGISTER && !chained && guess == UNWIND_NONE) {
			guess = learn_scanned(frame, at, call.target);
		}
	}
	return guess;
}

// How often it was tried in vain stands in the rule, where others have the cfa.
//
// The sources in their order of belief: the function's end, the chain, the image's entry, the PDB,
// the function's beginning, and the words of the stack.
unwind_rule unwind_learn(unwind_rule rule, uint64_t key, uintptr_t inner, uintptr_t sp,
			 uintptr_t rbp)
{
	struct learn_frame frame = { (uintptr_t)key, sp, rbp, inner, EPILOGUE_POPS_UNKNOWN };
	int64_t tries = unwind_cfa_offset(rule) / UNWIND_WORD;
	unwind_rule found = UNWIND_NONE;
	uint32_t id = unwind_frame(rule);

	if (sizeof(void *) == 8 || tries >= LEARN_TRIES)
		return rule;
	recording_lock(&recording_state->code_lock);
	if (codemap_find(frame.pc - 1).module) {
		frame.pops = learn_pops(&frame);
		found = learn_by_epilogue(&frame);
		if (found == UNWIND_NONE || unwind_kind(found) == UNWIND_SCANNED) {
			unwind_rule chain = learn_by_chain(&frame);

			chain = chain != UNWIND_NONE ? chain : learn_by_entry(&frame);
			chain = chain != UNWIND_NONE ? chain : learn_by_data(&frame);
			chain = chain != UNWIND_NONE ? chain : learn_by_beginning(&frame);
			found = chain != UNWIND_NONE ? chain : found;
		}
		if (found == UNWIND_NONE)
			found = learn_by_words(&frame);
	}
	if (found == UNWIND_NONE)
		rule = unwind_make(UNWIND_GUESS_BLIND, (tries + 1) * UNWIND_WORD, id);
	else
		rule = found | (uint64_t)id << 16;
	unwind_replace(key, rule);
	recording_unlock(&recording_state->code_lock);
	if (found != UNWIND_NONE) // what was guessed before may be known better now
		__atomic_fetch_add(&capture_epoch, 1, __ATOMIC_SEQ_CST);
	return rule;
}
