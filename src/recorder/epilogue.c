#include "recorder/epilogue.h"

#include "recorder/insn.h"
#include "recorder/text.h"

enum {
	EPILOGUE_INSNS_MAX = 3000, // that are followed for one question
	EPILOGUE_SEEN = 4096,      // a power of two, more than that
	EPILOGUE_QUEUE = 128,
	EPILOGUE_ENDS_ENOUGH = 6,
	EPILOGUE_TABLE_ENTRIES = 16, // of a switch
	EPILOGUE_POPS_KNOWN = 1024,
	EPILOGUE_LEAVE_BYTES = 48,
	EPILOGUE_MODRM_ABSOLUTE = 5, // of mode 0
	EPILOGUE_FAIL_FAST = 0x29,   // an interrupt that ends the process

	EPILOGUE_ADDRESS = 4, // bytes of a return address

	EAX = 0,
	ECX = 1,
	EDX = 2,
	EBX = 3,
	ESP = 4,
	EBP = 5,
	ESI = 6,
	EDI = 7,
	REGISTERS = 8,
};

enum epilogue_base {
	BASE_UNKNOWN,
	BASE_ESP,    // esp as it was at the start
	BASE_EBP,    // ebp as it was
	BASE_AT_ESP, // what lies in memory there
	BASE_AT_EBP,
};

struct epilogue_value {
	enum epilogue_base base;
	int32_t at; // of what lies in memory
	int32_t offset;
};

struct epilogue_state {
	uintptr_t pc;
	bool keeps_ebp;  // the ebp of the start lies
	int32_t kept_at; // there, from the esp of the start
	struct epilogue_value registers[REGISTERS];
};

struct epilogue_end {
	struct epilogue_value esp, ebp;
	int32_t pops;
};

struct epilogue_machine {
	bool counts_pops;     // nothing else is of interest
	uintptr_t goal;       // 0: none
	bool reached;         // then `state` stands before that call
	bool cut;             // not all was seen
	uint32_t insns_count; // that were followed
	uint32_t ends_count;
	uint32_t different; // of the ends that are kept
	uint32_t queue_count;
	struct epilogue_end ends[EPILOGUE_ANSWERS_MAX];
	struct epilogue_state state;
	struct epilogue_state queue[EPILOGUE_QUEUE];
	uint64_t seen[EPILOGUE_SEEN];
};

// The instruction in hand.
struct epilogue_at {
	struct insn insn;
	const uint8_t *op; // its opcode
	uintptr_t next;
	// If it has a modrm:
	uint8_t mode, reg, rm;
	bool has_address;
	struct epilogue_value address;
};

static struct epilogue_machine epilogue_outer, epilogue_inner;

static struct {
	uintptr_t function;
	int32_t pops;
} epilogue_known[EPILOGUE_POPS_KNOWN];

void epilogue_forget(void)
{
	memset(epilogue_known, 0, sizeof(epilogue_known));
}

static int32_t epilogue_32(const uint8_t *at)
{
	int32_t value;

	memcpy(&value, at, 4);
	return value;
}

// Whether the place of the state is seen for the first time, or for the first time with an esp that
// is known: the way around a call that removes nobody knows what may say more than the one through
// it.
static bool epilogue_is_new(struct epilogue_machine *machine)
{
	const struct epilogue_state *state = &machine->state;
	uint64_t place = (uint64_t)state->pc << 1;
	uint32_t at = (uint32_t)state->pc * 0x9e3779b1u >> 20 & (EPILOGUE_SEEN - 1);

	place |= state->registers[ESP].base != BASE_UNKNOWN;
	for (; machine->seen[at]; at = (at + 1) & (EPILOGUE_SEEN - 1)) {
		if (machine->seen[at] == place || machine->seen[at] == (place | 1))
			return false;
		if (machine->seen[at] >> 1 == state->pc)
			break;
	}
	machine->seen[at] = place;
	return true;
}

// ---- Values ---------------------------------------------------------------------------------

static void epilogue_lose(struct epilogue_state *state, uint32_t which)
{
	state->registers[which] = (struct epilogue_value){ .base = BASE_UNKNOWN };
}

static void epilogue_add(struct epilogue_state *state, uint32_t which, int32_t bytes)
{
	state->registers[which].offset += bytes;
}

static struct epilogue_value epilogue_load(struct epilogue_value address)
{
	if (address.base == BASE_ESP)
		return (struct epilogue_value){ .base = BASE_AT_ESP, .at = address.offset };
	if (address.base == BASE_EBP)
		return (struct epilogue_value){ .base = BASE_AT_EBP, .at = address.offset };
	return (struct epilogue_value){ .base = BASE_UNKNOWN };
}

// `which` is stored at an address: it may be the caller's ebp.
static void epilogue_store(struct epilogue_state *state, uint32_t which,
			   struct epilogue_value address)
{
	const struct epilogue_value *value = &state->registers[which];

	if (which == EBP && value->base == BASE_EBP && value->offset == 0 &&
	    address.base == BASE_ESP && !state->keeps_ebp) {
		state->keeps_ebp = true;
		state->kept_at = address.offset;
	}
}

static void epilogue_pop(struct epilogue_state *state, uint32_t which)
{
	struct epilogue_value value = epilogue_load(state->registers[ESP]);

	epilogue_add(state, ESP, 4);
	state->registers[which] = value;
}

static void epilogue_leave(struct epilogue_state *state)
{
	state->registers[ESP] = state->registers[EBP];
	epilogue_pop(state, EBP);
}

// What any function may change.
static void epilogue_called(struct epilogue_state *state, int32_t pops)
{
	epilogue_lose(state, EAX);
	epilogue_lose(state, ECX);
	epilogue_lose(state, EDX);
	if (pops == EPILOGUE_POPS_UNKNOWN)
		epilogue_lose(state, ESP);
	else
		epilogue_add(state, ESP, pops);
}

// The operand of the modrm at `at`.
static void epilogue_operand(struct epilogue_at *at, const uint8_t *modrm,
			     const struct epilogue_state *state)
{
	uint32_t base = modrm[0] & 7;
	const uint8_t *more = modrm + 1;

	at->mode = modrm[0] >> 6;
	at->reg = modrm[0] >> 3 & 7;
	at->rm = modrm[0] & 7;
	at->has_address = at->mode != 3;
	at->address = (struct epilogue_value){ .base = BASE_UNKNOWN };
	if (at->mode == 3 || at->insn.narrow)
		return;
	if (base == ESP) { // a byte of scale, index and base
		if ((more[0] >> 3 & 7) != ESP)
			return;
		base = *more++ & 7;
	}
	if (at->mode == 0 && base == EPILOGUE_MODRM_ABSOLUTE)
		return;
	at->address = state->registers[base];
	if (at->mode == 1)
		at->address.offset += (int8_t)more[0];
	else if (at->mode == 2)
		at->address.offset += epilogue_32(more);
}

// ---- Instructions ---------------------------------------------------------------------------

// A register of 32 bits, or the one that a register of 8 bits is a part of, has another value.
static void epilogue_lose_rm(struct epilogue_state *state, const struct epilogue_at *at, bool byte)
{
	if (at->mode == 3)
		epilogue_lose(state, byte ? at->rm & 3u : at->rm);
}

static void epilogue_lose_reg(struct epilogue_state *state, const struct epilogue_at *at, bool byte)
{
	epilogue_lose(state, byte ? at->reg & 3u : at->reg);
}

static void epilogue_push(struct epilogue_state *state, const struct epilogue_at *at)
{
	if (at->insn.narrow)
		epilogue_lose(state, ESP);
	else
		epilogue_add(state, ESP, -4);
}

// add, or, adc, sbb, and, sub, xor, cmp with a number.
static void epilogue_with_number(struct epilogue_state *state, const struct epilogue_at *at)
{
	int32_t value;

	if (at->mode != 3 || at->reg == 7)
		return;
	value = at->op[0] == 0x83 ? (int8_t)at->op[2] : epilogue_32(at->op + 2);
	if (at->op[0] == 0x80 || at->insn.narrow || (at->reg != 0 && at->reg != 5))
		epilogue_lose_rm(state, at, at->op[0] == 0x80);
	else
		epilogue_add(state, at->rm, at->reg == 0 ? value : -value);
}

static void epilogue_arithmetic(struct epilogue_state *state, const struct epilogue_at *at)
{
	uint32_t form = at->op[0] & 7;

	if (at->op[0] >= 0x38 && at->op[0] < 0x3e) // cmp
		return;
	if (form < 2)
		epilogue_lose_rm(state, at, form == 0);
	else if (form < 4)
		epilogue_lose_reg(state, at, form == 2);
	else if (form < 6)
		epilogue_lose(state, EAX);
	else
		epilogue_add(state, ESP, form == 6 ? -4 : 4); // push and pop of segments
	if (form >= 6 && (at->op[0] & 0xe7) == 0x27)          // daa and its like are no pops
		epilogue_add(state, ESP, -4);
}

static void epilogue_move(struct epilogue_state *state, const struct epilogue_at *at)
{
	switch (at->op[0]) {
	case 0x88:
		epilogue_lose_rm(state, at, true);
		break;
	case 0x89:
		if (at->has_address)
			epilogue_store(state, at->reg, at->address);
		else if (at->insn.narrow)
			epilogue_lose_rm(state, at, false);
		else
			state->registers[at->rm] = state->registers[at->reg];
		break;
	case 0x8a:
		epilogue_lose_reg(state, at, true);
		break;
	case 0x8b:
		if (at->insn.narrow)
			epilogue_lose_reg(state, at, false);
		else
			state->registers[at->reg] = at->has_address ? epilogue_load(at->address)
								    : state->registers[at->rm];
		break;
	default: // lea
		state->registers[at->reg] = at->address;
		break;
	}
}

// Behind 0f: what writes registers.
static void epilogue_more(struct epilogue_state *state, const struct epilogue_at *at)
{
	uint8_t op = at->op[1];

	if ((op & 0xf0) == 0x40 || op == 0xaf || op == 0xb6 || op == 0xb7 ||
	    (op >= 0xbc && op <= 0xbf) || op == 0xb8 || op == 0x2c || op == 0x2d || op == 0x50 ||
	    op == 0xd7 || op == 0xc5 || op == 0x02 || op == 0x03)
		epilogue_lose_reg(state, at, false);
	else if ((op & 0xf0) == 0x90)
		epilogue_lose_rm(state, at, true);
	else if (op == 0xb0 || op == 0xb1 || op == 0xc7 || op == 0xa2 || op == 0x31 || op == 0x01 ||
		 op == 0x05 || op == 0x34)
		for (uint32_t i = EAX; i <= EBX; i++)
			epilogue_lose(state, i);
	else if (op >= 0xc8 && op < 0xd0)
		epilogue_lose(state, op & 7);
	else if (op == 0xa0 || op == 0xa8)
		epilogue_add(state, ESP, -4);
	else if (op == 0xa1 || op == 0xa9)
		epilogue_add(state, ESP, 4);
	if (op == 0xb1 || op == 0xc0 || op == 0xc1 || op == 0xa4 || op == 0xa5 || op == 0xac ||
	    op == 0xad || op == 0xab || op == 0xb3 || op == 0xbb || op == 0xba || op == 0x7e ||
	    op == 0xc7)
		epilogue_lose_rm(state, at, false);
	if (op == 0xc0 || op == 0xc1)
		epilogue_lose_reg(state, at, op == 0xc0);
}

// Instructions of which the opcode says what they write.
static void epilogue_other(struct epilogue_state *state, const struct epilogue_at *at)
{
	uint8_t op = at->op[0];

	switch (op) {
	case 0x60:
	case 0x61:
		for (uint32_t i = EAX; i < REGISTERS; i++)
			if (i != ESP && op == 0x61)
				epilogue_lose(state, i);
		epilogue_add(state, ESP, op == 0x60 ? -32 : 32);
		break;
	case 0x68:
	case 0x6a:
	case 0x9c:
		epilogue_push(state, at);
		break;
	case 0x9d:
		epilogue_add(state, ESP, 4);
		break;
	case 0x69:
	case 0x6b:
		epilogue_lose_reg(state, at, false);
		break;
	case 0x80:
	case 0x81:
	case 0x82:
	case 0x83:
		epilogue_with_number(state, at);
		break;
	case 0x86:
	case 0x87:
		epilogue_lose_reg(state, at, op == 0x86);
		epilogue_lose_rm(state, at, op == 0x86);
		break;
	case 0x88 ... 0x8b:
	case 0x8d:
		epilogue_move(state, at);
		break;
	case 0x8f:
		if (at->mode == 3)
			epilogue_pop(state, at->rm);
		else
			epilogue_add(state, ESP, 4);
		break;
	case 0x91 ... 0x97:
		epilogue_lose(state, op & 7);
		epilogue_lose(state, EAX);
		break;
	case 0x98:
	case 0x99:
	case 0x9f:
	case 0xa0:
	case 0xa1:
	case 0xd4 ... 0xd7:
	case 0xe4 ... 0xe7:
	case 0xec ... 0xef:
		epilogue_lose(state, EAX);
		epilogue_lose(state, EDX);
		break;
	case 0x6c ... 0x6f:
	case 0xa4 ... 0xa7:
	case 0xaa ... 0xaf:
		epilogue_lose(state, EAX);
		epilogue_lose(state, ECX);
		epilogue_lose(state, ESI);
		epilogue_lose(state, EDI);
		break;
	case 0xb0 ... 0xb7:
		epilogue_lose(state, op & 3);
		break;
	case 0xb8 ... 0xbf:
		epilogue_lose(state, op & 7);
		break;
	case 0xc0:
	case 0xc1:
	case 0xc6:
	case 0xc7:
	case 0xd0 ... 0xd3:
		epilogue_lose_rm(state, at, !(op & 1));
		break;
	case 0xc8:
		epilogue_lose(state, ESP);
		epilogue_lose(state, EBP);
		break;
	case 0xc9:
		epilogue_leave(state);
		break;
	case 0xf6:
	case 0xf7:
		if (at->reg == 2 || at->reg == 3)
			epilogue_lose_rm(state, at, op == 0xf6);
		if (at->reg >= 4) {
			epilogue_lose(state, EAX);
			epilogue_lose(state, EDX);
		}
		break;
	case 0xfe:
		epilogue_lose_rm(state, at, true);
		break;
	default:
		break;
	}
}

static void epilogue_plain(struct epilogue_state *state, const struct epilogue_at *at)
{
	uint8_t op = at->op[0];

	if (op == 0x0f)
		epilogue_more(state, at);
	else if (op < 0x40)
		epilogue_arithmetic(state, at);
	else if (op < 0x50)
		epilogue_add(state, op & 7, op < 0x48 ? 1 : -1);
	else if (op < 0x58) {
		epilogue_push(state, at);
		epilogue_store(state, op & 7, state->registers[ESP]);
	} else if (op < 0x60)
		epilogue_pop(state, op & 7);
	else
		epilogue_other(state, at);
}

// ---- Ways -----------------------------------------------------------------------------------

static void epilogue_later(struct epilogue_machine *machine, uintptr_t pc)
{
	struct epilogue_state *state;

	if (machine->queue_count == EPILOGUE_QUEUE) {
		machine->cut = true;
		return;
	}
	state = &machine->queue[machine->queue_count++];
	*state = machine->state;
	state->pc = pc;
}

static bool epilogue_equal(const struct epilogue_value *a, const struct epilogue_value *b)
{
	return a->base == b->base &&
	       (a->base == BASE_UNKNOWN ||
		(a->offset == b->offset && (a->base <= BASE_EBP || a->at == b->at)));
}

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

// Microsoft's functions with handlers end by a call of one that takes their frame down:
// mov esp, ebp; pop ebp; push ecx; ret.
static bool epilogue_takes_down(uintptr_t function)
{
	static const uint8_t ends[] = { 0x8b, 0xe5, 0x5d, 0x51, 0xc3 };
	uint32_t bytes;
	const uint8_t *code = epilogue_code(function, &bytes);

	for (uint32_t i = 0; code && i + sizeof(ends) <= bytes && i < EPILOGUE_LEAVE_BYTES; i++)
		if (memcmp(code + i, ends, sizeof(ends)) == 0)
			return true;
	return false;
}

// And they begin by a call of one that makes it, just inside of the return address:
// mov [esp+n], ebp; lea ebp, [esp+n].
static bool epilogue_sets_up(uintptr_t function)
{
	uint32_t bytes;
	const uint8_t *code = epilogue_code(function, &bytes);

	for (uint32_t i = 0; code && i + 8 <= bytes && i < EPILOGUE_LEAVE_BYTES; i++)
		if (memcmp(code + i, "\x89\x6c\x24", 3) == 0 &&
		    memcmp(code + i + 4, "\x8d\x6c\x24", 3) == 0 && code[i + 3] == code[i + 7])
			return true;
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

// Go on behind a call of `function`; 0: nobody knows what is called. False: it does not come back.
static bool epilogue_call(struct epilogue_machine *machine, uintptr_t function, uintptr_t next)
{
	int32_t pops = EPILOGUE_POPS_UNKNOWN;

	if (machine->goal && next == machine->goal) {
		machine->reached = true;
		return false;
	}
	if (machine->counts_pops)
		return true;
	if (function == next) { // where am I?
		epilogue_add(&machine->state, ESP, -4);
		return true;
	}
	if (function && epilogue_takes_down(function)) {
		epilogue_leave(&machine->state);
		return true;
	}
	if (function && machine->goal && epilogue_is_first(&machine->state) &&
	    epilogue_sets_up(function)) {
		epilogue_set_up(&machine->state);
		return true;
	}
	if (function)
		pops = epilogue_pops(function);
	if (pops == EPILOGUE_NO_RETURN)
		return false;
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

// The instructions ff. False: the way ends.
static bool epilogue_group(struct epilogue_machine *machine, const struct epilogue_at *at)
{
	struct epilogue_state *state = &machine->state;
	bool absolute = at->mode == 0 && at->rm == EPILOGUE_MODRM_ABSOLUTE;
	uintptr_t to = absolute && (at->reg == 2 || at->reg == 4)
			       ? epilogue_cell((uintptr_t)(uint32_t)epilogue_32(at->op + 2))
			       : 0;

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
			machine->cut = true;
		return false;
	case 6:
		epilogue_push(state, at);
		return true;
	default:
		machine->cut = true;
		return false;
	}
}

static uintptr_t epilogue_target(const struct epilogue_at *at)
{
	const uint8_t *field = at->op - at->insn.opcode_at + at->insn.relative_at;
	int32_t distance = at->insn.relative_bytes == 1 ? (int8_t)field[0] : epilogue_32(field);

	return at->next + (uintptr_t)distance;
}

// One instruction. False: the way ends here.
static bool epilogue_step(struct epilogue_machine *machine, struct epilogue_at *at)
{
	uint8_t op = at->op[0];

	machine->state.pc = at->next;
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
		if (!code || !epilogue_is_new(machine))
			return;
		if (!insn_decode(code + (state->pc - code_at), INSN_BYTES_MAX, false, &at.insn)) {
			machine->cut = true;
			return;
		}
		at.op = code + (state->pc - code_at) + at.insn.opcode_at;
		at.next = state->pc + at.insn.length;
		epilogue_operand(&at, at.op + (at.op[0] == 0x0f ? 2 : 1), state);
		if (!epilogue_step(machine, &at))
			return;
	}
	machine->cut = true;
}

static void epilogue_go(struct epilogue_machine *machine, uintptr_t from)
{
	uint32_t next = 0;

	machine->reached = machine->cut = false;
	machine->insns_count = machine->ends_count = machine->different = 0;
	machine->queue_count = 0;
	memset(machine->seen, 0, sizeof(machine->seen));
	memset(&machine->state, 0, sizeof(machine->state));
	machine->state.registers[ESP].base = BASE_ESP;
	machine->state.registers[EBP].base = BASE_EBP;
	machine->state.pc = from;
	epilogue_follow(machine);
	while (!machine->reached && next < machine->queue_count) {
		if (!machine->goal && machine->ends_count >= EPILOGUE_ENDS_ENOUGH)
			break;
		machine->state = machine->queue[next++];
		epilogue_follow(machine);
	}
}

// ---- Questions ------------------------------------------------------------------------------

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
	if (end->esp.base == BASE_EBP && by_ebp)
		return epilogue_make(UNWIND_RBP, cfa, true, kept);
	if (end->esp.base == BASE_AT_EBP && by_ebp && cfa == 0)
		return epilogue_make(UNWIND_RBP_DEREF, end->esp.at, true, end->ebp.at);
	return UNWIND_NONE;
}

void epilogue_run(uintptr_t pc, struct epilogue_answer *answer)
{
	struct epilogue_machine *machine = &epilogue_outer;

	machine->counts_pops = false;
	machine->goal = 0;
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
		while (same < answer->count && answer->rules[same] != rule)
			same++;
		answer->rules[same] = rule;
		answer->count += same == answer->count;
	}
}

enum epilogue_reach epilogue_reaches(uintptr_t function, uintptr_t pc, unwind_rule *rule)
{
	struct epilogue_machine *machine = &epilogue_outer;
	const struct epilogue_state *state = &machine->state;
	const struct epilogue_value *esp = &state->registers[ESP], *ebp = &state->registers[EBP];
	int32_t kept;
	bool same;

	*rule = UNWIND_NONE;
	machine->counts_pops = false;
	machine->goal = pc;
	epilogue_go(machine, function);
	if (!machine->reached)
		return machine->cut ? EPILOGUE_MAYBE : EPILOGUE_NEVER;
	same = ebp->base == BASE_EBP && ebp->offset == 0;
	kept = state->kept_at - EPILOGUE_ADDRESS;
	if (!same && !state->keeps_ebp)
		return EPILOGUE_REACHES;
	if (esp->base == BASE_ESP && esp->offset <= 0)
		*rule = epilogue_make(UNWIND_RSP, EPILOGUE_ADDRESS - esp->offset, !same, kept);
	else if (ebp->base == BASE_ESP && ebp->offset < 0)
		*rule = epilogue_make(UNWIND_RBP, EPILOGUE_ADDRESS - ebp->offset, true, kept);
	return EPILOGUE_REACHES;
}
