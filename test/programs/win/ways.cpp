// What must be said about it: each allocation of its own heap has the callers that its size names,
// and all of them, however their frames are made: with realigned stacks, stacks of a size that is
// known when it runs, callbacks through the C runtime, calls through pointers that end with the
// callee's removal of arguments, virtual calls, jumps without a frame, large frames, recursion; in
// the first thread, in another one and in a fiber. The functions are not inlined, and do not end in
// tail calls.
#include <emmintrin.h>
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>

#define WAY extern "C" __attribute__((noinline))

static volatile int one = 1;

// So that no call is a function's last act.
WAY void touch(volatile void *at)
{
	*(volatile char *)at += (char)one;
}

// With frame pointers, the system itself can say who called: `said SIZE PC PC …`, from `site` or
// its caller outwards: Wine begins one frame further out than Windows.
#ifdef WITH_FRAMES
WAY void tell(int size)
{
	void *frames[60];
	USHORT count = RtlCaptureStackBackTrace(1, 60, frames, NULL);

	printf("said %d", size);
	for (USHORT i = 0; i < count && frames[i]; i++)
		printf(" %lx", (unsigned long)(size_t)frames[i]);
	printf("\n");
}
#else
static void tell(int)
{
}
#endif

WAY void site(int size)
{
	volatile int after = 0;

	tell(size);
	HeapAlloc(GetProcessHeap(), 0, (size_t)size);
	touch(&after);
}

WAY void realigned(int n)
{
	volatile __m128 room[20];

	for (int i = 0; i < 20; i++)
		room[i] = _mm_set1_ps((float)(n + i));
	site(7001 + n);
	touch(room);
}

WAY int compare(const void *a, const void *b)
{
	site(7010);
	return *(const int *)a - *(const int *)b;
}

WAY void sorts(void)
{
	int words[3] = { 3, 1, 2 };

	qsort(words, 3, sizeof(words[0]), compare);
	touch(words);
}

WAY void grows(int n)
{
	volatile char *room = (volatile char *)__builtin_alloca((size_t)n * 64);

	room[0] = 1;
	site(7020);
	touch(room);
}

WAY void __stdcall takes_back(int, int, int)
{
	volatile int after = 0;

	site(7030);
	touch(&after);
}

static void(__stdcall *volatile by_pointer)(int, int, int) = takes_back;

WAY void large(void)
{
	volatile char room[9000]; // more than a page

	room[5] = 1;
	by_pointer(1, 2, 3);
	touch(room);
}

struct base {
	virtual void call(int size) = 0;
	virtual ~base()
	{
	}
};

struct derived : base {
	__attribute__((noinline)) void call(int size) override
	{
		volatile int after = 0;

		site(size);
		touch(&after);
	}
};

static base *volatile object;

WAY void virtually(void)
{
	volatile int after = 0;

	object->call(7040);
	touch(&after);
}

WAY void deeper(int n)
{
	volatile int after = 0;

	if (n)
		deeper(n - 1);
	else
		site(7050);
	touch(&after);
}

#ifdef __i386__
// A function without a frame of its own, as linkers and compilers write them for this-pointers.
extern "C" void jumps(int size);
__asm__(".text\n\t.globl _jumps\n_jumps:\n\tjmp _site\n");

WAY void through_jump(void)
{
	volatile int after = 0;

	jumps(7060);
	touch(&after);
}

WAY void ends_thread(void)
{
	site(7080);
	ExitThread(0);
}

// Without tables, and called by addresses that nobody knows beforehand: one whose own calls are so
// as well, so that only all of them together say that none removes arguments; one that never
// comes back, and has no end.
extern "C" void calls_pointers(void (**pointers)(int));
extern "C" void never_back(void);
__asm__(".text\n\t.globl _calls_pointers, _never_back\n\t"
	".skip 16, 0xcc\n\t.p2align 4, 0xcc\n_calls_pointers:\n\t"
	"push %ebx\n\tpush %esi\n\tmov 12(%esp), %esi\n\t"
	"push $7071\n\tmov (%esi), %eax\n\tcall *%eax\n\tadd $4, %esp\n\t"
	"push $7070\n\tmov 4(%esi), %eax\n\tcall *%eax\n\t"
	"push $7071\n\tmov (%esi), %eax\n\tcall *%eax\n\tadd $8, %esp\n\t"
	"pop %esi\n\tpop %ebx\n\tret\n\t"
	".skip 16, 0xcc\n\t.p2align 4, 0xcc\n_never_back:\n\tcall _ends_thread\n\tud2\n\t"
	".skip 16, 0xcc\n\t.p2align 4, 0xcc\n");

WAY void nothing(int)
{
}

extern "C" {
void (*pointers[])(int) = { nothing, site };
}

static struct {
	void (*calls_pointers)(void (**)(int));
	void (*never_back)(void);
} table = { calls_pointers, never_back }, *volatile by_table = &table;

// Behind what does not come back nobody knows how much was taken from the stack: ebp must say it.
WAY DWORD WINAPI other_thread(void *)
{
	volatile char *room = (volatile char *)__builtin_alloca((size_t)one * 64);

	room[0] = 1;
	by_table->never_back();
	touch(room);
	return 0;
}

WAY void by_addresses(void)
{
	volatile int after = 0;
	HANDLE other;

	by_table->calls_pointers(pointers);
	other = CreateThread(NULL, 0, other_thread, NULL, 0, NULL);
	WaitForSingleObject(other, INFINITE);
	touch(&after);
}

// As Microsoft's compilers align a stack by more than four bytes: the caller's frame is found by
// ebx, and ebp leads to a copy of the return address. How far apart they are is as the caller's
// stack was.
extern "C" void calls_shifted(void (*function)(int));
extern "C" void aligned_by_ebx(int size);
// And as they begin a function with handlers, here that of a thread: what it calls makes its frame.
// What comes behind it, which nobody returns to, is the handlers'.
extern "C" DWORD WINAPI with_handlers(void *pointers);
__asm__(".text\n\t.globl _calls_shifted, _aligned_by_ebx, _with_handlers@4\n\t"
	".skip 16, 0xcc\n\t.p2align 4, 0xcc\n_aligned_by_ebx:\n\t"
	"push %ebx\n\tmov %esp, %ebx\n\tsub $8, %esp\n\t"
	"and $-16, %esp\n\tadd $4, %esp\n\t"
	"push %ebp\n\tmov 4(%ebx), %ebp\n\t"
	"mov %ebp, 4(%esp)\n\tmov %esp, %ebp\n\t"
	"sub $24, %esp\n\tpush 8(%ebx)\n\tcall _site\n\tadd $4, %esp\n\t"
	"mov %ebp, %esp\n\tpop %ebp\n\tmov %ebx, %esp\n\tpop %ebx\n\tret\n\t"
	".skip 16, 0xcc\n\t.p2align 4, 0xcc\n_calls_shifted:\n\t"
	"push %esi\n\tmov 8(%esp), %esi\n\t"
	"push $7100\n\tcall *%esi\nLstale:\n\tadd $4, %esp\n\t"
	"push %eax\n\tpush $7100\n\tcall *%esi\n\tadd $8, %esp\n\t"
	"push %eax\n\tpush %eax\n\tpush $7100\n\tcall *%esi\n\tadd $12, %esp\n\t"
	"push %eax\n\tpush %eax\n\tpush %eax\n\tpush $7100\n\tcall *%esi\n\t"
	"add $16, %esp\n\t"
	"pop %esi\n\tret\n\t"
	".skip 16, 0xcc\n\t.p2align 4, 0xcc\n_sets_up:\n\t"
	"push $0\n\tpush $0\n\tmov 16(%esp), %eax\n\t"
	"mov %ebp, 16(%esp)\n\tlea 16(%esp), %ebp\n\t"
	"sub %eax, %esp\n\tpush %ebx\n\tpush %esi\n\tpush %edi\n\tpush -8(%ebp)\n\tret\n"
	"_with_handlers@4:\n\t"
	"push $12\n\tpush $_pointers\n\tcall _sets_up\n\t"
	"mov 8(%ebp), %edi\n\tmov 4(%edi), %esi\n\t"
	"push $7110\n\tcall *%esi\n\tpush %eax\n\tcall *__imp__ExitThread@4\n\t"
	"mov -20(%ebp), %ecx\n\tpush %ecx\n\tpush %eax\n\tcall _touch\n\t"
	"pop %ecx\n\tpop %ecx\n\tret\n\t"
	".skip 16, 0xcc\n\t.p2align 4, 0xcc\n");

WAY void ends_by_throw(void)
{
	site(7120);
	ExitThread(0);
}

// Its last act is a call that does not come back; what gcc fills the room with to the next function
// is then where it would go on, and its frame begins with what another call has left there.
extern "C" void throws(void);
__asm__(".text\n\t.globl _throws\n\t.skip 16, 0xcc\n\t.p2align 4, 0xcc\n_throws:\n\t"
	"sub $28, %esp\n\tmovl $Lstale, (%esp)\n\tcall _ends_by_throw\n\t.p2align 4, 0x90\n\t"
	"mov 4(%esp), %eax\n\tret\n\t.skip 16, 0xcc\n\t.p2align 4, 0xcc\n");

WAY DWORD WINAPI throwing(void *)
{
	volatile char *room = (volatile char *)__builtin_alloca((size_t)one * 64);

	room[0] = 1;
	throws();
	touch(room);
	return 0;
}

WAY void shifts(void)
{
	volatile int after = 0;
	HANDLE other;

	calls_shifted(aligned_by_ebx);
	other = CreateThread(NULL, 0, with_handlers, pointers, 0, NULL);
	WaitForSingleObject(other, INFINITE);
	other = CreateThread(NULL, 0, throwing, NULL, 0, NULL);
	WaitForSingleObject(other, INFINITE);
	touch(&after);
}
#endif

// A stack that the system makes, and begins elsewhere than a thread's.
WAY void WINAPI in_fiber(void *back)
{
	volatile int after = 0;

	site(7090);
	touch(&after);
	SwitchToFiber(back);
}

WAY DWORD WINAPI thread(void *)
{
	void *own = ConvertThreadToFiber(NULL);

	SwitchToFiber(CreateFiber(0, in_fiber, own));
	realigned(1);
	large();
	return 0;
}

int main(void)
{
	HANDLE other;

	object = new derived;
	realigned(0);
	sorts();
	grows(7 * one);
	large();
	virtually();
	deeper(5 * one);
#ifdef __i386__
	through_jump();
	by_addresses();
	shifts();
#endif
	other = CreateThread(NULL, 0, thread, NULL, 0, NULL);
	WaitForSingleObject(other, INFINITE);
	touch(&one);
	return 0;
}
