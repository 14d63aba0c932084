// Threads that are in the midst of malloc come out of it: what they would leave half done could not
// be read, and the block that such a call returns would be in no event. In it is who is in the C
// library's, or in a library's that stands in front of it (which may have called that, or not yet,
// and where the recorder of an earlier recording counts as one). musl's malloc cannot be told from
// the rest of musl, of which it is: there, who is in it and does not wait counts as inside.
#include "launch/glibc_heap_linux.h"

#include "base/mem.h"
#include "launch/loader_file_linux.h"
#include "launch/narrow_linux.h"
#include "os/now.h"
#include "wire/attach.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>

enum {
	GLIBC_HEAP_ENTRIES = 12,
	GLIBC_HEAP_STATIC_BYTES = 0x4200, // of malloc.o before malloc, at most
	GLIBC_HEAP_LAST_BYTES = 0x100,    // of the last function there
	GLIBC_HEAP_FRAME_WORDS = 12,      // that what malloc calls may have on the stack
	GLIBC_HEAP_NARROW_WORDS = 32,     // the same of 32 bits, whose arguments are there, too
	GLIBC_HEAP_CLOCK_WORDS = 20,      // where the kernel's own code is asked for the time
	GLIBC_HEAP_STACK_WORDS = 512,     // that are looked at for the way out
	GLIBC_HEAP_HANDLERS = 4,          // of signals, each in another one
	GLIBC_HEAP_ROUNDS = 5,
	GLIBC_HEAP_PATIENCE_NS = 2000000,
};

static const char *const glibc_heap_names[GLIBC_HEAP_ENTRIES] = {
	"malloc",       "free",           "calloc",      "realloc",
	"memalign",     "valloc",         "pvalloc",     "malloc_trim",
	"malloc_stats", "posix_memalign", "malloc_info", "malloc_usable_size",
};

// A stretch of code of an allocator.
struct glibc_heap_span {
	uint64_t start, end;
};

struct glibc_heap_code {
	const struct objects *objects;
	struct glibc_heap_span *spans; // the first is of malloc.o
	size_t count, capacity;
	const struct attach_patch *entries;
	uint32_t entries_count;
	bool musl; // the C library is, and all of it counts as malloc's
	struct objects_one libc;
	struct glibc_heap_span restorers; // what signal handlers return to
};

static void glibc_heap_add_span(struct glibc_heap_code *code, uint64_t start, uint64_t end)
{
	*MEM_ADD(code->spans, code->count, code->capacity) = (struct glibc_heap_span){ start, end };
}

// Its functions that are seen from outside; those that are not are before malloc.
static void glibc_heap_find_libc(struct glibc_heap_code *code)
{
	uint64_t start = UINT64_MAX, end = 0;

	for (size_t i = 0; i < GLIBC_HEAP_ENTRIES; i++) {
		uint64_t at = objects_symbol(code->objects, &code->libc, glibc_heap_names[i], NULL);

		if (at && at - GLIBC_HEAP_STATIC_BYTES < start)
			start = at - GLIBC_HEAP_STATIC_BYTES;
		if (at + GLIBC_HEAP_LAST_BYTES > end)
			end = at + GLIBC_HEAP_LAST_BYTES;
	}
	glibc_heap_add_span(code, start, end);
}

// What stands in front of it: all of a library, and of the program the functions themselves.
static void glibc_heap_find_front(struct glibc_heap_code *code, const struct objects_one *object)
{
	for (size_t i = 0; i < GLIBC_HEAP_ENTRIES; i++) {
		uint64_t size,
			at = objects_symbol(code->objects, object, glibc_heap_names[i], &size);

		if (at && object == code->objects->list)
			glibc_heap_add_span(code, at, at + size);
	}
	if (object != code->objects->list)
		glibc_heap_add_span(code, object->start, object->end);
}

// All code in which a thread may be inside an allocator: glibc's functions by their spans, all of
// musl, which is one file, allocators that are linked into others, and whatever exports a malloc of
// its own.
static bool glibc_heap_find_code(struct glibc_heap_code *code)
{
	const struct objects *objects = code->objects;
	const struct objects_one *libc = objects_libc(objects);

	if (!libc || !(objects->alone || objects_symbol(objects, libc, "malloc", NULL)))
		return false;
	code->libc = *libc;
	code->musl = objects_has_musl(objects);
	objects_restorers(objects, &code->restorers.start, &code->restorers.end);
	if (code->musl)
		glibc_heap_add_span(code, libc->start, libc->end);
	else if (!objects->alone) // of a static one it is among what is inside
		glibc_heap_find_libc(code);
	for (size_t i = 0; i < objects->count; i++) {
		const struct objects_one *object = &objects->list[i];

		for (size_t n = 0; n < object->inside_count; n++)
			glibc_heap_add_span(code, object->inside[n].start, object->inside[n].end);
		if (object->inode != libc->inode && !objects_is_linker(object) &&
		    objects_symbol(objects, object, "malloc", NULL))
			glibc_heap_find_front(code, object);
	}
	return true;
}

static bool glibc_heap_is_in(const struct glibc_heap_code *code, uint64_t at)
{
	for (size_t i = 0; i < code->count; i++)
		if (at >= code->spans[i].start && at < code->spans[i].end)
			return true;
	return false;
}

// A thread that is about to enter comes by the hook. What musl's malloc calls itself, such as mmap,
// is no way in.
static bool glibc_heap_is_entry(const struct glibc_heap_code *code, pid_t pid, uint64_t at,
				uint64_t sp)
{
	uint64_t caller = 0;

	for (uint32_t i = 0; i < code->entries_count; i++)
		if (at == code->entries[i].at)
			return !code->musl || (tracee_read(pid, sp, &caller, sizeof(caller)) &&
					       !glibc_heap_is_in(code, caller));
	return false;
}

// Whether the thread is in a system call that malloc makes, or in none. Locks are waited for by
// FUTEX_WAIT, conditions otherwise. jemalloc wakes others (FUTEX_WAKE) while it gives a thread's
// blocks back: who waits for a lock, and its own thread. It and mimalloc ask for the time then, by
// a system call where the kernel's code in the process does not know it.
static bool glibc_heap_asks(const struct user_regs_struct *registers)
{
	static const uint16_t calls[] = { SYS_mmap,    SYS_munmap,   SYS_brk,   SYS_mremap,
					  SYS_madvise, SYS_mprotect, SYS_futex, SYS_clock_gettime };

	uint64_t call = narrow_call(registers), command;

	if (call == SYS_futex) {
		command = narrow_second(registers) & (uint32_t)FUTEX_CMD_MASK;
		return command == FUTEX_WAIT || command == FUTEX_WAKE;
	}
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (call == calls[i])
			return true;
	return call == NARROW_NO_CALL;
}

// Where musl asks the kernel for what may take its time: mov %r11, 8(%rsp); syscall. Its malloc
// never does so there. A thread is behind that or, where the call is made again, at the latter.
static bool glibc_heap_is_wait(const struct glibc_heap_code *code, pid_t pid, uint64_t at)
{
	static const uint8_t wait[] = { 0x4c, 0x89, 0x5c, 0x24, 0x08, 0x0f, 0x05 };
	uint8_t bytes[sizeof(wait) + 2];

	return code->musl && tracee_read(pid, at - sizeof(wait), bytes, sizeof(bytes)) &&
	       (memcmp(bytes, wait, sizeof(wait)) == 0 ||
		memcmp(bytes + 2, wait, sizeof(wait)) == 0);
}

// The same of musl, where the thread is in the C library. A lock of malloc's is among musl's
// variables, as are those of streams, which have bit 30 where somebody waits. Who gives malloc's
// back wakes others, with a block half made; and who is woken may not know it yet.
static bool glibc_heap_asks_in_musl(const struct glibc_heap_code *code,
				    const struct tracee_thread *thread)
{
	const struct user_regs_struct *registers = &thread->registers;
	uint32_t lock;

	if (narrow_call(registers) != SYS_futex)
		return glibc_heap_asks(registers);
	return objects_is_variable(code->objects, &code->libc, registers->rdi) &&
	       tracee_read(thread->tid, registers->rdi, &lock, sizeof(lock)) && lock >> 30 != 1;
}

// The words of the thread's stack from `sp` on, `count` or as many as are there.
static size_t glibc_heap_stack(const struct tracee_thread *thread, uint64_t sp, uint64_t *words,
			       size_t count)
{
	bool narrow = narrow_is(&thread->registers);

	return tracee_words(thread->tid, sp & ~(uint64_t)(narrow_bytes(narrow) - 1), narrow, words,
			    count);
}

// So many words an allocator's callees may have on the stack, where they are at `at`; 0: it calls
// nothing there.
static size_t glibc_heap_callee_words(const struct glibc_heap_code *code, uint64_t at)
{
	const struct objects_one *object = objects_at(code->objects, at);

	if (object && objects_is_linker(object)) // finds a function at its first call
		return GLIBC_HEAP_STACK_WORDS;
	if (at - code->objects->vdso_start < code->objects->vdso_end - code->objects->vdso_start)
		return code->objects->narrow // whose way into the kernel is there
			       ? GLIBC_HEAP_NARROW_WORDS
			       : GLIBC_HEAP_CLOCK_WORDS;
	if (at < code->libc.start || at >= code->libc.end)
		return 0;
	return code->objects->narrow ? GLIBC_HEAP_NARROW_WORDS : GLIBC_HEAP_FRAME_WORDS;
}

// Whether `at` is behind a call instruction, in code.
// e8 is a call of five bytes, ff /2 one by a register or memory, of two to seven bytes: so it
// begins at any of the seven before.
static bool glibc_heap_is_return(const struct glibc_heap_code *code, pid_t pid, uint64_t at)
{
	uint8_t bytes[7];

	if (at < 4096 || !objects_is_code(code->objects, at) ||
	    !tracee_read(pid, at - sizeof(bytes), bytes, sizeof(bytes)))
		return false;
	if (bytes[2] == 0xe8)
		return true;
	for (size_t i = 0; i + 1 < sizeof(bytes); i++)
		if (bytes[i] == 0xff && (bytes[i + 1] >> 3 & 7) == 2)
			return true;
	return false;
}

// Whether malloc was called from a thread that is at `at`, and has not returned: it is there, or it
// has called what is in the C library or the linker, and nothing that has much of a stack.
static bool glibc_heap_is_called(const struct glibc_heap_code *code,
				 const struct tracee_thread *thread, uint64_t at, uint64_t sp)
{
	uint64_t words[GLIBC_HEAP_STACK_WORDS];
	size_t count;

	ASSERT(code->count <= code->capacity);
	if (glibc_heap_is_in(code, at))
		return !glibc_heap_is_entry(code, thread->tid, at, sp) &&
		       !glibc_heap_is_wait(code, thread->tid, at);
	count = glibc_heap_stack(thread, sp, words, glibc_heap_callee_words(code, at));
	for (size_t i = 0; i < count; i++)
		if (glibc_heap_is_in(code, words[i]) &&
		    glibc_heap_is_return(code, thread->tid, words[i]))
			return true;
	return false;
}

// The same for where the thread is, and for what its signal handlers have interrupted. From these
// there is no way out but time.
static bool glibc_heap_is_inside(const struct glibc_heap_code *code,
				 const struct tracee_thread *thread, bool *interrupted)
{
	uint64_t at = thread->registers.rip, sp = thread->registers.rsp;

	*interrupted = false;
	if (code->musl ? glibc_heap_asks_in_musl(code, thread)
		       : glibc_heap_is_in(code, at) || glibc_heap_asks(&thread->registers))
		if (glibc_heap_is_called(code, thread, at, sp))
			return true;
	for (int i = 0; i < GLIBC_HEAP_HANDLERS; i++) {
		if (!tracee_interrupted(thread, code->restorers.start, code->restorers.end, &at,
					&sp))
			return false;
		*interrupted = true;
		if (glibc_heap_is_called(code, thread, at, sp))
			return true;
	}
	return false;
}

// Where a thread that is inside will come back to: the first return address on its stack that is
// not malloc's own. 0: none is seen.
static uint64_t glibc_heap_way_out(const struct glibc_heap_code *code,
				   const struct tracee_thread *thread)
{
	uint64_t words[GLIBC_HEAP_STACK_WORDS];
	size_t count =
		glibc_heap_stack(thread, thread->registers.rsp, words, GLIBC_HEAP_STACK_WORDS);
	bool inside = glibc_heap_is_in(code, thread->registers.rip);

	for (size_t i = 0; i < count; i++) {
		bool own = glibc_heap_is_in(code, words[i]);

		if (inside && !own && glibc_heap_is_return(code, thread->tid, words[i]))
			return words[i];
		inside |= own;
	}
	return 0;
}

bool glibc_heap_settle(const struct objects *objects, struct tracee *tracee,
		       const struct attach_patch *entries, uint32_t entries_count, uint64_t most_ns)
{
	uint64_t *places = mem_alloc(tracee->count, sizeof(*places));
	struct glibc_heap_code code = {
		.objects = objects,
		.entries = entries,
		.entries_count = entries_count,
	};
	bool inside = glibc_heap_find_code(&code), ran = false;

	// Each round, those that are inside are let go to their way out, while the others stand.
	// One that waits for a lock which a standing thread has does not come out in that round,
	// but in a later one.
	for (int round = 0; inside && round < GLIBC_HEAP_ROUNDS &&
			    (round == 0 || now_steady_ns() - tracee->began_ns < most_ns);
	     round++) {
		inside = false;
		for (size_t i = 0; i < tracee->count; i++) {
			const struct tracee_thread *thread = &tracee->threads[i];
			bool interrupted;
			bool in = !thread->gone &&
				  glibc_heap_is_inside(&code, thread, &interrupted);

			places[i] = in && !interrupted ? glibc_heap_way_out(&code, thread) : 0;
			inside |= in;
		}
		ran |= inside;
		if (inside)
			tracee_run_to(tracee, places, GLIBC_HEAP_PATIENCE_NS);
	}
	MEM_FREE(code.spans, places);
	return !inside && (!ran || tracee_is_whole(tracee));
}
