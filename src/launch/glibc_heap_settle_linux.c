// Threads that are in the midst of malloc come out of it: what they would leave half done could not
// be read, and the block that such a call returns would be in no event.
#include "launch/glibc_heap_linux.h"

#include "base/mem.h"
#include "os/now.h"

#include <sys/syscall.h>

enum {
	GLIBC_HEAP_ENTRIES = 12,
	GLIBC_HEAP_STATIC_BYTES = 0x2900, // of malloc.o before malloc, at most
	GLIBC_HEAP_LAST_BYTES = 0x100,    // of the last function there
	GLIBC_HEAP_FRAME_WORDS = 12,      // that what malloc calls may have on the stack
	GLIBC_HEAP_STACK_WORDS = 128,     // that are looked at for the way out
	GLIBC_HEAP_ROUNDS = 5,
	GLIBC_HEAP_PATIENCE_NS = 2000000,
};

struct glibc_heap_code {
	const struct objects *objects;
	uint64_t start, end; // of malloc.o
	uint64_t entries[GLIBC_HEAP_ENTRIES];
	struct objects_one libc;
};

// Its functions that are seen from outside; those that are not are before malloc.
static bool glibc_heap_find_code(const struct objects *objects, struct glibc_heap_code *code)
{
	static const char *const names[GLIBC_HEAP_ENTRIES] = {
		"malloc",       "free",           "calloc",      "realloc",
		"memalign",     "valloc",         "pvalloc",     "malloc_trim",
		"malloc_stats", "posix_memalign", "malloc_info", "malloc_usable_size",
	};
	const struct objects_one *libc = objects_libc(objects);

	*code = (struct glibc_heap_code){ .objects = objects, .start = UINT64_MAX };
	if (!libc)
		return false;
	code->libc = *libc;
	for (size_t i = 0; i < GLIBC_HEAP_ENTRIES; i++) {
		uint64_t at = objects_symbol(objects, libc, names[i]);

		code->entries[i] = at;
		if (at && at - GLIBC_HEAP_STATIC_BYTES < code->start)
			code->start = at - GLIBC_HEAP_STATIC_BYTES;
		if (at + GLIBC_HEAP_LAST_BYTES > code->end)
			code->end = at + GLIBC_HEAP_LAST_BYTES;
	}
	return code->entries[0] != 0;
}

static bool glibc_heap_is_in(const struct glibc_heap_code *code, uint64_t at)
{
	return at >= code->start && at < code->end;
}

// Whether the thread is in a system call that malloc makes.
static bool glibc_heap_asks(const struct user_regs_struct *registers)
{
	static const uint16_t calls[] = { SYS_mmap,    SYS_munmap,   SYS_brk,  SYS_mremap,
					  SYS_madvise, SYS_mprotect, SYS_futex };

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (registers->orig_rax == calls[i])
			return true;
	return (int64_t)registers->orig_rax < 0;
}

// Whether malloc was called and has not returned: it is there, or it has called what is in libc,
// too, and nothing that has much of a stack.
static bool glibc_heap_is_inside(const struct glibc_heap_code *code,
				 const struct tracee_thread *thread)
{
	const struct user_regs_struct *registers = &thread->registers;
	uint64_t words[GLIBC_HEAP_FRAME_WORDS];

	for (size_t i = 0; i < GLIBC_HEAP_ENTRIES; i++)
		if (registers->rip == code->entries[i])
			return false;
	if (glibc_heap_is_in(code, registers->rip))
		return true;
	if (registers->rip < code->libc.start || registers->rip >= code->libc.end ||
	    !glibc_heap_asks(registers) ||
	    !tracee_read(thread->tid, registers->rsp, words, sizeof(words)))
		return false;
	for (size_t i = 0; i < GLIBC_HEAP_FRAME_WORDS; i++)
		if (glibc_heap_is_in(code, words[i]))
			return true;
	return false;
}

// Whether `at` is behind a call instruction, in code.
static bool glibc_heap_is_return(const struct glibc_heap_code *code, pid_t pid, uint64_t at)
{
	uint8_t bytes[7];

	if (at < 4096 || !objects_at(code->objects, at) ||
	    !tracee_read(pid, at - sizeof(bytes), bytes, sizeof(bytes)))
		return false;
	if (bytes[2] == 0xe8)
		return true;
	for (size_t i = 0; i + 1 < sizeof(bytes); i++)
		if (bytes[i] == 0xff && (bytes[i + 1] >> 3 & 7) == 2)
			return true;
	return false;
}

// Where a thread that is inside will come back to: the first return address on its stack that is
// not malloc's own. 0: none is seen.
static uint64_t glibc_heap_way_out(const struct glibc_heap_code *code,
				   const struct tracee_thread *thread)
{
	uint64_t words[GLIBC_HEAP_STACK_WORDS];
	bool inside = glibc_heap_is_in(code, thread->registers.rip);

	if (!tracee_read(thread->tid, thread->registers.rsp, words, sizeof(words)))
		return 0;
	for (size_t i = 0; i < GLIBC_HEAP_STACK_WORDS; i++) {
		bool own = glibc_heap_is_in(code, words[i]);

		if (inside && !own && glibc_heap_is_return(code, thread->tid, words[i]))
			return words[i];
		inside |= own;
	}
	return 0;
}

bool glibc_heap_settle(const struct objects *objects, struct tracee *tracee, uint64_t most_ns)
{
	uint64_t *places = mem_alloc(tracee->count, sizeof(*places));
	struct glibc_heap_code code;
	bool inside = glibc_heap_find_code(objects, &code);

	for (int round = 0; inside && round < GLIBC_HEAP_ROUNDS &&
			    (round == 0 || now_steady_ns() - tracee->began_ns < most_ns);
	     round++) {
		inside = false;
		for (size_t i = 0; i < tracee->count; i++) {
			const struct tracee_thread *thread = &tracee->threads[i];
			bool in = !thread->gone && glibc_heap_is_inside(&code, thread);

			places[i] = in ? glibc_heap_way_out(&code, thread) : 0;
			inside |= in;
		}
		if (inside)
			tracee_run_to(tracee, places, GLIBC_HEAP_PATIENCE_NS);
	}
	mem_free(places);
	return !inside;
}
