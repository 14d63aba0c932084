// placer: puts the recorder into a process that has no dynamic linker: maps its file, makes its
// addresses and the list of objects that it reads, and writes both. By a thread of the process's
// that is borrowed (launch/tracee_linux.h).
//
//     placer_open      the recorder's file, here
//     placer_map       it is mapped there, not yet relocated
//     placer_write     now it is, and has its list
//     placer_close
//
// Who calls decides where the recorder's thread-local variables are (`thread_offset`), and puts
// there what they begin as.
#pragma once

#include "base/err.h"
#include "launch/tracee_linux.h"

#include <elf.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The list of objects that the recorder reads (scope_linux.c), as a dynamic linker has it:
// `link_map` of <link.h>, with addresses of the process.
struct placer_object {
	uint64_t bias, name, dynamic, next, previous;
};

// Where the list begins: `r_debug` of <link.h>.
struct placer_debug {
	int32_t version, padding;
	uint64_t objects, stop;
	int32_t state, padding2;
	uint64_t linker, next;
};

// What is mapped beside the recorder and stays: the list, and its texts.
struct placer_block {
	struct placer_debug debug;
	struct placer_object program, recorder;
	uint64_t stack_end;
	char empty[8];
	char path[PATH_MAX];
};

// Fields that a function's comment names are set before it is called, the others by what is said at
// them. Addresses are those of the process.
struct placer {
	pid_t pid;
	struct tracee_loan *loan;
	const char *path;       // of the recorder's file
	uint64_t bias;          // of the program
	uint64_t stack_end;     // where its arguments are
	uint64_t block;         // where a struct placer_block may be written
	uint64_t thread_offset; // of the recorder's variables, below the thread pointer
	const Elf64_Phdr *tls;  // placer_open: what they are
	uint64_t recorder;      // placer_map: where it is
	uint64_t entry;         // placer_write: tidemark_late_v1

	const uint8_t *library; // private: its file, mapped here
	size_t library_bytes;
	uint64_t recorder_bytes;
};

// `path` is set. Until placer_close, which accepts { 0 }.
bool placer_open(struct placer *placer, struct err *err);
void placer_close(struct placer *placer);

// `size` bytes of memory there, all zero, which stay. 0: there is none, as *err says.
uint64_t placer_room(struct placer *placer, size_t size, struct err *err);

// `pid` and `loan` are set. The recorder's segments are mapped as they are in its file. False: *err
// says why; what was mapped is not unmapped.
bool placer_map(struct placer *placer, struct err *err);

// All else is set. `variables`: gets what the recorder's variables begin as, tls->p_filesz bytes.
bool placer_write(struct placer *placer, uint8_t *variables, struct err *err);

// `value` rounded up to a multiple of `align`, a power of two.
uint64_t placer_up(uint64_t value, uint64_t align);

// err says that `what` failed, `number` being a negative errno or 0. Returns false, for the caller
// to return.
bool placer_fail(pid_t pid, const char *what, int64_t number, struct err *err);
