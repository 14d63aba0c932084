// nt_win32: what of ntdll the recorder uses, declared by hand: the system's headers are not for us.
//
// All of it is documented, or has been the same in every version since Windows 7 and in Wine.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// How ntdll's functions are called: NT is one that is imported, NT_CALL the type of any of them,
// and of ours that it calls. In 64 bits there is one convention, and stdcall means nothing.
#define NT __attribute__((dllimport)) __attribute__((stdcall))
#define NT_CALL __attribute__((stdcall))

typedef int32_t nt_status;

// Status codes are below 0 where a call failed, as all of Windows' are. Names are the system's with
// NT_ in front and without what they have there (STATUS_, MEM_, PAGE_, FILE_).
enum {
	NT_SUCCESS = 0,
	NT_COPIED = 0x129, // of NtCreateUserProcess, in the process that is a copy of its parent
	NT_ERROR_HANDLE = (int32_t)0xc0000008,     // nothing has that handle
	NT_ERROR_CID = (int32_t)0xc000000b,        // no such process or thread
	NT_ERROR_MEMORY = (int32_t)0xc0000017,     // no address space, or no memory
	NT_ERROR_CONFLICT = (int32_t)0xc0000018,   // something is at that address
	NT_ERROR_QUOTA = (int32_t)0xc0000044,      // the process may have no more
	NT_ERROR_RESOURCES = (int32_t)0xc000009a,  // the kernel's own memory is used up
	NT_ERROR_COMMITMENT = (int32_t)0xc000012d, // memory and paging file are used up
	NT_MEM_COALESCE = 1,                       // with NT_MEM_RELEASE: placeholders
	NT_MEM_PRESERVE =
		2, // with NT_MEM_RELEASE, and of NtUnmapViewOfSectionEx: a placeholder stays
	NT_MEM_COMMIT = 0x1000,        // as a state: pages that can be used
	NT_MEM_RESERVE = 0x2000,       // as a state: addresses without memory
	NT_MEM_DECOMMIT = 0x4000,      // of a call that frees: addresses stay reserved
	NT_MEM_REPLACE = 0x4000,       // of a call that takes memory: a placeholder
	NT_MEM_RELEASE = 0x8000,       // the whole reservation
	NT_MEM_FREE = 0x10000,         // a state: nothing is there
	NT_MEM_RESET = 0x80000,        // what is in the pages matters no more; they stay committed
	NT_MEM_TOP_DOWN = 0x100000,    // from the highest addresses that are free
	NT_MEM_RESET_UNDO = 0x1000000, // it does matter again, as far as it is still there
	NT_MEM_PRIVATE = 0x20000,      // a type: of NtAllocateVirtualMemory
	NT_MEM_MAPPED = 0x40000,       // a type: a view of a section
	NT_MEM_IMAGE = 0x1000000,      // a type: a view of a program or library
	NT_PAGE_NOACCESS = 1,
	NT_PAGE_READWRITE = 4,
	NT_PAGE_EXECUTE_READ = 0x20,
	NT_PAGE_EXECUTE_READWRITE = 0x40,
	NT_PAGE_RUNS = 0xf0,   // all that let code be run
	NT_PAGE_GUARD = 0x100, // beside another: the first access is an exception, and removes it
	NT_VIEW_UNMAP = 2,     // of a view: processes that are started do not get it
	NT_SYNCHRONIZE = 0x100000, // the right to wait for what a handle is of
	NT_FILE_READ = 1,
	NT_FILE_SHARED = 7,        // others may read, write, delete
	NT_FILE_WAITS = 0x20,      // a call returns when it is done
	NT_FILE_NO_FOLDER = 0x40,  // a folder of that name is an error
	NT_FILE_STANDARD = 5,      // of NtQueryInformationFile
	NT_OBJECT_ANY_CASE = 0x40, // of nt_object: names match in upper and lower case
	NT_THREAD_SUSPENDED = 1,   // of NtCreateUserProcess
	NT_BASIC_INFORMATION = 0,
	NT_FILE_NAME = 2,
	NT_THREAD_NAME = 38, // of NtQueryInformationThread, since Windows 10
};

// What stands for the calling process and thread where a handle is taken; nothing has to be closed.
#define NT_SELF ((void *)(intptr_t)-1)
#define NT_THIS_THREAD ((void *)(intptr_t)-2)

// A text as the system counts it (UNICODE_STRING): `bytes` of UTF-16 without a NUL, and how many
// there is room for. `bytes` and `room` are twice as many as characters of 16 bits.
struct nt_text {
	uint16_t bytes, room;
	uint16_t *text;
};

// The same in bytes, one a character (ANSI_STRING): names of exported functions.
struct nt_name {
	uint16_t bytes, room;
	const char *text;
};

// The links of a circular list: the system puts them at the beginning of what is listed.
struct nt_list {
	struct nt_list *next, *previous;
};

// Numbers of a process and of a thread of it (CLIENT_ID).
struct nt_client {
	uintptr_t process, thread;
};

// What is to be opened (OBJECT_ATTRIBUTES): a name, below `root` (NULL: a whole path, "\??\C:\…").
// `length` is the struct's own size. `attributes` are NT_OBJECT_…, and the rest may be NULL.
struct nt_object {
	uint32_t length;
	void *root;
	struct nt_text *name;
	uint32_t attributes;
	void *security, *quality;
};

// What a call to a file says when it ends (IO_STATUS_BLOCK): how, and how many bytes it has moved.
struct nt_outcome {
	uintptr_t status, bytes;
};

// What NtQueryVirtualMemory says of an address: the pages from `base` on that are alike, and the
// reservation (`allocation`) that they are a part of. `state`, `protection` and `type` are NT_MEM_…
// and NT_PAGE_…. `bytes` goes to where something differs; `allocation` is NULL where all is free.
struct nt_region {
	uint8_t *base, *allocation;
	uint32_t allocation_protection;
#ifdef __x86_64__
	uint32_t partition;
#endif
	size_t bytes;
	uint32_t state, protection, type;
};

// What NtQueryInformationProcess says of NT_BASIC_INFORMATION. `peb` is an address in that process,
// and `parent` the number of the process that started it, which another may have by now.
struct nt_process {
	uintptr_t status;
	void *peb;
	uintptr_t affinity, priority, pid, parent;
};

// What NtQueryInformationThread says of NT_BASIC_INFORMATION. `teb` is an address in its process.
struct nt_thread {
	nt_status status;
	void *teb;
	struct nt_client client;
	uintptr_t affinity;
	int32_t priority, base_priority;
};

// The list of what a process is created with (PS_ATTRIBUTE_LIST): `bytes` in all. The lowest 16
// bits of `kind` say what it is: 5, the file of its image, which a copy of a process has not.
struct nt_attributes {
	size_t bytes;
	struct {
		uintptr_t kind;
		size_t size;
		uintptr_t value;
		size_t *length;
	} list[];
};

enum { NT_ATTRIBUTE_IMAGE = 5 };

// What NtQuerySystemInformation says of NT_BASIC_INFORMATION. `page` and `granularity` are bytes:
// what is mapped, and what reservations begin at multiples of.
struct nt_system {
	uint32_t reserved, timer, page, pages, lowest_page, highest_page, granularity;
	uintptr_t lowest_address, highest_address, affinity;
	uint8_t processors;
};

// What NtSetInformationObject sets of a handle: whether processes that are started get it, and
// whether NtClose refuses to close it.
struct nt_handle {
	uint8_t inherits, stays_open;
};

// How many bits, and where they are, 32 in a word, the lowest first.
struct nt_bitmap {
	uint32_t bits;
	uint32_t *words;
};

// One loaded module, which is in three lists of the loader's: in the order of their loading, of
// their addresses, and of their initialization.
struct nt_module {
	struct nt_list load, memory, init;
	uint8_t *base;
	void *entry;    // what is called when it is loaded; NULL: nothing
	uint32_t bytes; // mapped from `base` on
	struct nt_text path, name;
};

// The list of modules (PEB_LDR_DATA). Walk it under RtlAcquirePebLock or in a notification of the
// loader.
struct nt_loader {
	uint32_t length;
	uint8_t initialized;
	void *handle;
	struct nt_list load;
};

// The process's own block (PEB), of which the fields after those below are not ours to know.
struct nt_peb {
	uint8_t flags[4];
	void *mutant;
	uint8_t *image;
	struct nt_loader *loader;
	void *parameters, *sub_system, *heap, *lock, *reserved[2];
	uint32_t cross_flags;
	void *callbacks;
	uint32_t reserved_2[2];
	void *api_sets;
	uint32_t tls_counter;
	struct nt_bitmap *tls_bitmap;
};

_Static_assert(offsetof(struct nt_peb, tls_bitmap) == (sizeof(void *) == 8 ? 0x78 : 0x40),
	       "as the system has it");

// What the loader says of a module that has come or is about to go. It is valid during the call.
struct nt_dll_notice {
	uint32_t flags;
	const struct nt_text *path, *name;
	uint8_t *base;
	uint32_t bytes;
};

enum { NT_HANDLE_FLAGS = 4 }; // of NtSetInformationObject

enum { NT_DLL_LOADED = 1, NT_DLL_UNLOADED = 2 };

// What is called for each module, with NT_DLL_… and the context that it was registered with. The
// loader holds its lock: nothing may be loaded from here.
typedef NT_CALL void nt_dll_told(uint32_t reason, const struct nt_dll_notice *notice,
				 void *context);

// The functions that are hooked. Not imported: not every system has all of them. Each is X(result,
// name, arguments). `process` and `section` are handles; `*at` and `*bytes` say what is wanted and
// then what came of it; `type` is NT_MEM_…, `protection` NT_PAGE_…. RtlFreeHeap and the function
// tables' calls return 0 where they fail, what returns a pointer NULL; but RtlDestroyHeap returns
// NULL where it succeeds.
#define NT_HOOKED(X)                                                                               \
	X(void *, RtlAllocateHeap, (void *heap, uint32_t flags, size_t size))                      \
	X(uint32_t, RtlFreeHeap, (void *heap, uint32_t flags, void *ptr))                          \
	X(void *, RtlReAllocateHeap, (void *heap, uint32_t flags, void *ptr, size_t size))         \
	X(void *, RtlCreateHeap,                                                                   \
	  (uint32_t flags, void *at, size_t reserve, size_t commit, void *lock, void *definition)) \
	X(void *, RtlDestroyHeap, (void *heap))                                                    \
	X(nt_status, NtAllocateVirtualMemory,                                                      \
	  (void *process, void **at, uintptr_t zero_bits, size_t *bytes, uint32_t type,            \
	   uint32_t protection))                                                                   \
	X(nt_status, NtFreeVirtualMemory,                                                          \
	  (void *process, void **at, size_t *bytes, uint32_t type))                                \
	X(nt_status, NtMapViewOfSection,                                                           \
	  (void *section, void *process, void **at, uintptr_t zero_bits, size_t commit,            \
	   uint64_t *offset, size_t *bytes, uint32_t inherit, uint32_t type, uint32_t protection)) \
	X(nt_status, NtUnmapViewOfSection, (void *process, void *at))                              \
	X(nt_status, NtTerminateProcess, (void *process, int32_t status))                          \
	X(nt_status, NtCreateUserProcess,                                                          \
	  (void **process, void **thread, uint32_t process_access, uint32_t thread_access,         \
	   void *process_object, void *thread_object, uint32_t process_flags,                      \
	   uint32_t thread_flags, void *parameters, void *info, void *attributes))                 \
	X(nt_status, NtCreateThreadEx,                                                             \
	  (void **thread, uint32_t access, void *object, void *process, void *start,               \
	   void *argument, uint32_t flags, uintptr_t zero_bits, size_t stack_commit,               \
	   size_t stack_reserve, void *attributes))                                                \
	X(nt_status, NtResumeThread, (void *thread, uint32_t *count))                              \
	X(nt_status, NtAlertResumeThread, (void *thread, uint32_t *count))                         \
	X(nt_status, NtResumeProcess, (void *process))                                             \
	X(nt_status, NtAllocateVirtualMemoryEx,                                                    \
	  (void *process, void **at, size_t *bytes, uint32_t type, uint32_t protection,            \
	   void *parameters, uint32_t count))                                                      \
	X(nt_status, NtMapViewOfSectionEx,                                                         \
	  (void *section, void *process, void **at, uint64_t *offset, size_t *bytes,               \
	   uint32_t type, uint32_t protection, void *parameters, uint32_t count))                  \
	X(nt_status, NtSetInformationThread,                                                       \
	  (void *thread, uint32_t what, const void *in, uint32_t size))                            \
	X(nt_status, NtUnmapViewOfSectionEx, (void *process, void *at, uint32_t flags))            \
	X(nt_status, NtProtectVirtualMemory,                                                       \
	  (void *process, void **at, size_t *bytes, uint32_t protection, uint32_t *old))           \
	X(uint8_t, RtlAddFunctionTable, (const void *functions, uint32_t count, uint64_t base))    \
	X(uint8_t, RtlDeleteFunctionTable, (const void *functions))                                \
	X(uint8_t, RtlInstallFunctionTableCallback,                                                \
	  (uint64_t key, uint64_t base, uint32_t bytes, void *callback, void *context,             \
	   const uint16_t *file))                                                                  \
	X(nt_status, RtlAddGrowableFunctionTable,                                                  \
	  (void **handle, const void *functions, uint32_t count, uint32_t count_max,               \
	   uintptr_t base, uintptr_t end))                                                         \
	X(void, RtlGrowFunctionTable, (void *handle, uint32_t count))                              \
	X(void, RtlDeleteGrowableFunctionTable, (void *handle))

// As the system has them. A result below 0 is an error, and then what is given back by a pointer is
// not to be used. Handles that are given back have to be closed. `length`, `count` and `state` may
// be NULL where the caller does not want to know.
NT nt_status NtClose(void *handle);
NT nt_status NtOpenFile(void **file, uint32_t access, struct nt_object *object,
			struct nt_outcome *outcome, uint32_t share, uint32_t options);
NT nt_status NtQueryInformationFile(void *file, struct nt_outcome *outcome, void *out,
				    uint32_t bytes, uint32_t what);
NT nt_status NtReadFile(void *file, void *event, void *routine, void *context,
			struct nt_outcome *outcome, void *out, uint32_t bytes, const int64_t *at,
			const uint32_t *key);
// Times are in units of 100 ns: below 0 from now on, else a date.
NT nt_status NtDelayExecution(uint8_t alertable, const int64_t *interval);
NT nt_status NtFlushInstructionCache(void *process, const void *at, size_t bytes);
NT nt_status NtOpenProcess(void **process, uint32_t access, struct nt_object *object,
			   struct nt_client *client);
NT nt_status NtOpenThread(void **thread, uint32_t access, struct nt_object *object,
			  struct nt_client *client);
NT nt_status NtQueryInformationProcess(void *process, uint32_t what, void *out, uint32_t size,
				       uint32_t *length);
NT nt_status NtQuerySystemInformation(uint32_t what, void *out, uint32_t size, uint32_t *length);
NT nt_status NtQueryPerformanceCounter(int64_t *count, int64_t *frequency);
NT nt_status NtQueryInformationThread(void *thread, uint32_t what, void *out, uint32_t size,
				      uint32_t *length);
NT nt_status NtQueryVirtualMemory(void *process, const void *at, uint32_t what, void *out,
				  size_t size, size_t *length);
NT nt_status NtSetInformationObject(void *handle, uint32_t what, const void *in, uint32_t size);
NT nt_status NtSetEvent(void *event, int32_t *state);
// NT_SUCCESS: it is signalled, as a thread is that has ended. 0 as a time asks and does not wait.
NT nt_status NtWaitForSingleObject(void *handle, uint8_t alertable, const int64_t *timeout);
NT nt_status LdrGetProcedureAddress(void *module, const struct nt_name *name, uint32_t ordinal,
				    void **at);
NT nt_status LdrRegisterDllNotification(uint32_t flags, nt_dll_told *told, void *context,
					void **cookie);
// The process's own lock, of what is in its PEB. The same thread may take it again.
NT void RtlAcquirePebLock(void);
NT void RtlReleasePebLock(void);
// So many bits in a row that are 0, searched for from `hint` on, are set. Returns the first one's
// number; UINT32_MAX: there are none.
NT uint32_t RtlFindClearBitsAndSet(struct nt_bitmap *bitmap, uint32_t count, uint32_t hint);
