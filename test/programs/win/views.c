// What must be said about it: "views: FILE PAGING BRIEF" are where it maps 2 MiB of viewed.bin,
// which it makes, from 1 MiB on, 1 MiB of the paging file, and 64 KiB of viewed.bin, which it
// unmaps.
#include <stdio.h>
#include <windows.h>

enum { MIB = 1 << 20, BRIEF = 1 << 16 };

int main(void)
{
	HANDLE file = CreateFileA("viewed.bin", GENERIC_READ | GENERIC_WRITE, 0, NULL,
				  CREATE_ALWAYS, 0, NULL);
	HANDLE section = CreateFileMappingA(file, NULL, PAGE_READWRITE, 0, 3 * MIB, NULL);
	HANDLE paging =
		CreateFileMappingA(INVALID_HANDLE_VALUE, NULL, PAGE_READWRITE, 0, MIB, NULL);
	void *view = MapViewOfFile(section, FILE_MAP_ALL_ACCESS, 0, MIB, 2 * MIB);
	void *other = MapViewOfFile(paging, FILE_MAP_ALL_ACCESS, 0, 0, 0);
	void *brief = MapViewOfFile(section, FILE_MAP_READ, 0, 0, BRIEF);

	printf("views: %llx %llx %llx\n", (unsigned long long)(size_t)view,
	       (unsigned long long)(size_t)other, (unsigned long long)(size_t)brief);
	UnmapViewOfFile(brief);
	return 0;
}
