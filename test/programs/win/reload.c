// A DLL that goes and another that comes to the same place. What must be said about it: blocks of
// 1,001 bytes come from `first`, of 1,002 from `second`, whichever module lies there just then.
//
// reload.exe loads first.dll, which allocates, frees it, loads second.dll, and so on, ten times
// each. Its last words are "reload: ADDRESSES", how many different places there were. Compiled with
// -DPART=name it is one of the DLLs.
#include <stdio.h>
#include <windows.h>

#ifdef PART
__declspec(dllexport) __attribute__((noinline)) void *PART(HANDLE heap);

void *PART(HANDLE heap)
{
	void *volatile block = HeapAlloc(heap, 0, BYTES);

	return block;
}
#else
typedef void *take(HANDLE heap);

static void *volatile kept;

int main(void)
{
	const char *names[2] = { "first", "second" };
	HANDLE heap = HeapCreate(0, 0, 0);
	HMODULE places[20];
	int different = 0;

	for (int i = 0; i < 20; i++) {
		char file[16];
		take *function;
		int known = 0;

		snprintf(file, sizeof file, "%s.dll", names[i % 2]);
		places[i] = LoadLibraryA(file);
		function = (take *)(void *)GetProcAddress(places[i], names[i % 2]);
		if (!function)
			return 1;
		kept = function(heap);
		FreeLibrary(places[i]);
		for (int j = 0; j < i; j++)
			known |= places[j] == places[i];
		different += !known;
	}
	printf("reload: %d\n", different);
	return 0;
}
#endif
