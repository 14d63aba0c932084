// The numbers of the TEB and the PEB are those of ntdll's own header files; they are the same in
// all versions of Windows. Calls go to ntdll's functions, and to the real ones where those are
// hooked.
#include "recorder/kernel.h"

#include "recorder/nt_win32.h"
#include "recorder/patch_win32.h"
#include "recorder/recording_win32.h"
#include "recorder/utf_win32.h"

// Where a thread's block (TEB) and the process's (PEB) have what is needed.
enum {
#ifdef __x86_64__
	KERNEL_TEB_PEB = 0x60,
	KERNEL_TEB_CLIENT = 0x40,
	KERNEL_TEB_STACK = 0x1478, // the lowest address of its stack
	KERNEL_TEB_SLOTS = 0x1480,
#else
	KERNEL_TEB_PEB = 0x30,
	KERNEL_TEB_CLIENT = 0x20,
	KERNEL_TEB_STACK = 0xe0c,
	KERNEL_TEB_SLOTS = 0xe10,
#endif
	KERNEL_SLOTS = 64,
	KERNEL_NS = 100, // of the system's unit of time
	KERNEL_NAME_UNITS = 256,
};

uint32_t kernel_own_at = KERNEL_TEB_SLOTS;

struct nt_peb *kernel_peb(void)
{
	return *(struct nt_peb **)(void *)(kernel_teb() + KERNEL_TEB_PEB);
}

// A slot of thread-local storage, taken as TlsAlloc does.
//
// The first 64 slots are in the TEB itself, so that one load finds what a thread has there. False:
// all are taken.
bool kernel_take_own(void)
{
	uint32_t slot;

	RtlAcquirePebLock();
	slot = RtlFindClearBitsAndSet(kernel_peb()->tls_bitmap, 1, 1);
	RtlReleasePebLock();
	if (slot >= KERNEL_SLOTS)
		return false;
	kernel_own_at = KERNEL_TEB_SLOTS + slot * (uint32_t)sizeof(void *);
	return true;
}

// Page by page: only the one that follows makes the stack grow. The lowest page is never there. A
// handler of the exception itself has no more than what is left, and goes on with that.
//
// A frame outside of the stack that the system knows is on one of the program's own making.
COLD void kernel_grow_stack(uintptr_t frame)
{
	const uintptr_t *block = (const void *)kernel_teb();
	uintptr_t lowest = *(uintptr_t *)(void *)(kernel_teb() + KERNEL_TEB_STACK) + KERNEL_PAGE;
	uintptr_t end = frame - KERNEL_STACK_ROOM;

	if (frame >= block[1] || frame < block[2])
		return;
	end = end < lowest ? lowest : end;
	for (uintptr_t at = block[2]; at > end; at -= KERNEL_PAGE)
		*(volatile uint8_t *)(at - 1);
}

static struct nt_client *kernel_client(void)
{
	return (struct nt_client *)(void *)(kernel_teb() + KERNEL_TEB_CLIENT);
}

uint32_t kernel_thread_id(void)
{
	return (uint32_t)kernel_client()->thread;
}

uint32_t kernel_process_id(void)
{
	return (uint32_t)kernel_client()->process;
}

// In units of 100 ns; negative means from now on.
void kernel_sleep_ns(long ns)
{
	int64_t interval = -((int64_t)ns / KERNEL_NS);

	NtDelayExecution(0, &interval);
}

// In two parts, so that a count of many days does not overflow when it is multiplied.
uint64_t kernel_now_ns(void)
{
	int64_t count = 0, frequency = 1;

	NtQueryPerformanceCounter(&count, &frequency);
	return (uint64_t)(count / frequency) * 1000000000u +
	       (uint64_t)(count % frequency) * 1000000000u / (uint64_t)frequency;
}

// Committed pages of ours, from the top of the address space. NULL: there are none.
void *kernel_pages(size_t bytes)
{
	void *at = NULL;

	if (patch_real.NtAllocateVirtualMemory(NT_SELF, &at, 0, &bytes,
					       NT_MEM_RESERVE | NT_MEM_COMMIT | NT_MEM_TOP_DOWN,
					       NT_PAGE_READWRITE) < 0)
		return NULL;
	return at;
}

// The bell is an event here; the word itself is for the collector to read.
void kernel_wake(_Atomic uint32_t *)
{
	NtSetEvent(recording_bell(), NULL);
}

// A thread that has ended can be opened as long as somebody has a handle of it; it is signalled
// then. What cannot be opened for another reason lives.
bool kernel_thread_lives(uint32_t pid, uint32_t tid)
{
	struct nt_object object = { .length = sizeof(object) };
	struct nt_client client = { pid, tid };
	const int64_t at_once = 0;
	void *thread = NULL;
	nt_status status = NtOpenThread(&thread, NT_SYNCHRONIZE, &object, &client);
	bool ended;

	if (status < 0)
		return status != NT_ERROR_CID;
	ended = NtWaitForSingleObject(thread, 0, &at_once) == NT_SUCCESS;
	NtClose(thread);
	return !ended;
}

bool kernel_lock_is_left(int word)
{
	return word == kernel_lock_word() ||
	       !kernel_thread_lives(kernel_process_id(), (uint32_t)word);
}

_Atomic bool kernel_names_given;

void kernel_thread_name(char name[16])
{
	struct {
		struct nt_text text;
		uint16_t units[KERNEL_NAME_UNITS];
	} said;

	name[0] = 0;
	if (!__atomic_load_n(&kernel_names_given, __ATOMIC_ACQUIRE))
		return;
	if (NtQueryInformationThread(NT_THIS_THREAD, NT_THREAD_NAME, &said, sizeof(said), NULL) < 0)
		return;
	utf_decode(said.text.text, said.text.bytes / 2, name, 16);
}

// The thread's own stack is known from its TEB (base at word 1, limit at word 2), so that no call
// is made for it.
bool kernel_can_read(uintptr_t page)
{
	struct nt_region region;
	const uint8_t *stack = *(uint8_t **)(void *)(kernel_teb() + sizeof(void *));
	const uint8_t *limit = *(uint8_t **)(void *)(kernel_teb() + 2 * sizeof(void *));

	if (page >= (uintptr_t)limit && page < (uintptr_t)stack)
		return true;
	if (NtQueryVirtualMemory(NT_SELF, (void *)page, NT_BASIC_INFORMATION, &region,
				 sizeof(region), NULL) < 0)
		return false;
	return region.state == NT_MEM_COMMIT &&
	       !(region.protection & (NT_PAGE_NOACCESS | NT_PAGE_GUARD));
}

bool kernel_can_run(uintptr_t at)
{
	struct nt_region region;

	return NtQueryVirtualMemory(NT_SELF, (void *)at, NT_BASIC_INFORMATION, &region,
				    sizeof(region), NULL) >= 0 &&
	       region.state == NT_MEM_COMMIT && !(region.protection & NT_PAGE_GUARD) &&
	       (region.protection & NT_PAGE_RUNS);
}
