// objects: the files that another process has mapped as code, and the functions that they export.
//
// Read from its memory, by the tables that its dynamic linker uses, so that a library may have been
// replaced on disk since. Nothing that is read there is believed: every table is looked at
// in bounded steps, and what is not mapped is not there.
#pragma once

#include "collect/maps_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct loader_file_span;

struct objects_one {
	char *path; // as the kernel has it
	uint64_t device, inode;
	uint64_t start, end;           // from its first byte to behind its last one
	uint64_t code_start, code_end; // of these, what may be executed
	bool apart;                    // it is in another namespace than the program (dlmopen)
	// Of an allocator in it: code, functions of a jemalloc or mimalloc, and variables of a
	// glibc's that is linked in (objects_inside_linux.h); 0: none.
	struct loader_file_span *inside;
	size_t inside_count;
	uint64_t mallocx, mi_version, arena, parameters;
};

// The list, as it was when it was read: what is loaded or unloaded later is not in it.
struct objects {
	pid_t pid;
	bool narrow;                   // a process of 32 bits
	bool alone;                    // its program is linked statically, and is its C library
	uint64_t vdso_start, vdso_end; // the kernel's code there; 0: there is none
	struct objects_one *list;
	size_t count, capacity;
	char *text; // private: /proc/PID/maps
	size_t text_size;
};

// False: the list cannot be read (errno says why).
bool objects_read(struct objects *objects, pid_t pid);
void objects_fini(struct objects *objects); // accepts { 0 }

// The address of a function; 0: the object exports none of that name. One whose address its own
// code chooses (an ifunc) is none. *size: how long it is; NULL: that is not wanted.
uint64_t objects_symbol(const struct objects *objects, const struct objects_one *object,
			const char *name, uint64_t *size);

// What is to be added to an address of its file.
uint64_t objects_bias(const struct objects *objects, const struct objects_one *object);

// Whether that mapping is one of its file's in this place.
bool objects_has(const struct objects_one *object, const struct maps_line *line);

// Whether that mapping may be of variables: private, and written to.
bool objects_may_write(const struct maps_line *line);

// The variables of an object: the writable mappings of its file, and those without a file right
// after them. *words are to be freed. False: they cannot be read, or are too many to be believed.
bool objects_variables(const struct objects *objects, const struct objects_one *object,
		       uint64_t **words, size_t *count);

// Whether an address is among them.
bool objects_is_variable(const struct objects *objects, const struct objects_one *object,
			 uint64_t address);

// Whether it is the dynamic linker.
bool objects_is_linker(const struct objects_one *object);

// The object that an address is in, or NULL.
const struct objects_one *objects_at(const struct objects *objects, uint64_t address);

// Whether that is code.
bool objects_is_code(const struct objects *objects, uint64_t address);

// Its file's name begins so, and it is in the program's namespace; NULL: none is.
const struct objects_one *objects_named(const struct objects *objects, const char *beginning);

// The program's file, or NULL.
const struct objects_one *objects_program(const struct objects *objects);

// The C library, or NULL. musl's is the dynamic linker as well.
const struct objects_one *objects_libc(const struct objects *objects);

// Whether that is musl. Debian's name of its dynamic linker is a link to a file of a plainer name.
bool objects_has_musl(const struct objects *objects);

// Where the code is that signal handlers return to: the C library's, or the kernel's. False: it is
// not known.
bool objects_restorers(const struct objects *objects, uint64_t *start, uint64_t *end);

// A system-call instruction: in libc's `syscall`; where a program of 32 bits enters the kernel, in
// the kernel's code; of a static program the first one. 0: none was found.
uint64_t objects_gate(const struct objects *objects);
