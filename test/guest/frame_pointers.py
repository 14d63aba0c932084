#!/usr/bin/env python3
# parallel: yes
"""Code without tables: its frame pointers are followed where its own instructions prove them."""
import json
import re
import shutil

from libguest import TIDEMARK, Trace, check, check_whole, equal, main, record, run, test

PROGRAM = r"""
#include <stdlib.h>
#include <string.h>
#include <alloca.h>
#define APART __attribute__((noinline))
static volatile int zero;
static int (*volatile by_pointer)(int, int);
APART static int leaf(int a, int b)
{
	char *block = malloc(7901);
	if (!block)
		abort();
	block[0] = (char)(a + b);
	if (zero)
		exit(3);
	free(block);
	return a * b + zero;
}
APART static int ways(int a, int b)
{
	char room[200];
	memset(room, a, sizeof(room));
	switch (b % 5) {
	case 0: return leaf(a, b) + room[a % 200];
	case 1: b = leaf(a + 1, b); break;
	case 2: if (zero) abort(); b += leaf(b, a) * 3; break;
	default: while (a % 7) a += leaf(a, b) % 2 + 1;
	}
	return a + b + leaf(a, b) + room[zero];
}
APART static int growing(int a, int b)
{
	char *room = alloca((size_t)(a % 100 + 16));
	memset(room, b, (size_t)(a % 100 + 16));
	a = ways(a, b);
	return a + room[0];
}
APART static int many(int a, int b, int c, int d, int e, int f, int g, double h)
{
	int x = growing(a, b), y = growing(c, d), z = growing(e, f);
	return x * y + z + g + (int)(h * x);
}
APART static int deeper(int depth, int b)
{
	int result = depth ? by_pointer(depth - 1, b) : many(b, b, b, b, b, b, b, b);
	return result + 1;
}
int main(void)
{
	int sum = 0;
	by_pointer = deeper;
	for (int i = 0; i < 300; i++)
		sum += deeper(i % 20, i);
	return sum == 12345;
}
"""

# rbp is a register like any other: a counter, and an address at which all looks like a frame. These do
# not return by `ret`, so that nothing says how large their frames are.
ALIKE = r"""
#include <stdlib.h>
static long made[4];
__attribute__((noinline)) void leaf(void)
{
	free(malloc(7902));
	__asm__ volatile("");
}
void counts(void);
void looks(void);
void strays(void);
__asm__(".text\n"
	"counts: push %rbp\n push %rbx\n sub $24,%rsp\n mov $5,%ebp\n"
	"1: call leaf\n dec %ebp\n jnz 1b\n add $24,%rsp\n pop %rbx\n pop %rbp\n ret\n"
	// A frame on the stack that is nobody's: {a stack address, a return address in main}.
	"looks: push %rbp\n sub $48,%rsp\n lea 16(%rsp),%rbp\n lea 32(%rsp),%rax\n mov %rax,(%rbp)\n"
	"mov 56(%rsp),%rax\n mov %rax,8(%rbp)\n call leaf\n add $48,%rsp\n pop %rbp\n pop %rcx\n jmp *%rcx\n"
	// Another one: {a frame like that, a number for a return address}. No page is there.
	"strays: push %rbp\n sub $64,%rsp\n lea 16(%rsp),%rbp\n lea 40(%rsp),%rax\n mov %rax,(%rbp)\n"
	"movq $274,8(%rbp)\n movq $0,40(%rsp)\n mov 72(%rsp),%rax\n mov %rax,48(%rsp)\n"
	"call leaf\n add $64,%rsp\n pop %rbp\n pop %rcx\n jmp *%rcx\n");
static void (*volatile by_pointer)(void) = strays;
int main(void)
{
	for (int i = 0; i < 100; i++) {
		counts();
		looks();
		by_pointer(); // such a call may have led anywhere
	}
	return (int)made[0];
}
"""

# As Go calls C: a goroutine on a stack of its own, in memory below the thread's, whose frames are as Go makes them
# since 1.21 (second) and before (first). It returns to one byte after goexit's beginning.
GOROUTINE = r"""
#include <stdlib.h>
#include <sys/mman.h>
struct goroutine { char *low, *high; };
__thread struct goroutine *running;
__attribute__((noinline)) void leaf(void) { free(malloc(7903)); __asm__ volatile(""); }
void run_goroutine(struct goroutine *, char *high);
__asm__(".text\n"
	"run_goroutine: push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
	"mov %rsp,thread_sp(%rip)\n mov %rdi,%fs:running@tpoff\n mov %rsi,%rsp\n"
	"lea goexit+1(%rip),%rax\n push %rax\n xor %ebp,%ebp\n jmp first\n"
	".balign 32\n"
	"first: sub $0x18,%rsp\n mov %rbp,0x10(%rsp)\n lea 0x10(%rsp),%rbp\n call second\n"
	"mov 0x10(%rsp),%rbp\n add $0x18,%rsp\n ret\n"
	".balign 32\n"
	"second: push %rbp\n mov %rsp,%rbp\n sub $0x18,%rsp\n lea leaf(%rip),%rax\n call asmcgocall\n"
	"add $0x18,%rsp\n pop %rbp\n ret\n"
	".balign 32\n"
	"asmcgocall: mov %rsp,%rdx\n mov %fs:running@tpoff,%rdi\n movq $0,%fs:running@tpoff\n"
	"mov thread_sp(%rip),%rsp\n sub $16,%rsp\n and $-16,%rsp\n mov %rdi,8(%rsp)\n mov 8(%rdi),%rdi\n"
	"sub %rdx,%rdi\n mov %rdi,(%rsp)\n call *%rax\n"
#ifdef __PIE__ // as linked by gcc
	"mov $running@tpoff,%rcx\n mov 8(%rsp),%rdi\n mov 8(%rdi),%rsi\n sub (%rsp),%rsi\n mov %rdi,%fs:(%rcx)\n"
#else
	"mov 8(%rsp),%rdi\n mov 8(%rdi),%rsi\n sub (%rsp),%rsi\n mov %rdi,%fs:running@tpoff\n"
#endif
	"mov %rsi,%rsp\n ret\n"
	".balign 32\n"
	"goexit: nop\n call goexit1\n nop\n"
	".balign 32\n"
	"goexit1: mov thread_sp(%rip),%rsp\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n"
	".bss\n thread_sp: .quad 0\n .text\n"
#ifdef TABLE // as Go's linker makes it, which strip leaves
	".section " TABLE "\n"
	"table: .long 0xfffffff0\n .byte 0,0,1,8\n .quad 4,1,first\n"
	".quad names-table,units-table,files-table,values-table,functions-table\n"
	"names: .asciz \"main.first\",\"main.second\",\"runtime.asmcgocall\",\"runtime.goexit\"\n"
	"units: .long 0\n files: .asciz \"main.go\"\n"
	// 1: file 0. 5: line 10, from the fourth byte on 12. 11: line 300. 16: nothing inlined, then something.
	"values: .byte 0, 2,0xff,1,0, 22,4,4,0xff,1,0, 0xda,4,0xff,1,0, 0,4,2,0xff,1,0\n"
	".balign 4\n"
	"functions: .long 0,one-functions,second-first,two-functions,asmcgocall-first,three-functions\n"
	".long goexit-first,four-functions,goexit1-first\n"
	"one: .long 0,0,0,0,0,1,5,0,0,0\n"
	"two: .long second-first,11,0,0,0,1,11,0,0,0\n"
	"three: .long asmcgocall-first,23,0,0,0,1,11,3,0,0,0,0,16\n"
	"four: .long goexit-first,42,0,0,0,0,0,0,0,0\n .text\n"
#endif
	);
int main(void)
{
	enum { BYTES = 65536 };
	for (int i = 0; i < 100; i++) {
		char *low = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		struct goroutine goroutine = { low, low + BYTES };
		run_goroutine(&goroutine, goroutine.high - i % 3 * 8);
		munmap(low, BYTES);
	}
	return 0;
}
"""

# A context as Boost's make_fcontext makes it: its first function returns to what ends the process.
CONTEXT = r"""
#include <stdlib.h>
__attribute__((noinline)) void leaf(void) { free(malloc(7904)); __asm__ volatile(""); }
void enter(void (*)(void), char *high);
void leave(void);
__attribute__((noinline)) void first(void) { leaf(); leave(); }
__asm__(".text\n"
	"enter: push %rbp\n push %rbx\n mov %rsp,thread_sp(%rip)\n mov %rsi,%rsp\n mov %rdi,%rbx\n"
	"lea finish(%rip),%rbp\n jmp trampoline\n"
	"leave: mov thread_sp(%rip),%rsp\n pop %rbx\n pop %rbp\n ret\n"
	"trampoline: push %rbp\n jmp *%rbx\n"
	"finish: xor " ZERO "\n call " EXIT "\n hlt\n"
	".bss\n thread_sp: .quad 0\n .text\n");
int main(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	for (int i = 0; i < 100; i++)
		enter(first, stack + sizeof stack);
	return 0;
}
"""

NO_TABLES = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]


def build(compiler, *options, text=PROGRAM):
    with open("program.c", "w", encoding="utf-8") as file:
        file.write(text)
    equal(0, run([compiler, "-w", "-g", "-fno-builtin", *options, "program.c", "-o", "program"]).code, compiler)


def stacks_of(size):
    """Those of all blocks of a size, in their order: flags, and how many frames are the program's."""
    record(["./program"], "--verify-stacks", "--force")
    trace = Trace()
    check_whole(trace)
    equal(0, int(trace.end.get("stacks-mismatched", 0)), "stacks that differ")
    return [(trace.stacks[event.stack][2], trace.depth(event.stack),
             [trace.module_of(frame) for frame in trace.frames_of(event.stack)].count("program"))
            for event in trace.of_size(size)]


def without_tables_as_with_them(frames, levels):
    for compiler in ("gcc", "clang"):
        if not shutil.which(compiler):
            continue
        for level in levels:
            options = [level, frames, "-fno-optimize-sibling-calls"]
            build(compiler, *options)
            right = stacks_of(7901)
            build(compiler, *options, *NO_TABLES)
            found = stacks_of(7901)
            equal(len(right), len(found), "blocks")
            learned = len(found) // 4  # what comes first is still being learned
            wrong = [(a, b) for a, b in zip(right[learned:], found[learned:]) if a != b]
            print(f"# {compiler} {level}: {len(found)} blocks, {len(wrong)} not proven or wrong")
            check(not [b for a, b in wrong if b[0] == 0], f"{compiler} {level}: {wrong[:3]}")
            check(len(wrong) <= len(found) // 50, f"{compiler} {level}: {len(wrong)} {wrong[:5]}")


@test
def frame_pointers_are_followed_where_the_code_proves_them():
    without_tables_as_with_them("-fno-omit-frame-pointer", ("-O0", "-O1", "-O2"))


@test
def frames_are_counted_where_the_code_proves_their_size():
    without_tables_as_with_them("-fomit-frame-pointer", ("-O1", "-O2", "-Os"))


@test
def rbp_that_is_no_frame_pointer_is_not_taken_for_one():
    build("gcc", "-O2", "-fno-omit-frame-pointer", *NO_TABLES, text=ALIKE)
    found = stacks_of(7902)
    equal(700, len(found), "blocks")
    proven = [one for one in found if one[0] == 0]
    # leaf, counts, main and _start are the program's; between these libc's two.
    equal([(0, 6, 4)] * 500, proven, "those of counts, whose frame can be counted")
    taken = int(Trace().end["stacks-incomplete"])
    check(taken >= 200 and f"{taken:,} times a stack was taken that is not proven whole"
          in run([TIDEMARK, "info", "t.tide"]).out, taken)
    equal([], re.findall(r"^ +0x[0-9a-f]{1,3}$", run([TIDEMARK, "report", "--all-frames", "t.tide"]).out,
                         re.M), "numbers that were taken for callers")


@test
def a_goroutine_that_calls_c_is_followed_to_its_end():
    for place in ("-no-pie", "-pie"):
        build("gcc", "-O2", *NO_TABLES, place, text=GOROUTINE)
        found = stacks_of(7903)
        # leaf, asmcgocall, second, first, goexit.
        equal([(0, 5, 5)] * 100, found, place)


@test
def a_context_of_boost_is_followed_to_its_end():
    for zero, leave in (("%rdi,%rdi", "_exit@plt"), ("%edi,%edi", "*_exit@gotpcrel(%rip)")):
        build("gcc", "-O2", f'-DZERO="{zero}"', f'-DEXIT="{leave}"', text=CONTEXT)
        # leaf, first, and the end.
        equal([(0, 3, 3)] * 100, stacks_of(7904), zero)
        equal(0, int(Trace().end.get("stacks-incomplete", 0)), "not proven whole")


@test
def a_stripped_program_of_go_names_its_functions():
    for place, table in (("-no-pie", '.gopclntab,\\"a\\"'), ("-pie", '.data.rel.ro.gopclntab,\\"aw\\"')):
        build("gcc", "-O2", *NO_TABLES, place, f'-DTABLE="{table}"', text=GOROUTINE)
        equal(0, run(["strip", "program"]).code, "strip")
        stacks_of(7903)
        out = run([TIDEMARK, "report", "--all-frames", "-n", "1", "t.tide"]).out
        frames = [" ".join(line.split()[-2:]) for line in out.splitlines() if "main." in line or "runtime." in line]
        # What is inlined into asmcgocall there has the line.
        equal(["main.second main.go:300", "main.first main.go:12"], [frame for frame in frames if "main." in frame][:2], out)
        check(re.search(r"runtime\.asmcgocall +program\+0x", out) and re.search(r"runtime\.goexit +program\+0x", out), out)
        equal("go", next(module["names"] for module in
                         json.loads(run([TIDEMARK, "symbols", "--json", "t.tide"]).out)["modules"]
                         if module["file"] and module["file"].endswith("/program")), "where names come from")


main()
