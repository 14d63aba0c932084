// attacher, between its parts: the way in (attacher_linux.c), and the way out
// (attacher_leave_linux.c).
#pragma once

#include "launch/attacher_linux.h"
#include "launch/objects_linux.h"
#include "launch/tracee_linux.h"
#include "wire/attach.h"

enum {
	ATTACHER_STACK_WORDS = 2048, // that are looked at
	ATTACHER_NAP_NS = 1000000,   // between two tries; it grows
};

// What is known of one process.
// Addresses are those of the process. 0 where there is none, or it was not looked for yet.
struct attacher {
	pid_t pid;
	struct objects objects;
	struct loader_file *file; // of a program that is linked statically
	uint64_t bias;            // of that
	uint64_t gate;            // a system-call instruction
	uint64_t loader;          // dlopen
	uint64_t complainer;      // dlerror
	uint64_t entry;           // tidemark_late_v1; 0: the recorder is not there
	// What the recorder said to the last attacher_call.
	struct attach_call answer;
};

// The recorder does `verb`, by the borrowed thread; its answer is in attacher->answer. False: it
// could not be called.
bool attacher_call(struct attacher *attacher, struct tracee_loan *loan, enum attach_verb verb,
		   const char *session);

// Put the recorder into a program that is linked statically, all of whose threads are stopped, by
// the one that is borrowed. False: the process is as it was, but for memory that nothing leads to.
bool attacher_place(struct attacher *attacher, const struct tracee *tracee,
		    struct tracee_loan *loan, const char *library, struct err *err);

// Whether no thread is about to create one, whose variables would be laid out as they were.
bool attacher_may_place(struct attacher *attacher, const struct tracee *tracee);

// Whether the thread may come to that code: it is there, or its address is on the stack or in a
// register that outlasts a call.
bool attacher_may_come(const struct attacher *attacher, const struct tracee_thread *thread,
		       const struct attach_range *range);

// The list of patches of the last answer, read from the process, to be freed (mem_free). NULL:
// there is none.
struct attach_patch *attacher_list(const struct attacher *attacher);

// What a thread goes back to behind its signal handlers, `number` of them; where it is, for 0.
// False: there are not so many. Called for 0, 1, … with the same *at and *sp.
bool attacher_context(const struct attacher *attacher, const struct tracee_thread *thread,
		      int number, uint64_t *at, uint64_t *sp);

// Where `from` is, write `to` (both are of each patch). Returns how many there were.
uint32_t attacher_write(const struct tracee *tracee, const struct tracee_thread *thread,
			const struct attach_patch *list, uint32_t count, size_t from, size_t to);

// The code as it was; then, when nobody is inside any more, the recorder's memory. `session`: whose
// recorder it has to be; NULL: anybody's.
bool attacher_leave(struct attacher *attacher, const char *session,
		    struct attacher_figures *figures, struct err *err);
