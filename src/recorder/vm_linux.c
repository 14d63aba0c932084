// What a call does to memory decides when it is recorded. For example:
//
//     mmap(NULL, 64 KiB)           after it: the memory cannot have been used before. One record
//     munmap(p, 4 KiB)             BEGIN before it, END after it with how it went: between both,
//                                  another thread may be given the addresses
//     mmap(p, 4 KiB, MAP_FIXED)    takes and gives back at once: as munmap
//     munmap(p, 200 MiB)           the same; and before it a look whether this is the peak, as
//                                  from 64 KiB on
//
// A call that gives memory back also makes what is known of stacks and code there untrue: that is
// forgotten before it (capture_epoch, code_lock), and after it once more, where something else may
// have been mapped there in between.
#include "recorder/vm.h"

#include "recorder/capture.h"
#include "recorder/codemap.h"
#include "recorder/dead_stack_linux.h"
#include "recorder/enter_linux.h"
#include "recorder/notes.h"
#include "recorder/own_linux.h"
#include "recorder/peak_linux.h"
#include "recorder/refused_linux.h"
#include "recorder/text.h"
#include "recorder/vm_put.h"
#include "recorder/vm_segments_linux.h"
#include "recorder/vm_write_linux.h"

enum {
	VM_MAP_REMAP = 0x4000,
	VM_SHM_RDONLY = 0x1000,
	VM_SHM_EXEC = 0x8000,
	VM_IPC_STAT = 2,
	VM_ENOMEM = 12,
	VM_EFAULT = 14,
	VM_RELEASE_MIN = 64 << 10, // bytes given back before which the peak may be
	VM_MADV_FREE = 8,
	VM_MADV_REMOVE = 9,
	VM_MADV_PAGEOUT = 21,
	VM_MADV_GUARD_INSTALL = 102,
	VM_PIDFD_SELF = -10000, // and one below: the thread, the process
	VM_VECTORS_MAX = 1024,  // that a call may have
};

// ---- Making the call ------------------------------------------------------------------------

// A word of a call as it lies in a record: an address is widened with zeros.
static inline uint64_t vm_word(long word)
{
	return (uintptr_t)word;
}

// The program's own call, passed on. Its address in this function tells it apart from ours.
static __attribute__((noinline)) long vm_relay(const struct vm_ask *ask, long number)
{
	const long *words = ask->words;

	return kernel_call6(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

// Under code_lock, which signal handlers may want too.
static uint64_t vm_lock_code(void)
{
	uint64_t signals = kernel_block_signals();

	recording_lock(&recording_state->code_lock);
	return signals;
}

static void vm_unlock_code(uint64_t signals)
{
	recording_unlock(&recording_state->code_lock);
	kernel_restore_signals(signals);
}

// What is known of the code in a range that goes away is forgotten. The caller holds code_lock.
//
// A rule or a frame that was learned from code there would be wrong for what is mapped next.
// codemap_unmapped says whether there was any.
static void vm_drop_code(uintptr_t start, uintptr_t bytes)
{
	if (codemap_unmapped(start, start + bytes))
		unwind_forget();
}

// A library's tables are not read while it goes: a walk may have guessed its way there, in another
// thread.
static long vm_make_unmap(const struct vm_ask *ask)
{
	uintptr_t start = (uintptr_t)ask->words[0];
	uint64_t signals;
	long result;

	if (recording_phase() != RECORDING_ON || !codemap_is_object(start))
		return vm_relay(ask, __NR_munmap);
	signals = vm_lock_code();
	vm_drop_code(start, (uintptr_t)ask->words[1]);
	result = vm_relay(ask, __NR_munmap);
	vm_unlock_code(signals);
	return result;
}

// The call itself, made once: as the caller of vm_call says (`ask->make`), or as a system call.
static long vm_make(const struct vm_ask *ask, long number)
{
	if (number == __NR_munmap && !ask->make)
		return vm_make_unmap(ask);
	return ask->make ? ask->make(ask) : vm_relay(ask, number);
}

// ---- What is mapped -------------------------------------------------------------------------

static bool vm_incomplete;           // calls are missed: the list is told again now and then
static _Atomic uint32_t vm_list_due; // it is to be told

// There are calls that we do not see (a program that makes its own system calls). So the list of
// mappings is read anew from now on when it may have changed.
void vm_look_up_from_now(void)
{
	vm_incomplete = true;
}

void vm_missed(void)
{
	if (vm_incomplete)
		__atomic_store_n(&vm_list_due, 1, __ATOMIC_RELAXED);
}

// What the kernel lists as mapped, for the collector to take apart.
static void vm_tell_maps(uint32_t list)
{
	struct recording_state *state = recording_state;
	long fd =
		kernel(__NR_openat, KERNEL_AT_FDCWD, "/proc/self/maps", 0x80000 /* O_CLOEXEC */, 0);
	long got;

	if (kernel_failed(fd))
		return;
	recording_lock(&state->files_lock);
	while ((got = kernel(__NR_read, fd, state->file_path, sizeof(state->file_path) - 1)) > 0) {
		state->file_path[got] = 0;
		notes_maps(list, state->file_path);
	}
	recording_unlock(&state->files_lock);
	kernel(__NR_close, fd);
}

// The list and, behind it in the lane, its place in the order.
static void vm_list(struct lane *lane)
{
	struct lane_vm record = { .kind = LANE_VM_BASELINE };

	if (!vm_put_room(lane))
		return;
	record.file = ++recording_state->lists_count;
	vm_tell_maps(record.file);
	vm_write_put(lane, &record, NULL);
}

// The same, where calls are missed. One at a time.
static COLD void vm_list_again(struct lane *lane)
{
	struct recording_state *state = recording_state;
	uint64_t signals;
	uint32_t idle = 0;

	if (kernel_sealed)
		return;
	signals = kernel_block_signals();
	__atomic_store_n(&vm_list_due, 0, __ATOMIC_RELAXED);
	if (__atomic_compare_exchange_n(&state->listing, &idle, 1, false, __ATOMIC_ACQUIRE,
					__ATOMIC_RELAXED)) {
		vm_list(lane);
		__atomic_store_n(&state->listing, 0, __ATOMIC_RELEASE);
	}
	kernel_restore_signals(signals);
}

// A snapshot of all memory, between two records of the lane.
//
// One at a time in a process: a second thread that wants one goes on without. The collector reads
// the process's memory while this thread waits (peak_wait), so that what it finds is of this place
// in the order.
static COLD void vm_look(struct lane *lane, enum peak_reason reason)
{
	struct lane_vm begin = { .kind = LANE_VM_LOOK_BEGIN }, end = { .kind = LANE_VM_LOOK_END };
	uint32_t idle = 0;

	if (kernel_sealed ||
	    !__atomic_compare_exchange_n(&recording_state->looking, &idle, 1, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	if (vm_incomplete && reason != PEAK_EXIT)
		vm_list_again(lane);
	if (vm_put_room(lane) && vm_write_put(lane, &begin, NULL)) {
		recording_state->looks_count++;
		peak_wait(reason);
		if (vm_put_room(lane))
			vm_write_put(lane, &end, NULL);
	}
	__atomic_store_n(&recording_state->looking, 0, __ATOMIC_RELEASE);
}

// Before so many bytes are given back: is this the peak?
static void vm_before_release(struct lane *lane, uint64_t bytes)
{
	if (bytes >= VM_RELEASE_MIN && lane && peak_due()) {
		vm_look(lane, PEAK_RELEASE);
		vm_put_room(lane);
	}
}

// A call failed: was it for want of what the recorder has? What is unmapped or advised on takes
// nothing.
static COLD void vm_failed(const struct lane_vm *record, uint32_t error)
{
	uint64_t size = record->size;

	if (record->kind == LANE_VM_MREMAP)
		size -= record->old_size < size ? record->old_size : size;
	else if (record->kind == LANE_VM_BRK)
		size = record->address - record->old_address;
	if (record->kind == LANE_VM_MMAP || record->kind == LANE_VM_MREMAP ||
	    record->kind == LANE_VM_BRK || record->kind == LANE_VM_MPROTECT ||
	    record->kind == LANE_VM_SHMAT || record->kind == LANE_VM_MLOCK)
		refused_look(error, size, record->kind == LANE_VM_MLOCK);
}

// A call that takes memory: it has been made.
//
// A call that failed is recorded too, with its error.
static long vm_after(const struct vm_ask *ask, struct lane_vm *record, long result)
{
	struct vm_write_door door = vm_write_enter();

	if (kernel_failed(result))
		record->error = (uint16_t)-result;
	if (door.lane)
		vm_write_put(door.lane, record, ask);
	vm_write_leave(&door);
	if (unlikely(record->error))
		vm_failed(record, record->error);
	return result;
}

// A call that gives `released` bytes back: record, make it, record how it went.
//
// Between BEGIN and END other threads may be given the addresses that this call gives back, and
// record that. END says how the call went, and of mmap, mremap and shmat, where to.
static long vm_around(const struct vm_ask *ask, long number, struct lane_vm *record,
		      uint64_t released)
{
	struct vm_write_door door = vm_write_enter();
	struct lane_vm end = { .part = LANE_VM_END };
	long result;

	record->part = LANE_VM_BEGIN;
	vm_before_release(door.lane, released);
	if (door.lane && !vm_write_put(door.lane, record, ask))
		vm_write_leave(&door);
	result = vm_make(ask, number);
	if (!door.lane)
		return result;
	end.kind = record->kind;
	end.address = record->address;
	// brk returns where the break is now, whatever was asked for: a failure is that it is not
	// where it was wanted.
	if (number == __NR_brk)
		end.error = vm_word(result) == record->address ? 0 : VM_ENOMEM;
	else if (kernel_failed(result))
		end.error = (uint16_t)-result;
	else if (number == KERNEL_NR_MMAP || number == __NR_mremap || number == __NR_shmat)
		end.address = vm_word(result);
	if (vm_put_room(door.lane))
		vm_write_put(door.lane, &end, NULL);
	vm_write_leave(&door);
	if (unlikely(end.error))
		vm_failed(record, end.error);
	return result;
}

// ---- Files ----------------------------------------------------------------------------------

// The number under which the collector knows the file behind `fd`; 0: none.
//
// A file is known by its device and inode. The table is direct-mapped: a second file at one place
// replaces the first, which gets a new number when it comes again. The path is what /proc says of
// the descriptor now.
static uint32_t vm_file(int fd)
{
	struct recording_state *state = recording_state;
	struct kernel_file file;
	uint64_t signals;
	uint32_t at, id;
	char path[32];
	long length;

	if (recording_phase() != RECORDING_ON || !kernel_stat(fd, &file))
		return 0;
	signals = kernel_block_signals();
	recording_lock(&state->files_lock);
	at = (uint32_t)((file.inode * 0x9e3779b97f4a7c15u + file.device) >> 40) %
	     RECORDING_FILES_MAX;
	id = state->files[at].id;
	if (!id || state->files[at].device != file.device || state->files[at].inode != file.inode) {
		text_put_fd(path, "/proc/self/fd/", (uint32_t)fd);
		length =
			kernel(__NR_readlink, path, state->file_path, sizeof(state->file_path) - 1);
		state->file_path[kernel_failed(length) ? 0 : length] = 0;
		id = ++state->files_count;
		state->files[at] = (struct recording_file){ file.device, file.inode, id };
		notes_file(id, file.device, file.inode, state->file_path);
	}
	recording_unlock(&state->files_lock);
	kernel_restore_signals(signals);
	return id;
}

// ---- The calls ------------------------------------------------------------------------------

// What is cached of stacks and code in a range that goes away is forgotten: before, so that a walk
// in between does not read it, and behind, so that nothing that was mapped there is mistaken.
//
// All lanes notice by the epoch (capture.h): their stacks are walked anew to the root once.
static void vm_forget(void)
{
	__atomic_fetch_add(&capture_epoch, 1, __ATOMIC_SEQ_CST);
}

static void vm_forget_code(uintptr_t start, uintptr_t bytes)
{
	uint64_t signals;

	vm_forget();
	if (recording_phase() != RECORDING_ON)
		return;
	signals = vm_lock_code();
	vm_drop_code(start, bytes);
	vm_unlock_code(signals);
}

void vm_closes(bool after)
{
	uint64_t signals;

	codemap_closes();
	if (!after || recording_phase() != RECORDING_ON || kernel_nested())
		return;
	vm_forget();
	signals = vm_lock_code();
	if (codemap_closed())
		unwind_forget();
	vm_unlock_code(signals);
	vm_forget();
	vm_missed();
}

// A mapping was made. If it is of a file's code, what was thought of these addresses before, when
// they had no owner, is forgotten.
static void vm_learn_code(const struct vm_ask *ask, const struct lane_vm *record, long result)
{
	uintptr_t start = (uintptr_t)result, end = start + (uintptr_t)record->size;
	uint64_t signals;

	if (kernel_failed(result) || !(record->protection & KERNEL_PROT_EXEC) ||
	    (record->flags & KERNEL_MAP_ANONYMOUS) || recording_phase() != RECORDING_ON)
		return;
	signals = vm_lock_code();
	if (codemap_mapped(start, end, vm_write_is_linker(ask->back)))
		unwind_forget_range(start, end);
	vm_unlock_code(signals);
	vm_forget();
}

// MAP_FIXED replaces what is there, so that it gives back as munmap does; with MAP_FIXED_NOREPLACE
// it does not.
static long vm_mmap(const struct vm_ask *ask)
{
	uint32_t flags = (uint32_t)ask->words[3];
	struct lane_vm record = {
		.kind = LANE_VM_MMAP,
		.address = vm_word(ask->words[0]),
		.size = vm_word(ask->words[1]),
		.protection = (uint32_t)ask->words[2],
		.flags = flags,
	};
	long result;

	if (!(flags & KERNEL_MAP_ANONYMOUS)) {
		record.offset = vm_word(ask->words[5]) * KERNEL_MMAP_UNIT;
		record.file = vm_file((int)ask->words[4]);
	}
	if ((flags & KERNEL_MAP_FIXED) && !(flags & KERNEL_MAP_FIXED_NOREPLACE)) {
		vm_forget();
		result = vm_around(ask, KERNEL_NR_MMAP, &record, record.size);
		vm_forget();
		vm_learn_code(ask, &record, result);
		return result;
	}
	result = vm_make(ask, KERNEL_NR_MMAP);
	vm_learn_code(ask, &record, result);
	if (!kernel_failed(result))
		record.address = vm_word(result);
	return vm_after(ask, &record, result);
}

// Where the linker unmaps a library, what was changed in it is forgotten before its code goes.
static long vm_munmap(const struct vm_ask *ask)
{
	struct lane_vm record = { .kind = LANE_VM_MUNMAP,
				  .address = vm_word(ask->words[0]),
				  .size = vm_word(ask->words[1]) };
	long result;

	if (vm_write_is_linker(ask->back))
		enter_unloaded((uintptr_t)ask->words[0], (uintptr_t)ask->words[1]);
	vm_forget_code((uintptr_t)ask->words[0], (uintptr_t)ask->words[1]);
	result = vm_around(ask, __NR_munmap, &record, record.size);
	vm_forget();
	return result;
}

// What shrinks gives back the rest. Where it goes is known only after the call; until then the
// record has where it was, or where it has to go.
static long vm_mremap(const struct vm_ask *ask)
{
	struct lane_vm record = {
		.kind = LANE_VM_MREMAP,
		.address = vm_word(ask->words[3] & KERNEL_MREMAP_FIXED ? ask->words[4]
								       : ask->words[0]),
		.size = vm_word(ask->words[2]),
		.old_address = vm_word(ask->words[0]),
		.old_size = vm_word(ask->words[1]),
		.flags = (uint32_t)ask->words[3],
	};
	long result;

	vm_forget();
	result = vm_around(ask, __NR_mremap, &record,
			   record.old_size > record.size ? record.old_size - record.size : 0);
	vm_forget();
	return result;
}

static long vm_break; // where it was last

// Before a filter that may forbid brk(0): where the break is has to be known without asking. What
// was mapped for the time under it is said now; the program may make no more calls that would.
void vm_seal(void)
{
	struct vm_write_door door = vm_write_enter();

	vm_write_leave(&door);
	vm_break = kernel(__NR_brk, 0);
}

// As vm_forget, of what lies below `end`: the heap's, or what can no longer be read.
static void vm_forget_below(uintptr_t end)
{
	if (atomic_load(&capture_lowest) < end)
		vm_forget();
}

// Where the break goes down, memory is given back: before the call; where it goes up, after it. An
// `ask` for 0 is a question, recorded with the old place.
static long vm_brk(const struct vm_ask *ask)
{
	uint64_t old = vm_word(kernel_sealed ? vm_break : kernel(__NR_brk, 0));
	uint64_t wanted = vm_word(ask->words[0]);
	struct lane_vm record = { .kind = LANE_VM_BRK,
				  .old_address = old,
				  .address = wanted ? wanted : old };
	long result;

	if (wanted && wanted < old) {
		vm_forget_below((uintptr_t)old);
		result = vm_around(ask, __NR_brk, &record, old - wanted);
		vm_forget_below((uintptr_t)old);
		vm_break = result;
		return result;
	}
	result = vm_make(ask, __NR_brk);
	vm_break = result;
	if (wanted && vm_word(result) != wanted)
		record.error = VM_ENOMEM;
	vm_after(ask, &record, 0);
	return result;
}

// Before so many bytes are advised on: does that give them back?
static void vm_before_advice(uint32_t advice, uint64_t bytes)
{
	struct vm_write_door door;

	if (bytes < VM_RELEASE_MIN || (advice != KERNEL_MADV_DONTNEED && advice != VM_MADV_FREE &&
				       advice != VM_MADV_REMOVE && advice != VM_MADV_PAGEOUT))
		return;
	door = vm_write_enter();
	vm_before_release(door.lane, bytes);
	vm_write_leave(&door);
}

// Whether the call makes memory such that reading it is a fault.
static bool vm_hides(const struct lane_vm *record)
{
	if (record->kind == LANE_VM_MPROTECT)
		return !(record->protection & KERNEL_PROT_READ);
	return record->kind == LANE_VM_MADVISE && record->flags == VM_MADV_GUARD_INSTALL;
}

// Calls that keep what is mapped.
//
// mprotect, madvise, mlock and remap_file_pages: recorded after they were made, since no other
// thread can be given these addresses meanwhile.
static long vm_change(const struct vm_ask *ask, long number, uint8_t kind)
{
	struct lane_vm record = { .kind = kind,
				  .address = vm_word(ask->words[0]),
				  .size = vm_word(ask->words[1]) };
	uintptr_t hidden; // where what can no longer be read ends
	long result;

	if (kind == LANE_VM_MPROTECT)
		record.protection = (uint32_t)ask->words[2];
	else if (number == __NR_madvise)
		record.flags = (uint32_t)ask->words[2];
	else if (number == __NR_mlock || number == __NR_mlock2)
		record.flags = LANE_VM_LOCK;
	else if (number == __NR_munlock)
		record.flags = LANE_VM_UNLOCK;
	if (number == __NR_mlockall || number == __NR_munlockall) {
		record.flags = number == __NR_mlockall ? LANE_VM_LOCK_ALL : LANE_VM_UNLOCK_ALL;
		record.address = record.size = 0;
	}
	if (number == __NR_remap_file_pages) {
		record.offset = vm_word(ask->words[3]) * KERNEL_PAGE;
		record.flags = (uint32_t)ask->words[4];
	}
	if (number == __NR_madvise)
		vm_before_advice(record.flags, record.size);
	hidden = vm_hides(&record) ? (uintptr_t)(record.address + record.size) : 0;
	vm_forget_below(hidden);
	result = vm_make(ask, number);
	vm_forget_below(hidden);
	return vm_after(ask, &record, result);
}

// The linker protects what it has relocated, before its code runs.
static long vm_mprotect(const struct vm_ask *ask, long number)
{
	long result = vm_change(ask, number, LANE_VM_MPROTECT);

	if (vm_write_is_linker(ask->back))
		enter_loaded();
	return result;
}

// Is it a descriptor of this very process?
//
// The line "Pid:" of /proc/self/fdinfo says which process a pidfd is of.
static bool vm_is_ourselves(int fd)
{
	static const char word[] = "\nPid:\t";
	uint32_t pid = 0;
	char path[40], text[512];
	const char *at = NULL;
	long file, got;

	if (fd == VM_PIDFD_SELF || fd == VM_PIDFD_SELF - 1 || fd == VM_PIDFD_SELF * 2)
		return true;
	if (fd < 0)
		return false;
	text_put_fd(path, "/proc/self/fdinfo/", (uint32_t)fd);
	file = kernel(__NR_openat, KERNEL_AT_FDCWD, path, 0x80000 /* O_CLOEXEC */, 0);
	if (kernel_failed(file))
		return false;
	got = kernel(__NR_read, file, text, sizeof(text) - 1);
	kernel(__NR_close, file);
	text[got > 0 ? got : 0] = 0;
	for (long i = 0; i < got && !at; i++)
		at = text_after(text + i, word);
	while (at && *at >= '0' && *at <= '9')
		pid = pid * 10 + (uint32_t)(*at++ - '0');
	return pid == recording_state->pid;
}

// As the kernel's struct iovec.
struct vm_vector {
	uintptr_t address, size;
};

// process_madvise on ourselves is madvise of several ranges: the result says how far it came.
static long vm_advise_vectors(const struct vm_ask *ask)
{
	const struct vm_vector *vectors = (const struct vm_vector *)ask->words[1];
	uint64_t count = vm_word(ask->words[2]), left;
	struct lane_vm record = { .kind = LANE_VM_MADVISE, .flags = (uint32_t)ask->words[3] };
	long result;

	if (recording_phase() != RECORDING_ON || count == 0 || count > VM_VECTORS_MAX)
		return vm_make(ask, __NR_process_madvise);
	if (!vm_is_ourselves((int)ask->words[0])) {
		result = vm_make(ask, __NR_process_madvise);
		if (!kernel_failed(result))
			__atomic_fetch_add(&recording_state->segment->calls_elsewhere, 1,
					   __ATOMIC_RELAXED);
		return result;
	}
	vm_before_advice(record.flags, VM_RELEASE_MIN);
	vm_forget_below(vm_hides(&record) ? UINTPTR_MAX : 0);
	result = vm_make(ask, __NR_process_madvise);
	vm_forget_below(vm_hides(&record) ? UINTPTR_MAX : 0);
	if (kernel_failed(result)) // what the vectors are is not known then
		return vm_after(ask, &record, result);
	left = vm_word(result);
	for (uint64_t i = 0; i < count && (left || i == 0); i++) {
		record.address = vectors[i].address;
		record.size = vectors[i].size < left ? vectors[i].size : left;
		left -= record.size;
		vm_after(ask, &record, 0);
	}
	return result;
}

// The size is asked of the kernel before (IPC_STAT), since shmat itself does not say it, and shmdt
// is called with the address alone.
static long vm_shmat(const struct vm_ask *ask)
{
	uint32_t flags = (uint32_t)ask->words[2];
	// The kernel's struct shmid64_ds; what is before the size is a struct ipc64_perm.
	struct {
		uint8_t permissions[sizeof(long) == 8 ? 48 : 36];
		unsigned long size;
		uint8_t rest[128];
	} segment = { .size = 0 };
	struct lane_vm record = {
		.kind = LANE_VM_SHMAT,
		.address = vm_word(ask->words[1]),
		.flags = flags,
		.protection = KERNEL_PROT_READ,
	};
	long result;

	if (!(flags & VM_SHM_RDONLY))
		record.protection |= KERNEL_PROT_WRITE;
	if (flags & VM_SHM_EXEC)
		record.protection |= KERNEL_PROT_EXEC;
	if (!kernel_failed(kernel(__NR_shmctl, ask->words[0], VM_IPC_STAT, &segment)))
		record.size = segment.size;
	if (flags & VM_MAP_REMAP) {
		result = vm_around(ask, __NR_shmat, &record, 0);
	} else {
		result = vm_make(ask, __NR_shmat);
		if (!kernel_failed(result))
			record.address = vm_word(result);
		vm_after(ask, &record, result);
	}
	if (!kernel_failed(result))
		vm_segments_put(vm_word(result), record.size);
	return result;
}

// Where the size is not known (it was attached before the recording), what is mapped is looked up.
static long vm_shmdt(const struct vm_ask *ask)
{
	struct lane_vm record = { .kind = LANE_VM_SHMDT, .address = vm_word(ask->words[0]) };
	long result;

	record.size = vm_segments_take(record.address);
	vm_forget();
	result = vm_around(ask, __NR_shmdt, &record, record.size);
	vm_forget();
	if (kernel_failed(result) && record.size)
		vm_segments_put(record.address, record.size); // it is attached still
	else if (!kernel_failed(result) && !record.size)
		__atomic_store_n(&vm_list_due, 1, __ATOMIC_RELAXED);
	return result;
}

// The ring of asynchronous input and output (io_setup): the kernel maps one for each context, which
// is known by the ring's address. Its beginning is the kernel's struct aio_ring, which says how
// many events of 32 bytes follow. 0: there is none.
static uint64_t vm_ring_bytes(uint64_t context)
{
	enum { HEAD_BYTES = 32, EVENT_BYTES = 32, EVENTS = 1, MAGIC = 4 };
	const uint32_t *ring = (const uint32_t *)(uintptr_t)context;
	uint64_t bytes;

	if (!context || context % KERNEL_PAGE || !kernel_can_read((uintptr_t)context) ||
	    ring[MAGIC] != 0xa10a10a1)
		return 0;
	bytes = HEAD_BYTES + (uint64_t)ring[EVENTS] * EVENT_BYTES + KERNEL_PAGE - 1;
	return bytes - bytes % KERNEL_PAGE;
}

// As a mapping that the caller made: none of its kind says so itself.
static long vm_io_setup(const struct vm_ask *ask)
{
	struct lane_vm record = { .kind = LANE_VM_MMAP,
				  .protection = KERNEL_PROT_READ | KERNEL_PROT_WRITE,
				  .flags = KERNEL_MAP_SHARED | KERNEL_MAP_ANONYMOUS };
	long result = vm_make(ask, __NR_io_setup);

	if (kernel_failed(result))
		return result;
	record.address = vm_word(*(const long *)ask->words[1]);
	record.size = vm_ring_bytes(record.address);
	if (record.size)
		vm_after(ask, &record, 0);
	return result;
}

static long vm_io_destroy(const struct vm_ask *ask)
{
	struct lane_vm record = { .kind = LANE_VM_MUNMAP, .address = vm_word(ask->words[0]) };

	record.size = vm_ring_bytes(record.address);
	return record.size ? vm_around(ask, __NR_io_destroy, &record, record.size)
			   : vm_make(ask, __NR_io_destroy);
}

// The baseline comes before the first call, not with it; and so does what was mapped unseen.
static COLD void vm_ready(void)
{
	struct vm_write_door door = vm_write_enter();

	if (door.lane && __atomic_load_n(&vm_list_due, __ATOMIC_RELAXED))
		vm_list_again(door.lane);
	vm_write_leave(&door);
}

// ---- What is ours -------------------------------------------------------------------------------

// Whether a call that could take memory away would take some of ours: the range that it is about,
// and the lowest of ours in it. A program comes to ours in three ways: it goes through its list of
// mappings (sandboxes, restorers of checkpoints), it clears all between two addresses that it took
// for its own, or it uses a place once more that it unmapped, where a mapping of ours has come to
// lie since. The linker alone is believed: it maps over what it has just mapped itself.
static bool vm_hits_own(const struct vm_ask *ask, long number, struct own_range *about,
			struct own_range *ours)
{
	const long *words = ask->words;
	long flags = words[3];

	if (likely(number != __NR_munmap && number != __NR_mprotect &&
		   number != __NR_pkey_mprotect && number != __NR_madvise &&
		   number != __NR_mremap && number != KERNEL_NR_MMAP))
		return false;
	if (number == KERNEL_NR_MMAP &&
	    (!(flags & KERNEL_MAP_FIXED) || (flags & KERNEL_MAP_FIXED_NOREPLACE)))
		return false;
	about->start = (uintptr_t)words[0];
	about->end = about->start + (uintptr_t)words[1] + KERNEL_PAGE - 1;
	about->end -= about->end % KERNEL_PAGE;
	if (number == __NR_mremap && (flags & KERNEL_MREMAP_FIXED) &&
	    own_find((uintptr_t)words[4], (uintptr_t)words[4] + (uintptr_t)words[2], ours))
		return true;
	return about->start % KERNEL_PAGE == 0 && !vm_write_is_linker(ask->back) &&
	       own_find(about->start, about->end, ours);
}

// Once in a process, and not where the recorder makes no system call.
static COLD void vm_tell_own(void)
{
	static _Atomic uint32_t told;
	uint64_t signals;

	if (recording_phase() != RECORDING_ON || kernel_sealed ||
	    __atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
		return;
	signals = kernel_block_signals();
	notes_message(NOTE_MESSAGE_OWN, "");
	kernel_restore_signals(signals);
}

// What is not ours, piece by piece; what is ours is left alone, and is not recorded. A call that
// would put something else in its place cannot be answered so: it fails, as does one that would
// move ours, to whose caller nothing is mapped there. For example of a munmap of 0x1000 to 0x9000,
// with ours at 0x4000 to 0x6000, two calls are made, 0x1000 to 0x4000 and 0x6000 to 0x9000; and an
// mremap of the same range fails with EFAULT, as the kernel has it for a hole.
static COLD long vm_spare_own(const struct vm_ask *ask, long number, struct own_range about,
			      struct own_range ours)
{
	struct vm_ask piece = *ask;
	long result = 0;

	if (!ask->stranger)
		vm_tell_own();
	if (number == __NR_mremap && about.start < ours.end && ours.start < about.end)
		return -VM_EFAULT;
	if (number == KERNEL_NR_MMAP || number == __NR_mremap)
		return -VM_ENOMEM;
	while (about.start < about.end && !kernel_failed(result)) {
		bool found = own_find(about.start, about.end, &ours);
		uintptr_t stop = found ? ours.start : about.end;

		piece.words[0] = (long)about.start;
		piece.words[1] = (long)(stop - about.start);
		if (stop > about.start)
			result = vm_call(&piece, number);
		about.start = found ? ours.end : about.end;
	}
	return result;
}

static bool vm_shared; // a child, or a thread, may have another one's thread block

void vm_share(void)
{
	struct lane *lane = lane_enter(); // by which it is told from its maker

	if (lane)
		lane_leave(lane, lane->ring, lane->ring);
	vm_shared = true;
}

// Whether the lane is another's, who goes on in it. In a sealed process it cannot be asked.
static COLD bool vm_is_anothers(void)
{
	uint32_t tid = lane_get_mine()->tid;

	return tid && !kernel_sealed && tid != kernel_thread_id();
}

static COLD long vm_call_as_stranger(const struct vm_ask *ask, long number)
{
	struct vm_ask strange = *ask;

	strange.stranger = true;
	return vm_call(&strange, number);
}

void vm_count_stranger(void)
{
	if (recording_phase() == RECORDING_ON)
		__atomic_fetch_add(&recording_state->segment->calls_strangers, 1, __ATOMIC_RELAXED);
}

// A stranger's call is made, counted and not recorded, so the list of mappings is read anew. Our
// own memory is protected from it too.
long vm_call(const struct vm_ask *ask, long number)
{
	struct own_range about, ours;

	if (unlikely(vm_shared) && !ask->stranger && vm_is_anothers())
		return vm_call_as_stranger(ask, number);
	if (likely(!ask->stranger) && kernel_nested())
		return ask->make ? ask->make(ask) : vm_relay(ask, number);
	if (unlikely(vm_hits_own(ask, number, &about, &ours)))
		return vm_spare_own(ask, number, about, ours);
	if (unlikely(ask->stranger)) {
		vm_look_up_from_now();
		vm_missed();
		if (vm_is_call((uint32_t)number))
			vm_count_stranger();
		return ask->make ? ask->make(ask) : vm_relay(ask, number);
	}
	if (unlikely(recording_phase() == RECORDING_ON &&
		     (!recording_state->baseline_told ||
		      __atomic_load_n(&vm_list_due, __ATOMIC_RELAXED))))
		vm_ready();
	switch (number) {
	case KERNEL_NR_MMAP:
		return vm_mmap(ask);
	case __NR_munmap:
		return vm_munmap(ask);
	case __NR_mremap:
		return vm_mremap(ask);
	case __NR_brk:
		return vm_brk(ask);
	case __NR_mprotect:
	case __NR_pkey_mprotect:
		return vm_mprotect(ask, number);
	case __NR_madvise:
		return vm_change(ask, number, LANE_VM_MADVISE);
	case __NR_process_madvise:
		return vm_advise_vectors(ask);
	case __NR_mlock:
	case __NR_mlock2:
	case __NR_munlock:
	case __NR_mlockall:
	case __NR_munlockall:
		return vm_change(ask, number, LANE_VM_MLOCK);
	case __NR_remap_file_pages:
		return vm_change(ask, number, LANE_VM_REMAP);
	case __NR_shmat:
		return vm_shmat(ask);
	case __NR_shmdt:
		return vm_shmdt(ask);
	case __NR_io_setup:
		return vm_io_setup(ask);
	case __NR_io_destroy:
		return vm_io_destroy(ask);
	default:
		return vm_make(ask, number);
	}
}

bool vm_is_call(uint32_t number)
{
	static const uint16_t numbers[] = {
		KERNEL_NR_MMAP,
		__NR_munmap,
		__NR_mremap,
		__NR_brk,
		__NR_madvise,
		__NR_mprotect,
		__NR_mlock,
		__NR_munlock,
		__NR_mlock2,
		__NR_mlockall,
		__NR_shmat,
		__NR_munlockall,
		__NR_shmdt,
		__NR_pkey_mprotect,
		__NR_remap_file_pages,
		__NR_process_madvise,
		__NR_io_setup,
		__NR_io_destroy,
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (numbers[i] == number)
			return true;
	return false;
}

// ---- The baseline ------------------------------------------------------------------------------

// Of the first lane that has an event: what was mapped before, as a list. Not in a forked copy,
// whose parent's mappings the trace has already.
void vm_begin(struct lane *lane)
{
	struct recording_state *state = recording_state;
	uint32_t untold = 0;

	vm_write_start();
	lane->limit = 0;
	if (__atomic_compare_exchange_n(&state->baseline_told, &untold, 1, false, __ATOMIC_ACQ_REL,
					__ATOMIC_RELAXED) &&
	    !state->copy && vm_put_room(lane)) {
		peak_start();
		vm_write_own(lane, LANE_VM_OWN);
		vm_list(lane);
	}
	vm_write_own(lane, LANE_VM_MAPPED);
	lane->limit = lane->open_limit;
}

void vm_end(void)
{
	struct vm_write_door door;

	// A vfork child's memory is its parent's, which goes on.
	if (recording_phase() != RECORDING_ON || !recording_state->baseline_told ||
	    kernel_process_id() != recording_state->pid)
		return;
	peak_tell(); // also where there is no snapshot any more
	door = vm_write_enter();
	if (door.lane && vm_incomplete)
		vm_list_again(door.lane);
	if (door.lane && peak_affordable(PEAK_EXIT))
		vm_look(door.lane, PEAK_EXIT);
	vm_write_leave(&door);
}

void vm_mark(void)
{
	struct vm_write_door door;

	if (recording_phase() != RECORDING_ON || !recording_state->baseline_told ||
	    kernel_process_id() != recording_state->pid)
		return;
	door = vm_write_enter();
	if (door.lane)
		vm_look(door.lane, PEAK_MARK);
	vm_write_leave(&door);
}

// The last moment that is ours: all of the program's own work is done.
__attribute__((destructor)) static void vm_finish(void)
{
	const uintptr_t *fp = __builtin_frame_address(0);

	if (recording_phase() == RECORDING_ON)
		enter_end();
	if (recording_phase() == RECORDING_ON &&
	    recording_state->segment->options & SEGMENT_REACHABILITY)
		__atomic_store_n(&recording_state->segment->look_stack, dead_stack_top(fp),
				 __ATOMIC_RELAXED);
	vm_end();
}
