// ntcalls: ntdll's calls on virtual memory, those too that a system may lack, and their flags.
#pragma once

#include <windows.h>
#include <winternl.h>

enum {
	PAGE = 4096,
	SLOT = 65536,
	REPLACE = 0x4000,
	PLACEHOLDER = 0x40000,
	PRESERVE = 2,
	COALESCE = 1,
	UNDO = 0x1000000,
};

typedef NTSTATUS NTAPI free_fn(HANDLE, void **, SIZE_T *, ULONG);
typedef NTSTATUS NTAPI allocate_fn(HANDLE, void **, ULONG_PTR, SIZE_T *, ULONG, ULONG);
typedef NTSTATUS NTAPI allocate_ex_fn(HANDLE, void **, SIZE_T *, ULONG, ULONG, void *, ULONG);
typedef NTSTATUS NTAPI map_fn(HANDLE, HANDLE, void **, ULONG_PTR, SIZE_T, LARGE_INTEGER *, SIZE_T *,
			      ULONG, ULONG, ULONG);
typedef NTSTATUS NTAPI map_ex_fn(HANDLE, HANDLE, void **, LARGE_INTEGER *, SIZE_T *, ULONG, ULONG,
				 void *, ULONG);
typedef NTSTATUS NTAPI unmap_fn(HANDLE, void *);
typedef NTSTATUS NTAPI unmap_ex_fn(HANDLE, void *, ULONG);

// NULL: this system lacks it.
static free_fn *nt_free;
static allocate_fn *nt_allocate;
static allocate_ex_fn *nt_allocate_ex;
static map_fn *nt_map;
static map_ex_fn *nt_map_ex;
static unmap_fn *nt_unmap;
static unmap_ex_fn *nt_unmap_ex;

#define NT_FIND(type, name) (type *)(void *)GetProcAddress(GetModuleHandleA("ntdll.dll"), name)

static void nt_find_all(void)
{
	nt_free = NT_FIND(free_fn, "NtFreeVirtualMemory");
	nt_allocate = NT_FIND(allocate_fn, "NtAllocateVirtualMemory");
	nt_allocate_ex = NT_FIND(allocate_ex_fn, "NtAllocateVirtualMemoryEx");
	nt_map = NT_FIND(map_fn, "NtMapViewOfSection");
	nt_map_ex = NT_FIND(map_ex_fn, "NtMapViewOfSectionEx");
	nt_unmap = NT_FIND(unmap_fn, "NtUnmapViewOfSection");
	nt_unmap_ex = NT_FIND(unmap_ex_fn, "NtUnmapViewOfSectionEx");
}
