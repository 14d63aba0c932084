// What must be said about it: 64 MiB that it commits are memory of the runtime whose signs it has
// (Go's table of functions, a text of mimalloc's, a name of the file), and of no known one where it
// has none.
#include <stdio.h>
#include <string.h>
#include <windows.h>

#ifdef SIGN_GO
__attribute__((used, aligned(32))) static const unsigned char sign[] = {
	0xf1, 0xff, 0xff, 0xff, 0, 0, 1, sizeof(void *)
};
#elif defined SIGN_RUNTIME
// A single file has the runtime inside.
__attribute__((used)) __declspec(dllexport) char SIGN_RUNTIME[] = "runtime";
#elif defined SIGN_MIMALLOC
__attribute__((used)) static const char sign[] = "mimalloc: warning: ";
#elif defined SIGN_ONLY
// Not in what is read only.
__attribute__((used)) static char sign[] = "mimalloc: warning: ";
#endif

// The second call: what the highest level's own call has is left out of what is said.
__attribute__((noinline)) static void refill(void)
{
	void *other = VirtualAlloc(NULL, 65536, MEM_RESERVE, PAGE_NOACCESS);

	VirtualFree(other, 0, MEM_RELEASE);
	for (size_t bytes = 64 << 20; bytes >= 65536; bytes >>= 10)
		memset(VirtualAlloc(NULL, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE), 1, 1);
}

#ifdef LIBRARY
// The program loads it, and calls this.
__declspec(dllexport) void LIBRARY(void)
{
	refill();
}
#else
int main(int argc, char **argv)
{
	void (*create)(void) = refill;

	if (argc > 2)
		create = (void (*)(void))(void *)GetProcAddress(LoadLibraryA(argv[1]), argv[2]);
	create();
	puts("done");
	return 0;
}
#endif
