// epilogue: how a function of 32 bits will find its return address: by running it.
//
// Code without tables says itself where its frame is. From a return address onwards the function's
// instructions are followed, on all ways, to where it returns: what they do to esp and ebp is where
// the return address and the caller's ebp are. A function whose start is known is followed from
// there to the return address, which is a second answer to the same question.
//
// Of values only so much is known: a register as it was, plus a number; or what lay in memory at
// such a place, plus a number. All else is unknown, and so is esp after a call that removes nobody
// knows how many arguments. Whatever is not understood ends a way: it never makes an answer.
//
// The caller holds code_lock: there is static memory.
#pragma once

#include "recorder/unwind.h"

enum { EPILOGUE_ANSWERS_MAX = 4, EPILOGUE_POPS_UNKNOWN = -1, EPILOGUE_NO_RETURN = -2 };

// What the ways from a return address to the function's ends say: rules of kinds RSP, RBP,
// RBP_DEREF or RBP_COPIED, counted from the esp that the function finds when it goes on there.
struct epilogue_answer {
	uint32_t count; // of rules that differ from each other
	bool more;      // a way ended otherwise
	int32_t pops; // bytes of arguments that the function removes, if all ends agree, or unknown
	unwind_rule rules[EPILOGUE_ANSWERS_MAX];
};

// Of the system: the code at `at`, and at how many bytes from there an instruction may begin: those
// of the longest one can be read after them. NULL: there is none.
HIDDEN const uint8_t *epilogue_code(uintptr_t at, uint32_t *bytes);

// Where a jump by the memory at `at` leads to; 0: nobody knows.
HIDDEN uintptr_t epilogue_cell(uintptr_t at);

// Where jumps alone lead to from `function`: linkers write them for functions of other modules, and
// for all while they work in steps.
HIDDEN uintptr_t epilogue_behind_jumps(uintptr_t function);

// What the code from the return address `pc` on says.
HIDDEN void epilogue_run(uintptr_t pc, struct epilogue_answer *answer);

// How many bytes of arguments the function removes when it returns, or one of the two above.
HIDDEN int32_t epilogue_pops(uintptr_t function);

enum epilogue_reach {
	EPILOGUE_NEVER,
	EPILOGUE_MAYBE,
	EPILOGUE_LEADS_ON, // not by what is known, but it ends by a jump to an unknown function
	EPILOGUE_REACHES,
};

// Whether a call that returns to `pc`, and removes so many bytes of arguments (or
// EPILOGUE_POPS_UNKNOWN), can be reached from the function's start. If so, `*rule` is the frame's
// there, counted from the frame address of what was called; UNWIND_NONE: it is unknown.
HIDDEN enum epilogue_reach epilogue_reaches(uintptr_t function, uintptr_t pc, int32_t pops,
					    unwind_rule *rule);

// The frame by ebp at the place that was reached last, or UNWIND_NONE. It holds too where what was
// called has put more under its return address: V8's code does, for arguments that are missing.
HIDDEN unwind_rule epilogue_by_ebp(void);

// Whether it is one that Microsoft's functions with handlers call to make their frame.
HIDDEN bool epilogue_sets_up(uintptr_t function);

// Code was unmapped.
HIDDEN void epilogue_forget(void);
