// The functions of libc whose system-call sites are patched (patch_linux.h), for x86-64 and i386,
// and what is said in the trace of how the program's calls are seen.
#include "recorder/elf.h"
#include "recorder/kernel.h"
#include "recorder/notes.h"
#include "recorder/patch_linux.h"
#include "recorder/recording.h"
#include "recorder/scope_linux.h"
#include "recorder/strict_linux.h"
#include "wire/lane_event.h"

uint32_t patch_done, patch_missing;
bool patch_dispatched;
uint64_t patch_covered[PATCH_NUMBERS / 64];

// One row for each function, and not for each call: madvise and posix_madvise make the same one,
// and need a place each. A fexecve that does not make execveat is an old libc's, which goes by
// execve: it is not missing.
const struct patch_function patch_functions[] = {
	{ "execve", __NR_execve, __NR_execve },
	{ "execveat", __NR_execveat, __NR_execveat },
	{ "fexecve", __NR_execveat, __NR_execveat },
	{ "mmap", KERNEL_NR_MMAP, KERNEL_NR_MMAP },
	{ "munmap", __NR_munmap, __NR_munmap },
	{ "mremap", __NR_mremap, __NR_mremap },
	{ "brk", __NR_brk, __NR_brk },
	{ "madvise", __NR_madvise, __NR_madvise },
	{ "posix_madvise", __NR_madvise, PATCH_POSIX_MADVISE },
	{ "process_madvise", __NR_process_madvise, __NR_process_madvise },
	{ "mprotect", __NR_mprotect, __NR_mprotect },
	{ "pkey_mprotect", __NR_pkey_mprotect, __NR_pkey_mprotect },
	{ "mlock", __NR_mlock, __NR_mlock },
	{ "munlock", __NR_munlock, __NR_munlock },
	{ "mlock2", __NR_mlock2, __NR_mlock2 },
	{ "mlockall", __NR_mlockall, __NR_mlockall },
	{ "munlockall", __NR_munlockall, __NR_munlockall },
	{ "shmat", __NR_shmat, __NR_shmat },
	{ "shmdt", __NR_shmdt, __NR_shmdt },
	{ "remap_file_pages", __NR_remap_file_pages, __NR_remap_file_pages },
};
const size_t patch_functions_count = sizeof(patch_functions) / sizeof(*patch_functions);

// With several executable segments, all from the beginning of the first to the end of the last is
// its code: ELF has them in the order of their addresses.
struct patch_code patch_code_of(const struct scope_object *object)
{
	struct patch_code code = { 0 };
	uint16_t count = 0;
	const struct elf_program *program = scope_programs(object, &count);

	for (uint16_t i = 0; program && i < count; i++) {
		uintptr_t at = object->bias + program[i].address;

		if (program[i].type != ELF_LOAD || !(program[i].flags & ELF_EXECUTABLE))
			continue;
		if (!code.start)
			code.start = at;
		code.end = at + program[i].memory_size;
	}
	return code;
}

// The best way that is at work is said, and why it is not a better one. Without --strict-vm patched
// calls are all that was asked for, and need no reason. One function that could not be patched is
// enough for NOTE_CALLS_INTERPOSED: libc's own calls by it are not seen then.
void patch_tell(void)
{
	bool wanted = recording_state->options & SEGMENT_STRICT_VM;
	if (patch_dispatched)
		strict_thread(); // a forked child has to begin anew
	if (patch_dispatched)
		notes_calls(NOTE_CALLS_DISPATCHED, "");
	else if (!scope_libc())
		notes_calls(NOTE_CALLS_INTERPOSED, "it has no C library, and makes them itself");
	else if (!patch_missing)
		notes_calls(NOTE_CALLS_PATCHED,
			    wanted ? (sizeof(void *) == 8
					      ? "the kernel has no dispatch of system calls"
					      : "no calls are dispatched in 32-bit programs")
				   : "");
	else if (!patch_done)
		notes_calls(NOTE_CALLS_INTERPOSED, "its code may not be changed");
	else
		notes_calls(NOTE_CALLS_INTERPOSED, "its C library makes them in another way");
}
