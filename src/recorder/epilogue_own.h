// epilogue, between its parts: what an instruction does to esp and ebp (epilogue_insn.c), and which
// instructions are followed (epilogue.c).
#pragma once

#include "recorder/epilogue.h"
#include "recorder/insn.h"
#include "recorder/text.h"

// As instructions number them.
enum {
	EPILOGUE_MODRM_ABSOLUTE = 5, // of mode 0

	EAX = 0, // registers, as instructions number them
	ECX = 1,
	EDX = 2,
	EBX = 3,
	ESP = 4,
	EBP = 5,
	ESI = 6,
	EDI = 7,
	REGISTERS = 8,
};

// What a value is counted from.
enum epilogue_base {
	BASE_UNKNOWN,   // nothing is known; offset and at mean nothing
	BASE_ESP,       // esp as it was at the start
	BASE_EBP,       // ebp as it was
	BASE_AT_ESP,    // what is in memory there
	BASE_AT_EBP,    // the same of ebp
	BASE_NUMBER,    // none: the number alone
	BASE_AT_NUMBER, // and of a number, which is an address
	BASE_OWN,       // what the register `at` was that a function keeps
};

// What is known of a register or of a word of the stack: base + offset, where the base may be what
// is in memory at `at` bytes from esp or ebp of the start. For example after `push ebp; mov ebp,
// esp` ebp is { BASE_ESP, 0, -4 }, and the word there is { BASE_EBP, 0, 0 }.
struct epilogue_value {
	enum epilogue_base base;
	int32_t at; // of what is in memory
	int32_t offset;
};

// Where the code was followed to from the start, and what it has done so far.
struct epilogue_state {
	uintptr_t pc;    // of the next instruction
	bool behind;     // the instruction before was a call
	bool keeps_ebp;  // the ebp of the start is
	int32_t kept_at; // there, from the esp of the start
	struct epilogue_value registers[REGISTERS];
	bool pushed;                     // something is that is no return address:
	uintptr_t number;                // this, or 0,
	struct epilogue_value pushed_at; // there
	struct epilogue_value pushed_value;
	int32_t freed;     // how far esp came out since the start: what is inside was taken away
	int32_t arguments; // bytes pushed for the next call, if nothing else was done to esp
};

// The instruction in hand, decoded for 32-bit mode. `next` is where the one after it begins.
struct epilogue_at {
	struct insn insn;
	const uint8_t *op; // its opcode
	uintptr_t next;
	// If it has a modrm:
	uint8_t mode, reg, rm;
	bool has_address; // rm is memory, at `address`, and no register
	struct epilogue_value address;
};

// Whether that is on top of the stack.
static inline bool epilogue_is_on_top(const struct epilogue_state *state)
{
	const struct epilogue_value *esp = &state->registers[ESP], *at = &state->pushed_at;

	return state->pushed && esp->base == at->base && esp->at == at->at &&
	       esp->offset == at->offset;
}

// Whether the value is the return address of a function that keeps the chain, and has taken its
// frame down: it was beside the ebp that is restored.
static inline bool epilogue_is_back(const struct epilogue_state *state,
				    const struct epilogue_value *value)
{
	const struct epilogue_value *ebp = &state->registers[EBP];

	return value->base == BASE_AT_EBP && value->offset == 0 && ebp->base == BASE_AT_EBP &&
	       ebp->offset == 0 && value->at == ebp->at + UNWIND_WORD;
}

// A number of an instruction, with its sign.
static inline int32_t epilogue_32(const uint8_t *at)
{
	return (int32_t)text_load32(at);
}

// The register has a value that is not known, or so many bytes more than it had. Of esp that also
// forgets what was noted as being on top of the stack, or how many arguments were pushed.
HIDDEN void epilogue_lose(struct epilogue_state *state, uint32_t which);
HIDDEN void epilogue_add(struct epilogue_state *state, uint32_t which, int32_t bytes);

// sub esp, register: esp is unknown afterwards, unless the register is a number.
HIDDEN void epilogue_make_room(struct epilogue_state *state, uint32_t which);

// leave: mov esp, ebp; pop ebp. The caller's ebp is what it pops.
HIDDEN void epilogue_leave(struct epilogue_state *state);

// push of anything: of an argument, or of what a register was that the function keeps.
HIDDEN void epilogue_push(struct epilogue_state *state, const struct epilogue_at *at);

// A call has come back, and has removed so many bytes of arguments, or EPILOGUE_POPS_UNKNOWN. What
// a callee does not keep is unknown then.
HIDDEN void epilogue_called(struct epilogue_state *state, int32_t pops);

// What the modrm byte names, whether the instruction has one or not. Of an address that has a
// scaled index, or 16 bits, no more is said than that it is one.
HIDDEN void epilogue_operand(struct epilogue_at *at, const uint8_t *modrm,
			     const struct epilogue_state *state);

// What any instruction does that goes on with the next one, which is all but calls, jumps and
// returns.
HIDDEN void epilogue_plain(struct epilogue_state *state, const struct epilogue_at *at);
