// What must be said about it: `suspended WAY RESUME CHILD` starts CHILD, a program of this source,
// suspended, does something to its memory, lets it run, and ends with its code (7). The child takes
// 1000 blocks of 12347 bytes and frees 500 of them, which nobody else does, and says "child": each
// of these calls is in the trace, or the trace says that the child is not recorded.
//
//     WAY     plain      nothing is done to it
//             restored   its headers name the list of imports that its file has
//             hollowed   its image is unmapped, and the same file is written to that place
//             wiped      restored, and the recorder's invitation is released
//     RESUME  thread     ResumeThread
//             twice      SuspendThread before, and twice ResumeThread
//             alert      NtAlertResumeThread
//             process    NtResumeProcess
//             remote     a thread that ends the process; its own has never run
//             never      TerminateProcess
//             asked      it is not started suspended at all, and nothing is done to it
//
// Linked for a fixed address (--disable-dynamicbase).
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

enum {
	CODE = 7,
	BLOCKS = 1000,
	BLOCK_BYTES = 12347,
	FREED = 500,
	DIRECTORY_IMPORTS = 1,
	DIRECTORY_BOUND = 11
};

typedef LONG NTAPI unmap_view(HANDLE process, void *at);
typedef LONG NTAPI resume_process(HANDLE process);
typedef LONG NTAPI alert_thread(HANDLE thread, ULONG *count);

static void *of_ntdll(const char *name)
{
	return (void *)(UINT_PTR)GetProcAddress(GetModuleHandleA("ntdll.dll"), name);
}

// The child's file, and what its headers say, for either size.
struct image {
	unsigned char *file;
	IMAGE_NT_HEADERS32 *narrow;
	IMAGE_NT_HEADERS64 *wide;
	IMAGE_DATA_DIRECTORY *directories;
	UINT64 base;
	DWORD bytes, header_bytes;
};

static int read_image(struct image *image, const char *path)
{
	FILE *file = fopen(path, "rb");
	long size;

	if (!file)
		return 0;
	fseek(file, 0, SEEK_END);
	size = ftell(file);
	rewind(file);
	image->file = malloc((size_t)size);
	if (fread(image->file, 1, (size_t)size, file) != (size_t)size)
		return 0;
	fclose(file);
	image->wide = (void *)(image->file + ((IMAGE_DOS_HEADER *)image->file)->e_lfanew);
	image->narrow = (void *)image->wide;
	if (image->wide->FileHeader.Machine == IMAGE_FILE_MACHINE_AMD64) {
		image->directories = image->wide->OptionalHeader.DataDirectory;
		image->base = image->wide->OptionalHeader.ImageBase;
	} else {
		image->directories = image->narrow->OptionalHeader.DataDirectory;
		image->base = image->narrow->OptionalHeader.ImageBase;
	}
	image->bytes = image->wide->OptionalHeader.SizeOfImage; // at the same place in both
	image->header_bytes = image->wide->OptionalHeader.SizeOfHeaders;
	return 1;
}

static int put(HANDLE process, UINT64 at, const void *bytes, size_t size)
{
	SIZE_T done;
	DWORD old;

	return VirtualProtectEx(process, (void *)(UINT_PTR)at, size, PAGE_EXECUTE_READWRITE,
				&old) &&
	       WriteProcessMemory(process, (void *)(UINT_PTR)at, bytes, size, &done) &&
	       VirtualProtectEx(process, (void *)(UINT_PTR)at, size, old, &old);
}

static int restore(HANDLE process, const struct image *image)
{
	static const int which[] = { DIRECTORY_IMPORTS, DIRECTORY_BOUND };

	for (int i = 0; i < 2; i++) {
		const IMAGE_DATA_DIRECTORY *directory = &image->directories[which[i]];

		if (!put(process, image->base + (UINT64)((unsigned char *)directory - image->file),
			 directory, sizeof *directory))
			return 0;
	}
	return 1;
}

static int hollow(HANDLE process, const struct image *image)
{
	unmap_view *unmap = (unmap_view *)of_ntdll("NtUnmapViewOfSection");
	IMAGE_SECTION_HEADER *section = (void *)((unsigned char *)&image->wide->OptionalHeader +
						 image->wide->FileHeader.SizeOfOptionalHeader);

	if (unmap(process, (void *)(UINT_PTR)image->base) < 0 ||
	    !VirtualAllocEx(process, (void *)(UINT_PTR)image->base, image->bytes,
			    MEM_RESERVE | MEM_COMMIT, PAGE_EXECUTE_READWRITE) ||
	    !put(process, image->base, image->file, image->header_bytes))
		return 0;
	for (int i = 0; i < image->wide->FileHeader.NumberOfSections; i++, section++)
		if (section->SizeOfRawData &&
		    !put(process, image->base + section->VirtualAddress,
			 image->file + section->PointerToRawData, section->SizeOfRawData))
			return 0;
	return 1;
}

// What the recorder's name is in front of.
static int wipe(HANDLE process)
{
	MEMORY_BASIC_INFORMATION region;
	unsigned char *at = NULL, mark[16];
	SIZE_T done;

	while (VirtualQueryEx(process, at, &region, sizeof region) == sizeof region) {
		at = (unsigned char *)region.BaseAddress + region.RegionSize;
		if (region.Type == MEM_PRIVATE && region.State == MEM_COMMIT &&
		    ReadProcessMemory(process, region.BaseAddress, mark, sizeof mark, &done) &&
		    memcmp(mark + 1, "tidemark", 8) == 0)
			VirtualFreeEx(process, region.AllocationBase, 0, MEM_RELEASE);
	}
	return 1;
}

static int change(const char *way, HANDLE process, const struct image *image)
{
	if (strcmp(way, "restored") == 0)
		return restore(process, image);
	if (strcmp(way, "hollowed") == 0)
		return hollow(process, image);
	if (strcmp(way, "wiped") == 0)
		return restore(process, image) && wipe(process);
	return 1;
}

static void let_run(const char *how, const PROCESS_INFORMATION *child)
{
	if (strcmp(how, "thread") == 0) {
		ResumeThread(child->hThread);
	} else if (strcmp(how, "twice") == 0) {
		SuspendThread(child->hThread);
		ResumeThread(child->hThread);
		ResumeThread(child->hThread);
	} else if (strcmp(how, "alert") == 0) {
		((alert_thread *)of_ntdll("NtAlertResumeThread"))(child->hThread, NULL);
	} else if (strcmp(how, "process") == 0) {
		((resume_process *)of_ntdll("NtResumeProcess"))(child->hProcess);
	} else if (strcmp(how, "remote") == 0) {
		CreateRemoteThread(child->hProcess, NULL, 0,
				   (LPTHREAD_START_ROUTINE)(UINT_PTR)ExitProcess,
				   (void *)(UINT_PTR)CODE, 0, NULL);
	} else if (strcmp(how, "never") == 0) {
		TerminateProcess(child->hProcess, CODE);
	}
}

static int work(void)
{
	HANDLE heap = GetProcessHeap();
	void *blocks[BLOCKS];

	for (int i = 0; i < BLOCKS; i++)
		blocks[i] = HeapAlloc(heap, 0, BLOCK_BYTES);
	for (int i = 0; i < FREED; i++)
		HeapFree(heap, 0, blocks[i]);
	puts("child");
	return CODE;
}

int main(int argc, char **argv)
{
	STARTUPINFOA startup = { .cb = sizeof startup };
	PROCESS_INFORMATION child;
	struct image image;
	DWORD code = 0;

	if (argc < 4)
		return work();
	if (!read_image(&image, argv[3]) ||
	    !CreateProcessA(argv[3], NULL, NULL, NULL, FALSE,
			    strcmp(argv[2], "asked") == 0 ? 0 : CREATE_SUSPENDED, NULL, NULL,
			    &startup, &child))
		return 98;
	if (!change(argv[1], child.hProcess, &image)) {
		printf("parent: error %lu\n", GetLastError());
		TerminateProcess(child.hProcess, 97);
	}
	let_run(argv[2], &child);
	WaitForSingleObject(child.hProcess, INFINITE);
	GetExitCodeProcess(child.hProcess, &code);
	return (int)code;
}
