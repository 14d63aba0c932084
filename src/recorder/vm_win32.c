#include "recorder/vm_win32.h"

#include "recorder/capture.h"
#include "recorder/event.h"
#include "recorder/hook_win32.h"
#include "recorder/notes.h"
#include "recorder/recording_win32.h"
#include "recorder/text.h"

enum {
	VM_RECORDS = 3,    // room that a call needs, in LANE_ROOM
	VM_PRIVATE = 0x22, // as flags of mappings are written: private, anonymous
	VM_SHARED = 0x01,
	VM_MADV_FREE = 8,
	VM_ERROR = 12,        // any: the system's numbers are not errno's
	VM_TEXT_BYTES = 3072, // of a list of mappings
	VM_LIST = 1,          // its number: there is only one
};

// Recorded as soon as a lane is there: recording_win32.c keeps the list itself.
void vm_own(const void *start, size_t bytes, bool gone)
{
	(void)start;
	(void)bytes;
	(void)gone;
}

// ---- Writing --------------------------------------------------------------------------------

static bool vm_room(struct lane *lane)
{
	return lane->head + VM_RECORDS * LANE_ROOM <= lane->room ||
	       lane_wait_room(lane, (VM_RECORDS - 1) * LANE_ROOM);
}

// One record, published; with `frame`, with the stack of the caller of the hook whose it is.
static bool vm_put(struct lane *lane, const struct lane_vm *record, const uintptr_t *frame)
{
	uint8_t *start = lane->ring + (lane->head & lane->mask);
	uint8_t *head_at = start, *at = start + 2, *body;
	uint32_t head = LANE_VM;
	uint64_t seq;

	if (lane->exact)
		clock_set_exact(lane);
	if (atomic_load_explicit(lane->tick, memory_order_relaxed) != lane->time_ns) {
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
	memcpy(body, record, sizeof(*record));
	if (frame) {
		bool differs = capture_take(&lane->capture, frame);

		if (lane->verify)
			event_verify(lane, frame);
		head |= LANE_VM_HAS_STACK;
		if (differs) {
			head |= LANE_STACK;
			at = event_put_stack(lane, start, at);
			if (!at)
				return false;
		}
	}
	head_at[0] = (uint8_t)head;
	head_at[1] = (uint8_t)(head >> 8);
	lane_publish(lane, start, at);
	return true;
}

// Enter the lane, put the record, leave.
static void vm_record(const struct lane_vm *record, const uintptr_t *frame)
{
	struct lane *lane = lane_enter();

	if (!lane)
		return;
	if (vm_room(lane))
		vm_put(lane, record, frame);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	lane->limit = lane->open_limit;
}

void vm_heap_gone(const void *heap, const uintptr_t *frame)
{
	const struct lane_vm record = { .kind = LANE_VM_HEAP_GONE, .address = (uintptr_t)heap };

	vm_record(&record, frame);
}

// ---- The beginning --------------------------------------------------------------------------

static uint32_t vm_protection(uint32_t page)
{
	static const uint8_t access[8] = { 0, 1, 3, 3, 4, 5, 7, 7 };

	for (uint32_t bit = 0; bit < 8; bit++)
		if (page >> bit & 1)
			return access[bit];
	return 0;
}

struct vm_text {
	char bytes[VM_TEXT_BYTES];
	size_t length;
};

static void vm_add_hex(struct vm_text *text, uint64_t value, char behind)
{
	int shift = 60;

	while (shift > 0 && !(value >> shift & 15))
		shift -= 4;
	for (; shift >= 0; shift -= 4)
		text->bytes[text->length++] = "0123456789abcdef"[value >> shift & 15];
	text->bytes[text->length++] = behind;
}

// As a line of /proc/self/maps, which is what the collector reads.
static void vm_add_region(struct vm_text *text, const struct nt_region *region)
{
	uint32_t access = region->state == NT_MEM_COMMIT ? vm_protection(region->protection) : 0;

	vm_add_hex(text, (uintptr_t)region->base, '-');
	vm_add_hex(text, (uintptr_t)region->base + region->bytes, ' ');
	text->bytes[text->length++] = access & 1 ? 'r' : '-';
	text->bytes[text->length++] = access & 2 ? 'w' : '-';
	text->bytes[text->length++] = access & 4 ? 'x' : '-';
	text->bytes[text->length++] = region->type == NT_MEM_MAPPED ? 's' : 'p';
	memcpy(text->bytes + text->length, " 0 00:00 0\n", 11);
	text->length += 11;
}

static void vm_send_text(struct vm_text *text)
{
	text->bytes[text->length] = 0;
	if (text->length)
		notes_maps(VM_LIST, text->bytes);
	text->length = 0;
}

static void vm_tell_baseline(struct lane *lane)
{
	static struct vm_text text; // the first lane's thread only
	const struct lane_vm record = { .kind = LANE_VM_BASELINE, .file = VM_LIST };
	struct nt_region region;
	uint8_t *at = NULL;

	while (NtQueryVirtualMemory(NT_SELF, at, NT_BASIC_INFORMATION, &region, sizeof(region),
				    NULL) >= 0 &&
	       region.base + region.bytes > at) {
		at = region.base + region.bytes;
		if (region.state != NT_MEM_COMMIT && region.state != NT_MEM_RESERVE)
			continue;
		if (recording_is_ours((uintptr_t)region.base, region.bytes))
			continue;
		if (text.length + 128 > sizeof(text.bytes))
			vm_send_text(&text);
		vm_add_region(&text, &region);
	}
	vm_send_text(&text);
	if (vm_room(lane))
		vm_put(lane, &record, NULL);
}

void vm_begin(struct lane *lane)
{
	uint32_t told = 0;

	if (!__atomic_compare_exchange_n(&recording_state->baseline_told, &told, 1, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	lane->limit = 0;
	vm_tell_baseline(lane);
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

static void vm_allocated(nt_status status, void **at, const size_t *bytes, uint32_t type,
			 uint32_t page, const uintptr_t *frame)
{
	struct lane_vm record = {
		.kind = type & NT_MEM_RESERVE ? LANE_VM_MMAP : LANE_VM_MPROTECT,
		.origin = vm_origin(frame),
		.error = status < 0 ? VM_ERROR : 0,
		.protection = type & NT_MEM_COMMIT ? vm_protection(page) : 0,
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
	nt_status status =
		patch_real.NtAllocateVirtualMemory(process, at, zero_bits, bytes, type, protection);

	if (vm_is_recorded(process))
		vm_allocated(status, at, bytes, type, protection, HOOK_FRAME);
	return status;
}

NT_CALL nt_status hook_NtAllocateVirtualMemoryEx(void *process, void **at, size_t *bytes,
						 uint32_t type, uint32_t protection,
						 void *parameters, uint32_t count)
{
	nt_status status = patch_real.NtAllocateVirtualMemoryEx(process, at, bytes, type,
								protection, parameters, count);

	if (vm_is_recorded(process))
		vm_allocated(status, at, bytes, type, protection, HOOK_FRAME);
	return status;
}

// A record in front of a call that gives memory back.
static void vm_before(const struct lane_vm *record, const uintptr_t *frame)
{
	// What is known of stacks and code there is forgotten.
	__atomic_fetch_add(&capture_epoch, 1, __ATOMIC_SEQ_CST);
	vm_record(record, frame);
}

static void vm_after(const struct lane_vm *record, nt_status status)
{
	const struct lane_vm end = {
		.part = LANE_VM_END,
		.kind = record->kind,
		.error = status < 0 ? VM_ERROR : 0,
		.address = record->address,
	};

	vm_record(&end, NULL);
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
	vm_before(&record, frame);
	status = patch_real.NtFreeVirtualMemory(process, at, bytes, type);
	vm_after(&record, status);
	return status;
}

static void vm_mapped(nt_status status, void **at, const uint64_t *offset, const size_t *bytes,
		      uint32_t type, uint32_t page, const uintptr_t *frame)
{
	const struct lane_vm record = {
		.kind = LANE_VM_MMAP,
		.origin = vm_origin(frame),
		.error = status < 0 ? VM_ERROR : 0,
		.protection = vm_protection(page),
		.flags = VM_SHARED | (type & ~0xfffu),
		.address = (uintptr_t)*at,
		.size = *bytes,
		.offset = offset ? *offset : 0,
	};

	vm_record(&record, frame);
}

NT_CALL nt_status hook_NtMapViewOfSection(void *section, void *process, void **at,
					  uintptr_t zero_bits, size_t commit, uint64_t *offset,
					  size_t *bytes, uint32_t inherit, uint32_t type,
					  uint32_t protection)
{
	nt_status status = patch_real.NtMapViewOfSection(section, process, at, zero_bits, commit,
							 offset, bytes, inherit, type, protection);

	if (vm_is_recorded(process))
		vm_mapped(status, at, offset, bytes, type, protection, HOOK_FRAME);
	return status;
}

NT_CALL nt_status hook_NtMapViewOfSectionEx(void *section, void *process, void **at,
					    uint64_t *offset, size_t *bytes, uint32_t type,
					    uint32_t protection, void *parameters, uint32_t count)
{
	nt_status status = patch_real.NtMapViewOfSectionEx(section, process, at, offset, bytes,
							   type, protection, parameters, count);

	if (vm_is_recorded(process))
		vm_mapped(status, at, offset, bytes, type, protection, HOOK_FRAME);
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
	vm_before(&record, frame);
	status = patch_real.NtUnmapViewOfSectionEx(process, at, flags);
	vm_after(&record, status);
	return status;
}
