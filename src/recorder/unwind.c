#include "recorder/unwind.h"

#include "recorder/cfi.h"
#include "recorder/codemap.h"
#include "recorder/kernel.h"
#include "recorder/recording.h"
#include "recorder/scope.h"
#include "recorder/text.h"

enum {
	AT_BASE = 7,
	AT_ENTRY = 9,
	UNWIND_ENTRY_BYTES = 64,
	UNWIND_BYTES = UNWIND_SETS * UNWIND_WAYS * sizeof(struct unwind_entry),
	UNWIND_MANY = 4096,
	UNWIND_MEASURE_MIN = 1024,
};

_Static_assert(UNWIND_BYTES == 2 << 20, "the table is one huge page");

struct unwind_entry *unwind_table;

bool unwind_start(void)
{
	uint8_t *pages;

	if (unwind_table)
		return true;
	pages = recording_pages(2 * (size_t)UNWIND_BYTES, false);
	if (!pages)
		return false;
	pages += -(uintptr_t)pages & (UNWIND_BYTES - 1);
	unwind_table = (struct unwind_entry *)pages;
	return true;
}

// Many rules are in use: one huge page misses the translation buffer less often than 512 small
// ones. Before that it would cost time and memory for nothing. Not every kernel can.
static void unwind_collapse(void)
{
	kernel(__NR_madvise, unwind_table, UNWIND_BYTES, KERNEL_MADV_HUGEPAGE);
	kernel(__NR_madvise, unwind_table, UNWIND_BYTES, KERNEL_MADV_COLLAPSE);
}

void unwind_forget(void)
{
	for (size_t i = 0; i < UNWIND_SETS * UNWIND_WAYS; i++)
		__atomic_store_n(&unwind_table[i].rule, 0, __ATOMIC_RELAXED);
}

// musl's and others' signal return has no .eh_frame: mov $15,%rax; syscall.
static bool unwind_is_sigreturn(uintptr_t pc)
{
	static const uint8_t code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 };

	return memcmp((const void *)pc, code, sizeof(code)) == 0;
}

// Code without .eh_frame from which everything comes: the linker's entry, which runs constructors
// (with musl the linker is libc as well: the start of threads), and the executable's.
static bool unwind_is_entry(uintptr_t pc, const struct codemap_place *place)
{
	uintptr_t entry = scope_auxiliary(AT_ENTRY);

	if (place->start && place->start == scope_auxiliary(AT_BASE))
		return true;
	return pc >= entry && pc - entry < UNWIND_ENTRY_BYTES;
}

static unwind_rule unwind_make_rule(uint64_t key)
{
	uintptr_t exact_pc = key & ~UNWIND_EXACT;
	uintptr_t pc = key & UNWIND_EXACT ? exact_pc : exact_pc - 1;
	struct codemap_place place = codemap_find(pc);
	bool starts_here = false;
	unwind_rule rule = UNWIND_GUESS;
	uint32_t frame;

	if (place.eh_header)
		rule = cfi_compile(place.eh_header, pc, exact_pc, &starts_here);
	else if (place.module)
		rule = UNWIND_GUESS_BLIND;
	if (unwind_kind(rule) == UNWIND_NONE) {
		if (starts_here && !(key & UNWIND_EXACT))
			return UNWIND_END_HERE; // makecontext's trampoline
		if (unwind_is_sigreturn(exact_pc))
			rule = UNWIND_SIGNAL;
		else if (unwind_is_entry(pc, &place))
			rule = UNWIND_END;
		else
			rule = UNWIND_GUESS_BLIND;
	}
	if (unwind_kind(rule) == UNWIND_RSP && unwind_cfa_offset(rule) < 8)
		rule = UNWIND_STOP; // it would not lead outwards
	frame = codemap_frame(pc, place.module, key & UNWIND_EXACT ? SEGMENT_FRAME_EXACT_PC : 0);
	return rule | (uint64_t)frame << 16;
}

static void unwind_put(uint64_t key, unwind_rule rule)
{
	static uint32_t turn;
	struct unwind_entry *set = unwind_set(key);
	uint32_t way = 0;

	while (way < UNWIND_WAYS && __atomic_load_n(&set[way].rule, __ATOMIC_RELAXED))
		way++;
	if (way == UNWIND_WAYS)
		way = turn++ % UNWIND_WAYS;
	__atomic_store_n(&set[way].rule, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&set[way].check, key ^ rule, __ATOMIC_RELAXED);
	__atomic_store_n(&set[way].rule, rule, __ATOMIC_RELEASE);
}

static COLD unwind_rule unwind_find_slow(uint64_t key)
{
	uint64_t signals = kernel_block_signals();
	unwind_rule rule;
	uint32_t frame;

	recording_lock(&recording_state->code_lock);
	rule = unwind_make_rule(key);
	unwind_put(key, rule);
	frame = unwind_frame(rule);
	if (frame >= UNWIND_MEASURE_MIN && (frame & (frame - 1)) == 0) { // now and then
		if (frame == UNWIND_MANY)
			unwind_collapse();
		recording_measure();
	}
	recording_unlock(&recording_state->code_lock);
	kernel_restore_signals(signals);
	return rule;
}

unwind_rule unwind_find_more(uint64_t key)
{
	const struct unwind_entry *set = unwind_set(key);

	for (int way = 1; way < UNWIND_WAYS; way++) {
		unwind_rule rule = unwind_match(&set[way], key);

		if (likely(rule))
			return rule;
	}
	return unwind_find_slow(key);
}
