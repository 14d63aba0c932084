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
#include "recorder/epilogue.h"
#include "recorder/insn.h"
#include "recorder/kernel.h"
#include "recorder/patch_win32.h"
#include "recorder/recording.h"
#include "recorder/recording_win32.h"

enum {
	LEARN_FUNCTION_MAX = 1 << 16, // so far may a place lie behind its function's start
	LEARN_SCAN_WORDS = 1024,
	LEARN_TRIES = 8,
	LEARN_JUMPS_MAX = 4,
	LEARN_OWN_FRAMES = 32,
	LEARN_PUSHES_MAX = 8,
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
};

// Whether a call can have led to the frame.
enum learn_verdict {
	LEARN_NO_CALL,
	LEARN_ELSEWHERE,
	LEARN_BY_REGISTER, // nobody knows where to
	LEARN_HERE,
};

struct learn_call {
	enum learn_verdict verdict;
	uintptr_t target; // the function that it names, or 0
	unwind_rule made; // of the frame, by that function, or UNWIND_NONE
};

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

// Where the call before the return address leads to; 0: nobody knows. False: there is no call.
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

// Where jumps alone lead to from `target`: linkers write them for functions of other modules.
static uintptr_t learn_through_jumps(uintptr_t target)
{
	uint32_t bytes;

	for (uint32_t i = 0; i < LEARN_JUMPS_MAX; i++) {
		const uint8_t *code = epilogue_code(target, &bytes);

		if (code && code[0] == 0xe9)
			target += 5 + learn_32(target + 1);
		else if (code && code[0] == 0xff && code[1] == 0x25)
			target = epilogue_cell(learn_32(target + 2));
		else
			break;
	}
	return target;
}

// `near`: only a function that begins not far before the place can be the one.
static struct learn_call learn_judge(const struct learn_frame *frame, uintptr_t back, bool near)
{
	struct learn_call call = { LEARN_NO_CALL, 0, UNWIND_NONE };
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
	call.target = target = learn_through_jumps(target);
	call.verdict = LEARN_ELSEWHERE;
	if (near && frame->pc - target >= LEARN_FUNCTION_MAX)
		return call;
	reach = epilogue_reaches(target, frame->pc, &call.made);
	if (reach == EPILOGUE_REACHES ||
	    (reach == EPILOGUE_MAYBE && frame->pc - target < LEARN_FUNCTION_MAX))
		call.verdict = LEARN_HERE;
	return call;
}

// ---- Frames ---------------------------------------------------------------------------------

// Where the return address lies by the rule; 0: nowhere.
static uintptr_t learn_slot(unwind_rule rule, const struct learn_frame *frame)
{
	uintptr_t from = unwind_kind(rule) == UNWIND_RSP ? frame->sp : frame->rbp;
	uintptr_t cfa = from + (uintptr_t)unwind_cfa_offset(rule);

	if (unwind_kind(rule) == UNWIND_RBP_DEREF && !learn_word(cfa, &cfa))
		return 0;
	if (cfa < frame->sp + UNWIND_WORD || cfa - frame->sp > LEARN_FRAME_MAX)
		return 0;
	return cfa - UNWIND_WORD;
}

// Whether the stack's first frame lies there.
static bool learn_is_base(uintptr_t slot)
{
	const uint8_t *base = *(uint8_t **)(void *)(kernel_teb() + UNWIND_WORD);

	return slot < (uintptr_t)base && (uintptr_t)base - slot <= LEARN_BASE_BYTES;
}

// The rule, if the stack and the call that it shows agree with it; as a guess if `sure` is false
// and nothing else proves it.
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
		if (learn_slot(call.made, frame) != slot)
			return UNWIND_NONE;
		return rule;
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
static int32_t learn_pops(const struct learn_frame *frame, uintptr_t called)
{
	uintptr_t inner = frame->inner ? frame->inner : learn_hook(frame->sp);
	int32_t pops = called ? epilogue_pops(called) : EPILOGUE_POPS_UNKNOWN;
	struct epilogue_answer answer;

	if (pops >= 0 || !inner)
		return pops;
	epilogue_run(inner, &answer);
	return answer.pops;
}

// By what the function will do. The call that the walk came from may remove arguments.
static unwind_rule learn_by_epilogue(const struct learn_frame *frame)
{
	struct epilogue_answer answer;
	unwind_rule guess = UNWIND_NONE;
	uintptr_t called;
	int32_t pops;

	if (!learn_called(frame->pc, &called))
		return UNWIND_NONE;
	pops = learn_pops(frame, called);
	epilogue_run(frame->pc, &answer);
	for (uint32_t i = 0; i < answer.count; i++) {
		unwind_rule rule = answer.rules[i];
		bool by_esp = unwind_kind(rule) == UNWIND_RSP;
		bool sure = answer.count == 1 && !answer.more && (!by_esp || pops >= 0);
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

// Whether a function begins with push ebp; mov ebp, esp.
static bool learn_keeps_chain(uintptr_t target)
{
	uint32_t bytes;
	const uint8_t *code = epilogue_code(target, &bytes);

	if (code && code[0] == 0x8b && code[1] == 0xff) // room for a patch
		code += 2;
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
	return learn_slot(call.made, frame) == slot ? rule : (unwind_rule)UNWIND_NONE;
}

// By the function that its image begins with, which the system calls: it does not return.
static unwind_rule learn_by_entry(const struct learn_frame *frame)
{
	uintptr_t image = codemap_find(frame->pc).start;
	uintptr_t headers = image + learn_32(image + LEARN_HEADERS_AT), slot, back, called;
	unwind_rule rule;

	if (epilogue_reaches(image + learn_32(headers + LEARN_ENTRY_AT), frame->pc, &rule) !=
	    EPILOGUE_REACHES)
		return UNWIND_NONE;
	slot = rule == UNWIND_NONE ? 0 : learn_slot(rule, frame);
	return slot && learn_word(slot, &back) && learn_called(back, &called)
		       ? rule
		       : (unwind_rule)UNWIND_NONE;
}

// Whether the chain leads on to a return address.
static bool learn_chain_holds(const struct learn_frame *frame)
{
	unwind_rule rule = unwind_make_saving(UNWIND_RBP, 2 * UNWIND_WORD, -2 * UNWIND_WORD, 0);
	uintptr_t slot = learn_slot(rule, frame), back;

	return slot && learn_word(slot, &back) &&
	       learn_judge(frame, back, true).verdict > LEARN_ELSEWHERE;
}

// Where the function that begins at `target` keeps its caller's ebp, from the cfa; 0: nowhere.
static int64_t learn_kept(uintptr_t target)
{
	uint32_t bytes;
	const uint8_t *code = epilogue_code(target, &bytes);

	for (int64_t i = 0; code && i < LEARN_PUSHES_MAX && code[i] >= 0x50 && code[i] < 0x58; i++)
		if (code[i] == 0x55)
			return -2 * UNWIND_WORD - i * UNWIND_WORD;
	return 0;
}

// What the words show, if the call there names nothing or a function of which only that is known.
static unwind_rule learn_scanned(const struct learn_frame *frame, uintptr_t at, uintptr_t target)
{
	int64_t cfa = (int64_t)(at + UNWIND_WORD - frame->sp), kept = learn_kept(target);

	return kept ? unwind_make_saving(UNWIND_SCANNED, cfa, kept, 0)
		    : unwind_make(UNWIND_SCANNED, cfa, 0);
}

// By the words of the stack, from inside: the first one whose call leads here.
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
		} else if (call.verdict == LEARN_HERE || (call.verdict == LEARN_BY_REGISTER &&
							  !chained && guess == UNWIND_NONE)) {
			guess = learn_scanned(frame, at, call.target);
			if (call.verdict == LEARN_HERE)
				return guess;
		}
	}
	return guess;
}

// How often it was tried in vain stands in the rule, where others have the cfa.
unwind_rule unwind_learn(unwind_rule rule, uint64_t key, uintptr_t inner, uintptr_t sp,
			 uintptr_t rbp)
{
	struct learn_frame frame = { (uintptr_t)key, sp, rbp, inner };
	int64_t tries = unwind_cfa_offset(rule) / UNWIND_WORD;
	unwind_rule found = UNWIND_NONE;
	uint32_t id = unwind_frame(rule);

	if (sizeof(void *) == 8 || tries >= LEARN_TRIES)
		return rule;
	recording_lock(&recording_state->code_lock);
	if (codemap_find(frame.pc - 1).module) {
		found = learn_by_epilogue(&frame);
		if (found == UNWIND_NONE || unwind_kind(found) == UNWIND_SCANNED) {
			unwind_rule chain = learn_by_chain(&frame);

			chain = chain != UNWIND_NONE ? chain : learn_by_entry(&frame);
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
