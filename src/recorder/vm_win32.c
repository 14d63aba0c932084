// One function of Windows does what mmap and mprotect do; which of both a call is, its bits say.
// For example:
//
//     VirtualAlloc(NULL, 1 MiB, MEM_RESERVE)      LANE_VM_MMAP without access
//     VirtualAlloc(p, 64 KiB, MEM_COMMIT)         LANE_VM_MPROTECT with the page's access,
//                                                 and committed
//     VirtualAlloc(NULL, 64 KiB, MEM_COMMIT)      LANE_VM_MMAP with both: it reserves as well
//     VirtualAlloc(p, 64 KiB, MEM_RESET)          LANE_VM_MADVISE: what is there may go
//
// so that the space these take is computed from the same records as on other systems.
#include "recorder/vm_win32.h"

#include "recorder/capture.h"
#include "recorder/event.h"
#include "recorder/hook_win32.h"
#include "recorder/notes.h"
#include "recorder/tables_win32.h"
#include "recorder/vm_put.h"
#include "recorder/walk_win32.h"

enum {
	VM_PRIVATE = 0x22, // as flags of mappings are written: private, anonymous
	VM_SHARED = 0x01,
	VM_OF_IMAGE = 0x02, // private, of a file
	VM_FIXED = 0x10,
	VM_MADV_WILLNEED = 3,
	VM_MADV_FREE = 8,
	VM_READ = 1,
	VM_PAGE_WRITES = 0x04 | 0x08 | 0x40 | 0x80, // PAGE_… with which it can be written to
	VM_PLACEHOLDER = 0x40000,                   // of a reservation
	VM_LOWEST = 0x10000,                        // no pointer is below

	VM_NO_MEMORY = 12, // errors, as other systems number them
	VM_EXISTS = 17,
	VM_INVALID = 22,
};

// Recorded as soon as a lane is there: recording_win32.c keeps the list itself.
void vm_own(const void *, size_t, bool)
{
}

// ---- Writing --------------------------------------------------------------------------------

static enum vm_put_stack vm_last(struct lane *lane, struct lane_vm *, const void *frame)
{
	bool differs = capture_take(&lane->capture, frame);

	if (lane->verify)
		event_verify(lane, frame);
	return differs ? VM_PUT_DIFFERS : VM_PUT_SAME;
}

// Enter the lane, put the record, leave.
//
// It does not use lane_leave: vm_put has published what it wrote.
static void vm_record(struct lane_vm *record, const uintptr_t *frame)
{
	struct lane *lane = lane_enter();

	if (!lane)
		return;
	if (frame)
		frame = hook_outermost(lane, frame);
	if (vm_put_room(lane))
		vm_put(lane, record, frame ? vm_last : NULL, frame);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	lane->limit = lane->open_limit;
}

// The heap's memory is about to go with all blocks in it, which get no free of their own.
void vm_heap_gone(const void *heap, const uintptr_t *frame)
{
	struct lane_vm record = { .kind = LANE_VM_HEAP_GONE, .address = (uintptr_t)heap };

	vm_record(&record, frame);
}

// ---- The beginning --------------------------------------------------------------------------

// It is not searched there.
void vm_mark(void)
{
}

// The first lane of the process: what is mapped is listed once (walk_win32.h).
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

	if (hook_is_nested(lane, frame) || hook_is_held(lane, frame))
		return LANE_VM_ALLOCATOR;
	return patch_from_ntdll(frame[1]) ? LANE_VM_LOADER : LANE_VM_PROGRAM;
}

// A handle that does not tell whose it is counts as another's. Of calls for other processes it is
// only known that they were made.
static bool vm_is_self(void *process)
{
	struct nt_process said;
	nt_status status;

	if (likely(process == NT_SELF))
		return true;
	status = NtQueryInformationProcess(process, 0, &said, sizeof(said), NULL);
	if (status >= 0 && said.pid == kernel_process_id())
		return true;
	if (status != NT_ERROR_HANDLE)
		__atomic_fetch_add(&recording_state->segment->calls_elsewhere, 1, __ATOMIC_RELAXED);
	return false;
}

// The arguments are pointers of the program's. A system call checks them, and our own read, which
// comes before it, must not fault where that would have returned an error.
static bool vm_can_read(const void *argument)
{
	return (uintptr_t)argument >= VM_LOWEST &&
	       kernel_can_read((uintptr_t)argument & ~(uintptr_t)(KERNEL_PAGE - 1));
}

//
// For a heap's call there is room already.
static bool vm_is_recorded(void *process, const void *at, const void *bytes)
{
	if (!lane_get_mine()->inside)
		kernel_need_stack(&process);
	return recording_phase() == RECORDING_ON && vm_can_read(at) && vm_can_read(bytes) &&
	       vm_is_self(process);
}

// An NTSTATUS is negative if it failed. It is written as the errno that says the same, so that a
// reader needs one table only.
static uint16_t vm_error(nt_status status)
{
	switch (status) {
	case NT_ERROR_MEMORY:
	case NT_ERROR_QUOTA:
	case NT_ERROR_RESOURCES:
	case NT_ERROR_COMMITMENT:
		return VM_NO_MEMORY;
	case NT_ERROR_CONFLICT:
		return VM_EXISTS;
	default:
		return status < 0 ? VM_INVALID : 0;
	}
}

static bool vm_look(const void *at, struct nt_region *region)
{
	return NtQueryVirtualMemory(NT_SELF, at, NT_BASIC_INFORMATION, region, sizeof(*region),
				    NULL) >= 0;
}

// The part of an allocation from `at` to its end.
//
// VirtualFree with a size of 0 releases a whole allocation, which may consist of several regions.
static size_t vm_extent(uintptr_t at)
{
	struct nt_region region;
	const uint8_t *next = (const uint8_t *)at, *allocation = NULL;

	while (vm_look(next, &region)) {
		if (!allocation)
			allocation = region.allocation;
		if (!allocation || region.allocation != allocation)
			break;
		next = region.base + region.bytes;
	}
	return (uintptr_t)next - at;
}

// A view of a section that is not committed as a whole was mapped. What is committed in one view is
// so in all others.
static bool vm_some_is_reserved;

// After the record of a call that takes memory.
//
// A failure for lack of memory is a moment at which it is of interest what there is; a commit in a
// shared view changes other views, which no call was made for.
static void vm_taken(nt_status status, const void *at, uint32_t type)
{
	struct nt_region region;

	walk_end();
	if (vm_error(status) == VM_NO_MEMORY ||
	    (vm_some_is_reserved && status >= 0 && type == NT_MEM_COMMIT && vm_look(at, &region) &&
	     region.type == NT_MEM_MAPPED))
		walk_soon();
	else
		walk_now_and_then();
}

// To commit without saying where is to reserve as well.
//
// VirtualAlloc(NULL, …, MEM_COMMIT) is allowed, and reserves.
static uint32_t vm_type(void *const *at, uint32_t type)
{
	return !*at && type & NT_MEM_COMMIT ? type | NT_MEM_RESERVE : type;
}

// The flags keep what is above the lower 12 bits of `type`, MEM_RESERVE and the like, beside those
// of mmap.
static void vm_allocated(nt_status status, void **at, const size_t *bytes, uint32_t type,
			 uint32_t page, const uintptr_t *frame)
{
	struct lane_vm record = {
		.kind = type & NT_MEM_RESERVE ? LANE_VM_MMAP : LANE_VM_MPROTECT,
		.origin = vm_origin(frame),
		.error = vm_error(status),
		.protection = type & NT_MEM_COMMIT ? walk_access(page) | LANE_VM_COMMITTED : 0,
		.flags = VM_PRIVATE | (type & ~0xfffu) | (type & NT_MEM_REPLACE ? VM_FIXED : 0),
		.address = (uintptr_t)*at,
		.size = *bytes,
	};

	if (type & (NT_MEM_RESET | NT_MEM_RESET_UNDO)) {
		record.kind = LANE_VM_MADVISE;
		record.flags = type & NT_MEM_RESET ? VM_MADV_FREE : VM_MADV_WILLNEED;
	} else if (!(type & (NT_MEM_RESERVE | NT_MEM_COMMIT))) {
		return;
	}
	vm_record(&record, frame);
}

// What is meant is found before the call, which writes into `*at`: afterwards it looks as if the
// program had named the address.
NT_CALL nt_status hook_NtAllocateVirtualMemory(void *process, void **at, uintptr_t zero_bits,
					       size_t *bytes, uint32_t type, uint32_t protection)
{
	nt_status status;
	uint32_t meant;

	if (!vm_is_recorded(process, at, bytes))
		return patch_real.NtAllocateVirtualMemory(process, at, zero_bits, bytes, type,
							  protection);
	meant = vm_type(at, type);
	walk_begin();
	status =
		patch_real.NtAllocateVirtualMemory(process, at, zero_bits, bytes, type, protection);
	vm_allocated(status, at, bytes, meant, protection, HOOK_FRAME);
	vm_taken(status, *at, meant);
	return status;
}

// What VirtualAlloc2 calls: the same, but for arguments, among them an alignment and a range.
NT_CALL nt_status hook_NtAllocateVirtualMemoryEx(void *process, void **at, size_t *bytes,
						 uint32_t type, uint32_t protection,
						 void *parameters, uint32_t count)
{
	nt_status status;
	uint32_t meant;

	if (!vm_is_recorded(process, at, bytes))
		return patch_real.NtAllocateVirtualMemoryEx(process, at, bytes, type, protection,
							    parameters, count);
	meant = vm_type(at, type);
	walk_begin();
	status = patch_real.NtAllocateVirtualMemoryEx(process, at, bytes, type, protection,
						      parameters, count);
	vm_allocated(status, at, bytes, meant, protection, HOOK_FRAME);
	vm_taken(status, *at, meant);
	return status;
}

// A record in front of a call that gives memory back.
//
// walk_begin and walk_end count calls in progress, so that a walk knows whether one came in
// between.
static void vm_before(struct lane_vm *record, const uintptr_t *frame)
{
	walk_begin();
	// What is known of stacks and code there is forgotten.
	__atomic_fetch_add(&capture_epoch, 1, __ATOMIC_SEQ_CST);
	vm_record(record, frame);
}

// The END record, without a stack: the BEGIN has it.
static void vm_after(struct lane_vm *record, nt_status status)
{
	struct lane_vm end = {
		.part = LANE_VM_END,
		.kind = record->kind,
		.error = vm_error(status),
		.address = record->address,
	};

	vm_record(&end, NULL);
	walk_end();
	tables_code_changed((uintptr_t)record->address, (size_t)record->size);
	__atomic_fetch_add(&capture_epoch, 1, __ATOMIC_SEQ_CST);
}

// Pages of which any byte is meant. What becomes a placeholder, or stays one, is reserved still.
NT_CALL nt_status hook_NtFreeVirtualMemory(void *process, void **at, size_t *bytes, uint32_t type)
{
	const uintptr_t *frame = HOOK_FRAME;
	const uintptr_t page = KERNEL_PAGE - 1;
	struct lane_vm record = { .part = LANE_VM_BEGIN };
	nt_status status;

	if (!vm_is_recorded(process, at, bytes))
		return patch_real.NtFreeVirtualMemory(process, at, bytes, type);
	record.kind = LANE_VM_MPROTECT;
	if (type & NT_MEM_RELEASE && !(type & (NT_MEM_PRESERVE | NT_MEM_COALESCE)))
		record.kind = LANE_VM_MUNMAP;
	record.origin = vm_origin(frame);
	record.flags = type;
	record.address = (uintptr_t)*at & ~page;
	record.size = *bytes ? ((((uintptr_t)*at & page) + *bytes + page) & ~page)
			     : vm_extent((uintptr_t)record.address);
	if (!record.size) // nothing is there
		return patch_real.NtFreeVirtualMemory(process, at, bytes, type);
	vm_before(&record, frame);
	status = patch_real.NtFreeVirtualMemory(process, at, bytes, type);
	vm_after(&record, status);
	return status;
}

// Code in which hooks begin.
//
// A program that makes these writable may take our jumps out: it is looked for when they are
// protected again (patch_check).
static bool vm_is_hooked(const void *at, size_t bytes)
{
	return (uintptr_t)at < patch_ntdll.start + patch_ntdll.bytes &&
	       patch_ntdll.start < (uintptr_t)at + bytes;
}

void vm_check_code(void)
{
	patch_check();
	__atomic_store_n(&recording_state->segment->code_open, 0, __ATOMIC_RELAXED);
}

// Of code that we have hooked, the segment says from when it is made writable until our jumps were
// looked for again: a process may end in between, and then its recording may have missed calls.
NT_CALL nt_status hook_NtProtectVirtualMemory(void *process, void **at, size_t *bytes,
					      uint32_t protection, uint32_t *old)
{
	const uintptr_t *frame = HOOK_FRAME;
	struct lane_vm record = { .kind = LANE_VM_MPROTECT };
	nt_status status;
	bool hooked;

	if (!vm_is_recorded(process, at, bytes))
		return patch_real.NtProtectVirtualMemory(process, at, bytes, protection, old);
	hooked = vm_is_hooked(*at, *bytes);
	if (hooked && protection & VM_PAGE_WRITES)
		__atomic_store_n(&recording_state->segment->code_open, 1, __ATOMIC_RELAXED);
	walk_begin();
	status = patch_real.NtProtectVirtualMemory(process, at, bytes, protection, old);
	record.origin = vm_origin(frame);
	record.error = vm_error(status);
	record.protection = walk_access(protection) | LANE_VM_ACCESS;
	record.address = (uintptr_t)*at;
	record.size = *bytes;
	vm_record(&record, frame);
	walk_end();
	tables_code_changed((uintptr_t)record.address, (size_t)record.size);
	if (hooked && !(protection & VM_PAGE_WRITES))
		vm_check_code();
	return status;
}

// The number under which the collector knows the file behind a view; 0: the system's paging file.
//
// FNV-1a of the path, 64 bits: what has the same hash is taken for the same file. The table is
// direct-mapped.
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

// What a view lets do. Of an image each part has its own, which a walk will say. What is no file's
// is committed as far as its section is, of which only a part may be.
static uint32_t vm_view_access(const struct nt_region *region, uint32_t page, uint32_t file)
{
	if (region->type == NT_MEM_IMAGE)
		return VM_READ;
	if (region->state != NT_MEM_COMMIT)
		return 0;
	return walk_access(page) | (file ? 0 : LANE_VM_COMMITTED);
}

// The parts of a view that are not as its first one, `region`: one is committed and the other not.
//
// Only the first region is described by the record of the map; each that differs gets an MPROTECT
// of its own.
static void vm_view_parts(struct nt_region region, uintptr_t end, uint32_t page,
			  const uintptr_t *frame)
{
	uint32_t first = region.state;
	struct lane_vm record = { .kind = LANE_VM_MPROTECT };
	const uint8_t *next;

	while (next = region.base + region.bytes, (uintptr_t)next < end && vm_look(next, &region)) {
		if (region.state == first)
			continue;
		record.origin = vm_origin(frame);
		record.protection = vm_view_access(&region, page, 0);
		record.address = (uintptr_t)region.base;
		record.size = region.bytes;
		vm_record(&record, frame);
		vm_some_is_reserved = true;
	}
	vm_some_is_reserved |= first != NT_MEM_COMMIT;
}

// The arguments do not say whether it is an image, nor how much of it is committed: so it is looked
// at after the call. A view that is gone again by then is recorded with the access asked for.
static void vm_mapped(nt_status status, void **at, const uint64_t *offset, const size_t *bytes,
		      uint32_t type, uint32_t page, const uintptr_t *frame)
{
	struct lane_vm record = {
		.kind = LANE_VM_MMAP,
		.origin = vm_origin(frame),
		.error = vm_error(status),
		.protection = walk_access(page),
		.flags = VM_SHARED | (type & ~0xfffu) | (type & NT_MEM_REPLACE ? VM_FIXED : 0),
		.address = (uintptr_t)*at,
		.size = *bytes,
	};
	struct nt_region region;
	bool known = false;

	if (status >= 0) {
		record.offset = offset ? *offset : 0;
		record.file = vm_file((uintptr_t)*at);
		known = vm_look(*at, &region);
	}
	if (known)
		record.protection = vm_view_access(&region, page, record.file);
	if (known && region.type == NT_MEM_IMAGE)
		record.flags ^= VM_SHARED | VM_OF_IMAGE;
	vm_record(&record, frame);
	if (known && region.type != NT_MEM_IMAGE)
		vm_view_parts(region, (uintptr_t)*at + *bytes, page, frame);
}

NT_CALL nt_status hook_NtMapViewOfSection(void *section, void *process, void **at,
					  uintptr_t zero_bits, size_t commit, uint64_t *offset,
					  size_t *bytes, uint32_t inherit, uint32_t type,
					  uint32_t protection)
{
	nt_status status;

	if (!vm_is_recorded(process, at, bytes))
		return patch_real.NtMapViewOfSection(section, process, at, zero_bits, commit,
						     offset, bytes, inherit, type, protection);
	walk_begin();
	status = patch_real.NtMapViewOfSection(section, process, at, zero_bits, commit, offset,
					       bytes, inherit, type, protection);
	vm_mapped(status, at, offset, bytes, type, protection, HOOK_FRAME);
	vm_taken(status, *at, 0);
	return status;
}

// What MapViewOfFile3 calls.
NT_CALL nt_status hook_NtMapViewOfSectionEx(void *section, void *process, void **at,
					    uint64_t *offset, size_t *bytes, uint32_t type,
					    uint32_t protection, void *parameters, uint32_t count)
{
	nt_status status;

	if (!vm_is_recorded(process, at, bytes))
		return patch_real.NtMapViewOfSectionEx(section, process, at, offset, bytes, type,
						       protection, parameters, count);
	walk_begin();
	status = patch_real.NtMapViewOfSectionEx(section, process, at, offset, bytes, type,
						 protection, parameters, count);
	vm_mapped(status, at, offset, bytes, type, protection, HOOK_FRAME);
	vm_taken(status, *at, 0);
	return status;
}

// The whole view, whatever part of it is named. A placeholder that stays is a reservation.
//
// With MEM_PRESERVE_PLACEHOLDER the addresses stay reserved, so that it is recorded as a mapping
// over them, and not as an unmapping.
static struct lane_vm vm_view(void *at, uint32_t flags, const uintptr_t *frame)
{
	struct lane_vm record = {
		.part = LANE_VM_BEGIN,
		.kind = flags & NT_MEM_PRESERVE ? LANE_VM_MMAP : LANE_VM_MUNMAP,
		.origin = vm_origin(frame),
	};
	struct nt_region region;

	if (flags & NT_MEM_PRESERVE)
		record.flags = VM_PRIVATE | VM_FIXED | NT_MEM_RESERVE | VM_PLACEHOLDER;
	if (!vm_look(at, &region) || !region.allocation)
		return record;
	record.address = (uintptr_t)region.allocation;
	record.size = vm_extent((uintptr_t)record.address);
	return record;
}

NT_CALL nt_status hook_NtUnmapViewOfSection(void *process, void *at)
{
	const uintptr_t *frame = HOOK_FRAME;
	struct lane_vm record;
	nt_status status;

	if (!vm_is_recorded(process, frame, frame))
		return patch_real.NtUnmapViewOfSection(process, at);
	record = vm_view(at, 0, frame);
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
	struct nt_region region;
	nt_status status;

	if (!vm_is_recorded(process, frame, frame))
		return patch_real.NtUnmapViewOfSectionEx(process, at, flags);
	record = vm_view(at, flags, frame);
	if (!record.size)
		return patch_real.NtUnmapViewOfSectionEx(process, at, flags);
	vm_before(&record, frame);
	status = patch_real.NtUnmapViewOfSectionEx(process, at, flags);
	vm_after(&record, status);
	// Wine knows the flag and leaves no placeholder.
	if (status >= 0 && record.kind == LANE_VM_MMAP && vm_look(at, &region) &&
	    region.state == NT_MEM_FREE) {
		record.kind = LANE_VM_MUNMAP;
		vm_before(&record, frame);
		vm_after(&record, 0);
	}
	return status;
}
