// For example python has four threads: one sleeps, three wait for a lock.
//
//     thread 1   in clock_nanosleep: no lock of the allocator or the linker is its, so it can load
//                a library. It alone is stopped; dlopen and the recorder's start are called in it
//     threads 2  in futex, FUTEX_WAIT_BITSET, as conditions wait: they could, too. In FUTEX_WAIT,
//       to 4     as locks wait that may be the allocator's, they could not
//     all        are stopped. One that is at malloc + 3, where the first 5 bytes are to be a jump,
//                does single steps until it is past them. The jumps are written; all go on
//
// Of this program that took 1.7 ms, and 16 ms more in which the 488 blocks were read that it had.
#include "launch/attacher_own_linux.h"

#include "base/mem.h"
#include "launch/attachable_linux.h"
#include "launch/jemalloc_heap_linux.h"
#include "launch/mimalloc_heap_linux.h"
#include "launch/musl_heap_linux.h"
#include "launch/narrow_linux.h"
#include "launch/objects_inside_linux.h"
#include "launch/objects_linux.h"
#include "launch/tracee_linux.h"
#include "launch/tracer_linux.h"
#include "os/now.h"
#include "wire/attach.h"
#include "wire/segment.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	ATTACHER_LOAD_NOW = 2, // RTLD_NOW; its names are for no other library
	ATTACHER_STEPS_MAX = 64,
	ATTACHER_HANDLERS = 4, // of signals, each in another one
	ATTACHER_TRIES = 3000,
	ATTACHER_LIST_MAX = SEGMENT_RING_NOTES_BYTES / 2, // bytes of a list of mappings
	ATTACHER_STOP_MS = 2000,      // for threads to come where they can be stopped
	ATTACHER_SETTLES = 30,        // stops, until no thread is in the allocator
	ATTACHER_SETTLE_NS = 8000000, // in a stop
	ATTACHER_FRAME_BYTES = 4096,  // of functions that wait
	ATTACHER_STATE_FIRST = 0x20,  // where a thread's block says whether it has ended:
	ATTACHER_STATE_END = 0x60,    // 0x38 in musl 1.2
	ATTACHER_PATH_AT = 1024,      // in what a thread is lent, behind the call
};

// Since glibc 2.34 dlopen is in libc.so.6, before that in libdl.so.2; musl has all in one file.
static uint64_t attacher_find(const struct attacher *attacher, const char *name)
{
	static const char *const places[] = { "libc.so", "libc-", "libdl.so", "libdl-", "ld-musl" };
	uint64_t found = 0;

	for (size_t i = 0; i < sizeof(places) / sizeof(*places) && !found; i++) {
		const struct objects_one *object = objects_named(&attacher->objects, places[i]);

		found = object ? objects_symbol(&attacher->objects, object, name, NULL) : 0;
	}
	return found;
}

// The recorder, if it is loaded.
static uint64_t attacher_find_entry(const struct attacher *attacher)
{
	const struct objects *objects = &attacher->objects;
	uint64_t found = 0;

	for (size_t i = 0; i < objects->count && !found; i++) {
		const char *name = strrchr(objects->list[i].path, '/');

		if (name && strncmp(name, "/libtidemark", 12) == 0)
			found = objects_symbol(objects, &objects->list[i], "tidemark_late_v1",
					       NULL);
	}
	return found;
}

// What is loaded there.
static bool attacher_open(struct attacher *attacher, pid_t pid, struct err *err)
{
	*attacher = (struct attacher){ .pid = pid };
	if (!objects_read(&attacher->objects, pid))
		return attachable_refused(pid, errno, err);
	attacher->entry = attacher_find_entry(attacher);
	return true;
}

// What is needed of its C library.
static bool attacher_find_ways(struct attacher *attacher, struct err *err)
{
	attacher->gate = objects_gate(&attacher->objects);
	if (attacher->objects.alone)
		return attacher->gate ||
		       err_set(err, ERR_IO, "process %d: its code shows no call of the kernel",
			       (int)attacher->pid);
	attacher->loader = attacher_find(attacher, "dlopen");
	// glibc before 2.34 without libdl: its own way for NSS and iconv, which takes the same
	// arguments.
	if (!attacher->loader)
		attacher->loader = attacher_find(attacher, "__libc_dlopen_mode");
	attacher->complainer = attacher_find(attacher, "dlerror");
	if (attacher->gate && attacher->loader)
		return true;
	return err_set(err, ERR_IO,
		       "process %d: its C library shows no way to load the recorder (try: tidemark "
		       "record, which starts the program)",
		       (int)attacher->pid);
}

static void attacher_close(struct attacher *attacher)
{
	objects_fini(&attacher->objects);
	mem_free(attacher->file);
}

// ---- A thread that can load a library -----------------------------------------------------------

// System calls that neither an allocator nor the dynamic linker waits in.
static bool attacher_is_wait(uint64_t call)
{
	static const uint16_t calls[] = {
		SYS_read,
		SYS_write,
		SYS_poll,
		SYS_ppoll,
		SYS_select,
		SYS_pselect6,
		SYS_epoll_wait,
		SYS_epoll_pwait,
		SYS_nanosleep,
		SYS_clock_nanosleep,
		SYS_accept,
		SYS_accept4,
		SYS_recvfrom,
		SYS_recvmsg,
		SYS_sendto,
		SYS_sendmsg,
		SYS_wait4,
		SYS_waitid,
		SYS_pause,
		SYS_rt_sigsuspend,
		SYS_rt_sigtimedwait,
		SYS_recvmmsg,
		SYS_connect,
		SYS_flock,
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (call == calls[i])
			return true;
	return false;
}

static bool attacher_waits(const struct user_regs_struct *registers)
{
	uint64_t call = narrow_call(registers);

	// Locks of theirs are waited for by FUTEX_WAIT; conditions and ends of threads otherwise.
	// pthread_cond_wait is FUTEX_WAIT_BITSET in glibc, a mutex FUTEX_WAIT: a thread in the
	// latter may wait for the allocator's own lock, which we would need.
	return attacher_is_wait(call) ||
	       (call == SYS_futex &&
		(narrow_second(registers) & (uint32_t)FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET);
}

// Whether the object has code of the program's own, which is no allocator's and not the linker's.
static bool attacher_is_own(const struct attacher *attacher, const struct objects_one *object)
{
	return object && !objects_is_linker(object) &&
	       !objects_symbol(&attacher->objects, object, "malloc", NULL);
}

// Whether what was interrupted at `at` could load a library: its own code, or a call that waits,
// which is at `mov $number, %eax; syscall`, or behind that; read's is at `xor %eax, %eax; syscall`.
static bool attacher_could_load(const struct attacher *attacher, uint64_t at)
{
	const struct objects_one *object = objects_at(&attacher->objects, at);
	uint8_t code[9];
	uint32_t number;

	if (attacher_is_own(attacher, object))
		return true;
	if (!object || objects_is_linker(object) ||
	    !tracee_read(attacher->pid, at - 7, code, sizeof(code)))
		return false;
	for (size_t i = 0; i <= 2; i += 2) {
		if (code[i + 5] != 0x0f || code[i + 6] != 0x05)
			continue;
		memcpy(&number, &code[i + 1], sizeof(number));
		if (code[i] == 0xb8)
			return attacher_is_wait(number);
		return code[i + 3] == 0x31 && code[i + 4] == 0xc0; // SYS_read is 0
	}
	return false;
}

// Whether what signal handlers on this stack have interrupted may stay so while a library is
// loaded. A handler need not come back: postgres forks in one, and the child lives there. What an
// earlier one left on the stack is asked about in the same way.
static bool attacher_may_stay(const struct attacher *attacher, const struct tracee_thread *thread)
{
	uint64_t start, end, at = thread->registers.rip, sp = thread->registers.rsp;

	if (!objects_restorers(&attacher->objects, &start, &end))
		return true;
	for (int i = 0; i < ATTACHER_HANDLERS; i++) {
		if (!tracee_interrupted(thread, start, end, &at, &sp))
			return true;
		if (!attacher_could_load(attacher, at))
			return false;
	}
	return false;
}

// Of musl, the C library is the linker and the allocator, too. Its linker reads files; whether the
// call reads one.
static bool attacher_reads_file(const struct attacher *attacher,
				const struct user_regs_struct *registers)
{
	struct stat status;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)attacher->pid, (int)registers->rdi);
	return registers->orig_rax == SYS_read &&
	       (stat(path, &status) != 0 || S_ISREG(status.st_mode));
}

// musl waits for all by FUTEX_WAIT: for its own locks in its variables, for a condition on the
// thread's stack, for a thread's end in that one's block, which begins with its own address.
static bool attacher_waits_for_others(const struct attacher *attacher,
				      const struct user_regs_struct *registers)
{
	uint64_t at = registers->rdi, word;

	if (narrow_call(registers) != SYS_futex)
		return false;
	if (at - registers->rsp < ATTACHER_FRAME_BYTES)
		return true;
	for (uint64_t distance = ATTACHER_STATE_FIRST; distance < ATTACHER_STATE_END; distance += 4)
		if (at % 4 == 0 && (at - distance) % 8 == 0 &&
		    tracee_read(attacher->pid, at - distance, &word, sizeof(word)) &&
		    word == at - distance)
			return true;
	return false;
}

// Can the thread load a library here? In its own code it can, where that is no allocator's, and
// where it waits for something that has nothing to do with memory.
static bool attacher_is_safe(const struct attacher *attacher, const struct tracee_thread *thread)
{
	const struct user_regs_struct *registers = &thread->registers;
	const struct objects_one *object = objects_at(&attacher->objects, registers->rip);
	bool linker = object && objects_is_linker(object);
	bool own = attacher_is_own(attacher, object);
	bool musl = objects_has_musl(&attacher->objects);

	if (registers->cs != (attacher->objects.narrow ? 0x23 : 0x33))
		return false;
	if (narrow_call(registers) != NARROW_NO_CALL)
		own = musl ? (attacher_waits(registers) &&
			      !attacher_reads_file(attacher, registers)) ||
				      attacher_waits_for_others(attacher, registers)
			   : attacher_waits(registers) && !linker;
	return own && attacher_may_stay(attacher, thread);
}

// Stop one that can.
// Threads are tried in turn, a millisecond apart, for some three seconds (ATTACHER_TRIES): a
// program that does nothing but allocate is outside of its allocator for moments only.
static bool attacher_find_thread(const struct attacher *attacher, struct tracee *tracee,
				 struct err *err)
{
	ASSERT(attacher->gate);
	for (int try = 0; try < ATTACHER_TRIES; try++) {
		size_t count;
		pid_t *list = tracee_list(attacher->pid, &count);
		bool found = false;

		for (size_t i = 0; i < count && !found; i++) {
			if (!tracee_stop_one(tracee, attacher->pid, list[i], err)) {
				if (err->kind != ERR_NONE)
					break;
				continue;
			}
			found = attacher_is_safe(attacher, &tracee->threads[0]);
			if (!found)
				tracee_release(tracee);
		}
		mem_free(list);
		if (found || err->kind != ERR_NONE)
			return found;
		if (!tracee_lives(attacher->pid))
			return err_set(err, ERR_IO, "process %d has ended", (int)attacher->pid);
		now_sleep(ATTACHER_NAP_NS);
	}
	return err_set(err, ERR_IO,
		       "process %d: no thread of it was met where a library can be loaded, outside "
		       "of its allocator, its dynamic linker and its signal handlers (try: again)",
		       (int)attacher->pid);
}

// ---- Calls of the recorder ----------------------------------------------------------------------

// The recorder does `verb`; its answer is in attacher->answer.
bool attacher_call(struct attacher *attacher, struct tracee_loan *loan, enum attach_verb verb,
		   const char *session)
{
	struct attach_call *call = &attacher->answer;
	uint64_t at = loan->stack + TRACEE_PARAMETERS_AT;
	uint64_t nothing;

	ASSERT(attacher->entry);
	memset(call, 0, sizeof(*call));
	call->magic = ATTACH_MAGIC;
	call->version = SEGMENT_VERSION;
	call->verb = verb;
	call->alone = attacher->objects.alone;
	if (session)
		snprintf(call->session, sizeof(call->session), "%s", session);
	return tracee_write(attacher->pid, at, call, sizeof(*call)) &&
	       tracee_call(loan, attacher->entry, at, 0, &nothing) &&
	       tracee_read(attacher->pid, at, call, sizeof(*call));
}

// The linker's words are read as far as they are mapped: half as many bytes each time that the read
// fails.
static bool attacher_complain(struct attacher *attacher, struct tracee_loan *loan, struct err *err)
{
	uint64_t at = 0;
	char text[256] = "";
	size_t size = sizeof(text) - 1;

	if (attacher->complainer && tracee_call(loan, attacher->complainer, 0, 0, &at) && at)
		while (size > 0 && !tracee_read(attacher->pid, at, text, size))
			size /= 2;
	return err_set(err, ERR_IO,
		       "process %d cannot load the recorder: %s (try: tidemark record, "
		       "which starts the program)",
		       (int)attacher->pid, text[0] ? text : "its dynamic linker does not say why");
}

// Have the library loaded, if it is not there.
static bool attacher_load(struct attacher *attacher, struct tracee_loan *loan, const char *library,
			  struct err *err)
{
	uint64_t at = loan->stack + TRACEE_PARAMETERS_AT + ATTACHER_PATH_AT;
	uint64_t handle = 0;

	ASSERT(attacher->objects.alone || attacher->loader || attacher->entry);
	if (attacher->entry)
		return true;
	if (!tracee_write(attacher->pid, at, library, strlen(library) + 1) ||
	    !tracee_call(loan, attacher->loader, at, ATTACHER_LOAD_NOW, &handle))
		return err_set(err, ERR_IO, "process %d ended, or failed, loading the recorder",
			       (int)attacher->pid);
	if (!handle)
		return attacher_complain(attacher, loan, err);
	// The library is mapped now, and others may have been with it: what is known of the process
	// is read again.
	objects_fini(&attacher->objects);
	objects_read(&attacher->objects, attacher->pid);
	attacher->entry = attacher_find_entry(attacher);
	return attacher->entry ||
	       err_set(err, ERR_IO, "process %d: %s was loaded, and is not there",
		       (int)attacher->pid, library);
}

// The recorder's answer as an error. `whys` is by the number that it gives for why it could not
// begin (wire/attach.h).
static bool attacher_answers(const struct attacher *attacher, struct err *err)
{
	static const char *const whys[] = { "",
					    "no socket",
					    "the collector is not to be reached",
					    "the collector did not answer",
					    "no memory for it",
					    "a system-call filter" };
	uint32_t why = attacher->answer.why;
	char text[128] = "";

	switch (attacher->answer.status) {
	case ATTACH_DONE:
		return true;
	case ATTACH_RUNS:
		return err_set(err, ERR_USAGE,
			       "process %d is being recorded already (try: tidemark ctl %d detach)",
			       (int)attacher->pid, (int)attacher->pid);
	case ATTACH_PRELOAD:
		return err_set(err, ERR_USAGE,
			       "process %d was started by tidemark record: the recorder that it "
			       "has from its start records once",
			       (int)attacher->pid);
	case ATTACH_FAILED:
		return err_set(err, ERR_IO, "process %d cannot be recorded: %s%s%s",
			       (int)attacher->pid, why < 6 ? whys[why] : "",
			       attacher->answer.error ? ": " : "",
			       attacher->answer.error
				       ? err_text((int)attacher->answer.error, text, sizeof(text))
				       : "");
	case ATTACH_NO_ROOM:
		return err_set(err, ERR_USAGE,
			       "process %d is a program of an old musl, whose threads get a "
			       "library's variables one by one (try: tidemark record, which starts "
			       "the program)",
			       (int)attacher->pid);
	default:
		return err_set(err, ERR_USAGE,
			       "process %d has the recorder of another version of tidemark in it "
			       "(try: that version)",
			       (int)attacher->pid);
	}
}

// ---- The code -----------------------------------------------------------------------------------

// The list of patches, to be freed. NULL: there is none.
struct attach_patch *attacher_list(const struct attacher *attacher)
{
	uint32_t count = attacher->answer.patches_count;
	struct attach_patch *list;

	if (count == 0 || count > ATTACH_PATCHES_MAX)
		return NULL;
	list = mem_alloc(count, sizeof(*list));
	if (tracee_read(attacher->pid, attacher->answer.patches, list, count * sizeof(*list)))
		return list;
	mem_free(list);
	return NULL;
}

// Whether `at` is in bytes that are to be another instruction.
static bool attacher_is_between(uint64_t at, const struct attach_patch *list, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		// At its very beginning a thread is where a jump will be: it takes that. One byte
		// further on the jump's distance would be executed.
		if (at > list[i].at && at - list[i].at < list[i].length)
			return true;
	return false;
}

// A thread that stands there goes on until it does not.
static bool attacher_step_out(struct tracee_thread *thread, const struct attach_patch *list,
			      uint32_t count)
{
	ASSERT(count <= ATTACH_PATCHES_MAX);
	for (int step = 0; step < ATTACHER_STEPS_MAX; step++) {
		if (!attacher_is_between(thread->registers.rip, list, count))
			return true;
		if (!tracee_step(thread))
			return thread->gone;
	}
	return false;
}

// What a thread goes back to behind its signal handlers, `number` of them; where it is, for 0.
// False: there are not so many. Called for 0, 1, … with the same *at and *sp.
bool attacher_context(const struct attacher *attacher, const struct tracee_thread *thread,
		      int number, uint64_t *at, uint64_t *sp)
{
	uint64_t start, end;

	ASSERT(number >= 0);
	if (number == 0) {
		*at = thread->registers.rip;
		*sp = thread->registers.rsp;
		return true;
	}
	return number < ATTACHER_HANDLERS && objects_restorers(&attacher->objects, &start, &end) &&
	       tracee_interrupted(thread, start, end, at, sp);
}

// Whether a signal handler will come back there, which cannot be made to.
static bool attacher_comes_between(const struct attacher *attacher, const struct tracee *tracee,
				   const struct attach_patch *list, uint32_t count)
{
	uint64_t at, sp;

	for (size_t i = 0; i < tracee->count; i++)
		for (int n = 0; !tracee->threads[i].gone &&
				attacher_context(attacher, &tracee->threads[i], n, &at, &sp);
		     n++)
			if (n > 0 && attacher_is_between(at, list, count))
				return true;
	return false;
}

static struct tracee_thread *attacher_any_thread(struct tracee *tracee)
{
	for (size_t i = 0; i < tracee->count; i++)
		if (!tracee->threads[i].gone && !tracee->threads[i].signal)
			return &tracee->threads[i];
	return NULL;
}

// `from` and `to` are offsets in a struct attach_patch of ATTACH_PATCH_BYTES bytes each: before and
// after, or the other way round for the end. A place that has other bytes than `from` by now was
// changed by somebody else: it is left alone, and counted as kept.
uint32_t attacher_write(const struct tracee *tracee, const struct tracee_thread *thread,
			const struct attach_patch *list, uint32_t count, size_t from, size_t to)
{
	uint8_t now[ATTACH_PATCH_BYTES];
	uint32_t written = 0;

	ASSERT(from + ATTACH_PATCH_BYTES <= sizeof(*list) &&
	       to + ATTACH_PATCH_BYTES <= sizeof(*list));
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *patch = (const uint8_t *)&list[i];

		if (list[i].length <= sizeof(now) &&
		    tracee_read(tracee->pid, list[i].at, now, list[i].length) &&
		    memcmp(now, patch + from, list[i].length) == 0)
			written += tracee_poke(thread, list[i].at, patch + to, list[i].length);
	}
	return written;
}

// Stop all threads, none of which will come back to where code is written. Where what was allocated
// before is wanted, none is inside of the allocator then, or (*why) that did not come to be.
static bool attacher_stop(struct attacher *attacher, struct tracee *tracee,
			  const struct attach_patch *list, uint32_t count,
			  struct glibc_heap *before, struct attacher_figures *figures,
			  struct err *err)
{
	ASSERT(!before || before->count == 0);
	for (int try = 0;; try++) {
		bool between, settled;
		uint64_t stood_ns;

		if (!attachable_await(attacher->pid, ATTACHER_STOP_MS, -1, NULL, err) ||
		    !tracee_stop(tracee, attacher->pid, err))
			return false;
		between = attacher_comes_between(attacher, tracee, list, count);
		settled = !before || before->why.length > 0 || between ||
			  glibc_heap_settle(&attacher->objects, tracee, list, count,
					    try < ATTACHER_SETTLES / 2 ? ATTACHER_SETTLE_NS
								       : UINT64_MAX);
		if (!between && settled)
			return true;
		// The recording itself is possible, and what was there before stays unknown: said,
		// and gone on.
		if (!between && try >= ATTACHER_SETTLES) {
			str_add(&before->why, "a thread was in its allocator whenever it was "
					      "stopped");
			return true;
		}
		stood_ns = tracee_release(tracee);
		if (stood_ns > figures->stop_ns)
			figures->stop_ns = stood_ns;
		if (try >= 2 * ATTACHER_SETTLES)
			return err_set(err, ERR_IO,
				       "process %d: a signal handler of it has interrupted its "
				       "allocator, and does not come back (try: again)",
				       (int)attacher->pid);
		now_sleep(ATTACHER_NAP_NS);
	}
}

// `now`: what is mapped then, which has changed.
// The C library's own heap first: where that cannot be read, no other is.
static void attacher_read_before(struct attacher *attacher, const struct tracee *tracee,
				 struct glibc_heap *before, struct objects *now,
				 struct attacher_figures *figures)
{
	uint64_t began_ns = now_steady_ns();

	if (!before || before->why.length > 0)
		return;
	if (objects_read(now, attacher->pid)) {
		objects_inside_know(now, &attacher->objects);
		if (objects_has_musl(now) ? musl_heap_read(before, now, tracee)
					  : glibc_heap_read(before, now, tracee)) {
			jemalloc_heap_read(before, now, tracee);
			mimalloc_heap_read(before, now, tracee);
		}
	}
	figures->walk_ns = now_steady_ns() - began_ns;
}

// Before anything stops: of what objects that were entered is there more to know?
static void attacher_look_inside(struct attacher *attacher, const struct attach_patch *list,
				 uint32_t count)
{
	const struct objects_one *libc = objects_libc(&attacher->objects);

	for (size_t i = 0; i < attacher->objects.count; i++) {
		struct objects_one *object = &attacher->objects.list[i];
		bool entered = false;

		for (uint32_t n = 0; n < count && !entered; n++)
			entered = list[n].at >= object->start && list[n].at < object->end;
		if (entered && (object != libc || attacher->objects.alone) &&
		    !objects_is_linker(object))
			objects_inside_look(&attacher->objects, object);
	}
}

// Whether what is mapped, as text, has room in the ring of notes: the collector holds, and reads
// none of them on.
static bool attacher_has_room_for_list(const struct attacher *attacher)
{
	char path[64], part[4096];
	size_t size = 0, got;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)attacher->pid);
	file = fopen(path, "re");
	while (file && size <= ATTACHER_LIST_MAX && (got = fread(part, 1, sizeof(part), file)) > 0)
		size += got;
	if (file)
		fclose(file);
	return size <= ATTACHER_LIST_MAX;
}

// What is mapped at the moment from which on calls are recorded. The recorder calls nothing of the
// program's there, so it does not matter where the thread is. Where none can be borrowed, or the
// list is too long, it comes with the first call.
static void attacher_list_mappings(struct attacher *attacher, struct tracee *tracee)
{
	struct tracee_thread *thread = attacher_any_thread(tracee);
	struct tracee_loan loan;
	struct err ignored;

	if (!thread || !attacher_has_room_for_list(attacher) ||
	    !tracee_borrow(&loan, thread, attacher->gate, &ignored))
		return;
	attacher_call(attacher, &loan, ATTACH_LIST, NULL);
	tracee_give_back(&loan);
}

// All threads stand still: their ends of time are of one moment.
static bool attacher_patch(struct attacher *attacher, struct glibc_heap *before,
			   struct attacher_figures *figures, struct err *err)
{
	struct attach_patch *list = attacher_list(attacher);
	uint32_t count = attacher->answer.patches_count;
	struct objects now = { 0 };
	struct tracee tracee;
	static const uint32_t waits = 0;
	bool out = true;
	uint64_t stood_ns;

	if (!list)
		return err_set(err, ERR_IO,
			       "process %d: no function of its allocator could be entered",
			       (int)attacher->pid);
	if (before)
		attacher_look_inside(attacher, list, count);
	if (!attacher_stop(attacher, &tracee, list, count, before, figures, err)) {
		mem_free(list);
		return false;
	}
	// No thread may be within bytes that become another instruction.
	for (size_t i = 0; i < tracee.count && out; i++)
		if (!tracee.threads[i].gone)
			out = attacher_step_out(&tracee.threads[i], list, count);
	if (out && attacher_any_thread(&tracee)) {
		figures->places = attacher_write(&tracee, attacher_any_thread(&tracee), list, count,
						 offsetof(struct attach_patch, before),
						 offsetof(struct attach_patch, after));
		// Until this word is 0 the recorder lets all calls through: none is recorded by a
		// hook that is there while another is not.
		tracee_write(attacher->pid, attacher->answer.waits_at, &waits, sizeof(waits));
		attacher_list_mappings(attacher, &tracee);
	}
	attacher_read_before(attacher, &tracee, before, &now, figures);
	figures->kept = count - figures->places;
	figures->threads = (uint32_t)tracee.count;
	stood_ns = tracee_release(&tracee) - figures->walk_ns;
	if (stood_ns > figures->stop_ns)
		figures->stop_ns = stood_ns;
	if (before)
		glibc_heap_check(before, &now);
	objects_fini(&now);
	mem_free(list);
	return figures->places > 0 ||
	       err_set(err, ERR_IO, "process %d: its code could not be changed (try: again)",
		       (int)attacher->pid);
}

// ---- From outside -------------------------------------------------------------------------------

// Whether somebody listens there still.
// A recording is alive while its collector listens: abstract sockets are in the kernel's list by
// their names, and are gone with the process, however it ended.
static bool attacher_is_heard(const char *session)
{
	FILE *file = fopen("/proc/net/unix", "re");
	bool found = false;
	char line[512];

	while (file && !found && fgets(line, sizeof(line), file)) {
		const char *name = strrchr(line, '@');

		line[strcspn(line, "\n")] = 0;
		found = name && strcmp(name + 1, session) == 0;
	}
	if (file)
		fclose(file);
	return found;
}

// Stop a program that is linked statically, where no thread is created.
static bool attacher_stop_alone(struct attacher *attacher, struct tracee *tracee, struct err *err)
{
	for (int try = 0; try < ATTACHER_TRIES; try++) {
		if (!tracee_stop(tracee, attacher->pid, err))
			return false;
		if (attacher_any_thread(tracee) && attacher_may_place(attacher, tracee))
			return true;
		tracee_release(tracee);
		now_sleep(ATTACHER_NAP_NS);
	}
	return err_set(err, ERR_IO,
		       "process %d: a thread of it was about to create one whenever it was stopped "
		       "(try: again)",
		       (int)attacher->pid);
}

// The recorder is in the process: it begins.
static bool attacher_call_start(struct attacher *attacher, struct tracee_loan *loan,
				const char *session, struct err *err)
{
	return attacher_call(attacher, loan, ATTACH_START, session) ||
	       err_set(err, ERR_IO, "process %d ended, or failed, in the recorder",
		       (int)attacher->pid);
}

// It has begun, or not: the program goes on.
static void attacher_let_go(const struct attacher *attacher, struct tracee *tracee,
			    struct attacher_figures *figures)
{
	figures->load_ns = tracee_release(tracee);
	figures->functions = attacher->answer.entered;
	// As a distance from the entry, by which another process that was forked has it at its own
	// address.
	figures->session_at = attacher->answer.session_at - attacher->entry;
}

// The same as attacher_start. The recorder calls nothing of the program's there, so it does not
// matter where its threads are.
static bool attacher_start_alone(struct attacher *attacher, const char *library,
				 const char *session, struct attacher_figures *figures,
				 struct err *err)
{
	struct tracee tracee;
	struct tracee_loan loan;
	struct tracee_thread own;
	bool ok;

	ASSERT(attacher->objects.alone);
	if (!attacher_stop_alone(attacher, &tracee, err))
		return false;
	own = *attacher_any_thread(&tracee); // the list moves as it grows
	ok = tracee_borrow(&loan, &own, attacher->gate, err);
	if (ok) {
		ok = attacher->entry || attacher_place(attacher, &tracee, &loan, library, err);
		figures->stop_ns = tracee_release_others(&tracee, own.tid);
		ok = ok && attacher_call_start(attacher, &loan, session, err);
		tracee_give_back(&loan);
	}
	attacher_let_go(attacher, &tracee, figures);
	return ok;
}

// One thread loads the recorder and begins.
static bool attacher_start(struct attacher *attacher, const char *library, const char *session,
			   struct attacher_figures *figures, struct err *err)
{
	struct tracee tracee;
	struct tracee_loan loan;
	bool ok;

	if (attacher->objects.alone)
		return attacher_start_alone(attacher, library, session, figures, err);
	if (!attacher_find_thread(attacher, &tracee, err))
		return false;
	ok = tracee_borrow(&loan, &tracee.threads[0], attacher->gate, err);
	if (ok) {
		ok = attacher_load(attacher, &loan, library, err) &&
		     attacher_call_start(attacher, &loan, session, err);
		tracee_give_back(&loan);
	}
	attacher_let_go(attacher, &tracee, figures);
	return ok;
}

// The same, where another recording left something behind because its tidemark was killed.
static bool attacher_start_anew(struct attacher *attacher, const char *library, const char *session,
				struct attacher_figures *figures, struct err *err)
{
	if (!attacher_start(attacher, library, session, figures, err))
		return false;
	if (attacher->answer.status == ATTACH_RUNS &&
	    !attacher_is_heard(attacher->answer.session) &&
	    (!attacher_leave(attacher, NULL, figures, err) ||
	     !attacher_start(attacher, library, session, figures, err)))
		return false;
	return attacher_answers(attacher, err);
}

// What is done by the thread that traces: a beginning or an end; `ok` is its answer.
struct attacher_task {
	pid_t pid;
	const char *library, *session;
	struct glibc_heap *before;
	bool (*hold)(void *context, struct err *err);
	void *context;
	struct attacher_figures *figures;
	struct err *err;
	bool ok;
};

static void attacher_do_begin(void *context)
{
	struct attacher_task *task = context;
	struct attacher attacher;
	struct err more;

	// What was loaded and entered is undone if a later step fails: `record` leaves a process as
	// it was, or attached.
	task->ok = attacher_open(&attacher, task->pid, task->err) &&
		   attacher_find_ways(&attacher, task->err) &&
		   attacher_start_anew(&attacher, task->library, task->session, task->figures,
				       task->err);
	if (task->ok && !(task->hold(task->context, task->err) &&
			  attacher_patch(&attacher, task->before, task->figures, task->err))) {
		attacher_leave(&attacher, task->session, task->figures, &more);
		task->ok = false;
	}
	attacher_close(&attacher);
}

static bool attacher_do(struct attacher_task *task, void (*work)(void *context))
{
	struct tracer *tracer = tracer_new(task->pid);

	if (!tracer)
		return err_set(task->err, ERR_IO, "there is no thread to be had");
	tracer_do(tracer, work, task);
	tracer_end(tracer);
	return task->ok;
}

bool attacher_begin(pid_t pid, const char *library, const char *session, struct glibc_heap *before,
		    bool (*hold)(void *context, struct err *err), void *context,
		    struct attacher_figures *figures, struct err *err)
{
	struct attacher_task task = { pid,     library, session, before, hold,
				      context, figures, err,     false };

	*figures = (struct attacher_figures){ 0 };
	return attacher_do(&task, attacher_do_begin);
}

// Whether the recorder there has this session. Nothing is stopped for that.
static bool attacher_has(const struct attacher *attacher, const char *session,
			 const struct attacher_figures *figures)
{
	char name[ATTACH_SESSION_BYTES] = "";

	return attacher->entry &&
	       tracee_read(attacher->pid, attacher->entry + figures->session_at, name,
			   sizeof(name) - 1) &&
	       strcmp(name, session) == 0;
}

bool attacher_stays(pid_t pid, struct err *err)
{
	return err_wrap(err,
			"the recorder stays in it (to take it out later: tidemark record -p %d "
			"--duration 1s)",
			(int)pid);
}

static bool attacher_end_known(struct attacher *attacher, const char *session,
			       struct attacher_figures *figures, struct err *err)
{
	ASSERT(attacher->entry);
	if (attachable_is_filtered(attacher->pid))
		return err_set(err, ERR_IO,
			       "process %d has come under a system-call filter (seccomp), which "
			       "may kill it for the recorder's end: the recorder stays in it, and "
			       "records nothing more",
			       (int)attacher->pid);
	return (attacher_find_ways(attacher, err) &&
		attacher_leave(attacher, session, figures, err)) ||
	       attacher_stays(attacher->pid, err);
}

static void attacher_do_end(void *context)
{
	struct attacher_task *task = context;
	struct attacher attacher;
	struct err unread;

	task->ok = true;
	if (attacher_open(&attacher, task->pid, &unread) &&
	    attacher_has(&attacher, task->session, task->figures))
		task->ok = attacher_end_known(&attacher, task->session, task->figures, task->err);
	attacher_close(&attacher);
}

static bool attacher_end_one(pid_t pid, const char *session, struct attacher_figures *figures,
			     struct err *err)
{
	struct attacher_task task = {
		.pid = pid, .session = session, .figures = figures, .err = err
	};

	return attacher_do(&task, attacher_do_end);
}

bool attacher_end(pid_t pid, const char *session, struct attacher_figures *figures, struct err *err)
{
	bool ok = attacher_end_one(pid, session, figures, err);
	// A process that was forked while it was recorded has the recorder, and our session's name,
	// at the same distance from its entry. Its pid is not known to us, so all are looked at.
	DIR *folder = opendir("/proc");
	struct dirent *entry;
	struct err more;

	while (folder && (entry = readdir(folder)) != NULL) {
		pid_t other = atoi(entry->d_name);

		if (other > 0 && other != pid && other != getpid() &&
		    !attacher_end_one(other, session, figures, ok ? err : &more))
			ok = false;
	}
	if (folder)
		closedir(folder);
	return ok;
}
