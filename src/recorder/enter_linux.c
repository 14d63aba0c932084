#include "recorder/enter_linux.h"

#include "recorder/allocators_linux.h"
#include "recorder/hook_linux.h"
#include "recorder/inside_linux.h"
#include "recorder/insn.h"
#include "recorder/kernel.h"
#include "recorder/notes.h"
#include "recorder/relocate.h"
#include "recorder/scope_linux.h"
#include "recorder/text.h"
#include "recorder/vm.h"
#include "wire/lane_event.h"

enum {
	ENTER_WIDE = sizeof(void *) == 8,
	ENTER_PAGES_BYTES = 8 * KERNEL_PAGE,
	ENTER_ONE_BYTES = RELOCATE_BYTES_MAX + RELOCATE_FAR_BYTES,
	ENTER_PATCHES_MAX = ENTER_PAGES_BYTES / ENTER_ONE_BYTES,
	ENTER_STEP = 1 << 20,
	ENTER_REACH = 0x70000000, // of a jump, with something to spare
	ENTER_LOOK_BYTES = 256,   // of a function
	ENTER_JUMPS_MAX = 4,      // that are followed
	ENTER_TEXT_MAX = 512,
};

// Every hook that can be entered, in a section of its own.
extern struct hook_entry __start_entered[] HIDDEN;
extern struct hook_entry __stop_entered[] HIDDEN;

// One function: where it begins, and where its beginning is now.
struct enter_patch {
	uint8_t *at;
	const uint8_t *trampoline; // NULL: it could not be moved
};

static struct enter_patch enter_patches[ENTER_PATCHES_MAX];
static uint32_t enter_count, enter_done;
static uint8_t *enter_page;
static uint32_t enter_used;
static char enter_refused[ENTER_TEXT_MAX]; // names, and why

static const char *enter_why(enum relocate_reason reason)
{
	switch (reason) {
	case RELOCATE_UNKNOWN:
		return "begins with an instruction that is not known";
	case RELOCATE_BRANCH:
		return "begins with a branch that cannot be moved";
	case RELOCATE_REACH:
		return "begins with an operand that would be out of reach";
	case RELOCATE_SHORT:
		return "is too short";
	default:
		return "may not be changed";
	}
}

static void enter_refuse(const char *name, const char *why)
{
	size_t used = text_length(enter_refused);
	const char *parts[] = { used ? ", " : "", name, " ", why };

	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		size_t length = text_length(parts[i]);

		if (used + length >= sizeof(enter_refused))
			return;
		memcpy(enter_refused + used, parts[i], length + 1);
		used += length;
	}
}

static bool enter_find_page_at(uintptr_t at)
{
	long got = kernel_map(
		at, ENTER_PAGES_BYTES, KERNEL_PROT_READ | KERNEL_PROT_WRITE,
		KERNEL_MAP_PRIVATE | KERNEL_MAP_ANONYMOUS | KERNEL_MAP_FIXED_NOREPLACE, -1, 0);

	if (kernel_failed(got))
		return false;
	enter_page = (uint8_t *)got;
	vm_own(enter_page, ENTER_PAGES_BYTES, false);
	return true;
}

// Pages within reach of all of the executable: below it if that can be, since above it its heap
// grows.
static bool enter_find_page(void)
{
	uintptr_t start, end, reach;

	if (!scope_span(scope_objects(), &start, &end) || end - start > ENTER_REACH)
		return false;
	reach = ENTER_REACH - (end - start);
	start &= ~(uintptr_t)(ENTER_STEP - 1);
	end = (end + ENTER_STEP) & ~(uintptr_t)(ENTER_STEP - 1);
	for (uintptr_t far = ENTER_STEP; far < reach && far < start; far += ENTER_STEP) {
		if (enter_find_page_at(start - far))
			return true;
	}
	for (uintptr_t far = reach; far > ENTER_STEP; far -= ENTER_STEP) {
		if (enter_find_page_at(end + far))
			return true;
	}
	return false;
}

// May what was written be executed? Not everywhere: then nothing may lead to it.
static bool enter_protect(bool done)
{
	return !kernel_failed(
		kernel(__NR_mprotect, enter_page, ENTER_PAGES_BYTES,
		       KERNEL_PROT_READ | (done ? KERNEL_PROT_EXEC : KERNEL_PROT_WRITE)));
}

// Where a function really begins: `jmp body` is followed, but not into a table of addresses.
static uint8_t *enter_body(uint8_t *at)
{
	for (int i = 0; i < ENTER_JUMPS_MAX; i++) {
		const uint8_t *jump = at;
		struct insn insn;
		int32_t far;
		uint8_t *to;

		if (memcmp(jump, "\363\017\036", 3) == 0) // endbr
			jump += 4;
		if (!insn_decode(jump, INSN_BYTES_MAX, ENTER_WIDE, &insn) || !insn.relative_at ||
		    insn.opcode_at || (jump[0] != 0xe9 && jump[0] != 0xeb))
			return at;
		memcpy(&far, jump + insn.relative_at, 4);
		to = (uint8_t *)jump + insn.length + (jump[0] == 0xeb ? (int8_t)jump[1] : far);
		jump = to;
		if (memcmp(jump, "\363\017\036", 3) == 0)
			jump += 4;
		if (jump[0] == 0xff || (jump[0] == 0xf2 && jump[1] == 0xff))
			return at;
		at = to;
	}
	return at;
}

// The jump, where the code may be changed.
static bool enter_write(uint8_t *at, const uint8_t *jump)
{
	uintptr_t page = (uintptr_t)at & ~(uintptr_t)(KERNEL_PAGE - 1);
	uintptr_t end = ((uintptr_t)at + RELOCATE_JUMP_BYTES + KERNEL_PAGE - 1) &
			~(uintptr_t)(KERNEL_PAGE - 1);

	if (kernel_failed(kernel(__NR_mprotect, page, end - page,
				 KERNEL_PROT_READ | KERNEL_PROT_WRITE | KERNEL_PROT_EXEC)))
		return false;
	memcpy(at, jump, RELOCATE_JUMP_BYTES);
	kernel(__NR_mprotect, page, end - page, KERNEL_PROT_READ | KERNEL_PROT_EXEC);
	return true;
}

// Make the function at patch->at begin with a jump to `hook`. NULL: done. Else why not.
static const char *enter_move(struct enter_patch *patch, void *hook)
{
	uint8_t *trampoline = enter_page + enter_used;
	const uint8_t *target = hook;
	uint8_t jump[RELOCATE_JUMP_BYTES];
	struct relocate moved;
	enum relocate_reason reason;

	reason = relocate_copy_walked(patch->at, ENTER_LOOK_BYTES, (uintptr_t)patch->at, trampoline,
				      (uintptr_t)trampoline, RELOCATE_JUMP_BYTES, ENTER_WIDE,
				      &moved);
	if (reason != RELOCATE_DONE)
		return enter_why(reason);
	if (ENTER_WIDE) { // the hook is out of a short jump's reach
		target = trampoline + moved.written;
		relocate_jump_far(trampoline + moved.written, (uintptr_t)hook);
	}
	if (!relocate_jump(jump, (uintptr_t)patch->at, (uintptr_t)target, ENTER_WIDE) ||
	    !enter_write(patch->at, jump))
		return enter_why(RELOCATE_DONE);
	enter_used += ENTER_ONE_BYTES;
	patch->trampoline = trampoline;
	return NULL;
}

static struct enter_patch *enter_find(const uint8_t *at)
{
	for (uint32_t i = 0; i < enter_count; i++) {
		if (enter_patches[i].at == at)
			return &enter_patches[i];
	}
	return NULL;
}

// The name is exported by the executable: enter what it means, unless that was done.
static void enter_one(const struct hook_entry *entry)
{
	uint8_t *found = scope_find(scope_objects(), entry->name);
	struct enter_patch *patch;
	const char *why;

	if (!found)
		return;
	found = enter_body(found);
	patch = enter_find(found);
	if (!patch) {
		if (enter_count == ENTER_PATCHES_MAX) {
			enter_refuse(entry->name, "comes when there is no room any more");
			return;
		}
		patch = &enter_patches[enter_count++];
		*patch = (struct enter_patch){ .at = found };
		why = enter_page ? enter_move(patch, entry->hook) : enter_why(RELOCATE_DONE);
		if (why)
			enter_refuse(entry->name, why);
		else
			enter_done++;
	}
	if (patch->trampoline && entry->real)
		*entry->real = (void *)(uintptr_t)patch->trampoline;
}

// The usual names are the allocator's if it has malloc: an operator new alone calls another one's.
static bool enter_is_usual(const struct hook_entry *entry)
{
	return !entry->real || text_after(entry->name, "_Z") ||
	       ((char *)entry->real >= (char *)&real_entered &&
		(char *)entry->real < (char *)(&real_entered + 1));
}

// Those whose hooks go by others' (`later`) come after these.
static void enter_all(bool usual, bool later)
{
	for (struct hook_entry *entry = __start_entered; entry < __stop_entered; entry++) {
		if (!entry->real == later && (usual || !enter_is_usual(entry)))
			enter_one(entry);
	}
}

void enter_start(void)
{
	const struct scope_object *program = scope_objects();
	bool usual = program && scope_find(program, "malloc");
	bool any = usual;

	for (struct hook_entry *entry = __start_entered; program && entry < __stop_entered; entry++)
		any |= !enter_is_usual(entry) && scope_find(program, entry->name);
	if (!any)
		return;
	if (enter_find_page() && (!enter_protect(true) || !enter_protect(false)))
		enter_page = NULL;
	enter_all(usual, false);
	if (usual && real_entered.free && real_entered.realloc)
		enter_all(usual, true);
	if (enter_page)
		enter_protect(true);
	if (enter_done) {
		inside_add_allocator(program);
		allocators_add(program, NOTE_SEEN_EXPORTED, NULL);
	}
	if (enter_refused[0])
		notes_message(NOTE_MESSAGE_ENTRIES, enter_refused);
}
