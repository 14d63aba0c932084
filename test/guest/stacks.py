#!/usr/bin/env python3
"""Stacks are whole, callers stay apart, and odd stacks do no harm."""
# timeout: 120
# parallel: yes
import collections

from libguest import (BITS, TIDEMARK, Skip, Trace, check, check_whole, equal, main, program,
                      record, record_witnessed, report, run, test)

FLAG_INCOMPLETE, FLAG_CUT = 1, 2


def is_whole_at(depth):
    record([program("deep"), str(depth)])
    trace = Trace()
    check_whole(trace)
    stacks = collections.Counter(event.stack for event in trace.of_size(7501))
    equal([10, 20], sorted(stacks.values()), "blocks by stack")
    left, right = stacks
    for stack in stacks:
        # guest_keep, depth x descend, from_left or from_right, main, and libc's start.
        check(depth + 4 <= trace.depth(stack) <= depth + 8, f"depth {trace.depth(stack)}")
        equal(0, trace.stacks[stack][2], "flags")
    equal(trace.root(left), trace.root(right), "the root")
    ours = [site for site in report("t.tide", "-n", "0", "--all-frames")["sites"]["bytes"]
            if site["bytes"] in (75010, 150020)]
    callers = {name for site in ours for frame in site["stack"]
               for name in [frame["function"]] if name in ("from_left", "from_right")}
    equal({"from_left", "from_right"}, callers, "callers in the report")
    equal([depth, depth], [sum(frame["function"] == "descend" for frame in site["stack"])
                           for site in ours], "frames of `descend` in the report")


@test
def a_stack_of_100_frames_is_whole():
    is_whole_at(100)


@test
def a_stack_of_500_frames_is_whole():
    is_whole_at(500)


@test
def a_stack_of_5000_frames_is_whole():
    is_whole_at(5000)


@test
def a_stack_that_is_too_deep_says_that_it_was_cut():
    record([program("deep"), "20000"])
    trace = Trace()
    check_whole(trace)
    events = trace.of_size(7501)
    equal(30, len(events), "blocks")
    for stack in {event.stack for event in events}:
        if trace.depth(stack) < 20000:
            check(trace.stacks[stack][2] & FLAG_CUT, "a stack was cut silently")
    said = " ".join(run([TIDEMARK, "report", "t.tide"]).out.split())
    check("30 allocations have a stack deeper than the 8,192 frames" in said, said[-600:])
    check("unwind tables" not in said, said[-600:])
    deep = [site for site in report("t.tide")["sites"]["bytes"] if site["stack_deep"]]
    check(deep and not any(site["stack_complete"] for site in deep), len(deep))
    check("deeper than the 8,192 frames" in run([TIDEMARK, "info", "t.tide"]).out)
    for command in ["window", "active", "growth"]:
        said = run([TIDEMARK, command, "t.tide"]).out
        check("deeper than the 8,192" in " ".join(said.split()), command, said[-600:])


@test
def distinct_stacks_by_the_hundred_thousand_cost_a_bounded_amount_of_memory():
    plain = int(run([program("many_stacks")]).out)
    ended = record([program("many_stacks")])
    added = int(ended.out) - plain
    check(added <= 4 << 10, f"{added} KiB added to the program's peak")
    data = report("t.tide", "-n", "1")
    check(data["heap"]["allocations"] >= 131072, data["heap"])
    equal(0, data["trace"]["events_lost"], "events lost")
    print(f"# added {added} KiB to a peak of {plain} KiB")


@test
def more_places_of_code_than_there_was_room_for_are_told_apart():
    record([program("generated")])
    trace = Trace()
    check_whole(trace)
    found = trace.of_size(40)
    equal(140000, len(found), "blocks")
    equal(140000, trace.frees_of_size(40), "frees")
    places = {trace.frames[trace.stacks[event.stack][0]][1] for event in found}
    equal(140000, len(places), "places that they are from")
    gaps = {b - a for a, b in zip(sorted(places), sorted(places)[1:])}
    equal({32}, gaps, "distance of the places")


def check_verified(trace):
    """Each stack was walked twice, the second time without the help of the one before."""
    check(int(trace.end.get("stacks-verified", 0)) > 0, "no stack was verified")
    equal(0, int(trace.end.get("stacks-mismatched", 0)), "stacks that differ")


def odd(how, *sizes):
    return verified([program("odd_stacks"), how], *sizes)


def verified(command, *sizes):
    ended, witness = record_witnessed(command, "--verify-stacks")
    trace = Trace()
    check_whole(trace, witness)
    check_verified(trace)
    events = [event for size in sizes for event in trace.of_size(size)]
    equal(int(ended.out), len(events), "blocks")
    equal(int(ended.out), sum(trace.frees_of_size(size) for size in sizes), "frees")
    return trace, events


def complete(trace, events):
    for stack in {event.stack for event in events}:
        equal(0, trace.stacks[stack][2], f"flags of stack {stack}")


@test
def a_signal_handler_may_allocate():
    trace, events = odd("signal", 7601)
    complete(trace, events)


@test
def a_signal_handler_on_its_own_stack_may_allocate():
    trace, events = odd("altstack", 7602)
    complete(trace, events)


@test
def longjmp_loses_nothing():
    trace, events = odd("longjmp", 7603)
    complete(trace, events)
    depths = {trace.depth(event.stack) for event in events}
    equal(4, len(depths), f"depths {depths}")


@test
def coroutines_have_stacks_of_their_own():
    trace, events = odd("coroutine", 7604, 7605)
    complete(trace, events)
    roots = {trace.stacks[trace.root(event.stack)][0] for event in events}
    equal(1, len(roots), "roots of coroutines")
    check(max(trace.depth(event.stack) for event in events) <= 4, "frames of the coroutine only")


@test
def coroutines_on_stacks_that_come_and_go_lose_nothing():
    odd("own_stack", 7607)


@test
def what_is_remembered_of_a_stack_in_the_heap_is_not_read_when_the_heap_has_shrunk():
    if BITS == 32:
        raise Skip("the program is written for 64")
    for more in [], ["--verify-stacks"]:
        record([program("odd_stacks"), "shrunk"], "--force", *more)
        equal(200, len(Trace().of_size(7608)), "blocks")


@test
def a_page_that_may_no_longer_be_read_is_not_read():
    if BITS == 32:
        raise Skip("the program is written for 64")
    for more in [], ["--verify-stacks"]:
        ended = record([program("odd_stacks"), "fenced"], "--force", *more)
        equal(int(ended.out), len(Trace().of_size(7609)), "blocks")


def two_ways_are_told_apart(name, size):
    trace, events = verified([program(name)], size)
    complete(trace, events)
    count = collections.Counter(event.stack for event in events)
    equal(12, len(count), "stacks: two ways, six depths")
    check(min(count.values()) > 2000, f"each as often as another: {count}")


@test
def frames_that_differ_in_the_middle_are_told_apart():
    two_ways_are_told_apart("two_ways", 7608)


@test
def frames_that_differ_in_saved_frame_pointers_are_told_apart():
    two_ways_are_told_apart("two_frames", 7609)


@test
def threads_with_16_KiB_of_stack_are_recorded():
    trace, events = odd("small", 7606)
    complete(trace, events)
    equal(20, len({event.thread for event in events}), "threads")


@test
def exceptions_lose_nothing():
    _, witness = record_witnessed([program("throws")], "--verify-stacks")
    trace = Trace()
    check_whole(trace, witness)
    check_verified(trace)
    equal(5000, len(trace.of_size(7651)), "blocks")
    equal(5000, trace.frees_of_size(7651), "frees")
    complete(trace, trace.of_size(7651))


@test
def code_without_frame_pointers_has_whole_stacks():
    record([program("bare_frames")])
    trace = Trace()
    check_whole(trace)
    events = trace.of_size(7671)
    equal(500, len(events), "blocks")
    complete(trace, events)
    depth = trace.depth(events[0].stack)
    check(depth >= 8, f"level_0 to level_5, main and libc's start; got {depth}")


@test
def what_was_thought_of_an_address_is_forgotten_when_a_library_comes_there():
    for when in ("before", "meanwhile"):
        ended = record([program("stale_return"), program("libstale_library.so"), when], "--force")
        equal("1", ended.out.strip(), "the library lies where it was")
        trace = Trace()
        check_whole(trace)
        events = trace.of_size(7411)
        equal(1000, len(events), "blocks")
        complete(trace, events)
        for stack in {event.stack for event in events}:
            module = trace.frames[trace.stacks[stack][0]][0]
            check("stale_library" in trace.modules.get(module, ""), when, module, trace.modules)


GENERATED = r"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
// push %rbp; mov %rsp,%rbp; call *%rsi; pop %rbp; and as the one ends a return, as the other one
// pop %rcx; jmp *%rcx, which may be anything.
static const unsigned char says[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x5d, 0xc3 };
static const unsigned char silent[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x5d, 0x59, 0xff, 0xe1 };
int main(void)
{
	unsigned char *code = mmap(NULL, 12288, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(code, 4096); // nothing is before its first byte
	code += 4096;
	void *(*call)(size_t, void *(*)(size_t));
	memcpy(code, says, sizeof(says));
	memcpy(code + 64, silent, sizeof(silent));
	for (int i = 0; i < 500; i++) {
		*(void **)&call = code;
		free(call(7431, malloc));
		*(void **)&call = code + 64;
		free(call(7432, malloc));
	}
	return 0;
}
"""


@test
def generated_code_is_proven_by_its_own_instructions_or_marked():
    if BITS == 32:
        raise Skip("of 32 bits nothing is proven")
    with open("generated.c", "w", encoding="ascii") as file:
        file.write(GENERATED)
    run(["gcc", "-O1", "-fno-builtin", "-o", "generated", "generated.c"])
    record(["./generated"])
    trace = Trace()
    check_whole(trace)
    for size, marked in ((7431, 0), (7432, FLAG_INCOMPLETE)):
        events = trace.of_size(size)
        equal(500, len(events), "blocks")
        for stack in {event.stack for event in events}:
            equal(marked, trace.stacks[stack][2] & FLAG_INCOMPLETE, f"{size}: is it marked")
            check(trace.depth(stack) >= 4, "a stack was cut", trace.depth(stack))


@test
def a_stack_that_cannot_be_walked_is_marked():
    record([program("bare_tables")])
    trace = Trace()
    check_whole(trace)
    events = trace.of_size(7671)
    equal(500, len(events), "blocks")
    for stack in {event.stack for event in events}:
        if trace.depth(stack) < 8:
            check(trace.stacks[stack][2] & FLAG_INCOMPLETE, "a stack was cut silently")


ASTRAY = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
// Data in rbp, no unwind tables, and an indirect jump that nothing can follow.
__asm__(".text\n.type astray, @function\nastray: push %rbp\n mov %rdi, %rbp\n mov $7673, %edi\n"
	"call malloc@PLT\n lea 1f(%rip), %rcx\n jmp *%rcx\n 1: pop %rbp\n ret\n");
void *astray(const uintptr_t *);
int main(void)
{
	char *heap = calloc(1, 4096);
	volatile uintptr_t data[6] = { 0 };
	data[0] = (uintptr_t)&data[2];
	data[1] = (uintptr_t)(heap + 1000); // what lies there is no code
	data[2] = (uintptr_t)&data[4];
	data[3] = 0x200000000000;           // nothing lies there
	for (int i = 0; i < 100; i++)
		astray((const uintptr_t *)data);
	printf("%#lx\n", (unsigned long)data[1] - 1); // as the frame of a caller
	return 0;
}
"""


@test
def words_that_are_no_return_addresses_are_no_frames():
    if BITS == 32:
        raise Skip("its code is of 64 bits")
    with open("astray.c", "w", encoding="utf-8") as file:
        file.write(ASTRAY)
    equal(0, run(["gcc", "-O1", "-o", "astray", "astray.c"]).code)
    data = record(["./astray"], "--verify-stacks").out.strip()
    trace = Trace()
    check_whole(trace)
    events = trace.of_size(7673)
    equal(100, len(events), "blocks")
    check(all(trace.stacks[event.stack][2] & FLAG_INCOMPLETE for event in events), "a stack was cut silently")
    said = run([TIDEMARK, "report", "-n", "0", "--all-frames", "t.tide"]).out
    check("astray" in said, said)
    check(data not in said and "0x2000" not in said, data, said)
    check(", 0 of them with another result" in run([TIDEMARK, "info", "t.tide"]).out)


LINKED = """
#include <stdlib.h>
void *make(size_t size) { void *block = malloc(size); ((char *)block)[1] = 1; return block; }
"""
LINKS = """
#include <dlfcn.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	void *library = dlopen(argv[argc - 1], RTLD_NOW);
	void *(*make)(size_t) = (void *(*)(size_t))dlsym(library, "make");
	free(make(3333));
	return 0;
}
"""


@test
def a_library_that_is_linked_to_an_address_of_its_own_is_seen():
    for name, text in ("linked.c", LINKED), ("links.c", LINKS):
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)
    bits = f"-m{BITS}"
    equal(0, run(["gcc", bits, "-O1", "-o", "links", "links.c", "-ldl"]).code)
    # The last two are in the kernel's half, as is the kernel's own library under User-Mode Linux.
    high = ["0x3000000000", "0xffffffff80000000", "0xffffffffff700000"] if BITS == 64 else ["0xff000000"]
    for address in ["0x10000000", *high]:
        equal(0, run(["gcc", bits, "-shared", "-fPIC", "-O1", f"-Wl,-Ttext-segment={address}", "-o", "linked.so",
                      "linked.c"]).code)
        record(["./links", "./linked.so"], "--force")
        trace = Trace()
        check_whole(trace)
        equal(1, len(trace.of_size(3333)), address)
        names = [frame["function"] for site in report("t.tide", "--size", "3333")["sites"]["bytes"]
                 for frame in site["stack"]]
        check("make" in names and "main" in names, address, names)


main()
