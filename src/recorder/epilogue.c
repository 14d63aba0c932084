// Two examples, of code that follows a return address:
//
//     83 c4 08   add $8,%esp       esp is what it was + 8
//     5e         pop %esi          + 12
//     c3         ret               the return address is there: cfa = 12 + 4, ebp as it was.
//                                  UNWIND_RSP, 16
//
//     8b e5      mov %ebp,%esp     esp is what ebp was
//     5d         pop %ebp          ebp is what lies there; esp is what ebp was, + 4
//     c3         ret               cfa = ebp + 8, the caller's ebp at cfa - 8: UNWIND_RBP, 8, -8
//
// A conditional jump makes two ways: one is gone on with, the other waits in the queue, with all
// that is known. A place that was seen is not gone through again, so loops end. If all ends that
// are reached say the same, that is an answer; what they say differently is several answers, of
// which the caller has to choose by what is on the stack.
#include "recorder/epilogue_own.h"

enum {
	EPILOGUE_INSNS_MAX = 3000, // that are followed for one question
	EPILOGUE_SEEN = 4096,      // a power of two, more than that
	EPILOGUE_QUEUE = 128,
	EPILOGUE_ENDS_ENOUGH = 6,
	EPILOGUE_TABLE_ENTRIES = 16, // of a switch
	EPILOGUE_POPS_KNOWN = 1024,
	EPILOGUE_LEAVE_BYTES = 48,
	EPILOGUE_JUMPS_MAX = 4,
	EPILOGUE_DEAD_MAX = 8,
	EPILOGUE_BEHIND_BYTES = 64, // Delphi's handlers behind a return
	EPILOGUE_THUNK_INSNS =
		4, // from a call to the jump by a register that ends so short a function
	EPILOGUE_FAIL_FAST = 0x29, // an interrupt that ends the process

	EPILOGUE_ADDRESS = 4, // bytes of a return address

};

// What calls of unknown functions remove.
enum epilogue_supposes {
	SUPPOSES_NOTHING, // it is unknown
	SUPPOSES_NONE,
	SUPPOSES_ARGUMENTS, // what was pushed since the call before, if the caller does not
};

// What esp and ebp are at a return, and how many bytes of arguments it drops besides.
struct epilogue_end {
	struct epilogue_value esp, ebp;
	int32_t pops;
};

// With which esp a place was.
struct epilogue_seen {
	uint32_t pc;
	int32_t offset;
	uint8_t base;
	bool behind; // a call was before it
};

// What is known of one question: the ways that are still to be followed, the places that were seen,
// and the ends that were reached. It is large, so there are two of them, static, under code_lock:
// the second counts the pops of functions that are called on the way.
struct epilogue_machine {
	bool counts_pops; // nothing else is of interest
	bool goes_on;     // behind calls that do not come back, and some jumps are ends
	enum epilogue_supposes supposes;
	bool ended;     // a way, at such a call or at a jump by a register
	uintptr_t goal; // 0: none
	bool reached;   // then `state` stands before that call
	bool cut;       // not all was seen
	bool leads_on;  // a jump to an unknown place, with the return address on top of the stack
	bool loops;     // which change esp each time around
	bool differs;   // a place was come to with two esp
	bool again;     // for one of them was behind a call that does not come back:
	uint32_t dead_count;
	uintptr_t dead[EPILOGUE_DEAD_MAX]; // what comes after those
	uint32_t insns_count;              // that were followed
	uint32_t ends_count;
	uint32_t different; // of the ends that are kept
	uint32_t queue_count;
	struct epilogue_end ends[EPILOGUE_ANSWERS_MAX];
	struct epilogue_state state;
	struct epilogue_state queue[EPILOGUE_QUEUE];
	struct epilogue_seen seen[EPILOGUE_SEEN];
};

static struct epilogue_machine epilogue_outer, epilogue_inner;
static unwind_rule epilogue_reached_by_ebp;

static struct {
	uintptr_t function;
	int32_t pops;
} epilogue_known[EPILOGUE_POPS_KNOWN];

void epilogue_forget(void)
{
	memset(epilogue_known, 0, sizeof(epilogue_known));
}

// Where it is noted how the place was seen, or is to be.
//
// It is never full: EPILOGUE_SEEN is larger than EPILOGUE_INSNS_MAX.
static struct epilogue_seen *epilogue_seen(struct epilogue_machine *machine, uintptr_t pc)
{
	uint32_t at = (uint32_t)pc * 0x9e3779b1u >> 20 & (EPILOGUE_SEEN - 1);

	while (machine->seen[at].pc && machine->seen[at].pc != (uint32_t)pc)
		at = (at + 1) & (EPILOGUE_SEEN - 1);
	return &machine->seen[at];
}

// Delphi's constructors make room for a handler if they are called to make an object, and not if
// one that inherits from them does it: add esp,-10h; call.
static bool epilogue_makes_object(uintptr_t behind)
{
	uint32_t bytes;
	const uint8_t *code = epilogue_code(behind - 8, &bytes);

	return code && memcmp(code, "\x83\xc4\xf0\xe8", 4) == 0;
}

// Ways that meet have one esp. If they do not, one of them is none: that which comes from behind a
// call, for example of exit, which does not come back though it looks so.
//
// For example, `call exit` is followed by the code of another branch. Straight on esp would be 8
// less than by the branch's own jump. So what follows that call is dead, and all is gone through
// again, without it.
static void epilogue_meet(struct epilogue_machine *machine, const struct epilogue_state *state)
{
	const struct epilogue_value *esp = &state->registers[ESP];
	const struct epilogue_seen *seen = epilogue_seen(machine, state->pc);

	if (!seen->pc || seen->base != BASE_ESP || esp->base != BASE_ESP ||
	    seen->offset == esp->offset || machine->counts_pops)
		return;
	if (seen->behind == state->behind || machine->dead_count == EPILOGUE_DEAD_MAX ||
	    epilogue_makes_object(state->pc)) {
		machine->differs = true;
		return;
	}
	machine->dead[machine->dead_count++] = state->pc;
	machine->again = true;
}

static bool epilogue_is_dead(const struct epilogue_machine *machine, uintptr_t next)
{
	for (uint32_t i = 0; i < machine->dead_count; i++)
		if (machine->dead[i] == next)
			return true;
	return false;
}

// Whether the place of the state is seen for the first time, or for the first time with an esp that
// is known: the way around a call that removes an unknown size may say more than the one
// through it.
static bool epilogue_is_new(struct epilogue_machine *machine)
{
	const struct epilogue_state *state = &machine->state;
	const struct epilogue_value *esp = &state->registers[ESP];
	struct epilogue_seen *seen = epilogue_seen(machine, state->pc);

	if (seen->pc && (seen->base != BASE_UNKNOWN || esp->base == BASE_UNKNOWN)) {
		epilogue_meet(machine, state);
		return false;
	}
	seen->pc = (uint32_t)state->pc;
	seen->behind = state->behind;
	seen->base = (uint8_t)esp->base;
	seen->offset = esp->offset;
	return true;
}

// ---- Ways -----------------------------------------------------------------------------------

// A jump back to where esp was another one: each turn of that loop moves it, so that no distance
// from esp holds (`loops`). With a full queue what was not reached may be reachable.
static void epilogue_later(struct epilogue_machine *machine, uintptr_t pc)
{
	const struct epilogue_value *esp = &machine->state.registers[ESP];
	const struct epilogue_seen *seen = epilogue_seen(machine, pc);
	struct epilogue_state *state;

	if (seen->pc && pc < machine->state.pc && esp->base == BASE_ESP && seen->base == BASE_ESP)
		machine->loops |= seen->offset != esp->offset;
	if (machine->queue_count == EPILOGUE_QUEUE) {
		machine->cut = true;
		return;
	}
	state = &machine->queue[machine->queue_count++];
	*state = machine->state;
	state->pc = pc;
}

// Values with a base of memory are equal if they are of the same place (`at`).
static bool epilogue_equal(const struct epilogue_value *a, const struct epilogue_value *b)
{
	return a->base == b->base &&
	       (a->base == BASE_UNKNOWN ||
		(a->offset == b->offset && (a->base <= BASE_EBP || a->at == b->at)));
}

// Ends that say the same are kept once. More than EPILOGUE_ANSWERS_MAX different ones are not kept,
// and `cut` says so.
static void epilogue_returns(struct epilogue_machine *machine, int32_t pops)
{
	struct epilogue_end end = { machine->state.registers[ESP], machine->state.registers[EBP],
				    pops };

	if (!machine->counts_pops && end.esp.base == BASE_UNKNOWN) {
		machine->cut = true;
		return;
	}
	machine->ends_count++;
	for (uint32_t i = 0; i < machine->different; i++) {
		const struct epilogue_end *known = &machine->ends[i];

		if (known->pops == pops &&
		    (machine->counts_pops || (epilogue_equal(&known->esp, &end.esp) &&
					      epilogue_equal(&known->ebp, &end.ebp))))
			return;
	}
	if (machine->different == EPILOGUE_ANSWERS_MAX)
		machine->cut = true;
	else
		machine->ends[machine->different++] = end;
}

// e9 is a jump by a distance, ff 25 one by an address in memory: incremental linking's, and an
// import's.
uintptr_t epilogue_behind_jumps(uintptr_t function)
{
	uint32_t bytes;

	for (uint32_t i = 0; i < EPILOGUE_JUMPS_MAX; i++) {
		const uint8_t *code = epilogue_code(function, &bytes);

		if (code && code[0] == 0xe9)
			function += 5 + (uintptr_t)epilogue_32(code + 1);
		else if (code && code[0] == 0xff && code[1] == 0x25)
			function = epilogue_cell((uint32_t)epilogue_32(code + 2));
		else
			break;
	}
	return function;
}

// Microsoft's functions with handlers end by a call of one that takes their frame down:
// mov esp, ebp; pop ebp; push ecx; ret, or bnd ret.
static bool epilogue_takes_down(uintptr_t function)
{
	static const uint8_t ends[] = { 0x8b, 0xe5, 0x5d, 0x51 };
	uint32_t bytes;
	const uint8_t *code = epilogue_code(function, &bytes);

	for (uint32_t i = 0; code && i + sizeof(ends) <= bytes && i < EPILOGUE_LEAVE_BYTES; i++)
		if (memcmp(code + i, ends, sizeof(ends)) == 0) {
			const uint8_t *last = code + i + sizeof(ends);

			return last[last[0] == 0xf2] == 0xc3;
		}
	return false;
}

// And they begin by a call of one that makes it, just inside of the return address:
// mov [esp+n], ebp; lea ebp, [esp+n]; or lea eax, [esp+12]; …; mov [eax], ebp; mov ebp, eax.
bool epilogue_sets_up(uintptr_t function)
{
	uint32_t bytes;
	const uint8_t *code = epilogue_code(function, &bytes);

	for (uint32_t i = 0; code && i + 8 <= bytes && i < EPILOGUE_LEAVE_BYTES; i++)
		if (memcmp(code + i, "\x89\x28\x8b\xe8", 4) == 0 ||
		    (memcmp(code + i, "\x89\x6c\x24", 3) == 0 &&
		     memcmp(code + i + 4, "\x8d\x6c\x24", 3) == 0 && code[i + 3] == code[i + 7]))
			return true;
	return false;
}

// Large frames are touched page by page by a function that gets their size in eax. Microsoft's
// makes the frame as well: xchg eax, esp; mov eax, [eax]; so does mingw's that clang calls: mov
// eax, esp; mov esp, ecx; mov ecx, [eax]. gcc's keeps all registers: push ecx; push eax; cmp eax,
// 1000h. Whether the call was of one of these.
static bool epilogue_touches(struct epilogue_state *state, uintptr_t function)
{
	uint32_t bytes;
	const uint8_t *code = epilogue_code(function, &bytes);

	if (code && memcmp(code, "\x51\x50\x3d\x00\x10\x00", 7) == 0)
		return true;
	for (uint32_t i = 0; code && i + 8 <= bytes && i < EPILOGUE_LEAVE_BYTES; i++)
		if (memcmp(code + i, "\x94\x8b\x00", 3) == 0 ||
		    memcmp(code + i, "\x89\xe0\x89\xcc\x8b\x08", 6) == 0) {
			epilogue_make_room(state, EAX);
			epilogue_lose(state, EAX);
			return true;
		}
	return false;
}

// Nothing but some arguments of that call was pushed.
static bool epilogue_is_first(const struct epilogue_state *state)
{
	const struct epilogue_value *esp = &state->registers[ESP];

	return esp->base == BASE_ESP && esp->offset <= 0 && esp->offset >= -12 && !state->keeps_ebp;
}

static void epilogue_set_up(struct epilogue_state *state)
{
	state->registers[EBP] = (struct epilogue_value){ .base = BASE_ESP, .offset = -4 };
	state->keeps_ebp = true;
	state->kept_at = -4;
	epilogue_lose(state, ESP);
}

// What a call of an unknown function, which returns to `next`, is supposed to remove. A caller
// takes arguments away by add esp, or by pop ecx.
static int32_t epilogue_supposed(const struct epilogue_machine *machine, uintptr_t next)
{
	uint32_t bytes;
	const uint8_t *code = epilogue_code(next, &bytes);

	if (machine->supposes == SUPPOSES_NOTHING)
		return EPILOGUE_POPS_UNKNOWN;
	if (machine->supposes == SUPPOSES_NONE || !code || code[0] == 0x59 ||
	    (code[1] == 0xc4 && (code[0] == 0x83 || code[0] == 0x81)))
		return 0;
	return machine->state.arguments;
}

// Go on after a call of `function`; 0: what is called is not known. False: it does not come back.
static bool epilogue_call(struct epilogue_machine *machine, uintptr_t function, uintptr_t next)
{
	int32_t pops = EPILOGUE_POPS_UNKNOWN;

	if (machine->goal && next == machine->goal) {
		machine->reached = true;
		return false;
	}
	if (machine->counts_pops)
		return true;
	if (epilogue_is_dead(machine, next)) {
		machine->cut = true; // it is an inference
		return false;
	}
	machine->state.behind = true;
	if (function == next) { // where am I?
		epilogue_add(&machine->state, ESP, -4);
		return true;
	}
	if (function)
		function = epilogue_behind_jumps(function);
	if (function && epilogue_takes_down(function)) {
		epilogue_leave(&machine->state);
		return true;
	}
	if (function && machine->goal && epilogue_is_first(&machine->state) &&
	    epilogue_sets_up(function)) {
		epilogue_set_up(&machine->state);
		return true;
	}
	if (function && epilogue_touches(&machine->state, function))
		return true;
	if (function)
		pops = epilogue_pops(function);
	if (pops == EPILOGUE_NO_RETURN) {
		machine->ended = true;
		pops = EPILOGUE_POPS_UNKNOWN;
		if (!machine->goes_on)
			return false;
	} else if (pops == EPILOGUE_POPS_UNKNOWN) {
		pops = epilogue_supposed(machine, next);
	}
	epilogue_called(&machine->state, pops);
	return true;
}

// A jump by a table that lies in the code or beside it.
static void epilogue_switch(struct epilogue_machine *machine, uintptr_t table, uintptr_t near)
{
	for (uint32_t i = 0; i < EPILOGUE_TABLE_ENTRIES; i++) {
		uintptr_t to = epilogue_cell(table + 4 * i);

		if (to - near + (1 << 16) > 2 << 16)
			break;
		epilogue_later(machine, to);
	}
	machine->cut = true;
}

// A jump to an unknown place, with the return address on top of the stack: the function that it
// leads to removes it, and its arguments.
static void epilogue_leads_away(struct epilogue_machine *machine)
{
	if (machine->counts_pops)
		machine->cut = true;
	else
		epilogue_returns(machine, EPILOGUE_POPS_UNKNOWN);
}

// A return to what was pushed. Delphi's functions push where to go on when what they must do in any
// case is done. False: the way ends.
static bool epilogue_jump(struct epilogue_machine *machine, uintptr_t near)
{
	struct epilogue_state *state = &machine->state;

	epilogue_add(state, ESP, EPILOGUE_ADDRESS);
	state->pushed = false;
	state->pc = state->number;
	if (state->number - near + (1 << 16) <= 2 << 16)
		return true;
	epilogue_leads_away(machine);
	return false;
}

// Whether a return goes to the number on top of the stack. Where pops alone are counted, calls
// remove nothing, so the number may be the argument that one of them has removed: Delphi goes on
// right behind the return, where its handlers are.
static bool epilogue_is_jump(const struct epilogue_machine *machine, uintptr_t next)
{
	const struct epilogue_state *state = &machine->state;

	return epilogue_is_on_top(state) && (!machine->counts_pops || !state->number ||
					     state->number - next <= EPILOGUE_BEHIND_BYTES);
}

// A return by the address itself, which was popped, when more was removed than `ret` can say:
// pop ecx; add esp, edx; and jmp ecx, or push ecx; ret.
static void epilogue_returns_by(struct epilogue_machine *machine, struct epilogue_value back)
{
	machine->state.registers[ESP] =
		(struct epilogue_value){ .base = BASE_EBP, .offset = back.at };
	epilogue_returns(machine, EPILOGUE_POPS_UNKNOWN);
}

// A jump by a register or by memory to a place that is not known.
static void epilogue_jump_away(struct epilogue_machine *machine, const struct epilogue_at *at)
{
	const struct epilogue_state *state = &machine->state;
	const struct epilogue_value *esp = &state->registers[ESP];

	if (!at->has_address && epilogue_is_back(state, &state->registers[at->rm])) {
		epilogue_returns_by(machine, state->registers[at->rm]);
		return;
	}
	if (machine->goes_on && machine->insns_count <= EPILOGUE_THUNK_INSNS) {
		epilogue_leads_away(machine);
		return;
	}
	machine->leads_on |= esp->base == BASE_UNKNOWN || (esp->base == BASE_ESP && !esp->offset);
	machine->cut = machine->ended = true;
}

// Where the call or jump by a register or by memory leads to; 0: not known.
static uintptr_t epilogue_indirect(const struct epilogue_state *state, const struct epilogue_at *at)
{
	const struct epilogue_value *in = &state->registers[at->rm];

	if (at->has_address)
		return at->address.base == BASE_NUMBER ? epilogue_cell((uint32_t)at->address.offset)
						       : 0;
	if (in->base == BASE_NUMBER)
		return (uint32_t)in->offset;
	return in->base == BASE_AT_NUMBER && in->offset == 0 ? epilogue_cell((uint32_t)in->at) : 0;
}

// The instructions ff. False: the way ends.
static bool epilogue_group(struct epilogue_machine *machine, const struct epilogue_at *at)
{
	struct epilogue_state *state = &machine->state;
	uintptr_t to = at->reg == 2 || at->reg == 4 ? epilogue_indirect(state, at) : 0;

	switch (at->reg) {
	case 0:
	case 1:
		if (at->mode == 3)
			epilogue_add(state, at->rm, at->reg == 0 ? 1 : -1);
		return true;
	case 2:
		return epilogue_call(machine, to, at->next);
	case 4:
		if (to)
			epilogue_later(machine, to);
		else if (at->mode == 0 && at->rm == ESP && (at->op[2] & 0xc7) == 0x85)
			epilogue_switch(machine, (uintptr_t)(uint32_t)epilogue_32(at->op + 3),
					at->next);
		else
			epilogue_jump_away(machine, at);
		return false;
	case 6:
		epilogue_push(state, at);
		return true;
	default:
		machine->cut = true;
		return false;
	}
}

// The distance counts from the next instruction, and has one byte or four.
static uintptr_t epilogue_target(const struct epilogue_at *at)
{
	const uint8_t *field = at->op - at->insn.opcode_at + at->insn.relative_at;
	int32_t distance = at->insn.relative_bytes == 1 ? (int8_t)field[0] : epilogue_32(field);

	return at->next + (uintptr_t)distance;
}

// One instruction. False: the way ends here.
//
// c3 and c2 are returns, cd int, cc and the following what no compiled function goes on after. All
// else is done to the registers (epilogue_plain).
static bool epilogue_step(struct epilogue_machine *machine, struct epilogue_at *at)
{
	uint8_t op = at->op[0];

	machine->state.pc = at->next;
	machine->state.behind = false;
	if (at->insn.relative_at) {
		uintptr_t target = epilogue_target(at);

		if (op == 0xe8)
			return epilogue_call(machine, target, at->next);
		if (op == 0xe9 || op == 0xeb) {
			machine->state.pc = target;
			return true;
		}
		epilogue_later(machine, target);
		return true;
	}
	switch (op) {
	case 0xc3:
		if (epilogue_is_on_top(&machine->state) &&
		    epilogue_is_back(&machine->state, &machine->state.pushed_value)) {
			epilogue_returns_by(machine, machine->state.pushed_value);
			return false;
		}
		if (epilogue_is_jump(machine, at->next))
			return epilogue_jump(machine, at->next);
		epilogue_returns(machine, 0);
		return false;
	case 0xc2:
		epilogue_returns(machine, at->op[1] | at->op[2] << 8);
		return false;
	case 0xcd:
		if (at->op[1] != EPILOGUE_FAIL_FAST && at->op[1] != 3)
			break;
		return false;
	case 0xcc: // what does not come back is followed by it
	case 0xce:
	case 0xcf:
	case 0xca:
	case 0xcb:
	case 0xf4:
	case 0x9a:
	case 0xea:
		return false;
	case 0xff:
		return epilogue_group(machine, at);
	case 0x0f:
		if (at->op[1] == 0x0b || at->op[1] == 0xb9 || at->op[1] == 0xff)
			return false;
		break;
	default:
		break;
	}
	epilogue_plain(&machine->state, at);
	return true;
}

// `code` is what of the module can be read on from code_at, so that its bounds are looked up only
// where the way leaves them.
static void epilogue_follow(struct epilogue_machine *machine)
{
	struct epilogue_state *state = &machine->state;
	const uint8_t *code = NULL;
	uintptr_t code_at = 0;
	uint32_t bytes = 0;

	while (machine->insns_count++ < EPILOGUE_INSNS_MAX) {
		struct epilogue_at at;

		if (!code || state->pc - code_at >= bytes) {
			code_at = state->pc;
			code = epilogue_code(code_at, &bytes);
		}
		machine->cut |= !code;
		if (!code || !epilogue_is_new(machine))
			return;
		if (!insn_decode(code + (state->pc - code_at), INSN_BYTES_MAX, false, &at.insn)) {
			machine->cut = true;
			return;
		}
		if (state->registers[ESP].base == BASE_ESP &&
		    state->registers[ESP].offset > state->freed)
			state->freed = state->registers[ESP].offset;
		at.op = code + (state->pc - code_at) + at.insn.opcode_at;
		at.next = state->pc + at.insn.length;
		epilogue_operand(&at, at.op + (at.op[0] == 0x0f ? 2 : 1), state);
		if (!epilogue_step(machine, &at))
			return;
	}
	machine->cut = true;
}

// Ways are taken from the queue first in, first out. What is left of it when enough ends are known
// is only compared with what was seen.
static void epilogue_go_once(struct epilogue_machine *machine)
{
	uint32_t next = 0;

	machine->reached = machine->cut = machine->ended = machine->loops = false;
	machine->leads_on = false;
	machine->differs = machine->again = false;
	machine->insns_count = machine->ends_count = machine->different = 0;
	machine->queue_count = 0;
	memset(machine->seen, 0, sizeof(machine->seen));
	epilogue_follow(machine);
	while (!machine->reached && next < machine->queue_count) {
		if (!machine->goal && machine->ends_count >= EPILOGUE_ENDS_ENOUGH)
			break;
		machine->state = machine->queue[next++];
		epilogue_follow(machine);
	}
	while (next < machine->queue_count)
		epilogue_meet(machine, &machine->queue[next++]);
}

// From the machine's state on.
static void epilogue_go_on(struct epilogue_machine *machine)
{
	const struct epilogue_state from = machine->state;

	machine->dead_count = 0;
	epilogue_go_once(machine);
	while (machine->again) {
		machine->state = from;
		epilogue_go_once(machine);
	}
}

// The state at the beginning: every register that a callee keeps has its own value (BASE_OWN), esp
// and ebp count from what they are.
static void epilogue_go(struct epilogue_machine *machine, uintptr_t from)
{
	memset(&machine->state, 0, sizeof(machine->state));
	machine->state.registers[ESP].base = BASE_ESP;
	machine->state.registers[EBP].base = BASE_EBP;
	for (uint32_t i = EBX; i < REGISTERS; i++)
		if (i != ESP && i != EBP)
			machine->state.registers[i] =
				(struct epilogue_value){ .base = BASE_OWN, .at = (int32_t)i };
	machine->state.pc = from;
	epilogue_go_on(machine);
}

// ---- Questions ------------------------------------------------------------------------------

// For example 8 for a function that ends with `ret $8` on all ways; EPILOGUE_NO_RETURN for one like
// exit. Kept by function, 1,024 of them; another one with the same hash takes the place.
int32_t epilogue_pops(uintptr_t function)
{
	struct epilogue_machine *machine = &epilogue_inner;
	uint32_t slot = (uint32_t)function * 0x9e3779b1u >> 22 & (EPILOGUE_POPS_KNOWN - 1);
	int32_t pops = EPILOGUE_POPS_UNKNOWN;

	if (epilogue_known[slot].function == function)
		return epilogue_known[slot].pops;
	machine->counts_pops = true;
	epilogue_go(machine, function);
	if (machine->different == 1)
		pops = machine->ends[0].pops;
	else if (!machine->different && !machine->cut)
		pops = EPILOGUE_NO_RETURN;
	epilogue_known[slot].function = function;
	epilogue_known[slot].pops = pops;
	return pops;
}

// A rule; UNWIND_NONE if none can say it. The caller's ebp lies at `kept`, or is ours if not
// `keeps`.
static unwind_rule epilogue_make(enum unwind_kind kind, int32_t cfa, bool keeps, int32_t kept)
{
	if (cfa % UNWIND_WORD || (keeps && !unwind_can_save_at(kept)))
		return UNWIND_NONE;
	return keeps ? unwind_make_saving(kind, cfa, kept, 0) : unwind_make(kind, cfa, 0);
}

// The rule by which the caller's registers are found; UNWIND_NONE: there is none for it.
static unwind_rule epilogue_rule(const struct epilogue_end *end)
{
	int32_t cfa = end->esp.offset + EPILOGUE_ADDRESS, kept = end->ebp.at - cfa;
	bool same = end->ebp.base == BASE_EBP && end->ebp.offset == 0;
	bool by_esp = end->ebp.base == BASE_AT_ESP && end->ebp.offset == 0;
	bool by_ebp = end->ebp.base == BASE_AT_EBP && end->ebp.offset == 0;

	if (end->esp.base == BASE_ESP && (same || by_esp))
		return cfa >= EPILOGUE_ADDRESS ? epilogue_make(UNWIND_RSP, cfa, by_esp, kept)
					       : (unwind_rule)UNWIND_NONE;
	if (end->esp.base == BASE_EBP && same) // assembly: ebp is what esp was
		return epilogue_make(UNWIND_RBP, cfa, false, 0);
	if (end->esp.base == BASE_EBP && by_ebp)
		return epilogue_make(UNWIND_RBP, cfa, true, kept);
	if (end->esp.base == BASE_OWN && end->esp.at == EBX && cfa == 8 && by_ebp &&
	    end->ebp.at == 0) // mov esp, ebp; pop ebp; mov esp, ebx; pop ebx; ret
		return epilogue_make(UNWIND_RBP_COPIED, 0, true, 0);
	if (end->esp.base == BASE_AT_EBP && by_ebp && cfa == 0)
		return epilogue_make(UNWIND_RBP_DEREF, end->esp.at, true, end->ebp.at);
	return UNWIND_NONE;
}

// First as if calls that do not return ended a way; only if that finds no end at all, what comes
// after them is taken for the function's own.
void epilogue_run(uintptr_t pc, struct epilogue_answer *answer)
{
	struct epilogue_machine *machine = &epilogue_outer;

	machine->counts_pops = machine->goes_on = false;
	machine->supposes = SUPPOSES_NOTHING;
	machine->goal = 0;
	epilogue_go(machine, pc);
	// What a compiler has put behind such a call says what it knew of the frame.
	machine->goes_on = !machine->different && machine->ended;
	if (machine->goes_on)
		epilogue_go(machine, pc);
	answer->count = 0;
	answer->more = false;
	answer->pops = machine->different ? machine->ends[0].pops : EPILOGUE_POPS_UNKNOWN;
	for (uint32_t i = 0; i < machine->different; i++) {
		unwind_rule rule = epilogue_rule(&machine->ends[i]);
		uint32_t same = 0;

		if (machine->ends[i].pops != answer->pops)
			answer->pops = EPILOGUE_POPS_UNKNOWN;
		if (rule == UNWIND_NONE) {
			answer->more = true;
			continue;
		}
		answer->more |= machine->differs && unwind_kind(rule) == UNWIND_RSP;
		while (same < answer->count && answer->rules[same] != rule)
			same++;
		answer->rules[same] = rule;
		answer->count += same == answer->count;
	}
}

// Whether the esp of the goal holds though it was supposed that no call removes arguments: it does
// if all that was pushed on the way from the start through the goal to an end is taken from the
// stack again, for no call can have pushed any.
static bool epilogue_is_even(struct epilogue_machine *machine, int32_t pops)
{
	const struct epilogue_value *esp = &machine->ends[0].esp, *ebp = &machine->ends[0].ebp;

	machine->state.pc = machine->goal;
	machine->goal = 0;
	if (pops < 0)
		pops = epilogue_supposed(machine, machine->state.pc);
	epilogue_called(&machine->state, pops);
	epilogue_go_on(machine);
	if (machine->supposes == SUPPOSES_ARGUMENTS && (machine->differs || machine->dead_count))
		return false;
	return machine->different == 1 && esp->base == BASE_ESP && esp->offset == 0 &&
	       ebp->base == BASE_EBP && ebp->offset == 0;
}

// The rule by ebp that the state at the goal says.
static unwind_rule epilogue_made_by_ebp(const struct epilogue_machine *machine)
{
	const struct epilogue_state *state = &machine->state;
	const struct epilogue_value *ebp = &state->registers[EBP];

	if (!state->keeps_ebp || ebp->base != BASE_ESP || ebp->offset >= 0)
		return UNWIND_NONE;
	return epilogue_make(UNWIND_RBP, EPILOGUE_ADDRESS - ebp->offset, true,
			     state->kept_at - EPILOGUE_ADDRESS);
}

// The rule that the state at the goal says, of a function that begins with it at 0.
static unwind_rule epilogue_made(const struct epilogue_machine *machine)
{
	const struct epilogue_state *state = &machine->state;
	const struct epilogue_value *esp = &state->registers[ESP], *ebp = &state->registers[EBP];
	bool same = ebp->base == BASE_EBP && ebp->offset == 0;
	int32_t kept = state->kept_at - EPILOGUE_ADDRESS;

	if (!same && !state->keeps_ebp)
		return UNWIND_NONE;
	if (esp->base == BASE_ESP && esp->offset <= 0 && !machine->loops && !machine->differs)
		return epilogue_make(UNWIND_RSP, EPILOGUE_ADDRESS - esp->offset, !same, kept);
	return epilogue_made_by_ebp(machine);
}

// First by what is known of calls. Where one of which nothing is known has made esp unknown, then
// by two suppositions: no call removes its arguments, or each removes what was pushed for it. The
// first holds that gives a rule and comes out even at the function's end.
enum epilogue_reach epilogue_reaches(uintptr_t function, uintptr_t pc, int32_t pops,
				     unwind_rule *rule)
{
	struct epilogue_machine *machine = &epilogue_outer;
	unwind_rule supposed;

	*rule = epilogue_reached_by_ebp = UNWIND_NONE;
	machine->counts_pops = machine->goes_on = false;
	machine->supposes = SUPPOSES_NOTHING;
	machine->goal = pc;
	epilogue_go(machine, function);
	if (!machine->reached && machine->leads_on)
		return EPILOGUE_LEADS_ON;
	if (!machine->reached)
		return machine->cut ? EPILOGUE_MAYBE : EPILOGUE_NEVER;
	epilogue_reached_by_ebp = epilogue_made_by_ebp(machine);
	*rule = epilogue_made(machine);
	if (*rule != UNWIND_NONE || machine->state.registers[ESP].base != BASE_UNKNOWN)
		return EPILOGUE_REACHES;
	for (int i = SUPPOSES_NONE; i <= SUPPOSES_ARGUMENTS && *rule == UNWIND_NONE; i++) {
		machine->supposes = (enum epilogue_supposes)i;
		machine->goal = pc;
		epilogue_go(machine, function);
		supposed = machine->reached && !(i == SUPPOSES_ARGUMENTS && machine->dead_count)
				   ? epilogue_made(machine)
				   : (unwind_rule)UNWIND_NONE;
		if (supposed != UNWIND_NONE && epilogue_is_even(machine, pops))
			*rule = supposed;
	}
	return EPILOGUE_REACHES;
}

unwind_rule epilogue_by_ebp(void)
{
	return epilogue_reached_by_ebp;
}
