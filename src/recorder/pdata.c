#include "recorder/pdata.h"

enum {
	PDATA_DIRECTORY = 3,
	PDATA_RBP = 5,
	PDATA_CHAIN_MAX = 32,
	PDATA_OFFSET_MAX = 1 << 14, // of rbp's place that a rule can hold
	PDATA_FLAG_CHAINED = 4,

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

struct pdata_function {
	uint32_t begin, end, info; // from the image's base
};

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
	bool lost;      // a rule cannot say it
	int64_t offset; // of what the stack pointer would be now
	int64_t rbp_at;
};

static uint32_t pdata_32(const uint8_t *at)
{
	uint32_t value;

	__builtin_memcpy(&value, at, 4);
	return value;
}

const struct pdata_function *pdata_find(const uint8_t *base, uintptr_t pc)
{
	const uint8_t *headers = base + pdata_32(base + 0x3c);
	const uint8_t *directory = headers + 24 + 112 + 8 * PDATA_DIRECTORY;
	const struct pdata_function *table = (const void *)(base + pdata_32(directory));
	size_t low = 0, high = pdata_32(directory + 4) / sizeof(*table);
	uint32_t at = (uint32_t)(pc - (uintptr_t)base);

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

static void pdata_stores(struct pdata_state *state, uint32_t which, bool by_frame, int64_t at)
{
	if (which != PDATA_RBP)
		return;
	state->stores_rbp = true;
	state->stores_by_frame = by_frame;
	state->rbp_at = at;
}

// Undo one code. Returns how many places of the list it takes.
static uint32_t pdata_undo(struct pdata_state *state, const struct pdata_info *info, uint32_t i,
			   bool done)
{
	const uint8_t *more = (const uint8_t *)&info->codes[i + 1];
	uint32_t op = info->codes[i].op & 15, about = info->codes[i].op >> 4;
	int64_t frame_at = (info->frame >> 4) * 16;
	bool framed = (info->frame & 15) != 0;
	uint32_t places = op == PDATA_SAVE || op == PDATA_SAVE_XMM ? 2
			  : op == PDATA_SAVE_FAR || op == PDATA_SAVE_XMM_FAR ||
					  (op == PDATA_ALLOC_LARGE && about)
				  ? 3
			  : op == PDATA_ALLOC_LARGE || op == PDATA_EPILOG || op == PDATA_SPARE ? 2
											       : 1;

	if (op == PDATA_EPILOG)
		return (info->version_flags & 7) == 1 ? 2 : 1;
	if (!done) // the prologue has not come to it
		return places;
	switch (op) {
	case PDATA_PUSH:
		pdata_stores(state, about, state->by_frame, state->offset);
		state->offset += 8;
		break;
	case PDATA_ALLOC_LARGE:
		state->offset += about ? (int64_t)pdata_32(more) : (more[0] | more[1] << 8) * 8;
		break;
	case PDATA_ALLOC_SMALL:
		state->offset += about * 8 + 8;
		break;
	case PDATA_SET_FRAME:
		if ((info->frame & 15) != PDATA_RBP)
			state->lost = true;
		state->by_frame = true;
		state->offset = -frame_at;
		break;
	case PDATA_SAVE:
	case PDATA_SAVE_FAR:
		pdata_stores(state, about, framed,
			     (framed ? -frame_at : 0) +
				     (op == PDATA_SAVE ? (int64_t)(more[0] | more[1] << 8) * 8
						       : (int64_t)pdata_32(more)));
		break;
	case PDATA_SAVE_XMM:
	case PDATA_SAVE_XMM_FAR:
		break;
	default:
		state->lost = true;
		break;
	}
	return places;
}

// All codes of one function's part that lie before `at`; 0: all. Returns the part that it
// continues.
static const struct pdata_function *pdata_undo_all(struct pdata_state *state, const uint8_t *base,
						   const struct pdata_function *function,
						   uint32_t at)
{
	const struct pdata_info *info = (const void *)(base + function->info);
	uint32_t from = at - function->begin;
	bool whole = at == 0 || from >= info->prolog_bytes;

	for (uint32_t i = 0; i < info->codes_count;)
		i += pdata_undo(state, info, i, whole || from >= info->codes[i].at);
	if (!(info->version_flags >> 3 & PDATA_FLAG_CHAINED))
		return NULL;
	return (const void *)&info->codes[(info->codes_count + 1u) & ~1u];
}

static unwind_rule pdata_rule(const struct pdata_state *state)
{
	int64_t rbp_offset = 0;

	if (state->lost || (state->offset & 7))
		return UNWIND_STOP;
	if (state->stores_rbp) {
		rbp_offset = state->rbp_at - state->offset - 8;
		if (state->stores_by_frame != state->by_frame || rbp_offset >= 0 ||
		    rbp_offset <= -PDATA_OFFSET_MAX || (rbp_offset & 7))
			return UNWIND_STOP;
	}
	return unwind_make(state->by_frame ? UNWIND_RBP : UNWIND_RSP, state->offset + 8, rbp_offset,
			   0);
}

unwind_rule pdata_compile(const struct codemap_place *place, uintptr_t pc)
{
	const uint8_t *base = (const uint8_t *)place->start;
	const struct pdata_function *function = place->function;
	struct pdata_state state = { 0 };
	uint32_t at = (uint32_t)(pc - place->start);

	if (sizeof(void *) == 4 || !base)
		return UNWIND_GUESS_BLIND;
	if (!function)
		return unwind_make(UNWIND_RSP, 8, 0, 0); // it calls nobody, or so its image says
	for (int i = 0; function && i < PDATA_CHAIN_MAX; i++) {
		if (function->info & 1) { // the part of another one
			function = (const void *)(base + (function->info & ~1u));
			continue;
		}
		function = pdata_undo_all(&state, base, function, at);
		at = 0; // of what it is chained to, all of the prologue has run
	}
	return pdata_rule(&state);
}
