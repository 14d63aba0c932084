#include "recorder/vm.h"

#include "recorder/capture.h"
#include "recorder/codemap.h"
#include "recorder/elf64.h"
#include "recorder/event.h"
#include "recorder/notes.h"
#include "recorder/order.h"
#include "recorder/peak.h"
#include "recorder/scope.h"
#include "recorder/text.h"

enum {
	VM_RECORDS = 3, // room that a call needs, in LANE_ROOM
	VM_LOOK_FRAMES = 24,
	VM_SBRK_BYTES = 256, // of the function's code
	VM_MAP_REMAP = 0x4000,
	VM_SHM_RDONLY = 0x1000,
	VM_SHM_EXEC = 0x8000,
	VM_IPC_STAT = 2,
	VM_ENOMEM = 12,
	VM_RELEASE_MIN = 64 << 10, // bytes given back before which the peak may be
	VM_MADV_FREE = 8,
	VM_MADV_REMOVE = 9,
};

// Where code lies whose calls have another origin than the program's.
struct vm_range {
	uintptr_t start, end;
};

static struct vm_range vm_ours, vm_libc, vm_linker, vm_sbrk;

// ---- Making the call ------------------------------------------------------------------------

// The program's own call, passed on. Its address in this function tells it apart from ours.
static __attribute__((noinline)) long vm_relay(const struct vm_registers *call, long number)
{
	return kernel_call6(number, call->a, call->b, call->c, call->d, call->e, call->f);
}

// ---- Who called -----------------------------------------------------------------------------

static bool vm_inside(const struct vm_range *range, uintptr_t pc)
{
	return pc - range->start < range->end - range->start;
}

static struct vm_range vm_range_of(const struct scope_object *object)
{
	const struct elf64_header *elf = object ? (const void *)object->bias : NULL;
	struct vm_range range = { 0 };
	const struct elf64_program *program;

	if (!elf || memcmp(elf->identity, "\177ELF", 4) != 0)
		return range;
	program = (const void *)(object->bias + elf->program_at);
	range.start = object->bias;
	for (uint16_t i = 0; i < elf->program_count; i++) {
		uintptr_t end = object->bias + program[i].address + program[i].memory_size;

		if (program[i].type == ELF64_LOAD && end > range.end)
			range.end = end;
	}
	return range;
}

static void vm_find_ranges(void)
{
	struct scope_object *libc = NULL, *linker = NULL;

	if (vm_ours.end)
		return;
	scope_next("execve", &libc);
	scope_next("__tls_get_addr", &linker);
	vm_libc = vm_range_of(libc);
	if (linker != libc)
		vm_linker = vm_range_of(linker);
	if (libc)
		vm_sbrk.start = (uintptr_t)scope_find(libc, "sbrk");
	vm_sbrk.end = vm_sbrk.start ? vm_sbrk.start + VM_SBRK_BYTES : 0;
	vm_ours = vm_range_of(scope_ourselves());
}

// From the stack just taken: whose call is it? Within our malloc and free it is the allocator's;
// else the caller of the function that made the call decides.
static uint8_t vm_origin(const struct capture *capture)
{
	uint32_t depth = capture->depth;
	uintptr_t caller = 0;

	for (uint32_t i = 1; i < depth && i < VM_LOOK_FRAMES; i++) {
		uintptr_t pc = capture->entries[depth - 1 - i].pc;

		if (vm_inside(&vm_ours, pc))
			return LANE_VM_ALLOCATOR;
		if (!caller && !vm_inside(&vm_sbrk, pc))
			caller = pc;
	}
	if (vm_inside(&vm_libc, caller))
		return LANE_VM_LIBC;
	if (vm_inside(&vm_linker, caller))
		return LANE_VM_LOADER;
	// The linker's own calls are made in place, without a function around them.
	if (depth && vm_inside(&vm_linker, capture->entries[depth - 1].pc))
		return LANE_VM_LOADER;
	return LANE_VM_PROGRAM;
}

// ---- Our own memory ----------------------------------------------------------------------------

enum { VM_OWN_MAX = 512 };

// What was mapped and unmapped by us and not told yet: a ring.
static struct vm_own_change {
	uint64_t start, bytes;
	_Atomic uint32_t state; // 0: free, 1: mapped, 2: gone
} vm_changes[VM_OWN_MAX];
static _Atomic uint32_t vm_changes_put;
static _Atomic uint32_t vm_changes_told;

void vm_own(const void *start, size_t bytes, bool gone)
{
	uint32_t at = __atomic_load_n(&vm_changes_put, __ATOMIC_RELAXED);
	struct vm_own_change *change;

	do {
		if (at - __atomic_load_n(&vm_changes_told, __ATOMIC_ACQUIRE) >= VM_OWN_MAX)
			return; // nobody records: then nobody misses it
	} while (!__atomic_compare_exchange_n(&vm_changes_put, &at, at + 1, true, __ATOMIC_ACQ_REL,
					      __ATOMIC_RELAXED));
	change = &vm_changes[at % VM_OWN_MAX];
	change->start = (uint64_t)start;
	change->bytes = bytes;
	__atomic_store_n(&change->state, gone ? 2 : 1, __ATOMIC_RELEASE);
}

// ---- Writing --------------------------------------------------------------------------------

static bool vm_room(struct lane *lane)
{
	return lane->head + VM_RECORDS * LANE_ROOM <= lane->room ||
	       lane_wait_room(lane, (VM_RECORDS - 1) * LANE_ROOM);
}

// One record, published. With `call`, with the stack of its site.
static bool vm_put(struct lane *lane, struct lane_vm *record, struct vm_registers *call,
		   uintptr_t back)
{
	uint8_t *start = lane->ring + (lane->head & lane->mask);
	uint8_t *head_at = start, *at = start + 2, *body;
	uint32_t head = LANE_VM;
	bool differs = false;
	uint64_t seq;

	if (lane->exact)
		clock_set_exact(lane);
	if (__atomic_load_n(lane->tick, __ATOMIC_RELAXED) != lane->time_ns) {
		struct event_time time = event_put_time(lane, start);

		if (!time.at)
			return false;
		head_at = time.head_at;
		at = time.at;
		head |= at == head_at + 6 ? LANE_TIME : 0;
	}
	if (record->part != LANE_VM_END && order_touch(lane, LANE_VM_ADDRESS, &seq)) {
		event_store(at, seq);
		at += 8;
		head |= LANE_OWNER;
	}
	body = at;
	at += sizeof(*record);
	if (call) {
		// The walk begins at the site. Its return address and frame pointer are lent a
		// place below the caller's stack pointer, in the red zone that it may use itself.
		uintptr_t *top = call->stack;
		uintptr_t kept[2] = { top[-2], top[-1] };

		top[-2] = call->rbp;
		top[-1] = back;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		differs = capture_take(&lane->capture, top - 2);
		if (lane->verify)
			event_verify(lane, top - 2);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		top[-2] = kept[0];
		top[-1] = kept[1];
		record->origin = vm_origin(&lane->capture);
		head |= LANE_VM_HAS_STACK;
	}
	memcpy(body, record, sizeof(*record));
	if (differs) {
		head |= LANE_STACK;
		at = event_put_stack(lane, start, at);
		if (!at)
			return false;
	}
	head_at[0] = (uint8_t)head;
	head_at[1] = (uint8_t)(head >> 8);
	lane->head += (uint64_t)(at - start);
	__atomic_store_n(&lane->shared->head, lane->head, __ATOMIC_RELEASE);
	return true;
}

// Tell what was not told yet: as LANE_VM_OWN before the baseline, then as LANE_VM_MAPPED. One
// thread at a time: the others leave it to that one.
static void vm_tell_own(struct lane *lane, uint8_t kind)
{
	struct recording_state *state = recording_state;
	uint32_t idle = 0;

	if (!__atomic_compare_exchange_n(&state->own_telling, &idle, 1, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return;
	for (uint32_t at = __atomic_load_n(&vm_changes_told, __ATOMIC_RELAXED);
	     at != __atomic_load_n(&vm_changes_put, __ATOMIC_ACQUIRE); at++) {
		struct vm_own_change *change = &vm_changes[at % VM_OWN_MAX];
		struct lane_vm record = {
			.kind = kind,
			.origin = LANE_VM_RECORDER,
			.address = change->start,
			.size = change->bytes,
			.protection = KERNEL_PROT_READ | KERNEL_PROT_WRITE,
		};
		uint32_t what = __atomic_load_n(&change->state, __ATOMIC_ACQUIRE);

		if (!what || (what == 2 && kind == LANE_VM_OWN) || !vm_room(lane))
			break;
		if (what == 2)
			record.kind = LANE_VM_UNMAPPED;
		vm_put(lane, &record, NULL, 0);
		__atomic_store_n(&change->state, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&vm_changes_told, at + 1, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&state->own_telling, 0, __ATOMIC_RELEASE);
}

// A lane that was entered for one call.
struct vm_door {
	struct lane *lane; // NULL: nothing is recorded
	bool between;      // the lane is between the halves of a realloc of this very thread
};

static void vm_leave(struct vm_door *door)
{
	if (!door->lane)
		return;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (door->between)
		door->lane->between = true;
	else
		door->lane->limit = door->lane->open_limit;
	door->lane = NULL;
}

static struct vm_door vm_enter(void)
{
	struct vm_door door = { .lane = lane_mine };

	if (door.lane->between) {
		door.lane->between = false;
		door.between = true;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	} else {
		door.lane = lane_enter();
	}
	if (door.lane && !vm_room(door.lane))
		vm_leave(&door);
	if (door.lane && unlikely(__atomic_load_n(&vm_changes_put, __ATOMIC_RELAXED) !=
				  __atomic_load_n(&vm_changes_told, __ATOMIC_RELAXED)))
		vm_tell_own(door.lane, LANE_VM_MAPPED);
	return door;
}

// A snapshot of all memory, between two records of the lane.
static COLD void vm_look(struct lane *lane, enum peak_reason reason)
{
	struct lane_vm begin = { .kind = LANE_VM_LOOK_BEGIN }, end = { .kind = LANE_VM_LOOK_END };
	uint32_t idle = 0;

	if (!__atomic_compare_exchange_n(&recording_state->looking, &idle, 1, false,
					 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	if (vm_room(lane) && vm_put(lane, &begin, NULL, 0)) {
		peak_wait(reason);
		if (vm_room(lane))
			vm_put(lane, &end, NULL, 0);
	}
	__atomic_store_n(&recording_state->looking, 0, __ATOMIC_RELEASE);
}

// Before so many bytes are given back: is this the peak?
static void vm_before_release(struct lane *lane, uint64_t bytes)
{
	if (bytes >= VM_RELEASE_MIN && lane && peak_due()) {
		vm_look(lane, PEAK_RELEASE);
		vm_room(lane);
	}
}

// A call that takes memory: it has been made.
static long vm_after(struct vm_registers *call, uintptr_t back, struct lane_vm *record, long result)
{
	struct vm_door door = vm_enter();

	if (kernel_failed(result))
		record->error = (uint16_t)-result;
	if (door.lane)
		vm_put(door.lane, record, call, back);
	vm_leave(&door);
	return result;
}

// A call that gives `released` bytes back: record, make it, record how it went.
static long vm_around(struct vm_registers *call, long number, uintptr_t back,
		      struct lane_vm *record, uint64_t released)
{
	struct vm_door door = vm_enter();
	struct lane_vm end = { .part = LANE_VM_END };
	long result;

	record->part = LANE_VM_BEGIN;
	vm_before_release(door.lane, released);
	if (door.lane && !vm_put(door.lane, record, call, back))
		vm_leave(&door);
	result = vm_relay(call, number);
	if (!door.lane)
		return result;
	end.kind = record->kind;
	end.address = record->address;
	if (number == __NR_brk)
		end.error = (uint64_t)result == record->address ? 0 : VM_ENOMEM;
	else if (kernel_failed(result))
		end.error = (uint16_t)-result;
	else if (number == __NR_mmap || number == __NR_mremap || number == __NR_shmat)
		end.address = (uint64_t)result;
	if (vm_room(door.lane))
		vm_put(door.lane, &end, NULL, 0);
	vm_leave(&door);
	return result;
}

// ---- Files ----------------------------------------------------------------------------------

struct vm_stat {
	uint64_t device, inode;
	uint8_t rest[256];
};

// A path of a descriptor: /proc/self/fd/N.
static void vm_fd_path(char *out, uint32_t fd)
{
	char digits[12];
	size_t count = 0;

	memcpy(out, "/proc/self/fd/", 14);
	out += 14;
	do {
		digits[count++] = (char)('0' + fd % 10);
		fd /= 10;
	} while (fd);
	while (count)
		*out++ = digits[--count];
	*out = 0;
}

// The number under which the collector knows the file behind `fd`; 0: none.
static uint32_t vm_file(int fd)
{
	struct recording_state *state = recording_state;
	struct vm_stat stat = { 0 };
	uint64_t signals, device;
	uint32_t at, id;
	char path[32];
	long length;

	if (recording_phase() != RECORDING_ON || kernel_failed(kernel(__NR_fstat, fd, &stat)))
		return 0;
	device = ((stat.device >> 8 & 0xfff) | (stat.device >> 32 & ~0xfffu)) << 20 |
		 (stat.device & 0xff) | (stat.device >> 12 & 0xfff00);
	signals = kernel_block_signals();
	recording_lock(&state->files_lock);
	at = (uint32_t)((stat.inode * 0x9e3779b97f4a7c15u + device) >> 40) % RECORDING_FILES_MAX;
	id = state->files[at].id;
	if (!id || state->files[at].device != device || state->files[at].inode != stat.inode) {
		vm_fd_path(path, (uint32_t)fd);
		length =
			kernel(__NR_readlink, path, state->file_path, sizeof(state->file_path) - 1);
		state->file_path[kernel_failed(length) ? 0 : length] = 0;
		id = ++state->files_count;
		state->files[at] = (struct recording_file){ device, stat.inode, id };
		notes_file(id, device, stat.inode, state->file_path);
	}
	recording_unlock(&state->files_lock);
	kernel_restore_signals(signals);
	return id;
}

// ---- The calls ------------------------------------------------------------------------------

// What is cached of stacks and code in a range that goes away is forgotten: before, so that a walk
// in between does not read it, and behind, so that nothing that was mapped there is mistaken.
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
	signals = kernel_block_signals();
	recording_lock(&recording_state->code_lock);
	if (codemap_unmapped(start, start + bytes))
		unwind_forget();
	recording_unlock(&recording_state->code_lock);
	kernel_restore_signals(signals);
}

static long vm_mmap(struct vm_registers *call, uintptr_t back)
{
	uint32_t flags = (uint32_t)call->d;
	struct lane_vm record = {
		.kind = LANE_VM_MMAP,
		.address = (uint64_t)call->a,
		.size = (uint64_t)call->b,
		.protection = (uint32_t)call->c,
		.flags = flags,
	};
	long result;

	if (!(flags & KERNEL_MAP_ANONYMOUS)) {
		record.offset = (uint64_t)call->f;
		record.file = vm_file((int)call->e);
	}
	if ((flags & KERNEL_MAP_FIXED) && !(flags & KERNEL_MAP_FIXED_NOREPLACE)) {
		vm_forget();
		result = vm_around(call, __NR_mmap, back, &record, record.size);
		vm_forget();
		return result;
	}
	result = vm_relay(call, __NR_mmap);
	if (!kernel_failed(result))
		record.address = (uint64_t)result;
	return vm_after(call, back, &record, result);
}

static long vm_munmap(struct vm_registers *call, uintptr_t back)
{
	struct lane_vm record = { .kind = LANE_VM_MUNMAP,
				  .address = (uint64_t)call->a,
				  .size = (uint64_t)call->b };
	long result;

	vm_forget_code((uintptr_t)call->a, (uintptr_t)call->b);
	result = vm_around(call, __NR_munmap, back, &record, record.size);
	vm_forget();
	return result;
}

static long vm_mremap(struct vm_registers *call, uintptr_t back)
{
	struct lane_vm record = {
		.kind = LANE_VM_MREMAP,
		.address = (uint64_t)(call->d & KERNEL_MREMAP_FIXED ? call->e : call->a),
		.size = (uint64_t)call->c,
		.old_address = (uint64_t)call->a,
		.old_size = (uint64_t)call->b,
		.flags = (uint32_t)call->d,
	};
	long result;

	vm_forget();
	result = vm_around(call, __NR_mremap, back, &record,
			   record.old_size > record.size ? record.old_size - record.size : 0);
	vm_forget();
	return result;
}

static long vm_brk(struct vm_registers *call, uintptr_t back)
{
	uint64_t old = (uint64_t)kernel(__NR_brk, 0);
	uint64_t wanted = (uint64_t)call->a;
	struct lane_vm record = { .kind = LANE_VM_BRK,
				  .old_address = old,
				  .address = wanted ? wanted : old };
	long result;

	if (wanted && wanted < old)
		return vm_around(call, __NR_brk, back, &record, old - wanted);
	result = vm_relay(call, __NR_brk);
	if (wanted && (uint64_t)result != wanted)
		record.error = VM_ENOMEM;
	vm_after(call, back, &record, 0);
	return result;
}

// Calls that keep what is mapped.
static long vm_change(struct vm_registers *call, long number, uintptr_t back, uint8_t kind)
{
	struct lane_vm record = { .kind = kind,
				  .address = (uint64_t)call->a,
				  .size = (uint64_t)call->b };

	if (kind == LANE_VM_MPROTECT)
		record.protection = (uint32_t)call->c;
	else if (number == __NR_madvise)
		record.flags = (uint32_t)call->c;
	else if (number == __NR_mlock || number == __NR_mlock2)
		record.flags = LANE_VM_LOCK;
	else if (number == __NR_munlock)
		record.flags = LANE_VM_UNLOCK;
	if (number == __NR_mlockall || number == __NR_munlockall) {
		record.flags = number == __NR_mlockall ? LANE_VM_LOCK_ALL : LANE_VM_UNLOCK_ALL;
		record.address = record.size = 0;
	}
	if (number == __NR_remap_file_pages) {
		record.offset = (uint64_t)call->d * KERNEL_PAGE;
		record.flags = (uint32_t)call->e;
	}
	if (number == __NR_madvise &&
	    (record.flags == KERNEL_MADV_DONTNEED || record.flags == VM_MADV_FREE ||
	     record.flags == VM_MADV_REMOVE) &&
	    record.size >= VM_RELEASE_MIN) {
		struct vm_door door = vm_enter();

		vm_before_release(door.lane, record.size);
		vm_leave(&door);
	}
	return vm_after(call, back, &record, vm_relay(call, number));
}

// Sizes of segments attached, for when they are detached. Overwritten when there are many.
static struct vm_segment {
	uint64_t address, size;
} vm_segments[256];

static struct vm_segment *vm_segment_of(uint64_t address)
{
	return &vm_segments[(address >> 12) % (sizeof(vm_segments) / sizeof(*vm_segments))];
}

static long vm_shmat(struct vm_registers *call, uintptr_t back)
{
	uint32_t flags = (uint32_t)call->c;
	struct {
		uint8_t permissions[48];
		uint64_t size;
		uint8_t rest[128];
	} segment = { .size = 0 };
	struct lane_vm record = {
		.kind = LANE_VM_SHMAT,
		.address = (uint64_t)call->b,
		.flags = flags,
		.protection = KERNEL_PROT_READ,
	};
	long result;

	if (!(flags & VM_SHM_RDONLY))
		record.protection |= KERNEL_PROT_WRITE;
	if (flags & VM_SHM_EXEC)
		record.protection |= KERNEL_PROT_EXEC;
	if (!kernel_failed(kernel(__NR_shmctl, call->a, VM_IPC_STAT, &segment)))
		record.size = segment.size;
	if (flags & VM_MAP_REMAP) {
		result = vm_around(call, __NR_shmat, back, &record, 0);
	} else {
		result = vm_relay(call, __NR_shmat);
		if (!kernel_failed(result))
			record.address = (uint64_t)result;
		vm_after(call, back, &record, result);
	}
	if (!kernel_failed(result))
		*vm_segment_of((uint64_t)result) =
			(struct vm_segment){ (uint64_t)result, record.size };
	return result;
}

static long vm_shmdt(struct vm_registers *call, uintptr_t back)
{
	const struct vm_segment *segment = vm_segment_of((uint64_t)call->a);
	struct lane_vm record = { .kind = LANE_VM_SHMDT, .address = (uint64_t)call->a };
	long result;

	if (segment->address == record.address)
		record.size = segment->size;
	vm_forget();
	result = vm_around(call, __NR_shmdt, back, &record, record.size);
	vm_forget();
	return result;
}

// The baseline comes before the first call, not with it.
static COLD void vm_ready(void)
{
	struct vm_door door = { .lane = lane_enter() };

	vm_leave(&door);
}

long vm_call(struct vm_registers *call, long number, uintptr_t back)
{
	if (unlikely(recording_phase() == RECORDING_ON && !recording_state->baseline_told))
		vm_ready();
	switch (number) {
	case __NR_mmap:
		return vm_mmap(call, back);
	case __NR_munmap:
		return vm_munmap(call, back);
	case __NR_mremap:
		return vm_mremap(call, back);
	case __NR_brk:
		return vm_brk(call, back);
	case __NR_mprotect:
	case __NR_pkey_mprotect:
		return vm_change(call, number, back, LANE_VM_MPROTECT);
	case __NR_madvise:
		return vm_change(call, number, back, LANE_VM_MADVISE);
	case __NR_mlock:
	case __NR_mlock2:
	case __NR_munlock:
	case __NR_mlockall:
	case __NR_munlockall:
		return vm_change(call, number, back, LANE_VM_MLOCK);
	case __NR_remap_file_pages:
		return vm_change(call, number, back, LANE_VM_REMAP);
	case __NR_shmat:
		return vm_shmat(call, back);
	case __NR_shmdt:
		return vm_shmdt(call, back);
	default:
		return vm_relay(call, number);
	}
}

bool vm_is_call(uint32_t number)
{
	static const uint16_t numbers[] = {
		__NR_mmap,     __NR_munmap,        __NR_mremap,
		__NR_brk,      __NR_madvise,       __NR_mprotect,
		__NR_mlock,    __NR_munlock,       __NR_mlock2,
		__NR_mlockall, __NR_shmat,         __NR_munlockall,
		__NR_shmdt,    __NR_pkey_mprotect, __NR_remap_file_pages,
	};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (numbers[i] == number)
			return true;
	return false;
}

// ---- The baseline ------------------------------------------------------------------------------

// What the kernel lists as mapped, for the collector to take apart.
static void vm_tell_maps(void)
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
		notes_maps(state->file_path);
	}
	recording_unlock(&state->files_lock);
	kernel(__NR_close, fd);
}

void vm_begin(struct lane *lane)
{
	struct recording_state *state = recording_state;
	struct lane_vm record = { .kind = LANE_VM_BASELINE };
	uint32_t untold = 0;

	vm_find_ranges();
	lane->limit = 0;
	if (__atomic_compare_exchange_n(&state->baseline_told, &untold, 1, false, __ATOMIC_ACQ_REL,
					__ATOMIC_RELAXED) &&
	    !state->copy && vm_room(lane)) {
		peak_start();
		vm_tell_own(lane, LANE_VM_OWN);
		vm_tell_maps();
		if (vm_room(lane))
			vm_put(lane, &record, NULL, 0);
	}
	vm_tell_own(lane, LANE_VM_MAPPED);
	lane->limit = lane->open_limit;
}

// The last moment that is ours: all of the program's own work is done.
__attribute__((destructor)) static void vm_finish(void)
{
	struct vm_door door;

	if (recording_phase() != RECORDING_ON || !recording_state->baseline_told ||
	    !peak_affordable())
		return;
	door = vm_enter();
	if (door.lane)
		vm_look(door.lane, PEAK_EXIT);
	vm_leave(&door);
}
