// scope: what is loaded into the process, read from the dynamic linker's own list.
//
// dlsym may allocate, lock and set dlerror; inside malloc we can have none of that. So the real
// functions behind our hooks are found here, by walking the list of loaded objects (link_map) and
// their symbol tables, exactly as the linker's next-in-scope rule (RTLD_NEXT) would.
//
// Works before any constructor has run. Takes no lock: call it while the program cannot be
// loading libraries at the same time (first use), or for symbols of libc and the linker only.
#pragma once

#include "recorder/elf.h"
#include "wire/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// An object in the linker's list. The head of glibc's and musl's struct link_map (<link.h>).
struct scope_object {
	uintptr_t bias;
	const char *name; // path; "" for the executable
	const struct elf_pair *dynamic;
	struct scope_object *next;
	struct scope_object *previous;
};

// The first object, or NULL.
HIDDEN struct scope_object *scope_objects(void);

// Ourselves, or NULL.
HIDDEN struct scope_object *scope_ourselves(void);

// Whether we were loaded when the program ran already: after the C library.
HIDDEN bool scope_is_late(void);

// Address of the function `name` in the first object after ours (where we came late, or into a
// static program, of all but ours) that defines it; NULL if none does. `*object` (may be NULL) says
// which.
HIDDEN void *scope_next(const char *name, struct scope_object **object);

// Address of the function `name` in the first object before ours (the executable, mostly) that
// defines it: what all others find instead of ours. NULL: none, or we came late.
HIDDEN void *scope_before(const char *name);

// What makes system calls for the program: the C library, or a static program itself. NULL: nobody.
HIDDEN struct scope_object *scope_libc(void);

// Address of `name` in this object alone, or NULL.
HIDDEN void *scope_find(const struct scope_object *object, const char *name);
HIDDEN void *scope_find_data(const struct scope_object *object, const char *name);

// Whether it is linked so that it calls itself what it defines, whoever comes before (-Bsymbolic;
// -Bsymbolic-functions leaves no trace).
HIDDEN bool scope_is_symbolic(const struct scope_object *object);

// Of an object's symbols: the one that was given last, and how many there are. Begins with { 0 }.
struct scope_asked {
	uint32_t at, count;
};

// The name of the next function or variable that the object asks others for. NULL: there is none.
HIDDEN const char *scope_next_asked(const struct scope_object *object, struct scope_asked *asked);

// Whether the object asks others for the function.
HIDDEN bool scope_asks(const struct scope_object *object, const char *name);

// Whether the object calls the function at `target` by this name: the linker has put it there, or
// will at the first call. Of 32 bits alone.
HIDDEN bool scope_calls(const struct scope_object *object, const char *name, const void *target);

// The objects of the next namespace after the first (dlmopen); `*at` is NULL at first. NULL: there
// are no more.
HIDDEN const struct scope_object *scope_next_namespace(const void **at);

// The program headers of a loaded object, which are after its ELF header or, of an executable,
// where the kernel says; NULL: not found.
HIDDEN const struct elf_program *scope_programs(const struct scope_object *object, uint16_t *count);

// The build-id among the notes that this header of an object speaks of, 32 bytes at most; or NULL.
HIDDEN const uint8_t *scope_build_id(uintptr_t bias, const struct elf_program *note,
				     uint32_t *length);

// From its first mapped byte to after its last one. False: it is not known.
HIDDEN bool scope_span(const struct scope_object *object, uintptr_t *start, uintptr_t *end);

// Whether the object names `other` among those that it needs.
HIDDEN bool scope_needs(const struct scope_object *object, const struct scope_object *other);

// Whether it is the dynamic linker.
HIDDEN bool scope_is_linker(const struct scope_object *object);

// The value of `name` in the environment that the kernel gave the process, or NULL.
HIDDEN const char *scope_environment(const char *name);

// Whether libraries look on at its linking, as LD_AUDIT or the executable has it (DT_AUDIT,
// DT_DEPAUDIT; the linker asks no library for them). They have a C library of their own.
HIDDEN bool scope_is_audited(void);

// Whether it runs inside valgrind, which loads a library of its own into each program.
HIDDEN bool scope_is_valgrinds(void);

// Whether it is QEMU's emulator of single programs: what it runs is no code of the processor.
HIDDEN bool scope_is_emulator(void);

// Whether the executable is Go's, with C's parts or without.
HIDDEN bool scope_is_go(void);

// A value of the auxiliary vector (AT_…), or 0.
HIDDEN uintptr_t scope_auxiliary(uint32_t type);

// Where the program's arguments are, each with its NUL, and how many bytes they have. NULL: that is
// not known (musl, or the linker was executed itself). Before the program runs: it may write there.
HIDDEN const char *scope_arguments(size_t *bytes);

// The highest address of the main thread's stack that held arguments, or 0.
HIDDEN uintptr_t scope_stack_end(void);
