// unwind: one step outwards, by rules compiled from .eh_frame.
//
// For a code address, .eh_frame says where the caller's return address and frame pointer are. That
// answer never changes while the code stays mapped, so it is compiled once into one 64-bit word,
// the *rule*, and kept in a table that all threads read without a lock:
//
//     kind:4 | rbp offset / word + 1, signed:12 | frame id:24 | cfa offset / word, signed:24
//
// A word is as wide as an address, 8 bytes or 4; of an i386 process, rsp and rbp mean its esp and
// ebp. The other registers that a callee keeps need no rule: compilers restore a frame from these
// two alone.
//
// The frame id rides along, so that recording a stack needs no second look-up. A table entry is
// {key ^ rule, rule}: a torn pair never matches its key.
//
// In a frame with stack pointer sp and frame pointer rbp (the values after the callee returned),
// the canonical frame address (cfa) is by kind
//
//     RSP        sp + offset
//     RBP        rbp + offset
//     RBP_DEREF  *(rbp + offset), and the caller's rbp is at rbp + rbp offset (gcc's realigned
//                frames)
//     RSP_DEREF  *(sp + offset) + word
//     SIGNAL     the frame of a signal handler's return: everything is in the context that the
//                kernel has put after sp
//     SIGNAL_OLD the same for i386 handlers that asked for no siginfo: another context
//     GUESS      no rule: a chain through rbp
//     SCANNED    sp + offset, as a look at the stack has found (unwind_learn): a guess as well
//     MACHINE    sp + offset, of Windows' code that an exception or an interrupt leads to: the
//                processor has pushed the address of the interrupted instruction as if it were a
//                return address, and 2 words after the cfa is its sp
//     RBP_COPIED of Microsoft's functions of 32 bits that align their stack: the caller's ebp is
//                at ebp, and next to it a copy of the return address; the address itself, just
//                inside of the cfa, is some words further out, as many as aligning took
//     SWITCHED   of Go's asmcgocall, which runs C on another stack: at sp + offset is a goroutine,
//                whose second word is the end of its stack, and a word before it how far from there
//                the return address is. rbp stays what it is
//     END        the outermost frame
//     STOP       not expressible: the walk ends here, incomplete
//
// and else the return address is at cfa - word, the caller's sp is cfa, and the caller's rbp is at
// cfa + rbp offset, or unchanged if that field is 0, which would be where the return address is.
// It may be outside of the cfa: Microsoft's compilers keep it in the home space of the caller's
// frame.
//
// Rows that no rule can express exist in hand-written assembly only (5 in libc); nothing
// allocates there.
#pragma once

#include "wire/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What is not a rule is 0.
typedef uint64_t unwind_rule;

// In the lowest four bits of a rule. What each says is above.
enum unwind_kind {
	UNWIND_NONE = 0, // free table entry
	UNWIND_RSP = 1,
	UNWIND_RBP = 2,
	UNWIND_RBP_DEREF = 3,
	UNWIND_RSP_DEREF = 4,
	UNWIND_SIGNAL = 5,
	UNWIND_GUESS = 6,
	UNWIND_GUESS_BLIND = 7, // generated code, a file's without .eh_frame: it may be wrong
	UNWIND_END = 8,
	UNWIND_STOP = 9,
	UNWIND_END_HERE = 10, // not a frame at all: the one before was outermost
	UNWIND_SIGNAL_OLD = 11,
	UNWIND_SCANNED = 12, // of code without frame pointers: what follows may be wrong
	UNWIND_MACHINE = 13,
	UNWIND_RBP_COPIED = 14,
	UNWIND_SWITCHED = 15,
};

// Bytes of an address, and of what is at a slot.
enum { UNWIND_WORD = sizeof(uintptr_t) };

// Where the context of a signal keeps what the interrupted frame had (Linux), and the end of what
// can be code or a stack.
#ifdef __x86_64__
enum {
	UNWIND_CONTEXT_RBP = 120, // bytes from the context's beginning
	UNWIND_CONTEXT_RSP = 160,
	UNWIND_CONTEXT_RIP = 168,
};
#define UNWIND_ADDRESS_MAX (UINTPTR_MAX >> 17)
#else
enum {
	UNWIND_CONTEXT_RBP = 24, // likewise
	UNWIND_CONTEXT_RSP = 28,
	UNWIND_CONTEXT_RIP = 56,
};
#define UNWIND_ADDRESS_MAX (UINTPTR_MAX - 4096)
#endif

// The parts of a rule; offsets are bytes.
static inline enum unwind_kind unwind_kind(unwind_rule rule)
{
	return (enum unwind_kind)(rule & 15);
}

static inline int64_t unwind_cfa_offset(unwind_rule rule)
{
	return ((int64_t)rule >> 40) * UNWIND_WORD;
}

// From the cfa to the caller's rbp; of RBP_DEREF from rbp. Only where unwind_saves_rbp.
static inline int64_t unwind_rbp_offset(unwind_rule rule)
{
	return ((int64_t)(rule << 48) >> 52) * UNWIND_WORD - UNWIND_WORD;
}

// The rule's kind, and where the caller's rbp is: RSP alone says that rbp stays what it is.
#define UNWIND_RBP_BITS 0xffffull

// By offset: the caller's rbp is in memory.
static inline bool unwind_saves_rbp(unwind_rule rule)
{
	return rule & UNWIND_RBP_BITS & ~15ull;
}

// The frame's id in the segment; 0: it is not known.
static inline uint32_t unwind_frame(unwind_rule rule)
{
	return (uint32_t)(rule >> 16) & 0xffffff;
}

// A rule that leaves rbp as it is. `cfa_offset` is a multiple of a word.
static inline unwind_rule unwind_make(enum unwind_kind kind, int64_t cfa_offset, uint32_t frame)
{
	return (uint64_t)kind | (uint64_t)frame << 16 | (uint64_t)(cfa_offset / UNWIND_WORD) << 40;
}

// Where the caller's rbp can be, for unwind_make_saving.
static inline bool unwind_can_save_at(int64_t rbp_offset)
{
	return rbp_offset % UNWIND_WORD == 0 && rbp_offset != -UNWIND_WORD &&
	       rbp_offset >= -2049 * UNWIND_WORD && rbp_offset <= 2046 * UNWIND_WORD;
}

// A rule by which the caller's rbp is in memory, at an offset that unwind_can_save_at allows.
static inline unwind_rule unwind_make_saving(enum unwind_kind kind, int64_t cfa_offset,
					     int64_t rbp_offset, uint32_t frame)
{
	return unwind_make(kind, cfa_offset, frame) |
	       ((uint64_t)(rbp_offset / UNWIND_WORD + 1) & 0xfff) << 4;
}

// Of such words at ebp: the first that can be the return address, and how many there may be.
enum { UNWIND_COPIED_FIRST = 3, UNWIND_COPIED_WORDS = UNWIND_COPIED_FIRST + 8 };

// Where the return address is of which the second word is a copy; 0: nowhere, or it may be in two
// places. All words can be read.
static inline uintptr_t unwind_copied(const uintptr_t *words)
{
	uintptr_t slot = 0;

	for (int i = UNWIND_COPIED_FIRST; i < UNWIND_COPIED_WORDS; i++) {
		if (words[i] != words[1])
			continue;
		if (slot)
			return 0;
		slot = (uintptr_t)&words[i];
	}
	return slot;
}

// The table is one huge page (2 MB), and its pages mirror those of the code: what one page of code
// needs is in one page of the table. While there are few rules it is only the beginning of that, 4
// KB at first, so that a process that has hardly begun touches few pages.
enum { UNWIND_SETS = 32768, UNWIND_WAYS = 4, UNWIND_PAGE_SETS = 64 };

// One of the four ways of a set. Readers need no lock: what does not belong together matches no
// key.
struct unwind_entry {
	uint64_t check; // key ^ rule
	unwind_rule rule;
};

enum {
	UNWIND_SET_BYTES = UNWIND_WAYS * sizeof(struct unwind_entry),
	UNWIND_BYTES = UNWIND_SETS * UNWIND_SET_BYTES,
};

_Static_assert(UNWIND_BYTES == 2 << 20, "the table is one huge page");

HIDDEN extern struct unwind_entry *unwind_table; // UNWIND_SETS * UNWIND_WAYS
HIDDEN extern uint32_t unwind_used; // of its bytes are in use: up to where the last set begins

// Raised when a rule has become another one, or all were forgotten: after that.
HIDDEN extern uint32_t unwind_turn;

// Set in a key for an address that is the instruction itself (interrupted by a signal), not a
// return address.
#define UNWIND_EXACT (1ull << 63)

// The same for a key that is not first in its set: compiles the rule and puts it there if need be,
// under code_lock, with signals blocked. UNWIND_STOP in a signal handler that interrupted such a
// place.
HIDDEN unwind_rule unwind_find_more(uint64_t key);

// The entry at `at`, or 0 if it is not of `key`.
static inline unwind_rule unwind_match(const struct unwind_entry *at, uint64_t key)
{
	unwind_rule rule = __atomic_load_n(&at->rule, __ATOMIC_RELAXED);

	return (__atomic_load_n(&at->check, __ATOMIC_RELAXED) ^ rule) == key ? rule : 0;
}

// In bytes, so that few instructions are between an address and its rule: a walk waits for them.
static inline struct unwind_entry *unwind_set_of(uint64_t key, uint32_t used)
{
	uint64_t line = key % UNWIND_PAGE_SETS; // in a page of the table; the rest is which
	uint64_t at = (key ^ key >> 9 ^ line * UNWIND_SET_BYTES) & used;

	return (struct unwind_entry *)(void *)((char *)unwind_table + at);
}

// The key's set, as much of the table as is in use now.
static inline struct unwind_entry *unwind_set(uint64_t key)
{
	return unwind_set_of(key, __atomic_load_n(&unwind_used, __ATOMIC_ACQUIRE));
}

// The rule for `key` if the table has it, else 0.
static inline unwind_rule unwind_peek(uint64_t key)
{
	const struct unwind_entry *set = unwind_set(key);
	unwind_rule rule = unwind_match(set, key);

	for (int way = 1; unlikely(!rule) && way < UNWIND_WAYS; way++)
		rule = unwind_match(&set[way], key);
	return rule;
}

// The rule for return address `key` (or code address | UNWIND_EXACT). Never 0. The first time for
// an address it is slow, and takes a lock; later it is a load or two.
static inline unwind_rule unwind_find(uint64_t key)
{
	unwind_rule rule = unwind_match(unwind_set(key), key);

	return likely(rule) ? rule : unwind_find_more(key);
}

// Take pages for the table, if it has none yet. False: the kernel has none.
HIDDEN bool unwind_start(void);

// Forget all rules: code was unmapped.
HIDDEN void unwind_forget(void);

// Forget those for addresses from `start` to `end`, or just after it. The caller holds code_lock.
HIDDEN void unwind_forget_range(uintptr_t start, uintptr_t end);

// Of the system: the rule for `key`, compiled, with the frame's id. The caller holds code_lock.
// `lasts`: it holds as long as the code stays mapped; else it is to be asked for again.
HIDDEN unwind_rule unwind_make_rule(uint64_t key, bool *lasts);

// Of the system: the walk has come to `key` with a rule of kind UNWIND_GUESS_BLIND, and the frame's
// registers are these. What it has called is at `inner`; 0: that is a hook. A better rule, if the
// stack shows one, which is kept; else the same.
HIDDEN unwind_rule unwind_learn(unwind_rule rule, uint64_t key, uintptr_t inner, uintptr_t sp,
				uintptr_t rbp);

// Put a rule in the place of another. The caller holds code_lock.
HIDDEN void unwind_replace(uint64_t key, unwind_rule rule);

// The end of the stack on which `here` is, if it is the calling thread's own.
HIDDEN uintptr_t unwind_stack_end(uintptr_t here);

// Of the system: whether a walk may end at `pc`, where there is no return address at `slot`. False:
// no thread begins there, so it has lost its way.
HIDDEN bool unwind_may_end(uintptr_t slot, uintptr_t pc);

// Of the system: the rule for `key` led to where no thread begins. One of kind UNWIND_GUESS_BLIND
// in its place, which is kept; 0: it is not from tables, or nothing better can be found.
HIDDEN unwind_rule unwind_doubt(uint64_t key, unwind_rule rule);

// The same: all of the table is in use, and worth a huge page.
HIDDEN void unwind_collapse(void);
