// objects: the files that another process has mapped as code, and the functions that they export.
//
// Read from its memory, by the tables that its dynamic linker uses, so that a library may have been
// replaced on disk since. Nothing that is read there is believed: every table is looked at
// in bounded steps, and what is not mapped is not there.
#ifndef LAUNCH_OBJECTS_LINUX_H
#define LAUNCH_OBJECTS_LINUX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct objects_one {
	char *path; // as the kernel has it
	uint64_t device, inode;
	uint64_t start, end;           // from its first byte to behind its last one
	uint64_t code_start, code_end; // of these, what may be executed
};

struct objects {
	pid_t pid;
	bool narrow;                   // a process of 32 bits
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

// Whether it is the dynamic linker.
bool objects_is_linker(const struct objects_one *object);

// The object that an address is in, or NULL.
const struct objects_one *objects_at(const struct objects *objects, uint64_t address);

// Whether that is code.
bool objects_is_code(const struct objects *objects, uint64_t address);

// Its file's name begins so; NULL: none does.
const struct objects_one *objects_named(const struct objects *objects, const char *beginning);

// The C library, or NULL.
const struct objects_one *objects_libc(const struct objects *objects);

// Where the code is that signal handlers return to: the C library's, or the kernel's. False: it is
// not known.
bool objects_restorers(const struct objects *objects, uint64_t *start, uint64_t *end);

// A system-call instruction: in libc's `syscall`; where a program of 32 bits enters the kernel, in
// the kernel's code. 0: none was found.
uint64_t objects_gate(const struct objects *objects);

#endif
