// The program's symbol table is read from its file, and hashed once, since some hundred names are
// looked for. A name is what the whole program means by it only if it is global, or if all local
// functions of that name are at one address: two files that each have a static `init` have none
// that could be entered by it.
//
// For example, musl's `malloc` in a static program is global; in one that is position-independent,
// all of libc was made local by the linker, and there is one `malloc`: found in both.
#include "recorder/static_linux.h"

#include "recorder/enter_linux.h"
#include "recorder/hook_linux.h"
#include "recorder/hook_vm_linux.h"
#include "recorder/hook_wait_linux.h"
#include "recorder/kernel.h"
#include "recorder/object_file_linux.h"
#include "recorder/patch_linux.h"
#include "recorder/real_linux.h"
#include "recorder/recording.h"
#include "recorder/scope_linux.h"
#include "recorder/text.h"
#include "recorder/vm.h"
#include "wire/attach.h"

enum {
	STATIC_LOCAL = 0, // STB_LOCAL
	STATIC_DATA = 1,  // STT_OBJECT
	STATIC_FUNCTION = 2,
	STATIC_TABLE_LEAST = 1024,
};

static bool static_program;
static struct object_symbols static_symbols;
static uint32_t *static_table; // by hash: numbers of symbols; 0: free
static uint32_t static_mask;

bool static_is(void)
{
	return static_program;
}

static const char *static_name(const struct elf_symbol *symbol)
{
	return symbol->name < static_symbols.names_bytes ? static_symbols.names + symbol->name : "";
}

static bool static_is_wanted(const struct elf_symbol *symbol)
{
	uint8_t type = symbol->info & 0xf;

	return symbol->section && symbol->value && (type == STATIC_FUNCTION || type == STATIC_DATA);
}

// Open addressing, at most half full, of functions and data that are defined.
static bool static_hash_all(void)
{
	uint32_t size = STATIC_TABLE_LEAST;

	while (size < 2 * static_symbols.count)
		size *= 2;
	static_table = recording_pages(size * sizeof(*static_table), false);
	static_mask = size - 1;
	for (uint32_t i = 1; static_table && i < static_symbols.count; i++) {
		const struct elf_symbol *symbol = &static_symbols.symbols[i];
		uint32_t at = text_hash(static_name(symbol)) & static_mask;

		if (!static_is_wanted(symbol))
			continue;
		while (static_table[at])
			at = (at + 1) & static_mask;
		static_table[at] = i;
	}
	return static_table;
}

// A global symbol decides at once; local ones only if none differs.
void *static_find(const char *name, bool data)
{
	const struct elf_symbol *found = NULL;
	uint32_t at = text_hash(name) & static_mask;
	bool twice = false;

	for (; static_table && static_table[at]; at = (at + 1) & static_mask) {
		const struct elf_symbol *symbol = &static_symbols.symbols[static_table[at]];

		if ((symbol->info & 0xf) != (data ? STATIC_DATA : STATIC_FUNCTION) ||
		    !text_equal(static_name(symbol), name))
			continue;
		if (symbol->info >> 4 != STATIC_LOCAL)
			return (void *)(scope_objects()->bias + symbol->value);
		twice |= found && found->value != symbol->value;
		found = symbol;
	}
	return found && !twice ? (void *)(scope_objects()->bias + found->value) : NULL;
}

// The largest that any symbol at this address has; 0: none says.
uintptr_t static_size(uintptr_t at)
{
	uintptr_t bytes = 0;

	for (size_t i = 1; i < static_symbols.count; i++) {
		const struct elf_symbol *symbol = &static_symbols.symbols[i];

		if ((symbol->info & 0xf) == STATIC_FUNCTION && symbol->section &&
		    scope_objects()->bias + symbol->value == at && symbol->size > bytes)
			bytes = symbol->size;
	}
	return bytes;
}

// The symbol table stays mapped, for lookups in forked children.
static bool static_read(void)
{
	const struct scope_object *program = scope_objects();
	bool stripped;

	if (!program || !object_file_symbols(program, &static_symbols, &stripped))
		return false;
	for (int i = 0; i < 2; i++)
		vm_own(static_symbols.pages[i], static_symbols.pages_bytes[i], false);
	return static_hash_all();
}

// ---- tidemark.h ---------------------------------------------------------------------------------

// Each file of the program that includes it has a place for the address of our functions. An
// optimiser of the whole program may number them.
//
// A compiler may call a static variable of several files tidemark_place.0, tidemark_place.1 and so
// on; one of C++ mangles its name.
void static_fill_places(void)
{
	static const char name[] = "tidemark_place", mangled[] = "_ZL14tidemark_place";

	for (size_t i = 1; i < static_symbols.count; i++) {
		const struct elf_symbol *symbol = &static_symbols.symbols[i];
		const char *rest = text_after(static_name(symbol), name);

		if (!rest)
			rest = text_after(static_name(symbol), mangled);
		if (rest && (!*rest || *rest == '.') && (symbol->info & 0xf) == STATIC_DATA &&
		    symbol->section && symbol->size == sizeof(void *))
			*(const void **)(scope_objects()->bias + symbol->value) =
				&tidemark_client_v1;
	}
}

// ---- What asks the kernel -----------------------------------------------------------------------

// The hooks of hook_vm_linux.c, under the names by which the program calls what they are for.
static const struct {
	const char *name;
	void *hook;
	void **real;
	uint32_t place; // patch_linux.h; where that is seen, it need not be entered
} static_functions[] = {
#define STATIC_VM(name, place)                                  \
	{                                                       \
#name, (void *)name, (void **)&real.name, place \
	}
	STATIC_VM(mmap, KERNEL_NR_MMAP),  STATIC_VM(munmap, __NR_munmap),
	STATIC_VM(mremap, __NR_mremap),   STATIC_VM(brk, __NR_brk),
	STATIC_VM(sbrk, __NR_brk),        STATIC_VM(mprotect, __NR_mprotect),
	STATIC_VM(madvise, __NR_madvise), STATIC_VM(syscall, PATCH_NUMBERS),
	STATIC_VM(prctl, PATCH_NUMBERS),
#undef STATIC_VM
};

// A child is a process of the recording from its beginning on.
static void static_enter_fork(void)
{
	static const char *const names[] = { "_Fork", "__libc_fork", "fork" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		if (enter_function(names[i], (void *)_Fork, (void **)&real.bare_fork))
			return;
	}
}

// ---- Operators ----------------------------------------------------------------------------------

// Those of the C++ library call malloc, where they count. Only what an alignment adds to a size is
// noted before, without a frame of ours: an exception may pass.
#define STATIC_ALIGNED(name) void *name(size_t size, size_t alignment);
#define STATIC_ALIGNED_NOTHROW(name) void *name(size_t size, size_t alignment, const void *nothrow);
STATIC_ALIGNED(_ZnwmSt11align_val_t)
STATIC_ALIGNED(_ZnamSt11align_val_t)
STATIC_ALIGNED_NOTHROW(_ZnwmSt11align_val_tRKSt9nothrow_t)
STATIC_ALIGNED_NOTHROW(_ZnamSt11align_val_tRKSt9nothrow_t)

static struct {
	const char *name;
	void *hook;
	void *real;
} static_operators[] = {
	{ "_ZnwmSt11align_val_t", (void *)_ZnwmSt11align_val_t, NULL },
	{ "_ZnamSt11align_val_t", (void *)_ZnamSt11align_val_t, NULL },
	{ "_ZnwmSt11align_val_tRKSt9nothrow_t", (void *)_ZnwmSt11align_val_tRKSt9nothrow_t, NULL },
	{ "_ZnamSt11align_val_tRKSt9nothrow_t", (void *)_ZnamSt11align_val_tRKSt9nothrow_t, NULL },
};

enum { STATIC_OPERATORS = sizeof(static_operators) / sizeof(*static_operators) };

void *static_operator(const char *name)
{
	for (size_t i = 0; i < STATIC_OPERATORS; i++) {
		if (text_equal(static_operators[i].name, name))
			return static_operators[i].real;
	}
	return NULL;
}

// After the allocator was entered: functions that ask the kernel, operators, fork, and the ways to
// end.
void static_enter(void)
{
	if (!static_program)
		return;
	for (size_t i = 0; i < STATIC_OPERATORS && enter_skips_operators(); i++)
		enter_function(static_operators[i].name, static_operators[i].hook,
			       &static_operators[i].real);
	for (size_t i = 0; i < sizeof(static_functions) / sizeof(*static_functions); i++) {
		uint32_t place = static_functions[i].place;

		if (place == PATCH_NUMBERS || !patch_covers(place))
			enter_function(static_functions[i].name, static_functions[i].hook,
				       static_functions[i].real);
	}
	static_enter_fork();
	enter_function("wait4", (void *)wait4, (void **)&real.wait4);
	enter_function("waitid", (void *)waitid, (void **)&real.waitid);
	if (scope_find(scope_objects(), "_Exit") != scope_find(scope_objects(), "_exit"))
		enter_function("_exit", (void *)_exit, NULL);
	enter_function("_Exit", (void *)_exit, NULL);
}

// False: the program's file has no symbol table; then it is not recorded, which is said.
bool static_find_program(void)
{
	static_program = true;
	static_program = static_read();
	return static_program;
}

void static_forget(void)
{
	if (static_program)
		object_file_forget(&static_symbols);
}

// The recorder was put into a static program before its first instruction.
void static_begin(struct attach_call *call)
{
	if (!static_find_program()) {
		call->status = ATTACH_FAILED;
		return;
	}
	if (!recording_begin()) {
		recording_tell_why(&call->why, &call->error);
		call->status = ATTACH_FAILED;
		return;
	}
	static_fill_places();
	call->status = ATTACH_DONE;
}
