#include "recorder/vm_win32.h"

#include "recorder/capture.h"
#include "recorder/event.h"
#include "recorder/hook_win32.h"
#include "recorder/notes.h"
#include "recorder/recording_win32.h"
#include "recorder/vm_put.h"
#include "recorder/walk_win32.h"

enum {
	VM_PRIVATE = 0x22, // as flags of mappings are written: private, anonymous
	VM_SHARED = 0x01,
	VM_MADV_FREE = 8,
	VM_ERROR = 12, // any: the system's numbers are not errno's
};

// Recorded as soon as a lane is there: recording_win32.c keeps the list itself.
void vm_own(const void *start, size_t bytes, bool gone)
{
	(void)start;
	(void)bytes;
	(void)gone;
}

// ---- Writing --------------------------------------------------------------------------------

static enum vm_put_stack vm_last(struct lane *lane, struct lane_vm *record, const void *frame)
{
	bool differs = capture_take(&lane->capture, frame);

	(void)record;
	if (lane->verify)
		event_verify(lane, frame);
	return differs ? VM_PUT_DIFFERS : VM_PUT_SAME;
}

// Enter the lane, put the record, leave.
static void vm_record(struct lane_vm *record, const uintptr_t *frame)
{
	struct lane *lane = lane_enter();

	if (!lane)
		return;
	if (vm_put_room(lane))
		vm_put(lane, record, frame ? vm_last : NULL, frame);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	lane->limit = lane->open_limit;
}

void vm_heap_gone(const void *heap, const uintptr_t *frame)
{
	struct lane_vm record = { .kind = LANE_VM_HEAP_GONE, .address = (uintptr_t)heap };

	vm_record(&record, frame);
}

// ---- The beginning --------------------------------------------------------------------------

void vm_begin(struct lane *lane)
{
	uint32_t told = 0;

	if (!__atomic_compare_exchange_n(&recording_state->baseline_told, &told, 1, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	lane->limit = 0;
	walk_first(lane);
	lane->limit = lane->open_limit;
}

// ---- The calls ------------------------------------------------------------------------------

// Whose call it is, by the thread's state and the caller.
static uint8_t vm_origin(const uintptr_t *frame)
{
	const struct lane *lane = lane_get_mine();

	if (lane->inside && (uintptr_t)frame < lane->inside)
		return LANE_VM_ALLOCATOR;
	return patch_from_ntdll(frame[1]) ? LANE_VM_LOADER : LANE_VM_PROGRAM;
}

static bool vm_is_recorded(const void *process)
{
	return process == NT_SELF && recording_phase() == RECORDING_ON;
}

// The part of an allocation from `at` to its end.
static size_t vm_extent(const void *at)
{
	struct nt_region region;
	const uint8_t *next = at, *allocation = NULL;

	while (NtQueryVirtualMemory(NT_SELF, next, NT_BASIC_INFORMATION, &region, sizeof(region),
				    NULL) >= 0) {
		if (!allocation)
			allocation = region.allocation;
		if (!allocation || region.allocation != allocation)
			break;
		next = region.base + region.bytes;
	}
	return (size_t)(next - (const uint8_t *)at);
}

// Behind the record of a call that takes memory.
static void vm_taken(nt_status status)
{
	walk_end();
	if (status < 0)
		walk_failed();
	else
		walk_now_and_then();
}

static void vm_allocated(nt_status status, void **at, const size_t *bytes, uint32_t type,
			 uint32_t page, const uintptr_t *frame)
{
	struct lane_vm record = {
		.kind = type & NT_MEM_RESERVE ? LANE_VM_MMAP : LANE_VM_MPROTECT,
		.origin = vm_origin(frame),
		.error = status < 0 ? VM_ERROR : 0,
		.protection = type & NT_MEM_COMMIT ? walk_access(page) : 0,
		.flags = VM_PRIVATE | (type & ~0xfffu),
		.address = (uintptr_t)*at,
		.size = *bytes,
	};

	if (type & NT_MEM_RESET) {
		record.kind = LANE_VM_MADVISE;
		record.flags = VM_MADV_FREE;
	} else if (!(type & (NT_MEM_RESERVE | NT_MEM_COMMIT))) {
		return;
	}
	vm_record(&record, frame);
}

NT_CALL nt_status hook_NtAllocateVirtualMemory(void *process, void **at, uintptr_t zero_bits,
					       size_t *bytes, uint32_t type, uint32_t protection)
{
	nt_status status;

	if (!vm_is_recorded(process))
		return patch_real.NtAllocateVirtualMemory(process, at, zero_bits, bytes, type,
							  protection);
	walk_begin();
	status =
		patch_real.NtAllocateVirtualMemory(process, at, zero_bits, bytes, type, protection);
	vm_allocated(status, at, bytes, type, protection, HOOK_FRAME);
	vm_taken(status);
	return status;
}

NT_CALL nt_status hook_NtAllocateVirtualMemoryEx(void *process, void **at, size_t *bytes,
						 uint32_t type, uint32_t protection,
						 void *parameters, uint32_t count)
{
	nt_status status;

	if (!vm_is_recorded(process))
		return patch_real.NtAllocateVirtualMemoryEx(process, at, bytes, type, protection,
							    parameters, count);
	walk_begin();
	status = patch_real.NtAllocateVirtualMemoryEx(process, at, bytes, type, protection,
						      parameters, count);
	vm_allocated(status, at, bytes, type, protection, HOOK_FRAME);
	vm_taken(status);
	return status;
}

// A record in front of a call that gives memory back.
static void vm_before(struct lane_vm *record, const uintptr_t *frame)
{
	walk_begin();
	// What is known of stacks and code there is forgotten.
	__atomic_fetch_add(&capture_epoch, 1, __ATOMIC_SEQ_CST);
	vm_record(record, frame);
}

static void vm_after(struct lane_vm *record, nt_status status)
{
	struct lane_vm end = {
		.part = LANE_VM_END,
		.kind = record->kind,
		.error = status < 0 ? VM_ERROR : 0,
		.address = record->address,
	};

	vm_record(&end, NULL);
	walk_end();
	__atomic_fetch_add(&capture_epoch, 1, __ATOMIC_SEQ_CST);
}

NT_CALL nt_status hook_NtFreeVirtualMemory(void *process, void **at, size_t *bytes, uint32_t type)
{
	const uintptr_t *frame = HOOK_FRAME;
	struct lane_vm record = { .part = LANE_VM_BEGIN };
	nt_status status;

	if (!vm_is_recorded(process))
		return patch_real.NtFreeVirtualMemory(process, at, bytes, type);
	record.kind = type & NT_MEM_RELEASE ? LANE_VM_MUNMAP : LANE_VM_MPROTECT;
	record.origin = vm_origin(frame);
	record.flags = type;
	record.address = (uintptr_t)*at & ~(uintptr_t)(KERNEL_PAGE - 1);
	record.size = *bytes ? *bytes : vm_extent(*at);
	if (!record.size) // nothing is there
		return patch_real.NtFreeVirtualMemory(process, at, bytes, type);
	vm_before(&record, frame);
	status = patch_real.NtFreeVirtualMemory(process, at, bytes, type);
	vm_after(&record, status);
	return status;
}

// The number under which the collector knows the file behind a view; 0: the system's paging file.
static uint32_t vm_file(uintptr_t at)
{
	static struct walk_file room; // under the lock
	struct recording_state *state = recording_state;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	struct recording_file *file;
	const char *path;
	uint32_t id = 0;

	recording_lock(&state->files_lock);
	path = walk_file(at, &room);
	if (path) {
		for (const char *c = path; *c; c++)
			hash = (hash ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
		file = &state->files[hash % RECORDING_FILES_MAX];
		if (!file->id || file->inode != hash) {
			*file = (struct recording_file){ 0, hash, ++state->files_count };
			notes_file(file->id, 0, 0, path);
		}
		id = file->id;
	}
	recording_unlock(&state->files_lock);
	return id;
}

static void vm_mapped(nt_status status, void **at, const uint64_t *offset, const size_t *bytes,
		      uint32_t type, uint32_t page, const uintptr_t *frame)
{
	struct lane_vm record = {
		.kind = LANE_VM_MMAP,
		.origin = vm_origin(frame),
		.error = status < 0 ? VM_ERROR : 0,
		.protection = walk_access(page),
		.flags = VM_SHARED | (type & ~0xfffu),
		.address = (uintptr_t)*at,
		.size = *bytes,
		.offset = offset ? *offset : 0,
		.file = status < 0 ? 0 : vm_file((uintptr_t)*at),
	};

	vm_record(&record, frame);
}

NT_CALL nt_status hook_NtMapViewOfSection(void *section, void *process, void **at,
					  uintptr_t zero_bits, size_t commit, uint64_t *offset,
					  size_t *bytes, uint32_t inherit, uint32_t type,
					  uint32_t protection)
{
	nt_status status;

	if (!vm_is_recorded(process))
		return patch_real.NtMapViewOfSection(section, process, at, zero_bits, commit,
						     offset, bytes, inherit, type, protection);
	walk_begin();
	status = patch_real.NtMapViewOfSection(section, process, at, zero_bits, commit, offset,
					       bytes, inherit, type, protection);
	vm_mapped(status, at, offset, bytes, type, protection, HOOK_FRAME);
	vm_taken(status);
	return status;
}

NT_CALL nt_status hook_NtMapViewOfSectionEx(void *section, void *process, void **at,
					    uint64_t *offset, size_t *bytes, uint32_t type,
					    uint32_t protection, void *parameters, uint32_t count)
{
	nt_status status;

	if (!vm_is_recorded(process))
		return patch_real.NtMapViewOfSectionEx(section, process, at, offset, bytes, type,
						       protection, parameters, count);
	walk_begin();
	status = patch_real.NtMapViewOfSectionEx(section, process, at, offset, bytes, type,
						 protection, parameters, count);
	vm_mapped(status, at, offset, bytes, type, protection, HOOK_FRAME);
	vm_taken(status);
	return status;
}

static struct lane_vm vm_view(void *at, const uintptr_t *frame)
{
	return (struct lane_vm){
		.part = LANE_VM_BEGIN,
		.kind = LANE_VM_MUNMAP,
		.origin = vm_origin(frame),
		.address = (uintptr_t)at & ~(uintptr_t)(KERNEL_PAGE - 1),
		.size = vm_extent(at),
	};
}

NT_CALL nt_status hook_NtUnmapViewOfSection(void *process, void *at)
{
	const uintptr_t *frame = HOOK_FRAME;
	struct lane_vm record;
	nt_status status;

	if (!vm_is_recorded(process))
		return patch_real.NtUnmapViewOfSection(process, at);
	record = vm_view(at, frame);
	if (!record.size) // nothing is there
		return patch_real.NtUnmapViewOfSection(process, at);
	vm_before(&record, frame);
	status = patch_real.NtUnmapViewOfSection(process, at);
	vm_after(&record, status);
	return status;
}

NT_CALL nt_status hook_NtUnmapViewOfSectionEx(void *process, void *at, uint32_t flags)
{
	const uintptr_t *frame = HOOK_FRAME;
	struct lane_vm record;
	nt_status status;

	if (!vm_is_recorded(process))
		return patch_real.NtUnmapViewOfSectionEx(process, at, flags);
	record = vm_view(at, frame);
	if (!record.size)
		return patch_real.NtUnmapViewOfSectionEx(process, at, flags);
	vm_before(&record, frame);
	status = patch_real.NtUnmapViewOfSectionEx(process, at, flags);
	vm_after(&record, status);
	return status;
}
